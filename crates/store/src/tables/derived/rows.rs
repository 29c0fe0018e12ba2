// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of derived items.

use std::ops::ControlFlow;

use lateralis_model::{Quality, StreamIndex, Writer};
use lateralis_semantics::{
    DerivedFlow, DerivedSink, DerivedSpan, Deriver, Known, SpanStatus, StateInterval,
};

use super::super::opened::Opened;
use super::super::small::{Cell, Rows, Small};
use crate::facts::{At, Fact, Facts, Kinds, Owner};

/// Writer of rows for derived items.
pub struct DerivedRows<'a, 'r> {
    small: Small,
    opened: &'a Opened,
    rows: &'a mut Rows<'r>,
    /// Whether keys are needed: a text each.
    has_keys: bool,
    /// Whether names are needed, for which events may have to be read.
    has_names: bool,
    /// Whether more rows are needed.
    pub flow: ControlFlow<()>,
}

impl<'a, 'r> DerivedRows<'a, 'r> {
    /// For a recording.
    pub fn new(small: Small, opened: &'a Opened, rows: &'a mut Rows<'r>) -> Self {
        Self {
            small,
            opened,
            has_keys: rows.wants("key"),
            has_names: rows.wants("process") || rows.wants("thread"),
            rows,
            flow: ControlFlow::Continue(()),
        }
    }

    /// The deriver for these rows.
    pub fn deriver(opened: &Opened, facts: &Facts) -> Deriver<()> {
        let known = Known {
            gaps: opened.gaps().clone(),
            clock_errors: opened.recording.clock_errors(),
            successions: opened.recording.successions(),
            ..Known::default()
        };
        Deriver::new(facts, known)
    }

    fn row(&mut self, cells: &[Cell<'_>]) {
        if self.flow.is_continue() {
            self.flow = self.rows.row(cells);
        }
    }

    /// Name in tables of the recording of a stream.
    fn recording(&self, stream: StreamIndex) -> Cell<'a> {
        let label = self.opened.label_of(stream);
        Cell::Word(label.as_ptr() as u64, Some(label))
    }

    fn level(&mut self, kinds: &Kinds, at: &At, number: u32, value: f64) {
        let counter = kinds.counters.get(number as usize).map(|counter| counter.label());
        let [cpu, pid, tid] = lanes(at.cpu, at.writer);
        self.row(&[
            self.recording(at.stream),
            Cell::Int(at.time.0),
            Cell::Word(number.into(), counter.as_deref()),
            Cell::Real(value),
            cpu,
            pid,
            tid,
            // Taken from the event itself, whatever else is missing.
            fixed(Quality::Exact.name()),
        ]);
    }
}

impl DerivedSink for DerivedRows<'_, '_> {
    type Event = ();

    fn span(&mut self, kinds: &Kinds, span: &DerivedSpan) {
        if self.small != Small::Spans || self.flow.is_break() {
            return;
        }
        let (Some(kind), Some(one)) =
            (kinds.spans.get(span.kind as usize), span.begin.or(span.end))
        else {
            return;
        };
        let key = one.edge.key.filter(|_| self.has_keys).map(|key| kind.key_text(key));
        let writer = one.edge.writer;
        let [pid, tid] = who(writer);
        let [end_pid, end_tid] = who(span.end.and_then(|end| end.edge.writer));
        let named = writer.filter(|_| self.has_names).map(|writer| (writer, self.opened.owners()));
        let process = named.and_then(|(writer, owners)| owners.process(writer.pid));
        let thread = named.and_then(|(writer, owners)| owners.thread(writer.tid));
        // An end without its begin is placed at its end.
        let time = one.edge.time;
        let is_half = span.status == SpanStatus::Unfinished || span.duration_ns().is_none();
        let clock_error = span.clock_error_ns.filter(|_| !is_half);
        self.row(&[
            self.recording(one.stream),
            Some(time).into(),
            span.end.map(|end| end.edge.time).into(),
            span.duration_ns().into(),
            Cell::Word(span.kind.into(), Some(&kind.name)),
            key.as_deref().into(),
            Cell::Word(writer.map_or(u64::MAX, |writer| writer.pid.into()), process),
            pid,
            Cell::Word(writer.map_or(u64::MAX, |writer| writer.tid.into()), thread),
            tid,
            end_pid,
            end_tid,
            fixed(span.status.name(span.begin.is_some())),
            clock_error.into(),
            fixed(span.quality.name()),
        ]);
    }

    fn flow(&mut self, kinds: &Kinds, channel: u32, flow: &DerivedFlow) {
        if self.small != Small::Messages || self.flow.is_break() {
            return;
        }
        let Some(kind) = kinds.channels.get(channel as usize) else {
            return;
        };
        let (sent, received, key, error, latency, status, quality) = match *flow {
            DerivedFlow::Complete { message, clock_error_ns, quality, .. } => {
                let latency = Some(message.nanos());
                let (sent, received) = (Some(message.send), Some(message.receive));
                (sent, received, message.key, clock_error_ns, latency, "complete", quality)
            }
            DerivedFlow::NotReceived(key, sent) => {
                (Some(sent), None, key, None, None, "not_received", Quality::Unknown)
            }
            DerivedFlow::NotSent(key, received) => {
                (None, Some(received), key, None, None, "not_sent", Quality::Unknown)
            }
        };
        let key = key.filter(|_| self.has_keys).map(|key| kind.key_text(key));
        let one = sent.or(received);
        let [cpu, pid, tid] = sent.map_or([Cell::Null; 3], |end| lanes(end.cpu, end.writer));
        let [to_cpu, to_pid, to_tid] =
            received.map_or([Cell::Null; 3], |end| lanes(end.cpu, end.writer));
        self.row(&[
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
        ]);
    }

    fn state(&mut self, kinds: &Kinds, interval: &StateInterval) {
        if self.small != Small::States || self.flow.is_break() {
            return;
        }
        let StateInterval { machine, owner, state, since, until, is_complete, quality, .. } =
            *interval;
        let Some(kind) = kinds.machines.get(machine as usize) else {
            return;
        };
        let label = kind.label();
        let [cpu, pid, tid] = lanes(since.cpu, since.writer);
        let (of, pid, tid) = match owner {
            Owner::Thread(_) => ("thread", pid, tid),
            Owner::Cpu(_) => ("cpu", Cell::Null, Cell::Null),
            Owner::Stream(_) => ("stream", Cell::Null, Cell::Null),
            Owner::Process(_) => ("process", pid, Cell::Null),
        };
        self.row(&[
            self.recording(since.stream),
            Cell::Int(since.time.0),
            Cell::Int(until.0),
            Cell::Int(until.since(since.time).max(0)),
            Cell::Word(machine.into(), Some(&label)),
            kind.states.get(state as usize).map(String::as_str).into(),
            fixed(of),
            cpu,
            pid,
            tid,
            Cell::Int(since.stream.0.into()),
            fixed(if is_complete { "complete" } else { "unfinished" }),
            fixed(quality.name()),
        ]);
    }

    fn fact(&mut self, kinds: &Kinds, at: &At, fact: &Fact) {
        if let (Small::Counters, Fact::Level { counter, value }) = (self.small, fact) {
            self.level(kinds, at, *counter, *value);
        }
    }

    fn is_enough(&self) -> bool {
        self.flow.is_break()
    }
}

/// A constant word, with its address as number.
pub(super) fn fixed(word: &'static str) -> Cell<'static> {
    Cell::Word(word.as_ptr() as u64, Some(word))
}

fn who(writer: Option<Writer>) -> [Cell<'static>; 2] {
    [writer.map(|writer| writer.pid).into(), writer.map(|writer| writer.tid).into()]
}

fn lanes(cpu: Option<u32>, writer: Option<Writer>) -> [Cell<'static>; 3] {
    let [pid, tid] = who(writer);
    [cpu.into(), pid, tid]
}
