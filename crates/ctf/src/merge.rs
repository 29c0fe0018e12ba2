// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of all streams in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lateralis_model::{Damage, Event, Interval, StreamIndex};
use lateralis_units::Nanos;

use crate::cursor::Cursor;
use crate::reader::Reader;

/// Merges streams. Events of the same time come in the order of the streams,
/// events of one stream always in that stream's order: where its time runs
/// backwards, so does the merged one.
///
/// Cost: O(log streams) per event; no allocation after the first events.
pub struct Merge<'r> {
    cursors: Vec<Cursor<'r>>,
    waiting: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// The stream whose event is lent.
    current: Option<u32>,
    started: bool,
    interval: Interval,
}

impl<'r> Merge<'r> {
    pub(crate) fn new(reader: &'r Reader, interval: Interval) -> Self {
        let streams = 0..reader.streams().len() as u32;
        let mut cursors: Vec<_> = streams.map(|s| reader.cursor(StreamIndex(s))).collect();
        if let Some(begin) = interval.begin {
            cursors.iter_mut().for_each(|cursor| cursor.skip_to(begin));
        }
        Self {
            waiting: BinaryHeap::with_capacity(cursors.len()),
            cursors,
            current: None,
            started: false,
            interval,
        }
    }

    /// Lends the next event.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event<'_>> {
        self.advance().then(|| self.event())
    }

    /// Steps to the next event; false after the last.
    #[inline]
    pub fn advance(&mut self) -> bool {
        self.step().is_some()
    }

    /// The event stepped to.
    ///
    /// # Panics
    /// If [`Merge::advance`] has not returned true before.
    #[inline]
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        let stream = self.current.expect("merge:no-event: stepped to one before");
        self.cursors[stream as usize].event()
    }

    fn step(&mut self) -> Option<()> {
        if !self.started {
            self.started = true;
            for stream in 0..self.cursors.len() as u32 {
                self.wait(stream);
            }
        }
        // The next event of the stream just read is often the next of all.
        let current = self.current.take();
        if let Some((stream, time)) = current.and_then(|s| Some((s, self.forward(s)?))) {
            match self.waiting.peek() {
                Some(&Reverse(first)) if first < (time, stream) => {
                    self.waiting.push(Reverse((time, stream)));
                }
                _ => {
                    self.current = Some(stream);
                    return Some(());
                }
            }
        }
        let Reverse((_, stream)) = self.waiting.pop()?;
        self.current = Some(stream);
        Some(())
    }

    fn wait(&mut self, stream: u32) {
        if let Some(time) = self.forward(stream) {
            self.waiting.push(Reverse((time, stream)));
        }
    }

    /// Steps one stream to its next event inside the interval.
    #[inline]
    fn forward(&mut self, stream: u32) -> Option<Nanos> {
        let cursor = &mut self.cursors[stream as usize];
        while cursor.advance() {
            let time = cursor.time();
            if self.interval.end.is_some_and(|end| time > end) {
                return None;
            }
            if self.interval.begin.is_none_or(|begin| time >= begin) {
                return Some(time);
            }
        }
        None
    }

    /// Damage inside the packets read so far, by stream.
    pub fn damage(&self) -> impl Iterator<Item = &Damage> {
        self.cursors.iter().flat_map(Cursor::damage)
    }
}
