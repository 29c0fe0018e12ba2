// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many events of each class and on each processor, how often, and when none.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use lateralis_analysis::{Gaps, Numbering, Rhythm, Silence, Tally};
use lateralis_model::role::FILTERED;
use lateralis_model::{Quality, Trace};
use lateralis_semantics::Extent;
use lateralis_units::Nanos;
use serde_json::Value;

use super::left_out::LeftOut;
use super::mark::{Row, Trust, mark};
use super::page::{Page, Section};
use crate::date;
use crate::table::{Align, Table};
use crate::values;

/// Bytes for the buckets of all classes together, about.
const BUCKETS: usize = 1 << 20;

/// Processors that are told apart; a damaged trace may name four thousand million.
const CPUS_MAX: usize = 4096;

/// Whether a class is of the tracer's own events.
fn is_own(class: &str) -> bool {
    class.starts_with("lateralis:")
}

/// Events of a class or of a processor.
pub struct Beats {
    tally: Tally,
    rhythm: Rhythm,
}

impl Beats {
    #[inline]
    fn add(&mut self, time: Nanos) {
        self.tally.add(time);
        self.rhythm.add(time);
    }

    fn silence(&self) -> Option<Silence> {
        self.rhythm.silences(1).first().copied()
    }
}

/// Counts events by class and by processor.
pub struct Rates {
    begin: Nanos,
    buckets: usize,
    /// Index into `names` by stream class and class.
    classes: Vec<Vec<u32>>,
    names: Vec<String>,
    /// Classes of which the recorder left out some events.
    filtered: HashSet<String>,
    beats: Vec<Option<Box<Beats>>>,
    cpus: Numbering<u32>,
    cpu_beats: Vec<Beats>,
    /// All events.
    pub total: Tally,
    /// Nanoseconds that rates are over: the recorded time.
    over_nanos: i64,
    /// Events of the tracer about itself where classes are not counted one by one.
    own: u64,
    /// Events of CPUs that are not counted separately.
    left_out: u64,
}

impl Rates {
    /// Of a trace whose times begin here.
    pub fn new(trace: &Trace, begin: Nanos) -> Self {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut names: Vec<String> = Vec::new();
        let mut classes = Vec::new();
        for stream in &trace.stream_classes {
            let mut of_stream = Vec::with_capacity(stream.event_classes.len());
            for class in &stream.event_classes {
                let next = names.len() as u32;
                let number = *numbers.entry(class.name.as_str()).or_insert(next);
                if number == next {
                    names.push(class.name.clone());
                }
                of_stream.push(number);
            }
            classes.push(of_stream);
        }
        let classes_of_all = trace.stream_classes.iter().flat_map(|stream| &stream.event_classes);
        let filtered = classes_of_all.filter(|class| class.attribute(FILTERED).is_some());
        let filtered = filtered.map(|class| class.name.clone()).collect();
        let beats = names.iter().map(|_| None).collect();
        let buckets = (BUCKETS / names.len().max(1)).clamp(16, 512);
        Self {
            begin,
            buckets,
            classes,
            names,
            filtered,
            beats,
            cpus: Numbering::default(),
            cpu_beats: Vec::new(),
            total: Tally::default(),
            over_nanos: 0,
            own: 0,
            left_out: 0,
        }
    }

    /// Events of CPUs that are left out.
    pub fn left_out(&self) -> LeftOut {
        LeftOut {
            member: "events_by_cpu",
            section: Section::Events,
            what: "events by CPU",
            of: "CPUs",
            most: CPUS_MAX as u64,
            count: self.left_out,
        }
    }

    fn class(&mut self, stream_class: u32, class: u32) -> Option<&mut Beats> {
        let index = *self.classes.get(stream_class as usize)?.get(class as usize)?;
        let (begin, buckets) = (self.begin, self.buckets);
        let new =
            || Box::new(Beats { tally: Tally::default(), rhythm: Rhythm::new(begin, buckets) });
        Some(self.beats.get_mut(index as usize)?.get_or_insert_with(new))
    }

    fn cpu(&mut self, cpu: u32) -> Option<&mut Beats> {
        if self.cpus.len() >= CPUS_MAX && self.cpus.known(&cpu).is_none() {
            return None;
        }
        let index = self.cpus.number(cpu) as usize;
        if index == self.cpu_beats.len() {
            let rhythm = Rhythm::new(self.begin, 512);
            self.cpu_beats.push(Beats { tally: Tally::default(), rhythm });
        }
        self.cpu_beats.get_mut(index)
    }

    /// Counts an event.
    pub fn add(&mut self, stream_class: u32, class: u32, cpu: Option<u32>, time: Nanos) {
        self.total.add(time);
        if let Some(of_class) = self.class(stream_class, class) {
            of_class.add(time);
        }
        let Some(cpu) = cpu else { return };
        match self.cpu(cpu) {
            Some(beats) => beats.add(time),
            None => self.left_out += 1,
        }
    }

    /// Counts events of which only the total is asked.
    pub fn count_all(&mut self, times: &[Nanos]) {
        self.total.add_all(times);
    }

    /// Counts events of one class on one processor.
    pub fn add_all(&mut self, stream_class: u32, class: u32, cpu: Option<u32>, times: &[Nanos]) {
        if times.is_empty() {
            return;
        }
        let tally = Tally::of(times);
        self.total.merge(&tally);
        match cpu.map(|cpu| self.cpu(cpu)) {
            Some(Some(beats)) => {
                beats.tally.merge(&tally);
                beats.rhythm.add_all(times);
            }
            Some(None) => self.left_out = self.left_out.saturating_add(times.len() as u64),
            None => {}
        }
        if let Some(beats) = self.class(stream_class, class) {
            beats.tally.merge(&tally);
            beats.rhythm.add_all(times);
        }
    }

    /// Nanoseconds from the beginning to the end of what was counted, once that is known.
    pub fn span_nanos(&self) -> i64 {
        self.over_nanos
    }

    /// All has been counted, and lasts from here to there.
    pub fn finish(&mut self, extent: &Extent) {
        self.over_nanos = extent.nanos();
    }

    /// Counts events of a class that are in the total and in no class, if the tracer wrote them about
    /// itself.
    pub fn count_own(&mut self, stream_class: u32, class: u32, count: u64) {
        let index = self.classes.get(stream_class as usize).and_then(|it| it.get(class as usize));
        let name = index.and_then(|index| self.names.get(*index as usize));
        if name.is_some_and(|name| is_own(name)) {
            self.own = self.own.saturating_add(count);
        }
    }

    /// Events of the tracer about itself in the total.
    pub fn own_count(&self) -> u64 {
        let classes = self.names.iter().zip(&self.beats).filter(|(name, _)| is_own(name));
        let counts = classes.filter_map(|(_, beats)| Some(beats.as_ref()?.tally.count));
        counts.fold(self.own, u64::saturating_add)
    }

    /// Number of events of each class, without those of the tracer about itself.
    pub fn by_class(&self) -> impl Iterator<Item = (&str, u64)> {
        let classes = self.names.iter().zip(&self.beats).filter(|(name, _)| !is_own(name));
        classes.filter_map(|(name, beats)| Some((name.as_str(), beats.as_ref()?.tally.count)))
    }

    /// Classes that have events, the busiest first.
    fn busiest(&self) -> Vec<(&str, &Beats)> {
        let names = self.names.iter().map(String::as_str);
        let mut classes: Vec<(&str, &Beats)> = names
            .zip(&self.beats)
            .filter_map(|(name, beats)| Some((name, beats.as_deref()?)))
            .collect();
        classes.sort_by_key(|(name, beats)| (Reverse(beats.tally.count), *name));
        classes
    }

    fn by_cpu(&self) -> Vec<(u32, &Beats)> {
        let mut cpus: Vec<_> = self.cpus.things().iter().copied().zip(&self.cpu_beats).collect();
        cpus.sort_by_key(|(cpu, _)| *cpu);
        cpus
    }

    /// How far numbers of a class can be trusted; `None`: of all of them.
    pub fn trust(&self, class: Option<&str>, trust: Trust) -> Trust {
        let is_filtered = match class {
            Some(name) => self.filtered.contains(name),
            None => !self.filtered.is_empty(),
        };
        trust.without(u64::from(is_filtered))
    }

    /// How far the longest silence can be trusted.
    fn of_silence(&self, beats: &Beats, trust: Trust, gaps: &Gaps) -> Quality {
        match beats.silence() {
            // Where nothing was lost, a filter left events out.
            Some(silence) if trust.value == Quality::Exact || !gaps.is_empty() => {
                quality(&silence, &beats.tally, gaps)
            }
            _ => trust.value,
        }
    }

    fn row(&self, row: Row, beats: &Beats, trust: Trust, gaps: &Gaps) -> Value {
        let (tally, over) = (&beats.tally, self.span_nanos());
        let silence = beats.silence();
        let quality = self.of_silence(beats, trust, gaps);
        row.number("count", tally.count, trust.sum)
            .number("rate_per_s", tally.rate(over), trust.value)
            .number("first_ns", tally.first.map(|time| time.0), trust.value)
            .number("last_ns", tally.last.map(|time| time.0), trust.value)
            .number("longest_silence_ns", silence.map(|silence| silence.nanos()), quality)
            .plain("longest_silence_begin_ns", silence.map(|silence| silence.begin.0))
            .plain("shortest_silence_told_ns", beats.rhythm.width_nanos())
            .value()
    }

    /// By class, the busiest first.
    pub fn json(&self, trust: Trust, gaps: &Gaps) -> Vec<Value> {
        let row = |(name, beats): &(&str, &Beats)| {
            self.row(
                Row::default().plain("name", *name),
                beats,
                self.trust(Some(name), trust),
                gaps,
            )
        };
        self.busiest().iter().map(row).collect()
    }

    /// By processor.
    pub fn cpus_json(&self, trust: Trust, gaps: &Gaps) -> Vec<Value> {
        let row = |(cpu, beats): &(u32, &Beats)| {
            self.row(Row::default().plain("cpu", *cpu), beats, self.trust(None, trust), gaps)
        };
        self.by_cpu().iter().map(row).collect()
    }

    /// The tables of classes and processors.
    pub fn page(&self, page: &mut Page<'_>) {
        let classes = self.busiest();
        let mut table = self.table("event");
        for (name, beats) in classes.iter().take(page.rows) {
            let name = if name.is_empty() { "(no name)" } else { name };
            table.row(self.cells(name.to_owned(), beats, page, self.trust(Some(name), page.trust)));
        }
        page.table(Section::Events, "events", &table, classes.len());
        let cpus = self.by_cpu();
        let mut table = self.table("cpu");
        for (cpu, beats) in cpus.iter().take(page.rows) {
            table.row(self.cells(cpu.to_string(), beats, page, self.trust(None, page.trust)));
        }
        page.table(Section::Events, "events by processor", &table, cpus.len());
    }

    fn table(&self, first: &'static str) -> Table {
        use Align::{Left, Right};
        let first = (first, if first == "cpu" { Right } else { Left });
        Table::new(&[
            first,
            ("count", Right),
            ("rate", Right),
            ("longest silence", Right),
            ("after", Left),
        ])
    }

    fn cells(&self, name: String, beats: &Beats, page: &Page<'_>, trust: Trust) -> Vec<String> {
        let tally = &beats.tally;
        let mut cells = vec![name, mark(values::count(tally.count), trust.sum)];
        let rate = tally.rate(self.span_nanos()).map(values::rate);
        cells.push(rate.map_or(String::new(), |rate| mark(rate, trust.value)));
        if let Some(silence) = beats.silence() {
            let quality = self.of_silence(beats, trust, page.gaps);
            cells.push(mark(values::time(silence.nanos()), quality));
            cells.push(date::text(silence.begin));
        }
        cells
    }
}

/// Whether it was as silent as it looks. Missing events make silences shorter, but before the
/// first and behind the last event they make new ones.
fn quality(silence: &Silence, tally: &Tally, gaps: &Gaps) -> Quality {
    let (first, last) = (tally.first.unwrap_or_default(), tally.last.unwrap_or_default());
    if gaps.between(silence.begin, silence.end) {
        Quality::Unknown
    } else if gaps.between(Nanos(i64::MIN), first) || gaps.between(last, Nanos(i64::MAX)) {
        Quality::LowerBound
    } else {
        Quality::Exact
    }
}
