// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which events to print.

use lateralis_model::{Event, Trace};

/// The record that names the writer of what follows; every line says the writer
/// already.
const WRITER: &str = "lateralis:WRITER";

/// One bit per event class, so that choosing costs an index.
pub struct Selection {
    chosen: Vec<Vec<bool>>,
}

impl Selection {
    /// Patterns as given by the user; without any, everything but
    /// bookkeeping, which `all` includes.
    ///
    /// Errors: a pattern that matches no event of the trace, with the names
    /// there are.
    pub fn new(given: &[String], trace: &Trace, all: bool) -> Result<Self, String> {
        let patterns: Vec<&str> =
            given.iter().flat_map(|list| list.split(',')).filter(|p| !p.is_empty()).collect();
        let names = || trace.stream_classes.iter().flat_map(|s| &s.event_classes).map(|e| &e.name);
        let unused = patterns.iter().find(|pattern| {
            let pattern = pattern.trim_start_matches('!');
            !names().any(|name| matches(pattern, name))
        });
        if let Some(pattern) = unused {
            let some: Vec<&str> = names().take(12).map(String::as_str).collect();
            return Err(format!(
                "no event of the trace matches {pattern}: it has {}",
                some.join(", ")
            ));
        }
        let wanted = |name: &str| match patterns.as_slice() {
            [] => all || name != WRITER,
            patterns => chosen(patterns, name),
        };
        let class = |stream: &lateralis_model::StreamClass| {
            stream.event_classes.iter().map(|event| wanted(&event.name)).collect()
        };
        Ok(Self { chosen: trace.stream_classes.iter().map(class).collect() })
    }

    /// Whether to print this event.
    #[inline]
    pub fn contains(&self, event: &Event<'_>) -> bool {
        let stream = self.chosen.get(event.stream_class_index as usize);
        stream.and_then(|events| events.get(event.class_index as usize)).copied().unwrap_or(true)
    }
}

/// The last pattern that matches decides; if all only exclude, the rest is in.
fn chosen(patterns: &[&str], name: &str) -> bool {
    let default = patterns.iter().all(|pattern| pattern.starts_with('!'));
    patterns.iter().fold(default, |chosen, pattern| match pattern.strip_prefix('!') {
        Some(pattern) if matches(pattern, name) => false,
        None if matches(pattern, name) => true,
        _ => chosen,
    })
}

/// Whether `pattern`, with `*` for any characters and `?` for one, is the name.
///
/// Cost: O(pattern × name), no recursion.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to go on if what follows the last star does not fit.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match &mut retry {
                Some((after_star, from)) => {
                    *from += 1;
                    (p, n) = (*after_star, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a:*", "a:B", true),
            ("a:*", "ab:B", false),
            ("*LOCK", "threads:MUTEX_LOCK", true),
            ("*LOCK", "threads:MUTEX_LOCKED", false),
            ("*a*b*", "xxaxxbxx", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("", "a", false),
            ("a**", "a", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_last_match_decides() {
        assert!(chosen(&["a:*", "!a:B"], "a:C"));
        assert!(!chosen(&["a:*", "!a:B"], "a:B"));
        assert!(!chosen(&["a:*"], "b:C"));
        assert!(chosen(&["!a:*"], "b:C"));
        assert!(chosen(&["!a:*", "a:B"], "a:B"));
    }
}
