// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One trace with everything, written as every target, and read there by tools that
//! are not ours. What differs must be what the writer says it did not keep, or a stated
//! limit of the tool; and what the writer says must be so.

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

/// Writes the trace as a target. Returns where, and what was not kept.
fn written(target: Target, name: &str) -> (PathBuf, Vec<(String, u64)>) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let options = Options { replace: true, header_and_text: true, ..Options::default() };
    let converted = convert(&rich::trace(), target, &path, &options).unwrap();
    assert_eq!(converted.damage, []);
    let said = converted.dropped.iter().map(|(what, count)| (what.to_owned(), count));
    (path, said.collect())
}

/// A trace as our own reader reads it.
fn lines(path: &Path) -> Vec<Value> {
    let trace = open(&[path.to_owned()], &OpenOptions::default()).unwrap();
    let mut copy = path.as_os_str().to_owned();
    copy.push(".copy.jsonl");
    let options = Options { replace: true, ..Options::default() };
    convert(&trace, Target::JsonLines, Path::new(&copy), &options).unwrap();
    let text = std::fs::read_to_string(copy).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
