// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Page faults: in a program, in the kernel, or as perf samples them.

use lateralis_model::{Event, EventClass, StreamIndex, Writer};
use lateralis_units::Nanos;

use super::fields;
use crate::facts::At;

/// Where a fault was, or what counted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// In the program.
    User,
    /// In the kernel, on behalf of the thread.
    Kernel,
    /// A sample of perf's event `page-faults`: it stands for one or more.
    Sample,
}

impl FaultKind {
    /// The word used in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Sample => "sample",
        }
    }
}

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// In which stream.
    pub stream: StreamIndex,
    /// When.
    pub time: Nanos,
    /// On which processor.
    pub cpu: Option<u32>,
    /// In which thread.
    pub writer: Option<Writer>,
    /// Where.
    pub kind: FaultKind,
    /// The address that was not there.
    pub address: Option<u64>,
    /// The instruction that wanted it.
    pub ip: Option<u64>,
}

/// What events of a class say of faults.
#[derive(Debug)]
pub struct FaultRule {
    kind: FaultKind,
    address: Option<usize>,
    ip: Option<usize>,
}

/// What events of a class say, if anything.
pub(super) fn rule(class: &EventClass) -> Option<FaultRule> {
    let last = class.name.rsplit(':').next()?;
    let name = last.strip_prefix("x86_exceptions_").unwrap_or(last);
    // perf writes what it counts behind the name: `page-faults:u`.
    let of_perf = class.name.split(':').next()?;
    let kind = match name {
        "page_fault_user" => FaultKind::User,
        "page_fault_kernel" => FaultKind::Kernel,
        _ if ["page-faults", "faults"].contains(&of_perf) => FaultKind::Sample,
        _ => return None,
    };
    let address = fields::place(class, &["address", "addr"]);
    Some(FaultRule { kind, address, ip: fields::place(class, &["ip"]) })
}

impl FaultRule {
    pub(super) fn fault(&self, event: &Event<'_>, at: &At) -> Fault {
        Fault {
            stream: at.stream,
            time: at.time,
            cpu: at.cpu,
            writer: at.writer,
            kind: self.kind,
            address: fields::number(event, self.address),
            ip: fields::number(event, self.ip),
        }
    }
}
