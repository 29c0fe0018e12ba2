// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the packets of a stream file.
//!
//! Reading begins with packet headers only: each contains the length of its packet, so that a file
//! of a gigabyte is indexed by touching a few thousand pages. Bytes that are not a packet become
//! [`Damage`], and the search continues at the next magic number and UUID.

mod open_packet;
mod quick;

use lateralis_model::{Damage, DamageReason, Interval, LossCause, Packet, RingPlace, Uuid};
use lateralis_units::{CpuId, Nanos, Ticks};

use crate::metadata::{Role, TraceClass};
use crate::plan::{Fault, Machine, Plan};
use crate::reader::StreamFile;
use quick::Quick;

/// Bytes in which a packet's header and context are looked for first: two lines of the cache, of
/// which those of LTTng take 84 bytes.
const HEAD_BYTES: usize = 128;

/// Magic number of a packet [CTF 1.8.3 §5].
pub const MAGIC: u32 = 0xc1fc_1fc1;

/// A packet, and of which stream it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The packet.
    pub packet: Packet,
    /// Index of its stream class.
    pub class: u32,
    /// Number of its stream among those of the class, if it says so.
    pub stream_id: Option<u64>,
    /// Loss counters under the names that Lateralis gives them, cumulative: full,
    /// too big, contended, no ring.
    pub lost: Option<[u64; 4]>,
    /// Where its records were in the memory of the program, if the recorder says so.
    pub place: Option<RingPlace>,
    /// Slots that the packet header takes before those of the context.
    pub header_slots: u32,
}

/// Bits of `ring_flags` in packets of Lateralis [trace-layout, "Packet"].
mod ring_flags {
    pub const PLACE: u64 = 4;
    pub const REPEATED_WRITER: u64 = 8;
    pub const ALL_LOSSES: u64 = 16;
    pub const PLACE_SHIFT: u32 = 8;
    /// Bytes of a WRITER record.
    pub const WRITER_BYTES: u64 = 16;
}

/// Causes in the order of [`Found::lost`].
pub const LOSS_CAUSES: [LossCause; 4] =
    [LossCause::Full, LossCause::TooBig, LossCause::Contended, LossCause::NoRing];

/// Names of those counters in the packet context.
const LOSS_FIELDS: [&str; 4] = ["lost_full", "lost_too_big", "lost_contended", "lost_no_ring"];

/// What a file holds.
#[derive(Debug, Default)]
pub struct Scan {
    /// Its packets, in the order of the file.
    pub packets: Vec<Found>,
    /// What is no packet.
    pub damage: Vec<Damage>,
    /// The packets carry this UUID, not that of the metadata. They are read all
    /// the same: some writers copy metadata from trace to trace.
    pub foreign: Option<Uuid>,
}

impl Scan {
    /// Omits an incomplete packet at the end of the file, which is still being written.
    pub fn leave_unfinished(&mut self, length: u64) {
        let is_cut = |damage: &Damage| {
            use DamageReason::{NeverClosed, Truncated};
            damage.end_bytes == length && matches!(damage.reason, Truncated { .. } | NeverClosed)
        };
        if let Some(last) = self.damage.pop_if(|last| is_cut(last)) {
            self.packets.retain(|found| found.packet.offset_bytes < last.begin_bytes);
        }
    }
}

/// Reads the headers of all packets in one stream file.
pub struct Scanner<'a> {
    trace: &'a TraceClass,
    model: &'a lateralis_model::Trace,
    plan: &'a Plan,
    machine: Machine,
    quick: Option<Quick>,
    lateralis: bool,
    /// UUID of packets that belong to the file.
    expected: Option<Uuid>,
    /// Clock at the last event of the packet that was never closed and looked at last.
    last_event: Option<Ticks>,
}

/// Why no packet can begin here.
struct NoPacket {
    reason: DamageReason,
    /// Bytes to pass over where they are known to be of another packet.
    skip: Option<u64>,
}

impl<'a> Scanner<'a> {
    /// A scanner for files of this trace.
    #[must_use]
    pub fn new(trace: &'a TraceClass, model: &'a lateralis_model::Trace, plan: &'a Plan) -> Self {
        let machine = Machine::new(plan.registers);
        let lateralis = trace.is_lateralis();
        let quick = Quick::of(trace, model, plan);
        Self {
            trace,
            model,
            plan,
            machine,
            quick,
            lateralis,
            expected: trace.uuid,
            last_event: None,
        }
    }

    /// Finds the packets in a file, the one of that number, from the byte `from` on, where
    /// one begins.
    ///
    /// Cost: linear in the number of packets; in damaged stretches linear in
    /// their bytes. Lateralis packets are read whole for their checksum.
    pub fn scan(&mut self, file: u32, content: &StreamFile, from: u64) -> Scan {
        let mut scan = Scan::default();
        let bytes = (*content.bytes).as_ref();
        let mut head = [0; HEAD_BYTES];
        let mut offset = from;
        let length = bytes.len() as u64;
        self.expected = self.trace.uuid;
        if !self.lateralis {
            scan.foreign = self.adopt(bytes);
        }
        while offset < length {
            if !self.lateralis {
                let filled = content.bytes.copy_from(offset, &mut head).min(HEAD_BYTES);
                let head = (filled > 0).then_some(&head[..filled]);
                let whole = head.and_then(|head| self.whole(file, offset, head, length - offset));
                if let Some(found) = whole {
                    offset += found.packet.size_bytes;
                    scan.packets.push(found);
                    continue;
                }
            }
            let rest = &bytes[offset as usize..];
            match self.packet(file, offset, rest, rest.len() as u64) {
                Ok((found, damage)) => {
                    let begin = offset;
                    offset += found.packet.size_bytes;
                    let whole = !matches!(damage, Some(DamageReason::BadChecksum { .. }));
                    if let Some(reason) = damage {
                        let mut interval = self.interval(&found);
                        if reason == DamageReason::NeverClosed {
                            // What may be missing was after the last event that is there.
                            interval.begin = self.nanos(&found, self.last_event).or(interval.begin);
                            interval.end = None;
                        }
                        scan.damage.push(Damage {
                            file: content.name.clone(),
                            begin_bytes: begin,
                            end_bytes: offset,
                            reason,
                            interval: interval.ordered(),
                        });
                    }
                    if whole {
                        scan.packets.push(found);
                    }
                }
                Err(NoPacket { reason, skip }) => {
                    let next = match skip {
                        Some(skip) => offset + skip,
                        None => self.next_packet(bytes, offset + 1).unwrap_or(length),
                    };
                    let next = next.min(length);
                    // Where one damaged stretch follows another, one is enough.
                    match scan.damage.last_mut() {
                        Some(last) if last.end_bytes == offset && last.reason == reason => {
                            last.end_bytes = next;
                        }
                        _ => scan.damage.push(Damage {
                            file: content.name.clone(),
                            begin_bytes: offset,
                            end_bytes: next,
                            reason,
                            interval: Interval::default(),
                        }),
                    }
                    offset = next;
                }
            }
        }
        self.bound_damage(&mut scan);
        scan
    }

    /// Takes the UUID of the first packet for that of the file.
    fn adopt(&mut self, bytes: &[u8]) -> Option<Uuid> {
        self.machine.clear();
        let end = bytes.len() as u64 * 8;
        self.machine.run(&self.plan.packet_header, bytes, 0, end).ok()?;
        let magic = self.machine.role(Role::Magic).is_none_or(|magic| magic == u64::from(MAGIC));
        let found =
            self.machine.uuid.map(Uuid).filter(|found| magic && Some(*found) != self.trace.uuid)?;
        self.trace.uuid?;
        self.expected = Some(found);
        Some(found)
    }

    /// A packet in which nothing is wrong.
    fn whole(&mut self, file: u32, offset: u64, rest: &[u8], length: u64) -> Option<Found> {
        let quick = self.quick.as_ref();
        let quick =
            quick.and_then(|quick| quick.packet((file, offset), rest, length, self.expected));
        // Where both ways are compared, the slow one is gone as well.
        let is_compared = cfg!(any(test, debug_assertions));
        if quick.is_some() && !is_compared {
            return quick;
        }
        let found = match self.packet(file, offset, rest, length) {
            Ok((found, None)) => Some(found),
            _ => None,
        };
        assert!(!is_compared || quick.is_none() || quick == found, "{quick:?} {found:?}");
        found
    }

    fn interval(&self, found: &Found) -> Interval {
        let nanos = |ticks| self.nanos(found, ticks);
        Interval { begin: nanos(found.packet.begin), end: nanos(found.packet.end) }
    }

    fn nanos(&self, found: &Found, ticks: Option<Ticks>) -> Option<Nanos> {
        let class = &self.model.stream_classes[found.class as usize];
        Some(self.model.clocks.get(class.clock?)?.nanos(ticks?))
    }

    /// Damage without a time of its own lies between its neighbours.
    fn bound_damage(&self, scan: &mut Scan) {
        for damage in &mut scan.damage {
            let behind = |bytes: u64| {
                scan.packets.partition_point(|found| found.packet.offset_bytes < bytes)
            };
            let is_unknown = damage.interval == Interval::default();
            if is_unknown {
                let before = behind(damage.begin_bytes).checked_sub(1);
                let before = before.map(|index| &scan.packets[index]);
                damage.interval.begin = before.and_then(|found| self.interval(found).end);
            }
            if is_unknown || damage.reason == DamageReason::NeverClosed {
                let after = scan.packets.get(behind(damage.end_bytes));
                damage.interval.end = after.and_then(|found| self.interval(found).begin);
            }
            damage.interval = damage.interval.ordered();
        }
    }

    /// Header and context of the packet at the start of `rest`, which may be followed by more:
    /// `length` bytes in total. A header longer than `rest` is reported as damage.
    fn packet(
        &mut self,
        file: u32,
        offset: u64,
        rest: &[u8],
        length: u64,
    ) -> Result<(Found, Option<DamageReason>), NoPacket> {
        let end = rest.len() as u64 * 8;
        self.machine.clear();
        self.machine.clock = 0;
        let header = self.machine.run(&self.plan.packet_header, rest, 0, end);
        let magic = self.machine.role(Role::Magic).filter(|&magic| magic != u64::from(MAGIC));
        let bad_magic = magic.map(|magic| DamageReason::BadMagic { found: magic as u32 });
        // The magic number is reported first, because it explains all later faults.
        let no_packet =
            |reason| NoPacket { reason: bad_magic.clone().unwrap_or(reason), skip: None };
        header.map_err(|_| no_packet(DamageReason::Truncated { missing_bytes: None }))?;
        let header_slots = self.machine.slots.len() as u32;
        let uuid = self.machine.uuid.map(Uuid);
        let foreign = uuid.is_some() && self.expected.is_some() && uuid != self.expected;
        let id = self.machine.role(Role::StreamClassId);
        let Some(class) = self.class_of(id) else {
            let id = id.unwrap_or(0);
            return Err(no_packet(DamageReason::UnknownStreamClass { id }));
        };
        let mut found = Found {
            packet: Packet { file, offset_bytes: offset, ..Packet::default() },
            class: class as u32,
            stream_id: self.machine.role(Role::StreamId),
            lost: None,
            place: None,
            header_slots,
        };
        let has_magic = self.machine.role(Role::Magic) == Some(u64::from(MAGIC));
        let damage =
            self.context(&mut found, rest, length, has_magic).map_err(|no| match &bad_magic {
                Some(reason) => NoPacket { reason: reason.clone(), skip: None },
                None => no,
            })?;
        if let Some(reason) = bad_magic {
            // One wrong bit in the magic number is not worth a packet, if all
            // else says that there is one.
            let next = rest.get(found.packet.size_bytes as usize..);
            let followed = next.is_some_and(|next| next.is_empty() || self.begins_packet(next));
            let sure = uuid.is_some() && !foreign || uuid.is_none() && followed;
            return match damage {
                None if sure => Ok((found, Some(reason))),
                _ => Err(NoPacket { reason, skip: None }),
            };
        }
        if foreign {
            let skip = Some(found.packet.size_bytes).filter(|&size| size > 0);
            return Err(NoPacket { reason: DamageReason::ForeignUuid, skip });
        }
        Ok((found, damage))
    }

    /// The stream class of a packet whose header says this number, or none.
    fn class_of(&self, id: Option<u64>) -> Option<usize> {
        let class = match (id, self.trace.streams.as_slice()) {
            (Some(id), streams) => streams.iter().position(|stream| stream.id == id),
            (None, [_]) => Some(0),
            (None, streams) => streams.iter().position(|stream| stream.id == 0),
        };
        class.filter(|&class| self.plan.streams[class].readable)
    }

    fn context(
        &mut self,
        found: &mut Found,
        rest: &[u8],
        length: u64,
        has_magic: bool,
    ) -> Result<Option<DamageReason>, NoPacket> {
        let (end, length_bits) = (rest.len() as u64 * 8, length * 8);
        let class = found.class as usize;
        self.machine.clear();
        self.machine.clock = 0;
        let events_offset = self.machine.run(&self.plan.streams[class].packet, rest, 0, end);
        let events_offset = events_offset.map_err(|fault| NoPacket {
            reason: match fault {
                Fault::BeyondEnd => DamageReason::Truncated { missing_bytes: None },
                fault => damage_reason(fault),
            },
            skip: None,
        })?;
        // Without sizes the file is one packet [CTF 1.8.3 §5.2].
        let (content, size) =
            (self.machine.role(Role::ContentSize), self.machine.role(Role::PacketSize));
        if let Some(size) = self.never_closed(has_magic, size, content) {
            return Ok(self.open_packet(found, rest, length, events_offset, size));
        }
        let packet_bits = size.or(content).unwrap_or(length_bits);
        let content_bits = content.unwrap_or(packet_bits);
        let impossible = packet_bits % 8 != 0
            || packet_bits == 0
            || content_bits > packet_bits
            || content_bits < events_offset;
        if impossible {
            let reason = DamageReason::BadPacketSize { packet_bits, content_bits };
            return Err(NoPacket { reason, skip: None });
        }
        let role = |role| self.machine.role(role);
        let packet = &mut found.packet;
        packet.size_bytes = (packet_bits / 8).min(length);
        packet.content_bits = content_bits;
        packet.events_offset_bits = events_offset;
        packet.begin = role(Role::Clock).map(|_| Ticks(self.machine.clock));
        packet.end = role(Role::PacketEnd).map(Ticks);
        packet.sequence = role(Role::Sequence);
        packet.discarded = role(Role::Discarded);
        self.described(found, rest);
        if packet_bits > length_bits {
            // Resynchronise: the size itself may be the damage. A packet that
            // begins inside the claimed size shows where this one ends.
            // Magic alone could be anything, so it takes a UUID to be believed.
            let sure = self.machine.uuid.is_some() && self.expected.is_some();
            let from = events_offset / 8;
            let inside = if sure { self.next_packet(rest, from) } else { None };
            if let Some(next) = inside {
                found.packet.size_bytes = next;
                let reason = DamageReason::BadPacketSize { packet_bits, content_bits };
                let checksum = self.checksum(&rest[..next as usize]);
                return Ok(Some(checksum.unwrap_or(reason)));
            }
            let missing = (packet_bits - length_bits).div_ceil(8);
            return Ok(Some(DamageReason::Truncated { missing_bytes: Some(missing) }));
        }
        let whole = &rest[..rest.len().min(found.packet.size_bytes as usize)];
        let damage = self.checksum(whole);
        if damage.is_some() {
            // The wrong bit may be in the size, so it says nothing about where
            // the next packet begins.
            let next = self.next_packet(rest, events_offset / 8);
            found.packet.size_bytes = next.unwrap_or(rest.len() as u64);
        }
        Ok(damage)
    }

    /// Fields of the packet context that have a meaning by their name only.
    fn described(&self, found: &mut Found, rest: &[u8]) {
        let class = &self.model.stream_classes[found.class as usize];
        let Some(context) = &class.packet_context else {
            return;
        };
        let slots = self.machine.slots.get(found.header_slots as usize..).unwrap_or(&[]);
        let mut lost = [None; 4];
        let (mut area, mut ring, mut flags, mut ring_sequence) = (None, None, None, None);
        for (member, field) in lateralis_model::Fields::new(context, slots, rest) {
            if member.name == "cpu_id" {
                let cpu = field.as_u64().and_then(|cpu| u32::try_from(cpu).ok());
                found.packet.cpu = cpu.map(CpuId);
            }
            if let Some(cause) = LOSS_FIELDS.iter().position(|name| *name == member.name) {
                lost[cause] = field.as_u64();
            }
            match member.name.as_str() {
                "area_id" => area = field.as_u64(),
                "cpu_id" | "ring_id" => ring = field.as_u64(),
                "ring_flags" => flags = field.as_u64(),
                "ring_sequence" => ring_sequence = field.as_u64(),
                _ => {}
            }
        }
        if let [Some(a), Some(b), Some(c), Some(d)] = lost {
            found.lost = Some([a, b, c, d]);
        }
        let ring = ring.and_then(|ring| u32::try_from(ring).ok());
        if let (true, Some(area), Some(ring)) = (self.lateralis, area, ring) {
            found.place = place(found, (area, ring), flags, ring_sequence);
        }
    }

    /// Lateralis packets contain a CRC-32C of themselves, computed with the field as zero; 0 means
    /// that it was not computed.
    fn checksum(&self, packet: &[u8]) -> Option<DamageReason> {
        let stored = self.machine.role(Role::Checksum).filter(|&sum| sum != 0)? as u32;
        let at = usize::try_from(self.machine.checksum_bit / 8).ok()?;
        let (before, after) = (packet.get(..at)?, packet.get(at + 4..)?);
        let sum = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
        let computed = crc32c::crc32c_append(sum, after);
        (computed != stored).then_some(DamageReason::BadChecksum { stored, computed })
    }

    /// The next byte from `from` on at which a packet of this trace begins.
    ///
    /// Cost: linear in the bytes passed over.
    fn next_packet(&self, bytes: &[u8], from: u64) -> Option<u64> {
        let magic = self.trace.packet_header.as_ref()?.members().first()?;
        let is_magic = matches!(
            &magic.class,
            crate::metadata::FieldClass::Scalar(class) if class.roles.contains(Role::Magic)
        );
        if !is_magic {
            return None;
        }
        let patterns = [MAGIC.to_le_bytes(), MAGIC.to_be_bytes()];
        let mut at = usize::try_from(from).ok()?;
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= 4) {
            let candidate =
                rest.windows(4).position(|window| patterns.iter().any(|p| p == window))?;
            at += candidate;
            if self.begins_packet(&bytes[at..]) {
                return Some(at as u64);
            }
            at += 1;
        }
        None
    }

    fn begins_packet(&self, bytes: &[u8]) -> bool {
        // Not the scanner's machine, which holds the packet being read.
        let mut machine = Machine::new(self.plan.registers);
        let end = bytes.len() as u64 * 8;
        let read = machine.run(&self.plan.packet_header, bytes, 0, end).is_ok();
        let ours = match (machine.uuid, self.expected) {
            (Some(found), Some(expected)) => Uuid(found) == expected,
            _ => true,
        };
        read && ours && machine.role(Role::Magic) == Some(u64::from(MAGIC))
    }
}

/// Where the records of a packet were in a ring, as its flags say.
fn place(
    found: &Found,
    (area, ring): (u64, u32),
    flags: Option<u64>,
    sequence: Option<u64>,
) -> Option<RingPlace> {
    let flags = flags.filter(|flags| flags & ring_flags::PLACE != 0)?;
    let begin_bytes = (flags >> ring_flags::PLACE_SHIFT).saturating_mul(8);
    let is_repeated = flags & ring_flags::REPEATED_WRITER != 0;
    let added = if is_repeated { ring_flags::WRITER_BYTES } else { 0 };
    let records = found.packet.content_bits.div_ceil(64).saturating_mul(8);
    let records = records.checked_sub(found.packet.events_offset_bits / 8 + added)?;
    Some(RingPlace {
        area,
        ring,
        sequence: u32::try_from(sequence?).ok()?,
        begin_bytes,
        end_bytes: begin_bytes.saturating_add(records),
        lost: found.lost.filter(|_| flags & ring_flags::ALL_LOSSES != 0),
    })
}

/// A fault of the machine as the model says it.
#[must_use]
pub fn damage_reason(fault: Fault) -> DamageReason {
    match fault {
        Fault::BeyondEnd => DamageReason::FieldBeyondContent,
        Fault::NoSuchOption(selector) => DamageReason::NoSuchOption { selector },
        Fault::BadValue(rule) => DamageReason::BadValue { rule },
    }
}
