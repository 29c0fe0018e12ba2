// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stacks of samples of programs with known call paths: C++, inlined functions, code generated at run time.
//! Compared with `perf report` of the same samples, `addr2line` of the same addresses; also `lat diff` of two
//! recordings.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::place::Place;
use crate::samples::{built, is_there, recorded};

const CPP: &str = r#"
#include <cstdio>
#include <ctime>
static unsigned long long cpu_ns() {
    timespec now; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
static volatile unsigned long sink;
#define APART __attribute__((noinline))
#define SPIN for (unsigned long i = 0; i < n; i++) sink += i; __asm__ volatile("" ::: "memory")
namespace shop {
struct Item { virtual void sell(unsigned long n) = 0; virtual ~Item() = default; };
template <typename T> struct Box : Item { T of; APART void sell(unsigned long n) override { SPIN; } };
struct Cart { static inline __attribute__((always_inline)) void add(unsigned long n) { SPIN; } };
APART void fill(unsigned long n) { Cart::add(n); __asm__ volatile("" ::: "memory"); }
}
int main() {
    shop::Box<int> one; shop::Box<double> two; shop::Item *all[2] = {&one, &two};
    unsigned long long of[3] = {}, begin = cpu_ns(), now = begin, next;
    for (unsigned long turn = 0; now - begin < 700000000ull; turn++) {
        unsigned long n = 100000 + turn * 7919 % 200000;
        all[0]->sell(3 * n); next = cpu_ns(); of[0] += next - now; now = next;
        all[1]->sell(n); next = cpu_ns(); of[1] += next - now; now = next;
        shop::fill(2 * n); next = cpu_ns(); of[2] += next - now; now = next;
    }
    std::printf("shop::Box<int>::sell %llu\nshop::Box<double>::sell %llu\nshop::Cart::add %llu\n",
                of[0], of[1], of[2]);
}
"#;

/// Two countdown functions generated at run time: `dec rdi; jnz; ret` [SDM volume 2], one page apart.
const JIT: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static unsigned long long cpu_ns(void) {
    struct timespec now; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
int main(void) {
    static const unsigned char code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
    unsigned char *at = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(at, code, sizeof code); memcpy(at + 4096, code, sizeof code);
    char name[64]; snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(name, "w");
    fprintf(map, "%lx %lx made_hot\n%lx %lx made_cold\n", (long)at, 6L, (long)at + 4096, 6L);
    fclose(map);
    void (*hot)(unsigned long) = (void *)at, (*cold)(unsigned long) = (void *)(at + 4096);
    unsigned long long of[2] = {0, 0}, begin = cpu_ns(), now = begin, next;
    for (unsigned long turn = 0; now - begin < 500000000ull; turn++) {
        unsigned long n = 300000 + turn * 7919 % 300000;
        hot(3 * n); next = cpu_ns(); of[0] += next - now; now = next;
        cold(n); next = cpu_ns(); of[1] += next - now; now = next;
    }
    printf("made_hot %llu\nmade_cold %llu\nmap %d\n", of[0], of[1], getpid());
}
"#;

/// Three functions in the format of a just-in-time compiler's dump; the first and the last have the same
/// address, one after the other: `push rbp; mov rbp, rsp; dec rdi; jnz; pop rbp; ret` [SDM volume 2].
const JITDUMP: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
static FILE *dump;
static uint64_t now(clockid_t clock) {
    struct timespec now; clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
static void load(char *at, const char *name, uint64_t number) {
    uint64_t time = now(CLOCK_MONOTONIC), address = (uint64_t)at;
    struct { uint32_t kind, bytes; uint64_t time, address, count, at; uint32_t line, more; char name[8]; }
        lines = {2, sizeof lines, time, address, 1, address, 10 + number, 0, "made.js"};
    struct { uint32_t kind, bytes; uint64_t time; uint32_t pid, tid; uint64_t mapped, address, size, number; }
        load = {0, sizeof load + strlen(name) + 1 + sizeof code, time, getpid(), getpid(), address, address,
                sizeof code, number};
    memcpy(at, code, sizeof code);
    fwrite(&lines, sizeof lines, 1, dump); fwrite(&load, sizeof load, 1, dump);
    fwrite(name, strlen(name) + 1, 1, dump); fwrite(code, sizeof code, 1, dump); fflush(dump);
}
static void spin(char *at, const char *name, uint64_t most) {
    uint64_t begin = now(CLOCK_PROCESS_CPUTIME_ID), end = begin;
    while ((end = now(CLOCK_PROCESS_CPUTIME_ID)) - begin < most) ((void (*)(unsigned long))at)(1000000);
    printf("%s %llu\n", name, (unsigned long long)(end - begin));
}
int main(void) {
    char name[64]; snprintf(name, sizeof name, "jit-%d.dump", getpid());
    dump = fopen(name, "w+");
    struct { uint32_t magic, version, bytes, machine, pad, pid; uint64_t time, flags; }
        head = {0x4a695444, 1, sizeof head, 62, 0, getpid(), now(CLOCK_MONOTONIC), 0};
    fwrite(&head, sizeof head, 1, dump); fflush(dump);
    void *marker = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
    char *at = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (marker == MAP_FAILED || at == MAP_FAILED) return 3;
    load(at, "made_first", 0); load(at + 4096, "made_other", 1);
    spin(at, "made_first", 150000000); spin(at + 4096, "made_other", 100000000);
    load(at, "made_second", 2); spin(at, "made_second", 300000000);
}
"#;

/// Parses the output of a program: a name and a number in each line.
fn said(output: &[u8]) -> BTreeMap<String, u64> {
    let text = String::from_utf8_lossy(output).into_owned();
    let line = |line: &str| {
        let (name, number) = line.rsplit_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Counts samples by the function in which they were taken.
fn alone(stacks: &Value) -> BTreeMap<String, u64> {
    let functions = stacks["functions"].as_array().expect("functions");
    let mut found = BTreeMap::new();
    for path in stacks["events"][0]["paths"].as_array().expect("paths") {
        let name = &functions[path["function"].as_u64().expect("a number") as usize]["name"];
        let samples = path["self_samples"].as_u64().expect("samples");
        *found.entry(name.as_str().expect("a name").to_owned()).or_default() += samples;
    }
    found.retain(|_, samples| *samples > 0);
    found
}

/// Compares the shares with those measured by the program, within five standard deviations for this number of
/// samples.
fn check(truth: &BTreeMap<String, u64>, found: &BTreeMap<String, u64>) {
    let of = |name: &String| found.get(name).copied().unwrap_or(0);
    let (all, samples): (u64, u64) = (truth.values().sum(), truth.keys().map(of).sum());
    assert!(samples > 60, "{samples} samples in them: {found:?}");
    for (name, time) in truth {
        let expected = *time as f64 / all as f64;
        let share = of(name) as f64 / samples as f64;
        let chance = (expected * (1.0 - expected) / samples as f64).sqrt();
        assert!(
            (share - expected).abs() < 5.0 * chance + 0.01,
            "{name}: {share} of the samples, {expected} of the time"
        );
    }
}

/// Counts samples by function, from `perf report`.
fn by_perf(place: &Place, file: &str) -> BTreeMap<String, u64> {
    let mut perf = Command::new("perf");
    perf.args(["report", "-i", file, "--stdio", "--no-children", "-g", "none", "--no-inline"]);
    perf.args(["-F", "sample,sym", "-t", "|"]);
    let output = perf.current_dir(&place.0).stderr(Stdio::null()).output().expect("perf");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut found = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((samples, name)) = line.split_once('|') else { continue };
        let Ok(samples) = samples.trim().parse::<u64>() else { continue };
        // `[.] NAME(PARAMETERS)`.
        let name = name.trim().trim_start_matches("[.]").trim_start_matches("[k]").trim();
        let name = name.split('(').next().unwrap_or(name).to_owned();
        *found.entry(name).or_default() += samples;
    }
    found
}

/// Compares the same samples in both tools, if perf can sample here.
fn equal_to_perf(place: &Place, program: &str, names: &[&str]) {
    if !is_there("perf") {
        return;
    }
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-k", "mono"]);
    perf.args(["-o", "p.data", program]);
    let output = perf.current_dir(&place.0).output().expect("perf");
    if !output.status.success() {
        println!("SKIPPED: perf record: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    // perf writes files for code generated at run time, and a second recording that maps them.
    let mut perf = Command::new("perf");
    perf.args(["inject", "--jit", "-i", "p.data", "-o", "injected.data"]).current_dir(&place.0);
    let output_of_inject = perf.output().expect("perf");
    assert!(output_of_inject.status.success(), "{output_of_inject:?}");
    let theirs = by_perf(place, "injected.data");
    let stacks = place.json(&["flow", "stacks", "p.data", "--no-inline", "--json"]);
    let ours = alone(&stacks);
    for name in names {
        let (ours, theirs) = (ours.get(*name), theirs.get(*name));
        assert!(ours.is_some_and(|samples| *samples > 10), "{name}: {ours:?}");
        assert_eq!(ours, theirs, "{name}");
    }
    if let Some(map) = said(&output.stdout).get("map") {
        let _ = fs::remove_file(format!("/tmp/perf-{map}.map"));
    }
}

#[test]
fn functions_of_cpp_and_inlined_ones_have_their_shares_and_names() {
    let place = Place::new();
    if !is_there("g++") {
        return;
    }
    fs::write(place.0.join("p.cpp"), CPP).expect("a source");
    let mut build = Command::new("g++");
    build.args(["-O1", "-g", "-fno-omit-frame-pointer", "p.cpp", "-o", "p"]).current_dir(&place.0);
    assert!(build.status().expect("g++ is there").success());
    let Some(output) = recorded(&place, &["-o", "r", "--", "./p"]) else { return };
    let stacks = place.json(&["flow", "stacks", "r", "--json"]);
    check(&said(&output.stdout), &alone(&stacks));
    // With --no-inline, inlined functions count as part of the containing function.
    let whole = alone(&place.json(&["flow", "stacks", "r", "--json", "--no-inline"]));
    assert!(
        whole.contains_key("shop::fill") && !whole.contains_key("shop::Cart::add"),
        "{whole:?}"
    );
    equal_to_perf(
        &place,
        "./p",
        &["shop::Box<int>::sell", "shop::Box<double>::sell", "shop::fill"],
    );
}

#[test]
fn code_that_was_made_while_the_program_ran_has_its_names() {
    let place = Place::new();
    if !is_there("gcc") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    built(&place, JIT, "jit", &["-O1", "-g", "-fno-omit-frame-pointer"]);
    let Some(output) = recorded(&place, &["-o", "r", "--", "./jit"]) else { return };
    let mut truth = said(&output.stdout);
    let map = truth.remove("map").expect("its number");
    let found = alone(&place.json(&["flow", "stacks", "r", "--json"]));
    let _ = fs::remove_file(format!("/tmp/perf-{map}.map"));
    check(&truth, &found);
    equal_to_perf(&place, "./jit", &["made_hot", "made_cold"]);
}

#[test]
fn lines_and_inlined_functions_are_those_of_addr2line() {
    let place = Place::new();
    if !is_there("gcc") || !is_there("addr2line") {
        return;
    }
    let program = "static volatile int s;\n\
        #define INLINED static inline __attribute__((always_inline))\n\
        INLINED void deep(int n) {\n  for (int i = 0; i < n; i++)\n    s += i;\n}\n\
        INLINED void outer(int n) {\n  deep(n);\n}\n\
        __attribute__((noinline)) void holds(int n) {\n  outer(n);\n}\n\
        int main(void) { for (int i = 0; i < 300; i++) holds(1000000); }\n";
    built(&place, program, "p", &["-O1", "-g", "-no-pie", "-fno-omit-frame-pointer"]);
    if recorded(&place, &["-o", "r", "--", "./p"]).is_none() {
        return;
    }
    // Function and line of each frame by sample, outermost first.
    let output = place.lat(&["table", "r", "--name", "stack_frames"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut rows = text.lines().map(|row| row.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = rows.next().expect("names of columns");
    let column = |name: &str| head.iter().position(|of| of == name).expect("a column");
    let (sample, function, number) = (column("sample"), column("function"), column("line"));
    let mut stacks: BTreeMap<u64, Vec<(String, String)>> = BTreeMap::new();
    for row in rows {
        let frame = (row[function].clone(), row[number].clone());
        stacks.entry(row[sample].parse().expect("a number")).or_default().push(frame);
    }
    // The interrupted frames by addr2line, innermost first.
    let printed = place.lat(&["print", "--format", "json", "r", "--event", "perf:cpu_clock"]);
    let mut compared = 0;
    for (nth, line) in String::from_utf8_lossy(&printed.stdout).lines().enumerate() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let ip = format!("{:#x}", event["fields"]["ip"].as_u64().expect("an address"));
        let mut tool = Command::new("addr2line");
        tool.args(["-f", "-i", "-e", "p", &ip]).current_dir(&place.0);
        let output = tool.output().expect("addr2line");
        let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = theirs.lines().collect();
        if lines.first().is_none_or(|name| *name == "??") {
            continue;
        }
        let expected: Vec<(String, String)> = lines
            .chunks(2)
            .map(|of| {
                let number = of[1].rsplit(':').next().unwrap_or("");
                // The suffix ` (discriminator 3)` is removed.
                (of[0].to_owned(), number.split(' ').next().unwrap_or("").to_owned())
            })
            .collect();
        let stack = &stacks[&(nth as u64)];
        let found: Vec<(String, String)> =
            stack.iter().rev().take(expected.len()).cloned().collect();
        assert_eq!(found, expected, "sample {nth} at {ip}");
        compared += u64::from(expected.len() == 3);
    }
    assert!(compared > 10, "{compared} samples in what was inlined twice");
}

#[test]
fn a_function_that_became_slower_is_ranked_first_and_the_same_twice_is_no_difference() {
    let place = Place::new();
    if !is_there("gcc") {
        return;
    }
    let program = "static volatile unsigned long s;\n\
        #define APART __attribute__((noinline))\n\
        #define SPIN for (unsigned long i = 0; i < n; i++) s += i; __asm__ volatile(\"\" ::: \"memory\")\n\
        APART void steady(unsigned long n) { SPIN; }\n\
        APART void grows(unsigned long n) { SPIN; }\n\
        int main(void) {\n\
        unsigned long r = 1;\n\
        for (int i = 0; i < 600; i++) {\n\
        r = r * 6364136223846793005 + 1442695040888963407;\n\
        unsigned long part = 50000 + (r >> 33) % 100000;\n\
        steady(9 * part); grows(GROWS * part); } }\n";
    // Rounds of different lengths, because equal ones could be synchronous with the samples.
    for (name, grows) in [("before", "3"), ("after", "12")] {
        let define = format!("-DGROWS={grows}");
        built(&place, program, name, &["-O1", "-g", "-fno-omit-frame-pointer", &define]);
    }
    for (recording, program) in [("a", "./before"), ("b", "./before"), ("c", "./after")] {
        if recorded(&place, &["-o", recording, "--", program]).is_none() {
            return;
        }
    }
    let compared = |words: &[&str]| {
        let output = place.lat(&[&["diff", "--json"], words].concat());
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (output.status.code(), json)
    };
    // Shares instead of times: on a shared machine one recording may run twice as fast as the next. The share
    // of the unchanged function decreases, so it is not worse.
    let (status, json) = compared(&["a", "c", "--shares", "--only-worse"]);
    assert_eq!(status, Some(1), "{json}");
    let first = &json["functions"]["differences"][0];
    assert_eq!(first["function"], "grows", "{json}");
    let samples = |side: &str| first[format!("{side}_samples")].as_f64().expect("a number");
    // Four times the rounds. The duration of a round depends on the alignment of the loop: on some CPUs one
    // is twice as fast as the other, and the share grows by a factor of 1.8 to 2.8.
    let times = samples("after") / samples("before");
    assert!((1.5..4.5).contains(&times), "{times}: {json}");
    let text = place.lat(&["diff", "a", "c", "--shares"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("grows"));
    let (_, json) = compared(&["a", "b", "--shares"]);
    assert_eq!(json["functions"]["differences"], serde_json::json!([]), "{json}");
}

/// Uses only sample counts, generated here without a clock.
#[test]
fn a_function_with_four_times_the_samples_is_a_difference_and_the_other_is_none() {
    let place = Place::new();
    for (name, grows) in [("before.json", 100), ("after.json", 400)] {
        let samples: Vec<Value> = (0..300 + grows)
            .map(|nth| {
                // Spread evenly among those of the other function.
                let is_grown = (nth + 1) * grows / (300 + grows) > nth * grows / (300 + grows);
                let frame = if is_grown { "3" } else { "2" };
                let ts = 1000 * (nth + 1);
                serde_json::json!({"tid": 8, "ts": ts, "name": "cycles:HG", "sf": frame, "weight": 1})
            })
            .collect();
        let trace = serde_json::json!({
            "traceEvents": [
                {"ph": "X", "name": "run", "ts": 1, "dur": 1000 * (300 + grows), "pid": 7, "tid": 8}],
            "samples": samples,
            "stackFrames": {"1": {"name": "main"}, "2": {"name": "steady", "parent": "1"},
                "3": {"name": "grows", "parent": "1"}}});
        fs::write(place.0.join(name), trace.to_string()).expect("a file");
    }
    let output = place.lat(&["diff", "--json", "before.json", "after.json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let differences = json["functions"]["differences"].as_array().expect("a list");
    assert_eq!(differences.len(), 1, "{json}");
    assert_eq!(differences[0]["function"], "grows");
    assert_eq!(differences[0]["before_samples"], 100.0);
    assert_eq!(differences[0]["after_samples"], 400.0);
}

/// Recordings of profilers that contain function names: the example of "Trace Event Format", with weights.
#[test]
fn samples_that_name_their_functions_need_no_files() {
    let place = Place::new();
    let text = r#"{"traceEvents":[{"ph":"X","name":"run","ts":1,"dur":9,"pid":7,"tid":8},
            {"ph":"M","name":"process_name","pid":7,"args":{"name":"shop"}}],
        "samples":[
            {"tid":8,"ts":1000,"name":"cycles:HG","sf":3,"weight":5},
            {"tid":8,"ts":2000,"name":"cycles:HG","sf":"2","weight":1},
            {"tid":8,"ts":2500,"name":"cycles:HG","sf":"2","weight":2}],
        "stackFrames":{"1":{"category":"libc.so","name":"main"},
            "2":{"category":"prog","name":"work","parent":1},
            "3":{"category":"prog","name":"leaf","parent":"2"}}}"#;
    fs::write(place.0.join("t.json"), text).expect("a file");
    let output = place.lat(&["flow", "stacks", "t.json", "--format", "folded"]);
    assert!(output.status.success(), "{output:?}");
    let mut lines: Vec<&str> = std::str::from_utf8(&output.stdout).expect("text").lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["shop;main;work 3", "shop;main;work;leaf 5"]);
}

#[test]
fn an_address_is_the_function_that_was_there_at_the_time_of_the_sample() {
    let place = Place::new();
    if !is_there("gcc") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    built(&place, JITDUMP, "jitdump", &["-O1", "-g", "-fno-omit-frame-pointer"]);
    let Some(output) = recorded(&place, &["-o", "r", "--", "./jitdump"]) else { return };
    let found = alone(&place.json(&["flow", "stacks", "r", "--json"]));
    check(&said(&output.stdout), &found);
    equal_to_perf(&place, "./jitdump", &["made_first", "made_other", "made_second"]);
    let rows = crate::foreign::table(&place, "r", "stack_frames");
    for (name, line) in [("made_first", "10"), ("made_other", "11"), ("made_second", "12")] {
        let mut of = rows.iter().filter(|row| row["function"] == name);
        assert!(of.clone().count() as u64 >= found[name], "{name}");
        assert!(of.all(|row| row["file"] == "made.js" && row["line"] == line), "{name}");
    }
}
