// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The flow of control that packets describe: instructions, traps, privilege, and gaps.
//!
//! [`Decoder`] implements the reference algorithm of the specification's chapter "Decoder", with a
//! return stack. Errors are gaps in the flow; decoding resumes at the next packet that contains a
//! complete address.

mod blocks;
mod decoder;
mod stack;
mod walk;

pub use blocks::{Block, Blocks, Exit};
pub use decoder::Decoder;
pub(crate) use stack::ReturnStack;
pub(crate) use walk::sequential_target;

use crate::isa::Instruction;
use crate::packet::Context;
use core::fmt;

/// Bytes of code by address.
pub trait Image {
    /// The bytes from `address` on, as many as are contiguous. Empty if there are none.
    fn code(&self, address: u64) -> &[u8];
}

impl<I: Image + ?Sized> Image for &I {
    fn code(&self, address: u64) -> &[u8] {
        (**self).code(address)
    }
}

/// A contiguous piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section<'a> {
    /// Address of the first byte.
    pub address: u64,
    /// The code.
    pub bytes: &'a [u8],
}

impl Image for Section<'_> {
    fn code(&self, address: u64) -> &[u8] {
        let offset = address.checked_sub(self.address).and_then(|at| usize::try_from(at).ok());
        offset.and_then(|offset| self.bytes.get(offset..)).unwrap_or_default()
    }
}

/// An exception or interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trap {
    /// Cause, as in the `cause` register without its interrupt bit.
    pub cause: u64,
    /// Trap value of an exception; `None` for an interrupt.
    pub value: Option<u64>,
    /// Address of the instruction that raised an exception. `None` for interrupts, and if the trace does
    /// not determine it.
    pub address: Option<u64>,
}

/// Part of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// An instruction retired.
    Instruction {
        /// Its address.
        address: u64,
        /// Its length and control flow.
        instruction: Instruction,
    },
    /// An exception or interrupt; the next instruction is the first of its handler.
    Trap(Trap),
    /// Privilege, time and context of the following instructions.
    Context(Context),
    /// Tracing ended on purpose: nothing is missing that was to be traced.
    End,
    /// Instructions may be missing here, and the last ones before may be wrong if the cause is
    /// [`Gap::Inconsistent`].
    Gap(Gap),
}

/// Why instructions are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// The encoder could not send packets.
    Lost,
    /// There are packets before the first synchronisation packet.
    NoStart,
    /// A packet could not be read, or bytes were skipped.
    Malformed,
    /// There is no code at this address.
    NoCode(u64),
    /// The code does not agree with the packets: one of them is damaged, or the image is wrong.
    Inconsistent(Mismatch),
    /// The packets depend on an option that is not implemented.
    Unsupported(&'static str),
}

/// How code and packets disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// More branches were reported than executed.
    BranchesLeft,
    /// More branches were executed than reported.
    BranchesMissing,
    /// More branches were reported than an encoder can hold.
    TooManyBranches,
    /// An address is needed at a jump, but the packet has only branches.
    AddressMissing,
    /// The reported address is never reached.
    Endless,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the encoder lost packets"),
            Self::NoStart => f.write_str("packets before the first synchronisation packet"),
            Self::Malformed => f.write_str("a packet could not be read"),
            Self::NoCode(address) => write!(f, "no code at {address:#x}"),
            Self::Inconsistent(mismatch) => {
                f.write_str("code and packets disagree: ")?;
                f.write_str(match mismatch {
                    Mismatch::BranchesLeft => "more branches were reported than executed",
                    Mismatch::BranchesMissing => "more branches were executed than reported",
                    Mismatch::TooManyBranches => "too many branches were reported",
                    Mismatch::AddressMissing => "the target of a jump was not reported",
                    Mismatch::Endless => "the reported address is never reached",
                })
            }
            Self::Unsupported(option) => write!(f, "the option {option} is not implemented"),
        }
    }
}
