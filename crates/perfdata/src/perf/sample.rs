// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parsed samples.

use lateralis_model::ByteOrder;

use super::attr::{Attr, BRANCH_COUNTERS, BRANCH_HW_INDEX, read, sample};
use crate::wire::Wire;

/// Counter values that came with a sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters<'a> {
    /// Nanoseconds for which the event was enabled.
    pub time_enabled: u64,
    /// Nanoseconds for which it was counting.
    pub time_running: u64,
    /// Value, id and lost events of a single counter.
    pub single: Option<[u64; 3]>,
    /// Counters of a group: value, id and lost events each, depending on `read_format`.
    pub group: &'a [u8],
}

/// Registers and their width; none if the width is 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct Registers<'a> {
    /// 0 none, 1 32-bit, 2 64-bit.
    pub abi: u64,
    /// 8 bytes each.
    pub values: &'a [u8],
}

/// All fields that a sample can have; absent ones are 0 or empty.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Sample<'a> {
    pub ip: u64,
    pub pid: u32,
    pub tid: u32,
    pub addr: u64,
    pub id: u64,
    pub stream_id: u64,
    pub cpu: Option<u32>,
    pub period: u64,
    pub counters: Counters<'a>,
    pub callchain: &'a [u8],
    pub raw: &'a [u8],
    pub branch_hw_index: u64,
    pub branches: &'a [u8],
    pub branch_counters: &'a [u8],
    pub user_regs: Registers<'a>,
    pub user_stack: &'a [u8],
    pub weight: u64,
    pub data_src: u64,
    pub transaction: u64,
    pub intr_regs: Registers<'a>,
    pub phys_addr: u64,
    pub cgroup: u64,
    pub data_page_size: u64,
    pub code_page_size: u64,
    pub aux: &'a [u8],
}

impl<'a> Sample<'a> {
    /// Parses the body of a sample. `None` if it is shorter than its attribute requires.
    pub fn parse(attr: &Attr, body: &'a [u8], order: ByteOrder) -> Option<Self> {
        let mut wire = Wire::new(body, order);
        let mut this = Self::default();
        let has = |bit| attr.has(bit);
        if has(sample::IDENTIFIER) {
            this.id = wire.u64()?;
        }
        if has(sample::IP) {
            this.ip = wire.u64()?;
        }
        if has(sample::TID) {
            (this.pid, this.tid) = (wire.u32()?, wire.u32()?);
        }
        if has(sample::TIME) {
            wire.u64()?;
        }
        if has(sample::ADDR) {
            this.addr = wire.u64()?;
        }
        if has(sample::ID) {
            this.id = wire.u64()?;
        }
        if has(sample::STREAM_ID) {
            this.stream_id = wire.u64()?;
        }
        if has(sample::CPU) {
            this.cpu = Some(wire.u32()?);
            wire.u32()?;
        }
        if has(sample::PERIOD) {
            this.period = wire.u64()?;
        }
        if has(sample::READ) {
            this.counters = counters(attr, &mut wire)?;
        }
        if has(sample::CALLCHAIN) {
            let count = wire.u64()?;
            this.callchain = wire.take64(count.checked_mul(8)?)?;
        }
        if has(sample::RAW) {
            let size = wire.u32()?;
            this.raw = wire.take(size as usize)?;
        }
        if has(sample::BRANCH_STACK) {
            let count = wire.u64()?;
            if attr.branch_sample_type & BRANCH_HW_INDEX != 0 {
                this.branch_hw_index = wire.u64()?;
            }
            this.branches = wire.take64(count.checked_mul(24)?)?;
            if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
                this.branch_counters = wire.take64(count.checked_mul(8)?)?;
            }
        }
        if has(sample::REGS_USER) {
            this.user_regs = registers(attr.sample_regs_user, &mut wire)?;
        }
        if has(sample::STACK_USER) {
            let size = wire.u64()?;
            if size > 0 {
                let stack = wire.take64(size)?;
                let used = wire.u64()?.min(size) as usize;
                this.user_stack = &stack[..used];
            }
        }
        if has(sample::WEIGHT | sample::WEIGHT_STRUCT) {
            this.weight = wire.u64()?;
        }
        if has(sample::DATA_SRC) {
            this.data_src = wire.u64()?;
        }
        if has(sample::TRANSACTION) {
            this.transaction = wire.u64()?;
        }
        if has(sample::REGS_INTR) {
            this.intr_regs = registers(attr.sample_regs_intr, &mut wire)?;
        }
        for (bit, field) in [
            (sample::PHYS_ADDR, &mut this.phys_addr),
            (sample::CGROUP, &mut this.cgroup),
            (sample::DATA_PAGE_SIZE, &mut this.data_page_size),
            (sample::CODE_PAGE_SIZE, &mut this.code_page_size),
        ] {
            if has(bit) {
                *field = wire.u64()?;
            }
        }
        if has(sample::AUX) {
            let size = wire.u64()?;
            this.aux = wire.take64(size)?;
        }
        Some(this)
    }
}

/// Bytes of one counter of a group.
pub fn counter_bytes(attr: &Attr) -> usize {
    let fields = [read::ID, read::LOST].iter().filter(|&&bit| attr.read_format & bit != 0);
    8 + 8 * fields.count()
}

fn counters<'a>(attr: &Attr, wire: &mut Wire<'a>) -> Option<Counters<'a>> {
    let mut counters = Counters::default();
    let has = |bit| attr.read_format & bit != 0;
    // The number of counters, or the value of the only one.
    let first = wire.u64()?;
    if has(read::TIME_ENABLED) {
        counters.time_enabled = wire.u64()?;
    }
    if has(read::TIME_RUNNING) {
        counters.time_running = wire.u64()?;
    }
    if has(read::GROUP) {
        counters.group = wire.take64(first.checked_mul(counter_bytes(attr) as u64)?)?;
    } else {
        let id = if has(read::ID) { wire.u64()? } else { 0 };
        let lost = if has(read::LOST) { wire.u64()? } else { 0 };
        counters.single = Some([first, id, lost]);
    }
    Some(counters)
}

fn registers<'a>(mask: u64, wire: &mut Wire<'a>) -> Option<Registers<'a>> {
    let abi = wire.u64()?;
    if abi == 0 {
        return Some(Registers::default());
    }
    let values = wire.take(mask.count_ones() as usize * 8)?;
    Some(Registers { abi, values })
}
