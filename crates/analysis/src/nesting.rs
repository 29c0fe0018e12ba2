// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Self time: the time in which a span was the innermost of its thread.
//!
//! ```text
//! thread     (a   (b  )b     (b )b  )a
//! innermost   a    b    a     b   a        self time of a = intervals of a
//! ```
//!
//! For nested spans this is the duration minus that of their children. It is also defined for spans that
//! overlap without nesting: the time of a thread is never counted twice.

use lateralis_units::Nanos;

/// Number of open spans that an end searches for its begin.
const SEARCH_MAX: usize = 1024;

/// An open span.
#[derive(Debug, Clone, Copy)]
struct Open<T> {
    kind: u32,
    /// Stream of the begin.
    stream: u32,
    tag: T,
    key: Option<u64>,
    begin: Nanos,
    own_nanos: u64,
}

/// Open spans of one thread.
#[derive(Debug, Clone)]
pub(crate) struct Stack<T = ()> {
    open: Vec<Open<T>>,
    /// Time of the thread up to here has been attributed to spans.
    until: Nanos,
}

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self { open: Vec::new(), until: Nanos::default() }
    }
}

/// Attributes the time of each thread to its innermost open span. Keeps a tag of the begin of each span.
///
/// Threads are small numbers ([`crate::Numbering`]). Memory: proportional to open spans and threads.
#[derive(Debug, Clone)]
pub struct Nesting<T = ()> {
    threads: Vec<Stack<T>>,
}

impl<T> Default for Nesting<T> {
    fn default() -> Self {
        Self { threads: Vec::new() }
    }
}

impl<T: Copy + Default> Nesting<T> {
    #[inline]
    pub(crate) fn stack(&mut self, thread: u32) -> &mut Stack<T> {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Stack::default);
        }
        &mut self.threads[index]
    }

    /// A span begins on a thread. Cost: constant.
    pub fn begin(&mut self, thread: u32, kind: u32, key: Option<u64>, time: Nanos) {
        self.stack(thread).begin(kind, key, (time, 0), T::default());
    }

    /// A span ends on the thread that began it: returns its self time in nanoseconds.
    ///
    /// `None` if it did not begin there at `begin`, or more than 1024 others have begun since and not
    /// ended. Cost: a step for each of those.
    pub fn end(
        &mut self,
        thread: u32,
        kind: u32,
        key: Option<u64>,
        begin: Nanos,
        time: Nanos,
    ) -> Option<u64> {
        let stack = self.stack(thread);
        stack.reach(time);
        let index = stack.find(kind, key, begin)?;
        Some(stack.open.remove(index).own_nanos)
    }

    /// A span ends on another thread. Its share of the thread's time goes to the span below it, because
    /// there it was waiting, not working.
    pub fn leave(&mut self, thread: u32, kind: u32, key: Option<u64>, begin: Nanos, time: Nanos) {
        let stack = self.stack(thread);
        stack.reach(time);
        let Some(index) = stack.find(kind, key, begin) else {
            return;
        };
        let own_nanos = stack.open.remove(index).own_nanos;
        if let Some(below) = index.checked_sub(1).and_then(|below| stack.open.get_mut(below)) {
            below.own_nanos = below.own_nanos.saturating_add(own_nanos);
        }
    }

    /// Time up to which the spans of a thread are known.
    #[must_use]
    pub fn until(&self, thread: u32) -> Nanos {
        self.threads.get(thread as usize).map_or(Nanos(i64::MIN), |stack| stack.until)
    }

    /// Open spans without a key: thread, kind, time of the begin, and tag.
    pub(crate) fn keyless(&self) -> impl Iterator<Item = (u32, u32, Nanos, T)> + '_ {
        (0..).zip(&self.threads).flat_map(|(thread, stack)| {
            let keyless = stack.open.iter().filter(|open| open.key.is_none());
            keyless.map(move |open| (thread, open.kind, open.begin, open.tag))
        })
    }

    /// Drops open spans of some kinds: those with a key, or those without.
    pub(crate) fn forget(&mut self, are_keyed: bool, is_it: impl Fn(u32) -> bool) {
        for stack in &mut self.threads {
            stack.open.retain(|open| open.key.is_some() != are_keyed || !is_it(open.kind));
        }
    }

    /// Number of open spans of a thread.
    #[must_use]
    pub fn depth(&self, thread: u32) -> usize {
        self.threads.get(thread as usize).map_or(0, |stack| stack.open.len())
    }
}

impl<T: Copy> Stack<T> {
    /// Attributes the time up to here to the innermost span.
    #[inline]
    fn reach(&mut self, time: Nanos) {
        if let Some(top) = self.open.last_mut() {
            let nanos = time.since(self.until).max(0) as u64;
            top.own_nanos = top.own_nanos.saturating_add(nanos);
            self.until = self.until.max(time);
        } else {
            self.until = time;
        }
    }

    /// A span begins at a time in a stream.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        kind: u32,
        key: Option<u64>,
        (time, stream): (Nanos, u32),
        tag: T,
    ) {
        self.reach(time);
        self.open.push(Open { kind, stream, tag, key, begin: time, own_nanos: 0 });
    }

    /// The youngest open span of this kind without a key ends at a time in a stream. One that began at
    /// the same time in another stream ends only if no other is open: the order of the two events is
    /// unknown.
    ///
    /// `None` if there is none, or more than 1024 others have begun since and not ended. Cost: a step for
    /// each of those.
    #[inline]
    pub(crate) fn end_youngest(
        &mut self,
        kind: u32,
        (time, stream): (Nanos, u32),
    ) -> Option<(Nanos, u64, T)> {
        self.reach(time);
        let is_it = |open: &Open<T>| open.kind == kind && open.key.is_none();
        let is_before = |open: &Open<T>| open.begin < time || open.stream == stream;
        if let Some(open) = self.open.pop_if(|open| is_it(open) && is_before(open)) {
            return Some((open.begin, open.own_nanos, open.tag));
        }
        let first = self.open.len().saturating_sub(SEARCH_MAX);
        let open = &self.open[first..];
        let before = open.iter().rposition(|open| is_it(open) && is_before(open));
        let index = first + before.or_else(|| open.iter().rposition(is_it))?;
        let open = self.open.remove(index);
        Some((open.begin, open.own_nanos, open.tag))
    }

    fn find(&self, kind: u32, key: Option<u64>, begin: Nanos) -> Option<usize> {
        let is_it = |open: &Open<T>| (open.kind, open.key, open.begin) == (kind, key, begin);
        let first = self.open.len().saturating_sub(SEARCH_MAX);
        self.open[first..].iter().rposition(is_it).map(|index| first + index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Self times in the order of the ends: `kind` is the letter, capitals end a span.
    fn run(line: &str) -> Vec<(char, u64)> {
        let mut nesting = Nesting::<()>::default();
        let mut open: Vec<(char, Nanos)> = Vec::new();
        let mut found = Vec::new();
        for (column, letter) in line.chars().enumerate().filter(|(_, letter)| *letter != ' ') {
            let time = Nanos(column as i64);
            let kind = letter.to_ascii_lowercase();
            if letter.is_lowercase() {
                nesting.begin(0, kind as u32, None, time);
                open.push((kind, time));
            } else {
                let index = open.iter().rposition(|open| open.0 == kind).unwrap();
                let begin = open.remove(index).1;
                found.push((kind, nesting.end(0, kind as u32, None, begin, time).unwrap()));
            }
        }
        assert_eq!(nesting.depth(0), open.len());
        found
    }

    #[test]
    fn children_are_taken_off() {
        assert_eq!(run("a b  B c C A"), [('b', 3), ('c', 2), ('a', 6)]);
        assert_eq!(run("a a  A A"), [('a', 3), ('a', 4)]);
    }

    #[test]
    fn overlapping_spans_share_no_time() {
        assert_eq!(run("a b A B"), [('a', 2), ('b', 4)]);
    }

    #[test]
    fn a_span_that_ends_elsewhere_gives_its_time_back() {
        let mut nesting = Nesting::<()>::default();
        nesting.begin(0, 0, None, Nanos(0));
        nesting.begin(0, 1, Some(7), Nanos(10));
        nesting.leave(0, 1, Some(7), Nanos(10), Nanos(30));
        assert_eq!(nesting.end(0, 0, None, Nanos(0), Nanos(40)), Some(40));
        assert_eq!(nesting.end(0, 0, None, Nanos(0), Nanos(50)), None);
    }

    proptest! {
        #[test]
        fn self_times_add_up_to_the_time_that_any_span_was_open(
            steps in prop::collection::vec((any::<bool>(), 0u64..3, 0i64..10), 0..200),
        ) {
            let mut nesting = Nesting::<()>::default();
            let mut open: Vec<(u64, Nanos)> = Vec::new();
            let (mut time, mut covered, mut own) = (Nanos(0), 0, 0);
            let mut step = |begins: bool, key: u64, open: &mut Vec<(u64, Nanos)>, time: Nanos| {
                let known = open.iter().rposition(|open| open.0 == key);
                match (begins, known) {
                    (false, Some(index)) => {
                        let begin = open.remove(index).1;
                        nesting.end(0, 0, Some(key), begin, time).unwrap()
                    }
                    (false, None) => 0,
                    (true, _) => {
                        open.push((key, time));
                        nesting.begin(0, 0, Some(key), time);
                        0
                    }
                }
            };
            for (begins, key, later) in steps {
                covered += if open.is_empty() { 0 } else { later as u64 };
                time.0 += later;
                own += step(begins, key, &mut open, time);
            }
            while let Some(&(key, _)) = open.last() {
                own += step(false, key, &mut open, time);
            }
            prop_assert_eq!(own, covered);
        }
    }
}
