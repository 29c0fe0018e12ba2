// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables as files: all formats have the same contents, and other programs can read them.

use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
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

/// Fields of a line of CSV.
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

/// A Python with pyarrow.
fn pyarrow() -> Option<String> {
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let import = Command::new(&python).args(["-c", "import pyarrow.parquet"]).output();
    if import.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("SKIPPED: no {python} with pyarrow");
    None
}

#[test]
fn arrow_files_and_streams_are_read_by_pyarrow() {
    let Some(session) = session("traces/generated/lttng-ust-20k") else { return };
    let Some(python) = pyarrow() else { return };
    let directory = tempfile::tempdir().unwrap();
    // Every row as a line of JSON, and the schema.
    let script = "import sys, json, pyarrow as pa, pyarrow.ipc as ipc\n\
        f = pa.memory_map(sys.argv[1])\n\
        r = ipc.open_file(f) if sys.argv[2] == 'file' else ipc.open_stream(f)\n\
        t = r.read_all()\n\
        u = lambda f: (f.metadata or {}).get(b'unit', b'').decode()\n\
        d = lambda f: (f.metadata or {}).get(b'description', b'').decode()\n\
        print(json.dumps([t.schema.metadata[b'table'].decode()] \
            + [[f.name, str(f.type), u(f), d(f)] for f in t.schema]))\n\
        [print(json.dumps(row)) for row in t.to_pylist()]";
    let class = session.tables().iter().find(|table| table.name.contains(':')).unwrap();
    for name in ["events", "packets", "threads", "counters", &class.name] {
        let (json, expected) = write(&session, name, &Scan::default(), TableFormat::JsonLines);
        let expected_rows = lines(&json);
        for (kind, format) in [("file", TableFormat::Arrow), ("stream", TableFormat::ArrowStream)] {
            let (bytes, exported) = write(&session, name, &Scan::default(), format);
            assert_eq!(exported, expected, "{name} as {kind}");
            let path = directory.path().join(kind);
            std::fs::write(&path, bytes).unwrap();
            let read = Command::new(&python).args(["-c", script]).arg(&path).arg(kind).output();
            let read = read.unwrap();
            let error = String::from_utf8_lossy(&read.stderr);
            assert!(read.status.success(), "{name} as {kind}: {error}");
            let rows = lines(&read.stdout);
            assert_eq!(rows[0][0], name);
            let table = session.table(name).unwrap();
            for (field, told) in table.schema.fields().iter().zip(&rows[0].as_array().unwrap()[1..])
            {
                let about = |key: &str| field.metadata().get(key).cloned().unwrap_or_default();
                assert_eq!(told[0], *field.name());
                assert_eq!(
                    (told[2].as_str(), told[3].as_str()),
                    (Some(&*about("unit")), Some(&*about("description")))
                );
            }
            assert!(rows[1..] == expected_rows[..], "{name} as {kind}");
        }
    }
}

#[test]
fn words_of_an_arrow_file_are_those_of_all_its_batches() {
    // Two recordings: words change from one batch to another.
    let place =
        |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    let paths = [place("traces/generated/lttng-ust-20k"), place("barrelfish/atrace.trc")];
    if let Some(missing) = paths.iter().find(|path| !path.exists()) {
        println!("SKIPPED: no trace at {}", missing.display());
        return;
    }
    let open = |path: &PathBuf| Recording::open(path).unwrap();
    let session = Session::new(paths.iter().map(open).collect());
    let columns = Some(vec![0, 1, 10]);
    let scan = Scan { columns, ..Scan::default() };
    let (bytes, exported) = write(&session, "events", &scan, TableFormat::Arrow);
    let (json, _) = write(&session, "events", &scan, TableFormat::JsonLines);
    let reader = arrow_ipc::reader::FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
    let mut told = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let texts = |column: usize| {
            let words = batch.column(column).as_dictionary::<Int32Type>();
            let texts = words.values().as_string::<i32>().clone();
            words
                .keys()
                .iter()
                .map(move |key| key.map(|key| texts.value(key as usize).to_owned()))
                .collect::<Vec<_>>()
        };
        let times = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        told.extend(times.into_iter().zip(texts(1)).zip(texts(2)));
    }
    let expected: Vec<_> = lines(&json)
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().map(str::to_owned);
            ((row["ts"].as_i64().unwrap(), text("recording")), text("class"))
        })
        .collect();
    assert_eq!(told.len() as u64, exported.rows);
    assert!(told == expected);
    let recordings: std::collections::BTreeSet<_> = told.iter().map(|((_, r), _)| r).collect();
    assert_eq!(recordings.len(), 2);
}

#[test]
fn parquet_is_read_by_pyarrow() {
    let Some(session) = session("traces/generated/lttng-ust-20k") else { return };
    let Some(python) = pyarrow() else { return };
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
