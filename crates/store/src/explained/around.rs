// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collects the scheduling graph around one span for critical-path analysis.

use std::collections::{HashMap, HashSet};

use lateralis_analysis::path::{
    Busy, Did, Doing, Hold, Message, Named, Occupant, Occupied, Path, Scene, SceneBuilder, Segment,
    Share, State, Waiting, WokenBy, causes, shares,
};
use lateralis_analysis::{Numbering, Span, ThreadState};
use lateralis_model::role::KEY_CPU;
use lateralis_model::{Damage, Event, Interval, Quality, Trace};
use lateralis_semantics::{
    CpuInterval, DerivedFlow, DerivedSink, DerivedSpan, SpanStatus, ThreadStateInterval,
};
use lateralis_units::Nanos;

use super::found::Found;
use super::locks::{Locks, Part, object};
use crate::chosen::Chosen;
use crate::facts::{At, Fact, Facts, Kind, Kinds, Waker};

/// A critical path with the names of everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The span.
    pub found: Found,
    /// The segments.
    pub path: Path,
    /// Distribution of the time.
    pub shares: Vec<Share>,
    /// Names of spans and channels by number.
    pub names: Vec<String>,
    /// Id and name of each thread.
    pub threads: Vec<(u32, Option<String>)>,
    /// Quality: unknown if events are missing inside the span or before it, as those before determine the
    /// open spans, lock owners and messages in flight at its begin.
    pub quality: Quality,
    /// Whether events are missing inside the span.
    pub is_missing_inside: bool,
    /// Whether events are missing inside or before, as far as it matters.
    pub is_missing: bool,
    /// Whether a thread waits on the path and its waker is not known for certain: then the quality is
    /// unknown as well.
    pub is_waker_unknown: bool,
    /// Unknown parts of the path, and how to record the missing information.
    pub hints: Vec<Hint>,
    /// Page faults in each segment; empty if the trace does not contain them.
    pub page_faults: Vec<u64>,
}

/// Information that is missing from a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hint {
    /// The missing information.
    pub what: &'static str,
    /// Options of `lat record` that record it.
    pub record: &'static str,
}

/// State saved for an event.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// Time since which its thread may have been waiting.
    idle_since: Nanos,
    /// Object of the wait, if it begins one.
    object: Option<u64>,
}

struct Gathering<'a> {
    begin: Nanos,
    locks: Locks,
    builder: SceneBuilder,
    waitings: Vec<Waiting>,
    holds: Vec<Hold>,
    tids: Numbering<u32>,
    /// Time since which the thread of the event may have been waiting, and the object of the wait if one
    /// begins.
    seen: Seen,
    /// CPU of the event.
    cpu: Option<u32>,
    /// Time since which that thread may have been waiting after the event.
    next_idle_since: Nanos,
    /// Number of open spans of a kind on a thread; kinds that had two open at once are not activities of
    /// the thread.
    open: HashMap<(u32, u32), u32>,
    things: HashSet<u32>,
    /// Time since which each thread may have been waiting, as of its last event.
    idle_since: HashMap<u32, Nanos>,
    /// Open interrupts of each CPU: begin and name.
    interrupts: HashMap<u32, Vec<(Nanos, u32, u32)>>,
    /// Last completion of a device on each CPU.
    completed: HashMap<u32, (Nanos, u32)>,
    /// Names of interrupts and devices.
    labels: Vec<String>,
    /// Times of page faults by thread.
    faults: HashMap<u32, Vec<Nanos>>,
    fault_count: usize,
    facts: &'a Facts,
}

/// Largest number of distinct names of interrupts and devices; further ones share the last name.
const LABELS_MAX: usize = 256;
/// Largest number of page faults that are stored.
const FAULTS_MAX: usize = 1 << 22;
/// If the trace has no interrupts: a completion by a device at most this long before a wakeup, on the
/// same CPU, is taken as its purpose.
const COMPLETION_NS: i64 = 100_000;
/// Names of software interrupts by their number (`include/linux/interrupt.h`).
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

impl Explained {
    /// Walks back through the events around a span. Of the selection only the time range is used: events
    /// outside of the selection may be causes of waits.
    ///
    /// Cost: one pass over the events up to the end of the span; memory proportional to events inside it.
    #[must_use]
    pub fn of(chosen: &Chosen<'_>, found: &Found) -> Self {
        let (begin, end) = (found.span.begin.time, found.span.end.time);
        let mut facts = chosen.facts();
        let has_page_faults = chosen
            .trace
            .stream_classes
            .iter()
            .flat_map(|of| &of.event_classes)
            .any(|class| is_page_fault(&class.name));
        // The set of kinds does not change while events are read; keys do.
        let kinds = chosen.facts();
        let mut gathering = Gathering::new(begin, &kinds);
        gathering.tids.number(found.tid);
        let mut deriver = chosen.deriver(&facts, chosen.source.damage(), false);
        let interval = Interval { begin: chosen.interval.begin, end: Some(end) };
        let mut events = chosen.source.events_in(interval);
        while let Some(event) = events.next_event() {
            let at = facts.at(&event);
            gathering.comes(&event, &at);
            facts.tell(&event, |kinds, at, fact| {
                gathering.fact_of(&event, at, fact);
                deriver.fact(kinds, at, fact, &mut gathering);
            });
            gathering.has_come(&at);
        }
        deriver.finish(facts.kinds(), Some(end), &mut gathering);
        let inside = events.damage();
        let damage: Vec<Damage> = chosen.source.damage().iter().cloned().chain(inside).collect();
        let things = std::mem::take(&mut gathering.things);
        gathering.builder.named.retain(|named| !things.contains(&named.what));
        let cpus =
            gathering.builder.occupied.iter().map(|occupied| occupied.cpu as usize + 1).max();
        let mut waits = known_causes(&gathering.waitings, &gathering.holds);
        waits.append(&mut gathering.builder.waits);
        gathering.builder.waits = waits;
        let thread_count = gathering.tids.len();
        let builder = std::mem::take(&mut gathering.builder);
        let scene: Scene = builder.build(thread_count, cpus.unwrap_or(0).min(1 << 16));
        let path = scene.path(0, begin, end);
        let gaps = chosen.gaps(&damage);
        let since = chosen.ends().0.min(begin);
        let is_waker_unknown = path.is_doubtful;
        let is_missing = !found.is_certain || gaps.since(since, end);
        let is_by_one_clock = found.unsure_by_clocks.is_none();
        let is_exact = !is_missing && !is_waker_unknown && is_by_one_clock;
        let name = |tid: &u32| {
            let told = facts.threads().get(*tid).and_then(|thread| thread.name.clone());
            (*tid, told.or_else(|| chosen.names.threads.get(tid).cloned()))
        };
        let of_kind =
            |kinds: &[Kind]| kinds.iter().map(|kind| kind.name.clone()).collect::<Vec<_>>();
        let mut names = of_kind(&kinds.kinds().spans);
        names.extend(of_kind(&kinds.kinds().channels));
        names.append(&mut gathering.labels);
        let page_faults = match has_page_faults {
            true => path.segments.iter().map(|segment| gathering.faults_in(segment)).collect(),
            false => Vec::new(),
        };
        Self {
            found: *found,
            hints: hints(&path.segments, &kinds, &chosen.trace),
            page_faults,
            shares: shares(&path.segments),
            path,
            names,
            threads: gathering.tids.things().iter().map(name).collect(),
            quality: match (is_exact, found.is_open) {
                (true, false) => Quality::Exact,
                // Missing events after the last one can only make it longer.
                (true, true) => Quality::LowerBound,
                (false, _) => Quality::Unknown,
            },
            is_missing_inside: gaps.between(begin.min(end), end),
            is_missing,
            is_waker_unknown,
        }
    }
}

/// Finds the threads that ended the waits. If no object ever occurs on two threads, the fields identify
/// threads rather than locks; then any release of the family matches.
fn known_causes(waitings: &[Waiting], holds: &[Hold]) -> Vec<lateralis_analysis::path::Wait> {
    let mut owners: HashMap<(u32, u64), u32> = HashMap::new();
    let mut shared: HashSet<u32> = HashSet::new();
    let held = holds.iter().map(|hold| (hold.family, hold.object, hold.thread));
    let waited = waitings.iter().map(|wait| (wait.family, wait.object, wait.thread));
    for (family, object, thread) in held.chain(waited) {
        let Some(object) = object else {
            continue;
        };
        if *owners.entry((family, object)).or_insert(thread) != thread {
            shared.insert(family);
        }
    }
    let blind = |family: u32, object: Option<u64>| object.filter(|_| shared.contains(&family));
    let waitings: Vec<Waiting> =
        waitings.iter().map(|w| Waiting { object: blind(w.family, w.object), ..*w }).collect();
    let holds: Vec<Hold> =
        holds.iter().map(|h| Hold { object: blind(h.family, h.object), ..*h }).collect();
    causes(&waitings, &holds)
}

impl<'a> Gathering<'a> {
    fn new(begin: Nanos, facts: &'a Facts) -> Self {
        Self {
            begin,
            locks: Locks::new(facts.kinds()),
            builder: SceneBuilder::default(),
            waitings: Vec::new(),
            holds: Vec::new(),
            tids: Numbering::default(),
            seen: Seen::default(),
            cpu: None,
            next_idle_since: begin,
            open: HashMap::new(),
            things: HashSet::new(),
            idle_since: HashMap::new(),
            interrupts: HashMap::new(),
            completed: HashMap::new(),
            labels: Vec::new(),
            faults: HashMap::new(),
            fault_count: 0,
            facts,
        }
    }

    /// Called for an event, before its facts.
    fn comes(&mut self, event: &Event<'_>, at: &At) {
        let tid = at.writer.map(|writer| writer.tid);
        let idle_since = tid.and_then(|tid| self.idle_since.get(&tid)).copied();
        self.seen = Seen { idle_since: idle_since.unwrap_or(self.begin), object: None };
        self.next_idle_since = at.time;
        if let Some(tid) = tid.filter(|_| at.time >= self.begin && is_page_fault(&event.class.name))
            && self.fault_count < FAULTS_MAX
        {
            self.fault_count += 1;
            self.faults.entry(tid).or_default().push(at.time);
        }
        if let (Some((family, object)), Some(tid)) = (self.locks.signal(event), tid) {
            self.hold(family, object, tid, at.time);
        }
    }

    /// Processes the locks of a fact: their fields are those of the event.
    fn fact_of(&mut self, event: &Event<'_>, at: &At, fact: Fact) {
        match fact {
            Fact::Begin { span, .. } => {
                if let Part::Waits(_, which) = self.locks.part(span) {
                    self.seen.object = object(event, which);
                }
            }
            Fact::End { span, .. } => {
                if let (Part::Holds(family, which), Some(writer)) =
                    (self.locks.part(span), at.writer)
                {
                    let (family, object) = (*family, object(event, which));
                    self.hold(family, object, writer.tid, at.time);
                }
            }
            _ => {}
        }
    }

    /// Called after all facts of an event.
    fn has_come(&mut self, at: &At) {
        if let Some(writer) = at.writer {
            self.idle_since.insert(writer.tid, self.next_idle_since);
        }
    }

    fn of_cpu(&self, span: u32) -> bool {
        let kind = self.facts.kinds().spans.get(span as usize);
        kind.is_some_and(|kind| kind.keys.iter().any(|key| key == KEY_CPU))
    }

    /// Number of a label, following those of spans and channels.
    fn label(&mut self, text: String) -> u32 {
        let kinds = self.facts.kinds();
        let first = kinds.spans.len() + kinds.channels.len();
        // The number of interrupts and devices is small.
        let known = self.labels.iter().position(|label| *label == text);
        let index = known.unwrap_or_else(|| {
            if self.labels.len() < LABELS_MAX {
                self.labels.push(text);
            }
            self.labels.len() - 1
        });
        (first + index) as u32
    }

    /// Page faults of the thread of a segment during it.
    fn faults_in(&self, segment: &Segment) -> u64 {
        let tid = self.tids.things().get(segment.thread as usize);
        let Some(times) = tid.and_then(|tid| self.faults.get(tid)) else { return 0 };
        let before = |time: Nanos| times.partition_point(|at| *at < time) as u64;
        before(segment.end) - before(segment.begin)
    }

    /// An interrupt begins or ends on a CPU.
    fn interrupt(&mut self, kinds: &Kinds, at: &At, (span, key): (u32, Option<u64>), begins: bool) {
        let (Some(cpu), true) = (at.cpu, self.of_cpu(span)) else { return };
        if begins {
            let label = kinds.spans.get(span as usize).map(|kind| device(kind, key));
            let label = self.label(label.unwrap_or_default());
            let open = self.interrupts.entry(cpu).or_default();
            // Deeper nesting than a few means that ends are missing.
            if open.len() < 64 {
                open.push((at.time, span, label));
            }
        } else if let Some(open) = self.interrupts.get_mut(&cpu) {
            let index = open.iter().rposition(|of| of.1 == span);
            open.truncate(index.unwrap_or(open.len()));
        }
    }

    /// Purpose of the interrupt that wakes a thread now: the completion of a device in it, otherwise its
    /// own name.
    fn interrupt_for(&self, at: &At) -> Option<u32> {
        let cpu = at.cpu?;
        let open = self.interrupts.get(&cpu).and_then(|open| Some((open.first()?, open.last()?)));
        let completed = self.completed.get(&cpu).filter(|(time, _)| match open {
            Some(((begin, ..), _)) => time >= begin,
            None => at.time.since(*time) <= COMPLETION_NS,
        });
        completed.map(|of| of.1).or(open.map(|(_, (.., label))| *label))
    }

    fn ended(&mut self, kinds: &Kinds, kind: u32, span: &Span, begun: Seen, cpu: Option<u32>) {
        let (begin, end) = (span.begin.time, span.end.time);
        if let (Some(cpu), Some(of)) = (cpu, kinds.spans.get(kind as usize))
            && of.keys.iter().any(|key| key == "dev")
        {
            let label = self.label(device(of, span.begin.key));
            self.completed.insert(cpu, (end, label));
        }
        if self.of_cpu(kind) {
            if let Some(cpu) = cpu.filter(|_| end >= self.begin) {
                self.builder.busy.push(Busy { cpu, begin, end, what: kind });
            }
            return;
        }
        let [began, tid] = [span.begin, span.end].map(|edge| edge.writer.map(|writer| writer.tid));
        let Some(began) = began.or(tid) else { return };
        let open = self.open.entry((kind, began)).or_default();
        *open = open.saturating_sub(1);
        let Some(tid) = tid.filter(|tid| *tid == began) else { return };
        if let Part::Waits(family, _) = self.locks.part(kind) {
            let (family, object) = (*family, begun.object);
            if end >= self.begin {
                let thread = self.tids.number(tid);
                self.waitings.push(Waiting { thread, begin, end, what: kind, family, object });
            }
        }
        self.named(tid, begin, end, kind);
        if span.begin.key.is_none() {
            self.next_idle_since = self.next_idle_since.min(begin);
        }
    }

    fn named(&mut self, tid: u32, begin: Nanos, end: Nanos, what: u32) {
        if end >= self.begin {
            let thread = self.tids.number(tid);
            self.builder.named.push(Named { thread, begin, end, what });
        }
    }

    fn hold(&mut self, family: u32, object: Option<u64>, tid: u32, end: Nanos) {
        if end >= self.begin {
            let thread = self.tids.number(tid);
            self.holds.push(Hold { thread, end, family, object });
        }
    }

    fn message(&mut self, channel: u32, message: &lateralis_analysis::Message<Seen>) {
        let (send, receive) = (message.send, message.receive);
        if send.time.max(receive.time) < self.begin {
            return;
        }
        let (Some(sender), Some(receiver)) = (send.writer, receive.writer) else {
            return;
        };
        let channels = self.facts.kinds().spans.len() as u32;
        let message = Message {
            sender: self.tids.number(sender.tid),
            // With clock errors, the send is assumed not to be later than the receive.
            sent: send.time.min(receive.time),
            receiver: self.tids.number(receiver.tid),
            received: receive.time,
            idle_since: receive.event.idle_since,
            what: channels + channel,
        };
        self.builder.waits.extend(message.wait());
    }

    /// Cause of a wakeup of a thread.
    fn woken_by(&mut self, waker: Waker) -> WokenBy {
        match waker {
            Waker::Thread(tid) => WokenBy::Thread(self.tids.number(tid)),
            Waker::Interrupt => WokenBy::Interrupt,
            Waker::Unknown(Some(tid)) => WokenBy::Likely(self.tids.number(tid)),
            Waker::Unknown(None) => WokenBy::Unknown,
        }
    }
}

fn is_page_fault(class: &str) -> bool {
    class.ends_with("page_fault_user") || class.ends_with("page_fault_kernel")
}

/// Name of an interrupt or device by its first key: `irq 11`, `softirq NET_RX`, `block 254:0`.
fn device(kind: &Kind, key: Option<u64>) -> String {
    let key = key.map(|key| kind.key_text(key)).unwrap_or_default();
    let first = key.split(' ').next().unwrap_or_default();
    let softirq = first.parse::<usize>().ok().filter(|_| kind.name == "softirq");
    let first = softirq.and_then(|number| SOFTIRQS.get(number).copied()).unwrap_or(first);
    // The kernel's `dev_t`: 20 bits are the minor number (`include/linux/kdev_t.h`).
    let number =
        first.parse::<u32>().ok().filter(|_| kind.keys.first().is_some_and(|k| k == "dev"));
    if let Some(number) = number {
        return format!("{} {}:{}", kind.name, number >> 20, number & 0xf_ffff);
    }
    // A timer has an address instead of a name, which is not useful.
    match first.is_empty() || first.starts_with("0x") || kind.name.ends_with("timer") {
        true => kind.name.clone(),
        false => format!("{} {first}", kind.name),
    }
}

/// Information missing from these segments that other events would give.
fn hints(segments: &[Segment], facts: &Facts, trace: &Trace) -> Vec<Hint> {
    // If only programs are recorded, interrupts on behalf of others are left out.
    let of_programs =
        (0..trace.stream_classes.len() as u32).any(|class| trace.is_of_programs(class));
    let has_kind = |name: &str| facts.kinds().spans.iter().any(|kind| kind.name == name);
    let has_switches = facts.has_switches();
    let mut hints: Vec<Hint> = Vec::new();
    for segment in segments {
        let hint = match (segment.doing, segment.woken_by, segment.instead) {
            (Doing::Active, ..) if !has_switches => {
                ("whether a thread ran or waited", "--kernel sched,syscalls")
            }
            (Doing::Active, ..) | (Doing::Ready, _, Some(Occupant::Unknown)) if of_programs => {
                ("what threads of other programs did", "--system")
            }
            (Doing::Blocked, Some(WokenBy::Unknown), _) => ("what ended a wait", "--kernel sched"),
            (Doing::Blocked, Some(WokenBy::Interrupt), _)
                if segment.woken_for.is_none()
                    && (of_programs || !(has_kind("irq") && has_kind("hrtimer"))) =>
            {
                (
                    "which timer or device ended a wait",
                    "--system --kernel sched,syscalls,irq,softirq,timer,block",
                )
            }
            _ => continue,
        };
        let hint = Hint { what: hint.0, record: hint.1 };
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    hints.sort_unstable();
    hints
}

impl DerivedSink for Gathering<'_> {
    type Event = Seen;

    fn event(&mut self, kinds: &Kinds, at: &At, fact: &Fact) -> Seen {
        match *fact {
            Fact::Begin { span, key } => self.interrupt(kinds, at, (span, key), true),
            Fact::End { span, key } => self.interrupt(kinds, at, (span, key), false),
            _ => {}
        }
        if let (Fact::Begin { span, key }, Some(writer)) = (*fact, at.writer)
            && !self.of_cpu(span)
        {
            let open = self.open.entry((span, writer.tid)).or_default();
            *open += 1;
            if *open > 1 && key.is_some() {
                self.things.insert(span);
            }
        }
        self.cpu = at.cpu;
        self.seen
    }

    fn span(&mut self, kinds: &Kinds, span: &DerivedSpan<Seen>) {
        let Some(begin) = span.begin else { return };
        match (span.status, span.span(), begin.edge.writer) {
            (SpanStatus::Complete, Some(ends), _) => {
                self.ended(kinds, span.kind, &ends, begin.event, self.cpu);
            }
            (SpanStatus::Whole, Some(ends), Some(writer)) => {
                self.named(writer.tid, ends.begin.time, ends.end.time, span.kind);
            }
            // Spans that are still open at the end.
            (SpanStatus::Unfinished, _, Some(writer)) if !self.of_cpu(span.kind) => {
                let end = span.seen_until.unwrap_or(begin.edge.time);
                self.named(writer.tid, begin.edge.time, end, span.kind);
            }
            _ => {}
        }
    }

    fn flow(&mut self, _: &Kinds, channel: u32, flow: &DerivedFlow<Seen>) {
        if let DerivedFlow::Complete { message, .. } = flow {
            self.message(channel, message);
        }
    }

    fn thread_state(&mut self, _: &Kinds, of: &ThreadStateInterval<Seen>) {
        let ThreadStateInterval { tid, begin, end, .. } = *of;
        // Without switches the end of the interval after a wakeup is unknown.
        if end < self.begin || !self.facts.has_switches() {
            return;
        }
        let state = match (of.state, of.cpu) {
            (Some(ThreadState::Running), Some(cpu)) => State::Running(cpu),
            (Some(ThreadState::Runnable | ThreadState::Preempted), _) => State::Ready,
            (Some(ThreadState::Sleeping | ThreadState::Blocked | ThreadState::Stopped), _) => {
                State::Blocked
            }
            // It slept, and the event that ended this is not in the trace.
            (None, _) if of.is_off_cpu => State::Blocked,
            (None | Some(ThreadState::Running), _) => State::Unknown,
        };
        let woken_by = of.woken.map(|(waker, _)| self.woken_by(waker));
        let thread = self.tids.number(tid);
        self.builder.did.push(Did { thread, begin, end, state, woken_by });
    }

    fn cpu_interval(&mut self, _: &Kinds, of: &CpuInterval<Seen>) {
        if of.end.is_some_and(|end| end < self.begin) {
            return;
        }
        let by = match (of.quality, of.tid) {
            (Quality::Exact, Some(tid)) => Occupant::Thread(self.tids.number(tid)),
            (Quality::Exact, None) => Occupant::Idle,
            (_, _) => Occupant::Unknown,
        };
        self.builder.occupied.push(Occupied { time: of.begin, cpu: of.cpu, by });
    }

    fn fact(&mut self, _: &Kinds, at: &At, fact: &Fact) {
        if let Fact::Wake { tid, waker: Waker::Interrupt, .. } = *fact
            && let Some(what) = self.interrupt_for(at)
        {
            let wakee = self.tids.number(tid);
            self.builder.woken_for.push((wakee, at.time, what));
        }
    }
}
