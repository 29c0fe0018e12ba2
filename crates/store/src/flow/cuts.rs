// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Positions of missing packets: a buffer was full, or the output was not read completely.

use std::collections::BTreeMap;

use lateralis_intelpt::flow::GapCause;
use lateralis_model::{Event, Value};
use lateralis_traces::hardware::Buffer;

use crate::places::thread_of;

/// Flags of an `aux` record [perf_event.h, PERF_AUX_FLAG_TRUNCATED and following]: the buffer was full;
/// parts are missing; another tracer interfered.
const TRUNCATED: u64 = 1;
const PARTIAL: u64 = 4;
const COLLISION: u64 = 8;
/// Largest number of positions kept for a recording; the first ones are kept.
const CUTS_MAX: usize = 1 << 20;

/// Positions in the output of tracers after which packets are missing.
#[derive(Debug, Default)]
pub struct Cuts {
    /// By CPU for buffers of CPUs, and by thread for buffers of threads.
    of_cpus: BTreeMap<u32, BTreeMap<u64, GapCause>>,
    of_threads: BTreeMap<u32, BTreeMap<u64, GapCause>>,
    count: usize,
    /// Number of times that a buffer was full.
    pub truncated: u64,
    /// Number of times that parts are missing for another reason.
    pub partial: u64,
}

/// Contiguous packets, and the reason for missing ones after them.
pub type Followed = (Vec<u8>, Option<GapCause>);

impl Cuts {
    /// Processes an `aux` record.
    pub fn see(&mut self, event: &Event<'_>) {
        let Some(payload) = event.payload() else { return };
        let number = |name: &str| payload.get(name).and_then(|field| field.as_u64());
        let flags = match payload.get("flags").map(|flags| flags.value()) {
            Some(Value::Unsigned(flags) | Value::Bits(flags)) => flags,
            _ => return,
        };
        let cause = match flags {
            flags if flags & TRUNCATED != 0 => GapCause::BufferFull,
            flags if flags & (PARTIAL | COLLISION) != 0 => GapCause::Missing,
            _ => return,
        };
        self.truncated += u64::from(cause == GapCause::BufferFull);
        self.partial += u64::from(cause == GapCause::Missing);
        let (Some(offset), Some(size)) = (number("aux_offset"), number("aux_size")) else { return };
        let Some(end) = offset.checked_add(size) else { return };
        let tid = thread_of(event).map(|(_, tid)| tid);
        let cpu = event.packet.cpu.map(|cpu| cpu.0);
        for (number, buffers) in [(cpu, &mut self.of_cpus), (tid, &mut self.of_threads)] {
            let Some(number) = number.filter(|_| self.count < CUTS_MAX) else { continue };
            self.count += 1;
            let of = buffers.entry(number).or_default().entry(end).or_insert(cause);
            // Of two causes at one position, a full buffer is the more specific.
            *of = if cause == GapCause::BufferFull { cause } else { *of };
        }
    }

    /// Divides the contents of a buffer at its cuts.
    pub fn divide(&self, buffer: Buffer) -> Vec<Followed> {
        let Buffer { cpu, tid, runs, offsets } = buffer;
        // A buffer of a thread has its packets from all CPUs.
        let cuts = match (tid, cpu) {
            (Some(tid), _) => self.of_threads.get(&tid),
            (None, Some(cpu)) => self.of_cpus.get(&cpu),
            (None, None) => None,
        };
        let mut all: Vec<Followed> = Vec::new();
        for (index, mut run) in runs.into_iter().enumerate() {
            if let Some((_, cause)) = all.last_mut() {
                // Packets are missing between two runs.
                *cause = cause.or(Some(GapCause::Missing));
            }
            let Some(begin) = offsets.get(index).copied() else {
                all.push((run, None));
                continue;
            };
            let end = begin.saturating_add(run.len() as u64);
            let mut at = begin;
            let here = cuts
                .into_iter()
                .flat_map(|cuts| cuts.range(begin..=end))
                .skip_while(|(cut, _)| **cut == begin);
            for (cut, cause) in here {
                let Ok(size) = usize::try_from(cut - at) else { break };
                let rest = run.split_off(size.min(run.len()));
                all.push((std::mem::replace(&mut run, rest), Some(*cause)));
                at = *cut;
            }
            if !run.is_empty() {
                all.push((run, None));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_divided_where_it_was_full_and_where_bytes_are_missing() {
        let mut cuts = Cuts::default();
        let of_thread =
            [(0, GapCause::Missing), (3, GapCause::BufferFull), (24, GapCause::Missing)];
        cuts.of_threads.insert(7, of_thread.into());
        cuts.of_cpus.insert(7, [(1, GapCause::BufferFull)].into());
        let runs = vec![b"abcdef".to_vec(), b"ghij".to_vec()];
        let buffer = Buffer { cpu: Some(7), tid: Some(7), runs, offsets: vec![0, 20] };
        let divided = cuts.divide(buffer.clone());
        let expected: [(&[u8], _); 3] = [
            (b"abc", Some(GapCause::BufferFull)),
            (b"def", Some(GapCause::Missing)),
            (b"ghij", Some(GapCause::Missing)),
        ];
        let expected = expected.map(|(bytes, cause)| (bytes.to_vec(), cause));
        assert_eq!(divided, expected);
        // Without positions, it is only known that some are missing between the pieces.
        let divided = cuts.divide(Buffer { offsets: Vec::new(), ..buffer });
        let causes: Vec<_> = divided.iter().map(|(_, cause)| *cause).collect();
        assert_eq!(causes, [Some(GapCause::Missing), None]);
    }
}
