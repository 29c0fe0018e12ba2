// SPDX-License-Identifier: Apache-2.0 OR MIT
//! File offsets of the functions and the marked points of a program.
//!
//! Sources: gABI, "Symbol Table", "Program Header"; the notes of SystemTap's sys/sdt.h
//! (`.note.stapsdt`, type 3): three addresses, then provider, name and arguments.

use object::read::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use object::{Architecture, SymbolFlags, elf};

/// Maximum number of functions and points of a program; browsers have half a million.
const NAMES_MAX: usize = 4 << 20;

/// Architecture of the registers in the points' arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// Any other one: its operands are not supported.
    Other,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Its file offset; `None` if its code is chosen at program start.
    pub offset: Option<u64>,
}

/// A point marked by the author of the program (USDT).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Its provider: often the program's name.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// Its file offset.
    pub offset: u64,
    /// File offset of the counter that enables it, if it has one.
    pub semaphore: Option<u64>,
    /// Operands in the compiler's notation.
    pub arguments: String,
}

/// The items of a program that can be probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its architecture.
    pub arch: Arch,
    /// By name.
    pub functions: Vec<Function>,
    /// In the order of the notes.
    pub points: Vec<Point>,
}

/// A range of the file and the addresses it is loaded at.
struct Segment {
    address: u64,
    offset: u64,
    bytes: u64,
}

struct Segments(Vec<Segment>);

impl Segments {
    fn of(file: &object::File<'_>) -> Segments {
        let one = |segment: object::read::Segment<'_, '_>| {
            let (offset, bytes) = segment.file_range();
            Segment { address: segment.address(), offset, bytes }
        };
        Segments(file.segments().map(one).collect())
    }

    /// File offset of the byte that is loaded at an address.
    fn offset(&self, address: u64) -> Option<u64> {
        self.0.iter().find_map(|segment| {
            let within = address.checked_sub(segment.address)?;
            (within < segment.bytes).then(|| segment.offset.checked_add(within)).flatten()
        })
    }
}

impl Program {
    /// Reads a file; `None` if it is not a program.
    ///
    /// Cost: one pass over its symbols.
    pub fn read(bytes: &[u8]) -> Option<Program> {
        let file = object::File::parse(bytes).ok()?;
        let segments = Segments::of(&file);
        let mut functions: Vec<Function> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .take(NAMES_MAX)
            .filter_map(|symbol| function(&symbol, &segments))
            .collect();
        functions.sort_by(|a, b| a.name.cmp(&b.name));
        functions.dedup_by(|a, b| a.name == b.name);
        let arch = match file.architecture() {
            Architecture::X86_64 => Arch::X86_64,
            _ => Arch::Other,
        };
        Some(Program { arch, functions, points: points(&file, &segments) })
    }
}

fn function<'a>(symbol: &impl ObjectSymbol<'a>, segments: &Segments) -> Option<Function> {
    let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { return None };
    let kind = st_info & 0xf;
    let is_function = kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC;
    if !is_function || symbol.is_undefined() {
        return None;
    }
    let name = symbol.name().ok().filter(|name| !name.is_empty())?.to_owned();
    let offset = segments.offset(symbol.address())?;
    Some(Function { name, offset: (kind == elf::STT_FUNC).then_some(offset) })
}

fn points(file: &object::File<'_>, segments: &Segments) -> Vec<Point> {
    let Some(notes) = file.section_by_name(".note.stapsdt") else { return Vec::new() };
    let Ok(bytes) = notes.data() else { return Vec::new() };
    // Current address of this section; prelinking may have moved the addresses in the notes.
    let base = file.section_by_name(".stapsdt.base").map(|section| section.address());
    let reader = Notes { wide: file.is_64(), little: file.is_little_endian() };
    let mut all = Vec::new();
    let mut at = 0;
    while let Some((kind, value, next)) = reader.note(bytes, at) {
        if kind == 3 && all.len() < NAMES_MAX {
            all.extend(reader.point(value, base, segments));
        }
        at = next;
    }
    all
}

struct Notes {
    wide: bool,
    little: bool,
}

impl Notes {
    fn word(&self, bytes: &[u8], at: usize, width: usize) -> Option<u64> {
        let source = bytes.get(at..at.checked_add(width)?)?;
        let digit = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if self.little {
            source.iter().rev().fold(0, digit)
        } else {
            source.iter().fold(0, digit)
        })
    }

    /// Type and content of the note at `at` if it is SystemTap's, and the offset of the next one.
    fn note<'a>(&self, bytes: &'a [u8], at: usize) -> Option<(u64, &'a [u8], usize)> {
        let number = |at| self.word(bytes, at, 4).and_then(|word| usize::try_from(word).ok());
        let (name_bytes, value_bytes) = (number(at)?, number(at + 4)?);
        let kind = self.word(bytes, at + 8, 4)?;
        let name = bytes.get(at + 12..(at + 12).checked_add(name_bytes)?)?;
        let value_at = (at + 12).checked_add(name_bytes.checked_next_multiple_of(4)?)?;
        let value = bytes.get(value_at..value_at.checked_add(value_bytes)?)?;
        let next = value_at.checked_add(value_bytes.checked_next_multiple_of(4)?)?;
        Some((if name == b"stapsdt\0" { kind } else { 0 }, value, next))
    }

    fn point(&self, value: &[u8], base: Option<u64>, segments: &Segments) -> Option<Point> {
        let width = if self.wide { 8 } else { 4 };
        let address = self.word(value, 0, width)?;
        let noted_base = self.word(value, width, width)?;
        let semaphore = self.word(value, 2 * width, width)?;
        let moved = base.map_or(0, |base| base.wrapping_sub(noted_base));
        let mut texts = value.get(3 * width..)?.split(|byte| *byte == 0);
        let mut text = || Some(std::str::from_utf8(texts.next()?).ok()?.to_owned());
        let (provider, name) = (text()?, text()?);
        let place = |address: u64| segments.offset(address.wrapping_add(moved));
        let semaphore = match semaphore {
            0 => None,
            address => Some(place(address)?),
        };
        Some(Point {
            provider,
            name,
            offset: place(address)?,
            semaphore,
            arguments: text().unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_functions_and_bytes_of_any_kind_are_survived() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let program = Program::read(&bytes).unwrap();
        let main = program.functions.iter().find(|function| function.name == "main");
        assert!(main.is_some_and(|main| main.offset.is_some()));
        assert_eq!(Program::read(b"\x7fELF"), None);
        assert_eq!(Program::read(b""), None);
    }

    #[test]
    fn notes_tell_points() {
        let mut note = Vec::new();
        let value: Vec<u8> = [0x1010_u64, 0x2000, 0x3008]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .chain(*b"app\0done\0-4@%edi\0")
            .collect();
        for word in [8, value.len() as u32, 3] {
            note.extend(word.to_le_bytes());
        }
        note.extend(b"stapsdt\0");
        note.extend(&value);
        note.resize(note.len().next_multiple_of(4), 0);
        let reader = Notes { wide: true, little: true };
        let segment = |address, offset| Segment { address, offset, bytes: 0x100 };
        let segments = Segments(vec![segment(0x1100, 0x100), segment(0x3100, 0x400)]);
        let (kind, value, next) = reader.note(&note, 0).unwrap();
        assert_eq!((kind, next), (3, note.len()));
        // All addresses are 0x100 above those in the note.
        let point = reader.point(value, Some(0x2100), &segments).unwrap();
        assert_eq!((point.offset, point.semaphore), (0x110, Some(0x408)));
        assert_eq!((point.provider.as_str(), point.name.as_str()), ("app", "done"));
        assert_eq!(point.arguments, "-4@%edi");
        for at in 0..note.len() {
            let mut broken = note.clone();
            broken[at] ^= 0xff;
            if let Some((_, value, _)) = reader.note(&broken, 0) {
                reader.point(value, None, &segments);
            }
            reader.note(&note[..at], 0);
        }
    }
}
