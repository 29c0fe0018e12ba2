// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat stats`: how often, how long, who ran, and what is missing.

use clap::Args;
use lateralis_model::Source;
use lateralis_reports::stats::gather::Statistics;
use lateralis_reports::stats::page::{self, Section};
use lateralis_reports::stats::{sections, utilised};

use crate::beyond;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::{self, Page};
use crate::selection::{self, SelectArgs};

/// Options of `lat stats`.
#[derive(Debug, Args)]
#[command(
    after_help = "Marks: `≥ 5` is a lower bound; `5 ?` was computed from the recorded events only, and \
    some are \
    missing.\n\n\
    Examples:\n  \
    lat stats demo\n  \
    lat stats demo --section keys,slowest --top 5\n  \
    lat stats demo --from 1.5s --until 2s --app warehouse\n  \
    lat stats recording --utilisation --section cpus,threads\n  \
    lat stats demo --json | jq '.spans[]'\n\n\
    Exit code 1: the trace is damaged, or a budget of the schema is exceeded."
)]
pub struct StatsArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Print only these sections
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub section: Vec<Section>,
    /// Print at most this many rows per table
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub top: usize,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only the Nth interval (the last if N is omitted) from a program's lat_utilisation_reset to its
    /// lat_utilisation_finalize
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
        default_missing_value = "0", conflicts_with_all = ["from", "until"])]
    pub utilisation: Option<usize>,
    /// Print JSON with all rows
    #[arg(long)]
    pub json: bool,
}

/// Prints counts, rates, losses, durations of spans, utilisation, messages, states.
pub fn run(mut args: StatsArgs) -> Result<ExitStatus, CliError> {
    let mut recording = args.inputs.open()?;
    let utilised = args.utilisation.map(|number| utilised::find(&recording, number)).transpose()?;
    if let Some(utilised) = &utilised {
        utilised.choose(&mut args.select);
    }
    // Threads tell their names when they begin, perhaps before what is chosen.
    if args.select.needs_names() || args.select.from.is_some() {
        recording.learn_names();
    }
    selection::warn_of_unknown_fields(&args.select, recording.source.trace());
    let selection = selection::select(&args.select, &recording, true)?;
    let statistics =
        Statistics::of(&recording, &selection, sections::Asked::of(&args.section, args.json));
    selection.finish()?;
    beyond::warn(statistics.times_beyond);
    if args.json {
        let mut members = sections::keep(statistics.members(&recording), &args.section);
        if let Some(utilised) = &utilised {
            members.insert("utilisation".to_owned(), utilised.to_json().into());
        }
        output::print_json_members(&members)?;
    } else {
        let mut page = Page::new();
        if let Some(utilised) = &utilised {
            line!(page, "{}", utilised.line(&recording.names));
        }
        page.page(&page::render(&recording, &statistics, &args.section, args.top));
        output::print(&page)?;
    }
    let exceeded = statistics.budgets.iter().any(|budget| budget.kept == Some(false));
    let damaged = !statistics.damage.is_empty() || !recording.source.faults().is_empty();
    Ok(if exceeded || damaged { ExitStatus::Problems } else { ExitStatus::Fine })
}
