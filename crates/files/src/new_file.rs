// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file that appears under its name when it is whole.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, RenameFlags};

use crate::{TRIES, random_name, split};

/// A file that is being written. Nothing of it is left if it is dropped unpublished; where the file
/// system knows files without a name, not even if the process is killed.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// All names are relative to this, so that a folder that is replaced meanwhile changes nothing.
    folder: OwnedFd,
    name: OsString,
    /// Its name until it is published; `None`: it has none.
    hidden: Option<OsString>,
}

impl NewFile {
    /// A file that will be at `path`, with a mode that the umask reduces. Nothing that is there is
    /// opened or changed.
    ///
    /// # Errors
    /// The folder is not there, or no file can be made in it.
    pub fn beside(path: &Path, mode: u32) -> io::Result<Self> {
        let (folder, name) = Self::place(path)?;
        match without_name(&folder, mode) {
            Some(file) => Ok(Self { file, folder, name, hidden: None }),
            None => Self::named(folder, name, mode),
        }
    }

    fn place(path: &Path) -> io::Result<(OwnedFd, OsString)> {
        let (folder, name) = split(path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok((rustix::fs::open(folder, flags, Mode::empty())?, name.to_owned()))
    }

    fn named(folder: OwnedFd, name: OsString, mode: u32) -> io::Result<Self> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            let hidden = random_name(&name)?;
            match rustix::fs::openat(&folder, &hidden, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => {
                    return Ok(Self { file: file.into(), folder, name, hidden: Some(hidden) });
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The file itself.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives it its name, in place of what has that name.
    ///
    /// # Errors
    /// Those of the file system; a directory is not replaced.
    pub fn publish(mut self) -> io::Result<()> {
        if self.hidden.is_none() {
            for _ in 0..TRIES {
                let hidden = random_name(&self.name)?;
                match self.link(&hidden) {
                    Ok(()) => {
                        self.hidden = Some(hidden);
                        break;
                    }
                    Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let hidden = self.hidden.as_ref().ok_or(io::ErrorKind::AlreadyExists)?;
        rustix::fs::renameat(&self.folder, hidden, &self.folder, &self.name)?;
        self.hidden = None;
        Ok(())
    }

    /// Gives it its name if nothing has it.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`], and those of the file system.
    pub fn publish_new(mut self) -> io::Result<()> {
        match &self.hidden {
            None => self.link(&self.name)?,
            Some(hidden) => {
                let (folder, flags) = (&self.folder, RenameFlags::NOREPLACE);
                match rustix::fs::renameat_with(folder, hidden, folder, &self.name, flags) {
                    // A file system that cannot do that can link, which replaces nothing either.
                    Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                        let flags = AtFlags::empty();
                        rustix::fs::linkat(folder, hidden, folder, &self.name, flags)?;
                        return Ok(());
                    }
                    other => other?,
                }
                self.hidden = None;
            }
        }
        Ok(())
    }

    fn link(&self, name: &OsString) -> rustix::io::Result<()> {
        let of_file = path_of(&self.file);
        rustix::fs::linkat(CWD, &of_file, &self.folder, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(hidden) = self.hidden.take() {
            let _ = rustix::fs::unlinkat(&self.folder, &hidden, AtFlags::empty());
        }
    }
}

fn path_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// A file without a name, if this file system has such and it can be given a name later.
fn without_name(folder: &OwnedFd, mode: u32) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, ".", flags, Mode::from_raw_mode(mode)).ok()?;
    let file = File::from(file);
    rustix::fs::access(path_of(&file), Access::EXISTS).ok()?;
    Some(file)
}

/// A file without a name, that only this user may read, on the file system of `path`.
///
/// # Errors
/// The folder is not there, or no file can be made in it.
pub fn unnamed_file(path: &Path) -> io::Result<File> {
    // With a name on some file systems, which it loses here.
    NewFile::beside(path, crate::PRIVATE)?.file.try_clone()
}

/// Writes a whole file, in place of what has its name.
///
/// # Errors
/// Those of the file system; then what was there is still there.
pub fn write_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = NewFile::beside(path, mode)?;
    file.write_all(bytes)?;
    file.publish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PRIVATE, SHARED, TemporaryFolder};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// With a name from the beginning, as on a file system without files that have none.
    fn named(path: &Path) -> NewFile {
        let (folder, name) = NewFile::place(path).unwrap();
        NewFile::named(folder, name, PRIVATE).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_link_under_the_name_is_replaced_and_what_it_leads_to_stays() {
        let root = TemporaryFolder::new("lat-test-").unwrap();
        for make in [|path: &Path| NewFile::beside(path, PRIVATE).unwrap(), named] {
            let (path, precious) = (root.path().join("x"), root.path().join("precious"));
            fs::write(&precious, "precious").unwrap();
            symlink(&precious, &path).unwrap();
            let mut file = make(&path);
            file.write_all(b"new").unwrap();
            file.publish().unwrap();
            assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
            assert!(path.symlink_metadata().unwrap().is_file());
            assert_eq!(fs::read_to_string(&path).unwrap(), "new");
            assert_eq!(names(root.path()), ["precious", "x"]);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn what_is_not_published_leaves_nothing() {
        let root = TemporaryFolder::new("lat-test-").unwrap();
        let path = root.path().join("x");
        drop(NewFile::beside(&path, SHARED).unwrap());
        drop(named(&path));
        assert_eq!(names(root.path()), [""; 0]);
    }

    #[test]
    fn a_name_that_is_taken_is_not_taken_twice() {
        let root = TemporaryFolder::new("lat-test-").unwrap();
        let path = root.path().join("x");
        for make in [|path: &Path| NewFile::beside(path, SHARED).unwrap(), named] {
            symlink("nowhere", &path).unwrap();
            let error = make(&path).publish_new().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert!(path.is_symlink());
            fs::remove_file(&path).unwrap();
            make(&path).publish_new().unwrap();
            assert_eq!(names(root.path()), ["x"]);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn private_files_are_private_and_folders_are_not_replaced() {
        let root = TemporaryFolder::new("lat-test-").unwrap();
        write_file(&root.path().join("x"), b"1", PRIVATE).unwrap();
        let mode = fs::metadata(root.path().join("x")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::create_dir(root.path().join("d")).unwrap();
        assert!(write_file(&root.path().join("d"), b"1", SHARED).is_err());
        assert!(write_file(&root.path().join("missing/x"), b"1", SHARED).is_err());
        assert!(write_file(Path::new("/"), b"1", SHARED).is_err());
        assert_eq!(names(root.path()), ["d", "x"]);
    }
}
