// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the model to Perfetto's packets.
//!
//! One sequence. Each thread has a track; so has each counter of a process, and each
//! machine with states. Spans without keys are slices of their thread, or, where they overlap
//! others of it, of tracks under that of the thread; spans with keys are slices of extra tracks of
//! their process, since they need not nest. Messages are flows. All fields are debug annotations.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use lateralis_model::{Base, Dropped, Event, Field, FieldKind, Fields, Loss, Source, Value};

use super::wire::{put_bytes, put_fixed64, put_number};
use crate::json::{FieldWriter, field_label, hex_string};
use crate::meaning::{Fnv, Level, Losing, Meaning, Owner, cpu, fields, note_trace};
use crate::picture::{Canvas, Flow, Lane, Mark, Place, draw, line_name, process_name};

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
    let mut writer = Packets {
        out,
        source,
        dropped: Dropped::default(),
        tracks: HashSet::new(),
        threads: HashSet::new(),
        names: Default::default(),
        lanes: HashMap::new(),
        open: HashMap::new(),
        interned: Vec::new(),
    };
    writer.begin()?;
    draw(source, &mut writer, "Perfetto")?;
    writer.unseen_threads()?;
    note_trace(source, &mut writer.dropped, "Perfetto", false);
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
    /// Threads that have tracks.
    threads: HashSet<u32>,
    names: Names,
    /// Free tracks of each kind of span with keys in a process, and how many there are.
    lanes: HashMap<(String, u32), (Vec<u32>, u32)>,
    /// Open spans with keys: their processes and tracks.
    open: HashMap<u64, (u32, u32)>,
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
        if let Some(uuid) = self.source.trace().uuid {
            let (high, low) = (uuid.0.first_chunk::<8>(), uuid.0.last_chunk::<8>());
            let half = |half: Option<&[u8; 8]>| half.map_or(0, |half| u64::from_be_bytes(*half));
            let mut message = Vec::new();
            put_number(&mut message, 1, half(high));
            put_number(&mut message, 2, half(low));
            put_bytes(&mut packet, 89, &message);
        }
        self.packet(&packet)?;
        for &pid in self.source.names().processes.keys() {
            self.process(pid)?;
        }
        Ok(())
    }

    /// Names of threads without events: their processes are not known.
    fn unseen_threads(&mut self) -> io::Result<()> {
        let mut tree = Vec::new();
        for (&tid, name) in &self.source.names().threads {
            if !self.threads.contains(&tid) {
                let mut thread = Vec::new();
                put_number(&mut thread, 1, u64::from(tid));
                put_bytes(&mut thread, 2, name.as_bytes());
                put_bytes(&mut tree, 2, &thread);
            }
        }
        if tree.is_empty() {
            return Ok(());
        }
        let mut packet = Vec::new();
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
        let name = process_name(self.source, pid).unwrap_or_default();
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
        let name = line_name(self.source, owner).unwrap_or_default();
        if let Owner::Thread { tid, .. } = owner {
            self.threads.insert(tid);
        }
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

    /// Where a span with keys goes. `None` for the end of one that never began.
    fn span_track(
        &mut self,
        name: &str,
        id: u64,
        owner: Owner,
        begins: bool,
    ) -> io::Result<Option<u64>> {
        let (pid, lane) = if begins {
            if self.open.len() >= MAX_OPEN {
                self.dropped.note("spans beyond 100,000 open at once (shown as instants)");
                return Ok(None);
            }
            let (pid, _) = owner.ids();
            let (free, count) = self.lanes.entry((name.to_owned(), pid)).or_default();
            let lane = free.pop().unwrap_or_else(|| {
                *count += 1;
                *count
            });
            self.open.insert(id, (pid, lane));
            (pid, lane)
        } else {
            let Some((pid, lane)) = self.open.remove(&id) else { return Ok(None) };
            if let Some((free, _)) = self.lanes.get_mut(&(name.to_owned(), pid)) {
                free.push(lane);
            }
            (pid, lane)
        };
        let parent = self.process(pid)?;
        let name = name.as_bytes();
        let track = uuid(&[b"span", name, &pid.to_le_bytes(), &lane.to_le_bytes()]);
        let describe = |track: &mut Vec<u8>| {
            put_number(track, 5, parent);
            put_bytes(track, 2, name);
        };
        self.describe(track, describe).map(Some)
    }

    /// The track of a thread, or one under it.
    fn lane(&mut self, owner: Owner, lane: Lane) -> io::Result<u64> {
        let parent = self.thread(owner)?;
        if lane.index == 0 {
            return Ok(parent);
        }
        let (pid, tid) = owner.ids();
        let index = lane.index.to_le_bytes();
        let track = uuid(&[b"lane", &pid.to_le_bytes(), &tid.to_le_bytes(), &index]);
        self.describe(track, |track| {
            put_number(track, 5, parent);
            put_bytes(track, 2, b"overlapping");
        })
    }

    fn annotation_name(&mut self, out: &mut Vec<u8>, name: &str) {
        put_name((&mut self.names.annotations, 3), &mut self.interned, out, (1, 10), name);
    }

    fn members(
        &mut self,
        out: &mut Vec<u8>,
        number: u32,
        fields: Fields<'_>,
        lost: &mut FieldWriter,
    ) {
        for (member, field) in fields {
            self.member(out, number, member, field, lost);
        }
    }

    fn member(
        &mut self,
        out: &mut Vec<u8>,
        number: u32,
        member: &lateralis_model::Member,
        field: Field<'_>,
        lost: &mut FieldWriter,
    ) {
        if member.class.structural || matches!(field.value(), Value::Optional(None)) {
            return;
        }
        let mut annotation = Vec::new();
        self.annotation_name(&mut annotation, &member.name);
        self.value(&mut annotation, field, lost);
        put_bytes(out, number, &annotation);
    }

    /// Adds the value to a message `DebugAnnotation`.
    fn value(&mut self, out: &mut Vec<u8>, field: Field<'_>, writer: &mut FieldWriter) {
        if let Some(label) = field_label(field) {
            writer.lost.count(Losing::Number);
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
            Value::Text(text) => put_bytes(out, 6, writer.lost.text(text).as_bytes()),
            Value::Bytes(bytes) => {
                writer.lost.count(Losing::Blob);
                let mut text = Vec::new();
                hex_string(&mut text, bytes);
                put_bytes(out, 6, &text[1..text.len() - 1]);
            }
            Value::Struct(fields) => self.members(out, 11, fields, writer),
            Value::Array(elements) => {
                for element in elements {
                    let mut annotation = Vec::new();
                    self.value(&mut annotation, element, writer);
                    put_bytes(out, 12, &annotation);
                }
            }
            Value::Variant(_, field) => {
                writer.lost.count(Losing::Choice);
                self.value(out, field, writer);
            }
            Value::Optional(Some(field)) => self.value(out, field, writer),
            Value::Optional(None) => (),
        }
    }
}

impl Canvas for Packets<'_> {
    /// Debug annotations.
    type Arguments = Vec<u8>;

    fn arguments(&mut self, event: &Event<'_>, meaning: &mut Meaning) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let writer = &mut meaning.writer;
        if let Some(cpu) = cpu(event) {
            let mut annotation = Vec::new();
            self.annotation_name(&mut annotation, "cpu");
            put_number(&mut annotation, 3, u64::from(cpu));
            put_bytes(&mut out, 4, &annotation);
        }
        for (member, field) in fields(event) {
            self.member(&mut out, 4, member, field, writer);
        }
        Ok(out)
    }

    fn mark(
        &mut self,
        mark: &Mark,
        place: &Place<'_>,
        (name, event): (&str, Option<&str>),
        arguments: &Vec<u8>,
        flows: &[Flow],
    ) -> io::Result<()> {
        let Place { time, owner, category } = *place;
        let mut rest = arguments.clone();
        if let Some(event) = event {
            let mut annotation = Vec::new();
            self.annotation_name(&mut annotation, "event");
            put_bytes(&mut annotation, 6, event.as_bytes());
            put_bytes(&mut rest, 4, &annotation);
        }
        for flow in flows {
            put_fixed64(&mut rest, if flow.leaves { 47 } else { 48 }, flow.id);
        }
        let head = (name, category);
        match mark {
            Mark::Begin(lane) | Mark::Whole(_, lane) => {
                let track = self.lane(owner, *lane)?;
                self.track_event(time, Kind::Begin, track, head, &rest)
            }
            Mark::End(lane) => {
                let track = self.lane(owner, *lane)?;
                self.track_event(time, Kind::End, track, head, &rest)
            }
            Mark::Instant | Mark::Original(_) => {
                let track = self.thread(owner)?;
                self.track_event(time, Kind::Instant, track, head, &rest)
            }
            Mark::Open(id) | Mark::Close(id, _) => {
                let begins = matches!(mark, Mark::Open(_));
                let (kind, track) = match self.span_track(name, *id, owner, begins)? {
                    Some(track) => (if begins { Kind::Begin } else { Kind::End }, track),
                    // Only one end of it is there.
                    None => (Kind::Instant, self.thread(owner)?),
                };
                // An end on a track of its own needs no category, which may be another.
                let category = if matches!(kind, Kind::End) { "" } else { category };
                self.track_event(time, kind, track, (name, category), &rest)
            }
            Mark::Level(field, level, only) => {
                let title = if *only { name.to_owned() } else { format!("{name}.{field}") };
                let track = self.extra("counter", &title, b"", owner, true)?;
                let mut rest = Vec::new();
                match *level {
                    Level::Integer(value) => match i64::try_from(value) {
                        Ok(value) => put_number(&mut rest, 30, value as u64),
                        Err(_) => put_fixed64(&mut rest, 44, (value as f64).to_bits()),
                    },
                    Level::Real(value) => put_fixed64(&mut rest, 44, value.to_bits()),
                }
                self.track_event(time, Kind::Counter, track, ("", ""), &rest)
            }
            Mark::State(machine, before) => {
                let (_, tid) = owner.ids();
                let track = self.extra("state", machine, &tid.to_le_bytes(), owner, false)?;
                if before.is_some() {
                    self.track_event(time, Kind::End, track, ("", ""), &[])?;
                }
                self.track_event(time, Kind::Begin, track, head, &rest)
            }
        }
    }

    const ENDS_WHOLE: bool = true;

    fn end_whole(&mut self, time: i64, owner: Owner, lane: Lane) -> io::Result<()> {
        let track = self.lane(owner, lane)?;
        self.track_event(time, Kind::End, track, ("", ""), &[])
    }

    fn loss(&mut self, loss: &Loss, name: &str, time: i64) -> io::Result<()> {
        let track = self.describe(uuid(&[b"losses"]), |track| put_bytes(track, 2, b"losses"))?;
        let mut rest = Vec::new();
        if let Some(count) = loss.count {
            let mut annotation = Vec::new();
            self.annotation_name(&mut annotation, "count");
            put_number(&mut annotation, 3, count);
            put_bytes(&mut rest, 4, &annotation);
        }
        self.track_event(time, Kind::Instant, track, (name, "loss"), &rest)
    }

    fn dropped(&mut self) -> &mut Dropped {
        &mut self.dropped
    }
}
