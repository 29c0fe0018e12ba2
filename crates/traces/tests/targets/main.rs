// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One trace with every feature, written as every target, and read by independent tools. Differences must
//! be listed by the writer as not kept, or be a stated limit of the tool; and the writer's list must be
//! correct.

mod babeltrace;
mod marks;
mod nested;
mod pictures;
mod rich;
mod tables;
mod tools;
mod traces;

use std::path::{Path, PathBuf};

use lateralis_traces::{OpenOptions, Options, Target, convert, open};
use serde_json::Value;

/// Writes the trace as a target. Returns the path, and the list of features that were not kept.
fn written(target: Target, name: &str) -> (PathBuf, Vec<(String, u64)>) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let options = Options { replace: true, header_and_text: true, ..Options::default() };
    let converted = convert(&rich::trace(), target, &path, &options).unwrap();
    assert_eq!(converted.damage, []);
    let said = converted.dropped.iter().map(|(what, count)| (what.to_owned(), count));
    (path, said.collect())
}

/// A trace as read by our own reader.
fn lines(path: &Path) -> Vec<Value> {
    let trace = open(&[path.to_owned()], &OpenOptions::default()).unwrap();
    let mut copy = path.as_os_str().to_owned();
    copy.push(".copy.jsonl");
    let options = Options { replace: true, ..Options::default() };
    convert(&trace, Target::JsonLines, Path::new(&copy), &options).unwrap();
    let text = std::fs::read_to_string(copy).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
