// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selection of programs to record: `--policy`, `--program`.

use super::RecordArgs;
use crate::commands::policy::read;
use crate::error::CliError;
use lateralis_pleco::Schema;
use lateralis_recorder::policy::{PARTS, Policies};
use lateralis_recorder::{Filter, Patterns, RecordOptions};

/// Whether every running or starting program is examined.
pub(super) fn watches(args: &RecordArgs) -> bool {
    let chosen = args.policy.is_some() || !args.program.is_empty();
    chosen && args.command.is_empty() && args.attach.is_none()
}

/// Describes the recorded programs in words.
pub(super) fn what(args: &RecordArgs) -> &'static str {
    if watches(args) { "all programs that it is about" } else { "this machine" }
}

/// Parses the filters.
///
/// Errors: an invalid filter, or two for one event.
pub(super) fn filters(args: &RecordArgs) -> Result<Vec<Filter>, CliError> {
    let mut filters: Vec<Filter> = Vec::new();
    for text in &args.filter {
        let filter = Filter::parse(text)
            .map_err(|error| CliError::new("cannot use filter", error.filter, error.what))?;
        if filters.iter().any(|known| known.event == filter.event) {
            let advice = "it has one already: join them by `and` or `or`";
            return Err(CliError::new("cannot use filter", text, advice));
        }
        filters.push(filter);
    }
    Ok(filters)
}

/// Reads the policies.
///
/// Errors: the file is invalid. Recording has not started yet.
pub(super) fn policies(
    args: &RecordArgs,
    options: &RecordOptions,
) -> Result<Option<Policies>, CliError> {
    match &args.policy {
        None if args.program.is_empty() => Ok(None),
        None if args.program.iter().any(String::is_empty) => {
            let advice = "give names of programs, like nginx or worker*";
            Err(CliError::new("cannot choose programs", "--program", advice))
        }
        None => {
            let (enable, filters) = (options.enable.clone(), &options.filters);
            Ok(Some(Policies::of_programs(&args.program, enable, filters)))
        }
        Some(path) => read(path).map(Some),
    }
}

/// Checks the patterns that can only refer to the library of `--with`, and returns its schema.
///
/// Errors: the library has no such event. Recording has not started yet.
pub(super) fn check_patterns(args: &RecordArgs) -> Result<Option<Schema>, CliError> {
    const SCHEMA: &str = include_str!("../../../../../tracer/preload/preload.pleco");
    let compiled = lateralis_pleco::compile("preload.pleco", SCHEMA.as_bytes());
    let Some(schema) = compiled.schema else { return Ok(None) };
    let known: Vec<String> = schema.events.iter().map(|event| schema.full_name(event)).collect();
    for pattern in args.enable.iter().chain(&args.disable) {
        let subsystem = pattern.split(':').next().unwrap_or_default();
        if !PARTS.contains(&subsystem) {
            continue;
        }
        // Invalid patterns were refused earlier.
        let Ok(patterns) = Patterns::parse(pattern) else { continue };
        let mut names = known.iter().filter_map(|name| name.split_once(':'));
        if !names.any(|(subsystem, event)| patterns.matches(subsystem, event)) {
            let near = lateralis_pleco::nearest(pattern, known.iter().map(String::as_str));
            let advice = match near {
                Some(near) => format!("did you mean {near}?"),
                None => {
                    format!("`lat list` shows those of programs that run; {subsystem} means all")
                }
            };
            return Err(CliError::new("--with has no event of that name", pattern, advice));
        }
    }
    Ok(Some(schema))
}

/// Whether the library for uninstrumented programs must be loaded.
///
/// Errors: it cannot be loaded into programs that are not started here.
pub(super) fn needs_library(args: &RecordArgs, options: &RecordOptions) -> Result<bool, CliError> {
    let policies = options.policies.as_ref();
    let by_policy = policies.is_some_and(|policies| !policies.with.is_empty());
    if let (true, true, Some(path)) = (by_policy, args.command.is_empty(), &args.policy) {
        return Err(CliError::new(
            "cannot load the library of `with` into programs that are not started here",
            path.display().to_string(),
            "leave `with` out, or start the program: lat record --policy FILE -- CMD",
        ));
    }
    Ok(by_policy || !args.with.is_empty())
}
