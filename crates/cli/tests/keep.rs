// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat keep`: time windows around injected spikes, complete and cut with an accuracy of one millisecond.

use crate::place::Place;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Largest distance of the ends of a window from the requested times.
const NEAR_NS: i64 = 1_000_000;

/// Largest difference between the clocks of the program and of the recording.
const CLOCKS_NS: i64 = 100_000;

/// The same after ten minutes, if one clock is steered and the other only counts: 1 ppm is 0.6 ms.
const CLOCKS_LATER_NS: i64 = 600_000;

/// Bounds of the time of a tick, by the program's own clock.
type Tick = (i64, i64);

/// Reads the ticks that the program itself wrote.
fn ticks(file: &Path) -> Vec<Tick> {
    let bytes = fs::read(file).expect("the program's own times");
    let word = |bytes: &[u8]| i64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
    bytes.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..]))).collect()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("a number: {value}"))
}

/// Checks one window against the ticks: none is missing inside, and none is outside.
fn judge(place: &Place, window: &Value, (ticks, clocks_ns): (&[Tick], i64)) {
    let (from, to) = (number(&window["from_ns"]), number(&window["to_ns"]));
    let (first, last) = (number(&window["first_event_ns"]), number(&window["last_event_ns"]));
    assert!(first >= from && last <= to, "{window}");
    // If the machine did not schedule the program, there were no ticks to keep.
    let (_, first_tick) = ticks.iter().find(|(before, _)| *before >= from).expect("a tick");
    let (last_tick, _) = ticks.iter().rev().find(|(_, after)| *after <= to).expect("a tick");
    assert!(first <= first_tick + NEAR_NS, "{} ns late: {window}", first - first_tick);
    assert!(last >= last_tick - NEAR_NS, "{} ns early: {window}", last_tick - last);
    let is_inside =
        |(before, after): &&Tick| *before >= from + clocks_ns && *after <= to - clocks_ns;
    let may_be = |(before, after): &&Tick| *after >= from - clocks_ns && *before <= to + clocks_ns;
    let least = ticks.iter().filter(is_inside).count() as u64;
    let most = ticks.iter().filter(may_be).count() as u64;
    let name = format!("kept/{}", window["name"].as_str().expect("a name"));
    let report = place.report(&name);
    let kept = report["events"]["spikes:TICK"].as_u64().unwrap_or(0);
    assert!((least..=most).contains(&kept), "{kept} of {least} to {most} ticks: {window}");
    assert_eq!(report["totals"]["lost"]["total"], 0);
    assert_eq!(report["complete"], true);
    assert_eq!(report["kept"]["name"], window["name"]);
}

/// Checks that every spike has a window, and that every window is correct.
fn judge_all(place: &Place, spikes: u64, clocks_ns: i64) -> Value {
    let list: Value =
        serde_json::from_slice(&fs::read(place.0.join("kept/kept.json")).expect("a list"))
            .expect("the list is JSON");
    let windows = list["windows"].as_array().expect("windows").clone();
    let ticks = ticks(&place.0.join("ticks"));
    for window in &windows {
        let reasons = window["reasons"].as_array().expect("reasons");
        let is_slow = |reason: &Value| reason["key"].as_str().is_some_and(|key| key.len() == 7);
        // On a busy machine a quick request may be slow, even at the very start.
        let is_whole = window["short"].as_array().is_some_and(Vec::is_empty);
        assert!(is_whole || !reasons.iter().any(is_slow), "{window}");
        if is_whole {
            judge(place, window, (&ticks, clocks_ns));
        }
    }
    for spike in 0..spikes {
        let key = (1_000_000 + spike).to_string();
        let reasons =
            windows.iter().flat_map(|window| window["reasons"].as_array().expect("reasons"));
        let reason = reasons.clone().find(|reason| reason["key"] == *key);
        let reason = reason.unwrap_or_else(|| panic!("spike {key} is missing in {list}"));
        assert_eq!((&reason["is_over"], &reason["is_certain"]), (&true.into(), &true.into()));
        assert!(number(&reason["duration_ns"]) >= 40_000_000, "{reason}");
    }
    list
}

/// Runs the example under `lat keep`; prints a message and returns false if it cannot be compiled.
fn keep(place: &Place, options: &[&str], arguments: &[&str]) -> bool {
    let Some(program) = place.example("spikes") else { return false };
    let program = program.to_str().expect("a path of letters");
    let all = [&["keep", "-o", "kept"], options, &["--", program], arguments].concat();
    let output = place.lat(&all);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("kept "), "{text}");
    true
}

#[test]
fn twenty_spikes_have_twenty_windows_to_the_millisecond() {
    let place = Place::new();
    let options = ["--when", "span(request) > 30ms", "--before", "200ms", "--after", "100ms"];
    let ticks = place.0.join("ticks");
    let ticks = ticks.to_str().expect("a path of letters");
    if !keep(&place, &options, &["20", "500", "40", ticks]) {
        return;
    }
    let list = judge_all(&place, 20, CLOCKS_NS);
    assert_eq!(list["not_kept"], 0);
    let whole = place.lat(&["print", "kept", "--format", "babeltrace"]);
    assert_eq!(whole.status.code(), Some(0), "{}", String::from_utf8_lossy(&whole.stderr));
    // Messages and spans open at the ends of a window have another end outside, and the metadata records
    // this.
    let metadata = std::fs::read(place.0.join("kept/spike-0001/ctf/metadata")).expect("metadata");
    assert!(String::from_utf8_lossy(&metadata).contains("lateralis_extent"));
    let one = place.json(&["stats", "kept/spike-0001", "--json"]);
    let spans = one["spans"].as_array().expect("spans");
    assert!(spans.iter().any(|span| span["name"] == "request"), "{one}");
    match std::process::Command::new("babeltrace2")
        .arg(place.0.join("kept/spike-0001/ctf"))
        .output()
    {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && text.is_empty(), "{text}");
        }
        Err(_) => eprintln!("SKIPPED: no babeltrace2 here"),
    }
}

#[test]
fn ten_minutes_of_twenty_spikes_in_flat_memory() {
    if std::env::var_os("LATERALIS_SLOW_TESTS").is_none() {
        eprintln!("SKIPPED: takes ten minutes; LATERALIS_SLOW_TESTS=1 runs it");
        return;
    }
    let place = Place::new();
    let options = ["--when", "span(request) > 30ms", "--before", "10s", "--after", "5s"];
    let ticks = place.0.join("ticks");
    let ticks = ticks.to_str().expect("a path of letters");
    if !keep(&place, &options, &["20", "28500", "40", ticks]) {
        return;
    }
    judge_all(&place, 20, CLOCKS_LATER_NS);
    let memory = &place.report("kept")["throughput"]["peak_memory_bytes"];
    eprintln!("peak memory of lat: {memory} bytes");
    // 11 s of 10,000 events per second with 16 bytes each are 2 MB; the rest is the memory of `lat` itself.
    assert!(memory.as_u64().is_some_and(|bytes| bytes < 64 << 20), "{memory}");
}

#[test]
fn old_windows_make_room_for_new_ones() {
    let place = Place::new();
    let options = ["--when", "event(spikes:ANSWERED, id >= 1000000)", "--most", "2"];
    let times = ["--before", "20ms", "--after", "10ms"];
    if !keep(&place, &[&options[..], &times].concat(), &["5", "150", "40"]) {
        return;
    }
    let list: Value =
        serde_json::from_slice(&fs::read(place.0.join("kept/kept.json")).expect("a list"))
            .expect("the list is JSON");
    assert_eq!(
        (&list["fired"], &list["removed"], &list["not_kept"]),
        (&5.into(), &3.into(), &0.into())
    );
    let mut folders: Vec<_> = fs::read_dir(place.0.join("kept"))
        .expect("the folder")
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name())
        .collect();
    folders.sort();
    assert_eq!(folders, ["spike-0004", "spike-0005"]);
}

#[test]
fn wrong_conditions_are_refused_before_anything_starts_or_told() {
    let place = Place::new();
    for (condition, told) in [
        ("span(request) > 5", "column 17: the time has no unit"),
        ("spam(request) > 5ms", "did you mean span?"),
    ] {
        let output = place.lat(&["keep", "-o", "kept", "--when", condition, "--", "true"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with("error: ") && text.contains(told) && text.contains("^"), "{text}");
        assert!(!place.0.join("kept").exists());
    }
    let Some(program) = place.example("spikes") else { return };
    let program = program.to_str().expect("a path of letters");
    let when = "span(reqest) > 5ms";
    let output = place.lat(&["keep", "-o", "kept", "--when", when, "--", program, "1", "50", "5"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("there is no span reqest; did you mean request?"), "{text}");
}

#[test]
fn chunks_are_whole_recordings_that_together_hold_everything() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let program = program.to_str().expect("a path of letters");
    for (output, more, chunks_at_most) in
        [("all", &[][..], u64::MAX), ("some", &["--keep-chunks", "2"], 2)]
    {
        let arguments = [
            &["record", "-o", output, "--chunk-size", "64K", "--flush-every", "100ms"],
            more,
            &["--", program, "2", "400", "5"],
        ]
        .concat();
        let recorded = place.lat(&arguments);
        let text = String::from_utf8_lossy(&recorded.stderr);
        assert_eq!(recorded.status.code(), Some(0), "{text}");
        let removed = text.lines().filter(|line| line.starts_with("removed")).count();
        assert_eq!(removed, usize::from(chunks_at_most != u64::MAX), "{text}");
        let totals = place.report(output)["totals"].clone();
        assert_eq!(totals["lost"]["total"], 0);
        let mut chunks: Vec<String> = fs::read_dir(place.0.join(output))
            .expect("the folder")
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .map(|entry| format!("{output}/{}", entry.file_name().display()))
            .collect();
        chunks.sort();
        assert!(chunks.len() >= 2 && chunks.len() as u64 <= chunks_at_most, "{chunks:?}");
        let mut events = 0;
        for chunk in &chunks {
            let report = place.report(chunk);
            assert_eq!(report["complete"], true);
            events += report["totals"]["events"].as_u64().unwrap_or(0);
            let trace = place.0.join(chunk).join("ctf");
            if let Ok(theirs) = std::process::Command::new("babeltrace2").arg(trace).output() {
                let complaints = String::from_utf8_lossy(&theirs.stderr);
                assert!(theirs.status.success() && complaints.is_empty(), "{complaints}");
            }
        }
        let printed = place.lat(&["print", output]);
        let lines = String::from_utf8_lossy(&printed.stdout);
        let own = lines.lines().filter(|line| line.contains("spikes:")).count() as u64;
        assert_eq!(own, events);
        if chunks_at_most == u64::MAX {
            assert_eq!(totals["events"], events);
        }
    }
}

/// The report of each window and chunk lists disabled events and filters, because it is also opened alone.
#[test]
fn a_window_and_a_chunk_know_what_was_not_recorded() {
    let place = Place::new();
    // There are too few events to lose any: a loss would cause the same marks.
    let program = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1500", "status=none"];
    let some = ["--with", "io", "--disable", "io:READ", "--filter", "io:WRITE: count < 0"];
    let run = |words: &[&str]| {
        let output = place.lat(&[words, &some, &["--"], &program].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["record", "-q", "-o", "whole"]);
    run(&["record", "-q", "-o", "chunks", "--chunk-size", "16K", "--packet", "4K"]);
    let when = ["--when", "event(io:READ_DONE)", "--before", "1s", "--after", "10ms"];
    run(&[&["keep", "-q", "-o", "windows"], &when[..]].concat());
    let parts = ["chunks/chunk-000001", "windows/spike-0001"];
    for part in ["whole", "chunks"].into_iter().chain(parts) {
        let stats = place.json(&["stats", part, "--section", "events,spans", "--json"]);
        let quality = json!({ "sums": "lower_bound", "values": "unknown" });
        assert_eq!(stats["quality"], quality, "{part}: {stats:#}");
        let report = place.report(part);
        assert_eq!(report["totals"]["lost"]["total"], 0, "{part}");
        let area = &report["areas"][0];
        let disabled = area["disabled"].as_array().expect("a list");
        assert!(disabled.contains(&"io:READ".into()), "{part}: {area:#}");
        assert_eq!(area["filters"], json!(["io:WRITE: count < 0"]), "{part}: {area:#}");
    }
}
