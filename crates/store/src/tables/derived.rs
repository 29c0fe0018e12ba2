// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans, messages, states and counters: facts of events in the order of time.
//!
//! A row is shown as soon as it is known, so memory is that of what is open at once: spans
//! begun, messages on their way, machines.

use std::collections::HashMap;
use std::ops::ControlFlow;

use lateralis_analysis::{Edge, End, Gaps, Joined, Message, Pairer, Side, Span, SpanCertainty};
use lateralis_model::{Damage, Quality, Source, StreamIndex, Writer};
use lateralis_units::Nanos;

use super::opened::Opened;
use super::small::{Cell, Rows, Small};
use crate::facts::{At, Doubts, Fact, Facts, Owner};

/// Before everything.
const BEGIN: Nanos = Nanos(i64::MIN);

/// Adds the rows of one recording.
///
/// Cost: a pass over all events in the order of time, of traces in which any event says
/// anything.
pub fn rows(
    small: Small,
    opened: &Opened,
    rows: &mut Rows<'_>,
    damage: &mut Vec<Damage>,
) -> ControlFlow<()> {
    let mut facts = Facts::new(opened.annotated(), &opened.recording.streams);
    if !facts.has_meaning() {
        return ControlFlow::Continue(());
    }
    let mut deriving = Deriving {
        small,
        opened,
        rows,
        gaps: opened.gaps(),
        certainty: SpanCertainty::new(BEGIN, opened.gaps().clone()),
        doubts: Doubts::new(&facts, BEGIN),
        pairers: HashMap::new(),
        channels: HashMap::new(),
        machines: HashMap::new(),
        streams: (opened.recording.source.bases().len() > 1).then(HashMap::new),
        doubted: HashMap::new(),
        last: Nanos(0),
    };
    let mut events = opened.recording.source.events();
    let mut told = Vec::new();
    while let Some(event) = events.next_event() {
        deriving.last = event.time;
        if !facts.means(event.stream_class_index, event.class_index) {
            facts.at(&event);
            continue;
        }
        told.clear();
        facts.of(&event, |at, fact| told.push((*at, fact)));
        for (at, fact) in told.drain(..) {
            deriving.doubts.see(&at, &fact, deriving.gaps);
            match deriving.doubts.fact(&at, fact, deriving.gaps) {
                Some((at, fact)) => deriving.fact(&facts, &at, fact)?,
                None => deriving.in_doubt(&facts, &at, fact)?,
            }
        }
    }
    damage.extend(events.damage());
    deriving.end(&facts)
}

struct Deriving<'a, 'r> {
    small: Small,
    opened: &'a Opened,
    rows: &'a mut Rows<'r>,
    gaps: &'a Gaps,
    certainty: SpanCertainty,
    doubts: Doubts,
    pairers: HashMap<u32, Pairer>,
    /// By channel and key, in the order in which they left.
    channels: HashMap<(u32, Option<u64>), std::collections::VecDeque<At>>,
    /// Of several traces, in which stream spans that are open began.
    streams: Option<HashMap<(u32, Edge), StreamIndex>>,
    machines: HashMap<(u32, Owner), InState>,
    /// When each machine last told its state of a thread that nobody knows.
    doubted: HashMap<u32, Nanos>,
    last: Nanos,
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
    /// What two clocks may be off by: [`Tie::error_ns`].
    clock_error_ns: Option<u64>,
    status: &'static str,
    quality: Quality,
}

impl Deriving<'_, '_> {
    fn fact(&mut self, facts: &Facts, at: &At, fact: Fact) -> ControlFlow<()> {
        match (self.small, fact) {
            (Small::Spans, Fact::Begin { span, key }) => {
                self.edge(facts, span, at, key, Side::Begin)
            }
            (Small::Spans, Fact::End { span, key }) => self.edge(facts, span, at, key, Side::End),
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
                self.span(facts, span, ends)
            }
            (Small::Messages, Fact::Send { channel, key }) => {
                self.channels.entry((channel, key)).or_default().push_back(*at);
                ControlFlow::Continue(())
            }
            (Small::Messages, Fact::Receive { channel, key }) => {
                let place = (channel, key);
                let sent = self.channels.get_mut(&place).and_then(|queue| queue.pop_front());
                if self.channels.get(&place).is_some_and(|queue| queue.is_empty()) {
                    self.channels.remove(&place);
                }
                self.message(facts, place, sent, Some(*at))
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
                    Some(before) => self.state(facts, place, before, Some(at.time)),
                    None => ControlFlow::Continue(()),
                }
            }
            (Small::Counters, Fact::Level { counter, value }) => {
                let counter = facts.kinds().counters.get(counter as usize);
                let [cpu, pid, tid] = lanes(at);
                self.rows.row(&[
                    Cell::Text(self.opened.label_of(at.stream)),
                    Cell::Int(at.time.0),
                    counter.map(|counter| counter.name.as_str()).into(),
                    Cell::Real(value),
                    cpu,
                    pid,
                    tid,
                    // The event tells it itself, whatever is missing beside it.
                    Cell::Text(Quality::Exact.name()),
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
    fn in_doubt(&mut self, facts: &Facts, at: &At, fact: Fact) -> ControlFlow<()> {
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
                self.span(facts, span, Ends { begin, ..ends })
            }
            (Small::Spans, Fact::End { span, key }) => {
                self.certainty.doubt(span, at.time);
                let end = Some(Edge { writer: None, ..edge(at, key, Side::End) });
                self.span(facts, span, Ends { end, status: "orphan", ..ends })
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
        facts: &Facts,
        span: u32,
        at: &At,
        key: Option<u64>,
        side: Side,
    ) -> ControlFlow<()> {
        let edge = edge(at, key, side);
        if let (Some(streams), Side::Begin) = (&mut self.streams, side) {
            streams.insert((span, edge), at.stream);
        }
        let pairer = self.pairers.entry(span).or_default();
        match (pairer.push(edge), side) {
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
                    quality: told_by(clock_error_ns, found.nanos(), quality),
                };
                self.span(facts, span, ends)
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
                self.span(facts, span, ends)
            }
        }
    }

    fn span(&mut self, facts: &Facts, span: u32, ends: Ends) -> ControlFlow<()> {
        let Some(kind) = facts.kinds().spans.get(span as usize) else {
            return ControlFlow::Continue(());
        };
        let one = ends.begin.or(ends.end);
        let key = one.and_then(|edge| edge.key).map(|key| kind.key_text(key));
        let owners = self.opened.owners();
        let [pid, tid] = who(one.and_then(|edge| edge.writer));
        let [end_pid, end_tid] = who(ends.end.and_then(|edge| edge.writer));
        let writer = one.and_then(|edge| edge.writer);
        let process = writer.and_then(|writer| owners.process(writer.pid));
        let thread = writer.and_then(|writer| owners.thread(writer.tid));
        self.rows.row(&[
            Cell::Text(self.opened.label_of(ends.stream)),
            one.map(|edge| edge.time).into(),
            ends.end.map(|edge| edge.time).into(),
            ends.duration_ns.into(),
            Cell::Text(&kind.name),
            key.as_deref().into(),
            process.into(),
            pid,
            thread.into(),
            tid,
            end_pid,
            end_tid,
            Cell::Text(ends.status),
            ends.clock_error_ns.into(),
            Cell::Text(ends.quality.name()),
        ])
    }

    fn message(
        &mut self,
        facts: &Facts,
        (channel, key): (u32, Option<u64>),
        sent: Option<At>,
        received: Option<At>,
    ) -> ControlFlow<()> {
        let Some(kind) = facts.kinds().channels.get(channel as usize) else {
            return ControlFlow::Continue(());
        };
        let both = sent.zip(received);
        let latency = both.map(|(sent, received)| received.time.since(sent.time).max(0) as u64);
        let error = both.and_then(|(from, to)| self.clock_error(Some(from.stream), to.stream));
        let (status, quality) = match (sent, received) {
            (Some(sent), Some(received)) => {
                let (send, receive) = (end_of(&sent), end_of(&received));
                let joined = Joined::of(&Message { key, send, receive }, self.gaps, BEGIN);
                let quality = certain(joined == Joined::Certain);
                ("complete", told_by(error, latency.unwrap_or(0), quality))
            }
            (Some(_), None) => ("not_received", Quality::Unknown),
            _ => ("not_sent", Quality::Unknown),
        };
        let key = key.map(|key| kind.key_text(key));
        let one = sent.or(received);
        let [cpu, pid, tid] = sent.as_ref().map_or([Cell::Null; 3], lanes);
        let [to_cpu, to_pid, to_tid] = received.as_ref().map_or([Cell::Null; 3], lanes);
        self.rows.row(&[
            one.map(|at| self.opened.label_of(at.stream)).into(),
            one.map(|at| at.time).into(),
            received.map(|at| at.time).into(),
            latency.into(),
            Cell::Text(&kind.name),
            key.as_deref().into(),
            cpu,
            pid,
            tid,
            to_cpu,
            to_pid,
            to_tid,
            Cell::Text(status),
            error.into(),
            Cell::Text(quality.name()),
        ])
    }

    /// How far the times of two streams may be off; of one that is not known, it is the
    /// other.
    fn clock_error(&self, from: Option<StreamIndex>, to: StreamIndex) -> Option<u64> {
        let from = from.unwrap_or(to);
        self.opened.recording.source.tie(from, to).error_ns
    }

    fn state(
        &mut self,
        facts: &Facts,
        (machine, owner): (u32, Owner),
        in_state: InState,
        until: Option<Nanos>,
    ) -> ControlFlow<()> {
        let InState { state, since, told, is_certain } = in_state;
        let Some(kind) = facts.kinds().machines.get(machine as usize) else {
            return ControlFlow::Continue(());
        };
        let end = until.unwrap_or(self.last);
        // How long the last state holds is known only from below.
        let is_certain = is_certain && self.is_told(machine, told, end);
        let quality = match until {
            Some(_) => certain(is_certain),
            None => Quality::LowerBound.and(certain(is_certain)),
        };
        let [cpu, pid, tid] = lanes(&since);
        let (of, pid, tid) = match owner {
            Owner::Thread(_) => ("thread", pid, tid),
            Owner::Cpu(_) => ("cpu", Cell::Null, Cell::Null),
            Owner::Stream(_) => ("stream", Cell::Null, Cell::Null),
        };
        self.rows.row(&[
            Cell::Text(self.opened.label_of(since.stream)),
            Cell::Int(since.time.0),
            Cell::Int(end.0),
            Cell::Int(end.since(since.time).max(0)),
            Cell::Text(&kind.name),
            kind.states.get(state as usize).map(String::as_str).into(),
            Cell::Text(of),
            cpu,
            pid,
            tid,
            Cell::Int(since.stream.0.into()),
            Cell::Text(if until.is_some() { "complete" } else { "unfinished" }),
            Cell::Text(quality.name()),
        ])
    }

    /// What is open at the end.
    fn end(&mut self, facts: &Facts) -> ControlFlow<()> {
        let mut pairers: Vec<(u32, Pairer)> =
            std::mem::take(&mut self.pairers).into_iter().collect();
        pairers.sort_by_key(|(span, _)| *span);
        for (span, pairer) in pairers {
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
                self.span(facts, span, ends)?;
            }
        }
        let mut channels: Vec<_> = std::mem::take(&mut self.channels).into_iter().collect();
        channels.sort_by_key(|((channel, key), _)| (*channel, *key));
        for (place, queue) in channels {
            for sent in queue {
                self.message(facts, place, Some(sent), None)?;
            }
        }
        let mut machines: Vec<_> = std::mem::take(&mut self.machines).into_iter().collect();
        machines.sort_by_key(|((machine, owner), _)| (*machine, *owner));
        for (place, state) in machines {
            self.state(facts, place, state, None)?;
        }
        ControlFlow::Continue(())
    }
}

/// The quality of a length of time that two clocks tell: one that is no longer than they may
/// be off says nothing.
fn told_by(clock_error_ns: Option<u64>, length_ns: u64, quality: Quality) -> Quality {
    match clock_error_ns {
        Some(0) => quality,
        Some(error) if error < length_ns => quality,
        _ => Quality::Unknown,
    }
}

fn certain(is_certain: bool) -> Quality {
    if is_certain { Quality::Exact } else { Quality::Unknown }
}

fn end_of(at: &At) -> End {
    End { time: at.time, cpu: at.cpu, writer: at.writer }
}

fn edge(at: &At, key: Option<u64>, side: Side) -> Edge {
    Edge { time: at.time, side, key, writer: at.writer }
}

fn who(writer: Option<Writer>) -> [Cell<'static>; 2] {
    let writer = writer.filter(|writer| writer.pid != Doubts::NOBODY);
    [writer.map(|writer| writer.pid).into(), writer.map(|writer| writer.tid).into()]
}

fn lanes(at: &At) -> [Cell<'static>; 3] {
    let [pid, tid] = who(at.writer);
    [at.cpu.into(), pid, tid]
}
