// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans of one kind without keys, while they are counted: all that the usual one of them
//! touches is one line of a cache and the end of a list.

/// What most traces have most of.
#[derive(Debug)]
#[repr(align(64))]
pub struct Keyless {
    /// Nanoseconds of certain ones that are in no other number yet.
    durations: Vec<u64>,
    /// Nanoseconds in which some of them were the innermost of their thread, and of how many that
    /// is.
    pub own: (u64, u64),
    /// Only those of at least so many nanoseconds can be the longest, or stand out.
    pub floor: u64,
    /// Begun and not ended.
    pub open_count: u64,
}

// 24 bytes of a list, and four numbers.
const _: () = assert!(size_of::<Keyless>() == 64);

impl Keyless {
    pub fn new() -> Self {
        Self { durations: Vec::new(), own: (0, 0), floor: 0, open_count: 0 }
    }

    /// How many are in no other number yet.
    pub fn len(&self) -> usize {
        self.durations.len()
    }

    /// Whether there is no place for one more.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.durations.len() == self.durations.capacity()
    }

    /// Makes place for as many again as there are, but for no more than these; none is none.
    pub fn grow(&mut self, most: usize) {
        // The first place is a page of them.
        self.durations.reserve_exact(self.durations.len().max(512).min(most));
    }

    #[inline]
    pub fn push(&mut self, nanos: u64) {
        self.durations.push(nanos);
    }

    /// Nanoseconds of those in no other number yet: whoever counts them takes them out.
    pub fn durations(&mut self) -> &mut Vec<u64> {
        &mut self.durations
    }
}
