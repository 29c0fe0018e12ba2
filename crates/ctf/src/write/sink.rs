// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a written trace goes.

use std::io;

use crate::index::Entry;
use crate::reader::{Reader, StreamFile};

/// Takes what is written, in pieces.
pub trait Sink {
    /// A stream begins; `name` is that of its file, unique in the trace and
    /// safe in any file system. Comes before all packets.
    ///
    /// # Errors
    /// If it cannot be taken; writing ends.
    fn open(&mut self, stream: u32, name: &str) -> io::Result<()>;

    /// The next packet of a stream, and its line in a packet index.
    ///
    /// # Errors
    /// If it cannot be taken; writing ends.
    fn packet(&mut self, stream: u32, bytes: &[u8], entry: &Entry) -> io::Result<()>;

    /// A piece of the metadata, after all packets: of very many classes it would take as much
    /// memory as all else.
    ///
    /// # Errors
    /// If it cannot be taken; writing ends.
    fn metadata(&mut self, piece: &str) -> io::Result<()>;

    /// Everything has been written.
    ///
    /// # Errors
    /// If what was taken cannot be kept.
    fn finish(&mut self) -> io::Result<()>;
}

/// A written trace in memory.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The metadata text.
    pub metadata: String,
    /// Name and content of the stream files.
    pub streams: Vec<(String, Vec<u8>)>,
}

impl Files {
    /// Opens what was written.
    #[must_use]
    pub fn into_reader(self) -> Reader {
        let file = |(name, bytes)| StreamFile { name, bytes: Box::new(bytes) };
        let full = self.streams.into_iter().filter(|(_, bytes): &(_, Vec<u8>)| !bytes.is_empty());
        Reader::new(self.metadata.as_bytes(), full.map(file).collect())
    }
}

impl Sink for Files {
    fn open(&mut self, _: u32, name: &str) -> io::Result<()> {
        self.streams.push((name.to_owned(), Vec::new()));
        Ok(())
    }

    fn packet(&mut self, stream: u32, bytes: &[u8], _: &Entry) -> io::Result<()> {
        let file = self.streams.get_mut(stream as usize).ok_or(io::ErrorKind::NotFound)?;
        file.1.extend_from_slice(bytes);
        Ok(())
    }

    fn metadata(&mut self, piece: &str) -> io::Result<()> {
        self.metadata.push_str(piece);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Metadata are passed to a sink in pieces of about this number of bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Gives what has been gathered to a sink, once that is much.
pub(super) fn pass_on(out: &mut String, sink: &mut dyn Sink) -> io::Result<()> {
    if out.len() >= PIECE_BYTES {
        sink.metadata(out)?;
        out.clear();
    }
    Ok(())
}
