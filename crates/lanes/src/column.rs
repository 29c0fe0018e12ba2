// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers that stand one behind the other in an index.

use std::marker::PhantomData;
use std::sync::Arc;

/// The bytes of an index: of a file in memory, or made just now.
pub type Shared = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A number of a column, little-endian.
pub trait Number: Copy + Default {
    /// Its bytes.
    const BYTES: usize;
    /// From as many bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Appends them.
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const BYTES: usize = size_of::<$type>();
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
number!(u8, u16, u32, u64, f64);

/// A column of an index.
#[derive(Clone)]
pub struct Column<T> {
    all: Shared,
    begin: usize,
    len: usize,
    kind: PhantomData<T>,
}

impl<T: Number> Column<T> {
    /// So many numbers from a byte on; `None` if there are not as many.
    pub fn new(all: &Shared, begin: u64, len: u64) -> Option<Self> {
        let (begin, len) = (usize::try_from(begin).ok()?, usize::try_from(len).ok()?);
        let end = begin.checked_add(len.checked_mul(T::BYTES)?)?;
        let bytes: &[u8] = (**all).as_ref();
        (end <= bytes.len()).then(|| Self { all: Arc::clone(all), begin, len, kind: PhantomData })
    }

    /// How many.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> &[u8] {
        let all: &[u8] = (*self.all).as_ref();
        all.get(self.begin..self.begin + self.len * T::BYTES).unwrap_or(&[])
    }

    /// One; 0 beyond the end.
    #[inline]
    pub fn get(&self, index: usize) -> T {
        let at = index * T::BYTES;
        self.bytes().get(at..at + T::BYTES).map_or_else(T::default, T::read)
    }

    /// Those from one to another, as far as there are.
    pub fn range(&self, from: usize, to: usize) -> impl Iterator<Item = T> + '_ {
        let to = to.min(self.len);
        let from = from.min(to);
        let bytes = self.bytes().get(from * T::BYTES..to * T::BYTES).unwrap_or(&[]);
        bytes.chunks_exact(T::BYTES).map(T::read)
    }
}

/// The first item of each bucket of time.
#[derive(Clone)]
pub struct Grid {
    /// Nanoseconds of a bucket, as a power of two.
    shift: u32,
    first: Column<u32>,
}

impl Grid {
    /// From a column; `shift` of a hostile index may be anything.
    pub fn new(shift: u32, first: Column<u32>) -> Self {
        Self { shift: shift.min(63), first }
    }

    /// How many of these times, which ascend, are before one.
    ///
    /// Cost: a look-up, and a step for each time that the number in the bucket is halved.
    #[inline]
    pub fn before(&self, times: &Column<u64>, time: i64) -> usize {
        let Ok(time) = u64::try_from(time) else {
            return 0;
        };
        let count = times.len();
        let bucket = usize::try_from(time >> self.shift).unwrap_or(usize::MAX);
        if bucket >= self.first.len() {
            return count;
        }
        let mut low = (self.first.get(bucket) as usize).min(count);
        let next = bucket + 1;
        let end = if next < self.first.len() { self.first.get(next) as usize } else { count };
        let mut high = end.clamp(low, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if times.get(middle) < time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The exponent for so many items up to a time: some 64 a bucket.
    pub fn shift_for(count: usize, end: u64) -> u32 {
        let buckets = (count as u64 / 64).max(1);
        (0..63).find(|shift| end >> shift < buckets).unwrap_or(63)
    }
}
