// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat-sql`: SQL over traces. `lat sql` starts it with the same arguments.

mod target;

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use clap::Parser;
use lateralis_images::ImageFiles;
use lateralis_model::Source;
use lateralis_model::terminal::shown;
use lateralis_sql::answers::Lat;
use lateralis_sql::engine::{Engine, Limits};
use lateralis_sql::fault::lines;
use lateralis_sql::output::Format;
use lateralis_sql::session::{Place, Session, Stop};
use lateralis_sql::{describe, memory, panics, shell};
use lateralis_store::Recording;
use lateralis_store::flow::Recorded;
use lateralis_store::places::{Images, Places};
use lateralis_traces::{OpenOptions, hardware};

use crate::target::Target;

/// All memory is counted: there is no other limit on values made by a statement.
#[global_allocator]
static MEMORY: memory::Counted = memory::Counted;

/// Stack of the planning thread: deeply nested statements are rejected long before it overflows.
const STACK_BYTES: usize = 256 << 20;
/// Stack of the threads that run a query, which walk plans as well.
const WORKER_STACK_BYTES: usize = 32 << 20;
/// Largest size of a file of statements.
const MOST_SQL_BYTES: u64 = 4 << 20;

/// Ask traces in SQL.
#[derive(Debug, Parser)]
#[command(
    name = "lat-sql",
    version,
    max_term_width = 100,
    after_help = "Without -c and -f, statements are read from standard input; on a terminal that is a \
        shell with history and completion, .help tells more.\n\n\
        Functions for time lines, beside those of DataFusion:\n  \
        ns('50us'), duration(ns), time_bucket('10ms', ts), overlaps(a_begin, a_end, b_begin, b_end),\n  \
        percentile(x, 99.9), histogram(x), FROM spans('name'),\n  \
        FROM activities('begin event', 'end event', 'key'), FROM span_join('a', 'b', 'key')\n\n\
        What lat stats, lat path and lat diff say, listed by .functions in the shell:\n  \
        FROM stats_spans(), FROM stats_cpus(), …, FROM path_steps('span'), FROM diff_shifts()\n\n\
        Examples:\n  \
        lat sql demo                                    the shell\n  \
        lat sql demo --describe                         tables, columns and functions\n  \
        lat sql demo -c 'SHOW TABLES'\n  \
        lat sql demo -c 'SELECT class, count(*) FROM events GROUP BY class ORDER BY 2 DESC'\n  \
        lat sql demo -f report.sql --format csv -o report.csv\n  \
        lat sql before after -c 'SELECT * FROM diff_shifts()'\n\n\
        Exit code: 0 fine, 1 something in the traces is damaged, 2 it could not be run."
)]
struct Arguments {
    /// Recordings, or traces of any format; the column `recording` identifies each
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// Statements to run
    #[arg(short, long, value_name = "SQL", conflicts_with = "file")]
    command: Option<String>,
    /// A file of statements to run; - is standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Only say what there is: tables, columns with their units, functions
    #[arg(long, conflicts_with_all = ["command", "file", "format", "output"])]
    describe: bool,
    /// How to write results [default: table, or by the ending of the output]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Write JSON: the same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write to a file; its ending selects the format
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output if it is there
    #[arg(long)]
    force: bool,
    /// Memory for sorting, grouping and joining; beyond it queries use the disk or are refused
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = parse_bytes)]
    memory: u64,
    /// Cores to use [default: all]
    #[arg(long, value_name = "COUNT")]
    cores: Option<NonZeroUsize>,
    /// Read files as this format, whatever they begin with
    #[arg(long = "as", value_name = "FORMAT")]
    as_format: Option<String>,
    /// Time stamps per second, where a format does not say
    #[arg(long, value_name = "HZ")]
    frequency: Option<u64>,
    /// Of call stacks and instructions: look for the files that were mapped below this folder, as on another
    /// machine
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,
    /// Functions of the kernel: a copy of /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    kallsyms: Option<PathBuf>,
}

/// Largest size of a compressed hardware trace.
const PACKED_BYTES: u64 = 4 << 30;

/// All tables: of the events, of call stacks, and, if a single trace has packets of processors, of the
/// executed instructions.
fn traces(
    arguments: &Arguments,
    recordings: Vec<Recording>,
) -> Result<lateralis_store::Session, String> {
    let (root, kallsyms) = (arguments.symfs.as_deref(), arguments.kallsyms.as_deref());
    let files = ImageFiles::new(root).with_kallsyms(kallsyms);
    let mut flow = None;
    if let ([path], [recording]) = (arguments.traces.as_slice(), recordings.as_slice()) {
        let of = hardware::read(path, PACKED_BYTES).map_err(|error| error.to_string())?;
        if !of.buffers.is_empty() && !of.is_raw {
            let places = Places::new(files.clone(), recording.source.trace());
            let packets = (of.buffers, of.clocks);
            flow = Some(Recorded::of(&recording.source, places, packets, &of.code));
        }
    }
    let open = move || -> Box<dyn Images> { Box::new(files.clone()) };
    let session = lateralis_store::Session::new(recordings).with_stacks(Arc::new(open));
    Ok(match flow {
        Some(flow) => session.with_flow(flow),
        None => session,
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    panics::install();
    let work = thread::Builder::new().name(panics::THREADS.to_owned()).stack_size(STACK_BYTES);
    let work = work.spawn(move || run(arguments));
    let outcome = match work.map(thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(panics::take()),
        Err(error) => Err(format!("cannot start a thread: {error}")),
    };
    outcome.unwrap_or_else(|message| {
        // If standard error is closed as well, the message cannot be delivered.
        let _ = io::stderr().write_all(lines("error: ", &message).as_bytes());
        ExitCode::from(2)
    })
}

fn run(arguments: Arguments) -> Result<ExitCode, String> {
    let target = Target::new(arguments.output.clone(), arguments.force)?;
    let format = match (arguments.format, arguments.json) {
        (Some(format), _) => format,
        (None, true) => Format::Json,
        (None, false) => target.format().unwrap_or(Format::Table),
    };
    if format.is_binary() && target.is_terminal() {
        return Err("no text: a terminal cannot show it: write it to a file with -o FILE".into());
    }
    let text = if arguments.describe { None } else { statements(&arguments)? };
    let options = options(&arguments)?;
    let mut recordings = Vec::new();
    let mut is_damaged = false;
    let mut lost = 0_u64;
    for paths in together(&arguments.traces) {
        let recording = open(paths, &options)?;
        let source = &recording.source;
        is_damaged |= !source.damage().is_empty() || !source.faults().is_empty();
        lost += source.losses().iter().map(|loss| loss.count.unwrap_or(1)).sum::<u64>();
        recordings.push(recording);
    }
    if is_damaged {
        note("warning: these traces are damaged; what is healthy is read: lat info tells more");
    }
    if lost > 0 {
        note(&format!(
            "note: {lost} events or more were lost while recording; counts are lower bounds: \
             SELECT * FROM losses"
        ));
    }
    let traces = Arc::new(traces(&arguments, recordings)?);
    let cores = arguments.cores.or_else(|| thread::available_parallelism().ok());
    let cores = cores.unwrap_or(NonZeroUsize::MIN);
    let memory_bytes = usize::try_from(arguments.memory).unwrap_or(usize::MAX);
    let limits = Limits { memory_bytes, cores };
    let engine = Engine::new(traces, asked_with(&arguments), limits);
    let engine = engine.map_err(|error| format!("cannot begin: {error}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.get())
        .thread_name(panics::THREADS)
        .thread_stack_size(WORKER_STACK_BYTES)
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    if arguments.describe {
        let text = match arguments.json {
            true => format!("{:#}\n", describe::json(&engine)),
            false => describe::text(&engine),
        };
        let written = io::stdout().lock().write_all(text.as_bytes());
        return match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(format!("cannot write: {error}"))
            }
            _ => Ok(ExitCode::from(u8::from(is_damaged))),
        };
    }
    memory::limit(memory_bytes);
    let session = Session::new(engine, runtime);
    let cancel = Arc::clone(&session.cancel);
    let handler = move || {
        // A second request exits immediately.
        if cancel.ask() {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| format!("cannot handle Ctrl-C: {error}"))?;
    let mut is_healthy = !is_damaged;
    let Some(text) = text else {
        let mut notes = || {
            is_healthy &= !told_damage(&session.engine);
        };
        shell::run(&session, format, target::terminal_columns, &mut notes)
            .map_err(|error| format!("cannot use the terminal: {error}"))?;
        return Ok(ExitCode::from(u8::from(!is_healthy)));
    };
    let outcome = {
        let mut writing = target.begin();
        let is_file = writing.is_file();
        let columns = if is_file { None } else { target.columns() };
        let mut open = || writing.open();
        let mut place = Place { format, columns, is_file, open: &mut open };
        let outcome = session.run(&text, &mut place);
        match outcome {
            Ok(_) => writing.finish().map_err(Stop::from_io),
            Err(stop) => Err(stop),
        }
    };
    is_healthy &= !told_damage(&session.engine);
    match outcome {
        Ok(()) | Err(Stop::NobodyReads) => Ok(ExitCode::from(u8::from(!is_healthy))),
        Err(Stop::Fault(fault)) => Err(fault.show(&text)),
        Err(Stop::Cancelled) => {
            note("cancelled");
            Ok(ExitCode::from(130))
        }
        Err(Stop::Output(error)) => Err(format!("cannot write the result: {error}")),
    }
}

/// Statements to run; `None` for the shell.
fn statements(arguments: &Arguments) -> Result<Option<String>, String> {
    if let Some(text) = &arguments.command {
        return Ok(Some(text.clone()));
    }
    let mut text = Vec::new();
    let read = match &arguments.file {
        Some(path) if path.as_os_str() != "-" => {
            let file = fs::File::open(path)
                .and_then(|file| file.take(MOST_SQL_BYTES + 1).read_to_end(&mut text));
            file.map_err(|error| format!("cannot read: {}: {error}", path.display()))
        }
        None if io::stdin().is_terminal() && arguments.output.is_none() => return Ok(None),
        _ => io::stdin()
            .lock()
            .take(MOST_SQL_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(|error| format!("cannot read standard input: {error}")),
    };
    if read? as u64 > MOST_SQL_BYTES {
        return Err(format!("too long: statements have at most {MOST_SQL_BYTES} bytes"));
    }
    String::from_utf8(text).map(Some).map_err(|_| "statements are no UTF-8 text".to_owned())
}

/// `lat` with the options for opening traces in the same way.
fn asked_with(arguments: &Arguments) -> Lat {
    let format = arguments.as_format.iter().map(|format| format!("--as={format}"));
    let frequency = arguments.frequency.iter().map(|hertz| format!("--frequency={hertz}"));
    Lat { options: format.chain(frequency).map(Into::into).collect() }
}

/// Options for opening all traces.
fn options(arguments: &Arguments) -> Result<OpenOptions, String> {
    let mut options = OpenOptions { frequency_hz: arguments.frequency, ..OpenOptions::default() };
    if let Some(format) = &arguments.as_format {
        let (word, abi) = match format.split_once(':') {
            Some((word, abi)) => (word, Some(abi.to_owned())),
            None => (format.as_str(), None),
        };
        if !lateralis_traces::words().any(|known| known == word) {
            let known = lateralis_traces::words().collect::<Vec<_>>().join(", ");
            return Err(format!("no such format: {format}: known are {known}"));
        }
        (options.format, options.abi) = (Some(word.to_owned()), abi);
    }
    Ok(options)
}

/// Traces are opened as one, as by every other command: items between them are found. A trace that is
/// given twice is compared with itself.
fn together(traces: &[PathBuf]) -> Vec<&[PathBuf]> {
    let is_again = |(at, path): (usize, &PathBuf)| traces[..at].contains(path);
    match traces.iter().enumerate().any(is_again) {
        true => traces.chunks(1).collect(),
        false => vec![traces],
    }
}

fn open(paths: &[PathBuf], options: &OpenOptions) -> Result<Recording, String> {
    Recording::open_all(paths, options).map_err(|error| match error {
        lateralis_traces::Error::Io { path, source } => {
            format!("cannot read: {}: {source}", path.display())
        }
        other => other.to_string(),
    })
}

/// Reports the damage found by a query; returns whether there was any.
fn told_damage(engine: &Engine) -> bool {
    let Some((places, bytes)) = engine.take_damage() else {
        return false;
    };
    let word = if places == 1 { "place" } else { "places" };
    let bytes = if bytes > 0 { format!("{bytes} bytes in ") } else { String::new() };
    note(&format!("warning: {bytes}{places} {word} could not be read: lat info tells more"));
    true
}

fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", shown(text));
}

/// A size like `64K` or `2G`.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return Err(format!("unknown unit: {unit}: use K, M, G or T")),
    };
    let number: u64 = number.parse().map_err(|_| "expected a size like 64M or 4G".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "larger than any memory".to_owned())
}
