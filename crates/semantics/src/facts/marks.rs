// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compact form of the facts of one piece of a trace, read by columns: marks of fixed size in stream
//! order, which become facts when their turn comes among all streams.
//!
//! A class whose facts need only numbers produces marks; an event of any other class is kept whole until
//! its turn. Classes without facts are skipped.

use lateralis_analysis::ThreadEdge;
use lateralis_model::{Base, ColumnBatch, Event, Packet, Place as Where, Slot, Trace, Writer};
use lateralis_units::{Nanos, Ticks};

use super::cursors::{Cursor, Lane, Numbers, One, Who};
use super::reading::{APPEARS, Class, KEPT, Reading};

/// Meaning of a mark.
#[derive(Debug, Clone, Copy)]
pub enum Says {
    /// A span begins; the value is its key, if it has one.
    Begin { span: u32, key: Option<Base> },
    /// A span ends; the value is its key, if it has one.
    End { span: u32, key: Option<Base> },
    /// A complete span; the value is its duration.
    Whole { span: u32 },
    /// A message is sent; the value is its key, if it has one.
    Send { channel: u32, key: Option<Base> },
    /// A message is received; the value is its key, if it has one.
    Receive { channel: u32, key: Option<Base> },
    /// A counter sample; the value holds the bits of a floating point number.
    Level { counter: u32 },
    /// Only maps a thread to its process.
    Writer,
    /// The first event of a batch on a CPU.
    Appears,
    /// An event that is kept whole; the value is its number.
    Kept,
    /// Consecutive edges without keys of one thread: the low 32 bits of the value are the index of the
    /// first, the high bits their count.
    Run,
}

/// Properties shared by the marks of one step of one class.
#[derive(Debug, Clone, Copy)]
pub struct Emit {
    pub says: Says,
    /// Whether the fields of the event contain the thread, and its process.
    pub tells: (bool, bool),
}

/// One mark. Traces have millions of them: 32 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    pub time: Nanos,
    pub value: u64,
    /// Index of the [`Emit`], and [`Mark::RECORDED`].
    pub emit: u32,
    /// [`Mark::NO_CPU`] if unknown.
    pub cpu: u32,
    pub pid: u32,
    pub tid: u32,
}

impl Mark {
    /// Flag in `emit`: the recorder supplied the thread.
    pub const RECORDED: u32 = 1 << 31;
    /// No CPU: the kernel supports fewer (`NR_CPUS`).
    pub const NO_CPU: u32 = u32::MAX;
}

/// Marks of a piece of a stream.
#[derive(Default)]
pub struct Chunk {
    pub marks: Vec<Mark>,
    /// The first `edge_count` of these belong to runs.
    pub(super) edges: Vec<ThreadEdge>,
    pub(super) edge_count: usize,
    kept: Vec<Kept>,
    slots: Vec<Slot>,
    packets: Vec<KeptPacket>,
    stream: u32,
    stream_class: u32,
    /// Threads whose process has been recorded lately, by the low bits of the thread id.
    told: Vec<Option<Writer>>,
    last_cpu: Option<u32>,
    /// Position of each class among those of the batch, from 1.
    places: Vec<u32>,
}

/// Threads whose process a chunk need not repeat.
const TOLD: usize = 256;

struct Kept {
    packet: u32,
    class: u32,
    ticks: Option<Ticks>,
    writer: Option<Writer>,
    first_slot: u32,
    slots: u32,
}

struct KeptPacket {
    number: Option<u64>,
    packet: Packet,
    /// Empty if no event refers to them.
    bytes: Vec<u8>,
}

/// Consecutive edges of one thread at the end of a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub emit: u32,
    pub who: Writer,
}

impl Chunk {
    /// Clears the contents and keeps the memory.
    pub fn clear(&mut self) {
        self.marks.clear();
        self.edge_count = 0;
        self.kept.clear();
        self.slots.clear();
        self.packets.clear();
        self.told.clear();
        self.last_cpu = None;
    }

    /// Adds the facts of the events of a batch.
    pub fn add(&mut self, batch: &dyn ColumnBatch, reading: &Reading) {
        (self.stream, self.stream_class) = (batch.stream().0, batch.stream_class());
        let Some(classes) = reading.classes.get(self.stream_class as usize) else {
            return;
        };
        let cpu = reading.cpu_of(batch);
        if let Some(cpu) = cpu.filter(|cpu| self.last_cpu != Some(*cpu)) {
            self.appear(batch, cpu);
        }
        if let Some(times) = batch.times_in_order() {
            if let Some(Some(in_order)) = reading.in_order.get(self.stream_class as usize) {
                self.add_in_order(batch, times, in_order, (cpu, reading.is_at_home(batch)));
            }
            return;
        }
        let (mut lanes, mut cursors) = self.cursors(batch, reading, classes);
        let mut row = 0;
        let mut writers = batch.writers().iter().peekable();
        let mut writer = None;
        let cpu_number = cpu.unwrap_or(Mark::NO_CPU);
        let (mut run, mut first) = (None, self.edge_count);
        for (at, place) in (0..).zip(batch.order().iter()) {
            while let Some((_, next)) = writers.next_if(|(from, _)| *from <= at) {
                writer = Some(*next);
            }
            let class = match place {
                Where::Columns(class) => class,
                Where::Row(class) => {
                    let is_quiet = classes.get(class as usize).is_none_or(Class::is_quiet);
                    if !is_quiet {
                        self.end(&mut run, first, cpu_number);
                        self.keep_row(batch, row, cpu_number);
                    }
                    row += 1;
                    continue;
                }
            };
            let place = self.places.get(class as usize).copied().unwrap_or(0);
            let Some(lane) = lanes.get_mut((place as usize).wrapping_sub(1)) else {
                continue;
            };
            let at = lane.next;
            lane.next += 1;
            let time = lane.times.get(at).copied().unwrap_or_default();
            let (recorded, who) = lane.who.of(at, writer);
            if let Some((kind, side, emit)) = lane.edge {
                let next = Some(Run { emit: emit | recorded, who });
                if run != next {
                    self.end(&mut run, first, cpu_number);
                    (run, first) = (next, self.edge_count);
                }
                self.push_edge(ThreadEdge { time, kind, side });
                continue;
            }
            self.end(&mut run, first, cpu_number);
            let cursor = &mut cursors[place as usize - 1];
            let event = One { at, time, recorded, who, cpu: cpu_number };
            if cursor.class.is_kept {
                self.keep_columns(batch, cursor, class, &event, writer);
            } else {
                self.mark(cursor, &event, &reading.emits);
            }
        }
        self.end(&mut run, first, cpu_number);
        for class in cursors.iter().map(|cursor| batch.class(cursor.index).class) {
            self.places[class as usize] = 0;
        }
    }

    /// Whether the process of a thread has not been recorded lately.
    pub(super) fn is_news(&mut self, who: Writer) -> bool {
        self.told.resize(TOLD, None);
        let told = &mut self.told[who.tid as usize % TOLD];
        *told != Some(who) && {
            *told = Some(who);
            true
        }
    }

    #[inline]
    fn push_edge(&mut self, edge: ThreadEdge) {
        match self.edges.get_mut(self.edge_count) {
            Some(place) => *place = edge,
            None => self.edges.push(edge),
        }
        self.edge_count += 1;
    }

    /// Ends the current run, if there is one: its edges start at `first`.
    #[inline]
    fn end(&mut self, run: &mut Option<Run>, first: usize, cpu: u32) {
        if let Some(run) = run.take() {
            self.end_run(run, first, cpu);
        }
    }

    pub(super) fn end_run(
        &mut self,
        Run { emit, who: Writer { pid, tid } }: Run,
        first: usize,
        cpu: u32,
    ) {
        let time = self.edges.get(first).map_or(Nanos::default(), |edge| edge.time);
        let value = first as u64 | ((self.edge_count - first) as u64) << 32;
        self.marks.push(Mark { time, value, emit, cpu, pid, tid });
    }

    /// A CPU appears with the first event of its batch, whatever the event means.
    fn appear(&mut self, batch: &dyn ColumnBatch, cpu: u32) {
        let class_of = |class| (0..batch.class_count()).find(|i| batch.class(*i).class == class);
        let first_in_order = batch.times_in_order().and_then(|times| times.first().copied());
        let time = match batch.order().iter().next() {
            _ if first_in_order.is_some() => first_in_order,
            Some(Where::Columns(class)) => {
                class_of(class).and_then(|index| batch.class(index).times.first().copied())
            }
            Some(Where::Row(_)) => Some(batch.row(0).time),
            None => None,
        };
        if let Some(time) = time {
            self.last_cpu = Some(cpu);
            self.marks.push(Mark { time, value: 0, emit: APPEARS, cpu, pid: 0, tid: 0 });
        }
    }

    /// Cursors of the classes of a batch that have facts: per class the data needed for every event, and
    /// the rest.
    fn cursors<'b>(
        &mut self,
        batch: &'b dyn ColumnBatch,
        reading: &Reading,
        classes: &'b [Class],
    ) -> (Vec<Lane<'b>>, Vec<Cursor<'b>>) {
        // If the first writer is known, all later ones are.
        let is_recorded = batch.writers().first().is_some_and(|(from, _)| *from == 0);
        let is_at_home = reading.is_at_home(batch);
        self.places.resize(classes.len(), 0);
        let (mut lanes, mut cursors) = (Vec::new(), Vec::new());
        for index in 0..batch.class_count() {
            let part = batch.class(index);
            let Some(class) = classes.get(part.class as usize).filter(|class| !class.is_quiet())
            else {
                continue;
            };
            let numbers = |column| Numbers::of(batch, index, column);
            let is_known = is_at_home && (class.is_known || is_recorded);
            let edge = class.edge.filter(|_| is_known);
            lanes.push(Lane {
                next: 0,
                times: part.times,
                edge,
                who: Who { tid: numbers(class.tid), pid: numbers(class.pid) },
            });
            let emits = if edge.is_some() { &[][..] } else { class.emits.as_slice() };
            let values = emits.iter().map(|&(emit, of)| (emit, numbers(of))).collect();
            cursors.push(Cursor { class, index, ticks: part.ticks, values });
            self.places[part.class as usize] = cursors.len() as u32;
        }
        (lanes, cursors)
    }

    fn mark(&mut self, cursor: &Cursor<'_>, event: &One, emits: &[Emit]) {
        let One { at, time, recorded, who, cpu } = *event;
        let Writer { pid, tid } = who;
        for &(emit, values) in &cursor.values {
            let value = match emits[emit as usize].says {
                Says::Level { .. } => values.real(at).to_bits(),
                _ => values.get(at),
            };
            self.marks.push(Mark { time, value, emit: emit | recorded, cpu, pid, tid });
        }
        if let (Some(emit), 0) = (cursor.class.writer, recorded)
            && self.is_news(who)
        {
            self.marks.push(Mark { time, value: 0, emit, cpu, pid, tid });
        }
    }

    /// Edges of a run.
    pub fn edges(&self, mark: &Mark) -> &[ThreadEdge] {
        let (first, count) = (mark.value as u32 as usize, (mark.value >> 32) as usize);
        self.edges.get(first..first + count).unwrap_or_default()
    }

    fn keep_columns(
        &mut self,
        batch: &dyn ColumnBatch,
        cursor: &Cursor<'_>,
        class: u32,
        event: &One,
        writer: Option<Writer>,
    ) {
        let first_slot = self.slots.len();
        let columns = 0..batch.class(cursor.index).columns;
        let slot = |column| batch.column(cursor.index, column).slot(event.at);
        self.slots.extend(columns.filter_map(slot));
        let ticks = cursor.ticks.get(event.at).map(|&ticks| Ticks(ticks));
        self.keep(batch, class, (ticks, event.time), writer, first_slot, event.cpu);
    }

    fn keep_row(&mut self, batch: &dyn ColumnBatch, row: usize, cpu: u32) {
        let event = batch.row(row);
        let first_slot = self.slots.len();
        self.slots.extend_from_slice(event.slots);
        let time = (event.ticks, event.time);
        self.keep(batch, event.class_index, time, event.writer, first_slot, cpu);
    }

    fn keep(
        &mut self,
        batch: &dyn ColumnBatch,
        class: u32,
        (ticks, time): (Option<Ticks>, Nanos),
        writer: Option<Writer>,
        first_slot: usize,
        cpu: u32,
    ) {
        let number = batch.packet_number();
        if self.packets.last().is_none_or(|last| last.number.is_none() || last.number != number) {
            let packet = batch.packet().clone();
            self.packets.push(KeptPacket { number, packet, bytes: Vec::new() });
        }
        let points = |slot: &Slot| matches!(slot, Slot::Span { .. } | Slot::Packed { .. });
        if let Some(last) = self.packets.last_mut()
            && last.bytes.is_empty()
            && self.slots[first_slot..].iter().any(points)
        {
            last.bytes.extend_from_slice(batch.bytes());
        }
        let value = self.kept.len() as u64;
        self.kept.push(Kept {
            packet: self.packets.len() as u32 - 1,
            class,
            ticks,
            writer,
            first_slot: first_slot as u32,
            slots: (self.slots.len() - first_slot) as u32,
        });
        self.marks.push(Mark { time, value, emit: KEPT, cpu, pid: 0, tid: 0 });
    }

    /// An event that was kept whole. It has no packet context.
    pub fn event<'c>(&'c self, mark: &Mark, trace: &'c Trace) -> Option<Event<'c>> {
        let kept = self.kept.get(mark.value as usize)?;
        let stream_class = trace.stream_classes.get(self.stream_class as usize)?;
        let packet = self.packets.get(kept.packet as usize)?;
        let first = kept.first_slot as usize;
        Some(Event {
            stream: lateralis_model::StreamIndex(self.stream),
            stream_class_index: self.stream_class,
            stream_class,
            class_index: kept.class,
            class: stream_class.event_classes.get(kept.class as usize)?,
            ticks: stream_class.clock.and(kept.ticks),
            time: mark.time,
            writer: kept.writer,
            packet: &packet.packet,
            bytes: &packet.bytes,
            packet_slots: &[],
            slots: self.slots.get(first..first + kept.slots as usize)?,
        })
    }
}
