// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every reader reports events that were not recorded, and data missing from the files.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::place::Place;
use crate::view::client::Viewer;

/// Records the given number of writes.
fn recorded(place: &Place, options: &[&str]) -> Value {
    let program = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=30000"];
    let words = ["record", "--quiet", "--with", "io", "--packet", "4K"];
    let output = place.lat(&[&words[..], options, &["-o", "out", "--"], &program].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    place.report("out")
}

/// Returns the stream with most packets, from the report, and its file.
fn largest(place: &Place, report: &Value) -> (Value, PathBuf) {
    let streams = report["streams"].as_array().expect("streams");
    let stream = streams.iter().max_by_key(|stream| stream["packets"].as_u64()).expect("a stream");
    let file = stream["files"][0].as_str().expect("a file");
    (stream.clone(), place.0.join("out").join(file))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Cuts a stream file after its first packets.
fn cut(file: &PathBuf, packets: usize) {
    let bytes = fs::read(file).expect("a stream");
    let mut at = 0;
    for _ in 0..packets {
        let word = bytes[at + 48..at + 56].try_into().expect("8 bytes");
        at += u64::from_le_bytes(word) as usize / 8;
    }
    fs::write(file, &bytes[..at]).expect("written");
}

#[test]
fn packets_that_the_recorder_wrote_and_that_are_gone_are_damage_with_their_number() {
    for kept in [None, Some(0), Some(3)] {
        let place = Place::new();
        let report = recorded(&place, &[]);
        let fine = place.lat(&["info", "out"]);
        assert_eq!(fine.status.code(), Some(0), "{}", String::from_utf8_lossy(&fine.stdout));
        let (stream, file) = largest(&place, &report);
        match kept {
            None => fs::remove_file(&file).expect("removed"),
            Some(packets) => cut(&file, packets),
        }
        let info = place.lat(&["info", "out", "--json"]);
        assert_eq!(info.status.code(), Some(1), "{kept:?}");
        let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
        let damage = info["damage"].as_array().expect("damage");
        assert_eq!(damage.len(), 1, "{kept:?}: {damage:?}");
        let present = number(&info["events_total"]);
        let written =
            number(&report["totals"]["events"]) + number(&report["totals"]["internal_events"]);
        let packets = number(&stream["packets"]) - kept.unwrap_or(0) as u64;
        let expected = format!("missing: {packets} packets with {} events", written - present);
        let reason = damage[0]["reason"].as_str().expect("a reason");
        assert!(reason.starts_with(&expected), "{kept:?}: {reason}, not {expected}");
        let stats = place.lat(&["stats", "out"]);
        assert_eq!(stats.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&stats.stdout).starts_with('≥'), "{kept:?}");
        let print = place.lat(&["print", "out", "-n", "1"]);
        assert_eq!(print.status.code(), Some(1));
        // The files beside `ctf` are not needed; a copy without them is a trace like any other.
        fs::rename(place.0.join("out/ctf"), place.0.join("alone")).expect("moved");
        let index = place.0.join("alone/index");
        fs::remove_dir_all(index).expect("an index");
        if kept != Some(0) {
            let alone = place.json(&["info", "alone", "--json"]);
            assert_eq!(alone["remarks"], Value::Array(Vec::new()), "{kept:?}");
        }
    }
}

#[test]
fn without_a_report_the_index_says_what_is_gone() {
    let place = Place::new();
    let report = recorded(&place, &[]);
    let (stream, file) = largest(&place, &report);
    fs::remove_file(place.0.join("out/report.json")).expect("removed");
    assert_eq!(place.lat(&["info", "out"]).status.code(), Some(0));
    cut(&file, 2);
    let info = place.lat(&["info", "out"]);
    assert_eq!(info.status.code(), Some(1));
    let text = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(
        text.contains(&format!("missing: {} packets", number(&stream["packets"]) - 2)),
        "{text}"
    );
}

#[test]
fn an_index_that_is_gone_or_wrong_is_told_and_costs_no_event() {
    for change in ["gone", "cut", "other"] {
        let place = Place::new();
        let report = recorded(&place, &[]);
        let (_, file) = largest(&place, &report);
        let name = format!("{}.idx", file.file_name().expect("a name").to_string_lossy());
        let index = place.0.join("out/ctf/index").join(name);
        let mut bytes = fs::read(&index).expect("an index");
        match change {
            "gone" => fs::remove_file(&index).expect("removed"),
            "cut" => fs::write(&index, &bytes[..16 + 72]).expect("written"),
            _ => {
                // The size of the first packet.
                bytes[16 + 14] ^= 1;
                fs::write(&index, &bytes).expect("written");
            }
        }
        let info = place.lat(&["info", "out", "--json"]);
        assert_eq!(info.status.code(), Some(1), "{change}");
        let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
        assert!(info["faults"][0].as_str().is_some_and(|it| it.contains(".idx")), "{info:#}");
        let written =
            number(&report["totals"]["events"]) + number(&report["totals"]["internal_events"]);
        assert_eq!(number(&info["events_total"]), written);
        assert_eq!(info["damage"], Value::Array(Vec::new()));
    }
}

#[test]
fn a_hostile_report_adds_at_most_sentences() {
    let place = Place::new();
    let report = recorded(&place, &[]);
    let written =
        number(&report["totals"]["events"]) + number(&report["totals"]["internal_events"]);
    let mut hostile = report.clone();
    hostile["streams"][0]["bytes"] = u64::MAX.into();
    hostile["streams"][0]["packets"] = u64::MAX.into();
    hostile["streams"][0]["not_written"] = u64::MAX.into();
    hostile["streams"][0]["files"] =
        serde_json::json!(["ctf/../../../etc/passwd", "unreadable/../x"]);
    let gap = serde_json::json!({ "cause": "stopped", "from_ns": i64::MAX, "to_ns": i64::MIN });
    hostile["unrecorded"] = Value::Array(vec![gap; 5000]);
    for text in [hostile.to_string(), "{".to_owned(), "[]".to_owned(), String::new()] {
        fs::write(place.0.join("out/report.json"), text).expect("written");
        let info = place.lat(&["info", "out", "--json"]);
        assert_eq!(info.status.code(), Some(1));
        let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
        assert_eq!(number(&info["events_total"]), written);
        for command in ["stats", "print"] {
            assert!(matches!(place.lat(&[command, "out"]).status.code(), Some(0 | 1)));
        }
    }
}

#[test]
fn what_a_cap_kept_out_is_told_by_every_reader() {
    let place = Place::new();
    let report = recorded(&place, &["--max-size", "100K"]);
    let not_written = number(&report["totals"]["not_written"]);
    assert!(not_written > 0, "{report:#}");
    let info = place.lat(&["info", "out", "--json"]);
    assert_eq!(info.status.code(), Some(1));
    let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
    let losses = info["losses"].as_array().expect("losses");
    let told = losses.iter().filter(|loss| loss["cause"] == "not_written");
    assert_eq!(told.map(|loss| number(&loss["count"])).sum::<u64>(), not_written);
    assert!(info["faults"][0].as_str().is_some_and(|it| it.contains("cap")), "{info:#}");
    let stats = place.lat(&["stats", "out"]);
    let text = String::from_utf8_lossy(&stats.stdout).into_owned();
    assert_eq!(stats.status.code(), Some(1));
    assert!(text.starts_with('≥') && text.contains("not_written"), "{text}");
    let print = place.lat(&["print", "out", "-n", "1"]);
    assert!(String::from_utf8_lossy(&print.stderr).contains("not_written"));
    // A reader that knows only the packets reports it, too.
    let Ok(independent) = Command::new("babeltrace2").arg(place.0.join("out/ctf")).output() else {
        return println!("SKIPPED: reading with babeltrace2: not here");
    };
    let complaints = String::from_utf8_lossy(&independent.stderr).into_owned();
    let discarded = complaints.split("discarded ").skip(1);
    let discarded = discarded.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    let lost = number(&report["totals"]["lost"]["total"]);
    let (discarded, missing) = (discarded.sum::<u64>(), not_written + lost);
    // babeltrace2 counts from packet to packet, so it prints no number for a stream with a single packet.
    match complaints.contains("may have discarded") {
        true => assert!(discarded < missing, "{complaints}"),
        false => assert_eq!(discarded, missing, "{complaints}"),
    }
}

#[test]
fn a_pause_is_an_interval_that_every_reader_tells() {
    let place = Place::new();
    let script = "import os, time\nfile = os.open('/dev/null', os.O_WRONLY)\n\
        for turn in range(1500):\n os.write(file, b'x')\n time.sleep(0.002)\n";
    let lat = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lat"));
        command.args(arguments).current_dir(&place.0);
        command.env("LATERALIS_DIR", place.0.join("areas"));
        command.env("XDG_CACHE_HOME", place.0.join("cache"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    let words = ["record", "-q", "--with", "io", "-o", "out", "--", "python3", "-c", script];
    let Ok(mut recorder) = lat(&words).spawn() else { panic!("lat can be started") };
    let pid = {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let areas = fs::read_dir(place.0.join("areas")).expect("areas").flatten();
            let mut names = areas.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let name = names.find(|name| name.ends_with(".area") && !name.starts_with('.'));
            if let Some(name) = name {
                break name.split('-').next().expect("a number").to_owned();
            }
            if Instant::now() > until || matches!(recorder.try_wait(), Ok(Some(_))) {
                return println!("SKIPPED: a paused program needs python3");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    std::thread::sleep(Duration::from_millis(500));
    assert!(lat(&["stop", &pid]).status().expect("stopped").success());
    std::thread::sleep(Duration::from_millis(500));
    assert!(lat(&["start", &pid]).status().expect("started").success());
    assert!(recorder.wait().expect("its status").success());
    let gaps = place.report("out")["unrecorded"].clone();
    assert_eq!(gaps.as_array().map(Vec::len), Some(1), "{gaps}");
    let length =
        gaps[0]["to_ns"].as_i64().expect("an end") - gaps[0]["from_ns"].as_i64().expect("a begin");
    assert!(length >= 400_000_000, "{gaps}");
    let info = place.lat(&["info", "out"]);
    assert_eq!(info.status.code(), Some(0), "a pause was wanted");
    let text = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(text.contains("an unknown number (the recording was stopped"), "{text}");
    let stats = String::from_utf8_lossy(&place.lat(&["stats", "out"]).stdout).into_owned();
    assert!(stats.starts_with('≥') && stats.contains("stopped"), "{stats}");
    let print = place.lat(&["print", "out"]);
    let print = String::from_utf8_lossy(&print.stderr).into_owned();
    assert!(print.contains("stopped"), "{print}");
}

#[test]
fn an_area_that_cannot_be_read_is_a_program_that_was_not_recorded() {
    // An area as left by a program whose tracer has another version: the version word differs.
    for (word, value, reason) in [(16u64, 99u32, "other-version"), (0, 7, "unreadable-area")] {
        let place = Place::new();
        let script = format!(
            "import os, struct, time\n\
             folder = os.environ['LATERALIS_DIR']\n\
             own = [name for name in os.listdir(folder) if name.endswith('.area') and name[0] != '.']\n\
             data = bytearray(open(folder + '/' + own[0], 'rb').read(4096))\n\
             data[{word}:{word} + 4] = struct.pack('<I', {value})\n\
             path = folder + '/%d-0123456789abcdef' % os.getpid()\n\
             open(path, 'wb').write(data)\n\
             os.rename(path, path + '.area')\n\
             time.sleep(0.5)\n"
        );
        let words = ["record", "--with", "io", "-o", "out", "--", "python3", "-c", &script];
        let output = place.lat(&words);
        if output.status.code() != Some(0) {
            return println!("SKIPPED: an area of another version needs python3");
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.contains("could not be traced") && !text.contains("lost      nothing"),
            "{text}"
        );
        let missed = place.report("out")["not_recorded"].clone();
        assert_eq!(missed[0]["reason"], reason, "{missed}");
        let info = place.lat(&["info", "out"]);
        assert_eq!(info.status.code(), Some(1));
        let stats = place.lat(&["stats", "out"]);
        assert_eq!(stats.status.code(), Some(1));
        if reason == "other-version" {
            let text = String::from_utf8_lossy(&stats.stdout).into_owned();
            assert!(text.contains("abi-version=99") && text.contains("known-version="), "{text}");
        }
    }
}

#[test]
fn children_that_are_not_recorded_beside_others_are_a_number_with_reasons() {
    let place = Place::new();
    let script = "for i in 1 2 3; do (ulimit -f 8; exec /bin/true); done; (ulimit -f 0; exec /bin/true)\n\
        env -i /bin/true; exec dd if=/dev/zero of=/dev/null bs=1 count=100 status=none";
    let output = place.lat(&["record", "--with", "io", "-o", "out", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("all events of 5 programs that could not be traced"), "{text}");
    assert!(text.contains("missed    true (4 times): started where there is no room"), "{text}");
    assert!(text.contains("missed    true: started with an environment without"), "{text}");
    let report = place.report("out");
    assert_eq!(report["not_recorded_total"], 5, "{report:#}");
    assert!(number(&report["events"]["io:WRITE"]) >= 100);
    for command in ["info", "stats", "print"] {
        let output = place.lat(&[command, "out"]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.contains("not recorded: true (4 times): started where"), "{command}: {text}");
    }
}

#[test]
fn programs_that_are_recorded_are_not_counted_as_missing_however_they_are_started() {
    let place = Place::new();
    let script = "import os, subprocess, sys, threading\n\
        def start():\n for turn in range(20): subprocess.run(['/bin/true'])\n\
        threads = [threading.Thread(target=start) for each in range(3)]\n\
        [one.start() for one in threads]; [one.join() for one in threads]\n\
        for turn in range(20):\n\
        \x20os.waitpid(os.posix_spawn('/bin/true', ['true'], os.environ), 0)\n os.system('true')\n\
        try: os.execvp('no-such-program', ['x'])\nexcept OSError: pass\n\
        try: os.execv('/etc/passwd', ['x'])\nexcept OSError: pass\n\
        os.execvp('sh', ['sh', '-c', 'exec true'])\n";
    let output = place.lat(&["record", "--with", "io", "-o", "out", "--", "python3", "-c", script]);
    if output.status.code() != Some(0) {
        return println!("SKIPPED: programs that are started in all ways need python3");
    }
    let report = place.report("out");
    assert_eq!(report["not_recorded_total"], Value::Null, "{}", report["not_recorded"]);
    assert_eq!(place.lat(&["info", "out"]).status.code(), Some(0));
}

#[test]
fn a_program_that_never_registers_is_not_one_without_events() {
    let place = Place::new();
    let words = ["record", "--with", "io", "-o", "out", "--", "env", "-u", "LATERALIS_DIR"];
    // The program is recorded directly, in an environment in which it cannot make an area.
    let elsewhere = ["sh", "-c", "true"];
    let output = place.lat(&[&words[..], &elsewhere].concat());
    assert_eq!(output.status.code(), Some(0));
    // `env` has registered, and names the program that it executes.
    let missed = place.report("out")["not_recorded"].clone();
    assert_eq!(
        (&missed[0]["program"], &missed[0]["reason"]),
        (&"sh".into(), &"never-registered".into())
    );
    let static_program = place.0.join("static");
    let source = place.0.join("static.c");
    fs::write(&source, "int main(void) { return 5; }\n").expect("written");
    let made =
        Command::new("gcc").arg("-static").arg("-o").args([&static_program, &source]).status();
    if !made.is_ok_and(|status| status.success()) {
        return println!("SKIPPED: a static program needs gcc and a static libc");
    }
    let program = static_program.to_str().expect("letters");
    let output = place.lat(&["record", "--with", "io", "-o", "none", "--", program]);
    assert_eq!(output.status.code(), Some(5));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("has no events of its own"), "{text}");
    assert!(!text.contains("lost      nothing"), "{text}");
    assert!(text.contains("none of the programs could be traced"), "{text}");
    let info = place.lat(&["info", "none"]);
    assert_eq!(info.status.code(), Some(1), "{}", String::from_utf8_lossy(&info.stdout));
}

/// The report lists the disabled events, and no number that depends on them is exact.
#[test]
fn events_that_were_off_are_known_to_every_reader() {
    let place = Place::new();
    let program = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=5"];
    let words =
        ["record", "--quiet", "--with", "io", "--disable", "io:READ_DONE", "-o", "out", "--"];
    let output = place.lat(&[&words[..], &program].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = place.report("out");
    let area = &report["areas"][0];
    let names = |list: &str| -> Vec<&str> {
        let names = area[list].as_array().expect("names").iter();
        names.map(|name| name.as_str().expect("a name")).collect()
    };
    assert!(names("disabled").contains(&"io:READ_DONE"), "{area}");
    assert!(names("disabled").contains(&"mutex:MUTEX_LOCK"), "not asked for: {area}");
    assert!(!names("disabled").contains(&"io:READ"), "{area}");
    assert!(names("disabled_in_part").is_empty(), "{area}");
    let stats = place.json(&["stats", "out", "--json"]);
    let spans = stats["spans"].as_array().expect("spans");
    let of = |name: &str| spans.iter().find(|span| span["name"] == name).expect(name);
    assert_eq!(of("io_read")["not_exact"]["unfinished"], "unknown");
    for number in ["count", "unfinished", "max_ns", "mean_ns"] {
        assert!(of("io_write")["not_exact"][number].is_null(), "its events were all on: {number}");
    }
    // Tables: a disabled event could have occurred on any thread and CPU.
    let qualities = |name: &str, key: &str| -> BTreeMap<String, String> {
        let words = ["table", "out", "--name", name, "--column", key, "--column", "quality"];
        let text = String::from_utf8_lossy(&place.lat(&words).stdout).into_owned();
        let row = |line: &str| line.split_once(',').map(|(a, b)| (a.to_owned(), b.to_owned()));
        text.lines().skip(1).filter_map(row).collect()
    };
    for cpu in stats["events_by_cpu"].as_array().expect("rows") {
        assert_eq!(cpu["not_exact"]["count"], "lower_bound");
        let of_table = qualities("cpus", "cpu").remove(&cpu["cpu"].to_string());
        assert_eq!(of_table.as_deref(), Some("lower_bound"), "{cpu}");
    }
    for (name, key) in [("threads", "tid"), ("applications", "pid")] {
        let all = qualities(name, key);
        assert!(!all.is_empty() && all.values().all(|of| of == "lower_bound"), "{name}: {all:?}");
    }
    let classes = qualities("classes", "class");
    assert_eq!(classes["io:READ"], "exact");
    assert_eq!(classes["io:READ_DONE"], "lower_bound");
    // In the viewer.
    let viewer = Viewer::start(&place, &["out"]);
    let open = viewer.page().ask("open", json!({}));
    assert_eq!(open["recordings"][0]["quality"], "lower_bound");
    for application in open["applications"].as_array().expect("applications") {
        assert_eq!(application["quality"], "lower_bound", "{application}");
    }
    let is_read = |class: &&Value| class["subsystem"] == "io" && class["name"] == "READ";
    let read = open["classes"].as_array().expect("classes").iter().find(is_read);
    assert_eq!(read.expect("io:READ")["quality"], "exact");
    let counted = viewer.page().ask("stats", json!({ "filter": 0 }));
    assert_eq!(counted["events"]["quality"], stats["quality"]["sums"]);
    assert_eq!(counted["events"]["quality"], "lower_bound");
}

/// Like the previous test, with events enabled before and after.
#[test]
fn events_that_were_off_for_a_while_are_known_to_every_reader() {
    let place = Place::new();
    let lat = env!("CARGO_BIN_EXE_lat");
    let program = format!(
        "import os,subprocess\nf=os.open('/dev/zero',os.O_RDONLY)\nme=str(os.getpid())\n\
         os.read(f,1)\nsubprocess.run(['{lat}','disable',me,'io:READ_DONE'],check=True)\n\
         os.read(f,1)\nsubprocess.run(['{lat}','enable',me,'io:READ_DONE'],check=True)\nos.read(f,1)"
    );
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or("/usr/bin/python3".to_owned());
    if !PathBuf::from(&python).exists() {
        println!("SKIPPED: no Python at {python}");
        return;
    }
    let words = ["record", "--quiet", "--with", "io", "-o", "out", "--", &python, "-c", &program];
    let output = place.lat(&words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = place.report("out");
    let areas = report["areas"].as_array().expect("areas").iter();
    let in_part = areas.flat_map(|area| area["disabled_in_part"].as_array().expect("names"));
    let in_part: Vec<&Value> = in_part.collect();
    assert_eq!(in_part, [&Value::from("io:READ_DONE")], "{report}");
    let stats = place.json(&["stats", "out", "--json"]);
    let find = |list: &str, name: &str| {
        let all = stats[list].as_array().expect("rows");
        all.iter().find(|row| row["name"] == name).expect(name).clone()
    };
    assert_eq!(find("events", "io:READ_DONE")["not_exact"]["count"], "lower_bound");
    assert_eq!(find("events", "io:READ")["not_exact"]["count"], Value::Null);
    let reads = find("spans", "io_read");
    for number in ["count", "max_ns", "mean_ns", "unfinished"] {
        let is_said = !reads[number].is_null();
        assert!(!is_said || !reads["not_exact"][number].is_null(), "{number}: {reads}");
    }
    let kept = place.lat(&["table", "out", "--name", "spans"]);
    let rows = String::from_utf8_lossy(&kept.stdout).into_owned();
    let reads: Vec<&str> = rows.lines().filter(|row| row.contains(",io_read,")).collect();
    assert!(!reads.is_empty() && reads.iter().all(|row| row.ends_with(",unknown")), "{rows}");
}
