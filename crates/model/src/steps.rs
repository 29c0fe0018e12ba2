// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Steps of time, in which events may be counted instead of shown.

use lateralis_units::Nanos;

use crate::Interval;

/// Adjacent steps of time. Times of one step need not be distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Nanoseconds of each step; less than 1 is taken for 1.
    pub length_ns: i64,
    /// A time at which one of them begins.
    pub begin_ns: i64,
}

impl Default for Step {
    /// Every time is a step of its own.
    fn default() -> Self {
        Self { length_ns: 1, begin_ns: 0 }
    }
}

impl Step {
    /// First and last time of the step around a time, as far as they are on the timeline and fit 64
    /// bits from `begin_ns` on; others are steps of their own.
    #[must_use]
    pub fn around(self, time: i64) -> (i64, i64) {
        let length = self.length_ns.max(1);
        let Some(from_begin) = time.checked_sub(self.begin_ns) else { return (time, time) };
        let within = from_begin.rem_euclid(length);
        let first = from_begin.saturating_sub(within);
        // Of the first step there may be less than its length.
        let last = from_begin.saturating_add(length - 1 - within);
        (first.saturating_add(self.begin_ns), last.saturating_add(self.begin_ns))
    }
}

/// How events may be counted where only their numbers along time are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountBy {
    /// Events of different steps are counted apart.
    pub step: Step,
    /// And those outside apart from those inside.
    pub interval: Interval,
    /// And those of different classes.
    pub class: bool,
}

impl CountBy {
    /// The last time that need not be distinguished from this one, if none is earlier.
    #[must_use]
    pub fn last(&self, time: Nanos) -> Nanos {
        let before_end = match (self.interval.begin, self.interval.end) {
            (Some(begin), _) if time < begin => return Nanos(begin.0 - 1),
            (_, Some(end)) if time > end => return Nanos(i64::MAX),
            (_, Some(end)) => end.0,
            (_, None) => i64::MAX,
        };
        Nanos(self.step.around(time.0).1.min(before_end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_its_times_and_none_beyond_the_time_line() {
        let step = Step { length_ns: 10, begin_ns: -3 };
        assert_eq!((step.around(-3), step.around(6), step.around(7)), ((-3, 6), (-3, 6), (7, 16)));
        assert_eq!(step.around(-4), (-13, -4));
        for time in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX] {
            for length_ns in [i64::MIN, 0, 1, 3, 1 << 40, i64::MAX] {
                for begin_ns in [i64::MIN, -1, 0, 1_700_000_000_000_000_000, i64::MAX] {
                    let step = Step { length_ns, begin_ns };
                    let (first, last) = step.around(time);
                    assert!(first <= time && time <= last, "{step:?} {time}");
                    let count = i128::from(last) - i128::from(first) + 1;
                    assert!(count <= i128::from(length_ns.max(1)), "{step:?} {time}");
                    assert_eq!(
                        (step.around(first), step.around(last)),
                        ((first, last), (first, last))
                    );
                }
            }
        }
        assert_eq!(Step::default().around(7), (7, 7));
    }

    #[test]
    fn the_ends_of_an_interval_lie_between_steps() {
        let step = Step { length_ns: 10, begin_ns: 0 };
        let interval = Interval { begin: Some(Nanos(4)), end: Some(Nanos(25)) };
        let by = CountBy { step, interval, class: false };
        let last: Vec<i64> = [-7, 4, 9, 10, 23, 26].map(|time| by.last(Nanos(time)).0).into();
        assert_eq!(last, [3, 9, 9, 19, 25, i64::MAX]);
        let least = Interval { begin: Some(Nanos(i64::MIN)), end: None };
        assert_eq!(CountBy { interval: least, ..by }.last(Nanos(i64::MIN)).0, i64::MIN + 7);
    }
}
