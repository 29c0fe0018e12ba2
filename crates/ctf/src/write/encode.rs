// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values into bytes.
//!
//! Slots lie in the order of the classes, and nodes are made from the classes:
//! so the two are walked side by side, without looking anything up.

use lateralis_model::{
    Dropped, Encoding, FieldClass, FieldKind, Range, Scalar, ScalarKind, Slot, Text,
};

use super::layout::{Length, Managed, Node, Tag, tag_bytes};

/// Why an event cannot be written with these nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// A field that was taken for a length or a tag is none.
    Site(usize),
    /// The values do not fit their class.
    Values,
}

/// Values yet to be written, as a source lends them.
pub(super) struct Values<'a> {
    pub slots: &'a [Slot],
    /// What spans and packed elements point into.
    pub bytes: &'a [u8],
}

impl Values<'_> {
    /// A missing slot reads as zero, as it does in the model.
    #[inline]
    fn next(&mut self) -> Slot {
        match self.slots.split_first() {
            Some((first, rest)) => {
                self.slots = rest;
                *first
            }
            None => Slot::Unsigned(0),
        }
    }
}

/// Appends values to a packet.
#[derive(Default)]
pub(super) struct Encoder {
    /// The packet so far.
    pub out: Vec<u8>,
    /// End of a packet inside a byte: at this byte, minus this number of bits.
    odd: (usize, u32),
    /// Numbers of the structures around that others may refer to.
    seen: Vec<i128>,
    /// Where managed fields begin.
    pub managed: Vec<(Managed, usize, usize)>,
    pub dropped: Dropped,
}

impl Encoder {
    /// Bits written: the last byte may hold some that are no content.
    pub fn content_bits(&self) -> u64 {
        let unused = if self.odd.0 == self.out.len() { self.odd.1 } else { 0 };
        self.out.len() as u64 * 8 - u64::from(unused)
    }

    /// Forgets what was written from byte `length` on.
    pub fn take_back(&mut self, length: usize, odd: (usize, u32)) {
        self.out.truncate(length);
        self.seen.clear();
        self.odd = odd;
    }

    /// For [`Encoder::take_back`].
    pub fn odd(&self) -> (usize, u32) {
        self.odd
    }

    /// Begins a new packet.
    pub fn clear(&mut self) {
        self.out.clear();
        self.seen.clear();
        self.managed.clear();
        self.odd = (0, 0);
    }

    /// Continues after bytes that were content before.
    pub fn append(&mut self, bytes: &[u8], unused_bits: u32) {
        self.out.extend_from_slice(bytes);
        self.odd = (self.out.len(), unused_bits);
    }

    #[inline]
    pub(super) fn number(&mut self, value: u64, bits: u32) {
        match bits {
            64 => self.out.extend_from_slice(&value.to_le_bytes()),
            32 => self.out.extend_from_slice(&(value as u32).to_le_bytes()),
            8 => self.out.push(value as u8),
            _ => {
                let bytes = bits.div_ceil(8) as usize;
                // Bits that are no content are zero.
                let value = if bits < 64 { value & ((1 << bits) - 1) } else { value };
                self.out.extend_from_slice(&value.to_le_bytes()[..bytes]);
                if !bits.is_multiple_of(8) {
                    self.odd = (self.out.len(), bytes as u32 * 8 - bits);
                }
            }
        }
    }

    /// Notes a number that is wider than its class.
    #[inline]
    pub(super) fn check(&mut self, value: u64, bits: u32, signed: bool) {
        if bits >= 64 {
            return;
        }
        let fits = if signed {
            let value = value as i64;
            value << (64 - bits) >> (64 - bits) == value
        } else {
            value >> bits == 0
        };
        if !fits {
            self.dropped.note("high bits of numbers wider than their class");
        }
    }

    /// Writes one value with everything inside it. `frame` is where the numbers
    /// of the structure around begin.
    #[inline]
    pub fn value(
        &mut self,
        node: &Node,
        values: &mut Values<'_>,
        frame: usize,
    ) -> Result<(), Refused> {
        match node {
            Node::Integer { class, signed, managed } => {
                let slot = values.next();
                let value = raw(slot);
                let bits = class.bits;
                self.check(value, bits, *signed);
                if let Some(managed) = managed {
                    self.managed.push((*managed, self.out.len(), bits as usize / 8));
                }
                self.number(value, bits);
                Ok(())
            }
            Node::Real(bits) => {
                let real = real(values.next());
                if *bits == 32 {
                    self.out.extend_from_slice(&(real as f32).to_le_bytes());
                } else {
                    self.out.extend_from_slice(&real.to_le_bytes());
                }
                Ok(())
            }
            Node::Bool => {
                let yes = raw(values.next()) != 0;
                self.out.push(u8::from(yes));
                Ok(())
            }
            Node::Bits { bits, .. } => {
                let value = raw(values.next());
                self.number(value, *bits);
                Ok(())
            }
            Node::Text { encoding, convert } => {
                let slot = values.next();
                let bytes = span(slot, values.bytes);
                if *convert {
                    let text = Text { bytes, encoding: *encoding }.to_str();
                    self.text(text.as_bytes(), Encoding::Utf8);
                } else {
                    self.text(bytes, *encoding);
                }
                Ok(())
            }
            _ => self.compound(node, values, frame),
        }
    }

    fn compound(
        &mut self,
        node: &Node,
        values: &mut Values<'_>,
        frame: usize,
    ) -> Result<(), Refused> {
        match node {
            Node::Struct { members, refers: false } => {
                members.iter().try_for_each(|member| self.value(&member.node, values, frame))
            }
            Node::Struct { members, refers: true } => {
                let frame = self.seen.len();
                for member in members {
                    let number = match (&member.node, values.slots.first()) {
                        (Node::Integer { .. }, Some(Slot::Signed(value))) => i128::from(*value),
                        (Node::Integer { .. }, Some(slot)) => i128::from(raw(*slot)),
                        _ => 0,
                    };
                    self.value(&member.node, values, frame)?;
                    self.seen.push(number);
                }
                self.seen.truncate(frame);
                Ok(())
            }
            Node::Bytes { length, .. } => {
                let slot = values.next();
                let bytes = span(slot, values.bytes);
                self.length(length, bytes.len() as u64, frame)?;
                self.begin_at_byte();
                self.out.extend_from_slice(bytes);
                Ok(())
            }
            Node::Array { element, length, packed } => {
                self.array(element, length, *packed, values, frame)
            }
            Node::Variant { options, tag } => {
                let index = match values.next() {
                    Slot::Selected { option } => option as usize,
                    _ => 0,
                };
                let option = options.get(index).ok_or(Refused::Values)?;
                match tag {
                    Tag::Own => {
                        let bytes = tag_bytes(options.len());
                        self.number(index as u64, bytes as u32 * 8);
                    }
                    Tag::Reused { member, site, values } => {
                        let number = self.seen.get(frame + member).copied().unwrap_or(0);
                        let of = |ranges: &Vec<Range>| ranges.iter().any(|r| r.contains(number));
                        if values.iter().position(of) != Some(index) {
                            return Err(Refused::Site(*site));
                        }
                    }
                }
                self.value(&option.node, values, frame)
            }
            Node::Optional(inner) => {
                let present = !matches!(values.next(), Slot::Selected { option: 0 });
                self.out.push(u8::from(present));
                if present { self.value(inner, values, frame) } else { Ok(()) }
            }
            Node::Wrapped(inner) => self.value(inner, values, frame),
            Node::Skip(class) => {
                let used = slots_of(class, values.slots);
                values.slots = values.slots.get(used..).unwrap_or(&[]);
                Ok(())
            }
            // Written by `value`.
            _ => Ok(()),
        }
    }

    fn length(&mut self, length: &Length, count: u64, frame: usize) -> Result<(), Refused> {
        match length {
            Length::Fixed(fixed) if *fixed == count => Ok(()),
            Length::Fixed(_) => Err(Refused::Values),
            Length::Own => {
                let count = u32::try_from(count).map_err(|_| Refused::Values)?;
                self.out.extend_from_slice(&count.to_le_bytes());
                Ok(())
            }
            Length::Reused { member, site } => {
                let number = self.seen.get(frame + member).copied();
                if number == Some(i128::from(count)) { Ok(()) } else { Err(Refused::Site(*site)) }
            }
        }
    }

    /// Something that begins at a byte begins here, though it may be empty: the
    /// bits before it are content.
    pub(super) fn begin_at_byte(&mut self) {
        self.odd = (0, 0);
    }

    fn array(
        &mut self,
        element: &Node,
        length: &Length,
        packed: Option<Scalar>,
        values: &mut Values<'_>,
        frame: usize,
    ) -> Result<(), Refused> {
        if self.odd.0 == self.out.len() && element.begins_at_byte() {
            self.begin_at_byte();
        }
        match (values.next(), packed) {
            (Slot::Packed { count, start_bits }, Some(scalar)) => {
                self.length(length, u64::from(count), frame)?;
                self.packed(element, scalar, count, start_bits, values.bytes)
            }
            (Slot::Elements { count, slots }, _) => {
                self.length(length, u64::from(count), frame)?;
                let after = values.slots.get(slots as usize..).unwrap_or(&[]);
                for _ in 0..count {
                    self.value(element, values, frame)?;
                }
                values.slots = after;
                Ok(())
            }
            _ => self.length(length, 0, frame),
        }
    }

    fn packed(
        &mut self,
        element: &Node,
        scalar: Scalar,
        count: u32,
        start_bits: u64,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        let stride = scalar.stride_bits();
        // Bytes that lie as they will lie are copied at once.
        let little = scalar.bits == 8 || scalar.order == lateralis_model::ByteOrder::Little;
        let alike = little
            && !scalar.reversed
            && scalar.kind != ScalarKind::Bool
            && matches!(scalar.bits, 8 | 16 | 32 | 64)
            && stride == u64::from(scalar.bits)
            && start_bits.is_multiple_of(8)
            && width(element) == Some(scalar.bits);
        if alike {
            let start = (start_bits / 8) as usize;
            let length = (u64::from(count) * stride / 8) as usize;
            let end = start.checked_add(length).ok_or(Refused::Values)?;
            self.out.extend_from_slice(bytes.get(start..end).ok_or(Refused::Values)?);
            return Ok(());
        }
        for index in 0..u64::from(count) {
            let raw = scalar.raw(bytes, start_bits.saturating_add(index * stride));
            let slot = Slot::from_raw(raw.unwrap_or(0), scalar.bits, scalar.kind);
            self.value(element, &mut Values { slots: &[slot], bytes }, 0)?;
        }
        Ok(())
    }

    pub(super) fn text(&mut self, bytes: &[u8], encoding: Encoding) {
        if encoding == Encoding::Utf8 && !bytes.contains(&0) {
            self.out.extend_from_slice(bytes);
            self.out.push(0);
            return;
        }
        let unit = encoding.unit_bytes();
        let whole = bytes.len() / unit * unit;
        let bytes = &bytes[..whole];
        let nul = bytes.chunks_exact(unit).position(|unit| unit.iter().all(|&byte| byte == 0));
        let text = match nul {
            Some(units) => {
                self.dropped.note("text behind a NUL character");
                &bytes[..units * unit]
            }
            None => bytes,
        };
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(&[0; 4][..unit]);
    }
}

#[inline]
pub(super) fn real(slot: Slot) -> f64 {
    if let Slot::Real(real) = slot { real } else { 0.0 }
}

/// Width of a number that is written as it lies; `None` for everything else.
pub(super) fn width(node: &Node) -> Option<u32> {
    match node {
        Node::Integer { class, managed: None, .. } => Some(class.bits),
        Node::Bits { bits, .. } | Node::Real(bits) => Some(*bits),
        _ => None,
    }
}

#[inline]
pub(super) fn raw(slot: Slot) -> u64 {
    match slot {
        Slot::Unsigned(value) => value,
        Slot::Signed(value) => value as u64,
        _ => 0,
    }
}

pub(super) fn span(slot: Slot, bytes: &[u8]) -> &[u8] {
    let Slot::Span { len, start } = slot else { return &[] };
    let end = start.saturating_add(u64::from(len));
    bytes.get(start as usize..end as usize).unwrap_or(&[])
}

/// Number of slots that a value takes.
fn slots_of(class: &FieldClass, slots: &[Slot]) -> usize {
    let after = |skipped: usize| slots.get(skipped..).unwrap_or(&[]);
    match &class.kind {
        FieldKind::Struct(members) => {
            members.iter().fold(0, |used, member| used + slots_of(&member.class, after(used)))
        }
        FieldKind::Array { .. } => match slots.first() {
            Some(Slot::Elements { slots, .. }) => 1 + *slots as usize,
            _ => 1,
        },
        FieldKind::Variant(options) => match slots.first() {
            Some(Slot::Selected { option }) => {
                let chosen = options.get(*option as usize);
                1 + chosen.map_or(0, |option| slots_of(&option.class, after(1)))
            }
            _ => 1,
        },
        FieldKind::Optional(inner) => match slots.first() {
            Some(Slot::Selected { option: 0 }) | None => 1,
            Some(_) => 1 + slots_of(inner, after(1)),
        },
        _ => 1,
    }
}
