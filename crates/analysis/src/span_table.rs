// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statistics of spans of many kinds: counts, durations, keys, threads, and outliers.
//!
//! Spans that may be wrong because events are missing inside them are counted separately and not used for
//! durations: statistics of durations are those of certain spans.

use lateralis_model::Quality;
use lateralis_units::Nanos;

use crate::credits::Credits;
use crate::{Edge, Ended, Gaps, PairedSpan, Span, SpanInRun, SpanKind, SpanLimits, SpanSink};

/// Adds up the spans of many kinds as a [`SpanPairer`](crate::SpanPairer) produces them.
///
/// Cost: constant. Memory: bounded by [`SpanLimits`].
#[derive(Debug)]
pub struct SpanTable {
    kinds: Vec<SpanKind>,
    credits: Credits,
    limits: SpanLimits,
}

impl SpanTable {
    /// An empty table.
    #[must_use]
    pub fn new(limits: SpanLimits) -> Self {
        Self { kinds: Vec::new(), credits: Credits::default(), limits }
    }

    /// Adds kinds, in the order of their numbers, each with whether equal keys of two processes mean
    /// different objects.
    pub fn add_kind(&mut self, is_per_process: bool) {
        self.kinds.push(SpanKind::new(self.limits, is_per_process));
    }

    #[inline]
    fn kind(&mut self, kind: u32) -> &mut SpanKind {
        if self.kinds.len() <= kind as usize {
            self.know(kind);
        }
        &mut self.kinds[kind as usize]
    }

    #[cold]
    fn know(&mut self, kind: u32) {
        while self.kinds.len() <= kind as usize {
            self.add_kind(true);
        }
    }

    /// Completes the statistics by thread, after all spans.
    pub fn finish(&mut self) {
        for (thread, kind, of) in self.credits.take() {
            self.kind(kind).credit(thread, of);
        }
        self.kinds.iter_mut().for_each(SpanKind::settle);
    }

    /// Adds a complete span of one event. Its duration is certain, as its producer measured it.
    pub fn add_whole(&mut self, kind: u32, span: &Span, thread: u32) {
        self.add(kind, span, thread, true, None);
    }

    /// Adds an end without a begin.
    pub fn add_orphan(&mut self, kind: u32) {
        self.kind(kind).is_orphan();
    }

    fn add(&mut self, kind: u32, span: &Span, thread: u32, is_certain: bool, own: Option<u64>) {
        self.kind(kind).add(span, is_certain, own);
        if is_certain && self.limits.threads {
            self.credits.add(thread, kind, span.nanos());
        }
    }

    /// Kinds by number; their statistics by thread are complete after [`SpanTable::finish`].
    #[must_use]
    pub fn kinds(&self) -> &[SpanKind] {
        &self.kinds
    }
}

impl<T> SpanSink<T> for SpanTable {
    #[inline]
    fn begins(&mut self, kind: u32, is_keyless: bool) {
        self.kind(kind).begins(is_keyless);
    }

    fn pairs(&mut self, paired: &PairedSpan<T>) {
        let PairedSpan { kind, span, thread, is_certain, own_nanos, .. } = paired;
        let of = self.kind(*kind);
        of.ends(span.begin.key.is_none());
        if *is_certain {
            of.under_way(span.nanos());
        }
        self.add(*kind, span, *thread, *is_certain, *own_nanos);
    }

    #[inline]
    fn pairs_in_run(&mut self, span: &SpanInRun) {
        let SpanInRun { kind, interval: (begin, end), writer, thread, own_nanos } = *span;
        let nanos = end.since(begin).max(0) as u64;
        let of = self.kind(kind);
        of.keyless.open_count = of.keyless.open_count.saturating_sub(1);
        of.under_way(nanos);
        of.keyless_ended_on_its_thread((begin, end), writer, own_nanos);
        if self.limits.threads {
            self.credits.add(thread, kind, nanos);
        }
    }

    fn orphan(&mut self, kind: u32, _: &Edge, _: T) {
        self.add_orphan(kind);
    }

    fn whole_ended(&mut self, ended: &Ended, is_certain: bool) {
        if let Some(kind) = self.kinds.get_mut(ended.kind as usize).filter(|_| is_certain) {
            kind.own_for(ended.own_nanos);
        }
    }
}

/// Quality of the statistics of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanQuality {
    /// Of counts, totals and maxima.
    pub sum: Quality,
    /// Of everything else: minima, means, percentiles, unfinished ones, orphans.
    pub value: Quality,
}

impl SpanQuality {
    /// For everything between two times.
    #[must_use]
    pub fn new(gaps: &Gaps, begin: Nanos, end: Nanos) -> Self {
        Self { sum: gaps.of_count(begin, end), value: gaps.of_value(begin, end) }
    }
}

#[cfg(test)]
#[path = "span_table_tests.rs"]
mod tests;
