// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records in the buffers of `perf_event_open`: samples of tracepoints with their raw bytes, and
//! losses. Pure: bytes in, values out; the bytes are not trusted.

/// Types of records [perf_event_open(2), "struct perf_event_header"].
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST_SAMPLES: u32 = 13;
/// Type, misc, size.
const HEADER_BYTES: usize = 8;

/// A decoded record. Samples must contain time and raw bytes, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    /// An event: its time, and the bytes that its format describes.
    Event(u64, &'a [u8]),
    /// Number of events lost before this time, if the record contains it.
    Lost(u64, Option<u64>),
    /// A sample that is shorter than its size fields.
    Cut,
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn sample(record: &[u8]) -> Option<Found<'_>> {
    let time = word(record, HEADER_BYTES)?;
    let length = usize::try_from(half(record, HEADER_BYTES + 8)?).ok()?;
    let raw = record.get(HEADER_BYTES + 12..)?.get(..length)?;
    Some(Found::Event(time, raw))
}

fn lost(record: &[u8], at: usize) -> Option<Found<'_>> {
    // It is followed by the trailer of every record other than samples: only the time.
    Some(Found::Lost(word(record, at)?, word(record, at + 8)))
}

/// Visits complete records. Returns the offset at which an invalid size ended the iteration, if any.
#[inline]
pub fn records<'a>(bytes: &'a [u8], mut see: impl FnMut(Found<'a>)) -> Option<usize> {
    let mut at = 0;
    while at < bytes.len() {
        let Some(size) = bytes.get(at + 6..at + 8) else { return Some(at) };
        let size = usize::from(u16::from_ne_bytes([size[0], size[1]]));
        let record = bytes.get(at..at + size).filter(|_| size >= HEADER_BYTES);
        let Some(record) = record else { return Some(at) };
        match half(record, 0) {
            Some(RECORD_SAMPLE) => see(sample(record).unwrap_or(Found::Cut)),
            Some(RECORD_LOST) => see(lost(record, HEADER_BYTES + 8).unwrap_or(Found::Cut)),
            Some(RECORD_LOST_SAMPLES) => see(lost(record, HEADER_BYTES).unwrap_or(Found::Cut)),
            _ => {}
        }
        at += size;
    }
    None
}

#[cfg(test)]
pub(crate) fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = (HEADER_BYTES + body.len()).next_multiple_of(8);
    let mut record = kind.to_ne_bytes().to_vec();
    record.extend([0, 0]);
    record.extend((size as u16).to_ne_bytes());
    record.extend(body);
    record.resize(size, 0);
    record
}

/// An event in the kernel's format.
#[cfg(test)]
pub(crate) fn event(time: u64, raw: &[u8]) -> Vec<u8> {
    let length = (raw.len() as u32).to_ne_bytes();
    record(RECORD_SAMPLE, &[&time.to_ne_bytes()[..], &length, raw].concat())
}

/// A loss in the kernel's format.
#[cfg(test)]
pub(crate) fn loss(count: u64, time: u64) -> Vec<u8> {
    record(RECORD_LOST, &[7u64, count, time].map(u64::to_ne_bytes).concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_losses_are_found_in_their_order_and_others_are_passed_by() {
        let bytes = [
            event(5, b"abc"),
            record(5, &[0; 24]),
            loss(3, 9),
            record(RECORD_LOST_SAMPLES, &2u64.to_ne_bytes()),
            event(11, b""),
        ]
        .concat();
        let mut all = Vec::new();
        assert_eq!(records(&bytes, |found| all.push(found)), None);
        let (abc, none): (&[u8], &[u8]) = (b"abc", b"");
        let wanted = [
            Found::Event(5, abc),
            Found::Lost(3, Some(9)),
            Found::Lost(2, None),
            Found::Event(11, none),
        ];
        assert_eq!(all, wanted);
    }

    #[test]
    fn sizes_are_not_believed() {
        let mut cut = event(5, b"abcdefgh");
        cut[16] = 200;
        let short = record(RECORD_LOST, &[1; 8]);
        let mut all = Vec::new();
        let bytes = [cut, short, event(6, b"x")].concat();
        assert_eq!(records(&bytes, |found| all.push(found)), None);
        assert_eq!(all, [Found::Cut, Found::Cut, Found::Event(6, b"x")]);
        for (size, end) in [(0u16, 0), (7, 0), (4000, 0)] {
            let mut bytes = event(5, b"abc");
            bytes[6..8].copy_from_slice(&size.to_ne_bytes());
            assert_eq!(records(&bytes, |_| panic!()), Some(end));
        }
        assert_eq!(records(&event(5, b"abc")[..7], |_| panic!()), Some(0));
        // Arbitrary bytes must not cause an endless loop.
        let mut seed = 1u32;
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..200)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (seed >> 24) as u8 & if seed & 0x100 == 0 { 0x0f } else { 0xff }
                })
                .collect();
            records(&bytes, |_| {});
        }
    }
}
