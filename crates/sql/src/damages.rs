// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Damage, collected from all cores while a query runs.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use lateralis_model::Damage;

/// Damaged places that are kept; more are only counted.
const KEPT: usize = 1000;

/// Damage found by scans, each place once however often it is read.
#[derive(Debug, Default)]
pub struct Damages {
    places: Mutex<BTreeSet<(String, u64, u64)>>,
    /// As reported by commands, as text.
    words: Mutex<BTreeSet<String>>,
}

impl Damages {
    /// Adds the damage found by a scan.
    pub fn add(&self, found: Vec<Damage>) {
        if found.is_empty() {
            return;
        }
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        for damage in found {
            if places.len() < KEPT {
                places.insert((damage.file, damage.begin_bytes, damage.end_bytes));
            }
        }
    }

    /// Adds the damage reported by a command, a line for each place.
    pub fn told<'a>(&self, lines: impl Iterator<Item = &'a str>) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        for line in lines {
            if words.len() < KEPT {
                words.insert(line.to_owned());
            }
        }
    }

    /// Takes the number of damaged places and their total size in bytes, as found by scans.
    pub fn take(&self) -> Option<(usize, u64)> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = places.iter().map(|(_, begin, end)| end.saturating_sub(*begin)).sum();
        let count = std::mem::take(&mut *places).len();
        // A command reads everything, scans only what they need.
        let words = std::mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner));
        let count = count.max(words.len());
        (count > 0).then_some((count, bytes))
    }
}
