// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is said when a recording has been made.

use crate::commands::keep;
use crate::error::CliError;
use crate::output;
use crate::values;
use lateralis_recorder::report::{Losses, Outcome, Report, Totals, Triggers};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The summary for people: what there is, what is missing, what to do next.
pub fn text(folder: &Path, report: &Report) -> String {
    if let Some(kept) = keep::summary(folder) {
        return watched(report) + &kept;
    }
    let mut text = facts(folder, report);
    let _ = writeln!(text, "next      {}", next(folder, report));
    text
}

/// What was seen where only windows of time were kept.
fn watched(report: &Report) -> String {
    let mut text = format!(
        "watched   {} of {} in {}\n",
        values::counted(report.totals.events, "event"),
        origins(report),
        values::time(report.throughput.elapsed_ns),
    );
    add_fired(&mut text, report);
    add_losses(&mut text, report);
    text
}

/// How often conditions fired, if something was done for them.
fn add_fired(text: &mut String, report: &Report) {
    let Some(triggers) = &report.triggers else { return };
    if triggers.rules.iter().all(|rule| rule.actions == ["snapshot"]) {
        return;
    }
    let times = values::counted(triggers.fired, "time");
    let skipped = match triggers.commands_skipped {
        0 => String::new(),
        count => format!("; {} skipped, one ran already", values::counted(count, "command")),
    };
    let _ = writeln!(text, "fired     {times}{skipped}");
    add_failed(text, triggers);
}

/// Actions that failed, each with why and how often.
fn add_failed(text: &mut String, triggers: &Triggers) {
    let mut failed: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for done in triggers.firings.iter().flat_map(|fired| &fired.done) {
        let why = match done.outcome {
            Outcome::Failed => done.cause.as_deref().unwrap_or("it cannot be done"),
            Outcome::TimedOut => "it took too long and was killed: --run-time",
            Outcome::Done | Outcome::Running | Outcome::Skipped => continue,
        };
        *failed.entry((&done.action, why)).or_default() += 1;
    }
    for ((action, why), count) in failed {
        let times = values::counted(count, "time");
        let _ = writeln!(text, "failed    {action}: {why}, {times}");
    }
}

/// What there is, and what is missing.
pub fn facts(folder: &Path, report: &Report) -> String {
    let totals = &report.totals;
    let mut text = format!(
        "recorded  {} of {} in {}, {}: {}\n",
        values::counted(totals.events, "event"),
        origins(report),
        values::time(report.throughput.elapsed_ns),
        values::bytes(totals.bytes),
        folder.display(),
    );
    for one in &report.outputs {
        let Totals { events, bytes, lost, .. } = &one.totals;
        let _ = writeln!(
            text,
            "beside    {}, {}, {} lost{}: {}",
            values::counted(*events, "event"),
            values::bytes(*bytes),
            values::count(lost.total),
            if one.complete { "" } else { ", not complete" },
            one.path,
        );
    }
    add_fired(&mut text, report);
    add_losses(&mut text, report);
    text
}

fn add_losses(text: &mut String, report: &Report) {
    let _ = writeln!(text, "lost      {}", losses(report));
    for problem in &report.problems {
        let _ = writeln!(text, "problem   {problem}");
    }
}

/// What ended early, it or one beside it, and why, for people who asked for silence: what is not there
/// they must know.
pub fn incomplete(folder: &Path, report: &Report) -> Vec<String> {
    let own = (!report.complete).then(|| folder.display().to_string());
    let beside = report.outputs.iter().filter(|one| !one.complete).map(|one| one.path.clone());
    let problems = report.problems.join("; ");
    let say = |path| {
        format!(
            "error: the recording ended early: {path}: {problems}: what was written until then can be read"
        )
    };
    own.into_iter().chain(beside).map(say).collect()
}

/// Whose events they are.
fn origins(report: &Report) -> String {
    let processes = values::counted(report.processes.len() as u64, "process");
    let is_alone = report.sources.is_empty() || !report.processes.is_empty();
    let others = report.sources.iter().filter(|source| source.name != "marks");
    let sources = others.map(|source| match source.name.as_str() {
        "packets" => "the network".to_owned(),
        name => format!("the {name}"),
    });
    let all: Vec<String> = is_alone.then_some(processes).into_iter().chain(sources).collect();
    all.join(" and ")
}

/// The summary as one JSON object; everything else is in the recording's
/// `report.json`, whose path is in it.
pub fn json(folder: &Path, report: &Report) -> Value {
    let kept = Some(folder.join("kept.json")).filter(|list| list.exists());
    json!({
        "recording": folder,
        "kept": kept,
        "report": folder.join("report.json"),
        "exit_status": report.command.as_ref().and_then(|command| command.exit_status),
        "processes": report.processes.len(),
        "totals": report.totals,
        "outputs": report.outputs,
        "elapsed_ns": report.throughput.elapsed_ns,
        "problems": report.problems,
    })
}

/// Prints one or the other. The text goes to standard error: standard output
/// belongs to the recorded program.
pub fn print(folder: &Path, report: &Report, as_json: bool, quiet: bool) -> Result<(), CliError> {
    if as_json {
        output::print(&format!("{}\n", json(folder, report)))
    } else {
        if !quiet {
            output::tell(format_args!("{}", text(folder, report)));
        }
        Ok(())
    }
}

fn losses(report: &Report) -> String {
    let totals = &report.totals;
    let mut parts = Vec::new();
    if totals.lost.total > 0 {
        parts.push(format!(
            "{} ({})",
            values::counted(totals.lost.total, "event"),
            causes(&totals.lost).join(", ")
        ));
    }
    if totals.lost_packets > 0 {
        let packets = values::counted(totals.lost_packets, "packet");
        parts.push(format!("{packets} overwritten by newer ones"));
    }
    if totals.not_written > 0 {
        let events = values::counted(totals.not_written, "event");
        parts.push(format!("{events} that could not be written to the file"));
    }
    if parts.is_empty() { "nothing".into() } else { parts.join("; ") }
}

/// Each cause that occurred, with what helps.
fn causes(lost: &Losses) -> Vec<String> {
    let rows = [
        (lost.full, "ring full: a larger --buffer helps"),
        (lost.too_big, "longer than a packet: a larger --packet helps"),
        (lost.contended, "restarted too often"),
        (lost.no_ring, "no ring: nested too deep, or more threads than rings"),
    ];
    rows.iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, cause)| format!("{} {cause}", values::count(*count)))
        .collect()
}

fn next(folder: &Path, report: &Report) -> String {
    let folder = folder.display();
    if report.totals.events > 0 {
        return format!("lat stats {folder}");
    }
    match &report.command {
        Some(command) if report.processes.is_empty() => format!(
            "this program has no events of its own: lat record --with mutex,malloc,io -- {}",
            command.arguments.join(" ")
        ),
        _ => "none of the enabled events happened: `lat list` shows what there is".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_of_losses_come_with_what_helps() {
        let lost = Losses { full: 1200, no_ring: 3, total: 1203, ..Losses::default() };
        let causes = causes(&lost);
        assert_eq!(causes.len(), 2);
        assert!(causes[0].starts_with("1 200 ring full") && causes[0].contains("--buffer"));
    }
}
