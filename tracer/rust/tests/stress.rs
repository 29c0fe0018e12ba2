// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads, signals and migration at once; processes that fork.
#![cfg(target_os = "linux")]

mod recorded;

use lateralis::Schema;
use recorded::{Entry, Fields, recorded};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const RECORD: &str = "session=a1;buffer=33554432;packet=65536;cap=536870912";

const TEXT: &str = "schema counting;\nsubsystem counting {\nevent THREAD (a: u64),\n\
    event SIGNAL (a: u64, b: u64, c: u64, d: u64, e: u64),\n};\n";
/// Events of a thread in the order in which they must be found; the upper half identifies the writer.
static COUNTING: Schema = Schema::new("counting", TEXT, lateralis::text_hash(TEXT), 2);
lateralis::register_at_start!(COUNTING);

fn count_thread(value: u64) {
    let on = COUNTING.on(0);
    if on != 0 {
        COUNTING.emit(on, 0, 8, [value]);
    }
}

fn count_signal(value: u64) {
    let on = COUNTING.on(1);
    if on != 0 {
        COUNTING.emit(on, 1, 40, [value, value + 1, value + 2, value + 3, value + 4]);
    }
}

#[repr(C)]
struct Interval {
    seconds: i64,
    microseconds: i64,
    next_seconds: i64,
    next_microseconds: i64,
}

unsafe extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn setitimer(which: i32, new: *const Interval, old: *mut Interval) -> i32;
    fn sched_setaffinity(pid: i32, bytes: usize, mask: *const u64) -> i32;
    fn fork() -> i32;
    fn _exit(status: i32) -> !;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
}
const SIGALRM: i32 = 14;

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_alarm(_: i32) {
    count_signal(SIGNALS.fetch_add(1, Ordering::Relaxed) << 8);
}

fn set_timer(microseconds: i64) {
    let interval =
        Interval { seconds: 0, microseconds, next_seconds: 0, next_microseconds: microseconds };
    // SAFETY: a valid interval, and no old value is requested.
    let result = unsafe { setitimer(0, &raw const interval, std::ptr::null_mut()) };
    assert_eq!(result, 0);
}

fn move_to_cpu(cpu: u64) {
    let mask =
        1_u64 << (cpu % thread::available_parallelism().map_or(1, |count| count.get() as u64));
    // SAFETY: a mask of 8 bytes; if it is rejected, the thread stays where it is.
    unsafe { sched_setaffinity(0, 8, &raw const mask) };
}

const THREADS: u64 = 4;
const EVENTS: u64 = 250_000;

fn write_with_signals() {
    // SAFETY: the handler only records, which is permitted in handlers.
    unsafe { signal(SIGALRM, on_alarm) };
    set_timer(50);
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            thread::spawn(move || {
                for i in 0..EVENTS {
                    count_thread(number << 32 | i);
                    if i % 8192 == 0 {
                        move_to_cpu(i / 8192 * 7 + number);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("it has not panicked");
    }
    set_timer(0);
    // The last one may still be pending.
    thread::sleep(std::time::Duration::from_millis(20));
    println!("COUNT={}", SIGNALS.load(Ordering::Relaxed));
}

fn check_with_signals(name: &str, environment: &[(&str, &str)]) {
    let Some(run) = recorded(name, environment) else {
        write_with_signals();
        return;
    };
    let run = run.succeeded();
    let stdout = String::from_utf8_lossy(&run.output.stdout);
    let signals: u64 = stdout
        .split("COUNT=")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .and_then(|number| number.parse().ok())
        .expect("the program says how many signals came");
    let area = run.area();
    let base = area.schema("counting").base_id;
    assert_eq!(area.lost(), 0);
    // Checks that time never goes back in a ring, and that no record is torn.
    let mut entries = area.records(|id, fields| {
        fields.array(if id == base { 1 } else { 5 }, Fields::u64);
    });
    entries.retain(|entry| entry.id >= base);
    entries.sort_by_key(|entry| entry.time);
    let (mut next, mut tids, mut seen) = ([0; THREADS as usize], HashMap::new(), Vec::new());
    for Entry { id, tid, payload, .. } in &entries {
        let mut fields = Fields::of(payload);
        let value = fields.u64();
        if *id == base {
            let thread = value >> 32;
            assert_eq!(value & 0xffff_ffff, next[thread as usize], "thread {thread}");
            next[thread as usize] += 1;
            assert_eq!(tids.entry(thread).or_insert(*tid), tid, "the writer of thread {thread}");
        } else {
            assert_eq!(fields.array(4, Fields::u64), [1, 2, 3, 4].map(|i| value + i));
            seen.push(value >> 8);
        }
    }
    assert_eq!(next, [EVENTS; THREADS as usize]);
    seen.sort_unstable();
    assert!(seen.iter().copied().eq(0..signals), "{} of {signals} signals", seen.len());
    assert!(signals > 0, "no signal came: the test has not tested much");
}

#[test]
fn threads_and_signals() {
    check_with_signals("threads_and_signals", &[("LATERALIS_RECORD", RECORD)]);
}

#[test]
fn threads_and_signals_in_rings_of_threads() {
    let record = RECORD.replace("33554432", "8388608");
    let environment = [("LATERALIS_RECORD", record.as_str()), ("LATERALIS_RING", "thread")];
    check_with_signals("threads_and_signals_in_rings_of_threads", &environment);
}

/// Children write into the same rings as their parent, under their own names.
#[test]
fn forked_processes() {
    let Some(run) = recorded("forked_processes", &[("LATERALIS_RECORD", RECORD)]) else {
        count_thread(u64::MAX);
        let children: Vec<i32> = (0..3)
            .map(|child| {
                // SAFETY: the child records, which needs no lock, and ends without running any code of
                // its parent's.
                unsafe {
                    let pid = fork();
                    if pid == 0 {
                        for i in 0..1000 {
                            count_thread(child << 32 | i);
                        }
                        _exit(0);
                    }
                    pid
                }
            })
            .collect();
        for pid in children {
            let mut status = -1;
            // SAFETY: `status` is valid for the result.
            assert_eq!(unsafe { waitpid(pid, &raw mut status, 0) }, pid);
            assert_eq!(status, 0);
        }
        return;
    };
    let run = run.succeeded();
    let area = run.area();
    let base = area.schema("counting").base_id;
    assert_eq!(area.lost(), 0);
    let mut entries = area.records(|id, fields| {
        fields.array(if id == base { 1 } else { 5 }, Fields::u64);
    });
    entries.retain(|entry| entry.id >= base);
    assert_eq!(entries.len(), 3001);
    let mut tids: Vec<u32> = entries.iter().map(|entry| entry.tid).collect();
    tids.sort_unstable();
    tids.dedup();
    assert_eq!(tids.len(), 4);
}
