// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the events of one piece of a trace say, read by columns: marks of one size, in the
//! order of the stream, that become facts when their turn comes among all streams.
//!
//! A class whose facts need nothing but numbers gives marks; an event of any other class is
//! kept whole until its turn. What says nothing is not looked at.

use lateralis_model::{
    Base, Column, ColumnBatch, Event, FieldKind, Packet, Place as Where, Scope, Slot,
    StreamSummary, Trace, Want, Wanted, Writer, leaves,
};
use lateralis_units::{Nanos, Ticks};

use super::keys::KeyPlan;
use super::plan::{Place, Plan, Step};

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

/// How to read all classes of a trace.
pub struct Reading {
    pub emits: Vec<Emit>,
    pub wanted: Wanted,
    classes: Vec<Vec<Class>>,
    cpus: Vec<Option<u32>>,
}

const APPEARS: u32 = 0;
const KEPT: u32 = 1;

/// How to read the events of one class.
#[derive(Debug, Default)]
struct Class {
    /// Index of the emit, column of its value, whether that is to be a floating point number.
    emits: Vec<(u32, Option<usize>)>,
    tid: Option<usize>,
    pid: Option<usize>,
    is_kept: bool,
    /// Index of the emit that only tells the thread.
    writer: Option<u32>,
}

impl Class {
    fn is_quiet(&self) -> bool {
        self.emits.is_empty() && !self.is_kept && self.writer.is_none()
    }
}

impl Reading {
    /// By the plans of the classes of a trace.
    pub fn new(trace: &Trace, plans: &[Vec<Plan>], streams: &[StreamSummary]) -> Self {
        let cpus = streams.iter().map(|stream| stream.cpu.map(|cpu| cpu.0)).collect();
        let says = |says| Emit { says, tells: (false, false) };
        let mut reading = Self {
            emits: vec![says(Says::Appears), says(Says::Kept)],
            wanted: Wanted::times(trace),
            classes: Vec::new(),
            cpus,
        };
        let mut wanted = Wanted::times(trace);
        for (index, (stream_class, plans)) in (0..).zip(trace.stream_classes.iter().zip(plans)) {
            let mut classes = Vec::with_capacity(plans.len());
            for (number, (class, plan)) in (0..).zip(stream_class.event_classes.iter().zip(plans)) {
                let columns = Columns::new(stream_class, class);
                let read = reading.class(plan, &columns);
                let read = read.unwrap_or(Class { is_kept: true, ..Class::default() });
                let want = if read.is_kept { Want::All } else { read.want(columns.count) };
                wanted = wanted.with(index, number, want);
                classes.push(read);
            }
            reading.classes.push(classes);
        }
        reading.wanted = wanted;
        reading
    }

    /// The processor of a batch, where its packet or stream tells.
    pub fn cpu_of(&self, batch: &dyn ColumnBatch) -> Option<u32> {
        let of_packet = batch.packet().cpu.map(|cpu| cpu.0);
        of_packet.or_else(|| self.cpus.get(batch.stream().0 as usize).copied().flatten())
    }

    /// `None` where events of the class must be read whole.
    fn class(&mut self, plan: &Plan, columns: &Columns) -> Option<Class> {
        let place = |place: Option<Place>| match place {
            None => Some(None),
            Some(Place::Common(field)) => columns.integer(Scope::Common, field).map(Some),
            Some(Place::Own(field)) => columns.integer(Scope::Own, field).map(Some),
        };
        let mut class = Class { tid: place(plan.tid)?, pid: place(plan.pid)?, ..Class::default() };
        // A process without a thread tells nothing.
        class.pid = class.pid.filter(|_| class.tid.is_some());
        let tells = (class.tid.is_some(), class.pid.is_some());
        let key = |plan: &KeyPlan| match plan {
            KeyPlan::None => Some((None, None)),
            KeyPlan::Integer { field, base } => {
                Some((Some(*base), Some(columns.integer(Scope::Payload, *field)?)))
            }
            KeyPlan::Parts(_) => None,
        };
        for step in &plan.steps {
            let (says, value) = match step {
                Step::Begin { span, key: plan } => {
                    let (key, value) = key(plan)?;
                    (Says::Begin { span: *span, key }, value)
                }
                Step::End { span, key: plan } => {
                    let (key, value) = key(plan)?;
                    (Says::End { span: *span, key }, value)
                }
                Step::Send { channel, key: plan } => {
                    let (key, value) = key(plan)?;
                    (Says::Send { channel: *channel, key }, value)
                }
                Step::Receive { channel, key: plan } => {
                    let (key, value) = key(plan)?;
                    (Says::Receive { channel: *channel, key }, value)
                }
                Step::Whole { span, duration } => {
                    let value = columns.integer(Scope::Payload, *duration)?;
                    (Says::Whole { span: *span }, Some(value))
                }
                Step::Level { counter, field } => {
                    let value = columns.number(Scope::Payload, *field)?;
                    (Says::Level { counter: *counter }, Some(value))
                }
                Step::State { .. } | Step::Switch(_) | Step::Wake { .. } | Step::Thread { .. } => {
                    return None;
                }
            };
            class.emits.push((self.emits.len() as u32, value));
            self.emits.push(Emit { says, tells });
        }
        if class.emits.is_empty() && tells.1 {
            class.writer = Some(self.emits.len() as u32);
            self.emits.push(Emit { says: Says::Writer, tells });
        }
        Some(class)
    }
}

impl Class {
    fn want(&self, columns: usize) -> Want {
        let mut wanted = vec![false; columns];
        let values = self.emits.iter().filter_map(|(_, column)| *column);
        // Without facts the thread is told only where its process is.
        let who = [self.tid, self.pid].into_iter().flatten().filter(|_| !self.is_quiet());
        values.chain(who).for_each(|column| wanted[column] = true);
        if wanted.contains(&true) { Want::Columns(wanted) } else { Want::Times }
    }
}

/// Where the fields of a class are among its columns.
struct Columns {
    /// By scope: of each member its column, if it is one, and what that holds.
    members: [Vec<Option<(usize, Holds)>>; 3],
    count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Integers,
    Numbers,
    Other,
}

impl Columns {
    fn new(stream: &lateralis_model::StreamClass, class: &lateralis_model::EventClass) -> Self {
        let scopes = [&stream.common_context, &class.context, &class.payload];
        let mut next = 0;
        let members = scopes.map(|scope| {
            let members = scope.as_ref().map_or(&[][..], |scope| scope.members());
            let column = |member: &lateralis_model::Member| match &member.class.kind {
                FieldKind::Struct(_) => {
                    let inside = lateralis_model::EventClass {
                        payload: Some(member.class.clone()),
                        ..Default::default()
                    };
                    next += leaves(&Default::default(), &inside).len();
                    None
                }
                kind => {
                    next += 1;
                    let holds = match kind {
                        FieldKind::Unsigned(_)
                        | FieldKind::Signed(_)
                        | FieldKind::Bool
                        | FieldKind::Bits { .. } => Holds::Integers,
                        FieldKind::Real(_) => Holds::Numbers,
                        _ => Holds::Other,
                    };
                    Some((next - 1, holds))
                }
            };
            members.iter().map(column).collect()
        });
        Self { members, count: next }
    }

    fn integer(&self, scope: Scope, member: usize) -> Option<usize> {
        self.find(scope, member, &[Holds::Integers])
    }

    fn number(&self, scope: Scope, member: usize) -> Option<usize> {
        self.find(scope, member, &[Holds::Integers, Holds::Numbers])
    }

    fn find(&self, scope: Scope, member: usize, of: &[Holds]) -> Option<usize> {
        let (column, holds) = (*self.members[scope as usize].get(member)?)?;
        of.contains(&holds).then_some(column)
    }
}

/// What a piece of a stream says.
#[derive(Default)]
pub struct Chunk {
    pub marks: Vec<Mark>,
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

impl Chunk {
    /// Forgets everything but its memory.
    pub fn clear(&mut self) {
        self.marks.clear();
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
        let mut cursors = self.cursors(batch, classes);
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
                    if cursor.class.is_kept {
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
    fn cursors<'b>(&mut self, batch: &'b dyn ColumnBatch, classes: &'b [Class]) -> Vec<Cursor<'b>> {
        self.places.resize(classes.len(), 0);
        let mut cursors = Vec::new();
        for index in 0..batch.class_count() {
            let part = batch.class(index);
            let Some(class) = classes.get(part.class as usize).filter(|class| !class.is_quiet())
            else {
                continue;
            };
            let numbers = |column| Numbers::of(batch, index, column);
            cursors.push(Cursor {
                next: 0,
                class,
                index,
                times: part.times,
                ticks: part.ticks,
                values: class.emits.iter().map(|&(emit, of)| (emit, numbers(of))).collect(),
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
        let (recorded, who) = match writer {
            Some(writer) => (Mark::RECORDED, writer),
            None => {
                let (pid, tid) = (cursor.pid.get(at) as u32, cursor.tid.get(at) as u32);
                (0, Writer { pid, tid })
            }
        };
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
