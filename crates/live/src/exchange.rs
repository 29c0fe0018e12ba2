// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far two clocks are apart, by the exchange of NTP [RFC 5905 §8; seed 000 does the same
//! between cores].
//!
//! ```text
//! client  t0 ─────────────────────► t3     offset = ((t1 - t0) + (t2 - t3)) / 2
//! server        t1 ──► t2                  round trip = (t3 - t0) - (t2 - t1)
//! ```
//!
//! However the round trip is split between the two ways, the offset is wrong by half of it at most.

/// Four readings, nanoseconds of UTC as each side had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The client asked, by its clock.
    pub asked_ns: i64,
    /// The server received it, by its clock.
    pub received_ns: i64,
    /// The server answered, by its clock.
    pub sent_ns: i64,
    /// The client has the answer, by its clock.
    pub answered_ns: i64,
}

/// How two clocks relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relation {
    /// Server's clock minus client's, in nanoseconds; negative if the server's clock is slow.
    pub offset_ns: i64,
    /// The true offset is not farther away than this.
    pub error_ns: u64,
}

impl Exchange {
    /// Result of the exchange; `None` if a clock was stepped in between, or the peer is lying.
    #[must_use]
    pub fn relation(&self) -> Option<Relation> {
        let [t0, t1, t2, t3] =
            [self.asked_ns, self.received_ns, self.sent_ns, self.answered_ns].map(i128::from);
        let round_trip = (t3 - t0) - (t2 - t1);
        if round_trip < 0 || t2 < t1 {
            return None;
        }
        let offset = ((t1 - t0) + (t2 - t3)).div_euclid(2);
        Some(Relation {
            offset_ns: i64::try_from(offset).ok()?,
            // One for the halving.
            error_ns: u64::try_from(round_trip / 2 + 1).ok()?,
        })
    }
}

impl Relation {
    /// The better of two, of clocks that keep their pace in between.
    #[must_use]
    pub fn better(self, other: Relation) -> Relation {
        if other.error_ns < self.error_ns { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_is_within_the_bound_however_the_ways_differ() {
        for offset in [-5_000_000_000_i64, -505, 0, 505, 7_000_000_000] {
            for (there, back) in [(10, 10), (0, 1000), (1000, 0), (1, 0)] {
                let asked_ns = 1_700_000_000_000_000_000;
                let received_ns = asked_ns + there + offset;
                let sent_ns = received_ns + 30;
                let answered_ns = sent_ns - offset + back;
                let exchange = Exchange { asked_ns, received_ns, sent_ns, answered_ns };
                let relation = exchange.relation().unwrap();
                assert!(relation.offset_ns.abs_diff(offset) <= relation.error_ns);
                assert_eq!(relation.error_ns, (there + back) as u64 / 2 + 1);
            }
        }
    }

    #[test]
    fn impossible_readings_tell_nothing() {
        let exchange =
            |received_ns, sent_ns| Exchange { asked_ns: 0, received_ns, sent_ns, answered_ns: 10 };
        assert_eq!(exchange(5, 4).relation(), None);
        assert_eq!(exchange(0, 100).relation(), None);
        assert_eq!(exchange(i64::MIN, i64::MAX).relation(), None);
    }
}
