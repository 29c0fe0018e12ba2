// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kinds of damage × real traces: everything outside the damaged packet is delivered unchanged,
//! nothing that was not written is delivered from an intact packet, and the damage is reported with
//! its position. For Genode no real trace is available: its tree is made by the rules of its
//! recorder.

use crate::genode;

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};

use lateralis_ctf::{Reader, StreamFile};
use lateralis_model::text::Babeltrace;

const TRACES: [&str; 5] = [
    "ctf1/lttng-ref/basic-kernel-analysis/kernel",
    "ctf1/tracecompass-EPL2/memory",
    "ctf2/converted-basic-kernel-analysis",
    "generated/barectf-200k",
    "generated/lttng-ust-20k",
];

type Files = Vec<(String, Vec<u8>)>;

/// Sums of the lines of the events, by file and byte at which their packet begins.
type Lines = BTreeMap<(String, u64), Vec<u64>>;

struct Reading {
    lines: Lines,
    events: usize,
    /// Files and bytes of what is damaged.
    damage: Vec<(String, Range<u64>)>,
}

fn read(metadata: &[u8], files: &Files) -> Reading {
    let stream = |(name, bytes): &(String, Vec<u8>)| StreamFile {
        name: name.clone(),
        bytes: Box::new(bytes.clone()),
    };
    let reader = Reader::new(metadata, files.iter().map(stream).collect());
    let printer = Babeltrace::new(reader.trace());
    let mut reading = Reading { lines: Lines::new(), events: 0, damage: Vec::new() };
    let mut events = reader.events();
    let mut line = Vec::new();
    while let Some(event) = events.next_event() {
        line.clear();
        printer.line(&mut line, &event);
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        let file = reader.files()[event.packet.file as usize].name.clone();
        let packet = (file, event.packet.offset_bytes);
        reading.lines.entry(packet).or_default().push(hasher.finish());
        reading.events += 1;
    }
    let all = reader.damage().iter().chain(events.damage());
    reading.damage = all.map(|d| (d.file.clone(), d.begin_bytes..d.end_bytes)).collect();
    reading
}

fn load(directory: &Path) -> Option<(Vec<u8>, Files)> {
    let directory = find(directory)?;
    let metadata = fs::read(directory.join("metadata")).ok()?;
    let mut files = Files::new();
    for entry in fs::read_dir(&directory).ok()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() && name != "metadata" && !name.starts_with('.') {
            files.push((name, fs::read(entry.path()).ok()?));
        }
    }
    files.sort();
    Some((metadata, files))
}

/// The directory with the metadata at or below this one.
fn find(directory: &Path) -> Option<PathBuf> {
    if directory.join("metadata").is_file() {
        return Some(directory.to_owned());
    }
    let entries = fs::read_dir(directory).ok()?.flatten();
    entries.filter(|entry| entry.path().is_dir()).find_map(|entry| find(&entry.path()))
}

/// Changes the bytes of a file whose packets begin at `packets`; returns the
/// bytes of the original that are no longer as they were, or `None` where the
/// file cannot be damaged so.
type Kind = fn(&mut Vec<u8>, &[u64]) -> Option<Range<u64>>;

const KINDS: [(&str, Kind); 8] = [
    ("9 bytes cut off", |bytes, _| cut(bytes, 9)),
    ("100 kB cut off", |bytes, _| cut(bytes, 100_000)),
    ("64 KiB of zeros appended", |bytes, _| {
        bytes.resize(bytes.len() + 65_536, 0);
        Some(0..0)
    }),
    ("64 KiB of noise appended", |bytes, _| {
        bytes.extend((0..65_536u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8));
        Some(0..0)
    }),
    ("64 bytes overwritten", |bytes, _| {
        let at = bytes.len() / 2;
        bytes.get_mut(at..at + 64)?.fill(0xff);
        Some(at as u64..at as u64 + 64)
    }),
    ("a bit of a magic number flipped", |bytes, packets| {
        let at = packets.get(packets.len() / 2).copied()?;
        bytes[at as usize + 1] ^= 4;
        // It is reported, and yet the packet can be read.
        Some(at..at)
    }),
    ("a packet header overwritten", |bytes, packets| {
        let at = packets.get(packets.len() / 2).copied()?;
        bytes[at as usize..at as usize + 48].fill(0xaa);
        Some(at..at + 48)
    }),
    ("the stream emptied", |bytes, _| {
        let length = bytes.len() as u64;
        bytes.clear();
        Some(0..length)
    }),
];

fn cut(bytes: &mut Vec<u8>, count: usize) -> Option<Range<u64>> {
    let length = bytes.len();
    let left = length.checked_sub(count)?;
    bytes.truncate(left);
    Some(left as u64..length as u64)
}

#[test]
fn damage_costs_the_packets_it_touches_and_is_told() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    if !shared.is_dir() {
        println!("SKIPPED: no traces at {}", shared.display());
        return;
    }
    println!("| trace | damage | events | delivered | told |\n|---|---|--:|--:|---|");
    for name in TRACES {
        let Some((metadata, files)) = load(&shared.join(name)) else {
            println!("SKIPPED: {name} is not here");
            continue;
        };
        table(name, &metadata, &files);
    }
}

#[test]
fn damage_to_a_tree_of_genode_costs_the_packets_it_touches_and_is_told() {
    let possible = table("Genode", genode::METADATA.as_bytes(), &genode::tree(9));
    assert_eq!(possible, KINDS.len());
}

/// Damages the largest stream of a trace in each way; the number of ways that were possible.
fn table(name: &str, metadata: &[u8], files: &Files) -> usize {
    let whole = read(metadata, files);
    assert_eq!(whole.damage, [], "{name}");
    let largest = (0..files.len()).max_by_key(|index| files[*index].1.len()).unwrap();
    let victim = files[largest].0.clone();
    let packets: Vec<u64> =
        whole.lines.keys().filter(|(file, _)| *file == victim).map(|(_, at)| *at).collect();
    let mut possible = 0;
    for (kind, spoil) in KINDS {
        let mut spoiled = files.clone();
        let Some(gone) = spoil(&mut spoiled[largest].1, &packets) else {
            println!("| {name} | {kind} | | | not possible here |");
            continue;
        };
        possible += 1;
        let rest = read(metadata, &spoiled);
        check(&format!("{name}: {kind}"), &whole, &rest, &victim, &packets, &gone);
        let told: Vec<String> =
            rest.damage.iter().map(|(_, b)| format!("{}..{}", b.start, b.end)).collect();
        // Undetectable faults: an empty file, and wrong values, because these formats have no
        // checksum.
        let silent = kind == "the stream emptied" || kind == "64 bytes overwritten";
        assert!(silent || !told.is_empty(), "{name}: {kind}: not told");
        let told = if told.is_empty() { "no".to_owned() } else { told.join(", ") };
        println!("| {name} | {kind} | {} | {} | {told} |", whole.events, rest.events);
    }
    possible
}

fn check(
    what: &str,
    whole: &Reading,
    rest: &Reading,
    victim: &str,
    packets: &[u64],
    gone: &Range<u64>,
) {
    for ((file, at), lines) in &whole.lines {
        let key = (file.clone(), *at);
        let next = packets.iter().find(|packet| *packet > at).copied().unwrap_or(u64::MAX);
        let touched = file == victim && gone.start < next && gone.end > *at;
        let delivered = rest.lines.get(&key).map_or(&[][..], Vec::as_slice);
        if !touched {
            assert!(delivered == lines, "{what}: the intact packet at {at} of {file} differs");
        } else if what.ends_with("cut off") {
            assert!(lines.starts_with(delivered), "{what}: events that nobody wrote");
        }
    }
    let known = |key: &(String, u64)| whole.lines.contains_key(key);
    assert!(rest.lines.keys().all(known), "{what}: a packet that nobody wrote");
}
