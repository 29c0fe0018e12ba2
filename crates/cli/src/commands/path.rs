// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat path`: why a span took as long as it did.

mod page;

use clap::Args;
use lateralis_model::{Event, Interval, Quality, Source};
use lateralis_store::explained::{
    Explained, Found, NotFound, Spans, Stretch, Wanted, find, find_stretches, find_thread,
};
use lateralis_store::{Chosen, Recording};
use lateralis_units::Nanos;

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::moment::{self, Moment};
use crate::output;
use crate::selection::{SelectArgs, Selection};

/// Stretches of a thread before and after the one that contains the time of `--at`, each at most.
const STRETCHES: usize = 3;

/// What a thread did around a time.
struct Around {
    at: Nanos,
    stretches: Vec<Stretch>,
}

/// Options of `lat path`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lat path demo --span request            where the time of the slowest request went
  lat path demo --span request --slowest 5 --json
  lat path demo --span request --at 0.5s  the request that was open at this time
  lat path demo --span request --thread client-2 --from 0.5s
  lat path demo --thread client-2 --from 0.5s --until 0.6s
                                          what a thread did and waited for
  lat path demo --thread client-2 --at 0.5s
                                          what it did at this time, and just before and after

The path is followed from the end of the span back to its beginning: while its thread waited for a
lock, a message or a wakeup, the path continues on the thread it waited for. Locks and I/O of
unmodified programs are known with `lat record --with mutex,io,thread`; running and runnable
threads with events of the scheduler (`--kernel sched`).

Options that select events select the spans whose begin and end they match; the path itself uses
all events of that time.

Exit code 1: events are missing inside or before a span, or the trace does not show what ended a
wait, so parts of the path may be unknown.")]
pub struct PathArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Name of the span as `lat stats` prints it [default: the only kind of span]; with --thread and
    /// without --span, the thread from --from to --until or around --at is explained
    #[arg(long, value_name = "NAME")]
    pub span: Option<String>,
    /// Explain the N slowest
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "at",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slowest: u32,
    /// Explain the span that was open at this time; with --thread and without --span, what the thread did
    /// just before and after
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<Moment>,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Finds the spans, walks back through them, and prints.
pub fn run(args: PathArgs) -> Result<ExitStatus, CliError> {
    let mut recording = args.inputs.open()?;
    recording.learn_names();
    args.select.warn_of_unknown_fields(recording.source.trace());
    let selection = Selection::new(&args.select, &recording, true)?;
    let contains = |event: &Event<'_>| selection.contains(event);
    let chosen = selection.chosen(&recording, &contains);
    // What a thread is in the midst of when the time begins is known from before.
    let span = match &args.span {
        None if args.select.thread.is_empty() => Some(only_span(&chosen)?),
        named => named.clone(),
    };
    let begin = span.as_ref().and(chosen.interval.begin);
    let interval = Interval { begin, ..chosen.interval };
    let around = Chosen { interval, ..selection.chosen(&recording, &contains) };
    let (name, spans, stretches) = match (&span, args.at) {
        (Some(span), _) => (span.clone(), spans(&args, span, &recording, &chosen)?, None),
        (None, Some(at)) => {
            let thread = thread(&args)?;
            let at = at.nanos(moment::extent(&recording, [Some(at), None]));
            let found = find_stretches(&around, chosen.interval, thread, at, STRETCHES);
            let (found, stretches) = found.map_err(|error| no_thread(thread, &error))?;
            (format!("thread {thread}"), one(found), Some(Around { at, stretches }))
        }
        (None, None) => {
            let thread = thread(&args)?;
            let found = find_thread(&chosen, thread).map_err(|error| no_thread(thread, &error))?;
            (format!("thread {thread}"), one(found), None)
        }
    };
    selection.finish()?;
    let explained: Vec<Explained> =
        spans.found.iter().map(|span| Explained::of(&around, span)).collect();
    if args.json {
        output::print_json(&page::json(&name, &spans, &explained, stretches.as_ref()))?;
    } else {
        output::print(&page::render(&name, &spans, &explained, stretches.as_ref()))?;
    }
    let is_exact = explained.iter().all(|one| one.quality == Quality::Exact);
    Ok(if is_exact { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// The name of the spans that are explained where none is given: there is no other.
fn only_span(chosen: &Chosen<'_>) -> Result<String, CliError> {
    // No span has an empty name: this finds the names that there are.
    let names = find(chosen, "", Wanted::Slowest(1)).err().unwrap_or_default();
    let advice = match names.as_slice() {
        [name] => return Ok(name.clone()),
        [] => "the trace has no spans: name one thread with --thread".to_owned(),
        names => {
            format!("name one with --span: {}", names[..names.len().min(8)].join(", "))
        }
    };
    let what = "neither a span nor one thread is named";
    Err(CliError::new("cannot tell a path", what, advice))
}

/// The thread that is asked about without a span.
fn thread(args: &PathArgs) -> Result<&str, CliError> {
    match args.select.thread.as_slice() {
        [thread] if !thread.contains(['*', '?', ',']) => Ok(thread),
        _ => {
            let advice = "name a span with --span, or one thread with --thread";
            Err(CliError::new(
                "cannot tell a path",
                "neither a span nor one thread is named",
                advice,
            ))
        }
    }
}

/// All of a thread, as one span.
fn one(found: Found) -> Spans {
    Spans { found: vec![found], quality: Quality::Exact, damage: Vec::new() }
}

fn no_thread(thread: &str, error: &NotFound) -> CliError {
    match error {
        NotFound::NoThread => {
            CliError::new("no such thread", thread, "`lat table TRACE --name threads` lists them")
        }
        NotFound::Several(threads) => {
            let numbers: Vec<String> = threads.iter().take(8).map(u32::to_string).collect();
            let advice = format!("give the number of one: {}", numbers.join(", "));
            CliError::new("several threads have this name", thread, advice)
        }
        NotFound::Unknown => CliError::new(
            "nothing is known of this thread at this time",
            thread,
            "`lat table TRACE --name thread_states` lists the times; `lat record --kernel sched` records \
             them",
        ),
    }
}

/// Errors: no span of the name; none that is wanted; none with a thread.
fn spans(
    args: &PathArgs,
    span: &str,
    recording: &Recording,
    chosen: &Chosen<'_>,
) -> Result<Spans, CliError> {
    let wanted = match args.at {
        Some(at) => Wanted::OpenAt(at.nanos(moment::extent(recording, [Some(at), None]))),
        None => Wanted::Slowest(args.slowest as usize),
    };
    let spans = find(chosen, span, wanted).map_err(|names| {
        let advice = match names.as_slice() {
            [] => "the trace has no spans at all".to_owned(),
            names => format!("there are {}", names[..names.len().min(8)].join(", ")),
        };
        CliError::new("no such span", span, advice)
    })?;
    if !spans.found.is_empty() {
        return Ok(spans);
    }
    let (place, advice) = match wanted {
        Wanted::OpenAt(Nanos(_)) => {
            ("none is open at this time", "look at `lat print` for when it begins")
        }
        Wanted::Slowest(_) => (
            "none that is chosen has both ends and a thread",
            "see `lat stats` for unfinished ones",
        ),
    };
    Err(CliError::new(format!("no span {span}"), place, advice))
}
