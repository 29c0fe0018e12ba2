// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arithmetic of an expression, as formulas over columns.

use lateralis_analysis::filter::columns::{Computed, Formula, Whole};

use super::classes::{Bound, Kind, OfClass};
use super::constants::relation;
use super::value::{Binary, Value};
use super::{Node, Unary};

impl<'e, 't: 'e> OfClass<'e, 't> {
    /// Compares numbers of which one at least is computed.
    pub(super) fn computed(
        &self,
        operator: Binary,
        left: &'e Node,
        right: &'e Node,
    ) -> Option<Computed> {
        let side = |node: &'e Node| match node {
            // Others are not compared as the Numbers that operators see.
            Node::Constant(value) => {
                matches!(value, Value::Number(_)).then(|| self.formula(node)).flatten()
            }
            Node::Path(_) => match self.bind(node) {
                Bound::Real(_) | Bound::Whole(_, Kind::Unsigned | Kind::Signed) => {
                    self.formula(node)
                }
                _ => None,
            },
            _ => self.formula(node),
        };
        Some(Computed { left: side(left)?, relation: relation(operator)?, right: side(right)? })
    }

    /// A number computed of columns; `None` where it may be no Number.
    pub(super) fn formula(&self, node: &'e Node) -> Option<Formula> {
        let of = |node: &'e Node| self.formula(node).map(Box::new);
        Some(match node {
            Node::Constant(_) | Node::Path(_) => match self.bind(node) {
                Bound::Constant(value) => Formula::Constant(value.as_double()?),
                Bound::Whole(Whole::Column(column), Kind::Bool) => Formula::Truth(column),
                Bound::Whole(Whole::Column(column), Kind::Unsigned | Kind::Signed)
                | Bound::Real(column) => Formula::Column(column),
                Bound::Whole(..)
                | Bound::Text(_)
                | Bound::Element(..)
                | Bound::Label(..)
                | Bound::Asked => return None,
            },
            Node::Unary(Unary::Negate, inner) => Formula::Negated(of(inner)?),
            Node::Unary(Unary::Invert, inner) => Formula::Inverted(of(inner)?),
            Node::Unary(Unary::Plus, inner) => self.formula(inner)?,
            Node::Binary(operator, left, right) => {
                Formula::Of(operator.arithmetic()?, of(left)?, of(right)?)
            }
            _ => return None,
        })
    }
}
