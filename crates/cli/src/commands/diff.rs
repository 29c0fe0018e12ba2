// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat diff`: what changed between two recordings, or between some and some others.

use std::path::{Path, PathBuf};

use clap::Args;
use lateralis_analysis::diff::Options;
use lateralis_reports::Error;
use lateralis_reports::diff::{Caller, Compared, Settings};
use lateralis_store::Recording;
use lateralis_traces::OpenOptions;

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::HintArgs;
use crate::output;
use crate::reading;
use crate::selection::SelectArgs;

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
    let settings = Settings {
        options: Options { threshold: args.threshold, noise: args.noise, ..Options::default() },
        only_worse: args.only_worse,
        by_shares: args.shares,
        symfs: args.symfs.clone(),
    };
    let mut opener = Opener { options: args.hints.options()? };
    let compared = Compared::of(good, bad, &args.select, &settings, &mut opener)?;
    if args.json {
        output::print_json(&compared.json())?;
    } else {
        output::print(&compared.page())?;
    }
    Ok(if compared.is_same() { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// Opens recordings, with a line of progress.
struct Opener {
    options: OpenOptions,
}

impl Caller for Opener {
    fn open(&mut self, path: &Path) -> Result<Recording, Error> {
        reading::begin();
        let recording = Recording::open_all(&[path.to_owned()], &self.options)?;
        reading::opened(&recording);
        Ok(recording)
    }

    fn warn(&mut self, text: &str) {
        tell!("warning: {text}");
    }
}
