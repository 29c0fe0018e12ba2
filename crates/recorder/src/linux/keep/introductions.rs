// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Data that sources report only once is repeated in every part of a recording, in a stream of its own, at
//! the start of the part.

use std::sync::Arc;

use super::super::recording::{FinishedArea, StreamTarget};
use super::super::stream_report::{count_events, stream_report};
use super::part::Part;
use crate::classes::RegisteredSchema;
use crate::report::Stream;
use crate::source::{Introductions, Payload, Refused, SourceStream, StreamPlan, Thread};
use crate::stream::SealContext;
use crate::walk::RecordPlan;

/// Size of its packets in bytes: longer than a path.
const PACKET_BYTES: usize = 16 << 10;

/// A source with data to repeat in each part.
#[derive(Clone)]
pub(in super::super) struct Introduced {
    /// Name of the source.
    pub(in super::super) name: String,
    pub(in super::super) class_id: u32,
    pub(in super::super) area_id: u64,
    pub(in super::super) registered: Vec<RegisteredSchema>,
    pub(in super::super) what: Arc<dyn Introductions>,
}

impl Part {
    /// Writes the data that sources reported before clock `from`. Context: before anything else of these
    /// streams.
    pub(super) fn write_introductions(&mut self, all: &[Introduced], from: u64) {
        for one in all {
            let mut plan = RecordPlan::new(false);
            one.registered.iter().for_each(|entry| plan.add(entry.base_id, &entry.schema));
            let name = format!("{}_before", one.name);
            let stream = StreamPlan { name: name.clone(), number: 0, is_cpu: true };
            let mut writing = Writing {
                stream: SourceStream::new(stream, PACKET_BYTES, from),
                target: StreamTarget::new(name),
                plan,
                of: one,
                part: self,
            };
            one.what.each(&mut |thread, id, fill| writing.record((from, thread), id, fill));
            writing.close();
            writing.finish();
        }
    }
}

struct Writing<'a> {
    stream: SourceStream,
    target: StreamTarget,
    plan: RecordPlan,
    of: &'a Introduced,
    part: &'a mut Part,
}

impl Writing<'_> {
    fn record(
        &mut self,
        (time, thread): (u64, Option<Thread>),
        id: u16,
        fill: &mut dyn FnMut(&mut Payload<'_>),
    ) {
        if self.stream.packet.record(time, thread, id, &mut *fill) == Err(Refused::Full) {
            self.close();
            // It is shorter than an empty packet.
            let _ = self.stream.packet.record(time, thread, id, fill);
        }
    }

    fn close(&mut self) {
        let context = SealContext {
            uuid: self.part.recording.uuid,
            stream_id: self.of.class_id,
            area_id: self.of.area_id,
            plan: Some(&self.plan),
            overwrite: false,
            swapped: false,
            now: u64::MAX,
        };
        let Some(sealed) = self.stream.close(&context) else { return };
        let packet = self.stream.bytes(&sealed);
        if !self.part.recording.write_packet(&mut self.target, packet, &sealed) {
            self.stream.not_written(&context, &sealed);
        }
    }

    fn finish(self) {
        let Writing { stream, mut target, of, part, .. } = self;
        part.recording.close_stream(&mut target);
        let names = count_events::names(&of.registered);
        let area_id = format!("{:016x}", of.area_id);
        part.recording.finish_area(Box::new(move |clock| {
            let mut finished = FinishedArea::default();
            // It belongs to no CPU, and must not share the number of a stream that does.
            if let Some(one) = stream_report(clock, &stream.ring, (&area_id, u32::MAX), None) {
                count_events::add(&mut finished.events, stream.ring.counts(), &names);
                finished.streams.push(Stream { files: target.paths, ..one });
            }
            finished
        }));
    }
}
