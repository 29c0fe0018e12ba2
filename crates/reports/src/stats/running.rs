// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who had the processors, and who waited for them: from switches and wake-ups.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use lateralis_analysis::{Call, CpuTime, Gaps, KernelTime, Numbering, Side, ThreadTime};
use lateralis_model::{Host, Quality, StreamIndex};
use lateralis_semantics::{Contradiction, Contradictions, Schedule, ThreadStateInterval};
use lateralis_store::facts::{At, Facts};
use lateralis_units::Nanos;
use serde_json::json;

use super::document::Member;
use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section, Who};
use super::thread_states::States;
use super::wakeups::{Missing, Wakeups};
use crate::contradictions;
use crate::table::{Align, Table};
use crate::values;

/// Buckets of the time series, at most; at least half as many where any time passes.
pub const BUCKETS: usize = 64;
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
    /// Numbers of those that were in the kernel.
    cpus: Numbering<u32>,
    threads: Numbering<u32>,
    /// By processor: the stream that alone tells of its switches.
    streams: HashMap<u32, Option<StreamIndex>>,
    /// Streams that tell alone of the switches of their processor.
    alone: Vec<bool>,
    schedule: Schedule,
    contradictions: Contradictions,
    kernel: KernelTime,
    kernel_kinds: Vec<InKernel>,
    wakeups: Wakeups,
    has_switches: bool,
    has_wakes: bool,
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
            streams: HashMap::new(),
            alone,
            schedule: Schedule::default(),
            contradictions: Contradictions::default(),
            kernel: KernelTime::new(gaps.clone()),
            kernel_kinds: facts.kinds().spans.iter().map(|kind| in_kernel(&kind.name)).collect(),
            wakeups: Wakeups::default(),
            has_switches: false,
            has_wakes: false,
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

    /// Switches of a processor contradict each other.
    pub fn contradiction(&mut self, contradiction: &Contradiction) {
        self.contradictions.push(contradiction);
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

    /// A processor turns to a thread, or to none.
    pub fn switch(&mut self, cpu: u32, at: &At, to: u32) {
        self.has_switches = true;
        let Some(number) = self.cpu(cpu) else {
            return;
        };
        let is_alone = |stream: &StreamIndex| self.alone.get(stream.0 as usize) == Some(&true);
        self.streams.insert(cpu, Some(at.stream).filter(is_alone));
        let to = (to != 0).then(|| self.threads.number(to));
        self.kernel.switch(number, at.time, to);
    }

    /// A thread is made ready to run; `is_whole`: its switches are there.
    pub fn wake(&mut self, is_whole: bool) {
        self.wakeups.has_any = true;
        self.has_wakes |= is_whole;
    }

    /// A thread did something until now.
    pub fn thread_state(&mut self, interval: &ThreadStateInterval) {
        self.wakeups.interval(interval);
    }

    /// Nothing more comes: how long threads and processors did what.
    pub fn finish(&mut self, end: Nanos, schedule: Schedule) {
        (self.end, self.schedule) = (end, schedule);
    }

    /// Nanoseconds of a thread in the kernel.
    fn kernel_of_thread(&self, tid: u32) -> u64 {
        self.threads.known(&tid).map_or(0, |thread| self.kernel.of_thread(thread))
    }

    /// Nanoseconds of a processor in the kernel.
    fn kernel_of_cpu(&self, cpu: u32) -> u64 {
        self.cpus.known(&cpu).map_or(0, |cpu| self.kernel.of_cpu(cpu))
    }

    /// Switches and wake-ups that are left out.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let mut all = Vec::from(self.wakeups.left_out());
        all.push(LeftOut {
            member: "cpus",
            section: Section::Cpus,
            what: "switches",
            of: "CPUs",
            most: Schedule::CPUS_MAX as u64,
            count: self.schedule.left_out(),
        });
        all
    }

    fn by_cpu(&self) -> Vec<(u32, &CpuTime)> {
        let mut all: Vec<_> = self.schedule.cpus().collect();
        all.sort_by_key(|(cpu, _)| *cpu);
        all
    }

    /// Switches that were not seen, at least.
    pub fn missing_count(&self) -> u64 {
        self.schedule.cpus().map(|(_, time)| time.missing_count).sum()
    }

    /// Threads that ran, those that ran longest first. One that only left a processor has run.
    fn by_thread(&self) -> Vec<(u32, &ThreadTime)> {
        let mut all: Vec<_> = self
            .schedule
            .ran()
            .filter(|(_, time)| {
                let counts = [time.schedule_count, time.missing_count, time.open_count];
                time.running_nanos > 0 || counts.iter().any(|count| *count > 0)
            })
            .collect();
        all.sort_by_key(|(tid, time)| (Reverse(time.running_nanos), *tid));
        all
    }

    /// By process, those that ran longest first.
    fn by_process(&self, who: Who<'_>) -> Vec<(u32, ProcessTime)> {
        let mut all: BTreeMap<u32, ProcessTime> = BTreeMap::new();
        for (tid, time) in self.by_thread() {
            let sums = all.entry(who.threads.process(tid).unwrap_or(tid)).or_default();
            sums.running_nanos = sums.running_nanos.saturating_add(time.running_nanos);
            sums.kernel_nanos = sums.kernel_nanos.saturating_add(self.kernel_of_thread(tid));
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
    fn cpu_trust(&self, cpu: u32, time: &CpuTime, trust: Trust) -> Trust {
        let sum = self.cpu_quality(cpu, trust);
        let value = if sum == Quality::Exact { sum } else { trust.value };
        // What was before the first switch and after the last can be added to both.
        let trust = Trust { sum, value }.without(time.missing_count);
        trust.at_least(time.unknown_nanos > 0)
    }

    fn cpu_quality(&self, cpu: u32, trust: Trust) -> Quality {
        let outside = || {
            self.gaps.between(Nanos(i64::MIN), self.begin)
                || self.gaps.between(self.end, Nanos(i64::MAX))
        };
        match self.streams.get(&cpu).copied().flatten() {
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

    /// How often switches to or from threads are missing.
    fn missing(&self) -> Missing {
        let missing = self.schedule.ran().filter(|(_, time)| time.missing_count > 0);
        Missing::of(missing.map(|(tid, time)| (tid, time.missing_count)))
    }

    fn states(&self) -> States<'_> {
        States { schedule: &self.schedule, has_wakes: self.has_wakes }
    }

    /// Members `cpus`, `threads`, `thread_states`, `applications`, `wakeups`, `contradictions` of the
    /// whole, where the trace has switches.
    pub fn json<'a>(
        &'a self,
        trust: Trust,
        who: Who<'a>,
        over: i64,
    ) -> Option<[(&'static str, Member<'a>); 6]> {
        if !self.has_switches {
            return None;
        }
        let share = move |nanos: u64| (over > 0).then(|| nanos as f64 / over as f64);
        let cpus = self.by_cpu().into_iter().map(move |(cpu, time)| {
            let of_unknown = trust.without(time.missing_count).value;
            let trust = self.cpu_trust(cpu, time, trust);
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
                row = row.number("kernel_ns", self.kernel_of_cpu(cpu), trust.at_least(true).sum);
            }
            row.value()
        });
        let threads = self.by_thread().into_iter().map(move |(tid, time)| {
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
                row = row.number("kernel_ns", self.kernel_of_thread(tid), trust.at_least(true).sum);
            }
            row.value()
        });
        let applications = self.by_process(who).into_iter().map(move |(pid, time)| {
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
        });
        Some([
            ("cpus", Member::rows(cpus)),
            ("threads", Member::rows(threads)),
            ("thread_states", self.states().json(trust, who)),
            ("applications", Member::rows(applications)),
            (
                "wakeups",
                self.wakeups.json(self.missing(), self.schedule.needless_wakes(), trust, who),
            ),
            (
                "contradictions",
                contradictions::json(&self.contradictions, |tid| who.name(tid, None)).into(),
            ),
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
        let buckets = cpus.iter().map(|(_, time)| time.busy.values().len()).max().unwrap_or(0);
        for (cpu, time) in cpus.iter().take(page.rows) {
            let of_unknown = page.trust.without(time.missing_count).value;
            let trust = self.cpu_trust(*cpu, time, page.trust);
            table.row([
                cpu.to_string(),
                mark(share(time.busy_nanos), trust.value),
                mark(share(time.idle_nanos), trust.value),
                mark(share(time.unknown_nanos), of_unknown),
                kernel(self.kernel_of_cpu(*cpu), trust),
                mark(values::count(time.switch_count), trust.sum),
                spark(time.busy.values(), time.busy.width_nanos(), buckets),
            ]);
        }
        page.table(Section::Cpus, "processors", &table, cpus.len());
        let (of_next, threads_of_next) = Host::new(1).steps();
        if cpus.iter().any(|(cpu, _)| *cpu >= of_next) {
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
        let (table, count) =
            contradictions::table(&self.contradictions, page.rows, |tid| who.thread(tid, None));
        page.table(Section::Cpus, contradictions::TITLE, &table, count);
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
        for (tid, time) in threads.iter().take(page.rows) {
            let trust = page.trust.without(time.missing_count).at_least(time.open_count > 0);
            table.row([
                who.thread(*tid, None),
                mark(values::time(time.running_nanos), trust.sum),
                mark(share(time.running_nanos), trust.value),
                kernel(self.kernel_of_thread(*tid), trust),
                mark(values::count(time.schedule_count), trust.sum),
                mark(values::count(time.migration_count), trust.value),
            ]);
        }
        page.table(Section::Threads, "threads", &table, threads.len());
        self.states().page(page, who);
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
        self.wakeups.page(&self.missing(), page, who);
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
