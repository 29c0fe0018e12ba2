// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording that grows while it is read: all rounds together deliver every event once, each stream in
//! order, wherever the files ended in a round, and although the clock differs in each round.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use lateralis_model::Clock;
use lateralis_store::{Progress, Recording, Scan, Session, TableFormat, TableWriter, Tail};
use lateralis_units::Ticks;
use proptest::prelude::*;

const HZ: u64 = 2_000_000_000;
const OFFSET_S: i64 = 1_700_000_000;

/// Metadata of a clock that was measured again: faster by a number of Hz, later by a number of ticks.
fn metadata(faster: u64, later: u64) -> String {
    let hz = HZ + faster;
    format!(
        "/* CTF 1.8 */\n\
        typealias integer {{ size = 32; align = 8; }} := u32;\n\
        typealias integer {{ size = 64; align = 8; }} := u64;\n\
        trace {{ major = 1; minor = 8; byte_order = le; \
            packet.header := struct {{ u32 magic; u64 stream_instance_id; }}; }};\n\
        clock {{ name = tsc; freq = {hz}; offset_s = {OFFSET_S}; offset = {later}; }};\n\
        typealias integer {{ size = 64; align = 8; map = clock.tsc.value; }} := ticks;\n\
        stream {{ packet.context := struct {{ ticks timestamp_begin; ticks timestamp_end; \
            u64 content_size; u64 packet_size; }}; \
            event.header := struct {{ ticks timestamp; }}; }};\n\
        event {{ name = \"app:TICK\"; fields := struct {{ u32 number; }}; }};\n"
    )
}

fn clock(faster: u64, later: u64) -> Clock {
    Clock::new("tsc", HZ + faster, OFFSET_S, later as i64)
}

/// The file of a stream: packets of events, each with its ticks and a number.
fn stream(id: u64, packets: &[Vec<(u64, u32)>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for packet in packets.iter().filter(|packet| !packet.is_empty()) {
        let bits = (44 + 12 * packet.len() as u64) * 8;
        bytes.extend(0xc1fc_1fc1u32.to_le_bytes());
        for word in [id, packet[0].0, packet[packet.len() - 1].0, bits, bits] {
            bytes.extend(word.to_le_bytes());
        }
        for (ticks, number) in packet {
            bytes.extend(ticks.to_le_bytes());
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes
}

type Seen = (u64, u32, u64);

/// A round: delivered events by stream, and the order of all.
fn round(
    tail: &mut Tail,
    until: Option<u64>,
    clock: &Clock,
    seen: &mut BTreeMap<String, Vec<Seen>>,
) -> (Progress, Vec<u64>) {
    let recording = tail.open().unwrap();
    let mut order = Vec::new();
    let progress =
        tail.read(&recording, until.map(|u| clock.nanos(Ticks(u))), &mut |event, packet| {
            let number = event.payload().unwrap().get("number").unwrap().as_u64().unwrap() as u32;
            let ticks = event.ticks.unwrap().0;
            let name = recording.streams[event.stream.0 as usize].name.clone();
            seen.entry(name).or_default().push((ticks, number, packet));
            order.push(ticks);
            ControlFlow::Continue(())
        });
    (progress, order)
}

/// Streams as packets of events, by the differences of their times; times may be equal.
fn streams() -> impl Strategy<Value = Vec<Vec<Vec<u64>>>> {
    let packet = prop::collection::vec(0u64..40, 1..6);
    prop::collection::vec(prop::collection::vec(packet, 0..8), 1..4)
}

fn with_times(streams: &[Vec<Vec<u64>>]) -> Vec<Vec<Vec<(u64, u32)>>> {
    let mut number = 0;
    let mut stamped = |packets: &Vec<Vec<u64>>| {
        let mut now = 1000;
        let mut packet = |gaps: &Vec<u64>| {
            let stamp = |gap: &u64| {
                now += gap;
                number += 1;
                (now, number)
            };
            gaps.iter().map(stamp).collect::<Vec<_>>()
        };
        packets.iter().map(&mut packet).collect::<Vec<_>>()
    };
    streams.iter().map(&mut stamped).collect()
}

fn expected(streams: &[Vec<Vec<(u64, u32)>>]) -> BTreeMap<String, Vec<Seen>> {
    let named = streams.iter().enumerate().filter(|(_, packets)| !packets.is_empty());
    let of = |(index, packets): (usize, &Vec<Vec<(u64, u32)>>)| {
        let events = (0..).zip(packets).flat_map(|(packet, events)| {
            events.iter().map(move |(ticks, number)| (*ticks, *number, packet))
        });
        (format!("stream{index}"), events.collect())
    };
    named.map(of).collect()
}

fn write(directory: &Path, faster: u64, later: u64, files: &[&[u8]]) {
    fs::write(directory.join("metadata"), metadata(faster, later)).unwrap();
    for (index, bytes) in files.iter().enumerate() {
        fs::write(directory.join(format!("stream{index}")), bytes).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    // Files end at any byte; times are arbitrary, including those that are not completely written.
    #[test]
    fn every_event_is_shown_once(
        gaps in streams(),
        rounds in prop::collection::vec(
            (prop::collection::vec(0.0f64..=1.0, 4), 900u64..1700, 0u64..900, 0u64..2000),
            0..6,
        ),
    ) {
        let streams = with_times(&gaps);
        let files: Vec<Vec<u8>> =
            (0..).zip(&streams).map(|(id, packets)| stream(id, packets)).collect();
        let directory = tempfile::tempdir().unwrap();
        let mut tail = Tail::new(directory.path());
        let (mut seen, mut written) = (BTreeMap::new(), vec![0; files.len()]);
        let (mut before, mut late, mut expected_late) = (None, 0, 0);
        let mut rounds: Vec<_> = rounds.into_iter().map(Some).collect();
        rounds.push(None);
        for round_of in rounds {
            let is_last = round_of.is_none();
            let (shares, until, faster, later) = round_of.unwrap_or((vec![1.0; 4], 0, 0, 0));
            for ((written, share), file) in written.iter_mut().zip(&shares).zip(&files) {
                // A file only grows.
                *written = (*written).max((file.len() as f64 * share) as usize);
            }
            let parts: Vec<&[u8]> =
                files.iter().zip(&written).map(|(file, &length)| &file[..length]).collect();
            write(directory.path(), faster, later, &parts);
            let until = (!is_last).then_some(until);
            let clock = clock(faster, later);
            let (progress, order) = round(&mut tail, until, &clock, &mut seen);
            // Two ticks of one nanosecond are the same time: such events are ordered by stream.
            let times = order.iter().map(|ticks| clock.nanos(Ticks(*ticks)));
            prop_assert!(times.is_sorted(), "{:?}", order);
            prop_assert_eq!(progress.damage, vec![]);
            // A time in nanoseconds covers a few ticks.
            let until = until.map(|until| clock.ticks(clock.nanos(Ticks(until))).0);
            prop_assert!(until.is_none_or(|until| order.iter().all(|ticks| *ticks <= until)));
            late += progress.late;
            let is_late = |ticks: &&u64| before.is_some_and(|before| **ticks <= before);
            expected_late += order.iter().filter(is_late).count() as u64;
            before = before.max(until);
        }
        prop_assert_eq!(seen, expected(&streams));
        prop_assert_eq!(late, expected_late);
    }

    // If everything up to the time of a round is written, rounds are in time order.
    #[test]
    fn rounds_of_a_recorder_are_one_order_of_time(
        gaps in streams(),
        moments in prop::collection::vec((1000u64..1600, 0u64..3, 0u64..900), 0..6),
    ) {
        let streams = with_times(&gaps);
        let directory = tempfile::tempdir().unwrap();
        let mut tail = Tail::new(directory.path());
        let (mut seen, mut before) = (BTreeMap::new(), None);
        let mut moments: Vec<_> = moments.into_iter().map(Some).collect();
        moments.sort();
        moments.push(None);
        for moment in moments {
            let until = moment.map(|(until, ..)| until);
            let (_, more, faster) = moment.unwrap_or((0, 9, 0));
            // Whole packets up to the first that ends at the time, and some more.
            let files: Vec<Vec<u8>> = (0..)
                .zip(&streams)
                .map(|(id, packets)| {
                    let last = |packet: &Vec<(u64, u32)>| packet[packet.len() - 1].0;
                    let needed = packets.partition_point(|packet| {
                        until.is_none_or(|until| last(packet) <= until + 4)
                    });
                    let count = (needed + 1 + more as usize).min(packets.len());
                    stream(id, &packets[..count])
                })
                .collect();
            let parts: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
            write(directory.path(), faster, 0, &parts);
            let clock = clock(faster, 0);
            let (progress, order) = round(&mut tail, until, &clock, &mut seen);
            prop_assert_eq!(progress.late, 0);
            let times = order.iter().map(|ticks| clock.nanos(Ticks(*ticks)));
            prop_assert!(times.is_sorted(), "{:?}", order);
            prop_assert!(order.iter().all(|ticks| before.is_none_or(|before| *ticks > before)));
            let until = until.map(|until| clock.ticks(clock.nanos(Ticks(until))).0);
            before = before.max(until);
        }
        prop_assert_eq!(seen, expected(&streams));
    }
}

#[test]
fn what_is_enough_is_where_the_next_round_begins() {
    let packets: Vec<Vec<(u64, u32)>> =
        vec![vec![(10, 1), (20, 2), (30, 3)], vec![(40, 4)], vec![(40, 5), (50, 6)]];
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 0, 0, &[&stream(0, &packets)]);
    let mut tail = Tail::new(directory.path());
    let mut all = Vec::new();
    loop {
        let recording = tail.open().unwrap();
        let mut left = 2;
        let progress = tail.read(&recording, None, &mut |event, packet| {
            left -= 1;
            all.push((event.ticks.unwrap().0, packet));
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if progress.events == 0 {
            break;
        }
    }
    assert_eq!(all, [(10, 0), (20, 0), (30, 0), (40, 1), (40, 2), (50, 2)]);
}

#[test]
fn damage_is_told_once() {
    let packets: Vec<Vec<(u64, u32)>> = (0..6).map(|n| vec![(n * 10, n as u32)]).collect();
    let mut bytes = stream(0, &packets);
    bytes[2 * 56..2 * 56 + 44].fill(0xff);
    let directory = tempfile::tempdir().unwrap();
    let mut tail = Tail::new(directory.path());
    let (mut damage, mut seen) = (Vec::new(), BTreeMap::new());
    for length in [56, 3 * 56, 5 * 56, 6 * 56, 6 * 56] {
        write(directory.path(), 0, 0, &[&bytes[..length]]);
        damage.extend(round(&mut tail, None, &clock(0, 0), &mut seen).0.damage);
    }
    assert_eq!(damage.len(), 1, "{damage:?}");
    let numbers: Vec<u32> = seen["stream0"].iter().map(|(_, number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 3, 4, 5]);
}

#[test]
fn rows_of_rounds_are_those_of_a_scan() {
    let packets: Vec<Vec<(u64, u32)>> =
        (0..40).map(|n| (0..5).map(|k| (n * 50 + k * 7, (n * 5 + k) as u32)).collect()).collect();
    let bytes = stream(3, &packets);
    let directory = tempfile::tempdir().unwrap();
    let columns = |session: &Session, table: &str| {
        let fields = session.table(table).unwrap().schema.fields().clone();
        (0..fields.len()).filter(|column| fields[*column].name() != "ts").collect::<Vec<_>>()
    };
    for table in ["events", "app:TICK"] {
        let mut tail = Tail::new(directory.path());
        let mut out = Vec::new();
        for length in [bytes.len() / 3, bytes.len() / 2, bytes.len()] {
            write(directory.path(), length as u64 % 700, 0, &[&bytes[..length]]);
            let session = Session::new(vec![tail.open().unwrap()]);
            let shown = session.table(table).unwrap();
            let scan = Scan { columns: Some(columns(&session, table)), ..Scan::default() };
            let mut more = Vec::new();
            let columns = scan.columns.as_deref();
            let mut writer =
                TableWriter::new(shown, columns, TableFormat::JsonLines, &mut more).unwrap();
            let recording = session.recordings().next().unwrap();
            session
                .rows_of(shown, &scan, &mut |see| drop(tail.read(recording, None, see)), &mut |b| {
                    writer.batch(&b).unwrap();
                    ControlFlow::Continue(())
                })
                .unwrap();
            writer.finish().unwrap();
            out.extend(more);
        }
        let session = Session::new(vec![Recording::open(directory.path()).unwrap()]);
        let scan = Scan { columns: Some(columns(&session, table)), ..Scan::default() };
        let mut whole = Vec::new();
        let shown = session.table(table).unwrap();
        session.export(shown, &scan, TableFormat::JsonLines, &mut whole).unwrap();
        assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 200);
        assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(whole).unwrap());
    }
}

#[test]
fn a_round_reads_what_no_round_has_shown_however_long_the_recording_is() {
    const PACKETS: u64 = 400;
    const EVENTS: u64 = 5;
    const NEW: u64 = 20;
    let event = |packet: u64, event: u64| {
        (1000 + packet * 100 + event * 10, (packet * EVENTS + event) as u32)
    };
    let packet = |number: u64| (0..EVENTS).map(|at| event(number, at)).collect::<Vec<_>>();
    let packets: Vec<_> = (0..PACKETS).map(packet).collect();
    let directory = tempfile::tempdir().unwrap();
    let (mut tail, mut seen, clock) = (Tail::new(directory.path()), BTreeMap::new(), clock(0, 0));
    let mut waiting = 0;
    for written in (NEW..=PACKETS).step_by(NEW as usize) {
        let file = stream(0, &packets[..written as usize]);
        write(directory.path(), 0, 0, &[&file]);
        // In the middle of the last packet but one.
        let until = (written < PACKETS).then(|| event(written - 2, EVENTS / 2).0);
        let (progress, _) = round(&mut tail, until, &clock, &mut seen);
        // The delivered start of a packet is read again: it is needed to find the lengths of the others.
        let again = if waiting > 0 { EVENTS / 2 + 1 } else { 0 };
        assert_eq!(progress.read, NEW * EVENTS + waiting + again, "of {written} packets");
        waiting = NEW * EVENTS + waiting - progress.events;
        assert_eq!(waiting, if until.is_some() { EVENTS - EVENTS / 2 - 1 + EVENTS } else { 0 });
    }
    assert_eq!(seen["stream0"].len() as u64, PACKETS * EVENTS);
}
