// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads compressed files in bounded memory.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::ops::ControlFlow;
use std::sync::Arc;

use lateralis_model::{
    Clock, ColumnBatch, ColumnRequest, Damage, DamageReason, Event, Events, Interval, Look, Loss,
    Names, Packet, PartSummary, Repeated, RingPlace, Seen, Source, StreamIndex, StreamSummary,
    Trace,
};
use lzma_rust2::{Action, Status, XzStream};

use crate::formats::Bytes;

/// Larger contents are unpacked to an unnamed file instead of memory.
const IN_MEMORY_BYTES: u64 = 256 << 20;
/// Memory limit of the xz decoder; `xz -9` needs at most 65 MiB.
const XZ_MEMORY_KIB: u32 = 256 << 10;
/// Number of bytes passed to the xz decoder at a time.
const XZ_PIECE_BYTES: usize = 1024;

/// Compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// The .xz file format 1.2.1.
    Xz,
}

/// End of the contents of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Complete.
    Whole,
    /// There is more than the limit allows.
    Limit,
    /// The rest is truncated or damaged.
    Damaged,
    /// Complete, and followed by foreign data.
    Behind,
}

impl End {
    /// From the error of a decoder.
    fn of(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::Unsupported { Self::Behind } else { Self::Damaged }
    }
}

impl Packing {
    /// Compression of a file that begins with these bytes.
    pub fn of(first: &[u8]) -> Option<Self> {
        match first {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            _ => None,
        }
    }

    /// Human-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "Zstandard",
            Self::Xz => "xz",
        }
    }

    /// Reads the contents. The decoder uses at most 256 MiB.
    pub fn reader(self, bytes: &[u8]) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            Self::Gzip => Box::new(GzipMembers { member: None, rest: bytes, begun: false }),
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(bytes)?),
            Self::Xz => {
                let stream = XzStream::new_mem_limit(true, XZ_MEMORY_KIB);
                Box::new(XzPieces { stream, input: bytes, ended: false })
            }
        })
    }

    /// The first bytes of the contents, at most `limit_bytes`.
    ///
    /// Cost: proportional to them, whatever the file contains.
    pub fn begin(self, bytes: &[u8], limit_bytes: u64) -> Vec<u8> {
        let mut out = Vec::new();
        // `out` contains everything before a fault.
        let _ = self.reader(bytes).and_then(|from| from.take(limit_bytes).read_to_end(&mut out));
        out
    }

    /// The contents, at most `limit_bytes` of them: in memory if they are small, otherwise in a temporary
    /// file that is removed with the process.
    ///
    /// # Errors
    /// If there is no room for a temporary file.
    pub fn unpack(self, bytes: &[u8], limit_bytes: u64) -> io::Result<(Bytes, End)> {
        self.unpack_through(bytes, limit_bytes, IN_MEMORY_BYTES)
    }

    fn unpack_through(
        self,
        bytes: &[u8],
        limit_bytes: u64,
        in_memory_bytes: u64,
    ) -> io::Result<(Bytes, End)> {
        let Ok(from) = self.reader(bytes) else {
            return Ok((Arc::new([]), End::Damaged));
        };
        // One byte more shows whether there is more.
        let most_bytes = limit_bytes.saturating_add(1);
        let mut from = from.take(most_bytes);
        let mut first = Vec::new();
        let read = from.by_ref().take(in_memory_bytes).read_to_end(&mut first);
        let all = (first.len() as u64) < in_memory_bytes || most_bytes <= in_memory_bytes;
        if read.is_err() || all {
            let end = match read {
                Err(error) => End::of(&error),
                Ok(_) if first.len() as u64 > limit_bytes => End::Limit,
                Ok(_) => End::Whole,
            };
            first.truncate(usize::try_from(limit_bytes).unwrap_or(usize::MAX));
            return Ok((Arc::new(first), end));
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(&first)?;
        drop(first);
        let (rest, mut end) = copy(&mut from, &mut file)?;
        let mut length = in_memory_bytes + rest;
        if length > limit_bytes {
            (length, end) = (limit_bytes, End::Limit);
            file.set_len(length)?;
        }
        if length == 0 {
            return Ok((Arc::new([]), end));
        }
        // SAFETY: the map is read-only, and the file is private to this process: it has no name.
        let map = unsafe { memmap2::Mmap::map(&file) }?;
        Ok((Arc::new(map), end))
    }
}

/// Decoder of gzip files: members, optionally followed by zeros up to the end of a block (of a tape or
/// device), or by foreign data.
struct GzipMembers<'a> {
    member: Option<flate2::bufread::GzDecoder<&'a [u8]>>,
    rest: &'a [u8],
    begun: bool,
}

impl Read for GzipMembers<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !into.is_empty() {
            if let Some(member) = &mut self.member {
                let count = member.read(into)?;
                if count > 0 {
                    return Ok(count);
                }
                self.rest = *member.get_ref();
                self.member = None;
            }
            if self.begun && self.rest.iter().all(|&byte| byte == 0) {
                break;
            }
            if self.begun && !self.rest.starts_with(&[0x1f, 0x8b]) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            self.begun = true;
            self.member = Some(flate2::bufread::GzDecoder::new(self.rest));
        }
        Ok(0)
    }
}

/// xz decoder that loses at most one small piece of input before a fault. The reader of the crate loses a
/// chunk, which may have 2 MiB.
struct XzPieces<'a> {
    stream: XzStream,
    input: &'a [u8],
    ended: bool,
}

impl Read for XzPieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.ended && !out.is_empty() {
            let piece = &self.input[..self.input.len().min(XZ_PIECE_BYTES)];
            let action = if piece.is_empty() { Action::Finish } else { Action::Run };
            let done = self.stream.process(piece, out, action)?;
            self.input = &self.input[done.bytes_consumed..];
            self.ended = done.status == Status::StreamEnd;
            if done.bytes_produced > 0 {
                return Ok(done.bytes_produced);
            }
            if !self.ended && (piece.is_empty() || done.bytes_consumed == 0) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}

/// Copies everything that can be read. Returns the number of bytes, and how it ended.
///
/// # Errors
/// If writing fails.
pub fn copy(from: &mut dyn Read, to: &mut File) -> io::Result<(u64, End)> {
    let mut buffer = vec![0; 128 << 10];
    let mut copied = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok((copied, End::Whole)),
            Ok(count) => {
                to.write_all(&buffer[..count])?;
                copied += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok((copied, End::of(&error))),
        }
    }
}

/// A trace from a compressed file, with damage and remarks of that file.
pub struct Unpacked {
    inner: Box<dyn Source>,
    damage: Vec<Damage>,
    remarks: Vec<String>,
}

impl Unpacked {
    /// Adds damage and remarks to those of the trace.
    pub fn new(inner: Box<dyn Source>, damage: Vec<Damage>, remarks: Vec<String>) -> Self {
        let damage = inner.damage().iter().cloned().chain(damage).collect();
        Self { inner, damage, remarks }
    }

    /// `file` is a compressed file of `bytes` bytes, which was read up to `end`.
    pub fn up_to(inner: Box<dyn Source>, file: &str, bytes: u64, end: End) -> Box<dyn Source> {
        let full = "the file does not fit into the memory it may take once it is decompressed: \
                    its rest is left out";
        match end {
            End::Whole => inner,
            End::Limit => Box::new(Self::new(inner, Vec::new(), vec![full.to_owned()])),
            End::Behind => {
                let behind = format!("{file}: what lies behind the compressed data is not read");
                Box::new(Self::new(inner, Vec::new(), vec![behind]))
            }
            End::Damaged => {
                let interval = Interval { begin: inner.interval().end, end: None };
                let damage = Damage {
                    file: file.to_owned(),
                    begin_bytes: 0,
                    end_bytes: bytes,
                    reason: DamageReason::BadValue {
                        rule: "compressed file: read up to where it is cut or damaged",
                    },
                    interval,
                };
                Box::new(Self::new(inner, vec![damage], Vec::new()))
            }
        }
    }
}

impl Source for Unpacked {
    fn format(&self) -> &str {
        self.inner.format()
    }

    fn trace(&self) -> &Trace {
        self.inner.trace()
    }

    fn streams(&self) -> Vec<StreamSummary> {
        self.inner.streams()
    }

    fn interval(&self) -> Interval {
        self.inner.interval()
    }

    fn losses(&self) -> &[Loss] {
        self.inner.losses()
    }

    fn damage(&self) -> &[Damage] {
        &self.damage
    }

    fn faults(&self) -> Vec<String> {
        self.inner.faults()
    }

    fn remarks(&self) -> Vec<String> {
        self.inner.remarks().into_iter().chain(self.remarks.iter().cloned()).collect()
    }

    fn set_clock(&mut self, index: usize, clock: &Clock) -> bool {
        let done = self.inner.set_clock(index, clock);
        // Its damage comes first.
        for (known, now) in self.damage.iter_mut().zip(self.inner.damage()) {
            known.clone_from(now);
        }
        done
    }

    fn names(&self) -> &Names {
        self.inner.names()
    }

    fn events_in(&self, interval: Interval) -> Box<dyn Events + '_> {
        self.inner.events_in(interval)
    }

    fn visit(&self, see: &mut dyn FnMut(&Event<'_>)) -> Vec<Damage> {
        self.inner.visit(see)
    }

    fn survey(
        &self,
        look: &dyn Fn(u32, u32) -> Look,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Vec<Damage> {
        self.inner.survey(look, see)
    }

    fn has_columns(&self) -> bool {
        self.inner.has_columns()
    }

    fn parts(&self) -> Vec<PartSummary> {
        self.inner.parts()
    }

    fn packets(
        &self,
        see: &mut dyn FnMut(StreamIndex, u64, &Packet, Interval) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.inner.packets(see)
    }

    fn ring_places(&self, see: &mut dyn FnMut(StreamIndex, u64, &RingPlace)) {
        self.inner.ring_places(see);
    }

    fn drop_repeated(&mut self, repeated: &Repeated) {
        self.inner.drop_repeated(repeated);
    }

    fn columns(
        &self,
        request: &ColumnRequest<'_>,
        see: &mut dyn FnMut(&dyn ColumnBatch) -> ControlFlow<()>,
    ) -> Vec<Damage> {
        self.inner.columns(request, see)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(packing: Packing, plain: &[u8]) -> Vec<u8> {
        match packing {
            Packing::Gzip => {
                let mut out = flate2::write::GzEncoder::new(Vec::new(), Default::default());
                out.write_all(plain).unwrap();
                out.finish().unwrap()
            }
            Packing::Zstd => zstd::bulk::compress(plain, 1).unwrap(),
            Packing::Xz => {
                let options = lzma_rust2::XzOptions::with_preset(1);
                let mut out = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
                out.write_all(plain).unwrap();
                out.finish().unwrap()
            }
        }
    }

    #[test]
    fn what_is_inside_comes_out_up_to_the_limit_or_the_damage() {
        let plain: Vec<u8> = (0..300_000u32).flat_map(|n| (n / 3).to_le_bytes()).collect();
        for packing in [Packing::Gzip, Packing::Zstd, Packing::Xz] {
            let file = packed(packing, &plain);
            assert_eq!(Packing::of(&file), Some(packing));
            // In memory, and through a file.
            for in_memory in [u64::MAX, 5000, 0] {
                let unpack = |file: &[u8], limit| {
                    let (bytes, end) = packing.unpack_through(file, limit, in_memory).unwrap();
                    ((*bytes).as_ref().to_vec(), end)
                };
                assert!(unpack(&file, u64::MAX) == (plain.clone(), End::Whole), "{packing:?}");
                assert!(unpack(&file, 1000) == (plain[..1000].to_vec(), End::Limit));
                assert!(unpack(&file, 9000) == (plain[..9000].to_vec(), End::Limit));
                let exact = plain.len() as u64;
                assert_eq!(unpack(&file, exact).1, End::Whole, "{packing:?} {in_memory}");
                assert_eq!(unpack(&file, exact - 1).1, End::Limit);
                let (out, end) = unpack(&file[..file.len() * 3 / 4], u64::MAX);
                assert!(end == End::Damaged && !out.is_empty() && plain.starts_with(&out));
                let twice = [&file[..], &file[..]].concat();
                assert_eq!(unpack(&twice, u64::MAX).0.len(), 2 * plain.len());
            }
            assert!(packing.begin(&file, 99) == plain[..99]);
        }
        assert_eq!(Packing::of(b"PERFILE2"), None);
    }
}
