// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pleco, the schema language: which events a program can record, what their
//! fields are, and what they mean.
//!
//! ```
//! let text = b"subsystem kernel { event CSWITCH \"Context Switch\", };";
//! let compiled = lateralis_pleco::compile("kernel.pleco", text);
//! let schema = compiled.schema.expect("no errors");
//! assert_eq!(schema.full_name(&schema.events[0]), "kernel:CSWITCH");
//! ```
//!
//! The way of a file: `lex` makes tokens, `parse` a syntax tree, `resolve` a
//! [`Schema`]; [`generate`] and [`ctf`] make everything else from the schema.
//! The language is specified in `spec/schema-language.md`.
//!
//! # Design constraints
//!
//! * No I/O and no clock: text in, values out. Only [`command`] opens files.
//! * Any bytes can be compiled: no panic, no recursion that depends on the
//!   input, memory proportional to the text, of which there are at most 16 MiB.
//! * The same schema always gives the same output, byte for byte.

#![forbid(unsafe_code)]

mod canonical;
pub mod command;
pub mod compat;
pub mod ctf;
pub mod diagnostic;
mod fmt;
pub mod format_string;
pub mod generate;
mod json;
mod layout;
mod lex;
mod names;
mod parse;
mod resolve;
pub mod schema;
mod source;
mod string_literal;
mod suggest;
mod syntax;

pub use diagnostic::{Code, Diagnostic, Severity};
pub use fmt::format;
pub use layout::{Layout, RECORD_HEADER_BYTES};
pub use schema::Schema;
pub use source::{Place, Span};
pub use suggest::nearest;

use diagnostic::Reporter;
use std::sync::OnceLock;

/// Largest schema file.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// What came out of compiling a file.
#[derive(Clone, Debug)]
pub struct Compilation {
    /// The schema, if there was no error.
    pub schema: Option<Schema>,
    /// Errors and warnings in order of their places; at most 101 of each.
    pub diagnostics: Vec<Diagnostic>,
}

impl Compilation {
    /// True if there is no schema.
    pub fn has_errors(&self) -> bool {
        self.schema.is_none()
    }

    /// All diagnostics as text, a blank line between them.
    pub fn render(&self) -> String {
        let rendered: Vec<String> = self.diagnostics.iter().map(Diagnostic::render).collect();
        rendered.join("\n")
    }
}

/// Compiles a schema file. `file_name` appears in diagnostics, and its stem
/// names the schema unless the text does.
///
/// Errors: as diagnostics. Cost: O(text), allocates. Panics: never.
pub fn compile(file_name: &str, text: &[u8]) -> Compilation {
    let text = match readable(file_name, text) {
        Ok(text) => text,
        Err(found) => return Compilation { schema: None, diagnostics: vec![*found] },
    };
    let mut reporter = Reporter::new(file_name, text);
    let lexed = lex::lex(&mut reporter);
    let file = parse::parse(&lexed.tokens, &mut reporter);
    let schema = resolve::resolve(&file, &default_name(file_name), &mut reporter);
    Compilation { schema, diagnostics: reporter.finish() }
}

/// The text, if it can be looked at at all.
fn readable<'a>(file_name: &str, bytes: &'a [u8]) -> Result<&'a str, Box<Diagnostic>> {
    let refuse = |text: &str, code, at: usize, message: String, label: &str| {
        let mut reporter = Reporter::new(file_name, text);
        let span = Span { start: at as u32, end: at as u32 };
        reporter.report(code, span, message).label(label);
        Box::new(reporter.finish().remove(0))
    };
    if bytes.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes", bytes.len());
        let label = "expected at most 16 MiB";
        return Err(refuse("", Code::FileTooLarge, 0, message, label));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let good = std::str::from_utf8(&bytes[..at]).unwrap_or("");
        let message = format!("the byte 0x{:02x} is not UTF-8", bytes[at]);
        refuse(good, Code::NotUtf8, at, message, "expected UTF-8 text")
    })
}

/// The stem of the file's name, made into an identifier.
fn default_name(file_name: &str) -> String {
    let base = file_name.rsplit(['/', '\\']).next().unwrap_or("");
    let stem = base.strip_suffix(".pleco").unwrap_or(base).split('.').next().unwrap_or("");
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name: String = stem.chars().take(60).map(|c| if is_part(c) { c } else { '_' }).collect();
    let is_word = name.eq_ignore_ascii_case("event") || name.eq_ignore_ascii_case("subsystem");
    if is_word || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return format!("schema_{name}").trim_end_matches('_').to_owned();
    }
    name
}

/// The schema of the events that the tracer and the recorder write themselves:
/// `spec/lateralis.pleco`, always at base id 0.
pub fn internal_schema() -> &'static Schema {
    static INTERNAL: OnceLock<Schema> = OnceLock::new();
    INTERNAL.get_or_init(|| {
        let text = include_bytes!("../../../spec/lateralis.pleco");
        let compiled = compile("lateralis.pleco", text);
        compiled.schema.expect("spec/lateralis.pleco compiles: a test says so")
    })
}

/// Ids below this belong to the internal schema; the first schema of a program
/// has this base id.
pub const INTERNAL_EVENT_COUNT: u32 = 16;
