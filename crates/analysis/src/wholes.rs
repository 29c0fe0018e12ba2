// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Complete spans of one event, nested by their times among the others of their thread.
//!
//! ```text
//! events     a: 0, 10 ns    b: 2, 3 ns    c: 7, 2 ns
//! thread     (a (b  )b   (c )c )a
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lateralis_units::Nanos;

use crate::Nesting;

/// Key of complete spans on the stacks of a [`Nesting`], so that no end of another span of their kind
/// matches them.
const KEY: Option<u64> = Some(u64::MAX);

/// A complete span that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ended {
    /// Time of its end.
    pub end: Nanos,
    /// Time of its begin.
    pub begin: Nanos,
    /// Its kind.
    pub kind: u32,
    /// Self time in nanoseconds.
    pub own_nanos: u64,
}

#[derive(Debug, Clone, Default)]
struct Thread {
    /// Spans that began at one time: their nesting is known when the next one comes.
    begun: Vec<(Nanos, Nanos, u32)>,
    /// Open spans: earliest end first; of equal ends, the one that began last.
    open: BinaryHeap<Reverse<(Nanos, Reverse<Nanos>, u32)>>,
}

/// Begins and ends complete spans in a [`Nesting`] at their times.
///
/// Threads are small numbers ([`crate::Numbering`]). Cost: logarithmic in the spans open on the thread;
/// memory proportional to these and to threads.
#[derive(Debug, Clone, Default)]
pub struct Wholes {
    threads: Vec<Thread>,
}

impl Wholes {
    /// Whether there was no complete span.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Adds a span. For each thread in the order of begins, after [`Wholes::reach`] for it.
    pub fn begin(&mut self, thread: u32, kind: u32, begin: Nanos, end: Nanos) {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Thread::default);
        }
        self.threads[index].begun.push((begin, end.max(begin), kind));
    }

    /// Advances the time of a thread. `is_edge` if its next item is not a complete span: then spans that
    /// begin at the same time come before it.
    #[inline]
    pub fn reach<T: Copy + Default>(
        &mut self,
        nesting: &mut Nesting<T>,
        thread: u32,
        time: Nanos,
        is_edge: bool,
        mut see: impl FnMut(Ended),
    ) {
        let Some(of) = self.threads.get_mut(thread as usize) else {
            return;
        };
        let has_passed = |begun: &(Nanos, Nanos, u32)| begun.0 < time || is_edge;
        if of.begun.first().is_some_and(has_passed) {
            of.settle(nesting, thread);
        }
        of.end_until(nesting, thread, time, &mut see);
    }

    /// Ends all spans.
    pub fn finish<T: Copy + Default>(
        &mut self,
        nesting: &mut Nesting<T>,
        mut see: impl FnMut(Ended),
    ) {
        for (thread, of) in self.threads.iter_mut().enumerate() {
            of.settle(nesting, thread as u32);
            of.end_until(nesting, thread as u32, Nanos(i64::MAX), &mut see);
        }
    }
}

impl Thread {
    /// Of spans that begin together, the longest is the outermost.
    fn settle<T: Copy + Default>(&mut self, nesting: &mut Nesting<T>, thread: u32) {
        self.begun.sort_by_key(|&(begin, end, _)| (begin, Reverse(end)));
        for (begin, end, kind) in self.begun.drain(..) {
            nesting.begin(thread, kind, KEY, begin);
            self.open.push(Reverse((end, Reverse(begin), kind)));
        }
    }

    fn end_until<T: Copy + Default>(
        &mut self,
        nesting: &mut Nesting<T>,
        thread: u32,
        time: Nanos,
        see: &mut impl FnMut(Ended),
    ) {
        while let Some(Reverse((end, Reverse(begin), kind))) = self.open.peek().copied() {
            if end > time {
                break;
            }
            self.open.pop();
            if let Some(own_nanos) = nesting.end(thread, kind, KEY, begin, end) {
                see(Ended { end, begin, kind, own_nanos });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Self times by kind of spans (begin, end), the kind being their index.
    fn run(spans: &[(i64, i64)]) -> Vec<u64> {
        let (mut wholes, mut nesting) = (Wholes::default(), Nesting::<()>::default());
        let mut own = vec![0; spans.len()];
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_by_key(|index| spans[*index].0);
        for index in order {
            let (begin, end) = (Nanos(spans[index].0), Nanos(spans[index].1));
            let see = |ended: Ended| own[ended.kind as usize] = ended.own_nanos;
            wholes.reach(&mut nesting, 0, begin, false, see);
            wholes.begin(0, index as u32, begin, end);
        }
        wholes.finish(&mut nesting, |ended| own[ended.kind as usize] = ended.own_nanos);
        assert_eq!(nesting.depth(0), 0);
        own
    }

    #[test]
    fn what_is_inside_is_taken_off() {
        assert_eq!(run(&[(0, 10), (2, 5), (7, 9)]), [5, 3, 2]);
        assert_eq!(run(&[(0, 10), (2, 5), (3, 4)]), [7, 2, 1]);
        assert_eq!(run(&[(0, 10), (10, 20)]), [10, 10]);
        // Of spans that begin together, the longest is the outermost, in any order.
        assert_eq!(run(&[(0, 3), (0, 10), (0, 5)]), [3, 5, 2]);
    }

    #[test]
    fn whole_spans_and_others_are_inside_of_each_other() {
        let (mut wholes, mut nesting) = (Wholes::default(), Nesting::<()>::default());
        let mut own = Vec::new();
        nesting.begin(0, 0, None, Nanos(0));
        wholes.begin(0, 1, Nanos(2), Nanos(8));
        wholes.reach(&mut nesting, 0, Nanos(4), true, |_| panic!("nothing ends"));
        nesting.begin(0, 2, None, Nanos(4));
        assert_eq!(nesting.end(0, 2, None, Nanos(4), Nanos(5)), Some(1));
        wholes.reach(&mut nesting, 0, Nanos(10), true, |ended| own.push(ended.own_nanos));
        assert_eq!((own, nesting.end(0, 0, None, Nanos(0), Nanos(10))), (vec![5], Some(4)));
    }

    proptest! {
        #[test]
        fn each_moment_is_of_the_span_that_began_last(
            raw in prop::collection::vec((0i64..60, 0i64..20), 0..20),
        ) {
            let spans: Vec<(i64, i64)> = raw.iter().map(|&(at, long)| (at, at + long)).collect();
            let own = run(&spans);
            // Of two that begin together, the shorter is inside; for equal ones only their sum is
            // compared.
            let mut expected = vec![0; spans.len()];
            for moment in 0..80 {
                let open = spans.iter().enumerate().filter(|(_, s)| s.0 <= moment && moment < s.1);
                if let Some((index, _)) = open.max_by_key(|(_, s)| (s.0, Reverse(s.1))) {
                    expected[index] += 1;
                }
            }
            let mut sums = std::collections::BTreeMap::new();
            for (index, span) in spans.iter().enumerate() {
                let of: &mut (u64, u64) = sums.entry(*span).or_default();
                of.0 += own[index];
                of.1 += expected[index];
            }
            prop_assert!(sums.values().all(|(own, expected)| own == expected), "{:?}", sums);
        }
    }
}
