// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat diff`: what changed between two recordings, or between some and some others.

mod functions;
mod page;

use std::path::PathBuf;

use clap::Args;
use lateralis_analysis::diff::Options;
use lateralis_images::ImageFiles;
use lateralis_model::{Source, Trace};
use lateralis_store::Recording;
use lateralis_store::compared::{Comparison, Observed};
use lateralis_store::stacks::{Gathered, Samples, gather};

use self::functions::Functions;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::HintArgs;
use crate::output;
use crate::reading;
use crate::selection::{SelectArgs, Selection};

/// Options of `lat diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lat diff before after                   two recordings
  lat diff --good a --good b --good c x y z
                                          three runs of each
  lat diff before after --from 1s --app warehouse
  lat diff before after --json | jq '.differences[0]'

Runs of the same program differ as well. A difference is reported if it exceeds the threshold and
the variation between runs: with several recordings of each that variation is measured, with one
it is estimated from the variation within the recording. A slowdown of all spans by the same
factor is attributed to the machine, unless it is larger than machines vary. Differences are
ranked by the part of the run time that they explain. Functions in call-stack samples (lat record
--sample, perf record -g) are compared by their number of samples; a reported difference exceeds
sampling error.

Exit code 0: no difference; 1: differences; 2: the comparison was not possible.")]
pub struct DiffArgs {
    /// Recordings: the good one and the bad one; with --good, bad ones only
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    /// A recording of the good program; several give a more certain answer
    #[arg(long, value_name = "TRACE")]
    pub good: Vec<PathBuf>,
    /// Ignore differences below this percentage
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = parse_percent)]
    pub threshold: f64,
    /// Assumed variation between runs of even the most stable duration
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = parse_percent)]
    pub noise: f64,
    /// Report only what is slower, longer or more frequent in the bad recordings
    #[arg(long)]
    pub only_worse: bool,
    /// Compare each function's share of the samples instead of their number: for recordings of different
    /// length
    #[arg(long)]
    pub shares: bool,
    /// Directory with copies of the traced machine's files, for symbols
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub hints: HintArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>();
    let percent = number.ok().filter(|number| (0.0..=10_000.0).contains(number));
    percent.map(|percent| percent / 100.0).ok_or_else(|| "expected percent, like 5".to_owned())
}

/// Compares and prints.
pub fn run(args: DiffArgs) -> Result<ExitStatus, CliError> {
    let (good, bad) = match (args.good.as_slice(), args.traces.as_slice()) {
        ([], [good, bad @ ..]) if !bad.is_empty() => (std::slice::from_ref(good), bad),
        ([], [only, ..]) => {
            let advice = "give a good and a bad one, or more with --good";
            return Err(CliError::new(
                "nothing to compare with",
                only.display().to_string(),
                advice,
            ));
        }
        (good, bad) => (good, bad),
    };
    let options = Options { threshold: args.threshold, noise: args.noise, ..Options::default() };
    let Seen { observed: good_seen, traces: good_traces, stacks: good_stacks } =
        observe(good, &args)?;
    let Seen { observed: bad_seen, traces: bad_traces, stacks: bad_stacks } = observe(bad, &args)?;
    let traces: Vec<&Trace> = good_traces.iter().chain(&bad_traces).collect();
    args.select.check_patterns(&traces)?;
    let mut comparison = Comparison::of(&good_seen, &bad_seen, &options);
    if args.only_worse {
        comparison.differences.retain(|difference| difference.is_worse());
        comparison.perhaps.retain(|difference| difference.is_worse());
    }
    let mut functions = Functions::compare(&good_stacks, &bad_stacks, args.shares, &options);
    if let Some(functions) = functions.as_mut().filter(|_| args.only_worse) {
        functions.differences.retain(|difference| difference.is_worse());
    }
    if comparison.compared == 0 && functions.is_none() {
        let place = format!("{} and {}", good[0].display(), bad[0].display());
        return Err(CliError::new("nothing to compare", place, "they have no events in common"));
    }
    let paths = (good, bad);
    if args.json {
        let mut json = page::json(paths, &comparison, &options);
        json["functions"] = functions.as_ref().map(Functions::json).into();
        output::print_json(&json)?;
    } else {
        let mut page = page::render(paths, &comparison, &options);
        if let Some(functions) = &functions {
            functions.show(&mut page);
        }
        output::print(&page)?;
    }
    let is_same = comparison.differences.is_empty()
        && functions.is_none_or(|functions| functions.differences.is_empty());
    Ok(if is_same { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// Recordings of one side.
#[derive(Default)]
struct Seen {
    observed: Vec<Observed>,
    traces: Vec<Trace>,
    stacks: Vec<Gathered>,
}

/// Reads one after the other, so that only numbers stay in memory, and what can happen.
fn observe(paths: &[PathBuf], args: &DiffArgs) -> Result<Seen, CliError> {
    let options = args.hints.options()?;
    let mut seen = Seen::default();
    for path in paths {
        reading::begin();
        let mut recording = Recording::open_all(std::slice::from_ref(path), &options)?;
        reading::opened(&recording);
        if args.select.needs_names() {
            recording.learn_names();
        }
        args.select.warn_of_unknown_fields(recording.source.trace());
        // How often the tracer notes who writes is nothing that a program does.
        let selection = Selection::of_patterns(&args.select, &recording, false)?;
        let contains = |event: &lateralis_model::Event<'_>| selection.contains(event);
        let chosen = selection.chosen(&recording, &contains);
        seen.observed.push(Observed::of(&chosen));
        let mut files = ImageFiles::new(args.symfs.as_deref());
        if Samples::new(&mut files, &chosen.trace).are_any() {
            seen.stacks.push(gather(&chosen, &mut files, true));
        }
        selection.finish()?;
        seen.traces.push(recording.source.trace().clone());
    }
    Ok(seen)
}
