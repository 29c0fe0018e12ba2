// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers that stand one behind the other in an index.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::growing::Grown;

/// The bytes of an index: of a file in memory, or made just now.
pub type Shared = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A number of a column, little-endian.
pub trait Number: Copy + Default {
    /// Its bytes.
    const BYTES: usize;
    /// A place in memory that one thread writes once, and others read then.
    type Cell: Default + Send + Sync;
    /// What stands in a place.
    fn load(cell: &Self::Cell) -> Self;
    /// Writes it there.
    fn store(self, cell: &Self::Cell);
    /// From as many bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Appends them.
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! number {
    ($($type:ty, $cell:ty, $to:expr, $from:expr;)*) => {$(
        impl Number for $type {
            const BYTES: usize = size_of::<$type>();
            type Cell = $cell;
            #[inline]
            fn load(cell: &$cell) -> Self {
                // Partner: the store below. Whoever has a column with this place in it got it from
                // the writer after that, by a lock or a channel.
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

/// A column of an index: of a file, or of one that grows, as far as it had grown.
#[derive(Clone)]
pub enum Column<T: Number> {
    /// Bytes of a file.
    Kept(Kept<T>),
    /// Pieces in memory.
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
    /// So many numbers from a byte on; `None` if there are not as many.
    pub fn new(all: &Shared, begin: u64, len: u64) -> Option<Self> {
        let (begin, len) = (usize::try_from(begin).ok()?, usize::try_from(len).ok()?);
        let end = begin.checked_add(len.checked_mul(T::BYTES)?)?;
        let bytes: &[u8] = (**all).as_ref();
        let all = Arc::clone(all);
        (end <= bytes.len()).then(|| Self::Kept(Kept { all, begin, len, kind: PhantomData }))
    }

    /// To look at many.
    pub fn reading(&self) -> Reading<'_, T> {
        match self {
            Self::Kept(kept) => Reading::Kept(kept.bytes()),
            Self::Grown(grown) => Reading::Grown(grown),
        }
    }

    /// Which bytes of the file they are.
    pub fn place(&self) -> Option<Range<usize>> {
        match self {
            Self::Kept(kept) => Some(kept.begin..kept.begin + kept.len * T::BYTES),
            Self::Grown(_) => None,
        }
    }

    /// How many.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Kept(kept) => kept.len,
            Self::Grown(grown) => grown.len(),
        }
    }

    /// One; 0 beyond the end.
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

    /// Those from one to another, as far as there are.
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

/// A column of which many numbers are looked at: where its bytes are is looked up once.
pub enum Reading<'a, T: Number> {
    /// Bytes of a file.
    Kept(&'a [u8]),
    /// Pieces in memory.
    Grown(&'a Grown<T>),
}

impl<T: Number> Reading<'_, T> {
    /// How many.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Kept(bytes) => bytes.len() / T::BYTES,
            Self::Grown(grown) => grown.len(),
        }
    }

    /// One; 0 beyond the end.
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
