// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the producer of a trace called things, where its reader gives them other names.
//!
//! Analyses that others wrote for a format name events and fields as the format does. A reader
//! that makes names of its own says in attributes [`ORIGINAL`] of its event classes what they
//! were:
//!
//! ```text
//! event NAME       the event's name
//! process FIELD    the field that held what is now the name of the process
//! thread FIELD     the same for the thread
//! ```

use crate::{Attribute, EventClass};

/// Name of the attribute.
pub const ORIGINAL: &str = "lateralis.original";

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Original {
    /// Name of the event.
    Event(String),
    /// Field with the name of the process.
    Process(String),
    /// Field with the name of the thread.
    Thread(String),
}

impl Original {
    /// All that a class says.
    pub fn of(class: &EventClass) -> impl Iterator<Item = Original> + '_ {
        let attributes = class.attributes.iter().filter(|attribute| attribute.name == ORIGINAL);
        attributes.filter_map(|attribute| Self::parse(&attribute.value))
    }

    fn parse(text: &str) -> Option<Self> {
        let (what, name) = text.split_once(' ')?;
        let name = name.to_owned();
        Some(match what {
            "event" => Self::Event(name),
            "process" => Self::Process(name),
            "thread" => Self::Thread(name),
            _ => return None,
        })
    }

    /// As an attribute of a class.
    #[must_use]
    pub fn attribute(&self) -> Attribute {
        let (what, name) = match self {
            Self::Event(name) => ("event", name),
            Self::Process(name) => ("process", name),
            Self::Thread(name) => ("thread", name),
        };
        Attribute { name: ORIGINAL.to_owned(), value: format!("{what} {name}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let all = [
            Original::Event("Rpc_call".into()),
            Original::Process("context.session_label".into()),
            Original::Thread("a name".into()),
        ];
        let attributes = all.iter().map(Original::attribute).collect();
        let mut class = EventClass { attributes, ..EventClass::default() };
        class.attributes.push(Attribute { name: ORIGINAL.into(), value: "nothing".into() });
        assert_eq!(Original::of(&class).collect::<Vec<_>>(), all);
    }
}
