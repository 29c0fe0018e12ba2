// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading files that others may have put there.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file. A link is not followed, a FIFO not waited for, a device not touched.
///
/// # Errors
/// It is not there, is no regular file, or may not be read.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    // What a device does when it is opened must not be done: it is looked at first. What takes its
    // place between the two is refused by the second look.
    let is_regular = path.symlink_metadata()?.is_file();
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
    if !is_regular {
        return Err(refused());
    }
    let file = File::from(rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(refused()),
    }
}

/// Reads a regular file of at most the given number of bytes.
///
/// # Errors
/// As [`open_regular`]; [`io::ErrorKind::FileTooLarge`].
pub fn read_regular(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TemporaryFolder;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let root = TemporaryFolder::new("lat-test-").unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::write(at("file"), "12345").unwrap();
        symlink("file", at("link")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(read_regular(&at("file"), 5).unwrap(), b"12345");
        assert_eq!(read_regular(&at("file"), 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        for name in ["link", "fifo", ".", "missing"] {
            assert!(read_regular(&at(name), 5).is_err(), "{name}");
        }
        assert!(read_regular(Path::new("/dev/zero"), 5).is_err());
    }
}
