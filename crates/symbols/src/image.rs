// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ELF files [System V gABI, chapters 4 and 5].

use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{Endianness, FileKind, elf};

use crate::functions::{Found, Functions};
use crate::lines::Debug;
use crate::spaces::Mapping;
use crate::unwind::Tables;

/// Why bytes are no image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnImage(pub String);

impl std::fmt::Display for NotAnImage {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}

/// A program, a library, or the debug file of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// Of the note `GNU`, empty where there is none.
    pub build_id: Vec<u8>,
    /// By address as the linker has it.
    pub functions: Functions,
    /// Parts that are loaded: offset in the file, bytes there, address.
    segments: Vec<(u64, u64, u64)>,
    /// Those of them that are executed.
    code: Vec<(u64, u64, u64)>,
    /// How to go from a function to its caller.
    pub(crate) tables: Tables,
    /// Which lines of source the code is of.
    pub(crate) debug: Debug,
}

impl Image {
    /// Of the bytes of a whole file. Whatever of it cannot be read has no functions.
    ///
    /// # Errors
    /// Bytes that are no ELF file.
    pub fn of(bytes: &[u8]) -> Result<Self, NotAnImage> {
        let wrong = |error: object::Error| NotAnImage(error.to_string());
        match FileKind::parse(bytes).map_err(wrong)? {
            FileKind::Elf32 => of_header::<elf::FileHeader32<Endianness>>(bytes).map_err(wrong),
            FileKind::Elf64 => of_header::<elf::FileHeader64<Endianness>>(bytes).map_err(wrong),
            other => Err(NotAnImage(format!("{other:?}, not ELF"))),
        }
    }

    /// Takes from the debug file of this image what that has: its functions and lines. Debug files have no
    /// bytes of code; where these are in the file, this one says.
    pub fn take_debug(&mut self, debug: Self) {
        if !debug.functions.is_empty() {
            self.functions = debug.functions;
        }
        if !debug.debug.is_empty() {
            self.debug = debug.debug;
        }
    }

    /// The linker's address of a byte of the file.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let of = |(from, bytes, address): &(u64, u64, u64)| {
            let inside = offset.checked_sub(*from).filter(|inside| inside < bytes)?;
            address.checked_add(inside)
        };
        self.segments.iter().find_map(of)
    }

    /// How much further than the linker had it code is in memory, where a part of the file is mapped.
    ///
    /// Whole pages are mapped, so that the first one may begin with the end of another segment.
    pub(crate) fn moved_by(&self, mapping: &Mapping) -> Option<u64> {
        let end = mapping.offset.saturating_add(mapping.end - mapping.begin);
        let is_in = |(from, bytes, _): &&(u64, u64, u64)| {
            *from < end && from.saturating_add(*bytes) > mapping.offset
        };
        let (from, _, address) = self.code.iter().find(is_in)?;
        Some(mapping.begin.wrapping_sub(mapping.offset).wrapping_add(*from).wrapping_sub(*address))
    }

    /// The function at a byte of the file.
    #[must_use]
    pub fn function_at(&self, offset: u64) -> Option<&str> {
        self.functions.at(self.address_of(offset)?)
    }
}

/// The build id in notes as they lie in memory, in the byte order of this machine: those of the running
/// kernel are `/sys/kernel/notes` [System V gABI, chapter 5, Note Section].
#[must_use]
pub fn build_id_of_notes(mut notes: &[u8]) -> Option<&[u8]> {
    let word = |bytes: &[u8], at: usize| {
        Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk::<4>()?) as usize)
    };
    loop {
        let (name, content, kind) = (word(notes, 0)?, word(notes, 4)?, word(notes, 8)?);
        let begin = 12usize.checked_add(name.checked_next_multiple_of(4)?)?;
        let end = begin.checked_add(content)?;
        if kind == elf::NT_GNU_BUILD_ID as usize && notes.get(12..16) == Some(b"GNU\0") {
            return notes.get(begin..end);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

fn of_header<Elf: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<Image, object::Error> {
    let header = Elf::parse(bytes)?;
    let endian = header.endian()?;
    let mut image = Image::default();
    for segment in header.program_headers(endian, bytes).unwrap_or_default() {
        if segment.p_type(endian) == elf::PT_LOAD {
            let offset: u64 = segment.p_offset(endian).into();
            let part = (offset, segment.p_filesz(endian).into(), segment.p_vaddr(endian).into());
            image.segments.push(part);
            if segment.p_flags(endian) & elf::PF_X != 0 {
                image.code.push(part);
            }
        }
        if let Ok(Some(mut notes)) = segment.notes(endian, bytes) {
            while let Ok(Some(note)) = notes.next() {
                if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                    image.build_id = note.desc().to_vec();
                }
            }
        }
    }
    let sections = header.sections(endian, bytes)?;
    image.debug = Debug::of(endian, bytes, &sections);
    for section in sections.iter() {
        let (begin, size) = (section.sh_addr(endian).into(), section.sh_size(endian).into());
        let range = Some(begin..begin.saturating_add(size));
        // What is compressed is not read: only `.debug_frame` can be, which few files have.
        let is_plain = section.sh_flags(endian).into() & u64::from(elf::SHF_COMPRESSED) == 0;
        let content =
            || Some((begin, section.data(endian, bytes).ok().filter(|_| is_plain)?.into()));
        match sections.section_name(endian, section).unwrap_or_default() {
            b".text" => image.tables.text = range,
            b".got" => image.tables.got = range,
            b".eh_frame" => image.tables.eh_frame = content(),
            b".eh_frame_hdr" => image.tables.eh_frame_hdr = content(),
            b".debug_frame" => image.tables.debug_frame = content(),
            _ => {}
        }
    }
    let mut found = Vec::new();
    // What is exported is in the whole table as well, where that was not stripped.
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let Ok(table) = sections.symbols(endian, bytes, kind) else { continue };
        let strings = table.strings();
        for (index, symbol) in table.enumerate() {
            // Labels in code written in assembly have no type.
            let is_code =
                matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_NOTYPE);
            let section = table.symbol_section(endian, symbol, index).ok().flatten();
            let section = section.and_then(|section| sections.section(section).ok());
            let Some(section) = section.filter(|_| is_code) else { continue };
            let flags: u64 = section.sh_flags(endian).into();
            if flags & u64::from(elf::SHF_EXECINSTR) == 0 {
                continue;
            }
            let address: u64 = section.sh_addr(endian).into();
            let name = symbol.name(endian, strings).ok();
            let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else { continue };
            // `$x`, `$d` say what kind of bytes follow [ELF for the Arm 64-bit Architecture, 5.5.4].
            if name.starts_with('$') {
                continue;
            }
            found.push(Found {
                begin: symbol.st_value(endian).into(),
                bytes: symbol.st_size(endian).into(),
                most: address.saturating_add(section.sh_size(endian).into()),
                name,
                is_global: symbol.st_bind() == elf::STB_GLOBAL,
                is_weak: symbol.st_bind() == elf::STB_WEAK,
            });
        }
        if !found.is_empty() {
            break;
        }
    }
    image.functions = Functions::sorted(found);
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// This test itself, as the compiler of Rust made it.
    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().expect("a path")).expect("its bytes")
    }

    #[test]
    fn a_program_has_its_functions() {
        let image = Image::of(&own()).expect("an ELF file");
        assert!(image.functions.len() > 100, "{}", image.functions.len());
        assert!(!image.build_id.is_empty() || cfg!(not(target_os = "linux")));
        let (offset, bytes, address) = image.segments[0];
        assert_eq!(image.address_of(offset), Some(address));
        assert_eq!(image.address_of(offset + bytes - 1), Some(address + bytes - 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn broken_files_are_read_as_far_as_they_go(
            flips in prop::collection::vec((0usize..4096, any::<u8>()), 1..8), cut in 0usize..5000,
        ) {
            // Headers are at both ends of the file.
            let all = own();
            let mut bytes = [&all[..4096], &all[all.len().saturating_sub(65_536)..]].concat();
            for (at, byte) in flips {
                bytes[at] = byte;
            }
            bytes.truncate(bytes.len() - cut);
            let _ = Image::of(&bytes);
        }
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let note = |name: &[u8; 4], kind: u32, content: &[u8]| {
            let words = [4u32, content.len() as u32, kind].map(u32::to_ne_bytes).concat();
            let pad = vec![0; content.len().next_multiple_of(4) - content.len()];
            [&words, &name[..], content, &pad].concat()
        };
        let all =
            [note(b"Xen\0", 3, b"other"), note(b"GNU\0", 1, b"abi "), note(b"GNU\0", 3, b"12345")];
        let bytes = all.concat();
        assert_eq!(build_id_of_notes(&bytes), Some(&b"12345"[..]));
        for cut in 0..bytes.len() - 3 {
            assert_eq!(build_id_of_notes(&bytes[..cut]), None);
        }
    }

    #[test]
    fn what_is_no_elf_file_is_an_error() {
        assert!(Image::of(b"").is_err());
        assert!(Image::of(b"#!/bin/sh\n").is_err());
    }
}
