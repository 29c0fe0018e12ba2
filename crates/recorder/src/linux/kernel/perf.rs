// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of the kernel by `perf_event_open`, if no instance of tracefs can be created: the same
//! events and descriptions, from perf's buffers. Tracefs must be readable, for the
//! descriptions.
//!
//! A buffer for each CPU contains the events of all threads there; threads are selected here.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use lateralis_perfdata::tracepoint::Format;
use lateralis_ring::{ClockKind, LossCounts};

use super::buffer::{Counted, PerfBuffer, PerfEvent};
use super::{KernelError, KernelOptions, PERIOD, begin_with, instance, threads};
use crate::classes::RegisteredSchema;
use crate::kernel::choice::TASK_EVENTS;
use crate::kernel::transcode::CpuSums;
use crate::kernel::{Choice, ClockRelation, KernelEvents, KernelFormat, Transcoder};
use crate::linux::clocks;
use crate::source::{Sink, Source, SourceReport, StreamPlan};

/// List of the online CPUs.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Maximum number of descriptors for all events on all CPUs.
const EVENTS_MAX: usize = 200_000;

/// The events of a CPU.
#[derive(Debug)]
struct Cpu {
    number: u32,
    buffer: PerfBuffer,
    /// Except the one that the buffer was created with.
    events: Vec<PerfEvent>,
    /// Losses recorded in its stream.
    told: u64,
}

/// Kernel events through perf.
#[derive(Debug)]
pub struct PerfSource {
    numbers: Vec<u32>,
    /// The kernel's numbers of the events.
    ids: Vec<u32>,
    cpus: Vec<Cpu>,
    events: KernelEvents,
    transcoder: Transcoder,
    whole_machine: bool,
    asked_bytes: u64,
    kind: ClockKind,
    hz: u64,
    relation: Option<ClockRelation>,
    clock_error_ticks: u64,
}

fn unavailable(reason: &str) -> String {
    format!("cannot record events of the kernel by perf: {reason}")
}

fn told(error: &io::Error) -> String {
    unavailable(&match error.kind() {
        io::ErrorKind::PermissionDenied => "no right to: run `sudo lat record …`, or as root \
             `sysctl kernel.perf_event_paranoid=-1`, or give `lat` the capability CAP_PERFMON"
            .to_owned(),
        _ => error.to_string(),
    })
}

/// Parses `0-3,8`.
fn numbers(text: &str) -> Vec<u32> {
    let mut all = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) {
            // No machine has more (NR_CPUS of Linux).
            all.extend(from..=to.min(from.saturating_add(8191)));
        }
    }
    all
}

/// Numbers of the online CPUs.
pub(super) fn online() -> Vec<u32> {
    numbers(&std::fs::read_to_string(ONLINE).unwrap_or_else(|_| "0".to_owned()))
}

impl PerfSource {
    /// Reads the kernel's descriptions of the events, and checks whether they are permitted.
    ///
    /// Errors: see [`KernelError`]; nothing was changed.
    pub fn open(options: &KernelOptions) -> Result<PerfSource, KernelError> {
        if !options.probes.is_empty() {
            let reason = "probes are defined in tracefs: run `sudo lat record …`";
            return Err(KernelError::Unavailable(unavailable(reason)));
        }
        let tracefs =
            instance::find(options.tracefs.as_deref()).map_err(KernelError::Unavailable)?;
        let available =
            instance::read(&tracefs, "available_events").map_err(KernelError::Unavailable)?;
        let words: Vec<&str> = options.events.iter().map(String::as_str).collect();
        let mut choice = Choice::new(&words, &available).map_err(KernelError::Choice)?;
        choice.add(&TASK_EVENTS, &available);
        let formats = formats(&tracefs, &choice);
        let long_bytes = size_of::<usize>() as u32;
        let id = |one: &KernelFormat| Format::parse(&one.system, &one.text, long_bytes);
        let ids: Vec<u32> =
            formats.iter().filter_map(id).map(|format| u32::from(format.id)).collect();
        let mut events = KernelEvents::new(&formats);
        let numbers = online();
        let first = ids.first().zip(numbers.first());
        let Some((id, cpu)) = first.filter(|_| ids.len() * numbers.len() <= EVENTS_MAX) else {
            let reason = format!("{} events on {} CPUs", ids.len(), numbers.len());
            return Err(KernelError::Unavailable(unavailable(&reason)));
        };
        PerfEvent::open(*id, *cpu, 0).map_err(|error| KernelError::Unavailable(told(&error)))?;
        let transcoder = Transcoder::of_samples(&mut events, numbers.len());
        Ok(PerfSource {
            numbers,
            ids,
            cpus: Vec::new(),
            events,
            transcoder,
            whole_machine: options.whole_machine,
            asked_bytes: options.buffer_bytes,
            kind: clocks::native_kind(),
            hz: 0,
            relation: None,
            clock_error_ticks: 0,
        })
    }

    /// Creates the buffer of a CPU, and its events, disabled. If the memory exceeds the limit for locked
    /// memory, a smaller one.
    fn prepare(&self, number: u32) -> io::Result<Cpu> {
        let page_bytes = rustix::param::page_size();
        let pages = (self.asked_bytes as usize / page_bytes).max(1).next_power_of_two();
        let mut data_bytes = pages * page_bytes;
        let (first, others) = self.ids.split_first().ok_or(io::ErrorKind::NotFound)?;
        let wakeup = |bytes: usize| u32::try_from(bytes / 2).unwrap_or(u32::MAX / 2);
        let buffer = loop {
            let event = PerfEvent::open(*first, number, wakeup(data_bytes))?;
            match PerfBuffer::new(event, data_bytes) {
                Ok(buffer) => break buffer,
                Err(error) if data_bytes == page_bytes => return Err(error),
                Err(_) => data_bytes /= 2,
            }
        };
        let event = |id: &u32| {
            let event = PerfEvent::open(*id, number, wakeup(data_bytes))?;
            event.write_to(&buffer).map(|()| event)
        };
        let events = others.iter().map(event).collect::<io::Result<_>>()?;
        Ok(Cpu { number, buffer, events, told: 0 })
    }

    fn enable(&self, enabled: bool) -> io::Result<()> {
        self.cpus.iter().try_for_each(|cpu| {
            cpu.events.iter().chain([&cpu.buffer.event]).try_for_each(|event| event.enable(enabled))
        })
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

    fn read(&mut self, sink: &mut dyn Sink) -> f64 {
        let mut fill: f64 = 0.0;
        for (index, cpu) in self.cpus.iter_mut().enumerate() {
            let transcoder = &mut self.transcoder;
            let used = cpu.buffer.read(&mut |one, two| {
                transcoder.add(index, one);
                transcoder.add(index, two);
            });
            match used {
                Ok(used) => fill = fill.max(used as f64 / cpu.buffer.data_bytes() as f64),
                Err(used) => {
                    sink.damage(
                        index,
                        format!("a buffer of the kernel says it holds {used} bytes"),
                    );
                }
            }
        }
        fill
    }

    fn turn(&mut self, sink: &mut dyn Sink) {
        let relation = self.relate();
        self.transcoder.turn(&relation, sink, &mut threads::process_of);
    }

    /// Compares the counters of a CPU with recorded and lost events, and reports losses that no record
    /// contained.
    fn account(&mut self, index: usize, sink: &mut dyn Sink) -> (Counted, CpuSums) {
        let cpu = &mut self.cpus[index];
        let mut sum = Counted { happened: 0, lost: Some(0) };
        for event in cpu.events.iter().chain([&cpu.buffer.event]) {
            let one = event.counted();
            sum.happened += one.happened;
            sum.lost = sum.lost.zip(one.lost).map(|(all, more)| all.saturating_add(more));
        }
        let found = self.transcoder.sums(index);
        cpu.told = cpu.told.max(found.missed);
        let rest = sum.lost.unwrap_or(0).saturating_sub(cpu.told);
        if rest > 0 {
            let until = sink.now();
            sink.lose(index, LossCounts { full: rest, ..LossCounts::default() }, until);
            cpu.told += rest;
        }
        let seen = found.events + found.others + found.unreadable;
        // The counters may be larger: occasionally Linux counts a wakeup that it neither records nor
        // reports as lost. That is reported, and is no reason to doubt the recorded events.
        if sum.lost.is_some() && sum.happened < seen + cpu.told {
            sink.problem(format!(
                "Cannot account for all events of the kernel: cpu={}, counted={}, found={seen}, \
                 lost={}",
                cpu.number, sum.happened, cpu.told
            ));
        }
        sum.happened = sum.happened.saturating_sub(seen + cpu.told);
        if found.unreadable > 0 {
            let reason = format!("{} records that no description explains", found.unreadable);
            sink.damage(index, reason);
        }
        (sum, found)
    }

    fn report(&self, sums: &[(Counted, CpuSums)]) -> SourceReport {
        let total =
            |of: &dyn Fn(&CpuSums) -> u64| -> u64 { sums.iter().map(|(_, found)| of(found)).sum() };
        let not_given: u64 = sums.iter().map(|(counted, _)| counted.happened).sum();
        let scope = if self.whole_machine { "machine" } else { "recorded programs" };
        let error_ns =
            u128::from(self.clock_error_ticks) * 1_000_000_000 / u128::from(self.hz.max(1));
        let buffer_bytes = self.cpus.iter().map(|cpu| cpu.buffer.data_bytes()).min().unwrap_or(0);
        let details = [
            ("by", "perf".to_owned()),
            ("trace_clock", "mono_raw".to_owned()),
            ("trace_clock_error_ns", error_ns.to_string()),
            ("scope", scope.to_owned()),
            ("event_classes", self.ids.len().to_string()),
            ("buffer_bytes_per_cpu", buffer_bytes.to_string()),
            ("events_read", total(&|found| found.events + found.others).to_string()),
            ("events_of_others", total(&|found| found.others).to_string()),
            ("events_counted_but_not_given", not_given.to_string()),
            ("events_unreadable", total(&|found| found.unreadable).to_string()),
            ("threads_of_unknown_process", total(&|found| found.guessed).to_string()),
        ];
        let lost = self.cpus.iter().map(|cpu| cpu.told).sum();
        SourceReport {
            details: details.map(|(name, value)| (name.to_owned(), value)).into(),
            lost: [("no room".to_owned(), lost)].into(),
        }
    }
}

pub(super) fn formats(tracefs: &Path, choice: &Choice) -> Vec<KernelFormat> {
    let format = |(system, event): &(String, String)| {
        let text = instance::read(tracefs, &format!("events/{system}/{event}/format")).ok()?;
        Some(KernelFormat { system: system.clone(), text, clause: String::new() })
    };
    choice.events.iter().filter_map(format).collect()
}

impl Source for PerfSource {
    fn name(&self) -> &str {
        "kernel"
    }

    fn schemas(&self) -> Vec<RegisteredSchema> {
        self.events.schemas.clone()
    }

    fn environment(&self) -> Vec<(String, String)> {
        crate::kernel::environment(self.whole_machine)
    }

    fn streams(&self) -> Vec<StreamPlan> {
        let stream =
            |cpu: &u32| StreamPlan { name: format!("kernel_cpu{cpu}"), number: *cpu, is_cpu: true };
        self.numbers.iter().map(stream).collect()
    }

    fn begin(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.kind = sink.clock();
        self.hz = clocks::frequency(self.kind).0;
        // Not earlier, because the session has raised the descriptor limit only now.
        for number in self.numbers.clone() {
            let cpu = self.prepare(number).map_err(|error| told(&error))?;
            self.cpus.push(cpu);
        }
        if !self.whole_machine {
            self.transcoder.choose();
        }
        self.relate();
        let began = sink.now();
        self.enable(true).map_err(|error| told(&error))?;
        begin_with(&self.events, &mut self.transcoder, began, sink);
        Ok(())
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.cpus.iter().map(|cpu| cpu.buffer.descriptor()).collect()
    }

    fn period(&self) -> Duration {
        PERIOD
    }

    fn drain(&mut self, sink: &mut dyn Sink) -> f64 {
        let fill = self.read(sink);
        self.turn(sink);
        fill
    }

    fn started(&mut self, pid: u32) {
        // Nothing of it has been processed yet: both are done by this thread.
        self.transcoder.tasks().learn(pid, pid);
        if !self.whole_machine {
            self.transcoder.choose().add(pid);
        }
    }

    fn adopt(&mut self, pid: u32) -> Result<(), String> {
        if !self.whole_machine {
            for tid in threads::of(pid) {
                self.transcoder.tasks().learn(tid, pid);
                self.transcoder.choose().add(tid);
            }
        }
        Ok(())
    }

    fn pause(&mut self, paused: bool) {
        // If this fails, the recording only contains more than requested.
        let _ = self.enable(!paused);
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> SourceReport {
        if let Err(error) = self.enable(false) {
            sink.problem(told(&error));
        }
        // No more events are added: process the buffers, and what was read before.
        self.read(sink);
        self.turn(sink);
        self.turn(sink);
        let sums: Vec<_> = (0..self.cpus.len()).map(|cpu| self.account(cpu, sink)).collect();
        self.report(&sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(numbers("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(numbers("0"), [0]);
        assert_eq!(numbers("x,3-"), [0; 0]);
        assert_eq!(numbers("0-4294967295").len(), 8192);
    }
}
