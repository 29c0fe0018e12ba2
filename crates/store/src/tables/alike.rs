// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Uniform rows: rows with columns of the packet and the event class only. Their number is known from
//! counting, so no event is decoded, not even its time.

use std::ops::ControlFlow;

use lateralis_model::{ColumnBatch, Interval};
use lateralis_units::Nanos;

use super::BATCH_ROWS;
use super::build::TooLong;
use super::scan::{About, Scanner, Shown, Shows, common_cell, reading};
use super::shape::Common;

impl Scanner<'_> {
    /// Whether all events of one class in one packet give the same row, and their order is irrelevant or
    /// not visible.
    pub(super) fn has_rows_alike(&self) -> bool {
        let mut readings = self.readings.iter().flatten().flatten();
        let tells_cpu = readings.any(|reading| reading.told.cpu.is_some());
        let is_alike = |show: &Shows| match show {
            Shows::Common(Common::Recording | Common::Stream | Common::Packet) => true,
            Shows::Common(Common::Cpu) => !tells_cpu,
            Shows::Common(Common::Class) => self.scan.any_order || self.scan.weighs.is_some(),
            _ => false,
        };
        self.scan.interval == Interval::default()
            && self.scan.cpus.is_none()
            && self.shows.iter().all(is_alike)
    }

    /// Adds as many rows as events were counted.
    pub(super) fn by_count(&mut self, batch: &dyn ColumnBatch) -> Result<Shown, TooLong> {
        let mut counted = Vec::new();
        batch.counts(&mut |class, count| counted.push((class, count)));
        for (class, mut count) in counted {
            if reading(&self.readings, batch.stream_class(), class).is_none() {
                continue;
            }
            while count > 0 {
                let room = (BATCH_ROWS - self.rows).min(self.left);
                let rows = usize::try_from(count).unwrap_or(room).min(room);
                self.repeat(batch, class, rows)?;
                count -= rows as u64;
                if self.grown(rows).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn repeat(&mut self, batch: &dyn ColumnBatch, class: u32, rows: usize) -> Result<(), TooLong> {
        let about = About {
            // No column shows it.
            time: Nanos(0),
            stream: batch.stream().0,
            cpu: self.stream_cpu(batch),
            writer: None,
            packet: batch.packet_number(),
            command: None,
        };
        let Some(reading) = reading(&self.readings, batch.stream_class(), class) else {
            return Ok(());
        };
        for (show, builder) in self.shows.iter().zip(&mut self.builders) {
            if let Shows::Common(common) = *show {
                for _ in 0..rows {
                    common_cell(builder, common, self.opened, reading, &about)?;
                }
            }
        }
        Ok(())
    }
}
