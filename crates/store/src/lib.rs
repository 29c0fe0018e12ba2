// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opened traces with the meaning of their events, and the analyses and tables over them.
//!
//! ```text
//! paths ─ traces::open ─► Source ─┐
//! schemas in the trace ─ pleco ──►├─ Recording
//! report.json ───────────────────►┘
//!                                     │
//!                      Chosen ◄───────┴─► Session ─► tables
//!                      │    │
//!               compared    explained
//! ```

#![forbid(unsafe_code)]

mod chosen;
pub mod compared;
mod counted;
pub mod explained;
pub mod flow;
mod last_seen;
mod meanings;
pub mod places;
mod recording;
mod relations;
pub mod stacks;
mod tables;
mod tail;
mod time_lines;
pub mod tracepoints;

pub use lateralis_model::Step;
pub use lateralis_semantics::facts::{self, Facts};
pub use lateralis_semantics::{ClockErrors, Successions};

pub use chosen::Chosen;
pub use counted::{Counted, Use};
pub use last_seen::last_seen;
pub use meanings::{Meanings, is_length};
pub use recording::Recording;
pub use tables::{
    BATCH_ROWS, ExportError, Exported, Feed, OpenImages, Partition, Scan, Session, StoreError,
    Table, TableFormat, TableWriter, WEIGHT,
};
pub use tail::{Progress, See, Shown, Tail};
