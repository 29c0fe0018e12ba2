// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Order of switches and wakeups of equal time.
//!
//! Events of one stream keep the order of the stream. Different streams have no order: among the next
//! events of all streams, the first that does not depend on another of them comes next.
//!
//! ```text
//! stream 0 (CPU 0)   switch to B 7               needs B to be awake
//! stream 1 (CPU 1)   wake B 7, switch from A 7
//! order              wake B, switch to B, switch from A
//! ```

use std::collections::BTreeMap;

use lateralis_model::StreamIndex;
use lateralis_units::Nanos;

use crate::facts::{At, Fact, WakeMoment};
use crate::thread_orders::Step;

/// Events of equal time that are ordered together.
const ALL_MAX: usize = 128;
/// Streams whose next events are compared with all others.
const STREAMS_MAX: usize = 32;

/// Required state of a thread before an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    Nothing,
    /// It must leave its current CPU.
    Leaves(u32),
    /// It must be woken.
    Wakes(u32),
}

/// Events of equal time, grouped by stream.
///
/// Cost: none if they belong to one stream, else at most 32 × 128 steps each. Memory: 128 events.
#[derive(Debug)]
pub(crate) struct Simultaneous<E> {
    all: Vec<Option<(At, Fact, E)>>,
    /// Number of events that have been taken.
    first: usize,
    are_of_several_streams: bool,
    /// Threads whose wakeup has begun, with its stream.
    woken: Vec<(u32, StreamIndex)>,
}

/// Events of equal time, by stream.
type StepsByStream = Vec<(StreamIndex, Vec<Step>)>;

/// A thread with events of equal time in several streams.
#[derive(Debug)]
pub(crate) struct SpreadThread<E> {
    pub tid: u32,
    /// Effects on the thread by the events of each stream.
    pub streams: Vec<Vec<Step>>,
    /// The last of the events.
    pub event: E,
}

impl<E> Default for Simultaneous<E> {
    fn default() -> Self {
        Self { all: Vec::new(), first: 0, are_of_several_streams: false, woken: Vec::new() }
    }
}

impl<E: Copy> Simultaneous<E> {
    pub(crate) fn is_full(&self) -> bool {
        self.all.len() >= ALL_MAX
    }

    /// Whether there are events and no more of their time can come.
    #[inline]
    pub(crate) fn has_passed(&self, now: Option<Nanos>) -> bool {
        self.time().is_some_and(|time| now.is_none_or(|now| now != time))
    }

    /// Their time.
    pub(crate) fn time(&self) -> Option<Nanos> {
        let first = self.all.first().and_then(Option::as_ref);
        first.map(|(at, ..)| at.time)
    }

    pub(crate) fn push(&mut self, at: At, fact: Fact, event: E) {
        let first = self.all.first().and_then(Option::as_ref);
        self.are_of_several_streams |= first.is_some_and(|(of, ..)| of.stream != at.stream);
        self.all.push(Some((at, fact, event)));
    }

    /// The same without any, with the memory that it has.
    pub(crate) fn cleared(mut self) -> Self {
        self.all.clear();
        self.woken.clear();
        Self { first: 0, are_of_several_streams: false, ..self }
    }

    /// Each thread that an event changes, with the event and what it does.
    fn steps(&self) -> impl Iterator<Item = (u32, StreamIndex, Step, E)> {
        let of = |(number, (at, fact, event)): (u32, &(At, Fact, E))| {
            let (first, second) = match *fact {
                Fact::Switch { from, leaving, to, from_is_whole, to_is_whole } => {
                    let cpu = at.cpu.unwrap_or_default();
                    let leaves = Step::Leaves(cpu, leaving.goes_into());
                    let leaves = Some((from, leaves)).filter(|_| from != 0 && from_is_whole);
                    let comes = Some((to, Step::Comes(cpu))).filter(|_| to != 0 && to_is_whole);
                    (leaves, comes)
                }
                Fact::Wake { tid, moment: WakeMoment::BeginOfNew, .. } => {
                    (Some((tid, Step::Starts(number))), None)
                }
                Fact::Wake { tid, moment: WakeMoment::Begin, .. } => {
                    (Some((tid, Step::Wakes(number))), None)
                }
                Fact::Wake { tid, .. } => (Some((tid, Step::Queued(number))), None),
                _ => (None, None),
            };
            let (stream, event) = (at.stream, *event);
            [first, second].into_iter().flatten().map(move |(tid, step)| (tid, stream, step, event))
        };
        // The other end of a wakeup that began at the same time in another stream is no second wakeup.
        let is_second = |(at, fact, _): &(At, Fact, E)| match *fact {
            Fact::Wake { tid, moment: WakeMoment::Queued, .. } => {
                self.all.iter().flatten().any(|(other, of, _)| {
                    let is_begin = matches!(*of, Fact::Wake { tid: woken, moment, .. }
                        if woken == tid && moment.is_begin());
                    is_begin && other.stream != at.stream
                })
            }
            _ => false,
        };
        let left = self.all.iter().flatten().filter(move |event| !is_second(event));
        (0..).zip(left).flat_map(of)
    }

    /// Threads that have events in several streams.
    ///
    /// Cost: none if all events belong to one stream, else a lookup for each.
    pub(crate) fn spread_threads(&self) -> Vec<SpreadThread<E>> {
        if !self.are_of_several_streams {
            return Vec::new();
        }
        let mut threads: BTreeMap<u32, (StepsByStream, E)> = BTreeMap::new();
        for (tid, stream, step, event) in self.steps() {
            let (streams, last) = threads.entry(tid).or_insert((Vec::new(), event));
            *last = event;
            match streams.iter_mut().find(|of| of.0 == stream) {
                Some((_, steps)) => steps.push(step),
                None => streams.push((stream, vec![step])),
            }
        }
        let spread = threads.into_iter().filter(|(_, (streams, _))| streams.len() > 1);
        let spread = spread.map(|(tid, (streams, event))| {
            let streams = streams.into_iter().map(|(_, steps)| steps).collect();
            SpreadThread { tid, streams, event }
        });
        spread.collect()
    }

    /// Threads of these events, each with the stream of an event.
    pub(crate) fn threads(&self) -> impl Iterator<Item = (u32, StreamIndex, E)> {
        self.steps().map(|(tid, stream, _, event)| (tid, stream, event))
    }

    /// The next event; `before` returns the requirements of an event that are not met yet.
    pub(crate) fn next(&mut self, before: impl Fn(&At, &Fact) -> Before) -> Option<(At, Fact, E)> {
        loop {
            while self.all.get(self.first)?.is_none() {
                self.first += 1;
            }
            let index = match self.are_of_several_streams {
                true => self.first_ready(&before).unwrap_or(self.first),
                false => self.first,
            };
            let next = self.all.get_mut(index)?.take()?;
            let (at, fact, _) = next;
            if let Fact::Wake { tid, moment, .. } = fact {
                // The other end of a wakeup that began at the same time in another stream adds nothing.
                let is_it = |of: &(u32, StreamIndex)| of.0 == tid && of.1 != at.stream;
                if moment == WakeMoment::Queued && self.woken.iter().any(is_it) {
                    continue;
                }
                if moment.is_begin() {
                    self.woken.push((tid, at.stream));
                }
            }
            return Some(next);
        }
    }

    /// The next event of each stream, by CPU: the order of streams is merely that of files.
    fn heads(&self) -> Vec<usize> {
        let mut heads: Vec<(Option<u32>, StreamIndex, usize)> = Vec::new();
        for (index, of) in (self.first..).zip(&self.all[self.first..]) {
            let Some((at, ..)) = of else { continue };
            if heads.len() < STREAMS_MAX && heads.iter().all(|head| head.1 != at.stream) {
                heads.push((at.cpu, at.stream, index));
            }
        }
        heads.sort_unstable();
        heads.into_iter().map(|(.., index)| index).collect()
    }

    /// The first of the next events that does not depend on another of them; otherwise the first.
    fn first_ready(&self, before: &impl Fn(&At, &Fact) -> Before) -> Option<usize> {
        let others = |stream: StreamIndex| {
            let left = self.all[self.first..].iter().flatten();
            left.filter(move |(at, ..)| at.stream != stream)
        };
        let is_ready = |index: &usize| {
            let Some(Some((at, fact, _))) = self.all.get(*index) else { return false };
            let is_begin_of = |of: u32, (_, fact, _): &(At, Fact, E)| match *fact {
                Fact::Wake { tid, moment, .. } => tid == of && moment.is_begin(),
                _ => false,
            };
            let has_to_wait = match *fact {
                Fact::Wake { tid, moment: WakeMoment::Queued, .. } => {
                    others(at.stream).any(|of| is_begin_of(tid, of))
                }
                _ => false,
            };
            let is_missing = match before(at, fact) {
                Before::Nothing => false,
                Before::Leaves(thread) => others(at.stream).any(
                    |(_, fact, _)| matches!(fact, Fact::Switch { from, .. } if *from == thread),
                ),
                Before::Wakes(thread) => others(at.stream)
                    .any(|(_, fact, _)| matches!(fact, Fact::Wake { tid, .. } if *tid == thread)),
            };
            !has_to_wait && !is_missing
        };
        let heads = self.heads();
        heads.iter().find(|index| is_ready(index)).or(heads.first()).copied()
    }
}
