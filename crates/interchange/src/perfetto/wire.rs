// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The wire format of protocol buffers (protobuf.dev, "Encoding"): reading and
//! writing.

/// An encoded value in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire<'a> {
    /// Type 0.
    Varint(u64),
    /// Type 1.
    Fixed64(u64),
    /// Type 5.
    Fixed32(u32),
    /// Type 2: a text, bytes or a message.
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    /// The number, of any type; 0 for bytes.
    pub fn number(self) -> u64 {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => value,
            Self::Fixed32(value) => u64::from(value),
            Self::Bytes(_) => 0,
        }
    }

    /// The bytes; none for numbers.
    pub fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }

    /// The text; invalid characters are replaced.
    pub fn text(self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.bytes())
    }

    /// The message.
    pub fn message(self) -> Message<'a> {
        Message::new(self.bytes())
    }

    /// The floating point number of a field of type `double` or `float`.
    pub fn real(self) -> f64 {
        match self {
            Self::Fixed32(bits) => f64::from(f32::from_bits(bits)),
            other => f64::from_bits(other.number()),
        }
    }
}

/// A message: an iterator over its fields, numbers and values. It ends before the
/// first field that is no field.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    rest: &'a [u8],
    /// Whether all fields so far were whole.
    pub whole: bool,
}

impl<'a> Message<'a> {
    /// The message in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, whole: true }
    }

    /// Whether the bytes are fields from beginning to end, none of an absurd number.
    pub fn is_valid(mut self) -> bool {
        self.by_ref().all(|(number, _)| number < 20_000) && self.whole
    }

    fn field(&mut self) -> Option<(u32, Wire<'a>)> {
        let tag = varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| number > 0)?;
        let value = match tag & 7 {
            0 => Wire::Varint(varint(&mut self.rest)?),
            1 => {
                let (bytes, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                Wire::Fixed64(u64::from_le_bytes(*bytes))
            }
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Wire::Bytes(bytes)
            }
            5 => {
                let (bytes, rest) = self.rest.split_first_chunk()?;
                self.rest = rest;
                Wire::Fixed32(u32::from_le_bytes(*bytes))
            }
            _ => return None,
        };
        Some((number, value))
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = (u32, Wire<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.whole = false;
            self.rest = &[];
        }
        field
    }
}

/// Takes a number of 1 to 10 bytes; `None` if the bytes end or it has more.
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Some(value);
        }
    }
    None
}

/// All numbers of a repeated field in packed form.
pub fn packed(mut bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    std::iter::from_fn(move || varint(&mut bytes))
}

/// Undoes the zigzag form of signed numbers.
pub fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Adds a number.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Adds a field of type 0.
pub fn put_number(out: &mut Vec<u8>, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3);
    put_varint(out, value);
}

/// Adds a field of type 1.
pub fn put_fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    put_varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Adds a text, bytes or a message.
pub fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut out = Vec::new();
        put_number(&mut out, 1, u64::MAX);
        put_fixed64(&mut out, 300, 7);
        put_bytes(&mut out, 2, b"text");
        let fields: Vec<_> = Message::new(&out).collect();
        assert_eq!(
            fields,
            [(1, Wire::Varint(u64::MAX)), (300, Wire::Fixed64(7)), (2, Wire::Bytes(b"text"))]
        );
        assert!(Message::new(&out).is_valid());
        assert!(!Message::new(&out[..out.len() - 1]).is_valid());
    }

    #[test]
    fn damaged_fields_end_the_message() {
        for bad in [&[0x08][..], &[0x0a, 5, 1], &[0x07], &[0xff; 11], &[0x00, 0]] {
            let mut message = Message::new(bad);
            assert_eq!(message.next(), None, "{bad:?}");
            assert!(!message.whole);
        }
    }

    #[test]
    fn signed_numbers_alternate() {
        let values = [0, 1, 2, u64::MAX].map(zigzag);
        assert_eq!(values, [0, -1, 1, i64::MIN]);
    }
}
