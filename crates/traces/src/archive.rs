// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unpacks tar and zip archives into a temporary directory.
//!
//! ```text
//! .tar, .tar.gz, .tar.zst, .tar.xz, .zip ─ unpack ─► temporary directory ─ open ─► traces
//! ```
//!
//! Only regular files and directories are unpacked, and only below that directory: links, devices, and
//! names that lead elsewhere are left out, with a remark. Everything written or read on the way counts
//! against one limit. A damaged archive gives its intact files, including the beginning of a truncated
//! one, and reports the lost bytes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Cursor, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use lateralis_files::TemporaryFolder;

use crate::packed::{End, Packing, copy};

/// Bytes of a tar block, at which headers and contents are aligned [POSIX, pax].
const BLOCK_BYTES: usize = 512;
/// First bytes of a file in a zip archive, of an archive without files, and of the entry of a file in its
/// directory [APPNOTE 4.3].
const ZIP_FILE: &[u8] = b"PK\x03\x04";
const ZIP_EMPTY: &[u8] = b"PK\x05\x06";
/// Largest number of files and directories.
const NAMES_MAX: usize = 200_000;
/// Largest number of directory levels.
const DEPTH_MAX: usize = 32;
/// Largest number of distinct remarks.
const REMARKS_MAX: usize = 50;
/// Largest number of damaged places that are listed.
const DAMAGE_MAX: usize = 1000;

/// Type of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tar, optionally compressed as a whole.
    Tar(Option<Packing>),
    /// Zip.
    Zip,
}

impl Kind {
    /// Type of a file, by its content.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(ZIP_FILE) || bytes.starts_with(ZIP_EMPTY) {
            return Some(Self::Zip);
        }
        let packing = Packing::of(bytes);
        let is_tar = match packing {
            Some(packing) => is_header(&packing.begin(bytes, BLOCK_BYTES as u64)),
            None => bytes.get(..BLOCK_BYTES).is_some_and(is_header),
        };
        is_tar.then_some(Self::Tar(packing))
    }

    /// Human-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tar(None) => "tar",
            Self::Tar(Some(Packing::Gzip)) => "tar packed by gzip",
            Self::Tar(Some(Packing::Zstd)) => "tar packed by Zstandard",
            Self::Tar(Some(Packing::Xz)) => "tar packed by xz",
            Self::Zip => "zip",
        }
    }
}

/// Whether a block is the header of a file in a tar archive: it has a name, and its checksum is correct.
fn is_header(block: &[u8]) -> bool {
    let Some(stored) = block.get(148..156).filter(|_| block.len() >= BLOCK_BYTES) else {
        return false;
    };
    let stored: String = stored.iter().map(|&byte| char::from(byte)).collect();
    let stored = stored.trim_matches([' ', '\0']);
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    // The checksum field itself counts as blanks.
    let actual = sum(&block[..148]) + 8 * u32::from(b' ') + sum(&block[156..BLOCK_BYTES]);
    block[0] != 0 && u32::from_str_radix(stored, 8) == Ok(actual)
}

/// Contents of an archive.
#[derive(Debug)]
pub struct Contents {
    /// Path of the unpacked files; removed when this value is dropped.
    pub directory: TemporaryFolder,
    /// Number of unpacked files.
    pub files: usize,
    /// Bytes of the archive that could not be read.
    pub damage: Vec<(u64, u64)>,
    /// Remarks about entries that were left out.
    pub remarks: BTreeMap<String, u64>,
    names: usize,
    left_bytes: u64,
    is_full: bool,
}

/// Unpacks an archive into a directory that only this user may read, up to `limit_bytes`.
///
/// # Errors
/// If the directory cannot be created or the file system is full.
pub fn unpack(bytes: &[u8], kind: Kind, limit_bytes: u64) -> io::Result<Contents> {
    let mut contents = Contents {
        directory: TemporaryFolder::new("lateralis-unpacked-")?,
        files: 0,
        damage: Vec::new(),
        remarks: BTreeMap::new(),
        names: 0,
        left_bytes: limit_bytes,
        is_full: false,
    };
    match kind {
        Kind::Zip => contents.zip(bytes)?,
        Kind::Tar(None) => contents.plain_tar(bytes)?,
        Kind::Tar(Some(packing)) => {
            // Skipped bytes have to be decompressed as well.
            let mut from = packing.reader(bytes)?.take(limit_bytes.saturating_add(1));
            let (_, whole) = contents.tar(&mut from)?;
            if from.limit() == 0 {
                contents.full();
            } else if !whole {
                contents.damaged(0, bytes.len() as u64);
            }
        }
    }
    Ok(contents)
}

/// Of several files with one name the last one is kept, as by other tools.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// The components of a name below the target directory; `None` if it leads elsewhere.
fn parts(name: &[u8]) -> Option<PathBuf> {
    let parts = name.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let mut path = PathBuf::new();
    for (depth, part) in parts.enumerate() {
        let possible = part != b".." && !part.contains(&0) && part.len() <= 255;
        if !possible || depth == DEPTH_MAX {
            return None;
        }
        path.push(OsStr::from_bytes(part));
    }
    (!path.as_os_str().is_empty()).then_some(path)
}

/// A name as shown in a remark.
fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let short: String = text.chars().take(80).collect();
    short.escape_debug().to_string()
}

impl Contents {
    fn remark(&mut self, remark: String) {
        if self.remarks.len() < REMARKS_MAX || self.remarks.contains_key(&remark) {
            *self.remarks.entry(remark).or_insert(0) += 1;
        }
    }

    fn damaged(&mut self, begin: u64, end: u64) {
        if self.damage.len() < DAMAGE_MAX {
            self.damage.push((begin, end));
        }
    }

    fn full(&mut self) {
        if !self.is_full {
            self.is_full = true;
            let rest = "what is in the archive takes more than it may (--memory): its rest is \
                        left out";
            self.remark(rest.to_owned());
        }
    }

    /// Path of a file; `None` if it is not allowed.
    fn place(&mut self, name: &[u8]) -> Option<PathBuf> {
        let Some(path) = parts(name) else {
            self.remark(format!("left out, since its name leads elsewhere: {}", shown(name)));
            return None;
        };
        self.names += path.components().count();
        if self.names > NAMES_MAX {
            self.remark(format!("files beyond the first {} are left out", self.files));
            return None;
        }
        Some(self.directory.path().join(path))
    }

    /// Unpacks a file; false if it ends before its declared size.
    fn file(&mut self, name: &[u8], from: &mut dyn Read, size: Option<u64>) -> io::Result<bool> {
        let Some(path) = self.place(name) else { return Ok(true) };
        let parent = path.parent().unwrap_or(&path);
        // If there is a file with the name of its directory, the path is not available.
        let Ok(mut file) = lateralis_files::create_folder(parent).and_then(|()| create(&path))
        else {
            self.remark(format!("left out, since its name is taken: {}", shown(name)));
            return Ok(true);
        };
        let (copied, end) = copy(&mut from.take(self.left_bytes), &mut file)?;
        self.files += 1;
        self.left_bytes -= copied;
        let is_cut = end == End::Damaged || size.is_some_and(|size| copied < size);
        if self.left_bytes == 0 && is_cut && end != End::Damaged {
            self.full();
            return Ok(true);
        }
        Ok(!is_cut)
    }

    /// Unpacks all files of a tar archive. Returns how many bytes were valid, and whether that was all.
    fn tar(&mut self, from: &mut dyn Read) -> io::Result<(u64, bool)> {
        let mut archive = tar::Archive::new(from);
        let mut understood = 0;
        let Ok(entries) = archive.entries() else { return Ok((0, false)) };
        for entry in entries {
            if self.is_full {
                break;
            }
            let Ok(mut entry) = entry else { return Ok((understood, false)) };
            let name = entry.path_bytes().into_owned();
            let (kind, size) = (entry.header().entry_type(), entry.size());
            let whole = if kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse() {
                self.file(&name, &mut entry, Some(size))?
            } else if kind.is_dir() {
                self.directory(&name);
                true
            } else {
                if !kind.is_pax_global_extensions() {
                    self.remark(format!("left out, since it is no file: {}", shown(&name)));
                }
                true
            };
            understood = entry.raw_file_position();
            if !whole {
                return Ok((understood, false));
            }
            let stored = entry.header().entry_size().unwrap_or(0);
            understood = understood.saturating_add(stored.next_multiple_of(BLOCK_BYTES as u64));
        }
        Ok((understood, true))
    }

    fn directory(&mut self, name: &[u8]) {
        if parts(name).is_some()
            && let Some(path) = self.place(name)
        {
            // If it is a file already, the files below it report that.
            let _ = lateralis_files::create_folder(&path);
        }
    }

    /// Like [`Contents::tar`], continuing after damaged places.
    fn plain_tar(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut at = 0;
        loop {
            let (understood, whole) = self.tar(&mut &bytes[at..])?;
            if whole || self.is_full {
                return Ok(());
            }
            let begin = (at + understood as usize).min(bytes.len());
            let next = begin.next_multiple_of(BLOCK_BYTES).max(at + BLOCK_BYTES);
            let blocks = (next..bytes.len()).step_by(BLOCK_BYTES);
            let found = blocks.into_iter().find(|&block| is_header(&bytes[block..]));
            self.damaged(begin as u64, found.unwrap_or(bytes.len()) as u64);
            match found {
                Some(found) => at = found,
                None => return Ok(()),
            }
        }
    }

    fn zip(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(bytes)) else {
            return self.zip_without_directory(bytes);
        };
        for index in 0..archive.len() {
            if self.is_full {
                break;
            }
            let name = archive.name_for_index(index).and_then(Result::ok);
            let name = name.unwrap_or_default().replace('\\', "/");
            match archive.by_index(index) {
                Ok(mut file) if file.is_file() => {
                    let (begin, size) = (file.header_start(), file.size());
                    let data = file.data_start().unwrap_or(begin);
                    let end = data.saturating_add(file.compressed_size());
                    if !self.file(name.as_bytes(), &mut file, Some(size))? {
                        self.damaged(begin, end.min(bytes.len() as u64));
                    }
                }
                Ok(file) if file.is_dir() => self.directory(name.as_bytes()),
                Ok(_) => {
                    let name = shown(name.as_bytes());
                    self.remark(format!("left out, since it is no file: {name}"));
                }
                Err(error) => {
                    self.remark(format!("left out: {}: {error}", shown(name.as_bytes())));
                }
            }
        }
        Ok(())
    }

    /// Unpacks an archive whose end, and so its directory, is missing.
    fn zip_without_directory(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut at = 0;
        let mut lost = None;
        while !self.is_full {
            let mut rest = &bytes[at..];
            let whole = match zip::read::read_zipfile_from_stream(&mut rest) {
                Ok(None) => break,
                Ok(Some(mut file)) => {
                    let name = file.name().unwrap_or_default().replace('\\', "/");
                    let size = file.size();
                    match file.is_file() {
                        true => self.file(name.as_bytes(), &mut file, Some(size))?,
                        false => true,
                    }
                }
                Err(_) => false,
            };
            let read = bytes.len() - rest.len();
            if whole {
                if let Some(begin) = lost.take() {
                    self.damaged(begin, at as u64);
                }
                at = read;
                continue;
            }
            lost.get_or_insert(at as u64);
            // A truncated directory ends with the bytes.
            let mut after = bytes.get(at + 1..).unwrap_or_default().windows(ZIP_FILE.len());
            match after.position(|window| window == ZIP_FILE) {
                Some(next) => at += 1 + next,
                None => {
                    at = bytes.len();
                    break;
                }
            }
        }
        self.damaged(lost.unwrap_or(at as u64), bytes.len() as u64);
        Ok(())
    }
}

/// The directory that contains the traces: archives often have a single top-level directory.
pub fn root(directory: &Path) -> PathBuf {
    let mut root = directory.to_owned();
    for _ in 0..DEPTH_MAX {
        let mut entries = fs::read_dir(&root).into_iter().flatten().flatten();
        match (entries.next(), entries.next()) {
            (Some(only), None) if only.file_type().is_ok_and(|kind| kind.is_dir()) => {
                root = only.path();
            }
            _ => break,
        }
    }
    root
}
