// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions of a just-in-time compiler over time: `jit-PID.dump`, which V8, the JVM, LLVM, Mono and CPython
//! write [Linux, tools/perf/Documentation/jitdump-specification.txt].
//!
//! A compiler uses the same memory for one function after another, so an address alone does not name a
//! function: the address and the time do.

use std::collections::{BTreeMap, HashMap};

use crate::spaces::{self, Mapping};

/// "JiTD" read in the byte order of the machine that wrote it.
const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
/// Bytes of the header of the file that all versions have.
const HEADER_BYTES: usize = 40;
/// Bytes of the header of a record.
const RECORD_BYTES: usize = 16;
/// Times are those of a processor's counter, not of `CLOCK_MONOTONIC`.
const FLAG_ARCH_TIMESTAMP: u64 = 1;
/// Functions that can be in memory at one time.
const PRESENT_MAX: usize = 1 << 20;
/// The name of a file in a line that is the one of the entry before.
const SAME_FILE: &[u8] = b"\xff";

mod record {
    pub const LOAD: u32 = 0;
    pub const MOVE: u32 = 1;
    pub const DEBUG_INFO: u32 = 2;
    pub const CLOSE: u32 = 3;
}

/// A file that is no jitdump, with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAJitDump(pub &'static str);

impl std::fmt::Display for NotAJitDump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "is no jitdump: {}", self.0)
    }
}

impl std::error::Error for NotAJitDump {}

/// A compiled function.
#[derive(Debug, Clone)]
struct Compiled {
    name: Box<str>,
    /// Where its lines are in [`JitDump::lines`].
    lines: (usize, usize),
    /// Its address when the lines were written.
    address: u64,
}

/// A line of source of generated code.
#[derive(Debug, Clone, Copy)]
struct SourceLine {
    address: u64,
    file: u32,
    number: u32,
}

/// Code that is at an address from a time on.
#[derive(Debug, Clone, Copy)]
struct Change {
    time_ns: u64,
    begin: u64,
    bytes: u64,
    /// Its place in [`JitDump::compiled`].
    of: u32,
    /// Where it was before, if it was moved.
    from: Option<u64>,
}

/// What is at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitFunction<'j> {
    /// As the compiler wrote it.
    pub name: &'j str,
    /// Offset of the address from the start of the function, in bytes.
    pub offset: u64,
    /// The file of source and the line, from 1 on, where the compiler wrote them.
    pub line: Option<(&'j str, u32)>,
}

/// The functions of one process.
///
/// Memory: that of the names, 40 bytes a function and 16 a line, less than the file. A lookup takes
/// logarithmic time where times do not go back; where one does, all changes up to it are applied again.
#[derive(Debug, Clone, Default)]
pub struct JitDump {
    compiled: Vec<Compiled>,
    lines: Vec<SourceLine>,
    files: Vec<Box<str>>,
    /// In the order of time.
    changes: Vec<Change>,
    is_monotonic: bool,
    /// How many changes `present` contains.
    applied: usize,
    /// What is in memory after these.
    present: BTreeMap<u64, Mapping>,
}

impl JitDump {
    /// Reads the content of a file. One that is cut, or damaged at a record, has the records before: a
    /// compiler that was killed leaves such a file.
    ///
    /// # Errors
    /// The first bytes are not those of a jitdump.
    pub fn of(bytes: &[u8]) -> Result<Self, NotAJitDump> {
        let head = bytes.get(..HEADER_BYTES).ok_or(NotAJitDump("it is shorter than its header"))?;
        let magic = |swapped: bool| Words { bytes: head, swapped }.u32();
        let swapped = match (magic(false), magic(true)) {
            (Some(MAGIC), _) => false,
            (_, Some(MAGIC)) => true,
            _ => return Err(NotAJitDump("it does not begin with JiTD")),
        };
        let mut words = Words { bytes: &head[4..], swapped };
        let (version, header_bytes) = (words.u32(), words.u32());
        if version != Some(VERSION) {
            return Err(NotAJitDump("its version is not 1"));
        }
        let mut words = Words { bytes: &head[32..], swapped };
        let flags = words.u64().unwrap_or(0);
        let mut dump = Self { is_monotonic: flags & FLAG_ARCH_TIMESTAMP == 0, ..Self::default() };
        let header_bytes = header_bytes.map_or(0, |bytes| bytes as usize).max(HEADER_BYTES);
        dump.read(bytes.get(header_bytes..).unwrap_or_default(), swapped);
        // Threads write their records one after the other, but take the time before.
        dump.changes.sort_by_key(|change| change.time_ns);
        Ok(dump)
    }

    fn read(&mut self, mut rest: &[u8], swapped: bool) {
        let mut file_ids: HashMap<Vec<u8>, u32> = HashMap::new();
        // Functions by their numbers, and lines that wait for theirs, by address.
        let mut numbered: HashMap<u64, u32> = HashMap::new();
        let mut waiting: HashMap<u64, (usize, usize)> = HashMap::new();
        while let Some(head) = rest.get(..RECORD_BYTES) {
            let mut words = Words { bytes: head, swapped };
            let (Some(kind), Some(bytes), Some(time_ns)) = (words.u32(), words.u32(), words.u64())
            else {
                return;
            };
            let bytes = bytes as usize;
            if bytes < RECORD_BYTES || bytes > rest.len() {
                return;
            }
            let (one, behind) = rest.split_at(bytes);
            rest = behind;
            let mut words = Words { bytes: &one[RECORD_BYTES..], swapped };
            match kind {
                record::LOAD => {
                    let Some(load) = Load::read(&mut words) else { return };
                    let Ok(of) = u32::try_from(self.compiled.len()) else { return };
                    let lines = waiting.remove(&load.address).unwrap_or((0, 0));
                    numbered.insert(load.number, of);
                    let name = String::from_utf8_lossy(load.name).into();
                    self.compiled.push(Compiled { name, lines, address: load.address });
                    let (begin, bytes) = (load.address, load.bytes);
                    self.changes.push(Change { time_ns, begin, bytes, of, from: None });
                }
                record::MOVE => {
                    // Process, thread, address in memory.
                    words.skip(16);
                    let parts = (words.u64(), words.u64(), words.u64(), words.u64());
                    let (Some(from), Some(begin), Some(bytes), Some(number)) = parts else {
                        return;
                    };
                    if let Some(of) = numbered.get(&number).copied() {
                        self.changes.push(Change { time_ns, begin, bytes, of, from: Some(from) });
                    }
                }
                record::DEBUG_INFO => {
                    let Some((address, lines)) = self.read_lines(&mut words, &mut file_ids) else {
                        return;
                    };
                    waiting.insert(address, lines);
                }
                record::CLOSE => return,
                // Tables to unwind, and what later versions add.
                _ => {}
            }
        }
    }

    /// The address of the code that they are of, and where they are.
    fn read_lines(
        &mut self,
        words: &mut Words<'_>,
        ids: &mut HashMap<Vec<u8>, u32>,
    ) -> Option<(u64, (usize, usize))> {
        let (address, count) = (words.u64()?, words.u64()?);
        let begin = self.lines.len();
        let mut last = None;
        for _ in 0..count {
            let (Some(address), Some(number)) = (words.u64(), words.u32()) else { break };
            // The discriminator.
            words.skip(4);
            let Some(name) = words.text() else { break };
            let file = match last.filter(|_| name == SAME_FILE) {
                Some(file) => file,
                None => match ids.get(name) {
                    Some(file) => *file,
                    None => {
                        let file = u32::try_from(self.files.len()).ok()?;
                        self.files.push(String::from_utf8_lossy(name).into());
                        ids.insert(name.to_vec(), file);
                        file
                    }
                },
            };
            last = Some(file);
            self.lines.push(SourceLine { address, file, number });
        }
        self.lines[begin..].sort_by_key(|line| line.address);
        Some((address, (begin, self.lines.len())))
    }

    /// Whether times are nanoseconds of `CLOCK_MONOTONIC`; else they cannot be compared with those of events.
    #[must_use]
    pub fn is_monotonic(&self) -> bool {
        self.is_monotonic
    }

    /// How many functions were compiled.
    #[must_use]
    pub fn len(&self) -> usize {
        self.compiled.len()
    }

    /// Whether none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// The function at an address at a time of `CLOCK_MONOTONIC`; without a time, or where the file's times
    /// are of another clock, the last that was there.
    pub fn at(&mut self, address: u64, time_ns: Option<u64>) -> Option<JitFunction<'_>> {
        let time_ns = time_ns.filter(|_| self.is_monotonic).unwrap_or(u64::MAX);
        self.advance(time_ns);
        let (_, mapping) = self.present.range(..=address).next_back()?;
        let mapping = (address < mapping.end).then_some(*mapping)?;
        let of = self.compiled.get(mapping.file as usize)?;
        let offset = mapping.offset_of(address);
        Some(JitFunction { name: &of.name, offset, line: self.line(of, offset) })
    }

    /// The line before or at an offset.
    fn line(&self, of: &Compiled, offset: u64) -> Option<(&str, u32)> {
        let lines = self.lines.get(of.lines.0..of.lines.1)?;
        let address = of.address.wrapping_add(offset);
        let at = lines.partition_point(|line| line.address <= address).checked_sub(1)?;
        let line = lines[at];
        Some((self.files.get(line.file as usize)?, line.number))
    }

    /// Makes `present` what was in memory at a time.
    fn advance(&mut self, time_ns: u64) {
        let until = self.changes.partition_point(|change| change.time_ns <= time_ns);
        if until < self.applied {
            self.applied = 0;
            self.present.clear();
        }
        for change in &self.changes[self.applied..until] {
            if let Some(from) = change.from
                && self.present.get(&from).is_some_and(|was| was.file == change.of)
            {
                self.present.remove(&from);
            }
            let end = change.begin.saturating_add(change.bytes);
            if end > change.begin {
                let new = Mapping { begin: change.begin, end, offset: 0, file: change.of };
                spaces::insert(&mut self.present, new, PRESENT_MAX);
            }
        }
        self.applied = until;
    }
}

/// A record that code was loaded.
struct Load<'b> {
    address: u64,
    bytes: u64,
    number: u64,
    name: &'b [u8],
}

impl<'b> Load<'b> {
    fn read(words: &mut Words<'b>) -> Option<Self> {
        // Process, thread, address in memory.
        words.skip(16);
        let (address, bytes, number) = (words.u64()?, words.u64()?, words.u64()?);
        Some(Self { address, bytes, number, name: words.text()? })
    }
}

/// Numbers in the byte order of a file.
struct Words<'b> {
    bytes: &'b [u8],
    swapped: bool,
}

impl<'b> Words<'b> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (found, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        let mut found = *found;
        if self.swapped {
            found.reverse();
        }
        Some(found)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn skip(&mut self, bytes: usize) {
        self.bytes = self.bytes.get(bytes..).unwrap_or_default();
    }

    /// Up to a zero.
    fn text(&mut self) -> Option<&'b [u8]> {
        let at = self.bytes.iter().position(|byte| *byte == 0)?;
        let (text, rest) = self.bytes.split_at(at);
        self.bytes = &rest[1..];
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes a file as a compiler does, in either byte order.
    struct Written {
        bytes: Vec<u8>,
        swapped: bool,
    }

    impl Written {
        fn new(swapped: bool, flags: u64) -> Self {
            let mut new = Self { bytes: Vec::new(), swapped };
            for word in [MAGIC, VERSION, 40, 62, 0, 77] {
                new.u32(word);
            }
            new.u64(5);
            new.u64(flags);
            new
        }

        fn ordered(&mut self, mut word: Vec<u8>) {
            if self.swapped {
                word.reverse();
            }
            self.bytes.extend(word);
        }

        fn u32(&mut self, word: u32) {
            self.ordered(word.to_le_bytes().to_vec());
        }

        fn u64(&mut self, word: u64) {
            self.ordered(word.to_le_bytes().to_vec());
        }

        fn record(&mut self, kind: u32, time: u64, body: impl FnOnce(&mut Self)) {
            let at = self.bytes.len();
            self.u32(kind);
            self.u32(0);
            self.u64(time);
            body(self);
            let bytes = (self.bytes.len() - at) as u32;
            let bytes = if self.swapped { bytes.to_be_bytes() } else { bytes.to_le_bytes() };
            self.bytes[at + 4..at + 8].copy_from_slice(&bytes);
        }

        fn load(&mut self, time: u64, address: u64, bytes: u64, number: u64, name: &str) {
            self.record(record::LOAD, time, |to| {
                to.u32(77);
                to.u32(78);
                for word in [address, address, bytes, number] {
                    to.u64(word);
                }
                to.bytes.extend(name.as_bytes());
                to.bytes.push(0);
                to.bytes.extend(vec![0x90; bytes as usize]);
            });
        }

        fn moved(&mut self, time: u64, (from, to): (u64, u64), bytes: u64, number: u64) {
            self.record(record::MOVE, time, |out| {
                out.u32(77);
                out.u32(78);
                for word in [to, from, to, bytes, number] {
                    out.u64(word);
                }
            });
        }

        fn lines(&mut self, address: u64, all: &[(u64, u32, &[u8])]) {
            self.record(record::DEBUG_INFO, 0, |to| {
                to.u64(address);
                to.u64(all.len() as u64);
                for (address, line, file) in all {
                    to.u64(*address);
                    to.u32(*line);
                    to.u32(0);
                    to.bytes.extend(*file);
                    to.bytes.push(0);
                }
            });
        }
    }

    fn name(dump: &mut JitDump, address: u64, time: Option<u64>) -> Option<String> {
        dump.at(address, time).map(|of| format!("{}+{}", of.name, of.offset))
    }

    #[test]
    fn the_same_address_is_another_function_later() {
        for swapped in [false, true] {
            let mut file = Written::new(swapped, 0);
            file.load(100, 0x1000, 16, 0, "first");
            file.load(200, 0x1008, 16, 1, "second");
            file.moved(300, (0x1000, 0x2000), 16, 0);
            file.record(9, 300, |_| ());
            file.load(400, 0x3000, 0, 2, "empty");
            let mut dump = JitDump::of(&file.bytes).expect("a jitdump");
            assert_eq!((dump.len(), dump.is_monotonic()), (3, true));
            let text = |text: &str| Some(text.to_owned());
            for (address, time, expected) in [
                (0x1000, Some(99), None),
                (0x100f, Some(100), text("first+15")),
                (0x1010, Some(199), None),
                (0x100f, Some(200), text("second+7")),
                (0x1007, Some(200), text("first+7")),
                (0x1007, Some(300), None),
                (0x2004, None, text("first+4")),
                (0x3000, None, None),
                // Back in time.
                (0x100f, Some(150), text("first+15")),
            ] {
                assert_eq!(name(&mut dump, address, time), expected, "{address:#x} {time:?}");
            }
        }
    }

    #[test]
    fn lines_are_those_of_the_code_that_is_loaded_next_at_their_address() {
        let mut file = Written::new(false, FLAG_ARCH_TIMESTAMP);
        file.lines(0x1000, &[(0x1004, 8, SAME_FILE), (0x1000, 7, b"a.js"), (0x1008, 3, b"b.js")]);
        file.lines(0x1000, &[(0x1004, 7, b"a.js"), (0x1008, 8, SAME_FILE)]);
        file.load(100, 0x1000, 16, 0, "f");
        file.moved(200, (0x1000, 0x2000), 16, 0);
        let mut dump = JitDump::of(&file.bytes).expect("a jitdump");
        assert!(!dump.is_monotonic());
        let lines = [0x2000, 0x2004, 0x2007, 0x200f].map(|at| {
            let line = dump.at(at, Some(1)).expect("a function").line;
            line.map(|(file, number)| format!("{file}:{number}"))
        });
        let expected = [None, Some("a.js:7"), Some("a.js:7"), Some("a.js:8")];
        assert_eq!(lines, expected.map(|line| line.map(str::to_owned)));
    }

    #[test]
    fn a_file_that_is_cut_has_the_records_before() {
        let mut file = Written::new(false, 0);
        file.load(100, 0x1000, 16, 0, "first");
        let one = file.bytes.len();
        file.load(200, 0x2000, 16, 1, "second");
        for cut in 0..file.bytes.len() {
            let count = JitDump::of(&file.bytes[..cut]).map(|dump| dump.len());
            let expected = match cut {
                0..HEADER_BYTES => Err(NotAJitDump("it is shorter than its header")),
                _ => Ok(usize::from(cut >= one)),
            };
            assert_eq!(count, expected, "{cut}");
        }
        let mut other = file.bytes.clone();
        other[4] = 2;
        assert_eq!(JitDump::of(&other).map(|_| ()), Err(NotAJitDump("its version is not 1")));
        other[0] = 0;
        let error = JitDump::of(&other).map(|_| ()).expect_err("no jitdump");
        assert_eq!(error.to_string(), "is no jitdump: it does not begin with JiTD");
    }

    proptest! {
        /// Beside a list that is looked at from its end.
        #[test]
        fn the_last_code_before_a_time_counts(
            all in prop::collection::vec((0u64..20, 0u64..30, 1u64..9), 0..20),
            asked in prop::collection::vec((0u64..40, 0u64..25), 0..20),
        ) {
            let mut file = Written::new(false, 0);
            for (number, (time, address, bytes)) in (0u64..).zip(&all) {
                file.load(*time, *address, *bytes, number, &number.to_string());
            }
            let mut dump = JitDump::of(&file.bytes).expect("a jitdump");
            let mut sorted: Vec<_> = (0u64..).zip(&all).collect();
            sorted.sort_by_key(|(_, of)| of.0);
            for (address, time) in asked {
                let covers = |(_, of): &&(u64, &(u64, u64, u64))| {
                    of.0 <= time && (of.1..of.1 + of.2).contains(&address)
                };
                let expected = sorted.iter().rev().find(covers);
                let expected = expected.map(|(number, of)| format!("{number}+{}", address - of.1));
                prop_assert_eq!(name(&mut dump, address, Some(time)), expected);
            }
        }

        #[test]
        fn any_bytes_after_the_header_are_read(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            address: u64,
        ) {
            let mut file = Written::new(false, 0).bytes;
            file.extend(bytes);
            let _ = JitDump::of(&file).expect("a header").at(address, None);
        }
    }
}
