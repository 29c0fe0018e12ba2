// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Drops records when a ring is read: those that a filter rejects, and those of threads
//! that no policy selects.
//!
//! A filter applies in the program as soon as it has been written there; here it applies from the first
//! record on, also for a program that started before, or whose tracer has no filters. Only the reader knows
//! the thread of a record: a thread can set its name at any time, and its name decides.
//!
//! ```text
//! ring ─▶ chunk ─ sift: id, thread, fields ─▶ the same chunk with fewer records ─▶ RingStream::seal
//! ```
//!
//! Dropped records are not losses, because they were not requested; they are counted. Damage is left to
//! the sealing: from the first record on that cannot be decoded, everything is kept.

mod threads;

use std::ops::Range;

use lateralis_ring::{Chunk, FilterStep, abi};

use crate::classes::RegisteredSchema;
use crate::filter::passes;
use crate::walk::RecordPlan;

pub use threads::{ThreadRule, Threads};

/// The decision on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Keep it.
    Keep,
    /// Drop it.
    Drop,
    /// Keep it if its fields match.
    If(Box<[FilterStep]>),
}

/// Position in the reading of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SiftPlace {
    /// Payload of the last WRITER record, kept or not.
    writer: Option<[u8; 8]>,
    /// Time of the last record, kept or not.
    time: u64,
}

/// A filtered chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sifted {
    /// The rest of the chunk.
    pub chunk: Chunk,
    /// Where it began, for [`RingStream::continue_at`].
    ///
    /// [`RingStream::continue_at`]: crate::stream::RingStream::continue_at
    pub begins: (u64, Option<[u8; 8]>),
}

/// Filters the chunks of a ring.
#[derive(Debug, Default)]
pub struct Sieve {
    /// By event id; events beyond its end are kept.
    events: Vec<Verdict>,
    /// Used instead, if policies select threads.
    threads: Option<Threads>,
    left_out: u64,
    ranges: Vec<Range<usize>>,
}

impl Sieve {
    /// A sieve with rules for threads.
    pub fn of_threads(rules: Vec<ThreadRule>) -> Sieve {
        Sieve { threads: Some(Threads::new(rules)), ..Sieve::default() }
    }

    /// Events of this id are kept only if their fields match.
    pub fn add_filter(&mut self, id: u32, steps: Vec<FilterStep>) {
        let at = id as usize;
        if at < abi::EVENT_COUNT as usize {
            if self.events.len() <= at {
                self.events.resize(at + 1, Verdict::Keep);
            }
            self.events[at] = Verdict::If(steps.into());
        }
    }

    /// Applies the rules for threads to the events of schemas. Returns failures,
    /// one sentence each. Context: all schemas so far, in the order of earlier calls.
    pub fn bind(&mut self, registered: &[RegisteredSchema]) -> Vec<String> {
        self.threads.as_mut().map_or(Vec::new(), |threads| threads.bind(registered))
    }

    /// The rules for threads, if there are any.
    pub fn threads(&mut self) -> Option<&mut Threads> {
        self.threads.as_mut()
    }

    /// Whether no record can be dropped.
    pub fn is_idle(&self) -> bool {
        self.events.is_empty() && self.threads.is_none()
    }

    /// Number of dropped events.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Of these, the events of threads whose events were not all selected.
    pub fn left_out_of_threads(&self) -> u64 {
        if self.threads.is_some() { self.left_out } else { 0 }
    }

    /// Reads the names of threads from records that will be filtered later. The last record ends
    /// `slack` bytes before their end, and the first is not before `begin`. Returns the time of the last.
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

    /// Drops unwanted records of a chunk, whose records are the first `chunk.bytes` of
    /// `records`. `name_of` looks up the name of a thread that has recorded none.
    ///
    /// Cost: a step for each record, and a move of the kept ones.
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
                // A WRITER record precedes the first kept record of its thread.
                pending.take().into_iter().for_each(|writer| join(&mut self.ranges, writer));
                slack = (own.end - record.end) as u64;
                join(&mut self.ranges, own);
            } else {
                self.left_out += 1;
            }
        }
        // The undecodable rest is kept: the sealing reports it.
        if walked < bytes.saturating_sub(chunk.slack as usize) {
            pending.take().into_iter().for_each(|writer| join(&mut self.ranges, writer));
            join(&mut self.ranges, walked..bytes);
            slack = chunk.slack;
        }
        // The slack of the last record is kept: the sealing checks it.
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
        // Records that identify threads are always kept.
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

/// Appends a range; one that touches the last is merged with it.
fn join(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

#[cfg(test)]
#[path = "sieve/tests.rs"]
mod tests;
