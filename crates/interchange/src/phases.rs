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
    numbers.map(|member| Role::Counter { field: member.name.clone() }).collect()
}

/// The clauses of a phase. Ids are looked for in the context under `ids`.
pub fn roles(phase: char, class: &ClassText<'_>, ids: &[&str]) -> Vec<Role> {
    let named = |keys: Vec<String>| Keyed { name: class.name.to_owned(), keys };
    let by_id = || named(ids.iter().filter_map(|name| context(class, name)).collect());
    match phase {
        'B' => vec![Role::Begin(named(Vec::new()))],
        'E' => vec![Role::End(named(Vec::new()))],
        'X' => context(class, "dur")
            .map(|duration| Role::Span { name: class.name.to_owned(), duration })
            .into_iter()
            .collect(),
        'b' | 'S' | 'N' => vec![Role::Begin(by_id())],
        'e' | 'F' | 'D' => vec![Role::End(by_id())],
        's' => vec![Role::Send(by_id())],
        't' => vec![Role::Receive(by_id()), Role::Send(by_id())],
        'f' => vec![Role::Receive(by_id())],
        'C' => counters(class),
        _ => Vec::new(),
    }
}

/// Clauses as attributes of a class.
pub fn attributes(roles: &[Role]) -> impl Iterator<Item = Attribute> + '_ {
    let attribute =
        |role: &Role| Attribute { name: role::ATTRIBUTE.to_owned(), value: role.to_string() };
    roles.iter().map(attribute)
}
