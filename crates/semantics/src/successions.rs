// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recordings made one after the other: what is open at the end of one is not what ends in the
//! next.
//!
//! ```text
//! first     [ begin 7 … ]
//! second                    [ … end 7  begin 7  end 7 ]
//!                         ▲ all that is open here stays so
//! ```
//!
//! Numbers of threads, processes and requests begin again in the next recording, and whatever
//! happened in between nobody saw. How long a recording lasted its recorder has said; its events
//! tell less: one that sends early and one that receives late may have been there together.
//! Recordings that overlap, by all that their clocks may be off, share what has a key.

use lateralis_units::Nanos;

/// When recordings begin before which all others have ended.
///
/// Cost: a comparison for each question. Memory: by recordings.
#[derive(Debug, Clone, Default)]
pub struct Successions {
    /// The end of all before, and the begin.
    begins: Vec<(Nanos, Nanos)>,
    next: usize,
}

impl Successions {
    /// Of recordings that lasted so long each, `None` where nobody knows, by clocks that are off by
    /// the first of `errors` at most, or, if the second says so, perhaps by more. Where it is not
    /// known how long each lasted and how far clocks are apart, nobody knows which came first.
    #[must_use]
    pub fn of(lengths: Vec<Option<(Nanos, Nanos)>>, errors: (u64, bool)) -> Self {
        let known: Option<Vec<(Nanos, Nanos)>> = lengths.into_iter().collect();
        match (known, errors) {
            (Some(lengths), (most, false)) => Self { begins: begins(lengths, most), next: 0 },
            _ => Self::default(),
        }
    }

    /// If all recordings that began before what happens now have ended: when the last of them did.
    /// Once for each succession; times in order.
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

/// When stretches begin before which all others have ended, by more than an error.
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
