// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the edges of many kinds of spans to spans: which end belongs to which beginning, how sure
//! that is, and how long each span was the innermost of its thread. The one place that decides it.
//!
//! ```text
//! edges in the order of time ─┬─ with a key ─► Pairer of their kind ─┬─► SpanSink
//!                             └─ without ────► stack of their thread ┘
//! ```

use lateralis_model::Writer;
use lateralis_units::Nanos;

use crate::nesting::Stack;
use crate::{Edge, Ended, Gaps, Nesting, Numbering, Pairer, Side, Span, SpanCertainty, Wholes};

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

/// A span with both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairedSpan<T = ()> {
    /// Its kind.
    pub kind: u32,
    /// Both ends.
    pub span: Span,
    /// The tag of its beginning.
    pub tag: T,
    /// The thread that began it, an index into [`SpanPairer::threads`].
    pub thread: u32,
    /// Whether it is one if missing events are put back ([`SpanCertainty`]).
    pub is_certain: bool,
    /// Nanoseconds in which it was the innermost span of its thread; `None` where that is not known:
    /// it ended on another thread, or events are missing that may have been inside.
    pub own_nanos: Option<u64>,
}

/// A span without a key, certain, whose events have no tag: they came in a run of their thread, fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanInRun {
    /// Its kind.
    pub kind: u32,
    /// When it began and ended.
    pub interval: (Nanos, Nanos),
    /// Whose it is.
    pub writer: Option<Writer>,
    /// The same as an index into [`SpanPairer::threads`].
    pub thread: u32,
    /// Nanoseconds in which it was the innermost span of its thread.
    pub own_nanos: u64,
}

/// Takes what a [`SpanPairer`] finds, in the order of the events that tell it.
pub trait SpanSink<T> {
    /// A span begins.
    #[inline]
    fn begins(&mut self, kind: u32, is_keyless: bool) {
        let _ = (kind, is_keyless);
    }

    /// A span has ended that began in the trace.
    fn pairs(&mut self, paired: &PairedSpan<T>);

    /// One without a key has ended in a run of its thread, where nothing is missing.
    fn pairs_in_run(&mut self, span: &SpanInRun);

    /// A span ends that did not begin in the trace.
    fn orphan(&mut self, kind: u32, end: &Edge) {
        let _ = (kind, end);
    }

    /// The end of a span has come that was told as a whole: the time of its own is known, and
    /// whether that is certain.
    fn whole_ended(&mut self, ended: &Ended, is_certain: bool) {
        let _ = (ended, is_certain);
    }
}

/// Pairs the edges of many kinds of spans as they come.
///
/// Cost: that of [`Pairer`] and [`Nesting`] and a look-up. Memory: by open spans, kinds and threads.
#[derive(Debug)]
pub struct SpanPairer<T = ()> {
    /// Of spans with keys, by kind.
    pairers: Vec<Pairer<T>>,
    /// Of each kind whether those with a key are in no thread.
    beside: Vec<bool>,
    /// Open spans of each thread; those without keys are paired here.
    nesting: Nesting<T>,
    wholes: Wholes,
    threads: Numbering<Option<Writer>>,
    /// Threads by the low bits of their numbers.
    recent: Vec<(Option<Writer>, u32)>,
    certainty: SpanCertainty,
    /// What is missing behind it changes nothing.
    until: Nanos,
    /// Whether anybody wants to know how long spans with keys were the innermost.
    has_own: bool,
    has_runs: bool,
    is_disordered: bool,
}

/// Threads that are found without hashing.
const RECENT: usize = 1 << 12;

impl<T: Copy + Default> SpanPairer<T> {
    /// Of what happens from a time on and up to another, with these stretches of missing events.
    /// `has_own`: whether the own time of spans is wanted.
    #[must_use]
    pub fn new((begin, end): (Nanos, Nanos), gaps: Gaps, has_own: bool) -> Self {
        Self {
            pairers: Vec::new(),
            beside: Vec::new(),
            nesting: Nesting::default(),
            wholes: Wholes::default(),
            threads: Numbering::default(),
            recent: Vec::new(),
            certainty: SpanCertainty::new(begin, gaps),
            until: end,
            has_own,
            has_runs: false,
            is_disordered: false,
        }
    }

    /// Makes a kind known, in the order of their numbers, with whether those with a key are beside
    /// what their threads do: they take no time from it, and nothing takes any from them.
    pub fn add_kind(&mut self, is_beside_threads: bool) {
        self.beside.push(is_beside_threads);
        self.pairers.push(Pairer::default());
    }

    /// Of spans of a kind it is not known which end belongs to which beginning.
    pub fn set_uncertain(&mut self, kind: u32) {
        self.certainty.set_uncertain(kind);
    }

    /// Kinds that are known.
    #[must_use]
    pub fn kind_count(&self) -> usize {
        self.pairers.len()
    }

    /// Where events are missing, and what is in doubt.
    #[must_use]
    pub fn certainty(&self) -> &SpanCertainty {
        &self.certainty
    }

    /// More is known by now of where events are missing.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.certainty.set_gaps(gaps);
    }

    /// Threads by their numbers in [`PairedSpan::thread`].
    #[must_use]
    pub fn threads(&self) -> &[Option<Writer>] {
        self.threads.things()
    }

    /// Whether a run has been pushed out of its turn: then numbers may be wrong, and all must
    /// be told again, edge by edge.
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
            // The first thread stands for all that is not known yet.
            self.recent = vec![(writer, number); RECENT];
        }
        self.recent[place] = (writer, number);
        number
    }

    /// A thread turns out to be of another process than it was taken for: what it has open without a
    /// key is its own still.
    pub fn reassign(&mut self, from: Writer, to: Writer) {
        self.threads.rename(&Some(from), Some(to));
    }

    /// An edge is left out, because nobody knows its thread.
    pub fn doubt(&mut self, kind: u32, time: Nanos) {
        self.certainty.doubt(kind, time);
    }

    /// A span begins, and nobody knows its thread.
    pub fn doubt_own(&mut self, time: Nanos) {
        self.certainty.doubt_own(time);
    }

    /// Takes the next edge in the order of time; `tag` is kept with a beginning.
    ///
    /// Cost: without a key, a step on the stack of its thread.
    pub fn push(&mut self, kind: u32, edge: Edge, tag: T, sink: &mut impl SpanSink<T>) {
        let thread = self.thread(edge.writer);
        self.reach(thread, edge.time, true, sink);
        self.know(kind);
        if edge.key.is_none() {
            let of = ThreadEdge { time: edge.time, kind, side: edge.side };
            let Self { nesting, certainty, .. } = self;
            let stack = nesting.stack(thread);
            return keyless(stack, certainty, (edge.writer, thread), &of, tag, sink);
        }
        let is_nested = self.has_own && !self.beside[kind as usize];
        if edge.side == Side::Begin {
            if is_nested {
                self.nesting.begin(thread, kind, edge.key, edge.time);
            }
            sink.begins(kind, false);
        }
        let Some((span, tag)) = self.pairers[kind as usize].push_tagged(edge, tag) else {
            if edge.side == Side::End {
                sink.orphan(kind, &edge);
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
            // Whole spans of that thread may have ended meanwhile: the time since is not theirs.
            self.reach(beginner, edge.time, true, sink);
            // The thread may be told further than this already.
            self.is_disordered |= self.has_runs && self.nesting.until(beginner) >= edge.time;
            self.nesting.leave(beginner, kind, edge.key, begin, edge.time);
            None
        };
        let is_certain = self.certainty.is_certain(kind, &span);
        let own_nanos = own.filter(|_| self.certainty.is_own_certain(begin, edge.time));
        sink.pairs(&PairedSpan { kind, span, tag, thread: beginner, is_certain, own_nanos });
    }

    /// Takes edges without keys that follow each other on one thread, when it is the turn of the
    /// first: what other threads do meanwhile may come later. The same as [`SpanPairer::push`] for
    /// each of them, if until the last of them the thread does nothing else; and if no events are
    /// missing.
    ///
    /// Cost: a look-up, and a step on the stack of the thread for each.
    pub fn push_run(
        &mut self,
        writer: Option<Writer>,
        edges: &[ThreadEdge],
        tag: T,
        sink: &mut impl SpanSink<T>,
    ) {
        self.has_runs = true;
        edges.iter().map(|edge| edge.kind).max().into_iter().for_each(|kind| self.know(kind));
        if !self.wholes.is_empty() {
            for &ThreadEdge { time, kind, side } in edges {
                self.push(kind, Edge { time, side, key: None, writer }, tag, sink);
            }
            return;
        }
        let thread = self.thread(writer);
        let Self { nesting, certainty, .. } = self;
        let stack = nesting.stack(thread);
        if !certainty.gaps().is_empty() {
            let of = (writer, thread);
            return edges.iter().for_each(|edge| keyless(stack, certainty, of, edge, tag, sink));
        }
        for &ThreadEdge { time, kind, side } in edges {
            if side == Side::Begin {
                stack.begin(kind, None, time, tag);
                sink.begins(kind, true);
                continue;
            }
            match stack.end_youngest(kind, time) {
                Some((begin, own_nanos, _)) => {
                    let interval = (begin, time);
                    sink.pairs_in_run(&SpanInRun { kind, interval, writer, thread, own_nanos });
                }
                None => sink.orphan(kind, &Edge { time, side, key: None, writer }),
            }
        }
    }

    /// Takes a span that is told as a whole, in the order of beginnings; gives its thread.
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

    /// All whole spans end whose ends are still to come.
    pub fn finish(&mut self, sink: &mut impl SpanSink<T>) {
        let Self { nesting, wholes, certainty, until, .. } = self;
        wholes.finish(nesting, |ended| {
            let end = ended.end.min(*until);
            sink.whole_ended(&ended, certainty.is_own_certain(ended.begin, end));
        });
    }

    /// Spans that have begun and not ended: their kinds, the events that began them and their tags;
    /// by kind, earliest first.
    ///
    /// Cost: by open spans.
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

    /// Whatever is open stays so: no end that comes belongs to it. Gives what [`SpanPairer::unfinished`]
    /// gives.
    pub fn take_unfinished(&mut self, sink: &mut impl SpanSink<T>) -> Vec<(u32, Edge, T)> {
        self.finish(sink);
        let all = self.unfinished();
        self.nesting = Nesting::default();
        self.pairers.iter_mut().for_each(|pairer| *pairer = Pairer::default());
        all
    }

    /// Gives up the open spans of kinds of which more than so many are open.
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

/// Spans without a key are of their thread: the youngest open one of the kind ends.
fn keyless<T: Copy + Default>(
    stack: &mut Stack<T>,
    certainty: &mut SpanCertainty,
    (writer, thread): (Option<Writer>, u32),
    &ThreadEdge { time, kind, side }: &ThreadEdge,
    tag: T,
    sink: &mut impl SpanSink<T>,
) {
    if side == Side::Begin {
        stack.begin(kind, None, time, tag);
        return sink.begins(kind, true);
    }
    let edge = |time, side| Edge { time, side, key: None, writer };
    let Some((begin, own, tag)) = stack.end_youngest(kind, time) else {
        return sink.orphan(kind, &edge(time, side));
    };
    let span = Span { begin: edge(begin, Side::Begin), end: edge(time, side) };
    let is_certain = certainty.is_certain(kind, &span);
    let own_nanos = Some(own).filter(|_| certainty.is_own_certain(begin, time));
    sink.pairs(&PairedSpan { kind, span, tag, thread, is_certain, own_nanos });
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

    /// Found by fuzzing: an end on another thread came after a whole span of this one had ended, and the time
    /// between became its own.
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
        pairer.push(HELD, edge(10, Side::Begin, 1), (), &mut own);
        let whole = Span { begin: edge(25, Side::Begin, 1), end: edge(185, Side::End, 1) };
        pairer.push_whole(WHOLE, &whole, &mut own);
        // Nothing ends, but the thread is seen while the whole span lasts.
        pairer.push(HELD, Edge { key: Some(4), ..edge(70, Side::End, 1) }, (), &mut own);
        pairer.push(HELD, edge(268, Side::End, 2), (), &mut own);
        pairer.finish(&mut own);
        assert_eq!(own.0, [160]);
    }
}
