// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where switches contradict each other, although no loss explains it: what processors and threads did
//! there is unknown, and this is why.

use lateralis_units::Nanos;

use crate::occupancy::Occupant;

/// What two events say that cannot both be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContradictionKind {
    /// One thread came to the processor, and another left it.
    OtherThreadLeft {
        /// The one that came.
        came: Occupant,
        /// The one that left.
        left: Occupant,
    },
    /// A thread came to the processor, and then was on another or did not run, before it left.
    RunsElsewhere {
        /// Its number.
        thread: u32,
    },
}

/// A contradiction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    /// The processor whose switches it is about.
    pub cpu: u32,
    /// Since when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// What it is.
    pub kind: ContradictionKind,
}
