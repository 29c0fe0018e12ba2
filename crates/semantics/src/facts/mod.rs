// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interprets events as facts for analyses: spans begin and end, messages are sent and received, machines
//! change state, CPUs switch threads.
//!
//! ```text
//! roles of classes (schema, importer) ─┐
//! names of classes (conventions) ──────┴─► plan of each class ── event ─► facts
//! ```
//!
//! Analyses see facts and no fields. Events must come in time order: the switch before an event
//! determines which thread runs on the CPU, and so the thread of events that do not contain theirs.
//!
//! Cost of an event without meaning: two lookups by index. Memory: proportional to CPUs, threads, and
//! keys that are not single integers.

mod conventions;
mod cursors;
mod doubts;
mod in_order;
mod keys;
mod kinds;
mod marks;
mod ordered;
mod places;
mod plan;
mod queue;
mod reading;
#[cfg(test)]
mod tests;
mod threads;
mod wakes;

use std::collections::HashMap;

use lateralis_analysis::{End, GoesInto, Side, ThreadState};
use lateralis_model::{
    Event, Field, Fields, Host, StreamIndex, StreamSummary, Trace, Value, Writer,
};
use lateralis_units::{CpuId, Nanos};

use crate::extent::end_of_whole;
use conventions::{CLONE_THREAD, Dialect, Kernel, WakeStage};
pub use doubts::Doubts;
pub use keys::field_text;
pub use kinds::{Counter, Kind, Kinds, Machine};
pub use ordered::{Edges, Sink, Visited};
use plan::{Place, Plan, Step};
pub use threads::{Thread, Threads, name_of_idle};
use wakes::{WakeEvent, WakeUps};
pub use wakes::{WakeMoment, Waker};

/// State that a thread enters when it leaves its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Leaving {
    /// It was preempted and is still runnable.
    Preempted,
    /// It sleeps; a signal would wake it.
    Waiting,
    /// It waits for a device or similar; no signal wakes it.
    WaitingUninterruptibly,
    /// It has ended.
    Ended,
    /// It is stopped, traced, parked, or in a state without a name here.
    Other,
    /// The trace does not contain it.
    Unknown,
}

impl Leaving {
    /// From the kernel's number (`include/linux/sched.h`, `TASK_*`; the bit of a preempted thread is
    /// `TASK_REPORT_MAX`: 256, 1024, 2048 or 4096 depending on the version).
    fn of_number(state: u64, kernel: Kernel) -> Self {
        match state & 0xff {
            _ if state & 0x1f00 != 0 && state & 0xff == 0 => Self::Preempted,
            0 => Self::Preempted,
            state if state & 1 != 0 => Self::Waiting,
            state if state & 2 != 0 => Self::WaitingUninterruptibly,
            // EXIT_DEAD and EXIT_ZOMBIE, in either order.
            state if state & (16 | 32) != 0 => Self::Ended,
            // TASK_DEAD; since 4.14 TASK_PARKED.
            state if state & 64 != 0 && kernel.has_raw_states => Self::Ended,
            // TASK_REPORT_IDLE: sleeps like kernel threads, without counting as load.
            state if state & 128 != 0 && !kernel.has_raw_states => Self::WaitingUninterruptibly,
            _ => Self::Other,
        }
    }

    /// The corresponding thread state.
    #[must_use]
    pub fn goes_into(self) -> GoesInto {
        match self {
            Self::Preempted => GoesInto::State(ThreadState::Preempted),
            Self::Waiting => GoesInto::State(ThreadState::Sleeping),
            Self::WaitingUninterruptibly => GoesInto::State(ThreadState::Blocked),
            Self::Other => GoesInto::State(ThreadState::Stopped),
            Self::Ended => GoesInto::End,
            Self::Unknown => GoesInto::Unknown,
        }
    }

    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Preempted => "preempted",
            Self::Waiting => "waiting",
            Self::WaitingUninterruptibly => "waiting_uninterruptibly",
            Self::Ended => "ended",
            Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }
}

/// Time and place of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Time.
    pub time: Nanos,
    /// Stream.
    pub stream: StreamIndex,
    /// CPU, if the trace contains it.
    pub cpu: Option<u32>,
    /// Thread: the one given by the event, otherwise the one that runs on the CPU. If its process is
    /// unknown, the process id is the thread id.
    pub writer: Option<Writer>,
    /// Whether the thread comes from the event itself rather than from the scheduler state.
    pub is_told: bool,
}

/// Owner of a state or counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// Of a thread.
    Thread(Writer),
    /// Of a processor.
    Cpu(u32),
    /// The source that the stream represents.
    Stream(StreamIndex),
    /// A process; `None` if the trace does not contain it.
    Process(Option<u32>),
}

impl Owner {
    /// Process of an event.
    #[must_use]
    pub fn of_process(at: &At) -> Self {
        Self::Process(at.writer.map(|writer| writer.pid))
    }
}

impl At {
    /// Owner of states and counters of the event: its thread if known, otherwise its CPU, otherwise its
    /// stream.
    #[must_use]
    pub fn owner(&self) -> Owner {
        match (self.writer, self.cpu) {
            (Some(writer), _) => Owner::Thread(writer),
            (None, Some(cpu)) => Owner::Cpu(cpu),
            (None, None) => Owner::Stream(self.stream),
        }
    }

    /// Converts to an end of a message.
    #[must_use]
    pub fn end(&self) -> End {
        let Self { time, stream, cpu, writer, .. } = *self;
        End { time, stream, cpu, writer, event: () }
    }
}

/// One fact of an event. Numbers are indices into [`Facts::kinds`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fact {
    /// A span begins.
    Begin {
        /// Its kind.
        span: u32,
        /// Key among spans of its kind; `None`: distinguished by thread.
        key: Option<u64>,
    },
    /// A span ends.
    End {
        /// Its kind.
        span: u32,
        /// Key among spans of its kind.
        key: Option<u64>,
    },
    /// A complete span, which begins now.
    Whole {
        /// Its kind.
        span: u32,
        /// Duration in nanoseconds.
        duration_ns: u64,
    },
    /// A message is sent.
    Send {
        /// Its channel.
        channel: u32,
        /// Key among messages of the channel; `None`: matched by order.
        key: Option<u64>,
    },
    /// A message is received.
    Receive {
        /// Its channel.
        channel: u32,
        /// Key among messages of the channel.
        key: Option<u64>,
    },
    /// The owner's machine enters a state.
    State {
        /// The machine.
        machine: u32,
        /// Index into its states.
        state: u32,
    },
    /// A counter sample.
    Level {
        /// The counter.
        counter: u32,
        /// Its value; integers beyond 53 bits are rounded.
        value: f64,
    },
    /// The CPU switches from one thread to another; thread 0 is idle.
    Switch {
        /// The thread that leaves.
        from: u32,
        /// The state that it enters.
        leaving: Leaving,
        /// The thread that comes.
        to: u32,
        /// Whether the trace has every switch of the thread that leaves. False if only switches of
        /// recorded programs were kept: between two switches of another thread, further threads may have
        /// come and gone.
        from_is_whole: bool,
        /// Whether the trace has every switch of the thread that comes.
        to_is_whole: bool,
    },
    /// A thread is made runnable.
    Wake {
        /// The thread.
        tid: u32,
        /// CPU on which it is to run, if the trace contains it.
        cpu: Option<u32>,
        /// The waker.
        waker: Waker,
        /// Stage of the wakeup.
        moment: WakeMoment,
        /// Whether the trace has every switch of the thread, and so the one that ends its wait.
        is_whole: bool,
    },
    /// A thread turns out to belong to another process than was assumed; its open items stay with it.
    Belongs {
        /// The thread.
        tid: u32,
        /// Its process.
        pid: u32,
    },
}

/// Category of facts, for consumers that need only some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Spans: begins, ends, complete spans.
    Spans,
    /// Messages.
    Messages,
    /// States of machines.
    States,
    /// Samples of counters.
    Levels,
    /// Thread states: switches and wakeups.
    Threads,
}

impl About {
    fn wants(self, step: &Step) -> bool {
        match step {
            Step::Begin { .. } | Step::End { .. } | Step::Whole { .. } => self == Self::Spans,
            Step::Send { .. } | Step::Receive { .. } => self == Self::Messages,
            Step::State { .. } => self == Self::States,
            Step::Level { .. } => self == Self::Levels,
            Step::CallBegins { .. } | Step::CallEnds { .. } | Step::Pending { .. } => {
                self == Self::Spans
            }
            Step::Switch(_) | Step::Leaves { .. } | Step::Wake(_) | Step::Interrupt(..) => {
                self == Self::Threads
            }
            Step::Thread { .. } => false,
        }
    }

    /// Whether open items last until the end of the recording, for which complete spans matter as well.
    fn lasts_to_the_end(self) -> bool {
        matches!(self, Self::States | Self::Threads)
    }
}

/// The system that recorded a stream.
#[derive(Debug, Clone, Copy, Default)]
struct System {
    /// Machine that the numbers in its events belong to.
    host: Host,
    kernel: Kernel,
}

/// Interprets events as facts.
#[derive(Debug, Default)]
pub struct Facts {
    kinds: Kinds,
    plans: Vec<Vec<Plan>>,
    cpus: Vec<Option<u32>>,
    threads: Threads,
    wakes: WakeUps,
    has_meaning: bool,
    /// By stream class.
    systems: Vec<System>,
    /// By stream class: whether switches between threads outside of the recorded programs are missing.
    of_programs: Vec<bool>,
}

impl Facts {
    /// For a trace whose classes carry their roles: the attribute [`lateralis_model::role::ATTRIBUTE`],
    /// which importers and schemas add.
    #[must_use]
    pub fn new(trace: &Trace, streams: &[StreamSummary]) -> Self {
        let mut facts = Self::default();
        facts.learn(trace, streams);
        facts
    }

    /// Adopts new classes and streams of the same trace. State learnt from events is kept, and so are the
    /// numbers of spans, channels, machines and counters.
    pub fn learn(&mut self, trace: &Trace, streams: &[StreamSummary]) {
        let kinds = &mut self.kinds;
        let count = trace.stream_classes.len() as u32;
        let of_several = trace.has_hosts();
        let mut hosts = (0..count).map(|class| Some(trace.host_of(class)).filter(|_| of_several));
        self.plans = trace
            .stream_classes
            .iter()
            .map(|stream| {
                let dialect = Dialect::of(stream);
                let of_several = hosts.next().flatten();
                let plan = |class| Plan::new(stream, (dialect, of_several), class, kinds);
                stream.event_classes.iter().map(plan).collect()
            })
            .collect();
        let classes = 0..self.plans.len() as u32;
        self.systems = classes
            .map(|class| System {
                host: trace.host_of(class),
                kernel: Kernel::of(trace.environment_of(class)),
            })
            .collect();
        self.of_programs = (0..self.plans.len() as u32)
            .map(|class| trace.is_of_programs(class) && self.tells_switches(class))
            .collect();
        let has_wakes = self.plans.iter().flatten().any(|plan| plan.steps.iter().any(is_wake));
        if !has_wakes {
            // Interrupts matter only for finding wakers.
            let plans = self.plans.iter_mut().flatten();
            plans.for_each(|plan| plan.steps.retain(|step| !matches!(step, Step::Interrupt(..))));
        }
        self.has_meaning = self.plans.iter().flatten().any(|plan| !plan.steps.is_empty());
        self.set_streams(streams);
    }

    /// Adopts streams that were added or renumbered.
    pub fn set_streams(&mut self, streams: &[StreamSummary]) {
        self.cpus = streams.iter().map(|stream| stream.cpu.map(|cpu| cpu.0)).collect();
    }

    /// Spans, channels, machines and counters known so far. States and keys are added as events report
    /// them.
    #[must_use]
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Threads known from the events so far.
    #[must_use]
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Restricts interpretation to these facts. Which thread runs where stays known, and so does the end
    /// of the recording if it matters to them. Returns whether any event has such facts.
    pub fn only(&mut self, about: About) -> bool {
        let mut has_any = false;
        for plan in self.plans.iter_mut().flatten() {
            plan.steps.retain(|step| {
                let is_wanted = about.wants(step);
                has_any |= is_wanted;
                let is_end = matches!(step, Step::Whole { .. }) && about.lasts_to_the_end();
                is_wanted || is_end || matches!(step, Step::Switch(_) | Step::Thread { .. })
            });
        }
        has_any
    }

    /// Selects classes whose events [`Facts::visit_columns`] shows whole, whatever they mean: those for
    /// which `wants` returns true, by stream class and class.
    pub fn keep(&mut self, wants: impl Fn(u32, u32) -> bool) {
        for (stream_class, plans) in (0..).zip(&mut self.plans) {
            for (class, plan) in (0..).zip(plans) {
                plan.is_kept = wants(stream_class, class);
            }
        }
    }

    /// Whether any class has facts; otherwise events need not be read.
    #[must_use]
    pub fn has_meaning(&self) -> bool {
        self.has_meaning
    }

    /// Whether any class reports switches, so that events need not contain their threads.
    #[must_use]
    pub fn has_switches(&self) -> bool {
        (0..self.plans.len() as u32).any(|stream_class| self.tells_switches(stream_class))
    }

    /// Whether streams of this class can report switches.
    #[must_use]
    pub fn tells_switches(&self, stream_class: u32) -> bool {
        let plans = self.plans.get(stream_class as usize);
        let mut steps = plans.into_iter().flatten().flat_map(|plan| &plan.steps);
        steps.any(|step| matches!(step, Step::Switch(_)))
    }

    /// By stream: whether it alone records the switches of its CPU, so that losses of other streams do
    /// not affect it.
    #[must_use]
    pub fn alone_streams(&self, streams: &[StreamSummary]) -> Vec<bool> {
        let tells = |stream: &&StreamSummary| self.tells_switches(stream.class);
        // A stream without a CPU can report those of any.
        let anywhere = streams.iter().filter(tells).filter(|stream| stream.cpu.is_none()).count();
        let mut counts: HashMap<CpuId, usize> = HashMap::new();
        for cpu in streams.iter().filter(tells).filter_map(|stream| stream.cpu) {
            *counts.entry(cpu).or_default() += 1;
        }
        let is_alone = |stream: &StreamSummary| {
            let count = stream.cpu.and_then(|cpu| counts.get(&cpu));
            anywhere == 0 && count == Some(&1) && self.tells_switches(stream.class)
        };
        streams.iter().map(is_alone).collect()
    }

    /// Whether events of this class are complete spans, which may end after the last event.
    #[must_use]
    pub fn has_wholes(&self, stream_class: u32, class: u32) -> bool {
        let plan = self.plans.get(stream_class as usize).and_then(|of| of.get(class as usize));
        plan.is_some_and(|plan| plan.steps.iter().any(|step| matches!(step, Step::Whole { .. })))
    }

    /// End time of an event: later than its time for a complete span. Events may come in any order.
    #[must_use]
    pub fn end_of(&self, event: &Event<'_>) -> Nanos {
        let classes = self.plans.get(event.stream_class_index as usize);
        let plan = classes.and_then(|classes| classes.get(event.class_index as usize));
        let ends = plan.into_iter().flat_map(|plan| &plan.steps).filter_map(|step| match step {
            Step::Whole { duration, .. } => {
                let nanos = plan::field(event, *duration)?.as_u64()?;
                Some(end_of_whole(event.time, nanos))
            }
            _ => None,
        });
        ends.fold(event.time, Nanos::max)
    }

    /// Whether events of this class have facts.
    #[must_use]
    pub fn means(&self, stream_class: u32, class: u32) -> bool {
        let plan = self.plans.get(stream_class as usize).and_then(|of| of.get(class as usize));
        plan.is_some_and(|plan| !plan.steps.is_empty())
    }

    /// Time and place of an event. Events must come in time order.
    pub fn at(&mut self, event: &Event<'_>) -> At {
        let plan = self
            .plans
            .get(event.stream_class_index as usize)
            .and_then(|classes| classes.get(event.class_index as usize));
        let host = self.system(event).host;
        let cpu = event.packet.cpu.map(|cpu| cpu.0);
        let cpu = cpu.or_else(|| self.cpus.get(event.stream.0 as usize).copied().flatten());
        let cpu = cpu.or_else(|| {
            let plan = plan?;
            if plan.is_of_cpu_0 {
                return Some(host.cpu(0));
            }
            let field = nth(event.common_context(), plan.cpu?)?;
            u32::try_from(field.as_u64()?).ok().map(|cpu| host.cpu(cpu))
        });
        let threads = &mut self.threads;
        let mut told = || {
            let plan = plan?;
            let at = |place| {
                let field = match place {
                    Place::Common(index) => nth(event.common_context(), index),
                    Place::Own(index) => nth(event.context(), index),
                };
                let number = field.and_then(|field| field.as_u64());
                number.map(|number| host.thread(number as u32))
            };
            let tid = at(plan.tid?)?;
            let pid = plan.pid.and_then(at);
            Some(Writer { pid: pid.unwrap_or_else(|| threads.taken_for(tid)), tid })
        };
        let told = match event.writer {
            Some(writer) => Some(threads.settled(writer)),
            None => told(),
        };
        let writer = told.or_else(|| {
            let tid = threads.running(cpu?)?;
            Some(Writer { pid: threads.taken_for(tid), tid })
        });
        let is_told = told.is_some();
        At { time: event.time, stream: event.stream, cpu, writer, is_told }
    }

    fn system(&self, event: &Event<'_>) -> System {
        self.systems.get(event.stream_class_index as usize).copied().unwrap_or_default()
    }

    /// Calls `see` with each fact of an event; returns its time and place. Events must come in time
    /// order.
    pub fn of(&mut self, event: &Event<'_>, mut see: impl FnMut(&At, Fact)) -> At {
        self.tell(event, |_, at, fact| see(at, fact))
    }

    /// Like [`Facts::of`], and also passes the kinds known by then.
    pub fn tell(&mut self, event: &Event<'_>, mut see: impl FnMut(&Kinds, &At, Fact)) -> At {
        let at = self.at(event);
        let classes = self.plans.get(event.stream_class_index as usize);
        let Some(plan) = classes.and_then(|classes| classes.get(event.class_index as usize)) else {
            return at;
        };
        // A thread without a known process has its own id as process: that adds nothing.
        let is_told = plan.tid.is_some() && plan.pid.is_some();
        if let Some(writer) = event.writer {
            self.threads.recorded(writer);
        }
        let told_writer = at.writer.filter(|_| at.is_told);
        if let Some(writer) = at.writer.filter(|_| is_told) {
            self.threads.belongs(writer);
        }
        if self.threads.has_learnt() {
            self.threads.learnt().for_each(|belongs| see(&self.kinds, &at, belongs));
        }
        let class = event.stream_class_index as usize;
        let of_programs = self.of_programs.get(class).copied().unwrap_or(false);
        if let Some(writer) = told_writer.filter(|_| of_programs && plan.is_of_its_thread) {
            self.threads.is_recorded(writer.tid);
        }
        let system = self.systems.get(class).copied().unwrap_or_default();
        for step in &plan.steps {
            let Self { kinds, threads, wakes, .. } = self;
            let fact = fact(step, (event, system), &at, kinds, (threads, wakes), of_programs);
            if let Some(fact) = fact {
                see(&self.kinds, &about(step, (event, system), &at), fact);
            }
        }
        if self.threads.has_learnt() {
            self.threads.learnt().for_each(|belongs| see(&self.kinds, &at, belongs));
        }
        at
    }
}

/// Time and place to which a step applies: some events refer to another CPU than the one on which they
/// happened.
fn about(step: &Step, (event, system): (&Event<'_>, System), at: &At) -> At {
    let Step::Level { cpu: Some(field), .. } = step else { return *at };
    let cpu = plan::field(event, *field).and_then(|field| field.as_u64());
    let cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok()).map(|cpu| system.host.cpu(cpu));
    At { cpu: cpu.or(at.cpu), ..*at }
}

fn is_wake(step: &Step) -> bool {
    matches!(step, Step::Wake(_))
}

fn nth<'a>(fields: Option<Fields<'a>>, index: usize) -> Option<Field<'a>> {
    fields?.into_iter().nth(index).map(|(_, field)| field)
}

fn fact(
    step: &Step,
    (event, System { host, kernel }): (&Event<'_>, System),
    at: &At,
    kinds: &mut Kinds,
    (threads, wakes): (&mut Threads, &mut WakeUps),
    of_programs: bool,
) -> Option<Fact> {
    let field = |index: usize| plan::field(event, index);
    let number = |index: usize| field(index).and_then(|field| field.as_u64());
    let thread = |index: usize| number(index).map(|number| host.thread(number as u32));
    let text = |index: Option<usize>| field(index?)?.as_text();
    // Threads created by a recorded program are recorded from their start.
    let is_of_recorded = |threads: &Threads| {
        of_programs && at.writer.is_some_and(|writer| threads.has_all_switches(writer.tid))
    };
    Some(match step {
        Step::Begin { span, key } => {
            let kind = &mut kinds.spans[*span as usize];
            Fact::Begin { span: *span, key: kind.numbers.number(key, event, at) }
        }
        Step::End { span, key } => {
            let kind = &mut kinds.spans[*span as usize];
            Fact::End { span: *span, key: kind.numbers.number(key, event, at) }
        }
        Step::CallBegins { span, key } => {
            let kind = &mut kinds.spans[*span as usize];
            let key = kind.numbers.number(key, event, at);
            if key.is_some_and(|id| kernel.calls_without_exit.contains(&id)) {
                return None;
            }
            threads.calls(at.writer?.tid, (*span, key));
            Fact::Begin { span: *span, key }
        }
        // A call that began before the trace ends nothing here.
        Step::CallEnds { id } => {
            // -1 if a signal handler has returned into another call.
            let id = id.and_then(number).filter(|id| id.cast_signed() >= 0);
            let (span, key) = threads.returns(at.writer?.tid, id)?;
            Fact::End { span, key }
        }
        Step::Whole { span, duration } => {
            Fact::Whole { span: *span, duration_ns: number(*duration)? }
        }
        Step::Send { channel, key } => {
            let kind = &mut kinds.channels[*channel as usize];
            Fact::Send { channel: *channel, key: kind.numbers.number(key, event, at) }
        }
        Step::Receive { channel, key } => {
            let kind = &mut kinds.channels[*channel as usize];
            Fact::Receive { channel: *channel, key: kind.numbers.number(key, event, at) }
        }
        Step::State { machine, field: index, key } => {
            let text = keys::field_text(field(*index)?);
            let machine = kinds.machine_of(*machine, key, event, at)?;
            Fact::State { machine, state: kinds.machines[machine as usize].state(text) }
        }
        Step::Level { counter, field: index, key, .. } => {
            let value = level(field(*index)?)?;
            Fact::Level { counter: kinds.counter_of(*counter, key, event, at)?, value }
        }
        Step::Switch(switch) => {
            let mut to = match switch.next_tid {
                Some(field) => thread(field)?,
                None => at.writer?.tid,
            };
            if switch.has_idle_thread
                && text(switch.next_comm).is_some_and(|of| of.starts_with("idle"))
            {
                to = 0;
            }
            // The thread left by the first switch of a CPU is unknown; it counts as none.
            let from = match switch.prev_tid {
                Some(field) => thread(field)?,
                None => threads.running(at.cpu?).unwrap_or(0),
            };
            for (tid, name) in [(from, switch.prev_comm), (to, switch.next_comm)] {
                if let Some(name) = text(name) {
                    threads.named(tid, &name);
                }
            }
            for (tid, priority) in [(from, switch.prev_prio), (to, switch.next_prio)] {
                // Negative if the scheduling class has no other number.
                if let Some(priority) = priority.and_then(number) {
                    threads.prioritised(tid, priority.cast_signed());
                }
            }
            // Every switch of a recorded program is in the trace. The idle thread belongs to none; a
            // thread that leaves an idle CPU, or comes to one, is the reason why the switch is in the
            // trace.
            if of_programs {
                match (from, to) {
                    (0, to) => threads.is_recorded(to),
                    (from, 0) => threads.is_recorded(from),
                    _ => {}
                }
            }
            let is_whole = |tid: u32| !of_programs || threads.has_all_switches(tid);
            let (from_is_whole, to_is_whole) = (is_whole(from), is_whole(to));
            if let Some(cpu) = at.cpu {
                threads.switched(cpu, Some(to).filter(|_| to_is_whole));
            }
            let state = switch.prev_state.and_then(number);
            let leaving = match switch.prev_tid {
                None => threads.left(from),
                Some(_) => {
                    state.map_or(Leaving::Unknown, |state| Leaving::of_number(state, kernel))
                }
            };
            wakes.switch(at.cpu, from, leaving, to);
            Fact::Switch { from, to, leaving, from_is_whole, to_is_whole }
        }
        Step::Wake(wake) => {
            let tid = thread(wake.tid)?;
            if wake.stage == WakeStage::New && is_of_recorded(threads) {
                threads.is_recorded(tid);
            }
            let target_cpu = wake.cpu.and_then(number).and_then(|cpu| u32::try_from(cpu).ok());
            let target_cpu = target_cpu.map(|cpu| host.cpu(cpu));
            let flags = wake.flags.and_then(number);
            let event = WakeEvent { stage: wake.stage, tid, target_cpu, flags };
            let (waker, moment) = wakes.wake(&event, at)?;
            let is_whole = !of_programs || threads.has_all_switches(tid);
            Fact::Wake { tid, cpu: target_cpu, waker, moment, is_whole }
        }
        Step::Leaves { tid, into } => {
            let tid = tid.and_then(thread);
            threads.leaves(tid.or_else(|| threads.running(at.cpu?))?, *into);
            return None;
        }
        Step::Pending { span, key, side } => {
            let key = kinds.spans[*span as usize].numbers.number(key, event, at);
            let is_news = threads.pends((*span, key?), *side == Side::Begin);
            match side {
                _ if !is_news => return None,
                Side::Begin => Fact::Begin { span: *span, key },
                Side::End => Fact::End { span: *span, key },
            }
        }
        Step::Interrupt(kind, side) => {
            wakes.interrupt(at.cpu, *kind, *side == Side::Begin);
            return None;
        }
        Step::Thread { tid, pid, name, flags } => {
            let tid = thread(*tid)?;
            if is_of_recorded(threads) {
                threads.is_recorded(tid);
            }
            let of_maker = |flags: u64| match flags & CLONE_THREAD {
                0 => Some(tid),
                _ => threads.told_process(at.writer?.tid),
            };
            let pid = pid.and_then(thread);
            if let Some(pid) = pid.or_else(|| of_maker(flags.and_then(number)?)) {
                threads.told(Writer { pid, tid });
            }
            if let Some(name) = text(*name) {
                threads.named(tid, &name);
            }
            return None;
        }
    })
}

fn level(field: Field<'_>) -> Option<f64> {
    match field.value() {
        Value::Bool(value) => Some(f64::from(u8::from(value))),
        Value::Unsigned(value) | Value::Bits(value) => Some(value as f64),
        Value::Signed(value) => Some(value as f64),
        Value::Real(value) => Some(value),
        Value::Optional(Some(inner)) | Value::Variant(_, inner) => level(inner),
        _ => None,
    }
}
