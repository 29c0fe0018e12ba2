// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the lines of a class have in common, made once: literals, and between
//! them the leaves to be printed.

use crate::value::slots_of;
use crate::{
    Base, Encoding, EventClass, Field, FieldClass, FieldKind, IntegerClass, Member, Slot,
    StreamClass,
};

use super::digits;
use super::escape::escaped;
use super::fields::value;
use super::pen::{Literal, Pen};

/// The fields of an event as text: everything after its name and the context of its packet.
pub(super) struct Layout<'t> {
    pieces: Vec<Piece<'t>>,
}

/// A leaf and the literal after it.
struct Piece<'t> {
    show: Show<'t>,
    behind: Literal,
}

/// How to print a leaf. All but the last two take one slot.
enum Show<'t> {
    Decimal,
    DecimalSigned,
    /// Digits of this number of low bits; `0x` belongs to the literal before.
    Hexadecimal(u64),
    /// Text in UTF-8; its quotation marks belong to the literals around.
    Text,
    /// As its class asks for.
    Any(&'t FieldClass),
    /// Not at all.
    Nothing(&'t FieldClass),
}

/// The text between scopes.
pub(super) const COMMA: &[u8] = b", ";

impl<'t> Layout<'t> {
    /// The layout, and the literal before its first leaf. That begins with a comma
    /// if there is any scope, and ends the line if there is no leaf.
    pub fn of(stream: &'t StreamClass, event: &'t EventClass) -> (Vec<u8>, Self) {
        // The scopes are consecutive, so that one walk covers all.
        let scopes = [
            ("stream.event.context = ", &stream.common_context),
            ("event.context = ", &event.context),
            ("event.fields = ", &event.payload),
        ];
        let mut making = Making::default();
        for (name, class) in scopes {
            if let Some(class) = class {
                making.literal.extend_from_slice(COMMA);
                making.literal.extend_from_slice(name.as_bytes());
                making.members(class.members());
            }
        }
        making.literal.push(b'\n');
        let mut literals = making.literals;
        literals.push(making.literal);
        let mut literals = literals.into_iter();
        let first = literals.next().unwrap_or_default();
        let piece = |(show, behind): (_, Vec<u8>)| Piece { show, behind: Literal::new(&behind) };
        (first, Self { pieces: making.shows.into_iter().zip(literals).map(piece).collect() })
    }

    /// Appends the leaves and the literal after each.
    #[inline(always)]
    pub fn print(&self, pen: &mut Pen<'_>, slots: &[Slot], bytes: &[u8]) {
        let mut used = 0;
        for piece in &self.pieces {
            let slot = slots.get(used).copied().unwrap_or(Slot::Unsigned(0));
            let rest = || slots.get(used..).unwrap_or(&[]);
            let mut taken = 1;
            match (&piece.show, slot) {
                (Show::Decimal, Slot::Unsigned(value)) => digits::decimal(pen, value),
                (Show::DecimalSigned, Slot::Signed(value)) => digits::decimal_signed(pen, value),
                (Show::Hexadecimal(mask), Slot::Unsigned(value)) => {
                    digits::hexadecimal(pen, value & mask);
                }
                (Show::Hexadecimal(mask), Slot::Signed(value)) => {
                    digits::hexadecimal(pen, value as u64 & mask);
                }
                (Show::Text, Slot::Span { len, start }) => {
                    let text = bytes.get(start as usize..).unwrap_or(&[]);
                    let is_whole = text.len() >= len as usize;
                    escaped(pen, if is_whole { text } else { &[] }, len as usize);
                }
                (Show::Any(class), _) => {
                    pen.lend(|pen| value(pen, Field::new(class, rest(), bytes)));
                    taken = slots_of(class, rest());
                }
                (Show::Nothing(class), _) => taken = slots_of(class, rest()),
                // A slot of another shape, a fault of the decoder, reads as zero
                // or empty.
                (Show::Decimal | Show::DecimalSigned | Show::Hexadecimal(_), _) => pen.all(b"0"),
                (Show::Text, _) => {}
            }
            used += taken;
            pen.literal(&piece.behind);
        }
    }
}

/// A layout in the making.
#[derive(Default)]
struct Making<'t> {
    /// The literal before each leaf.
    literals: Vec<Vec<u8>>,
    shows: Vec<Show<'t>>,
    /// The literal after the last leaf.
    literal: Vec<u8>,
}

impl<'t> Making<'t> {
    fn members(&mut self, members: &'t [Member]) {
        self.literal.push(b'{');
        let mut separator: &[u8] = b" ";
        for member in members {
            let class = &member.class;
            if class.structural {
                self.leaf(Show::Nothing(class));
                continue;
            }
            self.literal.extend_from_slice(separator);
            separator = COMMA;
            self.literal.extend_from_slice(member.name.as_bytes());
            self.literal.extend_from_slice(b" = ");
            match &class.kind {
                FieldKind::Struct(inner) => self.members(inner),
                _ => self.leaf(Show::of(class)),
            }
        }
        self.literal.extend_from_slice(b" }");
    }

    fn leaf(&mut self, show: Show<'t>) {
        let (before, behind): (&[u8], &[u8]) = match show {
            Show::Hexadecimal(_) => (b"0x", b""),
            Show::Text => (b"\"", b"\""),
            _ => (b"", b""),
        };
        self.literal.extend_from_slice(before);
        self.literals.push(std::mem::replace(&mut self.literal, behind.to_vec()));
        self.shows.push(show);
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

/// Digits of a negative number are those of its width, rounded up to whole digits of this number of
/// bits.
pub(super) fn digits_mask(bits: u32, digit: u32) -> u64 {
    match bits.next_multiple_of(digit) {
        bits @ 0..64 => (1 << bits) - 1,
        _ => u64::MAX,
    }
}
