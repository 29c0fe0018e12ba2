// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Many short-lived processes, many threads, and libraries that are loaded and unloaded.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::slow;
use super::writer::{found, lost, program, start};
use crate::place::Place;

/// Starts itself ARGUMENT times, 40 at a time; each process writes three events.
const BOMB: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>
    #include <faults.h>
    int main(int argc, char **argv) {
        char text[16];
        if (argc == 3) {
            for (uint64_t n = 0; n < 3; n++)
                lat_faults_step((uint32_t)atoi(argv[2]), n);
            return 0;
        }
        for (int child = 0, running = 0; child < atoi(argv[1]); child++) {
            if (running == 40) running -= wait(0) > 0;
            snprintf(text, sizeof text, "%d", child);
            const pid_t pid = fork();
            if (pid == 0) {
                execl(argv[0], argv[0], argv[1], text, (char *)0);
                _exit(1);
            }
            if (pid < 0) return 2;
            running++;
        }
        while (wait(0) > 0) {}
        return 0;
    }
"#;

/// Returns the largest number of descriptors and of private KiB of a process at any sample until it ended.
/// Mapped memory of other processes is not counted.
fn most_of(running: &mut super::writer::Running) -> (usize, u64) {
    let folder = format!("/proc/{}", running.0.id());
    let (mut descriptors, mut memory) = (0, 0);
    while running.0.try_wait().expect("its status").is_none() {
        let files = fs::read_dir(format!("{folder}/fd")).into_iter().flatten();
        descriptors = descriptors.max(files.count());
        let status = fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
        let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let own = own.and_then(|line| line.split_whitespace().next()?.parse().ok());
        memory = memory.max(own.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    (descriptors, memory)
}

#[test]
fn a_fork_bomb_costs_the_recorder_neither_events_nor_bounds() {
    let place = Place::new();
    let Some(bomb) = program(&place, "bomb", BOMB) else { return };
    let count: u64 = if slow() { 2000 } else { 300 };
    for options in [&["-o", "own"][..], &["-o", "together", "--shared"]] {
        let bomb = bomb.to_str().expect("letters");
        let number = count.to_string();
        let small = ["record", "--quiet", "--buffer", "16K", "--packet", "4K"];
        let mut recorder = start(&place, &[&small, options, &["--", bomb, &number]].concat());
        let (descriptors, memory) = most_of(&mut recorder);
        assert_eq!(recorder.0.wait().expect("its status").code(), Some(0));
        let report = place.report(options[1]);
        let found = found(&place, options[1]);
        let events: u64 = found.values().map(|list| list.len() as u64).sum();
        // Records about processes and threads may be among the lost ones, too.
        let lost = lost(&place, options[1]);
        assert!(events <= 3 * count && events + lost >= 3 * count, "{events} {lost}: {report}");
        assert_eq!(report["totals"]["events"], events);
        if options.len() == 2 {
            // Without sharing, each process has space for its events, and its three events are in order.
            assert_eq!(found, (0..count).map(|child| (child, vec![0, 1, 2])).collect());
            // A child that was recorded before it executed another program is listed, too.
            let processes = report["processes"].as_array().map_or(0, Vec::len) as u64;
            assert!(processes > count, "{processes} processes");
        }
        // Descriptors of 40 programs at a time; the number of open stream files stays below the descriptor
        // limit.
        assert!(descriptors < 2100, "{descriptors} descriptors");
        println!("{options:?}: {descriptors} descriptors, {memory} KiB");
        // Some kilobytes of information about each process are kept for the report.
        assert!(memory < (32 << 10) + 16 * count, "{memory} KiB");
        let left = fs::read_dir(place.0.join("areas")).expect("areas").flatten();
        let left = left.filter(|entry| entry.path().extension().is_some_and(|e| e == "area"));
        assert_eq!(left.count(), 0);
    }
}

const CROWD: &str = r#"
    #include <pthread.h>
    #include <stdlib.h>
    #include <faults.h>
    static pthread_barrier_t all;
    static void *work(void *argument) {
        const uint32_t thread = (uint32_t)(uintptr_t)argument;
        pthread_barrier_wait(&all);
        for (uint64_t n = 0; n < 20; n++) lat_faults_step(thread, n);
        pthread_barrier_wait(&all);
        return 0;
    }
    int main(void) {
        static pthread_t threads[1000];
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 65536);
        pthread_barrier_init(&all, 0, 1000);
        for (uintptr_t i = 0; i < 1000; i++)
            if (pthread_create(&threads[i], &small, work, (void *)i) != 0) return 7;
        for (int i = 0; i < 1000; i++) pthread_join(threads[i], 0);
        return 0;
    }
"#;

#[test]
fn a_thousand_threads_at_once_are_all_there_or_counted() {
    let place = Place::new();
    let Some(crowd) = program(&place, "crowd", CROWD) else { return };
    let crowd = crowd.to_str().expect("letters");
    for (ring, buffer) in [("cpu", "4M"), ("thread", "64K")] {
        let output = Command::new(env!("CARGO_BIN_EXE_lat"))
            .args(["record", "--quiet", "--buffer", buffer, "-o", ring, "--packet", "4K", "--"])
            .arg(crowd)
            .current_dir(&place.0)
            .env("LATERALIS_DIR", place.0.join("areas"))
            .env("LATERALIS_RING", ring)
            .output()
            .expect("lat can be started");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{text}");
        let found = found(&place, ring);
        let events: u64 = found.values().map(|list| list.len() as u64).sum();
        let report = place.report(ring);
        // A thread introduces itself by a record, which can be lost like any other.
        let lost = lost(&place, ring);
        let missing = 20_000 - events;
        println!("{ring}: {events} found, {lost} lost");
        assert!(missing <= lost && lost <= missing + 1001, "{ring}: {events} found, {lost} lost");
        // Their events fit into the rings of the CPUs, however late the recorder drains them.
        assert!(ring == "thread" || lost == 0 && found.len() == 1000, "{ring}: {lost} lost");
        assert_eq!(report["totals"]["events"], events);
    }
}

const LOADER: &str = r#"
    #include <dlfcn.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <faults.h>
    int main(int argc, char **argv) {
        for (unsigned n = 0; n < 40; n++) {
            void *library = dlopen(argv[1 + n % 2], RTLD_NOW | RTLD_LOCAL);
            if (!library || argc != 3) { fprintf(stderr, "%s\n", dlerror()); return 5; }
            void (*work)(unsigned) = (void (*)(unsigned))dlsym(library, "work");
            work(n);
            lat_faults_step(100, n);
            dlclose(library);
        }
        return 0;
    }
"#;

const PLUGIN: &str = r#"
    #include <faults.h>
    void work(unsigned round);
    void work(unsigned round) {
        for (uint64_t n = 0; n < 10; n++) lat_faults_step(round, n);
    }
"#;

#[test]
fn libraries_that_are_loaded_and_unloaded_keep_every_event() {
    let place = Place::new();
    let Some(loader) = program(&place, "loader", LOADER) else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tracer = root.join("tracer/c");
    let source = place.0.join("plugin.c");
    fs::write(&source, PLUGIN).expect("a file");
    let mut libraries = Vec::new();
    for name in ["one", "two"] {
        let library = place.0.join(format!("lib{name}.so"));
        let sources = fs::read_dir(tracer.join("src")).expect("the tracer").flatten();
        let sources = sources.map(|entry| entry.path());
        let sources = sources.filter(|path| path.extension().is_some_and(|e| e == "c"));
        let output = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread", "-fvisibility=default"])
            .args(["-I".into(), tracer.join("include"), "-I".into(), tracer.join("src")])
            .args(["-I".into(), place.0.clone()])
            .arg(&source)
            .args(sources)
            .arg("-o")
            .arg(&library)
            .output()
            .expect("cc");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        libraries.push(library.to_str().expect("letters").to_owned());
    }
    let loader = loader.to_str().expect("letters");
    let words = ["record", "--quiet", "-o", "out", "--", loader, &libraries[0], &libraries[1]];
    let output = place.lat(&words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = place.report("out");
    let ten: Vec<u64> = (0..10).collect();
    let mut all: BTreeMap<u64, Vec<u64>> = (0..40).map(|round| (round, ten.clone())).collect();
    all.insert(100, (0..40).collect());
    assert_eq!(found(&place, "out"), all, "{}", report["problems"]);
    assert_eq!(lost(&place, "out"), 0);
}
