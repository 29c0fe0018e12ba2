// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A written trace as a directory: `metadata`, a file for each stream, and
//! beside them in `index/` LTTng's packet index. With [`super::super::open`] the
//! only place of this crate that does I/O.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::{Options, Report, Sink, write};
use crate::index::{self, Entry};
use lateralis_model::Source;

/// Files that are kept open; those of further streams are opened for each
/// packet, so that no number of streams runs into the limit of the system.
const OPEN_FILES: usize = 128;

/// Name of the metadata until all is written.
const PART: &str = ".metadata";

/// Index entries are written when they are this many bytes.
const INDEX_BYTES: usize = 64 << 10;

/// Writes a trace into a directory.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    streams: Vec<StreamFile>,
    /// The metadata, under another name as long as they are not whole.
    metadata: Option<File>,
}

#[derive(Debug)]
struct StreamFile {
    path: PathBuf,
    index_path: PathBuf,
    file: Option<File>,
    index: Vec<u8>,
}

impl Directory {
    /// Makes the directory `path` with what is above it; only its owner may read it.
    ///
    /// # Errors
    /// If there is something in it already, or it cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path.join("index"))?;
        let known = |name: &std::ffi::OsStr| name == "index";
        for entry in fs::read_dir(path)? {
            if !known(&entry?.file_name()) {
                let message = format!("the directory is not empty: {}", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
            }
        }
        Ok(Self { path: path.to_owned(), streams: Vec::new(), metadata: None })
    }

    fn flush_index(stream: &mut StreamFile) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&stream.index_path)?;
        file.write_all(&stream.index)?;
        stream.index.clear();
        Ok(())
    }
}

impl Sink for Directory {
    fn open(&mut self, _: u32, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        let index_path = self.path.join("index").join(format!("{name}.idx"));
        let file = File::create_new(&path)?;
        File::create_new(&index_path)?;
        let file = (self.streams.len() < OPEN_FILES).then_some(file);
        let index = index::header().to_vec();
        self.streams.push(StreamFile { path, index_path, file, index });
        Ok(())
    }

    fn packet(&mut self, stream: u32, bytes: &[u8], entry: &Entry) -> io::Result<()> {
        let stream = self.streams.get_mut(stream as usize).ok_or(io::ErrorKind::NotFound)?;
        match &mut stream.file {
            Some(file) => file.write_all(bytes)?,
            None => OpenOptions::new().append(true).open(&stream.path)?.write_all(bytes)?,
        }
        stream.index.extend_from_slice(&entry.to_bytes());
        if stream.index.len() >= INDEX_BYTES {
            Self::flush_index(stream)?;
        }
        Ok(())
    }

    fn metadata(&mut self, piece: &str) -> io::Result<()> {
        let file = match &mut self.metadata {
            Some(file) => file,
            None => self.metadata.insert(File::create_new(self.path.join(PART))?),
        };
        file.write_all(piece.as_bytes())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.streams.iter_mut().try_for_each(Self::flush_index)?;
        // Under another name first: a trace with metadata is a whole one.
        self.metadata = None;
        fs::rename(self.path.join(PART), self.path.join("metadata"))
    }
}

/// Writes `source` into the new directory `path`.
///
/// # Errors
/// If the directory has something in it, or a file cannot be written.
pub fn write_directory(source: &dyn Source, path: &Path, options: &Options) -> io::Result<Report> {
    write(source, &mut Directory::create(path)?, options)
}
