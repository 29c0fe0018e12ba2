// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Totals of losses.

use std::collections::BTreeMap;

use lateralis_model::{Interval, Loss, LossCause, StreamIndex};
use lateralis_units::Nanos;

/// Total of losses with one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LossTotal {
    /// The stream, if the total is for one.
    pub stream: Option<StreamIndex>,
    /// Cause of the losses.
    pub cause: LossCause,
    /// Number of events (packets for [`LossCause::Packets`]).
    pub count: u64,
    /// Whether some losses had no count, so that `count` is a lower bound.
    pub is_lower_bound: bool,
    /// From the first to the last loss; an end is unknown if it is unknown for one of them.
    pub interval: Interval,
}

/// One total per cause, in the order of the causes.
#[must_use]
pub fn total_by_cause(losses: &[Loss]) -> Vec<LossTotal> {
    total(losses, |loss| (None, loss.cause, None))
}

/// One total per stream and cause, in this order. Intervals in which tracing was stopped are kept
/// separate, as events between them were recorded.
#[must_use]
pub fn total_by_stream(losses: &[Loss]) -> Vec<LossTotal> {
    let is_apart = |loss: &Loss| matches!(loss.cause, LossCause::Stopped);
    let ends = |loss: &Loss| (loss.interval.begin, loss.interval.end);
    total(losses, |loss| (Some(loss.stream), loss.cause, is_apart(loss).then_some(ends(loss))))
}

type Key = (Option<StreamIndex>, LossCause, Option<(Option<Nanos>, Option<Nanos>)>);

fn total(losses: &[Loss], key: impl Fn(&Loss) -> Key) -> Vec<LossTotal> {
    let mut totals: BTreeMap<Key, LossTotal> = BTreeMap::new();
    for loss in losses {
        let key = key(loss);
        let total = totals.entry(key).or_insert_with(|| LossTotal {
            stream: key.0,
            cause: key.1,
            count: 0,
            is_lower_bound: false,
            interval: loss.interval,
        });
        total.count = total.count.saturating_add(loss.count.unwrap_or(0));
        total.is_lower_bound |= loss.count.is_none();
        let both = |a: Option<_>, b: Option<_>, pick: fn(_, _) -> _| Some(pick(a?, b?));
        total.interval.begin = both(total.interval.begin, loss.interval.begin, Ord::min);
        total.interval.end = both(total.interval.end, loss.interval.end, Ord::max);
    }
    totals.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(stream: u32, cause: LossCause, count: Option<u64>, begin: i64, end: i64) -> Loss {
        let interval = Interval { begin: Some(Nanos(begin)), end: Some(Nanos(end)) };
        Loss { stream: StreamIndex(stream), cause, count, interval }
    }

    #[test]
    fn losses_add_up_by_cause_and_stream() {
        let losses = [
            loss(0, LossCause::Full, Some(3), 10, 20),
            loss(1, LossCause::Full, Some(4), 5, 15),
            loss(0, LossCause::TooBig, None, 1, 2),
        ];
        let by_cause = total_by_cause(&losses);
        assert_eq!(by_cause.len(), 2);
        assert_eq!((by_cause[0].cause, by_cause[0].count), (LossCause::Full, 7));
        assert_eq!(by_cause[0].interval.begin, Some(Nanos(5)));
        assert_eq!(by_cause[0].interval.end, Some(Nanos(20)));
        assert!(by_cause[1].is_lower_bound && !by_cause[0].is_lower_bound);
        assert_eq!(total_by_stream(&losses).len(), 3);
        assert_eq!(total_by_cause(&[]), []);
    }

    #[test]
    fn times_in_which_tracing_was_stopped_are_apart() {
        let stopped = |begin: Option<i64>, end: Option<i64>| Loss {
            stream: StreamIndex(0),
            cause: LossCause::Stopped,
            count: None,
            interval: Interval { begin: begin.map(Nanos), end: end.map(Nanos) },
        };
        let losses = [stopped(None, Some(10)), stopped(Some(20), None)];
        let totals = total_by_stream(&losses);
        assert_eq!(
            totals.iter().map(|it| it.interval).collect::<Vec<_>>(),
            [losses[0].interval, losses[1].interval]
        );
        assert_eq!(total_by_cause(&losses).len(), 1);
    }
}
