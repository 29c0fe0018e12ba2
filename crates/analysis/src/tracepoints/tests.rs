// SPDX-License-Identifier: Apache-2.0 OR MIT

use super::*;
use proptest::prelude::*;

/// Parses `0(100 1(110 )1:130`: number, mark, cycles. All in one lane; the slot is the row.
fn read(text: &str) -> (Vec<Entry>, Odd) {
    let mut points = Tracepoints::default();
    for word in text.split_whitespace() {
        let (point, cycles) = word.split_once(['(', ')']).unwrap();
        let (point, cycles) = (point.parse().unwrap(), cycles.parse().unwrap());
        if word.contains('(') {
            points.start(point, 0, cycles);
        } else {
            points.stop(point, point, 0, cycles);
        }
    }
    points.finish()
}

fn log(text: &str) -> Vec<(u32, u64, u32)> {
    read(text).0.iter().map(|entry| (entry.row, entry.cycles, entry.inside.unwrap())).collect()
}

#[test]
fn tracepoints_nest_and_interleave() {
    assert_eq!(log("0(10 1(12 1)15 0)20"), [(1, 3, 0), (0, 10, 2)]);
    assert_eq!(log("0(10 1(12 0)20 1)25"), [(0, 10, 1), (1, 13, 1)]);
}

#[test]
fn a_stop_in_a_branch_logs_from_the_last_start() {
    // START(0); f(); if (c) { g(); STOP(0); }: not taken, then taken.
    let (entries, odd) = read("0(10 0(50 0)57");
    assert_eq!(entries.iter().map(|entry| entry.cycles).collect::<Vec<_>>(), [7]);
    assert_eq!(odd, Odd { restarts: 1, ..Odd::default() });
}

#[test]
fn a_start_in_a_branch_logs_only_when_it_was_taken() {
    // if (c) { f(); START(1); } g(); STOP(1): not taken, taken, not taken.
    let (entries, odd) = read("1)5 1(20 1)26 1)40");
    assert_eq!(entries.iter().map(|entry| entry.cycles).collect::<Vec<_>>(), [6]);
    assert_eq!(odd, Odd { stops: 2, ..Odd::default() });
}

#[test]
fn two_keys_together_follow_one_path() {
    // START(2); f(); if (c) { h(); STOP(2); START(3); } g(); STOP(3): taken, not taken.
    let (entries, odd) = read("2(10 2)14 3(15 3)18 2(30 3)44");
    assert_eq!(
        entries.iter().map(|entry| (entry.row, entry.cycles)).collect::<Vec<_>>(),
        [(2, 4), (3, 3)]
    );
    assert_eq!(odd, Odd { stops: 1, open: 1, ..Odd::default() });
}

#[test]
fn a_clock_that_runs_backwards_gives_nothing_and_is_counted() {
    let (entries, odd) = read("0(10 0)9");
    assert_eq!((entries[0].cycles, odd.backwards), (0, 1));
}

#[test]
fn variance_is_of_the_samples_and_deviation_of_what_they_are_of() {
    // The table of the tracepoints' manual: 740 samples, variance 295.16 and 2.75, standard deviation
    // 17.19 and 1.66.
    for (variance, stddev) in [(295.16f64, 17.19f64), (2.75, 1.66)] {
        let ours = (variance * 740.0 / 739.0).sqrt();
        assert!((ours - stddev).abs() < 0.005, "{ours}");
    }
    let moments = Moments::of(&mut [2, 4, 4, 4, 5, 5, 7, 9]).unwrap();
    assert_eq!((moments.mean, moments.variance, moments.mode), (5.0, 4.0, 4));
    assert!((moments.stddev - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    assert!((moments.stddev_percent().unwrap() - moments.stddev * 20.0).abs() < 1e-12);
    assert_eq!((moments.quartile_1, moments.median, moments.quartile_3), (4.0, 4.5, 5.5));
}

#[test]
fn one_sample_and_none() {
    let one = Moments::of(&mut [7]).unwrap();
    assert_eq!((one.min, one.max, one.mean, one.variance, one.stddev), (7, 7, 7.0, 0.0, 0.0));
    assert_eq!((one.quartile_1, one.quartile_3, one.mode), (7.0, 7.0, 7));
    assert_eq!(Moments::of(&mut []), None);
    assert_eq!(Moments::of(&mut [0]).unwrap().stddev_percent(), None);
    assert_eq!(Moments::of(&mut [3, 1, 3, 1]).unwrap().mode, 1);
}

#[test]
fn nested_empty_pairs_tell_the_own_cost() {
    // Outer 30, 34; inner 4, 6; an outer one with nothing inside, and one with two pairs inside.
    let text = "0(0 1(10 1)14 0)30 0(100 1(110 1)116 0)134 0(200 0)203 \
                0(300 1(301 1)302 1(303 1)304 0)305";
    let (entries, odd) = read(text);
    assert_eq!(odd, Odd::default());
    let cost = own_cost(&entries, 0, 1).unwrap();
    assert_eq!((cost.effective.min, cost.effective.max), (4, 6));
    assert_eq!((cost.total.min, cost.total.max, cost.total.count), (26, 28, 2));
    assert_eq!(cost.unpaired, 2);
    // For an outer one, only the variation of the cost remains.
    assert_eq!(cost.less(&entries[1]), 30 - 5 - 27);
    assert_eq!(cost.less(&entries[0]), 4 - 5);
    assert_eq!(own_cost(&entries, 1, 0), None);
}

#[test]
fn an_inner_one_beside_the_outer_is_no_pair() {
    // An inner one before it; one begun before it; and one after an empty outer one.
    for text in ["1(0 1)4 0(10 0)14", "1(0 0(2 1)4 0)14", "0(0 2(1 1)2 0)9"] {
        assert_eq!(own_cost(&read(text).0, 0, 1), None, "{text}");
    }
}

#[test]
fn lanes_do_not_nest_in_each_other() {
    let mut points = Tracepoints::default();
    // Slots: 0 and 1 of lane 0, 2 and 3 of lane 1; rows 0 and 1.
    points.start(0, 0, 0);
    points.start(2, 1, 1);
    points.start(1, 0, 10);
    points.stop(1, 1, 0, 13);
    points.start(3, 1, 20);
    points.stop(0, 0, 0, 30);
    points.stop(3, 1, 1, 25);
    points.stop(2, 0, 1, 40);
    let (entries, _) = points.finish();
    let cost = own_cost(&entries, 0, 1).unwrap();
    assert_eq!((cost.effective.min, cost.effective.max), (3, 5));
    assert_eq!((cost.total.min, cost.total.max, cost.unpaired), (27, 34, 0));
}

#[test]
fn whole_entries_pair_as_they_follow_each_other() {
    let mut points = Tracepoints::default();
    for (row, cycles) in [(1, 4), (0, 22), (1, 4), (2, 9), (0, 22), (0, 5), (1, 6), (0, 24)] {
        points.whole(row, 0, cycles);
    }
    let (entries, _) = points.finish();
    let cost = own_cost(&entries, 0, 1).unwrap();
    assert_eq!((cost.total.mean, cost.total.stddev, cost.unpaired), (18.0, 0.0, 2));
    assert_eq!((cost.effective.min, cost.effective.max), (4, 6));
}

proptest! {
    /// Compared with the rule itself, applied by searching backwards in the list of marks.
    #[test]
    fn entries_are_those_of_the_rule(
        marks in prop::collection::vec((any::<bool>(), 0u32..3, 0u64..50), 0..120),
    ) {
        let mut points = Tracepoints::default();
        let (mut expected, mut odd, mut now) = (Vec::new(), Odd::default(), 0);
        let mut times = Vec::new();
        for (index, &(is_start, point, step)) in marks.iter().enumerate() {
            now += step;
            times.push(now);
            let before = (0..index).rev().find(|&before| marks[before].1 == point);
            let started = before.filter(|&before| marks[before].0);
            if is_start {
                points.start(point, 0, now);
                odd.restarts += u64::from(started.is_some());
            } else {
                points.stop(point, point, 0, now);
                match started {
                    Some(begin) => {
                        let inside = (index - begin - 1) as u32;
                        expected.push(Entry {
                            row: point,
                            lane: 0,
                            inside: Some(inside),
                            cycles: now - times[begin],
                        });
                    }
                    None => odd.stops += 1,
                }
            }
        }
        odd.open = (0..3).filter(|&point| {
            marks.iter().rev().find(|mark| mark.1 == point).is_some_and(|mark| mark.0)
        }).count() as u64;
        prop_assert_eq!(points.finish(), (expected, odd));
    }

    #[test]
    fn moments_are_those_of_their_definitions(
        samples in prop::collection::vec(-1000i64..100_000, 1..200),
    ) {
        let moments = Moments::of(&mut samples.clone()).unwrap();
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<i64>() as f64 / n;
        // A different formula: half the mean of all squared differences of two.
        let pairs: f64 = samples.iter().flat_map(|a| samples.iter().map(move |b| (a - b) as f64))
            .map(|difference| difference * difference).sum();
        let variance = pairs / (2.0 * n * n);
        prop_assert!((moments.mean - mean).abs() < 1e-6);
        // For durations it is the same number.
        let nanos: Vec<u64> = samples.iter().map(|&sample| (sample + 1000) as u64).collect();
        let of_durations = crate::Distribution::of(&[&nanos]).unwrap().stddev;
        prop_assert!((moments.stddev - of_durations).abs() <= 1e-6 * of_durations.max(1.0));
        prop_assert!((moments.variance - variance).abs() <= 1e-6 * variance.max(1.0));
        let frequency = |value: i64| samples.iter().filter(|sample| **sample == value).count();
        let most = samples.iter().map(|sample| frequency(*sample)).max().unwrap();
        prop_assert_eq!(frequency(moments.mode), most);
        prop_assert!(samples.iter().all(|s| frequency(*s) < most || *s >= moments.mode));
        let below = samples.iter().filter(|sample| (**sample as f64) < moments.median).count();
        prop_assert!(below * 2 <= samples.len());
    }
}
