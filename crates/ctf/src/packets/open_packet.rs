// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that were never closed. A producer writes the sizes of a packet when it closes it; one
//! that was killed, or failed, leaves the values from its opening: all ones (libbabeltrace), zeros
//! (producers that reserve the space), or the size of the packet with a content of zero bits
//! (barectf). Only the events determine where the events of such a packet end.

use lateralis_model::DamageReason;
use lateralis_units::Ticks;

use super::{Found, Scanner};
use crate::metadata::Role;
use crate::plan::{Machine, StreamPlan};

/// Size of a packet that was never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenSize {
    /// It is known: only the content was not.
    Bits(u64),
    /// It reaches up to the next packet, or to the end of the file.
    Unknown,
}

/// All ones in a field of 8, 16, 32 or 64 bits.
fn is_all_ones(value: u64) -> bool {
    [u64::from(u8::MAX), u64::from(u16::MAX), u64::from(u32::MAX), u64::MAX].contains(&value)
}

impl Scanner<'_> {
    /// Whether the sizes in the context of a packet are those of one that was never closed.
    pub(super) fn never_closed(
        &self,
        has_magic: bool,
        packet: Option<u64>,
        content: Option<u64>,
    ) -> Option<OpenSize> {
        // The recorder of Lateralis writes whole packets only.
        if self.lateralis {
            return None;
        }
        // Zeros are everywhere: without a magic number before them they say nothing.
        let is_unwritten = |size: u64| size == 0 && has_magic || is_all_ones(size);
        match (packet, content) {
            // An odd size says that it is no size: packets are whole bytes.
            (Some(packet), _) if is_unwritten(packet) => Some(OpenSize::Unknown),
            (None, Some(content)) if is_unwritten(content) => Some(OpenSize::Unknown),
            (Some(packet), Some(content)) if packet % 8 == 0 && is_unwritten(content) => {
                // A content that is smaller than its packet is valid, whatever its bits.
                let is_written = content > 0 && content <= packet;
                (!is_written).then_some(OpenSize::Bits(packet))
            }
            _ => None,
        }
    }

    /// The packet at the start of `rest`, whose context has just been read, with its decodable
    /// events. Its damage is always reported.
    ///
    /// Cost: linear in the bytes of the packet.
    pub(super) fn open_packet(
        &mut self,
        found: &mut Found,
        rest: &[u8],
        length: u64,
        events_offset: u64,
        size: OpenSize,
    ) -> Option<DamageReason> {
        let from = events_offset.div_ceil(8);
        let claimed = match size {
            OpenSize::Bits(bits) if bits >= events_offset => bits / 8,
            _ => u64::MAX,
        };
        // Without a size, or with one beyond the end of the file, the next packet shows where
        // this one ends.
        let next = if claimed > length { self.next_packet_inside(rest, from) } else { None };
        let size_bytes = next.unwrap_or(claimed).min(length);
        let whole = &rest[..rest.len().min(size_bytes as usize)];
        let begin = self.machine.role(Role::Clock).map(|_| self.machine.clock);
        let end = self.machine.role(Role::PacketEnd);
        let events = self.events_of_open(found.class as usize, whole);
        // The time of the end is written with the sizes, if they are not written first.
        let last = events.last.or(begin);
        let end = end.filter(|&end| !is_all_ones(end) && last.is_none_or(|last| end >= last));
        let discarded = self.machine.role(Role::Discarded);
        let packet = &mut found.packet;
        packet.size_bytes = size_bytes;
        packet.content_bits = events.end_bit.max(events_offset);
        packet.events_offset_bits = events_offset;
        packet.begin = begin.map(Ticks);
        packet.end = end.map(Ticks);
        packet.sequence = self.machine.role(Role::Sequence);
        packet.discarded = discarded.filter(|&count| !is_all_ones(count));
        self.last_event = events.last.map(Ticks);
        self.described(found, rest);
        Some(DamageReason::NeverClosed)
    }

    /// The next byte from `from` on at which a packet begins that can be believed: its magic
    /// number and UUID, or its magic number with a context whose sizes fit.
    fn next_packet_inside(&mut self, bytes: &[u8], from: u64) -> Option<u64> {
        if self.expected.is_some() && self.machine.uuid.is_some() {
            return self.next_packet(bytes, from);
        }
        let mut at = from;
        while let Some(next) = self.next_packet(bytes, at) {
            if self.has_sizes_that_fit(bytes.get(next as usize..).unwrap_or(&[])) {
                return Some(next);
            }
            at = next + 1;
        }
        None
    }

    /// Whether header and context of a packet can be read here, and contain possible sizes.
    fn has_sizes_that_fit(&self, bytes: &[u8]) -> bool {
        let end = bytes.len() as u64 * 8;
        let mut machine = Machine::new(self.plan.registers);
        if machine.run(&self.plan.packet_header, bytes, 0, end).is_err() {
            return false;
        }
        let class = self.class_of(machine.role(Role::StreamClassId));
        let Some(class) = class.and_then(|class| self.plan.streams.get(class)) else {
            return false;
        };
        machine.clear();
        let context = machine.run(&class.packet, bytes, 0, end);
        let sizes = (machine.role(Role::PacketSize), machine.role(Role::ContentSize));
        match (context, sizes) {
            (Ok(context), (Some(packet), Some(content))) => {
                let is_closed = packet % 8 == 0 && packet <= end && content <= packet;
                is_closed && content >= context || is_all_ones(packet)
            }
            _ => false,
        }
    }

    /// How far the events of a packet can be decoded. What follows them may be anything: zeros of
    /// a file made larger before it was filled, events of an earlier use of the same memory, the
    /// first half of an event.
    fn events_of_open(&self, class: usize, bytes: &[u8]) -> OpenEvents {
        let plan = &self.plan.streams[class];
        let end = bytes.len() as u64 * 8;
        let mut machine = Machine::new(self.plan.registers);
        let Ok(mut position) = machine.run(&plan.packet, bytes, 0, end) else {
            return OpenEvents { end_bit: 0, last: None };
        };
        // An event without a single bit that is set was never written.
        let written = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1);
        let mut last = None;
        while position < written * 8 {
            let before = machine.clock;
            let Some(after) = event(plan, &mut machine, bytes, position) else { break };
            if last.is_some() && machine.clock < before {
                break;
            }
            position = after;
            last = Some(machine.clock);
        }
        OpenEvents { end_bit: position, last }
    }
}

/// What is known about the events of a packet that was never closed.
struct OpenEvents {
    /// The bit after the last one.
    end_bit: u64,
    /// Clock at the last one, if there is any.
    last: Option<u64>,
}

/// The bit after the event at this bit, if there is a decodable one.
fn event(plan: &StreamPlan, machine: &mut Machine, bytes: &[u8], position: u64) -> Option<u64> {
    let end = bytes.len() as u64 * 8;
    machine.clear();
    let body = machine.run(&plan.event_header, bytes, position, end).ok()?;
    let id = machine.role(Role::EventClassId).or_else(|| plan.only_id()).unwrap_or(0);
    let class = plan.events[plan.class_index(id)? as usize].as_ref()?;
    machine.slots.clear();
    let after = machine.run(&class.program, bytes, body, end).ok()?;
    (after > position).then_some(after)
}
