// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rows of what is known.

use std::ops::ControlFlow;

use lateralis_analysis::{Edge, End, Joined, Message};
use lateralis_model::{Quality, StreamIndex, Writer};
use lateralis_units::Nanos;

use super::super::super::small::Cell;
use super::{BEGIN, Deriving, InState};
use crate::ClockErrors;
use crate::facts::{Doubts, Kinds, Owner};

/// Until when a state holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    /// Then it was left.
    Left(Nanos),
    /// Then the recording ended.
    Ended(Option<Nanos>),
}

/// The last of a row of a span.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    /// Where it begins, else where it ends.
    pub(super) stream: StreamIndex,
    pub(super) begin: Option<Edge>,
    pub(super) end: Option<Edge>,
    pub(super) duration_ns: Option<u64>,
    /// What two clocks may be off by: [`ClockErrors`].
    pub(super) clock_error_ns: Option<u64>,
    pub(super) status: &'static str,
    pub(super) quality: Quality,
}

impl<'a> Deriving<'a, '_> {
    /// What tables call the recording of a stream.
    pub(super) fn recording(&self, stream: StreamIndex) -> Cell<'a> {
        let label = self.opened.label_of(stream);
        Cell::Word(label.as_ptr() as u64, Some(label))
    }

    pub(super) fn span(&mut self, kinds: &Kinds, span: u32, ends: Ends) -> ControlFlow<()> {
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

    pub(super) fn message(
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

    pub(super) fn state(
        &mut self,
        kinds: &Kinds,
        (machine, owner): (u32, Owner),
        in_state: InState,
        until: Until,
    ) -> ControlFlow<()> {
        let InState { state, since, told, is_certain } = in_state;
        let Some(kind) = kinds.machines.get(machine as usize) else {
            return ControlFlow::Continue(());
        };
        let (end, is_complete) = match until {
            Until::Left(time) => (time, true),
            Until::Ended(time) => (time.unwrap_or(since.time), false),
        };
        // How long the last state holds is known only from below.
        let is_certain = is_certain && self.is_told(machine, told, end);
        let quality = match is_complete {
            true => certain(is_certain),
            false => Quality::LowerBound.and(certain(is_certain)),
        };
        let label = kind.label();
        let [cpu, pid, tid] = lanes(since.cpu, since.writer);
        let (of, pid, tid) = match owner {
            Owner::Thread(_) => ("thread", pid, tid),
            Owner::Cpu(_) => ("cpu", Cell::Null, Cell::Null),
            Owner::Stream(_) => ("stream", Cell::Null, Cell::Null),
            Owner::Process(_) => ("process", pid, Cell::Null),
        };
        self.rows.row(&[
            self.recording(since.stream),
            Cell::Int(since.time.0),
            Cell::Int(end.0),
            Cell::Int(end.since(since.time).max(0)),
            Cell::Word(machine.into(), Some(&label)),
            kind.states.get(state as usize).map(String::as_str).into(),
            fixed(of),
            cpu,
            pid,
            tid,
            Cell::Int(since.stream.0.into()),
            fixed(if is_complete { "complete" } else { "unfinished" }),
            fixed(quality.name()),
        ])
    }
}

/// A word of the program: it has its place as number.
pub(super) fn fixed(word: &'static str) -> Cell<'static> {
    Cell::Word(word.as_ptr() as u64, Some(word))
}

pub(super) fn certain(is_certain: bool) -> Quality {
    if is_certain { Quality::Exact } else { Quality::Unknown }
}

fn who(writer: Option<Writer>) -> [Cell<'static>; 2] {
    let writer = writer.filter(|writer| writer.pid != Doubts::NOBODY);
    [writer.map(|writer| writer.pid).into(), writer.map(|writer| writer.tid).into()]
}

pub(super) fn lanes(cpu: Option<u32>, writer: Option<Writer>) -> [Cell<'static>; 3] {
    let [pid, tid] = who(writer);
    [cpu.into(), pid, tid]
}
