// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `search`: its hits are the lines of `lat print`.

use serde_json::{Value, json};

use super::client::{Page, Viewer};
use super::{demo, printed, time};
use crate::place::Place;

const PX: u64 = 777;

/// Times of the hits since the origin, one by one as a page steps through them.
fn stepped(page: &mut Page, filter: &Value) -> Vec<i64> {
    let mut times = Vec::new();
    loop {
        let asked = json!({ "filter": filter, "from": times.len(), "count": 1000 });
        let rows = page.ask("events", asked)["rows"].take();
        let rows = rows.as_array().unwrap();
        if rows.is_empty() {
            return times;
        }
        times.extend(rows.iter().map(|row| row["ts"].as_i64().unwrap()));
    }
}

#[test]
fn expressions_find_the_lines_of_lat_print() {
    let place = Place::new();
    let lines = demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    let origin: i64 = open["origin"].as_str().unwrap().parse().unwrap();
    let end = open["end"].as_i64().unwrap();
    let classes = open["classes"].as_array().unwrap();
    let send = classes.iter().find(|class| class["name"] == "SEND").unwrap();
    let off = page.ask("filter", json!({ "classes_off": [send["id"]] }))["filter"].take();
    let without = format!("$event != \"{}:SEND\"", send["subsystem"].as_str().unwrap());
    let mut found = 0;
    for text in [
        "id == 7",
        "size > 4",
        "$cpu == 0 && id < 20",
        "$event =~ \"client:*\"",
        "$process =~ \"demo*\" && state == WAITING",
        "$tid > 0 || id == 3",
        "id == 123456789",
    ] {
        for (filter, more) in [(json!(0), None), (off.clone(), Some(&without))] {
            let asked = json!({ "text": text, "filter": filter, "px": PX });
            let told = page.ask("search", asked.clone());
            let mut words = vec!["print", "--format", "json", "demo", "--where", text];
            words.extend(more.iter().flat_map(|more| ["--where", more.as_str()]));
            let output = place.lat(&words);
            let printed = String::from_utf8(output.stdout).expect("UTF-8");
            let printed: Vec<i64> = printed
                .lines()
                .map(|line| time(&serde_json::from_str(line).expect("JSON")) - origin)
                .collect();
            assert_eq!(
                (&told["kind"], &told["count"]),
                (&json!("where"), &json!(printed.len())),
                "{asked}"
            );
            let times = stepped(&mut page, &told["filter"]);
            assert_eq!(times, printed, "{asked}");
            let pixels: Vec<u64> = serde_json::from_value(told["pixels"].clone()).unwrap();
            assert_eq!(pixels.len() as u64, PX);
            // The last event is at the end, which is in no pixel.
            let inside = times.iter().filter(|time| **time < end).count();
            assert_eq!(pixels.iter().sum::<u64>(), inside as u64, "{asked}");
            found += printed.len();
        }
    }
    assert!(found > lines.len());
    for wrong in ["id = 7", "id ==", "&&", "", " "] {
        let asked = json!({ "text": wrong, "filter": 0, "px": PX });
        assert!(page.try_ask("search", asked).is_err(), "{wrong}");
    }
}

#[test]
fn names_of_events_and_of_spans_are_found() {
    let place = Place::new();
    let lines = demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let origin: i64 = page.ask("open", json!({}))["origin"].as_str().unwrap().parse().unwrap();
    let mut search = |text: &str| {
        let told = page.ask("search", json!({ "text": text, "filter": 0, "px": PX }));
        assert_eq!(told["kind"], "name");
        let times = stepped(&mut page, &told["filter"]);
        assert_eq!(told["count"], times.len());
        times
    };
    let of = |is_hit: &dyn Fn(&str) -> bool| -> Vec<i64> {
        let lines = lines.iter().filter(|line| is_hit(line["name"].as_str().unwrap()));
        lines.map(|line| time(line) - origin).collect()
    };
    assert_eq!(search("queue"), of(&|name| name == "warehouse:QUEUE"));
    assert_eq!(search("t:S"), of(&|name| name.starts_with("client:S")));
    assert!(search("nothing of this name").is_empty());
    // No event has that name: an order begins a span that has.
    let orders = of(&|name| name == "client:ORDER");
    assert!(!orders.is_empty());
    assert_eq!(search("REQUE"), orders);
}

#[test]
fn times_are_found_in_the_forms_of_lat_print() {
    let place = Place::new();
    demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    let origin: i64 = page.ask("open", json!({}))["origin"].as_str().unwrap().parse().unwrap();
    let all = printed(&place, "demo");
    let line = &all[all.len() / 2];
    let since = time(line) - origin;
    let mut at = |text: &str| {
        let told = page.ask("search", json!({ "text": text, "filter": 0, "px": PX }));
        assert_eq!(told["kind"], "time", "{text}");
        told["t"].as_i64().unwrap()
    };
    assert_eq!(at(&time(line).to_string()), since);
    for form in ["local", "relative", "epoch"] {
        let output = place.lat(&["print", "--time", form, "demo"]);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), all.len());
        let word = lines[all.len() / 2].split_whitespace().next().unwrap();
        // Local time is read as UTC by no command that does not say so.
        if form != "local" {
            assert_eq!(at(word), since, "{form}: {word}");
        }
    }
    let utc = place.lat(&["print", "demo"]);
    let text = String::from_utf8(utc.stdout).expect("UTF-8");
    let word = text.lines().nth(all.len() / 2).unwrap().split_whitespace().next().unwrap();
    assert_eq!(at(word), since);
    assert_eq!(at("2ms") - at("1ms"), 1_000_000);
}
