// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A growing index: at every step it shows the same as examining each event that was added and not
//! evicted; an extended filter equals a new one; and snapshots do not change.

use std::sync::Arc;

use lateralis_lanes::pixels::UNENDED;
use lateralis_lanes::{
    Application, Chosen, Class, Counter, Gathers, Growing, Interval, Lane, Lanes, Listed, Meta,
    Opened, Pixels, PointRef, RowKind, Scale, Thread, Wanted,
};
use proptest::prelude::*;

use crate::pixels::{
    ORIGIN, Told, keeps, levels_are_right, points_are_right, rows_are_right, scales, traces, wanted,
};

/// An item to be added.
#[derive(Debug, Clone, Copy)]
enum Said {
    Point(usize, (i64, u16, u32)),
    Level(i64, f64),
    Begins(usize),
    Ends(usize),
}

/// Items of a trace, in time order.
fn said(told: &Told) -> Vec<(i64, Said)> {
    let mut all: Vec<(i64, Said)> = Vec::new();
    for (lane, points) in told.points.iter().enumerate() {
        all.extend(points.iter().map(|point| (point.0, Said::Point(lane, *point))));
    }
    all.extend(told.levels.iter().map(|(time, value)| (*time, Said::Level(*time, *value))));
    for (index, interval) in told.intervals.iter().enumerate() {
        if let Some((begin, end)) = ends(told, index) {
            all.push((begin, Said::Begins(index)));
            all.extend(end.map(|end| (end, Said::Ends(index))));
            let _ = interval;
        }
    }
    // Stable: an interval begins after its event, and ends after its begin.
    all.sort_by_key(|(time, _)| *time);
    all
}

/// Begin and end of an interval, as in `pixels.rs`.
fn ends(told: &Told, index: usize) -> Option<(i64, Option<i64>)> {
    let (pick, length, _) = told.intervals[index];
    let points = &told.points[0];
    let begin = points.get((pick as usize).checked_rem(points.len())?)?.0;
    Some((begin, (length % 7 != 3).then_some(begin + length as i64)))
}

/// A trace being added.
struct Telling<'a> {
    told: &'a Told,
    growing: Growing,
    so_far: Told,
    opened: Vec<Option<Option<Opened>>>,
    begun: usize,
}

impl<'a> Telling<'a> {
    fn new(told: &'a Told) -> Self {
        let mut growing = Growing::new(ORIGIN);
        for _ in &told.points {
            growing.lane(Lane::default());
        }
        let points = vec![Vec::new(); told.points.len()];
        let so_far = Told { points, intervals: Vec::new(), levels: Vec::new() };
        let opened = vec![None; told.intervals.len()];
        Self { told, growing, so_far, opened, begun: 0 }
    }

    fn interval(&self, index: usize) -> Interval {
        let (pick, _, name) = self.told.intervals[index];
        let (begin, end) = ends(self.told, index).unwrap();
        let place = (pick as usize % self.told.points[0].len()) as u32;
        let from = Some(PointRef { lane: 0, index: place });
        Interval { begin, end, name, thread: 0, from, to: None, quality: 0 }
    }

    fn say(&mut self, said: Said) {
        match said {
            Said::Point(lane, point) => {
                self.growing.point(lane as u32, point.0, point.1, point.2);
                self.so_far.points[lane].push(point);
            }
            Said::Level(time, value) => {
                self.growing.level(0, time, value);
                self.so_far.levels.push((time, value));
            }
            Said::Begins(index) => {
                let interval = Interval { end: None, ..self.interval(index) };
                // Every third one is reported only when it has ended.
                let opened = (index % 3 > 0 || self.interval(index).end.is_none())
                    .then(|| self.growing.begins(0, RowKind::Spans, None, interval));
                self.begun += usize::from(matches!(opened, Some(Some(_))));
                self.opened[index] = opened;
            }
            Said::Ends(index) => {
                let interval = self.interval(index);
                match self.opened[index] {
                    Some(Some(opened)) => self.growing.ends(opened, Some(interval)),
                    Some(None) => {}
                    None => {
                        self.growing.interval(0, RowKind::Spans, None, interval);
                        self.begun += 1;
                    }
                }
            }
        }
    }

    fn lanes(&self) -> Lanes {
        let thread = |application| Thread { application, ..Thread::default() };
        self.growing.lanes(Meta {
            classes: vec![Class::default(); 4],
            applications: vec![Application::default(); 3],
            threads: (0..3).map(thread).collect(),
            counters: vec![Counter::default()],
            ..Meta::default()
        })
    }

    /// Items that are not evicted.
    fn left(&self, begin: u64) -> Told {
        let is_left = |time: i64| time - ORIGIN >= begin as i64;
        let mut left = self.so_far.clone();
        left.points.iter_mut().for_each(|lane| lane.retain(|point| is_left(point.0)));
        // The sample that held at the begin is known.
        let before = left.levels.iter().filter(|level| !is_left(level.0)).count();
        left.levels.drain(..before.saturating_sub(1));
        left
    }
}

fn pictures(lanes: &Lanes, scale: &Scale) -> Vec<Pixels> {
    let mut all = Vec::new();
    for lane in 0..lanes.count() {
        let mut out = Pixels::default();
        lanes.points(lane).map(|points| points.draw(None, scale, &mut out));
        all.push(out);
    }
    for row in 0..lanes.meta().rows.len() {
        let mut out = Pixels::default();
        lanes.row(row).unwrap().1.draw(None, scale, &mut out);
        all.push(out);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn at_every_step_it_shows_what_was_told_so_far(
        told in traces(), wanted in wanted(),
        cuts in prop::collection::vec((0.0f64..1.0, 0u8..10, scales()), 1..7),
    ) {
        let said = said(&told);
        let mut cuts = cuts;
        cuts.sort_by(|a, b| a.0.total_cmp(&b.0));
        cuts.push((1.0, 1, (0, 1 << 40, 100)));
        let mut telling = Telling::new(&told);
        let (mut at, mut before): (usize, Option<Arc<Chosen>>) = (0, None);
        let mut shots: Vec<(Lanes, Scale, Vec<Pixels>)> = Vec::new();
        for (share, forgets, (t0, t1, px)) in cuts {
            let until = ((said.len() as f64 * share) as usize).max(at);
            said[at..until].iter().for_each(|(_, said)| telling.say(*said));
            at = until;
            let end = telling.growing.end();
            if forgets == 0 {
                telling.growing.forget(end / 2);
            }
            let lanes = telling.lanes();
            let begin = lanes.meta().begin;
            let left = telling.left(begin);
            prop_assert_eq!(lanes.event_count(), telling.growing.events());
            let gone: usize = telling.so_far.points.iter().map(Vec::len).sum();
            prop_assert_eq!(telling.growing.forgotten(), gone as u64 - lanes.event_count());
            let chosen = Arc::new(Chosen::after(before.as_ref(), &lanes, &wanted, None));
            let anew = Arc::new(Chosen::new(&lanes, &wanted, None));
            prop_assert_eq!(chosen.count(), anew.count());
            let whole = (0, lanes.meta().end as i64, 7);
            for (t0, t1, px) in [(t0, t1, px), whole] {
                let scale = Scale::new(t0, t1, px);
                for chosen in [None, Some(&chosen), Some(&anew)] {
                    let filter = chosen.map(|chosen| (&**chosen, &wanted));
                    points_are_right(&left, &lanes, filter, &scale);
                    let point = |index: u32| left.points[0][index as usize];
                    let all = rows_are_right(&lanes, filter, &scale, &point, false);
                    prop_assert!(begin > 0 || all == telling.begun, "{all} of {}", telling.begun);
                }
                levels_are_right(&left, &lanes, &scale);
                shots.push((telling.lanes(), scale, pictures(&lanes, &scale)));
            }
            // The list as well: all remaining events, in order.
            let listed = Listed::new(&lanes, Some(&chosen));
            let rows = listed.rows(0, 100_000);
            let mut all: Vec<(i64, u32, u32)> = Vec::new();
            for (lane, points) in (0..).zip(&left.points) {
                let points = (0u32..).zip(points).filter(|(_, point)| keeps(&wanted, lane, **point));
                all.extend(points.map(|(index, point)| (point.0, lane, index)));
            }
            all.sort_unstable();
            let all: Vec<PointRef> =
                all.into_iter().map(|(_, lane, index)| PointRef { lane, index }).collect();
            prop_assert_eq!(rows, all);
            before = Some(chosen);
        }
        // Snapshots taken earlier have not changed.
        for (lanes, scale, drawn) in shots {
            prop_assert_eq!(pictures(&lanes, &scale), drawn);
        }
    }
}

#[test]
fn values_of_the_moment_forgotten_up_to_stay() {
    let mut growing = Growing::new(0);
    for (time, value) in [(5, 9.0), (8, 7.0), (10, 3.0), (10, 5.0)] {
        growing.level(0, time, value);
    }
    growing.forget(10);
    growing.level(0, 10, 4.0);
    let meta = Meta { counters: vec![Counter::default()], ..Meta::default() };
    let lanes = growing.lanes(meta);
    let levels = lanes.levels(0).unwrap();
    let told: Vec<(u64, f64)> = (0..levels.len()).map(|index| levels.point(index)).collect();
    // The sample before gives the value that held until then.
    assert_eq!(told, [(8, 7.0), (10, 3.0), (10, 5.0), (10, 4.0)]);
    let reach = levels.draw(&Scale::new(10, 20, 1)).next().unwrap();
    assert_eq!((reach.low, reach.high, reach.last), (3.0, 5.0, 4.0));
}

#[test]
fn a_long_stream_takes_no_more_than_its_part() {
    // Far more than two chunks of every column, which is the least that can be kept.
    const MOST: usize = 32 << 20;
    let mut growing = Growing::new(0);
    for _ in 0..4 {
        growing.lane(Lane::default());
    }
    growing.level(0, 0, 1.0);
    let (mut most, mut events) = (0, 0u64);
    for time in 0..3_000_000i64 {
        let lane = (time % 4) as u32;
        let from = growing.point(lane, time * 100, (time % 5) as u16, 0);
        events += 1;
        if time % 3 == 0 {
            let interval = Interval {
                begin: time * 100,
                end: Some(time * 100 + 200),
                name: (time % 40) as u32,
                thread: 0,
                from: Some(from),
                to: None,
                quality: 0,
            };
            growing.interval(lane, RowKind::Spans, None, interval);
            growing.message(0, ((time - 3).max(0) * 100, from), (time * 100, from));
            growing.level(1, time * 100, time as f64);
        }
        if time % 1000 == 0 && growing.bytes() > MOST {
            growing.forget(growing.time_behind(1, 4));
        }
        most = most.max(growing.bytes());
    }
    // A chunk of each column may be begun before any is freed: 0.9 MB of points, 3.1 MB of rows with
    // their sums, 0.9 MB of messages and samples.
    assert!(most < MOST + (5 << 20), "{most} bytes");
    let lanes = growing.lanes(Meta { counters: vec![Counter::default(); 2], ..Meta::default() });
    assert_eq!(lanes.event_count() + growing.forgotten(), events);
    assert!(lanes.event_count() > 100_000 && lanes.meta().begin > 0);
    // The rest is complete: each picture of its events has the right number of them.
    let scale = Scale::new(lanes.meta().begin as i64, lanes.meta().end as i64, 1);
    let mut out = Pixels::default();
    let counts: Vec<usize> =
        (0..4).map(|lane| lanes.points(lane).unwrap().draw(None, &scale, &mut out)).collect();
    assert_eq!(counts.iter().sum::<usize>() as u64, lanes.event_count());
    // Unfinished ends are marked.
    let open = Interval {
        begin: 299_999_850,
        end: None,
        name: 1,
        thread: 0,
        from: None,
        to: None,
        quality: 2,
    };
    growing.begins(0, RowKind::States, Some("m"), open).unwrap();
    let lanes = growing.lanes(Meta::default());
    let row = lanes.meta().rows.len() - 1;
    let (_, intervals) = lanes.row(row).unwrap();
    assert_eq!(intervals.ends(0), (299_999_850, lanes.meta().end));
    let mut out = Pixels::default();
    intervals.draw(None, &Scale::new(299_999_860, 299_999_870, 2), &mut out);
    assert_eq!((out.cover, out.flags), (vec![255; 2], vec![UNENDED; 2]));
}

/// Sums over many kept intervals stay correct while some of them are evicted, little by little.
#[test]
fn what_a_filter_leaves_goes_on_while_the_oldest_is_forgotten() {
    let mut growing = Growing::new(0);
    growing.lane(Lane::default());
    // A simple random number generator (Lehmer): the kept ones must have no pattern.
    let mut random = 1u64;
    let mut next = move |below: u64| {
        random = random * 48_271 % 0x7fff_ffff;
        random % below
    };
    let wanted = Wanted { classes_off: [1].into(), ..Wanted::default() };
    let (mut time, mut before) = (0, None::<Arc<Chosen>>);
    for round in 0..120 {
        for _ in 0..next(400) {
            let class = u16::from(next(3) == 0);
            let from = growing.point(0, time, class, 0);
            let (end, name) = (time + 1 + next(90) as i64, next(24) as u32);
            let to = Some(growing.point(0, end, 0, 0));
            let from = Some(from);
            let interval =
                Interval { begin: time, end: Some(end), name, thread: 0, from, to, quality: 0 };
            growing.interval(0, RowKind::Spans, None, interval);
            time = end + next(5) as i64;
        }
        if round > 10 && round % 3 > 0 {
            let behind = growing.begin() + next(growing.end() - growing.begin()) / 9;
            growing.forget(behind);
        }
        let meta = || Meta {
            classes: vec![Class::default(); 2],
            applications: vec![Application::default()],
            threads: vec![Thread::default()],
            ..Meta::default()
        };
        let lanes = growing.lanes(meta());
        if lanes.meta().rows.is_empty() {
            continue;
        }
        let chosen = Arc::new(Chosen::after(before.as_ref(), &lanes, &wanted, None));
        let anew = Chosen::new(&lanes, &wanted, None);
        let row = lanes.row(0).unwrap().1;
        let (left, right) = (chosen.left(&lanes, 0).unwrap(), anew.left(&lanes, 0).unwrap());
        assert_eq!(left.items(), right.items(), "round {round}");
        for px in [1, 3, 17, 200] {
            let scale = Scale::new(lanes.meta().begin as i64, lanes.meta().end as i64, px);
            let [mut one, mut other] = [Pixels::default(), Pixels::default()];
            row.draw(Some(left), &scale, &mut one);
            row.draw(Some(right), &scale, &mut other);
            assert_eq!(one, other, "round {round}, {px} pixels");
        }
        before = Some(chosen);
    }
    assert!(growing.begin() > 0 && growing.end() as i64 > time - 100);
}
