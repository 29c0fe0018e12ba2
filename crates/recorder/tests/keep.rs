// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Windows cut out of packets contain exactly the records of their time, and can be read alone.

#![cfg(unix)]

use lateralis_recorder::keep::{Held, Retention, cut, split};
use lateralis_recorder::source::{MemorySink, Sink, StreamPlan, Thread, register};
use lateralis_recorder::stream::{PREFIX_BYTES, RingStream, SealContext, checksum_holds};
use lateralis_recorder::walk::RecordPlan;
use lateralis_ring::{LossCounts, abi};

const EVENTS: u64 = 60;
const LOST_BEHIND: u64 = 29;
/// Ticks between two events.
const STEP: u64 = 10;

fn time(n: u64) -> u64 {
    1000 + STEP * n
}

fn packets() -> (RecordPlan, Retention) {
    let text = b"subsystem s { event E (n: u32, text: string) };";
    let schema = lateralis_pleco::compile("s.pleco", text).schema.unwrap();
    let registered = register([schema]);
    let mut plan = RecordPlan::new(false);
    plan.add(registered[0].base_id, &registered[0].schema);
    let stream = StreamPlan { name: "s".to_owned(), number: 3, is_cpu: true };
    let mut memory = MemorySink::with(vec![stream], &registered, 4096, 1 << 20);
    let sink: &mut dyn Sink = &mut memory;
    for n in 0..EVENTS {
        let thread = Thread { pid: 1, tid: if n % 7 < 3 { 11 } else { 12 } };
        sink.record(0, (time(n), Some(thread)), 16, &mut |payload| {
            payload.put(4, &(n as u32).to_ne_bytes());
            payload.text(&b"0123456"[..(n % 7) as usize]);
        });
        if n % 10 == 9 {
            sink.close(0);
        }
        if n == LOST_BEHIND {
            let lost = LossCounts { full: 5, ..LossCounts::default() };
            sink.lose(0, lost, time(n) + STEP / 2);
        }
    }
    let mut kept = Retention::new(1 << 20);
    for packet in &memory.packets[0] {
        let (header, records) = split(packet).unwrap();
        kept.push("s", header, records);
    }
    (plan, kept)
}

/// Numbers and threads of the events of a window, and its losses.
fn window(plan: &RecordPlan, kept: &Retention, from: u64, to: u64) -> (Vec<(u64, u32)>, u64) {
    let context = SealContext {
        uuid: [9; 16],
        stream_id: 0,
        area_id: 1,
        plan: Some(plan),
        overwrite: false,
        swapped: false,
        now: u64::MAX,
    };
    let before = |packet: &&Held| packet.header.timestamp_end < from;
    let lost = kept.packets().filter(before).last().map(|packet| packet.header.lost);
    let mut stream = RingStream::new(3, lost.unwrap_or_default(), from);
    let (mut events, mut buffer, mut next) = (Vec::new(), Vec::new(), 0);
    for packet in kept.packets() {
        let Some(cut) = cut(plan, packet, (from, to), &mut buffer) else { continue };
        if let Some((time, writer)) = cut.begins {
            stream.continue_at(time, writer);
        }
        let Some(sealed) = stream.seal(&context, &cut.chunk, &mut buffer) else { continue };
        assert!(sealed.bytes.end <= buffer.len() && buffer.len() >= PREFIX_BYTES);
        let mut bytes = buffer[sealed.bytes.clone()].to_vec();
        assert!(checksum_holds(&mut bytes, false));
        let (header, records) = split(&bytes).unwrap();
        assert_eq!((header.sequence, header.uuid), (next, [9; 16]));
        assert!(header.timestamp_begin >= from && header.timestamp_end <= to);
        next += 1;
        let slack = (header.packet_bits - header.content_bits) / 8;
        let mut tid = None;
        for record in plan.records(records, slack, header.timestamp_begin) {
            let word = |at: usize| u32::from_ne_bytes(records[at..at + 4].try_into().unwrap());
            if u32::from(record.id) == u32::from(abi::ID_WRITER) {
                tid = Some(word(record.at + 12));
            } else if record.id == 16 {
                assert_eq!(time(u64::from(word(record.at + 8))), record.time);
                events.push((record.time, tid.expect("a WRITER before the first event")));
            }
        }
    }
    assert_eq!(stream.totals().damaged_packets, 0, "{:?}", stream.damages());
    (events, stream.losses().total())
}

#[test]
fn every_window_has_exactly_its_records_its_threads_and_its_losses() {
    let (plan, kept) = packets();
    let lost_between = (time(LOST_BEHIND), time(LOST_BEHIND) + STEP / 2);
    for from in (990..1700).step_by(13) {
        for to in (from..1700).step_by(7) {
            let (events, lost) = window(&plan, &kept, from, to);
            let inside = (0..EVENTS).filter(|n| (from..=to).contains(&time(*n)));
            let expected: Vec<(u64, u32)> =
                inside.map(|n| (time(n), if n % 7 < 3 { 11 } else { 12 })).collect();
            assert_eq!(events, expected, "{from}..={to}");
            // If the window cuts through the loss interval, the losses may be in it or not.
            if from <= lost_between.0 && lost_between.1 <= to {
                assert_eq!(lost, 5, "{from}..={to}");
            } else if to < lost_between.0 || lost_between.1 < from {
                assert_eq!(lost, 0, "{from}..={to}");
            }
        }
    }
}
