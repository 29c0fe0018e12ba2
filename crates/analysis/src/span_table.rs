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
    Distribution, Durations, Edge, Ended, Gaps, Histogram, InFlight, Nesting, Numbering, Pairer,
    Side, Span, SpanCertainty, Wholes,
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
    /// Of spans with keys; others are on the stacks of their threads.
    pairer: Pairer,
    keyless_open_count: u64,
    keyless_orphan_count: u64,
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
    in_flight: InFlight,
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
    wholes: Wholes,
    threads: Numbering<Option<Writer>>,
    /// Threads by the low bits of their numbers.
    recent: Vec<(Option<Writer>, u32)>,
    /// What the threads of kinds will be credited with.
    credits: Vec<Credit>,
    certainty: SpanCertainty,
    limits: SpanLimits,
}

/// Nanoseconds of a span that a thread began.
#[derive(Debug, Clone, Copy)]
struct Credit {
    kind: u32,
    thread: u32,
    nanos: u64,
}

/// Credits that are given at once: thousands of threads of many kinds are no longer in a
/// cache when their turn comes, but memory can be asked for many of them at a time.
const CREDITS: usize = 256;
/// Threads that are found without hashing.
const RECENT: usize = 1 << 12;

impl SpanTable {
    /// Of what happens from `begin` on, with these stretches of missing events.
    #[must_use]
    pub fn new(begin: Nanos, gaps: Gaps, limits: SpanLimits) -> Self {
        Self {
            kinds: Vec::new(),
            nesting: Nesting::default(),
            wholes: Wholes::default(),
            threads: Numbering::default(),
            recent: Vec::new(),
            credits: Vec::new(),
            certainty: SpanCertainty::new(begin, gaps),
            limits,
        }
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

    #[inline]
    fn thread(&mut self, writer: Option<Writer>) -> u32 {
        let place = writer.map_or(0, |writer| writer.tid as usize % RECENT);
        if let Some((known, number)) = self.recent.get(place)
            && *known == writer
        {
            return *number;
        }
        let number = self.threads.number(writer);
        if self.recent.is_empty() {
            // The first thread stands for all that is not known yet.
            self.recent = vec![(writer, number); RECENT];
        }
        self.recent[place] = (writer, number);
        number
    }

    /// Once all edges are pushed: whole spans that are open end, and threads get what they have
    /// coming.
    pub fn finish(&mut self) {
        let Self { kinds, nesting, wholes, certainty, .. } = self;
        wholes.finish(nesting, |ended| whole_ended(kinds, certainty, ended));
        self.credit();
    }

    fn credit(&mut self) {
        for Credit { kind, thread, nanos } in self.credits.drain(..) {
            let threads = &mut self.kinds[kind as usize].threads;
            let index = thread as usize;
            if index >= threads.len() {
                threads.resize_with(index + 1, OfThread::default);
            }
            let of = &mut threads[index];
            of.count += 1;
            of.total += u128::from(nanos);
            of.max = of.max.max(nanos);
        }
    }

    /// Takes the next edge in the order of time; gives the span that it ends.
    ///
    /// Cost: without a key, a step on the stack of its thread.
    pub fn push(&mut self, kind: u32, edge: Edge) -> Option<Span> {
        let thread = self.thread(edge.writer);
        self.reach(thread, edge.time, true);
        if edge.key.is_none() {
            return self.push_keyless(kind, thread, edge);
        }
        if edge.side == Side::Begin {
            self.nesting.begin(thread, kind, edge.key, edge.time);
        }
        let span = self.kind(kind).pairer.push(edge)?;
        let (begin, writer) = (span.begin.time, span.begin.writer);
        let own = if writer == edge.writer {
            self.nesting.end(thread, kind, edge.key, begin, edge.time)
        } else {
            let beginner = self.thread(writer);
            self.nesting.leave(beginner, kind, edge.key, begin, edge.time);
            None
        };
        let beginner = if writer == edge.writer { thread } else { self.thread(writer) };
        let is_certain = self.certainty.is_certain(kind, &span);
        let own = own.filter(|_| self.certainty.is_own_certain(begin, edge.time));
        if is_certain {
            self.kind(kind).under_way(span.nanos());
        }
        self.add(kind, span, beginner, is_certain, own);
        Some(span)
    }

    /// Spans without a key are of their thread: the youngest open one of the kind ends.
    fn push_keyless(&mut self, kind: u32, thread: u32, edge: Edge) -> Option<Span> {
        match edge.side {
            Side::Begin => {
                self.nesting.begin(thread, kind, None, edge.time);
                self.kind(kind).keyless_open_count += 1;
                None
            }
            Side::End => {
                let Some((begin, own)) = self.nesting.end_youngest(thread, kind, edge.time) else {
                    self.kind(kind).keyless_orphan_count += 1;
                    return None;
                };
                self.kind(kind).keyless_open_count -= 1;
                let begin = Edge { time: begin, side: Side::Begin, ..edge };
                let span = Span { begin, end: edge };
                let is_certain = self.certainty.is_certain(kind, &span);
                let is_own = self.certainty.is_own_certain(begin.time, edge.time);
                if is_certain {
                    self.kind(kind).under_way(span.nanos());
                }
                self.add(kind, span, thread, is_certain, is_own.then_some(own));
                Some(span)
            }
        }
    }

    /// An edge is left out, because nobody knows its thread.
    pub fn doubt(&mut self, kind: u32, time: Nanos) {
        self.certainty.doubt(kind, time);
    }

    /// A span begins, and nobody knows its thread.
    pub fn doubt_own(&mut self, time: Nanos) {
        self.certainty.doubt_own(time);
    }

    /// Takes a span that is told as a whole, in the order of beginnings. Its duration is certain,
    /// for whoever recorded it has measured it.
    pub fn push_whole(&mut self, kind: u32, span: Span) {
        let thread = self.thread(span.begin.writer);
        self.reach(thread, span.begin.time, false);
        self.wholes.begin(thread, kind, span.begin.time, span.end.time);
        self.add(kind, span, thread, true, None);
    }

    #[inline]
    fn reach(&mut self, thread: u32, time: Nanos, is_edge: bool) {
        let Self { kinds, nesting, wholes, certainty, .. } = self;
        let ended = |ended| whole_ended(kinds, certainty, ended);
        wholes.reach(nesting, thread, time, is_edge, ended);
    }

    fn add(&mut self, kind: u32, span: Span, thread: u32, is_certain: bool, own: Option<u64>) {
        self.kind(kind).add(span, is_certain, own);
        if is_certain {
            self.credits.push(Credit { kind, thread, nanos: span.nanos() });
            if self.credits.len() >= CREDITS {
                self.credit();
            }
        }
    }

    /// Kinds by number; what they tell of threads is whole once [`SpanTable::finish`]ed.
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

/// The time of its own, if nothing is missing that could be inside.
fn whole_ended(kinds: &mut [SpanKind], certainty: &SpanCertainty, ended: Ended) {
    let is_certain = certainty.is_own_certain(ended.begin, ended.end);
    if let Some(kind) = kinds.get_mut(ended.kind as usize).filter(|_| is_certain) {
        kind.own = (kind.own.0 + u128::from(ended.own_nanos), kind.own.1 + 1);
    }
}

impl SpanKind {
    fn new(limits: SpanLimits, is_per_process: bool) -> Self {
        Self {
            pairer: Pairer::default(),
            keyless_open_count: 0,
            keyless_orphan_count: 0,
            keys: Numbering::default(),
            groups: Vec::new(),
            other: Group::default(),
            threads: Vec::new(),
            beyond: None,
            kept: 0,
            own: (0, 0),
            in_flight: InFlight::default(),
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

    fn add(&mut self, span: Span, is_certain: bool, own: Option<u64>) {
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
        self.stand_out(span, nanos);
    }

    /// One of those that are open has just ended.
    fn under_way(&mut self, nanos: u64) {
        let open_count = self.pairer.unfinished_count() + self.keyless_open_count;
        self.in_flight.push(open_count + 1, nanos);
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

    /// Spans that have begun and not ended.
    #[must_use]
    pub fn unfinished_count(&self) -> u64 {
        self.pairer.unfinished_count() + self.keyless_open_count
    }

    /// Ends that came without a beginning; without a key also those before whose beginning
    /// more than 1024 others have begun and not ended.
    #[must_use]
    pub fn orphan_count(&self) -> u64 {
        self.pairer.orphan_count() + self.keyless_orphan_count
    }

    /// Durations of all certain ones; `None` if there are none.
    ///
    /// Cost: some steps for each that is kept.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        match &self.beyond {
            Some(beyond) => beyond.distribution(),
            None => Distribution::of(&self.kept()),
        }
    }

    fn kept(&self) -> Vec<&[u64]> {
        self.groups.iter().chain([&self.other]).map(|group| group.kept.as_slice()).collect()
    }

    /// How many of which duration.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        if let Some(beyond) = &self.beyond {
            return beyond.histogram();
        }
        let mut histogram = Histogram::default();
        self.kept().into_iter().flatten().for_each(|&nanos| histogram.add(nanos));
        histogram
    }

    /// Nanoseconds in which they were the innermost span of their thread, and of how many
    /// that is known: of those that begin and end on one thread.
    #[must_use]
    pub fn own(&self) -> (u128, u64) {
        self.own
    }

    /// Certain ones by how many of the kind were open when they ended; not those that are told
    /// as a whole.
    #[must_use]
    pub fn in_flight(&self) -> &InFlight {
        &self.in_flight
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
        Distribution::of(&[&self.kept]).filter(|_| self.is_kept)
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
