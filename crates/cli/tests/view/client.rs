// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of the viewer that sends the requests of a page over a WebSocket.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::place::Place;

/// A running `lat view`.
pub struct Viewer {
    child: Child,
    pub address: String,
    pub token: String,
}

impl Viewer {
    pub fn start(place: &Place, traces: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lat"));
        Self::started(place, traces, &mut command)
            .unwrap_or_else(|said| panic!("no address: {said}"))
    }

    /// Starts `lat` through another command, with standard error in a file; returns `None` if it does not
    /// serve.
    pub fn start_limited(
        place: &Place,
        traces: &[&str],
        mut command: Command,
        errors: &Path,
    ) -> Option<Self> {
        command.stderr(File::create(errors).expect("a file for errors"));
        Self::started(place, traces, &mut command).ok()
    }

    fn started(place: &Place, traces: &[&str], command: &mut Command) -> Result<Self, String> {
        let mut child = command
            .args(["view", "--no-open", "--no-page"])
            .args(traces)
            .current_dir(&place.0)
            .env("LATERALIS_DIR", place.0.join("areas"))
            .env("XDG_CACHE_HOME", place.0.join("cache"))
            .env("TMPDIR", &place.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("lat can be started");
        let mut url = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut url).expect("an address");
        let parts = url.trim().strip_prefix("http://").and_then(|url| url.split_once("/?token="));
        let Some((address, token)) = parts else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(url);
        };
        Ok(Self { child, address: address.to_owned(), token: token.to_owned() })
    }

    pub fn page(&self) -> Page {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        let url = format!("ws://{}/ws?token={}", self.address, self.token);
        let (socket, _) = tungstenite::client(url, stream).expect("a WebSocket");
        Page { socket, next: 1, pushed: VecDeque::new() }
    }

    /// Returns the resident memory in KiB.
    pub fn memory_kib(&self) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the message is an event and not a response.
fn is_pushed(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|word| word["event"].is_string())
}

/// A connected page.
pub struct Page {
    pub socket: WebSocket<TcpStream>,
    next: u32,
    pushed: VecDeque<Value>,
}

impl Page {
    pub fn send(&mut self, method: &str, params: Value) -> u32 {
        let id = self.next;
        self.next += 1;
        let request = json!({ "id": id, "method": method, "params": params }).to_string();
        self.socket.send(Message::text(request)).expect("a request is sent");
        id
    }

    /// Returns the next response; events received meanwhile are kept.
    pub fn answer(&mut self) -> Message {
        loop {
            let message = self.socket.read().expect("an answer");
            match &message {
                Message::Text(text) if is_pushed(text) => self.push(text),
                _ => return message,
            }
        }
    }

    fn push(&mut self, text: &str) {
        self.pushed.push_back(serde_json::from_str(text).expect("JSON"));
    }

    /// Returns the next event of this kind, and discards the events before it.
    pub fn told(&mut self, event: &str) -> Value {
        loop {
            while let Some(word) = self.pushed.pop_front() {
                if word["event"] == event {
                    return word;
                }
            }
            match self.socket.read().expect("a word") {
                Message::Text(text) => self.push(&text),
                other => panic!("nobody asked: {other:?}"),
            }
        }
    }

    /// Returns the result or the error of a request.
    pub fn try_ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        let Message::Text(text) = self.answer() else { panic!("{method}: not a text") };
        let mut answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(answer["id"], id, "{method}");
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].take()),
        }
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.try_ask(method, params.clone()).unwrap_or_else(|e| panic!("{method} {params}: {e}"))
    }

    /// Returns result and columns of a binary response.
    pub fn ask_columns(
        &mut self,
        method: &str,
        params: Value,
    ) -> (Value, BTreeMap<String, Vec<f64>>) {
        let id = self.send(method, params);
        let bytes = match self.answer() {
            Message::Binary(bytes) => bytes,
            other => panic!("{method}: {other:?}"),
        };
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(u32_at(0), id);
        let length = u32_at(4) as usize;
        let mut told: Value = serde_json::from_slice(&bytes[8..8 + length]).expect("JSON");
        let mut columns = BTreeMap::new();
        for column in told["columns"].as_array().unwrap() {
            let number = |name: &str| column[name].as_u64().unwrap() as usize;
            let wide = match column["type"].as_str().unwrap() {
                "u8" => 1,
                "u16" => 2,
                "u32" => 4,
                _ => 8,
            };
            let (offset, count) = (number("offset"), number("length"));
            assert_eq!(offset % 8, 0);
            let of = bytes[offset..offset + wide * count].chunks(wide);
            let values = of.map(|b| match wide {
                1 => f64::from(b[0]),
                2 => f64::from(u16::from_le_bytes(b.try_into().unwrap())),
                4 => f64::from(u32::from_le_bytes(b.try_into().unwrap())),
                _ => f64::from_le_bytes(b.try_into().unwrap()),
            });
            columns.insert(column["name"].as_str().unwrap().to_owned(), values.collect());
        }
        (told["result"].take(), columns)
    }
}

/// Returns the body of an HTTP response.
pub fn get(address: &str, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("asked");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let line = |from: usize| {
        let length = bytes[from..].windows(2).position(|two| two == b"\r\n").expect("a line");
        (String::from_utf8_lossy(&bytes[from..from + length]).into_owned(), from + length + 2)
    };
    let (status, mut at) = line(0);
    assert!(status.contains(" 200 "), "{status}");
    let mut is_chunked = false;
    loop {
        let (head, next) = line(at);
        at = next;
        is_chunked |= head.eq_ignore_ascii_case("transfer-encoding: chunked");
        if head.is_empty() {
            break;
        }
    }
    assert!(is_chunked, "its end is told from a break");
    let mut body = Vec::new();
    loop {
        let (size, next) = line(at);
        let size = usize::from_str_radix(&size, 16).expect("a size");
        if size == 0 {
            return body;
        }
        body.extend(&bytes[next..next + size]);
        at = next + size + 2;
    }
}
