// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions that a processor executed, compared with the list of a simulator, with perf's decoding of the
//! same file, and with the decoding of real recordings by Intel's library.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::kernel::usable;
use crate::place::Place;

pub fn data(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pt").join(name);
    if !path.exists() {
        println!("SKIPPED: {} is not there", path.display());
        return None;
    }
    Some(path.canonicalize().expect("a path"))
}

/// Path of the recorded program of `made`.
fn program(place: &Place, made: &Path) -> String {
    let file = made.join("fibs/perf.data").display().to_string();
    let output = place.lat(&["print", &file, "--event", "mmap2"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = text.split_once("filename=\"").and_then(|(_, rest)| rest.split_once('"'));
    path.expect("a mapping").0.to_owned()
}

/// Makes a copy of the machine on which the programs of `made` ran.
pub fn machine(place: &Place, made: &Path) -> String {
    let program = program(place, made);
    let folder = Path::new(&program).parent().expect("a folder").display().to_string();
    let folder = place.0.join(format!("machine{folder}"));
    fs::create_dir_all(&folder).expect("a folder");
    for name in ["pb", "pbr"] {
        symlink(made.join(name), folder.join(name)).expect("a link");
    }
    "machine".to_owned()
}

/// Returns the options for the code of a stream, converted from those of Intel's `ptxed`.
fn raw(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("raw.args")).expect("options");
    let of = |word: &str| match word {
        "--raw" => word.to_owned(),
        file => folder.join(file).display().to_string(),
    };
    text.split_whitespace().map(of).collect()
}

fn run(place: &Place, what: &str, of: &str, more: &[String]) -> Output {
    let mut words = vec!["flow", what, of];
    words.extend(more.iter().map(String::as_str));
    place.lat(&words)
}

/// Returns the first word of each line of a dump.
fn addresses(output: &Output) -> Vec<u64> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let hex = |line: &str| {
        let word = line.split_whitespace().next()?.strip_prefix("0x")?;
        u64::from_str_radix(word, 16).ok()
    };
    lines.map(|line| hex(line).expect("an address")).collect()
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn copies_in_ctf_hold_what_the_processor_said() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    for name in ["fibs", "fibscyc"] {
        let original = made.join(name).join("perf.data").display().to_string();
        for target in ["ctf", "ctf2"] {
            let copy = format!("{name}.{target}");
            let output = place.lat(&["convert", &original, "-o", &copy, "--to", target]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let tables =
                ["flow_calls", "flow_blocks", "flow_instructions", "flow_gaps", "flow_packets"];
            for table in tables {
                let rows = |of: &str| {
                    let output = place.lat(&["table", of, "--name", table, "--symfs", &machine]);
                    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
                };
                let expected = rows(&original);
                assert!(table == "flow_gaps" || expected.1.lines().count() > 1, "{name} {table}");
                assert!(rows(&copy) == expected, "{table} of {copy}");
            }
            let dump =
                |of: &str| addresses(&run(&place, "dump", of, &words(&["--symfs", &machine])));
            assert!(dump(&copy) == dump(&original), "{copy}");
        }
        if usable(&["babeltrace2"]) {
            let mut babeltrace = Command::new("babeltrace2");
            let output = babeltrace.arg(format!("{name}.ctf")).current_dir(&place.0).output();
            let output = output.expect("babeltrace2 is there");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines = |word: &str| text.lines().filter(|line| line.contains(word)).count();
            assert!(lines("auxtrace:") > 0 && lines("auxtrace_info:") == 1, "{name}");
        }
    }
}

#[test]
fn of_a_copy_with_damage_the_rest_is_decoded() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let original = made.join("fibs/perf.data").display().to_string();
    assert!(place.lat(&["convert", &original, "-o", "copy.ctf"]).status.success());
    let dump = || run(&place, "dump", "copy.ctf", &words(&["--symfs", &machine]));
    let all = addresses(&dump());
    // Overwrites 40 bytes that follow a PSB in the middle of the packets.
    let mut largest = fs::read_dir(place.0.join("copy.ctf")).expect("a folder");
    let mut best = (0, PathBuf::new());
    for entry in largest.by_ref() {
        let entry = entry.expect("an entry");
        let size = entry.metadata().expect("a size").len();
        if entry.path().is_file() && entry.file_name() != "metadata" && size > best.0 {
            best = (size, entry.path());
        }
    }
    let mut bytes = fs::read(&best.1).expect("a stream");
    let psb = [2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82];
    let places: Vec<usize> =
        (0..bytes.len() - psb.len()).filter(|at| bytes[*at..].starts_with(&psb)).collect();
    let at = places[places.len() / 2] + 100;
    bytes[at..at + 40].fill(0xff);
    fs::write(&best.1, bytes).expect("it is written");
    let output = dump();
    assert_eq!(output.status.code(), Some(1));
    let left = addresses(&output);
    // Instructions before and after the damage remain; none are made up.
    let before = all.iter().zip(&left).take_while(|(one, other)| one == other).count();
    assert!(before > 100 && left.len() < all.len(), "{before} of {}", all.len());
    assert!(all.ends_with(&left[before..]), "{} instructions are others", left.len() - before);
}

#[test]
fn every_instruction_of_a_simulated_processor_is_there() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let (mut of_perf, mut of_raw) = (0, 0);
    for entry in fs::read_dir(&made).expect("a folder").flatten() {
        let folder = entry.path();
        let Ok(truth) = fs::read(folder.join("truth.ips.zst")) else { continue };
        // Millions of lines are covered by the decoder's own tests.
        if truth.len() > 1 << 17 {
            continue;
        }
        let truth = zstd::decode_all(&truth[..]).expect("zstd");
        let truth: Vec<u64> = String::from_utf8_lossy(&truth)
            .lines()
            .map(|line| u64::from_str_radix(line.trim(), 16).expect("hex"))
            .collect();
        let path = |name: &str| folder.join(name).display().to_string();
        let packets = run(&place, "dump", &path("trace.pt"), &raw(&folder));
        assert!(packets.status.success(), "{}: {packets:?}", folder.display());
        assert!(addresses(&packets) == truth, "{}", folder.display());
        of_raw += 1;
        if folder.join("perf.data").exists() {
            let perf = run(&place, "dump", &path("perf.data"), &words(&["--symfs", &machine]));
            assert!(perf.status.success(), "{}: {perf:?}", folder.display());
            assert!(addresses(&perf) == truth, "{}", folder.display());
            of_perf += 1;
        }
    }
    assert!(of_perf >= 3 && of_raw >= 4, "{of_perf} of perf, {of_raw}");
}

/// Returns the symbol of each instruction, as decoded by perf.
fn by_perf(place: &Place, file: &str, machine: &str) -> Vec<(u64, String)> {
    let fields = ["script", "-i", file, "--symfs", machine, "--itrace=i0ns", "-F", "ip,sym"];
    let mut perf = Command::new("perf");
    let output = perf.args(fields).current_dir(&place.0).stderr(Stdio::null()).output();
    let output = output.expect("perf is there");
    let line = |line: &str| {
        let (address, name) = line.trim().split_once(' ')?;
        Some((u64::from_str_radix(address, 16).ok()?, name.trim().to_owned()))
    };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(line).collect()
}

#[test]
fn perf_decodes_the_same_instructions_in_the_same_functions() {
    let Some(made) = data("made") else { return };
    if !usable(&["perf"]) {
        return;
    }
    let place = Place::new();
    let machine = machine(&place, &made);
    let file = made.join("fibs/perf.data").display().to_string();
    let theirs = by_perf(&place, &file, &machine);
    if theirs.is_empty() {
        println!("SKIPPED: this perf decodes no Intel PT");
        return;
    }
    let ours = addresses(&run(&place, "dump", &file, &words(&["--symfs", &machine])));
    assert_eq!(ours.len(), 33_059);
    assert!(ours.iter().eq(theirs.iter().map(|(address, _)| address)));
    let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
    theirs.iter().for_each(|(_, name)| *expected.entry(name).or_default() += 1);
    let stacks = place.json(&["flow", "stacks", &file, "--symfs", &machine, "--json"]);
    let functions = stacks["functions"].as_array().expect("functions");
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for row in stacks["events"][0]["functions"].as_array().expect("rows") {
        let function = row["function"].as_u64().expect("a number") as usize;
        let name = functions[function]["name"].as_str().expect("a name");
        let own = row["self_weight"].as_u64().expect("a number");
        if own > 0 {
            *found.entry(name).or_default() += own;
        }
    }
    // perf extends a function without a size over the PLT that follows it; `lat` reports no function there.
    let reaches = |name: &str, of: &mut BTreeMap<&str, u64>| of.remove(name).unwrap_or(0);
    let (init, unknown) = (reaches("_init", &mut found), reaches("[unknown]", &mut found));
    assert_eq!(init + unknown, reaches("_init", &mut expected));
    assert_eq!(found, expected);
}

#[test]
fn calls_are_below_who_called() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let file = made.join("fibs/perf.data").display().to_string();
    let output = run(&place, "stacks", &file, &words(&["--symfs", &machine, "--format", "folded"]));
    let text = String::from_utf8_lossy(&output.stdout);
    // fib(n) calls itself from two places, at most eleven levels deep, all below main.
    let of_fib: Vec<&str> = text.lines().filter(|line| line.contains(";fib")).collect();
    assert!(of_fib.len() >= 5, "{text}");
    for line in &of_fib {
        assert!(line.contains(";__libc_start_call_main;main;fib"), "{line}");
    }
    let sum: u64 = text
        .lines()
        .map(|line| line.rsplit_once(' ').and_then(|(_, n)| n.parse::<u64>().ok()).expect("n"))
        .sum();
    assert_eq!(sum, 33_059);
    let picture = run(&place, "stacks", &file, &words(&["--symfs", &machine, "--format", "svg"]));
    assert!(String::from_utf8_lossy(&picture.stdout).contains("fib"));
}

/// Finds pairs in a list of instructions. An interval contains the instructions after its begin, up to its
/// end.
fn pairs(list: &[(String, String)], from: &str, to: &str, pairing: &str) -> Vec<u64> {
    let is_at = |(place, text): &(String, String), marker: &str| match marker.split_once(':') {
        Some((_, mnemonic)) => text.split_whitespace().next() == Some(mnemonic),
        None => *place == format!("{marker}+0x0"),
    };
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for (index, of) in list.iter().enumerate() {
        if is_at(of, to)
            && let Some(begin) = open.pop()
        {
            found.push((index - begin) as u64);
        }
        if is_at(of, from) {
            match pairing {
                "first" if !open.is_empty() => continue,
                "last" => open.clear(),
                _ => {}
            }
            open.push(index);
        }
    }
    found
}

#[test]
fn intervals_are_those_of_a_plain_search() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let file = made.join("fibs/perf.data").display().to_string();
    let dump = run(&place, "dump", &file, &words(&["--symfs", &machine]));
    let text = String::from_utf8_lossy(&dump.stdout);
    let list: Vec<(String, String)> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let at = words.next().expect("a function").to_owned();
            (at, words.collect::<Vec<_>>().join(" "))
        })
        .collect();
    let mut compared = 0;
    for (from, to) in
        [("fib", "fib"), ("main", "fib"), ("insn:push", "insn:pop"), ("insn:call", "insn:ret")]
    {
        for pairing in ["first", "last", "innermost"] {
            let words =
                ["--from", from, "--to", to, "--pair", pairing, "--symfs", &machine, "--json"];
            let output = run(&place, "delta", &file, &self::words(&words));
            let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let intervals = found["intervals"].as_array().expect("intervals");
            let of = |row: &serde_json::Value| row["instructions"].as_u64().expect("a number");
            let found: Vec<u64> = intervals.iter().map(of).collect();
            assert_eq!(found, pairs(&list, from, to, pairing), "{from} {to} {pairing}");
            compared += found.len();
        }
    }
    assert!(compared > 1000, "{compared}");
    let none = run(
        &place,
        "delta",
        &file,
        &words(&["--from", "nothing", "--to", "fib", "--symfs", &machine]),
    );
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stdout).contains("nothing begins 0 times"), "{none:?}");
}

/// Interrupt-off sections of Linux, in a kernel run by a simulator.
#[test]
fn instructions_of_the_kernel_with_interrupts_off_are_counted() {
    let Some(made) = data("made/sys.w1") else { return };
    let place = Place::new();
    let file = made.join("trace.pt").display().to_string();
    let names = made.join("../kallsyms.txt").display().to_string();
    let mut more = raw(&made);
    more.extend(words(&["--kallsyms", &names, "--from", "insn:cli", "--to", "insn:sti", "--json"]));
    let output = run(&place, "delta", &file, &more);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // 957 cli and 870 sti in 702,563 instructions, counted in the list of executed instructions.
    let of = |name: &str| found[name].as_u64().expect("a number");
    assert_eq!((of("from_count"), of("to_count")), (957, 870));
    assert_eq!((of("count"), of("void")), (869, 0));
    let mut more = raw(&made);
    more.extend(words(&["--kallsyms", &names, "--format", "folded"]));
    let folded = run(&place, "stacks", &file, &more);
    let text = String::from_utf8_lossy(&folded.stdout);
    assert!(text.contains(";do_syscall_64;__x64_sys_munmap;"), "{}", &text[..2000]);
}

/// A program called getppid, read, close, openat, mmap and munmap twenty times each. The medians are those
/// counted in the list of executed instructions.
#[test]
fn system_calls_are_counted_from_the_call_to_the_return() {
    let Some(made) = data("made/sys.w1") else { return };
    let place = Place::new();
    let file = made.join("trace.pt").display().to_string();
    let names = made.join("../kallsyms.txt").display().to_string();
    let mut more = raw(&made);
    more.extend(words(&["--kallsyms", &names]));
    let json = [&more[..], &["--json".to_owned()]].concat();
    let output = run(&place, "syscalls", &file, &json);
    assert!(output.status.success(), "{output:?}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for (name, median) in
        [("getppid", 321), ("read", 1385), ("close", 1195), ("openat", 3398), ("mmap", 5909)]
    {
        let of = &found["instructions"][name];
        assert_eq!((of["count"].as_u64(), of["p50"].as_u64()), (Some(20), Some(median)), "{name}");
    }
    // The same calls again: no difference.
    let mut both = vec![file.clone()];
    both.extend(json.iter().cloned());
    let impact = run(&place, "impact", &file, &both);
    assert!(impact.status.success(), "{impact:?}");
    let impact: serde_json::Value = serde_json::from_slice(&impact.stdout).expect("JSON");
    let calls = impact["calls"].as_array().expect("calls");
    assert_eq!(calls.len(), 6);
    assert!(calls.iter().all(|row| row["difference"] == 0), "{calls:?}");
    // A trace of a program alone has no system calls.
    let machine = machine(&place, &made.join(".."));
    let alone = made.join("../fibs/perf.data").display().to_string();
    let none = run(&place, "syscalls", &alone, &words(&["--symfs", &machine]));
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stdout).contains("trace the kernel"), "{none:?}");
}

#[test]
fn calls_of_a_function_are_what_it_and_its_callees_executed() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let file = made.join("fibs/perf.data").display().to_string();
    let words = ["flow", "function", "fib", &file, "--symfs", &machine, "--by-caller", "--json"];
    let found = place.json(&words);
    let rows = found["functions"].as_array().expect("rows");
    let by = |caller: &str| rows.iter().find(|row| row["called_by"] == caller).expect("a row");
    // main calls fib once, which executes 3,764 instructions in total; perf counts the same number in fib.
    let outer = by("main");
    assert_eq!((outer["calls"].as_u64(), outer["max"].as_u64()), (Some(1), Some(3764)));
    assert_eq!((by("fib")["calls"].as_u64(), by("fib")["torn"].as_u64()), (Some(232), Some(0)));
    let none = place.lat(&["flow", "function", "nothing_*", &file, "--symfs", &machine]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stdout).contains("no call of nothing_*"));
}

/// Times of the first and the last instruction, compared with perf.
#[test]
fn moments_are_those_of_perf_within_their_bounds() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let file = made.join("fibscyc/perf.data").display().to_string();
    let more = words(&["--symfs", &machine, "--show", "events", "--json"]);
    let output = run(&place, "dump", &file, &more);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let events: Vec<serde_json::Value> =
        lines.filter(|line: &serde_json::Value| line["time_ns"].is_u64()).collect();
    let of = |event: &serde_json::Value, name: &str| event[name].as_u64().expect("a number");
    let (first, last) = (&events[0], events.last().expect("an event"));
    assert_eq!(of(first, "time_ns"), 20_015_998_341_120);
    assert!(
        of(last, "time_ns").abs_diff(20_015_998_377_379) <= of(last, "time_error_ns"),
        "{last}"
    );
    assert!(events.iter().all(|event| of(event, "time_error_ns") < 2_000));
    assert!(events.is_sorted_by_key(|event| of(event, "time_ns")));
    // A call of fib with all its callees: 3,763 instructions.
    let words =
        ["flow", "delta", &file, "--from", "fib", "--to", "return:fib", "--pair", "innermost"];
    let found = place.json(&[&words[..], &["--symfs", &machine, "--json"]].concat());
    let intervals = found["intervals"].as_array().expect("intervals");
    let outer = intervals.iter().max_by_key(|row| row["instructions"].as_u64()).expect("one");
    assert!((2_000..6_000).contains(&of(outer, "time_ns")), "{outer}");
    assert!(of(outer, "time_error_ns") < 2_000, "{outer}");
}

/// A perf recording from another machine, whose programs are not available: packets need no code.
#[test]
fn packets_are_as_many_as_perf_counts() {
    let Some(quipper) = data("quipper") else { return };
    let place = Place::new();
    let file = quipper.join("perf.data.intel_pt-4.14").display().to_string();
    let output = run(&place, "dump", &file, &words(&["--show", "packets"]));
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        *counts.entry(line.split_whitespace().nth(1).expect("a name")).or_default() += 1;
    }
    let names = ["tnt.8", "tip", "pip", "mtc", "tsc", "tma"];
    let expected = [69_516, 12_039, 441, 2_802, 24, 24];
    assert_eq!(names.map(|name| counts[name]), expected);
    // Also by type, with their bytes, for types of a fixed size.
    let output = run(&place, "packets", &file, &words(&["--json"]));
    let text = String::from_utf8_lossy(&output.stdout);
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let kinds = found["kinds"].as_array().expect("kinds");
    let of = |name: &str, what: &str| {
        let kind = kinds.iter().find(|kind| kind["kind"] == name).expect("a kind");
        kind[what].as_u64().expect("a number")
    };
    assert_eq!(names.map(|name| of(name, "packets") as usize), expected);
    let sizes = [("tnt.8", 1), ("pip", 8), ("mtc", 2), ("tsc", 8), ("tma", 7)];
    for (name, size) in sizes {
        assert_eq!(of(name, "bytes"), of(name, "packets") * size, "{name}");
    }
    let bytes = |kind: &serde_json::Value| kind["bytes"].as_u64();
    assert!(kinds.iter().filter_map(bytes).sum::<u64>() <= found["bytes"].as_u64().expect("bytes"));
}

/// Compares the number of instructions with the result of Intel's library (libipt 2.3.0).
#[test]
fn recordings_that_hold_their_code_need_no_files() {
    let (Some(griffin), Some(kafl)) = (data("griffin"), data("kafl")) else { return };
    let place = Place::new();
    for (path, count) in [
        (griffin.join("df-01-poc/trace.griffin.gz"), 175_875),
        (griffin.join("griffin/hello.griffin"), 147_458),
        (kafl.join("foo"), 117_967),
    ] {
        let output = run(
            &place,
            "dump",
            &path.display().to_string(),
            &words(&["--show", "blocks", "--json"]),
        );
        assert!(output.status.success(), "{}", path.display());
        let text = String::from_utf8_lossy(&output.stdout);
        let lines =
            text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        let sum: u64 = lines.filter_map(|line| line["instructions"].as_u64()).sum();
        assert_eq!(sum, count, "{}", path.display());
    }
}

#[test]
fn what_is_missing_is_a_gap_and_is_said() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let folder = made.join("fibs");
    let file = folder.join("perf.data").display().to_string();
    // The program is not available.
    let output = run(&place, "dump", &file, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(addresses(&output).is_empty());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("warning: {}: ", program(&place, &made))), "{said}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("# gap: the code is not known at 0x401950"), "{shown}");

    // One byte in the middle is changed: the part before it is unchanged, and nothing counts twice.
    let whole = addresses(&run(&place, "dump", &file, &words(&["--symfs", &machine])));
    let mut bytes = fs::read(folder.join("trace.pt")).expect("packets");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(place.0.join("broken.pt"), &bytes).expect("written");
    let broken = run(&place, "dump", "broken.pt", &raw(&folder));
    let found = addresses(&broken);
    let equal = found.iter().zip(&whole).take_while(|(one, other)| one == other).count();
    assert!(equal > whole.len() / 4, "{equal} of {}", whole.len());
    assert!(found.len() <= whole.len() + 64, "{} of {}", found.len(), whole.len());
    // An interval with a gap inside is void.
    let mut voids = 0_u64;
    for at in (bytes.len() / 2..bytes.len()).step_by(37) {
        let mut bytes = fs::read(folder.join("trace.pt")).expect("packets");
        bytes[at] ^= 0x55;
        fs::write(place.0.join("broken.pt"), &bytes).expect("written");
        let mut more = raw(&folder);
        more.extend(words(&["--from", "0x401be0", "--to", "0x401be0", "--json"]));
        let output = run(&place, "delta", "broken.pt", &more);
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let of = |name: &str| found[name].as_u64().expect("a number");
        assert!(of("count") + of("void") < 240, "{at}");
        if of("void") > 0 {
            assert_eq!(output.status.code(), Some(1));
            // After the last interval, only its end can be hidden.
            assert!(of("count") <= 232 && of("max") <= 28, "{at}: {}", of("count"));
            voids += u64::from(of("count") < 232);
        }
    }
    assert!(voids > 1, "{voids}");

    // A full buffer, and the buffer of a CPU without information about the running thread. Record types
    // [include/uapi/linux/perf_event.h]: 11 is AUX, 12 ITRACE_START, 71 AUXTRACE.
    let whole_file = fs::read(folder.join("perf.data")).expect("a file");
    let record = |kind: u64| {
        let word = |at: usize| u64::from_le_bytes(*whole_file[at..].first_chunk().expect("a word"));
        let mut at = word(40) as usize;
        while word(at) as u32 as u64 != kind {
            at += (word(at) >> 48) as usize;
        }
        at
    };
    let changed = |changes: &[(usize, &[u8])]| {
        let mut bytes = whole_file.clone();
        for (at, new) in changes {
            bytes[*at..at + new.len()].copy_from_slice(new);
        }
        fs::write(place.0.join("changed.data"), bytes).expect("written");
        run(&place, "dump", "changed.data", &words(&["--symfs", &machine]))
    };
    let as_it_is = changed(&[]);
    assert_eq!((as_it_is.status.code(), addresses(&as_it_is).len()), (Some(0), 33_059));
    let full = changed(&[(record(11) + 24, &[1])]);
    assert_eq!((full.status.code(), addresses(&full).len()), (Some(1), 33_059));
    assert!(String::from_utf8_lossy(&full.stderr).contains("was full 1 time"), "{full:?}");
    let of_all: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    let unknown = changed(&[(record(71) + 36, of_all), (record(12), &[2])]);
    assert_eq!((unknown.status.code(), addresses(&unknown).len()), (Some(1), 0));
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(said.contains("no event says which program ran"), "{said}");

    // No packets, and invalid options.
    fs::write(place.0.join("t.json"), r#"[{"ph":"X","name":"a","ts":1,"dur":2}]"#)
        .expect("written");
    let none = run(&place, "dump", "t.json", &[]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("perf record"), "{none:?}");
    for wrong in [["--raw", "nothing"], ["--raw", "a:b"], ["--from", "insn:nonsense"]] {
        let what = if wrong[0] == "--from" { "delta" } else { "dump" };
        assert_eq!(run(&place, what, &file, &words(&wrong)).status.code(), Some(2), "{wrong:?}");
    }
    let mixed = place.lat(&["flow", "dump", "broken.pt", "t.json"]);
    assert_eq!(mixed.status.code(), Some(2));
}

/// Tables of executed code contain the same instructions, blocks and calls, whatever is selected.
#[test]
fn tables_have_what_was_executed() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let file = made.join("fibs/perf.data").display().to_string();
    let table = |name: &str, more: &[&str]| -> Vec<Vec<String>> {
        let words = [&["table", &file, "--name", name, "--symfs", &machine], more].concat();
        let output = place.lat(&words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("CSV");
        let cells = |line: &str| line.split(',').map(str::to_owned).collect();
        text.lines().skip(1).map(cells).collect()
    };
    let truth = fs::read(made.join("fibs/truth.ips.zst")).expect("the truth");
    let truth = String::from_utf8(zstd::decode_all(&truth[..]).expect("zstd")).expect("text");
    let truth: Vec<u64> =
        truth.lines().map(|line| u64::from_str_radix(line.trim(), 16).expect("hex")).collect();
    let number = |cell: &String| cell.parse::<u64>().expect("a number");

    let instructions = table("flow_instructions", &["--column", "address"]);
    let instructions: Vec<u64> = instructions.iter().map(|row| number(&row[0])).collect();
    assert!(instructions == truth, "{} of {}", instructions.len(), truth.len());
    let blocks = table("flow_blocks", &["--column", "address,instructions"]);
    let mut at = 0;
    for block in &blocks {
        assert_eq!(number(&block[0]), truth[at]);
        at += number(&block[1]) as usize;
    }
    assert_eq!(at, truth.len());

    // A call begins with an instruction of its function, and contains other instructions of it.
    let calls = table("flow_calls", &["--column", "begin,instructions,address,quality,function"]);
    for call in &calls {
        let (begin, count) = (number(&call[0]) as usize, number(&call[1]) as usize);
        assert_eq!(number(&call[2]), truth[begin], "{call:?}");
        assert!(begin + count <= truth.len(), "{call:?}");
    }
    let fib = calls.iter().filter(|call| call[4] == "fib");
    assert!(fib.clone().count() > 10 && fib.clone().all(|call| call[3] == "exact"));
    // The number of calls is the number of executions of the first instruction.
    let first = fib.clone().next().map(|call| number(&call[2])).expect("a call");
    assert_eq!(fib.count(), truth.iter().filter(|ip| **ip == first).count());

    assert_eq!(table("flow_gaps", &[]).len(), 0);
    let packets = table("flow_packets", &["--column", "kind"]);
    let shown = run(&place, "dump", &file, &words(&["--show", "packets"]));
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let shown: Vec<&str> = shown.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(packets.len(), shown.len());
    assert_eq!(table("flow_calls", &["--limit", "3"]).len(), 3);

    // Without the code nothing is invented: there is a gap, and it is reported.
    let words = ["table", &file, "--name", "flow_gaps", "--symfs", "nowhere"];
    let output = place.lat(&words);
    assert_eq!(output.status.code(), Some(0));
    let (rows, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(rows.contains("the code is not known") && said.contains("warning: "), "{rows} {said}");
}

#[test]
fn the_finest_trace_has_the_factor_0_and_the_coarsest_100() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let file = |name: &str| made.join(name).join("perf.data").display().to_string();
    let (fine, coarse, none) = (file("fibscyc"), file("fibsnoretcomp"), file("fibs"));
    let found = place.json(&["flow", "trf", &fine, &coarse, "--symfs", &machine, "--json"]);
    let of = |number: usize, what: &str| found["traces"][number][what].as_f64();
    assert_eq!((of(0, "trf"), of(1, "trf")), (Some(0.0), Some(100.0)), "{found}");
    // This program has packets with cycle counts after every few branches.
    assert!(of(0, "median_instructions") < of(1, "median_instructions"), "{found}");
    assert!(of(0, "median_ns").is_some_and(|nanos| (1.0..1000.0).contains(&nanos)), "{found}");
    // A trace without times has no temporal resolution, and this is reported.
    let output = place.lat(&["flow", "trf", &none, &fine, "--symfs", &machine, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(found["traces"][0]["median_ns"].is_null(), "{found}");
    assert!(found["traces"][1]["trf"].is_null(), "{found}");
}

#[test]
fn what_was_covered_is_the_truth() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let folder = made.join("fibs");
    let truth = fs::read(folder.join("truth.ips.zst")).expect("the truth");
    let truth = zstd::decode_all(&truth[..]).expect("zstd");
    let truth: Vec<String> =
        String::from_utf8_lossy(&truth).split_whitespace().map(str::to_owned).collect();
    let different: std::collections::BTreeSet<&String> = truth.iter().collect();
    let file = folder.join("perf.data").display().to_string();
    let words = ["flow", "coverage", &file, "--symfs", &machine];
    let found = place.json(&[&words[..], &["--json"]].concat());
    let sum = |key: &str| {
        let of = found["functions"].as_array().expect("functions").iter();
        of.map(|function| function[key].as_u64().expect("a number")).sum::<u64>()
    };
    assert_eq!(sum("instructions"), truth.len() as u64);
    assert_eq!(sum("different_instructions"), different.len() as u64);
    assert_eq!(sum("blocks"), found["blocks"]);
    // The program has no debug information, so no source file is known, and nothing is listed.
    let lcov = place.lat(&[&words[..], &["--format", "lcov"]].concat());
    assert!(lcov.stdout.is_empty(), "{}", String::from_utf8_lossy(&lcov.stdout));
}

#[test]
fn the_longest_intervals_have_their_flow_and_all_their_picture() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let file = made.join("fibs/perf.data").display().to_string();
    let words = ["flow", "delta", &file, "--symfs", &machine, "--from", "insn:call", "--to"];
    let more = ["insn:ret", "--pair", "innermost", "--flow", "5", "--svg", "d.svg", "--json"];
    let found = place.json(&[&words[..], &more[..]].concat());
    let intervals = found["intervals"].as_array().expect("intervals");
    let length = |of: &serde_json::Value| of["instructions"].as_u64().expect("a number");
    let mut lengths: Vec<u64> = intervals.iter().map(length).collect();
    lengths.sort_unstable_by_key(|of| std::cmp::Reverse(*of));
    let longest = found["longest"].as_array().expect("the longest");
    assert_eq!(longest.iter().map(length).collect::<Vec<_>>(), lengths[..5]);
    for of in longest {
        let flow = of["flow"].as_array().expect("its flow");
        assert_eq!(flow.iter().map(length).sum::<u64>(), length(of), "{of}");
        assert!(flow.windows(2).all(|two| two[0]["function"] != two[1]["function"]));
    }
    // Each bar has a title with its count.
    let picture = fs::read_to_string(place.0.join("d.svg")).expect("a picture");
    let bars = picture.split("<title>").skip(1).filter_map(|of| of.split("</title>").next());
    let count = |bar: &str| {
        let digits: String =
            bar.rsplit(": ").next()?.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    };
    let sum: u64 = bars.filter_map(count).sum();
    assert_eq!(sum, intervals.len() as u64);
}

/// Returns a `perf.data` whose only packet buffer was full from one byte of the packets until the PSB at
/// another: the packets between are missing, and the kernel reports this in an additional record.
fn full_between(file: &Path, full: usize, psb: usize, times: [u64; 2]) -> Vec<u8> {
    const AUX: u32 = 11;
    const AUXTRACE: u32 = 71;
    let bytes = fs::read(file).expect("a recording");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let size = |at: usize| usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
    let find = |kind: u32| {
        let mut at = word(40) as usize;
        while bytes[at..at + 4] != kind.to_le_bytes() {
            at += size(at);
        }
        at
    };
    let (aux, auxtrace) = (find(AUX), find(AUXTRACE));
    let behind = aux + size(aux);
    let record = |offset: usize, count: usize, flags: u64, time: u64| {
        let mut record = bytes[aux..behind].to_vec();
        // Offset, size and flags; then the thread and the time.
        for (at, word) in [(8, offset as u64), (16, count as u64), (24, flags), (40, time)] {
            record[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        record
    };
    let packets_at = auxtrace + size(auxtrace);
    let (all, more) = (word(auxtrace + 8) as usize, behind - aux);
    let packets = &bytes[packets_at..packets_at + all];
    let mut left = [&packets[..full], &packets[psb..]].concat();
    let first = record(0, full, 1, times[0]);
    let second = record(full, left.len() - full, 0, times[1]);
    // The size of the file does not change: PAD packets fill it.
    left.resize(all - more, 0);
    let mut head = bytes[auxtrace..packets_at].to_vec();
    head[8..16].copy_from_slice(&(left.len() as u64).to_le_bytes());
    let between = &bytes[behind..auxtrace];
    [&bytes[..aux], &first, &second, between, &head, &left, &bytes[packets_at + all..]].concat()
}

#[test]
fn a_buffer_that_was_full_is_a_loss_with_its_time_and_a_gap_at_its_place() {
    let Some(made) = data("made") else { return };
    let place = Place::new();
    let machine = machine(&place, &made);
    let folder = made.join("fibscyc");
    let original = folder.join("perf.data");
    let output = run(
        &place,
        "dump",
        &original.display().to_string(),
        &words(&["--show", "packets", "--symfs", &machine]),
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let packets: Vec<(usize, &str)> = text
        .lines()
        .filter_map(|line| {
            let (at, packet) = line.split_once("  ")?;
            Some((usize::from_str_radix(at, 16).ok()?, packet))
        })
        .collect();
    let second = packets.iter().rposition(|(_, packet)| *packet == "psb").expect("a second PSB");
    let (full, psb) = (packets[second * 2 / 3].0, packets[second].0);
    assert!(full > 500 && psb > full + 500, "{full} {psb}");
    let times = [20_016_000_000_000, 20_016_002_000_000];
    fs::write(place.0.join("full.data"), full_between(&original, full, psb, times))
        .expect("a file");

    // All remaining packets are decoded, and nothing else.
    let table = |name: &str, columns: &str| {
        let words =
            ["table", "full.data", "--name", name, "--column", columns, "--symfs", &machine];
        let output = place.lat(&words);
        let rows = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows = rows.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect());
        (output.status.code(), rows.collect::<Vec<Vec<String>>>())
    };
    let truth = fs::read(folder.join("truth.ips.zst")).expect("the truth");
    let truth = zstd::decode_all(&truth[..]).expect("zstd");
    let truth: Vec<u64> = String::from_utf8_lossy(&truth)
        .split_whitespace()
        .map(|word| u64::from_str_radix(word, 16).expect("hex"))
        .collect();
    let (status, rows) = table("flow_instructions", "address,ts");
    assert_eq!(status, Some(1));
    let found: Vec<u64> = rows.iter().map(|row| row[0].parse().expect("a number")).collect();
    let same = found.iter().zip(&truth).take_while(|(one, other)| one == other).count();
    let rest = &found[same..];
    assert!(same > 1000 && rest.len() > 1000 && found.len() + 1000 < truth.len(), "{same}");
    assert_eq!(rest, &truth[truth.len() - rest.len()..]);

    // One gap, at the end of the packets, from the last known time before it to the first one after it.
    let (_, gaps) = table("flow_gaps", "cause,byte,ts,end_ts");
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert_eq!(gaps[0][..2], ["the buffer for packets was full".to_owned(), full.to_string()]);
    let nanos = |text: &String| text.parse::<u64>().expect("a time");
    let (begin, end) = (nanos(&gaps[0][2]), nanos(&gaps[0][3]));
    assert!(begin >= nanos(&rows[same - 1][1]) && end <= nanos(&rows[same][1]), "{gaps:?}");
    assert!(end > begin, "{gaps:?}");
    // No call extends over the gap: calls open at its begin have no known end.
    let (_, calls) = table("flow_calls", "begin,instructions,quality");
    let over = calls.iter().filter(|row| {
        let (first, count) = (nanos(&row[0]), nanos(&row[1]));
        row[2] == "exact" && first < same as u64 && first + count > same as u64
    });
    assert_eq!(over.count(), 0);

    // The loss begins at the previous record, and ends when tracing resumed.
    let losses = place.lat(&["table", "full.data", "--name", "losses"]).stdout;
    let losses = String::from_utf8_lossy(&losses).into_owned();
    assert_eq!(losses.lines().count(), 2, "{losses}");
    assert!(losses.contains("full") && losses.contains(&times[1].to_string()), "{losses}");
    let info = place.json(&["info", "full.data", "--json"]);
    assert_eq!(info["losses"].as_array().map(Vec::len), Some(1), "{info}");
    assert_eq!(info["losses"][0]["cause"], "full", "{info}");
    let text = place.lat(&["info", "full.data"]).stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(!text.contains("none that was counted"), "{text}");
    // The complete file has no loss.
    let whole = place.json(&["info", &original.display().to_string(), "--json"]);
    assert_eq!(whole["losses"].as_array().map(Vec::len), Some(0), "{whole}");
    // A copy has the same gap.
    assert!(
        place.lat(&["convert", "full.data", "-o", "copy.ctf", "--to", "ctf2"]).status.success()
    );
    let gaps_of = |of: &str| {
        let output = place.lat(&["table", of, "--name", "flow_gaps", "--symfs", &machine]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(gaps_of("copy.ctf"), gaps_of("full.data"));
}
