// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Incremental reader of a recording in progress.
//!
//! A stream file only grows, by whole packets, so the progress of a stream is a position in it: a packet,
//! and the number of its events that were delivered. Positions do not depend on the clock, whose
//! conversion becomes more precise during recording, so no event is delivered twice and none is left out
//! between two rounds.
//!
//! A round delivers all events up to a time, in time order; later events of a stream wait. Earlier events
//! that were written late come with the next round, and are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lateralis_model::{Clock, Damage, Event, Names, Source};
use lateralis_traces::Error;
use lateralis_units::{Nanos, Ticks};

use crate::Recording;

/// Receives an event, and the number of its packet in the stream.
pub type See<'s> = dyn FnMut(&Event<'_>, u64) -> ControlFlow<()> + 's;

/// Progress in a recording.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    /// By name of the stream file.
    places: BTreeMap<String, Place>,
    names: Names,
    learns_names: bool,
    begin: Option<Nanos>,
    until: Option<Ticks>,
    told: BTreeSet<(String, u64)>,
    keeps_clock: bool,
    /// The clock used for times, if it is kept.
    clock: Option<Clock>,
    /// The clock as it is known now.
    clock_now: Option<Clock>,
}

/// Progress in a stream.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Start of the first packet that was not delivered completely.
    offset_bytes: u64,
    /// Number of its events that were delivered.
    events: u64,
    /// Number of packets before it.
    packets: u64,
}

/// Progress in a recording, for another [`Tail`] of it that must reach exactly the same position.
#[derive(Debug, Clone, Default)]
pub struct Shown(Arc<BTreeMap<String, Place>>);

/// Result of a round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of delivered events.
    pub events: u64,
    /// Number of events read: delivered ones, waiting ones, and the start of packets that an earlier
    /// round delivered in part.
    pub read: u64,
    /// Number of delivered events that happened before the time up to which the previous round had
    /// delivered everything known then.
    pub late: u64,
    /// Damage that no earlier round has reported.
    pub damage: Vec<Damage>,
}

/// A stream in a round.
#[derive(Debug, Default)]
struct Walk {
    from: Place,
    /// Position that another tail has reached, if nothing after it is needed.
    to: Option<Place>,
    /// Starts of its packets, and the end of the last one.
    packets: Vec<u64>,
    end: u64,
    /// Packet of the last examined event, and the number of its events so far.
    at: Option<(u64, u64)>,
    /// Whether the last examined event must wait.
    waits: bool,
}

impl Tail {
    /// For a recording of `lat record`, from its start.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            places: BTreeMap::new(),
            names: Names::default(),
            learns_names: true,
            begin: None,
            until: None,
            told: BTreeSet::new(),
            keeps_clock: false,
            clock: None,
            clock_now: None,
        }
    }

    /// For a recording from an offset in its stream files on, as returned by [`Tail::marks`], with a
    /// clock as returned by [`Tail::clock`].
    #[must_use]
    pub fn behind(path: &Path, marks: &BTreeMap<String, u64>, clock: Option<&Clock>) -> Self {
        let place = |offset_bytes: &u64| Place { offset_bytes: *offset_bytes, ..Place::default() };
        let places = marks.iter().map(|(name, bytes)| (name.clone(), place(bytes))).collect();
        let tail = Self::new(path).without_names().keeping_its_clock();
        Self { places, clock: clock.cloned(), ..tail }
    }

    /// Uses the clock as it was known first, so that all rounds are on one timeline.
    #[must_use]
    pub fn keeping_its_clock(self) -> Self {
        Self { keeps_clock: true, ..self }
    }

    /// That clock, once there is a packet.
    #[must_use]
    pub fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// Offset in each stream file before which everything has been delivered.
    #[must_use]
    pub fn marks(&self) -> BTreeMap<String, u64> {
        self.places.iter().map(|(name, place)| (name.clone(), place.offset_bytes)).collect()
    }

    /// Current progress.
    #[must_use]
    pub fn shown(&self) -> Shown {
        Shown(Arc::new(self.places.clone()))
    }

    /// Without names that only events contain; these cost a pass over the events.
    #[must_use]
    pub fn without_names(self) -> Self {
        Self { learns_names: false, ..self }
    }

    /// Opens the packets that were not delivered completely, as a trace of its own: its packets are
    /// numbered anew, and it has no losses. Threads and processes have their current names.
    ///
    /// Cost: proportional to those packets and the metadata.
    ///
    /// # Errors
    /// If there is no trace, or a file cannot be read.
    pub fn open(&mut self) -> Result<Recording, Error> {
        let (mut recording, told) =
            Recording::behind_by(&self.path, &self.marks(), self.clock.as_ref())?;
        self.clock_now = told;
        if self.keeps_clock && self.clock.is_none() && !recording.streams.is_empty() {
            self.clock.clone_from(&self.clock_now);
        }
        if self.learns_names {
            let names = &mut recording.names;
            for (pid, name) in &self.names.processes {
                names.processes.entry(*pid).or_insert_with(|| name.clone());
            }
            for (tid, name) in &self.names.threads {
                names.threads.entry(*tid).or_insert_with(|| name.clone());
            }
            recording.learn_names();
            self.names.clone_from(&recording.names);
        }
        if self.begin.is_none() {
            self.begin = recording.beginning();
        }
        Ok(recording)
    }

    /// Start of the recording, once there is a packet.
    #[must_use]
    pub fn begin(&self) -> Option<Nanos> {
        self.begin
    }

    /// Delivers the events of [`Tail::open`] that no round has delivered, in time order: up to a time, or
    /// all. If `see` breaks, the others wait.
    ///
    /// Everything that happened up to that time must have been written.
    ///
    /// Cost: events that wait are read again in the next round.
    pub fn read(
        &mut self,
        recording: &Recording,
        until: Option<Nanos>,
        see: &mut See<'_>,
    ) -> Progress {
        self.read_until(recording, until, None, see)
    }

    /// Like [`Tail::read`], up to the position that another tail has reached in the files.
    pub fn read_to(&mut self, recording: &Recording, shown: &Shown, see: &mut See<'_>) -> Progress {
        self.read_until(recording, None, Some(shown), see)
    }

    fn read_until(
        &mut self,
        recording: &Recording,
        until: Option<Nanos>,
        shown: Option<&Shown>,
        see: &mut See<'_>,
    ) -> Progress {
        let source = &recording.source;
        // The time belongs to the most precise clock.
        let clock = self.clock_now.as_ref().or(source.trace().clocks.first());
        let until = until.and_then(|time| Some(clock?.ticks(time)));
        let mut walks = self.walks(recording, shown);
        let mut progress = Progress::default();
        let mut events = source.events();
        let mut is_enough = false;
        while let Some(event) = events.next_event() {
            progress.read += 1;
            let Some(walk) = walks.get_mut(event.stream.0 as usize) else { continue };
            if !walk.comes_to(&event) {
                continue;
            }
            let ticks = event.ticks.unwrap_or_default();
            if walk.is_beyond() || until.is_some_and(|until| ticks > until) {
                walk.waits = true;
                continue;
            }
            progress.events += 1;
            progress.late += u64::from(self.until.is_some_and(|before| ticks <= before));
            if see(&event, walk.number(event.packet.offset_bytes)).is_break() {
                is_enough = true;
                break;
            }
        }
        for damage in recording.all_damage(events.damage()) {
            if self.told.insert((damage.file.clone(), damage.begin_bytes)) {
                progress.damage.push(damage);
            }
        }
        for (stream, walk) in recording.streams.iter().zip(walks) {
            self.places.insert(stream.name.clone(), walk.place(is_enough));
        }
        self.until = self.until.max(until);
        progress
    }

    fn walks(&self, recording: &Recording, shown: Option<&Shown>) -> Vec<Walk> {
        let place = |name: &String| self.places.get(name).copied().unwrap_or_default();
        // In a stream that it does not contain, the other tail has delivered nothing.
        let to = |name| shown.map(|shown| shown.0.get(name).copied().unwrap_or_default());
        let walk = |name| Walk { from: place(name), to: to(name), ..Walk::default() };
        let mut walks: Vec<Walk> =
            recording.streams.iter().map(|stream| walk(&stream.name)).collect();
        let _ = recording.source.packets(&mut |stream, _, packet, _| {
            if let Some(walk) = walks.get_mut(stream.0 as usize) {
                walk.packets.push(packet.offset_bytes);
                walk.end = packet.offset_bytes + packet.size_bytes;
            }
            ControlFlow::Continue(())
        });
        walks
    }
}

impl Walk {
    /// Steps to an event; returns whether it may be delivered.
    fn comes_to(&mut self, event: &Event<'_>) -> bool {
        if self.waits {
            return false;
        }
        let packet = event.packet.offset_bytes;
        let before = self.at.filter(|(at, _)| *at == packet).map_or(0, |(_, events)| events);
        self.at = Some((packet, before + 1));
        packet != self.from.offset_bytes || before >= self.from.events
    }

    /// Whether the current event is one that the other tail has not delivered.
    fn is_beyond(&self) -> bool {
        let (Some(to), Some((packet, events))) = (self.to, self.at) else { return false };
        packet > to.offset_bytes || packet == to.offset_bytes && events > to.events
    }

    /// The number of a packet in its stream.
    fn number(&self, offset_bytes: u64) -> u64 {
        self.from.packets + self.packets.partition_point(|packet| *packet < offset_bytes) as u64
    }

    /// Position at which the next round continues.
    fn place(&self, is_enough: bool) -> Place {
        match self.at {
            Some((packet, events)) if self.waits || is_enough => Place {
                offset_bytes: packet,
                events: events - u64::from(self.waits),
                packets: self.number(packet),
            },
            None if is_enough => self.from,
            _ => Place {
                offset_bytes: self.end.max(self.from.offset_bytes),
                events: 0,
                packets: self.from.packets + self.packets.len() as u64,
            },
        }
    }
}
