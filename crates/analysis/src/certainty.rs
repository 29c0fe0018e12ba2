// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decides which pairs would stay the same if the missing events were put back.
//!
//! Losses of every stream count: any of them may contain the other half of a pair.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use lateralis_units::Nanos;

use crate::{Gaps, Message, Span};

/// Keys whose doubts are remembered individually; further ones make all spans of their kind doubtful.
const KEYS_MAX: usize = 1 << 16;

/// Separates certain spans from uncertain ones, as a [`crate::Pairer`] produces them.
///
/// A span is certain if no event is missing inside it; if it ended on the thread that began it (otherwise
/// a begin on its own thread may be missing, however long ago); and if no doubtful end with the same key
/// came in between, as that may have ended this span.
///
/// Cost: a search in the gaps and a lookup; none if no events are missing. Memory: proportional to
/// doubtful keys, at most 65 536.
#[derive(Debug, Clone, Default)]
pub struct SpanCertainty {
    gaps: Gaps,
    begin: Nanos,
    /// Time of the last doubt about each key.
    doubted: HashMap<(u32, u64), Nanos, RandomState>,
    /// Time of the last doubt about all spans of a kind.
    doubted_kinds: HashMap<u32, Nanos, RandomState>,
    /// Time of the last doubt about any kind.
    doubted_any: Option<Nanos>,
    /// Kinds without certain spans: the recorder dropped some of their events, or their threads are
    /// unknown.
    uncertain: HashSet<u32, RandomState>,
}

impl SpanCertainty {
    /// For events from `begin` on, with these gaps.
    #[must_use]
    pub fn new(begin: Nanos, gaps: Gaps) -> Self {
        Self { gaps, begin, ..Self::default() }
    }

    /// Replaces the known gaps; earlier results are not revised.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.gaps = gaps;
    }

    /// Intervals in which events are missing.
    #[must_use]
    pub fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// Marks all spans of a kind as uncertain, whatever is missing.
    pub fn set_uncertain(&mut self, kind: u32) {
        self.uncertain.insert(kind);
    }

    /// Whether a span is certain; call once per span of a kind, in the order of their ends.
    #[inline]
    pub fn is_certain(&mut self, kind: u32, span: &Span) -> bool {
        (self.gaps.is_empty() || self.is_certain_among_gaps(kind, span))
            && (self.uncertain.is_empty() || !self.uncertain.contains(&kind))
    }

    fn is_certain_among_gaps(&mut self, kind: u32, span: &Span) -> bool {
        let (begin, end) = (span.begin.time, span.end.time);
        let is_whole = !match span.begin.writer == span.end.writer {
            true => self.gaps.between(begin.min(end), end),
            false => self.gaps.since(self.begin.min(end), end),
        };
        let key = span.begin.key.map(|key| (kind, key));
        // Without a key, only its own thread ends a span.
        let of_key = key.and_then(|key| self.doubted.get(&key));
        let doubts = of_key.into_iter().chain(self.doubted_kinds.get(&kind));
        let is_certain = is_whole && doubts.max().is_none_or(|doubted| *doubted < begin);
        if !is_certain {
            self.doubted_any = self.doubted_any.max(Some(end));
            match key {
                Some(key) if self.doubted.len() < KEYS_MAX || self.doubted.contains_key(&key) => {
                    self.doubted.insert(key, end);
                }
                Some(_) => {
                    self.doubted_kinds.insert(kind, end);
                }
                None => {}
            }
        }
        is_certain
    }

    /// Notes an event of a kind that is left out because its thread is unknown: it may have begun or
    /// ended a span inside of any open one.
    pub fn doubt(&mut self, kind: u32, time: Nanos) {
        self.doubted_kinds.insert(kind, time);
        self.doubt_own(time);
    }

    /// Notes the begin of a span whose thread is unknown: it may be inside of any open span.
    pub fn doubt_own(&mut self, time: Nanos) {
        self.doubted_any = self.doubted_any.max(Some(time));
    }

    /// Whether the self time of a span is certain: no event is missing in it, and no doubtful end came
    /// that may belong to a span inside it.
    #[must_use]
    pub fn is_own_certain(&self, begin: Nanos, end: Nanos) -> bool {
        // Uncertain spans may have been inside of any span.
        self.uncertain.is_empty()
            && (self.gaps.is_empty()
                || (self.doubted_any.is_none_or(|doubted| doubted < begin)
                    && !self.gaps.between(begin.min(end), end)))
    }
}

/// Confidence that two ends belong to one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// They do.
    Certain,
    /// They do, unless a message with the same key was in flight at the same time and its send or receive
    /// is missing.
    Likely,
    /// Events are missing between them. Or they are matched by order alone and an earlier event is
    /// missing, so that each send may belong to another receive.
    Doubtful,
}

impl Joined {
    /// For a message among those from `begin` on.
    ///
    /// Cost: two searches in the gaps.
    #[must_use]
    pub fn of<E>(message: &Message<E>, gaps: &Gaps, begin: Nanos) -> Self {
        let (sent, received) = (message.send.time, message.receive.time);
        if !gaps.since(begin.min(sent).min(received), received.max(sent)) {
            Self::Certain
        } else if message.key.is_some() && !gaps.between(sent.min(received), received.max(sent)) {
            Self::Likely
        } else {
            Self::Doubtful
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edge, End, Matcher, Pairer, Side};
    use lateralis_model::{Interval, Loss, LossCause, StreamIndex, Writer};
    use proptest::prelude::*;

    fn gaps(stretches: &[(i64, i64)]) -> Gaps {
        let loss = |(stream, &(begin, end)): (usize, &(i64, i64))| Loss {
            stream: StreamIndex(stream as u32),
            cause: LossCause::Full,
            count: Some(1),
            interval: Interval { begin: Some(Nanos(begin)), end: Some(Nanos(end)) },
        };
        Gaps::new(&stretches.iter().enumerate().map(loss).collect::<Vec<_>>(), &[], |_| None)
    }

    fn edge(time: i64, side: Side, tid: u32) -> Edge {
        let writer = Some(Writer { pid: tid / 4, tid });
        Edge { time: Nanos(time), side, key: Some(7), writer }
    }

    #[test]
    fn an_end_that_took_anothers_beginning_puts_the_next_in_doubt() {
        // Thread 2 began at 1, which is missing; its end at 12 takes the begin at 11, and 13 gets the one
        // at 10.
        let edges = [
            edge(10, Side::Begin, 1),
            edge(11, Side::Begin, 1),
            edge(12, Side::End, 2),
            edge(13, Side::End, 1),
            edge(20, Side::Begin, 1),
            edge(21, Side::End, 1),
        ];
        let (mut pairer, mut sure) =
            (Pairer::default(), SpanCertainty::new(Nanos(0), gaps(&[(1, 2)])));
        let spans: Vec<Span> = edges.iter().filter_map(|edge| pairer.push(*edge)).collect();
        let certain: Vec<bool> = spans.iter().map(|span| sure.is_certain(0, span)).collect();
        assert_eq!(certain, [false, false, true]);
    }

    /// A loss that ends at the start of the range, at the time of its last event.
    #[test]
    fn what_is_lost_where_the_time_begins_may_have_begun_a_span_of_the_thread_that_ends_one() {
        // Thread 2 began at 5, which is missing; its end at 8 takes the begin at 6.
        let span = Span { begin: edge(6, Side::Begin, 1), end: edge(8, Side::End, 2) };
        for (lost, is_certain) in [((3, 5), false), ((3, 4), true), ((8, 9), true)] {
            let mut sure = SpanCertainty::new(Nanos(5), gaps(&[lost]));
            assert_eq!(sure.is_certain(0, &span), is_certain, "{lost:?}");
        }
    }

    #[test]
    fn after_a_loss_the_order_alone_joins_no_messages() {
        let end = |time| End {
            time: Nanos(time),
            stream: StreamIndex(0),
            cpu: None,
            writer: None,
            event: (),
        };
        let message =
            |key, sent, received| Message { key, send: end(sent), receive: end(received) };
        let gaps = gaps(&[(10, 12)]);
        let of = |message: &Message| Joined::of(message, &gaps, Nanos(0));
        assert_eq!(of(&message(None, 3, 9)), Joined::Certain);
        assert_eq!(of(&message(None, 20, 21)), Joined::Doubtful);
        assert_eq!(of(&message(Some(5), 20, 21)), Joined::Likely);
        assert_eq!(of(&message(Some(5), 9, 21)), Joined::Doubtful);
        assert_eq!(Joined::of(&message(None, 20, 21), &gaps, Nanos(15)), Joined::Certain);
    }

    /// Whether a time is in a lost interval.
    fn is_lost(stretches: &[(i64, i64)], time: i64) -> bool {
        stretches.iter().any(|&(begin, end)| begin <= time && time <= end)
    }

    proptest! {
        #[test]
        fn certain_spans_are_there_when_lost_events_are_put_back(
            raw in prop::collection::vec((any::<bool>(), 0u64..3, 0u32..6), 0..120),
            lost in prop::collection::vec((0i64..120, 0i64..20), 0..3),
        ) {
            let edges: Vec<Edge> = raw.iter().enumerate().map(|(at, &(begins, key, tid))| Edge {
                key: key.checked_sub(1),
                ..edge(at as i64 + 1, if begins { Side::Begin } else { Side::End }, tid)
            }).collect();
            let stretches: Vec<(i64, i64)> = lost.iter().map(|&(at, long)| (at, at + long)).collect();
            let spans = |with_lost: bool| -> Vec<Span> {
                let mut pairer = Pairer::default();
                let all = edges.iter().filter(|e| with_lost || !is_lost(&stretches, e.time.0));
                all.filter_map(|edge| pairer.push(*edge)).collect()
            };
            let truth = spans(true);
            let mut sure = SpanCertainty::new(Nanos(0), gaps(&stretches));
            for span in spans(false) {
                let is_certain = sure.is_certain(0, &span);
                prop_assert!(!is_certain || truth.contains(&span), "{:?}", span);
                prop_assert!(is_certain || !stretches.is_empty());
            }
        }

        #[test]
        fn certain_messages_are_there_when_lost_ends_are_put_back(
            raw in prop::collection::vec((any::<bool>(), 0u64..3), 0..120),
            lost in prop::collection::vec((0i64..120, 0i64..20), 0..3),
        ) {
            let stretches: Vec<(i64, i64)> = lost.iter().map(|&(at, long)| (at, at + long)).collect();
            let messages = |with_lost: bool| -> Vec<Message> {
                let mut matcher = Matcher::default();
                let mut found = Vec::new();
                for (at, &(sends, key)) in raw.iter().enumerate() {
                    let time = at as i64 + 1;
                    if !with_lost && is_lost(&stretches, time) {
                        continue;
                    }
                    let (time, stream) = (Nanos(time), StreamIndex(0));
                    let end = End { time, stream, cpu: None, writer: None, event: () };
                    if sends {
                        matcher.send(key.checked_sub(1), end);
                    } else {
                        found.extend(matcher.receive(key.checked_sub(1), end, false));
                    }
                }
                found
            };
            let truth = messages(true);
            let gaps = gaps(&stretches);
            for message in messages(false) {
                let joined = Joined::of(&message, &gaps, Nanos(0));
                prop_assert!(joined != Joined::Certain || truth.contains(&message), "{:?}", message);
                prop_assert!(joined == Joined::Certain || !stretches.is_empty());
            }
        }
    }
}
