// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selection of events: lists of patterns [ring-abi §8].
//!
//! A pattern is `SUBSYSTEM:EVENT` with `*` and `?`, or `SUBSYSTEM` alone; a leading `!` excludes;
//! the last matching pattern of a list decides. The tracer applies the same rules to
//! schemas that register later, from the text in the area's header.

use std::fmt;

/// A list of patterns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patterns {
    items: Vec<Pattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    excludes: bool,
    subsystem: String,
    event: Option<String>,
}

/// A rejected pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// The pattern as given.
    pub pattern: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Cannot use pattern: pattern={:?}; write SUBSYSTEM or SUBSYSTEM:EVENT, with * and ?, \
             and ! in front to exclude",
            self.pattern
        )
    }
}

impl std::error::Error for PatternError {}

impl Patterns {
    /// Matches everything.
    pub fn all() -> Patterns {
        Patterns {
            items: vec![Pattern { excludes: false, subsystem: "*".to_owned(), event: None }],
        }
    }

    /// Parses a comma-separated list; an empty one matches nothing.
    pub fn parse(list: &str) -> Result<Patterns, PatternError> {
        let mut items = Vec::new();
        for text in list.split(',').filter(|text| !text.is_empty()) {
            let (excludes, name) = match text.strip_prefix('!') {
                Some(rest) => (true, rest),
                None => (false, text),
            };
            let allowed =
                |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '\'' | '*' | '?');
            let (subsystem, event) = match name.split_once(':') {
                Some((subsystem, event)) => (subsystem, Some(event)),
                None => (name, None),
            };
            let good = |part: &str| !part.is_empty() && part.chars().all(allowed);
            if !good(subsystem) || !event.is_none_or(good) {
                return Err(PatternError { pattern: text.to_owned() });
            }
            items.push(Pattern {
                excludes,
                subsystem: subsystem.to_owned(),
                event: event.map(str::to_owned),
            });
        }
        Ok(Patterns { items })
    }

    /// Appends the patterns of `other`.
    pub fn extend(&mut self, other: &Patterns) {
        self.items.extend(other.items.iter().cloned());
    }

    /// A list that matches at least the events of each of `lists`: exactly those of a single one; otherwise
    /// without exclusions, except those at the end of all lists.
    #[must_use]
    pub fn any_of(lists: &[&Patterns]) -> Patterns {
        let Some((first, others)) = lists.split_first() else { return Patterns::default() };
        if others.iter().all(|other| other == first) {
            return (*first).clone();
        }
        let last = |list: &Patterns| list.items.iter().rposition(|one| !one.excludes);
        let at_end = |list: &Patterns, pattern: &Pattern| {
            let place = list.items.iter().rposition(|one| one == pattern);
            place.is_some_and(|place| last(list).is_none_or(|last| place > last))
        };
        let included = lists.iter().flat_map(|list| &list.items).filter(|one| !one.excludes);
        let mut items: Vec<Pattern> = Vec::new();
        for pattern in included {
            if !items.contains(pattern) {
                items.push(pattern.clone());
            }
        }
        let excluded = first.items.iter().filter(|one| one.excludes);
        items.extend(excluded.filter(|one| lists.iter().all(|list| at_end(list, one))).cloned());
        Patterns { items }
    }

    /// The patterns that match none of these events (subsystem and event names), and
    /// whether they exclude.
    #[must_use]
    pub fn unused(&self, events: &[(&str, &str)]) -> Vec<(bool, String)> {
        let is_used = |pattern: &Pattern| {
            events.iter().any(|(subsystem, event)| pattern.means(subsystem, event))
        };
        let unused = self.items.iter().filter(|pattern| !is_used(pattern));
        let named = |pattern: &Pattern| {
            let list = Patterns { items: vec![Pattern { excludes: false, ..pattern.clone() }] };
            (pattern.excludes, list.to_string())
        };
        let mut unused: Vec<(bool, String)> = unused.map(named).collect();
        unused.dedup();
        unused
    }

    /// Number of patterns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether patterns from this one on include an event, and whether some exclude it.
    #[must_use]
    pub fn added(&self, from: usize, subsystem: &str, event: &str) -> (bool, bool) {
        let added = self.items.iter().skip(from).filter(|one| one.means(subsystem, event));
        added.fold((false, false), |(included, excluded), one| {
            (included | !one.excludes, excluded | one.excludes)
        })
    }

    /// Whether the list contains no pattern.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether the event is selected: `Some(false)` if it is excluded, `None` if no pattern
    /// matches.
    pub fn decide(&self, subsystem: &str, event: &str) -> Option<bool> {
        self.items
            .iter()
            .rev()
            .find(|pattern| pattern.means(subsystem, event))
            .map(|pattern| !pattern.excludes)
    }

    /// Whether the event is enabled by the list.
    pub fn matches(&self, subsystem: &str, event: &str) -> bool {
        self.decide(subsystem, event).unwrap_or(false)
    }
}

impl Pattern {
    fn means(&self, subsystem: &str, event: &str) -> bool {
        let of_event = |name: &String| glob(name.as_bytes(), event.as_bytes());
        glob(self.subsystem.as_bytes(), subsystem.as_bytes())
            && self.event.as_ref().is_none_or(of_event)
    }
}

impl fmt::Display for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, pattern) in self.items.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let bang = if pattern.excludes { "!" } else { "" };
            write!(f, "{comma}{bang}{}", pattern.subsystem)?;
            if let Some(event) = &pattern.event {
                write!(f, ":{event}")?;
            }
        }
        Ok(())
    }
}

/// `*` matches any text, `?` any byte. Cost: O(pattern × text) at worst, no recursion.
pub(crate) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            retry = Some((p + 1, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == b'?' || pattern[p] == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((after_star, from)) = retry {
            retry = Some((after_star, from + 1));
            p = after_star;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, event: &str, expected: bool) {
        let (subsystem, name) = event.split_once(':').unwrap();
        let patterns = Patterns::parse(list).unwrap();
        assert_eq!(patterns.matches(subsystem, name), expected, "{list} on {event}");
        assert_eq!(Patterns::parse(&patterns.to_string()), Ok(patterns));
    }

    #[test]
    fn the_last_match_decides() {
        check("*", "a:B", true);
        check("", "a:B", false);
        check("a", "a:B", true);
        check("a:B", "a:BC", false);
        check("a:B*", "a:BC", true);
        check("a:*C", "a:BCC", true);
        check("?:B?", "a:BC", true);
        check("*,!a:B", "a:B", false);
        check("*,!a:B", "a:C", true);
        check("!a,a:B", "a:B", true);
        check("a*b*c:X", "aXbYbc:X", true);
    }

    #[test]
    fn patterns_of_no_event_are_named() {
        let patterns = Patterns::parse("a,a:B,x:*,!y:Z,!c:?,a:Typo").unwrap();
        let unused = patterns.unused(&[("a", "B"), ("c", "D")]);
        let expected = [(false, "x:*"), (true, "y:Z"), (false, "a:Typo")];
        assert_eq!(unused, expected.map(|(excludes, name)| (excludes, name.to_owned())));
        assert!(Patterns::all().unused(&[("a", "B")]).is_empty());
    }

    #[test]
    fn refuses_what_cannot_be_a_name() {
        for bad in ["a:", ":b", "!", "a b", "a;b", "a:b:c", "a\0"] {
            assert!(Patterns::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn one_list_for_several_means_what_each_means() {
        let any = |lists: &[&str]| {
            let lists: Vec<Patterns> =
                lists.iter().map(|one| Patterns::parse(one).unwrap()).collect();
            Patterns::any_of(&lists.iter().collect::<Vec<_>>()).to_string()
        };
        assert_eq!(any(&[]), "");
        assert_eq!(any(&["*,!a"]), "*,!a");
        assert_eq!(any(&["*,!a", "*,!b"]), "*");
        assert_eq!(any(&["*,!m,!a", "x,!m"]), "*,x,!m");
        assert_eq!(any(&["!m,m:X", "*,!m"]), "m:X,*");
    }
}
