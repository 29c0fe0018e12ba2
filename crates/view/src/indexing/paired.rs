// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans, messages and states: what two events say together.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_analysis::{Arrival, Early, Edge, End, Gaps, Matcher, Pairer, Side, SpanCertainty};
use lateralis_lanes::{Gathers, Interval, Opened, PointRef, RowKind};
use lateralis_model::{Quality, Source};
use lateralis_store::facts::{At, Doubts, Fact, Facts, Kinds, Owner};
use lateralis_store::{ClockErrors, Recording};
use lateralis_units::Nanos;

use super::lists::Lists;

/// An end of a message, to find its event.
type Sent = (u32, i64, u32);

/// What is open.
pub struct Paired {
    gaps: Gaps,
    certainty: SpanCertainty,
    doubts: Doubts,
    clock_errors: ClockErrors,
    pairers: Vec<Pairer>,
    begun: HashMap<(u32, Edge), Begun, RandomState>,
    matchers: Vec<Matcher>,
    early: Early,
    ends: HashMap<Sent, PointRef, RandomState>,
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
}

impl Paired {
    pub fn new(recording: &Recording, facts: &Facts) -> Self {
        let gaps = recording.gaps(recording.source.damage());
        let clock_errors = recording.clock_errors();
        let begin = Nanos(i64::MIN);
        Self {
            certainty: SpanCertainty::new(begin, gaps.clone()),
            doubts: Doubts::new(facts, begin),
            early: Early::new(clock_errors.most().0),
            gaps,
            clock_errors,
            pairers: Vec::new(),
            begun: HashMap::default(),
            matchers: Vec::new(),
            ends: HashMap::default(),
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
            early: Early::new(0),
            gaps: Gaps::default(),
            clock_errors: ClockErrors::default(),
            pairers: Vec::new(),
            begun: HashMap::default(),
            matchers: Vec::new(),
            ends: HashMap::default(),
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
        for (channel, matcher) in (0u32..).zip(&mut self.matchers) {
            if matcher.on_the_way() > OPEN_MAX || matcher.held() > OPEN_MAX {
                *matcher = Matcher::default();
                self.ends.retain(|(of, ..), _| *of != channel);
            }
        }
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
                self.give_up(Some(at.time));
                let sent = at.end();
                let errors = &mut self.clock_errors;
                let apart = |one, other| errors.between(one, other);
                let Some(received) = self.early.take(channel, key, &sent, apart) else {
                    of(&mut self.matchers, channel).send(key, sent);
                    self.ends.insert(place(channel, &sent), point);
                    return;
                };
                of(&mut self.matchers, channel).has_left();
                if let Some(came) = self.ends.remove(&place(channel, &received)) {
                    self.message(channel, (sent, point), (received, came), builder);
                }
            }
            Fact::Receive { channel, key } => {
                self.give_up(Some(at.time));
                let end = at.end();
                let fans_out = kinds.fans_out(channel);
                let Some(message) = of(&mut self.matchers, channel).receive(key, end, fans_out)
                else {
                    self.early.arrive(Arrival { channel, key, end });
                    if self.clock_errors.most().0 > 0 {
                        self.ends.insert(place(channel, &end), point);
                    }
                    return;
                };
                let departure = place(channel, &message.send);
                // What fans out may arrive again.
                let left = match fans_out {
                    true => self.ends.get(&departure).copied(),
                    false => self.ends.remove(&departure),
                };
                if let Some(left) = left {
                    self.message(channel, (message.send, left), (end, point), builder);
                }
            }
            Fact::State { machine, state } => {
                let owner = at.owner();
                let place = (machine, owner);
                let before = self.states.get(&place).copied();
                if before.is_some_and(|before| before.state == state) {
                    return;
                }
                let known = kinds.machines.get(machine as usize);
                let name = known.and_then(|known| known.states.get(state as usize));
                let name = lists.name(name.map_or("", String::as_str));
                let lane = lists.owner_lane(builder, owner);
                if let Some(before) = before {
                    self.state(before, Some(at.time.0), known.map(|k| k.name.as_str()), builder);
                }
                let since = at.time.0;
                let mut now =
                    InState { opened: None, state, name, since, point, thread, lane, machine };
                let interval = self.interval(now, None);
                let machine = known.map(|k| k.name.as_str());
                now.opened = builder.begins(lane, RowKind::States, machine, interval);
                self.states.insert(place, now);
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
        let is_whole = !self.gaps.between(Nanos(state.since), Nanos(until.max(state.since)));
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

    fn message(
        &mut self,
        channel: u32,
        (sent, left): (End, PointRef),
        (received, came): (End, PointRef),
        builder: &mut dyn Gathers,
    ) {
        *of(&mut self.messages, channel) += 1;
        builder.message(channel, (sent.time.0, left), (received.time.0, came));
    }

    /// Arrivals whose departures cannot come any more.
    fn give_up(&mut self, now: Option<Nanos>) {
        while let Some(Arrival { channel, end, .. }) = self.early.give_up(now) {
            self.ends.remove(&place(channel, &end));
        }
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

fn place(channel: u32, end: &End) -> Sent {
    (channel, end.time.0, end.stream.0)
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
