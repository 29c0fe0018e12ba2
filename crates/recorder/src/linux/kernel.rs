// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel as a source of a recording: its events through tracefs, without a module.
//!
//! ```text
//! instance  a separate set of buffers, created and removed again
//! threads   existing threads, from /proc
//! perf      or perf's buffers, if no instance can be created
//! sampling  periodic call stacks of programs
//! lent      or an instance created by a helper for unprivileged users
//! probes    events at functions of programs, defined and removed again
//! ```
//!
//! Sources: Documentation/trace/ftrace.rst and events.rst of Linux.

mod buffer;
mod instance;
mod lent;
mod perf;
mod probes;
mod sampling;
mod threads;

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use lateralis_ring::{ClockKind, LossCounts, abi};

use self::instance::Instance;
use self::lent::Place;
pub use self::perf::PerfSource;
use self::probes::Probes;
pub use self::sampling::{SampleError, SampleOptions, SampleSource, SampleStack};
use super::clocks;
use crate::classes::RegisteredSchema;
use crate::kernel::choice::TASK_EVENTS;
use crate::kernel::probe::ProbeError;
use crate::kernel::{Choice, ChoiceError, ClockRelation, CpuStats, KernelEvents, Transcoder};
use crate::source::{Payload, Sink, Source, SourceReport, StreamPlan};

/// Reading wakes up a CPU, so it should be rare as long as nothing is lost. The kernel wakes the reader when
/// a buffer is half full.
const PERIOD: Duration = Duration::from_millis(100);

/// Kernel events to record.
#[derive(Debug, Clone)]
pub struct KernelOptions {
    /// Groups ([`crate::kernel::GROUPS`]), `SUBSYSTEM:EVENT` with `*` and `?`, or an event's name.
    pub events: Vec<String>,
    /// Functions and marked points of programs ([`crate::kernel::probe::Wish`]).
    pub probes: Vec<String>,
    /// Events of all processes; otherwise only those of the recorded programs and of programs they start.
    pub whole_machine: bool,
    /// Bytes of each CPU's buffer.
    pub buffer_bytes: u64,
    /// Path of tracefs; `None`: the usual one.
    pub tracefs: Option<std::path::PathBuf>,
    /// The interface to use.
    pub by: KernelBy,
    /// Use the kernel's monotonic clock and relate it to the recording's clock, even if the kernel
    /// has that clock.
    pub relate_clocks: bool,
}

/// Interface to the kernel's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KernelBy {
    /// An instance of tracefs; if none can be created, perf.
    #[default]
    Either,
    /// An instance of tracefs, which also selects processes and has the recording's clock.
    Tracefs,
    /// `perf_event_open`.
    Perf,
}

/// Creates the source. Nothing is recorded before [`Source::begin`].
///
/// Errors: see [`KernelError`]; then nothing was changed.
pub fn open(options: &KernelOptions) -> Result<Box<dyn Source>, KernelError> {
    let by_perf = |options| PerfSource::open(options).map(|source| Box::new(source) as _);
    if options.by == KernelBy::Perf {
        return by_perf(options);
    }
    match KernelSource::open(options) {
        Ok(source) => Ok(Box::new(source)),
        Err(KernelError::Unavailable(sentence)) if options.by == KernelBy::Either => {
            by_perf(options).map_err(|error| match error {
                // The user can do something about the first reason.
                KernelError::Unavailable(_) => KernelError::Unavailable(sentence),
                other => other,
            })
        }
        Err(error) => Err(error),
    }
}

/// Why kernel events cannot be recorded.
#[derive(Debug)]
pub enum KernelError {
    /// There is no such event.
    Choice(ChoiceError),
    /// There is no such program, function or point.
    Probe(ProbeError),
    /// A privilege or a file system is missing: a sentence with the cause, and what to do.
    Unavailable(String),
}

impl std::fmt::Display for KernelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KernelError::Choice(error) => error.fmt(f),
            KernelError::Probe(error) => error.fmt(f),
            KernelError::Unavailable(sentence) => f.write_str(sentence),
        }
    }
}

impl std::error::Error for KernelError {}

/// Kernel events through tracefs.
#[derive(Debug)]
pub struct KernelSource {
    instance: Instance,
    // Dropped after the instance: a probe that is enabled there cannot be removed.
    _probes: Option<Probes>,
    events: KernelEvents,
    transcoder: Transcoder,
    choice: Choice,
    /// The kernel's number of marks, if available.
    marks: Option<u16>,
    whole_machine: bool,
    relate_clocks: bool,
    clock: &'static str,
    relation: ClockRelation,
    kind: ClockKind,
    hz: u64,
    page: Vec<u8>,
    pages_max: usize,
    /// Losses reported so far, by CPU.
    told: Vec<LossCounts>,
}

impl KernelSource {
    /// Creates buffers in the kernel, and reads the descriptions of the events. Nothing is
    /// recorded before [`Source::begin`]. Buffers left by a killed recorder are removed.
    ///
    /// Errors: see [`KernelError`]; then nothing was changed.
    /// Cost: a file for each event; about ten milliseconds for all system calls.
    pub fn open(options: &KernelOptions) -> Result<KernelSource, KernelError> {
        let found = probes::find(&options.probes).map_err(KernelError::Probe)?;
        let place = Place::find(options.tracefs.as_deref()).map_err(KernelError::Unavailable)?;
        let available = place.available().map_err(KernelError::Unavailable)?;
        let words: Vec<&str> = options.events.iter().map(String::as_str).collect();
        let mut choice = Choice::new(&words, &available).map_err(KernelError::Choice)?;
        choice.add(&TASK_EVENTS, &available);
        let tracefs = place.tracefs();
        let mut instance = place.instance(&choice).map_err(KernelError::Unavailable)?;
        if let Some(tracefs) = &tracefs {
            instance::remove_abandoned(tracefs);
            probes::remove_abandoned(tracefs);
        }
        let mut formats = instance.formats(&choice);
        let marks = instance.marks();
        let marks = marks.map(|(format, id)| {
            formats.push(format);
            id
        });
        let mut probes = None;
        if !options.probes.is_empty() {
            let tracefs =
                tracefs.ok_or_else(|| KernelError::Unavailable(lent::NO_PROBES.into()))?;
            let defined = Probes::define(&tracefs, instance.number(), found);
            let defined = defined.map_err(KernelError::Unavailable)?;
            formats.extend(defined.formats(&tracefs));
            choice.events.extend(defined.names());
            probes = Some(defined);
        }
        let mut events = KernelEvents::new(&formats);
        let page_bytes =
            instance.prepare(options.buffer_bytes).map_err(KernelError::Unavailable)?;
        let header_page = instance.read("events/header_page").unwrap_or_default();
        let cpus = instance.cpus().len();
        let transcoder = Transcoder::new(&mut events, &header_page, page_bytes, cpus);
        Ok(KernelSource {
            transcoder,
            events,
            choice,
            marks,
            whole_machine: options.whole_machine,
            relate_clocks: options.relate_clocks,
            clock: "",
            relation: ClockRelation::Same,
            kind: clocks::native_kind(),
            hz: 0,
            page: vec![0; page_bytes],
            pages_max: (options.buffer_bytes as usize / page_bytes).max(2) + 16,
            told: vec![LossCounts::default(); cpus],
            instance,
            _probes: probes,
        })
    }

    /// Events that could not be described.
    pub fn problems(&self) -> &[String] {
        &self.events.problems
    }

    /// Sets the clock of the buffers: the recording's own if the kernel has it.
    fn set_clock(&mut self, kind: ClockKind) -> Result<(), String> {
        self.kind = kind;
        let same = match kind {
            ClockKind::X86Tsc => Some("x86-tsc"),
            ClockKind::MonotonicNs => Some("mono"),
            ClockKind::Aarch64Cntvct | ClockKind::Port => None,
        };
        let same = same.filter(|name| !self.relate_clocks && self.instance.offers_clock(name));
        self.clock = same.unwrap_or("mono");
        self.instance.write("trace_clock", self.clock)?;
        if same.is_none() {
            self.hz = clocks::frequency(kind).0;
            self.relate();
        }
        Ok(())
    }

    /// Measures the relation of the clocks.
    fn relate(&mut self) {
        if self.hz != 0 {
            let (ns, ticks) = clocks::monotonic_and_ticks(self.kind);
            self.relation = ClockRelation::Monotonic { ns, ticks, hz: self.hz };
        }
    }

    /// Reads all pages present; returns the fullest buffer's fraction.
    fn read_pages(&mut self) -> f64 {
        let mut most = 0;
        for cpu in 0..self.instance.cpus().len() {
            let mut pages = 0;
            // A faster writer continues in the next round. With the whole machine recorded, reading
            // itself creates events, so there are always more.
            let mut is_behind = true;
            while is_behind
                && pages < self.pages_max
                && self.instance.read_page(cpu, &mut self.page)
            {
                is_behind = self.transcoder.add(cpu, &self.page);
                pages += 1;
            }
            most = most.max(pages);
        }
        most as f64 / self.pages_max as f64
    }

    /// Selects a thread whose marks count, because the kernel returns the marks of all threads.
    fn choose_marks(&mut self, tid: u32) {
        if let Some(marks) = self.marks.filter(|_| !self.whole_machine) {
            self.transcoder.choose_of(marks).add(tid);
        }
    }

    fn turn(&mut self, sink: &mut dyn Sink) {
        self.relate();
        self.transcoder.turn(&self.relation, sink, &mut threads::process_of);
    }

    /// Reports losses that no page contained.
    fn tell_losses(&mut self, cpu: usize, stats: &CpuStats, sink: &mut dyn Sink) {
        let by_pages = self.transcoder.sums(cpu).missed;
        self.told[cpu].full = self.told[cpu].full.max(by_pages);
        let rest = stats.losses().since(&self.told[cpu]);
        if rest.total() > 0 {
            let until = sink.now();
            sink.lose(cpu, rest, until);
            self.told[cpu] = self.told[cpu].plus(&rest);
        }
    }

    fn report(&self, sums: &[(CpuStats, crate::kernel::transcode::CpuSums)]) -> SourceReport {
        let total = |of: &dyn Fn(&CpuStats) -> u64| sums.iter().map(|(stats, _)| of(stats)).sum();
        let causes: [(&str, u64); 3] = [
            ("overrun", total(&|stats| stats.overrun)),
            ("commit overrun", total(&|stats| stats.commit_overrun)),
            ("dropped events", total(&|stats| stats.dropped)),
        ];
        let scope = if self.whole_machine { "machine" } else { "recorded programs" };
        let guessed: u64 = sums.iter().map(|(_, sums)| sums.guessed).sum();
        let unreadable: u64 = sums.iter().map(|(_, sums)| sums.unreadable).sum();
        let marks = if self.marks.is_some() { "recorded" } else { "not offered" };
        let details = [
            ("marks", marks.to_owned()),
            ("trace_clock", self.clock.to_owned()),
            ("scope", scope.to_owned()),
            ("event_classes", self.choice.events.len().to_string()),
            ("buffer_bytes_per_cpu", self.instance.buffer_bytes().to_string()),
            ("events_read", total(&|stats| stats.read).to_string()),
            ("events_unreadable", unreadable.to_string()),
            ("threads_of_unknown_process", guessed.to_string()),
        ];
        SourceReport {
            details: details.map(|(name, value)| (name.to_owned(), value)).into(),
            lost: causes.map(|(name, count)| (name.to_owned(), count)).into(),
        }
    }
}

/// Common start of all interfaces, as soon as events are enabled: existing threads, and
/// events that could not be described. Events report later threads.
fn begin_with(events: &KernelEvents, transcoder: &mut Transcoder, began: u64, sink: &mut dyn Sink) {
    let list = threads::all();
    tell_threads(&list, began, sink);
    for process in &list {
        for (tid, _) in &process.threads {
            transcoder.tasks().learn(*tid, process.pid);
        }
    }
    for problem in &events.problems {
        sink.problem(problem.clone());
    }
}

/// Records existing threads, by records of the internal schema at `time`.
fn tell_threads(list: &[threads::Process], time: u64, sink: &mut dyn Sink) {
    let name_of = |name: &[u8], payload: &mut Payload<'_>| payload.text(name);
    for process in list {
        sink.record(0, (time, None), abi::ID_PROCESS, &mut |payload| {
            payload.put(4, &process.pid.to_ne_bytes());
            payload.put(4, &process.parent_pid.to_ne_bytes());
            name_of(&process.name, payload);
        });
        for (tid, name) in &process.threads {
            sink.record(0, (time, None), abi::ID_THREAD_NAME, &mut |payload| {
                payload.put(4, &process.pid.to_ne_bytes());
                payload.put(4, &tid.to_ne_bytes());
                name_of(name, payload);
            });
        }
    }
}

impl Source for KernelSource {
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
        self.instance.cpus().iter().map(stream).collect()
    }

    fn begin(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        self.set_clock(sink.clock())?;
        if !self.whole_machine {
            self.instance.choose_processes()?;
        }
        if let Some(marks) = self.marks.filter(|_| !self.whole_machine) {
            self.transcoder.choose_of(marks);
        }
        let began = sink.now();
        for problem in self.instance.enable(&self.choice)? {
            sink.problem(problem);
        }
        if let Some(problem) = self.instance.switch(true, self.marks.is_some())? {
            sink.problem(problem);
        }
        begin_with(&self.events, &mut self.transcoder, began, sink);
        Ok(())
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.instance.descriptors()
    }

    fn period(&self) -> Duration {
        PERIOD
    }

    fn drain(&mut self, sink: &mut dyn Sink) -> f64 {
        let fill = self.read_pages();
        self.turn(sink);
        fill
    }

    fn adoption(&self) -> Option<BorrowedFd<'_>> {
        self.instance.chosen_processes().map(AsFd::as_fd)
    }

    fn started(&mut self, pid: u32) {
        // It was created before it was selected, so no event reports it.
        self.transcoder.tasks().learn(pid, pid);
        self.choose_marks(pid);
    }

    fn adopt(&mut self, pid: u32) -> Result<(), String> {
        if self.whole_machine {
            return Ok(());
        }
        for tid in threads::of(pid) {
            self.choose_marks(tid);
            self.instance.choose_thread(tid).map_err(|cause| {
                format!("Cannot trace the kernel for a process: pid={pid}, cause={cause}")
            })?;
        }
        Ok(())
    }

    fn follows_somebody(&self) -> bool {
        self.instance.has_chosen_threads()
    }

    fn pause(&mut self, paused: bool) {
        // If this fails, the recording only contains more than requested.
        let _ = self.instance.switch(!paused, self.marks.is_some());
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> SourceReport {
        if let Err(problem) | Ok(Some(problem)) = self.instance.switch(false, self.marks.is_some())
        {
            sink.problem(problem);
        }
        // No more events are added, so this terminates.
        while self.read_pages() > 0.0 {
            self.turn(sink);
        }
        self.turn(sink);
        let mut sums = Vec::new();
        for cpu in 0..self.instance.cpus().len() {
            let stats = self.instance.stats(cpu);
            self.tell_losses(cpu, &stats, sink);
            let found = self.transcoder.sums(cpu);
            let all = found.events + found.unreadable + found.others;
            if stats.read != all {
                sink.problem(format!(
                    "Cannot account for all events of the kernel: cpu={}, given={}, found={}",
                    self.instance.cpus()[cpu],
                    stats.read,
                    all
                ));
            }
            if found.unreadable > 0 {
                let reason = format!("{} records that no description explains", found.unreadable);
                sink.damage(cpu, reason);
            }
            sums.push((stats, found));
        }
        self.report(&sums)
    }
}

/// Path of tracefs on this machine, if it can be used: for tests and messages.
///
/// Errors: a sentence for the user.
pub fn tracefs() -> Result<std::path::PathBuf, String> {
    instance::find(None::<&Path>)
}
