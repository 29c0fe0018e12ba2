// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Work that a recorder does on behalf of the traced programs, so that they need not make system calls: a
//! sandboxed program would be killed for them.

use std::time::{Duration, Instant};

use lateralis_ring::abi::ring;
use lateralis_ring::{Load, RingKind};

use super::super::processes;
use super::LiveArea;

/// Time between two checks of the owners of rings.
const OWNERS_PERIOD: Duration = Duration::from_millis(20);

impl LiveArea {
    /// Releases rings of killed threads for others, once half of the rings have an owner:
    /// before that, no thread needs them.
    pub(super) fn free_rings_of_the_dead(&mut self) {
        let now = Instant::now();
        if self.geometry.kind() != RingKind::PerThread || now < self.owners_due {
            return;
        }
        // A thread id of another PID namespace does not identify a thread here.
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
