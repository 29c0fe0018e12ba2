// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Contents of tables: counts and sums of every column compared with a walk over the rows, for real
//! traces of several formats, damaged ones, and several at once.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use lateralis_model::{Event, FieldKind, Interval, Source, Value};
use lateralis_store::{BATCH_ROWS, Facts, Recording, Scan, Session, Table, is_length};
use lateralis_units::Nanos;

fn data(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    if path.exists() {
        return Some(path);
    }
    println!("SKIPPED: no trace at {}", path.display());
    None
}

/// Sums: number of rows, and of the values of every field.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Sums {
    rows: u64,
    times: i128,
    cpus: i128,
    tids: i128,
    pids: i128,
    /// By field name: number of values, and the sum of values, lengths or bits.
    fields: BTreeMap<String, (u64, i128)>,
}

/// A number for a value, if a column has it; `None` for values that are JSON there.
fn number(value: Value<'_>) -> Option<Option<i128>> {
    Some(match value {
        Value::Bool(value) => Some(i128::from(value)),
        Value::Unsigned(value) | Value::Bits(value) => Some(i128::from(value)),
        Value::Signed(value) => Some(i128::from(value)),
        Value::Real(value) => Some(i128::from(value.to_bits())),
        Value::Text(text) => Some(text.to_str().len() as i128),
        Value::Bytes(bytes) => Some(bytes.len() as i128),
        Value::Array(elements) => {
            let mut sum = elements.len() as i128;
            for element in elements {
                sum += number(element.value())??;
            }
            Some(sum)
        }
        Value::Optional(None) => None,
        Value::Optional(Some(inner)) => number(inner.value())?,
        Value::Struct(_) | Value::Variant(..) => return None,
    })
}

const COMMON: [&str; 10] = [
    "ts",
    "recording",
    "stream",
    "cpu",
    "process",
    "pid",
    "thread",
    "tid",
    "application",
    "packet",
];

/// Sums by a walk over the rows.
fn by_rows(recording: &Recording, sums: &mut BTreeMap<String, Sums>) {
    let source = &recording.source;
    let mut facts = Facts::new(source.trace(), &recording.streams);
    let mut told: Vec<(String, i128, u32)> = Vec::new();
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        let at = facts.of(&event, |_, _| {});
        let name = event.class.name.clone();
        let of = sums.entry(name.clone()).or_default();
        of.rows += 1;
        of.times += i128::from(event.time.0);
        of.cpus += at.cpu.map_or(0, |cpu| i128::from(cpu) + 1);
        if let Some(writer) = at.writer {
            of.tids += i128::from(writer.tid);
            told.push((name, i128::from(writer.pid), writer.tid));
        }
        add_fields(&event, of);
    }
    // Processes of threads may be reported after their first events.
    for (name, pid, tid) in told {
        let known = facts.threads().pid(tid);
        let pid = if pid == i128::from(tid) { i128::from(known) } else { pid };
        sums.entry(name).or_default().pids += pid;
    }
}

fn add_fields(event: &Event<'_>, of: &mut Sums) {
    for (member, field) in event.payload().into_iter().flatten() {
        if member.class.structural || is_length(&member.name) {
            continue;
        }
        let mut name = member.name.clone();
        if COMMON.contains(&name.as_str()) {
            name = format!("payload.{name}");
        }
        if let Some(value) = number(field.value()) {
            let sum = of.fields.entry(name).or_default();
            sum.0 += u64::from(value.is_some());
            sum.1 += value.unwrap_or(0);
        }
    }
}

fn cells(array: &dyn Array) -> Vec<Option<i128>> {
    match array.data_type() {
        DataType::Int64 => {
            array.as_primitive::<Int64Type>().iter().map(|v| v.map(i128::from)).collect()
        }
        DataType::UInt64 => {
            array.as_primitive::<UInt64Type>().iter().map(|v| v.map(i128::from)).collect()
        }
        DataType::Float64 => array
            .as_primitive::<Float64Type>()
            .iter()
            .map(|v| v.map(|v| i128::from(v.to_bits())))
            .collect(),
        DataType::Boolean => array.as_boolean().iter().map(|v| v.map(i128::from)).collect(),
        DataType::Utf8 => {
            array.as_string::<i32>().iter().map(|v| v.map(|v| v.len() as i128)).collect()
        }
        DataType::Binary => {
            array.as_binary::<i32>().iter().map(|v| v.map(|v| v.len() as i128)).collect()
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let sum = |element: arrow_array::ArrayRef| {
                element.len() as i128 + cells(&element).into_iter().flatten().sum::<i128>()
            };
            list.iter().map(|v| v.map(sum)).collect()
        }
        DataType::Dictionary(..) => {
            let words = array.as_dictionary::<Int32Type>();
            let texts = words.values().as_string::<i32>();
            words.keys().iter().map(|k| k.map(|k| texts.value(k as usize).len() as i128)).collect()
        }
        other => panic!("no column has the type {other}"),
    }
}

/// All batches of a table.
fn read(session: &Session, table: &Table, scan: &Scan) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for partition in session.partitions(table, scan) {
        session
            .scan(table, &partition, scan, &mut |batch| {
                assert!(batch.num_rows() <= BATCH_ROWS && batch.num_rows() > 0);
                batches.push(batch);
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    batches
}

fn total(batches: &[RecordBatch], name: &str) -> (u64, i128) {
    let mut sum = (0, 0);
    for batch in batches {
        for value in cells(batch.column_by_name(name).unwrap()).into_iter().flatten() {
            sum.0 += 1;
            sum.1 += value;
        }
    }
    sum
}

/// Sums of the table of a class.
fn by_table(session: &Session, table: &Table, expected: &Sums) -> Sums {
    let batches = read(session, table, &Scan::default());
    let cpus = total(&batches, "cpu");
    let mut sums = Sums {
        rows: batches.iter().map(|batch| batch.num_rows() as u64).sum(),
        times: total(&batches, "ts").1,
        cpus: cpus.1 + i128::from(cpus.0),
        tids: total(&batches, "tid").1,
        pids: total(&batches, "pid").1,
        fields: BTreeMap::new(),
    };
    for name in expected.fields.keys() {
        let value = format!("{name}.value");
        let column = if table.schema.column_with_name(&value).is_some() { &value } else { name };
        sums.fields.insert(name.clone(), total(&batches, column));
    }
    sums
}

/// Compares all tables of events of a session with its rows. Returns the number of events.
fn compare(session: &Session) -> u64 {
    compare_but(session, true)
}

/// Like `compare`; threads only if time does not go back, as in damaged traces: tables find the thread of
/// a CPU by time, the walk by the order of the events.
fn compare_but(session: &Session, healthy: bool) -> u64 {
    let mut expected: BTreeMap<String, Sums> = BTreeMap::new();
    for recording in session.recordings() {
        by_rows(recording, &mut expected);
    }
    let mut all = Sums::default();
    for (name, expected) in &expected {
        let table = session.table(name).unwrap_or_else(|| panic!("no table {name}"));
        let mut expected = expected.clone();
        // Values that are JSON in the table are only counted.
        expected.fields.retain(|field, _| is_compared(session, name, field));
        let mut seen = by_table(session, table, &expected);
        if !healthy {
            (expected.tids, expected.pids, seen.tids, seen.pids) = (0, 0, 0, 0);
        }
        assert_eq!(seen, expected, "{name}");
        all.rows += expected.rows;
        all.times += expected.times;
        all.cpus += expected.cpus;
        all.tids += expected.tids;
        all.pids += expected.pids;
    }
    let events = session.table("events").unwrap();
    let mut seen = by_table(session, events, &Sums::default());
    if !healthy {
        (seen.tids, seen.pids) = (0, 0);
    }
    assert_eq!(seen, all, "events");
    let classes = session.table("classes").unwrap();
    let counts = total(&read(session, classes, &Scan::default()), "count");
    assert_eq!(counts.1, i128::from(all.rows), "classes");
    let batches = read(session, events, &Scan::default());
    let fields = total(&batches, "fields");
    assert_eq!(fields.0, all.rows, "every event has fields as JSON");
    for batch in batches.iter().take(2) {
        for text in batch.column_by_name("fields").unwrap().as_string::<i32>().iter().take(500) {
            let value: serde_json::Value = serde_json::from_str(text.unwrap()).unwrap();
            assert!(value.is_object());
        }
    }
    // Damaged packets may have wrong times.
    if healthy {
        halves(session, events, &all);
    }
    all.rows
}

/// Whether all classes of a name have a field in the same type, other than JSON.
fn is_compared(session: &Session, class: &str, field: &str) -> bool {
    let field = field.strip_prefix("payload.").unwrap_or(field);
    let mut kinds = Vec::new();
    for recording in session.recordings() {
        for stream in &recording.source.trace().stream_classes {
            for event in stream.event_classes.iter().filter(|event| event.name == class) {
                let members = event.payload.as_ref().map_or(&[][..], |payload| payload.members());
                for member in members.iter().filter(|member| member.name == field) {
                    let plain = !matches!(&member.class.kind, FieldKind::Array { element, .. }
                        if matches!(element.kind, FieldKind::Array { .. } | FieldKind::Struct(_)));
                    kinds.push((std::mem::discriminant(&member.class.kind), plain));
                }
            }
        }
    }
    kinds.iter().all(|kind| *kind == kinds[0]) && kinds.iter().all(|(_, plain)| *plain)
}

/// Both halves of the time range make up everything, and reading one does not read all packets.
fn halves(session: &Session, events: &Table, all: &Sums) {
    if all.rows == 0 {
        return;
    }
    let middle = Nanos(((all.times / i128::from(all.rows)) as i64).min(i64::MAX - 1));
    let first = Interval { begin: None, end: Some(middle) };
    let second = Interval { begin: Some(Nanos(middle.0 + 1)), end: None };
    let mut rows = 0;
    for interval in [first, second] {
        let scan = Scan { interval, columns: Some(vec![0]), ..Scan::default() };
        for batch in read(session, events, &scan) {
            assert_eq!(batch.num_columns(), 1);
            for time in cells(batch.column(0)).into_iter().flatten() {
                assert!(interval.begin.is_none_or(|begin| i128::from(begin.0) <= time));
                assert!(interval.end.is_none_or(|end| time <= i128::from(end.0)));
                rows += 1;
            }
        }
    }
    assert_eq!(rows, all.rows, "two halves");
    let scan = Scan { limit: Some(3), columns: Some(vec![]), ..Scan::default() };
    for partition in session.partitions(events, &scan) {
        let mut rows = 0;
        let mut count = |batch: RecordBatch| {
            rows += batch.num_rows();
            ControlFlow::Continue(())
        };
        session.scan(events, &partition, &scan, &mut count).unwrap();
        assert!(rows <= 3);
    }
}

#[test]
fn only_events_of_the_kinds_asked_for_are_read() {
    let Some(path) = data("traces/generated/lttng-ust-20k") else { return };
    let session = session(&[path]);
    let events = session.table("events").unwrap();
    let rows = |classes: Option<Vec<String>>| -> usize {
        let scan = Scan { classes, columns: Some(vec![0]), ..Scan::default() };
        read(&session, events, &scan).iter().map(RecordBatch::num_rows).sum()
    };
    let all = rows(None);
    let mut sum = 0;
    let kinds: Vec<&str> =
        session.tables().iter().map(|t| t.name.as_str()).filter(|n| n.contains(':')).collect();
    assert!(kinds.len() > 2);
    for kind in kinds {
        let table = session.table(kind).unwrap();
        let scan = Scan { columns: Some(vec![0]), ..Scan::default() };
        let own: usize = read(&session, table, &scan).iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows(Some(vec![kind.to_owned()])), own, "{kind}");
        sum += own;
    }
    assert_eq!(sum, all);
    let none = Scan { classes: Some(vec!["no such".to_owned()]), ..Scan::default() };
    assert!(session.partitions(events, &none).is_empty());
}

fn session(paths: &[PathBuf]) -> Session {
    Session::new(paths.iter().map(|path| Recording::open(path).unwrap()).collect())
}

/// Compares single traces; with the minimum number of events of each.
fn compare_each(traces: &[(&str, u64)]) {
    for (path, least) in traces {
        let Some(path) = data(path) else { continue };
        let events = compare(&session(std::slice::from_ref(&path)));
        assert!(events >= *least, "{}: only {events} events", path.display());
    }
}

#[test]
fn tables_of_user_space_traces_hold_what_their_events_hold() {
    compare_each(&[
        ("traces/generated/lttng-ust-20k", 20_000),
        ("traces/generated/ctf2-from-lttng-ust-20k", 20_000),
        ("traces/generated/barectf-200k", 200_000),
    ]);
}

#[test]
fn tables_of_other_formats_hold_what_their_events_hold() {
    compare_each(&[
        ("barrelfish/atrace.trc", 350),
        ("traces/generated/perf-sched-1s", 1),
        ("traces/perfetto-MIT/test_trace.perfetto-trace", 1),
        ("traces/pcapng-MIT/genode2sec.pcapng", 1),
    ]);
}

#[test]
fn tables_of_kernel_and_ros_traces_hold_what_their_events_hold() {
    compare_each(&[
        ("traces/ctf1/lttng-ref/basic-kernel-analysis/kernel", 1_000),
        ("traces/ctf1/tracecompass-EPL2/ros2", 1_000),
        ("traces/ctf1/tracecompass-EPL2/funky_trace", 1),
    ]);
}

#[test]
fn tables_of_several_recordings_hold_what_all_of_them_hold() {
    let paths = ["traces/generated/lttng-ust-20k", "barrelfish/atrace.trc"].map(data);
    let [Some(ust), Some(barrelfish)] = paths else { return };
    let twice = [ust.clone(), barrelfish, ust];
    let session = session(&twice);
    let events = compare(&session);
    let recordings = session.table("recordings").unwrap();
    let batches = read(&session, recordings, &Scan::default());
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
    let names = batches[0].column_by_name("recording").unwrap();
    let words = names.as_dictionary::<Int32Type>();
    assert_eq!(words.values().len(), 3, "the same path twice is two recordings");
    assert!(events > 40_000);
    // Three traces opened as one recording give the same result.
    let joined = Recording::open_all(&twice, &Default::default()).unwrap();
    assert_eq!(compare(&Session::new(vec![joined])), events);
}

/// A copy of a trace with some bytes changed and its largest stream cut.
fn damaged(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let mut largest: Option<(u64, PathBuf)> = None;
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        if entry.file_name() != "metadata" {
            let step = bytes.len() / 7 + 1;
            for at in (step..bytes.len()).step_by(step) {
                bytes[at] ^= 0x55;
            }
            let size = bytes.len() as u64;
            if largest.as_ref().is_none_or(|(known, _)| *known < size) {
                largest = Some((size, copy.clone()));
            }
        }
        fs::write(&copy, bytes).unwrap();
    }
    let (size, path) = largest.unwrap();
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(size - size / 5).unwrap();
}

#[test]
fn tables_of_a_damaged_trace_hold_what_can_be_read_and_say_what_cannot() {
    let Some(path) = data("traces/ctf1/lttng-ref/basic-kernel-analysis/kernel") else { return };
    let copy = tempfile::tempdir().unwrap();
    damaged(&path, copy.path());
    let session = session(&[copy.path().to_owned()]);
    assert!(compare_but(&session, false) > 10_000);
    let recording = session.recordings().next().unwrap();
    let mut events = recording.source.events();
    while events.advance() {}
    let expected = recording.all_damage(events.damage());
    let table = session.table("damage").unwrap();
    let batches = read(&session, table, &Scan::default());
    assert!(!expected.is_empty());
    let begins = total(&batches, "begin_bytes");
    let sum = expected.iter().map(|damage| i128::from(damage.begin_bytes)).sum();
    assert_eq!(begins, (expected.len() as u64, sum));
    let classes = read(&session, session.table("classes").unwrap(), &Scan::default());
    let quality = classes[0].column_by_name("quality").unwrap().as_dictionary::<Int32Type>();
    assert_eq!(quality.values().as_string::<i32>().value(0), "lower_bound");
}

#[test]
fn packets_losses_and_streams_are_those_of_the_trace() {
    let Some(path) = data("traces/generated/lttng-ust-20k") else { return };
    let session = session(&[path]);
    let recording = session.recordings().next().unwrap();
    let rows = |name: &str| {
        let batches = read(&session, session.table(name).unwrap(), &Scan::default());
        batches.iter().map(RecordBatch::num_rows).sum::<usize>()
    };
    assert_eq!(rows("streams"), recording.streams.len());
    let packets: u64 = recording.streams.iter().map(|stream| stream.packets).sum();
    assert_eq!(rows("packets") as u64, packets);
    assert_eq!(rows("losses"), recording.source.losses().len());
    let batches = read(&session, session.table("packets").unwrap(), &Scan::default());
    let bytes: u64 = recording.streams.iter().map(|stream| stream.bytes).sum();
    assert_eq!(total(&batches, "bytes").1, i128::from(bytes));
    // Sums over threads and CPUs equal the number of events.
    let events = rows("events") as i128;
    for table in ["threads", "cpus", "applications"] {
        let batches = read(&session, session.table(table).unwrap(), &Scan::default());
        assert_eq!(total(&batches, "events").1, events, "{table}");
    }
}

#[test]
fn a_wrong_name_gets_the_nearest_ones() {
    let Some(path) = data("barrelfish/atrace.trc") else { return };
    let session = session(&[path]);
    assert!(session.table("event").is_none());
    assert_eq!(session.nearest("event")[0], "events");
    assert_eq!(session.nearest("spnas")[0], "spans");
    assert!(session.nearest("zzzzqqqq").is_empty());
    for table in session.tables() {
        assert!(!table.description.is_empty(), "{}", table.name);
        let names: std::collections::BTreeSet<&str> =
            table.schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names.len(), table.schema.fields().len(), "{}", table.name);
    }
}

/// Spans of the tables compared with facts paired by a simple algorithm.
#[test]
fn derived_tables_keep_every_begin_and_every_end() {
    use lateralis_store::facts::Fact;
    for path in ["traces/ctf1/lttng-ref/basic-kernel-analysis/kernel", "barrelfish/atrace.trc"] {
        let Some(path) = data(path) else { continue };
        let session = session(&[path]);
        let recording = session.recordings().next().unwrap();
        let trace = recording.annotated();
        let mut facts = Facts::new(&trace, &recording.streams);
        let (mut begins, mut ends, mut sends, mut receives, mut levels) = (0, 0, 0, 0, 0);
        let mut events = recording.source.events();
        while let Some(event) = events.next_event() {
            facts.of(&event, |_, fact| match fact {
                Fact::Begin { .. } => begins += 1,
                Fact::End { .. } => ends += 1,
                Fact::Whole { .. } => (begins, ends) = (begins + 1, ends + 1),
                Fact::Send { .. } => sends += 1,
                Fact::Receive { .. } => receives += 1,
                Fact::Level { .. } => levels += 1,
                _ => {}
            });
        }
        assert!(begins + sends > 0, "the trace says something");
        let count = |table: &str, status: &str| {
            let batches = read(&session, session.table(table).unwrap(), &Scan::default());
            let of = |batch: &RecordBatch| {
                let words = batch.column_by_name("status").unwrap().as_dictionary::<Int32Type>();
                let texts = words.values().as_string::<i32>();
                words.keys().iter().flatten().filter(|k| texts.value(*k as usize) == status).count()
            };
            batches.iter().map(of).sum::<usize>()
        };
        let complete = count("spans", "complete");
        assert_eq!(complete + count("spans", "unfinished"), begins);
        assert_eq!(complete + count("spans", "orphan"), ends);
        let complete = count("messages", "complete");
        assert_eq!(complete + count("messages", "not_received"), sends);
        assert_eq!(complete + count("messages", "not_sent"), receives);
        let batches = read(&session, session.table("counters").unwrap(), &Scan::default());
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), levels);
        let spans = session.table("spans").unwrap();
        let limited = Scan { limit: Some(2), ..Scan::default() };
        let rows: usize = read(&session, spans, &limited).iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, (begins + count("spans", "orphan")).min(2));
    }
}
