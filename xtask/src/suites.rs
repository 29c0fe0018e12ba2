// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Test suites that are not Rust: each is a command that prints a line for each
//! fact, `ok NAME`, `FAIL NAME why` or `SKIPPED: NAME why`, and last
//! `N passed, N failed, N skipped`.

use crate::generate;
use crate::process;
use crate::steps::{Outcome, Step};
use crate::workspace;
use std::process::Command;

/// The C tracer: headers, libraries, examples, stress, sanitizers, models.
pub const C: Step = Step { name: "c-test", run: || suite("make", &["-C", "tracer/c", "check"]) };
/// Machine code and instruction counts of the record paths are as recorded.
pub const CODEGEN: Step =
    Step { name: "codegen", run: || suite("make", &["-C", "tracer/c", "codegen"]) };
/// The tracer on machines without an operating system: images of each port, in QEMU.
pub const PORTS: Step = Step { name: "ports", run: || suite("tracer/c/ports/run", &[]) };
/// Programs written for the tracers of other systems, recorded through the headers of `tracer/c/compat`.
pub const COMPAT: Step = Step { name: "compat", run: || suite("tracer/c/compat/run", &[]) };
/// Records them as they are now.
pub const CODEGEN_BLESS: Step =
    Step { name: "codegen", run: || suite("make", &["-C", "tracer/c", "codegen-bless"]) };
/// The preload library on small programs.
pub const PRELOAD: Step = Step { name: "preload", run: || suite("tracer/preload/test/run", &[]) };
/// The page of `lat view`: types, pure logic, and itself in Chromium.
pub const PAGE: Step = Step { name: "page", run: || suite("aquarium/test/run", &[]) };
/// The Python package: its wheel in a fresh environment, on real traces.
pub const PYTHON: Step = Step { name: "python", run: || suite("crates/python/tests/run", &[]) };
/// Real programs under `lat record`.
pub const REAL: Step = Step { name: "real", run: || suite("tests/real-programs/run", &[]) };
/// The README's first command on a new Debian, up to the build.
pub const FRESH: Step =
    Step { name: "fresh", run: || suite("tests/fresh-debian/run", &["--set-up-only"]) };
/// The packages, installed, used and removed on each release.
pub const PACKAGES: Step =
    Step { name: "packages", run: || suite("tests/fresh-debian/packages", &[]) };
/// All of it, with the build, on each release.
pub const FRESH_ALL: Step = Step { name: "fresh", run: || suite("tests/fresh-debian/run", &[]) };
/// Programs in real situations, with and without `lat record`.
pub const SITUATIONS: Step =
    Step { name: "situations", run: || suite("tests/situations/run", &[]) };
/// Reproducers of reported faults, where they are kept beside the project.
pub const REPRODUCERS: Step =
    Step { name: "reproducers", run: || suite("tests/reproducers/run", &[]) };
/// Requests whose cause of delay is known, explained by `lat path`: some that differ most.
pub const EXPLANATIONS: Step =
    Step { name: "explanations", run: || suite("tests/explanations/run", &["--smoke"]) };
/// Damaged, hostile and absurd files of all formats, read by every command; always the same few.
pub const MUTATIONS: Step =
    Step { name: "mutations", run: || suite("tests/mutations/run", &["--smoke"]) };
/// Each fuzz target for a short while.
pub const FUZZ: Step = Step { name: "fuzz", run: || suite("fuzz/run", &["--smoke"]) };
/// The measurements, with few rounds: they run and their counts are right.
pub const BENCH: Step = Step { name: "bench", run: || suite("bench/run", &["--smoke"]) };
/// `lat diff` on a program with places that can be slowed: it runs and answers.
pub const BENCH_DIFF: Step =
    Step { name: "bench-diff", run: || suite("bench/diff/run", &["--smoke"]) };
/// Recording rates beside LTTng-UST, for a moment each: they run and their counts are right.
pub const BENCH_RATE: Step =
    Step { name: "bench-record-rate", run: || suite("bench/record-rate/run", &["--smoke"]) };
/// What events of other systems' interfaces cost, for a moment: they run and their counts are right.
pub const BENCH_INTERFACES: Step =
    Step { name: "bench-interfaces", run: || suite("bench/interfaces/run", &["--smoke"]) };

fn suite(program: &str, arguments: &[&str]) -> Outcome {
    let name = if program == "make" { arguments.join("-") } else { program.to_string() };
    let name = name.trim_start_matches("-C-").replace('/', "-");
    let mut command = if program == "make" {
        if !workspace::have("make") {
            return Outcome::skip(format!("{name}: no make here"));
        }
        Command::new("make")
    } else {
        let path = workspace::root().join(program);
        if !path.is_file() {
            return Outcome::fail(format!("{program}: missing"));
        }
        Command::new(path)
    };
    let lat = match generate::lat() {
        Ok(lat) => lat,
        Err(error) => return Outcome::fail(error),
    };
    // Suites find `lat` here, and leave what they build there.
    command
        .args(arguments)
        .env("LAT", lat)
        .env("CARGO_TARGET_DIR", workspace::target())
        .env("BUILD", workspace::target().join("tracer-c"));
    match process::run(&mut command, &name) {
        Ok(finished) => {
            let mut outcome = count(&finished.output);
            if outcome == Outcome::default() {
                outcome = Outcome::fail(format!("{name}: no result\n{}", finished.tail(40)));
            } else if !finished.success() && outcome.failures.is_empty() {
                outcome.add(Outcome::fail(format!("{name}\n{}", finished.tail(40))));
            }
            outcome
        }
        Err(error) => Outcome::fail(error),
    }
}

/// The sums come from the last line; names and reasons from the lines before.
fn count(output: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for line in output.lines() {
        if line.starts_with("FAIL ") || line.starts_with("FAILED ") || line.starts_with("FAIL: ") {
            outcome.failures.push(line.to_string());
        } else if let Some(reason) = line.strip_prefix("SKIPPED: ") {
            outcome.skipped.push(reason.to_string());
        }
    }
    let Some([passed, failed, skipped]) = output.lines().rev().find_map(sums) else {
        return Outcome { passed: 0, ..outcome };
    };
    outcome.passed = passed;
    for _ in outcome.failures.len()..failed {
        outcome.failures.push("a failure that was not named".into());
    }
    for _ in outcome.skipped.len()..skipped {
        outcome.skipped.push("something that was not named".into());
    }
    outcome
}

fn sums(line: &str) -> Option<[usize; 3]> {
    let mut parts = line.trim().split(", ");
    let mut next =
        |word: &str| -> Option<usize> { parts.next()?.strip_suffix(word)?.trim_end().parse().ok() };
    let sums = [next("passed")?, next("failed")?, next("skipped")?];
    parts.next().is_none().then_some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_names_are_read() {
        let outcome = count(
            "ok one\nFAIL two 1 != 2\nSKIPPED: three no rseq\n1 passed, 1 failed, 1 skipped\n",
        );
        assert_eq!(outcome.passed, 1);
        assert_eq!(outcome.failures, ["FAIL two 1 != 2"]);
        assert_eq!(outcome.skipped, ["three no rseq"]);
    }

    #[test]
    fn failures_without_a_name_still_fail_and_no_sums_count_nothing() {
        assert_eq!(count("3 passed, 2 failed, 0 skipped\n").failures.len(), 2);
        assert_eq!(count("make: nothing to be done\n"), Outcome::default());
    }
}
