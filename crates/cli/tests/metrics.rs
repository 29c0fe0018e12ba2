// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat top --prometheus`: `promtool` judges the text, Prometheus reads it, and the counts are those of the
//! program.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::Place;

/// Calls of write(2) that the program makes.
const WRITES: u64 = 300;
/// For the busiest machine; nothing here waits for a time limit.
const PATIENCE: Duration = Duration::from_secs(120);

/// Writes, each of one byte, and then a wait for a file.
const WRITER: &str = "import os, time\n\
    null = os.open('/dev/null', os.O_WRONLY)\n\
    for number in range(300):\n\
    \x20   os.write(null, b'x')\n\
    \x20   time.sleep(0.005)\n\
    while not os.path.exists('end'):\n\
    \x20   time.sleep(0.02)\n";

/// `lat top` with its program, ended at the end.
struct Served {
    place: Place,
    child: Child,
    address: SocketAddr,
    token: String,
}

impl Served {
    fn begin(options: &[&str]) -> Option<Self> {
        let python =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let Ok(python) =
            python.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        else {
            println!("SKIPPED: no python3 here");
            return None;
        };
        let place = Place::new();
        let mut child = Command::new(env!("CARGO_BIN_EXE_lat"))
            .args(["top", "--prometheus", "0", "--every", "200ms", "--with", "io"])
            .args(options)
            .args(["--", &python, "-c", WRITER])
            .current_dir(&place.0)
            .env("LATERALIS_DIR", place.0.join("areas"))
            .env("XDG_CACHE_HOME", place.0.join("cache"))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("lat can be started");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut line = || lines.next().expect("a line").expect("text");
        let url = line();
        let address = url.split("http://").nth(1).and_then(|rest| rest.strip_suffix("/metrics"));
        let address = address.unwrap_or_else(|| panic!("{url}")).parse().expect("an address");
        let token = line();
        let token = token.split("?token=").nth(1).unwrap_or_else(|| panic!("{token}")).to_owned();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| println!("{line}")));
        Some(Self { place, child, address, token })
    }

    /// Status and body of an answer.
    fn get(&self, path: &str, host: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
    }

    fn text(&self) -> String {
        let (status, body) = self.get("/metrics", &self.address.to_string());
        assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
        body
    }

    /// Waits until this text has a series with this value; values of the series until then.
    fn wait_for(&self, series: &str, value: u64) -> (String, Vec<u64>) {
        let begun = Instant::now();
        let mut values = Vec::new();
        loop {
            let text = self.text();
            let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
            values.extend(found.map(|value| value.parse::<u64>().expect("a count")));
            if values.last() == Some(&value) {
                return (text, values);
            }
            assert!(begun.elapsed() < PATIENCE, "{values:?} {text}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn end(mut self) {
        fs::write(self.place.0.join("end"), "").expect("a file");
        assert!(self.child.wait().expect("an end").success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = fs::write(self.place.0.join("end"), "");
        let _ = self.child.wait();
    }
}

const SPANS: &str = "lateralis_span_duration_seconds_count{span=\"io_write\"}";

#[test]
fn counts_are_those_of_the_program_and_only_grow() {
    let Some(served) = Served::begin(&[]) else { return };
    let (text, values) = served.wait_for(SPANS, WRITES);
    assert!(values.is_sorted(), "{values:?}");
    assert!(text.contains("lateralis_missed_parts_total 0\n"), "{text}");
    let lost = text.lines().filter(|line| line.starts_with("lateralis_lost_events_total{"));
    assert_eq!(lost.filter(|line| !line.ends_with(" 0")).count(), 0, "{text}");
    // What is counted is not counted again.
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(served.wait_for(SPANS, WRITES).1, [WRITES]);
    let mut promtool = match Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    {
        Ok(child) => child,
        Err(_) => return println!("SKIPPED: promtool is not installed (Debian: prometheus)"),
    };
    promtool.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("promtool reads");
    let judged = promtool.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&judged.stdout) + String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success() && said.is_empty(), "{said}\n{text}");
    served.end();
}

#[test]
fn prometheus_reads_what_the_program_did() {
    if Command::new("prometheus").arg("--version").output().is_err() {
        return println!("SKIPPED: prometheus is not installed");
    }
    let Some(served) = Served::begin(&[]) else { return };
    let folder = &served.place.0;
    let config = format!(
        "scrape_configs:\n- job_name: lat\n  scrape_interval: 1s\n  static_configs:\n  \
         - targets: ['{}']\n",
        served.address
    );
    fs::write(folder.join("prometheus.yml"), config).expect("a file");
    // Free until now.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|of| of.local_addr()).expect("a port");
    let mut prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
        .arg(format!("--web.listen-address={port}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("prometheus can be started");
    let ask = |query: &str| -> Option<f64> {
        let mut stream = TcpStream::connect(port).ok()?;
        let path = format!("/api/v1/query?query={query}");
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {port}\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        body["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    };
    let count = "lateralis_span_duration_seconds_count%7Bspan=%22io_write%22%7D";
    let reads = format!("count_over_time({count}%5B5m%5D)");
    let begun = Instant::now();
    let mut last = (None, None);
    while begun.elapsed() < PATIENCE {
        last = (ask(count), ask(&reads));
        if last.0 == Some(WRITES as f64) && last.1 >= Some(3.0) {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let up = ask("up");
    let _ = prometheus.kill();
    let _ = prometheus.wait();
    assert_eq!((last.0, up), (Some(WRITES as f64), Some(1.0)), "{last:?}");
    assert!(last.1 >= Some(3.0), "{last:?}");
    served.end();
}

#[test]
fn only_programs_of_this_user_and_those_with_the_token_are_answered() {
    let Some(served) = Served::begin(&["--token", "secret"]) else { return };
    assert_eq!(served.token, "SECRET");
    let own = served.address.to_string();
    for (path, host, status) in [
        ("/metrics", own.as_str(), "200 OK"),
        ("/metrics", "evil.example", "403 Forbidden"),
        ("/metrics", "evil.example:80", "403 Forbidden"),
        ("/", own.as_str(), "404 Not Found"),
        ("/ws", own.as_str(), "404 Not Found"),
    ] {
        assert_eq!(served.get(path, host).0, format!("HTTP/1.1 {status}"), "{path} {host}");
    }
    let is_root = rustix::process::geteuid().is_root();
    let second = |query: &str| {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--clear-groups", "curl", "-s", "-o", "/dev/null"])
            .args(["-w", "%{http_code}", &format!("http://{own}/metrics{query}")])
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    if is_root && Command::new("curl").arg("--version").output().is_ok() {
        assert_eq!(second("").as_deref(), Some("401"));
        assert_eq!(second("?token=wrong").as_deref(), Some("401"));
        assert_eq!(second("?token=secret").as_deref(), Some("200"));
    } else {
        println!("SKIPPED: the second user needs root and curl");
    }
    served.end();
}

#[test]
fn addresses_that_cannot_be_had_are_errors_before_anything_is_recorded() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    for (options, part) in [
        (&["--prometheus", address.as_str()][..], "error: cannot serve: 127.0.0.1:"),
        (&["--prometheus", "nowhere"], "expected a port like 9464"),
        (&["--prometheus", "0", "--json"], "cannot be used with"),
    ] {
        let all = [&["top"][..], options, &["--", "touch", "begun"]].concat();
        let output = place.lat(&all);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
        assert!(!place.0.join("begun").exists());
    }
}
