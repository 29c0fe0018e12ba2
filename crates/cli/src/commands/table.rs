// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat table`: what tables a trace has, and one of them as a file or on the screen.

mod follow;

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::PossibleValuesParser;
use lateralis_files::{NewFile, SHARED};
use lateralis_model::Source;
use lateralis_model::terminal::Style;
use lateralis_store::flow::Recorded;
use lateralis_store::places::{Images, Places};
use lateralis_store::{ExportError, Exported, Recording, Scan, Session, Table, TableFormat};
use serde_json::json;

use super::flow::code::{CodeArgs, Hardware, close};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::live_copy::{CopyOptions, LiveCopy};
use crate::moment::{self, Moment};
use crate::output::{self, Page};
use crate::peer_args::PeerArgs;
use crate::selection;

/// Options of `lat table`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    lat table demo                                    all tables, with their columns\n  \
    lat table demo --name spans | head                a table as CSV\n  \
    lat table demo --name spans --column ts,duration,span,key\n  \
    lat table demo --name events --from 1s --until 2s -o events.parquet\n  \
    lat table -f demo --name events --json            events while they are recorded\n  \
    lat table demo --name spans -o spans.arrow        for pyarrow, pandas\n  \
    lat table perf.data --name flow_calls             calls, from Intel PT\n  \
    lat table perf.data --name stack_frames           functions in the stacks of samples\n\n\
    docs/reference/tables.md describes the tables.\n\
    Exit code 1: the trace is damaged; the readable part was written.")]
pub struct TableArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Table to write; without it, the tables are listed
    #[arg(long, value_name = "TABLE")]
    pub name: Option<String>,
    /// Only these columns, in this order
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "name")]
    pub column: Vec<String>,
    /// Output path; its extension selects the format: parquet, csv, jsonl, arrow, arrows
    #[arg(short, long, value_name = "PATH", requires = "name")]
    pub output: Option<PathBuf>,
    /// Output format, if the extension does not select it
    #[arg(long, value_name = "FORMAT", requires = "name",
        value_parser = PossibleValuesParser::new(FORMATS.iter().map(|(word, _)| *word)))]
    pub to: Option<String>,
    /// Write at most this many rows
    #[arg(long, value_name = "NUMBER", requires = "name")]
    pub limit: Option<usize>,
    /// Only events on these CPUs, in tables of events
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', requires = "name")]
    pub cpu: Vec<u32>,
    /// Only events from this time on: 1.5s (after the beginning), -1s (before the end), or any time that
    /// lat prints: HH:MM:SS or a date in UTC, nanoseconds, @SECONDS since 1970
    #[arg(long, value_name = "TIME", requires = "name", allow_hyphen_values = true)]
    pub from: Option<Moment>,
    /// Only events before this time; forms as for --from
    #[arg(long, value_name = "TIME", requires = "name", allow_hyphen_values = true)]
    pub until: Option<Moment>,
    /// Keep writing rows while the recording grows, in time order and only once they are final; TRACE may
    /// be HOST:PORT of a live recording
    #[arg(long, short, requires = "name")]
    pub follow: bool,
    #[command(flatten)]
    pub code: CodeArgs,
    #[command(flatten)]
    pub peer: PeerArgs,
    /// Overwrite existing output
    #[arg(long)]
    pub force: bool,
    /// Print JSON: the list as one object, a table as one line per row
    #[arg(long)]
    pub json: bool,
}

/// Words of the formats, which are also the endings of their files; those of Arrow are as
/// Arrow recommends.
const FORMATS: [(&str, TableFormat); 5] = [
    ("parquet", TableFormat::Parquet),
    ("csv", TableFormat::Csv),
    ("jsonl", TableFormat::JsonLines),
    ("arrow", TableFormat::Arrow),
    ("arrows", TableFormat::ArrowStream),
];

/// Lists the tables, or writes one.
pub fn run(mut args: TableArgs) -> Result<ExitStatus, CliError> {
    if let (true, Some(name)) = (args.follow, args.name.clone()) {
        let live = LiveCopy::begin(&args.inputs.traces, &args.peer, CopyOptions::default())?;
        if let Some(live) = &live {
            args.inputs.traces = vec![live.path().to_owned()];
        }
        return follow::run(&args, &name, live.as_ref());
    }
    let recording = args.inputs.open()?;
    let extent = moment::extent(&recording, [args.from, args.until]);
    let healthy = recording.source.damage().is_empty() && recording.source.faults().is_empty();
    let session = session(&args, recording)?;
    let Some(name) = &args.name else {
        list(&session, args.json)?;
        return Ok(if healthy { ExitStatus::Fine } else { ExitStatus::Problems });
    };
    let table = session.table(name).ok_or_else(|| unknown_table(&session, name))?;
    let scan = Scan {
        columns: columns(table, &args.column)?,
        interval: selection::between(extent, args.from, args.until),
        cpus: (!args.cpu.is_empty()).then(|| args.cpu.clone()),
        classes: None,
        limit: args.limit,
        any_order: false,
        weighs: None,
    };
    let format = format(&args)?;
    let exported = match args.output.as_deref().filter(|path| path.as_os_str() != "-") {
        Some(path) => to_file(&session, table, &scan, format, path, &args)?,
        None => {
            let mut out = BufWriter::new(output::data(style(format)));
            let exported = session.export(table, &scan, format, &mut out);
            let exported = exported.map_err(|error| explain(error, None))?;
            out.flush()?;
            exported
        }
    };
    for damage in &exported.damage {
        tell!("damage    {damage}");
    }
    let is_complete = !name.starts_with(FLOW) || session.into_flow().is_none_or(close);
    let fine = healthy && exported.damage.is_empty() && is_complete;
    Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// How names of tables begin that are decoded from packets of processors.
const FLOW: &str = "flow_";

/// The same of tables of call stacks.
const STACKS: &str = "stack_";

/// With call stacks and what processors executed, where that is asked for: the files of programs are looked
/// for then.
fn session(args: &TableArgs, recording: Recording) -> Result<Session, CliError> {
    let session = with_flow(args, recording)?;
    if !args.name.as_ref().is_none_or(|name| name.starts_with(STACKS)) {
        return Ok(session);
    }
    let files = args.code.files();
    let open = move || -> Box<dyn Images> { Box::new(files.clone()) };
    Ok(session.with_stacks(Arc::new(open)))
}

fn with_flow(args: &TableArgs, recording: Recording) -> Result<Session, CliError> {
    if !args.name.as_ref().is_none_or(|name| name.starts_with(FLOW)) {
        return Ok(Session::new(vec![recording]));
    }
    let hardware = Hardware::read(&args.inputs.traces)?;
    if hardware.is_empty() {
        return Ok(Session::new(vec![recording]));
    }
    let recorded = match args.name {
        Some(_) => args.code.recorded(&recording, hardware)?,
        None => Recorded::raw(Places::without_events(args.code.files()), Vec::new(), &[]),
    };
    Ok(Session::new(vec![recording]).with_flow(recorded))
}

fn list(session: &Session, json: bool) -> Result<(), CliError> {
    let about = |field: &arrow_schema::Field, key: &str| {
        field.metadata().get(key).cloned().unwrap_or_default()
    };
    if json {
        let column = |field: &std::sync::Arc<arrow_schema::Field>| {
            json!({
                "name": field.name(),
                "type": field.data_type().to_string(),
                "unit": about(field, "unit"),
                "description": about(field, "description"),
            })
        };
        let table = |table: &Table| {
            let columns: Vec<_> = table.schema.fields().iter().map(column).collect();
            json!({ "name": table.name, "description": table.description, "columns": columns })
        };
        let tables: Vec<_> = session.tables().iter().map(table).collect();
        return output::print_json(&json!({ "tables": tables }));
    }
    let mut text = Page::new();
    for table in session.tables() {
        line!(text, "{}", table.name);
        line!(text, "    {}", table.description);
        let column = |field: &std::sync::Arc<arrow_schema::Field>| match about(field, "unit") {
            unit if unit.is_empty() => field.name().clone(),
            unit => format!("{} ({unit})", field.name()),
        };
        let columns: Vec<String> = table.schema.fields().iter().map(column).collect();
        line!(text, "    {}", columns.join(", "));
    }
    line!(text, "next      lat table TRACE --name TABLE");
    output::print(&text)
}

fn unknown_table(session: &Session, name: &str) -> CliError {
    let advice = match session.nearest(name).as_slice() {
        [] => "lat table TRACE lists them".to_owned(),
        near => format!("did you mean {}?", near.join(", ")),
    };
    CliError::new("no such table", name, advice)
}

fn columns(table: &Table, names: &[String]) -> Result<Option<Vec<usize>>, CliError> {
    if names.is_empty() {
        return Ok(None);
    }
    let known: Vec<&str> = table.schema.fields().iter().map(|f| f.name().as_str()).collect();
    let index = |name: &String| {
        known.iter().position(|known| known == name).ok_or_else(|| {
            let place = format!("{}: {name}", table.name);
            CliError::new("no such column", place, format!("it has {}", known.join(", ")))
        })
    };
    names.iter().map(index).collect::<Result<Vec<usize>, CliError>>().map(Some)
}

fn format(args: &TableArgs) -> Result<TableFormat, CliError> {
    let ending = args.output.as_deref().and_then(Path::extension).and_then(|e| e.to_str());
    let is_file = args.output.as_deref().is_some_and(|path| path.as_os_str() != "-");
    let word = match (&args.to, ending) {
        (Some(word), _) => word.clone(),
        (None, Some(ending)) => ending.to_ascii_lowercase(),
        (None, None) if args.json => "jsonl".to_owned(),
        (None, None) if !is_file => "csv".to_owned(),
        (None, None) => String::new(),
    };
    let word = if word == "ndjson" { "jsonl" } else { word.as_str() };
    let found = FORMATS.iter().find(|(known, _)| *known == word).map(|(_, format)| *format);
    found.ok_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().map(|(known, _)| *known).collect();
        let place = args.output.as_deref().unwrap_or(Path::new("-")).display().to_string();
        let advice = format!("its ending tells no format: use --to with {}", known.join(", "));
        CliError::new("cannot write the table", place, advice)
    })
}

/// How a terminal is shown what the format would let it have.
fn style(format: TableFormat) -> Style {
    match format {
        TableFormat::JsonLines => Style::Json,
        _ => Style::Text,
    }
}

/// Writes under another name first: what is half done must not look whole.
fn to_file(
    session: &Session,
    table: &Table,
    scan: &Scan,
    format: TableFormat,
    path: &Path,
    args: &TableArgs,
) -> Result<Exported, CliError> {
    let failed = |error: io::Error| CliError::at_path("cannot write", path, &error);
    let is_there = fs::metadata(path);
    let is_device = is_there.as_ref().is_ok_and(|about| !about.is_file() && !about.is_dir());
    if is_there.is_ok_and(|about| about.is_dir()) || (path.exists() && !is_device && !args.force) {
        let place = path.display().to_string();
        return Err(CliError::new("cannot write", place, "it exists: remove it or use --force"));
    }
    let export = |out: &mut dyn Write| {
        let exported = session.export(table, scan, format, out);
        let exported = exported.map_err(|error| explain(error, Some(path)))?;
        out.flush().map_err(failed)?;
        Ok::<_, CliError>(exported)
    };
    let exported = if is_device {
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        export(&mut BufWriter::new(file))?
    } else {
        let mut out = BufWriter::new(NewFile::beside(path, SHARED).map_err(failed)?);
        let exported = export(&mut out)?;
        let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        let published = if args.force { file.publish() } else { file.publish_new() };
        published.map_err(failed)?;
        exported
    };
    let (place, rows) = (path.display().to_string(), exported.rows);
    if args.json {
        output::print_json(&json!({ "output": place, "table": table.name, "rows": rows }))?;
    } else {
        let rows = crate::values::count(rows);
        output::print(&Page::of_line(format_args!("written   {place}: {rows} rows")))?;
    }
    Ok(exported)
}

fn explain(error: ExportError, path: Option<&Path>) -> CliError {
    match (error, path) {
        (ExportError::Io(cause), Some(path)) => CliError::at_path("cannot write", path, &cause),
        // A closed pipe there is no failure.
        (ExportError::Io(cause), None) => CliError::Output(cause),
        (other, _) => CliError::new(other.to_string(), "", ""),
    }
}
