// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What machines were in which state, and which levels counters had.

use std::collections::HashMap;

use lateralis_analysis::{Distribution, InState, Level, Point, States};
use lateralis_model::{Quality, Writer};
use lateralis_store::facts::{At, Kinds, Owner};
use lateralis_units::Nanos;
use serde_json::{Value, json};

use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section, Who};
use crate::table::{Align, Table};
use crate::values;

/// Machines and counters that are told apart; more are left out, and that is said.
const INSTANCES_MAX: usize = 1 << 16;
/// Buckets of a chart, each with four points at most.
const BUCKETS: usize = 256;

/// Whose a level is: of a process, for several of its threads may tell it; of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Whose {
    Process(u32),
    Cpu(u32),
    Nobody,
}

/// All states and levels.
pub struct Levels {
    machines: HashMap<(u32, Owner), States>,
    counters: HashMap<(u32, Whose), Level>,
    /// Values of machines, and those of counters.
    left_out: [u64; 2],
    begin: Nanos,
    end: Nanos,
}

impl Levels {
    /// From `begin` on.
    pub fn new(begin: Nanos) -> Self {
        let (machines, counters) = (HashMap::new(), HashMap::new());
        Self { machines, counters, left_out: [0; 2], begin, end: begin }
    }

    /// A machine is told to be in a state; `is_whole` if nothing is missing since it was told before.
    pub fn state(&mut self, place: (u32, Owner), time: Nanos, state: u32, is_whole: bool) {
        if self.machines.len() >= INSTANCES_MAX && !self.machines.contains_key(&place) {
            self.left_out[0] += 1;
            return;
        }
        let states = self.machines.entry(place).or_default();
        if !is_whole {
            states.doubt(time);
        }
        states.enter(time, state);
    }

    /// The recording ends in the state that a machine is in.
    pub fn state_ends(&mut self, place: (u32, Owner), time: Nanos, is_whole: bool) {
        let Some(states) = self.machines.get_mut(&place) else { return };
        if !is_whole {
            states.doubt(time);
        }
        states.leave(time);
    }

    /// A counter has a value.
    pub fn level(&mut self, kinds: &Kinds, at: &At, counter: u32, value: f64) {
        let is_of_cpu = kinds.counters.get(counter as usize).is_some_and(|of| of.is_of_cpu);
        let whose = match (at.writer, at.cpu) {
            (_, Some(cpu)) if is_of_cpu => Whose::Cpu(cpu),
            (Some(Writer { pid, .. }), _) => Whose::Process(pid),
            (None, _) => Whose::Nobody,
        };
        let key = (counter, whose);
        if self.counters.len() >= INSTANCES_MAX && !self.counters.contains_key(&key) {
            self.left_out[1] += 1;
            return;
        }
        let begin = self.begin;
        let level = self.counters.entry(key).or_insert_with(|| Level::new(begin, BUCKETS));
        level.set(at.time, value);
    }

    /// Levels hold up to the end.
    pub fn finish(&mut self, end: Nanos) {
        self.end = end;
        self.counters.values_mut().for_each(|level| level.hold(end));
    }

    fn by_machine(&self) -> Vec<(u32, Owner, &States)> {
        let mut all: Vec<_> =
            self.machines.iter().map(|((machine, owner), s)| (*machine, *owner, s)).collect();
        all.sort_by_key(|(machine, owner, _)| (*machine, *owner));
        all
    }

    fn by_counter(&self) -> Vec<(u32, Whose, &Level)> {
        let mut all: Vec<_> =
            self.counters.iter().map(|((counter, whose), l)| (*counter, *whose, l)).collect();
        all.sort_by_key(|(counter, whose, _)| (*counter, *whose));
        all
    }

    /// All states.
    pub fn states_json<'a>(
        &'a self,
        kinds: &'a Kinds,
        trust: Trust,
        who: Who<'a>,
    ) -> impl Iterator<Item = Value> + 'a {
        self.by_machine().into_iter().map(move |(number, owner, states)| {
            let machine = &kinds.machines[number as usize];
            let trust = trust.without(u64::from(machine.is_filtered));
            let state = |(index, (name, of)): (usize, (&String, &InState))| {
                let row = Row::default()
                    .plain("state", name.as_str())
                    .number("total_ns", of.nanos, trust.sum)
                    .number("entries", of.entry_count, trust.sum)
                    .number("longest_ns", of.longest_nanos, trust.sum);
                stays_json(row, stays(states, index), trust).value()
            };
            let named = machine.states.iter().zip(states.states());
            let of: Vec<Value> = named.enumerate().map(state).collect();
            let row = Row::default()
                .plain("machine", machine.name.as_str())
                .plain("key", machine.key.as_deref())
                .plain("of", self.owner(owner, who))
                .number("unknown_ns", states.unknown_nanos(), trust.value)
                .plain("states", of);
            match owner {
                Owner::Thread(writer) => row.plain("pid", writer.pid).plain("tid", writer.tid),
                Owner::Cpu(cpu) => row.plain("cpu", cpu),
                Owner::Stream(stream) => row.plain("stream", stream.0),
                Owner::Process(pid) => row.plain("pid", pid),
            }
            .value()
        })
    }

    /// All levels, with a chart each: time and value.
    pub fn counters_json<'a>(
        &'a self,
        kinds: &'a Kinds,
        trust: Trust,
        who: Who<'a>,
    ) -> impl Iterator<Item = Value> + 'a {
        self.by_counter().into_iter().map(move |(number, whose, level)| {
            let is_filtered = kinds.counters[number as usize].is_filtered;
            let trust = trust.without(u64::from(is_filtered));
            let chart: Vec<Value> =
                level.chart().iter().map(|point| json!([point.time.0, point.value])).collect();
            let row = Row::default()
                .plain("counter", kinds.counters[number as usize].name.as_str())
                .plain("key", kinds.counters[number as usize].key.as_deref())
                .plain("of", self.whose(whose, who))
                .number("count", level.count(), trust.sum)
                .number("min", level.low().map(|point| point.value), trust.value)
                .number("max", level.high().map(|point| point.value), trust.sum)
                .number("max_at_ns", level.high().map(|point| point.time.0), trust.value)
                .number("last", level.last(), trust.value)
                .number("mean", level.mean(), trust.value)
                .number("chart", chart, trust.value);
            match whose {
                Whose::Process(pid) => row.plain("pid", pid),
                Whose::Cpu(cpu) => row.plain("cpu", cpu),
                Whose::Nobody => row,
            }
            .value()
        })
    }

    fn owner(&self, owner: Owner, who: Who<'_>) -> String {
        match owner {
            Owner::Thread(writer) => who.writer(Some(writer)),
            Owner::Cpu(cpu) => format!("cpu {cpu}"),
            Owner::Stream(stream) => format!("stream {}", stream.0),
            Owner::Process(pid) => pid.map_or(String::new(), |pid| who.process(pid)),
        }
    }

    fn whose(&self, whose: Whose, who: Who<'_>) -> String {
        match whose {
            Whose::Process(pid) => who.process(pid),
            Whose::Cpu(cpu) => format!("cpu {cpu}"),
            Whose::Nobody => String::new(),
        }
    }

    /// The tables.
    pub fn page(&self, page: &mut Page<'_>, who: Who<'_>, kinds: &Kinds) {
        use Align::{Left, Right};
        let mut table = Table::new(&[
            ("machine", Left),
            ("of", Left),
            ("state", Left),
            ("time", Right),
            ("of its time", Right),
            ("entered", Right),
            ("mean stay", Right),
            ("median", Right),
            ("p99", Right),
            ("longest", Right),
        ]);
        let mut rows = 0;
        for (number, owner, states) in self.by_machine() {
            let machine = &kinds.machines[number as usize];
            let Trust { sum, value } = page.trust.without(u64::from(machine.is_filtered));
            let since = states.first().unwrap_or(self.end);
            let whole = self.end.since(since).max(0) as f64;
            for (index, (name, of)) in machine.states.iter().zip(states.states()).enumerate() {
                if of.entry_count == 0 && of.nanos == 0 {
                    continue;
                }
                rows += 1;
                if rows > page.rows {
                    continue;
                }
                let share = of.nanos as f64 * 100.0 / whole;
                let stays = stays(states, index);
                let [mean, median, p99] = match stays {
                    Some(d) => {
                        let cell = |text| mark(text, value);
                        [values::mean_time(d.mean), values::time(d.median), values::time(d.p99)]
                            .map(cell)
                    }
                    None => Default::default(),
                };
                table.row([
                    machine.label(),
                    self.owner(owner, who),
                    name.clone(),
                    mark(values::time(of.nanos), sum),
                    if whole > 0.0 { mark(format!("{share:.1} %"), sum) } else { String::new() },
                    mark(values::count(of.entry_count), sum),
                    mean,
                    median,
                    p99,
                    mark(values::time(of.longest_nanos), sum),
                ]);
            }
        }
        page.table(Section::States, "states", &table, rows);
        let counters = self.by_counter();
        let mut table = Table::new(&[
            ("counter", Left),
            ("of", Left),
            ("count", Right),
            ("min", Right),
            ("mean over time", Right),
            ("max", Right),
            ("last", Right),
            ("over time", Left),
        ]);
        for (number, whose, level) in counters.iter().take(page.rows) {
            let is_filtered = kinds.counters[*number as usize].is_filtered;
            let Trust { sum, value } = page.trust.without(u64::from(is_filtered));
            let cell = |number: Option<f64>, quality: Quality| {
                number.map_or(String::new(), |number| mark(short(number), quality))
            };
            table.row([
                kinds.counters[*number as usize].label(),
                self.whose(*whose, who),
                mark(values::count(level.count()), sum),
                cell(level.low().map(|point| point.value), value),
                cell(level.mean(), value),
                cell(level.high().map(|point| point.value), sum),
                cell(level.last(), value),
                spark(&level.chart(), (self.begin, self.end)),
            ]);
        }
        page.table(Section::Counters, "counters", &table, counters.len());
    }

    /// States and values of counters that are left out.
    pub fn left_out(&self, kinds: &Kinds) -> [LeftOut; 3] {
        let of = |member, section, what, of, most: usize, count| {
            let most = most as u64;
            LeftOut { member, section, what, of, most, count }
        };
        let [states, values] = self.left_out;
        let (machines, counters) = (Section::States, Section::Counters);
        [
            of("states", machines, "states", "machines", INSTANCES_MAX, states),
            of("counters", counters, "values", "counters", INSTANCES_MAX, values),
            of(
                "counters",
                counters,
                "states and values",
                "keys of a name",
                Kinds::INSTANCES_MAX,
                kinds.left_out,
            ),
        ]
    }
}

/// Stays in a state of a machine, where any has ended.
fn stays(states: &States, index: usize) -> Option<Distribution> {
    states.stays().get(index)?.clone().distribution()
}

fn stays_json(row: Row, stays: Option<Distribution>, trust: Trust) -> Row {
    let Some(d) = stays else {
        return row.number("stays", 0, trust.sum);
    };
    let rough = if d.is_rough { Quality::LowerBound } else { Quality::Exact };
    let percentile = trust.value.and(rough);
    row.number("stays", d.count, trust.sum)
        .number("min_ns", d.min, trust.value)
        .number("mean_ns", d.mean, trust.value)
        .number("stddev_ns", d.stddev, trust.value)
        .number("median_ns", d.median, percentile)
        .number("p90_ns", d.p90, percentile)
        .number("p99_ns", d.p99, percentile)
        .number("max_ns", d.max, trust.sum)
}

/// The greatest level in each of some equal stretches of time, in eight steps from the least
/// to the greatest of all; blank before the first is known.
fn spark(chart: &[Point], (begin, end): (Nanos, Nanos)) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const WIDTH: usize = 32;
    let values = || chart.iter().map(|point| point.value);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
    let over = end.since(begin).max(1) as i128;
    let place = |point: &Point| {
        let at = i128::from(point.time.since(begin).max(0)) * WIDTH as i128 / over;
        (at as usize).min(WIDTH - 1)
    };
    let mut held: Option<f64> = None;
    let mut points = chart.iter().peekable();
    let mut line = String::new();
    for slot in 0..WIDTH {
        let mut most = held;
        while let Some(point) = points.next_if(|point| place(point) <= slot) {
            most = Some(most.map_or(point.value, |most| most.max(point.value)));
            held = Some(point.value);
        }
        line.push(match most {
            Some(value) if high > low => STEPS[((value - low) / (high - low) * 7.0) as usize % 8],
            Some(_) => STEPS[0],
            None => ' ',
        });
    }
    line.trim_end().to_owned()
}

/// A whole number as it is, another with three decimals.
fn short(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    format!("{number:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_the_greatest_level_of_each_stretch() {
        let point = |time, value| Point { time: Nanos(time), value };
        let chart = [point(64, 0.0), point(100, 7.0), point(101, 2.0), point(300, 1.0)];
        let line = spark(&chart, (Nanos(0), Nanos(320)));
        let steps: Vec<char> = line.chars().collect();
        assert_eq!((steps.len(), steps[5], steps[6], steps[9]), (32, ' ', '▁', '▁'));
        assert_eq!((steps[10], steps[11], steps[29], steps[30]), ('█', '▃', '▃', '▃'));
        assert_eq!(steps[31], '▂');
        assert_eq!(spark(&[point(5, 3.0)], (Nanos(5), Nanos(5))).trim(), "▁".repeat(32));
        assert_eq!(spark(&[], (Nanos(0), Nanos(9))), "");
    }
}
