// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From facts in the order of time to spans, flows and states: the one place that decides which
//! events belong together, and how sure that is. Statistics, tables, differences, paths, the viewer's
//! index and the trace server take what it gives.
//!
//! ```text
//! facts ─► doubts ─┬─ begin, end ────► SpanPairer ─┬─► DerivedSink
//!                  ├─ send, receive ─► Flows ──────┤
//!                  ├─ state ─────────► open states ┤
//!                  ├─ switch, wake ──► Timelines ──┤
//!                  └─ the others ──────────────────┘
//! ```

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_analysis::{
    Arrival, Edge, Ended, Flow, Flows, Gaps, Joined, Message, PairedSpan, Side, Span, SpanInRun,
    SpanPairer, SpanSink, ThreadEdge,
};
use lateralis_model::{Quality, StreamIndex, Writer};
use lateralis_units::Nanos;

use crate::derived::{
    DerivedFlow, DerivedSink, DerivedSpan, SpanEnd, SpanStatus, StateInterval, Tag, complete, half,
};
use crate::extent::end_of_whole;
use crate::facts::{At, Doubts, Fact, Facts, Kinds, Owner, Sink};
use crate::timelines::{Schedule, Timelines};
use crate::{ClockErrors, Successions};

/// What is known of a trace before its events are read.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The time from which on events are looked at, and up to which.
    pub window: Option<(Nanos, Nanos)>,
    /// Whether the trace has events before that time: messages can be on their way where it begins.
    pub is_cut: bool,
    /// Where events are missing.
    pub gaps: Gaps,
    /// What the clocks of two streams may be off by.
    pub clock_errors: ClockErrors,
    /// When recordings begin before which all others have ended.
    pub successions: Successions,
    /// Whether the own time of spans is wanted.
    pub has_own: bool,
    /// Whether it is wanted what threads do and who has the processors. By stream, whether it alone
    /// records the switches of its processor ([`crate::facts::Facts::alone_streams`]).
    pub follows_threads: Option<Vec<bool>>,
    /// Where they are followed and their sums are wanted ([`Deriver::take_schedule`]): with so many buckets
    /// of the time series of a processor at most.
    pub sum_buckets: Option<usize>,
}

/// A state that holds.
#[derive(Debug, Clone, Copy)]
struct OpenState<E> {
    state: u32,
    since: At,
    event: E,
    /// Whether it is the first that was reported: it can have been entered before.
    is_first: bool,
    /// When it was reported last.
    reported: Nanos,
    /// Stream of that event.
    reported_in: StreamIndex,
    /// Whether another stream reported another state at the same time: which of them holds is unknown.
    is_order_unknown: bool,
    /// Whether it was entered at `since`, and has held up to `reported`.
    is_certain: bool,
}

/// Derives what two events say together.
///
/// Cost: that of [`SpanPairer`], [`Flows`] and a look-up. Memory: by what is open at once: spans begun,
/// messages on their way, machines.
#[derive(Debug)]
pub struct Deriver<E> {
    begin: Nanos,
    is_cut: bool,
    /// Whether the thread of an event is known where the event does not tell it.
    has_switches: bool,
    doubts: Doubts,
    clock_errors: ClockErrors,
    successions: Successions,
    spans: SpanPairer<Tag<E>>,
    flows: Flows<E>,
    states: HashMap<(u32, Owner), OpenState<E>, RandomState>,
    /// When each machine last reported a state of an unknown thread.
    doubted_states: HashMap<u32, Nanos, RandomState>,
    timelines: Option<Box<Timelines<E>>>,
    /// End of the chosen time.
    end: Nanos,
    /// The latest end of a complete span.
    whole_until: Nanos,
}

impl<E: Copy + Default> Deriver<E> {
    /// Of a recording whose facts these are.
    #[must_use]
    pub fn new(facts: &Facts, known: Known) -> Self {
        let Known { window, is_cut, gaps, clock_errors, successions, has_own, .. } = known;
        let (begin, end) = window.unwrap_or((Nanos(i64::MIN), Nanos(i64::MAX)));
        let timelines = known
            .follows_threads
            .map(|alone| Box::new(Timelines::new(begin, &gaps, alone, known.sum_buckets)));
        let mut deriver = Self {
            begin,
            is_cut,
            has_switches: facts.has_switches(),
            doubts: Doubts::new(facts, begin),
            flows: Flows::new(clock_errors.most().0),
            clock_errors,
            successions,
            spans: SpanPairer::new((begin, end), gaps, has_own),
            states: HashMap::default(),
            doubted_states: HashMap::default(),
            timelines,
            end,
            whole_until: Nanos(i64::MIN),
        };
        deriver.learn(facts.kinds());
        deriver
    }

    /// There are more kinds by now.
    pub fn learn(&mut self, kinds: &Kinds) {
        for kind in kinds.spans.iter().skip(self.spans.kind_count()) {
            if kind.is_filtered {
                self.spans.set_uncertain(self.spans.kind_count() as u32);
            }
            self.spans.add_kind(kind.is_beside_threads);
        }
    }

    /// More is known by now of where events are missing.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        if let Some(timelines) = &mut self.timelines {
            timelines.set_gaps(&gaps);
        }
        self.spans.set_gaps(gaps);
    }

    /// Streams may have come; as of [`Known::follows_threads`].
    pub fn set_alone_streams(&mut self, alone: Vec<bool>) {
        if let Some(timelines) = &mut self.timelines {
            timelines.set_alone_streams(alone);
        }
    }

    /// Where events are missing.
    #[must_use]
    pub fn gaps(&self) -> &Gaps {
        self.spans.certainty().gaps()
    }

    /// Threads by their numbers in [`DerivedSpan::thread`].
    #[must_use]
    pub fn threads(&self) -> &[Option<Writer>] {
        self.spans.threads()
    }

    /// How long threads and processors did what, where that is wanted ([`Known::sum_buckets`]), once
    /// [`Deriver::finish`] has been called; once.
    #[must_use]
    pub fn take_schedule(&mut self) -> Schedule {
        self.timelines.as_mut().map_or(Schedule::default(), |timelines| timelines.take_sums())
    }

    /// Something happened on a processor.
    #[inline]
    pub fn appears(&mut self, cpu: u32, time: Nanos) {
        if let Some(timelines) = &mut self.timelines {
            timelines.appears(cpu, time);
        }
    }

    /// When the recording ended, or the chosen time if that is earlier: its last event is then, and complete
    /// spans may end later ([`crate::Extent`]).
    #[must_use]
    pub fn ended(&self, last_event: Option<Nanos>) -> Option<Nanos> {
        last_event.map(|last| last.max(self.whole_until.min(self.end)))
    }

    /// As [`SpanPairer::is_unmatched`].
    #[must_use]
    pub fn is_unmatched(&self, kind: u32) -> bool {
        self.spans.is_unmatched(kind)
    }

    /// Whether runs came in an order in which spans cannot be told.
    #[must_use]
    pub fn is_disordered(&self) -> bool {
        self.spans.is_disordered()
    }

    /// An event that is not chosen: who runs where is known from it all the same.
    #[inline]
    pub fn see_unchosen(&mut self, at: &At, fact: &Fact) {
        if let Fact::Whole { .. } = fact {
            self.whole_until = self.whole_until.max(fact.lasts_until(at));
        }
        self.doubts.see(at, fact, self.spans.certainty().gaps());
    }

    /// Whether the thread of an event is unknown; all its facts have been seen.
    #[must_use]
    pub fn is_in_doubt(&self, at: &At) -> bool {
        self.doubts.is_in_doubt(at, self.gaps())
    }

    /// Takes the next fact in the order of time.
    pub fn fact<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        fact: Fact,
        sink: &mut S,
    ) {
        if let Some(ended) = self.successions.comes(at.time) {
            self.close(kinds, Some(ended), sink);
        }
        if self.spans.has_early_ends() {
            let errors = &mut self.clock_errors;
            self.spans.pass(at.time, &mut Spans { kinds, errors, sink });
        }
        if let Some(timelines) = &mut self.timelines {
            timelines.pass(kinds, Some(at.time), sink);
        }
        let gaps = self.spans.certainty().gaps();
        if gaps.is_empty() {
            return self.certain_fact(kinds, at, fact, sink);
        }
        self.doubts.see(at, &fact, gaps);
        // Where switches may be missing, what an event does not tell itself nobody knows.
        if matches!(fact, Fact::Whole { .. } | Fact::Begin { .. })
            && self.doubts.is_in_doubt(at, gaps)
        {
            self.spans.doubt_own(at.time);
        }
        match self.doubts.fact(at, fact, self.spans.certainty().gaps()) {
            Some((at, fact)) => self.certain_fact(kinds, &at, fact, sink),
            None => self.doubtful_fact(kinds, at, fact, sink),
        }
    }

    fn certain_fact<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        fact: Fact,
        sink: &mut S,
    ) {
        match fact {
            Fact::Begin { span, key } => {
                let event = sink.event(kinds, at, &fact);
                self.edge(kinds, at, span, edge(at, key, Side::Begin), event, sink);
            }
            Fact::End { span, key } => {
                let event = sink.event(kinds, at, &fact);
                self.edge(kinds, at, span, edge(at, key, Side::End), event, sink);
            }
            Fact::Whole { span, duration_ns } => {
                let event = sink.event(kinds, at, &fact);
                self.whole(kinds, at, (span, duration_ns), event, sink);
            }
            Fact::Send { channel, key } => {
                let send = at.end().of_event(sink.event(kinds, at, &fact));
                self.give_up(kinds, Some(at.time), sink);
                let errors = &mut self.clock_errors;
                let apart = |one, other| errors.between(one, other);
                let flow = self.flows.send((channel, key), send, apart);
                self.flow(kinds, channel, flow, sink);
            }
            Fact::Receive { channel, key } => {
                let receive = at.end().of_event(sink.event(kinds, at, &fact));
                self.give_up(kinds, Some(at.time), sink);
                let fans_out = kinds.fans_out(channel);
                let flow = self.flows.receive((channel, key), receive, fans_out);
                self.flow(kinds, channel, flow, sink);
            }
            Fact::State { machine, state } => self.state(kinds, at, (machine, state), sink),
            Fact::Belongs { tid, pid } => {
                self.spans.reassign(Writer { pid: tid, tid }, Writer { pid, tid });
                sink.fact(kinds, at, &fact);
            }
            Fact::Switch { .. } | Fact::Wake { .. } => {
                if let Some(timelines) = &mut self.timelines {
                    timelines.fact(kinds, at, &fact, sink);
                }
                sink.fact(kinds, at, &fact);
            }
            Fact::Level { .. } => sink.fact(kinds, at, &fact),
        }
    }

    /// An event that says nothing without its thread, which nobody knows.
    fn doubtful_fact<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        fact: Fact,
        sink: &mut S,
    ) {
        let nobodys = At { writer: None, ..*at };
        let (span, key, side) = match fact {
            Fact::Begin { span, key } => (span, key, Side::Begin),
            Fact::End { span, key } => (span, key, Side::End),
            Fact::State { machine, .. } => {
                self.doubted_states.insert(machine, at.time);
                return;
            }
            _ => return,
        };
        self.spans.doubt(span, at.time);
        let tag = Tag { stream: at.stream.0, event: E::default() };
        sink.span(kinds, &half(span, edge(&nobodys, key, side), tag, SpanStatus::Doubtful));
    }

    #[inline]
    fn edge<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        span: u32,
        edge: Edge,
        event: E,
        sink: &mut S,
    ) {
        let tag = Tag { stream: at.stream.0, event };
        if at.writer.is_none()
            && !self.has_switches
            && kinds.spans.get(span as usize).is_some_and(|kind| kind.is_of_thread)
        {
            self.spans.set_uncertain(span);
        }
        let errors = &mut self.clock_errors;
        self.spans.push(span, edge, (tag.stream, tag), &mut Spans { kinds, errors, sink });
    }

    /// Edges of spans without keys that follow each other on one thread
    /// ([`Sink::run`](crate::facts::Sink::run)); nothing is missing in the trace.
    pub fn run<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        edges: &[ThreadEdge],
        sink: &mut S,
    ) {
        if let Some(ended) = self.successions.comes(at.time) {
            self.close(kinds, Some(ended), sink);
        }
        let tag = Tag { stream: at.stream.0, event: E::default() };
        let errors = &mut self.clock_errors;
        let spans = &mut Spans { kinds, errors, sink };
        self.spans.push_run(at.writer, edges, (tag.stream, tag), spans);
    }

    /// What whoever recorded a span has measured itself is certain.
    fn whole<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        (kind, duration_ns): (u32, u64),
        event: E,
        sink: &mut S,
    ) {
        let begin = edge(at, None, Side::Begin);
        let time = end_of_whole(at.time, duration_ns);
        self.whole_until = self.whole_until.max(time);
        let end = Edge { time, side: Side::End, ..begin };
        let errors = &mut self.clock_errors;
        let spans = &mut Spans { kinds, errors, sink };
        let thread = self.spans.push_whole(kind, &Span { begin, end }, spans);
        let end_of = |edge| {
            let edge = Edge { writer: at.writer, ..edge };
            Some(SpanEnd { edge, stream: at.stream, event })
        };
        let span = DerivedSpan {
            kind,
            begin: end_of(begin),
            end: end_of(end),
            status: SpanStatus::Whole,
            thread,
            own_ns: None,
            is_certain: true,
            clock_error_ns: Some(0),
            quality: Quality::Exact,
            seen_until: None,
        };
        sink.span(kinds, &span);
    }

    fn flow<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        channel: u32,
        flow: Flow<E>,
        sink: &mut S,
    ) {
        let Flow::Joined(message) = flow else { return };
        let joined = match kinds.channels.get(channel as usize) {
            Some(of) if of.is_filtered => Joined::Doubtful,
            _ if self.flows.is_uncertain(channel) => Joined::Doubtful,
            // By their order alone: of those that were on their way nobody knows how many there were.
            _ if self.is_cut && message.key.is_none() => Joined::Doubtful,
            _ => Joined::of(&message, self.spans.certainty().gaps(), self.begin),
        };
        let Message { send, receive, .. } = &message;
        let clock_error_ns = self.clock_errors.between(send.stream, receive.stream);
        let quality = match joined {
            Joined::Certain => Quality::Exact,
            Joined::Likely | Joined::Doubtful => Quality::Unknown,
        };
        let quality = ClockErrors::quality(clock_error_ns, message.nanos(), quality);
        let flow = DerivedFlow::Complete { message, joined, clock_error_ns, quality };
        sink.flow(kinds, channel, &flow);
    }

    /// Messages whose departures cannot come any more.
    fn give_up<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        now: Option<Nanos>,
        sink: &mut S,
    ) {
        while let Some(Arrival { channel, key, end }) = self.flows.give_up(now) {
            sink.flow(kinds, channel, &DerivedFlow::NotSent(key, end));
        }
    }

    /// Whether all states that a machine entered between two times are in the trace.
    fn has_all_states(&self, kinds: &Kinds, machine: u32, from: Nanos, to: Nanos) -> bool {
        if kinds.machines.get(machine as usize).is_some_and(|machine| machine.is_filtered) {
            return false;
        }
        let doubted = self.doubted_states.get(&machine);
        !self.gaps().between(from.min(to), to) && doubted.is_none_or(|doubted| *doubted < from)
    }

    fn state<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        at: &At,
        (machine, state): (u32, u32),
        sink: &mut S,
    ) {
        let place = (machine, kinds.owner_of_state(machine, at));
        let before = self.states.get(&place).copied();
        let reported = before.map_or(Nanos(i64::MIN), |before| before.reported);
        let is_simultaneous =
            before.is_some_and(|of| of.reported == at.time && of.reported_in != at.stream);
        let was_unknown = before.is_some_and(|of| of.is_order_unknown && of.reported != at.time);
        // One of two states of one time may be the one that holds: neither is known to have been left.
        let is_both = is_simultaneous
            && before.is_some_and(|of| of.since.time == at.time && of.state != state);
        let is_whole =
            self.has_all_states(kinds, machine, reported, at.time) && !was_unknown && !is_both;
        sink.state_reported(place, at.time, state, is_whole);
        if let Some(before) = self.states.get_mut(&place)
            && before.state == state
        {
            // Reported again: it has been in this state all along.
            before.is_order_unknown &= before.reported == at.time;
            (before.reported, before.reported_in) = (at.time, at.stream);
            before.is_certain &= is_whole;
            return;
        }
        if let Some(before) = before {
            let is_certain = before.is_certain && !is_both;
            let before = OpenState { is_certain, ..before };
            let interval = self.interval(kinds, place, &before, at.time, true);
            sink.state(kinds, &interval);
        }
        let event = sink.event(kinds, at, &Fact::State { machine, state });
        let is_first = before.is_none();
        let is_order_unknown =
            is_simultaneous || before.is_some_and(|of| of.is_order_unknown && !was_unknown);
        let now = OpenState {
            state,
            since: *at,
            event,
            is_first,
            reported: at.time,
            reported_in: at.stream,
            is_order_unknown,
            is_certain: is_whole && !is_order_unknown,
        };
        self.states.insert(place, now);
    }

    fn interval(
        &self,
        kinds: &Kinds,
        (machine, owner): (u32, Owner),
        of: &OpenState<E>,
        until: Nanos,
        is_complete: bool,
    ) -> StateInterval<E> {
        let OpenState { state, since, event, is_first, reported, is_certain, .. } = *of;
        // How long the first and the last state hold is known only from below.
        let is_between = is_complete && !is_first;
        let quality = match (
            is_certain && self.has_all_states(kinds, machine, reported, until),
            is_between,
        ) {
            (true, true) => Quality::Exact,
            (true, false) => Quality::LowerBound,
            (false, _) => Quality::Unknown,
        };
        StateInterval { machine, owner, state, since, event, until, is_complete, quality }
    }

    /// The trace has ended, with its last event then.
    pub fn finish<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        ended: Option<Nanos>,
        sink: &mut S,
    ) {
        self.close(kinds, ended, sink);
    }

    /// What is open when the recordings so far have ended.
    fn close<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        ended: Option<Nanos>,
        sink: &mut S,
    ) {
        let errors = &mut self.clock_errors;
        let open = self.spans.take_unfinished(&mut Spans { kinds, errors, sink });
        for (kind, edge, tag) in open {
            let status = match self.spans.is_unmatched(kind) {
                true => SpanStatus::Doubtful,
                false => SpanStatus::Unfinished,
            };
            let span = half(kind, edge, tag, status);
            sink.span(kinds, &DerivedSpan { seen_until: ended, ..span });
        }
        self.give_up(kinds, None, sink);
        for (channel, key, end) in self.flows.take_departures() {
            sink.flow(kinds, channel, &DerivedFlow::NotReceived(key, end));
        }
        let mut states: Vec<_> = std::mem::take(&mut self.states).into_iter().collect();
        states.sort_by_key(|((machine, owner), _)| (*machine, *owner));
        for (place, of) in &states {
            let until = ended.map_or(of.reported, |ended| ended.max(of.reported));
            let is_whole =
                self.has_all_states(kinds, place.0, of.reported, until) && !of.is_order_unknown;
            sink.state_ends(*place, until, is_whole);
            sink.state(kinds, &self.interval(kinds, *place, of, until, false));
        }
        if let Some(timelines) = &mut self.timelines {
            timelines.finish(kinds, ended, sink);
        }
    }

    /// Gives up what is open so often that it would fill the memory: spans of a kind, messages of a
    /// channel of which more than so many are open. Such spans come as unfinished.
    pub fn bound<S: DerivedSink<Event = E>>(&mut self, kinds: &Kinds, most: u64, sink: &mut S) {
        for (kind, edge, tag) in self.spans.bound(most) {
            sink.span(kinds, &half(kind, edge, tag, SpanStatus::Unfinished));
        }
        self.flows.bound(most);
    }
}

#[inline]
fn edge(at: &At, key: Option<u64>, side: Side) -> Edge {
    let writer = at.writer.or_else(|| at.cpu.map(Doubts::nobody_on));
    Edge { time: at.time, side, key, writer }
}

/// Hands spans on with what the clocks say of them.
struct Spans<'a, S: DerivedSink> {
    kinds: &'a Kinds,
    errors: &'a mut ClockErrors,
    sink: &'a mut S,
}

impl<S: DerivedSink> SpanSink<Tag<S::Event>> for Spans<'_, S> {
    #[inline]
    fn begins(&mut self, kind: u32, is_keyless: bool) {
        self.sink.span_begins(kind, is_keyless);
    }

    fn pairs(&mut self, paired: &PairedSpan<Tag<S::Event>>) {
        self.sink.span(self.kinds, &complete(paired, self.errors));
    }

    #[inline]
    fn pairs_in_run(&mut self, span: &SpanInRun) {
        self.sink.span_in_run(span);
    }

    fn orphan(&mut self, kind: u32, end: &Edge, tag: Tag<S::Event>) {
        self.sink.span(self.kinds, &half(kind, *end, tag, SpanStatus::Orphan));
    }

    fn whole_ended(&mut self, ended: &Ended, is_certain: bool) {
        self.sink.whole_ended(ended, is_certain);
    }
}

/// A deriver with whom it derives for, as one consumer of facts.
pub struct Deriving<'a, S: DerivedSink> {
    /// Who derives.
    pub deriver: &'a mut Deriver<S::Event>,
    /// For whom.
    pub sink: &'a mut S,
}

impl<S: DerivedSink> Sink for Deriving<'_, S> {
    fn fact_of(&mut self, kinds: &Kinds, at: &At, fact: Fact) {
        self.deriver.fact(kinds, at, fact, self.sink);
    }

    fn appears(&mut self, cpu: u32, time: Nanos) {
        self.sink.appears(cpu, time);
    }

    fn is_enough(&self) -> bool {
        self.sink.is_enough()
    }

    fn run(&mut self, kinds: &Kinds, at: &At, edges: &[ThreadEdge]) {
        self.deriver.run(kinds, at, edges, self.sink);
    }
}
