// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Span ends that are ordered before their begins, because both have the same time and the stream of the
//! end comes first.
//!
//! ```text
//! stream 0    end 7
//! stream 1    begin 7      a span of length 0, not an orphan and an unfinished one
//! ```

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use lateralis_model::Writer;
use lateralis_units::Nanos;

use crate::{Edge, NOBODY, SpanSink};

/// Largest number of waiting ends.
const WAITING_MAX: usize = 1 << 16;
/// Number of ends of one kind and key that a begin examines.
const SEARCH_MAX: usize = 1024;

/// An end whose begin has not been seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlyEnd<T> {
    pub kind: u32,
    /// Number of its thread.
    pub thread: u32,
    pub edge: Edge,
    pub stream: u32,
    pub tag: T,
}

/// Kind and key; without a key, kind and thread.
type Place = (u32, Option<u64>, u32);

/// Ends of one time that wait for their begins.
///
/// Cost: a lookup each. Memory: proportional to the waiting ends, at most 65 536.
#[derive(Debug)]
pub(crate) struct EarlyEnds<T> {
    /// In order of arrival; `None` if the begin has come.
    waiting: Vec<Option<EarlyEnd<T>>>,
    of_place: HashMap<Place, VecDeque<u32>, RandomState>,
    /// Their common time.
    time: Nanos,
    /// Stream of the first end of that time that was dropped for lack of room, and whether ends of other
    /// streams were dropped as well.
    dropped: Option<(u32, bool)>,
}

impl<T> Default for EarlyEnds<T> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            of_place: HashMap::default(),
            time: Nanos(i64::MIN),
            dropped: None,
        }
    }
}

fn place(kind: u32, key: Option<u64>, thread: u32) -> Place {
    (kind, key, if key.is_some() { 0 } else { thread })
}

impl<T: Copy> EarlyEnds<T> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds an end without a preceding begin. All waiting ends have its time.
    pub(crate) fn wait(&mut self, end: EarlyEnd<T>, sink: &mut impl SpanSink<T>) {
        if self.waiting.len() >= WAITING_MAX {
            let (first, are_several) = self.dropped.unwrap_or((end.stream, false));
            self.dropped = Some((first, are_several || first != end.stream));
            return sink.orphan(end.kind, &end.edge, end.tag);
        }
        let place = place(end.kind, end.edge.key, end.thread);
        self.of_place.entry(place).or_default().push_back(self.waiting.len() as u32);
        self.time = end.edge.time;
        self.waiting.push(Some(end));
    }

    /// Whether an end that was dropped for lack of room may belong to a begin in this stream.
    pub(crate) fn has_dropped(&self, stream: u32) -> bool {
        self.dropped.is_some_and(|(first, are_several)| are_several || first != stream)
    }

    /// Takes the end of a span that begins at the same time in another stream: preferably one of its own
    /// thread, then one of its own process.
    pub(crate) fn take(
        &mut self,
        (kind, thread): (u32, u32),
        begin: &Edge,
        stream: u32,
    ) -> Option<EarlyEnd<T>> {
        let place = place(kind, begin.key, thread);
        let numbers = self.of_place.get_mut(&place)?;
        let waiting = &self.waiting;
        let end = |number: &u32| {
            let end = waiting.get(*number as usize)?.as_ref()?;
            (end.stream != stream && end.edge.time == begin.time).then_some(end)
        };
        let pid = |writer: Option<Writer>| writer.map(|writer| writer.pid);
        let is_known = pid(begin.writer) != Some(NOBODY);
        let first = |is_it: &dyn Fn(&EarlyEnd<T>) -> bool| {
            let mut numbers = numbers.iter().take(SEARCH_MAX);
            numbers.position(|number| end(number).is_some_and(is_it))
        };
        let found = first(&|end| end.edge.writer == begin.writer)
            .or_else(|| first(&|end| is_known && pid(end.edge.writer) == pid(begin.writer)))
            .or_else(|| first(&|_| true))?;
        let number = numbers.remove(found)?;
        if numbers.is_empty() {
            self.of_place.remove(&place);
        }
        self.waiting.get_mut(number as usize)?.take()
    }

    /// Advances the time: ends that wait since an earlier time are orphans; all of them if `now` is
    /// `None`.
    #[cold]
    pub(crate) fn pass(&mut self, now: Option<Nanos>, sink: &mut impl SpanSink<T>) {
        if now.is_some_and(|now| now <= self.time) {
            return;
        }
        self.dropped = None;
        self.of_place.clear();
        for end in self.waiting.drain(..).flatten() {
            sink.orphan(end.kind, &end.edge, end.tag);
        }
    }
}
