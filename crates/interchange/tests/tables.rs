// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CSV, JSON lines and Parquet of one small trace, and Parquet beside pyarrow and DuckDB
//! where those are installed.

use std::process::Command;

use lateralis_interchange::{csv, jsonl, parquet};
use lateralis_model::{
    Clock, EventClass, FieldClass, FieldKind, IntegerClass, Interval, Label, Loss, LossCause,
    MemoryTrace, Range, StreamClass, Writer,
};
use lateralis_units::{CpuId, Nanos};

/// Two processors, every kind of field.
fn sample(count: u64) -> MemoryTrace {
    let mut builder = MemoryTrace::builder("test", 1 << 30);
    let clock = builder.clock(Clock::new("c", 1_000_000_000, 0, 0));
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..Default::default() });
    let state = FieldClass::new(FieldKind::Unsigned(IntegerClass {
        bits: 8,
        labels: vec![Label { name: "IDLE".into(), ranges: vec![Range { low: 0, high: 0 }] }],
        ..IntegerClass::default()
    }));
    let payload = FieldClass::structure([
        ("arg", FieldClass::unsigned(32, lateralis_model::Base::Decimal)),
        ("delta", FieldClass::i64()),
        ("ratio", FieldClass::real()),
        ("text", FieldClass::text()),
        ("flag", FieldClass::boolean()),
        ("state", state),
        ("list", FieldClass::array(FieldClass::u64(), None)),
        ("maybe", FieldClass::optional(FieldClass::u64())),
    ]);
    let event = EventClass {
        name: "app:STEP, \"first\"".into(),
        payload: Some(payload),
        ..EventClass::default()
    };
    let event = builder.event_class(class, event);
    let streams = [0, 1].map(|cpu| builder.stream(class, &format!("cpu{cpu}"), Some(CpuId(cpu))));
    builder.names().processes.insert(7, "app".into());
    for n in 0..count {
        let writer = (n % 2 == 0).then_some(Writer { pid: 7, tid: 70 });
        builder
            .event(streams[(n % 2) as usize], event, n * 10, writer)
            .u64(n)
            .i64(-(n as i64))
            .real(n as f64 / 2.0)
            .text(if n % 3 == 0 { "a,\"b\"" } else { "" })
            .u64(n % 2)
            .u64(n % 2)
            .array(2, |pending| pending.u64(n).u64(u64::MAX))
            .option(u32::from(n % 4 == 0))
            .option_value(n)
            .end()
            .unwrap();
    }
    builder.loss(Loss {
        stream: streams[1],
        cause: LossCause::Full,
        count: Some(5),
        interval: Interval { begin: None, end: Some(Nanos(20)) },
    });
    builder.finish()
}

trait OptionValue: Sized {
    /// The value of the optional field, where `n` says that it is there.
    fn option_value(self, n: u64) -> Self;
}

impl OptionValue for lateralis_model::Pending<'_> {
    fn option_value(self, n: u64) -> Self {
        if n.is_multiple_of(4) { self.u64(n) } else { self }
    }
}

#[test]
fn csv_has_the_columns_of_the_seed() {
    let mut out = Vec::new();
    let dropped = csv::write(&sample(2), &mut out, csv::Options::default()).unwrap();
    assert!(!dropped.is_empty());
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "0,0,70, 9,0,0,0,\"a,\"\"b\"\"\",0,0,0,18446744073709551615,0\n\
         10,1,0, 9,1,-1,0.5,\"\",1,1,1,18446744073709551615,\n"
    );
    let mut out = Vec::new();
    csv::write(&sample(1), &mut out, csv::Options { header: true, text: true }).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("timestamp,cpuid,thd_id, nargs,args...,text\n0,0,70, 9,"), "{text}");
    let quoted = "\"app:STEP, \"\"first\"\" arg=0 delta=0 ratio=0.0 text=\"\"a,\\\"\"b\\\"\"\"\" \
                  flag=false state=\"\"IDLE\"\" list=[0,18446744073709551615] maybe=0\"\n";
    assert!(text.ends_with(quoted), "{text}");
}

#[test]
fn json_lines_say_everything() {
    let mut out = Vec::new();
    jsonl::write(&sample(2), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        r#"{"time_ns":0,"time":"0.000000000","name":"app:STEP, \"first\"","stream":"cpu0","cpu":0,"#
            .to_owned()
            + r#""pid":7,"tid":70,"process":"app","fields":{"arg":0,"delta":0,"ratio":0.0,"#
            + r#""text":"a,\"b\"","flag":false,"state":0,"state.label":"IDLE","#
            + r#""list":[0,18446744073709551615],"maybe":0}}"#
    );
    assert!(!lines[1].contains("pid") && !lines[1].contains("maybe"), "{}", lines[1]);
    assert_eq!(
        lines[2],
        r#"{"end_ns":20,"end":"0.000000020","loss":"full","count":5,"stream":"cpu1"}"#
    );
}

#[test]
fn json_lines_name_the_values_of_lists_and_the_option_of_a_variant() {
    let mut builder = MemoryTrace::builder("test", 1 << 20);
    let class = builder.stream_class(StreamClass::default());
    let label = Label { name: "IDLE".into(), ranges: vec![Range { low: 0, high: 0 }] };
    let state = FieldClass::new(FieldKind::Unsigned(IntegerClass {
        labels: vec![label],
        ..IntegerClass::default()
    }));
    let member = |name: &str, class: &FieldClass| (name.to_owned(), class.clone());
    let either = FieldKind::Variant(
        [("number", FieldClass::u64()), ("state", state.clone())]
            .map(|(name, class)| lateralis_model::Member { name: name.to_owned(), class })
            .into(),
    );
    let payload = FieldClass::structure([
        member("states", &FieldClass::array(state, None)),
        member("plain", &FieldClass::array(FieldClass::u64(), None)),
        member("either", &FieldClass::new(either)),
    ]);
    let class_of_event =
        EventClass { name: "e".into(), payload: Some(payload), ..EventClass::default() };
    let event = builder.event_class(class, class_of_event);
    let stream = builder.stream(class, "", None);
    builder
        .event(stream, event, 0, None)
        .array(2, |pending| pending.u64(0).u64(9))
        .array(1, |pending| pending.u64(0))
        .option(1)
        .u64(0)
        .end()
        .unwrap();
    let mut out = Vec::new();
    jsonl::write(&builder.finish(), &mut out).unwrap();
    // A stream without a clock has no times.
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "{\"name\":\"e\",\"fields\":{\"states\":[0,9],\"states.label\":[\"IDLE\",null],\
         \"plain\":[0],\"either\":0,\"either.label\":\"IDLE\",\"either.choice\":\"state\"}}\n"
    );
}

fn python(modules: &str) -> Option<String> {
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or("python3".to_owned());
    let found = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("SKIPPED: python3 has not {modules}");
    None
}

fn run(python: &str, script: &str, file: &std::path::Path) -> String {
    let output = Command::new(python).args(["-c", script]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn scratch(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned();
    folder.join(format!("{name}-{}.parquet", std::process::id()))
}

/// More rows than a row group has.
const ROWS: u64 = 140_000;

#[test]
fn parquet_is_read_by_pyarrow_and_duckdb() {
    let Some(python) = python("pyarrow.parquet, duckdb") else { return };
    let path = scratch("events");
    let mut out = Vec::new();
    parquet::write(&sample(ROWS), &mut out).unwrap();
    std::fs::write(&path, &out).unwrap();
    let script = r#"
import sys, json, duckdb, pyarrow.parquet as pq
f = pq.ParquetFile(sys.argv[1])
t = f.read()
assert f.metadata.num_row_groups == 2
s = f.metadata.row_group(1).column(0).statistics
print(t.num_rows, t.column_names, s.min, s.max, f.metadata.row_group(0).column(2).statistics.null_count)
times, cpus, pids, names, fields = (t[c].to_pylist() for c in ('time_ns','cpu','pid','name','fields'))
for n in range(t.num_rows):
    d = json.loads(fields[n])
    assert times[n] == n * 10 and cpus[n] == n % 2 and pids[n] == (7 if n % 2 == 0 else None)
    assert names[n] == 'app:STEP, "first"' and d['arg'] == n and d['list'] == [n, 2**64-1]
what = "count(*), max(time_ns), sum(cpu), count(pid), any_value(process)"
q = duckdb.sql(f"select {what} from '{sys.argv[1]}'")
print(q.fetchall(), f.metadata.metadata[b'loss'].decode())
"#;
    let text = run(&python, script, &path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        text,
        "140000 ['time_ns', 'stream', 'cpu', 'pid', 'tid', 'process', 'thread', 'name', 'fields'] \
         1310720 1399990 0\n[(140000, 1399990, 70000, 70000, 'app')] lost: 5 events (full)\n"
    );
}

#[test]
fn tables_of_classes_have_typed_columns() {
    let Some(python) = python("pyarrow.parquet, duckdb") else { return };
    let path = scratch("class");
    let trace = sample(ROWS);
    let mut names = Vec::new();
    parquet::write_classes(&trace, &mut |name| {
        names.push(name.to_owned());
        Ok(Box::new(std::fs::File::create(&path)?))
    })
    .unwrap();
    assert_eq!(names, ["app_STEP___first_"]);
    let script = r#"
import sys, duckdb, pyarrow.parquet as pq
t = pq.read_table(sys.argv[1])
types = [(f.name, str(f.type).replace('extension<arrow.json>', 'string')) for f in t.schema]
print(types[5:])
c = {n: t[n].to_pylist() for n in t.column_names}
for n in range(t.num_rows):
    assert c['arg'][n] == n and c['delta'][n] == -n and c['ratio'][n] == n / 2
    assert c['text'][n] == ('a,"b"' if n % 3 == 0 else '') and c['flag'][n] == (n % 2 == 1)
    assert c['state'][n] == n % 2 and c['state.label'][n] == ('IDLE' if n % 2 == 0 else None)
    assert c['maybe'][n] == (n if n % 4 == 0 else None)
print(duckdb.sql(f"select sum(arg), min(delta), count(maybe) from '{sys.argv[1]}'").fetchall())
"#;
    let text = run(&python, script, &path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        text,
        "[('arg', 'uint32'), ('delta', 'int64'), ('ratio', 'double'), ('text', 'string'), \
         ('flag', 'bool'), ('state', 'uint32'), ('state.label', 'string'), ('list', 'string'), \
         ('maybe', 'uint64')]\n[(9799930000, -139999, 35000)]\n"
    );
}
