// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words and signs of JavaScript, as far as pure expressions have them.

use super::Unsupported;

/// A piece of the text.
#[derive(Debug, Clone, PartialEq)]
pub enum Token<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// A Number.
    Number(f64),
    /// A BigInt.
    Big(i128),
    /// A text, its escapes resolved.
    Text(String),
    /// An operator, a bracket.
    Sign(&'static str),
    /// Nothing more.
    End,
}

/// A piece, where it begins, and whether a line ends before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed<'a> {
    /// The piece.
    pub token: Token<'a>,
    /// Its first byte.
    pub at: usize,
    /// Whether it is the first of its line.
    pub on_new_line: bool,
}

/// Longest first.
const SIGNS: [&str; 46] = [
    ">>>", "===", "!==", "...", "**", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "<<",
    ">>", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "(", ")", "[", "]", "{", "}",
    "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "!", "~", "?", ":",
];
const MORE_SIGNS: [&str; 4] = [".", ",", ";", "="];

/// All pieces of a text, the last being [`Token::End`].
///
/// Errors: what is no piece of a pure expression.
pub fn tokens(text: &str) -> Result<Vec<Placed<'_>>, Unsupported> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let (begin, on_new_line) = blanks(text, at)?;
        let rest = &text[begin..];
        let Some(first) = rest.chars().next() else {
            tokens.push(Placed { token: Token::End, at: begin, on_new_line });
            return Ok(tokens);
        };
        let (token, length) = match first {
            'a'..='z' | 'A'..='Z' | '_' | '$' => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                if rest[end..].starts_with(|c: char| c == '\\' || !c.is_ascii()) {
                    return Err(Unsupported::new(begin, "a name of other than ASCII letters"));
                }
                (Token::Word(&rest[..end]), end)
            }
            '0'..='9' => number(rest, begin)?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => number(rest, begin)?,
            '"' | '\'' => quoted(rest, begin)?,
            '`' => return Err(Unsupported::new(begin, "a template")),
            _ => {
                // `a?.5:b` is a choice, not a step into `a`.
                let is_choice = rest.starts_with("?.")
                    && rest.as_bytes().get(2).is_some_and(u8::is_ascii_digit);
                let is_it = |sign: &&&'static str| {
                    rest.starts_with(**sign) && !(is_choice && **sign == "?.")
                };
                let sign = SIGNS.iter().chain(&MORE_SIGNS).find(is_it);
                let sign = sign.ok_or_else(|| Unsupported::new(begin, "an unusual character"))?;
                // Comments of web pages.
                if rest.starts_with("<!--") || rest.starts_with("-->") {
                    return Err(Unsupported::new(begin, "a comment of HTML"));
                }
                (Token::Sign(sign), sign.len())
            }
        };
        tokens.push(Placed { token, at: begin, on_new_line });
        at = begin + length;
    }
}

/// Skips blanks and comments; whether a line ended.
fn blanks(text: &str, mut at: usize) -> Result<(usize, bool), Unsupported> {
    let mut ended = false;
    loop {
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find(['\n', '\r', '\u{2028}', '\u{2029}']).unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").ok_or(Unsupported::new(at, "a comment without end"))?;
            ended |= rest[..end].contains(['\n', '\r', '\u{2028}', '\u{2029}']);
            at += end + 2;
        } else if let Some(blank) = rest.chars().next()
            && matches!(blank, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{a0}')
        {
            ended |= matches!(blank, '\n' | '\r');
            at += blank.len_utf8();
        } else {
            return Ok((at, ended));
        }
    }
}

fn number(rest: &str, at: usize) -> Result<(Token<'_>, usize), Unsupported> {
    let wrong = || Unsupported::new(at, "an unusual number");
    let bytes = rest.as_bytes();
    let base = match bytes.get(1).filter(|_| bytes[0] == b'0') {
        Some(b'x' | b'X') => 16,
        Some(b'o' | b'O') => 8,
        Some(b'b' | b'B') => 2,
        Some(b'0'..=b'9' | b'_') => return Err(wrong()),
        _ => 10,
    };
    let mut end = if base == 10 { 0 } else { 2 };
    while let Some(&byte) = bytes.get(end) {
        let after_exponent = base == 10
            && matches!(byte, b'+' | b'-')
            && matches!(bytes[..end].last(), Some(b'e' | b'E'));
        if !(byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || after_exponent) {
            break;
        }
        // In other bases a point is no part of a number: `0xff.x`.
        if byte == b'.' && base != 10 {
            return Err(wrong());
        }
        end += 1;
    }
    if rest[end..].starts_with(|c: char| c == '$' || c == '\\' || !c.is_ascii()) {
        return Err(wrong());
    }
    let written = &rest[..end];
    let parts = written.split('_');
    if parts.clone().count() > 1 && parts.clone().any(|part| part.is_empty()) {
        return Err(wrong());
    }
    let digits: String = parts.collect();
    let integer = |digits: &str| {
        i128::from_str_radix(digits, base).ok().filter(|_| !digits.starts_with(['+', '-']))
    };
    let body = if base == 10 { digits.as_str() } else { &digits[2..] };
    if let Some(big) = body.strip_suffix('n') {
        return Ok((Token::Big(integer(big).ok_or_else(wrong)?), end));
    }
    let value = if base == 10 {
        // Rust reads `1e5`, `.5` and `5.` alike, but also `inf` and `nan`.
        body.parse::<f64>().map_err(|_| wrong())?
    } else {
        let value = integer(body).ok_or_else(wrong)?;
        // Conversions of integers round to nearest, as JavaScript's do.
        value as f64
    };
    Ok((Token::Number(value), end))
}

fn quoted(rest: &str, at: usize) -> Result<(Token<'_>, usize), Unsupported> {
    let wrong = || Unsupported::new(at, "a text with unusual escapes");
    let quote = rest.chars().next().ok_or_else(wrong)?;
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => {
                let (_, escaped) = characters.next().ok_or_else(wrong)?;
                let is_braced = escaped == 'u' && characters.next_if(|c| c.1 == '{').is_some();
                let mut hexadecimal = |digits: usize| {
                    let mut value = 0u32;
                    for _ in 0..digits {
                        let (_, digit) = characters.next()?;
                        if is_braced && digit == '}' {
                            return char::from_u32(value);
                        }
                        value = value << 4 | digit.to_digit(16)?;
                    }
                    match is_braced {
                        true => characters.next_if(|c| c.1 == '}').and(char::from_u32(value)),
                        false => char::from_u32(value),
                    }
                };
                text.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'v' => '\u{b}',
                    'x' => hexadecimal(2).ok_or_else(wrong)?,
                    'u' => hexadecimal(if is_braced { 6 } else { 4 }).ok_or_else(wrong)?,
                    '0' if !characters.peek().is_some_and(|(_, c)| c.is_ascii_digit()) => '\0',
                    '\\' | '\'' | '"' | '/' | ' ' | ':' | '*' | '?' | '.' | '-' => escaped,
                    _ => return Err(wrong()),
                });
            }
            '\n' | '\r' => return Err(wrong()),
            _ if character == quote => return Ok((Token::Text(text), index + 1)),
            other => text.push(other),
        }
    }
    Err(wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Token<'_>> {
        tokens(text).unwrap().into_iter().map(|placed| placed.token).collect()
    }

    #[test]
    fn numbers_are_read_as_javascript_reads_them() {
        for (text, value) in [
            ("0x1F", 31.0),
            ("1_000", 1000.0),
            ("1.5e3", 1500.0),
            ("1e-2", 0.01),
            (".5", 0.5),
            ("5.", 5.0),
            ("0b101", 5.0),
            ("0o17", 15.0),
            ("9007199254740993", 9007199254740992.0),
            ("0xffffffffffffffff", 18446744073709551615.0),
        ] {
            assert_eq!(of(text)[0], Token::Number(value), "{text}");
        }
        assert_eq!(of("12n")[0], Token::Big(12));
        assert_eq!(of("0xffn")[0], Token::Big(255));
        for wrong in ["010", "1__0", "1_", "0x", "1n2", "3abc", "0x1.5", "1.5n", "1e5n", "2ü"] {
            assert!(tokens(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_lose_their_escapes() {
        assert_eq!(of(r#""a\n\x41é\0\"""#)[0], Token::Text("a\nA\u{e9}\0\"".into()));
        for wrong in [r#""\ud800""#, r#""\01""#, "\"a", "'a\n'", "\"\\", "`a`", r#""\q""#] {
            assert!(tokens(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn comments_and_lines_are_told() {
        let all = tokens("a /* x\n */ b // c\n").unwrap();
        assert_eq!(all.len(), 3);
        assert!(all[1].on_new_line && all[2].on_new_line);
        assert!(tokens("a <!-- b").is_err() && tokens("/* a").is_err());
    }
}
