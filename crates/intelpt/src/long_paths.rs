// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where eight full TNT packets lead together, for who only counts instructions: loops take the same 48
//! outcomes again and again.
//!
//! Where outcomes are as good as random this finds nothing and costs a look-up of memory that is not in the
//! cache. So it is asked as long as it finds something, and now and then where it does not.

use alloc::vec;
use alloc::vec::Vec;

/// Outcomes that are remembered: 512 KiB with 32 bytes for each, which a cache near the processor has.
const SIZE: usize = 1 << 14;
/// Calls that are left open.
pub(crate) const CALLS_MAX: usize = 2;
/// So much is it trusted at most; a find adds one, and it is asked as long as any is left.
const TRUST_MAX: u8 = 32;
/// What is taken off where nothing is found.
const DISAPPOINTMENT: u8 = 4;
/// Every so many times it is asked without trust.
const PATIENCE: u8 = 64;

/// Where they lead.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LongPath {
    /// The eight packets; 0: none.
    pub packets: u64,
    /// The row of the block from which.
    pub from: u32,
    /// The row of the block behind.
    pub next: u32,
    pub instructions: u32,
    pub call_count: u32,
    /// Blocks to which calls return that are left open.
    pub calls: [u32; CALLS_MAX],
}

pub(crate) struct LongPaths {
    all: Vec<LongPath>,
    trust: u8,
    not_asked: u8,
}

/// Eight short TNT packets with six outcomes each at the beginning of some bytes.
#[inline(always)]
pub(crate) fn eight_full(bytes: &[u8]) -> Option<u64> {
    let eight = u64::from_le_bytes(*bytes.first_chunk()?);
    // Of each byte the highest bit marks the end of six outcomes, and the lowest is 0.
    (eight & 0x8181_8181_8181_8181 == 0x8080_8080_8080_8080).then_some(eight)
}

impl LongPaths {
    pub fn new() -> Self {
        Self { all: Vec::new(), trust: TRUST_MAX, not_asked: 0 }
    }

    /// Forgets all of them: rows are no longer what they were.
    pub fn clear(&mut self) {
        self.all.fill(LongPath::default());
    }

    /// Whether it is to be asked.
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
        // 2^64 by the golden ratio; the high bits are the best.
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

    /// There was none; this is it.
    pub fn learn(&mut self, path: Option<LongPath>) {
        self.trust = self.trust.saturating_sub(DISAPPOINTMENT);
        let Some(path) = path else { return };
        if self.all.is_empty() {
            self.all = vec![LongPath::default(); SIZE];
        }
        self.all[Self::place(path.from, path.packets)] = path;
    }
}
