// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables as files: the three formats say the same, and others can read them.

use std::path::{Path, PathBuf};
use std::process::Command;

use lateralis_store::{Exported, Recording, Scan, Session, TableFormat};
use serde_json::Value;

fn session(path: &str) -> Option<Session> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    if !path.exists() {
        println!("SKIPPED: no trace at {}", path.display());
        return None;
    }
    Some(Session::new(vec![Recording::open(&path).unwrap()]))
}

fn write(session: &Session, table: &str, scan: &Scan, format: TableFormat) -> (Vec<u8>, Exported) {
    let mut out = Vec::new();
    let table = session.table(table).unwrap();
    let exported = session.export(table, scan, format, &mut out).unwrap();
    (out, exported)
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A line of CSV as its fields.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut inside) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if inside && characters.peek() == Some(&'"') => {
                field.push('"');
                characters.next();
            }
            '"' => inside = !inside,
            ',' if !inside => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

#[test]
fn csv_and_json_lines_say_the_same() {
    let Some(session) = session("traces/generated/lttng-ust-20k") else { return };
    for table in ["events", "packets", "classes", "threads"] {
        let scan = Scan { limit: Some(700), ..Scan::default() };
        let (csv, of_csv) = write(&session, table, &scan, TableFormat::Csv);
        let (json, of_json) = write(&session, table, &scan, TableFormat::JsonLines);
        let objects = lines(&json);
        assert_eq!((of_csv.rows, of_json.rows), (objects.len() as u64, objects.len() as u64));
        assert!(!objects.is_empty() && objects.len() <= 700, "{table}");
        let csv = String::from_utf8(csv).unwrap();
        let mut rows = csv.split_terminator("\r\n").map(fields);
        let names = rows.next().unwrap();
        let rows: Vec<Vec<String>> = rows.collect();
        assert_eq!(rows.len(), objects.len(), "{table}");
        for (row, object) in rows.iter().zip(&objects) {
            for (name, cell) in names.iter().zip(row) {
                let expected = match &object[name] {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                assert_eq!(*cell, expected, "{table}: {name}");
            }
        }
    }
}

#[test]
fn chosen_columns_come_in_the_order_asked_for() {
    let Some(session) = session("barrelfish/atrace.trc") else { return };
    let table = session.table("events").unwrap();
    let at = |name: &str| table.schema.index_of(name).unwrap();
    let scan = Scan { columns: Some(vec![at("class"), at("ts")]), ..Scan::default() };
    let (csv, exported) = write(&session, "events", &scan, TableFormat::Csv);
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.starts_with("class,ts\r\n"), "{}", &csv[..40]);
    assert_eq!(exported.rows, 350);
    assert_eq!(csv.lines().count(), 351);
}

#[test]
fn parquet_is_read_by_pyarrow() {
    let Some(session) = session("traces/generated/lttng-ust-20k") else { return };
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let import = Command::new(&python).args(["-c", "import pyarrow.parquet"]).output();
    if !import.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: no {python} with pyarrow");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file: PathBuf = directory.path().join("events.parquet");
    let (parquet, exported) = write(&session, "events", &Scan::default(), TableFormat::Parquet);
    std::fs::write(&file, parquet).unwrap();
    let script = "import sys, pyarrow.parquet as p, pyarrow.compute as c\n\
        t = p.read_table(sys.argv[1])\n\
        print(t.num_rows, c.max(t['ts']), c.sum(t['cpu']), len(set(t['class'].to_pylist())))";
    let output = Command::new(&python).args(["-c", script]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (json, _) = write(&session, "events", &Scan::default(), TableFormat::JsonLines);
    let objects = lines(&json);
    let ints = |name: &'static str| objects.iter().filter_map(move |o| o[name].as_i64());
    let (last, cpus) = (ints("ts").max().unwrap(), ints("cpu").sum::<i64>());
    let classes: std::collections::BTreeSet<&str> =
        objects.iter().filter_map(|object| object["class"].as_str()).collect();
    let expected = format!("{} {last} {cpus} {}", exported.rows, classes.len());
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected);
}
