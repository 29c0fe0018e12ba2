// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operands of a comparison, as far as the class of an event determines them.

use std::borrow::Cow;

use lateralis_model::role::PHASE;
use lateralis_model::{Encoding, FieldClass, FieldKind, IntegerClass, Label, subsystem_and_event};

use super::locate::{Located, Scopes, Way, Whole, locate};
use super::{Depends, Element, Number, element_labels};
use crate::filter::eval::Found;
use crate::filter::{Known, Operand, Step};

/// An operand.
pub(super) enum Bound<'e, 't> {
    Missing,
    Literal(Found<'e>),
    Whole(Whole, Kind<'t>),
    Real(usize),
    Text(usize),
    Element(Element, Kind<'t>),
    /// Present, but neither number nor text.
    Other,
    Asked(Depends, Vec<usize>),
}

#[derive(Clone, Copy)]
pub(super) struct Kind<'t> {
    pub is_signed: bool,
    /// Any number but 0 counts as 1.
    pub is_bool: bool,
    pub labels: &'t [Label],
}

impl<'t> Scopes<'t> {
    /// Resolves an operand for the class.
    pub(super) fn bind<'e>(&self, operand: &'e Operand) -> Bound<'e, 't>
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
                    Located::Element(column, class) => {
                        let Some(Step::Element(index)) = steps.last() else {
                            return Bound::Asked(Depends::FIELDS, vec![column]);
                        };
                        let (is_signed, labels) = element_labels(class);
                        match Element::of(column, class, *index) {
                            Some(element) => {
                                Bound::Element(element, Kind { is_signed, is_bool: false, labels })
                            }
                            None => Bound::Asked(Depends::FIELDS, vec![column]),
                        }
                    }
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
                let (subsystem, _) = subsystem_and_event(name);
                Bound::Literal(Found::Text(Cow::Borrowed(subsystem)))
            }
            Known::Phase if self.class.attribute(PHASE).is_some() => {
                let phase = self.class.attribute(PHASE).unwrap_or_default();
                Bound::Literal(Found::Text(Cow::Borrowed(phase)))
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

/// What the event is needed for to evaluate an operand.
pub(super) fn asked(bound: &Bound<'_, '_>) -> (Depends, Vec<usize>) {
    match bound {
        Bound::Missing | Bound::Literal(_) | Bound::Other => (Depends::PACKET, Vec::new()),
        Bound::Whole(Whole::Time, _) => (Depends::FIELDS, Vec::new()),
        Bound::Whole(Whole::Column(column), _) | Bound::Real(column) | Bound::Text(column) => {
            (Depends::FIELDS, vec![*column])
        }
        Bound::Element(element, _) => (Depends::FIELDS, vec![element.column]),
        Bound::Asked(depends, columns) => (*depends, columns.clone()),
    }
}

/// The operand as a number.
pub(super) fn number(bound: &Bound<'_, '_>) -> Option<Number> {
    match bound {
        Bound::Whole(whole, _) => Some((*whole).into()),
        Bound::Real(column) => Some(Number::Column(*column)),
        _ => None,
    }
}
