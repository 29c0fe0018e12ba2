// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams in which most events are of one class, which the walk expects: the results must not
//! depend on that.

use lateralis_ctf::{Reader, StreamFile};
use lateralis_model::Wanted;

use crate::columns::compare;

/// Headers aligned as those of `lat record`, or not at all.
fn metadata(align: u32) -> String {
    format!(
        "/* CTF 1.8 */
        trace {{ major = 1; minor = 8; byte_order = le; }};
        typealias integer {{ size = 8; align = 8; }} := u8;
        typealias integer {{ size = 16; align = 8; }} := u16;
        typealias integer {{ size = 32; align = 8; }} := u32;
        clock {{ name = c; freq = 2194843750; }};
        typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := time;
        stream {{
            packet.context := struct {{ u32 packet_size; u32 content_size; time timestamp_begin; }};
            event.header := struct {{
                integer {{ size = 16; align = {align}; }} id;
                integer {{ size = 48; align = 8; map = clock.c.value; }} timestamp;
            }} align({align});
        }};
        event {{ id = 0; name = often; fields := struct {{ u32 a; u16 b; u8 c[2]; }}; }};
        event {{ id = 1; name = seldom; fields := struct {{ u32 a; u32 b; }}; }};
        event {{ id = 2; name = text; fields := struct {{ string t; }}; }};"
    )
}

/// A packet of this number of events: all of class 0 except those that `other` returns.
fn packet(count: u64, begin: u64, step: u64, other: &[(u64, u16)]) -> Vec<u8> {
    let mut events = Vec::new();
    for index in 0..count {
        events.resize(events.len().next_multiple_of(8), 0xee);
        let id = other.iter().find(|(at, _)| *at == index).map_or(0, |(_, id)| *id);
        let time = begin + index * step;
        events.extend((u64::from(id) | time << 16).to_le_bytes());
        match id {
            2 => events.extend(b"some text, long\0"),
            _ => events.extend((index * 0x0123_4567).to_le_bytes()),
        }
    }
    let bits = (16 + events.len() as u32) * 8;
    let mut bytes = [bits.to_le_bytes(), bits.to_le_bytes()].concat();
    bytes.extend(begin.to_le_bytes());
    bytes.extend(events);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let size = bytes.len() as u32 * 8;
    bytes[..4].copy_from_slice(&size.to_le_bytes());
    bytes
}

fn reader(align: u32, bytes: &[u8]) -> Reader {
    let file = StreamFile { name: "s".into(), bytes: Box::new(bytes.to_vec()) };
    Reader::new(metadata(align).as_bytes(), vec![file])
}

/// The same by columns, by rows and in order: number of events.
fn check(name: &str, reader: &Reader) -> usize {
    let (events, _) = compare(name, reader);
    let mut rows = Vec::new();
    let mut cursor = reader.cursor(lateralis_model::StreamIndex(0));
    while cursor.advance() {
        rows.push(cursor.time().0);
    }
    let wanted = Wanted::times(reader.trace()).in_order(0, vec![]);
    let mut batches = reader.batches(&wanted);
    let (mut in_order, mut others) = (Vec::new(), 0);
    while let Some(batch) = batches.next_batch() {
        match batch.times_in_order() {
            Some(times) => {
                assert_eq!(times.len(), batch.order().len(), "{name}");
                in_order.extend(times.iter().map(|time| time.0));
            }
            None => others += batch.len(),
        }
    }
    assert!(rows.starts_with(&in_order) && in_order.len() + others == rows.len(), "{name}");
    events
}

/// Enough that the packets after the first are walked as alike.
const COUNT: u64 = 70;

fn packets() -> Vec<u8> {
    [
        packet(COUNT, 1_000, 3, &[]),
        packet(COUNT, 9_000, 0, &[(31, 1), (32, 2)]),
        packet(COUNT, 20_000, 1 << 20, &[(0, 1)]),
        packet(3, 1 << 40, 1 << 33, &[]),
    ]
    .concat()
}

#[test]
fn events_that_are_alike_are_told_as_any_others() {
    for align in [8, 64] {
        let whole = reader(align, &packets());
        assert_eq!(whole.diagnostics(), []);
        assert_eq!(check("whole", &whole), COUNT as usize * 3 + 3, "aligned to {align}");
        // More than one batch of a packet, some and none after the last full one.
        for count in [4_095, 4_096, 4_097, 9_000] {
            let bytes = packet(count, 5, 7, &[(4_090, 1), (4_096, 2), (8_191, 1)]);
            let many = reader(align, &bytes);
            assert_eq!(check("many", &many), count as usize, "aligned to {align}");
        }
    }
}

#[test]
fn damage_among_events_that_are_alike_is_the_same_by_columns_and_by_rows() {
    let bytes = packets();
    let second = packet(COUNT, 1_000, 3, &[]).len();
    for at in (second..bytes.len()).step_by(3) {
        for (align, change) in [(64, 0x01), (8, 0x80)] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            check(&format!("byte {at} other by {change:#x}"), &reader(align, &changed));
        }
        check(&format!("cut at {at}"), &reader(64, &bytes[..at]));
    }
}
