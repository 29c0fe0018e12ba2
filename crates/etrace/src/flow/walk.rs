// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Steps from one instruction to the next (`next_pc` of the specification's chapter "Decoder").

use super::{Gap, Image, Mismatch, ReturnStack};
use crate::isa::{self, Instruction, Kind, Xlen};
use crate::packet::Branches;
use crate::parameters::Parameters;

/// Branches that were reported and not yet executed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pending {
    map: u64,
    pub(super) count: u32,
}

impl Pending {
    /// A full map, and one branch whose outcome was reported together with its address.
    const LIMIT: u32 = 32;

    pub(super) fn append(&mut self, branches: Branches) -> Result<(), Gap> {
        if self.count + u32::from(branches.count) > Self::LIMIT {
            return Err(Gap::Inconsistent(Mismatch::TooManyBranches));
        }
        self.map |= u64::from(branches.map) << self.count;
        self.count += u32::from(branches.count);
        Ok(())
    }

    /// Whether the oldest branch was taken.
    fn take(&mut self) -> Result<bool, Gap> {
        let left = self.count.checked_sub(1);
        self.count = left.ok_or(Gap::Inconsistent(Mismatch::BranchesMissing))?;
        let taken = self.map & 1 == 0;
        self.map >>= 1;
        Ok(taken)
    }
}

/// How a step found the next instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// From the code and the branches.
    Inferred,
    /// It is the reported address.
    Reported,
}

/// What decides about a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Where an uninferable discontinuity leads to; `None` if a packet does not contain an address.
    pub(super) target: Option<u64>,
    /// Depth of the return stack at which a return was not predicted.
    pub(super) depth: Option<usize>,
    /// Predicted returns are not reported.
    pub(super) implicit_return: bool,
}

/// A position in the code, with everything that the next position depends on.
#[derive(Debug, Clone)]
pub(super) struct Position {
    pub(super) pc: u64,
    pub(super) instruction: Instruction,
    /// The instruction executed before, if it is known.
    last: Option<(u64, Instruction)>,
    pub(super) pending: Pending,
    pub(super) stack: ReturnStack,
}

/// The instruction at an address.
pub(super) fn fetch<I: Image>(image: &I, xlen: Xlen, address: u64) -> Result<Instruction, Gap> {
    isa::decode(image.code(address), xlen).ok_or(Gap::NoCode(address))
}

impl Position {
    pub(super) fn new(stack: ReturnStack) -> Self {
        let instruction = Instruction { length: 4, kind: Kind::Other };
        Self { pc: 0, instruction, last: None, pending: Pending::default(), stack }
    }

    /// Moves to an address without a path to it.
    pub(super) fn jump(&mut self, address: u64, instruction: Instruction) {
        (self.pc, self.instruction, self.last) = (address, instruction, None);
    }

    /// The current instruction may be one whose outcome is known but not yet followed.
    pub(super) fn has_unprocessed(&self) -> bool {
        self.pending.count != u32::from(self.instruction.is_branch())
    }

    /// The address after the current instruction, without moving there.
    pub(super) fn next(&mut self, p: &Parameters, rules: &Rules) -> Result<(u64, Step), Gap> {
        let after = self.pc.wrapping_add(u64::from(self.instruction.length));
        let relative = |offset: i32| self.pc.wrapping_add_signed(i64::from(offset));
        let mut step = Step::Inferred;
        let next = match self.instruction.kind {
            Kind::Jump { offset, .. } => relative(offset),
            Kind::Branch { offset } => {
                let target = relative(offset);
                if self.pending.take()? { target } else { after }
            }
            Kind::Indirect { base: 0, offset, .. } => i64::from(offset) as u64 & !1,
            Kind::Indirect { .. } | Kind::TrapReturn => {
                if let Some(target) = self.sequential_target(p) {
                    target
                } else if let Some(target) = self.predicted_return(rules) {
                    target
                } else {
                    step = Step::Reported;
                    rules.target.ok_or(Gap::Inconsistent(Mismatch::AddressMissing))?
                }
            }
            _ => after,
        };
        if rules.implicit_return && self.instruction.is_call() {
            self.stack.push(p.address(after));
        }
        Ok((p.address(next), step))
    }

    /// Moves to the next instruction.
    pub(super) fn step<I: Image>(
        &mut self,
        p: &Parameters,
        (image, xlen): (&I, Xlen),
        rules: &Rules,
    ) -> Result<Step, Gap> {
        let (next, step) = self.next(p, rules)?;
        let instruction = fetch(image, xlen, next)?;
        self.last = Some((self.pc, self.instruction));
        (self.pc, self.instruction) = (next, instruction);
        Ok(step)
    }

    /// `sequential_jump_target`: the register of a jump was set by the instruction before.
    fn sequential_target(&self, p: &Parameters) -> Option<u64> {
        let (address, last) = self.last.filter(|_| p.sequential_jumps)?;
        sequential_target(address, last, self.instruction)
    }

    /// `is_implicit_return` and `pop_return_stack`.
    fn predicted_return(&mut self, rules: &Rules) -> Option<u64> {
        let is_predicted = rules.implicit_return
            && self.instruction.is_return()
            && rules.depth != Some(self.stack.depth());
        is_predicted.then(|| self.stack.pop()).flatten()
    }
}

/// The target of a jump if the instruction at `address` before it loads its register with a constant
/// (specification, "Jump classification and target inference").
pub(crate) fn sequential_target(
    address: u64,
    before: Instruction,
    jump: Instruction,
) -> Option<u64> {
    match (before.kind, jump.kind) {
        (Kind::Upper { register, value, relative }, Kind::Indirect { base, offset, .. })
            if register == base && base != 0 =>
        {
            let start = if relative { address } else { 0 };
            let target = start.wrapping_add_signed(i64::from(value) + i64::from(offset));
            Some(target & !1)
        }
        _ => None,
    }
}

/// Recognises a path that repeats itself and so never ends, by Brent's method.
#[derive(Debug)]
pub(super) struct Repetition {
    anchor: (u64, Option<u64>, u32),
    anchor_depth: usize,
    anchor_level: i64,
    /// The path returned from the function it was in at the anchor.
    returned: bool,
    steps: u64,
    renew: u64,
}

/// Steps for one packet at most: far more than 31 branches and the calls between them need.
const STEP_LIMIT: u64 = 1 << 22;

impl Repetition {
    pub(super) fn new(at: &Position) -> Self {
        let mut new = Self {
            anchor: Self::state(at),
            anchor_depth: 0,
            anchor_level: 0,
            returned: false,
            steps: 0,
            renew: 2,
        };
        new.renew_anchor(at);
        new
    }

    /// The instruction before matters if it loads a register for a sequentially inferable jump.
    fn state(at: &Position) -> (u64, Option<u64>, u32) {
        let upper = at.last.filter(|last| matches!(last.1.kind, Kind::Upper { .. }));
        (at.pc, upper.map(|last| last.0), at.pending.count)
    }

    fn renew_anchor(&mut self, at: &Position) {
        self.anchor = Self::state(at);
        (self.anchor_depth, self.anchor_level) = (at.stack.depth(), at.stack.level());
        self.returned = false;
    }

    /// Whether the path after this step repeats. What the path is depends on the place in the code, on
    /// the pending branches, and on the stack: on its addresses only if the path returns to them, and on
    /// its depth only if that is compared with the reported one.
    pub(super) fn repeats(&mut self, at: &Position, rules: &Rules) -> bool {
        self.returned |= at.stack.level() < self.anchor_level;
        self.steps += 1;
        let same_depth = rules
            .depth
            .is_none_or(|depth| at.stack.depth() == self.anchor_depth || self.anchor_depth > depth);
        if Self::state(at) == self.anchor && !self.returned && same_depth {
            return true;
        }
        if self.steps == self.renew {
            self.renew_anchor(at);
            self.renew *= 2;
        }
        self.steps > STEP_LIMIT
    }
}
