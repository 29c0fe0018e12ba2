// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words of TSDL [CTF 1.8.3 §C.1].

use super::super::{DIAGNOSTIC_LIMIT, Diagnostic, brief};

/// In how many blocks the tokens so far are.
#[derive(Default)]
pub struct Depth(usize);

impl Depth {
    /// Takes the next token; whether a statement ends with it.
    pub fn ends_statement(&mut self, token: &Token<'_>) -> bool {
        match token {
            Token::Mark("{") => self.0 += 1,
            Token::Mark("}") => self.0 = self.0.saturating_sub(1),
            _ => {}
        }
        matches!(token, Token::Mark(";")) && self.0 == 0
    }
}

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<'a> {
    /// Identifier or keyword.
    Word(&'a str),
    /// Integer constant.
    Number(u64),
    /// String literal or character constant, escapes resolved.
    Text(String),
    /// Punctuator.
    Mark(&'static str),
}

/// A word and its position.
#[derive(Debug, Clone)]
pub struct Placed<'a> {
    /// The word.
    pub token: Token<'a>,
    /// Byte in the text.
    pub offset: usize,
}

// Longest first, so that the first match is the right one.
const MARKS: [&str; 20] = [
    "...", ":=", "->", "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", ".", "=", "*", "-",
    "+", "&",
];

/// Splits a text into words, a statement at a time: there may be millions of words.
pub struct Lexer<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Lexer<'a> {
    /// Begins with the text.
    pub fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    /// The byte after the last consumed word.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Replaces `tokens` by those of the next statement, up to a semicolon outside of
    /// all braces or to the end of the text; false if there is none. What is no word is
    /// reported and passed over.
    pub fn statement(
        &mut self,
        tokens: &mut Vec<Placed<'a>>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> bool {
        tokens.clear();
        let mut depth = Depth::default();
        while let Some(placed) = self.next() {
            match placed {
                Ok(placed) => {
                    let ends = depth.ends_statement(&placed.token);
                    tokens.push(placed);
                    if ends {
                        break;
                    }
                }
                Err((offset, message)) if diagnostics.len() < DIAGNOSTIC_LIMIT => {
                    diagnostics.push(at(self.text, offset, message));
                }
                Err(_) => {}
            }
        }
        !tokens.is_empty()
    }
}

impl<'a> Iterator for Lexer<'a> {
    /// A word, or the place of what is none and why.
    type Item = Result<Placed<'a>, (usize, String)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.text.get(self.offset..).filter(|rest| !rest.is_empty())?;
            let skipped = blank(rest);
            if skipped > 0 {
                self.offset += skipped;
                continue;
            }
            let offset = self.offset;
            return Some(match word(rest) {
                Ok((token, length)) => {
                    self.offset += length;
                    Ok(Placed { token, offset })
                }
                Err((message, length)) => {
                    self.offset += length;
                    Err((offset, message))
                }
            });
        }
    }
}

/// A diagnostic at a byte of the text.
pub fn at(text: &str, offset: usize, message: String) -> Diagnostic {
    let before = &text[..offset.min(text.len())];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() as u32 + 1;
    Diagnostic::new(line, before[line_start..].chars().count() as u32 + 1, message)
}

/// Bytes of white space and comments at the start.
fn blank(text: &str) -> usize {
    if let Some(comment) = text.strip_prefix("/*") {
        return comment.find("*/").map_or(text.len(), |end| end + 4);
    }
    if text.starts_with("//") || text.starts_with('#') {
        return text.find('\n').unwrap_or(text.len());
    }
    // A NUL at the end is padding of some writers.
    text.len() - text.trim_start_matches(|c: char| c.is_whitespace() || c == '\0').len()
}

type Lexed<'a> = Result<(Token<'a>, usize), (String, usize)>;

fn word(text: &str) -> Lexed<'_> {
    let first = text.chars().next().unwrap_or('\0');
    if first.is_ascii_digit() {
        return number(text);
    }
    if first.is_alphabetic() || first == '_' {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        // L"…" and L'…' are wide literals; the width makes no difference here.
        if &text[..end] == "L" && text[end..].starts_with(['"', '\'']) {
            let (token, length) = literal(&text[end..])?;
            return Ok((token, end + length));
        }
        return Ok((Token::Word(&text[..end]), end));
    }
    if first == '"' || first == '\'' {
        return literal(text);
    }
    match MARKS.iter().find(|mark| text.starts_with(**mark)) {
        Some(mark) => Ok((Token::Mark(mark), mark.len())),
        None => Err((format!("unexpected character {first:?}"), first.len_utf8())),
    }
}

fn number(text: &str) -> Lexed<'_> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let word = &text[..end];
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let parsed = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16)
    } else if let Some(binary) = digits.strip_prefix("0b").or(digits.strip_prefix("0B")) {
        u64::from_str_radix(binary, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8)
    } else {
        digits.parse()
    };
    match parsed {
        Ok(value) => Ok((Token::Number(value), end)),
        Err(error) => Err((format!("not an integer constant: {}: {error}", brief(word)), end)),
    }
}

fn literal(text: &str) -> Lexed<'_> {
    let quote = text.as_bytes()[0];
    let mut bytes = Vec::new();
    let mut rest = text[1..].bytes().enumerate().peekable();
    while let Some((index, byte)) = rest.next() {
        match byte {
            b'\\' => escape(&mut rest, &mut bytes),
            _ if byte == quote => {
                let value = String::from_utf8_lossy(&bytes).into_owned();
                return Ok((Token::Text(value), index + 2));
            }
            _ => bytes.push(byte),
        }
    }
    Err(("the literal has no end".to_owned(), text.len()))
}

type Bytes<'a> = std::iter::Peekable<std::iter::Enumerate<std::str::Bytes<'a>>>;

/// Resolves what follows a backslash [CTF 1.8.3 §C.1.5].
fn escape(rest: &mut Bytes<'_>, bytes: &mut Vec<u8>) {
    let digits = |rest: &mut Bytes<'_>, radix: u32, most: usize| {
        let mut value = 0u32;
        for _ in 0..most {
            let Some(&(_, byte)) = rest.peek() else { break };
            let Some(digit) = char::from(byte).to_digit(radix) else {
                break;
            };
            value = value.wrapping_mul(radix).wrapping_add(digit);
            rest.next();
        }
        value
    };
    let Some((_, byte)) = rest.next() else { return };
    match byte {
        b'a' => bytes.push(7),
        b'b' => bytes.push(8),
        b't' => bytes.push(b'\t'),
        b'n' => bytes.push(b'\n'),
        b'v' => bytes.push(11),
        b'f' => bytes.push(12),
        b'r' => bytes.push(b'\r'),
        b'x' => bytes.push(digits(rest, 16, usize::MAX) as u8),
        b'0'..=b'7' => {
            let high = u32::from(byte - b'0');
            let length =
                rest.clone().take(2).take_while(|(_, b)| (b'0'..=b'7').contains(b)).count();
            let low = digits(rest, 8, length);
            bytes.push((high << (3 * length) | low) as u8);
        }
        b'u' | b'U' => {
            let code = digits(rest, 16, if byte == b'u' { 4 } else { 8 });
            let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        other => bytes.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All words of the text, statement after statement.
    fn lex<'a>(text: &'a str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Placed<'a>> {
        let (mut all, mut tokens) = (Vec::new(), Vec::new());
        let mut lexer = Lexer::new(text);
        while lexer.statement(&mut tokens, diagnostics) {
            all.append(&mut tokens);
        }
        all
    }

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut diagnostics = Vec::new();
        let tokens = lex(text, &mut diagnostics);
        assert_eq!(diagnostics, []);
        tokens.into_iter().map(|placed| placed.token).collect()
    }

    #[test]
    fn every_kind_of_word() {
        assert_eq!(
            tokens("/* c */ id := 0x1F ... 017 \"a\\n\\x41\\101\" // end\n;"),
            [
                Token::Word("id"),
                Token::Mark(":="),
                Token::Number(31),
                Token::Mark("..."),
                Token::Number(15),
                Token::Text("a\nAA".to_owned()),
                Token::Mark(";"),
            ]
        );
    }

    #[test]
    fn statements_end_outside_of_braces() {
        let mut lexer = Lexer::new("a { b; { c; } }; ; } d; { e;");
        let (mut tokens, mut diagnostics) = (Vec::new(), Vec::new());
        let mut counts = Vec::new();
        while lexer.statement(&mut tokens, &mut diagnostics) {
            counts.push((tokens.len(), lexer.offset()));
        }
        assert_eq!(counts, [(10, 16), (1, 18), (3, 23), (3, 28)]);
    }

    #[test]
    fn suffixes_of_numbers_are_dropped() {
        assert_eq!(tokens("5ULL 0u"), [Token::Number(5), Token::Number(0)]);
    }

    #[test]
    fn what_is_no_word_is_reported_with_its_place() {
        let mut diagnostics = Vec::new();
        let tokens = lex("a;\n  @ b", &mut diagnostics);
        assert_eq!(tokens.len(), 3);
        assert_eq!(diagnostics[0].to_string(), "2:3: unexpected character '@'");
    }

    #[test]
    fn unfinished_comments_and_literals_end_the_text() {
        assert!(tokens("/* never closed").is_empty());
        let mut diagnostics = Vec::new();
        lex("\"never closed", &mut diagnostics);
        assert_eq!(diagnostics.len(), 1);
    }
}
