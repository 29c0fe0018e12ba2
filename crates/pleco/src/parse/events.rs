// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Subsystems, events and their clauses.

use super::{Parser, is_reserved};
use crate::diagnostic::Code;
use crate::lex::TokenKind;
use crate::source::Span;
use crate::suggest::nearest;
use crate::syntax::{ClauseDefinition, ClauseKind, EventDefinition, Name, SubsystemDefinition};

impl Parser<'_, '_, '_> {
    pub(super) fn subsystem(&mut self) -> Option<SubsystemDefinition> {
        self.bump();
        let name = self.name("the name of a subsystem");
        let description = self.description();
        let id = self.explicit_id();
        let open = self.span();
        if !self.eat("{") {
            self.expected("`{`");
            self.skip_to_body();
            if !self.eat("{") && !self.is_word("event") {
                return None;
            }
        }
        let events = self.events();
        let is_closed = self.close("}", open, "this subsystem");
        if is_closed {
            self.semicolon("the subsystem");
        }
        // Without a name the rest was read only for its errors.
        let name = name?;
        if events.is_empty() && is_closed {
            self.reporter
                .report(Code::NoEvent, name.span, format!("subsystem `{}` is empty", name.text))
                .label("expected at least one event in it")
                .help("write `event NAME \"description\",` between the braces");
        }
        Some(SubsystemDefinition { name, description, id, events })
    }

    /// After a fault between `subsystem` and `{`: to the `{`, if it comes before the next word
    /// that begins something.
    fn skip_to_body(&mut self) {
        while !self.is_end()
            && !self.is_punctuation("{")
            && !self.is_punctuation("}")
            && !self.is_punctuation(";")
            && !self.is_word("subsystem")
            && !self.is_word("event")
        {
            self.bump();
        }
    }

    fn events(&mut self) -> Vec<EventDefinition> {
        let mut events = Vec::new();
        loop {
            if self.is_end() || self.is_punctuation("}") || self.is_word("subsystem") {
                return events;
            }
            if self.is_word("event") {
                events.extend(self.event());
                self.after_event();
            } else {
                let suggestion = nearest(self.text(), ["event"]).filter(|_| self.is_identifier());
                self.expected("`event` or `}`").did_you_mean(suggestion);
                self.skip_event();
                self.eat(",");
            }
        }
    }

    /// The comma between events; after the last one it may be missing.
    fn after_event(&mut self) {
        if self.eat(",") || self.is_punctuation("}") {
            return;
        }
        if self.is_word("event") {
            let before = self.previous_span();
            // The list of fields took the comma, or the fault was said.
            if std::mem::take(&mut self.is_list_open) {
                return;
            }
            self.reporter
                .report(Code::MissingComma, before, "no `,` between two events")
                .label("expected `,` behind this")
                .help("write `,` here");
            return;
        }
        if self.is_end() || self.is_word("subsystem") {
            return;
        }
        self.unexpected_in_event();
        self.skip_event();
        self.eat(",");
    }

    /// Something that is not a clause follows an event.
    fn unexpected_in_event(&mut self) {
        let span = self.span();
        if self.is_identifier() {
            let word = self.text();
            let words = ClauseKind::WORDS.iter().map(|(word, _)| *word);
            let suggestion = nearest(word, words);
            let short: String = word.chars().take(40).collect();
            self.reporter
                .report(Code::UnknownClause, span, format!("unknown clause `{short}`"))
                .label("expected begin, end, send, recv, counter, state or format, or `,`")
                .did_you_mean(suggestion);
        } else {
            let what = if self.token().kind == TokenKind::String {
                self.expected("`,`").help("the description stands directly behind the name");
                return;
            } else {
                "a clause, `,` or `}`"
            };
            self.expected(what);
        }
    }

    /// To the next `,` outside of brackets, or to what ends the body.
    fn skip_event(&mut self) {
        let mut depth = 0_usize;
        while !self.is_end() && !self.is_word("event") && !self.is_word("subsystem") {
            let is_outside = depth == 0;
            if is_outside && (self.is_punctuation(",") || self.is_punctuation("}")) {
                return;
            }
            match self.text() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.bump();
        }
    }

    fn event(&mut self) -> Option<EventDefinition> {
        self.bump();
        self.is_list_open = false;
        let Some(name) = self.name("the name of an event") else {
            self.skip_event();
            return None;
        };
        let mut description = self.description();
        let mut id = self.explicit_id();
        // `= 5 "text"`: the other order is understood, but not accepted.
        if description.is_none() && id.is_some() && self.token().kind == TokenKind::String {
            self.expected("the description in front of the id")
                .help("write `event NAME \"description\" = ID`");
            description = self.description();
        }
        let fields = self.is_punctuation("(").then(|| self.field_list());
        if id.is_none() && fields.is_some() && self.is_punctuation("=") {
            self.expected("the id in front of the fields")
                .help("write `event NAME \"description\" = ID (fields)`");
            id = self.explicit_id();
        }
        let mut clauses = Vec::new();
        while let Some(kind) = self.clause_word() {
            clauses.push(self.clause(kind));
        }
        Some(EventDefinition { name, description, id, fields, clauses })
    }

    fn clause_word(&self) -> Option<ClauseKind> {
        ClauseKind::from_word(self.text()).filter(|_| self.is_identifier())
    }

    fn clause(&mut self, kind: ClauseKind) -> ClauseDefinition {
        let word = self.bump().span;
        let mut clause =
            ClauseDefinition { kind, span: word, subject: None, title: None, keys: Vec::new() };
        let what = match kind {
            ClauseKind::Begin | ClauseKind::End => "the name of a span",
            ClauseKind::Send | ClauseKind::Recv => "the name of a channel",
            ClauseKind::Counter => "the field that is counted",
            ClauseKind::State => "the field that holds the state",
            ClauseKind::Format => return clause,
        };
        clause.subject = self.reference(what);
        let has_title = kind == ClauseKind::Counter
            && self.is_identifier()
            && !self.is_soft_word("key")
            && self.clause_word().is_none()
            && !is_reserved(self.text());
        if has_title {
            clause.title = self.name("the name of a counter");
        }
        if self.is_soft_word("key") {
            self.bump();
            clause.keys = self.keys();
        }
        clause.span = self.span_since(word);
        clause
    }

    fn span_since(&self, start: Span) -> Span {
        start.to(self.previous_span())
    }

    fn reference(&mut self, what: &str) -> Option<Name> {
        if !self.is_identifier() || is_reserved(self.text()) {
            self.expected(what);
            return None;
        }
        let token = self.bump();
        Some(Name { text: self.reporter.source.slice(token.span).to_owned(), span: token.span })
    }

    /// Consecutive fields, or fields with commas. A comma belongs to the keys only if a name
    /// follows that does not begin an event; after a comma, a word like `state` is a field,
    /// otherwise a clause.
    fn keys(&mut self) -> Vec<Name> {
        let mut keys: Vec<Name> = self.reference("a field").into_iter().collect();
        loop {
            if self.is_identifier() && self.clause_word().is_none() && !is_reserved(self.text()) {
                keys.extend(self.reference("a field"));
                continue;
            }
            let next = self.tokens.get(self.at + 1);
            let is_name = next.is_some_and(|token| token.kind == TokenKind::Identifier);
            let continues =
                self.is_punctuation(",") && is_name && !is_reserved(self.text_at(self.at + 1));
            if !continues {
                return keys;
            }
            self.bump();
            keys.extend(self.reference("a field"));
        }
    }
}
