// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat view`: responses of its server over a real connection, each number computed again from `lat print`
//! and `lat stats`.

mod activities;
pub mod client;
mod compared;
mod compared_scripts;
mod control;
pub mod counted;
mod dumps;
mod flow;
mod forgotten;
mod growing;
mod hostile;
mod late;
mod live;
mod numbers;
mod packed;
mod packets;
mod searching;
mod sections;
pub mod threads;

use crate::place;

use std::path::Path;

use client::{Page, Viewer};
use place::Place;
use place::genode::{Thread, checkpoint, event};
use serde_json::{Value, json};

pub fn demo(place: &Place) -> Vec<Value> {
    let small = ["demo", "--orders", "60", "-o", "demo"];
    let output = place.lat(&small);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    printed(place, "demo")
}

/// Returns the events printed by `lat print`.
pub fn printed(place: &Place, trace: &str) -> Vec<Value> {
    let output = place.lat(&["print", "--format", "json", trace]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
    // Records that the tracer writes for itself are on no lane.
    lines.filter(|line: &Value| line["name"] != "lateralis:WRITER").collect()
}

fn time(line: &Value) -> i64 {
    line["time_ns"].as_i64().expect("a time")
}

/// The list contains each event, with lane, class, application and fields, as printed by `lat print`.
pub fn the_list_is_what_is_printed(page: &mut Page, lines: &[Value]) {
    let open = page.ask("open", json!({}));
    let origin: i64 = open["origin"].as_str().unwrap().parse().unwrap();
    let mut from = 0;
    loop {
        let asked = json!({ "filter": 0, "from": from, "count": 700 });
        let answer = page.ask("events", asked);
        let rows = answer["rows"].as_array().unwrap();
        if rows.is_empty() {
            break;
        }
        for row in rows {
            let line = &lines[from];
            let class = &open["classes"][row["class"].as_u64().unwrap() as usize];
            let name =
                [&class["subsystem"], &class["name"]].map(|v| v.as_str().unwrap().to_owned());
            let name =
                name.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(":");
            assert_eq!(origin + row["ts"].as_i64().unwrap(), time(line), "event {from}");
            // Events of equal time may be in another order of lanes.
            let same = lines.iter().filter(|other| time(other) == time(line));
            let found = same.filter(|other| other["name"] == name.as_str()).any(|line| {
                let lane = &open["lanes"][row["lane"].as_u64().unwrap() as usize];
                let fields = row["fields"].as_array().unwrap();
                let value = |field: &Value| match field["value"].as_str() {
                    Some(hex) if hex.starts_with("0x") => {
                        u64::from_str_radix(&hex[2..], 16).unwrap().into()
                    }
                    _ => field["value"].clone(),
                };
                let is_same = |field: &Value| {
                    let name = field["name"].as_str().unwrap();
                    let told = [&line["fields"][name], &line["context"][name]];
                    told.into_iter().any(|told| {
                        *told == value(field)
                            || value(field).as_str() == Some(told.to_string().as_str())
                    })
                };
                (line["cpu"].is_null() || lane["cpu"] == line["cpu"])
                    && row["pid"] == line["pid"]
                    && row["tid"] == line["tid"]
                    && fields.iter().all(is_same)
            });
            assert!(found, "event {from}: {row} is not {line}");
            from += 1;
        }
    }
    assert_eq!(from, lines.len());
    let counted: u64 =
        open["classes"].as_array().unwrap().iter().map(|c| c["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, lines.len() as u64);
}

/// Checks that every pixel of every row of events has the right number of events, with and without a filter.
fn pictures_are_counted(page: &mut Page, lines: &[Value]) {
    let open = page.ask("open", json!({}));
    let origin: i64 = open["origin"].as_str().unwrap().parse().unwrap();
    let end = open["end"].as_i64().unwrap();
    let lanes = open["lanes"].as_array().unwrap();
    let cpus: Vec<&Value> = lanes.iter().filter(|lane| lane["kind"] == "cpu").collect();
    let ids: Vec<&Value> = cpus.iter().map(|lane| &lane["id"]).collect();
    let classes = open["classes"].as_array().unwrap();
    let most = classes.iter().max_by_key(|class| class["count"].as_u64()).unwrap();
    let off = json!({ "lanes_off": [ids[0]], "classes_off": [most["id"]] });
    let filter = page.ask("filter", off);
    let name =
        format!("{}:{}", most["subsystem"].as_str().unwrap(), most["name"].as_str().unwrap());
    let is_left = |line: &&Value| line["cpu"] != cpus[0]["cpu"] && line["name"] != name.as_str();
    assert_eq!(filter["count"], lines.iter().filter(is_left).count());
    for (number, px, t0, t1) in
        [(json!(0), 300, 0, end), (filter["filter"].clone(), 77, end / 3, end / 2)]
    {
        let is_filtered = number != 0;
        let asked = json!({ "lanes": ids, "t0": t0, "t1": t1, "px": px, "filter": number });
        let (result, columns) = page.ask_columns("view", asked);
        let counts = &columns["count"];
        for (place, row) in result["rows"].as_array().unwrap().iter().enumerate() {
            let lane = cpus.iter().find(|lane| lane["id"] == row["lane"]).unwrap();
            let kind = &lane["rows"][row["row"].as_u64().unwrap() as usize]["kind"];
            if kind != "events" {
                continue;
            }
            for pixel in 0..px {
                let edge = |pixel: i64| {
                    t0 + (i128::from(pixel) * i128::from(t1 - t0) / i128::from(px)) as i64
                };
                let (begin, stop) = (edge(pixel), edge(pixel + 1).max(edge(pixel) + 1));
                let is_in = |line: &&Value| {
                    let at = time(line) - origin;
                    line["cpu"] == lane["cpu"]
                        && begin <= at
                        && at < stop
                        && (!is_filtered || is_left(line))
                };
                let here = lines.iter().filter(is_in).count();
                let expected = (16.0 * (1.0 + here as f64).log2()).round().min(255.0);
                assert_eq!(counts[place * px as usize + pixel as usize], expected, "pixel {pixel}");
            }
        }
    }
}

/// Checks that each CPU shows the threads whose events were recorded there, from the first to the last event
/// of each run of events. Records that the tracer writes for itself belong to no thread.
fn who_was_seen_is_whose_events_were_printed(page: &mut Page, lines: &[Value]) {
    let open = page.ask("open", json!({}));
    for by in ["cpu", "thread", "application"] {
        let asked = json!({ "by": by, "t0": 0, "t1": open["end"], "px": 10 });
        let (told, columns) = page.ask_columns("utilisation", asked);
        assert_eq!(told["rows"], json!([]), "nobody knows how long who ran");
        assert!(columns["share"].is_empty(), "{columns:?}");
    }
    let origin: i64 = open["origin"].as_str().unwrap().parse().unwrap();
    assert_eq!(origin, lines.iter().map(time).min().unwrap());
    let lanes = open["lanes"].as_array().unwrap();
    for lane in lanes.iter().filter(|lane| lane["kind"] == "cpu") {
        let here: Vec<&Value> = lines.iter().filter(|line| line["cpu"] == lane["cpu"]).collect();
        let runs: Vec<&[&Value]> = here.chunk_by(|a, b| a["tid"] == b["tid"]).collect();
        let times = |run: &[&Value]| [run[0], run[run.len() - 1]].map(|line| time(line) - origin);
        // Two threads in one nanosecond are on two rows, in unspecified order.
        let is_apart = |pair: &[&[&Value]]| times(pair[0])[1] < times(pair[1])[0];
        if !runs.windows(2).all(is_apart) {
            continue;
        }
        let rows = lane["rows"].as_array().unwrap();
        // Without switches: the thread was seen there, and need not have run between its events.
        assert_eq!(rows.iter().filter(|row| row["kind"] == "seen").count(), 1, "{lane}");
        assert!(rows.iter().all(|row| row["kind"] != "running"), "{lane}");
        for run in runs {
            let [begin, end] = times(run);
            let asked = json!({ "lane": lane["id"], "row": 0, "t": begin, "within": 0 });
            let thing = &page.ask("at", asked)["thing"];
            assert_eq!([&thing["begin"], &thing["end"]], [&json!(begin), &json!(end)], "{thing}");
            assert_eq!(thing["kind"], "seen", "{thing}");
            assert_eq!(thing["tid"], run[0]["tid"]);
        }
    }
}

#[test]
fn the_demo_is_seen_as_it_is_printed() {
    let place = Place::new();
    let lines = demo(&place);
    let viewer = Viewer::start(&place, &["demo"]);
    let mut page = viewer.page();
    the_list_is_what_is_printed(&mut page, &lines);
    pictures_are_counted(&mut page, &lines);
    who_was_seen_is_whose_events_were_printed(&mut page, &lines);
    let open = page.ask("open", json!({}));
    // Spans and messages have the same counts as in lat stats.
    let stats = place.json(&["stats", "--json", "demo"]);
    for kind in open["span_kinds"].as_array().unwrap() {
        let told =
            stats["spans"].as_array().unwrap().iter().find(|span| span["name"] == kind["name"]);
        let told = told.expect("a span of lat stats");
        let all = told["count"].as_u64().unwrap() + told["unfinished"].as_u64().unwrap_or(0);
        assert_eq!(kind["count"], all, "{kind}");
    }
    // Budgets of the schema have the same outcome.
    let told = page.ask("stats", json!({ "filter": 0 }));
    let promised = stats["budgets"].as_array().unwrap();
    assert!(!promised.is_empty());
    for of in promised {
        let is_it = |text: &str| of["budget"].as_str().unwrap().ends_with(text);
        let spans = told["spans"].as_array().unwrap().iter();
        let spans = spans.filter(|span| is_it(span["budgets"][0]["text"].as_str().unwrap_or("-")));
        let found: Vec<&Value> = spans.map(|span| &span["budgets"][0]).collect();
        assert_eq!(found.len(), 1, "{of}");
        assert_eq!([&found[0]["measured"], &found[0]["kept"]], [&of["measured_ns"], &of["kept"]]);
        assert_eq!(found[0]["quality"], of["quality"]);
    }
    let lanes: Vec<&Value> =
        open["lanes"].as_array().unwrap().iter().map(|lane| &lane["id"]).collect();
    let asked = json!({ "lanes": lanes, "t0": 0, "t1": open["end"], "px": 4000, "filter": 0 });
    let (_, columns) = page.ask_columns("arrows", asked.clone());
    let arrows: f64 = columns["count"].iter().sum();
    let messages: u64 =
        open["channels"].as_array().unwrap().iter().map(|c| c["count"].as_u64().unwrap()).sum();
    assert!(messages > 0 && arrows as u64 == messages, "{arrows} of {messages}");
    // Without the sending events, no arrow is left.
    let sends = open["classes"].as_array().unwrap().iter().filter(|class| class["sends"] == true);
    let sends: Vec<&Value> = sends.map(|class| &class["id"]).collect();
    let filter = page.ask("filter", json!({ "classes_off": sends }));
    let mut asked = asked;
    asked["filter"] = filter["filter"].clone();
    assert_eq!(page.ask_columns("arrows", asked).1["count"].len(), 0);
    // The index is stored, and used again.
    assert!(place.0.join("demo/view.index").is_file());
    drop(viewer);
    let again = Viewer::start(&place, &["demo"]);
    assert_eq!(again.page().ask("open", json!({})), open);
}

#[test]
fn cores_of_barrelfish_have_the_colours_of_what_ran() {
    let dump =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/barrelfish/atrace.trc");
    if !dump.is_file() {
        eprintln!("SKIPPED: there is no {}", dump.display());
        return;
    }
    let place = Place::new();
    let dump = dump.display().to_string();
    let lines = printed(&place, &dump);
    let viewer = Viewer::start(&place, &[&dump]);
    let mut page = viewer.page();
    the_list_is_what_is_printed(&mut page, &lines);
    let open = page.ask("open", json!({}));
    let core = open["lanes"].as_array().unwrap().iter().find(|lane| lane["cpu"] == 0).unwrap();
    let running = core["rows"].as_array().unwrap().iter().position(|row| row["kind"] == "running");
    let running = running.expect("a row of who ran");
    let is_switch = |line: &&Value| line["name"] == "kernel:CSWITCH" && line["cpu"] == 0;
    let switches: Vec<&Value> = lines.iter().filter(is_switch).collect();
    assert!(switches.len() >= 2);
    let last = switches.len() - 1;
    for (index, switch) in switches.into_iter().enumerate() {
        let asked =
            json!({ "lane": core["id"], "row": running, "t": time(switch) + 1, "filter": 0 });
        let thing = page.ask("at", asked)["thing"].clone();
        // The end of the last run is unknown.
        let expected = if index == last { &Value::Null } else { &switch["fields"]["application"] };
        assert_eq!(&thing["name"], expected, "{switch}");
    }
}

#[test]
fn threads_of_genode_have_spans_and_levels() {
    let place = Place::new();
    let mut events = Vec::new();
    for round in 0..40u64 {
        let begin = 1000 + round * 100;
        events.push(checkpoint(begin, 0, 1, "work"));
        events.push(checkpoint(begin + 10, round as u32, 0, "slots free"));
        events.push(event(1, begin + 20, b"call\0"));
        events.push(event(2, begin + 30 + round, b"call\0"));
        events.push(checkpoint(begin + 80, 0, 2, "work"));
    }
    let threads: [Thread<'_>; 1] = [("init -> app", "ep", (1000, 4980), &events)];
    place.genode("run", &threads);
    let lines = printed(&place, "run");
    assert_eq!(lines.len(), events.len());
    let viewer = Viewer::start(&place, &["run"]);
    let mut page = viewer.page();
    the_list_is_what_is_printed(&mut page, &lines);
    let open = page.ask("open", json!({}));
    let stats = place.json(&["stats", "--json", "run"]);
    for kind in open["span_kinds"].as_array().unwrap() {
        let told =
            stats["spans"].as_array().unwrap().iter().find(|span| span["name"] == kind["name"]);
        assert_eq!(kind["count"], told.map_or(json!(0), |told| told["count"].clone()), "{kind}");
    }
    let counters = open["counters"].as_array().unwrap();
    assert!(!counters.is_empty(), "{open}");
}
