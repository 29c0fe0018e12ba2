// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands from the page to the recorder of the viewed recording take effect in the traced program.

use serde_json::{Value, json};

use super::client::Viewer;
use super::live::{begin, requests, wait_for};
use super::printed;
use crate::live::write;
use crate::place::Place;

#[test]
fn the_page_stops_starts_and_chooses_what_is_recorded() {
    let place = Place::new();
    let Some((mut recorder, mut output)) = begin(&place, &["record", "-o", "here"]) else { return };
    write(&mut recorder, &mut output, 100);
    let viewer = Viewer::start(&place, &["here"]);
    let mut page = viewer.page();
    let open = wait_for(&mut page, 100);
    let methods = open["methods"].as_array().expect("methods");
    assert!(methods.contains(&json!("control")), "{methods:?}");
    let mut ask = |action: &str, events: &[&str]| -> Value {
        let done =
            page.ask("control", json!({ "action": action, "events": events }))["done"].take();
        let done = done.as_array().expect("a list").clone();
        assert_eq!(done.len(), 1, "{action}: {done:?}");
        assert!(
            done[0]["program"].as_str().is_some_and(|path| path.ends_with("writer-program")),
            "{done:?}"
        );
        done[0].clone()
    };
    ask("stop", &[]);
    write(&mut recorder, &mut output, 1000);
    ask("start", &[]);
    write(&mut recorder, &mut output, 20);
    assert_eq!(ask("disable", &["server:REQUEST"])["changed"], 1);
    write(&mut recorder, &mut output, 1000);
    assert_eq!(ask("enable", &["server:*"])["changed"], 1);
    write(&mut recorder, &mut output, 3);
    ask("flush", &[]);
    // The current contents of the rings, beside the recording.
    let snapshot = ask("snapshot", &[])["output"].take();
    let lines = printed(&place, snapshot.as_str().expect("a path"));
    assert!(lines.iter().any(|line| line["name"] == "server:REQUEST"), "{lines:?}");
    // None of the events written while the class was off is recorded: they would be counted before the last
    // ones.
    wait_for(&mut page, 123);
    for asked in [json!({ "action": "burn" }), json!({ "action": "stop", "target": 1 })] {
        let refused = page.try_ask("control", asked.clone()).expect_err("it cannot be done");
        assert!(refused["what"].as_str().is_some_and(|what| !what.is_empty()), "{asked} {refused}");
    }
    drop(recorder.0.stdin.take());
    assert_eq!(page.told("ended")["complete"], true);
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    page.told("replaced");
    assert_eq!(requests(&page.ask("open", json!({}))), 123);
}
