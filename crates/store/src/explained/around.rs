// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Everything around one span, as the kernel of critical paths wants it.

use std::collections::{BTreeMap, HashMap, HashSet};

use lateralis_analysis::path::{
    Busy, Hold, Leaves, Message, Named, Path, Scene, SceneBuilder, Share, Switch, Waiting, Wake,
    WokenBy, causes, shares,
};
use lateralis_analysis::{Edge, End, Flow, Flows, Numbering, Pairer, Side, Span};
use lateralis_model::role::KEY_CPU;
use lateralis_model::{Damage, Event, Interval, Quality, Writer};
use lateralis_units::Nanos;

use super::found::Found;
use super::locks::{Locks, Part, object};
use crate::ClockErrors;
use crate::chosen::Chosen;
use crate::facts::{At, Fact, Facts, Kind, Leaving, Waker};

/// A path with the names of everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// Whose it is.
    pub found: Found,
    /// The segments.
    pub path: Path,
    /// Where the time went.
    pub shares: Vec<Share>,
    /// Names by number, of spans and channels.
    pub names: Vec<String>,
    /// Number and name of each thread.
    pub threads: Vec<(u32, Option<String>)>,
    /// Unknown where events are missing inside of the span, or before: what was open when it
    /// began, who held what and which messages were on their way is known from there.
    pub quality: Quality,
    /// Whether they are missing inside.
    pub is_missing_inside: bool,
    /// Whether events are missing inside or before, as far as it matters.
    pub is_missing: bool,
    /// Whether a thread waits on the path, and what woke it is not known for sure: then the quality
    /// is unknown as well.
    pub is_waker_unknown: bool,
}

struct Gathering<'a> {
    begin: Nanos,
    locks: Locks,
    builder: SceneBuilder,
    waitings: Vec<Waiting>,
    holds: Vec<Hold>,
    tids: Numbering<u32>,
    pairers: Vec<Pairer>,
    /// Each end with since when its thread may have been waiting then.
    flows: Flows<Nanos>,
    clock_errors: ClockErrors,
    /// What open waits wait for, by kind and thread.
    objects: HashMap<(u32, u32), Option<u64>>,
    /// How many of a kind are open on a thread; kinds of which two were are no activity of it.
    open: HashMap<(u32, u32), u32>,
    things: HashSet<u32>,
    /// Since when each thread may have been waiting, seen from its last event.
    idle_since: HashMap<u32, Nanos>,
    /// The last switch of each thread before the beginning.
    before: BTreeMap<u32, Switch>,
    facts: &'a Facts,
}

impl Explained {
    /// Walks back through what happened around a span. Of what is chosen only the time counts:
    /// others than those chosen may have been waited for.
    ///
    /// Cost: one pass over the events up to its end; memory by what happens inside of it.
    #[must_use]
    pub fn of(chosen: &Chosen<'_>, found: &Found) -> Self {
        let (begin, end) = (found.span.begin.time, found.span.end.time);
        let mut facts = chosen.facts();
        // The kinds do not change while events are read; keys do.
        let kinds = chosen.facts();
        let mut gathering = Gathering::new(begin, &kinds, chosen.clock_errors.clone());
        gathering.tids.number(found.tid);
        let mut said = Vec::new();
        let interval = Interval { begin: chosen.interval.begin, end: Some(end) };
        let mut events = chosen.source.events_in(interval);
        while let Some(event) = events.next_event() {
            let at = facts.of(&event, |_, fact| said.push(fact));
            gathering.event(&event, &at, &mut said);
        }
        let inside = events.damage();
        let damage: Vec<Damage> = chosen.source.damage().iter().cloned().chain(inside).collect();
        gathering.finish(end);
        let cpus = gathering.builder.switches.iter().map(|switch| switch.cpu as usize + 1).max();
        let mut waits = known_causes(&gathering.waitings, &gathering.holds);
        waits.append(&mut gathering.builder.waits);
        gathering.builder.waits = waits;
        let thread_count = gathering.tids.len();
        let scene: Scene = gathering.builder.build(thread_count, cpus.unwrap_or(0).min(1 << 16));
        let path = scene.path(0, begin, end);
        let gaps = chosen.gaps(&damage);
        let since = chosen.ends().0.min(begin);
        let is_waker_unknown = path.is_doubtful;
        let is_missing = !found.is_certain || gaps.between(since, end);
        let is_exact = !is_missing && !is_waker_unknown;
        let name = |tid: &u32| {
            let told = facts.threads().get(*tid).and_then(|thread| thread.name.clone());
            (*tid, told.or_else(|| chosen.names.threads.get(tid).cloned()))
        };
        let of_kind =
            |kinds: &[Kind]| kinds.iter().map(|kind| kind.name.clone()).collect::<Vec<_>>();
        let mut names = of_kind(&kinds.kinds().spans);
        names.extend(of_kind(&kinds.kinds().channels));
        Self {
            found: *found,
            shares: shares(&path.segments),
            path,
            names,
            threads: gathering.tids.things().iter().map(name).collect(),
            quality: match (is_exact, found.is_open) {
                (true, false) => Quality::Exact,
                // Events after the last one can only prolong it.
                (true, true) => Quality::LowerBound,
                (false, _) => Quality::Unknown,
            },
            is_missing_inside: gaps.between(begin.min(end), end),
            is_missing,
            is_waker_unknown,
        }
    }
}

/// Who ended the waits. Where no object is ever of two threads, the fields do not tell locks
/// apart but threads; then any release of the family will do.
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
    fn new(begin: Nanos, facts: &'a Facts, clock_errors: ClockErrors) -> Self {
        Self {
            begin,
            locks: Locks::new(facts.kinds()),
            builder: SceneBuilder::default(),
            waitings: Vec::new(),
            holds: Vec::new(),
            tids: Numbering::default(),
            pairers: Vec::new(),
            flows: Flows::new(clock_errors.most().0),
            clock_errors,
            objects: HashMap::new(),
            open: HashMap::new(),
            things: HashSet::new(),
            idle_since: HashMap::new(),
            before: BTreeMap::new(),
            facts,
        }
    }

    fn event(&mut self, event: &Event<'_>, at: &At, said: &mut Vec<Fact>) {
        let tid = at.writer.map(|writer| writer.tid);
        let mut idle_since = at.time;
        if let (Some((family, object)), Some(tid)) = (self.locks.signal(event), tid) {
            self.hold(family, object, tid, at.time);
        }
        for fact in said.drain(..) {
            match fact {
                Fact::Begin { span, key } => self.begin(event, at, span, key),
                Fact::End { span, key } => {
                    if let Some(ended) = self.end(event, at, span, key) {
                        idle_since = idle_since.min(ended.begin.time);
                    }
                }
                Fact::Whole { span, duration_ns } => {
                    if let Some(tid) = tid {
                        let end = Nanos(at.time.0.saturating_add_unsigned(duration_ns));
                        self.named(tid, at.time, end, span);
                    }
                }
                Fact::Send { channel, key } => self.send(at, channel, key),
                Fact::Receive { channel, key } => self.receive(at, channel, key),
                Fact::Switch { from, leaving, to, from_is_whole, to_is_whole } => {
                    let from = Some(from).filter(|_| from_is_whole);
                    self.switch(at, from, leaving, Some(to).filter(|_| to_is_whole));
                }
                Fact::Wake { tid: wakee, waker, .. } => self.wake(at, waker, wakee),
                Fact::Belongs { tid, pid } => {
                    let (from, to) = (Writer { pid: tid, tid }, Writer { pid, tid });
                    self.pairers.iter_mut().for_each(|pairer| _ = pairer.reassign(from, to));
                }
                Fact::State { .. } | Fact::Level { .. } => {}
            }
        }
        if let Some(tid) = tid {
            self.idle_since.insert(tid, idle_since);
        }
    }

    fn of_cpu(&self, span: u32) -> bool {
        let kind = self.facts.kinds().spans.get(span as usize);
        kind.is_some_and(|kind| kind.keys.iter().any(|key| key == KEY_CPU))
    }

    fn pairer(&mut self, span: u32) -> &mut Pairer {
        let index = span as usize;
        if self.pairers.len() <= index {
            self.pairers.resize_with(index + 1, Pairer::default);
        }
        &mut self.pairers[index]
    }

    fn begin(&mut self, event: &Event<'_>, at: &At, span: u32, key: Option<u64>) {
        let edge = Edge { time: at.time, side: Side::Begin, key, writer: at.writer };
        self.pairer(span).push(edge);
        if self.of_cpu(span) {
            return;
        }
        let Some(tid) = at.writer.map(|writer| writer.tid) else {
            return;
        };
        let open = self.open.entry((span, tid)).or_default();
        *open += 1;
        if *open > 1 && key.is_some() {
            self.things.insert(span);
        }
        if let Part::Waits(_, which) = self.locks.part(span) {
            self.objects.insert((span, tid), object(event, which));
        }
    }

    fn end(&mut self, event: &Event<'_>, at: &At, span: u32, key: Option<u64>) -> Option<Span> {
        let edge = Edge { time: at.time, side: Side::End, key, writer: at.writer };
        let ended = self.pairer(span).push(edge);
        if self.of_cpu(span) {
            let cpu = at.cpu?;
            let begin = ended?.begin.time;
            if at.time >= self.begin {
                self.builder.busy.push(Busy { cpu, begin, end: at.time, what: span });
            }
            return None;
        }
        let tid = at.writer?.tid;
        if let Part::Holds(family, which) = self.locks.part(span) {
            let (family, object) = (*family, object(event, which));
            self.hold(family, object, tid, at.time);
        }
        let ended = ended?;
        let began = ended.begin.writer.map_or(tid, |writer| writer.tid);
        let open = self.open.entry((span, began)).or_default();
        *open = open.saturating_sub(1);
        if began != tid {
            return None;
        }
        if let Part::Waits(family, _) = self.locks.part(span) {
            let family = *family;
            let object = self.objects.remove(&(span, tid)).flatten();
            if at.time >= self.begin {
                let thread = self.tids.number(tid);
                let (begin, end) = (ended.begin.time, at.time);
                self.waitings.push(Waiting { thread, begin, end, what: span, family, object });
            }
        }
        self.named(tid, ended.begin.time, at.time, span);
        key.is_none().then_some(ended)
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

    /// An end of a message, with since when its thread may have been waiting.
    fn end_of(&self, at: &At) -> End<Nanos> {
        let tid = at.writer.map(|writer| writer.tid);
        let idle_since = tid.and_then(|tid| self.idle_since.get(&tid)).copied();
        at.end().of_event(idle_since.unwrap_or(self.begin))
    }

    fn send(&mut self, at: &At, channel: u32, key: Option<u64>) {
        self.flows.forget_arrivals(Some(at.time));
        let (end, errors) = (self.end_of(at), &mut self.clock_errors);
        let flow = self.flows.send((channel, key), end, |one, other| errors.between(one, other));
        self.message(channel, flow);
    }

    fn receive(&mut self, at: &At, channel: u32, key: Option<u64>) {
        self.flows.forget_arrivals(Some(at.time));
        let fans_out = self.facts.kinds().fans_out(channel);
        let flow = self.flows.receive((channel, key), self.end_of(at), fans_out);
        self.message(channel, flow);
    }

    fn message(&mut self, channel: u32, flow: Flow<Nanos>) {
        let Flow::Joined(message) = flow else { return };
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
            // By clocks that may be off it has left by the time it arrives.
            sent: send.time.min(receive.time),
            receiver: self.tids.number(receiver.tid),
            received: receive.time,
            idle_since: receive.event,
            what: channels + channel,
        };
        self.builder.waits.extend(message.wait());
    }

    fn switch(&mut self, at: &At, from: Option<u32>, leaving: Leaving, to: Option<u32>) {
        let Some(cpu) = at.cpu else {
            return;
        };
        let thread = |tids: &mut Numbering<u32>, tid: Option<u32>| {
            tid.filter(|tid| *tid != 0).map(|tid| tids.number(tid))
        };
        let leaves = match leaving {
            Leaving::Preempted => Leaves::Ready,
            _ => Leaves::Blocked,
        };
        let (old, new) = (thread(&mut self.tids, from), thread(&mut self.tids, to));
        let switch = Switch { time: at.time, cpu, from: old, leaves, to: new };
        if at.time >= self.begin {
            self.builder.switches.push(switch);
            return;
        }
        for number in [old, new].into_iter().flatten() {
            self.before.insert(number, switch);
        }
    }

    fn wake(&mut self, at: &At, waker: Waker, wakee: u32) {
        let by = match waker {
            Waker::Thread(tid) => WokenBy::Thread(self.tids.number(tid)),
            Waker::Interrupt => WokenBy::Interrupt,
            Waker::Unknown(Some(tid)) => WokenBy::Likely(self.tids.number(tid)),
            Waker::Unknown(None) => WokenBy::Unknown,
        };
        let wakee = self.tids.number(wakee);
        self.builder.wakes.push(Wake { time: at.time, by, wakee });
    }

    /// Adds what is still open at the end, and what each thread was before the beginning.
    fn finish(&mut self, end: Nanos) {
        let open: Vec<(u32, Edge)> = (0..self.pairers.len())
            .flat_map(|span| {
                let edges = self.pairers[span].unfinished();
                edges.into_iter().map(move |edge| (span as u32, edge))
            })
            .collect();
        for (span, edge) in open {
            if let (Some(Writer { tid, .. }), false) = (edge.writer, self.of_cpu(span)) {
                self.named(tid, edge.time, end, span);
            }
        }
        let things = std::mem::take(&mut self.things);
        self.builder.named.retain(|named| !things.contains(&named.what));
        let mut before: Vec<Switch> = std::mem::take(&mut self.before).into_values().collect();
        before.sort_by_key(|switch| (switch.time, switch.cpu));
        before.dedup();
        before.append(&mut self.builder.switches);
        self.builder.switches = before;
        // Wakes before the beginning matter to those that have not run since.
        let begin = self.begin;
        let first = self.builder.switches.first().map_or(begin, |switch| switch.time.min(begin));
        self.builder.wakes.retain(|wake| wake.time >= first);
    }
}
