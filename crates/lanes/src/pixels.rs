// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Definition of pixels and their contents; all in whole nanoseconds.
//!
//! Of a picture from `t0` to `t1` (not included) in `px` pixels, pixel `p` is the time from
//! `t0 + ⌊p·(t1 − t0)/px⌋` to `t0 + ⌊(p+1)·(t1 − t0)/px⌋`, the latter not included; at least one
//! nanosecond, so that where a nanosecond is wider than a pixel, all its pixels show what happened in it.
//!
//! * A **point** touches the pixel that contains its time.
//! * An **interval** from `b` to `e` touches the pixels of the times from `b` to `e`, `e` not
//!   included; one of no length is like a point.
//!
//! A pixel shows, of the items that touch it
//!
//! * `count`: `round(16·log2(1 + number))`, 255 at most;
//! * `cover`: the part of it that intervals cover, rounded down to 255ths, and at least 1 if anything
//!   touches it; 1 if only points do;
//! * `colour`: 0 if nothing touches it. Otherwise 1 + the class of the first point; for intervals, 1 +
//!   the name that covers most, the smaller one of two that cover the same. If more than [`EACH`]
//!   intervals touch it, only the [`MAIN`] names with the most time on the whole row are weighed (of
//!   equal ones the smaller; for a growing row, the names at the time of the last evaluation, with at
//!   least half as many intervals); if none of them covers anything, it is the name of the first
//!   interval.
//! * `flags`: [`SEVERAL`], [`UNENDED`]; [`LOST`] and [`DAMAGED`] where events are missing.

/// More than one item.
pub const SEVERAL: u8 = 1;
/// Events were lost here.
pub const LOST: u8 = 2;
/// Bytes are unreadable here.
pub const DAMAGED: u8 = 4;
/// An item here is unfinished.
pub const UNENDED: u8 = 8;

/// Number of intervals of a pixel that are examined individually: two blocks, and their ends.
pub const EACH: usize = 2 * BLOCK + 2;
/// Number of names of a row with sums.
pub const MAIN: usize = 15;
/// Intervals between two sums.
pub const BLOCK: usize = 64;

/// Maps times to pixels.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// First nanosecond.
    pub t0: i64,
    /// The nanosecond after the last.
    pub t1: i64,
    /// Number of pixels.
    pub px: u32,
}

impl Scale {
    /// A scale with `t1` after `t0`, and both far from overflow.
    #[must_use]
    pub fn new(t0: i64, t1: i64, px: u32) -> Self {
        // Twice that, plus one, does not overflow.
        const FAR: i64 = 1 << 61;
        let t0 = t0.clamp(-FAR, FAR);
        Self { t0, t1: t1.clamp(t0 + 1, FAR + 1), px: px.max(1) }
    }

    fn edge(&self, pixel: u32) -> i64 {
        // Below 2^63, see above.
        let width = self.t1.abs_diff(self.t0);
        let px = u64::from(self.px);
        // For days times pixels 64 bits suffice, whose division takes a tenth of the time.
        let passed = match u64::from(pixel).checked_mul(width) {
            Some(product) => product / px,
            None => (u128::from(pixel) * u128::from(width) / u128::from(px)) as u64,
        };
        // At most the width, which is between two i64.
        self.t0 + passed as i64
    }

    /// Begin and end of a pixel.
    #[must_use]
    pub fn pixel(&self, pixel: u32) -> (i64, i64) {
        let begin = self.edge(pixel);
        (begin, self.edge(pixel + 1).max(begin + 1))
    }

    /// Consecutive begins and ends of pixels, and the distance from the begin of one to that of the next:
    /// 1 if pixels are one nanosecond wide, so that one begins where another ends, otherwise 2.
    pub(crate) fn edges(&self) -> (Vec<i64>, usize) {
        if self.t1.abs_diff(self.t0) >= u64::from(self.px) {
            return ((0..=self.px).map(|pixel| self.edge(pixel)).collect(), 1);
        }
        let pixels = (0..self.px).map(|pixel| self.pixel(pixel));
        (pixels.flat_map(|(begin, end)| [begin, end]).collect(), 2)
    }

    /// The first pixel of a time, as far as it is in the picture.
    #[must_use]
    pub fn pixel_of(&self, time: i64) -> Option<u32> {
        if time < self.t0 || time >= self.t1 {
            return None;
        }
        let (mut low, mut high) = (0, self.px - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.pixel(middle).1 <= time { low = middle + 1 } else { high = middle }
        }
        Some(low)
    }
}

/// Pixels of rows, concatenated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pixels {
    /// 1 + class or name; 0 for nothing.
    pub colour: Vec<u16>,
    /// 255ths.
    pub cover: Vec<u8>,
    /// 16ths of the logarithm.
    pub count: Vec<u8>,
    /// See above.
    pub flags: Vec<u8>,
}

impl Pixels {
    /// Adds an empty pixel.
    pub fn nothing(&mut self) {
        self.colour.push(0);
        self.cover.push(0);
        self.count.push(0);
        self.flags.push(0);
    }

    /// Adds a pixel that some items touch.
    pub fn push(&mut self, name: u32, cover: u8, count: usize, is_unended: bool) {
        // Names beyond the largest possible colour look alike.
        self.colour.push(name.saturating_add(1).min(u32::from(u16::MAX)) as u16);
        self.cover.push(cover.max(1));
        self.count.push(logarithm(count));
        let several = if count > 1 { SEVERAL } else { 0 };
        self.flags.push(several | if is_unended { UNENDED } else { 0 });
    }

    /// Adds rows as if all their items were in one: the sum of the counts, the colour of the row that
    /// covers most of a pixel (of several the first), and the cover of that.
    pub fn push_packed(&mut self, rows: impl Iterator<Item = Self>, scale: &Scale) {
        let mut all = Self::default();
        (0..scale.px).for_each(|_| all.nothing());
        let mut counts = vec![0f64; scale.px as usize];
        for row in rows {
            for (pixel, count) in counts.iter_mut().enumerate().filter(|(p, _)| row.count[*p] > 0) {
                // Inverse of `logarithm`.
                *count += (f64::from(row.count[pixel]) / 16.0).exp2() - 1.0;
                all.flags[pixel] |= row.flags[pixel];
                if row.cover[pixel] > all.cover[pixel] {
                    all.cover[pixel] = row.cover[pixel];
                    all.colour[pixel] = row.colour[pixel];
                }
            }
        }
        for (pixel, count) in counts.into_iter().enumerate() {
            all.count[pixel] = logarithm(count.round() as usize);
            all.flags[pixel] |= if count > 1.5 { SEVERAL } else { 0 };
        }
        self.colour.extend(all.colour);
        self.cover.extend(all.cover);
        self.count.extend(all.count);
        self.flags.extend(all.flags);
    }

    /// Marks those of the last pixels that overlap time ranges: disjoint, inclusive, ascending.
    pub fn mark(&mut self, scale: &Scale, stretches: &[(u64, u64)], flag: u8) {
        if stretches.is_empty() {
            return;
        }
        let first = self.flags.len().saturating_sub(scale.px as usize);
        for (pixel, flags) in (0..).zip(&mut self.flags[first..]) {
            let (begin, end) = scale.pixel(pixel);
            if end <= 0 {
                continue;
            }
            let from = u64::try_from(begin).unwrap_or(0);
            let next = stretches.partition_point(|(_, until)| *until < from);
            if stretches.get(next).is_some_and(|(since, _)| *since < end as u64) {
                *flags |= flag;
            }
        }
    }
}

/// `round(16·log2(1 + count))`, 255 at most.
#[must_use]
pub fn logarithm(count: usize) -> u8 {
    let sixteenths = (16.0 * (1.0 + count as f64).log2()).round();
    sixteenths.min(255.0) as u8
}

/// Fraction of a width in 255ths, rounded down.
pub(crate) fn share(covered: u64, width: u64) -> u8 {
    (u128::from(covered) * 255 / u128::from(width.max(1))).min(255) as u8
}
