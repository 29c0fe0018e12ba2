// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests whether something takes longer than before.

use lateralis_model::Quality;

use super::pace::{Pace, Sides};
use super::run::{Estimate, Run, cliffs_delta};
use super::shift::{Options, Shift, shift};

/// Between runs of one program, a quantile varies by this fraction of the logarithmic distance between
/// the values at a third and three times its odds (for the median: the quartiles). The fraction grows by
/// half for each e-fold of that distance, as durations with a wide spread are waits for others. Measured,
/// see docs/reference/diff.md.
const SPREAD_NOISE: f64 = 0.25;
/// The level of the lower quartile.
const LOWER: f64 = 0.25;
/// The mean varies by this fraction of the largest distance between median and p99 in a run: a few
/// interrupted spans move it.
const MEAN_NOISE: f64 = 0.2;
/// p99 varies by this fraction of the largest distance in a run between the values at a tenth and ten
/// times its odds: with a few more interrupted spans, p99 is one of them.
const TAIL_NOISE: f64 = 0.5;
/// The level of the tail.
const TAIL: f64 = 0.99;
/// Minimum number of values beyond the tail; with fewer the tail is a matter of a few accidents.
const TAIL_VALUES: f64 = 5.0;
/// Values that overlap this much (Cliff's delta) count as unchanged, whatever their quartiles do.
const LEAST_DELTA: f64 = 0.147;

/// Below this p-value, a quartile counts as moved in the opposite direction.
const AGAINST: f64 = 0.2;

/// Shift of the durations of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct DurationShift {
    /// Number per run, before and after.
    pub count: (f64, f64),
    /// Total nanoseconds per run, before and after.
    pub total_ns: (f64, f64),
    /// The median.
    pub median: Shift,
    /// Shift of the whole body, given as its lower quartile. `None` if the quartiles moved in different
    /// directions, the median moved by less than the threshold, or the values overlap almost as before.
    pub body: Option<Shift>,
    /// Shift of the lower quartile if the body did not move as a whole, and neither of the other
    /// quartiles clearly moved the opposite way. Effects of other programs may hide the rest.
    pub lower: Option<Shift>,
    /// The mean.
    pub mean: Shift,
    /// p99, if there are enough values.
    pub tail: Option<Shift>,
    /// Cliff's delta, from -1 to 1: how much more often a duration of BAD is longer than a duration of
    /// GOOD than the reverse.
    pub delta: f64,
    /// Exact if no event is missing; otherwise shifts are lower bounds.
    pub quality: Quality,
    /// Lower bound of the probability that a claim about the body is wrong, however certain it looks
    /// within the runs: for waits, [`chance_of_two_states`]; otherwise 0.
    pub least_probability: f64,
    /// Likewise for a claim about the mean or p99, for which it suffices that some of the durations are
    /// waits.
    pub least_probability_of_tail: f64,
}

impl DurationShift {
    /// Effect of the shift of the body on the length of a run in nanoseconds: negative if it is faster
    /// now.
    #[must_use]
    pub fn body_ns(&self) -> f64 {
        self.body.map_or(0.0, |_| beside(&self.median)) * self.count.1
    }

    /// Effect of the shift of the lower quartile on the length of a run in nanoseconds, for one half of
    /// the spans.
    #[must_use]
    pub fn lower_ns(&self) -> f64 {
        self.lower.as_ref().map_or(0.0, beside) * self.count.1 / 2.0
    }

    /// Effect of the shift of the mean on the length of a run in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        beside(&self.mean) * self.count.1
    }

    /// Effect of the shift of the tail on the length of a run in nanoseconds.
    #[must_use]
    pub fn tail_ns(&self) -> f64 {
        self.tail.as_ref().map_or(0.0, beside) * self.count.1 * (1.0 - TAIL)
    }
}

/// Difference between the expected and the measured value.
fn beside(shift: &Shift) -> f64 {
    shift.after - shift.before * shift.pace
}

/// Estimates that a name contributes to the pace: the lower quartile of its durations, which other
/// programs affect least. Takes the durations of each recording; `None` if a recording has none.
///
/// Cost: linear.
#[must_use]
pub fn paced_by(good: &[Option<&Run>], bad: &[Option<&Run>], options: &Options) -> Sides {
    let of = |side: &[Option<&Run>]| -> Vec<Option<Estimate>> {
        // The missing ones may have been the fastest.
        let whole = |run: &&Run| run.missing() == 0;
        side.iter().map(|run| run.filter(whole).and_then(|run| run.quantile(LOWER))).collect()
    };
    let all = || good.iter().chain(bad).flatten().copied();
    Sides { good: of(good), bad: of(bad), noise: level_noise(all(), LOWER, options) }
}

/// Compares runs relative to a pace; `None` if a side has no durations.
///
/// Cost: linear, given the runs.
#[must_use]
pub fn compare_durations(
    good: &[Run],
    bad: &[Run],
    pace: &Pace,
    options: &Options,
) -> Option<DurationShift> {
    let quality = if good.iter().chain(bad).all(|run| run.missing() == 0) {
        Quality::Exact
    } else {
        Quality::LowerBound
    };
    let merged = |runs: &[Run]| {
        let mut all: Vec<u64> = runs.iter().flat_map(|run| run.sorted()).copied().collect();
        all.sort_unstable();
        all
    };
    let (mut before, after) = (merged(good), merged(bad));
    before.iter_mut().for_each(|nanos| *nanos = (*nanos as f64 * pace.factor()).round() as u64);
    let delta = cliffs_delta(&before, &after);
    let at = |level| quantile_shift(good, bad, level, pace, options);
    let median = at(0.5)?;
    let quartiles = [at(LOWER), Some(median), at(0.75)];
    let noise = mean_noise(good.iter().chain(bad), options);
    let mut mean = shift(&means(good), &means(bad), noise, pace, options)?;
    if quality != Quality::Exact {
        // One missing duration may be longer than all others together.
        (mean.probability, mean.probability_within) = (1.0, 1.0);
    }
    let beyond = |run: &Run| run.len() as f64 * (1.0 - TAIL);
    let has_tail = |runs: &[Run]| runs.iter().map(beyond).sum::<f64>() >= TAIL_VALUES;
    let tail = (has_tail(good) && has_tail(bad)).then(|| at(TAIL)).flatten();
    let per_run =
        |runs: &[Run], of: fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let both = |of| (per_run(good, of), per_run(bad, of));
    let body = body(&quartiles, delta, options);
    let is_steady = good.iter().chain(bad).all(Run::is_steady);
    let shows_spread = good.iter().chain(bad).all(Run::shows_its_spread);
    let is_of_program =
        shows_spread && (is_steady || moved_as_a_whole(good, bad, &median, options));
    let has_short_tails = good.iter().chain(bad).all(Run::has_short_tail);
    let two_states = chance_of_two_states(good.len(), bad.len());
    Some(DurationShift {
        count: both(|run| run.len() as f64),
        total_ns: both(|run| run.total_ns() as f64),
        median,
        body,
        lower: if body.is_none() { lower(&quartiles, delta) } else { None },
        mean,
        tail,
        delta,
        quality,
        least_probability: if is_of_program { 0.0 } else { two_states },
        least_probability_of_tail: if is_of_program && has_short_tails { 0.0 } else { two_states },
    })
}

/// Whether the fastest durations moved with the median, by at least half of its factor. The first item of
/// a queue does not wait, however full the queue is later; work added to each item affects the first as
/// well.
fn moved_as_a_whole(good: &[Run], bad: &[Run], median: &Shift, options: &Options) -> bool {
    let quickest = |runs: &[Run]| {
        let of: Vec<f64> = runs.iter().filter_map(Run::quickest).map(f64::ln).collect();
        of.iter().sum::<f64>() / of.len().max(1) as f64
    };
    let by = quickest(bad) - quickest(good) - median.pace.ln();
    let of_median = median.ratio().ln();
    by * of_median > 0.0 && by.abs() >= (of_median.abs() / 2.0).max(options.threshold.ln_1p())
}

/// Queues, locks and their waiters can have two states for a whole run of one program: nearly empty, or
/// filled once and full from then on. If runs take one of the states at random, this is the largest
/// probability, over all odds, that all runs of one side are in one state and all of the other side in
/// the other.
#[must_use]
pub fn chance_of_two_states(good: usize, bad: usize) -> f64 {
    let (good, bad) = (good.min(1000) as i32, bad.min(1000) as i32);
    let of = |p: f64| p.powi(good) * (1.0 - p).powi(bad) + p.powi(bad) * (1.0 - p).powi(good);
    // Steps of one hundredth suffice for the maximum of such a flat curve.
    (0..=100).map(|percent| of(f64::from(percent) / 100.0)).fold(0.0, f64::max)
}

fn means(runs: &[Run]) -> Vec<Estimate> {
    runs.iter().filter_map(Run::mean).collect()
}

/// The lower quartile, if median and upper quartile moved the same way. Other programs make some spans of
/// this one longer and none shorter: the faster spans reflect the program itself best.
fn body(quartiles: &[Option<Shift>; 3], delta: f64, options: &Options) -> Option<Shift> {
    let [Some(lower), Some(median), Some(upper)] = *quartiles else {
        return None;
    };
    let one_way = lower.is_up() == median.is_up() && upper.is_up() == median.is_up();
    let is_far = median.ratio().ln().abs() >= options.threshold.ln_1p();
    (one_way && is_far && delta.abs() >= LEAST_DELTA).then_some(lower)
}

/// The lower quartile, if no other evidence contradicts it.
fn lower(quartiles: &[Option<Shift>; 3], delta: f64) -> Option<Shift> {
    let [Some(lower), Some(median), Some(upper)] = *quartiles else {
        return None;
    };
    let is_against = |other: &Shift| other.is_up() != lower.is_up() && other.probability < AGAINST;
    let agrees = delta.abs() >= LEAST_DELTA && (delta > 0.0) == lower.is_up();
    (agrees && !is_against(&median) && !is_against(&upper)).then_some(lower)
}

/// Assumed variation between runs of one program at a level: a part that is the same for all, and a part
/// proportional to the spread of the values around the level.
fn level_noise<'a>(runs: impl Iterator<Item = &'a Run>, level: f64, options: &Options) -> f64 {
    let is_tail = level >= TAIL;
    let odds = if is_tail { 10.0 } else { 3.0 };
    let at = |factor: f64| level * factor / (1.0 - level + level * factor);
    let (low, high) = (at(1.0 / odds), at(odds));
    let distances = runs.filter(|run| !run.is_empty()).map(|run| run.distance(low, high));
    let (mut sum, mut count, mut most) = (0.0, 0.0, 0.0);
    for distance in distances {
        (sum, count, most) = (sum + distance, count + 1.0, f64::max(most, distance));
    }
    let mean = sum / f64::max(count, 1.0);
    let spread = SPREAD_NOISE * mean * (1.0 + mean / 2.0);
    options.noise.hypot(if is_tail { TAIL_NOISE * most } else { spread })
}

/// Assumed variation of the mean between runs.
fn mean_noise<'a>(runs: impl Iterator<Item = &'a Run>, options: &Options) -> f64 {
    let distances = runs.filter(|run| !run.is_empty()).map(|run| run.distance(0.5, TAIL));
    options.noise.hypot(MEAN_NOISE * distances.fold(0.0, f64::max))
}

/// Shift of a quantile. If durations are missing: the smallest possible one.
fn quantile_shift(
    good: &[Run],
    bad: &[Run],
    level: f64,
    pace: &Pace,
    options: &Options,
) -> Option<Shift> {
    let noise = level_noise(good.iter().chain(bad), level, options);
    let plain = |runs: &[Run]| -> Vec<Estimate> {
        runs.iter().filter_map(|run| run.quantile(level)).collect()
    };
    let seen = shift(&plain(good), &plain(bad), noise, pace, options)?;
    if good.iter().chain(bad).all(|run| run.missing() == 0) {
        return Some(seen);
    }
    let worst = |runs: &[Run], up: bool| -> Option<Vec<Estimate>> {
        let of = |run: &Run| run.quantile(run.worst_level(level, up)?);
        runs.iter().filter(|run| !run.is_empty()).map(of).collect()
    };
    let up = seen.is_up();
    let least = worst(good, up)
        .zip(worst(bad, !up))
        .and_then(|(good, bad)| shift(&good, &bad, noise, pace, options))
        .filter(|least| least.is_up() == up);
    Some(match least {
        Some(least) => {
            let (probability, within) = (least.probability, least.probability_within);
            Shift { probability, probability_within: within, ..seen }
        }
        None => Shift { probability: 1.0, probability_within: 1.0, ..seen },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Durations around 100 µs with slow phases, a heavy tail, and a run-wide factor.
    fn run(seed: u64, factor: f64) -> Run {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let speed = 1.0 + 0.02 * (random.share() - 0.5);
        let mut phase = 1.0;
        let values = (0..800).map(|_| {
            if random.share() < 0.02 {
                phase = 1.0 + 0.1 * random.share();
            }
            let tail = if random.share() < 0.02 { 30.0 * random.share() } else { 0.0 };
            let spread = 0.9 + 0.2 * random.share();
            (100_000.0 * speed * factor * phase * spread * (1.0 + tail)) as u64
        });
        Run::new(values.collect(), 0)
    }

    struct Random(u64);

    impl Random {
        fn share(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    fn is_different(shift: &DurationShift) -> bool {
        let all = [shift.body, Some(shift.mean), shift.tail];
        all.iter().flatten().any(|shift| shift.probability < 0.05 / 3.0)
    }

    #[test]
    fn the_same_program_is_the_same_and_a_fifth_more_is_not() {
        let (options, still) = (Options::default(), Pace::steady());
        let (mut false_claims, mut missed) = (0, 0);
        for seed in 0..200 {
            let good = run(2 * seed, 1.0);
            let same = compare_durations(
                std::slice::from_ref(&good),
                &[run(2 * seed + 1, 1.0)],
                &still,
                &options,
            );
            false_claims += u32::from(is_different(&same.unwrap()));
            let slower =
                compare_durations(&[good], &[run(2 * seed + 1, 1.2)], &still, &options).unwrap();
            missed += u32::from(!slower.body.is_some_and(|body| body.probability < 0.05 / 3.0));
            assert!(slower.body_ns() > 8_000_000.0 && slower.body_ns() < 26_000_000.0);
        }
        // One in twenty may be wrong.
        assert!(false_claims <= 10, "{false_claims} of 200");
        assert!(missed <= 10, "{missed} of 200");
    }

    #[test]
    fn a_new_slow_path_of_some_moves_the_mean_and_not_the_body() {
        let options = Options::default();
        let slow = |seed: u64| {
            let plain = run(seed, 1.0);
            let mix = |(i, nanos): (usize, &u64)| if i % 5 == 0 { nanos * 20 } else { *nanos };
            Run::new(plain.in_time().iter().enumerate().map(mix).collect(), 0)
        };
        let good = [run(1, 1.0), run(3, 1.0), run(5, 1.0)];
        let shift =
            compare_durations(&good, &[slow(2), slow(4), slow(6)], &Pace::steady(), &options)
                .unwrap();
        assert!(shift.body.is_none_or(|body| body.probability > 0.05), "{shift:?}");
        assert!(shift.mean.probability < 0.01, "{shift:?}");
    }

    #[test]
    fn what_lost_events_could_undo_is_not_claimed() {
        let options = Options::default();
        let lossy = |seed, factor, missing| Run::new(run(seed, factor).in_time().to_vec(), missing);
        let few =
            compare_durations(&[run(1, 1.0)], &[lossy(2, 1.4, 20)], &Pace::steady(), &options)
                .unwrap();
        assert_eq!(few.quality, Quality::LowerBound);
        assert!(few.body.unwrap().probability < 0.01, "{few:?}");
        let many =
            compare_durations(&[run(1, 1.0)], &[lossy(2, 1.4, 800)], &Pace::steady(), &options)
                .unwrap();
        assert_eq!(many.body.unwrap().probability, 1.0);
        assert_eq!(many.mean.probability, 1.0);
        let unknown = compare_durations(
            &[run(1, 1.0)],
            &[lossy(2, 9.0, u64::MAX)],
            &Pace::steady(),
            &options,
        );
        assert_eq!(unknown.unwrap().body.unwrap().probability, 1.0);
    }

    #[test]
    fn three_runs_of_each_side_seldom_part_by_chance() {
        assert_eq!(chance_of_two_states(1, 1), 0.5);
        assert_eq!(chance_of_two_states(2, 2), 0.125);
        assert_eq!(chance_of_two_states(3, 3), 0.03125);
        // A single run may well be the one in six that is full.
        assert!((chance_of_two_states(1, 5) - 0.067).abs() < 0.001);
    }

    #[test]
    fn what_waits_is_claimed_where_the_quickest_moved_too() {
        let (options, still) = (Options::default(), Pace::steady());
        let waits = |factor: u64, late: u64| {
            Run::new((0..600).map(|at| 2000 + 100 * factor * (at * 7 % 600) + late).collect(), 0)
        };
        let of = |bad| compare_durations(&[waits(1, 0)], &[bad], &still, &options).unwrap();
        assert_eq!(of(waits(50, 0)).least_probability, 0.5);
        assert_eq!(of(waits(1, 1_000_000)).least_probability, 0.0);
        let steady = Run::new((0..600).map(|at| 100_000 + at).collect(), 0);
        let slower = Run::new((0..600).map(|at| 120_000 + at).collect(), 0);
        let shift = compare_durations(&[steady], &[slower], &still, &options).unwrap();
        assert_eq!(shift.least_probability, 0.0);
    }

    #[test]
    fn what_happens_once_in_a_run_needs_several_runs() {
        let (options, still) = (Options::default(), Pace::steady());
        let few = |nanos: u64| Run::new(vec![nanos; 7], 0);
        let one = compare_durations(&[few(155_000)], &[few(4_290_000)], &still, &options).unwrap();
        assert_eq!((one.least_probability, one.least_probability_of_tail), (0.5, 0.5));
        let sides = [[100_000, 101_000, 99_000].map(few), [200_000, 203_000, 199_000].map(few)];
        let three = compare_durations(&sides[0], &sides[1], &still, &options).unwrap();
        assert!(three.least_probability < options.error, "{three:?}");
        assert!(three.body.unwrap().probability < 0.01, "{three:?}");
    }

    #[test]
    fn nothing_on_a_side_is_no_shift() {
        assert_eq!(
            compare_durations(
                &[Run::default()],
                &[run(1, 1.0)],
                &Pace::steady(),
                &Options::default()
            ),
            None
        );
    }
}
