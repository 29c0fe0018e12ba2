// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Thread that an event itself contains.

use lateralis_model::{Leaf, Scope, Slot, Writer};
use lateralis_units::Nanos;

use crate::tables::opened::Opened;

/// Leaves of a class with the thread, the process, the CPU and a name.
#[derive(Debug, Default)]
pub struct Told {
    pub tid: Option<usize>,
    pub pid: Option<usize>,
    pub cpu: Option<usize>,
    pub command: Option<usize>,
    /// Whether its events are switches: their thread is the one that leaves.
    pub is_switch: bool,
}

const TID_FIELDS: [&str; 4] = ["tid", "vtid", "_tid", "_vtid"];
const PID_FIELDS: [&str; 4] = ["pid", "vpid", "_pid", "_vpid"];
const CPU_FIELDS: [&str; 2] = ["cpu_id", "_cpu_id"];
const COMMAND_FIELDS: [&str; 4] = ["comm", "procname", "_procname", "thread_name"];

impl Told {
    /// By the name of the class and those of context fields.
    pub fn of(class: &str, leaves: &[Leaf<'_>]) -> Self {
        let at = |scope: Scope, names: &[&str]| {
            names.iter().find_map(|name| {
                leaves.iter().position(|leaf| leaf.scope == scope && leaf.name == *name)
            })
        };
        let context = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| at(Scope::Common, &[name]).or_else(|| at(Scope::Own, &[name])))
        };
        Self {
            tid: context(&TID_FIELDS),
            pid: context(&PID_FIELDS),
            cpu: at(Scope::Common, &CPU_FIELDS),
            command: context(&COMMAND_FIELDS),
            is_switch: class.rsplit(':').next() == Some("sched_switch"),
        }
    }
}

/// A number that is a thread or process id.
pub fn slot_number(slot: Slot) -> Option<u32> {
    match slot {
        Slot::Unsigned(value) => Some(value as u32),
        Slot::Signed(value) => Some(value as u32),
        _ => None,
    }
}

/// The thread of a stream or a packet, with its process according to events: formats without processes
/// use the thread id as process id.
pub fn settled(opened: &Opened, writer: Writer) -> Writer {
    match writer.pid == writer.tid {
        true => Writer { pid: opened.owners().pid(writer.tid), ..writer },
        false => writer,
    }
}

/// The thread from the contexts, otherwise the one that runs on the CPU.
pub fn told_writer(
    opened: &Opened,
    told: &Told,
    (tid, pid): (Option<u32>, Option<u32>),
    (cpu, time): (Option<u32>, Nanos),
) -> Option<Writer> {
    match tid {
        Some(tid) => Some(Writer { pid: pid.unwrap_or_else(|| opened.owners().pid(tid)), tid }),
        None => opened.owners().running(cpu?, time, told.is_switch),
    }
}
