// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Invalid and malicious clients.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use tungstenite::Message;

use super::client::Viewer;
use crate::place::Place;

/// Returns the first line of the server's response to these bytes.
fn said(viewer: &Viewer, request: &str) -> String {
    let mut stream = TcpStream::connect(&viewer.address).expect("a connection");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    // The server may close the connection before it has read everything.
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
    for path in ["/ws", "/ws?token=", "/export?table=events", "/token/0/export?table=events"] {
        let head = format!("{good}Sec-WebSocket-Key: x\r\n");
        assert!(ask(path, &head).contains("401"), "{path}");
    }
    assert!(said(&viewer, "POST / HTTP/1.1\r\n\r\n").contains("405"));
    assert!(said(&viewer, &format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(40_000))).contains("400"));
    assert!(
        said(&viewer, "\x16\x03\x01\0\0\0").is_empty()
            || said(&viewer, "\0\r\n\r\n").contains("400")
    );

    let mut page = viewer.page();
    page.ask("open", json!({}));
    // An invalid message has no response; an invalid request has an error response.
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
        ("lane_activity", json!({ "t0": 0, "t1": "x" })),
        ("lane_activity", json!({ "t0": 0, "t1": 1, "filter": 77 })),
        ("levels", json!({ "counters": [5], "t0": 0, "t1": 1, "px": 10 })),
        ("filter", json!({ "lanes_off": "all" })),
    ] {
        let error = page.try_ask(method, params.clone()).expect_err(method);
        assert!(
            error["what"].is_string() && error["where"].is_string(),
            "{method} {params}: {error}"
        );
    }
    // Times at the limits of all number types.
    for (t0, t1) in [(-1e300, 1e300), (1e300, -1e300), (0.0, 0.0), (-9e18, 9e18)] {
        let asked = json!({ "lanes": [0], "t0": t0, "t1": t1, "px": 10, "filter": 0 });
        page.ask_columns("view", asked.clone());
        page.ask_columns("lane_activity", asked);
    }
    // A frame larger than any request closes that connection, and no other.
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
    // Until the client's own buffers are full, too, or enough is sent.
    while sent < 20_000 && page.socket.send(Message::text(request.clone())).is_ok() {
        sent += 1;
    }
    assert!(sent > 64, "{sent}");
    // Another page gets responses meanwhile.
    let mut other = viewer.page();
    for _ in 0..20 {
        other.ask("open", json!({}));
    }
    let grown = viewer.memory_kib().saturating_sub(before);
    assert!(grown < 300_000, "{grown} KiB for {sent} requests");
}

/// Returns the response to another user of this machine; `None` if this test cannot become another user.
fn told_to_another(viewer: &Viewer, path: &str) -> Option<String> {
    if rustix::process::geteuid().as_raw() != 0 {
        return None;
    }
    let port = viewer.address.rsplit(':').next().expect("a port");
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET {path} HTTP/1.1\\r\\nHost: {}\\r\\n\
         Sec-WebSocket-Key: x\\r\\n\\r\\n' >&3; head -n 1 <&3",
        viewer.address
    );
    let other = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "bash", "-c", &script];
    let told = std::process::Command::new("setpriv").args(other).output().ok()?;
    Some(String::from_utf8_lossy(&told.stdout).into_owned())
}

#[test]
fn another_user_of_the_machine_reads_nothing_and_holds_up_nobody() {
    let place = Place::new();
    let events = [crate::place::genode::event(3, 1000, b"serve\0")];
    place.genode("run", &[("init -> app", "ep", (1000, 2000), &events[..])]);
    let viewer = Viewer::start(&place, &["run"]);
    let Some(page) = told_to_another(&viewer, "/") else {
        eprintln!("SKIPPED: another user of the machine: needs root and setpriv");
        return;
    };
    assert!(page.contains("200") || page.contains("404"), "the page itself is no secret: {page}");
    for path in ["/ws", "/export?table=events&format=csv", "/tsp/api/traces", "/ws?token=0"] {
        let told = told_to_another(&viewer, path).expect("another user");
        assert!(told.contains("401"), "{path}: {told}");
    }
    // A program of the same user needs no token if only the Trace Server Protocol is served.
    let head = format!("Host: {}\r\n\r\n", viewer.address);
    assert!(said(&viewer, &format!("GET /tsp/api/health HTTP/1.1\r\n{head}")).contains("200"));
    // Silent connections exclude no client, whichever user has opened them.
    let port = viewer.address.rsplit(':').next().expect("a port");
    let script = format!(
        "for i in $(seq 1 200); do eval \"exec $((i + 10))<>/dev/tcp/127.0.0.1/{port}\"; done; echo; sleep 60"
    );
    let other = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "bash", "-c", &script];
    let mut idle = std::process::Command::new("setpriv")
        .args(other)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let mut line = [0];
    idle.stdout.as_mut().expect("its output").read_exact(&mut line).expect("all are open");
    viewer.page().ask("open", json!({}));
    let silent: Vec<_> = (0..70).map(|_| TcpStream::connect(&viewer.address)).collect();
    viewer.page().ask("open", json!({}));
    drop(silent);
    let _ = idle.kill();
    let _ = idle.wait();
}

#[test]
fn an_event_at_the_last_of_all_times_is_listed() {
    let place = Place::new();
    let folder = place.0.join("late");
    std::fs::create_dir(&folder).expect("a folder");
    let metadata = "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n\
        clock { name = c; freq = 1000000000; };\n\
        stream { event.header := struct {\n\
        integer { size = 64; align = 8; map = clock.c.value; } timestamp; }; };\n\
        event { name = \"e\"; id = 0; fields := struct { integer { size = 8; align = 8; } x; }; };\n";
    std::fs::write(folder.join("metadata"), metadata).expect("metadata");
    let stream = b"\0\0\0\0\0\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\x7f\x02";
    std::fs::write(folder.join("stream"), stream).expect("a stream");
    let viewer = Viewer::start(&place, &["late"]);
    let mut page = viewer.page();
    page.ask("open", json!({}));
    let table = format!("/export?table=events&format=csv&token={}", viewer.token);
    let mut stream = TcpStream::connect(&viewer.address).expect("a connection");
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a time-out");
    let head = format!("GET {table} HTTP/1.1\r\nHost: {}\r\n\r\n", viewer.address);
    stream.write_all(head.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it ends");
    let rows = answer
        .lines()
        .filter(|line| line.contains(",e,") || line.contains("9223372036854775"))
        .count();
    assert_eq!(rows, 2, "{answer}");
}
