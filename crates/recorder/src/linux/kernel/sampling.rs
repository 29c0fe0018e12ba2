// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Periodic call stacks of programs, by `perf_event_open`.
//!
//! Each CPU has a buffer, created by an event that counts nothing. Each sampled thread has an event
//! on each CPU that writes to it, which threads that it creates inherit. So no other thread
//! is sampled, and the only privilege needed is permission to trace the program.

mod processes;
mod request;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use lateralis_ring::{ClockKind, LossCounts};
use rustix::event::{PollFd, PollFlags, poll};

use self::processes::Processes;
use self::request::{
    ENABLE_ON_EXEC, PROGRAM_ONLY, REGISTERS, STACK_BYTES, at_event, at_switches, attributes,
    described, refusal, setting, tried,
};
pub use self::request::{SampleError, SampleOptions, SampleStack};
use super::buffer::{Attributes, PerfBuffer, PerfEvent, Target};
use super::{PERIOD, perf, threads};
use crate::classes::RegisteredSchema;
use crate::kernel::ClockRelation;
use crate::kernel::stack_samples::{
    Counter, Known, MappedFile, SampleLayout, SampleSums, StackSamples,
};
use crate::linux::clocks;
use crate::source::{Introductions, Sink, Source, SourceReport, StreamPlan};

/// A packet must hold the longest record: a path of 4 KiB, or the stack and the call chain.
const PACKET_BYTES: u64 = 16 << 10;
const MEMORY_PACKET_BYTES: u64 = 64 << 10;
/// Maximum number of descriptors for all threads on all CPUs.
const EVENTS_MAX: usize = 200_000;

/// The buffer of a CPU.
#[derive(Debug)]
struct Cpu {
    number: u32,
    buffer: PerfBuffer,
    /// Losses recorded in its stream.
    told: u64,
}

/// Samples call stacks.
#[derive(Debug)]
pub struct SampleSource {
    options: SampleOptions,
    counter: Counter,
    /// Flags of all events, as far as this kernel permits them to this user.
    flags: u64,
    /// Numbers of the kernel's events at which stacks are sampled.
    ids: Vec<u32>,
    /// Events of these that could not be described.
    problems: Vec<String>,
    numbers: Vec<u32>,
    cpus: Vec<Cpu>,
    /// With the index of its CPU in `cpus`.
    events: Vec<(usize, PerfEvent)>,
    samples: StackSamples,
    processes: Processes,
    /// State at a time that is in no buffer.
    known: Vec<(u64, Known)>,
    kind: ClockKind,
    hz: u64,
    relation: Option<ClockRelation>,
    clock_error_ticks: u64,
    /// Bytes read from a buffer.
    bytes: Vec<u8>,
}

impl SampleSource {
    /// Determines which samples this kernel permits to this user. Nothing is sampled before
    /// [`Source::begin`].
    ///
    /// Errors: what is missing, and what to do; nothing was changed.
    pub fn open(options: &SampleOptions) -> Result<SampleSource, SampleError> {
        if let Some(most) = setting("perf_event_max_sample_rate").map(i64::unsigned_abs)
            && let Some(hz) = options.hz.filter(|hz| *hz > most)
        {
            return Err(SampleError::new(
                format!("{hz} Hz"),
                format!(
                    "this machine takes at most {most} samples a second: take fewer, or as root \
                     `sysctl kernel.perf_event_max_sample_rate={hz}`"
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
        let (mut events, ids) = described(&options.events, registers.is_some())?;
        let (counter, flags) = tried(options, registers, &ids, &numbers)?;
        let problems = std::mem::take(&mut events.problems);
        let with = SampleLayout { registers, has_switches: options.off_cpu };
        let samples = StackSamples::new(counter, with, events, numbers.len());
        let samples =
            samples.ok_or_else(|| SampleError::new("too many events", "name fewer of them"))?;
        Ok(SampleSource {
            options: options.clone(),
            counter,
            flags,
            ids,
            problems,
            numbers,
            cpus: Vec::new(),
            events: Vec::new(),
            samples,
            processes: Processes::new(clocks::utc_ns()),
            known: Vec::new(),
            kind: clocks::native_kind(),
            hz: 0,
            relation: None,
            clock_error_ticks: 0,
            bytes: Vec::new(),
        })
    }

    /// The parts of stacks that are left out because this user may not see them.
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

    /// Creates the buffer of a CPU; a smaller one if the memory exceeds the limit for locked memory.
    fn prepare(&self, number: u32) -> io::Result<Cpu> {
        let page_bytes = rustix::param::page_size();
        let pages = (self.options.buffer_bytes as usize / page_bytes).max(1).next_power_of_two();
        let mut data_bytes = pages * page_bytes;
        let buffer = loop {
            let owner = request::nothing(u32::try_from(data_bytes / 2).unwrap_or(u32::MAX / 2));
            let owner = PerfEvent::of(&owner, Target::Thread(0), number)?;
            match PerfBuffer::new(owner, data_bytes) {
                Ok(buffer) => break buffer,
                Err(error) if data_bytes == page_bytes => return Err(error),
                Err(_) => data_bytes /= 2,
            }
        };
        Ok(Cpu { number, buffer, told: 0 })
    }

    /// Samples a target, at once or from its next `execve` on. On failure no event remains.
    fn sample(&mut self, target: Target, from_exec: bool) -> io::Result<()> {
        let before = self.events.len();
        let registers = match self.options.stack {
            SampleStack::FramePointers => None,
            SampleStack::Memory => REGISTERS,
        };
        let mut all = attributes(self.counter, &self.options, registers, self.flags, target);
        all.flags |= if from_exec { ENABLE_ON_EXEC } else { 0 };
        let at_events = self.ids.iter().map(|id| at_event(&all, *id));
        let switches = self.options.off_cpu.then(|| at_switches(&all));
        let wanted: Vec<Attributes> =
            std::iter::once(all).chain(switches).chain(at_events).collect();
        if before + wanted.len() * self.cpus.len() > EVENTS_MAX {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        for (place, cpu) in self.cpus.iter().enumerate() {
            for (index, asked) in wanted.iter().enumerate() {
                let made = PerfEvent::of(asked, target, cpu.number).and_then(|event| {
                    event.write_to(&cpu.buffer)?;
                    let is_of_switches = self.options.off_cpu && index == 1;
                    let id = is_of_switches.then(|| event.id()).transpose()?;
                    Ok((event, id))
                });
                match made {
                    Ok((event, id)) => {
                        self.events.push((place, event));
                        id.into_iter().for_each(|id| self.samples.switches_have(id));
                    }
                    Err(error) => {
                        self.events.truncate(before);
                        return Err(error);
                    }
                }
            }
        }
        if from_exec {
            return Ok(());
        }
        self.events[before..].iter().try_for_each(|(_, event)| event.enable(true))
    }

    /// Measures the relation of the clocks, and its difference from the previously assumed
    /// one.
    fn relate(&mut self) -> ClockRelation {
        let (ns, ticks, window) = clocks::raw_and_ticks(self.kind);
        let now = ClockRelation::Monotonic { ns, ticks, hz: self.hz };
        let drift = self.relation.map_or(0, |before| before.ticks(ns).abs_diff(ticks));
        self.clock_error_ticks = self.clock_error_ticks.max(drift.saturating_add(window));
        self.relation = Some(now);
        now
    }

    /// Reads the buffers; returns the fraction of the fullest one.
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
            let processes = &mut self.processes;
            let mut find = |pid, file: &MappedFile| processes.build_id(pid, file);
            self.samples.records(index, bytes, &relation, sink, &mut find);
        }
        self.samples.turned(began);
        fill
    }

    /// Reports losses of a CPU that no record contained.
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
        let total =
            |of: &dyn Fn(&SampleSums) -> u64| -> u64 { sums.clone().map(|sums| of(&sums)).sum() };
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
            ("samples_per_second", self.options.hz.unwrap_or(0).to_string()),
            ("events_with_stacks", self.ids.len().to_string()),
            ("off_cpu", if self.options.off_cpu { "yes" } else { "no" }.to_owned()),
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
        let told = |error: &io::Error| refusal(error, self.options.scope()).to_string();
        for number in &self.numbers {
            let cpu = self.prepare(*number).map_err(|error| told(&error))?;
            self.cpus.push(cpu);
        }
        self.relate();
        let began = self.now();
        if self.flags & PROGRAM_ONLY == 0
            && let Some(build_id) = processes::kernel_build_id()
        {
            // perf's name for it.
            self.known.push((began, Known::BuildId(b"[kernel.kallsyms]".to_vec(), build_id)));
        }
        for problem in std::mem::take(&mut self.problems) {
            sink.problem(problem);
        }
        if self.options.whole_machine {
            let sampled = self.sample(Target::Everybody, false);
            sampled.map_err(|error| refusal(&error, self.options.scope()).to_string())?;
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
        self.sample(Target::Thread(pid), true)
            .map_err(|error| refusal(&error, self.options.scope()).to_string())
    }

    fn must_see(&self) -> bool {
        true
    }

    fn adopt(&mut self, pid: u32) -> Result<(), String> {
        if self.options.whole_machine {
            return Ok(());
        }
        let began = self.now();
        // Threads that one of these creates from now on are sampled like it.
        let mut sampled = 0;
        for tid in threads::of(pid) {
            match self.sample(Target::Thread(tid), false) {
                Ok(()) => sampled += 1,
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(refusal(&error, self.options.scope()).to_string()),
            }
        }
        if sampled == 0 {
            return Err(format!("Cannot sample call stacks: no process {pid}"));
        }
        // After the events are enabled: later mappings are reported by the kernel.
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
        // The kernel hangs up when a thread and all its descendants have ended.
        poll(&mut all, Some(&now)).is_ok()
            && all.iter().any(|one| !one.revents().contains(PollFlags::HUP))
    }

    fn pause(&mut self, paused: bool) {
        // Later mappings are still needed, so samples are taken and dropped.
        let now = self.now();
        self.samples.stop(paused, now);
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> SourceReport {
        for (_, event) in &self.events {
            if let Err(error) = event.enable(false) {
                sink.problem(refusal(&error, self.options.scope()).to_string());
                break;
            }
        }
        self.read(sink);
        (0..self.cpus.len()).for_each(|cpu| self.account(cpu, sink));
        self.report()
    }
}
