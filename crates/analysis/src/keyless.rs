// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accumulator for spans of one kind without keys: the common case touches one cache line and the end of
//! a list.

/// The most frequent spans of most traces.
#[derive(Debug)]
#[repr(align(64))]
pub struct Keyless {
    /// Nanoseconds of certain spans that are not in the other statistics yet.
    durations: Vec<u64>,
    /// Sum of self times in nanoseconds, and number of spans in it.
    pub own: (u64, u64),
    /// Only spans of at least this many nanoseconds can be the longest, or outliers.
    pub floor: u64,
    /// Number of open spans.
    pub open_count: u64,
}

// 24 bytes for a list, and four numbers.
const _: () = assert!(size_of::<Keyless>() == 64);

impl Keyless {
    pub fn new() -> Self {
        Self { durations: Vec::new(), own: (0, 0), floor: 0, open_count: 0 }
    }

    /// Number of durations that are not in the other statistics yet.
    pub fn len(&self) -> usize {
        self.durations.len()
    }

    /// Whether the list has no room for another one.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.durations.len() == self.durations.capacity()
    }

    /// Doubles the room, by at most `most`; 0 adds none.
    pub fn grow(&mut self, most: usize) {
        // The first allocation is one page.
        self.durations.reserve_exact(self.durations.len().max(512).min(most));
    }

    #[inline]
    pub fn push(&mut self, nanos: u64) {
        self.durations.push(nanos);
    }

    /// Durations that are not in the other statistics yet; the caller removes those that it adds.
    pub fn durations(&mut self) -> &mut Vec<u64> {
        &mut self.durations
    }
}
