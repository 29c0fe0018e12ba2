// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Access to the pages of a CPU: plain in the file, or in compressed chunks that are decompressed on
//! demand, one at a time.

use std::sync::Arc;

use crate::inflate;

/// Compression of the chunks of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// By zstd.
    Zstd,
    /// By zlib.
    Zlib,
}

/// A compressed chunk of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// First byte in the file.
    pub begin: usize,
    /// Byte after the last.
    pub end: usize,
    /// Offset of its first byte among the pages.
    pub place: u64,
    /// Number of uncompressed bytes.
    pub bytes: usize,
}

/// Pages of one CPU.
#[derive(Debug, Clone)]
pub enum Content {
    /// Uncompressed: first byte in the file, and end.
    Plain(usize, usize),
    /// In consecutive chunks.
    Packed(Compression, Vec<Chunk>),
}

impl Content {
    /// Number of bytes of all pages.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Plain(begin, end) => (end - begin) as u64,
            Self::Packed(_, chunks) => {
                chunks.last().map_or(0, |chunk| chunk.place + chunk.bytes as u64)
            }
        }
    }

    /// Memory needed for reading.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Plain(..) => 0,
            Self::Packed(_, chunks) => {
                chunks.iter().map(|chunk| chunk.bytes as u64).max().unwrap_or(0)
            }
        }
    }

    /// Bytes of the file that correspond to byte `place` of the pages: the byte itself, or its chunk.
    pub fn in_file(&self, place: u64) -> (u64, u64) {
        match self {
            Self::Plain(begin, _) => (*begin as u64 + place, *begin as u64 + place),
            Self::Packed(_, chunks) => {
                let after = chunks.partition_point(|chunk| chunk.place <= place);
                let chunk = after.checked_sub(1).and_then(|index| chunks.get(index));
                chunk.map_or((0, 0), |chunk| (chunk.begin as u64, chunk.end as u64))
            }
        }
    }
}

/// A page, with the buffer that contains it.
#[derive(Debug, Clone)]
pub enum Page<'a> {
    /// In the file.
    Plain(&'a [u8]),
    /// In a decompressed chunk, with begin and end.
    Packed(Arc<Vec<u8>>, usize, usize),
}

impl Page<'_> {
    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Packed(chunk, begin, end) => &chunk[*begin..*end],
        }
    }
}

/// Returns the pages of one CPU; keeps the chunk that was decompressed last.
#[derive(Debug)]
pub struct Pages<'a> {
    file: &'a [u8],
    content: &'a Content,
    page_bytes: u64,
    chunk: Option<(usize, Arc<Vec<u8>>)>,
    /// Chunks that could not be decompressed; their pages are empty.
    pub damaged: Vec<Chunk>,
}

impl<'a> Pages<'a> {
    /// For pages of this size in a file.
    pub fn new(file: &'a [u8], content: &'a Content, page_bytes: u32) -> Self {
        let page_bytes = u64::from(page_bytes);
        Self { file, content, page_bytes, chunk: None, damaged: Vec::new() }
    }

    /// The page with this number; the last one may be shorter.
    ///
    /// Cost: decompression of its chunk, if that is not the current one.
    pub fn page(&mut self, number: u32) -> Option<Page<'a>> {
        let place = u64::from(number) * self.page_bytes;
        match self.content {
            Content::Plain(begin, end) => {
                let begin = begin.checked_add(usize::try_from(place).ok()?)?;
                let end = begin.saturating_add(self.page_bytes as usize).min(*end);
                self.file.get(begin..end).filter(|page| !page.is_empty()).map(Page::Plain)
            }
            Content::Packed(compression, chunks) => {
                let after = chunks.partition_point(|chunk| chunk.place <= place);
                let index = after.checked_sub(1)?;
                let chunk = chunks[index];
                let from = usize::try_from(place - chunk.place).ok()?;
                if from >= chunk.bytes {
                    return None;
                }
                let bytes = self.chunk(*compression, index, chunk);
                // Chunks should hold whole pages; otherwise the page is cut.
                let to = from.saturating_add(self.page_bytes as usize).min(bytes.len());
                Some(Page::Packed(bytes, from, to))
            }
        }
    }

    fn chunk(&mut self, compression: Compression, index: usize, chunk: Chunk) -> Arc<Vec<u8>> {
        if let Some((known, bytes)) = &self.chunk
            && *known == index
        {
            return Arc::clone(bytes);
        }
        // The memory of the old chunk is freed before the new one is allocated.
        self.chunk = None;
        let input = self.file.get(chunk.begin..chunk.end).unwrap_or(&[]);
        let mut out = Vec::with_capacity(chunk.bytes.min(1 << 20));
        let result = match compression {
            Compression::Zstd => inflate::zstd(input, chunk.bytes, &mut out),
            Compression::Zlib => inflate::zlib(input, chunk.bytes, &mut out),
        };
        if result.is_err() || out.len() != chunk.bytes {
            // The position of the fault is unknown: the output may not be pages.
            out.clear();
            if !self.damaged.contains(&chunk) {
                self.damaged.push(chunk);
            }
        }
        // Keeps the positions of later pages; zeros are pages without records.
        out.resize(chunk.bytes, 0);
        let out = Arc::new(out);
        self.chunk = Some((index, Arc::clone(&out)));
        out
    }
}
