// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The schema of all sites of an object, as canonical pleco text (spec/schema-language.md).

use super::format::write_printf;
use super::{Description, Entry, entries};
use crate::schema::Identity;
use core::cmp::Ordering as Order;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;
use core::{ptr, slice, str};

// Set-up may use libc, which the C core needs anyway; this crate has no other allocator.
unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut u8;
    fn free(memory: *mut u8);
}

/// Keeps names within the limit of the schema language.
const STEM_BYTES_MAX: usize = 80;

#[derive(Clone, Copy)]
struct Described {
    site: Description,
    entry: &'static Entry,
}

/// Numbers the sites of this object, and writes their schema. No events if there is no memory.
/// Context: set-up. Cost: O(n log n) for n sites, and writing the text twice.
pub(super) fn identity() -> Identity {
    let nothing = Identity { text: Text { memory: ptr::null_mut(), bytes: 0 }, event_count: 0 };
    let all = entries();
    let count = all.len();
    // SAFETY: malloc takes any size; the result is checked, and aligned for any type.
    let memory = unsafe { malloc(count * size_of::<Described>()) }.cast::<Described>();
    if memory.is_null() {
        return nothing;
    }
    for (i, entry) in all.iter().enumerate() {
        let described = Described { site: (entry.describe)(), entry };
        // SAFETY: `i` is below `count`, for which there is room.
        unsafe { memory.add(i).write(described) };
    }
    // SAFETY: all `count` elements were written, and there is no other reference to them.
    let sites = unsafe { slice::from_raw_parts_mut(memory, count) };
    sites.sort_unstable_by(|a, b| a.site.order(&b.site));
    let event_count = number(sites);
    let text = print(sites);
    // SAFETY: from malloc above; no element needs to be dropped.
    unsafe { free(memory.cast()) };
    text.map_or(nothing, |text| Identity { text, event_count })
}

/// Assigns event numbers to every site. Equal sites are adjacent and share them. Returns their
/// number.
fn number(sites: &[Described]) -> u32 {
    let mut next = 0;
    for (i, described) in sites.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| sites.get(i));
        if let Some(before) = before.filter(|before| before.site.order(&described.site).is_eq()) {
            // Relaxed: published by the release of `enabled` in register_sites.
            described
                .entry
                .index
                .store(before.entry.index.load(Ordering::Relaxed), Ordering::Relaxed);
        } else {
            described.entry.index.store(next, Ordering::Relaxed);
            next += if described.site.is_span { 2 } else { 1 };
        }
    }
    next
}

/// A text that owns its memory.
pub(crate) struct Text {
    /// Null or from malloc.
    memory: *mut u8,
    bytes: usize,
}

impl Text {
    pub fn as_str(&self) -> &str {
        if self.memory.is_null() {
            return "";
        }
        // SAFETY: `bytes` bytes were allocated and written, by a fmt::Write, which gets only UTF-8.
        unsafe { str::from_utf8_unchecked(slice::from_raw_parts(self.memory, self.bytes)) }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: null, which free ignores, or from malloc and not freed yet.
        unsafe { free(self.memory) };
    }
}

fn print(sites: &[Described]) -> Option<Text> {
    let mut counter = Buffer { memory: &mut [], used: 0 };
    write_schema(sites, &mut counter).ok()?;
    // SAFETY: malloc takes any size; the result is checked.
    let memory = unsafe { malloc(counter.used) };
    if memory.is_null() {
        return None;
    }
    let text = Text { memory, bytes: counter.used };
    // SAFETY: malloc returned this many bytes; zeros are UTF-8 and may be read.
    let memory = unsafe {
        ptr::write_bytes(memory, 0, text.bytes);
        slice::from_raw_parts_mut(memory, text.bytes)
    };
    // The same text as counted before, so it fits.
    write_schema(sites, &mut Buffer { memory, used: 0 }).ok()?;
    Some(text)
}

fn write_schema(sites: &[Described], out: &mut impl Write) -> fmt::Result {
    out.write_str("schema log_rust;\nsubsystem log {\n")?;
    let mut same_line = 0;
    for (i, Described { site, .. }) in sites.iter().enumerate() {
        if let Some(before) = i.checked_sub(1).and_then(|i| sites.get(i)) {
            if before.site.order(site).is_eq() {
                continue;
            }
            same_line = if before.site.order_of_name(site).is_eq() { same_line + 1 } else { 0 };
        }
        site.write_events(same_line, out)?;
    }
    out.write_str("};\n")
}

impl Description {
    /// Sites with equal names are adjacent; equal means the same events.
    fn order(&self, other: &Description) -> Order {
        self.order_of_name(other)
            .then_with(|| self.file.cmp(other.file))
            .then_with(|| self.column.cmp(&other.column))
            .then_with(|| self.is_span.cmp(&other.is_span))
            .then_with(|| self.text.cmp(other.text))
            .then_with(|| self.types.cmp(other.types))
    }

    fn order_of_name(&self, other: &Description) -> Order {
        self.stem().cmp(other.stem()).then_with(|| self.line.cmp(&other.line))
    }

    /// Characters of the file's stem, as used in a name.
    fn stem(&self) -> impl Iterator<Item = char> {
        let base = self.file.rsplit(['/', '\\']).next().unwrap_or("");
        let stem = base.strip_suffix(".rs").unwrap_or(base);
        // A name begins with a letter.
        let first = if stem.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { "f" };
        let part = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        first.chars().chain(stem.chars().map(part)).take(STEM_BYTES_MAX)
    }

    /// `stem_line`; sites on the same line have a letter appended from the second on.
    fn write_name(&self, same_line: u32, out: &mut impl Write) -> fmt::Result {
        for c in self.stem() {
            out.write_char(c)?;
        }
        write!(out, "_{}", self.line)?;
        let mut rest = same_line;
        while rest != 0 {
            out.write_char(char::from(b'a' + (rest % 26) as u8))?;
            rest /= 26;
        }
        Ok(())
    }

    fn write_events(&self, same_line: u32, out: &mut impl Write) -> fmt::Result {
        if self.is_span {
            for clause in ["begin", "end"] {
                out.write_str("event ")?;
                self.write_name(same_line, out)?;
                writeln!(out, "_{clause} () {clause} {},", self.text)?;
            }
            return Ok(());
        }
        out.write_str("event ")?;
        self.write_name(same_line, out)?;
        out.write_str(" \"")?;
        let mut literal = Literal { out: &mut *out, ends_in_number: false };
        write_printf(self.text, self.types, &mut literal)?;
        out.write_str("\" (")?;
        for (i, ty) in self.types.iter().enumerate() {
            write!(out, "{}a{i}: {}", if i == 0 { "" } else { ", " }, ty.word())?;
        }
        out.write_str(") format,\n")
    }
}

/// Writes the inside of a pleco string literal.
struct Literal<'a, W> {
    out: &'a mut W,
    ends_in_number: bool,
}

impl<W: Write> Write for Literal<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.ends_in_number && c.is_ascii_hexdigit() {
                self.out.write_str("\\&")?;
            }
            self.ends_in_number = false;
            match c {
                '"' => self.out.write_str("\\\"")?,
                '\\' => self.out.write_str("\\\\")?,
                '\n' => self.out.write_str("\\n")?,
                '\r' => self.out.write_str("\\r")?,
                '\t' => self.out.write_str("\\t")?,
                ' '..='~' => self.out.write_char(c)?,
                c => {
                    write!(self.out, "\\x{:x}", c as u32)?;
                    self.ends_in_number = true;
                }
            }
        }
        Ok(())
    }
}

/// Text in limited memory; `used` also counts the part that does not fit.
struct Buffer<'a> {
    memory: &'a mut [u8],
    used: usize,
}

impl Write for Buffer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Some(place) = self.memory.get_mut(self.used..self.used + text.len()) {
            place.copy_from_slice(text.as_bytes());
        }
        self.used += text.len();
        Ok(())
    }
}
