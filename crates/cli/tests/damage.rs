// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Damaged traces: `lat info` reports place, kind and time of the damage, and exits with 1. `lat recover`
//! makes a clean trace of the rest, which babeltrace2 reads, too.

use crate::place;

use place::Place;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Traces of other tools, if available; the Lateralis trace is recorded here.
const TRACES: [(&str, &str); 5] = [
    ("LTTng UST", "ctf-babeltrace-CC0/2/succeed/multi-domains/ust"),
    ("LTTng kernel", "ctf-babeltrace-CC0/2/succeed/multi-domains/kernel"),
    ("barectf", "generated/barectf-200k"),
    ("CTF 2", "generated/ctf2-from-lttng-ust-20k"),
    ("perf", "generated/perf-sched-1s"),
];

/// Whether the damage can be detected: of these formats, only Lateralis recordings have checksums.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    Always,
    /// Reported as a remark, or as damage if the index lists the packets.
    Remark,
    OnlyWithChecksum,
    /// The trace itself is not damaged.
    Never,
}

type Kind = (&'static str, Told, fn(&Path));

const KINDS: [Kind; 9] = [
    ("9 bytes cut off", Told::Always, |file| change(file, |bytes| bytes.truncate(bytes.len() - 9))),
    ("half cut off", Told::Always, |file| {
        // Not at the boundary of a packet.
        change(file, |bytes| bytes.truncate((bytes.len() / 2) | 1));
    }),
    ("zeros appended", Told::Always, |file| change(file, |b| b.resize(b.len() + 5000, 0))),
    ("noise appended", Told::Always, |file| {
        let noise = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8);
        change(file, |bytes| bytes.extend(noise));
    }),
    ("bytes overwritten", Told::OnlyWithChecksum, |file| {
        change(file, |bytes| {
            let at = bytes.len() / 2;
            bytes[at..at + 64].fill(0xff);
        });
    }),
    ("magic flipped", Told::Always, |file| change(file, |bytes| bytes[1] ^= 4)),
    ("stream emptied", Told::Remark, |file| change(file, Vec::clear)),
    ("index missing", Told::Never, |file| {
        let _ = fs::remove_dir_all(file.parent().unwrap().join("index"));
    }),
    ("index wrong", Told::Never, |file| {
        let index = file.parent().unwrap().join("index");
        fs::create_dir_all(&index).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned() + ".idx";
        fs::write(index.join(name), [0xa5; 1000]).unwrap();
    }),
];

fn change(file: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    how(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// Copies a directory; the copy is writable.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::write(&to, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// Returns the largest stream file.
fn victim(directory: &Path) -> PathBuf {
    let mut files = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true if path.ends_with("index") => {}
                true => folders.push(path),
                false if path.ends_with("metadata") => {}
                false => files.push((entry.metadata().unwrap().len(), path)),
            }
        }
    }
    files.sort();
    files.pop().expect("a stream").1
}

/// Returns the lines of `lat print`, with the number of occurrences of each.
fn lines(place: &Place, trace: &str) -> BTreeMap<String, usize> {
    let output = place.lat(&["print", trace, "--format", "babeltrace"]);
    let mut lines = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        *lines.entry(line.to_owned()).or_default() += 1;
    }
    lines
}

fn info(place: &Place, trace: &str) -> (Option<i32>, Value) {
    let output = place.lat(&["info", trace, "--json"]);
    let value = serde_json::from_slice(&output.stdout).expect("JSON");
    (output.status.code(), value)
}

fn spoil(place: &Place, name: &str, original: &Path) -> Result<(), String> {
    let whole = lines(place, original.to_str().unwrap());
    let clean = place.0.join("clean");
    copy(original, &clean);
    if info(place, "clean").0 != Some(0) {
        return Err("it is damaged already".to_owned());
    }
    for (kind, told, damage) in KINDS {
        let what = format!("{name}, {kind}");
        let (bad, good) = (place.0.join("bad"), place.0.join("good"));
        let _ = (fs::remove_dir_all(&bad), fs::remove_dir_all(&good));
        copy(original, &bad);
        damage(&victim(&bad));
        let rest = lines(place, "bad");
        let (status, facts) = info(place, "bad");
        let list = facts["damage"].as_array().expect("a list");
        let has_checksum = name == "own";
        match told {
            Told::Always => assert!(!list.is_empty(), "{what}: not told"),
            Told::OnlyWithChecksum if has_checksum => assert!(!list.is_empty(), "{what}"),
            Told::OnlyWithChecksum => {}
            Told::Remark => {
                let said = if has_checksum { "missing: " } else { "is empty" };
                assert!(facts.to_string().contains(said), "{what}: {facts}");
            }
            Told::Never => {
                assert!(list.is_empty(), "{what}: {facts}");
                assert!(rest == whole, "{what}: other events");
            }
        }
        assert_eq!(status, Some(i32::from(!list.is_empty())), "{what}");
        let page = String::from_utf8(place.lat(&["info", "bad"]).stdout).unwrap();
        for item in list {
            let [file, reason] = ["file", "reason"].map(|key| item[key].as_str().expect("text"));
            let [begin, end] = ["begin_bytes", "end_bytes"].map(|key| item[key].as_u64().unwrap());
            assert!(begin <= end && !file.is_empty(), "{what}: {item}");
            let timed = !item["from_ns"].is_null() || !item["to_ns"].is_null();
            // A file without an undamaged packet has no neighbours that bound the time.
            assert!(timed || rest.len() < whole.len(), "{what}: {item}");
            let shown = page
                .lines()
                .any(|line| line.contains(reason) && line.contains(&format!("{begin}..{end}")));
            assert!(shown || list.len() > 20, "{what}: {item} is not in\n{page}");
        }
        if told != Told::OnlyWithChecksum || has_checksum {
            let known = |(line, count): (&String, &usize)| whole.get(line) >= Some(count);
            assert!(rest.iter().all(known), "{what}: events that nobody wrote");
        }
        recovered(place, &what, &rest, !list.is_empty());
    }
    Ok(())
}

/// Checks that `lat recover` makes a clean trace with these events.
fn recovered(place: &Place, what: &str, rest: &BTreeMap<String, usize>, damaged: bool) {
    let output = place.lat(&["recover", "bad", "-o", "good"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(i32::from(damaged)), "{what}: recover: {text}");
    let (status, facts) = info(place, "good");
    let list = facts["damage"].as_array().expect("a list");
    assert!(status == Some(0) && list.is_empty(), "{what}: recovered: {facts}");
    let count = rest.values().sum::<usize>();
    assert_eq!(lines(place, "good").values().sum::<usize>(), count, "{what}: recovered");
    let theirs = Command::new("babeltrace2").arg(place.0.join("good")).output();
    let Ok(theirs) = theirs else {
        println!("SKIPPED: babeltrace2 is not here");
        return;
    };
    // Damaged packets count as lost, and babeltrace2 reports this, too.
    let said = String::from_utf8_lossy(&theirs.stderr);
    let lost =
        said.lines().all(|line| line.is_empty() || line.starts_with("WARNING: Tracer discarded "));
    assert!(theirs.status.success() && lost, "{what}: {said}");
    let lines = theirs.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    assert_eq!(lines.count(), count, "{what}: babeltrace2");
}

#[test]
fn damage_is_shown_and_the_rest_recovered_from_a_recording() {
    let place = Place::new();
    let output = place.lat(&["demo", "-o", "demo", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let original = place.0.join("demo/ctf");
    spoil(&place, "own", &original).expect("a good recording");
}

#[test]
fn damage_is_shown_and_the_rest_recovered_from_traces_of_others() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    for (name, path) in TRACES {
        let original = traces.join(path);
        if !original.is_dir() {
            println!("SKIPPED: no traces at {}", original.display());
            continue;
        }
        if let Err(why) = spoil(&Place::new(), name, &original) {
            println!("SKIPPED: {name}: {why}");
        }
    }
}

#[test]
fn a_part_of_a_trace_alone_is_no_empty_trace() {
    let place = Place::new();
    assert!(place.lat(&["demo", "-o", "demo", "--orders", "5"]).status.success());
    let ctf = place.0.join("demo/ctf");
    let entries = fs::read_dir(&ctf).expect("streams").flatten();
    let stream = entries.map(|one| one.path()).find(|one| !one.ends_with("metadata"));
    let alone = place.0.join("alone");
    fs::create_dir(&alone).expect("a directory");
    fs::copy(stream.expect("a stream"), alone.join("stream")).expect("copied");
    fs::copy(ctf.join("metadata"), alone.join("renamed")).expect("copied");
    // The recording in a subfolder is another trace.
    fs::rename(place.0.join("demo"), alone.join("demo")).expect("moved");
    for part in ["alone/stream", "alone/renamed"] {
        let output = place.lat(&["info", part]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with("error: no metadata beside it: alone/"), "{text}");
    }
    fs::rename(alone.join("renamed"), alone.join("metadata")).expect("renamed");
    let info = place.lat(&["info", "alone/stream"]);
    assert!(info.status.success(), "{}", String::from_utf8_lossy(&info.stdout));
}
