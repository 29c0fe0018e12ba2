// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the events of a packet: what class each is of, when it happened, and where
//! its fields are.
//!
//! Where each event begins depends on the one before, so this loop is bound by the
//! time from one place to the next: the header is loaded, from its id the length, and
//! both are added, unless it is guessed ([`lanes`](super::lanes), [`alike`](super::alike)).
//! Whatever else is done for an event happens beside that.

use super::alike::Alike;
use super::count::usual_bounds;
use super::lanes::have_lanes;
use super::rhythm::Expected;
use super::ways::{BATCH_VALUES, Stride, Way, Ways};
use super::{BATCH_EVENTS, Batch, IS_ROW, Row};
use crate::cursor::Cursor;
use crate::plan::{Usual, fetch_ahead};

/// How events are walked: only counted; kept class by class; kept in their order.
pub(super) const COUNT: u8 = 0;
pub(super) const KEEP: u8 = 1;
pub(super) const IN_ORDER: u8 = 2;

/// Why the walk of usual events ends, or what comes next.
enum Next<'u> {
    /// The end, the batch is full, or this is no usual event.
    Stop,
    /// More of the class of the event before.
    Alike(Alike<'u>),
    /// An event that needs the detailed path: its time, and the byte after its header.
    Look { stride: Stride, now: u64, behind: usize },
}

impl<'r> Batch<'r> {
    /// Reads events that are runs, in their order, up to the end of the packet, until the batch
    /// is full, or up to the first that is none: gives whether there is none.
    pub(super) fn walk_in_order(&mut self, cursor: &mut Cursor<'r>, ways: &Ways<'r>) -> bool {
        self.order_ticks.resize(BATCH_EVENTS, 0);
        self.order_starts.resize(BATCH_EVENTS, 0);
        self.walk_straight::<IN_ORDER>(cursor, ways);
        cursor.position >= cursor.end || self.ordered >= ways.limit
    }

    /// Reads events up to the end of the packet or until the batch is full.
    pub(super) fn walk(&mut self, cursor: &mut Cursor<'r>, ways: &Ways<'r>) {
        loop {
            self.walk_straight::<KEEP>(cursor, ways);
            let full = self.ordered >= ways.limit || self.row_slots.len() >= BATCH_VALUES / 4;
            if cursor.position >= cursor.end || full {
                return;
            }
            // Not as the steps expect: by bits, which also finds the error.
            match cursor.decode() {
                Ok(()) => self.row(cursor, ways),
                Err(reason) => cursor.give_up(reason),
            }
        }
    }

    /// Walks events whose header is constant and whose body is straight, up to the
    /// first that is not.
    fn walk_straight<const HOW: u8>(&mut self, cursor: &mut Cursor<'r>, ways: &Ways<'r>) {
        let plan = cursor.plan;
        let Some(header) = &plan.header else { return };
        let content = cursor.end.div_ceil(8) as usize;
        let begin = cursor.position.div_ceil(8) as usize;
        let (mut at, mut clock) = (begin, cursor.machine.clock);
        while at < content && self.ordered < ways.limit {
            if let Some(usual) = &header.usual {
                let stop = content.min(usual.inside(cursor.bytes));
                let from = (at, clock);
                (at, clock) = match (ways.packed, self.rhythm.expected) {
                    (true, Expected::Same) => {
                        self.walk_usual::<HOW, true, true>(cursor, ways, usual, stop, from)
                    }
                    (_, Expected::Rhythm(classes))
                        if HOW == KEEP && have_lanes(classes, ways, usual) =>
                    {
                        self.walk_rhythm(cursor, ways, usual, classes, stop, from)
                    }
                    (true, _) => {
                        self.walk_usual::<HOW, true, false>(cursor, ways, usual, stop, from)
                    }
                    (false, _) => {
                        self.walk_usual::<HOW, false, false>(cursor, ways, usual, stop, from)
                    }
                };
                if at >= content || self.ordered >= ways.limit {
                    break;
                }
            }
            // With a closer look: near the end of the packet, or of another layout.
            let usual = header.usual.as_ref();
            let read = match usual.and_then(|usual| usual.read(cursor.bytes, at, clock)) {
                Some(read) => Some(read),
                None => header.read_unusual(cursor.bytes, at, cursor.end_bytes, clock),
            };
            let Some((id, now, behind)) = read else { break };
            let Some(way) = ways.by_id(plan, id) else { break };
            match self.walk_event::<HOW>(cursor, ways, way, (at, clock), behind, now) {
                Some(after) => (at, clock) = (after, now),
                None => break,
            }
        }
        if at > begin {
            cursor.position = at as u64 * 8;
            cursor.machine.clock = clock;
        }
    }

    /// The same of usual headers that begin before byte `stop`. Returns where it
    /// ended, and the clock there. `PACKED` only where [`Ways::packed`]; `ALIKE` if the
    /// next events are expected to be of one class, and only then.
    #[inline(never)]
    fn walk_usual<const HOW: u8, const PACKED: bool, const ALIKE: bool>(
        &mut self,
        cursor: &mut Cursor<'r>,
        ways: &Ways<'r>,
        usual: &Usual,
        stop: usize,
        (at, mut clock): (usize, u64),
    ) -> (usize, u64) {
        let Some((bytes, end, mut at)) = usual_bounds::<PACKED>(cursor, usual, stop, at) else {
            return (at, clock);
        };
        let strides = ways.strides.as_slice();
        let masks = &ways.masks[..strides.len()];
        let header = |at: usize| if PACKED { usual.aligned(at) } else { at };
        let last = cursor.last_ticks;
        loop {
            // Apart from the batch, so that they stay in registers.
            let limit = ways.limit.min(self.order.len());
            let (classes, order) = (&mut self.buckets.classes[..], &mut self.order[..limit]);
            let mut ordered = self.ordered;
            let next = loop {
                if at >= stop || ordered >= limit {
                    break Next::Stop;
                }
                fetch_ahead(bytes, at);
                // SAFETY: `stop` is at most what `inside` said.
                let read = unsafe { usual.read_inside::<PACKED>(bytes, at, clock) };
                let Some((id, now, behind)) = read else { break Next::Stop };
                let id = id as usize;
                let Some(&stride) = strides.get(id) else { break Next::Stop };
                let mask = if PACKED { 0 } else { masks[id] as usize };
                let start = (behind + mask) & !mask;
                let after = start + stride.bytes as usize;
                let Some(bucket) = classes.get_mut(stride.class as usize) else {
                    break Next::Stop;
                };
                let ready = if HOW == KEEP { bucket.is_open() } else { bucket.others > 0 };
                if !ready || now < clock || now > last {
                    break Next::Look { stride, now, behind };
                }
                if after <= end {
                    if HOW == KEEP {
                        // SAFETY: it is open.
                        unsafe { bucket.push_open(now, start as u32) };
                    } else {
                        bucket.count_next(now);
                        self.order_ticks[ordered] = now;
                        self.order_starts[ordered] = start as u32;
                    }
                    order[ordered] = stride.class;
                    ordered += 1;
                    (at, clock) = (after, now);
                    if ALIKE {
                        break Next::Alike(Alike { usual, id: id as u64, stride, last });
                    }
                    continue;
                }
                let way = ways.classes.get(stride.class as usize);
                let Some(way) = way.filter(|way| HOW == KEEP && way.steps > 0) else {
                    break Next::Look { stride, now, behind };
                };
                let registers = &mut cursor.machine.registers;
                let marks = bucket.next_marks(way.steps as usize);
                let straight = way.straight;
                let after =
                    straight.and_then(|walk| walk.walk(bytes, behind, end, registers, marks));
                let Some(after) = after else { break Next::Stop };
                // SAFETY: it is open.
                unsafe { bucket.push_open(now, 0) };
                order[ordered] = stride.class;
                ordered += 1;
                clock = now;
                at = header(after);
                if at >= stop {
                    at = after;
                    break Next::Stop;
                }
            };
            self.ordered = ordered;
            match next {
                Next::Stop => return (at, clock),
                Next::Alike(class) => {
                    let stop = stop.min(end);
                    (at, clock) = self.walk_alike::<HOW>(bytes, class, stop, ways, (at, clock));
                }
                Next::Look { stride, now, behind } => {
                    let Some(way) = ways.classes.get(stride.class as usize) else {
                        return (at, clock);
                    };
                    match self.walk_event::<HOW>(cursor, ways, way, (at, clock), behind, now) {
                        Some(after) if header(after) < stop => (at, clock) = (header(after), now),
                        Some(after) => return (after, now),
                        None => return (at, clock),
                    }
                }
            }
        }
    }

    /// Walks one event of any way: it begins at `begin` where the clock was `clock`, its body is
    /// after byte `at`. Returns its end; `None` if it cannot be walked.
    #[inline(never)]
    pub(super) fn walk_event<const HOW: u8>(
        &mut self,
        cursor: &mut Cursor<'r>,
        ways: &Ways<'r>,
        way: &Way<'r>,
        (begin, clock): (usize, u64),
        at: usize,
        now: u64,
    ) -> Option<usize> {
        // Time that runs backwards, or out of the packet, is reported where rows are read.
        if now < clock || now > cursor.last_ticks {
            return None;
        }
        let (straight, keep) = (way.straight?, HOW == KEEP && way.keep);
        if HOW == IN_ORDER && (straight.fixed.is_none() || !way.keep) {
            return None;
        }
        let (bytes, end) = (cursor.bytes, cursor.end_bytes);
        let registers = cursor.machine.registers.as_mut_slice();
        let bucket = self.buckets.classes.get_mut(way.class as usize)?;
        let marks = if straight.fixed.is_some() { 0 } else { straight.marks as usize };
        let first = bucket.count() == 0;
        if keep && !bucket.is_open() {
            bucket.open(marks, ways.limit);
        }
        let mut start = 0;
        let after = match straight.fixed {
            Some(fixed) => fixed.walk(at, end).map(|(begin, after)| {
                start = begin;
                after
            }),
            None if keep => straight.walk(bytes, at, end, registers, bucket.next_marks(marks)),
            None => straight.skip(bytes, at, end, registers),
        };
        let Some(after) = after.filter(|&after| after > begin) else {
            if first {
                bucket.close();
            }
            return None;
        };
        if first {
            self.seen.push(way.class);
        }
        if way.names_writer {
            self.named_writer(cursor, way.class, at);
        }
        let bucket = self.buckets.classes.get_mut(way.class as usize)?;
        if keep {
            // SAFETY: it was made open above, and nothing has been pushed since.
            unsafe { bucket.push_open(now, start as u32) };
            self.order[self.ordered] = way.class;
            self.ordered += 1;
        } else {
            bucket.count_other(now);
        }
        if HOW == IN_ORDER {
            self.push_in_order(way.class, now, start);
        }
        Some(after)
    }

    /// Adds an event to a batch in order that is not full.
    #[inline(always)]
    fn push_in_order(&mut self, class: u32, now: u64, start: usize) {
        let at = self.ordered;
        self.order[at] = class;
        self.order_ticks[at] = now;
        self.order_starts[at] = start as u32;
        self.ordered = at + 1;
    }

    /// Takes the writer from the event whose body begins at byte `at`.
    #[cold]
    fn named_writer(&mut self, cursor: &mut Cursor<'r>, class: u32, at: usize) {
        let event = cursor.plan.events[class as usize].as_ref();
        if let Some(straight) = event.and_then(|event| event.straight.as_ref()) {
            let machine = &mut cursor.machine;
            machine.slots.clear();
            let (registers, slots) = (&mut machine.registers, &mut machine.slots);
            if straight.row(cursor.bytes, at, cursor.end_bytes, registers, slots).is_some() {
                cursor.class_index = class;
                cursor.writer = cursor.named_writer();
                self.note_writer(cursor);
            }
        }
    }

    fn note_writer(&mut self, cursor: &Cursor<'r>) {
        if let Some(writer) = cursor.writer {
            self.writers.push((self.ordered as u32, writer));
        }
    }

    /// Takes the cursor's event as a row.
    pub(super) fn row(&mut self, cursor: &Cursor<'r>, ways: &Ways<'r>) {
        let event = cursor.event();
        let bucket = &mut self.buckets.classes[event.class_index as usize];
        if bucket.count() == 0 {
            self.seen.push(event.class_index);
        }
        bucket.count_other(event.ticks.map_or(0, |ticks| ticks.0));
        let way = &ways.classes[event.class_index as usize];
        if way.names_writer {
            self.note_writer(cursor);
        }
        if way.keep {
            let first_slot = self.row_slots.len() as u32;
            self.row_slots.extend_from_slice(event.slots);
            self.rows.push(Row {
                class: event.class_index,
                ticks: event.ticks,
                time: event.time,
                writer: event.writer,
                first_slot,
                slots: event.slots.len() as u32,
            });
            self.order[self.ordered] = event.class_index | IS_ROW;
            self.ordered += 1;
        }
    }
}
