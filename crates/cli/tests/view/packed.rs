// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Overlapping spans and activities that exceed the number of drawn rows: lookup by position and export,
//! compared with the list from which they were generated.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lateralis_traces::OpenOptions;
use lateralis_view::{Opening, Session};
use serde_json::{Value, json};

use super::client::{Viewer, get};
use super::growing::ask;
use crate::place::Place;

/// A request: begin and end in nanoseconds, and its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    begin: i64,
    end: i64,
    row: i64,
}

/// Twice, more than 256 requests are open at the same time, and end in another order than they began.
fn requests() -> Vec<Request> {
    let burst = |(at, many): (i64, i64)| {
        (0..many).map(move |row| {
            let end = at + 1000 + row * 7 % many;
            Request { begin: (at + row) * 1000, end: end * 1000, row }
        })
    };
    [(1000, 300), (5000, 281)].into_iter().flat_map(burst).collect()
}

/// Writes the requests as spans of Chrome JSON, and as marks in which a script finds them.
fn written(place: &Place) -> PathBuf {
    let mut events: Vec<(i64, Value)> = Vec::new();
    for (id, request) in (0u64..).zip(requests()) {
        let mut tell = |ns: i64, phase: &str, name: &str| {
            let event = json!({
                "ph": phase, "cat": "app", "name": name, "id": id, "pid": 5, "tid": 7, "ts": ns / 1000,
                "s": "t", "args": { "number": id },
            });
            events.push((ns, event));
        };
        let begins = if id % 2 == 0 { "begins even" } else { "begins odd" };
        tell(request.begin, "b", "request");
        tell(request.begin, "i", begins);
        tell(request.end, "i", "ends");
        tell(request.end, "e", "request");
    }
    events.sort_by_key(|(time, _)| *time);
    let events: Vec<Value> = events.into_iter().map(|(_, event)| event).collect();
    let path = place.0.join("deep.json");
    fs::write(&path, json!({ "traceEvents": events }).to_string()).expect("written");
    path
}

const SCRIPT: &str = r#"activity("found").begin("begins*").end("ends").key("number");"#;

/// Returns the request nearest to a time among those on rows that are drawn as one; of several, the one on
/// the first row.
fn nearest(all: &[Request], time: i64, within: i64) -> Option<Request> {
    let distance = |one: &Request| (one.begin - time).max(time - one.end).max(0);
    let packed = all.iter().filter(|one| one.row >= 255 && distance(one) <= within);
    packed.min_by_key(|one| (distance(one), one.row)).copied()
}

/// Returns the lane, the id and the description of the last row of spans, of a script or of the schema.
fn last_row(session: &Session, is_of_script: bool) -> (Value, Value) {
    let open = ask(session, "open", json!({}));
    let lanes = open["lanes"].as_array().unwrap().clone();
    let has = |row: &&Value| row["kind"] == "spans" && row["script"].is_u64() == is_of_script;
    let of = |lane: &Value| {
        let rows = lane["rows"].as_array().unwrap();
        Some((lane["id"].clone(), rows.iter().rfind(has)?.clone()))
    };
    lanes.iter().find_map(of).expect("a row")
}

#[test]
fn what_is_under_the_pointer_is_the_nearest_of_all_that_are_drawn_in_one_row() {
    let place = Place::new();
    let path = written(&place);
    let opening = Opening::new(&[path], &OpenOptions::default()).unwrap();
    let session = opening.index(&mut |_, _| {}).unwrap();
    let all = requests();
    let script = ask(&session, "script", json!({ "name": "found", "text": SCRIPT }));
    assert_eq!(script["count"], all.len());
    let told = script["rows"].as_array().unwrap();
    assert_eq!((told.len(), &told[255]["packed"]), (256, &json!(300 - 255)), "{script}");
    let origin = session.lanes.meta().origin;
    let classes = ask(&session, "open", json!({}))["classes"].as_array().unwrap().clone();
    let odd = classes.iter().find(|class| class["name"] == "begins odd").expect("a class");
    let filter = ask(&session, "filter", json!({ "classes_off": [odd["id"]] }))["filter"].clone();
    let even: Vec<Request> = all.iter().copied().step_by(2).collect();
    for (is_of_script, filter, expected) in [
        (false, json!(0), &all),
        (true, json!(0), &all),
        (false, filter.clone(), &all),
        (true, filter, &even),
    ] {
        let (lane, row) = last_row(&session, is_of_script);
        assert_eq!((&row["depth"], &row["packed"]), (&json!(255), &json!(300 - 255)), "{row}");
        let (mut found, mut beside) = (0, 0);
        for step in 0..3000 {
            let (time, within) = (step * 2_300 - 300_000 - origin, step % 7 * 20_000);
            let asked = json!({
                "lane": lane, "row": row["row"], "t": time, "within": within, "filter": filter,
            });
            let thing = ask(&session, "at", asked)["thing"].clone();
            let nearest = nearest(expected, time + origin, within);
            let ends = nearest.map(|one| (json!(one.begin - origin), json!(one.end - origin)));
            let told = (!thing.is_null()).then(|| (thing["begin"].clone(), thing["end"].clone()));
            assert_eq!(told, ends, "{time} {within} {filter} {thing}");
            found += usize::from(nearest.is_some());
            beside += usize::from(nearest.is_some_and(|one| one.row > 255));
        }
        assert!(found > 300 && beside > 50, "{found} {beside}");
    }
}

/// Returns the contents of a Parquet file read by pyarrow; prints a message and returns `None` if pyarrow is
/// missing.
fn parquet(path: &Path) -> Option<Value> {
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import pyarrow.parquet"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: no {python} with pyarrow");
        return None;
    }
    let program = "import sys, json, pyarrow.parquet as pq\n\
        table = pq.read_table(sys.argv[1])\n\
        columns = [table[name] for name in sys.argv[2:]]\n\
        numbers = [c.cast('int64') if 'timestamp' in str(c.type) else c for c in columns]\n\
        print(json.dumps(list(zip(*[column.to_pylist() for column in numbers]))))";
    let run = Command::new(&python).args(["-c", program]).arg(path).args(COLUMNS).output();
    let output = run.expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Columns of spans that the generated data determine.
const COLUMNS: [&str; 8] =
    ["begin_ns", "end_ns", "duration_ns", "name", "key", "pid", "tid", "quality"];

fn same(format: &str, rows: &[Value], expected: &[Value]) {
    for (row, expected) in rows.iter().zip(expected) {
        assert_eq!(row, expected, "{format}");
    }
    assert_eq!(rows.len(), expected.len(), "{format}");
}

#[test]
fn spans_of_more_rows_than_are_drawn_are_exported_all() {
    let place = Place::new();
    written(&place);
    let viewer = Viewer::start(&place, &["deep.json"]);
    // In the order of their begins, in which they were generated.
    let row = |(id, one): (u64, Request)| {
        let duration = one.end - one.begin;
        json!([one.begin, one.end, duration, "request", id.to_string(), 5, 7, "exact"])
    };
    let expected: Vec<Value> = (0..).zip(requests()).map(row).collect();
    let export = |format: &str| {
        get(
            &viewer.address,
            &format!("/export?table=activities&filter=0&format={format}&token={}", viewer.token),
        )
    };
    let csv = String::from_utf8(export("csv")).expect("text");
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().expect("names").split(',').collect();
    let number = |text: &str| text.parse::<i64>().map_or_else(|_| json!(text), |n| json!(n));
    let of_csv = lines.map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |name: &&str| {
            let text = cells[names.iter().position(|known| known == name).expect("a column")];
            if *name == "key" { json!(text) } else { number(text) }
        };
        Value::Array(COLUMNS.iter().map(cell).collect())
    });
    same("CSV", &of_csv.collect::<Vec<_>>(), &expected);
    let text = String::from_utf8(export("json")).expect("text");
    let of_json = text.lines().map(|line| {
        let row: Value = serde_json::from_str(line).expect("a row");
        Value::Array(COLUMNS.iter().map(|name| row[*name].clone()).collect())
    });
    same("JSON", &of_json.collect::<Vec<_>>(), &expected);
    let file = place.0.join("spans.parquet");
    fs::write(&file, export("parquet")).expect("written");
    if let Some(rows) = parquet(&file) {
        same("Parquet", rows.as_array().expect("rows"), &expected);
    }
}
