// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The formatter: one spelling for every schema file, comments kept.
//!
//! It works on tokens, not on the schema, so nothing that was written is lost:
//! definitions are cut into units (the head of a subsystem, an event, its end, an
//! enum, a budget), and every unit is put on one line, or, where it would be
//! longer than 100 characters, on one line a field.

mod unit;

use crate::diagnostic::{Diagnostic, Reporter};
use crate::lex::{TokenKind, lex};
use unit::{Piece, Unit, UnitKind};

/// Formats a schema file.
///
/// Errors: the diagnostics of [`compile`](crate::compile), if it finds an error;
/// a file with errors is not changed. Cost: O(text).
pub fn format(file_name: &str, text: &[u8]) -> Result<String, Vec<Diagnostic>> {
    let compilation = crate::compile(file_name, text);
    let text = match std::str::from_utf8(text) {
        Ok(text) if !compilation.has_errors() => text,
        _ => return Err(compilation.diagnostics),
    };
    let mut printer = Printer { out: String::new(), is_in_body: false };
    for unit in units(&pieces(text)) {
        printer.unit(&unit);
    }
    Ok(printer.out)
}

/// Tokens and comments in the order of the text.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut reporter = Reporter::new("", text);
    let lexed = lex(&mut reporter);
    let tokens = lexed.tokens.iter().filter(|token| token.kind != TokenKind::End);
    let mut spans: Vec<_> = tokens.map(|token| (token.span, false)).collect();
    spans.extend(lexed.comments.iter().map(|span| (*span, true)));
    spans.sort_by_key(|(span, _)| span.start);
    let mut end = 0;
    let mut pieces = Vec::new();
    for (span, is_comment) in spans {
        let gap = text.get(end..span.start as usize).unwrap_or("");
        pieces.push(Piece {
            text: text.get(span.start as usize..span.end as usize).unwrap_or(""),
            is_comment,
            line_ends_before: gap.matches('\n').count(),
        });
        end = span.end as usize;
    }
    pieces
}

fn units<'a>(pieces: &[Piece<'a>]) -> Vec<Unit<'a>> {
    let mut units = Vec::new();
    let mut rest = pieces;
    let mut is_in_body = false;
    let mut carried = Vec::new();
    while !rest.is_empty() || !carried.is_empty() {
        let (unit, used) = Unit::take(rest, is_in_body, &mut carried);
        match unit.kind {
            UnitKind::Head => is_in_body = true,
            UnitKind::Close => is_in_body = false,
            UnitKind::Event | UnitKind::Definition | UnitKind::Remarks => {}
        }
        rest = &rest[used..];
        units.push(unit);
    }
    units
}

struct Printer {
    out: String,
    is_in_body: bool,
}

impl Printer {
    fn unit(&mut self, unit: &Unit<'_>) {
        if unit.kind == UnitKind::Close {
            // Comments before the brace still belong to the body.
            self.remarks(unit, 4);
            self.is_in_body = false;
            self.line(0, &unit.print(0), &unit.trailing);
            return;
        }
        let indent = if self.is_in_body { 4 } else { 0 };
        let is_apart = unit.kind == UnitKind::Head && !self.out.is_empty();
        if is_apart && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
        self.remarks(unit, indent);
        if unit.kind == UnitKind::Remarks {
            return;
        }
        let first = unit.pieces.first().map_or(0, |piece| piece.line_ends_before);
        if first > 1 && !(is_apart && unit.leading.is_empty()) {
            self.blank_line();
        }
        self.line(indent, &unit.print(indent), &unit.trailing);
        if unit.kind == UnitKind::Head {
            self.is_in_body = true;
        }
    }

    fn remarks(&mut self, unit: &Unit<'_>, indent: usize) {
        for comment in &unit.leading {
            if comment.line_ends_before > 1 {
                self.blank_line();
            }
            self.line(indent, &comment.comment_lines(indent), &[]);
        }
    }

    /// A blank line, but never two, and none at the start of a file or body.
    fn blank_line(&mut self) {
        let is_at_start = self.out.is_empty() || self.out.ends_with("{\n");
        if !is_at_start && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn line(&mut self, indent: usize, text: &str, trailing: &[Piece<'_>]) {
        self.out.push_str(&" ".repeat(indent));
        self.out.push_str(text);
        for comment in trailing {
            self.out.push(' ');
            self.out.push_str(&comment.comment_lines(indent));
        }
        self.out.push('\n');
    }
}
