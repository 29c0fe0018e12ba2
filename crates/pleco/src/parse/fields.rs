// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Field lists, types, enums and annotations.

use super::Parser;
use crate::diagnostic::Code;
use crate::syntax::{
    ElementExpression, EnumBody, FieldDefinition, LabelDefinition, Name, TypeExpression,
};

impl Parser<'_, '_, '_> {
    /// `( name: type @annotation, … )`; a comma after the last field is allowed.
    pub(super) fn field_list(&mut self) -> Vec<FieldDefinition> {
        let open = self.bump().span;
        let mut fields = Vec::new();
        loop {
            if self.is_punctuation(")") || self.is_at_next_event() {
                break;
            }
            match self.field() {
                Some(field) => fields.push(field),
                None => self.skip_field(),
            }
            if self.eat(",") {
                continue;
            }
            if self.is_punctuation(")") || self.is_at_next_event() {
                break;
            }
            self.expected("`,` or `)`");
            self.skip_field();
            self.eat(",");
        }
        self.is_list_open = !self.close(")", open, "this list of fields");
        fields
    }

    fn is_at_next_event(&self) -> bool {
        // `event` cannot be the name of a field: if a colon follows, it was meant so.
        let is_word = self.is_word("event") || self.is_word("subsystem");
        self.is_end() || is_word && self.text_at(self.at + 1) != ":" || self.is_punctuation("}")
    }

    fn skip_field(&mut self) {
        let mut depth = 0_usize;
        while !self.is_at_next_event() || depth > 0 && self.is_punctuation("}") {
            if depth == 0 && (self.is_punctuation(",") || self.is_punctuation(")")) {
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

    fn field(&mut self) -> Option<FieldDefinition> {
        let name = self.name("the name of a field")?;
        if !self.eat(":") {
            self.expected("`:` and the type of the field");
            return None;
        }
        let ty = self.field_type();
        let mut annotations = Vec::new();
        while self.eat("@") {
            if !self.is_identifier() {
                self.expected("an annotation, for instance `hex`");
                break;
            }
            let token = self.bump();
            let text = self.reporter.source.slice(token.span).to_owned();
            annotations.push(Name { text, span: token.span });
        }
        Some(FieldDefinition { name, ty, annotations })
    }

    fn field_type(&mut self) -> TypeExpression {
        let span = self.span();
        if !self.is_punctuation("[") {
            return match self.element() {
                Some(ElementExpression::Named(name)) => TypeExpression::Named(name),
                Some(ElementExpression::Enum(body)) => TypeExpression::Enum(body),
                _ => TypeExpression::Unreadable,
            };
        }
        self.bump();
        let element = if self.is_punctuation("[") {
            self.reporter
                .report(Code::ElementType, self.tokens[self.at].span, "an array in an array")
                .label("expected an integer, float, bool or enum type")
                .help("give the elements a fixed array's product as length, or use more fields");
            self.skip_nested();
            ElementExpression::Unusable
        } else {
            self.element().unwrap_or(ElementExpression::Unusable)
        };
        let ty = if self.eat(";") {
            let length = self.integer("the number of elements");
            if length.is_none() && self.text_at(self.at + 1) == "]" {
                // Something else is in the place of a number.
                self.bump();
            }
            TypeExpression::Array(element, length)
        } else {
            TypeExpression::Sequence(element)
        };
        self.close("]", span, "this array type");
        ty
    }

    /// Past a nested array type with any content.
    fn skip_nested(&mut self) {
        let mut depth = 0_usize;
        while !self.is_end() && !self.is_word("event") && !self.is_word("subsystem") {
            if self.is_punctuation("[") {
                depth += 1;
            } else if self.is_punctuation("]") {
                depth -= 1;
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    fn element(&mut self) -> Option<ElementExpression> {
        if self.is_soft_word("enum") {
            self.bump();
            return self.enum_body().map(|(body, _)| ElementExpression::Enum(body));
        }
        if !self.is_identifier() {
            self.expected("a type");
            return None;
        }
        let token = self.bump();
        let text = self.reporter.source.slice(token.span).to_owned();
        Some(ElementExpression::Named(Name { text, span: token.span }))
    }

    /// `: container { A, B = 5 }`, after the word `enum` and a name; and whether it is closed.
    pub(super) fn enum_body(&mut self) -> Option<(EnumBody, bool)> {
        let mut container = None;
        if self.eat(":") {
            if self.is_identifier() {
                let token = self.bump();
                let text = self.reporter.source.slice(token.span).to_owned();
                container = Some(Name { text, span: token.span });
            } else {
                self.expected("an integer type");
            }
        }
        let open = self.span();
        if !self.eat("{") {
            self.expected("`{` and the labels of the enum");
            return None;
        }
        let mut labels = Vec::new();
        while !self.is_punctuation("}") && !self.is_at_next_event() {
            let Some(name) = self.name("a label") else {
                self.skip_label();
                self.eat(",");
                continue;
            };
            let value = if self.eat("=") { self.integer("the value of the label") } else { None };
            labels.push(LabelDefinition { name, value });
            if !self.eat(",") && !self.is_punctuation("}") && !self.is_at_next_event() {
                self.expected("`,` or `}`");
                self.skip_label();
                self.eat(",");
            }
        }
        let is_closed = self.close("}", open, "this enum");
        Some((EnumBody { span: open.to(self.previous_span()), container, labels }, is_closed))
    }

    fn skip_label(&mut self) {
        while !self.is_end()
            && !self.is_punctuation(",")
            && !self.is_punctuation("}")
            && !self.is_punctuation(";")
            && !self.is_word("event")
            && !self.is_word("subsystem")
        {
            self.bump();
        }
        // A `;` here is no end of anything that could be continued.
        if self.is_punctuation(";") {
            self.bump();
        }
    }
}
