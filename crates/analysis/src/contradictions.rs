// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Contradictions between switches that no loss explains: the reason why the state of CPUs and threads is
//! unknown there.

use lateralis_units::Nanos;

use crate::occupancy::Occupant;

/// Two events that cannot both be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContradictionKind {
    /// One thread came to the CPU, and a different one left it.
    OtherThreadLeft {
        /// The occupant that came.
        came: Occupant,
        /// The occupant that left.
        left: Occupant,
    },
    /// A thread came to the CPU, but was then on another CPU, or did not run, before it left.
    RunsElsewhere {
        /// Its number.
        thread: u32,
    },
}

/// A contradiction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    /// The CPU with the contradictory switches.
    pub cpu: u32,
    /// Begin of the affected interval.
    pub begin: Nanos,
    /// End of the affected interval.
    pub end: Nanos,
    /// Kind of contradiction.
    pub kind: ContradictionKind,
}
