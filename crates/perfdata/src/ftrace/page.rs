// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pages of the kernel's ring buffer.
//!
//! ```text
//! page    u64 time, long commit, records …
//! record  u32: 5 bits of type or length, 27 bits of time since the previous record
//!         1…28  that many words of data follow
//!         0     a word with the length follows, then data
//!         29    padding: to the end of the page, or the number of bytes in the next word
//!         30    27 + 32 bits of time
//!         31    59 bits of absolute time
//! ```
//!
//! Sources: Documentation/trace/ring-buffer-design.rst and
//! include/linux/ring_buffer.h of Linux; `events/header_page` and
//! `events/header_event` in tracefs.

use lateralis_model::{ByteOrder, DamageReason};

use crate::wire::{Wire, unsigned};

/// Bits of the commit word that count bytes; the others are flags.
const COMMIT_MASK: u64 = (1 << 27) - 1;
/// Events are missing before this page.
const MISSED_EVENTS: u64 = 1 << 31;
/// The number of missing events is stored after the data of the page.
const MISSED_STORED: u64 = 1 << 30;
/// Bits of an absolute time stamp.
const STAMP_BITS: u32 = 59;

/// Layout of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// Byte order of all numbers.
    pub order: ByteOrder,
    /// First byte of the commit word.
    pub commit_offset: usize,
    /// Its size: 4 or 8 bytes, the kernel's `long`.
    pub commit_bytes: usize,
    /// First byte of the records.
    pub data_offset: usize,
}

impl PageLayout {
    /// Layout of every kernel since 2.6.32, for a `long` of 4 or 8 bytes.
    #[must_use]
    pub fn usual(order: ByteOrder, long_bytes: u32) -> Self {
        let commit_bytes = if long_bytes == 4 { 4 } else { 8 };
        Self { order, commit_offset: 8, commit_bytes, data_offset: 8 + commit_bytes }
    }

    /// Parses the text of `events/header_page`.
    ///
    /// Errors: `None` if a field is missing or its size is impossible.
    #[must_use]
    pub fn parse(text: &str, order: ByteOrder) -> Option<Self> {
        let place = |name: &str| {
            let line = text.lines().find(|line| {
                let declared = line.split(';').next().unwrap_or("");
                declared.split_whitespace().last() == Some(name)
            })?;
            let number = |key: &str| {
                let part = line.split(';').find_map(|part| part.trim().strip_prefix(key))?;
                part.parse::<u16>().ok()
            };
            Some((usize::from(number("offset:")?), usize::from(number("size:")?)))
        };
        let (commit_offset, commit_bytes) = place("commit")?;
        let (data_offset, _) = place("data")?;
        let stamp = place("timestamp")?;
        let possible = stamp == (0, 8)
            && matches!(commit_bytes, 4 | 8)
            && commit_offset >= 8
            && data_offset >= commit_offset + commit_bytes;
        possible.then_some(Self { order, commit_offset, commit_bytes, data_offset })
    }

    /// Number of bytes of records, according to the page header.
    #[must_use]
    pub fn data_bytes(&self, page: &[u8]) -> usize {
        let commit = page.get(self.commit_offset..self.commit_offset + self.commit_bytes);
        let commit = commit.and_then(|bytes| unsigned(bytes, self.order)).unwrap_or(0);
        (commit & COMMIT_MASK) as usize
    }
}

/// Properties of a page besides its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageEnd {
    /// Time at its start, in ticks of the trace clock.
    pub begin: u64,
    /// Time of the last record.
    pub end: u64,
    /// Whether events are missing before it, and their number if the kernel counted them.
    pub missed: Option<Option<u64>>,
    /// First byte that could not be read, and the reason.
    pub damage: Option<(usize, DamageReason)>,
}

/// Calls `record` with time, data and position of each record of a page, until it returns false.
///
/// Cost: one pass over the page.
pub fn records(
    page: &[u8],
    layout: PageLayout,
    mut record: impl FnMut(u64, &[u8], usize) -> bool,
) -> PageEnd {
    let mut end = PageEnd::default();
    let commit_end = layout.commit_offset + layout.commit_bytes;
    let head = (Wire::new(page, layout.order).u64(), page.get(layout.commit_offset..commit_end));
    let (Some(begin), Some(commit)) = head else {
        end.damage = Some((0, DamageReason::Truncated { missing_bytes: None }));
        return end;
    };
    let commit = unsigned(commit, layout.order).unwrap_or(0);
    (end.begin, end.end) = (begin, begin);
    let length = (commit & COMMIT_MASK) as usize;
    let data_end = layout.data_offset.saturating_add(length);
    if commit & MISSED_EVENTS != 0 {
        let stored = page.get(data_end..data_end + layout.commit_bytes);
        let stored = stored.filter(|_| commit & MISSED_STORED != 0);
        end.missed = Some(stored.and_then(|bytes| unsigned(bytes, layout.order)));
    }
    let Some(data) = page.get(..data_end) else {
        let (packet_bits, content_bits) = (page.len() as u64 * 8, data_end as u64 * 8);
        let reason = DamageReason::BadPacketSize { packet_bits, content_bits };
        end.damage = Some((layout.commit_offset, reason));
        return end;
    };
    let mut wire = Wire::at(data, layout.data_offset as u64, layout.order);
    while wire.left() >= 4 {
        let at = wire.position();
        if step(&mut wire, layout.order, &mut end.end, &mut record).is_none() {
            end.damage = Some((at, DamageReason::FieldBeyondContent));
            break;
        }
    }
    end
}

/// Iterates over the records of a page.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    at: usize,
    end: usize,
    time: u64,
}

impl Walk {
    /// Starts at the first record; there are none if the length in the page is 0 or impossible.
    pub fn new(page: &[u8], layout: PageLayout) -> Self {
        let commit = page.get(layout.commit_offset..layout.commit_offset + layout.commit_bytes);
        let commit = commit.and_then(|bytes| unsigned(bytes, layout.order)).unwrap_or(0);
        let time = Wire::new(page, layout.order).u64().unwrap_or(0);
        let at = layout.data_offset;
        let end = at.saturating_add((commit & COMMIT_MASK) as usize);
        let end = if end <= page.len() { end } else { at };
        Self { at, end, time }
    }

    /// Time, first byte and end of the next record.
    #[inline]
    pub fn next(&mut self, page: &[u8], order: ByteOrder) -> Option<(u64, usize, usize)> {
        let mut wire = Wire::at(page.get(..self.end)?, self.at as u64, order);
        let mut found = None;
        while found.is_none() && wire.left() >= 4 {
            let mut take = |time, record: &[u8], at| {
                found = Some((time, at, at + record.len()));
                true
            };
            if step(&mut wire, order, &mut self.time, &mut take).is_none() {
                // Like `records`, stops at the first unreadable record.
                self.at = self.end;
                return None;
            }
        }
        self.at = wire.position();
        found
    }
}

/// Reads one record; `None` if it reaches beyond the data, or `record` returns false.
#[inline]
fn step(
    wire: &mut Wire<'_>,
    order: ByteOrder,
    time: &mut u64,
    record: &mut impl FnMut(u64, &[u8], usize) -> bool,
) -> Option<()> {
    let head = wire.u32()?;
    let (kind, delta) = match order {
        ByteOrder::Little => (head & 31, u64::from(head >> 5)),
        ByteOrder::Big => (head >> 27, u64::from(head & ((1 << 27) - 1))),
    };
    match kind {
        29 if delta == 0 => {
            wire.take(wire.left());
        }
        29 => {
            // A discarded record: its time counts, its data does not.
            *time = time.wrapping_add(delta);
            let length = wire.u32()?.checked_sub(4)?;
            wire.take(length as usize)?;
        }
        30 => {
            let high = u64::from(wire.u32()?);
            *time = time.wrapping_add(high << 27 | delta);
        }
        31 => {
            let stamp = u64::from(wire.u32()?) << 27 | delta;
            // The highest bits are those of the previous time.
            let high = *time >> STAMP_BITS << STAMP_BITS;
            let all = high | stamp;
            *time = if all < *time { all.wrapping_add(1 << STAMP_BITS) } else { all };
        }
        _ => {
            *time = time.wrapping_add(delta);
            let length = match kind {
                0 => wire.u32()?.checked_sub(4)?,
                words => words * 4,
            };
            let at = wire.position();
            let data = wire.take(length as usize)?;
            // Records are word-aligned; the last may end with the data.
            let padding = (length.next_multiple_of(4) - length) as usize;
            wire.take(padding.min(wire.left()))?;
            record(*time, data, at).then_some(())?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn words(page: &mut Vec<u8>, words: &[u32], order: ByteOrder) {
        for word in words {
            page.extend(match order {
                ByteOrder::Little => word.to_le_bytes(),
                ByteOrder::Big => word.to_be_bytes(),
            });
        }
    }

    fn head(kind: u32, delta: u32, order: ByteOrder) -> u32 {
        match order {
            ByteOrder::Little => delta << 5 | kind,
            ByteOrder::Big => kind << 27 | delta,
        }
    }

    fn page(time: u64, data: &[u32], flags: u64, order: ByteOrder) -> Vec<u8> {
        let mut page = Vec::new();
        let commit = (data.len() as u64 * 4) | flags;
        for number in [time, commit] {
            page.extend(match order {
                ByteOrder::Little => number.to_le_bytes(),
                ByteOrder::Big => number.to_be_bytes(),
            });
        }
        words(&mut page, data, order);
        page
    }

    fn read(page: &[u8], order: ByteOrder) -> (Vec<(u64, usize)>, PageEnd) {
        let mut seen = Vec::new();
        let layout = PageLayout::parse(HEADER_PAGE, order).unwrap();
        let end = records(page, layout, |time, data, _| {
            seen.push((time, data.len()));
            true
        });
        (seen, end)
    }

    #[test]
    fn every_kind_of_record_in_both_orders() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let head = |kind, delta| head(kind, delta, order);
            let data = [
                head(2, 5),
                1,
                2,
                head(30, 1),
                2,
                head(0, 3),
                4 + 8,
                7,
                8,
                head(29, 1),
                8,
                0,
                head(31, 0),
                1 << 10,
                head(1, 0),
                9,
                head(29, 0),
                77,
            ];
            let (seen, end) = read(&page(100, &data, 0, order), order);
            let extended = 105 + (2u64 << 27) + 1;
            assert_eq!(seen, [(105, 8), (extended + 3, 8), (1 << 37, 4)]);
            assert_eq!((end.damage, end.missed, end.end), (None, None, 1 << 37));
        }
    }

    #[test]
    fn absolute_times_take_their_highest_bits_from_the_time_before() {
        let order = ByteOrder::Little;
        let data = [head(31, 7, order), 0, head(1, 0, order), 0];
        let high = 3u64 << 59;
        assert_eq!(read(&page(high | 5, &data, 0, order), order).0, [(high | 7, 4)]);
        assert_eq!(read(&page(high | 9, &data, 0, order), order).0, [((4 << 59) | 7, 4)]);
    }

    #[test]
    fn missed_events_are_told_with_their_number_where_it_is_stored() {
        let order = ByteOrder::Little;
        let data = [head(1, 0, order), 0];
        let mut bytes = page(1, &data, MISSED_EVENTS, order);
        assert_eq!(read(&bytes, order).1.missed, Some(None));
        bytes = page(1, &data, MISSED_EVENTS | MISSED_STORED, order);
        bytes.extend(42u64.to_le_bytes());
        let (seen, end) = read(&bytes, order);
        assert_eq!((seen.len(), end.missed), (1, Some(Some(42))));
    }

    #[test]
    fn records_before_damage_are_delivered() {
        let order = ByteOrder::Little;
        let data = [head(1, 1, order), 0, head(28, 1, order), 0];
        let (seen, end) = read(&page(0, &data, 0, order), order);
        assert_eq!(seen, [(1, 4)]);
        assert_eq!(end.damage, Some((24, DamageReason::FieldBeyondContent)));
        let (seen, end) = read(&page(0, &[head(0, 1, order), 3], 0, order), order);
        assert!(seen.is_empty() && end.damage.is_some());
        let (seen, end) = read(&page(0, &[], 8, order), order);
        assert!(seen.is_empty() && end.damage.is_some());
        assert!(read(&[0; 15], order).1.damage.is_some());
    }
}
