// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Meaning of an event: begin of a span, message, counter.
//!
//! The words are those of the schema language (spec/schema-language.md): an
//! event class carries one attribute [`ATTRIBUTE`] per clause, its value being
//! the clause as a schema writes it. Readers of other formats use the same
//! words for what they find there, so that writers and analyses know one
//! language only.
//!
//! ```text
//! begin SPAN [key FIELD...]      a span begins; without keys, spans of a thread nest
//! end SPAN [key FIELD...]        it ends
//! span SPAN for FIELD            a whole span: begins at the event, FIELD holds its nanoseconds
//! send MESSAGE [key FIELD...]    a message leaves
//! recv MESSAGE [fanout] [key FIELD...]
//!                                it arrives; with fanout, one that left may arrive often
//! state MACHINE FIELD [key FIELD...]
//!                                the machine enters the state in FIELD; without keys, that of the thread
//! counter FIELD [as NAME] [key FIELD...]
//!                                FIELD holds a level: of a quantity for each value of the keys
//! ```
//!
//! Beside fields, keys may be what is known of an event otherwise: [`KEY_CPU`], [`KEY_PROCESS`],
//! [`KEY_CATEGORY`]. An event without a field of the key has another key than any event with it.
//!
//! What one event means is decided by that event alone: events of one name that differ in
//! their meaning, such as a complete one whose duration is missing, are of different classes.

use crate::EventClass;

/// Field of a sample that contains the function names on the stack: an array, the innermost first.
pub const STACK_FUNCTIONS: &str = "stack_functions";
/// Beside it the file that each is in.
pub const STACK_IMAGES: &str = "stack_images";

/// Name of the attribute of event classes of which the recorder kept some events only: by a filter, or
/// of some threads, or for some time ([`SOME`]); or kept none ([`ALL`]).
pub const FILTERED: &str = "lateralis:filtered";
/// Of its values the one that says that some events may be there.
pub const SOME: &str = "";
/// The one that says that all were left out.
pub const ALL: &str = "all";

/// Name of the attribute.
pub const ATTRIBUTE: &str = "lateralis.role";
/// Attribute of classes whose names do not determine the kind of their events, because the format
/// stores it separately: `begin`, `end`, `complete`, `instant`, `counter` …
pub const PHASE: &str = "phase";
/// Attribute of classes: the category that the format gives them.
pub const CATEGORY: &str = "category";
/// Among the keys of a clause: the processor that the event happened on.
pub const KEY_CPU: &str = "$cpu";
/// Among the keys of a clause: the process of the event.
pub const KEY_PROCESS: &str = "$pid";
/// Among the keys of a clause: the category of the event's class.
pub const KEY_CATEGORY: &str = "$category";

/// One clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A span begins.
    Begin(Keyed),
    /// A span ends.
    End(Keyed),
    /// A whole span; `duration` names the field with its nanoseconds.
    Span {
        /// Name of the span.
        name: String,
        /// The field.
        duration: String,
    },
    /// A message leaves.
    Send(Keyed),
    /// A message arrives.
    Receive(Keyed),
    /// A machine enters a state.
    State {
        /// Name of the machine.
        name: String,
        /// The field with the state.
        field: String,
        /// Names of the fields that identify a state machine; empty: each thread has one.
        keys: Vec<String>,
    },
    /// A level.
    Counter {
        /// The field.
        field: String,
        /// What the quantity is called, if not like the event and the field.
        name: Option<String>,
        /// Names of the fields that identify a quantity.
        keys: Vec<String>,
    },
}

/// A name and its key fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keyed {
    /// Name of the span or message.
    pub name: String,
    /// Names of fields; empty if the thread is the key.
    pub keys: Vec<String>,
    /// Of a message that arrives: whether another may arrive that left with it.
    pub fans_out: bool,
}

impl Role {
    /// Reads a clause; `None` if it is none of the above. A name may contain blanks if it is in
    /// double quotes.
    #[must_use]
    pub fn parse(clause: &str) -> Option<Self> {
        let mut words = Words(clause);
        let verb = words.next()?;
        let mut keyed = || {
            let name = words.next()?;
            let mut word = words.next();
            let fans_out = verb == "recv" && word.as_deref() == Some("fanout");
            if fans_out {
                word = words.next();
            }
            Some(Keyed { name, keys: words.keys(word)?, fans_out })
        };
        Some(match verb.as_str() {
            "begin" => Self::Begin(keyed()?),
            "end" => Self::End(keyed()?),
            "send" => Self::Send(keyed()?),
            "recv" => Self::Receive(keyed()?),
            "span" => {
                let name = words.next()?;
                words.next().filter(|word| word == "for")?;
                Self::Span { name, duration: words.next()? }
            }
            "state" => {
                let (name, field) = (words.next()?, words.next()?);
                let word = words.next();
                Self::State { name, field, keys: words.keys(word)? }
            }
            "counter" => {
                let field = words.next()?;
                let mut word = words.next();
                let name = match word.as_deref() {
                    Some("as") => {
                        let name = words.next()?;
                        word = words.next();
                        Some(name)
                    }
                    _ => None,
                };
                Self::Counter { field, name, keys: words.keys(word)? }
            }
            _ => return None,
        })
    }

    /// All clauses of a kind of event.
    pub fn of(class: &EventClass) -> impl Iterator<Item = Role> + '_ {
        let of_role = class.attributes.iter().filter(|attribute| attribute.name == ATTRIBUTE);
        of_role.filter_map(|attribute| Role::parse(&attribute.value))
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let write_keys = |f: &mut std::fmt::Formatter<'_>, keys: &[String]| {
            if !keys.is_empty() {
                f.write_str(" key")?;
            }
            keys.iter().try_for_each(|key| write!(f, " {}", Word(key)))
        };
        let keyed = |f: &mut std::fmt::Formatter<'_>, verb: &str, keyed: &Keyed| {
            write!(f, "{verb} {}", Word(&keyed.name))?;
            if keyed.fans_out && verb == "recv" {
                f.write_str(" fanout")?;
            }
            write_keys(f, &keyed.keys)
        };
        match self {
            Self::Begin(of) => keyed(f, "begin", of),
            Self::End(of) => keyed(f, "end", of),
            Self::Send(of) => keyed(f, "send", of),
            Self::Receive(of) => keyed(f, "recv", of),
            Self::Span { name, duration } => {
                write!(f, "span {} for {}", Word(name), Word(duration))
            }
            Self::State { name, field, keys } => {
                write!(f, "state {} {}", Word(name), Word(field))?;
                write_keys(f, keys)
            }
            Self::Counter { field, name, keys } => {
                write!(f, "counter {}", Word(field))?;
                if let Some(name) = name {
                    write!(f, " as {}", Word(name))?;
                }
                write_keys(f, keys)
            }
        }
    }
}

/// A word, in quotes where it needs them. A quote or backslash inside is escaped.
struct Word<'a>(&'a str);

impl std::fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plain = !self.0.is_empty() && !self.0.contains([' ', '"', '\\', '\t', '\n']);
        if plain {
            return f.write_str(self.0);
        }
        f.write_str("\"")?;
        for character in self.0.chars() {
            if matches!(character, '"' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{character}")?;
        }
        f.write_str("\"")
    }
}

struct Words<'a>(&'a str);

impl Words<'_> {
    /// What follows `key`, if that is the word; nothing where no word is left. `None` of any other.
    fn keys(&mut self, word: Option<String>) -> Option<Vec<String>> {
        match word.as_deref() {
            None => Some(Vec::new()),
            Some("key") => Some(self.collect()),
            Some(_) => None,
        }
    }
}

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let text = self.0.trim_start();
        let Some(quoted) = text.strip_prefix('"') else {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            self.0 = &text[end..];
            return (end > 0).then(|| text[..end].to_owned());
        };
        let mut word = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.0 = &quoted[at + 1..];
                    return Some(word);
                }
                '\\' => word.extend(characters.next().map(|(_, escaped)| escaped)),
                other => word.push(other),
            }
        }
        self.0 = "";
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_read_and_written_alike() {
        for clause in [
            "begin held key mutex",
            "end held key mutex cpu",
            "begin \"draw frame\"",
            "send ipc key channel seq",
            "recv ipc",
            "recv ipc fanout",
            "recv ipc fanout key id $category $pid",
            "span \"say \\\"hi\\\" \\\\\" for duration_ns",
            "state thread state",
            "state mode mode key device $pid",
            "counter free",
            "counter free as \"free slots\"",
            "counter free key queue",
            "counter free as key key queue cpu",
        ] {
            assert_eq!(Role::parse(clause).unwrap().to_string(), clause);
        }
    }

    #[test]
    fn what_is_no_clause_is_none() {
        for clause in [
            "",
            "begin",
            "begin a b",
            "begin a fanout",
            "span a of b",
            "counter",
            "counter a b",
            "counter a as",
            "state a",
            "state a b c",
            "dance x",
        ] {
            assert_eq!(Role::parse(clause), None, "{clause}");
        }
    }
}
