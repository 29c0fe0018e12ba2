// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asks a plan about the events of a part, a block at a time: answers are bytes that stay in
//! the cache, and become bits at the end.

use lateralis_model::{Column, Slot, Spans};

use super::numbers::{Numbers, compare};
use super::of_filter::Whole;
use super::{Answer, Depends, Leaf, Mask, Node, Number, Part, Plan};
use crate::filter::Context;

/// Events of a block; 64 divides it.
const BLOCK: usize = 1024;

/// What asking needs: what events do not carry themselves, and room.
pub struct Asking<'a> {
    context: &'a Context<'a>,
    slots: Vec<Slot>,
    spare: Vec<Vec<u8>>,
}

impl<'a> Asking<'a> {
    /// Ready to ask.
    #[must_use]
    pub fn new(context: &'a Context<'a>) -> Self {
        Self { context, slots: Vec::new(), spare: Vec::new() }
    }
}

/// Events whose answer matters: those that have this one so far.
type Care<'c> = Option<(&'c [u8], Answer)>;

fn cares(care: Care<'_>, at: usize) -> bool {
    care.is_none_or(|(so_far, goes_on)| so_far[at] == goes_on as u8)
}

impl<L: Leaf> Plan<L> {
    /// Which events of a part are chosen: replaces the content of `mask`. The part has at
    /// least the columns that [`Plan::want`] wants, of the class that the plan is of.
    ///
    /// Cost: a few instructions an event for each test of a column; what [`Node::Ask`] asks
    /// costs as much as of single events, once per packet or run of a thread's events if it
    /// depends on no more. Memory: a byte for each event of a block, and a bit for each
    /// event.
    pub fn select(&self, part: &Part<'_>, asking: &mut Asking<'_>, mask: &mut Mask) {
        mask.clear();
        let len = part.len();
        let mut out = asking.spare.pop().unwrap_or_default();
        for from in (0..len).step_by(BLOCK) {
            out.clear();
            out.resize(BLOCK.min(len - from), 0);
            fill(&self.root, &Block { part, from }, asking, None, &mut out);
            mask.append(&out);
        }
        asking.spare.push(out);
    }
}

struct Block<'p, 'b> {
    part: &'p Part<'b>,
    from: usize,
}

fn fill<L: Leaf>(
    node: &Node<L>,
    block: &Block<'_, '_>,
    asking: &mut Asking<'_>,
    care: Care<'_>,
    out: &mut [u8],
) {
    let range = block.from..block.from + out.len();
    match node {
        Node::Constant(answer) => out.fill(*answer as u8),
        Node::Not(inner) => {
            fill(inner, block, asking, care, out);
            // 0 and 1 are exchanged, 2 stays.
            out.iter_mut().for_each(|answer| *answer ^= (*answer >> 1) ^ 1);
        }
        Node::And(nodes) => chain(nodes, Answer::Yes, block, asking, care, out),
        Node::Or(nodes) => chain(nodes, Answer::No, block, asking, care, out),
        Node::Integers(Whole::Time, set) => set.test(&block.part.class().times[range], out),
        Node::Integers(Whole::Column(column), set) => match block.part.column(*column) {
            Column::Unsigned(values) if values.len() >= range.end => {
                set.test(&values[range], out);
            }
            Column::Signed(values) if values.len() >= range.end => set.test(&values[range], out),
            _ => out.fill(Answer::Ask as u8),
        },
        Node::Reals(column, test) => match block.part.column(*column) {
            Column::Real(values) if values.len() >= range.end => test.test(&values[range], out),
            _ => out.fill(Answer::Ask as u8),
        },
        Node::Text(column, test) => match block.part.column(*column) {
            Column::Spans(spans) if spans.len() >= range.end => {
                let (starts, lengths) = (&spans.starts()[range.clone()], &spans.lengths()[range]);
                let spans = Spans::new(starts, lengths, spans.bytes());
                match care {
                    None => test.test(&spans, |_| true, out),
                    Some(_) => test.test(&spans, |at| cares(care, at), out),
                }
            }
            _ => out.fill(Answer::Ask as u8),
        },
        Node::Pair(pair) => {
            let numbers = |number| match number {
                Number::Time => Some(Numbers::Times(&block.part.class().times[range.clone()])),
                Number::Column(column) => Numbers::of(&block.part.column(column), range.clone()),
            };
            match (numbers(pair.left), numbers(pair.right)) {
                (Some(left), Some(right)) => compare(left, pair.relation, right, out),
                _ => out.fill(Answer::Ask as u8),
            }
        }
        Node::Ask { leaf, depends, .. } => ask(leaf, *depends, block, asking, care, out),
    }
}

/// `a && b && …`, `a || b || …`: where all so far are `goes_on`, the next decides.
fn chain<L: Leaf>(
    nodes: &[Node<L>],
    goes_on: Answer,
    block: &Block<'_, '_>,
    asking: &mut Asking<'_>,
    care: Care<'_>,
    out: &mut [u8],
) {
    let Some((first, rest)) = nodes.split_first() else {
        return out.fill(goes_on as u8);
    };
    fill(first, block, asking, care, out);
    let going = goes_on as u8;
    let mut other = asking.spare.pop().unwrap_or_default();
    for node in rest {
        if !out.iter().fold(false, |any, answer| any | (*answer == going)) {
            break;
        }
        other.clear();
        other.resize(out.len(), 0);
        fill(node, block, asking, Some((out, goes_on)), &mut other);
        for (answer, other) in out.iter_mut().zip(&other) {
            *answer = if *answer == going { *other } else { *answer };
        }
    }
    asking.spare.push(other);
}

/// Asks events: all that matter, or one of each thread or packet if those are alike.
fn ask<L: Leaf>(
    leaf: &L,
    depends: Depends,
    block: &Block<'_, '_>,
    asking: &mut Asking<'_>,
    care: Care<'_>,
    out: &mut [u8],
) {
    let part = block.part;
    let of_event = depends.on_fields
        || depends.on_own_cpu && !part.knows_cpu()
        || depends.on_own_writer && !part.knows_writers();
    let mut answer = |at: usize| {
        let event = part.event(block.from + at, &mut asking.slots);
        leaf.answer(&event, asking.context) as u8
    };
    if of_event {
        for (at, out) in out.iter_mut().enumerate() {
            *out = if cares(care, at) { answer(at) } else { 0 };
        }
        return;
    }
    let runs = if depends.on_writer { part.runs() } else { &[] };
    let mut from = 0;
    while from < out.len() {
        let here = block.from + from;
        let next = runs.partition_point(|(begin, _)| *begin as usize <= here);
        let end = runs.get(next).map_or(usize::MAX, |(begin, _)| *begin as usize - block.from);
        let end = end.min(out.len());
        let answer = answer(from);
        out[from..end].fill(answer);
        from = end;
    }
}
