// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bytes of code by their addresses.

use alloc::vec::Vec;

/// The longest instruction [SDM volume 2, 2.3.11].
pub(crate) const INSTRUCTION_BYTES: usize = 15;

/// What was in memory while the processor ran.
pub trait Image {
    /// The bytes from an address on, as far as they lie together; `None` where they are not known.
    fn bytes_at(&self, address: u64) -> Option<&[u8]>;
}

/// Pieces of memory.
#[derive(Debug, Clone, Default)]
pub struct Sections<'a> {
    /// Sorted by address, none of them empty.
    all: Vec<(u64, &'a [u8])>,
}

impl<'a> Sections<'a> {
    /// Adds a piece; where it overlaps with another, the one that begins later counts.
    pub fn add(&mut self, address: u64, bytes: &'a [u8]) {
        if !bytes.is_empty() {
            let at = self.all.partition_point(|(begin, _)| *begin <= address);
            self.all.insert(at, (address, bytes));
        }
    }
}

impl Image for Sections<'_> {
    fn bytes_at(&self, address: u64) -> Option<&[u8]> {
        let before = self.all.partition_point(|(begin, _)| *begin <= address).checked_sub(1)?;
        let (begin, bytes) = self.all.get(before)?;
        let inside = usize::try_from(address - begin).ok()?;
        bytes.get(inside..).filter(|rest| !rest.is_empty())
    }
}

/// Up to the bytes of one instruction, of pieces that follow each other, too; and how many there are.
pub(crate) fn fetch(image: &impl Image, address: u64) -> ([u8; INSTRUCTION_BYTES], usize) {
    let mut bytes = [0; INSTRUCTION_BYTES];
    let mut count = 0;
    while count < INSTRUCTION_BYTES {
        let Some(piece) = image.bytes_at(address.wrapping_add(count as u64)) else { break };
        let taken = piece.len().min(INSTRUCTION_BYTES - count);
        if taken == 0 {
            break;
        }
        bytes[count..count + taken].copy_from_slice(&piece[..taken]);
        count += taken;
    }
    (bytes, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_pieces_that_follow_each_other_are_one() {
        let mut sections = Sections::default();
        sections.add(20, &[5, 6, 7]);
        sections.add(10, &[1, 2, 3]);
        sections.add(13, &[4]);
        assert_eq!(fetch(&sections, 11).1, 3);
        assert_eq!(fetch(&sections, 11).0[..3], [2, 3, 4]);
        assert_eq!([9, 14, 23].map(|at| sections.bytes_at(at)), [None; 3]);
        assert_eq!(sections.bytes_at(22), Some(&[7][..]));
    }
}
