// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat print`: one line an event.

mod json;
mod message;
mod selection;
mod text;
mod time;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lateralis_model::text::Babeltrace;
use lateralis_model::{Event, Interval};

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::recording::Recording;
use selection::Selection;
use time::Moment;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 16;

/// Options of `lat print`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    lat print demo\n  \
    lat print demo --event 'threads:*,!*:MUTEX_UNLOCK' --from 1.5s --to 1.6s\n  \
    lat print demo --format json | jq .fields\n  \
    lat print demo --format babeltrace | diff - <(babeltrace2 --clock-seconds --clock-gmt \
    --no-delta --names=all demo/ctf)")]
pub struct PrintArgs {
    /// A recording, or a directory with a CTF trace
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// How a line looks
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Only events whose name matches: `*` and `?`, several separated by commas, `!` excludes
    #[arg(long, value_name = "PATTERN")]
    pub event: Vec<String>,
    /// Only from here on: 1.5s after the beginning, @SECONDS since 1970, or HH:MM:SS in UTC
    #[arg(long, value_name = "TIME")]
    pub from: Option<Moment>,
    /// Only up to here
    #[arg(long, value_name = "TIME")]
    pub to: Option<Moment>,
    /// At most so many events
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub limit: Option<u64>,
}

/// How `lat print` writes an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Time, CPU, process and thread, name, fields
    Text,
    /// One JSON object a line
    Json,
    /// As babeltrace2 with --clock-seconds --clock-gmt --no-delta --names=all
    Babeltrace,
}

/// Appends an event as a line.
type Printer<'r> = Box<dyn Fn(&mut Vec<u8>, &Event<'_>) + 'r>;

/// Prints the events of a trace.
pub fn run(args: PrintArgs) -> Result<ExitStatus, CliError> {
    let recording = Recording::open(&args.trace)?;
    let reader = &recording.reader;
    let selection = Selection::new(&args.event, reader.trace(), args.format == Format::Babeltrace)
        .map_err(|advice| CliError::new("cannot select events", args.event.join(","), advice))?;
    let beginning = reader.interval().begin;
    let moment = |moment: &Option<Moment>| moment.as_ref().map(|moment| moment.nanos(beginning));
    let interval = Interval { begin: moment(&args.from), end: moment(&args.to) };
    let printer: Printer<'_> = match args.format {
        Format::Text => {
            let printer = text::Printer::new(&recording);
            Box::new(move |out, event| printer.line(out, event))
        }
        Format::Json => {
            let printer = json::Printer::new(&recording);
            Box::new(move |out, event| printer.line(out, event))
        }
        Format::Babeltrace => {
            let printer = Babeltrace::new(reader.trace());
            Box::new(move |out, event| printer.line(out, event))
        }
    };
    let mut stdout = io::stdout().lock();
    let mut out = Vec::with_capacity(BUFFER_BYTES + 4096);
    let mut events = reader.events_in(interval);
    let mut left = args.limit.unwrap_or(u64::MAX);
    while left > 0 {
        let Some(event) = events.next_event() else {
            break;
        };
        if !selection.contains(&event) {
            continue;
        }
        left -= 1;
        printer(&mut out, &event);
        if out.len() >= BUFFER_BYTES {
            stdout.write_all(&out)?;
            out.clear();
        }
    }
    stdout.write_all(&out)?;
    stdout.flush()?;
    drop(stdout);
    let damage: Vec<_> = recording.all_damage(events.damage()).into_iter().cloned().collect();
    remarks(&recording, &damage);
    let fine = damage.is_empty() && reader.diagnostics().is_empty();
    Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// What is missing, on standard error: events alone would look complete.
fn remarks(recording: &Recording, damage: &[lateralis_model::Damage]) {
    const SHOWN: usize = 10;
    let mut stderr = io::stderr().lock();
    let mut say = |line: String| {
        // Nobody is left to tell if standard error is closed.
        let _ = writeln!(stderr, "{line}");
    };
    for diagnostic in recording.reader.diagnostics().iter().take(SHOWN) {
        say(format!("metadata: {diagnostic}"));
    }
    for damage in damage.iter().take(SHOWN) {
        say(format!("damage: {damage}"));
    }
    if damage.len() > SHOWN {
        say(format!("damage: {} more, see `lat info`", damage.len() - SHOWN));
    }
    for total in lateralis_analysis::total_by_cause(recording.reader.losses()) {
        let least = if total.is_lower_bound { "at least " } else { "" };
        say(format!("lost: {least}{} ({})", total.count, total.cause));
    }
}
