// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs in a simulated machine, analysed by `lat flow`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::place::Place;
use lateralis_simulator::linux::{Job, Kernel, Machine, Qemu, Report};
use lateralis_simulator::packets::Packets;

/// Only one machine at a time: each has half a gigabyte of memory.
static ONE: Mutex<()> = Mutex::new(());

fn usable() -> bool {
    if let Err(error) = Qemu::find() {
        println!("SKIPPED: {error}");
        return false;
    }
    if let Err(error) = Kernel::of_distribution(&mut |_| ()) {
        println!("SKIPPED: {error}");
        return false;
    }
    true
}

/// Uses the user's cache, which contains the kernel.
fn record(place: &Place, words: &[&str]) -> Command {
    let mut lat = Command::new(env!("CARGO_BIN_EXE_lat"));
    lat.args(["record", "--sim"]).args(words).current_dir(&place.0).stdin(Stdio::null());
    lat
}

fn run(place: &Place, words: &[&str]) -> Output {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    record(place, words).output().expect("lat can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn compile(place: &Place, name: &str, source: &str) {
    fs::write(place.0.join("source.c"), source).expect("a file");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-pthread", "-o", name, "source.c"]).current_dir(&place.0);
    assert!(gcc.status().expect("gcc is there").success());
}

#[test]
fn functions_of_a_program_have_the_instructions_that_they_executed() {
    if !usable() {
        return;
    }
    let place = Place::new();
    let source = r#"
        #include <stdio.h>
        __attribute__((noinline)) long work(long n) { long s = 0; while (n--) s += n ^ s; return s; }
        int main(int count, char **words) {
            for (int i = 0; i < 5; i++) fprintf(stderr, "%d", work(1000 + i) == 0);
            puts(words[1]);
            return 9;
        }"#;
    compile(&place, "program", source);
    let output = run(&place, &["-o", "r", "--", "./program", "an argument"]);
    assert_eq!(output.status.code(), Some(9), "{output:?}");
    assert_eq!(text(&output.stdout), "an argument\n");
    let told = text(&output.stderr);
    assert!(told.starts_with("00000") && told.contains("lat flow stacks r/perf.data"), "{told}");
    let stacks = place.json(&["flow", "function", "work", "r/perf.data", "--json"]);
    let json = stacks.to_string();
    assert!(json.contains("\"calls\":5"), "{json}");
    let dump = place.lat(&["flow", "dump", "r/perf.data"]);
    assert!(dump.status.success(), "{}", text(&dump.stderr));
    let lines = text(&dump.stdout).lines().filter(|line| line.starts_with("0x")).count();
    let count = told.split_once("recorded  ").and_then(|(_, rest)| rest.split_once(" instr"));
    let count = count.expect("a count").0.replace(' ', "");
    assert_eq!(lines.to_string(), count);
    // The recording is moved, and the program removed.
    fs::remove_file(place.0.join("program")).expect("it was there");
    fs::rename(place.0.join("r"), place.0.join("moved")).expect("renamed");
    let again = place.lat(&["flow", "dump", "moved/perf.data"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(again.stdout == dump.stdout, "{}", text(&again.stdout));
}

#[test]
fn programs_of_programs_and_scripts_are_all_there() {
    if !usable() {
        return;
    }
    let place = Place::new();
    fs::write(place.0.join("script"), "#!/bin/sh\ncat \"$1\" | wc -c\nkill -9 $$\n")
        .expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(place.0.join("script"), mode).expect("rights");
    fs::write(place.0.join("input"), "12345").expect("a file");
    let files = ["/usr/bin/cat", "/usr/bin/wc", "input"];
    let files = files.iter().flat_map(|file| ["--sim-file", file]);
    let words: Vec<&str> = files.chain(["--json", "-o", "r", "--", "./script", "input"]).collect();
    let output = run(&place, &words);
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
    let printed = text(&output.stdout);
    let (count, json) = printed.split_once('\n').expect("two lines");
    assert_eq!(count.trim(), "5");
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(json["threads"].as_array().map(Vec::len), Some(3), "{json}");
    let stacks = place.json(&["flow", "stacks", "r/perf.data", "--json"]);
    let names = stacks.to_string();
    assert!(names.contains("/wc\"") && names.contains("/cat\"") && names.contains("/dash\""));
    // Includes instructions that a process executed before its exec.
    let dump = place.lat(&["flow", "dump", "--show", "events", "r/perf.data"]);
    assert!(dump.status.success(), "{}", text(&dump.stderr));
}

/// Two programs and their children alternate on two CPUs, with a buffer for each CPU. Returns the report,
/// with the plugin's list.
fn recorded_by_processor(place: &Place, kernel: bool) -> Report {
    let script = "#!/bin/sh\n(i=0; while [ $i -lt 8 ]; do cat script; i=$((i+1)); done) | wc -c &\n\
                  md5sum script | tr -d a &\nwait\n";
    fs::write(place.0.join("script"), script).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(place.0.join("script"), mode).expect("rights");
    let script = place.0.join("script");
    let programs =
        ["/usr/bin/cat", "/usr/bin/wc", "/usr/bin/md5sum", "/usr/bin/tr", "/usr/bin/dash"];
    let job = Job {
        command: vec![script.clone().into()],
        files: programs.iter().map(Into::into).chain([script]).collect(),
        cpus: 2,
        kernel,
        packets: Packets::default(),
        per_cpu: true,
        append: Vec::new(),
        output: place.0.join("r"),
        truth: true,
    };
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = Machine::prepare(job, &mut |_| ()).expect("all that is needed is there");
    let report = machine.run(&mut |_| Ok(())).expect("it runs");
    // With the kernel, the page tables change during an exec.
    assert!(kernel || report.odd.is_nothing(), "{:?}", report.odd);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    report
}

/// Returns the addresses of a program's own instructions by thread, as listed by the plugin
/// (`crates/simulator/c/protocol.h`).
fn truth(report: &Report) -> BTreeMap<u32, Vec<u64>> {
    const THREAD: u64 = 0x7ffe;
    const UNDONE: u64 = 0x7ffd;
    let mut all: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    // An instruction that did not retire may belong to the kernel.
    let mut tid = 0;
    for word in report.truth.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)) {
        match word >> 48 {
            THREAD => tid = word as u32,
            UNDONE => drop(all.entry(tid).or_default().pop()),
            _ => all.entry(tid).or_default().push(word),
        }
    }
    all.values_mut().for_each(|of| of.retain(|address| address >> 63 == 0));
    all
}

/// Returns the same from the table, and its gaps by cause.
fn by_table(place: &Place, report: &Report) -> (BTreeMap<u32, Vec<u64>>, Vec<String>) {
    let mut options = Vec::new();
    for (address, path) in &report.kernel_code {
        options.extend(["--raw".to_owned(), format!("{}:{address:#x}", path.display())]);
    }
    let rows = |table: &str, columns: &[&str]| {
        let mut words = vec!["table", "r/perf.data", "--name", table];
        columns.iter().for_each(|column| words.extend(["--column", column]));
        words.extend(options.iter().map(String::as_str));
        let output = place.lat(&words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut all: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for row in rows("flow_instructions", &["tid", "address"]) {
        let (tid, address) = row.split_once(',').expect("two columns");
        let address: i64 = address.parse().expect("an address");
        if address >= 0 {
            let tid = tid.parse().expect("a known thread");
            all.entry(tid).or_default().push(address.cast_unsigned());
        }
    }
    (all, rows("flow_gaps", &["cause"]))
}

#[test]
fn threads_that_take_turns_on_processors_have_their_own_instructions() {
    if !usable() {
        return;
    }
    for kernel in [false, true] {
        let place = Place::new();
        let report = recorded_by_processor(&place, kernel);
        let truth = truth(&report);
        assert!(truth.len() > 8, "{:?}", truth.keys());
        let (found, gaps) = by_table(&place, &report);
        assert_eq!(truth.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
        for (tid, expected) in &truth {
            let first = expected.iter().zip(&found[tid]).position(|(one, other)| one != other);
            assert_eq!((found[tid].len(), first), (expected.len(), None), "thread {tid}");
        }
        // Between threads that only the time distinguishes, kernel code may belong to either.
        let is_known = |cause: &String| kernel && cause == "which thread ran is not known";
        assert!(gaps.iter().all(is_known), "{gaps:?}");
        // A copy contains the packets, and the code beside them.
        let converted = place.lat(&["convert", "r/perf.data", "-o", "copy.ctf"]);
        assert!(converted.status.success(), "{}", text(&converted.stderr));
        fs::create_dir(place.0.join("empty")).expect("a folder");
        let rows = |of: &str, more: &[&str]| {
            // Function names may come from debug files of this machine.
            let columns = ["ts", "cpu", "tid", "address", "instructions", "ends"];
            let columns = columns.iter().flat_map(|column| ["--column", column]);
            let words = ["table", of, "--name", "flow_blocks"].into_iter().chain(columns);
            let words: Vec<&str> = words.chain(more.iter().copied()).collect();
            let output = place.lat(&words);
            assert!(output.status.success(), "{}", text(&output.stderr));
            text(&output.stdout)
        };
        if !kernel {
            let original = rows("r/perf.data", &[]);
            assert!(original.lines().count() > 1000);
            assert!(rows("copy.ctf", &["--symfs", "empty"]) == original, "the copy differs");
            let path = place.0.join("r");
            let mut perf = Command::new("perf");
            perf.args(["script", "--itrace=i0ns", "-F", "tid,ip", "-i", "perf.data"]);
            match perf.current_dir(&path).output() {
                Ok(output) if !output.stdout.is_empty() => {
                    let mut theirs: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
                    for line in text(&output.stdout).lines() {
                        let mut words = line.split_whitespace();
                        let (Some(tid), Some(ip)) = (words.next(), words.next()) else { continue };
                        let ip = u64::from_str_radix(ip, 16).expect("an address");
                        theirs.entry(tid.parse().expect("a thread")).or_default().push(ip);
                    }
                    assert!(theirs == truth, "perf divides them otherwise");
                }
                _ => println!("SKIPPED: perf is not there, or decodes no Intel PT"),
            }
        }
    }
}

#[test]
fn system_calls_execute_the_same_instructions_each_time() {
    if !usable() {
        return;
    }
    let place = Place::new();
    let source = r#"
        #include <unistd.h>
        #include <sys/syscall.h>
        int main(void) { for (int i = 0; i < 20; i++) syscall(SYS_getppid); return 0; }"#;
    compile(&place, "calls", source);
    let output = run(&place, &["--sim-kernel", "-o", "r", "--json", "--", "./calls"]);
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut words = vec!["flow", "syscalls", "r/perf.data", "--json", "--kallsyms", "r/kallsyms"];
    let raw: Vec<String> = json["kernel_code"]
        .as_array()
        .expect("code of the kernel")
        .iter()
        .map(|piece| {
            let of = |name: &str| piece[name].as_str().expect("a text").to_owned();
            format!("{}:{}", of("file"), of("address"))
        })
        .collect();
    raw.iter().for_each(|raw| words.extend(["--raw", raw]));
    let calls = place.json(&words);
    let getppid = &calls["instructions"]["getppid"];
    assert_eq!(getppid["count"], 20, "{calls}");
    let sorted = getppid["sorted"].as_array().expect("instructions of each");
    // Without an interrupt between, they execute the same instructions.
    let of_median = sorted.iter().filter(|count| **count == getppid["p50"]).count();
    assert!(of_median >= 15, "{getppid}");
}

/// Starts an endless program, and waits until it prints.
fn endless(place: &Place) -> std::process::Child {
    let mut lat = record(place, &["-o", "r", "--", "sh", "-c", "echo begun; while :; do :; done"]);
    let mut lat = lat.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("lat");
    let mut line = [0; 6];
    let stdout = lat.stdout.as_mut().expect("a pipe");
    std::io::Read::read_exact(stdout, &mut line).expect("the program prints");
    assert_eq!(&line, b"begun\n");
    // The program executes for two more seconds.
    thread::sleep(Duration::from_secs(2));
    lat
}

/// Returns the children of a process.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(status.expect("kill is there").success());
}

#[test]
fn what_came_until_it_was_ended_is_kept() {
    if !usable() {
        return;
    }
    for kills_qemu in [false, true] {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Place::new();
        let lat = endless(&place);
        let begin = Instant::now();
        match kills_qemu {
            true => children(lat.id()).iter().for_each(|pid| signal(*pid, "-KILL")),
            false => signal(lat.id(), "-INT"),
        }
        let output = lat.wait_with_output().expect("it ends");
        assert!(begin.elapsed() < Duration::from_secs(60));
        let code = if kills_qemu { 1 } else { 128 + 2 };
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let told = text(&output.stderr);
        assert_eq!(told.contains("the machine ended before the program did"), kills_qemu, "{told}");
        let stacks = place.lat(&["flow", "stacks", "r/perf.data"]);
        let page = text(&stacks.stdout);
        assert!(stacks.status.success() && page.contains("dash"), "{stacks:?}");
    }
}

#[test]
fn what_cannot_run_is_refused_before_a_machine_is_started() {
    let place = Place::new();
    let begin = Instant::now();
    let refused = |lat: &mut Command, what: &str| {
        let output = lat.output().expect("lat can be started");
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.starts_with("error: ") && told.contains(what), "{told}");
        assert!(!place.0.join("r").exists());
    };
    let words = ["-o", "r", "--", "ls"];
    let without = |lat: &mut Command| refused(lat.env("PATH", &place.0), "apt-get install");
    without(&mut record(&place, &words));
    if Qemu::find().is_err() {
        println!("SKIPPED: without QEMU nothing else is looked at");
        return;
    }
    refused(&mut record(&place, &["-o", "r", "--", "no-such-program"]), "check the name");
    refused(&mut record(&place, &["-o", "r", "--sim-file", "/no/such", "--", "ls"]), "/no/such");
    refused(&mut record(&place, &["-o", "r", "--sim-cpus", "0", "--", "ls"]), "give 1 to 16");
    // A 32-bit ELF file.
    let mut elf = [0; 64];
    elf[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 1, 1, 1]);
    let path: &Path = &place.0.join("old");
    fs::write(path, elf).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(path, mode).expect("rights");
    refused(&mut record(&place, &["-o", "r", "--", "./old"]), "32 bits");
    assert!(begin.elapsed() < Duration::from_secs(20));
}
