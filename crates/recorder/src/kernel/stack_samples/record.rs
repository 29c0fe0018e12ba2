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
/// Bits of `misc`: where the processor was; a name came by `execve`; a thread leaves the processor, and
/// could have gone on.
pub(super) const MISC_CPU_MODE: u16 = 7;
pub(super) const MISC_EXEC: u16 = 1 << 13;
pub(super) const MISC_SWITCH_OUT: u16 = 1 << 13;
pub(super) const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Type, misc, size.
pub(super) const HEADER_BYTES: usize = 8;
/// Behind every record that is no sample: process, thread, time [PERF_SAMPLE_TID, PERF_SAMPLE_TIME];
/// where records say of which event they are, one word more [PERF_SAMPLE_ID].
pub(super) const TRAILER_BYTES: usize = 16;

/// Reads what stands one behind the other.
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

    /// A count, then so many words.
    pub(super) fn words(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.word()?).ok()?;
        self.take(count.checked_mul(8)?)
    }
}

/// A sample [perf_event_open(2), "PERF_RECORD_SAMPLE"]: what it must have been asked for is IP, TID,
/// TIME, PERIOD, CALLCHAIN; ID where threads leave a processor; where there are events of the kernel among
/// them RAW; and for the memory of stacks REGS_USER and STACK_USER.
pub(super) struct Sample<'a> {
    pub(super) time: u64,
    pub(super) thread: Thread,
    /// Which event took it; 0 where that is not said.
    pub(super) id: u64,
    pub(super) ip: u64,
    pub(super) period: u64,
    pub(super) callchain: &'a [u8],
    /// The record of an event of the kernel.
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
        // A thread of the kernel has none.
        if sample.registers_abi != 0 {
            sample.registers = fields.take(8 * mask.count_ones() as usize)?;
        }
        let room = usize::try_from(fields.word()?).ok()?;
        if room > 0 {
            let memory = fields.take(room)?;
            // Behind the room stands how much of it was there to be copied.
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

/// Who mapped what, by a record of that [perf_event_open(2), "PERF_RECORD_MMAP2"].
///
/// Build ids must not be asked for: Linux (6.18) then marks the records of everybody else who samples the
/// same thread as if they had one, and perf ends with an overflow. Nor is that mark looked at.
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
