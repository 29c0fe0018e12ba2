// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat record --sim`: runs a program in a simulated machine and records the instructions executed there.

use std::path::Path;

use lateralis_images::ImageFiles;
use lateralis_simulator::linux::{Error, Job, Machine, Printed, Report};
use lateralis_store::Recording;
use lateralis_traces::OpenOptions;
use serde_json::{Value, json};

use super::{RecordArgs, free_name, program_name};
use crate::commands::flow::kept_code::{self, KeptCode};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::values;

/// Runs the program until it ends.
pub fn run(args: &RecordArgs) -> Result<ExitStatus, CliError> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None => free_name(&program_name(args.command.first())),
    };
    if output.join("perf.data").symlink_metadata().is_ok() {
        let place = output.display().to_string();
        return Err(CliError::new(
            "there is a recording already",
            place,
            "name another folder: -o DIR",
        ));
    }
    let job = Job {
        command: args.command.clone(),
        files: args.sim_file.clone(),
        cpus: args.sim_cpus,
        kernel: args.sim_kernel,
        packets: args.sim_packets.unwrap_or_default(),
        per_cpu: args.sim_per_cpu,
        append: args.sim_append.clone(),
        output,
        truth: false,
    };
    let machine = Machine::prepare(job, &mut |name| {
        if !args.quiet {
            tell!("fetching {name} for the simulated machine, once");
        }
    })?;
    let report = machine.run(&mut |printed| match printed {
        Printed::Stdout(bytes) => output::pass_on_output(bytes),
        Printed::Stderr(bytes) => output::pass_on_errors(bytes),
    })?;
    if let Some(errno) = report.status.and_then(|status| status.errno) {
        let cause = std::io::Error::from_raw_os_error(i32::try_from(errno).unwrap_or(0));
        let program = args.command.first().map(|word| word.to_string_lossy().into_owned());
        let place = program.unwrap_or_default();
        return Err(CliError::new(
            "cannot start in the simulated machine",
            place,
            cause.to_string(),
        ));
    }
    keep_code(&report)?;
    if args.json {
        output::print_json_line(&summary_json(&report))?;
    } else if !args.quiet {
        output::tell(&summary(&report));
    } else {
        report.problems.iter().for_each(|problem| tell!("warning: {problem}"));
    }
    Ok(exit_status(&report))
}

/// Copies the executed code into the recording. Packets cannot be decoded without it, and files of this
/// machine may change.
fn keep_code(report: &Report) -> Result<(), CliError> {
    let kernel = report.kernel_code.iter().map(|(address, path)| (path.clone(), *address));
    let known = KeptCode {
        kernel: kernel.collect(),
        kallsyms: report.symbols.clone(),
        ..KeptCode::default()
    };
    let recording =
        Recording::open_all(std::slice::from_ref(&report.data), &OpenOptions::default())?;
    let folder = report.data.parent().unwrap_or(Path::new("."));
    let images = known.beside(ImageFiles::new(None));
    for (path, why) in kept_code::keep(&recording.source, images, &known, folder)? {
        tell!("warning: not kept: {path}: {why}");
    }
    Ok(())
}

fn exit_status(report: &Report) -> ExitStatus {
    match exit_code(report) {
        Some(code) => ExitStatus::Program(code),
        None => ExitStatus::Problems,
    }
}

/// Exit code in the convention of a shell; `None` if unknown.
fn exit_code(report: &Report) -> Option<u8> {
    const SIGNALLED: u32 = 128;
    let code = match (report.status, report.signal) {
        (Some(status), _) => match status.wait & 0x7f {
            0 => status.wait >> 8 & 0xff,
            signal => SIGNALLED + signal,
        },
        (None, Some(signal)) => SIGNALLED + u32::try_from(signal).ok()?,
        (None, None) => return None,
    };
    u8::try_from(code).ok()
}

fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,:=@%".contains(letter);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

fn summary(report: &Report) -> Page {
    let mut page = Page::new();
    line!(
        page,
        "recorded  {} of {}: {}",
        values::counted(report.sums.retired, "instruction"),
        values::counted(report.threads.len() as u64, "thread"),
        report.data.display(),
    );
    if !report.odd.is_nothing() {
        let odd = report.odd;
        let count = odd.words + odd.transfers + odd.events;
        line!(page, "problem   {} do not fit together", values::counted(count, "transfer"));
    }
    for problem in &report.problems {
        line!(page, "problem   {problem}");
    }
    let data = quoted(&report.data);
    let commands: &[&str] = match report.symbols {
        Some(_) => &["stacks", "syscalls", "dump"],
        None => &["stacks", "dump"],
    };
    for (index, command) in commands.iter().enumerate() {
        let label = if index == 0 { "next" } else { "" };
        line!(page, "{label:<9} lat flow {command} {data}");
    }
    page
}

fn summary_json(report: &Report) -> Value {
    json!({
        "recording": report.data.display().to_string(),
        "instructions": report.sums.retired,
        "threads": report.threads.iter().map(|(tid, instructions)| {
            json!({"tid": tid, "instructions": instructions})
        }).collect::<Vec<_>>(),
        "kernel_code": report.kernel_code.iter().map(|(address, path)| {
            json!({"address": format!("{address:#x}"), "file": path.display().to_string()})
        }).collect::<Vec<_>>(),
        "kallsyms": report.symbols.as_ref().map(|path| path.display().to_string()),
        "problems": report.problems,
        "exit_status": exit_code(report),
    })
}

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        Self::new(error.what, error.place, error.advice)
    }
}
