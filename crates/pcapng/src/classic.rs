// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Classic pcap: one header, then packets, nothing that marks where one begins.

use lateralis_model::{DamageReason, EnvValue, MemoryTrace};

use crate::blocks::Order;
use crate::interface::Resolution;
use crate::sink::{Packet, Sink};

const HEADER_BYTES: usize = 24;

/// No interface captures more of a packet (libpcap's own bound).
const LONGEST_PACKET: u32 = 256 * 1024;

/// A day and an hour: largest difference between times of neighbours at which bytes after damage
/// are accepted as a packet.
const NEAR_SECONDS: u32 = 25 * 3600;

#[derive(Debug, Clone, Copy)]
struct Kind {
    order: Order,
    resolution: Resolution,
    /// Kuznetzov's variant: interface, protocol and type of packet follow the
    /// lengths.
    modified: bool,
}

impl Kind {
    fn of(first: &[u8]) -> Option<Self> {
        [Order::Little, Order::Big].into_iter().find_map(|order| {
            let (resolution, modified) = match order.u32(first, 0)? {
                0xa1b2_c3d4 => (Resolution::Decimal(6), false),
                0xa1b2_3c4d => (Resolution::Decimal(9), false),
                0xa1b2_cd34 => (Resolution::Decimal(6), true),
                _ => return None,
            };
            Some(Self { order, resolution, modified })
        })
    }

    fn record_bytes(self) -> usize {
        if self.modified { 24 } else { 16 }
    }

    fn fractions(self) -> u32 {
        if self.resolution == Resolution::MICROSECONDS { 1_000_000 } else { 1_000_000_000 }
    }
}

pub(crate) fn sniff(first: &[u8]) -> bool {
    Kind::of(first).is_some()
}

const FRACTION: &str = "the fraction of a time is below one second";

/// Packets that are looked at to see whether a file of microseconds has nanoseconds.
const LOOKED_AT: usize = 10_000;

/// Whether most packets of a file of microseconds have fractions that are only possible as
/// nanoseconds. Some writers take the wrong magic number (ntopng#5728).
fn is_in_nanoseconds(bytes: &[u8], kind: Kind) -> bool {
    let (mut at, mut count, mut beyond) = (HEADER_BYTES, 0, 0);
    while count < LOOKED_AT
        && let Some(record) = Record::at(bytes, at, kind)
        && record.captured <= LONGEST_PACKET
        && record.fraction < 1_000_000_000
    {
        count += 1;
        beyond += usize::from(record.fraction >= 1_000_000);
        at = at.saturating_add(kind.record_bytes() + record.captured as usize);
    }
    count < 2 * beyond
}

/// The header of a packet.
#[derive(Debug, Clone, Copy)]
struct Record {
    seconds: u32,
    fraction: u32,
    captured: u32,
    original: u32,
    interface: u32,
    flags: u32,
}

impl Record {
    fn at(bytes: &[u8], at: usize, kind: Kind) -> Option<Self> {
        let word = |index: usize| kind.order.u32(bytes, at + 4 * index);
        let mut record = Self {
            seconds: word(0)?,
            fraction: word(1)?,
            captured: word(2)?,
            original: word(3)?,
            interface: 0,
            flags: 0,
        };
        if kind.modified {
            record.interface = word(4)?;
            word(5)?;
            // Types of packets as Linux numbers them, as bits of epb_flags:
            // direction in 0..2, reception type from 2 on.
            record.flags = match bytes[at + 22] {
                0 => 1 | 1 << 2,
                1 => 1 | 3 << 2,
                2 => 1 | 2 << 2,
                3 => 1 | 4 << 2,
                4 => 2,
                _ => 0,
            };
        }
        Some(record)
    }

    /// Which rule it breaks.
    fn fault(&self, kind: Kind) -> Option<&'static str> {
        if self.captured > LONGEST_PACKET {
            Some("no packet is longer than 262144 bytes")
        } else if self.fraction >= kind.fractions() {
            Some(FRACTION)
        } else {
            None
        }
    }
}

pub(crate) fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> MemoryTrace {
    let mut sink = Sink::new("pcap", name, limit_bytes);
    let Some(mut kind) = Kind::of(bytes) else {
        return sink.finish();
    };
    if kind.resolution == Resolution::MICROSECONDS && is_in_nanoseconds(bytes, kind) {
        kind.resolution = Resolution::Decimal(9);
        sink.builder.remark(format!(
            "{name}: times are read as nanoseconds: as microseconds, which the magic number says, \
             most would have a second and more behind the point"
        ));
    }
    let mut late_fractions = 0;
    let timing = sink.timing(kind.resolution, 0);
    if bytes.len() < HEADER_BYTES {
        let missing_bytes = Some((HEADER_BYTES - bytes.len()) as u64);
        sink.damage(0, bytes.len(), DamageReason::Truncated { missing_bytes });
        return sink.finish();
    }
    // The upper half of the word describes checksums at the end of packets.
    let link_type = kind.order.u32(bytes, 20).unwrap_or(0) as u16;
    let mut at = HEADER_BYTES;
    let mut last_seconds = None;
    let mut described = None;
    while at < bytes.len() {
        let fault = match Record::at(bytes, at, kind) {
            None => Err(DamageReason::Truncated { missing_bytes: None }),
            Some(mut record) => {
                let end = at + kind.record_bytes() + record.captured as usize;
                let mut fault = record.fault(kind);
                // If a packet follows, or the end, nothing but the fraction is wrong.
                let follows = || {
                    let next = Record::at(bytes, end, kind);
                    let is_near = |next: Record| {
                        next.fault(kind).is_none()
                            && next.seconds.abs_diff(record.seconds) <= NEAR_SECONDS
                    };
                    end == bytes.len() || next.is_some_and(is_near)
                };
                if fault == Some(FRACTION) && follows() {
                    record.fraction = kind.fractions() - 1;
                    late_fractions += 1;
                    fault = None;
                }
                match fault {
                    Some(rule) => Err(DamageReason::BadValue { rule }),
                    None if end > bytes.len() => {
                        let missing_bytes = Some((end - bytes.len()) as u64);
                        Err(DamageReason::Truncated { missing_bytes })
                    }
                    None => Ok((record, end)),
                }
            }
        };
        let (record, end) = match fault {
            Ok(whole) => whole,
            Err(reason) => {
                let next = resync(bytes, at, kind, last_seconds);
                sink.damage(at, next, reason);
                at = next;
                continue;
            }
        };
        last_seconds = Some(record.seconds);
        let interface = format!("interface {}", record.interface);
        if described.is_none_or(|known| known != record.interface) {
            let key = format!("interface.{interface}.link_type");
            sink.describe(key, EnvValue::Integer(link_type.into()));
            described = Some(record.interface);
        }
        let raw =
            u64::from(record.seconds) * u64::from(kind.fractions()) + u64::from(record.fraction);
        let packet = Packet {
            interface: &interface,
            link_type,
            original_bytes: record.original,
            flags: record.flags,
            comment: None,
            data: &bytes[at + kind.record_bytes()..end],
        };
        let stream = sink.stream(timing, &interface);
        let added = stream.map(|stream| sink.packet(stream, Some((timing, raw)), &packet));
        if !matches!(added, Some(Ok(()))) {
            sink.builder.remark(format!(
                "{name}: the limit of memory is reached at byte {at}; the rest is not read"
            ));
            break;
        }
        at = end;
    }
    if late_fractions > 0 {
        sink.builder.remark(format!(
            "{name}: {late_fractions} packets have a fraction of a second and more behind the \
             point: they stand at the end of their second"
        ));
    }
    sink.finish()
}

/// The next place where a packet may begin: near the last in time, of possible
/// length, and followed by another such or by the end.
///
/// Cost: linear.
fn resync(bytes: &[u8], from: usize, kind: Kind, last_seconds: Option<u32>) -> usize {
    let Some(last_seconds) = last_seconds else {
        return bytes.len();
    };
    let end_of = |at: usize| {
        let record = Record::at(bytes, at, kind)?;
        let near = record.seconds.abs_diff(last_seconds) <= NEAR_SECONDS;
        let sized = record.captured <= record.original && record.original <= LONGEST_PACKET;
        let good = near && sized && record.original > 0 && record.fault(kind).is_none();
        good.then_some(at + kind.record_bytes() + record.captured as usize)
    };
    let plausible =
        |&at: &usize| end_of(at).is_some_and(|end| end == bytes.len() || end_of(end).is_some());
    (from + 1..bytes.len()).find(plausible).unwrap_or(bytes.len())
}
