// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fields of samples in the model: their classes, and their values in the same order.

use lateralis_model::{Base, ByteOrder, FieldClass, FieldKind, IntegerClass, Label, Range};

use super::attr::{Attr, BRANCH_COUNTERS, BRANCH_HW_INDEX, read, sample};
use super::sample::{Sample, counter_bytes};
use crate::row::{Row, packed};
use crate::wire::Wire;

fn hex() -> FieldClass {
    FieldClass::unsigned(64, Base::Hexadecimal)
}

/// An array of words, laid out by [`Row::integers`].
pub fn words() -> FieldClass {
    let (element, packed) = (Box::new(hex()), Some(packed(8, false)));
    FieldClass::new(FieldKind::Array { element, length: None, packed })
}

fn label(name: &str, value: i128) -> Label {
    Label { name: name.to_owned(), ranges: vec![Range { low: value, high: value }] }
}

/// Privilege mode of the CPU [perf_event.h, PERF_RECORD_MISC_CPUMODE_MASK].
pub fn cpu_mode() -> FieldClass {
    let names = ["unknown", "kernel", "user", "hypervisor", "guest_kernel", "guest_user"];
    let labels = names.iter().zip(0..).map(|(name, value)| label(name, value)).collect();
    FieldClass::new(FieldKind::Unsigned(IntegerClass { bits: 8, base: Base::Decimal, labels }))
}

fn branch() -> FieldClass {
    let flags = ["mispredicted", "predicted", "in_transaction", "abort"];
    let flags = flags.iter().zip(0..).map(|(name, bit)| label(name, bit)).collect();
    let flags = FieldClass::new(FieldKind::Bits { bits: 64, flags });
    FieldClass::structure([("from", hex()), ("to", hex()), ("flags", flags)])
}

fn registers() -> FieldClass {
    FieldClass::structure([("abi", FieldClass::u64()), ("regs", words())])
}

fn counter(attr: &Attr) -> FieldClass {
    let mut members = vec![("value", FieldClass::u64())];
    if attr.read_format & read::ID != 0 {
        members.push(("id", FieldClass::u64()));
    }
    if attr.read_format & read::LOST != 0 {
        members.push(("lost", FieldClass::u64()));
    }
    FieldClass::structure(members)
}

/// Fields of an attribute's samples, in the order of [`values`]. `raw`: whether raw data is a field of
/// its own rather than a tracepoint.
pub fn members(attr: &Attr, raw: bool) -> Vec<(&'static str, FieldClass)> {
    let mut members = vec![("cpu_mode", cpu_mode())];
    let mut add = |bit, name, class: FieldClass| {
        if attr.has(bit) {
            members.push((name, class));
        }
    };
    add(sample::IP, "ip", hex());
    add(sample::ADDR, "addr", hex());
    add(sample::STREAM_ID, "stream_id", FieldClass::u64());
    add(sample::PERIOD, "period", FieldClass::u64());
    if attr.read_format & read::TIME_ENABLED != 0 {
        add(sample::READ, "time_enabled", FieldClass::u64());
    }
    if attr.read_format & read::TIME_RUNNING != 0 {
        add(sample::READ, "time_running", FieldClass::u64());
    }
    add(sample::READ, "counters", FieldClass::array(counter(attr), None));
    add(sample::CALLCHAIN, "callchain", words());
    if raw {
        add(sample::RAW, "raw", FieldClass::blob());
    }
    if attr.branch_sample_type & BRANCH_HW_INDEX != 0 {
        add(sample::BRANCH_STACK, "branch_hw_index", FieldClass::u64());
    }
    add(sample::BRANCH_STACK, "branches", FieldClass::array(branch(), None));
    if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
        add(sample::BRANCH_STACK, "branch_counters", words());
    }
    add(sample::REGS_USER, "user_regs", registers());
    add(sample::STACK_USER, "user_stack", FieldClass::blob());
    add(sample::WEIGHT, "weight", FieldClass::u64());
    add(sample::WEIGHT_STRUCT, "weight", FieldClass::unsigned(32, Base::Decimal));
    add(sample::WEIGHT_STRUCT, "weight2", FieldClass::unsigned(16, Base::Decimal));
    add(sample::WEIGHT_STRUCT, "weight3", FieldClass::unsigned(16, Base::Decimal));
    add(sample::DATA_SRC, "data_src", hex());
    add(sample::TRANSACTION, "transaction", hex());
    add(sample::REGS_INTR, "intr_regs", registers());
    add(sample::PHYS_ADDR, "phys_addr", hex());
    add(sample::CGROUP, "cgroup", FieldClass::u64());
    add(sample::DATA_PAGE_SIZE, "data_page_size", FieldClass::u64());
    add(sample::CODE_PAGE_SIZE, "code_page_size", FieldClass::u64());
    add(sample::AUX, "aux", FieldClass::blob());
    members
}

fn counters(attr: &Attr, values: &Sample<'_>, order: ByteOrder, row: &mut Row) {
    let has = |bit| attr.read_format & bit != 0;
    if let Some([value, id, lost]) = values.counters.single {
        row.array(1, |row| {
            row.u64(value);
            if has(read::ID) {
                row.u64(id);
            }
            if has(read::LOST) {
                row.u64(lost);
            }
        });
        return;
    }
    let count = values.counters.group.len() / counter_bytes(attr);
    row.array(count as u32, |row| each_word(values.counters.group, order, row));
}

fn each_word(bytes: &[u8], order: ByteOrder, row: &mut Row) {
    let mut wire = Wire::new(bytes, order);
    while let Some(word) = wire.u64() {
        row.u64(word);
    }
}

/// Adds branches; their flags are bit fields, which are allocated from the end given by the byte order.
fn each_branch(bytes: &[u8], order: ByteOrder, row: &mut Row) {
    let mut wire = Wire::new(bytes, order);
    while let (Some(from), Some(to), Some(flags)) = (wire.u64(), wire.u64(), wire.u64()) {
        row.u64(from);
        row.u64(to);
        row.u64(match order {
            ByteOrder::Little => flags,
            ByteOrder::Big => little_branch_flags(flags),
        });
    }
}

/// Bits of each member of `struct perf_branch_entry` after its addresses [perf_event.h].
const BRANCH_FLAGS: [u32; 9] = [1, 1, 1, 1, 16, 4, 2, 4, 3];

/// Reverses flags of a branch whose first member is in the highest bits, so that it is in the lowest.
fn little_branch_flags(flags: u64) -> u64 {
    let (mut all, mut at) = (0, 0);
    for bits in BRANCH_FLAGS {
        let member = flags >> (u64::BITS - at - bits) & ((1 << bits) - 1);
        all |= member << at;
        at += bits;
    }
    all
}

/// Adds the values of a sample. `misc` is that of its record.
pub fn values(
    attr: &Attr,
    raw: bool,
    misc: u16,
    values: &Sample<'_>,
    order: ByteOrder,
    row: &mut Row,
) {
    let has = |bit| attr.has(bit);
    row.u64(u64::from(misc & 7));
    for (bit, value) in [
        (sample::IP, values.ip),
        (sample::ADDR, values.addr),
        (sample::STREAM_ID, values.stream_id),
        (sample::PERIOD, values.period),
    ] {
        if has(bit) {
            row.u64(value);
        }
    }
    if has(sample::READ) {
        if attr.read_format & read::TIME_ENABLED != 0 {
            row.u64(values.counters.time_enabled);
        }
        if attr.read_format & read::TIME_RUNNING != 0 {
            row.u64(values.counters.time_running);
        }
        counters(attr, values, order, row);
    }
    if has(sample::CALLCHAIN) {
        row.integers(values.callchain, 8, order);
    }
    if raw && has(sample::RAW) {
        row.bytes(values.raw);
    }
    if attr.sample_type >= sample::BRANCH_STACK {
        rare_values(attr, values, order, row);
    }
}

/// Adds fields that few samples have.
fn rare_values(attr: &Attr, values: &Sample<'_>, order: ByteOrder, row: &mut Row) {
    let has = |bit| attr.has(bit);
    if has(sample::BRANCH_STACK) {
        if attr.branch_sample_type & BRANCH_HW_INDEX != 0 {
            row.u64(values.branch_hw_index);
        }
        let count = (values.branches.len() / 24) as u32;
        row.array(count, |row| each_branch(values.branches, order, row));
        if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
            row.integers(values.branch_counters, 8, order);
        }
    }
    if has(sample::REGS_USER) {
        row.u64(values.user_regs.abi);
        row.integers(values.user_regs.values, 8, order);
    }
    if has(sample::STACK_USER) {
        row.bytes(values.user_stack);
    }
    if has(sample::WEIGHT) {
        row.u64(values.weight);
    }
    if has(sample::WEIGHT_STRUCT) {
        // A struct whose member order follows the byte order [perf_event.h, union perf_sample_weight], so
        // that the word is the same everywhere.
        row.u64(values.weight & 0xffff_ffff);
        row.u64(values.weight >> 32 & 0xffff);
        row.u64(values.weight >> 48);
    }
    for (bit, value) in
        [(sample::DATA_SRC, values.data_src), (sample::TRANSACTION, values.transaction)]
    {
        if has(bit) {
            row.u64(value);
        }
    }
    if has(sample::REGS_INTR) {
        row.u64(values.intr_regs.abi);
        row.integers(values.intr_regs.values, 8, order);
    }
    for (bit, value) in [
        (sample::PHYS_ADDR, values.phys_addr),
        (sample::CGROUP, values.cgroup),
        (sample::DATA_PAGE_SIZE, values.data_page_size),
        (sample::CODE_PAGE_SIZE, values.code_page_size),
    ] {
        if has(bit) {
            row.u64(value);
        }
    }
    if has(sample::AUX) {
        row.bytes(values.aux);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_branches_are_the_same_in_both_orders() {
        // mispredicted, aborted, 0x1234 cycles, kind 5, not speculative 2, 9, privilege 6.
        let little = 0b1001 | 0x1234 << 4 | 5 << 20 | 2 << 24 | 9 << 26 | 6 << 30;
        let big = 0b1001_u64 << 60 | 0x1234 << 44 | 5 << 40 | 2 << 38 | 9 << 34 | 6 << 31;
        assert_eq!(little_branch_flags(big), little);
        assert_eq!(little_branch_flags(1 << 63), 1);
    }
}
