// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Trace Stream Description Language [CTF 1.8.3 §7 and §C].
//!
//! One pass over the words builds classes directly; C-like names (`typedef`,
//! `typealias`, `struct x`) are looked up in lexical scopes and cost nothing to
//! use again.

mod blocks;
mod lexer;
mod scalars;
mod types;
mod words;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lateralis_model::ByteOrder;

use super::brief::{brief, brief_debug};
use super::field::{DEPTH_LIMIT, WEIGHT_LIMIT};
use super::once::Once;
use super::{DIAGNOSTIC_LIMIT, Diagnostic, FieldClass, TraceClass, roles};
use lexer::{Depth, Lexer, Placed, Token};

/// Braces within braces; see [`DEPTH_LIMIT`].
const BRACE_LIMIT: usize = 48;

/// Parses TSDL text.
pub fn parse(text: &str, diagnostics: &mut Vec<Diagnostic>) -> TraceClass {
    let mut lexer = Lexer::new(text);
    let byte_order = native_byte_order(text);
    let mut parser = Parser {
        text,
        tokens: Vec::new(),
        next: 0,
        end: 0,
        depth: 0,
        weight: 0,
        native: byte_order,
        scopes: vec![Names::default()],
        once: Once::default(),
        trace: TraceClass { major_version: 1, byte_order, ..TraceClass::default() },
        has_trace_block: false,
        declared: HashSet::new(),
        diagnostics,
    };
    while lexer.statement(&mut parser.tokens, parser.diagnostics) {
        (parser.next, parser.end) = (0, lexer.offset());
        while parser.next < parser.tokens.len() {
            parser.statement();
        }
    }
    parser.end = text.len();
    if !parser.has_trace_block {
        parser.report(usize::MAX, "there is no `trace` block: is this all of it?".to_owned());
    }
    let mut trace = parser.trace;
    roles::assign(&mut trace, diagnostics);
    trace
}

/// `native` may be used before the trace block says what it is, so the block is
/// looked for first.
fn native_byte_order(text: &str) -> ByteOrder {
    let mut before = [Token::Mark(""), Token::Mark("")];
    let mut in_trace = false;
    for placed in Lexer::new(text).flatten() {
        if in_trace && before == [Token::Word("byte_order"), Token::Mark("=")] {
            let big = ["be", "network"].iter().any(|name| placed.token == Token::Word(name));
            return if big { ByteOrder::Big } else { ByteOrder::Little };
        }
        in_trace |= before == [Token::Word("trace"), Token::Mark("{")];
        before.rotate_left(1);
        before[1] = placed.token;
    }
    ByteOrder::Little
}

/// The names that one pair of braces declares.
#[derive(Default)]
struct Names {
    aliases: HashMap<String, FieldClass>,
    structs: HashMap<String, FieldClass>,
    variants: HashMap<String, FieldClass>,
    enums: HashMap<String, FieldClass>,
}

struct Parser<'a, 'd> {
    text: &'a str,
    /// Those of the statement at hand.
    tokens: Vec<Placed<'a>>,
    next: usize,
    /// Where the statement ends in the text.
    end: usize,
    depth: usize,
    weight: u64,
    native: ByteOrder,
    scopes: Vec<Names>,
    once: Once,
    trace: TraceClass,
    has_trace_block: bool,
    /// Numbers of the streams that have a block of their own.
    declared: HashSet<u64>,
    diagnostics: &'d mut Vec<Diagnostic>,
}

/// Reason why a declaration cannot be read; the position is that of the parser.
type Parsed<T> = Result<T, String>;

impl<'a> Parser<'a, '_> {
    fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.next).map(|placed| &placed.token)
    }

    fn peek_word(&self) -> Option<&'a str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn at_mark(&self, mark: &str) -> bool {
        matches!(self.peek(), Some(Token::Mark(found)) if *found == mark)
    }

    fn mark_follows(&self, mark: &str) -> bool {
        let following = self.tokens.get(self.next + 1).map(|placed| &placed.token);
        matches!(following, Some(Token::Mark(found)) if *found == mark)
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let found = self.at_mark(mark);
        self.next += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        self.next += usize::from(found);
        found
    }

    fn expect_mark(&mut self, mark: &str) -> Parsed<()> {
        if self.take_mark(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    fn expect_word(&mut self) -> Parsed<&'a str> {
        let word = self.peek_word().ok_or_else(|| self.unexpected("a name"))?;
        self.next += 1;
        Ok(word)
    }

    fn unexpected(&self, expected: &str) -> String {
        match self.peek() {
            Some(Token::Word(word)) => format!("expected {expected}, found `{}`", brief(word)),
            Some(Token::Number(number)) => format!("expected {expected}, found {number}"),
            Some(Token::Text(text)) => format!("expected {expected}, found {}", brief_debug(text)),
            Some(Token::Mark(mark)) => format!("expected {expected}, found `{mark}`"),
            None => format!("expected {expected}, found the end of the metadata"),
        }
    }

    fn report(&mut self, token: usize, message: String) {
        if self.diagnostics.len() >= DIAGNOSTIC_LIMIT {
            return;
        }
        let offset = self.tokens.get(token).map_or(self.end, |placed| placed.offset);
        self.diagnostics.push(lexer::at(self.text, offset, message));
    }

    /// A fault in the word before that costs nothing but itself.
    fn remark(&mut self, message: String) {
        self.report(self.next.saturating_sub(1), message);
    }

    /// One top-level declaration. After a fault the parser continues after the declaration's
    /// semicolon.
    fn statement(&mut self) {
        let start = self.next;
        let scopes = self.scopes.len();
        if let Err(message) = self.try_statement() {
            self.report(self.next, message);
            self.scopes.truncate(scopes);
            self.depth = 0;
            self.next = start;
            self.skip_statement();
        }
    }

    fn skip_statement(&mut self) {
        let mut depth = Depth::default();
        while let Some(token) = self.peek() {
            let ends = depth.ends_statement(token);
            self.next += 1;
            if ends {
                return;
            }
        }
    }

    fn try_statement(&mut self) -> Parsed<()> {
        if self.take_mark(";") {
            return Ok(());
        }
        let block = self.peek_word().filter(|_| self.mark_follows("{"));
        match block {
            Some("trace") => self.trace_block()?,
            Some("env") => self.env_block()?,
            Some("clock") => self.clock_block()?,
            Some("stream") => self.stream_block()?,
            Some("event") => self.event_block()?,
            Some("callsite") => {
                self.next += 1;
                self.skip_statement();
                return Ok(());
            }
            _ => self.declaration()?,
        }
        self.expect_mark(";")
    }

    /// `typedef …`, `typealias …`, or a named type alone.
    fn declaration(&mut self) -> Parsed<()> {
        if self.take_word("typealias") {
            return self.typealias();
        }
        if self.take_word("typedef") {
            return self.typedef();
        }
        let class = self.specifier()?;
        // `struct x { … } typedef y;` is as good as the other order [§C.2.2].
        if self.take_word("typedef") {
            return self.typedef_names(&class);
        }
        if self.at_mark(";") {
            return Ok(());
        }
        Err(self.unexpected("`;` after a declaration"))
    }

    /// Runs `body` between braces, in a scope of names of its own.
    fn braces(&mut self, mut body: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        self.expect_mark("{")?;
        self.depth += 1;
        if self.depth > BRACE_LIMIT {
            return Err(format!("more than {BRACE_LIMIT} levels of braces"));
        }
        self.scopes.push(Names::default());
        while !self.take_mark("}") {
            if self.peek().is_none() {
                return Err(self.unexpected("`}`"));
            }
            // A semicolon too many separates nothing.
            if !self.take_mark(";") {
                body(self)?;
            }
        }
        self.scopes.pop();
        self.depth -= 1;
        Ok(())
    }

    /// Counts the classes a type brings with it each time it is named.
    fn used(&mut self, class: FieldClass) -> Parsed<FieldClass> {
        self.weight = self.weight.saturating_add(class.weight());
        if self.weight > WEIGHT_LIMIT || class.depth() > DEPTH_LIMIT {
            return Err("the types of this trace grow beyond all use".to_owned());
        }
        Ok(class)
    }

    /// Name as shown: CTF 1.8 readers drop one leading underscore [§4.2.1].
    fn shown(&mut self, name: &str) -> Arc<str> {
        self.once.name(name.strip_prefix('_').unwrap_or(name))
    }
}
