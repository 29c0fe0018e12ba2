// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The metadata of a trace: from its text to typed classes.
//!
//! TSDL [CTF 1.8.3 §7] and the JSON of CTF 2 become the same [`TraceClass`]; other modules do not
//! distinguish them.
//!
//! A fault in one declaration costs that declaration only: it becomes a
//! [`Diagnostic`], everything else stays.

mod brief;
mod describe;
mod field;
mod json;
mod kept;
mod once;
mod packets;
mod roles;
mod tsdl;
mod wide;

use std::fmt;

use lateralis_model::{Attribute, ByteOrder, Clock, EnvValue, Uuid};

pub(crate) use brief::brief;
pub use describe::describe;
pub(crate) use field::chosen_twice;
pub use field::{
    ArrayClass, FieldClass, Length, Location, Meaning, MemberClass, OptionClass, OptionalClass,
    PathItem, ROLE_COUNT, Role, Roles, ScalarClass, Scope, Selection, StructClass, TextClass,
    VarIntClass, VariantClass,
};
pub(crate) use kept::names;
pub use packets::unpack;
pub(crate) use wide::{X87_BITS, is_odd_real};

/// Everything the metadata says.
#[derive(Debug, Clone, Default)]
pub struct TraceClass {
    /// 1 for TSDL, 2 for JSON.
    pub major_version: u32,
    /// Name of the trace (CTF 2).
    pub name: Option<String>,
    /// UUID that packets repeat.
    pub uuid: Option<Uuid>,
    /// Native byte order (CTF 1.8).
    pub byte_order: ByteOrder,
    /// What the producer said about itself.
    pub environment: Vec<(String, EnvValue)>,
    /// Clocks; one that is implied is called `default`.
    pub clocks: Vec<Clock>,
    /// At the beginning of every packet.
    pub packet_header: Option<FieldClass>,
    /// Kinds of streams, by ascending id.
    pub streams: Vec<StreamClass>,
}

/// A kind of stream.
#[derive(Debug, Clone, Default)]
pub struct StreamClass {
    /// Its number.
    pub id: u64,
    /// Its name (CTF 2).
    pub name: Option<String>,
    /// Index of its default clock.
    pub clock: Option<usize>,
    /// After the header of each of its packets.
    pub packet_context: Option<FieldClass>,
    /// At the beginning of each of its events.
    pub event_header: Option<FieldClass>,
    /// After the header of each of its events.
    pub common_context: Option<FieldClass>,
    /// Kinds of events, by ascending id.
    pub events: Vec<EventClass>,
}

/// A kind of event.
#[derive(Debug, Clone, Default)]
pub struct EventClass {
    /// Its number in the stream class.
    pub id: u64,
    /// Its name; empty if none.
    pub name: String,
    /// Its own context.
    pub context: Option<FieldClass>,
    /// Its payload.
    pub payload: Option<FieldClass>,
    /// Log level, model URI and the like.
    pub attributes: Vec<Attribute>,
}

impl TraceClass {
    /// The environment entry with this name, if it is a text.
    #[must_use]
    pub fn env_text(&self, name: &str) -> Option<&str> {
        let entry = self.environment.iter().find(|(key, _)| key == name);
        entry.and_then(|(_, value)| value.as_text())
    }

    /// Whether the trace was written by Lateralis: its packets then carry loss
    /// counters and a checksum (spec/trace-layout.md).
    #[must_use]
    pub fn is_lateralis(&self) -> bool {
        self.env_text("tracer_name") == Some("lateralis")
    }
}

/// Something in the metadata that is not as the specification says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Line in the metadata text, from 1; 0 where there is none.
    pub line: u32,
    /// Column in characters, from 1; 0 where there is none.
    pub column: u32,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl Diagnostic {
    /// A diagnostic at a line and column, 0 where there are none. Of a message that
    /// quotes names of any length, beginning and end are kept.
    pub(crate) fn new(line: u32, column: u32, message: String) -> Self {
        Self { line, column, message: shortened(message) }
    }
}

/// Bytes of a message at most, about.
const MESSAGE_BYTES: usize = 800;

fn shortened(message: String) -> String {
    if message.len() <= MESSAGE_BYTES {
        return message;
    }
    let is_between = |&at: &usize| message.is_char_boundary(at);
    let first = (0..=MESSAGE_BYTES / 2).rev().find(is_between).unwrap_or(0);
    let last = (message.len() - MESSAGE_BYTES / 2..).find(is_between).unwrap_or(message.len());
    format!("{} … {}", &message[..first], &message[last..])
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            _ => write!(f, "{}:{}: {}", self.line, self.column, self.message),
        }
    }
}

/// More faults than this are not worth reading, nor finding the lines of.
const DIAGNOSTIC_LIMIT: usize = 100;

/// Parses a metadata file of either version, packetised or plain.
///
/// Returns what could be understood and what could not. A file that is no
/// metadata at all gives an empty trace class and diagnostics.
///
/// Cost: linear in the text; types that include types are limited to some
/// million fields in all, so hostile metadata cannot use up memory.
#[must_use]
pub fn parse(bytes: &[u8]) -> (TraceClass, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let unpacked = unpack(bytes, &mut diagnostics);
    let text = String::from_utf8_lossy(&unpacked.text);
    let mut class = if looks_like_json(&text) {
        json::parse(&text, &mut diagnostics)
    } else {
        tsdl::parse(&text, &mut diagnostics)
    };
    class.uuid = class.uuid.or(unpacked.uuid);
    kept::take(&mut class);
    class.streams.sort_by_key(|stream| stream.id);
    for stream in &mut class.streams {
        stream.events.sort_by_key(|event| event.id);
        let id = stream.id;
        stream.events.dedup_by(|again, first| {
            let duplicate = again.id == first.id;
            if duplicate && diagnostics.len() < DIAGNOSTIC_LIMIT {
                let message = format!(
                    "event {} of stream {id} is declared twice: `{}` counts, `{}` does not",
                    first.id,
                    brief(&first.name),
                    brief(&again.name)
                );
                diagnostics.push(Diagnostic::new(0, 0, message));
            }
            duplicate
        });
        stream.events.shrink_to_fit();
    }
    (class, diagnostics)
}

/// CTF 2 metadata is a sequence of JSON texts, each after a record separator
/// (RFC 7464), which some writers leave out.
fn looks_like_json(text: &str) -> bool {
    text.trim_start_matches(|c: char| c == '\u{1e}' || c == '\u{feff}' || c.is_whitespace())
        .starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_ends() {
        assert_eq!(shortened("short".into()), "short");
        let long = format!("event `{}` is declared twice", "ü".repeat(5000));
        let short = shortened(long);
        assert!(short.starts_with("event `üüü") && short.ends_with("üüü` is declared twice"));
        assert!(short.len() <= MESSAGE_BYTES + " … ".len(), "{}", short.len());
    }
}
