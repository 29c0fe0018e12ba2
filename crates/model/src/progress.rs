// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far the readers of this process are, for a line of progress. Nothing is computed from it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Added to by readers, on any thread, and read by who draws the line: no other memory depends on it.
static PASSED: AtomicU64 = AtomicU64::new(0);

/// A reader has gone through that many bytes of a file.
///
/// Cost: an atomic addition; call it once for many events.
pub fn pass(bytes: u64) {
    PASSED.fetch_add(bytes, Ordering::Relaxed);
}

/// Bytes that all readers have gone through since the process began. Bytes that are read twice count twice.
#[must_use]
pub fn passed() -> u64 {
    PASSED.load(Ordering::Relaxed)
}
