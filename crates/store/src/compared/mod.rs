// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparison of recordings: measurements by name, and the differences between them.
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
