// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where switches contradict each other, although no loss explains it: what processors and threads did
//! there is unknown, and this is why.

use lateralis_units::Nanos;

use crate::occupancy::Occupant;

/// Contradictions that are kept; the others are counted.
const KEPT_MAX: usize = 100;

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

/// All contradictions of a recording: their number, and the first [`KEPT_MAX`].
#[derive(Debug, Clone, Default)]
pub struct Contradictions {
    count: u64,
    kept: Vec<Contradiction>,
}

impl Contradictions {
    /// Adds one.
    pub(crate) fn push(&mut self, contradiction: Contradiction) {
        self.count += 1;
        if self.kept.len() < KEPT_MAX {
            self.kept.push(contradiction);
        }
    }

    /// Number of them.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first of them, in the order in which they were found.
    #[must_use]
    pub fn kept(&self) -> &[Contradiction] {
        &self.kept
    }
}
