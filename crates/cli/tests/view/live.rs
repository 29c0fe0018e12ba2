// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat view` of a recording that goes on: over TCP and of a folder that is written; what is seen at
//! the end is what was saved; recorders that are killed; connections that break.

use std::io::BufRead;

use serde_json::{Value, json};

use super::client::{Page, Viewer};
use super::{printed, the_list_is_what_is_printed};
use crate::live::{Running, ready, record, write};
use crate::place::Place;

/// Waits until so many requests of the writer are in the session.
fn wait_for(page: &mut Page, count: u64) -> Value {
    loop {
        let open = page.ask("open", json!({}));
        let classes = open["classes"].as_array().unwrap();
        let requests = classes.iter().find(|class| class["name"] == "REQUEST");
        if requests.is_some_and(|class| class["count"].as_u64() == Some(count)) {
            return open;
        }
        page.told("grown");
    }
}

/// Numbers that requests say, in the order of the list.
fn numbers(page: &mut Page, from: u64) -> Vec<u64> {
    let asked = json!({ "filter": 0, "from": from, "count": 1000 });
    let rows = page.ask("events", asked)["rows"].as_array().unwrap().clone();
    let fields = rows.iter().flat_map(|row| row["fields"].as_array().unwrap().clone());
    let is_it = |field: &Value| field["name"] == "id" || field["name"] == "request";
    fields.filter(is_it).filter_map(|field| field["value"].as_u64()).collect()
}

fn begin(place: &Place, options: &[&str]) -> Option<(Running, impl BufRead)> {
    let (recorder, mut output) = record(place, options)?;
    ready(&mut output);
    Some((recorder, output))
}

#[test]
fn a_live_recording_is_seen_while_it_comes_and_in_the_end_as_it_is_saved() {
    let place = Place::new();
    let options = ["record", "-o", "here", "--live", "127.0.0.1:0", "--packet", "4K"];
    let Some((mut recorder, mut output)) = record(&place, &options) else { return };
    let address = recorder.address();
    ready(&mut output);
    write(&mut recorder, &mut output, 1000);
    let viewer = Viewer::start(&place, &[&address]);
    let mut page = viewer.page();
    let open = wait_for(&mut page, 1000);
    assert_eq!((&open["is_live"], &open["begin"]), (&json!(true), &json!(0)));
    // Single events are read again, of what came just now as well.
    for round in 2..=4u64 {
        write(&mut recorder, &mut output, 1000);
        let open = wait_for(&mut page, round * 1000);
        let all: u64 =
            open["classes"].as_array().unwrap().iter().map(|c| c["count"].as_u64().unwrap()).sum();
        let last = numbers(&mut page, all - 10);
        assert_eq!(last.last(), Some(&999), "{last:?}");
        let grown_end = open["end"].as_f64().unwrap();
        let lanes: Vec<&Value> =
            open["lanes"].as_array().unwrap().iter().map(|l| &l["id"]).collect();
        let asked = json!({ "lanes": lanes, "t0": 0, "t1": grown_end, "px": 1, "filter": 0 });
        let (result, _) = page.ask_columns("view", asked);
        assert!(result["end"].as_f64() >= Some(grown_end));
    }
    // A filter that was made before goes on.
    drop(recorder.0.stdin.take());
    let ended = page.told("ended");
    assert_eq!(ended["complete"], true, "{ended}");
    page.told("replaced");
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    let open = page.ask("open", json!({}));
    assert_eq!(open["is_live"], false);
    the_list_is_what_is_printed(&mut page, &printed(&place, "here"));
    // The copy goes with the view.
    drop(viewer);
}

#[test]
fn a_folder_is_followed_and_a_killed_recorder_is_told() {
    let place = Place::new();
    let Some((mut recorder, mut output)) = begin(&place, &["record", "-o", "here"]) else { return };
    write(&mut recorder, &mut output, 500);
    let viewer = Viewer::start(&place, &["here"]);
    let mut page = viewer.page();
    wait_for(&mut page, 500);
    write(&mut recorder, &mut output, 500);
    let open = wait_for(&mut page, 1000);
    assert_eq!(open["is_live"], true);
    recorder.kill();
    let ended = page.told("ended");
    assert_eq!(ended["complete"], false);
    assert!(ended["why"].as_str().unwrap().contains("lat recover"), "{ended}");
    // What was seen stays.
    let open = page.ask("open", json!({}));
    assert_eq!(open["is_live"], false);
    let requests = open["classes"].as_array().unwrap().iter().find(|c| c["name"] == "REQUEST");
    assert_eq!(requests.unwrap()["count"], 1000);
}

#[test]
fn nobody_at_the_address_is_an_error_that_says_so() {
    let place = Place::new();
    // A port that is nobody's: it was ours.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = place.lat(&["view", "--no-open", "--no-page", &port.to_string()]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("error: cannot follow") && error.contains("lat live"), "{error}");
}
