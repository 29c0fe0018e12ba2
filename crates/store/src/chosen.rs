// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selection of events for an analysis: all events of a trace, or some of them.

use std::borrow::Cow;
use std::path::Path;

use lateralis_analysis::Gaps;
use lateralis_model::{
    Damage, Event, Events, Interval, Loss, LossCause, Names, Source, StreamIndex, StreamSummary,
    Trace,
};
use lateralis_semantics::{Deriver, Known};
use lateralis_units::Nanos;

use crate::facts::Facts;
use crate::{ClockErrors, Recording, Successions};

/// Whether there may be events before and after the interval: a trace has them, or it was cut out of one
/// that had them. A source without a known begin or end may have some.
pub(crate) fn is_cut(source: &dyn Source, to: Interval) -> (bool, bool) {
    if source.trace().is_part() {
        return (true, true);
    }
    let of = source.interval();
    let is_before = |begin| of.begin.is_none_or(|first| first < begin);
    let is_behind = |end| of.end.is_none_or(|last| end < last);
    (to.begin.is_some_and(is_before), to.end.is_some_and(is_behind))
}

/// Events of a trace, with the meaning of its classes.
pub struct Chosen<'a> {
    /// The trace.
    pub source: &'a dyn Source,
    /// Its classes with their roles, as returned by [`Recording::annotated`].
    pub trace: Cow<'a, Trace>,
    /// Its streams.
    pub streams: Cow<'a, [StreamSummary]>,
    /// Names of processes and threads.
    pub names: &'a Names,
    /// Errors between the clocks of its streams.
    pub clock_errors: ClockErrors,
    /// Recordings in it that follow others that have ended.
    pub successions: Successions,
    /// Selected time range, inclusive.
    pub interval: Interval,
    /// Selected events in that range. Other events still determine which thread runs where.
    pub contains: &'a dyn Fn(&Event<'_>) -> bool,
    /// Called before each pass over the events, of which there may be several: for selections that depend
    /// on earlier events.
    pub begins: &'a dyn Fn(),
}

impl<'a> Chosen<'a> {
    /// All events of a trace whose classes carry their roles themselves.
    #[must_use]
    pub fn all_of(source: &'a dyn Source) -> Self {
        Self {
            source,
            trace: Cow::Borrowed(source.trace()),
            streams: Cow::Owned(source.streams()),
            names: source.names(),
            clock_errors: ClockErrors::default(),
            successions: Successions::default(),
            interval: Interval::default(),
            contains: &|_| true,
            begins: &|| {},
        }
    }

    /// All events of a recording.
    #[must_use]
    pub fn all(recording: &'a Recording) -> Self {
        Self {
            source: &recording.source,
            trace: recording.annotated(),
            streams: Cow::Borrowed(&recording.streams),
            names: &recording.names,
            clock_errors: recording.clock_errors(),
            successions: recording.successions(),
            interval: Interval::default(),
            contains: &|_| true,
            begins: &|| {},
        }
    }

    /// A pass over all events of the time range, including those that are not selected.
    #[must_use]
    pub fn events(&self) -> Box<dyn Events + 'a> {
        (self.begins)();
        self.source.events_in(self.interval)
    }

    /// Interpreter of the events, from the first on.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts::new(&self.trace, &self.streams)
    }

    /// Gaps: from losses, and from the given damage.
    #[must_use]
    pub fn gaps(&self, damage: &[Damage]) -> Gaps {
        gaps(self.source, &self.streams, damage)
    }

    /// Ends of the time range; an open end is the end of time.
    #[must_use]
    pub fn ends(&self) -> (Nanos, Nanos) {
        let (begin, end) = (self.interval.begin, self.interval.end);
        (begin.unwrap_or(Nanos(i64::MIN)), end.unwrap_or(Nanos(i64::MAX)))
    }

    /// Deriver of spans, flows, states and CPU occupancy for the selection, from facts in time order;
    /// `has_own`: with self times of spans.
    pub fn deriver<E: Copy + Default>(
        &self,
        facts: &Facts,
        damage: &[Damage],
        has_own: bool,
    ) -> Deriver<E> {
        let known = Known {
            window: Some(self.ends()),
            is_cut: is_cut(self.source, self.interval).0,
            gaps: self.gaps(damage),
            clock_errors: self.clock_errors.clone(),
            successions: self.successions.clone(),
            has_own,
            follows_threads: Some(facts.alone_streams(&self.streams)),
            sum_buckets: None,
        };
        Deriver::new(facts, known)
    }

    /// Upper bound of the selected events that the producers have lost; `u64::MAX` if unknown.
    #[must_use]
    pub fn lost_count(&self) -> u64 {
        let (begin, end) = self.ends();
        let is_inside = |loss: &&Loss| {
            // Events without a ring may be missing anywhere before the loss was reported.
            let since = loss.interval.begin.filter(|_| loss.cause != LossCause::NoRing);
            since.is_none_or(|since| since <= end)
                && loss.interval.end.is_none_or(|until| until >= begin)
        };
        let of = |loss: &Loss| match (loss.cause, loss.count) {
            (LossCause::Packets, Some(0)) => 0,
            (LossCause::Packets, _) | (_, None) => u64::MAX,
            (_, Some(count)) => count,
        };
        self.source.losses().iter().filter(is_inside).map(of).fold(0, u64::saturating_add)
    }
}

/// Gaps of a trace with these streams: from its losses and this damage, by stream if known.
pub fn gaps(source: &dyn Source, streams: &[StreamSummary], damage: &[Damage]) -> Gaps {
    let stream_of = |file: &str| {
        // Damage of a file that may belong to two streams counts for both.
        let is_it = |name: &str| !name.is_empty() && Path::new(file).ends_with(name);
        let mut of = streams.iter().enumerate().filter(|(_, stream)| is_it(&stream.name));
        let first = of.next().map(|(index, _)| StreamIndex(index as u32));
        first.filter(|_| of.next().is_none())
    };
    Gaps::new(source.losses(), damage, stream_of)
}
