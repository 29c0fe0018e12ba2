// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Translated blocks of code: their instructions and successors.

use lateralis_intelpt::{Branch, Ends, Mode, branch};

/// Largest number of instructions in a block of QEMU.
const INSTRUCTIONS_MAX: u32 = 1024;
/// The longest instruction [Intel SDM volume 2, 2.3.11].
const INSTRUCTION_BYTES: u8 = 15;
/// Bytes before a definition.
const HEADER: usize = 16;
/// Largest memory for all blocks.
const BYTES_MAX: usize = 2 << 30;

/// A block.
#[derive(Debug, Clone)]
pub struct Block {
    /// Its first address.
    pub ip: u64,
    /// Size of each instruction in bytes.
    pub sizes: Box<[u8]>,
    /// The bytes.
    pub code: Box<[u8]>,
    /// Its last instruction with its successors.
    pub branch: Branch,
}

impl Block {
    /// Number of instructions.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// Address of an instruction; for the index after the last, the end of the block.
    #[must_use]
    pub fn address(&self, index: u32) -> u64 {
        let sizes = self.sizes.iter().take(index as usize);
        sizes.fold(self.ip, |at, size| at.wrapping_add(u64::from(*size)))
    }

    /// The address of its last instruction.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.address(self.count() - 1)
    }
}

/// All blocks, by number.
#[derive(Debug, Default)]
pub struct Blocks {
    all: Vec<Block>,
    bytes: usize,
}

impl Blocks {
    /// Adds definitions of consecutively numbered blocks. Invalid ones are left out.
    ///
    /// @return whether all were valid.
    #[must_use]
    pub fn define(&mut self, definitions: &[u8]) -> bool {
        let mut rest = definitions;
        while !rest.is_empty() {
            let Some((block, behind)) = self.read(rest) else { return false };
            self.bytes += size_of::<Block>() + block.sizes.len() + block.code.len();
            if self.bytes > BYTES_MAX {
                return false;
            }
            self.all.push(block);
            rest = behind;
        }
        true
    }

    /// A block by its number.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<&Block> {
        self.all.get(id as usize)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Block> {
        self.all.iter()
    }

    fn read<'a>(&self, bytes: &'a [u8]) -> Option<(Block, &'a [u8])> {
        let (id, count) = (word(bytes, 0)?, word(bytes, 4)?);
        let ip = u64::from(word(bytes, 8)?) | u64::from(word(bytes, 12)?) << 32;
        if id as usize != self.all.len() || count == 0 || count > INSTRUCTIONS_MAX {
            return None;
        }
        let sizes = bytes.get(HEADER..HEADER + count as usize)?;
        if !sizes.iter().all(|size| (1..=INSTRUCTION_BYTES).contains(size)) {
            return None;
        }
        let length: usize = sizes.iter().map(|size| usize::from(*size)).sum();
        let begin = HEADER + sizes.len();
        let code = bytes.get(begin..begin + length)?;
        let before = length - usize::from(*sizes.last()?);
        let last = ip.wrapping_add(before as u64);
        // An invalid instruction raises an exception, and has no successor.
        let nothing =
            Branch { ends: Ends::NoCode, next: ip.wrapping_add(length as u64), target: 0 };
        let branch = branch(&code[before..], last, Mode::Bits64).unwrap_or(nothing);
        let block = Block { ip, sizes: sizes.into(), code: code.into(), branch };
        Some((block, &bytes[begin + length..]))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A definition as written by the plugin.
    pub fn definition(id: u32, ip: u64, instructions: &[&[u8]]) -> Vec<u8> {
        let count = instructions.len() as u32;
        let mut bytes = [&id.to_le_bytes()[..], &count.to_le_bytes(), &ip.to_le_bytes()].concat();
        bytes.extend(instructions.iter().map(|of| of.len() as u8));
        bytes.extend(instructions.concat());
        bytes
    }

    #[test]
    fn definitions_are_read_up_to_one_that_is_damaged() {
        let nop: &[u8] = &[0x90];
        // jz +2
        let jz: &[u8] = &[0x74, 2];
        let all = [definition(0, 0x1000, &[nop, jz]), definition(1, 0x1003, &[nop])].concat();
        let mut blocks = Blocks::default();
        assert!(blocks.define(&all));
        let first = blocks.get(0).expect("a block");
        assert_eq!((first.count(), first.last(), first.address(2)), (2, 0x1001, 0x1003));
        let expected = Branch { ends: Ends::Conditional, next: 0x1003, target: 0x1005 };
        assert_eq!(first.branch, expected);
        assert!(!blocks.define(&definition(7, 0, &[nop])), "a number is left out");
        assert!(!blocks.define(&definition(2, 0, &[])), "it is empty");
        for cut in 1..all.len() {
            let mut blocks = Blocks::default();
            assert_eq!(blocks.define(&all[..cut]), cut == all.len() / 2 + 2, "{cut}");
        }
    }
}
