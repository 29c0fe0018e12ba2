// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Number of instructions executed from one place in the code to another: delta profiles, after algorithm
//! 1 of "Hardware-Assisted Instruction Profiling and Latency Detection" (Sharma and Dagenais, 2016), with
//! pairs of a begin and an end, never of two of a kind.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_intelpt::Block;
use lateralis_intelpt::flow::Event;
use lateralis_intelpt::image::Sections;

use super::{Follow, Moment, Recorded, Traced, intelpt, place_of};
use crate::places::{Line, Places};

/// Largest number of nested open begins.
const OPEN_MAX: usize = 1024;
/// Largest number of intervals that are kept.
const INTERVALS_MAX: usize = 1 << 24;

/// A place in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// An address.
    Address(u64),
    /// Offset in a function; 0 is its entry.
    Function(String, u64),
    /// A return of a function.
    Return(String),
    /// Every instruction with this mnemonic.
    Instruction(String),
}

/// A place, with its original text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The text.
    pub text: String,
    /// The place.
    pub place: Place,
}

impl Marker {
    /// Parses `0x401000`, `FUNCTION`, `FUNCTION+0x10`, `return:FUNCTION` or `insn:MNEMONIC`.
    ///
    /// # Errors
    /// Description of the syntax error.
    pub fn parse(text: &str) -> Result<Self, String> {
        let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let place = if let Some(name) = text.strip_prefix("insn:") {
            if !intelpt::is_mnemonic(name) {
                return Err(format!("{name} is no instruction of x86"));
            }
            Place::Instruction(name.to_ascii_lowercase())
        } else if let Some(name) = text.strip_prefix("return:") {
            Place::Return(name.to_owned())
        } else if let Some(digits) = text.strip_prefix("0x") {
            Place::Address(hex(digits).ok_or("no address")?)
        } else if let Some((name, digits)) = text.rsplit_once("+0x")
            && let Some(offset) = hex(digits)
        {
            Place::Function(name.to_owned(), offset)
        } else {
            Place::Function(text.to_owned(), 0)
        };
        match &place {
            Place::Function(name, _) | Place::Return(name) if name.is_empty() => {
                Err("no name of a function".to_owned())
            }
            _ => Ok(Self { text: text.to_owned(), place }),
        }
    }

    fn is_at(&self, places: &mut Places<'_>, pid: u32, ip: u64, mnemonic: &str) -> bool {
        let mut is_of = |name: &String| {
            let function = places.function_at(pid, ip, place_of(ip));
            places.name_of(function).is_some_and(|of| of == name)
        };
        match &self.place {
            Place::Address(address) => *address == ip,
            Place::Instruction(name) => name == mnemonic,
            Place::Return(name) => mnemonic == "ret" && is_of(name),
            Place::Function(name, offset) => {
                is_of(name) && places.offset_at(pid, ip, place_of(ip)) == Some(*offset)
            }
        }
    }
}

/// Begin that an end belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// The first since the last end.
    First,
    /// The last one.
    Last,
    /// The last one without an end: nested pairs.
    Innermost,
}

/// An interval from a begin to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Instructions retired after the begin, up to and including the end.
    pub instructions: u64,
    /// Index of the thread or CPU, in the order of the recording.
    pub part: usize,
    /// Number of the instruction of the begin in the thread.
    pub begin: u64,
    /// Address of the beginning.
    pub begin_address: u64,
    /// Address of the end.
    pub end_address: u64,
    /// Whether untraced code, as in the kernel, was executed as well.
    pub left: bool,
    /// Nanoseconds from begin to end; `None` if unknown.
    pub nanos: Option<u64>,
    /// Largest error of that; `None`: unbounded.
    pub error_nanos: Option<u64>,
}

/// Result of the search.
#[derive(Debug, Clone, Default)]
pub struct Deltas {
    /// In the order of their ends.
    pub intervals: Vec<Interval>,
    /// Number of intervals beyond [`INTERVALS_MAX`].
    pub not_kept: u64,
    /// Number of begins cut off by a gap: their length is unknown.
    pub void: u64,
    /// Number of begins without an end.
    pub open: u64,
    /// Number of ends without a begin.
    pub orphans: u64,
    /// Number of executions of the begin, and of the end.
    pub hits: (u64, u64),
}

/// Begins and ends in a block: number of the instruction, whether it is a begin, whether an end, and its
/// address.
type Hits = Vec<(u32, bool, bool, u64)>;

/// A begin whose end has not come.
struct Open {
    /// Number of the instruction.
    at: u64,
    address: u64,
    time: Moment,
    /// Whether tracing has ended since.
    left: bool,
}

struct Watching<'m> {
    from: &'m Marker,
    to: &'m Marker,
    pairing: Pairing,
    /// Number of threads that have begun.
    begun: usize,
    pid: u32,
    /// By first address, mode and number of instructions of a block.
    hits: HashMap<(u64, u8, u32), Hits, RandomState>,
    executed: u64,
    open: Vec<Open>,
    deltas: Deltas,
}

/// Finds all intervals from one place to another, separately for each thread.
///
/// Cost: a lookup for each block. Memory: proportional to blocks and intervals.
pub fn deltas(
    recorded: &mut Recorded<'_>,
    (from, to): (&Marker, &Marker),
    pairing: Pairing,
) -> Deltas {
    let mut watching = Watching {
        from,
        to,
        pairing,
        begun: 0,
        pid: 0,
        hits: HashMap::default(),
        executed: 0,
        open: Vec::new(),
        deltas: Deltas::default(),
    };
    recorded.follow(&mut watching);
    watching.ends();
    watching.deltas
}

impl Watching<'_> {
    fn ends(&mut self) {
        self.deltas.open += self.open.len() as u64;
        self.open.clear();
    }

    fn begin(&mut self, at: u64, address: u64, time: Moment) {
        self.deltas.hits.0 += 1;
        match self.pairing {
            Pairing::First if !self.open.is_empty() => return,
            Pairing::First | Pairing::Innermost => {}
            Pairing::Last => self.open.clear(),
        }
        if self.open.len() < OPEN_MAX {
            self.open.push(Open { at, address, time, left: false });
        }
    }

    fn end(&mut self, at: u64, end_address: u64, time: Moment) {
        self.deltas.hits.1 += 1;
        let Some(open) = self.open.pop() else {
            self.deltas.orphans += 1;
            return;
        };
        if self.deltas.intervals.len() >= INTERVALS_MAX {
            self.deltas.not_kept += 1;
            return;
        }
        let both = open.time.zip(time);
        let error = both.and_then(|(begin, end)| begin.error_nanos.zip(end.error_nanos));
        self.deltas.intervals.push(Interval {
            instructions: at - open.at,
            part: self.begun.saturating_sub(1),
            begin: open.at,
            begin_address: open.address,
            end_address,
            left: open.left,
            nanos: both.map(|(begin, end)| end.nanos.saturating_sub(begin.nanos)),
            error_nanos: error.map(|(begin, end)| begin.saturating_add(end)),
        });
    }
}

impl Follow for Watching<'_> {
    fn begins(&mut self, _: &mut Places<'_>, traced: &Traced) {
        self.ends();
        self.begun += 1;
        if self.pid != traced.pid {
            self.hits.clear();
        }
        self.pid = traced.pid;
        self.executed = 0;
    }

    fn block(&mut self, places: &mut Places<'_>, code: &Sections<'_>, block: &Block, time: Moment) {
        let (pid, from, to) = (self.pid, self.from, self.to);
        let key = (block.ip, block.mode as u8, block.count);
        let hits = self.hits.entry(key).or_insert_with(|| {
            let mut hits = Hits::new();
            let mut number = 0;
            intelpt::instructions(code, block, |ip, instruction| {
                let mnemonic = intelpt::mnemonic(instruction);
                let begins = from.is_at(places, pid, ip, &mnemonic);
                let ends = to.is_at(places, pid, ip, &mnemonic);
                number += 1;
                if begins || ends {
                    hits.push((number, begins, ends, ip));
                }
            });
            hits
        });
        if !hits.is_empty() {
            // A place can be both: then it ends the open interval, and begins another.
            for (number, begins, ends, ip) in hits.clone() {
                let at = self.executed + u64::from(number);
                if ends {
                    self.end(at, ip, time);
                }
                if begins {
                    self.begin(at, ip, time);
                }
            }
        }
        self.executed += u64::from(block.count);
    }

    fn event(&mut self, _: &mut Places<'_>, _: u64, event: Event, _: Moment) {
        match event {
            Event::Gap(_) => {
                self.deltas.void += self.open.len() as u64;
                self.open.clear();
            }
            Event::Disabled(_) => self.open.iter_mut().for_each(|of| of.left = true),
            _ => {}
        }
    }
}

/// Consecutively executed instructions of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The function, by its number.
    pub function: u32,
    /// Address of the first instruction.
    pub address: u64,
    /// Source line of that address.
    pub line: Option<Line>,
    /// Number of instructions.
    pub instructions: u64,
}

/// Largest number of stretches kept for an interval; the first ones are kept.
pub const STRETCHES_MAX: usize = 4096;

struct Stretches<'w> {
    wanted: &'w [Interval],
    found: Vec<Vec<Stretch>>,
    begun: usize,
    pid: u32,
    executed: u64,
}

/// Functions executed in some intervals, in order.
///
/// Cost: everything is decoded once more.
pub fn stretches(recorded: &mut Recorded<'_>, wanted: &[Interval]) -> Vec<Vec<Stretch>> {
    let found = vec![Vec::new(); wanted.len()];
    let mut all = Stretches { wanted, found, begun: 0, pid: 0, executed: 0 };
    recorded.follow(&mut all);
    all.found
}

impl Follow for Stretches<'_> {
    fn begins(&mut self, _: &mut Places<'_>, traced: &Traced) {
        self.begun += 1;
        (self.pid, self.executed) = (traced.pid, 0);
    }

    fn block(&mut self, places: &mut Places<'_>, code: &Sections<'_>, block: &Block, _: Moment) {
        let (begin, part) = (self.executed, self.begun.saturating_sub(1));
        self.executed += u64::from(block.count);
        // Instructions after the begin are counted, up to and including the end.
        let touches = |of: &Interval| {
            of.part == part && of.begin < self.executed && of.begin + of.instructions > begin
        };
        for (place, of) in self.wanted.iter().enumerate().filter(|(_, of)| touches(of)) {
            let (mut number, mut first, mut count) = (begin, None, 0);
            intelpt::instructions(code, block, |address, _| {
                number += 1;
                if number > of.begin && number <= of.begin + of.instructions {
                    first.get_or_insert(address);
                    count += 1;
                }
            });
            let Some(address) = first else { continue };
            let frames = places.frames_at(self.pid, address, place_of(address));
            let Some(frame) = frames.last() else { continue };
            let found = &mut self.found[place];
            if let Some(last) = found.last_mut().filter(|last| last.function == frame.function) {
                last.instructions += count;
            } else if found.len() < STRETCHES_MAX {
                let (function, line) = (frame.function, frame.line);
                found.push(Stretch { function, address, line, instructions: count });
            }
        }
    }

    fn event(&mut self, _: &mut Places<'_>, _: u64, _: Event, _: Moment) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_addresses_functions_and_instructions() {
        let place = |text: &str| Marker::parse(text).map(|marker| marker.place);
        assert_eq!(place("0x401000"), Ok(Place::Address(0x40_1000)));
        assert_eq!(place("main"), Ok(Place::Function("main".into(), 0)));
        assert_eq!(place("main+0x1f"), Ok(Place::Function("main".into(), 0x1f)));
        assert_eq!(place("operator+"), Ok(Place::Function("operator+".into(), 0)));
        assert_eq!(place("return:main"), Ok(Place::Return("main".into())));
        assert_eq!(place("insn:CLI"), Ok(Place::Instruction("cli".into())));
        for wrong in ["insn:clii", "0xyz", "", "return:"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }
}
