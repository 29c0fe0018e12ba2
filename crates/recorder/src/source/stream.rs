// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream of a source: its open packet, and the sums over its sealed packets.

use lateralis_ring::{ClockKind, LossCounts};

use super::{PacketBuilder, Sink, Source, StreamPlan};
use crate::stream::{RingStream, SealContext, Sealed};
use crate::walk::RecordPlan;

/// A stream of a source.
#[derive(Debug)]
pub struct SourceStream {
    /// As described by the source.
    pub plan: StreamPlan,
    /// The open packet.
    pub packet: PacketBuilder,
    /// Numbers, sums and checks packets.
    pub ring: RingStream,
}

impl SourceStream {
    /// A stream with packets of at most `packet_bytes` that begins at clock `started_at`.
    pub fn new(plan: StreamPlan, packet_bytes: usize, started_at: u64) -> SourceStream {
        SourceStream {
            ring: RingStream::new(plan.number, LossCounts::default(), started_at),
            packet: PacketBuilder::new(packet_bytes, started_at),
            plan,
        }
    }

    fn seal(&mut self, context: &SealContext<'_>) -> Option<Sealed> {
        let (chunk, buffer) = self.packet.chunk();
        let sealed = self.ring.seal(context, &chunk, buffer);
        // A source identifies threads by itself; an area's processes are not needed.
        self.ring.take_introductions();
        self.packet.clear();
        sealed
    }

    /// Finishes the open packet; `None` if it is empty. The bytes are those of
    /// [`SourceStream::bytes`], valid until the next record.
    pub fn close(&mut self, context: &SealContext<'_>) -> Option<Sealed> {
        if self.packet.is_empty() { None } else { self.seal(context) }
    }

    /// A packet without records that contains the losses until `until`. Context: the open packet
    /// was closed.
    pub fn lose(
        &mut self,
        context: &SealContext<'_>,
        lost: LossCounts,
        until: u64,
    ) -> Option<Sealed> {
        if lost.total() == 0 {
            return None;
        }
        self.packet.lose(lost, until.min(context.now));
        self.seal(context)
    }

    /// Bytes of a packet that was just sealed.
    pub fn bytes(&self, sealed: &Sealed) -> &[u8] {
        &self.packet.buffer()[sealed.bytes.clone()]
    }

    /// Like [`RingStream::not_written`].
    pub fn not_written(&mut self, context: &SealContext<'_>, sealed: &Sealed) {
        self.ring.not_written(context, sealed, self.packet.buffer());
    }
}

/// Keeps packets in memory: for tests, and for the use of a source without a recording.
#[derive(Debug)]
pub struct MemorySink {
    /// Its streams.
    pub streams: Vec<SourceStream>,
    /// Packets by stream.
    pub packets: Vec<Vec<Vec<u8>>>,
    /// Sentences for users.
    pub problems: Vec<String>,
    plan: RecordPlan,
    now: u64,
}

impl MemorySink {
    /// A sink for a source, with `now` as the current time.
    pub fn new(source: &dyn Source, packet_bytes: usize, now: u64) -> MemorySink {
        Self::with(source.streams(), &source.schemas(), packet_bytes, now)
    }

    /// A sink for streams and schemas.
    pub fn with(
        streams: Vec<StreamPlan>,
        schemas: &[crate::classes::RegisteredSchema],
        packet_bytes: usize,
        now: u64,
    ) -> MemorySink {
        let mut plan = RecordPlan::new(false);
        for entry in schemas {
            plan.add(entry.base_id, &entry.schema);
        }
        let streams: Vec<SourceStream> =
            streams.into_iter().map(|plan| SourceStream::new(plan, packet_bytes, 0)).collect();
        let packets = vec![Vec::new(); streams.len()];
        MemorySink { streams, packets, problems: Vec::new(), plan, now }
    }

    fn write(
        &mut self,
        stream: usize,
        seal: impl FnOnce(&mut SourceStream, &SealContext<'_>) -> Option<Sealed>,
    ) {
        let context = SealContext {
            uuid: [0; 16],
            stream_id: 0,
            area_id: 1,
            plan: Some(&self.plan),
            overwrite: false,
            swapped: false,
            now: self.now,
        };
        if let Some(sealed) = seal(&mut self.streams[stream], &context) {
            let bytes = self.streams[stream].bytes(&sealed).to_vec();
            self.packets[stream].push(bytes);
        }
    }
}

impl Sink for MemorySink {
    fn clock(&self) -> ClockKind {
        ClockKind::X86Tsc
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn packet(&mut self, stream: usize) -> &mut PacketBuilder {
        &mut self.streams[stream].packet
    }

    fn close(&mut self, stream: usize) {
        self.write(stream, SourceStream::close);
    }

    fn lose(&mut self, stream: usize, lost: LossCounts, until: u64) {
        self.close(stream);
        self.write(stream, |stream, context| stream.lose(context, lost, until));
    }

    fn damage(&mut self, stream: usize, reason: String) {
        self.streams[stream].ring.note_damage(reason);
    }

    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }
}
