// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose an event is, where nobody has told but the switch before.

use std::collections::HashMap;

use lateralis_analysis::Gaps;
use lateralis_model::Writer;
use lateralis_units::Nanos;

use super::{At, Fact, Facts, Waker};

/// Processors whose last switch is remembered.
const CPUS_MAX: usize = 1 << 16;

/// Knows which threads are guessed wrongly perhaps: where switches may be missing, the thread
/// that came last may be gone, or nobody knows one though one ran.
///
/// Cost: nothing where no events are missing, else a look-up. Memory: by processors.
#[derive(Debug)]
pub struct Doubts {
    begin: Nanos,
    has_switches: bool,
    /// When each processor changed threads last.
    switched: HashMap<u32, Nanos>,
    /// Ends of spans whose thread is in doubt.
    ends: u32,
}

impl Doubts {
    /// The process of threads that nobody knows: of ends whose thread is in doubt, which began nothing,
    /// and of those of [`Doubts::nobody_on`].
    const NOBODY: u32 = lateralis_analysis::NOBODY;

    /// Who does something on a processor where nobody knows who runs: until the next switch it is one
    /// thread, and another one than on other processors. Numbers of threads are below 2²² (`PID_MAX_LIMIT`,
    /// `include/linux/threads.h`), and those of doubtful ends are counted from 0.
    #[must_use]
    #[inline]
    pub fn nobody_on(cpu: u32) -> Writer {
        Writer { pid: Self::NOBODY, tid: 1 << 31 | cpu }
    }

    /// Whether a thread is one that somebody knows.
    #[must_use]
    #[inline]
    pub fn is_known(writer: &Writer) -> bool {
        writer.pid != Self::NOBODY
    }

    /// About events from `begin` on.
    #[must_use]
    pub fn new(facts: &Facts, begin: Nanos) -> Self {
        let has_switches = facts.has_switches();
        Self { begin, has_switches, switched: HashMap::new(), ends: 0 }
    }

    /// To be shown every fact, in the order of time.
    #[inline]
    pub fn see(&mut self, at: &At, fact: &Fact, gaps: &Gaps) {
        if let (Fact::Switch { .. }, Some(cpu)) = (fact, at.cpu)
            && !gaps.is_empty()
            && (self.switched.len() < CPUS_MAX || self.switched.contains_key(&cpu))
        {
            self.switched.insert(cpu, at.time);
        }
    }

    /// Whether the thread of an event is in doubt.
    #[must_use]
    #[inline]
    pub fn is_in_doubt(&self, at: &At, gaps: &Gaps) -> bool {
        let Some(cpu) = at.cpu.filter(|_| self.has_switches && !at.is_told) else {
            return false;
        };
        !gaps.is_empty()
            && match self.switched.get(&cpu) {
                Some(since) => gaps.between((*since).min(at.time), at.time),
                None => gaps.since(self.begin.min(at.time), at.time),
            }
    }

    /// The fact as far as it is certain: `None` if it says nothing without its thread. A
    /// beginning or a message in doubt has no thread; an end has one that began nothing, so that
    /// its span counts as uncertain.
    #[inline]
    pub fn fact(&mut self, at: &At, fact: Fact, gaps: &Gaps) -> Option<(At, Fact)> {
        if !self.is_in_doubt(at, gaps) {
            return Some((*at, fact));
        }
        let writer = match fact {
            // Without a key the thread is all that tells spans apart; states are of threads.
            Fact::Begin { key: None, .. } | Fact::End { key: None, .. } | Fact::State { .. } => {
                return None;
            }
            Fact::Wake {
                tid,
                cpu,
                waker: Waker::Thread(_) | Waker::Unknown(_),
                moment,
                is_whole,
            } => {
                let waker = Waker::Unknown(None);
                let fact = Fact::Wake { tid, cpu, waker, moment, is_whole };
                return Some((At { writer: None, ..*at }, fact));
            }
            // What is said of a thread by its number.
            Fact::Wake { .. } | Fact::Belongs { .. } => at.writer,
            Fact::End { .. } => {
                self.ends = self.ends.wrapping_add(1);
                Some(Writer { pid: Self::NOBODY, tid: self.ends })
            }
            _ => None,
        };
        Some((At { writer, ..*at }, fact))
    }
}
