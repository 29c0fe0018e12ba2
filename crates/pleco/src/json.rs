// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing JSON (RFC 8259). Only a writer: nothing here reads JSON.

use crate::diagnostic::is_hostile;
use std::fmt::Write;

/// A JSON value. Members of an object keep the order in which they were added.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// Wide enough for every `u64` and `i64`.
    Integer(i128),
    /// A decimal number that was checked to be one, as text.
    Decimal(String),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn string(text: impl Into<String>) -> Json {
        Json::String(text.into())
    }

    pub fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
        Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Adds a member to an object; other values stay as they are.
    pub fn with(mut self, name: &str, value: Json) -> Json {
        if let Json::Object(members) = &mut self {
            members.push((name.to_owned(), value));
        }
        self
    }

    /// One line, no blanks.
    pub fn compact(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, None);
        out
    }

    /// Indented by two blanks; arrays of plain values stay on one line.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, Some(0));
        out.push('\n');
        out
    }

    fn is_plain(&self) -> bool {
        !matches!(self, Json::Array(_) | Json::Object(_))
    }

    fn write(&self, out: &mut String, indent: Option<usize>) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Integer(value) => {
                let _ = write!(out, "{value}");
            }
            Json::Decimal(text) => out.push_str(text),
            Json::String(text) => write_string(out, text),
            Json::Array(items) => {
                let indent = indent.filter(|_| !items.iter().all(Json::is_plain));
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    separate(out, indent, i);
                    item.write(out, indent.map(|n| n + 1));
                }
                close(out, indent, items.is_empty(), ']');
            }
            Json::Object(members) => {
                out.push('{');
                for (i, (name, value)) in members.iter().enumerate() {
                    separate(out, indent, i);
                    write_string(out, name);
                    out.push_str(if indent.is_some() { ": " } else { ":" });
                    value.write(out, indent.map(|n| n + 1));
                }
                close(out, indent, members.is_empty(), '}');
            }
        }
    }
}

fn separate(out: &mut String, indent: Option<usize>, index: usize) {
    if index > 0 {
        out.push(',');
    }
    if let Some(depth) = indent {
        let _ = write!(out, "\n{:width$}", "", width = (depth + 1) * 2);
    }
}

fn close(out: &mut String, indent: Option<usize>, is_empty: bool, bracket: char) {
    if let Some(depth) = indent.filter(|_| !is_empty) {
        let _ = write!(out, "\n{:width$}", "", width = depth * 2);
    }
    out.push(bracket);
}

/// Writes a JSON string literal [RFC 8259 §7].
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Said by printable characters, so that a terminal can show it.
            c if is_hostile(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
