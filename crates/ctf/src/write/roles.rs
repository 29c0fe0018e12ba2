// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Attributes of event classes in the words of the format.

use lateralis_model::{Attribute, EventClass, role};

/// What is known of an event class besides its fields.
#[derive(Default)]
pub(super) struct Attributes<'a> {
    /// `log-level`, as the source has it.
    pub level: Option<&'a str>,
    /// The same as LTTng's number, where it is one or a name of one.
    pub level_number: Option<u32>,
    /// `emf-uri`
    pub uri: Option<&'a str>,
    /// Clauses that say what the event means ([`role`]).
    pub clauses: Vec<&'a str>,
    /// Everything else.
    pub others: Vec<&'a Attribute>,
}

/// Names of the log levels of LTTng-UST, 0 to 14 (`tracepoint-event.h`, there
/// with `TRACE_` in front), as babeltrace2 spells them in CTF 2.
const LEVELS: [&str; 15] = [
    "emergency",
    "alert",
    "critical",
    "error",
    "warning",
    "notice",
    "info",
    "debug:system",
    "debug:program",
    "debug:process",
    "debug:module",
    "debug:unit",
    "debug:function",
    "debug:line",
    "debug",
];

/// Sorts the attributes of a class.
pub(super) fn attributes(class: &EventClass) -> Attributes<'_> {
    let mut out = Attributes::default();
    for attribute in &class.attributes {
        let value = attribute.value.as_str();
        match attribute.name.as_str() {
            "log-level" if out.level.is_none() => {
                let named = LEVELS.iter().position(|name| name.eq_ignore_ascii_case(value));
                out.level = Some(value);
                out.level_number = value.parse().ok().or(named.map(|level| level as u32));
            }
            "emf-uri" | "model.emf.uri" if out.uri.is_none() => out.uri = Some(value),
            role::ATTRIBUTE => out.clauses.push(value),
            _ => out.others.push(attribute),
        }
    }
    out
}
