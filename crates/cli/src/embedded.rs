// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that `lat` carries in itself, and putting them where they can run.

use crate::error::CliError;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file inside this binary.
pub struct Embedded {
    stem: &'static str,
    ending: &'static str,
    bytes: &'static [u8],
}

/// The library that makes events of what an unmodified program calls.
pub const PRELOAD: Embedded = Embedded {
    stem: "liblateralis-preload",
    ending: ".so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/liblateralis-preload.so")),
};

/// The client of the demonstration.
pub const DEMO_CLIENT: Embedded = Embedded {
    stem: "demo-client",
    ending: "",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/demo-client")),
};

impl Embedded {
    /// Writes the file into the user's cache folder, unless it is there already,
    /// and returns its path. Its folder is named by a hash of the content, so versions
    /// of `lat` do not disturb each other, and programs bear the name that recordings
    /// show; the file appears whole, by a rename.
    ///
    /// Errors: no folder that can be written.
    pub fn install(&self) -> Result<PathBuf, CliError> {
        let folder = cache_folder()?.join(format!("{:016x}", fnv1a(self.bytes)));
        let path = folder.join(format!("{}{}", self.stem, self.ending));
        if fs::read(&path).is_ok_and(|there| there == self.bytes) {
            return Ok(path);
        }
        self.write(&folder, &path)
            .map_err(|cause| CliError::at_path("cannot install a part of lat", &path, &cause))?;
        Ok(path)
    }

    fn write(&self, folder: &Path, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let unfinished = folder.join(format!(".{}-{}", self.stem, std::process::id()));
        // Left over from a process of the same number: not worth anything.
        let _ = fs::remove_file(&unfinished);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(&unfinished)
            .and_then(|mut file| file.write_all(self.bytes))
            .and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }
}

/// `$XDG_CACHE_HOME/lateralis`, else `~/.cache/lateralis`.
fn cache_folder() -> Result<PathBuf, CliError> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("lateralis"))
        .ok_or_else(|| {
            CliError::new("no cache folder", "", "set HOME or XDG_CACHE_HOME to a folder of yours")
        })
}

/// FNV-1a, 64 bit: tells versions apart; nothing is trusted because of it.
const fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_fnv1a() {
        // Test vectors of the function's authors.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn embedded_files_are_programs_of_this_system() {
        for file in [PRELOAD, DEMO_CLIENT] {
            assert_eq!(&file.bytes[..4], b"\x7fELF", "{}", file.stem);
        }
    }
}
