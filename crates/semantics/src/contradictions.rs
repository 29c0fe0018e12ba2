// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Contradictions between switches that no loss explains. The state of the threads and CPUs involved is
//! unknown there.

use lateralis_analysis as analysis;
use lateralis_analysis::Occupant;
use lateralis_model::StreamIndex;
use lateralis_units::Nanos;

/// Contradictions kept by [`Contradictions`]; the others are counted.
const KEPT_MAX: usize = 100;

/// Two events that cannot both be true. Thread `None`: the CPU was idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContradictionKind {
    /// One thread came to the CPU, and a different one left it.
    OtherThreadLeft {
        /// The thread that came.
        came: Option<u32>,
        /// The thread that left.
        left: Option<u32>,
    },
    /// A thread came to the CPU, but was on another CPU, or did not run before it left.
    RunsElsewhere {
        /// The thread.
        came: Option<u32>,
    },
}

/// A contradiction between switches of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    /// The CPU.
    pub cpu: u32,
    /// Stream of the event that revealed it.
    pub stream: StreamIndex,
    /// Start of the interval in which the state of the CPU is unknown.
    pub begin: Nanos,
    /// End of that interval.
    pub end: Nanos,
    /// Kind of contradiction.
    pub kind: ContradictionKind,
}

impl ContradictionKind {
    /// Converts from the kernel's representation; thread numbers are taken from `threads`.
    pub(crate) fn of(kind: analysis::ContradictionKind, threads: &[u32]) -> Self {
        let tid = |thread: u32| threads.get(thread as usize).copied();
        let of = |occupant: Occupant| occupant.thread().and_then(tid);
        match kind {
            analysis::ContradictionKind::OtherThreadLeft { came, left } => {
                Self::OtherThreadLeft { came: of(came), left: of(left) }
            }
            analysis::ContradictionKind::RunsElsewhere { thread } => {
                Self::RunsElsewhere { came: tid(thread) }
            }
        }
    }

    /// Name of the kind in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OtherThreadLeft { .. } => "other_thread_left",
            Self::RunsElsewhere { .. } => "runs_elsewhere",
        }
    }

    /// The thread that came.
    #[must_use]
    pub fn came(self) -> Option<u32> {
        match self {
            Self::OtherThreadLeft { came, .. } | Self::RunsElsewhere { came } => came,
        }
    }

    /// The thread that left, if it is not the one that came.
    #[must_use]
    pub fn left(self) -> Option<u32> {
        match self {
            Self::OtherThreadLeft { left, .. } => left,
            Self::RunsElsewhere { .. } => None,
        }
    }

    /// Human-readable description; `name` returns the name of a thread.
    pub fn described(self, name: impl Fn(u32) -> String) -> String {
        let name = |tid: Option<u32>| tid.map_or("(idle)".to_owned(), &name);
        match self {
            Self::OtherThreadLeft { came, left } => {
                format!("{} came, and {} left", name(came), name(left))
            }
            Self::RunsElsewhere { came } => {
                format!("{} came, and was elsewhere before it left", name(came))
            }
        }
    }
}

/// Contradictions of a recording: their number, and the first of them.
#[derive(Debug, Clone, Default)]
pub struct Contradictions {
    count: u64,
    kept: Vec<Contradiction>,
}

impl Contradictions {
    /// Adds a contradiction.
    pub fn push(&mut self, contradiction: &Contradiction) {
        self.count = self.count.saturating_add(1);
        if self.kept.len() < KEPT_MAX {
            self.kept.push(*contradiction);
        }
    }

    /// Number of contradictions, including those that were not kept.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first contradictions, in the order in which they were found.
    #[must_use]
    pub fn kept(&self) -> &[Contradiction] {
        &self.kept
    }
}
