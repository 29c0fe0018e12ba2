// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records as they lie, and their way into the order of time.
//!
//! perf copies the buffer of one CPU after the other into the file: what lies
//! together is mostly in order already. So an index of such runs is enough to
//! read all records by time, without one for each record.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use lateralis_model::ByteOrder;

use super::attr::{Attr, NOWHERE};
use super::file::Attrs;
use super::records::{self, Record};
use super::sideband::Beside;
use crate::wire::Wire;

/// CPUs by id.
pub type Ids = HashMap<u64, u32>;

/// Bytes of a file; whoever gives them keeps them mapped, or in memory.
pub type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Places begin with where they are. In the feature with build ids …
pub const BUILD_IDS: u64 = 0;
/// … in a file …
pub const FILE: u64 = 1 << 62;
/// … in decompressed records.
pub const INFLATED: u64 = 1 << 63;
/// The number of the file follows, then the byte: no file has as many.
const PART_SHIFT: u32 = 48;
const BYTES: u64 = (1 << PART_SHIFT) - 1;
/// Files whose numbers have room in a place.
pub const PARTS_MAX: usize = 1 << (62 - PART_SHIFT);

/// The bits of a place that name the file with this number.
pub fn part_bits(number: usize) -> u64 {
    (number as u64) << PART_SHIFT
}

/// The number of the file that a place is in.
fn part_of(place: u64) -> usize {
    ((place & !(FILE | INFLATED)) >> PART_SHIFT) as usize
}

/// The byte that a place is.
pub fn byte(place: u64) -> u64 {
    place & BYTES
}

/// A file of records: the only one, or that of one thread of `perf record --threads`.
pub struct Part {
    /// Its name, for reports.
    pub name: String,
    /// What it holds.
    pub bytes: Bytes,
    /// Records that were compressed in it.
    pub inflated: Vec<u8>,
    /// The first of its bytes that was decompressed.
    pub compressed: u64,
}

impl Part {
    /// A file that was not looked into yet.
    pub fn new(name: &str, bytes: Bytes) -> Self {
        Self { name: name.to_owned(), bytes, inflated: Vec::new(), compressed: 0 }
    }
}

/// Records that lie one after the other, none of them earlier than the one
/// before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Place of the first.
    pub begin: u64,
    /// Place behind the last.
    pub end: u64,
    /// Time of the first, in ticks.
    pub first: u64,
    /// Time of the last.
    pub last: u64,
}

/// Everything that records lie in.
pub struct Content {
    /// Files of records, that with the header first.
    pub parts: Vec<Part>,
    /// Records with build ids.
    pub build_ids: Vec<u8>,
    /// Of numbers.
    pub order: ByteOrder,
    /// What was to be recorded.
    pub attrs: Attrs,
    /// CPUs of ids.
    pub cpus: Ids,
    /// In the order of their first times.
    pub runs: Vec<Run>,
}

/// A 64-bit number at a place of a record's body.
#[inline]
pub fn word(body: &[u8], at: u32, order: ByteOrder) -> Option<u64> {
    let bytes = body.get(at as usize..)?.first_chunk::<8>()?;
    Some(match order {
        ByteOrder::Little => u64::from_le_bytes(*bytes),
        ByteOrder::Big => u64::from_be_bytes(*bytes),
    })
}

/// The place in a record's body of a field counted from its end.
#[inline]
pub fn from_end(body: &[u8], back: u32) -> u32 {
    body.len().checked_sub(back as usize).map_or(NOWHERE, |at| at as u32)
}

/// The attribute a record belongs to, or the id that no attribute has; and its
/// time, 0 where it has none.
#[inline]
pub fn moment(attrs: &Attrs, record: &Record<'_>, order: ByteOrder) -> (Result<usize, u64>, u64) {
    let Some(places) = attrs.places.first() else { return (Err(0), 0) };
    let body = record.body;
    let at = |(in_sample, back): (u32, u32)| match record.kind {
        records::SAMPLE => in_sample,
        _ => from_end(body, back),
    };
    let attr = match attrs.places.len() {
        1 => Ok(0),
        _ => match word(body, at(places.id), order) {
            // Records that perf made itself have no id.
            None | Some(0) => Ok(0),
            Some(id) => attrs.by_id(id).ok_or(id),
        },
    };
    if record.kind >= records::USER {
        return (attr, 0);
    }
    let places = attr.ok().and_then(|attr| attrs.places.get(attr));
    let time = places.and_then(|places| word(body, at(places.time), order));
    let own = match record.kind {
        records::FORK | records::EXIT => 16,
        records::THROTTLE | records::UNTHROTTLE => 0,
        _ => NOWHERE,
    };
    (attr, time.or_else(|| word(body, own, order)).unwrap_or(0))
}

/// A record on its way.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// It.
    pub record: Record<'a>,
    /// Its attribute, or the id that no attribute has.
    pub attr: Result<usize, u64>,
    /// Its time in ticks, or that of its neighbour; 0 where there is none.
    pub time: u64,
    /// Where it is.
    pub place: u64,
}

/// A run that is being read: the next record of it is known.
struct Cursor<'a> {
    found: Found<'a>,
    bytes: &'a [u8],
    region: u64,
    next: u64,
    end: u64,
}

impl Cursor<'_> {
    /// Records of the same time come as they lie.
    fn key(&self) -> (u64, u64) {
        (self.found.time, self.found.place)
    }
}

impl PartialEq for Cursor<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Cursor<'_> {}

impl PartialOrd for Cursor<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cursor<'_> {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl Content {
    /// Opens a run at its first record.
    fn cursor(&self, run: &Run) -> Option<Cursor<'_>> {
        let bytes = match run.begin & (FILE | INFLATED) {
            BUILD_IDS => &self.build_ids[..],
            FILE => (*self.part(run.begin)?.bytes).as_ref(),
            _ => &self.part(run.begin)?.inflated[..],
        };
        let region = run.begin & !BYTES;
        let record = Record { kind: 0, misc: 0, body: &[] };
        let found = Found { record, attr: Err(0), time: run.first, place: run.begin };
        let (next, end) = (byte(run.begin), byte(run.end));
        let mut cursor = Cursor { found, bytes, region, next, end };
        self.step(&mut cursor).then_some(cursor)
    }

    /// Steps to the next record that becomes an event.
    #[inline]
    fn step(&self, cursor: &mut Cursor<'_>) -> bool {
        while cursor.next < cursor.end {
            let Some(mut record) = Record::at(cursor.bytes, cursor.next, self.order) else {
                return false;
            };
            let place = cursor.next | cursor.region;
            cursor.next += record.size();
            if cursor.region == BUILD_IDS {
                record.kind = records::BUILD_ID;
            } else if !record.is_event() {
                continue;
            }
            let (attr, time) = moment(&self.attrs, &record, self.order);
            // The run was found in order; attributes that came late change nothing.
            let time = time.max(cursor.found.time);
            cursor.found = Found { record, attr, time, place };
            return true;
        }
        false
    }

    /// The record at a place that [`Merge`] gave.
    pub fn record(&self, place: u64) -> Option<Found<'_>> {
        let run = Run { begin: place, end: place + 1, first: 0, last: 0 };
        self.cursor(&run).map(|cursor| cursor.found)
    }

    fn part(&self, place: u64) -> Option<&Part> {
        self.parts.get(part_of(place))
    }

    /// The name of the file that a place is in.
    pub fn file_of(&self, place: u64) -> &str {
        self.part(place).map_or("", |part| &part.name)
    }

    /// What belongs to a record and does not stand in it.
    pub fn beside(&self, place: u64, record: &Record<'_>) -> Beside<'_> {
        let behind = self.byte_of(place) + record.size();
        let mut wire = Wire::new(record.body, self.order);
        match record.kind {
            records::AUXTRACE => {
                let range = wire.u64().and_then(|size| {
                    let begin = usize::try_from(behind).ok()?;
                    Some(begin..begin.checked_add(usize::try_from(size).ok()?)?)
                });
                // What is compressed has none behind it; what is cut is none.
                let part = self.part(place).filter(|_| place & INFLATED == 0);
                let data =
                    part.zip(range).and_then(|(part, range)| (*part.bytes).as_ref().get(range));
                Beside { behind, data: data.unwrap_or_default(), config: 0 }
            }
            records::AUXTRACE_INFO => {
                // The kind, and a word that only keeps what follows aligned; then the number of the source.
                let source = wire.u64().and_then(|_| wire.u64());
                let is_its = |attr: &&Attr| Some(u64::from(attr.kind)) == source;
                let config = self.attrs.all.iter().find(is_its).map_or(0, |attr| attr.config);
                Beside { behind, data: &[], config }
            }
            _ => Beside { behind, ..Beside::default() },
        }
    }

    /// The byte of the file that stands for a place in reports.
    pub fn byte_of(&self, place: u64) -> u64 {
        match self.part(place) {
            Some(part) if place & INFLATED != 0 => part.compressed,
            _ => byte(place),
        }
    }
}

/// All records that become events in the order of time, those of the same time as
/// they lie.
///
/// Cost: one comparison a record, and a heap of the runs that overlap.
pub struct Merge<'a> {
    content: &'a Content,
    /// Runs that begin later.
    waiting: std::iter::Peekable<Box<dyn Iterator<Item = &'a Run> + 'a>>,
    open: BinaryHeap<Cursor<'a>>,
    current: Option<Cursor<'a>>,
    /// What the current run may give before another one has to.
    bound: (u64, u64),
}

impl<'a> Merge<'a> {
    /// Those of the runs that `wanted` chooses.
    pub fn new(content: &'a Content, wanted: impl Fn(&Run) -> bool + 'a) -> Self {
        let runs: Box<dyn Iterator<Item = &Run>> =
            Box::new(content.runs.iter().filter(move |run| wanted(run)));
        let (open, bound) = (BinaryHeap::new(), (0, 0));
        Self { content, waiting: runs.peekable(), open, current: None, bound }
    }

    /// The next record.
    #[inline]
    pub fn next(&mut self) -> Option<Found<'a>> {
        if let Some(cursor) = &mut self.current {
            if !self.content.step(cursor) {
                self.current = None;
            } else if cursor.key() <= self.bound {
                return Some(cursor.found);
            }
        }
        self.turn()
    }

    /// Goes on with the run that has the earliest record.
    fn turn(&mut self) -> Option<Found<'a>> {
        self.open.extend(self.current.take());
        loop {
            let waits = self.waiting.peek().map(|run| (run.first, run.begin));
            let opened = self.open.peek().map(Cursor::key);
            match (waits, opened) {
                (Some(first), key) if key.is_none_or(|key| first < key) => {
                    let run = self.waiting.next()?;
                    self.open.extend(self.content.cursor(run));
                }
                (_, None) => return None,
                _ => break,
            }
        }
        let cursor = self.open.pop()?;
        let waits = self.waiting.peek().map(|run| (run.first, run.begin));
        let opened = self.open.peek().map(Cursor::key);
        let bounds = waits.into_iter().chain(opened);
        self.bound = bounds.min().unwrap_or((u64::MAX, u64::MAX));
        let found = cursor.found;
        self.current = Some(cursor);
        Some(found)
    }
}
