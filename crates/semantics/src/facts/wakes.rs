// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds wakers: which events form one wakeup, and whether a thread or an interrupt caused it.
//!
//! ```text
//! sched_waking   on the waker's CPU            counts: the wakeup begins, and this is the waker
//! sched_wakeup   perhaps on another CPU        its other end; counts if no sched_waking came
//! ```
//!
//! A thread counts as the waker only if that is known: from the flags that ftrace and perf put into each
//! event, or because everything that could have interrupted the thread is recorded and nothing did.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_model::StreamIndex;
use lateralis_units::Nanos;

use super::conventions::{InterruptKind, WakeStage};
use super::{At, Leaving};

/// Threads with an open wakeup that are remembered; a hostile trace may name any number.
const MAX_PENDING: usize = 1 << 20;
/// CPUs that are remembered.
const MAX_CPUS: usize = 1 << 19;

/// Flags of events [include/linux/trace_events.h, `enum trace_flag_type`].
const HARDIRQ: u64 = 0x08;
const SOFTIRQ: u64 = 0x10;
const NMI: u64 = 0x40;

/// Cause of a wakeup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Waker {
    /// This thread.
    Thread(u32),
    /// An interrupt, or an idle CPU: no thread.
    Interrupt,
    /// The trace does not show whether it was a thread. Holds the thread that the CPU had if interrupts
    /// are recorded, but not all kinds that could have happened.
    Unknown(Option<u32>),
}

impl Waker {
    /// The thread, if it is known to be one.
    #[must_use]
    pub fn thread(self) -> Option<u32> {
        match self {
            Self::Thread(tid) => Some(tid),
            Self::Interrupt | Self::Unknown(_) => None,
        }
    }
}

/// Stage of a wakeup that an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeMoment {
    /// In the context of the waker: the wakeup begins.
    Begin,
    /// The start of a new thread.
    BeginOfNew,
    /// The thread has come to a run queue; the trace has no other event of the wakeup, which began
    /// earlier.
    Queued,
    /// Like `Queued`, for a wakeup that began while the thread was still running, about to sleep. It is
    /// asleep by now, so that it becomes runnable here.
    QueuedAgain,
}

/// A `sched_waking` whose `sched_wakeup` has not come.
#[derive(Debug, Clone, Copy)]
struct Pending {
    waker: Waker,
    /// Whether the thread has gone to sleep since: it was about to.
    has_left: bool,
}

/// Interrupts of a CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    /// Current nesting depth, by kind.
    depths: [u32; KINDS],
    /// Kinds that have occurred: a declared kind is not necessarily recorded.
    has_had: [bool; KINDS],
}

const KINDS: usize = 4;

/// Follows wakeups and interrupts, in time order.
#[derive(Debug, Default)]
pub struct WakeUps {
    pending: HashMap<u32, Pending, RandomState>,
    /// Threads with a `sched_wakeup` at this time whose `sched_waking` has not come, and its stream: it
    /// may follow in another stream.
    ended_early: (Nanos, HashMap<u32, StreamIndex, RandomState>),
    has_wakings: bool,
    /// By CPU.
    cpus: Vec<Cpu>,
}

/// Fields of a wakeup event.
#[derive(Debug, Clone, Copy)]
pub struct WakeEvent {
    pub stage: WakeStage,
    pub tid: u32,
    pub target_cpu: Option<u32>,
    pub flags: Option<u64>,
}

impl WakeMoment {
    /// Whether the wakeup begins with the event.
    #[must_use]
    pub fn is_begin(self) -> bool {
        matches!(self, Self::Begin | Self::BeginOfNew)
    }
}

impl WakeUps {
    /// Code that interrupts threads begins or ends.
    pub fn interrupt(&mut self, cpu: Option<u32>, kind: InterruptKind, begins: bool) {
        let Some(cpu) = cpu.map(|cpu| cpu as usize).filter(|cpu| *cpu < MAX_CPUS) else {
            return;
        };
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, Cpu::default());
        }
        // Ends alone do not show the nesting.
        let of = &mut self.cpus[cpu];
        let kind = match kind {
            InterruptKind::Any => {
                of.has_had.iter_mut().for_each(|has_had| *has_had |= begins);
                InterruptKind::Device as usize
            }
            kind => {
                of.has_had[kind as usize] |= begins;
                kind as usize
            }
        };
        let depth = &mut of.depths[kind];
        *depth = if begins { depth.saturating_add(1) } else { depth.saturating_sub(1) };
    }

    /// A CPU switches threads.
    pub fn switch(&mut self, cpu: Option<u32>, from: u32, leaving: Leaving, to: u32) {
        // No interrupt stays open across a switch: the event of its end is missing.
        if let Some(of) = cpu.and_then(|cpu| self.cpus.get_mut(cpu as usize)) {
            of.depths = [0; KINDS];
        }
        if self.pending.is_empty() {
            return;
        }
        if leaving != Leaving::Preempted
            && let Some(pending) = self.pending.get_mut(&from)
        {
            pending.has_left = true;
        }
        self.pending.remove(&to);
    }

    /// The waker, if this event is the one of its wakeup that counts.
    pub fn wake(&mut self, event: &WakeEvent, at: &At) -> Option<(Waker, WakeMoment)> {
        match event.stage {
            WakeStage::Waking => {
                self.has_wakings = true;
                let waker = self.waker(event, at);
                let has_room =
                    self.pending.len() < MAX_PENDING || self.pending.contains_key(&event.tid);
                if has_room && !self.has_ended_early(event.tid, at) {
                    self.pending.insert(event.tid, Pending { waker, has_left: false });
                }
                Some((waker, WakeMoment::Begin))
            }
            WakeStage::Wakeup => match self.pending.remove(&event.tid) {
                // It was woken while going to sleep: now it is in fact runnable.
                Some(Pending { waker, has_left }) => {
                    has_left.then_some((waker, WakeMoment::QueuedAgain))
                }
                // Its `sched_waking` was lost, happened before the recording, or follows in another
                // stream.
                None => {
                    self.ends_early(event.tid, at);
                    let waker = match self.has_wakings {
                        true => Waker::Unknown(None),
                        false => self.waker(event, at),
                    };
                    Some((waker, WakeMoment::Queued))
                }
            },
            WakeStage::New => Some((self.waker(event, at), WakeMoment::BeginOfNew)),
        }
    }

    fn ends_early(&mut self, tid: u32, at: &At) {
        let (time, threads) = &mut self.ended_early;
        if *time != at.time {
            *time = at.time;
            threads.clear();
        }
        if threads.len() < MAX_PENDING {
            threads.insert(tid, at.stream);
        }
    }

    /// Whether the other end of a wakeup that begins now has already come.
    fn has_ended_early(&mut self, tid: u32, at: &At) -> bool {
        let (time, threads) = &mut self.ended_early;
        *time == at.time
            && threads.get(&tid).is_some_and(|stream| *stream != at.stream)
            && threads.remove(&tid).is_some()
    }

    fn waker(&self, event: &WakeEvent, at: &At) -> Waker {
        // perf reports this instead of the id of a thread that has just ended.
        let thread = at.writer.map(|writer| writer.tid).filter(|tid| *tid != u32::MAX);
        // A CPU that receives an interrupt completes wakeups on behalf of other CPUs. An idle CPU can do
        // so without an interrupt.
        let is_foreign = event.stage == WakeStage::Wakeup
            && (event.target_cpu.is_none() || at.cpu.is_none() || event.target_cpu == at.cpu);
        let idle = if is_foreign { Waker::Unknown(None) } else { Waker::Interrupt };
        let of_cpu = at.cpu.and_then(|cpu| self.cpus.get(cpu as usize)).copied();
        let of_cpu = of_cpu.unwrap_or_default();
        let is_in = |kind: InterruptKind| of_cpu.depths[kind as usize] > 0;
        let is_in_known = is_in(InterruptKind::Device)
            || is_in(InterruptKind::Soft)
            || is_in(InterruptKind::Timer);
        if let Some(flags) = event.flags {
            return match thread {
                // Only a hard interrupt can have been sent by another CPU.
                _ if flags & (HARDIRQ | NMI) != 0 && is_foreign && !is_in_known => idle,
                _ if flags & (HARDIRQ | SOFTIRQ | NMI) != 0 => Waker::Interrupt,
                Some(0) => idle,
                Some(tid) => Waker::Thread(tid),
                None => Waker::Unknown(None),
            };
        }
        if is_in_known {
            return Waker::Interrupt;
        }
        if is_in(InterruptKind::Remote) || thread == Some(0) {
            return idle;
        }
        let has_had = |kind: InterruptKind| of_cpu.has_had[kind as usize];
        let has_some = has_had(InterruptKind::Device) || has_had(InterruptKind::Soft);
        let has_all = has_had(InterruptKind::Soft)
            && has_had(InterruptKind::Timer)
            && (has_had(InterruptKind::Remote) || !is_foreign);
        match thread {
            Some(tid) if has_all => Waker::Thread(tid),
            thread if has_some && !is_foreign => Waker::Unknown(thread),
            _ => Waker::Unknown(None),
        }
    }
}
