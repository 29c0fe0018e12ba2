// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Activities of scripts are left by a filter as the spans are that the schema declares, in every view;
//! and in a session that grows it is told up to when they are known.

use std::sync::Arc;

use lateralis_traces::OpenOptions;
use lateralis_units::Nanos;
use lateralis_view::answer::{Answer, Numbers};
use lateralis_view::{Host, Live, LiveOptions, Opening, Session, methods};
use serde_json::{Value, json};

use super::demo;
use super::growing::{ask, newest};
use crate::place::Place;

/// These are the spans `request` and `shelf_held` of the schema, as docs/guides/scripts.md says.
const SCRIPT: &str = r#"
activity("request").begin("client:ORDER").end("client:DONE").key("id");
activity("shelf").begin("warehouse:TAKE").end("warehouse:RELEASE").key("worker");
"#;
const NAMES: [(&str, &str); 2] = [("request", "request"), ("shelf", "shelf_held")];

/// Begin, end and thread of each, in order.
fn listed(session: &Session, asked: Value, name: &str) -> Vec<String> {
    let answer = ask(session, "activities", asked);
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(answer["total"], rows.len(), "fewer than a page");
    let of_name = |row: &&Value| row["name"].as_str().unwrap().rsplit(':').next() == Some(name);
    let told =
        |row: &Value| format!("{} {} {} {}", row["begin"], row["end"], row["tid"], row["duration"]);
    // What has not ended is no activity.
    let ended = rows.iter().filter(of_name).filter(|row| !row["end"].is_null());
    let mut all: Vec<String> = ended.map(told).collect();
    all.sort();
    all
}

fn bytes(columns: &[(&str, Numbers)], name: &str) -> Vec<u8> {
    match columns.iter().find(|(known, _)| *known == name) {
        Some((_, Numbers::U8(bytes))) => bytes.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

/// Of each pixel of the rows of scripts: whether something is there, and its flags.
fn drawn(session: &Session, filter: &Value) -> (Vec<bool>, Vec<u8>) {
    const PX: usize = 200;
    let open = ask(session, "open", json!({}));
    let lanes = open["lanes"].as_array().unwrap();
    let ids: Vec<&Value> = lanes.iter().map(|lane| &lane["id"]).collect();
    let asked =
        json!({ "lanes": ids, "t0": open["begin"], "t1": open["end"], "px": PX, "filter": filter });
    let Ok(Answer::Columns(result, columns)) = methods::answer(session, "view", &asked) else {
        panic!("a picture")
    };
    let (counts, all_flags) = (bytes(&columns, "count"), bytes(&columns, "flags"));
    let (mut there, mut flags) = (Vec::new(), Vec::new());
    for (place, row) in result["rows"].as_array().unwrap().iter().enumerate() {
        let lane = &lanes[row["lane"].as_u64().unwrap() as usize];
        let told = lane["rows"].as_array().unwrap().iter().find(|told| told["row"] == row["row"]);
        if told.unwrap()["script"].is_null() {
            continue;
        }
        there.extend(counts[place * PX..(place + 1) * PX].iter().map(|count| *count > 0));
        flags.extend(&all_flags[place * PX..(place + 1) * PX]);
    }
    (there, flags)
}

#[test]
fn activities_of_a_script_obey_the_filter_as_spans_do() {
    let place = Place::new();
    demo(&place);
    let path = place.0.join("demo");
    let opening = Opening::new(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
    let session = opening.index(&mut |_, _| {}).unwrap();
    let open = ask(&session, "open", json!({}));
    let script = ask(&session, "script", json!({ "name": "two", "text": SCRIPT }));
    assert!(script["count"].as_u64().unwrap() > 50 && script["until"].is_null(), "{script}");
    let id = |list: &str, is_it: &dyn Fn(&Value) -> bool| {
        open[list].as_array().unwrap().iter().find(|one| is_it(one)).unwrap()["id"].clone()
    };
    let class = |name: &'static str| id("classes", &|class| class["name"] == name);
    let application = |of: usize| open["applications"][of]["id"].clone();
    let filters = [
        json!({}),
        json!({ "classes_off": [class("ORDER")] }),
        json!({ "classes_off": [class("RELEASE"), class("DONE")] }),
        json!({ "lanes_off": [id("lanes", &|lane| lane["kind"] == "cpu")] }),
        json!({ "applications_off": [application(1)] }),
        json!({ "applications_off": [application(2)], "classes_off": [class("TAKE")] }),
    ];
    let mut different = 0;
    for off in filters {
        let filter = ask(&session, "filter", off.clone())["filter"].clone();
        let asked = json!({ "filter": filter, "from": 0, "count": 1000 });
        let mut total = 0;
        for (name, span) in NAMES {
            let mut of_script = asked.clone();
            of_script["script"] = script["script"].clone();
            let of_script = listed(&session, of_script, name);
            let is_it = |kind: &Value| {
                kind["name"].as_str().is_some_and(|of| of.rsplit(':').next() == Some(span))
            };
            let mut declared = asked.clone();
            declared["kind"] = id("span_kinds", &is_it);
            assert_eq!(of_script, listed(&session, declared, span), "{off}: {name}");
            total += of_script.len();
        }
        let (there, flags) = drawn(&session, &filter);
        assert!(!there.is_empty() && flags.iter().all(|flags| flags & 2 == 0));
        assert_eq!(there.contains(&true), total > 0, "{off}: picture and list agree");
        different += usize::from(total != script["count"].as_u64().unwrap() as usize);
    }
    assert!(different >= 3, "filters leave less");
}

#[test]
fn where_nobody_looked_for_activities_is_told() {
    let place = Place::new();
    demo(&place);
    let path = place.0.join("demo");
    let run = |session: &Session| ask(session, "script", json!({ "name": "two", "text": SCRIPT }));
    // Up to when half of them have been.
    let opening = Opening::new(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
    let whole = opening.index(&mut |_, _| {}).unwrap();
    let asked = json!({ "script": run(&whole)["script"], "filter": 0, "from": 0, "count": 1000 });
    let rows = ask(&whole, "activities", asked)["rows"].as_array().unwrap().clone();
    let middle = rows[rows.len() / 2]["end"].as_i64().unwrap() + whole.lanes.meta().origin + 1000;
    let host = Arc::new(Host::default());
    let options = LiveOptions { memory_bytes: 1 << 30, is_here: true };
    let mut live = Live::new(&path, options, Arc::clone(&host));
    let recording = live.tail().open().unwrap();
    live.round(&recording, Some(Nanos(middle)));
    let before = run(&newest(&host));
    assert!(before["until"].is_null(), "all there is by now: {before}");
    let recording = live.tail().open().unwrap();
    live.round(&recording, None);
    let now = newest(&host);
    let asked = json!({ "script": before["script"], "filter": 0, "from": 0, "count": 1 });
    let until = ask(&now, "activities", asked)["until"].clone();
    let (until_ns, end) = (until.as_u64().unwrap(), now.lanes.meta().end);
    assert!(until_ns < end && until_ns > 0);
    let open = ask(&now, "open", json!({}));
    let rows = open["lanes"].as_array().unwrap().iter().flat_map(|l| l["rows"].as_array().unwrap());
    let of_script: Vec<&Value> = rows.filter(|row| !row["script"].is_null()).collect();
    assert!(!of_script.is_empty() && of_script.iter().all(|row| row["until"] == until));
    // Behind it every pixel says that something is missing, before it none.
    let (there, flags) = drawn(&now, &json!(0));
    let edge = (until_ns * 200 / end) as usize;
    for row in flags.chunks(200) {
        assert!(row[..edge].iter().all(|flags| flags & 2 == 0));
        assert!(row[edge + 1..].iter().all(|flags| flags & 2 == 2));
    }
    assert!(there.contains(&true));
    let again = run(&now);
    assert!(again["until"].is_null());
    assert!(again["count"].as_u64() > before["count"].as_u64(), "{before} {again}");
}
