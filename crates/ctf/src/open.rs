// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens traces in the file system. The only place of this crate that does I/O.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::reader::{Reader, StreamFile};

/// Files below this size are read: mapping them costs more.
const MAP_FROM_BYTES: u64 = 64 * 1024;

/// Levels of directories below the one given that are searched for traces.
const SEARCH_DEPTH: usize = 8;

/// Why a trace cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Nothing under the path is a trace.
    NoTrace {
        /// The path.
        path: PathBuf,
    },
    /// Several traces are under the path.
    Several {
        /// The path.
        path: PathBuf,
        /// Where they are.
        traces: Vec<PathBuf>,
    },
    /// A file cannot be read.
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTrace { path } => {
                write!(
                    f,
                    "Cannot find a trace: path={}, expected a metadata file in it",
                    path.display()
                )
            }
            Self::Several { path, traces } => {
                write!(f, "Cannot choose among {} traces: path={}", traces.len(), path.display())?;
                traces.iter().take(8).try_for_each(|trace| write!(f, "\n  {}", trace.display()))
            }
            Self::Io { path, source } => {
                write!(f, "Cannot read: path={}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The directories at or under `path` that hold a trace, sorted. A file is taken
/// for one in its trace.
///
/// # Errors
/// If `path` itself cannot be read; directories below that cannot are left out.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let kind = fs::metadata(path).map_err(io)?;
    let directory = match path.parent() {
        Some(parent) if kind.is_file() && parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) if kind.is_file() => parent,
        _ => path,
    };
    fs::read_dir(directory).map_err(io)?;
    let mut found = Vec::new();
    search(directory, SEARCH_DEPTH, &mut found);
    found.sort();
    Ok(found)
}

fn search(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if directory.join("metadata").is_file() {
        found.push(directory.to_owned());
        return;
    }
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            search(&entry.path(), depth, found);
        }
    }
}

/// Opens the one trace at or under `path`.
///
/// # Errors
/// If there is none or more than one, or its metadata cannot be read. A stream
/// file that cannot be read is an error too: half a trace is not a trace.
pub fn open(path: &Path) -> Result<Reader, Error> {
    let mut traces = find(path)?;
    match (traces.pop(), traces.is_empty()) {
        (None, _) => Err(Error::NoTrace { path: path.to_owned() }),
        (Some(trace), true) => open_directory(&trace),
        (Some(last), false) => {
            traces.push(last);
            Err(Error::Several { path: path.to_owned(), traces })
        }
    }
}

/// Opens the trace in a directory: its `metadata`, and every other file there
/// as a stream, except hidden ones.
///
/// # Errors
/// If a file cannot be read.
pub fn open_directory(directory: &Path) -> Result<Reader, Error> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    };
    let metadata_path = directory.join("metadata");
    let metadata = fs::read(&metadata_path).map_err(io(&metadata_path))?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(io(directory))? {
        let entry = entry.map_err(io(directory))?;
        let name = entry.file_name();
        let stream = name != "metadata" && !name.to_string_lossy().starts_with('.');
        if stream && entry.path().is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = content(&path).map_err(io(&path))?;
        if !(*bytes).as_ref().is_empty() {
            files.push(StreamFile { name, bytes });
        }
    }
    Ok(Reader::new(&metadata, files))
}

fn content(path: &Path) -> io::Result<Box<dyn AsRef<[u8]> + Send + Sync>> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    if size < MAP_FROM_BYTES {
        return Ok(Box::new(fs::read(path)?));
    }
    // SAFETY: the map is read-only and private to this process's view. The
    // bytes may change if another process writes to the file meanwhile; every
    // read of them is bounds-checked and no value is read twice on the
    // assumption that it is the same. A recorder only appends; a file that is
    // cut while it is mapped ends the process with a signal, as it does in
    // every reader that maps.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    Ok(Box::new(map))
}
