// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Areas that are made before the programs that will use them [ring-abi §2, "Prepared areas"]: where many
//! programs start one after the other, to make an area is a third of what recording one of them costs.
//!
//! Each is a new file that no other program has had. An area of a program that has ended is never given to
//! another one: that a process neither has it open nor maps it does not prove that none can write to its
//! pages (buffers registered with io_uring keep them), and new pages are the only proof.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lateralis_pleco::Schema;
use lateralis_ring::abi::{self, header, ring, schema};
use lateralis_ring::{Geometry, RingKind, RingMode};
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, fallocate, linkat, open};

use super::launch;
use super::session_lock::{is_held, lock_path};
use crate::options::{RecordOptions, rings_grow};

/// Names of prepared areas of a session; not all of them need be there.
const NAMES_MAX: u64 = 16;
/// Memory of all of them together.
const BYTES_MAX: u64 = 4 << 20;
/// As many are made between two looks at the rings.
const AT_ONCE: u32 = 6;
/// Programs of which each starts this long after the one before are many if they are MANY, and if none starts
/// for so long there are none.
const MANY: usize = 4;
const BUSY: Duration = Duration::from_secs(1);
/// Bytes at the beginning of a ring's data that have content already: the program maps them with the
/// control page.
const READY_BYTES: u64 = 4096;
/// Memory that rings begin with, as in `first_bytes` of `tracer/c/src/area.c`.
const FIRST_BYTES: u64 = 512 << 10;
const FIRST_RING_BYTES: std::ops::RangeInclusive<u64> = 16 << 10..=128 << 10;
/// The same where events are wanted of which a program has thousands before its rings are first read.
const FIRST_BYTES_FREQUENT: u64 = 2 << 20;
const FIRST_RING_BYTES_FREQUENT: u64 = 256 << 10;
/// `LAT_RING_PER_CPU` of `abi.h`.
const RING_PER_CPU: u32 = 1;
/// Subsystems of such events, as in `tracer/preload/real.c`.
const FREQUENT: [&str; 2] = ["malloc", "mutex"];

const PREFIX: &str = "prepared-";

/// What every prepared area of a session begins with.
#[derive(Debug)]
struct Template {
    /// Length of the file.
    bytes: u64,
    /// Offset and content of what is not zero, and of pages that the program maps at once.
    parts: Vec<(u64, Vec<u8>)>,
    /// Offset and length of what has memory.
    allocated: Vec<(u64, u64)>,
}

/// The prepared areas of a session. Removed on drop.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Of these areas alone: a search for areas does not list them.
    folder: PathBuf,
    template: Template,
    names: u32,
    /// Some may be missing.
    is_short: bool,
    last_found: Option<Instant>,
    /// Programs since the last time that none came for so long.
    recent: usize,
    busy_until: Option<Instant>,
}

fn folder_name(session: u64) -> String {
    format!("{PREFIX}{session:016x}")
}

/// The session whose prepared areas are in a folder of this name.
pub(super) fn session_of(name: &str) -> Option<u64> {
    let session = name.strip_prefix(PREFIX)?;
    u64::from_str_radix(session, 16).ok().filter(|_| session.len() == 16)
}

/// Removes what a killed recorder left. No program takes a prepared area of a session that is over.
pub(super) fn sweep(area_dir: &Path) {
    for entry in fs::read_dir(area_dir).into_iter().flatten().flatten() {
        let Some(session) = entry.file_name().to_str().and_then(session_of) else { continue };
        if !is_held(&lock_path(area_dir, session)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Template {
    /// For programs that the preload library is loaded into, whose schema this is. `None`: they do not make
    /// such areas, or not such that the recorder gives memory to.
    fn new(session: u64, options: &RecordOptions, loaded: &Schema) -> Option<Template> {
        let waits = options.trigger.as_ref().is_some_and(|trigger| trigger.start.is_some());
        let is_plain = options.mode == RingMode::Discard
            && rings_grow(options.buffer_bytes)
            && options.policies.is_none()
            && !(options.shared || waits || options.starts_stopped());
        let count = u32::try_from(launch::possible_cpus()?).ok().filter(|_| is_plain)?;
        let geometry = geometry(options, count)?;
        let text = loaded.canonical_text();
        let patterns = options.enable.to_string();
        let events = loaded.events.len() as u64 + u64::from(abi::INTERNAL_EVENT_COUNT);
        let page = abi::RING_CONTROL_BYTES;
        let heap_bytes = (text.len() as u64).next_multiple_of(page);
        if patterns.len() as u64 >= header::ENABLE_BYTES
            || events > page
            || heap_bytes > abi::HEAP_BYTES
        {
            return None;
        }
        let tables = tables(session, options, &geometry, loaded);
        let mut enable = vec![0; page as usize];
        for event in &loaded.events {
            let subsystem = &loaded.subsystems.get(event.subsystem)?.name;
            let byte = enable.get_mut((abi::INTERNAL_EVENT_COUNT + event.index) as usize)?;
            *byte =
                if options.enable.matches(subsystem, &event.name) { abi::ENABLE_RECORD } else { 0 };
        }
        let mut parts = vec![(0, tables), (abi::ENABLE_OFFSET, enable)];
        parts.push((abi::HEAP_OFFSET, text.into_bytes()));
        let mut allocated = vec![
            (0, abi::SCHEMAS_OFFSET + page),
            (abi::ENABLE_OFFSET, page),
            (abi::WANTED_OFFSET, page),
            (abi::HEAP_OFFSET, heap_bytes),
        ];
        let first = first_bytes(options, loaded, count).min(geometry.ring_bytes());
        let is_whole = first == geometry.ring_bytes();
        let mut control = vec![0; (page + READY_BYTES) as usize];
        store(&mut control, ring::MASK, &((geometry.ring_bytes() - 1) & !7).to_ne_bytes());
        store(&mut control, ring::BACKED_BYTES, &if is_whole { 0 } else { first }.to_ne_bytes());
        for ring in 0..count {
            let offset = geometry.control_offset(ring);
            allocated.push((offset, page + first));
            parts.push((offset, control.clone()));
        }
        Some(Template { bytes: geometry.area_bytes(), parts, allocated })
    }

    /// Bytes of memory that an area takes.
    fn allocated_bytes(&self) -> u64 {
        self.allocated.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Makes a file of it, under a name only when it is complete.
    fn make(&self, folder: &Path, path: &Path) -> io::Result<()> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::RUSR | Mode::WUSR)?);
        file.set_len(self.bytes)?;
        for (offset, bytes) in &self.allocated {
            fallocate(&file, FallocateFlags::KEEP_SIZE, *offset, *bytes)?;
        }
        for (offset, content) in &self.parts {
            file.write_all_at(content, *offset)?;
        }
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(linkat(CWD, link, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }
}

/// The rings that a program makes [`ring_geometry` of `tracer/c/src/area.c`]: it takes no area with others.
fn geometry(options: &RecordOptions, count: u32) -> Option<Geometry> {
    let floor = |bytes: u64| 1 << bytes.max(1).ilog2();
    let buffer = options.buffer_bytes.min(options.cap_bytes / u64::from(count));
    let buffer: u64 = floor(buffer.max(8192));
    let packet: u64 = floor(options.packet_bytes.min(buffer / 2).max(4096)).min(1 << 24);
    let packets = (buffer / packet).min(65536);
    let stride = abi::RING_CONTROL_BYTES + packet * packets;
    Geometry::new(RingKind::PerCpu, count, stride, packet, packets, u64::MAX).ok()
}

fn first_bytes(options: &RecordOptions, loaded: &Schema, count: u32) -> u64 {
    let is_frequent = loaded.events.iter().any(|event| {
        loaded.subsystems.get(event.subsystem).is_some_and(|subsystem| {
            FREQUENT.contains(&subsystem.name.as_str())
                && options.enable.matches(&subsystem.name, &event.name)
        })
    });
    let count = u64::from(count);
    let (least, most) = FIRST_RING_BYTES.into_inner();
    let bytes = match is_frequent {
        true => (FIRST_BYTES_FREQUENT / count).max(FIRST_RING_BYTES_FREQUENT),
        false => (FIRST_BYTES / count).clamp(least, most),
    };
    bytes & !(abi::RING_CONTROL_BYTES - 1)
}

fn store(bytes: &mut [u8], offset: u64, value: &[u8]) {
    let end = offset as usize + value.len();
    if let Some(place) = bytes.get_mut(offset as usize..end) {
        place.copy_from_slice(value);
    }
}

/// Header, processes and the first page of schemas, with the library's schema registered.
fn tables(session: u64, options: &RecordOptions, geometry: &Geometry, loaded: &Schema) -> Vec<u8> {
    let mut bytes = vec![0; (abi::SCHEMAS_OFFSET + abi::RING_CONTROL_BYTES) as usize];
    let text_bytes = loaded.canonical_text().len() as u32;
    let events = loaded.events.len() as u32;
    let words = [
        (header::ABI_VERSION, abi::ABI_VERSION),
        (header::BYTE_ORDER, abi::BYTE_ORDER_MARK),
        (header::RING_KIND, RING_PER_CPU),
        (header::RING_COUNT, geometry.ring_count()),
        (header::RING_MODE, options.mode.to_word()),
        (header::RINGS_READY, abi::RINGS_READY),
        (header::NEXT_EVENT_ID, abi::INTERNAL_EVENT_COUNT + events),
        (abi::SCHEMAS_OFFSET + schema::STATE, abi::SLOT_READY),
        (abi::SCHEMAS_OFFSET + schema::BASE_ID, abi::INTERNAL_EVENT_COUNT),
        (abi::SCHEMAS_OFFSET + schema::EVENT_COUNT, events),
        (abi::SCHEMAS_OFFSET + schema::TEXT_BYTES, text_bytes),
    ];
    let long_words = [
        (header::SESSION, session),
        (header::RINGS_OFFSET, abi::RINGS_OFFSET),
        (header::RING_STRIDE, geometry.ring_stride()),
        (header::PACKET_BYTES, geometry.packet_bytes()),
        (header::PACKETS_PER_RING, geometry.packets_per_ring()),
        (header::HEAP_USED, u64::from(text_bytes)),
        (abi::SCHEMAS_OFFSET + schema::TEXT_OFFSET, abi::HEAP_OFFSET),
        (abi::SCHEMAS_OFFSET + schema::HASH, loaded.hash()),
    ];
    words.iter().for_each(|(offset, value)| store(&mut bytes, *offset, &value.to_ne_bytes()));
    long_words.iter().for_each(|(offset, value)| store(&mut bytes, *offset, &value.to_ne_bytes()));
    store(&mut bytes, header::ENABLE, options.enable.to_string().as_bytes());
    let name: Vec<u8> = loaded.name.bytes().take(schema::NAME_BYTES as usize - 1).collect();
    store(&mut bytes, abi::SCHEMAS_OFFSET + schema::NAME, &name);
    bytes
}

impl Prepared {
    /// For the programs of a session, into which the library with the schema `loaded` is loaded. Makes
    /// none. `None`: the session has none.
    pub(super) fn new(
        area_dir: &Path,
        session: u64,
        options: &RecordOptions,
        loaded: &Schema,
    ) -> Option<Prepared> {
        let template = Template::new(session, options, loaded)?;
        let names = (BYTES_MAX / template.allocated_bytes().max(1)).min(NAMES_MAX) as u32;
        (names >= 2).then(|| Prepared {
            folder: area_dir.join(folder_name(session)),
            template,
            names,
            is_short: false,
            last_found: None,
            recent: 0,
            busy_until: None,
        })
    }

    /// Number of names, for the request.
    pub(super) fn names(&self) -> u32 {
        self.names
    }

    fn path(&self, number: u32) -> PathBuf {
        self.folder.join(number.to_string())
    }

    /// Notes that programs began, and makes areas for the next ones, or removes them if none came for a
    /// while. Error: there is no room, or the file system cannot do it; then there are none from now on.
    pub(super) fn tend(&mut self, found: usize) -> io::Result<()> {
        let now = Instant::now();
        if found > 0 {
            let is_soon = self.last_found.is_some_and(|last| now - last < BUSY);
            self.recent = if is_soon { self.recent.saturating_add(found) } else { found };
            if self.recent >= MANY {
                self.busy_until = Some(now + BUSY);
            }
            self.last_found = Some(now);
            self.is_short = true;
        }
        let is_busy = self.busy_until.is_some_and(|until| now < until);
        if is_busy && self.is_short {
            self.fill()?;
        }
        if !is_busy && self.busy_until.take().is_some() {
            self.remove();
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let mut made = 0;
        for number in 0..self.names {
            let path = self.path(number);
            if fs::symlink_metadata(&path).is_ok() {
                continue;
            }
            if made == AT_ONCE {
                return Ok(());
            }
            self.template.make(&self.folder, &path)?;
            made += 1;
        }
        self.is_short = false;
        Ok(())
    }

    fn remove(&self) {
        for number in 0..self.names {
            let _ = fs::remove_file(self.path(number));
        }
    }
}

impl Drop for Prepared {
    /// With what a program left that was killed while it took one.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::super::session_lock::SessionLock;
    use super::*;
    use crate::pattern::Patterns;

    const TEXT: &[u8] = b"schema app; subsystem io { event READ (n: u64), event WRITE (n: u64) }; \
        subsystem malloc { event MALLOC (n: u64) };";

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("lateralis-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn options(enable: &str) -> RecordOptions {
        let mut options = RecordOptions::new("out");
        options.enable = Patterns::parse(enable).unwrap();
        options
    }

    fn prepared(dir: &Path, options: &RecordOptions) -> Option<Prepared> {
        let loaded = lateralis_pleco::compile("app.pleco", TEXT).schema.unwrap();
        Prepared::new(dir, 0xab, options, &loaded)
    }

    fn files(dir: &Path) -> Vec<fs::Metadata> {
        let entries = fs::read_dir(dir.join(folder_name(0xab))).into_iter().flatten();
        entries.map(|entry| entry.unwrap().metadata().unwrap()).collect()
    }

    #[test]
    fn there_are_some_while_many_programs_start_and_few_of_them() {
        let dir = folder("prepared");
        let mut many = prepared(&dir, &options("io")).unwrap();
        many.tend(MANY - 1).unwrap();
        assert!(files(&dir).is_empty(), "few programs are not many");
        many.tend(1).unwrap();
        assert_eq!(files(&dir).len(), AT_ONCE as usize, "the rings are looked at in between");
        (0..4).for_each(|_| many.tend(0).unwrap());
        let made = files(&dir);
        assert_eq!(made.len(), many.names() as usize);
        assert!(made.len() <= NAMES_MAX as usize);
        assert!(made.iter().map(|file| file.blocks() * 512).sum::<u64>() <= BYTES_MAX);
        assert!(made.iter().all(|file| file.permissions().mode() & 0o777 == 0o600));
        // What a program took is made again, in new memory.
        let (taken, path) = (dir.join("1-1.area"), many.path(0));
        fs::rename(&path, &taken).unwrap();
        many.tend(1).unwrap();
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_ne!(inode(&path), inode(&taken));
        many.busy_until = Some(Instant::now());
        many.tend(0).unwrap();
        assert!(files(&dir).is_empty(), "there are none when none starts");
        many.tend(MANY).unwrap();
        fs::rename(many.path(1), many.folder.join("00000000000000cd")).unwrap();
        drop(many);
        let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [taken], "nothing stays but what a program took");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_is_in_one_is_the_schema_the_patterns_and_no_memory_of_another() {
        let dir = folder("prepared-content");
        let mut few = prepared(&dir, &options("io:READ")).unwrap();
        few.tend(MANY).unwrap();
        let bytes = fs::read(few.path(0)).unwrap();
        let word = |offset: u64| {
            u32::from_ne_bytes(bytes[offset as usize..offset as usize + 4].try_into().unwrap())
        };
        assert_eq!(bytes[..16], [0; 16], "it is no area before it has a program");
        assert_eq!((word(header::CREATOR_PID), word(header::STATE)), (0, abi::AREA_INITIALISING));
        assert_eq!(word(header::SESSION), 0xab);
        assert_eq!(bytes[header::ENABLE as usize..][..8], *b"io:READ\0");
        let base = (abi::ENABLE_OFFSET + u64::from(abi::INTERNAL_EVENT_COUNT)) as usize;
        assert_eq!(bytes[base..base + 4], [1, 0, 0, 0]);
        let rings = &bytes[abi::RINGS_OFFSET as usize..];
        let stride = (few.template.bytes - abi::RINGS_OFFSET) / launch::possible_cpus().unwrap();
        let is_set = |(at, byte): (usize, &u8)| (*byte != 0).then_some(at as u64 % stride);
        let set: Vec<u64> = rings.iter().enumerate().filter_map(is_set).collect();
        let of_control = |at: &u64| {
            (ring::MASK..ring::MASK + 8).contains(at)
                || (ring::BACKED_BYTES..ring::BACKED_BYTES + 8).contains(at)
        };
        assert!(!set.is_empty() && set.iter().all(of_control), "{set:?}");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn programs_that_make_other_areas_have_none() {
        let dir = folder("prepared-none");
        let mut shared = options("io");
        shared.shared = true;
        let mut flight = options("io");
        flight.mode = RingMode::Overwrite;
        let mut large = options("io");
        large.buffer_bytes = 64 << 20;
        for options in [shared, flight, large] {
            assert!(prepared(&dir, &options).is_none());
        }
        // Where a file system cannot do it, the first try says so.
        let mut nowhere = prepared(&dir.join("none"), &options("io")).unwrap();
        assert!(nowhere.tend(MANY).is_err());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn those_of_a_killed_recorder_are_removed_and_those_of_a_living_one_are_not() {
        let dir = folder("prepared-killed");
        let lock = SessionLock::take(&dir, 0xab).unwrap();
        let living = dir.join(folder_name(0xab)).join("3");
        let others = ["prepared-00000000000000ac", "prepared-ac", "prepared-"];
        for path in others.iter().map(|other| dir.join(other).join("3")).chain([living.clone()]) {
            fs::create_dir(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        sweep(&dir);
        assert!(living.exists());
        assert_eq!(others.map(|other| dir.join(other).exists()), [false, true, true]);
        drop(lock);
        sweep(&dir);
        assert!(!living.exists());
        fs::remove_dir_all(&dir).unwrap();
    }
}
