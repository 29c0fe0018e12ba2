// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The text that the console, bfscope and files carry.
//!
//! ```text
//! # Start <t0> Duration <cycles> Stop <time>
//! # Min_timestamp <time>
//! # Core <n> LOG DUMP =======
//! # Offset <core> <signed>
//! # DCB <core> <address, hexadecimal> <name>
//! <core> <time stamp> <raw, hexadecimal>
//! ```
//!
//! Lines come in any order, and headers once more with every flush.

use lateralis_model::{DamageReason, MemoryTrace};

use super::recorder::{Header, Recorder};
use super::{Options, signed_offset};
use crate::Error;
use crate::damages::{self, Damages};

/// Events that a full buffer holds: 20000 slots today, 8000 before 2013, two of
/// which are never dumped.
const FULL_BUFFERS: [u32; 2] = [19_998, 7_998];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Line<'a> {
    Blank,
    Start {
        start: u64,
        duration: Option<u64>,
        stop: Option<u64>,
    },
    MinTimestamp(u64),
    Core(u32),
    Offset(u32, i64),
    Dcb(u32, u64, &'a str),
    /// Of `#` lines that say nothing known.
    Other,
    Event {
        core: u32,
        timestamp: u64,
        raw: u64,
    },
    Bad,
}

/// Reads a line, which may have lost bytes of any kind.
fn parse(line: &[u8]) -> Line<'_> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Line::Blank;
    }
    // bfscope sends the length of a dump before it, as digits.
    let text = match line.iter().position(|&byte| byte == b'#') {
        Some(at) if at <= 9 && line[..at].iter().all(|b| b.is_ascii_digit() || *b == b' ') => {
            &line[at..]
        }
        _ => line,
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return if text[0] == b'#' { Line::Other } else { Line::Bad };
    };
    match text.strip_prefix('#') {
        Some(header) => parse_header(header).unwrap_or(Line::Other),
        None => parse_event(text).unwrap_or(Line::Bad),
    }
}

fn parse_header(text: &str) -> Option<Line<'_>> {
    let mut words = text.split_ascii_whitespace();
    match words.next()? {
        "Start" => {
            let start = words.next()?.parse().ok()?;
            let mut after = |name: &str| {
                words.next().filter(|word| *word == name)?;
                words.next()?.parse().ok()
            };
            Some(Line::Start { start, duration: after("Duration"), stop: after("Stop") })
        }
        "Min_timestamp" => Some(Line::MinTimestamp(words.next()?.parse().ok()?)),
        "Core" => {
            let core = words.next()?.parse().ok()?;
            words.next().filter(|word| *word == "LOG")?;
            Some(Line::Core(core))
        }
        "Offset" => {
            let core = words.next()?.parse().ok()?;
            let offset = words.next()?;
            let offset = match offset.parse::<u64>() {
                Ok(printed) => signed_offset(printed),
                Err(_) => offset.parse().ok()?,
            };
            Some(Line::Offset(core, offset))
        }
        "DCB" => {
            let core = words.next()?.parse().ok()?;
            let dcb = words.next()?;
            let address = u64::from_str_radix(dcb.trim_start_matches("0x"), 16).ok()?;
            let name = text.split_once(dcb).map_or("", |(_, name)| name.trim());
            Some(Line::Dcb(core, address, name))
        }
        _ => None,
    }
}

fn parse_event(text: &str) -> Option<Line<'_>> {
    let mut words = text.split_ascii_whitespace();
    let (core, timestamp, raw) = (words.next()?, words.next()?, words.next()?);
    let digits = raw.bytes().all(|byte| byte.is_ascii_hexdigit());
    if words.next().is_some() || !digits {
        return None;
    }
    Some(Line::Event {
        core: core.parse().ok()?,
        timestamp: timestamp.parse().ok()?,
        raw: u64::from_str_radix(raw, 16).ok()?,
    })
}

/// A line with its place.
struct Placed<'a> {
    begin: usize,
    end: usize,
    /// Whether a line end follows.
    ended: bool,
    line: Line<'a>,
}

/// All lines; a zero byte ends one, too.
fn lines(bytes: &[u8]) -> impl Iterator<Item = Placed<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let length = rest.iter().position(|byte| matches!(byte, b'\n' | 0));
        let end = at + length.map_or(rest.len(), |length| length + 1);
        let line = parse(&rest[..length.unwrap_or(rest.len())]);
        let placed = Placed { begin: at, end, ended: length.is_some(), line };
        at = end;
        Some(placed)
    })
}

/// Whether these first bytes (4 KiB are enough) are those of a dump.
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    let (mut events, mut wide, mut others, mut known) = (0, 0, 0, false);
    for placed in lines(&first[..first.len().min(4096)]) {
        match placed.line {
            Line::Start { .. } | Line::Core(_) | Line::MinTimestamp(_) => known = true,
            // The last line may be cut, and the console may have mixed in others.
            Line::Bad if placed.ended => others += 1,
            Line::Event { raw, .. } if placed.ended => {
                events += 1;
                wide += usize::from(raw > u64::from(u32::MAX));
            }
            _ => {}
        }
    }
    // Three numbers are in many texts, words of an event with its subsystem are not.
    match others {
        0 => known || events > 0,
        _ => events >= others && (known || wide > others),
    }
}

/// Reads a dump with the names of before 2013 and without a frequency.
///
/// # Errors
/// As [`read_with`].
pub fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Result<MemoryTrace, Error> {
    read_with(name, bytes, limit_bytes, &Options::default())
}

/// Reads a dump.
///
/// Cost: two passes, because offsets may follow the events they belong to.
///
/// # Errors
/// If no line is one of a dump. Lines that are not become damage.
pub fn read_with(
    name: &str,
    bytes: &[u8],
    limit_bytes: u64,
    options: &Options,
) -> Result<MemoryTrace, Error> {
    let Some(plan) = Plan::new(bytes) else {
        let advice = "give a text dump of Barrelfish's trace buffers";
        return Err(Error::new("no Barrelfish dump", name, advice));
    };
    let mut recorder = Recorder::new(&plan.header, options, limit_bytes);
    if plan.offsets_differ {
        recorder.builder.remark(format!("{name}: offsets of a core differ: the last ones count"));
    }
    let mut damages = Damages::new(name);
    let mut starts = plan.header.start;
    let mut count = 0;
    let mut counted_core = None;
    for Placed { begin, end, ended, line } in lines(bytes) {
        match line {
            Line::Start { start, .. } => starts = Some(start),
            Line::Core(core) => {
                recorder.count(&mut counted_core, &mut count, Some(core));
            }
            // The last number may have lost digits, unless it has as many as fit.
            Line::Event { raw, .. } if !ended && raw >> 60 == 0 => {
                damages.add(begin, end, DamageReason::Truncated { missing_bytes: None });
            }
            Line::Event { core, timestamp, raw } => {
                recorder.count(&mut counted_core, &mut count, Some(core));
                count += 1;
                let Some(stream) = recorder.stream(core) else {
                    let rule = "a dump is of 4096 cores at most";
                    damages.add(begin, end, DamageReason::BadValue { rule });
                    continue;
                };
                let time = plan.time(core, timestamp, starts);
                if recorder.event(stream, core, time, raw).is_err() {
                    recorder.builder.remark(damages::full(name, begin));
                    break;
                }
            }
            Line::Bad if !ended => {
                damages.add(begin, end, DamageReason::Truncated { missing_bytes: None });
            }
            Line::Bad => {
                let rule = "a line is a core, a time stamp and an event";
                damages.add(begin, end, DamageReason::BadValue { rule });
            }
            _ => {}
        }
    }
    recorder.count(&mut counted_core, &mut count, None);
    damages.finish(&mut recorder.builder);
    Ok(recorder.builder.finish())
}

impl Recorder {
    /// Ends the run of events of a core where another begins, and notes the loss
    /// if its buffer was full.
    fn count(&mut self, current: &mut Option<u32>, count: &mut u32, core: Option<u32>) {
        if *current == core {
            return;
        }
        if let Some(core) = current.filter(|_| FULL_BUFFERS.contains(count)) {
            self.full_buffer(core);
        }
        (*current, *count) = (core, 0);
    }
}

/// What the first pass finds.
struct Plan {
    header: Header,
    /// Times count from the start of tracing.
    relative: bool,
    offsets_differ: bool,
}

impl Plan {
    fn new(bytes: &[u8]) -> Option<Self> {
        let mut plan = Self { header: Header::default(), relative: false, offsets_differ: false };
        let header = &mut plan.header;
        let (mut is_dump, mut events) = (false, false);
        for placed in lines(bytes) {
            match placed.line {
                Line::Start { start, duration, stop } => {
                    is_dump = true;
                    if header.start.is_none() {
                        header.start = Some(start);
                        (header.duration, header.stop) = (duration, stop);
                    }
                }
                Line::MinTimestamp(time) => {
                    is_dump = true;
                    // All ones: the buffers were empty.
                    let earliest = header.min_timestamp.map_or(time, |old| old.min(time));
                    header.min_timestamp = Some(earliest);
                }
                Line::Core(_) => is_dump = true,
                Line::Offset(core, offset) => {
                    let old = header.offsets.insert(core, offset);
                    plan.offsets_differ |= old.is_some_and(|old| old != offset);
                }
                Line::Dcb(core, dcb, name) => {
                    header.dcbs.insert((core, dcb), name.to_owned());
                }
                Line::Event { .. } => events = true,
                _ => {}
            }
        }
        if !is_dump && !events {
            return None;
        }
        plan.relative = plan.header.start.is_some() && plan.header.min_timestamp.is_none();
        let mut start = plan.header.start;
        for placed in lines(bytes) {
            match placed.line {
                Line::Start { start: new, .. } => start = Some(new),
                Line::Event { core, timestamp, raw } => {
                    let time = plan.time(core, timestamp, start);
                    plan.header.see(time, raw);
                }
                _ => {}
            }
        }
        Some(plan)
    }

    fn time(&self, core: u32, timestamp: u64, start: Option<u64>) -> i128 {
        let time = self.header.time(core, timestamp);
        match (self.relative, start, self.header.start) {
            (true, Some(now), Some(first)) => time + i128::from(now) - i128::from(first),
            _ => time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_known() {
        let cases: [(&[u8], Line<'_>); 12] = [
            (b"  ", Line::Blank),
            (
                b"# Start 5 Duration 0 Stop 18446744073709551615",
                Line::Start { start: 5, duration: Some(0), stop: Some(u64::MAX) },
            ),
            (b"00000365# Start 5", Line::Start { start: 5, duration: None, stop: None }),
            (b"# Min_timestamp 9", Line::MinTimestamp(9)),
            (b"# Core 3 LOG DUMP ====", Line::Core(3)),
            (b"# Offset 1 9223372036854775303", Line::Offset(1, -505)),
            (b"# Offset 1 -505", Line::Offset(1, -505)),
            (b"# DCB 2 ffffff8002656c00 my app", Line::Dcb(2, 0xffff_ff80_0265_6c00, "my app")),
            (b"# \xff", Line::Other),
            (
                b"0 629793 ffffcccc02656c00",
                Line::Event { core: 0, timestamp: 629_793, raw: 0xffff_cccc_0265_6c00 },
            ),
            (b"0 629793", Line::Bad),
            (b"0 1 +1", Line::Bad),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line), expected, "{}", String::from_utf8_lossy(line));
        }
    }
}
