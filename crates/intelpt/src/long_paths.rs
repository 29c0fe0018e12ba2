// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cache of the results of eight full TNT packets, for callers that only count instructions: loops repeat
//! the same 48 outcomes.
//!
//! For nearly random outcomes it finds nothing and costs a cache miss. So it is used as long as it finds
//! something, and otherwise only tried occasionally.

use alloc::vec;
use alloc::vec::Vec;

/// Number of entries: 512 KiB with 32 bytes each, which fits the L2 cache.
const SIZE: usize = 1 << 14;
/// Largest number of calls left open.
pub(crate) const CALLS_MAX: usize = 2;
/// Upper limit of the trust counter; a hit adds one, and the cache is used while the counter is above 0.
const TRUST_MAX: u8 = 32;
/// Subtracted from the trust counter after a miss.
const DISAPPOINTMENT: u8 = 4;
/// Without trust, one in this many lookups is made.
const PATIENCE: u8 = 64;

/// Result of eight packets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LongPath {
    /// The eight packets; 0: unused.
    pub packets: u64,
    /// Row of the first block.
    pub from: u32,
    /// Row of the next block.
    pub next: u32,
    pub instructions: u32,
    pub call_count: u32,
    /// Blocks to which the calls left open return.
    pub calls: [u32; CALLS_MAX],
}

pub(crate) struct LongPaths {
    all: Vec<LongPath>,
    trust: u8,
    not_asked: u8,
}

/// The first eight bytes, if they are short TNT packets with six outcomes each.
#[inline(always)]
pub(crate) fn eight_full(bytes: &[u8]) -> Option<u64> {
    let eight = u64::from_le_bytes(*bytes.first_chunk()?);
    // In each byte the highest bit marks the end of six outcomes, and the lowest is 0.
    (eight & 0x8181_8181_8181_8181 == 0x8080_8080_8080_8080).then_some(eight)
}

impl LongPaths {
    pub fn new() -> Self {
        Self { all: Vec::new(), trust: TRUST_MAX, not_asked: 0 }
    }

    /// Clears the cache: the rows have changed.
    pub fn clear(&mut self) {
        self.all.fill(LongPath::default());
    }

    /// Whether to use the cache.
    #[inline(always)]
    pub fn is_worth_asking(&mut self) -> bool {
        if self.trust > 0 {
            return true;
        }
        self.not_asked += 1;
        if self.not_asked < PATIENCE {
            return false;
        }
        self.not_asked = 0;
        true
    }

    #[inline(always)]
    fn place(from: u32, packets: u64) -> usize {
        // 2^64 divided by the golden ratio; the high bits are mixed best.
        ((packets ^ u64::from(from) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
            % SIZE
    }

    #[inline(always)]
    pub fn find(&mut self, from: u32, packets: u64) -> Option<LongPath> {
        let found = self.all.get(Self::place(from, packets));
        match found {
            Some(found) if (found.packets, found.from) == (packets, from) => {
                self.trust = (self.trust + 1).min(TRUST_MAX);
                Some(*found)
            }
            _ => None,
        }
    }

    /// Records a miss, and the path to store.
    pub fn learn(&mut self, path: Option<LongPath>) {
        self.trust = self.trust.saturating_sub(DISAPPOINTMENT);
        let Some(path) = path else { return };
        if self.all.is_empty() {
            self.all = vec![LongPath::default(); SIZE];
        }
        self.all[Self::place(path.from, path.packets)] = path;
    }
}
