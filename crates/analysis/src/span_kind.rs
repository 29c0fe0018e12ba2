// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statistics of the spans of one kind: count, durations, by key and by thread, and outliers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lateralis_model::Writer;
use lateralis_units::Nanos;

use crate::durations::sum;
use crate::keyless::Keyless;
use crate::{Censored, Distribution, Durations, Edge, Histogram, InFlight, Numbering, Side, Span};

/// Memory limits of a [`SpanTable`](crate::SpanTable).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanLimits {
    /// Durations of one kind that are kept individually, eight bytes each; above, percentiles come from a
    /// histogram and those of single keys are unknown.
    pub durations: usize,
    /// Keys of one kind with statistics of their own, some 200 bytes each.
    pub keys: usize,
    /// Outliers of one kind that are kept.
    pub slowest: usize,
    /// Whether to compute [`SpanKind::in_flight`].
    pub in_flight: bool,
    /// Whether to compute [`SpanKind::threads`].
    pub threads: bool,
}

impl Default for SpanLimits {
    fn default() -> Self {
        Self { durations: 1 << 24, keys: 1 << 18, slowest: 10, in_flight: true, threads: true }
    }
}

/// Identifies a group of a kind: the key, and the process if equal keys of two processes mean different
/// objects, as with addresses.
pub type GroupKey = (Option<u32>, Option<u64>);

/// Spans of one kind with the same key.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Number of certain spans.
    pub count: u64,
    /// Their total in nanoseconds.
    pub total: u128,
    /// The shortest duration.
    pub min: Option<u64>,
    /// The longest span, the earliest if there are several.
    pub longest: Option<Span>,
    /// Number of spans in which events may be missing.
    pub touched_count: u64,
    kept: Vec<u64>,
    is_kept: bool,
}

/// Spans of a kind begun by one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfThread {
    /// Number of certain spans.
    pub count: u64,
    /// Their total in nanoseconds.
    pub total: u128,
    /// The longest of them in nanoseconds.
    pub max: u64,
}

impl OfThread {
    /// Adds the sums of another.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.total += other.total;
        self.max = self.max.max(other.max);
    }
}

/// Statistics of the spans of one kind.
#[derive(Debug)]
pub struct SpanKind {
    /// Number of open spans with keys.
    keyed_open_count: u64,
    orphan_count: u64,
    pub(crate) keyless: Keyless,
    /// Group of the spans without keys.
    keyless_group: Option<u32>,
    keys: Numbering<GroupKey>,
    groups: Vec<Group>,
    other: Group,
    threads: Vec<(u32, OfThread)>,
    /// All durations, once there are too many to keep.
    beyond: Option<Durations>,
    kept: usize,
    /// Self time of certain spans in nanoseconds, and the number of spans for which it is known.
    own: (u128, u64),
    in_flight: InFlight,
    slowest: BinaryHeap<Reverse<(u64, Reverse<Nanos>, u64)>>,
    slowest_spans: Vec<Span>,
    is_per_process: bool,
    limits: SpanLimits,
    touched_count: u64,
}

impl SpanKind {
    pub(crate) fn new(limits: SpanLimits, is_per_process: bool) -> Self {
        Self {
            keyed_open_count: 0,
            orphan_count: 0,
            keyless: Keyless::new(),
            keyless_group: None,
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

    /// A span begins.
    #[inline]
    pub(crate) fn begins(&mut self, is_keyless: bool) {
        *self.open_count(is_keyless) += 1;
    }

    /// An open span ends.
    #[inline]
    pub(crate) fn ends(&mut self, is_keyless: bool) {
        let open = self.open_count(is_keyless);
        *open = open.saturating_sub(1);
    }

    #[inline]
    fn open_count(&mut self, is_keyless: bool) -> &mut u64 {
        if is_keyless { &mut self.keyless.open_count } else { &mut self.keyed_open_count }
    }

    /// A span ends that never began.
    pub(crate) fn is_orphan(&mut self) {
        self.orphan_count += 1;
    }

    #[inline]
    fn group(&mut self, span: &Span) -> &mut Group {
        match self.keyless_group.filter(|_| span.begin.key.is_none()) {
            Some(index) => &mut self.groups[index as usize],
            None => self.look_up_group(span),
        }
    }

    fn look_up_group(&mut self, span: &Span) -> &mut Group {
        let pid = span.begin.writer.filter(|_| self.is_per_process && span.begin.key.is_some());
        let key = (pid.map(|writer| writer.pid), span.begin.key);
        if self.keys.len() >= self.limits.keys && self.keys.known(&key).is_none() {
            return &mut self.other;
        }
        let index = self.keys.number(key) as usize;
        if index == self.groups.len() {
            self.groups.push(Group { is_kept: self.beyond.is_none(), ..Group::default() });
        }
        if span.begin.key.is_none() {
            self.keyless_group = Some(index as u32);
        }
        &mut self.groups[index]
    }

    pub(crate) fn add(&mut self, span: &Span, is_certain: bool, own: Option<u64>) {
        if !is_certain {
            self.touched_count += 1;
            self.group(span).touched_count += 1;
            return;
        }
        let nanos = span.nanos();
        if let Some(own) = own {
            self.own_for(own);
        }
        if span.begin.key.is_none() {
            self.keyless_ended(span.begin.time, span.end.time, span.begin.writer);
            return;
        }
        let keeps = self.beyond.is_none();
        let group = self.group(span);
        group.count += 1;
        group.total += u128::from(nanos);
        group.min = Some(group.min.map_or(nanos, |min| min.min(nanos)));
        group.lengthen(span);
        if keeps {
            group.kept.push(nanos);
            self.kept += 1;
        } else if let Some(beyond) = &mut self.beyond {
            beyond.push(nanos);
        }
        if keeps && self.kept + self.keyless.len() > self.limits.durations {
            self.keep_no_longer();
        }
        self.stand_out(span);
    }

    /// A certain span without a key has ended, with this self time.
    #[inline]
    pub(crate) fn keyless_ended_on_its_thread(
        &mut self,
        (begin, end): (Nanos, Nanos),
        writer: Option<Writer>,
        own: u64,
    ) {
        let (sum, count) = self.keyless.own;
        let Some(sum) = sum.checked_add(own) else {
            self.settle();
            self.keyless.own = (own, 1);
            return self.keyless_ended(begin, end, writer);
        };
        self.keyless.own = (sum, count + 1);
        self.keyless_ended(begin, end, writer);
    }

    /// A certain span without a key has ended.
    #[inline]
    fn keyless_ended(&mut self, begin: Nanos, end: Nanos, writer: Option<Writer>) {
        if self.keyless.is_full() {
            self.make_place();
        }
        let nanos = end.since(begin).max(0) as u64;
        self.keyless.push(nanos);
        if nanos >= self.keyless.floor {
            let edge = |time, side| Edge { time, side, key: None, writer };
            self.is_long(&Span { begin: edge(begin, Side::Begin), end: edge(end, Side::End) });
        }
    }

    /// Makes room for another span without a key.
    #[cold]
    fn make_place(&mut self) {
        if self.beyond.is_none() {
            let kept = self.kept + self.keyless.len();
            if kept < self.limits.durations {
                return self.keyless.grow(self.limits.durations - kept);
            }
            self.keep_no_longer();
        }
        self.settle();
        if self.keyless.is_full() {
            self.keyless.grow(usize::MAX);
        }
    }

    /// Adds the accumulated spans without keys to all statistics.
    pub(crate) fn settle(&mut self) {
        let group = match self.keyless_group {
            Some(index) => &mut self.groups[index as usize],
            None => &mut self.other,
        };
        let (own, count) = std::mem::take(&mut self.keyless.own);
        self.own = (self.own.0 + u128::from(own), self.own.1 + count);
        self.kept += if self.beyond.is_none() { self.keyless.len() } else { 0 };
        let durations = self.keyless.durations();
        group.count += durations.len() as u64;
        group.total += sum(durations);
        group.min = group.min.into_iter().chain(durations.iter().copied().min()).min();
        match &mut self.beyond {
            Some(beyond) => durations.iter().for_each(|&nanos| beyond.push(nanos)),
            None if group.kept.is_empty() => std::mem::swap(&mut group.kept, durations),
            None => group.kept.extend_from_slice(durations),
        }
        durations.clear();
    }

    /// Checks whether a span without a key is the longest, or an outlier.
    #[cold]
    fn is_long(&mut self, span: &Span) {
        let longest = self.group(span).lengthen(span);
        self.stand_out(span);
        let least = match self.slowest.peek() {
            _ if self.limits.slowest == 0 => u64::MAX,
            Some(least) if self.slowest.len() >= self.limits.slowest => least.0.0,
            _ => 0,
        };
        self.keyless.floor = least.min(longest.saturating_add(1));
    }

    /// Adds the self time of a span.
    pub(crate) fn own_for(&mut self, nanos: u64) {
        self.own = (self.own.0 + u128::from(nanos), self.own.1 + 1);
    }

    /// Adds the sums of a thread; call in ascending order of threads.
    pub(crate) fn credit(&mut self, thread: u32, of: OfThread) {
        self.threads.push((thread, of));
    }

    /// An open span has just ended.
    #[inline]
    pub(crate) fn under_way(&mut self, nanos: u64) {
        if !self.limits.in_flight {
            return;
        }
        self.in_flight.push(self.unfinished_count() + 1, nanos);
    }

    fn keep_no_longer(&mut self) {
        self.settle();
        let mut beyond = Durations::with_limit(0);
        for group in self.groups.iter_mut().chain([&mut self.other]) {
            std::mem::take(&mut group.kept).into_iter().for_each(|nanos| beyond.push(nanos));
            group.is_kept = false;
        }
        self.kept = 0;
        self.beyond = Some(beyond);
    }

    /// Keeps the span if it is among the slowest; of equal ones the earlier.
    #[inline]
    fn stand_out(&mut self, span: &Span) {
        let is_full = self.slowest.len() >= self.limits.slowest;
        let entry = (span.nanos(), Reverse(span.begin.time));
        if is_full && self.slowest.peek().is_none_or(|least| (least.0.0, least.0.1) >= entry) {
            return;
        }
        let index = if is_full {
            let index = self.slowest.pop().map_or(0, |least| least.0.2);
            self.slowest_spans[index as usize] = *span;
            index
        } else {
            self.slowest_spans.push(*span);
            self.slowest_spans.len() as u64 - 1
        };
        self.slowest.push(Reverse((entry.0, entry.1, index)));
    }

    /// Number of spans with both ends, whatever is missing in them: a lower bound of the actual number.
    #[must_use]
    pub fn paired_count(&self) -> u64 {
        let groups = self.groups.iter().chain([&self.other]);
        groups.map(|group| group.count).sum::<u64>() + self.touched_count
    }

    /// Number of those in which events may be missing; their durations are not used.
    #[must_use]
    pub fn touched_count(&self) -> u64 {
        self.touched_count
    }

    /// Number of spans that have begun and not ended.
    #[must_use]
    pub fn unfinished_count(&self) -> u64 {
        self.keyed_open_count + self.keyless.open_count
    }

    /// Number of ends without a begin; without a key also those for which more than 1024 others have
    /// begun since and not ended.
    #[must_use]
    pub fn orphan_count(&self) -> u64 {
        self.orphan_count
    }

    /// Distribution of all certain durations; `None` if there are none.
    ///
    /// Cost: some steps for each kept duration.
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

    /// Total of all certain durations in nanoseconds.
    #[must_use]
    pub fn total_nanos(&self) -> u128 {
        self.groups.iter().chain([&self.other]).map(|group| group.total).sum()
    }

    /// Histogram of the durations.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        if let Some(beyond) = &self.beyond {
            return beyond.histogram();
        }
        let mut histogram = Histogram::default();
        self.kept().into_iter().for_each(|piece| histogram.add_all(piece));
        histogram
    }

    /// Percentiles including spans that have not ended, for some of which a minimum duration is known.
    #[must_use]
    pub fn censored(&self, open: &[u64]) -> Option<Censored> {
        let count = self.unfinished_count();
        match &self.beyond {
            Some(beyond) => Censored::of_histogram(&beyond.histogram(), open, count),
            None => Censored::of(&self.kept(), open, count),
        }
    }

    /// Both the distribution and the histogram, for the cost of one.
    #[must_use]
    pub fn summary(&self) -> (Option<Distribution>, Histogram) {
        match &self.beyond {
            Some(beyond) => (beyond.distribution(), beyond.histogram()),
            None => Distribution::with_histogram(&self.kept()),
        }
    }

    /// Self time in nanoseconds, and the number of spans for which it is known: those that begin and end
    /// on one thread.
    #[must_use]
    pub fn own(&self) -> (u128, u64) {
        self.own
    }

    /// Certain spans by the number of open ones of the kind when they ended, without complete spans of
    /// one event. Empty unless [`SpanLimits::in_flight`] is set.
    #[must_use]
    pub fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// Statistics by key, in order of first occurrence.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (GroupKey, &Group)> {
        self.keys.things().iter().copied().zip(&self.groups)
    }

    /// Statistics of keys beyond the limit.
    #[must_use]
    pub fn other_keys(&self) -> &Group {
        &self.other
    }

    /// Sums by the thread that began the spans, an index into [`SpanPairer::threads`]; ascending. Empty
    /// unless [`SpanLimits::threads`] is set.
    ///
    /// [`SpanPairer::threads`]: crate::SpanPairer::threads
    #[must_use]
    pub fn threads(&self) -> &[(u32, OfThread)] {
        &self.threads
    }

    /// The slowest spans, slowest first; equal ones in time order.
    #[must_use]
    pub fn slowest(&self) -> Vec<Span> {
        let mut spans = self.slowest_spans.clone();
        spans.sort_by_key(|span| (Reverse(span.nanos()), span.begin.time));
        spans
    }
}

impl Group {
    /// Updates the longest span, of equal ones the earlier. Returns its length.
    fn lengthen(&mut self, span: &Span) -> u64 {
        if self.longest.is_none_or(|longest| longest.nanos() < span.nanos()) {
            self.longest = Some(*span);
        }
        self.longest.map_or(0, |longest| longest.nanos())
    }

    /// Adds the statistics of another. Cost: copies its kept durations.
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

    /// Certain durations; `None` if there are none, or too many to keep.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        Distribution::of(&[&self.kept]).filter(|_| self.is_kept)
    }
}
