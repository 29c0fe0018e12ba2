// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Input traces of a command, and information that the traces lack. All commands have the same options.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use lateralis_traces::{OpenOptions, Relate, words};

use crate::error::CliError;
use crate::memory;
use crate::reading;
use crate::standard_input;
use crate::values;
use lateralis_model::Source as _;
use lateralis_store::Recording;

/// The argument that names the traces of a command, for [`crate::args`].
pub const TRACES: &str = "traces-or-newest";

/// See [`are_incomplete`]. One thread writes it, and reads it when the command has finished.
static INCOMPLETE: AtomicBool = AtomicBool::new(false);

/// Whether the exit status is 1 although the command succeeded: a given path contained no trace and was left
/// out, or events were lost and `--fail-on-loss` was given.
pub fn are_incomplete() -> bool {
    INCOMPLETE.load(Ordering::Relaxed)
}

/// Returns the path of a trace named on the command line.
fn named(path: PathBuf) -> Result<PathBuf, String> {
    if path.as_os_str() == "-" { standard_input::path() } else { Ok(path) }
}

/// Options that name traces.
#[derive(Debug, Clone, Args)]
pub struct InputArgs {
    /// A recording or a trace in any supported format; several are merged; - is standard input [default:
    /// the newest lateralis-* in this directory]
    #[arg(id = TRACES, value_name = "TRACE", value_parser = PathBufValueParser::new().try_map(named))]
    pub traces: Vec<PathBuf>,
    /// How clocks of several machines are aligned: by the clock exchanges of --connect, by keyed messages
    /// between them, or by the date only
    #[arg(long, value_enum, value_name = "HOW", default_value_t = RelateBy::Exchange)]
    pub relate: RelateBy,
    /// Exit with status 1 if events were lost during recording
    #[arg(long)]
    pub fail_on_loss: bool,
    #[command(flatten)]
    pub hints: HintArgs,
}

/// Method of aligning the clocks of several recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RelateBy {
    /// Clock exchanges in report.json, or else the date
    Exchange,
    /// Messages in both directions, or else the date
    Messages,
    /// The date only
    Date,
}

/// Options for information that traces do not contain.
#[derive(Debug, Clone, Args)]
pub struct HintArgs {
    /// Read the files in this format instead of detecting it: barrelfish-buffers, sel4-entries:ABI, …
    #[arg(long = "as", value_name = "FORMAT")]
    pub as_format: Option<String>,
    /// Timestamp frequency, if the format does not state it
    #[arg(long, value_name = "HZ")]
    pub frequency: Option<u64>,
    /// Event names for Barrelfish traces: a schema (.pleco) or its JSON
    #[arg(long, value_name = "FILE")]
    pub definitions: Option<PathBuf>,
    /// Memory limit for formats that are read into memory and for unpacked archives [default: a quarter of
    /// the available memory]
    #[arg(long, value_name = "SIZE", value_parser = values::parse_bytes)]
    pub memory: Option<u64>,
}

impl InputArgs {
    /// Opens the traces, and prints on standard error which clocks cannot be aligned.
    ///
    /// Errors: a file cannot be read, or is not a trace.
    pub fn open(&self) -> Result<Recording, CliError> {
        let mut options = self.hints.options()?;
        options.relate = match self.relate {
            RelateBy::Exchange => Relate::Exchange,
            RelateBy::Messages => Relate::Messages,
            RelateBy::Date => Relate::Date,
        };
        reading::begin();
        let recording = Recording::open_all(&self.traces, &options)?;
        reading::opened(&recording);
        for sentence in &recording.not_traces {
            INCOMPLETE.store(true, Ordering::Relaxed);
            tell!("warning: not read: {sentence}");
        }
        for sentence in &recording.clocks {
            tell!("warning: {sentence}");
        }
        if self.fail_on_loss && !recording.source.losses().is_empty() {
            INCOMPLETE.store(true, Ordering::Relaxed);
            tell!("warning: events were lost while this was recorded: lat info lists them");
        }
        Ok(recording)
    }
}

impl HintArgs {
    /// Converts the hints to options of the readers.
    ///
    /// Errors: an unknown format; definitions that cannot be read.
    pub fn options(&self) -> Result<OpenOptions, CliError> {
        let mut options = OpenOptions {
            memory_bytes: self.memory.unwrap_or_else(memory::share),
            frequency_hz: self.frequency,
            definitions: self.definitions()?,
            ..OpenOptions::default()
        };
        if let Some(format) = &self.as_format {
            let (word, abi) = match format.split_once(':') {
                Some((word, abi)) => (word, Some(abi.to_owned())),
                None => (format.as_str(), None),
            };
            if !words().any(|known| known == word) {
                let known = words().collect::<Vec<_>>().join(", ");
                return Err(CliError::new("no such format", format, format!("known are {known}")));
            }
            options.format = Some(word.to_owned());
            options.abi = abi;
        }
        Ok(options)
    }

    /// Returns name and content of the JSON file with the event names.
    ///
    /// Errors: it cannot be read, or the schema does not compile.
    pub fn definitions(&self) -> Result<Option<(String, Vec<u8>)>, CliError> {
        let Some(path) = &self.definitions else {
            return Ok(None);
        };
        let name = path.display().to_string();
        let text =
            fs::read(path).map_err(|cause| CliError::at_path("cannot read", path, &cause))?;
        if path.extension().is_some_and(|ending| ending == "pleco") {
            let schema = lateralis_pleco::compile(&name, &text).schema.ok_or_else(|| {
                CliError::new(
                    "the schema does not compile",
                    &name,
                    format!("lat pleco check {name}"),
                )
            })?;
            let json = lateralis_pleco::generate::legacy_json(&schema);
            return Ok(Some((name, json.into_bytes())));
        }
        Ok(Some((name, text)))
    }
}
