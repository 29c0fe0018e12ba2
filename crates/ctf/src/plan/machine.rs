// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs programs over the bits of a packet.

use std::ffi::CStr;

use lateralis_model::{Scalar, ScalarKind, Slot};

use super::zeros::text_length;
use super::{Choice, Count, Fast, Op, Program, real};
use crate::metadata::{ROLE_COUNT, Role, Roles};

/// Values of one event; real events have some tens, metadata that asks for more
/// is hostile. 2 million are 32 MB.
const SLOT_LIMIT: usize = 1 << 21;

/// Elements without a single bit that an array may have before it counts as an
/// attempt to keep the reader busy.
const EMPTY_ELEMENT_LIMIT: u64 = 64;

/// Why the bits do not fit the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A field reaches beyond the end.
    BeyondEnd,
    /// A selector chooses no option.
    NoSuchOption(i128),
    /// A value that its class forbids.
    BadValue(&'static str),
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    slot: usize,
    left: u64,
    body: usize,
    position: u64,
    empty: u64,
}

/// The state that lives longer than one program: clock, registers, last values
/// of fields with a role. One machine reads one stream.
#[derive(Debug, Default)]
pub struct Machine {
    /// Values of the fields read since the last [`Machine::clear`].
    pub slots: Vec<Slot>,
    /// The stream's clock, extended to 64 bits.
    pub clock: u64,
    /// UUID in the packet header.
    pub uuid: Option<[u8; 16]>,
    /// Bit of the packet at which its checksum begins.
    pub checksum_bit: u64,
    /// Lengths and selectors that later fields need.
    pub registers: Vec<u64>,
    values: [u64; ROLE_COUNT],
    seen: Roles,
    frames: Vec<Frame>,
}

impl Machine {
    /// A machine with this number of registers.
    #[must_use]
    pub fn new(registers: usize) -> Self {
        Self { registers: vec![0; registers], ..Self::default() }
    }

    /// Forgets values and roles; registers and clock stay.
    #[inline]
    pub fn clear(&mut self) {
        self.slots.clear();
        self.seen = Roles::default();
        self.uuid = None;
    }

    /// The value of the field with this role, if there was one.
    #[inline]
    #[must_use]
    pub fn role(&self, role: Role) -> Option<u64> {
        self.seen.contains(role).then(|| self.values[role as usize])
    }

    /// Runs a program from bit `position` of `bytes` up to bit `end`, and says
    /// where it stopped.
    ///
    /// Cost: linear in the bits passed over; no allocation once the vector of
    /// slots has grown to the largest event.
    /// Errors: the first [`Fault`]; the slots are then worthless.
    #[inline]
    pub fn run(
        &mut self,
        program: &Program,
        bytes: &[u8],
        position: u64,
        end: u64,
    ) -> Result<u64, Fault> {
        self.frames.clear();
        let end = end.min(bytes.len() as u64 * 8);
        let mut position = position;
        let mut next = 0;
        // The number read last, and the number of clock bits it contains.
        let (mut last, mut last_bits) = (0u64, 64u32);
        while let Some(op) = program.ops.get(next) {
            next += 1;
            match *op {
                Op::Align(bits) => position = align(position, bits, end)?,
                Op::Scalar { ref scalar, fast } => {
                    let slot = self.scalar(scalar, fast, bytes, &mut position, end)?;
                    last = match slot {
                        Slot::Unsigned(value) => value,
                        Slot::Signed(value) => value as u64,
                        _ => 0,
                    };
                    last_bits = scalar.bits;
                    self.slots.push(slot);
                }
                Op::OddReal(ref scalar) => {
                    let after = position + u64::from(scalar.bits);
                    let number = real::read(scalar, bytes, position).filter(|_| after <= end);
                    self.slots.push(Slot::Real(number.ok_or(Fault::BeyondEnd)?));
                    position = after;
                }
                Op::VarInt { signed } => {
                    (last, last_bits) = varint(bytes, &mut position, end, signed)?;
                    self.slots.push(if signed {
                        Slot::Signed(last as i64)
                    } else {
                        Slot::Unsigned(last)
                    });
                }
                Op::Role(roles) => self.note(roles, last, last_bits, position),
                Op::Save(register) => self.registers[register as usize] = last,
                Op::TextToNull(unit) => {
                    let (slot, after) = text_to_null(bytes, position, end, unit)?;
                    self.slots.push(slot);
                    position = after;
                }
                Op::Span { length, unit, uuid } => {
                    let length = self.count(length);
                    let (start, after) = span(position, end, length)?;
                    let content = &bytes[start as usize..(after / 8) as usize];
                    if uuid {
                        self.uuid = content.first_chunk().copied();
                    }
                    let len = text_length(content, unit);
                    let len = u32::try_from(len).map_err(|_| Fault::BadValue("text over 4 GiB"))?;
                    self.slots.push(Slot::Span { len, start });
                    position = after;
                }
                Op::Packed { count, ref scalar } => {
                    let count = self.count(count);
                    let start_bits = align(position, scalar.align_bits, end)?;
                    position = packed_end(scalar, count, start_bits, end)?;
                    let count = u32::try_from(count);
                    let count = count.map_err(|_| Fault::BadValue("array over 4 Gi elements"))?;
                    self.slots.push(Slot::Packed { count, start_bits });
                }
                Op::Repeat { count, end: after } => {
                    let count = self.count(count);
                    let slot = self.slots.len();
                    let small = u32::try_from(count).map_err(|_| Fault::BeyondEnd)?;
                    self.slots.push(Slot::Elements { count: small, slots: 0 });
                    if count == 0 {
                        next = after as usize;
                    } else {
                        self.frames.push(Frame {
                            slot,
                            left: count,
                            body: next,
                            position,
                            empty: 0,
                        });
                    }
                }
                Op::Next => {
                    if self.slots.len() > SLOT_LIMIT {
                        return Err(Fault::BadValue("more values than an event may have"));
                    }
                    if let Some(body) = self.next_element(position)? {
                        next = body;
                    }
                }
                Op::Select { register, signed, table } => {
                    let value = self.selector(register, signed);
                    let choice = choose(program, table, value).ok_or(Fault::NoSuchOption(value))?;
                    self.slots.push(Slot::Selected { option: choice.option });
                    next = choice.target as usize;
                }
                Op::Maybe { register, signed, table, end: after } => {
                    let present = choose(program, table, self.selector(register, signed)).is_some();
                    self.slots.push(Slot::Selected { option: u32::from(present) });
                    if !present {
                        next = after as usize;
                    }
                }
                Op::Jump(target) => next = target as usize,
            }
        }
        Ok(position)
    }

    #[inline]
    fn scalar(
        &self,
        scalar: &Scalar,
        fast: Fast,
        bytes: &[u8],
        position: &mut u64,
        end: u64,
    ) -> Result<Slot, Fault> {
        let start = *position;
        let after = start + u64::from(scalar.bits);
        if after > end {
            return Err(Fault::BeyondEnd);
        }
        *position = after;
        let tail = bytes.get((start / 8) as usize..).unwrap_or(&[]);
        let aligned = start.is_multiple_of(8);
        let raw = match fast {
            Fast::U8 if aligned => tail.first().map(|&byte| u64::from(byte)),
            Fast::U16 if aligned => tail.first_chunk().map(|b| u64::from(u16::from_le_bytes(*b))),
            Fast::U32 if aligned => tail.first_chunk().map(|b| u64::from(u32::from_le_bytes(*b))),
            Fast::U64 if aligned => tail.first_chunk().map(|b| u64::from_le_bytes(*b)),
            _ => scalar.raw(bytes, start),
        };
        let raw = raw.ok_or(Fault::BeyondEnd)?;
        Ok(match scalar.kind {
            ScalarKind::Unsigned => Slot::Unsigned(raw),
            kind => Slot::from_raw(raw, scalar.bits, kind),
        })
    }

    #[inline]
    fn count(&self, count: Count) -> u64 {
        match count {
            Count::Fixed(count) => count,
            Count::Register(register) => self.registers[register as usize],
        }
    }

    #[inline]
    fn selector(&self, register: u32, signed: bool) -> i128 {
        let value = self.registers[register as usize];
        if signed { i128::from(value as i64) } else { i128::from(value) }
    }

    /// Continues with the next element; `None` when there is none.
    fn next_element(&mut self, position: u64) -> Result<Option<usize>, Fault> {
        let Some(frame) = self.frames.last_mut() else {
            return Ok(None);
        };
        frame.empty = if frame.position == position { frame.empty + 1 } else { 0 };
        if frame.empty > EMPTY_ELEMENT_LIMIT {
            return Err(Fault::BadValue("array of elements without size"));
        }
        frame.position = position;
        frame.left -= 1;
        if frame.left > 0 {
            return Ok(Some(frame.body));
        }
        let first = frame.slot;
        self.frames.pop();
        let used = (self.slots.len() - first - 1) as u32;
        if let Slot::Elements { slots, .. } = &mut self.slots[first] {
            *slots = used;
        }
        Ok(None)
    }

    #[inline]
    fn note(&mut self, roles: Roles, value: u64, bits: u32, position: u64) {
        if roles.contains(Role::Clock) {
            self.update_clock(value, bits);
        }
        if roles.contains(Role::Checksum) {
            self.checksum_bit = position - u64::from(bits.min(64));
        }
        for index in roles.indices() {
            self.values[index] = value;
        }
        self.seen.insert_all(roles);
    }

    /// Takes the low bits of a clock; if they are less than before, the clock
    /// has overflowed them once [CTF 1.8.3 §8].
    #[inline]
    fn update_clock(&mut self, value: u64, bits: u32) {
        if bits >= 64 {
            self.clock = value;
            return;
        }
        let mask = (1u64 << bits) - 1;
        if value < self.clock & mask {
            self.clock = self.clock.wrapping_add(mask + 1);
        }
        self.clock = self.clock & !mask | value & mask;
    }
}

#[inline]
fn align(position: u64, bits: u32, end: u64) -> Result<u64, Fault> {
    let mask = u64::from(bits.max(1)) - 1;
    let aligned = (position + mask) & !mask;
    if aligned > end { Err(Fault::BeyondEnd) } else { Ok(aligned) }
}

fn choose(program: &Program, table: u32, value: i128) -> Option<Choice> {
    let choices = program.choices.get(table as usize)?;
    choices.iter().find(|choice| choice.low <= value && value <= choice.high).copied()
}

/// First byte and first bit after this number of bytes.
fn span(position: u64, end: u64, length: u64) -> Result<(u64, u64), Fault> {
    let after = length.checked_mul(8).and_then(|bits| position.checked_add(bits));
    match after {
        Some(after) if after <= end => Ok((position / 8, after)),
        _ => Err(Fault::BeyondEnd),
    }
}

fn packed_end(scalar: &Scalar, count: u64, start: u64, end: u64) -> Result<u64, Fault> {
    if count == 0 {
        return Ok(start);
    }
    let bits = (count - 1).checked_mul(scalar.stride_bits());
    let after = bits.and_then(|bits| bits.checked_add(start + u64::from(scalar.bits)));
    match after {
        Some(after) if after <= end => Ok(after),
        _ => Err(Fault::BeyondEnd),
    }
}

fn text_to_null(bytes: &[u8], position: u64, end: u64, unit: u8) -> Result<(Slot, u64), Fault> {
    let start = position / 8;
    let content = bytes.get(start as usize..(end / 8) as usize).ok_or(Fault::BeyondEnd)?;
    let length = if unit == 1 {
        let text = CStr::from_bytes_until_nul(content).map_err(|_| Fault::BeyondEnd)?;
        text.count_bytes()
    } else {
        let unit = usize::from(unit);
        let zero = content.chunks_exact(unit).position(|unit| unit.iter().all(|&b| b == 0));
        zero.ok_or(Fault::BeyondEnd)? * unit
    };
    let len = u32::try_from(length).map_err(|_| Fault::BadValue("text over 4 GiB"))?;
    let after = position + (length as u64 + u64::from(unit)) * 8;
    Ok((Slot::Span { len, start }, after))
}

/// A number in LEB128 and how many bits of it were stored.
fn varint(bytes: &[u8], position: &mut u64, end: u64, signed: bool) -> Result<(u64, u32), Fault> {
    let mut value = 0u128;
    let mut bits = 0u32;
    loop {
        // More bytes than the number needs are allowed; they repeat its sign.
        if *position + 8 > end || bits >= 126 {
            let fits = bits < 126;
            return Err(if fits {
                Fault::BeyondEnd
            } else {
                Fault::BadValue("integer over 64 bits")
            });
        }
        let byte = bytes[(*position / 8) as usize];
        *position += 8;
        value |= u128::from(byte & 0x7f) << bits;
        bits += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    if signed {
        // Shift the sign bit of the number to that of the type and back.
        let unused = 128 - bits;
        let value = (value << unused) as i128 >> unused;
        let small = i64::try_from(value).map_err(|_| Fault::BadValue("integer over 64 bits"))?;
        return Ok((small as u64, bits.min(64)));
    }
    let small = u64::try_from(value).map_err(|_| Fault::BadValue("integer over 64 bits"))?;
    Ok((small, bits.min(64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_clock_wraps_once() {
        let mut machine = Machine::new(0);
        machine.update_clock(0x1_0000_fff0, 64);
        machine.update_clock(0xfff8, 16);
        assert_eq!(machine.clock, 0x1_0000_fff8);
        machine.update_clock(2, 16);
        assert_eq!(machine.clock, 0x1_0001_0002);
        machine.update_clock(2, 16);
        assert_eq!(machine.clock, 0x1_0001_0002, "the same reading is no wrap");
    }

    #[test]
    fn leb128_of_either_sign() {
        let read = |bytes: &[u8], signed| {
            let mut position = 0;
            varint(bytes, &mut position, bytes.len() as u64 * 8, signed).map(|(value, _)| value)
        };
        assert_eq!(read(&[0x00], false), Ok(0));
        assert_eq!(read(&[0xe5, 0x8e, 0x26], false), Ok(624_485));
        assert_eq!(read(&[0x7f], true), Ok(u64::MAX), "minus one");
        assert_eq!(read(&[0xc0, 0xbb, 0x78], true), Ok((-123_456i64) as u64));
        assert_eq!(read(&[0x80], false), Err(Fault::BeyondEnd));
        assert_eq!(read(&[0xff; 19], false), Err(Fault::BadValue("integer over 64 bits")));
        let padded = [0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(read(&padded, false), Ok(5));
        let padded = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(read(&padded, true), Ok((-2i64) as u64));
        assert_eq!(read(&padded, false), Err(Fault::BadValue("integer over 64 bits")));
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read(&most, false), Ok(u64::MAX));
    }

    #[test]
    fn text_ends_at_its_terminator_or_not_at_all() {
        let read = |bytes: &[u8], unit| text_to_null(bytes, 0, bytes.len() as u64 * 8, unit);
        assert_eq!(read(b"ab\0c", 1), Ok((Slot::Span { len: 2, start: 0 }, 24)));
        assert_eq!(read(b"abc", 1), Err(Fault::BeyondEnd));
        assert_eq!(read(&[1, 0, 0, 1, 0, 0], 2), Ok((Slot::Span { len: 4, start: 0 }, 48)));
    }
}
