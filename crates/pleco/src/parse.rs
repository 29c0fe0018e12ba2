// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From tokens to the syntax tree: a recursive-descent parser that never gives up. After an error
//! it continues after the next `,` or `}` or at the next `event` or `subsystem`, which are words
//! that cannot be names.
//!
//! The grammar is spec/schema-language.md §3. No rule contains itself, so the
//! depth of the call stack does not depend on the input.

mod events;
mod fields;

use crate::diagnostic::{Code, Draft, Reporter};
use crate::lex::{Token, TokenKind};
use crate::schema::{BudgetUnit, Statistic};
use crate::source::Span;
use crate::string_literal;
use crate::suggest::nearest;
use crate::syntax::{BudgetDefinition, EnumDefinition, File, Name, Number, Text};

/// Longest name; the shared memory keeps 31 bytes of some, generated names join several.
const NAME_BYTES_MAX: usize = 120;

pub(crate) fn parse(tokens: &[Token], reporter: &mut Reporter<'_>) -> File {
    let mut parser = Parser { tokens, at: 0, is_list_open: false, reporter };
    parser.file()
}

/// True for the two words that the original tool reserves, in any case.
fn is_reserved(word: &str) -> bool {
    word.eq_ignore_ascii_case("subsystem") || word.eq_ignore_ascii_case("event")
}

struct Parser<'t, 'r, 's> {
    /// Ends with an `End` token.
    tokens: &'t [Token],
    at: usize,
    /// The event that was read last has a list of fields without an end.
    is_list_open: bool,
    reporter: &'r mut Reporter<'s>,
}

impl<'s> Parser<'_, '_, 's> {
    // Looking at tokens

    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn text_at(&self, index: usize) -> &'s str {
        self.tokens.get(index).map_or("", |token| {
            let text = self.reporter.source.text;
            text.get(token.span.start as usize..token.span.end as usize).unwrap_or("")
        })
    }

    fn text(&self) -> &'s str {
        self.text_at(self.at)
    }

    fn span(&self) -> Span {
        self.token().span
    }

    fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn is_end(&self) -> bool {
        self.token().kind == TokenKind::End || self.reporter.is_full()
    }

    fn is_punctuation(&self, mark: &str) -> bool {
        self.token().kind == TokenKind::Punctuation && self.text() == mark
    }

    fn is_identifier(&self) -> bool {
        self.token().kind == TokenKind::Identifier
    }

    fn is_word(&self, word: &str) -> bool {
        self.is_identifier() && self.text().eq_ignore_ascii_case(word)
    }

    /// One of the words of the superset, which are only words where they are
    /// expected, and only in lower case.
    fn is_soft_word(&self, word: &str) -> bool {
        self.is_identifier() && self.text() == word
    }

    fn bump(&mut self) -> Token {
        let token = self.token();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, mark: &str) -> bool {
        let is_it = self.is_punctuation(mark);
        if is_it {
            self.bump();
        }
        is_it
    }

    // Saying what is wrong

    fn found(&self) -> String {
        match self.token().kind {
            TokenKind::End => "the end of the file".to_owned(),
            TokenKind::String => "a string".to_owned(),
            TokenKind::Number => format!("the number `{}`", self.text()),
            TokenKind::Identifier => {
                let short: String = self.text().chars().take(40).collect();
                format!("`{short}`")
            }
            TokenKind::Punctuation => format!("`{}`", self.text()),
        }
    }

    fn expected(&mut self, what: &str) -> Draft<'_> {
        let message = format!("expected {what}, found {}", self.found());
        let span = self.span();
        self.reporter.report(Code::Syntax, span, message).label(format!("expected {what}"))
    }

    // Parts that occur in several places

    /// A new name. Reserved words are reported and taken as the name, unless they
    /// evidently begin the next definition.
    fn name(&mut self, what: &str) -> Option<Name> {
        if !self.is_identifier() {
            self.expected(what);
            return None;
        }
        let span = self.span();
        let text = self.text();
        if is_reserved(text) {
            let message = format!("`{text}` is a reserved word and cannot be {what}");
            self.reporter
                .report(Code::ReservedWord, span, message)
                .label(format!("expected {what}"))
                .help(format!("choose another name, for instance `{text}_`"));
            let next = self.tokens.get(self.at + 1).map(|token| token.kind);
            if next == Some(TokenKind::Identifier) {
                return None;
            }
        }
        if text.len() > NAME_BYTES_MAX {
            let message = format!("this name is {} bytes long", text.len());
            self.reporter
                .report(Code::NameTooLong, span, message)
                .label(format!("expected at most {NAME_BYTES_MAX} bytes"));
        }
        self.bump();
        Some(Name { text: text.to_owned(), span })
    }

    fn description(&mut self) -> Option<Text> {
        if self.token().kind != TokenKind::String {
            return None;
        }
        let token = self.bump();
        let literal = self.reporter.source.slice(token.span);
        let value = string_literal::decode(literal, token.span, self.reporter);
        Some(Text { value, span: token.span })
    }

    /// `= NUMBER`, where it is there.
    fn explicit_id(&mut self) -> Option<Number> {
        if !self.eat("=") {
            return None;
        }
        self.integer("an id")
    }

    /// An integer, decimal or `0x` hexadecimal, `_` between digits, maybe with `-`.
    fn integer(&mut self, what: &str) -> Option<Number> {
        let start = self.span();
        let is_negative = self.eat("-");
        if self.token().kind != TokenKind::Number {
            self.expected(what);
            return None;
        }
        let token = self.bump();
        let text = self.reporter.source.slice(token.span);
        let digits: String = text.chars().filter(|c| *c != '_').collect();
        let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        let value = match hexadecimal {
            Some(digits) => i128::from_str_radix(digits, 16),
            None => digits.parse::<i128>(),
        };
        match value {
            Ok(value) => {
                let value = if is_negative { -value } else { value };
                Some(Number { value, span: start.to(token.span) })
            }
            Err(_) => {
                let short: String = text.chars().take(40).collect();
                self.reporter
                    .report(Code::BadNumber, token.span, format!("`{short}` is not an integer"))
                    .label(format!("expected {what}, for instance `7` or `0x7f`"));
                None
            }
        }
    }

    /// The closing bracket of something that was opened at `open`.
    fn close(&mut self, bracket: &str, open: Span, what: &str) -> bool {
        if self.eat(bracket) {
            return true;
        }
        let found = self.found();
        let opened = self.reporter.at(open);
        let span = self.span();
        self.reporter
            .report(Code::BracketNotClosed, span, format!("{what} is not closed"))
            .label(format!("expected `{bracket}`, found {found}"))
            .note(format!("it was opened at {opened}"));
        false
    }

    /// The `;` after a definition. If it is missing, the parser continues as if it were present.
    fn semicolon(&mut self, what: &str) {
        if self.eat(";") {
            return;
        }
        let before = self.previous_span();
        let found = self.found();
        self.reporter
            .report(Code::MissingSemicolon, before, format!("no `;` behind {what}"))
            .label(format!("expected `;` behind this, found {found}"))
            .help("write `;` here");
    }

    // The file

    fn file(&mut self) -> File {
        let mut file = File::default();
        let mut is_first = true;
        while !self.is_end() {
            if self.is_word("subsystem") {
                file.subsystems.extend(self.subsystem());
            } else if self.is_soft_word("enum") {
                file.enums.extend(self.enum_definition());
            } else if self.is_soft_word("budget") {
                file.budgets.extend(self.budget());
            } else if self.is_soft_word("schema") {
                self.schema_name(&mut file, is_first);
            } else {
                self.unknown_definition(&file);
            }
            is_first = false;
        }
        file
    }

    fn schema_name(&mut self, file: &mut File, is_first: bool) {
        let word = self.bump().span;
        let Some(name) = self.name("the name of the schema") else {
            self.skip_definition();
            return;
        };
        self.semicolon("the schema's name");
        if is_first {
            file.schema_name = Some(name);
        } else {
            let what = if file.schema_name.is_some() {
                "the schema has a name already"
            } else {
                "the schema's name is not at the beginning"
            };
            self.reporter
                .report(Code::SchemaTwice, word.to(name.span), what)
                .label("expected only once, as the first definition");
        }
    }

    fn enum_definition(&mut self) -> Option<EnumDefinition> {
        self.bump();
        let name = self.name("the name of an enum");
        let Some((body, is_closed)) = self.enum_body() else {
            self.skip_definition();
            return None;
        };
        if is_closed {
            self.semicolon("the enum");
        }
        Some(EnumDefinition { name: name?, body })
    }

    fn budget(&mut self) -> Option<BudgetDefinition> {
        let start = self.bump().span;
        let parts = self.budget_parts(start);
        if parts.is_none() {
            self.skip_definition();
        }
        parts
    }

    fn budget_parts(&mut self, start: Span) -> Option<BudgetDefinition> {
        let span_name = self.name("the name of a span")?;
        let statistic = self.statistic()?;
        let is_inclusive = self.is_punctuation("<=");
        if !is_inclusive && !self.is_punctuation("<") {
            self.expected("`<` or `<=`");
            return None;
        }
        self.bump();
        if self.token().kind != TokenKind::Number {
            self.expected("a number, for instance `50` or `1.5`");
            return None;
        }
        let token = self.bump();
        let text = self.reporter.source.slice(token.span).to_owned();
        let limit = Name { text, span: token.span };
        let words: Vec<&str> = BudgetUnit::ALL.iter().map(|unit| unit.word()).collect();
        let Some(unit) = BudgetUnit::ALL.iter().find(|unit| self.is_soft_word(unit.word())) else {
            let suggestion = nearest(self.text(), words.iter().copied());
            let suggestion = suggestion.filter(|_| self.is_identifier());
            self.expected("a unit: ns, us, ms, s or cycles").did_you_mean(suggestion);
            return None;
        };
        let end = self.bump().span;
        self.semicolon("the budget");
        Some(BudgetDefinition {
            span_name,
            statistic,
            is_inclusive,
            limit,
            unit: *unit,
            span: start.to(end),
        })
    }

    /// `p99.9` comes as three tokens.
    fn statistic(&mut self) -> Option<Statistic> {
        let mut word = if self.is_identifier() { self.text().to_owned() } else { String::new() };
        let has_decimals = self.text_at(self.at + 1) == "."
            && self.tokens.get(self.at + 2).is_some_and(|token| token.kind == TokenKind::Number);
        if has_decimals {
            word = format!("{word}.{}", self.text_at(self.at + 2));
        }
        let Some(statistic) = Statistic::ALL.iter().find(|known| known.word() == word) else {
            let words = Statistic::ALL.iter().map(|known| known.word());
            let suggestion = nearest(&word, words);
            self.expected("p50, p90, p99, p99.9, mean, max or min").did_you_mean(suggestion);
            return None;
        };
        for _ in 0..if has_decimals { 3 } else { 1 } {
            self.bump();
        }
        Some(*statistic)
    }

    /// Something at the top level that is no definition. Everything up to the
    /// next definition is one finding.
    fn unknown_definition(&mut self, file: &File) {
        let words = ["subsystem", "enum", "budget", "schema"];
        let suggestion = nearest(self.text(), words).filter(|_| self.is_identifier());
        let found = self.found();
        let span = self.span();
        // Something that looks like a subsystem, but for its first word.
        let is_slip = suggestion.is_some();
        let is_behind = !file.subsystems.is_empty() && !is_slip;
        let (code, message) = if is_behind {
            (Code::TrailingText, format!("{found} behind the last definition"))
        } else {
            (Code::Syntax, format!("expected `subsystem`, found {found}"))
        };
        let draft = self
            .reporter
            .report(code, span, message)
            .label("expected `subsystem`, `enum`, `budget` or the end of the file")
            .did_you_mean(suggestion);
        if is_behind {
            draft.note("the original tool ignored everything from here on");
        }
        self.bump();
        self.skip_definition();
    }

    /// Skips to the next `subsystem`, or past the next `;` outside brackets, or to the end.
    fn skip_definition(&mut self) {
        let mut depth = 0_usize;
        while !self.is_end() && !self.is_word("subsystem") {
            let is_definition = self.is_soft_word("budget") || self.is_soft_word("enum");
            if depth == 0 && is_definition && self.previous_text_ends_definition() {
                return;
            }
            if self.is_punctuation("{") {
                depth += 1;
            } else if self.is_punctuation("}") {
                depth = depth.saturating_sub(1);
            } else if depth == 0 && self.eat(";") {
                return;
            }
            self.bump();
        }
    }

    fn previous_text_ends_definition(&self) -> bool {
        matches!(self.text_at(self.at.saturating_sub(1)), ";" | "}")
    }
}
