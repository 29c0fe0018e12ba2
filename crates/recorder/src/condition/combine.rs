// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests joined by `and` and `or`: consumes firings of tests in the order of time and returns
//! firings of the whole.
//!
//! A later event may cause an earlier firing: a span that ends exceeded its limit before. So
//! firings are held back until no earlier one is possible.

use super::Term;
use crate::source::Thread;

/// Maximum number of firings held back.
const WAITING_MAX: usize = 4096;

/// A firing of a test or of a combination.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moment {
    pub(super) at: u64,
    /// Time at which the first of its parts fired.
    pub(super) first: u64,
    pub(super) key: Option<String>,
    pub(super) by: Option<Thread>,
    pub(super) is_certain: bool,
}

#[derive(Debug)]
enum Node {
    Test(usize),
    Any(Vec<Node>),
    /// Each with its last unused firing.
    All(Vec<(Node, Option<Moment>)>, u64),
}

impl Node {
    /// `ticks` converts nanoseconds to ticks, `offset` is added to the numbers of tests.
    fn new(term: &Term, offset: usize, ticks: &dyn Fn(u64) -> u64) -> Node {
        let nodes = |terms: &[Term]| -> Vec<Node> {
            terms.iter().map(|term| Node::new(term, offset, ticks)).collect()
        };
        match term {
            Term::Test(test) => Node::Test(offset + test),
            Term::Any(terms) => Node::Any(nodes(terms)),
            Term::All { terms, within_ns } => {
                let parts = nodes(terms).into_iter().map(|node| (node, None));
                Node::All(parts.collect(), ticks(*within_ns))
            }
        }
    }

    fn has(&self, test: usize) -> bool {
        match self {
            Node::Test(own) => *own == test,
            Node::Any(nodes) => nodes.iter().any(|node| node.has(test)),
            Node::All(nodes, _) => nodes.iter().any(|(node, _)| node.has(test)),
        }
    }

    /// The firing of this node caused by a firing of a test, if any.
    fn take(&mut self, test: usize, moment: &Moment) -> Option<Moment> {
        match self {
            Node::Test(own) => (*own == test).then(|| moment.clone()),
            Node::Any(nodes) => nodes.iter_mut().find_map(|node| node.take(test, moment)),
            Node::All(parts, within) => {
                let part = parts.iter_mut().find(|(node, _)| node.has(test))?;
                part.1 = Some(part.0.take(test, moment)?);
                let is_near = |one: &Moment| moment.at.saturating_sub(one.at) <= *within;
                if !parts.iter().all(|(_, one)| one.as_ref().is_some_and(is_near)) {
                    return None;
                }
                let all = parts.iter_mut().filter_map(|(_, one)| one.take());
                all.reduce(|sum, one| Moment {
                    at: moment.at,
                    first: sum.first.min(one.first),
                    key: sum.key.or(one.key),
                    by: sum.by.or(one.by),
                    is_certain: sum.is_certain && one.is_certain,
                })
            }
        }
    }
}

/// Combines the firings of an alternative's tests.
#[derive(Debug)]
pub(super) struct Combined {
    root: Node,
    waiting: Vec<(usize, Moment)>,
}

impl Combined {
    /// `None` for a single test.
    pub(super) fn new(term: &Term, offset: usize, ticks: &dyn Fn(u64) -> u64) -> Option<Combined> {
        let root = Node::new(term, offset, ticks);
        (!matches!(root, Node::Test(_))).then(|| Combined { root, waiting: Vec::new() })
    }

    /// Adds a firing of one of its tests; false if there is no room.
    pub(super) fn add(&mut self, test: usize, moment: Moment) -> bool {
        let has_room = self.waiting.len() < WAITING_MAX;
        if has_room {
            self.waiting.push((test, moment));
        }
        has_room
    }

    /// Its firings before `to`, once all firings of tests before `to` have been added.
    pub(super) fn judge(&mut self, to: u64) -> Vec<Moment> {
        // Simultaneous firings need an order too, otherwise the result would depend on the time
        // of evaluation.
        self.waiting.sort_by(|(a_test, a), (b_test, b)| {
            (a.at, a_test, &a.key).cmp(&(b.at, b_test, &b.key))
        });
        let due = self.waiting.partition_point(|(_, moment)| moment.at < to);
        let due: Vec<_> = self.waiting.drain(..due).collect();
        due.iter().filter_map(|(test, moment)| self.root.take(*test, moment)).collect()
    }
}
