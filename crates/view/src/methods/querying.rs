// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `sql`: runs the separate program `lat-sql`.

use std::env;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lateralis_store::flow::Recorded;
use lateralis_store::places::Places;
use serde_json::{Value, json};

use crate::answer::Problem;
use crate::params::Params;
use crate::session::Session;

/// File name of the program.
const PROGRAM: &str = "lat-sql";
/// Maximum number of bytes read from its output.
const ANSWER_MAX: u64 = 16 << 20;
/// Maximum number of rows in a response.
const ROWS_MAX: usize = 10_000;
/// Time limit of a statement.
const PATIENCE: Duration = Duration::from_secs(120);

/// Maximum number of listed tables; they are used for completion.
const TABLES_MAX: usize = 5000;

/// Tables available to a statement, with their columns.
pub fn tables(session: &Session) -> Result<Value, Problem> {
    let recording = session.recording_again()?;
    let mut tables = lateralis_store::Session::new(vec![recording]);
    if let Some(images) = session.images().cloned() {
        if !session.lanes.meta().flows.is_empty() {
            // Only the columns are needed.
            let places = Places::without_events(images.open());
            tables = tables.with_flow(Recorded::raw(places, Vec::new(), &[]));
        }
        tables = tables.with_stacks(Arc::new(move || images.open()));
    }
    let told = tables.tables().iter().take(TABLES_MAX).map(|table| {
        let columns: Vec<&String> =
            table.schema.fields().iter().map(|field| field.name()).collect();
        json!({ "name": table.name, "columns": columns })
    });
    Ok(json!({ "tables": told.collect::<Vec<_>>() }))
}

/// Runs a statement and returns its rows.
pub fn sql(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let text = params.text("text")?;
    let failed = |cause: String| Problem::new("the statement failed", "sql", cause);
    let mut child = Command::new(program()?)
        .args(["--format", "jsonl", "-c", text])
        .args(session.paths())
        .args(session.images().map_or(&[][..], |images| &images.options))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|cause| failed(cause.to_string()))?;
    let (out, said) = (child.stdout.take(), child.stderr.take());
    let said = thread::spawn(move || read(said));
    let out = thread::spawn(move || read(out));
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            // A program that writes more than the limit ends when its pipe is closed.
            Ok(None) if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed("it took more than two minutes".into()));
            }
        }
    };
    let text = out.join().unwrap_or_default();
    let said = said.join().unwrap_or_default();
    // Status 1: success, but the trace is damaged.
    if !matches!(status.code(), Some(0 | 1)) && text.is_empty() {
        return Err(failed(said.trim().trim_start_matches("error: ").to_owned()));
    }
    let mut columns: Vec<String> = Vec::new();
    let mut rows: Vec<Value> = Vec::new();
    let mut lines = text.lines();
    for line in lines.by_ref().take(ROWS_MAX) {
        let Ok(Value::Object(row)) = serde_json::from_str::<Value>(line) else { break };
        for name in row.keys() {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        rows.push(columns.iter().map(|name| row.get(name).cloned().unwrap_or_default()).collect());
    }
    let more = lines.next().is_some() || text.len() as u64 >= ANSWER_MAX;
    Ok(json!({ "columns": columns, "rows": rows, "more": more }))
}

fn read(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // After a read error, the bytes read so far are used.
        let _ = from.take(ANSWER_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether there is a program that can answer.
pub fn is_installed() -> bool {
    program().is_ok()
}

/// Finds the program in the folder of this one, or on the `PATH`.
fn program() -> Result<PathBuf, Problem> {
    let beside = env::current_exe().ok().and_then(|lat| Some(lat.parent()?.join(PROGRAM)));
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    let found = beside.into_iter().chain(on_path).find(|path| path.is_file());
    found.ok_or_else(|| {
        let advice = "build it with ./x build sql in the sources of Lateralis";
        Problem::new("lat-sql is not installed", "neither beside lat nor on the PATH", advice)
    })
}
