// SPDX-License-Identifier: Apache-2.0 OR MIT

use proptest::prelude::*;

use super::*;

/// Clocks with different offsets and rates.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    offset_ns: i64,
    drift_ppb: i64,
}

impl Clocks {
    /// Our time at a reading of theirs, rounded down.
    fn ours(self, theirs: i64) -> i64 {
        let drift = i128::from(theirs) * i128::from(self.drift_ppb);
        theirs + self.offset_ns + drift.div_euclid(1_000_000_000) as i64
    }
}

/// Observations from messages in both directions, with their times and latencies.
fn observed(clocks: Clocks, messages: &[(i64, u32, bool)]) -> Observed {
    let mut observed = Observed::default();
    for &(theirs, delay, there) in messages {
        match there {
            // The time was rounded down and may be up to 1 later.
            true => observed.not_after(theirs, clocks.ours(theirs + i64::from(delay)) + 1),
            false => observed.not_before(theirs + i64::from(delay), clocks.ours(theirs)),
        }
    }
    observed
}

proptest! {
    #[test]
    fn the_truth_lies_within_what_is_said(
        offset_ns in -3_000_000_000_000_000_000i64..300_000_000_000_000_000,
        drift_ppb in -900_000i64..900_000,
        begin in -1_000_000_000_000i64..1_700_000_000_000_000_000,
        messages in prop::collection::vec((0i64..100_000_000_000, 0u32..2_000_000, any::<bool>()), 2..60),
        asked in prop::collection::vec(-50_000_000_000i64..150_000_000_000, 8),
    ) {
        let begin = if begin.abs() > 1 << 59 { begin % (1 << 59) } else { begin };
        let clocks = Clocks { offset_ns: offset_ns % (1 << 59), drift_ppb };
        let messages: Vec<_> = messages.iter().map(|m| (begin + m.0, m.1, m.2)).collect();
        let observed = observed(clocks, &messages);
        match observed.lines(0) {
            Err(unknown) => {
                prop_assert_eq!(unknown, Unknown::OneWay);
                prop_assert!(messages.iter().all(|m| m.2) || messages.iter().all(|m| !m.2));
            }
            Ok(lines) => {
                for at in asked.iter().map(|at| begin + at).chain(messages.iter().map(|m| m.0)) {
                    let (least, most) = lines.at(at);
                    let truth = clocks.ours(at);
                    prop_assert!(least <= truth + 1 && truth <= most, "{} {} {}", least, truth, most);
                }
                let (slow, fast) = lines.pace_ppb();
                prop_assert!(slow - 1 <= drift_ppb && drift_ppb <= fast + 1);
            }
        }
    }

    // The slopes from the chains equal those from all pairs of points.
    #[test]
    fn chains_say_what_all_points_say(
        points in prop::collection::vec((0i64..40, -60i64..60, any::<bool>()), 2..12),
    ) {
        let mut observed = Observed::default();
        // Milliseconds and microseconds: slopes below and above a thousandth.
        for &(at, ahead, above) in &points {
            let theirs = at * 1_000_000;
            let ours = theirs + ahead * 1_000 + if above { 40_000 } else { -40_000 };
            if above { observed.not_after(theirs, ours) } else { observed.not_before(theirs, ours) }
        }
        let allowed = |slope: i64| {
            // In parts per million with times in milliseconds: heights in nanoseconds.
            let height = |at: i64, ahead: i64, by: i64| ahead * 1_000 + by - slope * at;
            let of = |above: bool, by: i64| {
                points.iter().filter(move |p| p.2 == above).map(move |p| height(p.0, p.1, by))
            };
            of(false, -40_000).max().zip(of(true, 40_000).min()).map(|(low, high)| low <= high)
        };
        let fits: Vec<i64> = (-1000..=1000).filter(|slope| allowed(*slope) == Some(true)).collect();
        match observed.lines(0) {
            Ok(lines) => {
                let (slow, fast) = lines.pace_ppb();
                // Slopes of whole parts per million are a subset.
                prop_assert!(fits.iter().all(|s| slow <= s * 1000 && s * 1000 <= fast));
                prop_assert!(fits.first().is_none_or(|s| slow > (s - 1) * 1000 || *s == -1000));
                prop_assert!(fits.last().is_none_or(|s| fast < (s + 1) * 1000 || *s == 1000));
            }
            Err(Unknown::Contradiction) => prop_assert!(fits.is_empty()),
            Err(Unknown::OneWay) => prop_assert!(allowed(0).is_none()),
        }
    }
}

#[test]
fn one_exchange_tells_the_offset_to_within_half_of_its_way() {
    let mut observed = Observed::default();
    // Sent at 1000 (ours), answered at once at 5100 (theirs), received at 1200 (ours).
    observed.not_before(5_100, 1_000);
    observed.not_after(5_100, 1_200);
    let lines = observed.lines(0).expect("both ways");
    assert_eq!(lines.at(5_100), (1_000, 1_200));
    // A second later, a thousandth of it is possible either way.
    assert_eq!(lines.at(1_000_005_100), (999_001_000, 1_001_001_200));
}

#[test]
fn what_cannot_be_is_a_contradiction_and_slack_explains_it() {
    let mut observed = Observed::default();
    assert_eq!(observed.lines(0).err(), Some(Unknown::OneWay));
    observed.not_before(0, 100);
    assert_eq!(observed.lines(0).err(), Some(Unknown::OneWay));
    observed.not_after(0, 40);
    assert_eq!(observed.lines(0).err(), Some(Unknown::Contradiction));
    assert_eq!(observed.lines(29).err(), Some(Unknown::Contradiction));
    assert_eq!(observed.lines(30).expect("they meet").at(0), (70, 70));
    // Two clocks do not drift apart by a half.
    let mut observed = Observed::default();
    for (theirs, ours) in [(0, 0), (1_000_000, 1_500_000)] {
        observed.not_before(theirs, ours - 10);
        observed.not_after(theirs, ours + 10);
    }
    assert_eq!(observed.lines(0).err(), Some(Unknown::Contradiction));
}

#[test]
fn extreme_readings_are_left_out() {
    let mut observed = Observed::default();
    for reading in [i64::MIN, i64::MAX, READING_MAX, -READING_MAX - 1] {
        observed.not_before(reading, 0);
        observed.not_after(0, reading);
    }
    assert_eq!(observed.counts(), [0, 0]);
    observed.not_before(-READING_MAX, READING_MAX - 1);
    observed.not_after(READING_MAX - 1, -READING_MAX);
    observed.not_before(READING_MAX - 1, -READING_MAX);
    observed.not_after(-READING_MAX, READING_MAX - 1);
    assert_eq!(observed.lines(u32::MAX).err(), Some(Unknown::Contradiction));
}
