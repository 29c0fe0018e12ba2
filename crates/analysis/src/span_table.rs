// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans of many kinds: how many, how long, which key, whose, and which stand out.
//!
//! Spans that may be wrong because events are missing inside them are counted apart and
//! leave all durations alone: what is told about durations is of spans that are certain.

use lateralis_model::{Quality, Writer};
use lateralis_units::Nanos;

use crate::credits::{Credits, CreditsOf};
use crate::nesting::Stack;
use crate::{
    Edge, Ended, Gaps, Nesting, Numbering, Side, Span, SpanCertainty, SpanKind, SpanLimits, Wholes,
};

/// An edge of a span without a key, where it is known whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadEdge {
    /// When.
    pub time: Nanos,
    /// Of which kind.
    pub kind: u32,
    /// Which side.
    pub side: Side,
}

/// Pairs the edges of many kinds of spans as they come and adds them up.
///
/// Cost: that of [`Pairer`] and [`Nesting`] and a look-up. Memory: by open spans, and as
/// [`SpanLimits`] says.
#[derive(Debug)]
pub struct SpanTable {
    kinds: Vec<SpanKind>,
    /// Of each kind whether those with a key are in no thread.
    beside: Vec<bool>,
    nesting: Nesting,
    wholes: Wholes,
    threads: Numbering<Option<Writer>>,
    /// Threads by the low bits of their numbers.
    recent: Vec<(Option<Writer>, u32)>,
    credits: Credits,
    certainty: SpanCertainty,
    limits: SpanLimits,
    has_runs: bool,
    is_disordered: bool,
}

/// Threads that are found without hashing.
const RECENT: usize = 1 << 12;

impl SpanTable {
    /// Of what happens from `begin` on, with these stretches of missing events.
    #[must_use]
    pub fn new(begin: Nanos, gaps: Gaps, limits: SpanLimits) -> Self {
        Self {
            kinds: Vec::new(),
            beside: Vec::new(),
            nesting: Nesting::default(),
            wholes: Wholes::default(),
            threads: Numbering::default(),
            recent: Vec::new(),
            credits: Credits::default(),
            certainty: SpanCertainty::new(begin, gaps),
            limits,
            has_runs: false,
            is_disordered: false,
        }
    }

    /// Makes kinds known: in the order of their numbers, each with whether equal keys of
    /// two processes are two things, and whether those with a key are beside what their threads do: they
    /// take no time from it, and nothing takes any from them.
    pub fn add_kind(&mut self, is_per_process: bool, is_beside_threads: bool) {
        self.beside.push(is_beside_threads);
        self.kinds.push(SpanKind::new(self.limits, is_per_process));
    }

    #[inline]
    fn kind(&mut self, kind: u32) -> &mut SpanKind {
        self.know(kind);
        &mut self.kinds[kind as usize]
    }

    #[inline]
    fn know(&mut self, kind: u32) {
        while self.kinds.len() <= kind as usize {
            self.add_kind(true, false);
        }
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

    /// A thread turns out to be of another process than it was taken for; see
    /// [`Pairer::reassign`].
    ///
    /// [`Pairer::reassign`]: crate::Pairer::reassign
    pub fn reassign(&mut self, from: Writer, to: Writer) {
        self.threads.rename(&Some(from), Some(to));
    }

    /// Once all edges are pushed: whole spans that are open end, and kinds learn of their
    /// threads.
    pub fn finish(&mut self) {
        let Self { kinds, nesting, wholes, certainty, .. } = self;
        wholes.finish(nesting, |ended| whole_ended(kinds, certainty, ended));
        for (thread, kind, of) in self.credits.take() {
            self.kinds[kind as usize].credit(thread, of);
        }
        self.kinds.iter_mut().for_each(SpanKind::settle);
    }

    /// Whether a run has been pushed out of its turn: then numbers may be wrong, and all must
    /// be told again, edge by edge.
    #[must_use]
    pub fn is_disordered(&self) -> bool {
        self.is_disordered
    }

    /// Takes the next edge in the order of time; gives the span that it ends.
    ///
    /// Cost: without a key, a step on the stack of its thread.
    pub fn push(&mut self, kind: u32, edge: Edge) -> Option<Span> {
        let thread = self.thread(edge.writer);
        self.reach(thread, edge.time, true);
        if edge.key.is_none() {
            let edge_of = ThreadEdge { time: edge.time, kind, side: edge.side };
            self.know(kind);
            return self.lane(thread).push(edge.writer, edge_of);
        }
        self.know(kind);
        let is_beside = self.beside[kind as usize];
        if edge.side == Side::Begin && !is_beside {
            self.nesting.begin(thread, kind, edge.key, edge.time);
        }
        let span = self.kind(kind).pairer.push(edge)?;
        let (begin, writer) = (span.begin.time, span.begin.writer);
        let beginner = if writer == edge.writer { thread } else { self.thread(writer) };
        let own = if is_beside {
            Some(span.nanos())
        } else if beginner == thread {
            self.nesting.end(thread, kind, edge.key, begin, edge.time)
        } else {
            // The thread may be told further than this already.
            self.is_disordered |= self.has_runs && self.nesting.until(beginner) >= edge.time;
            self.nesting.leave(beginner, kind, edge.key, begin, edge.time);
            None
        };
        let is_certain = self.certainty.is_certain(kind, &span);
        let own = own.filter(|_| self.certainty.is_own_certain(begin, edge.time));
        if is_certain {
            self.kind(kind).under_way(span.nanos());
        }
        self.add(kind, span, beginner, is_certain, own);
        Some(span)
    }

    /// Takes edges without keys that follow each other on one thread, when it is the turn of the
    /// first: what other threads do meanwhile may come later. Gives the same as
    /// [`SpanTable::push`] for each of them, but for [`SpanKind::in_flight`], if until the last of
    /// them the thread does nothing else; and if no events are missing.
    ///
    /// Cost: a look-up, and a step on the stack of the thread for each.
    pub fn push_run(&mut self, writer: Option<Writer>, edges: &[ThreadEdge]) {
        self.has_runs = true;
        edges.iter().map(|edge| edge.kind).max().into_iter().for_each(|kind| self.know(kind));
        let thread = self.thread(writer);
        let is_certain = self.certainty.gaps().is_empty() && !self.limits.in_flight;
        if self.wholes.is_empty() {
            let mut lane = self.lane(thread);
            match is_certain {
                true => edges.iter().for_each(|edge| lane.push_certain(writer, *edge)),
                false => edges.iter().for_each(|edge| _ = lane.push(writer, *edge)),
            }
            return;
        }
        for &ThreadEdge { time, kind, side } in edges {
            self.push(kind, Edge { time, side, key: None, writer });
        }
    }

    #[inline]
    fn lane(&mut self, thread: u32) -> Lane<'_> {
        let Self { kinds, nesting, credits, certainty, limits, .. } = self;
        let stack = nesting.stack(thread);
        let credits = limits.threads.then(|| credits.of(thread));
        Lane { kinds, stack, credits, certainty }
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
        self.kind(kind).add(&span, is_certain, own);
        if is_certain && self.limits.threads {
            self.credits.of(thread).add(kind, span.nanos());
        }
    }

    /// Spans that have begun and not ended: their kinds, and the events that began them.
    ///
    /// Cost: by open spans.
    #[must_use]
    pub fn unfinished(&self) -> Vec<(u32, Edge)> {
        let keyed = (0..).zip(&self.kinds).flat_map(|(kind, of)| {
            of.pairer.unfinished().into_iter().map(move |edge| (kind, edge))
        });
        let threads = self.threads.things();
        let keyless = self.nesting.keyless().map(|(thread, kind, time)| {
            let writer = threads.get(thread as usize).copied().flatten();
            (kind, Edge { time, side: Side::Begin, key: None, writer })
        });
        keyed.chain(keyless).collect()
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

/// What a thread does, and where it is counted.
struct Lane<'t> {
    kinds: &'t mut [SpanKind],
    stack: &'t mut Stack,
    /// Where they are wanted.
    credits: Option<CreditsOf<'t>>,
    certainty: &'t mut SpanCertainty,
}

impl Lane<'_> {
    /// The same as [`Lane::push`], where nothing is missing and nobody wants to know how many are
    /// open.
    #[inline]
    fn push_certain(&mut self, writer: Option<Writer>, edge: ThreadEdge) {
        let ThreadEdge { time, kind, side } = edge;
        let of = &mut self.kinds[kind as usize];
        if side == Side::Begin {
            self.stack.begin(kind, None, time);
            of.keyless.open_count += 1;
            return;
        }
        let Some((begin, own)) = self.stack.end_youngest(kind, time) else {
            of.keyless_orphan_count += 1;
            return;
        };
        of.keyless.open_count -= 1;
        of.keyless_ended_on_its_thread((begin, time), writer, own);
        if let Some(credits) = &mut self.credits {
            credits.add(kind, time.since(begin).max(0) as u64);
        }
    }

    /// Spans without a key are of their thread: the youngest open one of the kind ends. The kind
    /// is known.
    fn push(&mut self, writer: Option<Writer>, edge: ThreadEdge) -> Option<Span> {
        let ThreadEdge { time, kind, side } = edge;
        let of = &mut self.kinds[kind as usize];
        if side == Side::Begin {
            self.stack.begin(kind, None, time);
            of.keyless.open_count += 1;
            return None;
        }
        let Some((begin, own)) = self.stack.end_youngest(kind, time) else {
            of.keyless_orphan_count += 1;
            return None;
        };
        of.keyless.open_count -= 1;
        let edge = |time, side| Edge { time, side, key: None, writer };
        let span = Span { begin: edge(begin, Side::Begin), end: edge(time, Side::End) };
        let is_certain = self.certainty.is_certain(kind, &span);
        let is_own = self.certainty.is_own_certain(begin, time);
        if is_certain {
            of.under_way(span.nanos());
            if let Some(credits) = &mut self.credits {
                credits.add(kind, span.nanos());
            }
        }
        of.add(&span, is_certain, is_own.then_some(own));
        Some(span)
    }
}

/// The time of its own, if nothing is missing that could be inside.
fn whole_ended(kinds: &mut [SpanKind], certainty: &SpanCertainty, ended: Ended) {
    let is_certain = certainty.is_own_certain(ended.begin, ended.end);
    if let Some(kind) = kinds.get_mut(ended.kind as usize).filter(|_| is_certain) {
        kind.own_for(ended.own_nanos);
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
