// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fields, their types and annotations, and enums.

use super::{Resolver, Seen};
use crate::diagnostic::Code;
use crate::schema::{
    ARRAY_LENGTH_MAX, Annotation, AnnotationGroup, EnumType, Event, FIELDS_MAX, Field, FieldType,
    Integer, Scalar, Schema,
};
use crate::source::{Place, Span};
use crate::suggest::nearest;
use crate::syntax::{
    ElementExpression, EnumBody, EnumDefinition, EventDefinition, FieldDefinition, Name, Number,
    TypeExpression,
};

/// Bytes that fit into the smallest packet (4096 bytes) after its header (128), the writer record
/// (16), the unused tail (8) and the record's own header (8).
const PAYLOAD_BYTES_SMALL: u32 = 4096 - 128 - 16 - 8 - 8;

/// Until the number of named enums is known, enums inside fields have indices from here.
const INLINE: usize = 1 << 32;

/// Moves the enums from inside fields after the named ones and corrects the indices.
pub(super) fn append_inline_enums(schema: &mut Schema, inline: Vec<EnumType>) {
    let named_count = schema.enums.len();
    schema.enums.extend(inline);
    for (event_index, event) in schema.events.iter_mut().enumerate() {
        for (field_index, field) in event.fields.iter_mut().enumerate() {
            let scalar = match &mut field.ty {
                FieldType::Scalar(scalar)
                | FieldType::Array { element: scalar, .. }
                | FieldType::Sequence(scalar) => scalar,
                FieldType::String | FieldType::Bytes => continue,
            };
            if let Scalar::Enum { index, .. } = scalar
                && *index >= INLINE
            {
                *index = *index - INLINE + named_count;
                schema.enums[*index].owner = Some((event_index, field_index));
            }
        }
    }
}

impl Resolver<'_, '_> {
    pub(super) fn named_enums(&mut self, definitions: &[EnumDefinition]) {
        let mut seen = Seen::default();
        for definition in definitions {
            let name = &definition.name;
            let kind = builtin(&name.text);
            if let Some(kind) = kind {
                let message = format!("`{}` is {kind} already", name.text);
                self.reporter
                    .report(Code::DuplicateEnum, name.span, message)
                    .label("expected another name");
            }
            let is_new = seen.is_new(name, Code::DuplicateEnum, "enums", self.reporter);
            let resolved = self.enum_type(Some(name), &definition.body);
            if is_new && kind.is_none() {
                self.enum_names.insert(name.text.clone(), (self.enums.len(), name.span));
                self.enums.push(resolved);
                self.uses.push(false);
            }
        }
    }

    pub(super) fn unused_enums(&mut self, definitions: &[EnumDefinition]) {
        for definition in definitions {
            let Some((index, span)) = self.enum_names.get(&definition.name.text).copied() else {
                continue;
            };
            if !self.uses[index] && span == definition.name.span {
                let message = format!("no field has the type `{}`", definition.name.text);
                self.reporter.report(Code::UnusedEnum, span, message);
            }
        }
    }

    fn enum_type(&mut self, name: Option<&Name>, body: &EnumBody) -> EnumType {
        let span = name.map_or(body.span, |name| name.span);
        let mut labels: Vec<(String, i128)> = Vec::new();
        let mut names = Seen::default();
        let mut values: std::collections::HashMap<i128, Span> = std::collections::HashMap::new();
        let mut next = 0_i128;
        for label in &body.labels {
            if self.reporter.is_full() {
                break;
            }
            let value = label.value.map_or(next, |number| number.value);
            let place = label.value.map_or(label.name.span, |number| number.span);
            next = value.saturating_add(1);
            names.is_new(&label.name, Code::DuplicateLabel, "labels", self.reporter);
            if let Some(first) = values.insert(value, place) {
                let first = self.reporter.at(first);
                self.reporter
                    .report(
                        Code::DuplicateValue,
                        place,
                        format!("two labels have the value {value}"),
                    )
                    .label("expected a value that is not taken")
                    .note(format!("the first one is at {first}"));
            }
            labels.push((label.name.text.clone(), value));
        }
        if labels.is_empty() {
            self.reporter
                .report(Code::EmptyEnum, body.span, "an enum without labels")
                .label("expected at least one label");
        }
        let container = self.container(body, &labels);
        let place = self.reporter.source.place(span.start);
        EnumType { name: name.map(|name| name.text.clone()), container, labels, owner: None, place }
    }

    fn container(&mut self, body: &EnumBody, labels: &[(String, i128)]) -> Integer {
        let least = labels.iter().map(|(_, value)| *value).min().unwrap_or(0);
        let greatest = labels.iter().map(|(_, value)| *value).max().unwrap_or(0);
        let fits = |integer: &Integer| {
            let (from, to) = integer.range();
            from <= least && greatest <= to
        };
        if let Some(name) = &body.container {
            let Some(container) = integer_named(&name.text) else {
                let message = format!("`{}` cannot hold an enum", name.text);
                self.reporter
                    .report(Code::EnumContainer, name.span, message)
                    .label("expected u8, u16, u32, u64, i8, i16, i32 or i64")
                    .did_you_mean(nearest(&name.text, Integer::ALL.map(|(name, _)| name)));
                return Integer::U64;
            };
            if !fits(&container) {
                self.value_misfit(body, container.range(), container.name());
            }
            return container;
        }
        let by_size = Integer::ALL.iter().map(|(_, integer)| *integer);
        let chosen = by_size.filter(|integer| integer.is_signed() == (least < 0)).find(fits);
        chosen.unwrap_or_else(|| {
            self.value_misfit(body, (Integer::I64.range().0, Integer::U64.range().1), "64 bits");
            Integer::U64
        })
    }

    /// Reports the first label whose value is out of range.
    fn value_misfit(&mut self, body: &EnumBody, (from, to): (i128, i128), into: &str) {
        let mut written = body.labels.iter().filter_map(|label| label.value);
        let culprit = written.clone().find(|number| number.value < from || number.value > to);
        let span = match culprit.or(written.next_back()) {
            Some(Number { span, .. }) => span,
            None => body.labels.last().map_or(body.span, |label| label.name.span),
        };
        self.reporter
            .report(Code::EnumValue, span, format!("the values do not fit into {into}"))
            .label(format!("expected {from} to {to}"))
            .help("name a wider integer behind `enum`: `enum : u32 { … }`");
    }

    pub(super) fn fields(&mut self, definition: &EventDefinition) -> Vec<Field> {
        let Some(definitions) = &definition.fields else {
            return vec![Field {
                name: "arg".to_owned(),
                ty: FieldType::Scalar(Scalar::Integer(Integer::U32)),
                annotations: Vec::new(),
                place: Place::default(),
            }];
        };
        let mut seen = Seen::default();
        let mut fields = Vec::new();
        for (index, field) in definitions.iter().enumerate() {
            if self.reporter.is_full() {
                break;
            }
            seen.is_new(&field.name, Code::DuplicateField, "fields", self.reporter);
            if index == FIELDS_MAX {
                let message =
                    format!("event `{}` has {} fields", definition.name.text, definitions.len());
                self.reporter
                    .report(Code::TooManyFields, field.name.span, message)
                    .label(format!("expected at most {FIELDS_MAX}"))
                    .help("use an array, or two events");
                break;
            }
            // A field that cannot be typed stays, as something harmless, so that
            // clauses that name it do not add to the findings.
            let ty = self.field_type(&field.ty);
            let annotations = self.annotations(field, ty);
            fields.push(Field {
                name: field.name.text.clone(),
                ty: ty.unwrap_or(FieldType::Scalar(Scalar::Integer(Integer::U64))),
                annotations,
                place: self.reporter.source.place(field.name.span.start),
            });
        }
        fields
    }

    /// `None` if it was reported.
    fn field_type(&mut self, expression: &TypeExpression) -> Option<FieldType> {
        match expression {
            TypeExpression::Named(name) if name.text == "string" => Some(FieldType::String),
            TypeExpression::Named(name) if name.text == "bytes" => Some(FieldType::Bytes),
            TypeExpression::Named(name) => Some(FieldType::Scalar(self.named_scalar(name)?)),
            TypeExpression::Enum(body) => Some(FieldType::Scalar(self.inline_enum(body))),
            TypeExpression::Sequence(element) => Some(FieldType::Sequence(self.element(element)?)),
            TypeExpression::Array(element, length) => {
                let element = self.element(element);
                let length = self.array_length((*length)?);
                Some(FieldType::Array { element: element?, length: length? })
            }
            TypeExpression::Unreadable => None,
        }
    }

    fn array_length(&mut self, number: Number) -> Option<u32> {
        let length = u32::try_from(number.value).ok();
        let length = length.filter(|length| (1..=ARRAY_LENGTH_MAX).contains(length));
        if length.is_none() {
            let message = format!("an array of {} elements", number.value);
            self.reporter
                .report(Code::ArrayLength, number.span, message)
                .label(format!("expected 1 to {ARRAY_LENGTH_MAX}"))
                .help("a sequence `[type]` has as many elements as there are");
        }
        length
    }

    fn element(&mut self, element: &ElementExpression) -> Option<Scalar> {
        match element {
            ElementExpression::Named(name) if matches!(&*name.text, "string" | "bytes") => {
                let message = format!("an array of {}", name.text);
                self.reporter
                    .report(Code::ElementType, name.span, message)
                    .label("expected an integer, float, bool or enum type");
                None
            }
            ElementExpression::Named(name) => self.named_scalar(name),
            ElementExpression::Enum(body) => Some(self.inline_enum(body)),
            ElementExpression::Unusable => None,
        }
    }

    fn inline_enum(&mut self, body: &EnumBody) -> Scalar {
        let resolved = self.enum_type(None, body);
        let container = resolved.container;
        self.inline_enums.push(resolved);
        Scalar::Enum { index: INLINE + self.inline_enums.len() - 1, container }
    }

    fn named_scalar(&mut self, name: &Name) -> Option<Scalar> {
        if let Some(integer) = integer_named(&name.text) {
            return Some(Scalar::Integer(integer));
        }
        match name.text.as_str() {
            "f32" => return Some(Scalar::F32),
            "f64" => return Some(Scalar::F64),
            "bool" => return Some(Scalar::Bool),
            _ => {}
        }
        if let Some((index, _)) = self.enum_names.get(&name.text).copied() {
            self.uses[index] = true;
            return Some(Scalar::Enum { index, container: self.enums[index].container });
        }
        let foreign = foreign_type(&name.text);
        let known = TYPE_WORDS.into_iter().chain(self.enum_names.keys().map(String::as_str));
        // Several enums may be equally near: the result must not depend on the map's order.
        let mut known: Vec<&str> = known.collect();
        known[TYPE_WORDS.len()..].sort_unstable();
        let suggestion = foreign.or_else(|| nearest(&name.text, known));
        let suggestion = suggestion.map(str::to_owned);
        self.reporter
            .report(Code::UnknownType, name.span, format!("unknown type `{}`", name.text))
            .label("expected u8 … u64, i8 … i64, f32, f64, bool, string, bytes, or an enum")
            .did_you_mean(suggestion.as_deref());
        None
    }

    fn annotations(&mut self, field: &FieldDefinition, ty: Option<FieldType>) -> Vec<Annotation> {
        let mut found: Vec<Annotation> = Vec::new();
        for name in &field.annotations {
            let all = Annotation::ALL;
            let Some(annotation) = all.iter().copied().find(|known| known.word() == name.text)
            else {
                let suggestion = nearest(&name.text, all.iter().map(|known| known.word()));
                let message = format!("unknown annotation `@{}`", name.text);
                self.reporter
                    .report(Code::UnknownAnnotation, name.span, message)
                    .label("expected one of the annotations of the language")
                    .did_you_mean(suggestion);
                continue;
            };
            let rival = found.iter().find(|other| other.group() == annotation.group());
            if let Some(rival) = rival {
                let message = if *rival == annotation {
                    format!("`@{}` is said twice", annotation.word())
                } else {
                    format!("`@{}` contradicts `@{}`", annotation.word(), rival.word())
                };
                self.reporter
                    .report(Code::AnnotationConflict, name.span, message)
                    .label("expected at most one of its kind");
                continue;
            }
            if let Some(needed) = ty.and_then(|ty| misfit(annotation, ty)) {
                let message = format!("`@{}` does not suit this type", annotation.word());
                self.reporter
                    .report(Code::AnnotationMisfit, name.span, message)
                    .label(format!("expected only on {needed}"));
            }
            found.push(annotation);
        }
        found
    }

    pub(super) fn record_size(&mut self, event: &Event, name: &Name) {
        let least = event.layout().payload_bytes_min;
        if least > PAYLOAD_BYTES_SMALL {
            let message = format!("records of event `{}` have {least} bytes", event.name);
            self.reporter
                .report(Code::LargeRecord, name.span, message)
                .label(format!("more than {PAYLOAD_BYTES_SMALL} bytes are lost in small packets"))
                .help("record with packets of 64 KiB or more, or split the event");
        }
    }
}

const TYPE_WORDS: [&str; 13] =
    ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64", "bool", "string", "bytes"];

fn builtin(name: &str) -> Option<&'static str> {
    TYPE_WORDS.contains(&name).then_some("a type of the language")
}

fn integer_named(name: &str) -> Option<Integer> {
    Integer::ALL.iter().find(|(known, _)| *known == name).map(|(_, integer)| *integer)
}

/// What people write who think of another language.
fn foreign_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "uint8_t" | "char" | "byte" | "uint8" => "u8",
        "uint16_t" | "uint16" | "short" => "u16",
        "uint32_t" | "uint32" | "unsigned" | "uint" => "u32",
        "uint64_t" | "uint64" | "size_t" | "usize" | "uintptr_t" | "long" | "pointer" | "ptr" => {
            "u64"
        }
        "int8_t" | "int8" => "i8",
        "int16_t" | "int16" => "i16",
        "int32_t" | "int32" | "int" => "i32",
        "int64_t" | "int64" | "ssize_t" | "isize" => "i64",
        "float" => "f32",
        "double" => "f64",
        "str" | "text" | "cstring" => "string",
        "blob" | "binary" => "bytes",
        "boolean" | "_Bool" => "bool",
        _ => return None,
    })
}

/// What the annotation needs, if `ty` is not that.
fn misfit(annotation: Annotation, ty: FieldType) -> Option<&'static str> {
    let scalar = match ty {
        FieldType::Scalar(scalar)
        | FieldType::Array { element: scalar, .. }
        | FieldType::Sequence(scalar) => Some(scalar),
        FieldType::String | FieldType::Bytes => None,
    };
    let is_integer = matches!(scalar, Some(Scalar::Integer(_)));
    let is_number = is_integer || matches!(scalar, Some(Scalar::F32 | Scalar::F64));
    match annotation.group() {
        AnnotationGroup::Secrecy => None,
        AnnotationGroup::Unit => (!is_number).then_some("integers and floats"),
        AnnotationGroup::Base | AnnotationGroup::Meaning => (!is_integer).then_some("integers"),
    }
}
