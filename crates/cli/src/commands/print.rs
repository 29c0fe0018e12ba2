// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat print`: one line an event.

mod follow;
mod message;
mod text;
mod time;

use clap::{Args, ValueEnum};
use lateralis_model::terminal::{self, Style};
use lateralis_model::text::Babeltrace;
use lateralis_model::{Damage, Event, Source};
use lateralis_traces::JsonLines;
use std::io::{self, Write};

use crate::beyond;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::live_copy::{CopyOptions, LiveCopy};
use crate::output;
use crate::peer_args::PeerArgs;
use crate::selection::{self, SelectArgs, Selection};
use crate::values;
use lateralis_store::Recording;
use message::Messages;
use time::TimeForm;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 16;

/// Options of `lat print`.
#[derive(Debug, Args)]
#[command(after_help = "Expressions of --where:\n  \
    name a.b list[2]            a field of the event, its context or its packet\n  \
    $event $subsystem $phase $cpu $pid $tid $process $thread $stream $time\n  \
    12 0x1f -3 1.5 5ms 4k       numbers; times in nanoseconds, sizes in bytes\n  \
    \"text\" 'text' LABEL         text\n  \
    == != < <= > >= =~ !~       compare; match a pattern with * and ?\n  \
    && || ! ( )                 combine; an event without the field fails a comparison\n  \
    A warning names fields that no event has; the exit code does not change.\n\n\
    Examples:\n  \
    lat print demo\n  \
    lat print demo --event 'threads:*,!*:MUTEX_UNLOCK' --from 1.5s --until 1.6s\n  \
    lat print demo --app warehouse --where 'order > 3990 && $cpu == 1'\n  \
    lat print demo --time relative --from +0.01\n  \
    lat print demo --filter 'event.fields.id % 100 === 0'\n  \
    lat print -f demo                     events while they are recorded\n  \
    lat print -f 127.0.0.1:6660           a live recording on another machine\n  \
    lat print perf.data --format json | jq .fields\n  \
    lat print demo --format babeltrace | diff - <(babeltrace2 --clock-seconds --clock-gmt \
    --no-delta --names=all demo/ctf)")]
pub struct PrintArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Form of the time in --format text [default: utc]
    #[arg(long, value_enum, value_name = "FORM")]
    pub time: Option<TimeForm>,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Print at most this many events
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = values::parse_count)]
    pub limit: Option<u64>,
    /// Keep printing while the recording grows; TRACE may be HOST:PORT of a live recording
    #[arg(long, short)]
    pub follow: bool,
    #[command(flatten)]
    pub peer: PeerArgs,
}

/// How `lat print` writes an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Time, CPU, process and thread, name, fields
    Text,
    /// One JSON object a line, as `lat convert --to jsonl` writes it
    Json,
    /// As babeltrace2 with --clock-seconds --clock-gmt --no-delta --names=all
    Babeltrace,
}

/// Appends an event as a line.
type Printer<'r> = Box<dyn FnMut(&mut Vec<u8>, &Event<'_>) + 'r>;

fn printer(recording: &Recording, format: Format, time: TimeForm) -> Printer<'_> {
    match format {
        Format::Text => {
            let mut printer = text::Printer::new(recording, time);
            Box::new(move |out, event| printer.line(out, event))
        }
        Format::Json => {
            let messages = Messages::new(recording);
            let mut lines = JsonLines::new(&recording.source, &recording.names);
            let mut text = Vec::new();
            Box::new(move |out, event| {
                text.clear();
                let message = messages.get(event).map(|message| {
                    message.write(&mut text, event);
                    String::from_utf8_lossy(&text)
                });
                lines.event(out, event, message.as_deref());
            })
        }
        Format::Babeltrace => {
            let printer = Babeltrace::new(recording.source.trace());
            Box::new(move |out, event| printer.line(out, event))
        }
    }
}

/// Prints the events of a trace.
pub fn run(mut args: PrintArgs) -> Result<ExitStatus, CliError> {
    if args.time.is_some() && args.format != Format::Text {
        return Err(CliError::new(
            "cannot choose the form of times",
            "--time",
            "other formats than text have their own: leave --time or --format out",
        ));
    }
    if args.follow && args.inputs.fail_on_loss {
        let advice = "what was lost is known when the recording has ended: leave --follow out";
        return Err(CliError::new("cannot fail on losses", "--fail-on-loss", advice));
    }
    if args.follow {
        let live = LiveCopy::begin(&args.inputs.traces, &args.peer, CopyOptions::default())?;
        if let Some(live) = &live {
            args.inputs.traces = vec![live.path().to_owned()];
        }
        return follow::run(&args, live.as_ref());
    }
    let recording = open(&args)?;
    selection::warn_of_unknown_fields(&args.select, recording.source.trace());
    let damage = print(&args, &recording)?;
    remarks(&recording, &damage);
    let fine = damage.is_empty() && recording.source.faults().is_empty();
    Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

fn open(args: &PrintArgs) -> Result<Recording, CliError> {
    let mut recording = args.inputs.open()?;
    if args.select.needs_names() {
        recording.learn_names();
    }
    Ok(recording)
}

/// Prints the chosen events. Returns all damage known by then.
fn print(args: &PrintArgs, recording: &Recording) -> Result<Vec<Damage>, CliError> {
    let selection = selection::select(&args.select, recording, has_all(args))?;
    let mut lines = Lines::new(args, recording, selection, args.limit.unwrap_or(u64::MAX));
    let mut events = recording.source.events_in(lines.selection.interval());
    while lines.wants_more()
        && let Some(event) = events.next_event()
    {
        lines.event(&event)?;
    }
    lines.finish()?;
    Ok(recording.all_damage(events.damage()))
}

fn style(format: Format) -> Style {
    match format {
        Format::Text | Format::Babeltrace => Style::Text,
        Format::Json => Style::Json,
    }
}

/// Whether bookkeeping records are events like others.
fn has_all(args: &PrintArgs) -> bool {
    args.format == Format::Babeltrace
}

/// Lines of the chosen events on standard output.
struct Lines<'r> {
    selection: Selection<'r>,
    printer: Printer<'r>,
    left: u64,
    /// Events whose times may be beyond.
    at_the_ends: u64,
    out: Vec<u8>,
    style: Style,
    stdout: io::StdoutLock<'static>,
}

impl<'r> Lines<'r> {
    /// Of so many events at most.
    fn new(
        args: &PrintArgs,
        recording: &'r Recording,
        selection: Selection<'r>,
        left: u64,
    ) -> Self {
        let out = Vec::with_capacity(BUFFER_BYTES + 4096);
        let printer = printer(recording, args.format, args.time.unwrap_or_default());
        Self {
            selection,
            printer,
            left,
            at_the_ends: 0,
            out,
            style: style(args.format),
            stdout: output::cleaned_lines(),
        }
    }

    fn wants_more(&self) -> bool {
        self.left > 0 && !self.selection.has_failed()
    }

    /// Prints an event of the chosen time if it is chosen.
    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        if !self.selection.contains(event) {
            return Ok(());
        }
        self.left -= 1;
        self.at_the_ends += u64::from(beyond::is_end(event.time));
        let start = self.out.len();
        (self.printer)(&mut self.out, event);
        // Whatever a name or a value holds, it is one line, and only printable characters.
        if self.out.len() > start && self.out.pop() == Some(b'\n') {
            match self.style {
                Style::Text => terminal::clean(&mut self.out, start),
                Style::Json => terminal::clean_json(&mut self.out, start),
            }
            self.out.push(b'\n');
        }
        if self.out.len() >= BUFFER_BYTES {
            self.stdout.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    /// Writes what is left. Gives how many more events there may be.
    ///
    /// Errors: that of a script that failed, too.
    fn finish(mut self) -> Result<u64, CliError> {
        self.stdout.write_all(&self.out)?;
        self.stdout.flush()?;
        self.selection.finish()?;
        beyond::warn(self.at_the_ends);
        Ok(self.left)
    }
}

/// What is missing or doubtful, on standard error: events alone would look complete and certain.
fn remarks(recording: &Recording, damage: &[Damage]) {
    const SHOWN: usize = 10;
    let say = |line: String| tell!("{line}");
    for fault in recording.source.faults().into_iter().take(SHOWN) {
        say(fault);
    }
    for remark in recording.source.remarks().into_iter().take(SHOWN) {
        say(format!("remark: {remark}"));
    }
    for damage in damage.iter().take(SHOWN) {
        say(format!("damage: {damage}"));
    }
    if damage.len() > SHOWN {
        say(format!("damage: {} more, see `lat info`", damage.len() - SHOWN));
    }
    for total in lateralis_analysis::total_by_cause(recording.source.losses()) {
        let (count, cause) = (total.count, total.cause);
        say(match total.is_lower_bound {
            true if count == 0 => format!("lost: an unknown number ({})", cause.described()),
            true => format!("lost: at least {count} ({cause})"),
            false => format!("lost: {count} ({cause})"),
        });
    }
}
