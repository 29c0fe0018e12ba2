// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of spans whose ends, or begins, have none.
//!
//! A format may let an end mean "what is open here". What is open is known only in the order of
//! time, and files come in any order: so all edges are gathered in one walk, sorted, joined, and
//! named by the number of their event in later walks.

use std::collections::HashMap;
use std::hash::Hash;

use super::Dynamic;

/// How many open spans an end looks at to find its own.
const SEARCH_MAX: usize = 1024;

/// Gathers edges of spans; `T` says on which track an edge lies.
#[derive(Debug)]
pub struct Ends<T> {
    tracks: HashMap<T, u32>,
    texts: HashMap<String, u32>,
    edges: Vec<Edge>,
    /// Edges without a name.
    unnamed: u64,
    max_edges: usize,
    /// Edges that did not fit.
    pub refused: u64,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    time: i64,
    event: u64,
    track: u32,
    name: u32,
    category: u32,
    begins: bool,
}

impl<T: Hash + Eq> Ends<T> {
    /// Uses at most this amount of memory, except for the texts of names, which the classes need
    /// anyway.
    pub fn new(limit_bytes: u64) -> Self {
        let mut texts = HashMap::new();
        texts.insert(String::new(), 0);
        let max_edges = usize::try_from(limit_bytes).unwrap_or(usize::MAX) / size_of::<Edge>();
        let (tracks, edges) = (HashMap::new(), Vec::new());
        Self { tracks, texts, edges, unnamed: 0, max_edges, refused: 0 }
    }

    /// Whether any edge has to be named.
    pub fn has_unnamed(&self) -> bool {
        self.unnamed > 0
    }

    /// Adds an edge, which is the event of this number.
    pub fn add(&mut self, number: u64, track: T, event: &Dynamic<'_>, begins: bool) {
        if self.edges.len() >= self.max_edges {
            self.refused += 1;
            return;
        }
        self.unnamed += u64::from(event.name.is_empty());
        let next = self.tracks.len() as u32;
        let track = *self.tracks.entry(track).or_insert(next);
        let mut text = |text: &str| match self.texts.get(text) {
            Some(number) => *number,
            None => {
                let number = self.texts.len() as u32;
                self.texts.insert(text.to_owned(), number);
                number
            }
        };
        let (name, category) = (text(&event.name), text(&event.category));
        self.edges.push(Edge { time: event.time, event: number, track, name, category, begins });
    }

    /// What edges are called that are not called as the format says: an end without a name as
    /// its beginning, and the other way round. Ends go to the innermost open span of their track
    /// whose name and category do not contradict theirs.
    pub fn names(mut self) -> Names {
        let mut named = Vec::new();
        if self.unnamed > 0 {
            self.edges.sort_unstable_by_key(|edge| (edge.track, edge.time, edge.event));
            let mut open: Vec<Edge> = Vec::new();
            let mut track = None;
            for end in &self.edges {
                if track != Some(end.track) {
                    track = Some(end.track);
                    open.clear();
                }
                if end.begins {
                    open.push(*end);
                    continue;
                }
                let fits = |a: u32, b: u32| a == b || a == 0 || b == 0;
                let found = open.iter().rev().take(SEARCH_MAX).position(|begin| {
                    fits(begin.name, end.name) && fits(begin.category, end.category)
                });
                let Some(above) = found else { continue };
                let begin = open.remove(open.len() - 1 - above);
                let either = |a: u32, b: u32| if a == 0 { b } else { a };
                let (name, category) =
                    (either(begin.name, end.name), either(begin.category, end.category));
                for edge in [&begin, end] {
                    if (edge.name, edge.category) != (name, category) {
                        named.push((edge.event, name, category));
                    }
                }
            }
            named.sort_unstable();
        }
        let mut texts = vec![String::new(); self.texts.len()];
        self.texts.into_iter().for_each(|(text, number)| texts[number as usize] = text);
        Names { texts, named, next: 0 }
    }
}

/// What events are called, by their numbers in the order of the file.
#[derive(Debug, Default)]
pub struct Names {
    texts: Vec<String>,
    named: Vec<(u64, u32, u32)>,
    next: usize,
}

impl Names {
    /// Begins a walk.
    pub fn rewind(&mut self) {
        self.next = 0;
    }

    /// Name and category of an event; numbers grow.
    pub fn get(&mut self, number: u64) -> Option<(&str, &str)> {
        while let Some((event, name, category)) = self.named.get(self.next) {
            if *event > number {
                return None;
            }
            self.next += 1;
            if *event == number {
                let text = |number: u32| self.texts[number as usize].as_str();
                return Some((text(*name), text(*category)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lane;
    use super::*;

    #[test]
    fn ends_go_to_the_innermost_span_that_fits() {
        let mut ends = Ends::new(1 << 16);
        // In the order of a file that is not sorted.
        let events = [
            (20, 'E', "", ""),
            (0, 'B', "a", ""),
            (10, 'E', "", ""),
            (5, 'B', "b", "x"),
            (30, 'B', "", ""),
            (31, 'B', "c", "y"),
            (32, 'E', "d", ""),
            (33, 'E', "", "z"),
            (34, 'E', "", "y"),
        ];
        for (number, (time, phase, name, category)) in (0..).zip(events) {
            let event = Dynamic {
                lane: Lane::Global,
                tag: 0,
                category: category.into(),
                name: name.into(),
                time,
                writer: None,
                context: Vec::new(),
                payload: Vec::new(),
            };
            ends.add(number, (), &event, phase == 'B');
        }
        assert!(ends.has_unnamed());
        let mut names = ends.names();
        let all: Vec<_> =
            (0..9).map(|n| names.get(n).map(|(a, b)| (a.to_owned(), b.to_owned()))).collect();
        let some = |name: &str, category: &str| Some((name.to_owned(), category.to_owned()));
        assert_eq!(
            all,
            [
                some("a", ""),
                None,
                some("b", "x"),
                None,
                some("d", ""),
                None,
                None,
                None,
                some("c", "y")
            ]
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut ends = Ends::new(2 * size_of::<Edge>() as u64);
        let event = Dynamic {
            lane: Lane::Global,
            tag: 0,
            category: "".into(),
            name: "".into(),
            time: 0,
            writer: None,
            context: Vec::new(),
            payload: Vec::new(),
        };
        (0..5).for_each(|number| ends.add(number, (), &event, true));
        assert_eq!((ends.edges.len(), ends.refused), (2, 3));
    }
}
