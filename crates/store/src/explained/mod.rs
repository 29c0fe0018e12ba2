// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Explains why a span of a recording took as long as it did.
//!
//! ```text
//! recording ─ slowest, open_at ─► Found ─ Explained::of ─► segments and shares with their names
//! ```

mod around;
mod found;
mod locks;
mod stretches;

pub use around::{Explained, Hint};
pub use found::{Found, NotFound, Spans, Wanted, find, find_thread};
pub use locks::has_locks;
pub use stretches::{Stretch, find_stretches};
