// SPDX-License-Identifier: Apache-2.0 OR MIT
//! JSON texts one after the other, a few at a time, as the parser accepts them.

/// Number of line feeds.
pub(super) fn lines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// The text in parts of whole fragments, so that metadata of any size are not copied as
/// a whole. Record separators become spaces, and commas before a closing bracket are
/// taken out, neither of which the JSON parser would accept.
pub(super) struct Tidied<'a> {
    rest: &'a str,
    /// Up to where all brackets are closed, or to the end of the text.
    pub part: String,
    /// Line of its first character, from 1.
    pub line: usize,
    /// Bytes before it in that line.
    pub column: usize,
}

impl<'a> Tidied<'a> {
    /// Begins with the text.
    pub fn new(text: &'a str) -> Self {
        Self { rest: text, part: String::new(), line: 1, column: 0 }
    }

    /// Advances to the next part; false if there is none.
    pub fn advance(&mut self) -> bool {
        self.line += lines(&self.part);
        self.column = match self.part.rfind('\n') {
            Some(newline) => self.part.len() - newline - 1,
            None => self.column + self.part.len(),
        };
        self.part.clear();
        let (mut in_string, mut escaped, mut depth) = (false, false, 0usize);
        let mut end = self.rest.len();
        for (index, character) in self.rest.char_indices() {
            let kept = if in_string {
                in_string = escaped || character != '"';
                escaped = !escaped && character == '\\';
                character
            } else {
                in_string = character == '"';
                let after = index + character.len_utf8();
                match character {
                    '{' | '[' => depth += 1,
                    '}' | ']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth == 0 && matches!(character, '}' | ']') {
                    self.part.push(character);
                    end = after;
                    break;
                }
                match character {
                    '\u{1e}' | '\u{feff}' | '\0' => ' ',
                    ',' if self.rest[after..].trim_start().starts_with(['}', ']']) => ' ',
                    other => other,
                }
            };
            self.part.push(kept);
        }
        self.rest = &self.rest[end..];
        !self.part.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_where_all_brackets_are_closed() {
        let mut tidied = Tidied::new("\u{1e}{\"a\": [1, ], }\n\u{1e}{\n\"}\\\"\": 2}x{} ,}\0{");
        let mut parts = Vec::new();
        while tidied.advance() {
            parts.push((tidied.part.clone(), tidied.line, tidied.column));
        }
        let expected = [
            (" {\"a\": [1  ]  }", 1, 0),
            ("\n {\n\"}\\\"\": 2}", 1, 15),
            ("x{}", 3, 9),
            ("  }", 3, 12),
            (" {", 3, 15),
        ];
        assert_eq!(parts, expected.map(|(part, line, column)| (part.to_owned(), line, column)));
    }
}
