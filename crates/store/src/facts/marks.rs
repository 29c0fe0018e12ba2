// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the events of one piece of a trace say, read by columns: marks of one size, in the
//! order of the stream, that become facts when their turn comes among all streams.
//!
//! A class whose facts need nothing but numbers gives marks; an event of any other class is
//! kept whole until its turn. What says nothing is not looked at.

use lateralis_analysis::{Side, ThreadEdge};
use lateralis_model::{
    Base, Column, ColumnBatch, Event, Packet, Place as Where, Slot, Trace, Writer,
};
use lateralis_units::{Nanos, Ticks};

use super::reading::{APPEARS, Class, KEPT, Reading};

/// What a mark says.
#[derive(Debug, Clone, Copy)]
pub enum Says {
    /// A span begins; the mark's value is its key, if it has one.
    Begin { span: u32, key: Option<Base> },
    /// It ends.
    End { span: u32, key: Option<Base> },
    /// A whole span; the value is how long it takes.
    Whole { span: u32 },
    /// A message leaves; the value is its key, if it has one.
    Send { channel: u32, key: Option<Base> },
    /// It arrives.
    Receive { channel: u32, key: Option<Base> },
    /// A level; the value is the bits of a floating point number.
    Level { counter: u32 },
    /// Only which process the thread is of.
    Writer,
    /// The first event of a batch, on a processor.
    Appears,
    /// An event that is kept whole; the value is its number.
    Kept,
    /// Edges without keys that follow each other on one thread: the value is the index of the
    /// first, and above 32 bits how many they are.
    Run,
}

/// What marks of one step of one class have in common.
#[derive(Debug, Clone, Copy)]
pub struct Emit {
    pub says: Says,
    /// Whether the fields of the event tell the thread, and its process.
    pub tells: (bool, bool),
}

/// One mark. Written by the million: 32 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    pub time: Nanos,
    pub value: u64,
    /// Index of the [`Emit`], and [`Mark::RECORDED`].
    pub emit: u32,
    /// [`Mark::NO_CPU`] where nobody knows.
    pub cpu: u32,
    pub pid: u32,
    pub tid: u32,
}

impl Mark {
    /// In `emit`: the recorder tells the thread.
    pub const RECORDED: u32 = 1 << 31;
    /// No processor: the kernel has fewer (`NR_CPUS`).
    pub const NO_CPU: u32 = u32::MAX;
}

/// What a piece of a stream says.
#[derive(Default)]
pub struct Chunk {
    pub marks: Vec<Mark>,
    edges: Vec<ThreadEdge>,
    kept: Vec<Kept>,
    slots: Vec<Slot>,
    packets: Vec<KeptPacket>,
    stream: u32,
    stream_class: u32,
    /// Whose processes have been told, by the low bits of the thread.
    told: Vec<Option<Writer>>,
    last_cpu: Option<u32>,
    /// Of each class its place among those of the batch, from 1.
    places: Vec<u32>,
}

/// Threads whose process a chunk need not tell again.
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
    /// Empty where no event points into them.
    bytes: Vec<u8>,
}

/// The columns of a class in a batch, and which of its events is next.
struct Cursor<'b> {
    next: usize,
    /// What the class says, if its events become parts of runs.
    edge: Option<(u32, Side, u32)>,
    class: &'b Class,
    index: usize,
    times: &'b [Nanos],
    ticks: &'b [u64],
    values: Vec<(u32, Numbers<'b>)>,
    tid: Numbers<'b>,
    pid: Numbers<'b>,
}

#[derive(Clone, Copy)]
enum Numbers<'b> {
    None,
    Unsigned(&'b [u64]),
    Signed(&'b [i64]),
    Real(&'b [f64]),
}

impl<'b> Numbers<'b> {
    fn of(batch: &'b dyn ColumnBatch, class: usize, column: Option<usize>) -> Self {
        match column.map(|column| batch.column(class, column)) {
            Some(Column::Unsigned(values)) => Self::Unsigned(values),
            Some(Column::Signed(values)) => Self::Signed(values),
            Some(Column::Real(values)) => Self::Real(values),
            _ => Self::None,
        }
    }

    /// As an integer; 0 where there is none.
    #[inline]
    fn get(self, at: usize) -> u64 {
        match self {
            Self::Unsigned(values) => values.get(at).copied().unwrap_or(0),
            Self::Signed(values) => values.get(at).copied().unwrap_or(0) as u64,
            Self::Real(_) | Self::None => 0,
        }
    }

    fn real(self, at: usize) -> f64 {
        match self {
            Self::Unsigned(values) => values.get(at).copied().unwrap_or(0) as f64,
            Self::Signed(values) => values.get(at).copied().unwrap_or(0) as f64,
            Self::Real(values) => values.get(at).copied().unwrap_or(0.0),
            Self::None => 0.0,
        }
    }
}

impl Cursor<'_> {
    /// Whose an event is: of the recorder's thread, or as its fields tell.
    #[inline]
    fn who(&self, at: usize, recorded: Option<Writer>) -> (u32, Writer) {
        match recorded {
            Some(writer) => (Mark::RECORDED, writer),
            None => {
                let (pid, tid) = (self.pid.get(at) as u32, self.tid.get(at) as u32);
                (0, Writer { pid, tid })
            }
        }
    }
}

impl Chunk {
    /// Forgets everything but its memory.
    pub fn clear(&mut self) {
        self.marks.clear();
        self.edges.clear();
        self.kept.clear();
        self.slots.clear();
        self.packets.clear();
        self.told.clear();
        self.last_cpu = None;
    }

    /// Adds what the events of a batch say.
    pub fn add(&mut self, batch: &dyn ColumnBatch, reading: &Reading) {
        (self.stream, self.stream_class) = (batch.stream().0, batch.stream_class());
        let Some(classes) = reading.classes.get(self.stream_class as usize) else {
            return;
        };
        let cpu = reading.cpu_of(batch);
        if let Some(cpu) = cpu.filter(|cpu| self.last_cpu != Some(*cpu)) {
            self.appear(batch, cpu);
        }
        let mut cursors = self.cursors(batch, reading, classes);
        let mut row = 0;
        let mut writers = batch.writers().iter().peekable();
        let mut writer = None;
        let cpu_number = cpu.unwrap_or(Mark::NO_CPU);
        for (at, place) in (0..).zip(batch.order().iter()) {
            while let Some((_, next)) = writers.next_if(|(from, _)| *from <= at) {
                writer = Some(*next);
            }
            match place {
                Where::Columns(class) => {
                    let place = self.places.get(class as usize).copied().unwrap_or(0);
                    let Some(cursor) = cursors.get_mut((place as usize).wrapping_sub(1)) else {
                        continue;
                    };
                    let at = cursor.next;
                    cursor.next += 1;
                    if let Some(edge) = cursor.edge {
                        self.run(cursor, at, writer, cpu_number, edge);
                    } else if cursor.class.is_kept {
                        self.keep_columns(batch, cursor, class, at, writer, cpu_number);
                    } else {
                        self.mark(cursor, at, writer, cpu_number, &reading.emits);
                    }
                }
                Where::Row(class) => {
                    let is_quiet = classes.get(class as usize).is_none_or(Class::is_quiet);
                    if !is_quiet {
                        self.keep_row(batch, row, cpu_number);
                    }
                    row += 1;
                }
            }
        }
        for class in cursors.iter().map(|cursor| batch.class(cursor.index).class) {
            self.places[class as usize] = 0;
        }
    }

    /// A processor appears with the first event of its batch, whatever that says.
    fn appear(&mut self, batch: &dyn ColumnBatch, cpu: u32) {
        let class_of = |class| (0..batch.class_count()).find(|i| batch.class(*i).class == class);
        let time = match batch.order().iter().next() {
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

    /// Of the classes of a batch that say something.
    fn cursors<'b>(
        &mut self,
        batch: &'b dyn ColumnBatch,
        reading: &Reading,
        classes: &'b [Class],
    ) -> Vec<Cursor<'b>> {
        // Whoever writes after the first writer is known is known, too.
        let is_recorded = batch.writers().first().is_some_and(|(from, _)| *from == 0);
        let is_at_home = reading.is_at_home(batch);
        self.places.resize(classes.len(), 0);
        let mut cursors = Vec::new();
        for index in 0..batch.class_count() {
            let part = batch.class(index);
            let Some(class) = classes.get(part.class as usize).filter(|class| !class.is_quiet())
            else {
                continue;
            };
            let numbers = |column| Numbers::of(batch, index, column);
            let is_known = is_at_home && (class.is_known || is_recorded);
            let edge = class.edge.filter(|_| is_known);
            let emits = if edge.is_some() { &[][..] } else { class.emits.as_slice() };
            cursors.push(Cursor {
                next: 0,
                edge,
                class,
                index,
                times: part.times,
                ticks: part.ticks,
                values: emits.iter().map(|&(emit, of)| (emit, numbers(of))).collect(),
                tid: numbers(class.tid),
                pid: numbers(class.pid),
            });
            self.places[part.class as usize] = cursors.len() as u32;
        }
        cursors
    }

    #[inline]
    fn mark(
        &mut self,
        cursor: &Cursor<'_>,
        at: usize,
        writer: Option<Writer>,
        cpu: u32,
        emits: &[Emit],
    ) {
        let time = cursor.times.get(at).copied().unwrap_or_default();
        let (recorded, who) = cursor.who(at, writer);
        let Writer { pid, tid } = who;
        for &(emit, values) in &cursor.values {
            let value = match emits[emit as usize].says {
                Says::Level { .. } => values.real(at).to_bits(),
                _ => values.get(at),
            };
            self.marks.push(Mark { time, value, emit: emit | recorded, cpu, pid, tid });
        }
        if let (Some(emit), 0) = (cursor.class.writer, recorded) {
            self.told.resize(TOLD, None);
            let told = &mut self.told[tid as usize % TOLD];
            if *told != Some(who) {
                *told = Some(who);
                self.marks.push(Mark { time, value: 0, emit, cpu, pid, tid });
            }
        }
    }

    /// Adds an edge to the run before, if it is of the same thread.
    #[inline]
    fn run(
        &mut self,
        cursor: &Cursor<'_>,
        at: usize,
        writer: Option<Writer>,
        cpu: u32,
        (kind, side, emit): (u32, Side, u32),
    ) {
        let time = cursor.times.get(at).copied().unwrap_or_default();
        let (recorded, Writer { pid, tid }) = cursor.who(at, writer);
        let emit = emit | recorded;
        match self.marks.last_mut() {
            Some(last) if (last.emit, last.cpu, last.pid, last.tid) == (emit, cpu, pid, tid) => {
                last.value += 1 << 32;
            }
            _ => {
                let value = self.edges.len() as u64 | 1 << 32;
                self.marks.push(Mark { time, value, emit, cpu, pid, tid });
            }
        }
        self.edges.push(ThreadEdge { time, kind, side });
    }

    /// The edges of a run.
    pub fn edges(&self, mark: &Mark) -> &[ThreadEdge] {
        let (first, count) = (mark.value as u32 as usize, (mark.value >> 32) as usize);
        self.edges.get(first..first + count).unwrap_or_default()
    }

    fn keep_columns(
        &mut self,
        batch: &dyn ColumnBatch,
        cursor: &Cursor<'_>,
        class: u32,
        at: usize,
        writer: Option<Writer>,
        cpu: u32,
    ) {
        let first_slot = self.slots.len();
        let columns = 0..batch.class(cursor.index).columns;
        let slot = |column| batch.column(cursor.index, column).slot(at);
        self.slots.extend(columns.filter_map(slot));
        let ticks = cursor.ticks.get(at).map(|&ticks| Ticks(ticks));
        let time = cursor.times.get(at).copied().unwrap_or_default();
        self.keep(batch, class, (ticks, time), writer, first_slot, cpu);
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

    /// An event that was kept. It has no packet context.
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
