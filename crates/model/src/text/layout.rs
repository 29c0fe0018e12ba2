// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the lines of a class have in common, made once: literals, and between
//! them the leaves to be printed.

use std::ops::Range;

use crate::value::slots_of;
use crate::{
    Base, Encoding, EventClass, Field, FieldClass, FieldKind, IntegerClass, Member, Slot,
    StreamClass,
};

use super::babeltrace::{quoted, value};
use super::number;

/// The fields of an event as text: everything behind its name and the context
/// of its packet.
#[derive(Default)]
pub(super) struct Layout<'t> {
    literals: Vec<u8>,
    pieces: Vec<Piece<'t>>,
    /// Literal behind the last piece.
    end: Range<usize>,
}

/// A literal and what follows it.
struct Piece<'t> {
    literal: Range<usize>,
    show: Show<'t>,
}

/// How to print a leaf. All but the last two take one slot.
enum Show<'t> {
    Decimal,
    DecimalSigned,
    /// Digits of so many low bits.
    Hexadecimal(u64),
    /// Text in UTF-8.
    Text,
    /// As its class asks for.
    Any(&'t FieldClass),
    /// Not at all.
    Nothing(&'t FieldClass),
}

/// What begins each layout. It goes where nothing stands before.
const COMMA: &[u8] = b", ";

impl<'t> Layout<'t> {
    pub fn of(stream: &'t StreamClass, event: &'t EventClass) -> Self {
        let mut layout = Layout::default();
        // The scopes lie one behind the other, so that one walk does for all.
        let scopes = [
            ("stream.event.context = ", &stream.common_context),
            ("event.context = ", &event.context),
            ("event.fields = ", &event.payload),
        ];
        let mut from = 0;
        for (name, class) in scopes {
            if let Some(class) = class {
                layout.literals.extend_from_slice(COMMA);
                layout.literals.extend_from_slice(name.as_bytes());
                layout.members(class.members(), &mut from);
            }
        }
        layout.literals.push(b'\n');
        layout.end = from..layout.literals.len();
        layout
    }

    fn members(&mut self, members: &'t [Member], from: &mut usize) {
        self.literals.push(b'{');
        let mut separator: &[u8] = b" ";
        for member in members {
            let class = &member.class;
            if class.structural {
                self.piece(Show::Nothing(class), from);
                continue;
            }
            self.literals.extend_from_slice(separator);
            separator = COMMA;
            self.literals.extend_from_slice(member.name.as_bytes());
            self.literals.extend_from_slice(b" = ");
            match &class.kind {
                FieldKind::Struct(inner) => self.members(inner, from),
                _ => self.piece(Show::of(class), from),
            }
        }
        self.literals.extend_from_slice(b" }");
    }

    fn piece(&mut self, show: Show<'t>, from: &mut usize) {
        let literal = std::mem::replace(from, self.literals.len())..self.literals.len();
        self.pieces.push(Piece { literal, show });
    }

    /// Appends the fields and a line feed. `first` if nothing stands before them.
    pub fn print(&self, out: &mut Vec<u8>, slots: &[Slot], bytes: &[u8], first: bool) {
        let start = out.len();
        let mut used = 0;
        for piece in &self.pieces {
            out.extend_from_slice(&self.literals[piece.literal.clone()]);
            let slot = slots.get(used).copied().unwrap_or(Slot::Unsigned(0));
            let rest = || slots.get(used..).unwrap_or(&[]);
            match (&piece.show, slot) {
                (Show::Decimal, Slot::Unsigned(value)) => number::decimal(out, value),
                (Show::DecimalSigned, Slot::Signed(value)) => number::decimal_signed(out, value),
                (Show::Hexadecimal(mask), Slot::Unsigned(value)) => {
                    number::hexadecimal(out, value & mask);
                }
                (Show::Hexadecimal(mask), Slot::Signed(value)) => {
                    number::hexadecimal(out, value as u64 & mask);
                }
                (Show::Text, Slot::Span { len, start }) => {
                    let start = start as usize;
                    quoted(out, bytes.get(start..start + len as usize).unwrap_or(&[]));
                }
                (Show::Any(class), _) => {
                    value(out, Field::new(class, rest(), bytes));
                    used += slots_of(class, rest());
                    continue;
                }
                (Show::Nothing(class), _) => {
                    used += slots_of(class, rest());
                    continue;
                }
                // A slot of another shape, a fault of the decoder, reads as zero
                // or empty.
                (Show::Decimal | Show::DecimalSigned, _) => out.push(b'0'),
                (Show::Hexadecimal(_), _) => out.extend_from_slice(b"0x0"),
                (Show::Text, _) => out.extend_from_slice(b"\"\""),
            }
            used += 1;
        }
        out.extend_from_slice(&self.literals[self.end.clone()]);
        if first && out[start..].starts_with(COMMA) {
            out.drain(start..start + COMMA.len());
        }
    }
}

impl<'t> Show<'t> {
    fn of(class: &'t FieldClass) -> Self {
        let plain = |class: &IntegerClass| class.labels.is_empty();
        match &class.kind {
            FieldKind::Unsigned(integer) if plain(integer) && integer.base == Base::Decimal => {
                Self::Decimal
            }
            FieldKind::Signed(integer) if plain(integer) && integer.base == Base::Decimal => {
                Self::DecimalSigned
            }
            FieldKind::Unsigned(integer) | FieldKind::Signed(integer)
                if plain(integer) && integer.base == Base::Hexadecimal =>
            {
                Self::Hexadecimal(digits_mask(integer.bits, 4))
            }
            FieldKind::Text(Encoding::Utf8) => Self::Text,
            _ => Self::Any(class),
        }
    }
}

/// Digits of a negative number are those of its width, rounded up to whole digits
/// of so many bits.
pub(super) fn digits_mask(bits: u32, digit: u32) -> u64 {
    match bits.next_multiple_of(digit) {
        bits @ 0..64 => (1 << bits) - 1,
        _ => u64::MAX,
    }
}
