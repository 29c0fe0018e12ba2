// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Error rate of comparisons, with generated recordings of a known machine: its speed differs between
//! recordings, it has slow phases, and interrupts some spans.

use std::cell::Cell;
use std::collections::BTreeMap;

use lateralis_analysis::diff::{Counted, Options, Run};
use lateralis_store::compared::{Comparison, Observed, Of};

/// A reproducible random number generator (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Mean 0, standard deviation 1: approximately normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }
}

/// Effects of the machine on a recording.
#[derive(Clone, Copy)]
struct Machine {
    /// Standard deviation of its speed between recordings.
    pace: f64,
    /// Slowdown in its slow phases.
    phase: f64,
    /// Fraction of interrupted spans.
    interrupted: f64,
}

const STEADY: Machine = Machine { pace: 0.0, phase: 0.05, interrupted: 0.01 };
const UNSTEADY: Machine = Machine { pace: 0.06, phase: 0.1, interrupted: 0.05 };

/// Spans of seven kinds and messages on two channels; `factor` makes some longer.
fn recording(seed: u64, machine: Machine, factor: impl Fn(&str) -> f64, late_ns: f64) -> Observed {
    let mut random = Random::new(seed);
    let pace = (machine.pace * random.normal()).exp();
    let mut observed = Observed { events: 10_000, seconds: 2.0, ..Observed::default() };
    let (mut phase, mut phases) = (1.0, Vec::new());
    for _ in 0..400 {
        // A phase lasts for some fifty rounds.
        if random.share() < 0.02 {
            phase = 1.0 + machine.phase * random.share();
        }
        phases.push(phase);
    }
    let names = ["parse", "price", "store", "pack", "sign", "send", "log"];
    for (place, name) in names.into_iter().enumerate() {
        let own = (0.007 * random.normal()).exp();
        let mut alike = 0.0;
        let values = phases.iter().map(|phase| {
            alike = 0.8 * alike + 0.02 * random.normal();
            let lost =
                if random.share() < machine.interrupted { 3e6 * random.share() } else { 0.0 };
            let base = 20_000.0 * (place + 1) as f64;
            (base * pace * own * phase * factor(name) * f64::exp(alike) + lost) as u64
        });
        observed.durations.insert((Of::Own, name.to_owned()), Run::new(values.collect(), 0));
    }
    for (name, late_ns) in [("order", late_ns), ("notice", 0.0)] {
        let load = (0.2 * random.normal()).exp();
        let mut alike = 0.0;
        let values = phases.iter().map(|phase| {
            alike = 0.5 * alike + 0.6 * random.normal();
            (30_000.0 * pace * load * phase * f64::exp(alike) + late_ns) as u64
        });
        observed.durations.insert((Of::Message, name.to_owned()), Run::new(values.collect(), 0));
    }
    for name in ["app:parse", "app:price"] {
        let counted =
            Counted { count: 400, all: 10_000, seconds: 2.0, stretches: vec![20; 20], missing: 0 };
        observed.counts.insert((Of::Count, name.to_owned()), counted);
    }
    observed
}

fn side(
    seed: u64,
    count: u64,
    machine: Machine,
    factor: impl Fn(&str) -> f64 + Copy,
    late_ns: f64,
) -> Vec<Observed> {
    (0..count).map(|run| recording(seed * 64 + run, machine, factor, late_ns)).collect()
}

fn names(comparison: &Comparison) -> Vec<String> {
    comparison.differences.iter().map(|row| format!("{} {}", row.of.name(), row.name)).collect()
}

const TRIALS: u64 = 100;

fn same(_: &str) -> f64 {
    1.0
}

/// Number of trials in which `is_right` accepts the comparison.
fn right(
    runs: u64,
    machine: Machine,
    factor: impl Fn(&str) -> f64 + Copy,
    late_ns: f64,
    is_right: impl Fn(&[String]) -> bool,
) -> u64 {
    let options = Options::default();
    let trial = |seed: u64| {
        let good = side(2 * seed, runs, machine, same, 0.0);
        let bad = side(2 * seed + 1, runs, machine, factor, late_ns);
        is_right(&names(&Comparison::of(&good, &bad, &options)))
    };
    (0..TRIALS).filter(|seed| trial(*seed)).count() as u64
}

#[test]
fn two_recordings_of_one_program_are_seldom_different() {
    for machine in [STEADY, UNSTEADY] {
        for runs in [1, 3] {
            let quiet = right(runs, machine, same, 0.0, |names| names.is_empty());
            assert!(20 * quiet >= 19 * TRIALS, "{runs}: {quiet} of {TRIALS}");
        }
    }
}

#[test]
fn a_function_slower_by_a_fifth_is_found_and_nothing_else_whatever_the_machine_does() {
    let slower = |name: &str| if name == "price" { 1.2 } else { 1.0 };
    for machine in [STEADY, UNSTEADY] {
        for runs in [1, 3] {
            let found = Cell::new(0);
            let alone = right(runs, machine, slower, 0.0, |names| {
                found.set(found.get() + u64::from(names.contains(&"span price".to_owned())));
                names == ["span price"]
            });
            let found = found.get();
            assert!(100 * found >= 97 * TRIALS, "{runs}: found in {found} of {TRIALS}");
            assert!(20 * alone >= 19 * TRIALS, "{runs}: alone in {alone} of {TRIALS}");
        }
    }
}

#[test]
fn a_path_of_messages_slower_by_a_millisecond_comes_first_and_alone() {
    for machine in [STEADY, UNSTEADY] {
        for runs in [1, 3] {
            let found = right(runs, machine, same, 1e6, |names| names == ["message order"]);
            assert!(20 * found >= 19 * TRIALS, "{runs}: {found} of {TRIALS}");
        }
    }
}

#[test]
fn several_slower_functions_are_told_from_a_slower_machine() {
    let slower = |name: &str| if matches!(name, "price" | "sign") { 1.25 } else { 1.0 };
    let both = right(1, UNSTEADY, slower, 0.0, |names| {
        names.len() == 2
            && ["span price", "span sign"].iter().all(|name| names.contains(&(*name).into()))
    });
    assert!(10 * both >= 9 * TRIALS, "{both} of {TRIALS}");
}

#[test]
fn a_program_slower_as_a_whole_is_found_with_several_recordings_or_when_it_is_much_slower() {
    let by = |factor: f64, runs: u64, machine: Machine| {
        right(runs, machine, move |_| factor, 0.0, |names| names.len() >= 5)
    };
    assert!(20 * by(2.0, 1, UNSTEADY) >= 19 * TRIALS);
    assert!(20 * by(1.25, 5, STEADY) >= 19 * TRIALS);
    // One recording cannot distinguish this from another machine, and reports so.
    let options = Options::default();
    let (good, bad) = (side(1, 1, STEADY, same, 0.0), side(2, 1, STEADY, |_| 1.12, 0.0));
    let comparison = Comparison::of(&good, &bad, &options);
    assert!(comparison.differences.is_empty(), "{:?}", names(&comparison));
    let pace = comparison.pace.expect("several names");
    assert!((pace.factor / 1.12 - 1.0).abs() < 0.03 && !pace.is_program, "{pace:?}");
    assert!(pace.interval.0 < 1.12 && 1.12 < pace.interval.1, "{pace:?}");
}

#[test]
fn names_that_only_wait_do_not_make_the_others_slower() {
    // Four of nine follow a machine that is 12 % slower; five wait for a clock.
    let paced =
        |name: &str| if matches!(name, "parse" | "price" | "store" | "pack") { 1.12 } else { 1.0 };
    let quiet = right(1, STEADY, paced, 0.0, |names| names.is_empty());
    assert!(20 * quiet >= 19 * TRIALS, "{quiet} of {TRIALS}");
}

/// Two workers with one queue of unbounded length: jobs arrive whether or not earlier ones are done, and
/// other programs take a part of the CPUs, so that it may be full for some time.
fn queue(seed: u64, service: f64) -> Observed {
    let mut random = Random::new(seed);
    let mut observed = Observed { events: 10_000, seconds: 2.0, ..Observed::default() };
    // Available share of the machine in this recording, and in each of its phases.
    let run = (UNSTEADY.pace * random.normal()).exp();
    let (mut phase, mut free, mut arrival) = (1.0, [0.0_f64; 2], 0.0);
    let mut taken: [Vec<(f64, f64)>; 2] = Default::default();
    let mut parts: [Vec<(f64, f64)>; 4] = Default::default();
    let (mut waits, mut requests, mut works, mut locks) = (vec![], vec![], vec![], vec![]);
    for _ in 0..2000 {
        if random.share() < 0.005 {
            phase = (0.1 * random.normal()).exp();
        }
        arrival += -510.0 * (1.0 - random.share()).ln();
        let worker = usize::from(free[1] < free[0]);
        let begin = free[worker].max(arrival) + 3.0 + 3.0 * random.share();
        let work = 900.0 * service * run * phase * (0.03 * random.normal()).exp();
        // A part of each job is done under a lock that the other worker may hold.
        let lock = begin + 0.5 * work;
        let held =
            taken[1 - worker].iter().rev().take(4).find(|(from, to)| *from <= lock && lock < *to);
        let lock_wait = 0.05 * run * phase + held.map_or(0.0, |(_, to)| to - lock);
        let end = begin + work + lock_wait;
        taken[worker].push((lock + lock_wait, lock + lock_wait + 0.2 * work));
        free[worker] = end;
        waits.push((begin - arrival, begin));
        requests.push((end - arrival, end));
        works.push((work, end));
        for (place, of) in parts.iter_mut().enumerate() {
            let own = 20.0 * (place + 1) as f64;
            of.push((own * run * phase * (0.03 * random.normal()).exp(), end));
        }
        locks.push((lock_wait, end));
    }
    let parts = ["parse", "pack", "sign", "log"].into_iter().zip(parts);
    let parts = parts.map(|(name, values)| (Of::Own, name, values));
    let others = [
        (Of::Message, "job", waits),
        (Of::Whole, "request", requests),
        (Of::Own, "work", works),
        (Of::Own, "lock_wait", locks),
    ];
    for (of, name, mut values) in parts.chain(others) {
        values.sort_by(|a, b| a.1.total_cmp(&b.1));
        let nanos = values.into_iter().map(|(micros, _)| (1000.0 * micros) as u64).collect();
        observed.durations.insert((of, name.to_owned()), Run::new(nanos, 0));
    }
    observed
}

#[test]
fn a_queue_that_ran_full_in_one_recording_alone_is_no_other_program() {
    let options = Options::default();
    let runs: Vec<Observed> = (0..48).map(|seed| queue(seed, 1.0)).collect();
    let one = std::slice::from_ref::<Observed>;
    let (mut wrong, mut pairs, mut full) = (0, 0, Vec::new());
    let mut tally = BTreeMap::<String, u64>::new();
    for (place, good) in runs.iter().enumerate() {
        let of_job = &good.durations[&(Of::Message, "job".to_owned())];
        full.push(of_job.sorted()[of_job.len() / 2]);
        for bad in &runs[place + 1..] {
            let found = names(&Comparison::of(one(good), one(bad), &options));
            wrong += usize::from(!found.is_empty());
            found.into_iter().for_each(|one| *tally.entry(one).or_insert(0) += 1);
            pairs += 1;
        }
    }
    // The median wait of some recordings is hundreds of times that of others.
    full.sort_unstable();
    assert!(full[47] > 100 * full[0], "{full:?}");
    assert!(20 * wrong <= pairs, "{wrong} of {pairs}: {tally:?}");
    // A program that needs longer for each job is recognised by its own work.
    let slower = (0..20).filter(|seed| {
        let side = |from: u64, service| -> Vec<Observed> {
            (0..3).map(|run| queue(1000 + 10 * seed + from + run, service)).collect()
        };
        let found = names(&Comparison::of(&side(0, 1.0), &side(3, 1.3), &options));
        found.contains(&"message job".to_owned()) || found.contains(&"span work".to_owned())
    });
    let slower = slower.count();
    assert!(slower >= 18, "{slower} of 20");
}
