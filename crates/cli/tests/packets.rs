// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captured packets, of a program and of an interface, compared with tshark, dumpcap and babeltrace2.

use crate::place::Place;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a command can be run here; prints a message if not.
fn has(command: &str, argument: &str) -> bool {
    let found = Command::new(command)
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !found {
        eprintln!("SKIPPED: no {command} here");
    }
    found
}

fn is_root() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    if !root {
        eprintln!("SKIPPED: packets are captured by root only");
    }
    root
}

/// Returns the requested columns of tshark, one row per packet.
fn tshark(file: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "separator=|", "-r"]).arg(file);
    // Protocols that tshark guesses from ports must not hide the requested ones.
    command.args(["--disable-protocol", "all"]).args(["--enable-protocol", "frame"]);
    for protocol in ["eth", "ethertype", "ip", "udp", "data", "arp", "ipv6", "icmpv6"] {
        command.args(["--enable-protocol", protocol]);
    }
    if !filter.is_empty() {
        command.args(["-Y", filter]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let row = |line: &str| line.split('|').map(ToString::to_string).collect();
    text(&output.stdout).lines().map(row).collect()
}

/// Returns the number of events of a class that babeltrace2 finds; it must not print a warning.
fn babeltrace_count(trace: &Path, event: &str) -> Option<usize> {
    let Ok(output) = Command::new("babeltrace2").arg(trace).output() else {
        eprintln!("SKIPPED: no babeltrace2 here");
        return None;
    };
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    Some(text(&output.stdout).lines().filter(|line| line.contains(event)).count())
}

fn succeeded(output: &Output) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
}

/// Returns the capture's section of the report.
fn source(report: &Value) -> &Value {
    let sources = report["sources"].as_array().expect("sources");
    sources.iter().find(|source| source["name"] == "packets").expect("captured packets")
}

fn detail(report: &Value, key: &str) -> u64 {
    let value = source(report)["details"][key].as_str();
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {key} in {report}"))
}

#[test]
fn packets_of_a_program_are_read_by_tshark_with_interface_direction_and_thread() {
    let place = Place::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tracer/c/examples/eg_packet.c");
    let Some(program) = place.compile("eg_packet", &example, "demo") else { return };
    place.record("rec", &[], &program, &[]);
    assert_eq!(place.report("rec")["events"]["packets:packet"], 20);
    succeeded(&place.lat(&["convert", "rec", "--to", "pcapng", "-o", "rec.pcapng"]));
    if !has("tshark", "--version") {
        return;
    }
    let fields = [
        "frame.interface_name",
        "frame.packet_flags_direction",
        "frame.cap_len",
        "frame.len",
        "udp.length",
    ];
    let mut expected = Vec::new();
    for i in 0..10 {
        let (whole, udp) = (42 + 10 * i, 8 + 10 * i);
        for (interface, direction, kept) in [("inside", 1, whole), ("uplink", 2, 42)] {
            expected.push(vec![
                interface.to_owned(),
                format!("0x{direction:08x}"),
                kept.to_string(),
                whole.to_string(),
                udp.to_string(),
            ]);
        }
    }
    let file = place.0.join("rec.pcapng");
    assert_eq!(tshark(&file, "", &fields), expected);
    let pid = place.report("rec")["processes"][0]["pid"].to_string();
    let comments = tshark(&file, "", &["frame.comment"]);
    assert_eq!(comments.len(), 20);
    let comment = &comments[0][0];
    assert!(comment.starts_with(&format!("process {pid} (")) && comment.contains("thread "));
}

/// Sends `count` datagrams to `port` of the address and, if there is an echo, receives each answer.
const CLIENT: &str = "
import socket, sys
address, port, count, echo = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == 'echo'
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
for i in range(count):
    s.sendto((b'%06d' % i) * (1 + i % 200), (address, port))
    if echo:
        s.recv(65536)
";
/// The echo server. Prints a line when it is ready.
const SERVER: &str = "
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[2])))
print('ready', flush=True)
while True:
    data, who = s.recvfrom(65536)
    s.sendto(data, who)
";

/// Two network namespaces with a pair of virtual Ethernet interfaces between them, `a0` and `b0`.
struct Hosts {
    a: String,
    b: String,
}

fn ip(arguments: &str) -> bool {
    let status = Command::new("ip").args(arguments.split(' ')).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

impl Hosts {
    fn new() -> Option<Hosts> {
        let pid = std::process::id();
        let hosts = Hosts { a: format!("lat-a-{pid}"), b: format!("lat-b-{pid}") };
        let Hosts { a, b } = &hosts;
        let steps = [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("-n {a} link add a0 type veth peer name b0 netns {b}"),
            format!("-n {a} addr add 10.9.0.1/24 dev a0"),
            format!("-n {b} addr add 10.9.0.2/24 dev b0"),
            format!("-n {a} link set lo up"),
            format!("-n {a} link set a0 up"),
            format!("-n {b} link set b0 up"),
        ];
        let made = steps.iter().all(|step| ip(step));
        if !made {
            eprintln!("SKIPPED: no network namespaces here");
        }
        made.then_some(hosts)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for namespace in [&self.a, &self.b] {
            ip(&format!("netns del {namespace}"));
        }
    }
}

struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn first_line(of: impl std::io::Read) -> String {
    let mut line = String::new();
    let _ = std::io::BufRead::read_line(&mut std::io::BufReader::new(of), &mut line);
    line
}

#[test]
fn both_ends_of_a_wire_see_the_same_packets() {
    if !is_root() || !has("python3", "--version") || !has("tshark", "--version") || !has("ip", "-V")
    {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let inside = |namespace: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).current_dir(&place.0).stdin(Stdio::null());
        command
    };
    let server = inside(&hosts.b)
        .args(["python3", "-c", SERVER, "10.9.0.2", "4711"])
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Running(server.expect("the server"));
    assert_eq!(first_line(server.0.stdout.take().expect("its output")), "ready\n");
    let dumpcap = inside(&hosts.b)
        .args(["dumpcap", "-q", "-i", "b0", "-f", "udp port 4711", "-w", "b.pcapng"])
        .args(["-c", "600"])
        .stderr(Stdio::piped())
        .spawn();
    let mut dumpcap = Running(dumpcap.expect("dumpcap"));
    // It prints its output file when the capture has started.
    let mut said = std::io::BufReader::new(dumpcap.0.stderr.take().expect("its messages"));
    let mut line = String::new();
    while !line.starts_with("File:") {
        line.clear();
        let read = std::io::BufRead::read_line(&mut said, &mut line).expect("a message");
        assert_ne!(read, 0, "dumpcap has ended");
    }
    let output = inside(&hosts.a)
        .arg(env!("CARGO_BIN_EXE_lat"))
        .args(["record", "--quiet", "-o", "rec", "--packets", "a0,lo", "--"])
        .args(["python3", "-c", CLIENT, "10.9.0.2", "4711", "300", "echo"])
        .env("LATERALIS_DIR", place.0.join("areas"))
        .output()
        .expect("lat");
    succeeded(&output);
    assert!(dumpcap.0.wait().expect("dumpcap ends").success());

    // The kernel's count, the report, our reader, babeltrace2 and tshark agree.
    let report = place.report("rec");
    let received = detail(&report, "a0.received") + detail(&report, "lo.received");
    assert_eq!(detail(&report, "a0.dropped") + detail(&report, "lo.dropped"), 0);
    assert!(received >= 600, "{received}");
    assert_eq!(report["events"]["packets:packet"], received);
    let info = place.json(&["info", "rec", "--json"]);
    let events = info["events"].as_array().expect("events");
    let packets = events.iter().find(|event| event["name"] == "packets:packet").expect("packets");
    assert_eq!(packets["count"], received);
    if let Some(count) = babeltrace_count(&place.0.join("rec/ctf"), "packets:packet:") {
        assert_eq!(count as u64, received);
    }
    succeeded(&place.lat(&["convert", "rec", "--to", "pcapng", "-o", "a.pcapng"]));
    let ours = place.0.join("a.pcapng");
    assert_eq!(tshark(&ours, "", &["frame.number"]).len() as u64, received);

    // Names, directions and bytes are those that the other end observed.
    let fields = ["ip.src", "udp.length", "frame.len", "data.data"];
    let here = ["frame.interface_name", "frame.packet_flags_direction"];
    let mine = tshark(&ours, "udp.port == 4711", &[&here[..], &fields].concat());
    let theirs = tshark(&place.0.join("b.pcapng"), "udp.port == 4711", &fields);
    assert_eq!(mine.len(), 600);
    let rest: Vec<_> = mine.iter().map(|row| row[2..].to_vec()).collect();
    assert_eq!(rest, theirs);
    for row in &mine {
        assert_eq!(row[0], "a0");
        // Bits 2 to 4: to this host.
        let expected = if row[2] == "10.9.0.1" { 2 } else { 1 };
        let direction = u32::from_str_radix(row[1].trim_start_matches("0x"), 16).expect("flags");
        assert_eq!(direction & 3, expected, "{row:?}");
    }
    // Time stamps are on the recording's clock within the reported error.
    let times = |file: &Path| {
        let rows = tshark(file, "udp.port == 4711", &["frame.time_epoch"]);
        let times = rows.iter().map(|row| row[0].parse::<f64>().expect("a time"));
        times.collect::<Vec<_>>()
    };
    assert!(times(&ours).windows(2).all(|pair| pair[0] <= pair[1]));
    let bound_ns = detail(&report, "stamp_error_ns");
    assert!(bound_ns < 10_000_000, "{bound_ns}");
}

#[test]
fn a_packet_of_the_loopback_is_recorded_once_and_cut_where_asked() {
    if !is_root() || !has("python3", "--version") {
        return;
    }
    let place = Place::new();
    let record = ["record", "--quiet", "-o", "rec", "--packets", "lo", "--snap", "60", "--"];
    let client = ["python3", "-c", CLIENT, "127.0.0.1", "54711", "200", "send"];
    succeeded(&place.lat(&[&record[..], &client].concat()));
    let report = place.report("rec");
    let (received, dropped) = (detail(&report, "lo.received"), detail(&report, "lo.dropped"));
    assert_eq!(report["events"]["packets:packet"], received - dropped);
    assert_eq!(dropped, 0);
    succeeded(&place.lat(&["convert", "rec", "--to", "pcapng", "-o", "rec.pcapng"]));
    if !has("tshark", "--version") {
        return;
    }
    let fields = ["frame.interface_name", "frame.cap_len", "frame.len"];
    let seen = tshark(&place.0.join("rec.pcapng"), "udp.dstport == 54711 and not icmp", &fields);
    let expected: Vec<_> = (0..200)
        .map(|i| {
            let whole: usize = 42 + 6 * (1 + i % 200);
            vec!["lo".to_owned(), whole.min(60).to_string(), whole.to_string()]
        })
        .collect();
    assert_eq!(seen, expected);
}

/// Sends requests and answers of unique lengths; prints the ids of client and server.
const ASKING: &str = "import os, socket
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(1)
child = os.fork()
if child == 0:
    c = socket.create_connection(s.getsockname())
    for n in range(20):
        c.sendall(b'x' * (10007 + 26 * n)); c.recv(5003 + 26 * n, socket.MSG_WAITALL)
    c.close(); os._exit(0)
print(child, os.getpid(), flush=True)
k, _ = s.accept()
for n in range(20):
    k.recv(10007 + 26 * n, socket.MSG_WAITALL); k.sendall(b'y' * (5003 + 26 * n))
os.wait()";

#[test]
fn a_packet_knows_the_thread_and_the_span_that_sent_it_and_read_it() {
    if !is_root() || !has("python3", "--version") || !crate::kernel::usable(&[]) {
        return;
    }
    let place = Place::new();
    let words = ["record", "--with", "io", "--packets", "lo", "--kernel", "packets"];
    let words = [&words[..], &["-o", "out", "--quiet", "--", "python3", "-c", ASKING]].concat();
    let output = place.lat(&words);
    succeeded(&output);
    let said = text(&output.stdout);
    let who: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [client, server] = who[..] else { panic!("{said}") };
    let table = place.lat(&["table", "out", "--name", "network_packets", "--json"]);
    let rows: Vec<Value> = text(&table.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    let of = |bytes: u64, sender: u64| {
        let is_it = |row: &&Value| row["bytes"] == bytes && row["sent_tid"] == sender;
        rows.iter().find(is_it).unwrap_or_else(|| panic!("{bytes} of {sender}: {rows:#?}"))
    };
    // Headers: 14 bytes of Ethernet, 20 of IP, 32 of TCP with time stamps.
    for n in 0..20 {
        for (bytes, from, to) in [(10007, client, server), (5003, server, client)] {
            let row = of(66 + bytes + 26 * n, from);
            assert_eq!((&row["sent_in"], &row["read_tid"]), (&"io_write".into(), &to.into()));
            assert_eq!((&row["read_in"], &row["quality"]), (&"io_read".into(), &"exact".into()));
            assert!(row["sent_ts"].as_i64() <= row["read_ts"].as_i64(), "{row}");
        }
    }
    // Acknowledgements sent by the kernel itself have no sender.
    assert!(rows.iter().any(|row| row["bytes"] == 66 && row["sent_tid"].is_null()), "{rows:#?}");
}

/// The recorder is stopped while more packets arrive than the kernel has room for.
#[test]
fn packets_without_room_are_counted_and_told_in_every_format() {
    if !is_root() || !has("python3", "--version") {
        return;
    }
    let place = Place::new();
    let flood = "import os, signal, socket
recorder = os.getppid()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
os.kill(recorder, signal.SIGSTOP)
for i in range(6000):
    s.sendto(bytes(1000), ('127.0.0.1', 54712))
os.kill(recorder, signal.SIGCONT)
";
    let record = ["record", "--quiet", "-o", "rec", "--buffer", "1M", "--packets", "lo", "--"];
    succeeded(&place.lat(&[&record[..], &["python3", "-c", flood]].concat()));
    let report = place.report("rec");
    let (received, dropped) = (detail(&report, "lo.received"), detail(&report, "lo.dropped"));
    assert!(received >= 6000 && dropped > 0, "{received} {dropped}");
    assert_eq!(report["events"]["packets:packet"], received - dropped);
    assert_eq!(report["totals"]["lost"]["full"], dropped);
    let causes = source(&report)["lost"].as_object().expect("causes");
    assert_eq!(causes.values().filter_map(Value::as_u64).sum::<u64>(), dropped);
    let info = place.json(&["info", "rec", "--json"]);
    assert!(info["losses"].to_string().contains(&dropped.to_string()), "{dropped}: {info}");
    // The interface statistics in the capture, as read by our own reader.
    succeeded(&place.lat(&["convert", "rec", "--to", "pcapng", "-o", "rec.pcapng"]));
    let capture = place.json(&["info", "rec.pcapng", "--json"]);
    assert!(capture["losses"].to_string().contains(&dropped.to_string()), "{dropped}: {capture}");
}

#[test]
fn without_the_right_the_rest_is_recorded_and_the_right_is_named() {
    if !is_root() || !has("setpriv", "--version") {
        return;
    }
    let place = Place::new();
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-net_raw", "--inh-caps", "-net_raw", env!("CARGO_BIN_EXE_lat")])
        .args(["record", "-o", "rec", "--packets", "lo", "--", "sh", "-c", "exit 7"])
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .output()
        .expect("setpriv");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("CAP_NET_RAW") && said.contains("interface=lo"), "{said}");
    let report = place.report("rec");
    let problems = report["problems"].to_string();
    assert!(problems.contains("CAP_NET_RAW"), "{problems}");
    assert_eq!(report["complete"], true);
}

#[test]
fn wrong_interfaces_and_modes_are_refused_before_anything_starts() {
    let place = Place::new();
    let output = place.lat(&["record", "-o", "rec", "--packets", "l0", "--", "touch", "ran"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("l0") && said.contains("lo") && said.contains("any"), "{said}");
    let mode = ["--mode", "overwrite", "--packets", "lo"];
    let output =
        place.lat(&[&["record", "-o", "rec"], &mode[..], &["--", "touch", "ran"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(!place.0.join("ran").exists() && !place.0.join("rec").exists());
}
