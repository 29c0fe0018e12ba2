// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of one event during decoding.

use lateralis_model::{ByteOrder, Scalar, ScalarKind, Slot};

/// Values of an event in the order of its classes, and the bytes to which texts, blobs and arrays refer.
/// Reused for all events, so that decoding allocates nothing.
#[derive(Debug, Default)]
pub struct Row {
    /// One for each leaf.
    pub slots: Vec<Slot>,
    /// Bytes to which spans and packed elements refer.
    pub bytes: Vec<u8>,
}

impl Row {
    /// Starts the next event.
    #[inline]
    pub fn clear(&mut self) {
        self.slots.clear();
        self.bytes.clear();
    }

    /// An unsigned integer, bits, or 0 or 1 of a boolean field.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.slots.push(Slot::Unsigned(value));
    }

    /// A signed integer.
    #[inline]
    pub fn i64(&mut self, value: i64) {
        self.slots.push(Slot::Signed(value));
    }

    /// Bytes of a blob or a text; at most 4 GiB.
    #[inline]
    pub fn bytes(&mut self, value: &[u8]) {
        let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
        let start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(&value[..len as usize]);
        self.slots.push(Slot::Span { len, start });
    }

    /// Integers of `each` bytes, contiguous: an array whose elements are [`packed`]. Incomplete trailing
    /// bytes are ignored.
    #[inline]
    pub fn integers(&mut self, value: &[u8], each: usize, order: ByteOrder) {
        let count = value.len() / each;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&value[..count * each]);
        if order == ByteOrder::Big {
            self.bytes[start..].chunks_exact_mut(each).for_each(<[u8]>::reverse);
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.slots.push(Slot::Packed { count, start_bits: start as u64 * 8 });
    }

    /// An array of `count` elements, whose values `elements` adds.
    pub fn array(&mut self, count: u32, elements: impl FnOnce(&mut Self)) {
        let at = self.slots.len();
        self.slots.push(Slot::Elements { count, slots: 0 });
        elements(self);
        let slots = (self.slots.len() - at - 1) as u32;
        self.slots[at] = Slot::Elements { count, slots };
    }
}

/// Layout of integers of a number of bytes, as used by [`Row::integers`].
#[must_use]
pub fn packed(bytes: u32, signed: bool) -> Scalar {
    let bits = bytes * 8;
    let kind = if signed { ScalarKind::Signed } else { ScalarKind::Unsigned };
    Scalar { bits, align_bits: 8, order: ByteOrder::Little, reversed: false, kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::{FieldClass, FieldKind, Fields, Value};

    #[test]
    fn integers_of_either_order_read_alike() {
        let element = Box::new(FieldClass::signed(16));
        let kind = FieldKind::Array { element, length: None, packed: Some(packed(2, true)) };
        let class = FieldClass::structure([("list", FieldClass::new(kind))]);
        for (order, bytes) in
            [(ByteOrder::Little, [1, 0, 0xfe, 0xff, 9]), (ByteOrder::Big, [0, 1, 0xff, 0xfe, 9])]
        {
            let mut row = Row::default();
            row.bytes.push(7);
            row.integers(&bytes, 2, order);
            let fields = Fields::new(&class, &row.slots, &row.bytes);
            let Value::Array(list) = fields.get("list").unwrap().value() else {
                panic!("{order:?}")
            };
            let list: Vec<_> = list.map(|element| element.as_u64().unwrap() as i64).collect();
            assert_eq!(list, [1, -2]);
        }
    }
}
