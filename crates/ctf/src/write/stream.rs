// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One stream being written: the packet that is being filled, and the losses that later packets
//! must report.

use std::collections::VecDeque;
use std::io;

use lateralis_model::{Clock, Event, Loss, LossCause, Packet};
use lateralis_units::{Nanos, Ticks};

use super::Sink;
use super::described::WrittenStream;
use super::encode::{Encoder, Values};
use super::layout::Managed;
use super::time::ticks_at;
use crate::index::Entry;
use crate::packets::{LOSS_CAUSES, MAGIC};

/// Where the events of an open packet came from.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Origin {
    file: u32,
    offset_bytes: u64,
    sequence: Option<u64>,
    size_bytes: u64,
    end: Option<Ticks>,
}

impl Origin {
    fn of(packet: &Packet) -> Self {
        let Packet { file, offset_bytes, sequence, size_bytes, end, .. } = *packet;
        Self { file, offset_bytes, sequence, size_bytes, end }
    }
}

struct Open {
    begin: u64,
    origin: Origin,
    /// Byte at which the numbers begin that are known only at the end.
    later: usize,
}

/// What all streams of a class share.
pub(super) struct Shared<'a> {
    pub class: &'a WrittenStream,
    pub clock: Option<&'a Clock>,
    pub uuid: Option<[u8; 16]>,
    pub stream_id_bytes: usize,
    pub packet_bytes: usize,
}

impl Shared<'_> {
    fn nanos(&self, ticks: u64) -> Option<Nanos> {
        Some(self.clock?.nanos(Ticks(ticks)))
    }
}

/// A source packet up to this size stays one packet.
const KEPT_PACKET_BYTES: u64 = 1 << 20;

/// A stream being written.
pub(super) struct Stream {
    pub class: usize,
    pub number: u32,
    pub cpu: Option<u32>,
    pub encoder: Encoder,
    open: Option<Open>,
    last_ticks: u64,
    last_end: Option<u64>,
    last_origin: Option<Origin>,
    forced_begin: Option<u64>,
    /// The source's packet context as written last, bits of it that are no
    /// content, and where in it managed fields begin.
    context: (Vec<u8>, u32, Vec<(Managed, usize, usize)>),
    offset_bytes: u64,
    pub packets: u64,
    sequence: u64,
    discarded: u64,
    lost: [u64; 4],
    /// By the end of their interval.
    losses: VecDeque<Loss>,
    /// Times at which a packet must end, ascending.
    edges: VecDeque<Nanos>,
    had_writer: bool,
}

impl Stream {
    /// A stream with losses; `losses` are all of them.
    pub fn new(
        class: usize,
        number: u32,
        cpu: Option<u32>,
        mut losses: Vec<Loss>,
        clocked: bool,
    ) -> Self {
        losses.sort_by_key(|loss| loss.interval.end.unwrap_or(Nanos(i64::MAX)));
        let ends = losses.iter().flat_map(|loss| [loss.interval.begin, loss.interval.end]);
        let mut edges: Vec<Nanos> = ends.flatten().filter(|_| clocked).collect();
        edges.sort_unstable();
        edges.dedup();
        Self {
            class,
            number,
            cpu,
            encoder: Encoder::default(),
            open: None,
            last_ticks: 0,
            last_end: None,
            last_origin: None,
            forced_begin: None,
            context: (Vec::new(), 0, Vec::new()),
            offset_bytes: 0,
            packets: 0,
            sequence: 0,
            discarded: 0,
            lost: [0; 4],
            losses: losses.into(),
            edges: edges.into(),
            had_writer: false,
        }
    }

    /// Makes room for an event: ends packets that end before it, begins one.
    #[inline]
    pub fn before(
        &mut self,
        event: &Event<'_>,
        shared: &Shared<'_>,
        lateralis: bool,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let ticks = event.ticks.map_or(0, |ticks| ticks.0);
        if let Some(open) = &self.open {
            let origin = Origin::of(event.packet);
            let large = self.encoder.out.len() >= shared.packet_bytes
                && (origin.size_bytes == 0 || origin.size_bytes > KEPT_PACKET_BYTES);
            // Times have 48 bits, of which any number may overflow once.
            let far = ticks < self.last_ticks || ticks - self.last_ticks >= 1 << 47;
            if open.origin != origin {
                let end = open.origin.end;
                self.close(end.map(|end| end.0), shared, sink)?;
            } else if large || shared.clock.is_some() && far {
                self.close(None, shared, sink)?;
            }
        }
        if self.edges.front().is_some_and(|&edge| edge < event.time) {
            self.edges(Some(event.time), shared, sink)?;
        }
        let wrote = event.writer.is_some();
        if lateralis && self.had_writer && !wrote {
            // The next packet must not continue where the last one ended, or the reader would
            // attribute this event to its last writer.
            if self.open.is_some() {
                self.close(None, shared, sink)?;
            }
            self.sequence = self.sequence.saturating_add(1);
        }
        self.had_writer = wrote;
        if self.open.is_none() {
            self.begin(Some(event), ticks, shared);
        }
        self.last_ticks = ticks;
        Ok(())
    }

    fn begin(&mut self, event: Option<&Event<'_>>, ticks: u64, shared: &Shared<'_>) {
        // A further part of a packet of the source begins with its first event.
        let first = |event: &&Event<'_>| self.last_origin != Some(Origin::of(event.packet));
        let source = event.filter(first).and_then(|event| event.packet.begin);
        let source = source.map(|begin| begin.0);
        let near = |begin: &u64| *begin <= ticks && ticks - begin < 1 << 47;
        let begin = self.forced_begin.take().or(source).filter(near).unwrap_or(ticks);
        self.last_ticks = begin;
        // Packets that are missing lie before this one.
        let time = event.map_or(Nanos(i64::MAX), |event| event.time);
        // Without a clock the position is unknown; a gap needs a packet before it.
        let place = shared.clock.is_some() || self.packets > 0;
        while let Some(at) = self.losses.iter().position(|loss| {
            let due = loss.interval.end.is_none_or(|end| end <= time);
            place && due && loss.cause == LossCause::Packets
        }) {
            let count = self.losses.remove(at).and_then(|loss| loss.count);
            self.sequence = self.sequence.saturating_add(count.unwrap_or(0));
        }
        let encoder = &mut self.encoder;
        encoder.clear();
        encoder.out.extend_from_slice(&MAGIC.to_le_bytes());
        if let Some(uuid) = shared.uuid {
            encoder.out.extend_from_slice(&uuid);
        }
        encoder.out.extend_from_slice(&shared.class.id.to_le_bytes()[..shared.stream_id_bytes]);
        encoder.out.extend_from_slice(&u64::from(self.number).to_le_bytes());
        let later = encoder.out.len();
        // Filled in when the packet ends: all but the CPU have 8 bytes.
        let bytes: u32 = shared.class.own.iter().map(|own| own.bits / 8).sum();
        encoder.out.resize(later + bytes as usize, 0);
        if let Some(node) = &shared.class.packet_context {
            let at = encoder.out.len();
            match event {
                Some(event) => {
                    let mut values = Values { slots: event.packet_slots, bytes: event.bytes };
                    if encoder.value(node, &mut values, 0).is_err() {
                        encoder.dropped.note("packet contexts whose values do not fit their class");
                        encoder.take_back(at, (0, 0));
                        encoder.zeros(node);
                    }
                }
                None if !self.context.0.is_empty() => {
                    encoder.append(&self.context.0, self.context.1);
                    let managed = self.context.2.iter();
                    let moved = managed.map(|(what, from, bytes)| (*what, at + from, *bytes));
                    encoder.managed.extend(moved);
                }
                None => encoder.zeros(node),
            }
            let unused = encoder.out.len() as u64 * 8 - encoder.content_bits();
            let managed = encoder.managed.iter();
            let managed = managed.map(|(what, from, bytes)| (*what, from - at, *bytes)).collect();
            self.context = (encoder.out[at..].to_vec(), unused as u32, managed);
        }
        let origin = event.map_or_else(Origin::default, |event| Origin::of(event.packet));
        self.last_origin = event.map(|_| origin).or(self.last_origin);
        self.open = Some(Open { begin, origin, later });
    }

    /// Ends the open packet at `end` or at its last event, if that is later.
    fn close(
        &mut self,
        end: Option<u64>,
        shared: &Shared<'_>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let end = end.unwrap_or(0).max(self.last_ticks).max(open.begin);
        if let Some(time) = shared.nanos(end) {
            self.count(Some(time));
        }
        self.put(&open, end, shared, sink)
    }

    /// Adds losses up to `time`, or all of them, to the counters.
    fn count(&mut self, time: Option<Nanos>) {
        while let Some(at) = self.losses.iter().position(|loss| {
            let past = match (time, loss.interval.end) {
                (Some(time), Some(end)) => end <= time,
                (Some(_), None) => false,
                (None, _) => true,
            };
            past && loss.cause != LossCause::Packets
        }) {
            let Some(loss) = self.losses.remove(at) else { break };
            let count = loss.count.unwrap_or(0);
            self.discarded = self.discarded.saturating_add(count);
            if let Some(cause) = LOSS_CAUSES.iter().position(|cause| *cause == loss.cause) {
                self.lost[cause] = self.lost[cause].saturating_add(count);
            }
        }
    }

    fn put(
        &mut self,
        open: &Open,
        end: u64,
        shared: &Shared<'_>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let content_bits = self.encoder.content_bits();
        let packet_bits = self.encoder.out.len() as u64 * 8;
        let mut at = open.later;
        for own in &shared.class.own {
            let value = match own.name {
                "timestamp_begin" => open.begin,
                "timestamp_end" => end,
                "content_size" => content_bits,
                "packet_size" => packet_bits,
                "packet_seq_num" => self.sequence,
                "events_discarded" => self.discarded,
                "cpu_id" => u64::from(self.cpu.unwrap_or(u32::MAX)),
                name => {
                    let cause = LOST_FIELDS.iter().position(|lost| *lost == name);
                    cause.map_or(0, |cause| self.lost[cause])
                }
            };
            let bytes = own.bits as usize / 8;
            self.encoder.out[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            at += bytes;
        }
        let mut checksum = None;
        for (managed, at, bytes) in std::mem::take(&mut self.encoder.managed) {
            let value = match managed {
                Managed::Lost(cause) => self.lost[cause],
                Managed::Checksum => {
                    checksum = Some(at);
                    0
                }
                // Overwrite mode, and a part of an open packet, stay.
                Managed::RingFlags => u64::from(self.encoder.out[at] & 3),
            };
            self.encoder.out[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        if let Some(at) = checksum {
            let sum = crc32c::crc32c(&self.encoder.out);
            self.encoder.out[at..at + 4].copy_from_slice(&sum.to_le_bytes());
        }
        let entry = Entry {
            offset_bytes: self.offset_bytes,
            packet_bits,
            content_bits,
            timestamp_begin: if shared.clock.is_some() { open.begin } else { 0 },
            timestamp_end: if shared.clock.is_some() { end } else { 0 },
            events_discarded: self.discarded,
            stream_id: shared.class.id,
            stream_instance_id: u64::from(self.number),
            packet_seq_num: self.sequence,
        };
        sink.packet(self.number, &self.encoder.out, &entry)?;
        self.offset_bytes += packet_bits / 8;
        self.packets += 1;
        self.sequence = self.sequence.saturating_add(1);
        self.last_end = Some(end);
        Ok(())
    }

    /// Ends packets at the edges of losses before `until`, so that each loss is reported by a
    /// packet that ends with it.
    fn edges(
        &mut self,
        until: Option<Nanos>,
        shared: &Shared<'_>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        while let Some(&edge) = self.edges.front() {
            let Some(clock) = shared.clock.filter(|_| until.is_none_or(|until| edge < until))
            else {
                break;
            };
            self.edges.pop_front();
            let ticks = ticks_at(clock, edge);
            if let Some(open) = &self.open {
                let end = open.origin.end.filter(|end| clock.nanos(*end) == edge);
                self.close(Some(end.map_or(ticks, |end| end.0)), shared, sink)?;
                continue;
            }
            let Some(last) = self.last_end else {
                // Nothing was written yet: the first packet begins here, or
                // ends here if it is about a loss that began with it.
                // Packets that are missing need one before them.
                let gap = |loss: &Loss| {
                    loss.cause == LossCause::Packets && loss.interval.begin == Some(edge)
                };
                let due = self.due(edge) || self.losses.iter().any(gap);
                match self.forced_begin {
                    Some(begin) if due => self.empty(begin, ticks, shared, sink)?,
                    _ if due => self.empty(ticks, ticks, shared, sink)?,
                    _ => self.forced_begin = Some(ticks),
                }
                continue;
            };
            if clock.nanos(Ticks(last)) == edge {
                continue;
            }
            let missing = self
                .losses
                .iter()
                .any(|loss| loss.cause == LossCause::Packets && loss.interval.end == Some(edge));
            if missing && !self.due(edge) {
                self.forced_begin = Some(ticks);
            } else {
                self.empty(last.min(ticks), ticks, shared, sink)?;
            }
        }
        Ok(())
    }

    /// Whether a loss other than of packets ends here.
    fn due(&self, edge: Nanos) -> bool {
        self.losses.iter().any(|loss| {
            loss.cause != LossCause::Packets && loss.interval.end.is_some_and(|end| end <= edge)
        })
    }

    fn empty(
        &mut self,
        begin: u64,
        end: u64,
        shared: &Shared<'_>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let ticks = self.last_ticks;
        self.forced_begin = Some(begin);
        self.begin_empty(begin, shared);
        self.last_ticks = begin;
        self.close(Some(end), shared, sink)?;
        self.last_ticks = ticks;
        Ok(())
    }

    fn begin_empty(&mut self, begin: u64, shared: &Shared<'_>) {
        // Missing packets whose end is later than this packet are not due yet.
        let later: Vec<Loss> = match shared.nanos(begin) {
            Some(time) => {
                let later = |loss: &Loss| {
                    loss.cause == LossCause::Packets
                        && loss.interval.end.is_some_and(|end| end > time)
                };
                let kept: Vec<Loss> = self.losses.iter().filter(|l| later(l)).cloned().collect();
                self.losses.retain(|loss| !later(loss));
                kept
            }
            None => Vec::new(),
        };
        self.begin(None, begin, shared);
        self.losses.extend(later);
    }

    /// Writes what is left; a stream without events gets a packet without any,
    /// which begins at `start`.
    pub fn finish(
        &mut self,
        start: Option<Nanos>,
        shared: &Shared<'_>,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        if let Some(open) = &self.open
            && (shared.clock.is_some() || self.losses.is_empty())
        {
            let end = open.origin.end.map(|end| end.0);
            self.close(end, shared, sink)?;
        }
        self.edges(None, shared, sink)?;
        let start = match (shared.clock, start) {
            (Some(clock), Some(start)) => ticks_at(clock, start),
            _ => 0,
        };
        // Losses whose end is unknown.
        if !self.losses.is_empty() || self.packets == 0 && self.open.is_none() {
            self.count(None);
            let at = self.last_end.unwrap_or(start);
            if self.open.is_none() {
                self.begin(None, at, shared);
            }
        }
        self.close(None, shared, sink)
    }
}

/// Names of the counters of losses by cause, in the order of [`LOSS_CAUSES`].
pub(super) const LOST_FIELDS: [&str; 4] =
    ["lost_full", "lost_too_big", "lost_contended", "lost_no_ring"];
