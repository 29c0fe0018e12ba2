// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `flame`: nested spans, summed by their ancestors.
//!
//! The parent of a span is the innermost open span of its lane that contains it completely. The own
//! time of a span is the time in which it was the youngest open span: each nanosecond of a lane is
//! assigned once, also where spans overlap without nesting.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_lanes::{Intervals, LaneKind, RowKind, Scale};
use serde_json::{Value, json};

use super::counting::spans_are_whole;
use super::selecting::{is_left, stretch};
use crate::answer::Problem;
use crate::flow::since;
use crate::params::Params;
use crate::session::Session;

/// Limit of examined spans.
const LOOKED_MAX: usize = 20_000_000;
/// Limit of nodes in a response: more than a user can distinguish.
const NODES_MAX: usize = 10_000;
/// Parent of nodes without a parent.
const ROOT: u32 = u32::MAX;

/// Subject of a node: a kind of span, a lane or process at the top level, or a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Of {
    Span(u32),
    Lane(u32),
    /// A function, by its number.
    Call(u32),
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    of: Of,
    count: u64,
    total_ns: u64,
    own_ns: u64,
}

/// An open span.
#[derive(Debug, Clone, Copy)]
struct Open {
    node: u32,
    end: i64,
}

/// The sums, and the open spans of the current lane.
#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    places: HashMap<(u32, Of), u32, RandomState>,
    open: Vec<Open>,
    until: i64,
    is_cut: bool,
}

impl Tree {
    fn node(&mut self, parent: u32, of: Of) -> Option<u32> {
        if let Some(place) = self.places.get(&(parent, of)) {
            return Some(*place);
        }
        if self.nodes.len() >= NODES_MAX {
            self.is_cut = true;
            return None;
        }
        self.nodes.push(Node { parent, of, count: 0, total_ns: 0, own_ns: 0 });
        let place = self.nodes.len() as u32 - 1;
        self.places.insert((parent, of), place);
        Some(place)
    }

    /// Assigns the time up to `time` to the youngest open span.
    fn give(&mut self, time: i64) {
        if let Some(youngest) = self.open.last() {
            let node = &mut self.nodes[youngest.node as usize];
            let nanos = time.saturating_sub(self.until).max(0) as u64;
            node.own_ns = node.own_ns.saturating_add(nanos);
        }
        self.until = self.until.max(time);
    }

    /// Closes spans that end by `time`, in the order of their ends.
    fn reach(&mut self, time: i64) {
        loop {
            // For nested spans it is the last one. There are no more open spans than rows of a lane.
            let ended = self.open.iter().enumerate().filter(|(_, open)| open.end <= time);
            let Some((place, end)) = ended
                .map(|(place, open)| (place, open.end))
                .min_by_key(|e| (e.1, usize::MAX - e.0))
            else {
                break;
            };
            self.give(end);
            self.open.remove(place);
        }
    }

    /// Adds a span of the lane with known begin and end.
    fn span(&mut self, root: u32, of: Of, (begin, end): (i64, i64)) {
        self.reach(begin);
        self.give(begin);
        let holder = self.open.iter().rev().find(|open| open.end >= end);
        let parent = holder.map_or(root, |open| open.node);
        // The time of a span without a node is assigned to its ancestor.
        let Some(node) = self.node(parent, of) else { return };
        let counted = &mut self.nodes[node as usize];
        counted.count += 1;
        let nanos = end.saturating_sub(begin).max(0) as u64;
        counted.total_ns = counted.total_ns.saturating_add(nanos);
        self.open.push(Open { node, end });
    }

    fn end_lane(&mut self) {
        self.reach(i64::MAX);
        self.until = i64::MIN;
    }
}

/// Rows of one kind by lane, from the outermost to the innermost.
fn rows_by_lane(session: &Session, kind: RowKind) -> Vec<(u32, Vec<usize>)> {
    let mut found: Vec<(u32, Vec<usize>)> = Vec::new();
    for (row, told) in session.lanes.meta().rows.iter().enumerate() {
        if told.kind != kind {
            continue;
        }
        match found.iter_mut().find(|(lane, _)| *lane == told.lane) {
            Some((_, rows)) => rows.push(row),
            None => found.push((told.lane, vec![row])),
        }
    }
    for (_, rows) in &mut found {
        rows.sort_by_key(|row| session.lanes.meta().rows[*row].depth);
    }
    found
}

/// The lane of the top-level node; `None` if there is a single tree for all lanes.
fn root_lane(session: &Session, by: &str, lane: u32) -> Option<u32> {
    let lanes = &session.lanes.meta().lanes;
    match by {
        "thread" => Some(lane),
        "process" => {
            let parent = lanes.get(lane as usize).and_then(|lane| lane.parent);
            let is_process = |id: &u32| {
                lanes.get(*id as usize).is_some_and(|lane| lane.kind == LaneKind::Process)
            };
            Some(parent.filter(is_process).unwrap_or(lane))
        }
        _ => None,
    }
}

/// Position in one row of a lane.
struct Head<'a> {
    intervals: &'a Intervals,
    row: usize,
    next: usize,
    end: usize,
}

/// Sums of spans in a time range; each span is clipped to it.
pub fn flame(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let by = params.get("by").and_then(Value::as_str).unwrap_or("all");
    if !["all", "process", "thread"].contains(&by) {
        return Err(Problem::new("cannot read the request", "by", "all, process or thread"));
    }
    let kind = match params.get("of").and_then(Value::as_str).unwrap_or("spans") {
        "spans" => RowKind::Spans,
        "stacks" => RowKind::Stacks,
        "calls" => return calls(session, by, stretch(session, params)?),
        _ => return Err(Problem::new("cannot read the request", "of", "spans, stacks or calls")),
    };
    let chosen = session.chosen(params.count("filter", 0)?)?;
    let (begin, end) = stretch(session, params)?;
    let lanes = &session.lanes;
    let (mut looked, mut uncertain, mut unfinished) = (0, 0u64, 0u64);
    let mut tree = Tree { until: i64::MIN, ..Tree::default() };
    for (lane, rows) in rows_by_lane(session, kind) {
        let mut heads: Vec<Head<'_>> = Vec::new();
        for row in rows {
            let Some((_, intervals)) = lanes.row(row) else { continue };
            let (next, stop) = intervals.touching(begin, end);
            looked += stop - next;
            heads.push(Head { intervals, row, next, end: stop });
        }
        if looked > LOOKED_MAX {
            return Err(Problem::new("too much at once", "flame", "choose a shorter time"));
        }
        let root = match root_lane(session, by, lane) {
            None => ROOT,
            Some(of) => {
                if heads.iter().all(|head| head.next >= head.end) {
                    continue;
                }
                match tree.node(ROOT, Of::Lane(of)) {
                    Some(node) => node,
                    None => continue,
                }
            }
        };
        // In the order of begins; of spans with equal begins, the outermost first.
        while let Some((_, place)) = heads
            .iter()
            .enumerate()
            .filter(|(_, head)| head.next < head.end)
            .map(|(place, head)| (head.intervals.ends(head.next).0, place))
            .min()
        {
            let head = &mut heads[place];
            let (row, index) = (head.row, head.next);
            head.next += 1;
            if !is_left(lanes, chosen.as_deref(), row, index) {
                continue;
            }
            let (since, until) = head.intervals.ends(index);
            let cut = |time: u64| i64::try_from(time).unwrap_or(i64::MAX).clamp(begin, end);
            uncertain += u64::from(head.intervals.quality(index) != 0);
            unfinished += u64::from(head.intervals.is_unfinished(index));
            let of = Of::Span(head.intervals.name(index));
            tree.span(root, of, (cut(since), cut(until)));
        }
        tree.end_lane();
    }
    sum_roots(&mut tree.nodes);
    // The duration of a function on the stack is only as exact as the distance of samples.
    let is_sampled = kind == RowKind::Stacks;
    let quality =
        if is_sampled || uncertain > 0 || unfinished > 0 || !spans_are_whole(session, (begin, end))
        {
            "unknown"
        } else {
            "exact"
        };
    let nodes: Vec<Value> = tree.nodes.iter().map(|node| told(session, node)).collect();
    Ok(json!({
        "nodes": nodes, "quality": quality, "unfinished": unfinished, "is_cut": tree.is_cut,
    }))
}

/// Like [`flame`] for calls of threads whose instructions were recorded; requires that each call is
/// decoded.
fn calls(session: &Session, by: &str, (begin, end): (i64, i64)) -> Result<Value, Problem> {
    let mut tree = Tree { until: i64::MIN, ..Tree::default() };
    let meta = session.lanes.meta();
    let mut is_whole = true;
    for (flow, of) in meta.flows.iter().enumerate() {
        let Some(flows) = session.flow() else { break };
        let scale = Scale::new(begin, end, 1);
        let window = flows.window(flow, meta.origin, &scale);
        if !window.is_exact {
            return Err(Problem::new(
                "too much at once",
                "flame",
                "choose a shorter time: calls are decoded for it",
            ));
        }
        is_whole &= window.gaps.is_empty() && window.knows_callers;
        let root = match root_lane(session, by, of.lane) {
            None => ROOT,
            Some(lane) => match tree.node(ROOT, Of::Lane(lane)) {
                Some(node) => node,
                None => continue,
            },
        };
        let mut all: Vec<(i64, usize, i64, u32)> = Vec::new();
        for (depth, pieces) in window.depths.iter().enumerate() {
            for piece in pieces {
                let ends = (since(meta.origin, piece.begin_ns), since(meta.origin, piece.end_ns));
                if ends.1 >= begin && ends.0 < end {
                    all.push((ends.0.max(begin), depth, ends.1.min(end), piece.function));
                }
            }
        }
        all.sort_unstable();
        for (from, _, to, function) in all {
            tree.span(root, Of::Call(function), (from, to));
        }
        tree.end_lane();
    }
    sum_roots(&mut tree.nodes);
    let nodes: Vec<Value> = tree.nodes.iter().map(|node| told(session, node)).collect();
    let quality = if is_whole { "exact" } else { "unknown" };
    Ok(json!({ "nodes": nodes, "quality": quality, "unfinished": 0, "is_cut": tree.is_cut }))
}

/// Sums of a lane's node are those of its children; it has no time of its own.
fn sum_roots(nodes: &mut [Node]) {
    for index in 0..nodes.len() {
        let Node { parent, count, total_ns, .. } = nodes[index];
        let above = nodes.get_mut(parent as usize).filter(|above| matches!(above.of, Of::Lane(_)));
        if let Some(above) = above {
            above.count += count;
            above.total_ns = above.total_ns.saturating_add(total_ns);
        }
    }
}

fn told(session: &Session, node: &Node) -> Value {
    let meta = session.lanes.meta();
    let parent = (node.parent != ROOT).then_some(node.parent);
    let mut told = json!({
        "parent": parent, "count": node.count, "total": node.total_ns, "own": node.own_ns,
    });
    match node.of {
        Of::Span(kind) => {
            told["kind"] = kind.into();
            told["name"] = meta.names.get(kind as usize).cloned().into();
        }
        Of::Call(function) => {
            let name = session
                .flow()
                .and_then(|flows| Some(flows.timeline().places().name_of(function)?.to_owned()));
            told["name"] = name.into();
        }
        Of::Lane(lane) => {
            let of = meta.lanes.get(lane as usize);
            let name = of.map(|of| match of.tid.or(of.pid) {
                Some(id) if of.name.is_empty() => id.to_string(),
                _ => of.name.clone(),
            });
            told["lane"] = lane.into();
            told["name"] = name.into();
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summed(spans: &[(u32, i64, i64)]) -> Vec<(u32, u32, u64, u64, u64)> {
        let mut tree = Tree { until: i64::MIN, ..Tree::default() };
        for (name, begin, end) in spans {
            tree.span(ROOT, Of::Span(*name), (*begin, *end));
        }
        tree.end_lane();
        let name = |node: &Node| match node.of {
            Of::Span(name) => name,
            Of::Lane(_) | Of::Call(_) => u32::MAX,
        };
        let told = |node: &Node| (node.parent, name(node), node.count, node.total_ns, node.own_ns);
        tree.nodes.iter().map(told).collect()
    }

    #[test]
    fn what_nests_is_summed_below_what_holds_it() {
        // 7 contains two of 8; the second of these contains one of 9. Then another, empty 7 follows.
        let spans = [(7, 0, 100), (8, 10, 20), (8, 30, 60), (9, 30, 35), (7, 100, 110)];
        let expected = [(ROOT, 7, 2, 110, 70), (0, 8, 2, 40, 35), (1, 9, 1, 5, 5)];
        assert_eq!(summed(&spans), expected);
    }

    #[test]
    fn what_overlaps_is_beside_and_its_time_is_given_once() {
        // 2 begins in 1 and ends after it, and thus has no parent.
        let told = summed(&[(1, 0, 100), (2, 50, 150), (3, 110, 120)]);
        assert_eq!(told, [(ROOT, 1, 1, 100, 50), (ROOT, 2, 1, 100, 90), (1, 3, 1, 10, 10)]);
        assert_eq!(told.iter().map(|node| node.4).sum::<u64>(), 150);
    }

    #[test]
    fn endless_kinds_of_spans_are_cut() {
        let mut tree = Tree { until: i64::MIN, ..Tree::default() };
        for name in 0..NODES_MAX as u32 + 5 {
            tree.span(ROOT, Of::Span(name), (0, 10));
        }
        tree.end_lane();
        assert!(tree.is_cut && tree.nodes.len() == NODES_MAX);
    }
}
