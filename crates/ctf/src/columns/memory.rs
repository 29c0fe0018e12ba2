// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory of batches, kept by their reader for the next ones.
//!
//! A trace of some megabytes is decoded in two milliseconds, and a third of that would go into
//! memory that has never been touched: on each thread, each time it is read.

use std::mem::take;
use std::sync::{Mutex, PoisonError};

use super::buckets::Buckets;
use super::gather::Gathered;
use super::{BATCH_EVENTS, Batch};

/// Memory kept for each of at most this number of batches: columns of a full batch of usual events
/// are less than half of this.
const KEPT_BYTES: usize = 2 << 20;
const KEPT: usize = 16;

/// What a reader keeps.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Vec<Memory>>);

/// The larger vectors of a batch.
#[derive(Default)]
pub(super) struct Memory {
    pub order: Vec<u32>,
    pub order_ticks: Vec<u64>,
    pub order_starts: Vec<u32>,
    pub buckets: Buckets,
    pub gathered: Gathered,
}

impl Memory {
    fn bytes(&self) -> usize {
        let order = self.order.capacity() + self.order_starts.capacity();
        let own = order * size_of::<u32>() + self.order_ticks.capacity() * size_of::<u64>();
        own + self.buckets.bytes() + self.gathered.bytes()
    }
}

impl Spare {
    pub(super) fn take(&self) -> Memory {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut memory = kept.unwrap_or_default();
        memory.order.resize(BATCH_EVENTS, 0);
        memory
    }

    fn keep(&self, memory: Memory) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT && memory.bytes() <= KEPT_BYTES {
            kept.push(memory);
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let classes = self.buckets.classes.len();
        self.buckets.begin(&self.seen, classes);
        self.gathered.clear();
        self.reader.spare().keep(Memory {
            order: take(&mut self.order),
            order_ticks: take(&mut self.order_ticks),
            order_starts: take(&mut self.order_starts),
            buckets: take(&mut self.buckets),
            gathered: take(&mut self.gathered),
        });
    }
}
