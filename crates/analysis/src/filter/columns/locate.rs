// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resolves field paths of a class to columns.

use lateralis_model::{EventClass, FieldClass, FieldKind, StreamClass};

use super::Depends;
use crate::filter::Known;
use crate::filter::eval::{COMMAND_FIELDS, PID_FIELDS, TID_FIELDS};

/// An integer of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whole {
    /// Time of the event.
    Time,
    /// A column.
    Column(usize),
}

/// A step of a field path.
#[derive(Debug, Clone, Copy)]
pub enum Way<'s> {
    /// To a member.
    Name(&'s str),
    /// To an element.
    Index,
}

/// Target of a field path in a class.
#[derive(Debug, Clone)]
pub enum Located<'t> {
    /// No event of the class has the field: this step names a member that does not exist.
    Missing(usize),
    /// A step goes into a value that has no such parts.
    Astray,
    /// To this column.
    Column(usize, &'t FieldClass),
    /// An element of the arrays of this column, with the class of the array.
    Element(usize, &'t FieldClass),
    /// A structure.
    Struct,
    /// Depends on the event; these columns decide.
    Inside(Vec<usize>),
    /// A field of the packet.
    Packet,
}

/// Scopes in which the fields of a class are searched.
#[derive(Debug, Clone, Copy)]
pub struct Scopes<'t> {
    /// The stream class.
    pub stream_class: &'t StreamClass,
    /// The event class.
    pub class: &'t EventClass,
}

/// Follows a field path in a class: in the payload, then the specific context, then the common context;
/// then the packet, if `with_packet`.
#[must_use]
pub fn locate<'t>(of: &Scopes<'t>, with_packet: bool, steps: &[Way<'_>]) -> Located<'t> {
    let Some((Way::Name(first), _)) = steps.split_first() else { return Located::Astray };
    let common = of.stream_class.common_context.as_ref();
    let (own, payload) = (of.class.context.as_ref(), of.class.payload.as_ref());
    let after_common = common.map_or(0, leaf_count);
    let after_own = after_common + own.map_or(0, leaf_count);
    for (scope, base) in [(payload, after_own), (own, after_common), (common, 0)] {
        let Some(scope) = scope else { continue };
        if scope.members().iter().any(|member| member.name == *first) {
            return follow(scope, base, steps, 0);
        }
    }
    let packet = of.stream_class.packet_context.as_ref().filter(|_| with_packet);
    match packet.is_some_and(|packet| packet.members().iter().any(|m| m.name == *first)) {
        true => Located::Packet,
        false => Located::Missing(0),
    }
}

fn leaf_count(class: &FieldClass) -> usize {
    match &class.kind {
        FieldKind::Struct(members) => members.iter().map(|m| leaf_count(&m.class)).sum(),
        _ => 1,
    }
}

fn follow<'t>(class: &'t FieldClass, base: usize, steps: &[Way<'_>], done: usize) -> Located<'t> {
    match (&class.kind, steps.get(done)) {
        (FieldKind::Struct(_), None) => Located::Struct,
        (FieldKind::Struct(members), Some(Way::Name(name))) => {
            let mut base = base;
            for member in members {
                if member.name == *name {
                    return follow(&member.class, base, steps, done + 1);
                }
                base += leaf_count(&member.class);
            }
            Located::Missing(done)
        }
        (FieldKind::Array { .. }, Some(Way::Index)) if done + 1 == steps.len() => {
            Located::Element(base, class)
        }
        (FieldKind::Optional(_) | FieldKind::Variant(_), _)
        | (FieldKind::Array { .. }, Some(Way::Index)) => Located::Inside(vec![base]),
        (_, None) => Located::Column(base, class),
        (_, Some(_)) => Located::Astray,
    }
}

impl Scopes<'_> {
    /// Dependencies of a built-in property of events, and the columns that may contain it.
    #[must_use]
    pub fn known_depends(&self, known: Known) -> (Depends, Vec<usize>) {
        let mut columns = Vec::new();
        let mut told = |names: &[&str]| {
            let before = columns.len();
            names.iter().for_each(|name| self.context_columns(name, &mut columns));
            columns.len() > before
        };
        let depends = match known {
            Known::Event | Known::Subsystem | Known::Phase | Known::Stream => Depends::PACKET,
            Known::Time => Depends::FIELDS,
            Known::Cpu => Depends { on_own_cpu: told(&["cpu_id"]), ..Depends::PACKET },
            Known::Pid | Known::Tid => {
                let names = if known == Known::Pid { &PID_FIELDS } else { &TID_FIELDS };
                let on_own_writer = told(names);
                Depends { on_writer: true, on_own_writer, ..Depends::PACKET }
            }
            Known::Process | Known::Thread => {
                let names = if known == Known::Process { &PID_FIELDS } else { &TID_FIELDS };
                let on_own_writer = told(names);
                // If the thread has no known name, the one in the event counts.
                let on_fields = told(&COMMAND_FIELDS);
                Depends { on_writer: true, on_own_writer, on_fields, ..Depends::PACKET }
            }
        };
        (depends, columns)
    }

    /// Columns below a field of the contexts.
    fn context_columns(&self, name: &str, columns: &mut Vec<usize>) {
        let mut next = 0;
        let scopes = [&self.stream_class.common_context, &self.class.context];
        for member in scopes.into_iter().flatten().flat_map(FieldClass::members) {
            let count = leaf_count(&member.class);
            if member.name == name {
                columns.extend(next..next + count);
            }
            next += count;
        }
    }
}
