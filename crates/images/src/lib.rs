// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files with the names of functions: of this machine, or of a copy of another one's.
//!
//! A trace names the files and is untrusted: only regular files are opened, reads are bounded, and
//! if a build id was recorded, a file with another one is rejected.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lateralis_store::places::Images;
use lateralis_symbols::{Functions, Image, JitDump, build_id_of_notes};

/// Bytes of a file that are read.
const FILE_BYTES: u64 = 1 << 30;
/// The same of a text with functions of generated code, or of the kernel.
const TEXT_BYTES: u64 = 256 << 20;

const OTHER_BUILD: &str = "has another build id: it was changed since";

/// Where files are looked for.
#[derive(Debug, Clone)]
pub struct ImageFiles {
    /// In front of each path.
    root: PathBuf,
    /// Whether that is another machine's.
    is_copy: bool,
    /// A file with the functions of the kernel.
    kallsyms: Option<PathBuf>,
    /// Files that were kept with the recording, by path of its machine.
    kept: HashMap<String, PathBuf>,
}

impl ImageFiles {
    /// Below a folder as on another machine, or where they are on this one.
    #[must_use]
    pub fn new(root: Option<&Path>) -> Self {
        let is_copy = root.is_some();
        Self {
            root: root.map_or_else(|| PathBuf::from("/"), Path::to_owned),
            is_copy,
            kallsyms: None,
            kept: HashMap::new(),
        }
    }

    /// With files that were kept beside the recording, by path of its machine, and the functions of its
    /// kernel: they come before the files of any machine.
    #[must_use]
    pub fn with_kept(mut self, files: &HashMap<String, PathBuf>, kallsyms: Option<&Path>) -> Self {
        self.kept.clone_from(files);
        self.kallsyms = self.kallsyms.or_else(|| kallsyms.map(Path::to_owned));
        self
    }

    /// With the functions of the kernel in a file like `/proc/kallsyms`.
    #[must_use]
    pub fn with_kallsyms(mut self, path: Option<&Path>) -> Self {
        self.kallsyms = path.map(Path::to_owned);
        self
    }

    /// A path of the machine that was recorded, here; one that leads out of it has none.
    fn place(&self, path: &str) -> Option<PathBuf> {
        let inside = path.strip_prefix('/')?;
        let is_plain = Path::new(inside)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        is_plain.then(|| self.root.join(inside))
    }

    fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, String> {
        let kept = self.kept.get(path).cloned();
        let path = kept.or_else(|| self.place(path)).ok_or("is in no file")?;
        // To open a device can do something already.
        let kind = std::fs::metadata(&path).map_err(|error| format!("cannot open: {error}"))?;
        if !kind.is_file() {
            return Err("is no plain file".to_owned());
        }
        let file = open(&path).map_err(|error| format!("cannot open: {error}"))?;
        let bytes = file.metadata().map_err(|error| error.to_string())?;
        if !bytes.is_file() {
            return Err("is no plain file".to_owned());
        }
        if bytes.len() > most {
            return Err(format!("has more than {} MiB", most >> 20));
        }
        let mut content = Vec::new();
        let read = file.take(most).read_to_end(&mut content);
        read.map_err(|error| format!("cannot read: {error}"))?;
        Ok(content)
    }

    fn image_of(&self, path: &str, build_id: Option<&[u8]>) -> Result<Image, String> {
        let image = Image::of(&self.read(path, FILE_BYTES)?).map_err(|error| error.to_string())?;
        match build_id {
            Some(build_id) if !is_same(&image.build_id, build_id) => Err(OTHER_BUILD.to_owned()),
            _ => Ok(image),
        }
    }
}

/// Without waiting: a FIFO would wait for a writer.
fn open(path: &Path) -> std::io::Result<File> {
    const O_NONBLOCK: i32 = 0o4000; // x86-64 and AArch64 Linux [asm-generic/fcntl.h]
    OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)
}

/// perf pads short build ids by zeros to 20 bytes.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let trimmed = |of: &[u8]| of.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    !one.is_empty() && one[..trimmed(one)] == other[..trimmed(other)]
}

/// Bytes as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Images for ImageFiles {
    fn image(&mut self, path: &str, build_id: Option<&[u8]>) -> Result<Image, String> {
        let image = self.image_of(path, build_id);
        let known =
            build_id.map(<[u8]>::to_vec).or_else(|| Some(image.as_ref().ok()?.build_id.clone()));
        // Where distributions put what was stripped [gdb, Separate Debug Files].
        let debug = known.filter(|id| id.len() > 1).and_then(|id| {
            let path = format!("/usr/lib/debug/.build-id/{:02x}/{}.debug", id[0], hex(&id[1..]));
            self.image_of(&path, Some(&id)).ok()
        });
        let mut image = image?;
        if let Some(debug) = debug {
            image.take_debug(debug);
        }
        Ok(image)
    }

    fn code(
        &mut self,
        path: &str,
        build_id: Option<&[u8]>,
        (offset, bytes): (u64, u64),
    ) -> Result<Vec<u8>, String> {
        let content = self.read(path, FILE_BYTES)?;
        if let Some(build_id) = build_id {
            let image = Image::of(&content).map_err(|error| error.to_string())?;
            if !is_same(&image.build_id, build_id) {
                return Err(OTHER_BUILD.to_owned());
            }
        }
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = content.get(begin..).ok_or("is shorter than what was mapped of it")?;
        Ok(rest[..rest.len().min(usize::try_from(bytes).unwrap_or(usize::MAX))].to_vec())
    }

    fn kernel(&mut self, build_id: Option<&[u8]>) -> Result<Functions, String> {
        if let Some(path) = &self.kallsyms {
            let text = lateralis_files::read_regular(path, TEXT_BYTES)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            return Ok(Functions::of_kallsyms(&String::from_utf8_lossy(&text)));
        }
        let build_id = build_id.ok_or("the trace does not say which kernel it was")?;
        if self.is_copy {
            let text = self.read("/proc/kallsyms", TEXT_BYTES)?;
            return Ok(Functions::of_kallsyms(&String::from_utf8_lossy(&text)));
        }
        let notes = std::fs::read("/sys/kernel/notes").map_err(|error| error.to_string())?;
        if !build_id_of_notes(&notes).is_some_and(|here| is_same(here, build_id)) {
            return Err("was another kernel than the one that runs here".to_owned());
        }
        let text = std::fs::read("/proc/kallsyms").map_err(|error| error.to_string())?;
        let functions = Functions::of_kallsyms(&String::from_utf8_lossy(&text));
        match functions.is_empty() {
            true => Err("hides its addresses: sysctl kernel.kptr_restrict=0".to_owned()),
            false => Ok(functions),
        }
    }

    fn generated(&mut self, pid: u32) -> Option<(Functions, String)> {
        let path = format!("/tmp/perf-{pid}.map");
        let text = self.read(&path, TEXT_BYTES).ok()?;
        Some((Functions::of_perf_map(&String::from_utf8_lossy(&text)), path))
    }

    fn jitdump(&mut self, path: &str) -> Result<JitDump, String> {
        JitDump::of(&self.read(path, FILE_BYTES)?).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_below_the_root_are_read() {
        let root = std::env::temp_dir().join(format!("lateralis-images-{}", std::process::id()));
        std::fs::create_dir_all(root.join("lib")).expect("a directory");
        std::fs::write(root.join("lib/a.so"), "no ELF").expect("a file");
        let files = ImageFiles::new(Some(&root));
        assert_eq!(files.read("/lib/a.so", 10), Ok(b"no ELF".to_vec()));
        assert_eq!(files.read("/lib/a.so", 5), Err("has more than 0 MiB".to_owned()));
        assert_eq!(files.read("/lib", 10), Err("is no plain file".to_owned()));
        for path in ["[vdso]", "//anon", "/lib/../../etc/passwd", "lib/a.so", ""] {
            assert_eq!(files.read(path, 10), Err("is in no file".to_owned()), "{path}");
        }
        assert!(files.image_of("/lib/a.so", None).is_err());
        std::fs::remove_dir_all(&root).expect("removed");
        let machine = ImageFiles::new(None);
        assert_eq!(machine.read("/dev/zero", 10), Err("is no plain file".to_owned()));
    }

    #[test]
    fn build_ids_are_the_same_but_for_zeros_at_the_end() {
        assert!(is_same(&[1, 2], &[1, 2, 0, 0]));
        assert!(!is_same(&[1, 2], &[1, 2, 3]) && !is_same(&[], &[0]));
    }
}
