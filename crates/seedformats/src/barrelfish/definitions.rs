// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of subsystems and events.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Error;
use crate::barrelfish::legacy;

/// Names of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventName {
    /// `CSWITCH`
    pub name: String,
    /// `Context Switch`; may be empty.
    pub description: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subsystem {
    pub(super) name: String,
    pub(super) events: BTreeMap<u16, EventName>,
    pub(super) numbers: BTreeMap<String, u16>,
}

/// What the numbers of subsystems and events mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    subsystems: BTreeMap<u16, Subsystem>,
}

impl Definitions {
    /// The numbers that were built in before definitions had a file (2013), and
    /// `kernel:CSWITCH` as both 0xffff:0xcccc and 0:0.
    #[must_use]
    pub fn legacy() -> Self {
        let mut all = Self::default();
        for (id, name, events) in legacy::SUBSYSTEMS {
            all.subsystem(*id, name);
            for (event, name) in *events {
                all.event(*id, *event, name, "");
            }
        }
        all
    }

    /// Names a subsystem.
    pub fn subsystem(&mut self, id: u16, name: &str) {
        self.subsystems.entry(id).or_default().name = name.to_owned();
    }

    /// Names an event of a subsystem.
    pub fn event(&mut self, subsystem: u16, id: u16, name: &str, description: &str) {
        let subsystem = self.subsystems.entry(subsystem).or_default();
        let (name, description) = (name.to_owned(), description.to_owned());
        subsystem.numbers.insert(name.clone(), id);
        subsystem.events.insert(id, EventName { name, description });
    }

    /// Reads the JSON that the `pleco` compiler of Barrelfish writes: subsystems by
    /// number, each with `name` and `events`, an event being `["NAME", "description"]`
    /// or, as technical note 8 shows it, `"description"`. Numbers may lack their
    /// quotes, as they do there.
    ///
    /// # Errors
    /// If it is no JSON of this form. Pseudo subsystems with negative numbers are
    /// left out: UMP messages need no definition.
    pub fn from_json(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        let error = || {
            let advice = "give the JSON file that pleco makes of the trace definitions";
            Error::new("no trace definitions", name, advice)
        };
        let text = quote_numbers(&String::from_utf8_lossy(bytes));
        let Ok(Value::Object(subsystems)) = serde_json::from_str(&text) else {
            return Err(error());
        };
        let mut all = Self::default();
        for (id, subsystem) in &subsystems {
            let Ok(id) = id.parse::<i64>() else { return Err(error()) };
            let Some(name) = subsystem.get("name").and_then(Value::as_str) else {
                return Err(error());
            };
            let Ok(id) = u16::try_from(id) else { continue };
            all.subsystem(id, name);
            let events = subsystem.get("events").and_then(Value::as_object);
            for (event, names) in events.into_iter().flatten() {
                let Ok(event) = event.parse() else { return Err(error()) };
                let (name, description) = match names {
                    Value::String(name) => (name.as_str(), ""),
                    Value::Array(names) => {
                        let text = |index: usize| names.get(index).and_then(Value::as_str);
                        (text(0).ok_or_else(error)?, text(1).unwrap_or(""))
                    }
                    _ => return Err(error()),
                };
                all.event(id, event, name, description);
            }
        }
        Ok(all)
    }

    /// Names of a subsystem and one of its events, `None` if that is not known.
    #[must_use]
    pub fn lookup(&self, subsystem: u16, event: u16) -> Option<(&str, &EventName)> {
        let subsystem = self.subsystems.get(&subsystem)?;
        Some((&subsystem.name, subsystem.events.get(&event)?))
    }

    /// Numbers of the event of this name, `subsystem:EVENT`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(u16, u16)> {
        let (subsystem, event) = name.split_once(':')?;
        let mut named = self.subsystems.iter().filter(|(_, of)| of.name == subsystem);
        named.find_map(|(id, of)| Some((*id, *of.numbers.get(event)?)))
    }

    /// Whether nothing is defined.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.subsystems.is_empty()
    }

    pub(super) fn of(&self, id: u16) -> Option<&Subsystem> {
        self.subsystems.get(&id)
    }
}

/// Puts keys that are bare numbers into quotes.
fn quote_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '-' | '0'..='9' => {
                let digit = |c: char| !(c.is_ascii_digit() || c == '-');
                let length = rest.find(digit).unwrap_or(rest.len());
                if rest[length..].trim_start().starts_with(':') {
                    out.push('"');
                    out.push_str(&rest[..length]);
                    out.push('"');
                    rest = &rest[length..];
                    continue;
                }
                length
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// Bytes of the string that begins `text`, its quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = true;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' if !escaped => escaped = true,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_json_are_read() {
        let tool =
            br#"{"0": {"name": "kernel", "events": {"0": ["CSWITCH", "Context \"1:\" Switch"],
            "1": ["TIMER", "TIMER"]}}, "-5632": {"name": "ump send"}}"#;
        let all = Definitions::from_json("d", tool).unwrap();
        let (subsystem, event) = all.lookup(0, 0).unwrap();
        assert_eq!((subsystem, event.name.as_str()), ("kernel", "CSWITCH"));
        assert_eq!(event.description, "Context \"1:\" Switch");
        assert_eq!(all.find("kernel:TIMER"), Some((0, 1)));
        let note = br#"{ 0 : { "name" : "kernel", "events" : { 0 : "Context Switch",
            2 : "TIMER" } }, 1 : { "name" : "memserv", "events" : { 0 : "ALLOC" } } }"#;
        let all = Definitions::from_json("d", note).unwrap();
        assert_eq!(all.lookup(0, 0).unwrap().1.name, "Context Switch");
        assert_eq!(all.lookup(1, 0).unwrap().0, "memserv");
        assert_eq!(all.lookup(1, 1), None);
    }

    #[test]
    fn what_is_no_definition_is_refused() {
        for text in ["", "[]", "{\"a\": {}}", "{\"0\": {\"name\": 1}}", "{0: {", "\"\\"] {
            assert!(Definitions::from_json("d", text.as_bytes()).is_err(), "{text}");
        }
    }
}
