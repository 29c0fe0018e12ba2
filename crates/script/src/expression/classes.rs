// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an expression means for the events of one class: the form that filters have as well
//! ([`lateralis_analysis::filter::columns`]), asked of many events at once.
//!
//! A comparison of a column of integers with a constant is a range test, independently of
//! JavaScript's types: Numbers and BigInts compare as mathematical values. Arithmetic uses Numbers;
//! events with an integer that is not exact as a Number are evaluated by row, as are values that no
//! column contains.

use lateralis_analysis::filter::columns::{
    Answer, Computed, Depends, Element, ElementTest, Formula, Integers, Leaf, Located,
    Node as Columns, Number, Pair, Plan, Ranges, Reals, Relation, Scopes, TextTest, Texts, Way,
    Whole, locate,
};
use lateralis_analysis::filter::{Context, Known};
use lateralis_model::{
    Encoding, Event, EventClass, FieldClass, FieldKind, Label, StreamClass, subsystem_and_event,
};

use super::constants::{relation, turned, with};
use super::row::{EventRow, absent, evaluate};
use super::value::{Binary, Value};
use super::{Expression, Key, Node, Path, TextTest as Test};

/// Part of an expression.
#[derive(Debug, Clone)]
pub struct Piece {
    node: Node,
    paths: Vec<Path>,
}

impl Leaf for Piece {
    const MAY_ASK: bool = true;

    fn answer(&self, event: &Event<'_>, context: &Context<'_>) -> Answer {
        let row = EventRow { event, context };
        let value = evaluate(&self.node, &self.paths, &row);
        Answer::of(value.map(|value| value.is_true()))
    }
}

impl Expression {
    /// What it means for the events of one class.
    ///
    /// Cost: a walk over the class for each path.
    #[must_use]
    pub fn plan(&self, stream_class: &StreamClass, class: &EventClass) -> Plan<Piece> {
        Plan::new(self.node(stream_class, class))
    }

    /// The same, to be put together with others.
    #[must_use]
    pub fn node(&self, stream_class: &StreamClass, class: &EventClass) -> Columns<Piece> {
        let of_class = OfClass { expression: self, scopes: Scopes { stream_class, class } };
        of_class.lower(&self.root)
    }
}

pub(super) struct OfClass<'e, 't> {
    expression: &'e Expression,
    scopes: Scopes<'t>,
}

/// What a class determines about a value.
pub(super) enum Bound<'e, 't> {
    Constant(Value<'e>),
    Whole(Whole, Kind),
    Real(usize),
    Text(usize),
    /// An integer in an array of those that are no text.
    Element(Element, Kind),
    /// The name of the integer of a column, if it has one.
    Label(usize, bool, &'t [Label]),
    Asked,
}

/// How the integers of a column are seen by a script.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Yes or no.
    Bool,
    /// Numbers ≥ 0, and BigInts where a Number is not exact.
    Unsigned,
    /// The same, below 0 as well.
    Signed,
    /// BigInts.
    Big,
}

impl Kind {
    pub(super) fn is_signed(self) -> bool {
        matches!(self, Self::Signed | Self::Big)
    }
}

impl<'e, 't: 'e> OfClass<'e, 't> {
    fn lower(&self, node: &'e Node) -> Columns<Piece> {
        match node {
            Node::Constant(value) => Columns::truth(value.is_true()),
            Node::Not(inner) => self.lower(inner).negated(),
            Node::And(left, right) => Columns::all([self.lower(left), self.lower(right)]),
            Node::Or(left, right) => Columns::any([self.lower(left), self.lower(right)]),
            Node::Path(_) => self.truth(node).unwrap_or_else(|| self.ask(node, None)),
            Node::Binary(operator, left, right) if operator.compares() => {
                let by_columns = self.compare(*operator, left, right);
                let computed = || self.computed(*operator, left, right);
                by_columns.unwrap_or_else(|| self.ask(node, computed()))
            }
            Node::Text(test, value, text, _) => {
                self.text(*test, value, text).unwrap_or_else(|| self.ask(node, None))
            }
            // 0 and NaN are not true.
            _ => self.ask(
                node,
                self.formula(node).map(|left| Computed {
                    left,
                    relation: Relation::Unlike,
                    right: Formula::Constant(0.0),
                }),
            ),
        }
    }

    fn ask(&self, node: &Node, computed: Option<Computed>) -> Columns<Piece> {
        let (mut depends, mut columns) = (Depends::PACKET, Vec::new());
        self.depends(node, &mut depends, &mut columns);
        let leaf = Piece { node: node.clone(), paths: self.expression.paths.clone() };
        Columns::Ask { leaf, depends, columns, computed }
    }

    fn depends(&self, node: &Node, depends: &mut Depends, columns: &mut Vec<usize>) {
        let mut on = |node: &Node| self.depends(node, depends, columns);
        match node {
            Node::Constant(_) => {}
            Node::Path(index) => match &self.expression.paths[*index] {
                Path::Known(known) => {
                    let (of_known, more) = self.scopes.known_depends(*known);
                    *depends = depends.and(of_known);
                    columns.extend(more);
                }
                path => match self.locate(path) {
                    Located::Missing(_) | Located::Astray | Located::Struct => {}
                    Located::Packet => {}
                    Located::Column(column, _) => {
                        *depends = depends.and(Depends::FIELDS);
                        columns.push(column);
                    }
                    Located::Element(column, _) => {
                        *depends = depends.and(Depends::FIELDS);
                        columns.push(column);
                    }
                    Located::Inside(more) => {
                        *depends = depends.and(Depends::FIELDS);
                        columns.extend(more);
                    }
                },
            },
            Node::Not(inner) | Node::Unary(_, inner) | Node::Text(_, inner, ..) => on(inner),
            Node::And(left, right)
            | Node::Or(left, right)
            | Node::Nullish(left, right)
            | Node::Binary(_, left, right) => {
                on(left);
                on(right);
            }
            Node::Choose(condition, yes, no) => {
                on(condition);
                on(yes);
                on(no);
            }
        }
    }

    fn locate(&self, path: &Path) -> Located<'t> {
        match path {
            Path::Known(_) => Located::Astray,
            Path::Label(name) => locate(&self.scopes, false, &[Way::Name(name)]),
            Path::Field(steps) => {
                let way = |step: &'_ super::Step| match &step.key {
                    Key::Name(name) => Some(name.clone()),
                    Key::Index(_) => None,
                };
                let names: Vec<Option<String>> = steps.iter().map(way).collect();
                let ways: Vec<Way<'_>> = names
                    .iter()
                    .map(|name| name.as_deref().map_or(Way::Index, Way::Name))
                    .collect();
                locate(&self.scopes, false, &ways)
            }
        }
    }

    pub(super) fn bind(&self, node: &'e Node) -> Bound<'e, 't> {
        let path = match node {
            Node::Constant(value) => return Bound::Constant(value.borrowed()),
            Node::Path(index) => &self.expression.paths[*index],
            _ => return Bound::Asked,
        };
        match path {
            Path::Known(Known::Event) => {
                Bound::Constant(Value::Text(self.scopes.class.name.as_str().into()))
            }
            Path::Known(Known::Subsystem) => {
                let name = self.scopes.class.name.as_str();
                let (subsystem, _) = subsystem_and_event(name);
                Bound::Constant(Value::Text(subsystem.into()))
            }
            Path::Known(Known::Time) => Bound::Whole(Whole::Time, Kind::Big),
            Path::Known(_) => Bound::Asked,
            Path::Label(_) => match self.locate(path) {
                Located::Missing(_) | Located::Struct => Bound::Constant(Value::Undefined),
                Located::Column(column, class) => match &class.kind {
                    FieldKind::Unsigned(class) => Bound::Label(column, false, &class.labels),
                    FieldKind::Signed(class) => Bound::Label(column, true, &class.labels),
                    FieldKind::Variant(_) | FieldKind::Optional(_) => Bound::Asked,
                    _ => Bound::Constant(Value::Undefined),
                },
                Located::Astray | Located::Element(..) | Located::Inside(_) | Located::Packet => {
                    Bound::Asked
                }
            },
            Path::Field(steps) => match self.locate(path) {
                Located::Missing(at) => match absent(steps.get(at + 1..).unwrap_or(&[])) {
                    Some(value) => Bound::Constant(value),
                    None => Bound::Asked,
                },
                Located::Column(column, class) => match &class.kind {
                    FieldKind::Bool => Bound::Whole(Whole::Column(column), Kind::Bool),
                    FieldKind::Unsigned(_) | FieldKind::Bits { .. } => {
                        Bound::Whole(Whole::Column(column), Kind::Unsigned)
                    }
                    FieldKind::Signed(_) => Bound::Whole(Whole::Column(column), Kind::Signed),
                    FieldKind::Real(_) => Bound::Real(column),
                    FieldKind::Text(Encoding::Utf8) => Bound::Text(column),
                    _ => Bound::Asked,
                },
                Located::Element(column, class) => match steps.last().map(|step| &step.key) {
                    Some(Key::Index(index)) => element(column, class, *index as usize),
                    _ => Bound::Asked,
                },
                Located::Struct | Located::Astray | Located::Inside(_) | Located::Packet => {
                    Bound::Asked
                }
            },
        }
    }

    /// Whether a value counts as true; `None` where events must be asked.
    fn truth(&self, node: &'e Node) -> Option<Columns<Piece>> {
        Some(match self.bind(node) {
            Bound::Constant(value) => Columns::truth(value.is_true()),
            Bound::Whole(whole, kind) => {
                integers(whole, &Ranges::of(kind.is_signed(), [(0, 0)]).complement())
            }
            // NaN is not true.
            Bound::Real(column) => {
                Columns::Reals(column, Reals { relation: Relation::Unlike, constant: 0.0 })
            }
            Bound::Text(column) => Columns::Text(column, Texts::of(TextTest::IsSome)?),
            Bound::Label(column, is_signed, labels) => {
                let is_true = |label: Option<&str>| Some(label.is_some_and(|l| !l.is_empty()));
                integers(Whole::Column(column), &Ranges::by_label(is_signed, labels, is_true)?)
            }
            Bound::Element(element, kind) => Columns::Element(ElementTest {
                element,
                set: Integers::of(&Ranges::of(kind.is_signed(), [(0, 0)]).complement()),
                absent: Answer::No,
                empty: Answer::Ask,
            }),
            Bound::Asked => return None,
        })
    }

    fn compare(&self, operator: Binary, left: &'e Node, right: &'e Node) -> Option<Columns<Piece>> {
        let (left, right) = (self.bind(left), self.bind(right));
        match (left, right) {
            (Bound::Constant(left), Bound::Constant(right)) => {
                Some(Columns::truth(operator.apply(&left, &right)?.is_true()))
            }
            (Bound::Constant(constant), other) => with(turned(operator), &other, &constant),
            (other, Bound::Constant(constant)) => with(operator, &other, &constant),
            (Bound::Real(left), Bound::Real(right)) => Some(Columns::Pair(Pair {
                left: Number::Column(left),
                relation: relation(operator)?,
                right: Number::Column(right),
            })),
            (Bound::Whole(left, a), Bound::Whole(right, b)) => {
                let has_bool = a == Kind::Bool || b == Kind::Bool;
                // The same integer of two kinds may be a BigInt here and a Number there.
                let is_strict = matches!(operator, Binary::Same | Binary::NotSame);
                let differ = (a == Kind::Big) != (b == Kind::Big);
                if has_bool || is_strict && differ {
                    return None;
                }
                let (left, relation, right) = (left.into(), relation(operator)?, right.into());
                Some(Columns::Pair(Pair { left, relation, right }))
            }
            _ => None,
        }
    }

    fn text(&self, test: Test, value: &'e Node, text: &str) -> Option<Columns<Piece>> {
        match self.bind(value) {
            Bound::Text(column) => {
                let text = text.to_owned();
                let texts = Texts::of(match test {
                    Test::StartsWith => TextTest::Begins(text),
                    Test::EndsWith => TextTest::Ends(text),
                    Test::Includes => TextTest::Has(text),
                })?;
                Some(Columns::Text(column, texts))
            }
            Bound::Constant(Value::Text(value)) => Some(Columns::truth(match test {
                Test::StartsWith => value.starts_with(text),
                Test::EndsWith => value.ends_with(text),
                Test::Includes => value.contains(text),
            })),
            _ => None,
        }
    }
}

fn element<'e, 't>(column: usize, array: &'t FieldClass, index: usize) -> Bound<'e, 't> {
    let of = match &array.kind {
        FieldKind::Array { element, .. } => match &element.kind {
            // Characters.
            FieldKind::Unsigned(class) if class.bits == 8 => None,
            FieldKind::Unsigned(_) => Some(Kind::Unsigned),
            FieldKind::Signed(_) => Some(Kind::Signed),
            _ => None,
        },
        _ => None,
    };
    let element = Element::of(column, array, index);
    of.zip(element).map_or(Bound::Asked, |(kind, element)| Bound::Element(element, kind))
}

pub(super) fn integers(whole: Whole, set: &Ranges) -> Columns<Piece> {
    match set.constant() {
        Some(all) => Columns::truth(all),
        None => Columns::Integers(whole, Integers::of(set)),
    }
}
