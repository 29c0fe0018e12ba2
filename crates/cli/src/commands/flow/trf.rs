// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow trf`: compares the temporal resolution of traces.

use clap::Args;
use lateralis_store::flow::{Recorded, Resolution, factors, resolution};
use serde_json::json;

use super::code::{CodeArgs, Hardware};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::{self, Page};
use crate::table::{Align, Table};
use crate::values;

/// Factor of the coarsest trace.
const MOST: f64 = 100.0;

/// Options of `lat flow trf`.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints for each trace the median time and the median number of instructions between \
    two timestamps \
    of its packets, and the temporal resolution factor: their product, scaled from 0 (the finest of these \
    traces) to 100 (the coarsest). Record the same program with different timing packets:\n\n  \
    perf record --per-thread -e intel_pt/mtc_period=3/u -o coarse.data -- ./program\n  \
    perf record --per-thread -e intel_pt/cyc,cyc_thresh=1/u -o fine.data -- ./program\n  \
    lat flow trf coarse.data fine.data\n\n\
    Exit code 1: a trace contains no time, or gaps hide some of it."
)]
pub struct TrfArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub code: CodeArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the temporal resolution of each trace.
pub fn run(args: &TrfArgs) -> Result<ExitStatus, CliError> {
    let mut rows: Vec<(String, Resolution)> = Vec::new();
    let mut is_whole = true;
    for path in &args.inputs.traces {
        let inputs = InputArgs { traces: vec![path.clone()], ..args.inputs.clone() };
        let hardware = Hardware::read(&inputs.traces)?;
        let follow = |recorded: &mut Recorded<'_>| Ok(resolution(recorded));
        let (found, is_complete) = args.code.follow(&inputs, hardware, follow)?;
        is_whole &= is_complete && found.gaps == 0;
        rows.push((path.display().to_string(), found));
    }
    let medians: Vec<Option<(u64, u64)>> = rows.iter().map(|(_, of)| of.medians()).collect();
    let products: Vec<f64> =
        medians.iter().flatten().map(|(nanos, count)| *nanos as f64 * *count as f64).collect();
    let mut found = factors(&products, MOST).into_iter().flatten();
    // In the order of the traces, omitting those without a median.
    let factors: Vec<Option<f64>> =
        medians.iter().map(|median| median.and_then(|_| found.next())).collect();
    let each = || rows.iter().zip(&medians).zip(&factors);
    if args.json {
        let row = |(((trace, of), median), factor): ((&(String, Resolution), &_), &Option<f64>)| {
            let (nanos, instructions) = Option::<(u64, u64)>::unzip(*median);
            json!({
                "trace": trace,
                "bytes": of.bytes,
                "moments": of.nanos.len(),
                "gaps": of.gaps,
                "median_ns": nanos,
                "median_instructions": instructions,
                "trf": factor,
            })
        };
        output::print_json(&json!({ "traces": each().map(row).collect::<Vec<_>>() }))?;
    } else {
        let mut page = Page::new();
        let mut head = vec![("trace", Align::Left)];
        let columns = ["bytes", "moments", "median time", "instructions", "trf"];
        head.extend(columns.map(|of| (of, Align::Right)));
        let mut table = Table::new(&head);
        for (((trace, of), median), factor) in each() {
            let time = |of: &(u64, u64)| values::time(of.0);
            table.row([
                trace.clone(),
                values::count(of.bytes),
                values::count(of.nanos.len() as u64),
                median.as_ref().map_or_else(String::new, time),
                median.map_or_else(String::new, |of| values::count(of.1)),
                factor.map_or_else(String::new, |factor| format!("{factor:.3}")),
            ]);
        }
        page.page(&table.render());
        if factors.iter().all(Option::is_none) {
            line!(page, "no factor: that needs two traces with another resolution");
        }
        output::print(&page)?;
    }
    let has_times = medians.iter().all(Option::is_some);
    Ok(if has_times && is_whole { ExitStatus::Fine } else { ExitStatus::Problems })
}
