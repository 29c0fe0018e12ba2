// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of one class that follow each other.
//!
//! In a run, fixed-size events start at a constant stride. The position of the next event is
//! therefore known before its id: it is read there, and its id is only compared. Recordings
//! dominated by one class are walked twice as fast.

use super::Batch;
use super::walk::IN_ORDER;
use super::ways::{Stride, Ways};
use crate::plan::{Usual, fetch_ahead};

/// Events whose bytes are asked for at once, and how many bytes at most: of large events the
/// processor sees itself what is read.
const FETCHED_EVENTS: usize = 16;
const FETCHED_BYTES: usize = 2048;

/// How much further ahead than of others they are asked for: these events are walked in a nanosecond
/// each, less than memory takes for their bytes. Three pages ahead altogether, which a first-level
/// cache of 32 KiB holds: measured on a recording of 200 MB, more makes no difference any more.
const FURTHER_BYTES: usize = 10 << 10;

/// What memory gives at once.
const LINE_BYTES: usize = 64;

/// What is alike: id and length.
pub(super) struct Alike<'u> {
    pub usual: &'u Usual,
    pub id: u64,
    pub stride: Stride,
    /// The last reading of the clock that an event of the packet can have.
    pub last: u64,
}

impl Batch<'_> {
    /// Whether of the events at hand most are of one class, so that it is worth while to expect
    /// that of the next.
    pub(super) fn is_mostly_alike(&self) -> bool {
        let counts = self.seen.iter().map(|&class| self.buckets.classes[class as usize].count());
        let (all, most) = counts.fold((0, 0), |(all, most), n| (all + n, most.max(n)));
        // A run that ends costs about as much as ten events.
        all >= 64 && most / 15 >= all - most
    }

    /// Walks events like the one before, as far as they follow each other without padding: headers
    /// begin before byte `stop` of `bytes` and [`Usual::inside`], events end there at the latest.
    /// Returns where it ended, and the clock there.
    pub(super) fn walk_alike<const HOW: u8>(
        &mut self,
        bytes: &[u8],
        alike: Alike<'_>,
        stop: usize,
        ways: &Ways<'_>,
        (mut at, mut clock): (usize, u64),
    ) -> (usize, u64) {
        let Alike { usual, id, stride, last } = alike;
        let Some(step) = usual.step(id, stride.bytes) else { return (at, clock) };
        let first = at + step - stride.bytes as usize;
        // None for steps of nothing: no header of this kind takes no bytes.
        let room = stop.min(usual.inside(bytes)).saturating_sub(at);
        let most = room.checked_div(step).unwrap_or(0);
        let most = most.min(ways.limit.saturating_sub(self.ordered));
        let ordered = self.ordered;
        let Some(bucket) = self.buckets.classes.get_mut(stride.class as usize) else {
            return (at, clock);
        };
        let (ticks, starts) = match HOW {
            IN_ORDER => (
                &mut self.order_ticks[ordered..ordered + most],
                &mut self.order_starts[ordered..ordered + most],
            ),
            _ => bucket.spare(most),
        };
        let usual = *usual;
        let (from, mut count) = ((at, clock), 0);
        'same: for ticks in ticks.chunks_mut(FETCHED_EVENTS) {
            let fetched = 0..(ticks.len() * step).min(FETCHED_BYTES);
            let ahead = at + FURTHER_BYTES;
            fetched.step_by(LINE_BYTES).for_each(|line| fetch_ahead(bytes, ahead + line));
            for tick in ticks {
                // SAFETY: that number of steps fits before `inside`, each one of nonzero length.
                let now = unsafe { usual.clock_of_same(bytes, at, id, clock) };
                let Some(now) = now.filter(|&now| now >= clock) else { break 'same };
                *tick = now;
                (at, clock, count) = (at + step, now, count + 1);
            }
        }
        // Later than the packet ends: seldom, and so not asked of each.
        if clock > last {
            count = ticks[..count].partition_point(|&tick| tick <= last);
            at = from.0 + count * step;
            clock = count.checked_sub(1).map_or(from.1, |index| ticks[index]);
        }
        for (index, start) in starts[..count].iter_mut().enumerate() {
            *start = first as u32 + index as u32 * step as u32;
        }
        match HOW {
            IN_ORDER => bucket.count_many_next(count, clock),
            _ => bucket.add(count),
        }
        self.order[ordered..ordered + count].fill(stride.class);
        self.ordered = ordered + count;
        (at, clock)
    }
}
