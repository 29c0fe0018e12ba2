// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Walks packets and makes batches.

use std::ops::Range;

use lateralis_model::{Damage, StreamIndex};

use super::gather::Marks;
use super::wanted::{Want, Wanted};
use super::{BATCH_EVENTS, Batch, IS_ROW, NO_PART, Part, Row};
use crate::cursor::Cursor;
use crate::plan::{EventPlan, Header, Straight, StreamPlan};
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
    /// The same by id, as far as ids are small. Where none is told, it is 0.
    ids: Vec<Way>,
    /// Events of a batch at most.
    limit: usize,
    /// Whether anything but numbers of events is wanted.
    keeps: bool,
}

/// How to walk the events of a class.
#[derive(Debug, Clone, Copy)]
struct Way {
    class: u32,
    /// Alignment in bytes of a run, less one.
    mask: u32,
    bytes: u32,
    /// Whether an event is a run and wanted, and nothing else.
    is_run: bool,
    keep: bool,
    names_writer: bool,
}

impl Way {
    /// No such class: what it is will be said by who reads it by bits.
    const NONE: Self = Self {
        class: u32::MAX,
        mask: 0,
        bytes: 0,
        is_run: false,
        keep: false,
        names_writer: false,
    };

    /// Where a run behind `at` begins and ends.
    #[inline(always)]
    fn run(&self, at: usize) -> (usize, usize) {
        let start = (at + self.mask as usize) & !(self.mask as usize);
        (start, start + self.bytes as usize)
    }
}

impl Ways {
    fn of(plan: &StreamPlan, stream_class: u32, wanted: &Wanted) -> Self {
        let wants = &wanted.classes[stream_class as usize];
        let keeps = wants.iter().any(|want| *want != Want::Count);
        // Events of no bytes would be as many as one likes.
        let has_bytes = plan.header.as_ref().is_some_and(Header::takes_bytes);
        let way = |(class, (event, want)): (usize, (&Option<EventPlan>, &Want))| {
            let any = Way {
                class: class as u32,
                keep: *want != Want::Count,
                names_writer: event.as_ref().is_some_and(|event| event.names_writer),
                ..Way::NONE
            };
            match event.as_ref().and_then(|event| event.straight.as_ref()) {
                Some(Straight { fixed: Some(fixed), .. }) => Way {
                    mask: fixed.mask,
                    bytes: fixed.bytes,
                    is_run: !any.names_writer
                        && any.keep == keeps
                        && (has_bytes || fixed.bytes > 0),
                    ..any
                },
                _ => any,
            }
        };
        let classes: Vec<Way> = plan.events.iter().zip(wants).enumerate().map(way).collect();
        let of_entry = |&index: &u32| classes.get(index as usize).copied().unwrap_or(Way::NONE);
        let only = plan.only_id().and_then(|id| plan.class_index(id));
        let has_id = plan.header.as_ref().is_some_and(|header| header.has_id);
        let straight = plan.events.iter().flatten().filter_map(|event| event.straight.as_ref());
        let widest = straight.map(|straight| straight.leaves.len()).max().unwrap_or(0);
        Self {
            stream_class: Some(stream_class),
            keeps,
            ids: match (has_id, only) {
                (false, Some(index)) => vec![classes[index as usize]],
                _ => plan.small_ids().iter().map(of_entry).collect(),
            },
            classes,
            limit: (BATCH_VALUES / widest.max(1)).clamp(1, BATCH_EVENTS),
        }
    }

    /// The way of events with this id.
    #[inline(always)]
    fn by_id(&self, plan: &StreamPlan, id: u64) -> Option<&Way> {
        match self.ids.get(id as usize) {
            Some(way) => Some(way),
            None => self.classes.get(plan.class_index(id)? as usize),
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
                self.batch.finish(cursor, &self.wanted.classes[class]);
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
        self.order.clear();
        self.buckets.begin(&self.seen, classes);
        self.seen.clear();
        self.rows.clear();
        self.row_slots.clear();
        self.writers.clear();
        self.writers.extend(cursor.writer.map(|writer| (0, writer)));
        self.parts.clear();
        self.gathered.clear();
    }

    fn count(&mut self, class: u32) {
        let bucket = &mut self.buckets.classes[class as usize];
        if bucket.count() == 0 {
            self.seen.push(class);
        }
        bucket.others += 1;
    }

    /// Reads events up to the end of the packet or until the batch is full.
    fn walk<const KEEP: bool>(&mut self, cursor: &mut Cursor<'r>, ways: &Ways) {
        loop {
            self.walk_fused::<KEEP>(cursor, ways);
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
    fn walk_fused<const KEEP: bool>(&mut self, cursor: &mut Cursor<'r>, ways: &Ways) {
        let plan = cursor.plan;
        let Some(header) = &plan.header else { return };
        let (bytes, end) = (cursor.bytes, cursor.end_bytes);
        let content = cursor.end.div_ceil(8) as usize;
        let begin = cursor.position.div_ceil(8) as usize;
        let (mut at, mut clock) = (begin, cursor.machine.clock);
        let mut left = ways.limit.saturating_sub(self.order.len());
        while at < content && (!KEEP || left > 0) {
            let usual = header.usual.as_ref().and_then(|usual| usual.read(bytes, at, clock));
            let (id, now, behind) = match usual {
                Some(read) => read,
                None => match header.read_unusual(bytes, at, end, clock) {
                    Some(read) => read,
                    None => break,
                },
            };
            // Time that runs backwards is told by who reads rows.
            let Some(way) = ways.by_id(plan, id).filter(|_| now >= clock) else { break };
            if way.is_run {
                let (start, after) = way.run(behind);
                let Some(bucket) = self.buckets.classes.get_mut(way.class as usize) else { break };
                if after > end {
                    break;
                }
                (clock, at) = (now, after);
                if KEEP {
                    if bucket.push(clock, start as u32) {
                        self.seen.push(way.class);
                    }
                    self.order.push(way.class);
                    left -= 1;
                } else {
                    if bucket.others == 0 {
                        self.seen.push(way.class);
                    }
                    bucket.others += 1;
                }
            } else {
                let Some(after) = self.walk_steps::<KEEP>(cursor, way, at, behind, now) else {
                    break;
                };
                left -= usize::from(way.keep);
                (clock, at) = (now, after);
            }
        }
        if at > begin {
            cursor.position = at as u64 * 8;
            cursor.machine.clock = clock;
        }
    }

    /// Walks one event at `begin` that is no run, or means more. Returns where it
    /// ends; `None` if it has no steps or they lead nowhere.
    #[inline(never)]
    fn walk_steps<const KEEP: bool>(
        &mut self,
        cursor: &mut Cursor<'r>,
        way: &Way,
        begin: usize,
        at: usize,
        ticks: u64,
    ) -> Option<usize> {
        let straight = cursor.plan.events.get(way.class as usize)?.as_ref()?.straight.as_ref()?;
        let (bytes, end) = (cursor.bytes, cursor.end_bytes);
        let registers = cursor.machine.registers.as_mut_slice();
        let bucket = self.buckets.classes.get_mut(way.class as usize)?;
        if KEEP && way.keep {
            let mut start = 0;
            let after = match straight.fixed {
                Some(fixed) => {
                    let (begin, after) = fixed.walk(at, end)?;
                    start = begin;
                    after
                }
                None => straight.walk(bytes, at, end, registers, &mut bucket.marks)?,
            };
            if after <= begin {
                // No event: what its marks would be goes.
                bucket.marks.truncate(bucket.len * straight.marks as usize);
                return None;
            }
            if bucket.push(ticks, start as u32) {
                self.seen.push(way.class);
            }
            if way.names_writer {
                self.named_writer(cursor, way.class, at);
            }
            self.order.push(way.class);
            return Some(after);
        }
        let after = straight.skip(bytes, at, end, registers).filter(|&after| after > begin)?;
        self.count(way.class);
        if way.names_writer {
            self.named_writer(cursor, way.class, at);
        }
        Some(after)
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
        }
    }

    /// Reads the wanted columns, class by class.
    fn finish(&mut self, cursor: &Cursor<'r>, wants: &[Want]) {
        let kept = |class: &&u32| self.buckets.classes[**class as usize].len > 0;
        self.parts.extend(self.seen.iter().filter(kept).map(|&class| Part { class, ..NO_PART }));
        self.parts.sort_unstable_by_key(|part| part.class);
        for part in &mut self.parts {
            let bucket = &self.buckets.classes[part.class as usize];
            let event = cursor.plan.events[part.class as usize].as_ref();
            let Some(straight) = event.and_then(|event| event.straight.as_ref()) else {
                continue;
            };
            part.first_time = self.gathered.times.len() as u32;
            part.first_column = self.gathered.columns() as u32;
            part.columns = straight.leaves.len() as u32;
            self.gathered.times(&bucket.ticks[..bucket.len], cursor.clock);
            let marks = match straight.fixed {
                Some(_) => &bucket.starts[..bucket.len],
                None => bucket.marks.as_slice(),
            };
            let marks = Marks { marks, stride: straight.marks as usize, bytes: self.bytes };
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
}
