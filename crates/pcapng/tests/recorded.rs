// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that a program recorded among other events: what a capture says of them.

mod support;

use lateralis_model::{
    Base, Builder, Clock, EventClass, FieldClass, Interval, Loss, LossCause, MemoryTrace,
    StreamClass, StreamIndex, Writer,
};
use lateralis_pcapng::{Options, read, write};
use lateralis_units::Nanos;
use support::packets;

/// The fields of `spec/packets.pleco`, as far as they are needed here.
fn payload() -> FieldClass {
    FieldClass::structure([
        ("interface", FieldClass::text()),
        ("direction", FieldClass::unsigned(8, Base::Decimal)),
        ("link_type", FieldClass::unsigned(16, Base::Decimal)),
        ("original_bytes", FieldClass::unsigned(32, Base::Decimal)),
        ("data", FieldClass::blob()),
    ])
}

/// A stream with packets, the tracer's own events, and `others`.
fn stream(builder: &mut Builder, name: &str, others: &[&str]) -> StreamIndex {
    let clock = builder.clock(Clock::new("ns", 1_000_000_000, 0, 0));
    let class = builder.stream_class(StreamClass { clock: Some(clock), ..StreamClass::default() });
    let named = |name: &str| EventClass { name: name.to_owned(), ..EventClass::default() };
    let packet = EventClass { payload: Some(payload()), ..named("packets:packet") };
    builder.event_class(class, packet);
    for other in ["lateralis:MARK"].iter().chain(others) {
        builder.event_class(class, named(other));
    }
    builder.stream(class, name, None)
}

fn packet(builder: &mut Builder, stream: StreamIndex, time: u64, interface: &str, tid: u32) {
    let writer = (tid != 0).then_some(Writer { pid: 7, tid });
    let pending = builder.event(stream, 0, time, writer);
    let pending = pending.text(interface).u64(2).u64(101).u64(99);
    pending.bytes(&[time as u8; 5]).end().unwrap();
}

fn lose(builder: &mut Builder, stream: StreamIndex, count: u64, until: i64) {
    let interval = Interval { begin: Some(Nanos(0)), end: Some(Nanos(until)) };
    builder.loss(Loss { stream, count: Some(count), interval, cause: LossCause::Discarded });
}

fn written(trace: &MemoryTrace) -> (MemoryTrace, Vec<(String, u64)>) {
    let mut bytes = Vec::new();
    let dropped = write(trace, &mut bytes, &Options::default()).unwrap();
    let dropped = dropped.iter().map(|(what, count)| (what.to_owned(), count)).collect();
    (read("written", &bytes, u64::MAX).unwrap(), dropped)
}

#[test]
fn the_thread_of_a_packet_is_its_comment() {
    let mut builder = MemoryTrace::builder("test", u64::MAX);
    let ring = stream(&mut builder, "ring", &["app:OTHER"]);
    builder.names().processes.insert(7, "router".to_owned());
    builder.names().threads.insert(9, "forward".to_owned());
    packet(&mut builder, ring, 1, "uplink", 8);
    packet(&mut builder, ring, 2, "inside", 9);
    packet(&mut builder, ring, 3, "uplink", 0);
    let (trace, _) = written(&builder.finish());
    let seen: Vec<_> = packets(&trace)
        .into_iter()
        .map(|packet| (packet.interface, packet.direction, packet.link_type, packet.comment))
        .collect();
    let comment = |text: &str| Some(text.to_owned());
    let expected = [
        ("uplink".to_owned(), 2, 101, comment("process 7 (router), thread 8")),
        ("inside".to_owned(), 2, 101, comment("process 7 (router), thread 9 (forward)")),
        ("uplink".to_owned(), 2, 101, None),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn what_was_lost_were_packets_only_where_there_is_nothing_else() {
    use lateralis_model::Source;
    let mut builder = MemoryTrace::builder("test", u64::MAX);
    let capture = stream(&mut builder, "packets_lo", &[]);
    let ring = stream(&mut builder, "ring", &["app:OTHER"]);
    packet(&mut builder, capture, 1, "lo", 0);
    packet(&mut builder, ring, 2, "uplink", 8);
    packet(&mut builder, capture, 20, "lo", 0);
    packet(&mut builder, ring, 21, "uplink", 8);
    lose(&mut builder, capture, 40, 10);
    lose(&mut builder, capture, 2, 30);
    lose(&mut builder, ring, 1000, 10);
    let (trace, dropped) = written(&builder.finish());
    let lost: Vec<_> = trace
        .losses()
        .iter()
        .map(|loss| (trace.streams()[loss.stream.0 as usize].name.clone(), loss.count))
        .collect();
    let total: u64 = lost.iter().filter_map(|(_, count)| *count).sum();
    assert_eq!(total, 42, "{lost:?}");
    assert!(lost.iter().all(|(name, _)| name == "lo"), "{lost:?}");
    let told = ("losses of streams that hold other events, too".to_owned(), 1);
    assert!(dropped.contains(&told), "{dropped:?}");
}
