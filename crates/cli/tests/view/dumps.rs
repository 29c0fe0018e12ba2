// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat view` of a bfscope: dumps of every form are shown as they arrive, and equal what `lat print` reads
//! from all of them.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::json;

use super::client::{Page, Viewer};
use super::{printed, the_list_is_what_is_printed};
use crate::place::Place;

/// Returns a dump of two cores whose events have this time.
fn dump(time: u64) -> String {
    let lines =
        "# Core 0 LOG DUMP ==\n0 {} 7337000100000000\n0 {} 2\n# Core 1 LOG DUMP ==\n1 {} 3\n";
    let mut text = format!("# Start {time} Duration 0 Stop {}\n", time + 9);
    for (place, part) in lines.split("{}").enumerate() {
        if place > 0 {
            text += &(time + place as u64).to_string();
        }
        text += part;
    }
    text
}

fn listener() -> (TcpListener, String) {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("bfscope://{}", server.local_addr().expect("its address"));
    (server, address)
}

#[test]
fn dumps_of_a_bfscope_are_seen_as_they_come() {
    let place = Place::new();
    let (server, address) = listener();
    let viewer = Viewer::start(&place, &[&address]);
    let (mut peer, _) = server.accept().expect("a client");
    let mut page = viewer.page();
    // With and without a length prefix; nothing is shown in the middle of a dump.
    let heads = ["%", "", "%", "%\0\0\0"];
    let mut all = String::new();
    for (round, head) in (1..).zip(heads) {
        let text = dump(round * 100);
        let length = if round == 1 { format!("{:08}", text.len()) } else { text.len().to_string() };
        let head = head.replace('%', &format!("{length:6}"));
        let head = if head.contains('\0') { format!("{:\0<8}", text.len()) } else { head };
        all += &text;
        let sent = [head.as_bytes(), text.as_bytes()].concat();
        let (first, rest) = sent.split_at(sent.len() / 2);
        send(&mut peer, first);
        send(&mut peer, rest);
        fs::write(place.0.join("all.trc"), &all).expect("a file");
        let expected = printed(&place, "all.trc");
        assert_eq!(expected.len() as u64, round * 3);
        loop {
            let open = page.ask("open", json!({}));
            assert_eq!(open["is_live"], true);
            let classes = open["classes"].as_array().unwrap();
            let seen: u64 = classes.iter().map(|class| class["count"].as_u64().unwrap()).sum();
            assert!(seen <= round * 3, "{seen} of {}", round * 3);
            if seen == round * 3 {
                break;
            }
            page.told("replaced");
        }
        the_list_is_what_is_printed(&mut page, &expected);
    }
    drop(peer);
    assert_eq!(page.told("ended")["complete"], true);
    assert_eq!(page.ask("open", json!({}))["is_live"], false);
    the_list_is_what_is_printed(&mut page, &printed(&place, "all.trc"));
}

#[test]
fn a_connection_that_breaks_is_made_again() {
    let place = Place::new();
    let (server, address) = listener();
    let viewer = Viewer::start(&place, &[&address]);
    let (mut peer, _) = server.accept().expect("a client");
    let mut page = viewer.page();
    let sees = |page: &mut Page, events: u64| {
        loop {
            let open = page.ask("open", json!({}));
            let classes = open["classes"].as_array().unwrap();
            if classes.iter().map(|class| class["count"].as_u64().unwrap()).sum::<u64>() == events {
                break;
            }
            page.told("replaced");
        }
    };
    send(&mut peer, dump(100).as_bytes());
    sees(&mut page, 3);
    // The connection is reset in the middle of a line.
    send(&mut peer, b"# Core");
    rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).expect("no goodbye");
    drop(peer);
    let why = page.told("disconnected")["why"].to_string();
    assert!(why.contains("tried again"), "{why}");
    let (mut peer, _) = server.accept().expect("the same client");
    assert!(page.told("missed")["packets"].is_null());
    send(&mut peer, dump(200).as_bytes());
    sees(&mut page, 6);
    fs::write(place.0.join("all.trc"), dump(100) + "# Core\n" + &dump(200)).expect("a file");
    drop(peer);
    assert_eq!(page.told("ended")["complete"], true);
    the_list_is_what_is_printed(&mut page, &printed(&place, "all.trc"));
}

fn send(peer: &mut TcpStream, bytes: &[u8]) {
    peer.write_all(bytes).expect("a client");
    peer.flush().expect("a client");
}

#[test]
fn a_line_without_an_end_is_not_kept_for_ever() {
    let place = Place::new();
    let (server, address) = listener();
    let other = std::thread::spawn(move || {
        let (mut peer, _) = server.accept().expect("a client");
        send(&mut peer, dump(100).as_bytes());
        // Until the peer stops reading.
        let mut sent = 0u64;
        while sent < 1 << 28 && peer.write_all(&[b'7'; 1 << 16]).is_ok() {
            sent += 1 << 16;
        }
        sent
    });
    let told = place.lat(&["view", "--no-open", "--no-page", &address]);
    let sent = other.join().expect("no panic");
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(2), "{text}");
    assert!(text.contains("a line that does not end"), "{text}");
    assert!(sent < 1 << 28, "{sent} bytes were taken");
}

#[test]
fn what_is_no_bfscope_is_an_error_that_says_so() {
    let place = Place::new();
    let (server, address) = listener();
    let other = std::thread::spawn(move || {
        let (mut peer, _) = server.accept().expect("a client");
        send(&mut peer, b"220 mail.example ESMTP\r\n");
    });
    let told = place.lat(&["view", "--no-open", "--no-page", &address]);
    other.join().expect("no panic");
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(2), "{text}");
    assert!(text.contains("this is no bfscope") && text.contains("HOST:PORT"), "{text}");
    let nobody = place.lat(&["view", "--no-open", "--no-page", "bfscope://127.0.0.1:1"]);
    assert_eq!(nobody.status.code(), Some(2), "{nobody:?}");
    let (server, address) = listener();
    let other = std::thread::spawn(move || {
        let (mut peer, _) = server.accept().expect("a client");
        send(&mut peer, dump(100).as_bytes());
    });
    // The address lacks the prefix `bfscope://`.
    let unnamed = address.trim_start_matches("bfscope://");
    let told = place.lat(&["view", "--no-open", "--no-page", unnamed]);
    other.join().expect("no panic");
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(2), "{text}");
    assert!(text.contains("lat view bfscope://"), "{text}");
    let two = place.lat(&["view", "--no-open", "--no-page", &address, &address]);
    assert_eq!(two.status.code(), Some(2), "{two:?}");
}
