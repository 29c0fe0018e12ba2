// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording ingested in rounds gives the same result as when it is opened at the end: the promise "live =
//! saved".

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lateralis_store::Recording;
use lateralis_traces::OpenOptions;
use lateralis_units::Nanos;
use lateralis_view::answer::{Answer, Numbers};
use lateralis_view::{Host, Live, LiveOptions, Opening, Session, methods};
use serde_json::{Value, json};

use super::demo;
use crate::place::Place;

pub fn ask(session: &Session, method: &str, params: Value) -> Value {
    match methods::answer(session, method, &params) {
        Ok(Answer::Json(value)) => value,
        Ok(Answer::Columns(..)) => panic!("{method}: columns"),
        Err(problem) => panic!("{method} {params}: {problem:?}"),
    }
}

pub fn newest(host: &Host) -> Arc<Session> {
    host.session(&|| true).expect("a session").expect("no problem")
}

/// Returns complete events, with names instead of ids.
fn events(session: &Session, filter: &Value) -> Vec<String> {
    let open = ask(session, "open", json!({}));
    let origin: i64 = open["origin"].as_str().unwrap().parse().unwrap();
    let mut all = Vec::new();
    loop {
        let asked = json!({ "filter": filter, "from": all.len(), "count": 1000 });
        let answer = ask(session, "events", asked);
        let rows = answer["rows"].as_array().unwrap().clone();
        if rows.is_empty() {
            break;
        }
        all.extend(rows.iter().map(|row| {
            let of = |list: &str, id: &str, name: &str| {
                let id = row[id].as_u64().unwrap_or(0) as usize;
                open[list][id][name].to_string()
            };
            format!(
                "{} {} {} {} {} {} {} {}",
                origin + row["ts"].as_i64().unwrap(),
                of("lanes", "lane", "name"),
                of("classes", "class", "name"),
                of("applications", "application", "name"),
                row["tid"],
                row["cpu"],
                row["thread"],
                row["fields"],
            )
        }));
    }
    // Events of equal time may be in another order of lanes.
    all.sort();
    all
}

/// Returns the pixels of each row, by name of lane and row.
fn pixels(session: &Session, filter: &Value) -> BTreeMap<String, Vec<u8>> {
    let open = ask(session, "open", json!({}));
    let lanes = open["lanes"].as_array().unwrap();
    let ids: Vec<&Value> = lanes.iter().map(|lane| &lane["id"]).collect();
    let asked = json!({ "lanes": ids, "t0": 0, "t1": open["end"], "px": 500, "filter": filter });
    let Ok(Answer::Columns(result, columns)) = methods::answer(session, "view", &asked) else {
        panic!("a picture")
    };
    let bytes = |name: &str| match columns.iter().find(|(known, _)| *known == name) {
        Some((_, Numbers::U8(bytes))) => bytes.clone(),
        other => panic!("{name}: {other:?}"),
    };
    let (cover, count, flags) = (bytes("cover"), bytes("count"), bytes("flags"));
    let mut all = BTreeMap::new();
    for (place, row) in result["rows"].as_array().unwrap().iter().enumerate() {
        let lane = &lanes[row["lane"].as_u64().unwrap() as usize];
        let of_lane = lane["rows"].as_array().unwrap();
        let told = of_lane.iter().find(|told| told["row"] == row["row"]).expect("a row");
        let parent = lane["parent"].as_u64().map(|id| lanes[id as usize]["name"].to_string());
        let name = format!(
            "{:?} {} {} {} {} {}",
            parent, lane["name"], lane["tid"], told["kind"], told["name"], told["depth"]
        );
        let part = place * 500..(place + 1) * 500;
        let pixels = [&cover[part.clone()], &count[part.clone()], &flags[part]].concat();
        assert!(all.insert(name.clone(), pixels).is_none(), "{name} is there twice");
    }
    all
}

fn counts(session: &Session) -> Value {
    let mut stats = ask(session, "stats", json!({ "filter": 0 }));
    // Classes and kinds are numbered in order of appearance.
    stats["classes"] = json!(null);
    let spans = stats["spans"].as_array_mut().unwrap();
    spans.sort_by_key(|span| span["name"].to_string());
    stats
}

#[test]
fn a_recording_taken_in_rounds_is_the_whole_in_the_end() {
    let place = Place::new();
    demo(&place);
    let path = place.0.join("demo");
    let opening = Opening::new(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
    let whole = opening.index(&mut |_, _| {}).unwrap();
    let (host, interval) = (Arc::new(Host::default()), interval(&path));
    let options =
        LiveOptions { memory_bytes: 1 << 30, is_here: true, is_let_go: false, turn_events: None };
    let mut live = Live::new(&path, options, Arc::clone(&host));
    let rounds = 40;
    let (mut before, mut lists) = (0, 0);
    let mut kept: Option<(Arc<Session>, Vec<String>)> = None;
    let mut filter = json!(0);
    for round in 1..=rounds {
        let until = interval.0 + (interval.1 - interval.0) * round / rounds;
        let until = (round < rounds).then_some(Nanos(until));
        let recording = live.tail().open().unwrap();
        live.round(&recording, until);
        let now = newest(&host);
        let open = ask(&now, "open", json!({}));
        assert_eq!(open["is_live"], true);
        let events_now = now.lanes.event_count();
        let all = whole.lanes.meta();
        let since = |time: i64| time - all.origin + 1;
        // The events so far are those of the whole recording up to that time.
        let expected = until.map_or(u64::MAX, |until| {
            ask(&whole, "find", json!({ "filter": 0, "t": since(until.0) }))["from"]
                .as_u64()
                .unwrap()
        });
        assert!(events_now >= before && (until.is_none() || events_now == expected), "{round}");
        assert!(open["lists"].as_u64().unwrap() >= lists, "lists only grow");
        (before, lists) = (events_now, open["lists"].as_u64().unwrap());
        if round == rounds / 2 {
            // A filter by class id is extended automatically.
            let class =
                open["classes"].as_array().unwrap().iter().max_by_key(|c| c["count"].as_u64());
            let off = json!({ "classes_off": [class.unwrap()["id"]] });
            filter = ask(&now, "filter", off)["filter"].clone();
            kept = Some((Arc::clone(&now), events(&now, &filter)));
        }
    }
    let now = newest(&host);
    assert_eq!(events(&now, &json!(0)), events(&whole, &json!(0)));
    assert_eq!(counts(&now), counts(&whole));
    let (live_rows, whole_rows) = (pixels(&now, &json!(0)), pixels(&whole, &json!(0)));
    let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&live_rows), names(&whole_rows));
    for (name, pixels) in &whole_rows {
        assert_eq!(&live_rows[name], pixels, "{name}");
    }
    let list = |session: &Session| {
        let asked = json!({ "filter": 0, "from": 0, "count": 1000 });
        let rows = ask(session, "activities", asked)["rows"].as_array().unwrap().clone();
        let told = |row: &Value| {
            let names = ["begin", "end", "name", "key", "thread", "process", "quality"];
            names.map(|name| row[name].to_string()).join(" ")
        };
        let mut told: Vec<String> = rows.iter().map(told).collect();
        told.sort();
        told
    };
    assert_eq!(list(&now), list(&whole));
    // The filter of the class with the same name.
    let (known, seen) = kept.unwrap();
    let open = ask(&known, "open", json!({}));
    let name = |session: &Session, off: &Value| {
        let open = ask(session, "open", json!({}));
        let class =
            open["classes"].as_array().unwrap().iter().find(|class| {
                class["name"] == off["name"] && class["subsystem"] == off["subsystem"]
            });
        class.unwrap()["id"].clone()
    };
    let most = open["classes"].as_array().unwrap().iter().max_by_key(|c| c["count"].as_u64());
    let off = json!({ "classes_off": [name(&whole, most.unwrap())] });
    let of_whole = ask(&whole, "filter", off)["filter"].clone();
    assert_eq!(events(&now, &filter), events(&whole, &of_whole));
    assert_eq!(pixels(&now, &filter), pixels(&whole, &of_whole));
    // An old snapshot still shows the events of its time.
    assert_eq!(events(&known, &filter), seen);
    live.end(true, None);
    assert_eq!(ask(&newest(&host), "open", json!({}))["is_live"], false);
}

#[test]
fn a_script_goes_on_with_what_comes() {
    let place = Place::new();
    demo(&place);
    let path = place.0.join("demo");
    let whole = Opening::new(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
    let whole = whole.index(&mut |_, _| {}).unwrap();
    let (host, interval) = (Arc::new(Host::default()), interval(&path));
    let options =
        LiveOptions { memory_bytes: 1 << 30, is_here: true, is_let_go: false, turn_events: None };
    let mut live = Live::new(&path, options, Arc::clone(&host));
    let text = "event => event.name.length % 2 === 0";
    let mut filter = json!(null);
    for round in 1..=8 {
        let until = interval.0 + (interval.1 - interval.0) * round / 8;
        let recording = live.tail().open().unwrap();
        live.round(&recording, (round < 8).then_some(Nanos(until)));
        let now = newest(&host);
        if round == 2 {
            let script = ask(&now, "script", json!({ "name": "even", "text": text }));
            assert_eq!(script["has_filter"], true, "{script}");
            let asked = json!({ "scripts": [script["script"]] });
            filter = ask(&now, "filter", asked)["filter"].clone();
        } else if round == 5 {
            assert!(!events(&now, &filter).is_empty());
        }
    }
    ask(&whole, "script", json!({ "name": "even", "text": text }));
    let of_whole = ask(&whole, "filter", json!({ "scripts": [0] }))["filter"].clone();
    let found = events(&newest(&host), &filter);
    assert!(!found.is_empty());
    assert_eq!(found, events(&whole, &of_whole));
}

pub fn interval(path: &Path) -> (i64, i64) {
    use lateralis_model::Source as _;
    let interval = Recording::open(path).unwrap().source.interval();
    (interval.begin.unwrap().0, interval.end.unwrap().0)
}
