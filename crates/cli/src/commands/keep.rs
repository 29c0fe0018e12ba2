// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat keep`: small recordings around the times at which a condition was true.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args};
use lateralis_recorder::action::Action;
use lateralis_recorder::linux::KeepNotice;
use lateralis_recorder::report::{KeptList, KeptReason, KeptWindow};
use lateralis_recorder::{KeepOptions, RecordOptions};
use lateralis_units::Nanos;

use crate::commands::record::{self, Mode, RecordArgs};
use crate::commands::recording_summary::quoted;
use crate::date;
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::output::Page;
use crate::values;

/// Longest time between two drains of the rings. Single events need not appear sooner.
const DRAIN_PERIOD: Duration = Duration::from_millis(20);
/// Disk space of all windows unless an option sets it.
const DISK_BYTES: u64 = 1 << 30;

/// Options of `lat keep`.
#[derive(Debug, Args)]
#[command(override_usage = "lat keep [OPTIONS] --when <CONDITION> [--] [CMD]...",
    group = ArgGroup::new("condition").args(["when"]).required(true).multiple(true),
    after_help = "Examples:
  lat keep --when 'span(request) > 5ms' -- ./server
                                          10 s before and 5 s after each slow request
  lat keep --when 'missing(app:HEARTBEAT) for 2s' --before 30s --attach 1234
                                          a running program
  sudo lat keep --when 'event(sched:sched_switch, prev_comm == \"audio\")' --before 20ms --system
                                          the whole machine
  lat keep --when 'rate(app:ERROR) > 10/s or counter(queue) > 1000' --most 20 -- ./server

Conditions:
  span(NAME) > TIME                       a span takes longer, whether it has ended or not
  sequence(EVENT, EVENT ...) within TIME  events in this order
  missing(EVENT) for TIME                 an expected event does not occur
  rate(EVENT) > N/s [over TIME]           too many events; with < too few
  counter(NAME) > N                       also < >= <= == !=
  event(SUBSYSTEM:EVENT, FIELD == VALUE)  an event with these values
  A and B within TIME                     both, in any order; true at the later one

Join several by `or`, or repeat --when; ( ) group. Spans and counters are those of the schema.

Each window is a complete recording (OUTPUT/spike-0001, …) of the requested time; kept.json in
OUTPUT lists when and why each was kept and the measured value. A moment inside a window extends
that window. All other events are discarded: memory holds --before plus one second, at most
--memory.")]
pub struct KeepArgs {
    /// Time to keep before each moment
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::parse_time)]
    pub before: Duration,
    /// Time to keep after each moment
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::parse_time)]
    pub after: Duration,
    /// Keep at most N windows on disk; --max-size limits their total size [default: 1G]
    #[arg(long, value_name = "N", default_value = "100", value_parser = values::parse_count)]
    pub most: u64,
    /// When these limits are reached, keep the first windows instead of the last
    #[arg(long)]
    pub first: bool,
    /// Memory for events that a window may still need
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = values::parse_bytes)]
    pub memory: u64,
    #[command(flatten)]
    pub record: RecordArgs,
}

/// Evaluates conditions until the program has ended.
pub fn run(args: KeepArgs) -> Result<ExitStatus, CliError> {
    let options = options(&args)?;
    record::run_with(&args.record, options, &mut |args, session| {
        record::rules::observe(args, session);
        Ok(())
    })
}

fn options(args: &KeepArgs) -> Result<RecordOptions, CliError> {
    let is_in_chunks = args.record.chunk_size.is_some() || args.record.chunk_time.is_some();
    let not_here = [
        (args.record.connect.is_some(), "--connect", "record it there: lat record --connect"),
        (args.record.serial.is_some(), "--serial", "all of it is recorded: lat record --serial"),
        (args.record.live.is_some(), "--live", "windows are not streamed: leave it out"),
        (is_in_chunks, "--chunk-size, --chunk-time", "windows are pieces already: leave it out"),
        (
            args.record.mode == Mode::Overwrite,
            "--mode overwrite",
            "the newest events are kept anyway",
        ),
    ];
    if let Some((_, option, advice)) = not_here.into_iter().find(|(is_given, ..)| *is_given) {
        return Err(CliError::new("cannot keep windows with this option", option, advice));
    }
    if args.most == 0 {
        return Err(CliError::new("cannot keep no window", "--most 0", "give at least 1"));
    }
    let mut options = record::options(&args.record)?;
    options.max_disk_bytes = None;
    options.drain_period = DRAIN_PERIOD;
    options.keep = Some(KeepOptions {
        before: args.before,
        after: args.after,
        windows_max: args.most,
        disk_bytes_max: args.record.max_size.unwrap_or(DISK_BYTES),
        memory_bytes_max: args.memory,
        keeps_first: args.first,
        is_alone: true,
    });
    for rule in &mut options.rules {
        let times = |action: &Action| matches!(action, Action::Snapshot(Some(_)));
        if rule.actions.iter().any(times) {
            let advice = "write snapshot, or leave it out: --before and --after say how long";
            return Err(CliError::new("cannot keep windows of different length", "--then", advice));
        }
        if !rule.actions.contains(&Action::Snapshot(None)) {
            rule.actions.push(Action::Snapshot(None));
        }
    }
    Ok(options)
}

/// Prints a notice on standard error; standard output belongs to the program.
pub fn tell(notice: &KeepNotice<'_>) {
    match notice {
        KeepNotice::Warning(text) => {
            tell!("warning: {text}: nothing that registered so far has it");
        }
        KeepNotice::Fired(reason) => {
            tell!("fired     {}  {}", date::text(Nanos(reason.at_ns)), why(reason));
        }
        KeepNotice::Window(window, folder) => {
            line(folder, window).into_iter().for_each(|line| tell!("{line}"));
        }
    }
}

/// Formats a window and the reason it was kept.
fn line(output: &Path, window: &KeptWindow) -> Option<String> {
    let first = window.reasons.first()?;
    let folder: PathBuf = output.join(&window.name);
    let mut text = format!(
        "kept      {}  {}  {}",
        date::text(Nanos(first.at_ns)),
        folder.display(),
        why(first),
    );
    let more = window.reasons.len() as u64 - 1 + window.more_reasons;
    if more > 0 {
        text += &format!(", and {more} more");
    }
    for short in &window.short {
        text += &format!("; {short}");
    }
    Some(text)
}

/// Formats the reason a window was kept: `span(request) > 5ms: 7.21 ms, key 42`.
fn why(reason: &KeptReason) -> String {
    let mut text = reason.condition.clone();
    if let Some(duration) = reason.duration_ns {
        let at_least = if reason.is_over { "" } else { "at least " };
        text += &format!(": {at_least}{}", values::time(duration));
    }
    if let Some(value) = &reason.value {
        text += &format!(": {value}");
    }
    if let Some(key) = &reason.key {
        text += &format!(", key {key}");
    }
    if !reason.is_certain {
        text += ", unknown whether so: events were lost";
    }
    text
}

/// Lists the windows of a folder for people; `None` if the folder has no list.
pub fn summary(output: &Path) -> Option<Page> {
    let list = std::fs::read_to_string(output.join("kept.json")).ok()?;
    let list = KeptList::from_json(&list).ok()?;
    let mut kept = list.windows.iter().filter(|window| !window.removed);
    let bytes: u64 = kept.clone().map(|window| window.bytes).sum();
    let count = kept.clone().count() as u64;
    let mut text = Page::new();
    line!(
        text,
        "kept      {}, {}: {}; fired {}, not kept {}, removed {}",
        values::counted(count, "window"),
        values::bytes(bytes),
        output.display(),
        values::count(list.fired),
        values::count(list.not_kept),
        values::count(list.removed),
    );
    let limits = &list.not_judged;
    if limits.events + limits.spans + limits.values + limits.late_events > 0 {
        line!(
            text,
            "unknown   not judged: {} events, {} spans, {} values; late: {} events",
            limits.events,
            limits.spans,
            limits.values,
            limits.late_events
        );
    }
    let next = kept
        .next_back()
        .map_or("lat record -- CMD, then lat stats: how long do spans take?".to_owned(), |last| {
            format!("lat stats {}", quoted(&output.join(&last.name).to_string_lossy()))
        });
    line!(text, "next      {next}");
    Some(text)
}
