// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What could not be read, collected from all cores while a query runs.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use lateralis_model::Damage;

/// Places kept; more are only counted.
const KEPT: usize = 1000;

/// Damage that scans came across, each place once however often it is read.
#[derive(Debug, Default)]
pub struct Damages {
    places: Mutex<BTreeSet<(String, u64, u64)>>,
    /// As commands tell it, in words.
    words: Mutex<BTreeSet<String>>,
}

impl Damages {
    /// Adds what one scan found.
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

    /// Adds what a command said, a line for each place.
    pub fn told<'a>(&self, lines: impl Iterator<Item = &'a str>) {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        for line in lines {
            if words.len() < KEPT {
                words.insert(line.to_owned());
            }
        }
    }

    /// How many places, and how many bytes they are together, as far as scans came across
    /// them; forgets them.
    pub fn take(&self) -> Option<(usize, u64)> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = places.iter().map(|(_, begin, end)| end.saturating_sub(*begin)).sum();
        let count = std::mem::take(&mut *places).len();
        // A command reads all, scans only what they are asked for.
        let words = std::mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner));
        let count = count.max(words.len());
        (count > 0).then_some((count, bytes))
    }
}
