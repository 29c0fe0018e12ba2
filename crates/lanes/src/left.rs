// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Intervals of a row that a filter keeps.

use crate::intervals::{Intervals, Sums};
use crate::pixels::{BLOCK, Scale};

/// The kept intervals of a row.
#[derive(Clone)]
pub struct Left {
    /// Indices of the kept intervals, preceded by padding entries.
    items: Vec<u32>,
    /// Number of padding entries: fewer than a block. They keep the kept intervals in their blocks, and
    /// the sums unchanged, when earlier intervals are evicted.
    lead: usize,
    pub(crate) sums: Sums,
    /// Number of ended intervals of the row that were examined, including those evicted by then.
    looked: u64,
    /// Number of evicted intervals, and of evicted points.
    forgotten: (u64, u64),
    main: Vec<u32>,
}

impl Left {
    /// Indices of the kept intervals.
    #[must_use]
    pub fn items(&self) -> &[u32] {
        &self.items[self.lead..]
    }

    /// Rank of the first kept interval that is not before one of the row.
    fn rank(&self, index: usize) -> usize {
        self.lead + self.items().partition_point(|item| (*item as usize) < index)
    }
}

impl Intervals {
    /// The intervals that a filter keeps, prepared for drawing.
    ///
    /// Cost: a step for each.
    #[must_use]
    pub fn left(&self, keeps: impl Fn(usize) -> bool) -> Left {
        self.left_after(None, keeps)
    }

    /// Like [`Intervals::left`], extending the result for an earlier state of the row.
    ///
    /// Cost: a step for each interval that has ended since, or was open, and for the first block if some
    /// were evicted; and a copy.
    #[must_use]
    pub fn left_after(&self, before: Option<&Left>, keeps: impl Fn(usize) -> bool) -> Left {
        let points = self.points_forgotten.iter().flat_map(|of| of.iter()).sum();
        let forgotten = (self.forgotten, points);
        let ended = self.forgotten + self.begins.len() as u64;
        // The earlier result is still valid, unless the main names have changed.
        let before = before.filter(|before| {
            before.main == self.main
                && before.forgotten.0 <= forgotten.0
                && before.forgotten.1 <= forgotten.1
                && (forgotten.0..=ended).contains(&before.looked)
        });
        let wide = self.main.len() + 1;
        let (mut left, looked) = match before {
            Some(before) => {
                (self.still_left(before, forgotten, &keeps), (before.looked - forgotten.0) as usize)
            }
            None => {
                let sums = Sums::Made(vec![0; wide]);
                let main = self.main.clone();
                (Left { items: Vec::new(), lead: 0, sums, looked: 0, forgotten, main }, 0)
            }
        };
        left.looked = ended;
        let known = left.items.len();
        let more = (looked..self.len()).filter(|index| keeps(*index)).map(|index| index as u32);
        left.items.extend(more);
        // Sums of whole blocks of ended intervals are kept.
        let Sums::Made(sums) = &mut left.sums else { return left };
        let blocks = (known / BLOCK).min(sums.len() / wide - 1);
        sums.truncate((blocks + 1) * wide);
        let lengths = (blocks * BLOCK..left.items.len()).map(|place| {
            if place < left.lead { (crate::NONE, 0) } else { self.weight(left.items[place]) }
        });
        Sums::more(lengths, blocks * BLOCK, &self.main, sums);
        left
    }

    /// Name and length.
    fn weight(&self, item: u32) -> (u32, u64) {
        let (begin, end) = self.ends(item as usize);
        (self.name(item as usize), end - begin)
    }

    /// The kept ended intervals that have not been evicted.
    fn still_left(
        &self,
        before: &Left,
        forgotten: (u64, u64),
        keeps: &impl Fn(usize) -> bool,
    ) -> Left {
        let looked = (before.looked - forgotten.0) as usize;
        let gone = (forgotten.0 - before.forgotten.0) as usize;
        let shift = gone as u32;
        let main = before.main.clone();
        let ended = before.rank(gone + looked);
        if before.forgotten == forgotten {
            let items = before.items[..ended].to_vec();
            let (lead, sums, looked) = (before.lead, before.sums.clone(), before.looked);
            return Left { items, lead, sums, looked, forgotten, main };
        }
        // Intervals that begin before the kept time range may have lost an event that the filter depends
        // on: ended ones are evicted in whole blocks, and one may extend into the range.
        let again = looked.min(BLOCK + 1);
        let fresh: Vec<u32> = (0..again).filter(|index| keeps(*index)).map(|i| i as u32).collect();
        let cut = before.rank(gone + again);
        // The rest keeps its position in its block.
        let lead = (cut % BLOCK + BLOCK - fresh.len() % BLOCK) % BLOCK;
        let front = lead + fresh.len();
        let mut items = vec![0; lead];
        items.extend(&fresh);
        items.extend(before.items[cut..ended].iter().map(|item| item - shift));
        let wide = main.len() + 1;
        // Sums up to each block before the first unchanged one, and up to that.
        let blocks = front.div_ceil(BLOCK);
        let mut sums = vec![0; wide];
        let known = items.len().min(blocks * BLOCK);
        let weights = (0..known)
            .map(|place| if place < lead { (crate::NONE, 0) } else { self.weight(items[place]) });
        Sums::more(weights, 0, &main, &mut sums);
        let old = (blocks * BLOCK + cut - front) / BLOCK;
        if let Sums::Made(known) = &before.sums
            && let Some(known) = known.get(old * wide..).filter(|known| !known.is_empty())
            && sums.len() == (blocks + 1) * wide
        {
            let (then, now) = (known[..wide].to_vec(), sums.split_off(blocks * wide));
            for known in known.chunks_exact(wide) {
                let sum = |place: usize| known[place].saturating_sub(then[place]) + now[place];
                sums.extend((0..wide).map(sum));
            }
        }
        Left { items, lead, sums: Sums::Made(sums), looked: before.looked, forgotten, main }
    }

    /// Ranks of the kept intervals that overlap a time range.
    pub(crate) fn ranks(&self, left: Option<&Left>, touching: (usize, usize)) -> (usize, usize) {
        let (from, to) = touching;
        match left {
            None => (from, to),
            Some(left) => {
                let low = left.rank(from);
                let behind = left.items[low..].partition_point(|item| (*item as usize) < to);
                (low, low + behind)
            }
        }
    }

    /// The items that touch a picture.
    #[must_use]
    pub fn items(&self, left: Option<&Left>, scale: &Scale) -> Vec<usize> {
        let (from, to) = self.ranks(left, self.touching(scale.t0, scale.t1));
        (from..to).map(|rank| item(left, rank)).collect()
    }
}

/// Index of a kept interval by rank.
#[inline]
pub(crate) fn item(left: Option<&Left>, rank: usize) -> usize {
    left.map_or(rank, |left| left.items.get(rank).copied().unwrap_or(0) as usize)
}
