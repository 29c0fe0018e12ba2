// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Dependencies of an ELF file: its interpreter and libraries; and the locations of libraries.

use std::collections::BTreeMap;

use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

/// Largest number of libraries of a file.
const LIBRARIES_MAX: usize = 4096;

/// Dependencies of a program or library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The program that loads it.
    pub interpreter: Option<Vec<u8>>,
    /// Names of libraries.
    pub libraries: Vec<Vec<u8>>,
    /// Folders in which to search, from the file, before those of the environment.
    pub search_first: Vec<Vec<u8>>,
    /// Folders in which to search after those of the environment.
    pub search_then: Vec<Vec<u8>>,
}

/// Reason why a file cannot run in the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It is 32-bit.
    Bits32,
    /// It is for another architecture.
    Architecture,
    /// It is damaged.
    Damaged,
}

/// Whether a file that begins with these bytes is an ELF file.
#[must_use]
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(&elf::ELFMAG)
}

/// Dependencies of an ELF file.
///
/// # Errors
/// If it cannot run in an x86-64 machine.
pub fn needs(bytes: &[u8]) -> Result<Needs, Unfit> {
    match bytes.get(4) {
        Some(&elf::ELFCLASS64) => {}
        Some(&elf::ELFCLASS32) => return Err(Unfit::Bits32),
        _ => return Err(Unfit::Damaged),
    }
    read(bytes).ok_or(Unfit::Damaged)?
}

fn read(bytes: &[u8]) -> Option<Result<Needs, Unfit>> {
    let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
    let order = header.endian().ok()?;
    if header.e_machine(order) != elf::EM_X86_64 {
        return Some(Err(Unfit::Architecture));
    }
    let segments = header.program_headers(order, bytes).ok()?;
    let at = |address: u64| {
        let data = segments.iter().filter(|segment| segment.p_type(order) == elf::PT_LOAD);
        data.filter_map(|segment| segment.data_range(order, bytes, address, 1).ok().flatten())
            .next()
            .map(|found| found.as_ptr() as usize - bytes.as_ptr() as usize)
    };
    let mut needs = Needs::default();
    for segment in segments {
        if let Ok(Some(interpreter)) = segment.interpreter(order, bytes) {
            needs.interpreter = Some(interpreter.to_vec());
        }
        let Ok(Some(entries)) = segment.dynamic(order, bytes) else { continue };
        let values = |tag: i64| {
            let of = entries.iter().filter(move |entry| entry.d_tag(order) == tag);
            of.map(|entry| entry.d_val(order))
        };
        let Some(strings) = values(elf::DT_STRTAB).next().and_then(at) else { continue };
        let text = |offset: u64| {
            let begin = strings.checked_add(usize::try_from(offset).ok()?)?;
            let rest = bytes.get(begin..)?;
            Some(rest.split(|byte| *byte == 0).next()?.to_vec())
        };
        let names = values(elf::DT_NEEDED).take(LIBRARIES_MAX);
        needs.libraries.extend(names.filter_map(text));
        let folders = |tag: i64| {
            let lists = values(tag).filter_map(text).collect::<Vec<_>>();
            let split = lists.iter().flat_map(|list| list.split(|byte| *byte == b':'));
            split.map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        needs.search_then = folders(elf::DT_RUNPATH);
        if needs.search_then.is_empty() {
            needs.search_first = folders(elf::DT_RPATH);
        }
    }
    Some(Ok(needs))
}

/// Interpreter of a script, with the optional single argument in its first line.
#[must_use]
pub fn script_interpreter(bytes: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    /// The kernel reads no more [Linux: fs/binfmt_script.c].
    const LINE_MAX: usize = 256;
    let line = bytes.strip_prefix(b"#!")?;
    let line = line[..line.len().min(LINE_MAX)].split(|byte| *byte == b'\n').next()?;
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let argument = Some(line[end..].trim_ascii()).filter(|argument| !argument.is_empty());
    (end > 0).then_some((&line[..end], argument))
}

/// Libraries by name, from `/etc/ld.so.cache` [glibc: sysdeps/generic/dl-cache.h, the newer format]: of
/// several with one name, the first. Damaged entries are left out.
#[must_use]
pub fn library_cache(bytes: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    /// Flags of glibc's ELF files for x86-64.
    const FLAGS: u32 = 0x0303;
    let mut found = BTreeMap::new();
    // The older format may precede it.
    let Some(begin) = bytes.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return found;
    };
    let all = &bytes[begin..];
    let word = |at: usize| Some(u32::from_le_bytes(*all.get(at..)?.first_chunk()?));
    let text = |at: u32| Some(all.get(at as usize..)?.split(|byte| *byte == 0).next()?.to_vec());
    let count = word(MAGIC.len()).unwrap_or(0) as usize;
    for entry in (HEADER..all.len()).step_by(ENTRY).take(count) {
        let (Some(flags), Some(name), Some(path)) = (word(entry), word(entry + 4), word(entry + 8))
        else {
            break;
        };
        if let (FLAGS, Some(name), Some(path)) = (flags, text(name), text(path)) {
            found.entry(name).or_insert(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreter_on_the_first_line() {
        let of = |text: &'static str| script_interpreter(text.as_bytes());
        assert_eq!(of("#!/bin/sh\nls"), Some((&b"/bin/sh"[..], None)));
        let expected = Some((&b"/usr/bin/env"[..], Some(&b"python3 -u"[..])));
        assert_eq!(of("#! /usr/bin/env  python3 -u \n"), expected);
        assert_eq!([of("#!\n"), of("ls"), of("")], [None; 3]);
    }

    #[test]
    fn the_cache_of_libraries_is_read_and_may_be_damaged() {
        let mut bytes = b"older".to_vec();
        let mut newer = b"glibc-ld.so.cache1.1".to_vec();
        newer.extend(2u32.to_le_bytes());
        newer.resize(48, 0);
        let names = 48 + 2 * 24;
        for (flags, name, path) in [(0x0303u32, 0, 4), (3, 0, 4)] {
            for word in [flags, names + name, names + path, 0, 0, 0] {
                newer.extend(word.to_le_bytes());
            }
        }
        newer.extend(b"a.6\0/lib/a.6\0");
        bytes.extend(&newer);
        let expected = BTreeMap::from([(b"a.6".to_vec(), b"/lib/a.6".to_vec())]);
        assert_eq!(library_cache(&bytes), expected);
        for cut in 0..bytes.len() {
            assert!(library_cache(&bytes[..cut]).len() <= 1, "{cut}");
        }
    }

    #[test]
    fn what_does_not_run_here_is_told() {
        let mut bytes = [0; 64];
        bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 1, 1, 1]);
        assert_eq!(needs(&bytes), Err(Unfit::Bits32));
        bytes[4] = 2;
        bytes[18] = 183; // AArch64
        assert_eq!(needs(&bytes), Err(Unfit::Architecture));
        for cut in 0..20 {
            assert!(needs(&bytes[..cut]).is_err(), "{cut}");
        }
    }
}
