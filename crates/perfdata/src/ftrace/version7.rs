// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `trace.dat` of version 7: options that point to sections.

use std::borrow::Cow;

use lateralis_model::{ByteOrder, DamageReason, EnvValue};

use super::cut;
use super::options::Options;
use super::pages::{Chunk, Compression, Content};
use super::trace::{Buffer, PerCpu};
use crate::inflate::{self, Stop};
use crate::notes::Notes;
use crate::tracing_data::TracingData;
use crate::wire::{Wire, text};

/// Options that point to sections.
mod option {
    pub const DONE: u16 = 0;
    pub const BUFFER: u16 = 3;
    pub const HEADER_INFO: u16 = 16;
    pub const FTRACE_EVENTS: u16 = 17;
    pub const EVENT_FORMATS: u16 = 18;
    pub const CMDLINES: u16 = 21;
    pub const BUFFER_TEXT: u16 = 22;
}

/// The content of a section is compressed.
const COMPRESSED: u16 = 1;
/// Bytes of a section's header.
const HEADER_BYTES: u64 = 16;
/// Largest number of option sections: their chain could be a loop.
const OPTION_SECTIONS_MAX: u32 = 1000;
/// Largest chunk of pages.
const CHUNK_BYTES_MAX: usize = 64 << 20;
/// Largest number of CPUs in a buffer.
const CPUS_MAX: u32 = 1 << 14;

struct File<'a, 'n> {
    bytes: &'a [u8],
    order: ByteOrder,
    compression: String,
    /// Bytes that decompression may still produce.
    room: usize,
    /// Bytes of sections that may still be read: the same section can be referenced repeatedly.
    left: usize,
    notes: &'n mut Notes,
}

/// Reads the parts after the page size, at `at`. Damage is noted; everything before it is returned.
pub fn read(
    bytes: &[u8],
    at: u64,
    limit_bytes: u64,
    data: &mut TracingData,
    options: &mut Options,
    notes: &mut Notes,
) -> Vec<Buffer> {
    let order = data.order;
    let mut wire = Wire::at(bytes, at, order);
    let compression = text(wire.until_nul());
    let version = text(wire.until_nul());
    if compression != "none" {
        let value = EnvValue::Text(format!("{compression} {version}"));
        options.environment.push(("compression".to_owned(), value));
    }
    // Event descriptions alone take some megabytes.
    let room = usize::try_from(limit_bytes).unwrap_or(usize::MAX).max(64 << 20);
    let left = bytes.len().saturating_mul(2);
    let mut file = File { bytes, order, compression, room, left, notes };
    let mut next = wire.u64();
    let mut pending = Vec::new();
    for _ in 0..OPTION_SECTIONS_MAX {
        let Some(offset @ 1..) = next else { break };
        next = file.options(offset, data, options, &mut pending);
    }
    pending.iter().filter_map(|option| file.buffer(option)).collect()
}

impl<'a> File<'a, '_> {
    /// Subtracts from the bytes that may be read; false if too many were read.
    fn afford(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        if left.is_none() {
            self.notes.remark("sections lie over each other; the later ones are not read");
        }
        left.is_some()
    }

    /// Content of a section; `None`, with a note, if it cannot be read.
    fn section(&mut self, offset: u64) -> Option<Cow<'a, [u8]>> {
        let mut wire = Wire::at(self.bytes, offset, self.order);
        let header = (wire.u16(), wire.u16(), wire.u32(), wire.u64());
        let (Some(_), Some(flags), Some(_), Some(size)) = header else {
            cut(self.notes, offset, self.bytes);
            return None;
        };
        let begin = wire.position() as u64;
        let Some(content) = wire.take64(size) else {
            let missing = size.saturating_sub(wire.left() as u64);
            let reason = DamageReason::Truncated { missing_bytes: Some(missing) };
            self.notes.damage(begin, self.bytes.len() as u64, reason, None);
            // The available part of uncompressed content is still useful.
            let rest = &self.bytes[begin as usize..];
            let of_use = flags & COMPRESSED == 0 && self.afford(rest.len());
            return of_use.then_some(Cow::Borrowed(rest));
        };
        if !self.afford(content.len()) {
            return None;
        }
        if flags & COMPRESSED == 0 {
            return Some(Cow::Borrowed(content));
        }
        let mut out = Vec::new();
        self.chunk(&mut Wire::new(content, self.order), begin, &mut out);
        Some(Cow::Owned(out))
    }

    /// Decompresses one chunk: its two sizes, then its bytes. False if nothing can follow.
    fn chunk(&mut self, wire: &mut Wire<'_>, base: u64, out: &mut Vec<u8>) -> bool {
        let at = base + wire.position() as u64;
        let sizes = (wire.u32(), wire.u32());
        let input = sizes.0.and_then(|size| wire.take(size as usize));
        let (Some(input), Some(size)) = (input, sizes.1) else {
            let reason = DamageReason::Truncated { missing_bytes: None };
            self.notes.damage(at, base + (wire.position() + wire.left()) as u64, reason, None);
            return false;
        };
        let before = out.len();
        let expected = size as usize;
        let limit = before.saturating_add(expected.min(self.room));
        let result = match self.compression.as_str() {
            "zstd" => inflate::zstd(input, limit, out),
            "zlib" => inflate::zlib(input, limit, out),
            other => {
                self.notes.remark(format!("compression by {other} is not known here"));
                return false;
            }
        };
        let got = out.len() - before;
        self.room -= got.min(self.room);
        let end = at + 8 + input.len() as u64;
        match result {
            Ok(()) if got == expected => {}
            Err(Stop::Limit) if self.room == 0 => {
                self.notes.remark("the file takes more memory than it may; its rest is left out");
                return false;
            }
            _ => {
                let rule = "compressed bytes";
                self.notes.damage(at, end, DamageReason::BadValue { rule }, None);
                // Keeps the positions of later bytes.
                if expected <= self.room && expected <= 64 << 20 {
                    out.resize(before + expected, 0);
                    self.room -= (expected - got).min(self.room);
                }
            }
        }
        true
    }

    /// Reads the options of one section; returns the position of the next section.
    fn options(
        &mut self,
        offset: u64,
        data: &mut TracingData,
        options: &mut Options,
        buffers: &mut Vec<Vec<u8>>,
    ) -> Option<u64> {
        let section = self.section(offset)?;
        let mut wire = Wire::new(&section, self.order);
        while let Some(id) = wire.u16() {
            let option = wire.u32().and_then(|size| wire.take(size as usize));
            let Some(option) = option else {
                cut(self.notes, offset + HEADER_BYTES, self.bytes);
                return None;
            };
            let target = Wire::new(option, self.order).u64();
            match id {
                option::DONE => return target,
                option::BUFFER => buffers.push(option.to_vec()),
                option::BUFFER_TEXT => {
                    self.notes.remark("the text of a latency tracer is not read");
                }
                option::HEADER_INFO
                | option::FTRACE_EVENTS
                | option::EVENT_FORMATS
                | option::CMDLINES => {
                    if let Some(target) = target {
                        self.description(id, target, data);
                    }
                }
                _ => options.take(id, option, self.order),
            }
        }
        None
    }

    fn description(&mut self, id: u16, offset: u64, data: &mut TracingData) {
        let Some(section) = self.section(offset) else { return };
        let mut wire = Wire::new(&section, self.order);
        let read = match id {
            option::HEADER_INFO => data.header_info(&mut wire),
            option::FTRACE_EVENTS => data.ftrace_events(&mut wire),
            option::EVENT_FORMATS => data.event_formats(&mut wire),
            _ => data.saved_cmdlines(&mut wire),
        };
        if read.is_none() {
            let begin = offset + HEADER_BYTES;
            let rule = "description of events";
            self.notes.damage(begin, begin, DamageReason::BadValue { rule }, None);
        }
    }

    fn buffer(&mut self, option: &[u8]) -> Option<Buffer> {
        let mut wire = Wire::new(option, self.order);
        let section = wire.u64()?;
        let name = text(wire.until_nul());
        let clock = text(wire.until_nul());
        let (page_bytes, count) = (wire.u32()?, wire.u32()?.min(CPUS_MAX));
        let mut flags = Wire::at(self.bytes, section, self.order);
        let compressed = flags.u16().and(flags.u16())? & COMPRESSED != 0;
        let mut cpus = Vec::new();
        for _ in 0..count {
            let (cpu, offset, size) = (wire.u32()?, wire.u64()?, wire.u64()?);
            if size == 0 {
                continue;
            }
            let mut from = Wire::at(self.bytes, offset, self.order);
            let there = from.left();
            // The size does not include the number of chunks.
            let size = if compressed { size.saturating_add(4) } else { size };
            let content = from.take64(size).unwrap_or_else(|| {
                let missing = size.saturating_sub(there as u64);
                let reason = DamageReason::Truncated { missing_bytes: Some(missing) };
                let begin = offset.min(self.bytes.len() as u64);
                self.notes.damage(begin, self.bytes.len() as u64, reason, None);
                &self.bytes[self.bytes.len() - there..]
            });
            if !self.afford(content.len()) {
                break;
            }
            let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
            let content = match compressed {
                false => Content::Plain(begin, begin + content.len()),
                true => self.chunks(content, begin)?,
            };
            cpus.push(PerCpu { cpu, file: 0, content });
        }
        Some(Buffer { name, clock, page_bytes, cpus })
    }

    /// Positions of the chunks of a CPU; nothing is decompressed yet.
    fn chunks(&mut self, content: &[u8], offset: usize) -> Option<Content> {
        let compression = match self.compression.as_str() {
            "zstd" => Compression::Zstd,
            "zlib" => Compression::Zlib,
            other => {
                self.notes.remark(format!("compression by {other} is not known here"));
                return None;
            }
        };
        let mut wire = Wire::new(content, self.order);
        let mut chunks = Vec::new();
        let mut place = 0;
        for _ in 0..wire.u32().unwrap_or(0) {
            let at = (offset + wire.position()) as u64;
            let sizes = (wire.u32(), wire.u32());
            let input = sizes.0.and_then(|size| wire.take(size as usize));
            let (Some(input), Some(bytes)) = (input, sizes.1) else {
                let reason = DamageReason::Truncated { missing_bytes: None };
                self.notes.damage(at, (offset + content.len()) as u64, reason, None);
                break;
            };
            let end = offset + wire.position();
            let (begin, bytes) = (end - input.len(), bytes as usize);
            if bytes > CHUNK_BYTES_MAX {
                let rule = "size of compressed bytes";
                self.notes.damage(at, end as u64, DamageReason::BadValue { rule }, None);
                continue;
            }
            chunks.push(Chunk { begin, end, place, bytes });
            place += bytes as u64;
        }
        Some(Content::Packed(compression, chunks))
    }
}
