// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time of a machine in each of its states.

use lateralis_units::Nanos;

use crate::Durations;

/// Intervals in one state of one machine that are kept individually; above, percentiles are rough.
const STAYS_KEPT: usize = 1 << 12;

/// Time in one state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InState {
    /// Nanoseconds.
    pub nanos: u64,
    /// Number of times it was entered; a repeated report of the current state is no entry.
    pub entry_count: u64,
    /// The longest interval in nanoseconds.
    pub longest_nanos: u64,
}

/// States of one machine, from the first report to the end.
///
/// States are small numbers. Cost: constant; memory proportional to the states.
#[derive(Debug, Clone, Default)]
pub struct States {
    current: Option<(u32, Nanos)>,
    first: Option<Nanos>,
    states: Vec<InState>,
    /// By state, intervals whose end was reported.
    stays: Vec<Durations>,
    unknown_nanos: u64,
    /// The state before a doubt.
    doubted: Option<u32>,
    /// Whether the current state may have been entered before its first report.
    is_older: bool,
}

impl States {
    /// Events may be missing since the last report: how long that state held is unknown, and so is
    /// whether the next one is entered or has held all along.
    pub fn doubt(&mut self, time: Nanos) {
        if let Some((state, since)) = self.current.take() {
            let nanos = time.since(since).max(0) as u64;
            self.unknown_nanos = self.unknown_nanos.saturating_add(nanos);
            self.doubted = Some(state);
        }
    }

    /// The machine is in a state from now on. Call in time order.
    pub fn enter(&mut self, time: Nanos, state: u32) {
        if self.current.is_some_and(|(current, _)| current == state) {
            return;
        }
        // If no state was known before, this one may have held all along.
        let is_older = self.current.is_none();
        self.stay(time);
        self.leave(time);
        self.first.get_or_insert(time);
        let index = state as usize;
        if index >= self.states.len() {
            self.states.resize_with(index + 1, InState::default);
        }
        let is_entry = self.doubted.take() != Some(state);
        self.states[index].entry_count += u64::from(is_entry);
        self.current = Some((state, time));
        self.is_older = is_older;
    }

    /// Another reported state ends the current one.
    fn stay(&mut self, time: Nanos) {
        if let Some((state, since)) = self.current.filter(|_| !self.is_older) {
            let index = state as usize;
            if index >= self.stays.len() {
                self.stays.resize_with(index + 1, || Durations::with_limit(STAYS_KEPT));
            }
            self.stays[index].push(time.since(since).max(0) as u64);
        }
    }

    /// The state is unknown from now on, until the next report; also called at the end.
    pub fn leave(&mut self, time: Nanos) {
        if let Some((state, since)) = self.current.take() {
            let nanos = time.since(since).max(0) as u64;
            let of = &mut self.states[state as usize];
            of.nanos = of.nanos.saturating_add(nanos);
            of.longest_nanos = of.longest_nanos.max(nanos);
        }
    }

    /// By state; may be shorter than the number of states.
    #[must_use]
    pub fn states(&self) -> &[InState] {
        &self.states
    }

    /// By state, the lengths of intervals with known begin and end: the begin is unknown for the first
    /// report, or the first after missing events. May be shorter than the number of states.
    #[must_use]
    pub fn stays(&self) -> &[Durations] {
        &self.stays
    }

    /// The current state, and its begin.
    #[must_use]
    pub fn current(&self) -> Option<(u32, Nanos)> {
        self.current
    }

    /// Nanoseconds in which events may be missing.
    #[must_use]
    pub fn unknown_nanos(&self) -> u64 {
        self.unknown_nanos
    }

    /// Time of the first report.
    #[must_use]
    pub fn first(&self) -> Option<Nanos> {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gaps;
    use lateralis_model::{Interval, Loss, LossCause, StreamIndex};
    use proptest::prelude::*;

    #[test]
    fn stays_are_measured_and_repetitions_are_no_entries() {
        let mut machine = States::default();
        machine.leave(Nanos(1));
        for (time, state) in [(10, 1), (12, 1), (15, 0), (16, 1), (30, 0)] {
            machine.enter(Nanos(time), state);
        }
        machine.leave(Nanos(40));
        machine.enter(Nanos(50), 0);
        machine.leave(Nanos(53));
        let [zero, one] = machine.states() else { panic!("two states") };
        assert_eq!(*one, InState { nanos: 19, entry_count: 2, longest_nanos: 14 });
        assert_eq!(*zero, InState { nanos: 14, entry_count: 3, longest_nanos: 10 });
        assert_eq!((machine.first(), machine.current()), (Some(Nanos(10)), None));
        // The first may have begun before its report; the last two were not ended by another state.
        let stays = |state: usize| {
            let d = machine.stays()[state].clone().distribution().unwrap_or_default();
            (d.count, d.min, d.max, d.total)
        };
        assert_eq!((stays(0), stays(1)), ((1, 1, 1, 1), (1, 14, 14, 14)));
    }

    #[test]
    fn a_doubted_stay_is_nobodys_and_makes_no_entry_of_the_same_state() {
        let mut machine = States::default();
        machine.enter(Nanos(0), 0);
        machine.doubt(Nanos(10));
        machine.enter(Nanos(10), 0);
        machine.doubt(Nanos(15));
        machine.enter(Nanos(15), 1);
        machine.leave(Nanos(18));
        let [zero, one] = machine.states() else { panic!("two states") };
        assert_eq!((zero.nanos, zero.entry_count), (0, 1));
        assert_eq!((one.nanos, one.entry_count, machine.unknown_nanos()), (3, 1, 15));
    }

    /// As the reader of a trace calls it.
    fn run(told: &[(i64, u32)], gaps: &Gaps, end: i64) -> States {
        let mut machine = States::default();
        let doubt = |machine: &mut States, time| {
            if machine.current().is_some_and(|(_, since)| gaps.between(since, time)) {
                machine.doubt(time);
            }
        };
        for &(time, state) in told {
            doubt(&mut machine, Nanos(time));
            machine.enter(Nanos(time), state);
        }
        doubt(&mut machine, Nanos(end));
        machine.leave(Nanos(end));
        machine
    }

    proptest! {
        #[test]
        fn what_is_put_back_takes_no_time_from_any_state(
            steps in prop::collection::vec((1i64..20, 0u32..3), 1..60),
            lost in prop::collection::vec((0i64..400, 0i64..60), 0..4),
        ) {
            let loss = |&(begin, long): &(i64, i64)| Loss {
                stream: StreamIndex(0),
                cause: LossCause::Full,
                count: None,
                interval: Interval { begin: Some(Nanos(begin)), end: Some(Nanos(begin + long)) },
            };
            let gaps = Gaps::new(&lost.iter().map(loss).collect::<Vec<_>>(), &[], |_| None);
            let mut time = 0;
            let mut all = Vec::new();
            for (later, state) in steps {
                time += later;
                all.push((time, state));
            }
            let is_there = |&(time, _): &(i64, u32)| !gaps.touch(Nanos(time), Nanos(time));
            let some: Vec<(i64, u32)> = all.iter().copied().filter(is_there).collect();
            let truth = run(&all, &Gaps::default(), time);
            let seen = run(&some, &gaps, time);
            for (state, of) in seen.states().iter().enumerate() {
                let truth = truth.states()[state];
                prop_assert!(of.nanos <= truth.nanos);
                prop_assert!(of.entry_count <= truth.entry_count);
                prop_assert!(of.longest_nanos <= truth.longest_nanos);
            }
            for (seen, truth) in seen.stays().iter().zip(truth.stays()) {
                prop_assert!(seen.len() <= truth.len() && seen.total() <= truth.total());
            }
            if !gaps.touch(Nanos(0), Nanos(time)) {
                prop_assert_eq!(seen.states(), truth.states());
                prop_assert_eq!(seen.unknown_nanos(), 0);
            }
        }
    }
}
