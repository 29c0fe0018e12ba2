// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording while it is written: each time what has come since.
//!
//! A stream file only grows, by whole packets, so what was shown of a stream is a place in
//! it: a packet, and how many events of that. Places do not depend on what is known of the
//! clock, which is measured better while a recording goes on, so no event is shown twice
//! and none is left out where two rounds meet.
//!
//! A round shows all events up to a moment, in the order of time; what a stream has beyond
//! that waits. Events of an earlier moment that were written late come with the next round,
//! and are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lateralis_model::{Clock, Damage, Event, Names, Source};
use lateralis_traces::Error;
use lateralis_units::{Nanos, Ticks};

use crate::Recording;

/// Shows an event, and the number of its packet in the stream.
pub type See<'s> = dyn FnMut(&Event<'_>, u64) -> ControlFlow<()> + 's;

/// How far a recording was shown.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    /// By the name of the stream's file.
    places: BTreeMap<String, Place>,
    names: Names,
    learns_names: bool,
    begin: Option<Nanos>,
    until: Option<Ticks>,
    told: BTreeSet<(String, u64)>,
    keeps_clock: bool,
    /// The clock that times are told by, if it is kept.
    clock: Option<Clock>,
    /// The clock as it is known by now.
    clock_now: Option<Clock>,
}

/// What of a stream was shown.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Where the first packet begins of which not all was shown.
    offset_bytes: u64,
    /// How many of its events were.
    events: u64,
    /// Packets before it.
    packets: u64,
}

/// How far a recording was shown, for another [`Tail`] of it that is to go exactly as far.
#[derive(Debug, Clone, Default)]
pub struct Shown(Arc<BTreeMap<String, Place>>);

/// What came of a round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events that were shown.
    pub events: u64,
    /// Events that were read: those that were shown, those that wait, and in packets of which
    /// a round before has shown the beginning, that.
    pub read: u64,
    /// Those of them that happened before the moment up to which the round before had shown
    /// everything, as far as was known then.
    pub late: u64,
    /// What cannot be read, as far as no round before has said so.
    pub damage: Vec<Damage>,
}

/// A stream in a round.
#[derive(Debug, Default)]
struct Walk {
    from: Place,
    /// Where another has got to, if nothing behind that is wanted.
    to: Option<Place>,
    /// Where its packets begin, and the last of them ends.
    packets: Vec<u64>,
    end: u64,
    /// The packet of the last event looked at, and its events by then.
    at: Option<(u64, u64)>,
    /// Whether the last event looked at is one that waits.
    waits: bool,
}

impl Tail {
    /// Of a recording of `lat record`, from its beginning.
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

    /// Of the same from some bytes of stream files on, as [`Tail::marks`] has them, with times by a
    /// clock, as [`Tail::clock`] has it.
    #[must_use]
    pub fn behind(path: &Path, marks: &BTreeMap<String, u64>, clock: Option<&Clock>) -> Self {
        let place = |offset_bytes: &u64| Place { offset_bytes: *offset_bytes, ..Place::default() };
        let places = marks.iter().map(|(name, bytes)| (name.clone(), place(bytes))).collect();
        let tail = Self::new(path).without_names().keeping_its_clock();
        Self { places, clock: clock.cloned(), ..tail }
    }

    /// With times by the clock as it was known first, so that all rounds are on one time line.
    #[must_use]
    pub fn keeping_its_clock(self) -> Self {
        Self { keeps_clock: true, ..self }
    }

    /// That clock, once there is any packet.
    #[must_use]
    pub fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// Of each stream file the byte in front of which all has been shown.
    #[must_use]
    pub fn marks(&self) -> BTreeMap<String, u64> {
        self.places.iter().map(|(name, place)| (name.clone(), place.offset_bytes)).collect()
    }

    /// How far it was shown.
    #[must_use]
    pub fn shown(&self) -> Shown {
        Shown(Arc::new(self.places.clone()))
    }

    /// Without the names that only events tell; that costs a pass over them.
    #[must_use]
    pub fn without_names(self) -> Self {
        Self { learns_names: false, ..self }
    }

    /// The packets of which not all was shown, as a trace of its own: its packets are
    /// numbered anew, and losses are none. Threads and processes have the names that they
    /// had by now.
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

    /// When the recording began, once there is any packet.
    #[must_use]
    pub fn begin(&self) -> Option<Nanos> {
        self.begin
    }

    /// Shows the events of [`Tail::open`] that no round has shown, in the order of time: up
    /// to a moment, or all. Where `see` says that it is enough, the others wait.
    ///
    /// By that moment everything must have been written that happened up to it.
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

    /// The same as far as another has shown it, by the places in the files.
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
        // The moment is one of the best clock there is.
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
        // Of a stream that it does not know the other has shown nothing.
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
    /// Steps to an event; whether it is one to be shown.
    fn comes_to(&mut self, event: &Event<'_>) -> bool {
        if self.waits {
            return false;
        }
        let packet = event.packet.offset_bytes;
        let before = self.at.filter(|(at, _)| *at == packet).map_or(0, |(_, events)| events);
        self.at = Some((packet, before + 1));
        packet != self.from.offset_bytes || before >= self.from.events
    }

    /// Whether the event that it came to is one that the other has not shown.
    fn is_beyond(&self) -> bool {
        let (Some(to), Some((packet, events))) = (self.to, self.at) else { return false };
        packet > to.offset_bytes || packet == to.offset_bytes && events > to.events
    }

    /// The number of a packet in its stream.
    fn number(&self, offset_bytes: u64) -> u64 {
        self.from.packets + self.packets.partition_point(|packet| *packet < offset_bytes) as u64
    }

    /// Where the next round goes on.
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
