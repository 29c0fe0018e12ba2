// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat-sql` as used by people and programs: formats, exit codes, pipes, signals, the shell.

use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow::ipc::reader::{FileReader, StreamReader};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::place::{self, command, data, folder, outcome, rows, run};

const TRACE: &str = "traces/generated/lttng-ust-20k";
const SQL: &str = "SELECT class, count(*) AS n, min(ts) AS first FROM events GROUP BY class \
                   ORDER BY n DESC, class";

/// Joins without end, and needs little memory.
const ENDLESS: &str = "SELECT count(*) FROM events a JOIN generate_series(1, 1000000000000) b \
                       ON a.ts > b.value";

/// Class, count and first time, from the JSON.
fn expected(trace: &Path) -> Vec<(String, i64, i64)> {
    let row = |row: &serde_json::Value| {
        let number = |name: &str| row[name].as_i64().unwrap();
        (row["class"].as_str().unwrap().to_owned(), number("n"), number("first"))
    };
    rows(trace, SQL).iter().map(row).collect()
}

fn of_batches(batches: impl Iterator<Item = RecordBatch>) -> Vec<(String, i64, i64)> {
    let mut found = Vec::new();
    for batch in batches {
        let number = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>();
        let classes = batch.column_by_name("class").unwrap().as_string::<i32>();
        for row in 0..batch.num_rows() {
            let class = classes.value(row).to_owned();
            found.push((class, number("n").value(row), number("first").value(row)));
        }
    }
    found
}

#[test]
fn all_formats_hold_the_same_rows() {
    let Some(trace) = data(TRACE) else { return };
    let expected = expected(&trace);
    assert!(expected.len() > 1);
    let stdout = |format: &str| run(&trace, &["--format", format, "-c", SQL]).stdout;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    // Lines of JSON and of CSV.
    let lines = text(stdout("jsonl"));
    let parse = |line: &str| -> (String, i64, i64) {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| row[name].as_i64().unwrap();
        (row["class"].as_str().unwrap().into(), number("n"), number("first"))
    };
    assert_eq!(lines.lines().map(parse).collect::<Vec<_>>(), expected);
    let csv = text(stdout("csv"));
    let line = |(class, n, first): &(String, i64, i64)| format!("{class},{n},{first}");
    let wanted: Vec<String> =
        ["class,n,first".to_owned()].into_iter().chain(expected.iter().map(line)).collect();
    assert_eq!(csv.lines().collect::<Vec<_>>(), wanted);
    // Aligned for people.
    let table = text(stdout("table"));
    let cells: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(cells[0], ["class", "n", "first"]);
    assert_eq!(cells[1][1], expected[0].1.to_string());
    assert_eq!(table.lines().last(), Some(format!("({} rows)", expected.len()).as_str()));
    // Columnar: as a stream, and as files.
    let stream = StreamReader::try_new(Cursor::new(stdout("arrow")), None).unwrap();
    assert_eq!(of_batches(stream.map(Result::unwrap)), expected);
    let place = folder("sql-formats");
    for name in ["out.arrow", "out.parquet"] {
        let path = place.join(name);
        let path_text = path.to_str().unwrap();
        let output = run(&trace, &["-c", SQL, "-o", path_text]);
        assert_eq!(outcome(&output), (Some(0), String::new()));
        let file = fs::File::open(&path).unwrap();
        let found = if name.ends_with("arrow") {
            of_batches(FileReader::try_new(file, None).unwrap().map(Result::unwrap))
        } else {
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
            of_batches(reader.map(Result::unwrap))
        };
        assert_eq!(found, expected, "{name}");
        // An existing file is kept unless replacing is requested.
        let (code, said) = outcome(&run(&trace, &["-c", SQL, "-o", path_text]));
        assert_eq!(code, Some(2));
        assert!(said.contains("--force"), "{said}");
        assert_eq!(run(&trace, &["-c", SQL, "-o", path_text, "--force"]).status.code(), Some(0));
    }
    // A failed result leaves no file.
    let broken = place.join("broken.csv");
    let sql = "SELECT CAST(class AS BIGINT) FROM events";
    let output = run(&trace, &["-c", sql, "-o", broken.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_dir(&place).unwrap().count(), 2);
}

#[test]
fn a_plan_is_shown_line_by_line() {
    let Some(trace) = data(TRACE) else { return };
    let output = run(&trace, &["-c", "EXPLAIN SELECT * FROM events WHERE ts > 5"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.lines().count() > 4 && !shown.contains('\u{fffd}'), "{shown}");
    assert!(
        shown.lines().any(|line| line.trim_start().starts_with("TableScan: events")),
        "{shown}"
    );
}

/// A copy of a trace, its largest stream cut in the middle.
fn damaged(trace: &Path, name: &str) -> PathBuf {
    let place = folder(name);
    let mut largest: Option<(u64, PathBuf)> = None;
    let mut folders = vec![trace.to_owned()];
    while let Some(from) = folders.pop() {
        for entry in fs::read_dir(&from).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let to = place.join(path.strip_prefix(trace).unwrap());
            if path.is_dir() {
                fs::create_dir_all(&to).unwrap();
                folders.push(path);
                continue;
            }
            let length = fs::copy(&path, &to).unwrap();
            if path.file_name().is_some_and(|name| name != "metadata" && name != "index")
                && largest.as_ref().is_none_or(|(most, _)| *most < length)
            {
                largest = Some((length, to));
            }
        }
    }
    let (length, path) = largest.unwrap();
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length * 2 / 3 + 5).unwrap();
    place
}

#[test]
fn exit_codes_tell_damage_from_mistakes() {
    let Some(trace) = data(TRACE) else { return };
    let healthy = run(&trace, &["-c", "SELECT count(*) FROM events"]);
    assert_eq!(outcome(&healthy), (Some(0), String::new()));
    let damaged = damaged(&trace, "sql-damaged");
    let output = run(&damaged, &["--json", "-c", "SELECT count(*) AS n FROM events"]);
    let (code, said) = outcome(&output);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("damaged") || said.contains("could not be read"), "{said}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let whole = rows(&trace, "SELECT count(*) AS n FROM events")[0]["n"].as_u64().unwrap();
    let healthy = found[0]["n"].as_u64().unwrap();
    assert!(healthy > 0 && healthy < whole, "{healthy} of {whole}");
    let places = rows(&damaged, "SELECT file, reason, begin_bytes, end_bytes FROM damage");
    assert!(!places.is_empty());
    for arguments in [
        &["-c", "SELECT"][..],
        &["-c", "SELECT x FROM events"],
        &["-c", "SELECT 1", "-f", "x"],
        &["-f", "/nowhere/x.sql"],
        &["-c", ""],
        &["-c", "SELECT 1", "--format", "xml"],
        &["-c", "SELECT 1", "--memory", "much"],
    ] {
        let (code, said) = outcome(&run(&trace, arguments));
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains("error"), "{arguments:?}: {said}");
    }
    let (code, said) = outcome(&run(Path::new("/nowhere"), &["-c", "SELECT 1"]));
    assert_eq!(code, Some(2));
    assert!(said.starts_with("error: "), "{said}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let Some(trace) = data(TRACE) else { return };
    for format in ["table", "csv", "json", "jsonl", "arrow", "parquet"] {
        let sql = "SELECT a.ts, b.class FROM events a CROSS JOIN events b";
        let mut child = command(&trace, &["--format", format, "-c", sql])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut some = [0; 4];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(outcome(&output), (Some(0), String::new()), "{format}");
    }
}

/// Waits until the program uses the CPU: a query runs.
fn until_busy(pid: u32) {
    for _ in 0..3000 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        if ticks > 100 {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("it never began");
}

#[test]
fn ctrl_c_ends_a_query() {
    let Some(trace) = data(TRACE) else { return };
    let sql = ENDLESS;
    let child = command(&trace, &["-c", sql])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until_busy(child.id());
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(outcome(&output), (Some(130), "cancelled\n".to_owned()));
}

#[test]
fn a_recursion_without_end_ends_by_ctrl_c() {
    let Some(trace) = data(TRACE) else { return };
    let end = "SELECT count(*) FROM r";
    for (name, step) in [("counting", "SELECT x + 1 FROM r"), ("the same", "SELECT x FROM r")] {
        let sql = format!("WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL {step}) {end}");
        let child = command(&trace, &["-c", &sql])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until_busy(child.id());
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(outcome(&output), (Some(130), "cancelled\n".to_owned()), "{name}");
    }
}

#[test]
fn tables_columns_and_functions_are_described() {
    let Some(trace) = data(TRACE) else { return };
    let output = run(&trace, &["--describe", "--json"]);
    assert_eq!(outcome(&output), (Some(0), String::new()));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let calls = told["functions"].as_array().unwrap().iter().map(|f| f["call"].as_str().unwrap());
    let calls: Vec<&str> = calls.collect();
    assert!(calls.contains(&"ns('50us')") && calls.contains(&"FROM stats_cpus([from [, until]])"));
    assert!(told["all_functions"].as_array().unwrap().iter().any(|name| name == "percentile"));
    // The same as text: each table once, each column with its unit.
    let text = run(&trace, &["--describe"]);
    assert_eq!(outcome(&text), (Some(0), String::new()));
    let text = String::from_utf8(text.stdout).unwrap();
    let mut columns = 0;
    for table in told["tables"].as_array().unwrap() {
        for column in table["columns"].as_array().unwrap() {
            let name = lateralis_sql::fault::quoted(column["name"].as_str().unwrap());
            let unit = column["unit"].as_str().unwrap();
            let is_it = |line: &str| {
                let mut words = line.split_whitespace();
                line.starts_with("    ")
                    && words.next() == Some(&name)
                    && (unit.is_empty() || words.nth(1) == Some(unit))
            };
            assert!(text.lines().any(is_it), "{name} {unit}");
            columns += 1;
        }
    }
    assert!(columns > 100, "{columns}");
    let (code, said) = outcome(&run(&trace, &["--describe", "-c", "SELECT 1"]));
    assert_eq!(code, Some(2), "{said}");
    // As in `lat table`.
    if let Some(lat) = place::lat() {
        let trace = trace.to_str().unwrap();
        assert_eq!(told["tables"], place::lat_json(&lat, &["table", trace, "--json"])["tables"]);
    }
}

#[test]
fn hostile_statements_are_refused_in_words() {
    let Some(trace) = data(TRACE) else { return };
    let place = folder("sql-hostile");
    let mut statements = vec![
        ("terms", format!("SELECT 1{}", "+1".repeat(9000))),
        ("conditions", format!("SELECT 1 WHERE 1=1{}", " OR 1=1".repeat(4000))),
        ("parentheses", format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000))),
        ("calls", format!("SELECT {}1{}", "abs(".repeat(3000), ")".repeat(3000))),
        ("negations", format!("SELECT {}1", "- ".repeat(9000))),
        ("nots", format!("SELECT {}true", "NOT ".repeat(9000))),
        ("unions", format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(4000))),
        ("joins", format!("SELECT 1 FROM events{}", ", events".repeat(5000))),
        ("subqueries", format!("{}SELECT 1{}", "SELECT * FROM (".repeat(900), ")".repeat(900))),
        ("casts", format!("SELECT 1{}", "::int".repeat(5000))),
        ("words", "SELECT 1 ".repeat(15_000)),
        ("a file", "SELECT * FROM '/etc/passwd'".to_owned()),
        ("writes", "COPY (SELECT 1) TO '/tmp/never.csv'".to_owned()),
        ("settings", "SET datafusion.execution.batch_size = 0".to_owned()),
        ("huge text", "SELECT repeat('x', 2000000000)".to_owned()),
        ("huge array", "SELECT range(1, 100000000000)".to_owned()),
        ("sorting", "SELECT a.ts, b.fields FROM events a, events b ORDER BY 2, 1".to_owned()),
    ];
    let mut bomb = "WITH a0 AS (SELECT 1 AS x)".to_owned();
    for step in 1..60 {
        bomb += &format!(", a{step} AS (SELECT p.x FROM a{0} p, a{0} q)", step - 1);
    }
    let long = "(SELECT string_agg(class, ',') AS x FROM events)";
    statements.extend([
        ("long texts", format!("SELECT max(a.x || b.ts::text) FROM {long} a, events b")),
        ("long lists", "SELECT cardinality(array_agg(a.ts)) FROM events a, events b".to_owned()),
        (
            "texts that double",
            "WITH RECURSIVE r AS (SELECT 'xx' AS x UNION ALL SELECT x || x FROM r) \
             SELECT max(length(x)) FROM r"
                .to_owned(),
        ),
    ]);
    statements.push(("with", bomb + " SELECT * FROM a59"));
    let mut views = "CREATE VIEW v0 AS SELECT ts FROM events;".to_owned();
    for step in 1..60 {
        views += &format!("CREATE VIEW v{step} AS SELECT p.ts FROM v{0} p, v{0} q;", step - 1);
    }
    statements.push(("views", views + "SELECT 1"));
    for (name, sql) in statements {
        let path = place.join("hostile.sql");
        fs::write(&path, sql).unwrap();
        let arguments = ["--memory", "8M", "-f", path.to_str().unwrap()];
        let (code, said) = outcome(&run(&trace, &arguments));
        assert_eq!(code, Some(2), "{name}: {said}");
        assert!(said.starts_with("error: ") && said.len() < 2000, "{name}: {said}");
        assert!(!said.contains("panicked"), "{name}: {said}");
    }
    // The longest permitted chain.
    let sql = format!("SELECT 1{} AS n", "+1".repeat(1000));
    assert_eq!(rows(&trace, &sql)[0]["n"], 1001);
}

/// Types into the shell on a terminal of its own, and prints its screen.
const TERMINAL: &str = r#"
import os, pty, select, sys, time
program, steps = sys.argv[1:-1], sys.argv[-1]
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(TERM='xterm', COLUMNS='100')
    os.execv(program[0], program)
shown = b''
def until(wanted):
    global shown
    deadline = time.monotonic() + 120
    while wanted not in shown:
        if time.monotonic() > deadline:
            sys.exit('never shown: %r in %r' % (wanted, shown))
        if select.select([terminal], [], [], 1)[0]:
            try: shown += os.read(terminal, 65536)
            except OSError: break
    if wanted not in shown:
        sys.exit('never shown: %r in %r' % (wanted, shown))
    shown = shown[shown.index(wanted) + len(wanted):]
for step in steps.split('\n'):
    kind, _, text = step.partition(' ')
    text = text.encode().decode('unicode_escape').encode('latin-1')
    if kind == 'see': until(text)
    elif kind == 'type': os.write(terminal, text)
    elif kind == 'pause': time.sleep(float(text))
status = os.waitpid(pid, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status))
"#;

fn shell(trace: &Path, home: &Path, steps: &str) {
    let output = Command::new("python3")
        .args(["-c", TERMINAL, env!("CARGO_BIN_EXE_lat-sql")])
        .arg(trace)
        .arg(steps)
        .env("XDG_STATE_HOME", home)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (code, said) = outcome(&output);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn the_shell_completes_remembers_cancels_and_goes_on() {
    let Some(trace) = data(TRACE) else { return };
    if !Command::new("python3").arg("--version").output().is_ok_and(|out| out.status.success()) {
        println!("SKIPPED: no python3 for a terminal");
        return;
    }
    let home = folder("sql-home");
    let steps = [
        "see lat> ",
        // A table completed by Tab, over two lines.
        "type SELECT 40 + count(*) * 0 + 2 AS answer\\n",
        "type FROM even\\t;\\n",
        "see answer",
        "see 42",
        "see (1 row)",
        "see lat> ",
        "type SELECT clas FROM events;\\n",
        "see did you mean class?",
        "see lat> ",
        "type .schema spans\\n",
        "see duration",
        "see lat> ",
        "type \\\\d spans\\n",
        "see duration",
        "see lat> ",
        "type .tabels\\n",
        "see did you mean .tables?",
        "see lat> ",
        // Ctrl-C ends the query and not the shell.
        &format!("type {ENDLESS};\\n"),
        "pause 2",
        "type \\x03",
        "see cancelled",
        "see lat> ",
        "type SELECT 6 * 7 AS again;\\n",
        "see 42",
        "see lat> ",
        "type \\x04",
    ];
    shell(&trace, &home, &steps.join("\n"));
    // The next shell has the history: the arrow key recalls the last statement.
    let history = fs::read_to_string(home.join("lateralis/sql-history")).unwrap();
    assert!(history.contains("SELECT 6 * 7 AS again;"), "{history}");
    let steps = ["see lat> ", "type \\x1b[A\\n", "see 42", "see lat> ", "type .quit\\n"];
    shell(&trace, &home, &steps.join("\n"));
}
