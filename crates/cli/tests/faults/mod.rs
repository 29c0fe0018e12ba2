// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What goes wrong around a recording: kills, full disks, crowds. After each fault every event that
//! a program committed is in a recording, or in the program's memory for the next one, or counted
//! as lost (`docs/guides/robust.md`).

mod crowds;
mod disk;
mod kills;
mod memory;
mod writer;

/// One of `usual` faults, or of five times as many with LATERALIS_SLOW_TESTS=1.
fn rounds(usual: u64) -> u64 {
    if slow() { 5 * usual } else { usual }
}

/// Whether the long versions were asked for.
pub fn slow() -> bool {
    std::env::var_os("LATERALIS_SLOW_TESTS").is_some()
}
