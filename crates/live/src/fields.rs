// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Little-endian fields of a body, one after the other.

/// What is left of a body.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// A number whose greatest value says that it is not known.
    pub(crate) fn known(&mut self) -> Option<Option<u64>> {
        self.u64().map(|number| Some(number).filter(|number| *number != u64::MAX))
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    /// Bytes preceded by their number.
    pub(crate) fn counted(&mut self, most: usize) -> Option<&'a [u8]> {
        let count = usize::try_from(self.u32()?).ok().filter(|count| *count <= most)?;
        self.bytes(count)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// `Some` if everything was read.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
