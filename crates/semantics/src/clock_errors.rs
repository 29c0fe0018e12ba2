// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Uncertainty of durations that begin in one recording and end in another.

use std::collections::HashMap;

use lateralis_model::{Quality, StreamIndex};
use lateralis_traces::{Joined, TimeBase};

/// Clocks that are compared in pairs.
const CLOCKS_MAX: usize = 256;
/// Pairs of traces whose error is cached.
const KNOWN_MAX: usize = 1 << 16;

/// Error between the clocks of two streams in nanoseconds; see [`lateralis_traces::Tie`].
///
/// Cost: none for one trace with one clock; otherwise two binary searches and a lookup. Memory:
/// proportional to the traces, plus at most 65 536 cached pairs of clocks.
#[derive(Debug, Clone, Default)]
pub struct ClockErrors {
    /// First stream of each trace.
    first_streams: Vec<u32>,
    bases: Vec<Option<TimeBase>>,
    /// Index into the bases by stream, for streams of traces with several clocks.
    of_several: HashMap<u32, usize>,
    known: HashMap<(usize, usize), Option<u64>>,
}

impl ClockErrors {
    /// For the traces of one timeline.
    #[must_use]
    pub fn of(source: &Joined) -> Self {
        let mut bases = source.bases().to_vec();
        let mut of_several = HashMap::new();
        let mut next = 0;
        let first = |part: &lateralis_traces::Part| {
            next += part.source.streams().len() as u32;
            next
        };
        let ends: Vec<u32> = source.parts().iter().map(first).collect();
        let first_streams: Vec<u32> = std::iter::once(0).chain(ends).take(bases.len()).collect();
        for (number, (part, first)) in source.parts().iter().zip(&first_streams).enumerate() {
            let several = TimeBase::of_several(part.source.as_ref(), &part.place);
            let places: HashMap<usize, usize> =
                several.keys().copied().zip(bases.len()..).collect();
            let classes = &part.source.trace().stream_classes;
            let streams = part.source.streams();
            let clock_of = |class: u32| classes.get(class as usize).and_then(|class| class.clock);
            let known = streams.iter().zip(*first..).filter_map(|(stream, number)| {
                Some((number, *places.get(&clock_of(stream.class)?)?))
            });
            let before = of_several.len();
            of_several.extend(known);
            // The trace as a whole has no clock, and no stream needs one.
            if of_several.len() - before == streams.len()
                && let Some(base) = bases.get_mut(number)
            {
                *base = several.values().next().cloned().or(base.take());
            }
            bases.extend(several.into_values().map(Some));
        }
        Self { first_streams, bases, of_several, known: HashMap::new() }
    }

    /// Error between two times, one of each stream: 0 if they share a clock, `None` if it is unbounded.
    #[inline]
    pub fn between(&mut self, a: StreamIndex, b: StreamIndex) -> Option<u64> {
        if self.bases.len() < 2 || a == b { Some(0) } else { self.of_traces(a, b) }
    }

    /// Quality of a duration between two clocks: unknown if the duration is not longer than the error of
    /// the clocks.
    #[must_use]
    #[inline]
    pub fn quality(error_ns: Option<u64>, length_ns: u64, quality: Quality) -> Quality {
        match error_ns {
            Some(0) => quality,
            Some(error) if error < length_ns => quality,
            _ => Quality::Unknown,
        }
    }

    /// Largest known error between any two clocks, and whether the error of some pair is unknown.
    ///
    /// Cost: quadratic in the number of clocks; with more than 256 clocks the error is unknown.
    #[must_use]
    pub fn most(&self) -> (u64, bool) {
        let mut is_unknown = false;
        let mut clocks: Vec<&TimeBase> = Vec::new();
        for base in self.bases.iter().filter(|_| self.bases.len() > 1) {
            let Some(base) = base else {
                is_unknown = true;
                continue;
            };
            let is_it = |known: &&TimeBase| known.tie(base).error_ns == Some(0);
            if clocks.iter().any(is_it) {
                continue;
            }
            if clocks.len() >= CLOCKS_MAX {
                is_unknown = true;
                break;
            }
            clocks.push(base);
        }
        let pairs = clocks.iter().enumerate();
        let errors = pairs
            .flat_map(|(at, one)| clocks[at + 1..].iter().map(|other| one.tie(other).error_ns));
        errors.fold((0, is_unknown), |(most, is_unknown), error| match error {
            Some(error) => (error.max(most), is_unknown),
            None => (most, true),
        })
    }

    fn of_traces(&mut self, a: StreamIndex, b: StreamIndex) -> Option<u64> {
        let of = |stream: StreamIndex| {
            let of_trace =
                || self.first_streams.partition_point(|first| *first <= stream.0).saturating_sub(1);
            self.of_several.get(&stream.0).copied().unwrap_or_else(of_trace)
        };
        let (a, b) = (of(a), of(b));
        if a == b {
            return Some(0);
        }
        if let Some(known) = self.known.get(&(a, b)) {
            return *known;
        }
        let error = match (self.bases.get(a), self.bases.get(b)) {
            (Some(Some(a)), Some(Some(b))) => a.tie(b).error_ns,
            _ => None,
        };
        if self.known.len() < KNOWN_MAX {
            self.known.insert((a, b), error);
        }
        error
    }
}
