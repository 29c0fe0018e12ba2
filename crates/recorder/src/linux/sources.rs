// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A source in a session: its packets are written like those of rings.

use std::time::{Duration, Instant};

use lateralis_ring::{ClockKind, LossCounts, RingKind};

use super::keep::Introduced;
use super::recording::{FinishedArea, Recording, StreamTarget, random_uuid};
use super::stream_report::{count_events, stream_report};
use crate::classes::RegisteredSchema;
use crate::report;
use crate::source::{PacketBuilder, Sink, Source, SourceStream};
use crate::stream::{SealContext, Sealed};
use crate::walk::RecordPlan;

/// Common data of all streams of a source.
struct About {
    name: String,
    registered: Vec<RegisteredSchema>,
    plan: RecordPlan,
    class_id: u32,
    area_id: u64,
    clock: ClockKind,
    overwrite: bool,
}

/// A source being recorded.
pub(super) struct LiveSource {
    source: Box<dyn Source>,
    about: About,
    streams: Vec<(SourceStream, StreamTarget)>,
    due: Instant,
}

struct RecordingSink<'a> {
    recording: &'a mut Recording,
    about: &'a About,
    streams: &'a mut [(SourceStream, StreamTarget)],
}

impl RecordingSink<'_> {
    fn write(
        &mut self,
        stream: usize,
        seal: impl FnOnce(&mut SourceStream, &SealContext<'_>) -> Option<Sealed>,
    ) {
        let Some((stream, target)) = self.streams.get_mut(stream) else { return };
        let context = SealContext {
            uuid: self.recording.uuid,
            stream_id: self.about.class_id,
            area_id: self.about.area_id,
            plan: Some(&self.about.plan),
            overwrite: self.about.overwrite,
            swapped: false,
            now: self.recording.now(),
        };
        let Some(sealed) = seal(stream, &context) else { return };
        let packet = stream.bytes(&sealed);
        if !self.recording.write_packet(target, packet, &sealed) {
            stream.not_written(&context, &sealed);
        }
    }
}

impl Sink for RecordingSink<'_> {
    fn clock(&self) -> ClockKind {
        self.about.clock
    }

    fn now(&self) -> u64 {
        self.recording.now()
    }

    fn packet(&mut self, stream: usize) -> &mut PacketBuilder {
        &mut self.streams[stream].0.packet
    }

    fn close(&mut self, stream: usize) {
        self.write(stream, SourceStream::close);
    }

    fn lose(&mut self, stream: usize, lost: LossCounts, until: u64) {
        self.close(stream);
        self.write(stream, |stream, context| stream.lose(context, lost, until));
    }

    fn damage(&mut self, stream: usize, reason: String) {
        if let Some((stream, _)) = self.streams.get_mut(stream) {
            stream.ring.note_damage(reason);
        }
    }

    fn problem(&mut self, text: String) {
        self.recording.problem(text);
    }
}

impl LiveSource {
    /// Starts recording a source.
    ///
    /// Errors: those of the source; then the recording contains nothing of it.
    pub(super) fn begin(
        recording: &mut Recording,
        source: Box<dyn Source>,
        packet_bytes: u64,
        overwrite: bool,
    ) -> Result<LiveSource, String> {
        let clock = recording.use_live_clock(super::clocks::native_kind()).kind;
        let registered = source.schemas();
        let mut plan = RecordPlan::new(false);
        for entry in &registered {
            plan.add(entry.base_id, &entry.schema);
        }
        let now = recording.now();
        let area_id = u64::from_ne_bytes(random_uuid()[8..].try_into().unwrap_or([1; 8])) | 1;
        let packet_bytes = source.packet_bytes(packet_bytes);
        let streams = source.streams().into_iter().map(|plan| {
            let target = StreamTarget::new(plan.name.clone());
            (SourceStream::new(plan, packet_bytes as usize, now), target)
        });
        let mut live = LiveSource {
            streams: streams.collect(),
            about: About {
                name: source.name().to_owned(),
                registered,
                plan,
                class_id: 0,
                area_id,
                clock,
                overwrite,
            },
            source,
            due: Instant::now(),
        };
        // A separate class, because its ids have their own meaning.
        let of_cpus = live.streams.iter().all(|(stream, _)| stream.plan.is_cpu);
        let kind = if of_cpus { RingKind::PerCpu } else { RingKind::PerThread };
        live.about.class_id = recording.classes.add(kind, &live.about.registered);
        live.with_sink(recording, |source, sink| source.begin(sink))?;
        if let Some(what) = live.source.introductions() {
            recording.introduced.push(Introduced {
                name: live.about.name.clone(),
                class_id: live.about.class_id,
                area_id: live.about.area_id,
                registered: live.about.registered.clone(),
                what,
            });
        }
        live.due = Instant::now() + live.source.period();
        Ok(live)
    }

    fn with_sink<T>(
        &mut self,
        recording: &mut Recording,
        act: impl FnOnce(&mut dyn Source, &mut dyn Sink) -> T,
    ) -> T {
        let (about, streams) = (&self.about, &mut self.streams[..]);
        act(&mut *self.source, &mut RecordingSink { recording, about, streams })
    }

    /// The source itself.
    pub(super) fn source(&mut self) -> &mut dyn Source {
        &mut *self.source
    }

    /// The source, for queries.
    pub(super) fn ask(&self) -> &dyn Source {
        &*self.source
    }

    /// Time until it has to be drained.
    pub(super) fn wait(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Drains if it is due, or a descriptor was readable; returns the fullest buffer's fraction.
    pub(super) fn drain(&mut self, recording: &mut Recording, is_ready: bool) -> f64 {
        let now = Instant::now();
        if !is_ready && now < self.due {
            return 0.0;
        }
        let fill = self.with_sink(recording, |source, sink| source.drain(sink));
        // A buffer that was more than half full is polled sooner.
        let period = self.source.period();
        self.due = Instant::now() + if fill > 0.5 { period / 4 } else { period };
        fill
    }

    /// Writes the open packets.
    pub(super) fn close_packets(&mut self, recording: &mut Recording) {
        let count = self.streams.len();
        self.with_sink(recording, |_, sink| (0..count).for_each(|stream| sink.close(stream)));
    }

    /// Numbers of events and of lost events so far.
    pub(super) fn sums(&self) -> (u64, u64) {
        self.streams.iter().fold((0, 0), |(events, lost), (stream, _)| {
            let more = stream.ring.losses().total();
            (events + stream.ring.totals().events, lost.saturating_add(more))
        })
    }

    /// Ends it and adds its sums to the recording; returns the numbers of events and of lost events.
    pub(super) fn finish(mut self, recording: &mut Recording) -> (u64, u64) {
        let said = self.with_sink(recording, |source, sink| source.finish(sink));
        self.close_packets(recording);
        let context = SealContext {
            uuid: recording.uuid,
            stream_id: self.about.class_id,
            area_id: self.about.area_id,
            plan: Some(&self.about.plan),
            overwrite: self.about.overwrite,
            swapped: false,
            now: recording.now(),
        };
        for (stream, target) in &mut self.streams {
            recording.count_not_written(&mut stream.ring, target, &context);
            recording.close_stream(target);
        }
        let sums = self.sums();
        let LiveSource { about, streams, .. } = self;
        recording.finish_area(Box::new(move |clock| {
            let area_id = format!("{:016x}", about.area_id);
            let mut finished = FinishedArea {
                source: Some(report::Source {
                    name: about.name,
                    area_id: area_id.clone(),
                    schemas: about.registered.iter().map(|e| e.schema.name.clone()).collect(),
                    details: said.details,
                    lost: said.lost,
                }),
                ..FinishedArea::default()
            };
            let names = count_events::names(&about.registered);
            for (stream, target) in streams {
                let place = (area_id.as_str(), stream.plan.number);
                let cpu = stream.plan.is_cpu.then_some(stream.plan.number);
                let Some(one) = stream_report(clock, &stream.ring, place, cpu) else { continue };
                count_events::add(&mut finished.events, stream.ring.counts(), &names);
                finished.streams.push(report::Stream { files: target.paths, ..one });
            }
            finished
        }));
        sums
    }
}
