// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparison of two recordings: equal to `lat diff`, and each side equal to a view of it alone.

use serde_json::{Value, json};

use super::client::Viewer;
use crate::diff::write;
use crate::place::Place;

pub fn demos(place: &Place) {
    for (name, orders) in [("good", "40"), ("bad", "70")] {
        let output = place.lat(&["demo", "--orders", orders, "-o", name]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

pub fn names(list: &Value, name: &str) -> Vec<String> {
    list.as_array().expect("a list").iter().map(|one| one[name].to_string()).collect()
}

#[test]
fn a_side_is_what_a_view_of_that_recording_alone_is() {
    let place = Place::new();
    demos(&place);
    let both = Viewer::start(&place, &["good", "bad"]);
    let mut page = both.page();
    let joined = page.ask("open", json!({}));
    assert!(joined["methods"].as_array().unwrap().contains(&json!("compare")));
    let sides = page.ask("sides", json!({}))["sides"].clone();
    assert_eq!(names(&sides, "path"), ["\"good\"", "\"bad\""]);
    let compared = page.ask("compare", json!({ "good": [0], "bad": [1], "filter": 0 }));
    let diff = place.json(&["diff", "--json", "good", "bad"]);
    assert_eq!(compared["compared"], diff["compared"]);
    for (side, path) in [(0, "good"), (1, "bad")] {
        let alone = Viewer::start(&place, &[path]);
        let mut other = alone.page();
        let open = other.ask("open", json!({}));
        assert_eq!(page.ask("open", json!({ "side": side })), open, "{path}");
        // The compared events are those that are shown and printed.
        let shown: f64 =
            open["classes"].as_array().unwrap().iter().map(|c| c["count"].as_f64().unwrap()).sum();
        assert_eq!(compared["events"][side], shown);
        assert_eq!(diff[format!("{path}_events_per_run")], shown);
        assert!(!open["methods"].as_array().unwrap().contains(&json!("compare")));
        assert!(other.try_ask("compare", json!({})).is_err());
        let lanes: Vec<&Value> =
            open["lanes"].as_array().unwrap().iter().map(|l| &l["id"]).collect();
        let mut asked =
            json!({ "lanes": lanes, "t0": 0, "t1": open["end"], "px": 300, "filter": 0 });
        let expected = other.ask_columns("view", asked.clone());
        asked["side"] = side.into();
        assert_eq!(page.ask_columns("view", asked), expected, "{path}");
        // A filter of the joined session applies to each side, by names.
        let class = &joined["classes"][0];
        let filter = page.ask("filter", json!({ "classes_off": [class["id"]] }));
        let left = page.ask(
            "stats",
            json!({ "side": side, "filter": filter["filter"], "t0": 0, "t1": open["end"] }),
        );
        let of = open["classes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|c| c["name"] == class["name"] && c["subsystem"] == class["subsystem"]);
        let off = of.map_or(0, |of| of["count"].as_u64().unwrap());
        let all: u64 = open["recordings"][0]["events"].as_u64().unwrap();
        let last =
            other.ask("find", json!({ "filter": 0, "t": open["end"] }))["from"].as_u64().unwrap();
        assert!(left["events"]["count"].as_u64().unwrap() <= all - off, "{path}");
        assert!(left["events"]["count"].as_u64().unwrap() + off >= last, "{path}");
    }
    assert!(page.try_ask("open", json!({ "side": 2 })).is_err());
    assert!(page.try_ask("open", json!({ "side": "x" })).is_err());
}

/// Damage inside a packet without a checksum ends its readable part, for all consumers alike.
#[test]
fn of_a_damaged_side_those_events_are_compared_that_are_shown() {
    let place = Place::new();
    demos(&place);
    // Without the checksums of Lateralis packets.
    let written = place.lat(&["convert", "bad", "--to", "ctf2", "-o", "damaged"]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let files = std::fs::read_dir(place.0.join("damaged")).expect("a trace").flatten();
    let streams =
        files.map(|file| file.path()).filter(|path| path.to_string_lossy().contains("_cpu"));
    let longest = streams.max_by_key(|path| path.metadata().unwrap().len()).expect("a stream");
    let mut bytes = std::fs::read(&longest).expect("its bytes");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xff);
    std::fs::write(&longest, bytes).expect("a damaged stream");
    let viewer = Viewer::start(&place, &["good", "damaged"]);
    let mut page = viewer.page();
    let classes = page.ask("open", json!({}))["classes"].clone();
    let is_it = |class: &&Value| class["subsystem"] == "client" && class["name"] == "RECEIVE";
    let off = classes.as_array().unwrap().iter().find(is_it).expect("a class");
    let filter = page.ask("filter", json!({ "classes_off": [off["id"]] }))["filter"].take();
    let told = page.ask("compare", json!({ "good": [0], "bad": [1], "filter": filter }));
    let left = page.ask("filter", json!({ "side": 1, "filter": filter }));
    assert!(left["count"].as_u64() > Some(100), "{left}");
    assert_eq!(told["events"][1].as_f64(), left["count"].as_f64());
    assert_eq!(told["is_lossy"], json!([false, true]));
}

#[test]
fn what_changed_is_what_lat_diff_says() {
    let place = Place::new();
    write(&place, "good.json", 1, 1.0, 0);
    write(&place, "bad.json", 2, 1.3, 90);
    let viewer = Viewer::start(&place, &["good.json", "bad.json"]);
    let mut page = viewer.page();
    let told = page.ask("compare", json!({ "good": [0], "bad": [1], "filter": 0 }));
    let diff = place.json(&["diff", "--json", "good.json", "bad.json"]);
    assert_eq!(told["compared"], diff["compared"]);
    for list in ["differences", "perhaps"] {
        for part in ["kind", "name", "what", "ratio", "quality"] {
            assert_eq!(names(&told[list], part), names(&diff[list], part), "{list} {part}");
        }
    }
    // The slower part is among the differences.
    assert!(names(&told["differences"], "name").iter().any(|name| name.contains("price")));
    // Equal recordings have no difference, and without events the result is empty.
    let same = page.ask("compare", json!({ "good": [0], "bad": [0], "filter": 0 }));
    assert_eq!(same["count"], 0);
    let joined = page.ask("open", json!({}));
    let all: Vec<&Value> =
        joined["classes"].as_array().unwrap().iter().map(|class| &class["id"]).collect();
    let filter = page.ask("filter", json!({ "classes_off": all }));
    let none = page.ask("compare", json!({ "filter": filter["filter"] }));
    assert_eq!(none["events"], json!([0.0, 0.0]));
    // Histograms of both sides have the same bins, and count each span once.
    for kind in joined["span_kinds"].as_array().unwrap() {
        let both = page.ask("histograms", json!({ "span": kind["name"], "filter": 0, "bins": 20 }));
        for side in both["sides"].as_array().unwrap() {
            let open = page.ask("open", json!({ "side": side["side"] }));
            let of = json!({ "side": side["side"], "filter": 0, "t0": 0, "t1": open["end"] });
            let stats = page.ask("stats", of);
            let span =
                stats["spans"].as_array().unwrap().iter().find(|s| s["name"] == kind["name"]);
            let certain = span.map_or(0, |span| {
                span["count"].as_u64().unwrap() - span["uncertain"].as_u64().unwrap()
            });
            assert_eq!(side["count"], certain, "{kind}");
            let counts = side["counts"].as_array().unwrap().iter();
            assert_eq!(counts.map(|count| count.as_u64().unwrap()).sum::<u64>(), certain);
        }
    }
}
