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
        self.note_many(what, 1);
    }

    /// Notes that it happened so often; never, if that is 0.
    pub fn note_many(&mut self, what: &str, times: u64) {
        match self.counts.get_mut(what) {
            _ if times == 0 => (),
            Some(count) => *count += times,
            None => {
                self.counts.insert(what.to_owned(), times);
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
