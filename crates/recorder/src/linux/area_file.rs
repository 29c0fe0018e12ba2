// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file of an area: its identity, owner, and users.
//!
//! Whether an area is in use is determined by the kernel's view of the file, never by the process
//! ids in it: those are untrusted, have another meaning in another PID namespace, and are
//! reused. A mapping keeps its file open as long as the process has it, however many
//! descriptors it closes, and the kernel drops it when the process ends or executes another program.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::mm::{MapFlags, ProtFlags};

use super::mapping::open_area;

/// File system of shared memory (include/uapi/linux/magic.h): there stat(2) and /proc/PID/maps report
/// the same device, unlike on others (btrfs, overlay).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Sets the signal of a lease (include/uapi/asm-generic/fcntl.h).
const F_SETSIG: i32 = 10;

/// A file as identified in /proc/PID/maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) inode: u64,
}

/// An open file of an area.
#[derive(Debug)]
pub(super) struct AreaFile {
    file: File,
    key: FileKey,
    owner: u32,
}

/// Users that have a file open or mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Users {
    /// Users besides the descriptor used for the query.
    Others,
    /// No other user, in any namespace.
    Nobody,
    /// The file system does not support the query.
    Unknown,
}

impl AreaFile {
    /// Opens the file of an area like [`open_area`]. Its mappings must be made from this
    /// descriptor, otherwise this process counts as another user.
    pub(super) fn open(path: &Path) -> io::Result<AreaFile> {
        let (file, metadata) = open_area(path)?;
        let is_tmpfs = rustix::fs::fstatfs(&file).is_ok_and(|fs| fs.f_type == TMPFS_MAGIC);
        let device = metadata.dev();
        let by_stat = FileKey {
            major: libc::major(device),
            minor: libc::minor(device),
            inode: metadata.ino(),
        };
        let key = if is_tmpfs { by_stat } else { key_by_mapping(&file).unwrap_or(by_stat) };
        Ok(AreaFile { file, key, owner: metadata.uid() })
    }

    /// The descriptor.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Its identity in maps.
    pub(super) fn key(&self) -> FileKey {
        self.key
    }

    /// User id of its creator, from the file system.
    pub(super) fn owner(&self) -> u32 {
        self.owner
    }

    /// Bytes of memory allocated.
    pub(super) fn allocated_bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.blocks() * 512)
    }

    /// Whether another process has it open or mapped now. Cost: three system calls.
    ///
    /// A lease for writing is granted only while no other process has the file open [fcntl(2), F_SETLEASE],
    /// and is released at once. A process that opens it in between waits until then.
    pub(super) fn users(&self) -> Users {
        let raw = self.file.as_raw_fd();
        // SAFETY: commands with an integer on a descriptor that is open as long as `self`. SIGURG is
        // ignored by default; SIGIO, which would be sent to this process if another one
        // opened the file meanwhile, terminates it.
        let asked = unsafe {
            libc::fcntl(raw, F_SETSIG, libc::SIGURG);
            libc::fcntl(raw, libc::F_SETLEASE, libc::F_WRLCK)
        };
        if asked == 0 {
            // SAFETY: as above.
            unsafe { libc::fcntl(raw, libc::F_SETLEASE, libc::F_UNLCK) };
            return Users::Nobody;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EAGAIN) => Users::Others,
            _ => Users::Unknown,
        }
    }
}

impl AsFd for AreaFile {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Identity of a file in this process's own maps.
fn key_by_mapping(file: &File) -> Option<FileKey> {
    const BYTES: usize = 4096;
    // SAFETY: a fresh address chosen by the kernel, without access.
    let base = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), BYTES, ProtFlags::empty(), MapFlags::SHARED, file, 0)
    }
    .ok()?;
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    // SAFETY: the mapping made above; its address is not used elsewhere.
    let _ = unsafe { rustix::mm::munmap(base, BYTES) };
    let start = base.addr() as u64;
    map_ranges(&maps).find(|range| range.start == start)?.file
}

/// A line of /proc/PID/maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MapRange {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) writable: bool,
    pub(super) executable: bool,
    pub(super) shared: bool,
    /// `None`: memory without a file.
    pub(super) file: Option<FileKey>,
}

fn map_range(line: &[u8]) -> Option<MapRange> {
    let text = std::str::from_utf8(line.get(..line.len().min(128))?)
        .or_else(|error| std::str::from_utf8(&line[..error.valid_up_to()]))
        .ok()?;
    let mut fields = text.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?.as_bytes();
    let _offset = fields.next()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode = fields.next()?.parse().ok()?;
    let key = FileKey {
        major: u32::from_str_radix(major, 16).ok()?,
        minor: u32::from_str_radix(minor, 16).ok()?,
        inode,
    };
    Some(MapRange {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        writable: rights.get(1) == Some(&b'w'),
        executable: rights.get(2) == Some(&b'x'),
        shared: rights.get(3) == Some(&b's'),
        file: (inode != 0).then_some(key),
    })
}

/// Parses the text of /proc/PID/maps.
pub(super) fn map_ranges(maps: &[u8]) -> impl Iterator<Item = MapRange> + '_ {
    maps.split(|byte| *byte == b'\n').filter_map(map_range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn file(name: &str) -> (std::path::PathBuf, AreaFile) {
        let path = std::env::temp_dir().join(format!("lateralis-{name}-{}", std::process::id()));
        std::fs::write(&path, vec![0; 8192]).unwrap();
        let area = AreaFile::open(&path).unwrap();
        (path, area)
    }

    #[test]
    fn lines_of_maps() {
        let text = b"7f00-8000 r-xp 00001000 fe:0a 1234   /lib/a b \xff\n\
                     9000-a000 rw-s 00000000 00:19 77 /dev/shm/x (deleted)\n\
                     b000-c000 rw-p 00000000 00:00 0 [heap]\nnonsense\n";
        let ranges: Vec<MapRange> = map_ranges(text).collect();
        assert_eq!(ranges.len(), 3);
        assert!(ranges[0].executable && !ranges[0].writable && !ranges[0].shared);
        assert_eq!(ranges[0].file, Some(FileKey { major: 0xfe, minor: 10, inode: 1234 }));
        assert!(ranges[1].shared && ranges[1].writable);
        assert_eq!(ranges[2].file, None);
    }

    #[test]
    fn a_file_is_in_use_as_long_as_a_process_has_it() {
        let (path, area) = file("users");
        assert_eq!(area.users(), Users::Nobody);
        let holder = std::fs::File::open(&path).unwrap();
        assert_eq!(area.users(), Users::Others);
        drop(holder);
        let mut child = Command::new("sleep")
            .arg("100")
            .stdin(Stdio::from(std::fs::OpenOptions::new().write(true).open(&path).unwrap()))
            .spawn()
            .unwrap();
        assert_eq!(area.users(), Users::Others);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(area.users(), Users::Nobody);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(area.users(), Users::Nobody, "also without a name");
    }

    #[test]
    fn maps_name_a_file_as_expected() {
        let (path, area) = file("key");
        assert_eq!(key_by_mapping(area.file()), Some(area.key()));
        std::fs::remove_file(&path).unwrap();
    }
}
