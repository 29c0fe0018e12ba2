// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From facts in the order of time to rows.

use std::collections::HashMap;
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use lateralis_analysis::{
    Edge, End, Gaps, Joined, Matcher, Message, Pairer, Side, Span, SpanCertainty,
};
use lateralis_model::{Quality, StreamIndex, Writer};
use lateralis_units::Nanos;

use super::super::opened::Opened;
use super::super::small::{Cell, Rows, Small};
use crate::ClockErrors;
use crate::facts::{At, Doubts, Fact, Facts, Kinds, Owner, Sink};

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
    /// By kind.
    pairers: Vec<Pairer>,
    /// By channel.
    matchers: Vec<Matcher>,
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

/// The last of a row of a span.
#[derive(Debug, Clone, Copy)]
struct Ends {
    /// Where it begins, else where it ends.
    stream: StreamIndex,
    begin: Option<Edge>,
    end: Option<Edge>,
    duration_ns: Option<u64>,
    /// What two clocks may be off by: [`ClockErrors`].
    clock_error_ns: Option<u64>,
    status: &'static str,
    quality: Quality,
}

impl<'a, 'r> Deriving<'a, 'r> {
    /// Of a recording whose facts are these.
    pub fn new(small: Small, opened: &'a Opened, facts: &Facts, rows: &'a mut Rows<'r>) -> Self {
        Self {
            small,
            opened,
            has_keys: rows.wants("key"),
            has_names: rows.wants("process") || rows.wants("thread"),
            rows,
            gaps: opened.gaps(),
            certainty: SpanCertainty::new(BEGIN, opened.gaps().clone()),
            doubts: Doubts::new(facts, BEGIN),
            clock_errors: opened.recording.clock_errors(),
            pairers: Vec::new(),
            matchers: Vec::new(),
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
                at_index(&mut self.matchers, channel).send(key, at.end());
                ControlFlow::Continue(())
            }
            (Small::Messages, Fact::Receive { channel, key }) => {
                let end = at.end();
                let sent = at_index(&mut self.matchers, channel).receive(key, end);
                self.message(kinds, (channel, key), sent.map(|sent| sent.send), Some(end))
            }
            (Small::States, Fact::State { machine, state }) => {
                let place = (machine, at.owner());
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
                    Some(before) => self.state(kinds, place, before, Some(at.time)),
                    None => ControlFlow::Continue(()),
                }
            }
            (Small::Counters, Fact::Level { counter: number, value }) => {
                let counter = kinds.counters.get(number as usize);
                let [cpu, pid, tid] = lanes(at.cpu, at.writer);
                self.rows.row(&[
                    self.recording(at.stream),
                    Cell::Int(at.time.0),
                    Cell::Word(number.into(), counter.map(|counter| counter.name.as_str())),
                    Cell::Real(value),
                    cpu,
                    pid,
                    tid,
                    // The event tells it itself, whatever is missing beside it.
                    fixed(Quality::Exact.name()),
                ])
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

    /// What tables call the recording of a stream.
    fn recording(&self, stream: StreamIndex) -> Cell<'a> {
        let label = self.opened.label_of(stream);
        Cell::Word(label.as_ptr() as u64, Some(label))
    }

    fn span(&mut self, kinds: &Kinds, span: u32, ends: Ends) -> ControlFlow<()> {
        let Some(kind) = kinds.spans.get(span as usize) else {
            return ControlFlow::Continue(());
        };
        let one = ends.begin.or(ends.end);
        let key = one.and_then(|edge| edge.key).filter(|_| self.has_keys);
        let key = key.map(|key| kind.key_text(key));
        let [pid, tid] = who(one.and_then(|edge| edge.writer));
        let [end_pid, end_tid] = who(ends.end.and_then(|edge| edge.writer));
        let writer = one.and_then(|edge| edge.writer);
        let named = writer.filter(|_| self.has_names).map(|writer| (writer, self.opened.owners()));
        let process = named.and_then(|(writer, owners)| owners.process(writer.pid));
        let thread = named.and_then(|(writer, owners)| owners.thread(writer.tid));
        self.rows.row(&[
            self.recording(ends.stream),
            one.map(|edge| edge.time).into(),
            ends.end.map(|edge| edge.time).into(),
            ends.duration_ns.into(),
            Cell::Word(span.into(), Some(&kind.name)),
            key.as_deref().into(),
            Cell::Word(writer.map_or(u64::MAX, |writer| writer.pid.into()), process),
            pid,
            Cell::Word(writer.map_or(u64::MAX, |writer| writer.tid.into()), thread),
            tid,
            end_pid,
            end_tid,
            fixed(ends.status),
            ends.clock_error_ns.into(),
            fixed(ends.quality.name()),
        ])
    }

    fn message(
        &mut self,
        kinds: &Kinds,
        (channel, key): (u32, Option<u64>),
        sent: Option<End>,
        received: Option<End>,
    ) -> ControlFlow<()> {
        let Some(kind) = kinds.channels.get(channel as usize) else {
            return ControlFlow::Continue(());
        };
        let both = sent.zip(received);
        let latency = both.map(|(sent, received)| received.time.since(sent.time).max(0) as u64);
        let error = both.and_then(|(from, to)| self.clock_error(Some(from.stream), to.stream));
        let (status, quality) = match (sent, received) {
            (Some(sent), Some(received)) => {
                let message = Message { key, send: sent, receive: received };
                let joined = Joined::of(&message, self.gaps, BEGIN);
                let quality = certain(joined == Joined::Certain);
                ("complete", ClockErrors::quality(error, latency.unwrap_or(0), quality))
            }
            (Some(_), None) => ("not_received", Quality::Unknown),
            _ => ("not_sent", Quality::Unknown),
        };
        let key = key.filter(|_| self.has_keys).map(|key| kind.key_text(key));
        let one = sent.or(received);
        let [cpu, pid, tid] = sent.map_or([Cell::Null; 3], |end| lanes(end.cpu, end.writer));
        let [to_cpu, to_pid, to_tid] =
            received.map_or([Cell::Null; 3], |end| lanes(end.cpu, end.writer));
        self.rows.row(&[
            one.map_or(Cell::Null, |at| self.recording(at.stream)),
            one.map(|at| at.time).into(),
            received.map(|at| at.time).into(),
            latency.into(),
            Cell::Word(channel.into(), Some(&kind.name)),
            key.as_deref().into(),
            cpu,
            pid,
            tid,
            to_cpu,
            to_pid,
            to_tid,
            fixed(status),
            error.into(),
            fixed(quality.name()),
        ])
    }

    /// How far the times of two streams may be off; of one that is not known, it is the
    /// other.
    fn clock_error(&mut self, from: Option<StreamIndex>, to: StreamIndex) -> Option<u64> {
        self.clock_errors.between(from.unwrap_or(to), to)
    }

    fn state(
        &mut self,
        kinds: &Kinds,
        (machine, owner): (u32, Owner),
        in_state: InState,
        until: Option<Nanos>,
    ) -> ControlFlow<()> {
        let InState { state, since, told, is_certain } = in_state;
        let Some(kind) = kinds.machines.get(machine as usize) else {
            return ControlFlow::Continue(());
        };
        let end = until.or(self.last).unwrap_or(since.time);
        // How long the last state holds is known only from below.
        let is_certain = is_certain && self.is_told(machine, told, end);
        let quality = match until {
            Some(_) => certain(is_certain),
            None => Quality::LowerBound.and(certain(is_certain)),
        };
        let [cpu, pid, tid] = lanes(since.cpu, since.writer);
        let (of, pid, tid) = match owner {
            Owner::Thread(_) => ("thread", pid, tid),
            Owner::Cpu(_) => ("cpu", Cell::Null, Cell::Null),
            Owner::Stream(_) => ("stream", Cell::Null, Cell::Null),
        };
        self.rows.row(&[
            self.recording(since.stream),
            Cell::Int(since.time.0),
            Cell::Int(end.0),
            Cell::Int(end.since(since.time).max(0)),
            Cell::Word(machine.into(), Some(&kind.name)),
            kind.states.get(state as usize).map(String::as_str).into(),
            fixed(of),
            cpu,
            pid,
            tid,
            Cell::Int(since.stream.0.into()),
            fixed(if until.is_some() { "complete" } else { "unfinished" }),
            fixed(quality.name()),
        ])
    }

    /// What is open at the end.
    pub fn end(&mut self, kinds: &Kinds) -> ControlFlow<()> {
        self.flow?;
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
        for (channel, matcher) in (0..).zip(std::mem::take(&mut self.matchers)) {
            for (key, sent) in matcher.departures() {
                self.message(kinds, (channel, key), Some(sent), None)?;
            }
        }
        let mut machines: Vec<_> = std::mem::take(&mut self.machines).into_iter().collect();
        machines.sort_by_key(|((machine, owner), _)| (*machine, *owner));
        for (place, state) in machines {
            self.state(kinds, place, state, None)?;
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

/// A word of the program: it has its place as number.
fn fixed(word: &'static str) -> Cell<'static> {
    Cell::Word(word.as_ptr() as u64, Some(word))
}

fn certain(is_certain: bool) -> Quality {
    if is_certain { Quality::Exact } else { Quality::Unknown }
}

fn edge(at: &At, key: Option<u64>, side: Side) -> Edge {
    Edge { time: at.time, side, key, writer: at.writer }
}

fn who(writer: Option<Writer>) -> [Cell<'static>; 2] {
    let writer = writer.filter(|writer| writer.pid != Doubts::NOBODY);
    [writer.map(|writer| writer.pid).into(), writer.map(|writer| writer.tid).into()]
}

fn lanes(cpu: Option<u32>, writer: Option<Writer>) -> [Cell<'static>; 3] {
    let [pid, tid] = who(writer);
    [cpu.into(), pid, tid]
}
