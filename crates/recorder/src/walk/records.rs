// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The records of a sealed packet, one by one: for whoever looks at single events or cuts packets.

use lateralis_ring::abi;

use super::{RecordPlan, extend_time};

/// Where a record is, and what its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Event id.
    pub id: u16,
    /// Full time.
    pub time: u64,
    /// Offset of its header.
    pub at: usize,
    /// Offset behind its last field.
    pub end: usize,
}

impl Record {
    /// Offset of the record behind it.
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
    /// The records in `bytes`, of which the last ends `slack` bytes before the end; times are
    /// extended from `begin`. Ends at the first that is not whole and known: in a packet that
    /// was sealed with this plan there is none.
    ///
    /// Cost: as [`RecordPlan::walk`].
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
        // As in a walk: a step back is no believable time.
        if time - self.time > 1 << (abi::TIME_BITS - 1) {
            return None;
        }
        let record = Record { id, time, at: self.at, end };
        self.at = record.next();
        self.time = time;
        Some(record)
    }
}
