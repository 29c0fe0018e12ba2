// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Matches span ends to their begins.
//!
//! Spans of equal key match, innermost first. If several are open, an end prefers one that its own thread
//! began, then one of its own process, then any: a mutex at the same address in two processes is two
//! mutexes, but a request may well be finished by another process than the one that began it. Spans
//! without a key belong to their thread.
//!
//! Events of equal time in different streams have no order: an end belongs to a begin before it, and only
//! if there is none, to a begin of equal time.
//!
//! ```text
//! thread 1   (a    (a  )  )
//! thread 2      (b          (a )
//! pairs         inner a, outer a, second a; b is unfinished
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;
use lateralis_model::Writer;
use lateralis_units::Nanos;

/// Side of a span that an event marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The begin.
    Begin,
    /// The end.
    End,
}

/// An event that begins or ends a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Edge {
    /// Time.
    pub time: Nanos,
    /// Side.
    pub side: Side,
    /// Key of the span; `None` for spans that belong to their thread. Equal keys must be equal numbers,
    /// different ones different numbers.
    pub key: Option<u64>,
    /// Thread.
    pub writer: Option<Writer>,
}

/// A span with both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The event that began it.
    pub begin: Edge,
    /// The event that ended it.
    pub end: Edge,
}

impl Span {
    /// Duration in nanoseconds; 0 if the clocks of two CPUs disagree about the order of its ends.
    #[must_use]
    #[inline]
    pub fn nanos(&self) -> u64 {
        self.end.time.since(self.begin.time).max(0) as u64
    }
}

/// Process id of unidentified threads: no two of them are known to be of one process.
pub const NOBODY: u32 = u32::MAX;

/// Marks the end of a chain of slots.
const NONE: u32 = u32::MAX;

/// Number of spans open with one key that an end examines to find one of its own thread. More than this
/// at once is not intended by any program, and must not cost quadratic time.
const SEARCH_MAX: usize = 1024;

/// A begin that waits for its end, in a chain of those with the same key.
#[derive(Debug, Clone, Copy)]
struct Slot<T> {
    edge: Edge,
    /// The caller's tag of the begin.
    tag: T,
    /// Stream of the begin.
    stream: u32,
    /// The one begun before it with the same key; [`NONE`] for the first.
    below: u32,
}

/// Pairs edges of one kind of span as they come. With each begin it keeps a tag, so that callers need no
/// lookup of their own: the event, its stream.
///
/// Memory: proportional to spans open at the same time.
#[derive(Debug)]
pub struct Pairer<T = ()> {
    /// Youngest open span by key.
    keyed: HashMap<u64, u32, RandomState>,
    /// Youngest open span by thread, for spans without a key.
    of_thread: HashMap<u64, u32, RandomState>,
    slots: Vec<Slot<T>>,
    /// First of the chain of free slots.
    free: u32,
    open_count: u64,
    orphan_count: u64,
}

impl<T> Default for Pairer<T> {
    fn default() -> Self {
        Self {
            keyed: HashMap::default(),
            of_thread: HashMap::default(),
            slots: Vec::new(),
            free: NONE,
            open_count: 0,
            orphan_count: 0,
        }
    }
}

impl Pairer {
    /// [`Pairer::push_tagged`] without tags, for one stream.
    pub fn push(&mut self, edge: Edge) -> Option<Span> {
        self.push_tagged(edge, 0, ()).map(|(span, ())| span)
    }
}

impl<T: Copy> Pairer<T> {
    /// Processes the next edge in time order, of this stream; returns the span that it ends, with the tag
    /// of its begin.
    ///
    /// Cost: one lookup, and a step for each open span with the same key that an end skips, at most 1024:
    /// beyond that it takes the best of those.
    pub fn push_tagged(&mut self, edge: Edge, stream: u32, tag: T) -> Option<(Span, T)> {
        let entry = match edge.key {
            Some(key) => self.keyed.entry(key),
            None => self.of_thread.entry(thread(edge.writer)),
        };
        match (edge.side, entry) {
            (Side::Begin, entry) => {
                let below = match &entry {
                    Entry::Occupied(top) => *top.get(),
                    Entry::Vacant(_) => NONE,
                };
                let slot = Slot { edge, tag, stream, below };
                let index = if self.free == NONE {
                    // Four thousand million open spans do not fit any memory.
                    let index = self.slots.len() as u32;
                    self.slots.push(slot);
                    index
                } else {
                    let index = self.free;
                    self.free = self.slots[index as usize].below;
                    self.slots[index as usize] = slot;
                    index
                };
                *entry.or_insert(index) = index;
                self.open_count += 1;
                None
            }
            (Side::End, Entry::Vacant(_)) => {
                self.orphan_count += 1;
                None
            }
            (Side::End, Entry::Occupied(mut top)) => {
                let first = *top.get();
                let is_before =
                    |slot: &Slot<T>| slot.edge.time < edge.time || slot.stream == stream;
                let before = best(&self.slots, first, edge.writer, is_before);
                let chosen = before.or_else(|| best(&self.slots, first, edge.writer, |_| true));
                let (above, found) = chosen.unwrap_or((None, first));
                let Slot { edge: begin, tag, below, .. } = self.slots[found as usize];
                match above {
                    Some(above) => self.slots[above as usize].below = below,
                    None if below == NONE => {
                        top.remove();
                    }
                    None => *top.get_mut() = below,
                }
                self.slots[found as usize].below = self.free;
                self.free = found;
                self.open_count -= 1;
                Some((Span { begin, end: edge }, tag))
            }
        }
    }

    /// Assigns a thread to another process: its open spans without a key stay its own. Returns their
    /// original begins.
    ///
    /// Cost: proportional to those, and to the open spans of `to`.
    pub fn reassign(&mut self, from: Writer, to: Writer) -> Vec<Edge> {
        if self.of_thread.is_empty() {
            return Vec::new();
        }
        let Some(top) = self.of_thread.remove(&thread(Some(from))) else {
            return Vec::new();
        };
        let mut edges = Vec::new();
        let (mut at, mut bottom) = (top, top);
        while let Some(slot) = self.slots.get_mut(at as usize) {
            edges.push(slot.edge);
            slot.edge.writer = Some(to);
            (bottom, at) = (at, slot.below);
        }
        match self.of_thread.entry(thread(Some(to))) {
            Entry::Vacant(place) => {
                place.insert(top);
            }
            // Spans open under the other name began later.
            Entry::Occupied(place) => {
                let mut last = *place.get();
                while let Some(slot) = self.slots.get(last as usize)
                    && slot.below != NONE
                {
                    last = slot.below;
                }
                debug_assert!(self.slots[bottom as usize].below == NONE);
                self.slots[last as usize].below = top;
            }
        }
        edges
    }

    /// Number of ends without a begin.
    #[must_use]
    pub fn orphan_count(&self) -> u64 {
        self.orphan_count
    }

    /// Number of spans that have begun and not ended.
    #[must_use]
    pub fn unfinished_count(&self) -> u64 {
        self.open_count
    }

    /// Begins of the open spans, earliest first.
    #[must_use]
    pub fn unfinished(&self) -> Vec<Edge> {
        self.unfinished_tagged().into_iter().map(|(edge, _)| edge).collect()
    }

    /// Begins of the open spans with their tags.
    #[must_use]
    pub fn unfinished_tagged(&self) -> Vec<(Edge, T)> {
        let mut edges = Vec::new();
        for &top in self.keyed.values().chain(self.of_thread.values()) {
            let mut at = top;
            while let Some(slot) = self.slots.get(at as usize) {
                edges.push((slot.edge, slot.tag));
                at = slot.below;
            }
        }
        edges.sort_by_key(|(edge, _)| (edge.time, edge.key, edge.writer));
        edges
    }
}

/// A thread as one number.
fn thread(writer: Option<Writer>) -> u64 {
    writer.map_or(u64::MAX, |writer| u64::from(writer.pid) << 32 | u64::from(writer.tid))
}

/// The open span that an end by `writer` belongs to, among those in the chain from `top` down that
/// `can_be` allows, and the one above it in the chain.
fn best<T>(
    slots: &[Slot<T>],
    top: u32,
    writer: Option<Writer>,
    can_be: impl Fn(&Slot<T>) -> bool,
) -> Option<(Option<u32>, u32)> {
    let pid = |writer: Option<Writer>| writer.map(|writer| writer.pid);
    let is_known = pid(writer) != Some(NOBODY);
    let (mut of_process, mut first) = (None, None);
    let (mut above, mut at) = (None, top);
    for _ in 0..SEARCH_MAX {
        let Some(slot) = slots.get(at as usize) else {
            break;
        };
        if can_be(slot) {
            if slot.edge.writer == writer {
                return Some((above, at));
            }
            if is_known && of_process.is_none() && pid(slot.edge.writer) == pid(writer) {
                of_process = Some((above, at));
            }
            first = first.or(Some((above, at)));
        }
        above = Some(at);
        at = slot.below;
    }
    of_process.or(first)
}

/// Result of [`pair`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pairs {
    /// Spans in the order of their ends.
    pub spans: Vec<Span>,
    /// Begins without an end, earliest first.
    pub unfinished: Vec<Edge>,
    /// Number of ends without a begin.
    pub orphan_count: u64,
}

/// Pairs edges that are in time order.
///
/// Every edge is in exactly one of the three results: begins = spans + unfinished, ends = spans +
/// orphans.
#[must_use]
pub fn pair(edges: &[Edge]) -> Pairs {
    let mut pairer = Pairer::default();
    let spans = edges.iter().filter_map(|&edge| pairer.push(edge)).collect();
    Pairs { spans, unfinished: pairer.unfinished(), orphan_count: pairer.orphan_count() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Parses a picture: one line per thread, one column per nanosecond; a letter after `(` begins a span
    /// of that key, one after `)` ends one, `.` is no key.
    fn edges(picture: &[(u32, u32, &str)]) -> Vec<Edge> {
        let mut edges = Vec::new();
        for &(pid, tid, line) in picture {
            let characters: Vec<char> = line.chars().collect();
            for (column, pair) in characters.windows(2).enumerate() {
                let side = match pair[0] {
                    '(' => Side::Begin,
                    ')' => Side::End,
                    _ => continue,
                };
                let key = if pair[1] == '.' { None } else { Some(pair[1] as u64) };
                let writer = Some(Writer { pid, tid });
                edges.push(Edge { time: Nanos(column as i64), side, key, writer });
            }
        }
        edges.sort_by_key(|edge| edge.time);
        edges
    }

    /// `begin-end` of every span, in the order of their ends.
    fn spans(picture: &[(u32, u32, &str)]) -> String {
        let pairs = pair(&edges(picture));
        let text = |span: &Span| format!("{}-{}", span.begin.time.0, span.end.time.0);
        let spans: Vec<_> = pairs.spans.iter().map(text).collect();
        format!("{} open {} orphan {}", spans.join(" "), pairs.unfinished.len(), pairs.orphan_count)
    }

    #[test]
    fn what_is_open_stays_open_when_the_process_of_its_thread_becomes_known() {
        let (guessed, known) = (Writer { pid: 11, tid: 11 }, Writer { pid: 10, tid: 11 });
        let other = Writer { pid: 20, tid: 11 };
        let edge =
            |time, side, writer| Edge { time: Nanos(time), side, key: None, writer: Some(writer) };
        let mut pairer = Pairer::default();
        pairer.push(edge(0, Side::Begin, guessed));
        pairer.push(edge(1, Side::Begin, other));
        pairer.push(edge(2, Side::Begin, guessed));
        pairer.push(edge(3, Side::Begin, known));
        let before = [edge(2, Side::Begin, guessed), edge(0, Side::Begin, guessed)];
        assert_eq!(pairer.reassign(guessed, known), before);
        assert_eq!(pairer.reassign(guessed, known), []);
        let mut begins = Vec::new();
        for time in 10..13 {
            let span = pairer.push(edge(time, Side::End, known)).unwrap();
            begins.push(span.begin);
        }
        assert_eq!(begins, [3, 2, 0].map(|time| edge(time, Side::Begin, known)));
        assert_eq!((pairer.unfinished_count(), pairer.orphan_count()), (1, 0));
        assert_eq!(pairer.push(edge(13, Side::End, guessed)), None);
    }

    #[test]
    fn nesting_is_innermost_first() {
        assert_eq!(spans(&[(1, 1, "(a (a )a )a")]), "3-6 0-9 open 0 orphan 0");
    }

    #[test]
    fn keys_keep_spans_apart() {
        assert_eq!(spans(&[(1, 1, "(a (b )a )b")]), "0-6 3-9 open 0 orphan 0");
    }

    #[test]
    fn another_thread_may_end_a_span_but_the_own_comes_first() {
        assert_eq!(spans(&[(1, 1, "(a"), (1, 2, "    )a")]), "0-4 open 0 orphan 0");
        let both = [(1, 1, "(a       )a"), (1, 2, "   (a          )a")];
        assert_eq!(spans(&both), "0-9 3-15 open 0 orphan 0");
    }

    #[test]
    fn the_own_process_comes_before_others() {
        let two = [(1, 1, "(a"), (2, 2, "   (a"), (1, 3, "        )a")];
        assert_eq!(spans(&two), "0-8 open 1 orphan 0");
    }

    #[test]
    fn without_key_a_span_is_of_its_thread() {
        let two = [(1, 1, "(.       )."), (1, 2, "    ).  (.")];
        assert_eq!(spans(&two), "0-9 open 1 orphan 1");
    }

    #[test]
    fn clocks_that_disagree_give_no_negative_duration() {
        let edge = |time, side| Edge { time: Nanos(time), side, key: Some(1), writer: None };
        let span = Span { begin: edge(10, Side::Begin), end: edge(8, Side::End) };
        assert_eq!(span.nanos(), 0);
    }

    proptest! {
        #[test]
        fn every_edge_is_accounted_for(
            raw in prop::collection::vec((any::<bool>(), 0u64..4, 0u32..3), 0..200),
        ) {
            let edges: Vec<Edge> = raw.iter().enumerate().map(|(time, &(begin, key, tid))| Edge {
                time: Nanos(time as i64),
                side: if begin { Side::Begin } else { Side::End },
                key: key.checked_sub(1),
                writer: tid.checked_sub(1).map(|tid| Writer { pid: 1, tid }),
            }).collect();
            let pairs = pair(&edges);
            let begins = edges.iter().filter(|edge| edge.side == Side::Begin).count();
            prop_assert_eq!(begins, pairs.spans.len() + pairs.unfinished.len());
            let ends = (edges.len() - begins) as u64;
            prop_assert_eq!(ends, pairs.spans.len() as u64 + pairs.orphan_count);
            for span in &pairs.spans {
                prop_assert_eq!(span.begin.key, span.end.key);
                prop_assert!(span.begin.time < span.end.time);
            }
        }
    }
}
