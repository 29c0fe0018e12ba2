// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which end belongs to which beginning.
//!
//! Spans of equal key match, innermost first. Where several are open, the end
//! prefers one that its own thread began, then one of its own process, then any:
//! a mutex at the same address in two processes is two mutexes, but a request
//! may well be finished by another process than the one that began it. Spans
//! without a key belong to their thread.
//!
//! ```text
//! thread 1   (a    (a  )  )
//! thread 2      (b          (a )
//! pairs         inner a, outer a, second a; b is unfinished
//! ```

use std::collections::HashMap;

use lateralis_model::Writer;
use lateralis_units::Nanos;

/// Which side of a span an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It begins one.
    Begin,
    /// It ends one.
    End,
}

/// An event that begins or ends a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// When.
    pub time: Nanos,
    /// Which side.
    pub side: Side,
    /// What tells spans apart; `None` for spans that belong to their thread.
    /// Equal keys must be equal numbers, different ones different numbers.
    pub key: Option<u64>,
    /// Who.
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
    /// How long it took; 0 where clocks of two processors disagree about the
    /// order of its ends.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.end.time.since(self.begin.time).max(0) as u64
    }
}

/// Pairs edges of one kind of span as they come.
#[derive(Debug, Default)]
pub struct Pairer {
    open: HashMap<(Option<u64>, Option<Writer>), Vec<Edge>>,
    /// Ends without a beginning.
    orphan_count: u64,
}

impl Pairer {
    /// Takes the next edge in the order of time; gives the span that it ends.
    ///
    /// Cost: constant, but for the number of spans open with the same key.
    pub fn push(&mut self, edge: Edge) -> Option<Span> {
        // Spans with a key are looked for under the key alone.
        let place = (edge.key, if edge.key.is_some() { None } else { edge.writer });
        match edge.side {
            Side::Begin => {
                self.open.entry(place).or_default().push(edge);
                None
            }
            Side::End => {
                let Some(open) = self.open.get_mut(&place).filter(|open| !open.is_empty()) else {
                    self.orphan_count += 1;
                    return None;
                };
                let begin = open.remove(best(open, edge.writer));
                if open.is_empty() {
                    self.open.remove(&place);
                }
                Some(Span { begin, end: edge })
            }
        }
    }

    /// Ends that came without a beginning.
    #[must_use]
    pub fn orphan_count(&self) -> u64 {
        self.orphan_count
    }

    /// Spans that have begun and not ended.
    #[must_use]
    pub fn unfinished_count(&self) -> u64 {
        self.open.values().map(|open| open.len() as u64).sum()
    }

    /// The beginnings of those, earliest first.
    #[must_use]
    pub fn unfinished(&self) -> Vec<Edge> {
        let mut edges: Vec<Edge> = self.open.values().flatten().copied().collect();
        edges.sort_by_key(|edge| (edge.time, edge.key));
        edges
    }
}

/// Index of the open span that an end by `writer` belongs to; `open` is not
/// empty.
fn best(open: &[Edge], writer: Option<Writer>) -> usize {
    let pid = |writer: Option<Writer>| writer.map(|writer| writer.pid);
    let of_thread = open.iter().rposition(|edge| edge.writer == writer);
    let of_process = || open.iter().rposition(|edge| pid(edge.writer) == pid(writer));
    of_thread.or_else(of_process).unwrap_or(open.len() - 1)
}

/// What [`pair`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pairs {
    /// Spans in the order of their ends.
    pub spans: Vec<Span>,
    /// Beginnings without an end, earliest first.
    pub unfinished: Vec<Edge>,
    /// Number of ends without a beginning.
    pub orphan_count: u64,
}

/// Pairs edges that are in the order of time.
///
/// Every edge is in exactly one of the three results: beginnings = spans +
/// unfinished, ends = spans + orphans.
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

    /// Reads a picture: one line per thread, one column per nanosecond; a letter
    /// after `(` begins a span of that key, one after `)` ends one, `.` is no key.
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
