// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conversions, compared with the results of Perfetto's trace processor.

use std::collections::BTreeMap;

use crate::foreign::{TraceProcessor, perfetto, spans, table};
use crate::place::Place;

/// Formats that the trace processor reads.
pub const TARGETS: [(&str, &str); 3] =
    [("perfetto", "pftrace"), ("fxt", "fxt"), ("chrome", "json")];

/// Known differences, on purpose or caused by the tool: prefix of the file name, and a target or all.
///
/// | file | why |
/// |---|---|
/// | F12-control-char | the tool reads names in JSON without decoding their escapes |
/// | F15-negative-ts | the tool has no time below 0; the conversion reports this |
/// | F15-text-ids | the tool truncates thread ids in JSON to 32 bits |
/// | F21-null-ts | events without a time are kept unchanged; the tool sets their time to 0 |
const KNOWN: [(&str, &str); 5] = [
    ("F12-control-char", "chrome"),
    ("F15-negative-ts", "chrome"),
    ("F15-negative-ts", "perfetto"),
    ("F15-text-ids", "chrome"),
    ("F21-null-ts", "chrome"),
];

/// Returns the names whose spans in a conversion differ from those here, according to the trace processor,
/// with target, count and nanoseconds of both. Spans of length zero are ignored, because the tool stores
/// instants as such spans.
pub fn exported(
    tool: &TraceProcessor,
    place: &Place,
    file: &str,
    targets: &[(&str, &str)],
) -> Vec<String> {
    let own = spans(place, file, 1);
    let mut wrong = Vec::new();
    for (target, ending) in targets {
        if KNOWN.iter().any(|(known, of)| file.starts_with(known) && of == target) {
            continue;
        }
        let copy = format!("copy.{ending}");
        let output = place.lat(&["convert", file, "--to", target, "-o", &copy, "--force"]);
        let is_done = output.status.code().is_some_and(|code| code < 2);
        assert!(is_done, "{}", String::from_utf8_lossy(&output.stderr));
        let other = perfetto(tool, place, &copy, 1);
        for name in own.keys().chain(other.keys().filter(|name| !own.contains_key(*name))) {
            let (ours, theirs) = (own.get(name), other.get(name));
            if ours != theirs {
                wrong.push(format!("{target}: {name}: {ours:?} here, {theirs:?} there"));
            }
        }
    }
    wrong
}

#[test]
fn conversions_of_real_traces_have_their_spans_in_the_trace_processor() {
    let Some(tool) = TraceProcessor::find() else { return };
    let shared = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let mut files = Vec::new();
    for folder in ["cases/reading", "data/traces/perfetto-MIT"] {
        let entries = std::fs::read_dir(shared.join(folder)).into_iter().flatten().flatten();
        let is_trace = |path: &std::path::PathBuf| {
            let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            ["json", "pftrace", "perfetto-trace"].contains(&ending.as_str())
        };
        files.extend(entries.map(|entry| entry.path()).filter(is_trace));
    }
    if files.is_empty() {
        println!("SKIPPED: no traces at {}", shared.display());
    }
    files.sort();
    let place = Place::new();
    let mut wrong = Vec::new();
    for (number, path) in files.iter().enumerate() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // This file has no event.
        if name == "F19-empty-array.json" {
            continue;
        }
        std::fs::copy(path, place.0.join(&name)).unwrap();
        // The tool takes three seconds to start, so most files are converted to one target only, in rotation.
        let is_whole = ["F02", "F16", "F24-clang-run1"].iter().any(|it| name.starts_with(it))
            || !name.starts_with('F');
        let next = number % TARGETS.len();
        let targets = if is_whole { &TARGETS[..] } else { &TARGETS[next..=next] };
        let found = exported(&tool, &place, &name, targets);
        wrong.extend(found.into_iter().map(|one| format!("{name}: {one}")));
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn threads_whose_ids_are_no_numbers_stay_apart_in_copies() {
    let place = Place::new();
    let text = r#"[
        {"ph":"X","name":"k","ts":1,"dur":2,"pid":"CUDA 0","tid":"stream 7"},
        {"ph":"X","name":"k","ts":1,"dur":3,"pid":"CUDA 0","tid":"stream 8"},
        {"ph":"X","name":"m","ts":1,"dur":4,"pid":0,"tid":139872345672448},
        {"ph":"X","name":"m","ts":2,"dur":5,"pid":0,"tid":139872345672449},
        {"ph":"X","name":"n","ts":4,"dur":6,"pid":12,"tid":13}]"#;
    std::fs::write(place.0.join("t.json"), text).unwrap();
    let whole = |file: &str| -> Vec<String> {
        let row = |row: &BTreeMap<String, String>| {
            let cells = ["span", "pid", "tid", "process", "thread", "duration"];
            cells.map(|cell| row.get(cell).cloned().unwrap_or_default()).join(" ")
        };
        let mut rows: Vec<String> = table(&place, file, "spans").iter().map(row).collect();
        rows.sort();
        rows
    };
    let own = whole("t.json");
    assert_eq!(own.len(), 5);
    for target in ["ctf", "ctf2"] {
        let output = place.lat(&["convert", "t.json", "--to", target, "-o", target]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(whole(target), own, "{target}");
    }
}
