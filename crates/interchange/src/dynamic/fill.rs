// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The second walk: adds the events to a trace.

use std::borrow::Cow;

use lateralis_model::{Builder, MemoryTrace, Pending, StreamIndex, Writer};

use super::shape::Plan;
use super::survey::{Index, Plans, Streams, other_context};
use super::{Dyn, Dynamic, Lane, Named, Sink, named_to_json, to_json};

/// Adds events whose kinds a [`super::Survey`] has learnt.
#[derive(Debug)]
pub struct Fill {
    /// The trace so far.
    pub builder: Builder,
    index: Index,
    plans: Vec<(u32, Plans)>,
    streams: Streams,
    origin: i64,
    /// Events that did not fit into the memory they may take.
    refused: u64,
    text: Vec<u8>,
}

impl Fill {
    pub(super) fn new(
        builder: Builder,
        index: Index,
        plans: Vec<(u32, Plans)>,
        streams: Streams,
        origin: i64,
    ) -> Self {
        Self { builder, index, plans, streams, origin, refused: 0, text: Vec::new() }
    }

    /// The stream of a lane, where an event of it was seen.
    #[must_use]
    pub fn stream(&self, lane: Lane) -> Option<StreamIndex> {
        let cpu = if let Lane::Cpu(cpu) = lane { cpu } else { 0 };
        self.streams.get(&(lane.number(), cpu)).copied()
    }

    /// Ends the trace.
    #[must_use]
    pub fn finish(mut self) -> MemoryTrace {
        if self.refused > 0 {
            self.builder.remark(format!(
                "{} events are not shown: they do not fit into the memory they may take: \
                 raise the limit",
                self.refused
            ));
        }
        self.builder.finish()
    }
}

impl Sink for Fill {
    fn event(&mut self, event: &Dynamic<'_>) {
        let Some((kind, other)) = self.index.find(event) else { return };
        let Some(stream) = self.stream(event.lane) else { return };
        if self.refused > 0 {
            self.refused += 1;
            return;
        }
        let (class, plans) = &self.plans[kind];
        let ticks = event.time.wrapping_sub(self.origin) as u64;
        let mut pending = self.builder.event(stream, *class, ticks, event.writer);
        let Writer { pid, tid } = event.writer.unwrap_or(Writer { pid: 0, tid: 0 });
        pending = match event.lane {
            Lane::Global => pending,
            Lane::Thread => pending.u64(pid.into()).u64(tid.into()),
            Lane::Cpu(cpu) => pending.u64(cpu.into()).u64(pid.into()).u64(tid.into()),
        };
        if let Some(plan) = &plans.context {
            let context = if other {
                Cow::Owned(other_context(event))
            } else {
                Cow::Borrowed(&event.context)
            };
            pending = add_named(pending, plan, &context, &mut self.text);
        }
        pending = add_named(pending, &plans.payload, &event.payload, &mut self.text);
        if pending.end().is_err() {
            self.refused += 1;
        }
    }
}

fn add_named<'b>(
    mut pending: Pending<'b>,
    plan: &Plan,
    values: &Named<'_>,
    text: &mut Vec<u8>,
) -> Pending<'b> {
    let Plan::Dict(members) = plan else {
        text.clear();
        named_to_json(values, text);
        return pending.bytes(text);
    };
    for (at, member) in members.iter().enumerate() {
        let found = match values.get(at) {
            Some((name, value)) if *name == member.name => Some(value),
            _ => values.iter().find(|(name, _)| *name == member.name).map(|(_, value)| value),
        };
        if member.optional {
            pending = pending.option(u32::from(found.is_some()));
            if found.is_none() {
                continue;
            }
        }
        pending = add(pending, &member.plan, found.unwrap_or(&Dyn::Null), text);
    }
    pending
}

/// Adds a value. The survey has seen it, so it fits its plan; a value that does
/// not reads as zero or empty.
fn add<'b>(pending: Pending<'b>, plan: &Plan, value: &Dyn<'_>, text: &mut Vec<u8>) -> Pending<'b> {
    match (plan, value) {
        (Plan::Json, _) => {
            text.clear();
            to_json(value, text);
            pending.bytes(text)
        }
        (Plan::Bool, Dyn::Bool(value)) => pending.u64(u64::from(*value)),
        (Plan::Unsigned, Dyn::Unsigned(value) | Dyn::Hex(value)) => pending.u64(*value),
        (Plan::Signed, Dyn::Unsigned(value) | Dyn::Hex(value)) => pending.i64(*value as i64),
        (Plan::Signed, Dyn::Signed(value)) => pending.i64(*value),
        (Plan::Real, Dyn::Real(value)) => pending.real(*value),
        (Plan::Real, Dyn::Unsigned(value) | Dyn::Hex(value)) => pending.real(*value as f64),
        (Plan::Real, Dyn::Signed(value)) => pending.real(*value as f64),
        (Plan::Text, Dyn::Text(value)) => pending.text(value),
        (Plan::Bytes, Dyn::Bytes(value)) => pending.bytes(value),
        (Plan::List(element), Dyn::List(values)) => {
            let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
            pending.array(count, |pending| {
                let values = values.iter().take(count as usize);
                values.fold(pending, |pending, value| add(pending, element, value, text))
            })
        }
        (Plan::Dict(_), Dyn::Dict(values)) => add_named(pending, plan, values, text),
        (Plan::Dict(_), _) => add_named(pending, plan, &Vec::new(), text),
        (Plan::Text | Plan::Bytes, _) => pending.text(""),
        (Plan::List(_), _) => pending.array(0, |pending| pending),
        (Plan::Real, _) => pending.real(0.0),
        (Plan::Bool | Plan::Unsigned | Plan::Signed, _) => pending.u64(0),
    }
}
