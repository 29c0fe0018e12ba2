// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat convert`: a trace as a file of another format.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use lateralis_images::ImageFiles;
use lateralis_model::Source;
use lateralis_model::terminal::Style;
use lateralis_traces::{ConvertError, Converted, Options, TARGETS, Target, convert, convert_into};
use serde_json::json;

use super::flow::kept_code::{self, KeptCode};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::inputs::InputArgs;
use crate::output::{self, Page};
use crate::selection::{self, SelectArgs, Selected};
use crate::values;
use lateralis_store::Recording;

/// Options of `lat convert`.
#[derive(Debug, Args)]
#[command(after_help = "Formats and what they preserve; a warning lists what is dropped:\n  \
    ctf, ctf2   everything; CTF 1.8 has integers for blobs, flags and yes/no\n  \
    perfetto    spans, messages, states, counters, fields, names, losses; ui.perfetto.dev\n  \
    chrome      the same; chrome://tracing, ui.perfetto.dev\n  \
    fxt         the same; fields from the 13th on as JSON text; Fuchsia's tools\n  \
    parquet     all events as one table; to a directory, also one table per event class\n  \
    jsonl       all events, losses and damage, one object per line\n  \
    csv         time, CPU, thread and numbers, as Composite writes them; --header adds names\n  \
    pcapng      packets, interfaces, losses\n  \
    barrelfish  events with a number in --definitions; 32 bits of one argument\n\n\
    Examples:\n  \
    lat convert perf.data -o perf.ctf\n  \
    lat convert demo -o demo.pftrace                    open in ui.perfetto.dev\n  \
    lat convert demo --app warehouse -o warehouse.json  Chrome JSON of one program\n  \
    lat convert kernel ust -o both                      two traces merged into one\n  \
    lat convert demo --to csv -o - | head               to standard output\n\n\
    Exit code 1: the trace is damaged; the readable part was written.")]
pub struct ConvertArgs {
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Output path; its extension selects the format, none means a CTF directory; - with --to is standard
    /// output
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,
    /// Output format, if the extension does not select it
    #[arg(long, value_name = "FORMAT",
        value_parser = PossibleValuesParser::new(TARGETS.iter().map(|(_, word, _)| *word)))]
    pub to: Option<String>,
    #[command(flatten)]
    pub select: SelectArgs,
    /// CSV: add a header line and a last column with the event as text
    #[arg(long)]
    pub header: bool,
    /// Overwrite existing output
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Converts, and says what could not be kept.
pub fn run(args: ConvertArgs) -> Result<ExitStatus, CliError> {
    let target = match &args.to {
        Some(word) => Target::named(word),
        None => Target::of_path(&args.output),
    };
    if to_standard_output(&args.output) && target.is_none_or(is_directory) {
        let files: Vec<&str> = TARGETS
            .iter()
            .filter(|(to, ..)| !is_directory(*to))
            .map(|(_, word, _)| *word)
            .collect();
        let advice = format!("standard output takes one file: use --to with {}", files.join(", "));
        return Err(CliError::new("cannot convert", "-", advice));
    }
    let target = target.ok_or_else(|| {
        let known: Vec<&str> = TARGETS.iter().map(|(_, word, _)| *word).collect();
        let advice = format!("its ending tells no format: use --to with {}", known.join(", "));
        CliError::new("cannot convert", args.output.display().to_string(), advice)
    })?;
    let mut recording = args.inputs.open()?;
    recording.learn_names();
    let definitions = args.inputs.hints.definitions()?;
    let options = Options { definitions, header_and_text: args.header, replace: args.force };
    let kept = KeptCode::of(&args.inputs.traces)?;
    let status = write(&recording, &args.select, target, &args.output, &options, args.json)?;
    if !is_directory(target) || !kept_code::is_wanted(&recording.source) {
        return Ok(status);
    }
    // Another machine has other files: what packets are of goes with them.
    let images = kept.beside(ImageFiles::new(None));
    for (path, why) in kept_code::keep(&recording.source, images, &kept, &args.output)? {
        tell!("warning: not kept: {path}: {why}");
    }
    Ok(status)
}

/// Whether the place to write to is standard output.
fn to_standard_output(output: &Path) -> bool {
    output.as_os_str() == "-"
}

fn is_directory(target: Target) -> bool {
    matches!(target, Target::Ctf | Target::Ctf2)
}

/// Writes what is healthy of a damaged trace.
pub fn recover(
    recording: &Recording,
    target: Target,
    output: &Path,
    json: bool,
) -> Result<ExitStatus, CliError> {
    write(recording, &SelectArgs::default(), target, output, &Options::default(), json)
}

fn write(
    recording: &Recording,
    select: &SelectArgs,
    target: Target,
    output: &Path,
    options: &Options,
    json: bool,
) -> Result<ExitStatus, CliError> {
    let selection = selection::select(select, recording, true)?;
    let trace = recording.annotated();
    let selected = Selected { recording, selection: &selection, trace };
    selection::warn_of_unknown_fields(select, &selected.trace);
    let alone = to_standard_output(output)
        || fs::metadata(output).is_ok_and(|there| !there.is_file() && !there.is_dir());
    let converted = match to_standard_output(output) {
        true => convert_into(&selected, target, &mut output::data(style(target)), output, options),
        false => convert(&selected, target, output, options),
    };
    let Converted { dropped, damage } = converted.map_err(explain)?;
    selection.finish()?;
    let faults = recording.source.faults();
    let text = if json {
        let value = json!({
            "output": output.display().to_string(),
            "not_kept": dropped.iter().map(|(what, count)| json!({ "what": what, "count": count }))
                .collect::<Vec<_>>(),
            "damage": damage.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "faults": faults,
        });
        let mut text = Page::new();
        text.lines(&format!("{value:#}"));
        text
    } else {
        let mut text = Page::of_line(format_args!("written   {}", output.display()));
        for (what, count) in dropped.iter() {
            line!(text, "not kept  {what} ({})", values::count(count));
        }
        for sentence in faults.iter().cloned().chain(damage.iter().map(ToString::to_string)) {
            line!(text, "damage    {sentence}");
        }
        if !alone && !matches!(target, Target::Csv | Target::JsonLines | Target::Parquet) {
            line!(text, "next      lat info {}", output.display());
        }
        text
    };
    if alone {
        // A pipe or a device, perhaps standard output: the trace alone goes there.
        output::tell(&text);
    } else {
        output::print(&text)?;
    }
    let fine = damage.is_empty() && faults.is_empty();
    Ok(if fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// How a terminal is shown what the format would let it have.
fn style(target: Target) -> Style {
    match target {
        Target::Chrome | Target::JsonLines => Style::Json,
        _ => Style::Text,
    }
}

fn explain(error: ConvertError) -> CliError {
    match error {
        // A closed pipe there is no failure.
        ConvertError::Io { path, source } if to_standard_output(&path) => CliError::Output(source),
        ConvertError::Io { path, source } => CliError::at_path("cannot write", &path, &source),
        other => CliError::new(other.to_string(), "", ""),
    }
}
