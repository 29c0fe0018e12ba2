// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Relations of the clocks of several traces, and the errors of their times.
//!
//! * The same counter of one boot of a machine, by namespace, name and identity: [`Relation::Same`]. If
//!   both use the same conversion to nanoseconds, the error is 0.
//! * The times of one were put on the timeline of the other, using mutual observations of both machines:
//!   [`Relation::Exchange`], [`Relation::Messages`]. See [`PutOn`].
//! * Both count from 1970, on one machine: [`Relation::Epoch`]. The error is the sum of their stated
//!   precisions.
//! * Both count from 1970, on two machines: the same relation, with an unbounded error, because no trace
//!   contains how well the machines agree.
//! * Both count from one origin that is not 1970: [`Relation::Origin`], with the same errors.
//! * Others: [`Relation::Unrelated`].
//!
//! A trace converts ticks as its own recorder measured the clock. Two recorders measure the same counter
//! slightly differently, so all traces with one clock use the conversion of the first: the order of ticks
//! is then the order on the timeline.

use std::collections::BTreeMap;

use lateralis_model::{Clock, Interval, Source};
use lateralis_units::{Nanos, Ticks};

/// Relation of two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// They are the same counter.
    Same,
    /// Clocks were read across a connection.
    Exchange,
    /// Messages were exchanged in both directions.
    Messages,
    /// Both count from 1970-01-01T00:00:00Z.
    Epoch,
    /// Both count from another origin, identified by its UUID or the like.
    Origin,
    /// Their times cannot be compared.
    Unrelated,
}

impl Relation {
    /// `same`, `exchange`, `messages`, `epoch`, `origin`, `unrelated`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Exchange => "exchange",
            Self::Messages => "messages",
            Self::Epoch => "epoch",
            Self::Origin => "origin",
            Self::Unrelated => "unrelated",
        }
    }
}

/// Way in which recordings of several machines are aligned more precisely than by date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Relate {
    /// By clock exchanges that were recorded with them.
    #[default]
    Exchange,
    /// By the messages between them.
    Messages,
    /// By the date only.
    Date,
}

/// Relation of the times of two traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tie {
    /// The relation.
    pub relation: Relation,
    /// Largest error in nanoseconds between two times, one of each; `None`: unbounded.
    pub error_ns: Option<u64>,
}

impl Tie {
    /// A clock and itself.
    pub const SELF: Self = Self { relation: Relation::Same, error_ns: Some(0) };

    /// The less precise of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            relation: self.relation.max(other.relation),
            error_ns: self.error_ns.zip(other.error_ns).map(|(a, b)| a.max(b)),
        }
    }
}

/// Target timeline of a clock whose times were converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutOn {
    /// [`TimeBase::line`] of that clock.
    pub line: String,
    /// The relation used.
    pub by: Relation,
    /// Largest error of its times relative to that clock.
    pub error_ns: u64,
}

/// The clock of a trace, if all its streams that have one share it.
#[derive(Debug, Clone)]
pub struct TimeBase {
    /// The clock.
    pub clock: Clock,
    /// The clock's own identity, otherwise the place of the trace.
    own_line: String,
    placed: Option<PutOn>,
    /// Its index in the trace.
    index: usize,
    /// The machine, if the trace contains it.
    host: Option<String>,
    /// Time range of the trace.
    interval: Interval,
}

impl TimeBase {
    /// Clock of a trace; `None` if it has none, or streams with several.
    #[must_use]
    pub fn of(source: &dyn Source, place: &str) -> Option<Self> {
        let trace = source.trace();
        let mut used = trace.stream_classes.iter().filter_map(|class| class.clock);
        // A recording without any data has a clock nevertheless.
        let index = used.next().unwrap_or(0);
        if used.any(|other| other != index) {
            return None;
        }
        let clock = trace.clocks.get(index)?.clone();
        let host = ["hostname", "host"].iter().find_map(|name| trace.env(name)?.as_text());
        let host = host.map(str::to_owned);
        Some(Self { index, host, interval: source.interval(), ..Self::of_clock(clock, place) })
    }

    /// Clocks of a trace whose streams have several, by their index in the trace; none for other traces.
    ///
    /// Clocks without an identity are not included: one file may declare one clock in several units.
    #[must_use]
    pub fn of_several(source: &dyn Source, place: &str) -> BTreeMap<usize, Self> {
        let trace = source.trace();
        let classes = trace.stream_classes.iter().zip(0..);
        let bases = classes.filter_map(|(class, number)| {
            let index = class.clock?;
            let clock = trace.clocks.get(index).filter(|clock| clock.has_identity())?;
            let environment = trace.environment_of(number);
            let value = |name: &str| environment.iter().find(|(key, _)| key == name)?.1.as_text();
            let host = ["hostname", "host"].into_iter().find_map(value).map(str::to_owned);
            let base = Self::of_clock(clock.clone(), place);
            Some((index, Self { index, host, interval: source.interval(), ..base }))
        });
        let bases: BTreeMap<usize, Self> = bases.collect();
        if bases.len() > 1 { bases } else { BTreeMap::new() }
    }

    /// A clock without a trace.
    #[must_use]
    pub fn of_clock(clock: Clock, place: &str) -> Self {
        let own_line = match (&clock.uuid, &clock.uid, &clock.namespace) {
            (Some(uuid), _, None) => format!("{uuid} {}", clock.name),
            (None, None, _) => place.to_owned(),
            // Quoted, so that different ones cannot look alike.
            (uuid, uid, namespace) => format!("{namespace:?} {uuid:?} {uid:?} {}", clock.name),
        };
        let interval = Interval::default();
        Self { clock, own_line, placed: None, index: 0, host: None, interval }
    }

    /// Timeline of its times: its own, or the one to which they were converted.
    #[must_use]
    pub fn line(&self) -> &str {
        self.placed.as_ref().map_or(&self.own_line, |placed| &placed.line)
    }

    /// Target timeline, if its times were converted.
    #[must_use]
    pub fn placed(&self) -> Option<&PutOn> {
        self.placed.as_ref()
    }

    /// Time range of the trace.
    #[must_use]
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Whether both read one counter. A frequency that differs by more than a thousandth contradicts
    /// that, whatever the identities are.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let (a, b) = (&self.clock, &other.clock);
        a.is_same_clock(b) && a.frequency().abs_diff(b.frequency()) <= a.frequency() / 1000
    }

    /// Whether both belong to one machine: they read one counter, or the descriptions of their machines
    /// do not differ. One machine does not run two boots at once, whatever its name.
    #[must_use]
    pub fn is_of_machine(&self, other: &Self) -> bool {
        if self.is_same(other) {
            return true;
        }
        if self.host.is_some() && other.host.is_some() && self.host != other.host {
            return false;
        }
        let (a, b) = (&self.clock, &other.clock);
        let is_other_boot = (&a.namespace, &a.name) == (&b.namespace, &b.name)
            && a.has_identity()
            && b.has_identity();
        !(is_other_boot && a.unix_epoch && b.unix_epoch && self.overlaps(other))
    }

    fn overlaps(&self, other: &Self) -> bool {
        let ends = |of: &Self| of.interval.begin.zip(of.interval.end);
        let both = ends(self).zip(ends(other));
        both.is_some_and(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
    }

    /// Relation of the times of both.
    #[must_use]
    pub fn tie(&self, other: &Self) -> Tie {
        if self.is_same(other) {
            return Tie { relation: Relation::Same, error_ns: self.conversions_apart(other) };
        }
        let by = |base: &Self| base.placed.as_ref().map(|placed| (placed.by, placed.error_ns));
        if self.line() == other.line()
            && let Some((relation, _)) = by(self).max(by(other))
        {
            let error = |base| by(base).map_or(0, |(_, error_ns)| error_ns);
            let error_ns = Some(error(self).saturating_add(error(other)));
            return Tie { relation, error_ns };
        }
        let origins = [&self.clock.origin, &other.clock.origin];
        let relation = match (self.clock.unix_epoch && other.clock.unix_epoch, origins) {
            (true, _) => Relation::Epoch,
            (false, [Some(a), Some(b)]) if a == b => Relation::Origin,
            _ => return Tie { relation: Relation::Unrelated, error_ns: None },
        };
        let one_host = self.host.is_some() && self.host == other.host;
        let stated = self.clock.precision_ns().zip(other.clock.precision_ns());
        let error_ns = stated.filter(|_| one_host).map(|(a, b)| a.saturating_add(b));
        Tie { relation, error_ns }
    }

    /// Largest difference of two conversions of one counter during both traces: the difference is linear,
    /// so it is largest at one of the ends.
    fn conversions_apart(&self, other: &Self) -> Option<u64> {
        let (a, b) = (&self.clock, &other.clock);
        if a.converts_like(b) {
            return Some(0);
        }
        let ends = |of: &Self| {
            let ticks = |time: Nanos| of.clock.ticks(time);
            Some([ticks(of.interval.begin?), ticks(of.interval.end?)])
        };
        let ends = ends(self)?.into_iter().chain(ends(other)?);
        let apart = |ticks: Ticks| a.nanos(ticks).0.abs_diff(b.nanos(ticks).0);
        // Plus one, as both are rounded down.
        ends.map(apart).max().map(|most| most.saturating_add(1))
    }
}

/// Makes a trace convert its ticks by a clock that puts its times on another timeline. Returns whether
/// that was possible.
pub fn put(source: &mut dyn Source, own: &TimeBase, clock: &Clock) -> bool {
    source.set_clock(own.index, clock)
}

impl TimeBase {
    /// The clock after [`put`].
    #[must_use]
    pub(crate) fn placed_at(mut self, own_line: String, placed: PutOn) -> Self {
        (self.own_line, self.placed) = (own_line, Some(placed));
        self
    }

    pub(crate) fn own_line(&self) -> &str {
        &self.own_line
    }
}

/// Makes a trace convert its ticks like another one with the same clock. The difference of the
/// conversions is added to the stated precision of its clock. Returns whether that was possible.
pub fn take(source: &mut dyn Source, own: &TimeBase, from: &TimeBase) -> bool {
    if own.clock.converts_like(&from.clock) {
        return false;
    }
    let mut clock = own.clock.converted_like(&from.clock);
    let apart = own.conversions_apart(from);
    let nanos = own.clock.precision_ns().zip(apart).map(|(own, apart)| own.saturating_add(apart));
    clock.precision = nanos.map_or(0, |nanos| {
        let ticks = u128::from(nanos) * u128::from(clock.frequency());
        u64::try_from(ticks.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
    });
    source.set_clock(own.index, &clock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lateralis_model::Uuid;
    use proptest::prelude::*;

    fn base(clock: Clock, host: &str, begin: i64, end: i64) -> TimeBase {
        let interval = Interval { begin: Some(Nanos(begin)), end: Some(Nanos(end)) };
        let own_line = clock.uuid.map(|uuid| uuid.to_string()).unwrap_or_default();
        let host = Some(host.to_owned());
        TimeBase { clock, own_line, placed: None, index: 0, host, interval }
    }

    fn epoch(precision: u64, frequency: u64) -> Clock {
        let mut clock = Clock::new("tsc", frequency, 1_700_000_000, 5);
        clock.unix_epoch = true;
        clock.precision = precision;
        clock
    }

    #[test]
    fn clocks_of_the_epoch_add_what_they_state() {
        let a = base(epoch(80, 2_000_000_000), "here", 0, 1);
        let b = base(epoch(301, 3_000_000_000), "here", 0, 1);
        let tie = Tie { relation: Relation::Epoch, error_ns: Some(40 + 101) };
        assert_eq!((a.tie(&b), b.tie(&a)), (tie, tie));
        let unknown = Tie { relation: Relation::Epoch, error_ns: None };
        assert_eq!(a.tie(&base(epoch(80, 2_000_000_000), "there", 0, 1)), unknown);
        assert_eq!(a.tie(&base(epoch(0, 2_000_000_000), "here", 0, 1)), unknown);
        let other = base(Clock::new("tsc", 2_000_000_000, 0, 0), "here", 0, 1);
        assert_eq!(a.tie(&other), Tie { relation: Relation::Unrelated, error_ns: None });
        assert_eq!(unknown.and(tie), unknown);
        assert_eq!(Tie::SELF.and(tie), tie);
    }

    #[test]
    fn clocks_on_one_line_add_what_they_are_off_it() {
        let mut clocks = [epoch(1, 2_000_000_000), epoch(1, 2_000_000_000), epoch(1, 1_000_000)];
        let uuids = [1, 2, 3].map(|n| Some(Uuid([n; 16])));
        clocks.iter_mut().zip(uuids).for_each(|(clock, uuid)| clock.uuid = uuid);
        let [first, b, c] = clocks.map(|clock| base(clock, "here", 0, 1));
        let put = |base: TimeBase, by, error_ns| {
            let (own, line) = (base.own_line.clone(), first.line().to_owned());
            base.placed_at(own, PutOn { line, by, error_ns })
        };
        let (b, c) = (put(b, Relation::Exchange, 70), put(c, Relation::Messages, 500));
        let tie = |relation, error| Tie { relation, error_ns: Some(error) };
        assert_eq!(first.tie(&b), tie(Relation::Exchange, 70));
        assert_eq!(c.tie(&first), tie(Relation::Messages, 500));
        assert_eq!(b.tie(&c), tie(Relation::Messages, 570));
        let elsewhere = base(epoch(1, 5), "there", 0, 1);
        assert_eq!(b.tie(&elsewhere).relation, Relation::Epoch);
    }

    #[test]
    fn one_identity_with_two_frequencies_is_not_believed() {
        let mut clocks =
            [epoch(1, 2_000_000_000), epoch(1, 2_000_000_000), epoch(1, 1_000_000_000)];
        clocks.iter_mut().for_each(|clock| clock.uuid = Some(Uuid([7; 16])));
        let [a, b, c] = clocks.map(|clock| base(clock, "here", 0, 1));
        assert_eq!(a.tie(&b), Tie::SELF);
        assert_eq!(a.tie(&c).relation, Relation::Epoch);
    }

    proptest! {
        // The bound for two conversions of one counter holds at every tick of the traces.
        #[test]
        fn no_tick_is_further_apart_than_is_said(
            hz in 1_000_000u64..4_000_000_000,
            other in -900i64..900,
            offsets in (0i64..4_000_000, 0i64..4_000_000),
            begin in 0u64..1 << 50,
            lengths in (0u64..1 << 40, 0u64..1 << 40),
            at in 0.0f64..=1.0,
        ) {
            let other_hz = hz.saturating_add_signed(other * (hz / 1_000_000) as i64);
            let identity = Some(Uuid([1; 16]));
            let mut a = Clock::new("tsc", hz, 1_700_000_000, offsets.0);
            let mut b = Clock::new("tsc", other_hz, 1_700_000_000, offsets.1);
            (a.uuid, b.uuid) = (identity, identity);
            let of = |clock: &Clock, length: u64| {
                let ends = [begin, begin + length].map(|ticks| clock.nanos(Ticks(ticks)).0);
                base(clock.clone(), "here", ends[0], ends[1])
            };
            let (first, second) = (of(&a, lengths.0), of(&b, lengths.1));
            let tie = first.tie(&second);
            prop_assert_eq!(tie.relation, Relation::Same);
            let length = lengths.0.max(lengths.1);
            let ticks = Ticks(begin + (length as f64 * at) as u64);
            let apart = a.nanos(ticks).0.abs_diff(b.nanos(ticks).0);
            // A time identifies its tick only to a nanosecond.
            prop_assert!(apart <= tie.error_ns.unwrap() + 1, "{} {:?}", apart, tie);
            let taken = b.converted_like(&a);
            prop_assert_eq!(base(taken, "here", 0, 1).tie(&first), Tie::SELF);
        }
    }
}
