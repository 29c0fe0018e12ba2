// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Code bytes by address.

use alloc::vec::Vec;

/// The longest instruction [SDM volume 2, 2.3.11].
pub(crate) const INSTRUCTION_BYTES: usize = 15;

/// Contents of memory while the processor ran.
pub trait Image {
    /// Contiguous bytes from an address on; `None` if they are unknown.
    fn bytes_at(&self, address: u64) -> Option<&[u8]>;
}

/// Memory given as sections.
#[derive(Debug, Clone, Default)]
pub struct Sections<'a> {
    /// Sorted by address, none of them empty.
    all: Vec<(u64, &'a [u8])>,
}

impl<'a> Sections<'a> {
    /// Adds a section; where two overlap, the one that begins later has precedence.
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

/// Bytes of one instruction, possibly from several contiguous sections; and the number of bytes.
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
