// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements that only count, on rows that represent many events, give the same result as a walk over
//! single rows.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::place::data;
use crate::traces::{MIB, ask, session};

/// Traces with and without clocks, by stream, with several classes, with CPUs from events, and rows.
const TRACES: [&str; 6] = [
    "traces/generated/lttng-ust-20k",
    "traces/generated/perf-sched-1s",
    "traces/generated/barectf-200k",
    "traces/ctf1/tracecompass-EPL2/ros2",
    "traces/ctf1/lttng-ref/basic-kernel-analysis/kernel",
    "barrelfish/atrace.trc",
];

/// Properties of an event that statements here use.
struct Row {
    ts: i64,
    class: String,
    cpu: Option<i64>,
    stream: i64,
}

type Key = (Option<i64>, String, Option<i64>);

/// Statements, with the rows that they count and their grouping.
struct Counted {
    sql: String,
    keeps: Box<dyn Fn(&Row) -> bool>,
    key: Box<dyn Fn(&Row) -> Key>,
    /// Whether rows may actually represent several events.
    is_weighed: bool,
}

fn counted(
    sql: &str,
    is_weighed: bool,
    keeps: impl Fn(&Row) -> bool + 'static,
    key: impl Fn(&Row) -> Key + 'static,
) -> Counted {
    Counted { sql: sql.to_owned(), keeps: Box::new(keeps), key: Box::new(key), is_weighed }
}

fn all(first: i64, last: i64) -> Vec<Counted> {
    let step = ((last - first) / 37).max(1);
    let (begin, end) = (first + (last - first) / 5, first + (last - first) / 5 * 4);
    let any = |_: &Row| true;
    let by_time = |t: Option<i64>| (t, String::new(), None);
    let inside = move |row: &Row| begin <= row.ts && row.ts <= end;
    let by_all = move |row: &Row| (Some(row.ts / step), row.class.clone(), row.cpu);
    vec![
        counted("SELECT count(*) AS n FROM events", true, any, move |_| by_time(None)),
        counted("SELECT class, count(*) AS n FROM events GROUP BY class", true, any, |row| {
            (None, row.class.clone(), None)
        }),
        counted(
            &format!("SELECT ts / {step} AS t, count(*) AS n FROM events GROUP BY t"),
            true,
            any,
            move |row| by_time(Some(row.ts / step)),
        ),
        counted(
            &format!("SELECT time_bucket({step}, ts) AS t, count(1) AS n FROM events GROUP BY 1"),
            true,
            any,
            move |row| by_time(Some(row.ts - row.ts.rem_euclid(step))),
        ),
        counted(
            &format!(
                "SELECT t, class, cpu, sum(n) AS n FROM (SELECT (ts - {first}) / {step} AS t, class, \
                 cpu, count(*) AS n FROM events AS e WHERE e.ts > {begin} AND e.ts <= {end} AND \
                 class LIKE '%e%' GROUP BY t, class, cpu) GROUP BY t, class, cpu"
            ),
            true,
            move |row| begin < row.ts && row.ts <= end && row.class.contains('e'),
            move |row| (Some((row.ts - first) / step), row.class.clone(), row.cpu),
        ),
        counted(
            &format!("SELECT count(*) AS n FROM events WHERE ts BETWEEN {begin} AND {end}"),
            true,
            inside,
            move |_| by_time(None),
        ),
        counted(
            &format!(
                "SELECT stream AS t, count(*) FILTER (WHERE cpu = 1) AS n FROM events \
                 WHERE ts >= {begin} AND ts <= {end} GROUP BY stream"
            ),
            true,
            move |row| inside(row) && row.cpu == Some(1),
            move |row| by_time(Some(row.stream)),
        ),
        // Times that are all distinguished, though many are alike.
        counted(
            &format!(
                "SELECT ts / {step} AS t, class, cpu, count(ts) AS n FROM events \
                 WHERE ts % 2 = 0 OR ts % 2 = 1 OR ts % 2 = -1 GROUP BY t, class, cpu"
            ),
            false,
            any,
            by_all,
        ),
        counted(
            &format!(
                "SELECT max(ts) / {step} AS t, class, cpu, count(*) AS n FROM events \
                 GROUP BY ts / {step}, class, cpu"
            ),
            false,
            any,
            by_all,
        ),
    ]
}

fn found(rows: &[Value]) -> BTreeMap<Key, u64> {
    let mut found = BTreeMap::new();
    for row in rows {
        let class = row.get("class").and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| row.get(name).and_then(Value::as_i64);
        let n = row["n"].as_u64().unwrap();
        // Groups in which a filter has left nothing.
        if n > 0 {
            let before = found.insert((number("t"), class.to_owned(), number("cpu")), n);
            assert_eq!(before, None);
        }
    }
    found
}

fn compare(path: &Path) {
    let session = session(path, 256 * MIB);
    let rows = ask(&session, "SELECT ts, class, cpu, stream FROM events").unwrap();
    let row = |row: &Value| Row {
        ts: row["ts"].as_i64().unwrap(),
        class: row["class"].as_str().unwrap().to_owned(),
        cpu: row["cpu"].as_i64(),
        stream: row["stream"].as_i64().unwrap(),
    };
    let rows: Vec<Row> = rows.iter().map(row).collect();
    assert!(!rows.is_empty());
    let first = rows.iter().map(|row| row.ts).min().unwrap();
    let last = rows.iter().map(|row| row.ts).max().unwrap();
    for counted in all(first, last) {
        let mut wanted = BTreeMap::new();
        for row in rows.iter().filter(|row| (counted.keeps)(row)) {
            *wanted.entry((counted.key)(row)).or_default() += 1;
        }
        let sql = counted.sql;
        assert_eq!(found(&ask(&session, &sql).unwrap()), wanted, "{sql}\n{}", path.display());
        let plan = ask(&session, &format!("EXPLAIN {sql}")).unwrap();
        let plan = serde_json::to_string(&plan).unwrap();
        assert_eq!(plan.contains("#events"), counted.is_weighed, "{sql}\n{plan}");
    }
    // Each event class is a table of its own; unsatisfiable conditions count nothing.
    let class = rows[0].class.replace('"', "\"\"");
    let of_class = rows.iter().filter(|row| row.class == rows[0].class).count();
    let sql = format!("SELECT count(*) AS n FROM \"{class}\" WHERE ts >= {first} AND ts <= {last}");
    assert_eq!(ask(&session, &sql).unwrap()[0]["n"], of_class, "{sql}");
    let sql = format!("SELECT count(*) AS n, max(cpu) AS m FROM events WHERE ts > {last}");
    assert_eq!(ask(&session, &sql).unwrap(), [serde_json::json!({"n": 0, "m": null})]);
}

#[test]
fn counts_are_those_of_single_rows() {
    let traces = TRACES.into_iter().filter_map(data);
    traces.for_each(|path| compare(&path));
}

#[test]
fn views_joins_and_names_that_hide_the_time_are_counted_right() {
    let Some(path) = data("traces/generated/lttng-ust-20k") else { return };
    let session = session(&path, 256 * MIB);
    let number = |sql: &str| {
        let rows = ask(&session, sql).unwrap_or_else(|why| panic!("{sql}: {why}"));
        rows[0]["n"].as_i64().unwrap()
    };
    for (sql, wanted) in [
        // None of these is a step of the event time.
        ("SELECT count(*) AS n FROM (SELECT ts AS t FROM events) WHERE t > 0", 20_000),
        ("SELECT count(*) AS n FROM (SELECT DISTINCT packet / 1000000 AS ts FROM events)", 1),
        ("SELECT count(*) AS n FROM events WHERE random() < 2", 20_000),
        ("SELECT count(*) AS n FROM (SELECT ts FROM events ORDER BY ts LIMIT 7)", 7),
        ("SELECT count(*) AS n FROM (SELECT class FROM events LIMIT 7)", 7),
        ("SELECT count(*) AS n FROM (SELECT 1 FROM events UNION ALL SELECT 2 FROM events)", 40_000),
        ("SELECT count(DISTINCT ts / 100000000000000) AS n FROM events", 1),
        (
            "SELECT max(n) AS n FROM (SELECT count(*) AS n FROM events GROUP BY ROLLUP(class))",
            20_000,
        ),
        (
            "SELECT sum(n) AS n FROM (SELECT cpu AS \"#events\", count(*) AS n FROM events GROUP BY 1)",
            20_000,
        ),
        (
            "WITH e AS (SELECT ts, ts - ts % 1000 AS t FROM events WHERE ts > 5) \
          SELECT sum(n) AS n FROM (SELECT t, count(*) AS n FROM e GROUP BY t)",
            20_000,
        ),
        (
            "SELECT sum(n) AS n FROM (SELECT date_trunc('second', to_timestamp_nanos(ts)) AS t, \
          count(*) AS n FROM events GROUP BY 1)",
            20_000,
        ),
        (
            "SELECT sum(n) AS n FROM (SELECT date_bin(INTERVAL '1 second', to_timestamp_nanos(ts)) AS \
          t, count(*) AS n FROM events GROUP BY 1)",
            20_000,
        ),
    ] {
        assert_eq!(number(sql), wanted, "{sql}");
    }
    assert_eq!(
        number(
            "SELECT count(*) AS n FROM (SELECT DISTINCT stream AS ts FROM events) WHERE ts / 2 >= 0"
        ),
        number("SELECT count(DISTINCT stream) AS n FROM (SELECT stream, fields FROM events)")
    );
    let seconds = "SELECT count(*) AS n FROM (SELECT DISTINCT ts / 1000000000 FROM events)";
    for by in [
        "date_trunc('second', to_timestamp_nanos(ts))",
        "date_bin(INTERVAL '1 second', to_timestamp_nanos(ts))",
    ] {
        let sql = format!(
            "SELECT count(*) AS n FROM (SELECT {by} AS t, count(*) FROM events GROUP BY 1)"
        );
        assert_eq!(number(&sql), number(seconds), "{sql}");
    }
}
