// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One window during writing: a recording of its own, with streams of its own.

use std::collections::HashMap;
use std::path::Path;

use lateralis_ring::{LossCounts, RingKind};

use super::super::output::Output;
use super::super::recording::{FinishedArea, Recording, StreamTarget};
use super::super::stream_report::{count_events, stream_report};
use super::Traced;
use crate::classes::{ClassTable, RegisteredSchema};
use crate::clock::ClockModel;
use crate::error::Error;
use crate::keep::{Held, Plans, Retention, cut};
use crate::report::{self, KeptWindow, Report};
use crate::stream::{PREFIX_BYTES, RingStream, SealContext};

struct PartStream {
    ring: RingStream,
    target: StreamTarget,
    class: u32,
    area_id: u64,
    number: u32,
    /// Packets before this are written, or precede the window.
    next_serial: u64,
}

/// Creates the report of the stream of names.
pub(super) type NamesReport = Box<dyn FnOnce(&ClockModel) -> Option<report::Stream> + Send>;

/// A window or chunk being written.
pub(super) struct Part {
    pub(super) recording: Recording,
    /// Report of the stream of names, once the clock is known.
    pub(super) names: Option<NamesReport>,
    streams: HashMap<u64, PartStream>,
    buffer: Vec<u8>,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) window: KeptWindow,
    events: Option<(u64, u64)>,
    /// Packets of the window that were dropped for lack of memory.
    forgotten_at_start: u64,
}

impl Part {
    /// Errors: its directory cannot be created.
    pub(super) fn new(
        main: &Recording,
        root: &Path,
        (from, to): (u64, u64),
        bytes_max: u64,
        window: KeptWindow,
    ) -> Result<Part, Error> {
        let mut recording = main.part(Output::create(root, Some(bytes_max))?);
        // The others contain all packets of a chunk, and the next chunk continues where this one ends.
        if (from, to) != (0, u64::MAX) {
            recording.describe_as_part();
        }
        Ok(Part {
            recording,
            names: None,
            streams: HashMap::new(),
            buffer: vec![0; PREFIX_BYTES + (64 << 10)],
            from,
            to,
            window,
            events: None,
            forgotten_at_start: 0,
        })
    }

    /// Size of its stream files in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.recording.output.bytes()
    }

    /// Whether a write failed.
    pub(super) fn has_failed(&self) -> bool {
        self.recording.output_ended
    }

    /// Stores the number of packets dropped for lack of memory when it began.
    pub(super) fn begins_at(&mut self, kept: &Retention) {
        self.forgotten_at_start = kept.forgotten_packets();
        if kept.forgotten_until() > self.from {
            self.window.short.push("memory had no room for its beginning: --memory".to_owned());
        }
    }

    /// Writes the retained packets of the window until `watermark`: complete ones, or at its end
    /// (`is_last`) their parts within it.
    pub(super) fn write(
        &mut self,
        kept: &Retention,
        classes: &ClassTable,
        plans: &mut Plans,
        (watermark, is_last): (u64, bool),
    ) {
        let mut before: HashMap<u64, LossCounts> = HashMap::new();
        for packet in kept.packets() {
            if packet.header.timestamp_end < self.from {
                before.insert(packet.stream, packet.header.lost);
                continue;
            }
            let reaches_beyond = packet.header.timestamp_end > self.to.min(watermark);
            if reaches_beyond && !is_last || packet.header.timestamp_begin > self.to {
                continue;
            }
            let Some(about) = kept.stream(packet.stream) else { continue };
            let lost = before.get(&packet.stream).copied().unwrap_or(about.lost_before);
            self.write_packet(packet, &about.name, lost, classes, plans);
        }
    }

    /// Writes the part of a packet within the window. The losses of its stream before matter for
    /// its first packet.
    pub(super) fn write_packet(
        &mut self,
        packet: &Held,
        name: &str,
        lost_before: LossCounts,
        classes: &ClassTable,
        plans: &mut Plans,
    ) {
        if self.recording.classes.version() != classes.version() {
            self.recording.classes = classes.clone();
        }
        let class = packet.header.stream_id;
        let started_at = packet.header.timestamp_begin.max(self.from);
        let stream = self.streams.entry(packet.stream).or_insert_with(|| PartStream {
            ring: RingStream::new(packet.header.cpu_id, lost_before, started_at),
            target: StreamTarget::new(name.to_owned()),
            class,
            area_id: packet.header.area_id,
            number: packet.header.cpu_id,
            next_serial: 0,
        });
        if packet.serial < stream.next_serial {
            return;
        }
        stream.next_serial = packet.serial + 1;
        let Some(plan) = plans.of(classes, class) else { return };
        let Some(cut) = cut(plan, packet, (self.from, self.to), &mut self.buffer) else { return };
        if let Some((time, writer)) = cut.begins {
            stream.ring.continue_at(time, writer);
        }
        if let Some((first, last)) = cut.events {
            let (from, to) = self.events.unwrap_or((first, last));
            self.events = Some((from.min(first), to.max(last)));
        }
        let context = SealContext {
            uuid: self.recording.uuid,
            stream_id: class,
            area_id: packet.header.area_id,
            plan: Some(plan),
            overwrite: false,
            swapped: false,
            // It was checked when it was recorded.
            now: u64::MAX,
        };
        let sealed = stream.ring.seal(&context, &cut.chunk, &mut self.buffer);
        stream.ring.take_introductions();
        let Some(sealed) = sealed else { return };
        let bytes = &self.buffer[sealed.bytes.clone()];
        if !self.recording.write_packet(&mut stream.target, bytes, &sealed) {
            stream.ring.not_written(&context, &sealed, &self.buffer);
        }
    }

    /// Ends the recording. Stores its sums in the window.
    pub(super) fn finish_window(
        mut self,
        kept: &Retention,
        traced: Traced,
    ) -> Result<(KeptWindow, Report), Error> {
        let forgotten = kept.forgotten_packets() - self.forgotten_at_start;
        if forgotten != 0 && kept.forgotten_until() > self.from {
            let missing = "memory had no room for all until it was written: --memory";
            self.window.short.push(missing.to_owned());
        }
        self.finish(traced)
    }

    /// Ends a recording that is not a window of a retention.
    pub(super) fn finish(mut self, traced: Traced) -> Result<(KeptWindow, Report), Error> {
        if let Some(model) = self.recording.clock_model() {
            self.window.first_event_ns = self.events.map(|(first, _)| model.utc_ns(first));
            self.window.last_event_ns = self.events.map(|(_, last)| model.utc_ns(last));
        }
        let ended = self.recording.output_ended;
        if ended {
            self.window.short.push("disk had no room for all of it: --max-size".to_owned());
        }
        let streams = self.streams.values();
        self.window.events = streams.map(|stream| stream.ring.totals().events).sum();
        self.window.bytes = self.bytes();
        // A recording that was written directly is not a window.
        if self.recording.origin == report::Origin::Snapshot {
            self.recording.kept = Some(self.window.clone());
        }
        let Traced { processes, areas } = traced;
        for area in areas {
            let finished = FinishedArea { area: Some(area), ..FinishedArea::default() };
            self.recording.finish_area(Box::new(move |_| finished));
        }
        let mut streams: Vec<PartStream> = self.streams.into_values().collect();
        streams.sort_by_key(|stream| (stream.area_id, stream.number, stream.class));
        for stream in &mut streams {
            self.recording.close_stream(&mut stream.target);
        }
        let classes = self.recording.classes.clone();
        let names = self.names.take();
        self.recording.finish_area(Box::new(move |clock| {
            let mut finished = FinishedArea { processes, ..FinishedArea::default() };
            finished.streams.extend(names.and_then(|names| names(clock)));
            for PartStream { ring, target, class, area_id, number, .. } in streams {
                let place = format!("{area_id:016x}");
                let of_class = classes.classes().get(class as usize);
                let is_cpu = of_class.is_some_and(|class| class.kind == RingKind::PerCpu);
                let cpu = is_cpu.then_some(number);
                let Some(one) = stream_report(clock, &ring, (&place, number), cpu) else {
                    continue;
                };
                let schemas = of_class.map(|class| class.schemas.values().cloned());
                let schemas: Vec<RegisteredSchema> = schemas.into_iter().flatten().collect();
                let names = count_events::names(&schemas);
                count_events::add(&mut finished.events, ring.counts(), &names);
                finished.streams.push(crate::report::Stream { files: target.paths, ..one });
            }
            finished
        }));
        let window = self.window;
        let report = self.recording.end()?;
        Ok((window, report))
    }
}
