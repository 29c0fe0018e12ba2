// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One test and its state: consumes facts in the order of time and returns firings.

use super::spans::{Ended, RingId, Spans, TooLong};
use super::state::{Heartbeat, Levels, Rate, Sequence};
use super::watch::{Limits, Measured};
use super::{Compare, Test};
use crate::source::Thread;

/// Input of an event for a test.
#[derive(Debug)]
pub(super) enum Saying {
    Begin { key: String, by: Option<Thread>, ring: RingId },
    End { key: String, by: Option<Thread>, ring: RingId },
    Part(usize),
    Level { key: String, value: f64 },
    Matches { by: Option<Thread> },
}

/// A firing that has no number yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fired {
    pub(super) at: u64,
    /// Start of the interval that determined it.
    pub(super) since: u64,
    /// End of that interval.
    pub(super) until: u64,
    pub(super) measured: Measured,
    pub(super) key: Option<String>,
    pub(super) by: Option<Thread>,
    /// Events lost in that interval could have changed it.
    pub(super) can_be_wrong: bool,
}

#[derive(Debug)]
enum State {
    Span(Spans, u64),
    Sequence(Sequence),
    Missing(Heartbeat, u64),
    Rate(Rate, Compare, u64),
    Counter(Levels),
    Event,
}

/// Evaluates one test.
#[derive(Debug)]
pub(super) struct Judge(State);

/// A firing, or the end of a span that fired before.
pub(super) enum Outcome {
    Nothing,
    Fired(Fired),
    Ended { number: u64, ticks: u64 },
}

impl Judge {
    /// `ticks` converts nanoseconds to ticks of the clock.
    pub(super) fn new(test: &Test, ticks: &dyn Fn(u64) -> u64) -> Judge {
        Judge(match test {
            Test::Span { limit_ns, .. } => {
                State::Span(Spans::new(ticks(*limit_ns)), ticks(*limit_ns))
            }
            Test::Sequence { events, within_ns } => {
                State::Sequence(Sequence::new(events.len(), ticks(*within_ns)))
            }
            Test::Missing { limit_ns, .. } => {
                State::Missing(Heartbeat::new(ticks(*limit_ns)), ticks(*limit_ns))
            }
            Test::Rate { compare, per_second, over_ns, .. } => {
                let events = per_second * (*over_ns as f64 / 1e9);
                State::Rate(Rate::new(*compare, events, ticks(*over_ns)), *compare, *over_ns)
            }
            Test::Counter { compare, value, .. } => State::Counter(Levels::new(*compare, *value)),
            Test::Event { .. } => State::Event,
        })
    }

    /// Counts an event whose order among others does not matter.
    pub(super) fn happened(&mut self, time: u64, limits: &mut Limits) {
        let has_room = match &mut self.0 {
            State::Missing(heartbeat, _) => heartbeat.add(time),
            State::Rate(rate, ..) => rate.add(time),
            _ => true,
        };
        limits.late_events += u64::from(!has_room);
    }

    /// For a missing event: sets whether a program that could record it is present.
    pub(super) fn expect(&mut self, now: u64, is_present: bool) {
        if let State::Missing(heartbeat, _) = &mut self.0 {
            heartbeat.expect(now, is_present);
        }
    }

    /// Processes the input of an event; in the order of time.
    pub(super) fn say(&mut self, time: u64, saying: Saying, limits: &mut Limits) -> Outcome {
        match (&mut self.0, saying) {
            (State::Span(spans, _), Saying::Begin { key, by, ring }) => {
                let has_room = spans.begin(&key, by, (time, ring));
                limits.spans_not_watched += u64::from(!has_room);
                Outcome::Nothing
            }
            (State::Span(spans, limit), Saying::End { key, by, ring }) => {
                match spans.end(&key, by, (time, ring)) {
                    Ended::InTime => Outcome::Nothing,
                    Ended::TooLong(span) => Outcome::Fired(too_long(span, *limit)),
                    Ended::Fired(number, ticks) => Outcome::Ended { number, ticks },
                }
            }
            (State::Sequence(sequence), Saying::Part(part)) => match sequence.add(part, time) {
                Some(began) => Outcome::Fired(Fired {
                    since: began,
                    measured: Measured::Ticks { ticks: time - began, is_over: true },
                    ..seen(time)
                }),
                None => Outcome::Nothing,
            },
            (State::Counter(levels), Saying::Level { key, value }) => {
                match levels.set(key.clone(), value) {
                    Some(true) => Outcome::Fired(Fired {
                        measured: Measured::Value(value),
                        key: Some(key).filter(|key| !key.is_empty()),
                        ..seen(time)
                    }),
                    Some(false) => Outcome::Nothing,
                    None => {
                        limits.keys_not_watched += 1;
                        Outcome::Nothing
                    }
                }
            }
            (State::Event, Saying::Matches { by }) => Outcome::Fired(Fired { by, ..seen(time) }),
            _ => Outcome::Nothing,
        }
    }

    /// Reports the firings caused by the passing of time until `to`, in a watch that began at `start`.
    pub(super) fn advance(&mut self, start: u64, to: u64, mut fire: impl FnMut(Fired) -> u64) {
        match &mut self.0 {
            State::Span(spans, limit) => {
                spans.overdue(to, |span| fire(too_long(span, *limit)));
            }
            State::Missing(heartbeat, limit) => {
                for silence in heartbeat.judge(start, to) {
                    let ticks = silence.until - silence.since;
                    fire(Fired {
                        since: silence.since,
                        until: silence.until,
                        measured: Measured::Ticks { ticks, is_over: silence.has_ended },
                        can_be_wrong: true,
                        ..seen(silence.since + *limit)
                    });
                }
            }
            State::Rate(rate, compare, over_ns) => {
                let window = rate.window_ticks();
                for (at, events) in rate.judge(start, to) {
                    let per_second = events as f64 / (*over_ns as f64 / 1e9);
                    fire(Fired {
                        since: at.saturating_sub(window),
                        measured: Measured::PerSecond(per_second),
                        // Lost events could only have made it greater.
                        can_be_wrong: matches!(compare, Compare::Less | Compare::AtMost),
                        ..seen(at)
                    });
                }
            }
            State::Sequence(_) | State::Counter(_) | State::Event => {}
        }
    }
}

/// A firing shown by a single event, independent of losses.
fn seen(at: u64) -> Fired {
    let measured = Measured::Nothing;
    Fired { at, since: at, until: at, measured, key: None, by: None, can_be_wrong: false }
}

fn too_long(span: TooLong, limit: u64) -> Fired {
    Fired {
        at: span.begin.saturating_add(limit),
        since: span.begin,
        until: span.begin.saturating_add(span.ticks),
        measured: Measured::Ticks { ticks: span.ticks, is_over: span.has_ended },
        key: Some(span.key).filter(|key| !key.is_empty()),
        by: span.by,
        can_be_wrong: true,
    }
}
