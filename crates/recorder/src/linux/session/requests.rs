// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to a session: report the state, flush, stop, continue.

use std::process::Child;
use std::time::{Duration, Instant};

use super::super::area::Drained;
use super::super::clocks;
use super::super::control::{ControlServer, Request};
use super::super::signals::Forwarding;
use super::Session;
use crate::error::Error;
use crate::options::Progress;
use crate::report::{Flushes, UnrecordedCause};

impl Session {
    pub(super) fn progress(&self, before: &Progress) -> Progress {
        let elapsed = self.recording.began().elapsed();
        let mut events = self.gone_events;
        let mut lost = self.gone_lost;
        let mut seen = self.gone_processes;
        for recorded in &self.areas {
            let rings = recorded.area.rings.iter();
            events += rings.map(|ring| ring.stream.totals().events).sum::<u64>();
            lost = lost.saturating_add(recorded.area.live_losses());
            seen += recorded.area.processes.count();
        }
        for live in &self.sources {
            let (more_events, more_lost) = live.sums();
            events += more_events;
            lost = lost.saturating_add(more_lost);
        }
        let seconds = (elapsed - before.elapsed).as_secs_f64();
        Progress {
            elapsed,
            events,
            events_per_s: events.saturating_sub(before.events) as f64 / seconds.max(1e-9),
            bytes: self.recording.output.bytes(),
            lost,
            processes: seen,
            paused: self.paused,
        }
    }

    /// Writes the content of all rings, including those of areas not seen before.
    pub(super) fn flush(&mut self) -> Drained {
        let began_ns = clocks::utc_ns();
        let began = Instant::now();
        let events = self.events_so_far();
        self.discover();
        self.areas.iter_mut().for_each(|recorded| recorded.area.refresh_names());
        let drained = self.drain_all(true);
        self.recording.flushed(began_ns);
        let events = self.events_so_far().saturating_sub(events);
        self.count_flush(began.elapsed(), events);
        drained
    }

    /// Counts the cost of flushing, which takes time of the recorder, not of the programs.
    fn count_flush(&mut self, took: Duration, events: u64) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let period_ns = ns(self.options.flush_period);
        let flushes = self.recording.flushes.get_or_insert(Flushes::default());
        flushes.period_ns = period_ns;
        flushes.count += 1;
        flushes.total_ns = flushes.total_ns.saturating_add(ns(took));
        flushes.longest_ns = flushes.longest_ns.max(ns(took));
        flushes.events = flushes.events.saturating_add(events);
    }

    /// Events of schemas written so far.
    fn events_so_far(&self) -> u64 {
        let rings = self.areas.iter().flat_map(|recorded| &recorded.area.rings);
        let of_rings: u64 = rings.map(|ring| ring.stream.totals().events).sum();
        let of_sources: u64 = self.sources.iter().map(|live| live.sums().0).sum();
        self.gone_events + of_rings + of_sources
    }

    pub(super) fn answer_requests(&mut self) -> bool {
        let mut end = false;
        while let Some((request, client)) = self.control.as_ref().and_then(ControlServer::next) {
            let answer = match request {
                Request::Status => Ok(()),
                Request::Flush => {
                    // Responds after the flush, because the client then reads the files.
                    self.flush();
                    Ok(())
                }
                Request::Stop => self.pause(),
                Request::Start => self.resume(),
                Request::End => {
                    end = true;
                    Ok(())
                }
            };
            let now = self.progress(&Progress::default());
            if let Some(control) = &self.control {
                let output = self.recording.output.root();
                control.answer(&client, answer.map(|()| (now, output.to_owned())));
            }
        }
        end
    }

    pub(super) fn pause(&mut self) -> Result<(), Error> {
        let now = self.recording.now();
        self.recording.begin_gap(UnrecordedCause::Stopped, now);
        for recorded in &mut self.areas {
            recorded.area.pause(&mut self.recording);
        }
        self.sources.iter_mut().for_each(|live| live.source().pause(true));
        self.paused = true;
        self.recording.write_progress_report()
    }

    pub(super) fn resume(&mut self) -> Result<(), Error> {
        self.paused = false;
        self.sources.iter_mut().for_each(|live| live.source().pause(false));
        for recorded in &mut self.areas {
            recorded.area.resume(&mut self.recording)?;
        }
        if !self.is_stopped {
            let now = self.recording.now();
            self.recording.end_gap(UnrecordedCause::Stopped, now);
        }
        self.recording.write_progress_report()
    }

    /// Forwards signals received for the command.
    pub(super) fn pass_on_signals(&mut self) {
        if let Some(child) = &mut self.child {
            send_signals(self.forwarding.as_mut(), child);
        }
    }
}

/// Context: the child has not been waited for, so its pid has not been reused.
pub(super) fn send_signals(forwarding: Option<&mut Forwarding>, child: &mut Child) {
    let Some(forwarding) = forwarding else { return };
    let Ok(pid) = libc::pid_t::try_from(child.id()) else { return };
    let has_ended = !matches!(child.try_wait(), Ok(None));
    forwarding.pass_on(|signal| {
        if !has_ended {
            // SAFETY: only sends a signal; the child is not yet waited for.
            unsafe { libc::kill(pid, signal) };
        }
    });
}
