// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Quotations of metadata in messages, cut before they are copied: names may have any length.

use std::fmt::{self, Write as _};

/// Bytes that a message quotes of one thing, at most.
const QUOTED_BYTES: usize = 160;

/// A displayed value, up to this number of bytes, followed by `…` if cut.
///
/// Cost: formatting ends where the text is cut.
pub(crate) fn brief(thing: impl fmt::Display) -> String {
    brief_of(format_args!("{thing}"))
}

/// The same of what has a form for programmers.
pub(super) fn brief_debug(thing: &impl fmt::Debug) -> String {
    brief_of(format_args!("{thing:?}"))
}

fn brief_of(thing: fmt::Arguments<'_>) -> String {
    let mut out = Cut { text: String::new() };
    if out.write_fmt(thing).is_err() {
        out.text.push('…');
    }
    out.text
}

/// Takes what there is room for, and then fails.
struct Cut {
    text: String,
}

impl fmt::Write for Cut {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = QUOTED_BYTES - self.text.len().min(QUOTED_BYTES);
        if more.len() <= room {
            self.text.push_str(more);
            return Ok(());
        }
        let end = (0..=room).rev().find(|&at| more.is_char_boundary(at)).unwrap_or(0);
        self.text.push_str(&more[..end]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_things_are_cut_between_characters() {
        assert_eq!(brief("name"), "name");
        assert_eq!(brief("x".repeat(QUOTED_BYTES)), "x".repeat(QUOTED_BYTES));
        assert_eq!(brief("x".repeat(QUOTED_BYTES + 1)), "x".repeat(QUOTED_BYTES) + "…");
        let cut = brief("ü€".repeat(QUOTED_BYTES));
        assert!(cut.starts_with("ü€ü") && cut.ends_with('…') && cut.len() < QUOTED_BYTES + 6);
        assert_eq!(brief_debug(&"a\"b"), r#""a\"b""#);
        assert!(brief_debug(&vec![7u8; 1 << 20]).starts_with("[7, 7, "));
    }
}
