// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Derives spans, flows and states from facts in time order. This is the one place that decides which
//! events belong together, and with which quality. Statistics, tables, differences, paths, the viewer's
//! index and the trace server use its output.
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

/// Properties of a trace that are known before its events are read.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Selected time range.
    pub window: Option<(Nanos, Nanos)>,
    /// Whether the trace has events before that range: messages can be in flight at its start.
    pub is_cut: bool,
    /// Intervals in which events are missing.
    pub gaps: Gaps,
    /// Errors between the clocks of streams.
    pub clock_errors: ClockErrors,
    /// Starts of recordings before which all other recordings have ended.
    pub successions: Successions,
    /// Whether to compute the self time of spans.
    pub has_own: bool,
    /// Enables the timelines of threads and CPUs. By stream: whether it alone records the switches of its
    /// CPU ([`crate::facts::Facts::alone_streams`]).
    pub follows_threads: Option<Vec<bool>>,
    /// Enables sums over the timelines ([`Deriver::take_schedule`]), with at most this number of buckets
    /// in the time series of a CPU.
    pub sum_buckets: Option<usize>,
}

/// The current state of a machine.
#[derive(Debug, Clone, Copy)]
struct OpenState<E> {
    state: u32,
    since: At,
    event: E,
    /// Whether it is the first that was reported: it may have been entered earlier.
    is_first: bool,
    /// Time of the last report.
    reported: Nanos,
    /// Stream of that report.
    reported_in: StreamIndex,
    /// Whether another stream reported a different state at the same time: which of them holds is
    /// unknown.
    is_order_unknown: bool,
    /// Whether it was entered at `since` and has held until `reported`.
    is_certain: bool,
}

/// Derives items from pairs of events.
///
/// Cost: that of [`SpanPairer`] and [`Flows`], plus a lookup. Memory: proportional to open spans,
/// messages in flight, and machines.
#[derive(Debug)]
pub struct Deriver<E> {
    begin: Nanos,
    is_cut: bool,
    /// Whether the thread of an event that does not contain one is known from switches.
    has_switches: bool,
    doubts: Doubts,
    clock_errors: ClockErrors,
    successions: Successions,
    spans: SpanPairer<Tag<E>>,
    flows: Flows<E>,
    states: HashMap<(u32, Owner), OpenState<E>, RandomState>,
    /// Time at which each machine last reported a state of an unknown thread.
    doubted_states: HashMap<u32, Nanos, RandomState>,
    timelines: Option<Box<Timelines<E>>>,
    /// End of the selected time range.
    end: Nanos,
    /// Latest end of a complete span.
    whole_until: Nanos,
}

impl<E: Copy + Default> Deriver<E> {
    /// For the recording whose facts are passed in.
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

    /// Adopts kinds that were added since.
    pub fn learn(&mut self, kinds: &Kinds) {
        for kind in kinds.spans.iter().skip(self.spans.kind_count()) {
            if kind.is_filtered {
                self.spans.set_uncertain(self.spans.kind_count() as u32);
            }
            self.spans.add_kind(kind.is_beside_threads);
        }
    }

    /// Replaces the known gaps, of a recording in progress.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        if let Some(timelines) = &mut self.timelines {
            timelines.set_gaps(&gaps);
        }
        self.spans.set_gaps(gaps);
    }

    /// Replaces [`Known::follows_threads`], as streams may have been added.
    pub fn set_alone_streams(&mut self, alone: Vec<bool>) {
        if let Some(timelines) = &mut self.timelines {
            timelines.set_alone_streams(alone);
        }
    }

    /// Intervals in which events are missing.
    #[must_use]
    pub fn gaps(&self) -> &Gaps {
        self.spans.certainty().gaps()
    }

    /// Threads by the numbers in [`DerivedSpan::thread`].
    #[must_use]
    pub fn threads(&self) -> &[Option<Writer>] {
        self.spans.threads()
    }

    /// Sums over the timelines of threads and CPUs, if enabled ([`Known::sum_buckets`]). Call once, after
    /// [`Deriver::finish`].
    #[must_use]
    pub fn take_schedule(&mut self) -> Schedule {
        self.timelines.as_mut().map_or(Schedule::default(), |timelines| timelines.take_sums())
    }

    /// Records that an event happened on a CPU.
    #[inline]
    pub fn appears(&mut self, cpu: u32, time: Nanos) {
        if let Some(timelines) = &mut self.timelines {
            timelines.appears(cpu, time);
        }
    }

    /// End of the recording, or of the selected time range if that is earlier: the time of the last
    /// event, or the end of a later complete span ([`crate::Extent`]).
    #[must_use]
    pub fn ended(&self, last_event: Option<Nanos>) -> Option<Nanos> {
        last_event.map(|last| last.max(self.whole_until.min(self.end)))
    }

    /// As [`SpanPairer::is_unmatched`].
    #[must_use]
    pub fn is_unmatched(&self, kind: u32) -> bool {
        self.spans.is_unmatched(kind)
    }

    /// Whether runs arrived in an order in which spans cannot be paired.
    #[must_use]
    pub fn is_disordered(&self) -> bool {
        self.spans.is_disordered()
    }

    /// Processes an event that is not selected: it still determines which thread runs where.
    #[inline]
    pub fn see_unchosen(&mut self, at: &At, fact: &Fact) {
        if let Fact::Whole { .. } = fact {
            self.whole_until = self.whole_until.max(fact.lasts_until(at));
        }
        self.doubts.see(at, fact, self.spans.certainty().gaps());
    }

    /// Whether the thread of an event is unknown; call after all its facts.
    #[must_use]
    pub fn is_in_doubt(&self, at: &At) -> bool {
        self.doubts.is_in_doubt(at, self.gaps())
    }

    /// Processes the next fact in time order.
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
        // Where switches may be missing, the thread is known only if the event contains it.
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

    /// Handles a fact that needs its thread, which is unknown.
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

    /// Processes consecutive edges of spans without keys on one thread
    /// ([`Sink::run`](crate::facts::Sink::run)); the trace has no missing events.
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

    /// Processes a complete span. It is certain, as its producer measured it.
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
            // Matched by their order alone: the number of messages already in flight at the cut is
            // unknown.
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

    /// Gives up messages whose send can no longer arrive.
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

    /// Whether the trace has all states that a machine entered between two times.
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
        // Either of two states of the same time may be the current one: neither is known to have been
        // left.
        let is_both = is_simultaneous
            && before.is_some_and(|of| of.since.time == at.time && of.state != state);
        let is_whole =
            self.has_all_states(kinds, machine, reported, at.time) && !was_unknown && !is_both;
        sink.state_reported(place, at.time, state, is_whole);
        if let Some(before) = self.states.get_mut(&place)
            && before.state == state
        {
            // Reported again: the machine has been in this state all along.
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
        // The lengths of the first and the last state are lower bounds.
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

    /// Ends the trace with its last event.
    pub fn finish<S: DerivedSink<Event = E>>(
        &mut self,
        kinds: &Kinds,
        ended: Option<Nanos>,
        sink: &mut S,
    ) {
        self.close(kinds, ended, sink);
    }

    /// Closes everything that is open at the end of the recordings so far.
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

    /// Bounds memory: gives up spans of a kind and messages of a channel if more than `most` of them are
    /// open. Such spans are reported as unfinished.
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

/// Adds clock errors and qualities to spans and passes them on.
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

/// A deriver with its sink, as one consumer of facts.
pub struct Deriving<'a, S: DerivedSink> {
    /// The deriver.
    pub deriver: &'a mut Deriver<S::Event>,
    /// The sink.
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
