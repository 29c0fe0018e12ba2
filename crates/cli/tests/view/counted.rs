// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Flame graph totals, gaps between events, and duration brushes, each computed again from other responses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::{Page, Viewer};
use super::{demo, time};
use crate::place::Place;

/// Returns the series of events that a line belongs to.
type Series<'a> = &'a dyn Fn(&Value) -> u64;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a number"))
}

/// Returns all spans of the session.
pub fn activities(page: &mut Page, more: Value) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let mut asked = json!({ "filter": 0, "from": all.len(), "count": 1000, "order": "begin" });
        for (name, value) in more.as_object().expect("more of a request") {
            asked[name] = value.clone();
        }
        let answer = page.ask("activities", asked);
        let rows = answer["rows"].as_array().expect("rows").clone();
        if rows.is_empty() {
            assert_eq!(number(&answer["total"]), all.len() as u64);
            return all;
        }
        all.extend(rows);
    }
}

/// Adds up a value of the nodes of a flame graph by kind.
fn by_name(flame: &Value, of: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for node in flame["nodes"].as_array().expect("nodes") {
        if let (Some(name), true) = (node["name"].as_str(), node["lane"].is_null()) {
            *sums.entry(name.to_owned()).or_default() += number(&node[of]);
        }
    }
    sums
}

#[test]
fn a_flame_graph_holds_each_span_once_and_its_time_below_what_holds_it() {
    let place = Place::new();
    demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    let spans = activities(&mut page, json!({}));
    assert!(spans.len() > 100);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    let end = number(&open["end"]);
    for span in &spans {
        let name = span["name"].as_str().expect("a name").to_owned();
        let until = span["end"].as_u64().unwrap_or(end).min(end);
        *counts.entry(name.clone()).or_default() += 1;
        *totals.entry(name).or_default() += until - number(&span["begin"]);
    }
    for by in ["all", "process", "thread"] {
        let asked = json!({ "filter": 0, "t0": 0, "t1": end + 1, "by": by });
        let flame = page.ask("flame", asked);
        assert_eq!(by_name(&flame, "count"), counts, "{by}");
        if spans.iter().all(|span| !span["end"].is_null()) {
            assert_eq!(by_name(&flame, "total"), totals, "{by}");
        }
        // Children on the same lane are within their parent, and self time never exceeds total time.
        let nodes = flame["nodes"].as_array().unwrap();
        for node in nodes {
            assert!(number(&node["own"]) <= number(&node["total"]), "{node}");
            let above = node["parent"].as_u64().map(|above| &nodes[above as usize]);
            assert!(above.is_none_or(|above| number(&above["total"]) >= number(&node["total"])));
        }
        assert_eq!(flame["is_cut"], false);
    }
    // Halves of the time range add up to the whole; spans cut at the border count on both sides.
    let half = |t0: u64, t1: u64, page: &mut Page| {
        let asked = json!({ "filter": 0, "t0": t0, "t1": t1, "by": "all" });
        by_name(&page.ask("flame", asked), "total")
    };
    let (first, second) = (half(0, end / 2, &mut page), half(end / 2, end + 1, &mut page));
    for (name, total) in half(0, end + 1, &mut page) {
        let parts = first.get(&name).unwrap_or(&0) + second.get(&name).unwrap_or(&0);
        assert_eq!(parts, total, "{name}");
    }
    // A kind whose begin is filtered out is absent.
    let kind = open["span_kinds"][0]["name"].as_str().unwrap();
    let off: Vec<&Value> = open["classes"].as_array().unwrap().iter().map(|c| &c["id"]).collect();
    let filter = page.ask("filter", json!({ "classes_off": off }));
    let asked = json!({ "filter": filter["filter"], "t0": 0, "t1": end + 1 });
    assert!(!by_name(&page.ask("flame", asked), "count").contains_key(kind));
}

#[test]
fn gaps_between_events_are_those_of_the_printed_times() {
    let place = Place::new();
    let lines = demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    let class =
        open["classes"].as_array().unwrap().iter().max_by_key(|class| number(&class["count"]));
    let class = class.unwrap();
    let name = [&class["subsystem"], &class["name"]].map(|part| part.as_str().unwrap()).join(":");
    let series = |of: Series<'_>| {
        let mut times: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
        for line in lines.iter().filter(|line| line["name"] == name.as_str()) {
            times.entry(of(line)).or_default().push(time(line));
        }
        let mut gaps: Vec<u64> = Vec::new();
        for times in times.values_mut() {
            times.sort_unstable();
            gaps.extend(times.windows(2).map(|pair| (pair[1] - pair[0]) as u64));
        }
        gaps.sort_unstable();
        gaps
    };
    let per: [(&str, Series<'_>); 3] = [
        ("all", &|_| 0),
        ("lane", &|line| number(&line["cpu"])),
        ("thread", &|line| number(&line["tid"])),
    ];
    for (per, of) in per {
        let gaps = series(of);
        let asked = json!({ "class": class["id"], "per": per, "filter": 0, "bins": 30 });
        let told = page.ask("deltas", asked);
        assert_eq!(number(&told["count"]), gaps.len() as u64, "{per}");
        assert_eq!((&told["min"], &told["max"]), (&json!(gaps.first()), &json!(gaps.last())));
        let edges: Vec<u64> = told["edges"].as_array().unwrap().iter().map(number).collect();
        for (pair, count) in edges.windows(2).zip(told["counts"].as_array().unwrap()) {
            let here = gaps.iter().filter(|gap| pair[0] <= **gap && **gap < pair[1]).count();
            assert_eq!(number(count), here as u64, "{per} {pair:?}");
        }
    }
}

#[test]
fn a_brushed_range_lists_and_shows_the_spans_that_took_so_long() {
    let place = Place::new();
    demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    let kinds = open["span_kinds"].as_array().unwrap();
    let kind = kinds.iter().max_by_key(|kind| number(&kind["count"])).unwrap();
    let all = activities(&mut page, json!({ "kind": kind["id"] }));
    let mut nanos: Vec<u64> = all.iter().filter_map(|span| span["duration"].as_u64()).collect();
    nanos.sort_unstable();
    let (least, most) = (nanos[nanos.len() / 4], nanos[nanos.len() * 3 / 4]);
    let brush = json!({ "kind": kind["id"], "least": least, "most": most });
    let listed = activities(&mut page, brush.clone());
    let expected: Vec<&Value> = all
        .iter()
        .filter(|span| span["duration"].as_u64().is_some_and(|ns| (least..=most).contains(&ns)))
        .collect();
    assert!(!expected.is_empty() && expected.len() < all.len());
    assert!(listed.iter().eq(expected.iter().copied()));
    // Each of them is inside an interval of its lane and row, and each interval contains at least one.
    let lanes: Vec<&Value> = open["lanes"].as_array().unwrap().iter().map(|l| &l["id"]).collect();
    let mut asked = brush;
    asked["lanes"] = json!(lanes);
    (asked["t0"], asked["t1"], asked["px"]) = (json!(0), open["end"].clone(), json!(500));
    let (result, columns) = page.ask_columns("brushed", asked);
    assert_eq!(number(&result["count"]), expected.len() as u64);
    let stretch = |index: usize| {
        let row = &result["rows"][columns["row"][index] as usize];
        (&row["lane"], &row["row"], columns["begin"][index], columns["end"][index])
    };
    let holds = |index: usize, span: &Value| {
        let (lane, row, begin, end) = stretch(index);
        let ends = [&span["begin"], &span["end"]].map(|end| end.as_f64().unwrap());
        *lane == span["lane"] && *row == span["row"] && begin <= ends[0] && end >= ends[1]
    };
    let count = columns["row"].len();
    assert!(count > 0 && count <= expected.len());
    assert!(expected.iter().all(|span| (0..count).any(|index| holds(index, span))));
    assert!((0..count).all(|index| expected.iter().any(|span| holds(index, span))));
    // An invalid brush is refused.
    let none = json!({ "lanes": [0], "t0": 0, "t1": 1, "px": 10 });
    assert!(page.try_ask("brushed", none).is_err());
}
