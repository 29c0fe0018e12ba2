// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Innermost named span of a thread or CPU at a time.

use std::collections::BTreeSet;

use lateralis_units::Nanos;

/// Name of the innermost span from each time on; ascending times.
#[derive(Debug, Clone, Default)]
pub struct Labels(Vec<(Nanos, Option<u32>)>);

impl Labels {
    /// From spans (begin, end, name) in any order. The innermost is the one that began last; among those
    /// that began at the same time, the one that ends first.
    ///
    /// Cost: O(n log n).
    pub fn new(spans: &[(Nanos, Nanos, u32)]) -> Self {
        let mut edges: Vec<(Nanos, bool, usize)> = Vec::with_capacity(2 * spans.len());
        for (index, &(begin, end, _)) in spans.iter().enumerate() {
            if begin < end {
                edges.push((begin, true, index));
                edges.push((end, false, index));
            }
        }
        edges.sort_unstable();
        let place = |index: usize| (spans[index].0, std::cmp::Reverse(spans[index].1), index);
        let mut open = BTreeSet::new();
        let mut labels: Vec<(Nanos, Option<u32>)> = Vec::new();
        for (time, begins, index) in edges {
            if begins {
                open.insert(place(index));
            } else {
                open.remove(&place(index));
            }
            let name = open.last().map(|&(.., index)| spans[index].2);
            if labels.last().is_some_and(|last| last.0 == time) {
                labels.pop();
            }
            if labels.last().map(|last| last.1) != Some(name) {
                labels.push((time, name));
            }
        }
        Self(labels)
    }

    /// The interval that contains the moment just before `time`: its begin, and its name.
    pub fn before(&self, time: Nanos) -> (Nanos, Option<u32>) {
        let behind = self.0.partition_point(|label| label.0 < time);
        match behind.checked_sub(1).and_then(|index| self.0.get(index)) {
            Some(label) => *label,
            None => (Nanos(i64::MIN), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_names_each_stretch() {
        let span = |begin, end, name| (Nanos(begin), Nanos(end), name);
        let labels = Labels::new(&[span(0, 100, 1), span(10, 20, 2), span(15, 40, 3)]);
        let at = |time| labels.before(Nanos(time));
        assert_eq!(at(0), (Nanos(i64::MIN), None));
        assert_eq!(at(1), (Nanos(0), Some(1)));
        assert_eq!(at(15), (Nanos(10), Some(2)));
        assert_eq!(at(40), (Nanos(15), Some(3)));
        assert_eq!(at(100), (Nanos(40), Some(1)));
        assert_eq!(at(101), (Nanos(100), None));
    }
}
