// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program that keeps a ledger of its events, even if it is killed, to compare with its recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::Place;

/// Threads of the program.
pub const THREADS: usize = 2;

/// Writes numbered events from its threads until its input ends, in bursts with pauses between them. The
/// number of committed events of each thread is stored in a mapped file, which survives any kill.
const SOURCE: &str = r#"
    #include <fcntl.h>
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #include <faults.h>
    static volatile uint64_t *ledger;
    static volatile int ended;
    static long pause_us;
    static void *work(void *argument) {
        const uint32_t thread = (uint32_t)(uintptr_t)argument;
        for (uint64_t n = 0; !ended; n++) {
            lat_faults_step(thread, n);
            ledger[thread] = n + 1;
            if (n % 32 == 31) usleep((useconds_t)pause_us);
        }
        return 0;
    }
    int main(int argc, char **argv) {
        char byte;
        pthread_t threads[THREADS];
        const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
        if (argc < 3 || file < 0 || ftruncate(file, 4096) != 0) return 9;
        pause_us = atol(argv[2]);
        ledger = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, (void *)i);
        printf("%d\n", (int)getpid());
        fflush(stdout);
        while (read(0, &byte, 1) > 0) {}
        ended = 1;
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
        return 0;
    }
"#;

/// Schema of all programs here.
const SCHEMA: &str =
    "schema faults;\nsubsystem faults {\n    event STEP (thread: u32, n: u64),\n};\n";

/// Compiles a program with events `lat_faults_step(thread, n)`; prints a message and returns `None` if there
/// is no compiler.
pub fn program(place: &Place, name: &str, source: &str) -> Option<PathBuf> {
    let (schema, folder) = (place.0.join("faults.pleco"), place.0.to_str().expect("letters"));
    fs::write(&schema, SCHEMA).expect("a file");
    let output = place.lat(&["pleco", "gen", "faults.pleco", "--c", "faults.h"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = place.0.join(format!("{name}.c"));
    fs::write(&path, format!("#define _GNU_SOURCE\n{source}")).expect("a file");
    place.compile(name, &path, folder)
}

/// Compiles the program of this module.
pub fn steps(place: &Place) -> Option<PathBuf> {
    program(place, "steps", &SOURCE.replace("THREADS", &THREADS.to_string()))
}

/// A child process of a test, killed at the latest when the test ends.
pub struct Running(pub Child);

impl Running {
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.expect("kill").success(), "kill -{name} {pid}");
}

/// Starts `lat` with piped input and output.
pub fn start(place: &Place, arguments: &[&str]) -> Running {
    let child = Command::new(env!("CARGO_BIN_EXE_lat"))
        .args(arguments)
        .current_dir(&place.0)
        .env("LATERALIS_DIR", place.0.join("areas"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    Running(child.expect("lat can be started"))
}

/// Records the program with these options, and returns its process id once it writes.
pub fn record(place: &Place, options: &[&str], program: &Path, ledger: &str) -> (Running, u32) {
    let program = program.to_str().expect("letters");
    let words = [&["record", "--quiet"], options, &["--", program, ledger, "100"]].concat();
    let mut running = start(place, &words);
    let pid = pid_of(&mut running);
    (running, pid)
}

/// Reads the process id that a program prints first.
pub fn pid_of(running: &mut Running) -> u32 {
    let mut line = String::new();
    let output = running.0.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    line.trim().parse().unwrap_or_else(|_| panic!("no number: {line:?}"))
}

/// Returns the number of committed events of each thread.
pub fn committed(place: &Place, ledger: &str) -> [u64; THREADS] {
    let bytes = fs::read(place.0.join(ledger)).expect("a ledger");
    let word = |at: usize| u64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().expect("eight"));
    std::array::from_fn(word)
}

/// Returns the numbers of the events of each thread, with repetitions. They are read by babeltrace2, which
/// may complain about nothing but losses; if it is missing, by `lat`.
pub fn found(place: &Place, trace: &str) -> BTreeMap<u64, Vec<u64>> {
    let independent = Command::new("babeltrace2")
        .args(["--names=none", "--clock-cycles"])
        .arg(place.0.join(trace).join("ctf"))
        .output();
    let mut all: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let Ok(independent) = independent else {
        println!("SKIPPED: reading with babeltrace2: not here");
        let own = place.lat(&["print", trace, "--format", "json", "--event", "faults:STEP"]);
        for line in String::from_utf8_lossy(&own.stdout).lines() {
            let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let number = |name: &str| event["fields"][name].as_u64().expect("a number");
            all.entry(number("thread")).or_default().push(number("n"));
        }
        return all;
    };
    let complaints = String::from_utf8_lossy(&independent.stderr);
    assert!(independent.status.success(), "{complaints}");
    for line in String::from_utf8_lossy(&independent.stdout).lines() {
        if !line.contains("faults:STEP") {
            continue;
        }
        let fields = line.rsplit_once('{').expect("fields").1;
        let mut numbers = fields.split([',', ' ', '}']).filter_map(|word| word.parse().ok());
        let (thread, n) = (numbers.next().expect("a thread"), numbers.next().expect("a number"));
        all.entry(thread).or_default().push(n);
    }
    all
}

/// Returns all losses that a recording reports, including events that were read and not written.
pub fn lost(place: &Place, recording: &str) -> u64 {
    let totals = place.report(recording)["totals"].clone();
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    assert_eq!(totals["lost_packets"], 0, "{totals}");
    number(&totals["lost"]["total"]) + number(&totals["not_written"])
}

/// Number of events in `0..committed` that are missing in all recordings, or contained in two.
#[derive(Debug, Default)]
pub struct Account {
    pub missing: u64,
    pub twice: u64,
}

/// Compares recorded events with committed ones. Each thread may have one event that is not in the ledger, if
/// it was killed between the two writes.
pub fn account(found: &[BTreeMap<u64, Vec<u64>>], committed: [u64; THREADS]) -> Account {
    let mut account = Account::default();
    for (thread, committed) in committed.into_iter().enumerate() {
        let lists = found.iter().filter_map(|one| one.get(&(thread as u64)));
        let mut seen = BTreeSet::new();
        for list in lists {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "thread {thread}: disordered");
            account.twice += list.iter().filter(|n| !seen.insert(**n)).count() as u64;
        }
        let last = seen.last().map_or(0, |last| last + 1);
        assert!(last <= committed + 1, "thread {thread}: {last} of {committed}: never written");
        account.missing += committed.max(last) - seen.len() as u64;
    }
    account
}

/// Waits for a condition.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Sleeps for an arbitrary time of 0 to 80 ms.
pub fn any_moment(round: u64) {
    let nanoseconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| u64::from(now.subsec_nanos()));
    std::thread::sleep(Duration::from_micros((nanoseconds / 1000 + round * 7919) % 80_000));
}
