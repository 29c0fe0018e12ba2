// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces that others recorded, against what babeltrace 2.1.2 prints of them.
//!
//! `EXPECTED.tsv` beside the traces has, for each, that program's exit code, the
//! number of its lines and the first twelve digits of the SHA-1 of its text.
//! Where the traces are absent the tests say so and pass.

use std::fs;
use std::path::{Path, PathBuf};

use lateralis_ctf::{Reader, open};
use lateralis_model::text::Babeltrace;

/// Every difference, with its reason.
const PAGE: &str = include_str!("../../../docs/reference/formats/babeltrace-differences.md");

/// The trace, and the number of events where there is one, of each row of a table.
fn table(heading: &str) -> Vec<(&'static str, Option<u64>)> {
    let (_, section) = PAGE.split_once(&format!("## {heading}\n")).expect(heading);
    let rows = section.split("\n## ").next().unwrap().lines();
    let rows: Vec<_> = rows
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("| `")?.split_once("` |")?;
            Some((name, rest.split('|').next()?.trim().parse().ok()))
        })
        .collect();
    assert!(!rows.is_empty(), "{heading}");
    rows
}

fn traces() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    if path.join("EXPECTED.tsv").is_file() {
        return Some(path);
    }
    println!("skipped: no traces at {}", path.display());
    None
}

/// Number of lines, the SHA-1 of the text, and whether anything was damaged.
fn print(reader: &Reader) -> (u64, String, bool) {
    let printer = Babeltrace::new(reader.trace());
    let mut merge = reader.events();
    let (mut lines, mut text) = (0, Vec::new());
    while let Some(event) = merge.next_event() {
        printer.line(&mut text, &event);
        lines += 1;
    }
    let damaged = !reader.damage().is_empty()
        || !reader.diagnostics().is_empty()
        || merge.damage().next().is_some();
    (lines, sha1(&text), damaged)
}

#[test]
fn text_and_verdict_are_those_of_babeltrace_but_for_the_list() {
    let Some(directory) = traces() else { return };
    let expected = fs::read_to_string(directory.join("EXPECTED.tsv")).unwrap();
    let other_text = table("Text differs");
    let whole = table("Refused there, whole here");
    let parts = table("Refused there, in parts here");
    let complained = table("Printed there, complained about here");
    let has = |table: &[(&str, Option<u64>)], name| table.iter().any(|(known, _)| *known == name);
    let mut listed: Vec<&str> = [&other_text, &whole, &parts, &complained]
        .into_iter()
        .flat_map(|table| table.iter().map(|(name, _)| *name))
        .collect();
    let mut wrong = Vec::new();
    let (mut same, mut refused) = (0, 0);
    for row in expected.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [name, _, code, lines, sum, ..] = columns[..] else { panic!("bad row: {row}") };
        listed.retain(|listed| *listed != name);
        if !directory.join(name).is_dir() {
            println!("skipped: {name} is not here");
            continue;
        }
        let reader = open::open(&directory.join(name)).unwrap();
        let (our_lines, our_sum, damaged) = print(&reader);
        if code == "0" {
            let is_same = our_sum[..12] == *sum;
            same += usize::from(is_same);
            if is_same == has(&other_text, name) || our_lines.to_string() != lines {
                wrong.push(format!("{name}: {our_lines} lines of {lines}, {our_sum}"));
            }
            if damaged != has(&complained, name) {
                wrong.push(format!("{name}: damage {damaged}"));
            }
            continue;
        }
        // What it printed before it gave up must be there; what is more, is listed.
        refused += 1;
        let table = if damaged { &parts } else { &whole };
        let listed = table.iter().find(|(known, _)| *known == name).and_then(|(_, count)| *count);
        let more = our_lines.to_string() != lines || !damaged;
        if listed != more.then_some(our_lines) {
            wrong.push(format!("{name}: {our_lines} lines of {lines}, damage {damaged}"));
        }
    }
    let (read, in_parts) = (whole.len(), parts.len());
    println!(
        "{same} traces the same, {} not; of {refused} that babeltrace refuses {read} are read, \
         {in_parts} in parts",
        other_text.len()
    );
    assert_eq!(wrong, [] as [String; 0]);
    assert_eq!(listed, [] as [&str; 0], "on the page, but not among the traces");
    assert!(same > 100);
}

#[test]
fn a_trace_and_its_conversion_to_ctf_2_print_the_same() {
    let Some(directory) = traces() else { return };
    let pairs = [
        ("ctf1/lttng-ref/basic-kernel-analysis", "ctf2/converted-basic-kernel-analysis"),
        ("generated/lttng-ust-20k", "generated/ctf2-from-lttng-ust-20k"),
    ];
    for (first, second) in pairs {
        let open = |name| open::open(&directory.join(name)).unwrap();
        assert_eq!(print(&open(first)), print(&open(second)), "{first}");
    }
}

/// Damage to one of two stream files, as it happens: what is lost is no more
/// than what was damaged.
#[test]
fn damage_to_a_real_trace_costs_what_it_covers() {
    let Some(directory) = traces() else { return };
    let directory = directory.join("ctf1/tracecompass-EPL2/memory");
    if !directory.is_dir() {
        println!("skipped: {} is not here", directory.display());
        return;
    }
    const EVENTS: u64 = 328_056;
    let read = |change: &dyn Fn(&mut Vec<u8>)| {
        let metadata = fs::read(directory.join("metadata")).unwrap();
        let mut names: Vec<String> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name != "metadata" && directory.join(name).is_file())
            .collect();
        names.sort();
        let mut largest = 0;
        let mut files: Vec<(String, Vec<u8>)> = names
            .into_iter()
            .map(|name| (name.clone(), fs::read(directory.join(name)).unwrap()))
            .collect();
        for (index, (_, bytes)) in files.iter().enumerate() {
            if bytes.len() > files[largest].1.len() {
                largest = index;
            }
        }
        change(&mut files[largest].1);
        let files = files
            .into_iter()
            .map(|(name, bytes)| lateralis_ctf::StreamFile { name, bytes: Box::new(bytes) });
        let reader = Reader::new(&metadata, files.collect());
        let mut merge = reader.events();
        let mut count = 0;
        while merge.next_event().is_some() {
            count += 1;
        }
        (count, reader.damage().len() + merge.damage().count())
    };
    assert_eq!(read(&|_| {}), (EVENTS, 0));
    // Zeros after the stream, then noise.
    assert_eq!(read(&|bytes| bytes.resize(bytes.len() + 65_536, 0)), (EVENTS, 1));
    let noise = |bytes: &mut Vec<u8>| bytes.extend((0..65_536u32).map(|i| ((i * 77) >> 3) as u8));
    assert_eq!(read(&noise), (EVENTS, 1));
    // One wrong bit in a magic number.
    let (count, damage) = read(&|bytes| bytes[1] ^= 4);
    assert_eq!((count, damage), (EVENTS, 1));
    // The last 100 kB are gone.
    let (count, damage) = read(&|bytes| bytes.truncate(bytes.len() - 100_000));
    assert!(count < EVENTS && count > EVENTS - 5000, "{count}");
    assert_eq!(damage, 1);
    // 64 bytes overwritten in the middle.
    let (count, _) = read(&|bytes| {
        let middle = bytes.len() / 2;
        bytes[middle..middle + 64].fill(0xff);
    });
    assert!(count > EVENTS * 9 / 10, "{count}");
    // The stream is empty.
    let (count, _) = read(&|bytes| bytes.clear());
    assert!(count < EVENTS);
}

/// SHA-1 [RFC 3174], to compare with sums made by `sha1sum`.
fn sha1(bytes: &[u8]) -> String {
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes(bytes.try_into().unwrap());
        }
        for i in 16..80 {
            words[i] = (words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (i, word) in words.iter().enumerate() {
            let (mix, constant) = match i / 20 {
                0 => (b & c | !b & d, 0x5a82_7999u32),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let next = a.rotate_left(5).wrapping_add(mix).wrapping_add(e);
            let next = next.wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (sum, add) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(add);
        }
    }
    state.iter().map(|word| format!("{word:08x}")).collect()
}

#[test]
fn the_sum_is_sha_1() {
    assert_eq!(sha1(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_eq!(sha1(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}
