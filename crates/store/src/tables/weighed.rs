// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows that represent several events: of columns of the packet and the event class, and of the time
//! step. Consumers that only count rows need not see each event.

use std::ops::ControlFlow;

use arrow_schema::{DataType, Field, Schema};
use lateralis_model::{ColumnBatch, CountBy, Step};
use lateralis_units::Nanos;

use super::build::TooLong;
use super::scan::{About, Scanner, Shown, Shows, common_cell, is_inside, reading};
use super::shape::Common;

/// Groups that are collected before they are delivered.
const GROUPS: usize = 1 << 16;
/// Recent groups of a class that are remembered: a packet covers few time steps.
const LAST: usize = 4;
/// Largest number of time steps for which events of a packet are counted at once.
const STEPS: usize = 1 << 12;

/// The last column, with the number of events that a row represents.
pub const WEIGHT: &str = "#events";

/// Adds the column of weights.
pub fn schema(schema: &Schema) -> Schema {
    let weight = Field::new(WEIGHT, DataType::Int64, false);
    let fields = schema.fields().iter().cloned().chain([weight.into()]);
    Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
}

/// Origin of events, as far as columns contain it: stream, CPU, packet.
type Lane = (u32, Option<u32>, Option<u64>);

/// Events combined into one row.
struct Group {
    lane: Lane,
    /// One of their classes: stream class and class.
    class: (u32, u32),
    /// Start time of their step.
    step: i64,
    count: u64,
}

/// Combines equal rows. A row that has not occurred for a while starts anew: it suffices that there are
/// few.
pub struct Alike {
    tells_stream: bool,
    tells_cpu: bool,
    tells_packet: bool,
    tells_class: bool,
    tells_time: bool,
    step: Step,
    /// In the order of their first events.
    groups: Vec<Group>,
    lane: Lane,
    /// For the current lane, by class: groups of the last events.
    last: Vec<[Option<usize>; LAST]>,
    /// First and last time of the most recent step.
    around: (i64, i64),
    /// Events of a batch by step.
    counts: Vec<u64>,
}

impl Alike {
    /// For rows with these columns.
    pub fn new(shows: &[Shows], step: Step) -> Self {
        let tells = |those: &[Common]| {
            let is_one = |show: &Shows| matches!(show, Shows::Common(one) if those.contains(one));
            shows.iter().any(is_one)
        };
        Self {
            tells_stream: tells(&[Common::Stream, Common::Recording]),
            tells_cpu: tells(&[Common::Cpu]),
            tells_packet: tells(&[Common::Packet]),
            tells_class: tells(&[Common::Class]),
            tells_time: tells(&[Common::Time]),
            step,
            groups: Vec::new(),
            lane: (0, None, None),
            last: Vec::new(),
            around: step.around(0),
            counts: Vec::new(),
        }
    }

    /// The following events come from here.
    fn enter(&mut self, batch: &dyn ColumnBatch, cpu: Option<u32>) {
        let lane = (
            if self.tells_stream { batch.stream().0 } else { 0 },
            cpu.filter(|_| self.tells_cpu),
            batch.packet_number().filter(|_| self.tells_packet),
        );
        if lane != self.lane {
            self.lane = lane;
            self.last.clear();
        }
    }

    /// Adds events of a class, with its number among those being read, in one step.
    fn add(&mut self, class: (u32, u32), number: u64, count: u64, step: i64) {
        if count == 0 {
            return;
        }
        let at = if self.tells_class { number as usize } else { 0 };
        if self.last.len() <= at {
            self.last.resize(at + 1, [None; LAST]);
        }
        let last = &mut self.last[at];
        let is_it = |group: &usize| self.groups[*group].step == step;
        match last.iter().flatten().copied().find(is_it) {
            Some(place) => self.groups[place].count += count,
            None => {
                last.rotate_right(1);
                last[0] = Some(self.groups.len());
                self.groups.push(Group { lane: self.lane, class, step, count });
            }
        }
    }

    /// Adds the events of a class in an interval.
    fn add_times(&mut self, class: (u32, u32), number: u64, times: &[Nanos], within: (i64, i64)) {
        let (begin, end) = within;
        let is_inside = |time: &Nanos| begin <= time.0 && time.0 <= end;
        if !self.tells_time {
            let inside = times.iter().filter(|time| is_inside(time)).count();
            self.add(class, number, inside as u64, 0);
            return;
        }
        let mut rest = times;
        while let Some(time) = rest.first() {
            if !is_inside(time) {
                rest = &rest[1..];
                continue;
            }
            if time.0 < self.around.0 || time.0 > self.around.1 {
                self.around = self.step.around(time.0);
            }
            // Times ascend, so that most of them are in the step of the previous one.
            let (first, last) = self.around;
            let (from, to) = (first.max(begin), last.min(end));
            let run = rest.iter().take_while(|time| from <= time.0 && time.0 <= to).count();
            self.add(class, number, run as u64, first);
            rest = &rest[run..];
        }
    }

    /// Adds the events of a batch in an interval, if the columns contain the time but not the class.
    fn add_batch(&mut self, class: (u32, u32), times: &[&[Nanos]], within: (i64, i64)) {
        let Some(first) = times.iter().filter_map(|times| times.first()).min() else { return };
        let (base, _) = self.step.around(first.0);
        let length = self.step.length_ns.max(1);
        // At the ends of the timeline steps are cut: there, events are added one by one.
        let room = base.checked_sub(self.step.begin_ns).filter(|from| from % length == 0);
        let room = room.map_or(0, |from| i64::MAX.abs_diff(from));
        let room = room.min((length as u64).saturating_mul(STEPS as u64));
        let (begin, end) = within;
        self.counts.resize(STEPS, 0);
        for times in times {
            for (at, time) in times.iter().enumerate() {
                let from_base = time.0.wrapping_sub(base) as u64;
                if time.0 < base || from_base >= room {
                    self.add_times(class, 0, &times[at..=at], within);
                } else if begin <= time.0 && time.0 <= end {
                    self.counts[(from_base / length as u64) as usize] += 1;
                }
            }
        }
        let mut counts = std::mem::take(&mut self.counts);
        for (step, count) in (0..).zip(&mut counts).filter(|(_, count)| **count > 0) {
            self.add(class, 0, std::mem::take(count), base + step * length);
        }
        self.counts = counts;
    }
}

impl Scanner<'_> {
    /// Whether equal rows are combined.
    pub(super) fn puts_together(&self) -> bool {
        let mut readings = self.readings.iter().flatten().flatten();
        let tells_cpu = readings.any(|reading| reading.told.cpu.is_some());
        let is_alike = |show: &Shows| match show {
            Shows::Common(Common::Cpu) => !tells_cpu,
            Shows::Common(common) => matches!(
                common,
                Common::Time | Common::Recording | Common::Stream | Common::Packet | Common::Class
            ),
            Shows::Field(_) => false,
        };
        self.scan.weighs.is_some()
            && self.scan.limit.is_none()
            && (self.scan.cpus.is_none() || !tells_cpu)
            && self.shows.iter().all(is_alike)
    }

    /// Adds the events of a batch of columns.
    pub(super) fn by_step(&mut self, batch: &dyn ColumnBatch) -> Result<Shown, TooLong> {
        let cpu = self.stream_cpu(batch);
        let is_there = |cpus: &Vec<u32>| cpu.is_some_and(|cpu| cpus.contains(&cpu));
        let Some(alike) = &mut self.alike else { return Ok(ControlFlow::Continue(())) };
        if !self.scan.cpus.as_ref().is_none_or(is_there) {
            return Ok(ControlFlow::Continue(()));
        }
        alike.enter(batch, cpu);
        if let Some(time) = batch.counted_at() {
            return self.by_counts_of_step(batch, time);
        }
        let interval = self.scan.interval;
        let begin = interval.begin.map_or(i64::MIN, |begin| begin.0);
        let within = (begin, interval.end.map_or(i64::MAX, |end| end.0));
        let stream_class = batch.stream_class();
        let classes = (0..batch.class_count()).filter_map(|index| {
            let class = batch.class(index);
            let reading = reading(&self.readings, stream_class, class.class)?;
            Some(((stream_class, class.class), reading.number, class.times))
        });
        if alike.tells_time && !alike.tells_class {
            let mut which = None;
            let times = classes.map(|(class, _, times)| {
                which = Some(class);
                times
            });
            let times: Vec<&[Nanos]> = times.collect();
            if let Some(class) = which {
                alike.add_batch(class, &times, within);
            }
        } else {
            classes
                .for_each(|(class, number, times)| alike.add_times(class, number, times, within));
        }
        if alike.groups.len() < GROUPS { Ok(ControlFlow::Continue(())) } else { self.show_alike() }
    }

    /// Division by which the source may count events instead of delivering their times.
    pub(super) fn count_by(&self) -> Option<CountBy> {
        let alike = self.alike.as_ref()?;
        let step = match alike.tells_time {
            true => alike.step,
            false => Step { length_ns: i64::MAX, begin_ns: 0 },
        };
        Some(CountBy { step, interval: self.scan.interval, class: alike.tells_class })
    }

    /// Adds a batch whose events are in one step, and all inside or all outside the interval.
    fn by_counts_of_step(
        &mut self,
        batch: &dyn ColumnBatch,
        time: Nanos,
    ) -> Result<Shown, TooLong> {
        let Some(alike) = &mut self.alike else { return Ok(ControlFlow::Continue(())) };
        if !is_inside(self.scan.interval, time) {
            return Ok(ControlFlow::Continue(()));
        }
        let step = if alike.tells_time { alike.step.around(time.0).0 } else { 0 };
        let (stream_class, readings) = (batch.stream_class(), &self.readings);
        batch.counts(&mut |class, count| {
            if let Some(reading) = reading(readings, stream_class, class) {
                alike.add((stream_class, class), reading.number, count, step);
            }
        });
        if alike.groups.len() < GROUPS { Ok(ControlFlow::Continue(())) } else { self.show_alike() }
    }

    /// Adds the events of a batch that are only counted.
    pub(super) fn by_counts(&mut self, batch: &dyn ColumnBatch) -> Result<Shown, TooLong> {
        let cpu = self.stream_cpu(batch);
        let Some(alike) = &mut self.alike else { return Ok(ControlFlow::Continue(())) };
        alike.enter(batch, cpu);
        let (stream_class, readings) = (batch.stream_class(), &self.readings);
        batch.counts(&mut |class, count| {
            if let Some(reading) = reading(readings, stream_class, class) {
                alike.add((stream_class, class), reading.number, count, 0);
            }
        });
        if alike.groups.len() < GROUPS { Ok(ControlFlow::Continue(())) } else { self.show_alike() }
    }

    /// Delivers the combined rows.
    pub(super) fn show_alike(&mut self) -> Result<Shown, TooLong> {
        let Some(alike) = &mut self.alike else { return Ok(ControlFlow::Continue(())) };
        alike.last.clear();
        for group in std::mem::take(&mut alike.groups) {
            let (stream_class, class) = group.class;
            let Some(reading) = reading(&self.readings, stream_class, class) else { continue };
            let (stream, cpu, packet) = group.lane;
            let time = Nanos(group.step);
            let about = About { time, stream, cpu, writer: None, packet, command: None };
            for (show, builder) in self.shows.iter().zip(&mut self.builders) {
                if let Shows::Common(common) = *show {
                    common_cell(builder, common, self.opened, reading, &about)?;
                }
            }
            if let Some(weights) = &mut self.weights {
                weights.push(i64::try_from(group.count).unwrap_or(i64::MAX));
            }
            if self.grown(1).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
