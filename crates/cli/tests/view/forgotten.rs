// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A script over a stream whose oldest bytes are evicted during its first pass: events evicted before the
//! script has seen them are counted, and reported.

use std::collections::BTreeSet;
use std::sync::Arc;

use lateralis_recorder::linux::live::LetGo;
use lateralis_units::Nanos;
use lateralis_view::{Host, Live, LiveOptions, Session};
use serde_json::{Value, json};

use super::growing::{ask, interval, newest};
use super::live::begin;
use crate::live::write;
use crate::place::Place;

/// Finds an activity in each event, slowly.
const SLOW: &str = r#"
activity("all", (event, on) => {
  for (let turn = 0; turn < 1000; turn++);
  on.begin("all");
  on.end("all");
});
"#;

/// Finds nothing, quickly.
const QUICK: &str = r#"activity("none").begin("nothing").end("nothing");"#;

fn gone(session: &Session) -> u64 {
    ask(session, "open", json!({}))["gone"]["events"].as_u64().expect("a number")
}

#[test]
fn events_whose_bytes_go_before_a_script_has_seen_them_are_counted_and_it_says_so() {
    let place = Place::new();
    let options = ["record", "-o", "here", "--buffer", "64M"];
    let Some((mut recorder, mut output)) = begin(&place, &options) else { return };
    for _ in 0..4 {
        write(&mut recorder, &mut output, 500_000);
    }
    drop(recorder.0.stdin.take());
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    let path = place.0.join("here");
    let (host, (from, to)) = (Arc::new(Host::default()), interval(&path));
    let memory_bytes = 16 << 20;
    let options =
        LiveOptions { memory_bytes, is_here: true, is_let_go: true, turn_events: Some(1000) };
    let mut live = Live::new(&path, options, Arc::clone(&host));
    let mut let_go = LetGo::new(&path);
    let mut script = Value::Null;
    let mut first: Option<Arc<Session>> = None;
    let mut forgotten = BTreeSet::new();
    let rounds = 60;
    for round in 1..=rounds {
        let recording = live.tail().open().unwrap();
        live.round(&recording, Some(Nanos(from + (to - from) / rounds * round)));
        if let Some(marks) = live.needless() {
            let_go.before(&marks);
        }
        let now = newest(&host);
        forgotten.insert(gone(&now));
        // Before anything is evicted, but with little memory left.
        if first.is_none() && live.bytes() > memory_bytes * 3 / 4 {
            assert_eq!(gone(&now), 0, "rounds are small");
            script = ask(&now, "script", json!({ "name": "slow", "text": SLOW }));
            first = Some(Arc::clone(&now));
        }
        if let_go.is_any() {
            break;
        }
    }
    let (first, now) = (first.expect("enough events"), newest(&host));
    assert!(let_go.is_any(), "bytes went");
    assert!(now.lanes.meta().begin < first.lanes.meta().end, "not of all there was");
    let told = loop {
        let told = ask(&now, "open", json!({}))["scripts"][0].clone();
        if !told["stopped"].is_null() || now.scripts_are_done() {
            break told;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert_eq!(told["script"], script["script"]);
    let what = told["stopped"]["what"].as_str().unwrap_or_else(|| panic!("it goes on: {told}"));
    let missed: u64 = what.split(' ').find_map(|word| word.parse().ok()).expect("a number");
    assert!(what.contains("events were forgotten before it saw them"), "{what}");
    // The script has seen each evicted event, or reports it as missed.
    let seen = told["count"].as_u64().expect("a number");
    assert!(missed > 0 && forgotten.contains(&(seen + missed)), "{missed} {seen} {forgotten:?}");
    // A script started on a snapshot with evicted events begins with the oldest event still available.
    ask(&first, "script", json!({ "name": "quick", "text": QUICK }));
    while !now.scripts_are_done() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let told = ask(&now, "open", json!({}))["scripts"][1].clone();
    assert!(told["stopped"].is_null() && told["until"].is_null(), "{told}");
}
