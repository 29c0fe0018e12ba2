// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A directory with files copied from the kernel's tracefs.
//!
//! ```text
//! per_cpu/cpuN/trace_pipe_raw   pages of each CPU
//! events/SYSTEM/NAME/format     descriptions of events
//! events/header_page, saved_cmdlines, trace_clock, buffer_subbuf_size_kb, if they exist
//! ```
//!
//! The live file system is not read: reading its pages consumes them.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lateralis_model::Source as _;
use lateralis_perfdata::ftrace::{FtraceTrace, PagesInfo, open_pages, order_of_pages};
use memmap2::Mmap;

use crate::error::Error;
use crate::formats::Bytes;

const FORMAT: &str = "pages of tracefs";
/// Size limit of the small files; those of the kernel have some KiB.
const TEXT_BYTES_MAX: u64 = 4 << 20;
/// Largest number of descriptions that are read; a kernel has some thousands.
const FORMATS_MAX: usize = 50_000;
/// Largest size of all descriptions.
const FORMAT_BYTES_MAX: usize = 256 << 20;

/// Whether a directory looks like tracefs, or a copy of it.
pub fn is_tracefs(directory: &Path) -> bool {
    directory.join("events").is_dir() && !cpus(directory).is_empty()
}

/// Numbers and files of the CPUs, in their order.
fn cpus(directory: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(directory.join("per_cpu")).into_iter().flatten().flatten();
    let cpu = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()?;
        let path = entry.path().join("trace_pipe_raw");
        path.is_file().then_some((number, path))
    };
    let mut cpus: Vec<(u32, PathBuf)> = entries.filter_map(cpu).collect();
    cpus.sort();
    cpus
}

/// Opens the pages of all CPUs.
///
/// # Errors
/// If there are no pages, or a file cannot be read.
pub fn open(directory: &Path) -> Result<FtraceTrace, Error> {
    let mut pages = Vec::new();
    for (cpu, path) in cpus(directory) {
        let io = |source| Error::Io { path: path.clone(), source };
        // Files of the live file system have no size.
        let length = fs::metadata(&path).map_err(io)?.len();
        if length > 0 {
            let file = File::open(&path).map_err(io)?;
            // SAFETY: as for all files, see `open`: the map is read-only, and every
            // byte is checked.
            pages.push((cpu, unsafe { Mmap::map(&file) }.map_err(io)?));
        }
    }
    if pages.is_empty() {
        let cause = "per_cpu/cpu*/trace_pipe_raw have no size: copy their pages to files first, \
                     with dd iflag=nonblock, and events/ beside them";
        return Err(Error::Format {
            path: directory.to_owned(),
            format: FORMAT,
            cause: cause.to_owned(),
        });
    }
    let text = |name: &str| text(&directory.join(name)).unwrap_or_default();
    let formats = formats(&directory.join("events"));
    let formats: Vec<_> = formats.iter().map(|(s, f)| (s.as_str(), f.as_str())).collect();
    let page_kib: u32 = text("buffer_subbuf_size_kb").trim().parse().unwrap_or(0);
    let (header_page, saved_cmdlines) = (text("events/header_page"), text("saved_cmdlines"));
    let info = PagesInfo {
        header_page: &header_page,
        formats: &formats,
        saved_cmdlines: &saved_cmdlines,
        trace_clock: &text("trace_clock"),
        page_bytes: page_kib.saturating_mul(1024),
    };
    let order = order_of_pages(pages.iter().map(|(_, map)| &map[..]), &info);
    let pages = pages.into_iter().map(|(cpu, map)| (cpu, Arc::new(map) as Bytes)).collect();
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let trace = open_pages(&name, pages, &info, order);
    if trace.interval().begin.is_none() && formats.is_empty() {
        let cause = "there are no events/SYSTEM/NAME/format that describe the events; copy them \
                     from the same kernel"
            .to_owned();
        return Err(Error::Format { path: directory.to_owned(), format: FORMAT, cause });
    }
    Ok(trace)
}

fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Systems and descriptions of events.
fn formats(events: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut bytes = 0;
    let directories = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    for system in directories(events) {
        let name = system.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for event in directories(&system) {
            let Ok(text) = text(&event.join("format")) else { continue };
            bytes += text.len();
            if found.len() == FORMATS_MAX || bytes > FORMAT_BYTES_MAX {
                return found;
            }
            found.push((name.clone(), text));
        }
    }
    found
}
