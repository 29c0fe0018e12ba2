// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Page faults: in user space, in the kernel, or as perf samples.

use lateralis_model::{Event, EventClass, StreamIndex, Writer};
use lateralis_units::Nanos;

use super::fields;
use crate::facts::At;

/// Source of a fault event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// In the program.
    User,
    /// In the kernel, on behalf of the thread.
    Kernel,
    /// A sample of perf's event `page-faults`, which represents one or more faults.
    Sample,
}

impl FaultKind {
    /// Name in tables.
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
    /// Stream.
    pub stream: StreamIndex,
    /// Time.
    pub time: Nanos,
    /// CPU.
    pub cpu: Option<u32>,
    /// Thread.
    pub writer: Option<Writer>,
    /// Source.
    pub kind: FaultKind,
    /// The faulting address.
    pub address: Option<u64>,
    /// The faulting instruction.
    pub ip: Option<u64>,
}

/// Meaning of the events of a class.
#[derive(Debug)]
pub struct FaultRule {
    kind: FaultKind,
    address: Option<usize>,
    ip: Option<usize>,
}

/// Rule of a class, if its events are faults.
pub(super) fn rule(class: &EventClass) -> Option<FaultRule> {
    let last = class.name.rsplit(':').next()?;
    let name = last.strip_prefix("x86_exceptions_").unwrap_or(last);
    // perf appends modifiers to the name: `page-faults:u`.
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
