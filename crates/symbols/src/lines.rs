// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lines of source, and functions that were inlined, by address [DWARF 5, 3.3.8 and 6.2].

use std::io::Read;
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian, SectionId};
use object::read::elf::{CompressionHeader, FileHeader, SectionHeader, SectionTable};
use object::{Endianness, elf};

use crate::demangled;

/// Bytes that the debug sections of a file may have when they are not compressed any more.
const BYTES_MAX: u64 = 2 << 30;
/// Functions that are inlined into each other at one address; what is beyond is damage.
const INLINED_MAX: usize = 256;

/// Sections of a file that say which lines of source its code is of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Debug {
    is_big_endian: bool,
    /// By their names.
    sections: Vec<(&'static str, Arc<[u8]>)>,
}

impl Debug {
    /// What a file has; a section that cannot be read is missing.
    pub(crate) fn of<'d, Elf: FileHeader<Endian = Endianness>>(
        endian: Endianness,
        bytes: &'d [u8],
        sections: &SectionTable<'d, Elf>,
    ) -> Self {
        let mut all = Self { is_big_endian: endian == Endianness::Big, ..Self::default() };
        let mut left = BYTES_MAX;
        for section in sections.iter() {
            let name = sections.section_name(endian, section).unwrap_or_default();
            let known = KNOWN.iter().map(|id| id.name()).find(|known| known.as_bytes() == name);
            let Some(known) = known else { continue };
            let Some(content) = content::<Elf>(endian, bytes, section, left) else { continue };
            left -= content.len() as u64;
            all.sections.push((known, content));
        }
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }
}

/// Sections that are read.
const KNOWN: [SectionId; 11] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTypes,
];

/// Bytes of a section, decompressed; `None` if they are not available, or exceed the given number.
fn content<Elf: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    bytes: &[u8],
    section: &Elf::SectionHeader,
    most: u64,
) -> Option<Arc<[u8]>> {
    let Some((header, offset, size)) = section.compression(endian, bytes).ok()? else {
        let plain = section.data(endian, bytes).ok()?;
        return (plain.len() as u64 <= most).then(|| plain.into());
    };
    // Who compresses by zstd has no lines here yet.
    if header.ch_type(endian) != elf::ELFCOMPRESS_ZLIB {
        return None;
    }
    let begin = usize::try_from(offset).ok()?;
    let packed = bytes.get(begin..begin.checked_add(usize::try_from(size).ok()?)?)?;
    let mut plain = Vec::new();
    let mut unpacking = flate2::read::ZlibDecoder::new(packed).take(most.saturating_add(1));
    unpacking.read_to_end(&mut plain).ok()?;
    (plain.len() as u64 <= most).then(|| plain.into())
}

type Reader = EndianArcSlice<RunTimeEndian>;

/// One of the functions that an address is in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LineFrame {
    /// The name in the source; `None` if only lines are known.
    pub function: Option<String>,
    /// Source file and line: of the address for the innermost function, of the call of the next
    /// inner function for the others.
    pub line: Option<(String, u32)>,
}

/// Lines of an image.
///
/// Memory: its debug sections, and what was read of those units that were asked for.
pub struct Lines {
    context: Context<Reader>,
}

impl Lines {
    /// Of an image; `None` where it has none.
    #[must_use]
    pub fn of(image: &crate::Image) -> Option<Self> {
        let Debug { is_big_endian, sections } = &image.debug;
        if sections.is_empty() {
            return None;
        }
        let endian = if *is_big_endian { RunTimeEndian::Big } else { RunTimeEndian::Little };
        let load = |id: SectionId| {
            let found = sections.iter().find(|(name, _)| *name == id.name());
            let bytes = found.map_or_else(|| Arc::from([]), |(_, bytes)| Arc::clone(bytes));
            Ok::<_, gimli::Error>(EndianArcSlice::new(bytes, endian))
        };
        let context = Context::from_dwarf(Dwarf::load(load).ok()?).ok()?;
        Some(Self { context })
    }

    /// The functions that an address of the linker is in, the one that was inlined deepest first; none where
    /// nothing is known of it.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<LineFrame> {
        let mut all = Vec::new();
        let Ok(mut found) = self.context.find_frames(address).skip_all_loads() else { return all };
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.as_ref().and_then(|of| of.raw_name().ok());
            let line = frame.location.and_then(|at| Some((at.file?.to_owned(), at.line?)));
            all.push(LineFrame { function: name.map(|name| demangled(&name)), line });
            if all.len() >= INLINED_MAX {
                break;
            }
        }
        all
    }

    /// The file and the line of an address.
    #[must_use]
    pub fn line(&self, address: u64) -> Option<(String, u32)> {
        let found = self.context.find_location(address).ok().flatten()?;
        Some((found.file?.to_owned(), found.line?))
    }
}
