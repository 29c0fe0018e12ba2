// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events that are only counted are as many, in the same packets and of the same classes, as decoded
//! ones.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use lateralis_model::Interval;
use lateralis_store::{Recording, Scan, Session, Step, WEIGHT};
use lateralis_units::Nanos;

fn data(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    if path.exists() {
        return Some(path);
    }
    println!("SKIPPED: no trace at {}", path.display());
    None
}

/// Key for counting rows: stream, CPU, packet, class.
type Kind = (i64, Option<i64>, Option<i64>, String);

fn kinds(batch: &RecordBatch) -> Vec<Kind> {
    let number = |name: &str| {
        let column = batch.column_by_name(name).unwrap().as_primitive::<Int64Type>();
        column.iter().collect::<Vec<_>>()
    };
    let words = batch.column_by_name("class").unwrap().as_dictionary::<Int32Type>();
    let texts = words.values().as_string::<i32>();
    let classes = words.keys().iter().map(|key| texts.value(key.unwrap() as usize).to_owned());
    let (streams, cpus, packets) = (number("stream"), number("cpu"), number("packet"));
    let rows = classes.enumerate();
    rows.map(|(row, class)| (streams[row].unwrap(), cpus[row], packets[row], class)).collect()
}

/// Rows by kind, damage, and rows if no column is requested.
fn count(session: &Session, also: &[&str], any_order: bool) -> (BTreeMap<Kind, u64>, usize) {
    let events = session.table("events").unwrap();
    let names = ["stream", "cpu", "packet", "class"];
    let at = |name: &&str| events.schema.index_of(name).unwrap();
    let columns = Some(names.iter().chain(also).map(at).collect());
    let scan = Scan { columns, any_order, ..Scan::default() };
    let (mut found, mut damages) = (BTreeMap::new(), 0);
    for partition in session.partitions(events, &scan) {
        let damage = session.scan(events, &partition, &scan, &mut |batch| {
            assert!(batch.num_rows() <= lateralis_store::BATCH_ROWS);
            for kind in kinds(&batch) {
                *found.entry(kind).or_default() += 1;
            }
            ControlFlow::Continue(())
        });
        damages += damage.unwrap().len();
    }
    (found, damages)
}

/// Numbers of a column.
fn numbers(batch: &RecordBatch, name: &str) -> Vec<Option<i64>> {
    batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().iter().collect()
}

/// Events by kind and time step, from rows that may represent several; and the number of rows.
fn weighed(
    session: &Session,
    (names, step): (&[&str], Step),
    (interval, weighs): (Interval, bool),
) -> (BTreeMap<String, i64>, usize) {
    let events = session.table("events").unwrap();
    let columns = names.iter().map(|name| events.schema.index_of(name).unwrap()).collect();
    let weighs = weighs.then_some(step);
    let (columns, any_order) = (Some(columns), weighs.is_some());
    let scan = Scan { columns, interval, any_order, weighs, ..Scan::default() };
    let (mut found, mut rows) = (BTreeMap::new(), 0);
    for partition in session.partitions(events, &scan) {
        let mut see = |batch: RecordBatch| {
            assert_eq!(batch.num_columns(), names.len() + usize::from(weighs.is_some()));
            let weights = weighs.map(|_| numbers(&batch, WEIGHT));
            let mut texts = vec![String::new(); batch.num_rows()];
            for name in names {
                let column: Vec<String> = match *name {
                    "class" => {
                        let words = batch.column_by_name(name).unwrap();
                        let words = words.as_dictionary::<Int32Type>();
                        let values = words.values().as_string::<i32>();
                        let word =
                            |key: Option<i32>| values.value(key.unwrap() as usize).to_owned();
                        words.keys().iter().map(word).collect()
                    }
                    "ts" => {
                        let begin = i128::from(step.begin_ns);
                        let of = |ts: Option<i64>| {
                            (i128::from(ts.unwrap()) - begin).div_euclid(step.length_ns.into())
                        };
                        numbers(&batch, name).into_iter().map(|ts| of(ts).to_string()).collect()
                    }
                    _ => numbers(&batch, name).iter().map(|n| format!("{n:?}")).collect(),
                };
                texts.iter_mut().zip(column).for_each(|(text, cell)| *text += &format!("{cell} "));
            }
            for (row, text) in texts.into_iter().enumerate() {
                let weight = weights.as_ref().map_or(1, |weights| weights[row].unwrap());
                assert!(weight > 0);
                *found.entry(text).or_default() += weight;
            }
            rows += batch.num_rows();
            ControlFlow::Continue(())
        };
        session.scan(events, &partition, &scan, &mut see).unwrap();
    }
    (found, rows)
}

/// Rows that represent several events add up to the number of events.
fn compare_weighed(path: &Path) -> bool {
    let session = Session::new(vec![Recording::open(path).unwrap()]);
    let events = session.table("events").unwrap();
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    let scan = Scan { columns: Some(vec![0]), ..Scan::default() };
    for partition in session.partitions(events, &scan) {
        let mut see = |batch: RecordBatch| {
            for ts in numbers(&batch, "ts").into_iter().flatten() {
                (first, last) = (first.min(ts), last.max(ts));
            }
            ControlFlow::Continue(())
        };
        session.scan(events, &partition, &scan, &mut see).unwrap();
    }
    let span = (last - first).max(1);
    let at = |part: i64| Some(Nanos(first + span / 7 * part));
    let mut is_fewer = false;
    for names in [
        &["class"][..],
        &["ts"],
        &["class", "ts", "cpu"],
        &["stream", "packet", "ts"],
        &[],
        // Each thread and each event separately: nothing is combined.
        &["tid", "class"],
    ] {
        for (length_ns, begin_ns) in [(1, 0), (span / 3 + 1, first + 5), (i64::MAX, i64::MIN)] {
            let asked = (names, Step { length_ns, begin_ns });
            for (begin, end) in [(None, None), (at(2), at(5)), (at(8), None)] {
                let interval = Interval { begin, end };
                let (counts, rows) = weighed(&session, asked, (interval, true));
                let (wanted, all) = weighed(&session, asked, (interval, false));
                assert_eq!(counts, wanted, "{names:?} {asked:?} {interval:?}, {}", path.display());
                is_fewer |= rows < all;
            }
        }
    }
    is_fewer
}

fn compare(path: &Path) -> u64 {
    let session = Session::new(vec![Recording::open(path).unwrap()]);
    // The time of an event that was only counted is unknown.
    let (decoded, damages) = count(&session, &["ts"], true);
    let counted = count(&session, &[], true);
    assert_eq!(counted, (decoded.clone(), damages), "{}", path.display());
    assert_eq!(count(&session, &[], false).0, decoded, "{}", path.display());
    let all = decoded.values().sum();
    for limit in [None, Some(3)] {
        let scan = Scan { columns: Some(Vec::new()), limit, ..Scan::default() };
        let events = session.table("events").unwrap();
        let (mut rows, mut least) = (0, 0);
        for partition in session.partitions(events, &scan) {
            let before = rows;
            let mut see = |batch: RecordBatch| {
                rows += batch.num_rows() as u64;
                ControlFlow::Continue(())
            };
            session.scan(events, &partition, &scan, &mut see).unwrap();
            assert!(limit.is_none_or(|limit| rows - before <= limit as u64));
            least += 1;
        }
        assert!(if limit.is_none() { rows == all } else { rows >= least.min(all) });
    }
    all
}

#[test]
fn events_that_are_counted_are_those_that_are_decoded() {
    let traces = [
        "traces/generated/lttng-ust-20k",
        "traces/generated/perf-sched-1s",
        "traces/ctf1/tracecompass-EPL2/ros2",
        "traces/ctf1/lttng-ref/basic-kernel-analysis/kernel",
        "barrelfish/atrace.trc",
    ];
    let found: Vec<PathBuf> = traces.iter().filter_map(|path| data(path)).collect();
    for path in &found {
        assert!(compare(path) > 0, "{}", path.display());
    }
}

#[test]
fn rows_that_stand_for_several_events_are_as_many() {
    let traces = [
        "traces/generated/lttng-ust-20k",
        "traces/generated/perf-sched-1s",
        "traces/ctf1/tracecompass-EPL2/ros2",
        "barrelfish/atrace.trc",
    ];
    let found: Vec<PathBuf> = traces.iter().filter_map(|path| data(path)).collect();
    let fewer = found.iter().filter(|path| compare_weighed(path)).count();
    assert!(found.is_empty() || fewer > 1, "{fewer}");
}

#[test]
fn of_a_damaged_trace_what_can_be_read_is_counted() {
    let Some(from) = data("traces/ctf1/lttng-ref/basic-kernel-analysis/kernel") else { return };
    let to = tempfile::tempdir().unwrap();
    let whole = compare(&from);
    for entry in fs::read_dir(&from).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            continue;
        }
        let mut bytes = fs::read(entry.path()).unwrap();
        if entry.file_name() != "metadata" {
            let step = bytes.len() / 7 + 1;
            (step..bytes.len()).step_by(step).for_each(|at| bytes[at] ^= 0x55);
            bytes.truncate(bytes.len() - bytes.len() / 5);
        }
        fs::write(to.path().join(entry.file_name()), bytes).unwrap();
    }
    let rest = compare(to.path());
    compare_weighed(to.path());
    assert!(0 < rest && rest < whole, "{rest} of {whole}");
}
