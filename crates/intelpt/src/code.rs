// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Blocks of instructions up to the next branch, decoded once.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use hashbrown::HashMap;
use iced_x86::{
    Code as Opcode, CodeSize, Decoder, DecoderOptions, DefaultSpecializedFormatterTraitOptions,
    FlowControl, Instruction, Mnemonic, OpKind, Register, SpecializedFormatter,
};

use crate::image::{INSTRUCTION_BYTES, Image, fetch};
use crate::long_paths::LongPaths;
use crate::paths::Paths;

/// Largest number of instructions of a block; longer sequences continue in another block.
pub(crate) const LONGEST: u32 = 4096;

/// Mode in which instructions are decoded [SDM volume 3, MODE.Exec packet].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Addresses and operands of 16 bits.
    Bits16,
    /// Of 32 bits.
    Bits32,
    /// Of 64 bits.
    Bits64,
}

impl Mode {
    /// From the bits of a MODE.Exec packet: CS.L and CS.D.
    #[must_use]
    pub fn of_packet(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Bits16,
            2 => Self::Bits32,
            _ => Self::Bits64,
        }
    }

    fn bits(self) -> u32 {
        match self {
            Self::Bits16 => 16,
            Self::Bits32 => 32,
            Self::Bits64 => 64,
        }
    }
}

/// End of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// No branch: another block follows directly.
    Through,
    /// A direct jump.
    Jump,
    /// A conditional branch.
    Conditional,
    /// A direct call.
    Call,
    /// A jump to an address in a register or memory.
    IndirectJump,
    /// A call to an address in a register or memory.
    IndirectCall,
    /// A near return.
    Return,
    /// A system call, a return from an interrupt, or another transfer that changes more than the address.
    Far,
    /// Unknown bytes, or no instruction.
    NoCode,
}

impl Ends {
    /// Whether a packet contains the target, unless it is a compressed return.
    pub(crate) fn is_indirect(self) -> bool {
        matches!(self, Self::IndirectJump | Self::IndirectCall | Self::Return | Self::Far)
    }
}

/// Consecutively executed instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Address of the first instruction.
    pub ip: u64,
    /// Address of the last instruction.
    pub last: u64,
    /// Number of instructions.
    pub count: u32,
    /// Mode in which they are decoded.
    pub mode: Mode,
    /// Kind of the last instruction. [`Ends::Through`] also if control was transferred elsewhere after
    /// it.
    pub ends: Ends,
}

/// Last instruction of a block, with its successors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Its kind.
    pub ends: Ends,
    /// Address after it.
    pub next: u64,
    /// Target of a jump, call or conditional branch.
    pub target: u64,
}

/// Effect of an instruction on the flow; `None` if the bytes are no instruction.
#[must_use]
pub fn branch(bytes: &[u8], ip: u64, mode: Mode) -> Option<Branch> {
    let instruction = decode(bytes, ip, mode);
    let (ends, target) = (kind(&instruction), instruction.near_branch_target());
    (!instruction.is_invalid()).then(|| Branch { ends, next: instruction.next_ip(), target })
}

/// Effect of an instruction that matters only to some packets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effect {
    /// Changes the address space.
    WritesCr3,
    /// Enters a virtual machine.
    VmEntry,
}

/// JMPABS: REX2 with all bits 0, and the opcode of a MOV whose address is now the target [Intel APX
/// architecture specification, JMPABS]. It is direct, but has a TIP nevertheless.
const JMPABS: [u8; 3] = [0xd5, 0x00, 0xa1];
/// These three bytes and eight of the target.
const JMPABS_BYTES: usize = 11;

/// Decodes the instruction at the start of `bytes`; invalid if there is none.
fn decode(bytes: &[u8], ip: u64, mode: Mode) -> Instruction {
    let instruction = Decoder::with_ip(mode.bits(), bytes, ip, DecoderOptions::NONE).decode();
    // The library does not support it.
    if instruction.is_invalid()
        && mode == Mode::Bits64
        && bytes.starts_with(&JMPABS)
        && let Some(target) = bytes.get(JMPABS.len()..JMPABS_BYTES)
    {
        let target = target.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let mut jump = Instruction::default();
        jump.set_code(Opcode::Jmp_rel32_64);
        jump.set_op0_kind(OpKind::NearBranch64);
        jump.set_near_branch64(target);
        // In 64-bit mode no other instruction has this code size: `kind` recognises it by that.
        jump.set_code_size(CodeSize::Code32);
        jump.set_len(JMPABS_BYTES);
        jump.set_next_ip(ip.wrapping_add(JMPABS_BYTES as u64));
        return jump;
    }
    instruction
}

/// A block, and its successors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub block: Block,
    /// Its address space; [`KERNEL_SPACE`]: in all address spaces.
    pub space: u32,
    /// Address after its last instruction.
    pub next: u64,
    /// Target of a jump, call or conditional branch.
    pub target: u64,
    next_run: u32,
    target_run: u32,
}

/// Not looked up yet.
const UNKNOWN: u32 = u32::MAX;
/// Addresses from here on belong to the kernel, which is the same in each address space
/// [Documentation/arch/x86/x86_64/mm.rst, the canonical hole].
const KERNEL_BEGIN: u64 = 1 << 63;
/// Instead of the number of an address space: the block belongs to the kernel.
const KERNEL_SPACE: u32 = u32::MAX;

/// Blocks of several images, each of which is an address space.
///
/// Memory: 68 bytes for each executed block, plus paths.
pub(crate) struct Code<'i, I> {
    images: &'i [I],
    /// The current address space.
    space: u32,
    pub paths: Paths,
    pub long_paths: LongPaths,
    runs: Vec<Run>,
    by_ip: HashMap<(u64, u32, Mode), u32>,
    /// Recently used blocks, by a part of their address.
    recent: Vec<u32>,
}

/// Size of the cache of recently used addresses: 32 KiB.
const RECENT: usize = 1 << 13;

impl<'i, I: Image> Code<'i, I> {
    pub fn new(images: &'i [I]) -> Self {
        let recent = vec![UNKNOWN; RECENT];
        Self {
            images,
            space: 0,
            paths: Paths::new(),
            long_paths: LongPaths::new(),
            runs: Vec::new(),
            by_ip: HashMap::new(),
            recent,
        }
    }

    /// Switches to another address space.
    pub fn enter(&mut self, space: u32) {
        self.space = space;
    }

    /// The current address space.
    pub fn space(&self) -> u32 {
        self.space
    }

    /// Address space to which an address belongs.
    #[inline]
    pub fn space_of(&self, ip: u64) -> u32 {
        if ip >= KERNEL_BEGIN { KERNEL_SPACE } else { self.space }
    }

    #[inline]
    pub fn run(&self, run: u32) -> &Run {
        &self.runs[run as usize]
    }

    /// The block that begins at an address.
    #[inline]
    pub fn at(&mut self, ip: u64, mode: Mode) -> u32 {
        // Instructions may be at any byte, and pages of programs are powers of two apart.
        let place = (ip ^ ip >> 13) as usize % RECENT;
        let recent = self.recent[place];
        let space = self.space_of(ip);
        if let Some(run) = self.runs.get(recent as usize)
            && (run.block.ip, run.space, run.block.mode) == (ip, space, mode)
        {
            return recent;
        }
        let run = self.find(ip, space, mode);
        self.recent[place] = run;
        run
    }

    fn find(&mut self, ip: u64, space: u32, mode: Mode) -> u32 {
        if let Some(run) = self.by_ip.get(&(ip, space, mode)) {
            return *run;
        }
        let run = self.runs.len() as u32;
        self.runs.push(Run { space, ..self.decoded(ip, mode) });
        self.by_ip.insert((ip, space, mode), run);
        run
    }

    /// The block that follows a block.
    #[inline]
    pub fn next(&mut self, run: u32) -> u32 {
        let Run { next_run, next, block, .. } = self.runs[run as usize];
        if next_run != UNKNOWN {
            return next_run;
        }
        let found = self.at(next, block.mode);
        self.runs[run as usize].next_run = found;
        found
    }

    /// The block at the target of a block.
    #[inline]
    pub fn target(&mut self, run: u32) -> u32 {
        let Run { target_run, target, block, .. } = self.runs[run as usize];
        if target_run != UNKNOWN {
            return target_run;
        }
        let found = self.at(target, block.mode);
        self.runs[run as usize].target_run = found;
        found
    }

    /// Whether the instruction at an address has this effect.
    pub fn has(&self, ip: u64, mode: Mode, effect: Effect) -> bool {
        self.instruction(ip, mode).is_some_and(|instruction| match effect {
            Effect::WritesCr3 => {
                instruction.mnemonic() == Mnemonic::Mov
                    && instruction.op0_register() == Register::CR3
            }
            Effect::VmEntry => {
                matches!(instruction.mnemonic(), Mnemonic::Vmlaunch | Mnemonic::Vmresume)
            }
        })
    }

    /// The instruction at an address.
    pub fn instruction(&self, ip: u64, mode: Mode) -> Option<Instruction> {
        let image = self.images.get(self.space as usize)?;
        let decoded = |bytes| decode(bytes, ip, mode);
        // In most cases its bytes are contiguous.
        let whole = image.bytes_at(ip).and_then(|bytes| bytes.get(..INSTRUCTION_BYTES));
        let instruction = match whole {
            Some(bytes) => decoded(bytes),
            None => {
                let (bytes, count) = fetch(image, ip);
                decoded(bytes.get(..count).unwrap_or_default())
            }
        };
        (!instruction.is_invalid()).then_some(instruction)
    }

    fn decoded(&self, ip: u64, mode: Mode) -> Run {
        let block = Block { ip, last: ip, count: 0, mode, ends: Ends::NoCode };
        let (next_run, target_run) = (UNKNOWN, UNKNOWN);
        let mut run = Run { block, space: 0, next: ip, target: 0, next_run, target_run };
        while run.block.count < LONGEST {
            let Some(instruction) = self.instruction(run.next, mode) else {
                run.block.ends = Ends::NoCode;
                return run;
            };
            run.block.last = run.next;
            run.block.count += 1;
            run.next = instruction.next_ip();
            run.block.ends = kind(&instruction);
            if run.block.ends != Ends::Through {
                run.target = instruction.near_branch_target();
                return run;
            }
        }
        run
    }
}

/// The instructions of a block, with their addresses.
pub fn instructions(image: &impl Image, block: &Block, mut each: impl FnMut(u64, &Instruction)) {
    let mut ip = block.ip;
    for _ in 0..block.count {
        let (bytes, count) = fetch(image, ip);
        let instruction = decode(bytes.get(..count).unwrap_or_default(), ip, block.mode);
        if instruction.is_invalid() {
            return;
        }
        each(ip, &instruction);
        ip = instruction.next_ip();
    }
}

/// Text of an instruction in Intel's assembly syntax.
pub fn assembly(instruction: &Instruction, text: &mut String) {
    SpecializedFormatter::<DefaultSpecializedFormatterTraitOptions>::new()
        .format(instruction, text);
}

/// Its mnemonic in lower case, as in assembly.
#[must_use]
pub fn mnemonic(instruction: &Instruction) -> String {
    format!("{:?}", instruction.mnemonic()).to_ascii_lowercase()
}

/// Whether an instruction has this mnemonic.
#[must_use]
pub fn is_mnemonic(name: &str) -> bool {
    let is_it = |mnemonic: Mnemonic| format!("{mnemonic:?}").eq_ignore_ascii_case(name);
    Mnemonic::values().any(|mnemonic| mnemonic != Mnemonic::INVALID && is_it(mnemonic))
}

fn kind(instruction: &Instruction) -> Ends {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch if instruction.is_jmp_far() => Ends::Far,
        FlowControl::UnconditionalBranch
            if instruction.code() == Opcode::Jmp_rel32_64
                && instruction.code_size() == CodeSize::Code32 =>
        {
            Ends::IndirectJump
        }
        FlowControl::UnconditionalBranch => Ends::Jump,
        FlowControl::ConditionalBranch => Ends::Conditional,
        FlowControl::Call if instruction.is_call_near() => Ends::Call,
        FlowControl::IndirectBranch if instruction.is_jmp_far_indirect() => Ends::Far,
        FlowControl::IndirectBranch => Ends::IndirectJump,
        FlowControl::IndirectCall if instruction.is_call_far_indirect() => Ends::Far,
        FlowControl::IndirectCall => Ends::IndirectCall,
        FlowControl::Return if instruction.mnemonic() == Mnemonic::Ret => Ends::Return,
        // A hypercall continues at the next instruction as far as this flow is concerned.
        FlowControl::Call if matches!(instruction.code(), Opcode::Vmcall | Opcode::Vmmcall) => {
            Ends::Through
        }
        FlowControl::Call | FlowControl::Return | FlowControl::Interrupt => Ends::Far,
        FlowControl::Next | FlowControl::XbeginXabortXend | FlowControl::Exception => Ends::Through,
    }
}
