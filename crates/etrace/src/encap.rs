// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets in a stream of bytes: "Unformatted Trace & Diagnostic Data Packet Encapsulation for RISC-V",
//! which the trace specification recommends.

use crate::bits::{Reader, Writer as Fields};
use crate::packet::{self, Cause, DoesNotFit, Packet};
use crate::parameters::{Parameters, low_bits};
use alloc::vec::Vec;
use core::fmt;

/// Widths of the fields around a payload; discovered, and fixed for a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Format {
    /// Bits of `srcID`, at most 16.
    pub source_bits: u8,
    /// Bytes of `timestamp`, at most 8; 0 if there is none.
    pub time_bytes: u8,
    /// Bits of `type`, at most 8; 0 if there are only instruction traces.
    pub type_bits: u8,
}

impl Format {
    fn is_valid(&self) -> bool {
        self.source_bits <= 16 && self.time_bytes <= 8 && self.type_bits <= 8
    }

    /// Number of null bytes after which a packet begins (section "Synchronization").
    pub fn sync_length(&self) -> usize {
        31 + usize::from(self.time_bytes) + usize::from(self.source_bits / 8)
    }
}

/// A packet and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    /// Flow indicator.
    pub flow: u8,
    /// Source.
    pub source: u16,
    /// Time stamp, if the packet has one.
    pub time: Option<u64>,
    /// The packet; `None` if its type is not instruction trace.
    pub packet: Option<Packet>,
}

/// Bytes that are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// The first byte.
    pub start: usize,
    /// Where reading continues: the byte after the packet, or the end.
    pub resume: usize,
    /// Why. `None` if the bytes end within the packet.
    pub cause: Option<Cause>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            Some(cause) => write!(f, "{cause}")?,
            None => f.write_str("a packet is cut off")?,
        }
        write!(f, " at byte {}; reading continues at {}", self.start, self.resume)
    }
}

impl core::error::Error for Error {}

/// Iterates over the packets of a stream; null packets are skipped.
///
/// After an error the lengths are still followed. If one of them was damaged, packets begin at the
/// wrong places until the next run of [`Format::sync_length`] null packets, which no packet contains.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    parameters: &'a Parameters,
    format: Format,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Packets<'a> {
    /// The first byte must begin a packet. Returns `None` if a width of the format or a parameter is
    /// out of its range.
    pub fn new(parameters: &'a Parameters, format: Format, bytes: &'a [u8]) -> Option<Self> {
        let valid = format.is_valid() && parameters.check().is_ok();
        valid.then_some(Self { parameters, format, bytes, at: 0 })
    }

    /// Begins after the first synchronisation sequence, for a stream whose start was overwritten.
    pub fn synced(parameters: &'a Parameters, format: Format, bytes: &'a [u8]) -> Option<Self> {
        let mut packets = Self::new(parameters, format, bytes)?;
        let mut nulls = 0;
        let start = bytes.iter().position(|byte| {
            let found = nulls >= format.sync_length() && byte & 0x1f != 0;
            nulls = if byte & 0x1f == 0 { nulls + 1 } else { 0 };
            found
        });
        packets.at = start.unwrap_or(bytes.len());
        Some(packets)
    }

    fn frame(&self, start: usize, header: u8) -> Result<At, Error> {
        let stamped = header & 0x80 != 0;
        let time_bytes = if stamped { usize::from(self.format.time_bytes) } else { 0 };
        let length =
            usize::from(header & 0x1f) + usize::from(self.format.source_bits / 8) + time_bytes;
        let end = start + 1 + length;
        let Some(body) = self.bytes.get(start + 1..end) else {
            return Err(Error { start, resume: self.bytes.len(), cause: None });
        };
        let mut fields = Reader::new(body, 0);
        let source = fields.field(self.format.source_bits) as u16;
        let time = stamped.then(|| fields.field(8 * time_bytes as u8));
        let is_instructions = fields.field(self.format.type_bits) == 0;
        let packet = is_instructions
            .then(|| packet::decode(self.parameters, body, fields.at()))
            .transpose()
            .map_err(|cause| Error { start, resume: end, cause: Some(cause) })?;
        Ok(At { start, end, flow: header >> 5 & 3, source, time, packet })
    }
}

impl Iterator for Packets<'_> {
    type Item = Result<At, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..)?;
        let nulls = rest.iter().position(|header| header & 0x1f != 0)?;
        let start = self.at + nulls;
        let found = self.frame(start, rest[nulls]);
        self.at = match &found {
            Ok(at) => at.end,
            Err(error) => error.resume,
        };
        Some(found)
    }
}

/// Appends packets to a stream.
#[derive(Debug, Clone)]
pub struct Writer<'a> {
    parameters: &'a Parameters,
    format: Format,
    /// The stream.
    pub bytes: Vec<u8>,
}

impl<'a> Writer<'a> {
    /// An empty stream. Returns `None` if a width of the format or a parameter is out of its range.
    pub fn new(parameters: &'a Parameters, format: Format) -> Option<Self> {
        let valid = format.is_valid() && parameters.check().is_ok();
        valid.then_some(Self { parameters, format, bytes: Vec::new() })
    }

    /// Appends a packet of a source, with flow indicator 0.
    ///
    /// # Errors
    /// A field does not fit, or the payload is longer than 31 bytes; the stream is then unchanged.
    pub fn packet(
        &mut self,
        source: u16,
        time: Option<u64>,
        packet: &Packet,
    ) -> Result<(), DoesNotFit> {
        let Format { source_bits, time_bytes, type_bits } = self.format;
        // The only rule for which packets fit is what a decoder gets.
        packet::encode(self.parameters, packet)?;
        let time_fits = time.is_none_or(|time| time_bytes > 0 && time <= low_bits(8 * time_bytes));
        if u64::from(source) > low_bits(source_bits) || !time_fits {
            return Err(DoesNotFit);
        }
        let mut fields = Fields::default();
        fields.field(u64::from(source), source_bits);
        fields.field(time.unwrap_or(0), time.map_or(0, |_| 8 * time_bytes));
        fields.field(0, type_bits);
        packet::write_fields(self.parameters, packet, &mut fields);
        let mut body = fields.compressed();
        let time_bytes = time.map_or(0, |_| usize::from(time_bytes));
        let before = usize::from(source_bits) + 8 * time_bytes + usize::from(type_bits);
        // At least one bit of the payload must remain.
        let fill = if body.last().is_some_and(|last| *last >= 0x80) { 0xff } else { 0 };
        while body.len() <= before / 8 {
            body.push(fill);
        }
        let length = body.len() - usize::from(source_bits / 8) - time_bytes;
        if length > 31 {
            return Err(DoesNotFit);
        }
        self.bytes.push(length as u8 | if time.is_some() { 0x80 } else { 0 });
        self.bytes.extend_from_slice(&body);
        Ok(())
    }

    /// Appends a synchronisation sequence, so that reading can begin after it.
    pub fn sync(&mut self) {
        self.bytes.extend(core::iter::repeat_n(0, self.format.sync_length()));
        self.bytes.push(0x80);
    }
}
