// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is said when a recording has been made.

use crate::colour::Role;
use crate::commands::keep;
use crate::error::CliError;
use crate::output::{self, Page};
use crate::values;
use lateralis_recorder::linux::obstacle;
use lateralis_recorder::report::{
    Losses, Outcome, Report, Totals, Triggers, Unrecorded, UnrecordedCause,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The summary for people: what there is, what is missing, what to do next. `has_library`: the library
/// of `--with` was loaded into all programs that can take it.
pub fn text(folder: &Path, report: &Report, has_library: bool) -> Page {
    if let Some(kept) = keep::summary(folder) {
        let mut text = watched(report);
        text.page(&kept);
        return text;
    }
    let mut text = facts(folder, report);
    line!(text, "next      {}", next(folder, report, has_library));
    text
}

/// What was seen where only windows of time were kept.
fn watched(report: &Report) -> Page {
    let mut text = Page::new();
    line!(
        text,
        "watched   {} of {} in {}",
        values::counted(report.totals.events, "event"),
        origins(report),
        values::time(report.throughput.elapsed_ns),
    );
    add_fired(&mut text, report);
    add_losses(&mut text, report);
    text
}

/// How often conditions fired, if something was done for them.
fn add_fired(text: &mut Page, report: &Report) {
    let Some(triggers) = &report.triggers else { return };
    if triggers.rules.iter().all(|rule| rule.actions == ["snapshot"]) {
        return;
    }
    let times = values::counted(triggers.fired, "time");
    let skipped = match triggers.commands_skipped {
        0 => String::new(),
        count => format!("; {} skipped, one ran already", values::counted(count, "command")),
    };
    line!(text, "fired     {times}{skipped}");
    add_failed(text, triggers);
}

/// Actions that failed, each with why and how often.
fn add_failed(text: &mut Page, triggers: &Triggers) {
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
        line!(text, "failed    {action}: {why}, {times}");
    }
}

/// What there is, and what is missing.
pub fn facts(folder: &Path, report: &Report) -> Page {
    let totals = &report.totals;
    let mut text = Page::new();
    line!(
        text,
        "recorded  {} of {} in {}, {}: {}",
        values::counted(totals.events, "event"),
        origins(report),
        values::time(report.throughput.elapsed_ns),
        values::bytes(totals.bytes),
        folder.display(),
    );
    add_removed(&mut text, folder);
    for one in &report.outputs {
        let Totals { events, bytes, lost, .. } = &one.totals;
        line!(
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

/// What is left of a recording in pieces of which the oldest were removed, as `--keep-chunks` says.
fn add_removed(text: &mut Page, folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let pieces: Vec<(u64, Value)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let number = name.to_str()?.strip_prefix("chunk-")?.parse().ok()?;
            let report = std::fs::read(entry.path().join("report.json")).ok()?;
            Some((number, serde_json::from_slice(&report).ok()?))
        })
        .collect();
    let newest = pieces.iter().map(|(number, _)| *number).max().unwrap_or(0);
    let left = pieces.len() as u64;
    if newest > left {
        let bytes =
            pieces.iter().filter_map(|(_, report)| report["totals"]["bytes"].as_u64()).sum();
        line!(
            text,
            "removed   the {} before: the newest {}, {}, are left: --keep-chunks",
            values::counted(newest - left, "piece"),
            values::count(left),
            values::bytes(bytes),
        );
    }
}

fn add_losses(text: &mut Page, report: &Report) {
    text.part(format_args!("lost      "));
    match losses(report) {
        known if known.is_empty() => line!(text, "{}", nothing_lost(report)),
        lost => text.line_as(Role::Problem, format_args!("{lost}")),
    }
    for problem in &report.problems {
        text.line_as(Role::Problem, format_args!("problem   {problem}"));
    }
    const SHOWN: usize = 10;
    let groups = report.not_recorded_by_detail(5);
    for (programs, detail) in groups.iter().take(SHOWN) {
        let is_problem = report.problems.iter().any(|problem| problem == detail);
        let detail = if is_problem { "see above" } else { detail };
        line!(text, "missed    {programs}: {detail}");
    }
    if groups.len() > SHOWN {
        line!(text, "missed    more programs, see report.json");
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
        "serial" => "a serial line".to_owned(),
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
        "unrecorded": report.unrecorded,
        "not_recorded": report.not_recorded,
        "not_recorded_total": report.not_recorded_total,
        "removed_chunks": report.removed_chunks,
    })
}

/// Prints one or the other. The text goes to standard error: standard output
/// belongs to the recorded program.
pub fn print(
    folder: &Path,
    report: &Report,
    as_json: bool,
    quiet: bool,
    has_library: bool,
) -> Result<(), CliError> {
    if as_json {
        output::print_json_line(&json(folder, report))
    } else {
        if !quiet {
            output::tell(&text(folder, report, has_library));
        }
        Ok(())
    }
}

/// What was lost, by cause; empty if nothing was.
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
    // What a server dropped is among the missing packets of a copy, and told by itself.
    let dropped = report.received.iter().flat_map(|received| &received.dropped_of);
    let dropped = dropped.fold(0, |sum: u64, one| sum.saturating_add(one.count.packets));
    let overwritten = totals.lost_packets.saturating_sub(dropped);
    if overwritten > 0 {
        let packets = values::counted(overwritten, "packet");
        // Of a ring that overwrites either may be the cause; the counts of frames say which.
        let of_line = report.sources.iter().find(|source| source.name == "serial");
        parts.push(match of_line.map(|source| source.details.get("mode").map(String::as_str)) {
            None => format!("{packets} overwritten by newer ones"),
            Some(Some("overwrite")) => format!("{packets} overwritten, or missing from the line"),
            Some(_) => format!("{packets} missing from the line"),
        });
    }
    if totals.not_written > 0 {
        let events = values::counted(totals.not_written, "event");
        parts.push(format!("{events} that could not be written to the file"));
    }
    let stopped = report.unrecorded.iter().filter(|one| one.cause == UnrecordedCause::Stopped);
    let (count, stopped_ns) =
        stopped.fold((0, 0), |(count, sum), one| (count + 1, sum + length(one)));
    if count > 0 {
        let time = values::time(stopped_ns);
        parts.push(format!("what happened while it was stopped, {time}: unknown"));
    }
    for one in report.unrecorded.iter().filter(|one| one.cause == UnrecordedCause::Ended) {
        let time = match one.to_ns {
            Some(_) => format!(" for {}", values::time(length(one))),
            None => String::new(),
        };
        parts
            .push(format!("what happened after it had ended, the programs went on{time}: unknown"));
    }
    // Reports of older versions have no total.
    let missed = report.not_recorded_total.max(report.not_recorded.len() as u64);
    if missed > 0 {
        let what = values::counted(missed, "program");
        parts.push(format!("all events of {what} that could not be traced: unknown"));
    }
    let no_place = report.areas.iter().any(|area| area.lost_schemas > 0);
    if no_place {
        parts.push("events that found no place in the tables of a program: unknown".into());
    }
    parts.join("; ")
}

fn nothing_lost(report: &Report) -> &'static str {
    match report.processes.is_empty() && report.sources.is_empty() {
        true => "nothing that is known: no program with events was seen",
        false => "nothing",
    }
}

/// Nanoseconds of an interval; 0 where its end is not known.
fn length(one: &Unrecorded) -> u64 {
    one.to_ns.map_or(0, |to| u64::try_from(to.saturating_sub(one.from_ns)).unwrap_or(0))
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

fn next(folder: &Path, report: &Report, has_library: bool) -> String {
    if report.totals.events > 0 {
        let folder = quoted(&folder.to_string_lossy());
        let samples = report.sources.iter().find(|source| source.name == "samples");
        let says = |name: &str, what: &str| {
            samples.is_some_and(|of| of.details.get(name).is_some_and(|is| is == what))
        };
        return match samples {
            Some(_) if says("off_cpu", "yes") && says("samples_per_second", "0") => {
                format!("lat flow stacks {folder} --off-cpu")
            }
            Some(_) => format!("lat flow stacks {folder}"),
            None => format!("lat stats {folder}"),
        };
    }
    let Some(command) = report.command.as_ref().filter(|_| report.processes.is_empty()) else {
        return "none of the enabled events happened: `lat list` shows what there is".into();
    };
    if !report.not_recorded.is_empty() {
        return "none of the programs could be traced, see above".into();
    }
    let words: Vec<String> = command.arguments.iter().map(|word| quoted(word)).collect();
    let words = words.join(" ");
    if has_library {
        return format!(
            "no program could be traced: lat record --kernel sched,syscalls -- {words}"
        );
    }
    match command.arguments.first().and_then(|program| obstacle(program.as_ref())) {
        Some(obstacle) => {
            format!("this program has no events of its own, and --with has none: it is {obstacle}")
        }
        None => format!(
            "this program has no events of its own: lat record --with mutex,malloc,io -- {words}"
        ),
    }
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@%+=:,./-_".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        for (word, expected) in
            [("a/b-1.c", "a/b-1.c"), ("my prog", "'my prog'"), ("it's", "'it'\\''s'"), ("", "''")]
        {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn causes_of_losses_come_with_what_helps() {
        let lost = Losses { full: 1200, no_ring: 3, total: 1203, ..Losses::default() };
        let causes = causes(&lost);
        assert_eq!(causes.len(), 2);
        assert!(causes[0].starts_with("1200 ring full") && causes[0].contains("--buffer"));
    }
}
