// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Losses counted by the producer, and unreadable bytes.

use std::fmt;

use lateralis_units::Nanos;

use crate::StreamIndex;

/// A stretch of the time line; an end that is not known is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// Not before this.
    pub begin: Option<Nanos>,
    /// Not after this.
    pub end: Option<Nanos>,
}

impl Interval {
    /// Exchanges ends that are in the wrong order. The times that bound a loss or damage come from packets
    /// that can contradict each other: between the two it was, whichever comes first.
    #[must_use]
    pub fn ordered(self) -> Self {
        match (self.begin, self.end) {
            (Some(begin), Some(end)) if begin > end => Self { begin: self.end, end: self.begin },
            _ => self,
        }
    }
}

/// Why events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossCause {
    /// The ring was full because the reader lagged.
    Full,
    /// The record was larger than a packet.
    TooBig,
    /// The writer gave up after being disturbed too often.
    Contended,
    /// The thread had no ring to write to.
    NoRing,
    /// Whole packets are missing: their numbers jump.
    Packets,
    /// The producer counts losses but not their causes.
    Discarded,
    /// The recorder had read them and could not write them: the disk was full, or a cap on its
    /// space was reached.
    NotWritten,
    /// The recording was stopped, and started again later.
    Stopped,
    /// The recording ended before the programs did.
    Ended,
    /// Events, processes or names found no place in the tables of the producer.
    NoPlace,
}

impl LossCause {
    /// The name used in listings and reports: `full`, `too_big`, …
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::TooBig => "too_big",
            Self::Contended => "contended",
            Self::NoRing => "no_ring",
            Self::Packets => "packets",
            Self::Discarded => "discarded",
            Self::NotWritten => "not_written",
            Self::Stopped => "stopped",
            Self::Ended => "ended",
            Self::NoPlace => "no_place",
        }
    }

    /// What happened, in words for people.
    #[must_use]
    pub fn described(self) -> &'static str {
        match self {
            Self::Full => "ring full",
            Self::TooBig => "longer than a packet",
            Self::Contended => "restarted too often",
            Self::NoRing => "no ring",
            Self::Packets => "whole packets missing",
            Self::Discarded => "discarded",
            Self::NotWritten => "read, but could not be written",
            Self::Stopped => "the recording was stopped",
            Self::Ended => "the recording had ended, the programs went on",
            Self::NoPlace => "no place in the tables of the program",
        }
    }
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Events that were not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// In which stream.
    pub stream: StreamIndex,
    /// Cause of the loss.
    pub cause: LossCause,
    /// Number of events (packets for [`LossCause::Packets`]); `None` if unknown: the producer only
    /// knows that there were some, or its counter began before the recording.
    pub count: Option<u64>,
    /// Interval in which the events were lost.
    pub interval: Interval,
}

/// What is wrong with some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageReason {
    /// The file ends before the packet does.
    Truncated {
        /// Bytes the packet says it has beyond the end of the file; `None`
        /// where not even its header is whole.
        missing_bytes: Option<u64>,
    },
    /// No packet begins here: the magic number is another.
    BadMagic {
        /// Description of the content.
        found: u32,
    },
    /// The packet belongs to another trace.
    ForeignUuid,
    /// The packet is of a stream class that the metadata does not describe.
    UnknownStreamClass {
        /// Its number.
        id: u64,
    },
    /// The sizes of the packet contradict each other.
    BadPacketSize {
        /// Bits of the whole packet.
        packet_bits: u64,
        /// Bits of its content.
        content_bits: u64,
    },
    /// The producer never wrote the sizes of the packet, as one that was killed: the events that
    /// can be decoded are read, how many followed is unknown.
    NeverClosed,
    /// The checksum of the packet is another.
    BadChecksum {
        /// In the packet.
        stored: u32,
        /// Computed over the bytes.
        computed: u32,
    },
    /// An event of a class that the metadata does not describe; what follows
    /// in its packet cannot be read.
    UnknownEventClass {
        /// Its number.
        id: u64,
    },
    /// A field reaches beyond the content of its packet.
    FieldBeyondContent,
    /// A selector chooses no option of its variant.
    NoSuchOption {
        /// Its value.
        selector: i128,
    },
    /// A value that its class forbids.
    BadValue {
        /// Which rule.
        rule: &'static str,
    },
    /// The time stamps of the packet contradict each other or its events.
    BadTime,
    /// An event whose time is not between those at which its packet begins and ends; what follows in the
    /// packet cannot be trusted.
    OutsidePacket,
    /// The packet begins before the one that lies before it. Where what packets say agrees on an
    /// order, their events come in that; nothing is lost then.
    OutOfOrder,
    /// Whole packets that the recorder wrote are not in the file, or the file is not there.
    Missing {
        /// Number of packets; `None` if unknown.
        packets: Option<u64>,
        /// Number of events in them; `None` if unknown.
        events: Option<u64>,
    },
}

impl fmt::Display for DamageReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { missing_bytes: Some(bytes) } => {
                write!(f, "the file ends {bytes} bytes before its packet")
            }
            Self::Truncated { missing_bytes: None } => {
                f.write_str("the file ends inside the header of a packet")
            }
            Self::BadMagic { found } => write!(f, "no packet begins here: magic {found:#010x}"),
            Self::ForeignUuid => f.write_str("the packet belongs to another trace: other UUID"),
            Self::UnknownStreamClass { id } => write!(f, "unknown stream class {id}"),
            Self::BadPacketSize { packet_bits, content_bits } => write!(
                f,
                "impossible sizes: packet of {packet_bits} bits, content of {content_bits} bits"
            ),
            Self::NeverClosed => f.write_str(
                "the packet was never closed: it has the events that could be decoded, \
                 there may have been more",
            ),
            Self::BadChecksum { stored, computed } => {
                write!(f, "wrong checksum: stored {stored:#010x}, computed {computed:#010x}")
            }
            Self::UnknownEventClass { id } => write!(f, "unknown event class {id}"),
            Self::FieldBeyondContent => f.write_str("a field reaches beyond its packet"),
            Self::NoSuchOption { selector } => {
                write!(f, "the selector {selector} chooses no option of its variant")
            }
            Self::BadValue { rule } => write!(f, "forbidden value: {rule}"),
            Self::BadTime => f.write_str("time runs backwards in the packet"),
            Self::OutsidePacket => {
                f.write_str("an event outside the times at which its packet begins and ends")
            }
            Self::OutOfOrder => f.write_str("the packet lies behind a later one"),
            Self::Missing { packets, events } => {
                let number = |count: Option<u64>, unit: &str| match count {
                    Some(1) => format!("1 {unit}"),
                    Some(count) => format!("{count} {unit}s"),
                    None => format!("an unknown number of {unit}s"),
                };
                let (packets, events) = (number(*packets, "packet"), number(*events, "event"));
                write!(f, "missing: {packets} with {events} that the recorder wrote")
            }
        }
    }
}

/// Bytes of a file that could not be read as what they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Name of the file, as given to the reader.
    pub file: String,
    /// First byte.
    pub begin_bytes: u64,
    /// Byte after the last.
    pub end_bytes: u64,
    /// What is wrong.
    pub reason: DamageReason,
    /// Time of the events in it, as far as the neighbours determine it.
    pub interval: Interval,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, begin_bytes, end_bytes, reason, .. } = self;
        write!(f, "{file}: bytes {begin_bytes}..{end_bytes}: {reason}")
    }
}
