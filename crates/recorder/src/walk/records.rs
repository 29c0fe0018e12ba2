// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The records of a sealed packet, one by one: for processing single events or cutting packets.

use lateralis_ring::abi;

use super::{RecordPlan, extend_time};

/// Position and header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Event id.
    pub id: u16,
    /// Full time.
    pub time: u64,
    /// Offset of its header.
    pub at: usize,
    /// Offset after its last field.
    pub end: usize,
}

impl Record {
    /// Offset of the next record.
    #[must_use]
    pub fn next(&self) -> usize {
        self.end.next_multiple_of(8)
    }
}

/// See [`RecordPlan::records`].
#[derive(Debug)]
pub struct Records<'a> {
    plan: &'a RecordPlan,
    bytes: &'a [u8],
    at: usize,
    exact_end: usize,
    time: u64,
}

impl RecordPlan {
    /// Iterates over the records in `bytes`, the last of which ends `slack` bytes before the end; times are
    /// extended from `begin`. Stops at the first that is incomplete or unknown: a packet that
    /// was sealed with this plan has none.
    ///
    /// Cost: like [`RecordPlan::walk`].
    pub fn records<'a>(&'a self, bytes: &'a [u8], slack: u64, begin: u64) -> Records<'a> {
        let slack = usize::try_from(slack).unwrap_or(usize::MAX);
        let exact_end = bytes.len().saturating_sub(slack);
        Records { plan: self, bytes, at: 0, exact_end, time: begin }
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.at >= self.exact_end {
            return None;
        }
        let (id, low) = self.plan.header(self.bytes, self.at)?;
        let end = self.plan.end(self.bytes, self.at).filter(|end| *end <= self.exact_end)?;
        let time = extend_time(self.time, low);
        // As in a walk: a time that goes back is invalid.
        if time - self.time > 1 << (abi::TIME_BITS - 1) {
            return None;
        }
        let record = Record { id, time, at: self.at, end };
        self.at = record.next();
        self.time = time;
        Some(record)
    }
}
