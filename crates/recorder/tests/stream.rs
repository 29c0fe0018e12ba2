// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From ring to packets without an operating system: the reference writer fills an area in memory, readings
//! at odd times become packets, and every packet can be read alone.

use std::sync::atomic::AtomicU64;

use lateralis_recorder::stream::{PREFIX_BYTES, RingStream, SealContext, checksum_holds};
use lateralis_recorder::walk::RecordPlan;
use lateralis_ring::abi::{self, header};
use lateralis_ring::reference_writer::{Outcome, Writer};
use lateralis_ring::{
    AreaHeader, AreaView, Geometry, LossCounts, PacketHeader, Poll, ReadPolicy, RingMode,
    RingReader, begin_rings, finish_rings, plan_rings,
};

fn area() -> Vec<AtomicU64> {
    let area_bytes = abi::RINGS_OFFSET + 4096 + 2 * 4096;
    let words: Vec<AtomicU64> = (0..area_bytes / 8).map(|_| AtomicU64::new(0)).collect();
    let view = AreaView::from_words(&words);
    for (offset, value) in [
        (header::MAGIC, abi::AREA_MAGIC),
        (header::MAGIC_COMPLEMENT, !abi::AREA_MAGIC),
        (header::AREA_BYTES, area_bytes),
        (header::AREA_ID, 7),
        (header::RINGS_OFFSET, abi::RINGS_OFFSET),
    ] {
        view.store_u64(offset, value).unwrap();
    }
    for (offset, value) in [
        (header::ABI_VERSION, abi::ABI_VERSION),
        (header::HEADER_BYTES, header::BYTES as u32),
        (header::BYTE_ORDER, abi::BYTE_ORDER_MARK),
        (header::RING_KIND, 1),
        (header::RING_COUNT, 1),
    ] {
        view.store_u32(offset, value).unwrap();
    }
    let plan = plan_rings(&AreaHeader::read(&view).unwrap(), 8192, 4096).unwrap();
    begin_rings(&view).unwrap();
    finish_rings(&view, &plan).unwrap();
    words
}

#[test]
fn packets_are_numbered_checked_ordered_and_readable_alone() {
    let words = area();
    let view = AreaView::from_words(&words);
    let geometry = Geometry::of(&AreaHeader::read(&view).unwrap(), view.bytes()).unwrap();
    let mode = RingMode::Discard;
    let text = b"subsystem s { event E (n: u32, text: string) };";
    let schema = lateralis_pleco::compile("s.pleco", text).schema.unwrap();
    let mut plan = RecordPlan::new(false);
    plan.add(16, &schema);
    let mut writers = [11, 12].map(|tid| Writer::new(&geometry, 0, 10, tid, mode));
    let mut reader = RingReader::new(&view, geometry, 0, ReadPolicy::Consume, mode).unwrap();
    let mut stream = RingStream::new(0, LossCounts::default(), 1);
    let mut context = SealContext {
        uuid: *b"0123456789abcdef",
        stream_id: 3,
        area_id: 7,
        plan: Some(&plan),
        overwrite: false,
        swapped: false,
        now: 0,
    };
    let mut buffer = vec![0; PREFIX_BYTES + 4096];
    let (mut time, mut written, mut lost) = (1 << 50, 0, 0);
    let mut packets = Vec::new();
    let mut take = |stream: &mut RingStream, context: &SealContext<'_>, open_part: bool| {
        loop {
            match reader.poll(&view, mode, open_part, &mut buffer[PREFIX_BYTES..]) {
                Poll::Idle => return,
                Poll::Chunk(chunk) => {
                    if let Some(sealed) = stream.seal(context, &chunk, &mut buffer) {
                        packets.push(buffer[sealed.bytes].to_vec());
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    };
    for n in 0..3000u32 {
        let writer = &mut writers[(n / 7 % 2) as usize];
        let mut payload = n.to_ne_bytes().to_vec();
        payload.extend(vec![b'x'; (n % 13) as usize]);
        payload.push(0);
        let mut clock = || {
            time += 3;
            time
        };
        match writer.write(&view, &mut clock, 16, &payload).unwrap() {
            Outcome::Written => written += 1,
            Outcome::LostFull => lost += 1,
            other => panic!("{other:?}"),
        }
        context.now = time;
        // Sometimes a part of the open packet, sometimes only closed ones, sometimes a pause longer than the
        // ring.
        let paused = (1000..2000).contains(&n);
        if !paused && (n % 31 == 0 || (n % 400) < 100 && n % 5 == 0) {
            take(&mut stream, &context, n % 2 == 0);
        }
    }
    take(&mut stream, &context, true);
    let live = LossCounts { full: lost, ..LossCounts::default() };
    let mut scratch = vec![0; PREFIX_BYTES];
    if let Some(sealed) = stream.seal_losses(&context, &live, &mut scratch) {
        packets.push(scratch[sealed.bytes].to_vec());
    }
    assert!(lost > 0 && packets.len() > 20, "{lost} lost, {} packets", packets.len());
    assert_eq!(stream.totals().events, written);
    assert_eq!(stream.losses(), live);
    assert_eq!(stream.intervals().iter().map(|interval| interval.lost.full).sum::<u64>(), lost);
    assert!(stream.intervals().windows(2).all(|pair| pair[0].to <= pair[1].from));
    assert_eq!(stream.totals().backward_steps, 0);

    let (mut last_end, mut told, mut events) = (0, 0, 0);
    for (sequence, packet) in packets.iter_mut().enumerate() {
        assert!(checksum_holds(packet, false));
        packet[130 % 128] ^= 1;
        assert!(!checksum_holds(packet, false));
        packet[130 % 128] ^= 1;
        let header = PacketHeader::decode(packet.first_chunk().unwrap(), false);
        assert_eq!((header.magic, header.stream_id), (abi::PACKET_MAGIC, 3));
        assert_eq!(header.sequence, sequence as u64);
        assert_eq!(header.packet_bits, packet.len() as u64 * 8);
        assert!(header.timestamp_begin >= last_end);
        assert!(header.timestamp_end >= header.timestamp_begin);
        last_end = header.timestamp_end;
        assert!(header.events_discarded >= told);
        told = header.events_discarded;
        let records = &packet[128..];
        let slack = (header.packet_bits - header.content_bits) / 8;
        let walked = plan.walk(
            records,
            slack,
            header.timestamp_begin..=header.timestamp_end,
            &mut Vec::new(),
        );
        assert_eq!(walked.fault, None);
        assert!(walked.last_time <= header.timestamp_end);
        events += walked.events;
        if !records.is_empty() {
            // From the packet alone, a reader knows the thread of these records.
            assert_eq!(plan.header(records, 0).unwrap().0, abi::ID_WRITER);
        }
    }
    assert_eq!((events, told), (written, lost));
}
