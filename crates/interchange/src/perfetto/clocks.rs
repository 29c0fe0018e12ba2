// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clocks of a Perfetto trace, and how times of one become those of another.

use std::collections::{BTreeMap, HashMap};

use lateralis_units::Nanos;

use super::wire::Message;

/// `CLOCK_REALTIME`.
pub const REALTIME: u32 = 1;
/// `CLOCK_MONOTONIC`.
pub const MONOTONIC: u32 = 3;
/// `CLOCK_BOOTTIME`, the default.
pub const BOOTTIME: u32 = 6;
/// Clocks from here to 127 belong to the sequence that uses them.
const FIRST_OF_SEQUENCE: u32 = 64;
const LAST_OF_SEQUENCE: u32 = 127;
/// Snapshots that are kept.
const MAX_SNAPSHOTS: usize = 100_000;

/// A clock: its number, and the sequence it belongs to where it is of one.
type ClockId = (u32, u32);

/// Readings of several clocks at one moment, nanoseconds.
#[derive(Debug, Default, Clone)]
struct Snapshot(BTreeMap<ClockId, i64>);

#[derive(Debug, Clone, Copy)]
struct Rate {
    nanos: i64,
    incremental: bool,
}

/// All snapshots of a trace.
#[derive(Debug, Default)]
pub struct Clocks {
    snapshots: Vec<Snapshot>,
    rates: HashMap<ClockId, Rate>,
    /// The last absolute time of incremental clocks, in the order of the file.
    last: HashMap<ClockId, i64>,
    /// Indices of snapshots that have a clock, with its readings, sorted by them.
    index: HashMap<ClockId, Vec<(i64, usize)>>,
    /// Times whose clock could not be converted.
    pub unconverted: u64,
}

/// The clock of a number as a sequence means it.
fn id(clock: u32, sequence: u32) -> ClockId {
    let own = (FIRST_OF_SEQUENCE..=LAST_OF_SEQUENCE).contains(&clock);
    (clock, if own { sequence } else { 0 })
}

impl Clocks {
    /// Takes a message `ClockSnapshot` of a sequence while collecting.
    pub fn collect(&mut self, message: Message<'_>, sequence: u32) {
        let mut snapshot = Snapshot::default();
        for (clock, value, rate) in readings(message, sequence) {
            self.rates.insert(clock, rate);
            snapshot.0.insert(clock, value);
        }
        if self.snapshots.len() < MAX_SNAPSHOTS {
            let at = self.snapshots.len();
            for (&clock, &value) in &snapshot.0 {
                self.index.entry(clock).or_default().push((value, at));
            }
            self.snapshots.push(snapshot);
        }
    }

    /// Ends collecting.
    pub fn sort(&mut self) {
        self.index.values_mut().for_each(|readings| readings.sort_unstable());
    }

    /// Begins a walk: incremental clocks have no time yet.
    pub fn rewind(&mut self) {
        self.last.clear();
        self.unconverted = 0;
    }

    /// Takes a snapshot during a walk: incremental clocks continue from here.
    pub fn meet(&mut self, message: Message<'_>, sequence: u32) {
        for (clock, value, rate) in readings(message, sequence) {
            if rate.incremental {
                self.last.insert(clock, value);
            }
        }
    }

    /// `BOOTTIME` of a time of `clock` in a packet of `sequence`.
    pub fn boottime(&mut self, clock: u32, sequence: u32, time: u64) -> i64 {
        let time = Nanos::nearest(time.into()).0;
        let clock = id(clock, sequence);
        let rate = self.rates.get(&clock).copied().unwrap_or(Rate { nanos: 1, incremental: false });
        let mut time = time.saturating_mul(rate.nanos);
        if rate.incremental {
            let last = self.last.entry(clock).or_insert(0);
            *last = last.saturating_add(time);
            time = *last;
        }
        if clock.0 == BOOTTIME {
            return time;
        }
        match self.convert(clock, time, (BOOTTIME, 0)) {
            Some(time) => time,
            None => {
                self.unconverted += 1;
                time
            }
        }
    }

    fn convert(&self, from: ClockId, time: i64, to: ClockId) -> Option<i64> {
        if let Some(time) = self.step(from, time, to) {
            return Some(time);
        }
        // By way of a third clock.
        let first = self.index.get(&from)?.first()?.1;
        let between = self.snapshots[first].0.keys().filter(|&&clock| clock != from);
        between.copied().find_map(|clock| self.step(clock, self.step(from, time, clock)?, to))
    }

    /// By the latest snapshot before `time` that has both clocks, else the first.
    fn step(&self, from: ClockId, time: i64, to: ClockId) -> Option<i64> {
        let readings = self.index.get(&from)?;
        let before = readings.partition_point(|(reading, _)| *reading <= time);
        let both =
            |at: usize| Some((self.snapshots[at].0.get(&from)?, self.snapshots[at].0.get(&to)?));
        // Few are looked at: nearly all snapshots have all clocks.
        let near = readings[..before].iter().rev().take(64);
        let (own, other) =
            near.chain(readings[before..].iter().take(64)).find_map(|(_, at)| both(*at))?;
        Some(time.saturating_sub(*own).saturating_add(*other))
    }

    /// Nanoseconds from `BOOTTIME` to the time since 1970, by the first snapshot that
    /// knows both.
    pub fn unix_offset(&self) -> Option<i64> {
        let both = |snapshot: &Snapshot| {
            let real = snapshot.0.get(&(REALTIME, 0))?;
            let boot = snapshot.0.get(&(BOOTTIME, 0))?;
            real.checked_sub(*boot)
        };
        self.snapshots.iter().find_map(both)
    }
}

fn readings(
    message: Message<'_>,
    sequence: u32,
) -> impl Iterator<Item = (ClockId, i64, Rate)> + '_ {
    message.filter(|(number, _)| *number == 1).map(move |(_, value)| {
        let (mut clock, mut time, mut rate) = (0, 0u64, Rate { nanos: 1, incremental: false });
        for (number, value) in value.message() {
            match number {
                1 => clock = value.number() as u32,
                2 => time = value.number(),
                3 => rate.incremental = value.number() != 0,
                4 => rate.nanos = i64::try_from(value.number()).unwrap_or(1).max(1),
                _ => (),
            }
        }
        let time = Nanos::nearest(time.into()).0.saturating_mul(rate.nanos);
        (id(clock, sequence), time, rate)
    })
}
