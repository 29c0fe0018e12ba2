// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of one stream, one after the other.

mod usual;

use std::ops::Range;

use lateralis_model::{
    Clock, Damage, DamageReason, EnvValue, Event, Interval, Packet, Second, Slot, StreamClass,
    StreamIndex, Writer,
};
use lateralis_units::{Nanos, Ticks};

use crate::metadata::Role;
use crate::packets::damage_reason;
use crate::plan::{Fault, Machine, StreamPlan};
use crate::reader::{Reader, Stream};

/// Reads the events of a stream. [`Cursor::advance`] steps,
/// [`Cursor::event`] lends the event stepped to.
pub struct Cursor<'r> {
    pub(crate) reader: &'r Reader,
    pub(crate) index: StreamIndex,
    stream: &'r Stream,
    pub(crate) class: &'r StreamClass,
    pub(crate) clock: Option<&'r Clock>,
    pub(crate) plan: &'r StreamPlan,
    next_packet: usize,
    after_packets: usize,
    /// Sequence number that continues the last packet; writers are only
    /// remembered from one packet to the very next.
    continues: Option<u64>,
    pub(crate) packet: &'r Packet,
    pub(crate) packet_slots: Vec<Slot>,
    pub(crate) bytes: &'r [u8],
    /// Bit of the packet at which the next event begins.
    pub(crate) position: u64,
    /// Bit at which the packet's content ends.
    pub(crate) end: u64,
    /// Byte before which steps may read: 0 in packets too large for them.
    pub(crate) end_bytes: usize,
    /// Bit before which headers may be read as usual, 0 where none are.
    usual_end: u64,
    /// Whether events can be later than their packet ends: [`ends_packets_early`].
    may_be_late: bool,
    /// The earliest readings of the clock that the first event of the packet, and a later one, can have.
    earliest_ticks: [u64; 2],
    /// The latest reading that one can have; the largest number if it is unknown.
    pub(crate) last_ticks: u64,
    pub(crate) machine: Machine,
    pub(crate) class_index: u32,
    /// Of the clock, around the last reading.
    second: Second,
    time: Nanos,
    pub(crate) writer: Option<Writer>,
    damage: Vec<Damage>,
    /// File and bytes of packets that have been read and are in memory still.
    passed: (u32, Range<u64>),
}

/// Bytes that are read before they may leave memory: to say so takes some microseconds.
const PASSED_BYTES: u64 = 4 << 20;

/// Whether the last events of a packet can be later than its end: tracers of LTTng before 2.12 read
/// the clock for the end of a packet while a last event was still written.
fn ends_packets_early(environment: &[(String, EnvValue)]) -> bool {
    let value =
        |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let number = |name: &str| match value(name) {
        Some(EnvValue::Integer(number)) => Some(*number),
        _ => None,
    };
    let tracer = value("tracer_name").and_then(EnvValue::as_text);
    let is_lttng = tracer.is_some_and(|name| name.starts_with("lttng-"));
    let version = number("tracer_major").zip(number("tracer_minor"));
    is_lttng && version.is_none_or(|version| version < (2, 12))
}

pub(crate) const NO_PACKET: Packet = Packet {
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
        Self::of_packets(reader, index, 0..usize::MAX)
    }

    /// The events of some packets of a stream.
    pub(crate) fn of_packets(
        reader: &'r Reader,
        index: StreamIndex,
        packets: Range<usize>,
    ) -> Self {
        let stream = &reader.streams()[index.0 as usize];
        let class = &reader.trace().stream_classes[stream.class as usize];
        Self {
            reader,
            index,
            stream,
            class,
            clock: class.clock.and_then(|clock| reader.trace().clocks.get(clock)),
            plan: &reader.plan().streams[stream.class as usize],
            next_packet: packets.start,
            after_packets: packets.end.min(stream.packets.len()),
            continues: None,
            packet: const { &NO_PACKET },
            packet_slots: Vec::new(),
            bytes: &[],
            position: 0,
            end: 0,
            end_bytes: 0,
            usual_end: 0,
            may_be_late: ends_packets_early(reader.trace().environment_of(stream.class)),
            earliest_ticks: [0; 2],
            last_ticks: u64::MAX,
            machine: Machine::new(reader.plan().registers),
            class_index: 0,
            second: Second::default(),
            time: Nanos(0),
            writer: None,
            damage: Vec::new(),
            passed: (0, 0..0),
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
    /// Bits that are no event end their packet and become damage, and so does an event outside
    /// the times at which its packet begins and ends. Inside of them, an event that is earlier than the one
    /// before it is delivered, and becomes damage too.
    #[inline]
    pub fn advance(&mut self) -> bool {
        let mut slots = std::mem::take(&mut self.machine.slots);
        slots.clear();
        let done = self.advance_usual(&mut slots);
        self.machine.slots = slots;
        done || self.advance_any()
    }

    /// [`Cursor::advance`] that appends the slots of the event to `slots`;
    /// [`Cursor::event`] is without any then.
    pub(crate) fn advance_onto(&mut self, slots: &mut Vec<Slot>) -> bool {
        let done = self.advance_usual(slots) || {
            let any = self.advance_any();
            slots.extend_from_slice(&self.machine.slots);
            any
        };
        self.machine.slots.clear();
        done
    }

    /// The same if there is another event in the packet, of the same writer; else the
    /// packet stays the one that is open.
    pub(crate) fn advance_inside(&mut self, slots: &mut Vec<Slot>) -> bool {
        if self.advance_usual(slots) {
            return true;
        }
        if self.position >= self.end || self.plan.names_writers {
            return false;
        }
        let decoded = self.decode();
        slots.extend_from_slice(&self.machine.slots);
        self.machine.slots.clear();
        decoded.map_err(|reason| self.give_up(reason)).is_ok()
    }

    /// Number of the packet that is open, in its stream.
    pub(crate) fn packet_number(&self) -> u64 {
        self.next_packet.saturating_sub(1) as u64
    }

    /// Reads nothing more.
    pub(crate) fn end_stream(&mut self) {
        self.next_packet = self.after_packets;
        self.position = self.end;
    }

    #[inline(never)]
    fn advance_any(&mut self) -> bool {
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
        let times = (self.ticks(), self.time);
        self.event_of(self.class_index, times, self.writer, &self.machine.slots)
    }

    /// An event of the packet that is open.
    #[inline]
    pub(crate) fn event_of<'e>(
        &'e self,
        class_index: u32,
        (ticks, time): (Ticks, Nanos),
        writer: Option<Writer>,
        slots: &'e [Slot],
    ) -> Event<'e> {
        Event {
            stream: self.index,
            stream_class_index: self.stream.class,
            stream_class: self.class,
            class_index,
            class: &self.class.event_classes[class_index as usize],
            ticks: self.clock.map(|_| ticks),
            time,
            writer,
            packet: self.packet,
            bytes: self.bytes,
            packet_slots: &self.packet_slots,
            slots,
        }
    }

    /// Time of that event; 0 in a stream without clock.
    #[inline]
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.time
    }

    /// Reading of the clock at that event; worthless in a stream without one.
    #[inline]
    pub(crate) fn ticks(&self) -> Ticks {
        Ticks(self.machine.clock)
    }

    /// Damage inside the packets read so far.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    pub(crate) fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }

    /// The packets before this one have been read.
    fn pass(&mut self, packet: &Packet) {
        let (file, read) = (self.passed.0, self.passed.1.clone());
        let goes_on = file == packet.file && read.end == packet.offset_bytes;
        let mut begin = read.start;
        if !goes_on || read.end - read.start >= PASSED_BYTES {
            self.reader.release_bytes(file, read);
            begin = packet.offset_bytes;
        }
        let end = packet.offset_bytes.saturating_add(packet.size_bytes);
        self.passed = (packet.file, begin..end);
    }

    pub(crate) fn open_packet(&mut self) -> bool {
        let stream = self.stream;
        if self.next_packet >= self.after_packets {
            self.reader.release_bytes(self.passed.0, self.passed.1.clone());
            return false;
        }
        let found = &stream.packets[self.next_packet];
        self.next_packet += 1;
        let packet = &found.packet;
        self.pass(packet);
        let file = (*self.reader.files()[packet.file as usize].bytes).as_ref();
        let bytes = file.get(packet.offset_bytes as usize..).unwrap_or(&[]);
        self.bytes = &bytes[..bytes.len().min(packet.size_bytes as usize)];
        if packet.sequence.is_none() || packet.sequence != self.continues {
            self.writer = None;
        }
        self.continues = packet.sequence.and_then(|number| number.checked_add(1));
        self.packet = packet;
        // A packet that has a start has its full value; one without a start continues from the
        // previous clock [CTF 1.8.3 §8].
        if packet.begin.is_some() {
            self.machine.clock = 0;
        }
        self.machine.clear();
        // A selector from the packet before would choose by accident.
        self.machine.registers.fill(0);
        let end = self.bytes.len() as u64 * 8;
        let context = self.machine.run(&self.plan.packet, self.bytes, 0, end);
        let skipped = (found.header_slots as usize).min(self.machine.slots.len());
        self.packet_slots.clear();
        self.packet_slots.extend_from_slice(&self.machine.slots[skipped..]);
        self.end = packet.content_bits.min(end);
        (self.earliest_ticks, self.last_ticks) = self.bounds(packet);
        let small = u32::try_from(self.bytes.len()).is_ok();
        self.end_bytes = if small { (self.end / 8) as usize } else { 0 };
        let header = self.plan.header.as_ref().filter(|header| header.has_id && small);
        let inside = header.and_then(|header| Some(header.usual?.inside(self.bytes)));
        // Of a byte before that every bit, of the one there none.
        let inside_bits = (inside.unwrap_or(0) as u64 * 8).saturating_sub(7);
        self.usual_end = self.end.min(inside_bits);
        // The scanner has read the same header, so this cannot fail; if it
        // does, the packet is empty.
        self.position = context.unwrap_or(self.end);
        true
    }

    #[inline]
    pub(crate) fn decode(&mut self) -> Result<(), DamageReason> {
        let (begin, before) = (self.position, self.machine.clock);
        let names_writer = match self.decode_fused() {
            Some(names_writer) => names_writer,
            None => self.decode_by_bits()?,
        };
        let now = self.machine.clock;
        if now > self.last_ticks || (now < before && now < self.earliest(begin)) {
            (self.position, self.machine.clock) = (begin, before);
            return Err(DamageReason::OutsidePacket);
        }
        if now < before {
            self.time_runs_backwards(begin, before);
        }
        if let Some(clock) = self.clock {
            self.time = clock.nanos_near(&mut self.second, Ticks(self.machine.clock));
        }
        if names_writer {
            self.writer = self.named_writer();
        }
        Ok(())
    }

    /// Readings of the clock that events of the packet can have, by what it says of itself.
    ///
    /// Some writers begin a packet later than its first event [barectf 2]. That one is not before the packet
    /// before it began, and of the first packet not earlier by more than the packet lasts.
    fn bounds(&self, packet: &Packet) -> ([u64; 2], u64) {
        let times = packet.begin.zip(packet.end).filter(|_| self.clock.is_some());
        let Some((begin, end)) = times.filter(|(begin, end)| begin <= end) else {
            return ([0; 2], u64::MAX);
        };
        let before = self.next_packet.checked_sub(2).and_then(|at| self.stream.packets.get(at));
        let before = before.and_then(|found| found.packet.begin).filter(|before| *before <= begin);
        let last = if self.may_be_late {
            let next = self.stream.packets.get(self.next_packet);
            next.and_then(|found| found.packet.begin).map_or(u64::MAX, |next| next.0.max(end.0))
        } else {
            end.0
        };
        let first = before.map_or(begin.0.saturating_sub(end.0 - begin.0), |before| before.0);
        ([first, begin.0], last)
    }

    /// The earliest reading of the clock that an event at this bit can have.
    fn earliest(&self, bit: u64) -> u64 {
        self.earliest_ticks[usize::from(bit > self.packet.events_offset_bits)]
    }

    /// Start of the event after this bit, if there is one: padding is not part of it.
    fn event_begin(&self, behind: u64) -> u64 {
        // Alignments are powers of two.
        let mask = self.plan.header.as_ref().map_or(0, |header| header.align_bits() - 1);
        let begin = (behind + mask) & !mask;
        if begin < self.end { begin } else { behind }
    }

    /// One event of constant header and straight body. Returns whether it names
    /// the writer; `None` if there is none such here, and nothing has changed
    /// that [`Cursor::decode_by_bits`] relies on.
    #[inline]
    fn decode_fused(&mut self) -> Option<bool> {
        let header = self.plan.header.as_ref()?;
        let at = self.position.div_ceil(8) as usize;
        let clock = self.machine.clock;
        let usual = header.usual.as_ref().and_then(|usual| usual.read(self.bytes, at, clock));
        let (id, mut clock, behind) = match usual {
            Some(read) => read,
            None => header.read_unusual(self.bytes, at, self.end_bytes, clock)?,
        };
        let id = if header.has_id { id } else { self.plan.only_id().unwrap_or(0) };
        let index = self.plan.class_index(id)?;
        let plan = self.plan.events[index as usize].as_ref()?;
        let machine = &mut self.machine;
        machine.slots.clear();
        let after = if let Some(straight) = &plan.straight {
            let (registers, slots) = (&mut machine.registers, &mut machine.slots);
            straight.row(self.bytes, behind, self.end_bytes, registers, slots)? as u64 * 8
        } else {
            let before = std::mem::replace(&mut machine.clock, clock);
            let after = machine.run(&plan.program, self.bytes, behind as u64 * 8, self.end);
            clock = machine.clock;
            machine.clock = before;
            after.ok()?
        };
        if after <= self.position {
            return None;
        }
        machine.clock = clock;
        self.position = after;
        self.class_index = index;
        Some(plan.names_writer)
    }

    /// One event of any shape. Returns whether it names the writer.
    #[cold]
    fn decode_by_bits(&mut self) -> Result<bool, DamageReason> {
        let before = self.machine.clock;
        let names_writer = self.decode_any();
        if names_writer.is_err() {
            // The time of what is no event is not to be believed.
            self.machine.clock = before;
        }
        names_writer
    }

    fn decode_any(&mut self) -> Result<bool, DamageReason> {
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
        Ok(plan.names_writer)
    }

    /// The process and thread in a `lateralis:WRITER` record.
    pub(crate) fn named_writer(&self) -> Option<Writer> {
        let payload = self.event().payload()?;
        let id = |name| u32::try_from(payload.get(name)?.as_u64()?).ok();
        Some(Writer { pid: id("pid")?, tid: id("tid")? })
    }

    /// Reports an event, just decoded from bit `begin`, that is earlier than
    /// `before`; once for each packet, from the first such event to the last.
    #[cold]
    fn time_runs_backwards(&mut self, begin: u64, before: u64) {
        let packet = self.packet;
        // Some writers begin a packet later than its first event [barectf 2].
        if begin <= packet.events_offset_bits {
            return;
        }
        let nanos = |ticks: u64| self.reader.nanos(self.stream.class, Ticks(ticks));
        let interval = Interval { begin: nanos(self.machine.clock), end: nanos(before) }.ordered();
        let file = &self.reader.files()[packet.file as usize].name;
        let end_bytes = packet.offset_bytes + self.position.div_ceil(8);
        if let Some(last) = self.damage.last_mut()
            && last.reason == DamageReason::BadTime
            && last.file == *file
            // The previous packet in time may be after this one in the file.
            && (packet.offset_bytes..end_bytes).contains(&last.begin_bytes)
        {
            last.end_bytes = end_bytes;
            last.interval.begin = last.interval.begin.min(interval.begin);
            last.interval.end = last.interval.end.max(interval.end);
            return;
        }
        self.damage.push(Damage {
            file: file.clone(),
            begin_bytes: packet.offset_bytes + self.event_begin(begin) / 8,
            end_bytes,
            reason: DamageReason::BadTime,
            interval,
        });
    }

    pub(crate) fn give_up(&mut self, reason: DamageReason) {
        let packet = self.packet;
        // The cut itself is listed with the packet; what it cuts through is no
        // damage of its own.
        let cut = (self.bytes.len() as u64 * 8) < packet.content_bits;
        if !(cut && reason == damage_reason(Fault::BeyondEnd)) {
            let nanos = |ticks: Option<Ticks>| self.reader.nanos(self.stream.class, ticks?);
            let file = &self.reader.files()[packet.file as usize].name;
            self.damage.push(Damage {
                file: file.clone(),
                begin_bytes: packet.offset_bytes + self.event_begin(self.position) / 8,
                end_bytes: packet.offset_bytes + self.end.div_ceil(8),
                reason,
                interval: Interval {
                    begin: nanos(Some(Ticks(self.machine.clock))).max(nanos(packet.begin)),
                    end: nanos(packet.end),
                }
                .ordered(),
            });
        }
        self.position = self.end;
        self.writer = None;
        self.continues = None;
    }
}
