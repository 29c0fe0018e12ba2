// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recordings as numbers that can be compared, name by name, and what changed between them.
//!
//! ```text
//! recording ─ Observed::of ─► durations, latencies, counts ─┐
//! others ───────────────────────────────────────────────────┴─ Comparison::of ─► differences
//! ```

mod buckets;
mod comparison;
mod observed;

pub use comparison::{Comparison, Difference, Together, What};
pub use observed::{Observed, Of};
