// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Another engine over the same tables gives the same rows: DuckDB on Parquet files written by `lat
//! table`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::place::{data, demo, folder, lat, outcome, run};

const OF_EVENTS: &str = include_str!("statements/events.sql");

const OF_MEANINGS: &str = include_str!("statements/meanings.sql");

const OF_FIELDS: &str = include_str!("statements/fields.sql");

/// A Python with DuckDB: the one that `./x` made for tests, otherwise any.
fn python() -> Option<PathBuf> {
    let own = env::var_os("LATERALIS_TEST_PYTHON").map(PathBuf::from);
    let has = |python: &PathBuf| {
        let asked = Command::new(python).args(["-c", "import duckdb"]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    let found = own.into_iter().chain(["python3".into()]).find(has);
    if found.is_none() {
        println!("SKIPPED: no Python with DuckDB: ./x test installs it");
    }
    found
}

/// Rows as text that is the same for both engines; sorted unless they are ordered.
fn normal(rows: Vec<Vec<Value>>, is_ordered: bool) -> Vec<String> {
    let cell = |value: &Value| match value {
        // Means are computed in a different order; 128-bit sums come as numbers of any kind.
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap();
            if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.6e}") }
        }
        other => other.to_string(),
    };
    let row = |row: Vec<Value>| row.iter().map(cell).collect::<Vec<_>>().join("|");
    let mut rows: Vec<String> = rows.into_iter().map(row).collect();
    if !is_ordered {
        rows.sort();
    }
    rows
}

/// The statements of a file, each on one line, without its comments.
fn statements(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("--")).map(str::trim);
    let text = lines.collect::<Vec<_>>().join(" ");
    let statements = text.split(';').map(str::trim).filter(|statement| !statement.is_empty());
    statements.map(str::to_owned).collect()
}

/// Runs statements in both engines; returns the number of rows.
fn compare(trace: &Path, name: &str, text: &str) -> usize {
    let statements = statements(text);
    let (Some(lat), Some(python)) = (lat(), python()) else { return usize::MAX };
    let place = folder(name);
    let tables = run(trace, &["--json", "-c", "SHOW TABLES"]);
    let tables: Vec<Value> = serde_json::from_slice(&tables.stdout).unwrap();
    for table in tables.iter().filter(|table| table["table_schema"] == "traces") {
        let table = table["table_name"].as_str().unwrap();
        if !statements.iter().any(|statement| statement.contains(table)) {
            continue;
        }
        let path = place.join(format!("{}.parquet", table.replace(':', "%3A")));
        let output = Command::new(&lat)
            .args(["table", "--name", table, "-o"])
            .arg(&path)
            .arg(trace)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{table}: {}", outcome(&output).1);
    }
    let list = place.join("statements");
    fs::write(&list, statements.join("\n")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql/duckdb.py");
    let output = Command::new(python).arg(script).arg(&place).arg(&list).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", outcome(&output).1);
    let theirs = String::from_utf8(output.stdout).unwrap();
    let theirs: Vec<Vec<Vec<Value>>> =
        theirs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(theirs.len(), statements.len());
    let mut count = 0;
    for (statement, theirs) in statements.iter().zip(theirs) {
        // CSV has no types and JSON no order of columns: rows are lists of their cells.
        let output = run(trace, &["--format", "jsonl", "-c", &positional(statement)]);
        assert_eq!(output.status.code(), Some(0), "{statement}: {}", outcome(&output).1);
        let text = String::from_utf8(output.stdout).unwrap();
        let row = |line: &str| -> Vec<Value> {
            let row: Value = serde_json::from_str(line).unwrap();
            let row = row.as_object().unwrap();
            (0..row.len()).map(|column| row[&format!("c{column}")].clone()).collect()
        };
        let ours: Vec<Vec<Value>> = text.lines().map(row).collect();
        let is_ordered = statement.contains("LIMIT");
        count += ours.len();
        assert_eq!(normal(ours, is_ordered), normal(theirs, is_ordered), "{statement}");
    }
    count
}

/// The statement with columns named c0, c1, …, so that equal names are not lost in JSON.
fn positional(statement: &str) -> String {
    let columns = columns(statement);
    let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
    format!("WITH result({}) AS ({statement}) SELECT * FROM result", names.join(", "))
}

/// Number of columns of the outermost SELECT: commas outside of parentheses up to FROM.
fn columns(statement: &str) -> usize {
    let mut depth = 0_i32;
    let mut columns = 0;
    for word in statement.replace('(', " ( ").replace(')', " ) ").replace(',', " , ").split(' ') {
        match word {
            "(" => depth += 1,
            ")" => depth -= 1,
            "SELECT" if depth == 0 => columns = 1,
            "," if depth == 0 && columns > 0 => columns += 1,
            "FROM" if depth == 0 => return columns,
            _ => {}
        }
    }
    columns
}

#[test]
fn another_engine_gives_the_same_rows() {
    for path in ["traces/generated/lttng-ust-20k", "traces/generated/perf-sched-1s"] {
        let Some(trace) = data(path) else { return };
        let name = format!("differential-{}", path.rsplit('/').next().unwrap());
        assert!(compare(&trace, &name, OF_EVENTS) > 100);
    }
    let Some(trace) = data("traces/generated/lttng-ust-20k") else { return };
    assert!(compare(&trace, "differential-fields", OF_FIELDS) > 20);
}

#[test]
fn another_engine_gives_the_same_rows_of_meanings() {
    let Some(trace) = demo() else { return };
    assert!(compare(trace, "differential-meanings", OF_MEANINGS) > 100);
}

#[test]
fn columns_are_counted() {
    assert_eq!(columns(&statements(OF_EVENTS)[0]), 1);
    assert_eq!(columns("SELECT a, f(b, c) FROM t, u"), 2);
    assert_eq!(columns("WITH e AS (SELECT a, b FROM t) SELECT a, b, c FROM e"), 3);
}
