// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Network packets: both lengths are recorded; too long ones are truncated, not lost.
#![cfg(target_os = "linux")]

mod recorded;

use lateralis::{Direction, Interface, packet, packet_part};
use recorded::{Entry, Fields, recorded};

const RECORD: &str = "session=a1;buffer=262144;packet=4096";

static UPLINK: Interface<'_> =
    Interface { name: "uplink", link_type: Interface::ETHERNET, snap_bytes: 64 };
static TUNNEL: Interface<'_> =
    Interface { name: "tun", link_type: Interface::IP, snap_bytes: u32::MAX };

fn frame(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + i / 256) as u8).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    interface: String,
    direction: u8,
    link_type: u16,
    original_bytes: u32,
    flags: u32,
    data: Vec<u8>,
}

/// Decodes by the text of `spec/packets.pleco`, by hand.
fn take(fields: &mut Fields<'_>) -> Seen {
    let (interface, direction, link_type) = (fields.string(), fields.u8(), fields.u16());
    let (captured, original_bytes, flags) = (fields.u32(), fields.u32(), fields.u32());
    let data = fields.sequence(Fields::u8);
    assert_eq!(captured as usize, data.len());
    Seen { interface, direction, link_type, original_bytes, flags, data }
}

fn of(entry: &Entry) -> Seen {
    take(&mut Fields::of(&entry.payload))
}

#[test]
fn packets_are_whole_or_cut_and_tell_how_long_they_were() {
    let name = "packets_are_whole_or_cut_and_tell_how_long_they_were";
    let Some(run) = recorded(name, &[("LATERALIS_RECORD", RECORD)]) else {
        // The schema is not registered: the first packet registers it.
        packet(&UPLINK, Direction::Inbound, &frame(60));
        packet(&UPLINK, Direction::Outbound, &frame(100));
        packet(&TUNNEL, Direction::Unknown, &frame(9000));
        packet_part(&TUNNEL, Direction::Inbound, &frame(10), 1500);
        packet_part(&TUNNEL, Direction::Inbound, &[], usize::MAX);
        return;
    };
    let run = run.succeeded();
    let area = run.area();
    assert_eq!(area.lost(), 0);
    let base = area.schema("packets").base_id;
    let mut entries = area.records(|_, fields| {
        take(fields);
    });
    entries.retain(|entry| entry.id == base);
    entries.sort_by_key(|entry| entry.time);
    // Headers of packet, WRITER record and record, the unused tail, name and fields: the rest fits.
    let most = 4096 - 128 - 16 - 8 - 8 - ("tun".len() + 24);
    let seen = |interface: &Interface<'_>, direction: u8, original_bytes: u32, kept: usize| Seen {
        interface: interface.name.to_owned(),
        direction,
        link_type: interface.link_type,
        original_bytes,
        flags: direction.into(),
        data: frame(kept),
    };
    let expected = [
        seen(&UPLINK, 1, 60, 60),
        seen(&UPLINK, 2, 100, 64),
        seen(&TUNNEL, 0, 9000, most),
        seen(&TUNNEL, 1, 1500, 10),
        seen(&TUNNEL, 1, u32::MAX, 0),
    ];
    assert_eq!(entries.iter().map(of).collect::<Vec<_>>(), expected);
}

#[test]
fn packets_that_nobody_wants_are_not_recorded() {
    let name = "packets_that_nobody_wants_are_not_recorded";
    let record = format!("{RECORD};enable=!*");
    let Some(run) = recorded(name, &[("LATERALIS_RECORD", &record)]) else {
        packet(&UPLINK, Direction::Inbound, &frame(60));
        return;
    };
    let run = run.succeeded();
    assert!(run.area().records(|id, _| panic!("event {id}")).iter().all(|entry| entry.id < 16));
}
