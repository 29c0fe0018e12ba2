// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Machines whose recordings are read as one: processor 0 of one is not processor 0 of the other, nor is
//! process 1.

use lateralis_units::CpuId;

use crate::Writer;

/// Number of CPU ids per machine: the offset between the ids of consecutive machines.
const CPUS: u32 = 10_000;
/// Threads and processes of each machine likewise. Linux gives numbers below 2^22.
const THREADS: u32 = 100_000_000;
/// The last one whose numbers fit: more share them.
const LAST: u32 = u32::MAX / THREADS - 1;

/// One of the machines of a trace, counted from 0.
///
/// Numbers of the first are as it has them. Those of the next are larger by a power of ten, so that people
/// can still read them: processor 10003 is processor 3 of the second machine, thread 100000712 its thread
/// 712. Numbers that are too large for that stay as they are, and so does thread 0, which is idleness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Host(u32);

impl Host {
    /// By its number.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self(number.min(LAST))
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// Whether its numbers are as it has them.
    #[must_use]
    pub fn is_first(self) -> bool {
        self.0 == 0
    }

    /// What is added to numbers of its processors, and to those of its threads and processes.
    #[must_use]
    pub fn steps(self) -> (u32, u32) {
        (self.0 * CPUS, self.0 * THREADS)
    }

    /// A processor of the machine among those of all.
    #[must_use]
    pub fn cpu(self, cpu: u32) -> u32 {
        if cpu < CPUS { cpu + self.0 * CPUS } else { cpu }
    }

    /// A thread or a process of the machine among those of all.
    #[must_use]
    pub fn thread(self, number: u32) -> u32 {
        if number != 0 && number < THREADS { number + self.0 * THREADS } else { number }
    }

    /// [`Host::cpu`] of an id.
    #[must_use]
    pub fn cpu_id(self, cpu: CpuId) -> CpuId {
        CpuId(self.cpu(cpu.0))
    }

    /// [`Host::thread`] of both numbers.
    #[must_use]
    pub fn writer(self, writer: Writer) -> Writer {
        Writer { pid: self.thread(writer.pid), tid: self.thread(writer.tid) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_machines_are_apart() {
        let (first, second) = (Host::new(0), Host::new(1));
        assert_eq!((first.cpu(3), second.cpu(3)), (3, 10_003));
        assert_eq!((first.thread(712), second.thread(712)), (712, 100_000_712));
        assert_eq!((second.thread(0), second.thread(u32::MAX)), (0, u32::MAX));
        assert_eq!(Host::new(u32::MAX).thread(THREADS - 1), 4_199_999_999);
        let writer = Writer { pid: 1, tid: 2 };
        assert_eq!(second.writer(writer), Writer { pid: 100_000_001, tid: 100_000_002 });
    }
}
