// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A column that is appended to while it is read, and forgets its oldest numbers.

use std::sync::Arc;

use crate::column::{Column, Number};

/// Numbers of the first piece, as a power of two: a row may have a few only.
const FIRST: u32 = 6;
/// Of each of the pieces that follow when it is long; those between double.
const FULL: u32 = 14;

/// Piece of the number at a place, counted from the first there ever was, and its place in that.
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

/// How many numbers a piece has room for.
fn room(piece: usize) -> usize {
    match piece {
        0 => 1 << FIRST,
        _ => 1 << (FIRST as usize + piece - 1).min(FULL as usize),
    }
}

/// Where the first number of a piece is.
fn begin(piece: usize) -> usize {
    match piece {
        0 => 0,
        _ if piece <= (FULL - FIRST) as usize => 1 << (FIRST as usize + piece - 1),
        _ => (piece - (FULL - FIRST) as usize) << FULL,
    }
}

type Piece<T> = Arc<[<T as Number>::Cell]>;

/// The writer's side: one thread appends, any number of [`Grown`] are read meanwhile.
///
/// Each place is written once, before it belongs to any [`Grown`], so that what one of them shows
/// never changes.
pub struct Pieces<T: Number> {
    list: Arc<Vec<Piece<T>>>,
    /// Pieces that were let go.
    gone: usize,
    /// Numbers that were forgotten.
    forgotten: usize,
    /// Numbers that ever were.
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
            // Copies the list, once for each piece, if somebody reads the old one.
            Arc::make_mut(&mut self.list).push(cells.collect());
        }
        number.store(&self.list[index][at]);
        self.end += 1;
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.end - self.forgotten
    }

    /// How many were forgotten.
    pub fn forgotten(&self) -> usize {
        self.forgotten
    }

    /// One of those that are left.
    pub fn get(&self, index: usize) -> T {
        let (piece, at) = place(self.forgotten + index);
        let cell = self.list.get(piece.wrapping_sub(self.gone)).and_then(|piece| piece.get(at));
        cell.map_or_else(T::default, T::load)
    }

    /// Forgets the oldest so many. Memory is let go by pieces.
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

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        (begin(self.gone + self.list.len()) - begin(self.gone)) * T::BYTES
    }

    /// As it is now.
    pub fn column(&self) -> Column<T> {
        Column::Grown(Grown {
            list: Arc::clone(&self.list),
            gone: self.gone,
            forgotten: self.forgotten,
            len: self.len(),
        })
    }
}

/// What a column was at a moment.
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
    /// How many.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// One; 0 beyond the end.
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
                // At most a piece in front, and one behind.
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
