// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From facts in the order of time to rows.

mod shown;

use std::collections::HashMap;
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use lateralis_analysis::{Arrival, Edge, Flow, Flows, Gaps, Pairer, Side, Span, SpanCertainty};
use lateralis_model::{Quality, StreamIndex, Writer};
use lateralis_units::Nanos;

use shown::{Ends, Until, certain, fixed, lanes};

use super::super::opened::Opened;
use super::super::small::{Cell, Rows, Small};
use crate::facts::{At, Doubts, Fact, Facts, Kinds, Owner, Sink};
use crate::{ClockErrors, Successions};

/// Before everything.
const BEGIN: Nanos = Nanos(i64::MIN);

/// What is open, and where the rows go.
pub struct Deriving<'a, 'r> {
    small: Small,
    opened: &'a Opened,
    rows: &'a mut Rows<'r>,
    /// Whether anybody wants to know keys: a text each.
    has_keys: bool,
    /// The same of names, for which events may have to be read.
    has_names: bool,
    gaps: &'a Gaps,
    certainty: SpanCertainty,
    doubts: Doubts,
    clock_errors: ClockErrors,
    successions: Successions,
    /// By kind.
    pairers: Vec<Pairer>,
    flows: Flows,
    /// Of several traces, in which stream spans that are open began.
    streams: Option<HashMap<(u32, Edge), StreamIndex, RandomState>>,
    machines: HashMap<(u32, Owner), InState, RandomState>,
    /// When each machine last told its state of a thread that nobody knows.
    doubted: HashMap<u32, Nanos>,
    /// When the last event happened.
    pub last: Option<Nanos>,
    /// Whether more rows are wanted.
    pub flow: ControlFlow<()>,
}

impl Sink for Deriving<'_, '_> {
    fn fact_of(&mut self, kinds: &Kinds, at: &At, fact: Fact) {
        self.see(kinds, at, fact);
    }

    fn appears(&mut self, _: u32, _: Nanos) {}

    fn is_enough(&self) -> bool {
        self.flow.is_break()
    }
}

/// What is known of a machine.
#[derive(Debug, Clone, Copy)]
struct InState {
    state: u32,
    since: At,
    /// When it was told last.
    told: Nanos,
    /// Whether it was entered then, and has held up to `told`.
    is_certain: bool,
}

impl<'a, 'r> Deriving<'a, 'r> {
    /// Of a recording whose facts are these.
    pub fn new(small: Small, opened: &'a Opened, facts: &Facts, rows: &'a mut Rows<'r>) -> Self {
        let clock_errors = opened.recording.clock_errors();
        Self {
            small,
            opened,
            has_keys: rows.wants("key"),
            has_names: rows.wants("process") || rows.wants("thread"),
            rows,
            gaps: opened.gaps(),
            certainty: SpanCertainty::new(BEGIN, opened.gaps().clone()),
            doubts: Doubts::new(facts, BEGIN),
            flows: Flows::new(clock_errors.most().0),
            clock_errors,
            successions: opened.recording.successions(),
            pairers: Vec::new(),
            machines: HashMap::default(),
            streams: (opened.recording.source.bases().len() > 1).then(HashMap::default),
            doubted: HashMap::new(),
            last: None,
            flow: ControlFlow::Continue(()),
        }
    }

    /// Adds the rows that are known by a fact, unless [`Deriving::flow`] is over.
    pub fn see(&mut self, kinds: &Kinds, at: &At, fact: Fact) {
        if self.flow.is_break() {
            return;
        }
        if let Some(ended) = self.successions.comes(at.time) {
            self.flow = self.close(kinds, Some(ended));
            if self.flow.is_break() {
                return;
            }
        }
        self.doubts.see(at, &fact, self.gaps);
        self.flow = match self.doubts.fact(at, fact, self.gaps) {
            Some((at, fact)) => self.fact(kinds, &at, fact),
            None => self.in_doubt(kinds, at, fact),
        };
    }

    fn fact(&mut self, kinds: &Kinds, at: &At, fact: Fact) -> ControlFlow<()> {
        match (self.small, fact) {
            (Small::Spans, Fact::Begin { span, key }) => {
                self.edge(kinds, span, at, key, Side::Begin)
            }
            (Small::Spans, Fact::End { span, key }) => self.edge(kinds, span, at, key, Side::End),
            (Small::Spans, Fact::Whole { span, duration_ns }) => {
                let edge = edge(at, None, Side::Begin);
                let time = Nanos(at.time.0.saturating_add_unsigned(duration_ns));
                let ends = Ends {
                    stream: at.stream,
                    begin: Some(edge),
                    end: Some(Edge { time, side: Side::End, ..edge }),
                    duration_ns: Some(duration_ns),
                    clock_error_ns: Some(0),
                    status: "complete",
                    // It was measured by who recorded it.
                    quality: Quality::Exact,
                };
                self.span(kinds, span, ends)
            }
            (Small::Messages, Fact::Send { channel, key }) => {
                self.give_up(kinds, Some(at.time))?;
                let errors = &mut self.clock_errors;
                let apart = |one, other| errors.between(one, other);
                match self.flows.send((channel, key), at.end(), apart) {
                    Flow::Joined(message) => {
                        let (sent, received) = (message.send, message.receive);
                        self.message(kinds, (channel, key), Some(sent), Some(received))
                    }
                    Flow::Open => ControlFlow::Continue(()),
                }
            }
            (Small::Messages, Fact::Receive { channel, key }) => {
                self.give_up(kinds, Some(at.time))?;
                match self.flows.receive((channel, key), at.end(), kinds.fans_out(channel)) {
                    Flow::Joined(message) => {
                        let (sent, received) = (message.send, message.receive);
                        self.message(kinds, (channel, key), Some(sent), Some(received))
                    }
                    Flow::Open => ControlFlow::Continue(()),
                }
            }
            (Small::States, Fact::State { machine, state }) => {
                let place = (machine, kinds.owner_of_state(machine, at));
                let before = self.machines.get(&place).copied();
                let told = before.map_or(BEGIN, |before| before.told);
                let is_whole = self.is_told(machine, told, at.time);
                let now = match before {
                    // Told again of the state it is in: it has been in it all along.
                    Some(before) if before.state == state => {
                        let is_certain = before.is_certain && is_whole;
                        InState { told: at.time, is_certain, ..before }
                    }
                    _ => InState { state, since: *at, told: at.time, is_certain: is_whole },
                };
                self.machines.insert(place, now);
                match before.filter(|before| before.state != state) {
                    Some(before) => self.state(kinds, place, before, Until::Left(at.time)),
                    None => ControlFlow::Continue(()),
                }
            }
            (Small::Counters, Fact::Level { counter: number, value }) => {
                let counter = kinds.counters.get(number as usize).map(|counter| counter.label());
                let [cpu, pid, tid] = lanes(at.cpu, at.writer);
                self.rows.row(&[
                    self.recording(at.stream),
                    Cell::Int(at.time.0),
                    Cell::Word(number.into(), counter.as_deref()),
                    Cell::Real(value),
                    cpu,
                    pid,
                    tid,
                    // The event tells it itself, whatever is missing beside it.
                    fixed(Quality::Exact.name()),
                ])
            }
            (Small::Spans, Fact::Belongs { tid, pid }) => {
                let (from, to) = (Writer { pid: tid, tid }, Writer { pid, tid });
                for (span, pairer) in (0..).zip(&mut self.pairers) {
                    for edge in pairer.reassign(from, to) {
                        // The same edge is found by its writer.
                        let streams = self.streams.as_mut();
                        let Some(streams) = streams else { continue };
                        if let Some(stream) = streams.remove(&(span, edge)) {
                            streams.insert((span, Edge { writer: Some(to), ..edge }), stream);
                        }
                    }
                }
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Whether a machine would have told of all its states between two times.
    fn is_told(&self, machine: u32, from: Nanos, to: Nanos) -> bool {
        let doubted = self.doubted.get(&machine);
        !self.gaps.between(from.min(to), to) && doubted.is_none_or(|doubted| *doubted < from)
    }

    /// An event that says nothing without its thread, which nobody knows.
    fn in_doubt(&mut self, kinds: &Kinds, at: &At, fact: Fact) -> ControlFlow<()> {
        let ends = Ends {
            stream: at.stream,
            begin: None,
            end: None,
            duration_ns: None,
            clock_error_ns: None,
            status: "unfinished",
            quality: Quality::Unknown,
        };
        match (self.small, fact) {
            (Small::Spans, Fact::Begin { span, key }) => {
                self.certainty.doubt(span, at.time);
                let begin = Some(Edge { writer: None, ..edge(at, key, Side::Begin) });
                self.span(kinds, span, Ends { begin, ..ends })
            }
            (Small::Spans, Fact::End { span, key }) => {
                self.certainty.doubt(span, at.time);
                let end = Some(Edge { writer: None, ..edge(at, key, Side::End) });
                self.span(kinds, span, Ends { end, status: "orphan", ..ends })
            }
            (Small::States, Fact::State { machine, .. }) => {
                self.doubted.insert(machine, at.time);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn edge(
        &mut self,
        kinds: &Kinds,
        span: u32,
        at: &At,
        key: Option<u64>,
        side: Side,
    ) -> ControlFlow<()> {
        let edge = edge(at, key, side);
        if let (Some(streams), Side::Begin) = (&mut self.streams, side) {
            streams.insert((span, edge), at.stream);
        }
        match (at_index(&mut self.pairers, span).push(edge), side) {
            (Some(found), _) => {
                let quality = certain(self.certainty.is_certain(span, &found));
                let Span { begin, end } = found;
                let begun = self.streams.as_mut().and_then(|all| all.remove(&(span, begin)));
                let clock_error_ns = self.clock_error(begun, at.stream);
                let ends = Ends {
                    stream: begun.unwrap_or(at.stream),
                    begin: Some(begin),
                    end: Some(end),
                    duration_ns: Some(found.nanos()),
                    clock_error_ns,
                    status: "complete",
                    quality: ClockErrors::quality(clock_error_ns, found.nanos(), quality),
                };
                self.span(kinds, span, ends)
            }
            (None, Side::Begin) => ControlFlow::Continue(()),
            (None, Side::End) => {
                let ends = Ends {
                    stream: at.stream,
                    begin: None,
                    end: Some(edge),
                    duration_ns: None,
                    clock_error_ns: None,
                    status: "orphan",
                    quality: Quality::Unknown,
                };
                self.span(kinds, span, ends)
            }
        }
    }

    /// Adds the rows of messages whose departures cannot come any more.
    fn give_up(&mut self, kinds: &Kinds, now: Option<Nanos>) -> ControlFlow<()> {
        while let Some(Arrival { channel, key, end }) = self.flows.give_up(now) {
            self.message(kinds, (channel, key), None, Some(end))?;
        }
        ControlFlow::Continue(())
    }

    /// How far the times of two streams may be off; of one that is not known, it is the
    /// other.
    fn clock_error(&mut self, from: Option<StreamIndex>, to: StreamIndex) -> Option<u64> {
        self.clock_errors.between(from.unwrap_or(to), to)
    }

    /// What is open at the end.
    pub fn end(&mut self, kinds: &Kinds) -> ControlFlow<()> {
        self.flow?;
        self.close(kinds, self.last)
    }

    /// What is open when the recordings so far have ended.
    fn close(&mut self, kinds: &Kinds, ended: Option<Nanos>) -> ControlFlow<()> {
        for (span, pairer) in (0..).zip(std::mem::take(&mut self.pairers)) {
            for edge in pairer.unfinished() {
                let begun = self.streams.as_mut().and_then(|all| all.remove(&(span, edge)));
                let stream = begun.unwrap_or(StreamIndex(0));
                let ends = Ends {
                    stream,
                    begin: Some(edge),
                    end: None,
                    duration_ns: None,
                    clock_error_ns: None,
                    status: "unfinished",
                    quality: Quality::Unknown,
                };
                self.span(kinds, span, ends)?;
            }
        }
        self.give_up(kinds, None)?;
        for (channel, key, sent) in self.flows.take_departures() {
            self.message(kinds, (channel, key), Some(sent), None)?;
        }
        let mut machines: Vec<_> = std::mem::take(&mut self.machines).into_iter().collect();
        machines.sort_by_key(|((machine, owner), _)| (*machine, *owner));
        for (place, state) in machines {
            self.state(kinds, place, state, Until::Ended(ended))?;
        }
        ControlFlow::Continue(())
    }
}

/// What stands at a place of a list that grows as needed; kinds are few.
fn at_index<T: Default>(list: &mut Vec<T>, index: u32) -> &mut T {
    let index = index as usize;
    if list.len() <= index {
        list.resize_with(index + 1, T::default);
    }
    &mut list[index]
}

fn edge(at: &At, key: Option<u64>, side: Side) -> Edge {
    Edge { time: at.time, side, key, writer: at.writer }
}
