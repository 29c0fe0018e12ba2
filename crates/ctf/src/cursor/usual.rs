// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events whose header is as usual and whose body is straight: nearly all. What is read
//! here needs no more than a few loads; everything else is left where it is, for
//! [`Cursor::advance`] to read bit by bit.

use lateralis_model::Slot;
use lateralis_units::{Nanos, Ticks};

use super::Cursor;
use crate::plan::{StreamPlan, Usual};

/// What stays the same from one event of a packet to the next.
struct Place<'r> {
    plan: &'r StreamPlan,
    usual: &'r Usual,
    bytes: &'r [u8],
    end_bytes: usize,
    usual_end: u64,
    last_ticks: u64,
}

/// An event that was read, and where it left the packet.
#[derive(Clone, Copy)]
pub(crate) struct Read {
    pub(crate) ticks: Ticks,
    pub(crate) class_index: u32,
    /// The bit after it.
    after: u64,
}

impl Place<'_> {
    /// Reads the event at bit `position`, and appends its slots. `None`, and nothing is
    /// appended, if it is not as usual.
    #[inline(always)]
    fn read(
        &self,
        position: u64,
        clock: u64,
        registers: &mut [u64],
        slots: &mut Vec<Slot>,
    ) -> Option<Read> {
        if position >= self.usual_end {
            return None;
        }
        let at = position.div_ceil(8) as usize;
        // SAFETY: `usual_end` comes from `inside` of these bytes, so that the next byte
        // is before what that said.
        let (id, now, behind) = unsafe { self.usual.read_inside::<false>(self.bytes, at, clock) }?;
        let class_index = *self.plan.small_ids().get(id as usize)?;
        let event = self.plan.events.get(class_index as usize)?.as_ref()?;
        let straight = event.straight.as_ref()?;
        if now < clock || now > self.last_ticks || event.names_writer {
            return None;
        }
        let before = slots.len();
        let Some(after) = straight.row(self.bytes, behind, self.end_bytes, registers, slots) else {
            slots.truncate(before);
            return None;
        };
        Some(Read { ticks: Ticks(now), class_index, after: after as u64 * 8 })
    }
}

impl<'r> Cursor<'r> {
    #[inline(always)]
    fn place(&self) -> Option<Place<'r>> {
        let usual = self.plan.header.as_ref()?.usual.as_ref()?;
        let Self { plan, bytes, end_bytes, usual_end, last_ticks, .. } = *self;
        Some(Place { plan, usual, bytes, end_bytes, usual_end, last_ticks })
    }

    #[inline(always)]
    fn step_to(&mut self, read: Read) {
        self.position = read.after;
        self.machine.clock = read.ticks.0;
        self.class_index = read.class_index;
    }

    #[inline(always)]
    fn time_of(&mut self, ticks: Ticks) -> Nanos {
        match self.clock {
            Some(clock) => clock.nanos_near(&mut self.second, ticks),
            None => self.time,
        }
    }

    /// Steps to the next event if it is as usual, else does nothing.
    #[inline]
    pub(super) fn advance_usual(&mut self, slots: &mut Vec<Slot>) -> bool {
        let Some(place) = self.place() else { return false };
        let (position, clock) = (self.position, self.machine.clock);
        let Some(read) = place.read(position, clock, &mut self.machine.registers, slots) else {
            return false;
        };
        self.step_to(read);
        self.time = self.time_of(read.ticks);
        true
    }

    /// Steps over events of this packet as long as they are as usual and `see` wants
    /// more. It gets each with its time and where its slots end. Cost: what does not
    /// change is loaded once, not for each event.
    #[inline(always)]
    pub(crate) fn advance_while_usual(
        &mut self,
        slots: &mut Vec<Slot>,
        mut see: impl FnMut(Read, Nanos, usize) -> bool,
    ) {
        let Some(place) = self.place() else { return };
        let (mut position, mut clock) = (self.position, self.machine.clock);
        let mut last = None;
        while let Some(read) = place.read(position, clock, &mut self.machine.registers, slots) {
            (position, clock) = (read.after, read.ticks.0);
            let time = self.time_of(read.ticks);
            last = Some((read, time));
            if !see(read, time, slots.len()) {
                break;
            }
        }
        if let Some((read, time)) = last {
            self.step_to(read);
            self.time = time;
        }
    }
}
