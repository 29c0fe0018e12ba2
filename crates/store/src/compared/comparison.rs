// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compares measurements of good and bad recordings by name, and ranks the differences.

use std::collections::BTreeSet;

use lateralis_analysis::diff::{
    self, Counted, DurationShift, Options, Pace, Paces, Run, Shift, Sides, adjust,
    chance_of_two_states, compare_counts, compare_durations, paced_by,
};
use lateralis_model::Quality;

use super::observed::{Observed, Of};

/// Below this p-value within the runs, a difference that is not certain is reported as possible.
const PERHAPS_WITHIN: f64 = 1e-4;
/// The p-value between runs must be below this as well.
const PERHAPS_BETWEEN: f64 = 0.2;
/// Part of the tolerated error for medians; the rest is for means and tails, which depend more on
/// accidents.
const TYPICAL_SHARE: f64 = 0.7;

/// Statistic of a name that moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The median, together with the quartiles.
    Typical,
    /// The lower quartile only.
    Lower,
    /// The mean.
    Mean,
    /// p99.
    Tail,
    /// Number of occurrences.
    Count,
    /// Total time.
    Total,
}

impl What {
    /// Name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Typical => "median",
            Self::Lower => "p25",
            Self::Mean => "mean",
            Self::Tail => "p99",
            Self::Count => "count",
            Self::Total => "total",
        }
    }
}

/// A statistic that moved.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Kind of measurement.
    pub of: Of,
    /// Name of the measured span, channel, event class or thread.
    pub name: String,
    /// The statistic.
    pub what: What,
    /// Its shift, in nanoseconds or occurrences per run.
    pub shift: Shift,
    /// Expected fraction of wrong ones among the differences up to this one.
    pub probability: f64,
    /// Lower bound of `probability` with this number of recordings, whatever they contain; 0 for
    /// durations without waits.
    pub least_probability: f64,
    /// Nanoseconds of a bad run that this explains; 0 for counts of events.
    pub explained_ns: f64,
    /// Occurrences per run, before and after.
    pub count: (f64, f64),
    /// Cliff's delta, for durations.
    pub delta: Option<f64>,
    /// Quality of the numbers.
    pub quality: Quality,
}

impl Difference {
    /// Number of recordings per side that could make it certain, if there are waits and too few
    /// recordings.
    pub fn recordings_needed(&self, options: &Options) -> Option<usize> {
        let is_enough = |runs: &usize| chance_of_two_states(*runs, *runs) <= options.error;
        (self.least_probability > options.error).then(|| (1..100).find(is_enough)).flatten()
    }

    /// Whether it increased.
    pub fn is_worse(&self) -> bool {
        self.shift.is_up()
    }
}

/// Results of `lat diff`.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Certain differences, the one that explains most time first; counts last.
    pub differences: Vec<Difference>,
    /// Possible differences: more recordings would decide.
    pub perhaps: Vec<Difference>,
    /// Number of comparisons.
    pub compared: usize,
    /// Whether events are missing, for the good and the bad side.
    pub is_lossy: (bool, bool),
    /// Events per run, for the good and the bad side.
    pub events: (f64, f64),
    /// Seconds per run, for the good and the bad side.
    pub seconds: (f64, f64),
    /// Common factor of all durations, if there are several names.
    pub pace: Option<Together>,
}

/// Common factor of all durations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Together {
    /// The factor.
    pub factor: f64,
    /// Least and largest factor at 95 % confidence.
    pub interval: (f64, f64),
    /// Probability of such a difference between machines alone.
    pub probability: f64,
    /// Whether the program is the cause: shifts then include the factor. Otherwise it is attributed to
    /// the machine, and shifts are relative to it.
    pub is_program: bool,
}

impl Comparison {
    /// Compares recordings of a good program with those of a bad one.
    pub fn of(good: &[Observed], bad: &[Observed], options: &Options) -> Self {
        let lossy = |side: &[Observed]| side.iter().any(|one| one.lost > 0);
        let mean = |side: &[Observed], of: fn(&Observed) -> f64| {
            side.iter().map(of).sum::<f64>() / side.len().max(1) as f64
        };
        let both = |of| (mean(good, of), mean(bad, of));
        let mut comparison = Self {
            is_lossy: (lossy(good), lossy(bad)),
            events: both(|one| one.events as f64),
            seconds: both(|one| one.seconds),
            ..Self::default()
        };
        // Each of these is a family of comparisons of its own.
        let telling = names(good, bad, |one| &one.durations, is_cause);
        let telling: Vec<&(Of, String)> = telling.into_iter().collect();
        let sides: Vec<Sides> =
            telling.iter().map(|place| paced(good, bad, place, options)).collect();
        let paces = diff::paces(&sides, options);
        let own = |place: &(Of, String)| match telling.binary_search(&place) {
            Ok(index) => paces.each[index].clone(),
            Err(_) => paces.others.clone(),
        };
        comparison.add(durations(good, bad, is_cause, own, options), options);
        // Containing spans are judged by the remaining names: those that certainly moved do not define
        // the pace.
        let moved = |place: &(Of, String)| {
            let is_it = |found: &Difference| found.of == place.0 && found.name == place.1;
            comparison.differences.iter().any(is_it)
        };
        let rest = telling.iter().zip(&sides).filter(|(place, _)| !moved(place));
        let rest: Vec<Sides> = rest.map(|(_, sides)| sides.clone()).collect();
        let paces = if paces.is_program { paces } else { diff::paces(&rest, options) };
        comparison.pace = together(&sides, &paces);
        let wholes = durations(good, bad, |of| of == Of::Whole, |_| paces.others.clone(), options);
        let (counts, cpu) =
            (counts(good, bad, Of::Count, options), counts(good, bad, Of::Cpu, options));
        for family in [wholes, counts, cpu] {
            comparison.add(family, options);
        }
        let rank = |difference: &Difference| {
            let place = match difference.of {
                Of::Own | Of::Message => 0,
                Of::Whole => 1,
                Of::Cpu => 2,
                Of::Count => 3,
            };
            (place, -difference.explained_ns.abs(), -(difference.shift.ratio().ln().abs()))
        };
        for list in [&mut comparison.differences, &mut comparison.perhaps] {
            list.sort_by(|a, b| {
                let ((p, t, r), (q, u, s)) = (rank(a), rank(b));
                p.cmp(&q).then(t.total_cmp(&u)).then(r.total_cmp(&s)).then(a.name.cmp(&b.name))
            });
        }
        comparison
    }

    /// Adds a family of comparisons: for each name the first statistic that certainly moved.
    fn add(&mut self, names: Vec<Vec<Difference>>, options: &Options) {
        self.compared += names.len();
        let mut names = names;
        let is_tail = |d: &Difference| matches!(d.what, What::Mean | What::Tail);
        let has_tails = names.iter().flatten().any(is_tail);
        for (tails, share) in [(false, TYPICAL_SHARE), (true, 1.0 - TYPICAL_SHARE)] {
            let of = |d: &&mut Difference| is_tail(d) == tails;
            let part: Vec<&mut Difference> = names.iter_mut().flatten().filter(of).collect();
            let mut all: Vec<f64> = part.iter().map(|d| d.shift.probability).collect();
            adjust(&mut all);
            for (number, adjusted) in part.into_iter().zip(all) {
                // Containing spans move with their causes and are not comparisons of their own.
                let is_whole = number.of == Of::Whole && !tails;
                let share = if has_tails && !is_whole { share } else { 1.0 };
                number.probability = (adjusted / share).min(1.0).max(number.least_probability);
            }
        }
        for numbers in names {
            let is_sure = |d: &&Difference| d.probability <= options.error;
            let is_likely = |d: &&Difference| {
                let within = d.shift.probability_within <= PERHAPS_WITHIN;
                within && d.shift.probability <= PERHAPS_BETWEEN
            };
            if let Some(sure) = numbers.iter().find(is_sure) {
                self.differences.push(sure.clone());
            } else if let Some(likely) = numbers.iter().find(is_likely) {
                self.perhaps.push(likely.clone());
            }
        }
    }
}

/// All names of a kind on either side.
fn names<'a, T: 'a>(
    good: &'a [Observed],
    bad: &'a [Observed],
    of: impl Fn(&'a Observed) -> &'a std::collections::BTreeMap<(Of, String), T>,
    is_kind: impl Fn(Of) -> bool,
) -> BTreeSet<&'a (Of, String)> {
    good.iter().chain(bad).flat_map(|one| of(one).keys()).filter(|key| is_kind(key.0)).collect()
}

/// Whether it takes time by itself, and so reflects the speed of the machine.
fn is_cause(of: Of) -> bool {
    matches!(of, Of::Own | Of::Message)
}

fn paced(good: &[Observed], bad: &[Observed], place: &(Of, String), options: &Options) -> Sides {
    fn of<'a>(side: &'a [Observed], place: &(Of, String)) -> Vec<Option<&'a Run>> {
        side.iter().map(|one| one.durations.get(place)).collect()
    }
    paced_by(&of(good, place), &of(bad, place), options)
}

/// A single name has no common factor.
fn together(sides: &[Sides], paces: &Paces) -> Option<Together> {
    let is_on_both = |sides: &&Sides| {
        sides.good.iter().any(Option::is_some) && sides.bad.iter().any(Option::is_some)
    };
    (sides.iter().filter(is_on_both).count() >= 2).then(|| Together {
        factor: paces.seen.factor(),
        interval: paces.seen.interval(),
        probability: paces.probability,
        is_program: paces.is_program,
    })
}

fn durations(
    good: &[Observed],
    bad: &[Observed],
    is_kind: impl Fn(Of) -> bool,
    pace: impl Fn(&(Of, String)) -> Pace,
    options: &Options,
) -> Vec<Vec<Difference>> {
    let mut found = Vec::new();
    for place in names(good, bad, |one| &one.durations, is_kind) {
        let side = |side: &[Observed]| -> Vec<Run> {
            side.iter().filter_map(|one| one.durations.get(place)).cloned().collect()
        };
        if let Some(shift) = compare_durations(&side(good), &side(bad), &pace(place), options) {
            found.push(of_durations(place, &shift));
        }
    }
    found
}

fn of_durations((of, name): &(Of, String), shift: &DurationShift) -> Vec<Difference> {
    let difference = |what: What, of_what: Shift, explained_ns: f64| Difference {
        of: *of,
        name: name.clone(),
        what,
        shift: of_what,
        probability: 1.0,
        least_probability: match what {
            What::Mean | What::Tail => shift.least_probability_of_tail,
            _ => shift.least_probability,
        },
        explained_ns,
        count: shift.count,
        delta: Some(shift.delta),
        quality: shift.quality,
    };
    let mut numbers = Vec::new();
    if let Some(body) = shift.body {
        // The certainty is that of the quartiles; the shown value is the median.
        let (probability, within) = (body.probability, body.probability_within);
        let median = Shift { probability, probability_within: within, ..shift.median };
        numbers.push(difference(What::Typical, median, shift.body_ns()));
    }
    if let Some(lower) = shift.lower {
        numbers.push(difference(What::Lower, lower, shift.lower_ns()));
    }
    numbers.push(difference(What::Mean, shift.mean, shift.mean_ns()));
    if let Some(tail) = shift.tail {
        numbers.push(difference(What::Tail, tail, shift.tail_ns()));
    }
    numbers
}

fn counts(good: &[Observed], bad: &[Observed], of: Of, options: &Options) -> Vec<Vec<Difference>> {
    let mut found = Vec::new();
    for place in names(good, bad, |one| &one.counts, |kind| kind == of) {
        let side = |side: &[Observed]| -> Vec<Counted> {
            let none = |one: &Observed| Counted {
                all: one.events,
                seconds: one.seconds,
                missing: one.lost,
                ..Counted::default()
            };
            side.iter()
                .map(|one| one.counts.get(place).cloned().unwrap_or_else(|| none(one)))
                .collect()
        };
        let (good, bad) = (side(good), side(bad));
        let Some((shift, quality)) = compare_counts(&good, &bad, options) else {
            continue;
        };
        let mean = |side: &[Counted]| {
            side.iter().map(|one| one.count as f64).sum::<f64>() / side.len().max(1) as f64
        };
        let count = (mean(&good), mean(&bad));
        // CPU time is counted in microseconds.
        let (what, unit) = if of == Of::Cpu { (What::Total, 1000.0) } else { (What::Count, 1.0) };
        let explained_ns = if of == Of::Cpu { (count.1 - count.0) * unit } else { 0.0 };
        let shift = Shift { before: count.0 * unit, after: count.1 * unit, ..shift };
        found.push(vec![Difference {
            of,
            name: place.1.clone(),
            what,
            shift,
            probability: 1.0,
            least_probability: 0.0,
            explained_ns,
            count,
            delta: None,
            quality,
        }]);
    }
    found
}
