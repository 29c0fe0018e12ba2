// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fields of events, read again from the trace.

use std::collections::HashMap;

use lateralis_lanes::{LaneKind, Lanes, Listed, PointRef};
use lateralis_model::{Event, FieldClass, Interval, Source as _};
use lateralis_store::facts::At;
use lateralis_traces::JsonLines;
use lateralis_units::Nanos;
use serde_json::{Map, Value, json};

use crate::answer::Problem;
use crate::packets;
use crate::session::{Session, Source, lock};

/// Number of events that are skipped by reading rather than by seeking.
const NEAR: u64 = 4096;
/// Largest integer up to which all are exact as JavaScript numbers.
const EXACT: u64 = 1 << 53;

/// Returns the fields of events, in the order of `points`; `None` for an event that is not found again.
///
/// Cost: events near each other are read in one pass over the time between them; others need a seek each.
///
/// # Errors
/// If the trace cannot be read.
pub fn fields(session: &Session, points: &[PointRef]) -> Result<Vec<Option<Value>>, Problem> {
    let lanes = &session.lanes;
    let origin = lanes.meta().origin;
    let time_of = |point: &PointRef| {
        let points = lanes.points(point.lane);
        points.map_or(0, |points| points.time(point.index as usize))
    };
    let mut wanted: Vec<(u64, usize)> = points.iter().map(time_of).zip(0..).collect();
    wanted.sort_unstable();
    let (Some((first, _)), Some((last, _))) = (wanted.first(), wanted.last()) else {
        return Ok(Vec::new());
    };
    let source = session.source_between(absolute(origin, *first).0, absolute(origin, *last).0)?;
    let mut lines = JsonLines::new(&source.recording.source, &source.names);
    let mut line = Vec::new();
    let reader = Reader { lanes, source: &source };
    let all = Listed::new(lanes, None);
    let mut told = vec![None; points.len()];
    let mut rest = &wanted[..];
    while let Some((first, _)) = rest.first() {
        // Events near each other are read in one pass.
        let mut run = 1;
        while let Some((time, _)) = rest.get(run)
            && all.before(near(*time)).saturating_sub(all.before(near(rest[run - 1].0))) <= NEAR
        {
            run += 1;
        }
        let (now, later) = rest.split_at(run);
        let last = now.last().map_or(*first, |(time, _)| *time);
        let interval = (absolute(origin, *first), absolute(origin, last));
        reader.read(interval, now, points, &mut |place, event| {
            line.clear();
            lines.event(&mut line, event, None);
            told[place] = Some(list(&source, event, &line));
        });
        rest = later;
    }
    Ok(told)
}

/// Finds an event in the trace and calls `work` with it; `None` if it is not found again.
pub fn with_event<T>(
    session: &Session,
    point: PointRef,
    work: impl FnOnce(&Event<'_>) -> Option<T>,
) -> Option<T> {
    let lanes = &session.lanes;
    let time = lanes.points(point.lane)?.time(point.index as usize);
    let moment = absolute(lanes.meta().origin, time);
    let source = session.source_between(moment.0, moment.0).ok()?;
    let (mut work, mut made) = (Some(work), None);
    let reader = Reader { lanes, source: &source };
    reader.read((moment, moment), &[(time, 0)], &[point], &mut |_, event| {
        made = work.take().and_then(|work| work(event));
    });
    made
}

/// Absolute time of an event `behind` nanoseconds after the first. The difference is unsigned,
/// because a session can span the whole time line, which is twice the range of `i64`.
fn absolute(origin: i64, behind: u64) -> Nanos {
    Nanos::nearest(i128::from(origin) + i128::from(behind))
}

/// Time relative to the first event as the index takes it, saturated to `i64`.
fn near(behind: u64) -> i64 {
    i64::try_from(behind).unwrap_or(i64::MAX)
}

struct Reader<'a> {
    lanes: &'a Lanes,
    source: &'a Source,
}

impl Reader<'_> {
    fn read(
        &self,
        (begin, end): (Nanos, Nanos),
        wanted: &[(u64, usize)],
        points: &[PointRef],
        see: &mut dyn FnMut(usize, &Event<'_>),
    ) {
        let meta = self.lanes.meta();
        // By time: lane, position among the events of that time and lane, and index of the result.
        let mut places: HashMap<i64, Vec<(u32, usize, usize)>> = HashMap::new();
        for (time, place) in wanted {
            let PointRef { lane, index } = points[*place];
            let before = self.lanes.points(lane).map_or(0, |points| points.before(near(*time)));
            let nth = (index as usize).saturating_sub(before);
            places.entry(absolute(meta.origin, *time).0).or_default().push((lane, nth, *place));
        }
        let mut passed: HashMap<(i64, u32), usize> = HashMap::new();
        let interval = Interval { begin: Some(begin), end: Some(end) };
        let mut events = self.source.recording.source.events_in(interval);
        let mut facts = lock(&self.source.facts);
        while let Some(event) = events.next_event() {
            let Some(here) = places.get(&event.time.0) else { continue };
            if !self.source.classes.contains_key(&event.class.name) {
                continue;
            }
            let at = facts.at(&event);
            let mut lanes: Vec<u32> = here.iter().map(|(lane, ..)| *lane).collect();
            lanes.sort_unstable();
            lanes.dedup();
            for lane in
                lanes.into_iter().filter(|lane| is_on(self.lanes, *lane, &event, &at, self.source))
            {
                let number = passed.entry((event.time.0, lane)).or_default();
                for (_, _, place) in here.iter().filter(|(l, nth, _)| *l == lane && nth == number) {
                    see(*place, &event);
                }
                *number += 1;
            }
        }
    }
}

/// Whether the index has put an event on a lane.
pub fn is_on(lanes: &Lanes, lane: u32, event: &Event<'_>, at: &At, source: &Source) -> bool {
    if let Some(own) = packets::lane_of(&lanes.meta().lanes, event) {
        return own == lane;
    }
    let Some(lane) = lanes.meta().lanes.get(lane as usize) else { return false };
    match (lane.kind, at.cpu, at.writer) {
        (LaneKind::Cpu, cpu, _) => cpu.is_some() && cpu == lane.cpu,
        (LaneKind::Thread, None, Some(writer)) => lane.tid == Some(writer.tid),
        (LaneKind::Component, None, None) => {
            let stream = source.recording.streams.get(event.stream.0 as usize);
            stream.is_some_and(|stream| stream.name == lane.name)
        }
        _ => false,
    }
}

/// Lists fields with their names, units and labels.
fn list(source: &Source, event: &Event<'_>, line: &[u8]) -> Value {
    let parsed: Value = serde_json::from_slice(line).unwrap_or_default();
    let meaning = source
        .recording
        .meanings
        .get(event.stream_class_index as usize, event.class_index as usize);
    let mut list = Vec::new();
    let members = |class: Option<&FieldClass>| -> Vec<String> {
        let members = class.map_or(&[][..], FieldClass::members);
        members.iter().map(|member| member.name.clone()).collect()
    };
    let mut context = members(event.stream_class.common_context.as_ref());
    context.extend(members(event.class.context.as_ref()));
    let payload = members(event.class.payload.as_ref());
    for (part, is_payload) in [("context", false), ("fields", true)] {
        let Some(fields) = parsed[part].as_object() else { continue };
        // In the order of the event class: the fields of a JSON object have no order.
        let order = if is_payload { &payload } else { &context };
        let place = |name: &str| order.iter().position(|known| known == name);
        let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
        sorted.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        for (name, value) in sorted {
            if is_of_another(fields, name) {
                continue;
            }
            let mut field = json!({ "name": name, "value": exact(value) });
            if let Some(label) = fields.get(&format!("{name}.label")) {
                field["label"] = label.clone();
            }
            let told = meaning.filter(|_| is_payload);
            let told = told.and_then(|told| told.fields.iter().find(|field| field.name == *name));
            let words = told.map(|field| field.annotations.iter().map(|a| a.word()).collect());
            let words: Vec<&str> = words.unwrap_or_default();
            if words.contains(&"hex")
                && let Some(number) = value.as_u64()
            {
                field["value"] = format!("{number:#x}").into();
            }
            if words.contains(&"bytes") {
                field["unit"] = "B".into();
            }
            if let Some(unit) = ["ns", "us", "ms", "s", "cycles"].iter().find(|u| words.contains(u))
            {
                field["unit"] = (*unit).into();
            }
            list.push(field);
        }
    }
    Value::Array(list)
}

/// Converts a list of fields to an object; labels replace values.
#[must_use]
pub fn object(fields: Option<&Value>) -> Value {
    let fields = fields.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let pair = |field: &Value| {
        let value = field.get("label").unwrap_or(&field["value"]).clone();
        Some((field["name"].as_str()?.to_owned(), value))
    };
    Value::Object(fields.iter().filter_map(pair).collect())
}

/// Whether a field is the label of another field.
fn is_of_another(fields: &Map<String, Value>, name: &str) -> bool {
    let of = name.strip_suffix(".label");
    of.is_some_and(|of| fields.contains_key(of))
}

/// Converts integers that JavaScript would round to strings.
fn exact(value: &Value) -> Value {
    let is_far = |value: &Value| {
        value.as_u64().is_some_and(|n| n > EXACT)
            || value.as_i64().is_some_and(|n| n.unsigned_abs() > EXACT)
    };
    match value {
        number if is_far(number) => number.to_string().into(),
        Value::Array(items) => items.iter().map(exact).collect(),
        other => other.clone(),
    }
}
