// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks that threads are in one place at a time.
//!
//! ```text
//! stream 0    [ run of thread 7    ]
//! stream 1              7?             then the run was delivered too early
//! ```

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_units::Nanos;

/// Threads that are remembered; no more than [`super::Threads`] remembers.
const MAX_THREADS: usize = 1 << 20;

/// Last place of each thread. Cost: a lookup for each run.
#[derive(Debug, Default)]
pub struct Places {
    last: HashMap<u32, Place, RandomState>,
    is_disordered: bool,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    stream: u32,
    until: Nanos,
}

impl Places {
    /// A thread has events in a stream between two times.
    pub fn see(&mut self, tid: u32, stream: u32, from: Nanos, until: Nanos) {
        if self.last.len() >= MAX_THREADS && !self.last.contains_key(&tid) {
            self.is_disordered = true;
            return;
        }
        let place = self.last.entry(tid).or_insert(Place { stream, until });
        if place.stream != stream {
            // The order of streams at equal times is not known here.
            self.is_disordered |= from <= place.until;
            place.stream = stream;
        }
        place.until = place.until.max(until);
    }

    /// Whether a thread was elsewhere in between.
    pub fn is_disordered(&self) -> bool {
        self.is_disordered
    }
}
