// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat tracepoints`: cycles between two points of a program, and what looking costs.

mod page;
mod sel4bench;

use clap::{Args, ValueEnum};
use lateralis_analysis::tracepoints::OwnCost;
use lateralis_model::{Event, Source};
use lateralis_store::tracepoints::{Gathered, Row, gather};

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output;
use crate::selection::{self, SelectArgs};

/// Options of `lat tracepoints`.
#[derive(Debug, Args)]
#[command(
    after_help = "A tracepoint is a span: its begin and end events are START and STOP, and its key is \
    part of its \
    identity.\nA STOP without a START is counted but gives no sample, and neither does a START without \
    a STOP.\n\n\
    Examples:\n  \
    lat tracepoints demo\n  \
    lat tracepoints cost --cost 'point 0' 'point 1'    the cost of a tracepoint\n  \
    lat tracepoints sel4.log --as sel4-tracepoints:aarch64 --format sel4bench\n\n\
    Exit code 1: the trace is damaged."
)]
pub struct TracepointsArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Two tracepoints, one directly inside the other: their difference is the cost of a tracepoint, which
    /// is subtracted from the others
    #[arg(long, num_args = 2, value_names = ["OUTER", "INNER"])]
    pub cost: Vec<String>,
    /// Unit: cycles of the trace's clock, or nanoseconds
    #[arg(long, value_enum, default_value_t = Unit::Cycles)]
    pub unit: Unit,
    /// Output format; sel4bench is the JSON of seL4's benchmarks, with all samples
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// What the numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Cycles of the clock of the trace
    Cycles,
    /// Nanoseconds
    Ns,
}

/// How the table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// Every number of the table, in cycles and in nanoseconds
    Json,
    /// As the sel4bench program prints its results
    Sel4bench,
}

/// Prints statistics of tracepoints.
pub fn run(args: TracepointsArgs) -> Result<ExitStatus, CliError> {
    let mut recording = args.inputs.open()?;
    if args.select.needs_names() {
        recording.learn_names();
    }
    let selection = selection::select(&args.select, &recording, true)?;
    let contains = |event: &Event<'_>| selection.contains(event);
    let chosen = selection.chosen(&recording, &contains);
    selection::warn_of_unknown_fields(&args.select, &chosen.trace);
    let gathered = gather(&chosen, args.inputs.hints.frequency);
    selection.finish()?;
    let cost = own_cost(&args.cost, &gathered)?;
    match (args.json, args.format) {
        (true, Format::Text) | (_, Format::Json) => {
            output::print_json(&page::to_json(&gathered, cost.as_ref()))?;
        }
        (_, Format::Sel4bench) => {
            output::print_json(&sel4bench::to_json(&gathered, cost.as_ref(), args.unit))?;
        }
        (false, Format::Text) => {
            output::print(&page::render(&gathered, cost.as_ref(), args.unit))?;
        }
    }
    let fine = gathered.damage.is_empty() && recording.source.faults().is_empty();
    Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// The own cost and the clock it was measured with.
pub struct Cost {
    /// Rows of outer and inner one.
    pub rows: (usize, usize),
    pub own: OwnCost,
}

/// Errors: a name that no tracepoint has; two that do not nest.
fn own_cost(names: &[String], gathered: &Gathered) -> Result<Option<Cost>, CliError> {
    let [outer, inner] = names else { return Ok(None) };
    let find = |name: &str| {
        let found = gathered.rows.iter().position(|row| row.label() == name);
        found.ok_or_else(|| {
            let labels: Vec<String> = gathered.rows.iter().take(12).map(Row::label).collect();
            let advice = match labels.as_slice() {
                [] => "the trace has none".to_owned(),
                labels => format!("the trace has {}", labels.join(", ")),
            };
            CliError::new("no such tracepoint", name, advice)
        })
    };
    let rows = (find(outer)?, find(inner)?);
    let own =
        lateralis_analysis::tracepoints::own_cost(&gathered.entries, rows.0 as u32, rows.1 as u32);
    let own = own.filter(|_| rows.0 != rows.1).ok_or_else(|| {
        CliError::new(
            "cannot tell the cost of a tracepoint",
            format!("{outer}, {inner}"),
            "no pair of the second lies alone inside one of the first: \
             START(outer) START(inner) STOP(inner) STOP(outer)",
        )
    })?;
    Ok(Some(Cost { rows, own }))
}
