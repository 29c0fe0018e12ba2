// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Puts derived items on lanes: spans, flows, states, counters, and CPU occupancy.

use lateralis_analysis::ThreadState;
use lateralis_lanes::{Gathers, Interval, Opened, PointRef, RowKind, WakerKind};
use lateralis_model::{Quality, Source, Writer};
use lateralis_semantics::{
    Contradiction, Contradictions, CpuInterval, DerivedFlow, DerivedSink, DerivedSpan, Deriver,
    Known, SpanEnd, SpanStatus, StateInterval, ThreadStateInterval,
};
use lateralis_store::Recording;
use lateralis_store::facts::{At, Doubts, Fact, Facts, Kinds, Owner, Threads, Waker};
use lateralis_units::Nanos;

use super::NOBODY;
use super::lists::Lists;
use super::ran::Ran;

/// Name of a thread's state while a context switch is missing.
pub const UNKNOWN_STATE: &str = "unknown";

/// Limit for live sessions: open spans of one kind, or open flows of one channel.
const OPEN_MAX: u64 = 1 << 20;

/// An event by its place in the index, its thread, and the interval that it has opened in the index.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    point: PointRef,
    thread: u32,
    opened: Option<Opened>,
}

/// Number of derived items of each kind.
#[derive(Debug, Default)]
pub struct Counts {
    spans: Vec<u64>,
    flows: Vec<u64>,
    orphans: u64,
    contradictions: Contradictions,
}

impl Counts {
    /// Spans of a kind, including unfinished ones.
    pub fn of_spans(&self, kind: usize) -> u64 {
        self.spans.get(kind).copied().unwrap_or(0)
    }

    /// Flows of a channel for which both ends are known.
    pub fn of_flows(&self, channel: usize) -> u64 {
        self.flows.get(channel).copied().unwrap_or(0)
    }

    /// Contradictions between context switches.
    pub fn contradictions(&self) -> &Contradictions {
        &self.contradictions
    }

    /// Number of span ends without a begin.
    pub fn orphans(&self) -> u64 {
        self.orphans
    }
}

/// Creates the deriver of a complete recording.
pub fn deriver(recording: &Recording, facts: &Facts) -> Deriver<Seen> {
    let known = Known {
        gaps: recording.gaps(recording.source.damage()),
        clock_errors: recording.clock_errors(),
        successions: recording.successions(),
        follows_threads: Some(facts.alone_streams(&recording.streams)),
        sum_buckets: None,
        ..Known::default()
    };
    Deriver::new(facts, known)
}

/// Creates the deriver of a live recording. Gaps are added as they become known.
pub fn growing(facts: &Facts) -> Deriver<Seen> {
    Deriver::new(facts, Known { follows_threads: Some(Vec::new()), ..Known::default() })
}

/// Gives up open items of a kind or channel that has more than [`OPEN_MAX`] of them, to bound
/// memory: such spans stay unfinished, and such flows are not completed.
pub fn bound(deriver: &mut Deriver<Seen>, kinds: &Kinds, builder: &mut dyn Gathers) {
    /// Closes intervals that are already shown, without an end.
    struct GivenUp<'a>(&'a mut dyn Gathers);
    impl DerivedSink for GivenUp<'_> {
        type Event = Seen;
        fn span(&mut self, _: &Kinds, span: &DerivedSpan<Seen>) {
            if let Some(opened) = span.begin.and_then(|begin| begin.event.opened) {
                self.0.ends(opened, None);
            }
        }
    }
    deriver.bound(kinds, OPEN_MAX, &mut GivenUp(builder));
}

/// Adds the derived items of one event to the index.
pub struct Drawing<'a> {
    pub counts: &'a mut Counts,
    pub lists: &'a mut Lists,
    pub builder: &'a mut dyn Gathers,
    pub ran: &'a mut Ran,
    pub threads: &'a Threads,
    /// Place of the event in the index; the default at the end of the recording.
    pub point: PointRef,
    pub thread: u32,
    /// CPU, thread and stream of the event, as far as they are certain.
    at: Option<At>,
    /// Whether no events are missing since the previous state of the same machine.
    is_state_whole: bool,
}

impl<'a> Drawing<'a> {
    pub fn new(
        (lists, builder): (&'a mut Lists, &'a mut dyn Gathers),
        (counts, ran): (&'a mut Counts, &'a mut Ran),
        threads: &'a Threads,
        (point, thread): (PointRef, u32),
    ) -> Self {
        Self {
            counts,
            lists,
            builder,
            ran,
            threads,
            point,
            thread,
            at: None,
            is_state_whole: false,
        }
    }

    fn lane(&mut self, owner: Owner) -> u32 {
        self.lists.owner_lane(self.builder, owner)
    }

    /// The lane of an owner's states; processes without an id use the owner of the event.
    fn lane_of_states(&mut self, owner: Owner, at: &At) -> u32 {
        self.lane(if owner == Owner::Process(None) { at.owner() } else { owner })
    }

    fn level(&mut self, kinds: &Kinds, at: &At, counter: u32, value: f64) {
        let kind = kinds.counters.get(counter as usize);
        let owner = match at.cpu {
            Some(cpu) if kind.is_some_and(|kind| kind.is_of_cpu) => Owner::Cpu(cpu),
            _ if kind.is_some_and(|kind| kind.key.is_some()) => Owner::of_process(at),
            _ => at.owner(),
        };
        let below = if owner == Owner::Process(None) { at.owner() } else { owner };
        let name = kind.map_or_else(String::new, |kind| kind.label());
        let counter = self.lists.counter(self.builder, (counter, owner), below, &name);
        if let Some(counter) = counter {
            self.builder.level(counter, at.time.0, value);
        }
    }

    /// Returns a thread that is named by an event, and its identity.
    fn named(&mut self, tid: u32) -> (u32, Writer) {
        let writer = Writer { pid: self.threads.pid(tid), tid };
        (self.lists.thread_told(self.builder, Some(writer), self.threads), writer)
    }

    /// Interval in which a thread occupied a CPU, and its lane; `None` if the CPU was idle.
    fn cpu_row(&mut self, of: &CpuInterval<Seen>) -> Option<(u32, Interval)> {
        let lane = self.lists.cpu_lane(self.builder, of.cpu);
        let (thread, _) = self.named(of.tid?);
        let interval = Interval {
            begin: of.begin.0,
            end: of.end.map(|end| end.0),
            name: self.lists.application_of(thread),
            thread,
            from: None,
            to: None,
            quality: quality(Quality::Exact),
        };
        Some((lane, interval))
    }

    /// Interval of a thread state, and its lane.
    fn thread_row(&mut self, of: &ThreadStateInterval<Seen>) -> (u32, Interval) {
        let (thread, writer) = self.named(of.tid);
        let lane = self.lane(Owner::Thread(writer));
        // The quality of an unfinished interval describes its begin, which is certain.
        let known = if of.state.is_some() { Quality::Exact } else { Quality::Unknown };
        let interval = Interval {
            begin: of.begin.0,
            end: of.ended_by.map(|_| of.end.0),
            name: self.lists.name(of.state.map_or(UNKNOWN_STATE, ThreadState::name)),
            thread,
            from: Some(of.begun_by.point),
            to: of.ended_by.map(|event| event.point),
            quality: quality(known),
        };
        (lane, interval)
    }

    /// Records the wakeup that began a wait for a CPU, for queries of single states.
    fn wake_up(&mut self, of: &ThreadStateInterval<Seen>, lane: u32, waiting: Interval) {
        let Some((waker, _)) = of.woken.filter(|_| of.state == Some(ThreadState::Runnable)) else {
            return;
        };
        let kind = match waker {
            Waker::Thread(_) => WakerKind::Thread,
            Waker::Interrupt => WakerKind::Interrupt,
            Waker::Unknown(_) => WakerKind::Unknown,
        };
        let thread = waker.thread().map_or(NOBODY, |tid| self.named(tid).0);
        let end = Some(of.end.0);
        let interval = Interval { name: kind as u32, thread, end, ..waiting };
        self.builder.interval(lane, RowKind::Wakes, None, interval);
    }

    fn state_interval(&mut self, name: &str, begin: Nanos, of: Seen) -> Interval {
        Interval {
            begin: begin.0,
            end: None,
            name: self.lists.name(name),
            thread: of.thread,
            from: Some(of.point),
            to: None,
            quality: quality(Quality::Unknown),
        }
    }
}

impl DerivedSink for Drawing<'_> {
    type Event = Seen;

    fn event(&mut self, kinds: &Kinds, at: &At, fact: &Fact) -> Seen {
        // A placeholder for an unknown thread has no lane.
        self.at = Some(At { writer: at.writer.filter(Doubts::is_known), ..*at });
        // If context switches may be missing, the thread of the event is only a guess.
        let thread = if at.writer.is_some() { self.thread } else { NOBODY };
        let seen = Seen { point: self.point, thread, opened: None };
        let opened = match *fact {
            // If the thread is unknown now, the lane is chosen at the end of the span.
            Fact::Begin { span, .. } => at.writer.and_then(|writer| {
                let lane = self.lane(Owner::Thread(writer));
                let interval = Interval {
                    begin: at.time.0,
                    end: None,
                    name: span,
                    thread,
                    from: Some(self.point),
                    to: None,
                    quality: quality(Quality::Unknown),
                };
                self.builder.begins(lane, RowKind::Spans, None, interval)
            }),
            Fact::State { machine, state } => kinds.machines.get(machine as usize).and_then(|of| {
                let lane = self.lane_of_states(kinds.owner_of_state(machine, at), at);
                let name = of.states.get(state as usize).map_or("", String::as_str);
                let interval = self.state_interval(name, at.time, seen);
                // Exact as long as no loss is known.
                let known = if self.is_state_whole { Quality::Exact } else { Quality::Unknown };
                let interval = Interval { quality: quality(known), ..interval };
                self.builder.begins(lane, RowKind::States, Some(&of.label()), interval)
            }),
            _ => None,
        };
        Seen { opened, ..seen }
    }

    fn span(&mut self, _: &Kinds, span: &DerivedSpan<Seen>) {
        match span.status {
            SpanStatus::Doubtful => return,
            SpanStatus::Orphan => {
                self.counts.orphans += 1;
                return;
            }
            SpanStatus::Complete | SpanStatus::Whole | SpanStatus::Unfinished => {}
        }
        let Some(SpanEnd { edge, event: begun, .. }) = span.begin else { return };
        *of(&mut self.counts.spans, span.kind) += 1;
        let is_complete = span.status == SpanStatus::Complete;
        let interval = Interval {
            begin: edge.time.0,
            end: span.end.map(|end| end.edge.time.0),
            name: span.kind,
            thread: begun.thread,
            from: Some(begun.point),
            to: span.end.filter(|_| is_complete).map(|end| end.event.point),
            quality: quality(span.quality),
        };
        if let Some(opened) = begun.opened {
            return self.builder.ends(opened, Some(interval));
        }
        let at = self.at.filter(|_| span.status != SpanStatus::Unfinished);
        let lane = match (edge.writer, at) {
            (Some(writer), _) => self.lane(Owner::Thread(writer)),
            (None, Some(at)) => self.lane(at.owner()),
            (None, None) => begun.point.lane,
        };
        self.builder.interval(lane, RowKind::Spans, None, interval);
    }

    fn flow(&mut self, _: &Kinds, channel: u32, flow: &DerivedFlow<Seen>) {
        let DerivedFlow::Complete { message, .. } = flow else { return };
        *of(&mut self.counts.flows, channel) += 1;
        let ends = [message.send, message.receive].map(|end| (end.time.0, end.event.point));
        self.builder.message(channel, ends[0], ends[1]);
    }

    fn state_reported(&mut self, _: (u32, Owner), _: Nanos, _: u32, is_whole: bool) {
        self.is_state_whole = is_whole;
    }

    fn state(&mut self, kinds: &Kinds, state: &StateInterval<Seen>) {
        let Some(machine) = kinds.machines.get(state.machine as usize) else { return };
        let name = machine.states.get(state.state as usize).map_or("", String::as_str);
        let interval = self.state_interval(name, state.since.time, state.event);
        // The quality of an unfinished state describes the state, not its duration.
        let known = match state.quality {
            Quality::Unknown => Quality::Unknown,
            _ => Quality::Exact,
        };
        let end = state.is_complete.then_some(state.until.0);
        let interval = Interval { end, quality: quality(known), ..interval };
        match state.event.opened {
            Some(opened) => self.builder.ends(opened, Some(interval)),
            None => {
                let lane = self.lane_of_states(state.owner, &state.since);
                let label = machine.label();
                self.builder.interval(lane, RowKind::States, Some(&label), interval);
            }
        }
    }

    fn contradiction(&mut self, contradiction: &Contradiction) {
        self.counts.contradictions.push(contradiction);
    }

    fn fact(&mut self, kinds: &Kinds, at: &At, fact: &Fact) {
        if let Fact::Level { counter, value } = *fact {
            self.level(kinds, at, counter, value);
        }
    }

    fn thread_state_begins(&mut self, of: &ThreadStateInterval<Seen>) -> Seen {
        let (lane, interval) = self.thread_row(of);
        let opened = self.builder.begins(lane, RowKind::ThreadStates, None, interval);
        Seen { opened, ..of.begun_by }
    }

    fn thread_state(&mut self, _: &Kinds, of: &ThreadStateInterval<Seen>) {
        let (lane, interval) = self.thread_row(of);
        // An interval of length zero is invisible, and would need a row besides that of its
        // successor.
        let is_seen = of.end > of.begin || of.ended_by.is_none();
        if is_seen {
            self.wake_up(of, lane, interval);
        }
        match of.begun_by.opened {
            Some(opened) => self.builder.ends(opened, Some(interval).filter(|_| is_seen)),
            None if is_seen => {
                self.builder.interval(lane, RowKind::ThreadStates, None, interval);
            }
            None => {}
        }
    }

    fn cpu_interval_begins(&mut self, of: &CpuInterval<Seen>) -> Seen {
        self.ran.is_known(self.builder, of.cpu);
        let row = self.cpu_row(of);
        let begins = |(lane, interval)| self.builder.begins(lane, RowKind::Running, None, interval);
        Seen { opened: row.and_then(begins), ..of.begun_by }
    }

    fn cpu_interval(&mut self, _: &Kinds, of: &CpuInterval<Seen>) {
        let Some((lane, interval)) = self.cpu_row(of) else { return };
        let ran = Some(interval).filter(|_| of.quality == Quality::Exact);
        match (of.begun_by.opened, ran) {
            (Some(opened), ran) => self.builder.ends(opened, ran),
            (None, Some(ran)) => self.builder.interval(lane, RowKind::Running, None, ran),
            (None, None) => {}
        }
        // The thread was switched in, and the switches between it and the next known thread are missing.
        if ran.is_none() && of.end.is_some() {
            let seen = Interval { end: Some(interval.begin), ..interval };
            self.builder.interval(lane, RowKind::Seen, None, seen);
        }
    }
}

fn of<T: Default>(list: &mut Vec<T>, index: u32) -> &mut T {
    let index = index as usize;
    if list.len() <= index {
        list.resize_with(index + 1, T::default);
    }
    &mut list[index]
}

fn quality(quality: Quality) -> u8 {
    match quality {
        Quality::Exact => 0,
        Quality::LowerBound => 1,
        _ => 2,
    }
}
