// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recordings of real C programs with the real tracer, compared with the programs' own counts
//! and with the output of babeltrace2.

mod deputy;
mod filter;
mod hostile;
mod policy;
mod program;
mod running;
mod shared;
mod threads;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use lateralis_recorder::linux::{Session, Summary};
use lateralis_recorder::{RecordOptions, Report};
use program::{Babeltrace, Workshop, babeltrace, command};

const SCHEMA: &str = "schema app; subsystem app { event TICK (n: u64), event NAMED (name: string, \
    n: u32), event PAIR (thread: u32, n: u32), };";

fn options(workshop: &Workshop, name: &str) -> RecordOptions {
    let mut options = RecordOptions::new(workshop.path(name));
    options.area_dir = Some(workshop.areas());
    options
}

fn record(options: RecordOptions, words: &[OsString]) -> Summary {
    let mut session = Session::new(options).unwrap();
    session.launch(words, &[]).unwrap();
    session.run(&mut |_| {}).unwrap()
}

/// Checks invariants of every recording, and returns the output of babeltrace2.
fn check(summary: &Summary) -> Option<Babeltrace> {
    let text = std::fs::read_to_string(summary.output.join("report.json")).unwrap();
    let report = Report::from_json(&text).unwrap();
    assert_eq!(report, summary.report);
    assert!(report.complete, "{:?}", report.problems);
    let counted: u64 = report.events.values().sum();
    assert_eq!(counted, report.totals.events + report.totals.internal_events);
    for stream in &report.streams {
        let by_interval: u64 = stream.intervals.iter().map(|interval| interval.lost.total).sum();
        assert_eq!(by_interval, stream.lost.total);
        let bytes: u64 = stream.files.iter().map(|file| size(&summary.output.join(file))).sum();
        assert_eq!(bytes, stream.bytes);
    }
    let read = babeltrace(&summary.output)?;
    let mut names: BTreeMap<String, u64> = BTreeMap::new();
    for line in &read.lines {
        let name =
            line.split_whitespace().find(|word| word.contains(':') && !word.starts_with('['));
        let name = name.unwrap_or(line).trim_end_matches(':').to_owned();
        *names.entry(name).or_insert(0) += 1;
    }
    assert_eq!(names, report.events, "{}", read.warnings);
    Some(read)
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn a_program_of_four_threads_loses_nothing() {
    let Some(workshop) = Workshop::new("threads") else { return };
    let binary = workshop.compile(
        "threads",
        SCHEMA,
        r#"
        #include <pthread.h>
        #include <stdio.h>
        static void *work(void *argument) {
            const uint32_t thread = (uint32_t)(uintptr_t)argument;
            for (uint32_t n = 0; n < 20000; n++)
                lat_app_pair(thread, n);
            return 0;
        }
        int main(void) {
            pthread_t threads[4];
            lat_app_named("start", 7);
            for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)i);
            for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
            puts("program output");
            return 42;
        }
        "#,
    );
    let summary = record(options(&workshop, "out"), &command(&[binary.to_str().unwrap()]));
    assert_eq!(summary.exit_status, Some(42));
    let report = &summary.report;
    assert_eq!(report.totals.lost.total, 0);
    assert_eq!(report.totals.events, 80001);
    assert_eq!(report.events["app:PAIR"], 80000);
    assert_eq!(report.events["app:NAMED"], 1);
    assert_eq!(report.processes.len(), 1);
    assert!(report.processes[0].build_id.is_some());
    assert_eq!(report.command.as_ref().unwrap().exit_status, Some(42));
    assert!(workshop.areas_left().is_empty());
    if let Some(read) = check(&summary) {
        assert_eq!(read.warnings, "");
        let mut next: BTreeMap<u32, u32> = BTreeMap::new();
        for line in read.lines.iter().filter(|line| line.contains("app:PAIR")) {
            let fields = line.rsplit_once('{').unwrap().1;
            let numbers: Vec<u32> =
                fields.split([',', '}', ' ']).filter_map(|word| word.parse().ok()).collect();
            let expected = next.entry(numbers[0]).or_insert(0);
            assert_eq!(numbers[1], *expected, "{line}");
            *expected += 1;
        }
        assert_eq!(next, BTreeMap::from([(0, 20000), (1, 20000), (2, 20000), (3, 20000)]));
    }
}

/// Writes as fast as it can from two threads; prints the number written to standard output.
const FAST: &str = r#"
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    static uint64_t count;
    static void *work(void *argument) {
        for (uint64_t n = 0; n < count; n++) lat_app_tick(n);
        return argument;
    }
    int main(int argc, char **argv) {
        pthread_t thread;
        count = strtoull(argv[1], 0, 10);
        pthread_create(&thread, 0, work, 0);
        work(0);
        pthread_join(thread, 0);
        return argc - 2;
    }
"#;

#[test]
fn losses_of_tiny_rings_are_exact() {
    let Some(workshop) = Workshop::new("losses") else { return };
    let binary = workshop.compile("fast", SCHEMA, FAST);
    for ring in ["cpu", "thread"] {
        let mut options = options(&workshop, ring);
        options.buffer_bytes = 8192;
        options.packet_bytes = 4096;
        let mut session = Session::new(options).unwrap();
        let environment = [(OsString::from("LATERALIS_RING"), OsString::from(ring))]
            .into_iter()
            .collect::<Vec<_>>();
        session.launch(&command(&[binary.to_str().unwrap(), "100000"]), &environment).unwrap();
        let summary = session.run(&mut |_| {}).unwrap();
        let totals = summary.report.totals;
        assert_eq!(summary.exit_status, Some(0));
        assert!(totals.lost.full > 0, "{ring}: the rings were not too small");
        // The process and its two threads introduce themselves by a record each, which
        // can be lost like any other.
        let introductions: u64 = ["lateralis:PROCESS", "lateralis:THREAD_NAME"]
            .iter()
            .filter_map(|name| summary.report.events.get(*name))
            .sum();
        let read = totals.events + introductions;
        assert_eq!(read + totals.lost.total, 200_003, "{ring}: {totals:?}");
        if let Some(read) = check(&summary) {
            // babeltrace2 counts per interval the numbers in the packets.
            let warned: u64 = read
                .warnings
                .lines()
                .filter_map(|line| {
                    line.split_once("Tracer discarded ")?.1.split(' ').next()?.parse::<u64>().ok()
                })
                .sum::<u64>();
            assert_eq!(warned, totals.lost.total, "{ring}: {}", read.warnings);
        }
    }
}

#[test]
fn forked_and_executed_processes_are_all_there() {
    let Some(workshop) = Workshop::new("family") else { return };
    let binary = workshop.compile(
        "family",
        SCHEMA,
        r#"
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            for (uint32_t child = 0; argc == 1 && child < 5; child++) {
                if (fork() == 0) {
                    for (uint32_t n = 0; n < 100; n++) lat_app_pair(child, n);
                    if (child % 2) execl(argv[0], argv[0], "leaf", (char *)0);
                    _exit(0);
                }
            }
            while (wait(0) > 0) {}
            lat_app_named(argc == 1 ? "parent" : "leaf", 0);
            raise_if(argc);
            return 0;
        }
        "#
        .replace("raise_if(argc);", "if (argc == 1) abort();")
        .as_str(),
    );
    let summary = record(options(&workshop, "out"), &command(&[binary.to_str().unwrap()]));
    assert_eq!(summary.exit_status, Some(128 + 6));
    assert_eq!(summary.report.command.as_ref().unwrap().signal, Some(6));
    assert_eq!(summary.report.events["app:PAIR"], 500);
    assert_eq!(summary.report.events["app:NAMED"], 3);
    assert_eq!(summary.report.areas.len(), 3);
    check(&summary);
    assert!(workshop.areas_left().is_empty());
}

#[test]
fn a_killed_program_leaves_every_event_it_committed() {
    let Some(workshop) = Workshop::new("killed") else { return };
    let binary = workshop.compile(
        "killed",
        SCHEMA,
        r#"
        #include <signal.h>
        int main(void) {
            for (uint64_t n = 0; n < 1000; n++) lat_app_tick(n);
            raise(SIGKILL);
            return 0;
        }
        "#,
    );
    let summary = record(options(&workshop, "out"), &command(&[binary.to_str().unwrap()]));
    assert_eq!(summary.exit_status, Some(128 + 9));
    assert_eq!(summary.report.totals.events, 1000);
    check(&summary);
}

#[test]
fn a_command_that_cannot_be_started_leaves_a_clear_error() {
    let Some(workshop) = Workshop::new("nothing") else { return };
    let mut session = Session::new(options(&workshop, "out")).unwrap();
    let error = session.launch(&command(&["/no/such/command"]), &[]).unwrap_err();
    assert!(error.to_string().contains("/no/such/command"), "{error}");
    assert!(!error.advice().is_empty());
    drop(session);
    let error = Session::new(options(&workshop, "out")).err().unwrap();
    assert!(error.to_string().contains("exists"), "{error}");
    // An untraced program: an empty but valid trace.
    let summary = record(options(&workshop, "empty"), &command(&["true"]));
    assert_eq!(summary.exit_status, Some(0));
    assert_eq!(summary.report.totals.packets, 0);
    assert!(summary.report.complete);
    if let Some(read) = babeltrace(&summary.output) {
        assert!(read.lines.is_empty());
    }
}
