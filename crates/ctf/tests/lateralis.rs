// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces in the layout that Lateralis writes [spec/trace-layout.md]: writers,
//! losses, checksums, and what is left of them when bytes are damaged.

use crate::maker;

use lateralis_model::{DamageReason, Interval, LossCause};
use lateralis_units::{CpuId, Nanos};
use maker::{PacketMaker, read, reader};

fn two_packets() -> (Vec<u8>, Vec<u8>) {
    let first = PacketMaker::new(0, 1000).writer(1, 2).number(5).text("hi", &[7, 8]);
    let second = PacketMaker::new(1, 2000).number(6).writer(1, 3).number(7);
    (first.finish(), second.finish())
}

#[test]
fn events_come_with_their_writer_time_and_cpu() {
    let (first, second) = two_packets();
    let reader = reader(&[first, second].concat());
    let (events, damage) = read(&reader);
    assert_eq!(
        events,
        [
            "1/2 lateralis:WRITER { pid = 1, tid = 2 }",
            "1/2 t:NUMBER { value = 5 }",
            "1/2 t:TEXT { text = \"hi\", n = 2, list = [ [0] = 7, [1] = 8 ] }",
            "1/2 t:NUMBER { value = 6 }",
            "1/3 lateralis:WRITER { pid = 1, tid = 3 }",
            "1/3 t:NUMBER { value = 7 }",
        ]
    );
    assert_eq!(damage, [] as [String; 0]);
    assert_eq!(reader.diagnostics(), []);
    let mut merge = reader.events();
    let event = merge.next_event().unwrap();
    assert_eq!((event.time, event.packet.cpu), (Nanos(1010), Some(CpuId(3))));
}

#[test]
fn a_clock_of_48_bits_wraps() {
    let high = 0x0123_ffff_ffff_fff0u64;
    let reader = reader(&PacketMaker::new(0, high).number(1).number(2).number(3).finish());
    let mut merge = reader.events();
    let mut times = Vec::new();
    while let Some(event) = merge.next_event() {
        times.push(event.ticks.unwrap().0);
    }
    assert_eq!(times, [high + 10, high + 20, high + 30]);
}

#[test]
fn losses_are_by_cause_and_between_packets() {
    let packets = [
        PacketMaker::new(0, 1000).number(1).lost([2, 0, 0, 0]).finish(),
        PacketMaker::new(1, 2000).number(2).lost([2, 0, 0, 0]).finish(),
        PacketMaker::new(2, 3000).number(3).lost([5, 1, 0, 4]).finish(),
    ];
    let reader = reader(&packets.concat());
    let losses: Vec<_> = reader.losses().iter().map(|l| (l.cause, l.count.unwrap())).collect();
    let expected = [
        (LossCause::Full, 2),
        (LossCause::Full, 3),
        (LossCause::TooBig, 1),
        (LossCause::NoRing, 4),
    ];
    assert_eq!(losses, expected);
    let interval = Interval { begin: Some(Nanos(2010)), end: Some(Nanos(3010)) };
    assert_eq!(reader.losses()[1].interval, interval);
}

#[test]
fn a_gap_in_the_numbers_is_a_loss_of_packets() {
    let packets = [
        PacketMaker::new(0, 1000).writer(1, 2).number(1).finish(),
        PacketMaker::new(4, 2000).number(2).finish(),
    ];
    let reader = reader(&packets.concat());
    let losses: Vec<_> = reader.losses().iter().map(|l| (l.cause, l.count)).collect();
    assert_eq!(losses, [(LossCause::Packets, Some(3))]);
    // The writer after the gap is unknown.
    assert_eq!(read(&reader).0.last().unwrap(), "? t:NUMBER { value = 2 }");
}

#[test]
fn a_wrong_bit_anywhere_costs_only_its_packet() {
    let (first, second) = two_packets();
    let whole = [first.clone(), second].concat();
    let (all, _) = read(&reader(&whole));
    let of_second = ["? t:NUMBER { value = 6 }", &all[4], &all[5]];
    for bit in 0..first.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let (events, damage) = read(&reader(&bytes));
        assert_eq!(events, of_second, "bit {bit}");
        assert_eq!(damage.len(), 1, "bit {bit}: {damage:?}");
    }
}

#[test]
fn without_a_checksum_the_events_before_the_damage_are_delivered() {
    let maker = PacketMaker::new(0, 1000).writer(1, 2).number(5).number(6);
    let mut bytes = maker.finish_without_checksum();
    // The id of the last record, which is 16 bytes long.
    let at = bytes.len() - 16;
    bytes[at] = 99;
    let reader = reader(&bytes);
    let (events, damage) = read(&reader);
    assert_eq!(events.len(), 2);
    assert_eq!(damage, ["stream0: bytes 160..176: unknown event class 99"]);
}

#[test]
fn reading_goes_on_behind_foreign_bytes() {
    let (first, second) = two_packets();
    let (all, _) = read(&reader(&[first.clone(), second.clone()].concat()));
    let alone = ["? t:NUMBER { value = 6 }", &all[4], &all[5]];
    for garbage in [vec![0u8; 1000], vec![0xff; 13], b"\xc1\x1f\xfc\xc1 no packet".repeat(3)] {
        let bytes = [first.clone(), garbage.clone(), second.clone(), garbage.clone()].concat();
        let (events, damage) = read(&reader(&bytes));
        // The second packet continues the first: its number says so.
        assert_eq!(events, all, "{} bytes", garbage.len());
        assert_eq!(damage.len(), 2, "{damage:?}");
        let (events, _) = read(&reader(&[garbage, second.clone()].concat()));
        assert_eq!(events, alone);
    }
}

#[test]
fn a_packet_of_another_trace_is_no_part_of_this_one() {
    let (first, mut second) = two_packets();
    second[4] ^= 0xff;
    let reader = reader(&[first, second].concat());
    assert_eq!(read(&reader).0.len(), 3);
    assert_eq!(reader.damage()[0].reason, DamageReason::ForeignUuid);
}

#[test]
fn damage_lies_between_the_times_of_its_neighbours() {
    let (first, second) = two_packets();
    let reader = reader(&[first, vec![0; 64], second].concat());
    let interval = Interval { begin: Some(Nanos(1030)), end: Some(Nanos(2000)) };
    assert_eq!(reader.damage()[0].interval, interval);
}

#[test]
fn a_cut_stream_gives_the_whole_events_before_the_cut_and_no_others() {
    let (first, second) = two_packets();
    let whole = [first, second].concat();
    let (all, _) = read(&reader(&whole));
    let mut most = 0;
    for cut in 0..=whole.len() {
        let (events, damage) = read(&reader(&whole[..cut]));
        assert!(events.len() >= most, "cut at {cut}: an event is gone again");
        most = events.len();
        assert_eq!(events, all[..most], "cut at {cut}");
        let at_packet_end = cut == 0 || cut == whole.len() || damage.is_empty();
        assert!(at_packet_end || damage.len() == 1, "cut at {cut}: {damage:?}");
    }
    assert_eq!(most, all.len());
}

#[test]
fn an_interval_is_read_without_the_packets_outside() {
    let (first, second) = two_packets();
    let reader = reader(&[first, second].concat());
    let count = |begin: Option<i64>, end: Option<i64>| {
        let interval = Interval { begin: begin.map(Nanos), end: end.map(Nanos) };
        let mut merge = reader.events_in(interval);
        let mut count = 0;
        while merge.next_event().is_some() {
            count += 1;
        }
        count
    };
    assert_eq!(count(None, None), 6);
    assert_eq!(count(Some(1020), Some(1030)), 2);
    assert_eq!(count(Some(1031), None), 3);
    assert_eq!(count(None, Some(2010)), 4);
    assert_eq!(count(Some(5000), None), 0);
}
