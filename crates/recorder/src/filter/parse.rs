// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses the text of a condition.

use super::{Comparison, Expression, Value};

/// Maximum length of a condition.
const TEXT_BYTES_MAX: usize = 4096;
/// Maximum nesting of parentheses and `not`.
const DEPTH_MAX: u32 = 32;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Number(i128),
    Sign(&'static str),
}

/// Longer signs come before their prefixes.
const SIGNS: [&str; 13] = ["==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "&", "(", ")", "="];

/// Parses a condition.
///
/// Errors: one sentence.
pub(super) fn expression(text: &str) -> Result<Expression, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("longer than {TEXT_BYTES_MAX} bytes"));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let expression = parser.either()?;
    match parser.peek() {
        None => Ok(expression),
        Some(token) => Err(format!("{} is not expected here", said(token))),
    }
}

fn said(token: &Token) -> String {
    match token {
        Token::Word(word) => format!("`{word}`"),
        Token::Number(number) => format!("`{number}`"),
        Token::Sign(sign) => format!("`{sign}`"),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        if first.is_ascii_digit() {
            tokens.push(Token::Number(number(&rest[..length])?));
            rest = &rest[length..];
        } else if is_part(first) {
            tokens.push(Token::Word(rest[..length].to_owned()));
            rest = &rest[length..];
        } else if let Some(digits) = rest.strip_prefix('-') {
            let end = digits.find(|c: char| !is_part(c)).unwrap_or(digits.len());
            tokens.push(Token::Number(-number(&digits[..end])?));
            rest = &digits[end..];
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else if first == '"' || first == '\'' {
            return Err("texts cannot be compared in the program: filter them when reading, with \
                 --where"
                .to_owned());
        } else {
            return Err(format!("`{}` means nothing here", first.escape_debug()));
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

fn number(text: &str) -> Result<i128, String> {
    let parsed = match text.get(..2) {
        Some("0x" | "0X") => u64::from_str_radix(&text[2..], 16),
        _ => text.parse::<u64>(),
    };
    parsed.map(i128::from).map_err(|_| format!("`{text}` is no number of 64 bits"))
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    /// Consumes the next token if it is this word or sign.
    fn takes(&mut self, word: &str, sign: &str) -> bool {
        let is_it = match self.peek() {
            Some(Token::Word(next)) => next == word,
            Some(Token::Sign(next)) => *next == sign,
            _ => false,
        };
        self.at += usize::from(is_it);
        is_it
    }

    fn either(&mut self) -> Result<Expression, String> {
        let mut left = self.both()?;
        while self.takes("or", "||") {
            left = Expression::Or(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Expression, String> {
        let mut left = self.one()?;
        while self.takes("and", "&&") {
            left = Expression::And(Box::new(left), Box::new(self.one()?));
        }
        Ok(left)
    }

    fn one(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("nested deeper than {DEPTH_MAX}"));
        }
        let one = if self.takes("not", "!") {
            Expression::Not(Box::new(self.one()?))
        } else if self.takes("", "(") {
            let inner = self.either()?;
            if !self.takes("", ")") {
                return Err("a `)` is missing".to_owned());
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(one)
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        let field = match self.take() {
            Some(Token::Word(word)) => word,
            Some(token) => return Err(format!("{} where a field is expected", said(&token))),
            None => return Err("it ends where a field is expected".to_owned()),
        };
        let mut mask = None;
        if self.takes("", "&") {
            match self.take() {
                Some(Token::Number(number)) if number >= 0 => mask = Some(number as u64),
                _ => return Err("a number is expected behind `&`".to_owned()),
            }
        }
        let comparison = match self.take() {
            Some(Token::Sign("==" | "=")) => Comparison::Equal,
            Some(Token::Sign("!=")) => Comparison::Unequal,
            Some(Token::Sign("<")) => Comparison::Less,
            Some(Token::Sign("<=")) => Comparison::LessOrEqual,
            Some(Token::Sign(">")) => Comparison::Greater,
            Some(Token::Sign(">=")) => Comparison::GreaterOrEqual,
            _ => return Err(format!("behind `{field}` one of == != < <= > >= is expected")),
        };
        let value = match self.take() {
            Some(Token::Number(number)) => Value::Number(number),
            Some(Token::Word(word)) => Value::Label(word),
            _ => return Err("a number or a label is expected behind the comparison".to_owned()),
        };
        Ok(Expression::Compare { field, mask, comparison, value })
    }
}
