// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory of the recorder does not depend on the length of the recording.

use std::fs;
use std::time::Duration;

use super::slow;
use super::writer::{record, steps};
use crate::place::Place;

/// Returns the peak resident memory of a process, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
}

#[test]
fn the_recorder_s_memory_does_not_grow_with_the_recording() {
    let place = Place::new();
    let Some(program) = steps(&place) else { return };
    let (mut recorder, _) = record(&place, &["--packet", "4K", "-o", "out"], &program, "ledger");
    let moment = Duration::from_secs(if slow() { 20 } else { 1 });
    std::thread::sleep(moment);
    let early = peak_kib(recorder.0.id());
    std::thread::sleep(2 * moment);
    let late = peak_kib(recorder.0.id());
    drop(recorder.0.stdin.take());
    assert_eq!(recorder.0.wait().expect("its status").code(), Some(0));
    let events = place.report("out")["totals"]["events"].as_u64().expect("events");
    println!("{events} events: {early} KiB after a third, {late} KiB at the end");
    assert!(events > 1000);
    // Each CPU has a mapped ring of 4 MiB, and each stream collects 1024 index entries of 72 bytes before
    // they are written. A long recording shows that memory does not grow further.
    let most = if slow() { early + 2048 } else { 32 << 10 };
    assert!(late < most, "{early} KiB, then {late} KiB");
}
