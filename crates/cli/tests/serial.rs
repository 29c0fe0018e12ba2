// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Data received over a serial line from the C sender (`tracer/c/ports/serial_checks.py` covers damaged
//! lines, images and readers).

use crate::place::Place;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of events in a packet of the sender.
const EVENTS: u64 = 13;

/// Compiles the sender for this machine; prints a message and returns `None` if there is no compiler.
fn sender(place: &Place) -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no C compiler here");
        return None;
    }
    let tracer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tracer/c");
    let schema = tracer.join("ports/common/items.pleco");
    let schema = schema.to_str().expect("a path of letters");
    let made = place.lat(&["pleco", "gen", "--c", "items.h", schema]);
    assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
    let program = place.0.join("send");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-O1", "-DLAT_SMALL", "-I"])
        .args([&place.0, Path::new("-I"), &tracer.join("include")])
        .args([Path::new("-I"), &tracer.join("ports/host"), &tracer.join("ports/host/send.c")])
        .args([tracer.join("small/small.c"), tracer.join("small/serial.c")])
        .args([Path::new("-o"), &program])
        .output()
        .expect("cc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(program)
}

fn sent(program: &Path, words: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(words).output().expect("the sender");
    assert!(output.status.success(), "{words:?}");
    output.stdout
}

#[test]
fn a_line_is_recorded_over_two_connections_and_saved() {
    let place = Place::new();
    let Some(program) = sender(&place) else { return };
    let line = sent(&program, &["stream", "300", "1", "0"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    let (first, second) = line.split_at(line.len() / 2);
    let (first, second) = (first.to_vec(), second.to_vec());
    let server = std::thread::spawn(move || {
        for part in [first, second] {
            listener.accept().unwrap().0.write_all(&part).unwrap();
        }
    });
    let said = place.json(&["record", "--serial", &address, "-o", "live", "--json"]);
    server.join().unwrap();
    let line_said = &said["line"];
    let frames = &line_said["frames"];
    let sum = ["before", "received", "damaged", "lost"].map(|name| frames[name].as_u64().unwrap());
    assert_eq!(frames["sent"].as_u64(), Some(sum.iter().sum()), "{line_said}");
    assert_eq!(line_said["connections"], 2);
    let missing = line_said["packets"]["missing"].as_u64().unwrap();
    assert!(missing <= 1, "{line_said}");
    assert_eq!(said["totals"]["events"], (300 - missing) * EVENTS);
    let source = &place.report("live")["sources"][0];
    assert_eq!(
        (&source["name"], &source["details"]["mode"]),
        (&"serial".into(), &"discard".into())
    );
    assert_eq!(source["details"]["frames_sent"], frames["sent"].to_string());

    fs::write(place.0.join("line"), &line).unwrap();
    let said = place.json(&["recover", "line", "-o", "saved", "--json"]);
    assert_eq!(said["totals"]["events"], 300 * EVENTS);
    let text = place.lat(&["print", "saved", "-n", "1"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("items:WIDE value=0"));
}

#[test]
fn a_second_run_goes_where_nothing_is() {
    let place = Place::new();
    let Some(program) = sender(&place) else { return };
    let run = sent(&program, &["stream", "20", "1", "0"]);
    fs::write(place.0.join("line"), [&run[..], &run].concat()).unwrap();
    fs::create_dir(place.0.join("runs-2")).unwrap();
    fs::write(place.0.join("runs-2/mine"), "mine").unwrap();
    let said = place.json(&["recover", "line", "-o", "runs", "--json"]);
    let runs = said["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert!(runs[1]["recording"].as_str().unwrap().ends_with("runs-3"), "{said}");
    assert_eq!(runs[1]["totals"]["events"], 20 * EVENTS);
    assert_eq!(fs::read(place.0.join("runs-2/mine")).unwrap(), b"mine");
}

#[test]
fn what_cannot_be_recorded_says_why_and_leaves_nothing() {
    let place = Place::new();
    fs::write(place.0.join("text"), "no frame at all\n\0\0\0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (line, said) in [
        ("text", "no program introduced itself"),
        ("missing", "check the name"),
        (&format!("tcp:{closed}"), "server,nowait"),
        ("unix:missing", "unix:missing"),
        ("tcp:nowhere", "tcp:nowhere"),
    ] {
        let output = place.lat(&["record", "--serial", line, "--retry", "0", "-o", "out"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains("error: ") && text.contains(said), "{line}: {text}");
        assert!(!place.0.join("out").exists(), "{line}");
    }
    for words in [
        &["record", "--serial", "text", "--live", "-o", "out"][..],
        &["record", "--serial", "text", "--baud", "0", "-o", "out"],
        &["record", "--serial", "text", "-o", "out", "--", "true"],
        &["record", "--elf", "text", "-o", "out", "--", "true"],
        &["live", "--serial", "text"],
        &["keep", "--serial", "text", "--when", "span(request) > 5ms", "-o", "out"],
    ] {
        let output = place.lat(words);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {text}");
        let is_named = text.contains("--serial") || text.contains("--baud");
        assert!(is_named, "{words:?}: {text}");
        assert!(!place.0.join("out").exists(), "{words:?}");
    }
}
