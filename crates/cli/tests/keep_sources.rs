// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat keep` with all sources of `lat record`: running programs, policies, filters, the kernel, packets.
//! Also names of threads and programs that start and end.

use crate::kernel::usable;
use crate::place::Place;
use serde_json::Value;
use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A child process, killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn list(place: &Place, folder: &str) -> Value {
    let text = fs::read(place.0.join(folder).join("kept.json")).expect("a list");
    serde_json::from_slice(&text).expect("the list is JSON")
}

/// Returns the names of the windows of a folder.
fn windows(place: &Place, folder: &str) -> Vec<String> {
    let list = list(place, folder);
    let windows = list["windows"].as_array().expect("windows").iter();
    windows.map(|one| format!("{folder}/{}", one["name"].as_str().expect("a name"))).collect()
}

/// Runs `lat keep` until it ends, and returns its output.
fn keep(place: &Place, arguments: &[&str]) -> String {
    let times = ["keep", "-o", "kept", "--before", "50ms", "--after", "20ms"];
    let output = place.lat(&[&times[..], arguments].concat());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    text
}

/// Starts `spikes` as a separate process, and waits until it can be recorded.
fn spikes(place: &Place, arguments: &[&str]) -> Option<Running> {
    let program = place.example("spikes")?;
    let child = Command::new(program)
        .args(arguments)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .stdin(Stdio::null())
        .spawn()
        .expect("the program starts");
    let running = Running(child);
    let pid = running.0.id().to_string();
    while !String::from_utf8_lossy(&place.lat(&["list", &pid]).stdout).contains("TICK") {
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(running)
}

#[test]
fn a_running_program_is_watched() {
    let place = Place::new();
    // Slow requests continue for a minute; the recording lasts long enough for two.
    let Some(running) = spikes(&place, &["120", "400", "40"]) else { return };
    let pid = running.0.id().to_string();
    let when = ["--when", "span(request) > 30ms", "--duration", "2s", "--attach", &pid];
    keep(&place, &when);
    let windows = windows(&place, "kept");
    assert!(!windows.is_empty());
    let report = place.report(&windows[0]);
    assert!(report["events"]["spikes:TICK"].as_u64() > Some(0), "{report}");
    assert_eq!(report["processes"][0]["pid"].to_string(), pid);
}

#[test]
fn a_policy_says_which_program_is_watched_and_what_of_it() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let name = program.file_name().and_then(|name| name.to_str()).expect("a name");
    let policy = format!(
        "[[policy]]\nname = \"it\"\nprogram = {name:?}\nenable = [\"spikes:REQUEST\", \
         \"spikes:ANSWERED\"]\n\n[[policy]]\nrecord = false\n"
    );
    fs::write(place.0.join("p.toml"), policy).expect("a policy file");
    let program = program.to_str().expect("a path of letters");
    let when = ["--when", "span(request) > 30ms", "--policy", "p.toml", "--", program];
    keep(&place, &[&when[..], &["2", "300", "40"]].concat());
    let windows = windows(&place, "kept");
    assert!(windows.len() >= 2, "{windows:?}");
    for window in windows {
        let events = place.report(&window)["events"].clone();
        assert!(events.get("spikes:TICK").is_none() && events["spikes:REQUEST"].is_u64());
    }
}

#[test]
fn what_a_filter_keeps_out_is_in_no_window_and_fires_nothing() {
    let place = Place::new();
    let Some(running) = spikes(&place, &["6000", "50", "1"]) else { return };
    let pid = running.0.id().to_string();
    let filter = ["--filter", "spikes:ANSWERED: id & 1 == 1"];
    let when = ["--when", "event(spikes:ANSWERED, id >= 1000000)", "--duration", "1s"];
    keep(&place, &[&filter[..], &when, &["--attach", &pid]].concat());
    let list = list(&place, "kept");
    assert!(list["fired"].as_u64() > Some(0), "{list}");
    for window in windows(&place, "kept") {
        let all = ["print", &window, "--event", "spikes:ANSWERED", "--format", "json"];
        let printed = place.lat(&all).stdout;
        for line in String::from_utf8_lossy(&printed).lines() {
            let line: Value = serde_json::from_str(line).expect("a line is JSON");
            assert_eq!(line["fields"]["id"].as_u64().map(|id| id & 1), Some(1), "{line}");
        }
    }
}

#[test]
fn the_whole_machine_is_watched() {
    if !usable(&[]) {
        return;
    }
    let place = Place::new();
    // A program with a unique name.
    let name = format!("kept{}", std::process::id());
    let program = place.0.join(&name);
    fs::copy("/bin/sleep", &program).expect("a copy of sleep");
    let when = format!("event(sched:sched_process_exec, filename == {:?})", program);
    let script = format!("sleep 0.2; {} 0.05; sleep 0.2", program.display());
    let system = ["--system", "--kernel", "sched", "--"];
    keep(&place, &[&["--when", &when][..], &system, &["sh", "-c", &script]].concat());
    let list = list(&place, "kept");
    assert_eq!((&list["fired"], &list["problems"]), (&1.into(), &serde_json::json!([])));
    let window = &windows(&place, "kept")[0];
    let report = place.report(window);
    assert!(report["events"]["sched:sched_switch"].as_u64() > Some(0), "{report}");
    let printed = place.lat(&["print", window]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains(&name));
}

/// Chunks attribute kernel events to threads like the whole recording.
#[test]
fn pieces_say_whose_events_of_the_kernel_they_have() {
    if !usable(&[]) {
        return;
    }
    let place = Place::new();
    let options = [
        "record",
        "-o",
        "chunks",
        "--kernel",
        "sched",
        "--chunk-time",
        "100ms",
        "--flush-every",
        "50ms",
        "--",
    ];
    let output = place
        .lat(&[&options[..], &["sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.1; done"]].concat());
    if !output.status.success() {
        println!("SKIPPED: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let mut pieces = 0;
    for entry in fs::read_dir(place.0.join("chunks")).expect("a folder").flatten() {
        let Ok(metadata) = fs::read(entry.path().join("ctf/metadata")) else { continue };
        let text = String::from_utf8_lossy(&metadata);
        assert!(text.contains("lateralis_kernel_scope"), "{}", entry.path().display());
        assert!(!text.contains("lateralis_extent"), "{}", entry.path().display());
        pieces += 1;
    }
    assert!(pieces >= 2, "{pieces}");
}

#[test]
fn packets_are_watched() {
    let place = Place::new();
    if !Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n") {
        eprintln!("SKIPPED: packets are captured by root only");
        return;
    }
    // This test sends packets over the loopback until `lat` has ended.
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let to = socket.local_addr().expect("an address");
            // Partner: the store below; it only has to become visible eventually.
            while !is_over.load(Ordering::Relaxed) {
                let _ = socket.send_to(&[7; 1111], to);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        // 1111 bytes after the headers of Ethernet, IP and UDP.
        let when = ["--when", "event(packets:packet, interface == \"lo\", original_bytes == 1153)"];
        let rest = ["--packets", "lo", "--", "sleep", "0.5"];
        keep(&place, &[&when[..], &rest].concat());
        is_over.store(true, Ordering::Relaxed);
    });
    let window = &windows(&place, "kept")[0];
    assert!(place.report(window)["events"]["packets:packet"].as_u64() > Some(0));
}

#[test]
fn a_window_has_the_names_that_threads_had_when_it_began() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let program = program.to_str().expect("a path of letters");
    keep(
        &place,
        &["--when", "event(spikes:ANSWERED, id == 1000001)", "--", program, "2", "300", "5"],
    );
    let window = &windows(&place, "kept")[0];
    let names: Vec<Value> = String::from_utf8_lossy(
        &place
            .lat(&["print", window, "--event", "lateralis:THREAD_NAME", "--format", "json"])
            .stdout,
    )
    .lines()
    .map(|line| serde_json::from_str(line).expect("a line is JSON"))
    .collect();
    assert!(names.iter().any(|line| line["fields"]["name"] == "ticker"), "{names:?}");
    let list = list(&place, "kept");
    // The clock is measured again at the end.
    let time = |value: &Value| value.as_i64().unwrap_or_else(|| panic!("a time: {value}"));
    let (at, from) = (time(&names[0]["time_ns"]), time(&list["windows"][0]["from_ns"]));
    assert!((at - from).abs() <= 100_000, "{at} {from}");
    if let Ok(output) = Command::new("babeltrace2").arg(place.0.join(window).join("ctf")).output() {
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaints.is_empty(), "{complaints}");
    }
}

#[test]
fn a_program_that_has_not_begun_or_has_ended_misses_no_heartbeat() {
    let place = Place::new();
    let Some(program) = place.example("spikes") else { return };
    let program = program.display();
    // Two programs, with two seconds between, before and after them.
    let script = format!("sleep 2; {program} 0 300; sleep 2; {program} 0 300; sleep 2");
    let when = ["--when", "missing(spikes:TICK) for 1500ms", "--follow", "--", "sh", "-c"];
    keep(&place, &[&when[..], &[&script]].concat());
    assert_eq!(list(&place, "kept")["fired"], 0, "{}", list(&place, "kept"));
    // A program that runs without writing events does fire the condition.
    let silent = format!("{program} 0 300 & exec {program} 1 1 4000");
    let when = ["--when", "missing(spikes:ANSWERED) for 1500ms", "-o", "silent", "--", "sh", "-c"];
    let times = ["keep", "--before", "50ms", "--after", "20ms"];
    let output = place.lat(&[&times[..], &when, &[&silent]].concat());
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(list(&place, "silent")["fired"], 1, "{}", list(&place, "silent"));
}
