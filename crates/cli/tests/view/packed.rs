// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans and activities that overlap more often than there are rows to draw: what lies under the
//! pointer, against the list that they were made from.

use std::fs;
use std::path::PathBuf;

use lateralis_traces::OpenOptions;
use lateralis_view::{Opening, Session};
use serde_json::{Value, json};

use super::growing::ask;
use crate::place::Place;

/// A request: when it began and ended, in nanoseconds, and which row it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    begin: i64,
    end: i64,
    row: i64,
}

/// Twice there are more at once than 256, which end in another order than they began.
fn requests() -> Vec<Request> {
    let burst = |(at, many): (i64, i64)| {
        (0..many).map(move |row| {
            let end = at + 1000 + row * 7 % many;
            Request { begin: (at + row) * 1000, end: end * 1000, row }
        })
    };
    [(1000, 300), (5000, 281)].into_iter().flat_map(burst).collect()
}

/// They as spans of Chrome's JSON; and as marks, from which a script finds them.
fn written(place: &Place) -> PathBuf {
    let mut events: Vec<(i64, Value)> = Vec::new();
    for (id, request) in (0u64..).zip(requests()) {
        let mut tell = |ns: i64, phase: &str, name: &str| {
            let event = json!({
                "ph": phase, "cat": "app", "name": name, "id": id, "pid": 5, "tid": 7, "ts": ns / 1000,
                "s": "t", "args": { "number": id },
            });
            events.push((ns, event));
        };
        let begins = if id % 2 == 0 { "begins even" } else { "begins odd" };
        tell(request.begin, "b", "request");
        tell(request.begin, "i", begins);
        tell(request.end, "i", "ends");
        tell(request.end, "e", "request");
    }
    events.sort_by_key(|(time, _)| *time);
    let events: Vec<Value> = events.into_iter().map(|(_, event)| event).collect();
    let path = place.0.join("deep.json");
    fs::write(&path, json!({ "traceEvents": events }).to_string()).expect("written");
    path
}

const SCRIPT: &str = r#"activity("found").begin("begins*").end("ends").key("number");"#;

/// Of those on rows that are drawn as one, the nearest to a time; of several that on the first row.
fn nearest(all: &[Request], time: i64, within: i64) -> Option<Request> {
    let distance = |one: &Request| (one.begin - time).max(time - one.end).max(0);
    let packed = all.iter().filter(|one| one.row >= 255 && distance(one) <= within);
    packed.min_by_key(|one| (distance(one), one.row)).copied()
}

/// The lane, the number and all that is told of the last row of spans, those of a script or of the schema.
fn last_row(session: &Session, is_of_script: bool) -> (Value, Value) {
    let open = ask(session, "open", json!({}));
    let lanes = open["lanes"].as_array().unwrap().clone();
    let has = |row: &&Value| row["kind"] == "spans" && row["script"].is_u64() == is_of_script;
    let of = |lane: &Value| {
        let rows = lane["rows"].as_array().unwrap();
        Some((lane["id"].clone(), rows.iter().rfind(has)?.clone()))
    };
    lanes.iter().find_map(of).expect("a row")
}

#[test]
fn what_is_under_the_pointer_is_the_nearest_of_all_that_are_drawn_in_one_row() {
    let place = Place::new();
    let path = written(&place);
    let opening = Opening::new(&[path], &OpenOptions::default()).unwrap();
    let session = opening.index(&mut |_, _| {}).unwrap();
    let all = requests();
    let script = ask(&session, "script", json!({ "name": "found", "text": SCRIPT }));
    assert_eq!(script["count"], all.len());
    let told = script["rows"].as_array().unwrap();
    assert_eq!((told.len(), &told[255]["packed"]), (256, &json!(300 - 255)), "{script}");
    let origin = session.lanes.meta().origin;
    let classes = ask(&session, "open", json!({}))["classes"].as_array().unwrap().clone();
    let odd = classes.iter().find(|class| class["name"] == "begins odd").expect("a class");
    let filter = ask(&session, "filter", json!({ "classes_off": [odd["id"]] }))["filter"].clone();
    let even: Vec<Request> = all.iter().copied().step_by(2).collect();
    for (is_of_script, filter, expected) in [
        (false, json!(0), &all),
        (true, json!(0), &all),
        (false, filter.clone(), &all),
        (true, filter, &even),
    ] {
        let (lane, row) = last_row(&session, is_of_script);
        assert_eq!((&row["depth"], &row["packed"]), (&json!(255), &json!(300 - 255)), "{row}");
        let (mut found, mut beside) = (0, 0);
        for step in 0..3000 {
            let (time, within) = (step * 2_300 - 300_000 - origin, step % 7 * 20_000);
            let asked = json!({
                "lane": lane, "row": row["row"], "t": time, "within": within, "filter": filter,
            });
            let thing = ask(&session, "at", asked)["thing"].clone();
            let nearest = nearest(expected, time + origin, within);
            let ends = nearest.map(|one| (json!(one.begin - origin), json!(one.end - origin)));
            let told = (!thing.is_null()).then(|| (thing["begin"].clone(), thing["end"].clone()));
            assert_eq!(told, ends, "{time} {within} {filter} {thing}");
            found += usize::from(nearest.is_some());
            beside += usize::from(nearest.is_some_and(|one| one.row > 255));
        }
        assert!(found > 300 && beside > 50, "{found} {beside}");
    }
}
