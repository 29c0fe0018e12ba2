// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A tree as the trace recorder writes it, byte by byte.

use lateralis_ctf::{Reader, StreamFile};
use lateralis_model::{Source, Trace};
use lateralis_seedformats::genode::{Place, annotate, gather, is_genode};

use crate::{listing, roles, shared};

/// The layout of the recorder's streams, as its metadata describes it.
const METADATA: &str = include_str!("genode-metadata.txt");

fn event(id: u8, time: u64, payload: &[u8]) -> Vec<u8> {
    [&[id][..], &time.to_le_bytes(), payload].concat()
}

fn checkpoint(time: u64, data: u32, addr: u64, kind: u8, name: &str) -> Vec<u8> {
    let name = format!("{name}\0");
    let payload = [&data.to_le_bytes()[..], &addr.to_le_bytes(), &[kind], name.as_bytes()].concat();
    event(7, time, &payload)
}

/// A packet: what the recorder writes for a thread in a period.
fn packet(label: &str, thread: &str, xpos: u8, times: (u64, u64), events: &[Vec<u8>]) -> Vec<u8> {
    let names = format!("{label}\0{thread}\0");
    let header_bytes = 8 + 25 + names.len();
    let events = events.concat();
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&0xc1fc_1fc1u32.to_le_bytes());
    bytes.extend_from_slice(&0u32.to_le_bytes());
    bytes.extend_from_slice(&times.0.to_le_bytes());
    bytes.extend_from_slice(&times.1.to_le_bytes());
    bytes.extend_from_slice(&(((header_bytes + events.len()) * 8) as u32).to_le_bytes());
    bytes.extend_from_slice(&((header_bytes * 8) as u16).to_le_bytes());
    // Four bits each: x, y, width, height.
    bytes.extend_from_slice(&[xpos, 0x11, 128]);
    bytes.extend_from_slice(names.as_bytes());
    assert_eq!(bytes.len(), header_bytes);
    bytes.extend_from_slice(&events);
    bytes
}

/// The streams of a run by path.
fn tree() -> Vec<(&'static str, Vec<u8>)> {
    let router = "init -> runtime -> nic_router";
    let first = packet(
        router,
        "ep",
        1,
        (100, 300),
        &[
            event(1, 110, b"alloc\0"),
            event(2, 150, b"alloc\0"),
            checkpoint(160, 0, 0, 1, "handle_packet"),
            checkpoint(260, 7, 0, 2, "handle_packet"),
            event(6, 300, &[&2u32.to_le_bytes()[..], &0xabcdu64.to_le_bytes()].concat()),
        ],
    );
    let second = packet(
        router,
        "ep",
        1,
        (400, 500),
        &[
            checkpoint(410, 1, 0x1000, 0x10, "session"),
            checkpoint(420, 99, 0, 0, "queue"),
            checkpoint(500, 1, 0x1000, 0x11, "session"),
        ],
    );
    let rom = packet(
        "init -> rom",
        "ep",
        0,
        (115, 145),
        &[event(3, 115, b"alloc\0"), event(4, 145, b"alloc\0"), event(5, 145, &1u32.to_le_bytes())],
    );
    vec![("init/runtime/nic_router/ep", [first, second].concat()), ("init/rom/ep", rom)]
}

fn open(metadata: &[u8], bytes: Vec<u8>) -> Reader {
    let file = StreamFile { name: "ep".into(), bytes: Box::new(bytes) };
    Reader::new(metadata, vec![file])
}

fn check(metadata: &[u8]) {
    let readers: Vec<(&str, Reader)> =
        tree().into_iter().map(|(path, bytes)| (path, open(metadata, bytes))).collect();
    for (path, reader) in &readers {
        assert!(is_genode(Source::trace(reader)), "{path}");
        assert!(Source::damage(reader).is_empty(), "{path}: {:?}", Source::damage(reader));
    }
    let sources: Vec<(&str, &dyn Source)> =
        readers.iter().map(|(path, reader)| (*path, reader as &dyn Source)).collect();
    let trace = gather(&sources, u64::MAX);
    let router = "init -> runtime -> nic_router -> ep";
    let (of_router, of_rom) = ("cpu_id=1 pid=1 tid=1", "cpu_id=0 pid=2 tid=2");
    let session = "addr=4096 type=";
    let expected = [
        format!("110 {router} rpc:call {of_router} name='alloc' state='await_reply'"),
        format!("115 init -> rom -> ep rpc:dispatch {of_rom} name='alloc' state='ready'"),
        format!("145 init -> rom -> ep rpc:reply {of_rom} name='alloc' state='await_rpc'"),
        format!("145 init -> rom -> ep signal:submit {of_rom} number=1"),
        format!("150 {router} rpc:returned {of_router} name='alloc' state='ready'"),
        format!(
            "160 {router} checkpoint:START {of_router} data=0 addr=0 type=1 name='handle_packet'"
        ),
        format!(
            "260 {router} checkpoint:END {of_router} data=7 addr=0 type=2 name='handle_packet'"
        ),
        format!("300 {router} signal:receive {of_router} number=2 context=43981 state='ready'"),
        format!("410 {router} checkpoint:OBJ_NEW {of_router} data=1 {session}16 name='session'"),
        format!("420 {router} checkpoint queue {of_router} data=99 addr=0 type=0 name='queue'"),
        format!("500 {router} checkpoint:OBJ_DEL {of_router} data=1 {session}17 name='session'"),
    ];
    assert_eq!(listing(&trace), expected);
    assert_eq!(trace.names().processes[&1], "init -> runtime -> nic_router");
    assert_eq!(trace.names().threads[&2], "ep");
    assert_eq!(roles(&trace, "rpc:call"), ["begin rpc", "state component state"]);
    assert_eq!(roles(&trace, "checkpoint:END"), ["end checkpoint key name"]);
    assert!(trace.damage().is_empty() && trace.losses().is_empty());
}

#[test]
fn a_tree_is_one_trace_with_labels_and_roles() {
    check(METADATA.as_bytes());
}

#[test]
fn the_metadata_of_the_recorder_describes_the_same() {
    if let Some(metadata) = shared("genode/metadata") {
        check(&metadata);
    }
}

#[test]
fn annotations_say_what_can_be_said_of_classes() {
    let (path, bytes) = tree().remove(0);
    let reader = open(METADATA.as_bytes(), bytes);
    let mut trace: Trace = Source::trace(&reader).clone();
    annotate(&mut trace, path);
    annotate(&mut trace, path);
    let label = trace.env("genode.label").and_then(|label| label.as_text());
    assert_eq!(label, Some("init -> runtime -> nic_router"));
    let classes = &trace.stream_classes[0].event_classes;
    let class = |name: &str| classes.iter().find(|class| class.name == name).unwrap();
    let roles = |name: &str| {
        let all = lateralis_model::role::Role::of(class(name));
        all.map(|role| role.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(roles("Rpc_reply"), ["end dispatch"]);
    assert_eq!(roles("Checkpoint"), ["counter data"]);
    let members = class("Checkpoint").payload.as_ref().unwrap().members();
    let kind = &members.iter().find(|member| member.name == "type").unwrap().class.kind;
    let lateralis_model::FieldKind::Unsigned(kind) = kind else { panic!() };
    assert_eq!(kind.labels[3].name, "OBJ_NEW");
}

#[test]
fn packets_without_names_have_those_of_their_path_and_a_cut_one_costs_itself() {
    let good = packet("", "", 0, (1, 2), &[event(5, 1, &1u32.to_le_bytes())]);
    let cut = [&good[..], &good[..20]].concat();
    let reader = open(METADATA.as_bytes(), cut);
    let trace = gather(&[("init/rom/ep", &reader)], u64::MAX);
    assert_eq!(
        listing(&trace),
        ["1 init -> rom -> ep signal:submit cpu_id=0 pid=1 tid=1 number=1"]
    );
    assert_eq!(trace.damage().len(), 1);
    assert_eq!(trace.damage()[0].file, "init/rom/ep: ep");
    assert_eq!(Place::from_path("init/rom/ep").thread, "ep");
}
