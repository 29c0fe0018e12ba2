// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A payload to a packet.

use super::{Branches, Context, CountEnd, FULL_MAP, Packet, Report, Start, Status, Support, Trap};
use crate::bits::Reader;
use crate::parameters::{Parameters, low_bits};
use core::fmt;

/// Why a payload is no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// There are no bytes.
    Empty,
    /// A field has a value that the specification reserves.
    Reserved,
    /// Bytes follow the last field that do not repeat its last bit.
    TooLong,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a payload is empty",
            Self::Reserved => "a field has a reserved value",
            Self::TooLong => "a payload is longer than its fields",
        })
    }
}

impl core::error::Error for Cause {}

/// Decodes a payload whose first bit is bit `at` of `bytes`. `parameters` must be valid
/// ([`Parameters::check`]).
///
/// # Errors
/// The payload is no packet.
pub fn decode(parameters: &Parameters, bytes: &[u8], at: usize) -> Result<Packet, Cause> {
    if at / 8 >= bytes.len() {
        return Err(Cause::Empty);
    }
    let mut fields = Fields { p: parameters, r: Reader::new(bytes, at) };
    let packet = fields.packet()?;
    if fields.r.has_more() {
        return Err(Cause::TooLong);
    }
    Ok(packet)
}

struct Fields<'a> {
    p: &'a Parameters,
    r: Reader<'a>,
}

impl Fields<'_> {
    fn packet(&mut self) -> Result<Packet, Cause> {
        Ok(match self.r.field(2) {
            0 => return self.format0(),
            1 => match self.r.field(5) as u8 {
                0 => Packet::FullMap(self.r.field(FULL_MAP) as u32),
                count => Packet::BranchReport(self.branches(count), self.report()),
            },
            2 => Packet::Report(self.report()),
            _ => match self.r.field(2) {
                0 => Packet::Start(Start {
                    not_taken: self.r.flag(),
                    context: self.context(),
                    address: self.address(),
                }),
                1 => Packet::Trap(self.trap()),
                2 => Packet::Context(self.context()),
                _ => Packet::Support(self.support()),
            },
        })
    }

    fn format0(&mut self) -> Result<Packet, Cause> {
        // Without the field, the one extension that the encoder has (specification, "Format 0
        // subformat field").
        let subformat = match self.p.format0_width {
            0 => u64::from(self.p.predictor_size == 0 && self.p.cache_size > 0),
            width => self.r.field(width),
        };
        match subformat {
            0 => {
                let count = self.r.field(32) as u32;
                let end = match self.r.field(2) {
                    0 => CountEnd::Mispredicted,
                    2 => CountEnd::Address(self.report()),
                    3 => CountEnd::MispredictedAddress(self.report()),
                    _ => return Err(Cause::Reserved),
                };
                Ok(Packet::PredictedBranches { count, end })
            }
            1 => {
                let index = self.r.field(self.p.cache_size);
                let count = self.r.field(5) as u8;
                let branches = self.branches(count);
                Ok(Packet::CachedTarget { index, branches, depth: self.depth() })
            }
            _ => Err(Cause::Reserved),
        }
    }

    fn branches(&mut self, count: u8) -> Branches {
        let map = self.r.field(Branches::width(count)) & low_bits(count);
        Branches { count, map: map as u32 }
    }

    fn report(&mut self) -> Report {
        let width = self.p.address_width - self.p.address_lsb;
        let unused = 64 - u32::from(width);
        let signed = (self.r.field(width) << unused) as i64 >> unused;
        Report {
            address: (signed << self.p.address_lsb) as u64,
            notify: self.r.differs(),
            updiscon: self.r.differs(),
            depth: self.depth(),
        }
    }

    fn depth(&mut self) -> Option<u64> {
        let present = self.r.differs();
        let depth = self.r.field(self.p.depth_width());
        present.then_some(depth)
    }

    fn context(&mut self) -> Context {
        Context {
            privilege: self.r.field(self.p.privilege_width) as u8,
            time: self.r.field(self.p.time_width),
            context: self.r.field(self.p.context_width),
        }
    }

    fn address(&mut self) -> u64 {
        self.r.field(self.p.address_width - self.p.address_lsb) << self.p.address_lsb
    }

    fn trap(&mut self) -> Trap {
        let (not_taken, context) = (self.r.flag(), self.context());
        let cause = self.r.field(self.p.cause_width);
        let (interrupt, handler) = (self.r.flag(), self.r.flag());
        let address = self.address();
        let value = (!interrupt).then(|| self.r.field(self.p.address_width));
        Trap { not_taken, context, cause, handler, address, value }
    }

    fn support(&mut self) -> Support {
        Support {
            enabled: self.r.flag(),
            mode: self.r.field(self.p.mode_width) as u8,
            status: match self.r.field(2) {
                0 => Status::NoChange,
                1 => Status::EndedReported,
                2 => Status::Lost,
                _ => Status::EndedAnyway,
            },
            options: self.r.field(self.p.options_width),
            data_enabled: self.r.flag(),
            data_lost: self.r.flag(),
            data_options: self.r.field(self.p.data_options_width),
        }
    }
}
