// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times of a real processor, compared with those of perf for the same recording and among each other.

use std::fs;
use std::path::Path;

use lateralis_intelpt::packet::{Packet, Packets};
use lateralis_intelpt::time::{Settings, Times, perf_nanos};

/// Time of each PSB of pt/quipper according to `perf script --itrace=p --ns` (6.1).
const BY_PERF: [u64; 10] = [
    641_256_845_844,
    641_257_059_924,
    641_257_183_253,
    641_257_315_823,
    641_257_482_598,
    641_257_552_806,
    641_257_676_734,
    641_257_740_308,
    641_257_866_038,
    641_257_928_663,
];
/// From its AUXTRACE_INFO record: zero, shift and multiplier of its clock.
const SCALE: (u64, u16, u32) = (0xffff_fff8_6343_cb91, 31, 0x6aaa_aaaa);
/// From the same record, and from the configuration of the event.
const SETTINGS: Settings =
    Settings { mtc_frequency: Some(3), tsc_per_crystal: Some((100, 2)), tsc_per_bus: Some(12) };

/// Output of the tracer in a `perf.data`: the data after each record of kind 71
/// [perf.data-file-format.txt, PERF_RECORD_AUXTRACE].
fn aux(file: &[u8]) -> Vec<&[u8]> {
    let word = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().expect("a word")) as usize;
    let (mut at, end) = (word(40), word(40) + word(48));
    let mut found = Vec::new();
    while at < end {
        let (kind, size) = (word(at) as u32, word(at) >> 48);
        at += size;
        if kind == 71 {
            let bytes = word(at - size + 8);
            found.push(&file[at..at + bytes]);
            at += bytes;
        }
    }
    found
}

#[test]
fn times_are_those_of_perf_and_each_is_within_the_bounds_before_it() {
    let path = "../../../shared/data/pt/quipper/perf.data.intel_pt-4.14";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let Ok(file) = fs::read(&path) else {
        println!("SKIPPED: {} is not there", path.display());
        return;
    };
    let (mut stamps, mut bounded, mut counted) = (Vec::new(), 0_u32, 0);
    for bytes in aux(&file) {
        let mut times = Times::new(SETTINGS);
        let mut is_behind_psb = false;
        for found in Packets::synced(bytes) {
            let packet = found.expect("a packet").packet;
            let before = times.now();
            let time = times.packet(&packet);
            is_behind_psb |= packet == Packet::Psb;
            if let (Packet::Tsc(_), Some(time)) = (packet, time) {
                if is_behind_psb {
                    stamps.push(perf_nanos(time.ticks, SCALE));
                }
                is_behind_psb = false;
                // Not before the predicted time. It may be later: a sleeping processor generates no MTC
                // packets, and its first packet after waking is the time stamp.
                if let Some(before) = before {
                    assert!(before.earliest <= time.ticks, "{before:?} {time:?}");
                    bounded += u32::from(before.latest.is_some_and(|latest| time.ticks <= latest));
                    counted += 1;
                }
            }
        }
    }
    stamps.sort_unstable();
    assert_eq!(stamps, BY_PERF);
    println!("{bounded} of {counted} time stamps within a period of the last MTC packet");
    assert!(bounded >= 6 && counted == 22, "{bounded} of {counted}");
}
