// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans of many kinds: how many, how long, which key, whose, and which stand out.
//!
//! Spans that may be wrong because events are missing inside them are counted apart and
//! leave all durations alone: what is told about durations is of spans that are certain.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lateralis_model::{Quality, Writer};
use lateralis_units::Nanos;

use crate::{
    Distribution, Durations, Edge, Gaps, Histogram, Nesting, Numbering, Pairer, Side, Span,
};

/// How much a [`SpanTable`] keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanLimits {
    /// Durations of one kind kept one by one, eight bytes each; above, percentiles come
    /// from a histogram and those of single keys are not known.
    pub durations: usize,
    /// Keys of one kind that have numbers of their own, some 200 bytes each.
    pub keys: usize,
    /// Outliers of one kind that are kept.
    pub slowest: usize,
}

impl Default for SpanLimits {
    fn default() -> Self {
        Self { durations: 1 << 24, keys: 1 << 18, slowest: 10 }
    }
}

/// What tells groups of a kind apart: the key, and the process where equal keys of two
/// processes are two things, as addresses are.
pub type GroupKey = (Option<u32>, Option<u64>);

/// Spans of one kind with the same key.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Certain ones.
    pub count: u64,
    /// Their nanoseconds.
    pub total: u128,
    /// The shortest.
    pub min: Option<u64>,
    /// The longest, the earliest of several.
    pub longest: Option<Span>,
    /// Those that events may be missing in.
    pub touched_count: u64,
    kept: Vec<u64>,
    is_kept: bool,
}

/// What one thread began of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfThread {
    /// Certain ones.
    pub count: u64,
    /// Their nanoseconds.
    pub total: u128,
    /// The longest of them in nanoseconds.
    pub max: u64,
}

/// Spans of one kind.
#[derive(Debug)]
pub struct SpanKind {
    pairer: Pairer,
    keys: Numbering<GroupKey>,
    groups: Vec<Group>,
    other: Group,
    threads: Vec<OfThread>,
    /// All of them once there are too many to keep.
    beyond: Option<Durations>,
    kept: usize,
    /// Nanoseconds in which certain spans were the innermost of their thread, and of how
    /// many spans that is known.
    own: (u128, u64),
    slowest: BinaryHeap<Reverse<(u64, Reverse<Nanos>, u64)>>,
    slowest_spans: Vec<Span>,
    is_per_process: bool,
    limits: SpanLimits,
    touched_count: u64,
}

/// Pairs the edges of many kinds of spans as they come and adds them up.
///
/// Cost: that of [`Pairer`] and [`Nesting`] and a look-up. Memory: by open spans, and as
/// [`SpanLimits`] says.
#[derive(Debug)]
pub struct SpanTable {
    kinds: Vec<SpanKind>,
    nesting: Nesting,
    threads: Numbering<Option<Writer>>,
    gaps: Gaps,
    begin: Nanos,
    limits: SpanLimits,
}

impl SpanTable {
    /// Of what happens from `begin` on, with these stretches of missing events.
    #[must_use]
    pub fn new(begin: Nanos, gaps: Gaps, limits: SpanLimits) -> Self {
        let (kinds, nesting, threads) = (Vec::new(), Nesting::default(), Numbering::default());
        Self { kinds, nesting, threads, gaps, begin, limits }
    }

    /// Makes kinds known: in the order of their numbers, each with whether equal keys of
    /// two processes are two things.
    pub fn add_kind(&mut self, is_per_process: bool) {
        self.kinds.push(SpanKind::new(self.limits, is_per_process));
    }

    fn kind(&mut self, kind: u32) -> &mut SpanKind {
        while self.kinds.len() <= kind as usize {
            self.add_kind(true);
        }
        &mut self.kinds[kind as usize]
    }

    /// Takes the next edge in the order of time; gives the span that it ends.
    pub fn push(&mut self, kind: u32, edge: Edge) -> Option<Span> {
        let thread = self.threads.number(edge.writer);
        if edge.side == Side::Begin {
            self.nesting.begin(thread, kind, edge.key, edge.time);
        }
        let span = self.kind(kind).pairer.push(edge)?;
        let (begin, writer) = (span.begin.time, span.begin.writer);
        let own = if writer == edge.writer {
            self.nesting.end(thread, kind, edge.key, begin, edge.time)
        } else {
            let beginner = self.threads.number(writer);
            self.nesting.leave(beginner, kind, edge.key, begin, edge.time);
            None
        };
        self.add(kind, span, own);
        Some(span)
    }

    /// Takes a span that is told as a whole.
    pub fn push_whole(&mut self, kind: u32, span: Span) {
        self.add(kind, span, None);
    }

    fn add(&mut self, kind: u32, span: Span, own: Option<u64>) {
        let (begin, end) = (span.begin.time, span.end.time);
        // An end prefers a beginning of its own thread: with another's it may be that the
        // right one is missing, however long ago that was.
        let from = if span.begin.writer == span.end.writer { begin } else { self.begin };
        let is_certain = !self.gaps.between(from.min(end), end);
        let thread = self.threads.number(span.begin.writer);
        let kind = self.kind(kind);
        kind.add(span, is_certain, thread, own);
    }

    /// Kinds by number.
    #[must_use]
    pub fn kinds(&self) -> &[SpanKind] {
        &self.kinds
    }

    /// The threads that [`SpanKind::threads`] counts by number.
    #[must_use]
    pub fn threads(&self) -> &[Option<Writer>] {
        self.threads.things()
    }
}

impl SpanKind {
    fn new(limits: SpanLimits, is_per_process: bool) -> Self {
        Self {
            pairer: Pairer::default(),
            keys: Numbering::default(),
            groups: Vec::new(),
            other: Group::default(),
            threads: Vec::new(),
            beyond: None,
            kept: 0,
            own: (0, 0),
            slowest: BinaryHeap::new(),
            slowest_spans: Vec::new(),
            is_per_process,
            limits,
            touched_count: 0,
        }
    }

    fn group(&mut self, span: &Span) -> &mut Group {
        let pid = span.begin.writer.filter(|_| self.is_per_process && span.begin.key.is_some());
        let key = (pid.map(|writer| writer.pid), span.begin.key);
        if self.keys.len() >= self.limits.keys && self.keys.known(&key).is_none() {
            return &mut self.other;
        }
        let index = self.keys.number(key) as usize;
        if index == self.groups.len() {
            self.groups.push(Group { is_kept: self.beyond.is_none(), ..Group::default() });
        }
        &mut self.groups[index]
    }

    fn add(&mut self, span: Span, is_certain: bool, thread: u32, own: Option<u64>) {
        if !is_certain {
            self.touched_count += 1;
            self.group(&span).touched_count += 1;
            return;
        }
        let nanos = span.nanos();
        let keeps = self.beyond.is_none();
        let group = self.group(&span);
        group.count += 1;
        group.total += u128::from(nanos);
        group.min = Some(group.min.map_or(nanos, |min| min.min(nanos)));
        if group.longest.is_none_or(|longest| longest.nanos() < nanos) {
            group.longest = Some(span);
        }
        if keeps {
            group.kept.push(nanos);
            self.kept += 1;
        }
        if self.kept > self.limits.durations {
            self.keep_no_longer();
        } else if let Some(beyond) = &mut self.beyond {
            beyond.push(nanos);
        }
        if let Some(own) = own {
            self.own = (self.own.0 + u128::from(own), self.own.1 + 1);
        }
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, OfThread::default);
        }
        let of = &mut self.threads[index];
        of.count += 1;
        of.total += u128::from(nanos);
        of.max = of.max.max(nanos);
        self.stand_out(span, nanos);
    }

    fn keep_no_longer(&mut self) {
        let mut beyond = Durations::with_limit(0);
        for group in self.groups.iter_mut().chain([&mut self.other]) {
            std::mem::take(&mut group.kept).into_iter().for_each(|nanos| beyond.push(nanos));
            group.is_kept = false;
        }
        self.kept = 0;
        self.beyond = Some(beyond);
    }

    /// Keeps the span if it is among the slowest; of equal ones the earlier.
    fn stand_out(&mut self, span: Span, nanos: u64) {
        let is_full = self.slowest.len() >= self.limits.slowest;
        let entry = (nanos, Reverse(span.begin.time));
        if is_full && self.slowest.peek().is_none_or(|least| (least.0.0, least.0.1) >= entry) {
            return;
        }
        let index = if is_full {
            let index = self.slowest.pop().map_or(0, |least| least.0.2);
            self.slowest_spans[index as usize] = span;
            index
        } else {
            self.slowest_spans.push(span);
            self.slowest_spans.len() as u64 - 1
        };
        self.slowest.push(Reverse((entry.0, entry.1, index)));
    }

    /// Spans with both ends, whatever is missing in them: never more than there were.
    #[must_use]
    pub fn paired_count(&self) -> u64 {
        let groups = self.groups.iter().chain([&self.other]);
        groups.map(|group| group.count).sum::<u64>() + self.touched_count
    }

    /// Those of them that events may be missing in; their durations count nowhere.
    #[must_use]
    pub fn touched_count(&self) -> u64 {
        self.touched_count
    }

    /// What has begun and not ended, and what ended without a beginning.
    #[must_use]
    pub fn pairer(&self) -> &Pairer {
        &self.pairer
    }

    /// Durations of all certain ones; `None` if there are none.
    ///
    /// Cost: copies and sorts what is kept.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        self.durations().distribution()
    }

    fn durations(&self) -> Durations {
        if let Some(beyond) = &self.beyond {
            return beyond.clone();
        }
        let mut all = Durations::default();
        let groups = self.groups.iter().chain([&self.other]);
        groups.flat_map(|group| &group.kept).for_each(|&nanos| all.push(nanos));
        all
    }

    /// How many of which duration.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        self.durations().histogram()
    }

    /// Nanoseconds in which they were the innermost span of their thread, and of how many
    /// that is known: of those that begin and end on one thread.
    #[must_use]
    pub fn own(&self) -> (u128, u64) {
        self.own
    }

    /// By key, in the order in which they came.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (GroupKey, &Group)> {
        self.keys.things().iter().copied().zip(&self.groups)
    }

    /// What belongs to keys beyond the limit.
    #[must_use]
    pub fn other_keys(&self) -> &Group {
        &self.other
    }

    /// By the thread that began them; see [`SpanTable::threads`]. It may be shorter.
    #[must_use]
    pub fn threads(&self) -> &[OfThread] {
        &self.threads
    }

    /// The slowest, slowest first; of equal ones the earlier first.
    #[must_use]
    pub fn slowest(&self) -> Vec<Span> {
        let mut spans = self.slowest_spans.clone();
        spans.sort_by_key(|span| (Reverse(span.nanos()), span.begin.time));
        spans
    }
}

impl Group {
    /// Adds the spans of another. Cost: copies what that keeps.
    pub fn merge(&mut self, other: &Self) {
        if self.count + self.touched_count == 0 {
            self.clone_from(other);
            return;
        }
        self.count += other.count;
        self.total += other.total;
        self.min = self.min.into_iter().chain(other.min).min();
        let longer = |span: &Span| (span.nanos(), Reverse(span.begin.time));
        self.longest = self.longest.into_iter().chain(other.longest).max_by_key(longer);
        self.touched_count += other.touched_count;
        self.kept.extend(&other.kept);
        self.is_kept &= other.is_kept;
    }

    /// Durations of the certain ones; `None` if there are none, or too many were to keep.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        let mut all = Durations::default();
        self.kept.iter().for_each(|&nanos| all.push(nanos));
        all.distribution().filter(|_| self.is_kept)
    }
}

/// How far the numbers about spans can be trusted, where events are missing or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanQuality {
    /// Of counts, totals and maxima.
    pub sum: Quality,
    /// Of everything else: minima, means, percentiles, unfinished ones, orphans.
    pub value: Quality,
}

impl SpanQuality {
    /// Of all that happened between two times.
    #[must_use]
    pub fn new(gaps: &Gaps, begin: Nanos, end: Nanos) -> Self {
        Self { sum: gaps.of_count(begin, end), value: gaps.of_value(begin, end) }
    }
}

#[cfg(test)]
#[path = "span_table_tests.rs"]
mod tests;
