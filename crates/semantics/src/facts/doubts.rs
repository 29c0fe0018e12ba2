// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decides whether the thread of an event is certain if only a preceding switch determines it.

use std::collections::HashMap;

use lateralis_analysis::Gaps;
use lateralis_model::Writer;
use lateralis_units::Nanos;

use super::{At, Fact, Facts, Waker};

/// CPUs whose last switch is remembered.
const CPUS_MAX: usize = 1 << 16;

/// Finds events whose thread may be wrong: where switches may be missing, the current thread may have
/// left the CPU, or another thread may have come.
///
/// Cost: none if no events are missing, else a lookup. Memory: proportional to the CPUs.
#[derive(Debug)]
pub struct Doubts {
    begin: Nanos,
    has_switches: bool,
    /// Time of the last switch of each CPU.
    switched: HashMap<u32, Nanos>,
    /// Number of span ends whose thread is in doubt.
    ends: u32,
}

impl Doubts {
    /// Process id of unknown threads: of ends whose thread is in doubt (which match no begin), and of
    /// [`Doubts::nobody_on`].
    const NOBODY: u32 = lateralis_analysis::NOBODY;

    /// Stand-in for the unknown thread of a CPU: one thread until the next switch, different from those
    /// of other CPUs. Thread ids are below 2²² (`PID_MAX_LIMIT`, `include/linux/threads.h`), and those of
    /// doubtful ends are counted from 0.
    #[must_use]
    #[inline]
    pub fn nobody_on(cpu: u32) -> Writer {
        Writer { pid: Self::NOBODY, tid: 1 << 31 | cpu }
    }

    /// Whether a thread is a known one.
    #[must_use]
    #[inline]
    pub fn is_known(writer: &Writer) -> bool {
        writer.pid != Self::NOBODY
    }

    /// For events from `begin` on.
    #[must_use]
    pub fn new(facts: &Facts, begin: Nanos) -> Self {
        let has_switches = facts.has_switches();
        Self { begin, has_switches, switched: HashMap::new(), ends: 0 }
    }

    /// Processes a fact; call with every fact, in time order.
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

    /// Reduces a fact to its certain part; `None` if nothing remains without the thread. A begin or a
    /// message in doubt gets no thread. An end gets a thread that began nothing, so that its span counts
    /// as uncertain.
    #[inline]
    pub fn fact(&mut self, at: &At, fact: Fact, gaps: &Gaps) -> Option<(At, Fact)> {
        if !self.is_in_doubt(at, gaps) {
            return Some((*at, fact));
        }
        let writer = match fact {
            // Without a key, spans are distinguished only by thread; states belong to threads.
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
            // Facts that name a thread by its id.
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
