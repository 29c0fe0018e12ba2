// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat record --serial`: records a machine without an operating system over a serial line.

use std::path::Path;

use lateralis_recorder::CtfVersion;
use lateralis_recorder::linux::{
    RecoverTexts, SerialOptions, SerialPart, SerialProgress, SerialSummary, record_serial,
};
use lateralis_recorder::serial::LineCounts;
use serde_json::{Value, json};

use crate::commands::record::{RecordArgs, free_name};
use crate::commands::recording_summary::{self, quoted};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::{self, Page};
use crate::status_line::StatusLine;
use crate::values;

/// Records until the line closes.
pub fn run(args: &RecordArgs, line: &str) -> Result<ExitStatus, CliError> {
    let from = line.parse().unwrap_or_else(|never| match never {});
    let options = SerialOptions {
        from,
        baud: args.baud,
        output: args.output.clone().unwrap_or_else(|| free_name("serial")),
        texts: RecoverTexts { programs: args.elf.clone(), schemas: args.schema.clone() },
        ctf_version: if args.ctf2 { CtfVersion::Ctf2 } else { CtfVersion::Ctf1 },
        retry: args.retry,
        duration: args.duration,
        max_disk_bytes: args.max_size,
    };
    if args.duration.is_none() && !args.quiet {
        tell!("recording {line}; Ctrl-C ends it");
    }
    let mut status = StatusLine::new(args.quiet || args.json);
    let summary = record_serial(&options, &mut |now| status.show(&progress(now)))?;
    status.clear();
    print(&summary, args.json, args.quiet)
}

fn progress(now: &SerialProgress) -> String {
    format!(
        "recording {:.0} s  {}  {}  {} missing{}",
        now.elapsed.as_secs_f64(),
        values::counted(now.events, "event"),
        values::bytes(now.bytes),
        values::counted(now.line.damaged + now.line.lost, "frame"),
        if now.is_connected { "" } else { "  not connected" },
    )
}

/// Prints the summary of a recording, and returns whether it is complete.
pub fn print(summary: &SerialSummary, as_json: bool, quiet: bool) -> Result<ExitStatus, CliError> {
    let is_fine = summary.problems.is_empty()
        && summary.parts.iter().all(|part| part.report.problems.is_empty());
    if as_json {
        output::print_json_line(&to_json(summary))?;
    } else if !quiet {
        output::tell(&text(summary));
    }
    Ok(if is_fine { ExitStatus::Fine } else { ExitStatus::Problems })
}

/// The first run has the members of any recording; then all runs are listed.
fn to_json(summary: &SerialSummary) -> Value {
    let one = |part: &SerialPart| recording_summary::json(&part.output, &part.report);
    let mut value = summary.parts.first().map_or(json!({}), one);
    let LineCounts { sent, before, received, damaged, lost, noise, .. } = summary.line;
    let LineCounts { packets, missing_packets, unnamed_packets, unusable, .. } = summary.line;
    value["line"] = json!({
        "bytes": summary.bytes,
        "connections": summary.connections,
        "frames": {
            "sent": sent, "before": before, "received": received, "damaged": damaged, "lost": lost,
            "unusable": unusable,
        },
        "packets": { "received": packets, "missing": missing_packets, "unnamed": unnamed_packets },
        "noise": noise,
        "problems": summary.problems,
    });
    value["runs"] = summary.parts.iter().map(one).collect();
    value
}

fn text(summary: &SerialSummary) -> Page {
    let mut text = Page::new();
    for part in &summary.parts {
        text.page(&recording_summary::facts(&part.output, &part.report));
    }
    let line = &summary.line;
    let mut parts = vec![format!("{} received", values::count(line.received))];
    for (count, what) in [
        (line.damaged, "damaged"),
        (line.lost, "lost"),
        (line.before, "sent before this side listened"),
        (line.unusable, "of no use"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", values::count(count)));
        }
    }
    if line.noise > 0 {
        parts.push(format!("text or noise between them {}", values::counted(line.noise, "time")));
    }
    line!(text, "line      {} sent: {}", values::counted(line.sent, "frame"), parts.join(", "));
    line!(
        text,
        "packets   {} received, {} missing{}",
        values::count(line.packets),
        values::count(line.missing_packets),
        match line.unnamed_packets {
            0 => String::new(),
            count => format!(", {} without the names of their events", values::count(count)),
        }
    );
    summary.problems.iter().for_each(|problem| line!(text, "problem   {problem}"));
    let folders: Vec<String> =
        summary.parts.iter().map(|part| quoted(&folder(&part.output))).collect();
    if let Some(newest) = folders.last() {
        line!(text, "next      lat stats {newest}");
    }
    text
}

fn folder(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
