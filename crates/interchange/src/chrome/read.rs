// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From Chrome JSON to the model.

mod events;
mod meaning;
mod samples;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use lateralis_model::role::{STACK_FUNCTIONS, STACK_IMAGES};
use lateralis_model::{
    Builder, Clock, Damage, DamageReason, EnvValue, Interval, MemoryTrace, Writer,
};

use serde_json::Value;

use super::event::{Raw, is_json, nanos};
use super::scan::{Fault, skip_blanks, skip_string, skip_value};
use super::{lenient, scan};
use crate::Error;
use crate::dynamic::{Dyn, Dynamic, Ends, Lane, Named, Names, Sink, Survey};
use meaning::Meaning;

/// Metadata events and members of the outer object that are kept.
const MAX_NOTES: usize = 10_000;
/// Bytes that decide whether it is such a file.
const SNIFF_BYTES: usize = 4096;
/// Longest such text, in bytes.
const MAX_NOTE_BYTES: usize = 64 << 10;
/// Kinds of damage that are listed individually.
const MAX_DAMAGE: usize = 10_000;
/// Members of an object that are looked at to see what it is.
const MAX_PEEKED: usize = 1000;
/// Longest believable duration, 100 years: what is longer comes of arithmetic that went wrong.
const MAX_NANOS: i64 = 100 * 366 * 86_400 * 1_000_000_000;

/// Whether a file looks like Chrome JSON, by its first bytes (4 KiB are enough).
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    let first = &first[..first.len().min(SNIFF_BYTES)];
    let bytes = first.strip_prefix(scan::BOM).unwrap_or(first);
    let at = skip_blanks(bytes, 0);
    let has = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    match bytes.get(at) {
        Some(b'[') => {
            let next = skip_blanks(bytes, at + 1);
            match bytes.get(next) {
                Some(b'{' | b'[' | b',') => has(b"\"ph\""),
                // Nothing was recorded.
                Some(b']') => skip_blanks(bytes, next + 1) == bytes.len(),
                _ => false,
            }
        }
        Some(b'{') => {
            has(b"\"traceEvents\"")
                || (has(b"\"displayTimeUnit\"") && has(b"\"otherData\""))
                // Events without an array around them.
                || (has(b"\"ph\"") && has(b"\"pid\"") && (has(b"\"ts\"") || has(b"\"name\"")))
        }
        _ => false,
    }
}

/// Whether a file that begins so may be Chrome JSON whose events come late: [`has_events`]
/// of the whole of it decides.
#[must_use]
pub fn may_have_events(first: &[u8]) -> bool {
    let bytes = first.strip_prefix(scan::BOM).unwrap_or(first);
    let at = skip_blanks(bytes, 0);
    bytes.get(at) == Some(&b'{') && bytes.get(skip_blanks(bytes, at + 1)) == Some(&b'"')
}

/// Whether the object that a file is has a member `traceEvents`.
///
/// Cost: one step for each byte before it.
#[must_use]
pub fn has_events(bytes: &[u8]) -> bool {
    let start = if bytes.starts_with(scan::BOM) { scan::BOM.len() } else { 0 };
    peek(bytes, skip_blanks(bytes, start)) == Kind::Container
}

/// Reads a file called `name`, whose events may use `limit_bytes` of memory, and the order of ends
/// without names as much again.
///
/// Time is linear in the length of the file; it is walked twice, three times if ends have to be
/// named or documents have different origins of time.
///
/// # Errors
/// If there is no array of events in it, and no event.
pub fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Result<MemoryTrace, Error> {
    let mut builder = MemoryTrace::builder("Chrome JSON", limit_bytes);
    let mut survey = Survey::default();
    let mut walk = Walk::new(name, bytes, Known::default());
    walk.ends = Some(Ends::new(limit_bytes));
    walk.run(&mut survey);
    if (survey.events == 0 && !walk.damage.is_empty()) || !walk.has_events {
        return Err(Error {
            what: "no trace events",
            place: name.to_owned(),
            help: "expected an array of events or an object with \"traceEvents\"",
        });
    }
    let mut known = walk.know();
    if known.has_changed {
        survey = Survey::default();
        let mut again = Walk::new(name, bytes, known);
        again.run(&mut survey);
        known = again.known;
        known.names.rewind();
    }
    let clock = walk.clock(&known);
    walk.describe(&mut builder);
    let mut fill = survey.finish(builder, clock, meaning::attributes);
    Walk::new(name, bytes, known).run(&mut fill);
    Ok(fill.finish())
}

/// What the first walk finds out for those after it.
#[derive(Debug, Default)]
struct Known {
    names: Names,
    /// What the times of each document count from, in nanoseconds since 1970.
    bases: Vec<Option<i64>>,
    /// Whether events mean something else than the first walk took them for.
    has_changed: bool,
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Event,
    /// It holds events.
    Container,
    Other,
}

/// The kind of the object whose brace is at `at`, by the names of its members.
fn peek(bytes: &[u8], at: usize) -> Kind {
    if bytes.get(at) != Some(&b'{') {
        return Kind::Other;
    }
    let mut at = at + 1;
    for _ in 0..MAX_PEEKED {
        at = skip_blanks(bytes, at);
        while bytes.get(at) == Some(&b',') {
            at = skip_blanks(bytes, at + 1);
        }
        let Some((key, value)) = key(bytes, at) else { break };
        match key {
            b"ph" => return Kind::Event,
            b"traceEvents" if bytes.get(value) == Some(&b'[') => return Kind::Container,
            _ => (),
        }
        let Some(end) = end_of(bytes, value) else { break };
        at = end;
    }
    Kind::Other
}

/// The name of the member at `at` as it is written, and the first byte of its value.
fn key(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let end = skip_string(bytes, at).ok()?;
    let colon = skip_blanks(bytes, end);
    (bytes.get(colon) == Some(&b':'))
        .then(|| (&bytes[at + 1..end - 1], skip_blanks(bytes, colon + 1)))
}

/// First byte after a value; of a text with line feeds and the like, too.
fn end_of(bytes: &[u8], at: usize) -> Option<usize> {
    skip_value(bytes, at).or_else(|_| scan::skip_loose_value(bytes, at)).ok()
}

/// One walk over the file.
struct Walk<'a> {
    file: &'a str,
    bytes: &'a [u8],
    known: Known,
    /// In the first pass: edges of spans, some of which may have no name.
    ends: Option<Ends<crate::phases::Track>>,
    /// Whether there is an array of events, or an event.
    has_events: bool,
    /// Values that are side by side in the file.
    documents: usize,
    /// Members of outer objects that are no events.
    members: Vec<(Cow<'a, str>, &'a [u8])>,
    more_members: u64,
    /// What the documents say their times count from.
    bases: Vec<Option<i64>>,
    damage: Vec<Damage>,
    more_damage: u64,
    counts: Counts,
    processes: BTreeMap<u32, String>,
    threads: BTreeMap<u32, String>,
    /// Processes of threads, as events have them.
    groups: HashMap<u32, u32>,
    notes: Vec<(String, String)>,
    /// Numbers given to processes and threads that have texts for ids.
    ids: HashMap<String, u32>,
    /// Number of the next event.
    next: u64,
    /// When the event before happened.
    time: Option<i64>,
    /// Bytes that may still be looked at again to find the next event after a
    /// damaged one, so that the whole stays linear.
    again: usize,
}

/// Facts about a file that are reported as remarks.
#[derive(Debug, Default)]
struct Counts {
    finer: u64,
    timeless: u64,
    endless: u64,
    levelless: u64,
    unread_samples: u64,
    repaired: u64,
}

impl<'a> Walk<'a> {
    fn new(file: &'a str, bytes: &'a [u8], known: Known) -> Self {
        Self {
            file,
            bytes,
            known,
            ends: None,
            has_events: false,
            documents: 0,
            members: Vec::new(),
            more_members: 0,
            bases: Vec::new(),
            damage: Vec::new(),
            more_damage: 0,
            counts: Counts::default(),
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            groups: HashMap::new(),
            notes: Vec::new(),
            ids: HashMap::new(),
            next: 0,
            time: None,
            again: bytes.len().saturating_mul(8),
        }
    }

    fn damaged(&mut self, begin: usize, end: usize, reason: DamageReason) {
        if self.damage.len() >= MAX_DAMAGE {
            self.more_damage += 1;
            return;
        }
        self.damage.push(Damage {
            file: self.file.to_owned(),
            begin_bytes: begin as u64,
            end_bytes: end as u64,
            reason,
            interval: Interval::default(),
        });
    }

    /// Passes all events to `sink`. A file is one value, or several: rotated logs, joined traces of
    /// several processes, one event a line.
    fn run(&mut self, sink: &mut dyn Sink) {
        let bytes = self.bytes;
        let mut at = 0;
        let mut was_event = false;
        loop {
            while matches!(
                bytes.get(at),
                Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b'\0' | b'\x1e')
            ) {
                at += 1;
            }
            if bytes[at..].starts_with(scan::BOM) {
                at += scan::BOM.len();
                continue;
            }
            let is_event = match bytes.get(at) {
                None => return,
                // Brackets that were closed twice.
                Some(b']' | b'}') if self.documents > 0 => {
                    at += 1;
                    continue;
                }
                Some(b'[') => {
                    self.begin_document();
                    at = self.array(at + 1, sink);
                    false
                }
                Some(b'{') if peek(bytes, at) == Kind::Event => {
                    if !was_event {
                        self.begin_document();
                        self.has_events = true;
                    }
                    at = self.element(at, sink);
                    true
                }
                Some(b'{') => {
                    self.begin_document();
                    at = self.container(at, sink);
                    false
                }
                Some(_) => {
                    let rule = "only values of JSON can follow each other";
                    at = self.resume(at, DamageReason::BadValue { rule });
                    false
                }
            };
            was_event = is_event;
        }
    }

    fn begin_document(&mut self) {
        self.documents += 1;
        self.bases.push(None);
    }

    /// What the times of this document are moved by, so that they count from the same as those
    /// of the first.
    fn shift(&self) -> i64 {
        let base = |document: usize| self.known.bases.get(document).copied().flatten();
        match (base(0), base(self.documents.saturating_sub(1))) {
            (Some(first), Some(own)) => own.saturating_sub(first),
            _ => 0,
        }
    }

    /// The events of the array whose first element is after `at`; returns the first byte after it.
    fn array(&mut self, at: usize, sink: &mut dyn Sink) -> usize {
        self.has_events = true;
        let mut at = at;
        // Arrays in arrays are events all the same.
        let mut depth = 1;
        loop {
            at = skip_blanks(self.bytes, at);
            match self.bytes.get(at) {
                // An array without its end is allowed: the writer may have been killed.
                None => return at,
                Some(b']') => {
                    at += 1;
                    depth -= 1;
                    if depth == 0 {
                        return at;
                    }
                }
                Some(b'[') => {
                    at += 1;
                    depth += 1;
                }
                Some(b',') => at += 1,
                Some(b'{') => at = self.element(at, sink),
                Some(_) => {
                    let rule = "only objects are events";
                    at = self.resume(at, DamageReason::BadValue { rule });
                }
            }
        }
    }

    /// An object among events; gives the first byte after it.
    fn element(&mut self, at: usize, sink: &mut dyn Sink) -> usize {
        match self.object(at) {
            Ok((raw, end)) => {
                self.event(raw, sink);
                end
            }
            // Whole traces as the elements of an array.
            Err(_) if peek(self.bytes, at) == Kind::Container => self.container(at, sink),
            Err(reason) => self.resume(at, reason),
        }
    }

    /// The object whose brace is at `at`, which is not an event itself; returns the first byte
    /// after it.
    fn container(&mut self, at: usize, sink: &mut dyn Sink) -> usize {
        let first = self.members.len();
        let end = self.members_of(at, sink);
        self.samples(first, sink);
        end
    }

    fn members_of(&mut self, at: usize, sink: &mut dyn Sink) -> usize {
        let mut at = at + 1;
        loop {
            at = skip_blanks(self.bytes, at);
            match self.bytes.get(at) {
                Some(b',') => {
                    at += 1;
                    continue;
                }
                Some(b'}') => return at + 1,
                // Without its end, as an array.
                None => return at,
                _ => (),
            }
            let Some((key, value)) = key(self.bytes, at) else { break };
            if key == b"traceEvents" && self.bytes.get(value) == Some(&b'[') {
                at = self.array(value + 1, sink);
                continue;
            }
            let Some(end) = end_of(self.bytes, value) else { break };
            let quoted = &self.bytes[at..at + key.len() + 2];
            let key = serde_json::from_slice::<String>(quoted)
                .map_or_else(|_| String::from_utf8_lossy(key), Cow::Owned);
            self.member(key, &self.bytes[value..end]);
            at = end;
        }
        let rule = "an object has members with names and values";
        self.resume(at, DamageReason::BadValue { rule })
    }

    fn member(&mut self, key: Cow<'a, str>, value: &'a [u8]) {
        // PyTorch and VizTracer count from a time since 1970 in nanoseconds, clang in microseconds.
        let unit = match key.as_ref() {
            "baseTimeNanoseconds" => 1,
            "beginningOfTime" => 1000,
            _ => 0,
        };
        let number = std::str::from_utf8(value).ok().filter(|_| unit > 0);
        if let Some(number) = number.and_then(|text| text.trim_matches('"').parse::<i64>().ok())
            && let Some(base) = self.bases.last_mut()
        {
            *base = number.checked_mul(unit).filter(|base| *base > 0);
        }
        if self.members.len() < MAX_NOTES {
            self.members.push((key, value));
        } else {
            self.more_members += 1;
        }
    }

    /// The event whose brace is at `at`.
    fn object(&mut self, at: usize) -> Result<(Raw<'a>, usize), DamageReason> {
        let bad = DamageReason::BadValue { rule: "an event must be a JSON object with \"ph\"" };
        let strict = match skip_value(self.bytes, at) {
            Ok(end) => match serde_json::from_slice::<Raw<'a>>(&self.bytes[at..end]) {
                Ok(raw) => Ok((raw, end)),
                Err(_) => Err(DamageReason::BadValue { rule: "an event must be JSON" }),
            },
            Err(Fault::Truncated) => Err(DamageReason::Truncated { missing_bytes: None }),
            Err(Fault::Bad(_)) => Err(DamageReason::BadValue { rule: "an event must be JSON" }),
        };
        let found = match strict {
            Ok(found) => Ok(found),
            Err(reason) if self.again > 0 => {
                let (found, cost) = lenient::event(self.bytes, at);
                self.again = self.again.saturating_sub(cost);
                found.ok_or(reason)
            }
            Err(reason) => Err(reason),
        };
        match found? {
            (raw, end) if raw.phase.as_ref().is_some_and(|phase| !phase.is_empty()) => {
                Ok((raw, end))
            }
            _ => Err(bad),
        }
    }

    /// Looks for the next event after a fault at `at`; notes what lies between.
    fn resume(&mut self, at: usize, reason: DamageReason) -> usize {
        let mut next = at + 1;
        loop {
            let brace = self.bytes.get(next..).unwrap_or_default();
            let brace = brace.iter().position(|&byte| byte == b'{');
            let Some(brace) = brace.filter(|_| self.again > 0) else {
                self.damaged(at, self.bytes.len(), reason);
                return self.bytes.len();
            };
            next += brace;
            let end = skip_value(self.bytes, next).unwrap_or(self.bytes.len());
            self.again = self.again.saturating_sub(end - next);
            if self.object(next).is_ok() {
                self.damaged(at, next, reason);
                return next;
            }
            next += 1;
        }
    }

    /// Facts that later passes need.
    fn know(&mut self) -> Known {
        let mut known = Known { bases: self.bases.clone(), ..Known::default() };
        if let Some(ends) = self.ends.take() {
            if ends.refused > 0 && ends.has_unnamed() {
                self.more_ends(ends.refused);
            }
            known.has_changed = ends.has_unnamed();
            known.names = ends.names();
        }
        let mut bases = known.bases.iter().flatten();
        let first = bases.next();
        known.has_changed |= bases.any(|base| Some(base) != first);
        known
    }

    fn more_ends(&mut self, count: u64) {
        let note = format!(
            "{count} ends of spans were not looked at for their names: they do not fit into the \
             memory they may take: raise the limit"
        );
        self.notes.push((String::new(), note));
    }

    /// The clock of the times: our own writer starts it later than at 0, and other tools record
    /// when that was.
    fn clock(&self, known: &Known) -> Clock {
        let text = self.members.iter().find(|(key, _)| key == super::ORIGIN);
        let origin = text.and_then(|(_, text)| serde_json::from_slice::<Value>(text).ok());
        let origin = origin.unwrap_or_default();
        let nanos = origin["ns"].as_str().and_then(|nanos| nanos.parse().ok());
        let base = known.bases.first().copied().flatten().filter(|base| self.is_believable(*base));
        let mut clock = Clock::new("chrome", 1_000_000_000, 0, nanos.or(base).unwrap_or(0));
        clock.unix_epoch = if nanos.is_some() {
            origin["unix"].as_bool().unwrap_or(false)
        } else {
            base.is_some()
        };
        clock
    }

    /// Whether times can count from this: it is of this century, and they are not times since 1970
    /// themselves, beside which some tools write when that was.
    fn is_believable(&self, base: i64) -> bool {
        const CENTURY: std::ops::Range<i64> = 946_684_800_000_000_000..4_102_444_800_000_000_000;
        CENTURY.contains(&base) && self.time.unwrap_or(0).unsigned_abs() < base as u64 / 2
    }

    /// Adds what is not events.
    fn describe(self, builder: &mut Builder) {
        if self.documents > 1 {
            let what = "values of JSON follow each other in the file: they are read as one trace";
            builder.remark(format!("{} {what}", self.documents));
        }
        for (key, text) in &self.members {
            if key == super::ORIGIN || matches!(key.as_ref(), "samples" | "stackFrames") {
                continue;
            }
            if key == "systemTraceEvents" && text.len() > 2 {
                let lines = text.windows(2).filter(|pair| pair == b"\\n").count();
                builder.remark(format!(
                    "systemTraceEvents: the text of the system's own trace is not read: {lines} \
                     lines"
                ));
            } else if text.len() > MAX_NOTE_BYTES {
                let size = text.len();
                builder.remark(format!("{key}: {size} bytes of this part are left out: too long"));
                continue;
            }
            if text.len() <= MAX_NOTE_BYTES && is_json(text) {
                let value = String::from_utf8_lossy(text).into_owned();
                let entry = (format!("{}{key}", super::OTHER), EnvValue::Text(value));
                builder.describe().environment.push(entry);
            }
        }
        for (key, text) in self.notes {
            match key.is_empty() {
                true => builder.remark(text),
                false => builder.describe().environment.push((key, EnvValue::Text(text))),
            }
        }
        builder.names().processes = self.processes;
        builder.names().threads = self.threads;
        self.damage.into_iter().for_each(|damage| builder.damage(damage));
        let counts = [
            (self.more_damage, "further damaged places"),
            (self.more_members, "further parts of the object are left out: too many"),
            (
                self.counts.repaired,
                "events are not strict JSON: each value of theirs is read as far as it can be",
            ),
            (self.counts.finer, "times are finer than a nanosecond: rounded down"),
            (
                self.counts.timeless,
                "events tell no time that can be read: they stand at that of the event before \
                 them, and neither begin nor end anything",
            ),
            (
                self.counts.endless,
                "complete events (X) tell no duration that can be: their spans are unfinished",
            ),
            (self.counts.levelless, "samples of counters are no numbers: kept as fields"),
            (self.counts.unread_samples, "samples of stacks, or lists of them, cannot be read"),
        ];
        for (count, what) in counts {
            if count > 0 {
                builder.remark(format!("{count} {what}"));
            }
        }
    }
}
