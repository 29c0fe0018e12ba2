// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the fields of a record are (spec/ring-abi.md §3).
//!
//! A record is an 8-byte header at a multiple of 8, then the fields in order, each at its natural
//! alignment. There is no padding after the last field. The elements of a sequence follow its
//! length at their own alignment, which applies even if there are none.

use crate::schema::{Event, FieldType};

/// Size of the header of every record.
pub const RECORD_HEADER_BYTES: u32 = 8;

/// The layout of an event's payload. Offsets count from the end of the header,
/// which is a multiple of 8, so alignment is the same as in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offset of each field, as far as every field in front has a fixed size.
    /// For sequences and bytes it is the offset of the length.
    pub offsets: Vec<Option<u32>>,
    /// Exact size, if every field has a fixed size.
    pub payload_bytes: Option<u32>,
    /// Least size: strings, bytes and sequences empty.
    pub payload_bytes_min: u32,
}

impl Event {
    /// Computes the layout. Cost: O(fields).
    pub fn layout(&self) -> Layout {
        let mut offsets = Vec::with_capacity(self.fields.len());
        let mut end = Some(0_u32);
        let mut least = 0_u32;
        for field in &self.fields {
            let start = end.map(|at| align_up(at, field.ty.alignment_bytes()));
            offsets.push(start);
            end = start.zip(field.ty.fixed_bytes()).map(|(at, size)| at + size);
            least = align_up(least, field.ty.alignment_bytes());
            least = match field.ty {
                FieldType::String => least + 1,
                FieldType::Bytes => least + 4,
                // The elements are aligned even when there are none: that is how
                // readers of CTF find the next field [CTF 1.8.3 §4.2.3].
                FieldType::Sequence(element) => align_up(least + 4, element.size_bytes()),
                _ => least + field.ty.fixed_bytes().unwrap_or(0),
            };
        }
        Layout { offsets, payload_bytes: end, payload_bytes_min: least }
    }
}

impl FieldType {
    /// Alignment of the first byte of the field.
    pub fn alignment_bytes(self) -> u32 {
        match self {
            FieldType::Scalar(scalar) | FieldType::Array { element: scalar, .. } => {
                scalar.size_bytes()
            }
            FieldType::Sequence(_) | FieldType::Bytes => 4,
            FieldType::String => 1,
        }
    }

    /// Size, if it does not depend on the value.
    pub fn fixed_bytes(self) -> Option<u32> {
        match self {
            FieldType::Scalar(scalar) => Some(scalar.size_bytes()),
            FieldType::Array { element, length } => Some(element.size_bytes() * length),
            FieldType::Sequence(_) | FieldType::Bytes | FieldType::String => None,
        }
    }
}

/// `at` rounded up to a multiple of `alignment`, a power of two.
pub(crate) fn align_up(at: u32, alignment: u32) -> u32 {
    (at + alignment - 1) & !(alignment - 1)
}
