// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Thread states, compared with the kernel's own accounting and with perf.

use crate::foreign::table;
use crate::kernel::usable;
use crate::place::Place;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Programs that compete for the CPUs, killed on drop.
struct Burners(Vec<Child>);

impl Burners {
    fn new(count: usize) -> Self {
        let burn = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        Self((0..count).map(|_| burn().expect("sh is there")).collect())
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for burner in &mut self.0 {
            let _ = burner.kill();
            let _ = burner.wait();
        }
    }
}

fn states(place: &Place, trace: &str) -> Vec<Value> {
    let stats = place.json(&["stats", trace, "--section", "thread-states", "--json"]);
    stats["thread_states"].as_array().expect("rows").clone()
}

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"))
}

#[test]
fn running_and_waiting_are_what_the_kernel_counted_of_a_thread() {
    // At its end the program prints its nanoseconds on a CPU, its nanoseconds waiting for one, and the number
    // of runs [Documentation/scheduler/sched-stats.rst]. Before that it sleeps and is preempted.
    const PROGRAM: &str = "import os,time\nend=time.monotonic()+0.5\nwhile time.monotonic()<end: pass\n\
        for _ in range(20): time.sleep(0.002)\n\
        print(os.getpid(),open('/proc/self/schedstat').read(),flush=True)\nos._exit(0)";
    let python = std::env::var("LATERALIS_TEST_PYTHON").unwrap_or("/usr/bin/python3".to_owned());
    if !usable(&[&python]) {
        return;
    }
    let place = Place::new();
    let burners = Burners::new(3);
    let words = ["record", "-q", "--kernel", "sched", "-o", "out", "--", &python, "-c", PROGRAM];
    let output = place.lat(&words);
    drop(burners);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let counted: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [tid, ran, waited, _] = counted[..] else { panic!("{text}") };
    let rows = states(&place, "out");
    let row = rows.iter().find(|row| row["tid"] == tid).unwrap_or_else(|| panic!("{rows:?}"));
    let (running, waits) = (number(row, "running_ns"), number(row, "wait_ns"));
    // Time after the program read its statistics, and unknown time on machines whose kernel omits switches.
    let more = 20_000_000;
    let unknown = number(row, "unknown_ns");
    assert!(running <= ran + more && waits <= waited + more, "{ran} {waited}: {row}");
    assert!(running + unknown + more >= ran, "{ran}: {row}");
    assert!(waits + unknown + more >= waited, "{waited}: {row}");
    assert!(unknown > 0 || waits >= waited * 9 / 10, "{waited}: {row}");
    // It slept at least as long as requested, except for unknown time.
    assert!(number(row, "sleeping_ns") + unknown >= 40_000_000, "{row}");
    assert!(row["ran_instead_tid"].is_u64() && row["longest_wait_cpu"].is_u64(), "{row}");
}

#[test]
fn threads_ran_as_long_as_perf_says() {
    if !usable(&["perf"]) {
        return;
    }
    let place = Place::new();
    let burners = Burners::new(2);
    let program = "for i in 1 2 3 4 5; do seq 100000 >/dev/null; sleep 0.01; done";
    let perf = |words: &[&str]| {
        let mut command = Command::new("perf");
        command.args(words).current_dir(&place.0).stderr(Stdio::null());
        command.output().expect("perf is there")
    };
    let recorded = perf(&["sched", "record", "-o", "perf.data", "--", "sh", "-c", program]);
    drop(burners);
    if !recorded.status.success() {
        println!("SKIPPED: perf records no events of the scheduler here");
        return;
    }
    let text = perf(&["sched", "timehist", "-i", "perf.data", "-s"]).stdout;
    // COMM[TID]  PARENT  COUNT  MILLISECONDS …; COMM[TID/PID] of threads.
    let mut milliseconds: BTreeMap<i64, f64> = BTreeMap::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let Some((name, rest)) = line.rsplit_once(']') else { continue };
        let tid = name.rsplit('[').next().and_then(|of| of.split('/').next()?.parse().ok());
        let ran = rest.split_whitespace().nth(2).and_then(|word| word.parse().ok());
        if let Some((tid, ran)) = tid.zip(ran) {
            milliseconds.insert(tid, ran);
        }
    }
    // perf assigns the last run of a thread that has exited to no thread.
    let of_nobody = milliseconds.get(&-1).copied().unwrap_or(0.0);
    let (mut equal, mut rows_of_both) = (0, 0);
    for row in states(&place, "perf.data") {
        let Some(&ran) = milliseconds.get(&number(&row, "tid").cast_signed()) else { continue };
        rows_of_both += 1;
        let running = number(&row, "running_ns") as f64 / 1e6;
        // perf rounds to microseconds, and assigns the time before the first switch of a CPU to a thread.
        assert!(running <= ran + of_nobody + 0.002, "{ran} {of_nobody}: {row}");
        if row["not_exact"].as_object().is_some_and(serde_json::Map::is_empty) {
            assert!(running + 0.002 >= ran, "{ran}: {row}");
            equal += usize::from(running <= ran + 0.002);
        }
    }
    assert!(equal >= 5 && rows_of_both > equal, "{equal} of {rows_of_both}");
}

/// The table contains every interval that the statistics add up, and those of a thread do not overlap.
#[test]
fn stretches_of_the_table_add_up_to_the_statistics() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/traces/ctf1/lttng-ref/basic-kernel-analysis/kernel");
    if !trace.exists() {
        println!("SKIPPED: {} is not there", trace.display());
        return;
    }
    let (place, trace) = (Place::new(), trace.to_str().expect("UTF-8"));
    let rows = table(&place, trace, "thread_states");
    let mut sums: BTreeMap<(u64, String), (u64, u64)> = BTreeMap::new();
    let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
    let mut woken = 0;
    for row in &rows {
        let number = |name: &str| row[name].parse::<u64>().expect("a number");
        let (tid, begin, end) = (number("tid"), number("ts"), number("end_ts"));
        let before = ends.insert(tid, end).unwrap_or(0);
        assert!(before <= begin && begin <= end, "{row:?}");
        woken += u64::from(row["woken_by"] == "interrupt");
        if row["quality"] == "exact" {
            let of = sums.entry((tid, row["state"].clone())).or_default();
            *of = (of.0 + number("duration"), of.1 + 1);
        }
    }
    assert!(rows.len() > 3000 && woken > 100, "{} {woken}", rows.len());
    let mut told = 0;
    for row in states(&place, trace) {
        let tid = number(&row, "tid");
        for state in ["running", "runnable", "preempted", "sleeping", "blocked", "stopped"] {
            let [nanos, count] = ["ns", "count"].map(|of| number(&row, &format!("{state}_{of}")));
            let sum = sums.remove(&(tid, state.to_owned())).unwrap_or_default();
            assert_eq!((nanos, count), sum, "{tid} {state}");
            told += 1;
        }
    }
    assert!(told > 100 && sums.is_empty(), "{told} {sums:?}");
}
