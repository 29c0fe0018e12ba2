// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Columns of numbers in an index.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::growing::Grown;

/// Bytes of an index: a file in memory, or newly made.
pub type Shared = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A number in a column, little-endian.
pub trait Number: Copy + Default {
    /// Size in bytes.
    const BYTES: usize;
    /// A memory cell that one thread writes once, before others read it.
    type Cell: Default + Send + Sync;
    /// Reads a cell.
    fn load(cell: &Self::Cell) -> Self;
    /// Writes a cell.
    fn store(self, cell: &Self::Cell);
    /// From its bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Appends its bytes.
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! number {
    ($($type:ty, $cell:ty, $to:expr, $from:expr;)*) => {$(
        impl Number for $type {
            const BYTES: usize = size_of::<$type>();
            type Cell = $cell;
            #[inline]
            fn load(cell: &$cell) -> Self {
                // Partner: the store below. A reader obtains the column that contains this cell from the
                // writer after that store, through a lock or a channel.
                $from(cell.load(Ordering::Relaxed))
            }
            #[inline]
            fn store(self, cell: &$cell) {
                // Partner: the load above.
                cell.store($to(self), Ordering::Relaxed);
            }
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                bytes.try_into().map_or_else(|_| Self::default(), Self::from_le_bytes)
            }
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
number! {
    u8, AtomicU8, |n| n, |n| n;
    u16, AtomicU16, |n| n, |n| n;
    u32, AtomicU32, |n| n, |n| n;
    u64, AtomicU64, |n| n, |n| n;
    f64, AtomicU64, f64::to_bits, f64::from_bits;
}

/// A column of an index: of a file, or a snapshot of a growing one.
#[derive(Clone)]
pub enum Column<T: Number> {
    /// Bytes of a file.
    Kept(Kept<T>),
    /// Chunks in memory.
    Grown(Grown<T>),
}

/// Numbers in the bytes of a file.
#[derive(Clone)]
pub struct Kept<T> {
    all: Shared,
    begin: usize,
    len: usize,
    kind: PhantomData<T>,
}

impl<T: Number> Kept<T> {
    fn bytes(&self) -> &[u8] {
        let all: &[u8] = (*self.all).as_ref();
        all.get(self.begin..self.begin + self.len * T::BYTES).unwrap_or(&[])
    }
}

impl<T: Number> Column<T> {
    /// `len` numbers from a byte on; `None` if there are fewer.
    pub fn new(all: &Shared, begin: u64, len: u64) -> Option<Self> {
        let (begin, len) = (usize::try_from(begin).ok()?, usize::try_from(len).ok()?);
        let end = begin.checked_add(len.checked_mul(T::BYTES)?)?;
        let bytes: &[u8] = (**all).as_ref();
        let all = Arc::clone(all);
        (end <= bytes.len()).then(|| Self::Kept(Kept { all, begin, len, kind: PhantomData }))
    }

    /// Access for reading many numbers.
    pub fn reading(&self) -> Reading<'_, T> {
        match self {
            Self::Kept(kept) => Reading::Kept(kept.bytes()),
            Self::Grown(grown) => Reading::Grown(grown),
        }
    }

    /// Byte range in the file.
    pub fn place(&self) -> Option<Range<usize>> {
        match self {
            Self::Kept(kept) => Some(kept.begin..kept.begin + kept.len * T::BYTES),
            Self::Grown(_) => None,
        }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Kept(kept) => kept.len,
            Self::Grown(grown) => grown.len(),
        }
    }

    /// An element; 0 beyond the end.
    #[inline]
    pub fn get(&self, index: usize) -> T {
        match self {
            Self::Kept(kept) => {
                let at = index * T::BYTES;
                kept.bytes().get(at..at + T::BYTES).map_or_else(T::default, T::read)
            }
            Self::Grown(grown) => grown.get(index),
        }
    }

    /// The elements in a range, as far as they exist.
    pub fn range(&self, from: usize, to: usize) -> impl Iterator<Item = T> + '_ {
        let to = to.min(self.len());
        let from = from.min(to);
        let (bytes, grown) = match self {
            Self::Kept(kept) => (kept.bytes(), None),
            Self::Grown(grown) => (&[][..], Some(grown)),
        };
        let bytes = bytes.get(from * T::BYTES..to * T::BYTES).unwrap_or(&[]);
        let grown = grown.into_iter().flat_map(move |grown| (from..to).map(|at| grown.get(at)));
        bytes.chunks_exact(T::BYTES).map(T::read).chain(grown)
    }
}

/// A column from which many numbers are read: the location of its bytes is resolved once.
pub enum Reading<'a, T: Number> {
    /// Bytes of a file.
    Kept(&'a [u8]),
    /// Chunks in memory.
    Grown(&'a Grown<T>),
}

impl<T: Number> Reading<'_, T> {
    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Kept(bytes) => bytes.len() / T::BYTES,
            Self::Grown(grown) => grown.len(),
        }
    }

    /// An element; 0 beyond the end.
    #[inline]
    pub fn get(&self, index: usize) -> T {
        match self {
            Self::Kept(bytes) => {
                let at = index * T::BYTES;
                bytes.get(at..at + T::BYTES).map_or_else(T::default, T::read)
            }
            Self::Grown(grown) => grown.get(index),
        }
    }
}
