// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs and random executions of them.

use lateralis_etrace::encoder::{Action, Retired, Trap};
use lateralis_etrace::flow::Section;
use lateralis_etrace::isa::{Instruction, Kind, Xlen, decode};
use lateralis_etrace::packet::Context;

/// A generator of numbers (xorshift64*), so that a failure is reproduced by its seed.
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) as usize % end
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// Code, of which the second half are trap handlers.
#[derive(Debug, Clone)]
pub struct Program {
    pub base: u64,
    pub xlen: Xlen,
    pub bytes: Vec<u8>,
    /// Addresses of the instructions; those from `handlers` on belong to handlers.
    pub addresses: Vec<u64>,
    pub handlers: usize,
}

/// What an execution may contain.
#[derive(Debug, Clone, Copy, Default)]
pub struct Features {
    /// Exceptions, interrupts and changes of privilege.
    pub traps: bool,
    /// No traps in handlers.
    pub flat: bool,
    /// One in this many returns goes elsewhere than to the last call; 0 for never.
    pub wrong_returns: usize,
    /// Requests for notifications.
    pub notify: bool,
    /// Traps before the first instruction of a handler.
    pub nested_at_once: bool,
    /// What version 0.10 of `riscv-etrace` does not decode as specified: branches to themselves, and the
    /// same code in two levels of privilege.
    pub beyond_theirs: bool,
}

fn jal(offset: i32, link: u32) -> u32 {
    let bit = |low: u32, width: u32, to: u32| (offset as u32 >> low & ((1 << width) - 1)) << to;
    bit(20, 1, 31) | bit(1, 10, 21) | bit(11, 1, 20) | bit(12, 8, 12) | link << 7 | 0x6f
}

fn beq(offset: i32) -> u32 {
    let bit = |low: u32, width: u32, to: u32| (offset as u32 >> low & ((1 << width) - 1)) << to;
    bit(12, 1, 31) | bit(5, 6, 25) | bit(1, 4, 8) | bit(11, 1, 7) | 10 << 15 | 0x63
}

fn short_jump(offset: i32, function: u32) -> u32 {
    let bit = |low: u32, to: u32| (offset as u32 >> low & 1) << to;
    let near = bit(1, 3) | bit(2, 4) | bit(3, 5) | bit(4, 11) | bit(5, 2) | bit(6, 7);
    near | bit(7, 6) | bit(8, 9) | bit(9, 10) | bit(10, 8) | bit(11, 12) | function << 13 | 1
}

fn short_branch(offset: i32) -> u32 {
    let bit = |low: u32, width: u32, to: u32| (offset as u32 >> low & ((1 << width) - 1)) << to;
    let near = bit(1, 2, 3) | bit(3, 2, 10) | bit(5, 1, 2);
    near | bit(6, 2, 5) | bit(8, 1, 12) | 2 << 7 | 6 << 13 | 1
}

impl Program {
    /// Up to 90 instructions of every kind that changes the flow, with targets among them.
    pub fn random(numbers: &mut Numbers, xlen: Xlen, beyond_theirs: bool) -> Self {
        let base = match (xlen, numbers.below(3)) {
            (Xlen::Rv64, 0) => 0xffff_ffff_8000_0000,
            (_, 1) => 0x8000_0000,
            _ => 0x1_0000,
        };
        let count = 10 + numbers.below(50);
        let handlers = count - 4 - numbers.below(4);
        // Kinds first, since their lengths determine the addresses.
        let mut kinds: Vec<usize> = (0..count).map(|_| numbers.below(24)).collect();
        kinds[count - 1] = 21;
        let mut previous = 0;
        let plenty_of_calls = numbers.one_in(2);
        let mut address: u64 = base;
        let mut addresses: Vec<u64> = Vec::new();
        for (index, kind) in kinds.iter_mut().enumerate() {
            if plenty_of_calls && numbers.one_in(3) {
                *kind = [8, 11, 12, 13][numbers.below(4)];
            }
            let in_handler = index >= handlers;
            if previous == 22 && numbers.one_in(2) {
                *kind = 16 + 2 * numbers.below(2);
            }
            previous = *kind;
            if in_handler && !matches!(*kind, 0..=2 | 4 | 8) {
                *kind = 21;
            } else if !in_handler && *kind == 21 {
                *kind = 0;
            }
            addresses.push(address);
            address += if matches!(*kind, 2 | 3 | 5 | 7 | 9 | 12 | 13 | 15) { 2 } else { 4 };
        }
        let mut bytes = Vec::new();
        for (index, kind) in kinds.iter().enumerate() {
            let region = if index >= handlers { handlers..count } else { 0..handlers };
            let target = region.start + numbers.below(region.len());
            let is_branch = matches!(kind, 4..=7);
            let target = if is_branch && !beyond_theirs && target == index {
                if index == region.start { index + 1 } else { index - 1 }
            } else {
                target
            };
            let offset = addresses[target].wrapping_sub(addresses[index]) as i64 as i32;
            let (word, length) = match kind {
                2 | 3 => (1, 2),
                4 | 6 => (beq(offset), 4),
                5 | 7 => (short_branch(offset), 2),
                8 => (jal(offset, 1), 4),
                9 => (short_jump(offset, 5), 2),
                10 => (jal(offset, 0), 4),
                11 => (jal(offset, 5), 4),
                // c.jr ra, c.jr t0, c.jalr a0, c.jr a0
                12 => (0x8082, 2),
                13 => (0x8282, 2),
                15 => (if numbers.one_in(2) { 0x9502 } else { 0x8502 }, 2),
                // jalr x0, ra; jalr ra, a0; jalr t0, ra (a swap); jalr x0, a0; jalr ra, ra
                14 => (0x0000_8067, 4),
                // After an auipc, the offset leads to an instruction.
                16 | 18 if index > region.start && kinds[index - 1] == 22 => {
                    let offset = addresses[target].wrapping_sub(addresses[index - 1]) as u32;
                    (offset << 20 | if *kind == 16 { 0x0005_00e7 } else { 0x0005_0067 }, 4)
                }
                16 => (0x0005_00e7, 4),
                17 => (0x0000_82e7, 4),
                18 => (0x0005_0067, 4),
                19 => (0x0000_80e7, 4),
                20 => (0x0000_0073, 4),
                21 => (0x3020_0073, 4),
                // auipc a0, 0; lui a0, ...
                22 => (0x0000_0517, 4),
                _ => (0x0000_0013, 4),
            };
            let word: u32 = word;
            bytes.extend_from_slice(&word.to_le_bytes()[..length]);
        }
        Self { base, xlen, bytes, addresses, handlers }
    }

    pub fn section(&self) -> Section<'_> {
        Section { address: self.base, bytes: &self.bytes }
    }

    pub fn instruction(&self, address: u64) -> Instruction {
        decode(&self.bytes[(address - self.base) as usize..], self.xlen).expect("an instruction")
    }

    /// Executes up to `steps` instructions from the first on.
    pub fn execute(&self, numbers: &mut Numbers, steps: usize, features: Features) -> Vec<Action> {
        let mut run = Run {
            program: self,
            numbers,
            features,
            calls: Vec::new(),
            saved: Vec::new(),
            privilege: if features.traps { 0 } else { 3 },
            actions: Vec::new(),
        };
        let mut pc = self.addresses[0];
        for _ in 0..steps {
            let Some(next) = run.step(pc) else { break };
            pc = next;
        }
        run.actions
    }
}

struct Run<'a> {
    program: &'a Program,
    numbers: &'a mut Numbers,
    features: Features,
    calls: Vec<u64>,
    saved: Vec<(u64, u8)>,
    privilege: u8,
    actions: Vec<Action>,
}

impl Run<'_> {
    fn anywhere(&mut self) -> u64 {
        // Jumps stay in the code of their privilege.
        let handlers = self.program.handlers;
        let index = self.numbers.below(handlers);
        self.program.addresses[index]
    }

    fn trap(&mut self, value: Option<u64>, address: u64) -> u64 {
        let cause = self.numbers.below(12) as u64;
        self.actions.push(Action::Trap(Trap { cause, value, address }));
        self.saved.push((address, self.privilege));
        self.privilege = 3;
        let handlers = &self.program.addresses[self.program.handlers..];
        let handler = handlers[self.numbers.below(handlers.len())];
        if self.features.nested_at_once && self.saved.len() < 4 && self.numbers.one_in(4) {
            let value = self.numbers.one_in(2).then_some(7);
            return self.trap(value, handler);
        }
        handler
    }

    /// Executes the instruction at `pc`; the next address, unless the code ends.
    fn step(&mut self, pc: u64) -> Option<u64> {
        let index = self.program.addresses.binary_search(&pc).ok()?;
        let in_handler = index >= self.program.handlers;
        if in_handler && self.privilege == 0 && !self.features.beyond_theirs {
            return None;
        }
        let may_trap = self.features.traps
            && !self.actions.is_empty()
            && self.saved.len() < if self.features.flat { 1 } else { 3 };
        if may_trap && self.numbers.one_in(25) {
            let value = self.numbers.one_in(2).then(|| self.numbers.below(1 << 20) as u64);
            return Some(self.trap(value, pc));
        }
        let before = match self.actions.last() {
            Some(Action::Retired(last)) => Some((last.address, last.instruction.kind)),
            _ => None,
        };
        let instruction = self.program.instruction(pc);
        let ecall = instruction.kind == Kind::Ecall;
        if (ecall && !may_trap) || instruction.kind == Kind::TrapReturn && self.saved.is_empty() {
            return None;
        }
        let taken = instruction.is_branch() && self.numbers.one_in(2);
        self.actions.push(Action::Retired(Retired {
            address: pc,
            instruction,
            taken,
            context: Context { privilege: self.privilege, time: 0, context: 0 },
            notify: self.features.notify && self.numbers.one_in(20),
        }));
        let after = pc + u64::from(instruction.length);
        let is_call = instruction.is_call();
        let next = match instruction.kind {
            Kind::Branch { offset } if taken => pc.wrapping_add_signed(i64::from(offset)),
            Kind::Jump { offset, .. } => pc.wrapping_add_signed(i64::from(offset)),
            Kind::Indirect { .. } if instruction.is_return() => {
                let wrong = self.features.wrong_returns;
                match self.calls.pop() {
                    Some(address) if wrong == 0 || !self.numbers.one_in(wrong) => address,
                    _ => self.anywhere(),
                }
            }
            Kind::Indirect { base, offset, .. } => match before {
                Some((address, Kind::Upper { register, relative: true, .. }))
                    if register == base =>
                {
                    address.wrapping_add_signed(i64::from(offset))
                }
                _ => self.anywhere(),
            },
            Kind::TrapReturn => {
                let (address, privilege) = self.saved.pop()?;
                self.privilege = privilege;
                let skip = self.program.instruction(address).length;
                let again = in_handler && self.numbers.one_in(2);
                if again { address } else { address + u64::from(skip) }
            }
            Kind::Ecall => self.trap(Some(0), pc),
            _ => after,
        };
        if is_call {
            self.calls.push(after);
        }
        Some(next)
    }
}
