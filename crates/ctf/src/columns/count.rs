// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts the events of a packet, or of a step of time, where nothing else is wanted of them.
//!
//! As [`walk`](super::walk), and nothing is kept: what is left for an event is to find the next
//! one, its clock, and to add one to a number.

use lateralis_units::Ticks;

use super::Batch;
use super::walk::COUNT;
use super::ways::Ways;
use crate::cursor::Cursor;
use crate::plan::{Usual, fetch_ahead};

/// Events with one id, while they are counted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    count: u64,
    /// Readings of the clock at the first and the last of them.
    first: u64,
    last: u64,
}

/// Where a walk is: the byte where the next event begins, and the clock before it.
type At = (usize, u64);

impl<'r> Batch<'r> {
    /// Counts events up to the end of the packet or, if [`Ways::counts`] requests it, of those that
    /// need not be distinguished from the first.
    pub(super) fn count(&mut self, cursor: &mut Cursor<'r>, ways: &Ways<'r>) {
        self.last_tick = u64::MAX;
        while !self.count_straight(cursor, ways) && cursor.position < cursor.end {
            // Before it is read it is unknown whether it must be distinguished.
            if self.counted_at.is_some() {
                return;
            }
            // Not as the steps expect: by bits, which also finds the error.
            match cursor.decode() {
                Ok(()) => {
                    self.row(cursor, ways);
                    let ticks = cursor.event().ticks;
                    ticks.into_iter().for_each(|ticks| self.begin_step(ways, ticks.0));
                }
                Err(reason) => cursor.give_up(reason),
            }
        }
    }

    /// The first event happened now.
    fn begin_step(&mut self, ways: &Ways<'r>, now: u64) {
        if let (Some(by), Some(clock), None) = (ways.counts, self.clock, self.counted_at) {
            let time = clock.nanos(Ticks(now));
            self.counted_at = Some(time);
            // At the end of the time line many readings are one time.
            self.last_tick = clock.ticks(by.last(time)).0.max(now);
        }
    }

    /// Counts events whose header is constant and whose body is straight, up to the first that is
    /// not. Returns whether a following event must be distinguished.
    fn count_straight(&mut self, cursor: &mut Cursor<'r>, ways: &Ways<'r>) -> bool {
        let plan = cursor.plan;
        let Some(header) = &plan.header else { return false };
        let content = cursor.end.div_ceil(8) as usize;
        let begin = cursor.position.div_ceil(8) as usize;
        let (mut at, mut clock) = (begin, cursor.machine.clock);
        let mut is_over = false;
        while at < content {
            let usual = header.usual.as_ref();
            // The first one says where the step ends.
            if let Some(usual) =
                usual.filter(|_| ways.counts.is_none() || self.counted_at.is_some())
            {
                let stop = content.min(usual.inside(cursor.bytes));
                let total = ways.counts.is_some_and(|by| !by.class);
                (at, clock) = match (ways.packed, total) {
                    (true, true) => self.total(cursor, ways, usual, stop, (at, clock)),
                    (true, false) => self.tally::<true>(cursor, ways, usual, stop, (at, clock)),
                    (false, _) => self.tally::<false>(cursor, ways, usual, stop, (at, clock)),
                };
                if at >= content {
                    break;
                }
            }
            // With a closer look: near the end of the packet, or of another layout.
            let read = match usual.and_then(|usual| usual.read(cursor.bytes, at, clock)) {
                Some(read) => Some(read),
                None => header.read_unusual(cursor.bytes, at, cursor.end_bytes, clock),
            };
            let Some((id, now, behind)) = read else { break };
            is_over = now > self.last_tick && now >= clock;
            let Some(way) = ways.by_id(plan, id).filter(|_| !is_over) else { break };
            match self.walk_event::<COUNT>(cursor, ways, way, (at, clock), behind, now) {
                Some(after) => (at, clock) = (after, now),
                None => break,
            }
            self.begin_step(ways, now);
        }
        if at > begin {
            cursor.position = at as u64 * 8;
            cursor.machine.clock = clock;
        }
        is_over
    }

    /// Counts events with usual headers that begin before byte `stop`, each with its class.
    /// `PACKED` only where [`Ways::packed`].
    #[inline(never)]
    fn tally<const PACKED: bool>(
        &mut self,
        cursor: &mut Cursor<'r>,
        ways: &Ways<'r>,
        usual: &Usual,
        stop: usize,
        from: At,
    ) -> At {
        let strides = ways.strides.as_slice();
        let masks = &ways.masks[..strides.len()];
        self.tallies.resize(strides.len().max(self.tallies.len()), Tally::default());
        let tallies = &mut self.tallies[..strides.len()];
        let Some((bytes, end, mut at)) = usual_bounds::<PACKED>(cursor, usual, stop, from.0) else {
            return from;
        };
        let (mut clock, last_tick) = (from.1, self.last_tick.min(cursor.last_ticks));
        while at < stop {
            fetch_ahead(bytes, at);
            // SAFETY: `stop` is at most what `inside` said.
            let read = unsafe { usual.read_inside::<PACKED>(bytes, at, clock) };
            let Some((id, now, behind)) = read else { break };
            let id = id as usize;
            let Some(stride) = strides.get(id) else { break };
            let mask = if PACKED { 0 } else { masks[id] as usize };
            let mut after = ((behind + mask) & !mask) + stride.bytes as usize;
            if now < clock || now > last_tick {
                break;
            }
            if after > end {
                let way = ways.classes.get(stride.class as usize).filter(|way| way.skips);
                let straight = way.and_then(|way| way.straight);
                let registers = &mut cursor.machine.registers;
                let skipped = straight.and_then(|s| s.skip(bytes, behind, end, registers));
                // Events of no bytes would be as many as one likes.
                let Some(skipped) = skipped.filter(|&skipped| skipped > at) else { break };
                after = skipped;
            }
            let tally = &mut tallies[id];
            if tally.count == 0 {
                tally.first = now;
                self.tallied.push(id as u32);
            }
            tally.count += 1;
            tally.last = now;
            clock = now;
            at = if PACKED { usual.aligned(after) } else { after };
            if at >= stop {
                at = after;
                break;
            }
        }
        for id in self.tallied.drain(..) {
            let tally = std::mem::take(&mut tallies[id as usize]);
            // An id without a class has no stride that ends anywhere.
            let class = strides[id as usize].class;
            let bucket = &mut self.buckets.classes[class as usize];
            if bucket.count() == 0 {
                self.seen.push(class);
            }
            bucket.count_many(tally.count, [tally.first, tally.last]);
        }
        (at, clock)
    }

    /// Variant for classes that need not be distinguished, and [`Ways::packed`]: all are counted as
    /// of the class of the first.
    #[inline(never)]
    fn total(
        &mut self,
        cursor: &Cursor<'r>,
        ways: &Ways<'r>,
        usual: &Usual,
        stop: usize,
        from: At,
    ) -> At {
        let strides = ways.strides.as_slice();
        let Some((bytes, end, mut at)) = usual_bounds::<true>(cursor, usual, stop, from.0) else {
            return from;
        };
        let (mut clock, last_tick) = (from.1, self.last_tick.min(cursor.last_ticks));
        let mut count = 0;
        while at < stop {
            fetch_ahead(bytes, at);
            // SAFETY: `stop` is at most what `inside` said.
            let read = unsafe { usual.read_inside::<true>(bytes, at, clock) };
            let Some((id, now, behind)) = read else { break };
            let Some(stride) = strides.get(id as usize) else { break };
            let after = behind + stride.bytes as usize;
            if now < clock || now > last_tick || after > end {
                break;
            }
            count += 1;
            (at, clock) = (after, now);
        }
        // The first one of a step was looked at closely.
        if let (1.., Some(&class)) = (count, self.seen.first()) {
            self.buckets.classes[class as usize].count_many(count, [from.1, clock]);
        }
        (at, clock)
    }
}

/// The bytes, where events with usual headers have to end, and where the first begins.
pub(super) fn usual_bounds<'r, const PACKED: bool>(
    cursor: &Cursor<'r>,
    usual: &Usual,
    stop: usize,
    at: usize,
) -> Option<(&'r [u8], usize, usize)> {
    // After the last event of a packet there is no header: the detailed path reports the rest.
    let aligned = |at: usize| if PACKED { usual.aligned(at) } else { at };
    let end = match aligned(1) {
        1 => cursor.end_bytes,
        _ => cursor.end_bytes.min(stop.saturating_sub(1)),
    };
    let first = aligned(at);
    (first < stop).then_some((cursor.bytes, end, first))
}
