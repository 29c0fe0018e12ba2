// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Walks the records of a file: finds invalid ones, descriptions of others, and runs of records in time
//! order.

use std::ops::Range;

use lateralis_model::{DamageReason, EnvValue};

use super::attr::Attr;
use super::aux::{self, AuxInfo};
use super::content::{BUILD_IDS, FILE, INFLATED, Ids, Part, Run, byte, moment, part_bits};
use super::file::File;
use super::records::{self, Record};
use super::seen::Seen;
use crate::inflate::{self, Stop};
use crate::notes::Notes;
use crate::wire::{Wire, text};

/// Number of consecutive valid records after which a position counts as the start of a record again.
const CHAIN: u32 = 3;
/// Type of EVENT_UPDATE that contains a name.
const UPDATE_NAME: u64 = 2;

/// Name of the environment entry with the text of the address filters of a hardware tracer.
const ADDRESS_FILTER: &str = "address_filter";

/// Results of the walk.
#[derive(Debug, Default)]
pub struct Index {
    /// Runs in the order of their first times.
    pub runs: Vec<Run>,
    /// CPUs of ids, from ID_INDEX.
    pub cpus: Ids,
    /// The first time other than 0; 0 if there is none.
    pub first: u64,
    /// Kinds of records.
    pub seen: Seen,
    /// Whether a description of records came after the first of them, so that [`Index::seen`] may be
    /// wrong.
    pub is_late: bool,
}

/// Walks all records of the files; the first file has the header. `limit` bounds the bytes of
/// decompressed records. Damage is noted with times in ticks.
///
/// Cost: 32 bytes for each run of records.
pub fn index(file: &mut File, parts: &mut [Part], limit: u64, notes: &mut Notes) -> Index {
    let mut walk = Walk {
        index: Index::default(),
        compressed: 0..0,
        pieces: Vec::new(),
        time: 0,
        run: None,
        file,
        notes,
    };
    let mut left = limit;
    for (number, part) in parts.iter_mut().enumerate() {
        let bytes = (*part.bytes).as_ref();
        let (begin, end) = match number {
            0 => (walk.file.data_begin, walk.file.data_end),
            _ => (0, bytes.len() as u64),
        };
        walk.notes.in_file(&part.name);
        walk.time = 0;
        let region = FILE | part_bits(number);
        walk.records(bytes.get(..end as usize).unwrap_or(bytes), begin, region);
        part.inflated = walk.inflate(bytes, left, INFLATED | part_bits(number));
        part.compressed = walk.compressed.start;
        left = left.saturating_sub(part.inflated.len() as u64);
    }
    walk.build_ids();
    let mut index = walk.index;
    index.runs.sort_by_key(|run| (run.first, run.begin));
    index
}

struct Walk<'f, 'n> {
    index: Index,
    /// Range of the file that was decompressed.
    compressed: Range<u64>,
    /// Compressed pieces in order.
    pieces: Vec<Range<usize>>,
    /// The last time seen.
    time: u64,
    /// The current run.
    run: Option<Run>,
    file: &'f mut File,
    notes: &'n mut Notes,
}

impl Walk<'_, '_> {
    fn records(&mut self, bytes: &[u8], begin: u64, region: u64) {
        let order = self.file.order;
        let mut at = begin;
        let end = bytes.len() as u64;
        while at < end {
            match Record::at(bytes, at, order) {
                Some(record) if Record::known(record.kind) => {
                    let behind = at + record.size();
                    let extra = self.record(bytes, &record, at | region, behind);
                    let next = behind.saturating_add(extra);
                    if next > end {
                        let missing_bytes = Some(next - end);
                        self.damage(at, end, DamageReason::Truncated { missing_bytes }, region);
                    }
                    if extra > 0 {
                        self.end_run();
                    }
                    at = next;
                }
                _ => {
                    self.end_run();
                    let next = self.resync(bytes, at + 1);
                    let reason = match next == end {
                        true => DamageReason::Truncated { missing_bytes: None },
                        false => DamageReason::BadValue { rule: "header of a record" },
                    };
                    self.damage(at, next, reason, region);
                    at = next;
                }
            }
        }
        self.end_run();
    }

    fn end_run(&mut self) {
        self.index.runs.extend(self.run.take());
    }

    fn damage(&mut self, begin: u64, end: u64, reason: DamageReason, region: u64) {
        let time = (self.time > 0).then_some(lateralis_units::Nanos(self.time as i64));
        if region & INFLATED == 0 {
            self.notes.damage(begin, end, reason, time);
        } else {
            let Range { start, end } = self.compressed;
            self.notes.damage(start, end, reason, time);
        }
    }

    /// The first position from `at` at which several consecutive records are valid.
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

    /// Processes or indexes a record; returns the number of bytes after it that belong to it.
    fn record(&mut self, bytes: &[u8], record: &Record<'_>, place: u64, behind: u64) -> u64 {
        let order = self.file.order;
        let mut wire = Wire::new(record.body, order);
        if record.is_event() {
            self.remember(record, place);
            if record.kind == records::AUXTRACE_INFO {
                let info = aux::info_of(&mut Wire::new(record.body, order));
                let info = info.map(|(kind, words)| AuxInfo { kind, words, config: None });
                if let Some(filter) = info.and_then(|info| info.filter_text()) {
                    let entry = (ADDRESS_FILTER.to_owned(), EnvValue::Text(filter));
                    self.file.features.environment.push(entry);
                }
            }
            return match record.kind {
                records::AUXTRACE => wire.u64().unwrap_or(0),
                _ => 0,
            };
        }
        match record.kind {
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
            records::COMPRESSED | records::COMPRESSED2 if place & FILE != 0 => {
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

    /// Processes a record that describes others.
    fn describe(&mut self, record: &Record<'_>, mut wire: Wire<'_>, place: u64) {
        match record.kind {
            records::HEADER_ATTR => {
                let size = Wire::at(record.body, 4, self.file.order).u32().unwrap_or(0) as usize;
                let size = size.clamp(64, record.body.len().max(64));
                let attr = record.body.get(..size).unwrap_or(record.body);
                if let Some(attr) = Attr::parse(attr, self.file.order) {
                    let mut ids = Wire::at(record.body, size as u64, self.file.order);
                    self.file.attrs.add(attr, std::iter::from_fn(|| ids.u64()));
                    self.index.is_late |= !self.index.seen.is_empty();
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
                self.file.feature(number, content, byte(place), self.notes);
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
                self.index.is_late |= !self.index.seen.is_empty();
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

    /// Notes the kind of a record that becomes an event, and adds it to a run.
    #[inline]
    fn remember(&mut self, record: &Record<'_>, place: u64) {
        let order = self.file.order;
        let (attr, time) = moment(&self.file.attrs, record, order);
        // A record without a time happened at that of its neighbour.
        let time = if time == 0 { self.time } else { time };
        self.time = time;
        if time.wrapping_sub(1) < self.index.first.wrapping_sub(1) {
            self.index.first = time;
        }
        match &mut self.run {
            Some(run) if run.last <= time => {
                run.last = time;
                run.end = place + record.size();
            }
            _ => {
                self.end_run();
                let end = place + record.size();
                self.run = Some(Run { begin: place, end, first: time, last: time });
            }
        }
        let Index { seen, cpus, .. } = &mut self.index;
        seen.take(record, attr, time, place, &self.file.attrs, cpus, order);
    }

    /// Decompresses the compressed parts of a file as one stream, walks and returns it.
    fn inflate(&mut self, bytes: &[u8], limit: u64, region: u64) -> Vec<u8> {
        let (Some(first), Some(last)) = (self.pieces.first(), self.pieces.last()) else {
            return Vec::new();
        };
        self.compressed = first.start as u64..last.end as u64;
        let pieces = self.pieces.iter().filter_map(|piece| bytes.get(piece.clone()));
        let input: Vec<u8> = pieces.flatten().copied().collect();
        let mut inflated = Vec::new();
        match inflate::zstd(&input, usize::try_from(limit).unwrap_or(usize::MAX), &mut inflated) {
            Ok(()) => {}
            Err(Stop::Limit) => {
                self.notes.remark("the file takes more memory than it may; its rest is left out");
            }
            Err(Stop::Damaged(at)) => {
                let place = self.place_of(at);
                let end = self.compressed.end;
                let rule = "compressed records";
                self.damage(place.min(end), end, DamageReason::BadValue { rule }, FILE);
            }
        }
        self.records(&inflated, 0, region);
        self.pieces.clear();
        inflated
    }

    /// Position in the file of compressed byte `at`.
    fn place_of(&self, mut at: usize) -> u64 {
        for piece in &self.pieces {
            if at < piece.len() {
                return (piece.start + at) as u64;
            }
            at -= piece.len();
        }
        self.compressed.end
    }

    /// Processes the feature with build ids, whose records precede all others.
    fn build_ids(&mut self) {
        let order = self.file.order;
        let build_ids = std::mem::take(&mut self.file.features.build_ids);
        let (mut at, mut end) = (0, 0);
        while let Some(record) = Record::at(&build_ids, at, order) {
            at += record.size();
            let named = Record { kind: records::BUILD_ID, ..record };
            let Index { seen, cpus, .. } = &mut self.index;
            seen.take(&named, Err(0), 0, BUILD_IDS, &self.file.attrs, cpus, order);
            end = at;
        }
        if end > 0 {
            let (begin, end) = (BUILD_IDS, BUILD_IDS | end);
            self.index.runs.push(Run { begin, end, first: 0, last: 0 });
        }
        self.file.features.build_ids = build_ids;
    }
}
