// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Rust side: formatting, warnings, tests.

use crate::process;
use crate::steps::{Outcome, Step};
use crate::workspace;
use std::process::Command;

/// Sources are as `rustfmt` writes them.
pub const FMT: Step = Step { name: "fmt", run: fmt };
/// No warnings from the compiler or clippy, tests included.
pub const CLIPPY: Step = Step { name: "clippy", run: clippy };
/// All tests of the workspace, built apart, so that a slow compiler does not take the time of the tests.
pub const TEST_BUILD: Step = Step { name: "test-build", run: test_build };
/// Runs them.
pub const TEST_RUN: Step = Step { name: "test", run: test };

/// A command of cargo, by the one that runs this.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(arguments);
    command
}

/// Runs cargo; `advice` says what to do where it fails.
pub fn simple(arguments: &[&str], log_name: &str, advice: &str) -> Outcome {
    outcome(process::run(&mut cargo(arguments), log_name), advice)
}

/// What a program that checks something says by its end.
pub fn outcome(ran: Result<process::Finished, String>, advice: &str) -> Outcome {
    match ran {
        Ok(finished) if finished.success() => Outcome::pass(),
        Ok(finished) => Outcome::fail(format!("{advice}\n{}", finished.tail(60))),
        Err(error) => Outcome::fail(error),
    }
}

/// What cannot be checked because Rust is installed without this part of it.
pub fn missing(part: &str, component: &str) -> Option<Outcome> {
    let found = cargo(&[part, "--version"]).output();
    let is_here = found.is_ok_and(|output| output.status.success());
    (!is_here)
        .then(|| Outcome::skip(format!("no cargo {part} here: rustup component add {component}")))
}

fn fmt() -> Outcome {
    if let Some(skipped) = missing("fmt", "rustfmt") {
        return skipped;
    }
    simple(&["fmt", "--all", "--check"], "fmt", "not formatted: run cargo fmt --all")
}

fn clippy() -> Outcome {
    if let Some(skipped) = missing("clippy", "clippy") {
        return skipped;
    }
    simple(
        &["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"],
        "clippy",
        "clippy found something",
    )
}

fn test_build() -> Outcome {
    let arguments = ["test", "--locked", "--workspace", "--no-run"];
    simple(&arguments, "test-build", "tests do not build")
}

const TEST: [&str; 6] =
    ["test", "--locked", "--workspace", "--no-fail-fast", "--", "--show-output"];

/// Where more tests fail than this, none is run again: the load of the machine is not why.
const TRIED_AGAIN_MAX: usize = 5;

/// Many tests record this kernel, programs and clients with whatever else the machine does.
fn test() -> Outcome {
    let outcome = tests(&mut cargo(&TEST), "test");
    let names: Vec<&str> =
        outcome.failures.iter().filter_map(|failure| name_of_failure(failure)).collect();
    // What is no test has no name.
    if names.is_empty() || names.len() > TRIED_AGAIN_MAX || names.len() < outcome.failures.len() {
        return outcome;
    }
    let alone = ["--exact", "--test-threads=1"];
    let arguments: Vec<&str> = TEST.into_iter().chain(alone).chain(names).collect();
    let again = tests(&mut cargo(&arguments), "test-alone");
    after_retry(outcome, &again)
}

/// What a run found, with the results of its failed tests alone.
fn after_retry(first: Outcome, alone: &Outcome) -> Outcome {
    let failed_alone = |failure: &String| {
        let name = name_of_failure(failure);
        alone.failures.iter().any(|again| name_of_failure(again) == name)
    };
    let is_named = |failure: &String| name_of_failure(failure).is_some();
    let run = alone.passed + alone.failures.len();
    // Of one that was not run or is skipped alone nothing is known.
    let is_known = run >= first.failures.len() && alone.failures.iter().all(is_named);
    let is_failed = |failure: &String| !is_known || failed_alone(failure);
    let (failures, unstable): (Vec<_>, Vec<_>) = first.failures.into_iter().partition(is_failed);
    Outcome { passed: first.passed + unstable.len(), failures, unstable, ..first }
}

fn name_of_failure(failure: &str) -> Option<&str> {
    failure.lines().next()?.strip_prefix("test ")
}

/// Random tests draw the same cases for the same sources, so that another run has the same result;
/// other sources draw others, and `cargo test` by itself always does.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Runs tests and counts them.
pub fn tests(command: &mut Command, log_name: &str) -> Outcome {
    if std::env::var_os(SEED).is_none() {
        command.env(SEED, workspace::seed().to_string());
    }
    match process::run(command, log_name) {
        Ok(finished) => {
            let mut outcome = count(&finished.output);
            if !finished.success() && outcome.failures.is_empty() {
                outcome
                    .add(Outcome::fail(format!("cargo test: {log_name}\n{}", finished.tail(60))));
            }
            outcome
        }
        Err(error) => Outcome::fail(error),
    }
}

/// Reads what test harnesses print. A test that says `SKIPPED: reason` is
/// counted as skipped although its harness calls it passed.
fn count(output: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut section: Option<(&str, Vec<&str>)> = None;
    let mut sections = Vec::new();
    let mut failed = Vec::new();
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("---- ").and_then(|l| l.strip_suffix(" ----")) {
            sections.extend(section.take());
            let name = name.trim_end_matches(" stdout").trim_end_matches(" stderr");
            section = Some((name, Vec::new()));
        } else if let Some(result) = line.strip_prefix("test result: ") {
            sections.extend(section.take());
            outcome.passed += number_before(result, " passed");
            let ignored = number_before(result, " ignored");
            outcome.skipped.extend((0..ignored).map(|_| "a test marked to be ignored".into()));
        } else if let Some(name) = failed_test(line) {
            failed.push(name);
        } else if matches!(line, "failures:" | "successes:") {
            sections.extend(section.take());
        } else if let Some((_, lines)) = &mut section {
            lines.push(line);
        }
    }
    sections.extend(section.take());
    for (name, lines) in &sections {
        let reason = lines.iter().find_map(|line| line.trim().strip_prefix("SKIPPED: "));
        if let Some(reason) = reason.filter(|_| !failed.contains(name)) {
            outcome.passed = outcome.passed.saturating_sub(1);
            outcome.skipped.push(format!("{name}: {reason}"));
        }
    }
    for name in failed {
        let text = sections.iter().find(|(section, _)| *section == name);
        let text = text.map(|(_, lines)| lines.join("\n")).unwrap_or_default();
        outcome.failures.push(format!("test {name}\n{}", shortened(&text)));
    }
    outcome
}

/// What a test said, as far as people read it: a random test may print megabytes. All of it is in the log.
fn shortened(text: &str) -> String {
    const LEFT_CHARACTERS: usize = 8000;
    match text.char_indices().nth(LEFT_CHARACTERS) {
        Some((end, _)) => format!("{} … {} bytes more in the log", &text[..end], text.len() - end),
        None => text.to_owned(),
    }
}

fn failed_test(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.trim_end_matches(" - should panic"))
}

fn number_before(text: &str, word: &str) -> usize {
    let Some(end) = text.find(word) else { return 0 };
    let digits = text[..end].rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harness_output_is_counted_and_skipping_tests_are_told_apart() {
        let outcome = count(
            "running 3 tests\n\
             test a::one ... ok\n\
             test a::two ... ok\n\
             test b ... FAILED\n\n\
             successes:\n\n\
             ---- a::two stdout ----\n\
             SKIPPED: no babeltrace2 here\n\n\
             successes:\n    a::one\n    a::two\n\n\
             failures:\n\n\
             ---- b stdout ----\n\
             left != right\n\n\
             failures:\n    b\n\n\
             test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n",
        );
        assert_eq!(outcome.passed, 1);
        assert_eq!(outcome.skipped, ["a::two: no babeltrace2 here"]);
        assert_eq!(outcome.failures.len(), 1);
        assert!(outcome.failures[0].contains("left != right"));
    }

    #[test]
    fn what_a_test_says_is_cut_between_characters() {
        assert_eq!(shortened("left != right"), "left != right");
        let long = shortened(&"µ".repeat(9000));
        assert!(
            long.starts_with("µµ") && long.ends_with("µ … 2000 bytes more in the log"),
            "{long}"
        );
    }

    #[test]
    fn what_fails_beside_others_alone_is_unstable_and_told() {
        let run = |passed, failures: &[&str]| Outcome {
            passed,
            failures: failures.iter().map(|text| (*text).to_owned()).collect(),
            ..Outcome::default()
        };
        let first = || run(7, &["test a::b\nlate", "test a\nwrong"]);
        let outcome = after_retry(first(), &run(1, &["test a\nwrong again"]));
        assert_eq!((outcome.passed, outcome.failures.len()), (8, 1));
        assert_eq!(outcome.failures[0], "test a\nwrong");
        assert_eq!(outcome.unstable, ["test a::b\nlate"]);
        assert_eq!(after_retry(first(), &run(1, &["cargo test: no log"])).failures.len(), 2);
        assert_eq!(after_retry(first(), &run(1, &[])).failures.len(), 2, "one was not run");
    }
}
