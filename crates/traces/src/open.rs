// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From paths to traces. The only place of this crate that touches files.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lateralis_ctf::open as ctf;
use lateralis_model::Source;
use lateralis_seedformats::genode;

use crate::formats::{Bytes, FORMATS, Format, supported};
use crate::joined::{Joined, Placed};
use crate::packed::{Cut, End, Packing};
use crate::tracefs;

/// Bytes of a file that decide what it is.
const SNIFF_BYTES: usize = 4096;

/// Levels of directories that are searched for files of a known format.
const SEARCH_DEPTH: usize = 8;

/// Files that are looked at below one path.
const FILES_MAX: usize = 10_000;

/// What files do not say themselves, and what opening may take.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Memory for the events of formats that are read as a whole, per file. CTF
    /// needs none.
    pub memory_bytes: u64,
    /// Time stamps per second, for formats that do not say.
    pub frequency_hz: Option<u64>,
    /// Name and content of a JSON file with the names of Barrelfish's events, as
    /// pleco makes it.
    pub definitions: Option<(String, Vec<u8>)>,
    /// The format of files, by its word; `None`: by their content.
    pub format: Option<String>,
    /// The architecture that wrote a log of seL4.
    pub abi: Option<String>,
}

impl Default for OpenOptions {
    /// By content, into 8 GiB at most.
    fn default() -> Self {
        let memory_bytes = 8 << 30;
        Self { memory_bytes, frequency_hz: None, definitions: None, format: None, abi: None }
    }
}

/// Why nothing could be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no trace.
    NoTrace {
        /// Where.
        path: PathBuf,
        /// Files of a directory that were looked at.
        files: usize,
    },
    /// It is a device, a pipe or a socket: reading it may never end.
    Special {
        /// Which.
        path: PathBuf,
    },
    /// The file is of no known format.
    Unknown {
        /// Which.
        path: PathBuf,
        /// How it begins; what is inside, where it is compressed.
        first: Vec<u8>,
        /// The name of the compression that was undone.
        packing: Option<&'static str>,
    },
    /// A file is of a known format, but cannot be read.
    Format {
        /// Which.
        path: PathBuf,
        /// Name of the format.
        format: &'static str,
        /// Why.
        cause: String,
    },
    /// A file cannot be read at all.
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
            Self::NoTrace { path, files } => {
                write!(f, "no trace here: {}: ", path.display())?;
                match files {
                    0 => f.write_str("expected files of a known format, or a CTF metadata file"),
                    1 => f.write_str("the only file is of no known format"),
                    files => write!(f, "none of its {files} files is of a known format"),
                }
            }
            Self::Special { path } => write!(
                f,
                "no regular file: {}: copy what comes out of it to a file first",
                path.display()
            ),
            Self::Unknown { path, first, packing: None } if first.is_empty() => {
                write!(f, "no trace here: {}: the file is empty", path.display())
            }
            Self::Unknown { path, first, packing } => {
                let known: Vec<&str> = supported().collect();
                let (path, known) = (path.display(), known.join(", "));
                let what =
                    packing.map_or("it".to_owned(), |name| format!("what {name} packed in it"));
                write!(
                    f,
                    "unknown format: {path}: {what} begins with {}; known are {known}",
                    beginning(first)
                )
            }
            Self::Format { path, format, cause } => {
                write!(f, "cannot read {format}: {}: {cause}", path.display())
            }
            Self::Io { path, source } => write!(f, "cannot read: {}: {source}", path.display()),
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

/// How other kinds of files begin, what they are, and what to do with them.
const OTHER_KINDS: &[(&[u8], &str)] = &[
    (b"PK\x03\x04", "zip: unpack it first"),
    (b"\xfd7zXZ", "xz: unpack it first"),
    (b"BZh", "bzip2: unpack it first"),
    (b"\x7fELF", "a program, library or core dump"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"%PDF", "a PDF document"),
    (b"SQLite format 3", "an SQLite database"),
    (b"PAR1", "a Parquet table, which lat only writes"),
];

/// The first bytes as text if they are some, else as hexadecimal digits; and
/// what they are, where that helps.
fn beginning(first: &[u8]) -> String {
    if first.is_empty() {
        return "nothing: it is empty".into();
    }
    let shown = &first[..first.len().min(16)];
    let is_text = shown.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let text = if is_text {
        format!("{:?}", String::from_utf8_lossy(shown))
    } else {
        shown.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
    };
    let kind = OTHER_KINDS.iter().find(|(beginning, _)| first.starts_with(beginning));
    text + &kind.map_or(String::new(), |(_, kind)| format!(" ({kind})"))
}

/// Opens all traces at or under the paths and joins them.
///
/// # Errors
/// If a path holds no trace, or one of its traces cannot be read at all. Damage
/// is no error: it is in the [`Joined`].
pub fn open(paths: &[PathBuf], options: &OpenOptions) -> Result<Joined, Error> {
    let mut sources: Vec<Placed> = Vec::new();
    for path in paths {
        let found = open_path(path, options)?;
        let several = paths.len() > 1;
        sources.extend(found.into_iter().map(|(place, source)| {
            let whole = path.join(&place).display().to_string();
            (if several || place.is_empty() { whole } else { place }, source)
        }));
    }
    Ok(Joined::new(sources))
}

fn open_path(path: &Path, options: &OpenOptions) -> Result<Vec<Placed>, Error> {
    let kind = fs::metadata(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    if !kind.is_dir() && !kind.is_file() {
        return Err(Error::Special { path: path.to_owned() });
    }
    if kind.is_file() {
        return match open_file(path, options)? {
            Some(source) => Ok(vec![(String::new(), source)]),
            // Metadata or a stream: the trace is what lies around it.
            None => open_ctf(path, options),
        };
    }
    // A recording of `lat record` is what its ctf/ holds.
    let inner = path.join("ctf");
    if inner.join("metadata").is_file() {
        return open_ctf(&inner, options);
    }
    if tracefs::is_tracefs(path) {
        let trace = tracefs::read(path, options.memory_bytes)?;
        return Ok(vec![(String::new(), Box::new(trace))]);
    }
    let mut sources = open_ctf(path, options)?;
    let mut files = Vec::new();
    search(path, SEARCH_DEPTH, &mut files);
    for file in &files {
        if let Ok(Some(source)) = open_file(file, options) {
            let place = file.strip_prefix(path).unwrap_or(file);
            sources.push((place.display().to_string(), source));
        }
    }
    if sources.is_empty() {
        return Err(Error::NoTrace { path: path.to_owned(), files: files.len() });
    }
    Ok(sources)
}

/// Files under a directory that is no CTF trace.
fn search(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    if directory.join("metadata").is_file() {
        return;
    }
    let mut entries: Vec<_> = entries.flatten().take(FILES_MAX).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        // Links to files are followed, links to directories are not: they may be circles.
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && depth > 0 {
            search(&entry.path(), depth - 1, files);
        } else if entry.path().is_file() && files.len() < FILES_MAX {
            files.push(entry.path());
        }
    }
}

/// The CTF traces at or under a path. The streams of a recorder of Genode are one trace
/// each with a fixed identity; together they are one with components as processes.
fn open_ctf(path: &Path, options: &OpenOptions) -> Result<Vec<Placed>, Error> {
    let explain = |error| match error {
        ctf::Error::Io { path, source } => Error::Io { path, source },
        _ => Error::NoTrace { path: path.to_owned(), files: 0 },
    };
    let open = |place: &ctf::Place| {
        let name = place.root.strip_prefix(path).unwrap_or(&place.root);
        let reader = place.open().map_err(explain)?;
        Ok((name.display().to_string(), Box::new(reader) as Box<dyn Source>))
    };
    let places = ctf::find(path).map_err(explain)?;
    let opened: Vec<Placed> = places.iter().map(open).collect::<Result<_, _>>()?;
    let whole =
        |source: &dyn Source| genode::is_genode(source.trace()) && source.faults().is_empty();
    let (of_genode, mut others): (Vec<Placed>, Vec<Placed>) =
        opened.into_iter().partition(|(_, source)| whole(source.as_ref()));
    if !of_genode.is_empty() {
        let streams: Vec<(&str, &dyn Source)> =
            of_genode.iter().map(|(place, source)| (place.as_str(), source.as_ref())).collect();
        let run = genode::gather(&streams, options.memory_bytes);
        others.insert(0, (String::new(), Box::new(run)));
    }
    Ok(others)
}

/// A file as a whole trace; `None` if it belongs to a CTF trace.
fn open_file(path: &Path, options: &OpenOptions) -> Result<Option<Box<dyn Source>>, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    if length == 0 {
        return Err(Error::Unknown { path: path.to_owned(), first: Vec::new(), packing: None });
    }
    // SAFETY: the map is read-only. Its bytes may change if another process writes
    // to the file meanwhile: every reader checks each byte it depends on, and a
    // file that is cut while it is read ends the process with a signal, as it does
    // in every reader that maps.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some(packing) = Packing::of(&map) else {
        let first = &map[..map.len().min(SNIFF_BYTES)];
        if options.format.is_none() && is_ctf(first) {
            return Ok(None);
        }
        let first = first.to_vec();
        let file = Inside { path, name, first, length, packing: None };
        return file.read(options, || Ok(Arc::new(map))).map(Some);
    };
    // Only the beginning decides, so that a file of an unknown format costs no more.
    let (first, _) = packing.unpack(&map, SNIFF_BYTES as u64);
    let file = Inside { path, name: name.clone(), first, length: 0, packing: Some(packing) };
    let mut end = End::Whole;
    let trace = file.read(options, || {
        let (bytes, reached) = packing.unpack(&map, options.memory_bytes);
        end = reached;
        Ok(Arc::new(bytes))
    })?;
    Ok(Some(if end == End::Whole { trace } else { Box::new(Cut::new(trace, &name, length, end)) }))
}

/// What decides the format of a file.
struct Inside<'p> {
    path: &'p Path,
    name: String,
    /// Its first bytes, decompressed if need be.
    first: Vec<u8>,
    /// Its length, 0 where only decompressing would tell.
    length: u64,
    packing: Option<Packing>,
}

impl Inside<'_> {
    /// Reads it as the first format that accepts it; `bytes` gives all of it.
    fn read(
        &self,
        options: &OpenOptions,
        bytes: impl FnOnce() -> Result<Bytes, Error>,
    ) -> Result<Box<dyn Source>, Error> {
        let is_it = |format: &&Format| match &options.format {
            Some(word) => format.word == word,
            None => (format.sniff)(&self.first, self.length),
        };
        let mut formats = FORMATS.iter().filter(is_it).peekable();
        if formats.peek().is_none() {
            let first = self.first[..self.first.len().min(64)].to_vec();
            let packing = self.packing.map(Packing::name);
            return Err(Error::Unknown { path: self.path.to_owned(), first, packing });
        }
        let bytes = bytes()?;
        let mut refused = None;
        for format in formats {
            match (format.read)(&self.name, &bytes, options) {
                Ok(trace) => return Ok(trace),
                Err(cause) => {
                    let (path, format) = (self.path.to_owned(), format.name);
                    refused.get_or_insert(Error::Format { path, format, cause });
                }
            }
        }
        Err(refused.unwrap_or(Error::NoTrace { path: self.path.to_owned(), files: 1 }))
    }
}

/// A metadata file, plain or in packets, or a packet.
fn is_ctf(first: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 6] = [
        b"/* CTF",
        b"\x1e{",
        &[0x57, 0x1d, 0xd1, 0x75],
        &[0x75, 0xd1, 0x1d, 0x57],
        &[0xc1, 0x1f, 0xfc, 0xc1],
        &[0xc1, 0xfc, 0x1f, 0xc1],
    ];
    BEGINNINGS.iter().any(|beginning| first.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_file_is_described_by_its_beginning() {
        assert_eq!(beginning(b"hello world, this is no trace"), "\"hello world, thi\"");
        assert_eq!(beginning(b"PK\x03\x04"), "50 4b 03 04 (zip: unpack it first)");
        assert_eq!(beginning(&[]), "nothing: it is empty");
    }
}
