// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets compared with the plugin's list, instruction by instruction.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use lateralis_files::TemporaryFolder;
use lateralis_intelpt::Block;
use lateralis_intelpt::flow::{Event, Flow, Sink};
use lateralis_intelpt::image::Sections;
use lateralis_perfdata::perf;
use lateralis_simulator::linux::{Job, Kernel, Machine, Printed, Qemu, Report};
use lateralis_simulator::packets::Packets;

/// One machine at a time: each has half a gigabyte of memory.
static ONE: Mutex<()> = Mutex::new(());

/// Whether a machine can be simulated here; prints the reason if not.
fn usable() -> bool {
    if let Err(error) = Qemu::find() {
        println!("SKIPPED: {error}");
        return false;
    }
    if Kernel::kept().is_none() && Kernel::of_distribution(&mut |_| ()).is_err() {
        println!("SKIPPED: there is no kernel for a simulated machine");
        return false;
    }
    true
}

fn compile(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (from, to) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&from, source).expect("a file");
    let mut gcc = Command::new("gcc");
    let status = gcc.args(["-O1", "-pthread", "-o"]).arg(&to).arg(&from).status();
    assert!(status.expect("gcc is there").success());
    to
}

struct Run {
    report: Report,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    folder: TemporaryFolder,
}

fn run(command: &[&str], cpus: u16, kernel: bool) -> Run {
    run_with(command, cpus, kernel, false)
}

fn run_with(command: &[&str], cpus: u16, kernel: bool, per_cpu: bool) -> Run {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = TemporaryFolder::new("lateralis-machine-").expect("a folder");
    let job = Job {
        command: command.iter().map(Into::into).collect(),
        files: Vec::new(),
        cpus,
        kernel,
        packets: Packets::default(),
        per_cpu,
        append: Vec::new(),
        output: folder.path().join("out"),
        truth: true,
    };
    let machine = Machine::prepare(job, &mut |_| ()).expect("all that is needed is there");
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut print = |printed: Printed<'_>| {
        match printed {
            Printed::Stdout(bytes) => stdout.extend_from_slice(bytes),
            Printed::Stderr(bytes) => stderr.extend_from_slice(bytes),
        }
        Ok(())
    };
    let report = machine.run(&mut print).expect("it runs");
    assert!(report.odd.is_nothing(), "{:?}", report.odd);
    assert_eq!(report.problems, [""; 0]);
    Run { report, stdout, stderr, folder }
}

/// Instructions by thread, as listed by the plugin (`c/protocol.h`).
fn truth(report: &Report) -> Vec<(u32, Vec<u64>)> {
    const THREAD: u64 = 0x7ffe;
    const UNDONE: u64 = 0x7ffd;
    let mut all: std::collections::BTreeMap<u32, Vec<u64>> = Default::default();
    let mut tid = 0;
    for word in report.truth.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)) {
        match word >> 48 {
            THREAD => tid = word as u32,
            UNDONE => drop(all.entry(tid).or_default().pop()),
            _ => all.entry(tid).or_default().push(word),
        }
    }
    all.into_iter().collect()
}

struct Addresses<'a> {
    sections: &'a Sections<'a>,
    all: Vec<u64>,
    gaps: usize,
}

impl Sink for Addresses<'_> {
    fn block(&mut self, block: &Block) {
        lateralis_intelpt::instructions(self.sections, block, |ip, _| self.all.push(ip));
    }

    fn event(&mut self, _: usize, event: Event) {
        self.gaps += usize::from(matches!(event, Event::Gap(_)));
    }
}

/// Instructions by thread, decoded from the packets and the mapped files.
fn decoded(report: &Report) -> Vec<(u32, Vec<u64>)> {
    let bytes = fs::read(&report.data).expect("a recording");
    let mut files = Vec::new();
    let mut at = 0x178; // after the header
    while let Some(header) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let kind = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
        let word = |from: usize| {
            u64::from_le_bytes(*bytes[at + from..].first_chunk().expect("a whole record"))
        };
        match kind {
            10 => {
                let path = bytes[at + 72..].split(|byte| *byte == 0).next().expect("a name");
                let path = String::from_utf8(path.to_vec()).expect("UTF-8");
                files.push((word(16), word(24) as usize, word(32) as usize, path));
            }
            71 => at += word(8) as usize,
            68 => break,
            _ => {}
        }
        at += size;
    }
    let code: Vec<(u64, Vec<u8>)> = files
        .iter()
        .filter_map(|(begin, size, offset, path)| {
            let content = fs::read(path).ok()?;
            let end = content.len().min(offset + size);
            Some((*begin, content.get(*offset..end)?.to_vec()))
        })
        .chain(
            report
                .kernel_code
                .iter()
                .map(|(begin, path)| (*begin, fs::read(path).expect("code of the kernel"))),
        )
        .collect();
    let mut sections = Sections::default();
    code.iter().for_each(|(begin, bytes)| sections.add(*begin, bytes));
    let mut packets: std::collections::BTreeMap<u32, Vec<u8>> = Default::default();
    for area in perf::aux_areas(&bytes) {
        let begin = area.begin_bytes as usize;
        let of = packets.entry(area.tid as u32).or_default();
        assert_eq!(of.len() as u64, area.offset_bytes);
        of.extend_from_slice(&bytes[begin..begin + area.size_bytes as usize]);
    }
    let decode = |(tid, packets): (u32, Vec<u8>)| {
        let mut sink = Addresses { sections: &sections, all: Vec::new(), gaps: 0 };
        Flow::new(&sections).decode(&packets, &mut sink);
        assert_eq!(sink.gaps, 0, "thread {tid}");
        (tid, sink.all)
    };
    packets.into_iter().map(decode).collect()
}

/// Instructions by thread according to perf.
fn by_perf(report: &Report) -> Option<Vec<(u32, Vec<u64>)>> {
    let data = fs::canonicalize(&report.data).expect("a recording");
    let mut perf = Command::new("perf");
    perf.args(["script", "--itrace=i0ns", "-F", "tid,ip", "-i"]).arg(&data);
    let output = perf.current_dir(data.parent().expect("a folder")).output().ok()?;
    let mut all: std::collections::BTreeMap<u32, Vec<u64>> = Default::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut words = line.split_whitespace();
        let (Some(tid), Some(ip)) = (words.next(), words.next()) else { continue };
        let (tid, ip) = (tid.parse().expect("a thread"), u64::from_str_radix(ip, 16));
        all.entry(tid).or_default().push(ip.expect("an address"));
    }
    Some(all.into_iter().collect())
}

fn compare(report: &Report, what: &str, expected: &[(u32, Vec<u64>)], found: &[(u32, Vec<u64>)]) {
    assert_eq!(expected.len(), found.len(), "{what}: threads");
    for ((tid, expected), (other, found)) in expected.iter().zip(found) {
        assert_eq!(tid, other, "{what}");
        let first = expected.iter().zip(found).position(|(one, other)| one != other);
        assert_eq!((expected.len(), first), (found.len(), None), "{what}: thread {tid}");
    }
    let sum: usize = found.iter().map(|(_, all)| all.len()).sum();
    assert_eq!(sum as u64, report.sums.retired, "{what}");
}

/// Asserts that all sources agree.
fn check(report: &Report, with_perf: bool) {
    let truth = truth(report);
    compare(report, "packets", &truth, &decoded(report));
    let threads: Vec<(u32, u64)> =
        truth.iter().map(|(tid, all)| (*tid, all.len() as u64)).collect();
    assert_eq!(report.threads, threads);
    let recorded: u64 = report.counts.iter().map(|counts| counts.recorded).sum();
    assert_eq!(recorded, report.sums.retired + report.sums.undone);
    let all: u64 = report.counts.iter().map(|counts| counts.instructions).sum();
    assert!(all > recorded);
    if with_perf {
        match by_perf(report) {
            Some(theirs) if !theirs.is_empty() => compare(report, "perf", &truth, &theirs),
            _ => println!("SKIPPED: perf is not there, or decodes no Intel PT"),
        }
    }
}

#[test]
fn a_program_of_the_distribution_prints_as_ever_and_every_instruction_is_there() {
    if !usable() {
        return;
    }
    let all = run(&["ls", "-la", "/usr/bin/ls", "/no/such"], 1, false);
    let text = String::from_utf8_lossy(&all.stdout).into_owned();
    assert!(text.contains("/usr/bin/ls"), "{text}");
    assert!(String::from_utf8_lossy(&all.stderr).contains("/no/such"));
    assert_eq!(all.report.status.map(|status| status.wait), Some(2 << 8));
    assert!(all.report.sums.retired > 100_000);
    check(&all.report, true);
    drop(all.folder);
}

/// Signals, faults, string instructions, children, clock readings without system calls.
const ODD: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile int handled;
static char *page;
static void on_signal(int number) { handled += number; }
static void on_fault(int number) { handled += number; mprotect(page, 4096, PROT_READ | PROT_WRITE); }
static int depth(int n) { return n == 0 ? 0 : 1 + depth(n - 1); }
int main(void) {
    signal(SIGUSR1, on_signal);
    signal(SIGSEGV, on_fault);
    page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[5] = 7;
    raise(SIGUSR1);
    char *memory = malloc(3 << 20);
    __asm__ volatile("rep stosb" :: "D"(memory), "c"(3 << 20), "a"(5) : "memory");
    struct timespec time;
    for (int i = 0; i < 1000; i++) clock_gettime(CLOCK_MONOTONIC, &time);
    int sum = depth(500);
    for (int i = 0; i < 3000000; i++) sum += i & 3 ? 1 : i % 7;
    if (fork() == 0) { handled = depth(40); _exit(3); }
    int status;
    wait(&status);
    printf("%d %d %d %d\n", handled, sum > 0, memory[1 << 20], WEXITSTATUS(status));
    return 5;
}
"#;

#[test]
fn signals_faults_interrupts_and_children_are_where_they_were() {
    if !usable() {
        return;
    }
    let folder = TemporaryFolder::new("lateralis-odd-").expect("a folder");
    let program = compile(folder.path(), "odd", ODD);
    let all = run(&[program.to_str().expect("UTF-8")], 1, false);
    assert_eq!(String::from_utf8_lossy(&all.stdout), "21 1 5 3\n");
    assert_eq!(all.report.status.map(|status| status.wait), Some(5 << 8));
    assert_eq!(all.report.threads.len(), 2);
    assert!(all.report.sums.undone > 3 << 20, "{:?}", all.report.sums);
    check(&all.report, true);
}

const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static void *work(void *of) {
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&mutex);
        sum += (long)of;
        pthread_mutex_unlock(&mutex);
        for (volatile int j = 0; j < 20; j++) {}
    }
    return 0;
}
int main(void) {
    pthread_t one, other;
    pthread_create(&one, 0, work, (void *)1);
    pthread_create(&other, 0, work, (void *)2);
    pthread_join(one, 0);
    pthread_join(other, 0);
    printf("%ld\n", sum);
    return 0;
}
"#;

#[test]
fn with_two_processors_every_instruction_belongs_to_one_thread() {
    if !usable() {
        return;
    }
    let folder = TemporaryFolder::new("lateralis-threads-").expect("a folder");
    let program = compile(folder.path(), "threads", THREADS);
    for kernel in [false, true] {
        let all = run(&[program.to_str().expect("UTF-8")], 2, kernel);
        assert_eq!(String::from_utf8_lossy(&all.stdout), "60000\n");
        assert_eq!((all.report.threads.len(), all.report.counts.len()), (3, 2));
        assert!(all.report.counts.iter().all(|counts| counts.recorded > 100_000));
        check(&all.report, !kernel);
    }
}

#[test]
fn the_kernel_of_a_program_is_followed_through_interrupts_faults_and_switches() {
    if !usable() {
        return;
    }
    let folder = TemporaryFolder::new("lateralis-kernel-").expect("a folder");
    let program = compile(folder.path(), "odd", ODD);
    let all = run(&[program.to_str().expect("UTF-8")], 1, true);
    assert_eq!(String::from_utf8_lossy(&all.stdout), "21 1 5 3\n");
    assert!(all.report.symbols.is_some() && !all.report.kernel_code.is_empty());
    assert!(all.report.sums.retired > 15_000_000, "{:?}", all.report.sums);
    check(&all.report, false);
}
