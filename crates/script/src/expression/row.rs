// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asking an expression about one event.

use lateralis_analysis::filter::{Context, Fact, fact, text_of};
use lateralis_model::{Event, Field, FieldKind, Fields, Value as ModelValue};

use super::value::{Value, inverted, negated, plus};
use super::{Answer, Expression, Key, Node, Path, Step, TextTest, Unary};

/// What an expression looks at.
pub trait Row {
    /// The value of a path; `None` if only the engine can determine it.
    fn value(&self, path: &Path) -> Option<Value<'_>>;
}

impl Expression {
    /// Whether it holds for an event.
    ///
    /// Cost: a walk over the fields for each field that it names.
    #[must_use]
    pub fn holds(&self, event: &Event<'_>, context: &Context<'_>) -> Answer {
        self.test(&EventRow { event, context })
    }

    /// Its value for an event; `None` if only the engine can determine it.
    #[must_use]
    pub fn value_of<'a>(&'a self, event: &Event<'a>, context: &Context<'a>) -> Option<Value<'a>> {
        let row = EventRow { event, context };
        evaluate(&self.root, &self.paths, &row).map(Value::into_owned)
    }

    /// Whether it holds for a row.
    #[must_use]
    pub fn test(&self, row: &dyn Row) -> Answer {
        Answer::of(evaluate(&self.root, &self.paths, row).map(|value| value.is_true()))
    }
}

pub(super) fn evaluate<'a>(node: &'a Node, paths: &[Path], row: &'a dyn Row) -> Option<Value<'a>> {
    let of = |node: &'a Node| evaluate(node, paths, row);
    match node {
        Node::Constant(value) => Some(value.borrowed()),
        Node::Path(index) => row.value(&paths[*index]),
        Node::Not(inner) => Some(Value::Bool(!of(inner)?.is_true())),
        Node::Unary(operator, inner) => {
            let value = of(inner)?;
            match operator {
                Unary::Negate => negated(&value),
                Unary::Plus => plus(&value),
                Unary::Invert => inverted(&value),
                Unary::TypeOf => Some(Value::Text(value.type_name().into())),
            }
        }
        Node::And(left, right) => {
            let left = of(left)?;
            if left.is_true() { of(right) } else { Some(left) }
        }
        Node::Or(left, right) => {
            let left = of(left)?;
            if left.is_true() { Some(left) } else { of(right) }
        }
        Node::Nullish(left, right) => match of(left)? {
            Value::Undefined | Value::Null => of(right),
            left => Some(left),
        },
        Node::Choose(condition, yes, no) => of(if of(condition)?.is_true() { yes } else { no }),
        Node::Binary(operator, left, right) => operator.apply(&of(left)?, &of(right)?),
        Node::Text(test, value, text, is_optional) => match of(value)? {
            Value::Text(value) => Some(Value::Bool(match test {
                TextTest::StartsWith => value.starts_with(text.as_str()),
                TextTest::EndsWith => value.ends_with(text.as_str()),
                TextTest::Includes => value.contains(text.as_str()),
            })),
            Value::Undefined | Value::Null if *is_optional => Some(Value::Undefined),
            // JavaScript throws a TypeError.
            _ => None,
        },
    }
}

/// An event of a trace.
pub struct EventRow<'r, 'a> {
    /// The event.
    pub event: &'r Event<'a>,
    /// What it does not carry itself.
    pub context: &'r Context<'a>,
}

impl Row for EventRow<'_, '_> {
    fn value(&self, path: &Path) -> Option<Value<'_>> {
        match path {
            Path::Known(known) => Some(match fact(*known, self.event, self.context) {
                None => Value::Undefined,
                // A time is a BigInt, however small.
                Some(Fact::Integer(value)) if *known == lateralis_analysis::filter::Known::Time => {
                    Value::Big(value)
                }
                Some(Fact::Integer(value)) => Value::integer(value),
                Some(Fact::Text(text)) => Value::Text(text),
            }),
            Path::Label(name) => Some(
                find(self.event, name)
                    .and_then(label)
                    .map_or(Value::Undefined, |label| Value::Text(label.into())),
            ),
            Path::Field(steps) => {
                let Some((Step { key: Key::Name(first), .. }, rest)) = steps.split_first() else {
                    return None;
                };
                match find(self.event, first) {
                    Some(field) => follow(plain(field), rest),
                    None => absent(rest),
                }
            }
        }
    }
}

/// The fields of an event as scripts see them: the payload, else the event's context,
/// else that of all events of its stream.
pub fn scopes<'a>(event: &Event<'a>) -> impl Iterator<Item = Fields<'a>> {
    [event.payload(), event.context(), event.common_context()].into_iter().flatten()
}

fn find<'a>(event: &Event<'a>, name: &str) -> Option<Field<'a>> {
    scopes(event).find_map(|fields| fields.get(name))
}

/// What a field holds once choices are made; `None` for nothing.
fn plain(field: Field<'_>) -> Option<Field<'_>> {
    match field.value() {
        ModelValue::Variant(_, inner) | ModelValue::Optional(Some(inner)) => plain(inner),
        ModelValue::Optional(None) => None,
        _ => Some(field),
    }
}

/// The rest of a path applied to `undefined`: `undefined` after `?.`, otherwise an exception.
pub(super) fn absent(rest: &[Step]) -> Option<Value<'static>> {
    match rest.first() {
        Some(step) if !step.is_optional => None,
        _ => Some(Value::Undefined),
    }
}

fn follow<'a>(mut field: Option<Field<'a>>, steps: &[Step]) -> Option<Value<'a>> {
    for (index, step) in steps.iter().enumerate() {
        let Some(here) = field else {
            return absent(&steps[index..]);
        };
        field = match (here.value(), &step.key) {
            (ModelValue::Struct(fields), Key::Name(name)) => fields.get(name).and_then(plain),
            (ModelValue::Array(elements), Key::Index(at)) => {
                // A text has characters.
                if text_of(elements).is_some() {
                    return None;
                }
                elements.clone().nth(*at as usize).and_then(plain)
            }
            _ => return None,
        };
    }
    Some(field.map_or(Value::Undefined, scalar))
}

fn scalar(field: Field<'_>) -> Value<'_> {
    match field.value() {
        ModelValue::Bool(value) => Value::Bool(value),
        ModelValue::Unsigned(value) | ModelValue::Bits(value) => Value::integer(value.into()),
        ModelValue::Signed(value) => Value::integer(value.into()),
        ModelValue::Real(value) => Value::Number(value),
        ModelValue::Text(text) => Value::Text(text.to_str()),
        ModelValue::Array(elements) => {
            text_of(elements).map_or(Value::Object, |text| Value::Text(text.into()))
        }
        _ => Value::Object,
    }
}

/// The name of a field's value, where it has one.
pub fn label(field: Field<'_>) -> Option<&str> {
    let field = plain(field)?;
    let (FieldKind::Unsigned(class) | FieldKind::Signed(class)) = &field.class().kind else {
        return None;
    };
    let value: i128 = match field.value() {
        ModelValue::Unsigned(value) => value.into(),
        ModelValue::Signed(value) => value.into(),
        _ => return None,
    };
    let names = |label: &&lateralis_model::Label| label.ranges.iter().any(|r| r.contains(value));
    class.labels.iter().find(names).map(|label| label.name.as_str())
}
