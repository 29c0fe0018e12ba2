// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an expression of a filter means for the events of one class.

use std::borrow::Cow;
use std::cmp::Ordering;

use lateralis_model::{
    Encoding, Event, EventClass, FieldClass, FieldKind, IntegerClass, Label, StreamClass,
};

use super::{
    Answer, Depends, Integers, Leaf, Node, Number, Pair, Plan, Ranges, Reals, Relation, TextTest,
    Texts,
};
use crate::filter::eval::{
    COMMAND_FIELDS, Context, Found, PID_FIELDS, TID_FIELDS, compare, order, truth, truth_of,
};
use crate::filter::{Comparison, Expression, Filter, Known, Operand, Step};

/// Part of an expression.
#[derive(Debug, Clone)]
pub struct Question(Expression);

impl Leaf for Question {
    const MAY_ASK: bool = false;

    fn answer(&self, event: &Event<'_>, context: &Context<'_>) -> Answer {
        Answer::of(Some(truth(&self.0, event, context)))
    }
}

impl Filter {
    /// What it means for the events of one class.
    ///
    /// Cost: a walk over the class for each field that the expression names.
    #[must_use]
    pub fn plan(&self, stream_class: &StreamClass, class: &EventClass) -> Plan<Question> {
        Plan::new(Scopes { stream_class, class }.lower(&self.root))
    }
}

/// An integer of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// When it happened.
    Time,
    /// A column.
    Column(usize),
}

/// A step into a field.
#[derive(Debug, Clone, Copy)]
pub enum Way<'s> {
    /// To a field.
    Name(&'s str),
    /// To an element.
    Index,
}

/// Where steps into the fields of a class lead.
#[derive(Debug, Clone)]
pub enum Located<'t> {
    /// No event of the class has it: this step leads to a name that is not there.
    Missing(usize),
    /// A step leads into something that has no parts of that kind.
    Astray,
    /// To this column.
    Column(usize, &'t FieldClass),
    /// To fields.
    Struct,
    /// It takes an event to know; these columns tell it.
    Inside(Vec<usize>),
    /// Into the packet.
    Packet,
}

/// Where the fields of a class are looked for.
#[derive(Debug, Clone, Copy)]
pub struct Scopes<'t> {
    /// The class of the stream.
    pub stream_class: &'t StreamClass,
    /// The class.
    pub class: &'t EventClass,
}

/// Follows steps into the fields of a class: of the payload, else its context, else the
/// common context; else the packet, if `with_packet`.
#[must_use]
pub fn locate<'t>(of: &Scopes<'t>, with_packet: bool, steps: &[Way<'_>]) -> Located<'t> {
    let Some((Way::Name(first), _)) = steps.split_first() else { return Located::Astray };
    let common = of.stream_class.common_context.as_ref();
    let (own, payload) = (of.class.context.as_ref(), of.class.payload.as_ref());
    let after_common = common.map_or(0, leaf_count);
    let after_own = after_common + own.map_or(0, leaf_count);
    for (scope, base) in [(payload, after_own), (own, after_common), (common, 0)] {
        let Some(scope) = scope else { continue };
        if scope.members().iter().any(|member| member.name == *first) {
            return follow(scope, base, steps, 0);
        }
    }
    let packet = of.stream_class.packet_context.as_ref().filter(|_| with_packet);
    match packet.is_some_and(|packet| packet.members().iter().any(|m| m.name == *first)) {
        true => Located::Packet,
        false => Located::Missing(0),
    }
}

fn leaf_count(class: &FieldClass) -> usize {
    match &class.kind {
        FieldKind::Struct(members) => members.iter().map(|m| leaf_count(&m.class)).sum(),
        _ => 1,
    }
}

fn follow<'t>(class: &'t FieldClass, base: usize, steps: &[Way<'_>], done: usize) -> Located<'t> {
    match (&class.kind, steps.get(done)) {
        (FieldKind::Struct(_), None) => Located::Struct,
        (FieldKind::Struct(members), Some(Way::Name(name))) => {
            let mut base = base;
            for member in members {
                if member.name == *name {
                    return follow(&member.class, base, steps, done + 1);
                }
                base += leaf_count(&member.class);
            }
            Located::Missing(done)
        }
        (FieldKind::Optional(_) | FieldKind::Variant(_), _)
        | (FieldKind::Array { .. }, Some(Way::Index)) => Located::Inside(vec![base]),
        (_, None) => Located::Column(base, class),
        (_, Some(_)) => Located::Astray,
    }
}

/// One side of a comparison, as far as the class tells.
enum Bound<'e, 't> {
    Missing,
    Literal(Found<'e>),
    Whole(Whole, Kind<'t>),
    Real(usize),
    Text(usize),
    /// There, but neither number nor text.
    Other,
    Asked(Depends, Vec<usize>),
}

#[derive(Clone, Copy)]
struct Kind<'t> {
    is_signed: bool,
    /// Any number but 0 counts as 1.
    is_bool: bool,
    labels: &'t [Label],
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
            Bound::Other => Node::truth(true),
            Bound::Asked(depends, columns) => return Err((depends, columns)),
        })
    }

    /// `Err` with what an event is needed for.
    fn compare(
        &self,
        left: &Operand,
        comparison: Comparison,
        right: &Operand,
    ) -> Result<Node<Question>, (Depends, Vec<usize>)> {
        use Bound::{Asked, Literal, Missing, Other, Real, Text, Whole};
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
            // A number is no text, unless it has a label.
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

    fn bind<'e>(&self, operand: &'e Operand) -> Bound<'e, 't>
    where
        't: 'e,
    {
        match operand {
            Operand::Integer(value) => Bound::Literal(Found::Integer(*value)),
            Operand::Real(value) => Bound::Literal(Found::Real(*value)),
            Operand::Text(text) => Bound::Literal(Found::Text(Cow::Borrowed(text))),
            Operand::Known(known) => self.known(*known),
            Operand::Field(steps) => {
                let ways: Vec<Way<'_>> = steps
                    .iter()
                    .map(|step| match step {
                        Step::Member(name) => Way::Name(name),
                        Step::Element(_) => Way::Index,
                    })
                    .collect();
                match locate(self, true, &ways) {
                    Located::Missing(_) | Located::Astray => Bound::Missing,
                    Located::Struct => Bound::Other,
                    Located::Packet => Bound::Asked(Depends::PACKET, Vec::new()),
                    Located::Inside(columns) => Bound::Asked(Depends::FIELDS, columns),
                    Located::Column(column, class) => of_class(column, class),
                }
            }
        }
    }

    fn known<'e>(&self, known: Known) -> Bound<'e, 't>
    where
        't: 'e,
    {
        let name = self.class.name.as_str();
        match known {
            Known::Event => Bound::Literal(Found::Text(Cow::Borrowed(name))),
            Known::Subsystem => {
                let subsystem = name.split_once(':').map_or("", |(subsystem, _)| subsystem);
                Bound::Literal(Found::Text(Cow::Borrowed(subsystem)))
            }
            Known::Time => {
                Bound::Whole(Whole::Time, Kind { is_signed: true, is_bool: false, labels: &[] })
            }
            other => {
                let (depends, columns) = self.known_depends(other);
                Bound::Asked(depends, columns)
            }
        }
    }

    /// On what it depends what an event is told to be, and which columns may tell it.
    #[must_use]
    pub fn known_depends(&self, known: Known) -> (Depends, Vec<usize>) {
        let mut columns = Vec::new();
        let mut told = |names: &[&str]| {
            let before = columns.len();
            names.iter().for_each(|name| self.context_columns(name, &mut columns));
            columns.len() > before
        };
        let depends = match known {
            Known::Event | Known::Subsystem | Known::Stream => Depends::PACKET,
            Known::Time => Depends::FIELDS,
            Known::Cpu => Depends { on_own_cpu: told(&["cpu_id"]), ..Depends::PACKET },
            Known::Pid | Known::Tid => {
                let names = if known == Known::Pid { &PID_FIELDS } else { &TID_FIELDS };
                let on_own_writer = told(names);
                Depends { on_writer: true, on_own_writer, ..Depends::PACKET }
            }
            Known::Process | Known::Thread => {
                let names = if known == Known::Process { &PID_FIELDS } else { &TID_FIELDS };
                let on_own_writer = told(names);
                // Where the thread has no name, the event's own word for it counts.
                let on_fields = told(&COMMAND_FIELDS);
                Depends { on_writer: true, on_own_writer, on_fields, ..Depends::PACKET }
            }
        };
        (depends, columns)
    }

    /// Columns below a field of the contexts.
    fn context_columns(&self, name: &str, columns: &mut Vec<usize>) {
        let mut next = 0;
        let scopes = [&self.stream_class.common_context, &self.class.context];
        for member in scopes.into_iter().flatten().flat_map(FieldClass::members) {
            let count = leaf_count(&member.class);
            if member.name == name {
                columns.extend(next..next + count);
            }
            next += count;
        }
    }
}

/// The parts of a chain of one operator. Long ones lean to the left, deep as they are long.
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
    Node::Ask { leaf: Question(expression.clone()), depends, columns }
}

fn of_class<'e, 't: 'e>(column: usize, class: &'t FieldClass) -> Bound<'e, 't> {
    let whole = |is_signed, is_bool, labels| {
        Bound::Whole(Whole::Column(column), Kind { is_signed, is_bool, labels })
    };
    match &class.kind {
        FieldKind::Bool => whole(false, true, &[]),
        FieldKind::Unsigned(IntegerClass { labels, .. }) => whole(false, false, labels),
        FieldKind::Signed(IntegerClass { labels, .. }) => whole(true, false, labels),
        FieldKind::Bits { .. } => whole(false, false, &[]),
        FieldKind::Real(_) => Bound::Real(column),
        FieldKind::Text(Encoding::Utf8) => Bound::Text(column),
        FieldKind::Bytes(_) | FieldKind::Struct(_) => Bound::Other,
        FieldKind::Text(_)
        | FieldKind::Array { .. }
        | FieldKind::Variant(_)
        | FieldKind::Optional(_) => Bound::Asked(Depends::FIELDS, vec![column]),
    }
}

/// What an event is needed for to know this side.
fn asked(bound: &Bound<'_, '_>) -> (Depends, Vec<usize>) {
    match bound {
        Bound::Missing | Bound::Literal(_) | Bound::Other => (Depends::PACKET, Vec::new()),
        Bound::Whole(Whole::Time, _) => (Depends::FIELDS, Vec::new()),
        Bound::Whole(Whole::Column(column), _) | Bound::Real(column) | Bound::Text(column) => {
            (Depends::FIELDS, vec![*column])
        }
        Bound::Asked(depends, columns) => (*depends, columns.clone()),
    }
}

fn number(bound: &Bound<'_, '_>) -> Option<Number> {
    match bound {
        Bound::Whole(whole, _) => Some((*whole).into()),
        Bound::Real(column) => Some(Number::Column(*column)),
        _ => None,
    }
}

fn integers(whole: Whole, set: &Ranges) -> Node<Question> {
    match set.constant() {
        Some(all) => Node::truth(all),
        None => Node::Integers(whole, Integers::of(set)),
    }
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

/// The integers that are to a literal as told: by their labels to a text, else as numbers.
/// `holds` says it of one with a label. `None` if there are too many labels.
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
