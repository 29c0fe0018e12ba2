// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Storage for collected items that do not fit into memory.

use std::io;

use crate::building::{Interval, PointRef, RawMessage, RawPoint, numbers};
use crate::column::Number;
use crate::{NONE, UNFINISHED};

/// Temporary storage for bytes: a file, or memory.
pub trait Spool {
    /// Appends bytes; returns their position.
    ///
    /// # Errors
    /// If there is no room.
    fn append(&mut self, bytes: &[u8]) -> io::Result<u64>;

    /// Reads appended bytes.
    ///
    /// # Errors
    /// If they are no longer available.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

impl Spool for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.len() as u64;
        self.extend_from_slice(bytes);
        Ok(at)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let begin = usize::try_from(at).unwrap_or(usize::MAX);
        let bytes = begin.checked_add(into.len()).and_then(|end| self.get(begin..end));
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// An item of fixed size in a spool.
pub(crate) trait Packed: Sized {
    /// Size in bytes.
    const BYTES: usize;
    fn pack(&self, out: &mut Vec<u8>);
    /// From its bytes.
    fn unpack(bytes: &[u8]) -> Self;
}

fn read<T: Number>(bytes: &[u8], at: usize) -> T {
    bytes.get(at..at + T::BYTES).map_or_else(T::default, T::read)
}

impl Packed for RawPoint {
    const BYTES: usize = 14;

    fn pack(&self, out: &mut Vec<u8>) {
        (self.time as u64).write(out);
        self.thread.write(out);
        self.class.write(out);
    }

    fn unpack(bytes: &[u8]) -> Self {
        Self { time: read::<u64>(bytes, 0) as i64, thread: read(bytes, 8), class: read(bytes, 12) }
    }
}

impl Packed for (i64, f64) {
    const BYTES: usize = 16;

    fn pack(&self, out: &mut Vec<u8>) {
        (self.0 as u64).write(out);
        self.1.write(out);
    }

    fn unpack(bytes: &[u8]) -> Self {
        (read::<u64>(bytes, 0) as i64, read(bytes, 8))
    }
}

impl Packed for RawMessage {
    const BYTES: usize = 36;

    fn pack(&self, out: &mut Vec<u8>) {
        (self.sent as u64).write(out);
        (self.received as u64).write(out);
        let ends = [self.from.lane, self.from.index, self.to.lane, self.to.index, self.channel];
        ends.into_iter().for_each(|number| number.write(out));
    }

    fn unpack(bytes: &[u8]) -> Self {
        Self {
            sent: read::<u64>(bytes, 0) as i64,
            received: read::<u64>(bytes, 8) as i64,
            from: PointRef { lane: read(bytes, 16), index: read(bytes, 20) },
            to: PointRef { lane: read(bytes, 24), index: read(bytes, 28) },
            channel: read(bytes, 32),
        }
    }
}

impl Packed for Interval {
    const BYTES: usize = 41;

    fn pack(&self, out: &mut Vec<u8>) {
        (self.begin as u64).write(out);
        (self.end.unwrap_or_default() as u64).write(out);
        let [from, to] = [numbers(self.from), numbers(self.to)];
        [self.name, self.thread, from[0], from[1], to[0], to[1]]
            .into_iter()
            .for_each(|number| number.write(out));
        let unfinished = if self.end.is_none() { UNFINISHED } else { 0 };
        (unfinished | self.quality << 1).write(out);
    }

    fn unpack(bytes: &[u8]) -> Self {
        let flags: u8 = read(bytes, 40);
        let point = |at: usize| {
            let point = PointRef { lane: read(bytes, at), index: read(bytes, at + 4) };
            (point.lane != NONE).then_some(point)
        };
        Self {
            begin: read::<u64>(bytes, 0) as i64,
            end: (flags & UNFINISHED == 0).then_some(read::<u64>(bytes, 8) as i64),
            name: read(bytes, 16),
            thread: read(bytes, 20),
            from: point(24),
            to: point(32),
            quality: flags >> 1,
        }
    }
}

/// Bytes of a chunk in memory: a trace may have thousands of lists.
const PIECE_BYTES: usize = 1 << 15;

/// A list of which only the last chunk is in memory.
#[derive(Debug)]
pub(crate) struct Pieces<T> {
    open: Vec<T>,
    /// Position and length of each chunk.
    spooled: Vec<(u64, usize)>,
    count: usize,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self { open: Vec::new(), spooled: Vec::new(), count: 0 }
    }
}

impl<T: Packed> Pieces<T> {
    pub(crate) fn push(&mut self, item: T, spool: &mut dyn Spool) -> io::Result<()> {
        self.open.push(item);
        self.count += 1;
        if self.open.len() * T::BYTES < PIECE_BYTES {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(PIECE_BYTES + T::BYTES);
        self.open.iter().for_each(|item| item.pack(&mut bytes));
        self.spooled.push((spool.append(&bytes)?, self.open.len()));
        self.open.clear();
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// All items, in memory.
    pub(crate) fn all(self, spool: &dyn Spool) -> io::Result<Vec<T>> {
        let mut all = Vec::with_capacity(self.count);
        let mut bytes = Vec::new();
        for (at, count) in self.spooled {
            bytes.resize(count * T::BYTES, 0);
            spool.read(at, &mut bytes)?;
            all.extend(bytes.chunks_exact(T::BYTES).map(T::unpack));
        }
        all.extend(self.open);
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spooled_comes_back_in_order() {
        let point = |lane, index| Some(PointRef { lane, index });
        let interval = |n: u32| Interval {
            begin: -5 + i64::from(n),
            end: (!n.is_multiple_of(3)).then_some(i64::from(n) - 9),
            name: n,
            thread: n + 1,
            from: point(n, 7),
            to: (!n.is_multiple_of(5)).then_some(PointRef { lane: 1, index: n }),
            quality: (n % 3) as u8,
        };
        let all: Vec<Interval> = (0..5000).map(interval).collect();
        let (mut spool, mut pieces) = (Vec::new(), Pieces::default());
        all.iter().for_each(|interval| pieces.push(*interval, &mut spool).unwrap());
        assert!(spool.len() > 4000 * Interval::BYTES && pieces.len() == 5000);
        assert_eq!(pieces.all(&spool).unwrap(), all);

        let levels: Vec<(i64, f64)> = (0..9000).map(|n| (-n, n as f64 / 3.0)).collect();
        let (mut spool, mut pieces) = (Vec::new(), Pieces::default());
        levels.iter().for_each(|level| pieces.push(*level, &mut spool).unwrap());
        spool.pop();
        assert!(pieces.all(&spool).is_err(), "a spool that was cut");
        let message = RawMessage {
            sent: -1,
            received: i64::MAX,
            from: PointRef { lane: 1, index: 2 },
            to: PointRef { lane: 3, index: 4 },
            channel: 5,
        };
        let point = RawPoint { time: i64::MIN, thread: 6, class: 7 };
        let (mut one, mut other) = (Vec::new(), Vec::new());
        message.pack(&mut one);
        point.pack(&mut other);
        assert_eq!((one.len(), other.len()), (RawMessage::BYTES, RawPoint::BYTES));
        let (message_back, point_back) = (RawMessage::unpack(&one), RawPoint::unpack(&other));
        assert_eq!(format!("{message_back:?}{point_back:?}"), format!("{message:?}{point:?}"));
    }
}
