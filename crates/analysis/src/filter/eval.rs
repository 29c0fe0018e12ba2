// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evaluates an expression on an event.

use std::borrow::Cow;
use std::cmp::Ordering;

use lateralis_model::role::PHASE;
use lateralis_model::{
    Event, Field, FieldKind, IntegerClass, Names, StreamSummary, Value, subsystem_and_event,
};

use super::{Comparison, Expression, Known, Operand, Step, matches_pattern};

/// Inputs that an event does not contain.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Names of processes and threads.
    pub names: &'a Names,
    /// The streams, by index.
    pub streams: &'a [StreamSummary],
}

#[derive(Debug)]
pub(super) enum Found<'a> {
    Integer(i128),
    Real(f64),
    Text(Cow<'a, str>),
    /// A value with a label.
    Labelled(i128, &'a str),
    /// Present, but neither number nor text.
    Other,
}

pub(super) fn truth(expression: &Expression, event: &Event<'_>, context: &Context<'_>) -> bool {
    match expression {
        Expression::And(a, b) => truth(a, event, context) && truth(b, event, context),
        Expression::Or(a, b) => truth(a, event, context) || truth(b, event, context),
        Expression::Not(inner) => !truth(inner, event, context),
        Expression::Truth(operand) => {
            find(operand, event, context).is_some_and(|found| truth_of(&found))
        }
        Expression::Compare(left, comparison, right) => {
            let (left, right) = (find(left, event, context), find(right, event, context));
            left.zip(right).is_some_and(|(left, right)| compare(&left, *comparison, &right))
        }
    }
}

pub(super) fn truth_of(found: &Found<'_>) -> bool {
    match found {
        Found::Integer(value) | Found::Labelled(value, _) => *value != 0,
        Found::Real(value) => *value != 0.0,
        Found::Text(text) => !text.is_empty(),
        Found::Other => true,
    }
}

/// A built-in property of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact<'a> {
    /// A number.
    Integer(i128),
    /// A text.
    Text(Cow<'a, str>),
}

/// A property of an event besides its fields; `None` if the trace does not have it.
///
/// Cost: a walk over the contexts of the event if the tracer has no dedicated field for it.
#[must_use]
pub fn fact<'a>(known: Known, event: &Event<'a>, context: &Context<'a>) -> Option<Fact<'a>> {
    match find_known(known, event, context)? {
        Found::Integer(value) | Found::Labelled(value, _) => Some(Fact::Integer(value)),
        Found::Text(text) => Some(Fact::Text(text)),
        Found::Real(_) | Found::Other => None,
    }
}

pub(super) fn compare(left: &Found<'_>, comparison: Comparison, right: &Found<'_>) -> bool {
    if let Comparison::Matches | Comparison::MatchesNot = comparison {
        let (Some(text), Some(pattern)) = (text(left), text(right)) else {
            return false;
        };
        return matches_pattern(pattern, text) == (comparison == Comparison::Matches);
    }
    let Some(order) = order(left, right) else {
        return false;
    };
    match comparison {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::NotEqual => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }
}

fn text<'a>(found: &'a Found<'_>) -> Option<&'a str> {
    match found {
        Found::Text(text) => Some(text),
        Found::Labelled(_, label) => Some(label),
        _ => None,
    }
}

/// `None` if the two cannot be compared.
pub(super) fn order(left: &Found<'_>, right: &Found<'_>) -> Option<Ordering> {
    if let (Some(left), Some(right)) = (text(left), text(right)) {
        return Some(left.cmp(right));
    }
    let number = |found: &Found<'_>| match found {
        Found::Integer(value) | Found::Labelled(value, _) => Some((*value, *value as f64)),
        Found::Real(value) => Some((*value as i128, *value)),
        _ => None,
    };
    let is_real = matches!(left, Found::Real(_)) || matches!(right, Found::Real(_));
    let ((left, left_real), (right, right_real)) = (number(left)?, number(right)?);
    if is_real { left_real.partial_cmp(&right_real) } else { Some(left.cmp(&right)) }
}

fn find<'a>(operand: &'a Operand, event: &Event<'a>, context: &Context<'a>) -> Option<Found<'a>> {
    match operand {
        Operand::Integer(value) => Some(Found::Integer(*value)),
        Operand::Real(value) => Some(Found::Real(*value)),
        Operand::Text(text) => Some(Found::Text(Cow::Borrowed(text))),
        Operand::Known(known) => find_known(*known, event, context),
        Operand::Field(steps) => {
            let scopes =
                [event.payload(), event.context(), event.common_context(), event.packet_context()];
            let (Step::Member(first), rest) = steps.split_first()? else {
                return None;
            };
            let field = scopes.into_iter().flatten().find_map(|fields| fields.get(first))?;
            found(follow(field, rest)?)
        }
    }
}

fn follow<'a>(mut field: Field<'a>, steps: &[Step]) -> Option<Field<'a>> {
    for step in steps {
        field = match (field.value(), step) {
            (Value::Struct(fields), Step::Member(name)) => fields.get(name)?,
            (Value::Variant(option, inner), Step::Member(name)) if option.name == *name => inner,
            (Value::Variant(_, inner), step) => follow(inner, std::slice::from_ref(step))?,
            (Value::Optional(Some(inner)), step) => follow(inner, std::slice::from_ref(step))?,
            (Value::Array(mut elements), Step::Element(index)) => elements.nth(*index)?,
            _ => return None,
        };
    }
    Some(field)
}

fn found(field: Field<'_>) -> Option<Found<'_>> {
    let class: Option<&IntegerClass> = match &field.class().kind {
        FieldKind::Unsigned(class) | FieldKind::Signed(class) => Some(class),
        _ => None,
    };
    let integer = |value: i128| {
        let is_it =
            |label: &&lateralis_model::Label| label.ranges.iter().any(|r| r.contains(value));
        match class.and_then(|class| class.labels.iter().find(is_it)) {
            Some(label) => Found::Labelled(value, &label.name),
            None => Found::Integer(value),
        }
    };
    Some(match field.value() {
        Value::Bool(value) => Found::Integer(value.into()),
        Value::Unsigned(value) | Value::Bits(value) => integer(value.into()),
        Value::Signed(value) => integer(value.into()),
        Value::Real(value) => Found::Real(value),
        Value::Text(text) => Found::Text(text.to_str()),
        Value::Variant(_, inner) | Value::Optional(Some(inner)) => return found(inner),
        Value::Optional(None) => return None,
        Value::Array(elements) => {
            return Some(text_of(elements).map_or(Found::Other, |text| Found::Text(text.into())));
        }
        Value::Struct(_) | Value::Bytes(_) => Found::Other,
    })
}

/// Text of an array of characters, up to its first NUL [CTF 1.8.3 §4.2.5]; `None` for other arrays.
#[must_use]
pub fn text_of(elements: lateralis_model::Elements<'_>) -> Option<String> {
    let mut text = Vec::new();
    for element in elements {
        match (element.value(), &element.class().kind) {
            (Value::Unsigned(0), FieldKind::Unsigned(class)) if class.bits == 8 => break,
            (Value::Unsigned(byte), FieldKind::Unsigned(class)) if class.bits == 8 => {
                text.push(byte as u8);
            }
            _ => return None,
        }
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn find_known<'a>(known: Known, event: &Event<'a>, context: &Context<'a>) -> Option<Found<'a>> {
    let name = event.class.name.as_str();
    let number = |names: &[&str]| {
        names.iter().find_map(|name| common(event, name)?.as_u64()).map(|n| n as i64 as i128)
    };
    let pid = || event.writer.map(|w| i128::from(w.pid)).or_else(|| number(&PID_FIELDS));
    let tid = || event.writer.map(|w| i128::from(w.tid)).or_else(|| number(&TID_FIELDS));
    let named = |map: &'a std::collections::BTreeMap<u32, String>, id: Option<i128>| {
        map.get(&u32::try_from(id?).ok()?).map(|name| Found::Text(Cow::Borrowed(name.as_str())))
    };
    let command = || {
        let field = COMMAND_FIELDS.iter().find_map(|name| common(event, name))?;
        found(field)
    };
    match known {
        Known::Event => Some(Found::Text(Cow::Borrowed(name))),
        Known::Subsystem => {
            let (subsystem, _) = subsystem_and_event(name);
            Some(Found::Text(Cow::Borrowed(subsystem)))
        }
        Known::Phase => event.class.attribute(PHASE).map(|phase| Found::Text(phase.into())),
        Known::Cpu => {
            let cpu = event.packet.cpu.map(|cpu| i128::from(cpu.0));
            cpu.or_else(|| number(&["cpu_id"])).map(Found::Integer)
        }
        Known::Pid => pid().map(Found::Integer),
        Known::Tid => tid().map(Found::Integer),
        Known::Process => named(&context.names.processes, pid()).or_else(command),
        Known::Thread => named(&context.names.threads, tid()).or_else(command),
        Known::Stream => {
            let stream = context.streams.get(event.stream.0 as usize)?;
            Some(Found::Text(Cow::Borrowed(stream.name.as_str())))
        }
        Known::Time => Some(Found::Integer(event.time.0.into())),
    }
}

/// Names of these fields in different tracers: ours, LTTng's (with and without the underscore that CTF
/// 1.8 adds), the kernel's.
pub(super) const PID_FIELDS: [&str; 4] = ["pid", "vpid", "_vpid", "_pid"];
pub(super) const TID_FIELDS: [&str; 4] = ["tid", "vtid", "_vtid", "_tid"];
pub(super) const COMMAND_FIELDS: [&str; 4] = ["comm", "procname", "_procname", "thread_name"];

fn common<'a>(event: &Event<'a>, name: &str) -> Option<Field<'a>> {
    // Beside a common context, the specific one has an id in the source format's form, for instance a
    // text.
    let scopes = [event.common_context(), event.context(), event.packet_context()];
    scopes.into_iter().flatten().find_map(|fields| fields.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Filter;
    use lateralis_model::{
        Clock, EventClass, FieldClass, Label, MemoryTrace, Range, Source, StreamClass, Writer,
    };
    use lateralis_units::CpuId;

    fn example() -> MemoryTrace {
        let mut builder = MemoryTrace::builder("test", u64::MAX);
        let clock = builder.clock(Clock::default());
        let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
        let label = Label { name: "RUNNING".into(), ranges: vec![Range { low: 2, high: 2 }] };
        let labelled = IntegerClass { bits: 8, labels: vec![label], ..Default::default() };
        let payload = FieldClass::structure([
            ("bytes", FieldClass::u64()),
            ("delta", FieldClass::i64()),
            ("name", FieldClass::text()),
            ("ratio", FieldClass::real()),
            ("state", FieldClass::new(FieldKind::Unsigned(labelled))),
            ("list", FieldClass::array(FieldClass::u64(), None)),
            ("at", FieldClass::structure([("port", FieldClass::u64())])),
            ("maybe", FieldClass::optional(FieldClass::u64())),
        ]);
        let event =
            EventClass { name: "io:READ".into(), payload: Some(payload), ..Default::default() };
        let event = builder.event_class(class, event);
        let stream = builder.stream(class, "cpu3", Some(CpuId(3)));
        builder.names().processes.insert(7, "redis-server".into());
        let pending = builder.event(stream, event, 42, Some(Writer { pid: 7, tid: 8 }));
        let pending = pending.u64(8192).i64(-5).text("hello world").real(0.5).u64(2);
        let pending = pending.array(2, |p| p.u64(10).u64(20)).u64(8080).option(0);
        pending.end().unwrap();
        builder.finish()
    }

    #[test]
    fn expressions_choose_as_they_say() {
        let trace = example();
        let streams = trace.streams();
        let context = Context { names: trace.names(), streams: &streams };
        let mut events = trace.events();
        let event = events.next_event().unwrap();
        for (text, expected) in [
            ("bytes > 4k", true),
            ("bytes == 8k && delta == -5", true),
            ("bytes < 8192 || delta < 0", true),
            ("!(bytes == 8192)", false),
            ("name == \"hello world\"", true),
            ("name =~ 'hello*'", true),
            ("name !~ 'hello*'", false),
            ("ratio >= 0.5 && ratio < 1", true),
            ("state == RUNNING", true),
            ("state == 2", true),
            ("state != RUNNING", false),
            ("list[1] == 20", true),
            ("list[2] == 20", false),
            ("at.port == 0x1f90", true),
            ("maybe", false),
            ("maybe != 3", false),
            ("missing != 3", false),
            ("bytes", true),
            ("$event == \"io:READ\" && $subsystem == io", true),
            ("$cpu == 3 && $pid == 7 && $tid == 8", true),
            ("$process =~ \"redis*\"", true),
            ("$thread == x", false),
            ("$stream == cpu3 && $time == 42", true),
            ("name == 3", false),
            ("delta < 18446744073709551615", true),
        ] {
            let filter = Filter::parse(text).unwrap();
            assert_eq!(filter.matches(&event, &context), expected, "{text}");
        }
    }
}
