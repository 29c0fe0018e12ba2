// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Analyses written in the XML language of Trace Compass ("data driven analysis").
//!
//! ```text
//! text ─ parse ─► File ─┬─ Analysis (state provider) ─ start ─► Run ─ event… ─► states
//!                       └─ Analysis (pattern)        ─ start ─► Run ─ event… ─► segments
//! ```
//!
//! A state provider maps events to values of attributes in a tree; a pattern is a set of state
//! machines that follow events and emit segments. Both are supported except for scripts, attribute
//! pools and scheduled machines. Unsupported elements are reported with their line, and their
//! analysis is not run, because half an analysis would give wrong answers. Views are not analyses
//! and only named.
//!
//! Texts and events are untrusted: size, depth, attributes, and concurrently open scenarios are
//! bounded. No I/O, no clock.
//!
//! `docs/reference/trace-compass-xml.md` lists the differences from Trace Compass. Sources: its
//! user guide, "Data driven analysis", and its schemas `xmlDefinition.xsd`, `xmlCommon.xsd`,
//! `xmlStateProvider.xsd` and `xmlPatternStateProvider.xsd`.

#![forbid(unsafe_code)]

mod datum;
mod event;
mod machine;
mod parse;
mod plan;
mod run;
mod tree;

pub use datum::Datum;
pub use parse::{File, Problem, Severity, parse};
pub use run::{Found, Run, Segment, State};

use plan::Plan;

/// What an analysis makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// States of attributes.
    StateProvider,
    /// Segments, and perhaps states.
    Pattern,
}

/// One analysis of a file, ready to run.
#[derive(Debug)]
pub struct Analysis {
    /// Its name in the file.
    pub id: String,
    /// Its name for people; the id where it has none.
    pub label: String,
    /// What it makes.
    pub kind: Kind,
    plan: Plan,
}

impl Analysis {
    /// Begins to run it over a trace.
    #[must_use]
    pub fn start(&self) -> Run<'_> {
        Run::new(&self.plan)
    }
}
