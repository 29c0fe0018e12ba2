// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Branch records (LBR), compared with the output of perf for the same files. The files are generated here,
//! because the test machine may have no LBR.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::flow::{by_lat, by_perf};
use crate::kernel::usable;
use crate::place::Place;

/// Bits of `sample_type` and `branch_sample_type` [perf_event.h].
const CALLCHAIN: u64 = 1 << 5;
const BRANCH_STACK: u64 = 1 << 11;
const WEIGHT: u64 = 1 << 14;
/// Address, thread, time, CPU, period, and event id.
const FIXED: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 16;
const BRANCH_USER: u64 = 1;
const BRANCH_ANY: u64 = 1 << 3;
const BRANCH_CALL_STACK: u64 = 1 << 11;
const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;
const CONTEXT_KERNEL: u64 = (-128i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512i64).cast_unsigned();
const EVENT_ID: u64 = 41;
const PID: u32 = 4321;

const PROGRAM: &str = "#define APART __attribute__((noinline))\n\
    static volatile int s;\n\
    APART int innermost(int n) { for (int i = 0; i < n; i++) s += i; return s; }\n\
    APART int inner(int n) { return innermost(n) + innermost(n + 1); }\n\
    APART int outer(int n) { return inner(n) * 3 + inner(2); }\n\
    int main(int n, char **of) { return outer(n) + (of != 0); }\n";

fn words(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = (body.len() + 8) as u16;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

fn text(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((name.len() + 1).next_multiple_of(8), 0);
    bytes
}

fn both(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// A branch: from, to and flags.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry(u64, u64, u64);

/// A sample: its address, call chain and branches.
struct Sample {
    misc: u16,
    ip: u64,
    chain: Vec<u64>,
    branches: Vec<Entry>,
}

/// A `perf.data` of one event.
fn perf_data(
    program: &Linked,
    (sample_type, branch_sample_type): (u64, u64),
    samples: &[Sample],
) -> Vec<u8> {
    // A hardware event, cycles; sample_id_all, mmap, comm, mmap2.
    let flags = 1 << 18 | 1 << 8 | 1 << 9 | 1 << 23;
    let sample_type = FIXED | sample_type;
    let attr = words(&[both(0, 112), 0, 1000, sample_type, 0, flags, 0, 0, 0, branch_sample_type]);
    let attr = [attr, words(&[0, 0, 0, 0])].concat();
    let at_end = |time: u64| words(&[both(PID, PID), time, 0, EVENT_ID]);
    let comm = [words(&[both(PID, PID)]), text("branchy"), at_end(1)].concat();
    let mut data = record(3, 1 << 13, &comm);
    let Linked { begin, size, offset, path, .. } = program;
    let mapping = words(&[both(PID, PID), *begin, *size, *offset, 0, 0, 0, both(5, 2)]);
    data.extend(record(10, 2, &[mapping, text(path), at_end(2)].concat()));
    for (index, sample) in samples.iter().enumerate() {
        let time = 1000 + 10 * index as u64;
        let mut body = vec![EVENT_ID, sample.ip, both(PID, PID), time, 0, 100 + index as u64];
        if sample_type & CALLCHAIN != 0 {
            body.push(sample.chain.len() as u64);
            body.extend(&sample.chain);
        }
        body.push(sample.branches.len() as u64);
        if branch_sample_type & BRANCH_HW_INDEX != 0 {
            body.push(7);
        }
        for Entry(from, to, flags) in &sample.branches {
            body.extend([from, to, flags]);
        }
        if branch_sample_type & BRANCH_COUNTERS != 0 {
            body.extend((0..sample.branches.len() as u64).map(|nth| 0x0101 * nth));
        }
        if sample_type & WEIGHT != 0 {
            body.push(77 + index as u64);
        }
        data.extend(record(9, sample.misc, &words(&body)));
    }
    let attrs_at = 104 + 8;
    let data_at = attrs_at + 112 + 16;
    let mut head = b"PERFILE2".to_vec();
    head.extend(words(&[104, 128, attrs_at, 128, data_at, data.len() as u64, 0, 0, 0, 0, 0, 0]));
    head.truncate(104);
    let all = [head, words(&[EVENT_ID]), attr, words(&[104, 8]), data];
    all.concat()
}

/// A program, the address of its mapped code, and its functions.
struct Linked {
    path: String,
    begin: u64,
    size: u64,
    offset: u64,
    functions: BTreeMap<String, u64>,
}

fn linked(place: &Place) -> Linked {
    fs::write(place.0.join("p.c"), PROGRAM).expect("a source");
    let mut build = Command::new("gcc");
    build.args(["-O1", "-g", "-no-pie", "-fno-optimize-sibling-calls", "p.c", "-o", "p"]);
    assert!(build.current_dir(&place.0).status().expect("gcc is there").success());
    let tool = |name: &str, option: &str| {
        let mut tool = Command::new(name);
        let output = tool.args([option, "p"]).current_dir(&place.0).output().expect("binutils");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16);
    let segments = tool("readelf", "-lW");
    let code = segments.lines().find(|line| line.contains("LOAD") && line.contains("R E"));
    let code: Vec<&str> = code.expect("a segment of code").split_whitespace().collect();
    let number = |at: usize| hex(code[at]).expect("a number");
    let functions = tool("nm", "-n").lines().map(str::to_owned).collect::<Vec<_>>();
    let function = |line: &String| {
        let mut words = line.split_whitespace();
        let at = hex(words.next()?).ok()?;
        let name = words.nth(1)?.to_owned();
        Some((name, at))
    };
    Linked {
        path: place.0.join("p").canonicalize().expect("a path").display().to_string(),
        begin: number(2),
        size: number(4).next_multiple_of(4096),
        offset: number(1),
        functions: functions.iter().filter_map(function).collect(),
    }
}

/// Branches between four functions, with all combinations of flags.
fn branches(program: &Linked) -> Vec<Sample> {
    let functions = ["main", "outer", "inner", "innermost"].map(|name| program.functions[name]);
    let mut seed = 17_u64;
    let mut below = |limit: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % limit
    };
    let mut sample = |_| {
        let count = below(33);
        let mut entry = |_| {
            let from = functions[below(4) as usize] + below(3);
            let to = functions[below(4) as usize] + 4 * below(2);
            let cycles = if below(3) == 0 { 0 } else { below(1 << 16) };
            let prediction = [0, 1, 2][below(3) as usize];
            // perf of Linux 6.1 does not print the branch type.
            Entry(from, to, prediction | below(4) << 2 | cycles << 4 | below(11) << 20)
        };
        let branches = (0..count).map(&mut entry).collect();
        Sample { misc: 2, ip: functions[3], chain: Vec::new(), branches }
    };
    (0..200).map(&mut sample).collect()
}

/// Returns the output of perf for each sample that has branches.
fn printed(place: &Place, file: &str, field: &str) -> Vec<Vec<Vec<String>>> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-i", file, "-F", field]).current_dir(&place.0).stderr(Stdio::null());
    let output = perf.output().expect("perf is there");
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let branch = |word: &str| word.split('/').map(str::to_owned).collect::<Vec<_>>();
    let lines = text.lines().filter(|line| line.contains('/'));
    lines.map(|line| line.split_whitespace().map(branch).collect()).collect()
}

fn rows(place: &Place, file: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let columns = columns.join(",");
    let words = ["table", file, "--name", "stack_branches", "--column", &columns];
    let output = place.lat(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Formats a row like `perf script -F brstack`.
fn as_perf(row: &[String]) -> Vec<String> {
    let hex = |text: &String| format!("{:#x}", text.parse::<u64>().expect("an address"));
    let prediction = match row[4].as_str() {
        "true" => "M",
        "false" => "P",
        _ => "-",
    };
    let letter = |text: &String, letter: &str| if text == "true" { letter } else { "-" }.to_owned();
    let cycles = if row[7].is_empty() { "0".to_owned() } else { row[7].clone() };
    let (transaction, abort) = (letter(&row[5], "X"), letter(&row[6], "A"));
    vec![hex(&row[2]), hex(&row[3]), prediction.to_owned(), transaction, abort, cycles]
}

const COLUMNS: [&str; 10] = [
    "sample",
    "index",
    "from_address",
    "to_address",
    "is_mispredicted",
    "is_in_transaction",
    "is_abort",
    "cycles",
    "from_function",
    "to_function",
];

#[test]
fn branches_are_those_of_perf_script() {
    if !usable(&["perf", "gcc", "nm", "readelf"]) {
        return;
    }
    let place = Place::new();
    let program = linked(&place);
    let samples = branches(&program);
    let branch_types = BRANCH_USER | BRANCH_ANY;
    let mut by_file: Vec<Vec<Vec<String>>> = Vec::new();
    for (file, branch_types) in
        [("plain.data", branch_types), ("index.data", branch_types | BRANCH_HW_INDEX)]
    {
        let bytes = perf_data(&program, (BRANCH_STACK, branch_types), &samples);
        fs::write(place.0.join(file), bytes).expect("a file");
        let rows = rows(&place, file, &COLUMNS);
        let mut ours: BTreeMap<u64, Vec<Vec<String>>> = BTreeMap::new();
        for row in &rows {
            let of = ours.entry(row[0].parse().expect("a number")).or_default();
            assert_eq!(row[1], of.len().to_string());
            of.push(as_perf(row));
        }
        let theirs = printed(&place, file, "brstack");
        let six = |of: &Vec<Vec<String>>| of.iter().map(|of| of[..6].to_vec()).collect();
        let theirs: Vec<Vec<Vec<String>>> = theirs.iter().map(six).collect();
        assert!(theirs.len() > 150, "{}", theirs.len());
        assert_eq!(ours.into_values().collect::<Vec<Vec<_>>>(), theirs, "{file}");
        // Compare names of functions.
        let names = printed(&place, file, "brstacksym").into_iter().flatten();
        let name = |text: &str| text.split('+').next().unwrap_or("").to_owned();
        let names: Vec<_> = names.map(|of| (name(&of[0]), name(&of[1]))).collect();
        let found: Vec<_> = rows.iter().map(|row| (row[8].clone(), row[9].clone())).collect();
        assert_eq!(found, names, "{file}");
        by_file.push(rows);
    }
    assert_eq!(by_file[0], by_file[1]);
    // Branch counters after the branches, as of Linux 6.8, do not shift the following fields.
    let bytes =
        perf_data(&program, (BRANCH_STACK | WEIGHT, branch_types | BRANCH_COUNTERS), &samples);
    fs::write(place.0.join("counters.data"), bytes).expect("a file");
    assert_eq!(rows(&place, "counters.data", &COLUMNS), by_file[0]);
    let printed = place.lat(&["print", "--format", "json", "counters.data", "--event", "cycles"]);
    let weights = String::from_utf8_lossy(&printed.stdout).into_owned();
    for (line, nth) in weights.lines().zip(77..) {
        let event: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(event["fields"]["weight"], nth, "{line}");
    }
    // Compare counts.
    let mut counts: BTreeMap<(u64, u64), [u64; 6]> = BTreeMap::new();
    for Entry(from, to, flags) in samples.iter().flat_map(|of| &of.branches) {
        let cycles = flags >> 4 & 0xffff;
        let bit = |bit: u64| flags >> bit & 1;
        let more = [1, bit(0), bit(1), bit(2), bit(3), cycles];
        let of = counts.entry((*from, *to)).or_default();
        of.iter_mut().zip(more).for_each(|(of, more)| *of += more);
    }
    let found = place.json(&["flow", "branches", "index.data", "--json"]);
    let names = ["count", "mispredicted", "predicted", "in_transaction", "aborted", "cycles"];
    let jumps = found["jumps"].as_array().expect("jumps").iter().map(|jump| {
        let number = |value: &Value| value.as_u64().expect("a number");
        let addresses = (number(&jump["from"]["address"]), number(&jump["to"]["address"]));
        (addresses, names.map(|name| number(&jump[name])))
    });
    assert_eq!(jumps.collect::<BTreeMap<_, _>>(), counts);
    let first = &found["jumps"][0];
    assert!(first["from"]["line"].as_u64().is_some_and(|line| (2..7).contains(&line)), "{first}");
    let output = place.lat(&["flow", "branches", "index.data"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("innermost") && text.contains("p.c:"),
        "{text}"
    );
}

#[test]
fn stacks_out_of_calls_that_a_processor_remembers_are_those_of_perf_script() {
    if !usable(&["perf", "gcc", "nm", "readelf"]) {
        return;
    }
    let place = Place::new();
    let program = linked(&place);
    let [main, outer, inner, innermost] =
        ["main", "outer", "inner", "innermost"].map(|name| program.functions[name]);
    let calls =
        vec![Entry(inner + 6, innermost, 2), Entry(outer + 9, inner, 2), Entry(main + 5, outer, 2)];
    let sample = |ip: u64, kernel: Option<u64>, first: usize| {
        let kernel_part = kernel.map(|address| [CONTEXT_KERNEL, address]);
        let mut chain: Vec<u64> = kernel_part.into_iter().flatten().collect();
        chain.extend([CONTEXT_USER, ip]);
        let misc = if kernel.is_some() { 1 } else { 2 };
        Sample { misc, ip: kernel.unwrap_or(ip), chain, branches: calls[first..].to_vec() }
    };
    let mut samples = vec![
        sample(innermost + 3, None, 0),
        sample(inner + 10, None, 1),
        sample(outer + 2, None, 2),
        // A jump to another function than the called one.
        sample(innermost + 3, None, 1),
        // In the kernel, called by the program.
        sample(inner + 10, Some(0xffff_ffff_0000_1234), 1),
    ];
    // Only the kernel: the branch records do not help.
    samples.push(Sample {
        misc: 1,
        ip: 0xffff_ffff_0000_1234,
        chain: vec![CONTEXT_KERNEL, 0xffff_ffff_0000_1234],
        branches: calls.clone(),
    });
    let types = BRANCH_USER | BRANCH_CALL_STACK | BRANCH_HW_INDEX;
    let bytes = perf_data(&program, (CALLCHAIN | BRANCH_STACK, types), &samples);
    fs::write(place.0.join("perf.data"), bytes).expect("a file");
    let (theirs, ours) = (by_perf(&place), by_lat(&place));
    assert_eq!(ours, theirs);
    assert!(ours.contains_key("branchy;main;outer;inner;innermost"), "{ours:#?}");
    assert!(ours.contains_key("branchy;main;outer;inner;[unknown]"), "{ours:#?}");
    // The line of the interrupted instruction, not of the start of its function.
    let output =
        place.lat(&["table", "perf.data", "--name", "stack_samples", "--column", "function,line"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().nth(1), Some("innermost,3"), "{text}");
    // A copy keeps the kind of the entries.
    assert!(place.lat(&["convert", "perf.data", "-o", "copy.ctf"]).status.success());
    let folded =
        |of: &str| place.lat(&["flow", "stacks", of, "--no-inline", "--format", "folded"]).stdout;
    assert_eq!(folded("copy.ctf"), folded("perf.data"));
    // The entries are not counted as taken branches.
    let output = place.lat(&["flow", "branches", "perf.data"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("6 samples have calls that have not returned"), "{error}");
}

#[test]
fn a_trace_without_branches_says_so() {
    let place = Place::new();
    fs::write(place.0.join("t.json"), r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#)
        .expect("a trace");
    let output = place.lat(&["flow", "branches", "t.json"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("no branches"));
}
