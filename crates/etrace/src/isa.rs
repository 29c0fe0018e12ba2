// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lengths and control flow of RISC-V instructions: RV32 and RV64, base set with M, A, C and Zicsr.
//!
//! Only the properties that a trace depends on are decoded (specification, "Jump classification and
//! target inference"). Everything else is [`Kind::Other`]. Jumps of the extensions Zcmp and Zcmt are
//! not known and count as other instructions.

/// Width of the registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Xlen {
    /// 32 bits.
    Rv32,
    /// 64 bits.
    Rv64,
}

/// What an instruction does to the flow of control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Execution continues at the next instruction.
    Other,
    /// Conditional branch by `offset` bytes.
    Branch {
        /// Distance of the target.
        offset: i32,
    },
    /// `jal`, `c.j`, `c.jal`: jump by `offset` bytes.
    Jump {
        /// Distance of the target.
        offset: i32,
        /// Register of the return address; 0 if there is none.
        link: u8,
    },
    /// `jalr`, `c.jr`, `c.jalr`: jump to the address in a register.
    Indirect {
        /// Register of the target.
        base: u8,
        /// Added to the register.
        offset: i32,
        /// Register of the return address; 0 if there is none.
        link: u8,
    },
    /// `lui`, `c.lui`, `auipc`: a constant to a register.
    Upper {
        /// Destination register.
        register: u8,
        /// The constant.
        value: i32,
        /// The address of the instruction is added.
        relative: bool,
    },
    /// `uret`, `sret`, `mret`, `mnret`, `dret`.
    TrapReturn,
    /// `ecall`.
    Ecall,
    /// `ebreak`, `c.ebreak`.
    Ebreak,
}

/// An instruction, as far as traces depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Length in bytes: 2, 4, 6 or 8.
    pub length: u8,
    /// What it does to the flow of control.
    pub kind: Kind,
}

/// Registers by which calls and returns are recognised: `ra` and the alternate link register.
fn is_link(register: u8) -> bool {
    register == 1 || register == 5
}

impl Instruction {
    /// A conditional branch.
    pub fn is_branch(&self) -> bool {
        matches!(self.kind, Kind::Branch { .. })
    }

    /// A call. Swaps of coroutines are none, as they both return and call.
    pub fn is_call(&self) -> bool {
        match self.kind {
            Kind::Jump { link, .. } => is_link(link),
            Kind::Indirect { base, link, .. } => is_link(link) && (!is_link(base) || base == link),
            _ => false,
        }
    }

    /// A return.
    pub fn is_return(&self) -> bool {
        match self.kind {
            Kind::Indirect { base, link, .. } => is_link(base) && !is_link(link),
            _ => false,
        }
    }

    /// A jump or return from a trap whose target is not in the instruction: `is_uninferable_discon` of
    /// the chapter "Decoder". A `jalr` with register x0 has a constant target.
    pub fn is_uninferable(&self) -> bool {
        match self.kind {
            Kind::Indirect { base, .. } => base != 0,
            kind => kind == Kind::TrapReturn,
        }
    }
}

/// Decodes the instruction at the start of `bytes`; `None` if they end within it, or if it is longer
/// than 8 bytes.
pub fn decode(bytes: &[u8], xlen: Xlen) -> Option<Instruction> {
    let low = u16::from_le_bytes([*bytes.first()?, *bytes.get(1)?]);
    if low & 3 != 3 {
        return Some(Instruction { length: 2, kind: compressed(low, xlen) });
    }
    let length = match low & 0x7f {
        low if low & 0x1c != 0x1c => 4,
        low if low & 0x3f == 0x1f => 6,
        0x3f => 8,
        _ => return None,
    };
    let all = bytes.get(..length)?;
    let kind = match all {
        [a, b, c, d] => full(u32::from_le_bytes([*a, *b, *c, *d])),
        _ => Kind::Other,
    };
    Some(Instruction { length: length as u8, kind })
}

/// A field of the instruction, moved to bit `to`.
fn bits(word: u32, low: u32, width: u32, to: u32) -> u32 {
    (word >> low & ((1 << width) - 1)) << to
}

/// Sign-extends a number of `width` bits.
fn signed(value: u32, width: u32) -> i32 {
    (value << (32 - width)) as i32 >> (32 - width)
}

fn full(word: u32) -> Kind {
    let register = |low| bits(word, low, 5, 0) as u8;
    let (rd, function, rs1) = (register(7), bits(word, 12, 3, 0), register(15));
    match word & 0x7f {
        0x37 | 0x17 => Kind::Upper {
            register: rd,
            value: (word & 0xffff_f000) as i32,
            relative: word & 0x20 == 0,
        },
        0x63 if function != 2 && function != 3 => {
            let offset = bits(word, 8, 4, 1) | bits(word, 25, 6, 5) | bits(word, 7, 1, 11);
            Kind::Branch { offset: signed(offset | bits(word, 31, 1, 12), 13) }
        }
        0x67 if function == 0 => {
            Kind::Indirect { base: rs1, offset: signed(word >> 20, 12), link: rd }
        }
        0x6f => {
            let offset = bits(word, 21, 10, 1) | bits(word, 20, 1, 11) | bits(word, 12, 8, 12);
            Kind::Jump { offset: signed(offset | bits(word, 31, 1, 20), 21), link: rd }
        }
        0x73 if word & 0xf_ff80 == 0 => match word >> 20 {
            0x000 => Kind::Ecall,
            0x001 => Kind::Ebreak,
            0x002 | 0x102 | 0x302 | 0x702 | 0x7b2 => Kind::TrapReturn,
            _ => Kind::Other,
        },
        _ => Kind::Other,
    }
}

fn compressed(half: u16, xlen: Xlen) -> Kind {
    let word = u32::from(half);
    let register = bits(word, 7, 5, 0) as u8;
    match (word & 3, word >> 13) {
        (1, 1) if xlen == Xlen::Rv32 => Kind::Jump { offset: jump(word), link: 1 },
        (1, 5) => Kind::Jump { offset: jump(word), link: 0 },
        (1, 3) if register != 0 && register != 2 => {
            let value = bits(word, 2, 5, 12) | bits(word, 12, 1, 17);
            match value {
                0 => Kind::Other,
                _ => Kind::Upper { register, value: signed(value, 18), relative: false },
            }
        }
        (1, 6 | 7) => {
            let near = bits(word, 3, 2, 1) | bits(word, 10, 2, 3) | bits(word, 2, 1, 5);
            let far = bits(word, 5, 2, 6) | bits(word, 12, 1, 8);
            Kind::Branch { offset: signed(near | far, 9) }
        }
        (2, 4) if bits(word, 2, 5, 0) == 0 => match (bits(word, 12, 1, 0), register) {
            (0, 0) => Kind::Other,
            (0, base) => Kind::Indirect { base, offset: 0, link: 0 },
            (_, 0) => Kind::Ebreak,
            (_, base) => Kind::Indirect { base, offset: 0, link: 1 },
        },
        _ => Kind::Other,
    }
}

/// The offset of `c.j` and `c.jal`.
fn jump(word: u32) -> i32 {
    let near = bits(word, 3, 3, 1) | bits(word, 11, 1, 4) | bits(word, 2, 1, 5);
    let middle = bits(word, 7, 1, 6) | bits(word, 6, 1, 7) | bits(word, 9, 2, 8);
    signed(near | middle | bits(word, 8, 1, 10) | bits(word, 12, 1, 11), 12)
}
