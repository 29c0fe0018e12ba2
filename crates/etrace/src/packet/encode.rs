// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet to its payload.

use super::{Branches, Context, CountEnd, FULL_MAP, Packet, Report, Status, decode};
use crate::bits::Writer;
use crate::parameters::Parameters;
use alloc::vec::Vec;
use core::fmt;

/// A field has a value that its packet cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoesNotFit;

impl fmt::Display for DoesNotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field has a value that its packet cannot hold")
    }
}

impl core::error::Error for DoesNotFit {}

/// Encodes a packet as a compressed payload of whole bytes. `parameters` must be valid
/// ([`Parameters::check`]).
///
/// # Errors
/// A field has a value that its packet cannot hold.
pub fn encode(parameters: &Parameters, packet: &Packet) -> Result<Vec<u8>, DoesNotFit> {
    let mut writer = Writer::default();
    write(parameters, packet, &mut writer);
    let bytes = writer.compressed();
    // Decoded again: the only rule for which values fit is what a decoder gets.
    if decode(parameters, &bytes, 0) == Ok(*packet) { Ok(bytes) } else { Err(DoesNotFit) }
}

/// Appends the fields of the packet.
pub(crate) fn write(parameters: &Parameters, packet: &Packet, writer: &mut Writer) {
    let mut fields = Fields { p: parameters, w: writer };
    match packet {
        Packet::PredictedBranches { count, end } => {
            fields.format0(0);
            fields.w.field(u64::from(*count), 32);
            match end {
                CountEnd::Mispredicted => fields.w.field(0, 2),
                CountEnd::Address(report) => {
                    fields.w.field(2, 2);
                    fields.report(report);
                }
                CountEnd::MispredictedAddress(report) => {
                    fields.w.field(3, 2);
                    fields.report(report);
                }
            }
        }
        Packet::CachedTarget { index, branches, depth } => {
            fields.format0(1);
            fields.w.field(*index, fields.p.cache_size);
            fields.branches(branches);
            fields.depth(*depth);
        }
        Packet::FullMap(map) => {
            fields.w.field(1, 2);
            fields.w.field(0, 5);
            fields.w.field(u64::from(*map), FULL_MAP);
        }
        Packet::BranchReport(branches, report) => {
            fields.w.field(1, 2);
            fields.branches(branches);
            fields.report(report);
        }
        Packet::Report(report) => {
            fields.w.field(2, 2);
            fields.report(report);
        }
        Packet::Start(start) => {
            fields.format3(0);
            fields.w.flag(start.not_taken);
            fields.context(&start.context);
            fields.address(start.address);
        }
        Packet::Trap(trap) => {
            fields.format3(1);
            fields.w.flag(trap.not_taken);
            fields.context(&trap.context);
            fields.w.field(trap.cause, fields.p.cause_width);
            fields.w.flag(trap.value.is_none());
            fields.w.flag(trap.handler);
            fields.address(trap.address);
            if let Some(value) = trap.value {
                fields.w.field(value, fields.p.address_width);
            }
        }
        Packet::Context(context) => {
            fields.format3(2);
            fields.context(context);
        }
        Packet::Support(support) => {
            fields.format3(3);
            fields.w.flag(support.enabled);
            fields.w.field(u64::from(support.mode), fields.p.mode_width);
            let status = match support.status {
                Status::NoChange => 0,
                Status::EndedReported => 1,
                Status::Lost => 2,
                Status::EndedAnyway => 3,
            };
            fields.w.field(status, 2);
            fields.w.field(support.options, fields.p.options_width);
            fields.w.flag(support.data_enabled);
            fields.w.flag(support.data_lost);
            fields.w.field(support.data_options, fields.p.data_options_width);
        }
    }
}

struct Fields<'a> {
    p: &'a Parameters,
    w: &'a mut Writer,
}

impl Fields<'_> {
    fn format0(&mut self, subformat: u64) {
        self.w.field(0, 2);
        self.w.field(subformat, self.p.format0_width);
    }

    fn format3(&mut self, subformat: u64) {
        self.w.field(3, 2);
        self.w.field(subformat, 2);
    }

    fn branches(&mut self, branches: &Branches) {
        self.w.field(u64::from(branches.count), 5);
        self.w.field(u64::from(branches.map), Branches::width(branches.count));
    }

    fn report(&mut self, report: &Report) {
        self.address(report.address);
        self.w.differs(report.notify);
        self.w.differs(report.updiscon);
        self.depth(report.depth);
    }

    fn depth(&mut self, depth: Option<u64>) {
        self.w.differs(depth.is_some());
        let width = self.p.depth_width();
        match depth {
            Some(depth) => self.w.field(depth, width),
            // All bits as the one before, which compression then removes.
            None => (0..width).for_each(|_| self.w.differs(false)),
        }
    }

    fn context(&mut self, context: &Context) {
        self.w.field(u64::from(context.privilege), self.p.privilege_width);
        self.w.field(context.time, self.p.time_width);
        self.w.field(context.context, self.p.context_width);
    }

    fn address(&mut self, address: u64) {
        self.w.field(address >> self.p.address_lsb, self.p.address_width - self.p.address_lsb);
    }
}
