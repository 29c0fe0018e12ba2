// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clocks of CTF 2 are identified by namespace, name and `uid`, which may be any text.

use std::fs;

use serde_json::{Value, json};

use crate::place::Place;

/// Writes a trace of two streams with a clock class each. A span begins in the first and ends in the second.
fn write(place: &Place, name: &str, clocks: [Value; 2]) {
    let folder = place.0.join(name);
    fs::create_dir(&folder).expect("a new folder");
    let number = |bits: u32, role: Option<&str>| {
        let mut class = json!({
            "type": "fixed-length-unsigned-integer", "length": bits,
            "byte-order": "little-endian", "alignment": 8,
        });
        if let Some(role) = role {
            class["roles"] = json!([role]);
        }
        class
    };
    let structure = |members: &[(&str, Value)]| {
        let member = |(name, class): &(&str, Value)| json!({ "name": name, "field-class": class });
        json!({ "type": "structure", "member-classes": members.iter().map(member).collect::<Vec<_>>() })
    };
    let mut fragments = vec![
        json!({ "type": "preamble", "version": 2 }),
        json!({
            "type": "trace-class", "packet-header-field-class":
                structure(&[("stream_id", number(32, Some("data-stream-class-id")))]),
        }),
    ];
    for (id, clock) in clocks.into_iter().enumerate() {
        let mut class = json!({
            "type": "clock-class", "id": format!("c{id}"), "name": "ticks",
            "frequency": 1_000_000_000,
        });
        let members = clock.as_object().expect("members").clone();
        class.as_object_mut().expect("an object").extend(members);
        fragments.push(class);
        fragments.push(json!({
            "type": "data-stream-class", "id": id, "default-clock-class-id": format!("c{id}"),
            "event-record-header-field-class": structure(&[
                ("id", number(32, Some("event-record-class-id"))),
                ("t", number(64, Some("default-clock-timestamp"))),
            ]),
        }));
        let (event, clause) = [("start", "begin job key id"), ("stop", "end job key id")][id];
        fragments.push(json!({
            "type": "event-record-class", "id": 0, "data-stream-class-id": id,
            "name": event, "attributes": { "lateralis": { "clauses": [clause] } },
            "payload-field-class": structure(&[("id", number(64, None))]),
        }));
    }
    let text: String = fragments.iter().map(|fragment| format!("\u{1e}{fragment}\n")).collect();
    fs::write(folder.join("metadata"), text).expect("its metadata");
    for (stream, time) in [(0_u32, 1_000_u64), (1, 3_500)] {
        let mut bytes = stream.to_le_bytes().to_vec();
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend(7_u64.to_le_bytes());
        fs::write(folder.join(format!("s{stream}")), bytes).expect("a stream");
    }
}

/// Returns duration, clock error and quality of the span of a trace.
fn span(place: &Place, name: &str) -> String {
    let columns = "status,duration,clock_error,quality";
    let output = place.lat(&["table", name, "--name", "spans", "--column", columns]);
    let text = String::from_utf8(output.stdout).expect("CSV");
    text.lines().nth(1).unwrap_or_default().to_owned()
}

#[test]
fn clocks_with_one_namespace_name_and_uid_are_one() {
    let place = Place::new();
    let clock = |namespace: &str, uid: &str| json!({ "namespace": namespace, "uid": uid });
    write(&place, "same", [clock("example.org", "boot 7"), clock("example.org", "boot 7")]);
    assert_eq!(span(&place, "same"), "complete,2500,0,exact");
    // A difference in any of them may mean another clock.
    write(&place, "boots", [clock("example.org", "boot 7"), clock("example.org", "boot 8")]);
    write(&place, "spaces", [clock("example.org", "boot 7"), clock("example.com", "boot 7")]);
    for name in ["boots", "spaces"] {
        assert_ne!(span(&place, name), "complete,2500,0,exact", "{name}");
    }
    // The same across several traces; converted traces are read again.
    let converted = place.lat(&["convert", "same", "-o", "again", "--to", "ctf2"]);
    assert!(converted.status.success(), "{}", String::from_utf8_lossy(&converted.stderr));
    let metadata = fs::read_to_string(place.0.join("again/metadata")).expect("metadata");
    assert!(metadata.contains(r#""namespace":"example.org","uid":"boot 7""#), "{metadata}");
    let one = |name: &str, uid: &str, origin: &str| {
        let origin = json!({ "namespace": "example.org", "name": "power on", "uid": origin });
        let clock = json!({ "namespace": "example.org", "uid": uid, "origin": origin });
        write(&place, name, [clock.clone(), clock]);
    };
    one("a", "boot 7", "1");
    one("b", "boot 7", "1");
    one("c", "boot 8", "1");
    one("d", "boot 9", "2");
    let relation = |other: &str| {
        let output =
            place.lat(&["table", "a", other, "--name", "recordings", "--column", "clock_relation"]);
        String::from_utf8(output.stdout).expect("CSV").lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(["b", "c", "d"].map(relation), ["same", "origin", "unrelated"]);
}
