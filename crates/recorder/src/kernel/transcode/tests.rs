// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pages and samples built here, and their conversion.

use lateralis_pleco::schema::Event;
use lateralis_ring::abi;

use super::*;
use crate::kernel::samples;
use crate::source::{MemorySink, StreamPlan};
use crate::walk::RecordPlan;

struct Bench {
    transcoder: Transcoder,
    sink: MemorySink,
    plan: RecordPlan,
    schemas: Vec<crate::classes::RegisteredSchema>,
}

fn bench(cpus: usize) -> Bench {
    with(cpus, |events| Transcoder::new(events, "", 4096, cpus))
}

fn samples_bench() -> Bench {
    with(2, |events| Transcoder::of_samples(events, 2))
}

fn with(cpus: usize, make: impl FnOnce(&mut KernelEvents) -> Transcoder) -> Bench {
    let mut events = KernelEvents::new(&samples::formats());
    let streams = (0..cpus).map(|cpu| StreamPlan {
        name: format!("kernel_cpu{cpu}"),
        number: cpu as u32,
        is_cpu: true,
    });
    let sink = MemorySink::with(streams.collect(), &events.schemas, 4096, 1 << 40);
    let mut plan = RecordPlan::new(false);
    events.schemas.iter().for_each(|entry| plan.add(entry.base_id, &entry.schema));
    let transcoder = make(&mut events);
    Bench { transcoder, sink, plan, schemas: events.schemas }
}

impl Bench {
    fn turn(&mut self) {
        self.transcoder.turn(&ClockRelation::Same, &mut self.sink, &mut |_| None);
    }

    /// Names and payloads of the records of a stream, writers included.
    fn records(&mut self, cpu: usize) -> Vec<(String, Vec<u8>)> {
        self.sink.close(cpu);
        let mut found = Vec::new();
        for packet in &self.sink.packets[cpu] {
            let content = &packet[128..];
            let mut at = 0;
            while at < content.len() {
                let (id, _) = self.plan.header(content, at).unwrap();
                let mut end = at + 8;
                // The header of the next record is at the end of a walk over one more record.
                while end < content.len() {
                    let walked = self.plan.walk(&content[at..end], 0, 0..=u64::MAX, &mut vec![]);
                    if walked.fault.is_none() && walked.good_bytes > 0 {
                        break;
                    }
                    end += 1;
                }
                found.push((self.name(id), content[at + 8..end].to_vec()));
                at = end.next_multiple_of(8);
            }
        }
        found
    }

    fn name(&self, id: u16) -> String {
        let id = u32::from(id);
        let of = |entry: &crate::classes::RegisteredSchema| {
            let event: Option<&Event> =
                id.checked_sub(entry.base_id).and_then(|n| entry.schema.events.get(n as usize));
            event.map(|event| event.name.clone())
        };
        self.schemas.iter().find_map(of).unwrap_or_else(|| id.to_string())
    }
}

fn words(payload: &[u8]) -> Vec<u32> {
    payload.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn records_are_copied_field_by_field() {
    let mut bench = bench(1);
    bench.transcoder.tasks().learn(7, 6);
    let open = samples::openat(7, 0xffff_ffff_ffff_ff9c);
    let page = samples::page(100, &[(100, open), (103, samples::switch(7, 8))], None);
    bench.transcoder.add(0, &page);
    bench.turn();
    assert_eq!(bench.sink.packets[0].len(), 0);
    bench.turn();
    let records = bench.records(0);
    let names: Vec<&str> = records.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["0", "sys_enter_openat", "sched_switch"]);
    assert_eq!(words(&records[0].1), [6, 7]);
    assert_eq!(words(&records[1].1), [-100_i32 as u32, 0, 0x7fff_0000, 0, 0, 0x1a4]);
    let switch = &records[2].1;
    assert_eq!(&switch[..7], b"a name\0");
    assert_eq!(words(&switch[8..16]), [7, 120]);
    assert_eq!(words(&switch[16..24]), [1, 0]);
    assert_eq!(&switch[24..31], b"a name\0");
    assert_eq!(words(&switch[32..]), [8, 120]);
    let sums = CpuSums { events: 2, ..CpuSums::default() };
    assert_eq!(bench.transcoder.sums(0), sums);
}

#[test]
fn flags_of_wake_ups_are_kept() {
    let mut bench = bench(1);
    bench.transcoder.tasks().learn(5, 5);
    let wakings = [0x08, 0x11].map(|flags| (100, samples::waking(flags)));
    bench.transcoder.add(0, &samples::page(100, &wakings, None));
    bench.turn();
    bench.turn();
    let records = bench.records(0);
    let names: Vec<&str> = records.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["0", "sched_waking", "sched_waking"]);
    for ((_, payload), flags) in records[1..].iter().zip([0x08, 0x11]) {
        assert_eq!(&payload[..7], b"a name\0");
        assert_eq!(words(&payload[8..20]), [6, 120, 1]);
        assert_eq!(payload[20], flags);
    }
}

#[test]
fn a_thread_is_known_although_its_making_was_read_later() {
    let mut bench = bench(2);
    bench.transcoder.tasks().learn(10, 10);
    // CPU 0 was read before CPU 1, where its creator ran.
    bench.transcoder.add(0, &samples::page(50, &[(60, samples::openat(12, 0))], None));
    bench.turn();
    let made = [(40, samples::newtask(11, 12, 0x10000)), (45, samples::newtask(12, 13, 0x10000))];
    bench.transcoder.add(0, &samples::page(70, &[(70, samples::openat(13, 0))], None));
    bench.transcoder.add(1, &samples::page(30, &[(30, samples::newtask(10, 11, 0x10000))], None));
    bench.transcoder.add(1, &samples::page(40, &made, None));
    bench.turn();
    bench.turn();
    let writers: Vec<Vec<u32>> = bench
        .records(0)
        .iter()
        .filter(|(name, _)| name == "0")
        .map(|(_, payload)| words(payload))
        .collect();
    assert_eq!(writers, [[10, 12], [10, 13]]);
    assert_eq!(bench.transcoder.sums(0).guessed, 0);
}

#[test]
fn behind_the_rest_of_a_page_there_may_be_another() {
    let mut bench = bench(2);
    let short = samples::page(50, &[(60, samples::openat(12, 0))], None);
    let full: Vec<_> = (0..40).map(|at| (60 + at, samples::openat(12, 0))).collect();
    let full = samples::page(60, &full, None);
    let transcoder = &mut bench.transcoder;
    // The rest of a page begun at the last turn, the next one, and the one being written.
    assert!(transcoder.add(0, &short) && transcoder.add(0, &full) && transcoder.add(0, &short));
    assert!(!transcoder.add(0, &short), "nobody writes that much between two reads");
    assert!(transcoder.add(1, &short), "each buffer for itself");
    bench.turn();
    assert!(bench.transcoder.add(0, &short));
}

#[test]
fn losses_stand_before_the_page_that_tells_them() {
    let mut bench = bench(1);
    bench.transcoder.add(0, &samples::page(100, &[(110, samples::switch(0, 5))], None));
    bench.transcoder.add(0, &samples::page(500, &[(510, samples::switch(0, 5))], Some(77)));
    bench.turn();
    bench.turn();
    bench.sink.close(0);
    let [interval] = bench.sink.streams[0].ring.intervals() else { panic!() };
    assert_eq!((interval.from, interval.to, interval.lost.full), (110, 500, 77));
    assert_eq!(bench.transcoder.sums(0).missed, 77);
    assert_eq!(bench.sink.packets[0].len(), 3);
}

#[test]
fn what_cannot_be_read_is_counted() {
    let mut bench = bench(1);
    let cut = samples::switch(1, 2)[..40].to_vec();
    let records = [(1, cut), (2, samples::common(999, 1)), (3, samples::switch(1, 2))];
    let mut page = samples::page(0, &records, None);
    bench.transcoder.add(0, &page);
    // The page claims to have more than it has.
    page[8] = 0xff;
    page[9] = 0x0f;
    bench.transcoder.add(0, &page);
    bench.turn();
    bench.turn();
    let sums = bench.transcoder.sums(0);
    assert_eq!((sums.events, sums.unreadable, sums.guessed), (1, 2, 1));
    assert_eq!(bench.sink.streams[0].ring.totals().damaged_packets, 1);
    let header = bench.records(0).first().map(|(name, _)| name.clone());
    assert_eq!(header.as_deref(), Some(abi::ID_WRITER.to_string().as_str()));
}

#[test]
fn samples_of_chosen_threads_and_their_children_become_records_and_others_are_counted() {
    let mut bench = samples_bench();
    bench.transcoder.tasks().learn(7, 6);
    bench.transcoder.choose().add(7);
    // Thread 7 creates 8 on CPU 1, which was read after CPU 0, where 8 runs.
    let open = |time, tid| perf::event(time, &samples::openat(tid, 0));
    bench.transcoder.add(0, &[open(10, 7), open(20, 8), open(21, 99)].concat());
    bench.transcoder.add(0, &perf::event(22, &samples::switch(99, 8)));
    bench.turn();
    let made = perf::event(15, &samples::newtask(7, 8, 0x10000));
    let cut = perf::event(16, &samples::openat(7, 0)[..20]);
    bench.transcoder.add(1, &[made, cut, perf::loss(5, 30), open(40, 7)].concat());
    bench.turn();
    bench.turn();
    let names = |bench: &mut Bench, cpu| -> Vec<String> {
        bench.records(cpu).into_iter().map(|(name, _)| name).filter(|name| name != "0").collect()
    };
    assert_eq!(names(&mut bench, 0), ["sys_enter_openat", "sys_enter_openat", "sched_switch"]);
    assert_eq!(names(&mut bench, 1), ["task_newtask", "sys_enter_openat"]);
    let sums = |cpu| bench.transcoder.sums(cpu);
    assert_eq!((sums(0).events, sums(0).others, sums(0).unreadable), (3, 1, 0));
    assert_eq!((sums(1).events, sums(1).missed, sums(1).unreadable), (2, 5, 1));
    let [interval] = bench.sink.streams[1].ring.intervals() else { panic!() };
    assert_eq!((interval.from, interval.to, interval.lost.full), (15, 30, 5));
}

#[test]
fn a_buffer_without_sizes_is_damage_and_ends_with_it() {
    let mut bench = samples_bench();
    bench.transcoder.choose().add(7);
    let bytes = [perf::event(1, &samples::openat(7, 0)), vec![0; 64]].concat();
    bench.transcoder.add(0, &bytes);
    bench.transcoder.add(1, &perf::event(1, &samples::openat(7, 0)));
    bench.turn();
    bench.turn();
    assert_eq!((bench.transcoder.sums(0).events, bench.transcoder.sums(1).events), (1, 1));
    assert_eq!(bench.sink.streams[0].ring.damages().len(), 1);
    assert_eq!(bench.sink.streams[1].ring.damages().len(), 0);
}
