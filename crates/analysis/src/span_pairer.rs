// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pairs the edges of many kinds of spans: which end belongs to which begin, with which certainty, and
//! the self time of each span. The one place that decides this.
//!
//! ```text
//! edges in the order of time ─┬─ with a key ─► Pairer of their kind ─┬─► SpanSink
//!                             └─ without ────► stack of their thread ┘
//! ```

use std::collections::HashSet;

use foldhash::fast::RandomState;
use lateralis_model::Writer;
use lateralis_units::Nanos;

use crate::early_ends::{EarlyEnd, EarlyEnds};
use crate::nesting::Stack;
use crate::{Edge, Ended, Gaps, Nesting, Numbering, Pairer, Side, Span, SpanCertainty, Wholes};

/// An edge of a span without a key on a known thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadEdge {
    /// Time.
    pub time: Nanos,
    /// Kind.
    pub kind: u32,
    /// Side.
    pub side: Side,
}

/// A span with both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairedSpan<T = ()> {
    /// Kind of the span.
    pub kind: u32,
    /// Both ends.
    pub span: Span,
    /// Tag of its begin.
    pub tag: T,
    /// Tag of its end.
    pub end_tag: T,
    /// The thread that began it, an index into [`SpanPairer::threads`].
    pub thread: u32,
    /// Whether it would stay the same if missing events were put back ([`SpanCertainty`]).
    pub is_certain: bool,
    /// Self time in nanoseconds; `None` if unknown: it ended on another thread, or events inside may be
    /// missing.
    pub own_nanos: Option<u64>,
}

/// A certain span without a key, whose events have no tags: it came in a run of its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanInRun {
    /// Kind of the span.
    pub kind: u32,
    /// Times of its begin and end.
    pub interval: (Nanos, Nanos),
    /// Its thread.
    pub writer: Option<Writer>,
    /// Its thread as an index into [`SpanPairer::threads`].
    pub thread: u32,
    /// Self time in nanoseconds.
    pub own_nanos: u64,
}

/// Receives the output of a [`SpanPairer`], in the order of the events that complete it.
pub trait SpanSink<T> {
    /// A span begins.
    #[inline]
    fn begins(&mut self, kind: u32, is_keyless: bool) {
        let _ = (kind, is_keyless);
    }

    /// A span has ended that began in the trace.
    fn pairs(&mut self, paired: &PairedSpan<T>);

    /// A span without a key has ended in a run of its thread, with no events missing.
    fn pairs_in_run(&mut self, span: &SpanInRun);

    /// A span ended that did not begin in the trace.
    fn orphan(&mut self, kind: u32, end: &Edge, tag: T) {
        let _ = (kind, end, tag);
    }

    /// A complete span of one event has ended: its self time is known, and whether that is certain.
    fn whole_ended(&mut self, ended: &Ended, is_certain: bool) {
        let _ = (ended, is_certain);
    }
}

/// Pairs the edges of many kinds of spans as they come.
///
/// Events of equal time in different streams have no order. An end belongs to a begin before it. An end
/// without one waits for a begin of equal time, and is an orphan once that time has passed
/// ([`EarlyEnds`]).
///
/// Cost: that of [`Pairer`] and [`Nesting`] plus a lookup. Memory: proportional to open spans, kinds and
/// threads.
#[derive(Debug)]
pub struct SpanPairer<T = ()> {
    /// Pairers of spans with keys, by kind.
    pairers: Vec<Pairer<T>>,
    /// By kind: whether spans with a key are outside of the nesting of threads.
    beside: Vec<bool>,
    /// Open spans of each thread; those without keys are paired here.
    nesting: Nesting<T>,
    wholes: Wholes,
    early: EarlyEnds<T>,
    threads: Numbering<Option<Writer>>,
    /// Threads by the low bits of their ids.
    recent: Vec<(Option<Writer>, u32)>,
    certainty: SpanCertainty,
    /// Kinds with begins whose ends were dropped for lack of room.
    unmatched: HashSet<u32, RandomState>,
    /// End of the time range; gaps after it have no effect.
    until: Nanos,
    /// Whether to compute self times of spans with keys.
    has_own: bool,
    has_runs: bool,
    is_disordered: bool,
}

/// Threads that are found without hashing.
const RECENT: usize = 1 << 12;

impl<T: Copy + Default> SpanPairer<T> {
    /// For events in a time range, with these gaps. `has_own`: whether to compute self times.
    #[must_use]
    pub fn new((begin, end): (Nanos, Nanos), gaps: Gaps, has_own: bool) -> Self {
        Self {
            pairers: Vec::new(),
            beside: Vec::new(),
            nesting: Nesting::default(),
            wholes: Wholes::default(),
            early: EarlyEnds::default(),
            threads: Numbering::default(),
            recent: Vec::new(),
            certainty: SpanCertainty::new(begin, gaps),
            unmatched: HashSet::default(),
            until: end,
            has_own,
            has_runs: false,
            is_disordered: false,
        }
    }

    /// Adds a kind, in the order of their numbers. `is_beside_threads`: spans with a key are outside of
    /// the nesting of threads, so that they take no self time from other spans, and lose none.
    pub fn add_kind(&mut self, is_beside_threads: bool) {
        self.beside.push(is_beside_threads);
        self.pairers.push(Pairer::default());
    }

    /// Marks the spans of a kind as uncertain: their ends cannot be assigned to begins.
    pub fn set_uncertain(&mut self, kind: u32) {
        self.certainty.set_uncertain(kind);
    }

    /// Whether unfinished spans of a kind may have ended: their ends had the time of their begins, came
    /// first, and were too many to keep.
    #[must_use]
    pub fn is_unmatched(&self, kind: u32) -> bool {
        self.unmatched.contains(&kind)
    }

    /// Number of known kinds.
    #[must_use]
    pub fn kind_count(&self) -> usize {
        self.pairers.len()
    }

    /// Gaps and doubts.
    #[must_use]
    pub fn certainty(&self) -> &SpanCertainty {
        &self.certainty
    }

    /// Replaces the known gaps.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.certainty.set_gaps(gaps);
    }

    /// Threads by their numbers in [`PairedSpan::thread`].
    #[must_use]
    pub fn threads(&self) -> &[Option<Writer>] {
        self.threads.things()
    }

    /// Whether a run was pushed out of order: then results may be wrong, and all edges must be pushed
    /// again individually.
    #[must_use]
    pub fn is_disordered(&self) -> bool {
        self.is_disordered
    }

    #[inline]
    fn know(&mut self, kind: u32) {
        if self.pairers.len() <= kind as usize {
            self.learn(kind);
        }
    }

    #[cold]
    fn learn(&mut self, kind: u32) {
        while self.pairers.len() <= kind as usize {
            self.add_kind(false);
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
            // Unused entries hold the first thread.
            self.recent = vec![(writer, number); RECENT];
        }
        self.recent[place] = (writer, number);
        number
    }

    /// Assigns a thread to another process: its open spans without a key stay its own.
    pub fn reassign(&mut self, from: Writer, to: Writer) {
        self.threads.rename(&Some(from), Some(to));
    }

    /// Notes an edge that is left out because its thread is unknown.
    pub fn doubt(&mut self, kind: u32, time: Nanos) {
        self.certainty.doubt(kind, time);
    }

    /// Notes the begin of a span whose thread is unknown.
    pub fn doubt_own(&mut self, time: Nanos) {
        self.certainty.doubt_own(time);
    }

    /// Processes the next edge in time order, of this stream.
    ///
    /// Cost: without a key, a step on the stack of its thread.
    pub fn push(
        &mut self,
        kind: u32,
        edge: Edge,
        (stream, tag): (u32, T),
        sink: &mut impl SpanSink<T>,
    ) {
        self.pass(edge.time, sink);
        let thread = self.thread(edge.writer);
        self.reach(thread, edge.time, true, sink);
        self.know(kind);
        if edge.key.is_none() {
            let of = ThreadEdge { time: edge.time, kind, side: edge.side };
            if edge.side == Side::Begin
                && !self.early.is_empty()
                && self.begin_of_early((kind, thread), &edge, (stream, tag), sink)
            {
                return;
            }
            let Self { nesting, certainty, early, .. } = self;
            let stack = nesting.stack(thread);
            let who = (edge.writer, thread);
            return keyless(stack, (certainty, early), who, &of, (stream, tag), sink);
        }
        let is_nested = self.has_own && !self.beside[kind as usize];
        if edge.side == Side::Begin {
            if !self.early.is_empty()
                && self.begin_of_early((kind, thread), &edge, (stream, tag), sink)
            {
                return;
            }
            if is_nested {
                self.nesting.begin(thread, kind, edge.key, edge.time);
            }
            sink.begins(kind, false);
        }
        let end_tag = tag;
        let paired = self.pairers[kind as usize].push_tagged(edge, stream, tag);
        let Some((span, tag)) = paired else {
            if edge.side == Side::End {
                self.early.wait(EarlyEnd { kind, thread, edge, stream, tag: end_tag }, sink);
            }
            return;
        };
        let (begin, writer) = (span.begin.time, span.begin.writer);
        let beginner = if writer == edge.writer { thread } else { self.thread(writer) };
        let own = if !self.has_own {
            None
        } else if !is_nested {
            Some(span.nanos())
        } else if beginner == thread {
            self.nesting.end(thread, kind, edge.key, begin, edge.time)
        } else {
            // Complete spans of that thread may have ended meanwhile: the time since is not theirs.
            self.reach(beginner, edge.time, true, sink);
            // The events of the thread may already have been processed beyond this time.
            self.is_disordered |= self.has_runs && self.nesting.until(beginner) >= edge.time;
            self.nesting.leave(beginner, kind, edge.key, begin, edge.time);
            None
        };
        let is_certain = self.certainty.is_certain(kind, &span);
        let own_nanos = own.filter(|_| self.certainty.is_own_certain(begin, edge.time));
        let thread = beginner;
        sink.pairs(&PairedSpan { kind, span, tag, end_tag, thread, is_certain, own_nanos });
    }

    /// Advances the time: ends waiting for a begin of an earlier time have none.
    #[inline]
    pub fn pass(&mut self, time: Nanos, sink: &mut impl SpanSink<T>) {
        if !self.early.is_empty() {
            self.early.pass(Some(time), sink);
        }
    }

    /// Whether an end waits for a begin of equal time.
    #[must_use]
    #[inline]
    pub fn has_early_ends(&self) -> bool {
        !self.early.is_empty()
    }

    /// A span begins. Returns whether it has ended at the same time, in another stream.
    #[cold]
    fn begin_of_early(
        &mut self,
        (kind, thread): (u32, u32),
        begin: &Edge,
        (stream, tag): (u32, T),
        sink: &mut impl SpanSink<T>,
    ) -> bool {
        let Some(early) = self.early.take((kind, thread), begin, stream) else {
            if self.early.has_dropped(stream) {
                self.certainty.set_uncertain(kind);
                self.unmatched.insert(kind);
            }
            return false;
        };
        sink.begins(kind, begin.key.is_none());
        let span = Span { begin: *begin, end: early.edge };
        let is_certain = self.certainty.is_certain(kind, &span);
        let is_own_certain = self.certainty.is_own_certain(begin.time, begin.time);
        let own_nanos = Some(0).filter(|_| self.has_own && is_own_certain);
        let end_tag = early.tag;
        sink.pairs(&PairedSpan { kind, span, tag, end_tag, thread, is_certain, own_nanos });
        true
    }

    /// Processes consecutive edges without keys of one thread, at the turn of the first: events of other
    /// threads in between may come later. Equivalent to [`SpanPairer::push`] for each of them if the
    /// thread has no other events until the last of them, and no events are missing.
    ///
    /// Cost: a lookup, and a step on the stack of the thread for each.
    pub fn push_run(
        &mut self,
        writer: Option<Writer>,
        edges: &[ThreadEdge],
        (stream, tag): (u32, T),
        sink: &mut impl SpanSink<T>,
    ) {
        if let Some(first) = edges.first() {
            self.pass(first.time, sink);
        }
        self.has_runs = true;
        edges.iter().map(|edge| edge.kind).max().into_iter().for_each(|kind| self.know(kind));
        if !self.wholes.is_empty() {
            for &ThreadEdge { time, kind, side } in edges {
                let edge = Edge { time, side, key: None, writer };
                self.push(kind, edge, (stream, tag), sink);
            }
            return;
        }
        let thread = self.thread(writer);
        let Self { nesting, certainty, early, .. } = self;
        let stack = nesting.stack(thread);
        if !certainty.gaps().is_empty() {
            let who = (writer, thread);
            let doubts = (certainty, early);
            for edge in edges {
                keyless(stack, (&mut *doubts.0, &mut *doubts.1), who, edge, (stream, tag), sink);
            }
            return;
        }
        for &ThreadEdge { time, kind, side } in edges {
            if side == Side::Begin {
                stack.begin(kind, None, (time, stream), tag);
                sink.begins(kind, true);
                continue;
            }
            // No other stream has an event of this thread at the same time; otherwise this would not be a
            // run.
            match stack.end_youngest(kind, (time, stream)) {
                Some((begin, own_nanos, _)) => {
                    let interval = (begin, time);
                    sink.pairs_in_run(&SpanInRun { kind, interval, writer, thread, own_nanos });
                }
                None => sink.orphan(kind, &Edge { time, side, key: None, writer }, tag),
            }
        }
    }

    /// Processes a complete span, in the order of begins; returns its thread.
    pub fn push_whole(&mut self, kind: u32, span: &Span, sink: &mut impl SpanSink<T>) -> u32 {
        let thread = self.thread(span.begin.writer);
        self.know(kind);
        if self.has_own {
            self.reach(thread, span.begin.time, false, sink);
            self.wholes.begin(thread, kind, span.begin.time, span.end.time);
        }
        thread
    }

    #[inline]
    fn reach(&mut self, thread: u32, time: Nanos, is_edge: bool, sink: &mut impl SpanSink<T>) {
        let Self { nesting, wholes, certainty, until, .. } = self;
        wholes.reach(nesting, thread, time, is_edge, |ended| {
            let end = ended.end.min(*until);
            sink.whole_ended(&ended, certainty.is_own_certain(ended.begin, end));
        });
    }

    /// Ends all complete spans whose ends are still to come, and all waiting ends.
    pub fn finish(&mut self, sink: &mut impl SpanSink<T>) {
        self.early.pass(None, sink);
        let Self { nesting, wholes, certainty, until, .. } = self;
        wholes.finish(nesting, |ended| {
            let end = ended.end.min(*until);
            sink.whole_ended(&ended, certainty.is_own_certain(ended.begin, end));
        });
    }

    /// Open spans: their kinds, begin events and tags; by kind, earliest first.
    ///
    /// Cost: proportional to open spans.
    #[must_use]
    pub fn unfinished(&self) -> Vec<(u32, Edge, T)> {
        let keyed = (0..).zip(&self.pairers).flat_map(|(kind, of)| {
            of.unfinished_tagged().into_iter().map(move |(edge, tag)| (kind, edge, tag))
        });
        let threads = self.threads.things();
        let keyless = self.nesting.keyless().map(|(thread, kind, time, tag)| {
            let writer = threads.get(thread as usize).copied().flatten();
            (kind, Edge { time, side: Side::Begin, key: None, writer }, tag)
        });
        let mut all: Vec<_> = keyed.chain(keyless).collect();
        all.sort_by_key(|(kind, edge, _)| (*kind, edge.time, edge.key, edge.writer));
        all
    }

    /// Gives up all open spans: no later end belongs to them. Returns the same as
    /// [`SpanPairer::unfinished`].
    pub fn take_unfinished(&mut self, sink: &mut impl SpanSink<T>) -> Vec<(u32, Edge, T)> {
        self.finish(sink);
        let all = self.unfinished();
        self.nesting = Nesting::default();
        self.pairers.iter_mut().for_each(|pairer| *pairer = Pairer::default());
        all
    }

    /// Gives up the open spans of kinds that have more than `most` of them.
    pub fn bound(&mut self, most: u64) -> Vec<(u32, Edge, T)> {
        let mut keyless = vec![0_u64; self.pairers.len()];
        self.nesting.keyless().for_each(|(_, kind, ..)| keyless[kind as usize] += 1);
        let is_keyed_many = |kind: u32, of: &[Pairer<T>]| {
            of.get(kind as usize).is_some_and(|of| of.unfinished_count() > most)
        };
        let is_many = |kind: u32| keyless.get(kind as usize).is_some_and(|count| *count > most);
        let of = &self.pairers;
        if !(0..of.len() as u32).any(|kind| is_many(kind) || is_keyed_many(kind, of)) {
            return Vec::new();
        }
        let mut given_up = self.unfinished();
        given_up.retain(|(kind, edge, _)| match edge.key {
            Some(_) => is_keyed_many(*kind, of),
            None => is_many(*kind),
        });
        self.nesting.forget(true, |kind| is_keyed_many(kind, &self.pairers));
        self.nesting.forget(false, is_many);
        for pairer in self.pairers.iter_mut().filter(|of| of.unfinished_count() > most) {
            *pairer = Pairer::default();
        }
        given_up
    }
}

/// Spans without a key belong to their thread: the youngest open one of the kind ends.
fn keyless<T: Copy + Default>(
    stack: &mut Stack<T>,
    (certainty, early): (&mut SpanCertainty, &mut EarlyEnds<T>),
    (writer, thread): (Option<Writer>, u32),
    &ThreadEdge { time, kind, side }: &ThreadEdge,
    (stream, tag): (u32, T),
    sink: &mut impl SpanSink<T>,
) {
    if side == Side::Begin {
        stack.begin(kind, None, (time, stream), tag);
        return sink.begins(kind, true);
    }
    let edge = |time, side| Edge { time, side, key: None, writer };
    let end_tag = tag;
    let Some(ended) = stack.end_youngest(kind, (time, stream)) else {
        let edge = edge(time, side);
        return early.wait(EarlyEnd { kind, thread, edge, stream, tag }, sink);
    };
    let (begin, own, tag) = ended;
    let span = Span { begin: edge(begin, Side::Begin), end: edge(time, side) };
    let is_certain = certainty.is_certain(kind, &span);
    let own_nanos = Some(own).filter(|_| certainty.is_own_certain(begin, time));
    sink.pairs(&PairedSpan { kind, span, tag, end_tag, thread, is_certain, own_nanos });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Own(Vec<u64>);

    impl SpanSink<()> for Own {
        fn pairs(&mut self, _: &PairedSpan<()>) {}

        fn pairs_in_run(&mut self, _: &SpanInRun) {}

        fn whole_ended(&mut self, ended: &Ended, _: bool) {
            self.0.push(ended.own_nanos);
        }
    }

    /// Found by fuzzing: an end on another thread came after a complete span of this one had ended, and
    /// the time in between became its own.
    #[test]
    fn a_span_that_another_thread_ends_gives_no_time_to_whole_spans_that_ended_before() {
        const HELD: u32 = 0;
        const WHOLE: u32 = 1;
        let edge = |time, side, tid| {
            let writer = Some(Writer { pid: 0, tid });
            Edge { time: Nanos(time), side, key: Some(7), writer }
        };
        let mut pairer = SpanPairer::new((Nanos(0), Nanos(i64::MAX)), Gaps::default(), true);
        (0..2).for_each(|_| pairer.add_kind(false));
        let mut own = Own::default();
        pairer.push(HELD, edge(10, Side::Begin, 1), (0, ()), &mut own);
        let whole = Span { begin: edge(25, Side::Begin, 1), end: edge(185, Side::End, 1) };
        pairer.push_whole(WHOLE, &whole, &mut own);
        // Nothing ends, but the thread has an event during the complete span.
        pairer.push(HELD, Edge { key: Some(4), ..edge(70, Side::End, 1) }, (0, ()), &mut own);
        pairer.push(HELD, edge(268, Side::End, 2), (0, ()), &mut own);
        pairer.finish(&mut own);
        assert_eq!(own.0, [160]);
    }

    /// Certain and other spans by begin and end, and the number of orphans.
    #[derive(Default)]
    struct Found(Vec<(i64, i64, bool)>, u32);

    impl SpanSink<()> for Found {
        fn pairs(&mut self, of: &PairedSpan<()>) {
            self.0.push((of.span.begin.time.0, of.span.end.time.0, of.is_certain));
        }

        fn pairs_in_run(&mut self, _: &SpanInRun) {}

        fn orphan(&mut self, _: u32, _: &Edge, (): ()) {
            self.1 += 1;
        }
    }

    /// Pairs edges given as stream, time, side and thread.
    fn found(
        edges: &[(u32, i64, Side, u32)],
        key: Option<u64>,
    ) -> (Vec<(i64, i64, bool)>, u32, usize) {
        let mut pairer = SpanPairer::new((Nanos(0), Nanos(i64::MAX)), Gaps::default(), true);
        pairer.add_kind(false);
        let mut found = Found::default();
        for &(stream, time, side, tid) in edges {
            let edge =
                Edge { time: Nanos(time), side, key, writer: Some(Writer { pid: tid, tid }) };
            pairer.push(0, edge, (stream, ()), &mut found);
        }
        let open = pairer.take_unfinished(&mut found).len();
        (found.0, found.1, open)
    }

    #[test]
    fn edges_of_one_time_are_one_span_whichever_stream_comes_first() {
        use Side::{Begin, End};
        for key in [None, Some(7)] {
            let (begin, end) = ((1, 5, Begin, 1), (0, 5, End, 1));
            let one = (vec![(5, 5, true)], 0, 0);
            assert_eq!(found(&[end, begin], key), one);
            assert_eq!(found(&[begin, end], key), one);
            // Within one stream the order is known.
            assert_eq!(found(&[(1, 5, End, 1), begin], key), (vec![], 1, 1));
            // An end of an earlier time does not wait.
            assert_eq!(found(&[(0, 4, End, 1), begin], key), (vec![], 1, 1));
            // The span that began before ends before the one that begins now.
            let (before, last) = ((2, 3, Begin, 1), (1, 9, End, 1));
            let both = (vec![(3, 5, true), (5, 9, true)], 0, 0);
            assert_eq!(found(&[before, begin, end, last], key), both);
            assert_eq!(found(&[before, end, begin, last], key), both);
        }
        // On any threads.
        let [before, end] = [(2, 3, Begin, 1), (0, 5, End, 2)];
        let [begin, last] = [(1, 5, Begin, 2), (1, 9, End, 2)];
        let both = (vec![(3, 5, true), (5, 9, true)], 0, 0);
        assert_eq!(found(&[before, begin, end, last], Some(7)), both);
        assert_eq!(found(&[before, end, begin, last], Some(7)), both);
    }

    /// More ends of equal time than there is room for: the results that depend on the limit are not
    /// certain.
    #[test]
    fn a_million_ends_of_one_time_before_their_beginnings_are_bounded_and_not_certain() {
        let count = 1_000_000;
        let mut pairer = SpanPairer::new((Nanos(0), Nanos(i64::MAX)), Gaps::default(), true);
        pairer.add_kind(false);
        let mut found = Found::default();
        let writer = Some(Writer { pid: 1, tid: 1 });
        for (stream, side) in [(0, Side::End), (1, Side::Begin)] {
            for key in (0..count).map(Some) {
                let edge = Edge { time: Nanos(5), side, key, writer };
                pairer.push(0, edge, (stream, ()), &mut found);
            }
        }
        assert_eq!(found.0.len() + found.1 as usize, count as usize);
        let edge = |time, side| Edge { time: Nanos(time), side, key: Some(count), writer };
        pairer.push(0, edge(6, Side::Begin), (0, ()), &mut found);
        pairer.push(0, edge(7, Side::End), (0, ()), &mut found);
        assert_eq!(found.0.last(), Some(&(6, 7, false)));
        assert!(pairer.is_unmatched(0));
    }

    /// Two streams have more ends than there is room for: any of them may belong to a begin in the first.
    #[test]
    fn ends_of_two_streams_for_which_there_is_no_room_leave_begins_of_both_unmatched() {
        let count = 70_000;
        let mut pairer = SpanPairer::new((Nanos(0), Nanos(i64::MAX)), Gaps::default(), true);
        pairer.add_kind(false);
        let mut found = Found::default();
        let writer = Some(Writer { pid: 1, tid: 1 });
        let mut push = |stream, side, key| {
            let edge = Edge { time: Nanos(5), side, key: Some(key), writer };
            pairer.push(0, edge, (stream, ()), &mut found);
        };
        (0..count).for_each(|key| push(0, Side::End, key));
        push(1, Side::End, count);
        push(0, Side::Begin, count);
        assert!(pairer.is_unmatched(0));
    }
}
