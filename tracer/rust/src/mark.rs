// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Remarks on the timeline, which need no schema.

use crate::c_core;
use crate::emit::emit_internal;
use crate::record::Record;
use core::fmt::{Arguments, Write};

/// Whether a recorder is recording this program.
///
/// Context: anywhere. Cost: a call and two loads.
#[inline]
pub fn is_recording() -> bool {
    c_core::lat_recording() != 0
}

/// Records a remark if this program is being recorded. Ends at its first NUL.
///
/// Context: anywhere. Cost: like [`Schema::emit_record`](crate::Schema::emit_record).
pub fn mark(text: &str) {
    if is_recording() {
        let mut record = Record::new();
        record.str(text);
        emit_internal(c_core::ID_MARK, &record);
    }
}

/// Records a remark if this program is being recorded: `mark!("frame {n} drawn")`, like `println!`.
///
/// The text is formatted here and truncated at 240 bytes; see [`log!`](crate::log) for remarks that the
/// reader formats. Nothing is formatted when the program is not being recorded.
#[macro_export]
macro_rules! mark {
    ($($format:tt)+) => {
        if $crate::is_recording() {
            $crate::mark_arguments(::core::format_args!($($format)+));
        }
    };
}

/// Implementation of [`mark!`](crate::mark).
#[doc(hidden)]
#[cold]
pub fn mark_arguments(arguments: Arguments<'_>) {
    if let Some(text) = arguments.as_str() {
        mark(text);
        return;
    }
    let mut remark = Remark { text: [0; REMARK_BYTES], length: 0 };
    // An error means that it was truncated, or that a Display failed: the text so far is recorded.
    let _ = remark.write_fmt(arguments);
    let text = remark.text.get(..remark.length).unwrap_or_default();
    mark(core::str::from_utf8(text).unwrap_or_default());
}

const REMARK_BYTES: usize = 240;

struct Remark {
    text: [u8; REMARK_BYTES],
    /// Always at a character boundary.
    length: usize,
}

impl Write for Remark {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let mut end = text.len().min(REMARK_BYTES - self.length);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let place = self.text.get_mut(self.length..self.length + end);
        if let (Some(place), Some(text)) = (place, text.as_bytes().get(..end)) {
            place.copy_from_slice(text);
            self.length += end;
        }
        if end == text.len() { Ok(()) } else { Err(core::fmt::Error) }
    }
}
