// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records in the kernel's format, built here, and their conversion.

use lateralis_ring::abi;

use super::*;
use crate::kernel::samples;
use crate::source::{MemorySink, StreamPlan};
use crate::walk::RecordPlan;

const MASK: u64 = 0b11;

struct Bench {
    samples: StackSamples,
    sink: MemorySink,
}

fn bench(registers: Option<u64>) -> Bench {
    with_events(registers, KernelEvents::default())
}

fn with_events(registers: Option<u64>, events: KernelEvents) -> Bench {
    of(SampleLayout { registers, has_switches: false }, events)
}

fn of(layout: SampleLayout, events: KernelEvents) -> Bench {
    let samples = StackSamples::new(Counter::CpuClock, layout, events, 1).unwrap();
    let stream = StreamPlan { name: "samples_cpu0".to_owned(), number: 0, is_cpu: true };
    let sink = MemorySink::with(vec![stream], samples.schemas(), 4096, 1 << 40);
    Bench { samples, sink }
}

impl Bench {
    fn give(&mut self, bytes: &[u8]) {
        let mut find = |_: u32, file: &MappedFile| match file.inode {
            77 => Vec::new(),
            _ => vec![0xab, 0xcd, 0xef],
        };
        self.samples.records(0, bytes, &ClockRelation::Same, &mut self.sink, &mut find);
    }

    /// Numbers of records of each event in the stream, by index in the schema, and number of
    /// thread names at the end.
    fn counts(&mut self) -> (Vec<u64>, u64) {
        self.sink.close(0);
        let mut plan = RecordPlan::new(false);
        let schemas = self.samples.schemas();
        schemas.iter().for_each(|entry| plan.add(entry.base_id, &entry.schema));
        let mut counts = Vec::new();
        for packet in &self.sink.packets[0] {
            let content = &packet[128..];
            // The slack of the last record is unknown here: one of these values is right.
            let walked = (0..8).map(|slack| {
                let mut counts = counts.clone();
                (plan.walk(content, slack, 0..=u64::MAX, &mut counts), counts)
            });
            let (_, now) = walked.into_iter().find(|(walked, _)| walked.fault.is_none()).unwrap();
            counts = now;
        }
        let names = counts[usize::from(abi::ID_PROCESS)] + counts[usize::from(abi::ID_THREAD_NAME)];
        (counts[usize::from(self.samples.base_id)..].to_vec(), names)
    }

    fn content(&self) -> Vec<u8> {
        self.sink.packets[0].concat()
    }
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = (HEADER_BYTES + body.len()).next_multiple_of(8);
    let mut record = kind.to_ne_bytes().to_vec();
    record.extend(misc.to_ne_bytes());
    record.extend((size as u16).to_ne_bytes());
    record.extend(body);
    record.resize(size, 0);
    record
}

fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// A record other than a sample, of thread 6 of process 5.
fn side(kind: u32, misc: u16, body: &[u8], time: u64) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(8), 0);
    record(kind, misc, &[body, halves(&[5, 6]), words(&[time])].concat())
}

fn sample(time: u64, chain: &[u64], memory: &[u8]) -> Vec<u8> {
    let head = [words(&[0x1000]), halves(&[5, 6]), words(&[time, 1_001_001, chain.len() as u64])];
    record(RECORD_SAMPLE, 2, &[head.concat(), words(chain), memory.to_vec()].concat())
}

/// Registers, and a partially copied stack.
fn memory(abi: u64, stack: &[u8], used: u64) -> Vec<u8> {
    let registers = if abi == 0 { Vec::new() } else { words(&[0xaa, 0xbb]) };
    let mut all = [words(&[abi]), registers, words(&[stack.len() as u64])].concat();
    if !stack.is_empty() {
        all.extend(stack);
        all.extend(words(&[used]));
    }
    all
}

/// A file with or without a build id.
fn mapped(has_build_id: bool) -> Vec<u8> {
    let body = [
        halves(&[5, 5]),
        words(&[0x40_0000, 0x1000, 0]),
        halves(&[8, 1]),
        words(&[if has_build_id { 78 } else { 77 }, 3]),
        halves(&[5, 2]),
        b"/usr/bin/program\0".to_vec(),
    ];
    side(RECORD_MMAP2, 0, &body.concat(), 3)
}

fn comm(misc: u16, name: &[u8]) -> Vec<u8> {
    side(RECORD_COMM, misc, &[halves(&[5, 5]), name.to_vec()].concat(), 2)
}

#[test]
fn each_record_becomes_one_of_ours_and_threads_get_names() {
    let mut bench = bench(None);
    let all = [
        comm(MISC_EXEC, b"program\0"),
        mapped(false),
        mapped(true),
        side(RECORD_FORK, 0, &halves(&[9, 5, 9, 5, 0, 0]), 4),
        sample(5, &[-512i64 as u64, 0x1000, 0x2000], &[]),
        sample(6, &[], &[]),
        side(RECORD_EXIT, 0, &halves(&[9, 5, 9, 5, 0, 0]), 7),
        side(RECORD_THROTTLE, 0, &words(&[7, 0, 0]), 8),
        side(RECORD_UNTHROTTLE, 0, &words(&[8, 0, 0]), 9),
        record(99, 0, &[0; 40]),
    ];
    bench.give(&all.concat());
    let (counts, names) = bench.counts();
    assert_eq!(counts, [2, 1, 1, 1, 1, 1, 1, 1, 0]);
    // Its own name, and that of the new process, which inherits it.
    assert_eq!(names, 2);
    let sums = bench.samples.sums(0);
    assert_eq!((sums.samples, sums.others, sums.unreadable, sums.throttled), (2, 7, 0, 1));
    let content = bench.content();
    let has = |bytes: &[u8]| content.windows(bytes.len()).any(|window| window == bytes);
    assert!(has(b"/usr/bin/program\0") && has(&[3, 0, 0, 0, 0xab, 0xcd, 0xef]));
    assert!(has(&words(&[-512i64 as u64, 0x1000, 0x2000])));
}

#[test]
fn an_event_of_the_kernel_has_its_own_fields_and_the_stack() {
    let stack = stack_fields(false);
    let events =
        KernelEvents::with_stacks(&[samples::format("sched", samples::SCHED_SWITCH)], stack);
    let mut bench = with_events(None, events);
    let raw = |bytes: &[u8]| {
        let mut raw = [(bytes.len() as u32).to_ne_bytes().to_vec(), bytes.to_vec()].concat();
        raw.resize(raw.len().next_multiple_of(8), 0);
        raw
    };
    bench.give(&sample(5, &[0x1000, 0x2000], &raw(&samples::switch(6, 7))));
    bench.give(&sample(6, &[0x3000], &raw(&[0; 4])));
    // Of an event that was not requested; shorter than its description.
    bench.give(&sample(7, &[0x3000], &raw(&samples::newtask(6, 7, 0))));
    bench.give(&sample(8, &[0x3000], &raw(&samples::switch(6, 7)[..20])));
    let sums = bench.samples.sums(0);
    assert_eq!((sums.samples, sums.unreadable), (2, 2));
    assert_eq!(bench.counts().0[0], 1);
    let content = bench.content();
    let has = |bytes: &[u8]| content.windows(bytes.len()).any(|window| window == bytes);
    assert!(has(b"a name\0") && has(&words(&[0x1000, 0x2000])));
}

#[test]
fn of_stacks_the_part_that_was_there_is_kept() {
    let mut bench = bench(Some(MASK));
    bench.give(&sample(5, &[], &memory(2, b"stack of program", 5)));
    // A kernel thread has neither.
    bench.give(&sample(6, &[0xffff_ffff_8000_0000], &memory(0, b"", 0)));
    let (counts, _) = bench.counts();
    assert_eq!(counts[0], 2);
    let content = bench.content();
    let has = |bytes: &[u8]| content.windows(bytes.len()).any(|window| window == bytes);
    assert!(has(b"\x05\0\0\0stack\0\0\0") && !has(b"stack o") && has(&words(&[0xaa, 0xbb])));
}

#[test]
fn losses_are_those_of_the_stream() {
    let mut bench = bench(None);
    bench.give(&[sample(5, &[], &[]), side(RECORD_LOST, 0, &words(&[7, 3]), 6)].concat());
    bench.give(&side(RECORD_LOST_SAMPLES, 0, &words(&[2]), 8));
    assert_eq!(bench.samples.sums(0).missed, 5);
    assert_eq!(bench.sink.streams[0].ring.losses().full, 5);
}

#[test]
fn samples_of_a_stopped_recording_are_left_out_and_mappings_are_not() {
    let mut bench = bench(None);
    bench.samples.stop(false, 1);
    bench.samples.stop(true, 10);
    bench.samples.stop(true, 11);
    bench.samples.stop(false, 20);
    for time in [9, 10, 19, 20] {
        bench.give(&sample(time, &[], &[]));
    }
    bench.samples.turned(25);
    bench.samples.stop(true, 30);
    bench.give(&[sample(31, &[], &[]), mapped(false)].concat());
    let (counts, _) = bench.counts();
    assert_eq!((counts[0], counts[1]), (2, 1));
    assert_eq!(bench.samples.sums(0).stopped, 3);
}

#[test]
fn what_was_there_before_is_told_like_what_came() {
    let mut bench = bench(None);
    let thread = Thread { pid: 5, tid: 5 };
    let file = MappedFile { path: b"/usr/bin/program".to_vec(), ..MappedFile::default() };
    let built = MappedFile { build_id: vec![0xab, 0xcd], ..file.clone() };
    for known in [
        Known::Parent(5, 1),
        Known::Name(thread, b"program".to_vec()),
        Known::Mapped(5, file),
        Known::Mapped(5, built),
        Known::BuildId(b"[kernel.kallsyms]".to_vec(), vec![1, 2]),
    ] {
        bench.samples.know(0, 4, known, &mut bench.sink);
    }
    let (counts, names) = bench.counts();
    assert_eq!((counts, names), (vec![0, 1, 1, 1, 0, 0, 0, 0, 1], 1));
}

#[test]
fn nothing_that_the_bytes_say_is_believed() {
    let whole = [
        sample(5, &[1, 2], &memory(2, b"12345678", 8)),
        mapped(true),
        comm(0, b"x\0"),
        side(RECORD_FORK, 0, &halves(&[9, 5, 9, 5, 0, 0]), 4),
        side(RECORD_LOST, 0, &words(&[7, 3]), 6),
    ]
    .concat();
    let mut seed = 1u32;
    for _ in 0..4000 {
        let mut bytes = whole.clone();
        for _ in 0..3 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = seed as usize % bytes.len();
            bytes[at] = if seed & 0x1000 == 0 { 0xff } else { (seed >> 24) as u8 };
        }
        let mut bench = bench(Some(MASK));
        bench.give(&bytes);
        bench.give(&bytes[..seed as usize % bytes.len()]);
        bench.sink.close(0);
    }
    // More elements than bytes; less stack than the buffer; longer than the record.
    for (at, value) in [(40, u64::MAX), (40, 1 << 61), (40, 1000)] {
        let mut bytes = sample(5, &[1, 2], &memory(2, b"12345678", 8));
        bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        let mut bench = bench(Some(MASK));
        bench.give(&bytes);
        assert_eq!((bench.samples.sums(0).samples, bench.samples.sums(0).unreadable), (0, 1));
    }
    let mut bench = bench(Some(MASK));
    bench.give(&sample(5, &[], &memory(2, b"12345678", 9)));
    assert_eq!(bench.samples.sums(0).unreadable, 1);
}

#[test]
fn departures_are_samples_of_their_own_event_and_switches_say_which_way() {
    let layout = SampleLayout { registers: None, has_switches: true };
    let mut bench = of(layout, KernelEvents::default());
    bench.samples.switches_have(7);
    // With the id of the event after the time.
    let sample = |id: u64| {
        let body = [words(&[0x1000]), halves(&[5, 6]), words(&[10, id, 1, 1, 0x1000])];
        record(RECORD_SAMPLE, 1, &body.concat())
    };
    let switch =
        |misc: u16| record(RECORD_SWITCH, misc, &[halves(&[5, 6]), words(&[11, 7])].concat());
    bench.give(&sample(7));
    bench.give(&sample(8));
    for misc in [MISC_SWITCH_OUT, MISC_SWITCH_OUT | MISC_SWITCH_OUT_PREEMPT, 0] {
        bench.give(&switch(misc));
    }
    // Without room for the id.
    bench.give(&record(RECORD_SWITCH, 0, &[halves(&[5, 6]), words(&[11])].concat()));
    bench.samples.stop(true, 11);
    bench.give(&switch(0));
    let sums = bench.samples.sums(0);
    assert_eq!((sums.samples, sums.others, sums.unreadable), (2, 3, 1));
    let (counts, _) = bench.counts();
    let of = |event: u16| counts.get(usize::from(event)).copied().unwrap_or(0);
    assert_eq!((of(event::SAMPLE), of(event::CONTEXT_SWITCHES), of(event::SWITCH)), (1, 1, 3));
}
