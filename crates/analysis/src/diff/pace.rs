// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Speed of the machine: the common factor of everything in a recording.
//!
//! A CPU at another clock rate, or with a busy neighbour, makes all work of a recording longer by one
//! factor. One recording does not predict the speed of the machine in the next; but the other spans show
//! it. What all of them share is attributed to the machine, and only what deviates from that to the
//! program. So a recording is compared with itself first.
//!
//! The factor is not known exactly; it has a probability distribution. That depends on how far machines
//! differ in speed (a prior, [`PACE_NOISE`]; with several recordings per side also their measured
//! spread), and on how well the shifts of the other names agree. One name in ten may have moved by
//! itself, and perhaps half of them wait for something and do not follow the pace at all. The probability
//! of a shift is averaged over this distribution. A number is never judged by a pace to which it has
//! contributed.

use super::run::{Estimate, variance};
use super::shift::{Options, difference};
use super::student;

/// Standard deviation of the pace of one recording, in units of [`Options::noise`]: 5 %. Measured, see
/// docs/reference/diff.md.
const PACE_NOISE: f64 = 2.5;
/// Weight of the assumed pace, in recordings; also determines the weight of its tails (see
/// [`Belief::freedom`]).
const PACE_FREEDOM: f64 = 4.0;
/// Fraction of the tolerated error for the claim that the program as a whole differs.
const PACE_ERROR: f64 = 0.2;
/// Probability that a name has moved by itself, and its typical distance (half of them move further, in
/// logarithms: a Cauchy distribution, so that the furthest names affect the pace least).
const MOVED: (f64, f64) = (0.1, 0.3);
/// Probability that only half of the names follow the pace.
const HALF: f64 = 0.15;
/// Number of most precisely known names from which the pace is estimated.
const MOST_NAMES: usize = 256;
/// Number of names around which candidates of the pace are sampled.
const MOST_CENTRES: usize = 64;
/// Total probability of the candidates that are dropped.
const NEGLIGIBLE: f64 = 1e-6;

/// Expected factor of a number, as a probability distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// Logarithms of factors and their probabilities, ascending.
    points: Vec<(f64, f64)>,
    /// Probability that the number does not follow the pace.
    free: f64,
}

impl Pace {
    /// Unchanged speed of the machine.
    #[must_use]
    pub fn steady() -> Self {
        Self { points: vec![(0.0, 1.0)], free: 0.0 }
    }

    /// The most likely factor: the median, as a logarithm.
    pub(super) fn centre(&self) -> f64 {
        self.at(0.5)
    }

    /// Standard error around the centre: half the distance between the quantiles at one and five sixths.
    pub(super) fn error(&self) -> f64 {
        (self.at(0.84) - self.at(0.16)) / 2.0
    }

    /// Quantile of the pace. Half of a point's probability is on each side of it; rounding must not
    /// select the following point.
    fn at(&self, share: f64) -> f64 {
        let all = self.points.iter().map(|point| point.1).sum::<f64>() * share * (1.0 - 1e-9);
        let mut below = 0.0;
        let reached = |point: &&(f64, f64)| {
            below += point.1;
            below - point.1 / 2.0 >= all
        };
        self.points.iter().find(reached).or(self.points.last()).map_or(0.0, |point| point.0)
    }

    /// The most likely factor.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.centre().exp()
    }

    /// Least and largest factor at 95 % confidence.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        let half = 2.0 * self.error();
        ((self.centre() - half).exp(), (self.centre() + half).exp())
    }

    /// Mean of a probability over the distribution of the pace.
    pub(super) fn mean(&self, of: impl Fn(f64) -> f64) -> f64 {
        let bound: f64 = self.points.iter().map(|&(pace, weight)| weight * of(pace)).sum();
        bound + if self.free > 0.0 { self.free * of(0.0) } else { 0.0 }
    }
}

/// Estimates of one name in each recording; `None` if it did not occur.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sides {
    /// Those of the good recordings.
    pub good: Vec<Option<Estimate>>,
    /// Those of the bad recordings.
    pub bad: Vec<Option<Estimate>>,
    /// Assumed standard deviation between recordings.
    pub noise: f64,
}

/// Pace of each name, estimated from the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Paces {
    /// Paces for the names that contribute to the estimate, in their order.
    pub each: Vec<Pace>,
    /// Pace for all other numbers.
    pub others: Pace,
    /// Pace estimated from all names together.
    pub seen: Pace,
    /// Probability of such a difference in speed between machines.
    pub probability: f64,
    /// Whether that is too unlikely: then the program as a whole differs, and names are judged by the
    /// prior of machines instead of by each other.
    pub is_program: bool,
}

/// Finds the pace of the bad recordings against the good ones.
///
/// Cost: some thousand steps for each of at most 256 names, and proportional memory.
#[must_use]
pub fn paces(names: &[Sides], options: &Options) -> Paces {
    let told: Vec<Option<Told>> = names.iter().map(|sides| Told::of(sides, options)).collect();
    let belief = Belief::of(names, options);
    let field = Field::new(&belief, &told);
    let seen = field.pace(None);
    let spread = belief.scale.hypot(seen.error());
    let t = seen.centre().abs() / spread.max(1e-9);
    let is_shift = seen.centre().abs() >= options.threshold.ln_1p();
    let probability = if is_shift { 2.0 * student::upper_tail(t, belief.freedom) } else { 1.0 };
    let is_program = probability <= PACE_ERROR * options.error;
    if is_program {
        let alone = Field::new(&belief, &[]).pace(None);
        let each = vec![alone.clone(); names.len()];
        return Paces { each, others: alone, seen, probability, is_program };
    }
    let each = (0..names.len()).map(|index| match field.telling.contains(&index) {
        true => field.pace(Some(index)),
        false => seen.clone(),
    });
    let each = each.collect();
    Paces { each, others: seen.clone(), seen, probability, is_program }
}

/// The shift of one name.
#[derive(Debug, Clone, Copy)]
struct Told {
    difference: f64,
    error: f64,
}

impl Told {
    fn of(sides: &Sides, options: &Options) -> Option<Self> {
        let present =
            |side: &[Option<Estimate>]| side.iter().flatten().copied().collect::<Vec<_>>();
        let found = difference(&present(&sides.good), &present(&sides.bad), sides.noise)?;
        // An assumed noise of zero must not make a name infinitely certain.
        let error = found.error.max(options.noise / 4.0).max(1e-4);
        Some(Self { difference: found.difference, error })
    }

    /// Likelihood of its shift at a pace, with and without following it.
    fn likelihood(&self, pace: f64) -> f64 {
        let (share, far) = MOVED;
        let away = self.difference - pace;
        let bound = (-0.5 * (away / self.error).powi(2)).exp() / self.error;
        // Both up to a factor of the root of 2 π.
        let far = far + self.error;
        let moved = (2.0 / std::f64::consts::PI).sqrt() / (far * (1.0 + (away / far).powi(2)));
        (1.0 - share) * bound + share * moved
    }
}

/// Prior distribution of the pace between both sides.
#[derive(Debug, Clone, Copy)]
struct Belief {
    /// Standard deviation of the logarithm of the pace.
    scale: f64,
    /// Degrees of freedom of Student's distribution: heavy tails for few recordings.
    freedom: f64,
}

impl Belief {
    fn of(names: &[Sides], options: &Options) -> Self {
        let count = |of: fn(&Sides) -> usize| names.iter().map(of).max().unwrap_or(1).max(1) as f64;
        let (n, m) = (count(|name| name.good.len()), count(|name| name.bad.len()));
        let good = recording_paces(names, |name| &name.good);
        let bad = recording_paces(names, |name| &name.bad);
        let spread = |paces: &[f64]| (paces.len() as f64 - 1.0).max(0.0) * variance(paces);
        let freedom = n + m - 2.0;
        let assumed = (PACE_NOISE * options.noise).powi(2);
        let all = PACE_FREEDOM * assumed + spread(&good) + spread(&bad);
        let one = all / (PACE_FREEDOM + freedom);
        let scale = (one * (1.0 / n + 1.0 / m)).sqrt().max(1e-6);
        Self { scale, freedom: 2.0 * PACE_FREEDOM + freedom }
    }

    /// Density up to a constant factor.
    fn density(&self, pace: f64) -> f64 {
        let t = pace / self.scale;
        (1.0 + t * t / self.freedom).powf(-(self.freedom + 1.0) / 2.0)
    }
}

/// Speed of each recording relative to its side: the median over the names.
fn recording_paces(names: &[Sides], side: fn(&Sides) -> &Vec<Option<Estimate>>) -> Vec<f64> {
    let recordings = names.iter().map(|name| side(name).len()).max().unwrap_or(0);
    let mut away: Vec<Vec<f64>> = vec![Vec::new(); recordings];
    for name in names {
        let logs: Vec<Option<f64>> =
            side(name).iter().map(|one| one.map(|one| one.value.max(1e-9).ln())).collect();
        let present: Vec<f64> = logs.iter().flatten().copied().collect();
        if present.len() < 2 {
            continue;
        }
        let mean = present.iter().sum::<f64>() / present.len() as f64;
        for (index, log) in logs.iter().enumerate() {
            away[index].extend(log.map(|log| log - mean));
        }
    }
    away.iter_mut().filter_map(|values| median(values)).collect()
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Candidates of the pace, and their likelihood for each name.
struct Field<'a> {
    told: &'a [Option<Told>],
    /// Indices of the names that contribute.
    telling: Vec<usize>,
    nodes: Vec<f64>,
    /// Logarithm of the prior weight of each node.
    prior: Vec<f64>,
    /// Sums over the names for each node: if all follow the pace, and if half of them do.
    sums: Vec<[f64; 2]>,
}

impl<'a> Field<'a> {
    fn new(belief: &Belief, told: &'a [Option<Told>]) -> Self {
        let mut telling: Vec<usize> = (0..told.len()).filter(|&at| told[at].is_some()).collect();
        let error = |at: &usize| told[*at].map_or(f64::INFINITY, |told| told.error);
        telling.sort_by(|a, b| error(a).total_cmp(&error(b)).then(a.cmp(b)));
        telling.truncate(MOST_NAMES);
        let nodes = nodes(belief, telling.iter().filter_map(|&at| told[at]));
        let width = |at: usize| {
            let before = nodes[at.saturating_sub(1)];
            let after = nodes[(at + 1).min(nodes.len() - 1)];
            (after - before) / 2.0
        };
        let prior: Vec<f64> = (0..nodes.len())
            .map(|at| (belief.density(nodes[at]) * width(at)).max(1e-300).ln())
            .collect();
        let mut field = Self { told, telling, nodes, prior, sums: Vec::new() };
        field.sums = (0..field.nodes.len())
            .map(|node| {
                let each = field.telling.iter().map(|&name| field.share(node, name));
                each.fold([0.0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]])
            })
            .collect();
        field
    }

    /// Contribution of a name to a node.
    fn share(&self, node: usize, name: usize) -> [f64; 2] {
        let Some(told) = self.told.get(name).copied().flatten() else {
            return [0.0; 2];
        };
        let bound = told.likelihood(self.nodes[node]);
        let half = (bound + told.likelihood(0.0)) / 2.0;
        [bound.max(1e-300).ln(), half.max(1e-300).ln()]
    }

    /// Pace estimated from all names, or from all but one.
    fn pace(&self, without: Option<usize>) -> Pace {
        let logs: Vec<[f64; 2]> = (0..self.nodes.len())
            .map(|node| {
                let own = without.map_or([0.0; 2], |name| self.share(node, name));
                let of = |way: usize, likely: f64| {
                    self.prior[node] + self.sums[node][way] - own[way] + likely.ln()
                };
                [of(0, 1.0 - HALF), of(1, HALF)]
            })
            .collect();
        let most = logs.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights = logs.iter().map(|pair| pair.map(|log| (log - most).exp()));
        let weights: Vec<[f64; 2]> = weights.collect();
        let all: f64 = weights.iter().flatten().sum();
        // If half of the names follow the pace, this one is as likely to do so as any.
        let point = |(node, [bound, half]): (usize, &[f64; 2])| {
            (self.nodes[node], (bound + half / 2.0) / all)
        };
        let mut points: Vec<(f64, f64)> = weights.iter().enumerate().map(point).collect();
        let free = weights.iter().map(|pair| pair[1] / 2.0).sum::<f64>() / all;
        prune(&mut points);
        Pace { points, free }
    }
}

/// Drops negligible points and distributes their weight over the others.
fn prune(points: &mut Vec<(f64, f64)>) {
    let mut weights: Vec<f64> = points.iter().map(|point| point.1).collect();
    weights.sort_by(f64::total_cmp);
    let (mut left_out, mut limit) = (0.0, 0.0);
    for weight in weights {
        left_out += weight;
        if left_out > NEGLIGIBLE {
            break;
        }
        limit = weight;
    }
    let before: f64 = points.iter().map(|point| point.1).sum();
    points.retain(|point| point.1 > limit);
    let after: f64 = points.iter().map(|point| point.1).sum();
    points.iter_mut().for_each(|point| point.1 *= before / after);
}

/// Candidates: over the range of the prior, and densely around the shifts of the names.
fn nodes(belief: &Belief, told: impl Iterator<Item = Told>) -> Vec<f64> {
    // Steps of increasing width, out to thirty standard deviations.
    let prior = (-40..=40).map(|step| {
        let t = f64::from(step) / 4.0;
        belief.scale * t * (1.0 + t.abs() / 5.0)
    });
    let mut nodes: Vec<f64> = prior.collect();
    let far = belief.scale * 30.0;
    let mut finest = belief.scale;
    for one in told.take(MOST_CENTRES).filter(|one| one.difference.abs() <= far) {
        finest = finest.min(one.error);
        nodes.extend((-16..=16).map(|step| one.difference + one.error * f64::from(step) / 4.0));
    }
    nodes.sort_by(f64::total_cmp);
    let least = finest / 8.0;
    let mut last = f64::NEG_INFINITY;
    nodes.retain(|&node| {
        let is_apart = node - last >= least;
        if is_apart {
            last = node;
        }
        is_apart
    });
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One recording per side of each name, moved by the given percentages.
    fn names(percent: &[f64]) -> Vec<Sides> {
        let one = |value: f64| vec![Some(Estimate { value, error: 0.003 })];
        let name = |percent: &f64| Sides {
            good: one(1000.0),
            bad: one(1000.0 * (1.0 + percent / 100.0)),
            noise: 0.02,
        };
        percent.iter().map(name).collect()
    }

    #[test]
    fn what_all_share_is_the_pace_and_what_one_has_is_not() {
        let options = Options::default();
        let all = paces(&names(&[11.0, 10.0, 9.0, 10.0, 35.0]), &options);
        assert!((all.seen.factor() / 1.1 - 1.0).abs() < 0.02, "{}", all.seen.factor());
        assert!(!all.is_program && all.probability > 0.05, "{}", all.probability);
        // Without its own contribution, the last name is judged by the others.
        assert!((all.each[4].factor() / 1.1 - 1.0).abs() < 0.02);
        let one = paces(&names(&[0.0, 20.0, 0.0, 0.0]), &options);
        assert!((one.each[1].factor() - 1.0).abs() < 0.01);
        assert_eq!(one.probability, 1.0);
    }

    #[test]
    fn a_name_alone_has_any_pace_that_machines_have() {
        let alone = &paces(&names(&[20.0]), &Options::default()).each[0];
        assert_eq!(alone.factor(), 1.0);
        // 5 % for each recording, with heavier tails.
        assert!((0.06..0.09).contains(&alone.error()), "{}", alone.error());
        let none = paces(&[], &Options::default());
        assert!(none.each.is_empty() && none.others == none.seen);
    }

    #[test]
    fn what_no_machine_does_is_the_program() {
        let all = paces(&names(&[80.0, 85.0, 90.0, 82.0]), &Options::default());
        assert!(all.is_program, "{}", all.probability);
        assert_eq!(all.each[0].factor(), 1.0);
    }

    #[test]
    fn several_recordings_tell_how_much_paces_vary() {
        let several = |paces: [f64; 8]| {
            let value = |pace: &f64| Some(Estimate { value: 1000.0 * pace, error: 0.003 });
            let (good, bad) = paces.split_at(4);
            let sides = |paces: &[f64]| paces.iter().map(value).collect();
            vec![Sides { good: sides(good), bad: sides(bad), noise: 0.02 }; 5]
        };
        let options = Options::default();
        let quiet = several([1.0, 1.01, 0.99, 1.0, 1.2, 1.21, 1.19, 1.2]);
        assert!(paces(&quiet, &options).is_program);
        let noisy = several([0.8, 1.2, 1.0, 1.0, 1.0, 1.4, 1.2, 1.2]);
        assert!(!paces(&noisy, &options).is_program);
    }

    #[test]
    fn thousands_of_names_and_wild_ones_are_no_trouble() {
        let wild: Vec<f64> = (0..3000).map(|n| f64::from(n % 5) * 1e7 - 50.0).collect();
        let all = paces(&names(&wild), &Options::default());
        assert_eq!(all.each.len(), 3000);
        for pace in all.each.iter().take(5).chain([&all.seen]) {
            let sum = pace.points.iter().map(|point| point.1).sum::<f64>() + pace.free;
            assert!((sum - 1.0).abs() < 1e-6 && pace.factor().is_finite(), "{sum}");
        }
    }
}
