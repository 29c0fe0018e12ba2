// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asking about many events at once: the columns of a class in, one answer per event out.
//!
//! ```text
//! Filter, or a compiled script ─ once per class ─► Node ─ Plan ─► want   what to decode
//!                                                              └► select one bit per event
//! ```
//!
//! What is the same for all events of a class is decided when the plan is made: its name, a
//! field that it does not have. So a class that cannot match is a constant, and need not be
//! decoded. What is left are tests of single columns, each a pass over a slice, and
//! [`Node::Ask`]: parts that only an event can answer. Those that depend on the packet or on
//! the thread are asked once per packet or thread, not once per event.
//!
//! The answers are those of the events one by one: [`Filter::matches`](super::Filter::matches).

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

/// What an expression says of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// No.
    No,
    /// Yes.
    Yes,
    /// Only something else can tell: the engine of a script.
    Ask,
}

impl Answer {
    /// Yes for true, no for false, ask for nothing.
    #[must_use]
    pub fn of(value: Option<bool>) -> Self {
        match value {
            Some(false) => Self::No,
            Some(true) => Self::Yes,
            None => Self::Ask,
        }
    }

    /// Yes for no, no for yes.
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
    /// Whether [`Answer::Ask`] is one of its answers.
    const MAY_ASK: bool;

    /// What it says of an event.
    fn answer(&self, event: &Event<'_>, context: &Context<'_>) -> Answer;
}

/// On what of an event an answer depends, besides its class and its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depends {
    /// On its own fields, or its time.
    pub on_fields: bool,
    /// On its processor, which it tells itself where its packet does not.
    pub on_own_cpu: bool,
    /// On the thread that wrote it.
    pub on_writer: bool,
    /// On what it tells of its thread itself where the stream does not.
    pub on_own_writer: bool,
}

impl Depends {
    /// On nothing else.
    pub const PACKET: Self =
        Self { on_fields: false, on_own_cpu: false, on_writer: false, on_own_writer: false };
    /// On its fields.
    pub const FIELDS: Self = Self { on_fields: true, ..Self::PACKET };

    /// On both.
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

/// An expression about the events of one class. Columns are numbered as
/// [`leaves`](lateralis_model::leaves) does.
#[derive(Debug, Clone)]
pub enum Node<L> {
    /// The same for all.
    Constant(Answer),
    /// The opposite.
    Not(Box<Node<L>>),
    /// The first that is not yes, else yes.
    And(Vec<Node<L>>),
    /// The first that is not no, else no.
    Or(Vec<Node<L>>),
    /// Whether an integer is one of a set.
    Integers(Whole, Integers),
    /// Whether a floating point number is as told.
    Reals(usize, Reals),
    /// Whether a text is as told.
    Text(usize, Texts),
    /// Whether an element of an array is as told.
    Element(ElementTest),
    /// Whether two numbers of an event are related as told.
    Pair(Pair),
    /// What only an event can answer, and which columns that needs.
    Ask {
        /// The question.
        leaf: L,
        /// On what the answer depends.
        depends: Depends,
        /// Columns it looks at.
        columns: Vec<usize>,
        /// What answers for most events without asking them.
        computed: Option<Computed>,
    },
}

impl<L: Leaf> Node<L> {
    /// Yes or no for all.
    #[must_use]
    pub fn truth(value: bool) -> Self {
        Self::Constant(Answer::of(Some(value)))
    }

    /// The opposite.
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

    /// The first of some that is not yes, else yes.
    #[must_use]
    pub fn all(nodes: impl IntoIterator<Item = Self>) -> Self {
        Self::chain(nodes, Answer::Yes, Self::And)
    }

    /// The first of some that is not no, else no.
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
                    // What comes before it decides only by asking.
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
            // Nobody sees in which order they are asked: the cheap ones decide first.
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

    /// Tests of the same integer are one: `5 < u && u < 9` asks for one range.
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

    /// How dear it is, roughly.
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

/// An expression, ready to be asked about the events of one class.
#[derive(Debug, Clone)]
pub struct Plan<L> {
    root: Node<L>,
    needs_writers: bool,
}

impl<L: Leaf> Plan<L> {
    /// Of what an expression means for a class.
    #[must_use]
    pub fn new(root: Node<L>) -> Self {
        let needs_writers = root.needs_writers();
        Self { root, needs_writers }
    }

    /// The answer, if it is the same for all events of the class, whatever they hold.
    #[must_use]
    pub fn constant(&self) -> Option<Answer> {
        match self.root {
            Node::Constant(answer) => Some(answer),
            _ => None,
        }
    }

    /// What must be decoded of the class to answer: nothing of one that does not match, and
    /// everything where somebody else may have to answer.
    #[must_use]
    pub fn want(&self) -> Want {
        if self.constant() == Some(Answer::No) {
            return Want::Count;
        }
        if self.root.may_ask() {
            // Who is asked then sees the event whole.
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

    /// Whether [`Part`]s must tell who wrote which event.
    #[must_use]
    pub fn needs_writers(&self) -> bool {
        self.needs_writers
    }
}

#[cfg(test)]
mod tests;
