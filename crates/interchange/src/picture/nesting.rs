// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which spans of a thread lie inside which, and on which lane each is drawn.
//!
//! ```text
//! a  ├──────────────┤            lane 0   a ├──────────────┤
//! b       ├────┤                            b  ├────┤
//! c                ├───────┤     lane 1               c ├───────┤
//! ```
//!
//! Beginnings and ends are joined as analyses join them: those of one thread by their name,
//! innermost first; those with a key by that, first of the own thread, then of the own process.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use lateralis_model::Source;

use super::{Edge, Lane, edge};
use crate::meaning::{Fnv, Meanings, Owner};

/// How many spans of one key an end looks at to find its own, as analyses do.
const SEARCH_MAX: usize = 1024;
/// The end of what has none.
const UNFINISHED: i64 = i64::MAX;

/// The spans of a trace.
#[derive(Default)]
pub struct Nesting {
    /// When each span ends, by the number of its beginning.
    ends: Vec<i64>,
    /// Spans that have begun in the pass that draws.
    begun: usize,
    /// Beginnings without their ends so far, by thread and name.
    open: HashMap<(Owner, u64), Vec<u64>>,
    /// The same of spans with keys.
    keyed: HashMap<u64, Vec<(Owner, u64)>>,
    /// Spans on each lane of a thread, outermost first: when they end.
    lanes: HashMap<Owner, Vec<Vec<i64>>>,
    /// Of spans that are drawn and have not ended: lane, category, place among all beginnings.
    drawn: HashMap<u64, Drawn>,
    /// Whole spans that have not ended, next one first.
    whole: BinaryHeap<WholeEnd>,
    numbers: u64,
    orders: u64,
    overlapping: u64,
}

struct Drawn {
    lane: Lane,
    category: String,
    order: u64,
}

/// The end of a whole span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WholeEnd {
    until: Reverse<i64>,
    order: u64,
    /// Whose it is.
    pub owner: Owner,
    /// Where it lies.
    pub lane: Lane,
    /// When it ends.
    pub time: i64,
}

/// Numbers of spans that have no beginning and end of their own.
const WITHOUT_EDGES: u64 = 1 << 63;

fn named(owner: Owner, name: &str) -> (Owner, u64) {
    let mut hash = Fnv::default();
    hash.bytes(name.as_bytes());
    (owner, hash.0)
}

impl Nesting {
    /// Finds when each span ends that events begin and end.
    pub fn survey(source: &dyn Source, meanings: &mut Meanings) -> Self {
        let mut nesting = Self::default();
        if !meanings.have_edges() {
            return nesting;
        }
        let mut began: HashMap<u64, i64> = HashMap::new();
        let mut events = source.events();
        while let Some(event) = events.next_event() {
            let Some(meaning) = meanings.of(&event) else { continue };
            let owner = Owner::of(&event);
            for role in &meaning.roles {
                match edge(role, &event) {
                    Some((name, Edge::Begin)) => {
                        let span = nesting.ends.len() as u64;
                        nesting.ends.push(UNFINISHED);
                        began.insert(span, event.time.0);
                        nesting.open.entry(named(owner, name)).or_default().push(span);
                    }
                    Some((name, Edge::End)) => {
                        let Some(span) = nesting.end(owner, name) else { continue };
                        let begin = began.remove(&span).unwrap_or(i64::MIN);
                        // Clocks of two processors may disagree about the order of its ends.
                        nesting.ends[span as usize] = event.time.0.max(begin);
                    }
                    _ => (),
                }
            }
        }
        nesting.open.clear();
        nesting
    }

    /// A span begins; gives its number, and when it ends.
    pub fn begin(&mut self, owner: Owner, name: &str, time: i64) -> (u64, i64) {
        let span = self.begun as u64;
        let end = self.ends.get(self.begun).copied().unwrap_or(UNFINISHED);
        self.begun += 1;
        self.open.entry(named(owner, name)).or_default().push(span);
        (span, end.max(time))
    }

    /// A span ends; which. `None` if none has begun.
    pub fn end(&mut self, owner: Owner, name: &str) -> Option<u64> {
        let open = self.open.get_mut(&named(owner, name))?;
        open.pop()
    }

    /// A number for a whole span.
    pub fn whole(&mut self) -> u64 {
        self.numbers += 1;
        WITHOUT_EDGES | self.numbers
    }

    /// A span with a key begins; gives a number of its own.
    pub fn open(&mut self, key: u64, owner: Owner) -> u64 {
        let id = self.whole();
        self.keyed.entry(key).or_default().push((owner, id));
        id
    }

    /// A span with a key ends; gives its number, and whose its beginning was. An end without a
    /// beginning has a number of its own.
    pub fn close(&mut self, key: u64, owner: Owner) -> (u64, Option<Owner>) {
        let pid = |owner: Owner| match owner {
            Owner::Thread { pid, .. } => Some(pid),
            _ => None,
        };
        let Some(open) = self.keyed.get_mut(&key).filter(|open| !open.is_empty()) else {
            return (self.whole(), None);
        };
        let youngest = || open.iter().enumerate().rev().take(SEARCH_MAX);
        let of_thread = youngest().find(|(_, (began, _))| *began == owner);
        let of_process = || youngest().find(|(_, (began, _))| pid(*began) == pid(owner));
        let found = of_thread.or_else(of_process).map_or(open.len() - 1, |(at, _)| at);
        let (began, id) = open.remove(found);
        if open.is_empty() {
            self.keyed.remove(&key);
        }
        (id, Some(began))
    }

    /// The place of a span that is drawn among all beginnings.
    pub fn order(&self, span: u64) -> Option<u64> {
        self.drawn.get(&span).map(|drawn| drawn.order)
    }

    /// Gives a span that is drawn next its lane, the one of number `least` or a further one.
    pub fn place(
        &mut self,
        owner: Owner,
        span: u64,
        (begin, end): (i64, i64),
        category: &str,
        ends_whole: bool,
        least: usize,
    ) -> Lane {
        let lanes = self.lanes.entry(owner).or_default();
        let mut index = 0;
        if end > begin {
            for lane in lanes.iter_mut() {
                while lane.last().is_some_and(|&end| end <= begin) {
                    lane.pop();
                }
            }
            let fits = |lane: &Vec<i64>| lane.last().is_none_or(|&around| around >= end);
            let found = (least..lanes.len()).find(|&at| fits(&lanes[at]));
            index = found.unwrap_or(lanes.len().max(least));
            lanes.resize(lanes.len().max(index + 1), Vec::new());
            lanes[index].push(end);
        }
        self.overlapping += u64::from(index > 0);
        self.orders += 1;
        let (lane, order) = (Lane { index: index as u32, span }, self.orders);
        if ends_whole {
            self.whole.push(WholeEnd { until: Reverse(end), order, owner, lane, time: end });
        } else if span & WITHOUT_EDGES == 0 {
            self.drawn.insert(span, Drawn { lane, category: category.to_owned(), order });
        }
        lane
    }

    /// A span that was drawn ends: its lane, and the category of its beginning.
    pub fn leave(&mut self, span: u64) -> (Lane, String) {
        let drawn = self.drawn.remove(&span);
        drawn.map_or_else(Default::default, |drawn| (drawn.lane, drawn.category))
    }

    /// The next whole span that ends before this time.
    pub fn whole_before(&mut self, time: i64) -> Option<WholeEnd> {
        self.whole_if(|end| end.time < time || time == UNFINISHED)
    }

    /// Whether a whole span ends at this time.
    pub fn ends_whole_at(&self, time: i64) -> bool {
        self.whole.peek().is_some_and(|end| end.time == time)
    }

    /// The next whole span that ends at this time and began after the one of this place.
    pub fn whole_at(&mut self, time: i64, order: u64) -> Option<WholeEnd> {
        self.whole_if(|end| end.time == time && end.order > order)
    }

    fn whole_if(&mut self, take: impl Fn(&WholeEnd) -> bool) -> Option<WholeEnd> {
        let takes = self.whole.peek().is_some_and(take);
        if takes { self.whole.pop() } else { None }
    }

    /// How many spans lie beside the others of their thread.
    pub fn overlapping(&self) -> u64 {
        self.overlapping
    }
}
