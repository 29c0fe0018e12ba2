// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for rings, added as they are used [ring-abi §4.4]: a short-lived program starts with
//! little, and no traced program requests more from the kernel.

use std::fs::File;
use std::time::{Duration, Instant};

use lateralis_ring::abi::{self, header, ring};
use lateralis_ring::{AreaHeader, AreaView, Geometry, Load, RingKind, RingMode};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::super::policies::Wanted;
use super::super::recording::Recording;
use super::LiveArea;

/// A ring of a thread gets this much as soon as a thread has claimed it.
const CLAIMED_BYTES: u64 = 128 << 10;
/// A ring gets this much as soon as it is used.
const USED_BYTES: u64 = 256 << 10;
/// Initial memory of each ring of the first programs of a command, and of all rings of one program together.
/// Examining a program takes a millisecond, or several if the CPU is busy; in one millisecond a program that
/// only records writes 128 KiB. With many short-lived programs each gets less.
const FIRST_PROGRAM_RING_BYTES: u64 = 1 << 20;
const FIRST_PROGRAM_BYTES: u64 = 4 << 20;
/// Smallest step, used if there is no room for more.
const LEAST_STEP_BYTES: u64 = 64 << 10;
const PAGE_BYTES: u64 = 4096;
/// Time after which a found program that writes many events has written its first ones.
const YOUNG: Duration = Duration::from_millis(50);
/// Time between two tries if there was no room.
const RETRY_PERIOD: Duration = Duration::from_millis(100);

/// A ring with less memory than its size.
#[derive(Debug)]
struct Growing {
    ring: u32,
    backed_bytes: u64,
}

/// The rings of an area that do not have all their memory yet.
#[derive(Debug)]
pub(super) struct Growth {
    rings: Vec<Growing>,
    /// Minimum memory of each ring.
    least_bytes: u64,
    /// Bytes that may still be allocated: a limit, because the program chose the geometry.
    budget_bytes: u64,
    found_at: Instant,
    retry_at: Option<Instant>,
}

impl Growth {
    /// For an area whose rings do not grow.
    pub(super) fn none() -> Growth {
        let found_at = Instant::now();
        Growth { rings: Vec::new(), least_bytes: 0, budget_bytes: 0, found_at, retry_at: None }
    }

    fn of(view: &AreaView<'_>, geometry: &Geometry, budget_bytes: u64) -> Growth {
        let growing = |ring: u32| {
            let place = geometry.control_offset(ring) + ring::BACKED_BYTES;
            let backed_bytes = view.load_u64(place, Load::Relaxed).ok()? & !(PAGE_BYTES - 1);
            let is_whole = backed_bytes == 0 || backed_bytes >= geometry.ring_bytes();
            (!is_whole).then_some(Growing { ring, backed_bytes })
        };
        let rings = (0..geometry.ring_count()).filter_map(growing).collect();
        Growth { rings, budget_bytes, ..Growth::none() }
    }

    /// Adds memory to the rings that may soon need it, or to `all`. Error: there is no room for some of
    /// it, which is tried again later.
    fn give(
        &mut self,
        file: &File,
        view: &AreaView<'_>,
        geometry: &Geometry,
        all: bool,
    ) -> Result<(), Errno> {
        // Short-lived programs have ended by now.
        let has_ended = view.load_u32(header::STATE, Load::Relaxed) == Ok(abi::AREA_EXITED);
        let is_early = self.retry_at.is_some_and(|at| Instant::now() < at);
        if is_early || has_ended && !all {
            return Ok(());
        }
        let mut refused = None;
        for growing in &mut self.rings {
            let wanted = match all {
                true => geometry.ring_bytes(),
                false => growing.wanted(view, geometry, self.least_bytes),
            };
            let more = (wanted - growing.backed_bytes).min(self.budget_bytes);
            if more == 0 {
                continue;
            }
            let control = geometry.control_offset(growing.ring);
            let offset = control + abi::RING_CONTROL_BYTES + growing.backed_bytes;
            match allocate(file, offset, more) {
                Ok(bytes) => {
                    growing.backed_bytes += bytes;
                    self.budget_bytes -= bytes;
                    let is_whole = growing.backed_bytes >= geometry.ring_bytes();
                    let shown = if is_whole { 0 } else { growing.backed_bytes };
                    // Pair G1: the writer's acquiring load.
                    let _ = view.store_u64(control + ring::BACKED_BYTES, shown);
                }
                Err(error) => refused = Some(error),
            }
        }
        self.rings.retain(|growing| growing.backed_bytes < geometry.ring_bytes());
        self.retry_at = refused.map(|_| Instant::now() + RETRY_PERIOD);
        refused.map_or(Ok(()), Err)
    }

    /// Bytes of a ring that have memory; `ring_bytes` if it is complete.
    pub(super) fn backed_bytes(&self, ring: usize, ring_bytes: u64) -> u64 {
        let growing = self.rings.iter().find(|growing| growing.ring as usize == ring);
        growing.map_or(ring_bytes, |growing| growing.backed_bytes)
    }

    /// Whether a program may soon use its memory faster than rings are polled.
    pub(super) fn is_young(&self) -> bool {
        !self.rings.is_empty() && self.found_at.elapsed() < YOUNG
    }
}

impl Growing {
    /// Bytes that the ring should have, at least `least`; its current size if that is sufficient.
    fn wanted(&self, view: &AreaView<'_>, geometry: &Geometry, least: u64) -> u64 {
        let control = geometry.control_offset(self.ring);
        let load = |offset| view.load_u64(control + offset, Load::Relaxed).unwrap_or(0);
        let used = load(ring::CURSOR) & !abi::CURSOR_SLACK_MASK;
        let is_claimed = geometry.kind() == RingKind::PerThread && load(ring::OWNER) != 0;
        let wanted = if used > self.backed_bytes / 2 {
            self.backed_bytes.saturating_mul(16)
        } else if used > 0 {
            self.backed_bytes.max(USED_BYTES)
        } else if is_claimed {
            self.backed_bytes.max(CLAIMED_BYTES)
        } else {
            self.backed_bytes
        };
        wanted.max(least & !(PAGE_BYTES - 1)).min(geometry.ring_bytes())
    }
}

/// Allocates memory of a ring after its current memory, as much as there is room for; returns the bytes.
fn allocate(file: &File, offset: u64, bytes: u64) -> Result<u64, Errno> {
    let mut step = bytes;
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, offset, step) {
            Ok(()) => return Ok(step),
            Err(Errno::INTR) => {}
            Err(_) if step > LEAST_STEP_BYTES => step = (step / 2).next_multiple_of(PAGE_BYTES),
            Err(error) => return Err(error),
        }
    }
}

impl LiveArea {
    /// Starts the growth of its rings. Those of a flight recorder get all memory at once, because they are
    /// not polled.
    pub(super) fn begin_growth(&mut self, recording: &mut Recording, wanted: &Wanted) {
        self.growth = Growth::of(&self.view(), &self.geometry, wanted.wish.cap_bytes);
        if wanted.wish.mode == RingMode::Overwrite {
            self.give_memory(recording, true);
        }
    }

    /// Adds memory to the rings that may soon need it, or to `all`.
    pub(super) fn give_memory(&mut self, recording: &mut Recording, all: bool) {
        let Some(file) = self.file.as_ref().filter(|_| !self.growth.rings.is_empty()) else {
            return;
        };
        let view = self.mapping.view().with_swapped(self.header.swapped);
        let Err(error) = self.growth.give(file.file(), &view, &self.geometry, all) else { return };
        recording.problem(format!(
            "Cannot give the rings of pid={} more memory: cause={error}; events that do not fit \
             are counted as lost: make room in {}, or record with a smaller --buffer",
            self.header.creator_pid,
            self.path.parent().unwrap_or(&self.path).display()
        ));
    }
}

/// Adds initial memory to the rings of an area that was just found: a program that writes many events has
/// filled its initial memory after a millisecond, and all other set-up of an area takes longer. `is_first`:
/// it is one of the first programs of a command. A failure here is retried by
/// [`LiveArea::give_memory`].
pub(in super::super) fn give_first_memory(
    file: &File,
    view: &AreaView<'_>,
    found: &AreaHeader,
    cap: u64,
    is_first: bool,
) {
    if let Ok(geometry) = Geometry::of(found, view.bytes()) {
        let mut growth = Growth::of(view, &geometry, cap);
        if is_first {
            let share = FIRST_PROGRAM_BYTES / growth.rings.len().max(1) as u64;
            growth.least_bytes = share.min(FIRST_PROGRAM_RING_BYTES);
        }
        let _ = growth.give(file, view, &geometry, false);
    }
}
