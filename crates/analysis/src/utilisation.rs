// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Occupants of CPUs and their times, from switches.

use lateralis_units::Nanos;

use crate::Series;
use crate::occupancy::{Occupant, Stretch, Switch};

/// Times of a CPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuTime {
    /// Nanoseconds with a thread.
    pub busy_nanos: u64,
    /// Nanoseconds without a thread.
    pub idle_nanos: u64,
    /// Nanoseconds whose switches contradict each other, or whose occupant is unknown.
    pub unknown_nanos: u64,
    /// Number of switches seen.
    pub switch_count: u64,
    /// Lower bound of missing switches: a thread left that was not the one that came.
    pub missing_count: u64,
    /// Busy nanoseconds over time.
    pub busy: Series,
}

/// CPU times of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Nanoseconds on any CPU.
    pub running_nanos: u64,
    /// Number of times it came to a CPU.
    pub schedule_count: u64,
    /// Number of times it came to another CPU than before.
    pub migration_count: u64,
    /// Number of times it left a CPU without having come there, or came and another one left.
    pub missing_count: u64,
    /// Number of intervals in which it may have run, but is not known to: before the first switch of a
    /// CPU, with which it left; after the last; between two if switches are missing or left out.
    pub open_count: u64,
    last_cpu: Option<u32>,
}

/// Adds up CPU intervals ([`crate::Occupancy`]).
///
/// Cost: constant for each switch and bucket covered by its interval; memory proportional to CPUs and
/// threads.
#[derive(Debug, Clone)]
pub struct Utilisation {
    begin: Nanos,
    buckets: usize,
    cpus: Vec<CpuTime>,
    threads: Vec<ThreadTime>,
}

impl Utilisation {
    /// Starts at a time, with at most `buckets` buckets in a time series (at least 2).
    #[must_use]
    pub fn new(begin: Nanos, buckets: usize) -> Self {
        Self { begin, buckets, cpus: Vec::new(), threads: Vec::new() }
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

    /// Adds the time of a CPU to its occupant.
    pub fn credit(&mut self, stretch: &Stretch) {
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

    /// Processes a switch, with the previous occupant of its CPU and the interval that it ends.
    pub fn push(&mut self, switch: &Switch, came: Option<Occupant>, stretch: &Stretch) {
        if let Some(between) = stretch.missing {
            self.miss(switch.cpu, between);
        }
        // The occupant in between is not known to have had the CPU all the time.
        if stretch.occupant.is_none() {
            self.is_open(Some(switch.from));
            self.is_open(came.filter(|came| *came != switch.from));
        }
        if !switch.to_is_whole {
            self.is_open(Some(switch.to));
        }
        self.credit(stretch);
        self.cpu(switch.cpu).switch_count += 1;
        for (occupant, comes) in [(switch.from, false), (switch.to, true)] {
            let Occupant::Thread(thread) = occupant else { continue };
            let time = self.thread(thread);
            time.schedule_count += u64::from(comes);
            // A thread that leaves another CPU than it came to has moved unseen.
            time.migration_count += u64::from(time.last_cpu.is_some_and(|cpu| cpu != switch.cpu));
            time.last_cpu = Some(switch.cpu);
        }
    }

    /// Notes that the running time of an occupant is unknown.
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

    /// Ends the trace with this interval of a CPU, to which an occupant had come.
    pub fn finish(&mut self, came: Option<Occupant>, stretch: &Stretch) {
        self.is_open(came);
        self.credit(stretch);
    }

    /// Times by CPU.
    #[must_use]
    pub fn cpus(&self) -> &[CpuTime] {
        &self.cpus
    }

    /// Times by thread.
    #[must_use]
    pub fn threads(&self) -> &[ThreadTime] {
        &self.threads
    }
}
