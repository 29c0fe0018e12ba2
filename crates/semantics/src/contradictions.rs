// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where switches contradict each other although no loss explains it: the reason why what threads and
//! processors did is unknown there.

use lateralis_analysis as analysis;
use lateralis_analysis::Occupant;
use lateralis_model::StreamIndex;
use lateralis_units::Nanos;

/// Contradictions kept by [`Contradictions`]; the others are counted.
const KEPT_MAX: usize = 100;

/// What two events say that cannot both be. `None`: no thread, the processor was idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContradictionKind {
    /// One thread came to the processor, and another left it.
    OtherThreadLeft {
        /// The one that came.
        came: Option<u32>,
        /// The one that left.
        left: Option<u32>,
    },
    /// A thread came to the processor, and was on another or did not run before it left.
    RunsElsewhere {
        /// The thread.
        came: Option<u32>,
    },
}

/// A contradiction between switches of one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    /// The processor.
    pub cpu: u32,
    /// Stream of the event that revealed it.
    pub stream: StreamIndex,
    /// Since when it is unknown what the processor did.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// What it is.
    pub kind: ContradictionKind,
}

impl ContradictionKind {
    /// With numbers of threads in place of those of `threads`.
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

    /// The word used in tables and JSON.
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

    /// The thread that left, if another came.
    #[must_use]
    pub fn left(self) -> Option<u32> {
        match self {
            Self::OtherThreadLeft { left, .. } => left,
            Self::RunsElsewhere { .. } => None,
        }
    }

    /// A sentence for people; `name` names a thread.
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

/// All contradictions of a recording: their number, and the first of them.
#[derive(Debug, Clone, Default)]
pub struct Contradictions {
    count: u64,
    kept: Vec<Contradiction>,
}

impl Contradictions {
    /// Adds one.
    pub fn push(&mut self, contradiction: &Contradiction) {
        self.count = self.count.saturating_add(1);
        if self.kept.len() < KEPT_MAX {
            self.kept.push(*contradiction);
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
