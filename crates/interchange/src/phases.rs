// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the phases of Chrome's events mean; Perfetto's legacy events have them too.

use lateralis_model::role::{self, Keyed, Role};
use lateralis_model::{Attribute, FieldKind};

use crate::dynamic::ClassText;

/// The context field of this name, or the name it got where the author's own field
/// has it.
pub fn context(class: &ClassText<'_>, name: &str) -> Option<String> {
    let renamed = format!("event.{name}");
    let mut names = class.context.members().iter().map(|member| &member.name);
    names.find(|other| *other == name || **other == renamed).cloned()
}

/// One counter for each field that is a number.
pub fn counters(class: &ClassText<'_>) -> Vec<Role> {
    let numbers = class.payload.members().iter().filter(|member| {
        let kind = match &member.class.kind {
            FieldKind::Optional(class) => &class.kind,
            kind => kind,
        };
        matches!(kind, FieldKind::Unsigned(_) | FieldKind::Signed(_) | FieldKind::Real(_))
    });
    numbers
        .map(|member| Role::Counter { field: member.name.clone(), name: None, keys: Vec::new() })
        .collect()
}

/// What the clauses of an event need to know beside its phase.
pub struct Keys {
    /// The parts of a span's key in addition to its thread.
    pub span: Vec<String>,
    /// The parts of the key of a message.
    pub flow: Vec<String>,
    /// Whether a message may arrive several times.
    pub fans_out: bool,
    /// Whether the event has a valid duration.
    pub is_whole: bool,
}

/// The clauses of a phase.
pub fn roles(phase: char, class: &ClassText<'_>, keys: &Keys) -> Vec<Role> {
    let named = |keys: &[String]| Keyed {
        name: class.name.to_owned(),
        keys: keys.to_vec(),
        ..Keyed::default()
    };
    let flow = || Keyed { fans_out: keys.fans_out, ..named(&keys.flow) };
    match phase {
        'B' => vec![Role::Begin(named(&[]))],
        'E' => vec![Role::End(named(&[]))],
        'X' if keys.is_whole => context(class, "dur")
            .map(|duration| Role::Span { name: class.name.to_owned(), duration })
            .into_iter()
            .collect(),
        // It began, and its end is unknown.
        'X' => vec![Role::Begin(named(&[]))],
        'b' | 'S' | 'N' => vec![Role::Begin(named(&keys.span))],
        'e' | 'F' | 'D' => vec![Role::End(named(&keys.span))],
        's' => vec![Role::Send(named(&keys.flow))],
        't' => vec![Role::Receive(flow()), Role::Send(named(&keys.flow))],
        'f' => vec![Role::Receive(flow())],
        'C' => counters(class),
        _ => Vec::new(),
    }
}

/// Whether a phase begins a span that another event ends, or ends one that another began.
pub fn begins(phase: char) -> Option<bool> {
    match phase {
        'B' | 'b' | 'S' => Some(true),
        'E' | 'e' | 'F' => Some(false),
        _ => None,
    }
}

/// Where spans nest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Track {
    /// A thread of a process.
    Thread(u32, u32),
    /// Its process, unless it is of all, and its key.
    Keyed(Option<u32>, Vec<u8>),
    /// By its number.
    Number(u64),
}

/// The word for a phase, where there is one.
pub fn word(phase: char) -> Option<&'static str> {
    Some(match phase {
        'B' => "begin",
        'E' => "end",
        'X' => "complete",
        'i' | 'I' | 'R' => "instant",
        'C' => "counter",
        'b' | 'S' => "async begin",
        'n' | 'T' | 'p' => "async instant",
        'e' | 'F' => "async end",
        's' => "flow start",
        't' => "flow step",
        'f' => "flow end",
        'N' => "object created",
        'O' => "object snapshot",
        'D' => "object destroyed",
        'P' => "sample",
        '(' => "context begin",
        ')' => "context end",
        'c' => "clock sync",
        'v' | 'V' => "memory dump",
        _ => return None,
    })
}

/// Clauses as attributes of a class.
pub fn attributes(roles: &[Role]) -> impl Iterator<Item = Attribute> + '_ {
    let attribute =
        |role: &Role| Attribute { name: role::ATTRIBUTE.to_owned(), value: role.to_string() };
    roles.iter().map(attribute)
}
