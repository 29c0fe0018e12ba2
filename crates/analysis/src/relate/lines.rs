// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All straight lines from one clock's times to another's that no observation contradicts
//! [Duda et al., "Estimating global time in distributed systems", ICDCS 1987: convex hulls].
//!
//! ```text
//! ours ▲      v   v    v        not after: above the line    chain: the lowest of them
//!      │    ·  ────────         ─ a line between
//!      │  ^  ^    ^    ^        not before: below the line   chain: the highest of them
//!      └──────────────────► theirs
//! ```
//!
//! Where they go at one of their times is an interval, and it is convex: over a stretch of time the
//! farthest from a line between them is at one of the ends. Numbers are whole, and rounded outwards:
//! the line that is true lies within what is said, if there is one.

/// Readings beyond are refused, so that products of two differences of them fit 128 bits.
const READING_MAX: i64 = 1 << 61;

/// Two clocks of machines, each as fast as it says to within this, run apart by less: crystals keep
/// 100 parts per million, and who corrects a clock turns it by 500 at most [ntp_adjtime(3)].
const MOST_APART: Slope = Slope { rise: 1, run: 1000 };

/// How much faster one runs: never more than [`MOST_APART`] where it counts.
#[derive(Debug, Clone, Copy)]
struct Slope {
    rise: i128,
    /// Greater than 0.
    run: i128,
}

impl Slope {
    /// 2^63 * 2^62 each, at most.
    fn is_less(self, other: Self) -> bool {
        self.rise * other.run < other.rise * self.run
    }

    fn min(self, other: Self) -> Self {
        if other.is_less(self) { other } else { self }
    }

    fn max(self, other: Self) -> Self {
        if self.is_less(other) { other } else { self }
    }

    fn negated(self) -> Self {
        Self { rise: -self.rise, run: self.run }
    }
}

/// A reading of theirs, and how far ours is ahead of it: below 2^61 and 2^62.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    at: i128,
    ahead: i128,
}

impl Point {
    fn slope_to(self, later: Self) -> Slope {
        Slope { rise: later.ahead - self.ahead, run: later.at - self.at }
    }
}

/// What is known of two clocks, observation by observation. Nanoseconds, theirs and ours.
///
/// Memory: by observations.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The line is not below these.
    not_before: Vec<Point>,
    /// The line is not below these either, `ahead` turned round.
    not_after: Vec<Point>,
}

/// Why nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// There are observations of one side only: any difference explains them.
    OneWay,
    /// No straight line, of clocks that run apart by a thousandth at most, explains them all.
    Contradiction,
}

impl Observed {
    /// When theirs showed one, ours showed the other or more: what ours sent then has arrived there.
    pub fn not_before(&mut self, theirs: i64, ours: i64) {
        self.not_before.extend(point(theirs, ours));
    }

    /// When theirs showed one, ours showed the other or less: what they sent then has arrived here.
    pub fn not_after(&mut self, theirs: i64, ours: i64) {
        self.not_after.extend(point(theirs, ours).map(turned));
    }

    /// How many of each kind.
    #[must_use]
    pub fn counts(&self) -> [usize; 2] {
        [self.not_before.len(), self.not_after.len()]
    }

    /// All lines that contradict nothing; where each observation is allowed to be wrong by
    /// `slack_ns`.
    ///
    /// Cost: n log n.
    ///
    /// # Errors
    /// If there is none, or nothing holds them from one side.
    pub fn lines(&self, slack_ns: u32) -> Result<Lines, Unknown> {
        if self.not_before.is_empty() || self.not_after.is_empty() {
            return Err(Unknown::OneWay);
        }
        let slack = i128::from(slack_ns);
        let [below, above] = [&self.not_before, &self.not_after].map(|points| {
            let lower = |point: &Point| Point { ahead: point.ahead - slack, ..*point };
            chain(points.iter().map(lower).collect())
        });
        let fastest = steepest(&below, &above).min(MOST_APART);
        // Seen from the other side, what rises falls.
        let slowest = steepest(&above, &below).negated().max(MOST_APART.negated());
        let lines = Lines { below, above, slowest, fastest };
        let has_any = !fastest.is_less(slowest)
            && [slowest, fastest].map(|s| lines.allows(s))[..] == [true; 2];
        if has_any { Ok(lines) } else { Err(Unknown::Contradiction) }
    }
}

fn point(theirs: i64, ours: i64) -> Option<Point> {
    let fits = |reading: i64| (-READING_MAX..READING_MAX).contains(&reading);
    let (at, ours) = (i128::from(theirs), i128::from(ours));
    (fits(theirs) && i64::try_from(ours).is_ok_and(fits)).then_some(Point { at, ahead: ours - at })
}

fn turned(point: Point) -> Point {
    Point { ahead: -point.ahead, ..point }
}

/// The upper convex hull: no other line is above all points than one above these.
fn chain(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_unstable();
    let mut hull: Vec<Point> = Vec::new();
    for point in points {
        // Of one time the last, which is the highest.
        if hull.last().is_some_and(|last| last.at == point.at) {
            hull.pop();
        }
        while let [.., a, b] = hull[..]
            && !b.slope_to(point).is_less(a.slope_to(b))
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// The steepest that a line can be that is above `below` and under `above` (turned): as steep as the
/// flattest from a point of the one to a later point of the other.
fn steepest(below: &[Point], above: &[Point]) -> Slope {
    let mut least = MOST_APART;
    for &turned_point in above {
        let end = turned(turned_point);
        let left = &below[..below.partition_point(|point| point.at < end.at)];
        let Some(edges) = left.len().checked_sub(1) else { continue };
        // Edges fall more and more, so those whose line passes above the end come first, and
        // as long as it does the next point is seen under a flatter slope.
        let (mut first, mut last) = (0, edges);
        while first < last {
            let middle = (first + last) / 2;
            let edge = left[middle].slope_to(left[middle + 1]);
            if left[middle].slope_to(end).is_less(edge) {
                first = middle + 1;
            } else {
                last = middle;
            }
        }
        least = least.min(left[first].slope_to(end));
    }
    least
}

/// All lines that no observation contradicts.
#[derive(Debug, Clone)]
pub struct Lines {
    below: Vec<Point>,
    /// Turned.
    above: Vec<Point>,
    slowest: Slope,
    fastest: Slope,
}

impl Lines {
    /// Our time when theirs is this, at least and at most: exactly as narrow as the observations
    /// allow, but for rounding.
    ///
    /// Cost: by what is left of the observations, of which there are few as a rule.
    #[must_use]
    pub fn at(&self, theirs: i64) -> (i64, i64) {
        let at = i128::from(theirs.clamp(-READING_MAX, READING_MAX));
        let least = lowest(&self.below, at, [self.slowest, self.fastest]);
        let [slow, fast] = [self.fastest.negated(), self.slowest.negated()];
        let most = -lowest(&self.above, at, [slow, fast]);
        let saturated = |ahead: i128| {
            let time = i128::from(theirs) + ahead;
            time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        };
        (saturated(least), saturated(most))
    }

    /// How much faster ours runs, parts per billion, at least and at most.
    #[must_use]
    pub fn pace_ppb(&self) -> (i64, i64) {
        let ppb = |slope: Slope| slope.rise.saturating_mul(1_000_000_000) / slope.run;
        (ppb(self.slowest) as i64, ppb(self.fastest) as i64)
    }

    /// Whether a line of this slope fits between.
    fn allows(&self, slope: Slope) -> bool {
        let height = |point: &Point| point.ahead * slope.run - slope.rise * point.at;
        let below = self.below.iter().map(height).max();
        let turned_height = |point: &Point| point.ahead * slope.run + slope.rise * point.at;
        let above = self.above.iter().map(turned_height).max();
        below.zip(above).is_some_and(|(below, above)| below <= -above)
    }
}

/// The lowest that a line can be at a time that is above all of a chain, with a slope of the range.
fn lowest(chain: &[Point], at: i128, [slowest, fastest]: [Slope; 2]) -> i128 {
    let right = chain.partition_point(|point| point.at <= at);
    // Free, it would lie on the edge there; in front of all points it is lowest where it is steepest.
    let slope = match (right.checked_sub(1).and_then(|left| chain.get(left)), chain.get(right)) {
        (None, _) => fastest,
        (_, None) => slowest,
        (Some(left), Some(right)) => left.slope_to(*right).min(fastest).max(slowest),
    };
    let over = |point: &Point| point.ahead + (slope.rise * (at - point.at)).div_euclid(slope.run);
    chain.iter().map(over).max().unwrap_or(i128::MIN / 2)
}

#[cfg(test)]
mod tests;
