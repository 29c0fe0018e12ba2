// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles filter expressions for the events of one class.

use std::cmp::Ordering;

use lateralis_model::{Event, EventClass, StreamClass};

use super::locate::{Scopes, Whole};
use super::sides::{Bound, Kind, asked, number};
use super::{
    Answer, Depends, Element, ElementTest, Integers, Leaf, Node, Pair, Plan, Ranges, Reals,
    Relation, TextTest, Texts,
};
use crate::filter::eval::{Context, Found, compare, order, truth, truth_of};
use crate::filter::{Comparison, Expression, Filter, Operand};

/// Part of a filter expression.
#[derive(Debug, Clone)]
pub struct Question(Expression);

impl Leaf for Question {
    const MAY_ASK: bool = false;

    fn answer(&self, event: &Event<'_>, context: &Context<'_>) -> Answer {
        Answer::of(Some(truth(&self.0, event, context)))
    }
}

impl Filter {
    /// Compiles the filter for the events of one class.
    ///
    /// Cost: a walk over the class for each field in the expression.
    #[must_use]
    pub fn plan(&self, stream_class: &StreamClass, class: &EventClass) -> Plan<Question> {
        Plan::new(Scopes { stream_class, class }.lower(&self.root))
    }
}

impl<'t> Scopes<'t> {
    fn lower(&self, expression: &Expression) -> Node<Question> {
        match expression {
            Expression::And(..) => {
                let parts = chain(expression, |e| match e {
                    Expression::And(left, right) => Some((left, right)),
                    _ => None,
                });
                Node::all(parts.into_iter().map(|part| self.lower(part)))
            }
            Expression::Or(..) => {
                let parts = chain(expression, |e| match e {
                    Expression::Or(left, right) => Some((left, right)),
                    _ => None,
                });
                Node::any(parts.into_iter().map(|part| self.lower(part)))
            }
            Expression::Not(inner) => self.lower(inner).negated(),
            Expression::Truth(operand) => {
                let node = self.truth(operand);
                node.unwrap_or_else(|(depends, columns)| question(expression, depends, columns))
            }
            Expression::Compare(left, comparison, right) => {
                let node = self.compare(left, *comparison, right);
                node.unwrap_or_else(|(depends, columns)| question(expression, depends, columns))
            }
        }
    }

    fn truth(&self, operand: &Operand) -> Result<Node<Question>, (Depends, Vec<usize>)> {
        Ok(match self.bind(operand) {
            Bound::Missing => Node::truth(false),
            Bound::Literal(found) => Node::truth(truth_of(&found)),
            Bound::Whole(whole, kind) => {
                let zero = Ranges::of(kind.is_signed, [(0, 0)]);
                integers(whole, &zero.complement())
            }
            Bound::Real(column) => {
                Node::Reals(column, Reals { relation: Relation::NotEqual, constant: 0.0 })
            }
            Bound::Text(column) => match Texts::of(TextTest::IsSome) {
                Some(texts) => Node::Text(column, texts),
                None => return Err((Depends::FIELDS, vec![column])),
            },
            Bound::Element(of, kind) => {
                element(of, &Ranges::of(kind.is_signed, [(0, 0)]).complement())
            }
            Bound::Other => Node::truth(true),
            Bound::Asked(depends, columns) => return Err((depends, columns)),
        })
    }

    /// `Err` with what the event is needed for.
    fn compare(
        &self,
        left: &Operand,
        comparison: Comparison,
        right: &Operand,
    ) -> Result<Node<Question>, (Depends, Vec<usize>)> {
        use Bound::{Asked, Element, Literal, Missing, Other, Real, Text, Whole};
        let is_pattern = matches!(comparison, Comparison::Matches | Comparison::MatchesNot);
        let relation = relation(comparison);
        Ok(match (self.bind(left), self.bind(right)) {
            (Missing | Other, _) | (_, Missing | Other) => Node::truth(false),
            (Asked(left, mut columns), right) => {
                let (right, more) = asked(&right);
                columns.extend(more);
                return Err((left.and(right), columns));
            }
            (left, Asked(right, mut columns)) => {
                let (left, more) = asked(&left);
                columns.extend(more);
                return Err((left.and(right), columns));
            }
            (Literal(left), Literal(right)) => Node::truth(compare(&left, comparison, &right)),
            (Whole(whole, kind), Literal(literal)) => {
                let holds = |label: &Found<'_>| compare(label, comparison, &literal);
                set(kind, &literal, relation, &holds)
                    .map(|set| integers(whole, &set))
                    .ok_or_else(|| asked(&Whole(whole, kind)))?
            }
            (Literal(literal), Whole(whole, kind)) => {
                let holds = |label: &Found<'_>| compare(&literal, comparison, label);
                let relation = relation.map(Relation::turned);
                set(kind, &literal, relation, &holds)
                    .map(|set| integers(whole, &set))
                    .ok_or_else(|| asked(&Whole(whole, kind)))?
            }
            (Element(of, kind), Literal(literal)) => {
                let holds = |label: &Found<'_>| compare(label, comparison, &literal);
                set(kind, &literal, relation, &holds)
                    .map(|set| element(of, &set))
                    .ok_or_else(|| asked(&Element(of, kind)))?
            }
            (Literal(literal), Element(of, kind)) => {
                let holds = |label: &Found<'_>| compare(&literal, comparison, label);
                let relation = relation.map(Relation::turned);
                set(kind, &literal, relation, &holds)
                    .map(|set| element(of, &set))
                    .ok_or_else(|| asked(&Element(of, kind)))?
            }
            (left @ Element(..), right) | (left, right @ Element(..)) => {
                let ((depends, mut columns), (_, more)) = (asked(&left), asked(&right));
                columns.extend(more);
                return Err((depends.and(Depends::FIELDS), columns));
            }
            (Real(column), Literal(literal)) => real(column, relation, &literal),
            (Literal(literal), Real(column)) => {
                real(column, relation.map(Relation::turned), &literal)
            }
            (Text(column), Literal(Found::Text(text))) => {
                let test = match comparison {
                    Comparison::Equal | Comparison::NotEqual => TextTest::Is(text.into_owned()),
                    Comparison::Matches | Comparison::MatchesNot => TextTest::pattern(&text),
                    _ => return Err((Depends::FIELDS, vec![column])),
                };
                let texts = Texts::of(test).ok_or((Depends::FIELDS, vec![column]))?;
                let node = Node::Text(column, texts);
                match comparison {
                    Comparison::NotEqual | Comparison::MatchesNot => node.negated(),
                    _ => node,
                }
            }
            (Literal(Found::Text(text)), Text(column)) => {
                let ask = (Depends::FIELDS, vec![column]);
                let is_other = matches!(comparison, Comparison::NotEqual);
                if !matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
                    return Err(ask);
                }
                let texts = Texts::of(TextTest::Is(text.into_owned())).ok_or(ask)?;
                let node = Node::Text(column, texts);
                if is_other { node.negated() } else { node }
            }
            // A number is not a text, unless it has a label.
            (Text(_), Literal(_) | Real(_)) | (Literal(_) | Real(_), Text(_)) => Node::truth(false),
            (Text(column), Whole(whole, kind)) | (Whole(whole, kind), Text(column)) => {
                if kind.labels.is_empty() {
                    return Ok(Node::truth(false));
                }
                let (depends, mut columns) = asked(&Whole(whole, kind));
                columns.push(column);
                return Err((depends, columns));
            }
            (Text(left), Text(right)) => return Err((Depends::FIELDS, vec![left, right])),
            (left @ Whole(_, a), right @ Whole(_, b))
                if (!a.labels.is_empty() && !b.labels.is_empty()) || a.is_bool || b.is_bool =>
            {
                let ((depends, mut columns), (_, more)) = (asked(&left), asked(&right));
                columns.extend(more);
                return Err((depends, columns));
            }
            (Whole(_, kind), Real(column)) | (Real(column), Whole(_, kind)) if kind.is_bool => {
                let (_, mut columns) = asked(&self.bind(left));
                columns.extend(asked(&self.bind(right)).1);
                columns.push(column);
                return Err((Depends::FIELDS, columns));
            }
            _ if is_pattern => Node::truth(false),
            (left, right) => match (number(&left), relation, number(&right)) {
                (Some(left), Some(relation), Some(right)) => {
                    Node::Pair(Pair { left, relation, right })
                }
                _ => Node::truth(false),
            },
        })
    }
}

/// Operands of a chain of one operator. Long chains are left-deep trees.
fn chain(
    whole: &Expression,
    sides: fn(&Expression) -> Option<(&Expression, &Expression)>,
) -> Vec<&Expression> {
    let (mut at, mut parts) = (whole, Vec::new());
    while let Some((left, right)) = sides(at) {
        parts.push(right);
        at = left;
    }
    parts.push(at);
    parts.reverse();
    parts
}

fn question(expression: &Expression, depends: Depends, columns: Vec<usize>) -> Node<Question> {
    Node::Ask { leaf: Question(expression.clone()), depends, columns, computed: None }
}

fn integers(whole: Whole, set: &Ranges) -> Node<Question> {
    match set.constant() {
        Some(all) => Node::truth(all),
        None => Node::Integers(whole, Integers::of(set)),
    }
}

/// An array without the element fails every test of it.
fn element(element: Element, set: &Ranges) -> Node<Question> {
    let set = Integers::of(set);
    Node::Element(ElementTest { element, set, absent: Answer::No, empty: Answer::No })
}

/// `None` for patterns.
fn relation(comparison: Comparison) -> Option<Relation> {
    Some(match comparison {
        Comparison::Equal => Relation::Equal,
        Comparison::NotEqual => Relation::Unlike,
        Comparison::Less => Relation::Less,
        Comparison::LessOrEqual => Relation::LessOrEqual,
        Comparison::Greater => Relation::Greater,
        Comparison::GreaterOrEqual => Relation::GreaterOrEqual,
        Comparison::Matches | Comparison::MatchesNot => return None,
    })
}

fn real(column: usize, relation: Option<Relation>, literal: &Found<'_>) -> Node<Question> {
    let constant = match literal {
        Found::Integer(value) | Found::Labelled(value, _) => *value as f64,
        Found::Real(value) => *value,
        Found::Text(_) | Found::Other => return Node::truth(false),
    };
    match relation {
        Some(relation) => Node::Reals(column, Reals { relation, constant }),
        None => Node::truth(false),
    }
}

/// Integers that satisfy a comparison with a literal: by label for a text, otherwise as numbers. `holds`
/// tests one with a label. `None` if there are too many labels.
fn set(
    kind: Kind<'_>,
    literal: &Found<'_>,
    relation: Option<Relation>,
    holds: &dyn Fn(&Found<'_>) -> bool,
) -> Option<Ranges> {
    if let Found::Text(_) = literal {
        return Ranges::by_label(kind.is_signed, kind.labels, |label| {
            Some(label.is_some_and(|label| holds(&Found::Labelled(0, label))))
        });
    }
    let Some(relation) = relation else {
        return Some(Ranges::none(kind.is_signed));
    };
    let to_literal = |value: i128| order(&Found::Integer(value), literal);
    if kind.is_bool {
        let is_in = |value| relation.holds(to_literal(value));
        let zero = is_in(0).then_some((0, 0));
        let others = is_in(1).then_some((1, i128::from(u64::MAX)));
        return Some(Ranges::of(false, zero.into_iter().chain(others)));
    }
    Some(Ranges::ordered(kind.is_signed, to_literal, |order: Ordering| relation.holds(Some(order))))
}
