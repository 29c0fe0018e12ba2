// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evaluates expressions on columns: the columns of a class in, one bit per event out.
//!
//! ```text
//! Filter, or a compiled script ─ once per class ─► Node ─ Plan ─► want   what to decode
//!                                                              └► select one bit per event
//! ```
//!
//! Everything that is the same for all events of a class is decided when the plan is made: the class
//! name, a field that it does not have. So a class that cannot match is a constant, and need not be
//! decoded. The rest are tests of single columns, each a pass over a slice, and [`Node::Ask`]: parts that
//! need the event. Those that depend only on the packet or the thread are evaluated once per packet or
//! thread, not once per event.
//!
//! The results equal those for single events: [`Filter::matches`](super::Filter::matches).

mod blocks;
mod elements;
mod formula;
mod integers;
mod locate;
mod mask;
mod numbers;
mod of_filter;
mod part;
mod ranges;
mod sides;
mod slices;
mod texts;
mod words;

use std::collections::HashMap;

use lateralis_model::{Event, Want};

use super::Context;

pub use blocks::Asking;
pub use elements::{Element, ElementTest, element_labels};
pub use formula::{Arithmetic, Computed, Formula, SAFE_MAX, to_int32};
pub use integers::Integers;
pub use locate::{Located, Scopes, Way, Whole, locate};
pub use mask::Mask;
pub use numbers::{Number, Pair, Reals, Relation};
pub use of_filter::Question;
pub use part::{Part, Parts};
pub use ranges::Ranges;
pub use slices::Slices;
pub use texts::{TextTest, Texts};

/// Result of an expression for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// No.
    No,
    /// Yes.
    Yes,
    /// Undecided: the script engine must decide.
    Ask,
}

impl Answer {
    /// Yes for true, no for false, ask for `None`.
    #[must_use]
    pub fn of(value: Option<bool>) -> Self {
        match value {
            Some(false) => Self::No,
            Some(true) => Self::Yes,
            None => Self::Ask,
        }
    }

    /// Logical negation.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Yes => Self::No,
            Self::Ask => Self::Ask,
        }
    }
}

/// A part of an expression in its own language.
pub trait Leaf {
    /// Whether [`Answer::Ask`] is a possible result.
    const MAY_ASK: bool;

    /// Evaluates it on an event.
    fn answer(&self, event: &Event<'_>, context: &Context<'_>) -> Answer;
}

/// Properties of an event that a result depends on, besides its class and its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depends {
    /// Its own fields, or its time.
    pub on_fields: bool,
    /// Its CPU, taken from the event if the packet does not have it.
    pub on_own_cpu: bool,
    /// The thread that wrote it.
    pub on_writer: bool,
    /// Its thread, taken from the event if the stream does not have it.
    pub on_own_writer: bool,
}

impl Depends {
    /// None of them.
    pub const PACKET: Self =
        Self { on_fields: false, on_own_cpu: false, on_writer: false, on_own_writer: false };
    /// Its fields only.
    pub const FIELDS: Self = Self { on_fields: true, ..Self::PACKET };

    /// Union of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            on_fields: self.on_fields | other.on_fields,
            on_own_cpu: self.on_own_cpu | other.on_own_cpu,
            on_writer: self.on_writer | other.on_writer,
            on_own_writer: self.on_own_writer | other.on_own_writer,
        }
    }
}

/// An expression on the events of one class. Columns are numbered as by
/// [`leaves`](lateralis_model::leaves).
#[derive(Debug, Clone)]
pub enum Node<L> {
    /// The same result for all events.
    Constant(Answer),
    /// Negation.
    Not(Box<Node<L>>),
    /// The first operand that is not yes, else yes.
    And(Vec<Node<L>>),
    /// The first operand that is not no, else no.
    Or(Vec<Node<L>>),
    /// Whether an integer is in a set.
    Integers(Whole, Integers),
    /// Test of a floating point number.
    Reals(usize, Reals),
    /// Test of a text.
    Text(usize, Texts),
    /// Test of an array element.
    Element(ElementTest),
    /// Comparison of two numbers of an event.
    Pair(Pair),
    /// A part that needs the event, with the columns that it needs.
    Ask {
        /// The expression.
        leaf: L,
        /// Dependencies of the result.
        depends: Depends,
        /// Columns that it reads.
        columns: Vec<usize>,
        /// A computation that decides most events without evaluating the leaf.
        computed: Option<Computed>,
    },
}

impl<L: Leaf> Node<L> {
    /// The same result for all events.
    #[must_use]
    pub fn truth(value: bool) -> Self {
        Self::Constant(Answer::of(Some(value)))
    }

    /// Negation.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Constant(answer) => Self::Constant(answer.opposite()),
            Self::Not(inner) => *inner,
            Self::Integers(whole, set) => {
                Self::Integers(whole, Integers::of(&set.set().complement()))
            }
            other => Self::Not(Box::new(other)),
        }
    }

    /// The first operand that is not yes, else yes.
    #[must_use]
    pub fn all(nodes: impl IntoIterator<Item = Self>) -> Self {
        Self::chain(nodes, Answer::Yes, Self::And)
    }

    /// The first operand that is not no, else no.
    #[must_use]
    pub fn any(nodes: impl IntoIterator<Item = Self>) -> Self {
        Self::chain(nodes, Answer::No, Self::Or)
    }

    fn chain(
        nodes: impl IntoIterator<Item = Self>,
        goes_on: Answer,
        make: fn(Vec<Self>) -> Self,
    ) -> Self {
        let mut kept: Vec<Self> = Vec::new();
        let flat = nodes.into_iter().flat_map(|node| match (node, goes_on) {
            (Self::And(inner), Answer::Yes) | (Self::Or(inner), Answer::No) => inner,
            (node, _) => vec![node],
        });
        for node in flat {
            match node {
                Self::Constant(answer) if answer == goes_on => {}
                Self::Constant(answer) => {
                    // The nodes before it cannot decide without asking.
                    if answer != Answer::Ask && !kept.iter().any(Self::may_ask) {
                        return Self::Constant(answer);
                    }
                    kept.push(Self::Constant(answer));
                    break;
                }
                other => kept.push(other),
            }
        }
        if !kept.iter().any(Self::may_ask) {
            // The order of evaluation has no visible effect: cheap nodes first.
            kept = Self::merged(kept, goes_on);
            let constant = kept.iter().position(|node| matches!(node, Self::Constant(_)));
            if let Some(place) = constant {
                return kept.swap_remove(place);
            }
            kept.sort_by_key(Self::rank);
        }
        match kept.len() {
            0 => Self::Constant(goes_on),
            1 => kept.swap_remove(0),
            _ => make(kept),
        }
    }

    /// Merges tests of the same integer: `5 < u && u < 9` is one range.
    fn merged(nodes: Vec<Self>, goes_on: Answer) -> Vec<Self> {
        let mut sets: Vec<(Whole, Vec<Integers>)> = Vec::new();
        let mut places: HashMap<Whole, usize> = HashMap::new();
        let mut kept = Vec::new();
        for node in nodes {
            let Self::Integers(whole, set) = node else {
                kept.push(node);
                continue;
            };
            let place = *places.entry(whole).or_insert(sets.len());
            match sets.get_mut(place) {
                Some((_, sets)) => sets.push(set),
                None => sets.push((whole, vec![set])),
            }
        }
        for (whole, sets) in sets {
            let each = || sets.iter().map(Integers::set);
            let all = match (goes_on, sets.as_slice()) {
                (_, [_] | []) => None,
                (Answer::Yes, _) => Ranges::all_of(each()),
                _ => Ranges::any_of(each()),
            };
            match all.as_ref().and_then(Ranges::constant).map(|all| Answer::of(Some(all))) {
                Some(answer) if answer == goes_on => {}
                Some(answer) => kept.push(Self::Constant(answer)),
                None => match all {
                    Some(all) => kept.push(Self::Integers(whole, Integers::of(&all))),
                    None => kept.extend(sets.into_iter().map(|set| Self::Integers(whole, set))),
                },
            }
        }
        kept
    }

    fn may_ask(&self) -> bool {
        match self {
            Self::Constant(answer) => *answer == Answer::Ask,
            Self::Not(inner) => inner.may_ask(),
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().any(Self::may_ask),
            Self::Ask { .. } => L::MAY_ASK,
            Self::Element(test) => test.absent == Answer::Ask || test.empty == Answer::Ask,
            Self::Integers(..) | Self::Reals(..) | Self::Text(..) | Self::Pair(..) => false,
        }
    }

    /// Approximate cost.
    fn rank(&self) -> u8 {
        match self {
            Self::Constant(_) => 0,
            Self::Integers(..) | Self::Reals(..) => 2,
            Self::Pair(..) => 3,
            Self::Text(..) | Self::Element(_) => 4,
            Self::Ask { depends, .. } if *depends == Depends::PACKET => 0,
            Self::Ask { computed: Some(_), .. } => 4,
            Self::Ask { depends, .. } if depends.on_fields => 6,
            Self::Ask { .. } => 5,
            Self::Not(inner) => inner.rank(),
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().map(Self::rank).max().unwrap_or(0),
        }
    }

    fn each_column(&self, see: &mut dyn FnMut(usize)) {
        match self {
            Self::Constant(_) => {}
            Self::Not(inner) => inner.each_column(see),
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().for_each(|n| n.each_column(see)),
            Self::Integers(Whole::Column(column), _)
            | Self::Reals(column, _)
            | Self::Text(column, _) => see(*column),
            Self::Integers(Whole::Time, _) => {}
            Self::Element(test) => see(test.element.column),
            Self::Pair(pair) => pair.each_column(see),
            Self::Ask { columns, .. } => columns.iter().copied().for_each(see),
        }
    }

    fn needs_writers(&self) -> bool {
        match self {
            Self::Not(inner) => inner.needs_writers(),
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().any(Self::needs_writers),
            Self::Ask { depends, .. } => depends.on_writer,
            _ => false,
        }
    }
}

/// An expression, prepared for the events of one class.
#[derive(Debug, Clone)]
pub struct Plan<L> {
    root: Node<L>,
    needs_writers: bool,
}

impl<L: Leaf> Plan<L> {
    /// From the expression for a class.
    #[must_use]
    pub fn new(root: Node<L>) -> Self {
        let needs_writers = root.needs_writers();
        Self { root, needs_writers }
    }

    /// The result, if it is the same for all events of the class.
    #[must_use]
    pub fn constant(&self) -> Option<Answer> {
        match self.root {
            Node::Constant(answer) => Some(answer),
            _ => None,
        }
    }

    /// Columns of the class that must be decoded: none if it does not match, and all if the script engine
    /// may have to decide.
    #[must_use]
    pub fn want(&self) -> Want {
        if self.constant() == Some(Answer::No) {
            return Want::Count;
        }
        if self.root.may_ask() {
            // The script engine then sees the whole event.
            return Want::All;
        }
        let mut columns = Vec::new();
        self.root.each_column(&mut |column| {
            if columns.len() <= column {
                columns.resize(column + 1, false);
            }
            columns[column] = true;
        });
        if columns.is_empty() { Want::Times } else { Want::Columns(columns) }
    }

    /// Whether [`Part`]s must contain the writer of each event.
    #[must_use]
    pub fn needs_writers(&self) -> bool {
        self.needs_writers
    }
}

#[cfg(test)]
mod tests;
