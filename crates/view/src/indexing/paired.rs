// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans, messages and states: what two events say together.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_analysis::{Edge, Flow, Flows, Gaps, Pairer, Side, SpanCertainty};
use lateralis_lanes::{Gathers, Interval, Opened, PointRef, RowKind};
use lateralis_model::{Quality, Source, Writer};
use lateralis_store::facts::{At, Doubts, Fact, Facts, Kinds, Owner};
use lateralis_store::{ClockErrors, Recording};
use lateralis_units::Nanos;

use super::lists::Lists;

/// What is open.
pub struct Paired {
    gaps: Gaps,
    certainty: SpanCertainty,
    doubts: Doubts,
    clock_errors: ClockErrors,
    pairers: Vec<Pairer>,
    begun: HashMap<(u32, Edge), Begun, RandomState>,
    flows: Flows<PointRef>,
    states: HashMap<(u32, Owner), InState, RandomState>,
    spans: Vec<u64>,
    messages: Vec<u64>,
    machine_names: Vec<String>,
}

/// The event that began a span, its thread, and where it is told already.
type Begun = (PointRef, u32, Option<Opened>);

/// Of a session that grows: spans of a kind, or messages of a channel, that may be open.
const OPEN_MAX: u64 = 1 << 20;

#[derive(Clone, Copy)]
struct InState {
    opened: Option<Opened>,
    state: u32,
    name: u32,
    since: i64,
    point: PointRef,
    thread: u32,
    lane: u32,
    machine: u32,
    /// When it was told last, and whether it was entered at `since` and has held up to then.
    told: i64,
    is_certain: bool,
}

impl Paired {
    pub fn new(recording: &Recording, facts: &Facts) -> Self {
        let gaps = recording.gaps(recording.source.damage());
        let clock_errors = recording.clock_errors();
        let begin = Nanos(i64::MIN);
        Self {
            certainty: SpanCertainty::new(begin, gaps.clone()),
            doubts: Doubts::new(facts, begin),
            flows: Flows::new(clock_errors.most().0),
            gaps,
            clock_errors,
            pairers: Vec::new(),
            begun: HashMap::default(),
            states: HashMap::default(),
            spans: Vec::new(),
            messages: Vec::new(),
            machine_names: facts.kinds().machines.iter().map(|m| m.name.clone()).collect(),
        }
    }

    /// Of a trace that is told while it is made: where events are missing becomes known.
    pub fn growing(facts: &Facts) -> Self {
        let begin = Nanos(i64::MIN);
        Self {
            certainty: SpanCertainty::new(begin, Gaps::default()),
            doubts: Doubts::new(facts, begin),
            flows: Flows::new(0),
            gaps: Gaps::default(),
            clock_errors: ClockErrors::default(),
            pairers: Vec::new(),
            begun: HashMap::default(),
            states: HashMap::default(),
            spans: Vec::new(),
            messages: Vec::new(),
            machine_names: Vec::new(),
        }
    }

    /// Where events are missing, as far as it is known by now.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.certainty.set_gaps(gaps.clone());
        self.gaps = gaps;
    }

    /// Gives up what is open for so long, or so often, that it would fill the memory: spans stay
    /// unfinished, messages are not joined.
    pub fn bound(&mut self, builder: &mut dyn Gathers) {
        for (span, pairer) in (0u32..).zip(&mut self.pairers) {
            if pairer.unfinished_count() > OPEN_MAX {
                *pairer = Pairer::default();
                self.begun.retain(|(of, _), (.., opened)| {
                    if *of == span
                        && let Some(opened) = opened.take()
                    {
                        builder.ends(opened, None);
                    }
                    *of != span
                });
            }
        }
        self.flows.bound(OPEN_MAX);
    }

    /// Spans of a kind, those that have not ended included.
    pub fn span_count(&self, kind: usize) -> u64 {
        self.spans.get(kind).copied().unwrap_or(0)
    }

    /// Messages of a channel with both ends.
    pub fn message_count(&self, channel: usize) -> u64 {
        self.messages.get(channel).copied().unwrap_or(0)
    }

    /// Ends of spans that never began.
    pub fn orphans(&self) -> u64 {
        self.pairers.iter().map(Pairer::orphan_count).sum()
    }

    pub fn fact(
        &mut self,
        at: &At,
        fact: Fact,
        (point, thread): (PointRef, u32),
        kinds: &Kinds,
        lists: &mut Lists,
        builder: &mut dyn Gathers,
    ) {
        self.doubts.see(at, &fact, &self.gaps);
        let Some((at, fact)) = self.doubts.fact(at, fact, &self.gaps) else {
            return;
        };
        match fact {
            Fact::Begin { span, key } => {
                let edge = Edge { time: at.time, side: Side::Begin, key, writer: at.writer };
                of(&mut self.pairers, span).push(edge);
                // Whose it is is known now, or only when it ends.
                let opened = edge.writer.and_then(|writer| {
                    let lane = lists.owner_lane(builder, Owner::Thread(writer));
                    let interval = Interval {
                        begin: edge.time.0,
                        end: None,
                        name: span,
                        thread,
                        from: Some(point),
                        to: None,
                        quality: quality(Quality::Unknown),
                    };
                    builder.begins(lane, RowKind::Spans, None, interval)
                });
                if let Some((_, _, Some(lost))) =
                    self.begun.insert((span, edge), (point, thread, opened))
                {
                    builder.ends(lost, None);
                }
            }
            Fact::End { span, key } => {
                let edge = Edge { time: at.time, side: Side::End, key, writer: at.writer };
                let Some(found) = of(&mut self.pairers, span).push(edge) else { return };
                let is_certain = self.certainty.is_certain(span, &found);
                let begun = self.begun.remove(&(span, found.begin));
                let interval = Interval {
                    begin: found.begin.time.0,
                    end: Some(found.end.time.0),
                    name: span,
                    thread: begun.map_or(thread, |(_, thread, _)| thread),
                    from: begun.map(|(point, ..)| point),
                    to: Some(point),
                    quality: quality(if is_certain { Quality::Exact } else { Quality::Unknown }),
                };
                if let Some((_, _, Some(opened))) = begun {
                    *of(&mut self.spans, span) += 1;
                    return builder.ends(opened, Some(interval));
                }
                let owner = found.begin.writer.map_or(at.owner(), Owner::Thread);
                self.span(owner, interval, lists, builder);
            }
            Fact::Whole { span, duration_ns } => {
                let end = at.time.0.saturating_add_unsigned(duration_ns);
                let interval = Interval {
                    begin: at.time.0,
                    end: Some(end),
                    name: span,
                    thread,
                    from: Some(point),
                    to: None,
                    quality: 0,
                };
                self.span(at.owner(), interval, lists, builder);
            }
            Fact::Send { channel, key } => {
                self.flows.forget_arrivals(Some(at.time));
                let errors = &mut self.clock_errors;
                let apart = |one, other| errors.between(one, other);
                let flow = self.flows.send((channel, key), at.end().of_event(point), apart);
                self.message(channel, flow, builder);
            }
            Fact::Receive { channel, key } => {
                self.flows.forget_arrivals(Some(at.time));
                let end = at.end().of_event(point);
                let flow = self.flows.receive((channel, key), end, kinds.fans_out(channel));
                self.message(channel, flow, builder);
            }
            Fact::State { machine, state } => {
                let owner = kinds.owner_of_state(machine, &at);
                let place = (machine, owner);
                let before = self.states.get(&place).copied();
                // As in the table of states: what is told behind a gap may have been entered in it.
                let told = before.map_or(i64::MIN, |before| before.told);
                let is_whole = !self.gaps.between(Nanos(told.min(at.time.0)), at.time);
                if let Some(before) =
                    self.states.get_mut(&place).filter(|before| before.state == state)
                {
                    before.told = at.time.0;
                    before.is_certain &= is_whole;
                    return;
                }
                let known = kinds.machines.get(machine as usize);
                let name = known.and_then(|known| known.states.get(state as usize));
                let name = lists.name(name.map_or("", String::as_str));
                let below = if owner == Owner::Process(None) { at.owner() } else { owner };
                let lane = lists.owner_lane(builder, below);
                let label = known.map(|known| known.label());
                *of(&mut self.machine_names, machine) = label.clone().unwrap_or_default();
                if let Some(before) = before {
                    self.state(before, Some(at.time.0), label.as_deref(), builder);
                }
                let since = at.time.0;
                let mut now = InState {
                    opened: None,
                    state,
                    name,
                    since,
                    point,
                    thread,
                    lane,
                    machine,
                    told: since,
                    is_certain: is_whole,
                };
                let interval = self.interval(now, None);
                now.opened = builder.begins(lane, RowKind::States, label.as_deref(), interval);
                self.states.insert(place, now);
            }
            Fact::Belongs { tid, pid } => {
                let (from, to) = (Writer { pid: tid, tid }, Writer { pid, tid });
                for (span, pairer) in (0u32..).zip(&mut self.pairers) {
                    for edge in pairer.reassign(from, to) {
                        if let Some(begun) = self.begun.remove(&(span, edge)) {
                            let edge = Edge { writer: Some(to), ..edge };
                            self.begun.insert((span, edge), begun);
                        }
                    }
                }
            }
            Fact::Level { .. } | Fact::Switch { .. } | Fact::Wake { .. } => {}
        }
    }

    fn span(
        &mut self,
        owner: Owner,
        interval: Interval,
        lists: &mut Lists,
        builder: &mut dyn Gathers,
    ) {
        *of(&mut self.spans, interval.name) += 1;
        let lane = lists.owner_lane(builder, owner);
        builder.interval(lane, RowKind::Spans, None, interval);
    }

    fn state(
        &self,
        state: InState,
        end: Option<i64>,
        name: Option<&str>,
        builder: &mut dyn Gathers,
    ) {
        let interval = self.interval(state, end);
        match state.opened {
            Some(opened) => builder.ends(opened, Some(interval)),
            None => builder.interval(state.lane, RowKind::States, name, interval),
        }
    }

    fn interval(&self, state: InState, end: Option<i64>) -> Interval {
        let until = end.unwrap_or(i64::MAX);
        let is_whole =
            state.is_certain && !self.gaps.between(Nanos(state.told), Nanos(until.max(state.told)));
        Interval {
            begin: state.since,
            end,
            name: state.name,
            thread: state.thread,
            from: Some(state.point),
            to: None,
            quality: quality(if is_whole { Quality::Exact } else { Quality::Unknown }),
        }
    }

    fn message(&mut self, channel: u32, flow: Flow<PointRef>, builder: &mut dyn Gathers) {
        let Flow::Joined(message) = flow else { return };
        *of(&mut self.messages, channel) += 1;
        let ends = [message.send, message.receive].map(|end| (end.time.0, end.event));
        builder.message(channel, ends[0], ends[1]);
    }

    /// What is still open at the end.
    pub fn end(&mut self, lists: &mut Lists, builder: &mut dyn Gathers) {
        for span in 0..self.pairers.len() {
            for edge in self.pairers[span].unfinished() {
                let begun = self.begun.remove(&(span as u32, edge));
                let Some((point, thread, _)) = begun else { continue };
                let interval = Interval {
                    begin: edge.time.0,
                    end: None,
                    name: span as u32,
                    thread,
                    from: Some(point),
                    to: None,
                    quality: quality(Quality::Unknown),
                };
                let owner = edge.writer.map(Owner::Thread);
                match owner {
                    Some(owner) => self.span(owner, interval, lists, builder),
                    None => {
                        *of(&mut self.spans, interval.name) += 1;
                        builder.interval(point.lane, RowKind::Spans, None, interval);
                    }
                }
            }
        }
        let mut states: Vec<InState> = self.states.drain().map(|(_, state)| state).collect();
        states.sort_by_key(|state| (state.lane, state.machine, state.since));
        for state in states {
            let name = self.machine_names.get(state.machine as usize).cloned();
            self.state(state, None, name.as_deref(), builder);
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
