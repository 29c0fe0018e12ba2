// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chrome JSON, the trace event format of Chrome's old `about:tracing`: an array of
//! events, or an object with that array in `traceEvents`.
//!
//! Source: "Trace Event Format" (Google, the document of catapult), and what
//! Perfetto's JSON importer accepts beyond it.

mod event;
mod lenient;
mod read;
mod scan;
mod write;

pub use read::{has_events, may_have_events, read, sniff};
pub use write::write;

/// Prefix of environment entries that hold metadata events (phase `M`) other than
/// names: `chrome.metadata.NAME.PID.TID`, the value being the arguments as JSON.
pub const METADATA: &str = "chrome.metadata.";
/// Prefix of environment entries that hold the members of the outer object.
pub const OTHER: &str = "chrome.object.";
/// Member of the outer object: what was written as 0, `{"ns":"…","unix":true}`.
const ORIGIN: &str = "lateralisOrigin";
