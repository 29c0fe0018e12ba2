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
//! The possible values at one of their times are an interval, and the set is convex: over a time range,
//! the largest distance from a line inside is at one of the ends. Numbers are integers, and rounded
//! outwards: the true line is within the result, if there is one.

/// Larger readings are rejected, so that products of two differences fit 128 bits.
const READING_MAX: i64 = 1 << 61;

/// Largest relative drift of two machine clocks of nominal speed: crystals are within 100 parts per
/// million, and clock corrections change the rate by at most 500 [ntp_adjtime(3)].
const MOST_APART: Slope = Slope { rise: 1, run: 1000 };

/// Relative drift: never more than [`MOST_APART`] where it matters.
#[derive(Debug, Clone, Copy)]
struct Slope {
    rise: i128,
    /// Greater than 0.
    run: i128,
}

impl Slope {
    /// Each product is at most 2^63 * 2^62.
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

/// A reading of their clock, and the offset of ours: below 2^61 and 2^62.
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

/// Observations about two clocks, in nanoseconds, theirs and ours.
///
/// Memory: proportional to observations.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Points that the line is not below.
    not_before: Vec<Point>,
    /// Likewise, with `ahead` negated.
    not_after: Vec<Point>,
}

/// Reason why the relation is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// There are observations of one direction only: any offset explains them.
    OneWay,
    /// No straight line explains them all, for clocks that drift apart by at most a thousandth.
    Contradiction,
}

impl Observed {
    /// At reading `theirs`, our clock showed at least `ours`: a message sent by us at that time has
    /// arrived there.
    pub fn not_before(&mut self, theirs: i64, ours: i64) {
        self.not_before.extend(point(theirs, ours));
    }

    /// At reading `theirs`, our clock showed at most `ours`: a message sent by them at that time has
    /// arrived here.
    pub fn not_after(&mut self, theirs: i64, ours: i64) {
        self.not_after.extend(point(theirs, ours).map(turned));
    }

    /// Number of observations of each direction.
    #[must_use]
    pub fn counts(&self) -> [usize; 2] {
        [self.not_before.len(), self.not_after.len()]
    }

    /// All lines that contradict no observation, each of which may be wrong by `slack_ns`.
    ///
    /// Cost: n log n.
    ///
    /// # Errors
    /// If there is no such line, or they are unbounded on one side.
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
        // Seen from the other side, rising is falling.
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

/// Upper convex hull: a line is above all points exactly if it is above these.
fn chain(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_unstable();
    let mut hull: Vec<Point> = Vec::new();
    for point in points {
        // Of points at one time, the last is the highest.
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

/// Steepest slope of a line above `below` and under `above` (negated): that of the flattest line from a
/// point of the one to a later point of the other.
fn steepest(below: &[Point], above: &[Point]) -> Slope {
    let mut least = MOST_APART;
    for &turned_point in above {
        let end = turned(turned_point);
        let left = &below[..below.partition_point(|point| point.at < end.at)];
        let Some(edges) = left.len().checked_sub(1) else { continue };
        // The slopes of the edges decrease, so the edges whose line passes above the end come first. As
        // long as it does, the next point gives a flatter slope.
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
    /// Negated.
    above: Vec<Point>,
    slowest: Slope,
    fastest: Slope,
}

impl Lines {
    /// Bounds of our time at a reading of theirs: as narrow as the observations allow, but for rounding.
    ///
    /// Cost: proportional to the remaining observations, of which there are usually few.
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

    /// Bounds of the drift of our clock, in parts per billion.
    #[must_use]
    pub fn pace_ppb(&self) -> (i64, i64) {
        let ppb = |slope: Slope| slope.rise.saturating_mul(1_000_000_000) / slope.run;
        (ppb(self.slowest) as i64, ppb(self.fastest) as i64)
    }

    /// Whether a line of this slope fits between the chains.
    fn allows(&self, slope: Slope) -> bool {
        let height = |point: &Point| point.ahead * slope.run - slope.rise * point.at;
        let below = self.below.iter().map(height).max();
        let turned_height = |point: &Point| point.ahead * slope.run + slope.rise * point.at;
        let above = self.above.iter().map(turned_height).max();
        below.zip(above).is_some_and(|(below, above)| below <= -above)
    }
}

/// Lowest position at a time of a line above all points of a chain, with a slope in the range.
fn lowest(chain: &[Point], at: i128, [slowest, fastest]: [Slope; 2]) -> i128 {
    let right = chain.partition_point(|point| point.at <= at);
    // Unconstrained, it would be on the edge there; before all points it is lowest where it is steepest.
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
