// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Everything known about a time range, indexed for walking backwards.

use lateralis_units::Nanos;

use super::labels::Labels;
use super::threads::{Change, Did, states};
use super::waits::Wait;

/// Cause of a wakeup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WokenBy {
    /// This thread.
    Thread(u32),
    /// An interrupt that is not attributed to a thread.
    Interrupt,
    /// Probably this thread; it is not known to be an interrupt.
    Likely(u32),
    /// Whether it was a thread is unknown.
    Unknown,
}

/// A named interval of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The thread.
    pub thread: u32,
    /// Begin.
    pub begin: Nanos,
    /// End.
    pub end: Nanos,
    /// Its name.
    pub what: u32,
}

/// A CPU handles an interrupt, whatever its thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// The CPU.
    pub cpu: u32,
    /// Begin.
    pub begin: Nanos,
    /// End.
    pub end: Nanos,
    /// Its name.
    pub what: u32,
}

/// A message with both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Sending thread.
    pub sender: u32,
    /// Time of the send.
    pub sent: Nanos,
    /// Receiving thread.
    pub receiver: u32,
    /// Time of the receive.
    pub received: Nanos,
    /// Time of the receiver's previous activity: it may have waited since.
    pub idle_since: Nanos,
    /// Name of the channel.
    pub what: u32,
}

impl Message {
    /// The wait for the message. `None` if it had arrived before the receiver could wait for it, or the
    /// receiver sent it itself.
    #[must_use]
    pub fn wait(&self) -> Option<Wait> {
        let waited = self.sent > self.idle_since && self.sent <= self.received;
        (waited && self.sender != self.receiver).then_some(Wait {
            thread: self.receiver,
            begin: self.idle_since,
            end: self.received,
            what: self.what,
            cause_time: self.sent,
            cause_thread: self.sender,
            is_message: true,
        })
    }
}

/// Occupant of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Occupant {
    /// This thread.
    Thread(u32),
    /// No thread.
    Idle,
    /// Unknown: threads that are not recorded may have come and gone.
    Unknown,
}

/// Occupant of a CPU from a time on, until the next entry for the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupied {
    /// Time.
    pub time: Nanos,
    /// The CPU.
    pub cpu: u32,
    /// Its occupant.
    pub by: Occupant,
}

/// Input of a [`Scene`], in any order.
#[derive(Debug, Clone, Default)]
pub struct SceneBuilder {
    /// State intervals of threads.
    pub did: Vec<Did>,
    /// Named intervals of threads.
    pub named: Vec<Named>,
    /// Interrupts.
    pub busy: Vec<Busy>,
    /// Waits with a known cause: see [`super::causes`] and [`Message::wait`].
    pub waits: Vec<Wait>,
    /// Occupants of the CPUs: they show which thread ran instead of a runnable one.
    pub occupied: Vec<Occupied>,
    /// Threads woken by an interrupt, the time, and the name of the interrupt or of what it completed.
    pub woken_for: Vec<(u32, Nanos, u32)>,
}

/// See the module documentation.
#[derive(Debug, Clone)]
pub struct Scene {
    pub(super) states: Vec<Vec<Change>>,
    pub(super) labels: Vec<Labels>,
    pub(super) busy: Vec<Labels>,
    /// By thread, disjoint and ascending.
    pub(super) waits: Vec<Vec<Wait>>,
    /// By CPU, ascending.
    occupied: Vec<Vec<(Nanos, Occupant)>>,
    /// Ascending.
    woken_for: Vec<(u32, Nanos, u32)>,
}

impl Scene {
    /// Occupant of a CPU just before a time, and since when.
    pub(super) fn occupant(&self, cpu: u32, time: Nanos) -> (Nanos, Occupant) {
        let of = self.occupied.get(cpu as usize).map_or(&[][..], Vec::as_slice);
        let behind = of.partition_point(|occupied| occupied.0 < time);
        match behind.checked_sub(1).and_then(|index| of.get(index)) {
            Some(occupied) => *occupied,
            None => (Nanos(i64::MIN), Occupant::Unknown),
        }
    }

    /// Purpose of the interrupt that woke a thread at a time.
    pub(super) fn woken_for(&self, thread: u32, time: Nanos) -> Option<u32> {
        let of = &self.woken_for;
        let index = of.partition_point(|(wakee, at, _)| (*wakee, *at) < (thread, time));
        of.get(index).filter(|(wakee, at, _)| (*wakee, *at) == (thread, time)).map(|of| of.2)
    }
}

impl SceneBuilder {
    /// Indexes everything. Items with a thread beyond `thread_count`, or a CPU beyond `cpu_count`, are
    /// ignored.
    ///
    /// Cost: O(n log n).
    #[must_use]
    pub fn build(self, thread_count: usize, cpu_count: usize) -> Scene {
        let mut named = vec![Vec::new(); thread_count];
        for span in &self.named {
            if let Some(of) = named.get_mut(span.thread as usize) {
                of.push((span.begin, span.end, span.what));
            }
        }
        let mut busy = vec![Vec::new(); cpu_count];
        for span in &self.busy {
            if let Some(of) = busy.get_mut(span.cpu as usize) {
                of.push((span.begin, span.end, span.what));
            }
        }
        let mut waits: Vec<Vec<Wait>> = vec![Vec::new(); thread_count];
        for wait in self.waits {
            if let Some(of) = waits.get_mut(wait.thread as usize).filter(|_| wait.begin < wait.end)
            {
                of.push(wait);
            }
        }
        waits.iter_mut().for_each(disjoint);
        let mut occupied = vec![Vec::new(); cpu_count];
        for Occupied { time, cpu, by } in self.occupied {
            if let Some(of) = occupied.get_mut(cpu as usize) {
                of.push((time, by));
            }
        }
        // Stable: of equal times the last entry counts.
        occupied.iter_mut().for_each(|of| of.sort_by_key(|occupied| occupied.0));
        let mut woken_for = self.woken_for;
        woken_for.sort_unstable();
        Scene {
            occupied,
            woken_for,
            states: states(thread_count, self.did),
            labels: named.iter().map(|spans| Labels::new(spans)).collect(),
            busy: busy.iter().map(|spans| Labels::new(spans)).collect(),
            waits,
        }
    }
}

/// Makes the waits of one thread disjoint: of two that overlap, the one that ends first is kept whole,
/// since the next can only have begun then.
fn disjoint(waits: &mut Vec<Wait>) {
    waits.sort_by_key(|wait| (wait.end, wait.begin));
    let mut free = Nanos(i64::MIN);
    waits.retain_mut(|wait| {
        wait.begin = wait.begin.max(free);
        let stays = wait.begin < wait.end;
        if stays {
            free = wait.end;
        }
        stays
    });
}
