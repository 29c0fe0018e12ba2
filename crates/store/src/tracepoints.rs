// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tracepoints of a recording: which class starts and stops which, from its roles; and the cycles of each
//! entry.

use std::collections::HashMap;

use lateralis_analysis::Gaps;
use lateralis_analysis::tracepoints::{Entry, Odd, Tracepoints, signed};
use lateralis_model::role::Role;
use lateralis_model::{Damage, Event, EventClass, Field, Quality, Value, Writer};
use lateralis_units::Nanos;

use crate::Chosen;

/// Largest number of keys of a name with rows of their own; a name with more has one row for all.
const KEYS: usize = 256;

/// A tracepoint.
pub struct Row {
    /// Name of the span.
    pub name: String,
    /// Its key; empty if it has none, or there are too many.
    pub key: String,
    /// Cycles per second, if the trace has it.
    pub frequency_hz: Option<u64>,
    /// Whether entries may be missing.
    pub quality: Quality,
}

impl Row {
    /// Name and key: `point 3`.
    #[must_use]
    pub fn label(&self) -> String {
        let Self { name, key, .. } = self;
        if key.is_empty() { name.clone() } else { format!("{name} {key}") }
    }

    /// Converts cycles to nanoseconds, if the frequency is known.
    #[must_use]
    pub fn nanos(&self, cycles: f64) -> Option<f64> {
        Some(cycles * 1e9 / self.frequency_hz? as f64)
    }
}

/// All tracepoints of a trace.
pub struct Gathered {
    /// By name and number or text of the key.
    pub rows: Vec<Row>,
    /// In the order of STOPs; [`Entry::row`] is an index into the rows.
    pub entries: Vec<Entry>,
    /// Irregular STOPs and STARTs.
    pub odd: Odd,
    /// Names that have more keys than rows.
    pub joined: Vec<String>,
    /// Damage found while reading.
    pub damage: Vec<Damage>,
    /// Whether events were lost.
    pub lossy: bool,
}

impl Gathered {
    /// Cycles of each row, in the order of STOPs, as computed by `of`.
    #[must_use]
    pub fn samples(&self, of: impl Fn(&Entry) -> i64) -> Vec<Vec<i64>> {
        let mut samples = vec![Vec::new(); self.rows.len()];
        for entry in &self.entries {
            samples[entry.row as usize].push(of(entry));
        }
        samples
    }

    /// Measured cycles of each row.
    #[must_use]
    pub fn cycles(&self) -> Vec<Vec<i64>> {
        self.samples(|entry| signed(entry.cycles))
    }
}

/// Meaning of an event class for a tracepoint.
enum Part {
    Start(Place),
    Stop(Place),
    /// A complete entry: the field contains its cycles.
    Whole(usize, String),
}

struct Place {
    name: usize,
    keys: Vec<String>,
}

#[derive(Default)]
struct Gathering {
    names: Vec<(String, Option<u64>)>,
    points: Tracepoints,
    lanes: HashMap<Option<Writer>, u32>,
    rows: HashMap<(usize, String), u32>,
    /// By row and lane.
    slots: HashMap<(u32, u32), u32>,
}

impl Gathering {
    fn name(&mut self, name: &str, frequency_hz: Option<u64>) -> usize {
        let known = (name.to_owned(), frequency_hz);
        if let Some(index) = self.names.iter().position(|name| *name == known) {
            return index;
        }
        self.names.push(known);
        self.names.len() - 1
    }

    fn parts(&mut self, class: &EventClass, clock: Option<u64>, asked: Option<u64>) -> Vec<Part> {
        let members = class.payload.as_ref().map_or(&[][..], |payload| payload.members());
        let has = |field: &str| members.iter().any(|member| member.name == field);
        let mut parts = Vec::new();
        for role in Role::of(class) {
            parts.push(match role {
                Role::Begin(of) if clock.is_some() => {
                    Part::Start(Place { name: self.name(&of.name, clock), keys: of.keys })
                }
                Role::End(of) if clock.is_some() => {
                    Part::Stop(Place { name: self.name(&of.name, clock), keys: of.keys })
                }
                // A log of cycles does not contain their frequency.
                Role::Span { name, .. } if has("duration_cycles") => {
                    let frequency = clock.or(asked);
                    Part::Whole(self.name(&name, frequency), "duration_cycles".to_owned())
                }
                Role::Span { name, duration } => {
                    Part::Whole(self.name(&name, Some(1_000_000_000)), duration)
                }
                _ => continue,
            });
        }
        parts
    }

    fn lane(&mut self, writer: Option<Writer>) -> u32 {
        let next = self.lanes.len() as u32;
        *self.lanes.entry(writer).or_insert(next)
    }

    fn row(&mut self, name: usize, key: String) -> u32 {
        let next = self.rows.len() as u32;
        *self.rows.entry((name, key)).or_insert(next)
    }

    fn event(&mut self, part: &Part, event: &Event<'_>) {
        let lane = self.lane(event.writer);
        let cycles = event.ticks.map_or(0, |ticks| ticks.0);
        match part {
            Part::Start(place) | Part::Stop(place) => {
                let row = self.row(place.name, key_of(event, &place.keys));
                let next = self.slots.len() as u32;
                let slot = *self.slots.entry((row, lane)).or_insert(next);
                if matches!(part, Part::Start(_)) {
                    self.points.start(slot, lane, cycles);
                } else {
                    self.points.stop(slot, row, lane, cycles);
                }
            }
            Part::Whole(name, field) => {
                let row = self.row(*name, String::new());
                let field = event.payload().and_then(|payload| payload.get(field));
                if let Some(cycles) = field.and_then(|field| field.as_u64()) {
                    self.points.whole(row, lane, cycles);
                }
            }
        }
    }
}

/// The values of the key fields, joined by commas.
fn key_of(event: &Event<'_>, keys: &[String]) -> String {
    let Some(payload) = event.payload().filter(|_| !keys.is_empty()) else {
        return String::new();
    };
    let values = keys.iter().map(|key| payload.get(key).map_or(String::new(), |f| value(&f)));
    values.collect::<Vec<_>>().join(",")
}

fn value(field: &Field<'_>) -> String {
    match field.value() {
        Value::Text(text) => text.to_str().into_owned(),
        Value::Signed(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        _ => field.as_u64().map_or(String::new(), |number| number.to_string()),
    }
}

/// Tracepoints of the selection; `frequency_hz` is used for logs that do not contain it.
///
/// Cost: one pass in time order; 24 bytes for each span.
#[must_use]
pub fn gather(chosen: &Chosen<'_>, frequency_hz: Option<u64>) -> Gathered {
    let (source, trace) = (chosen.source, &chosen.trace);
    let mut gathering = Gathering::default();
    let mut parts: Vec<Vec<Vec<Part>>> = Vec::new();
    for stream in &trace.stream_classes {
        let clock = stream.clock.and_then(|clock| trace.clocks.get(clock));
        let clock = clock.map(|clock| clock.frequency());
        let of = |class| gathering.parts(class, clock, frequency_hz);
        parts.push(stream.event_classes.iter().map(of).collect());
    }
    let mut events = chosen.events();
    while let Some(event) = events.next_event() {
        if !(chosen.contains)(&event) {
            continue;
        }
        let of_stream = parts.get(event.stream_class_index as usize);
        let of_class = of_stream.and_then(|classes| classes.get(event.class_index as usize));
        for part in of_class.into_iter().flatten() {
            gathering.event(part, &event);
        }
    }
    let mut damage = source.damage().to_vec();
    damage.extend(events.damage());
    drop(events);
    let gaps = Gaps::new(source.losses(), &damage, |_| None);
    finish(gathering, damage, &gaps)
}

/// Sorts rows, and combines those of names with too many keys.
fn finish(gathering: Gathering, damage: Vec<Damage>, gaps: &Gaps) -> Gathered {
    let mut counts = vec![0usize; gathering.names.len()];
    gathering.rows.keys().for_each(|(name, _)| counts[*name] += 1);
    let mut order: Vec<(usize, String)> = Vec::new();
    for (name, key) in gathering.rows.keys() {
        order.push((*name, if counts[*name] > KEYS { String::new() } else { key.clone() }));
    }
    let place = |(name, key): &(usize, String)| {
        let (text, frequency) = &gathering.names[*name];
        (text.clone(), *frequency, key.parse::<u64>().ok(), key.clone())
    };
    order.sort_by_cached_key(place);
    order.dedup();
    let index: HashMap<&(usize, String), u32> =
        order.iter().enumerate().map(|(index, row)| (row, index as u32)).collect();
    let mut to = vec![0; gathering.rows.len()];
    for ((name, key), old) in &gathering.rows {
        let key = if counts[*name] > KEYS { String::new() } else { key.clone() };
        to[*old as usize] = index[&(*name, key)];
    }
    let quality = gaps.of_value(Nanos(i64::MIN), Nanos(i64::MAX));
    let row = |(name, key): &(usize, String)| Row {
        name: gathering.names[*name].0.clone(),
        key: key.clone(),
        frequency_hz: gathering.names[*name].1,
        quality,
    };
    let rows = order.iter().map(row).collect();
    let joined = gathering.names.iter().zip(&counts).filter(|(_, count)| **count > KEYS);
    let joined = joined.map(|((name, _), _)| name.clone()).collect();
    let (mut entries, odd) = gathering.points.finish();
    entries.iter_mut().for_each(|entry| entry.row = to[entry.row as usize]);
    Gathered { rows, entries, odd, joined, damage, lossy: !gaps.is_empty() }
}
