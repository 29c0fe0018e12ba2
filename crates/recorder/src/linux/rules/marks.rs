// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events of the recorder itself: a mark at each firing of a condition.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::classes::RegisteredSchema;
use crate::source::{Sink, Source, SourceReport, StreamPlan, register};

/// Name of the stream of marks.
pub(in super::super) const MARKS: &str = "marks";
/// They need no polling: adding a mark drains the queue.
const PERIOD: Duration = Duration::from_secs(3600);
/// Maximum length of a condition's text in a mark.
const TEXT_MAX: usize = 1024;

#[derive(Debug)]
struct Mark {
    at: u64,
    name: String,
    condition: String,
}

/// Marks waiting to be written.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct MarkQueue(Arc<Mutex<Vec<Mark>>>);

impl MarkQueue {
    /// Adds a mark at clock `at`.
    pub(in super::super) fn push(&self, at: u64, name: &str, condition: &str) {
        let mut end = condition.len().min(TEXT_MAX);
        while !condition.is_char_boundary(end) {
            end -= 1;
        }
        let (name, condition) = (name.to_owned(), condition[..end].to_owned());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Mark { at, name, condition });
    }

    fn take(&self) -> Vec<Mark> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Marks as a source of a recording.
pub(in super::super) struct MarkSource {
    queue: MarkQueue,
    registered: Vec<RegisteredSchema>,
    written: u64,
}

impl MarkSource {
    pub(in super::super) fn new(queue: MarkQueue) -> MarkSource {
        let text = include_bytes!("../../../../../spec/marks.pleco");
        let schema = lateralis_pleco::compile("marks.pleco", text).schema;
        MarkSource { queue, registered: register(schema), written: 0 }
    }
}

impl Source for MarkSource {
    fn name(&self) -> &str {
        MARKS
    }

    fn schemas(&self) -> Vec<RegisteredSchema> {
        self.registered.clone()
    }

    fn streams(&self) -> Vec<StreamPlan> {
        vec![StreamPlan { name: MARKS.to_owned(), number: 0, is_cpu: false }]
    }

    fn begin(&mut self, _: &mut dyn Sink) -> Result<(), String> {
        Ok(())
    }

    fn period(&self) -> Duration {
        PERIOD
    }

    fn drain(&mut self, sink: &mut dyn Sink) -> f64 {
        let id = self.registered.first().map_or(0, |schema| schema.base_id as u16);
        for mark in self.queue.take() {
            self.written += 1;
            sink.record(0, (mark.at, None), id, &mut |payload| {
                payload.text(mark.name.as_bytes());
                payload.text(mark.condition.as_bytes());
            });
        }
        0.0
    }

    /// Marks are recorded even then, as they may explain the gap.
    fn pause(&mut self, _: bool) {}

    fn finish(&mut self, sink: &mut dyn Sink) -> SourceReport {
        self.drain(sink);
        let mut report = SourceReport::default();
        let moved = sink.packet(0).clamped();
        report.details.insert("written".to_owned(), self.written.to_string());
        report.details.insert("moved".to_owned(), moved.to_string());
        report
    }
}
