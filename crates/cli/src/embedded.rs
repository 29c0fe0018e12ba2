// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs embedded in `lat`, and their installation into folders where they can run.

mod places;

use crate::error::CliError;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file inside this binary.
pub struct Embedded {
    stem: &'static str,
    ending: &'static str,
    content: &'static [u8],
    /// Hash of the content, computed when `lat` is built. It distinguishes versions.
    hash: &'static str,
}

/// The library that records events for calls of unmodified programs.
pub const PRELOAD: Embedded = Embedded {
    stem: "liblateralis-preload",
    ending: ".so",
    content: include_bytes!(concat!(env!("OUT_DIR"), "/liblateralis-preload.so")),
    hash: env!("LAT_PRELOAD_HASH"),
};

/// The client of the demonstration.
pub const DEMO_CLIENT: Embedded = Embedded {
    stem: "demo-client",
    ending: "",
    content: include_bytes!(concat!(env!("OUT_DIR"), "/demo-client")),
    hash: env!("LAT_DEMO_CLIENT_HASH"),
};

impl Embedded {
    /// Writes the file into a cache folder, unless it is already there, and returns its path. Its folder is
    /// named by a hash of the content: versions of `lat` do not disturb each other, and programs have the
    /// name that recordings show. The file appears complete, by a rename.
    ///
    /// Errors: there is no folder that this user can write and no other user can change.
    pub fn install(&self) -> Result<PathBuf, CliError> {
        self.install_into("", &|_| true)
    }

    /// Like [`Embedded::install`], for a library that the dynamic linker of each program loads. The path
    /// contains `$LIB`, which the dynamic linker of the GNU C library replaces by the name of its library
    /// folder; the library is installed there. Other C libraries leave `$LIB` unchanged, find no such file,
    /// and continue without the library, which they could not load.
    ///
    /// Errors: as [`Embedded::install`]. A folder is used only if its files may be executed and its path is
    /// valid in `LD_PRELOAD`.
    pub fn install_library(&self) -> Result<PathBuf, CliError> {
        let folders = library_folders();
        let name = format!("{}{}", self.stem, self.ending);
        let mut path = None;
        for folder in &folders {
            let first = self.install_into(folder, &places::loads)?;
            path.get_or_insert(first);
        }
        let path = path.unwrap_or_default();
        let above = path.ancestors().nth(1 + Path::new(folders[0]).components().count());
        Ok(above.unwrap_or(&path).join("$LIB").join(name))
    }

    fn install_into(
        &self,
        subfolder: &str,
        serves: &dyn Fn(&Path) -> bool,
    ) -> Result<PathBuf, CliError> {
        let mut refused = None;
        for cache in places::candidates() {
            let folder = cache.path.join(self.hash).join(subfolder);
            let path = folder.join(format!("{}{}", self.stem, self.ending));
            match self.write(&cache, &folder, &path) {
                Ok(()) if serves(&path) => return Ok(path),
                Ok(()) => {}
                Err(cause) => {
                    let error = CliError::at_path("cannot install a part of lat", &path, &cause);
                    refused.get_or_insert(error);
                }
            }
        }
        Err(refused.unwrap_or_else(|| {
            CliError::new(
                "no folder for a part of lat: it must be yours alone, on a file system whose files may \
                 be run, with no blank, colon or $ in its name",
                "",
                "set XDG_CACHE_HOME to such a folder",
            )
        }))
    }

    fn write(&self, cache: &places::Candidate, folder: &Path, path: &Path) -> io::Result<()> {
        cache.make(folder)?;
        if has_content(path, self.content) {
            return Ok(());
        }
        let unfinished = folder.join(format!(".{}-{}", self.stem, std::process::id()));
        // A leftover of an earlier process with the same number can be removed.
        let _ = fs::remove_file(&unfinished);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(&unfinished)
            .and_then(|mut file| {
                file.write_all(self.content)?;
                // Independent of the umask: programs of other users may have to read the file.
                file.set_permissions(Permissions::from_mode(0o755))
            })
            .and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }
}

/// Possible values of `$LIB` in programs of this machine's architecture. The value is fixed when the C
/// library is built [ld.so(8)].
fn library_folders() -> [&'static str; 3] {
    if cfg!(target_arch = "aarch64") {
        ["lib/aarch64-linux-gnu", "lib64", "lib"]
    } else {
        ["lib/x86_64-linux-gnu", "lib64", "lib"]
    }
}

/// Whether a file can be read and has exactly this content. It is read in pieces: memory for a whole file
/// costs a page fault for every 4 KiB.
fn has_content(path: &Path, content: &[u8]) -> bool {
    let Ok(mut file) = File::open(path) else { return false };
    if !file.metadata().is_ok_and(|status| status.len() == content.len() as u64) {
        return false;
    }
    let mut piece = [0; 16384];
    let mut rest = content;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return rest.is_empty(),
            Ok(length) => match rest.strip_prefix(&piece[..length]) {
                Some(behind) => rest = behind,
                None => return false,
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a, 64 bit.
    fn fnv1a(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    #[test]
    fn hashes_are_fnv1a_of_the_content() {
        // Test vectors of the function's authors.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        for file in [PRELOAD, DEMO_CLIENT] {
            assert_eq!(file.hash, format!("{:016x}", fnv1a(file.content)), "{}", file.stem);
        }
    }

    #[test]
    fn content_is_compared_to_the_last_byte() {
        let path = std::env::temp_dir().join(format!("lateralis-content-{}", std::process::id()));
        let content = vec![7; 40_000];
        assert!(!has_content(&path, &content));
        fs::write(&path, &content).expect("written");
        assert!(has_content(&path, &content));
        assert!(!has_content(&path, &content[1..]) && !has_content(&path, &[]));
        let mut other = content.clone();
        other[39_999] = 8;
        assert!(!has_content(&path, &other));
        other[39_999] = 7;
        other.push(7);
        assert!(!has_content(&path, &other));
        fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn embedded_files_are_programs_of_this_system() {
        for file in [PRELOAD, DEMO_CLIENT] {
            assert_eq!(&file.content[..4], b"\x7fELF", "{}", file.stem);
        }
    }
}
