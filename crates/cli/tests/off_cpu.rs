// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat flow stacks --off-cpu` of a program that measures how long it waits where, and asks the kernel how
//! often it left the CPU.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use crate::place::Place;
use crate::samples::{built, is_there};

/// Prints the nanoseconds that `main` waited, and how often its thread was switched out while blocked and
/// while runnable.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#define APART __attribute__((noinline))
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static volatile unsigned long sink;
static long long napped, waited;
static struct rusage before, behind;
static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}
APART void nap(void) { usleep(10000); sink++; }
APART void wait_for_lock(void) { pthread_mutex_lock(&lock); sink++; pthread_mutex_unlock(&lock); }
static void *holder(void *none) {
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        pthread_barrier_wait(&both);
        usleep(20000);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&both);
    }
    return none;
}
APART void work(void) {
    pthread_t other;
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < 20; i++) { long long t = now(); nap(); napped += now() - t; }
    pthread_create(&other, 0, holder, 0);
    for (int i = 0; i < 10; i++) {
        pthread_barrier_wait(&both);
        long long t = now(); wait_for_lock(); waited += now() - t;
        pthread_barrier_wait(&both);
    }
    pthread_join(other, 0);
    for (int i = 0; i < 100000000; i++) sink += i;
    getrusage(RUSAGE_THREAD, &behind);
}
int main(void) {
    pthread_barrier_init(&both, 0, 2);
    work();
    printf("nap %lld\nwait_for_lock %lld\nblocked %ld\npreempted %ld\n", napped, waited,
           behind.ru_nvcsw - before.ru_nvcsw, behind.ru_nivcsw - before.ru_nivcsw);
    return 0;
}
"#;

fn truth(output: &[u8]) -> BTreeMap<String, u64> {
    let text = String::from_utf8_lossy(output);
    let line = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Returns nanoseconds and number of departures by cause, for paths that contain a function.
fn off_cpu(place: &Place, trace: &str, function: &str) -> BTreeMap<String, (u64, u64)> {
    let stacks = place.json(&["flow", "stacks", trace, "--off-cpu", "--no-inline", "--json"]);
    let functions = stacks["functions"].as_array().expect("functions");
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let mut all = BTreeMap::new();
    for event in stacks["events"].as_array().expect("events") {
        assert_eq!(event["unit"], "ns", "{event:#}");
        // A caller precedes its callees.
        let mut is_below: Vec<bool> = Vec::new();
        for path in event["paths"].as_array().expect("paths") {
            let is_it = functions[number(&path["function"]) as usize]["name"] == function;
            let caller = path["caller"].as_u64().map(|at| is_below[at as usize]);
            is_below.push(is_it || caller == Some(true));
            if is_below.last() == Some(&true) {
                let cause = event["event"].as_str().expect("a name").to_owned();
                let (ns, times) = all.entry(cause).or_insert((0, 0));
                *ns += number(&path["self_weight"]);
                *times += number(&path["self_samples"]);
            }
        }
    }
    all
}

/// Checks that the trace has the times measured by the program. perf misses some tracepoint events, so that
/// all its times are unknown, and only this is checked.
fn check(place: &Place, trace: &str, truth: &BTreeMap<String, u64>) {
    let stacks = place.json(&["flow", "stacks", trace, "--off-cpu", "--no-inline", "--json"]);
    let is_by_tracepoint = trace == "sched.data";
    assert_eq!(stacks["quality"] == "unknown", is_by_tracepoint, "{trace}: {}", stacks["quality"]);
    if is_by_tracepoint {
        let output = place.lat(&["flow", "stacks", trace, "--off-cpu"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains("warning: perf misses switches while it writes an event"),
            "{errors}"
        );
        return;
    }
    for name in ["nap", "wait_for_lock"] {
        let found = off_cpu(place, trace, name);
        let sum: u64 = found.values().map(|(ns, _)| ns).sum();
        // The program reads its clock on the CPU, around the wait.
        let most = truth[name];
        assert!(sum <= most && sum >= most / 2, "{trace}: {name}: {found:?} of {most} ns");
    }
    let naps = off_cpu(place, trace, "nap").get("blocked").map_or(0, |(_, times)| *times);
    assert_eq!(naps, 20, "{trace}");
    let found = off_cpu(place, trace, "work");
    assert!(found.values().any(|(ns, times)| *ns > 0 && *times > 0), "{trace}: {found:?}");
    for cause in ["blocked", "preempted"] {
        let times = found.get(cause).map_or(0, |(_, times)| *times);
        // It may leave the CPU in `work` before its first reading of the counts and after its last.
        assert!(times.abs_diff(truth[cause]) <= 2, "{trace}: {found:?} {truth:?}");
    }
}

#[test]
fn times_off_the_processor_are_those_that_a_program_measures_itself() {
    if !is_there("gcc") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let place = Place::new();
    built(&place, PROGRAM, "waits", &["-O1", "-pthread"]);
    let words = ["record", "--off-cpu", "--sample-stack", "dwarf", "-o", "own", "--", "./waits"];
    let output = place.lat(&words);
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) && errors.contains("cannot sample call stacks") {
        println!("SKIPPED: {errors}");
        return;
    }
    assert!(output.status.success() && errors.contains("own --off-cpu"), "{errors}");
    check(&place, "own", &truth(&output.stdout));
    // Departures are samples, too, and other samples are not departures.
    let words = ["record", "--off-cpu", "--sample", "999", "-o", "both", "--", "./waits"];
    assert!(place.lat(&words).status.success());
    let stacks = place.json(&["flow", "stacks", "both", "--json"]);
    let events = stacks["events"].as_array().expect("events");
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str()).collect();
    assert!(names.contains(&Some("perf:context_switches")) && names.len() == 2, "{names:?}");
    let text = place.lat(&["print", "both", "--event", "perf:switch"]).stdout;
    let text = String::from_utf8_lossy(&text);
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert!(count("out=1") > 60 && count("out=0") > 60, "{text}");
}

#[test]
fn recordings_of_perf_say_how_long_threads_were_off_the_processor() {
    if !is_there("gcc") || !is_there("perf") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let place = Place::new();
    built(&place, PROGRAM, "waits", &["-O1", "-pthread"]);
    let record = |name: &str, words: &[&str]| {
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "--call-graph", "dwarf", "-o", name]).args(words);
        perf.args(["--", "./waits"]).current_dir(&place.0).stderr(Stdio::null());
        let output = perf.output().expect("perf is there");
        if !output.status.success() {
            println!("SKIPPED: perf cannot record {words:?} here");
        }
        output.status.success().then(|| truth(&output.stdout))
    };
    let switches = ["-e", "context-switches", "-c", "1", "--switch-events"];
    if let Some(truth) = record("switches.data", &switches) {
        check(&place, "switches.data", &truth);
    }
    if let Some(truth) = record("sched.data", &["-e", "sched:sched_switch", "-a"]) {
        check(&place, "sched.data", &truth);
    }
    // If no event records when a thread returns, no time is made up.
    if record("none.data", &["-e", "context-switches", "-c", "1"]).is_some() {
        let output = place.lat(&["flow", "stacks", "none.data", "--off-cpu"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(errors.contains("no event says when a thread is back"), "{errors}");
    }
}
