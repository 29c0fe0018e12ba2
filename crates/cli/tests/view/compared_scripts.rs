// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Filters of scripts in a comparison of two recordings: each is filtered as if it was opened alone.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::client::{Page, Viewer};
use super::compared::{demos, names};
use crate::diff::write;
use crate::place::Place;

/// Keeps events within 3 ms of the first event that the script has seen. On a common timeline, no event of
/// the second recording would be kept.
const EARLY: &str = "let first; filter('early', event => {
    first ??= event.time;
    return event.time - first < 3_000_000n;
});";

/// Returns a script with a statement for the second recording only. That one begins a second later, so the
/// time of the first event identifies it if it is evaluated alone.
fn where_it_is_alone(what: &str) -> String {
    format!(
        "let first; filter('x', event => {{
            first ??= event.time;
            if (first > 500_000_000n) {{ {what} }}
            return event.name.startsWith('a');
        }});"
    )
}

/// Returns the ids of a filter with a script, and of the script.
fn filter_of(page: &mut Page, text: &str) -> (Value, Value) {
    let script = page.ask("script", json!({ "name": "test", "text": text }))["script"].take();
    let filter = page.ask("filter", json!({ "scripts": [script] }));
    (filter["filter"].clone(), script)
}

/// Returns the filter result of a side, once its scripts have processed all events.
fn left_of(page: &mut Page, side: u32, filter: &Value) -> Result<Value, Value> {
    loop {
        let told = page.try_ask("filter", json!({ "side": side, "filter": filter }))?;
        let running = told["running"].as_array().expect("a list");
        if running.is_empty() {
            return Ok(told);
        }
        assert!(told["count"].is_null(), "{told}");
        assert!(running.iter().all(|of| of["looked"].as_u64() <= of["events"].as_u64()), "{told}");
    }
}

fn exported(viewer: &Viewer, query: &str) -> String {
    let mut stream = TcpStream::connect(&viewer.address).expect("a connection");
    let (host, token) = (&viewer.address, &viewer.token);
    let head = format!(
        "GET /export?{query}&token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.to_owned()
}

#[test]
fn a_side_under_a_script_has_the_numbers_of_that_recording_alone() {
    let place = Place::new();
    demos(&place);
    let both = Viewer::start(&place, &["good", "bad"]);
    let mut page = both.page();
    let joined = page.ask("open", json!({}));
    let off: Vec<&Value> = joined["classes"].as_array().unwrap().iter().take(1).collect();
    let off_name = |open: &Value| {
        let is_it = |class: &&Value| ["subsystem", "name"].iter().all(|n| class[*n] == off[0][*n]);
        let all = open["classes"].as_array().unwrap().iter().filter(is_it);
        all.map(|class| class["id"].clone()).collect::<Vec<_>>()
    };
    let scripts = [EARLY, "event.fields.id % 2 === 0", "event.name.startsWith('warehouse:')"];
    for (side, path) in [(0, "good"), (1, "bad")] {
        let alone = Viewer::start(&place, &[path]);
        let mut other = alone.page();
        let open = other.ask("open", json!({}));
        for text in scripts {
            let (_, script) = filter_of(&mut page, text);
            let (_, own_script) = filter_of(&mut other, text);
            let wanted = |script: &Value, open: &Value| {
                let off = off_name(open);
                json!({ "scripts": [script], "classes_off": off })
            };
            let of_both = page.ask("filter", wanted(&script, &joined));
            let own = other.ask("filter", wanted(&own_script, &open));
            let (filter, own_filter) = (&of_both["filter"], &own["filter"]);
            let left = left_of(&mut page, side, filter).expect("a count");
            assert_eq!(left["count"], own["count"], "{path} {text}");
            assert_eq!(left["filter"], *filter);
            let all = open["recordings"][0]["events"].as_u64();
            assert!(left["count"].as_u64() > Some(0) && left["count"].as_u64() < all, "{left}");
            let ask = |method: &str, params: Value, page: &mut Page, other: &mut Page| {
                let (mut of_side, mut of_own) = (params.clone(), params);
                of_side["side"] = side.into();
                (of_side["filter"], of_own["filter"]) = (filter.clone(), own_filter.clone());
                match method {
                    "view" | "overview" => {
                        let told = page.ask_columns(method, of_side);
                        assert_eq!(told, other.ask_columns(method, of_own), "{method} {text}");
                    }
                    _ => {
                        let told = page.ask(method, of_side);
                        assert_eq!(told, other.ask(method, of_own), "{method} {text}");
                    }
                }
            };
            let lanes: Vec<&Value> =
                open["lanes"].as_array().unwrap().iter().map(|l| &l["id"]).collect();
            for (method, params) in [
                ("stats", json!({ "t0": 0, "t1": open["end"] })),
                ("view", json!({ "lanes": lanes, "t0": 0, "t1": open["end"], "px": 300 })),
                ("overview", json!({ "px": 200 })),
                ("events", json!({ "from": 0, "count": 1000 })),
                ("activities", json!({ "from": 0, "count": 1000, "order": "duration" })),
                ("histogram", json!({ "span": 0, "t0": 0, "t1": open["end"], "bins": 20 })),
                ("flame", json!({ "by": "all" })),
            ] {
                ask(method, params, &mut page, &mut other);
            }
            let query = |filter: &Value| format!("table=events&format=csv&filter={filter}");
            let of_side = exported(&both, &format!("{}&side={side}", query(filter)));
            assert_eq!(of_side, exported(&alone, &query(own_filter)), "{text}");
        }
    }
    // On the common timeline no event of the second recording is early; the sides are evaluated separately.
    let (filter, _) = filter_of(&mut page, EARLY);
    let last = page.ask("sides", json!({}))["sides"][1]["origin"].as_str().map(str::to_owned);
    let [origin, last] = [joined["origin"].as_str(), last.as_deref()]
        .map(|text| text.and_then(|text| text.parse::<i64>().ok()).expect("a time"));
    let of_second = json!({ "filter": filter, "t0": last - origin, "t1": joined["end"] });
    assert_eq!(page.ask("stats", of_second)["events"]["count"], 0);
    assert!(left_of(&mut page, 1, &filter).unwrap()["count"].as_u64() > Some(0));
}

#[test]
fn what_changed_under_a_script_is_what_lat_diff_says_of_it() {
    let place = Place::new();
    write(&place, "good.json", 1, 1.0, 0);
    write(&place, "bad.json", 2, 1.3, 90);
    let viewer = Viewer::start(&place, &["good.json", "bad.json"]);
    let mut page = viewer.page();
    let all = page.ask("compare", json!({ "filter": 0 }));
    let late = "let first; filter('late', event => {
        first ??= event.time;
        return event.time - first > 200_000_000n && !event.name.includes('outer');
    });";
    for text in [late, "!event.name.includes('retry')", "false"] {
        let (filter, _) = filter_of(&mut page, text);
        let told = page.ask("compare", json!({ "filter": filter }));
        assert_ne!(told["events"], all["events"]);
        if text == "false" {
            assert_eq!(told["events"], json!([0.0, 0.0]));
            continue;
        }
        fs::write(place.0.join("filter.js"), text).expect("a script");
        let diff =
            place.json(&["diff", "--json", "good.json", "bad.json", "--filter", "filter.js"]);
        assert_eq!(told["compared"], diff["compared"], "{text}");
        let events = [&diff["good_events_per_run"], &diff["bad_events_per_run"]];
        assert_eq!(told["events"], json!(events), "{text}");
        assert!(told["count"].as_u64() > Some(0), "{text}");
        for list in ["differences", "perhaps"] {
            for part in ["kind", "name", "what", "ratio", "quality", "count_before", "count_after"]
            {
                assert_eq!(names(&told[list], part), names(&diff[list], part), "{list} {part}");
            }
        }
        // Bins of both sides count the remaining events of each.
        let bins = page.ask("histograms", json!({ "span": "price", "filter": filter, "bins": 9 }));
        for (side, told) in bins["sides"].as_array().unwrap().iter().enumerate() {
            let asked = json!({ "side": side, "filter": filter, "t0": 0, "t1": 1e12 });
            let stats = page.ask("stats", asked);
            let span = stats["spans"].as_array().unwrap().iter().find(|s| s["name"] == "price");
            assert_eq!(told["count"], span.expect("spans")["count"], "{text}");
        }
    }
}

/// Writes alternating spans `a` and `b` from a start time on, as Chrome JSON.
fn spans(place: &Place, name: &str, begin_us: u32, count: u32) {
    let mut events = Vec::new();
    for number in 0..count {
        let name = if number % 2 == 0 { "a" } else { "b" };
        for (phase, at) in [("B", 0), ("E", 5)] {
            let ts = begin_us + 10 * number + at;
            events.push(json!({ "name": name, "ph": phase, "ts": ts, "pid": 7, "tid": 8 }));
        }
    }
    let text = json!({ "traceEvents": events }).to_string();
    fs::write(place.0.join(name), text).expect("a trace");
}

fn two_runs(place: &Place, count: u32) -> Viewer {
    spans(place, "good.json", 1000, count);
    spans(place, "bad.json", 1_000_000, count);
    Viewer::start(place, &["good.json", "bad.json"])
}

#[test]
fn a_script_that_fails_on_one_recording_alone_says_so_and_nothing_else_suffers() {
    let place = Place::new();
    let viewer = two_runs(&place, 400);
    let mut page = viewer.page();
    let stats = |side: u32, filter: &Value| json!({ "side": side, "filter": filter, "t0": 0 });
    for (what, message) in
        [("for (;;);", "a loop"), ("throw new Error('no way')", "no way"), ("(() => f())()", "f")]
    {
        let (filter, _) = filter_of(&mut page, &where_it_is_alone(what));
        let good = left_of(&mut page, 0, &filter).expect("the first has no such moment");
        assert_eq!(good["count"], 400);
        let failed = left_of(&mut page, 1, &filter).expect_err(what);
        assert!(failed["what"].as_str().unwrap().contains(message), "{failed}");
        let place = failed["where"].as_str().unwrap();
        assert!(place.starts_with("test:") && place.contains("bad.json alone"), "{failed}");
        assert!(!failed["do"].as_str().unwrap().is_empty(), "{failed}");
        // Every request with the filter gets the same error at once, because the script does not run again.
        for method in ["stats", "events", "flame", "view"] {
            let mut asked = stats(1, &filter);
            asked["lanes"] = json!([0]);
            (asked["t1"], asked["px"]) = (json!(1000), json!(10));
            assert_eq!(page.try_ask(method, asked).expect_err(method), failed, "{method}");
        }
        assert_eq!(page.try_ask("compare", json!({ "filter": filter })).unwrap_err(), failed);
        // The other side, other filters, and the joined session are not affected.
        assert_eq!(page.ask("stats", stats(0, &filter))["events"]["count"], 400);
        assert_eq!(page.ask("stats", stats(1, &json!(0)))["events"]["count"], 800);
        let whole = page.ask("stats", json!({ "filter": filter, "t0": 0 }));
        assert_eq!(whole["events"]["count"], 800);
    }
    let (filter, _) = filter_of(&mut page, "event.name.startsWith('b')");
    assert_eq!(left_of(&mut page, 1, &filter).expect("another script")["count"], 400);
    // Scripts belong to the joined session: a side has none of its own, and unknown ids are refused.
    let asked = json!({ "side": 1, "name": "x", "text": "true" });
    assert!(page.try_ask("script", asked).is_err());
    for script in [json!(99), json!("x"), json!(-1)] {
        assert!(page.try_ask("script", json!({ "side": 1, "script": script })).is_err());
    }
}

#[test]
fn how_far_a_script_has_come_is_told_and_it_ends_when_another_takes_its_place() {
    let place = Place::new();
    let viewer = two_runs(&place, 10_000);
    let mut page = viewer.page();
    let slow = where_it_is_alone("for (let turn = 0; turn < 15000; turn++);");
    let (filter, script) = filter_of(&mut page, &slow);
    let asked = json!({ "side": 1, "filter": filter });
    let mut looked = 0;
    while looked < 10 {
        let told = page.ask("filter", asked.clone());
        let [running] = told["running"].as_array().unwrap().as_slice() else { panic!("{told}") };
        assert_eq!((&running["script"], &running["events"]), (&script, &json!(20_000)));
        let now = running["looked"].as_u64().unwrap();
        assert!((looked..20_000).contains(&now), "{now} after {looked}");
        looked = now;
    }
    // Drawing does not wait, and neither do other requests.
    let picture = |filter: &Value| {
        let (t0, t1) = (0, 1000);
        json!({ "side": 1, "lanes": [0], "t0": t0, "t1": t1, "px": 10, "filter": filter })
    };
    let early = page.try_ask("view", picture(&filter)).expect_err("it still looks");
    assert!(early["where"].as_str().unwrap().ends_with("of 20000 events"), "{early}");
    page.ask_columns("view", picture(&json!(0)));
    assert_eq!(left_of(&mut page, 0, &filter).expect("the other")["count"], 10_000);
    let state = page.ask("script", json!({ "side": 1, "script": script }));
    assert_eq!(state["is_running"], true, "{state}");
    // Statistics wait until another page replaces the script.
    let mut other = viewer.page();
    let waits = other.send("stats", json!({ "side": 1, "filter": filter, "t0": 0 }));
    let next = where_it_is_alone("if (event.name === 'none') return false;");
    let next = json!({ "name": "test", "text": next, "replaces": script });
    let next = page.ask("script", next)["script"].take();
    let answer: Value = serde_json::from_str(other.answer().to_text().unwrap()).unwrap();
    assert_eq!(answer["id"], waits);
    assert!(answer["error"]["what"].as_str().unwrap().contains("replaced"), "{answer}");
    // The new script has its own id there, and the old one no longer runs.
    let filter = page.ask("filter", json!({ "scripts": [next] }))["filter"].take();
    assert_eq!(left_of(&mut page, 1, &filter).expect("quick")["count"], 10_000);
    assert!(page.try_ask("filter", asked).is_err());
}

#[test]
fn activities_of_a_script_are_found_in_each_recording_alone() {
    let place = Place::new();
    demos(&place);
    let text = "activity('request').begin('client:ORDER').end('client:DONE').key('id');";
    let both = Viewer::start(&place, &["good", "bad"]);
    let mut page = both.page();
    let script = page.ask("script", json!({ "name": "x", "text": text }))["script"].take();
    for (side, path) in [(0, "good"), (1, "bad")] {
        let alone = Viewer::start(&place, &[path]);
        let mut other = alone.page();
        let own = other.ask("script", json!({ "name": "x", "text": text }));
        let mut told = loop {
            let told = page.ask("script", json!({ "side": side, "script": script }));
            if told["is_running"] == false {
                break told;
            }
        };
        told.as_object_mut().unwrap().remove("is_running");
        assert_eq!(told, own, "{path}");
        assert!(!own["rows"].as_array().unwrap().is_empty());
        let list = |script: &Value| json!({ "script": script, "count": 1000 });
        let mut of_side = list(&told["script"]);
        of_side["side"] = side.into();
        assert_eq!(page.ask("activities", of_side), other.ask("activities", list(&own["script"])));
        // Its rows are among those of the recording.
        let open = other.ask("open", json!({}));
        assert_eq!(page.ask("open", json!({ "side": side })), open, "{path}");
    }
}
