// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Analyses written in the XML language of Trace Compass ("data driven analysis").
//!
//! ```text
//! text ─ parse ─► File ─┬─ Analysis (state provider) ─ start ─► Run ─ event… ─► states
//!                       └─ Analysis (pattern)        ─ start ─► Run ─ event… ─► segments
//! ```
//!
//! A state provider says which event sets which attribute of a tree to which value; a pattern
//! is a set of state machines that follow events and emit segments. Understood is all of both
//! but scripts, attribute pools and scheduled machines; what is not is told with its line, and
//! the analysis it stands in is not run: half an analysis would give wrong answers. Views are
//! not analyses and only named.
//!
//! Texts and events are trusted by nobody: size, depth, attributes, and scenarios that are
//! open at a time are bounded. No I/O, no clock.
//!
//! Where this differs from Trace Compass is told in `docs/reference/trace-compass-xml.md`.
//! Sources: its user guide, "Data driven analysis", and its schemas `xmlDefinition.xsd`,
//! `xmlCommon.xsd`, `xmlStateProvider.xsd` and `xmlPatternStateProvider.xsd`.

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
