// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a recording: the clock is measured again, and the data of all areas become the report.

use super::super::live::LiveServer;
use super::super::{clocks, cores};
use super::Recording;
use crate::clock::{FrequencySource, counted_hz, incidents};
use crate::error::Error;
use crate::report::{self, Report, UnrecordedCause};

impl Recording {
    /// Ends the recording: measures the clock again, writes the final metadata, the indexes and
    /// the report. The report is `complete` if nothing was lost on the way to the files.
    pub(in super::super) fn end(mut self) -> Result<Report, Error> {
        let mut happened = Vec::new();
        if let Some(clock) = &mut self.clock {
            if clock.live {
                let end = clocks::sample(clock.kind);
                let (mut frequency_hz, source) = clock.frequency_by_now();
                if source == FrequencySource::Calibrated {
                    frequency_hz = counted_hz(&clock.start, &end, frequency_hz);
                    clock.frequency = Some((frequency_hz, source));
                }
                clock.end = Some(end);
                happened = incidents(&clock.start, &end, frequency_hz);
            }
        } else {
            // Nothing was traced: the trace is empty, but it must exist.
            self.use_live_clock(clocks::native_kind());
        }
        happened.into_iter().for_each(|sentence| self.problem(sentence));
        // A gap that is still open ends with the command.
        if let Some(end) = self.clock.as_ref().and_then(|clock| clock.end)
            && self.command.is_some()
        {
            self.end_gap(UnrecordedCause::Ended, end.ticks);
        }
        if let Some(end) = self.clock.as_ref().and_then(|clock| clock.end) {
            self.end_gap(UnrecordedCause::Stopped, end.ticks);
        }
        self.output.use_reserve();
        cores::wait();
        if let Err(error) = self.write_metadata_alone() {
            self.problem(error.to_string());
            self.output_ended = true;
        }
        if let Err(error) = self.output.write_indexes() {
            self.problem(error.to_string());
        }
        let complete = !self.output_ended;
        let finished = std::mem::take(&mut self.finished);
        let mut report = self.empty_report(complete);
        if let Some(model) = self.clock_model() {
            for finish in finished {
                let area = finish(&model);
                report.areas.extend(area.area);
                report.sources.extend(area.source);
                report.processes.extend(area.processes);
                report.streams.extend(area.streams);
                for (name, count) in area.events {
                    *report.events.entry(name).or_insert(0) += count;
                }
            }
        }
        sum(&mut report);
        let elapsed = self.began.elapsed();
        let (cpu_ns, peak_memory_bytes) = own_usage();
        let seconds = elapsed.as_secs_f64().max(1e-9);
        report.throughput = report::Throughput {
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            cpu_ns,
            peak_memory_bytes,
            events_per_s: (report.totals.events as f64 / seconds) as u64,
            bytes_per_s: (report.totals.bytes as f64 / seconds) as u64,
        };
        report.live = self.output.live().map(LiveServer::finish);
        if let Err(error) = self.output.write_last_report(&report.to_json()) {
            // The recorded packets are on the disk anyway, and can be read without it.
            report.complete = false;
            report.problems.push(error.to_string());
        }
        Ok(report)
    }
}

/// Computes the totals of the streams.
pub(in super::super) fn sum(report: &mut Report) {
    report.totals = report::Totals::default();
    let totals = &mut report.totals;
    for stream in &report.streams {
        totals.events += stream.events;
        totals.internal_events += stream.internal_events;
        totals.packets += stream.packets;
        totals.bytes += stream.bytes;
        totals.lost_packets = totals.lost_packets.saturating_add(stream.lost_packets);
        totals.not_written += stream.not_written;
        totals.damaged_packets += stream.damaged_packets;
        let lost = &mut totals.lost;
        lost.full = lost.full.saturating_add(stream.lost.full);
        lost.too_big = lost.too_big.saturating_add(stream.lost.too_big);
        lost.contended = lost.contended.saturating_add(stream.lost.contended);
        lost.no_ring = lost.no_ring.saturating_add(stream.lost.no_ring);
        lost.total = lost.total.saturating_add(stream.lost.total);
    }
}

/// CPU time and peak memory of this process.
fn own_usage() -> (u64, u64) {
    // SAFETY: a zeroed rusage is valid, and getrusage fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| {
        (time.tv_sec as u64).saturating_mul(1_000_000_000) + time.tv_usec as u64 * 1000
    };
    (ns(usage.ru_utime) + ns(usage.ru_stime), usage.ru_maxrss as u64 * 1024)
}
