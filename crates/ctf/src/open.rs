// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opens traces in the file system. The only place of this crate that does I/O.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::metadata::{self, TraceClass};
use crate::reader::{Bytes, Reader, StreamFile};

/// Files below this size are read: mapping them costs more.
const MAP_FROM_BYTES: u64 = 64 * 1024;

/// Levels of directories below the one given that are searched for traces.
const SEARCH_DEPTH: usize = 16;

/// Number of files examined below one path; further files are omitted, with a remark.
const FILES_MAX: usize = 100_000;

/// First bytes of a packet, in either byte order [CTF 1.8.3 §5.1].
const MAGIC: [[u8; 4]; 2] = [[0xc1, 0x1f, 0xfc, 0xc1], [0xc1, 0xfc, 0x1f, 0xc1]];

/// Why a trace cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Nothing under the path is a trace.
    NoTrace {
        /// The path.
        path: PathBuf,
    },
    /// A file cannot be read.
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
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

/// A trace in the file system, before it is read: one metadata, and stream files
/// from one or many directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where its metadata is; of several, the one that describes most.
    pub metadata: PathBuf,
    /// Its stream files, sorted.
    pub streams: Vec<PathBuf>,
    /// The directory that holds all of them.
    pub root: PathBuf,
    /// The directories with metadata that it is made of.
    pub parts: Vec<PathBuf>,
    /// Files below it that are none of its streams.
    pub others: Vec<PathBuf>,
}

/// The traces at or below `path`, sorted by path. A file denotes the trace that contains it.
///
/// * A directory with a `metadata` file is a trace. Its stream files are all
///   others in it but hidden ones, and those files in directories below it that
///   begin like a packet: a tree of directories (Genode) may have its metadata at
///   the top only. Directories called `index` hold none [LTTng].
/// * Directories whose metadata has the same UUID and gives no number two names are
///   one trace: the chunks of a rotated or snapshot recording. The metadata that
///   describes most is that of all.
///
/// # Errors
/// If `path` itself cannot be read; directories below that cannot are left out.
pub fn find(path: &Path) -> Result<Vec<Place>, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let kind = fs::metadata(path).map_err(io)?;
    let directory = match path.parent() {
        Some(parent) if kind.is_file() && parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) if kind.is_file() => parent,
        _ => path,
    };
    fs::read_dir(directory).map_err(io)?;
    let mut search = Search { found: Vec::new(), files_left: FILES_MAX };
    search.directory(directory, None, SEARCH_DEPTH);
    let mut places = join_chunks(search.found);
    for place in &mut places {
        place.streams.sort();
    }
    places.sort_by(|a, b| a.root.cmp(&b.root));
    Ok(places)
}

struct Search {
    found: Vec<Place>,
    files_left: usize,
}

impl Search {
    fn directory(&mut self, directory: &Path, mut trace: Option<usize>, depth: usize) {
        let own_metadata = directory.join("metadata");
        let owns = own_metadata.is_file();
        if owns {
            let root = directory.to_owned();
            let parts = vec![root.clone()];
            let (streams, others) = (Vec::new(), Vec::new());
            self.found.push(Place { metadata: own_metadata, streams, root, parts, others });
            trace = Some(self.found.len() - 1);
        }
        let Ok(entries) = fs::read_dir(directory) else {
            return;
        };
        let mut entries: Vec<_> = entries.flatten().take(self.files_left).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            self.files_left = self.files_left.saturating_sub(1);
            let (name, path) = (entry.file_name(), entry.path());
            // Links to files are followed, links to directories could lead in circles.
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory {
                if name != "index" && depth > 0 {
                    self.directory(&path, trace, depth - 1);
                }
                continue;
            }
            let hidden = name.to_string_lossy().starts_with('.');
            if let Some(trace) = trace
                && name != "metadata"
                && !hidden
                && path.is_file()
            {
                let trace = &mut self.found[trace];
                let is_stream = owns || begins_like_a_packet(&path);
                if is_stream { &mut trace.streams } else { &mut trace.others }.push(path);
            }
        }
    }
}

fn begins_like_a_packet(path: &Path) -> bool {
    let mut first = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && MAGIC.contains(&first)
}

/// Joins places whose metadata is that of one trace.
fn join_chunks(found: Vec<Place>) -> Vec<Place> {
    let mut joined: Vec<(Place, TraceClass)> = Vec::new();
    let several = found.len() > 1;
    for place in found {
        // A trace that is alone needs no look at its metadata.
        let text = several.then(|| fs::read(&place.metadata).ok()).flatten();
        let class = text.map(|text| metadata::parse(&text).0).unwrap_or_default();
        let same = joined.iter_mut().find(|(_, other)| is_same_trace(other, &class));
        let Some((whole, known)) = same else {
            joined.push((place, class));
            continue;
        };
        while !place.root.starts_with(&whole.root) {
            if !whole.root.pop() {
                break;
            }
        }
        whole.streams.extend(place.streams);
        whole.parts.extend(place.parts);
        whole.others.extend(place.others);
        if classes(&class) > classes(known) {
            whole.metadata = place.metadata;
            *known = class;
        }
    }
    joined.into_iter().map(|(place, _)| place).collect()
}

/// How much metadata describes; that of a later chunk may know more events.
fn classes(trace: &TraceClass) -> usize {
    trace.streams.iter().map(|stream| 1 + stream.events.len()).sum()
}

/// Without a UUID, equal metadata may well be of different traces. With one, both must
/// mean the same: some writers give all their traces one UUID.
fn is_same_trace(a: &TraceClass, b: &TraceClass) -> bool {
    a.uuid.is_some()
        && a.uuid == b.uuid
        && a.streams.iter().all(|stream| {
            let other = b.streams.iter().find(|other| other.id == stream.id);
            other.is_none_or(|other| {
                stream.events.iter().all(|event| {
                    let place = other.events.binary_search_by_key(&event.id, |event| event.id);
                    place.is_ok_and(|place| other.events[place].name == event.name)
                        || place.is_err()
                })
            })
        })
}

impl Place {
    /// Reads metadata and packet headers. Stream files are named by their path
    /// below [`Place::root`].
    ///
    /// # Errors
    /// If the metadata cannot be read. A stream file that cannot is an error
    /// too: half a trace is not a trace.
    pub fn open(&self) -> Result<Reader, Error> {
        let io = |source| Error::Io { path: self.metadata.clone(), source };
        let metadata = content(&self.metadata).map_err(io)?;
        Ok(Reader::new((*metadata).as_ref(), self.stream_files()?))
    }
}

impl Place {
    /// Reads the packets of a trace in progress that begin at or after a byte of their stream file,
    /// by the file's name below [`Place::root`]; all packets of unnamed files. An incomplete packet
    /// at the end of a file is omitted.
    ///
    /// Cost: linear in metadata and in the number of those packets.
    ///
    /// # Errors
    /// As [`Place::open`].
    pub fn open_behind(&self, marks: &BTreeMap<String, u64>) -> Result<Reader, Error> {
        let files = self.stream_files()?;
        // The metadata describes a packet before the packet is in the file, so the current content
        // of the files is described by metadata read from now on.
        let io = |source| Error::Io { path: self.metadata.clone(), source };
        let metadata = content(&self.metadata).map_err(io)?;
        Ok(Reader::behind((*metadata).as_ref(), files, marks))
    }

    fn stream_files(&self) -> Result<Vec<StreamFile>, Error> {
        let mut files = Vec::with_capacity(self.streams.len());
        for path in &self.streams {
            let name = path.strip_prefix(&self.root).unwrap_or(path);
            let name = name.to_string_lossy().into_owned();
            let bytes =
                content(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
            files.push(StreamFile { name, bytes });
        }
        Ok(files)
    }
}

/// Opens the first trace at or under `path`.
///
/// # Errors
/// If there is none, or one of its files cannot be read.
pub fn open(path: &Path) -> Result<Reader, Error> {
    match find(path)?.first() {
        Some(place) => place.open(),
        None => Err(Error::NoTrace { path: path.to_owned() }),
    }
}

/// A file that is read as if it were memory.
struct Mapped {
    map: memmap2::Mmap,
    file: File,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

impl Bytes for Mapped {
    fn release(&self, range: Range<usize>) {
        let begin = range.start.min(self.map.len());
        let length = range.end.min(self.map.len()).saturating_sub(begin);
        // SAFETY: the map is of a file and read-only, so that no byte is lost: pages that are
        // touched again are those of the file again. It is only advice, and may fail.
        let _ = unsafe {
            self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, begin, length)
        };
    }

    /// A page that is touched brings 15 more along (`fault_around_bytes`, 64 KiB): headers of
    /// packets of that size would map the whole file, at 20 times the cost of copying them.
    fn copy_from(&self, offset: u64, into: &mut [u8]) -> usize {
        self.file.read_at(into, offset).unwrap_or(0)
    }
}

fn content(path: &Path) -> io::Result<Box<dyn Bytes>> {
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
    Ok(Box::new(Mapped { map, file }))
}
