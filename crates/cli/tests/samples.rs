// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat record --sample` of programs that measure their own time per function, compared with perf samples of
//! the same run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::kernel::{babeltrace, usable};
use crate::place::Place;

/// Prints the CPU time of each function that `main` calls. The duration of calls varies, so that the program
/// has no period in common with the samples.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define APART __attribute__((noinline))
static volatile unsigned long sink;
static unsigned long seed = 1;
static unsigned long less_than(unsigned long most) {
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return (seed >> 33) % most;
}
static unsigned long long cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
#define SPIN for (unsigned long i = 0; i < n; i++) sink += i; __asm__ volatile("" ::: "memory")
APART void spin(unsigned long n) { SPIN; }
static inline __attribute__((always_inline)) void inlined(unsigned long n) { SPIN; }
APART void most_of_it(unsigned long n) { spin(n); __asm__ volatile("" ::: "memory"); }
APART void less_of_it(unsigned long n) { spin(n); __asm__ volatile("" ::: "memory"); }
APART void deepest(unsigned long n) { spin(n); __asm__ volatile("" ::: "memory"); }
APART void deep(unsigned long n) { deepest(n); __asm__ volatile("" ::: "memory"); }
APART void holds_inlined(unsigned long n) { inlined(n); }
int main(int count, char **words) {
    unsigned long long of[4] = {0, 0, 0, 0}, begin = cpu_ns(), now = begin, next;
    unsigned long long most = (count > 1 ? atoll(words[1]) : 1000) * 1000000ull;
    void (*const called[4])(unsigned long) = {most_of_it, less_of_it, deep, holds_inlined};
    const unsigned long share[4] = {800000, 400000, 250000, 150000};
    while (now - begin < most) {
        for (int i = 0; i < 4; i++) {
            called[i](less_than(share[i]));
            next = cpu_ns();
            of[i] += next - now;
            now = next;
        }
    }
    printf("most_of_it %llu\nless_of_it %llu\ndeep %llu\nholds_inlined %llu\n", of[0], of[1], of[2], of[3]);
}
"#;

const RUST_PROGRAM: &str = "
use std::hint::black_box;
#[inline(never)]
fn spin(n: u64) -> u64 { (0..n).fold(0, |sum, i| black_box(sum ^ i)) }
mod shop {
    #[inline(never)]
    pub fn outer(n: u64) -> u64 { std::hint::black_box(super::spin(n)) + 1 }
}
/// Of this thread: the first number of its schedstat [Linux, Documentation/scheduler/sched-stats].
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string(\"/proc/thread-self/schedstat\").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}
fn work() -> u64 {
    let begin = cpu_ns();
    black_box((0..400u64).map(|n| shop::outer(500_000 + n)).sum::<u64>());
    cpu_ns() - begin
}
fn main() {
    let other = std::thread::Builder::new().name(\"other\".into()).spawn(work).unwrap();
    println!(\"program {}\", work());
    println!(\"other {}\", other.join().unwrap());
}
";

/// Without optimisation: each function has a frame.
const WITH_FRAMES: [&str; 2] = ["-O0", "-fno-omit-frame-pointer"];
const WITHOUT_FRAMES: [&str; 3] = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];

pub fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let is_there = found.is_ok_and(|output| output.status.success());
    if !is_there {
        println!("SKIPPED: no {program} here");
    }
    is_there
}

pub fn built(place: &Place, text: &str, name: &str, options: &[&str]) {
    let source = format!("{name}.c");
    fs::write(place.0.join(&source), text).expect("a source");
    let mut build = Command::new("gcc");
    build.args(options).args([&source, "-o", name]).current_dir(&place.0);
    assert!(build.status().expect("gcc is there").success());
}

/// Records, and returns the output of the program; `None` if sampling is not possible here.
pub fn recorded(place: &Place, words: &[&str]) -> Option<Output> {
    let output = place.lat(&[&["record", "--sample", "999"], words].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) && errors.contains("cannot sample call stacks") {
        println!("SKIPPED: {errors}");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    Some(output)
}

fn truth(output: &[u8]) -> BTreeMap<String, f64> {
    let text = String::from_utf8_lossy(output);
    let line = |line: &str| {
        let (name, ns) = line.split_once(' ')?;
        Some((name.to_owned(), ns.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Returns the weight of each function including its callees, the total weight, and the number of samples.
fn weights(stacks: &Value) -> (BTreeMap<String, f64>, f64, f64) {
    let functions = stacks["functions"].as_array().expect("functions");
    let event = &stacks["events"][0];
    let mut all = BTreeMap::new();
    for row in event["functions"].as_array().expect("rows") {
        let function = &functions[row["function"].as_u64().expect("an index") as usize];
        let name = function["name"].as_str().expect("a name").to_owned();
        *all.entry(name).or_insert(0.0) += row["weight"].as_f64().expect("a number");
    }
    let of = |key: &str| event[key].as_f64().expect("a number");
    (all, of("weight"), of("samples"))
}

/// Whether two shares are equal within five standard deviations for this number of samples, plus 1 % for
/// differences in accounting.
fn is_same(one: f64, other: f64, samples: f64) -> bool {
    let deviation = (one * (1.0 - one) / samples).sqrt();
    (one - other).abs() <= 5.0 * deviation + 0.01
}

fn check(truth: &BTreeMap<String, f64>, stacks: &Value) {
    let all: f64 = truth.values().sum();
    let (weights, weight, samples) = weights(stacks);
    for (name, ns) in truth {
        let (expected, found) = (ns / all, weights.get(name).copied().unwrap_or(0.0) / weight);
        println!("{name}: {expected:.4} measured by itself, {found:.4} of {samples} samples");
        assert!(is_same(expected, found, samples), "{name}: {expected} {found} {weights:#?}");
    }
    // A sample represents one period of the program's time.
    assert!((weight / all - 1.0).abs() < 0.1, "{weight} {all}");
}

fn paths(place: &Place, recording: &str) -> BTreeMap<String, u64> {
    let output = place.lat(&["flow", "stacks", recording, "--format", "folded"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let line = |line: &str| {
        let (path, weight) = line.rsplit_once(' ').expect("a weight");
        (path.to_owned(), weight.parse().expect("a number"))
    };
    text.lines().map(line).collect()
}

#[test]
fn shares_are_those_that_a_program_measures_itself() {
    if !is_there("gcc") {
        return;
    }
    let place = Place::new();
    for (name, options, how) in
        [("frames", &WITH_FRAMES[..], "fp"), ("memory", &WITHOUT_FRAMES[..], "dwarf")]
    {
        if how == "dwarf" && cfg!(not(target_arch = "x86_64")) {
            continue;
        }
        built(&place, PROGRAM, name, options);
        let command = format!("./{name}");
        let words = ["--sample-stack", how, "-o", how, "--", &command, "1500"];
        let Some(output) = recorded(&place, &words) else { return };
        let stacks = place.json(&["flow", "stacks", how, "--json"]);
        check(&truth(&output.stdout), &stacks);
        // The entry point of a program has no caller.
        assert!(stacks["samples_not_unwound"].as_u64() < Some(5), "{stacks:#}");
        let paths = paths(&place, how);
        for path in [";main;deep;deepest;spin", ";main;most_of_it;spin", ";main;holds_inlined"] {
            assert!(paths.keys().any(|of| of.ends_with(path)), "{path}: {paths:#?}");
        }
        let report = place.report(how);
        assert_eq!(report["totals"]["lost"]["total"], 0, "{report:#}");
        assert_eq!(report["problems"], serde_json::json!([]));
    }
    // Samples are events like any other.
    let info = place.json(&["info", "fp", "--json"]);
    assert!(
        info.to_string().contains("perf:cpu_clock") || info.to_string().contains("perf:cycles")
    );
    let printed = place.lat(&["print", "fp", "--event", "perf:mmap2_build_id"]).stdout;
    assert!(String::from_utf8_lossy(&printed).contains("/frames\""), "no mapping");
    assert!(place.lat(&["stats", "fp"]).status.success());
    let picture = place.lat(&["flow", "stacks", "fp", "--format", "svg"]).stdout;
    assert!(String::from_utf8_lossy(&picture).contains("most_of_it"));
    if Command::new("babeltrace2").arg("--version").output().is_ok() {
        let samples = babeltrace(&place.0.join("fp/ctf"));
        assert!(samples.lines().filter(|line| line.contains("callchain = [")).count() > 1000);
    }
}

#[test]
fn perf_samples_the_same_shares_of_the_same_run() {
    if !is_there("gcc") || !is_there("perf") {
        return;
    }
    let place = Place::new();
    built(&place, PROGRAM, "program", &WITH_FRAMES);
    let mut perf = Command::new("perf");
    // Each of the two samplers must be unaffected by the other.
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "999", "-g"]);
    perf.args(["-o", "perf.data", "--"]);
    perf.args([
        env!("CARGO_BIN_EXE_lat"),
        "record",
        "--quiet",
        "--sample",
        "999",
        "-o",
        "own",
        "--",
    ]);
    perf.args(["./program", "2000"]).current_dir(&place.0);
    let output = perf.env("LATERALIS_DIR", place.0.join("areas")).output().expect("perf is there");
    if !output.status.success() {
        return println!("SKIPPED: {}", String::from_utf8_lossy(&output.stderr));
    }
    let of_lat = weights(&place.json(&["flow", "stacks", "own", "--json"]));
    let of_perf = &["flow", "stacks", "perf.data", "--app", "program", "--json"];
    let of_perf = weights(&place.json(of_perf));
    for name in ["most_of_it", "less_of_it", "deep", "deepest", "holds_inlined", "spin", "main"] {
        let share = |(weights, weight, _): &(BTreeMap<String, f64>, f64, f64)| {
            weights.get(name).copied().unwrap_or(0.0) / weight
        };
        let (lat, perf) = (share(&of_lat), share(&of_perf));
        println!("{name}: {lat:.4} of {} here, {perf:.4} of {} by perf", of_lat.2, of_perf.2);
        assert!(is_same(lat, perf, of_lat.2.min(of_perf.2) / 2.0), "{name}: {lat} {perf}");
    }
    assert!((of_lat.1 / of_perf.1 - 1.0).abs() < 0.1, "{} {}", of_lat.1, of_perf.1);
}

#[test]
fn programs_that_a_program_starts_are_sampled_and_named() {
    if !is_there("gcc") {
        return;
    }
    let place = Place::new();
    built(&place, PROGRAM, "first", &WITH_FRAMES);
    built(&place, PROGRAM, "second", &WITH_FRAMES);
    let script = "./first 400 & ./second 300; wait; exec ./first 200";
    let Some(_) = recorded(&place, &["-o", "many", "--", "sh", "-c", script]) else { return };
    let paths = paths(&place, "many");
    let of = |program: &str| -> u64 {
        let begins = format!("{program};");
        let is_its = |path: &&String| path.starts_with(&begins) && path.contains(";main;");
        paths.iter().filter(|(path, _)| is_its(path)).map(|(_, weight)| weight).sum()
    };
    let near = |ns: u64, ms: f64| (ns as f64 / (ms * 1e6) - 1.0).abs() < 0.15;
    assert!(near(of("first"), 600.0) && near(of("second"), 300.0), "{paths:#?}");
    let names = String::from_utf8(place.lat(&["info", "many"]).stdout).expect("UTF-8");
    assert!(names.contains("first") && names.contains("second"), "{names}");
}

#[test]
fn functions_of_rust_have_their_names_and_threads_are_sampled() {
    if !is_there("rustc") {
        return;
    }
    let place = Place::new();
    fs::write(place.0.join("program.rs"), RUST_PROGRAM).expect("a source");
    for (name, how, pointers) in [("fp", "fp", "yes"), ("dwarf", "dwarf", "no")] {
        if how == "dwarf" && cfg!(not(target_arch = "x86_64")) {
            continue;
        }
        let pointers = format!("force-frame-pointers={pointers}");
        let mut build = Command::new("rustc");
        build.args(["-C", "opt-level=1", "-C", &pointers, "program.rs"]).current_dir(&place.0);
        assert!(build.status().expect("rustc is there").success());
        let words = ["--sample-stack", how, "-o", name, "--", "./program"];
        let Some(output) = recorded(&place, &words) else { return };
        let truth = truth(&output.stdout);
        let paths = paths(&place, name);
        let of = |thread: &str| -> u64 {
            let is_its = |path: &&String| {
                path.starts_with(thread) && path.contains("program::shop::outer;program::spin")
            };
            paths.iter().filter(|(path, _)| is_its(path)).map(|(_, weight)| weight).sum()
        };
        // The same work takes longer on a thread that shares its core with others.
        let expected = truth["program"] / truth["other"];
        let found = of("program;") as f64 / of("other;") as f64;
        assert!((found / expected - 1.0).abs() < 0.3, "{found}, {expected}: {paths:#?}");
    }
}

#[test]
fn a_program_that_runs_already_is_sampled() {
    if !is_there("gcc") {
        return;
    }
    let place = Place::new();
    built(&place, PROGRAM, "program", &WITH_FRAMES);
    let mut program = Command::new("./program");
    program.arg("1500").current_dir(&place.0).stdout(Stdio::null());
    let mut program = program.spawn().expect("the program starts");
    std::thread::sleep(Duration::from_millis(100));
    let pid = program.id().to_string();
    let found = recorded(&place, &["-o", "running", "--attach", &pid]);
    program.wait().expect("it ends");
    if found.is_none() {
        return;
    }
    let paths = paths(&place, "running");
    let has = |path: &str| paths.keys().any(|of| of.starts_with("program;") && of.ends_with(path));
    assert!(has(";main;most_of_it;spin") && has(";main;deep;deepest;spin"), "{paths:#?}");
    let nobody = place.lat(&["record", "--sample", "99", "-o", "no", "--attach", &pid]);
    assert_eq!(nobody.status.code(), Some(2), "{nobody:?}");
}

/// Maps memory 300 times in one function, and sleeps 50 times in another.
const CALLING: &str = r"
#include <sys/mman.h>
#include <unistd.h>
#define APART __attribute__((noinline))
APART void maps(void) { munmap(mmap(0, 4096, 1, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096); }
APART void takes_memory(void) { for (int i = 0; i < 300; i++) maps(); }
APART void waits(void) { for (int i = 0; i < 50; i++) usleep(1000); }
int main(void) { takes_memory(); waits(); }
";

#[test]
fn stacks_at_events_of_the_kernel_have_the_fields_of_these() {
    if !usable(&["gcc"]) {
        return;
    }
    let place = Place::new();
    built(&place, CALLING, "program", &WITH_FRAMES);
    let events = "sched_switch,syscalls:sys_enter_munmap";
    for how in ["fp", "dwarf"] {
        if how == "dwarf" && cfg!(not(target_arch = "x86_64")) {
            continue;
        }
        let words =
            ["record", "--stacks", events, "--sample-stack", how, "-o", how, "--", "./program"];
        let output = place.lat(&words);
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(2) && errors.contains("perf_event_paranoid") {
            return println!("SKIPPED: {errors}");
        }
        assert!(output.status.success(), "{errors}");
        let printed = place.lat(&["print", how, "--event", "perf:at_sys_enter_munmap"]).stdout;
        let printed = String::from_utf8_lossy(&printed);
        let is_whole = |line: &&str| line.contains(" len=0x1000 ") || line.contains(" len=4096 ");
        assert!(printed.lines().filter(is_whole).count() >= 300, "{printed}");
        let stacks = place.json(&["flow", "stacks", how, "--json"]);
        let functions = stacks["functions"].as_array().expect("functions");
        let samples_of = |event: &str, function: &str| -> u64 {
            let is_it = |of: &&Value| of["event"] == event;
            let of = stacks["events"].as_array().expect("events").iter().find(is_it);
            let rows = of.and_then(|of| of["functions"].as_array()).expect("rows");
            let name = |row: &Value| &functions[row["function"].as_u64().unwrap() as usize]["name"];
            let weight = |row: &Value| row["weight"].as_u64().expect("a number");
            rows.iter().filter(|row| name(row) == function).map(weight).sum()
        };
        assert_eq!(samples_of("perf:at_sys_enter_munmap", "takes_memory"), 300);
        // The C library has no frame pointers, so its direct caller is skipped.
        let caller = if how == "dwarf" { "waits" } else { "main" };
        assert!((50..60).contains(&samples_of("perf:at_sched_switch", caller)), "{stacks:#}");
    }
}

#[test]
fn each_piece_of_a_recording_can_be_read_alone() {
    if !is_there("gcc") {
        return;
    }
    let place = Place::new();
    built(&place, PROGRAM, "program", &WITH_FRAMES);
    let words = ["--chunk-time", "300ms", "-o", "pieces", "--", "./program", "1500"];
    let Some(_) = recorded(&place, &words) else { return };
    let whole = paths(&place, "pieces").values().sum::<u64>();
    let mut sum = 0;
    for number in 1.. {
        let piece = format!("pieces/chunk-{number:06}");
        if !place.0.join(&piece).exists() {
            assert!(number > 2, "only one piece");
            break;
        }
        let info = place.lat(&["info", &piece]);
        assert!(info.status.success(), "{}", String::from_utf8_lossy(&info.stdout));
        let paths = paths(&place, &piece);
        let weight: u64 = paths.values().sum();
        let named = paths.iter().filter(|(path, _)| path.starts_with("program;"));
        let named: u64 = named.filter(|(path, _)| path.contains(";main")).map(|(_, w)| w).sum();
        assert!(named * 10 >= weight * 9, "{piece}: {paths:#?}");
        sum += weight;
    }
    assert_eq!(sum, whole);
    // A window of `lat keep` begins long after everything was mapped.
    let words = ["keep", "--sample", "999", "-o", "kept", "--before", "200ms", "--after", "10ms"];
    let words = [&words[..], &["--when", "event(perf:exit)", "--", "./program", "600"]].concat();
    assert!(place.lat(&words).status.success());
    let paths = paths(&place, "kept/spike-0001");
    let is_named = |path: &&String| path.starts_with("program;") && path.contains(";main;");
    let named: u64 = paths.iter().filter(|(path, _)| is_named(path)).map(|(_, w)| w).sum();
    assert!(named > 0 && named * 10 >= paths.values().sum::<u64>() * 9, "{paths:#?}");
}

#[test]
fn what_had_no_room_is_counted() {
    if !is_there("gcc") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let place = Place::new();
    built(&place, PROGRAM, "program", &WITH_FRAMES);
    let words = ["record", "--sample", "4000", "--sample-stack", "dwarf", "--buffer", "16K"];
    let output = place.lat(&[&words[..], &["-o", "few", "--", "./program", "800"]].concat());
    if output.status.code() == Some(2) {
        return println!("SKIPPED: {}", String::from_utf8_lossy(&output.stderr));
    }
    let report = place.report("few");
    let lost = report["totals"]["lost"]["total"].as_f64().expect("a number");
    let taken: f64 = report["sources"][0]["details"]["samples"].as_str().unwrap().parse().unwrap();
    assert!(lost > 0.0 && lost == report["sources"][0]["lost"]["no room"].as_f64().unwrap());
    // Records about mappings can be among the lost ones.
    assert!(((lost + taken) / 3200.0 - 1.0).abs() < 0.2, "{lost} {taken}");
    let info = String::from_utf8(place.lat(&["info", "few"]).stdout).expect("UTF-8");
    assert!(info.contains("lost"), "{info}");
}

#[test]
fn what_a_killed_recorder_wrote_can_be_read() {
    if !is_there("gcc") {
        return;
    }
    let place = Place::new();
    built(&place, PROGRAM, "program", &WITH_FRAMES);
    let mut record = Command::new(env!("CARGO_BIN_EXE_lat"));
    record.args([
        "record",
        "--quiet",
        "--sample",
        "999",
        "--flush-every",
        "100ms",
        "-o",
        "cut",
        "--",
    ]);
    record.args(["./program", "2000"]).current_dir(&place.0).stdout(Stdio::null());
    let mut record =
        record.env("LATERALIS_DIR", place.0.join("areas")).spawn().expect("lat starts");
    std::thread::sleep(Duration::from_millis(1200));
    record.kill().expect("it can be killed");
    let status = record.wait().expect("it ends");
    if status.signal() != Some(9) {
        return println!("SKIPPED: nothing can be sampled here");
    }
    let found = place.lat(&["flow", "stacks", "cut", "--format", "folded"]);
    let text = String::from_utf8_lossy(&found.stdout);
    assert!(text.contains(";main;most_of_it;spin"), "{found:?}");
}

/// A program that runs `lat` without the right to sample.
const REFUSED: &str = r"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program)) return 99;
    execvp(words[1], words + 1);
    return 98;
}
";

#[test]
fn what_may_not_be_sampled_is_one_error_and_nothing_runs() {
    if !is_there("gcc") {
        return;
    }
    let place = Place::new();
    built(&place, REFUSED, "refused", &["-O1"]);
    for scope in [&["--", "echo", "ran"][..], &["--system", "--duration", "1s"]] {
        let words = [env!("CARGO_BIN_EXE_lat"), "record", "--sample", "99", "-o", "no"];
        let mut refused = Command::new("./refused");
        refused.args(words).args(scope).current_dir(&place.0);
        let output = refused.env("LATERALIS_DIR", place.0.join("areas")).output().expect("it runs");
        if output.status.code() == Some(99) {
            return println!("SKIPPED: system calls cannot be refused here");
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.starts_with("error: cannot sample call stacks: "), "{errors}");
        assert!(errors.contains("sudo lat record"), "{errors}");
        assert_eq!((errors.lines().count(), output.stdout.len()), (1, 0), "{errors}");
        assert!(!place.0.join("no").exists());
    }
}

#[test]
fn where_the_kernel_may_not_be_sampled_programs_are_and_lat_says_so() {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim() != "2" || !is_there("gcc") || !is_there("setpriv") {
        return println!(
            "SKIPPED: kernel.perf_event_paranoid is not 2: nobody is refused just that"
        );
    }
    let place = Place::new();
    built(&place, PROGRAM, "program", &WITH_FRAMES);
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&place.0, all).expect("mode 0777");
    let mut record = Command::new("setpriv");
    record.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]);
    record.args([env!("CARGO_BIN_EXE_lat"), "record", "--sample", "999", "-o", "own", "--"]);
    record.args(["./program", "500"]).current_dir(&place.0).env("HOME", &place.0);
    let output = record.env_remove("LATERALIS_DIR").output().expect("setpriv is there");
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return println!("SKIPPED: another user cannot run lat here: {errors}");
    }
    assert!(errors.contains("samples are of programs alone"), "{errors}");
    assert_eq!(place.report("own")["sources"][0]["details"]["kernel"], "left out");
    check(&truth(&output.stdout), &place.json(&["flow", "stacks", "own", "--json"]));
}

#[test]
fn rates_that_cannot_be_are_told_before_anything_runs() {
    let place = Place::new();
    for (words, reason) in [
        (&["--sample", "0", "--", "echo"][..], "at least 1"),
        (&["--sample", "4000000000", "--", "echo"], "samples a second"),
        (&["--sample", "99", "--mode", "overwrite", "--", "echo"], "--mode overwrite"),
        (&["--sample", "99", "--program", "x"], "say of whom"),
        (&["--sample-stack", "fp", "--", "echo"], "--sample"),
        (&["--stacks", "sched:sched_swich", "--", "echo"], "did you mean sched:sched_switch"),
    ] {
        let output = place.lat(&[&["record", "-o", "no"], words].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?} {errors}");
        assert!(errors.contains(reason) && !place.0.join("no").exists(), "{words:?} {errors}");
    }
}
