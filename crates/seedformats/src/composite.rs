// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Composite: the CSV of its tracer (seed 001), a line an event.
//!
//! ```text
//! timestamp,cpuid,thd_id, nargs[,arg...][,"format"]
//! ```
//!
//! The original has no header and omits the format string, because that may contain commas; here a
//! first line that does not begin with a number is a header, and a column after the arguments is
//! the format string or a formatted text, quoted if necessary ([RFC 4180]).
//!
//! | in the model | from |
//! |---|---|
//! | stream `cpu N` | `cpuid` |
//! | `cpu_id`, `tid`, writer | `cpuid`, `thd_id`; there are no processes: the pid is 0 |
//! | class | one for each format string, named after it; `event` without |
//! | `args` | the arguments: whole numbers, or texts if one of them is none |
//! | `message` | the format string with the arguments put in |
//!
//! [RFC 4180]: https://www.rfc-editor.org/rfc/rfc4180

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use lateralis_model::{
    Base, Builder, Clock, DamageReason, EventClass, FieldClass, Full, MemoryTrace, StreamClass,
    StreamIndex, Writer,
};
use lateralis_units::CpuId;

use crate::Error;
use crate::damages::{self, Damages};
use crate::printf;

/// Format strings with a class of their own, and processors.
const CLASSES: usize = 1024;
const CPUS: usize = 4096;

/// Columns of one line.
const COLUMNS: usize = 4096;

/// What the file does not say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Time stamps per second. Without it they are taken for nanoseconds, and a
    /// remark says so.
    pub frequency_hz: Option<u64>,
}

/// A line as its columns.
struct Row<'a> {
    columns: Vec<Cow<'a, [u8]>>,
    /// Bytes, line end included.
    length: usize,
    /// Whether a line end follows.
    ended: bool,
    /// Whether quotes are closed and there are not too many columns.
    whole: bool,
}

/// The line that begins `bytes`.
fn row(bytes: &[u8]) -> Row<'_> {
    let (mut columns, mut at) = (Vec::new(), 0);
    let plain_end = |from: usize| {
        let end = bytes[from..].iter().position(|byte| matches!(byte, b',' | b'\n'));
        end.map_or(bytes.len(), |length| from + length)
    };
    let mut closed = true;
    let whole = loop {
        let blank = bytes[at..].iter().take_while(|byte| **byte == b' ').count();
        if bytes.get(at + blank) == Some(&b'"') {
            let (text, end) = quoted(&bytes[at + blank + 1..]);
            closed &= end.is_some();
            columns.push(text);
            at = plain_end(end.map_or(bytes.len(), |end| at + blank + 1 + end));
        } else {
            let end = plain_end(at);
            columns.push(Cow::Borrowed(bytes[at..end].trim_ascii()));
            at = end;
        }
        let whole = closed && columns.len() < COLUMNS;
        if bytes.get(at) != Some(&b',') || !whole {
            break whole;
        }
        at += 1;
    };
    // Of too many columns the rest of the line is skipped. What was taken for a
    // text without an end may be the rest of the file: that begins anew at the
    // next line, which can happen once only.
    let from = if closed { at } else { 0 };
    if !whole {
        let line_end = bytes[from..].iter().position(|byte| *byte == b'\n');
        at = line_end.map_or(bytes.len(), |length| from + length);
    }
    let ended = bytes.get(at) == Some(&b'\n');
    Row { columns, length: at + usize::from(ended), ended, whole }
}

/// The text up to its closing quote, and the byte after that.
fn quoted(bytes: &[u8]) -> (Cow<'_, [u8]>, Option<usize>) {
    let mut text = Cow::Borrowed(&bytes[..0]);
    let mut at = 0;
    while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'"') {
        let piece = &bytes[at..at + length];
        let again = bytes.get(at + length + 1) == Some(&b'"');
        if !again && at == 0 {
            return (Cow::Borrowed(piece), Some(length + 1));
        }
        text.to_mut().extend_from_slice(piece);
        if !again {
            return (text, Some(at + length + 1));
        }
        text.to_mut().push(b'"');
        at += length + 2;
    }
    (text, None)
}

fn number<T: std::str::FromStr>(column: &[u8]) -> Option<T> {
    std::str::from_utf8(column).ok()?.parse().ok()
}

/// The fixed columns, if the row has them.
struct Fixed {
    time: u64,
    cpu: u32,
    thread: u32,
    arguments: usize,
}

impl Fixed {
    fn of(row: &Row<'_>) -> Option<Self> {
        let [time, cpu, thread, arguments, rest @ ..] = row.columns.as_slice() else {
            return None;
        };
        let fixed = Self {
            time: number(time)?,
            cpu: number(cpu)?,
            thread: number(thread)?,
            arguments: number(arguments)?,
        };
        let text = rest.len().checked_sub(fixed.arguments)?;
        (row.whole && text <= 1).then_some(fixed)
    }
}

fn is_header(row: &Row<'_>) -> bool {
    let named = |index: usize, name: &str| {
        row.columns.get(index).is_some_and(|column| column.eq_ignore_ascii_case(name.as_bytes()))
    };
    named(0, "timestamp") && named(1, "cpuid")
}

/// Whether these first bytes (4 KiB are enough) are those of such a file.
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    let first = &first[..first.len().min(4096)];
    let line = row(first);
    if line.ended && (is_header(&line) || Fixed::of(&line).is_some()) {
        return true;
    }
    // The beginning of the first line may be cut off: it is no line of names then.
    if !first.first().is_some_and(|byte| byte.is_ascii_digit() || b", -".contains(byte)) {
        return false;
    }
    let (mut at, mut good, mut bad) = (0, 0, 0);
    while at < first.len() {
        let line = row(&first[at..]);
        match line.ended {
            true if Fixed::of(&line).is_some() => good += 1,
            true => bad += 1,
            false => {}
        }
        at += line.length;
    }
    good > bad
}

/// Reads a file whose time stamps are nanoseconds or of unknown frequency.
///
/// # Errors
/// As [`read_with`].
pub fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Result<MemoryTrace, Error> {
    read_with(name, bytes, limit_bytes, &Options::default())
}

/// Reads a file. Lines that are not as they should be become damage.
///
/// Cost: one pass.
///
/// # Errors
/// If not one line is as it should be.
pub fn read_with(
    name: &str,
    bytes: &[u8],
    limit_bytes: u64,
    options: &Options,
) -> Result<MemoryTrace, Error> {
    let mut recorder = Recorder::new(limit_bytes, options);
    let mut damages = Damages::new(name);
    let (mut at, mut header) = (0, false);
    while at < bytes.len() {
        let row = row(&bytes[at..]);
        let end = at + row.length;
        match Fixed::of(&row) {
            // The last number may have lost digits.
            Some(_) if !row.ended && at > 0 => {
                damages.add(at, end, DamageReason::Truncated { missing_bytes: None });
            }
            Some(fixed) => match recorder.event(&fixed, &row.columns[4..]) {
                Ok(true) => {}
                Ok(false) => {
                    let rule = "a trace is of 4096 processors at most";
                    damages.add(at, end, DamageReason::BadValue { rule });
                }
                Err(Full) => {
                    recorder.builder.remark(damages::full(name, at));
                    break;
                }
            },
            None if at == 0 && is_header(&row) => header = true,
            None if row.whole && row.columns.len() == 1 && row.columns[0].is_empty() => {}
            None if !row.ended => {
                damages.add(at, end, DamageReason::Truncated { missing_bytes: None });
            }
            None => {
                let rule = "a line is a time, a processor, a thread, a count and so many arguments";
                damages.add(at, end, DamageReason::BadValue { rule });
            }
        }
        at = end;
    }
    if recorder.builder.is_empty() && !header && at == bytes.len() {
        let advice = "give lines of the form timestamp,cpuid,thd_id, nargs[,arg...]";
        return Err(Error::new("no Composite trace", name, advice));
    }
    damages.finish(&mut recorder.builder);
    Ok(recorder.builder.finish())
}

struct Recorder {
    builder: Builder,
    stream_class: u32,
    streams: BTreeMap<u32, StreamIndex>,
    /// By format string and whether arguments are texts.
    classes: HashMap<(Option<String>, bool), u32>,
}

impl Recorder {
    fn new(limit_bytes: u64, options: &Options) -> Self {
        let mut builder = MemoryTrace::builder("Composite CSV", limit_bytes);
        let frequency = options.frequency_hz.unwrap_or(1_000_000_000);
        if options.frequency_hz.is_none() {
            builder.remark(
                "the file does not say how fast its clock runs: time stamps are shown as \
                 nanoseconds",
            );
        }
        let clock = builder.clock(Clock::new("tsc", frequency, 0, 0));
        let context = ["cpu_id", "tid"].map(|name| (name, FieldClass::unsigned(32, Base::Decimal)));
        let stream_class = builder.stream_class(StreamClass {
            name: Some("cpu".to_owned()),
            clock: Some(clock),
            common_context: Some(FieldClass::structure(context)),
            ..StreamClass::default()
        });
        Self { builder, stream_class, streams: BTreeMap::new(), classes: HashMap::new() }
    }

    fn class(&mut self, format: Option<&str>, texts: bool) -> u32 {
        let has_message = format.is_some();
        // Too many: they share one, whose name says nothing.
        let format = if self.classes.len() < CLASSES { format } else { format.map(|_| "event") };
        let key = (format.map(str::to_owned), texts);
        if let Some(known) = self.classes.get(&key) {
            return *known;
        }
        let element = if texts { FieldClass::text() } else { FieldClass::u64() };
        let mut fields = vec![("args", FieldClass::array(element, None))];
        if has_message {
            fields.push(("message", FieldClass::text()));
        }
        let class = self.builder.event_class(
            self.stream_class,
            EventClass {
                name: format.map_or("event", str::trim_ascii).to_owned(),
                payload: Some(FieldClass::structure(fields)),
                ..EventClass::default()
            },
        );
        self.classes.insert(key, class);
        class
    }

    /// False if there are too many processors.
    fn event(&mut self, fixed: &Fixed, rest: &[Cow<'_, [u8]>]) -> Result<bool, Full> {
        let (arguments, format) = rest.split_at(fixed.arguments);
        let format = format.first().map(|format| String::from_utf8_lossy(format));
        let numbers: Option<Vec<u64>> = arguments.iter().map(|column| number(column)).collect();
        let stream = match self.streams.get(&fixed.cpu) {
            Some(stream) => *stream,
            None if self.streams.len() >= CPUS => return Ok(false),
            None => {
                let (name, cpu) = (format!("cpu {}", fixed.cpu), Some(CpuId(fixed.cpu)));
                let stream = self.builder.stream(self.stream_class, &name, cpu);
                self.streams.insert(fixed.cpu, stream);
                stream
            }
        };
        let class = self.class(format.as_deref(), numbers.is_none());
        let writer = Some(Writer { pid: 0, tid: fixed.thread });
        let pending = self.builder.event(stream, class, fixed.time, writer);
        let pending = pending.u64(fixed.cpu.into()).u64(fixed.thread.into());
        let pending = pending.array(arguments.len() as u32, |pending| match &numbers {
            Some(numbers) => numbers.iter().fold(pending, |pending, number| pending.u64(*number)),
            None => arguments.iter().fold(pending, |pending, text| pending.bytes(text)),
        });
        let pending = match (&format, &numbers) {
            (Some(format), Some(numbers)) => pending.text(&printf::format(format, numbers)),
            (Some(text), None) => pending.text(text),
            (None, _) => pending,
        };
        pending.end()?;
        Ok(true)
    }
}
