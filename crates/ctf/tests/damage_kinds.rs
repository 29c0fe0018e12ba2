// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Small traces, and exactly what is left of them after each kind of damage: cut at
//! every byte, an unknown event, time that runs backwards, each byte changed.

use crate::genode;
use crate::maker;

use std::fs;
use std::path::Path;

use lateralis_ctf::{Bytes, Reader, StreamFile};
use lateralis_model::text::Babeltrace;
use lateralis_model::{Damage, DamageReason, Packet, Source};
use lateralis_units::Nanos;
use maker::{METADATA, PacketMaker};

/// Packets of full time stamps without checksum, as barectf writes them.
const PLAIN: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; } := u8;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
trace { major = 1; minor = 8; byte_order = le;
    packet.header := struct { u32 magic; u32 stream_id; }; };
clock { name = c; freq = 1000000000; };
stream { id = 0;
    packet.context := struct { time timestamp_begin; time timestamp_end; u32 content_size;
        u32 packet_size; };
    event.header := struct { u8 id; time timestamp; }; };
event { id = 3; stream_id = 0; name = e; fields := struct { u8 x; }; };
"#;

const PLAIN_HEADER: usize = 32;
const PLAIN_EVENT: usize = 10;

fn plain(events: &[(u8, u64)]) -> Vec<u8> {
    let bits = ((PLAIN_HEADER + PLAIN_EVENT * events.len()) * 8) as u32;
    let mut bytes = vec![0xc1, 0x1f, 0xfc, 0xc1, 0, 0, 0, 0];
    let (first, last) = (events[0].1, events[events.len() - 1].1);
    [first, last].iter().for_each(|time| bytes.extend(time.to_le_bytes()));
    [bits, bits].iter().for_each(|bits| bytes.extend(bits.to_le_bytes()));
    for (number, (id, time)) in events.iter().enumerate() {
        bytes.push(*id);
        bytes.extend(time.to_le_bytes());
        bytes.push(number as u8);
    }
    bytes
}

/// A file of which at most this number of bytes is copied at once to find its packets.
struct Copied(Vec<u8>, usize);

impl AsRef<[u8]> for Copied {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Bytes for Copied {
    fn copy_from(&self, offset: u64, into: &mut [u8]) -> usize {
        let rest = &self.0[offset as usize..];
        let count = rest.len().min(into.len()).min(self.1);
        into[..count].copy_from_slice(&rest[..count]);
        count
    }
}

/// All events as text, and all damage; the same where headers are copied, whole or not.
fn read(metadata: &[u8], bytes: &[u8]) -> (Vec<String>, Vec<Damage>) {
    let found = read_from(metadata, Box::new(bytes.to_vec()));
    for most in [20, PLAIN_HEADER, usize::MAX] {
        assert_eq!(read_from(metadata, Box::new(Copied(bytes.to_vec(), most))), found);
    }
    found
}

fn read_from(metadata: &[u8], bytes: Box<dyn Bytes>) -> (Vec<String>, Vec<Damage>) {
    let file = StreamFile { name: "s".into(), bytes };
    let reader = Reader::new(metadata, vec![file]);
    let printer = Babeltrace::new(reader.trace());
    let (mut lines, mut merge) = (Vec::new(), reader.events());
    while let Some(event) = merge.next_event() {
        let mut line = Vec::new();
        printer.line(&mut line, &event);
        lines.push(String::from_utf8_lossy(&line).into_owned());
    }
    (lines, reader.damage().iter().chain(merge.damage()).cloned().collect())
}

/// Cut at every byte: the events written before the cut are delivered, damage is reported unless a
/// packet ends there, and complete packets are complete. Returns the number of events.
fn cut_everywhere(name: &str, metadata: &[u8], bytes: &[u8], packet_ends: &[usize]) -> usize {
    let (whole, damage) = read(metadata, bytes);
    assert_eq!(damage, [], "{name}");
    let of_packets: Vec<usize> =
        packet_ends.iter().map(|&end| read(metadata, &bytes[..end]).0.len()).collect();
    let mut before = 0;
    for cut in 0..bytes.len() {
        let (lines, damage) = read(metadata, &bytes[..cut]);
        assert!(whole.starts_with(&lines), "{name} cut at {cut}: events that nobody wrote");
        assert!(lines.len() >= before, "{name} cut at {cut}: fewer than cut earlier");
        before = lines.len();
        let complete = packet_ends.partition_point(|&end| end <= cut);
        let least = complete.checked_sub(1).map_or(0, |packet| of_packets[packet]);
        assert!(lines.len() >= least, "{name} cut at {cut}: {} of {least}", lines.len());
        let between = cut == 0 || packet_ends.contains(&cut);
        assert_eq!(damage.is_empty(), between, "{name} cut at {cut}: {damage:?}");
        for damage in &damage {
            assert!(matches!(damage.reason, DamageReason::Truncated { .. }), "{name}: {damage:?}");
            assert_eq!(damage.end_bytes, cut as u64, "{name}: {damage:?}");
        }
    }
    whole.len()
}

#[test]
fn cut_at_every_byte_small_traces_keep_what_lies_before() {
    // Without checksums, because with them a cut packet cannot be distinguished from a changed one.
    let own = [
        PacketMaker::new(0, 1000).writer(1, 2).number(5).text("hello", &[7, 8]),
        PacketMaker::new(1, 2000).number(6).text("", &[]).number(7),
    ];
    let [first, second] = own.map(PacketMaker::finish_without_checksum);
    let ends = [first.len(), first.len() + second.len()];
    cut_everywhere("own", METADATA.as_bytes(), &[first, second].concat(), &ends);
    let packet = plain(&[(3, 10), (3, 20), (3, 20), (3, 35)]);
    let ends = [packet.len(), 2 * packet.len()];
    assert_eq!(cut_everywhere("plain", PLAIN.as_bytes(), &packet.repeat(2), &ends), 8);
}

#[test]
fn cut_at_every_byte_a_stream_of_genode_keeps_what_lies_before() {
    let events = |first: u32| (first..first + 9).map(|n| genode::any_event(u64::from(n), n));
    let packet = |first: u32| {
        let times = (u64::from(first), u64::from(first + 8));
        genode::packet("init -> rom", "ep", times, &events(first).collect::<Vec<_>>())
    };
    let [first, second] = [0, 49].map(packet);
    let ends = [first.len(), first.len() + second.len()];
    let bytes = [first, second].concat();
    assert_eq!(cut_everywhere("Genode", genode::METADATA.as_bytes(), &bytes, &ends), 18);
}

/// An event that another version of a policy has, and a clock that was set back.
#[test]
fn unknown_events_and_backward_times_of_genode_cost_one_packet_at_most() {
    let good = |time: u64| {
        let events = [genode::event(1, time, b"a\0"), genode::event(2, time + 5, b"a\0")];
        genode::packet("init", "ep", (time, time + 5), &events)
    };
    let strange =
        [genode::event(1, 30, b"b\0"), genode::event(8, 31, b"?"), genode::event(2, 40, b"b\0")];
    let strange = genode::packet("init", "ep", (30, 40), &strange);
    let bytes = [good(10), strange.clone(), good(50)].concat();
    let (lines, damage) = read(genode::METADATA.as_bytes(), &bytes);
    assert_eq!(lines.len(), 2 + 1 + 2);
    let [damage] = &damage[..] else { panic!("{damage:?}") };
    assert_eq!(damage.reason, DamageReason::UnknownEventClass { id: 8 });
    let begin = good(10).len() + strange.len() - 11 - 10;
    let end = good(10).len() + strange.len();
    assert_eq!(damage.begin_bytes..damage.end_bytes, begin as u64..end as u64);

    let back = [genode::event(1, 70, b"c\0"), genode::event(2, 66, b"c\0")];
    let back = genode::packet("init", "ep", (66, 70), &back);
    let (lines, damage) = read(genode::METADATA.as_bytes(), &[good(10), back, good(90)].concat());
    assert_eq!(lines.len(), 6);
    let [damage] = &damage[..] else { panic!("{damage:?}") };
    assert_eq!(damage.reason, DamageReason::BadTime);
}

#[test]
fn cut_at_every_byte_a_real_trace_keeps_what_lies_before() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let directory = traces.join("ctf-babeltrace-CC0/2/succeed/multi-domains/ust");
    let Ok(metadata) = fs::read(directory.join("metadata")) else {
        println!("SKIPPED: no small trace at {}", directory.display());
        return;
    };
    let bytes = fs::read(directory.join("ust2_channel_0")).unwrap();
    let file = StreamFile { name: "s".into(), bytes: Box::new(bytes.clone()) };
    let reader = Reader::new(&metadata, vec![file]);
    let packets = &reader.streams()[0].packets;
    // The last packet is not full: padding may be cut as well.
    let last = &packets[packets.len() - 2..];
    let begin = last[0].packet.offset_bytes;
    let end = |packet: &Packet| (packet.offset_bytes + packet.size_bytes - begin) as usize;
    let ends: Vec<usize> = last.iter().map(|found| end(&found.packet)).collect();
    let events = cut_everywhere("ust", &metadata, &bytes[begin as usize..], &ends);
    println!("{events} events in packets that end at {ends:?}");
    assert!(events >= 40 && bytes.len() - begin as usize == ends[1], "{events} events");
}

#[test]
fn an_unknown_event_costs_the_rest_of_its_packet() {
    let good = plain(&[(3, 10), (3, 20)]);
    let bad = plain(&[(3, 30), (9, 40), (3, 50)]);
    let bytes = [&good[..], &bad, &plain(&[(3, 60), (3, 70)])].concat();
    let (lines, damage) = read(PLAIN.as_bytes(), &bytes);
    assert_eq!(lines.len(), 2 + 1 + 2);
    let [damage] = &damage[..] else { panic!("{damage:?}") };
    assert_eq!(damage.reason, DamageReason::UnknownEventClass { id: 9 });
    let begin = good.len() + PLAIN_HEADER + PLAIN_EVENT;
    let end = good.len() + bad.len();
    assert_eq!(damage.begin_bytes..damage.end_bytes, begin as u64..end as u64);
    assert_eq!(damage.interval.begin, Some(Nanos(30)));
    assert_eq!(damage.interval.end, Some(Nanos(50)));
    assert_eq!(damage.file, "s");
}

#[test]
fn time_that_runs_backwards_costs_nothing_and_is_told_once_a_packet() {
    let bad = bounded(5, 50, &[(3, 30), (3, 7), (3, 40), (3, 35), (3, 50)]);
    let good = plain(&[(3, 60), (3, 60)]);
    let again = bounded(105, 150, &[(3, 130), (3, 107), (3, 140), (3, 135), (3, 150)]);
    let (lines, damage) = read(PLAIN.as_bytes(), &[&bad[..], &good, &again].concat());
    assert_eq!(lines.len(), 5 + 2 + 5);
    let [first, second] = &damage[..] else { panic!("{damage:?}") };
    assert_eq!(first.reason, DamageReason::BadTime);
    let (begin, end) = (PLAIN_HEADER + PLAIN_EVENT, PLAIN_HEADER + 4 * PLAIN_EVENT);
    assert_eq!(first.begin_bytes..first.end_bytes, begin as u64..end as u64);
    assert_eq!((first.interval.begin, first.interval.end), (Some(Nanos(7)), Some(Nanos(40))));
    let later = (bad.len() + good.len()) as u64;
    assert_eq!(second.begin_bytes, later + first.begin_bytes);
}

/// Its neighbours are the only ones that say when it was, and they may be in the wrong order.
#[test]
fn damage_between_packets_in_the_wrong_order_begins_before_it_ends() {
    let (late, early) = (plain(&[(3, 60), (3, 70)]), plain(&[(3, 30), (3, 40)]));
    let bytes = [&late[..], b"no packet is here", &early].concat();
    let (_, damage) = read(PLAIN.as_bytes(), &bytes);
    let between = damage.iter().find(|one| one.begin_bytes == late.len() as u64).unwrap();
    let ends = (between.interval.begin, between.interval.end);
    assert_eq!(ends, (Some(Nanos(30)), Some(Nanos(70))), "{damage:?}");
    // A packet whose own times contradict each other.
    let mut bytes = plain(&[(3, 30), (9, 40)]);
    let [begin, end] = [80u64, 35].map(u64::to_le_bytes);
    bytes[8..16].copy_from_slice(&begin);
    bytes[16..24].copy_from_slice(&end);
    let (_, damage) = read(PLAIN.as_bytes(), &bytes);
    let of = |one: &lateralis_model::Damage| one.interval.begin.zip(one.interval.end);
    assert!(!damage.is_empty());
    assert!(damage.iter().filter_map(of).all(|(begin, end)| begin <= end), "{damage:?}");
}

/// Chunks that overlap are sorted by time: of two consecutive packets of a file, the first may be
/// later than the second.
#[test]
fn damage_of_packets_that_lie_in_the_order_of_time_in_no_file_is_not_joined() {
    let metadata = PLAIN.replace("stream_id; }", "stream_instance_id; }");
    let late = plain(&[(3, 60), (3, 55)]);
    let early = plain(&[(3, 30), (3, 25)]);
    let other = [plain(&[(3, 40)]), plain(&[(3, 70)])].concat();
    let reader = maker::any_reader(&metadata, &[&[&late[..], &early].concat(), &other]);
    let [stream] = reader.streams() else { panic!("{} streams", reader.streams().len()) };
    let begins: Vec<u64> = stream.packets.iter().map(|found| found.packet.offset_bytes).collect();
    let [length, next] = [late.len(), other.len() / 2].map(|length| length as u64);
    assert_eq!(begins, [length, 0, 0, next], "by time, not by place");
    let damage = reader.visit(&mut |_| {});
    let places: Vec<_> = damage.iter().map(|d| (d.begin_bytes, d.end_bytes)).collect();
    let first = (PLAIN_HEADER + PLAIN_EVENT) as u64;
    assert_eq!(places, [(length + first, 2 * length), (first, length)], "{damage:?}");
}

/// A packet that says of itself that it begins and ends then.
fn bounded(begin: u64, end: u64, events: &[(u8, u64)]) -> Vec<u8> {
    let mut bytes = plain(events);
    bytes[8..16].copy_from_slice(&begin.to_le_bytes());
    bytes[16..24].copy_from_slice(&end.to_le_bytes());
    bytes
}

#[test]
fn an_event_outside_its_packet_costs_the_rest_of_it_and_the_hole_is_whole() {
    let (before, after) = (plain(&[(3, 10), (3, 20)]), plain(&[(3, 170), (3, 180)]));
    // The events, how many are left, and the time of the last of these.
    for (events, left, last) in [
        (&[(3, 30), (3, 40), (3, 9_000), (3, 50)][..], 2, 40),
        (&[(3, 30), (3, 61)], 1, 30),
        (&[(3, u64::MAX), (3, 50)], 0, 30),
        (&[(3, 35), (3, 29), (3, 50)], 1, 35),
        (&[(3, 5), (3, 50)], 0, 30),
    ] {
        let bad = bounded(30, 60, events);
        let (lines, damage) = read(PLAIN.as_bytes(), &[&before[..], &bad, &after].concat());
        assert_eq!(lines.len(), 2 + left + 2, "{events:?}: {lines:?}");
        let [damage] = &damage[..] else { panic!("{events:?}: {damage:?}") };
        assert_eq!(damage.reason, DamageReason::OutsidePacket);
        let begin = before.len() + PLAIN_HEADER + left * PLAIN_EVENT;
        let end = before.len() + bad.len();
        assert_eq!(damage.begin_bytes..damage.end_bytes, begin as u64..end as u64);
        let hole = (damage.interval.begin, damage.interval.end);
        assert_eq!(hole, (Some(Nanos(last)), Some(Nanos(60))), "{events:?}");
    }
    // Times that contradict each other bound nothing.
    let (lines, damage) = read(PLAIN.as_bytes(), &bounded(60, 30, &[(3, 60), (3, 70)]));
    assert_eq!((lines.len(), damage.len()), (2, 0), "{damage:?}");
}

/// Classes in all orders for which columns have a way of their own, and the bad event anywhere.
#[test]
fn events_outside_their_packet_are_no_events_by_columns_and_by_rows() {
    let class = "event { id = 3; stream_id = 0; name = e; fields := struct { u8 x; }; };";
    let more = [4, 5].map(|id| class.replace("id = 3", &format!("id = {id}")));
    let metadata = [PLAIN, &more.concat()].concat();
    let orders: [fn(u64) -> u8; 4] = [
        |_| 3,
        |n| [3, 4, 3, 5][n as usize % 4],
        |n| 3 + (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as u8 % 3,
        |n| if n % 90 == 7 { 4 } else { 3 },
    ];
    const EVENTS: u64 = 700;
    for (number, order) in orders.into_iter().enumerate() {
        for wrong in [0, 1, 63, 400, EVENTS - 2, EVENTS - 1] {
            for time in [5_000_000, u64::MAX, 0] {
                let packet = |index: u64| {
                    let begin = 1_000_000 * (1 + index);
                    let at = |n: u64| begin + 1000 * n;
                    let mut events: Vec<(u8, u64)> =
                        (0..EVENTS).map(|n| (order(n), at(n))).collect();
                    if index == 2 {
                        events[wrong as usize].1 = time;
                    }
                    bounded(begin, at(EVENTS), &events)
                };
                let bytes = [0, 1, 2, 3].map(packet).concat();
                let reader = maker::any_reader(&metadata, &[&bytes]);
                let name = format!("order {number}, event {wrong} at {time}");
                crate::columns::compare(&name, &reader);
                let mut count = 0;
                let damage = reader.visit(&mut |_| count += 1);
                assert_eq!(count, 3 * EVENTS + wrong, "{name}: {damage:?}");
                let [damage] = &damage[..] else { panic!("{name}: {damage:?}") };
                assert_eq!(damage.reason, DamageReason::OutsidePacket, "{name}");
            }
        }
    }
}

#[test]
fn a_packet_that_begins_after_its_first_event_is_fine() {
    let mut bytes = plain(&[(3, 30), (3, 40)]);
    bytes[8..16].copy_from_slice(&35u64.to_le_bytes());
    let (lines, damage) = read(PLAIN.as_bytes(), &bytes);
    assert_eq!((lines.len(), damage.len()), (2, 0), "{damage:?}");
}

/// Each bit of a trace with checksums flipped: the packet is dropped and reported, never its
/// neighbours, and nothing is changed silently.
#[test]
fn a_wrong_bit_costs_its_packet_and_no_other() {
    let packets = [0u64, 1, 2].map(|number| {
        let packet = PacketMaker::new(number, 1000 * (number + 1)).writer(1, 2).number(number);
        packet.text("x", &[1, 2]).finish()
    });
    let bytes = packets.concat();
    let (whole, damage) = read(METADATA.as_bytes(), &bytes);
    assert_eq!((whole.len(), damage.len()), (9, 0));
    for bit in 0..bytes.len() * 8 {
        let mut spoiled = bytes.clone();
        spoiled[bit / 8] ^= 1 << (bit % 8);
        let (lines, damage) = read(METADATA.as_bytes(), &spoiled);
        // Field 116..120 is the sum itself; a sum of 0 would mean none.
        assert!(!damage.is_empty(), "bit {bit} is changed in silence");
        let hit = bit / 8 / packets[0].len();
        let others = (0..whole.len()).filter(|line| line / 3 != hit).map(|line| &whole[line]);
        for line in others {
            assert!(lines.contains(line), "bit {bit}: {line} of another packet is gone");
        }
        let known = lines.iter().all(|line| whole.contains(line));
        assert!(known, "bit {bit}: an event that nobody wrote");
    }
}

#[test]
fn packets_that_do_not_lie_in_the_order_of_time_are_told_and_put_in_order() {
    let [first, second, third] =
        [[(3, 10), (3, 20)], [(3, 30), (3, 40)], [(3, 50), (3, 60)]].map(|events| plain(&events));
    let (in_order, damage) = read(PLAIN.as_bytes(), &[&first[..], &second, &third].concat());
    assert_eq!((in_order.len(), damage), (6, vec![]));
    let (lines, damage) = read(PLAIN.as_bytes(), &[&second[..], &third, &first].concat());
    assert_eq!(lines, in_order, "they end before each other begins");
    let bytes = (second.len() + third.len()) as u64;
    let expected = Damage {
        file: "s".into(),
        begin_bytes: bytes,
        end_bytes: bytes + first.len() as u64,
        reason: DamageReason::OutOfOrder,
        interval: lateralis_model::Interval { begin: Some(Nanos(10)), end: Some(Nanos(20)) },
    };
    assert_eq!(damage, [expected]);

    // Packets of the same time cannot be ordered: they remain in file order, and this is reported.
    let [long, inside] = [[(3, 10), (3, 100)], [(3, 5), (3, 50)]].map(|events| plain(&events));
    let (lines, damage) = read(PLAIN.as_bytes(), &[&long[..], &inside].concat());
    assert_eq!(lines.len(), 4);
    assert!(matches!(&damage[..], [Damage { reason: DamageReason::OutOfOrder, .. }]), "{damage:?}");
    assert!(lines[0].starts_with("timestamp = 0.000000010,"), "{lines:?}");
}
