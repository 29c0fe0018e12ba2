// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a trace says: counts and rates, spans and their durations, losses.
//!
//! Kernels over plain numbers. They know nothing of formats, files or classes of
//! fields: who reads a trace extracts times and keys, and hands them over one by
//! one or as slices. No I/O, no clock, no threads.

mod durations;
mod losses;
mod spans;
mod tally;

pub use durations::{Distribution, Durations};
pub use losses::{LossTotal, total_by_cause, total_by_stream};
pub use spans::{Edge, Pairer, Pairs, Side, Span, pair};
pub use tally::Tally;
