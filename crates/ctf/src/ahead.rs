// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream of which some events are read ahead.
//!
//! Streams know nothing of each other. Read one event at a time in turn, each would
//! find the caches and the branch predictor full of the others, and wait for the
//! comparison that gives it its turn; so a stream is read some events at a time, all of
//! one packet.

use std::ops::RangeInclusive;

use lateralis_model::{Damage, ENDED, Event, Interval, Slot, Writer, turn_of};
use lateralis_units::{Nanos, Ticks};

use crate::cursor::Cursor;

/// Events that are read at a time at most: enough to be read as one, few enough that those of
/// hundreds of streams stay in the second-level cache. A few streams have as many together as
/// [`ALL_EVENTS`], as far as one gains by it.
const EVENTS: RangeInclusive<usize> = 16..=64;
const ALL_EVENTS: usize = 1 << 11;

/// Number of slots (8 KiB) for each 16 events after which no further event is prefetched.
const SLOTS_PER_EVENT: usize = 1 << 5;

/// A stream, read ahead.
pub struct Ahead<'r> {
    cursor: Cursor<'r>,
    interval: Interval,
    rows: Vec<Row>,
    /// Of all rows.
    slots: Vec<Slot>,
    /// Who wrote them all.
    writer: Option<Writer>,
    /// Events that are read at a time.
    most: usize,
    /// Rows that have had their turn.
    pub taken: usize,
}

/// An event that has been read.
struct Row {
    /// When it has its turn: [`turn_of`] its time, or of the latest before.
    turn: u64,
    time: Nanos,
    /// Worthless in a stream without clock.
    ticks: Ticks,
    class_index: u32,
    slots_end: u32,
}

impl<'r> Ahead<'r> {
    /// The events of the interval, of one of this number of streams.
    pub fn new(mut cursor: Cursor<'r>, interval: Interval, streams: usize) -> Self {
        if let Some(begin) = interval.begin {
            cursor.skip_to(begin);
        }
        let most = (ALL_EVENTS / streams.max(1)).clamp(*EVENTS.start(), *EVENTS.end());
        let (rows, slots) = (Vec::new(), Vec::new());
        Self { cursor, interval, rows, slots, writer: None, most, taken: 0 }
    }

    /// When an event that has been read has its turn, by its index.
    #[inline]
    pub fn turn(&self, index: usize) -> Option<u64> {
        self.rows.get(index).map(|row| row.turn)
    }

    /// An event that has been read, by its index.
    #[inline]
    pub fn event(&self, index: usize) -> Event<'_> {
        let (before, rows) = self.rows.split_at(index);
        let (row, first) = (&rows[0], before.last().map_or(0, |row| row.slots_end as usize));
        let slots = &self.slots[first..row.slots_end as usize];
        self.cursor.event_of(row.class_index, (row.ticks, row.time), self.writer, slots)
    }

    /// Reads on up to the end of a packet, instead of what had been read. Returns the
    /// turn of the first event, [`ENDED`] if there is none.
    #[inline(never)]
    pub fn fill(&mut self) -> u64 {
        let mut latest = self.rows.last().map_or(0, |row| row.turn);
        self.rows.clear();
        self.slots.clear();
        self.taken = 0;
        let mut there = self.cursor.advance_onto(&mut self.slots);
        while there {
            let cursor = &self.cursor;
            let (time, ticks, class_index) = (cursor.time(), cursor.ticks(), cursor.class_index);
            if self.interval.end.is_some_and(|end| time > end) {
                self.cursor.end_stream();
                break;
            }
            if self.interval.begin.is_none_or(|begin| time >= begin) {
                latest = latest.max(turn_of(time));
                self.writer = cursor.writer;
                let slots_end = self.slots.len() as u32;
                self.rows.push(Row { turn: latest, time, ticks, class_index, slots_end });
                latest = self.fill_usual(latest);
            } else {
                self.slots.truncate(self.rows.last().map_or(0, |row| row.slots_end as usize));
            }
            there = match self.rows.len() {
                0 => self.cursor.advance_onto(&mut self.slots),
                read if read >= self.most => false,
                _ => {
                    self.slots.len() < self.most * SLOTS_PER_EVENT
                        && self.cursor.advance_inside(&mut self.slots)
                }
            };
        }
        self.turn(0).unwrap_or(ENDED)
    }

    /// Reads on while events are as usual. They are of the packet and writer of the last
    /// row, and no earlier.
    #[inline(always)]
    fn fill_usual(&mut self, mut latest: u64) -> u64 {
        let Self { cursor, interval, rows, slots, .. } = self;
        let (most, most_slots) = (self.most, self.most * SLOTS_PER_EVENT);
        let last = interval.end.unwrap_or(Nanos(i64::MAX));
        let mut is_over = false;
        if rows.len() < most && slots.len() < most_slots {
            cursor.advance_while_usual(slots, |read, time, slots_end| {
                is_over = time > last;
                if is_over {
                    return false;
                }
                latest = latest.max(turn_of(time));
                let (ticks, class_index, slots_end) =
                    (read.ticks, read.class_index, slots_end as u32);
                rows.push(Row { turn: latest, time, ticks, class_index, slots_end });
                rows.len() < most && (slots_end as usize) < most_slots
            });
        }
        if is_over {
            cursor.end_stream();
        }
        latest
    }

    /// Damage inside the packets read so far.
    pub fn damage(&self) -> &[Damage] {
        self.cursor.damage()
    }
}
