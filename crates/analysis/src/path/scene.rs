// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All that is known of a stretch of time, indexed to be walked through backwards.

use lateralis_units::Nanos;

use super::labels::Labels;
use super::threads::{Change, Did, states};
use super::waits::Wait;

/// Who makes a thread ready to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WokenBy {
    /// This thread.
    Thread(u32),
    /// An interrupt, which no thread is to blame for.
    Interrupt,
    /// Likely this thread; that it was none is not known.
    Likely(u32),
    /// Whether it was a thread is not known.
    Unknown,
}

/// A named stretch of what a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Which thread.
    pub thread: u32,
    /// Since when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// Its name.
    pub what: u32,
}

/// A processor is busy with an interrupt, whatever thread it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// Which processor.
    pub cpu: u32,
    /// Since when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
    /// Its name.
    pub what: u32,
}

/// A message with both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Who sent it.
    pub sender: u32,
    /// When.
    pub sent: Nanos,
    /// Who got it.
    pub receiver: u32,
    /// When.
    pub received: Nanos,
    /// What the receiver did last before: it may have waited since.
    pub idle_since: Nanos,
    /// Name of the channel.
    pub what: u32,
}

impl Message {
    /// The wait for it. `None` if it was there before the receiver could wait for it, or was
    /// sent by the receiver itself.
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

/// Who has a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Occupant {
    /// This thread.
    Thread(u32),
    /// Nobody.
    Idle,
    /// Nobody is known to: others than recorded threads may have come and gone.
    Unknown,
}

/// A processor has somebody from a time on, until the next of it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupied {
    /// Since when.
    pub time: Nanos,
    /// Which processor.
    pub cpu: u32,
    /// By whom.
    pub by: Occupant,
}

/// What goes into a [`Scene`], in any order.
#[derive(Debug, Clone, Default)]
pub struct SceneBuilder {
    /// What threads did.
    pub did: Vec<Did>,
    /// Named stretches of threads.
    pub named: Vec<Named>,
    /// Interrupts.
    pub busy: Vec<Busy>,
    /// Waits whose cause is known: see [`super::causes`] and [`Message::wait`].
    pub waits: Vec<Wait>,
    /// Who had the processors: who ran instead of a thread that could.
    pub occupied: Vec<Occupied>,
    /// Threads that an interrupt woke at a time, and its name, or that of what it completed.
    pub woken_for: Vec<(u32, Nanos, u32)>,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Scene {
    pub(super) states: Vec<Vec<Change>>,
    pub(super) labels: Vec<Labels>,
    pub(super) busy: Vec<Labels>,
    /// Of each thread, disjoint and ascending.
    pub(super) waits: Vec<Vec<Wait>>,
    /// Of each processor, ascending.
    occupied: Vec<Vec<(Nanos, Occupant)>>,
    /// Ascending.
    woken_for: Vec<(u32, Nanos, u32)>,
}

impl Scene {
    /// Who had a processor just before a time, and since when.
    pub(super) fn occupant(&self, cpu: u32, time: Nanos) -> (Nanos, Occupant) {
        let of = self.occupied.get(cpu as usize).map_or(&[][..], Vec::as_slice);
        let behind = of.partition_point(|occupied| occupied.0 < time);
        match behind.checked_sub(1).and_then(|index| of.get(index)) {
            Some(occupied) => *occupied,
            None => (Nanos(i64::MIN), Occupant::Unknown),
        }
    }

    /// What the interrupt was for that woke a thread at a time.
    pub(super) fn woken_for(&self, thread: u32, time: Nanos) -> Option<u32> {
        let of = &self.woken_for;
        let index = of.partition_point(|(wakee, at, _)| (*wakee, *at) < (thread, time));
        of.get(index).filter(|(wakee, at, _)| (*wakee, *at) == (thread, time)).map(|of| of.2)
    }
}

impl SceneBuilder {
    /// Indexes everything. What names a thread beyond `thread_count`, or a processor beyond
    /// `cpu_count`, is left out.
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
        // Stable: of equal times the last that was told.
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

/// Of waits of one thread that overlap the one that ends first stays whole, since what follows
/// it can only have begun then.
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
