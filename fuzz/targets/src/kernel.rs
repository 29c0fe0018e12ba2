// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the running kernel gives to a recorder: descriptions of events, pages of its buffers.

use lateralis_recorder::kernel::stack_samples::{
    Counter, MappedFile, SampleLayout, StackSamples, stack_fields,
};
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
    for way in [Way::Pages, Way::Samples, Way::ChosenSamples] {
        transcode(&formats, &text, pages, way);
    }
    for registers in [None, Some(0xff_0fff)] {
        for has_switches in [false, true] {
            stacks(&formats, SampleLayout { registers, has_switches }, pages);
        }
    }
}

/// The same of samples of call stacks.
fn stacks(formats: &[KernelFormat], layout: SampleLayout, bytes: &[u8]) {
    let events = KernelEvents::with_stacks(formats, stack_fields(layout.registers.is_some()));
    let Some(mut samples) = StackSamples::new(Counter::CpuClock, layout, events, 1) else {
        panic!("no schema");
    };
    samples.switches_have(7);
    let stream = StreamPlan { name: "samples_cpu0".to_owned(), number: 0, is_cpu: true };
    // Longer than the longest record.
    let mut sink = MemorySink::with(vec![stream], samples.schemas(), 1 << 18, u64::MAX);
    let (one, other) = bytes.split_at(bytes.len() / 2);
    for bytes in [bytes, one, other] {
        let mut find = |pid: u32, _: &MappedFile| vec![7; pid as usize % 21];
        samples.records(0, bytes, &ClockRelation::Same, &mut sink, &mut find);
        samples.introductions().each(&mut |_, _, _| {});
    }
    sink.close(0);
    let ring = &sink.streams[0].ring;
    assert_eq!(ring.totals().events, samples.sums(0).samples + samples.sums(0).others);
    for damage in ring.damages() {
        assert!(damage.reason.contains(" of the kernel ends"), "{damage:?}");
    }
}

/// How the bytes came.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Pages,
    Samples,
    ChosenSamples,
}

fn transcode(formats: &[KernelFormat], text: &str, pages: &[u8], way: Way) {
    let mut events = KernelEvents::new(formats);
    let streams = (0..2).map(|number| StreamPlan {
        name: format!("kernel_cpu{number}"),
        number,
        is_cpu: true,
    });
    let mut sink = MemorySink::with(streams.collect(), &events.schemas, PAGE_BYTES, u64::MAX);
    let mut transcoder = match way {
        Way::Pages => Transcoder::new(&mut events, text, PAGE_BYTES, 2),
        _ => Transcoder::of_samples(&mut events, 2),
    };
    if way == Way::ChosenSamples {
        transcoder.choose().add(5);
    }
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
            assert!(damage.reason.contains(" of the kernel ends"), "{damage:?}");
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

/// Samples as perf has them, and a loss.
fn samples(time: u64, records: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::new();
    for raw in records {
        let size = (20 + raw.len()).next_multiple_of(8);
        all.extend([9_u32.to_le_bytes(), (size as u32).wrapping_shl(16).to_le_bytes()].concat());
        all.extend(time.to_le_bytes());
        all.extend((raw.len() as u32).to_le_bytes());
        all.extend(raw);
        all.resize(all.len().next_multiple_of(8), 0);
    }
    all.extend([2_u32.to_le_bytes(), (32_u32 << 16).to_le_bytes()].concat());
    all.extend([1, 3, time + 1].map(u64::to_le_bytes).concat());
    all
}

/// A record of perf about a thread, at a time.
fn about(kind: u32, misc: u16, body: &[u8], time: u64) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(8), 0);
    body.extend([5_u32, 6].map(u32::to_le_bytes).concat());
    body.extend(time.to_le_bytes());
    let size = (8 + body.len()) as u16;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), &body].concat()
}

/// What the kernel says of a process that is sampled.
fn sampled() -> Vec<u8> {
    let threads = [5_u32, 5, 5, 5, 0, 0].map(u32::to_le_bytes).concat();
    let mapped = [
        &threads[..8],
        &[0x40_0000, 0x1000, 0].map(u64::to_le_bytes).concat(),
        &[8, 1, 77, 0, 0].map(u32::to_le_bytes).concat(),
        &[0; 4],
        &[5, 0, 0, 0, 2, 0, 0, 0],
        b"/usr/bin/program\0",
    ];
    let words = [1000, 1_001_001, 2, -512_i64 as u64, 0x40_0010].map(u64::to_le_bytes).concat();
    let sample = [&[0x10, 0, 0x40, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0], &words[..]].concat();
    let raw = [&4_u32.to_le_bytes()[..], &[0; 4]].concat();
    // Its size is where that of the others is; nothing follows it.
    let mut sample = about(9, 2, &[sample, raw].concat(), 0);
    sample.truncate(sample.len() - 16);
    let size = (sample.len() as u16).to_le_bytes();
    sample[6..8].copy_from_slice(&size);
    [
        about(3, 1 << 13, &[&threads[..8], b"program\0"].concat(), 900),
        about(10, 0, &mapped.concat(), 950),
        sample,
        about(7, 0, &threads, 1100),
        about(4, 0, &threads, 1200),
    ]
    .concat()
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
    let samples = samples(1000, &records);
    let bodies =
        [(SWITCH, pages.concat()), (ODD, pages.concat()), (SWITCH, samples), (SWITCH, sampled())];
    bodies.map(|(text, body)| [text.as_bytes(), MARK, &body[..]].concat()).to_vec()
}
