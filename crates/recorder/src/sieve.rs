// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is left out of a ring when it is read: records that a filter keeps out, and those of threads
//! that no policy wants.
//!
//! A filter holds in the program as soon as it could be written there; here it holds from the first
//! record on, also of a program that could not be told in time, or whose tracer has no filters. Whose
//! record it is only the reader knows: a thread names itself when it likes, and its name decides.
//!
//! ```text
//! ring ─▶ chunk ─ sift: id, thread, fields ─▶ the same chunk with fewer records ─▶ RingStream::seal
//! ```
//!
//! What is left out is no loss: nobody wanted it. It is counted. Damage is left to the sealing: from
//! the first record on that cannot be stepped over, everything stays.

mod threads;

use std::ops::Range;

use lateralis_ring::{Chunk, FilterStep, abi};

use crate::classes::RegisteredSchema;
use crate::filter::passes;
use crate::walk::RecordPlan;

pub use threads::{ThreadRule, Threads};

/// What becomes of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It stays.
    Keep,
    /// It is left out.
    Drop,
    /// It stays if its fields pass.
    If(Box<[FilterStep]>),
}

/// Where the reading of a ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SiftPlace {
    /// Payload of the last WRITER record, kept or not.
    writer: Option<[u8; 8]>,
    /// Time of the last record, kept or not.
    time: u64,
}

/// A chunk that was sifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sifted {
    /// What is left of it.
    pub chunk: Chunk,
    /// Where it began: for [`RingStream::continue_at`].
    ///
    /// [`RingStream::continue_at`]: crate::stream::RingStream::continue_at
    pub begins: (u64, Option<[u8; 8]>),
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Sieve {
    /// By event id; beyond its end everything stays.
    events: Vec<Verdict>,
    /// Instead, where policies are about threads.
    threads: Option<Threads>,
    left_out: u64,
    ranges: Vec<Range<usize>>,
}

impl Sieve {
    /// A sieve that asks whose a record is.
    pub fn of_threads(rules: Vec<ThreadRule>) -> Sieve {
        Sieve { threads: Some(Threads::new(rules)), ..Sieve::default() }
    }

    /// Events of this id stay only if their fields pass.
    pub fn add_filter(&mut self, id: u32, steps: Vec<FilterStep>) {
        let at = id as usize;
        if at < abi::EVENT_COUNT as usize {
            if self.events.len() <= at {
                self.events.resize(at + 1, Verdict::Keep);
            }
            self.events[at] = Verdict::If(steps.into());
        }
    }

    /// Takes over schemas: what the rules about threads mean for their events. Returns what cannot be
    /// done, a sentence each. Context: all schemas so far, those that were given before first.
    pub fn bind(&mut self, registered: &[RegisteredSchema]) -> Vec<String> {
        self.threads.as_mut().map_or(Vec::new(), |threads| threads.bind(registered))
    }

    /// The rules about threads, if there are any.
    pub fn threads(&mut self) -> Option<&mut Threads> {
        self.threads.as_mut()
    }

    /// Whether anything can be left out at all.
    pub fn is_idle(&self) -> bool {
        self.events.is_empty() && self.threads.is_none()
    }

    /// Events that were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Events of threads of which not everything was wanted, of those.
    pub fn left_out_of_threads(&self) -> u64 {
        if self.threads.is_some() { self.left_out } else { 0 }
    }

    /// Takes over the names that threads tell in records that will be sifted, of which the last ends
    /// `slack` bytes before their end, and the first is not before `begin`. Returns when the last was.
    pub fn listen(&mut self, plan: &RecordPlan, records: &[u8], (slack, begin): (u64, u64)) -> u64 {
        let mut until = begin;
        for record in plan.records(records, slack, begin) {
            until = record.time;
            if record.id == abi::ID_THREAD_NAME
                && let Some(threads) = &mut self.threads
                && let Some(said) = plan.process(records, record.at)
            {
                threads.learn((said.pid, said.parent_pid), &said.name);
            }
        }
        until
    }

    /// Leaves out what nobody wants of a chunk, whose records are the first `chunk.bytes` of
    /// `records`. `name_of` looks for the name of a thread that has told none.
    ///
    /// Cost: a step for each record, and a move of those that stay.
    pub fn sift(
        &mut self,
        plan: &RecordPlan,
        (chunk, records): (&Chunk, &mut [u8]),
        place: &mut SiftPlace,
        name_of: &mut dyn FnMut(u32, u32) -> Option<Vec<u8>>,
    ) -> Sifted {
        let bytes = usize::try_from(chunk.bytes).unwrap_or(usize::MAX).min(records.len());
        let own_start = chunk.from == abi::PACKET_HEADER_BYTES;
        let begin = if own_start { chunk.header.timestamp_begin } else { place.time };
        let begins = (begin, place.writer);
        let (mut walked, mut slack) = (0, 0);
        let mut pending: Option<Range<usize>> = None;
        self.ranges.clear();
        place.time = begin;
        for record in plan.records(&records[..bytes], chunk.slack, begin) {
            let own = record.at..record.next().min(bytes);
            walked = own.end;
            place.time = record.time;
            let body = &records[record.at + abi::RECORD_HEADER_BYTES as usize..record.end];
            if record.id == abi::ID_WRITER {
                place.writer = body.get(..8).and_then(|body| body.try_into().ok());
                pending = Some(own);
                continue;
            }
            if record.id == abi::ID_THREAD_NAME
                && let Some(threads) = &mut self.threads
                && let Some(said) = plan.process(&records[..bytes], record.at)
            {
                threads.learn_unknown((said.pid, said.parent_pid), &said.name);
            }
            if self.keeps(record.id, place.writer, body, name_of) {
                // A writer stands before the first record of it that stays.
                pending.take().into_iter().for_each(|writer| join(&mut self.ranges, writer));
                slack = (own.end - record.end) as u64;
                join(&mut self.ranges, own);
            } else {
                self.left_out += 1;
            }
        }
        // Behind what can be stepped over: whoever seals it says what is wrong with it.
        if walked < bytes.saturating_sub(chunk.slack as usize) {
            pending.take().into_iter().for_each(|writer| join(&mut self.ranges, writer));
            join(&mut self.ranges, walked..bytes);
            slack = chunk.slack;
        }
        // What the writer says of its last record stays what it says: whether it is right others judge.
        if self.ranges.last().is_some_and(|range| range.end == bytes) {
            slack = chunk.slack;
        }
        let mut end = 0;
        for range in &self.ranges {
            records.copy_within(range.clone(), end);
            end += range.len();
        }
        Sifted { chunk: Chunk { bytes: end as u64, slack, ..*chunk }, begins }
    }

    fn keeps(
        &mut self,
        id: u16,
        writer: Option<[u8; 8]>,
        body: &[u8],
        name_of: &mut dyn FnMut(u32, u32) -> Option<Vec<u8>>,
    ) -> bool {
        // Who is there is always told.
        if id == abi::ID_THREAD_NAME || id == abi::ID_PROCESS {
            return true;
        }
        let verdict = match (&mut self.threads, writer) {
            (Some(threads), Some(writer)) => threads.verdict(writer, id, name_of),
            (Some(_), None) => &Verdict::Keep,
            (None, _) => self.events.get(usize::from(id)).unwrap_or(&Verdict::Keep),
        };
        match verdict {
            Verdict::Keep => true,
            Verdict::Drop => false,
            Verdict::If(steps) => passes(steps, body),
        }
    }
}

/// Adds a range behind others; one that touches the last becomes part of it.
fn join(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

#[cfg(test)]
#[path = "sieve/tests.rs"]
mod tests;
