// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that nobody wrote on purpose, or somebody did.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use tungstenite::Message;

use super::client::Viewer;
use crate::place::Place;

/// What the server says to bytes.
fn said(viewer: &Viewer, request: &str) -> String {
    let mut stream = TcpStream::connect(&viewer.address).expect("a connection");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    // It may have closed before it has read everything.
    let _ = stream.read_to_string(&mut answer);
    answer.lines().next().unwrap_or("").to_owned()
}

#[test]
fn who_may_not_ask_is_refused_and_nobody_else_suffers() {
    let place = Place::new();
    let threads = [(
        "init -> app",
        "ep",
        (1000, 2000),
        &[crate::place::genode::event(3, 1000, b"serve\0")][..],
    )];
    place.genode("run", &threads);
    let viewer = Viewer::start(&place, &["run"]);
    let host = &viewer.address;
    let ask = |path: &str, more: &str| said(&viewer, &format!("GET {path} HTTP/1.1\r\n{more}\r\n"));
    assert!(ask("/", "").contains("403"));
    assert!(ask("/", "Host: evil.example\r\n").contains("403"));
    let foreign =
        format!("Host: {host}\r\nOrigin: http://evil.example\r\nSec-WebSocket-Key: x\r\n");
    assert!(ask("/ws", &foreign).contains("403"));
    let good = format!("Host: {host}\r\n");
    for path in ["/../../etc/passwd", "/%2e%2e/etc/passwd", "//etc/passwd", "/run/metadata"] {
        assert!(ask(path, &good).contains("404"), "{path}");
    }
    assert!(said(&viewer, "POST / HTTP/1.1\r\n\r\n").contains("405"));
    assert!(said(&viewer, &format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(40_000))).contains("400"));
    assert!(
        said(&viewer, "\x16\x03\x01\0\0\0").is_empty()
            || said(&viewer, "\0\r\n\r\n").contains("400")
    );

    let mut page = viewer.page();
    page.ask("open", json!({}));
    // What is no request has no answer; what is a wrong one has its own.
    for text in ["", "{", "null", "[1]", "{\"id\":\"x\",\"method\":\"open\"}"] {
        page.socket.send(Message::text(text)).unwrap();
    }
    for (method, params) in [
        ("nothing", json!({})),
        ("view", json!({})),
        ("view", json!({ "lanes": [0], "t0": "x", "t1": 1, "px": 10 })),
        ("view", json!({ "lanes": [99], "t0": 0, "t1": 1, "px": 10 })),
        ("view", json!({ "lanes": [0], "t0": 0, "t1": 1, "px": 1_000_000_000 })),
        ("view", json!({ "lanes": [0], "t0": 0, "t1": 1, "px": 10, "filter": 77 })),
        ("overview", json!({ "px": 0 })),
        ("at", json!({ "lane": 7, "row": 7, "t": 0 })),
        ("levels", json!({ "counters": [5], "t0": 0, "t1": 1, "px": 10 })),
        ("filter", json!({ "lanes_off": "all" })),
    ] {
        let error = page.try_ask(method, params.clone()).expect_err(method);
        assert!(
            error["what"].is_string() && error["where"].is_string(),
            "{method} {params}: {error}"
        );
    }
    // Times at the ends of all numbers.
    for (t0, t1) in [(-1e300, 1e300), (1e300, -1e300), (0.0, 0.0), (-9e18, 9e18)] {
        let asked = json!({ "lanes": [0], "t0": t0, "t1": t1, "px": 10, "filter": 0 });
        page.ask_columns("view", asked);
    }
    // A frame larger than any request ends that connection, and only that.
    let mut other = viewer.page();
    let _ = other.socket.send(Message::text(" ".repeat(16 << 20)));
    let _ = other.socket.flush();
    let ended = (0..3).any(|_| other.socket.read().is_err());
    assert!(ended, "the connection is closed");
    page.ask("open", json!({}));
}

#[test]
fn thousands_of_requests_that_nobody_reads_take_no_memory() {
    let place = Place::new();
    let events: Vec<Vec<u8>> =
        (0..200u64).map(|n| crate::place::genode::event(3, 1000 + n * 10, b"serve\0")).collect();
    place.genode("run", &[("init -> app", "ep", (1000, 3000), &events[..])]);
    let viewer = Viewer::start(&place, &["run"]);
    let before = viewer.memory_kib();
    let mut page = viewer.page();
    page.socket.get_ref().set_nonblocking(true).unwrap();
    let request = json!({ "id": 1, "method": "events", "params": { "from": 0, "count": 200 } });
    let request = request.to_string();
    let mut sent = 0;
    // Until its own buffers are full as well, or enough has gone.
    while sent < 20_000 && page.socket.send(Message::text(request.clone())).is_ok() {
        sent += 1;
    }
    assert!(sent > 64, "{sent}");
    // Another page is answered meanwhile.
    let mut other = viewer.page();
    for _ in 0..20 {
        other.ask("open", json!({}));
    }
    let grown = viewer.memory_kib().saturating_sub(before);
    assert!(grown < 300_000, "{grown} KiB for {sent} requests");
}
