// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records in the buffers of `perf_event_open` about samples, mappings and threads.

use super::SampleLayout;
use super::known::MappedFile;
use crate::source::{Payload, Thread};

/// Types of records [perf_event_open(2), "struct perf_event_header"].
pub(super) const RECORD_LOST: u32 = 2;
pub(super) const RECORD_COMM: u32 = 3;
pub(super) const RECORD_EXIT: u32 = 4;
pub(super) const RECORD_THROTTLE: u32 = 5;
pub(super) const RECORD_UNTHROTTLE: u32 = 6;
pub(super) const RECORD_FORK: u32 = 7;
pub(super) const RECORD_SAMPLE: u32 = 9;
pub(super) const RECORD_MMAP2: u32 = 10;
pub(super) const RECORD_LOST_SAMPLES: u32 = 13;
pub(super) const RECORD_SWITCH: u32 = 14;
pub(super) const RECORD_SWITCH_CPU_WIDE: u32 = 15;
/// Bits of `misc`: processor mode; the name was set by `execve`; a thread leaves the CPU although it
/// was runnable.
pub(super) const MISC_CPU_MODE: u16 = 7;
pub(super) const MISC_EXEC: u16 = 1 << 13;
pub(super) const MISC_SWITCH_OUT: u16 = 1 << 13;
pub(super) const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Type, misc, size.
pub(super) const HEADER_BYTES: usize = 8;
/// Trailer of every record other than samples: process, thread, time [PERF_SAMPLE_TID, PERF_SAMPLE_TIME];
/// if records contain the id of their event, one word more [PERF_SAMPLE_ID].
pub(super) const TRAILER_BYTES: usize = 16;

/// Reads consecutive fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn half(&mut self) -> Option<u32> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*taken))
    }

    pub(super) fn word(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*taken))
    }

    /// A count, then that number of words.
    pub(super) fn words(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.word()?).ok()?;
        self.take(count.checked_mul(8)?)
    }
}

/// A sample [perf_event_open(2), "PERF_RECORD_SAMPLE"]. It must be requested with IP, TID,
/// TIME, PERIOD, CALLCHAIN; with ID for samples where threads leave a CPU; with RAW if there are kernel
/// events; and with REGS_USER and STACK_USER for the memory of stacks.
pub(super) struct Sample<'a> {
    pub(super) time: u64,
    pub(super) thread: Thread,
    /// Id of the event that took it; 0 if unknown.
    pub(super) id: u64,
    pub(super) ip: u64,
    pub(super) period: u64,
    pub(super) callchain: &'a [u8],
    /// The record of a kernel event.
    pub(super) raw: &'a [u8],
    pub(super) registers_abi: u64,
    pub(super) registers: &'a [u8],
    pub(super) stack: &'a [u8],
}

impl<'a> Sample<'a> {
    pub(super) fn read(body: &'a [u8], has_raw: bool, layout: SampleLayout) -> Option<Sample<'a>> {
        let mut fields = Fields(body);
        let ip = fields.word()?;
        let thread = Thread { pid: fields.half()?, tid: fields.half()? };
        let time = fields.word()?;
        let id = if layout.has_switches { fields.word()? } else { 0 };
        let period = fields.word()?;
        let callchain = fields.words()?;
        let mut sample = Sample {
            time,
            thread,
            id,
            ip,
            period,
            callchain,
            raw: &[],
            registers_abi: 0,
            registers: &[],
            stack: &[],
        };
        if has_raw {
            let bytes = usize::try_from(fields.half()?).ok()?;
            sample.raw = fields.take(bytes)?;
        }
        let Some(mask) = layout.registers else { return Some(sample) };
        sample.registers_abi = fields.word()?;
        // A kernel thread has none.
        if sample.registers_abi != 0 {
            sample.registers = fields.take(8 * mask.count_ones() as usize)?;
        }
        let room = usize::try_from(fields.word()?).ok()?;
        if room > 0 {
            let memory = fields.take(room)?;
            // After the buffer comes the number of bytes that were actually copied.
            let used = usize::try_from(fields.word()?).ok()?;
            sample.stack = memory.get(..used)?;
        }
        Some(sample)
    }

    pub(super) fn put_stack(&self, registers: Option<u64>, payload: &mut Payload<'_>) {
        payload.sequence(8, self.callchain);
        if let Some(mask) = registers {
            payload.put(8, &self.registers_abi.to_ne_bytes());
            payload.put(8, &mask.to_ne_bytes());
            payload.sequence(8, self.registers);
            payload.sequence(1, self.stack);
        }
    }
}

/// The text before the first NUL.
pub(super) fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Process and mapping of a record [perf_event_open(2), "PERF_RECORD_MMAP2"].
///
/// Build ids must not be requested: Linux (6.18) then marks the records of all other samplers of the
/// same thread as if they had one, and perf fails with an overflow. That mark is ignored here, too.
pub(super) fn mapped(mut fields: Fields<'_>) -> Option<(Thread, MappedFile)> {
    let thread = Thread { pid: fields.half()?, tid: fields.half()? };
    let file = MappedFile {
        begin: fields.word()?,
        bytes: fields.word()?,
        offset: fields.word()?,
        device: (fields.half()?, fields.half()?),
        inode: fields.word()?,
        generation: fields.word()?,
        protection: fields.half()?,
        flags: fields.half()?,
        build_id: Vec::new(),
        path: text(fields.0).to_vec(),
    };
    Some((thread, file))
}
