// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Damaged files: never a panic, never an invented event, and everything outside of the damage is
//! delivered.

mod common;
#[path = "common/maker.rs"]
mod maker;

use std::time::{Duration, Instant};

use common::{shared, show_all};
use lateralis_model::{ByteOrder, Interval, Source};
use lateralis_units::Nanos;

fn lines(trace: &dyn Source) -> Vec<String> {
    let mut events = trace.events();
    let mut lines = Vec::new();
    while let Some(event) = events.next_event() {
        let payload = event.payload().map(show_all).unwrap_or_default();
        lines.push(format!("{} {} {payload}", event.ticks.unwrap().0, event.class.name));
    }
    lines
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end.max(1)
    }
}

/// Reads everything that a consumer could, so that a bad slot cannot hide.
fn walk(bytes: &[u8]) {
    if let Ok(trace) = common::open("hostile", bytes, 1 << 20) {
        let _ = lines(&*trace);
        let damage = common::damage(&*trace);
        assert!(damage.len() <= 2000);
        for damage in &damage {
            assert!(damage.begin_bytes <= damage.end_bytes, "{damage}");
        }
    }
    let _ = lateralis_perfdata::perf::aux_areas(bytes);
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        seeds.push(maker::perf_data(order));
        seeds.push(maker::trace_dat(order));
    }
    seeds.extend(shared("data/pt/made/fibs/perf.data"));
    seeds
}

#[test]
fn mutated_files_never_panic() {
    let mut seeds = seeds();
    seeds.extend(shared("data/pt/quipper/perf.data.intel_pt-4.14"));
    let mut numbers = Numbers(0x1a7e_7a11);
    let end = Instant::now() + Duration::from_secs(2);
    let mut rounds = 0;
    while Instant::now() < end {
        let mut bytes = seeds[numbers.below(seeds.len())].clone();
        for _ in 0..=numbers.below(6) {
            let at = numbers.below(bytes.len());
            match numbers.below(5) {
                0 => bytes[at] ^= 1 << numbers.below(8),
                1 => bytes[at] = [0, 0xff, 0x7f, 0x80][numbers.below(4)],
                2 => {
                    let to = (at + numbers.below(64)).min(bytes.len());
                    drop(bytes.drain(at..to));
                }
                3 => {
                    // The header matters most, so it is changed often.
                    let at = numbers.below(bytes.len().min(512));
                    bytes[at] = numbers.below(256) as u8;
                }
                _ if numbers.below(4) == 0 => bytes.truncate(at),
                _ => bytes[at] = numbers.below(256) as u8,
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        walk(&bytes);
        rounds += 1;
    }
    println!("{rounds} files");
    assert!(rounds > 50);
}

#[test]
fn a_cut_perf_data_gives_the_events_before_the_cut() {
    let whole = maker::perf_data(ByteOrder::Little);
    let records = maker::perf_records(ByteOrder::Little);
    let data: usize = records.iter().map(Vec::len).sum();
    let begin = 104 + 2 * 144 + 16;
    // Without features, a name and the fields of the tracepoint are missing.
    for cut in begin..begin + data {
        let trace = common::open("cut", &whole[..cut], 1 << 20).unwrap();
        let (mut complete, mut end) = (0, begin);
        for (index, record) in records.iter().enumerate() {
            end += record.len();
            // LOST and FINISHED_ROUND are not events.
            complete += usize::from(end <= cut && index != 4 && index != 5);
        }
        assert_eq!(common::count(&*trace), complete, "cut at {cut}");
        assert!(!common::damage(&*trace).is_empty(), "cut at {cut}");
    }
}

#[test]
fn a_bad_record_costs_only_itself() {
    let whole = maker::perf_data(ByteOrder::Little);
    let all = lines(&*common::open("whole", &whole, 1 << 20).unwrap());
    let mut at = 104 + 2 * 144 + 16;
    for record in maker::perf_records(ByteOrder::Little) {
        // A type that does not exist, then an invalid size.
        for (place, value) in [(3usize, 0xffu8), (6, 7)] {
            let mut bytes = whole.clone();
            bytes[at + place] = value;
            if place == 6 {
                bytes[at + 7] = 0;
            }
            let trace = common::open("bad", &bytes, 1 << 20).unwrap();
            assert!(!common::damage(&*trace).is_empty());
            let left = lines(&*trace);
            assert!(left.len() + 1 >= all.len(), "record at {at}: {left:#?}");
            assert!(left.iter().all(|line| all.contains(line)), "record at {at}: {left:#?}");
        }
        at += record.len();
    }
}

#[test]
fn a_cut_trace_dat_gives_the_events_before_the_cut() {
    let whole = maker::trace_dat(ByteOrder::Little);
    let all = lines(&*common::open("whole", &whole, 1 << 20).unwrap());
    for cut in (0..whole.len()).rev().step_by(7) {
        let Ok(trace) = common::open("cut", &whole[..cut], 1 << 20) else {
            assert!(cut < 32, "refused at {cut}");
            continue;
        };
        let left = lines(&*trace);
        assert_eq!(left[..], all[..left.len()], "cut at {cut}");
        assert!(!common::damage(&*trace).is_empty(), "cut at {cut}");
        // The second page is cut: the first is not.
        assert!(left.len() >= 3 || cut < whole.len() - 4096, "cut at {cut}");
    }
}

#[test]
fn pages_in_the_wrong_order_come_by_time() {
    let whole = maker::trace_dat(ByteOrder::Little);
    let all = lines(&*common::open("whole", &whole, 1 << 20).unwrap());
    assert_eq!(all.len(), 6);
    let mut swapped = whole.clone();
    let pages = whole.len() - 8192;
    swapped[pages..].rotate_left(4096);
    let trace = common::open("swapped", &swapped, 1 << 20).unwrap();
    assert_eq!(lines(&*trace), all);
    assert_eq!(common::damage(&*trace), []);
}

#[test]
fn a_bad_page_costs_only_itself() {
    let whole = maker::trace_dat(ByteOrder::Little);
    let all = lines(&*common::open("whole", &whole, 1 << 20).unwrap());
    let first = whole.len() - 8192;
    for (page, left) in [(first, &all[3..]), (first + 4096, &all[..3])] {
        // Its length exceeds the page.
        let mut bytes = whole.clone();
        bytes[page + 9] = 0xff;
        let trace = common::open("bad", &bytes, 1 << 20).unwrap();
        assert_eq!(lines(&*trace), left);
        let damage = common::damage(&*trace);
        let [damage] = &damage[..] else { panic!("{damage:?}") };
        assert!((page as u64..page as u64 + 4096).contains(&damage.begin_bytes), "{damage}");
        assert_eq!(damage.end_bytes, page as u64 + 4096);
    }
    // Time goes back in the first page: its events are delivered nevertheless.
    let mut bytes = whole.clone();
    bytes[first..first + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    let trace = common::open("backwards", &bytes, 1 << 20).unwrap();
    assert_eq!(lines(&*trace).len(), all.len());
    assert!(!common::damage(&*trace).is_empty());
}

#[test]
fn an_interval_of_a_trace_dat_is_what_lies_in_it() {
    let whole = maker::trace_dat(ByteOrder::Big);
    let trace = common::open("whole", &whole, 1 << 20).unwrap();
    let mut times = Vec::new();
    trace.visit(&mut |event| times.push(event.time));
    assert_eq!(times.len(), 6);
    assert_eq!((trace.interval().begin, trace.interval().end), (Some(times[0]), Some(times[5])));
    let shifts = [-1, 0, 1];
    let ends: Vec<_> = times.iter().flat_map(|t| shifts.map(|shift| Nanos(t.0 + shift))).collect();
    for &begin in &ends {
        for &end in &ends {
            let interval = Interval { begin: Some(begin), end: Some(end) };
            let mut events = trace.events_in(interval);
            let mut found = Vec::new();
            while events.advance() {
                found.push(events.time());
            }
            let expected = times.iter().filter(|time| (begin..=end).contains(time));
            assert!(expected.eq(&found), "{begin:?} {end:?}: {found:?}");
        }
    }
}

#[test]
fn memory_stays_below_its_limit() {
    // Of a perf.data, only decompressed data is kept in memory.
    let zeros = zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap();
    let size = u16::try_from(zeros.len() + 8).expect("zeros compress well");
    let mut bomb = b"PERFILE2\x10\0\0\0\0\0\0\0\x51\0\0\0\0\0".to_vec();
    bomb.extend(size.to_le_bytes());
    bomb.extend(zeros);
    let trace = common::open("bomb", &bomb, 1 << 20).unwrap();
    assert!(trace.remarks().iter().any(|remark| remark.contains("memory")));
    // Likewise for a trace.dat: the limit is below the size of its events.
    let whole = maker::trace_dat(ByteOrder::Little);
    let trace = common::open("small", &whole, 1).unwrap();
    assert_eq!(common::count(&*trace), 6);
}

#[test]
fn what_is_no_such_file_is_refused_with_a_reason() {
    for bytes in [&b""[..], b"PERFILE2", b"\x17\x08\x44tracing8\0\0\x08\0\x10\0\0", b"ELF"] {
        let error = common::open("x", bytes, 1 << 20).err().expect("it is refused").to_string();
        assert_eq!(error.matches(": ").count(), 2, "{error}");
    }
}
