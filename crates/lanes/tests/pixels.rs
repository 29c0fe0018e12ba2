// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pictures compared with examining each event: the same bytes, for random traces, zooms and filters; and
//! corrupted indexes, which may give any picture but must not fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lateralis_lanes::pixels::{EACH, MAIN, SEVERAL, UNENDED};
use lateralis_lanes::{
    Application, Builder, Chosen, Class, Counter, Interval, Lane, Lanes, Listed, Meta, Pixels,
    PointRef, RowKind, Scale, Thread, Wanted,
};
use proptest::prelude::*;

pub const ORIGIN: i64 = -1000;

/// A trace as it was added.
#[derive(Debug, Clone)]
pub struct Told {
    /// By lane: time, class, thread.
    pub points: Vec<Vec<(i64, u16, u32)>>,
    /// Begin, length, name, and whether the begin is an event.
    pub intervals: Vec<(u32, u64, u32)>,
    pub levels: Vec<(i64, f64)>,
}

pub fn traces() -> impl Strategy<Value = Told> {
    // Steps of all sizes, so that buckets are empty, full and overfull.
    let step = prop_oneof![3 => 0i64..4, 3 => 0i64..200, 1 => 0i64..20_000];
    let lane = prop::collection::vec((step.clone(), 0u16..4, 0u32..3), 0..600);
    let points = prop::collection::vec(lane, 1..4).prop_map(|lanes| {
        let timed = |lane: Vec<(i64, u16, u32)>| {
            let mut time = ORIGIN;
            let event = |(step, class, thread)| {
                time += step;
                (time, class, thread)
            };
            lane.into_iter().map(event).collect()
        };
        lanes.into_iter().map(timed).collect::<Vec<Vec<_>>>()
    });
    let length = prop_oneof![Just(0u64), 0u64..30, 0u64..5000];
    let intervals = prop::collection::vec((any::<u32>(), length, 0u32..24), 0..250);
    let levels = prop::collection::vec((step, -10i32..10), 0..300).prop_map(|levels| {
        let mut time = ORIGIN;
        let level = |(step, value)| {
            time += step;
            (time, f64::from(value))
        };
        levels.into_iter().map(level).collect()
    });
    (points, intervals, levels).prop_map(|(points, intervals, levels)| Told {
        points,
        intervals,
        levels,
    })
}

fn bytes(told: &Told) -> Vec<u8> {
    let mut builder = Builder::default();
    for lane in &told.points {
        let id = builder.lane(Lane::default());
        for (time, class, thread) in lane {
            builder.point(id, *time, *class, *thread);
        }
    }
    let first = &told.points[0];
    for (pick, length, name) in &told.intervals {
        if first.is_empty() {
            break;
        }
        let index = *pick as usize % first.len();
        let from = Some(PointRef { lane: 0, index: index as u32 });
        let end = (length % 7 != 3).then_some(first[index].0 + *length as i64);
        let (begin, name, quality) = (first[index].0, *name, 0);
        let interval = Interval { begin, end, name, thread: 0, from, to: None, quality };
        builder.interval(0, RowKind::Spans, None, interval);
    }
    for (time, value) in &told.levels {
        builder.level(0, *time, *value);
    }
    let last = builder.extent().map_or(ORIGIN, |(_, last)| last);
    let meta = Meta {
        origin: ORIGIN,
        end: (last - ORIGIN + 1) as u64,
        classes: vec![Class::default(); 4],
        applications: vec![Application::default(); 3],
        threads: (0..3).map(|application| Thread { application, ..Thread::default() }).collect(),
        counters: vec![Counter::default()],
        ..Meta::default()
    };
    let mut out = Vec::new();
    builder.finish(meta, "this", &mut out).unwrap();
    out
}

/// The pixel as specified in the module, by examining each item: begin, end, name, unfinished.
pub fn pixel(
    things: &[(i64, i64, u32, bool)],
    (begin, end): (i64, i64),
    main: Option<&[u32]>,
    out: &mut Pixels,
) -> usize {
    let touches =
        |thing: &&(i64, i64, u32, bool)| thing.0 < end && thing.1.max(thing.0 + 1) > begin;
    let here: Vec<_> = things.iter().filter(touches).collect();
    let Some(first) = here.first() else {
        out.nothing();
        return 0;
    };
    let part =
        |thing: &(i64, i64, u32, bool)| (thing.1.min(end) - thing.0.max(begin)).max(0) as u64;
    let covered: u64 = here.iter().map(|thing| part(thing)).sum();
    let name = match main {
        None => first.2,
        Some(main) => {
            let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
            for thing in &here {
                if here.len() <= EACH || main.contains(&thing.2) {
                    *sums.entry(thing.2).or_default() += part(thing);
                }
            }
            let most = sums.values().copied().max().unwrap_or(0);
            let best = sums.iter().find(|(_, sum)| **sum == most).map(|(name, _)| *name);
            if here.len() > EACH && most == 0 { first.2 } else { best.unwrap_or(first.2) }
        }
    };
    let share = (u128::from(covered) * 255 / (end - begin) as u128).min(255) as u8;
    let log = (16.0 * (1.0 + here.len() as f64).log2()).round().min(255.0) as u8;
    out.colour.push(name as u16 + 1);
    out.cover.push(share.max(1));
    out.count.push(log);
    let unended = here.iter().any(|thing| thing.3);
    out.flags.push(if here.len() > 1 { SEVERAL } else { 0 } | if unended { UNENDED } else { 0 });
    here.len()
}

pub fn scales() -> impl Strategy<Value = (i64, i64, u32)> {
    let width = prop_oneof![1i64..50, 1i64..5000, 1i64..1_000_000];
    (-3000i64..300_000, width, prop_oneof![1u32..8, 1u32..300])
        .prop_map(|(t0, width, px)| (t0, t0 + width, px))
}

pub fn wanted() -> impl Strategy<Value = Wanted> {
    let set = |most| prop::collection::btree_set(0u32..most, 0..2);
    (set(2), set(4), set(3)).prop_map(|(lanes_off, classes_off, applications_off)| Wanted {
        lanes_off,
        classes_off,
        applications_off,
    })
}

/// Result of the filter, by examining each event.
pub fn keeps(wanted: &Wanted, lane: u32, (_, class, thread): (i64, u16, u32)) -> bool {
    !wanted.lanes_off.contains(&lane)
        && !wanted.classes_off.contains(&u32::from(class))
        && !wanted.applications_off.contains(&thread)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_pixel_is_what_a_look_at_each_event_gives(
        told in traces(), views in prop::collection::vec(scales(), 1..5), wanted in wanted(),
    ) {
        let lanes = Lanes::open(Arc::new(bytes(&told)), "this").unwrap();
        let chosen = Chosen::new(&lanes, &wanted, None);
        let whole = (0, lanes.meta().end as i64, 7);
        for (t0, t1, px) in views.into_iter().chain([whole]) {
            let scale = Scale::new(t0, t1, px);
            for filter in [None, Some(&chosen)] {
                points_are_right(&told, &lanes, filter.map(|f| (f, &wanted)), &scale);
                intervals_are_right(&told, &lanes, filter.map(|f| (f, &wanted)), &scale);
            }
            levels_are_right(&told, &lanes, &scale);
        }
    }

    #[test]
    fn the_list_is_all_events_in_order(
        told in traces(), wanted in wanted(), from in 0u64..400, time in -5i64..5000,
    ) {
        let lanes = Lanes::open(Arc::new(bytes(&told)), "this").unwrap();
        let chosen = Chosen::new(&lanes, &wanted, None);
        for filter in [None, Some(&chosen)] {
            let mut all: Vec<(i64, u32, u32)> = Vec::new();
            for (lane, points) in (0..).zip(&told.points) {
                for (index, point) in (0..).zip(points) {
                    if filter.is_none() || keeps(&wanted, lane, *point) {
                        all.push((point.0 - ORIGIN, lane, index));
                    }
                }
            }
            all.sort_unstable();
            let listed = Listed::new(&lanes, filter);
            let rows = listed.rows(from, 50);
            let expected: Vec<PointRef> = all
                .iter()
                .skip(from as usize)
                .take(50)
                .map(|(_, lane, index)| PointRef { lane: *lane, index: *index })
                .collect();
            prop_assert_eq!(&rows, &expected);
            let before = all.iter().filter(|(at, ..)| *at < time).count();
            prop_assert_eq!(listed.before(time), before as u64);
            for (number, row) in (from..).zip(rows) {
                prop_assert_eq!(listed.number_of(row), number);
            }
            prop_assert!(filter.is_none_or(|chosen| chosen.count() == all.len() as u64));
        }
    }

    #[test]
    fn spoilt_indexes_harm_nobody(
        told in traces(),
        at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in any::<prop::sample::Index>(), view in scales(),
    ) {
        let good = bytes(&told);
        let mut bad = good.clone();
        for (place, byte) in &at {
            let place = place.index(bad.len());
            bad[place] = *byte;
        }
        let cut = good[..cut.index(good.len())].to_vec();
        prop_assert!(Lanes::open(Arc::new(cut), "this").is_err());
        prop_assert!(Lanes::open(Arc::new(good), "that").is_err());
        let Ok(lanes) = Lanes::open(Arc::new(bad), "this") else { return Ok(()) };
        let scale = Scale::new(view.0, view.1, view.2);
        let wanted = Wanted { classes_off: BTreeSet::from([1]), ..Wanted::default() };
        let chosen = Chosen::new(&lanes, &wanted, None);
        let mut out = Pixels::default();
        for lane in 0..lanes.count() {
            if let Some(points) = lanes.points(lane) {
                points.draw(None, &scale, &mut out);
                points.draw(chosen.bits(lane), &scale, &mut out);
            }
        }
        for row in 0..lanes.meta().rows.len() {
            let intervals = lanes.row(row).unwrap().1;
            intervals.draw(None, &scale, &mut out);
            intervals.draw(chosen.left(&lanes, row), &scale, &mut out);
        }
        let _ = lanes.levels(0).map(|levels| levels.draw(&scale).count());
        let _ = Listed::new(&lanes, Some(&chosen)).rows(3, 20);
        let _ = lanes.messages().draw(&scale, |_| true, |point| Some(point.lane), 100);
    }
}

pub fn points_are_right(
    told: &Told,
    lanes: &Lanes,
    filter: Option<(&Chosen, &Wanted)>,
    scale: &Scale,
) {
    for (lane, points) in (0..).zip(&told.points) {
        let Some(drawn) = lanes.points(lane) else {
            assert!(points.is_empty());
            continue;
        };
        let left = points.iter().filter(|p| filter.is_none_or(|(_, w)| keeps(w, lane, **p)));
        let things: Vec<_> = left
            .map(|(time, class, _)| (time - ORIGIN, time - ORIGIN, u32::from(*class), false))
            .collect();
        let (mut found, mut expected, mut most) = (Pixels::default(), Pixels::default(), 0);
        let told = drawn.draw(filter.and_then(|(c, _)| c.bits(lane)), scale, &mut found);
        for p in 0..scale.px {
            most = most.max(pixel(&things, scale.pixel(p), None, &mut expected));
        }
        assert_eq!((found, told), (expected, most));
    }
}

fn intervals_are_right(
    told: &Told,
    lanes: &Lanes,
    filter: Option<(&Chosen, &Wanted)>,
    scale: &Scale,
) {
    let all = rows_are_right(lanes, filter, scale, &|point| told.points[0][point as usize], true);
    let is_told = !told.points[0].is_empty();
    assert_eq!(all, if is_told { told.intervals.len() } else { 0 }, "none is left out");
}

/// Asserts that each pixel of each row equals that from examining its intervals; returns their number.
/// `point` returns an event of the first lane by its number there.
pub fn rows_are_right(
    lanes: &Lanes,
    filter: Option<(&Chosen, &Wanted)>,
    scale: &Scale,
    point: &dyn Fn(u32) -> (i64, u16, u32),
    is_whole: bool,
) -> usize {
    let mut all = 0;
    for row in 0..lanes.meta().rows.len() {
        let (_, intervals) = lanes.row(row).unwrap();
        all += intervals.len();
        let things = |wanted: Option<&Wanted>| -> Vec<(i64, i64, u32, bool)> {
            let of = |index: usize| {
                let (begin, end) = intervals.ends(index);
                let is_open = intervals.is_unfinished(index);
                (begin as i64, end as i64, intervals.name(index), is_open)
            };
            let is_left = |index: &usize| {
                let Some(from) = intervals.events(*index)[0] else { return true };
                wanted.is_none_or(|w| keeps(w, from.lane, point(from.index)))
            };
            (0..intervals.len()).filter(is_left).map(of).collect()
        };
        let every = things(None);
        assert!(every.windows(2).all(|two| two[0].1.max(two[0].0 + 1) <= two[1].0), "no overlap");
        let mut times: BTreeMap<u32, i64> = BTreeMap::new();
        for (begin, end, name, _) in &every {
            *times.entry(*name).or_default() += end - begin;
        }
        let mut main: Vec<(i64, u32)> = times.into_iter().map(|(n, time)| (-time, n)).collect();
        main.sort_unstable();
        let main: Vec<u32> = main.into_iter().take(MAIN).map(|(_, name)| name).collect();
        // While the row grows, the main names are those of the last evaluation.
        let main = if is_whole { main } else { lanes.meta().rows[row].main.clone() };
        let (mut found, mut expected, mut most) = (Pixels::default(), Pixels::default(), 0);
        let left = filter.and_then(|(chosen, _)| chosen.left(lanes, row));
        let drawn = intervals.draw(left, scale, &mut found);
        let things = things(filter.map(|(_, wanted)| wanted));
        for p in 0..scale.px {
            most = most.max(pixel(&things, scale.pixel(p), Some(&main), &mut expected));
        }
        assert_eq!((found, drawn), (expected, most), "row {row}");
    }
    all
}

pub fn levels_are_right(told: &Told, lanes: &Lanes, scale: &Scale) {
    let levels: Vec<(i64, f64)> = told.levels.iter().map(|(t, v)| (t - ORIGIN, *v)).collect();
    for (p, found) in (0..).zip(lanes.levels(0).unwrap().draw(scale)) {
        let (begin, end) = scale.pixel(p);
        let first = levels.iter().position(|(time, _)| *time >= begin).unwrap_or(levels.len());
        let before = (levels.get(first).map(|level| level.0) != Some(begin)) as usize;
        let here: Vec<f64> = levels
            .iter()
            .enumerate()
            .filter(|(index, (time, _))| *time < end && index + before >= first)
            .map(|(_, (_, value))| *value)
            .collect();
        let Some(last) = here.last() else {
            assert!(found.low.is_nan() && found.high.is_nan() && found.last.is_nan());
            continue;
        };
        let low = here.iter().copied().fold(f64::NAN, f64::min);
        let high = here.iter().copied().fold(f64::NAN, f64::max);
        assert_eq!((found.low, found.high, found.last), (low, high, *last));
    }
}

#[test]
fn pictures_reach_to_the_ends_of_all_times() {
    for (t0, t1) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN), (i64::MAX, i64::MAX), (0, 0)] {
        let scale = Scale::new(t0, t1, 1000);
        let pixels: Vec<(i64, i64)> = (0..1000).map(|pixel| scale.pixel(pixel)).collect();
        assert!(pixels.iter().all(|(begin, end)| begin < end), "{scale:?}");
        assert!(pixels.windows(2).all(|two| two[0].0 <= two[1].0), "{scale:?}");
    }
}
