// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Storage of index files, and checks that an index belongs to the trace in its current state.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use lateralis_files::{
    NewFile, PRIVATE, create_folder, is_own_folder, is_writable_folder, open_regular, unnamed_file,
};
use lateralis_lanes::{IndexError, Lanes, Shared, Spool};
use memmap2::{Advice, Mmap, UncheckedAdvice};

/// File name of the index in the folder of a recording.
pub const NAME: &str = "view.index";
/// File name of the notes, next to the index.
pub const NOTES: &str = "view.notes.json";
/// Limit of described files of a trace; a Genode tree has some thousand.
const FILES_MAX: usize = 100_000;
/// Maximum depth of visited folders.
const DEPTH_MAX: usize = 16;

/// Describes the state of traces: names, sizes and times of all their files, and `how` they are
/// read. An index is valid only for an equal description.
///
/// # Errors
/// If a path does not exist.
pub fn identity(paths: &[PathBuf], how: &str) -> io::Result<String> {
    let mut text = format!("{how}\n");
    let mut left = FILES_MAX;
    for path in paths {
        let path = path.canonicalize()?;
        // The author of a recording that contains an index can predict everything but the inode of
        // the folder on this machine.
        let inode = fs::metadata(&path)?.ino();
        let _ = writeln!(text, "{} {inode}", path.display());
        describe(&path, DEPTH_MAX, &mut left, &mut text)?;
    }
    Ok(text)
}

fn describe(path: &Path, depth: usize, left: &mut usize, text: &mut String) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if *left == 0 || depth == 0 {
        return Ok(());
    }
    *left -= 1;
    if metadata.is_dir() {
        let mut inside: Vec<PathBuf> =
            fs::read_dir(path)?.flatten().take(*left).map(|e| e.path()).collect();
        inside.sort();
        for path in inside {
            // An entry that cannot be examined cannot be read either.
            let _ = describe(&path, depth - 1, left, text);
        }
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("view.") {
        return Ok(());
    }
    let time = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanos = time.map_or(0, |time| time.as_nanos());
    let _ = writeln!(text, "{name} {} {nanos}", metadata.len());
    Ok(())
}

/// Path of a file that belongs to these traces: in the folder of a recording if this user made it,
/// otherwise in the user's cache; `None` if there is neither.
#[must_use]
pub fn place(paths: &[PathBuf], name: &str) -> Option<PathBuf> {
    if let [path] = paths
        && is_own_recording(path, name)
    {
        return Some(path.join(name));
    }
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let told: Vec<String> = paths
        .iter()
        .map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string())
        .collect();
    let folder = cache.join("lateralis").join("view");
    create_folder(&folder).ok()?;
    Some(folder.join(format!("{:016x}.{name}", hash(told.join("\n").as_bytes()))))
}

/// Whether a folder is a recording of this user to which no other user can write, and `name` in it
/// is absent or a file of the same user. The check creates nothing.
fn is_own_recording(folder: &Path, name: &str) -> bool {
    let user = fs::metadata(folder).map(|about| about.uid());
    let is_own_file = |name: &str| {
        let about = folder.join(name).symlink_metadata();
        about.map(|about| about.is_file() && user.as_ref().is_ok_and(|user| *user == about.uid()))
    };
    is_own_folder(folder)
        && is_own_file("report.json").unwrap_or(false)
        && is_own_file(name).unwrap_or(true)
        && is_writable_folder(folder)
}

/// FNV-1a; only file names depend on it.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// An unnamed temporary file for data that need not stay in memory while an index is built.
struct Spooled {
    file: File,
    end: u64,
}

impl Spool for Spooled {
    fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.end;
        self.file.write_all_at(bytes, at)?;
        self.end += bytes.len() as u64;
        Ok(at)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }
}

/// Creates a temporary file next to the future index; uses memory if that fails.
#[must_use]
pub fn spool(place: Option<&Path>) -> Box<dyn Spool> {
    let made = place.and_then(|place| Some(Spooled { file: unnamed_file(place).ok()?, end: 0 }));
    match made {
        Some(spooled) => Box::new(spooled),
        None => Box::new(Vec::new()),
    }
}

/// Opens the index at a path if it belongs to this trace.
#[must_use]
pub fn open(place: &Path, identity: &str) -> Option<Lanes> {
    let file = open_regular(place).ok()?;
    // SAFETY: the map is read-only, and every read of it is bounds-checked. Its bytes may change if
    // another process writes to the file meanwhile; no value is read twice on the assumption that
    // it is unchanged. We only rename new files over old ones; truncation of a file while it is
    // mapped ends the process with a signal, as in every reader that maps files.
    let map = Arc::new(unsafe { Mmap::map(&file) }.ok()?);
    let lanes = Lanes::open(Arc::clone(&map) as Shared, identity).ok()?;
    let (drawn, map) = (lanes.drawn(), Arc::downgrade(&map));
    // Without this thread, pictures are the same but take longer.
    let _ = thread::Builder::new().name("view-index".into()).spawn(move || keep(&map, &drawn));
    Some(lanes)
}

/// Bytes of an index that are loaded before the first request. The first access to a page while
/// drawing costs a microsecond, and a picture of 1600 pixels and 8 lanes accesses two pages for
/// each pixel.
const WARM_BYTES: usize = 1 << 30;
/// Bytes loaded by one call: other threads that map memory wait for the duration of a call.
const STEP_BYTES: usize = 8 << 20;
/// Limit of resident file bytes, which grow as requests access the index; the kernel counts them as
/// memory of this process.
const RESIDENT_BYTES: u64 = 5 << 28;
/// Minimum growth since the last release; a release is not worthwhile below it.
const GROWN_BYTES: u64 = 1 << 28;
/// Interval between two checks, which take some 30 us each: statistics of the whole session load
/// half a gigabyte in a second.
const LOOK: Duration = Duration::from_millis(200);

/// Keeps the data that pictures are drawn from in memory, and releases the rest when it exceeds the
/// limit, as long as the index is in use.
fn keep(map: &Weak<Mmap>, drawn: &[Range<usize>]) {
    let mut warmed = 0;
    let mut wanted = true;
    while let Some(map) = map.upgrade() {
        if wanted {
            warm(&map, drawn);
            warmed = resident_bytes();
        }
        let is_small = (map.len() as u64) < RESIDENT_BYTES / 2;
        if is_small {
            return;
        }
        let now = resident_bytes();
        wanted = now > RESIDENT_BYTES && now > warmed.saturating_add(GROWN_BYTES);
        if wanted {
            // SAFETY: the map is read-only and backed by a file, so that no byte is lost: pages are loaded
            // from the file again when they are accessed. The call is only advice, and may fail.
            let _ = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
            continue;
        }
        drop(map);
        thread::sleep(LOOK);
    }
}

fn warm(map: &Mmap, drawn: &[Range<usize>]) {
    let mut left = WARM_BYTES;
    for range in drawn {
        for begin in range.clone().step_by(STEP_BYTES) {
            let length = STEP_BYTES.min(range.end - begin).min(left);
            // Linux before 5.14 does not support `PopulateRead`; read-ahead is used there.
            if map.advise_range(Advice::PopulateRead, begin, length).is_err() {
                let _ = map.advise_range(Advice::WillNeed, begin, length);
            }
            left -= length;
            if left == 0 {
                return;
            }
        }
    }
}

/// Resident bytes of files mapped by this process; 0 if unknown.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Writes an index with `write` to its path, or to memory.
///
/// # Errors
/// If writing fails, or the index cannot be opened afterwards.
pub fn make(
    place: Option<&Path>,
    identity: &str,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Lanes> {
    let broken = |error: IndexError| io::Error::other(error.to_string());
    if let Some(place) = place
        && let Ok(fresh) = NewFile::beside(place, PRIVATE)
    {
        let mut out = BufWriter::with_capacity(1 << 18, fresh);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.publish()?;
        return open(place, identity).ok_or_else(|| broken(IndexError::Foreign));
    }
    let mut bytes = Vec::new();
    write(&mut bytes)?;
    let bytes: Shared = Arc::new(bytes);
    Lanes::open(bytes, identity).map_err(broken)
}
