// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the model to Perfetto's packets.
//!
//! One sequence. Each thread has a track; so has each counter of a process, and each
//! machine with states. Spans without keys are slices of their thread, spans with keys
//! slices of extra tracks, since they need not nest. Messages are flows. All fields
//! are debug annotations.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use lateralis_model::role::{Keyed, Role};
use lateralis_model::{Base, Dropped, Event, Field, FieldKind, Fields, Source, Value};

use super::wire::{put_bytes, put_fixed64, put_number};
use crate::json::{field_label, find, hex_string};
use crate::meaning::{
    Fnv, Level, Meaning, Meanings, NO_PROCESS, Owner, cpu, key, level, loss_text,
};

/// Spans with keys that may be open at once; further ones are instants.
const MAX_OPEN: usize = 100_000;
/// Names that are written once; further ones are written in full each time.
const MAX_INTERNED: usize = 100_000;
const SEQUENCE: u64 = 1;

/// Writes all events, names and losses.
///
/// Memory is bounded by classes, threads and open spans. Cost: one pass.
///
/// # Errors
/// Those of `out`.
pub fn write(source: &dyn Source, out: &mut dyn Write) -> io::Result<Dropped> {
    let mut meanings = Meanings::new(source);
    let mut writer = Packets {
        out,
        source,
        dropped: Dropped::default(),
        tracks: HashSet::new(),
        names: Default::default(),
        lanes: HashMap::new(),
        open: HashMap::new(),
        states: HashSet::new(),
        interned: Vec::new(),
    };
    writer.begin()?;
    let mut last = 0;
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        last = event.time.0;
        if let Some(meaning) = meanings.of(&event) {
            writer.event(&event, meaning)?;
        }
    }
    writer.losses(last)?;
    if !source.trace().environment.is_empty() {
        writer.dropped.note("the environment of the trace (Perfetto has no free place for it)");
    }
    Ok(writer.dropped)
}

#[derive(Default)]
struct Interner(HashMap<String, u64>);

/// The tables that are used, by field number in `InternedData`.
#[derive(Default)]
struct Names {
    categories: Interner,
    events: Interner,
    annotations: Interner,
}

struct Packets<'w> {
    out: &'w mut dyn Write,
    source: &'w dyn Source,
    dropped: Dropped,
    /// Tracks that are described.
    tracks: HashSet<u64>,
    names: Names,
    /// Free tracks of each kind of span with keys, and how many there are.
    lanes: HashMap<String, (Vec<u32>, u32)>,
    /// Open spans with keys, and their tracks.
    open: HashMap<u64, Vec<u32>>,
    /// Machines that are in a state.
    states: HashSet<u64>,
    /// New interned names, to go with the next event.
    interned: Vec<u8>,
}

/// A field that refers to a name: by its number, or by the name itself.
fn put_name(
    table: (&mut Interner, u32),
    interned: &mut Vec<u8>,
    out: &mut Vec<u8>,
    fields: (u32, u32),
    name: &str,
) {
    let (names, number) = table;
    if let Some(&iid) = names.0.get(name) {
        return put_number(out, fields.0, iid);
    }
    if names.0.len() >= MAX_INTERNED {
        return put_bytes(out, fields.1, name.as_bytes());
    }
    let iid = names.0.len() as u64 + 1;
    names.0.insert(name.to_owned(), iid);
    let mut entry = Vec::new();
    put_number(&mut entry, 1, iid);
    put_bytes(&mut entry, 2, name.as_bytes());
    put_bytes(interned, number, &entry);
    put_number(out, fields.0, iid);
}

fn uuid(parts: &[&[u8]]) -> u64 {
    let mut hash = Fnv::default();
    parts.iter().for_each(|part| hash.bytes(part));
    // 0 is the track of everything.
    hash.0.max(1)
}

/// The kinds of slices, as `TrackEvent.type`.
#[derive(Clone, Copy)]
enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

impl Packets<'_> {
    fn packet(&mut self, content: &[u8]) -> io::Result<()> {
        let mut header = Vec::with_capacity(12);
        header.push(0x0a);
        super::wire::put_varint(&mut header, content.len() as u64);
        self.out.write_all(&header)?;
        self.out.write_all(content)
    }

    /// The first packets: state begins, clocks, names.
    fn begin(&mut self) -> io::Result<()> {
        let mut packet = Vec::new();
        put_number(&mut packet, 10, SEQUENCE);
        put_number(&mut packet, 13, 1);
        put_number(&mut packet, 87, 1);
        if self.source.trace().clocks.iter().any(|clock| clock.unix_epoch) {
            // Times are those since 1970: both clocks read the same.
            let now = self.source.interval().begin.map_or(0, |time| time.0.max(0)) as u64;
            let mut snapshot = Vec::new();
            for clock in [super::clocks::REALTIME, super::clocks::BOOTTIME] {
                let mut reading = Vec::new();
                put_number(&mut reading, 1, u64::from(clock));
                put_number(&mut reading, 2, now);
                put_bytes(&mut snapshot, 1, &reading);
            }
            put_bytes(&mut packet, 6, &snapshot);
        }
        self.packet(&packet)?;
        let names = self.source.names();
        let mut tree = Vec::new();
        for (&pid, name) in &names.processes {
            let mut process = Vec::new();
            put_number(&mut process, 1, u64::from(pid));
            put_bytes(&mut process, 3, name.as_bytes());
            put_bytes(&mut tree, 1, &process);
        }
        for (&tid, name) in &names.threads {
            let mut thread = Vec::new();
            put_number(&mut thread, 1, u64::from(tid));
            put_bytes(&mut thread, 2, name.as_bytes());
            put_bytes(&mut tree, 2, &thread);
        }
        if tree.is_empty() {
            return Ok(());
        }
        packet.clear();
        put_number(&mut packet, 10, SEQUENCE);
        put_bytes(&mut packet, 2, &tree);
        self.packet(&packet)
    }

    fn describe(&mut self, uuid: u64, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<u64> {
        if self.tracks.insert(uuid) {
            let mut track = Vec::new();
            put_number(&mut track, 1, uuid);
            fill(&mut track);
            let mut packet = Vec::new();
            put_number(&mut packet, 10, SEQUENCE);
            put_bytes(&mut packet, 60, &track);
            self.packet(&packet)?;
        }
        Ok(uuid)
    }

    fn process(&mut self, pid: u32) -> io::Result<u64> {
        let name = match self.source.names().processes.get(&pid) {
            Some(name) => name.clone(),
            None if pid == NO_PROCESS => "no process".to_owned(),
            None => String::new(),
        };
        self.describe(uuid(&[b"process", &pid.to_le_bytes()]), |track| {
            let mut process = Vec::new();
            put_number(&mut process, 1, u64::from(pid));
            if !name.is_empty() {
                put_bytes(&mut process, 6, name.as_bytes());
            }
            put_bytes(track, 3, &process);
        })
    }

    fn thread(&mut self, owner: Owner) -> io::Result<u64> {
        let (pid, tid) = owner.ids();
        let parent = self.process(pid)?;
        let name = match owner {
            Owner::Thread { tid, .. } => self.source.names().threads.get(&tid).cloned(),
            Owner::Cpu(cpu) => Some(format!("CPU {cpu}")),
            Owner::Stream(stream) => {
                self.source.streams().get(stream as usize).map(|stream| stream.name.clone())
            }
        };
        let name = name.unwrap_or_default();
        self.describe(uuid(&[b"thread", &pid.to_le_bytes(), &tid.to_le_bytes()]), |track| {
            put_number(track, 5, parent);
            if matches!(owner, Owner::Thread { .. }) {
                let mut thread = Vec::new();
                put_number(&mut thread, 1, u64::from(pid));
                put_number(&mut thread, 2, u64::from(tid));
                if !name.is_empty() {
                    put_bytes(&mut thread, 5, name.as_bytes());
                }
                put_bytes(track, 4, &thread);
            } else {
                put_bytes(track, 2, name.as_bytes());
            }
        })
    }

    /// A track with a name under the process of an owner.
    fn extra(
        &mut self,
        kind: &str,
        name: &str,
        tell: &[u8],
        owner: Owner,
        counter: bool,
    ) -> io::Result<u64> {
        let (pid, _) = owner.ids();
        let parent = self.process(pid)?;
        let id = uuid(&[kind.as_bytes(), name.as_bytes(), &pid.to_le_bytes(), tell]);
        self.describe(id, |track| {
            put_number(track, 5, parent);
            put_bytes(track, 2, name.as_bytes());
            if counter {
                put_bytes(track, 8, &[]);
            }
        })
    }

    /// Writes an event; `rest` is what it has beside type, track, name and category.
    fn track_event(
        &mut self,
        time: i64,
        kind: Kind,
        track: u64,
        (name, category): (&str, &str),
        rest: &[u8],
    ) -> io::Result<()> {
        let mut event = Vec::with_capacity(rest.len() + 32);
        put_number(&mut event, 9, kind as u64);
        put_number(&mut event, 11, track);
        let interned = &mut self.interned;
        if !name.is_empty() {
            put_name((&mut self.names.events, 2), interned, &mut event, (10, 23), name);
        }
        if !category.is_empty() {
            put_name((&mut self.names.categories, 1), interned, &mut event, (3, 22), category);
        }
        event.extend_from_slice(rest);
        let mut packet = Vec::with_capacity(event.len() + 32);
        if time < 0 {
            self.dropped.note("times before the origin of the clock (shown at 0)");
        }
        put_number(&mut packet, 8, time.max(0) as u64);
        put_number(&mut packet, 10, SEQUENCE);
        put_number(&mut packet, 13, 2);
        if !self.interned.is_empty() {
            put_bytes(&mut packet, 12, &self.interned);
            self.interned.clear();
        }
        put_bytes(&mut packet, 11, &event);
        self.packet(&packet)
    }

    fn event(&mut self, event: &Event<'_>, meaning: &Meaning) -> io::Result<()> {
        let owner = Owner::of(event);
        let name = meaning.name(event).into_owned();
        let category = find(event, "event.category").and_then(|field| field.as_text());
        let category = category.map_or_else(|| meaning.category.clone(), |text| text.into_owned());
        let category = category.as_str();
        let time = event.time.0;
        let mut args = self.annotations(event);
        let mut shown = false;
        for role in &meaning.roles {
            let (number, keyed) = match role {
                Role::Send(keyed) => (47, keyed),
                Role::Receive(keyed) => (48, keyed),
                _ => continue,
            };
            put_fixed64(&mut args, number, key(event, keyed));
        }
        let renamed = |this: &mut Self, span: &str| {
            let mut rest = args.clone();
            if span != name {
                let mut annotation = Vec::new();
                this.annotation_name(&mut annotation, "event");
                put_bytes(&mut annotation, 6, name.as_bytes());
                put_bytes(&mut rest, 4, &annotation);
            }
            rest
        };
        for role in &meaning.roles {
            match role {
                Role::Begin(keyed) | Role::End(keyed) => {
                    let begins = matches!(role, Role::Begin(_));
                    let kind = if begins { Kind::Begin } else { Kind::End };
                    let track = self.span_track(event, keyed, begins, owner)?;
                    let Some(track) = track else { continue };
                    let rest = renamed(self, &keyed.name);
                    self.track_event(time, kind, track, (&keyed.name, category), &rest)?;
                    shown = true;
                }
                Role::Span { name: span, duration } => {
                    let Some(nanos) = find(event, duration).and_then(number) else { continue };
                    let track = self.thread(owner)?;
                    let rest = renamed(self, span);
                    self.track_event(time, Kind::Begin, track, (span, category), &rest)?;
                    let end = time.saturating_add(i64::try_from(nanos).unwrap_or(i64::MAX));
                    self.track_event(end, Kind::End, track, ("", ""), &[])?;
                    shown = true;
                }
                Role::Counter { field } => {
                    let Some(level) = find(event, field).and_then(level) else { continue };
                    // A class with one counter is that counter.
                    let only = meaning.roles.len() == 1;
                    let title = if only { name.clone() } else { format!("{name}.{field}") };
                    let track = self.extra("counter", &title, b"", owner, true)?;
                    let mut rest = Vec::new();
                    match level {
                        Level::Integer(value) => match i64::try_from(value) {
                            Ok(value) => put_number(&mut rest, 30, value as u64),
                            Err(_) => put_fixed64(&mut rest, 44, (value as f64).to_bits()),
                        },
                        Level::Real(value) => put_fixed64(&mut rest, 44, value.to_bits()),
                    }
                    let own = event.payload().map_or(0, |fields| fields.into_iter().count());
                    if only && own <= 1 {
                        shown = true;
                    }
                    self.track_event(time, Kind::Counter, track, ("", ""), &rest)?;
                }
                Role::State { name: machine, field } => {
                    let Some(value) = find(event, field) else { continue };
                    let label = match field_label(value) {
                        Some(label) => label.to_owned(),
                        None => match value.as_text() {
                            Some(text) => text.into_owned(),
                            None => number(value).map_or(String::new(), |value| value.to_string()),
                        },
                    };
                    let (_, tid) = owner.ids();
                    let track = self.extra("state", machine, &tid.to_le_bytes(), owner, false)?;
                    if !self.states.insert(track) {
                        self.track_event(time, Kind::End, track, ("", ""), &[])?;
                    }
                    let rest = renamed(self, &label);
                    self.track_event(time, Kind::Begin, track, (&label, category), &rest)?;
                    shown = true;
                }
                Role::Send(_) | Role::Receive(_) => (),
            }
        }
        if !shown {
            let track = self.thread(owner)?;
            self.track_event(time, Kind::Instant, track, (&name, category), &args)?;
        }
        Ok(())
    }

    /// Where a span goes. `None` for the end of one that never began.
    fn span_track(
        &mut self,
        event: &Event<'_>,
        keyed: &Keyed,
        begins: bool,
        owner: Owner,
    ) -> io::Result<Option<u64>> {
        if keyed.keys.is_empty() {
            return self.thread(owner).map(Some);
        }
        let id = key(event, keyed);
        let lane = if begins {
            if self.open.len() >= MAX_OPEN {
                self.dropped.note("spans beyond 100,000 open at once (shown as instants)");
                return Ok(None);
            }
            let (free, count) = self.lanes.entry(keyed.name.clone()).or_default();
            let lane = free.pop().unwrap_or_else(|| {
                *count += 1;
                *count
            });
            self.open.entry(id).or_default().push(lane);
            lane
        } else {
            let Some(lane) = self.open.get_mut(&id).and_then(Vec::pop) else { return Ok(None) };
            if self.open.get(&id).is_some_and(Vec::is_empty) {
                self.open.remove(&id);
            }
            if let Some((free, _)) = self.lanes.get_mut(&keyed.name) {
                free.push(lane);
            }
            lane
        };
        // Beginning and end may be of different processes, so the track is of none.
        let name = keyed.name.as_bytes();
        let track = uuid(&[b"span", name, &lane.to_le_bytes()]);
        self.describe(track, |track| put_bytes(track, 2, name)).map(Some)
    }

    fn annotation_name(&mut self, out: &mut Vec<u8>, name: &str) {
        put_name((&mut self.names.annotations, 3), &mut self.interned, out, (1, 10), name);
    }

    /// All fields of an event as debug annotations.
    fn annotations(&mut self, event: &Event<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(cpu) = cpu(event) {
            let mut annotation = Vec::new();
            self.annotation_name(&mut annotation, "cpu");
            put_number(&mut annotation, 3, u64::from(cpu));
            put_bytes(&mut out, 4, &annotation);
        }
        if let Some(common) = event.common_context() {
            for (member, field) in common {
                if !matches!(member.name.as_str(), "cpu_id" | "pid" | "tid") {
                    self.member(&mut out, 4, member, field);
                }
            }
        }
        for fields in [event.context(), event.payload()].into_iter().flatten() {
            self.members(&mut out, 4, fields);
        }
        out
    }

    fn members(&mut self, out: &mut Vec<u8>, number: u32, fields: Fields<'_>) {
        for (member, field) in fields {
            self.member(out, number, member, field);
        }
    }

    fn member(
        &mut self,
        out: &mut Vec<u8>,
        number: u32,
        member: &lateralis_model::Member,
        field: Field<'_>,
    ) {
        if member.class.structural || matches!(field.value(), Value::Optional(None)) {
            return;
        }
        let mut annotation = Vec::new();
        self.annotation_name(&mut annotation, &member.name);
        self.value(&mut annotation, field);
        put_bytes(out, number, &annotation);
    }

    /// Adds the value to a message `DebugAnnotation`.
    fn value(&mut self, out: &mut Vec<u8>, field: Field<'_>) {
        if let Some(label) = field_label(field) {
            return put_bytes(out, 6, label.as_bytes());
        }
        match field.value() {
            Value::Bool(value) => put_number(out, 2, u64::from(value)),
            Value::Unsigned(value) => {
                let hex = matches!(&field.class().kind,
                    FieldKind::Unsigned(class) if class.base == Base::Hexadecimal);
                put_number(out, if hex { 7 } else { 3 }, value);
            }
            Value::Bits(value) => put_number(out, 7, value),
            Value::Signed(value) => put_number(out, 4, value as u64),
            Value::Real(value) => put_fixed64(out, 5, value.to_bits()),
            Value::Text(text) => put_bytes(out, 6, text.to_str().as_bytes()),
            Value::Bytes(bytes) => {
                self.dropped.note("the type of blobs (Perfetto gets hexadecimal text)");
                let mut text = Vec::new();
                hex_string(&mut text, bytes);
                put_bytes(out, 6, &text[1..text.len() - 1]);
            }
            Value::Struct(fields) => self.members(out, 11, fields),
            Value::Array(elements) => {
                for element in elements {
                    let mut annotation = Vec::new();
                    self.value(&mut annotation, element);
                    put_bytes(out, 12, &annotation);
                }
            }
            Value::Variant(_, field) | Value::Optional(Some(field)) => self.value(out, field),
            Value::Optional(None) => (),
        }
    }

    fn losses(&mut self, last: i64) -> io::Result<()> {
        for loss in self.source.losses() {
            let track =
                self.describe(uuid(&[b"losses"]), |track| put_bytes(track, 2, b"losses"))?;
            let time = loss.interval.end.or(loss.interval.begin).map_or(last, |time| time.0);
            let mut rest = Vec::new();
            if let Some(count) = loss.count {
                let mut annotation = Vec::new();
                self.annotation_name(&mut annotation, "count");
                put_number(&mut annotation, 3, count);
                put_bytes(&mut rest, 4, &annotation);
            }
            self.track_event(time, Kind::Instant, track, (&loss_text(loss), "loss"), &rest)?;
        }
        Ok(())
    }
}

/// A duration or another whole number.
fn number(field: Field<'_>) -> Option<u64> {
    match field.value() {
        Value::Optional(Some(field)) | Value::Variant(_, field) => number(field),
        _ => field.as_u64(),
    }
}
