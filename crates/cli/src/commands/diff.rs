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
                                          three of the good program, three of the other
  lat diff before after --from 1s --app warehouse
  lat diff before after --json | jq '.differences[0]'

Runs of one program differ, too. A difference counts if it is larger than the threshold and than
what runs of one program differ by: with one recording each that is taken from how much the
recordings vary in themselves, with several it is seen. What makes all spans longer alike is taken
for the machine, unless it is more than machines do. Ranked by the time of a run it explains.
Of samples of call stacks (lat record --sample, perf record -g), functions are compared by how many
samples were taken in each: a difference is more than chance lets them differ.

Exit code 0: no difference; 1: differences; 2: it could not be said.")]
pub struct DiffArgs {
    /// Recordings: the good one and the bad one; with --good, all bad ones
    #[arg(value_name = "TRACE", required = true)]
    pub traces: Vec<PathBuf>,
    /// A recording of the good program; give several for a surer answer
    #[arg(long, value_name = "TRACE")]
    pub good: Vec<PathBuf>,
    /// Shifts by fewer percent are no difference
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = parse_percent)]
    pub threshold: f64,
    /// By how many percent even what always takes the same time varies from run to run
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = parse_percent)]
    pub noise: f64,
    /// Report only what is slower, longer or more often in the bad ones
    #[arg(long)]
    pub only_worse: bool,
    /// Of samples, compare which share of all each function has, not how many: of recordings that
    /// were ended by hand
    #[arg(long)]
    pub shares: bool,
    /// Look for the files with the functions of samples below this folder
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
