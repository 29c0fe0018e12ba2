// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who had the processors, and who waited for them: from switches and wake-ups.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use lateralis_analysis::{
    Call, CpuTime, Gaps, KernelTime, Numbering, Occupant, Side, Switch, ThreadTime, Utilisation,
};
use lateralis_model::{Host, Quality, StreamIndex};
use lateralis_store::facts::{At, Facts, Leaving, WakeMoment, Waker};
use lateralis_units::Nanos;
use serde_json::{Value, json};

use super::mark::{Row, Trust, mark};
use super::page::{Page, Section, Who};
use super::thread_states::{Numbers, States};
use super::wakeups::{Switched, Wakeups};
use crate::table::{Align, Table};
use crate::values;

/// Buckets of the time series, at most; at least half as many where any time passes.
const BUCKETS: usize = 64;
/// Processors that are told apart; a damaged trace may name four thousand million.
const CPUS_MAX: usize = 1 << 16;

/// Spans that interrupt whoever runs.
const INTERRUPTS: [&str; 4] = ["irq", "softirq", "timer", "hrtimer"];

/// What a kind of span is to the processor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InKernel {
    No,
    Call,
    Fault,
    Interrupt,
}

/// Everything about processors and threads.
pub struct Running {
    cpus: Numbering<u32>,
    threads: Numbering<u32>,
    /// By processor: the stream that alone tells of its switches.
    streams: Vec<Option<StreamIndex>>,
    /// Streams that tell alone of the switches of their processor.
    alone: Vec<bool>,
    utilisation: Utilisation,
    kernel: KernelTime,
    kernel_kinds: Vec<InKernel>,
    wakeups: Wakeups,
    states: States,
    has_switches: bool,
    has_kernel: bool,
    gaps: Gaps,
    begin: Nanos,
    end: Nanos,
}

/// What the threads of a process had together.
#[derive(Default)]
struct ProcessTime {
    running_nanos: u64,
    kernel_nanos: u64,
    schedule_count: u64,
    missing_count: u64,
    open_count: u64,
    thread_count: u64,
}

impl Running {
    /// From `begin` on, with the kinds of spans of these facts; `alone` is [`Facts::alone_streams`].
    pub fn new(facts: &Facts, begin: Nanos, gaps: &Gaps, alone: Vec<bool>) -> Self {
        // Without switches nobody knows whose the time in the kernel is.
        let is_told = facts.has_switches();
        let in_kernel = |name: &str| {
            if !is_told {
                InKernel::No
            } else if name == "syscall" || name.starts_with("syscall ") {
                InKernel::Call
            } else if name == "page_fault" {
                InKernel::Fault
            } else if INTERRUPTS.contains(&name) {
                InKernel::Interrupt
            } else {
                InKernel::No
            }
        };
        Self {
            cpus: Numbering::default(),
            threads: Numbering::default(),
            streams: Vec::new(),
            alone,
            utilisation: Utilisation::new(begin, BUCKETS, gaps.clone()),
            kernel: KernelTime::new(gaps.clone()),
            kernel_kinds: facts.kinds().spans.iter().map(|kind| in_kernel(&kind.name)).collect(),
            wakeups: Wakeups::new(begin, gaps.clone()),
            states: States::new(gaps.clone()),
            has_switches: false,
            has_kernel: false,
            gaps: gaps.clone(),
            begin,
            end: begin,
        }
    }

    fn cpu(&mut self, cpu: u32) -> Option<u32> {
        let has_room = self.cpus.len() < CPUS_MAX || self.cpus.known(&cpu).is_some();
        has_room.then(|| self.cpus.number(cpu))
    }

    /// Something happened on a processor.
    #[inline]
    pub fn appear(&mut self, cpu: u32, time: Nanos) {
        if let Some(cpu) = self.cpu(cpu) {
            self.utilisation.appear(cpu, time);
        }
    }

    /// A span begins or ends.
    pub fn span(&mut self, kind: u32, side: Side, at: &At, time: Nanos) {
        let (begins, cpu) = (side == Side::Begin, at.cpu);
        let in_kernel = self.kernel_kinds.get(kind as usize).copied().unwrap_or(InKernel::No);
        let cpu = cpu.filter(|_| in_kernel != InKernel::No);
        let Some(cpu) = cpu.and_then(|cpu| self.cpu(cpu)) else {
            return;
        };
        self.has_kernel = true;
        match (in_kernel, begins) {
            (InKernel::Interrupt, true) => self.kernel.interrupt(cpu, kind, time),
            (InKernel::Interrupt, false) => self.kernel.return_from_interrupt(cpu, kind, time),
            // The idle thread makes no calls.
            (InKernel::Call | InKernel::Fault, begins) => {
                let tid = at.writer.map(|writer| writer.tid);
                let Some(tid) = tid.filter(|tid| *tid != 0) else {
                    return;
                };
                let thread = self.threads.number(tid);
                match begins {
                    true => {
                        let is_nested = in_kernel == InKernel::Fault;
                        self.kernel.call(cpu, thread, Call { kind, is_nested }, time);
                    }
                    false => self.kernel.return_from_call(cpu, thread, kind, time),
                }
            }
            (InKernel::No, _) => {}
        }
    }

    /// A processor turns from one thread to another, each with whether all its switches are there.
    pub fn switch(
        &mut self,
        cpu: u32,
        at: &At,
        (from, leaving, is_since_last): (u32, Leaving, bool),
        (to, to_is_whole): (u32, bool),
    ) {
        let (stream, time) = (at.stream, at.time);
        self.has_switches = true;
        let Some(cpu) = self.cpu(cpu) else {
            return;
        };
        let index = cpu as usize;
        if index >= self.streams.len() {
            self.streams.resize(index + 1, None);
        }
        let stream = Some(stream).filter(|s| self.alone.get(s.0 as usize) == Some(&true));
        self.streams[index] = stream;
        let mut number = |tid: u32| (tid != 0).then(|| self.threads.number(tid));
        let (from, to) = (number(from), number(to));
        let occupant = |thread: Option<u32>| thread.map_or(Occupant::Idle, Occupant::Thread);
        let (leaves, comes) = (Some(occupant(from)), Some(occupant(to)));
        self.utilisation.push(Switch { time, cpu, stream, from: leaves, to: comes, is_since_last });
        self.kernel.switch(cpu, time, to);
        self.wakeups.switch(time, from, to);
        self.states.switch(time, cpu, (from, leaving, is_since_last), (to, to_is_whole));
    }

    /// A thread, with whether all its switches are there, is made ready to run: by whom, and at which
    /// moment of its wake-up.
    pub fn wake(
        &mut self,
        time: Nanos,
        (waker, moment): (Waker, WakeMoment),
        (tid, is_whole): (u32, bool),
    ) {
        if tid == 0 {
            return;
        }
        let thread = self.threads.number(tid);
        if is_whole {
            self.states.wake(time, thread, moment == WakeMoment::BeginOfNew);
        }
        // Among latencies it counts where it began.
        if moment != WakeMoment::QueuedAgain {
            self.wakeups.wake(time, (waker, moment.is_begin()), thread);
        }
    }

    /// Gives everybody the time up to the end.
    pub fn finish(&mut self, end: Nanos) {
        self.end = end;
        self.utilisation.finish(end);
        self.states.finish(end);
    }

    fn tid(&self, thread: u32) -> u32 {
        self.threads.things().get(thread as usize).copied().unwrap_or(0)
    }

    fn by_cpu(&self) -> Vec<(u32, u32, &CpuTime)> {
        let cpus = self.cpus.things().iter().copied();
        let times = cpus.zip(self.utilisation.cpus()).enumerate();
        let mut all: Vec<_> = times.map(|(n, (cpu, time))| (cpu, n as u32, time)).collect();
        all.sort_by_key(|(cpu, ..)| *cpu);
        all
    }

    /// Switches that were not seen, at least.
    pub fn missing_count(&self) -> u64 {
        self.utilisation.cpus().iter().map(|time| time.missing_count).sum()
    }

    /// Threads that ran, those that ran longest first. One that only left a processor has run.
    fn by_thread(&self) -> Vec<(u32, u32, &ThreadTime)> {
        let times = self.utilisation.threads().iter().enumerate();
        let ran = times.filter(|(_, time)| {
            let counts = [time.schedule_count, time.missing_count, time.open_count];
            time.running_nanos > 0 || counts.iter().any(|count| *count > 0)
        });
        let mut all: Vec<_> = ran.map(|(n, time)| (self.tid(n as u32), n as u32, time)).collect();
        all.sort_by_key(|(tid, _, time)| (Reverse(time.running_nanos), *tid));
        all
    }

    /// By process, those that ran longest first.
    fn by_process(&self, who: Who<'_>) -> Vec<(u32, ProcessTime)> {
        let mut all: BTreeMap<u32, ProcessTime> = BTreeMap::new();
        for (tid, number, time) in self.by_thread() {
            let sums = all.entry(who.threads.process(tid).unwrap_or(tid)).or_default();
            sums.running_nanos = sums.running_nanos.saturating_add(time.running_nanos);
            let in_kernel = self.kernel.of_thread(number);
            sums.kernel_nanos = sums.kernel_nanos.saturating_add(in_kernel);
            sums.schedule_count += time.schedule_count;
            sums.missing_count += time.missing_count;
            sums.open_count += time.open_count;
            sums.thread_count += 1;
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(pid, sums)| (Reverse(sums.running_nanos), *pid));
        all
    }

    /// How far what is said of a processor can be trusted: only its own stream tells of it, but
    /// those of others may tell that the trace began earlier or ended later.
    fn cpu_trust(&self, number: u32, time: &CpuTime, trust: Trust) -> Trust {
        let sum = self.cpu_quality(number, trust);
        let value = if sum == Quality::Exact { sum } else { trust.value };
        // What was before the first switch and after the last can be added to both.
        let trust = Trust { sum, value }.without(time.missing_count);
        trust.at_least(time.unknown_nanos > 0)
    }

    fn cpu_quality(&self, number: u32, trust: Trust) -> Quality {
        let outside = || {
            self.gaps.between(Nanos(i64::MIN), self.begin)
                || self.gaps.between(self.end, Nanos(i64::MAX))
        };
        match self.streams.get(number as usize).copied().flatten() {
            _ if trust.sum == Quality::Exact => Quality::Exact,
            _ if outside() => trust.sum,
            Some(stream) => {
                let all = (Nanos(i64::MIN), Nanos(i64::MAX));
                let touched = self.gaps.touch_stream(stream, all.0, all.1);
                if touched { Quality::LowerBound } else { Quality::Exact }
            }
            None => trust.sum,
        }
    }

    fn switched(&self) -> Switched<'_> {
        Switched { tids: self.threads.things(), times: self.utilisation.threads() }
    }

    fn numbers(&self) -> Numbers<'_> {
        Numbers { threads: self.threads.things(), cpus: self.cpus.things() }
    }

    /// Members `cpus`, `threads`, `thread_states`, `applications`, `wakeups` of the whole, where the trace
    /// has switches.
    pub fn json(
        &self,
        trust: Trust,
        who: Who<'_>,
        over: i64,
    ) -> Option<[(&'static str, Value); 5]> {
        if !self.has_switches {
            return None;
        }
        let share = |nanos: u64| (over > 0).then(|| nanos as f64 / over as f64);
        let cpus: Vec<Value> = self
            .by_cpu()
            .into_iter()
            .map(|(cpu, number, time)| {
                let of_unknown = trust.without(time.missing_count).value;
                let trust = self.cpu_trust(number, time, trust);
                let series = json!({
                    "begin_ns": self.begin.0,
                    "bucket_ns": time.busy.width_nanos(),
                    "busy_ns": time.busy.values(),
                });
                let mut row = Row::default()
                    .plain("cpu", cpu)
                    .number("busy_ns", time.busy_nanos, trust.sum)
                    .number("idle_ns", time.idle_nanos, trust.sum)
                    .number("unknown_ns", time.unknown_nanos, of_unknown)
                    // The whole may be longer, too.
                    .number("utilisation", share(time.busy_nanos), trust.value)
                    .number("switches", time.switch_count, trust.sum)
                    .plain("missing_switches", time.missing_count)
                    .number("series", series, trust.value);
                if self.has_kernel {
                    row = row.number(
                        "kernel_ns",
                        self.kernel.of_cpu(number),
                        trust.at_least(true).sum,
                    );
                }
                row.value()
            })
            .collect();
        let threads: Vec<Value> = self
            .by_thread()
            .into_iter()
            .map(|(tid, number, time)| {
                let trust = trust.without(time.missing_count).at_least(time.open_count > 0);
                let mut row = Row::default()
                    .plain("tid", tid)
                    .plain("pid", who.threads.process(tid))
                    .plain("thread", who.name(tid, None))
                    .plain("priority", who.threads.get(tid).and_then(|thread| thread.priority))
                    .number("running_ns", time.running_nanos, trust.sum)
                    .number("utilisation", share(time.running_nanos), trust.value)
                    .number("schedules", time.schedule_count, trust.sum)
                    .number("migrations", time.migration_count, trust.value);
                if self.has_kernel {
                    row = row.number(
                        "kernel_ns",
                        self.kernel.of_thread(number),
                        trust.at_least(true).sum,
                    );
                }
                row.value()
            })
            .collect();
        let applications: Vec<Value> = self
            .by_process(who)
            .into_iter()
            .map(|(pid, time)| {
                let trust = trust.without(time.missing_count).at_least(time.open_count > 0);
                let mut row = Row::default()
                    .plain("pid", pid)
                    .plain("application", who.process(pid))
                    .number("running_ns", time.running_nanos, trust.sum)
                    .number("utilisation", share(time.running_nanos), trust.value)
                    .number("schedules", time.schedule_count, trust.sum)
                    .number("threads", time.thread_count, trust.sum);
                if self.has_kernel {
                    row = row.number("kernel_ns", time.kernel_nanos, trust.at_least(true).sum);
                }
                row.value()
            })
            .collect();
        Some([
            ("cpus", json!(cpus)),
            ("threads", json!(threads)),
            ("thread_states", self.states.json(self.numbers(), trust, who)),
            ("applications", json!(applications)),
            ("wakeups", self.wakeups.json(self.switched(), trust, who)),
        ])
    }

    /// The tables.
    pub fn page(&self, page: &mut Page<'_>, who: Who<'_>, over: i64) {
        use Align::{Left, Right};
        if !self.has_switches {
            return;
        }
        let share = |nanos: u64| percent(nanos, over);
        let kernel = |nanos: u64, trust: Trust| match self.has_kernel {
            // Nobody tells of every way into the kernel.
            true => mark(share(nanos), trust.at_least(true).value),
            false => String::new(),
        };
        let mut table = Table::new(&[
            ("cpu", Right),
            ("busy", Right),
            ("idle", Right),
            ("unknown", Right),
            ("in kernel", Right),
            ("switches", Right),
            ("busy over time", Left),
        ]);
        let cpus = self.by_cpu();
        let buckets = cpus.iter().map(|(.., time)| time.busy.values().len()).max().unwrap_or(0);
        for (cpu, number, time) in cpus.iter().take(page.rows) {
            let of_unknown = page.trust.without(time.missing_count).value;
            let trust = self.cpu_trust(*number, time, page.trust);
            table.row([
                cpu.to_string(),
                mark(share(time.busy_nanos), trust.value),
                mark(share(time.idle_nanos), trust.value),
                mark(share(time.unknown_nanos), of_unknown),
                kernel(self.kernel.of_cpu(*number), trust),
                mark(values::count(time.switch_count), trust.sum),
                spark(time.busy.values(), time.busy.width_nanos(), buckets),
            ]);
        }
        page.table(Section::Cpus, "processors", &table, cpus.len());
        let (of_next, threads_of_next) = Host::new(1).steps();
        if cpus.iter().any(|(cpu, ..)| *cpu >= of_next) {
            page.remark(
                Section::Cpus,
                &format!(
                    "processors from {of_next} and threads from {threads_of_next} on are of another machine"
                ),
            );
        }
        if self.missing_count() > 0 {
            let missing = values::count(self.missing_count());
            page.remark(
                Section::Cpus,
                &format!(
                    "at least {missing} switches are missing: other threads left than had come"
                ),
            );
        }
        let head = |first| {
            Table::new(&[
                (first, Left),
                ("running", Right),
                ("of the time", Right),
                ("in kernel", Right),
                ("schedules", Right),
                ("migrations", Right),
            ])
        };
        let mut table = head("thread");
        let threads = self.by_thread();
        for (tid, number, time) in threads.iter().take(page.rows) {
            let trust = page.trust.without(time.missing_count).at_least(time.open_count > 0);
            table.row([
                who.thread(*tid, None),
                mark(values::time(time.running_nanos), trust.sum),
                mark(share(time.running_nanos), trust.value),
                kernel(self.kernel.of_thread(*number), trust),
                mark(values::count(time.schedule_count), trust.sum),
                mark(values::count(time.migration_count), trust.value),
            ]);
        }
        page.table(Section::Threads, "threads", &table, threads.len());
        self.states.page(self.numbers(), page, who);
        let applications = self.by_process(who);
        let mut table = head("application");
        for (pid, time) in applications.iter().take(page.rows) {
            let trust = page.trust.without(time.missing_count).at_least(time.open_count > 0);
            table.row([
                who.process(*pid),
                mark(values::time(time.running_nanos), trust.sum),
                mark(share(time.running_nanos), trust.value),
                kernel(time.kernel_nanos, trust),
                mark(values::count(time.schedule_count), trust.sum),
            ]);
        }
        page.table(Section::Applications, "applications", &table, applications.len());
        self.wakeups.page(self.switched(), page, who);
    }
}

fn percent(nanos: u64, over: i64) -> String {
    if over <= 0 {
        return String::new();
    }
    format!("{:.1} %", nanos as f64 * 100.0 / over as f64)
}

/// How busy each bucket is, in eight steps; `·` for not at all.
fn spark(busy: &[u64], width: u64, buckets: usize) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let step = |index: usize| match busy.get(index).copied().unwrap_or(0) {
        0 => '·',
        nanos => STEPS[(nanos as f64 / width as f64 * 7.99) as usize % 8],
    };
    (0..buckets).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_how_busy_each_bucket_is() {
        assert_eq!(spark(&[0, 1, 500, 1000], 1000, 5), "·▁▄█·");
        assert_eq!(percent(1, 0), "");
        assert_eq!(percent(125, 1000), "12.5 %");
    }
}
