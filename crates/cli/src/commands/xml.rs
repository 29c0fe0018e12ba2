// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat xml`: analyses written for Trace Compass.

mod json;
mod page;

use std::fs::File as FsFile;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use lateralis_analysis::Gaps;
use lateralis_model::{Damage, Source};
use lateralis_tmfxml::{Analysis, File, Found, Severity};

use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output;
use crate::selection::{self, SelectArgs, Selected};

/// Bytes of an analysis file that are read.
const FILE_BYTES: u64 = 32 << 20;
/// What an analysis has found is shown so many at a time.
const BATCH: usize = 4096;

/// Options of `lat xml`.
#[derive(Debug, Args)]
#[command(
    after_help = "State providers give states, patterns give segments: both are summarized; --json \
    lists each.\n\
    An analysis with an unsupported construct is not run; the message has its line.\n\n\
    Examples:\n  \
    lat xml componentanalysis.xml run\n  \
    lat xml checkpointanalysis.xml run --json | jq '.analyses[].found[].name'\n\n\
    Exit code 1: an analysis of the file cannot be run, or the trace is damaged."
)]
pub struct XmlArgs {
    /// Analyses in the XML language of Trace Compass
    #[arg(value_name = "ANALYSIS.xml")]
    pub analysis: PathBuf,
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Run only the analysis with this id or label
    #[arg(long, value_name = "ID")]
    pub only: Vec<String>,
    /// Print JSON with every state and segment
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// Runs the analyses of a file over a trace.
pub fn run(args: XmlArgs) -> Result<ExitStatus, CliError> {
    let file = lateralis_tmfxml::parse(&text(&args.analysis)?);
    let chosen = chosen(&args, &file)?;
    let mut recording = args.inputs.open()?;
    recording.learn_names();
    let selection = selection::select(&args.select, &recording, true)?;
    let trace = recording.annotated();
    let selected = Selected { recording: &recording, selection: &selection, trace };
    selection::warn_of_unknown_fields(&args.select, &selected.trace);
    // Damage inside is known after the first pass.
    let mut damage = Vec::new();
    if args.json {
        let mut stdout = output::json();
        json::write(&mut stdout, &chosen, &file, &selected, &mut damage)?;
        stdout.flush()?;
    } else {
        let mut page = page::problems(&args.analysis, &file);
        page.page(&page::render(&chosen, &selected, &mut damage));
        output::print(&page)?;
    }
    let fine = damage.is_empty() && recording.source.faults().is_empty() && !file.has_errors();
    Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// The text of a file.
///
/// Errors: it cannot be read, is too large, or no UTF-8.
fn text(path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    FsFile::open(path)
        .and_then(|file| file.take(FILE_BYTES).read_to_string(&mut text))
        .map_err(|cause| CliError::at_path("cannot read", path, &cause))?;
    Ok(text)
}

/// The analyses to run.
///
/// Errors: there is none, or none of a name that was asked for.
fn chosen<'f>(args: &XmlArgs, file: &'f File) -> Result<Vec<&'f Analysis>, CliError> {
    let place = args.analysis.display().to_string();
    let is = |analysis: &Analysis, name: &String| analysis.id == *name || analysis.label == *name;
    for name in &args.only {
        if !file.analyses.iter().any(|analysis| is(analysis, name)) {
            let ids: Vec<&str> = file.analyses.iter().map(|a| a.id.as_str()).collect();
            let advice = format!("it has {}", ids.join(", "));
            return Err(CliError::new(format!("no analysis `{name}`"), place, advice));
        }
    }
    let wanted = |analysis: &&Analysis| {
        args.only.is_empty() || args.only.iter().any(|name| is(analysis, name))
    };
    let chosen: Vec<&Analysis> = file.analyses.iter().filter(wanted).collect();
    if chosen.is_empty() {
        let error = file.problems.iter().find(|problem| problem.severity == Severity::Error);
        let advice = error.map_or("it has none".to_owned(), ToString::to_string);
        return Err(CliError::new("no analysis can be run", place, advice));
    }
    Ok(chosen)
}

/// Shows all that an analysis finds, in the order in which it ended; gives the sentences
/// about what was left out. Damage found on the way is kept once.
fn pass(
    analysis: &Analysis,
    source: &Selected<'_>,
    damage: &mut Vec<Damage>,
    show: &mut dyn FnMut(&Found) -> Result<(), CliError>,
) -> Result<Vec<String>, CliError> {
    let mut run = analysis.start();
    let mut found = Vec::new();
    let mut events = source.events();
    while let Some(event) = events.next_event() {
        run.event(&event, source.names(), &mut found);
        if found.len() >= BATCH {
            found.drain(..).try_for_each(|found| show(&found))?;
        }
    }
    let left_out = run.finish(&mut found);
    found.iter().try_for_each(show)?;
    *damage = source.recording.all_damage(events.damage());
    Ok(left_out)
}

/// Where events are missing, as far as that is known before reading.
fn gaps(source: &Selected<'_>) -> Gaps {
    Gaps::new(source.losses(), source.damage(), |_| None)
}
