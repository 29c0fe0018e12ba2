// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CSV, JSON lines and Parquet, as read by Python and its packages.

use lateralis_traces::Target;
use serde_json::{Value, json};

use crate::tools::{python, script};
use crate::{rich, written};

/// Expected messages about values of the trace that become JSON text.
fn said(format: &str, more: &[(&str, u64)]) -> Vec<(String, u64)> {
    let mut said = vec![
        (format!("the type of blobs ({format} gets hexadecimal text)"), 1),
        (format!("the type of infinite numbers and of NaN ({format} gets text)"), 2),
        ("bytes of texts that are no characters (replaced by U+FFFD)".to_owned(), 1),
    ];
    said.extend(more.iter().map(|&(what, count)| (what.to_owned(), count)));
    said.sort();
    said
}

/// The fields of `app:KINDS` as JSON text.
fn kinds() -> Value {
    let mut kinds = rich::kinds();
    let members = kinds.as_object_mut().unwrap();
    members.insert("blob".to_owned(), json!("00abff"));
    members.insert("choice".to_owned(), json!(-5));
    members.insert("choice.choice".to_owned(), json!("right"));
    members.insert("mode".to_owned(), json!(2));
    members.insert("mode.label".to_owned(), json!("FAST"));
    members.remove("gone");
    kinds
}

#[test]
fn json_lines_are_read_by_python() {
    let (path, dropped) = written(Target::JsonLines, "rich.jsonl");
    let more = [
        ("the environment of the trace (JSON lines has no place for it)", 1),
        ("name and UUID of the trace (JSON lines has no place for it)", 1),
    ];
    assert_eq!(dropped, said("JSON", &more));
    let Some(python) = python("json") else { return };
    let program = "import sys, json; print(json.dumps([json.loads(l) for l in open(sys.argv[1])]))";
    let lines = script(&python, program, &path);
    let lines = lines.as_array().unwrap();
    assert_eq!(lines.len(), 20);
    assert_eq!(
        lines[0],
        json!({
            "time_ns": rich::BASE + 1000, "time": "1700000000.000001000", "name": "app:KINDS",
            "stream": "cpu0", "cpu": 0, "pid": 100, "tid": 101, "process": "ui \"one\"",
            "thread": "main\nline", "context": { "prio": -20 }, "fields": kinds(),
        })
    );
    let tick = lines.iter().find(|line| line["name"] == "dev:TICK").unwrap();
    assert_eq!(
        *tick,
        json!({
            "time_ns": rich::BASE + 504_000, "time": "1700000000.000504000", "name": "dev:TICK",
            "stream": "device", "fields": {},
        })
    );
    assert_eq!((&lines[18]["loss"], &lines[18]["count"]), (&json!("full"), &json!(3)));
    assert_eq!((&lines[19]["loss"], lines[19].get("count")), (&json!("discarded"), None));
}

#[test]
fn csv_is_read_by_python() {
    let (path, dropped) = written(Target::Csv, "rich.csv");
    let expected: Vec<(String, u64)> = [
        ("borders of arrays (CSV is flat)", 2),
        ("bytes of texts that are no characters (replaced by U+FFFD)", 1),
        ("counts of lost events (CSV has no place for them)", 2),
        ("name and UUID of the trace (CSV has no place for it)", 1),
        ("names of nested fields (CSV is flat)", 3),
        ("names of processes and threads (CSV has no column for them)", 1),
        ("names of the chosen options of variants", 1),
        ("the environment of the trace (CSV has no place for it)", 1),
        ("the type of blobs (CSV gets hexadecimal text)", 1),
    ]
    .map(|(what, count)| (what.to_owned(), count))
    .into();
    assert_eq!(dropped, expected);
    let Some(python) = python("csv, json") else { return };
    let program = "import sys, csv, json\n\
        rows = csv.reader(open(sys.argv[1], newline='', encoding='utf-8'))\n\
        print(json.dumps(list(rows)))";
    let rows = script(&python, program, &path);
    assert_eq!(rows[0], json!(["timestamp", "cpuid", "thd_id", " nargs", "args...", "text"]));
    let first = rows[1].as_array().unwrap();
    let head = ["1700000000000001000", "0", "101", " 29", "-20", "1", "200"];
    assert_eq!(first[..7], head.map(|text| json!(text)));
    let huge = ["18446744073709551615", "-9223372036854775808", "0.5", "0.1", "NaN", "-inf"];
    assert_eq!(first[7..13], huge.map(|text| json!(text)));
    let texts = ["say \"hi\",\n\tback\\slash;", "a\0b", "\u{fffd}\u{fffd}A", "ü€", "00abff"];
    assert_eq!(first[13..18], texts.map(|text| json!(text)));
    let nested = ["1", "x", "1", "2", "3", "1", "one", "2", "two", "-5", "7", "", "2", "9", "5"];
    assert_eq!(first[18..33], nested.map(|text| json!(text)));
    let text = first[33].as_str().unwrap();
    assert!(text.starts_with("app:KINDS prio=-20 yes=true small=200 "), "{text}");
    assert!(text.contains(" mode=\"FAST\" other_mode=9 "), "{text}");
    assert_eq!(first.len(), 34);
    assert_eq!(rows.as_array().unwrap().len(), 19);
}

#[test]
fn parquet_is_read_by_pyarrow_and_duckdb() {
    let (path, dropped) = written(Target::Parquet, "rich.parquet");
    assert_eq!(dropped, said("Parquet", &[]));
    let Some(python) = python("pyarrow.parquet, duckdb") else { return };
    let program = "import sys, json, duckdb, pyarrow.parquet as pq\n\
        table = pq.read_table(sys.argv[1])\n\
        meta = {k.decode(): v.decode() for k, v in table.schema.metadata.items()}\n\
        times = table['time'].cast('string').to_pylist()\n\
        rows = [[r['time_ns'], time, r['stream'], r['cpu'], r['pid'], r['tid'], \
        r['process'], r['thread'], r['name'], json.loads(r['fields'])] \
        for r, time in zip(table.drop_columns(['time']).to_pylist(), times)]\n\
        query = f\"select count(*), max(time_ns), count(distinct name) from '{sys.argv[1]}'\"\n\
        print(json.dumps([meta, rows, duckdb.sql(query).fetchall()]))";
    let read = script(&python, program, &path);
    let meta = &read[0];
    assert_eq!(
        (&meta["hostname"], &meta["answer"], &meta["trace.name"]),
        (&json!("the \"box\""), &json!("42"), &json!("rich"))
    );
    assert_eq!(meta["trace.uuid"], "2a6422d0-6cee-11e0-8c08-cb07d7b3a564");
    assert_eq!(meta["loss"], "lost: 3 events (full)");
    assert_eq!(meta["loss.2"], "lost: events (discarded)");
    let mut fields = kinds();
    fields.as_object_mut().unwrap().insert("prio".to_owned(), json!(rich::PRIORITY));
    assert_eq!(
        read[1][0],
        json!([
            rich::BASE + 1000,
            "2023-11-14 22:13:20.000001000Z",
            "cpu0",
            0,
            100,
            101,
            "ui \"one\"",
            "main\nline",
            "app:KINDS",
            fields,
        ])
    );
    assert_eq!(read[2], json!([[18, rich::BASE + 504_000, 14]]));
}
