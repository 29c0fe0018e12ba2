// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Marks that programs write into the kernel's trace: `B|10|onDraw` in the text of ftrace's `print`.
//!
//! ```text
//! B|PID|NAME            a span of the thread begins      E|PID   the innermost ends
//! S|PID|NAME|COOKIE     a span of the process begins     F|PID|NAME|COOKIE   it ends
//! G|PID|TRACK|NAME|COOKIE  the same on a named track     H|PID|TRACK|COOKIE  it ends
//! I|PID|NAME            something happened               N|PID|TRACK|NAME    on a named track
//! C|PID|NAME|VALUE      a counter has a value
//! ```
//!
//! Source: `frameworks/native/libs/tracing` and `system/core/libcutils/trace-dev.inc` of Android,
//! and what Perfetto reads beyond (`systrace_parser.h`).

mod source;
mod survey;

use lateralis_model::role::{Keyed, Role};

use crate::phases::Track;
pub use source::with_marks;

/// The category of events that are marks.
pub(crate) const CATEGORY_OF_MARKS: &str = "atrace";

/// A mark, taken apart.
#[derive(Debug, PartialEq)]
pub(crate) struct Mark<'a> {
    pub letter: u8,
    pub pid: Option<u32>,
    pub name: &'a str,
    pub track: &'a str,
    pub cookie: Option<&'a str>,
    pub value: Option<i64>,
}

impl<'a> Mark<'a> {
    /// Of a text; `None` if it is only a text.
    pub fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim_end_matches(['\n', '\0']);
        let letter = *text.as_bytes().first()?;
        let rest = match text.get(1..)? {
            "" if letter == b'E' => "",
            rest => rest.strip_prefix('|')?,
        };
        let (pid, rest) = rest.split_once('|').unwrap_or((rest, ""));
        let pid: Option<u32> = pid.parse().ok();
        let mut mark = Mark { letter, pid, name: rest, track: "", cookie: None, value: None };
        // Names may hold bars, what follows them may not.
        match letter {
            b'B' | b'I' => (),
            b'E' => mark.name = "",
            b'S' | b'F' => {
                let (name, cookie) = rest.rsplit_once('|')?;
                (mark.name, mark.cookie) = (name, Some(cookie));
            }
            b'G' => {
                let (rest, cookie) = rest.rsplit_once('|')?;
                let (track, name) = rest.split_once('|')?;
                (mark.track, mark.name, mark.cookie) = (track, name, Some(cookie));
            }
            b'H' => {
                // Older writers repeat the name.
                let (rest, cookie) = rest.rsplit_once('|')?;
                let (track, name) = rest.split_once('|').unwrap_or((rest, ""));
                (mark.track, mark.name, mark.cookie) = (track, name, Some(cookie));
            }
            b'N' => {
                let (track, name) = rest.split_once('|')?;
                (mark.track, mark.name) = (track, name);
            }
            b'C' => {
                let (name, value) = rest.rsplit_once('|')?;
                mark.name = name;
                mark.value = Some(value.trim().parse().ok()?);
            }
            _ => return None,
        }
        (mark.pid.is_some() || letter == b'E').then_some(mark)
    }

    /// Whether it begins a span or ends one.
    pub fn begins(&self) -> Option<bool> {
        match self.letter {
            b'B' | b'S' | b'G' => Some(true),
            b'E' | b'F' | b'H' => Some(false),
            _ => None,
        }
    }

    /// Where its span nests, if a thread of this process made the mark.
    pub fn track(&self, pid: u32, tid: u32) -> Track {
        match self.cookie {
            Some(cookie) => {
                let is_named = matches!(self.letter, b'S' | b'F');
                let id = format!("{is_named}\0{}\0{cookie}", self.track);
                Track::Keyed(self.pid, id.into_bytes())
            }
            None => Track::Thread(pid, tid),
        }
    }
}

/// What a mark of this name means, and the word for it. `keys` are the fields that keep its
/// span apart from others of the process, `value` that of a counter.
pub(crate) fn roles(
    letter: u8,
    name: &str,
    keys: Vec<String>,
    value: &str,
) -> (Vec<Role>, Option<&'static str>) {
    let keyed = |keys| Keyed { name: name.to_owned(), keys, ..Keyed::default() };
    match letter {
        b'B' => (vec![Role::Begin(keyed(Vec::new()))], Some("begin")),
        b'E' => (vec![Role::End(keyed(Vec::new()))], Some("end")),
        b'S' | b'G' => (vec![Role::Begin(keyed(keys))], Some("async begin")),
        b'F' | b'H' => (vec![Role::End(keyed(keys))], Some("async end")),
        b'C' => (
            vec![Role::Counter { field: value.to_owned(), name: None, keys: Vec::new() }],
            Some("counter"),
        ),
        _ => (Vec::new(), Some("instant")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_apart() {
        let parse =
            |text| Mark::parse(text).map(|mark| (mark.name, mark.track, mark.cookie, mark.value));
        assert_eq!(parse("B|10|a|b\n"), Some(("a|b", "", None, None)));
        assert_eq!(parse("E|10"), Some(("", "", None, None)));
        assert_eq!(parse("E"), Some(("", "", None, None)));
        assert_eq!(parse("S|10|load|x|7"), Some(("load|x", "", Some("7"), None)));
        assert_eq!(parse("G|10|row|name|7"), Some(("name", "row", Some("7"), None)));
        assert_eq!(parse("H|10|row|7"), Some(("", "row", Some("7"), None)));
        assert_eq!(parse("N|10|row|name"), Some(("name", "row", None, None)));
        assert_eq!(parse("C|10|queue|-3\n"), Some(("queue", "", None, Some(-3))));
        for text in ["", "B", "Bx|10|a", "C|10|queue|many", "S|10|load", "hello", "Z|10|a", "B|x|a"]
        {
            assert_eq!(Mark::parse(text), None, "{text}");
        }
    }
}
