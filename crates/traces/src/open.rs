// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From paths to traces. The only place of this crate that touches files.

mod directory;
mod recorded;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lateralis_ctf::{Reader, open as ctf};
use lateralis_interchange::{chrome, with_marks};
use lateralis_model::{Clock, Damage, DamageReason, Interval, Source};
use lateralis_perfdata::perf;
use lateralis_seedformats::genode;
use memmap2::Mmap;

use crate::archive::{self, Kind};
use crate::clocks::Relate;
use crate::error::Error;
use crate::formats::{Bytes, FORMATS, Format};
use crate::joined::{Joined, Placed};
use crate::packed::{End, Packing, Unpacked};
use crate::perf_folder;
use crate::tracefs;
use directory::{SEARCH_DEPTH, has_bytes, search, with_unread};

/// Bytes of a file that decide what it is.
const SNIFF_BYTES: usize = 4096;

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
    /// How recordings of several machines are put on one time line. [`open`] leaves that to whoever
    /// knows what their events mean.
    pub relate: Relate,
}

impl Default for OpenOptions {
    /// By content, into 8 GiB at most.
    fn default() -> Self {
        let memory_bytes = 8 << 30;
        let relate = Relate::default();
        Self {
            memory_bytes,
            frequency_hz: None,
            definitions: None,
            format: None,
            abi: None,
            relate,
        }
    }
}

/// Opens all traces at or under the paths and joins them. A path may be an archive. Of several paths, those
/// that hold no trace are left out ([`Joined::not_traces`]).
///
/// # Errors
/// If no path holds a trace, or one of the traces cannot be read at all. Damage
/// is no error: it is in the [`Joined`].
pub fn open(paths: &[PathBuf], options: &OpenOptions) -> Result<Joined, Error> {
    let mut sources: Vec<Placed> = Vec::new();
    let mut report = None;
    let mut not_traces = Vec::new();
    let several = paths.len() > 1;
    for path in paths {
        let found = match open_one(path, options, &mut report) {
            Ok(found) => found,
            Err(error) if several && error.is_no_trace() => {
                not_traces.push(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        sources.extend(found.into_iter().map(|(place, source)| {
            let whole = path.join(&place).display().to_string();
            (if several || place.is_empty() { whole } else { place }, source)
        }));
    }
    if not_traces.len() == paths.len() && !not_traces.is_empty() {
        return Err(not_traces.swap_remove(0));
    }
    let mut joined = Joined::new(sources);
    joined.report = report.filter(|_| !several);
    joined.not_traces = not_traces;
    Ok(joined)
}

/// Opens what is at or under one path.
fn open_one(
    path: &Path,
    options: &OpenOptions,
    report: &mut Option<Vec<u8>>,
) -> Result<Vec<Placed>, Error> {
    match archive_kind(path)? {
        Some((kind, bytes)) => open_archive(path, kind, &bytes, options, report),
        None => open_path(path, options),
    }
}

/// Opens of a recording that is being written the packets that begin at or behind a byte of
/// their stream file, by its name; of files that are not named all. What is not whole yet is
/// left out.
///
/// Cost: proportional to those packets, and to the metadata.
///
/// # Errors
/// If there is no trace of CTF, or several: only one can be followed.
pub fn open_behind(path: &Path, marks: &BTreeMap<String, u64>) -> Result<Joined, Error> {
    open_behind_by(path, marks, None).map(|(source, _)| source)
}

/// The same with times by a clock that was known before, so that they are the same whenever it is
/// opened; and its clock as it is known now.
///
/// # Errors
/// As [`open_behind`].
pub fn open_behind_by(
    path: &Path,
    marks: &BTreeMap<String, u64>,
    clock: Option<&Clock>,
) -> Result<(Joined, Option<Clock>), Error> {
    let inner = path.join("ctf");
    let path = if inner.join("metadata").is_file() { inner } else { path.to_owned() };
    let no_trace = || Error::NoTrace { path: path.clone(), files: 0, archives: 0 };
    let explain = |error| match error {
        ctf::Error::Io { path, source } => Error::Io { path, source },
        _ => no_trace(),
    };
    match ctf::find(&path).map_err(explain)?.as_slice() {
        [place] => {
            let mut reader = place.open_behind(marks).map_err(explain)?;
            let told = reader.trace().clocks.first().cloned();
            if let Some(clock) = clock {
                reader.set_clock(0, clock);
            }
            Ok((Joined::new(vec![(String::new(), Box::new(reader))]), told))
        }
        _ => Err(no_trace()),
    }
}

/// Kind and content of a file that is an archive.
fn archive_kind(path: &Path) -> Result<Option<(Kind, Mmap)>, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let about = fs::metadata(path).map_err(io)?;
    if !about.is_file() || about.len() == 0 {
        return Ok(None);
    }
    let map = map(&File::open(path).map_err(io)?).map_err(io)?;
    Ok(Kind::of(&map).map(|kind| (kind, map)))
}

/// The traces in an archive. It is unpacked into a temporary directory, which is
/// gone when this returns: what is open stays readable. `report` becomes the
/// `report.json` of a recording.
fn open_archive(
    path: &Path,
    kind: Kind,
    bytes: &[u8],
    options: &OpenOptions,
    report: &mut Option<Vec<u8>>,
) -> Result<Vec<Placed>, Error> {
    let unpacked = archive::unpack(bytes, kind, options.memory_bytes);
    let contents = unpacked.map_err(|source| {
        let (path, directory) = (path.to_owned(), std::env::temp_dir());
        Error::Unpacking { path, directory, source }
    })?;
    let root = archive::root(contents.directory.path());
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let damage = contents.damage.iter().map(|&(begin_bytes, end_bytes)| Damage {
        file: name.clone(),
        begin_bytes,
        end_bytes,
        reason: DamageReason::BadValue { rule: "archive: cut or damaged" },
        interval: Interval::default(),
    });
    let damage: Vec<Damage> = damage.collect();
    let mut remarks: Vec<String> =
        contents.remarks.iter().map(|(remark, count)| times(remark, *count)).collect();
    let mut archives = 0;
    let found = open_directory(&root, options, &mut archives);
    if archives > 0 {
        remarks.push(times("an archive in the archive is left out: unpack it first", archives));
    }
    let mut found = found.map_err(|error| {
        let kind = kind.name();
        let mut cause = match error {
            Error::NoTrace { files: 0, .. } => "it holds no file".to_owned(),
            Error::NoTrace { files, .. } => {
                format!("none of its {files} files is a trace of a known format")
            }
            other => {
                // Places in the directory mean nothing to anybody.
                let inside = format!("{}/", contents.directory.path().display());
                other.to_string().replace(&inside, "")
            }
        };
        if !damage.is_empty() {
            cause += "; it is cut or damaged";
        }
        cause.extend(remarks.iter().map(|remark| format!("; {remark}")));
        Error::Archive { path: path.to_owned(), kind, cause }
    })?;
    for beside in ["report.json", "../report.json"] {
        let beside = root.join(beside);
        let in_archive = beside.canonicalize().is_ok_and(|beside| {
            let directory = contents.directory.path().canonicalize();
            directory.is_ok_and(|directory| beside.starts_with(directory))
        });
        if in_archive && report.is_none() {
            *report = fs::read(beside).ok();
        }
    }
    if (!damage.is_empty() || !remarks.is_empty()) && !found.is_empty() {
        let (place, first) = found.remove(0);
        found.insert(0, (place, Box::new(Unpacked::new(first, damage, remarks))));
    }
    Ok(found)
}

/// A remark and how often it was made.
fn times(remark: &str, count: u64) -> String {
    match count {
        1 => remark.to_owned(),
        _ => format!("{remark} ({count} times)"),
    }
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
            None if path.with_file_name("metadata").is_file() => {
                open_ctf(path, options, &mut Vec::new())
            }
            None => Err(Error::NoMetadata { path: path.to_owned() }),
        };
    }
    open_directory(path, options, &mut 0)
}

/// The traces in a directory; counts the archives, which are left alone.
fn open_directory(
    path: &Path,
    options: &OpenOptions,
    archives: &mut u64,
) -> Result<Vec<Placed>, Error> {
    // A recording of `lat record` is what its ctf/ holds.
    let inner = path.join("ctf");
    if inner.join("metadata").is_file() {
        let mut unread = recorded::others_beside(path);
        let sources = open_ctf(&inner, options, &mut unread)?;
        return Ok(with_unread(sources, &unread));
    }
    if tracefs::is_tracefs(path) {
        let trace = with_marks(Box::new(tracefs::open(path)?), options.memory_bytes);
        return Ok(vec![(String::new(), trace)]);
    }
    let mut unread = Vec::new();
    let mut sources = open_ctf(path, options, &mut unread)?;
    let mut files = Vec::new();
    search(path, SEARCH_DEPTH, &mut files);
    // Of a folder of perf, one file opens all.
    let of_perf: HashSet<PathBuf> =
        files.iter().flat_map(|file| perf_folder::files_beside(file)).collect();
    for file in files.iter().filter(|file| !of_perf.contains(*file)) {
        let place = file.strip_prefix(path).unwrap_or(file).display().to_string();
        if archive_kind(file).is_ok_and(|kind| kind.is_some()) {
            *archives += 1;
            continue;
        }
        match open_file(file, options) {
            Ok(Some(source)) => sources.push((place, source)),
            // Of a trace that is broken the cause is told, of other files that they are no trace.
            Err(error @ Error::Format { .. }) => unread.push(format!("{place} ({error})")),
            Ok(None) | Err(_) => unread.push(place),
        }
    }
    if sources.is_empty() {
        let (files, archives) = (files.len(), *archives as usize);
        return Err(Error::NoTrace { path: path.to_owned(), files, archives });
    }
    Ok(with_unread(sources, &unread))
}

/// The CTF traces at or under a path. The streams of a recorder of Genode are one trace
/// each with a fixed identity; together they are one with components as processes.
/// Files below them that are no streams are added to `unread`.
fn open_ctf(
    path: &Path,
    options: &OpenOptions,
    unread: &mut Vec<String>,
) -> Result<Vec<Placed>, Error> {
    let explain = |error| match error {
        ctf::Error::Io { path, source } => Error::Io { path, source },
        _ => Error::NoTrace { path: path.to_owned(), files: 0, archives: 0 },
    };
    let open = |place: &ctf::Place| {
        let name = place.root.strip_prefix(path).unwrap_or(&place.root);
        let mut reader = place.open().map_err(explain)?;
        recorded::compare(place, &mut reader);
        Ok((name.display().to_string(), reader))
    };
    let places = ctf::find(path).map_err(explain)?;
    let others = places.iter().flat_map(|place| &place.others).filter(|file| has_bytes(file));
    unread.extend(others.map(|file| file.strip_prefix(path).unwrap_or(file).display().to_string()));
    let mut opened: Vec<(String, Reader)> = places.iter().map(open).collect::<Result<_, _>>()?;
    if places.iter().all(|place| place.root != path) {
        recorded::compare_folder(path, &mut opened);
    }
    let boxed = |((name, reader), place): ((String, Reader), &ctf::Place)| {
        let source: Box<dyn Source> = Box::new(reader);
        match recorded::has_no_marks(place) {
            true => (name, source),
            false => (name, with_marks(source, options.memory_bytes)),
        }
    };
    let opened: Vec<Placed> = opened.into_iter().zip(&places).map(boxed).collect();
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
    let trace = open_as_it_is(path, options)?;
    Ok(trace.map(|trace| with_marks(trace, options.memory_bytes)))
}

fn open_as_it_is(path: &Path, options: &OpenOptions) -> Result<Option<Box<dyn Source>>, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    if length == 0 {
        return Err(Error::Unknown { path: path.to_owned(), first: Vec::new(), packing: None });
    }
    let map = map(&file).map_err(io)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some(packing) = Packing::of(&map) else {
        let first = &map[..map.len().min(SNIFF_BYTES)];
        if options.format.is_none() && is_ctf(first) {
            return Ok(None);
        }
        let is_of_perf = options.format.as_deref().is_none_or(|word| word == "perf");
        if is_of_perf && perf::is_of_folder(first) {
            return perf_folder::open(path, Arc::new(map), options.memory_bytes).map(Some);
        }
        let first = first.to_vec();
        let file = Inside { path, name, first, length, packing: None };
        return file.read(options, || Ok(Arc::new(map))).map(Some);
    };
    // Only the beginning decides, so that a file of an unknown format costs no more.
    let first = packing.begin(&map, SNIFF_BYTES as u64);
    let file = Inside { path, name: name.clone(), first, length: 0, packing: Some(packing) };
    let mut end = End::Whole;
    let trace = file.read(options, || {
        let unpacked = packing.unpack(&map, options.memory_bytes);
        let (bytes, reached) = unpacked.map_err(|source| {
            let (path, directory) = (path.to_owned(), std::env::temp_dir());
            Error::Unpacking { path, directory, source }
        })?;
        end = reached;
        Ok(bytes)
    })?;
    Ok(Some(Unpacked::up_to(trace, &name, length, end)))
}

pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only. Its bytes may change if another process writes
    // to the file meanwhile: every reader checks each byte it depends on, and a
    // file that is cut while it is read ends the process with a signal, as it does
    // in every reader that maps.
    unsafe { Mmap::map(file) }
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
        let unknown = || {
            let first = self.first[..self.first.len().min(64)].to_vec();
            let packing = self.packing.map(Packing::name);
            Error::Unknown { path: self.path.to_owned(), first, packing }
        };
        let mut formats: Vec<&Format> = FORMATS.iter().filter(is_it).collect();
        let is_late = formats.is_empty() && chrome::may_have_events(&self.first);
        if formats.is_empty() && (!is_late || options.format.is_some()) {
            return Err(unknown());
        }
        let bytes = bytes()?;
        if is_late {
            // Metadata of any length may stand before the events.
            if !chrome::has_events((*bytes).as_ref()) {
                return Err(unknown());
            }
            formats.extend(FORMATS.iter().filter(|format| format.word == "chrome"));
        }
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
        let path = self.path.to_owned();
        Err(refused.unwrap_or(Error::NoTrace { path, files: 1, archives: 0 }))
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
