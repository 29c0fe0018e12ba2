// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat stats` keeps a bounded number of rows of a trace; rows left out are counted by section.

use crate::place;

use place::Place;
use serde_json::json;
use std::fs;

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
typealias integer { size = 64; align = 8; signed = true; } := s64;
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
trace { major = 1; minor = 8; byte_order = le;
    packet.header := struct { u32 magic; u32 stream_id; }; };
clock { name = c; freq = 1000000000; };
stream { id = 0;
    packet.context := struct { time timestamp_begin; time timestamp_end; u64 content_size;
        u64 packet_size; u32 cpu_id; };
    event.header := struct { u32 id; time timestamp; };
    event.context := struct { u32 vpid; u32 vtid; }; };
event { id = 0; stream_id = 0; name = sys_enter; fields := struct { u64 id; }; };
event { id = 1; stream_id = 0; name = sys_exit; fields := struct { u64 id; s64 ret; }; };
event { id = 2; stream_id = 0; name = netif_receive_skb; fields := struct { string name; u32 len; }; };
event { id = 3; stream_id = 0; name = page_fault_user; fields := struct { u64 address; }; };
"#;

/// Number of call names, and of network device names.
const NAMES: u64 = 5_000;
/// Number of threads with one page fault each.
const THREADS: u64 = 70_000;

fn write(place: &Place, folder: &str, names: u64, threads: u64) {
    let folder = place.0.join(folder);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("metadata"), METADATA).unwrap();
    let (mut events, mut time) = (Vec::new(), 1_000_u64);
    let mut event = |id: u32, tid: u32, payload: &[&[u8]]| {
        time += 10;
        events.extend(id.to_le_bytes());
        events.extend(time.to_le_bytes());
        [tid, tid].iter().for_each(|number| events.extend(number.to_le_bytes()));
        payload.iter().for_each(|bytes| events.extend(*bytes));
    };
    for number in 0..names {
        let id = (1_000_000 + number).to_le_bytes();
        event(0, 7, &[&id]);
        event(1, 7, &[&id, &0_u64.to_le_bytes()]);
        let name = format!("eth{number}\0");
        event(2, 7, &[name.as_bytes(), &100_u32.to_le_bytes()]);
    }
    for thread in 0..threads {
        event(3, 1_000 + thread as u32, &[&[0; 8]]);
    }
    let bits = 8 * (8 + 4 * 8 + 4 + events.len() as u64);
    let mut bytes = [0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0].to_vec();
    [1_000, time, bits, bits].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(events);
    fs::write(folder.join("stream"), bytes).unwrap();
}

#[test]
fn each_section_of_the_statistics_counts_what_it_leaves_out() {
    let place = Place::new();
    write(&place, "many", NAMES, THREADS);
    let of = |what: &str, of: &str, most: u64, count: u64| {
        let one = json!({ "what": what, "of": of, "most": most, "count": count });
        json!([one])
    };
    let calls = of("calls by name", "names", 4_096, NAMES - 4_096);
    let network = of("packets", "devices", 4_096, NAMES - 4_096);
    let faults = of("page faults", "threads", 65_536, THREADS - 65_536);
    let stats = place.json(&["stats", "many", "--json"]);
    let expected = json!({ "calls": calls, "network": network, "page_faults": faults });
    assert_eq!(stats["left_out"], expected);
    // Together with the rows left out, the numbers are complete.
    let sum = |member: &str, number: &str| -> u64 {
        let rows = stats[member].as_array().expect("rows").iter();
        rows.map(|row| row[number].as_u64().expect("a number")).sum()
    };
    assert_eq!(sum("calls", "returned"), NAMES, "the others have a row together");
    assert_eq!(sum("network", "received"), 4_096);
    assert_eq!(sum("page_faults", "user"), 65_536);
    // A single section reports only its own rows left out.
    let one = place.json(&["stats", "many", "--section", "network", "--json"]);
    assert_eq!(one["left_out"], json!({ "network": network }));
    let page = |section: &str| {
        let output = place.lat(&["stats", "many", "--section", section]);
        String::from_utf8(output.stdout).unwrap()
    };
    let line = "network: 904 packets, of devices beyond the first 4096";
    assert!(page("network").contains(line), "{}", page("network"));
    assert!(!page("calls").contains(line) && page("calls").contains("calls: 904 calls by name"));
    assert!(!page("spans").contains("left out"));
    // If there is room for all rows, none is left out.
    write(&place, "few", 4_096, 65_536);
    assert_eq!(place.json(&["stats", "few", "--json"])["left_out"], json!({}));
}
