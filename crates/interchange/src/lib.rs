// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Formats of other tools and of tables.
//!
//! | module | reads | writes |
//! |---|---|---|
//! | [`chrome`] | Chrome JSON | the same |
//! | [`perfetto`] | Perfetto protobuf | the same |
//! | [`fxt`] | Fuchsia trace format | the same |
//! | [`csv`] | – | the columns of Composite's tracer |
//! | [`jsonl`] | – | one JSON object a line |
//! | [`parquet`] | – | tables |
//!
//! [`with_marks`] makes spans of the marks that programs write into the kernel's trace, in any
//! format.
//!
//! Bytes go in and values come out; nothing here touches a file or a clock. Bytes are hostile: a
//! reader returns intact events, records the rest as damage, and uses no more memory than
//! permitted, besides that of its input.
//!
//! ```
//! use lateralis_interchange::{chrome, jsonl};
//! let text = br#"[{"ph":"X","name":"draw","ts":1.5,"dur":2,"pid":1,"tid":2,"args":{"frame":7}}]"#;
//! let trace = chrome::read("a.json", text, 1 << 20).unwrap();
//! let mut out = Vec::new();
//! jsonl::write(&trace, &mut out).unwrap();
//! assert!(String::from_utf8(out).unwrap().starts_with(r#"{"time_ns":1500,"#));
//! ```

#![forbid(unsafe_code)]

pub mod chrome;
pub mod csv;
mod dynamic;
mod error;
pub mod fxt;
mod json;
pub mod jsonl;
mod marks;
mod meaning;
pub mod parquet;
pub mod perfetto;
mod phases;
mod picture;

pub use error::Error;
pub use marks::with_marks;

pub use lateralis_model::role::CATEGORY;
/// Attribute of event classes: names the context field with the event's own name, if the number of
/// names required a shared class.
pub const NAME_FIELD: &str = "lateralis.name-field";
/// Attribute of event classes: the dotted name of a field whose text is JSON,
/// because its values had different types.
pub const JSON_FIELD: &str = "lateralis.json";
/// Attribute of event classes: the phase that Chrome JSON gave them.
pub const CHROME_PHASE: &str = "chrome.ph";
