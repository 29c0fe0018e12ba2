// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Activities of scripts are filtered like the spans of the schema, in every view; in a live session they are
//! found as it grows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use lateralis_traces::OpenOptions;
use lateralis_units::Nanos;
use lateralis_view::answer::{Answer, Numbers};
use lateralis_view::{Host, Live, LiveOptions, Opening, Session, methods};
use serde_json::{Value, json};

use super::demo;
use super::growing::{ask, newest};
use crate::place::Place;

/// The spans `request` and `shelf_held` of the schema, as in docs/guides/scripts.md.
const SCRIPT: &str = r#"
activity("request").begin("client:ORDER").end("client:DONE").key("id");
activity("shelf").begin("warehouse:TAKE").end("warehouse:RELEASE").key("worker");
"#;
const NAMES: [(&str, &str); 2] = [("request", "request"), ("shelf", "shelf_held")];

/// Returns begin, end, thread and duration of each activity, in order.
fn listed(session: &Session, asked: Value, name: &str) -> Vec<String> {
    let answer = ask(session, "activities", asked);
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(answer["total"], rows.len(), "fewer than a page");
    let of_name = |row: &&Value| row["name"].as_str().unwrap().rsplit(':').next() == Some(name);
    let told =
        |row: &Value| format!("{} {} {} {}", row["begin"], row["end"], row["tid"], row["duration"]);
    // Unfinished activities are omitted.
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

/// Returns for each pixel of the script rows whether it is drawn, and its flags.
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

/// Ingests a recording in rounds that end at these times, the last one with the rest; a script starts after
/// the first. Its results are published after at least `turn_events` events.
fn in_rounds(
    path: &Path,
    (moments, turn_events): (&[i64], Option<u64>),
    text: &str,
    each: &mut dyn FnMut(&Session, &Value),
) -> (Arc<Session>, Value) {
    let host = Arc::new(Host::default());
    let options =
        LiveOptions { memory_bytes: 1 << 30, is_here: true, is_let_go: false, turn_events };
    let mut live = Live::new(path, options, Arc::clone(&host));
    let mut script = Value::Null;
    for moment in moments {
        let recording = live.tail().open().unwrap();
        live.round(&recording, Some(Nanos(*moment)));
        let now = newest(&host);
        if script.is_null() {
            script = ask(&now, "script", json!({ "name": "two", "text": text }));
        }
        wait(&now);
        each(&now, &script);
    }
    let recording = live.tail().open().unwrap();
    live.round(&recording, None);
    live.end(true, None);
    let now = newest(&host);
    wait(&now);
    (now, script)
}

/// Waits until scripts have processed all events of a session.
fn wait(session: &Session) {
    while !session.scripts_are_done() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Returns the state of each script, as sent to the page.
fn scripts(session: &Session) -> Vec<Value> {
    ask(session, "open", json!({}))["scripts"].as_array().unwrap().clone()
}

/// Marks the start of names, which may come after the first events of the named object.
const NAMES_FROM: &str = " of ";

/// Returns all finished activities of a script, with lane names and times of the trace.
fn found(session: &Session, script: &Value, filter: &Value) -> Vec<String> {
    let lanes = ask(session, "open", json!({}))["lanes"].clone();
    let origin = session.lanes.meta().origin;
    let asked = json!({ "script": script["script"], "filter": filter, "from": 0, "count": 1000 });
    let answer = ask(session, "activities", asked);
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(answer["total"], rows.len(), "fewer than a page");
    let told = |row: &Value| {
        let lane = &lanes[row["lane"].as_u64().unwrap() as usize]["name"];
        let told = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| row[*name].to_string()).collect()
        };
        let rest = told(&["duration", "name", "key", "tid", "pid", "quality"]).join(" ");
        let names = told(&["thread", "process"]).join(" ");
        format!("{} {lane} {rest}{NAMES_FROM}{names}", origin + row["begin"].as_i64().unwrap())
    };
    let mut all: Vec<String> = rows.iter().filter(|row| !row["end"].is_null()).map(told).collect();
    all.sort();
    all
}

#[test]
fn a_script_finds_in_rounds_what_it_finds_in_the_whole() {
    let place = Place::new();
    demo(&place);
    let path = place.0.join("demo");
    let opening = Opening::new(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
    let whole = opening.index(&mut |_, _| {}).unwrap();
    let of_whole = ask(&whole, "script", json!({ "name": "two", "text": SCRIPT }));
    let all = found(&whole, &of_whole, &json!(0));
    assert!(all.len() > 50);
    let meta = whole.lanes.meta();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for seed in 1..=12u64 {
        // End times of the rounds: few, then many.
        let mut moments: Vec<i64> = (0..seed * 6)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                meta.origin.saturating_add_unsigned(random % meta.end)
            })
            .collect();
        moments.sort_unstable();
        let mut rows: BTreeMap<String, Value> = BTreeMap::new();
        let (mut before, mut filter) = (0, Value::Null);
        // Every other seed publishes in turns, which may also end between events of equal time.
        let turn_events = (seed % 2 == 0).then_some(1 + random % 50);
        let split = (&moments[..], turn_events);
        let (now, script) = in_rounds(&path, split, SCRIPT, &mut |now, script| {
            let told = scripts(now).remove(0);
            let count = told["count"].as_u64().unwrap();
            assert!(count >= before && told["until"].is_null(), "{told}");
            assert_eq!(found(now, script, &json!(0)).len() as u64, count, "listed = counted");
            before = count;
            // Activities that have ended so far are those of the whole recording up to this time, and rows
            // keep their numbers.
            let end = now.lanes.meta().origin.saturating_add_unsigned(now.lanes.meta().end);
            let ended = found(now, script, &json!(0));
            let unnamed = |one: &String| one.split(NAMES_FROM).next().map(str::to_owned);
            let known: BTreeSet<_> = all.iter().map(unnamed).collect();
            let others: Vec<_> =
                ended.iter().filter(|one| !known.contains(&unnamed(one))).collect();
            assert!(others.is_empty(), "until {end}: {others:?}");
            for lane in ask(now, "open", json!({}))["lanes"].as_array().unwrap() {
                let of = lane["rows"].as_array().unwrap();
                for row in of.iter().filter(|row| !row["script"].is_null()) {
                    let place = format!("{} {}", lane["id"], row["row"]);
                    let told = json!([row["name"], row["depth"]]);
                    assert_eq!(rows.entry(place).or_insert_with(|| told.clone()), &told);
                }
            }
            if filter.is_null() {
                let processor = ask(now, "open", json!({}))["lanes"].as_array().unwrap().clone();
                let off: Vec<&Value> = processor
                    .iter()
                    .filter(|lane| lane["kind"] == "cpu")
                    .map(|lane| &lane["id"])
                    .collect();
                let off: Vec<&Value> = off.into_iter().take(1).collect();
                filter = ask(now, "filter", json!({ "lanes_off": off }))["filter"].clone();
            }
            // Requested each time, so that the cached result is extended.
            let _ = found(now, script, &filter);
        });
        assert_eq!(found(&now, &script, &json!(0)), all, "{seed}");
        assert_eq!(scripts(&now)[0]["count"], all.len());
        // Activities that are unfinished at the end are dropped, as in the whole recording.
        let open = json!({ "script": script["script"], "filter": 0, "from": 0, "count": 1000 });
        assert_eq!(ask(&now, "activities", open)["total"], all.len());
        // The filter result that grew in rounds equals one computed at once.
        let again = ask(&now, "script", json!({ "name": "two", "text": SCRIPT }));
        wait(&now);
        assert_eq!(found(&now, &script, &filter), found(&now, &again, &filter));
        let (there, flags) = drawn(&now, &json!(0));
        assert!(there.contains(&true) && flags.iter().all(|flags| flags & 2 == 0));
    }
}

/// Rounds that end between the first event of a thread and the event that names it.
#[test]
fn names_that_come_late_are_those_of_the_whole() {
    let place = Place::new();
    demo(&place);
    let path = place.0.join("demo");
    let words = ["print", "demo", "--event", "lateralis:THREAD_NAME", "--format", "json"];
    let output = place.lat(&words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let time =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["time_ns"].as_i64().unwrap();
    let mut moments: Vec<i64> = text.lines().map(|line| time(line) - 1).collect();
    moments.sort_unstable();
    assert!(moments.len() > 3, "{text}");
    let opening = Opening::new(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
    let whole = opening.index(&mut |_, _| {}).unwrap();
    let of_whole = ask(&whole, "script", json!({ "name": "two", "text": SCRIPT }));
    let (now, script) = in_rounds(&path, (&moments, None), SCRIPT, &mut |_, _| {});
    assert_eq!(found(&now, &script, &json!(0)), found(&whole, &of_whole, &json!(0)));
}

/// Returns a script that loops forever after this number of events.
fn looping_behind(events: u64) -> String {
    format!(
        "let seen = 0;\nactivity(\"all\", (event, on) => {{\n  \
         if (++seen > {events}) for (;;);\n  on.begin(\"all\");\n  on.end(\"all\");\n}});\n"
    )
}

#[test]
fn a_script_that_is_behind_tells_what_it_has_found_by_then() {
    const TURN: u64 = 20;
    let place = Place::new();
    demo(&place);
    let path = place.0.join("demo");
    let opening = Opening::new(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
    let whole = opening.index(&mut |_, _| {}).unwrap();
    let (events, end) = (whole.lanes.event_count(), whole.lanes.meta().end);
    let host = Arc::new(Host::default());
    let options = LiveOptions {
        memory_bytes: 1 << 30,
        is_here: true,
        is_let_go: false,
        turn_events: Some(TURN),
    };
    let mut live = Live::new(&path, options, Arc::clone(&host));
    // All events arrive at once.
    let recording = live.tail().open().unwrap();
    live.round(&recording, None);
    let now = newest(&host);
    let lists = || ask(&now, "open", json!({}))["lists"].as_u64().unwrap();
    let before = lists();
    let good = ask(&now, "script", json!({ "name": "two", "text": SCRIPT }));
    wait(&now);
    // Pages were updated in turns, not with all results at once.
    assert!(lists() - before > events / TURN / 4, "{before} {} of {events}", lists());
    let of_whole = ask(&whole, "script", json!({ "name": "two", "text": SCRIPT }));
    assert_eq!(found(&now, &good, &json!(0)), found(&whole, &of_whole, &json!(0)));
    // A script that does not finish keeps its results so far, and the time up to which it looked.
    let seen = (events / 2).min(500);
    let bad = ask(&now, "script", json!({ "name": "bad", "text": looping_behind(seen) }));
    wait(&now);
    let told = scripts(&now);
    assert_eq!(told[1]["script"], bad["script"]);
    assert_eq!(told[1]["count"], seen);
    let until = told[1]["until"].as_u64().unwrap();
    assert!(until > 0 && until < end && told[1]["stopped"]["what"].is_string(), "{told:?}");
    let times = found(&now, &bad, &json!(0));
    let time = |one: &String| one.split(' ').next().unwrap().parse::<i64>().unwrap();
    let latest = times.iter().map(time).max().unwrap() - whole.lanes.meta().origin;
    assert!(latest.unsigned_abs() <= until, "{latest} {until}");
    assert!(told[0]["stopped"].is_null() && told[0]["until"].is_null(), "{told:?}");
}

#[test]
fn a_script_that_loops_while_it_follows_is_stopped_alone() {
    let place = Place::new();
    demo(&place);
    let path = place.0.join("demo");
    let opening = Opening::new(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
    let whole = opening.index(&mut |_, _| {}).unwrap();
    let meta = whole.lanes.meta();
    let events = whole.lanes.event_count();
    let bad = looping_behind(events / 2);
    let moments: Vec<i64> =
        (1..100).map(|n| meta.origin.saturating_add_unsigned(meta.end * n / 100)).collect();
    let mut other = Value::Null;
    let (now, script) = in_rounds(&path, (&moments, None), &bad, &mut |now, _| {
        if other.is_null() {
            other = ask(now, "script", json!({ "name": "good", "text": SCRIPT }));
        }
    });
    let told = scripts(&now);
    let what = told[0]["stopped"]["what"].as_str().unwrap_or_default();
    assert!(what.contains("does a loop not end"), "{told:?}");
    let (until, end) = (told[0]["until"].as_u64().unwrap(), meta.end);
    assert!(until > 0 && until < end, "{told:?}");
    assert_eq!(told[0]["count"], events / 2, "what it found before");
    // The other script and the session continued.
    assert!(told[1]["stopped"].is_null() && told[1]["until"].is_null(), "{told:?}");
    let of_whole = ask(&whole, "script", json!({ "name": "two", "text": SCRIPT }));
    assert_eq!(found(&now, &other, &json!(0)), found(&whole, &of_whole, &json!(0)));
    assert_eq!(now.lanes.event_count(), events);
    // The rows of the stopped script are marked as incomplete after this time.
    let asked = json!({ "script": script["script"], "filter": 0, "from": 0, "count": 1 });
    assert_eq!(ask(&now, "activities", asked)["until"], until);
    let open = ask(&now, "open", json!({}));
    let rows = open["lanes"].as_array().unwrap().iter().flat_map(|l| l["rows"].as_array().unwrap());
    let of_script: Vec<&Value> = rows.filter(|row| row["script"] == script["script"]).collect();
    assert!(!of_script.is_empty() && of_script.iter().all(|row| row["until"] == until));
    let (_, flags) = drawn(&now, &json!(0));
    let edge = (until * 200 / end) as usize;
    let is_hatched = |row: &&[u8]| row[edge + 1..].iter().all(|flags| flags & 2 == 2);
    let hatched = flags.chunks(200).filter(is_hatched).count();
    assert_eq!(hatched, of_script.len());
    assert!(flags.chunks(200).all(|row| row[..edge].iter().all(|flags| flags & 2 == 0)));
}

#[test]
fn a_script_that_is_run_again_follows_instead_of_what_it_was() {
    let place = Place::new();
    demo(&place);
    let path = place.0.join("demo");
    let opening = Opening::new(std::slice::from_ref(&path), &OpenOptions::default()).unwrap();
    let meta = opening.index(&mut |_, _| {}).unwrap();
    let meta = meta.lanes.meta();
    let moments = [meta.origin.saturating_add_unsigned(meta.end / 2)];
    let (now, _) = in_rounds(&path, (&moments, None), SCRIPT, &mut |now, script| {
        let mut last = script["script"].clone();
        for _ in 0..40 {
            let asked = json!({ "name": "two", "text": SCRIPT, "replaces": last });
            last = ask(now, "script", asked)["script"].clone();
        }
        assert_eq!(scripts(now).len(), 1, "what was replaced is forgotten");
        let more = json!({ "name": "more", "text": SCRIPT });
        let (mut added, mut refused) = (1, Value::Null);
        while refused.is_null() && added < 100 {
            match methods::answer(now, "script", &more) {
                Ok(_) => added += 1,
                Err(problem) => refused = problem.json(),
            }
        }
        assert_eq!(added, 16, "{refused}");
    });
    assert_eq!(scripts(&now).len(), 16);
}
