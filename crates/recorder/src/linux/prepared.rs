// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Areas created before the programs that will use them [ring-abi §2, "Prepared areas"]: if many
//! programs start one after the other, creating an area is a third of the cost of recording one of them.
//!
//! Each is a new file that no other program has used. An area of a program that has ended is never given to
//! another one: even if no process has it open or maps it, its pages may still be
//! written (buffers registered with io_uring keep them), so only new pages are safe.

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

/// Number of names for prepared areas of a session; not all of them need to exist.
const NAMES_MAX: u64 = 16;
/// Maximum memory of all of them together.
const BYTES_MAX: u64 = 4 << 20;
/// Maximum number created between two rounds of draining.
const AT_ONCE: usize = 6;
/// This many programs, each started within this time after the previous one, count as busy; if none starts
/// for this time, the session is idle.
const MANY: usize = 4;
const BUSY: Duration = Duration::from_secs(1);
/// Bytes at the start of a ring's data that already have content: the program maps them with the
/// control page.
const READY_BYTES: u64 = 4096;
/// Initial memory of rings, as in `first_bytes` of `tracer/c/src/area.c`: of the CPU on which the
/// program starts, and the share of each other one.
const FIRST_RING_BYTES_HERE: u64 = 128 << 10;
const FIRST_BYTES: u64 = 256 << 10;
const FIRST_RING_BYTES: std::ops::RangeInclusive<u64> = 16 << 10..=32 << 10;
/// Likewise if events are enabled that a program records by the thousands before its rings are first read.
const FIRST_BYTES_FREQUENT: u64 = 2 << 20;
const FIRST_RING_BYTES_FREQUENT: u64 = 256 << 10;
/// `LAT_RING_PER_CPU` of `abi.h`.
const RING_PER_CPU: u32 = 1;
/// Subsystems of such events, as in `tracer/preload/real.c`.
const FREQUENT: [&str; 2] = ["malloc", "mutex"];

const PREFIX: &str = "prepared-";

/// Initial content of every prepared area of a session.
#[derive(Debug)]
struct Template {
    /// Length of the file.
    bytes: u64,
    /// Offset and content of non-zero parts, and of pages that the program maps at once, except rings.
    parts: Vec<(u64, Vec<u8>)>,
    /// Offset and length of allocated parts, except rings.
    allocated: Vec<(u64, u64)>,
    rings: Rings,
}

/// The rings of an area, one per CPU.
#[derive(Debug)]
struct Rings {
    geometry: Geometry,
    /// Memory of the data of the ring of the area's CPU, and of each other one.
    here: u64,
    elsewhere: u64,
}

impl Rings {
    fn new(options: &RecordOptions, loaded: &Schema, geometry: Geometry) -> Rings {
        let is_frequent = loaded.events.iter().any(|event| {
            loaded.subsystems.get(event.subsystem).is_some_and(|subsystem| {
                FREQUENT.contains(&subsystem.name.as_str())
                    && options.enable.matches(&subsystem.name, &event.name)
            })
        });
        let count = u64::from(geometry.ring_count());
        let (least, most) = FIRST_RING_BYTES.into_inner();
        let (here, elsewhere) = match is_frequent {
            true => {
                let share = (FIRST_BYTES_FREQUENT / count).max(FIRST_RING_BYTES_FREQUENT);
                (share, share)
            }
            false => (FIRST_RING_BYTES_HERE, (FIRST_BYTES / count).clamp(least, most)),
        };
        let whole = geometry.ring_bytes();
        let pages = |bytes: u64| (bytes & !(abi::RING_CONTROL_BYTES - 1)).min(whole);
        Rings { geometry, here: pages(here), elsewhere: pages(elsewhere) }
    }

    fn first_bytes(&self, ring: u32, cpu: Option<u32>) -> u64 {
        if cpu == Some(ring) { self.here } else { self.elsewhere }
    }

    /// Offset and length of allocated parts in an area for programs that start on this CPU.
    fn allocated(&self, cpu: Option<u32>) -> impl Iterator<Item = (u64, u64)> {
        (0..self.geometry.ring_count()).map(move |ring| {
            let bytes = abi::RING_CONTROL_BYTES + self.first_bytes(ring, cpu);
            (self.geometry.control_offset(ring), bytes)
        })
    }

    /// Offset and content of the starts of all rings.
    fn parts(&self, cpu: Option<u32>) -> impl Iterator<Item = (u64, Vec<u8>)> {
        let whole = self.geometry.ring_bytes();
        (0..self.geometry.ring_count()).map(move |ring| {
            let first = self.first_bytes(ring, cpu);
            let backed = if first == whole { 0 } else { first };
            let mut control = vec![0; (abi::RING_CONTROL_BYTES + READY_BYTES) as usize];
            store(&mut control, ring::MASK, &((whole - 1) & !7).to_ne_bytes());
            store(&mut control, ring::BACKED_BYTES, &backed.to_ne_bytes());
            (self.geometry.control_offset(ring), control)
        })
    }
}

/// The prepared areas of a session. Removed on drop.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Contains only these areas, so that a search for areas does not list them.
    folder: PathBuf,
    template: Template,
    names: u32,
    /// Some may be missing.
    is_short: bool,
    last_found: Option<Instant>,
    /// Number of programs since the session was last idle.
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

/// Removes leftovers of killed recorders. No program takes a prepared area of an ended session.
pub(super) fn sweep(area_dir: &Path) {
    for entry in fs::read_dir(area_dir).into_iter().flatten().flatten() {
        let Some(session) = entry.file_name().to_str().and_then(session_of) else { continue };
        if !is_held(&lock_path(area_dir, session)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Template {
    /// For programs with the preload library, whose schema this is. `None`: they do not create
    /// such areas, or not with growing rings.
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
        parts.push((abi::HEAP_OFFSET, text.as_bytes().to_vec()));
        let allocated = vec![
            (0, abi::SCHEMAS_OFFSET + page),
            (abi::ENABLE_OFFSET, page),
            (abi::WANTED_OFFSET, page),
            (abi::HEAP_OFFSET, heap_bytes),
        ];
        let bytes = geometry.area_bytes();
        Some(Template { bytes, parts, allocated, rings: Rings::new(options, loaded, geometry) })
    }

    /// Bytes of memory of an area.
    fn allocated_bytes(&self) -> u64 {
        let rings = self.rings.allocated(Some(0));
        self.allocated.iter().copied().chain(rings).map(|(_, bytes)| bytes).sum()
    }

    /// Creates a file for programs that start on this CPU, which gets its name only when it is complete.
    fn make(&self, folder: &Path, path: &Path, cpu: Option<u32>) -> io::Result<()> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::RUSR | Mode::WUSR)?);
        file.set_len(self.bytes)?;
        for (offset, bytes) in self.allocated.iter().copied().chain(self.rings.allocated(cpu)) {
            fallocate(&file, FallocateFlags::KEEP_SIZE, offset, bytes)?;
        }
        for (offset, content) in &self.parts {
            file.write_all_at(content, *offset)?;
        }
        for (offset, content) in self.rings.parts(cpu) {
            file.write_all_at(&content, offset)?;
        }
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(linkat(CWD, link, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }
}

/// The ring geometry that a program would choose [`ring_geometry` of `tracer/c/src/area.c`]: it accepts no
/// other.
fn geometry(options: &RecordOptions, count: u32) -> Option<Geometry> {
    let floor = |bytes: u64| 1 << bytes.max(1).ilog2();
    let buffer = options.buffer_bytes.min(options.cap_bytes / u64::from(count));
    let buffer: u64 = floor(buffer.max(8192));
    let packet: u64 = floor(options.packet_bytes.min(buffer / 2).max(4096)).min(1 << 24);
    let packets = (buffer / packet).min(65536);
    let stride = abi::RING_CONTROL_BYTES + packet * packets;
    Geometry::new(RingKind::PerCpu, count, stride, packet, packets, u64::MAX).ok()
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
    /// For the programs of a session, which load the library with the schema `loaded`. Creates
    /// no area yet. `None`: the session prepares none.
    pub(super) fn new(
        area_dir: &Path,
        session: u64,
        options: &RecordOptions,
        loaded: &Schema,
    ) -> Option<Prepared> {
        let template = Template::new(session, options, loaded)?;
        let names = (BYTES_MAX / template.allocated_bytes().max(1)).min(NAMES_MAX) as u32;
        // The same number for each CPU, if that is at least one.
        let count = template.rings.geometry.ring_count().max(1);
        let names = if names < count { names } else { names - names % count };
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

    /// The CPU on which programs start that try this name first, as in `take_prepared` of
    /// `tracer/c/src/area.c`.
    fn cpu_of(&self, number: u32) -> Option<u32> {
        let count = self.template.rings.geometry.ring_count();
        (count != 0 && self.names >= count).then(|| number % count)
    }

    fn path(&self, number: u32) -> PathBuf {
        self.folder.join(number.to_string())
    }

    /// Counts started programs, and creates areas for the next ones, or removes them if the session is idle.
    /// Error: there is no room, or the file system lacks support; then there are none from now on.
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
        // Other names, of 16 digits, are areas that programs are taking.
        let number = |name: &str| name.parse::<u32>().ok().filter(|_| name.len() < 16);
        let there: Vec<u32> = fs::read_dir(&self.folder)?
            .filter_map(|entry| number(entry.ok()?.file_name().to_str()?))
            .collect();
        let missing = (0..self.names).filter(|number| !there.contains(number));
        for (made, number) in missing.enumerate() {
            if made == AT_ONCE {
                return Ok(());
            }
            self.template.make(&self.folder, &self.path(number), self.cpu_of(number))?;
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
    /// Includes leftovers of a program that was killed while it took one.
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
        assert_eq!(files(&dir).len(), AT_ONCE, "the rings are looked at in between");
        (0..4).for_each(|_| many.tend(0).unwrap());
        let made = files(&dir);
        assert_eq!(made.len(), many.names() as usize);
        assert!(made.len() <= NAMES_MAX as usize);
        assert!(made.iter().map(|file| file.blocks() * 512).sum::<u64>() <= BYTES_MAX);
        assert!(made.iter().all(|file| file.permissions().mode() & 0o777 == 0o600));
        // An area that a program took is replaced by a new one, in new memory.
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
        // Each is for programs that start on one CPU.
        let count = launch::possible_cpus().unwrap() as u32;
        for number in 0..few.names().min(AT_ONCE as u32) {
            let bytes = fs::read(few.path(number)).unwrap();
            let backed = |ring: u32| {
                let at = few.template.rings.geometry.control_offset(ring) + ring::BACKED_BYTES;
                u64::from_ne_bytes(bytes[at as usize..at as usize + 8].try_into().unwrap())
            };
            let large: Vec<u32> =
                (0..count).filter(|ring| backed(*ring) == FIRST_RING_BYTES_HERE).collect();
            let expected: Vec<u32> = few.cpu_of(number).into_iter().collect();
            assert_eq!(large, expected, "{number}");
            assert!(
                (0..count)
                    .all(|ring| large.contains(&ring) || FIRST_RING_BYTES.contains(&backed(ring)))
            );
        }
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
        // If a file system lacks support, the first try returns the error.
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
