// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writer of an index: columns, then a directory in JSON, then its position.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::building::{Placed, RawMessage, RawPoint, numbers};
use crate::column::Number;
use crate::grid::Grid;
use crate::intervals::{Sums, main_names};
use crate::levels::reaches;
use crate::meta::Meta;
use crate::pixels::BLOCK;

/// Start of the last [`TRAILER`] bytes; the digit is the version.
pub(crate) const MAGIC: &[u8; 8] = b"LATVIEW5";
/// Magic, offset, length and checksum of the directory.
pub(crate) const TRAILER: usize = 32;

/// Positions of columns: first byte of each.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct At {
    pub count: u64,
    pub shift: u32,
    pub buckets: u64,
    pub first: u64,
    pub columns: Vec<u64>,
}

/// Positions of everything in the file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Directory {
    pub identity: String,
    pub meta: Meta,
    pub points: Vec<At>,
    pub rows: Vec<At>,
    pub levels: Vec<At>,
    pub messages: At,
    pub longest: u64,
}

struct Out<'a> {
    out: &'a mut dyn Write,
    at: u64,
    buffer: Vec<u8>,
    origin: i64,
    end: u64,
}

impl Out<'_> {
    fn column<T: Number>(&mut self, numbers: impl Iterator<Item = T>) -> io::Result<u64> {
        const BUFFER: usize = 1 << 16;
        let begin = self.at;
        for number in numbers {
            number.write(&mut self.buffer);
            if self.buffer.len() >= BUFFER {
                self.flush()?;
            }
        }
        self.flush()?;
        Ok(begin)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn since_origin(&self, time: i64) -> u64 {
        u64::try_from(i128::from(time) - i128::from(self.origin)).unwrap_or(0)
    }

    /// Times, and their grid.
    fn times(&mut self, times: impl Iterator<Item = i64> + Clone, count: usize) -> io::Result<At> {
        let origin = i128::from(self.origin);
        let since = move |time: i64| u64::try_from(i128::from(time) - origin).unwrap_or(0);
        let column = self.column(times.clone().map(since))?;
        let shift = Grid::shift_for(count, self.end);
        let buckets = if count == 0 { 0 } else { (self.end >> shift) + 2 };
        let mut times = times.map(since).peekable();
        let mut passed = 0u32;
        let firsts = (0..buckets).map(|bucket| {
            while times.next_if(|time| time >> shift < bucket).is_some() {
                passed += 1;
            }
            passed
        });
        let first = self.column(firsts)?;
        Ok(At { count: count as u64, shift, buckets, first, columns: vec![column] })
    }
}

/// An index being written: points of all lanes, then rows, counters, messages.
pub(crate) struct Writing<'a> {
    out: Out<'a>,
    directory: Directory,
}

impl<'a> Writing<'a> {
    pub(crate) fn new(meta: &Meta, identity: &str, out: &'a mut dyn Write) -> Self {
        let out = Out { out, at: 0, buffer: Vec::new(), origin: meta.origin, end: meta.end };
        let directory = Directory { identity: identity.to_owned(), ..Directory::default() };
        Self { out, directory }
    }

    /// The points of the next lane.
    pub(crate) fn points(&mut self, points: &[RawPoint]) -> io::Result<()> {
        let out = &mut self.out;
        let mut at = out.times(points.iter().map(|point| point.time), points.len())?;
        at.columns.push(out.column(points.iter().map(|point| point.class))?);
        at.columns.push(out.column(points.iter().map(|point| point.thread))?);
        self.directory.points.push(at);
        Ok(())
    }

    /// The next row; returns its main names.
    pub(crate) fn intervals(&mut self, row: &[Placed]) -> io::Result<Vec<u32>> {
        let out = &mut self.out;
        let mut at = out.times(row.iter().map(|placed| placed.begin), row.len())?;
        let ends: Vec<u64> = row.iter().map(|placed| out.since_origin(placed.end)).collect();
        at.columns.push(out.column(ends.into_iter())?);
        at.columns.push(out.column(row.iter().map(|placed| placed.interval.name))?);
        at.columns.push(out.column(row.iter().map(|placed| placed.interval.thread))?);
        for side in [|p: &Placed| p.interval.from, |p: &Placed| p.interval.to] {
            for place in 0..2 {
                at.columns.push(out.column(row.iter().map(|p| numbers(side(p))[place]))?);
            }
        }
        at.columns.push(out.column(row.iter().map(|placed| placed.flags))?);
        let lengths = || {
            let length =
                |p: &Placed| (p.interval.name, p.end.saturating_sub(p.begin).max(0) as u64);
            row.iter().map(length)
        };
        let main = main_names(lengths());
        at.columns.push(out.column(Sums::of(lengths(), &main).into_iter())?);
        self.directory.rows.push(at);
        Ok(main)
    }

    /// The samples of the next counter.
    pub(crate) fn levels(&mut self, levels: &[(i64, f64)]) -> io::Result<()> {
        let out = &mut self.out;
        let mut at = out.times(levels.iter().map(|(time, _)| *time), levels.len())?;
        let values: Vec<f64> = levels.iter().map(|(_, value)| *value).collect();
        at.columns.push(out.column(values.iter().copied())?);
        let (mut lows, mut highs) = (values.clone(), values);
        while lows.len() > BLOCK {
            [lows, highs] = reaches(&lows, &highs);
            at.columns.push(out.column(lows.iter().copied())?);
            at.columns.push(out.column(highs.iter().copied())?);
        }
        self.directory.levels.push(at);
        Ok(())
    }

    /// All messages.
    pub(crate) fn messages(&mut self, all: &[RawMessage]) -> io::Result<()> {
        let out = &mut self.out;
        let mut at = out.times(all.iter().map(|message| message.sent), all.len())?;
        let received: Vec<u64> = all.iter().map(|m| out.since_origin(m.received)).collect();
        at.columns.push(out.column(received.into_iter())?);
        for side in [|m: &RawMessage| m.from, |m: &RawMessage| m.to] {
            at.columns.push(out.column(all.iter().map(|message| side(message).lane))?);
            at.columns.push(out.column(all.iter().map(|message| side(message).index))?);
        }
        at.columns.push(out.column(all.iter().map(|message| message.channel))?);
        let ways = all.iter().map(|m| m.received.saturating_sub(m.sent).max(0) as u64);
        self.directory.longest = ways.max().unwrap_or(0);
        self.directory.messages = at;
        Ok(())
    }

    /// The directory, and its position.
    pub(crate) fn finish(mut self, meta: Meta) -> io::Result<()> {
        self.directory.meta = meta;
        let json = serde_json::to_vec(&self.directory)?;
        let mut trailer = MAGIC.to_vec();
        for number in [self.out.at, json.len() as u64, checksum(&json)] {
            number.write(&mut trailer);
        }
        self.out.out.write_all(&json)?;
        self.out.out.write_all(&trailer)
    }
}

/// FNV-1a: detects a truncated or mixed-up file, nothing more.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
