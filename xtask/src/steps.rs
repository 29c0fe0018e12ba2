// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running steps, some beside others, and adding up how they came out.

use crate::process;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// One named check or group of tests.
#[derive(Clone, Copy)]
pub struct Step {
    /// As printed, and the name of its log.
    pub name: &'static str,
    /// Does it; never panics on what it finds.
    pub run: fn() -> Outcome,
}

/// What a step found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Checks and tests that hold.
    pub passed: usize,
    /// One text for each that does not.
    pub failures: Vec<String>,
    /// One reason for each that could not be run here.
    pub skipped: Vec<String>,
    /// One text for each that failed beside others and passed alone: it is counted as passed, and has a
    /// fault of its own or depends on what else runs.
    pub unstable: Vec<String>,
}

impl Outcome {
    /// A single check that holds.
    pub fn pass() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    /// A single check that does not hold.
    pub fn fail(text: impl Into<String>) -> Self {
        Self { failures: vec![text.into()], ..Self::default() }
    }

    /// Something that cannot be checked here.
    pub fn skip(reason: impl Into<String>) -> Self {
        Self { skipped: vec![reason.into()], ..Self::default() }
    }

    /// A check that holds if there are no complaints; one failure each otherwise.
    pub fn of(complaints: Vec<String>) -> Self {
        if complaints.is_empty() {
            Self::pass()
        } else {
            Self { failures: complaints, ..Self::default() }
        }
    }

    /// Adds what another one found.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.skipped.extend(other.skipped);
        self.unstable.extend(other.unstable);
    }

    fn counts(&self) -> String {
        let (failed, skipped) = (self.failures.len(), self.skipped.len());
        format!("{} passed, {failed} failed, {skipped} skipped", self.passed)
    }
}

/// Steps at one time: each lane does its own one after the other. A stage of one lane has the machine alone.
pub type Stage = Vec<Vec<Step>>;

/// Runs all stages, even after failures, then shows every fault and the sums.
pub fn run(stages: &[Stage]) -> ExitCode {
    let begin = Instant::now();
    let total = Mutex::new(Outcome::default());
    for stage in stages {
        let (begin, cpu_begin_s) = (Instant::now(), process::cpu_time_s());
        std::thread::scope(|scope| {
            for lane in stage {
                let (is_alone, total) = (stage.len() == 1, &total);
                scope.spawn(move || lane.iter().for_each(|step| run_one(step, is_alone, total)));
            }
        });
        if stage.len() > 1 {
            let seconds = begin.elapsed().as_secs_f64();
            let cpu_s = process::cpu_time_s() - cpu_begin_s;
            println!("{:<17} {seconds:>7.1} s  CPU {cpu_s:>7.1} s", "  these together");
        }
    }
    // A step does not panic, and adding does not either.
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !total.skipped.is_empty() {
        println!("\nskipped:");
        for reason in &total.skipped {
            println!("  {reason}");
        }
    }
    show("unstable: failed beside others, passed alone", &total.unstable);
    show("failed", &total.failures);
    println!("\ntotal {:.1} s", begin.elapsed().as_secs_f64());
    println!("{}", total.counts());
    if total.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(title: &str, texts: &[String]) {
    if !texts.is_empty() {
        println!("\n{title}:");
        for text in texts {
            println!("  {}", text.trim_end().replace('\n', "\n    "));
        }
    }
}

fn run_one(step: &Step, is_alone: bool, total: &Mutex<Outcome>) {
    let (begin, cpu_begin_s) = (Instant::now(), process::cpu_time_s());
    let outcome = (step.run)();
    let seconds = begin.elapsed().as_secs_f64();
    // With the wall time it says whether a step waits or computes, and on how many processors. The system
    // counts children that have ended together, of all lanes.
    let cpu = match is_alone {
        true => format!("CPU {:>7.1} s", process::cpu_time_s() - cpu_begin_s),
        false => String::new(),
    };
    println!("{:<17} {seconds:>7.1} s  {cpu:<13}   {}", step.name, outcome.counts());
    total.lock().unwrap_or_else(PoisonError::into_inner).add(outcome);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_add_up() {
        let mut sum = Outcome::pass();
        sum.add(Outcome::fail("broken"));
        sum.add(Outcome::skip("no tool"));
        sum.add(Outcome::of(Vec::new()));
        assert_eq!(sum.counts(), "2 passed, 1 failed, 1 skipped");
    }
}
