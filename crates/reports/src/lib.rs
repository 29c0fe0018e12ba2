// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is computed from traces for people and programs: statistics, differences between runs, critical
//! paths, and the options that select events for them. Each report is a page and a JSON document.
//!
//! ```text
//! Recording ─ Selection ─┬─ stats::Statistics ──┐
//!                        ├─ diff::Compared      ┼─► Page (text), serde_json (the document of --json)
//!                        └─ path::Paths         ┘
//! ```
//!
//! `lat` prints them, and the Python package returns the documents. Warnings are returned, and only
//! [`script`] reads a file: one that the caller names.

#![forbid(unsafe_code)]

/// Adds a line to a [`page::Page`]. Its values cannot end it, nor send anything else to a terminal.
#[macro_export]
macro_rules! line {
    ($page:expr $(,)?) => {
        $page.line(format_args!(""))
    };
    ($page:expr, $($text:tt)*) => {
        $page.line(format_args!($($text)*))
    };
}

pub mod beyond;
pub mod contradictions;
pub mod date;
pub mod diff;
mod error;
pub mod json;
pub mod moment;
pub mod page;
pub mod path;
pub mod script;
pub mod selection;
pub mod stats;
pub mod table;
pub mod values;

pub use error::Error;
