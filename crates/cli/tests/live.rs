// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat live`, `lat record --live`, `lat record --connect`: a client receives the contents of the folder, and
//! everything that it does not receive is counted.

mod tls;

use crate::place;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use place::Place;
use serde_json::Value;

/// Time limit of every step.
const LONG: Duration = Duration::from_secs(60);

/// A child process of a test, killed if it still runs when the test ends.
pub struct Running(pub Child, BufReader<ChildStderr>);

impl Running {
    /// Wraps a process whose standard error is a pipe.
    pub fn of(mut child: Child) -> Self {
        let stderr = BufReader::new(child.stderr.take().expect("its errors"));
        Self(child, stderr)
    }

    /// Returns the next line on standard error that begins with `start`, without that prefix.
    pub fn told(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.1.read_line(&mut line).expect("text") > 0, "it never said {start:?}");
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim_end().to_owned();
            }
        }
    }

    /// Returns the address in `live on ADDRESS: …`.
    pub fn address(&mut self) -> String {
        let rest = self.told("live on ");
        rest.split_once(": ").expect("an address").0.to_owned()
    }

    pub fn wait(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        let _ = self.1.read_to_string(&mut text);
        (self.0.wait().expect("its status").code(), text)
    }

    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn start(place: &Place, arguments: &[&str], input: Stdio, output: Stdio) -> Running {
    let child = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(arguments)
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .env("XDG_CACHE_HOME", place.0.join("cache"))
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .expect("lat can be started");
    Running::of(child)
}

fn quiet(place: &Place, arguments: &[&str]) -> Running {
    start(place, arguments, Stdio::null(), Stdio::null())
}

/// Compiles a program that writes events when its standard input requests it, and ends with its input. `go N`
/// writes N events.
pub fn writer(place: &Place) -> Option<PathBuf> {
    let source = place.0.join("writer.c");
    let text = r#"
        #include <lockio.h>
        #include <stdio.h>
        int main(void) {
            unsigned long count;
            puts("ready");
            fflush(stdout);
            while (scanf("%lu", &count) == 1) {
                for (unsigned long n = 0; n < count; n++)
                    lat_server_request((uint32_t)n);
                printf("%lu\n", count);
                fflush(stdout);
            }
            return 0;
        }
    "#;
    fs::write(&source, text).expect("its source");
    place.compile("writer", &source, "lockio")
}

/// Returns names and contents of all files of a trace, sorted: streams, metadata, index.
fn files(recording: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for folder in ["ctf", "ctf/index"] {
        for entry in fs::read_dir(recording.join(folder)).expect("a recording").flatten() {
            if entry.path().is_file() {
                let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
                all.insert(name, fs::read(entry.path()).expect("a file"));
            }
        }
    }
    all
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Writes `count` events, and waits until they are written.
pub fn write(running: &mut Running, output: &mut impl std::io::BufRead, count: u64) {
    let input = running.0.stdin.as_mut().expect("its input");
    writeln!(input, "{count}").expect("a pipe");
    let mut line = String::new();
    output.read_line(&mut line).expect("an answer");
    assert_eq!(line.trim(), count.to_string());
}

/// Starts a recording of the writer with these options. Returns it with the output of the program, which has
/// printed `ready`.
pub fn record(
    place: &Place,
    options: &[&str],
) -> Option<(Running, BufReader<std::process::ChildStdout>)> {
    let program = writer(place)?;
    let all = [options, &["--", program.to_str().expect("a path of letters")]].concat();
    let mut running = start(place, &all, Stdio::piped(), Stdio::piped());
    let output = BufReader::new(running.0.stdout.take().expect("its output"));
    Some((running, output))
}

pub fn ready(output: &mut impl std::io::BufRead) {
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), "ready");
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn two_clients_have_what_the_directory_has_and_a_stuck_one_knows_what_it_lost() {
    let place = Place::new();
    let options = ["record", "-o", "here", "--live", "127.0.0.1:0", "--live-window", "8M"];
    let small = ["--packet", "4K", "--buffer", "8M"];
    let Some((mut recorder, mut output)) = record(&place, &[&options[..], &small].concat()) else {
        return;
    };
    let address = recorder.address();
    ready(&mut output);
    let client = |name: &str| quiet(&place, &["record", "--connect", &address, "-o", name]);
    let first = client("first");
    // A client that sends a request and then never reads.
    let mut stuck = TcpStream::connect(&address).expect("a server");
    stuck.write_all(&hello()).expect("a connection");
    wait_for("the first client", || place.0.join("first/report.json").exists());
    // A client that connects halfway through.
    for _ in 0..40 {
        write(&mut recorder, &mut output, 20_000);
        sleep(Duration::from_millis(5));
    }
    let second = client("second");
    wait_for("the second client", || place.0.join("second/report.json").exists());
    for _ in 0..40 {
        write(&mut recorder, &mut output, 20_000);
        sleep(Duration::from_millis(5));
    }
    drop(recorder.0.stdin.take());
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    let report = place.report("here");
    assert_eq!(report["totals"]["lost"]["total"], 0);
    let events: u64 = report["totals"]["events"].as_u64().expect("events");
    assert!(events >= 1_600_000, "{events}");
    let clients = report["live"]["clients"].as_array().expect("clients");
    assert_eq!(clients.len(), 3, "{clients:?}");
    let complete = files(&place.0.join("here"));
    for (client, name) in [(first, "first"), (second, "second")] {
        let (status, text) = client.wait();
        let received = place.report(name);
        let dropped = received["received"]["dropped_of"].as_array().expect("a list");
        // Nothing is dropped, unless the client got no CPU time on this machine, which it reports.
        if !dropped.is_empty() {
            eprintln!("SKIPPED: {name} was too slow here: {dropped:?}");
            continue;
        }
        assert_eq!(status, Some(0), "{text}");
        assert_eq!(received["complete"], true);
        let differs: Vec<_> = files(&place.0.join(name))
            .iter()
            .filter(|(name, bytes)| complete.get(*name) != Some(bytes))
            .map(|(name, _)| name.clone())
            .collect();
        assert_eq!(differs, Vec::<String>::new());
        assert_eq!(files(&place.0.join(name)).len(), complete.len());
        assert_eq!(received["events"], report["events"]);
    }
    // For the stuck client, the packets sent and the packets dropped are all packets. On a busy machine other
    // clients may have been slow, too, but none dropped more.
    let stuck_report =
        clients.iter().max_by_key(|client| client["dropped"]["packets"].as_u64()).expect("clients");
    assert!(stuck_report["dropped"]["packets"].as_u64() > Some(0), "{stuck_report}");
    let number = |of: &Value, what: &str| of[what].as_u64().unwrap_or_else(|| panic!("{what}"));
    for what in ["packets", "bytes", "events"] {
        let (sent, dropped) = (&stuck_report["sent"], &stuck_report["dropped"]);
        let all = number(&report["totals"], what);
        assert_eq!(number(sent, what) + number(dropped, what), all, "{what}: {stuck_report}");
    }
    let mut bytes = Vec::new();
    stuck.set_read_timeout(Some(LONG)).expect("a time limit");
    let _ = stuck.read_to_end(&mut bytes);
    let received = frames(&bytes).into_iter().filter(|(kind, _)| *kind == 4).count();
    assert_eq!(received as u64, number(&stuck_report["sent"], "packets"));
}

/// Preamble and request of a client that has no data yet, written after `spec/live.md`.
pub fn hello() -> Vec<u8> {
    let mut bytes = b"LATLIVE\n\x01\0\0\0\0\0\0\0".to_vec();
    let body = [0; 24];
    let mut head = [24u32.to_le_bytes(), 32u32.to_le_bytes()].concat();
    let sum = crc32c(&[&head[..], &body].concat());
    head.extend(sum.to_le_bytes());
    head.extend([0; 4]);
    bytes.extend(head);
    bytes.extend(body);
    bytes
}

/// CRC-32C, computed bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ ((sum & 1) * 0x82f6_3b78))
    })
}

/// Parses type and body of the complete frames after the preamble, by the text of the specification.
fn frames(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    assert!(bytes.starts_with(b"LATLIVE\n\x01\0"), "no preamble");
    let (mut at, mut all) = (16, Vec::new());
    while let Some(head) = bytes.get(at..at + 16) {
        let length = u32::from_le_bytes(head[..4].try_into().expect("four")) as usize;
        let Some(body) = bytes.get(at + 16..at + 16 + length) else { break };
        all.push((u16::from_le_bytes([head[4], head[5]]), body.to_vec()));
        at += 16 + length;
    }
    all
}

#[test]
fn a_client_that_wakes_up_is_told_what_it_missed_and_its_recording_says_so() {
    let place = Place::new();
    let options = ["live", "127.0.0.1:0", "--live-window", "256K", "--packet", "4K"];
    let Some((mut recorder, mut output)) = record(&place, &options) else { return };
    let address = recorder.address();
    ready(&mut output);
    let client = quiet(&place, &["record", "--connect", &address, "-o", "slow"]);
    wait_for("the client", || place.0.join("slow/report.json").exists());
    let pid = client.0.id().to_string();
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &pid]).status();
        assert!(status.expect("kill").success());
    };
    write(&mut recorder, &mut output, 10_000);
    signal("-STOP");
    // More than the buffers of a connection hold.
    for _ in 0..60 {
        write(&mut recorder, &mut output, 20_000);
        sleep(Duration::from_millis(10));
    }
    signal("-CONT");
    write(&mut recorder, &mut output, 10_000);
    drop(recorder.0.stdin.take());
    let (status, text) = client.wait();
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("by the server"), "{text}");
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    let report = place.report("slow");
    assert_eq!(report["complete"], true);
    let sum = |of: &Value, what: &str| -> u64 {
        of.as_array().expect("a list").iter().filter_map(|one| one[what].as_u64()).sum()
    };
    let dropped = sum(&report["received"]["dropped_of"], "events");
    let here = report["totals"]["events"].as_u64().expect("events");
    let lost = report["totals"]["lost"]["total"].as_u64().expect("losses");
    assert!(dropped > 0, "{report}");
    assert_eq!(here + dropped + lost, 1_220_000, "{here} + {dropped} + {lost}");
    // Readers report the gap.
    let info = place.json(&["info", "--json", "slow"]);
    let packets = sum(&report["received"]["dropped_of"], "packets");
    assert_eq!(sum(&info["losses"], "count"), packets, "{info}");
    let printed = place.lat(&["print", "slow"]);
    let lines = String::from_utf8_lossy(&printed.stdout);
    let lines = lines.lines().filter(|line| line.contains("server:REQUEST")).count() as u64;
    assert_eq!(lines, here, "{}", stderr(&printed));
    // The recording machine keeps no folder.
    let left: Vec<_> = fs::read_dir(place.0.join("areas")).expect("areas").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_stuck_client_that_is_killed_costs_itself_only_and_what_it_lost_is_known_exactly() {
    let place = Place::new();
    let options = ["live", "127.0.0.1:0", "--live-window", "256K", "--packet", "4K"];
    let Some((mut recorder, mut output)) = record(&place, &options) else { return };
    let address = recorder.address();
    ready(&mut output);
    let connect = ["record", "--connect", &address, "-o"];
    let client = |name: &str| quiet(&place, &[&connect[..], &[name]].concat());
    let healthy = client("healthy");
    wait_for("the healthy client", || place.0.join("healthy/report.json").exists());
    let mut stuck = client("stuck");
    wait_for("the client", || place.0.join("stuck/report.json").exists());
    write(&mut recorder, &mut output, 10_000);
    // The client has some data before it is stopped; its losses begin after that data.
    let is_stream = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().contains("cpu");
    let has_some = |entry: fs::DirEntry| entry.metadata().is_ok_and(|file| file.len() >= 4096);
    wait_for("packets", || {
        let files = fs::read_dir(place.0.join("stuck/ctf")).expect("a folder").flatten();
        files.filter(is_stream).any(has_some)
    });
    let pid = stuck.0.id().to_string();
    let status = Command::new("kill").args(["-STOP", &pid]).status();
    assert!(status.expect("kill").success());
    // The program answers each time: it does not wait for the client. The data exceed the buffers of a
    // connection.
    let burst = |recorder: &mut Running, output: &mut BufReader<_>| {
        for _ in 0..40 {
            write(recorder, output, 20_000);
            sleep(Duration::from_millis(10));
        }
    };
    burst(&mut recorder, &mut output);
    stuck.kill();
    crate::faults::killed("live client");
    burst(&mut recorder, &mut output);
    // The client resumes with its data, and the server reports the missed packets.
    let connections = || {
        let text = fs::read_to_string(place.0.join("stuck/report.json")).unwrap_or_default();
        let report: Value = serde_json::from_str(&text).unwrap_or_default();
        report["received"]["connections"].as_u64().unwrap_or(0)
    };
    let before = connections();
    let again = client("stuck");
    wait_for("the client again", || connections() > before);
    write(&mut recorder, &mut output, 10_000);
    drop(recorder.0.stdin.take());
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    let (_, text) = again.wait();
    let (_, healthy_text) = healthy.wait();
    let sum = |of: &Value, what: &str| -> u64 {
        of.as_array().expect("a list").iter().filter_map(|one| one[what].as_u64()).sum()
    };
    for (name, text) in [("stuck", text), ("healthy", healthy_text)] {
        let report = place.report(name);
        assert_eq!(report["complete"], true, "{text}");
        let dropped = sum(&report["received"]["dropped_of"], "events");
        let here = report["totals"]["events"].as_u64().expect("events");
        let lost = report["totals"]["lost"]["total"].as_u64().expect("losses");
        assert_eq!(here + dropped + lost, 1_620_000, "{name}: {here} + {dropped} + {lost}");
        assert!(dropped > 0 || name == "healthy", "{report}");
        eprintln!("{name}: {here} received, {dropped} dropped, {lost} lost in the rings");
    }
}

#[test]
fn killed_clients_come_back_and_killed_servers_leave_what_was_sent() {
    let place = Place::new();
    let options = ["record", "-o", "here", "--live", "127.0.0.1:0", "--packet", "4K"];
    let Some((mut recorder, mut output)) = record(&place, &options) else { return };
    let address = recorder.address();
    ready(&mut output);
    let connect = ["record", "--connect", &address, "--retry", "0s", "-o"];
    let client = |name: &'static str| quiet(&place, &[&connect[..], &[name]].concat());
    // The client is killed repeatedly, at arbitrary times.
    let rounds = if crate::faults::slow() { 30 } else { 10 };
    for round in 0..rounds {
        let mut killed = client("back");
        // A client that is killed before it has received data can also resume.
        if round % 3 == 0 {
            wait_for("a report", || place.0.join("back/report.json").exists());
        }
        write(&mut recorder, &mut output, 30_000);
        sleep(Duration::from_millis(1 + round * 17 % 60));
        killed.kill();
        crate::faults::killed("live client");
        write(&mut recorder, &mut output, 5_000);
    }
    let connections = || {
        let text = fs::read_to_string(place.0.join("back/report.json")).unwrap_or_default();
        let report: Value = serde_json::from_str(&text).unwrap_or_default();
        report["received"]["connections"].as_u64().unwrap_or(0)
    };
    let before = connections();
    let last = client("back");
    wait_for("the last client", || connections() > before);
    drop(recorder.0.stdin.take());
    let (status, text) = last.wait();
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(files(&place.0.join("back")), files(&place.0.join("here")));
    let report = place.report("back");
    assert_eq!(report["totals"]["events"], rounds * 35_000);
    assert!(report["received"]["connections"].as_u64() > Some(1));
    // A complete recording is not overwritten.
    let again = place.lat(&["record", "--connect", &address, "-o", "back"]);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));

    // The server is killed: the data sent until then are a recording after recovery.
    let options = ["record", "-o", "killed", "--live", "127.0.0.1:0", "--packet", "4K"];
    let Some((mut recorder, mut output)) = record(&place, &options) else { return };
    let address = recorder.address();
    ready(&mut output);
    let client = quiet(&place, &["record", "--connect", &address, "--retry", "0s", "-o", "left"]);
    wait_for("the client", || place.0.join("left/report.json").exists());
    write(&mut recorder, &mut output, 50_000);
    wait_for("packets", || {
        fs::read_dir(place.0.join("left/ctf")).is_ok_and(|all| {
            all.flatten().any(|entry| entry.metadata().is_ok_and(|file| file.len() > 100_000))
        })
    });
    recorder.kill();
    crate::faults::killed("recorder");
    let (status, text) = client.wait();
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("ended before the recording did"), "{text}");
    let recovered = place.lat(&["recover", "left", "-o", "whole"]);
    assert!(matches!(recovered.status.code(), Some(0 | 1)), "{}", stderr(&recovered));
    let report = place.report("whole");
    assert!(report["totals"]["events"].as_u64() > Some(5_000), "{report}");
    assert_eq!(report["totals"]["damaged_packets"], 0);
}

#[test]
fn over_a_pipe_the_stream_is_the_same_and_the_program_keeps_its_output_out_of_it() {
    let place = Place::new();
    let Some(program) = writer(&place) else { return };
    let program = program.to_str().expect("a path of letters");
    let mut server =
        start(&place, &["live", "-", "-o", "here", "--", program], Stdio::piped(), Stdio::piped());
    let stream = server.0.stdout.take().expect("its output");
    let client = start(
        &place,
        &["record", "--connect", "-", "-o", "there"],
        Stdio::from(stream),
        Stdio::null(),
    );
    let mut input = server.0.stdin.take().expect("its input");
    writeln!(input, "12345").expect("a pipe");
    drop(input);
    let (status, text) = server.wait();
    assert_eq!(status, Some(0), "{text}");
    // Standard output is the stream; the program's output is on standard error.
    assert!(text.contains("ready") && text.contains("12345"), "{text}");
    let (status, text) = client.wait();
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(files(&place.0.join("here")), files(&place.0.join("there")));
    assert_eq!(place.report("there")["totals"]["events"], 12_345);
}

#[test]
fn who_may_not_is_told_why() {
    let place = Place::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = place.lat(arguments);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        for word in words {
            assert!(text.contains(word), "{arguments:?}: {text}");
        }
    };
    refused(&["live", "0.0.0.0:0", "--", "true"], &["0.0.0.0:0", "--token", "ssh"]);
    let short = ["live", "0.0.0.0:0", "--token", "short", "--", "true"];
    refused(&short, &["16 characters"]);
    refused(&["live", "nonsense", "--", "true"], &["nonsense", "HOST:PORT"]);
    refused(&["record", "--connect", "127.0.0.1:1", "-o", "x"], &["127.0.0.1:1"]);
    assert!(!place.0.join("x").exists());
    // Another program listens on the port.
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("its address").to_string();
    let talk = std::thread::spawn(move || {
        let (mut peer, _) = other.accept().expect("a client");
        let _ = peer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = peer.read(&mut [0; 100]);
    });
    refused(&["record", "--connect", &address, "-o", "x"], &["no live stream"]);
    talk.join().expect("no panic");

    let options = ["live", "127.0.0.1:0", "--token", "a secret that is long"];
    let Some((mut recorder, mut output)) = record(&place, &options) else { return };
    let address = recorder.address();
    ready(&mut output);
    refused(&["record", "--connect", &address, "-o", "y"], &["token is wrong"]);
    let wrong = ["record", "--connect", &address, "--token", "a secret that is lonG", "-o", "y"];
    refused(&wrong, &["token is wrong"]);
    let right = ["record", "--connect", &address, "--token", "a secret that is long", "-o", "z"];
    let client = quiet(&place, &right);
    wait_for("the client", || place.0.join("z/report.json").exists());
    write(&mut recorder, &mut output, 100);
    drop(recorder.0.stdin.take());
    assert_eq!(client.wait().0, Some(0));
    assert_eq!(recorder.wait().0, Some(0));
    assert_eq!(place.report("z")["totals"]["events"], 100);
}

#[test]
fn nonsense_from_clients_harms_nobody() {
    let place = Place::new();
    let Some((mut recorder, mut output)) = record(&place, &["live", "127.0.0.1:0"]) else { return };
    let address = recorder.address();
    ready(&mut output);
    let good = quiet(&place, &["record", "--connect", &address, "-o", "good"]);
    wait_for("the client", || place.0.join("good/report.json").exists());
    let mut huge = hello();
    huge[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    let flipped: Vec<u8> = hello().iter().map(|byte| byte ^ 1).collect();
    for bytes in [&b"GET / HTTP/1.0\r\n\r\n"[..], &huge, &flipped, &hello()[..20], &[]] {
        let mut peer = TcpStream::connect(&address).expect("a server");
        let _ = peer.write_all(bytes);
    }
    write(&mut recorder, &mut output, 1_000);
    drop(recorder.0.stdin.take());
    assert_eq!(good.wait().0, Some(0));
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(place.report("good")["totals"]["events"], 1_000);
}

/// Returns core, time and word of each event of dumps, parsed by the text of Barrelfish's technical note 8,
/// independently of Lateralis. Lengths that precede dumps are checked and removed.
fn events_of_dumps(mut bytes: &[u8]) -> Vec<(u32, u64, u64)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let length = std::str::from_utf8(&bytes[..8]).expect("digits");
        let length: usize = length.parse().expect("eight digits in front of a dump");
        let text = std::str::from_utf8(&bytes[8..8 + length]).expect("text");
        assert!(text.starts_with("# Start ") && text.ends_with('\n'), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let [core, time, word] = words[..] else { panic!("{line}") };
            let word = u64::from_str_radix(word, 16).expect("hexadecimal");
            all.push((core.parse().expect("a core"), time.parse().expect("a time"), word));
        }
        bytes = &bytes[8 + length..];
    }
    all
}

#[test]
fn netcat_gets_dumps_that_the_importer_and_others_read_alike() {
    let place = Place::new();
    let options = ["live", "--bfscope", "0", "--flush-every", "100ms", "--dump", "else.trc"];
    let Some((mut recorder, mut output)) = record(&place, &options) else { return };
    let rest = recorder.told("bfscope on ");
    let address = rest.split_once(": ").expect("an address").0.to_owned();
    ready(&mut output);
    // No client is connected: dumps go to the file.
    write(&mut recorder, &mut output, 10);
    wait_for("the file", || {
        fs::metadata(place.0.join("else.trc")).is_ok_and(|file| file.len() > 0)
    });
    // A plain socket, like that of netcat, receives all dumps from now on.
    let mut netcat = TcpStream::connect(&address).expect("a bfscope");
    netcat.write_all(b"trace\n").expect("a connection");
    netcat.set_read_timeout(Some(LONG)).expect("a time limit");
    sleep(Duration::from_millis(300));
    write(&mut recorder, &mut output, 500);
    let mut got = vec![0; 1];
    netcat.read_exact(&mut got).expect("a dump");
    write(&mut recorder, &mut output, 700);
    drop(recorder.0.stdin.take());
    netcat.read_to_end(&mut got).expect("the rest");
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    // Events of different cores may be in different dumps.
    let mut events = events_of_dumps(&got);
    assert_eq!(events.len(), 1200);
    events.sort_by_key(|(_, time, _)| *time);
    let first_word = events[0].2;
    let numbers: Vec<u64> = events.iter().map(|(.., word)| word & 0xffff_ffff).collect();
    assert_eq!(numbers, (0..500).chain(0..700).collect::<Vec<_>>());
    assert!(events.iter().all(|(.., word)| word >> 32 == first_word >> 32));
    // The importer reads the same cores, times and arguments.
    fs::write(place.0.join("got.trc"), &got).expect("a file");
    let lines = place.lat(&["print", "--format", "json", "got.trc"]);
    assert_eq!(lines.status.code(), Some(0), "{}", stderr(&lines));
    let printed: Vec<u64> = String::from_utf8_lossy(&lines.stdout)
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).expect("JSON");
            let raw = event["fields"]["raw"].as_u64().map(|raw| raw & 0xffff_ffff);
            raw.or_else(|| event["fields"]["arg"].as_u64()).unwrap_or_else(|| panic!("{line}"))
        })
        .collect();
    assert_eq!(printed, numbers);
    let elsewhere = fs::read_to_string(place.0.join("else.trc")).expect("a dump");
    let there = elsewhere.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(there, 10, "{elsewhere}");
}

#[test]
fn dumps_of_every_known_bfscope_are_received() {
    let place = Place::new();
    let dump = "# Start 5 Duration 0 Stop 9\n# Core 0 LOG DUMP ==\n0 7 7337000100000000\n0 9 2\n";
    let length = dump.len();
    let heads = [
        format!("{length:08}"),
        format!("{length}\0\0\0\0\0\0"),
        format!("{length:6}"),
        String::new(),
    ];
    for (index, head) in heads.iter().enumerate() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("bfscope://{}", server.local_addr().expect("its address"));
        let (head, sent) = (head.clone(), dump.to_owned());
        let talk = std::thread::spawn(move || {
            let (mut peer, _) = server.accept().expect("a client");
            for byte in [head, sent].concat().repeat(2).bytes() {
                peer.write_all(&[byte]).expect("a client");
            }
        });
        let name = format!("{index}.trc");
        let value = place.json(&["record", "--connect", &address, "-o", &name, "--json"]);
        talk.join().expect("no panic");
        assert_eq!(value["dumps"], 2, "{value}");
        let text = fs::read_to_string(place.0.join(&name)).expect("a file");
        assert_eq!(text, dump.repeat(2));
        let lines = place.lat(&["print", &name]);
        assert_eq!(String::from_utf8_lossy(&lines.stdout).lines().count(), 4);
    }
}

#[test]
fn a_live_address_is_followed_like_a_recording() {
    address_is_followed(&["print", "--event", "server:*", "--format", "json"], "/fields/id");
    address_is_followed(&["table", "--name", "server:REQUEST", "--json"], "/id");
}

/// Checks the output of a command that follows a live address; each line has a number at `pointer`.
fn address_is_followed(command: &[&str], pointer: &str) {
    let place = Place::new();
    let options = ["record", "-o", "here", "--live", "127.0.0.1:0", "--packet", "4K"];
    let Some((mut recorder, mut output)) = record(&place, &options) else { return };
    let address = recorder.address();
    ready(&mut output);
    let temporary = place.0.join("temporary");
    fs::create_dir(&temporary).expect("a folder");
    let mut follower = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(command)
        .args(["-f", &address])
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("lat can be started");
    let mut lines = BufReader::new(follower.stdout.take().expect("its output"));
    let mut line = String::new();
    // Few or no events are written before it begins.
    write(&mut recorder, &mut output, 3_000);
    for number in 0..6_000 {
        if number == 3_000 {
            // Earlier events are printed while the recording is in progress.
            write(&mut recorder, &mut output, 3_000);
        }
        line.clear();
        assert!(lines.read_line(&mut line).expect("a line") > 0, "it ended after {number}");
        let row: Value = serde_json::from_str(&line).expect("a row");
        assert_eq!(row.pointer(pointer), Some(&Value::from(number % 3_000)), "{row}");
    }
    drop(recorder.0.stdin.take());
    assert_eq!(recorder.wait().0, Some(0));
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("text");
    let follower = follower.wait_with_output().expect("its status");
    assert_eq!((rest.as_str(), follower.status.code()), ("", Some(0)), "{}", stderr(&follower));
    assert_eq!(fs::read_dir(&temporary).expect("a folder").count(), 0, "its copy is gone");

    // The server has ended; an argument that is not a live address is taken as a path.
    let nobody = place.lat(&["print", "-f", &address]);
    assert_eq!(nobody.status.code(), Some(2), "{}", stderr(&nobody));
    assert!(stderr(&nobody).contains(&address), "{}", stderr(&nobody));
}

#[test]
fn rings_that_overwrite_cannot_be_followed() {
    let place = Place::new();
    for how in [&["record", "--live", "127.0.0.1:0"][..], &["live", "127.0.0.1:0"]] {
        let refused = place.lat(&[how, &["--mode", "overwrite", "--", "true"]].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("--mode overwrite"), "{}", stderr(&refused));
    }
}
