// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing of the compact protocol of Thrift, in which Parquet keeps its
//! descriptions (thrift-compact-protocol.md of apache/thrift).

/// Types of fields.
const BOOL_TRUE: u8 = 1;
const BOOL_FALSE: u8 = 2;
const BYTE: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct being written. Fields come in ascending order.
#[derive(Debug, Default)]
pub struct Struct {
    out: Vec<u8>,
    last: i16,
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, (value << 1 ^ value >> 63) as u64);
}

impl Struct {
    fn field(&mut self, id: i16, kind: u8) {
        let delta = id - self.last;
        if (1..=15).contains(&delta) {
            self.out.push((delta as u8) << 4 | kind);
        } else {
            self.out.push(kind);
            zigzag(&mut self.out, i64::from(id));
        }
        self.last = id;
    }

    /// A field of type i32 or an enumeration.
    pub fn i32(mut self, id: i16, value: i32) -> Self {
        self.field(id, I32);
        zigzag(&mut self.out, i64::from(value));
        self
    }

    /// A field of type i64.
    pub fn i64(mut self, id: i16, value: i64) -> Self {
        self.field(id, I64);
        zigzag(&mut self.out, value);
        self
    }

    /// A field of type i8.
    pub fn byte(mut self, id: i16, value: u8) -> Self {
        self.field(id, BYTE);
        self.out.push(value);
        self
    }

    /// A field of type bool.
    pub fn bool(mut self, id: i16, value: bool) -> Self {
        self.field(id, if value { BOOL_TRUE } else { BOOL_FALSE });
        self
    }

    /// A text or bytes.
    pub fn bytes(mut self, id: i16, value: &[u8]) -> Self {
        self.field(id, BINARY);
        varint(&mut self.out, value.len() as u64);
        self.out.extend_from_slice(value);
        self
    }

    /// A struct.
    pub fn record(mut self, id: i16, value: Struct) -> Self {
        self.field(id, STRUCT);
        self.out.extend(value.end());
        self
    }

    fn list(&mut self, id: i16, kind: u8, length: usize) {
        self.field(id, LIST);
        if length < 15 {
            self.out.push((length as u8) << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            varint(&mut self.out, length as u64);
        }
    }

    /// A list of structs.
    pub fn records(mut self, id: i16, values: Vec<Struct>) -> Self {
        self.list(id, STRUCT, values.len());
        values.into_iter().for_each(|value| self.out.extend(value.end()));
        self
    }

    /// A list of numbers of type i32 or of an enumeration.
    pub fn i32s(mut self, id: i16, values: &[i32]) -> Self {
        self.list(id, I32, values.len());
        values.iter().for_each(|&value| zigzag(&mut self.out, i64::from(value)));
        self
    }

    /// A list of texts.
    pub fn texts(mut self, id: i16, values: &[&str]) -> Self {
        self.list(id, BINARY, values.len());
        for value in values {
            varint(&mut self.out, value.len() as u64);
            self.out.extend_from_slice(value.as_bytes());
        }
        self
    }

    /// The bytes of the struct.
    pub fn end(mut self) -> Vec<u8> {
        self.out.push(0);
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_protocol_says() {
        let inner = Struct::default().i32(1, -1);
        let bytes = Struct::default()
            .i32(1, 150)
            .bool(3, true)
            .bytes(4, b"ab")
            .record(40, inner)
            .i32s(41, &[1, 2])
            .end();
        let expected = [
            0x15, 0xac, 0x02, // 1: i32 150
            0x21, // 3: true
            0x18, 2, b'a', b'b', // 4: "ab"
            0x0c, 80, 0x15, 1, 0, // 40, far away: struct { 1: -1 }
            0x19, 0x25, 2, 4, // 41: list of two i32
            0,
        ];
        assert_eq!(bytes, expected);
    }
}
