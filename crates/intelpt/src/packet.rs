// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decoder of single packets with their position, and encoder.
//!
//! Fields are kept as in the packet: an address is the transmitted bytes with the way in which they
//! update the last address, a page-aligned base is its upper bits.

use alloc::vec::Vec;
use core::fmt;

use crate::errata::Errata;

/// The sixteen bytes at which decoding can start.
pub const PSB: [u8; 16] = [2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82];

/// Way in which the bytes of an address update the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpBytes {
    /// The packet has no address.
    Suppressed,
    /// The lower 16 bits are replaced.
    Update16(u16),
    /// The lower 32 bits are replaced.
    Update32(u32),
    /// 48 bits, sign-extended.
    Signed48(u64),
    /// The lower 48 bits are replaced.
    Update48(u64),
    /// All 64 bits.
    Full(u64),
}

impl IpBytes {
    /// The address, given the last one; `None` if it is suppressed.
    pub fn apply(self, last: u64) -> Option<u64> {
        Some(match self {
            Self::Suppressed => return None,
            Self::Update16(low) => (last & !0xffff) | u64::from(low),
            Self::Update32(low) => (last & !0xffff_ffff) | u64::from(low),
            Self::Signed48(low) => ((low << 16) as i64 >> 16) as u64,
            Self::Update48(low) => (last & !LOW48) | (low & LOW48),
            Self::Full(all) => all,
        })
    }

    /// The field IPBytes, the number of bytes that follow, and their value.
    fn form(self) -> (u8, usize, u64) {
        match self {
            Self::Suppressed => (0, 0, 0),
            Self::Update16(low) => (1, 2, low.into()),
            Self::Update32(low) => (2, 4, low.into()),
            Self::Signed48(low) => (3, 6, low),
            Self::Update48(low) => (4, 6, low),
            Self::Full(all) => (6, 8, all),
        }
    }
}

const LOW48: u64 = (1 << 48) - 1;

/// Outcomes of conditional branches, the oldest in the highest of `len` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tnt {
    /// Taken is 1.
    pub bits: u64,
    /// Number of outcomes: up to 6 in the short packet, up to 47 in the long one.
    pub len: u8,
}

/// A packet with its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the SDM")]
pub enum Packet {
    Pad,
    Psb,
    PsbEnd,
    Ovf,
    TraceStop,
    TntShort(Tnt),
    TntLong(Tnt),
    Tip(IpBytes),
    TipPge(IpBytes),
    TipPgd(IpBytes),
    Fup(IpBytes),
    /// CR3 without its lower five bits, and whether the guest runs (non-root).
    Pip {
        cr3: u64,
        non_root: bool,
    },
    /// The execution mode's bits: CS.L, CS.D, IF.
    ModeExec {
        bits: u8,
    },
    /// Bits: in a transaction, aborted.
    ModeTsx {
        bits: u8,
    },
    /// The low 56 bits of the time stamp counter.
    Tsc(u64),
    /// Crystal clock, and nine bits of the fast counter.
    Tma {
        ctc: u16,
        fast: u16,
    },
    Mtc(u8),
    /// Cycles since the last CYC; fewer than 2^61.
    Cyc(u64),
    Cbr(u8),
    /// The base without its lower twelve bits.
    Vmcs {
        base: u64,
    },
    Mnt(u64),
    Ptw4 {
        value: u32,
        ip: bool,
    },
    Ptw8 {
        value: u64,
        ip: bool,
    },
    ExStop {
        ip: bool,
    },
    Mwait {
        hints: u32,
        ext: u32,
    },
    /// C-state and sub C-state as transmitted (one less than their names). The flags as transmitted:
    /// according to libipt's tests, 8 means that the hardware requested it.
    Pwre {
        state: u8,
        sub_state: u8,
        flags: u8,
    },
    Pwrx {
        last: u8,
        deepest: u8,
        wake: u8,
    },
    /// A block of items begins; each is four or eight bytes long.
    Bbp {
        kind: u8,
        four_bytes: bool,
    },
    Bip4 {
        id: u8,
        value: u32,
    },
    Bip8 {
        id: u8,
        value: u64,
    },
    Bep {
        ip: bool,
    },
    Cfe {
        kind: u8,
        vector: u8,
        ip: bool,
    },
    Evd {
        kind: u8,
        value: u64,
    },
    /// A trigger: its bit vector, the flags as transmitted, and the instructions since the last one, if
    /// present.
    Trig {
        flags: u8,
        vector: u8,
        icnt: Option<u16>,
    },
}

/// A packet with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// The packet.
    pub packet: Packet,
}

/// Reason why bytes are not a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// No packet starts with these bytes, or a field has a reserved value.
    Unknown,
    /// The bytes end inside a packet.
    Truncated,
}

/// Bytes that are not a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// First byte.
    pub start: usize,
    /// Position at which decoding continues: the next PSB, or the end.
    pub resume: usize,
    /// Reason.
    pub cause: Cause,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.cause {
            Cause::Unknown => "no packet",
            Cause::Truncated => "a packet is cut off",
        };
        write!(f, "{what} at byte {}; reading goes on at {}", self.start, self.resume)
    }
}

impl core::error::Error for Error {}

/// Position of the first PSB at or after `from`.
pub fn find_psb(bytes: &[u8], from: usize) -> Option<usize> {
    const WORD: usize = 8;
    const WORDS: [u64; 2] = [0x8202_8202_8202_8202, 0x0282_0282_0282_0282];
    let rest = bytes.get(from..)?;
    let (words, _) = rest.as_chunks::<WORD>();
    // Wherever a PSB starts, it contains one of these words completely.
    for (nth, word) in words.iter().enumerate() {
        if !WORDS.contains(&u64::from_le_bytes(*word)) {
            continue;
        }
        let at = nth * WORD;
        let mut begins = at.saturating_sub(WORD - 1)..=at;
        let found = begins.find(|begin| rest.get(*begin..).is_some_and(|of| of.starts_with(&PSB)));
        if let Some(begin) = found {
            return Some(from + begin);
        }
    }
    None
}

/// Position of the first PSB, or the end.
#[must_use]
pub fn synced(bytes: &[u8]) -> usize {
    find_psb(bytes, 0).unwrap_or(bytes.len())
}

/// Iterator over the packets in a byte slice, from the first byte on.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Inside a block: whether its items are four bytes long.
    block: Option<bool>,
    errata: Errata,
}

impl<'a> Packets<'a> {
    /// The first byte must be the start of a packet.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, block: None, errata: Errata::default() }
    }

    /// Starts at the first PSB: the bytes before cannot be decoded.
    pub fn synced(bytes: &'a [u8]) -> Self {
        Self { at: synced(bytes), ..Self::new(bytes) }
    }

    /// For a processor with these errata.
    #[must_use]
    pub fn with_errata(self, errata: Errata) -> Self {
        Self { errata, ..self }
    }

    /// The remaining bytes and their position; empty inside a block.
    #[inline]
    pub(crate) fn rest(&self) -> (&'a [u8], usize) {
        let rest = self.bytes.get(self.at..).filter(|_| self.block.is_none());
        (rest.unwrap_or_default(), self.at)
    }

    /// Position of the next packet.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Skips a number of bytes of whole packets.
    #[inline]
    pub fn go_behind(&mut self, count: usize) {
        self.at += count;
    }
}

impl Iterator for Packets<'_> {
    type Item = Result<At, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut start = self.at;
        let mut rest = self.bytes.get(start..).filter(|rest| !rest.is_empty())?;
        if self.errata.skz84 && is_wrong_tma(rest) {
            start += TMA_BYTES_SKZ84;
            rest = self.bytes.get(start..).filter(|rest| !rest.is_empty())?;
        }
        if self.errata.skd007 && is_replaced_ovf(rest) {
            // Two bytes as in OVF, after a wrong one.
            self.at = start + 3;
            self.block = None;
            return Some(Ok(At { start, end: self.at, packet: Packet::Ovf }));
        }
        let mut reader = Reader { bytes: rest, at: 0 };
        match decode(&mut reader, self.block) {
            Ok(packet) => {
                self.at = start + reader.at;
                self.block = block_after(self.block, &packet);
                Some(Ok(At { start, end: self.at, packet }))
            }
            Err(cause) => {
                self.at = find_psb(self.bytes, start + 1).unwrap_or(self.bytes.len());
                self.block = None;
                Some(Err(Error { start, resume: self.at, cause }))
            }
        }
    }
}

/// Length of a TMA packet with reserved bits set, as generated by processors with SKZ84: one more than it
/// should be (libipt, `pt_pkt_decode_tma`).
const TMA_BYTES_SKZ84: usize = 8;

fn is_wrong_tma(bytes: &[u8]) -> bool {
    matches!(bytes, [2, 0x73, ..]) && bytes.len() >= TMA_BYTES_SKZ84 && {
        let mut reader = Reader { bytes, at: 0 };
        decode(&mut reader, None) == Err(Cause::Unknown)
    }
}

/// Whether this is an OVF whose first byte a CYC packet has replaced (SKD007): a CYC of two bytes whose
/// second looks like the first of an OVF, then the second byte of OVF. Two CYC packets are consecutive
/// only if the first one is full.
#[inline]
pub(crate) fn is_replaced_ovf(bytes: &[u8]) -> bool {
    let &[first, second, third, ..] = bytes else { return false };
    // CYC: five bits of the count, then seven; its bits 5 and above as compared by libipt
    // (`pt_pkt_handle_skd007`): the second byte is the one that starts packets with a two-byte opcode.
    first & 7 == 7 && second == EXTENDED && third == OVF
}

/// First byte of packets with a two-byte opcode [SDM volume 3, packet definitions].
const EXTENDED: u8 = 2;
/// Second byte of OVF.
const OVF: u8 = 0xf3;

/// Packets of the flow end a block of items; clocks and power states may be inside it.
fn block_after(block: Option<bool>, packet: &Packet) -> Option<bool> {
    use Packet as P;
    match packet {
        P::Bbp { four_bytes, .. } => Some(*four_bytes),
        P::Pad | P::Tsc(_) | P::Tma { .. } | P::Mtc(_) | P::Fup(_) | P::Cyc(_) | P::Cbr(_) => block,
        P::Mnt(_) | P::Bip4 { .. } | P::Bip8 { .. } => block,
        _ => None,
    }
}

/// Whether a packet with this first byte is a short TNT packet, outside of blocks.
#[inline]
pub(crate) fn is_short_tnt(first: u8) -> bool {
    first & 1 == 0 && first > 2
}

/// Whether a packet with this first byte is a TIP packet, outside of blocks.
#[inline]
pub(crate) fn is_tip(first: u8) -> bool {
    first & 0x1f == 0x0d
}

/// The address of a TIP packet that has one, and its length.
#[inline]
pub(crate) fn tip(bytes: &[u8], last_ip: u64) -> Option<(u64, usize)> {
    let first = *bytes.first().filter(|first| is_tip(**first))?;
    // Most addresses are close to the previous one.
    if first >> 5 == 1 {
        let low = u16::from_le_bytes([*bytes.get(1)?, *bytes.get(2)?]);
        return Some((IpBytes::Update16(low).apply(last_ip)?, 3));
    }
    let mut reader = Reader { bytes, at: 1 };
    let ip = reader.ip(first).ok()?.apply(last_ip)?;
    Some((ip, reader.at))
}

/// A packet that only contains the time, or nothing (PAD, as `None`), outside of blocks; and its length.
#[inline]
pub(crate) fn clock(bytes: &[u8], errata: Errata) -> Option<(Option<Packet>, usize)> {
    let (first, second) = (*bytes.first()?, bytes.get(1).copied());
    match first {
        // The most frequent ones with periodic time packets.
        0x59 => return Some((Some(Packet::Mtc(second?)), 2)),
        // The most frequent ones with cycle counts: short counts.
        _ if first & 7 == 3 => return Some((Some(Packet::Cyc(u64::from(first >> 3))), 1)),
        0 => return Some((None, 1)),
        0x19 => {}
        2 if matches!(second, Some(0x73 | 0x03)) => {}
        _ if first & 7 == 7 && !(errata.skd007 && is_replaced_ovf(bytes)) => {}
        _ => return None,
    }
    let mut reader = Reader { bytes, at: 0 };
    let packet = decode(&mut reader, None).ok()?;
    Some((Some(packet), reader.at))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, Cause> {
        let byte = *self.bytes.get(self.at).ok_or(Cause::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self, size: usize) -> Result<u64, Cause> {
        let mut value = 0;
        for place in 0..size {
            value |= u64::from(self.byte()?) << (8 * place);
        }
        Ok(value)
    }

    fn ip(&mut self, opcode: u8) -> Result<IpBytes, Cause> {
        Ok(match opcode >> 5 {
            0 => IpBytes::Suppressed,
            1 => IpBytes::Update16(self.number(2)? as u16),
            2 => IpBytes::Update32(self.number(4)? as u32),
            3 => IpBytes::Signed48(self.number(6)?),
            4 => IpBytes::Update48(self.number(6)?),
            6 => IpBytes::Full(self.number(8)?),
            _ => return Err(Cause::Unknown),
        })
    }
}

/// The highest set bit only marks the end.
fn tnt(marked: u64) -> Result<Tnt, Cause> {
    let len = marked.checked_ilog2().filter(|len| *len > 0).ok_or(Cause::Unknown)?;
    Ok(Tnt { bits: marked & !(1 << len), len: len as u8 })
}

fn decode(reader: &mut Reader<'_>, block: Option<bool>) -> Result<Packet, Cause> {
    let first = reader.byte()?;
    if let (Some(four_bytes), 4) = (block, first & 7) {
        let id = first >> 3;
        return Ok(match four_bytes {
            true => Packet::Bip4 { id, value: reader.number(4)? as u32 },
            false => Packet::Bip8 { id, value: reader.number(8)? },
        });
    }
    Ok(match first {
        0 => Packet::Pad,
        EXTENDED => return extended(reader),
        0x19 => Packet::Tsc(reader.number(7)?),
        0x59 => Packet::Mtc(reader.byte()?),
        0x99 => match reader.byte()? {
            bits if bits >> 5 == 0 => Packet::ModeExec { bits: bits & 7 },
            bits if bits >> 5 == 1 => Packet::ModeTsx { bits: bits & 3 },
            _ => return Err(Cause::Unknown),
        },
        0xd9 => {
            let (flags, vector) = (reader.byte()?, reader.byte()?);
            let icnt = if flags & TRIG_ICNT == 0 { None } else { Some(reader.number(2)? as u16) };
            Packet::Trig { flags, vector, icnt }
        }
        _ if first & 1 == 0 => Packet::TntShort(tnt(u64::from(first >> 1))?),
        _ if first & 3 == 3 => {
            let mut cycles = u64::from(first >> 3);
            let (mut more, mut shift) = (first & 4 != 0, 5);
            while more {
                let byte = reader.byte()?;
                if shift > 54 {
                    return Err(Cause::Unknown);
                }
                cycles |= u64::from(byte >> 1) << shift;
                shift += 7;
                more = byte & 1 != 0;
            }
            Packet::Cyc(cycles)
        }
        _ => match first & 0x1f {
            0x0d => Packet::Tip(reader.ip(first)?),
            0x11 => Packet::TipPge(reader.ip(first)?),
            0x01 => Packet::TipPgd(reader.ip(first)?),
            0x1d => Packet::Fup(reader.ip(first)?),
            _ => return Err(Cause::Unknown),
        },
    })
}

/// Flag of TRIG: a count of instructions follows.
const TRIG_ICNT: u8 = 0x40;
/// Bit of MODE.TSX: the transaction was aborted.
pub(crate) const MODE_TSX_ABORT: u8 = 2;
/// Flag of TRIG: a FUP follows.
pub(crate) const TRIG_IP: u8 = 0x80;

fn extended(reader: &mut Reader<'_>) -> Result<Packet, Cause> {
    let second = reader.byte()?;
    Ok(match second {
        0x82 => {
            for expected in &PSB[2..] {
                if reader.byte()? != *expected {
                    return Err(Cause::Unknown);
                }
            }
            Packet::Psb
        }
        0x23 => Packet::PsbEnd,
        OVF => Packet::Ovf,
        0x83 => Packet::TraceStop,
        0xa3 => Packet::TntLong(tnt(reader.number(6)?)?),
        0x43 => {
            let value = reader.number(6)?;
            Packet::Pip { cr3: (value & !1) << 4, non_root: value & 1 != 0 }
        }
        0x73 => {
            let ctc = reader.number(2)? as u16;
            let (reserved, fast) = (reader.byte()?, reader.number(2)? as u16);
            if reserved != 0 || fast > 0x1ff {
                return Err(Cause::Unknown);
            }
            Packet::Tma { ctc, fast }
        }
        0x03 => {
            let ratio = reader.byte()?;
            reader.byte()?;
            Packet::Cbr(ratio)
        }
        0xc8 => Packet::Vmcs { base: reader.number(5)? << 12 },
        0xc3 => match reader.byte()? {
            0x88 => Packet::Mnt(reader.number(8)?),
            _ => return Err(Cause::Unknown),
        },
        0x62 | 0xe2 => Packet::ExStop { ip: second & 0x80 != 0 },
        0xc2 => Packet::Mwait { hints: reader.number(4)? as u32, ext: reader.number(4)? as u32 },
        0x22 => {
            let (flags, state) = (reader.byte()?, reader.byte()?);
            Packet::Pwre { state: state >> 4, sub_state: state & 15, flags }
        }
        0xa2 => {
            let (states, wake) = (reader.byte()?, reader.byte()?);
            reader.number(3)?;
            Packet::Pwrx { last: states >> 4, deepest: states & 15, wake: wake & 15 }
        }
        0x63 => {
            let byte = reader.byte()?;
            Packet::Bbp { kind: byte & 0x1f, four_bytes: byte & 0x80 != 0 }
        }
        0x33 | 0xb3 => Packet::Bep { ip: second & 0x80 != 0 },
        0x13 => {
            let (kind, vector) = (reader.byte()?, reader.byte()?);
            Packet::Cfe { kind: kind & 0x1f, vector, ip: kind & 0x80 != 0 }
        }
        0x53 => Packet::Evd { kind: reader.byte()? & 0x3f, value: reader.number(8)? },
        _ if second & 0x7f == 0x12 => {
            Packet::Ptw4 { value: reader.number(4)? as u32, ip: second & 0x80 != 0 }
        }
        _ if second & 0x7f == 0x32 => {
            Packet::Ptw8 { value: reader.number(8)?, ip: second & 0x80 != 0 }
        }
        _ => return Err(Cause::Unknown),
    })
}

/// A field has a value that its packet cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoesNotFit;

impl fmt::Display for DoesNotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field has a value that its packet cannot hold")
    }
}

impl core::error::Error for DoesNotFit {}

/// Appends the packet's bytes; appends nothing if a field does not fit.
///
/// # Errors
/// A field has a value that its packet cannot hold.
pub fn encode(packet: &Packet, out: &mut Vec<u8>) -> Result<(), DoesNotFit> {
    use Packet as P;
    let before = out.len();
    let flag = |set: bool| if set { 0x80 } else { 0 };
    let mut put = |head: &[u8], value: u64, size: usize| {
        out.extend_from_slice(head);
        out.extend_from_slice(&value.to_le_bytes()[..size]);
    };
    match *packet {
        P::Pad => put(&[0], 0, 0),
        P::Psb => put(&PSB, 0, 0),
        P::PsbEnd => put(&[2, 0x23], 0, 0),
        P::Ovf => put(&[2, 0xf3], 0, 0),
        P::TraceStop => put(&[2, 0x83], 0, 0),
        P::TntShort(Tnt { bits, len }) if (1..=6).contains(&len) => {
            put(&[(((1 << len) | (bits & ((1 << len) - 1))) << 1) as u8], 0, 0);
        }
        P::TntLong(Tnt { bits, len }) if (1..=47).contains(&len) => {
            put(&[2, 0xa3], (1 << len) | (bits & ((1 << len) - 1)), 6);
        }
        P::Tip(ip) => put_ip(&mut put, 0x0d, ip),
        P::TipPge(ip) => put_ip(&mut put, 0x11, ip),
        P::TipPgd(ip) => put_ip(&mut put, 0x01, ip),
        P::Fup(ip) => put_ip(&mut put, 0x1d, ip),
        P::Pip { cr3, non_root } => put(&[2, 0x43], (cr3 >> 4) | u64::from(non_root), 6),
        P::ModeExec { bits } => put(&[0x99, bits], 0, 0),
        P::ModeTsx { bits } => put(&[0x99, 0x20 | bits], 0, 0),
        P::Tsc(value) => put(&[0x19], value, 7),
        P::Tma { ctc, fast } => put(&[2, 0x73], u64::from(ctc) | u64::from(fast) << 24, 5),
        P::Mtc(value) => put(&[0x59, value], 0, 0),
        P::Cyc(value) => {
            let mut rest = value >> 5;
            put(&[((value & 31) << 3) as u8 | 3 | if rest > 0 { 4 } else { 0 }], 0, 0);
            while rest > 0 {
                let byte = ((rest & 127) << 1) as u8;
                rest >>= 7;
                put(&[byte | u8::from(rest > 0)], 0, 0);
            }
        }
        P::Cbr(ratio) => put(&[2, 3, ratio, 0], 0, 0),
        P::Vmcs { base } => put(&[2, 0xc8], base >> 12, 5),
        P::Mnt(value) => put(&[2, 0xc3, 0x88], value, 8),
        P::Ptw4 { value, ip } => put(&[2, 0x12 | flag(ip)], value.into(), 4),
        P::Ptw8 { value, ip } => put(&[2, 0x32 | flag(ip)], value, 8),
        P::ExStop { ip } => put(&[2, 0x62 | flag(ip)], 0, 0),
        P::Mwait { hints, ext } => put(&[2, 0xc2], u64::from(hints) | u64::from(ext) << 32, 8),
        P::Pwre { state, sub_state, flags } => {
            put(&[2, 0x22, flags, state << 4 | (sub_state & 15)], 0, 0)
        }
        P::Pwrx { last, deepest, wake } => put(&[2, 0xa2, last << 4 | (deepest & 15), wake], 0, 3),
        P::Bbp { kind, four_bytes } => put(&[2, 0x63, kind | flag(four_bytes)], 0, 0),
        P::Bip4 { id, value } => put(&[id << 3 | 4], value.into(), 4),
        P::Bip8 { id, value } => put(&[id << 3 | 4], value, 8),
        P::Bep { ip } => put(&[2, 0x33 | flag(ip)], 0, 0),
        P::Cfe { kind, vector, ip } => put(&[2, 0x13, kind | flag(ip), vector], 0, 0),
        P::Evd { kind, value } => put(&[2, 0x53, kind], value, 8),
        P::Trig { flags, vector, icnt: None } => put(&[0xd9, flags, vector], 0, 0),
        P::Trig { flags, vector, icnt: Some(icnt) } => put(&[0xd9, flags, vector], icnt.into(), 2),
        P::TntShort(_) | P::TntLong(_) => {}
    }
    // Checked by decoding: the only rule of what fits is what the decoder accepts.
    let block = match packet {
        P::Bip4 { .. } => Some(true),
        P::Bip8 { .. } => Some(false),
        _ => None,
    };
    let mut reader = Reader { bytes: &out[before..], at: 0 };
    if decode(&mut reader, block) == Ok(*packet) && before + reader.at == out.len() {
        return Ok(());
    }
    out.truncate(before);
    Err(DoesNotFit)
}

fn put_ip(put: &mut impl FnMut(&[u8], u64, usize), opcode: u8, ip: IpBytes) {
    let (form, size, value) = ip.form();
    put(&[form << 5 | opcode], value, size);
}
