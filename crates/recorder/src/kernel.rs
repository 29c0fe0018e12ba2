// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of the Linux kernel as records of ours: what tracefs says and gives is text and pages,
//! what comes out are schemas and records. Nothing here touches the system.
//!
//! ```text
//! events/*/*/format ──▶ format ─▶ layout: schema, and how to copy each record into it
//! per_cpu/cpuN/trace_pipe_raw ──▶ pages ──▶ transcode ──▶ records, losses
//! buffers of perf_event_open ──▶ perf ──▶ transcode; chosen: of whose events
//!                       stack_samples: samples of call stacks, mappings, names
//! who belongs to which process ──▶ tasks
//! a program's file, a name ──▶ probe: what the kernel is to define
//! ```
//!
//! Names are the kernel's, so that what is known of its events holds here too: subsystem `sched`,
//! event `sched_switch`, its fields. Left out are the number of the system call, which the name of
//! the event says, and fields behind the sixteenth.

pub mod choice;
pub mod chosen;
pub mod clock;
pub mod layout;
pub mod perf;
pub mod probe;
pub mod stack_samples;
pub mod stats;
pub mod tasks;
pub mod transcode;

#[cfg(test)]
pub(crate) mod samples;

pub use choice::{Choice, ChoiceError, GROUPS};
pub use clock::ClockRelation;
pub use layout::{KernelEvents, KernelFormat};
pub use stats::CpuStats;
pub use transcode::Transcoder;

use lateralis_model::{KERNEL_SCOPE, SCOPE_MACHINE, SCOPE_PROGRAMS};

/// What readers must know of a source of the kernel's events beside its records.
pub(crate) fn environment(whole_machine: bool) -> Vec<(String, String)> {
    let scope = if whole_machine { SCOPE_MACHINE } else { SCOPE_PROGRAMS };
    vec![(KERNEL_SCOPE.to_owned(), scope.to_owned())]
}
