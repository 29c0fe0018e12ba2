// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat path`: why a span took as long as it did.

use clap::Args;
use lateralis_model::Source;
use lateralis_reports::path::{Paths, Query};

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::moment::Moment;
use crate::output;
use crate::selection::{self, SelectArgs};

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
    selection::warn_of_unknown_fields(&args.select, recording.source.trace());
    let selection = selection::select(&args.select, &recording, true)?;
    let query = Query { span: args.span.as_deref(), slowest: args.slowest as usize, at: args.at };
    let paths = Paths::of(&recording, &selection, &args.select, query)?;
    if args.json {
        output::print_json(&paths.json())?;
    } else {
        output::print(&paths.page())?;
    }
    Ok(if paths.is_exact() { ExitStatus::Fine } else { ExitStatus::Problems })
}
