// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who called whom, out of the registers and the top of a stack, by the tables for exceptions that are in
//! programs of x86-64 [Linux Standard Base, Core, Exception Frames; DWARF 5, 6.4].

use std::ops::Range;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};

use crate::{Image, Mapping};

/// Frames of a stack at most.
const FRAMES_MAX: usize = 1024;

/// Bytes of a section, and the address that the linker gave them.
type Section = Option<(u64, Arc<[u8]>)>;

/// What of a file says how to go from a function to its caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    pub eh_frame: Section,
    pub eh_frame_hdr: Section,
    pub debug_frame: Section,
    pub text: Option<Range<u64>>,
    pub got: Option<Range<u64>>,
}

/// Registers of x86-64 where a stack begins, by the numbers that Linux gives them
/// [arch/x86/include/uapi/asm/perf_regs.h].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    values: [Option<u64>; 24],
}

/// Numbers of these registers.
const IP: usize = 8;
const SP: usize = 7;
const BP: usize = 6;
/// Which of framehop's each number is.
const OTHERS: [(usize, Reg); 13] = [
    (0, Reg::RAX),
    (1, Reg::RBX),
    (2, Reg::RCX),
    (3, Reg::RDX),
    (4, Reg::RSI),
    (5, Reg::RDI),
    (16, Reg::R8),
    (17, Reg::R9),
    (18, Reg::R10),
    (19, Reg::R11),
    (20, Reg::R12),
    (21, Reg::R13),
    (22, Reg::R14),
];
const R15: usize = 23;

impl Registers {
    /// Those of which bits of a mask are set, in the order of their numbers.
    #[must_use]
    pub fn of_mask(mask: u64, values: impl IntoIterator<Item = u64>) -> Self {
        let mut all = Self::default();
        let set = (0..64).filter(|bit| mask >> bit & 1 == 1);
        for (number, value) in set.zip(values) {
            if let Some(place) = all.values.get_mut(number) {
                *place = Some(value);
            }
        }
        all
    }

    fn get(&self, number: usize) -> Option<u64> {
        self.values.get(number).copied().flatten()
    }

    /// Where the stack begins.
    #[must_use]
    pub fn stack_pointer(&self) -> Option<u64> {
        self.get(SP)
    }
}

/// Unwinds stacks of one process, with the files that are mapped in it now.
#[derive(Default)]
pub struct Stacks {
    unwinder: UnwinderX86_64<Arc<[u8]>>,
    cache: CacheX86_64,
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Stacks").finish_non_exhaustive()
    }
}

impl Stacks {
    /// A file is mapped.
    pub fn add(&mut self, mapping: &Mapping, image: &Image) {
        let Some(base) = image.moved_by(mapping) else { return };
        let Tables { eh_frame, eh_frame_hdr, debug_frame, text, got } = image.tables.clone();
        let range = |section: &Section| {
            let (begin, bytes) = section.as_ref()?;
            Some(*begin..begin.checked_add(bytes.len() as u64)?)
        };
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: text,
            got_svma: got,
            eh_frame_svma: range(&eh_frame),
            eh_frame_hdr_svma: range(&eh_frame_hdr),
            eh_frame: eh_frame.map(|(_, bytes)| bytes),
            eh_frame_hdr: eh_frame_hdr.map(|(_, bytes)| bytes),
            debug_frame: debug_frame.map(|(_, bytes)| bytes),
            ..ExplicitModuleSectionInfo::default()
        };
        let module = Module::new(String::new(), mapping.begin..mapping.end, base, sections);
        self.unwinder.add_module(module);
    }

    /// Addresses from the innermost function out: that of the instruction that comes next, then those that
    /// calls return to. `stack`: bytes from the stack pointer on. Ends where nothing says more.
    #[must_use]
    pub fn unwind(&mut self, registers: &Registers, stack: &[u8]) -> Vec<u64> {
        let Some((ip, sp)) = registers.get(IP).zip(registers.get(SP)) else { return Vec::new() };
        let mut start = UnwindRegsX86_64::new(ip, sp, registers.get(BP).unwrap_or(0));
        for (number, register) in OTHERS.iter().chain([&(R15, Reg::R15)]) {
            start.set(*register, registers.get(*number).unwrap_or(0));
        }
        let mut read = |address: u64| {
            let at = address.checked_sub(sp).and_then(|at| usize::try_from(at).ok());
            let word = at.and_then(|at| stack.get(at..)?.first_chunk());
            word.map(|word| u64::from_le_bytes(*word)).ok_or(())
        };
        let mut frames = self.unwinder.iter_frames(ip, start, &mut self.cache, &mut read);
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            if found.len() >= FRAMES_MAX {
                break;
            }
            found.push(frame.address());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_in_the_order_of_their_bits() {
        // What perf asks for on x86-64 [tools/perf/arch/x86/include/perf_regs.h, PERF_REGS_MASK].
        let registers = Registers::of_mask(0xff_0fff, 100..);
        assert_eq!(registers.get(IP), Some(108));
        assert_eq!(registers.stack_pointer(), Some(107));
        assert_eq!((registers.get(12), registers.get(16)), (None, Some(112)));
        assert_eq!(Registers::of_mask(1 << 8, []).get(IP), None);
    }

    #[test]
    fn without_tables_a_stack_ends_where_it_begins() {
        let registers = Registers::of_mask(1 << IP | 1 << SP, [0x7000, 0x1234]);
        let mut stacks = Stacks::default();
        let found = stacks.unwind(&registers, &[0; 64]);
        assert_eq!(found.first(), Some(&0x1234));
        assert_eq!(stacks.unwind(&Registers::default(), &[]), []);
    }
}
