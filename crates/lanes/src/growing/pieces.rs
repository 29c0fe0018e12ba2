// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A column that is appended to while it is read, and evicts its oldest numbers.

use std::sync::Arc;

use crate::column::{Column, Number};

/// Binary logarithm of the size of the first chunk: a row may have a few numbers only.
const FIRST: u32 = 6;
/// Binary logarithm of the size of the last chunks; the size doubles up to that.
const FULL: u32 = 14;

/// Chunk of the number at a position, counted from the first ever, and its position in that.
#[inline]
fn place(at: usize) -> (usize, usize) {
    if at < 1 << FIRST {
        return (0, at);
    }
    if at >= 1 << FULL {
        return ((FULL - FIRST) as usize + (at >> FULL), at & ((1 << FULL) - 1));
    }
    let level = at.ilog2();
    ((level - FIRST) as usize + 1, at - (1 << level))
}

/// Size of a chunk.
fn room(piece: usize) -> usize {
    match piece {
        0 => 1 << FIRST,
        _ => 1 << (FIRST as usize + piece - 1).min(FULL as usize),
    }
}

/// Position of the first number of a chunk.
fn begin(piece: usize) -> usize {
    match piece {
        0 => 0,
        _ if piece <= (FULL - FIRST) as usize => 1 << (FIRST as usize + piece - 1),
        _ => (piece - (FULL - FIRST) as usize) << FULL,
    }
}

type Piece<T> = Arc<[<T as Number>::Cell]>;

/// Writer's side: one thread appends, while any number of [`Grown`] snapshots are read.
///
/// Each cell is written once, before it belongs to a snapshot, so that the contents of a snapshot never
/// change.
pub struct Pieces<T: Number> {
    list: Arc<Vec<Piece<T>>>,
    /// Number of freed chunks.
    gone: usize,
    /// Number of evicted numbers.
    forgotten: usize,
    /// Total number of numbers ever.
    end: usize,
}

impl<T: Number> Default for Pieces<T> {
    fn default() -> Self {
        Self { list: Arc::default(), gone: 0, forgotten: 0, end: 0 }
    }
}

impl<T: Number> Pieces<T> {
    pub fn push(&mut self, number: T) {
        let (piece, at) = place(self.end);
        let index = piece - self.gone;
        if index >= self.list.len() {
            let cells = std::iter::repeat_with(T::Cell::default).take(room(piece));
            // Copies the list, once per chunk, if a snapshot uses the old one.
            Arc::make_mut(&mut self.list).push(cells.collect());
        }
        number.store(&self.list[index][at]);
        self.end += 1;
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.end - self.forgotten
    }

    /// Number of evicted elements.
    pub fn forgotten(&self) -> usize {
        self.forgotten
    }

    /// One of the remaining elements.
    pub fn get(&self, index: usize) -> T {
        let (piece, at) = place(self.forgotten + index);
        let cell = self.list.get(piece.wrapping_sub(self.gone)).and_then(|piece| piece.get(at));
        cell.map_or_else(T::default, T::load)
    }

    /// Evicts the oldest elements. Memory is freed by chunks.
    pub fn forget(&mut self, count: usize) {
        self.forgotten += count.min(self.len());
        let mut whole = 0;
        while self.gone + whole < place(self.forgotten).0 && whole < self.list.len() {
            whole += 1;
        }
        if whole > 0 {
            Arc::make_mut(&mut self.list).drain(..whole);
            self.gone += whole;
        }
        debug_assert!(begin(self.gone) <= self.forgotten, "only what was forgotten is let go");
    }

    /// Memory in bytes.
    pub fn bytes(&self) -> usize {
        (begin(self.gone + self.list.len()) - begin(self.gone)) * T::BYTES
    }

    /// Snapshot of the column.
    pub fn column(&self) -> Column<T> {
        Column::Grown(Grown {
            list: Arc::clone(&self.list),
            gone: self.gone,
            forgotten: self.forgotten,
            len: self.len(),
        })
    }
}

/// A snapshot of a column.
pub struct Grown<T: Number> {
    list: Arc<Vec<Piece<T>>>,
    gone: usize,
    forgotten: usize,
    len: usize,
}

impl<T: Number> Clone for Grown<T> {
    fn clone(&self) -> Self {
        Self { list: Arc::clone(&self.list), ..*self }
    }
}

impl<T: Number> Grown<T> {
    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// An element; 0 beyond the end.
    #[inline]
    pub fn get(&self, index: usize) -> T {
        if index >= self.len {
            return T::default();
        }
        let (piece, at) = place(self.forgotten + index);
        let cell = self.list.get(piece.wrapping_sub(self.gone)).and_then(|piece| piece.get(at));
        cell.map_or_else(T::default, T::load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_follow_each_other() {
        let mut expected = (0, 0);
        for at in 0..200_000 {
            assert_eq!(place(at), expected, "{at}");
            assert_eq!(begin(expected.0) + expected.1, at);
            expected.1 += 1;
            if expected.1 == room(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    proptest! {
        #[test]
        fn a_snapshot_stays_what_it_was(
            steps in prop::collection::vec((0usize..3000, 0usize..2500), 1..30),
        ) {
            let (mut pieces, mut all, mut forgotten) = (Pieces::<u32>::default(), Vec::new(), 0);
            let mut shots: Vec<(Column<u32>, usize, usize)> = Vec::new();
            for (more, less) in steps {
                for _ in 0..more {
                    let number = all.len() as u32 * 7 + 1;
                    all.push(number);
                    pieces.push(number);
                }
                pieces.forget(less);
                forgotten = (forgotten + less).min(all.len());
                prop_assert_eq!(pieces.forgotten(), forgotten);
                shots.push((pieces.column(), forgotten, all.len()));
                // At most one additional chunk at each end.
                let most = (pieces.len() * 3 + (2 << FULL)) * 4;
                prop_assert!(pieces.bytes() <= most, "{} > {}", pieces.bytes(), most);
            }
            for (column, from, to) in shots {
                prop_assert_eq!(column.len(), to - from);
                let told: Vec<u32> = column.range(0, usize::MAX).collect();
                prop_assert_eq!(&told[..], &all[from..to]);
                prop_assert_eq!(column.get(to - from), 0);
            }
        }
    }
}
