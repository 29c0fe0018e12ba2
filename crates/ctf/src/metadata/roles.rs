// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CTF 1.8 gives meaning to fields by their names [CTF 1.8.3 §5, §6.1, §8];
//! here the names become roles, as CTF 2 has them from the start.

use std::collections::HashSet;
use std::sync::Arc;

use lateralis_model::{Clock, ScalarKind};

use super::field::{FieldClass, Length, Role, Roles, ScalarClass, TextClass};
use super::{DIAGNOSTIC_LIMIT, Diagnostic, TraceClass, brief};

/// Names of the packet header.
const HEADER: [(&str, Role); 3] = [
    ("magic", Role::Magic),
    ("stream_id", Role::StreamClassId),
    ("stream_instance_id", Role::StreamId),
];

/// Names of the packet context.
const CONTEXT: [(&str, Role); 6] = [
    ("timestamp_begin", Role::Clock),
    ("timestamp_end", Role::PacketEnd),
    ("packet_size", Role::PacketSize),
    ("content_size", Role::ContentSize),
    ("packet_seq_num", Role::Sequence),
    ("events_discarded", Role::Discarded),
];

/// Assigns roles to the fields of a trace class made from TSDL, and clocks to its streams.
pub(super) fn assign(trace: &mut TraceClass, diagnostics: &mut Vec<Diagnostic>) {
    if let Some(header) = &mut trace.packet_header {
        uuid_as_bytes(header);
        if let Some(message) = header_fault(header, trace.streams.len())
            && diagnostics.len() < DIAGNOSTIC_LIMIT
        {
            diagnostics.push(Diagnostic::new(0, 0, message));
        }
        for (name, role) in HEADER {
            member(header, name, role);
        }
    }
    for index in 0..trace.streams.len() {
        let stream = &mut trace.streams[index];
        if let Some(context) = &mut stream.packet_context {
            for (name, role) in CONTEXT {
                member(context, name, role);
            }
        }
        if let Some(header) = &mut stream.event_header {
            everywhere(header, "id", Role::EventClassId);
        }
        stream_clock(trace, index, diagnostics);
    }
    mark_checksum(trace);
}

/// What of a packet header leaves open what its packets are.
fn header_fault(header: &FieldClass, streams: usize) -> Option<String> {
    let named = |name: &str| header.members().iter().find(|member| *member.name == *name);
    if let Some(member) = named("magic")
        && !matches!(&member.class, FieldClass::Scalar(class)
            if class.scalar.bits == 32)
    {
        return Some("the magic number of a packet must have 32 bits".to_owned());
    }
    (streams > 1 && !has(header, "stream_id")).then(|| {
        format!("packets do not say of which of {streams} streams they are: no `stream_id`")
    })
}

/// Gives the checksum field of Lateralis packets its role; both versions.
pub(super) fn mark_checksum(trace: &mut TraceClass) {
    if trace.is_lateralis() {
        let contexts = trace.streams.iter_mut().filter_map(|s| s.packet_context.as_mut());
        contexts.for_each(|context| member(context, "checksum", Role::Checksum));
    }
}

fn unsigned(class: &mut FieldClass) -> Option<&mut ScalarClass> {
    match class {
        FieldClass::Scalar(class) if class.scalar.kind == ScalarKind::Unsigned => {
            Some(Arc::make_mut(class))
        }
        _ => None,
    }
}

fn member(class: &mut FieldClass, name: &str, role: Role) {
    let FieldClass::Struct(class) = class else {
        return;
    };
    let found = Arc::make_mut(class).members.iter_mut().find(|member| *member.name == *name);
    if let Some(scalar) = found.and_then(|member| unsigned(&mut member.class)) {
        if role == Role::PacketEnd {
            // The end of a packet is not a reading to continue from.
            scalar.roles = Roles::default();
        }
        scalar.roles.insert(role);
    }
}

/// All members of that name, in structures inside structures and variants too:
/// the extended header of LTTng repeats the id [§6.1.1].
fn everywhere(class: &mut FieldClass, name: &str, role: Role) {
    match class {
        FieldClass::Struct(class) => {
            for member in &mut Arc::make_mut(class).members {
                let named = *member.name == *name;
                if let Some(scalar) = unsigned(&mut member.class).filter(|_| named) {
                    scalar.roles.insert(role);
                }
                everywhere(&mut member.class, name, role);
            }
        }
        FieldClass::Variant(class) => {
            for option in &mut Arc::make_mut(class).options {
                everywhere(&mut option.class, name, role);
            }
        }
        _ => {}
    }
}

fn uuid_as_bytes(header: &mut FieldClass) {
    let FieldClass::Struct(class) = header else {
        return;
    };
    let members = &mut Arc::make_mut(class).members;
    let Some(member) = members.iter_mut().find(|member| *member.name == *"uuid") else {
        return;
    };
    let FieldClass::Array(array) = &member.class else {
        return;
    };
    let bytes = matches!(
        &array.element,
        FieldClass::Scalar(element) if element.scalar.bits == 8 && element.scalar.align_bits <= 8
    );
    if bytes && array.length == Length::Fixed(16) {
        let mut roles = Roles::default();
        roles.insert(Role::Uuid);
        member.class = FieldClass::Text(Arc::new(TextClass {
            length: Length::Fixed(16),
            encoding: None,
            media_type: Arc::default(),
            roles,
        }));
    }
}

/// Finds the clock that the stream's fields refer to, and gives it to those that
/// name none: where the trace describes one clock, time stamps are of it; where
/// it describes none, they count nanoseconds [§8].
fn stream_clock(trace: &mut TraceClass, index: usize, diagnostics: &mut Vec<Diagnostic>) {
    let stream = &trace.streams[index];
    let mut names = HashSet::new();
    let mut first = None;
    let scopes = [&stream.packet_context, &stream.event_header, &stream.common_context];
    let events = stream.events.iter().flat_map(|event| [&event.context, &event.payload]);
    for class in scopes.into_iter().chain(events).flatten() {
        clocks_in(class, &mut |name| {
            first.get_or_insert_with(|| Arc::clone(name));
            names.insert(Arc::clone(name));
        });
    }
    let mut report = |message: String| {
        if diagnostics.len() < DIAGNOSTIC_LIMIT {
            diagnostics.push(Diagnostic::new(0, 0, message));
        }
    };
    let id = stream.id;
    if names.len() > 1 {
        report(format!("stream {id} refers to several clocks; only the first one counts"));
    }
    let header = stream.event_header.as_ref().is_some_and(|class| has(class, "timestamp"));
    let context = stream.packet_context.as_ref().is_some_and(|class| {
        ["timestamp_begin", "timestamp_end"].iter().any(|name| has(class, name))
    });
    let clock = match first {
        Some(name) => {
            let clock = trace.clocks.iter().position(|clock| *clock.name == *name);
            if clock.is_none() {
                report(format!("stream {id} refers to an unknown clock `{}`", brief(name)));
            }
            clock
        }
        None if !header && !context => None,
        None if trace.clocks.len() > 1 => {
            report(format!("stream {id} does not say which clock its time stamps are of"));
            None
        }
        None => {
            if trace.clocks.is_empty() {
                trace.clocks.push(Clock::new("default", 1_000_000_000, 0, 0));
            }
            Some(0)
        }
    };
    let stream = &mut trace.streams[index];
    stream.clock = clock;
    if let (Some(_), true, Some(class)) = (clock, header, &mut stream.event_header) {
        everywhere(class, "timestamp", Role::Clock);
    }
}

fn clocks_in(class: &FieldClass, found: &mut dyn FnMut(&Arc<str>)) {
    match class {
        FieldClass::Scalar(class) => class.clock.iter().for_each(found),
        FieldClass::Struct(class) => class.members.iter().for_each(|m| clocks_in(&m.class, found)),
        FieldClass::Variant(class) => class.options.iter().for_each(|o| clocks_in(&o.class, found)),
        FieldClass::Array(class) => clocks_in(&class.element, found),
        FieldClass::Optional(inner) => clocks_in(&inner.class, found),
        FieldClass::VarInt(_) | FieldClass::Text(_) => {}
    }
}

/// Whether a structure, or one inside it, has a field of this name.
fn has(class: &FieldClass, name: &str) -> bool {
    match class {
        FieldClass::Struct(class) => {
            class.members.iter().any(|member| *member.name == *name || has(&member.class, name))
        }
        FieldClass::Variant(class) => class.options.iter().any(|o| has(&o.class, name)),
        _ => false,
    }
}
