// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every way to read a CTF trace gives the same events: rows of each stream, columns
//! on one thread and on several, and the merge by time.

use lateralis_ctf::{Batch, Reader};
use lateralis_model::{
    Damage, EventClass, Look, Place, Slot, Source, StreamClass, StreamIndex, Wanted, leaves,
};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// What is compared of an event: stream, class, time, slots.
type Seen = (u32, u32, i64, Vec<Slot>);

/// Slots of all events together, at most; then comparing stops being useful.
const SLOTS_MAX: usize = 1 << 20;

/// Compares all ways; returns how many events there were, or none if there were too
/// many to keep.
pub fn compare(reader: &Reader) -> Option<usize> {
    let (mut rows, mut damage, mut slots) = (Vec::new(), Vec::new(), 0);
    for stream in 0..reader.streams().len() as u32 {
        let mut cursor = reader.cursor(StreamIndex(stream));
        while cursor.advance() {
            let event = cursor.event();
            assert_eq!(event.stream.0, stream);
            slots += 1 + event.slots.len();
            if slots > SLOTS_MAX {
                return None;
            }
            let values = event.slots.iter().copied().map(by_bits).collect();
            rows.push((stream, event.class_index, event.time.0, values));
        }
        damage.extend_from_slice(cursor.damage());
    }
    let wanted = Wanted::everything(reader.trace());
    let mut batches = reader.batches(&wanted);
    let mut columns = Vec::new();
    while let Some(batch) = batches.next_batch() {
        put_together(batch, &mut columns);
        assert!(columns.len() <= rows.len(), "more events by columns than {} rows", rows.len());
    }
    same("columns", &rows, &columns);
    assert_eq!(batches.damage(), damage, "damage of columns");
    let mut parallel = Vec::new();
    let threads = NonZeroUsize::new(2).expect("two");
    let damage_again = reader.parallel(&wanted, threads).fold(
        |events: &mut Vec<Seen>, batch| put_together(batch, events),
        |_, mut events| parallel.append(&mut events),
    );
    same("several threads", &rows, &parallel);
    assert_eq!(damage_again, damage, "damage of several threads");
    merged(reader, &rows, &damage);
    ends(reader, &rows, &damage);
    for columns in [false, true] {
        in_order(reader, columns, &rows, &damage);
    }
    Some(rows.len())
}

/// Batches that may report their events in order, with the columns of the common context or
/// without, have those events, whether they do or not.
fn in_order(reader: &Reader, has_columns: bool, rows: &[Seen], damage: &[Damage]) {
    let classes = &reader.trace().stream_classes;
    let columns = |class: &StreamClass| match has_columns {
        true => leaves(class, &EventClass::default()).len(),
        false => 0,
    };
    let mut wanted = Wanted::times(reader.trace());
    for (index, class) in (0..).zip(classes) {
        wanted = wanted.in_order(index, (0..columns(class)).collect());
    }
    let (mut batches, mut at) = (reader.batches(&wanted), 0);
    while let Some(batch) = batches.next_batch() {
        let stream = batch.stream().0;
        let Some(times) = batch.times_in_order() else {
            for (class, time) in times_by_class(batch) {
                let row = rows.get(at).expect("no more events than rows");
                assert_eq!((stream, class, time), (row.0, row.1, row.2), "event {at} by class");
                at += 1;
            }
            continue;
        };
        assert_eq!((batch.classes().len(), batch.row_count()), (0, 0), "nothing but the order");
        assert_eq!(times.len(), batch.order().len());
        let columns = columns(&classes[batch.stream_class() as usize]);
        for (event, (place, time)) in batch.order().iter().zip(times).enumerate() {
            let Place::Columns(class) = place else { panic!("a row in order") };
            let row = rows.get(at).expect("no more events than rows");
            assert_eq!((stream, class, time.0), (row.0, row.1, row.2), "event {at}");
            for column in 0..columns {
                let slot = batch.column_in_order(column).slot(event).expect("as many as events");
                assert_eq!(by_bits(slot), row.3[column], "event {at}, column {column}");
            }
            at += 1;
        }
    }
    assert_eq!(at, rows.len(), "events in order");
    assert_eq!(batches.damage(), damage, "damage in order");
}

/// Class and time of each event of a batch that is not in order.
fn times_by_class(batch: &Batch<'_>) -> Vec<(u32, i64)> {
    let mut of_class: BTreeMap<u32, _> =
        batch.classes().map(|class| (class.class_index(), class.times().iter())).collect();
    let mut rows = batch.rows();
    let each = batch.order().iter().map(|place| match place {
        Place::Columns(class) => {
            let times = of_class.get_mut(&class).and_then(Iterator::next);
            (class, times.expect("a time for every place").0)
        }
        Place::Row(class) => (class, rows.next().expect("a row for every place of one").time.0),
    });
    each.collect()
}

/// A survey without further requests has the number of events of each class, the earliest and the
/// latest.
fn ends(reader: &Reader, rows: &[Seen], damage: &[Damage]) {
    type Ends = BTreeMap<(u32, u32), (u64, i64, i64)>;
    let add = |ends: &mut Ends, key, count, first: i64, last: i64| {
        let of = ends.entry(key).or_insert((0, i64::MAX, i64::MIN));
        *of = (of.0 + count, of.1.min(first), of.2.max(last));
    };
    let (mut expected, mut found) = (Ends::new(), Ends::new());
    rows.iter().for_each(|row| add(&mut expected, (row.0, row.1), 1, row.2, row.2));
    let damage_again = reader.survey(&|_, _| Look::Ends, &mut |seen| match seen {
        lateralis_model::Seen::Event(event) => {
            let (key, time) = ((event.stream.0, event.class_index), event.time.0);
            add(&mut found, key, 1, time, time);
        }
        lateralis_model::Seen::Times { stream, class, times, .. } => {
            times.iter().for_each(|time| add(&mut found, (stream.0, class), 1, time.0, time.0));
        }
        lateralis_model::Seen::Ends { stream, class, count, first, last, .. } => {
            add(&mut found, (stream.0, class), count, first.0, last.0);
        }
        lateralis_model::Seen::Written { .. } => {}
    });
    assert_eq!(found, expected, "ends");
    assert_eq!(damage_again, damage, "damage of the ends");
}

/// The merge has the events of each stream in its order, and all damage.
fn merged(reader: &Reader, rows: &[Seen], damage: &[Damage]) {
    let mut merge = reader.events();
    let mut next: Vec<usize> = (0..reader.streams().len() as u32)
        .map(|stream| rows.partition_point(|row| row.0 < stream))
        .collect();
    let mut count = 0;
    while let Some(event) = merge.next_event() {
        let at = &mut next[event.stream.0 as usize];
        let row = rows.get(*at).expect("an event that is no row");
        let values: Vec<Slot> = event.slots.iter().copied().map(by_bits).collect();
        let seen = (event.stream.0, event.class_index, event.time.0, values);
        assert!(seen == *row, "merged {seen:?}, by rows {row:?}");
        *at += 1;
        count += 1;
    }
    assert_eq!(count, rows.len(), "events merged");
    assert_eq!(merge.damage().count(), damage.len(), "damage of the merge");
}

fn same(what: &str, rows: &[Seen], others: &[Seen]) {
    if let Some(at) = (0..rows.len()).find(|&at| others.get(at) != Some(&rows[at])) {
        panic!("{what}: event {at}: {:?}, by rows {:?}", others.get(at), rows[at]);
    }
    assert_eq!(others.len(), rows.len(), "{what}: more events than rows");
}

/// Numbers that are none differ from themselves, so reals are compared by their bits.
fn by_bits(slot: Slot) -> Slot {
    match slot {
        Slot::Real(real) => Slot::Unsigned(real.to_bits()),
        slot => slot,
    }
}

fn put_together(batch: &Batch<'_>, out: &mut Vec<Seen>) {
    let stream = batch.stream().0;
    let classes: Vec<_> = batch.classes().collect();
    let mut next = vec![0; classes.len()];
    let mut rows = batch.rows();
    for place in batch.order().iter() {
        let (class, time, values) = match place {
            Place::Columns(class) => {
                let index = classes.iter().position(|c| c.class_index() == class);
                let index = index.expect("columns for every place of them");
                let (columns, event) = (&classes[index], next[index]);
                next[index] += 1;
                let slots = (0..columns.columns()).map(|column| {
                    by_bits(columns.column(column).slot(event).expect("as many as events"))
                });
                (class, columns.times()[event], slots.collect())
            }
            Place::Row(class) => {
                let event = rows.next().expect("a row for every place of one");
                assert_eq!(event.class_index, class);
                (class, event.time, event.slots.iter().copied().map(by_bits).collect())
            }
        };
        out.push((stream, class, time.0, values));
    }
    assert!(rows.next().is_none(), "a row without a place");
    for (columns, next) in classes.iter().zip(next) {
        assert_eq!(columns.len(), next, "events of a class");
    }
}
