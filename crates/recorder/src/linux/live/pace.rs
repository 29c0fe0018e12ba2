// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Detects stalled clients.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Progress of a connection.
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
    /// Milliseconds since `began` at which it stalled, plus 1; 0: it is not stalled.
    stuck_ms: AtomicU64,
    /// Requested flush period; 0: no request.
    flush_ms: AtomicU32,
    /// It counts as a client.
    is_client: AtomicBool,
    /// Its slot has been given to another client.
    is_given_up: AtomicBool,
}

impl Pace {
    pub(super) fn new() -> Pace {
        Pace {
            began: Instant::now(),
            stuck_ms: AtomicU64::new(0),
            flush_ms: AtomicU32::new(0),
            is_client: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
        }
    }

    /// Sets the requested flush period.
    pub(super) fn wants_flushes(&self, period_ms: u32) {
        // Partner: the load below; nothing else depends on it.
        self.flush_ms.store(period_ms, Ordering::Relaxed);
    }

    /// The requested flush period, if any.
    pub(super) fn flush_period(&self) -> Option<Duration> {
        // Partner: the store above.
        let period_ms = self.flush_ms.load(Ordering::Relaxed);
        (period_ms > 0).then(|| Duration::from_millis(period_ms.into()))
    }

    /// Counts as a client from now on.
    pub(super) fn is_client(&self) {
        // Partner: the load in `give_up`; nothing else depends on it.
        self.is_client.store(true, Ordering::Relaxed);
    }

    /// Gives its slot to another, if it is a client that has been stalled for this long; once.
    pub(super) fn give_up(&self, time: Duration) -> bool {
        // Partners: the store above, the load below. The exchange decides between two new clients.
        self.is_client.load(Ordering::Relaxed)
            && self.is_stuck(time)
            && !self.is_given_up.swap(true, Ordering::Relaxed)
    }

    /// Whether its slot was given to another: it is not served any more.
    pub(super) fn is_given_up(&self) -> bool {
        // Partner: the exchange above.
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// Data was offered, and some of it was accepted.
    pub(super) fn takes_something(&self) {
        // Partner: the load in `is_stuck`; nothing else depends on it.
        self.stuck_ms.store(0, Ordering::Relaxed);
    }

    /// Data was offered, and none of it was accepted.
    pub(super) fn takes_nothing(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Partner: the load in `is_stuck`. Only the first time counts.
        let new = now.saturating_add(1);
        let _ = self.stuck_ms.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether it has been stalled for this long.
    pub(super) fn is_stuck(&self, time: Duration) -> bool {
        // Partner: the stores above.
        match self.stuck_ms.load(Ordering::Relaxed).checked_sub(1) {
            None => false,
            Some(since) => {
                self.began.elapsed() >= Duration::from_millis(since).saturating_add(time)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_nothing_is_stuck_until_it_takes_something() {
        let pace = Pace::new();
        assert!(!pace.is_stuck(Duration::ZERO));
        pace.takes_nothing();
        assert!(pace.is_stuck(Duration::ZERO) && !pace.is_stuck(Duration::MAX));
        assert!(!pace.give_up(Duration::ZERO), "it is no client yet");
        pace.is_client();
        assert!(!pace.give_up(Duration::MAX) && !pace.is_given_up());
        assert!(pace.give_up(Duration::ZERO) && pace.is_given_up());
        assert!(!pace.give_up(Duration::ZERO), "a place is given once");
        pace.takes_something();
        assert!(!pace.is_stuck(Duration::ZERO));
    }
}
