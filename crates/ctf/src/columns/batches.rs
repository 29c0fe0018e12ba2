// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Walks packets and makes batches.

use std::ops::Range;

use lateralis_model::{Damage, StreamIndex};

use super::gather::Marks;
use super::wanted::{Want, Wanted};
use super::{BATCH_EVENTS, Batch, IS_ROW, Part, Row};
use crate::cursor::Cursor;
use crate::plan::{Straight, StreamPlan};
use crate::reader::Reader;

/// Values that the columns of a batch may hold, about: 8 MiB. Events of classes
/// with very many fields come in smaller batches.
const BATCH_VALUES: usize = 1 << 20;

/// Makes batches of streams, one packet after the other, in the order of the
/// streams.
pub struct Batches<'r, 'w> {
    reader: &'r Reader,
    wanted: &'w Wanted,
    /// What is still to come.
    units: std::vec::IntoIter<Unit>,
    cursor: Option<Cursor<'r>>,
    /// Of the cursor's stream class.
    ways: Ways,
    batch: Batch<'r>,
    damage: Vec<Damage>,
}

/// Packets of one stream that can be read without those before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub stream: StreamIndex,
    pub packets: Range<usize>,
}

/// How to walk the events of a stream class.
#[derive(Default)]
struct Ways {
    stream_class: Option<u32>,
    classes: Vec<Way>,
    /// Events of a batch at most.
    limit: usize,
    /// Whether anything but numbers of events is wanted.
    keeps: bool,
}

/// How to walk the events of a class.
#[derive(Clone, Copy)]
struct Way {
    mask: u32,
    bytes: u32,
    kind: Kind,
    keep: bool,
    names_writer: bool,
    /// Marks that an event leaves.
    marks: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A run.
    Fixed,
    /// Steps.
    Steps,
    /// Only as rows.
    Rows,
}

impl Ways {
    fn of(plan: &StreamPlan, stream_class: u32, wanted: &Wanted) -> Self {
        let wants = &wanted.classes[stream_class as usize];
        let way = |(event, want): (&Option<crate::plan::EventPlan>, &Want)| {
            let rows = Way {
                mask: 0,
                bytes: 0,
                kind: Kind::Rows,
                keep: *want != Want::Count,
                names_writer: event.as_ref().is_some_and(|event| event.names_writer),
                marks: 0,
            };
            match event.as_ref().and_then(|event| event.straight.as_ref()) {
                None => rows,
                Some(Straight { fixed: Some(fixed), .. }) => Way {
                    kind: Kind::Fixed,
                    mask: fixed.mask,
                    bytes: fixed.bytes,
                    marks: 1,
                    ..rows
                },
                Some(straight) => Way { kind: Kind::Steps, marks: straight.marks, ..rows },
            }
        };
        let classes: Vec<Way> = plan.events.iter().zip(wants).map(way).collect();
        let straight = plan.events.iter().flatten().filter_map(|event| event.straight.as_ref());
        let widest = straight.map(|straight| straight.leaves.len()).max().unwrap_or(0);
        Self {
            stream_class: Some(stream_class),
            keeps: classes.iter().any(|way| way.keep),
            classes,
            limit: (BATCH_VALUES / widest.max(1)).clamp(1, BATCH_EVENTS),
        }
    }
}

impl<'r, 'w> Batches<'r, 'w> {
    pub(crate) fn new(reader: &'r Reader, wanted: &'w Wanted) -> Self {
        let streams = reader.streams().iter().enumerate();
        let unit = |(index, stream): (usize, &crate::Stream)| Unit {
            stream: StreamIndex(index as u32),
            packets: 0..stream.packets.len(),
        };
        Self::of_units(reader, wanted, streams.map(unit).collect())
    }

    pub(super) fn of_units(reader: &'r Reader, wanted: &'w Wanted, units: Vec<Unit>) -> Self {
        Self {
            reader,
            wanted,
            units: units.into_iter(),
            cursor: None,
            ways: Ways::default(),
            batch: Batch::new(reader),
            damage: Vec::new(),
        }
    }

    /// Reads these packets next, once what is at hand is read.
    pub(super) fn then(&mut self, unit: Unit) {
        self.units = vec![unit].into_iter();
    }

    /// The next batch; `None` behind the last. Batches without events are left
    /// out.
    ///
    /// Cost: proportional to the events of the batch and the wanted fields of
    /// them; no allocation once vectors have grown to the largest batch.
    pub fn next_batch(&mut self) -> Option<&Batch<'r>> {
        loop {
            let Some(cursor) = &mut self.cursor else {
                let unit = self.units.next()?;
                let class = self.reader.streams()[unit.stream.0 as usize].class;
                if self.ways.stream_class != Some(class) {
                    let plan = &self.reader.plan().streams[class as usize];
                    self.ways = Ways::of(plan, class, self.wanted);
                }
                self.cursor = Some(Cursor::of_packets(self.reader, unit.stream, unit.packets));
                continue;
            };
            if cursor.position >= cursor.end && !cursor.open_packet() {
                self.damage.append(&mut cursor.take_damage());
                self.cursor = None;
                continue;
            }
            self.batch.begin(cursor, self.ways.classes.len());
            if self.ways.keeps {
                self.batch.walk::<true>(cursor, &self.ways);
            } else {
                self.batch.walk::<false>(cursor, &self.ways);
            }
            if !self.batch.is_empty() {
                let class = self.batch.stream_class as usize;
                self.batch.finish(cursor, &self.ways, &self.wanted.classes[class]);
                return Some(&self.batch);
            }
        }
    }

    /// Damage inside the packets read so far, of streams that have ended.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    pub(super) fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }
}

impl<'r> Batch<'r> {
    fn begin(&mut self, cursor: &Cursor<'r>, classes: usize) {
        self.stream = cursor.index;
        self.stream_class = self.reader.streams()[cursor.index.0 as usize].class;
        self.packet = cursor.packet;
        self.bytes = cursor.bytes;
        self.packet_slots.clear();
        self.packet_slots.extend_from_slice(&cursor.packet_slots);
        for class in self.seen.drain(..) {
            self.counts[class as usize] = 0;
        }
        self.counts.resize(classes, 0);
        self.order.clear();
        self.ticks.clear();
        self.marks.clear();
        self.rows.clear();
        self.row_slots.clear();
        self.writers.clear();
        self.writers.extend(cursor.writer.map(|writer| (0, writer)));
        self.sorted.parts.clear();
        self.gathered.clear();
    }

    #[inline(always)]
    fn count(&mut self, class: u32) {
        let count = &mut self.counts[class as usize];
        if *count == 0 {
            self.seen.push(class);
        }
        *count += 1;
    }

    /// Reads events up to the end of the packet or until the batch is full.
    fn walk<const KEEP: bool>(&mut self, cursor: &mut Cursor<'r>, ways: &Ways) {
        loop {
            match &cursor.plan.header {
                Some(header) if header.simple => self.walk_fused::<KEEP, true>(cursor, ways),
                Some(_) => self.walk_fused::<KEEP, false>(cursor, ways),
                None => {}
            }
            let full = self.order.len() >= ways.limit || self.row_slots.len() >= BATCH_VALUES / 4;
            if cursor.position >= cursor.end || full {
                return;
            }
            // Not as the steps expect: by bits, which also tells what is wrong.
            match cursor.decode() {
                Ok(()) => self.row(cursor, ways),
                Err(reason) => cursor.give_up(reason),
            }
        }
    }

    /// Walks events whose headers and bodies are fused, up to the first that is
    /// not.
    fn walk_fused<const KEEP: bool, const SIMPLE: bool>(
        &mut self,
        cursor: &mut Cursor<'r>,
        ways: &Ways,
    ) {
        let plan = cursor.plan;
        let Some(header) = &plan.header else { return };
        let (bytes, end) = (cursor.bytes, cursor.end_bytes);
        let content = cursor.end.div_ceil(8) as usize;
        let only = plan.only_id().unwrap_or(0);
        let begin = cursor.position.div_ceil(8) as usize;
        let (mut at, mut clock) = (begin, cursor.machine.clock);
        while at < content && (!KEEP || self.order.len() < ways.limit) {
            let mut now = clock;
            let Some(read) = header.read::<SIMPLE>(bytes, at, end, &mut now) else { break };
            let Some(class) = plan.class_index(read.id.unwrap_or(only)) else { break };
            let way = ways.classes[class as usize];
            let keep = KEEP && way.keep;
            let after = match way.kind {
                Kind::Fixed => {
                    let start = (read.after + way.mask as usize) & !(way.mask as usize);
                    let after = start + way.bytes as usize;
                    if after > end || after <= at {
                        break;
                    }
                    if keep {
                        self.marks.push(start as u32);
                    }
                    after
                }
                Kind::Steps => {
                    let event = plan.events[class as usize].as_ref();
                    let straight = event.and_then(|event| event.straight.as_ref());
                    let Some(straight) = straight else { break };
                    let marks = self.marks.len();
                    let registers = &mut cursor.machine.registers;
                    let walked = straight.walk(bytes, read.after, end, registers, &mut self.marks);
                    if !keep || walked.is_none() {
                        self.marks.truncate(marks);
                    }
                    match walked {
                        Some(after) if after > at => after,
                        _ => {
                            self.marks.truncate(marks);
                            break;
                        }
                    }
                }
                Kind::Rows => break,
            };
            clock = now;
            at = after;
            self.count(class);
            if way.names_writer {
                self.named_writer(cursor, class, read.after);
            }
            if keep {
                self.order.push(class);
                self.ticks.push(clock);
            }
        }
        if at > begin {
            cursor.position = at as u64 * 8;
            cursor.machine.clock = clock;
        }
    }

    /// Takes the writer from the event whose body begins at byte `at`.
    #[cold]
    fn named_writer(&mut self, cursor: &mut Cursor<'r>, class: u32, at: usize) {
        let event = cursor.plan.events[class as usize].as_ref();
        if let Some(straight) = event.and_then(|event| event.straight.as_ref()) {
            let machine = &mut cursor.machine;
            machine.slots.clear();
            let (registers, slots) = (&mut machine.registers, &mut machine.slots);
            if straight.row(cursor.bytes, at, cursor.end_bytes, registers, slots).is_some() {
                cursor.class_index = class;
                cursor.writer = cursor.named_writer();
                self.note_writer(cursor);
            }
        }
    }

    fn note_writer(&mut self, cursor: &Cursor<'r>) {
        if let Some(writer) = cursor.writer {
            self.writers.push((self.order.len() as u32, writer));
        }
    }

    /// Takes the cursor's event as a row.
    fn row(&mut self, cursor: &Cursor<'r>, ways: &Ways) {
        let event = cursor.event();
        self.count(event.class_index);
        let way = &ways.classes[event.class_index as usize];
        if way.names_writer {
            self.note_writer(cursor);
        }
        if way.keep {
            let first_slot = self.row_slots.len() as u32;
            self.row_slots.extend_from_slice(event.slots);
            self.rows.push(Row {
                class: event.class_index,
                ticks: event.ticks,
                time: event.time,
                writer: event.writer,
                first_slot,
                slots: event.slots.len() as u32,
            });
            self.order.push(event.class_index | IS_ROW);
            self.ticks.push(0);
        }
    }

    /// Sorts by class and reads the wanted columns.
    fn finish(&mut self, cursor: &Cursor<'r>, ways: &Ways, wants: &[Want]) {
        self.sort(cursor.plan, ways);
        let sorted = &self.sorted;
        self.gathered.times(&sorted.ticks, cursor.clock);
        for part in &self.sorted.parts {
            let event = cursor.plan.events[part.class as usize].as_ref();
            let Some(straight) = event.and_then(|event| event.straight.as_ref()) else {
                continue;
            };
            let stride = straight.marks as usize;
            let first = part.first_mark as usize;
            let marks = &sorted.marks[first..first + stride * part.count as usize];
            let marks = Marks { marks, stride, bytes: self.bytes };
            let want = &wants[part.class as usize];
            for (index, leaf) in straight.leaves.iter().enumerate() {
                let wanted = match want {
                    Want::Count | Want::Times => false,
                    Want::Columns(columns) => columns.get(index).copied().unwrap_or(false),
                    Want::All => true,
                };
                match wanted {
                    true => self.gathered.leaf(&leaf.what, leaf.mark as usize, marks),
                    false => self.gathered.skip(),
                }
            }
        }
    }

    /// Brings ticks and marks into the order of classes; events of a class stay
    /// in theirs.
    fn sort(&mut self, plan: &StreamPlan, ways: &Ways) {
        let sorted = &mut self.sorted;
        for &class in &self.seen {
            let way = &ways.classes[class as usize];
            if way.keep && way.kind != Kind::Rows {
                let part =
                    Part { class, count: self.counts[class as usize] as u32, ..Part::default() };
                sorted.parts.push(part);
            }
        }
        sorted.parts.sort_unstable_by_key(|part| part.class);
        for row in &self.rows {
            let part = sorted.parts.iter_mut().find(|part| part.class == row.class);
            if let Some(part) = part {
                part.count -= 1;
            }
        }
        sorted.parts.retain(|part| part.count > 0);
        sorted.next.resize(ways.classes.len(), (0, 0));
        let (mut first, mut first_mark, mut first_column) = (0, 0, 0);
        for part in &mut sorted.parts {
            let event = plan.events[part.class as usize].as_ref();
            let Some(straight) = event.and_then(|event| event.straight.as_ref()) else {
                continue;
            };
            *part = Part {
                first,
                first_mark,
                first_column,
                columns: straight.leaves.len() as u32,
                ..*part
            };
            sorted.next[part.class as usize] = (first, first_mark);
            first += part.count;
            first_mark += part.count * straight.marks;
            first_column += part.columns;
        }
        if let ([part], true) = (sorted.parts.as_slice(), self.rows.is_empty()) {
            debug_assert_eq!(part.count as usize, self.ticks.len());
            std::mem::swap(&mut sorted.ticks, &mut self.ticks);
            std::mem::swap(&mut sorted.marks, &mut self.marks);
            return;
        }
        sorted.ticks.resize(first as usize, 0);
        sorted.marks.resize(first_mark as usize, 0);
        let mut marks = self.marks.as_slice();
        for (&class, &ticks) in self.order.iter().zip(&self.ticks) {
            if class & IS_ROW != 0 {
                continue;
            }
            let next = &mut sorted.next[class as usize];
            sorted.ticks[next.0 as usize] = ticks;
            next.0 += 1;
            let stride = ways.classes[class as usize].marks as usize;
            if stride == 1 {
                sorted.marks[next.1 as usize] = marks[0];
                marks = &marks[1..];
            } else {
                let (these, rest) = marks.split_at(stride);
                sorted.marks[next.1 as usize..][..stride].copy_from_slice(these);
                marks = rest;
            }
            next.1 += stride as u32;
        }
    }
}
