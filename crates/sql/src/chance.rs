// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random numbers for property tests. A library for them would enable other features of crates below the
//! engine, and so build the engine a second time.

/// SplitMix64: the same numbers in every run.
pub struct Chance(u64);

impl Chance {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Any 64-bit integer, small ones as frequently as large ones.
    pub fn any_i64(&mut self) -> i64 {
        let shift = self.below(64);
        (self.next() as i64) >> shift
    }
}
