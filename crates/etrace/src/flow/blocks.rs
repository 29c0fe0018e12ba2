// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions joined to blocks, with calls and returns.

use super::{Event, Gap, Trap};
use crate::isa::{Instruction, Kind};
use crate::packet::Context;

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// A call, to the next block.
    Call,
    /// A return, to the next block.
    Return,
    /// A return from a trap.
    TrapReturn,
    /// Another jump, or a branch that was taken.
    Jump,
    /// A branch that was not taken.
    Fallthrough,
    /// An exception or interrupt after the last instruction.
    Trap(Trap),
    /// The context changes.
    Context(Context),
    /// Tracing ended.
    End,
    /// Instructions are missing.
    Gap(Gap),
}

/// Instructions that were executed one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Address of the first instruction.
    pub start: u64,
    /// Address after the last instruction.
    pub end: u64,
    /// Number of instructions; 0 if a trap, a context or a gap follows another exit directly.
    pub instructions: u64,
    /// How it ends.
    pub exit: Exit,
}

/// Joins the instructions among events to blocks.
#[derive(Debug, Clone, Default)]
pub struct Blocks {
    open: Option<(u64, u64, u64)>,
    /// The last instruction of the open block; how the block ends depends on the next instruction.
    last: Option<Instruction>,
}

impl Blocks {
    /// Blocks of no event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an event; blocks that end with it go to `sink`.
    pub fn event(&mut self, event: &Event, sink: &mut impl FnMut(Block)) {
        let exit = match event {
            Event::Instruction { address, instruction } => {
                return self.instruction(*address, *instruction, sink);
            }
            Event::Trap(trap) => Exit::Trap(*trap),
            Event::Context(context) => Exit::Context(*context),
            Event::End => Exit::End,
            Event::Gap(gap) => Exit::Gap(*gap),
        };
        if self.last.is_some_and(|last| last.kind == Kind::TrapReturn) {
            self.close(Exit::TrapReturn, sink);
        }
        self.close(exit, sink);
    }

    fn instruction(&mut self, address: u64, now: Instruction, sink: &mut impl FnMut(Block)) {
        if let (Some((_, end, _)), Some(last)) = (self.open, self.last) {
            let exit = match last.kind {
                _ if last.is_call() => Some(Exit::Call),
                _ if last.is_return() => Some(Exit::Return),
                Kind::TrapReturn => Some(Exit::TrapReturn),
                Kind::Branch { .. } if address == end => Some(Exit::Fallthrough),
                Kind::Branch { .. } | Kind::Jump { .. } | Kind::Indirect { .. } => Some(Exit::Jump),
                _ => None,
            };
            if let Some(exit) = exit {
                self.close(exit, sink);
            }
        }
        let (start, _, count) = self.open.unwrap_or((address, address, 0));
        let end = address.wrapping_add(u64::from(now.length));
        self.open = Some((start, end, count + 1));
        self.last = Some(now);
    }

    fn close(&mut self, exit: Exit, sink: &mut impl FnMut(Block)) {
        let (start, end, instructions) = self.open.take().unwrap_or_default();
        self.last = None;
        sink(Block { start, end, instructions, exit });
    }
}
