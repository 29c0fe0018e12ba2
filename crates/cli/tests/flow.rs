// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stacks of samples, compared with the output of perf for the same file.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use crate::kernel::usable;
use crate::place::Place;

/// Methods, templates, recursion, and code generated at run time, with a perf map whose path is printed.
const PROGRAM: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#define APART __attribute__((noinline))
static volatile unsigned long sink;
namespace shop {
struct Cart { APART unsigned long total(unsigned long n); };
unsigned long Cart::total(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) sink += i;
    return sink;
}
template <class T> APART T twice(T n) {
    Cart cart;
    T sum = cart.total(n) + cart.total(n);
    asm volatile("" ::: "memory");
    return sum;
}
}
APART unsigned long recursive(int depth) {
    unsigned long sum = depth ? recursive(depth - 1) : shop::twice(100000ul);
    asm volatile("" ::: "memory");
    return sum + 1;
}
int main() {
#ifdef __x86_64__
    // push rbp; mov rbp, rsp; mov rcx, 1000000; 1: dec rcx; jnz 1b; pop rbp; ret
    const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xc7, 0xc1, 0x40, 0x42, 0x0f, 0x00,
                                  0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    char *page = (char *)mmap(0, 4096, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(name, "w");
    fprintf(map, "%lx %zx made: square(int)\n", (unsigned long)page, sizeof code);
    fclose(map);
    puts(name);
#endif
    for (int i = 0; i < 400; i++) {
        recursive(3);
#ifdef __x86_64__
        ((void (*)())page)();
#endif
    }
}
"#;

/// Compiles the program without optimisation, so that each function has a frame, and records it with perf.
/// Returns the path of its perf map; `None` if perf cannot record.
fn recorded(place: &Place, how: &[&str]) -> Option<String> {
    recorded_of(place, &["-O0", "-g"], how)
}

fn recorded_of(place: &Place, options: &[&str], how: &[&str]) -> Option<String> {
    fs::write(place.0.join("program.cc"), PROGRAM).expect("a source");
    let mut build = Command::new("g++");
    build.args(options).args(["program.cc", "-o", "program"]).current_dir(&place.0);
    let built = build.status().expect("g++ is there");
    assert!(built.success());
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "999", "-o", "perf.data"]).args(how);
    let output = perf.args(["--", "./program"]).current_dir(&place.0).stderr(Stdio::null());
    let output = output.output().expect("perf is there");
    if !output.status.success() {
        println!("SKIPPED: perf takes no samples here");
        return None;
    }
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the weight of samples by path, from `perf script`.
pub fn by_perf(place: &Place) -> BTreeMap<String, u64> {
    let fields = "comm,tid,period,ip,sym";
    let mut perf = Command::new("perf");
    perf.args(["script", "-i", "perf.data", "--no-inline", "-F", fields]).current_dir(&place.0);
    let output = perf.stderr(Stdio::null()).output().expect("perf is there");
    let mut paths = BTreeMap::new();
    for sample in String::from_utf8_lossy(&output.stdout).split("\n\n") {
        let mut lines = sample.lines().filter(|line| !line.trim().is_empty());
        let Some(head) = lines.next() else { continue };
        let mut words = head.split_whitespace().rev();
        let period: u64 = words.next().and_then(|word| word.parse().ok()).expect("a period");
        let comm: Vec<&str> = words.skip(1).collect();
        let comm = comm.into_iter().rev().collect::<Vec<_>>().join(" ");
        let name = |line: &str| line.trim().split_once(' ').map_or("", |(_, name)| name).to_owned();
        let mut names: Vec<String> = lines.map(name).collect();
        // The call at the end of `_start` returns to the start of the next function, whose name perf prints.
        let callers = names.iter_mut().skip(1).filter(|name| *name == "_dl_start_user");
        callers.for_each(|name| *name = "_start".to_owned());
        names.push(comm);
        names.reverse();
        *paths.entry(names.join(";")).or_insert(0) += period;
    }
    paths
}

pub fn by_lat(place: &Place) -> BTreeMap<String, u64> {
    let folded = ["flow", "stacks", "perf.data", "--no-inline", "--format", "folded"];
    let output = place.lat(&folded);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let line = |line: &str| {
        let (path, weight) = line.rsplit_once(' ').expect("a weight");
        (path.to_owned(), weight.parse().expect("a number"))
    };
    text.lines().map(line).collect()
}

#[test]
fn stacks_are_those_of_perf_script() {
    if !usable(&["perf", "g++"]) {
        return;
    }
    let place = Place::new();
    let Some(map) = recorded(&place, &["-g"]) else { return };
    let (of_perf, of_lat) = (by_perf(&place), by_lat(&place));
    // Entries of the PLT are not compared; perf makes up names for them.
    let is_known = |path: &&String| !path.contains("@plt") && !path.contains("[unknown]");
    let known: Vec<&String> = of_perf.keys().filter(is_known).collect();
    assert!(known.len() * 2 > of_perf.len(), "{of_perf:#?}");
    for path in known {
        assert_eq!(of_lat.get(path), of_perf.get(path), "{path}: {of_lat:#?}");
    }
    let sum = |paths: &BTreeMap<String, u64>| paths.values().sum::<u64>();
    assert_eq!(sum(&of_lat), sum(&of_perf));
    // Functions named in every supported way are included.
    let has = |words: &str| of_lat.keys().any(|path| path.contains(words));
    assert!(has("recursive;recursive;recursive;recursive;shop::twice"), "{of_lat:#?}");
    assert!(has("shop::Cart::total"), "{of_lat:#?}");
    assert!(!cfg!(target_arch = "x86_64") || has("made: square(int)"), "{of_lat:#?}");
    // In JSON, a callee counts once in the weight of its caller.
    let stacks = place.json(&["flow", "stacks", "perf.data", "--json"]);
    let functions = stacks["functions"].as_array().expect("functions");
    let event = &stacks["events"][0];
    let of = |name: &str| {
        let is_it = |row: &&serde_json::Value| {
            functions[row["function"].as_u64().expect("an index") as usize]["name"] == name
        };
        event["functions"].as_array().expect("rows").iter().find(is_it).expect("a row").clone()
    };
    let expected = of_perf.iter().filter(|(path, _)| path.contains(";recursive")).map(|(_, w)| w);
    assert_eq!(of("recursive")["weight"], expected.sum::<u64>());
    // A file that has changed since the recording provides no names.
    fs::write(place.0.join("program.cc"), PROGRAM.replace("100000ul", "100001ul"))
        .expect("written");
    let build = ["-O1", "program.cc", "-o", "program"];
    Command::new("g++").args(build).current_dir(&place.0).status().expect("g++ is there");
    let text = place.lat(&["flow", "stacks", "perf.data"]).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("has another build id") && !text.contains("recursive"), "{text}");
    let _ = fs::remove_file(map);
}

#[test]
fn samples_without_a_chain_have_the_function_that_was_interrupted() {
    if !usable(&["perf", "g++"]) {
        return;
    }
    let place = Place::new();
    let Some(map) = recorded(&place, &[]) else { return };
    let paths = by_lat(&place);
    assert!(paths.contains_key("program;shop::Cart::total"), "{paths:#?}");
    assert!(paths.keys().all(|path| path.split(';').count() == 2), "{paths:#?}");
    let _ = fs::remove_file(map);
}

/// perf records registers and the top of the stack, which are unwound with the exception tables.
#[test]
fn stacks_out_of_the_memory_of_samples_are_those_of_perf_script() {
    if !usable(&["perf", "g++"]) || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    for optimised in [["-O0", "-g"], ["-O2", "-fomit-frame-pointer"]] {
        let place = Place::new();
        let Some(map) = recorded_of(&place, &optimised, &["--call-graph", "dwarf,16384"]) else {
            return;
        };
        let (of_perf, of_lat) = (by_perf(&place), by_lat(&place));
        let sum = |paths: &BTreeMap<String, u64>| paths.values().sum::<u64>();
        assert_eq!(sum(&of_lat), sum(&of_perf));
        // Generated code has no tables: perf stops there, while `lat` continues with the frame pointer.
        let is_known = |path: &&String| {
            !["@plt", "[unknown]", "made: "].iter().any(|word| path.contains(word))
        };
        let known: Vec<&String> = of_perf.keys().filter(is_known).collect();
        for path in &known {
            assert_eq!(of_lat.get(*path), of_perf.get(*path), "{path}: {of_lat:#?}");
        }
        let deep = "main;recursive;recursive;recursive;recursive;shop::twice";
        assert!(known.iter().any(|path| path.contains(deep)), "{of_perf:#?}");
        assert!(of_lat.keys().any(|path| path.contains("main;made: square(int)")), "{of_lat:#?}");
        let _ = fs::remove_file(map);
    }
}

/// Calls that are bound again each time, and a signal handler: the caller of the former is found through
/// `rbx`, that of the latter through registers that the kernel stored on the stack.
const LATE: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
static volatile unsigned long sink;
static void handler(int signal) {
    for (int i = 0; i < 200000; i++) sink += i + signal;
}
__attribute__((noinline)) int caller(int n) {
    int sum = atoi("17") + n;
    sink += sum;
    return sum;
}
int main() {
    signal(SIGPROF, handler);
    struct itimerval each = {{0, 4000}, {0, 4000}};
    setitimer(ITIMER_PROF, &each, 0);
    int sum = 0;
    for (int i = 0; i < 4000000; i++) sum += caller(i);
    return sum == 1;
}
"#;

#[test]
fn stacks_go_on_behind_the_dynamic_linker_and_handlers_of_signals() {
    if !usable(&["perf", "gcc"]) || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let place = Place::new();
    fs::write(place.0.join("late.c"), LATE).expect("a source");
    let build = ["-O1", "-fno-builtin", "-Wl,-z,lazy", "late.c", "-o", "late"];
    let built = Command::new("gcc").args(build).current_dir(&place.0).status();
    assert!(built.expect("gcc is there").success());
    let record = ["record", "-q", "-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf,16384"];
    let mut perf = Command::new("perf");
    perf.args(record).args(["-o", "perf.data", "--", "./late"]).env("LD_BIND_NOT", "1");
    if !perf.current_dir(&place.0).status().expect("perf is there").success() {
        println!("SKIPPED: perf takes no samples here");
        return;
    }
    let (of_perf, of_lat) = (by_perf(&place), by_lat(&place));
    // The first entry of the PLT has no symbol. perf uses the previous symbol, which nothing calls here.
    let is_in_plt = |path: &str| path.contains("@plt") || path.contains("main;caller;_init");
    // While a handler returns, the kernel replaces the registers, and a sample contains some of both sets.
    let is_half = |path: &str| path.contains("rt_sigreturn");
    let is_known =
        |path: &&String| !is_in_plt(path) && !is_half(path) && !path.contains("[unknown]");
    for path in of_perf.keys().filter(is_known) {
        assert_eq!(of_lat.get(path), of_perf.get(path), "{path}: {of_lat:#?}");
    }
    if !of_perf.keys().any(|path| path.contains("_dl_runtime_resolve")) {
        println!("SKIPPED: no names of the dynamic linker's functions here");
        return;
    }
    let has = |words: &str| of_lat.keys().any(|path| path.contains(words));
    assert!(has("main;caller;_dl_runtime_resolve"), "{of_lat:#?}");
    assert!(has("__restore_rt;handler"), "{of_lat:#?}");
}

#[test]
fn a_trace_without_samples_says_so() {
    let place = Place::new();
    fs::write(place.0.join("t.json"), r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#)
        .expect("a trace");
    let output = place.lat(&["flow", "stacks", "t.json"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("no samples"));
    let wrong = place.lat(&["flow", "stacks", "t.json", "--at-least", "x"]);
    assert_eq!(wrong.status.code(), Some(2));
}
