// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decodes raw records.

use lateralis_model::ByteOrder;

use super::{Element, Field, Format, Kind};
use crate::row::Row;
use crate::wire::{cut_at_nul, signed, unsigned};

/// A record that is shorter than its event's format, or a field that refers to bytes outside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault;

impl Format {
    /// Adds the values of the common fields of `record`.
    ///
    /// # Errors
    /// [`Fault`]; the event is then dropped.
    #[inline]
    pub fn decode_common(
        &self,
        record: &[u8],
        order: ByteOrder,
        row: &mut Row,
    ) -> Result<(), Fault> {
        self.common.iter().try_for_each(|field| value(field, record, order, row))
    }

    /// Adds the values of the event's own fields.
    ///
    /// # Errors
    /// [`Fault`]; the event is then dropped.
    ///
    /// Cost: proportional to the fields; texts, blobs and arrays are copied.
    #[inline]
    pub fn decode(&self, record: &[u8], order: ByteOrder, row: &mut Row) -> Result<(), Fault> {
        self.fields.iter().try_for_each(|field| value(field, record, order, row))
    }
}

/// Adds a value. Most fields are numbers at fixed offsets.
#[inline]
fn value(field: &Field, record: &[u8], order: ByteOrder, row: &mut Row) -> Result<(), Fault> {
    if let (Kind::Integer { signed }, ByteOrder::Little) = (field.kind, order)
        && let Some(rest) = record.get(field.offset..)
    {
        let (value, extended) = match field.size {
            1 => {
                let [byte] = *rest.first_chunk().ok_or(Fault)?;
                (u64::from(byte), i64::from(byte as i8))
            }
            2 => {
                let half = u16::from_le_bytes(*rest.first_chunk().ok_or(Fault)?);
                (u64::from(half), i64::from(half as i16))
            }
            4 => {
                let word = u32::from_le_bytes(*rest.first_chunk().ok_or(Fault)?);
                (u64::from(word), i64::from(word as i32))
            }
            8 => {
                let long = u64::from_le_bytes(*rest.first_chunk().ok_or(Fault)?);
                (long, long as i64)
            }
            _ => return any_value(field, record, order, row),
        };
        if signed {
            row.i64(extended)
        } else {
            row.u64(value)
        }
        return Ok(());
    }
    any_value(field, record, order, row)
}

fn any_value(field: &Field, record: &[u8], order: ByteOrder, row: &mut Row) -> Result<(), Fault> {
    let end = field.offset.checked_add(field.size).ok_or(Fault)?;
    match field.kind {
        Kind::Tail(element) => {
            let tail = record.get(field.offset..).unwrap_or(&[]);
            elements(element, tail, order, row);
            return Ok(());
        }
        Kind::Located { relative, element } => {
            let word = record.get(field.offset..end).ok_or(Fault)?;
            let word = unsigned(word, order).ok_or(Fault)? as u32;
            let base = if relative { end } else { 0 };
            let begin = base + (word & 0xffff) as usize;
            let bytes = record.get(begin..begin + (word >> 16) as usize).ok_or(Fault)?;
            elements(element, bytes, order, row);
            return Ok(());
        }
        Kind::Integer { .. } | Kind::Array(_) => {}
    }
    let bytes = record.get(field.offset..end).ok_or(Fault)?;
    match field.kind {
        Kind::Integer { signed: true } => row.i64(signed(bytes, order).ok_or(Fault)?),
        Kind::Array(element) => elements(element, bytes, order, row),
        _ => row.u64(unsigned(bytes, order).ok_or(Fault)?),
    }
    Ok(())
}

#[inline]
fn elements(element: Element, bytes: &[u8], order: ByteOrder, row: &mut Row) {
    match element {
        Element::Character => row.bytes(cut_at_nul(bytes)),
        Element::Byte => row.bytes(bytes),
        Element::Integer { bytes: each, .. } => row.integers(bytes, each as usize, order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::{Fields, Value};

    const FORMAT: &str = "name: e\nID: 1\nformat:\n\
\tfield:char name[4];\toffset:0;\tsize:4;\tsigned:0;\n\
\tfield:short n;\toffset:4;\tsize:2;\tsigned:1;\n\
\tfield:u16 list[2];\toffset:6;\tsize:4;\tsigned:0;\n\
\tfield:__data_loc char[] file;\toffset:10;\tsize:4;\tsigned:0;\n\
\tfield:__rel_loc u8[] data;\toffset:14;\tsize:4;\tsigned:0;\n\
\tfield:char rest[];\toffset:24;\tsize:0;\tsigned:0;\n";

    fn read(record: &[u8], order: ByteOrder) -> Option<Vec<String>> {
        let format = Format::parse("s", FORMAT, 8).unwrap();
        let mut row = Row::default();
        format.decode(record, order, &mut row).ok()?;
        let class = format.event_class().payload?;
        let fields = Fields::new(&class, &row.slots, &row.bytes);
        assert_eq!(fields.slot_count(), row.slots.len());
        let shown = fields.into_iter().map(|(_, field)| match field.value() {
            Value::Text(text) => text.to_str().into_owned(),
            Value::Bytes(bytes) => format!("{bytes:?}"),
            Value::Array(all) => {
                all.map(|e| e.as_u64().unwrap().to_string()).collect::<Vec<_>>().join("+")
            }
            _ => format!("{}", field.as_u64().unwrap() as i64),
        });
        Some(shown.collect())
    }

    #[test]
    fn every_kind_of_field_in_both_orders() {
        let mut little = b"ab\0x\xfe\xff\x01\x00\x02\x00".to_vec();
        little.extend((18u32 | 3 << 16).to_le_bytes());
        little.extend((3u32 | 2 << 16).to_le_bytes());
        little.extend(b"hi\0\x07\x08\x09tail\0");
        assert_eq!(
            read(&little, ByteOrder::Little).unwrap(),
            ["ab", "-2", "1+2", "hi", "[7, 8]", "tail"].map(String::from)
        );
        let mut big = b"abcd\xff\xfe\x00\x01\x02\x00".to_vec();
        big.extend((18u32 | 1 << 16).to_be_bytes());
        big.extend(0u32.to_be_bytes());
        big.extend(b"x");
        assert_eq!(
            read(&big, ByteOrder::Big).unwrap(),
            ["abcd", "-2", "1+512", "x", "[]", ""].map(String::from)
        );
    }

    #[test]
    fn what_points_outside_is_a_fault() {
        let mut record = vec![0; 24];
        assert!(read(&record, ByteOrder::Little).is_some());
        assert!(read(&record[..17], ByteOrder::Little).is_none());
        record[10..14].copy_from_slice(&(23u32 | 2 << 16).to_le_bytes());
        assert!(read(&record, ByteOrder::Little).is_none());
        record[10..14].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(read(&record, ByteOrder::Little).is_none());
    }
}
