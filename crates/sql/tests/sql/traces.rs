// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results on real traces equal those of a walk over all their events.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lateralis_model::{Interval, Source};
use lateralis_sql::answers::Lat;
use lateralis_sql::engine::{Engine, Limits};
use lateralis_sql::output::Format;
use lateralis_sql::session::{Place, Session, Stop};
use lateralis_store::{Recording, Scan, Session as Traces};
use lateralis_units::Nanos;
use serde_json::Value;

use crate::place::data;

pub const MIB: usize = 1 << 20;
/// Packets end after their last event, but not by this much.
const HOUR: i64 = 3_600_000_000_000;

/// Bytes written by several results.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn session(path: &Path, memory_bytes: usize) -> Session {
    let traces = Arc::new(Traces::new(vec![Recording::open(path).unwrap()]));
    let cores = NonZeroUsize::new(2).unwrap();
    let engine = Engine::new(traces, Lat::default(), Limits { memory_bytes, cores }).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    Session::new(engine, runtime)
}

pub fn ask(session: &Session, sql: &str) -> Result<Vec<Value>, String> {
    let kept = Kept::default();
    let target = kept.clone();
    let mut open = move || Ok(Box::new(target.clone()) as Box<dyn Write + Send>);
    let mut place = Place { format: Format::Json, columns: None, is_file: false, open: &mut open };
    match session.run(sql, &mut place) {
        Ok(_) => {}
        Err(Stop::Fault(fault)) => return Err(fault.show(sql)),
        Err(other) => panic!("{sql}: {other:?}"),
    }
    let bytes = kept.0.lock().unwrap().clone();
    Ok(serde_json::from_slice(&bytes).unwrap())
}

fn one(session: &Session, sql: &str) -> Value {
    let rows = ask(session, sql).unwrap();
    assert_eq!(rows.len(), 1, "{sql}");
    rows[0].clone()
}

/// Times and CPUs of all events, by class name.
fn walk(path: &Path) -> BTreeMap<String, Vec<(i64, Option<u32>)>> {
    let recording = Recording::open(path).unwrap();
    let mut found: BTreeMap<String, Vec<_>> = BTreeMap::new();
    recording.source.visit(&mut |event| {
        let cpu = event.packet.cpu.map(|cpu| cpu.0);
        found.entry(event.class.name.clone()).or_default().push((event.time.0, cpu));
    });
    found
}

#[test]
fn counts_sums_and_percentiles_are_those_of_a_walk() {
    let traces = ["traces/generated/lttng-ust-20k", "barrelfish/atrace.trc"];
    for path in traces.into_iter().filter_map(data) {
        let session = session(&path, 256 * MIB);
        let walked = walk(&path);
        assert!(!walked.is_empty());
        let rows = ask(
            &session,
            "SELECT class, count(*) AS n, sum(ts - (SELECT min(ts) FROM events)) AS total, \
             percentile(ts, 99.9) AS p FROM events GROUP BY class",
        );
        let rows = rows.unwrap();
        assert_eq!(rows.len(), walked.len());
        let first = walked.values().flatten().map(|(time, _)| *time).min().unwrap();
        for row in rows {
            let mut times: Vec<i64> =
                walked[row["class"].as_str().unwrap()].iter().map(|(time, _)| *time).collect();
            times.sort_unstable();
            let total: i64 = times.iter().map(|time| time - first).sum();
            let rank = (times.len() * 999).div_ceil(1000).max(1) - 1;
            assert_eq!(row["n"].as_u64(), Some(times.len() as u64));
            assert_eq!(row["total"].as_i64(), Some(total));
            assert_eq!(row["p"].as_i64(), Some(times[rank]));
        }
        // Each event class is a table with the same rows as among all events.
        for (class, events) in &walked {
            let name = class.replace('"', "\"\"");
            let row = one(&session, &format!("SELECT count(*) AS n FROM \"{name}\""));
            assert_eq!(row["n"].as_u64(), Some(events.len() as u64), "{class}");
        }
    }
}

#[test]
fn a_window_of_time_gives_the_events_in_it_and_leaves_other_packets_alone() {
    let Some(path) = data("traces/generated/lttng-ust-20k") else { return };
    let session = session(&path, 256 * MIB);
    let times: Vec<i64> = walk(&path).values().flatten().map(|(time, _)| *time).collect();
    let (first, last) = (*times.iter().min().unwrap(), *times.iter().max().unwrap());
    let (begin, end) = (first + (last - first) / 3, first + (last - first) / 2);
    let inside = times.iter().filter(|time| (begin..=end).contains(time)).count();
    assert!(inside > 0 && inside < times.len());
    let sql = format!("SELECT count(*) AS n FROM events WHERE ts BETWEEN {begin} AND {end}");
    assert_eq!(one(&session, &sql)["n"].as_u64(), Some(inside as u64));
    // The request to the store is pruned accordingly.
    let traces = Traces::new(vec![Recording::open(&path).unwrap()]);
    let table = traces.table("events").unwrap();
    let interval = Interval { begin: Some(Nanos(last + HOUR)), end: None };
    let nothing = Scan { interval, ..Scan::default() };
    assert!(!traces.partitions(table, &Scan::default()).is_empty());
    assert!(traces.partitions(table, &nothing).is_empty());
}

#[test]
fn conditions_leave_out_packets_and_events_before_they_are_decoded() {
    // A window contains some of hundreds of packets; a CPU contains whole packets.
    let traces = ["traces/generated/lttng-ust-20k", "traces/generated/barectf-200k"];
    let traces: Vec<PathBuf> = traces.into_iter().filter_map(data).collect();
    let (mut windows, mut processors) = (0, 0);
    for path in &traces {
        let session = session(path, 256 * MIB);
        let reads = |sql: &str| {
            session.engine.take_reads();
            let rows = ask(&session, sql).unwrap();
            (rows, session.engine.take_reads())
        };
        let (all, (all_packets, all_rows)) =
            reads("SELECT count(*) AS n, min(ts) AS first, max(ts) AS last FROM events");
        let number = |row: &Value, name: &str| row[name].as_i64().unwrap();
        assert_eq!(number(&all[0], "n"), all_rows as i64);
        assert!(all_packets > 1);
        let (first, last) = (number(&all[0], "first"), number(&all[0], "last"));
        // Time: fewer packets, and of them only the rows.
        let begin = last - (last - first) / 10;
        let sql = format!("SELECT count(*) AS n FROM events WHERE ts >= {begin}");
        let (found, (packets, rows)) = reads(&sql);
        if all_packets >= 10 {
            assert!(packets < all_packets / 2, "{packets} of {all_packets} packets");
            windows += 1;
        }
        assert_eq!(number(&found[0], "n"), rows as i64);
        // After everything: none at all.
        let (_, (packets, rows)) =
            reads(&format!("SELECT * FROM events WHERE ts > {}", last + HOUR));
        assert_eq!((packets, rows), (0, 0));
        // A CPU: only its packets.
        let (cpus, _) = reads("SELECT cpu, count(*) AS n FROM packets GROUP BY cpu");
        for cpu in cpus.iter().filter(|row| row["cpu"].is_number()) {
            let sql = format!("SELECT count(*) AS n FROM events WHERE cpu = {}", cpu["cpu"]);
            let (found, (packets, rows)) = reads(&sql);
            assert_eq!(packets as i64, number(cpu, "n"));
            processors += 1;
            assert_eq!(number(&found[0], "n"), rows as i64);
        }
        // An event class: none of the others, and nothing for one that does not exist.
        let (classes, _) = reads("SELECT class, count FROM classes WHERE count > 0");
        assert!(classes.len() > 1);
        for class in &classes {
            let name = class["class"].as_str().unwrap();
            let sql = format!("SELECT count(fields) AS n FROM events WHERE class = '{name}'");
            let (found, (_, rows)) = reads(&sql);
            assert_eq!(
                (number(&found[0], "n"), rows as i64),
                (number(class, "count"), number(class, "count"))
            );
        }
        let (_, read) = reads("SELECT * FROM events WHERE class IN ('no such', 'nor such')");
        assert_eq!(read, (0, 0));
        // A limit ends reading; reading all columns or one makes no difference to the rows.
        let (rows, (_, read)) = reads("SELECT ts FROM events LIMIT 5");
        assert!(rows.len() == 5 && read < all_rows, "{read} of {all_rows}");
    }
    assert!(traces.is_empty() || (windows > 0 && processors > 1), "{windows}, {processors}");
}

#[test]
fn a_query_that_needs_more_memory_than_it_may_is_refused_in_words() {
    let Some(path) = data("traces/generated/lttng-ust-20k") else { return };
    let session = session(&path, MIB / 8);
    let sql = "SELECT percentile(a.ts, 50) FROM events a CROSS JOIN events b";
    let error = ask(&session, sql).unwrap_err();
    assert!(error.starts_with("out of memory for this query"), "{error}");
    assert!(error.contains("--memory"), "{error}");
}

#[test]
fn a_join_without_equal_columns_is_right_or_refused_and_never_panics() {
    let Some(path) = data("traces/generated/lttng-ust-20k") else { return };
    // The left side is distributed over cores, and does not fit in memory.
    let session = session(&path, 4 * MIB);
    let sql = "SELECT count(*) FROM events a, events b, events c WHERE a.ts + b.ts > c.ts";
    for _ in 0..3 {
        let error = ask(&session, sql).unwrap_err();
        assert!(error.starts_with("out of memory for this query"), "{error}");
    }
    // Each row of the left side has no match, on every core.
    for (memory, is_enough) in [(64 * MIB, true), (MIB / 8, false)] {
        let session = self::session(&path, memory);
        for (join, rows) in [("LEFT", 20_000), ("LEFT ANTI", 20_000), ("LEFT SEMI", 0)] {
            let sql = format!(
                "SELECT count(*) AS n FROM (SELECT a.ts FROM events a {join} JOIN \
                 (SELECT ts FROM events WHERE ts % 16 = 0) b ON a.ts + b.ts < a.packet)"
            );
            match ask(&session, &sql) {
                Ok(found) => assert_eq!((found[0]["n"].as_u64(), is_enough), (Some(rows), true)),
                Err(error) => {
                    assert!(!is_enough, "{join}: {error}");
                    assert!(error.starts_with("out of memory for this query"), "{error}");
                }
            }
        }
    }
    // Operators below and above such a join may use the disk as usual.
    let small = self::session(&path, MIB);
    let sql = "SELECT count(*) AS n FROM (SELECT a.ts FROM events a JOIN (SELECT 5 AS x) b \
               ON a.ts > b.x ORDER BY a.ts, a.fields)";
    assert_eq!(ask(&small, sql).unwrap()[0]["n"], 20_000);
}

#[test]
fn wrong_names_get_the_nearest_and_a_mark() {
    let Some(path) = data("traces/generated/lttng-ust-20k") else { return };
    let session = session(&path, 64 * MIB);
    let error = ask(&session, "SELECT * FROM evnts").unwrap_err();
    assert!(error.starts_with("no such table: evnts: did you mean events"), "{error}");
    let error = ask(&session, "SELECT clas FROM events").unwrap_err();
    assert!(error.starts_with("no such column: clas: did you mean class?"), "{error}");
    assert!(error.ends_with("\n         ^^^^"), "{error}");
    let error = ask(&session, "SELECT count( FROM events").unwrap_err();
    assert!(error.starts_with("no SQL: ") && error.contains('^'), "{error}");
}

#[test]
fn nothing_outside_is_read_or_written() {
    let Some(path) = data("traces/generated/lttng-ust-20k") else { return };
    let session = session(&path, 64 * MIB);
    for sql in [
        "COPY events TO 'out.csv'",
        "EXPLAIN ANALYZE COPY events TO 'out.csv'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT * FROM '/etc/passwd'",
        "SET datafusion.execution.batch_size = 1",
        "INSERT INTO events SELECT * FROM events",
        "DROP TABLE events",
    ] {
        assert!(ask(&session, sql).is_err(), "{sql}");
    }
}
