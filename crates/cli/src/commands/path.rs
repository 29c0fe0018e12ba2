// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat path`: why a span took as long as it did.

mod find;
mod gather;
mod locks;
mod page;

use clap::Args;
use lateralis_model::Quality;

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::moment::Moment;
use crate::output;

/// Options of `lat path`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lat path demo --span request            the slowest request, and where its time went
  lat path demo --span request --slowest 5 --json
  lat path demo --span request --at 0.5s  the one that was open half a second after the beginning

From the end of the span back to its beginning: time in which its thread waited for a lock, a
message or to be woken is the time of whoever it waited for. Locks and I/O of programs that nobody
instrumented are known with `lat record --with mutex,io,thread`; who ran and who was ready to run
where the trace has events of the scheduler.

Exit code 1: events are missing inside of the span, so that parts of the path may be wrong.")]
pub struct PathArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Name of the span, as `lat stats` shows it
    #[arg(long, value_name = "NAME")]
    pub span: String,
    /// So many, slowest first
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "at",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slowest: u32,
    /// The one that was open then: 1.5s after the beginning, @SECONDS since 1970, or HH:MM:SS
    #[arg(long, value_name = "TIME")]
    pub at: Option<Moment>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Finds the spans, walks back through them, and prints.
pub fn run(args: PathArgs) -> Result<ExitStatus, CliError> {
    let mut recording = args.inputs.open()?;
    recording.learn_names();
    let found = find::spans(&recording, &args)?;
    let explained: Vec<gather::Explained> =
        found.iter().map(|span| gather::explain(&recording, span)).collect();
    if args.json {
        output::print_json(&page::json(&args.span, &explained))?;
    } else {
        output::print(&page::render(&args.span, &explained))?;
    }
    let is_exact = explained.iter().all(|one| one.quality == Quality::Exact);
    Ok(if is_exact { ExitStatus::Fine } else { ExitStatus::Problems })
}
