// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditions and their actions: `--when`, `--then`.

use super::{Mode, RecordArgs};
use crate::commands::keep::tell;
use crate::error::CliError;
use lateralis_recorder::action::{Action, Rule};
use lateralis_recorder::condition::Condition;
use lateralis_recorder::filter::FilterError;
use lateralis_recorder::linux::{KeepNotice, Session};
use lateralis_recorder::{EventMatch, KeepOptions, RecordOptions, TriggerOptions};
use std::time::Duration;

/// Evaluation interval. Which conditions fire, and at which event time, does not depend on it.
pub const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// Evaluation interval if a condition starts or stops the recording: events between the firing and its
/// evaluation are recorded in excess, or missed.
const SWITCH_PERIOD: Duration = Duration::from_millis(10);
/// Time before and after the firing that a snapshot keeps by default.
const AROUND: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));
/// Limits for windows kept beside a recording: memory, disk space and number.
const MEMORY_BYTES: u64 = 256 << 20;
const DISK_BYTES: u64 = 1 << 30;
const WINDOWS: u64 = 100;

/// Parses conditions with their actions.
///
/// Errors: the first one that is invalid. Recording has not started yet.
pub fn rules(args: &RecordArgs) -> Result<Vec<Rule>, CliError> {
    let wrong = |place: &str, advice: &str| {
        Err(CliError::new("cannot pair conditions and actions", place, advice))
    };
    let (when, then) = (args.when.len(), args.then.len());
    if then > 1 && then != when {
        let advice = "give one --then for all --when, or one for each, in their order";
        return wrong(&format!("{when} --when, {then} --then"), advice);
    }
    if then == 1 && when == 0 {
        return wrong("--then", "say when: --when 'span(request) > 5ms'");
    }
    let mut actions = Vec::new();
    for text in &args.then {
        actions.push(Action::parse_list(text).map_err(|error| {
            let place = format!("{:?}: {}", error.action, error.what);
            CliError::new("cannot understand the action", place, error.advice)
        })?);
    }
    let rules = args.when.iter().enumerate().map(|(at, text)| {
        let own = actions.get(at).filter(|_| then > 1).or(actions.first());
        Ok(Rule { condition: condition(text)?, actions: own.cloned().unwrap_or_default() })
    });
    rules.collect()
}

fn condition(text: &str) -> Result<Condition, CliError> {
    Condition::parse(text).map_err(|error| {
        let place = format!("column {}: {}", error.at + 1, error.what);
        CliError::new("cannot understand the condition", place, error.advice.clone())
            .with_picture(error.picture())
    })
}

/// Parses the events that start and stop the recording directly, if given.
///
/// Errors: an invalid event or count. Recording has not started yet.
pub(super) fn trigger(args: &RecordArgs) -> Result<Option<TriggerOptions>, CliError> {
    let parse = |option: &str, text: &Option<String>| -> Result<Option<EventMatch>, CliError> {
        let Some(text) = text else { return Ok(None) };
        let wrong = |error: FilterError| {
            CliError::new("cannot use event", format!("{option} {}", error.filter), error.what)
        };
        EventMatch::parse(text).map(Some).map_err(wrong)
    };
    let start = parse("--start-on", &args.start_on)?;
    let stop = parse("--stop-on", &args.stop_on)?;
    if start.is_none() && stop.is_none() && args.count.is_none() {
        return Ok(None);
    }
    if args.count == Some(0) {
        return Err(CliError::new("cannot record no event", "--count 0", "give at least 1"));
    }
    Ok(Some(TriggerOptions { start, stop, duration: args.for_time, count: args.count }))
}

/// Adds rules to the options of `lat record`.
pub(super) fn add(args: &RecordArgs, options: &mut RecordOptions) -> Result<(), CliError> {
    options.rules = rules(args)?;
    options.command_time_max = args.run_time;
    if options.rules.is_empty() {
        return Ok(());
    }
    if args.mode == Mode::Overwrite {
        let advice = "its rings are read once, at the end: leave one of both out";
        return Err(CliError::new("cannot watch for conditions", "--mode overwrite", advice));
    }
    let is_switch = |action: &Action| matches!(action, Action::Start | Action::Stop);
    let switches = options.rules.iter().any(|rule| rule.actions.iter().any(is_switch));
    if switches && options.trigger.is_some() {
        let advice = "an event and a condition cannot both: leave one of both out";
        return Err(CliError::new(
            "cannot start and stop",
            "--start-on, --stop-on, --count",
            advice,
        ));
    }
    let watches = args.policy.is_some() || !args.program.is_empty();
    if switches && watches {
        let advice = "programs start by themselves then: leave one of both out";
        return Err(CliError::new("cannot start and stop", "--policy, --program", advice));
    }
    let period = if switches { SWITCH_PERIOD } else { LOOK_PERIOD };
    options.flush_period = args.flush_every.unwrap_or(period);
    Ok(())
}

/// Adds the options of windows that `snapshot` keeps beside the recording.
pub(super) fn add_snapshots(
    args: &RecordArgs,
    options: &mut RecordOptions,
) -> Result<(), CliError> {
    if let Some(rule) = options.rules.iter().find(|rule| rule.actions.is_empty()) {
        let text = rule.condition.tests.first().map_or("", |(text, _)| text);
        let advice = "say what to do: --then 'mark slow; snapshot 10s 5s; run ./tell'";
        return Err(CliError::new("nothing is done when this happens", text, advice));
    }
    let all = options.rules.iter().flat_map(|rule| &rule.actions);
    let mut asked = all.filter_map(|action| match action {
        Action::Snapshot(times) => Some(times.unwrap_or(AROUND)),
        _ => None,
    });
    let Some((before, after)) = asked.next() else { return Ok(()) };
    if asked.any(|times| times != (before, after)) {
        let advice = "give all the same times before and after";
        return Err(CliError::new("cannot keep windows of different length", "snapshot", advice));
    }
    if args.chunk_size.is_some() || args.chunk_time.is_some() {
        let advice = "windows are pieces already: leave one of both out";
        return Err(CliError::new("cannot keep windows of pieces", "snapshot", advice));
    }
    options.keep = Some(KeepOptions {
        before,
        after,
        windows_max: WINDOWS,
        disk_bytes_max: DISK_BYTES,
        memory_bytes_max: MEMORY_BYTES,
        keeps_first: false,
        is_alone: false,
    });
    Ok(())
}

/// Prints firings and kept windows while the recording runs.
pub fn observe(args: &RecordArgs, session: &mut Session) {
    if !args.quiet && !args.json {
        // Without actions, each firing keeps a window, which is printed instead.
        let tells_all = !args.then.is_empty();
        session.on_keep(Box::new(move |notice| {
            if tells_all || !matches!(notice, KeepNotice::Fired(_)) {
                tell(notice);
            }
        }));
    }
}
