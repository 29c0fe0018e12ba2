// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat view`, live servers and `lat-helper`: what the second user can get from them, and that they still
//! serve the first.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::attack::under_attack;
use super::machine::{Machine, SECOND, second};
use super::{PROMPT, begin, ends_whole};
use crate::live::write;
use crate::view::client::Viewer;

/// Returns the response of a server to bytes sent by the second user.
fn said_to_the_second(address: &str, bytes: &[u8]) -> Vec<u8> {
    second(|| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PROMPT)).expect("a time limit");
        let _ = stream.write_all(bytes);
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        said
    })
}

/// Returns the longest duration of these calls.
fn longest(times: usize, mut work: impl FnMut()) -> Duration {
    let one = |_| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    (0..times).map(one).max().expect("one")
}

#[test]
fn a_view_answers_its_user_however_many_connections_another_makes() {
    let Some(machine) = Machine::new() else { return };
    let events = [crate::place::genode::event(3, 1000, b"secret\0")];
    machine.place.genode("run", &[("init -> secret", "ep", (1000, 2000), &events[..])]);
    let viewer = Viewer::start(&machine.place, &["run"]);
    let address = &viewer.address;
    for path in ["/ws", "/export?table=events&format=csv", "/tsp/api/experiments", "/", "/run"] {
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nSec-WebSocket-Key: x\r\n\r\n");
        let said =
            String::from_utf8_lossy(&said_to_the_second(address, head.as_bytes())).into_owned();
        assert!(!said.contains("secret") && !said.contains(&viewer.token), "{path}: {said}");
    }
    let slowest =
        under_attack(address, || longest(20, || drop(viewer.page().ask("open", json!({})))));
    eprintln!("a page under attack took at most {slowest:?}");
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    assert!(viewer.memory_kib() < 400_000, "{} KiB", viewer.memory_kib());
}

/// Starts a client of the first user, which receives everything.
fn client(machine: &Machine, address: &str, name: &str, more: &[&str]) -> crate::live::Running {
    let words = [&["record", "--connect", address, "-o", name], more].concat();
    Machine::start(machine.lat(machine.first, &words))
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PROMPT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_live_recording_goes_to_its_user_and_waits_for_no_other() {
    let Some(machine) = Machine::new() else { return };
    for token in [None, Some("0123456789abcdef")] {
        let name = if token.is_some() { "token" } else { "out" };
        let more: Vec<&str> = token.map(|token| vec!["--token", token]).unwrap_or_default();
        let options = [&["record", "-o", name, "--live", "127.0.0.1:0"], &more[..]].concat();
        let received = format!("{name}-received");
        // The address is printed before the program starts.
        let Some((mut recorder, mut output)) = begin(&machine, &options, &[]) else { return };
        let address = recorder.address();
        let said = said_to_the_second(&address, &crate::live::hello());
        let said = String::from_utf8_lossy(&said);
        assert!(!said.contains("REQUEST") && !said.contains("server"), "{said}");
        let reason = if token.is_some() { "token is wrong" } else { "another user" };
        assert!(said.contains(reason), "{said}");
        let (slowest, copy) = under_attack(&address, || {
            let began = Instant::now();
            let copy = client(&machine, &address, &received, &more);
            let file = machine.home().join(&received).join("report.json");
            wait_for("the client", || file.exists());
            eprintln!("a client under attack was served after {:?}", began.elapsed());
            (longest(20, || write(&mut recorder, &mut output, 100)), copy)
        });
        eprintln!("a program under attack took at most {slowest:?}");
        assert!(slowest < Duration::from_secs(10), "{slowest:?}");
        ends_whole(&machine, recorder, name, 3000);
        let (status, text) = copy.wait();
        assert_eq!(status, Some(0), "{text}");
        assert_eq!(machine.report(&received)["events"]["server:REQUEST"], 3000);
    }
}

#[test]
fn dumps_go_to_their_user_and_wait_for_no_other() {
    let Some(machine) = Machine::new() else { return };
    let options = ["live", "--bfscope", "0", "--flush-every", "100ms", "--dump", "else.trc"];
    let Some((mut recorder, mut output)) = begin(&machine, &options, &[]) else { return };
    let rest = recorder.told("bfscope on ");
    let address = rest.split_once(": ").expect("an address").0.to_owned();
    assert_eq!(said_to_the_second(&address, b"trace\n"), b"");
    let dumped = machine.home().join("else.trc");
    let size = || fs::metadata(&dumped).map_or(0, |about| about.len());
    let slowest = under_attack(&address, || {
        longest(5, || {
            let before = size();
            write(&mut recorder, &mut output, 100);
            wait_for("a dump", || size() > before);
        })
    });
    eprintln!("a dump under attack took at most {slowest:?}");
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    drop(recorder.0.stdin.take());
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn a_helper_lends_to_its_group_alone_and_one_member_leaves_room_for_another() {
    let Some(machine) = Machine::new() else { return };
    if !crate::kernel::usable(&[]) {
        return;
    }
    let helper = Path::new(env!("CARGO_BIN_EXE_lat")).with_file_name("lat-helper");
    if !helper.exists() {
        eprintln!("SKIPPED: no lat-helper beside lat: cargo build -p lateralis-helper");
        return;
    }
    let socket = machine.place.0.join("socket");
    let start = |group: u32| {
        let mut helper = Command::new(&helper);
        helper.args(["--group", &group.to_string(), "--socket"]).arg(&socket);
        let mut helper = helper.stdout(Stdio::piped()).spawn().expect("the helper");
        let mut line = String::new();
        let out = helper.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert!(line.starts_with("listening: "), "{line}");
        helper
    };
    let end = |mut helper: std::process::Child| {
        let _ = helper.kill();
        let _ = helper.wait();
    };
    let other = start(machine.first);
    let refused = second(|| UnixStream::connect(&socket).map(drop)).expect_err("not a member");
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    end(other);

    // Both are members: the group is that of the second user.
    let both = start(SECOND);
    let held = second(|| {
        let connect = |_| UnixStream::connect(&socket).ok();
        (0..300).filter_map(connect).collect::<Vec<_>>()
    });
    assert!(held.len() > 4, "{}", held.len());
    fs::set_permissions(&machine.place.0, fs::Permissions::from_mode(0o755)).expect("mode");
    let began = Instant::now();
    let words = ["record", "-q", "--kernel", "sched", "-o", "kernel", "--", "sleep", "0.1"];
    let mut command = machine.lat(machine.first, &words);
    command.gid(SECOND).env("LATERALIS_HELPER", &socket);
    let output = command.output().expect("lat can be started");
    assert!(output.status.success(), "{}", super::text(&output));
    let report = machine.report("kernel");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(0), "{}", report["problems"]);
    assert!(report["totals"]["events"].as_u64() > Some(0), "{}", report["totals"]);
    assert!(began.elapsed() < PROMPT, "{:?}", began.elapsed());
    drop(held);
    end(both);
}
