// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packets of a file, damaged ones left out.
//!
//! A file is one message `Trace` whose only field is `packet = 1`, so that packets are consecutive,
//! each with its length. After a fault the next position is searched at which packets are
//! consecutive again.

use std::io::Read;

use lateralis_model::{Damage, DamageReason, Interval};

use super::wire::{Message, varint};

const PACKET_TAG: u8 = 0x0a;
const COMPRESSED: u32 = 50;
const ZSTD_COMPRESSED: u32 = 133;

/// Packets in a row that must be valid for the place to count as found.
const CHAIN: usize = 3;

/// What was noticed while walking over packets.
#[derive(Debug, Default)]
pub struct Notes {
    /// Damaged places.
    pub damage: Vec<Damage>,
    /// Compressed packets that could not be read.
    pub bad_compressed: u64,
    /// Compressed packets left out because of the memory they would take.
    pub large_compressed: u64,
}

/// The packet at the beginning of `bytes`: its content and its whole length.
fn packet(bytes: &[u8]) -> Result<(&[u8], usize), DamageReason> {
    if bytes.first() != Some(&PACKET_TAG) {
        let mut found = [0; 4];
        let length = bytes.len().min(4);
        found[..length].copy_from_slice(&bytes[..length]);
        return Err(DamageReason::BadMagic { found: u32::from_le_bytes(found) });
    }
    let mut rest = &bytes[1..];
    let Some(length) = varint(&mut rest) else {
        return Err(DamageReason::Truncated { missing_bytes: None });
    };
    let header = bytes.len() - rest.len();
    match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
        Some(content) => Ok((content, header + content.len())),
        None => Err(DamageReason::Truncated {
            missing_bytes: Some(length.saturating_sub(rest.len() as u64)),
        }),
    }
}

/// Whether packets are consecutive from here.
fn is_chain(bytes: &[u8], work: &mut usize) -> bool {
    let mut rest = bytes;
    for _ in 0..CHAIN {
        if rest.is_empty() {
            return rest.len() < bytes.len();
        }
        let Ok((content, length)) = packet(rest) else { return false };
        *work = work.saturating_sub(length);
        if content.is_empty() || !Message::new(content).is_valid() {
            return false;
        }
        rest = &rest[length..];
    }
    true
}

/// Whether a file begins with packets, as far as `first` reaches.
pub fn looks_right(first: &[u8]) -> bool {
    let mut rest = first;
    let mut seen = 0;
    while let Ok((content, length)) = packet(rest) {
        // A trace packet has at least one field of a small number.
        if content.is_empty() || !Message::new(content).is_valid() {
            return false;
        }
        seen += 1;
        if seen == 8 {
            return true;
        }
        rest = &rest[length..];
        if rest.is_empty() {
            return true;
        }
    }
    // The last one may be longer than what was given.
    rest.first() == Some(&PACKET_TAG) && (seen > 0 || starts_large(first))
}

/// Whether the first packet is longer than `first` but begins with fields.
fn starts_large(first: &[u8]) -> bool {
    let mut rest = &first[1..];
    let Some(length) = varint(&mut rest) else { return false };
    if first.len() < 64 || length < rest.len() as u64 {
        return false;
    }
    Message::new(rest).take(1).any(|(number, _)| number < 1000)
}

/// Gives every packet of the file to `see`, those inside compressed ones too.
/// `limit_bytes` bounds the memory that decompressed packets take together.
///
/// Cost: linear; bytes read again after faults are bounded by eight times the file.
pub fn walk(
    file: &str,
    bytes: &[u8],
    limit_bytes: u64,
    notes: &mut Notes,
    see: &mut dyn FnMut(&[u8]),
) {
    let mut left = limit_bytes;
    let mut work = bytes.len().saturating_mul(8);
    let mut at = 0;
    while at < bytes.len() {
        let reason = match packet(&bytes[at..]) {
            Ok((content, length)) => {
                if Message::new(content).is_valid() {
                    see_one(content, &mut left, notes, see);
                    at += length;
                    continue;
                }
                let reason = DamageReason::BadValue { rule: "a packet must be a message" };
                if is_chain(&bytes[at + length..], &mut work) || at + length == bytes.len() {
                    note(file, at, at + length, reason, notes);
                    at += length;
                    continue;
                }
                reason
            }
            Err(reason) => reason,
        };
        let next = find(bytes, at + 1, &mut work);
        note(file, at, next, reason, notes);
        at = next;
    }
}

fn note(file: &str, begin: usize, end: usize, reason: DamageReason, notes: &mut Notes) {
    // Each costs at least a byte of input, but a name of memory.
    if notes.damage.len() < 10_000 {
        notes.damage.push(Damage {
            file: file.to_owned(),
            begin_bytes: begin as u64,
            end_bytes: end as u64,
            reason,
            interval: Interval::default(),
        });
    }
}

/// The next place where packets begin; the end if there is none.
fn find(bytes: &[u8], at: usize, work: &mut usize) -> usize {
    let mut at = at;
    while *work > 0 {
        let rest = bytes.get(at..).unwrap_or(&[]);
        let Some(tag) = rest.iter().position(|&byte| byte == PACKET_TAG) else { break };
        at += tag;
        *work = work.saturating_sub(tag + 1);
        if is_chain(&bytes[at..], work) {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

fn see_one(content: &[u8], left: &mut u64, notes: &mut Notes, see: &mut dyn FnMut(&[u8])) {
    let compressed =
        Message::new(content).find(|(number, _)| matches!(*number, COMPRESSED | ZSTD_COMPRESSED));
    let Some((number, value)) = compressed else { return see(content) };
    let mut inside = Vec::new();
    let most = left.saturating_add(1);
    let result = if number == COMPRESSED {
        flate2::read::ZlibDecoder::new(value.bytes()).take(most).read_to_end(&mut inside)
    } else {
        zstd::Decoder::new(value.bytes())
            .and_then(|decoder| decoder.take(most).read_to_end(&mut inside))
    };
    if inside.len() as u64 > *left {
        notes.large_compressed += 1;
        return;
    }
    *left -= inside.len() as u64;
    if result.is_err() {
        notes.bad_compressed += 1;
    }
    let mut rest = inside.as_slice();
    while let Ok((content, length)) = packet(rest) {
        // Compressed packets do not hold compressed ones.
        see(content);
        rest = &rest[length..];
    }
}
