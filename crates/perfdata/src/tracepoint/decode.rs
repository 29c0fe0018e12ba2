// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values out of raw records.

use lateralis_model::{ByteOrder, Pending};

use super::{Element, Field, Format, Kind};
use crate::wire::{cut_at_nul, signed, unsigned};

/// A record that is shorter than its event's format says, or a field that
/// points outside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault;

impl Format {
    /// Adds the values of the common fields of `record`.
    ///
    /// # Errors
    /// [`Fault`]; the event is then gone.
    pub fn decode_common<'b>(
        &self,
        record: &[u8],
        order: ByteOrder,
        pending: Pending<'b>,
    ) -> Result<Pending<'b>, Fault> {
        self.common.iter().try_fold(pending, |pending, f| value(f, record, order, pending))
    }

    /// Adds the values of the event's own fields.
    ///
    /// # Errors
    /// [`Fault`]; the event is then gone.
    ///
    /// Cost: proportional to the fields; texts and blobs are copied.
    pub fn decode<'b>(
        &self,
        record: &[u8],
        order: ByteOrder,
        pending: Pending<'b>,
    ) -> Result<Pending<'b>, Fault> {
        self.fields.iter().try_fold(pending, |pending, f| value(f, record, order, pending))
    }
}

#[inline]
fn value<'b>(
    field: &Field,
    record: &[u8],
    order: ByteOrder,
    pending: Pending<'b>,
) -> Result<Pending<'b>, Fault> {
    let end = field.offset.checked_add(field.size).ok_or(Fault)?;
    match field.kind {
        Kind::Tail(element) => {
            let tail = record.get(field.offset..).unwrap_or(&[]);
            return elements(element, tail, order, pending);
        }
        Kind::Located { relative, element } => {
            let word = record.get(field.offset..end).ok_or(Fault)?;
            let word = unsigned(word, order).ok_or(Fault)? as u32;
            let base = if relative { end } else { 0 };
            let begin = base + (word & 0xffff) as usize;
            let bytes = record.get(begin..begin + (word >> 16) as usize).ok_or(Fault)?;
            return elements(element, bytes, order, pending);
        }
        Kind::Integer { .. } | Kind::Array(_) => {}
    }
    let bytes = record.get(field.offset..end).ok_or(Fault)?;
    match field.kind {
        Kind::Integer { signed: true } => Ok(pending.i64(signed(bytes, order).ok_or(Fault)?)),
        Kind::Array(element) => elements(element, bytes, order, pending),
        _ => Ok(pending.u64(unsigned(bytes, order).ok_or(Fault)?)),
    }
}

fn elements<'b>(
    element: Element,
    bytes: &[u8],
    order: ByteOrder,
    pending: Pending<'b>,
) -> Result<Pending<'b>, Fault> {
    Ok(match element {
        Element::Character => pending.bytes(cut_at_nul(bytes)),
        Element::Byte => pending.bytes(bytes),
        Element::Integer { bytes: each, signed: is_signed } => {
            let chunks = bytes.chunks_exact(each as usize);
            pending.array(chunks.len() as u32, |pending| {
                chunks.fold(pending, |pending, chunk| match is_signed {
                    true => pending.i64(signed(chunk, order).unwrap_or(0)),
                    false => pending.u64(unsigned(chunk, order).unwrap_or(0)),
                })
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::{MemoryTrace, Source as _, StreamClass, Value};

    const FORMAT: &str = "name: e\nID: 1\nformat:\n\
\tfield:char name[4];\toffset:0;\tsize:4;\tsigned:0;\n\
\tfield:short n;\toffset:4;\tsize:2;\tsigned:1;\n\
\tfield:u16 list[2];\toffset:6;\tsize:4;\tsigned:0;\n\
\tfield:__data_loc char[] file;\toffset:10;\tsize:4;\tsigned:0;\n\
\tfield:__rel_loc u8[] data;\toffset:14;\tsize:4;\tsigned:0;\n\
\tfield:char rest[];\toffset:24;\tsize:0;\tsigned:0;\n";

    fn read(record: &[u8], order: ByteOrder) -> Option<Vec<String>> {
        let format = Format::parse("s", FORMAT, 8).unwrap();
        let mut builder = MemoryTrace::builder("test", u64::MAX);
        let streams = builder.stream_class(StreamClass::default());
        let class = builder.event_class(streams, format.event_class());
        let stream = builder.stream(streams, "s", None);
        let pending = builder.event(stream, class, 0, None);
        format.decode(record, order, pending).ok()?.end().ok()?;
        let trace = builder.finish();
        let mut events = trace.events();
        let event = events.next_event()?;
        let shown = event.payload()?.into_iter().map(|(_, field)| match field.value() {
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
