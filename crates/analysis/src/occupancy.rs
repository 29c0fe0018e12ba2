// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who has each processor, from one switch to the next: the one place that decides which stretches are
//! known. Sums, rows and pictures are made from these stretches.

use lateralis_model::StreamIndex;
use lateralis_units::Nanos;

use crate::Gaps;

/// A processor turns from one thread to another.
///
/// Processors and threads are small numbers ([`crate::Numbering`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// When.
    pub time: Nanos,
    /// Which processor.
    pub cpu: u32,
    /// The stream that has it, if no other can have switches of this processor.
    pub stream: Option<StreamIndex>,
    /// Who ran until now.
    pub from: Occupant,
    /// Who comes.
    pub to: Occupant,
    /// Whether nothing of who comes is left out from now on: else it may leave and come back unseen.
    pub to_is_whole: bool,
    /// Whether nothing was left out since the switch before: who came then and leaves now had the
    /// processor all the time.
    pub is_since_last: bool,
}

/// What a processor does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Occupant {
    /// Nothing.
    Idle,
    /// It runs this thread.
    Thread(u32),
}

impl Occupant {
    /// Who, if anybody.
    #[must_use]
    pub fn thread(self) -> Option<u32> {
        match self {
            Self::Thread(thread) => Some(thread),
            Self::Idle => None,
        }
    }
}

/// A processor from one switch to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Which processor.
    pub cpu: u32,
    /// Since when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// Who had it all the time; `None` where that is not known.
    pub occupant: Option<Occupant>,
    /// The first of these came and the other left: switches in between are missing.
    pub missing: Option<[Occupant; 2]>,
}

impl Stretch {
    /// How long it is.
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

/// Follows processors through their switches, in the order of time on each.
///
/// A stretch in which switches may be missing is given to no thread: what threads and
/// processors get is certain, and with missing switches it could only be more.
///
/// Cost: constant for each switch, and a search among the gaps; memory by processors.
#[derive(Debug, Clone)]
pub struct Occupancy {
    begin: Nanos,
    gaps: Gaps,
    cpus: Vec<Cpu>,
}

impl Occupancy {
    /// From a moment on, with where events are missing.
    #[must_use]
    pub fn new(begin: Nanos, gaps: Gaps) -> Self {
        Self { begin, gaps, cpus: Vec::new() }
    }

    /// More is known by now of where events are missing.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.gaps = gaps;
    }

    /// Something happened on a processor. Of the first event: the stretch before it, of which nothing is
    /// known.
    #[inline]
    pub fn appear(&mut self, cpu: u32, time: Nanos) -> Option<Stretch> {
        if self.cpu(cpu).has_appeared {
            return None;
        }
        self.cpu(cpu).has_appeared = true;
        Some(self.stretch(cpu, None, time))
    }

    /// Who came to a processor last, as far as that is known.
    #[must_use]
    pub fn occupant(&self, cpu: u32) -> Option<Occupant> {
        self.cpus.get(cpu as usize)?.occupant
    }

    /// Takes the next switch of its processor, and gives the stretch that it ends.
    ///
    /// Nothing is known before the first switch: who leaves then may have come a moment before, for
    /// switches are recorded later than other events of a system begin. Where the thread that leaves
    /// is not the one that came, switches are missing in between, and the stretch is unknown.
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

    /// The trace ends, or recordings end behind which others begin. What follows the last switch of a
    /// processor is unknown: of the next one only the recorder could say when it did not come.
    pub fn finish(&mut self, cpu: u32, end: Nanos) -> Stretch {
        self.cpu(cpu).occupant = None;
        self.stretch(cpu, None, end)
    }

    /// Whether events that say who had a processor may be missing in a stretch.
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

    /// Ends what a processor did since its last switch.
    fn stretch(&mut self, cpu: u32, occupant: Option<Occupant>, end: Nanos) -> Stretch {
        let of = self.cpu(cpu);
        let (begin, stream) = (of.since, of.stream);
        of.since = begin.max(end);
        let is_touched = end > begin && self.gaps.between_in(stream, begin, end);
        let occupant = occupant.filter(|_| !is_touched);
        Stretch { cpu, begin, end, occupant, missing: None }
    }
}
