// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults during a recording: kills, full disks, many processes. After each fault, every event that a program
//! committed is in a recording, or in the program's memory for the next one, or counted as lost
//! (`docs/guides/robust.md`).

mod crowds;
mod disk;
mod kills;
mod memory;
mod writer;

pub use writer::{account, any_moment, committed, found, lost, steps, wait_for};

/// Returns `usual`, or five times as many rounds with LATERALIS_SLOW_TESTS=1.
pub fn rounds(usual: u64) -> u64 {
    if slow() { 5 * usual } else { usual }
}

/// Whether the long versions of tests are enabled.
pub fn slow() -> bool {
    std::env::var_os("LATERALIS_SLOW_TESTS").is_some()
}

/// Counts kills of this run at arbitrary times, and prints the sums.
pub fn killed(what: &'static str) {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    static ALL: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());
    let mut all = ALL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *all.entry(what).or_default() += 1;
    println!("killed so far: {}, {all:?}", all.values().sum::<u64>());
}
