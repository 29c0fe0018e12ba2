// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of the Linux kernel as records: converts the text and pages of tracefs to
//! schemas and records. Nothing here makes system calls.
//!
//! ```text
//! events/*/*/format ──▶ format ─▶ layout: schema, and how to copy each record into it
//! per_cpu/cpuN/trace_pipe_raw ──▶ pages ──▶ transcode ──▶ records, losses
//! buffers of perf_event_open ──▶ perf ──▶ transcode; chosen: the selected threads
//!                       stack_samples: samples of call stacks, mappings, names
//! threads and their processes ──▶ tasks
//! a program's file, a name ──▶ probe: the definition for the kernel
//! ```
//!
//! Names are the kernel's, so that analyses of its events apply here too: subsystem `sched`,
//! event `sched_switch`, its fields. Left out are the number of the system call, which is in the name of
//! the event, and fields after the sixteenth.

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

/// Environment fields that describe a source of kernel events to readers.
pub(crate) fn environment(whole_machine: bool) -> Vec<(String, String)> {
    let scope = if whole_machine { SCOPE_MACHINE } else { SCOPE_PROGRAMS };
    vec![(KERNEL_SCOPE.to_owned(), scope.to_owned())]
}
