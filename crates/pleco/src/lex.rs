// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From characters to tokens. Strings and comments follow the original tool,
//! whose lexical rules are those of a Parsec "Java style" language with Haskell
//! string literals (spec/schema-language.md §2).

use crate::diagnostic::{Code, Reporter};
use crate::source::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Identifier,
    Number,
    String,
    /// One of `{ } ( ) [ ] , ; : = @ - < > .` or `<=`, identified by its text.
    Punctuation,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Lexed {
    /// Always ends with one [`TokenKind::End`].
    pub tokens: Vec<Token>,
    /// Comments in order; only the formatter needs them.
    pub comments: Vec<Span>,
}

pub(crate) fn is_identifier_start(c: char) -> bool {
    c.is_alphabetic()
}

pub(crate) fn is_identifier_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

pub(crate) fn lex(reporter: &mut Reporter<'_>) -> Lexed {
    let mut lexer = Lexer { text: reporter.source.text, at: 0 };
    let mut lexed = Lexed::default();
    while let Some(c) = lexer.peek() {
        if reporter.is_full() {
            break;
        }
        let start = lexer.at;
        if c.is_whitespace() || (start == 0 && c == '\u{feff}') {
            lexer.bump();
        } else if lexer.rest().starts_with("//") {
            lexer.skip_while(|c| c != '\n');
            lexed.comments.push(lexer.span_from(start));
        } else if lexer.rest().starts_with("/*") {
            if !lexer.skip_block_comment() {
                let open = Span { start: start as u32, end: start as u32 + 2 };
                reporter
                    .report(Code::CommentNotClosed, open, "this comment is not closed")
                    .label("expected a matching `*/`")
                    .note("comments nest: every `/*` inside needs its own `*/`");
            }
            lexed.comments.push(lexer.span_from(start));
        } else {
            let kind = lexer.token(c, reporter);
            if let Some(kind) = kind {
                lexed.tokens.push(Token { kind, span: lexer.span_from(start) });
            }
        }
    }
    let end = reporter.source.text.len() as u32;
    lexed.tokens.push(Token { kind: TokenKind::End, span: Span { start: end, end } });
    lexed
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_while(&mut self, accepts: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&accepts) {
            self.bump();
        }
    }

    fn span_from(&self, start: usize) -> Span {
        Span { start: start as u32, end: self.at as u32 }
    }

    /// Depth is a number, not recursion: a million `/*` cost no stack.
    fn skip_block_comment(&mut self) -> bool {
        let mut depth = 0_usize;
        while !self.rest().is_empty() {
            if self.rest().starts_with("/*") {
                self.at += 2;
                depth += 1;
            } else if self.rest().starts_with("*/") {
                self.at += 2;
                depth -= 1;
                if depth == 0 {
                    return true;
                }
            } else {
                self.bump();
            }
        }
        false
    }

    fn token(&mut self, c: char, reporter: &mut Reporter<'_>) -> Option<TokenKind> {
        let start = self.at;
        if is_identifier_start(c) {
            self.skip_while(is_identifier_part);
            return Some(TokenKind::Identifier);
        }
        if c.is_ascii_digit() {
            self.number();
            return Some(TokenKind::Number);
        }
        if c == '"' {
            self.string(reporter);
            return Some(TokenKind::String);
        }
        self.bump();
        if c == '<' && self.peek() == Some('=') {
            self.bump();
            return Some(TokenKind::Punctuation);
        }
        if "{}()[],;:=@-<>.".contains(c) {
            return Some(TokenKind::Punctuation);
        }
        let draft = if c == '_' {
            self.skip_while(is_identifier_part);
            let text = format!("the name `{}` begins with `_`", &self.text[start..self.at]);
            reporter
                .report(Code::UnexpectedCharacter, self.span_from(start), text)
                .label("expected a letter first")
        } else {
            let text = if c.is_control() {
                format!("control character U+{:04X}", c as u32)
            } else {
                format!("unexpected character `{c}`")
            };
            reporter.report(Code::UnexpectedCharacter, self.span_from(start), text)
        };
        if c == '#' {
            draft.help("comments begin with `//`, or stand between `/*` and `*/`");
        } else if c == '\'' || c == '“' || c == '”' {
            draft.help("strings stand between plain double quotes: \"text\"");
        }
        // The name is still a name, so that its definition is looked at too.
        (c == '_').then_some(TokenKind::Identifier)
    }

    /// Digits, `_` between them, `0x`, and decimals; what they mean is checked
    /// where they are used.
    fn number(&mut self) {
        if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            self.at += 2;
            self.skip_while(|c| c.is_ascii_alphanumeric() || c == '_');
            return;
        }
        self.skip_while(|c| c.is_ascii_digit() || c == '_');
        let mut ahead = self.rest().chars();
        if ahead.next() == Some('.') && ahead.next().is_some_and(|c| c.is_ascii_digit()) {
            self.bump();
            self.skip_while(|c| c.is_ascii_digit() || c == '_');
        }
    }

    fn string(&mut self, reporter: &mut Reporter<'_>) {
        let start = self.at;
        self.bump();
        loop {
            match self.peek() {
                Some('"') => {
                    self.bump();
                    return;
                }
                Some('\\') => {
                    self.bump();
                    // A gap may hold line ends: `\`, blanks, `\`.
                    let gap = self.at;
                    self.skip_while(char::is_whitespace);
                    if self.at == gap || self.peek() == Some('\\') {
                        self.bump();
                    } else {
                        let span = self.span_from(gap - 1);
                        reporter
                            .report(Code::BadEscape, span, "this gap in a string is not closed")
                            .label("expected `\\` behind the blanks");
                    }
                }
                Some('\n' | '\r') | None => {
                    let line = self.span_from(start);
                    reporter
                        .report(Code::StringNotClosed, line, "this string is not closed")
                        .label("expected `\"` before the end of the line");
                    return;
                }
                // The original's limit: everything up to SUB (26) must be escaped.
                Some(c) if c <= '\u{1a}' => {
                    let at = self.at;
                    self.bump();
                    let text = format!("control character U+{:04X} in a string", c as u32);
                    let draft =
                        reporter.report(Code::UnexpectedCharacter, self.span_from(at), text);
                    if c == '\t' {
                        draft.help("write `\\t`");
                    }
                    if reporter.is_full() {
                        return;
                    }
                }
                Some(_) => {
                    self.bump();
                }
            }
        }
    }
}
