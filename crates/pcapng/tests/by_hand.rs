// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captures made word by word: what is read from each.

mod support;

use lateralis_model::{DamageReason, LossCause, MemoryTrace, Source};
use lateralis_pcapng::{Options, read, write};
use support::{File, packets};

fn all(bytes: &[u8]) -> MemoryTrace {
    read("by-hand", bytes, u64::MAX).unwrap()
}

fn brief(trace: &MemoryTrace) -> Vec<(i64, String, u8)> {
    packets(trace).into_iter().map(|p| (p.time.unwrap_or(-1), p.interface, p.data[0])).collect()
}

fn named(time: i64, name: &str, data: u8) -> (i64, String, u8) {
    (time, name.to_owned(), data)
}

#[test]
fn interfaces_are_numbered_anew_in_each_section_whatever_its_byte_order() {
    let mut file = File::new();
    file.section(false);
    file.interface("uplink", &[]);
    file.interface("nic0", &[]);
    file.packet(0, 1, &[1], &[]);
    file.packet(1, 2, &[2], &[]);
    file.section(true);
    file.interface("nic0", &[]);
    file.interface("third", &[]);
    file.interface("uplink", &[]);
    file.packet(0, 3, &[3], &[]);
    file.packet(1, 4, &[4], &[]);
    file.packet(2, 5, &[5], &[]);
    let trace = all(&file.bytes);
    let expected = [
        named(1000, "uplink", 1),
        named(2000, "nic0", 2),
        named(3000, "nic0", 3),
        named(4000, "third", 4),
        named(5000, "uplink", 5),
    ];
    assert_eq!(brief(&trace), expected);
    let streams: Vec<_> = trace.streams().into_iter().map(|stream| stream.name).collect();
    assert_eq!(streams, ["uplink", "nic0", "third"], "equal names are one stream");
    assert!(trace.damage().is_empty());
}

#[test]
fn nameless_interfaces_of_two_sections_are_two() {
    let mut file = File::new();
    for section in 0..2u8 {
        file.section(false);
        file.interface("", &[]);
        file.packet(0, section.into(), &[section], &[]);
    }
    let expected = [named(0, "interface 0", 0), named(1000, "interface 0 of section 2", 1)];
    assert_eq!(brief(&all(&file.bytes)), expected);
}

#[test]
fn resolution_and_offset_are_those_of_the_interface() {
    let mut file = File::new();
    file.section(true);
    let offset = (14, (-3i64).to_be_bytes().to_vec());
    file.interface("a", &[(9, vec![9]), offset]);
    file.interface("b", &[(9, vec![0x80 | 20])]);
    file.interface("c", &[(9, vec![12])]);
    // 10^-30 s: no clock counts that fast, the time is converted.
    file.interface("d", &[(9, vec![30])]);
    file.packet(0, 4_000_000_007, &[0], &[]);
    file.packet(1, 1 << 21, &[1], &[]);
    file.packet(2, 3_000_000_001_999, &[2], &[]);
    file.packet(3, u64::MAX, &[3], &[]);
    let trace = all(&file.bytes);
    let expected = [
        named(0, "d", 3),
        named(1_000_000_007, "a", 0),
        named(2_000_000_000, "b", 1),
        named(3_000_000_001, "c", 2),
    ];
    assert_eq!(brief(&trace), expected);
    let frequencies: Vec<u64> = trace.trace().clocks.iter().map(|c| c.frequency()).collect();
    assert_eq!(frequencies, [1_000_000_000, 1 << 20, 1_000_000_000_000, 1_000_000_000]);
    assert!(trace.trace().clocks.iter().all(|clock| clock.unix_epoch));
}

#[test]
fn direction_comments_and_lengths_are_fields() {
    let mut file = File::new();
    file.section(false);
    file.interface("a", &[]);
    let options =
        [(1, b"one".to_vec()), (2, 0x0000_0002u32.to_le_bytes().to_vec()), (1, b"two".to_vec())];
    file.packet(0, 1, &[7; 5], &options);
    let seen = packets(&all(&file.bytes));
    assert_eq!(seen[0].direction, 2);
    assert_eq!(seen[0].comment.as_deref(), Some("one\ntwo"));
    assert_eq!((seen[0].original, seen[0].data.len()), (99, 5));
}

#[test]
fn a_packet_without_a_time_has_none() {
    let mut file = File::new();
    file.section(false);
    file.interface("a", &[]);
    file.block(3, &[3, 0, 0, 0, 1, 2, 3], &[]);
    let seen = packets(&all(&file.bytes));
    assert_eq!((seen[0].time, seen[0].data.as_slice()), (None, &[1, 2, 3][..]));
}

#[test]
fn losses_of_packets_and_statistics_are_told_once() {
    let mut file = File::new();
    file.section(false);
    file.interface("a", &[]);
    file.interface("b", &[]);
    let drops = |count: u64| (4, count.to_le_bytes().to_vec());
    file.packet(0, 10, &[0], &[]);
    file.packet(0, 20, &[0], &[drops(3)]);
    file.statistics(0, 30, 5);
    file.packet(0, 40, &[0], &[drops(2)]);
    file.statistics(0, 50, 7);
    file.statistics(1, 60, 4);
    file.statistics(1, 70, 9);
    let trace = all(&file.bytes);
    let losses: Vec<_> = trace
        .losses()
        .iter()
        .map(|loss| {
            assert_eq!(loss.cause, LossCause::Discarded);
            let nanos = |time: Option<lateralis_units::Nanos>| time.map(|time| time.0);
            let interval = (nanos(loss.interval.begin), nanos(loss.interval.end));
            (loss.stream.0, loss.count.unwrap(), interval)
        })
        .collect();
    let expected = [
        (0, 3, (Some(10_000), Some(20_000))),
        (0, 2, (None, Some(30_000))),
        (0, 2, (Some(20_000), Some(40_000))),
        (1, 4, (None, Some(60_000))),
        (1, 5, (Some(60_000), Some(70_000))),
    ];
    assert_eq!(losses, expected);
    let mut written = Vec::new();
    write(&trace, &mut written, &Options::default()).unwrap();
    let again = all(&written);
    let sums = |trace: &MemoryTrace| {
        let of = |name: &str| {
            let streams = trace.streams();
            let losses = trace.losses().iter();
            let of_stream = losses.filter(|l| streams[l.stream.0 as usize].name == name);
            of_stream.map(|l| l.count.unwrap()).sum::<u64>()
        };
        (of("a"), of("b"))
    };
    assert_eq!(sums(&again), (7, 9));
}

#[test]
fn a_bad_block_costs_itself_and_a_cut_one_says_how_much_is_missing() {
    let mut file = File::new();
    file.section(false);
    file.interface("a", &[]);
    file.packet(0, 1, &[1], &[]);
    let bad = file.bytes.len();
    file.packet(0, 2, &[2], &[]);
    let after = file.bytes.len();
    file.packet(0, 3, &[3], &[]);
    let whole = file.bytes.len();
    file.packet(0, 4, &[4], &[]);

    let mut other = file.bytes.clone();
    other[bad + 4] ^= 8;
    let trace = all(&other);
    let expected = [named(1000, "a", 1), named(3000, "a", 3), named(4000, "a", 4)];
    assert_eq!(brief(&trace), expected);
    let damage = &trace.damage()[0];
    assert_eq!((damage.begin_bytes, damage.end_bytes), (bad as u64, after as u64));

    let trace = all(&file.bytes[..whole + 20]);
    assert_eq!(brief(&trace).len(), 3);
    let missing_bytes = Some((file.bytes.len() - whole - 20) as u64);
    assert_eq!(trace.damage()[0].reason, DamageReason::Truncated { missing_bytes });

    // Bytes lost from the middle: what follows is no longer aligned.
    other.drain(bad + 3..bad + 6);
    assert_eq!(brief(&all(&other)).len(), 3);
}

#[test]
fn packets_behind_a_lost_section_are_not_given_names_of_another() {
    let mut file = File::new();
    file.section(false);
    file.interface("wrong", &[]);
    file.packet(0, 1, &[1], &[]);
    let damaged = file.bytes.len();
    file.packet(0, 2, &[2], &[]);
    file.section(true);
    file.interface("right", &[]);
    file.packet(0, 3, &[3], &[]);
    // The last packet of the first section claims to be long; the next section's
    // byte order is unreadable.
    file.bytes[damaged + 4] = 0xf1;
    let magic = file.bytes.windows(4).position(|w| w == [0x1a, 0x2b, 0x3c, 0x4d]).unwrap();
    file.bytes[magic] = 0;
    assert_eq!(brief(&all(&file.bytes)), [named(1000, "wrong", 1)]);
}

#[test]
fn the_limit_of_memory_keeps_what_was_read() {
    let mut file = File::new();
    file.section(false);
    file.interface("a", &[]);
    for time in 0..1000 {
        file.packet(0, time, &[0; 100], &[]);
    }
    let trace = read("f", &file.bytes, 20_000).unwrap();
    let count = packets(&trace).len();
    assert!(count > 50 && count < 200, "{count}");
    assert!(trace.remarks()[0].contains("limit of memory"), "{:?}", trace.remarks());
}

#[test]
fn classic_files_of_every_kind_read_alike() {
    let kinds = [
        (0xa1b2_c3d4u32, 1_000_000u32, false),
        (0xa1b2_3c4d, 1_000_000_000, false),
        (0xa1b2_cd34, 1_000_000, true),
    ];
    for (magic, unit, modified) in kinds {
        for big in [false, true] {
            let maker = File { bytes: Vec::new(), big };
            let mut bytes: Vec<u8> = Vec::new();
            for word in [magic, if big { 0x0002_0004 } else { 0x0004_0002 }, 0, 0, 65535, 113] {
                bytes.extend_from_slice(&maker.u32(word));
            }
            for second in [100, 101] {
                for word in [second, unit / 2, 3, 60] {
                    bytes.extend_from_slice(&maker.u32(word));
                }
                if modified {
                    // Interface 5, some protocol, outgoing.
                    bytes.extend_from_slice(&maker.u32(5));
                    bytes.extend_from_slice(&[8, 0, 4, 0]);
                }
                bytes.extend_from_slice(&[1, 2, 3]);
            }
            let trace = all(&bytes);
            let seen = packets(&trace);
            assert_eq!(seen.len(), 2, "{magic:#x} {big}");
            assert_eq!(seen[1].time, Some(101_500_000_000));
            assert_eq!((seen[1].link_type, seen[1].original), (113, 60));
            let expected = if modified { ("interface 5", 2) } else { ("interface 0", 0) };
            assert_eq!((seen[0].interface.as_str(), seen[0].direction), expected);
            // One byte less: the second packet is cut, the first is whole.
            let cut = all(&bytes[..bytes.len() - 1]);
            assert_eq!(packets(&cut), seen[..1]);
            let reason = DamageReason::Truncated { missing_bytes: Some(1) };
            assert_eq!(cut.damage()[0].reason, reason);
        }
    }
}

#[test]
fn classic_packets_behind_damage_are_found_again() {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 1] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for number in 0..6u32 {
        for word in [1000 + number, 1, 8, 8, number, number] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
    }
    // The length of the third packet.
    bytes[24 + 2 * 24 + 8 + 3] = 0x7f;
    let trace = all(&bytes);
    let numbers: Vec<u8> = packets(&trace).iter().map(|packet| packet.data[0]).collect();
    assert_eq!(numbers, [0, 1, 3, 4, 5]);
    assert_eq!(trace.damage().len(), 1);
    assert_eq!((trace.damage()[0].begin_bytes, trace.damage()[0].end_bytes), (72, 96));
}

#[test]
fn what_is_no_capture_is_refused_in_one_sentence() {
    let error = read("x", b"\x7fELF....", 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no packet capture: x: begins with 7f 45 4c 46; give a pcapng or pcap file"
    );
}

/// A classic capture of microseconds: a packet of one byte for each second and fraction.
fn classic(times: &[(u32, u32)]) -> Vec<u8> {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    bytes.extend([0; 8]);
    [65_535u32, 1].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    for (number, (seconds, fraction)) in times.iter().enumerate() {
        [*seconds, *fraction, 1, 1].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.push(number as u8);
    }
    bytes
}

#[test]
fn nanoseconds_under_the_magic_number_of_microseconds_are_nanoseconds() {
    let times = [(7, 999_999_999), (8, 12), (8, 500_000_000), (9, 1_000_000)];
    let trace = all(&classic(&times));
    let found: Vec<_> = brief(&trace).into_iter().map(|(time, ..)| time).collect();
    assert_eq!(found, [7_999_999_999, 8_000_000_012, 8_500_000_000, 9_001_000_000]);
    assert_eq!(trace.damage(), []);
    assert!(trace.remarks()[0].contains("read as nanoseconds"), "{:?}", trace.remarks());
}

#[test]
fn a_fraction_that_is_none_costs_no_packet() {
    let times = [(7, 1), (7, 1_000_000), (8, 3), (9, 4_000_000_000)];
    let trace = all(&classic(&times));
    let found: Vec<_> = brief(&trace).into_iter().map(|(time, ..)| time / 1000).collect();
    assert_eq!(found, [7_000_001, 7_999_999, 8_000_003, 9_999_999]);
    assert_eq!(trace.damage(), []);
    assert!(trace.remarks()[0].contains("2 packets"), "{:?}", trace.remarks());
}
