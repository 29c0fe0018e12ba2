// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time of threads off the CPU, by the stacks at which they left it.
//!
//! ```text
//! sample where a thread leaves ──► waits ──┬─ it is back: its weight is known
//! sched_switch, switch ────────────────────┘
//! ```

use std::collections::HashMap;

use lateralis_model::{Damage, Event, Quality, Value};
use lateralis_units::Nanos;

use super::{Gathered, Gathering, Sample, Samples, Unit};
use crate::Chosen;
use crate::places::Images;

/// Largest number of threads off the CPU at once.
const THREADS_MAX: usize = 1 << 20;
/// Bits of `prev_state` of a thread that ends: EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD [include/linux/sched.h].
const STATE_ENDS: u64 = 0x10 | 0x20 | 0x80;
/// Value of `prev_state` of a preempted thread: TASK_REPORT_MAX [include/trace/events/sched.h, Linux 4.14
/// and later; 0 before].
const STATE_PREEMPTED: u64 = 0x100;
/// Id of the idle threads.
const IDLE: u32 = 0;

/// Reason why a thread left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Blocked,
    Preempted,
    Unknown,
}

impl Cause {
    fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Preempted => "preempted",
            Self::Unknown => "off the processor",
        }
    }
}

/// A thread that left a CPU.
struct Left {
    since: Nanos,
    cause: Cause,
    sample: Sample,
    is_chosen: bool,
}

/// Information about running threads in an event.
enum Says {
    /// This thread is on a CPU.
    Back(u32),
    /// This thread left, for this reason.
    Left(u32, Cause),
    /// This thread left for good, or ended.
    Ended(u32),
}

/// Times off the CPU.
#[derive(Debug, Clone, Default)]
pub struct OffCpu {
    /// By reason, in nanoseconds.
    pub gathered: Gathered,
    /// Threads that were still off the CPU at the end of the recording: their weight is a lower bound.
    pub still: u64,
    /// Number of times with an unknown end.
    pub unknown: u64,
    /// Whether any event reports that a thread is back.
    pub says_who_is_back: bool,
    /// Whether samples represent more than one departure: then most are missing.
    pub is_partly: bool,
    /// Switches to another thread than the one that leaves the CPU next: a switch in between is missing
    /// from the trace. A thread may have been back, and have left again, unseen: every time may be too
    /// long.
    pub missing_switches: u64,
    /// Whether only perf's tracepoint reports that a thread is back. perf misses hits of it while it
    /// writes an event, without a record of a loss, and not all of these can be detected: no time is
    /// certain.
    pub is_by_perf_tracepoint: bool,
}

/// Whether a sample is taken where a thread leaves a CPU.
fn is_leaving(event: &Event<'_>) -> bool {
    let name = event.class.name.as_str();
    let name = name.strip_prefix("perf:").unwrap_or(name);
    // perf appends modifiers after a colon: `context-switches:u`.
    let base = name.split(':').next().unwrap_or(name);
    matches!(base, "context_switches" | "context-switches" | "cs") || is_sched_switch(name)
}

fn is_sched_switch(name: &str) -> bool {
    matches!(name, "sched:sched_switch" | "sched_switch" | "at_sched_switch")
}

/// Collects the times of threads off the CPU by stack, like [`super::gather`].
///
/// Cost: a pass over all events. Memory: proportional to paths, functions, and threads off the CPU at
/// once.
pub fn off_cpu(chosen: &Chosen<'_>, images: &mut dyn Images, shows_inlined: bool) -> OffCpu {
    let mut samples = Samples::new(images, &chosen.trace).with_inlined(shows_inlined);
    samples.call(chosen.source.names());
    let mut all = Waits {
        gathering: Gathering { samples, stacks: Default::default() },
        left: HashMap::new(),
        found: OffCpu::default(),
    };
    (chosen.begins)();
    let (begin, end) = chosen.ends();
    let mut last = begin;
    let mut chain = Chain::of(chosen);
    let mut events = chosen.source.events();
    while let Some(event) = events.next_event() {
        if event.time > end {
            break;
        }
        last = event.time;
        if let Some([from, to]) = switch(&event) {
            let is_missing = chain.breaks(&event, from, to) && event.time >= begin;
            all.found.missing_switches += u64::from(is_missing);
            all.found.is_by_perf_tracepoint |= chain.is_of_perf && !chain.has_records;
        }
        chain.has_records |= is_switch_record(&event);
        // Ends of threads come from events about mappings, too.
        let (first, second) = says(&event);
        first.into_iter().for_each(|says| all.says(event.time, says));
        if !all.gathering.samples.see(&event)
            && is_leaving(&event)
            && all.gathering.samples.is_sample(&event)
        {
            let is_chosen = event.time >= begin && (chosen.contains)(&event);
            all.leaves(&event, is_chosen);
        }
        second.into_iter().for_each(|says| all.says(event.time, says));
    }
    let mut damage = chosen.source.damage().to_vec();
    damage.extend(events.damage());
    all.finish(last, damage)
}

/// Effects of an event that apply before the sample that it may be, and after it.
fn says(event: &Event<'_>) -> (Option<Says>, Option<Says>) {
    let Some(payload) = event.payload() else { return (None, None) };
    let number = |name: &str| match payload.get(name)?.value() {
        Value::Signed(value) => u64::try_from(value).ok(),
        _ => payload.get(name)?.as_u64(),
    };
    let thread = |name: &str| number(name).and_then(|tid| u32::try_from(tid).ok());
    let name = event.class.name.as_str();
    let name = name.strip_prefix("perf:").unwrap_or(name);
    match name {
        "switch" | "switch_cpu_wide" => {
            let Some(tid) = event.writer.map(|writer| writer.tid) else { return (None, None) };
            let is = |name: &str| number(name).is_some_and(|is| is != 0);
            match (is("out"), is("preempt")) {
                (false, _) => (Some(Says::Back(tid)), None),
                (true, true) => (None, Some(Says::Left(tid, Cause::Preempted))),
                (true, false) => (None, Some(Says::Left(tid, Cause::Blocked))),
            }
        }
        "exit" => (thread("tid").map(Says::Ended), None),
        _ if is_sched_switch(name) => {
            let state = number("prev_state").map(|state| match state {
                _ if state & STATE_ENDS != 0 => None,
                0 => Some(Cause::Preempted),
                _ if state & STATE_PREEMPTED != 0 => Some(Cause::Preempted),
                _ => Some(Cause::Blocked),
            });
            let left = thread("prev_pid").and_then(|tid| match state? {
                None => Some(Says::Ended(tid)),
                Some(cause) => Some(Says::Left(tid, cause)),
            });
            (thread("next_pid").map(Says::Back), left)
        }
        _ => (None, None),
    }
}

/// Checks that each thread that leaves a CPU is the one that came there before.
///
/// A missing switch can be detected only if all switches of a CPU are recorded, and only if the switch
/// back is not missing as well.
#[derive(Default)]
struct Chain {
    /// By stream, each of one CPU: the thread that came there last.
    runs: Vec<Option<u32>>,
    is_of_perf: bool,
    /// Whether there are switch records, of which perf never misses any.
    has_records: bool,
}

impl Chain {
    fn of(chosen: &Chosen<'_>) -> Self {
        let streams = chosen.source.streams();
        let is_by_cpu = streams.iter().all(|stream| stream.cpu.is_some());
        let is_of_perf = chosen.source.format().contains("perf.data");
        let runs = if is_by_cpu && is_of_perf { vec![None; streams.len()] } else { Vec::new() };
        Self { runs, is_of_perf, has_records: false }
    }

    /// Whether a switch is missing before this one.
    fn breaks(&mut self, event: &Event<'_>, from: Option<u32>, to: Option<u32>) -> bool {
        let Some(runs) = self.runs.get_mut(event.stream.0 as usize) else { return false };
        let before = std::mem::replace(runs, to);
        before.is_some() && from.is_some() && before != from
    }
}

fn is_switch_record(event: &Event<'_>) -> bool {
    let name = event.class.name.as_str();
    matches!(name.strip_prefix("perf:").unwrap_or(name), "switch" | "switch_cpu_wide")
}

/// Previous and next thread of a switch.
fn switch(event: &Event<'_>) -> Option<[Option<u32>; 2]> {
    if !is_sched_switch(&event.class.name) {
        return None;
    }
    let payload = event.payload()?;
    let thread = |name: &str| match payload.get(name)?.value() {
        Value::Signed(value) => u32::try_from(value).ok(),
        _ => payload.get(name)?.as_u64().and_then(|value| u32::try_from(value).ok()),
    };
    Some(["prev_pid", "next_pid"].map(thread))
}

struct Waits<'i> {
    gathering: Gathering<'i>,
    left: HashMap<u32, Left>,
    found: OffCpu,
}

impl Waits<'_> {
    fn leaves(&mut self, event: &Event<'_>, is_chosen: bool) {
        let Some(sample) = self.gathering.samples.read(event) else { return };
        let tid = sample.tid;
        if tid == IDLE {
            return;
        }
        self.found.is_partly |= is_chosen && sample.weight > 1;
        let left = Left { since: event.time, cause: Cause::Unknown, sample, is_chosen };
        let is_room = self.left.len() < THREADS_MAX;
        match self.left.get_mut(&tid) {
            // Two samples of one departure, from two events.
            Some(before) if before.cause == Cause::Unknown && before.since == event.time => {}
            Some(before) => {
                self.found.unknown += u64::from(before.is_chosen);
                *before = left;
            }
            None if is_room => {
                self.left.insert(tid, left);
            }
            None => self.found.unknown += u64::from(is_chosen),
        }
    }

    fn says(&mut self, now: Nanos, says: Says) {
        match says {
            Says::Back(tid) => {
                self.found.says_who_is_back = true;
                if let Some(left) = self.left.remove(&tid) {
                    self.weigh(left, now);
                }
            }
            Says::Left(tid, cause) => {
                if let Some(left) = self.left.get_mut(&tid)
                    && left.cause == Cause::Unknown
                {
                    left.cause = cause;
                }
            }
            Says::Ended(tid) => {
                self.left.remove(&tid);
            }
        }
    }

    fn weigh(&mut self, Left { since, cause, mut sample, is_chosen }: Left, now: Nanos) {
        if is_chosen {
            sample.weight = u64::try_from(now.0 - since.0).unwrap_or(0);
            self.gathering.add(cause.name(), &sample);
        }
    }

    fn finish(mut self, end: Nanos, damage: Vec<Damage>) -> OffCpu {
        let mut still: Vec<(u32, Left)> = self.left.drain().collect();
        still.sort_unstable_by_key(|(tid, left)| (left.since, *tid));
        for (_, left) in still {
            if self.found.says_who_is_back {
                self.found.still += u64::from(left.is_chosen);
                self.weigh(left, end);
            } else {
                self.found.unknown += u64::from(left.is_chosen);
            }
        }
        let mut gathered = self.gathering.finish(damage);
        gathered.stacks.iter_mut().for_each(|stacks| stacks.unit = Unit::Nanos);
        gathered.stacks.sort_by_key(|stacks| std::cmp::Reverse(stacks.weight));
        let is_unknown = self.found.missing_switches > 0
            || self.found.is_by_perf_tracepoint
            || self.found.is_partly;
        let is_least =
            self.found.still > 0 || self.found.unknown > 0 || !gathered.damage.is_empty();
        gathered.quality = Some(match (is_unknown, is_least) {
            (true, _) => Quality::Unknown,
            (false, true) => Quality::LowerBound,
            (false, false) => Quality::Exact,
        });
        OffCpu { gathered, ..self.found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_events_where_threads_leave() {
        assert!(is_sched_switch("sched:sched_switch") && !is_sched_switch("sched_switch_2"));
    }
}
