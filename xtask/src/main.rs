// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every developer task: `cargo xtask TASK`, or `./x test` for all checks.
//!
//! A task is a list of [`steps::Step`]s; each gives counts of what passed,
//! failed and was skipped. Nothing stops at the first fault: all faults are
//! shown at the end, then one line with the sums.

#![forbid(unsafe_code)]

mod docs;
mod generate;
mod kinds;
mod layers;
mod licences;
mod notices;
mod process;
mod rust;
mod sql;
mod steps;
mod suites;
mod supply;
mod tidy;
mod words;
mod workspace;

use std::process::ExitCode;
use steps::{Stage, Step};

const HELP: &str = "\
Usage: cargo xtask TASK

  ci                everything below; what ./x test runs
  fmt               sources are formatted
  tidy              house rules that a program can check
  layers            who may depend on whom (xtask/layers.toml)
  supply            sources, hashes and licences of what is fetched; cargo-deny where it is
  notices           write docs/third-party.md alone
  gen [--check]     write generated files, or check that they are current
  clippy            no warnings
  test              Rust unit, property and end-to-end tests
  sql               lat-sql: formatting and tests (its first build takes some 25 minutes)
  c-test            the C tracer: gcc and clang, C and C++, sanitizers, stress, models
  codegen [--bless] machine code and instruction counts of the record paths
  ports             the tracer on machines without an operating system, in QEMU
  compat            programs written for the tracers of other systems
  page              the page of `lat view`: types, its logic, itself in Chromium
  python            the Python package: its wheel in a fresh environment, on real traces
  preload           the preload library on small programs
  real              real programs under lat record
  fresh [--all]     the README's first command on a new Debian; --all: with the build
  packages          the packages, installed, used and removed on a new Debian
  situations        programs in real situations, with and without lat record
  reproducers       reproducers of reported faults, where they are kept beside the project
  explanations      requests whose cause of delay is known, by lat path
  mutations         damaged, hostile and absurd files of all formats, read by every command
  fuzz              each fuzz target for a short while
  docs              commands in README.md and docs/ run and work
  bench             what an event costs, beside other tracers

Exit code: 0 all passed, 1 something failed, 2 wrong usage.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let steps: Vec<Step> = match arguments.as_slice() {
        ["ci"] => return steps::run(&all()),
        ["fmt"] => vec![rust::FMT],
        ["tidy"] => vec![tidy::STEP],
        ["layers"] => vec![layers::STEP],
        ["supply"] => vec![supply::STEP],
        ["notices"] => vec![generate::NOTICES],
        ["gen"] => vec![generate::WRITE],
        ["gen", "--check"] => vec![generate::CHECK],
        ["clippy"] => vec![rust::CLIPPY],
        ["test"] => vec![rust::TEST_BUILD, rust::TEST_RUN],
        ["sql"] => vec![sql::ALL],
        ["c-test"] => vec![suites::C],
        ["codegen"] => vec![suites::CODEGEN],
        ["ports"] => vec![suites::PORTS],
        ["compat"] => vec![suites::COMPAT],
        ["codegen", "--bless"] => vec![suites::CODEGEN_BLESS],
        ["preload"] => vec![suites::PRELOAD],
        ["page"] => vec![suites::PAGE],
        ["python"] => vec![suites::PYTHON],
        ["real"] => vec![suites::REAL],
        ["fresh"] => vec![suites::FRESH],
        ["packages"] => vec![suites::PACKAGES],
        ["fresh", "--all"] => vec![suites::FRESH_ALL],
        ["situations"] => vec![suites::SITUATIONS],
        ["reproducers"] => vec![suites::REPRODUCERS],
        ["explanations"] => vec![suites::EXPLANATIONS],
        ["mutations"] => vec![suites::MUTATIONS],
        ["fuzz"] => vec![suites::FUZZ],
        ["docs"] => vec![docs::STEP],
        ["bench", rest @ ..] => return process::bench(rest),
        ["help" | "-h" | "--help"] | [] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("error: no such task: {}: see cargo xtask help", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    steps::run(&[vec![steps]])
}

/// Cheap checks first, so that a missing semicolon is not found after ten minutes. Suites that mostly wait
/// run beside others; those that look at the whole machine's shared memory, that measure or that must lose
/// no event have it alone.
fn all() -> Vec<Stage> {
    vec![
        vec![vec![
            rust::FMT,
            tidy::STEP,
            layers::STEP,
            supply::STEP,
            rust::CLIPPY,
            generate::CHECK,
            rust::TEST_BUILD,
        ]],
        vec![
            vec![rust::TEST_RUN, sql::IF_BUILT],
            vec![
                suites::C,
                suites::CODEGEN,
                suites::PORTS,
                suites::COMPAT,
                suites::PRELOAD,
                suites::PAGE,
                suites::REAL,
            ],
        ],
        vec![vec![suites::FUZZ], vec![suites::FRESH, suites::MUTATIONS]],
        vec![vec![
            suites::PACKAGES,
            suites::SITUATIONS,
            suites::REPRODUCERS,
            suites::EXPLANATIONS,
            suites::BENCH,
            suites::BENCH_DIFF,
            suites::BENCH_RATE,
            suites::BENCH_INTERFACES,
            docs::STEP,
        ]],
    ]
}
