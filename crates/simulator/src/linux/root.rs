// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of the machine: the program, its libraries, and additional files, each at the same path as on
//! the host, with the symbolic links on the way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::Error;
use crate::archive::Archive;
use crate::elf::{self, Unfit};

/// Largest number of symbolic links on one path.
const LINKS_MAX: usize = 40;
/// Largest size of all files together: they are in the machine's memory.
const BYTES_MAX: usize = 1 << 30;
/// Largest number of files in folders.
const FILES_MAX: usize = 100_000;
/// Largest nesting of scripts whose interpreters are scripts.
const SCRIPTS_MAX: usize = 4;
/// Default folders of libraries [ld.so(8)].
const FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
const CACHE: &str = "/etc/ld.so.cache";
const WHAT: &str = "cannot simulate";

/// Collects files.
pub struct Root {
    archive: Archive,
    /// Links on the way to files that were already added.
    links: BTreeSet<PathBuf>,
    /// Added files by their real paths.
    done: BTreeSet<PathBuf>,
    cache: BTreeMap<Vec<u8>, Vec<u8>>,
    /// `LD_LIBRARY_PATH` and `PATH`.
    library_path: Vec<PathBuf>,
    path: Vec<PathBuf>,
    files: usize,
}

impl Root {
    /// Only what every machine has.
    pub fn new(environment: &[(OsString, OsString)]) -> Self {
        let list = |name: &str| {
            let value = environment.iter().find(|(of, _)| of == name).map(|(_, value)| value);
            value.map_or_else(Vec::new, |value| std::env::split_paths(value).collect())
        };
        let mut root = Self {
            archive: Archive::default(),
            links: BTreeSet::new(),
            done: BTreeSet::new(),
            cache: BTreeMap::new(),
            library_path: list("LD_LIBRARY_PATH"),
            path: list("PATH"),
            files: 0,
        };
        for (folder, mode) in [("dev", 0o755), ("proc", 0o755), ("sys", 0o755), ("tmp", 0o1777)] {
            root.archive.folder(folder.as_bytes(), mode);
        }
        if let Ok(cache) = fs::read(CACHE) {
            root.cache = elf::library_cache(&cache);
            root.archive.file(CACHE.as_bytes(), 0o644, &cache);
        }
        root
    }

    /// Adds a file with generated contents.
    pub fn put(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.archive.file(path.as_bytes(), mode, content);
    }

    /// Adds a folder, which may be empty in the machine.
    pub fn folder(&mut self, path: &Path) -> Result<(), Error> {
        let real = self.resolve(path)?;
        self.archive.folder(real.as_os_str().as_bytes(), 0o755);
        Ok(())
    }

    /// Adds the program, found as by a shell, and its dependencies. @return its path.
    pub fn program(&mut self, name: &OsStr) -> Result<PathBuf, Error> {
        let path = self.find_program(name)?;
        let is_executable = fs::metadata(&path)
            .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0);
        if !is_executable {
            let advice = "it is no file that may be executed";
            return Err(Error::new(WHAT, path.display().to_string(), advice));
        }
        self.add_file(&path, 0)?;
        Ok(path)
    }

    /// Adds a file or folder with its contents; for programs and libraries, also their dependencies.
    pub fn add(&mut self, path: &Path) -> Result<(), Error> {
        let path = absolute(path)?;
        let about = fs::metadata(&path).map_err(|cause| Error::io(WHAT, &path, &cause))?;
        if !about.is_dir() {
            return self.add_file(&path, 0);
        }
        let mut folders = vec![self.resolve(&path)?];
        while let Some(folder) = folders.pop() {
            self.archive.folder(folder.as_os_str().as_bytes(), 0o755);
            let io = |cause| Error::io(WHAT, &folder, &cause);
            let mut entries = Vec::new();
            for entry in fs::read_dir(&folder).map_err(io)? {
                let entry = entry.map_err(io)?;
                entries.push((entry.path(), entry.file_type().map_err(io)?));
            }
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            for (path, kind) in entries {
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_symlink() {
                    // Its target is added if it is in the same folder.
                    if let Ok(target) = fs::read_link(&path) {
                        self.link(&path, &target);
                    }
                } else if kind.is_file() {
                    self.add_content(&path)?;
                }
            }
        }
        Ok(())
    }

    /// The archive.
    pub fn finish(self) -> Vec<u8> {
        self.archive.finish()
    }

    fn find_program(&self, name: &OsStr) -> Result<PathBuf, Error> {
        if name.as_bytes().contains(&b'/') {
            return absolute(Path::new(name));
        }
        let found = self.path.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        let found = found.ok_or_else(|| {
            let place = name.to_string_lossy().into_owned();
            Error::new(WHAT, place, "no such program on the search path: check the name")
        })?;
        absolute(&found)
    }

    /// Adds a file of a folder: dependencies are added as far as they exist, as not all will be used.
    fn add_content(&mut self, path: &Path) -> Result<(), Error> {
        let Some((real, content)) = self.put_file(path)? else { return Ok(()) };
        if elf::is_elf(&content) {
            let _ = self.add_needs(&real, &content);
        }
        Ok(())
    }

    /// Adds only the file. @return its real path and contents; `None` if it was added already.
    fn put_file(&mut self, path: &Path) -> Result<Option<(PathBuf, Vec<u8>)>, Error> {
        let real = self.resolve(path)?;
        if !self.done.insert(real.clone()) {
            return Ok(None);
        }
        self.files += 1;
        let io = |cause| Error::io(WHAT, path, &cause);
        let about = fs::metadata(&real).map_err(io)?;
        if !about.is_file() {
            return Err(Error::new(WHAT, path.display().to_string(), "it is no plain file"));
        }
        let too_much = usize::try_from(about.len()).unwrap_or(usize::MAX) > BYTES_MAX;
        if too_much || self.files > FILES_MAX || self.archive.len() > BYTES_MAX {
            let advice = format!("more than {} MiB or {FILES_MAX} files in all", BYTES_MAX >> 20);
            return Err(Error::new(WHAT, path.display().to_string(), advice));
        }
        let content = fs::read(&real).map_err(io)?;
        self.archive.file(real.as_os_str().as_bytes(), about.permissions().mode(), &content);
        Ok(Some((real, content)))
    }

    /// Adds a file and its dependencies.
    fn add_file(&mut self, path: &Path, depth: usize) -> Result<(), Error> {
        let Some((real, content)) = self.put_file(path)? else { return Ok(()) };
        if elf::is_elf(&content) {
            return self.add_needs(&real, &content);
        }
        match elf::script_interpreter(&content) {
            Some((interpreter, argument)) if depth < SCRIPTS_MAX => {
                self.add_file(Path::new(OsStr::from_bytes(interpreter)), depth + 1)?;
                // `env` finds its command on the search path.
                let words = argument.unwrap_or_default().split(u8::is_ascii_whitespace);
                let mut words = words.filter(|word| !word.starts_with(b"-"));
                if let (true, Some(name)) = (interpreter.ends_with(b"/env"), words.next()) {
                    let program = self.find_program(OsStr::from_bytes(name))?;
                    self.add_file(&program, depth + 1)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_needs(&mut self, path: &Path, content: &[u8]) -> Result<(), Error> {
        let needs = elf::needs(content).map_err(|unfit| {
            let advice = match unfit {
                Unfit::Bits32 => "programs of 32 bits are not simulated: build it for 64 bits",
                Unfit::Architecture => "it is for another architecture than x86-64",
                Unfit::Damaged => "it is no whole ELF file",
            };
            Error::new(WHAT, path.display().to_string(), advice)
        })?;
        if let Some(interpreter) = &needs.interpreter {
            self.add_file(Path::new(OsStr::from_bytes(interpreter)), 0)?;
        }
        let origin = path.parent().unwrap_or(Path::new("/"));
        let of_file = |folder: &Vec<u8>| {
            let text = String::from_utf8_lossy(folder).into_owned();
            let origin = origin.display().to_string();
            PathBuf::from(text.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
        };
        let first: Vec<PathBuf> = needs.search_first.iter().map(of_file).collect();
        let then: Vec<PathBuf> = needs.search_then.iter().map(of_file).collect();
        for library in &needs.libraries {
            let name = OsStr::from_bytes(library);
            let found = if library.contains(&b'/') {
                Some(PathBuf::from(name)).filter(|path| path.is_file())
            } else {
                let named = first.iter().chain(&self.library_path).chain(&then);
                let named = named.map(|folder| folder.join(name)).find(|path| path.is_file());
                let cached = || self.cache.get(library).map(|path| OsStr::from_bytes(path).into());
                let usual = || FOLDERS.iter().map(|folder| Path::new(folder).join(name));
                let usual = || usual().find(|path| path.is_file());
                named.or_else(cached).or_else(usual)
            };
            let found = found.ok_or_else(|| {
                let advice = format!(
                    "its library {} is not there: install it, or set LD_LIBRARY_PATH",
                    name.to_string_lossy()
                );
                Error::new(WHAT, path.display().to_string(), advice)
            })?;
            self.add_file(&found, 0)?;
        }
        Ok(())
    }

    /// The path without symbolic links; these are added.
    fn resolve(&mut self, path: &Path) -> Result<PathBuf, Error> {
        let mut rest: VecDeque<OsString> = VecDeque::new();
        let push = |rest: &mut VecDeque<OsString>, path: &Path| {
            for component in path.components().rev() {
                match component {
                    Component::Normal(name) => rest.push_front(name.to_owned()),
                    Component::ParentDir => rest.push_front("..".into()),
                    _ => {}
                }
            }
        };
        push(&mut rest, &absolute(path)?);
        let mut real = PathBuf::from("/");
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&name);
            let about =
                fs::symlink_metadata(&next).map_err(|cause| Error::io(WHAT, &next, &cause))?;
            if !about.is_symlink() {
                real = next;
                continue;
            }
            links += 1;
            let target = fs::read_link(&next).map_err(|cause| Error::io(WHAT, &next, &cause))?;
            if links > LINKS_MAX {
                let advice = "its symbolic links lead to each other";
                return Err(Error::new(WHAT, path.display().to_string(), advice));
            }
            self.link(&next, &target);
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            push(&mut rest, &target);
        }
        Ok(real)
    }

    fn link(&mut self, path: &Path, target: &Path) {
        if self.links.insert(path.to_owned()) {
            self.archive.link(path.as_os_str().as_bytes(), target.as_os_str().as_bytes());
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|cause| Error::io(WHAT, path, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Vec<(OsString, OsString)> {
        vec![("PATH".into(), "/usr/bin:/bin".into())]
    }

    #[test]
    fn a_program_comes_with_its_interpreter_libraries_and_links() {
        let mut root = Root::new(&environment());
        let path = root.program(OsStr::new("ls")).expect("it is there");
        assert!(path.is_absolute());
        let text = String::from_utf8_lossy(&root.finish()).into_owned();
        assert!(text.contains("bin/ls\0"));
        assert!(text.contains("ld-linux-x86-64.so.2\0") && text.contains("libc.so.6\0"));
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let mut root = Root::new(&environment());
        let error = root.program(OsStr::new("no-such-program")).expect_err("it is not there");
        assert!(error.to_string().contains("no such program"), "{error}");
        let error = root.program(OsStr::new("/etc/passwd")).expect_err("it is no program");
        assert!(error.to_string().contains("may be executed"), "{error}");
        let error = root.add(Path::new("/no/such/file")).expect_err("it is not there");
        assert!(error.to_string().contains("No such file"), "{error}");
    }

    #[test]
    fn folders_come_with_what_is_in_them_whatever_that_would_need() {
        let folder = lateralis_files::TemporaryFolder::new("lateralis-root-").expect("a folder");
        fs::create_dir(folder.path().join("inside")).expect("a folder");
        fs::write(folder.path().join("inside/script"), "#!/no/such/program\n").expect("a file");
        std::os::unix::fs::symlink("nothing", folder.path().join("link")).expect("a link");
        let mut root = Root::new(&environment());
        root.add(folder.path()).expect("all is there");
        let text = String::from_utf8_lossy(&root.finish()).into_owned();
        assert!(text.contains("inside/script\0") && text.contains("/link\0"));
    }

    #[test]
    fn scripts_come_with_their_interpreters() {
        let folder = lateralis_files::TemporaryFolder::new("lateralis-root-").expect("a folder");
        let script = folder.path().join("script");
        fs::write(&script, "#!/usr/bin/env -S sh\n").expect("a file");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("rights");
        let mut root = Root::new(&environment());
        root.program(script.as_os_str()).expect("it is there");
        let text = String::from_utf8_lossy(&root.finish()).into_owned();
        assert!(text.contains("bin/env\0") && text.contains("bin/dash\0") | text.contains("sh\0"));
    }
}
