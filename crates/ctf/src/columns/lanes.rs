// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Walks events that come in a rhythm: those of few classes, each with a lane of its own.
//!
//! A lane has all that its events need in one place, and which one it is, is decided by branches:
//! so where an event ends is known before its header has come from memory, if the branches are
//! guessed right.

use std::mem::swap;

use super::Batch;
use super::buckets::{Bucket, Buckets};
use super::rhythm::BRANCHES;
use super::walk::KEEP;
use super::ways::{NO_CLASS, NO_RUN, Ways};
use crate::cursor::Cursor;
use crate::plan::{Straight, Usual, fetch_ahead};

/// What events of one class need.
struct Lane<'r> {
    /// Ids that headers contain in their short form.
    id: u64,
    class: u32,
    /// Start of a run: this number of bytes after the event, then aligned down by these bits.
    reach: usize,
    mask: usize,
    /// Its length; no packet is longer than that of others.
    bytes: usize,
    /// How others are walked, and how many marks each leaves.
    straight: Option<&'r Straight>,
    marks: usize,
    /// The bucket of the class while its events are walked.
    bucket: Bucket,
}

impl<'r> Lane<'r> {
    /// No event has this id: it has more bits than any.
    const NONE: u64 = u64::MAX;

    /// The lane of a class, which none of its events takes if they need a closer look.
    fn of(class: u32, ways: &Ways<'r>, usual: &Usual) -> Self {
        let id = ways.strides.iter().position(|stride| stride.class == class);
        let id = id.map(|id| id as u64).filter(|&id| usual.is_short(id));
        let way = ways.classes.get(class as usize);
        let way = way.filter(|way| way.run.is_some() || way.steps > 0);
        let mask = way.map_or(0, |way| way.mask as usize);
        Self {
            id: id.filter(|_| way.is_some()).unwrap_or(Self::NONE),
            class,
            reach: usual.short_bytes() + mask,
            mask: !mask,
            bytes: way.and_then(|way| way.run).unwrap_or(NO_RUN) as usize,
            straight: way.filter(|way| way.steps > 0).and_then(|way| way.straight),
            marks: way.map_or(0, |way| way.steps as usize),
            bucket: Bucket::default(),
        }
    }

    /// Takes the bucket, or gives it back.
    fn exchange(&mut self, buckets: &mut Buckets) {
        if self.id != Self::NONE {
            swap(&mut self.bucket, &mut buckets.classes[self.class as usize]);
        }
    }
}

/// Whether events of all these classes have lanes.
pub(super) fn have_lanes(classes: [u32; BRANCHES], ways: &Ways<'_>, usual: &Usual) -> bool {
    let mut known = classes.iter().filter(|&&class| class != NO_CLASS);
    known.all(|&class| Lane::of(class, ways, usual).id != Lane::NONE)
}

/// The same lane, said in a way that no compiler makes a choice of instead of a branch: then all
/// would wait for the id.
#[inline(always)]
fn by_branch<T>(lane: &mut T) -> &mut T {
    let mut same: *mut T = lane;
    // For where the following is left out.
    let _ = &mut same;
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: there are no instructions, so nothing is changed.
    unsafe {
        std::arch::asm!("/* {} */", inout(reg) same, options(readonly, nostack, preserves_flags));
    }
    // SAFETY: it is what was lent, for as long.
    unsafe { &mut *same }
}

impl<'r> Batch<'r> {
    /// Walks events with usual headers that begin before byte `stop` and are mostly of these
    /// classes; they are kept class by class. Returns where it ended, and the clock there.
    #[inline(never)]
    pub(super) fn walk_rhythm(
        &mut self,
        cursor: &mut Cursor<'r>,
        ways: &Ways<'r>,
        usual: &Usual,
        classes: [u32; BRANCHES],
        stop: usize,
        (mut at, mut clock): (usize, u64),
    ) -> (usize, u64) {
        let (bytes, end, last) = (cursor.bytes, cursor.end_bytes, cursor.last_ticks);
        let mut lanes = classes.map(|class| Lane::of(class, ways, usual));
        lanes.iter_mut().for_each(|lane| lane.exchange(&mut self.buckets));
        loop {
            // Apart from the batch, so that they stay in registers.
            let limit = ways.limit.min(self.order.len());
            let (order, mut ordered) = (&mut self.order[..limit], self.ordered);
            let mut head = usual.aligned(at);
            let needs_look = loop {
                if head >= stop || ordered >= limit {
                    break false;
                }
                fetch_ahead(bytes, head);
                // SAFETY: `stop` is at most what `inside` said.
                let (id, now) = unsafe { usual.read_short(bytes, head, clock) };
                let lane = match id {
                    id if id == lanes[0].id => by_branch(&mut lanes[0]),
                    id if id == lanes[1].id => by_branch(&mut lanes[1]),
                    id if id == lanes[2].id => by_branch(&mut lanes[2]),
                    id if id == lanes[3].id => by_branch(&mut lanes[3]),
                    _ => break true,
                };
                if !lane.bucket.is_open() || now < clock || now > last {
                    break true;
                }
                let mut start = (head + lane.reach) & lane.mask;
                let mut after = start + lane.bytes;
                if after > end {
                    let Some(straight) = lane.straight else { break true };
                    let marks = lane.bucket.next_marks(lane.marks);
                    let registers = &mut cursor.machine.registers;
                    let behind = head + usual.short_bytes();
                    let walked = straight.walk(bytes, behind, end, registers, marks);
                    let Some(walked) = walked else { break false };
                    (start, after) = (0, walked);
                }
                // SAFETY: it is open.
                unsafe { lane.bucket.push_open(now, start as u32) };
                order[ordered] = lane.class;
                ordered += 1;
                (at, clock) = (after, now);
                head = usual.aligned(after);
            };
            self.ordered = ordered;
            let looked = match needs_look {
                true => self.look(cursor, ways, usual, &mut lanes, (at, clock)),
                false => None,
            };
            let Some(next) = looked else { break };
            (at, clock) = next;
        }
        lanes.iter_mut().for_each(|lane| lane.exchange(&mut self.buckets));
        (at, clock)
    }

    /// Walks an event that needs a closer look, or is of no lane. Returns where it ends, and
    /// the clock there; `None` if it is none that can be walked.
    #[inline(never)]
    fn look(
        &mut self,
        cursor: &mut Cursor<'r>,
        ways: &Ways<'r>,
        usual: &Usual,
        lanes: &mut [Lane<'r>; BRANCHES],
        (at, clock): (usize, u64),
    ) -> Option<(usize, u64)> {
        let (id, now, behind) = usual.read(cursor.bytes, at, clock)?;
        let way = ways.by_id(cursor.plan, id)?;
        let mut lane = lanes.iter_mut().find(|lane| lane.class == way.class);
        lane.iter_mut().for_each(|lane| lane.exchange(&mut self.buckets));
        let after = self.walk_event::<KEEP>(cursor, ways, way, (at, clock), behind, now);
        lane.iter_mut().for_each(|lane| lane.exchange(&mut self.buckets));
        Some((after?, now))
    }
}
