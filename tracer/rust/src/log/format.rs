// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts Rust's format strings to the printf formats that recordings contain
//! (`format` in spec/schema-language.md).
//!
//! Supported are the features common to both: `{}` with a width, a precision, an alignment to either side by
//! blanks, `+`, `#`, `0`, and the letters `? x X o e p`.

use core::fmt::{self, Write};

/// The type of an argument in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "they are called as in Rust")]
pub enum Type {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    Bool,
    String,
    Pointer,
}

impl Type {
    /// The name of the type in pleco.
    pub(super) fn word(self) -> &'static str {
        match self {
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::U32 => "u32",
            Type::U64 | Type::Pointer => "u64",
            Type::I8 => "i8",
            Type::I16 => "i16",
            Type::I32 => "i32",
            Type::I64 => "i64",
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::Bool => "bool",
            Type::String => "string",
        }
    }

    const fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }

    const fn is_signed(self) -> bool {
        matches!(self, Type::I8 | Type::I16 | Type::I32 | Type::I64)
    }

    const fn is_number(self) -> bool {
        !matches!(self, Type::Bool | Type::String | Type::Pointer)
    }
}

/// Maximum width and precision of the schema language.
const WIDTH_MAX: u32 = 1000;

/// The text between braces.
#[derive(Clone, Copy)]
struct Placeholder {
    /// `<` or `>`, else 0.
    align: u8,
    has_plus: bool,
    is_alternate: bool,
    has_zeros: bool,
    width: Option<u32>,
    precision: Option<u32>,
    /// One of `? x X o e p`, else 0.
    letter: u8,
}

/// Parses a placeholder whose opening brace is just before `at`. Returns it and the position after
/// its closing brace, or None if it is not supported.
const fn placeholder(text: &[u8], mut at: usize) -> Option<(Placeholder, usize)> {
    let mut found = Placeholder {
        align: 0,
        has_plus: false,
        is_alternate: false,
        has_zeros: false,
        width: None,
        precision: None,
        letter: 0,
    };
    if byte(text, at) == b':' {
        at += 1;
        if byte(text, at) == b' ' && matches!(byte(text, at + 1), b'<' | b'>') {
            at += 1;
        }
        if matches!(byte(text, at), b'<' | b'>') {
            found.align = byte(text, at);
            at += 1;
        }
        if byte(text, at) == b'+' {
            found.has_plus = true;
            at += 1;
        }
        if byte(text, at) == b'#' {
            found.is_alternate = true;
            at += 1;
        }
        if byte(text, at) == b'0' {
            found.has_zeros = true;
            at += 1;
        }
        if byte(text, at).is_ascii_digit() {
            let (width, end) = number(text, at);
            found.width = Some(width);
            at = end;
        }
        if byte(text, at) == b'.' {
            if !byte(text, at + 1).is_ascii_digit() {
                return None;
            }
            let (precision, end) = number(text, at + 1);
            found.precision = Some(precision);
            at = end;
        }
        if matches!(byte(text, at), b'?' | b'x' | b'X' | b'o' | b'e' | b'p') {
            found.letter = byte(text, at);
            at += 1;
        }
    }
    if byte(text, at) == b'}' { Some((found, at + 1)) } else { None }
}

const fn at_most(number: Option<u32>, most: u32) -> bool {
    match number {
        Some(number) => number <= most,
        None => true,
    }
}

/// 0 past the end.
const fn byte(text: &[u8], at: usize) -> u8 {
    if at < text.len() { text[at] } else { 0 }
}

/// A number, more than WIDTH_MAX if it is too large, and its end.
const fn number(text: &[u8], mut at: usize) -> (u32, usize) {
    let mut value = 0;
    while byte(text, at).is_ascii_digit() {
        if value <= WIDTH_MAX {
            value = value * 10 + (text[at] - b'0') as u32;
        }
        at += 1;
    }
    (value, at)
}

impl Placeholder {
    /// Whether the schema language has such a conversion for a field of this type.
    const fn suits(&self, ty: Type) -> bool {
        let is_based = matches!(self.letter, b'x' | b'X' | b'o');
        let letter_suits = match self.letter {
            0 => true,
            b'?' => !matches!(ty, Type::String),
            b'x' | b'X' | b'o' => ty.is_number() && !ty.is_float(),
            b'e' => ty.is_float(),
            _ => matches!(ty, Type::Pointer),
        };
        let has_flags = self.has_plus || self.has_zeros || self.is_alternate;
        let flags_suit = (ty.is_number() || !has_flags) && (is_based || !self.is_alternate);
        // In printf a precision gives integers a minimum number of digits; Rust has no such feature.
        let precision_suits =
            self.precision.is_none() || ty.is_float() || matches!(ty, Type::String);
        letter_suits
            && flags_suit
            && precision_suits
            && at_most(self.width, WIDTH_MAX)
            && at_most(self.precision, WIDTH_MAX)
    }

    /// Writes the conversion.
    fn write(&self, ty: Type, out: &mut impl Write) -> fmt::Result {
        out.write_char('%')?;
        // Rust aligns numbers to the right and everything else to the left.
        let is_left =
            self.align == b'<' || self.align == 0 && matches!(ty, Type::String | Type::Bool);
        if is_left && self.width.is_some() {
            out.write_char('-')?;
        }
        if self.has_plus {
            out.write_char('+')?;
        }
        if self.is_alternate {
            out.write_char('#')?;
        }
        if self.has_zeros {
            out.write_char('0')?;
        }
        if let Some(width) = self.width {
            write!(out, "{width}")?;
        }
        if let Some(precision) = self.precision {
            write!(out, ".{precision}")?;
        }
        out.write_char(match (self.letter, ty) {
            (b'x', _) => 'x',
            (b'X', _) => 'X',
            (b'o', _) => 'o',
            (b'e', _) => 'e',
            (_, Type::Pointer) => 'p',
            (_, Type::String | Type::Bool) => 's',
            (_, ty) if ty.is_float() && self.precision.is_some() => 'f',
            (_, ty) if ty.is_float() => 'g',
            (_, ty) if ty.is_signed() => 'd',
            _ => 'u',
        })
    }
}

/// Whether `text` has a matching placeholder for each of `types`, in order, and nothing unsupported.
pub(super) const fn is_printable(text: &str, types: &[Type]) -> bool {
    let text = text.as_bytes();
    let (mut at, mut taken) = (0, 0);
    while at < text.len() {
        let brace = text[at];
        at += 1;
        if brace == b'{' && byte(text, at) != b'{' {
            let Some((found, end)) = placeholder(text, at) else { return false };
            if taken == types.len() || !found.suits(types[taken]) {
                return false;
            }
            taken += 1;
            at = end;
        } else if brace == b'{' || brace == b'}' {
            // A brace must be doubled; otherwise it is rejected by the line above or here.
            if byte(text, at) != brace {
                return false;
            }
            at += 1;
        } else if brace == 0 {
            return false;
        }
    }
    taken == types.len()
}

/// Writes `text`, for which [`is_printable`] is true, as a printf format.
pub(super) fn write_printf(text: &str, types: &[Type], out: &mut impl Write) -> fmt::Result {
    let mut types = types.iter();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}', '%']) {
        let (before, brace) = rest.split_at(at);
        out.write_str(before)?;
        if let Some(behind) = brace.strip_prefix('%') {
            out.write_str("%%")?;
            rest = behind;
        } else if brace.starts_with("{{") || brace.starts_with('}') {
            out.write_str(&brace[..1])?;
            rest = brace.get(2..).unwrap_or("");
        } else {
            let (Some((found, end)), Some(ty)) = (placeholder(brace.as_bytes(), 1), types.next())
            else {
                return Err(fmt::Error);
            };
            found.write(*ty, out)?;
            rest = brace.get(end..).unwrap_or("");
        }
    }
    out.write_str(rest)
}
