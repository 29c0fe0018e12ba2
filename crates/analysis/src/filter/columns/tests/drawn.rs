// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random batches with events of every kind of field that a column can have. Tests of other crates use
//! this file as well.

use std::collections::BTreeMap;

use lateralis_model::{
    Base, ByteOrder, ClassBatch, Column, ColumnBatch, Event, EventClass, FieldClass, FieldKind,
    Fields, IntegerClass, Label, Lists, Names, Packet, Places, Range, Scalar, ScalarKind, Slot,
    Spans, StreamClass, StreamIndex, Writer,
};
use lateralis_units::{CpuId, Nanos};
use proptest::prelude::*;

fn label(name: &str, ranges: &[(i128, i128)]) -> Label {
    let ranges = ranges.iter().map(|&(low, high)| Range { low, high }).collect();
    Label { name: name.into(), ranges }
}

/// Labels with gaps, several ranges, and overlaps.
fn labels() -> Vec<Label> {
    vec![
        label("IDLE", &[(0, 0), (9, 9)]),
        label("RUNNING", &[(1, 3)]),
        label("READY", &[(2, 5), (-4, -1)]),
        label("RUNNING", &[(7, 7)]),
    ]
}

/// A stream with one class that has every kind of field, and one with a single field.
pub fn classes() -> StreamClass {
    let labelled = || IntegerClass { bits: 64, labels: labels(), ..Default::default() };
    let scalar = Scalar {
        bits: 8,
        align_bits: 8,
        order: ByteOrder::Little,
        reversed: false,
        kind: ScalarKind::Unsigned,
    };
    let element = FieldClass::unsigned(8, Base::Decimal);
    let list = FieldKind::Array { element: Box::new(element), length: None, packed: Some(scalar) };
    let scalar = Scalar {
        bits: 12,
        align_bits: 1,
        order: ByteOrder::Big,
        kind: ScalarKind::Signed,
        ..scalar
    };
    let element = IntegerClass { bits: 12, labels: labels(), ..Default::default() };
    let element = Box::new(FieldClass::new(FieldKind::Signed(element)));
    let numbers = FieldKind::Array { element, length: None, packed: Some(scalar) };
    let payload = FieldClass::structure([
        ("u", FieldClass::u64()),
        ("i", FieldClass::i64()),
        ("real", FieldClass::real()),
        ("flag", FieldClass::boolean()),
        ("state", FieldClass::new(FieldKind::Unsigned(labelled()))),
        ("level", FieldClass::new(FieldKind::Signed(labelled()))),
        ("bits", FieldClass::new(FieldKind::Bits { bits: 64, flags: vec![] })),
        ("at", FieldClass::structure([("text", FieldClass::text()), ("port", FieldClass::u64())])),
        ("blob", FieldClass::blob()),
        ("list", FieldClass::new(list)),
        ("numbers", FieldClass::new(numbers)),
    ]);
    let common = FieldClass::structure([
        ("cpu_id", FieldClass::u64()),
        ("vpid", FieldClass::u64()),
        ("procname", FieldClass::text()),
    ]);
    let few = FieldClass::structure([("u", FieldClass::i64())]);
    StreamClass {
        packet_context: Some(FieldClass::structure([("seq", FieldClass::u64())])),
        common_context: Some(common),
        event_classes: vec![
            EventClass { name: "io:READ".into(), payload: Some(payload), ..Default::default() },
            EventClass { name: "io:DONE".into(), payload: Some(few), ..Default::default() },
        ],
        ..StreamClass::default()
    }
}

/// Packet bytes to which text spans refer; some are not valid UTF-8.
const BYTES: &[u8] = b"hello worldhello\xff\xfe\xe2\x82\xac\xe2io:READ.redis\0zz";

/// A generated event.
#[derive(Debug, Clone)]
pub struct Row {
    pub class: u32,
    time: i64,
    slots: Vec<Slot>,
}

/// A generated batch.
#[derive(Debug)]
pub struct Drawn {
    packet: Packet,
    packet_slots: Vec<Slot>,
    pub rows: Vec<Row>,
    order: Vec<u32>,
    writers: Vec<(u32, Writer)>,
    pub stream_class: StreamClass,
    /// For each class with events: its index, times, and columns.
    parts: Vec<(u32, Vec<Nanos>, Vec<Values>)>,
}

#[derive(Debug)]
enum Values {
    Unsigned(Vec<u64>),
    Signed(Vec<i64>),
    Real(Vec<f64>),
    Spans(Vec<u64>, Vec<u32>),
    Lists(Vec<u64>, Vec<u32>),
}

impl Values {
    fn of(slots: &[Slot]) -> Self {
        macro_rules! all {
            ($kind:pat => $value:expr) => {
                slots
                    .iter()
                    .map(|slot| match slot {
                        $kind => $value,
                        other => panic!("{other:?}"),
                    })
                    .collect()
            };
        }
        match slots[0] {
            Slot::Unsigned(_) => Self::Unsigned(all!(Slot::Unsigned(value) => *value)),
            Slot::Signed(_) => Self::Signed(all!(Slot::Signed(value) => *value)),
            Slot::Real(_) => Self::Real(all!(Slot::Real(value) => *value)),
            Slot::Span { .. } => Self::Spans(
                all!(Slot::Span { start, .. } => *start),
                all!(Slot::Span { len, .. } => *len),
            ),
            _ => Self::Lists(
                all!(Slot::Packed { start_bits, .. } => *start_bits),
                all!(Slot::Packed { count, .. } => *count),
            ),
        }
    }
}

impl Drawn {
    fn new(rows: Vec<Row>, cpu: Option<u32>, writers: Vec<(u32, Writer)>, seq: u64) -> Self {
        let mut parts = Vec::new();
        for class in 0..2 {
            let of: Vec<&Row> = rows.iter().filter(|row| row.class == class).collect();
            let Some(first) = of.first() else { continue };
            let column =
                |at: usize| Values::of(&of.iter().map(|row| row.slots[at]).collect::<Vec<Slot>>());
            let columns = (0..first.slots.len()).map(column).collect();
            parts.push((class, of.iter().map(|row| Nanos(row.time)).collect(), columns));
        }
        Self {
            packet: Packet { cpu: cpu.map(CpuId), ..Packet::default() },
            packet_slots: vec![Slot::Unsigned(seq)],
            order: rows.iter().map(|row| row.class).collect(),
            rows,
            writers,
            stream_class: classes(),
            parts,
        }
    }

    /// A single event.
    pub fn event(&self, at: usize) -> Event<'_> {
        let row = &self.rows[at];
        let writers = self.writers.iter().take_while(|(from, _)| *from as usize <= at);
        Event {
            stream: StreamIndex(0),
            stream_class_index: 0,
            stream_class: &self.stream_class,
            class_index: row.class,
            class: &self.stream_class.event_classes[row.class as usize],
            ticks: None,
            time: Nanos(row.time),
            writer: writers.last().map(|(_, writer)| *writer),
            packet: &self.packet,
            bytes: BYTES,
            packet_slots: &self.packet_slots,
            slots: &row.slots,
        }
    }
}

impl ColumnBatch for Drawn {
    fn stream(&self) -> StreamIndex {
        StreamIndex(0)
    }

    fn stream_class(&self) -> u32 {
        0
    }

    fn packet(&self) -> &Packet {
        &self.packet
    }

    fn packet_number(&self) -> Option<u64> {
        None
    }

    fn packet_context(&self) -> Option<Fields<'_>> {
        let class = self.stream_class.packet_context.as_ref()?;
        Some(Fields::new(class, &self.packet_slots, BYTES))
    }

    fn bytes(&self) -> &[u8] {
        BYTES
    }

    fn counts(&self, see: &mut dyn FnMut(u32, u64)) {
        self.parts.iter().for_each(|(class, times, _)| see(*class, times.len() as u64));
    }

    fn order(&self) -> Places<'_> {
        Places::new(&self.order)
    }

    fn writers(&self) -> &[(u32, Writer)] {
        &self.writers
    }

    fn class_count(&self) -> usize {
        self.parts.len()
    }

    fn class(&self, index: usize) -> ClassBatch<'_> {
        let (class, times, columns) = &self.parts[index];
        ClassBatch { class: *class, ticks: &[], times, columns: columns.len() }
    }

    fn column(&self, class: usize, column: usize) -> Column<'_> {
        match &self.parts[class].2[column] {
            Values::Unsigned(values) => Column::Unsigned(values),
            Values::Signed(values) => Column::Signed(values),
            Values::Real(values) => Column::Real(values),
            Values::Spans(starts, lengths) => Column::Spans(Spans::new(starts, lengths, BYTES)),
            Values::Lists(starts, counts) => Column::Lists(Lists::new(starts, counts)),
        }
    }

    fn row_count(&self) -> usize {
        0
    }

    fn row(&self, index: usize) -> Event<'_> {
        panic!("row {index} of 0")
    }
}

fn span() -> impl Strategy<Value = Slot> {
    let length = BYTES.len() as u64;
    let inside = (0..length, 0..20_u32).prop_map(|(start, len)| Slot::Span { len, start });
    let some = prop::sample::select(vec![(0, 5), (0, 11), (11, 5), (11, 7), (18, 4), (22, 7)]);
    let some = some.prop_map(|(start, len)| Slot::Span { len, start });
    // Spans outside of the packet, as of a faulty decoder.
    let wrong =
        (any::<u64>(), any::<u32>()).prop_map(|(start, len)| Slot::Span { len, start: start >> 1 });
    prop_oneof![4 => some, 4 => inside, 1 => wrong]
}

fn whole() -> impl Strategy<Value = u64> {
    let near = [0, 1, 2, 4, 5, 7, 9, 4096, (1 << 53) + 1, 1 << 63, u64::MAX, u64::MAX - 2];
    prop_oneof![3 => prop::sample::select(near.to_vec()), 1 => any::<u64>(), 2 => 0..12_u64]
}

fn real() -> impl Strategy<Value = f64> {
    let some = vec![0.0, -0.0, 0.5, 5.0, 4096.0, f64::NAN, f64::INFINITY, 9.007_199_254_740_992e15];
    prop_oneof![3 => prop::sample::select(some), 1 => any::<f64>()]
}

fn row() -> impl Strategy<Value = Row> {
    let u = |value| Slot::Unsigned(value);
    let common = (0..4_u64, 5..9_u64, span())
        .prop_map(move |(cpu, pid, command)| vec![u(cpu), u(pid), command]);
    let numbers = (whole(), whole(), real(), 0..3_u64, 0..12_u64, -6..12_i64, whole());
    let texts = (span(), whole(), span(), (0..BYTES.len() as u64, 0..4_u32));
    (common, 0..3_u32, any::<i16>(), numbers, texts).prop_map(
        move |(mut slots, class, time, n, t)| {
            let class = u32::from(class == 2);
            let list = Slot::Packed { count: t.3.1, start_bits: t.3.0 * 8 };
            let numbers = Slot::Packed { count: t.3.1, start_bits: t.3.0 * 8 + t.1 % 8 };
            match class {
                0 => slots.extend([
                    u(n.0),
                    Slot::Signed(n.1 as i64),
                    Slot::Real(n.2),
                    u(n.3),
                    u(n.4),
                    Slot::Signed(n.5),
                    u(n.6),
                    t.0,
                    u(t.1),
                    t.2,
                    list,
                    numbers,
                ]),
                _ => slots.push(Slot::Signed(n.1 as i64)),
            }
            Row { class, time: time.into(), slots }
        },
    )
}

/// Generates a batch.
pub fn drawn() -> impl Strategy<Value = Drawn> {
    let writers = prop::collection::btree_map(0..40_u32, (6..9_u32, 1..4_u32), 0..4);
    let covers = any::<bool>();
    let some = prop::collection::vec(row(), 0..40);
    let many = prop::collection::vec(row(), 1100..1200);
    let rows = prop_oneof![3 => some, 1 => many];
    (rows, prop::option::of(0..4_u32), writers, covers, 0..3_u64).prop_map(
        |(rows, cpu, writers, covers, seq)| {
            let mut writers: BTreeMap<u32, (u32, u32)> = writers;
            if covers && !writers.is_empty() {
                writers.insert(0, (7, 1));
            }
            let writer = |(at, (pid, tid))| (at, Writer { pid, tid });
            Drawn::new(rows, cpu, writers.into_iter().map(writer).collect(), seq)
        },
    )
}

/// Names of some of the processes and threads.
pub fn names() -> Names {
    Names {
        processes: BTreeMap::from([(6, "hello".into()), (7, "redis".into())]),
        threads: BTreeMap::from([(1, "hello world".into())]),
    }
}
