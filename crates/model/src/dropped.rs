// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a conversion could not keep.

use std::collections::BTreeMap;

/// Sentences about what a writer had to leave out or change, with how often
/// each happened. Empty: everything was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    counts: BTreeMap<String, u64>,
}

impl Dropped {
    /// Notes that something was not kept: `fields of arrays in Chrome JSON`.
    pub fn note(&mut self, what: &str) {
        match self.counts.get_mut(what) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(what.to_owned(), 1);
            }
        }
    }

    /// Whether everything was kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// What was not kept, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(what, count)| (what.as_str(), *count))
    }
}
