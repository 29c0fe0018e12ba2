// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat enable`, `disable`, `start`, `stop`, `flush`, `snapshot`, `recover`: control the recording of running
//! programs, and recover the events of ended ones.

use crate::commands::{convert, recording_summary, serial};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::values;
use clap::Args;
use lateralis_recorder::linux::discovery::{self, Target};
use lateralis_recorder::linux::targets::{self, Controlled};
use lateralis_recorder::linux::{self, RecoverTexts, Request, Summary};
use lateralis_recorder::{CtfVersion, Error, Patterns, RecordOptions};
use lateralis_store::Recording;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Options of `lat enable` and `lat disable`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lat disable 1234 'malloc:*'
  lat enable redis-server mutex,io
  lat disable all '*,!lateralis:MARK'     all events except one")]
pub struct SwitchArgs {
    /// A process id, a program's name, or `all`
    pub target: String,
    /// Events: SUBSYSTEM:EVENT or SUBSYSTEM, with * and ?; a leading ! excludes
    #[arg(required = true, value_delimiter = ',', value_name = "PATTERN")]
    pub patterns: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `lat start`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lat start 1234                resumes a recording after lat stop
  lat start 1234 --buffer 1M    starts a flight recorder in a program that is not recorded;
                                lat snapshot 1234 -o DIR saves its rings")]
pub struct StartArgs {
    /// A process id, a program's name, or `all`
    pub target: String,
    /// Events of the flight recorder: SUBSYSTEM:EVENT or SUBSYSTEM, with * and ?
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', default_value = "*")]
    pub enable: Vec<String>,
    /// Memory of each ring of the flight recorder; there is one per CPU
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = values::parse_bytes,
        env = "LATERALIS_BUFFER")]
    pub buffer: u64,
    /// Size of a packet of the flight recorder
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = values::parse_bytes,
        env = "LATERALIS_PACKET")]
    pub packet: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `lat stop` and `lat flush`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lat stop 1234       pauses the recording; the program continues
  lat flush all       writes all events so far to the files")]
pub struct TellArgs {
    /// A process id, a program's name, or `all`
    pub target: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `lat snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  lat snapshot redis-server -o now && lat stats now")]
pub struct SnapshotArgs {
    /// A process id, a program's name, or `all`
    pub target: String,
    /// Directory for the recording
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Write CTF 2 metadata instead of CTF 1.8
    #[arg(long)]
    pub ctf2: bool,
    /// Print the summary as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `lat recover`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  lat recover /dev/shm/lateralis-1000 -o saved     areas that crashed programs left
  lat recover core.1234 -o saved                   a core dump or a memory image
  lat recover ram.bin --elf firmware.elf -o saved  RAM of a bare-metal machine
  lat recover line.bin -o saved                    raw bytes of a serial line
  lat recover cut-off-recording -o saved           a recording whose recorder was killed
  lat recover damaged-ctf -o saved                 the readable part of a damaged trace

Exit code 1: something could not be recovered; the output lists what.")]
pub struct RecoverArgs {
    /// An area, a directory of areas, a core dump or memory image, a recording, or any trace
    pub path: PathBuf,
    /// Directory for the recording
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Program that ran on a bare-metal machine: supplies event names
    #[arg(long, value_name = "FILE")]
    pub elf: Vec<PathBuf>,
    /// Schema of that program, if its ELF file is not available
    #[arg(long, value_name = "FILE")]
    pub schema: Vec<PathBuf>,
    /// Write CTF 2 metadata instead of CTF 1.8
    #[arg(long)]
    pub ctf2: bool,
    /// Print the summary as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Enables or disables events by pattern.
pub fn switch(args: SwitchArgs, enable: bool) -> Result<ExitStatus, CliError> {
    let patterns = Patterns::parse(&args.patterns.join(",")).map_err(Error::from)?;
    let target = Target::parse(&args.target);
    let changed = discovery::set_enabled(None, &target, &patterns, enable)?;
    if args.json {
        output::print_json(&json!({ "changed": changed, "enabled": enable }))?;
    } else {
        let word = if enable { "enabled" } else { "disabled" };
        let events = values::counted(changed as u64, "event");
        let mut page = Page::of_line(format_args!("{word} {events}"));
        page.gap();
        line!(page, "next: lat list {}", args.target);
        output::print(&page)?;
    }
    Ok(ExitStatus::Fine)
}

/// Enables events again, or makes a flight recorder for a program that is not being recorded.
pub fn start(args: StartArgs) -> Result<ExitStatus, CliError> {
    let mut options = RecordOptions::new("");
    options.enable = Patterns::parse(&args.enable.join(",")).map_err(Error::from)?;
    options.buffer_bytes = args.buffer;
    options.packet_bytes = args.packet;
    let done = targets::start(None, &Target::parse(&args.target), &options)?;
    print(&done, args.json, "runs as a flight recorder; next: lat snapshot")
}

/// Disables all events.
pub fn stop(args: TellArgs) -> Result<ExitStatus, CliError> {
    let done = targets::stop(None, &Target::parse(&args.target))?;
    print(&done, args.json, "is stopped; what its rings hold stays; next: lat snapshot")
}

/// Requests that the recorder write the contents of open packets.
pub fn flush(args: TellArgs) -> Result<ExitStatus, CliError> {
    let done = targets::request(None, &Target::parse(&args.target), Request::Flush)?;
    print(&done, args.json, "")
}

/// Writes the current contents of the rings.
pub fn snapshot(args: SnapshotArgs) -> Result<ExitStatus, CliError> {
    let version = version(args.ctf2);
    let summary = linux::snapshot(None, &Target::parse(&args.target), &args.output, version)?;
    recording_summary::print(&args.output, &summary.report, args.json, false, false)?;
    Ok(status(&summary))
}

/// Makes a recording from the memory that a crash left, or a clean trace from a damaged one.
pub fn recover(args: RecoverArgs) -> Result<ExitStatus, CliError> {
    let texts = RecoverTexts { programs: args.elf.clone(), schemas: args.schema.clone() };
    if let Some(summary) =
        linux::recover_serial(&args.path, &args.output, version(args.ctf2), &texts)?
    {
        return serial::print(&summary, args.json, false);
    }
    match linux::recover_with(&args.path, &args.output, version(args.ctf2), &texts) {
        Ok(summary) => {
            recording_summary::print(&args.output, &summary.report, args.json, false, false)?;
            Ok(status(&summary))
        }
        Err(nothing @ Error::NothingToRecover(_)) => recover_trace(args, nothing.into()),
        Err(error) => Err(error.into()),
    }
}

/// Writes the undamaged part of a trace that another tool wrote.
fn recover_trace(args: RecoverArgs, nothing: CliError) -> Result<ExitStatus, CliError> {
    let recording = Recording::open(&args.path).map_err(|_| nothing)?;
    let (one, two) = (lateralis_traces::Target::Ctf, lateralis_traces::Target::Ctf2);
    let target = if args.ctf2 { two } else { one };
    convert::recover(&recording, target, &args.output, args.json)
}

fn version(ctf2: bool) -> CtfVersion {
    if ctf2 { CtfVersion::Ctf2 } else { CtfVersion::Ctf1 }
}

fn status(summary: &Summary) -> ExitStatus {
    if summary.report.problems.is_empty() { ExitStatus::Fine } else { ExitStatus::Problems }
}

fn print(done: &[Controlled], as_json: bool, without: &str) -> Result<ExitStatus, CliError> {
    if as_json {
        let list: Vec<Value> = done.iter().map(to_json).collect();
        output::print_json(&json!({ "programs": list }))?;
    } else {
        let mut page = Page::new();
        done.iter().for_each(|one| line!(page, "{}", line(one, without)));
        output::print(&page)?;
    }
    Ok(ExitStatus::Fine)
}

fn to_json(controlled: &Controlled) -> Value {
    match controlled {
        Controlled::ByRecorder { recorder_pid, answer } => {
            json!({ "recorder_pid": recorder_pid, "recording": answer })
        }
        Controlled::FlightRecorder { pid } => json!({ "pid": pid, "flight_recorder": true }),
    }
}

fn line(controlled: &Controlled, without: &str) -> String {
    match controlled {
        Controlled::ByRecorder { recorder_pid, answer } => {
            let output = answer.output.as_deref().unwrap_or(Path::new(""));
            format!(
                "{}: {}, {}, {} lost{} (recorder {recorder_pid})",
                output.display(),
                values::counted(answer.events, "event"),
                values::bytes(answer.bytes),
                values::count(answer.lost),
                if answer.paused { ", stopped" } else { "" },
            )
        }
        Controlled::FlightRecorder { pid } => format!("{pid} {without} {pid} -o DIR"),
    }
}
