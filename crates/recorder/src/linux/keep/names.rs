// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads record their names once, when they start: a window that begins later repeats them, in a
//! stream of its own, at its start.

use lateralis_ring::abi;

use super::super::recording::StreamTarget;
use super::super::stream_report::stream_report;
use super::part::Part;
use crate::classes::ClassTable;
use crate::report::Stream;
use crate::source::{SourceStream, StreamPlan, Thread};
use crate::stream::SealContext;
use crate::walk::RecordPlan;

/// Name of the stream.
const NAMES: &str = "names";
/// Size of its packets in bytes: some hundred names.
const PACKET_BYTES: usize = 16 << 10;

impl Part {
    /// Writes the names of threads at the start of the window. Context: before anything else.
    pub(super) fn write_names(
        &mut self,
        classes: &ClassTable,
        (class, names): (u32, &[(Thread, String)]),
    ) {
        if names.is_empty() {
            return;
        }
        self.recording.classes = classes.clone();
        let plan = StreamPlan { name: NAMES.to_owned(), number: 0, is_cpu: false };
        let from = self.from;
        let mut stream = SourceStream::new(plan, PACKET_BYTES, from);
        let mut target = StreamTarget::new(NAMES.to_owned());
        for (thread, name) in names {
            let write = |stream: &mut SourceStream| {
                stream.packet.record(from, None, abi::ID_THREAD_NAME, |payload| {
                    payload.put(4, &thread.pid.to_ne_bytes());
                    payload.put(4, &thread.tid.to_ne_bytes());
                    payload.text(name.as_bytes());
                })
            };
            if write(&mut stream).is_err() {
                self.close_names(class, &mut stream, &mut target);
                // A name is shorter than an empty packet.
                let _ = write(&mut stream);
            }
        }
        self.close_names(class, &mut stream, &mut target);
        self.recording.close_stream(&mut target);
        let paths = target.paths;
        self.names = Some(Box::new(move |clock| {
            let told = stream_report(clock, &stream.ring, (NAMES, 0), None);
            told.map(|one| Stream { files: paths, ..one })
        }));
    }

    fn close_names(&mut self, class: u32, stream: &mut SourceStream, target: &mut StreamTarget) {
        let plan = RecordPlan::new(false);
        let context = SealContext {
            uuid: self.recording.uuid,
            stream_id: class,
            area_id: 0,
            plan: Some(&plan),
            overwrite: false,
            swapped: false,
            now: u64::MAX,
        };
        let Some(sealed) = stream.close(&context) else { return };
        let packet = stream.bytes(&sealed);
        if !self.recording.write_packet(target, packet, &sealed) {
            stream.not_written(&context, &sealed);
        }
    }
}
