// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times at the limits of each format, in every format that has times, read by every command that computes
//! with them: no panic, no wrong exit status, no hang.
//!
//! `lat` is built with overflow checks, as in the released binary: an overflow is a panic and never a wrong
//! number.

#[path = "../../perfdata/tests/common/maker.rs"]
mod maker;

use crate::place::Place;
use crate::view::client::Viewer;
use lateralis_model::ByteOrder;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};

/// Limits of 32, 53, 63 and 64 bits, and of the types used for computing times.
const TICKS: [u64; 15] = [
    0,
    1,
    u32::MAX as u64,
    1 << 32,
    1 << 53,
    (1 << 62) - 1,
    i64::MAX as u64 / 1_000_000_000,
    i64::MAX as u64 / 1000,
    i64::MAX as u64 - 1,
    i64::MAX as u64,
    1 << 63,
    (1 << 63) + 1,
    u64::MAX / 1000,
    u64::MAX - 1,
    u64::MAX,
];

/// Orders of the times: rising, falling, alternating between both ends.
fn orders() -> [Vec<u64>; 3] {
    let rising = TICKS.to_vec();
    let falling = rising.iter().rev().copied().collect();
    let jumping = (0..TICKS.len()).map(|n| TICKS[if n % 2 == 0 { n / 2 } else { 14 - n / 2 }]);
    [rising.clone(), falling, jumping.collect()]
}

/// CPU time limit of one command, in seconds; a command that ends takes less than a second.
const CPU_SECONDS: u32 = 60;
/// Limit of the address space of one command, in KiB.
const MEMORY_KIB: u32 = 8 << 20;

/// Runs `lat`, and returns a description if it ended wrongly.
fn fault(place: &Place, arguments: &[&str]) -> Option<String> {
    let output = limited()
        .args(arguments)
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .env("XDG_CACHE_HOME", place.0.join("cache"))
        .env("TMPDIR", &place.0)
        .stdin(Stdio::null())
        .output()
        .expect("a shell can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_fine = matches!(output.status.code(), Some(0..=2)) && !errors.contains("panicked");
    (!is_fine).then(|| format!("lat {}: {}\n{errors}", arguments.join(" "), output.status))
}

/// A shell that executes `lat` within limits enforced by the kernel.
fn limited() -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -t {CPU_SECONDS}; ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_lat")]);
    command
}

/// Runs every command on one trace.
fn read(place: &Place, trace: &str, faults: &mut Vec<String>) {
    // A trace that is refused as a whole tests no computation.
    let events = place.lat(&["print", trace]).stdout.split(|&byte| byte == b'\n').count();
    assert!(events > 3, "{trace}: {events} lines");
    // Times beyond the timeline are counted; all commands give the same count.
    let beyond = |arguments: &[&str]| {
        let output = place.lat(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let count = |line: &str| line.strip_prefix("warning: ")?.split(' ').next()?.parse().ok();
        let warnings = text.lines().filter(|line| line.contains("beyond an end of the timeline"));
        warnings.filter_map(count).next().unwrap_or(0u64)
    };
    let lines = place.lat(&["print", trace, "--format", "json"]).stdout;
    let is_end = |line: &&str| {
        let event: Value = serde_json::from_str(line).expect("JSON");
        matches!(event["time_ns"].as_i64(), Some(i64::MIN | i64::MAX))
    };
    let ends = String::from_utf8_lossy(&lines).lines().filter(is_end).count() as u64;
    let counted = [["print", trace], ["info", trace], ["stats", trace]].map(|words| beyond(&words));
    if counted != [ends; 3] {
        faults.push(format!(
            "{trace}: {ends} events at the ends of the timeline, counted {counted:?}"
        ));
    }
    let mut run = |arguments: &[&str]| faults.extend(fault(place, arguments));
    for more in [&[][..], &["--json"]] {
        run(&[&["info", trace], more].concat());
        run(&[&["stats", trace], more].concat());
    }
    for format in ["text", "babeltrace", "json"] {
        run(&["print", trace, "--format", format]);
    }
    let ends = ["-9223372036.854775808s", "9223372036.854775807s"];
    run(&["print", trace, "--from", ends[0], "--until", ends[1]]);
    run(&["stats", trace, "--from", "1ns", "--until", ends[1]]);
    for table in ["events", "spans", "messages", "counters", "states", "losses", "damage"] {
        run(&["table", trace, "--name", table]);
    }
    run(&["tracepoints", trace]);
    run(&["diff", trace, trace]);
    run(&["recover", trace, "-o", "saved", "--force"]);
    for target in ["ctf", "ctf2", "perfetto", "chrome", "fxt", "jsonl", "csv", "parquet", "pcapng"]
    {
        run(&["convert", trace, "--to", target, "-o", "converted", "--force"]);
        // The converted trace contains the same times.
        if ["ctf", "ctf2", "perfetto", "chrome", "fxt"].contains(&target)
            && place.0.join("converted").exists()
        {
            run(&["print", "converted"]);
            run(&["stats", "converted"]);
        }
        let _ = fs::remove_file(place.0.join("converted"));
        let _ = fs::remove_dir_all(place.0.join("converted"));
    }
    let _ = fs::remove_dir_all(place.0.join("saved"));
    view(place, trace, faults);
}

/// Builds the index of a view, and sends the requests of a page.
fn view(place: &Place, trace: &str, faults: &mut Vec<String>) {
    let errors = place.0.join("view.err");
    let Some(viewer) = Viewer::start_limited(place, &[trace], limited(), &errors) else {
        // Without events it prints an error and ends.
        let text = fs::read_to_string(&errors).unwrap_or_default();
        if !text.starts_with("error: ") || text.contains("panicked") {
            faults.push(format!("lat view {trace}: {text}"));
        }
        return;
    };
    let mut page = viewer.page();
    let open = page.try_ask("open", json!({})).unwrap_or_default();
    let lanes: Vec<&Value> =
        open["lanes"].as_array().into_iter().flatten().map(|l| &l["id"]).collect();
    let end = open["end"].as_f64().unwrap_or(0.0);
    for (t0, t1) in
        [(0.0, end), (-1e300, 1e300), (end, 0.0), (end - 1.0, end + 1.0), (-9.3e18, 9.3e18)]
    {
        let asked = |more: Value| {
            let mut asked =
                json!({"lanes": lanes, "t0": t0, "t1": t1, "px": 50, "filter": 0, "bins": 20});
            for (name, value) in more.as_object().into_iter().flatten() {
                asked[name] = value.clone();
            }
            asked
        };
        for (method, more) in [
            ("view", json!({})),
            ("overview", json!({})),
            ("arrows", json!({})),
            ("levels", json!({"counters": [0]})),
            ("lane_activity", json!({})),
            ("utilisation", json!({"by": "cpu"})),
            ("utilisation", json!({"by": "thread"})),
            ("stats", json!({})),
            ("histogram", json!({"span": 0})),
            ("brushed", json!({"kind": 0})),
            ("deltas", json!({"class": 0, "per": "all"})),
            ("flame", json!({"by": "all"})),
            ("events", json!({"from": 0, "count": 100})),
            ("find", json!({"t": t1})),
            ("step", json!({"t": t0, "forward": true})),
            ("step", json!({"t": t1, "forward": false})),
            ("at", json!({"lane": 0, "row": 0, "t": t1, "within": 1e300})),
            ("activities", json!({"kind": 0, "from": 0, "count": 9, "order": "duration"})),
            ("tracepoints", json!({})),
        ] {
            page.send(method, asked(more));
            // The request may be refused or answered.
            page.answer();
        }
    }
    drop(page);
    drop(viewer);
    let text = fs::read_to_string(&errors).unwrap_or_default();
    if text.contains("panicked") {
        faults.push(format!("lat view {trace}: {text}"));
    }
}

fn check(place: &Place, files: Vec<(String, Vec<u8>)>) {
    let mut faults = Vec::new();
    for (name, bytes) in files {
        fs::write(place.0.join(&name), bytes).expect("a file");
        read(place, &name, &mut faults);
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn ctf(place: &Place, name: &str, clock: (u64, i64, i64), times: &[u64]) {
    let (frequency, seconds, ticks) = clock;
    let metadata = format!(
        "/* CTF 1.8 */\ntypealias integer {{ size = 32; align = 8; }} := u32;\n\
         typealias integer {{ size = 64; align = 8; }} := u64;\n\
         typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := time;\n\
         trace {{ major = 1; minor = 8; byte_order = le;\n\
         packet.header := struct {{ u32 magic; u32 stream_id; }}; }};\n\
         env {{ domain = \"kernel\"; tracer_name = \"lttng-modules\"; tracer_major = 2; }};\n\
         clock {{ name = c; freq = {frequency}; offset_s = {seconds}; offset = {ticks}; }};\n\
         stream {{ id = 0; packet.context := struct {{ time timestamp_begin; time timestamp_end; \
         u64 content_size; u64 packet_size; u32 cpu_id; }};\n\
         event.header := struct {{ u32 id; time timestamp; }};\n\
         event.context := struct {{ u32 _tid; }}; }};\n\
         event {{ id = 0; stream_id = 0; name = \"syscall_entry_read\"; fields := struct {{ u32 fd; }}; }};\n\
         event {{ id = 1; stream_id = 0; name = \"syscall_exit_read\"; fields := struct {{ u32 ret; }}; }};\n"
    );
    let folder = place.0.join(name);
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("metadata"), metadata).expect("a file");
    let mut stream = Vec::new();
    for packet in times.chunks(5) {
        let bits = (8 + 4 * 8 + 4 + packet.len() as u64 * 20) * 8;
        stream.extend([0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0]);
        for word in [packet[0], packet[packet.len() - 1], bits, bits] {
            stream.extend(word.to_le_bytes());
        }
        stream.extend([0; 4]);
        for (number, time) in packet.iter().enumerate() {
            stream.extend((number as u32 % 2).to_le_bytes());
            stream.extend(time.to_le_bytes());
            stream.extend([7, 0, 0, 0, 3, 0, 0, 0]);
        }
    }
    fs::write(folder.join("stream"), stream).expect("a file");
}

#[test]
fn ctf_with_clocks_and_times_at_their_ends() {
    let clocks = [
        (1_000_000_000, 0, 0),
        (1, i64::MAX, i64::MAX),
        (3, i64::MIN + 1, 0),
        (2_400_000_000, 0, i64::MIN + 1),
        (u64::MAX, i64::MAX, i64::MIN + 1),
        (1 << 33, -1, 1),
    ];
    let (place, mut faults) = (Place::new(), Vec::new());
    for (number, clock) in clocks.into_iter().enumerate() {
        for (order, times) in orders().iter().enumerate().skip(number % 2) {
            let name = format!("ctf-{number}-{order}");
            ctf(&place, &name, clock, times);
            read(&place, &name, &mut faults);
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn chrome_json_with_times_at_their_ends() {
    let words = [
        "0",
        "-0.001",
        "9223372036854775.807",
        "9223372036854775.808",
        "-9223372036854775.808",
        "-9223372036854775.809",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "1e15",
        "9.2e15",
        "1e18",
        "-1e18",
        "1e300",
        "-1e300",
        "1.7976931348623157e308",
        "1e-300",
    ];
    let mut events = Vec::new();
    for (number, ts) in words.iter().enumerate() {
        for (other, dur) in words.iter().enumerate().skip(number % 3).step_by(3) {
            let tid = (number + other) % 4;
            events.push(format!(
                r#"{{"ph":"X","name":"x","ts":{ts},"dur":{dur},"pid":1,"tid":{tid}}}"#
            ));
        }
        let id = number % 5;
        for ph in ["B", "E", "b", "n", "e", "s", "f", "i", "C", "N", "D"] {
            let what = format!(r#""ph":"{ph}","name":"y","cat":"c","id":{id}"#);
            let place = format!(r#""ts":{ts},"pid":1,"tid":9,"args":{{"v":{ts}}}"#);
            events.push(format!("{{{what},{place}}}"));
        }
    }
    let forward = format!("[{}]", events.join(","));
    events.reverse();
    let backward = format!("[{}]", events.join(","));
    let files = vec![
        ("forward.json".to_owned(), forward.into_bytes()),
        ("backward.json".to_owned(), backward.into_bytes()),
    ];
    check(&Place::new(), files);
}

#[test]
fn fxt_with_times_at_their_ends() {
    let mut files = Vec::new();
    for (number, per_second) in [1_000_000_000, 1, u64::MAX, 0, 24_000_000].into_iter().enumerate()
    {
        // The magic number, then the tick rate.
        let mut words = vec![0x0016_5478_4604_0010, 1 | 2 << 4, per_second];
        for (index, time) in orders()[number % 3].iter().enumerate() {
            // Events with an inline thread, category and name of one word each, of these kinds: instant,
            // counter, begin, end, complete, asynchronous begin and end, flow begin and end.
            let kind = [0, 2, 3, 2, 3, 4, 5, 7, 8, 10][index % 10];
            let more: &[u64] = if kind >= 4 { &[TICKS[14 - index]] } else { &[] };
            let length = 6 + more.len() as u64;
            words.push(4 | length << 4 | kind << 16 | 0x8001 << 32 | 0x8001 << 48);
            words.extend([*time, 7, 8]);
            words.extend([
                u64::from_le_bytes(*b"c\0\0\0\0\0\0\0"),
                u64::from_le_bytes(*b"n\0\0\0\0\0\0\0"),
            ]);
            words.extend(more);
        }
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        files.push((format!("f{number}.fxt"), bytes));
    }
    check(&Place::new(), files);
}

#[test]
fn captures_with_times_at_their_ends() {
    let mut files = Vec::new();
    let resolutions = [0u8, 6, 9, 10, 19, 127, 0x80, 0x80 | 63, 0x80 | 64, 0xff];
    for (number, resolution) in resolutions.into_iter().enumerate() {
        let mut bytes = Vec::new();
        let mut block = |kind: u32, body: &[u8]| {
            let length = body.len() as u32 + 12;
            bytes.extend(kind.to_le_bytes());
            bytes.extend(length.to_le_bytes());
            bytes.extend(body);
            bytes.extend(length.to_le_bytes());
        };
        block(0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat());
        let offset = [0, i64::MAX, i64::MIN, -1][number % 4];
        let mut interface = vec![1, 0, 0, 0, 0, 0, 0, 0];
        interface.extend([9, 0, 1, 0, resolution, 0, 0, 0, 14, 0, 8, 0]);
        interface.extend(offset.to_le_bytes());
        interface.extend([0; 4]);
        block(1, &interface);
        for time in &orders()[number % 3] {
            let mut packet = vec![0; 4];
            packet.extend(((time >> 32) as u32).to_le_bytes());
            packet.extend((*time as u32).to_le_bytes());
            packet.extend([16, 0, 0, 0, 16, 0, 0, 0]);
            packet.extend([0x45; 16]);
            block(6, &packet);
        }
        files.push((format!("c{number}.pcapng"), bytes));
    }
    for (number, magic) in [0xa1b2_c3d4u32, 0xa1b2_3c4d].into_iter().enumerate() {
        let mut bytes = magic.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0]);
        for time in TICKS {
            bytes.extend(((time >> 32) as u32).to_le_bytes());
            bytes.extend((time as u32).to_le_bytes());
            bytes.extend([16, 0, 0, 0, 16, 0, 0, 0]);
            bytes.extend([0x45; 16]);
        }
        files.push((format!("p{number}.pcap"), bytes));
    }
    check(&Place::new(), files);
}

/// Replaces every 64-bit number equal to one of `old` by the next of `new`.
fn replaced(mut bytes: Vec<u8>, old: &[u64], new: &[u64], order: ByteOrder) -> Vec<u8> {
    let of = |value: u64| match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    };
    let mut count = 0;
    for at in 0..bytes.len().saturating_sub(7) {
        if old.iter().any(|old| bytes[at..at + 8] == of(*old)) {
            bytes[at..at + 8].copy_from_slice(&of(new[count % new.len()]));
            count += 1;
        }
    }
    assert!(count >= 2, "there are times in it");
    bytes
}

#[test]
fn perf_data_and_trace_dat_with_times_at_their_ends() {
    let mut files = Vec::new();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for (number, times) in orders().iter().enumerate() {
            for shift in [0, 5, 9] {
                let mut times = times.clone();
                times.rotate_left(shift);
                // Times of records and samples, then also the pair that relates the clock to UTC.
                let old = [1000, 1100, 1500, 2000, 2100, 2200, 900, 1_000_000_000];
                let old = if shift == 5 { &old[..] } else { &old[..6] };
                let bytes = replaced(maker::perf_data(order), old, &times, order);
                files.push((format!("p{order:?}{number}{shift}.data"), bytes));
                let bytes = replaced(maker::trace_dat(order), &[5000, 6000], &times, order);
                files.push((format!("t{order:?}{number}{shift}.dat"), bytes));
            }
        }
    }
    check(&Place::new(), files);
}

/// Encodes a number as a varint of Protocol Buffers.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn message(field: u64, inside: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(inside.len() as u64), inside.to_vec()].concat()
}

#[test]
fn perfetto_with_clocks_and_times_at_their_ends() {
    let mut files = Vec::new();
    for (index, times) in orders().iter().enumerate() {
        let mut bytes = Vec::new();
        let process = [number(1, 4), message(2, b"p")].concat();
        let track = [number(1, 99), message(2, b"t"), message(3, &process)].concat();
        bytes.extend(message(1, &message(60, &track)));
        for (at, time) in times.iter().enumerate() {
            // Snapshots of three clocks: boot time, real time and an incremental clock of one sequence.
            let clock = |id: u64, value: u64, more: &[u8]| {
                message(1, &[number(1, id), number(2, value), more.to_vec()].concat())
            };
            let step = [number(3, u64::from(at % 2 == 0)), number(4, TICKS[14 - at])].concat();
            let snapshot = [
                clock(6, *time, &[]),
                clock(1, TICKS[14 - at], &[]),
                clock(64, TICKS[(at + 5) % 15], &step),
            ];
            bytes.extend(message(1, &[number(10, 1), message(6, &snapshot.concat())].concat()));
            let kind = [1, 2, 3, 4][at % 4];
            let mut event =
                [number(9, kind), number(11, 99), message(22, b"c"), message(23, b"n")].concat();
            if kind == 4 {
                event.extend(number(30, *time));
            }
            for clock in [0, 1, 64] {
                let mut packet = number(8, *time);
                if clock != 0 {
                    packet.extend(number(58, clock));
                }
                packet.extend([number(10, 1), message(11, &event)].concat());
                bytes.extend(message(1, &packet));
            }
        }
        files.push((format!("t{index}.pftrace"), bytes));
    }
    check(&Place::new(), files);
}
