// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a pixel is, and what it shows; all in whole nanoseconds.
//!
//! Of a picture from `t0` to `t1` (not included) in `px` pixels, pixel `p` is the time from
//! `t0 + ⌊p·(t1 − t0)/px⌋` to `t0 + ⌊(p+1)·(t1 − t0)/px⌋`, the latter not included; at least one
//! nanosecond, so that where a nanosecond is wider than a pixel, all its pixels show what happened in it.
//!
//! * A **point** touches the pixel that its time lies in.
//! * An **interval** from `b` to `e` touches the pixels of the times from `b` to `e`, `e` not
//!   included; one of no length is like a point.
//!
//! A pixel shows of the things that touch it
//!
//! * `count`: `round(16·log2(1 + number))`, 255 at most;
//! * `cover`: how much of it intervals cover, rounded down to 255ths, and 1 at least where anything
//!   touches it; 1 where only points do;
//! * `colour`: 0 where nothing touches it. Else 1 + the class of the first point; of intervals, 1 +
//!   the name that covers most, the smaller one of two that cover as much. If more than
//!   [`EACH`] intervals touch it, only the row's [`MAIN`] names that take the most time as a whole
//!   are weighed (of equal ones the smaller; of a row that grows, those of when it was looked at
//!   last, with half as many intervals at least); if none of them covers anything, it is the name of
//!   the first interval.
//! * `flags`: [`SEVERAL`], [`UNENDED`]; [`LOST`] and [`DAMAGED`] where events are missing.

/// More than one thing.
pub const SEVERAL: u8 = 1;
/// Events were lost here.
pub const LOST: u8 = 2;
/// Bytes cannot be read here.
pub const DAMAGED: u8 = 4;
/// Something here has not ended.
pub const UNENDED: u8 = 8;

/// Intervals of a pixel that are each looked at: two blocks, and their ends.
pub const EACH: usize = 2 * BLOCK + 2;
/// Names of a row of which sums are kept.
pub const MAIN: usize = 15;
/// Intervals between two sums.
pub const BLOCK: usize = 64;

/// Which time is in which pixel.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// First nanosecond.
    pub t0: i64,
    /// The one behind the last.
    pub t1: i64,
    /// Pixels.
    pub px: u32,
}

impl Scale {
    /// The same with `t1` behind `t0`, and both far from the ends of numbers.
    #[must_use]
    pub fn new(t0: i64, t1: i64, px: u32) -> Self {
        // Twice that, and one more, is a number still.
        const FAR: i64 = 1 << 61;
        let t0 = t0.clamp(-FAR, FAR);
        Self { t0, t1: t1.clamp(t0 + 1, FAR + 1), px: px.max(1) }
    }

    fn edge(&self, pixel: u32) -> i64 {
        // Below 2^63, see above.
        let width = self.t1.abs_diff(self.t0);
        let px = u64::from(self.px);
        // Days by pixels fit into 64 bits, whose division takes a tenth of the time.
        let passed = match u64::from(pixel).checked_mul(width) {
            Some(product) => product / px,
            None => (u128::from(pixel) * u128::from(width) / u128::from(px)) as u64,
        };
        // Not more than the width, which lies between two i64.
        self.t0 + passed as i64
    }

    /// When a pixel begins and ends.
    #[must_use]
    pub fn pixel(&self, pixel: u32) -> (i64, i64) {
        let begin = self.edge(pixel);
        (begin, self.edge(pixel + 1).max(begin + 1))
    }

    /// When pixels begin and end, one behind the other, and how many of these are from the begin of one
    /// to that of the next: 1 where pixels are a nanosecond wide, so that one begins when another
    /// ends, else 2.
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

/// Pixels of rows, one behind the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pixels {
    /// 1 + class or name, 0 nothing.
    pub colour: Vec<u16>,
    /// 255ths.
    pub cover: Vec<u8>,
    /// 16ths of the logarithm.
    pub count: Vec<u8>,
    /// See above.
    pub flags: Vec<u8>,
}

impl Pixels {
    /// A pixel that nothing touches.
    pub fn nothing(&mut self) {
        self.colour.push(0);
        self.cover.push(0);
        self.count.push(0);
        self.flags.push(0);
    }

    /// One that some things touch.
    pub fn push(&mut self, name: u32, cover: u8, count: usize, is_unended: bool) {
        // Names beyond the last that a pixel can tell look alike.
        self.colour.push(name.saturating_add(1).min(u32::from(u16::MAX)) as u16);
        self.cover.push(cover.max(1));
        self.count.push(logarithm(count));
        let several = if count > 1 { SEVERAL } else { 0 };
        self.flags.push(several | if is_unended { UNENDED } else { 0 });
    }

    /// Adds rows as if all that is in them were in one: as many things, the colour of the row that
    /// covers most of a pixel (of several the first), and as much cover as that.
    pub fn push_packed(&mut self, rows: impl Iterator<Item = Self>, scale: &Scale) {
        let mut all = Self::default();
        (0..scale.px).for_each(|_| all.nothing());
        let mut counts = vec![0f64; scale.px as usize];
        for row in rows {
            for (pixel, count) in counts.iter_mut().enumerate().filter(|(p, _)| row.count[*p] > 0) {
                // What `logarithm` made of it.
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

    /// Marks those pixels, of the last so many, that stretches of time touch: disjoint ones, both
    /// ends included, that ascend.
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

/// Of a width, 255ths rounded down.
pub(crate) fn share(covered: u64, width: u64) -> u8 {
    (u128::from(covered) * 255 / u128::from(width.max(1))).min(255) as u8
}
