// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Intel PT: a stream of packets, and the code that it is said to be of.

use crate::pieces;
use lateralis_intelpt::Block;
use lateralis_intelpt::errata::Errata;
use lateralis_intelpt::flow::{Event, Flow, Sink};
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::packet::{IpBytes, Packet, Packets, Tnt, encode};
use lateralis_intelpt::segments::segments;
use lateralis_intelpt::time::{Settings, Times};

/// Where the code is.
pub const ADDRESS: u64 = 0x40_1000;

#[derive(Default)]
struct Counted {
    blocks: u64,
    instructions: u64,
    events: u64,
}

/// Takes instructions as numbers where it can.
#[derive(Default)]
struct Counter(u64);

impl Sink for Counter {
    const IS_COUNTER: bool = true;

    fn block(&mut self, block: &Block) {
        self.0 += u64::from(block.count);
    }

    fn instructions(&mut self, count: u32) {
        self.0 += u64::from(count);
    }

    fn event(&mut self, _: usize, _: Event) {}
}

impl Sink for Counted {
    fn block(&mut self, block: &Block) {
        assert!(block.count > 0, "{block:?}");
        self.blocks += 1;
        self.instructions += u64::from(block.count);
    }

    fn event(&mut self, _: usize, _: Event) {
        self.events += 1;
    }
}

/// The first piece is code, the second packets. Besides not panicking: packets are written as they were read,
/// and no more is executed than packets say.
pub fn check(input: &[u8]) {
    let mut parts = pieces::split(input);
    let (code, stream) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    for packet in Packets::new(stream).flatten() {
        let mut bytes = Vec::new();
        if encode(&packet.packet, &mut bytes).is_ok() {
            let block = matches!(packet.packet, Packet::Bip4 { .. } | Packet::Bip8 { .. });
            let again = Packets::new(&bytes).next();
            assert!(block || again.is_some_and(|of| of.is_ok_and(|of| of.packet == packet.packet)));
        }
    }
    let settings = Settings {
        mtc_frequency: code.first().copied(),
        tsc_per_crystal: Some((code.len() as u32, 2)),
        tsc_per_bus: code.last().copied(),
    };
    let (mut times, mut last) = (Times::new(settings), 0);
    for packet in Packets::new(stream).flatten() {
        let Some(time) = times.packet(&packet.packet) else { continue };
        assert!(last <= time.earliest && time.earliest <= time.ticks, "times never go back");
        assert!(time.latest.is_none_or(|latest| time.ticks <= latest), "{time:?}");
        last = time.earliest;
    }
    let mut image = Sections::default();
    image.add(ADDRESS, code);
    check_flow(&image, stream, Errata::NONE);
    check_flow(&image, stream, ALL);
}

const ALL: Errata = Errata {
    bdm64: true,
    bdm70: true,
    skd007: true,
    skd010: true,
    skd022: true,
    skl014: true,
    apl12: true,
    skz84: true,
};

/// However it is decoded, the flow is the same, and there is no more of it than packets say.
fn check_flow(image: &Sections<'_>, stream: &[u8], errata: Errata) {
    let mut counted = Counted::default();
    let half = ADDRESS + 8;
    let filter = Vec::from([ADDRESS..half, half..half + 8]);
    let mut flow = Flow::new(image).with_errata(errata).with_filter(filter);
    flow.decode(stream, &mut counted);
    let mut counter = Counter::default();
    flow.decode(stream, &mut counter);
    assert_eq!(counter.0, counted.instructions);
    // Segments yield the same, with any bytes that look like a PSB.
    let mut in_segments = Counted::default();
    for segment in segments(stream, 1, errata) {
        let mut of_segment = Counted::default();
        let enter =
            |flow: &mut Flow<'_, _>| flow.enter_segment(stream, &segment, &mut Counted::default());
        let (mut state, all) = (enter(&mut flow), (&segment, stream.len()));
        let is_whole = flow.decode_segment(&mut state, stream, all, &mut of_segment);
        if !is_whole {
            let mut rest = Counted::default();
            let body = segment.body().start..stream.len();
            let mut state = enter(&mut flow);
            flow.decode_part(&mut state, stream, body, &mut rest);
            assert!(of_segment.blocks <= rest.blocks && of_segment.events <= rest.events);
            of_segment = rest;
        }
        in_segments.blocks += of_segment.blocks;
        in_segments.instructions += of_segment.instructions;
        in_segments.events += of_segment.events;
        if !is_whole {
            break;
        }
    }
    assert_eq!(
        (in_segments.blocks, in_segments.instructions, in_segments.events),
        (counted.blocks, counted.instructions, counted.events)
    );
    // Largest number of blocks between two packets, or two branches of one.
    let most = (stream.len() as u64 * 8 + 2) * ((1 << 16) + 2);
    assert!(counted.blocks <= most && counted.events <= 4 * stream.len() as u64 + 8);
}

/// A loop with a call and an indirect jump, and what a processor says of it.
pub fn good() -> Vec<Vec<u8>> {
    // 401000: call 401009; jz 401000; jmp rax; nop; 401009: ret
    let code = [0xe8, 4, 0, 0, 0, 0x74, 0xf9, 0xff, 0xe0, 0xc3];
    let mut stream = Vec::new();
    for packet in [
        Packet::Psb,
        Packet::ModeExec { bits: 1 },
        Packet::Fup(IpBytes::Full(ADDRESS)),
        Packet::PsbEnd,
        Packet::TntShort(Tnt { bits: 0b11_11, len: 4 }),
        Packet::Mtc(3),
        Packet::Fup(IpBytes::Update16(0x1005)),
        Packet::Tip(IpBytes::Update16(0x1009)),
        Packet::Ovf,
        Packet::Fup(IpBytes::Full(ADDRESS)),
        Packet::TntLong(Tnt { bits: 0b1_0, len: 2 }),
        Packet::Tip(IpBytes::Update16(0x1000)),
        Packet::TipPgd(IpBytes::Suppressed),
    ] {
        encode(&packet, &mut stream).expect("it fits");
    }
    vec![pieces::join(&[&code[..], &stream])]
}
