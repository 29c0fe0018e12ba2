// SPDX-License-Identifier: Apache-2.0 OR MIT

use super::*;
use crate::{Group, OfThread, Side, SpanPairer, ThreadEdge};
use lateralis_model::{Interval, Loss, LossCause, StreamIndex, Writer};
use proptest::prelude::*;

fn edge(time: i64, side: Side, key: Option<u64>, tid: u32) -> Edge {
    Edge { time: Nanos(time), side, key, writer: Some(Writer { pid: tid / 10, tid }) }
}

fn gaps(stretches: &[(i64, i64)]) -> Gaps {
    let loss = |&(begin, end): &(i64, i64)| Loss {
        stream: StreamIndex(0),
        cause: LossCause::Full,
        count: Some(1),
        interval: Interval { begin: Some(Nanos(begin)), end: Some(Nanos(end)) },
    };
    Gaps::new(&stretches.iter().map(loss).collect::<Vec<_>>(), &[], |_| None)
}

/// Pairs edges and adds them up.
struct Tabled {
    pairer: SpanPairer,
    table: SpanTable,
}

impl Tabled {
    fn new(begin: Nanos, gaps: Gaps, limits: SpanLimits) -> Self {
        let (pairer, mut table) =
            (SpanPairer::new((begin, Nanos(i64::MAX)), gaps, true), SpanTable::new(limits));
        (0..3).for_each(|_| table.add_kind(true));
        Self { pairer, table }
    }

    fn push(&mut self, kind: u32, edge: Edge) {
        self.pairer.push(kind, edge, (0, ()), &mut self.table);
    }

    fn push_run(&mut self, writer: Option<Writer>, edges: &[ThreadEdge]) {
        self.pairer.push_run(writer, edges, (0, ()), &mut self.table);
    }

    fn finish(&mut self) {
        self.pairer.finish(&mut self.table);
        self.table.finish();
    }

    fn kinds(&self) -> &[SpanKind] {
        self.table.kinds()
    }

    fn threads(&self) -> &[Option<Writer>] {
        self.pairer.threads()
    }
}

fn table(edges: &[(u32, Edge)], gaps: Gaps, limits: SpanLimits) -> Tabled {
    let mut table = Tabled::new(Nanos(0), gaps, limits);
    for &(kind, edge) in edges {
        table.push(kind, edge);
    }
    table.finish();
    table
}

#[test]
fn equal_keys_of_two_processes_are_two_groups() {
    let edges = [
        (0, edge(0, Side::Begin, Some(7), 1)),
        (0, edge(1, Side::Begin, Some(7), 11)),
        (0, edge(5, Side::End, Some(7), 11)),
        (0, edge(9, Side::End, Some(7), 1)),
    ];
    let table = table(&edges, Gaps::default(), SpanLimits::default());
    let kind = &table.kinds()[0];
    let groups: Vec<_> = kind.groups().map(|(key, group)| (key, group.total)).collect();
    assert_eq!(groups, [((Some(1), Some(7)), 4), ((Some(0), Some(7)), 9)]);
    assert_eq!(table.threads()[0], Some(Writer { pid: 0, tid: 1 }));
    assert_eq!(kind.threads()[0], (0, OfThread { count: 1, total: 9, max: 9 }));
}

#[test]
fn merged_groups_are_the_group_of_all() {
    let mut edges = Vec::new();
    for index in 0..40 {
        let key = Some(index as u64 % 2);
        edges.push((0, edge(index * 100, Side::Begin, key, 1)));
        edges.push((0, edge(index * 100 + index * 7 % 13, Side::End, key, 1)));
    }
    let table = table(&edges, Gaps::default(), SpanLimits::default());
    let kind = &table.kinds()[0];
    let mut all = Group::default();
    kind.groups().for_each(|(_, group)| all.merge(group));
    let whole = kind.distribution().unwrap();
    assert_eq!(all.distribution(), Some(whole));
    assert_eq!((all.count, all.min), (whole.count, Some(whole.min)));
    assert_eq!(all.longest, kind.slowest().first().copied());
}

#[test]
fn the_slowest_are_kept_earlier_ones_first() {
    let mut edges = Vec::new();
    for (index, nanos) in [3, 9, 1, 9, 5, 9, 7].into_iter().enumerate() {
        let at = index as i64 * 100;
        edges.push((0, edge(at, Side::Begin, None, 1)));
        edges.push((0, edge(at + nanos, Side::End, None, 1)));
    }
    let limits = SpanLimits { slowest: 3, ..SpanLimits::default() };
    let table = table(&edges, Gaps::default(), limits);
    let slowest: Vec<_> =
        table.kinds()[0].slowest().iter().map(|s| (s.nanos(), s.begin.time.0)).collect();
    assert_eq!(slowest, [(9, 100), (9, 300), (9, 500)]);
}

#[test]
fn limits_keep_sums_exact() {
    let mut edges = Vec::new();
    for index in 0..100 {
        edges.push((0, edge(index * 100, Side::Begin, Some(index as u64 % 10), 1)));
        edges.push((0, edge(index * 100 + index, Side::End, Some(index as u64 % 10), 1)));
    }
    let limits = SpanLimits { durations: 50, keys: 4, slowest: 1, ..SpanLimits::default() };
    let table = table(&edges, Gaps::default(), limits);
    let kind = &table.kinds()[0];
    let all = kind.distribution().unwrap();
    assert_eq!((all.count, all.total, all.max, all.is_rough), (100, 4950, 99, true));
    assert_eq!(kind.groups().len(), 4);
    assert_eq!(kind.other_keys().count, 60);
    let (_, first) = kind.groups().next().unwrap();
    assert_eq!((first.count, first.total, first.distribution()), (10, 450, None));
}

/// Statistics of a kind, each with its quality.
fn numbers(table: &Tabled, gaps: &Gaps, end: i64) -> Vec<(String, u128, Quality)> {
    let quality = SpanQuality::new(gaps, Nanos(0), Nanos(end));
    let mut all = Vec::new();
    for (index, kind) in table.kinds().iter().enumerate() {
        let d = kind.distribution().unwrap_or_default();
        let mut say = |name: &str, number: u128, quality| {
            all.push((format!("{index} {name}"), number, quality));
        };
        say("count", kind.paired_count().into(), quality.sum);
        say("total", d.total.into(), quality.sum);
        say("max", d.max.into(), quality.sum);
        say("self", kind.own().0, quality.sum);
        say("unfinished", kind.unfinished_count().into(), quality.value);
        say("orphans", kind.orphan_count().into(), quality.value);
        for (name, number) in [
            ("min", d.min),
            // Equal bits are equal numbers.
            ("mean", d.mean.to_bits()),
            ("stddev", d.stddev.to_bits()),
            ("median", d.median),
            ("p99", d.p99),
        ] {
            say(name, number.into(), quality.value);
        }
        for ((pid, key), group) in kind.groups() {
            say(&format!("{pid:?} {key:?} total"), group.total, quality.sum);
        }
        for (thread, of) in kind.threads() {
            let thread = table.threads()[*thread as usize];
            say(&format!("{thread:?} total"), of.total, quality.sum);
            say(&format!("{thread:?} max"), of.max.into(), quality.sum);
        }
    }
    all
}

proptest! {
    #[test]
    fn what_is_put_back_changes_no_exact_number_and_lowers_no_bound(
        raw in prop::collection::vec((any::<bool>(), 0u32..3, 0u64..4, 0u32..25), 0..120),
        lost in prop::collection::vec((0usize..120, 0usize..30), 0..3),
        window in (0usize..120, 0usize..120),
    ) {
        let edges: Vec<(u32, Edge)> = raw.iter().enumerate().map(|(at, &(begins, kind, key, tid))| {
            let side = if begins { Side::Begin } else { Side::End };
            (kind, edge(at as i64 + 1, side, key.checked_sub(1), tid))
        }).collect();
        // A loss begins and ends between two events.
        let stretches: Vec<(i64, i64)> =
            lost.iter().map(|&(at, long)| (at as i64 + 1, (at + long) as i64 + 1)).collect();
        let is_lost = |edge: &Edge| stretches.iter().any(|&(b, e)| b <= edge.time.0 && edge.time.0 <= e);
        let (from, to) = (window.0.min(window.1) as i64, window.0.max(window.1) as i64);
        let in_window = |edge: &Edge| from <= edge.time.0 && edge.time.0 <= to;
        let whole: Vec<_> = edges.iter().copied().filter(|(_, e)| in_window(e)).collect();
        let part: Vec<_> = whole.iter().copied().filter(|(_, e)| !is_lost(e)).collect();
        let missing = gaps(&stretches);
        let mut seen = Tabled::new(Nanos(from), missing.clone(), SpanLimits::default());
        let mut truth = Tabled::new(Nanos(from), Gaps::default(), SpanLimits::default());
        part.iter().for_each(|&(kind, edge)| seen.push(kind, edge));
        whole.iter().for_each(|&(kind, edge)| truth.push(kind, edge));
        seen.finish();
        truth.finish();
        let quality = SpanQuality::new(&missing, Nanos(from), Nanos(to));
        let truth: std::collections::HashMap<String, u128> =
            numbers(&truth, &Gaps::default(), to).into_iter().map(|(n, v, _)| (n, v)).collect();
        for (name, number, _) in numbers(&seen, &missing, to) {
            let real = truth.get(&name).copied().unwrap_or(0);
            let is_sum = ["count", "total", "max", "self"].iter().any(|end| name.ends_with(end));
            match if is_sum { quality.sum } else { quality.value } {
                Quality::Exact => prop_assert_eq!(number, real, "{}", name),
                Quality::LowerBound => prop_assert!(number <= real, "{}: {} > {}", name, number, real),
                Quality::Unknown => (),
            }
        }
    }

    #[test]
    fn spans_without_keys_are_those_of_simple_stacks_whatever_is_kept(
        raw in prop::collection::vec((any::<bool>(), 0u32..3, 0u32..3, 0i64..5), 0..300),
        (durations, slowest, is_run) in (0usize..60, 0usize..4, any::<bool>()),
    ) {
        let limits =
            SpanLimits { durations, slowest, in_flight: false, threads: !is_run, ..SpanLimits::default() };
        let mut table = Tabled::new(Nanos(0), Gaps::default(), limits);
        let mut open: [Vec<(u32, i64)>; 3] = Default::default();
        let mut spans: [Vec<(u64, i64)>; 3] = Default::default();
        let mut time = 0;
        for (begins, kind, thread, later) in raw {
            time += later;
            let side = if begins { Side::Begin } else { Side::End };
            let of = edge(time, side, None, thread);
            match is_run {
                true => table.push_run(of.writer, &[ThreadEdge { time: Nanos(time), kind, side }]),
                false => table.push(kind, of),
            }
            let open = &mut open[thread as usize];
            if begins {
                open.push((kind, time));
            } else if let Some(index) = open.iter().rposition(|open| open.0 == kind) {
                let begin = open.remove(index).1;
                spans[kind as usize].push(((time - begin) as u64, begin));
            }
        }
        table.finish();
        for (kind, spans) in table.kinds().iter().zip(&mut spans) {
            let (count, total) = (spans.len() as u64, spans.iter().map(|span| span.0).sum::<u64>());
            prop_assert_eq!((kind.paired_count(), kind.total_nanos()), (count, total.into()));
            let d = kind.distribution().unwrap_or_default();
            let (min, max) = (spans.iter().min(), spans.iter().max());
            let ends = [min, max].map(|span| span.map_or(0, |span| span.0));
            prop_assert_eq!((d.count, d.total, [d.min, d.max]), (count, total, ends));
            prop_assert_eq!(d.is_rough, spans.len() > durations);
            prop_assert_eq!(kind.histogram().count(), count);
            prop_assert_eq!(kind.own().1, count);
            let group = kind.groups().next().map(|(_, group)| (group.count, group.total, group.min));
            let all = (count > 0).then(|| (count, total.into(), min.map(|span| span.0)));
            prop_assert_eq!(group, all);
            let of_threads: u128 = kind.threads().iter().map(|(_, of)| of.total).sum();
            prop_assert_eq!(of_threads, if is_run { 0 } else { total.into() });
            spans.sort_by_key(|&(nanos, begin)| (std::cmp::Reverse(nanos), begin));
            let kept: Vec<_> = kind.slowest().iter().map(|s| (s.nanos(), s.begin.time.0)).collect();
            prop_assert_eq!(&kept[..], &spans[..slowest.min(spans.len())]);
        }
    }

    #[test]
    fn runs_say_what_their_edges_say(
        raw in prop::collection::vec((any::<bool>(), 0u32..3, 0u64..9, 0u32..4), 0..200),
        longest in 1usize..30,
    ) {
        let edges: Vec<(u32, Edge)> = raw.iter().enumerate().map(|(at, &(begins, kind, key, tid))| {
            let side = if begins { Side::Begin } else { Side::End };
            // One in nine has a key.
            (kind, edge(at as i64 + 1, side, (key > 7).then_some(key), tid))
        }).collect();
        let limits = SpanLimits { in_flight: false, ..SpanLimits::default() };
        let mut by_runs = Tabled::new(Nanos(0), Gaps::default(), limits);
        // Edges that were already pushed in a run.
        let mut told = vec![false; edges.len()];
        for (at, &(kind, first)) in edges.iter().enumerate() {
            if told[at] {
                continue;
            }
            if first.key.is_some() {
                by_runs.push(kind, first);
                continue;
            }
            let same = edges.iter().enumerate().skip(at).filter(|(_, (_, e))| e.writer == first.writer);
            let run = same.take_while(|(_, (_, e))| e.key.is_none()).take(longest);
            let of = |(index, &(kind, edge)): (usize, &(u32, Edge))| {
                told[index] = true;
                ThreadEdge { time: edge.time, kind, side: edge.side }
            };
            let run: Vec<ThreadEdge> = run.map(of).collect();
            by_runs.push_run(first.writer, &run);
        }
        by_runs.finish();
        let by_edges = table(&edges, Gaps::default(), limits);
        if !by_runs.pairer.is_disordered() {
            let end = edges.len() as i64;
            let sorted = |table: &Tabled| {
                let mut all = numbers(table, &Gaps::default(), end);
                all.sort_by(|a, b| a.0.cmp(&b.0));
                all
            };
            prop_assert_eq!(sorted(&by_runs), sorted(&by_edges));
            for (a, b) in by_runs.kinds().iter().zip(by_edges.kinds()) {
                prop_assert_eq!(a.slowest(), b.slowest());
            }
        }
    }
}
