// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evaluates a plan for the events of a part, a block at a time. Results are bits; sixty-four consecutive
//! events that are decided already cost nothing more.

use lateralis_model::{Column, Slot, Spans};

use super::formula::Room;
use super::locate::Whole;
use super::numbers::{Numbers, compare};
use super::words::{BLOCK, NONE, Words, each, first, is_none};
use super::{Answer, Depends, Leaf, Mask, Node, Number, Part, Plan};
use crate::filter::Context;

/// Inputs of the evaluation that events do not contain, and scratch memory.
pub struct Asking<'a> {
    context: &'a Context<'a>,
    slots: Vec<Slot>,
    room: Room,
    /// Array elements of a block.
    values: Vec<u64>,
}

impl<'a> Asking<'a> {
    /// Creates an evaluation.
    #[must_use]
    pub fn new(context: &'a Context<'a>) -> Self {
        Self { context, slots: Vec::new(), room: Room::default(), values: Vec::new() }
    }
}

impl<L: Leaf> Plan<L> {
    /// Computes which events of a part are selected, replacing the content of `mask`. The part must have
    /// at least the columns of [`Plan::want`], and the class of the plan.
    ///
    /// Cost: one or two instructions per event for each test of a numeric column, and none for sixty-four
    /// consecutive events that are decided already. Texts cost some more for each that is as long as the
    /// search text. [`Node::Ask`] costs as much as for single events, but once per packet or run of a
    /// thread's events if it depends on no more. Memory: a bit per event.
    pub fn select(&self, part: &Part<'_>, asking: &mut Asking<'_>, mask: &mut Mask) {
        mask.clear();
        let len = part.len();
        let mut said = Said::default();
        for from in (0..len).step_by(BLOCK) {
            let block = Block { part, from, len: BLOCK.min(len - from) };
            fill(&self.root, &block, asking, &first(block.len), &mut said);
            mask.append(block.len, &said.yes, &said.ask);
        }
    }
}

struct Block<'p, 'b> {
    part: &'p Part<'b>,
    from: usize,
    len: usize,
}

/// Results for the relevant events of a block; no others are set.
#[derive(Default)]
struct Said {
    yes: Words,
    /// Disjoint from `yes`.
    ask: Words,
}

impl Said {
    fn all(&mut self, care: &Words, answer: Answer) {
        self.yes = if answer == Answer::Yes { *care } else { NONE };
        self.ask = if answer == Answer::Ask { *care } else { NONE };
    }

    /// The events with the result no.
    fn no(&self, care: &Words) -> Words {
        std::array::from_fn(|word| care[word] & !(self.yes[word] | self.ask[word]))
    }
}

/// Replaces the results of a block. Events outside of `care` are ignored.
fn fill<L: Leaf>(
    node: &Node<L>,
    block: &Block<'_, '_>,
    asking: &mut Asking<'_>,
    care: &Words,
    said: &mut Said,
) {
    let range = block.from..block.from + block.len;
    let part = block.part;
    match node {
        Node::Constant(answer) => return said.all(care, *answer),
        Node::Not(inner) => {
            fill(inner, block, asking, care, said);
            said.yes = said.no(care);
            return;
        }
        Node::And(nodes) => return chain(nodes, Answer::Yes, block, asking, care, said),
        Node::Or(nodes) => return chain(nodes, Answer::No, block, asking, care, said),
        Node::Ask { leaf, depends, computed, .. } => {
            said.all(care, Answer::No);
            let Asking { room, .. } = asking;
            let rest = computed
                .as_ref()
                .and_then(|computed| computed.test(part, &range, care, room, &mut said.yes));
            return ask(leaf, *depends, block, asking, &rest.unwrap_or(*care), said);
        }
        _ => {}
    }
    if let Node::Element(test) = node
        && let Column::Lists(lists) = part.column(test.element.column)
        && lists.counts().len() >= range.end
    {
        let Asking { values, .. } = asking;
        let said = (&mut said.yes, &mut said.ask);
        return test.test((&lists, part.bytes()), block.from, care, values, said);
    }
    // Columns answer with yes or no only.
    said.ask = NONE;
    let yes = &mut said.yes;
    let is_there = match node {
        Node::Integers(Whole::Time, set) => {
            part.class().times.get(range).map(|values| set.test(values, care, yes))
        }
        Node::Integers(Whole::Column(column), set) => match part.column(*column) {
            Column::Unsigned(values) => values.get(range).map(|values| set.test(values, care, yes)),
            Column::Signed(values) => values.get(range).map(|values| set.test(values, care, yes)),
            _ => None,
        },
        Node::Reals(column, reals) => match part.column(*column) {
            Column::Real(values) => values.get(range).map(|values| reals.test(values, care, yes)),
            _ => None,
        },
        Node::Text(column, test) => match part.column(*column) {
            Column::Spans(spans) if spans.len() >= range.end => {
                let (starts, lengths) = (&spans.starts()[range.clone()], &spans.lengths()[range]);
                test.test(&Spans::new(starts, lengths, spans.bytes()), care, yes);
                Some(())
            }
            _ => None,
        },
        Node::Pair(pair) => {
            let numbers = |number| match number {
                Number::Time => part.class().times.get(range.clone()).map(Numbers::Times),
                Number::Column(column) => Numbers::of(&part.column(column), range.clone()),
            };
            let both = numbers(pair.left).zip(numbers(pair.right));
            both.map(|(left, right)| compare(left, pair.relation, right, care, yes))
        }
        _ => None,
    };
    if is_there.is_none() {
        said.all(care, Answer::Ask);
    }
}

/// `a && b && …`, `a || b || …`: where all nodes so far gave `goes_on`, the next one decides.
fn chain<L: Leaf>(
    nodes: &[Node<L>],
    goes_on: Answer,
    block: &Block<'_, '_>,
    asking: &mut Asking<'_>,
    care: &Words,
    said: &mut Said,
) {
    said.all(care, goes_on);
    let mut next = Said::default();
    for (index, node) in nodes.iter().enumerate() {
        let is_all = goes_on == Answer::Yes;
        let going = if is_all { said.yes } else { said.no(care) };
        if index > 0 && is_none(&going) {
            break;
        }
        fill(node, block, asking, &going, &mut next);
        for (said, next) in said.yes.iter_mut().zip(next.yes) {
            *said = if is_all { next } else { *said | next };
        }
        said.ask.iter_mut().zip(next.ask).for_each(|(said, next)| *said |= next);
    }
}

/// Evaluates a leaf on events: on all relevant ones, or on one per thread or packet if that suffices.
/// Adds to the results.
fn ask<L: Leaf>(
    leaf: &L,
    depends: Depends,
    block: &Block<'_, '_>,
    asking: &mut Asking<'_>,
    care: &Words,
    said: &mut Said,
) {
    let part = block.part;
    let of_event = depends.on_fields
        || depends.on_own_cpu && !part.knows_cpu()
        || depends.on_own_writer && !part.knows_writers();
    let mut answer = |at: usize| {
        let event = part.event(block.from + at, &mut asking.slots);
        leaf.answer(&event, asking.context)
    };
    if of_event {
        for at in each(care) {
            let bit = 1 << (at % 64);
            match answer(at) {
                Answer::No => {}
                Answer::Yes => said.yes[at / 64] |= bit,
                Answer::Ask => said.ask[at / 64] |= bit,
            }
        }
        return;
    }
    let runs = if depends.on_writer { part.runs() } else { &[] };
    let mut left = *care;
    loop {
        let Some(at) = each(&left).next() else { break };
        let next = runs.partition_point(|(begin, _)| *begin as usize <= block.from + at);
        let end = runs.get(next).map_or(usize::MAX, |(begin, _)| *begin as usize);
        let (alike, answer) = (first(end - block.from), answer(at));
        for (word, left) in left.iter_mut().enumerate() {
            let these = *left & alike[word];
            match answer {
                Answer::No => {}
                Answer::Yes => said.yes[word] |= these,
                Answer::Ask => said.ask[word] |= these,
            }
            *left ^= these;
        }
    }
}
