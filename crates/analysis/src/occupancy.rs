// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Occupant of each CPU from one switch to the next: the one place that decides which intervals are
//! known. Sums, tracks and pictures are made from these intervals.

use lateralis_model::StreamIndex;
use lateralis_units::Nanos;

use crate::Gaps;

/// A CPU switches from one thread to another.
///
/// CPUs and threads are small numbers ([`crate::Numbering`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Time.
    pub time: Nanos,
    /// The CPU.
    pub cpu: u32,
    /// Stream of the switch, if no other stream can have switches of this CPU.
    pub stream: Option<StreamIndex>,
    /// Occupant until now.
    pub from: Occupant,
    /// Occupant from now on.
    pub to: Occupant,
    /// Whether the trace has all switches of the new occupant; otherwise it may leave and come back
    /// unseen.
    pub to_is_whole: bool,
    /// Whether no switch was left out since the previous one: an occupant that came then and leaves now
    /// had the CPU all the time.
    pub is_since_last: bool,
}

/// Occupant of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Occupant {
    /// No thread.
    Idle,
    /// This thread.
    Thread(u32),
}

impl Occupant {
    /// The thread, unless idle.
    #[must_use]
    pub fn thread(self) -> Option<u32> {
        match self {
            Self::Thread(thread) => Some(thread),
            Self::Idle => None,
        }
    }
}

/// A CPU from one switch to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The CPU.
    pub cpu: u32,
    /// Begin.
    pub begin: Nanos,
    /// End.
    pub end: Nanos,
    /// Occupant for all of the interval; `None` if unknown.
    pub occupant: Option<Occupant>,
    /// The first of these came and the other left: switches in between are missing.
    pub missing: Option<[Occupant; 2]>,
}

impl Stretch {
    /// Length in nanoseconds.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.end.since(self.begin).max(0) as u64
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    occupant: Option<Occupant>,
    stream: Option<StreamIndex>,
    since: Nanos,
    has_appeared: bool,
}

/// Follows the switches of CPUs, in time order for each CPU.
///
/// An interval in which switches may be missing is attributed to no thread: the times of threads and CPUs
/// are certain, and missing switches could only add to them.
///
/// Cost: constant for each switch, and a search in the gaps; memory proportional to the CPUs.
#[derive(Debug, Clone)]
pub struct Occupancy {
    begin: Nanos,
    gaps: Gaps,
    cpus: Vec<Cpu>,
}

impl Occupancy {
    /// Starts at a time, with the known gaps.
    #[must_use]
    pub fn new(begin: Nanos, gaps: Gaps) -> Self {
        Self { begin, gaps, cpus: Vec::new() }
    }

    /// Replaces the known gaps.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.gaps = gaps;
    }

    /// An event happened on a CPU. For the first event, returns the interval before it, whose occupant is
    /// unknown.
    #[inline]
    pub fn appear(&mut self, cpu: u32, time: Nanos) -> Option<Stretch> {
        if self.cpu(cpu).has_appeared {
            return None;
        }
        self.cpu(cpu).has_appeared = true;
        Some(self.stretch(cpu, None, time))
    }

    /// The thread that came to a CPU last, if known.
    #[must_use]
    pub fn occupant(&self, cpu: u32) -> Option<Occupant> {
        self.cpus.get(cpu as usize)?.occupant
    }

    /// Processes the next switch of a CPU; returns the interval that it ends.
    ///
    /// Nothing is known before the first switch: the thread that leaves then may have come just before,
    /// as the recording of switches starts later than that of other events. If the thread that leaves is
    /// not the one that came, switches are missing in between, and the interval is unknown.
    pub fn switch(&mut self, switch: Switch) -> Stretch {
        let cpu = self.cpu(switch.cpu);
        (cpu.stream, cpu.has_appeared) = (switch.stream, true);
        let (occupant, missing) = match cpu.occupant {
            Some(came) if switch.is_since_last && came == switch.from => (Some(came), None),
            Some(came) if switch.is_since_last => (None, Some([came, switch.from])),
            _ => (None, None),
        };
        let stretch = self.stretch(switch.cpu, occupant, switch.time);
        self.cpu(switch.cpu).occupant = Some(switch.to).filter(|_| switch.to_is_whole);
        Stretch { missing, ..stretch }
    }

    /// Ends the trace, or a recording that others follow. The interval after the last switch of a CPU is
    /// unknown: only the recorder could know how long no further switch came.
    pub fn finish(&mut self, cpu: u32, end: Nanos) -> Stretch {
        self.cpu(cpu).occupant = None;
        self.stretch(cpu, None, end)
    }

    /// Whether events that determine the occupant may be missing in an interval.
    pub(crate) fn has_gap(&self, stretch: &Stretch) -> bool {
        let stream = self.cpus.get(stretch.cpu as usize).and_then(|cpu| cpu.stream);
        self.gaps.between_in(stream, stretch.begin, stretch.end)
    }

    fn cpu(&mut self, cpu: u32) -> &mut Cpu {
        let index = cpu as usize;
        if index >= self.cpus.len() {
            let new = Cpu { since: self.begin, ..Cpu::default() };
            self.cpus.resize(index + 1, new);
        }
        &mut self.cpus[index]
    }

    /// Ends the interval since the last switch of a CPU.
    fn stretch(&mut self, cpu: u32, occupant: Option<Occupant>, end: Nanos) -> Stretch {
        let of = self.cpu(cpu);
        let (begin, stream) = (of.since, of.stream);
        of.since = begin.max(end);
        let is_touched = end > begin && self.gaps.between_in(stream, begin, end);
        let occupant = occupant.filter(|_| !is_touched);
        Stretch { cpu, begin, end, occupant, missing: None }
    }
}
