// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An area file in memory.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;

use lateralis_ring::AreaView;
use rustix::mm::{MapFlags, ProtFlags};

use super::sigbus::Guard;

/// Maximum size of a mapped file: larger than any area.
const MAP_BYTES_MAX: u64 = 1 << 40;

/// A mapped file. Unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    /// Offset of the area in the file, a multiple of 8.
    area_offset: usize,
    writable: bool,
    guard: Guard,
}

// SAFETY: the mapping is owned, and accessed only through views, which any thread may use.
unsafe impl Send for Mapping {}

/// Mapping mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Shared, for recording: stores are visible to the program.
    Shared,
    /// Private: no store here changes the file.
    Private,
}

impl Mapping {
    /// Maps all of a file. `None` for an empty one.
    pub(super) fn of_file(file: &File, access: Access) -> io::Result<Option<Mapping>> {
        let bytes = file.metadata()?.len();
        if bytes == 0 {
            return Ok(None);
        }
        if bytes > MAP_BYTES_MAX {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let bytes =
            usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let flags = match access {
            Access::Shared => MapFlags::SHARED,
            // Written pages would be private; nothing is written, but atomic loads need
            // memory that could be.
            Access::Private => MapFlags::PRIVATE | MapFlags::NORESERVE,
        };
        // SAFETY: a fresh address chosen by the kernel; it has no other user.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
                file,
                0,
            )?
        };
        let base = NonNull::new(base.cast::<u8>())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let guard = Guard::new(base.addr().get(), bytes);
        Ok(Some(Mapping { base, bytes, area_offset: 0, writable: access == Access::Shared, guard }))
    }

    /// The same mapping for an area at an offset in the file.
    /// `None` if the offset is not a multiple of 8 inside the file.
    pub(super) fn at_offset(mut self, offset: u64) -> Option<Mapping> {
        self.area_offset = usize::try_from(offset).ok()?;
        (self.area_offset < self.bytes && self.area_offset.is_multiple_of(8)).then_some(self)
    }

    /// The area's memory.
    pub(super) fn view(&self) -> AreaView<'_> {
        // SAFETY: `area_offset` is inside the mapping, so the sum is; the base is page-aligned,
        // the offset a multiple of 8.
        let start = unsafe { self.base.add(self.area_offset) };
        // SAFETY: aligned to 8; the rest of the mapping is valid for reads and writes as long
        // as self, which the view's lifetime is bound to; missing pages are handled by the
        // guard; this process accesses it only through views.
        unsafe { AreaView::from_raw(start, self.bytes - self.area_offset, self.writable) }
    }

    /// The memory of a private mapping of an unchanging file, as bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        debug_assert!(!self.writable, "mapping:private");
        // SAFETY: valid for reads as long as self. A file that other processes change meanwhile
        // could change under the slice; recovery is documented to require files at rest, and
        // the only reader of this slice, the scan for magic words, handles any bytes.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }

    /// Whether the file has been truncated.
    pub(super) fn was_cut(&self) -> bool {
        self.guard.was_hit()
    }
}

impl Drop for Mapping {
    /// Unmaps.
    fn drop(&mut self) {
        // SAFETY: this is the mapping made above; views cannot outlive self.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Opens an area file for recording: it must be regular, belong to this user (or any user for root), and not
/// be a symbolic link. Also returns the checked metadata.
pub(super) fn open_area(path: &Path) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)?;
    let metadata = file.metadata()?;
    let uid = rustix::process::geteuid();
    if !metadata.is_file() || (!uid.is_root() && metadata.uid() != uid.as_raw()) {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    Ok((file, metadata))
}
