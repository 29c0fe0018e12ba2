// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a trace says: counts and rates, spans and their durations, losses, and
//! which of its events somebody asks for.
//!
//! Kernels over plain numbers: who reads a trace extracts times and keys, and
//! hands them over one by one or as slices. Only [`filter`] looks at events
//! themselves. Nothing here knows formats or files. No I/O, no clock, no threads.

mod durations;
pub mod filter;
mod gaps;
mod losses;
mod spans;
mod tally;

pub use durations::{Distribution, Durations};
pub use gaps::Gaps;
pub use losses::{LossTotal, total_by_cause, total_by_stream};
pub use spans::{Edge, Pairer, Pairs, Side, Span, pair};
pub use tally::Tally;
