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

/// Longest file that is mapped: more than any area can ask for.
const MAP_BYTES_MAX: u64 = 1 << 40;

/// A mapped file. Unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    /// Where the area begins in the file, a multiple of 8.
    area_offset: usize,
    writable: bool,
    guard: Guard,
}

// SAFETY: the mapping is owned, and used only through views, which any thread may use.
unsafe impl Send for Mapping {}

/// How a file is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Shared, to work with: stores reach the program.
    Shared,
    /// Private: nothing that is done here changes the file.
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
            // Written pages would be private; nothing writes, but loads of atomics want
            // memory that could be.
            Access::Private => MapFlags::PRIVATE | MapFlags::NORESERVE,
        };
        // SAFETY: a fresh address chosen by the kernel; nothing else uses it.
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

    /// The same mapping for an area that begins inside the file.
    /// `None` if the offset is no multiple of 8 inside the file.
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

    /// The memory of a private mapping of a file that nobody changes, as bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        debug_assert!(!self.writable, "mapping:private");
        // SAFETY: valid for reads as long as self. A file changed by others while it is read
        // here could change under the slice; recovery is documented to want files at rest, and
        // the only reader of this slice, the scan for magic words, copes with any bytes.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }

    /// Whether the file turned out shorter than it was.
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

/// Opens an area file for working with it: regular, of this user (or of anybody for root), not
/// through a symbolic link. With what was looked at.
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
