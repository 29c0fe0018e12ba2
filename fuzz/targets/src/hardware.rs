// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files with what hardware traced, and all that is asked of the instructions in them.

use crate::intelpt;
use crate::perfdata::Nothing;
use crate::pieces;
use std::ops::ControlFlow;

use lateralis_perfdata::perf::write::{IntelPt, Origin, Piece, Sideband, Writer};
use lateralis_store::Chosen;
use lateralis_store::flow::timeline::Timeline;
use lateralis_store::flow::{Marker, Pairing, Recorded, coverage, deltas, executed, stretches};
use lateralis_store::places::Places;
use lateralis_traces::hardware::{Hardware, of_bytes, of_source};

/// Bytes of packets that are decoded: code may execute many instructions for each.
const PACKET_BYTES_MAX: usize = 256;
/// Memory for the events of a perf.data, in bytes.
const LIMIT_BYTES: u64 = 1 << 20;

/// For any input, calls end after their begin and inside their caller, and instructions are
/// numbered.
fn along_time(mut timeline: Timeline<'_>) {
    timeline.advance(usize::MAX);
    assert_eq!(timeline.pending_bytes(), 0);
    for line in 0..timeline.count() {
        let whole = timeline.extent(line).unwrap_or((0, u64::MAX));
        for times in [whole, (whole.0, whole.0), (0, 0)] {
            let window = timeline.window(line, times);
            for pieces in &window.depths {
                assert!(pieces.iter().all(|of| of.begin_ns <= of.end_ns));
                assert!(pieces.is_sorted_by_key(|of| of.begin_ns));
            }
            assert!(window.moments.is_sorted());
            let (listed, total) = timeline.instructions(line, times, None, (0, 10));
            assert!(total.is_none_or(|total| listed.len() as u64 <= total));
            assert!(listed.is_sorted_by(|one, next| one.number + 1 == next.number));
        }
    }
}

/// A recording of GRIFFIN, or a `perf.data`. Besides not panicking: what functions executed is what was
/// executed, and an interval is no longer than that.
pub fn check(input: &[u8]) {
    let Hardware { mut buffers, clocks, code, .. } = of_bytes(input);
    let _ = lateralis_perfdata::open("input", std::sync::Arc::new(input.to_vec()), LIMIT_BYTES)
        .map(|trace| of_source(&*trace));
    for buffer in &mut buffers {
        buffer.runs.iter_mut().for_each(|run| run.truncate(PACKET_BYTES_MAX));
        buffer.runs.truncate(2);
    }
    buffers.truncate(2);
    let file = std::sync::Arc::new(input.to_vec());
    let trace = lateralis_perfdata::open("input", file, LIMIT_BYTES).ok();
    let mut nothing = Nothing;
    let mut recorded = match &trace {
        Some(trace) => {
            let chosen = Chosen::all_of(&**trace);
            let places = Places::new(&mut nothing, &chosen.trace);
            Recorded::of(chosen.source, places, (buffers, clocks), &code)
        }
        None => Recorded::raw(Places::without_events(&mut nothing), buffers, &code),
    };
    let mut calls = 0;
    let found = executed(&mut recorded, |_, _, _| {
        calls += 1;
        ControlFlow::Continue(())
    });
    assert!(calls <= found.stacks.samples, "each call returns once");
    let own: u64 = found.stacks.nodes.iter().map(|node| node.weight).sum();
    assert_eq!(own, found.instructions);
    let most = found.stacks.totals().into_iter().max().unwrap_or(0);
    assert!(most <= found.instructions);
    let marker = |text: &str| Marker::parse(text).expect("a place");
    for pairing in [Pairing::First, Pairing::Last, Pairing::Innermost] {
        let (from, to) = (marker("insn:call"), marker("insn:ret"));
        let found = deltas(&mut recorded, (&from, &to), pairing);
        let pairs = found.intervals.len() as u64;
        assert!(pairs + found.void + found.open <= found.hits.0);
        assert_eq!(pairs + found.orphans + found.not_kept, found.hits.1);
        let sum: u64 = found.intervals.iter().map(|of| of.instructions).sum();
        assert!(pairing == Pairing::Innermost || sum <= own, "{sum} of {own}");
        let some = &found.intervals[..found.intervals.len().min(3)];
        for (of, stretches) in some.iter().zip(stretches(&mut recorded, some)) {
            let sum: u64 = stretches.iter().map(|of| of.instructions).sum();
            assert!(sum <= of.instructions, "{sum} of {}", of.instructions);
        }
    }
    let covered = coverage(&mut recorded);
    let sum: u64 = covered.functions.values().map(|of| of.instructions).sum();
    assert!(sum <= own, "{sum} of {own}");
    along_time(Timeline::new(recorded));
}

/// Recordings with the code and packets of the decoder's own inputs.
pub fn good() -> Vec<Vec<u8>> {
    let record = |kind: u32, words: &[u64], content: &[u8]| {
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let size = (8 + words.len() + content.len()) as u32;
        [&kind.to_le_bytes(), &size.to_le_bytes(), &words[..], content].concat()
    };
    let of = |input: Vec<u8>| {
        let mut parts = pieces::split(&input);
        let (code, packets) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let mut bytes = 0x51c0_ffee_u64.to_le_bytes().to_vec();
        bytes.extend(record(4, &[1, intelpt::ADDRESS, code.len() as u64], code));
        bytes.extend(record(0, &[1, 7, 0, packets.len() as u64], packets));
        bytes
    };
    let mut all: Vec<Vec<u8>> = intelpt::good().into_iter().map(of).collect();
    let packets = intelpt::good().into_iter().next().unwrap_or_default();
    all.push(by_processor(pieces::split(&packets).nth(1).unwrap_or_default()));
    all
}

/// A `perf.data` of a processor on which two threads took turns.
fn by_processor(packets: &[u8]) -> Vec<u8> {
    let how = IntelPt {
        mtc_frequency: Some(3),
        cycles: false,
        psb_frequency: 0,
        return_compression: true,
        tsc_per_crystal: (40, 1),
        tsc_per_bus: 10,
        nanos: (0, 0, 1),
        kernel: true,
        per_cpu: true,
    };
    let (mut writer, mut bytes) = Writer::begin(how);
    for (nanos, from, to) in [(5, 7, 8), (99, 8, 7), (100, 9, 0)] {
        let origin = Origin { pid: from, tid: from, nanos, cpu: 0 };
        let switch = Sideband::Switch { out: true, preempted: false, pid: to, tid: to };
        bytes.extend(writer.sideband(&switch, origin));
    }
    let piece = Piece { tid: None, cpu: Some(0), buffer: 0, offset_bytes: 0, tsc: 9 };
    bytes.extend(writer.packets(piece, packets));
    let (end, header) = writer.finish();
    bytes.extend(end);
    bytes[..header.len()].copy_from_slice(&header);
    bytes
}
