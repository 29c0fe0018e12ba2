// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Call stacks of programs, so many times a second, by `perf_event_open`.
//!
//! Each CPU has a buffer, made by an event that counts nothing; each thread that is sampled has an event
//! on each CPU that writes there, and the kernel gives the threads that it makes the same. So nobody
//! else is sampled, and no right is needed but the one to look at the program.

mod processes;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use lateralis_ring::{ClockKind, LossCounts};
use rustix::event::{PollFd, PollFlags, poll};

use self::processes::Processes;
use super::buffer::{Attributes, FLAGS, PerfBuffer, PerfEvent, SAMPLE_TIME, Target};
use super::{PERIOD, perf, threads};
use crate::classes::RegisteredSchema;
use crate::kernel::ClockRelation;
use crate::kernel::stack_samples::{Counter, Known, StackSamples};
use crate::linux::clocks;
use crate::source::{Introductions, Sink, Source, SourceReport, StreamPlan};

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const COUNT_CYCLES: u64 = 0;
const COUNT_CPU_CLOCK: u64 = 0;
const COUNT_NOTHING: u64 = 9;
/// IP, TID, PERIOD, CALLCHAIN.
const SAMPLE_STACK: u64 = 1 | 1 << 1 | SAMPLE_TIME | 1 << 5 | 1 << 8;
/// REGS_USER, STACK_USER.
const SAMPLE_MEMORY: u64 = 1 << 12 | 1 << 13;
const INHERIT: u64 = 1 << 1;
/// exclude_kernel, exclude_hv.
const PROGRAM_ONLY: u64 = 1 << 5 | 1 << 6;
const NO_KERNEL_STACK: u64 = 1 << 21;
const NO_PROGRAM_STACK: u64 = 1 << 22;
const FREQUENCY: u64 = 1 << 10;
const ENABLE_ON_EXEC: u64 = 1 << 12;
/// mmap, comm, task, mmap2, comm_exec.
const SAY_WHAT_IS_MAPPED: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 23 | 1 << 24;
/// Since Linux 5.12.
const BUILD_IDS: u64 = 1 << 34;
/// Registers of programs as perf takes them: all that the processor has but for segments that 64-bit
/// code does not use.
const REGISTERS: Option<u64> = if cfg!(target_arch = "x86_64") { Some(0xff_0fff) } else { None };
/// Bytes of a stack as `perf record --call-graph dwarf` takes them.
const STACK_BYTES: u32 = 8192;
/// A packet must hold the longest record: a path of 4 KiB, or the stack and the call chain.
const PACKET_BYTES: u64 = 16 << 10;
const MEMORY_PACKET_BYTES: u64 = 64 << 10;
/// Descriptors for all threads on all CPUs.
const EVENTS_MAX: usize = 200_000;

/// How the callers of a function are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleStack {
    /// By frame pointers, when the sample is taken.
    #[default]
    FramePointers,
    /// Registers and the top of the stack are recorded; callers are found when they are read.
    Memory,
}

/// What to sample.
#[derive(Debug, Clone)]
pub struct SampleOptions {
    /// Samples a second of each CPU that a program runs on.
    pub hz: u64,
    /// How callers are found.
    pub stack: SampleStack,
    /// Whatever runs; else only the recorded programs and those they start.
    pub whole_machine: bool,
    /// Bytes of each CPU's buffer.
    pub buffer_bytes: u64,
}

/// Why nothing can be sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleError {
    /// Which setting or part of the machine forbids it.
    pub place: String,
    /// What to do.
    pub advice: String,
}

impl SampleError {
    fn new(place: impl Into<String>, advice: impl Into<String>) -> SampleError {
        SampleError { place: place.into(), advice: advice.into() }
    }
}

impl std::fmt::Display for SampleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cannot sample call stacks: {}: {}", self.place, self.advice)
    }
}

impl std::error::Error for SampleError {}

/// The buffer of a CPU.
#[derive(Debug)]
struct Cpu {
    number: u32,
    buffer: PerfBuffer,
    /// Losses that stand in its stream.
    told: u64,
}

/// See the module's description.
#[derive(Debug)]
pub struct SampleSource {
    options: SampleOptions,
    counter: Counter,
    /// Flags of all events; what of them this kernel and this user may have was tried.
    flags: u64,
    numbers: Vec<u32>,
    cpus: Vec<Cpu>,
    /// With the place of its CPU in `cpus`.
    events: Vec<(usize, PerfEvent)>,
    samples: StackSamples,
    processes: Processes,
    /// What was there at a time, which no buffer holds.
    known: Vec<(u64, Known)>,
    kind: ClockKind,
    hz: u64,
    relation: Option<ClockRelation>,
    clock_error_ticks: u64,
    /// What was read from a buffer.
    bytes: Vec<u8>,
}

fn setting(name: &str) -> Option<i64> {
    std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

fn refusal(error: &io::Error, whole_machine: bool) -> SampleError {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let level = setting("perf_event_paranoid");
            let level = level.map_or_else(|| "?".to_owned(), |level| level.to_string());
            let most = if whole_machine { 0 } else { 2 };
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

impl SampleSource {
    /// Tries what this kernel and this user may sample. Nothing is sampled before
    /// [`Source::begin`].
    ///
    /// Errors: what is missing, and what to do; nothing was changed.
    pub fn open(options: &SampleOptions) -> Result<SampleSource, SampleError> {
        if let Some(most) = setting("perf_event_max_sample_rate").map(i64::unsigned_abs)
            && options.hz > most
        {
            return Err(SampleError::new(
                format!("{} Hz", options.hz),
                format!(
                    "this machine takes at most {most} samples a second: take fewer, or as root \
                     `sysctl kernel.perf_event_max_sample_rate={}`",
                    options.hz
                ),
            ));
        }
        let registers = match options.stack {
            SampleStack::FramePointers => None,
            SampleStack::Memory => Some(REGISTERS.ok_or_else(|| {
                SampleError::new("dwarf", "stacks of this processor cannot be unwound: use fp")
            })?),
        };
        let numbers = perf::online();
        let (counter, flags) = tried(options, registers, &numbers)?;
        let samples = StackSamples::new(counter, registers, numbers.len());
        let samples =
            samples.ok_or_else(|| SampleError::new("schema perf", "this is a fault of lat"))?;
        Ok(SampleSource {
            options: options.clone(),
            counter,
            flags,
            numbers,
            cpus: Vec::new(),
            events: Vec::new(),
            samples,
            processes: Processes::default(),
            known: Vec::new(),
            kind: clocks::native_kind(),
            hz: 0,
            relation: None,
            clock_error_ticks: 0,
            bytes: Vec::new(),
        })
    }

    /// What of the stacks is left out because this user may not see it.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        (self.flags & PROGRAM_ONLY != 0).then(|| {
            let level = setting("perf_event_paranoid").unwrap_or_default();
            format!(
                "samples are of programs alone, not of the kernel: kernel.perf_event_paranoid = \
                 {level}: run `sudo lat record …`, or as root `sysctl kernel.perf_event_paranoid=1`"
            )
        })
    }

    /// The buffer of a CPU. Where so much memory must not be locked, less.
    fn prepare(&self, number: u32) -> io::Result<Cpu> {
        let page_bytes = rustix::param::page_size();
        let pages = (self.options.buffer_bytes as usize / page_bytes).max(1).next_power_of_two();
        let mut data_bytes = pages * page_bytes;
        let buffer = loop {
            let owner = Attributes {
                kind: TYPE_SOFTWARE,
                config: COUNT_NOTHING,
                flags: FLAGS | PROGRAM_ONLY,
                wakeup_bytes: u32::try_from(data_bytes / 2).unwrap_or(u32::MAX / 2),
                ..Attributes::default()
            };
            let owner = PerfEvent::of(&owner, Target::Thread(0), number)?;
            match PerfBuffer::new(owner, data_bytes) {
                Ok(buffer) => break buffer,
                Err(error) if data_bytes == page_bytes => return Err(error),
                Err(_) => data_bytes /= 2,
            }
        };
        Ok(Cpu { number, buffer, told: 0 })
    }

    /// Samples somebody, at once or from its next `execve` on. Nothing of it is left if that fails.
    fn sample(&mut self, target: Target, from_exec: bool) -> io::Result<()> {
        let before = self.events.len();
        let registers = match self.options.stack {
            SampleStack::FramePointers => None,
            SampleStack::Memory => REGISTERS,
        };
        let mut asked = attributes(self.counter, &self.options, registers, self.flags, target);
        asked.flags |= if from_exec { ENABLE_ON_EXEC } else { 0 };
        for (place, cpu) in self.cpus.iter().enumerate() {
            let event = PerfEvent::of(&asked, target, cpu.number)
                .and_then(|event| event.write_to(&cpu.buffer).map(|()| event));
            match event {
                Ok(event) if self.events.len() < EVENTS_MAX => self.events.push((place, event)),
                Ok(_) => {
                    self.events.truncate(before);
                    return Err(io::Error::from_raw_os_error(libc::EMFILE));
                }
                Err(error) => {
                    self.events.truncate(before);
                    return Err(error);
                }
            }
        }
        if from_exec {
            return Ok(());
        }
        self.events[before..].iter().try_for_each(|(_, event)| event.enable(true))
    }

    /// Measures how the clocks hang together, and by how much that differs from what was taken for
    /// right until now.
    fn relate(&mut self) -> ClockRelation {
        let (ns, ticks, window) = clocks::raw_and_ticks(self.kind);
        let now = ClockRelation::Monotonic { ns, ticks, hz: self.hz };
        let drift = self.relation.map_or(0, |before| before.ticks(ns).abs_diff(ticks));
        self.clock_error_ticks = self.clock_error_ticks.max(drift.saturating_add(window));
        self.relation = Some(now);
        now
    }

    /// Takes what is in the buffers; how full the fullest was.
    fn read(&mut self, sink: &mut dyn Sink) -> f64 {
        let relation = self.relate();
        for (time, known) in std::mem::take(&mut self.known) {
            self.samples.know(0, time, known, sink);
        }
        let mut fill: f64 = 0.0;
        let began = sink.now();
        for (index, cpu) in self.cpus.iter_mut().enumerate() {
            let bytes = &mut self.bytes;
            bytes.clear();
            let used = cpu.buffer.read(&mut |one, two| {
                bytes.extend_from_slice(one);
                bytes.extend_from_slice(two);
            });
            match used {
                Ok(used) => fill = fill.max(used as f64 / cpu.buffer.data_bytes() as f64),
                Err(used) => {
                    let what = format!("a buffer of the kernel says it holds {used} bytes");
                    sink.damage(index, what);
                }
            }
            self.samples.records(index, bytes, &relation, sink);
        }
        self.samples.turned(began);
        fill
    }

    /// Losses of a CPU that no record told.
    fn account(&mut self, index: usize, sink: &mut dyn Sink) {
        let events = self.events.iter().filter(|(place, _)| *place == index);
        let lost: u64 = events.filter_map(|(_, event)| event.counted().lost).sum();
        let found = self.samples.sums(index);
        let cpu = &mut self.cpus[index];
        cpu.told = cpu.told.max(found.missed);
        let rest = lost.saturating_sub(cpu.told);
        if rest > 0 {
            let until = sink.now();
            sink.lose(index, LossCounts { full: rest, ..LossCounts::default() }, until);
            cpu.told += rest;
        }
        if found.unreadable > 0 {
            sink.damage(
                index,
                format!("{} records that are shorter than they say", found.unreadable),
            );
        }
    }

    fn report(&self) -> SourceReport {
        let sums = (0..self.cpus.len()).map(|cpu| self.samples.sums(cpu));
        let total = |of: &dyn Fn(&crate::kernel::stack_samples::SampleSums) -> u64| -> u64 {
            sums.clone().map(|sums| of(&sums)).sum()
        };
        let scope = if self.options.whole_machine { "machine" } else { "recorded programs" };
        let error_ns =
            u128::from(self.clock_error_ticks) * 1_000_000_000 / u128::from(self.hz.max(1));
        let buffer_bytes = self.cpus.iter().map(|cpu| cpu.buffer.data_bytes()).min().unwrap_or(0);
        let stack = match self.options.stack {
            SampleStack::FramePointers => "frame pointers".to_owned(),
            SampleStack::Memory => format!("memory, {STACK_BYTES} bytes"),
        };
        let kernel = if self.flags & PROGRAM_ONLY == 0 { "sampled" } else { "left out" };
        let details = [
            ("by", "perf".to_owned()),
            ("event", self.counter.name().to_owned()),
            ("samples_per_second", self.options.hz.to_string()),
            ("stack", stack),
            ("kernel", kernel.to_owned()),
            ("scope", scope.to_owned()),
            ("trace_clock", "mono_raw".to_owned()),
            ("trace_clock_error_ns", error_ns.to_string()),
            ("buffer_bytes_per_cpu", buffer_bytes.to_string()),
            ("samples", total(&|sums| sums.samples).to_string()),
            ("samples_while_stopped", total(&|sums| sums.stopped).to_string()),
            ("records_of_mappings_and_threads", total(&|sums| sums.others).to_string()),
            ("records_unreadable", total(&|sums| sums.unreadable).to_string()),
            ("throttled", total(&|sums| sums.throttled).to_string()),
        ];
        let lost = self.cpus.iter().map(|cpu| cpu.told).sum();
        SourceReport {
            details: details.map(|(name, value)| (name.to_owned(), value)).into(),
            lost: [("no room".to_owned(), lost)].into(),
        }
    }

    fn now(&self) -> u64 {
        clocks::now_ticks(self.kind)
    }
}

fn attributes(
    counter: Counter,
    options: &SampleOptions,
    registers: Option<u64>,
    flags: u64,
    target: Target,
) -> Attributes {
    let (kind, config) = match counter {
        Counter::Cycles => (TYPE_HARDWARE, COUNT_CYCLES),
        Counter::CpuClock => (TYPE_SOFTWARE, COUNT_CPU_CLOCK),
    };
    let inherit = if target == Target::Everybody { 0 } else { INHERIT };
    let (memory, no_stack) =
        if registers.is_some() { (SAMPLE_MEMORY, NO_PROGRAM_STACK) } else { (0, 0) };
    Attributes {
        kind,
        config,
        period: options.hz,
        sample_type: SAMPLE_STACK | memory,
        flags: FLAGS | FREQUENCY | SAY_WHAT_IS_MAPPED | inherit | no_stack | flags,
        wakeup_bytes: 0,
        user_registers: registers.unwrap_or(0),
        user_stack_bytes: if registers.is_some() { STACK_BYTES } else { 0 },
    }
}

/// The counter and the flags that can be had, the best first: what is tried is thrown away.
fn tried(
    options: &SampleOptions,
    registers: Option<u64>,
    numbers: &[u32],
) -> Result<(Counter, u64), SampleError> {
    let target = if options.whole_machine { Target::Everybody } else { Target::Thread(0) };
    let cpu = numbers.first().copied().unwrap_or(0);
    let mut first = None;
    for scope in [0, PROGRAM_ONLY | NO_KERNEL_STACK] {
        for counter in [Counter::Cycles, Counter::CpuClock] {
            for build_ids in [BUILD_IDS, 0] {
                let flags = scope | build_ids;
                let asked = attributes(counter, options, registers, flags, target);
                match PerfEvent::of(&asked, target, cpu) {
                    Ok(_) => return Ok((counter, flags)),
                    // Without a unit that counts cycles the timer is as good.
                    Err(_) if counter == Counter::Cycles => {}
                    Err(error) => first = first.or(Some(error)),
                }
            }
        }
    }
    let error = first.unwrap_or_else(|| io::ErrorKind::Unsupported.into());
    Err(refusal(&error, options.whole_machine))
}

impl Source for SampleSource {
    fn name(&self) -> &str {
        "samples"
    }

    fn schemas(&self) -> Vec<RegisteredSchema> {
        self.samples.schemas().to_vec()
    }

    fn introductions(&self) -> Option<Arc<dyn Introductions>> {
        Some(self.samples.introductions())
    }

    fn streams(&self) -> Vec<StreamPlan> {
        let stream = |cpu: &u32| StreamPlan {
            name: format!("samples_cpu{cpu}"),
            number: *cpu,
            is_cpu: true,
        };
        self.numbers.iter().map(stream).collect()
    }

    fn packet_bytes(&self, asked: u64) -> u64 {
        asked.max(match self.options.stack {
            SampleStack::FramePointers => PACKET_BYTES,
            SampleStack::Memory => MEMORY_PACKET_BYTES,
        })
    }

    fn begin(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.kind = sink.clock();
        self.hz = clocks::frequency(self.kind).0;
        let told = |error: &io::Error| refusal(error, self.options.whole_machine).to_string();
        for number in &self.numbers {
            let cpu = self.prepare(*number).map_err(|error| told(&error))?;
            self.cpus.push(cpu);
        }
        self.relate();
        let began = self.now();
        if self.flags & PROGRAM_ONLY == 0
            && let Some(build_id) = processes::kernel_build_id()
        {
            // The name that perf has for it.
            self.known.push((began, Known::BuildId(b"[kernel.kallsyms]".to_vec(), build_id)));
        }
        if self.options.whole_machine {
            let sampled = self.sample(Target::Everybody, false);
            sampled.map_err(|error| refusal(&error, true).to_string())?;
            for process in threads::all() {
                self.known.extend(self.processes.known(&process).map(|known| (began, known)));
            }
        }
        Ok(())
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.cpus.iter().map(|cpu| cpu.buffer.descriptor()).collect()
    }

    fn period(&self) -> Duration {
        PERIOD
    }

    fn drain(&mut self, sink: &mut dyn Sink) -> f64 {
        self.read(sink)
    }

    fn waits_for_programs(&self) -> bool {
        !self.options.whole_machine
    }

    fn before_exec(&mut self, pid: u32) -> Result<(), String> {
        let began = self.now();
        self.known.push((began, Known::Parent(pid, std::process::id())));
        self.sample(Target::Thread(pid), true).map_err(|error| refusal(&error, false).to_string())
    }

    fn must_see(&self) -> bool {
        true
    }

    fn adopt(&mut self, pid: u32) -> Result<(), String> {
        if self.options.whole_machine {
            return Ok(());
        }
        let began = self.now();
        // Threads that one of these makes from here on are sampled like it.
        let mut sampled = 0;
        for tid in threads::of(pid) {
            match self.sample(Target::Thread(tid), false) {
                Ok(()) => sampled += 1,
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(refusal(&error, false).to_string()),
            }
        }
        if sampled == 0 {
            return Err(format!("Cannot sample call stacks: no process {pid}"));
        }
        // Behind the first sample that could be: what is mapped meanwhile is told by the kernel.
        if let Some(process) = threads::one(pid) {
            self.known.extend(self.processes.known(&process).map(|known| (began, known)));
        }
        Ok(())
    }

    fn follows_somebody(&self) -> bool {
        if self.options.whole_machine {
            return false;
        }
        let mut all: Vec<_> = self
            .events
            .iter()
            .map(|(_, event)| PollFd::from_borrowed_fd(event.descriptor(), PollFlags::empty()))
            .collect();
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        // The kernel hangs up when a thread and all that it made have ended.
        poll(&mut all, Some(&now)).is_ok()
            && all.iter().any(|one| !one.revents().contains(PollFlags::HUP))
    }

    fn pause(&mut self, paused: bool) {
        // What is mapped meanwhile matters later, so that samples are taken and left out.
        let now = self.now();
        self.samples.stop(paused, now);
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> SourceReport {
        for (_, event) in &self.events {
            if let Err(error) = event.enable(false) {
                sink.problem(refusal(&error, self.options.whole_machine).to_string());
                break;
            }
        }
        self.read(sink);
        (0..self.cpus.len()).for_each(|cpu| self.account(cpu, sink));
        self.report()
    }
}
