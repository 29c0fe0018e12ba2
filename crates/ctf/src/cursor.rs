// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of one stream, one after the other.

use lateralis_model::{Damage, DamageReason, Event, Interval, Packet, Slot, StreamIndex, Writer};
use lateralis_units::{Nanos, Ticks};

use crate::metadata::Role;
use crate::packets::damage_reason;
use crate::plan::{Fault, Machine, StreamPlan};
use crate::reader::{Reader, Stream};

/// Reads the events of a stream. [`Cursor::advance`] steps,
/// [`Cursor::event`] lends the event stepped to.
pub struct Cursor<'r> {
    reader: &'r Reader,
    index: StreamIndex,
    stream: &'r Stream,
    plan: &'r StreamPlan,
    next_packet: usize,
    /// Sequence number that continues the last packet; writers are only
    /// remembered from one packet to the very next.
    continues: Option<u64>,
    packet: &'r Packet,
    packet_slots: Vec<Slot>,
    bytes: &'r [u8],
    position: u64,
    end: u64,
    machine: Machine,
    class_index: u32,
    ticks: Option<Ticks>,
    time: Nanos,
    writer: Option<Writer>,
    damage: Vec<Damage>,
}

static NO_PACKET: Packet = Packet {
    file: 0,
    offset_bytes: 0,
    size_bytes: 0,
    content_bits: 0,
    events_offset_bits: 0,
    begin: None,
    end: None,
    sequence: None,
    discarded: None,
    cpu: None,
};

impl<'r> Cursor<'r> {
    pub(crate) fn new(reader: &'r Reader, index: StreamIndex) -> Self {
        let stream = &reader.streams()[index.0 as usize];
        Self {
            reader,
            index,
            stream,
            plan: &reader.plan().streams[stream.class as usize],
            next_packet: 0,
            continues: None,
            packet: &NO_PACKET,
            packet_slots: Vec::new(),
            bytes: &[],
            position: 0,
            end: 0,
            machine: Machine::new(reader.plan().registers),
            class_index: 0,
            ticks: None,
            time: Nanos(0),
            writer: None,
            damage: Vec::new(),
        }
    }

    /// Passes over packets that end before `time`.
    pub fn skip_to(&mut self, time: Nanos) {
        while let Some(found) = self.stream.packets.get(self.next_packet) {
            let end = found.packet.end.and_then(|end| self.reader.nanos(self.stream.class, end));
            if end.is_none_or(|end| end >= time) {
                break;
            }
            self.next_packet += 1;
        }
    }

    /// Steps to the next event; false at the end of the stream.
    ///
    /// Bits that are no event end their packet and become damage.
    #[inline]
    pub fn advance(&mut self) -> bool {
        loop {
            if self.position >= self.end {
                if !self.open_packet() {
                    return false;
                }
                continue;
            }
            match self.decode() {
                Ok(()) => return true,
                Err(reason) => self.give_up(reason),
            }
        }
    }

    /// The event that [`Cursor::advance`] stepped to.
    #[inline]
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        let class = &self.reader.trace().stream_classes[self.stream.class as usize];
        Event {
            stream: self.index,
            stream_class_index: self.stream.class,
            stream_class: class,
            class_index: self.class_index,
            class: &class.event_classes[self.class_index as usize],
            ticks: self.ticks,
            time: self.time,
            writer: self.writer,
            packet: self.packet,
            bytes: self.bytes,
            packet_slots: &self.packet_slots,
            slots: &self.machine.slots,
        }
    }

    /// Time of that event; 0 in a stream without clock.
    #[inline]
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.time
    }

    /// Damage inside the packets read so far.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    fn open_packet(&mut self) -> bool {
        let stream = self.stream;
        let Some(found) = stream.packets.get(self.next_packet) else {
            return false;
        };
        self.next_packet += 1;
        let packet = &found.packet;
        let file = (*self.reader.files()[packet.file as usize].bytes).as_ref();
        let bytes = file.get(packet.offset_bytes as usize..).unwrap_or(&[]);
        self.bytes = &bytes[..bytes.len().min(packet.size_bytes as usize)];
        if packet.sequence.is_none() || packet.sequence != self.continues {
            self.writer = None;
        }
        self.continues = packet.sequence.and_then(|number| number.checked_add(1));
        self.packet = packet;
        // A packet that tells its beginning tells it whole; one that does not
        // goes on from the clock before [CTF 1.8.3 §8].
        if packet.begin.is_some() {
            self.machine.clock = 0;
        }
        self.machine.clear();
        let end = self.bytes.len() as u64 * 8;
        let context = self.machine.run(&self.plan.packet, self.bytes, 0, end);
        let skipped = (found.header_slots as usize).min(self.machine.slots.len());
        self.packet_slots.clear();
        self.packet_slots.extend_from_slice(&self.machine.slots[skipped..]);
        self.end = packet.content_bits.min(end);
        // The scanner has read the same header, so this cannot fail; if it
        // does, the packet is empty.
        self.position = context.unwrap_or(self.end);
        true
    }

    #[inline]
    fn decode(&mut self) -> Result<(), DamageReason> {
        let begin = self.position;
        self.machine.clear();
        let header = &self.plan.event_header;
        let after = self.machine.run(header, self.bytes, begin, self.end).map_err(damage_reason)?;
        let id = match self.machine.role(Role::EventClassId) {
            Some(id) => id,
            None => self.plan.only_id().unwrap_or(0),
        };
        let index = self.plan.class_index(id);
        let plan = index.and_then(|index| self.plan.events[index as usize].as_ref());
        let (Some(index), Some(plan)) = (index, plan) else {
            return Err(DamageReason::UnknownEventClass { id });
        };
        self.machine.slots.clear();
        let after = self.machine.run(&plan.program, self.bytes, after, self.end);
        let after = after.map_err(damage_reason)?;
        if after == begin {
            return Err(DamageReason::BadValue { rule: "an event has at least one bit" });
        }
        self.position = after;
        self.class_index = index;
        let class = &self.reader.trace().stream_classes[self.stream.class as usize];
        if let Some(clock) = class.clock {
            let ticks = Ticks(self.machine.clock);
            self.ticks = Some(ticks);
            self.time = self.reader.trace().clocks[clock].nanos(ticks);
        }
        if plan.names_writer {
            self.writer = self.named_writer();
        }
        Ok(())
    }

    /// The process and thread in a `lateralis:WRITER` record.
    fn named_writer(&self) -> Option<Writer> {
        let payload = self.event().payload()?;
        let id = |name| u32::try_from(payload.get(name)?.as_u64()?).ok();
        Some(Writer { pid: id("pid")?, tid: id("tid")? })
    }

    fn give_up(&mut self, reason: DamageReason) {
        let packet = self.packet;
        // The cut itself is listed with the packet; what it cuts through is no
        // damage of its own.
        let cut = (self.bytes.len() as u64 * 8) < packet.content_bits;
        if !(cut && reason == damage_reason(Fault::BeyondEnd)) {
            let nanos = |ticks: Option<Ticks>| self.reader.nanos(self.stream.class, ticks?);
            let file = &self.reader.files()[packet.file as usize].name;
            self.damage.push(Damage {
                file: file.clone(),
                begin_bytes: packet.offset_bytes + self.position / 8,
                end_bytes: packet.offset_bytes + self.end.div_ceil(8),
                reason,
                interval: Interval {
                    begin: nanos(Some(Ticks(self.machine.clock))).max(nanos(packet.begin)),
                    end: nanos(packet.end),
                },
            });
        }
        self.position = self.end;
        self.writer = None;
        self.continues = None;
    }
}
