// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts of a real kernel trace, compared with counts by event name.

use std::collections::BTreeMap;
use std::path::Path;

use lateralis_model::Source;
use lateralis_store::Recording;
use lateralis_store::facts::{Fact, Facts};

#[test]
fn a_kernel_trace_says_as_much_as_its_events() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/traces/ctf1/lttng-ref/basic-kernel-analysis");
    if !path.exists() {
        eprintln!("SKIPPED: {} is not here", path.display());
        return;
    }
    let recording = Recording::open(&path).unwrap();
    let annotated = recording.annotated();
    let mut facts = Facts::new(&annotated, &recording.streams);
    let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut wrong_threads, mut switched) = (0, BTreeMap::new());
    let mut events = recording.source.events();
    while let Some(event) = events.next_event() {
        let name = event.class.name.as_str();
        let kind = match name {
            "sched_switch" => "switch",
            // `sched_wakeup` is the other end of a wakeup that `sched_waking` begins.
            "sched_waking" | "sched_wakeup_new" => "wake",
            // These have no exit.
            "syscall_entry_exit" | "syscall_entry_exit_group" | "syscall_entry_rt_sigreturn" => "",
            _ if name.starts_with("syscall_entry_") => "call",
            _ if name.starts_with("syscall_exit_") => "return",
            _ => "",
        };
        *expected.entry(kind).or_default() += u64::from(!kind.is_empty());
        let stream = event.stream;
        let at = facts.of(&event, |_, fact| {
            let kind = match fact {
                Fact::Switch { .. } => "switch",
                Fact::Wake { moment, .. } if moment.is_begin() => "wake",
                Fact::Begin { .. } if name.starts_with("syscall_") => "call",
                Fact::End { .. } if name.starts_with("syscall_") => "return",
                _ => "",
            };
            *found.entry(kind).or_default() += u64::from(!kind.is_empty());
        });
        let number = |field: &str| event.payload()?.get(field)?.as_u64();
        // Each stream is a CPU here: its last switch determines the running thread.
        let running = switched.get(&stream).copied();
        wrong_threads += u64::from(at.writer.map(|writer| u64::from(writer.tid)) != running);
        if name == "sched_switch" {
            switched.insert(stream, number("next_tid").unwrap());
        }
    }
    assert_eq!(found, expected);
    assert!(expected["switch"] > 1000 && expected["call"] > 1000, "{expected:?}");
    assert_eq!(wrong_threads, 0);
    let sleep = facts.threads().iter().filter(|(_, t)| t.name.as_deref() == Some("sleep")).count();
    assert!(sleep >= 1, "the shell's sleep is known by its name after exec");
}
