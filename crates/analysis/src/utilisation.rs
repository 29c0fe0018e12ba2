// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who had the processors, and for how long: from switches.

use lateralis_units::Nanos;

use crate::occupancy::{Occupancy, Occupant, Stretch, Switch};
use crate::{Gaps, Series};

/// What a processor did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuTime {
    /// Nanoseconds with a thread on it.
    pub busy_nanos: u64,
    /// Nanoseconds with none.
    pub idle_nanos: u64,
    /// Nanoseconds of which switches contradict each other, or of which nobody knows.
    pub unknown_nanos: u64,
    /// Switches seen.
    pub switch_count: u64,
    /// Switches that were not seen, at least: a thread left that was not the one that came.
    pub missing_count: u64,
    /// Busy nanoseconds over time.
    pub busy: Series,
}

/// What a thread had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Nanoseconds on any processor.
    pub running_nanos: u64,
    /// How often it was put on one.
    pub schedule_count: u64,
    /// Times it came to another processor than it had last.
    pub migration_count: u64,
    /// Times it left a processor without having come there, or came and another one left.
    pub missing_count: u64,
    /// Stretches of unknown length in which it can have run: before the first switch of a processor,
    /// which it left then; after the last; between two where switches are left out.
    pub open_count: u64,
    last_cpu: Option<u32>,
}

/// Adds the stretches of [`Occupancy`] up.
///
/// Cost: constant for each switch and bucket that its stretch covers; memory by
/// processors and threads.
#[derive(Debug, Clone)]
pub struct Utilisation {
    begin: Nanos,
    buckets: usize,
    occupancy: Occupancy,
    cpus: Vec<CpuTime>,
    threads: Vec<ThreadTime>,
}

impl Utilisation {
    /// From a moment on, with at most so many buckets of a time series (at least 2), and
    /// where events are missing.
    #[must_use]
    pub fn new(begin: Nanos, buckets: usize, gaps: Gaps) -> Self {
        let occupancy = Occupancy::new(begin, gaps);
        Self { begin, buckets, occupancy, cpus: Vec::new(), threads: Vec::new() }
    }

    /// Something happened on a processor: if it is the first, nobody knows what the
    /// processor did before. Cost: constant.
    #[inline]
    pub fn appear(&mut self, cpu: u32, time: Nanos) {
        if let Some(stretch) = self.occupancy.appear(cpu, time) {
            self.credit(&stretch);
        }
    }

    fn cpu(&mut self, cpu: u32) -> &mut CpuTime {
        let index = cpu as usize;
        if index >= self.cpus.len() {
            let busy = Series::new(self.begin, self.buckets);
            let new = || CpuTime { busy: busy.clone(), ..CpuTime::default() };
            self.cpus.resize_with(index + 1, new);
        }
        &mut self.cpus[index]
    }

    fn thread(&mut self, thread: u32) -> &mut ThreadTime {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, ThreadTime::default);
        }
        &mut self.threads[index]
    }

    /// Gives the time of a processor to who had it.
    fn credit(&mut self, stretch: &Stretch) {
        let Stretch { cpu, begin, end, occupant, .. } = *stretch;
        let nanos = stretch.nanos();
        let time = self.cpu(cpu);
        match occupant {
            Some(Occupant::Idle) => time.idle_nanos = time.idle_nanos.saturating_add(nanos),
            None => time.unknown_nanos = time.unknown_nanos.saturating_add(nanos),
            Some(Occupant::Thread(thread)) => {
                time.busy_nanos = time.busy_nanos.saturating_add(nanos);
                time.busy.add_stretch(begin, end);
                let running = &mut self.thread(thread).running_nanos;
                *running = running.saturating_add(nanos);
            }
        }
    }

    /// Takes the next switch of its processor.
    pub fn push(&mut self, switch: Switch) {
        self.appear(switch.cpu, switch.time);
        let is_first = self.cpu(switch.cpu).switch_count == 0;
        let is_torn = !switch.is_since_last;
        let came = self.occupancy.occupant(switch.cpu);
        self.is_open(switch.from.filter(|_| is_first || is_torn));
        self.is_open(came.filter(|came| is_torn && switch.from != Some(*came)));
        let stretch = self.occupancy.switch(switch);
        if let Some(between) = stretch.missing {
            self.miss(switch.cpu, between);
        }
        self.credit(&stretch);
        self.cpu(switch.cpu).switch_count += 1;
        for (occupant, comes) in [(switch.from, false), (switch.to, true)] {
            let Some(Occupant::Thread(thread)) = occupant else { continue };
            let time = self.thread(thread);
            time.schedule_count += u64::from(comes);
            // One that leaves another processor than it came to has moved meanwhile, unseen.
            time.migration_count += u64::from(time.last_cpu.is_some_and(|cpu| cpu != switch.cpu));
            time.last_cpu = Some(switch.cpu);
        }
    }

    /// How long it ran is not known.
    fn is_open(&mut self, occupant: Option<Occupant>) {
        if let Some(Occupant::Thread(thread)) = occupant {
            self.thread(thread).open_count += 1;
        }
    }

    /// One of these came and the other left: a switch in between was not seen.
    fn miss(&mut self, cpu: u32, between: [Occupant; 2]) {
        self.cpu(cpu).missing_count += 1;
        for occupant in between {
            if let Occupant::Thread(thread) = occupant {
                self.thread(thread).missing_count += 1;
            }
        }
    }

    /// The trace ends.
    pub fn finish(&mut self, end: Nanos) {
        for cpu in 0..self.cpus.len() as u32 {
            self.is_open(self.occupancy.occupant(cpu));
            let stretch = self.occupancy.finish(cpu, end);
            self.credit(&stretch);
        }
    }

    /// By processor.
    #[must_use]
    pub fn cpus(&self) -> &[CpuTime] {
        &self.cpus
    }

    /// By thread.
    #[must_use]
    pub fn threads(&self) -> &[ThreadTime] {
        &self.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::occupancy::Occupant::{Idle, Thread};
    use lateralis_model::{Interval, Loss, LossCause, StreamIndex};
    use proptest::prelude::*;

    fn switch(time: i64, cpu: u32, from: Option<Occupant>, to: Option<Occupant>) -> Switch {
        let stream = Some(StreamIndex(cpu));
        Switch { time: Nanos(time), cpu, stream, from, to, is_since_last: true }
    }

    #[test]
    fn nothing_is_known_before_the_first_and_after_the_last_switch() {
        let mut all = Utilisation::new(Nanos(100), 8, Gaps::default());
        all.appear(0, Nanos(100));
        all.appear(1, Nanos(130));
        all.push(switch(110, 0, Some(Thread(3)), Some(Idle)));
        all.push(switch(130, 0, Some(Idle), Some(Thread(1))));
        all.push(switch(140, 0, None, Some(Thread(3))));
        all.finish(Nanos(160));
        let cpu = &all.cpus()[0];
        assert_eq!((cpu.busy_nanos, cpu.idle_nanos, cpu.unknown_nanos), (10, 20, 30));
        assert_eq!(all.threads()[3].running_nanos, 0);
        assert_eq!((all.threads()[1].running_nanos, all.threads()[1].schedule_count), (10, 1));
        assert_eq!(all.cpus()[1].unknown_nanos, 60, "no switch, so it is unknown");
    }

    #[test]
    fn a_thread_whose_switches_are_left_out_has_no_time() {
        let mut all = Utilisation::new(Nanos(0), 8, Gaps::default());
        all.push(switch(10, 0, Some(Idle), Some(Thread(1))));
        all.push(switch(20, 0, Some(Thread(1)), Some(Thread(2))));
        // Others may have come and gone since 20.
        let foreign = switch(90, 0, Some(Thread(2)), Some(Thread(1)));
        all.push(Switch { is_since_last: false, ..foreign });
        all.push(switch(95, 0, Some(Thread(1)), Some(Thread(2))));
        all.finish(Nanos(500));
        let running: Vec<u64> = all.threads().iter().map(|time| time.running_nanos).collect();
        assert_eq!(running, [0, 15, 0]);
        assert_eq!((all.cpus()[0].busy_nanos, all.cpus()[0].missing_count), (15, 0));
        assert_eq!(all.cpus()[0].unknown_nanos, 500 - 15);
    }

    #[test]
    fn contradictions_are_unknown_time() {
        let mut all = Utilisation::new(Nanos(0), 8, Gaps::default());
        all.appear(0, Nanos(0));
        all.push(switch(10, 0, Some(Thread(1)), Some(Thread(2))));
        all.push(switch(20, 0, Some(Thread(3)), Some(Thread(1))));
        all.push(switch(30, 0, Some(Thread(1)), None));
        all.push(switch(40, 0, Some(Thread(1)), Some(Idle)));
        all.finish(Nanos(40));
        assert_eq!(all.cpus()[0].unknown_nanos, 30);
        assert_eq!(all.cpus()[0].missing_count, 1);
        assert_eq!(all.threads()[1].running_nanos, 10);
        let missing: Vec<u64> = all.threads().iter().map(|time| time.missing_count).collect();
        assert_eq!(missing, [0, 0, 1, 1]);
    }

    #[test]
    fn migrations_are_counted() {
        let mut all = Utilisation::new(Nanos(0), 8, Gaps::default());
        for (time, cpu) in [(1, 0), (2, 1), (3, 1), (4, 0)] {
            all.push(switch(time, cpu, None, Some(Thread(0))));
        }
        assert_eq!(all.threads()[0].migration_count, 2);
        // It was on 6 before its first switch.
        all.push(switch(5, 6, Some(Thread(1)), Some(Idle)));
        all.push(switch(6, 7, Some(Idle), Some(Thread(1))));
        assert_eq!(all.threads()[1].migration_count, 1);
    }

    proptest! {
        #[test]
        fn no_time_is_lost_or_counted_twice(
            steps in prop::collection::vec((0i64..50, 0u32..3, 0u32..4, any::<bool>()), 0..100),
        ) {
            let who = |number: u32| if number == 0 { Idle } else { Thread(number) };
            let mut all = Utilisation::new(Nanos(0), 16, Gaps::default());
            let (mut time, mut running) = (0, [None; 3]);
            let mut expected = [0u64; 4];
            let mut since = [0i64; 3];
            for cpu in 0..3 {
                all.appear(cpu, Nanos(0));
            }
            for (later, cpu, to, tells) in steps {
                time += later;
                let slot = cpu as usize;
                if let Some(Thread(thread)) = running[slot] {
                    expected[thread as usize] += (time - since[slot]) as u64;
                }
                let from = running[slot].filter(|_| tells);
                all.push(switch(time, cpu, from, Some(who(to))));
                (running[slot], since[slot]) = (Some(who(to)), time);
            }
            all.finish(Nanos(time));
            for (thread, nanos) in expected.iter().enumerate() {
                let found = all.threads().get(thread).map_or(0, |thread| thread.running_nanos);
                prop_assert_eq!(found, *nanos);
            }
            for cpu in all.cpus() {
                prop_assert_eq!(cpu.busy_nanos + cpu.idle_nanos + cpu.unknown_nanos, time as u64);
                prop_assert_eq!(cpu.busy.values().iter().sum::<u64>(), cpu.busy_nanos);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_put_back_takes_no_time_from_anybody(
            steps in prop::collection::vec((1i64..50, 0u32..2, 0u32..4, any::<bool>()), 0..80),
            lost in prop::collection::vec((0u32..2, 0i64..2000, 0i64..300), 0..4),
        ) {
            let who = |number: u32| if number == 0 { Idle } else { Thread(number) };
            let loss = |&(stream, begin, long): &(u32, i64, i64)| Loss {
                stream: StreamIndex(stream),
                cause: LossCause::Full,
                count: None,
                interval: Interval { begin: Some(Nanos(begin)), end: Some(Nanos(begin + long)) },
            };
            let losses: Vec<Loss> = lost.iter().map(loss).collect();
            let gaps = Gaps::new(&losses, &[], |_| None);
            let mut seen = Utilisation::new(Nanos(0), 16, gaps.clone());
            let mut truth = Utilisation::new(Nanos(0), 16, Gaps::default());
            let (mut time, mut running) = (0, [Idle; 2]);
            for all in [&mut seen, &mut truth] {
                (0..2).for_each(|cpu| all.appear(cpu, Nanos(0)));
            }
            for (later, cpu, to, tells) in steps {
                time += later;
                let from = tells.then_some(running[cpu as usize]);
                let next = switch(time, cpu, from, Some(who(to)));
                running[cpu as usize] = who(to);
                truth.push(next);
                if !gaps.touch_stream(StreamIndex(cpu), Nanos(time), Nanos(time)) {
                    seen.push(next);
                }
            }
            seen.finish(Nanos(time));
            truth.finish(Nanos(time));
            for (seen, truth) in seen.threads().iter().zip(truth.threads()) {
                prop_assert!(seen.running_nanos <= truth.running_nanos);
                prop_assert!(seen.schedule_count <= truth.schedule_count);
                prop_assert!(losses.is_empty() <= (seen == truth));
                prop_assert_eq!(truth.missing_count, 0);
            }
            for (cpu, (seen, truth)) in seen.cpus().iter().zip(truth.cpus()).enumerate() {
                let is_exact = !gaps.touch_stream(StreamIndex(cpu as u32), Nanos(0), Nanos(time));
                prop_assert!(seen.busy_nanos <= truth.busy_nanos);
                prop_assert!(seen.idle_nanos <= truth.idle_nanos);
                prop_assert!(!is_exact || seen == truth);
            }
        }
    }
}
