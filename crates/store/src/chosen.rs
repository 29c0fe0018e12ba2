// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What an analysis is about: the events of a trace, or some of them.

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

/// Whether there were events before a time, and behind it: a trace has them, or it was cut out of one that
/// had; one that does not say when it begins and ends can have some.
pub(crate) fn is_cut(source: &dyn Source, to: Interval) -> (bool, bool) {
    if source.trace().is_part() {
        return (true, true);
    }
    let of = source.interval();
    let is_before = |begin| of.begin.is_none_or(|first| first < begin);
    let is_behind = |end| of.end.is_none_or(|last| end < last);
    (to.begin.is_some_and(is_before), to.end.is_some_and(is_behind))
}

/// Events of a trace, with what its classes mean.
pub struct Chosen<'a> {
    /// The trace.
    pub source: &'a dyn Source,
    /// Its classes with their roles, as [`Recording::annotated`] gives them.
    pub trace: Cow<'a, Trace>,
    /// Its streams.
    pub streams: Cow<'a, [StreamSummary]>,
    /// Names of processes and threads.
    pub names: &'a Names,
    /// How far the clocks of its streams may be off.
    pub clock_errors: ClockErrors,
    /// Which of its recordings come after others have ended.
    pub successions: Successions,
    /// Only what happened then, both ends included.
    pub interval: Interval,
    /// Only these events of that time. Who runs on which processor is known from the others,
    /// too.
    pub contains: &'a dyn Fn(&Event<'_>) -> bool,
    /// Told before each pass over the events, of which there may be several: for whoever chooses by
    /// what came before.
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

    /// A pass over all events of the time, those that are not chosen among them.
    #[must_use]
    pub fn events(&self) -> Box<dyn Events + 'a> {
        (self.begins)();
        self.source.events_in(self.interval)
    }

    /// What the events say, from the first on.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts::new(&self.trace, &self.streams)
    }

    /// Where events are missing: by losses and this damage.
    #[must_use]
    pub fn gaps(&self, damage: &[Damage]) -> Gaps {
        gaps(self.source, &self.streams, damage)
    }

    /// The ends of what is chosen; what is open is the end of time.
    #[must_use]
    pub fn ends(&self) -> (Nanos, Nanos) {
        let (begin, end) = (self.interval.begin, self.interval.end);
        (begin.unwrap_or(Nanos(i64::MIN)), end.unwrap_or(Nanos(i64::MAX)))
    }

    /// Who derives spans, flows, states and who had the processors of what is chosen, from facts of it in
    /// the order of time;
    /// `has_own`: with the own time of spans.
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

    /// How many of the chosen events the producers have lost at most; `u64::MAX` where they
    /// do not know.
    #[must_use]
    pub fn lost_count(&self) -> u64 {
        let (begin, end) = self.ends();
        let is_inside = |loss: &&Loss| {
            // Events without a ring may be missing anywhere before they are told of.
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

/// Where events of a trace with these streams are missing: by its losses and this damage, of
/// streams where it is known of which.
pub fn gaps(source: &dyn Source, streams: &[StreamSummary], damage: &[Damage]) -> Gaps {
    let stream_of = |file: &str| {
        // Damage of a file that two streams could mean is in both.
        let is_it = |name: &str| !name.is_empty() && Path::new(file).ends_with(name);
        let mut of = streams.iter().enumerate().filter(|(_, stream)| is_it(&stream.name));
        let first = of.next().map(|(index, _)| StreamIndex(index as u32));
        first.filter(|_| of.next().is_none())
    };
    Gaps::new(source.losses(), damage, stream_of)
}
