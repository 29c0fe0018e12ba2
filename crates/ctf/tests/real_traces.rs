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

/// Its text differs, and ours is right: two of its events are one tick of 357 ps
/// apart, which floating point makes the same nanosecond, so it takes them in
/// the order of the streams.
const ACCEPTED: [&str; 1] = ["ctf1/tracecompass-EPL2/double_counters"];

/// Traces that babeltrace 2.1.2 refuses, and the events in them: the first two
/// as Trace Compass counts them, the others as their own tests say.
const REFUSED_BY_OTHERS: [(&str, u64); 9] = [
    ("ctf1/tracecompass-EPL2/funky_trace", 100_002),
    ("ctf1/tracecompass-EPL2/dpdk_service_cores", 66_464),
    ("ctf2/actf-LGPL3/CTF2-PMETA-1.0-be", 1),
    ("ctf2/actf-LGPL3/CTF2-PMETA-1.0-le", 1),
    ("ctf2/actf-LGPL3/dyn_str_utf8", 1),
    ("ctf2/actf-LGPL3/fxd_len_bit_map", 3),
    ("ctf2/actf-LGPL3/null_term_str_utf32", 1),
    ("ctf2/actf-LGPL3/var_len_int_clk_role", 1),
    ("ctf2/actf-LGPL3/var_len_int_enum", 1),
];

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
fn text_is_that_of_babeltrace_byte_for_byte() {
    let Some(directory) = traces() else { return };
    let expected = fs::read_to_string(directory.join("EXPECTED.tsv")).unwrap();
    let mut wrong = Vec::new();
    let (mut same, mut refused) = (0, 0);
    for row in expected.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [name, _, code, lines, sum, ..] = columns[..] else { panic!("bad row: {row}") };
        if !directory.join(name).is_dir() {
            println!("skipped: {name} is not here");
            continue;
        }
        let reader = open::open(&directory.join(name)).unwrap();
        let (our_lines, our_sum, damaged) = print(&reader);
        if code != "0" {
            // What it printed before it gave up must be there, and more may be.
            refused += 1;
            if our_lines < lines.parse().unwrap() {
                wrong.push(format!("{name}: {our_lines} lines, not even {lines}"));
            }
            let _ = damaged;
        } else if our_sum[..12] == *sum {
            same += 1;
        } else if !ACCEPTED.contains(&name) || our_lines.to_string() != lines {
            wrong.push(format!("{name}: {our_lines} lines of {lines}, {our_sum}"));
        }
    }
    println!("{same} traces the same, {refused} that babeltrace refuses");
    assert_eq!(wrong, [] as [String; 0]);
    assert!(same > 100);
}

#[test]
fn traces_that_others_refuse_are_read() {
    let Some(directory) = traces() else { return };
    for (name, events) in REFUSED_BY_OTHERS {
        if !directory.join(name).is_dir() {
            println!("skipped: {name} is not here");
            continue;
        }
        let (lines, _, damaged) = print(&open::open(&directory.join(name)).unwrap());
        assert_eq!((lines, damaged), (events, false), "{name}");
    }
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
    // Zeros behind the stream, then noise.
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

/// The metadata suite of yactfr: texts that are right have no fault, those that
/// are wrong mostly have one. What is let pass is lenient on purpose: unknown
/// or doubled attributes, values out of a range that nobody needs to read the
/// stream.
#[test]
fn metadata_texts_of_a_conformance_suite() {
    let Some(directory) = traces() else { return };
    for (version, right, wrong) in [("ctf-1", 70, 84), ("ctf-2", 76, 65)] {
        let suite = directory.join("ctf1/yactfr-MIT/tests-metadata-text").join(version);
        let Ok(entries) = fs::read_dir(&suite) else {
            println!("skipped: {} is not here", suite.display());
            continue;
        };
        let (mut passed, mut failed) = (0, 0);
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let bytes = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let text = text.strip_prefix("---\n").unwrap_or(&text);
            let text = text.split("\n---\n").next().unwrap();
            let faults = Reader::new(text.as_bytes(), Vec::new()).diagnostics().to_vec();
            if name.starts_with("pass-") {
                assert_eq!(faults, [], "{name}");
                passed += 1;
            } else {
                failed += usize::from(!faults.is_empty());
            }
        }
        assert_eq!((passed, failed >= wrong), (right, true), "{version}: {failed} found wrong");
    }
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
