// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captured packets are on lanes of their own, and complete.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::client::Viewer;
use super::{printed, the_list_is_what_is_printed};
use crate::place::Place;

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let bytes = body.len() as u32 + 12;
    [&kind.to_le_bytes()[..], &bytes.to_le_bytes(), &body, &bytes.to_le_bytes()].concat()
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [code.to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Interface, time in microseconds, direction in `epb_flags`, length on the wire; ten bytes of each were
/// captured.
type Seen = (u32, u32, u32, u32);

fn capture(interfaces: &[&str], packets: &[Seen]) -> Vec<u8> {
    const MAGIC: u32 = 0x1a2b_3c4d;
    let section = [&MAGIC.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let mut bytes = block(0x0a0d_0d0a, &section);
    for name in interfaces {
        // Ethernet, unlimited length; option `if_name`.
        let body = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &option(2, name.as_bytes()), &[0; 4]].concat();
        bytes.extend(block(1, &body));
    }
    for (interface, time, direction, original) in packets {
        let words = [*interface, 0, *time, 10, *original];
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend([7; 12]);
        body.extend([option(2, &direction.to_le_bytes()), vec![0; 4]].concat());
        bytes.extend(block(6, &body));
    }
    bytes
}

#[test]
fn packets_stand_on_a_lane_of_each_interface_and_direction() {
    let place = Place::new();
    // Two packets at the same time, on two lanes.
    let packets = [
        (0, 1000, 1, 60),
        (0, 1500, 2, 1514),
        (1, 1500, 1, 99),
        (0, 2000, 1, 70),
        (1, 2500, 0, 80),
        (0, 2500, 1, 90),
    ];
    fs::write(place.0.join("seen.pcapng"), capture(&["eth0", "lo"], &packets)).expect("written");
    let viewer = Viewer::start(&place, &["seen.pcapng"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    let lanes = open["lanes"].as_array().expect("lanes");
    let told: BTreeMap<&str, (&str, u64)> = lanes
        .iter()
        .map(|lane| {
            let text = |name: &str| lane[name].as_str().expect("text");
            (text("name"), (text("kind"), lane["events"].as_u64().expect("a count")))
        })
        .collect();
    let expected = [("eth0 in", 3), ("eth0 out", 1), ("lo", 1), ("lo in", 1)];
    assert_eq!(told, expected.map(|(name, count)| (name, ("packets", count))).into());
    // Each is found at its position, with its length.
    for (interface, time, direction, original) in packets {
        let name = ["eth0", "lo"][interface as usize];
        let name = format!("{name}{}", ["", " in", " out"][direction as usize]);
        let lane = lanes.iter().find(|lane| lane["name"] == name.as_str()).expect("its lane");
        let t = (time - packets[0].1) * 1000;
        let row = &lane["rows"][0]["row"];
        let asked = json!({ "lane": lane["id"], "row": row, "t": t, "within": 0, "filter": 0 });
        let answer = page.ask("at", asked);
        let fields = answer["thing"]["fields"].as_array().expect("fields");
        let length = fields.iter().find(|field| field["name"] == "original_bytes");
        assert_eq!(length.map(|field| &field["value"]), Some(&Value::from(original)), "{answer}");
    }
    the_list_is_what_is_printed(&mut page, &printed(&place, "seen.pcapng"));
    // A script sees each on its lane.
    let text = "filter('long', e => e.fields.original_bytes > 85);";
    let ran = page.ask("script", json!({ "name": "long.js", "text": text }));
    let filter = page.ask("filter", json!({ "scripts": [ran["script"]] }));
    assert_eq!(filter["count"], 3, "{ran}");
}
