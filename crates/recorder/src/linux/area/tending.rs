// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a recorder does for the programs it records, so that they need not ask the kernel: a
//! program that has locked itself in would die of the question.

use std::time::{Duration, Instant};

use lateralis_ring::abi::ring;
use lateralis_ring::{Load, RingKind};

use super::super::processes;
use super::LiveArea;

/// Time between two looks at who owns rings.
const OWNERS_PERIOD: Duration = Duration::from_millis(20);

impl LiveArea {
    /// Gives rings of threads that were killed free for others, once half of the rings have an owner:
    /// a ring that is free for nobody else needs no look.
    pub(super) fn free_rings_of_the_dead(&mut self) {
        let now = Instant::now();
        if self.geometry.kind() != RingKind::PerThread || now < self.owners_due {
            return;
        }
        // A number of another PID namespace says nothing here about who lives.
        if self.processes.has_foreign_numbers() {
            return;
        }
        self.owners_due = now + OWNERS_PERIOD;
        let view = self.view();
        let places = (0..self.geometry.ring_count())
            .map(|ring| self.geometry.control_offset(ring) + ring::OWNER);
        let owned: Vec<(u64, u64)> = places
            .filter_map(|place| Some((place, view.load_u64(place, Load::Acquire).ok()?)))
            .filter(|(_, owner)| *owner != 0)
            .collect();
        if owned.len() * 2 < self.geometry.ring_count() as usize {
            return;
        }
        for (place, owner) in owned {
            if !u32::try_from(owner).is_ok_and(processes::exists) {
                // Pair: claim_ring of the tracer acquires what this releases.
                let _ = view.exchange_u64(place, owner, 0);
            }
        }
    }
}
