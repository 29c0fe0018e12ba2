// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams whose classes come in a rhythm, which the walk expects after the first batch: the
//! results must not depend on that.

use lateralis_ctf::{Reader, StreamFile};

use crate::columns::compare;

/// Numbers aligned to their size, or not at all: then runs have no padding between them.
fn metadata(is_aligned: bool) -> String {
    let [two, four, eight] = if is_aligned { [16, 32, 64] } else { [8, 8, 8] };
    format!(
        "/* CTF 1.8 */
        trace {{ major = 1; minor = 8; byte_order = le; }};
        typealias integer {{ size = 8; align = 8; }} := u8;
        typealias integer {{ size = 16; align = {two}; }} := u16;
        typealias integer {{ size = 32; align = {four}; }} := u32;
        typealias integer {{ size = 64; align = {eight}; }} := u64;
        clock {{ name = c; }};
        typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := time;
        stream {{
            packet.context := struct {{ u32 packet_size; u32 content_size; time timestamp_begin; }};
            event.header := struct {{
                u8 id;
                integer {{ size = 32; align = {four}; map = clock.c.value; }} timestamp;
            }};
        }};
        event {{ id = 0; name = list; fields := struct {{ u32 count; u16 all[count]; }}; }};
        event {{ id = 1; name = wide; fields := struct {{ u8 a; u64 b; }}; }};
        event {{ id = 2; name = text; fields := struct {{ string t; u64 c; }}; }};
        event {{ id = 3; name = often; fields := struct {{ u32 a; u32 b; u8 c; }}; }};
        event {{ id = 4; name = rare; fields := struct {{ string t; string u; }}; }};"
    )
}

/// A packet with events of these classes.
fn packet(ids: &[u8], begin: u64, is_aligned: bool) -> Vec<u8> {
    // As in a whole packet: 16 bytes lie before the events.
    let mut bytes = vec![0; 16];
    let align = |bytes: &mut Vec<u8>, to: usize| {
        let end = if is_aligned { bytes.len().next_multiple_of(to) } else { bytes.len() };
        bytes.resize(end, 0xee);
    };
    for (index, &id) in (0u64..).zip(ids) {
        align(&mut bytes, 4);
        bytes.push(id);
        align(&mut bytes, 4);
        bytes.extend((begin as u32 + index as u32 * 5).to_le_bytes());
        match id {
            0 => {
                align(&mut bytes, 4);
                let count = index as u32 % 7;
                bytes.extend(count.to_le_bytes());
                (0..count).for_each(|number| bytes.extend((number as u16).to_le_bytes()));
            }
            1 => {
                align(&mut bytes, 8);
                bytes.push(index as u8);
                align(&mut bytes, 8);
                bytes.extend((index << 40).to_le_bytes());
            }
            2 => {
                align(&mut bytes, 8);
                bytes.extend((0..index % 20).map(|_| b'x'));
                bytes.push(0);
                align(&mut bytes, 8);
                bytes.extend(index.to_le_bytes());
            }
            3 => bytes.extend([index as u8; 9]),
            _ => bytes.extend(b"two\0texts\0"),
        }
    }
    let bits = bytes.len() as u32 * 8;
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let size = bytes.len() as u32 * 8;
    let head = [size.to_le_bytes(), bits.to_le_bytes()].concat();
    bytes[..8].copy_from_slice(&head);
    bytes[8..16].copy_from_slice(&begin.to_le_bytes());
    bytes
}

fn reader(is_aligned: bool, bytes: &[u8]) -> Reader {
    let file = StreamFile { name: "s".into(), bytes: Box::new(bytes.to_vec()) };
    Reader::new(metadata(is_aligned).as_bytes(), vec![file])
}

/// Enough that the rhythm is known after the first packet.
const COUNT: usize = 600;

fn rhythm() -> Vec<u8> {
    [1, 3, 0, 3, 1, 3, 2, 3].into_iter().cycle().take(COUNT).collect()
}

#[test]
fn events_in_a_rhythm_are_told_as_any_others() {
    let mut seed = 1u32;
    let mut any = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) as u8 % 5
    };
    for is_aligned in [false, true] {
        // On, with what was not expected, and as it happens.
        let mut surprising = rhythm();
        surprising.iter_mut().step_by(37).for_each(|id| *id = any());
        let random: Vec<u8> = (0..COUNT).map(|_| any()).collect();
        let packets = [rhythm(), rhythm(), surprising, random, rhythm(), vec![2], vec![]];
        let bytes = (1..).zip(&packets).map(|(at, ids)| packet(ids, at << 20, is_aligned));
        let whole = reader(is_aligned, &bytes.collect::<Vec<_>>().concat());
        assert_eq!(whole.diagnostics(), []);
        let (events, _) = compare("whole", &whole);
        assert_eq!(events, packets.iter().map(Vec::len).sum::<usize>());
        assert_eq!(whole.damage(), []);
    }
}

#[test]
fn damage_in_a_rhythm_is_the_same_by_columns_and_by_rows() {
    for is_aligned in [false, true] {
        let first = packet(&rhythm(), 1 << 20, is_aligned);
        let second = packet(&rhythm(), 2 << 20, is_aligned);
        let bytes = [first.as_slice(), &second].concat();
        for at in (first.len()..bytes.len()).step_by(29) {
            for change in [0x01, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                compare(&format!("byte {at} other by {change:#x}"), &reader(is_aligned, &changed));
            }
            compare(&format!("cut at {at}"), &reader(is_aligned, &bytes[..at]));
        }
    }
}
