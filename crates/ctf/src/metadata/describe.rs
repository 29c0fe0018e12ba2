// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From classes with a layout to the common vocabulary.

use lateralis_model as model;
use lateralis_model::{IntegerClass, ScalarKind};

use super::field::{FieldClass, Length, Meaning};
use super::{EventClass, StreamClass, TraceClass, is_odd_real, kept};

/// The trace in the words of [`lateralis_model`]. Indices of stream and event
/// classes stay the same.
///
/// The event classes of `trace` are gone then: of very many it would be too much to
/// keep both.
#[must_use]
pub fn describe(trace: &mut TraceClass) -> model::Trace {
    model::Trace {
        name: trace.name.clone(),
        uuid: trace.uuid,
        environment: trace.environment.clone(),
        clocks: trace.clocks.clone(),
        stream_classes: trace.streams.iter_mut().map(stream).collect(),
        origins: Vec::new(),
    }
}

fn stream(stream: &mut StreamClass) -> model::StreamClass {
    model::StreamClass {
        id: stream.id,
        name: stream.name.clone(),
        clock: stream.clock,
        packet_context: stream.packet_context.as_ref().map(field),
        common_context: stream.common_context.as_ref().map(field),
        event_classes: std::mem::take(&mut stream.events).into_iter().map(event).collect(),
        host: model::Host::default(),
    }
}

fn event(event: EventClass) -> model::EventClass {
    let context = event.context.as_ref().map(field);
    let payload = event.payload.as_ref().map(field);
    let (context, payload) = match payload {
        Some(payload) if context.is_none() => kept::context(payload),
        _ => (context, payload),
    };
    model::EventClass {
        id: event.id,
        context,
        payload,
        name: event.name,
        attributes: event.attributes,
    }
}

fn member(name: &str, class: &FieldClass) -> model::Member {
    model::Member { name: name.to_owned(), class: field(class) }
}

fn field(class: &FieldClass) -> model::FieldClass {
    use model::FieldKind as Kind;
    let (kind, structural) = match class {
        FieldClass::Scalar(class) => (scalar(class), class.roles.is_structural()),
        FieldClass::VarInt(class) => {
            let integer =
                IntegerClass { bits: 64, base: class.base, labels: class.labels.to_vec() };
            let kind = if class.signed { Kind::Signed(integer) } else { Kind::Unsigned(integer) };
            (kind, class.roles.is_structural())
        }
        FieldClass::Text(class) => match class.encoding {
            Some(encoding) => (Kind::Text(encoding), false),
            None => (Kind::Bytes(class.media_type.to_string()), false),
        },
        FieldClass::Struct(class) => {
            let mut members: Vec<_> =
                class.members.iter().map(|m| member(&m.name, &m.class)).collect();
            // Fields that a writer added for what the model says elsewhere.
            let added = members.iter_mut().filter(|member| kept::is_added(&member.name));
            added.for_each(|member| member.class.structural = true);
            (Kind::Struct(members), false)
        }
        FieldClass::Array(class) => {
            let element = field(&class.element);
            let structural = element.structural;
            let length = match class.length {
                Length::Fixed(length) => Some(length),
                _ => None,
            };
            let packed = match &class.element {
                FieldClass::Scalar(class) if !is_odd_real(&class.scalar) => Some(class.scalar),
                _ => None,
            };
            (Kind::Array { element: Box::new(element), length, packed }, structural)
        }
        FieldClass::Variant(class) => {
            let options: Vec<_> = class.options.iter().map(|o| member(&o.name, &o.class)).collect();
            let structural = !options.is_empty() && options.iter().all(|o| o.class.structural);
            match kept::optional(class, &options) {
                Some(class) => (Kind::Optional(Box::new(class)), structural),
                None => (Kind::Variant(options), structural),
            }
        }
        FieldClass::Optional(inner) => {
            let class = field(&inner.class);
            let structural = class.structural;
            (Kind::Optional(Box::new(class)), structural)
        }
    };
    model::FieldClass { kind, structural }
}

fn scalar(class: &super::field::ScalarClass) -> model::FieldKind {
    use model::FieldKind as Kind;
    let bits = class.scalar.bits;
    match &class.meaning {
        Meaning::Bool => Kind::Bool,
        // As the number is kept, not as it lies in the packet.
        Meaning::Real => Kind::Real(if bits <= 32 { 32 } else { 64 }),
        Meaning::Bits { flags } => Kind::Bits { bits, flags: flags.to_vec() },
        Meaning::Integer { base, labels } => {
            let integer = IntegerClass { bits, base: *base, labels: labels.to_vec() };
            match class.scalar.kind {
                ScalarKind::Signed => Kind::Signed(integer),
                _ => Kind::Unsigned(integer),
            }
        }
    }
}
