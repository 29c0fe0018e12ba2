// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes of an index: columns, then a directory in JSON, then where that is.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::building::{Placed, RawMessage, RawPoints, numbers};
use crate::column::{Grid, Number};
use crate::intervals::{Sums, main_names};
use crate::levels::reaches;
use crate::meta::Meta;
use crate::pixels::BLOCK;

/// Begins the last [`TRAILER`] bytes; the digit is the version.
pub(crate) const MAGIC: &[u8; 8] = b"LATVIEW1";
/// Magic, offset, length and checksum of the directory.
pub(crate) const TRAILER: usize = 32;

/// Where columns are: byte of the first number of each.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct At {
    pub count: u64,
    pub shift: u32,
    pub buckets: u64,
    pub first: u64,
    pub columns: Vec<u64>,
}

/// What stands where in the file.
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

/// All that is written.
pub(crate) struct Made {
    pub points: Vec<RawPoints>,
    pub rows: Vec<Vec<Placed>>,
    pub levels: Vec<Vec<(i64, f64)>>,
    pub messages: Vec<RawMessage>,
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

pub(crate) fn write(
    made: Made,
    mut meta: Meta,
    identity: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (origin, end) = (meta.origin, meta.end);
    let mut out = Out { out, at: 0, buffer: Vec::new(), origin, end };
    let mut directory = Directory { identity: identity.to_owned(), ..Directory::default() };
    for points in made.points {
        let mut at = out.times(points.iter().map(|point| point.time), points.len())?;
        at.columns.push(out.column(points.iter().map(|point| point.class))?);
        at.columns.push(out.column(points.iter().map(|point| point.thread))?);
        directory.points.push(at);
    }
    for (row, told) in made.rows.into_iter().zip(&mut meta.rows) {
        directory.rows.push(intervals(&mut out, &row, &mut told.main)?);
    }
    for levels in made.levels {
        let mut at = out.times(levels.iter().map(|(time, _)| *time), levels.len())?;
        let values: Vec<f64> = levels.iter().map(|(_, value)| *value).collect();
        at.columns.push(out.column(values.iter().copied())?);
        let (mut lows, mut highs) = (values.clone(), values);
        while lows.len() > BLOCK {
            [lows, highs] = reaches(&lows, &highs);
            at.columns.push(out.column(lows.iter().copied())?);
            at.columns.push(out.column(highs.iter().copied())?);
        }
        directory.levels.push(at);
    }
    directory.messages = messages(&mut out, &made.messages)?;
    let ways = made.messages.iter().map(|m| m.received.saturating_sub(m.sent).max(0) as u64);
    directory.longest = ways.max().unwrap_or(0);
    directory.meta = meta;
    let json = serde_json::to_vec(&directory)?;
    let mut trailer = MAGIC.to_vec();
    for number in [out.at, json.len() as u64, checksum(&json)] {
        number.write(&mut trailer);
    }
    out.out.write_all(&json)?;
    out.out.write_all(&trailer)
}

fn intervals(out: &mut Out<'_>, row: &[Placed], main: &mut Vec<u32>) -> io::Result<At> {
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
        let length = |p: &Placed| (p.interval.name, p.end.saturating_sub(p.begin).max(0) as u64);
        row.iter().map(length)
    };
    *main = main_names(lengths());
    at.columns.push(out.column(Sums::of(lengths(), main).into_iter())?);
    Ok(at)
}

fn messages(out: &mut Out<'_>, all: &[RawMessage]) -> io::Result<At> {
    let mut at = out.times(all.iter().map(|message| message.sent), all.len())?;
    let received: Vec<u64> = all.iter().map(|m| out.since_origin(m.received)).collect();
    at.columns.push(out.column(received.into_iter())?);
    for side in [|m: &RawMessage| m.from, |m: &RawMessage| m.to] {
        at.columns.push(out.column(all.iter().map(|message| side(message).lane))?);
        at.columns.push(out.column(all.iter().map(|message| side(message).index))?);
    }
    at.columns.push(out.column(all.iter().map(|message| message.channel))?);
    Ok(at)
}

/// FNV-1a: tells a file that was cut or mixed up, nothing more.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
