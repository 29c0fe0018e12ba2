// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for rings, as they are used [ring-abi §4.4]: a program that lives for a moment begins with
//! little, and no traced program asks the kernel for more.

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
/// A ring gets this much as soon as something is in it.
const USED_BYTES: u64 = 256 << 10;
/// What a ring of the first programs of a command gets at once, and all rings of one of them together: to
/// look at what a program is made of takes a millisecond, or several where others need the CPU, and in one
/// a program that does nothing else writes 128 KiB. Of many programs that live for a moment each has less.
const FIRST_PROGRAM_RING_BYTES: u64 = 1 << 20;
const FIRST_PROGRAM_BYTES: u64 = 4 << 20;
/// Allocated where there is no room for more.
const LEAST_STEP_BYTES: u64 = 64 << 10;
const PAGE_BYTES: u64 = 4096;
/// A program writes its first events in this time after it was found, if it is one that writes many.
const YOUNG: Duration = Duration::from_millis(50);
/// Time between two tries where there was no room.
const RETRY_PERIOD: Duration = Duration::from_millis(100);

/// A ring that has less memory than it is long.
#[derive(Debug)]
struct Growing {
    ring: u32,
    backed_bytes: u64,
}

/// The rings of an area that have not all their memory yet.
#[derive(Debug)]
pub(super) struct Growth {
    rings: Vec<Growing>,
    /// Each gets this much.
    least_bytes: u64,
    /// What may still be allocated: the geometry is the program's claim.
    budget_bytes: u64,
    found_at: Instant,
    retry_at: Option<Instant>,
}

impl Growth {
    /// For an area that nobody gives memory to.
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

    /// Gives memory to the rings that may soon need it, or to `all`. Error: there is no room for some of
    /// it, which is tried again after a while.
    fn give(
        &mut self,
        file: &File,
        view: &AreaView<'_>,
        geometry: &Geometry,
        all: bool,
    ) -> Result<(), Errno> {
        // Programs that live for a moment have ended by now.
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

    /// Bytes of a ring that has `ring_bytes` when it is whole.
    pub(super) fn backed_bytes(&self, ring: usize, ring_bytes: u64) -> u64 {
        let growing = self.rings.iter().find(|growing| growing.ring as usize == ring);
        growing.map_or(ring_bytes, |growing| growing.backed_bytes)
    }

    /// Whether a program may be about to use what it has faster than rings are looked at.
    pub(super) fn is_young(&self) -> bool {
        !self.rings.is_empty() && self.found_at.elapsed() < YOUNG
    }
}

impl Growing {
    /// Bytes that the ring should have, and `least` in any case; what it has, if that will do.
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

/// Allocates memory of a ring behind what it has, as much as there is room for; how much.
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
    /// Begins to give its rings memory: to those of a flight recorder, which nobody looks at on the
    /// way, at once.
    pub(super) fn begin_growth(&mut self, recording: &mut Recording, wanted: &Wanted) {
        self.growth = Growth::of(&self.view(), &self.geometry, wanted.wish.cap_bytes);
        if wanted.wish.mode == RingMode::Overwrite {
            self.give_memory(recording, true);
        }
    }

    /// Gives memory to the rings that may soon need it, or to `all`.
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

/// Gives the rings of an area that was just found what they need at once: one that writes much has filled
/// what it began with after a millisecond, and all else that is done for an area takes longer. `is_first`:
/// it is one of the first programs of a command. What fails here is tried again by
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
