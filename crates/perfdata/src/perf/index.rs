// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first pass: from record to record.

use std::collections::HashMap;
use std::ops::Range;

use lateralis_model::{DamageReason, EnvValue};

use super::attr::{Attr, sample};
use super::file::{Attrs, File};
use super::records::{self, Record};
use crate::inflate::{self, Stop};
use crate::notes::Notes;
use crate::wire::{Wire, text};

/// Marks places in decompressed records.
const INFLATED: u64 = 1 << 63;
/// Records that have to follow each other before a place counts as the
/// beginning of one again.
const CHAIN: u32 = 3;
/// Kind of EVENT_UPDATE that gives a name.
const UPDATE_NAME: u64 = 2;

/// A record that becomes an event.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its time; 0 where it has none and none came before it.
    pub time: u64,
    place: u64,
}

/// Where the records are.
#[derive(Debug, Default)]
pub struct Index {
    /// Records in the order of time.
    pub entries: Vec<Entry>,
    /// Decompressed records.
    inflated: Vec<u8>,
    /// Bytes of the file that were decompressed.
    compressed: Range<u64>,
    /// CPUs of ids, from ID_INDEX.
    pub cpus: HashMap<u64, u32>,
}

impl Index {
    /// Bytes that an entry's record begins at, and the place for reports: bytes of
    /// the file.
    pub fn record<'a>(&'a self, file: &File<'a>, entry: Entry) -> Option<(Record<'a>, u64)> {
        if entry.place & INFLATED == 0 {
            let record = Record::at(file.bytes, entry.place, file.order)?;
            return Some((record, entry.place));
        }
        let record = Record::at(&self.inflated, entry.place & !INFLATED, file.order)?;
        Some((record, self.compressed.start))
    }
}

/// Which attribute a record belongs to.
#[inline]
pub fn attr_of(attrs: &Attrs, record: &Record<'_>, file: &File<'_>) -> Result<usize, u64> {
    let Some(first) = attrs.all.first() else { return Err(0) };
    if attrs.all.len() == 1 {
        return Ok(0);
    }
    let field = if first.has(sample::IDENTIFIER) { sample::IDENTIFIER } else { sample::ID };
    let at = if record.kind == records::SAMPLE {
        first.offset_in_sample(field)
    } else {
        first.offset_from_end(field).and_then(|back| record.body.len().checked_sub(back))
    };
    let id = at.and_then(|at| Wire::at(record.body, at as u64, file.order).u64());
    match id {
        // Records that perf made itself have no id.
        None | Some(0) => Ok(0),
        Some(id) => attrs.by_id(id).ok_or(id),
    }
}

/// Walks all records of the file. `limit` bounds the bytes of decompressed
/// records.
///
/// Cost: 16 bytes for each record.
pub fn index(file: &mut File<'_>, limit: u64, notes: &mut Notes) -> Index {
    let mut walk = Walk { index: Index::default(), pieces: Vec::new(), time: 0, file, notes };
    let (bytes, begin, end) = (walk.file.bytes, walk.file.data_begin, walk.file.data_end);
    walk.records(bytes.get(..end as usize).unwrap_or(bytes), begin, 0);
    walk.inflate(limit);
    walk.index.entries.sort_by_key(|entry| entry.time);
    walk.index
}

struct Walk<'f, 'a, 'n> {
    index: Index,
    /// Compressed bytes in their order.
    pieces: Vec<Range<usize>>,
    /// The last time seen.
    time: u64,
    file: &'f mut File<'a>,
    notes: &'n mut Notes,
}

impl Walk<'_, '_, '_> {
    fn records(&mut self, bytes: &[u8], begin: u64, flag: u64) {
        let order = self.file.order;
        let mut at = begin;
        let end = bytes.len() as u64;
        while at < end {
            match Record::at(bytes, at, order) {
                Some(record) if Record::known(record.kind) => {
                    let behind = at + record.size();
                    let extra = self.record(bytes, &record, at | flag, behind);
                    let next = behind.saturating_add(extra);
                    if next > end {
                        let missing_bytes = Some(next - end);
                        self.damage(at, end, DamageReason::Truncated { missing_bytes }, flag);
                    }
                    at = next;
                }
                _ => {
                    let next = self.resync(bytes, at + 1);
                    let reason = match next == end {
                        true => DamageReason::Truncated { missing_bytes: None },
                        false => DamageReason::BadValue { rule: "header of a record" },
                    };
                    self.damage(at, next, reason, flag);
                    at = next;
                }
            }
        }
    }

    fn damage(&mut self, begin: u64, end: u64, reason: DamageReason, flag: u64) {
        let time = (self.time > 0).then_some(lateralis_units::Nanos(self.time as i64));
        if flag == 0 {
            self.notes.damage(begin, end, reason, time);
        } else {
            let Range { start, end } = self.index.compressed;
            self.notes.damage(start, end, reason, time);
        }
    }

    /// The first place from `at` where several records follow each other.
    fn resync(&self, bytes: &[u8], at: u64) -> u64 {
        let end = bytes.len() as u64;
        let order = self.file.order;
        let chain = |mut at: u64| {
            for _ in 0..CHAIN {
                match Record::at(bytes, at, order) {
                    Some(record) if Record::known(record.kind) => at += record.size(),
                    _ => return false,
                }
                if at == end {
                    return true;
                }
            }
            true
        };
        (at..end).find(|&at| chain(at)).unwrap_or(end)
    }

    /// Takes or remembers a record; returns the bytes that follow it and belong to
    /// it.
    fn record(&mut self, bytes: &[u8], record: &Record<'_>, place: u64, behind: u64) -> u64 {
        let order = self.file.order;
        let mut wire = Wire::new(record.body, order);
        match record.kind {
            records::SAMPLE => self.remember(self.time_of_sample(record), place),
            kind @ (1..=63 | records::BUILD_ID) => {
                let time = if kind < 64 { self.time_of_other(record) } else { 0 };
                self.remember(time, place);
            }
            records::AUXTRACE_INFO | records::AUXTRACE_ERROR => self.remember(0, place),
            records::AUXTRACE => {
                self.remember(0, place);
                return wire.u64().unwrap_or(0);
            }
            records::TRACING_DATA if self.file.pipe => {
                let size = u64::from(wire.u32().unwrap_or(0));
                let content = Wire::at(bytes, behind, order).take64(size).unwrap_or(&[]);
                if self.file.features.tracing_data(content).is_none() {
                    let rule = "description of tracepoints";
                    let end = behind.saturating_add(size).min(bytes.len() as u64);
                    self.notes.damage(behind, end, DamageReason::BadValue { rule }, None);
                }
                return size.next_multiple_of(8);
            }
            records::COMPRESSED | records::COMPRESSED2 if place & INFLATED == 0 => {
                let skip = if record.kind == records::COMPRESSED2 { 8 } else { 0 };
                let size = (skip > 0).then(|| wire.u64()).flatten();
                let end = behind as usize;
                let begin = (end - record.body.len() + skip).min(end);
                let size = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX);
                self.pieces.push(begin..begin.saturating_add(size).min(end));
            }
            _ => self.describe(record, wire, place),
        }
        0
    }

    /// Takes what describes other records.
    fn describe(&mut self, record: &Record<'_>, mut wire: Wire<'_>, place: u64) {
        match record.kind {
            records::HEADER_ATTR => {
                let size = Wire::at(record.body, 4, self.file.order).u32().unwrap_or(0) as usize;
                let size = size.clamp(64, record.body.len().max(64));
                let attr = record.body.get(..size).unwrap_or(record.body);
                if let Some(attr) = Attr::parse(attr, self.file.order) {
                    let mut ids = Wire::at(record.body, size as u64, self.file.order);
                    self.file.attrs.add(attr, std::iter::from_fn(|| ids.u64()));
                }
            }
            records::EVENT_UPDATE => {
                let (kind, id) = (wire.u64(), wire.u64());
                let attr = id.and_then(|id| self.file.attrs.by_id_mut(id));
                if let Some(attr) = attr.filter(|_| kind == Some(UPDATE_NAME)) {
                    attr.name = text(wire.take(wire.left()).unwrap_or(&[]));
                }
            }
            records::HEADER_FEATURE => {
                let Some(number) = wire.u64().and_then(|n| u32::try_from(n).ok()) else { return };
                let content = wire.take(wire.left()).unwrap_or(&[]);
                self.file.feature(number, content, place & !INFLATED, self.notes);
            }
            records::ID_INDEX => {
                let _count = wire.u64();
                while let (Some(id), Some(_index), Some(cpu), Some(_tid)) =
                    (wire.u64(), wire.u64(), wire.u64(), wire.u64())
                {
                    if let Ok(cpu) = u32::try_from(cpu) {
                        self.index.cpus.insert(id, cpu);
                    }
                }
            }
            records::TIME_CONV => {
                let names = ["tsc_shift", "tsc_mult", "tsc_zero", "tsc_cycles", "tsc_mask"];
                for name in names {
                    let Some(value) = wire.u64() else { break };
                    let value = EnvValue::Integer(i128::from(value));
                    self.file.features.environment.push((name.to_owned(), value));
                }
            }
            _ => {}
        }
    }

    fn remember(&mut self, time: u64, place: u64) {
        // Without a time of its own, it happened when its neighbour did.
        let time = if time == 0 { self.time } else { time };
        self.time = time;
        self.index.entries.push(Entry { time, place });
    }

    fn time_of_sample(&self, record: &Record<'_>) -> u64 {
        let attr = attr_of(&self.file.attrs, record, self.file).ok();
        let attr = attr.and_then(|index| self.file.attrs.all.get(index));
        let at = attr.and_then(|attr| attr.offset_in_sample(sample::TIME));
        at.and_then(|at| Wire::at(record.body, at as u64, self.file.order).u64()).unwrap_or(0)
    }

    fn time_of_other(&self, record: &Record<'_>) -> u64 {
        let attr = attr_of(&self.file.attrs, record, self.file).ok();
        let attr = attr.and_then(|index| self.file.attrs.all.get(index));
        let back = attr.and_then(|attr| attr.offset_from_end(sample::TIME));
        let at = back.and_then(|back| record.body.len().checked_sub(back));
        let time = at.and_then(|at| Wire::at(record.body, at as u64, self.file.order).u64());
        let own = match record.kind {
            records::FORK | records::EXIT => Some(16),
            records::THROTTLE | records::UNTHROTTLE => Some(0),
            _ => None,
        };
        time.or_else(|| Wire::at(record.body, own?, self.file.order).u64()).unwrap_or(0)
    }

    /// Decompresses what was compressed, as one stream, and walks it.
    fn inflate(&mut self, limit: u64) {
        let (Some(first), Some(last)) = (self.pieces.first(), self.pieces.last()) else {
            return;
        };
        self.index.compressed = first.start as u64..last.end as u64;
        let pieces = self.pieces.iter().filter_map(|piece| self.file.bytes.get(piece.clone()));
        let input: Vec<u8> = pieces.flatten().copied().collect();
        let mut inflated = Vec::new();
        match inflate::zstd(&input, usize::try_from(limit).unwrap_or(usize::MAX), &mut inflated) {
            Ok(()) => {}
            Err(Stop::Limit) => {
                self.notes.remark("the file takes more memory than it may; its rest is left out");
            }
            Err(Stop::Damaged(at)) => {
                let place = self.place_of(at);
                let end = self.index.compressed.end;
                let rule = "compressed records";
                self.damage(place.min(end), end, DamageReason::BadValue { rule }, 0);
            }
        }
        self.records(&inflated, 0, INFLATED);
        self.index.inflated = inflated;
    }

    /// The byte of the file with compressed byte `at`.
    fn place_of(&self, mut at: usize) -> u64 {
        for piece in &self.pieces {
            if at < piece.len() {
                return (piece.start + at) as u64;
            }
            at -= piece.len();
        }
        self.index.compressed.end
    }
}
