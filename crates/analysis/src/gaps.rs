// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Intervals of the timeline in which events are missing.

use lateralis_model::{Damage, Interval, Loss, LossCause, Quality, StreamIndex};
use lateralis_units::Nanos;

/// Intervals in which events may be missing, of all streams together and of each stream: losses counted
/// by the producer, and damage.
///
/// An interval with an unknown end reaches to the end of time, likewise for an unknown begin: gaps that
/// cannot be excluded are included.
#[derive(Debug, Clone, Default)]
pub struct Gaps {
    all: Stretches,
    /// Gaps that belong to no particular stream.
    anywhere: Stretches,
    streams: Vec<Stretches>,
}

impl Gaps {
    /// From the losses and damage of a trace. `stream_of` returns the stream of a damaged file; damage
    /// that belongs to none counts for all of them.
    ///
    /// Cost: sorts; O(n log n).
    #[must_use]
    pub fn new(
        losses: &[Loss],
        damage: &[Damage],
        stream_of: impl Fn(&str) -> Option<StreamIndex>,
    ) -> Self {
        let real = |loss: &&Loss| loss.count != Some(0);
        let lost = losses.iter().filter(real).map(|loss| (Some(loss.stream), around(loss)));
        let broken = damage.iter().map(|damage| (stream_of(&damage.file), damage.interval));
        let pieces: Vec<(Option<StreamIndex>, Interval)> = lost.chain(broken).collect();
        let count = pieces.iter().filter_map(|(stream, _)| *stream).map(|s| s.0 as usize + 1);
        let mut streams = vec![Stretches::default(); count.max().unwrap_or(0)];
        let (mut all, mut anywhere) = (Stretches::default(), Stretches::default());
        for (stream, interval) in pieces {
            all.merged.push(bounds(interval));
            let of = stream.map_or(&mut anywhere, |stream| &mut streams[stream.0 as usize]);
            of.merged.push(bounds(interval));
        }
        all.merge();
        anywhere.merge();
        streams.iter_mut().for_each(Stretches::merge);
        Self { all, anywhere, streams }
    }

    /// Whether nothing is missing anywhere.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.merged.is_empty()
    }

    /// Whether events may be missing between two times, inclusive, in any stream.
    ///
    /// Cost: a binary search.
    #[must_use]
    pub fn touch(&self, begin: Nanos, end: Nanos) -> bool {
        self.all.touch(begin, end)
    }

    /// Whether events may be missing between two events recorded at these times. A loss that begins at
    /// the time of the later event came after it, and one that ends at the time of the earlier event came
    /// before; only for a loss of length 0 this is undecided.
    ///
    /// Cost: some binary searches.
    #[must_use]
    pub fn between(&self, begin: Nanos, end: Nanos) -> bool {
        self.all.between(begin, end)
    }

    /// Like [`Gaps::between`], for one stream; `None`: for all. Used for everything that holds from one
    /// event to another: the state of a CPU or a thread, and anything derived from it.
    #[must_use]
    pub fn between_in(&self, stream: Option<StreamIndex>, begin: Nanos, end: Nanos) -> bool {
        let Some(stream) = stream else { return self.between(begin, end) };
        let of = self.streams.get(stream.0 as usize);
        of.is_some_and(|stretches| stretches.between(begin, end))
            || self.anywhere.between(begin, end)
    }

    /// Whether events may be missing from `begin` on, inclusive, and before an event recorded at `end`.
    /// For a time at which a selection begins, where no event needs to have been recorded: the end of a
    /// loss at that time is then not before it.
    #[must_use]
    pub fn since(&self, begin: Nanos, end: Nanos) -> bool {
        self.all.touch(begin, Nanos(end.0.saturating_sub(1))) || self.all.is_point(end.0)
    }

    /// Like [`Gaps::touch`], for one stream.
    #[must_use]
    pub fn touch_stream(&self, stream: StreamIndex, begin: Nanos, end: Nanos) -> bool {
        let of = self.streams.get(stream.0 as usize);
        of.is_some_and(|stretches| stretches.touch(begin, end)) || self.anywhere.touch(begin, end)
    }

    /// Quality of a count between two times: it could only be larger.
    #[must_use]
    pub fn of_count(&self, begin: Nanos, end: Nanos) -> Quality {
        if self.touch(begin, end) { Quality::LowerBound } else { Quality::Exact }
    }

    /// Quality of a duration or value that depends on all events between two times.
    #[must_use]
    pub fn of_value(&self, begin: Nanos, end: Nanos) -> Quality {
        if self.touch(begin, end) { Quality::Unknown } else { Quality::Exact }
    }

    /// Gaps of all streams together: disjoint, in time order. An open end is the smallest or the largest
    /// time there is.
    pub fn stretches(&self) -> impl ExactSizeIterator<Item = (Nanos, Nanos)> + '_ {
        self.all.merged.iter().map(|&(begin, end)| (Nanos(begin), Nanos(end)))
    }
}

/// Interval in which the events of a loss are missing.
fn around(loss: &Loss) -> Interval {
    match loss.cause {
        // Events without a ring belong to a thread, not to a time of the stream that reports them: they
        // may be missing anywhere before.
        LossCause::NoRing => Interval { begin: None, end: loss.interval.end },
        _ => loss.interval,
    }
}

fn bounds(interval: Interval) -> (i64, i64) {
    let begin = interval.begin.map_or(i64::MIN, |time| time.0);
    (begin, interval.end.map_or(i64::MAX, |time| time.0).max(begin))
}

/// Closed intervals; disjoint and ascending once merged.
#[derive(Debug, Clone, Default)]
struct Stretches {
    merged: Vec<(i64, i64)>,
    /// Intervals of length 0, ascending: at the end of another interval they are merged with it, but
    /// still count on both sides of an event at that time.
    points: Vec<i64>,
}

impl Stretches {
    fn merge(&mut self) {
        self.merged.sort_unstable();
        let of_no_length = |stretch: &&(i64, i64)| stretch.0 == stretch.1;
        self.points = self.merged.iter().filter(of_no_length).map(|stretch| stretch.0).collect();
        self.points.dedup();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(self.merged.len());
        for &(begin, end) in &self.merged {
            match merged.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((begin, end)),
            }
        }
        self.merged = merged;
    }

    fn is_point(&self, time: i64) -> bool {
        self.points.binary_search(&time).is_ok()
    }

    fn between(&self, begin: Nanos, end: Nanos) -> bool {
        let (after, before) = (begin.0.saturating_add(1), end.0.saturating_sub(1));
        self.touch(Nanos(after), Nanos(before)) || self.is_point(begin.0) || self.is_point(end.0)
    }

    fn touch(&self, begin: Nanos, end: Nanos) -> bool {
        let behind = self.merged.partition_point(|stretch| stretch.1 < begin.0);
        self.merged.get(behind).is_some_and(|stretch| stretch.0 <= end.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::DamageReason;
    use proptest::prelude::*;

    fn loss(stream: u32, begin: Option<i64>, end: Option<i64>) -> Loss {
        let interval = Interval { begin: begin.map(Nanos), end: end.map(Nanos) };
        Loss { stream: StreamIndex(stream), cause: LossCause::Full, count: Some(1), interval }
    }

    fn damage(begin: i64, end: i64) -> Damage {
        Damage {
            file: "x".into(),
            begin_bytes: 0,
            end_bytes: 1,
            reason: DamageReason::BadTime,
            interval: Interval { begin: Some(Nanos(begin)), end: Some(Nanos(end)) },
        }
    }

    #[test]
    fn ends_belong_to_a_stretch() {
        let gaps = Gaps::new(&[loss(1, Some(10), Some(20))], &[], |_| None);
        for (begin, end, touched) in
            [(0, 9, false), (0, 10, true), (12, 13, true), (20, 30, true), (21, 30, false)]
        {
            assert_eq!(gaps.touch(Nanos(begin), Nanos(end)), touched, "{begin}..{end}");
        }
        assert!(gaps.touch_stream(StreamIndex(1), Nanos(15), Nanos(15)));
        assert!(!gaps.touch_stream(StreamIndex(0), Nanos(15), Nanos(15)));
        assert!(!gaps.touch_stream(StreamIndex(7), Nanos(15), Nanos(15)));
    }

    #[test]
    fn what_is_recorded_at_the_end_of_a_loss_is_before_or_after_it() {
        let losses = [loss(0, Some(10), Some(20)), loss(0, Some(30), Some(30))];
        let gaps = Gaps::new(&losses, &[], |_| None);
        for (begin, end, missing) in [
            (0, 10, false),
            (10, 10, false),
            (10, 11, true),
            (15, 15, true),
            (5, 25, true),
            (20, 29, false),
            (20, 30, true),
            (30, 40, true),
            (31, 40, false),
        ] {
            assert_eq!(gaps.between(Nanos(begin), Nanos(end)), missing, "{begin}..{end}");
        }
    }

    #[test]
    fn a_loss_of_no_length_at_the_end_of_another_is_on_both_sides_of_an_event() {
        let losses = [loss(0, Some(10), Some(20)), loss(0, Some(20), Some(20))];
        let gaps = Gaps::new(&losses, &[], |_| None);
        for stream in [None, Some(StreamIndex(0))] {
            assert!(gaps.between_in(stream, Nanos(20), Nanos(25)));
            assert!(!gaps.between_in(stream, Nanos(21), Nanos(25)));
        }
        assert!(!gaps.between_in(Some(StreamIndex(1)), Nanos(5), Nanos(25)));
    }

    #[test]
    fn where_a_selection_begins_no_event_needs_to_be() {
        let gaps = Gaps::new(&[loss(0, Some(10), Some(20))], &[], |_| None);
        for (begin, end, missing) in
            [(20, 30, true), (21, 30, false), (5, 10, false), (10, 10, false), (10, 11, true)]
        {
            assert_eq!(gaps.since(Nanos(begin), Nanos(end)), missing, "{begin}..{end}");
        }
        assert!(!gaps.between(Nanos(20), Nanos(30)));
    }

    #[test]
    fn an_unknown_end_is_open() {
        let gaps = Gaps::new(&[loss(0, None, Some(5)), loss(0, Some(9), None)], &[], |_| None);
        assert_eq!(gaps.of_count(Nanos(i64::MIN), Nanos(0)), Quality::LowerBound);
        assert_eq!(gaps.of_value(Nanos(6), Nanos(8)), Quality::Exact);
        assert_eq!(gaps.of_value(Nanos(1 << 60), Nanos(1 << 61)), Quality::Unknown);
    }

    #[test]
    fn nothing_lost_is_no_gap() {
        let none = Loss { count: Some(0), ..loss(0, Some(1), Some(2)) };
        assert!(Gaps::new(&[none], &[], |_| None).is_empty());
    }

    proptest! {
        #[test]
        fn touching_is_what_looking_at_every_loss_says(
            raw in prop::collection::vec((0u32..3, 0i64..50, 0i64..10), 0..12),
            broken in prop::collection::vec((0i64..50, 0i64..10), 0..3),
            asked in (0i64..60, 0i64..10),
        ) {
            let losses: Vec<Loss> =
                raw.iter().map(|&(s, at, long)| loss(s, Some(at), Some(at + long))).collect();
            let damages: Vec<Damage> =
                broken.iter().map(|&(at, long)| damage(at, at + long)).collect();
            let gaps = Gaps::new(&losses, &damages, |_| None);
            let (begin, end) = (asked.0, asked.0 + asked.1);
            let hit = |at: i64, long: i64| at <= end && begin <= at + long;
            let in_damage = broken.iter().any(|&(at, long)| hit(at, long));
            let expected = in_damage || raw.iter().any(|&(_, at, long)| hit(at, long));
            prop_assert_eq!(gaps.touch(Nanos(begin), Nanos(end)), expected);
            for stream in 0..3 {
                let of = |&&(s, at, long): &&(u32, i64, i64)| s == stream && hit(at, long);
                let expected = in_damage || raw.iter().find(of).is_some();
                let got = gaps.touch_stream(StreamIndex(stream), Nanos(begin), Nanos(end));
                prop_assert_eq!(got, expected);
            }
        }
    }
}
