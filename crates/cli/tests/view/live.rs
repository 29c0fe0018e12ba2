// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat view` of a recording in progress, over TCP and from a folder: the final view equals the saved
//! recording; also killed recorders and broken connections.

use std::io::{self, BufRead};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::client::{Page, Viewer};
use super::{printed, the_list_is_what_is_printed};
use crate::live::{Running, ready, record, start, write};
use crate::place::Place;

/// Returns the number of the writer's requests in the session.
pub fn requests(open: &Value) -> u64 {
    let classes = open["classes"].as_array().unwrap();
    let requests = classes.iter().find(|class| class["name"] == "REQUEST");
    requests.map_or(0, |class| class["count"].as_u64().unwrap())
}

/// Waits until the session has this number of requests.
pub fn wait_for(page: &mut Page, count: u64) -> Value {
    loop {
        let open = page.ask("open", json!({}));
        let found = requests(&open);
        assert!(found <= count, "{found} of {count}");
        if found == count {
            return open;
        }
        page.told("grown");
    }
}

/// Returns the numbers in the requests, in the order of the list.
fn numbers(page: &mut Page, from: u64) -> Vec<u64> {
    let asked = json!({ "filter": 0, "from": from, "count": 1000 });
    let rows = page.ask("events", asked)["rows"].as_array().unwrap().clone();
    let fields = rows.iter().flat_map(|row| row["fields"].as_array().unwrap().clone());
    let is_it = |field: &Value| field["name"] == "id" || field["name"] == "request";
    fields.filter(is_it).filter_map(|field| field["value"].as_u64()).collect()
}

pub fn begin(place: &Place, options: &[&str]) -> Option<(Running, impl BufRead)> {
    let (recorder, mut output) = record(place, options)?;
    ready(&mut output);
    Some((recorder, output))
}

#[test]
fn a_live_recording_is_seen_while_it_comes_and_in_the_end_as_it_is_saved() {
    let place = Place::new();
    let options = ["record", "-o", "here", "--live", "127.0.0.1:0", "--packet", "4K"];
    let Some((mut recorder, mut output)) = record(&place, &options) else { return };
    let address = recorder.address();
    ready(&mut output);
    write(&mut recorder, &mut output, 1000);
    let viewer = Viewer::start(&place, &[&address]);
    let mut page = viewer.page();
    let open = wait_for(&mut page, 1000);
    assert_eq!((&open["is_live"], &open["begin"]), (&json!(true), &json!(0)));
    // Single events are read again, including the most recent ones.
    for round in 2..=4u64 {
        write(&mut recorder, &mut output, 1000);
        let open = wait_for(&mut page, round * 1000);
        let all: u64 =
            open["classes"].as_array().unwrap().iter().map(|c| c["count"].as_u64().unwrap()).sum();
        let last = numbers(&mut page, all - 10);
        assert_eq!(last.last(), Some(&999), "{last:?}");
        let grown_end = open["end"].as_f64().unwrap();
        let lanes: Vec<&Value> =
            open["lanes"].as_array().unwrap().iter().map(|l| &l["id"]).collect();
        let asked = json!({ "lanes": lanes, "t0": 0, "t1": grown_end, "px": 1, "filter": 0 });
        let (result, _) = page.ask_columns("view", asked);
        assert!(result["end"].as_f64() >= Some(grown_end));
    }
    // The recording ends, and the live session is replaced.
    drop(recorder.0.stdin.take());
    let ended = page.told("ended");
    assert_eq!(ended["complete"], true, "{ended}");
    page.told("replaced");
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    let open = page.ask("open", json!({}));
    assert_eq!(open["is_live"], false);
    the_list_is_what_is_printed(&mut page, &printed(&place, "here"));
    // The copy is removed with the view.
    drop(viewer);
}

#[test]
fn a_folder_is_followed_and_a_killed_recorder_is_told() {
    let place = Place::new();
    let Some((mut recorder, mut output)) = begin(&place, &["record", "-o", "here"]) else { return };
    write(&mut recorder, &mut output, 500);
    let viewer = Viewer::start(&place, &["here"]);
    let mut page = viewer.page();
    wait_for(&mut page, 500);
    write(&mut recorder, &mut output, 500);
    let open = wait_for(&mut page, 1000);
    assert_eq!(open["is_live"], true);
    recorder.kill();
    let ended = page.told("ended");
    assert_eq!(ended["complete"], false);
    assert!(ended["why"].as_str().unwrap().contains("lat recover"), "{ended}");
    // The displayed session stays.
    let open = page.ask("open", json!({}));
    assert_eq!(open["is_live"], false);
    assert_eq!(requests(&open), 1000);
}

/// Before a recorder has written a report, the lock of the folder is the only sign of it.
#[test]
fn a_folder_without_a_report_is_followed_as_long_as_its_recorder_is_there() {
    let place = Place::new();
    let Some((mut recorder, mut output)) = begin(&place, &["record", "-o", "here"]) else { return };
    write(&mut recorder, &mut output, 500);
    let viewer = Viewer::start(&place, &["here"]);
    wait_for(&mut viewer.page(), 500);
    drop(viewer);
    // The recording as in its first moment. The recorder already knows all its programs, and writes no
    // further report.
    let report = place.0.join("here/report.json");
    std::fs::remove_file(&report).expect("it was there");
    let viewer = Viewer::start(&place, &["here"]);
    let mut page = viewer.page();
    let open = wait_for(&mut page, 500);
    assert_eq!(open["is_live"], true);
    write(&mut recorder, &mut output, 500);
    let open = wait_for(&mut page, 1000);
    assert_eq!(open["is_live"], true);
    assert!(!report.exists(), "nothing else has told that it goes on");
    recorder.kill();
    let ended = page.told("ended");
    assert_eq!(ended["complete"], false, "{ended}");
    // The recording is not live for ever.
    drop(viewer);
    let viewer = Viewer::start(&place, &["here"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    assert_eq!((&open["is_live"], requests(&open)), (&json!(false), 1000));
}

#[test]
fn nobody_at_the_address_is_an_error_that_says_so() {
    let place = Place::new();
    // A free port: this test has just released it.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = place.lat(&["view", "--no-open", "--no-page", &port.to_string()]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("error: cannot follow") && error.contains("lat live"), "{error}");
}

/// A forwarder to a server, which can be interrupted.
struct Way {
    address: String,
    /// Both ends of all connections; `None` while interrupted.
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Way {
    fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let ends = Arc::clone(&open);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut ends = ends.lock().expect("a lock");
                let (Some(ends), Ok(server)) = (&mut *ends, TcpStream::connect(&server)) else {
                    continue;
                };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let copies = [from, to].map(|end| end.try_clone().expect("an end"));
                    let [mut from, mut to] = copies;
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                ends.extend([client, server]);
            }
        });
        Self { address, open }
    }

    fn break_down(&self) {
        let ends = self.open.lock().expect("a lock").take();
        for end in ends.into_iter().flatten() {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    fn mend(&self) {
        *self.open.lock().expect("a lock") = Some(Vec::new());
    }
}

#[test]
fn a_connection_that_breaks_is_made_again_and_what_was_missed_is_counted() {
    let place = Place::new();
    let options = ["live", "127.0.0.1:0", "--live-window", "256K", "--packet", "4K"];
    let Some((mut recorder, mut output)) = record(&place, &options) else { return };
    let way = Way::to(recorder.address());
    ready(&mut output);
    write(&mut recorder, &mut output, 1000);
    let viewer = Viewer::start(&place, &[&way.address]);
    let mut page = viewer.page();
    wait_for(&mut page, 1000);
    way.break_down();
    let why = page.told("disconnected")["why"].take();
    assert!(why.as_str().is_some_and(|why| why.contains("tried again")), "{why}");
    // Several times the size of the server's buffer.
    for _ in 0..5 {
        write(&mut recorder, &mut output, 20_000);
    }
    way.mend();
    let missed = loop {
        let missed = page.told("missed");
        if missed["packets"].as_u64() > Some(0) {
            break missed;
        }
    };
    write(&mut recorder, &mut output, 10);
    drop(recorder.0.stdin.take());
    assert_eq!(page.told("ended")["complete"], true);
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    let open = page.ask("open", json!({}));
    let seen = requests(&open);
    assert!((1010..101_010).contains(&seen), "{seen}, {missed}");
    // The last events came over the new connection.
    let all: u64 =
        open["classes"].as_array().unwrap().iter().map(|c| c["count"].as_u64().unwrap()).sum();
    assert_eq!(numbers(&mut page, all - 10).last(), Some(&9));
    // The times of the missing events are known, too.
    let losses = open["losses"].as_array().unwrap();
    assert!(!losses.is_empty(), "{open}");
}

#[test]
fn losses_are_told_while_they_come_and_are_those_of_the_report() {
    let place = Place::new();
    let small = ["record", "-o", "here", "--buffer", "16K", "--packet", "4K"];
    let Some((mut recorder, mut output)) = begin(&place, &small) else { return };
    write(&mut recorder, &mut output, 10);
    let viewer = Viewer::start(&place, &["here"]);
    let mut page = viewer.page();
    wait_for(&mut page, 10);
    write(&mut recorder, &mut output, 1_000_000);
    let told = loop {
        let grown = page.told("grown");
        if let Some(loss) = grown["losses"].as_array().and_then(|losses| losses.first()) {
            break loss.clone();
        }
    };
    assert!(told["begin"].as_f64() <= told["end"].as_f64(), "{told}");
    assert!(told["lane"].is_u64() && told["cause"].is_string(), "{told}");
    drop(recorder.0.stdin.take());
    page.told("ended");
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    page.told("replaced");
    let open = page.ask("open", json!({}));
    let of = |loss: &Value| loss["count"].as_u64();
    let counted: u64 = open["losses"].as_array().unwrap().iter().filter_map(of).sum();
    let lost = place.report("here")["totals"]["lost"]["total"].as_u64().expect("losses");
    assert_eq!(counted, lost);
    assert_eq!(requests(&open) + lost, 1_000_010);
}

/// If no program is recorded, only the recorder itself can report its progress.
#[test]
fn a_folder_with_nothing_but_the_kernel_is_followed() {
    if !crate::kernel::usable(&[]) {
        return;
    }
    let place = Place::new();
    let words = ["record", "--quiet", "--system", "--kernel", "sched", "-o", "here", "--", "cat"];
    let mut recorder = std::process::Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(words)
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("lat can be started");
    while !place.0.join("here/report.json").exists() {
        assert!(recorder.try_wait().expect("its status").is_none(), "the recorder ended");
        thread::sleep(std::time::Duration::from_millis(5));
    }
    let viewer = Viewer::start(&place, &["here"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    assert_eq!(open["is_live"], true, "{open}");
    let seen = |open: &Value| -> u64 {
        let classes = open["classes"].as_array().unwrap().iter();
        let switches = classes.filter(|class| class["name"].as_str().unwrap().contains("switch"));
        switches.map(|class| class["count"].as_u64().unwrap()).sum()
    };
    // The requests cause switches, so there are more each time.
    for _ in 0..3 {
        let before = seen(&page.ask("open", json!({})));
        while seen(&page.ask("open", json!({}))) == before {
            page.told("grown");
        }
    }
    // The program, which is not traced itself, ends.
    drop(recorder.stdin.take());
    assert!(recorder.wait().expect("its status").success());
    assert_eq!(page.told("ended")["complete"], true);
}

/// Whether this process may capture packets; prints a message if not.
fn may_capture() -> bool {
    /// `CAP_NET_RAW` of linux/capability.h.
    const NET_RAW: u32 = 13;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let has = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let has = has.and_then(|has| u64::from_str_radix(has.trim(), 16).ok()).unwrap_or(0);
    if has >> NET_RAW & 1 == 0 {
        println!("SKIPPED: no CAP_NET_RAW here");
    }
    has >> NET_RAW & 1 == 1
}

/// Stops a thread when dropped.
struct Until<'a>(&'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_folder_with_nothing_but_packets_of_an_interface_is_followed() {
    if !may_capture() {
        return;
    }
    let place = Place::new();
    let words = ["record", "--quiet", "-o", "here", "--packets", "lo", "--", "cat"];
    let mut recorder = start(&place, &words, Stdio::piped(), Stdio::null());
    while !place.0.join("here/report.json").exists() {
        assert!(recorder.0.try_wait().expect("its status").is_none(), "the recorder ended");
        thread::sleep(std::time::Duration::from_millis(5));
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let until = Until(&is_over);
        // Packets are sent at all times, because the start of the capture is unknown.
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let own = socket.local_addr().expect("its address");
            // Partner: the store in `drop`. It orders nothing.
            while !is_over.load(Ordering::Relaxed) {
                socket.send_to(b"seen", own).expect("sent");
                thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let viewer = Viewer::start(&place, &["here"]);
        let mut page = viewer.page();
        let open = page.ask("open", json!({}));
        assert_eq!(open["is_live"], true, "{open}");
        let seen = |open: &Value| -> u64 {
            let lanes = open["lanes"].as_array().expect("lanes").iter();
            let of_interface = lanes.filter(|lane| lane["kind"] == "packets");
            of_interface.map(|lane| lane["events"].as_u64().expect("a count")).sum()
        };
        for _ in 0..3 {
            let before = seen(&page.ask("open", json!({})));
            while seen(&page.ask("open", json!({}))) == before {
                page.told("grown");
            }
        }
        drop(recorder.0.stdin.take());
        assert_eq!(page.told("ended")["complete"], true);
        drop(until);
    });
    let (status, text) = recorder.wait();
    assert_eq!(status, Some(0), "{text}");
    let report = place.report("here");
    assert_eq!(report["processes"].as_array().map(Vec::len), Some(0), "no program: {report}");
}
