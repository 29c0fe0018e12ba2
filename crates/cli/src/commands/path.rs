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
  lat path demo --span request            the slowest request, and where its time went
  lat path demo --span request --slowest 5 --json
  lat path demo --span request --at 0.5s  the one that was open half a second after the beginning
  lat path demo --span request --thread client-2 --from 0.5s
  lat path demo --thread client-2 --from 0.5s --until 0.6s
                                          what a thread did and waited for, whatever its spans
  lat path demo --thread client-2 --at 0.5s
                                          what it did then, just before and just after

From the end of the span back to its beginning: time in which its thread waited for a lock, a
message or to be woken is the time of whoever it waited for. Locks and I/O of programs that nobody
instrumented are known with `lat record --with mutex,io,thread`; who ran and who was ready to run
where the trace has events of the scheduler.

Options that choose events choose spans, both of whose ends they keep; whom a chosen one waited for
is found among all events of the time.

Exit code 1: events are missing inside of a span, or before, or the trace does not say what ended a
wait, so that parts of its path may be wrong.")]
pub struct PathArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Name of the span, as `lat stats` shows it; without it, all that the one --thread did from
    /// --from to --until, or around --at
    #[arg(long, value_name = "NAME")]
    pub span: Option<String>,
    /// So many, slowest first
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "at",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slowest: u32,
    /// The one that was open at this time, in any form that --from takes; without --span, what the one
    /// --thread did then, just before and just after
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
