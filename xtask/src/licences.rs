// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Licence expressions of packages: may it be used, and under which of those that it offers.

/// The first of the allowed licences that are enough for an expression; none where something that
/// is asked for is not allowed. Of alternatives the one whose place in `allowed` is first.
///
/// Expressions are those of SPDX, and `A/B` as older packages write "or".
pub fn chosen(expression: &str, allowed: &[String]) -> Option<Vec<String>> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let found = parser.any()?;
    // Text after the end is not an expression.
    if !parser.words.is_empty() {
        return None;
    }
    let mut names = found?;
    names.sort_by_key(|name| rank(name, allowed));
    names.dedup();
    Some(names)
}

fn rank(name: &str, allowed: &[String]) -> usize {
    allowed.iter().position(|one| one == name).unwrap_or(usize::MAX)
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

/// None outside: not an expression; none inside: not allowed.
type Found = Option<Option<Vec<String>>>;

impl Parser<'_> {
    fn next_is(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }

    fn any(&mut self) -> Found {
        let mut best = self.all()?;
        while self.next_is("OR") {
            let other = self.all()?;
            // The fewest licences, then the one that is preferred.
            let cost = |found: &Option<Vec<String>>| {
                found.as_ref().map_or((usize::MAX, usize::MAX), |names| {
                    let last = names.iter().map(|name| rank(name, self.allowed)).max();
                    (names.len(), last.unwrap_or(usize::MAX))
                })
            };
            if cost(&other) < cost(&best) {
                best = other;
            }
        }
        Some(best)
    }

    fn all(&mut self) -> Found {
        let mut sum = self.one()?;
        while self.next_is("AND") {
            let other = self.one()?;
            sum = sum.zip(other).map(|(mut sum, other)| {
                sum.extend(other);
                sum
            });
        }
        Some(sum)
    }

    fn one(&mut self) -> Found {
        if self.next_is("(") {
            let inside = self.any()?;
            return self.next_is(")").then_some(inside);
        }
        let (name, rest) = self.words.split_first()?;
        if ["AND", "OR", "WITH", ")"].contains(name) {
            return None;
        }
        self.words = rest;
        let mut name = (*name).to_string();
        if self.next_is("WITH") {
            let (exception, rest) = self.words.split_first()?;
            self.words = rest;
            name = format!("{name} WITH {exception}");
        }
        Some(self.allowed.contains(&name).then(|| vec![name]))
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn of_alternatives_the_preferred_one_is_taken_and_of_sums_all_must_be_allowed() {
        let allowed: Vec<String> =
            ["Apache-2.0", "MIT", "ISC", "Unicode-3.0"].map(String::from).to_vec();
        let chosen = |text: &str| chosen(text, &allowed).map(|names| names.join(" + "));
        assert_eq!(chosen("MIT OR Apache-2.0").as_deref(), Some("Apache-2.0"));
        assert_eq!(chosen("MIT/Apache-2.0").as_deref(), Some("Apache-2.0"));
        assert_eq!(chosen("GPL-3.0-only OR MIT").as_deref(), Some("MIT"));
        assert_eq!(chosen("Apache-2.0 AND ISC").as_deref(), Some("Apache-2.0 + ISC"));
        assert_eq!(
            chosen("(MIT OR Apache-2.0) AND Unicode-3.0").as_deref(),
            Some("Apache-2.0 + Unicode-3.0")
        );
        assert_eq!(chosen("MIT AND GPL-2.0-only"), None);
        assert_eq!(chosen("GPL-2.0-only"), None);
        assert_eq!(chosen("Apache-2.0 WITH LLVM-exception"), None);
        for wrong in ["", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT ISC", "MIT WITH"] {
            assert_eq!(chosen(wrong), None, "{wrong}");
        }
    }
}
