// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recordings made one after the other: items open at the end of one do not end in the next.
//!
//! ```text
//! first     [ begin 7 … ]
//! second                    [ … end 7  begin 7  end 7 ]
//!                         ▲ all that is open here stays so
//! ```
//!
//! Numbers of threads, processes and requests start anew in the next recording, and events in between are
//! not in either. The recorder stores the length of a recording; its events give less: a stream that ends
//! early and one that begins late may belong to the same time. Recordings that overlap within the error
//! of their clocks share items that have a key.

use lateralis_units::Nanos;

/// Starts of recordings before which all others have ended.
///
/// Cost: a comparison per query. Memory: proportional to the recordings.
#[derive(Debug, Clone, Default)]
pub struct Successions {
    /// End of all recordings before, and start of the next.
    begins: Vec<(Nanos, Nanos)>,
    next: usize,
}

impl Successions {
    /// From the intervals of recordings (`None` if unknown) and the error of their clocks: at most the
    /// first of `errors`, or possibly more if the second is true. If an interval or the error is unknown,
    /// the order of the recordings is unknown.
    #[must_use]
    pub fn of(lengths: Vec<Option<(Nanos, Nanos)>>, errors: (u64, bool)) -> Self {
        let known: Option<Vec<(Nanos, Nanos)>> = lengths.into_iter().collect();
        match (known, errors) {
            (Some(lengths), (most, false)) => Self { begins: begins(lengths, most), next: 0 },
            _ => Self::default(),
        }
    }

    /// If all recordings that began before `time` have ended, returns the time at which the last of them
    /// did. Returns each succession once; call in time order.
    #[inline]
    pub fn comes(&mut self, time: Nanos) -> Option<Nanos> {
        let mut ended = None;
        while let Some((end, _)) = self.begins.get(self.next).filter(|(_, begin)| *begin <= time) {
            self.next += 1;
            ended = Some(*end);
        }
        ended
    }
}

/// Starts of intervals before which all others have ended, by more than the error.
fn begins(mut lengths: Vec<(Nanos, Nanos)>, error_ns: u64) -> Vec<(Nanos, Nanos)> {
    lengths.sort_unstable();
    let mut found = Vec::new();
    let mut last: Option<Nanos> = None;
    for (begin, end) in lengths {
        if let Some(last) = last.filter(|last| last.0.saturating_add_unsigned(error_ns) < begin.0) {
            found.push((last, begin));
        }
        last = last.max(Some(end));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn between_successive_recordings_is_a_time_that_none_covers(
            raw in prop::collection::vec((0i64..100, 0i64..20), 0..8),
            error in 0u64..5,
        ) {
            let lengths: Vec<(Nanos, Nanos)> =
                raw.iter().map(|&(at, long)| (Nanos(at), Nanos(at + long))).collect();
            let is_first = |time: i64| {
                let mut before = raw.iter().filter(|(at, _)| *at < time).peekable();
                before.peek().is_some()
                    && before.all(|(at, long)| at + long + (error as i64) < time)
            };
            let is_begin = |time: &i64| raw.iter().any(|(at, _)| at == time);
            let end_before = |time: i64| {
                let before = raw.iter().filter(|(at, _)| *at < time);
                Nanos(before.map(|(at, long)| at + long).max().unwrap())
            };
            let expected: Vec<(Nanos, Nanos)> = (0..100)
                .filter(is_begin)
                .filter(|time| is_first(*time))
                .map(|time| (end_before(time), Nanos(time)))
                .collect();
            let mut successions = Successions { begins: begins(lengths, error), next: 0 };
            prop_assert_eq!(&successions.begins, &expected);
            let come: Vec<(Nanos, Nanos)> =
                (0..130).filter_map(|t| Some((successions.comes(Nanos(t))?, Nanos(t)))).collect();
            prop_assert_eq!(come, expected);
        }
    }
}
