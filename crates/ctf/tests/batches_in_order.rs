// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches that have their events in order, as long as all are alike, and batches that have only
//! their number, step after step.

use crate::maker;

use lateralis_model::{Column, CountBy, Interval, Place, Step, Want, Wanted};

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; } := u8;
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u8 stream_id; }; };
clock { name = c; freq = 1000000000; };
stream { id = 0; event.header := struct { u8 id; time timestamp; };
    event.context := struct { u8 tid; }; };
event { id = 0; stream_id = 0; name = short; fields := struct { u8 x; }; };
event { id = 1; stream_id = 0; name = long; fields := struct { u8 x; u8 y; u8 z; }; };
event { id = 2; stream_id = 0; name = text; fields := struct { string s; }; };
"#;

fn event(id: u8, time: u64, tid: u8, payload: &[u8]) -> Vec<u8> {
    [&[id], &time.to_le_bytes()[..], &[tid], payload].concat()
}

#[test]
fn events_are_in_order_up_to_the_first_of_another_shape() {
    let bytes = [
        vec![0],
        event(0, 10, 7, &[1]),
        event(1, 20, 8, &[1, 2, 3]),
        event(0, 25, 7, &[1]),
        event(2, 30, 9, b"some\0"),
        event(0, 40, 7, &[2]),
    ];
    let reader = maker::any_reader(METADATA, &[&bytes.concat()]);
    let times = Wanted::times(reader.trace());
    // Where nothing says otherwise, by class.
    let mut batches = reader.batches(&times);
    let batch = batches.next_batch().expect("a batch");
    assert_eq!((batch.times_in_order(), batch.classes().len(), batch.len()), (None, 3, 5));
    assert!(matches!(batch.column_in_order(0), Column::Skipped));

    let wanted = times.in_order(0, vec![0]);
    let mut batches = reader.batches(&wanted);
    let batch = batches.next_batch().expect("a batch");
    let nanos = |batch: &lateralis_ctf::Batch<'_>| -> Option<Vec<i64>> {
        Some(batch.times_in_order()?.iter().map(|time| time.0).collect())
    };
    assert_eq!(nanos(batch), Some(vec![10, 20, 25]));
    let Column::Unsigned(tids) = batch.column_in_order(0) else { panic!("no column") };
    assert_eq!(tids, [7, 8, 7]);
    assert!(matches!(batch.column_in_order(1), Column::Skipped));
    let places: Vec<Place> = batch.order().iter().collect();
    assert_eq!(places, [Place::Columns(0), Place::Columns(1), Place::Columns(0)]);
    assert_eq!((batch.classes().len(), batch.row_count(), batch.len()), (0, 0, 3));

    let batch = batches.next_batch().expect("the rest");
    assert_eq!((nanos(batch), batch.len()), (None, 2), "by class from the first text on");
    assert!(batches.next_batch().is_none());
}

#[test]
fn columns_that_lie_elsewhere_in_another_class_are_by_class() {
    let bytes = [vec![0], event(0, 10, 7, &[1]), event(1, 20, 8, &[1, 2, 3])];
    let reader = maker::any_reader(METADATA, &[&bytes.concat()]);
    // Column 2 is of the second class only.
    let wanted = Wanted::times(reader.trace()).in_order(0, vec![0, 2]);
    let mut batches = reader.batches(&wanted);
    let batch = batches.next_batch().expect("a batch");
    assert_eq!((batch.times_in_order(), batch.len()), (None, 2));
}

#[test]
fn events_of_a_step_of_time_are_counted_together() {
    let bytes = [
        vec![0],
        event(0, 10, 7, &[1]),
        event(1, 19, 8, &[1, 2, 3]),
        event(2, 20, 9, b"some\0"),
        event(0, 25, 7, &[1]),
        event(1, 29, 8, &[1, 2, 3]),
        event(0, 30, 7, &[2]),
    ];
    let reader = maker::any_reader(METADATA, &[&bytes.concat()]);
    let step = Step { length_ns: 10, begin_ns: 0 };
    let all = CountBy { step, interval: Interval::default(), class: false };
    let counted = |wanted: Wanted| {
        let (mut found, mut batches) = (Vec::new(), reader.batches(&wanted));
        while let Some(batch) = batches.next_batch() {
            let at = lateralis_model::ColumnBatch::counted_at(batch).map(|time| time.0);
            found.push((at, batch.counts().collect::<Vec<_>>()));
        }
        found
    };
    let times = || Wanted::times(reader.trace());
    let totals: Vec<(Option<i64>, u64)> = counted(times().or_counted(all))
        .into_iter()
        .map(|(at, counts)| (at, counts.iter().map(|(_, count)| count).sum()))
        .collect();
    assert_eq!(totals, [(Some(10), 2), (Some(20), 3), (Some(30), 1)]);

    let by_class = [
        (Some(10), vec![(0, 1), (1, 1)]),
        (Some(20), vec![(2, 1), (0, 1), (1, 1)]),
        (Some(30), vec![(0, 1)]),
    ];
    assert_eq!(counted(times().or_counted(CountBy { class: true, ..all })), by_class);
    // If some classes are not requested, the others are distinguished from them.
    assert_eq!(counted(times().with(0, 1, Want::Count).or_counted(all)), by_class);
    // Where fields are wanted, nothing is only counted.
    let fields = counted(times().with(0, 1, Want::All).or_counted(all));
    assert_eq!(fields.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [None]);
}
