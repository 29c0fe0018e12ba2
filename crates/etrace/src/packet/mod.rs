// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Payloads of instruction trace packets (`te_inst`): decoded and encoded, one at a time.
//!
//! All formats of the specification's chapter "Instruction Trace Encoder Output Packets". A payload
//! does not contain its own length; [`crate::encap`] carries payloads in a stream of bytes.

mod decode;
mod encode;

pub use decode::{Cause, decode};
pub(crate) use encode::write as write_fields;
pub use encode::{DoesNotFit, encode};

/// Number of branches that a full map holds.
pub const FULL_MAP: u8 = 31;

/// Outcomes of branches. Bit 0 of the map is the oldest branch; a bit is 0 if the branch was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Branches {
    /// Number of valid bits, at most 31.
    pub count: u8,
    /// The outcomes; bits above `count` are 0.
    pub map: u32,
}

impl Branches {
    /// Bits of the field `branch_map` (specification, "Format 1 packets").
    pub(crate) fn width(count: u8) -> u8 {
        match count {
            0 => 0,
            1 => 1,
            2..=3 => 3,
            4..=7 => 7,
            8..=15 => 15,
            _ => 31,
        }
    }
}

/// The address of an instruction, with the fields that follow it in formats 0, 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Difference from the address reported before, sign-extended; absolute in full address mode.
    pub address: u64,
    /// The instruction is reported because a notification was requested.
    pub notify: bool,
    /// The instruction follows an uninferable discontinuity, and a format 3 packet follows.
    pub updiscon: bool,
    /// Depth of the return stack, if `irreport` is set.
    pub depth: Option<u64>,
}

/// Why a count of predicted branches ends (`branch_fmt` of format 0, subformat 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountEnd {
    /// The next branch was not predicted.
    Mispredicted,
    /// An address is reported; if it is a branch, that was predicted.
    Address(Report),
    /// The address of a branch is reported that was not predicted.
    MispredictedAddress(Report),
}

/// Privilege, time and context of an instruction. A value of a field that the parameters leave out is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// Privilege level as in the specification's table "Privilege level (*priv*) encoding".
    pub privilege: u8,
    /// Time in the encoder's unit.
    pub time: u64,
    /// Context, such as an address space.
    pub context: u64,
}

/// Format 3, subformat 0: tracing starts, or the decoder can synchronise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// False if the address is that of a taken branch.
    pub not_taken: bool,
    /// Privilege, time and context of the instruction.
    pub context: Context,
    /// Absolute address of the instruction.
    pub address: u64,
}

/// Format 3, subformat 1: an exception or interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trap {
    /// False if the address is that of a taken branch.
    pub not_taken: bool,
    /// Privilege, time and context of the instruction.
    pub context: Context,
    /// Cause of the exception or interrupt.
    pub cause: u64,
    /// The address is that of the handler's first instruction. If not, it is the address of an
    /// exception at the target of an uninferable discontinuity, and otherwise undefined.
    pub handler: bool,
    /// Absolute address, see `handler`.
    pub address: u64,
    /// Trap value of an exception; `None` for an interrupt.
    pub value: Option<u64>,
}

/// Change of the filter's qualification (specification, "Format 3 subformat 3 *qual_status* field").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// No change.
    NoChange,
    /// Tracing ended. The packet before was sent only to report the last instruction.
    EndedReported,
    /// Packets were lost.
    Lost,
    /// Tracing ended. The packet before was due to an uninferable discontinuity.
    EndedAnyway,
}

/// Format 3, subformat 3: what the decoder must know about the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// Instructions are traced.
    pub enabled: bool,
    /// Trace algorithm; 0 is branch trace, the only one defined.
    pub mode: u8,
    /// Change of the qualification.
    pub status: Status,
    /// `ioptions` as sent; [`crate::parameters::Options::from_bits`] reads the reference order.
    pub options: u64,
    /// Data is traced.
    pub data_enabled: bool,
    /// Data trace packets were lost.
    pub data_lost: bool,
    /// `doptions` as sent.
    pub data_options: u64,
}

/// An instruction trace packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet {
    /// Format 0, subformat 0.
    PredictedBranches {
        /// Number of predicted branches, less 31.
        count: u32,
        /// Why the count ends.
        end: CountEnd,
    },
    /// Format 0, subformat 1.
    CachedTarget {
        /// Index in the jump target cache.
        index: u64,
        /// Branches before; may be none.
        branches: Branches,
        /// Depth of the return stack, if `irreport` is set.
        depth: Option<u64>,
    },
    /// Format 1 without an address: 31 branches.
    FullMap(u32),
    /// Format 1 with an address, and at least one branch.
    BranchReport(Branches, Report),
    /// Format 2.
    Report(Report),
    /// Format 3, subformat 0.
    Start(Start),
    /// Format 3, subformat 1.
    Trap(Trap),
    /// Format 3, subformat 2.
    Context(Context),
    /// Format 3, subformat 3.
    Support(Support),
}
