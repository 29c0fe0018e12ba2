// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Student's t distribution: the probability of a shift this large if there is no difference.

/// The distribution with a number of degrees of freedom; infinity gives the normal distribution.
#[derive(Debug, Clone, Copy)]
pub struct Student {
    freedom: f64,
    /// ln B(freedom / 2, 1 / 2).
    ln_beta: f64,
}

impl Student {
    /// Cost: some dozen logarithms.
    pub fn new(freedom: f64) -> Self {
        // Beyond this, the two distributions differ by less than the error of the method.
        let freedom = freedom.min(1e7);
        let (a, b) = (freedom / 2.0, 0.5);
        let known = freedom > 0.0;
        let ln_beta = if known { ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b) } else { 0.0 };
        Self { freedom, ln_beta }
    }

    /// Probability that `t` is exceeded; 1 if `t` is NaN.
    pub fn upper_tail(&self, t: f64) -> f64 {
        let Self { freedom, ln_beta } = *self;
        if t.is_nan() || freedom.is_nan() || freedom <= 0.0 {
            return 1.0;
        }
        if t < 0.0 {
            return 1.0 - self.upper_tail(-t);
        }
        0.5 * incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5, ln_beta)
    }
}

/// Probability that t with `freedom` degrees of freedom exceeds `t`.
pub fn upper_tail(t: f64, freedom: f64) -> f64 {
    Student::new(freedom).upper_tail(t)
}

/// The t that is exceeded with probability `tail` (0 < tail < 0.5).
pub fn quantile(tail: f64, freedom: f64) -> f64 {
    let student = Student::new(freedom);
    let (mut low, mut high) = (0.0, 1.0);
    while student.upper_tail(high) > tail && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if student.upper_tail(middle) > tail { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Probability of at least `successes` in `trials`, each with probability `chance` (Abramowitz and Stegun
/// 26.5.24).
pub fn binomial_upper_tail(successes: f64, trials: f64, chance: f64) -> f64 {
    if successes <= 0.0 {
        return 1.0;
    }
    let (a, b) = (successes, (trials - successes).max(0.0) + 1.0);
    incomplete_beta(chance, a, b, ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b))
}

/// I_x(a, b), by its continued fraction (Abramowitz and Stegun 26.5.8).
fn incomplete_beta(x: f64, a: f64, b: f64, ln_beta: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges quickly only on this side; the other follows by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a, ln_beta);
    }
    let front = a * x.ln() + b * (1.0 - x).ln() - ln_beta;
    (front.exp() * fraction(x, a, b) / a).clamp(0.0, 1.0)
}

/// The continued fraction, by the method of Lentz.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for step in 1..=300 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for factor in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + factor * d);
            c = away_from_zero(1.0 + factor / c);
            result *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    result
}

/// ln Γ(x) for x > 0: Stirling's series, after stepping up to where it is exact enough.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 12.0 {
        shift += x.ln();
        x += 1.0;
    }
    let (r, r2) = (1.0 / x, 1.0 / (x * x));
    let series = r * (1.0 / 12.0 - r2 * (1.0 / 360.0 - r2 * (1.0 / 1260.0 - r2 / 1680.0)));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_coins_are_those_counted() {
        for (successes, trials, expected) in
            [(5, 5, 1.0 / 32.0), (8, 10, 56.0 / 1024.0), (0, 3, 1.0)]
        {
            let tail = binomial_upper_tail(f64::from(successes), f64::from(trials), 0.5);
            assert!((tail - expected).abs() < 1e-12, "{successes} of {trials}: {tail}");
        }
    }

    #[test]
    fn tails_are_those_of_the_tables() {
        // Critical values of printed tables, one-sided.
        for (tail, freedom, t) in [
            (0.05, 1.0, 6.3138),
            (0.025, 2.0, 4.3027),
            (0.025, 4.0, 2.7764),
            (0.005, 10.0, 3.1693),
            (0.025, 30.0, 2.0423),
            (0.025, f64::INFINITY, 1.959_964),
            (0.001, f64::INFINITY, 3.090_232),
        ] {
            assert!((upper_tail(t, freedom) - tail).abs() < 2e-6, "t {t} freedom {freedom}");
            assert!((quantile(tail, freedom) - t).abs() < 1e-3, "tail {tail} freedom {freedom}");
        }
    }

    #[test]
    fn tails_are_symmetric_and_nothing_is_said_of_nothing() {
        assert_eq!(upper_tail(0.0, 7.0), 0.5);
        assert!((upper_tail(-1.3, 7.0) + upper_tail(1.3, 7.0) - 1.0).abs() < 1e-12);
        assert_eq!(upper_tail(f64::NAN, 7.0), 1.0);
        assert_eq!(upper_tail(1.0, 0.0), 1.0);
        assert!(upper_tail(f64::INFINITY, 7.0) < 1e-12);
    }
}
