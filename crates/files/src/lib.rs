// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files and folders in places that other users can write to: created under unpredictable names,
//! private, and removed at every exit of the process.
//!
//! ```text
//! NewFile::beside("x.json") ─ write ─► a file without a name ─ publish ─► x.json
//! TemporaryFolder::new("lat-") ─────► $TMPDIR/lat-RANDOM, 0700 ─ drop, SIGINT, next start ─► gone
//! ```

mod ending;
mod folder;
mod new_file;
mod reading;
mod shared;
mod temporary;

pub use folder::{create_folder, is_own_folder, is_writable_folder, owner_elsewhere};
pub use new_file::{NewFile, unnamed_file, write_file};
pub use reading::{open_regular, read_regular};
pub use shared::{is_own_entry, own_entries, random_entry, shared_entry};
pub use temporary::{NewFolder, TemporaryFolder};

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

/// Mode of a file before the umask: readable by everyone whom the user permits.
pub const SHARED: u32 = 0o666;
/// Mode of a file that only its owner reads.
pub const PRIVATE: u32 = 0o600;

/// How often another random name is tried. Two tries in a row that meet the same 64 bits by chance do not
/// happen; an error that repeats does.
const TRIES: usize = 8;

/// `.STEM.RANDOM`: 64 random bits, hidden from readers of the folder.
fn random_name(stem: &OsStr) -> io::Result<OsString> {
    let mut bytes = [0; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    let mut name = OsString::from(".");
    // Names have 255 bytes at most.
    if stem.len() <= 200 {
        name.push(stem);
        name.push(".");
    }
    name.push(format!("{:016x}", u64::from_ne_bytes(bytes)));
    Ok(name)
}

/// The folder a path is in, and its name there.
fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "this path has no name of a file")
    })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((folder.unwrap_or(Path::new(".")), name))
}
