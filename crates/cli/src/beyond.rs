// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Warnings of times that the timeline does not reach.

pub use lateralis_reports::beyond::{count, is_end};

/// Warns of this number of them.
pub fn warn(count: u64) {
    if let Some(warning) = lateralis_reports::beyond::warning(count) {
        tell!("warning: {warning}");
    }
}
