// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of a lane.

use crate::RankedBits;
use crate::column::{Column, Grid};
use crate::pixels::{Pixels, Scale};

/// Events in the order of time.
#[derive(Clone)]
pub struct Points {
    pub(crate) times: Column<u64>,
    pub(crate) classes: Column<u16>,
    pub(crate) threads: Column<u32>,
    pub(crate) grid: Grid,
    /// Those of a lane that grows that are not here any more.
    pub(crate) forgotten: u64,
}

impl Points {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// How many came before the first of them, and were forgotten.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When one happened, since the origin.
    #[must_use]
    pub fn time(&self, index: usize) -> u64 {
        self.times.get(index)
    }

    /// Its class.
    #[must_use]
    pub fn class(&self, index: usize) -> u16 {
        self.classes.get(index)
    }

    /// Its thread.
    #[must_use]
    pub fn thread(&self, index: usize) -> u32 {
        self.threads.get(index)
    }

    /// How many happened before a time.
    #[must_use]
    pub fn before(&self, time: i64) -> usize {
        self.grid.before(&self.times, time)
    }

    /// Class and thread of those from one to another.
    pub fn kinds(&self, from: usize, to: usize) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.classes.range(from, to).zip(self.threads.range(from, to))
    }

    /// Draws all, or those whose bit is set, as [`crate::pixels`] says: how many at most touch a
    /// pixel.
    pub fn draw(&self, chosen: Option<&RankedBits>, scale: &Scale, out: &mut Pixels) -> usize {
        let mut most = 0;
        let mut last = (i64::MIN, 0);
        for pixel in 0..scale.px {
            let (begin, end) = scale.pixel(pixel);
            let from = if last.0 == begin { last.1 } else { self.before(begin) };
            let to = self.before(end);
            last = (end, to);
            let (count, first) = match chosen {
                None => (to - from.min(to), from),
                Some(bits) => {
                    let rank = bits.rank(from);
                    let count = bits.rank(to).saturating_sub(rank);
                    (count, if count > 0 { bits.select(rank).unwrap_or(from) } else { from })
                }
            };
            most = most.max(count);
            if count == 0 {
                out.nothing();
            } else {
                out.push(u32::from(self.class(first)), 1, count, false);
            }
        }
        most
    }
}
