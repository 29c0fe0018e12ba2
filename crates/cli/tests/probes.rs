// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat record --probe`: functions and USDT probes of uninstrumented programs. Needs root.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use lateralis_recorder::linux::kernel::tracefs;
use serde_json::Value;

use crate::kernel::usable;
use crate::place::Place;

/// A function that sleeps, a recursive one, and a probe with a semaphore.
const PROGRAM: &str = r#"
    #include <unistd.h>
    __attribute__((section(".probes"))) volatile unsigned short app_done_semaphore;
    #define BASE \
        ".ifndef _.stapsdt.base\n" \
        ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
        ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n" \
        "_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n"
    #define POINT(number, double) __asm__ volatile( \
        "990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n" \
        ".4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n" \
        "993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte app_done_semaphore\n" \
        ".asciz \"app\"\n.asciz \"done\"\n.asciz \"-4@%0 8@%1 8@$7\"\n" \
        "994: .balign 4\n.popsection\n" BASE :: "r"(number), "m"(double))
    __attribute__((noinline)) void work(int us) { usleep((unsigned)us); __asm__ volatile(""); }
    __attribute__((noinline)) int depth(int n) { return n == 0 ? 0 : 1 + depth(n - 1); }
    int main(void) {
        for (int n = 0; n < 50; n++) {
            volatile unsigned long twice = 2ul * (unsigned)n;
            work(n < 40 ? 100 : 3000);
            if (app_done_semaphore) POINT(-n, twice);
        }
        return depth(4) - 4;
    }
"#;

fn program(place: &Place) -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("SKIPPED: no C compiler here");
        return None;
    }
    fs::write(place.0.join("app.c"), PROGRAM).expect("a file");
    // Without optimisation, so that the recursion is not removed.
    let output =
        Command::new("cc").args(["-O0", "-o", "app", "app.c"]).current_dir(&place.0).output();
    let output = output.expect("cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(place.0.join("app"))
}

fn events(place: &Place, name: &str) -> Vec<Value> {
    let output = place.lat(&["print", "out", "--format", "json", "--event", name]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Checks that the kernel has no probe of this process's recorders left.
fn nothing_is_left(place: &Place) {
    let text = fs::read_to_string(tracefs().expect("it is there").join("uprobe_events"));
    let text = text.expect("definitions");
    let own = place.0.to_str().expect("letters");
    assert!(!text.contains(own), "{text}");
}

#[test]
fn functions_are_spans_and_points_have_their_arguments() {
    if !usable(&[]) || !cfg!(target_arch = "x86_64") {
        return;
    }
    let place = Place::new();
    let Some(_) = program(&place) else { return };
    let probes = "./app:work,./app:depth,./app:app:done,./app:main%entry";
    let output = place.lat(&["record", "--quiet", "--probe", probes, "-o", "out", "--", "./app"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = place.report("out");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0), "{}", report["problems"]);
    let count = |name: &str| report["events"][name].as_u64().unwrap_or(0);
    let names = ["app:work", "app:work_return", "app:depth", "app:depth_return", "app:done"];
    assert_eq!(names.map(count), [50, 50, 5, 5, 50], "{}", report["events"]);
    assert_eq!((count("app:main"), count("app:main_return")), (1, 0));
    let done = events(&place, "app:done");
    for (n, event) in done.iter().enumerate() {
        let fields = &event["fields"];
        let expected = (-(n as i64), 2 * n as u64, 7);
        let found = (&fields["arg1"], &fields["arg2"], &fields["arg3"]);
        assert_eq!(found, (&expected.0.into(), &expected.1.into(), &expected.2.into()), "{event}");
    }
    // Innermost call first, with return values.
    let returned = events(&place, "app:depth_return");
    let values: Vec<u64> = returned.iter().filter_map(|e| e["fields"]["ret"].as_u64()).collect();
    assert_eq!(values, [0, 1, 2, 3, 4]);
    // Functions are spans without a declaration.
    let stats = place.json(&["stats", "--json", "out"]);
    let spans = stats["spans"].as_array().expect("spans");
    let work = spans.iter().find(|span| span["name"] == "work").expect("the function");
    assert_eq!(work["count"], 50, "{work}");
    let text = String::from_utf8_lossy(&place.lat(&["stats", "out"]).stdout).into_owned();
    assert!(text.contains("work") && text.contains("depth"), "{text}");
    nothing_is_left(&place);
}

/// Calls a function for each byte that it reads.
const CALLED: &str = r#"
    #include <unistd.h>
    __attribute__((noinline)) int work(int n) { __asm__ volatile(""); return n + 1; }
    int main(void) {
        char byte;
        int calls = 0;
        while (read(0, &byte, 1) == 1) {
            calls = work(calls);
            if (write(1, &byte, 1) != 1) return 1;
        }
        return 0;
    }
"#;

#[test]
fn a_running_program_is_probed_from_the_moment_it_is_attached_to() {
    if !usable(&[]) {
        return;
    }
    let place = Place::new();
    let Some(_) = program(&place) else { return };
    fs::write(place.0.join("called.c"), CALLED).expect("a file");
    let built = ["-O1", "-o", "called", "called.c"];
    let built = Command::new("cc").args(built).current_dir(&place.0).status().expect("cc");
    assert!(built.success());
    let start = || {
        let mut command = Command::new(place.0.join("called"));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("the program");
        let (input, output) = (child.stdin.take().expect("its"), child.stdout.take().expect("its"));
        (child, input, output)
    };
    let mut calls = 0;
    let mut call = |input: &mut std::process::ChildStdin,
                    output: &mut std::process::ChildStdout| {
        input.write_all(b"x").expect("a pipe");
        std::io::Read::read_exact(output, &mut [0]).expect("an answer");
        calls += 1;
        calls
    };
    let (mut child, mut input, mut output) = start();
    // A second process of the same program is not recorded.
    let (mut other, mut other_input, mut other_output) = start();
    let pid = child.id().to_string();
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "--quiet", "--attach", &pid, "--probe", "./called:work", "-o", "out"])
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .spawn()
        .expect("lat can be started");
    // The recorder is attached when the first call is in the recording, at the next flush.
    let is_there = || {
        let streams = fs::read_dir(place.0.join("out/ctf")).into_iter().flatten().flatten();
        let text = |path: PathBuf| fs::read(path).unwrap_or_default();
        // `PROCESS` records are written at the start; the record of a call contains its thread id.
        streams.filter(|one| one.path().is_file()).any(|one| text(one.path()).len() > 100)
            && !events(&place, "called:work").is_empty()
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut before = 0;
    while !is_there() {
        assert!(std::time::Instant::now() < until, "no call is ever there");
        before = call(&mut input, &mut output);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let mut all = before;
    for _ in 0..200 {
        all = call(&mut input, &mut output);
        other_input.write_all(b"x").expect("a pipe");
        std::io::Read::read_exact(&mut other_output, &mut [0]).expect("an answer");
    }
    drop((input, other_input));
    assert!(child.wait().expect("its status").success());
    assert!(other.wait().expect("its status").success());
    assert_eq!(recorder.wait().expect("its status").code(), Some(0));
    let report = place.report("out");
    let count = |name: &str| report["events"][name].as_u64().unwrap_or(0);
    // All calls since then are recorded, each with its return, up to the last one.
    let found = count("called:work");
    assert_eq!(count("called:work_return"), found, "{}", report["events"]);
    assert!((201..=all).contains(&found), "{found} of {all}");
    let returned = events(&place, "called:work_return");
    let values: Vec<u64> = returned.iter().filter_map(|e| e["fields"]["ret"].as_u64()).collect();
    assert_eq!(values, (all - found + 1..=all).collect::<Vec<_>>());
    assert!(
        returned.iter().all(
            |event| event["pid"].as_u64().map(|number| number.to_string()) == Some(pid.clone())
        ),
        "{returned:?}"
    );
    nothing_is_left(&place);
}

/// Machines with a compiler also have a `libc.so` that is a text file for the linker.
#[test]
fn functions_of_the_c_library_are_found() {
    if !usable(&[]) {
        return;
    }
    let place = Place::new();
    let words = ["record", "--quiet", "--probe", "libc:malloc", "-o", "out", "--", "sh", "-c", ":"];
    let output = place.lat(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(events(&place, "*malloc").len() > 1, "a shell that allocates nothing");
}

#[test]
fn names_that_are_not_there_are_told_before_anything_starts() {
    let place = Place::new();
    let Some(_) = program(&place) else { return };
    let refused = |probe: &str, words: &[&str]| {
        let output = place.lat(&["record", "--probe", probe, "-o", "out", "--", "./app"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{probe}: {text}");
        for word in words {
            assert!(text.contains(word), "{probe}: {text}");
        }
        assert!(!place.0.join("out").exists());
    };
    refused("./app:wrok", &["error: ", "./app:wrok", "did you mean work"]);
    refused("./app:app:doen", &["did you mean app:done"]);
    refused("./app:elephants", &["nm "]);
    refused("no-such-program:work", &["no-such-program", "whole path"]);
    refused("./app.c:work", &["no program"]);
    refused("./app", &["PROGRAM:FUNCTION"]);
    refused("./app:work%middle", &["%entry"]);
}

#[test]
fn a_killed_recorder_s_probes_are_taken_away_by_the_next() {
    if !usable(&[]) {
        return;
    }
    let place = Place::new();
    let Some(_) = program(&place) else { return };
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "--quiet", "--probe", "./app:work", "-o", "out", "--"])
        .args(["sh", "-c", "echo begun; exec sleep 60"])
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("lat can be started");
    let mut line = String::new();
    let output = recorder.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    recorder.kill().expect("a process");
    recorder.wait().expect("its status");
    let list = place.0.join("uprobe_events");
    let text = fs::read_to_string(tracefs().expect("there").join("uprobe_events")).expect("text");
    assert!(text.contains(place.0.to_str().expect("letters")), "{}: {text}", list.display());
    let next = ["record", "--quiet", "--probe", "./app:work", "-o", "next", "--", "true"];
    let output = place.lat(&next);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    nothing_is_left(&place);
    let sleeper = format!("/proc/{}/task", recorder.id());
    assert!(fs::read_dir(sleeper).is_err());
}

#[test]
fn commands_of_a_real_server_are_spans() {
    if !usable(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it").port();
    let text = port.to_string();
    let server = ["redis-server", "--port", &text, "--save", "", "--bind", "127.0.0.1"];
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "--quiet", "--probe", "redis-server:processCommand", "-o", "out", "--"])
        .args(server)
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .stdout(Stdio::null())
        .spawn()
        .expect("lat can be started");
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut client = loop {
        if let Ok(client) = TcpStream::connect(("127.0.0.1", port)) {
            break client;
        }
        assert!(std::time::Instant::now() < end, "redis-server never listened");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let mut answers = BufReader::new(client.try_clone().expect("a socket"));
    for _ in 0..100 {
        client.write_all(b"PING\r\n").expect("a server");
        let mut line = String::new();
        answers.read_line(&mut line).expect("an answer");
        assert_eq!(line, "+PONG\r\n");
    }
    client.write_all(b"SHUTDOWN NOSAVE\r\n").expect("a server");
    assert_eq!(recorder.wait().expect("its status").code(), Some(0));
    let report = place.report("out");
    // SHUTDOWN does not return.
    assert_eq!(report["events"]["redis_server:processCommand"], 101, "{}", report["events"]);
    assert_eq!(report["events"]["redis_server:processCommand_return"], 100);
    let stats = place.json(&["stats", "--json", "out"]);
    let spans = stats["spans"].as_array().expect("spans");
    let span = spans.iter().find(|span| span["name"] == "processCommand").expect("the function");
    assert_eq!(span["count"], 100, "{span}");
}
