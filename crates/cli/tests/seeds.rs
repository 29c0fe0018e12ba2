// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Genode, Barrelfish, and pcapng with several sections, from the command line.

use crate::place;

use std::fs;
use std::path::Path;
use std::process::Command;

use place::Place;
use place::genode::{checkpoint, event};
use serde_json::Value;

/// Returns the events of a trace, as lines of JSON from `lat convert`.
fn events(place: &Place, trace: &str, options: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["convert", trace, "-o", "events.jsonl", "--force"];
    arguments.extend(options);
    let output = place.lat(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(place.0.join("events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(event: &Value, name: &str) -> i64 {
    event[name].as_i64().unwrap_or(-1)
}

fn text<'e>(event: &'e Value, name: &str) -> &'e str {
    event[name].as_str().unwrap_or("")
}

/// Two components; one calls the other.
fn genode_tree(place: &Place, run: &str) {
    let router = [
        event(1, 110, b"alloc\0"),
        event(2, 150, b"alloc\0"),
        checkpoint(160, 7, 1, "handle"),
        checkpoint(260, 7, 2, "handle"),
    ];
    let rom = [event(3, 115, b"alloc\0"), event(4, 145, b"alloc\0")];
    place.genode(
        run,
        &[
            ("init -> runtime -> nic_router", "ep", (100, 300), &router[..]),
            ("init -> rom", "ep", (115, 145), &rom[..]),
        ],
    );
}

#[test]
fn a_tree_of_genode_has_calls_and_checkpoints_of_its_components() {
    let place = Place::new();
    genode_tree(&place, "run");
    let seen: Vec<_> = events(&place, "run", &[])
        .iter()
        .map(|event| {
            let name = event["fields"]["name"].as_str().unwrap_or("").to_owned();
            let process = text(event, "process").to_owned();
            (number(event, "time_ns"), process, text(event, "name").to_owned(), name)
        })
        .collect();
    let router = "init -> runtime -> nic_router";
    let expected = [
        (110, router, "rpc:call", "alloc"),
        (115, "init -> rom", "rpc:dispatch", "alloc"),
        (145, "init -> rom", "rpc:reply", "alloc"),
        (150, router, "rpc:returned", "alloc"),
        (160, router, "checkpoint:START", "handle"),
        (260, router, "checkpoint:END", "handle"),
    ];
    let expected = expected.map(|(time, process, event, name)| {
        (time, process.to_owned(), event.to_owned(), name.to_owned())
    });
    assert_eq!(seen, expected);
}

/// Returns Genode's analyses for Trace Compass, if available.
fn genode_analysis(name: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/genode");
    let path = folder.join(name);
    if !path.exists() {
        println!("SKIPPED: no {}", path.display());
        return None;
    }
    Some(path.display().to_string())
}

#[test]
fn analyses_of_trace_compass_run_as_they_are() {
    let place = Place::new();
    genode_tree(&place, "run");
    let Some(component) = genode_analysis("componentanalysis.xml") else { return };
    let output = place.lat(&["xml", &component, "run", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["problems"][0]["is_error"], false, "the view is told");
    let ids: Vec<_> = json["analyses"].as_array().unwrap().iter().map(|a| text(a, "id")).collect();
    let expected = ["genode.componentstate", "genode.roundtrippattern", "genode.componentpattern"];
    assert_eq!(ids, expected);
    let found = |index: usize| json["analyses"][index]["found"].as_array().unwrap();
    let states: Vec<_> = found(0)
        .iter()
        .map(|state| (text(state, "value"), number(state, "begin_ns"), number(state, "end_ns")))
        .collect();
    let expected = [
        ("await_reply", 110, 150),
        ("ready", 115, 145),
        ("ready", 150, 260),
        ("await_rpc", 145, 260),
    ];
    assert_eq!(states.len(), expected.len(), "{states:?}");
    assert!(expected.iter().all(|state| states.contains(state)), "{states:?}");
    let call = &found(1)[0];
    assert_eq!((text(call, "name"), text(call, "quality")), ("alloc", "exact"));
    assert_eq!((number(call, "begin_ns"), number(call, "end_ns")), (110, 150));
    assert_eq!(call["fields"]["component"], "init -> runtime -> nic_router");
    assert_eq!((found(1).len(), found(2).len()), (1, 1));

    let checkpoints = genode_analysis("checkpointanalysis.xml").unwrap();
    let output = place.lat(&["xml", &checkpoints, "run"]);
    assert_eq!(output.status.code(), Some(0));
    let page = String::from_utf8(output.stdout).unwrap();
    let row = page.lines().find(|line| line.contains("handle")).unwrap_or_default();
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells[..4], ["handle", "1", "100", "ns"], "{page}");
}

#[test]
fn an_analysis_that_is_not_understood_is_told_and_not_run() {
    let place = Place::new();
    genode_tree(&place, "run");
    let provider = |id: &str, value: &str| {
        format!(
            "<stateProvider id=\"{id}\" version=\"0\">\n<eventHandler eventName=\"Rpc_*\">\
             <stateChange><stateAttribute type=\"constant\" value=\"last\"/>\n\
             <stateValue type=\"{value}\" value=\"name\"/></stateChange></eventHandler>\
             </stateProvider>\n"
        )
    };
    let (good, bad) = (provider("good", "eventField"), provider("bad", "script"));
    fs::write(place.0.join("two.xml"), format!("<tmfxml>\n{good}{bad}</tmfxml>")).unwrap();
    let output = place.lat(&["xml", "two.xml", "run"]);
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{page}");
    assert!(page.contains("error: two.xml: line 7, column 1: scripts"), "{page}");
    assert!(page.contains("last") && page.contains("alloc"), "{page}");
    fs::write(place.0.join("bad.xml"), format!("<tmfxml>\n{bad}</tmfxml>")).unwrap();
    let output = place.lat(&["xml", "bad.xml", "run"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.starts_with("error: no analysis can be run: bad.xml: line 4"), "{error}");
    let output = place.lat(&["xml", "two.xml", "run", "--only", "other"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("it has good"));
    assert_eq!(place.lat(&["xml", "nowhere.xml", "run"]).status.code(), Some(2));
}

#[test]
fn what_sel4_counted_is_utilisation() {
    let place = Place::new();
    let thread = |name: &str, numbers: [u64; 4]| {
        let [cycles, kernel, entries, schedules] = numbers;
        serde_json::json!({
            "NAME": name,
            "UTILISATION": cycles,
            "KERNEL_UTILISATION": kernel,
            "NUMBER_KERNEL_ENTRIES": entries,
            "NUMBER_SCHEDULES": schedules,
        })
    };
    let dump = serde_json::json!({
        "BENCHMARK_TOTAL_UTILISATION": 4000,
        "BENCHMARK_TOTAL_KERNEL_UTILISATION": 500,
        "BENCHMARK_TOTAL_NUMBER_KERNEL_ENTRIES": 50,
        "BENCHMARK_TOTAL_NUMBER_SCHEDULES": 20,
        "BENCHMARK_TCB_": [
            thread("idle_thread", [1000, 0, 0, 4]),
            thread("worker", [3000, 600, 45, 12]),
        ],
    });
    fs::write(place.0.join("dump.json"), format!("All done\n{dump}\n")).unwrap();
    let json = place.json(&["stats", "dump.json", "--json"]);
    let (worker, total) = (&json["counted"]["threads"][1], &json["counted"]["total"]);
    assert_eq!((text(worker, "thread"), &worker["utilisation"]), ("worker", &0.75.into()));
    assert_eq!((&worker["kernel_share"], &total["kernel_share"]), (&0.2.into(), &0.125.into()));
    assert_eq!((number(worker, "schedules"), &worker["cycles_per_schedule"]), (12, &250.0.into()));
    let output = place.lat(&["stats", "dump.json", "--section", "counted"]);
    let page = String::from_utf8(output.stdout).unwrap();
    let line = page.lines().find(|line| line.contains("worker")).unwrap_or_default();
    let cells: Vec<_> = line.split_whitespace().collect();
    let expected = ["worker", "3000", "75.0", "%", "20.0", "%", "45", "12", "250"];
    assert_eq!(cells, expected, "{page}");
    // Other traces have no such section.
    genode_tree(&place, "run");
    assert!(place.json(&["stats", "run", "--json"])["counted"].is_null());
}

/// Core 1 is 505 cycles ahead of core 0; Barrelfish prints its negative offset too large by 2^63.
const DUMP: &str = "\
# Start 1000 Duration 0 Stop 18446744073709551615
# Min_timestamp 1000
# Core 0 LOG DUMP ==================================================
# DCB 0 ffffff8002656c00 app
0 1000 ffffcccc02656c00
0 1100 eeee02020060c950
0 1300 eeee02030060c950
# Core 1 LOG DUMP ==================================================
# Offset 1 9223372036854775303
1 1705 eeee02020060c950
";

#[test]
fn negative_offsets_of_barrelfish_are_put_right() {
    let place = Place::new();
    fs::write(place.0.join("dump"), DUMP).unwrap();
    let seen: Vec<_> = events(&place, "dump", &["--frequency", "1000000000"])
        .iter()
        .map(|event| {
            (number(event, "time_ns"), number(event, "cpu"), text(event, "name").to_owned())
        })
        .collect();
    let first = seen[0].0;
    let seen: Vec<_> =
        seen.iter().map(|(time, cpu, name)| (time - first, *cpu, name.as_str())).collect();
    let expected = [
        (0, 0, "kernel:CSWITCH"),
        (100, 0, "threads:MUTEX_LOCK_NESTED_ENTER"),
        (200, 1, "threads:MUTEX_LOCK_NESTED_ENTER"),
        (300, 0, "threads:MUTEX_LOCK_NESTED_LEAVE"),
    ];
    assert_eq!(seen, expected);
}

fn block(out: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = (body.len() as u32 + 12).to_le_bytes();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&length);
    out.extend_from_slice(body);
    out.extend_from_slice(&length);
}

/// A section as written by Genode's recorder for each period: interfaces in any order.
fn section(out: &mut Vec<u8>, names: [&str; 2], packets: &[(u32, u32)]) {
    let mut head = 0x1a2b_3c4du32.to_le_bytes().to_vec();
    head.extend_from_slice(&[1, 0, 0, 0]);
    head.extend_from_slice(&u64::MAX.to_le_bytes());
    block(out, 0x0a0d_0d0a, &head);
    for name in names {
        // Ethernet, at most 1600 bytes; option 2 is its name.
        let mut body = [1, 0, 0, 0].to_vec();
        body.extend_from_slice(&1600u32.to_le_bytes());
        body.extend_from_slice(&[2, 0, name.len() as u8, 0]);
        body.extend_from_slice(name.as_bytes());
        body.resize(body.len().next_multiple_of(4) + 4, 0);
        block(out, 1, &body);
    }
    for (interface, microseconds) in packets {
        let words = [*interface, 0, *microseconds, 4, 60, 0xdead_beef];
        block(out, 6, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
    }
}

/// Two periods of Genode's recorder; the interfaces have another order in the second.
fn two_sections() -> Vec<u8> {
    let mut bytes = Vec::new();
    section(&mut bytes, ["nic_in", "nic_out"], &[(0, 1), (1, 2)]);
    section(&mut bytes, ["nic_out", "nic_in"], &[(0, 3), (1, 4)]);
    bytes
}

#[test]
fn interfaces_of_each_section_of_pcapng_have_their_own_names() {
    let place = Place::new();
    fs::write(place.0.join("two.pcapng"), two_sections()).unwrap();
    let seen: Vec<_> = events(&place, "two.pcapng", &[])
        .iter()
        .map(|event| {
            let interface = event["fields"]["interface"].as_str().unwrap_or("").to_owned();
            (number(event, "time_ns"), interface)
        })
        .collect();
    let expected = [(1000, "nic_in"), (2000, "nic_out"), (3000, "nic_out"), (4000, "nic_in")];
    assert_eq!(seen, expected.map(|(time, name)| (time, name.to_owned())));
}

/// Converts a trace; returns the exit code and the error output.
fn convert(place: &Place, from: &[&str], to: &str, out: &str) -> (Option<i32>, String) {
    let arguments = [&["convert", "--to", to, "-o", out, "--force"], from].concat();
    let output = place.lat(&arguments);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// Returns the output lines of another program; `None` if it is not installed.
fn lines_of(place: &Place, program: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let Ok(output) = Command::new(program).args(arguments).current_dir(&place.0).output() else {
        println!("SKIPPED: no {program} here");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

/// Benchmarks in the format of sel4bench, and a log of tracepoints of a 64-bit kernel.
const BENCHMARKS: &str = r#"[{"Benchmark": "ipc", "Results": [{"Function": "call", "Min": 1,
    "Max": 3, "Mean": 2.5, "Samples": 2, "Raw results": [1, 3]}]}]"#;

fn tracepoints() -> Vec<u8> {
    (0..9u64).flat_map(|n| [n % 3, 100 + n]).flat_map(u64::to_le_bytes).collect()
}

#[test]
fn each_seed_is_written_as_ctf_that_babeltrace_reads() {
    let place = Place::new();
    genode_tree(&place, "genode");
    fs::write(place.0.join("dump"), DUMP).unwrap();
    fs::write(place.0.join("two.pcapng"), two_sections()).unwrap();
    fs::write(place.0.join("bench.json"), BENCHMARKS).unwrap();
    fs::write(place.0.join("log"), tracepoints()).unwrap();
    fs::write(place.0.join("composite.csv"), "10,0,7, 2,5,6\n20,1,8, 0\n").unwrap();
    for (from, count) in [
        (&["genode"][..], 6),
        (&["dump"], 4),
        (&["two.pcapng"], 4),
        (&["bench.json"], 3),
        (&["--as", "sel4-tracepoints:aarch64", "log"], 9),
        (&["composite.csv"], 2),
    ] {
        let (code, said) = convert(&place, from, "ctf", "out");
        assert_eq!(code, Some(0), "{from:?}: {said}");
        if let Some(lines) = lines_of(&place, "babeltrace2", &["out"]) {
            assert_eq!(lines.len(), count, "{from:?}: {lines:?}");
        }
        // Converted back, the events are the same, whichever version was used.
        let first = place.lat(&["print", "out"]).stdout;
        assert_eq!(convert(&place, from, "ctf2", "out2").0, Some(0), "{from:?}");
        let second = place.lat(&["print", "out2"]).stdout;
        assert_eq!(first.split(|byte| *byte == b'\n').count(), count + 1, "{from:?}");
        assert_eq!(second.split(|byte| *byte == b'\n').count(), count + 1, "{from:?}");
    }
}

/// The environment contains header, core offsets and application names.
#[test]
fn a_dump_of_barrelfish_comes_back_from_both_versions_of_ctf() {
    let place = Place::new();
    fs::write(place.0.join("dump"), DUMP).unwrap();
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    // The negative offset is written correctly.
    let expected = sorted(&DUMP.replace("9223372036854775303", "-505"));
    for version in ["ctf", "ctf2"] {
        assert_eq!(convert(&place, &["dump"], version, "between").0, Some(0));
        let (code, said) = convert(&place, &["between"], "barrelfish", "back.txt");
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains("not kept"), "{version}: {said}");
        let back = fs::read_to_string(place.0.join("back.txt")).unwrap();
        assert_eq!(sorted(&back), expected, "{version}");
    }
}

#[test]
fn packets_come_back_from_ctf_and_other_tools_name_their_interfaces() {
    let place = Place::new();
    fs::write(place.0.join("two.pcapng"), two_sections()).unwrap();
    assert_eq!(convert(&place, &["two.pcapng"], "pcapng", "one.pcapng").0, Some(0));
    let direct = fs::read(place.0.join("one.pcapng")).unwrap();
    for version in ["ctf", "ctf2"] {
        assert_eq!(convert(&place, &["two.pcapng"], version, "between").0, Some(0));
        assert_eq!(convert(&place, &["between"], "pcapng", "back.pcapng").0, Some(0));
        assert!(fs::read(place.0.join("back.pcapng")).unwrap() == direct, "{version}");
    }
    let arguments = ["-r", "one.pcapng", "-T", "fields", "-e", "frame.interface_name"];
    if let Some(lines) = lines_of(&place, "tshark", &arguments) {
        assert_eq!(lines, ["nic_in", "nic_out", "nic_out", "nic_in"]);
    }
}

/// Unreadable parts are reported, with exit code 1, and the rest is read.
#[test]
fn bad_parts_of_the_seeds_are_told() {
    let place = Place::new();
    let unknown = r#"[{"Benchmark": "ipc", "Measured": [1, 2]}]"#;
    let noisy = DUMP.replace("0 1100", "hello from the console\n0 1100");
    let rule = "a benchmark has a name, and results";
    for (name, text, events, told) in [
        ("unknown.json", unknown.to_owned(), 0, rule),
        ("wild.json", BENCHMARKS.replace("[1, 3]", "[1, null]"), 2, "no whole numbers"),
        ("noisy", noisy, 4, "a line is a core"),
        ("cut.csv", "5,0,7, 2,5\n10,0,7, 0\n20,0,7, 1,2\n".to_owned(), 2, "a line is a time"),
    ] {
        fs::write(place.0.join(name), text).unwrap();
        let info = place.lat(&["info", name]);
        let said = String::from_utf8(info.stdout).unwrap();
        assert!(said.contains(told), "{name}: {said}");
        let damaged = name != "wild.json";
        assert_eq!(info.status.code(), Some(i32::from(damaged)), "{name}: {said}");
        let print = place.lat(&["print", name]);
        let lines = String::from_utf8(print.stdout).unwrap();
        assert_eq!(lines.lines().count(), events, "{name}: {lines}");
    }
}
