// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of a lane.

use crate::RankedBits;
use crate::column::Column;
use crate::grid::Grid;
use crate::pixels::{Pixels, Scale};

/// Events in time order.
#[derive(Clone)]
pub struct Points {
    pub(crate) times: Column<u64>,
    pub(crate) classes: Column<u16>,
    pub(crate) threads: Column<u32>,
    pub(crate) grid: Grid,
    /// Number of evicted events of a growing lane.
    pub(crate) forgotten: u64,
}

impl Points {
    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Number of evicted events before the first.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Whether there are no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Time of an event, since the origin.
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

    /// Number of events before a time.
    #[must_use]
    pub fn before(&self, time: i64) -> usize {
        self.grid.before(&self.times, time)
    }

    /// Classes and threads of a range of events.
    pub fn kinds(&self, from: usize, to: usize) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.classes.range(from, to).zip(self.threads.range(from, to))
    }

    /// Number of events in each pixel; of all, or of those whose bit is set.
    #[must_use]
    pub fn counts(&self, chosen: Option<&RankedBits>, scale: &Scale) -> Vec<usize> {
        let before = self.grid.pixels(&self.times, scale);
        let of = |pixel: u32| {
            let (from, to) = before.of(pixel);
            chosen.map_or(to - from, |bits| bits.rank(to).saturating_sub(bits.rank(from)))
        };
        (0..scale.px).map(of).collect()
    }

    /// Draws all events, or those whose bit is set, as specified in [`crate::pixels`]; returns the
    /// largest number that touch a pixel.
    pub fn draw(&self, chosen: Option<&RankedBits>, scale: &Scale, out: &mut Pixels) -> usize {
        let before = self.grid.pixels(&self.times, scale);
        let of = |pixel: u32| {
            let (from, to) = before.of(pixel);
            let Some(bits) = chosen else { return (to - from, from) };
            let count = bits.rank(to).saturating_sub(bits.rank(from));
            (count, if count > 0 { bits.next(from).unwrap_or(from) } else { from })
        };
        let pixels: Vec<(usize, usize)> = (0..scale.px).map(of).collect();
        let classes = self.classes.reading();
        // First all classes, so that memory accesses overlap.
        let colours: Vec<u16> = pixels.iter().map(|(_, first)| classes.get(*first)).collect();
        for ((count, _), class) in pixels.iter().zip(colours) {
            match count {
                0 => out.nothing(),
                _ => out.push(u32::from(class), 1, *count, false),
            }
        }
        pixels.iter().map(|(count, _)| *count).max().unwrap_or(0)
    }
}
