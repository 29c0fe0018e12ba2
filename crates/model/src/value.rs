// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values, borrowed from the packet they lie in.
//!
//! A decoder writes one [`Slot`] per leaf in the order of the class tree, and
//! one before the elements of an array or the option of a variant. [`Field`]
//! walks class and slots together. So an event of any shape needs one reused
//! vector and no allocation:
//!
//! ```text
//! struct { u32 n; u8 name[n]; variant { a: string, b: u64 } v; }
//! slots:  Unsigned(3) Packed{3 × u8} Selected{1} Unsigned(77)
//! ```

use std::borrow::Cow;

use crate::scalar::sign_extend;
use crate::{Encoding, FieldClass, FieldKind, Member, Scalar, ScalarKind};

/// A decoded leaf, or the mark before something of variable shape.
///
/// Its layout is known, so that a number can be made without a branch: [`Slot::number`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(u32)]
pub enum Slot {
    /// Unsigned number, bits, or 0/1 of a yes/no field.
    Unsigned(u64),
    /// Signed number.
    Signed(i64),
    /// Floating point number.
    Real(f64),
    /// Bytes of the packet: text without its terminator, or a blob.
    Span {
        /// Number of bytes.
        len: u32,
        /// First byte, from the start of the packet.
        start: u64,
    },
    /// Scalars at a fixed distance, still in the packet.
    Packed {
        /// Number of elements.
        count: u32,
        /// Bit of the first, from the start of the packet.
        start_bits: u64,
    },
    /// Elements follow, each with slots of its own.
    Elements {
        /// Number of elements.
        count: u32,
        /// Number of slots that follow for all of them.
        slots: u32,
    },
    /// The slots of the option with this index follow.
    Selected {
        /// Index into the options of the variant; for an optional field 0
        /// means absent, and nothing follows.
        option: u32,
    },
}

/// A value with its class.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    class: &'a FieldClass,
    /// Where it is a packed element there is no slot; this is the value.
    inline: Option<Slot>,
    slots: &'a [Slot],
    bytes: &'a [u8],
}

/// What a field holds.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// Yes or no.
    Bool(bool),
    /// Integer ≥ 0.
    Unsigned(u64),
    /// Integer.
    Signed(i64),
    /// Floating point.
    Real(f64),
    /// Bits.
    Bits(u64),
    /// Characters.
    Text(Text<'a>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Fields.
    Struct(Fields<'a>),
    /// Elements.
    Array(Elements<'a>),
    /// The chosen option.
    Variant(&'a Member, Field<'a>),
    /// Something or nothing.
    Optional(Option<Field<'a>>),
}

impl<'a> Field<'a> {
    /// A value of `class` whose slots begin `slots`; spans point into `bytes`.
    #[inline]
    #[must_use]
    pub fn new(class: &'a FieldClass, slots: &'a [Slot], bytes: &'a [u8]) -> Self {
        Self { class, inline: None, slots, bytes }
    }

    /// The class.
    #[must_use]
    pub fn class(&self) -> &'a FieldClass {
        self.class
    }

    /// The value; a slot of another shape than the class asks for (a fault of
    /// the decoder) reads as zero or empty.
    #[must_use]
    pub fn value(&self) -> Value<'a> {
        let slot = self.inline.or_else(|| self.slots.first().copied());
        let slot = slot.unwrap_or(Slot::Unsigned(0));
        match &self.class.kind {
            FieldKind::Bool => Value::Bool(slot_u64(slot) != 0),
            FieldKind::Unsigned(_) => Value::Unsigned(slot_u64(slot)),
            FieldKind::Signed(_) => Value::Signed(slot_u64(slot) as i64),
            FieldKind::Real(_) => Value::Real(if let Slot::Real(real) = slot { real } else { 0.0 }),
            FieldKind::Bits { .. } => Value::Bits(slot_u64(slot)),
            FieldKind::Text(encoding) => {
                Value::Text(Text { bytes: self.span(slot), encoding: *encoding })
            }
            FieldKind::Bytes(_) => Value::Bytes(self.span(slot)),
            FieldKind::Struct(_) => Value::Struct(Fields::new(self.class, self.slots, self.bytes)),
            FieldKind::Array { element, packed, .. } => {
                Value::Array(self.elements(slot, element, *packed))
            }
            FieldKind::Variant(options) => self.option(slot, options),
            FieldKind::Optional(class) => Value::Optional(match slot {
                Slot::Selected { option: 0 } => None,
                _ => Some(self.following(class)),
            }),
        }
    }

    fn following(&self, class: &'a FieldClass) -> Field<'a> {
        let slots = self.slots.get(1..).unwrap_or(&[]);
        Field { class, inline: None, slots, bytes: self.bytes }
    }

    fn option(&self, slot: Slot, options: &'a [Member]) -> Value<'a> {
        let index = if let Slot::Selected { option } = slot { option as usize } else { 0 };
        match options.get(index) {
            Some(member) => Value::Variant(member, self.following(&member.class)),
            None => Value::Optional(None),
        }
    }

    fn elements(&self, slot: Slot, class: &'a FieldClass, packed: Option<Scalar>) -> Elements<'a> {
        let (source, left) = match (slot, packed) {
            (Slot::Packed { count, start_bits }, Some(scalar)) => {
                (ElementSource::Packed { scalar, next_bits: start_bits }, count)
            }
            (Slot::Elements { count, .. }, _) => {
                (ElementSource::Slots(self.slots.get(1..).unwrap_or(&[])), count)
            }
            _ => (ElementSource::Slots(&[]), 0),
        };
        Elements { class, source, left, bytes: self.bytes }
    }

    fn span(&self, slot: Slot) -> &'a [u8] {
        let Slot::Span { len, start } = slot else {
            return &[];
        };
        let start = start as usize;
        self.bytes.get(start..start + len as usize).unwrap_or(&[])
    }

    /// The number as unsigned 64 bits, two's complement if it is negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self.value() {
            Value::Unsigned(value) | Value::Bits(value) => Some(value),
            Value::Signed(value) => Some(value as u64),
            Value::Bool(value) => Some(u64::from(value)),
            _ => None,
        }
    }

    /// The bytes, also where a format has them as numbers of 8 bits, as CTF 1.8 does.
    #[must_use]
    pub fn as_bytes(&self) -> Option<Cow<'a, [u8]>> {
        match self.value() {
            Value::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
            Value::Array(elements) => elements.as_bytes(),
            _ => None,
        }
    }

    /// The text; invalid characters are replaced.
    #[must_use]
    pub fn as_text(&self) -> Option<Cow<'a, str>> {
        match self.value() {
            Value::Text(text) => Some(text.to_str()),
            _ => None,
        }
    }
}

fn slot_u64(slot: Slot) -> u64 {
    match slot {
        Slot::Unsigned(value) => value,
        Slot::Signed(value) => value as u64,
        _ => 0,
    }
}

/// Number of slots that a value of this class takes at the start of `slots`.
///
/// Cost: proportional to the leaves of the class; arrays count as one.
pub(crate) fn slots_of(class: &FieldClass, slots: &[Slot]) -> usize {
    match &class.kind {
        FieldKind::Struct(members) => {
            let mut used = 0;
            for member in members {
                used += slots_of(&member.class, slots.get(used..).unwrap_or(&[]));
            }
            used
        }
        FieldKind::Array { .. } => match slots.first() {
            Some(Slot::Elements { slots, .. }) => 1 + *slots as usize,
            _ => 1,
        },
        FieldKind::Variant(options) => match slots.first() {
            Some(Slot::Selected { option }) => match options.get(*option as usize) {
                Some(member) => 1 + slots_of(&member.class, slots.get(1..).unwrap_or(&[])),
                None => 1,
            },
            _ => 1,
        },
        FieldKind::Optional(inner) => match slots.first() {
            Some(Slot::Selected { option: 0 }) | None => 1,
            Some(_) => 1 + slots_of(inner, slots.get(1..).unwrap_or(&[])),
        },
        _ => 1,
    }
}

/// The fields of a struct; iterates over names and values.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    class: &'a FieldClass,
    members: &'a [Member],
    slots: &'a [Slot],
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Fields of the struct `class`, whose values begin `slots`; spans point
    /// into `bytes`.
    #[must_use]
    pub fn new(class: &'a FieldClass, slots: &'a [Slot], bytes: &'a [u8]) -> Self {
        Self { class, members: class.members(), slots, bytes }
    }

    /// Number of slots of the whole struct.
    #[must_use]
    pub fn slot_count(&self) -> usize {
        slots_of(self.class, self.slots)
    }

    /// The slots of the struct, and all following ones.
    #[must_use]
    pub fn slots(&self) -> &'a [Slot] {
        self.slots
    }

    /// The field with this name.
    ///
    /// Cost: walks the fields before it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Field<'a>> {
        self.into_iter().find(|(member, _)| member.name == name).map(|(_, field)| field)
    }
}

impl<'a> IntoIterator for Fields<'a> {
    type Item = (&'a Member, Field<'a>);
    type IntoIter = FieldsIter<'a>;

    fn into_iter(self) -> FieldsIter<'a> {
        FieldsIter { members: self.members.iter(), slots: self.slots, bytes: self.bytes }
    }
}

/// Iterator over the fields of a struct.
#[derive(Clone)]
pub struct FieldsIter<'a> {
    members: std::slice::Iter<'a, Member>,
    slots: &'a [Slot],
    bytes: &'a [u8],
}

impl<'a> Iterator for FieldsIter<'a> {
    type Item = (&'a Member, Field<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let member = self.members.next()?;
        let slots = self.slots;
        let used = slots_of(&member.class, slots);
        self.slots = slots.get(used..).unwrap_or(&[]);
        Some((member, Field { class: &member.class, inline: None, slots, bytes: self.bytes }))
    }
}

/// The elements of an array, in order.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    class: &'a FieldClass,
    source: ElementSource<'a>,
    left: u32,
    bytes: &'a [u8],
}

#[derive(Clone, Copy)]
enum ElementSource<'a> {
    Slots(&'a [Slot]),
    Packed { scalar: Scalar, next_bits: u64 },
}

impl<'a> Elements<'a> {
    /// The bytes of the remaining elements, the layout of each, and the bit at which the first
    /// begins; `None` if they are not consecutive.
    pub(crate) fn packed(&self) -> Option<(&'a [u8], Scalar, u64)> {
        match self.source {
            ElementSource::Packed { scalar, next_bits } => Some((self.bytes, scalar, next_bits)),
            ElementSource::Slots(_) => None,
        }
    }

    fn as_bytes(self) -> Option<Cow<'a, [u8]>> {
        let FieldKind::Unsigned(class) = &self.class.kind else { return None };
        if class.bits != 8 {
            return None;
        }
        if let ElementSource::Packed { scalar, next_bits } = self.source
            && scalar.bits == 8
            && scalar.align_bits == 8
            && !scalar.reversed
            && next_bits.is_multiple_of(8)
        {
            let begin = usize::try_from(next_bits / 8).ok()?;
            let bytes = self.bytes.get(begin..begin.checked_add(self.len())?);
            return Some(Cow::Borrowed(bytes.unwrap_or(&[])));
        }
        Some(self.filter_map(|field| field.as_u64()).map(|value| value as u8).collect())
    }

    /// The class of each.
    pub(crate) fn class(&self) -> &'a FieldClass {
        self.class
    }

    /// How many are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left as usize
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (inline, slots) = match &mut self.source {
            ElementSource::Slots(slots) => {
                let here = *slots;
                *slots = here.get(slots_of(self.class, here)..).unwrap_or(&[]);
                (None, here)
            }
            ElementSource::Packed { scalar, next_bits } => {
                let raw = scalar.raw(self.bytes, *next_bits).unwrap_or(0);
                *next_bits += scalar.stride_bits();
                (Some(Slot::from_raw(raw, scalar.bits, scalar.kind)), &[][..])
            }
        };
        Some(Field { class: self.class, inline, slots, bytes: self.bytes })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

/// Which of the first three slots a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum NumberKind {
    /// [`Slot::Unsigned`].
    Unsigned,
    /// [`Slot::Signed`], in two's complement.
    Signed,
    /// [`Slot::Real`], as IEEE 754 has it.
    Real,
}

impl Slot {
    /// The number of these bits. Equal to a `match` over the kind, without a branch or a table,
    /// which matters if millions of rows are made.
    #[inline(always)]
    #[must_use]
    pub fn number(kind: NumberKind, bits: u64) -> Self {
        /// How the variants of one number lie in memory.
        #[repr(C)]
        struct Number {
            kind: NumberKind,
            bits: u64,
        }
        const { assert!(size_of::<Number>() == size_of::<Slot>()) };
        // SAFETY: of an enumeration with `repr(u32)` each variant is a C structure of
        // the discriminant and its fields [Rust Reference, Type layout, primitive
        // representation]. The kinds are the discriminants of the first three, whose one
        // field has 8 bytes, any of which are a value.
        unsafe { std::mem::transmute(Number { kind, bits }) }
    }

    /// The slot for the `width` bits `raw` of a scalar of this kind.
    #[inline]
    #[must_use]
    pub fn from_raw(raw: u64, width: u32, kind: ScalarKind) -> Self {
        match kind {
            ScalarKind::Bool | ScalarKind::Unsigned => Self::Unsigned(raw),
            ScalarKind::Signed => Self::Signed(sign_extend(raw, width)),
            ScalarKind::Real if width == 32 => Self::Real(f64::from(f32::from_bits(raw as u32))),
            ScalarKind::Real => Self::Real(f64::from_bits(raw)),
        }
    }
}

/// Characters in the encoding of their trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The bytes, without a terminator.
    pub bytes: &'a [u8],
    /// How to read them.
    pub encoding: Encoding,
}

impl<'a> Text<'a> {
    /// As UTF-8; borrowed where it already is, else converted. What is no
    /// character becomes U+FFFD.
    #[must_use]
    pub fn to_str(&self) -> Cow<'a, str> {
        let sixteen = |read: fn([u8; 2]) -> u16| {
            let (units, _) = self.bytes.as_chunks::<2>();
            let decoded = char::decode_utf16(units.iter().map(|&unit| read(unit)));
            Cow::Owned(decoded.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
        };
        let thirty_two = |read: fn([u8; 4]) -> u32| {
            let (units, _) = self.bytes.as_chunks::<4>();
            let decoded = units.iter().map(|&unit| char::from_u32(read(unit)));
            Cow::Owned(decoded.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
        };
        match self.encoding {
            Encoding::Utf8 => String::from_utf8_lossy(self.bytes),
            Encoding::Utf16Be => sixteen(u16::from_be_bytes),
            Encoding::Utf16Le => sixteen(u16::from_le_bytes),
            Encoding::Utf32Be => thirty_two(u32::from_be_bytes),
            Encoding::Utf32Le => thirty_two(u32::from_le_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteOrder, IntegerClass};

    fn unsigned() -> FieldClass {
        FieldClass::new(FieldKind::Unsigned(IntegerClass { bits: 8, ..Default::default() }))
    }

    fn member(name: &str, class: FieldClass) -> Member {
        Member { name: name.to_owned(), class }
    }

    /// The struct of the module's introduction, with an additional field at the end.
    fn example() -> FieldClass {
        let scalar = Scalar {
            bits: 8,
            align_bits: 8,
            order: ByteOrder::Little,
            reversed: false,
            kind: ScalarKind::Unsigned,
        };
        let array =
            FieldKind::Array { element: Box::new(unsigned()), length: None, packed: Some(scalar) };
        let options = vec![
            member("a", FieldClass::new(FieldKind::Text(Encoding::Utf8))),
            member("b", unsigned()),
        ];
        FieldClass::new(FieldKind::Struct(vec![
            member("n", unsigned()),
            member("name", FieldClass::new(array)),
            member("v", FieldClass::new(FieldKind::Variant(options))),
            member("last", unsigned()),
        ]))
    }

    #[test]
    fn walking_classes_and_slots_together_finds_every_field() {
        let class = example();
        let bytes = [3, 10, 20, 30];
        let slots = [
            Slot::Unsigned(3),
            Slot::Packed { count: 3, start_bits: 8 },
            Slot::Selected { option: 1 },
            Slot::Unsigned(77),
            Slot::Unsigned(99),
        ];
        let fields = Fields::new(&class, &slots, &bytes);
        assert_eq!(fields.slot_count(), 5);
        assert_eq!(fields.get("n").unwrap().as_u64(), Some(3));
        assert_eq!(fields.get("last").unwrap().as_u64(), Some(99));
        let Value::Array(elements) = fields.get("name").unwrap().value() else { panic!() };
        let elements: Vec<_> = elements.map(|element| element.as_u64().unwrap()).collect();
        assert_eq!(elements, [10, 20, 30]);
        assert_eq!(fields.get("name").unwrap().as_bytes().unwrap()[..], [10, 20, 30]);
        assert!(fields.get("n").unwrap().as_bytes().is_none());
        let Value::Variant(option, field) = fields.get("v").unwrap().value() else { panic!() };
        assert_eq!((option.name.as_str(), field.as_u64()), ("b", Some(77)));
        assert!(fields.get("missing").is_none());
    }

    #[test]
    fn text_of_every_encoding_reads_as_utf8() {
        let cases: [(&[u8], Encoding); 5] = [
            ("ü€".as_bytes(), Encoding::Utf8),
            (&[0, 0xfc, 0x20, 0xac], Encoding::Utf16Be),
            (&[0xfc, 0, 0xac, 0x20], Encoding::Utf16Le),
            (&[0, 0, 0, 0xfc, 0, 0, 0x20, 0xac], Encoding::Utf32Be),
            (&[0xfc, 0, 0, 0, 0xac, 0x20, 0, 0], Encoding::Utf32Le),
        ];
        for (bytes, encoding) in cases {
            assert_eq!(Text { bytes, encoding }.to_str(), "ü€", "{encoding:?}");
        }
    }

    #[test]
    fn what_is_no_character_is_replaced() {
        let text = Text { bytes: &[b'a', 0xff], encoding: Encoding::Utf8 };
        assert_eq!(text.to_str(), "a\u{fffd}");
        let text = Text { bytes: &[0, 0xd8], encoding: Encoding::Utf16Le };
        assert_eq!(text.to_str(), "\u{fffd}");
    }

    #[test]
    fn a_slot_is_two_words() {
        assert_eq!(size_of::<Slot>(), 16);
    }
}
