// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parameters of samples, and advice if the kernel rejects them.

use std::io;

use super::super::buffer::{
    Attributes, FLAGS, PerfEvent, SAMPLE_RAW, SAMPLE_TIME, TYPE_TRACEPOINT, Target,
};
use super::super::{instance, perf};
use crate::kernel::stack_samples::{Counter, stack_fields};
use crate::kernel::{Choice, KernelEvents};

pub(super) const TYPE_HARDWARE: u32 = 0;
pub(super) const TYPE_SOFTWARE: u32 = 1;
pub(super) const COUNT_CYCLES: u64 = 0;
pub(super) const COUNT_CPU_CLOCK: u64 = 0;
pub(super) const COUNT_CONTEXT_SWITCHES: u64 = 3;
pub(super) const COUNT_NOTHING: u64 = 9;
/// IP, TID, PERIOD, CALLCHAIN.
pub(super) const SAMPLE_STACK: u64 = 1 | 1 << 1 | SAMPLE_TIME | 1 << 5 | 1 << 8;
/// Id of the event that took the sample.
pub(super) const SAMPLE_ID: u64 = 1 << 6;
/// REGS_USER, STACK_USER.
pub(super) const SAMPLE_MEMORY: u64 = 1 << 12 | 1 << 13;
pub(super) const INHERIT: u64 = 1 << 1;
/// exclude_kernel, exclude_hv.
pub(super) const PROGRAM_ONLY: u64 = 1 << 5 | 1 << 6;
pub(super) const NO_KERNEL_STACK: u64 = 1 << 21;
pub(super) const NO_PROGRAM_STACK: u64 = 1 << 22;
pub(super) const FREQUENCY: u64 = 1 << 10;
pub(super) const ENABLE_ON_EXEC: u64 = 1 << 12;
/// mmap, comm, task, mmap2, comm_exec.
pub(super) const SAY_WHAT_IS_MAPPED: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 23 | 1 << 24;
/// context_switch.
pub(super) const SAY_WHO_RUNS: u64 = 1 << 26;
/// Registers of programs as recorded by perf: all of the processor except segments that 64-bit
/// code does not use.
pub(super) const REGISTERS: Option<u64> =
    if cfg!(target_arch = "x86_64") { Some(0xff_0fff) } else { None };
/// Bytes of a stack, as recorded by `perf record --call-graph dwarf`.
pub(super) const STACK_BYTES: u32 = 8192;

/// How the callers of a function are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleStack {
    /// By frame pointers, when the sample is taken.
    #[default]
    FramePointers,
    /// Registers and the top of the stack are recorded; readers find the callers.
    Memory,
}

/// What to sample.
#[derive(Debug, Clone)]
pub struct SampleOptions {
    /// Samples per second on each CPU that a program runs on; `None`: only at events.
    pub hz: Option<u64>,
    /// Events of the kernel at which the stack is taken, as in [`super::KernelOptions::events`].
    pub events: Vec<String>,
    /// Also when threads leave a CPU, and when they return.
    pub off_cpu: bool,
    /// How callers are found.
    pub stack: SampleStack,
    /// All threads; otherwise only those of the recorded programs and of programs they start.
    pub whole_machine: bool,
    /// Bytes of each CPU's buffer.
    pub buffer_bytes: u64,
}

/// Why sampling is not possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleError {
    /// The setting or part of the machine that prevents it.
    pub place: String,
    /// What to do.
    pub advice: String,
}

impl SampleError {
    pub(super) fn new(place: impl Into<String>, advice: impl Into<String>) -> SampleError {
        SampleError { place: place.into(), advice: advice.into() }
    }
}

impl std::fmt::Display for SampleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cannot sample call stacks: {}: {}", self.place, self.advice)
    }
}

impl std::error::Error for SampleError {}

/// The requested data, by the privilege that it needs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    Programs,
    Machine,
    /// Switches of programs, which happen in the kernel.
    Switches,
    /// Events of the kernel with their fields.
    Events,
}

impl SampleOptions {
    pub(super) fn scope(&self) -> Scope {
        match (self.events.is_empty(), self.whole_machine, self.off_cpu) {
            (false, ..) => Scope::Events,
            (true, true, _) => Scope::Machine,
            (true, false, true) => Scope::Switches,
            (true, false, false) => Scope::Programs,
        }
    }
}

pub(super) fn setting(name: &str) -> Option<i64> {
    std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

pub(super) fn refusal(error: &io::Error, scope: Scope) -> SampleError {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let most = match scope {
                Scope::Programs => 2,
                Scope::Switches => 1,
                Scope::Machine => 0,
                Scope::Events => -1,
            };
            let level = setting("perf_event_paranoid");
            if level.is_some_and(|level| level <= most) {
                let advice = "the program belongs to somebody else, or a sandbox forbids it: run \
                              `sudo lat record …`";
                return SampleError::new("perf_event_open", advice);
            }
            let level = level.map_or_else(|| "?".to_owned(), |level| level.to_string());
            SampleError::new(
                format!("kernel.perf_event_paranoid = {level}"),
                format!(
                    "run `sudo lat record …`, or as root `sysctl kernel.perf_event_paranoid={most}`, \
                     or give `lat` the capability CAP_PERFMON"
                ),
            )
        }
        Some(libc::EMFILE | libc::ENFILE) => SampleError::new(
            "no more descriptors",
            "each thread needs one for each CPU: raise the limit of open files (`ulimit -n`)",
        ),
        Some(libc::ENOSYS) => SampleError::new(
            "perf_event_open",
            "this kernel has none (CONFIG_PERF_EVENTS), or a sandbox forbids it",
        ),
        _ => SampleError::new("perf_event_open", error.to_string()),
    }
}

/// An event that counts nothing, for the buffer of a CPU that others write to.
pub(super) fn nothing(wakeup_bytes: u32) -> Attributes {
    Attributes {
        kind: TYPE_SOFTWARE,
        config: COUNT_NOTHING,
        flags: FLAGS | PROGRAM_ONLY,
        wakeup_bytes,
        ..Attributes::default()
    }
}

/// The event that reports mappings, and takes periodic samples if requested.
pub(super) fn attributes(
    counter: Counter,
    options: &SampleOptions,
    registers: Option<u64>,
    flags: u64,
    target: Target,
) -> Attributes {
    let (kind, config) = match counter {
        _ if options.hz.is_none() => (TYPE_SOFTWARE, COUNT_NOTHING),
        Counter::Cycles => (TYPE_HARDWARE, COUNT_CYCLES),
        Counter::CpuClock => (TYPE_SOFTWARE, COUNT_CPU_CLOCK),
    };
    let inherit = if target == Target::Everybody { 0 } else { INHERIT };
    let (memory, no_stack) =
        if registers.is_some() { (SAMPLE_MEMORY, NO_PROGRAM_STACK) } else { (0, 0) };
    // All records in one buffer have the same layout.
    let raw = if options.events.is_empty() { 0 } else { SAMPLE_RAW };
    let frequency = if options.hz.is_some() { FREQUENCY } else { 0 };
    let (id, who_runs) = if options.off_cpu { (SAMPLE_ID, SAY_WHO_RUNS) } else { (0, 0) };
    Attributes {
        kind,
        config,
        period: options.hz.unwrap_or(0),
        sample_type: SAMPLE_STACK | memory | raw | id,
        flags: FLAGS | frequency | SAY_WHAT_IS_MAPPED | who_runs | inherit | no_stack | flags,
        wakeup_bytes: 0,
        user_registers: registers.unwrap_or(0),
        user_stack_bytes: if registers.is_some() { STACK_BYTES } else { 0 },
    }
}

/// Samples each time that a thread leaves a CPU.
pub(super) fn at_switches(all: &Attributes) -> Attributes {
    each_time(all, TYPE_SOFTWARE, COUNT_CONTEXT_SWITCHES)
}

/// Samples each event of the kernel with this number.
pub(super) fn at_event(all: &Attributes, id: u32) -> Attributes {
    each_time(all, TYPE_TRACEPOINT, u64::from(id))
}

/// The event happens in the kernel, whichever thread causes it.
fn each_time(all: &Attributes, kind: u32, config: u64) -> Attributes {
    let once = FREQUENCY | SAY_WHAT_IS_MAPPED | SAY_WHO_RUNS | PROGRAM_ONLY;
    Attributes { kind, config, period: 1, flags: all.flags & !once, ..*all }
}

/// Descriptions of the kernel's events at which stacks are sampled, and their numbers.
pub(super) fn described(
    words: &[String],
    has_memory: bool,
) -> Result<(KernelEvents, Vec<u32>), SampleError> {
    if words.is_empty() {
        return Ok((KernelEvents::default(), Vec::new()));
    }
    let unavailable = |reason: String| SampleError::new("events of the kernel", reason);
    let tracefs = instance::find(None).map_err(unavailable)?;
    let available = instance::read(&tracefs, "available_events").map_err(unavailable)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let choice = Choice::new(&words, &available).map_err(|error| {
        let advice = match &error.near[..] {
            [] => "write SUBSYSTEM:EVENT as in `available_events` of tracefs".to_owned(),
            near => format!("did you mean {}?", near.join(", ")),
        };
        SampleError::new(error.word, advice)
    })?;
    let formats = perf::formats(&tracefs, &choice);
    let events = KernelEvents::with_stacks(&formats, stack_fields(has_memory));
    let ids = events.plans.iter().enumerate().filter(|(_, plan)| plan.is_some());
    let ids = ids.filter_map(|(id, _)| u32::try_from(id).ok()).collect();
    Ok((events, ids))
}

/// The best permitted counter and flags; the events opened to find out are closed again.
pub(super) fn tried(
    options: &SampleOptions,
    registers: Option<u64>,
    ids: &[u32],
    numbers: &[u32],
) -> Result<(Counter, u64), SampleError> {
    let target = if options.whole_machine { Target::Everybody } else { Target::Thread(0) };
    let cpu = numbers.first().copied().unwrap_or(0);
    let mut first = None;
    for flags in [0, PROGRAM_ONLY | NO_KERNEL_STACK] {
        for counter in [Counter::Cycles, Counter::CpuClock] {
            let asked = attributes(counter, options, registers, flags, target);
            let at_events = ids.iter().map(|id| at_event(&asked, *id));
            let at_switches = options.off_cpu.then(|| at_switches(&asked));
            let mut all = std::iter::once(asked).chain(at_switches).chain(at_events);
            match all.try_for_each(|asked| PerfEvent::of(&asked, target, cpu).map(drop)) {
                Ok(()) => return Ok((counter, flags)),
                // Without a cycle counter the timer is used.
                Err(_) if counter == Counter::Cycles => {}
                Err(error) => first = first.or(Some(error)),
            }
        }
    }
    let error = first.unwrap_or_else(|| io::ErrorKind::Unsupported.into());
    Err(refusal(&error, options.scope()))
}
