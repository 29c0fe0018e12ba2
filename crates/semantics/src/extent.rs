// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Start and end of a recording. Decided here for every consumer, so that lengths and rates agree.
//!
//! It begins with its first event. It ends with its last event, or with a complete span that ends later:
//! such a span (Chrome's `X`) is one event, recorded at its begin.

use lateralis_units::Nanos;

use crate::derived::{DerivedSpan, SpanStatus};
use crate::facts::{At, Fact};

/// End of a complete span.
#[inline]
pub(crate) fn end_of_whole(begin: Nanos, duration_ns: u64) -> Nanos {
    Nanos(begin.0.saturating_add_unsigned(duration_ns))
}

impl Fact {
    /// Lower bound of the end of the recording, if a fact gives one.
    #[must_use]
    #[inline]
    pub fn lasts_until(&self, at: &At) -> Nanos {
        match *self {
            Self::Whole { duration_ns, .. } => end_of_whole(at.time, duration_ns),
            _ => at.time,
        }
    }
}

/// Start and end of a recording, or of its selected events, as far as it has been read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    begin: Option<Nanos>,
    end: Option<Nanos>,
}

impl Extent {
    /// Adds events by their earliest and latest time.
    #[inline]
    pub fn add_events(&mut self, first: Nanos, last: Nanos) {
        self.begin = Some(self.begin.map_or(first, |begin| begin.min(first)));
        self.reach(last);
    }

    /// Adds the end of an event that was already added.
    #[inline]
    pub fn reach(&mut self, end: Nanos) {
        self.end = self.end.max(Some(end));
    }

    /// Adds a span derived from events that were already added.
    #[inline]
    pub fn add_span<E>(&mut self, span: &DerivedSpan<E>) {
        if let (SpanStatus::Whole, Some(end)) = (span.status, &span.end) {
            self.reach(end.edge.time);
        }
    }

    /// Limits the extent to the end of the selected time range.
    #[must_use]
    pub fn until(self, chosen_end: Option<Nanos>) -> Self {
        let end = self.end.map(|end| chosen_end.map_or(end, |chosen| end.min(chosen)));
        Self { end: end.map(|end| self.begin.map_or(end, |begin| end.max(begin))), ..self }
    }

    /// Time of the first event; `None` if there is none.
    #[must_use]
    pub fn begin(&self) -> Option<Nanos> {
        self.begin
    }

    /// The end; `None` if there is no event.
    #[must_use]
    pub fn end(&self) -> Option<Nanos> {
        self.end
    }

    /// Nanoseconds from start to end; 0 if there are no events.
    #[must_use]
    pub fn nanos(&self) -> i64 {
        self.begin.zip(self.end).map_or(0, |(begin, end)| end.since(begin).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_that_of_the_last_span_within_the_chosen_time() {
        let mut extent = Extent::default();
        assert_eq!((extent.begin(), extent.end(), extent.nanos()), (None, None, 0));
        extent.add_events(Nanos(10), Nanos(30));
        extent.reach(end_of_whole(Nanos(20), 40));
        extent.add_events(Nanos(5), Nanos(50));
        assert_eq!((extent.begin(), extent.end()), (Some(Nanos(5)), Some(Nanos(60))));
        assert_eq!(extent.until(Some(Nanos(55))).nanos(), 50);
        assert_eq!(extent.until(Some(Nanos(90))).nanos(), 55);
        assert_eq!(end_of_whole(Nanos(7), u64::MAX), Nanos(i64::MAX));
    }
}
