// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts chunks of a ring reader to packets of a stream file.
//!
//! ```text
//! buffer  [ header 128 | WRITER 16 | records of the chunk ... ]
//!                  └── header moves here when the chunk begins with its packet's own WRITER
//! ```
//!
//! A part of a packet that was still open becomes a packet of its own. If it does not begin with
//! the packet, the last WRITER record is inserted before it, so that every packet can be read
//! alone. The bytes are private copies by then: the same bytes are summed, counted and written.

mod part;

use std::ops::Range;

use lateralis_ring::abi::{self, packet};
use lateralis_ring::{Chunk, LossCounts, PacketHeader, PacketPlace};

use crate::index::IndexEntry;
use crate::walk::{Introduction, RecordPlan, extend_time};

/// Bytes before the records in a buffer for [`RingStream::seal`].
pub const PREFIX_BYTES: usize =
    abi::PACKET_HEADER_BYTES as usize + abi::WRITER_RECORD_BYTES as usize;
/// A record may be this much later than the time at which it was read, because counters of two CPUs may
/// differ by as much. 2^20 ticks are 0.3 ms at 3 GHz.
const CLOCK_SKEW_TICKS: u64 = 1 << 20;
/// Maximum number of loss intervals kept per ring; later losses are added to the last.
pub const INTERVALS_MAX: usize = 1000;
/// Maximum number of damages kept per ring; further ones are only counted.
pub const DAMAGES_MAX: usize = 100;

/// Events lost between two packets of a ring, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossInterval {
    /// Start, clock.
    pub from: u64,
    /// End, clock.
    pub to: u64,
    /// The losses by cause.
    pub lost: LossCounts,
}

/// Damaged content of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketDamage {
    /// Number of the packet in the stream file.
    pub sequence: u64,
    /// Bytes of records that were left out.
    pub dropped_bytes: u64,
    /// The reason.
    pub reason: String,
}

/// Sums over a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamTotals {
    /// Number of packets.
    pub packets: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of events of schemas in them.
    pub events: u64,
    /// Number of internal events in them.
    pub internal_events: u64,
    /// Packets that were overwritten before they could be read.
    pub lost_packets: u64,
    /// Packets with damage.
    pub damaged_packets: u64,
    /// Packets that began before the end of the previous one, or after they were read.
    pub backward_steps: u64,
    /// Events that were read but could not be written to the file.
    pub not_written: u64,
}

/// Common data of all packets of an area.
#[derive(Debug, Clone, Copy)]
pub struct SealContext<'a> {
    /// Trace UUID.
    pub uuid: [u8; 16],
    /// Stream class.
    pub stream_id: u32,
    /// Id of the area.
    pub area_id: u64,
    /// Layouts; `None` if the area's schemas are unreadable.
    pub plan: Option<&'a RecordPlan>,
    /// The ring is in overwrite mode.
    pub overwrite: bool,
    /// The traced machine has the other byte order.
    pub swapped: bool,
    /// Current clock; no time in a packet can be much later.
    pub now: u64,
}

/// A finished packet in the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Range in the buffer.
    pub bytes: Range<usize>,
    /// Its index entry, except for the offset in the file.
    pub index: IndexEntry,
    /// Number of events of schemas in it.
    pub events: u64,
    /// Number of internal events in it.
    pub internal_events: u64,
}

/// The packets of one ring so far.
#[derive(Debug, Clone)]
pub struct RingStream {
    ring: u32,
    sequence: u64,
    started_at: u64,
    /// End of the last packet.
    last_end: u64,
    /// Time of the last record.
    last_time: u64,
    /// Payload of the last WRITER record.
    writer: Option<[u8; 8]>,
    /// Loss counts when the recording began.
    baseline: LossCounts,
    /// Losses since then, as far as packets have reported them.
    told: LossCounts,
    counts: Vec<u64>,
    totals: StreamTotals,
    intervals: Vec<LossInterval>,
    damages: Vec<PacketDamage>,
    /// Position of the next chunk in the ring.
    place: Option<PacketPlace>,
    /// Processes that introduced themselves since the last query, and when.
    introductions: Vec<(u64, Introduction)>,
}

impl RingStream {
    /// A stream of ring `ring`, whose loss counts are `baseline` at clock `started_at`.
    pub fn new(ring: u32, baseline: LossCounts, started_at: u64) -> RingStream {
        RingStream {
            ring,
            sequence: 0,
            started_at,
            last_end: 0,
            last_time: 0,
            writer: None,
            baseline,
            told: LossCounts::default(),
            counts: Vec::new(),
            totals: StreamTotals::default(),
            intervals: Vec::new(),
            damages: Vec::new(),
            place: None,
            introductions: Vec::new(),
        }
    }

    /// Sets the baseline of the ring's loss counts. Context: before the first packet.
    pub fn lost_before(&mut self, baseline: LossCounts) {
        self.baseline = baseline;
    }

    /// The baseline of the ring's loss counts.
    pub fn lost_at_start(&self) -> LossCounts {
        self.baseline
    }

    /// Processes that introduced themselves in packets sealed since the last call, with clock
    /// times. Each is returned once; their number is bounded by the size of the packets.
    pub fn take_introductions(&mut self) -> Vec<(u64, Introduction)> {
        std::mem::take(&mut self.introductions)
    }

    /// A copy of the current state, to restore later, if its sums match.
    pub fn clone_if(&self, holds: impl Fn(&StreamTotals) -> bool) -> Option<RingStream> {
        holds(&self.totals).then(|| self.clone())
    }

    /// Sums so far.
    pub fn totals(&self) -> &StreamTotals {
        &self.totals
    }

    /// Events by id so far.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Losses since the start, by cause, as reported in packets.
    pub fn losses(&self) -> LossCounts {
        self.told
    }

    /// Losses since the start, if the ring's current counts are `live`.
    pub fn losses_of(&self, live: &LossCounts) -> LossCounts {
        live.since(&self.baseline).max(&self.told)
    }

    /// Loss intervals; at most [`INTERVALS_MAX`].
    pub fn intervals(&self) -> &[LossInterval] {
        &self.intervals
    }

    /// Damages; at most [`DAMAGES_MAX`].
    pub fn damages(&self) -> &[PacketDamage] {
        &self.damages
    }

    /// Skips overwritten packets: their sequence numbers stay unused.
    pub fn skip_packets(&mut self, count: u64) {
        self.sequence = self.sequence.saturating_add(count);
        self.totals.lost_packets = self.totals.lost_packets.saturating_add(count);
    }

    /// Adds damage that belongs to no packet.
    pub fn note_damage(&mut self, reason: String) {
        self.damage(0, reason);
    }

    fn damage(&mut self, dropped_bytes: u64, reason: String) {
        self.totals.damaged_packets += 1;
        if self.damages.len() < DAMAGES_MAX {
            self.damages.push(PacketDamage { sequence: self.sequence, dropped_bytes, reason });
        }
    }

    fn tell_losses(&mut self, live: &LossCounts, from: u64, to: u64) {
        let now = self.losses_of(live);
        let lost = now.since(&self.told);
        if lost.total() == 0 {
            return;
        }
        self.told = now;
        let is_full = self.intervals.len() == INTERVALS_MAX;
        match self.intervals.last_mut() {
            Some(last) if is_full => {
                last.to = to;
                last.lost = last.lost.plus(&lost);
            }
            _ => self.intervals.push(LossInterval { from, to, lost }),
        }
    }

    /// Sets the position of the next chunk: the records of the ring's packet `sequence` from `from` on,
    /// up to its end.
    pub fn locate(&mut self, sequence: u64, from: u64) {
        let has_all_losses = self.baseline == LossCounts::default();
        self.place =
            Some(PacketPlace { sequence, from, has_repeated_writer: false, has_all_losses });
    }

    /// Makes a packet of a chunk whose records are in `buffer` from [`PREFIX_BYTES`] on.
    /// `None` if it would be empty: no records and no new losses.
    ///
    /// Records after the first that no schema describes are left out, and reported as damage.
    /// Cost: a walk over the records and a checksum over the bytes.
    pub fn seal(
        &mut self,
        context: &SealContext<'_>,
        chunk: &Chunk,
        buffer: &mut [u8],
    ) -> Option<Sealed> {
        let own_start = chunk.from == abi::PACKET_HEADER_BYTES;
        let records = PREFIX_BYTES..PREFIX_BYTES + chunk.bytes as usize;
        let mut end = records.end;
        let mut slack = chunk.slack;
        let latest = context.now.saturating_add(CLOCK_SKEW_TICKS);
        let mut base = if own_start { chunk.header.timestamp_begin } else { self.last_time };
        if own_start && (base < self.last_end || base > latest) {
            self.totals.backward_steps += 1;
            base = base.min(latest).max(self.last_end);
        }
        let first_time = context
            .plan
            .and_then(|plan| plan.header(&buffer[records.clone()], 0))
            .map_or(base, |(_, low)| extend_time(base, low));
        let mut begin = if own_start { base } else { first_time.min(latest) };
        // The thread before the first WRITER of this part must be known before the walk.
        let writer_before = self.writer;
        let (mut events, mut internal_events) = (0, 0);
        let mut last_time = base.max(self.last_time);
        if let Some(plan) = context.plan {
            let walked =
                plan.walk(&buffer[records.clone()], slack, base..=latest, &mut self.counts);
            events = walked.events;
            internal_events = walked.internal_events;
            last_time = walked.last_time;
            if let Some(fault) = walked.fault {
                end = records.start + walked.good_bytes as usize;
                slack = walked.good_slack;
                self.damage(chunk.bytes - walked.good_bytes, fault.to_string());
            }
            let packet = &buffer[records.clone()];
            for (at, time) in &walked.processes_at {
                let said = plan.process(packet, *at as usize);
                self.introductions.extend(said.map(|said| (*time, said)));
            }
            if let Some(at) = walked.last_writer_at {
                let at = records.start + at as usize + abi::RECORD_HEADER_BYTES as usize;
                self.writer = buffer[at..at + 8].try_into().ok();
            }
        }
        begin = begin.max(self.last_end);
        let closing = chunk.header.timestamp_end;
        let mut finish = last_time.max(begin);
        if chunk.closed && closing <= context.now {
            finish = finish.max(closing);
        }
        if chunk.closed {
            let since = if self.last_end == 0 { begin } else { self.last_end };
            self.tell_losses(&chunk.header.lost, since, finish);
        }
        if end == records.start && !self.has_untold_losses() {
            self.last_time = last_time;
            self.place = None;
            return None;
        }
        if end == records.start {
            slack = 0; // it belongs to a record of an earlier packet
        }
        let mut start = records.start;
        if !own_start && end > records.start {
            start -= self.repeat_writer(context, buffer, first_time, writer_before);
            internal_events += u64::from(start != records.start);
            if let Some(place) = &mut self.place {
                place.has_repeated_writer = start != records.start;
            }
        }
        self.last_time = last_time;
        let flags = if own_start && chunk.closed { 0 } else { abi::FLAG_OPEN_PART };
        let content = start - abi::PACKET_HEADER_BYTES as usize..end;
        Some(self.finish(
            context,
            buffer,
            content,
            Numbers { slack, begin, finish, events, internal_events, flags },
        ))
    }

    /// Whether losses reported by [`RingStream::tell_losses`] are in no packet yet.
    fn has_untold_losses(&self) -> bool {
        self.intervals.last().is_some_and(|last| last.to > self.last_end)
    }

    /// Inserts the WRITER record of `writer` before the records; returns its size, 0 if there is none.
    fn repeat_writer(
        &mut self,
        context: &SealContext<'_>,
        buffer: &mut [u8],
        first_time: u64,
        writer: Option<[u8; 8]>,
    ) -> usize {
        let Some(writer) = writer else { return 0 };
        let time = first_time & ((1 << abi::TIME_BITS) - 1);
        let little = cfg!(target_endian = "little") != context.swapped;
        let word = if little {
            u64::from(abi::ID_WRITER) | time << 16
        } else {
            u64::from(abi::ID_WRITER) << 48 | time
        };
        let mut header = word.to_ne_bytes();
        if context.swapped {
            header.reverse();
        }
        let at = PREFIX_BYTES - abi::WRITER_RECORD_BYTES as usize;
        buffer[at..at + 8].copy_from_slice(&header);
        buffer[at + 8..at + 16].copy_from_slice(&writer);
        if let Some(count) = self.counts.get_mut(usize::from(abi::ID_WRITER)) {
            *count += 1;
        }
        abi::WRITER_RECORD_BYTES as usize
    }

    /// A packet without records for losses that no other packet will contain, at the end of a
    /// recording. `live` are the ring's current counts. `None` if all were reported.
    pub fn seal_losses(
        &mut self,
        context: &SealContext<'_>,
        live: &LossCounts,
        buffer: &mut [u8],
    ) -> Option<Sealed> {
        let begin = if self.last_end == 0 { self.started_at } else { self.last_end };
        let finish = context.now.max(begin);
        let before = self.told;
        self.tell_losses(live, begin, finish);
        if self.told == before {
            return None;
        }
        let end = abi::PACKET_HEADER_BYTES as usize;
        let numbers = Numbers {
            slack: 0,
            begin,
            finish,
            events: 0,
            internal_events: 0,
            flags: abi::FLAG_OPEN_PART,
        };
        Some(self.finish(context, buffer, 0..end, numbers))
    }

    /// A packet without records that contains the number of events not written, in
    /// `events_discarded`; for the end of a recording. `None` if there are none.
    pub fn seal_not_written(
        &mut self,
        context: &SealContext<'_>,
        buffer: &mut [u8],
    ) -> Option<Sealed> {
        if self.totals.not_written == 0 {
            return None;
        }
        let begin = if self.last_end == 0 { self.started_at } else { self.last_end };
        let finish = context.now.max(begin);
        let flags = abi::FLAG_OPEN_PART;
        let numbers = Numbers { slack: 0, begin, finish, events: 0, internal_events: 0, flags };
        Some(self.finish(context, buffer, 0..abi::PACKET_HEADER_BYTES as usize, numbers))
    }

    fn finish(
        &mut self,
        context: &SealContext<'_>,
        buffer: &mut [u8],
        bytes: Range<usize>,
        numbers: Numbers,
    ) -> Sealed {
        let packet_bytes = bytes.len() as u64;
        let mut header = PacketHeader {
            magic: abi::PACKET_MAGIC,
            uuid: context.uuid,
            stream_id: context.stream_id,
            timestamp_begin: numbers.begin,
            timestamp_end: numbers.finish,
            content_bits: (packet_bytes - numbers.slack) * 8,
            packet_bits: packet_bytes * 8,
            sequence: self.sequence,
            events_discarded: self.told.total().saturating_add(self.totals.not_written),
            lost: self.told,
            area_id: context.area_id,
            cpu_id: self.ring,
            checksum: 0,
            ring_flags: numbers.flags | if context.overwrite { abi::FLAG_OVERWRITE } else { 0 },
            ring_sequence: 0,
        };
        if let Some(place) = self.place.take() {
            header.set_place(&place);
        }
        let start = bytes.start;
        let encode = |header: &PacketHeader, buffer: &mut [u8]| {
            if let Some((place, _)) = buffer[start..].split_first_chunk_mut() {
                header.encode(place, context.swapped);
            }
        };
        encode(&header, buffer);
        header.checksum = crc32c::crc32c(&buffer[bytes.clone()]);
        encode(&header, buffer);
        self.sequence += 1;
        self.last_end = numbers.finish;
        self.totals.packets += 1;
        self.totals.bytes += packet_bytes;
        self.totals.events += numbers.events;
        self.totals.internal_events += numbers.internal_events;
        let index = IndexEntry {
            offset_bytes: 0,
            packet_bits: header.packet_bits,
            content_bits: header.content_bits,
            timestamp_begin: header.timestamp_begin,
            timestamp_end: header.timestamp_end,
            events_discarded: header.events_discarded,
            stream_id: u64::from(header.stream_id),
            stream_instance_id: u64::from(self.ring),
            sequence: header.sequence,
        };
        Sealed { bytes, index, events: numbers.events, internal_events: numbers.internal_events }
    }

    /// Removes a sealed packet from the sums, because it was not written to the file.
    pub fn not_written(&mut self, context: &SealContext<'_>, sealed: &Sealed, buffer: &[u8]) {
        self.totals.packets -= 1;
        self.totals.bytes -= sealed.bytes.len() as u64;
        self.totals.events -= sealed.events;
        self.totals.internal_events -= sealed.internal_events;
        self.totals.not_written += sealed.events;
        // Sequence numbers in the file count written packets.
        self.sequence = sealed.index.sequence;
        let slack = (sealed.index.packet_bits - sealed.index.content_bits) / 8;
        let records = sealed.bytes.start + abi::PACKET_HEADER_BYTES as usize..sealed.bytes.end;
        if let Some(plan) = context.plan {
            let mut counts = Vec::new();
            plan.walk(
                &buffer[records],
                slack,
                sealed.index.timestamp_begin..=u64::MAX,
                &mut counts,
            );
            for (total, count) in self.counts.iter_mut().zip(counts) {
                *total -= count.min(*total);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Numbers {
    slack: u64,
    begin: u64,
    finish: u64,
    events: u64,
    internal_events: u64,
    flags: u32,
}

/// Whether the checksum of a packet in a file is correct; `true` for packets without one.
/// `bytes` contains at least a packet header, and is unchanged afterwards.
pub fn checksum_holds(bytes: &mut [u8], swapped: bool) -> bool {
    let at = packet::CHECKSUM as usize;
    let Some(place) = bytes.get_mut(at..at + 4) else { return false };
    let mut word = [0; 4];
    word.copy_from_slice(place);
    place.fill(0);
    let sum = crc32c::crc32c(bytes);
    bytes[at..at + 4].copy_from_slice(&word);
    if swapped {
        word.reverse();
    }
    let checksum = u32::from_ne_bytes(word);
    checksum == 0 || checksum == sum
}
