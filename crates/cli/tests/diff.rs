// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat diff`: finds the slower part, and finds no difference between equal recordings.

use crate::place;

use place::Place;
use serde_json::{Value, json};
use std::fs;

/// A deterministic random number generator (xorshift).
struct Random(u64);

impl Random {
    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Writes a trace of spans `outer` with nested `parse` and `price`, as Chrome JSON.
pub fn write(place: &Place, name: &str, seed: u64, price: f64, extra: u32) {
    write_paced(place, name, seed, price, extra, 1.0);
}

/// Like [`write`], on a machine on which everything takes `pace` times as long.
fn write_paced(place: &Place, name: &str, seed: u64, price: f64, extra: u32, pace: f64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut events: Vec<Value> = Vec::new();
    let mut edge = |name: &str, phase: &str, ts: f64| {
        events.push(json!({ "name": name, "ph": phase, "ts": ts, "pid": 7, "tid": 8 }));
    };
    let mut at = 1000.0;
    for round in 0..500 {
        edge("outer", "B", at);
        for (span, micros) in [("parse", 100.0), ("price", 200.0 * price)] {
            edge(span, "B", at);
            at += micros * pace * (0.9 + 0.2 * random.share());
            edge(span, "E", at);
        }
        if round < extra {
            edge("retry", "B", at);
            at += 1.0 + random.share();
            edge("retry", "E", at);
        }
        at += 5.0 * random.share();
        edge("outer", "E", at);
        at += 1000.0 * random.share();
    }
    let text = json!({ "traceEvents": events }).to_string();
    fs::write(place.0.join(name), text).expect("a trace");
}

fn names(diff: &Value) -> Vec<String> {
    let all = diff["differences"].as_array().expect("differences");
    let name =
        |d: &Value| format!("{} {}", d["kind"].as_str().unwrap(), d["name"].as_str().unwrap());
    all.iter().map(name).collect()
}

#[test]
fn exit_status_says_whether_there_is_a_difference() {
    let place = Place::new();
    write(&place, "a.json", 1, 1.0, 0);
    write(&place, "b.json", 2, 1.0, 0);
    write(&place, "c.json", 3, 1.2, 0);
    let status = |arguments: &[&str]| {
        let output = place.lat(&[&["diff"], arguments].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(status(&["a.json", "a.json"]), (Some(0), String::new()));
    assert_eq!(status(&["a.json", "b.json"]), (Some(0), String::new()));
    assert_eq!(status(&["a.json", "c.json"]), (Some(1), String::new()));
    assert_eq!(status(&["a.json", "c.json", "--threshold", "30"]), (Some(0), String::new()));
    // A faster run is a difference, too, but not a regression.
    assert_eq!(status(&["c.json", "a.json"]).0, Some(1));
    assert_eq!(status(&["c.json", "a.json", "--only-worse"]).0, Some(0));
    let (code, error) = status(&["a.json"]);
    assert_eq!(code, Some(2));
    assert!(error.starts_with("error: nothing to compare with: a.json: "), "{error}");
    assert_eq!(status(&["a.json", "nosuch.json"]).0, Some(2));
    assert_eq!(status(&["a.json", "c.json", "--threshold", "much"]).0, Some(2));
}

#[test]
fn the_cause_comes_first_and_what_it_is_inside_of_behind() {
    let place = Place::new();
    write(&place, "a.json", 1, 1.0, 0);
    write(&place, "c.json", 3, 1.2, 0);
    let diff = place.json(&["diff", "a.json", "c.json", "--json"]);
    assert_eq!(names(&diff), ["span price", "whole span outer"], "{diff}");
    let price = &diff["differences"][0];
    let number = |name: &str| price[name].as_f64().unwrap_or_else(|| panic!("{name}: {price}"));
    assert!((number("before_ns") / 200e3 - 1.0).abs() < 0.05, "{price}");
    assert!((number("ratio") - 1.2).abs() < 0.03, "{price}");
    // The interval contains the true ratio, and excludes a shift within the threshold.
    assert!((1.05..1.2).contains(&number("ratio_least")), "{price}");
    assert!((1.2..1.4).contains(&number("ratio_most")), "{price}");
    // 500 times 40 µs.
    assert!((number("explained_ns") / 20e6 - 1.0).abs() < 0.15, "{price}");
    assert_eq!(price["quality"], "exact");
    let page = String::from_utf8(place.lat(&["diff", "a.json", "c.json"]).stdout).unwrap();
    assert!(page.contains("what takes another time"), "{page}");
}

#[test]
fn a_slower_machine_is_told_from_a_slower_program() {
    let place = Place::new();
    write(&place, "a.json", 1, 1.0, 0);
    write_paced(&place, "slow.json", 2, 1.0, 0, 1.12);
    write_paced(&place, "both.json", 3, 1.3, 0, 1.12);
    let diff = place.json(&["diff", "a.json", "slow.json", "--json"]);
    assert!(names(&diff).is_empty(), "{diff}");
    let pace = |diff: &Value| diff["pace"].as_f64().expect("a pace");
    assert!((pace(&diff) / 1.12 - 1.0).abs() < 0.03, "{diff}");
    assert_eq!(diff["pace_is_program"], false);
    let page = String::from_utf8(place.lat(&["diff", "a.json", "slow.json"]).stdout).unwrap();
    assert!(page.contains("everything together takes +1"), "{page}");

    let diff = place.json(&["diff", "a.json", "both.json", "--json"]);
    assert_eq!(names(&diff).first().map(String::as_str), Some("span price"), "{diff}");
    assert!(!names(&diff).contains(&"span parse".to_owned()), "{diff}");
    let price = &diff["differences"][0];
    assert!((price["ratio"].as_f64().unwrap() / 1.3 - 1.0).abs() < 0.05, "{price}");
    // Reported times are as recorded, not corrected for machine speed.
    assert!((price["after_ns"].as_f64().unwrap() / (200e3 * 1.3 * 1.12) - 1.0).abs() < 0.05);
}

#[test]
fn what_is_new_and_what_is_more_often_is_told() {
    let place = Place::new();
    write(&place, "a.json", 1, 1.0, 0);
    write(&place, "few.json", 4, 1.0, 50);
    write(&place, "many.json", 5, 1.0, 400);
    let new = place.json(&["diff", "a.json", "few.json", "--json"]);
    assert!(names(&new).iter().any(|name| name.starts_with("events ")), "{new}");
    let more = place.json(&["diff", "few.json", "many.json", "--json"]);
    let counts: Vec<String> =
        names(&more).into_iter().filter(|name| name.starts_with("events ")).collect();
    assert_eq!(counts.len(), names(&more).len(), "{more}");
    assert!(!counts.is_empty(), "{more}");
}

#[test]
fn several_recordings_of_each_are_compared_as_sides() {
    let place = Place::new();
    for (name, seed, price) in [("a", 1, 1.0), ("b", 2, 1.0), ("c", 3, 1.07), ("d", 4, 1.07)] {
        write(&place, &format!("{name}.json"), seed, price, 0);
    }
    let sides = ["diff", "--good", "a.json", "--good", "b.json", "c.json", "d.json", "--json"];
    let diff = place.json(&[&sides[..], &["--noise", "1"]].concat());
    assert_eq!(diff["good"].as_array().map(Vec::len), Some(2));
    assert_eq!(diff["bad"].as_array().map(Vec::len), Some(2));
}

/// Writes two threads that alternate in `work`; after half of its rounds the second takes longer.
fn write_two(place: &Place, name: &str, seed: u64, late: f64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut events: Vec<Value> = Vec::new();
    for round in 0..1000 {
        for tid in [8, 9] {
            let factor = if tid == 9 && round >= 500 { late } else { 1.0 };
            let at = f64::from(round) * 2000.0 + f64::from(tid) * 10.0;
            let micros = 100.0 * factor * (0.9 + 0.2 * random.share());
            for (phase, ts) in [("B", at), ("E", at + micros)] {
                events.push(json!({ "name": "work", "ph": phase, "ts": ts, "pid": 7, "tid": tid }));
            }
        }
    }
    let text = json!({ "traceEvents": events }).to_string();
    fs::write(place.0.join(name), text).expect("a trace");
}

#[test]
fn only_what_is_chosen_is_compared() {
    let place = Place::new();
    write_two(&place, "a.json", 1, 1.0);
    write_two(&place, "b.json", 2, 1.5);
    let found = |options: &[&str]| {
        let output = place.lat(&[&["diff", "a.json", "b.json", "--json"], options].concat());
        let diff: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!(output.status.code() == Some(1), !names(&diff).is_empty(), "{diff}");
        names(&diff)
    };
    assert_eq!(found(&["--thread", "9"]), ["span work"]);
    assert_eq!(found(&["--thread", "8"]), [""; 0]);
    assert_eq!(found(&["--where", "$tid == 9", "--from", "1s"]), ["span work"]);
    assert_eq!(found(&["--thread", "9", "--until", "0.99s"]), [""; 0]);
    assert_eq!(found(&["--filter", "event.tid === 9"]), ["span work"]);
    let diff = place.json(&["diff", "a.json", "b.json", "--json", "--thread", "9"]);
    assert_eq!(diff["good_events_per_run"], 2000.0);

    // A pattern must match events of some of the recordings, not of all.
    write(&place, "c.json", 3, 1.0, 0);
    let status = |pattern: &str| {
        let output = place.lat(&["diff", "a.json", "c.json", "--event", pattern]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_ne!(status("work").0, Some(2));
    let (code, error) = status("nosuch");
    assert_eq!(code, Some(2));
    assert!(error.starts_with("error: cannot select events: nosuch: no event of the "), "{error}");
}

/// Raw tracepoints of seL4 do not identify their format.
#[test]
fn a_format_can_be_told() {
    let place = Place::new();
    for (name, seed, factor) in [("a", 1, 1.0), ("b", 2, 1.0), ("c", 3, 1.3)] {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed) | 1);
        let cycles =
            |random: &mut Random| (10_000.0 * factor * (0.9 + 0.2 * random.share())) as u64;
        let record = |_| [3_u64.to_le_bytes(), cycles(&mut random).to_le_bytes()].concat();
        let bytes: Vec<u8> = (0..600).flat_map(record).collect();
        fs::write(place.0.join(name), bytes).expect("a log");
    }
    let format = ["--as", "sel4-tracepoints:aarch64", "--frequency", "1000000000"];
    let status = |names: &[&str]| {
        let output = place.lat(&[&["diff"], names, &format[..]].concat());
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        output.status.code()
    };
    assert_eq!(status(&["a", "b"]), Some(0));
    assert_eq!(status(&["a", "c"]), Some(1));
    assert_eq!(place.lat(&["diff", "a", "b"]).status.code(), Some(2));
    let unknown = place.lat(&["diff", "a", "b", "--as", "nosuch"]);
    assert_eq!(unknown.status.code(), Some(2));
    let error = String::from_utf8_lossy(&unknown.stderr);
    assert!(error.starts_with("error: no such format: nosuch: known are "), "{error}");
}

/// Real recordings on this machine, several per side: on a busy machine a comparison of one with one is a
/// matter of chance, and `bench/diff/run` measures how often it succeeds.
#[test]
fn a_slower_function_and_a_slower_path_of_messages_come_first() {
    let place = Place::new();
    let Some(program) = place.example("slowdown") else {
        return;
    };
    for run in 1..=3 {
        for (name, arguments) in
            [("a", &[][..]), ("b", &[]), ("s", &["--price", "20", "--order", "1000"])]
        {
            place.record(&format!("{name}{run}"), &[], &program, arguments);
        }
    }
    let sides = ["diff", "--json", "--good", "a1", "--good", "a2", "--good", "a3"];
    // Sleeping threads do not compete with others, which may become faster because of them.
    let worse = |bad: [&str; 3]| {
        let mut told = place.json(&[&sides[..], &bad].concat());
        let all = told["differences"].as_array_mut().expect("a list");
        all.retain(|one| one["ratio"].as_f64() > Some(1.0));
        told
    };
    let slower = worse(["s1", "s2", "s3"]);
    let found = names(&slower);
    let mut first = found.clone();
    first.truncate(2);
    first.sort();
    assert_eq!(first, ["message order", "span price"], "{slower}");
    // One in twenty comparisons of equal programs may find a difference, but a smaller one than above.
    let again = worse(["b1", "b2", "b3"]);
    let shift =
        |told: &Value, place: usize| told["differences"][place]["ratio"].as_f64().unwrap().ln();
    for (place, name) in names(&again).iter().enumerate() {
        let there = found.iter().position(|other| other == name);
        assert!(
            there.is_none_or(|there| shift(&again, place) < shift(&slower, there) / 2.0),
            "{again}"
        );
    }
}
