// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads that occur in switches before any event names their process.

use std::fs;

use serde_json::{Value, json};

use super::client::Viewer;
use crate::place::Place;

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 16; align = 8; signed = false; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };
clock { name = monotonic; freq = 1000000000; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := stamp;
stream { id = 0;
  packet.context := struct { u64 content_size; u64 packet_size; u32 cpu_id; };
  event.header := struct { u16 id; stamp timestamp; }; };
stream { id = 1;
  packet.context := struct { u64 content_size; u64 packet_size; u32 cpu_id; };
  event.header := struct { u16 id; stamp timestamp; };
  event.context := struct { u32 vpid; u32 vtid; }; };
event { name = "sched_switch"; id = 0; stream_id = 0; fields := struct { u32 prev_tid; u32 next_tid; }; };
event { name = "app:mark"; id = 0; stream_id = 1; fields := struct { u32 arg; }; };
"#;

/// Returns an event of either stream: a time, and two or three numbers.
fn event(time: u64, numbers: &[u32]) -> Vec<u8> {
    let mut bytes = 0u16.to_le_bytes().to_vec();
    bytes.extend(time.to_le_bytes());
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes
}

fn packet(stream: u32, cpu: u32, events: &[Vec<u8>]) -> Vec<u8> {
    /// Magic, stream, two sizes, CPU.
    const HEAD: usize = 4 + 4 + 8 + 8 + 4;
    let events = events.concat();
    let bits = 8 * (HEAD + events.len()) as u64;
    let mut bytes = 0xc1fc_1fc1u32.to_le_bytes().to_vec();
    bytes.extend(stream.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes.extend(cpu.to_le_bytes());
    bytes.extend(events);
    bytes
}

#[test]
fn a_process_that_is_known_first_by_its_threads_stands_there_once() {
    let place = Place::new();
    let folder = place.0.join("late");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("metadata"), METADATA).expect("written");
    // Threads 7 and 8 run; later events assign them to process 5.
    for (cpu, thread) in [(0, 7), (1, 8)] {
        let (comes, goes) = ([0, thread], [thread, 0]);
        let ran = [(100, comes), (300, goes), (500, comes), (900, goes)];
        let ran = ran.map(|(time, who)| event(time, &who));
        let mark = event(550 + u64::from(cpu), &[5, thread, 1]);
        let write = |name: &str, bytes| fs::write(folder.join(format!("{name}{cpu}")), bytes);
        write("kernel", packet(0, cpu, &ran)).expect("written");
        write("user", packet(1, cpu, &[mark])).expect("written");
    }
    let viewer = Viewer::start(&place, &["late"]);
    let mut page = viewer.page();
    let open = page.ask("open", json!({}));
    let applications = open["applications"].as_array().expect("a list").clone();
    let of_five: Vec<&Value> = applications.iter().filter(|one| one["pid"] == 5).collect();
    assert_eq!(of_five.len(), 1, "{applications:?}");
    assert!(applications.iter().all(|one| one["pid"] != 7 && one["pid"] != 8), "{applications:?}");
    let sum: u64 = applications.iter().filter_map(|one| one["events"].as_u64()).sum();
    assert_eq!(sum, 10, "each event is of one application: {applications:?}");
    // Earlier runs of its threads have its colour, too.
    let colour = of_five[0]["id"].as_f64().expect("a number") + 1.0;
    for lane in open["lanes"].as_array().expect("lanes").iter().filter(|l| l["kind"] == "cpu") {
        let asked = json!({ "lanes": [lane["id"]], "t0": 0, "t1": 800, "px": 4, "filter": 0 });
        let (result, columns) = page.ask_columns("view", asked);
        assert_eq!(lane["rows"][0]["kind"], "running", "{result}");
        assert_eq!(columns["colour"][..4], [colour, 0.0, colour, colour], "{lane}");
    }
}
