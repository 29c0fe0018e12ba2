// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selecting, following and converting recordings.

use crate::place;

use place::Place;
use serde_json::Value;
use std::process::{Command, Stdio};

fn demo() -> Place {
    let place = Place::new();
    let output = place.lat(&["demo", "-o", "demo", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place
}

fn lines(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let mut all = vec!["print", "demo", "--format", "json"];
    all.extend(arguments);
    let output = place.lat(&all);
    assert!(output.status.success(), "{all:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn options_choose_what_they_say() {
    let place = demo();
    let all = lines(&place, &[]);
    let count = |test: &dyn Fn(&Value) -> bool| all.iter().filter(|line| test(line)).count();
    let is = |name: &'static str| move |line: &Value| line["name"] == name;

    let some = lines(&place, &["--event", "client:ORDER", "--where", "id >= 100 && id < 200"]);
    let expected = count(&|line| {
        is("client:ORDER")(line) && (100..200).contains(&line["fields"]["id"].as_u64().unwrap())
    });
    assert!(expected > 0);
    assert_eq!(some.len(), expected);

    let one_cpu = lines(&place, &["--cpu", "0", "--subsystem", "warehouse"]);
    assert_eq!(
        one_cpu.len(),
        count(&|line| line["cpu"] == 0 && line["name"].as_str().unwrap().starts_with("warehouse:"))
    );

    // Threads by name, which only events contain, and by number.
    let workers = lines(&place, &["--thread", "worker-*"]);
    assert!(!workers.is_empty());
    let tids: Vec<u64> = workers.iter().map(|line| line["tid"].as_u64().unwrap()).collect();
    let tid = tids[0].to_string();
    let by_number = lines(&place, &["--thread", &tid]);
    assert_eq!(by_number.len(), tids.iter().filter(|other| **other == tids[0]).count());

    let none = lines(&place, &["--app", "no such program"]);
    assert!(none.is_empty());
    let wrong = place.lat(&["print", "demo", "--where", "id >"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("column"));
}

#[test]
fn a_recording_is_followed_to_its_end() {
    let place = Place::new();
    let script = "i=0; while [ $i -lt 8 ]; do echo $i >> out; sleep 0.1; i=$((i+1)); done";
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "--with", "io", "-o", "live", "--", "sh", "-c", script])
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .env("XDG_CACHE_HOME", place.0.join("cache"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("lat can be started");
    let start = std::time::Instant::now();
    while !place.0.join("live/report.json").is_file() {
        assert!(start.elapsed().as_secs() < 30, "the recording did not begin");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let followed = place.lat(&["print", "--follow", "live", "--format", "json"]);
    assert!(recorder.wait().unwrap().success());
    assert!(followed.status.success(), "{}", String::from_utf8_lossy(&followed.stderr));
    let saved = place.lat(&["print", "live", "--format", "json"]);
    // Only times and process names may differ: both are more accurate at the end.
    let strip = |bytes: &[u8]| -> Vec<Value> {
        let text = String::from_utf8_lossy(bytes);
        let value = |line: &str| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            for known_later in ["time_ns", "time", "stream", "process"] {
                value.as_object_mut().unwrap().remove(known_later);
            }
            value
        };
        let mut values: Vec<Value> = text.lines().map(value).collect();
        values.sort_by_key(ToString::to_string);
        values
    };
    let (live, saved) = (strip(&followed.stdout), strip(&saved.stdout));
    assert!(live.len() > 20, "{} lines", live.len());
    assert_eq!(live, saved);
}

#[test]
fn several_traces_are_one() {
    let place = demo();
    assert!(place.lat(&["convert", "demo", "-o", "copy"]).status.success());
    let info = |traces: &[&str]| {
        let mut all = vec!["info", "--json"];
        all.extend(traces);
        place.json(&all)["events_total"].as_u64().unwrap()
    };
    assert_eq!(info(&["demo", "copy"]), 2 * info(&["demo"]));
    assert_eq!(info(&["copy"]), info(&["demo"]));
}

#[test]
fn what_is_no_trace_is_described() {
    let place = Place::new();
    std::fs::write(place.0.join("letter.txt"), "Dear Sir or Madam").unwrap();
    std::fs::write(place.0.join("empty"), "").unwrap();
    std::fs::write(place.0.join("packed"), [0x1f, 0x8b, 8, 0]).unwrap();
    for (name, part) in [
        ("letter.txt", "\"Dear Sir or Mada\""),
        ("empty", "the file is empty"),
        ("packed", "gzip packed it, and it is cut or damaged"),
        ("absent", "no such file"),
    ] {
        let output = place.lat(&["info", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(part) && text.contains(name), "{name}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn every_target_is_written_and_what_can_be_read_is_read_again() {
    let place = demo();
    let before = place.json(&["info", "demo", "--json"]);
    for (target, readable) in [
        ("ctf", true),
        ("ctf2", true),
        ("chrome", true),
        ("perfetto", true),
        ("fxt", true),
        ("parquet", false),
        ("csv", false),
        ("jsonl", false),
    ] {
        let output = format!("as-{target}");
        let arguments = ["convert", "demo", "-o", &output, "--to", target];
        let converted = place.lat(&arguments);
        assert!(converted.status.success(), "{target}: {converted:?}");
        // An existing file is not replaced.
        assert_eq!(place.lat(&arguments).status.code(), Some(2), "{target}");
        if !readable {
            continue;
        }
        let after = place.json(&["info", &output, "--json"]);
        assert_eq!(after["first_ns"], before["first_ns"], "{target}");
        assert_eq!(after["last_ns"], before["last_ns"], "{target}");
        assert!(after["damage"].as_array().unwrap().is_empty(), "{target}");
        assert!(after["events_total"].as_u64() >= before["events_total"].as_u64(), "{target}");
    }
    let unwanted = place.lat(&["convert", "demo", "-o", "demo.unknown"]);
    assert_eq!(unwanted.status.code(), Some(2));
    assert!(!place.0.join("demo.unknown").exists());
}

#[test]
fn a_pipe_is_written_into_and_never_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let place = demo();
    let script = "mkfifo pipe && { timeout 60 cat pipe > got & } && \
                  timeout 60 \"$0\" convert demo -o pipe --to jsonl --force && wait";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_lat")]).current_dir(&place.0);
    let output = command.stdin(Stdio::null()).output().expect("a shell can be started");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty(), "the summary is among the events: {output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("written   pipe\n"));
    assert!(std::fs::symlink_metadata(place.0.join("pipe")).unwrap().file_type().is_fifo());
    assert!(place.lat(&["convert", "demo", "-o", "file.jsonl"]).status.success());
    let read = |name: &str| std::fs::read(place.0.join(name)).unwrap();
    assert!(read("got") == read("file.jsonl"), "a pipe gets other bytes than a file");

    let directory = place.lat(&["convert", "demo", "-o", "pipe", "--to", "ctf", "--force"]);
    assert_eq!(directory.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&directory.stderr).contains("directory"));

    // The target of a link is replaced, and the link is kept.
    std::os::unix::fs::symlink("file.jsonl", place.0.join("link")).unwrap();
    let linked = place.lat(&["convert", "demo", "-o", "link", "--to", "csv", "--force"]);
    assert!(linked.status.success(), "{linked:?}");
    assert!(place.0.join("link").is_symlink());
    assert!(read("file.jsonl") == read("link") && !read("link").starts_with(b"{"));
}
