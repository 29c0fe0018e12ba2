// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the running kernel gives to a recorder: descriptions of events, pages of its buffers.

use lateralis_recorder::kernel::{ClockRelation, CpuStats, KernelEvents, KernelFormat, Transcoder};
use lateralis_recorder::source::{MemorySink, Sink, StreamPlan};

/// Between a description and pages.
const MARK: &[u8] = b"\nPAGES\n";
const PAGE_BYTES: usize = 4096;

const SWITCH: &str = include_str!("../../../crates/recorder/tests/kernel/sched_switch.format");
const NEWTASK: &str = include_str!("../../../crates/recorder/tests/kernel/task_newtask.format");
const ODD: &str = include_str!("../../../crates/recorder/tests/kernel/odd.format");

/// Describes events, turns pages into records. Besides not panicking: every record is as its
/// schema says, and none is counted that is not there.
pub fn check(bytes: &[u8]) {
    let at = bytes.windows(MARK.len()).position(|window| window == MARK);
    let (text, pages) = match at {
        Some(at) => (&bytes[..at], &bytes[at + MARK.len()..]),
        None => (bytes, &[][..]),
    };
    let text = String::from_utf8_lossy(text);
    CpuStats::parse(&text);
    let format = |(system, text): (&str, &str)| KernelFormat {
        clause: String::new(),
        system: system.to_owned(),
        text: text.to_owned(),
    };
    let formats = [("task", NEWTASK), ("odd", ODD), ("sched", &*text)].map(format);
    let mut events = KernelEvents::new(&formats);
    let streams = (0..2).map(|number| StreamPlan {
        name: format!("kernel_cpu{number}"),
        number,
        is_cpu: true,
    });
    let mut sink = MemorySink::with(streams.collect(), &events.schemas, PAGE_BYTES, u64::MAX);
    let mut transcoder = Transcoder::new(&mut events, &text, PAGE_BYTES, 2);
    for (number, page) in pages.chunks(PAGE_BYTES).enumerate() {
        transcoder.add(number % 2, page);
        if number % 3 == 2 {
            transcoder.turn(&ClockRelation::Same, &mut sink, &mut |tid| tid.checked_sub(1));
        }
    }
    for _ in 0..2 {
        transcoder.turn(&ClockRelation::Same, &mut sink, &mut |_| None);
    }
    for cpu in 0..2 {
        sink.close(cpu);
        let ring = &sink.streams[cpu].ring;
        assert_eq!(ring.totals().events, transcoder.sums(cpu).events, "events of cpu {cpu}");
        for damage in ring.damages() {
            assert!(damage.reason.starts_with("a page of the kernel"), "{damage:?}");
        }
    }
}

fn page(begin: u64, records: &[Vec<u8>]) -> Vec<u8> {
    let mut data = Vec::new();
    for record in records {
        let words = record.len().div_ceil(4) as u32;
        data.extend((100 << 5 | words).to_le_bytes());
        data.extend(record);
        data.resize(data.len().next_multiple_of(4), 0);
    }
    let mut page = begin.to_le_bytes().to_vec();
    page.extend((data.len() as u64).to_le_bytes());
    page.extend(data);
    page.resize(PAGE_BYTES, 0);
    page
}

fn record(id: u16, tid: u32, bytes: usize) -> Vec<u8> {
    let mut record = id.to_le_bytes().to_vec();
    record.extend([0, 0]);
    record.extend(tid.to_le_bytes());
    record.extend((0..bytes).map(|byte| byte as u8));
    record
}

/// Good inputs.
pub fn good() -> Vec<Vec<u8>> {
    let mut odd = record(901, 9, 8);
    odd.extend((32_u32 | 3 << 16).to_le_bytes());
    odd.extend((12_u32 | 2 << 16).to_le_bytes());
    odd.extend([7; 20]);
    let records = [record(372, 5, 56), record(205, 5, 36), odd];
    let pages = [page(1000, &records), page(2000, &records[1..]), page(3000, &records)];
    [SWITCH, ODD].map(|text| [text.as_bytes(), MARK, &pages.concat()[..]].concat()).to_vec()
}
