// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No number called exact changes when losses are put back, when filters are widened, when the recording
//! is cut shorter or when a source is switched off; what is called a lower bound is one.

mod numbers;
mod program;
mod trace;

use numbers::Numbers;
use program::{Event, KERNEL, Random, Truth, Writer};
use trace::Recording;

use crate::place::Place;

const STEPS: usize = 1200;
const EVENTS_PER_PACKET: usize = 12;
const SEEDS: std::ops::Range<u64> = 0..4;

/// Numbers that are about the kinds of events that were recorded, by definition: how many there are of all of
/// them together, and which of them was the innermost.
const OF_THE_KINDS: [&str; 7] = [
    "events_by_cpu",
    "].self_",
    "events_by_thread",
    "threads[tid",
    "cpus[cpu",
    "applications[pid",
    "stats.events_total",
];

/// What a recording of which something is missing says, beside what the whole one says.
fn contradictions(
    some: &Numbers,
    whole: &Numbers,
    is_left_out: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for (path, said) in some.iter().filter(|(path, _)| !is_left_out(path)) {
        let truth = whole.get(path);
        let is_true = match (said.quality.as_str(), truth) {
            ("exact", Some(truth)) => said.value == truth.value && truth.quality == "exact",
            ("lower_bound", Some(truth)) => truth.quality == "unknown" || said.value <= truth.value,
            (_, None) => said.quality == "unknown" || said.value == 0.0,
            _ => true,
        };
        if !is_true {
            found.push(format!("{path}: {} {}, whole {truth:?}", said.quality, said.value));
        }
    }
    found
}

fn check(
    what: &str,
    place: &Place,
    (some, whole): (&str, &str),
    is_left_out: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for of in [numbers::of_stats, numbers::of_tables] {
        let (some, whole) = (of(place, some), of(place, whole));
        let exact = |of: &Numbers| of.values().filter(|one| one.quality == "exact").count();
        println!(
            "{what}: {} of {} exact, of {} {}",
            exact(&some),
            some.len(),
            exact(&whole),
            whole.len()
        );
        let lines = contradictions(&some, &whole, &is_left_out);
        found.extend(lines.into_iter().map(|line| format!("{what}: {line}")));
    }
    found
}

/// The same for each seed.
fn each(
    what: &str,
    change: impl Fn(&mut Recording, &mut Random),
    is_left_out: impl Fn(&str) -> bool,
) {
    let place = Place::new();
    let mut found = Vec::new();
    for seed in SEEDS {
        let truth = Truth::of(seed, STEPS);
        let whole = Recording::new(&truth.streams, EVENTS_PER_PACKET);
        whole.write(&place, &format!("whole{seed}"));
        let mut some = whole.clone();
        change(&mut some, &mut Random(seed + 77));
        some.write(&place, &format!("some{seed}"));
        let (some, whole) = (format!("some{seed}"), format!("whole{seed}"));
        found.extend(check(&format!("{what} {seed}"), &place, (&some, &whole), &is_left_out));
    }
    if std::env::var_os("EXACT_KEEP").is_some() {
        std::mem::forget(place);
    }
    assert!(found.is_empty(), "{} contradictions:\n{}", found.len(), found.join("\n"));
}

#[test]
fn losses_that_are_put_back_change_no_exact_number() {
    each("losses", |some, random| some.lose(random, 9), |_| false);
}

#[test]
fn damaged_bytes_change_no_exact_number() {
    each("damage", |some, random| some.damage(random, 12), |_| false);
}

/// Classes of the kernel that a recording can be without.
#[test]
fn sources_that_were_off_change_no_exact_number() {
    for names in [
        &["irq_handler", "softirq", "hrtimer", "reschedule"][..],
        &["waking"],
        &["exit"],
        &["switch"],
    ] {
        let is_off = |name: &str| names.iter().any(|off| name.contains(off));
        let is_on = |writer: Writer, event: &Event| match writer {
            Writer::Thread(_) => true,
            Writer::Cpu(_) => !is_off(KERNEL[event.class].name),
        };
        let is_left_out = |path: &str| OF_THE_KINDS.iter().any(|name| path.contains(name));
        each(&names.join(","), |some, _| some.retain(is_on), is_left_out);
    }
}
