// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Directories: an input is files with names, opened as `lat` opens what it is given.
//! So every importer is reached by what sniffs its format, alone and joined.

use crate::{captures, interchange, perfdata, pieces, seeds, trace};
use lateralis_model::{Interval, Source};
use lateralis_traces::{OpenOptions, open};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Files of an input; what comes after is left out.
const FILES_MAX: usize = 12;

/// In memory where that is possible, for thousands of small files a second.
static BASE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
});

/// Each piece is a line with a path, and the content of that file. Besides not
/// panicking: events of parts joined are those of the parts, in no fewer numbers, and what is missing
/// begins before it ends.
pub fn check(input: &[u8]) {
    // A thread of its own each, for the tests run several.
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let folder = BASE.join(format!("lateralis-fuzz-{process}-{thread:?}"));
    fs::create_dir_all(&folder).expect("temporary files can be made");
    let mut written = Vec::new();
    for piece in pieces::split(input).take(FILES_MAX) {
        let end = piece.iter().position(|&byte| byte == b'\n').unwrap_or(piece.len());
        let path = folder.join(name(&piece[..end]));
        let content = piece.get(end + 1..).unwrap_or_default();
        let made = path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok());
        if made && fs::write(&path, content).is_ok() {
            written.push(path);
        }
    }
    let options = OpenOptions { memory_bytes: 1 << 20, ..OpenOptions::default() };
    if let Ok(joined) = open(std::slice::from_ref(&folder), &options) {
        let mut apart = 0;
        for part in joined.parts() {
            apart += count(part.source.as_ref());
        }
        assert_eq!(count(&joined), apart, "events joined, and of each part");
        let _ = (joined.faults(), joined.remarks(), joined.interval(), joined.streams());
    }
    if let Some(first) = written.first()
        && let Err(error) = open(std::slice::from_ref(first), &options)
    {
        assert!(!error.to_string().is_empty());
    }
    fs::remove_dir_all(&folder).expect("temporary files can be removed");
}

/// A path of at most three parts that stays in the folder.
fn name(bytes: &[u8]) -> PathBuf {
    let keep = |&byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let parts = bytes.split(|&byte| byte == b'/').take(3);
    let parts = parts.map(|part| part.iter().copied().filter(keep).take(32).collect());
    let parts = parts.filter_map(|part: Vec<u8>| String::from_utf8(part).ok());
    let path: PathBuf = parts.filter(|part| !part.is_empty()).collect();
    if path.as_os_str().is_empty() { "file".into() } else { path }
}

fn count(source: &dyn Source) -> usize {
    let mut events = source.events();
    let mut count = 0;
    // A class of one bit makes very many out of few bytes.
    while count < 100_000 && events.advance() {
        let event = events.event();
        for (_, field) in event.payload().into_iter().flatten() {
            let _ = (field.as_u64(), field.as_text());
        }
        count += 1;
    }
    let damage = events.damage();
    let damage = source.damage().iter().chain(&damage).map(|one| one.interval);
    for Interval { begin, end } in damage.chain(source.losses().iter().map(|one| one.interval)) {
        let ends = begin.zip(end);
        assert!(ends.is_none_or(|(begin, end)| begin <= end), "missing from {begin:?} to {end:?}");
    }
    count
}

/// A CTF trace, alone and as a tree, and one file of every other format.
pub fn good() -> Vec<Vec<u8>> {
    let file = |name: &str, content: &[u8]| [name.as_bytes(), b"\n", content].concat();
    let mut all = Vec::new();
    for input in trace::good().iter().take(4) {
        let parts: Vec<_> = pieces::split(input).collect();
        let (metadata, stream) = (file("metadata", parts[0]), parts[1]);
        all.push(pieces::join(&[&metadata, &file("s", stream)]));
        let copy = file("inner/metadata", parts[0]);
        all.push(pieces::join(&[&metadata, &file("a/s", stream), &copy, &file("inner/t", stream)]));
    }
    let others = [captures::good(), interchange::good(), perfdata::good(), seeds::good()].concat();
    all.extend(others.iter().map(|content| file("one", content)));
    let pairs = others.windows(2).map(|two| [file("one", &two[0]), file("two", &two[1])]);
    all.extend(pairs.map(|pair| pieces::join(&pair)));
    all
}
