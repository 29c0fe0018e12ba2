// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of facts by columns equal those of a walk over the events, in the same order.

use std::path::Path;

use arrow_array::RecordBatch;

use super::*;
use crate::{Recording, Scan, Session};

#[path = "../../../tests/given/mod.rs"]
#[expect(dead_code, reason = "its other half is for tests of facts")]
mod given;

const TABLES: [(Small, &str); 4] = [
    (Small::Spans, "spans"),
    (Small::Messages, "messages"),
    (Small::States, "states"),
    (Small::Counters, "counters"),
];

/// All rows, the damage, and whether these were all rows.
fn read(
    by_columns: bool,
    (small, name): (Small, &str),
    session: &Session,
    trace: &Trace,
    scan: &Scan,
) -> (Vec<RecordBatch>, Vec<Damage>, ControlFlow<()>) {
    let (mut batches, mut damage) = (Vec::new(), Vec::new());
    let mut see = |batch| {
        batches.push(batch);
        ControlFlow::Continue(())
    };
    let mut rows = Rows::new(session.table(name).unwrap(), scan, &mut see);
    let flow = rows_by(by_columns, small, &session.recordings[0], trace, &mut rows, &mut damage);
    rows.end().unwrap();
    (batches, damage, flow)
}

#[test]
fn rows_by_columns_are_those_by_events() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let mut paths = Vec::new();
    given::traces(&data, &mut paths);
    if paths.is_empty() {
        eprintln!("SKIPPED: no traces at {}", data.display());
        return;
    }
    let (mut compared, mut count) = (0, [0; 4]);
    for path in &paths {
        let Ok(recording) = Recording::open(path) else { continue };
        let own = recording.annotated().into_owned();
        let mut meant = own.clone();
        given::give_meanings(&mut meant);
        let session = Session::new(vec![recording]);
        for trace in [&own, &meant] {
            let of = Facts::new(trace, &session.recordings[0].recording.streams);
            if !of.has_columns(&session.recordings[0].recording.source) {
                continue;
            }
            for (table, count) in TABLES.into_iter().zip(&mut count) {
                let at = format!("{}: {}", path.display(), table.1);
                let all = Scan::default();
                let by_rows = read(false, table, &session, trace, &all);
                let by_columns = read(true, table, &session, trace, &all);
                assert!(by_rows.0 == by_columns.0, "{at}: rows");
                assert_eq!(by_rows.1.len(), by_columns.1.len(), "{at}: damage");
                let rows: usize = by_rows.0.iter().map(RecordBatch::num_rows).sum();
                let limit = Some(rows / 2 + 1);
                let some = read(true, table, &session, trace, &Scan { limit, ..all });
                let found: usize = some.0.iter().map(RecordBatch::num_rows).sum();
                assert_eq!(found, rows.min(rows / 2 + 1), "{at}: some rows");
                assert_eq!(some.2.is_break(), rows > 0, "{at}");
                for (some, all) in some.0.iter().zip(&by_rows.0) {
                    assert!(*some == all.slice(0, some.num_rows()), "{at}: some rows");
                }
                compared += 1;
                *count += rows;
            }
        }
    }
    assert!(compared > 400, "{compared} tables");
    assert!(count.iter().all(|rows| *rows > 1000), "{count:?} rows");
}

#[test]
fn whoever_has_enough_ends_what_is_made_for_him() {
    let made = std::sync::atomic::AtomicUsize::new(0);
    let mut taken = 0;
    let empty = || RecordBatch::new_empty(std::sync::Arc::new(arrow_schema::Schema::empty()));
    let damage = beside(
        &mut |_| {
            taken += 1;
            if taken == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
        |see| {
            while see(empty()).is_continue() {
                made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            Ok(Vec::new())
        },
    );
    assert_eq!((damage, taken), (Ok(Vec::new()), 3));
    assert!(made.into_inner() <= taken + BATCHES + 1);
}
