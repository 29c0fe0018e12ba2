// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Separate recordings, which get the events of some policies instead.

use std::path::Path;

use super::super::keep::Writer;
use super::Recording;
use crate::error::Error;
use crate::options::{LiveAddress, LiveOptions, RecordOptions};
use crate::policy::Choice;
use crate::report;

impl Recording {
    /// Creates the separate recordings of policies. Context: the recording has its clock.
    ///
    /// Errors: one of them cannot be created, or is incompatible with another option; those already
    /// created stay empty.
    pub(in super::super) fn begin_writers(&mut self, options: &RecordOptions) -> Result<(), Error> {
        let Some(policies) = &options.policies else { return Ok(()) };
        let choices = policies.list.iter().filter_map(|policy| policy.choice.as_ref());
        for Choice { output, live, .. } in choices {
            let Some(output) = output else { continue };
            if options.chunks.is_some() || options.keep.as_ref().is_some_and(|keep| keep.is_alone) {
                return Err(Error::Refused(format!(
                    "pieces and windows are of the whole recording: leave output={:?} out of the \
                     policies, or record without them",
                    output.display()
                )));
            }
            if let Some(writer) = self.writer_of(output) {
                if live.is_some() && self.writers[writer].live_address().is_none() {
                    return Err(Error::Refused(format!(
                        "two policies share output={:?}: the first of them has to say live",
                        output.display()
                    )));
                }
                continue;
            }
            // Access and encryption are as for the whole recording.
            let live = live.as_ref().map(|address| LiveOptions {
                address: Some(LiveAddress::Tcp(address.clone())),
                ..options.live.clone().unwrap_or_else(|| LiveOptions::new(None))
            });
            let writer = Writer::new(self, output, options.max_disk_bytes, live.as_ref())?;
            self.writers.push(writer);
        }
        Ok(())
    }

    /// The number of the recording with this path in a policy.
    pub(in super::super) fn writer_of(&self, output: &Path) -> Option<usize> {
        self.writers.iter().position(|writer| writer.asked() == output)
    }

    pub(in super::super) fn writer_path(&self, writer: usize) -> Option<String> {
        self.writers.get(writer).map(|writer| writer.root().display().to_string())
    }

    pub(in super::super) fn writers(&self) -> &[Writer] {
        &self.writers
    }

    pub(super) fn write_elsewhere(&mut self, writer: usize, name: &str, packet: &[u8]) -> bool {
        let mut writers = std::mem::take(&mut self.writers);
        let is_written =
            writers.get_mut(writer).is_some_and(|writer| writer.take(self, name, packet));
        self.writers = writers;
        is_written
    }

    /// Passes on an area's report.
    pub(in super::super) fn leave_to_writer(
        &mut self,
        writer: usize,
        area: &report::Area,
        processes: &[report::Process],
    ) {
        if let Some(writer) = self.writers.get_mut(writer) {
            writer.leave(area, processes);
        }
    }

    /// Reports to readers of the files and to clients that everything up to now has been written.
    pub(in super::super) fn flushed(&mut self, began_ns: i64) {
        if let Some(live) = self.output.live() {
            live.flushed(began_ns);
        }
        if let Err(error) = self.output.write_indexes() {
            self.problem(error.to_string());
        }
        self.writers.iter_mut().for_each(|writer| writer.flushed(began_ns));
    }

    /// Ends them. Context: all areas have been finished.
    pub(in super::super) fn end_writers(&mut self) {
        for writer in std::mem::take(&mut self.writers) {
            match writer.finish(self) {
                Ok(output) => self.outputs.push(output),
                Err(error) => self.problem(error.to_string()),
            }
        }
    }
}
