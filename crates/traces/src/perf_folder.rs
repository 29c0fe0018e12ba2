// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A directory of `perf record --threads`.
//!
//! ```text
//! data                header, descriptions, and records of perf itself
//! data.0, data.1 …    records of each reader thread
//! ```

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lateralis_model::{Damage, DamageReason, Interval, Source};
use lateralis_perfdata::perf;
use memmap2::Mmap;

use crate::error::Error;
use crate::formats::Bytes;
use crate::packed::Unpacked;

/// Name of the file with the header.
const DATA: &str = "data";

/// The files that belong to a file of such a directory, ordered by number; empty for other files.
pub fn files_beside(data: &Path) -> Vec<PathBuf> {
    let mut first = Vec::new();
    let is_it = data.file_name().is_some_and(|name| name == DATA)
        && File::open(data)
            .and_then(|file| file.take(perf::HEADER_BYTES as u64).read_to_end(&mut first))
            .is_ok_and(|_| perf::is_of_folder(&first));
    if !is_it {
        return Vec::new();
    }
    numbered(data).into_iter().map(|(_, path)| path).collect()
}

/// Files beside `data` named `data.N`, with their numbers.
fn numbered(data: &Path) -> Vec<(u32, PathBuf)> {
    if data.file_name().is_none_or(|name| name != DATA) {
        return Vec::new();
    }
    let entries = data.parent().map(fs::read_dir).into_iter().flatten().flatten().flatten();
    let numbered = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let digits = name.to_str()?.strip_prefix(DATA)?.strip_prefix('.')?;
        let number: u32 = digits.parse().ok()?;
        let path = entry.path();
        (number.to_string() == digits && path.is_file()).then_some((number, path))
    };
    let mut found: Vec<(u32, PathBuf)> = entries.filter_map(numbered).collect();
    found.sort();
    found
}

/// Opens such a directory by its file with the header.
///
/// # Errors
/// If the header is incomplete, or a file cannot be read.
pub fn open(path: &Path, data: Bytes, limit_bytes: u64) -> Result<Box<dyn Source>, Error> {
    let found = numbered(path);
    let mut beside = Vec::new();
    for (_, path) in &found {
        let io = |source| Error::Io { path: path.clone(), source };
        let file = File::open(path).map_err(io)?;
        // A thread that read nothing left an empty file.
        if file.metadata().map_err(io)?.len() == 0 {
            continue;
        }
        // SAFETY: as for all files, see `open`: the map is read-only, and every byte is checked.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        beside.push((name_of(path), Arc::new(map) as Bytes));
    }
    let trace = perf::open_folder(&name_of(path), data, beside, limit_bytes).map_err(|error| {
        let cause = error.to_string();
        Error::Format { path: path.to_owned(), format: "perf.data", cause }
    })?;
    let present: Vec<u32> = found.iter().map(|(number, _)| *number).collect();
    Ok(match missing(&present) {
        None => Box::new(trace),
        Some(damage) => Box::new(Unpacked::new(Box::new(trace), vec![damage], Vec::new())),
    })
}

/// The missing files, which perf numbers from 0.
fn missing(present: &[u32]) -> Option<Damage> {
    let count = present.last().map_or(1, |&last| u64::from(last) + 1);
    let absent = count.saturating_sub(present.len() as u64);
    let first = (0..).zip(present).find(|(number, there)| *number != **there);
    let first = first.map_or(0, |(number, _): (u32, _)| number);
    let file = match absent {
        0 => return None,
        1 => format!("data.{first}"),
        _ => format!("data.{first} and {} more", absent - 1),
    };
    let reason = DamageReason::Missing { packets: None, events: None };
    Some(Damage { file, begin_bytes: 0, end_bytes: 0, reason, interval: Interval::default() })
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
