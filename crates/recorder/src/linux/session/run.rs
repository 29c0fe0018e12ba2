// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A session from the first draining of its rings to the last.

use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use lateralis_ring::RingMode;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify;

use super::super::area_file::Users;
use super::super::live::LiveServer;
use super::super::processes::ProcessTag;
use super::super::sources::LiveSource;
use super::super::trigger::AreaTrigger;
use super::super::{launch, signals};
use super::requests::send_signals;
use super::{Session, Summary};
use crate::error::Error;
use crate::options::Progress;
use crate::report::UnrecordedCause;

/// Time between two checks for ended processes.
const PROCESS_PERIOD: Duration = Duration::from_millis(20);
/// Time between two scans of the directory without a notice of a change.
const SCAN_PERIOD: Duration = Duration::from_millis(100);
/// Age at which a recording requests such notices: the kernel takes 10 ms to close them, which would delay
/// the end of the process. Until then it scans often.
const NOTICES_AFTER: Duration = Duration::from_millis(250);
const FIRST_SCAN_PERIOD: Duration = Duration::from_millis(1);
/// And until the command itself is found, after some milliseconds.
const COMMAND_SCAN_PERIOD: Duration = Duration::from_micros(200);
const COMMAND_SCANS: u32 = 100;

impl Session {
    /// Records until the command has ended, or, for a running program, until it ends or a signal
    /// or a request ends the recording; then writes the rest. `progress` is called every
    /// [`RecordOptions::progress_period`].
    pub fn run(mut self, progress: &mut dyn FnMut(&Progress)) -> Result<Summary, Error> {
        if self.child.is_none() {
            self.recording.write_metadata_if_due()?;
        }
        signals::catch_endings();
        let interrupts_before = signals::interrupts();
        let terminations_before = signals::terminations();
        let mut last_progress = Progress::default();
        let mut next_progress = Instant::now() + self.options.progress_period;
        let mut last_flush = Instant::now();
        let mut next_processes = Instant::now();
        let mut next_scan = Instant::now();
        let mut sleep = self.options.drain_period;
        // Frequent scans appear in the kernel's events, and without a command there is no short recording.
        let looks_often = self.child.is_some() && self.sources.is_empty();
        let mut notices_at =
            Some(Instant::now() + if looks_often { NOTICES_AFTER } else { Duration::ZERO });
        let mut command_scans = COMMAND_SCANS;
        loop {
            if notices_at.is_some_and(|at| Instant::now() >= at) {
                notices_at = None;
                self.notices = watch(&self.area_dir);
                next_scan = Instant::now();
            }
            let scan_period = match notices_at {
                Some(_) if self.areas.is_empty() && command_scans > 0 => {
                    command_scans -= 1;
                    COMMAND_SCAN_PERIOD
                }
                Some(_) => FIRST_SCAN_PERIOD,
                None => SCAN_PERIOD,
            };
            let noticed = self.wait(self.longest_wait(sleep).min(scan_period));
            let now = Instant::now();
            if noticed || now >= next_scan {
                self.discover();
                next_scan = now + scan_period;
            }
            let drained = if now >= last_flush + self.flush_period() || self.chunk_is_full() {
                last_flush = now;
                let ticks = self.recording.now();
                let drained = self.flush();
                self.keep(ticks, false);
                drained
            } else {
                self.drain_all(false)
            };
            sleep = next_sleep(sleep, drained.fill, self.options.drain_period);
            if drained.is_young {
                sleep = sleep.min(SHORTEST_SLEEP);
            }
            self.recording.improve_clock();
            self.tend_prepared();
            if now >= next_processes {
                self.reap_areas();
                next_processes = Instant::now() + PROCESS_PERIOD;
            }
            if now >= next_progress {
                last_progress = self.progress(&last_progress);
                progress(&last_progress);
                next_progress = now + self.options.progress_period;
            }
            let asked = self.answer_requests();
            let interrupts = signals::interrupts() - interrupts_before;
            self.pass_on_signals();
            let terminated = signals::terminations() != terminations_before;
            if self.is_over(interrupts, terminated, now) || asked {
                break;
            }
        }
        self.end(progress, &last_progress)
    }

    /// Waits until the command has ended. Signals are still forwarded to it.
    fn wait_for(&mut self, child: &mut Child) -> Result<ExitStatus, Error> {
        let wait_error = |cause| Error::System { action: "wait for the command", cause };
        let timeout =
            rustix::time::Timespec { tv_sec: 0, tv_nsec: i64::from(SIGNAL_PERIOD.subsec_nanos()) };
        loop {
            if let Some(status) = child.try_wait().map_err(wait_error)? {
                return Ok(status);
            }
            send_signals(self.forwarding.as_mut(), child);
            match &self.child_fd {
                // A signal ends the wait early, which is harmless.
                Some(fd) => drop(poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout))),
                None => std::thread::sleep(SIGNAL_PERIOD),
            }
        }
    }

    /// The configured period, or a shorter one requested by a live client.
    fn flush_period(&self) -> Duration {
        let wanted = self.recording.output.live().and_then(LiveServer::flush_period);
        wanted.map_or(self.options.flush_period, |wanted| wanted.min(self.options.flush_period))
    }

    /// Without rings, the periods of the sources apply, because a wakeup is itself an event.
    fn longest_wait(&self, rings: Duration) -> Duration {
        let sources = self.sources.iter().map(LiveSource::wait).min();
        match sources {
            Some(due) if self.areas.is_empty() => due.min(SCAN_PERIOD),
            Some(due) => due.min(rings),
            None => rings,
        }
    }

    /// Sleeps until an event or for `time`; returns whether the directory changed.
    fn wait(&mut self, time: Duration) -> bool {
        let mut fds = Vec::with_capacity(3);
        for fd in [&self.notices, &self.child_fd].into_iter().flatten() {
            fds.push(PollFd::new(fd, PollFlags::IN));
        }
        if let Some(control) = &self.control {
            fds.push(PollFd::new(control.socket(), PollFlags::IN));
        }
        let timeout = rustix::time::Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        // A signal ends the wait early, which is harmless.
        let own = fds.len();
        // In overwrite mode sources are read at the end, and stay readable until then.
        let of_sources = self.sources.iter().filter(|_| self.options.mode != RingMode::Overwrite);
        let descriptors: Vec<_> = of_sources.flat_map(|live| live.ask().descriptors()).collect();
        fds.extend(descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let _ = poll(&mut fds, Some(&timeout));
        let ready = fds[own..].iter().any(|fd| fd.revents().contains(PollFlags::IN));
        drop(fds);
        self.sources_ready |= ready;
        let Some(notices) = &self.notices else { return false };
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut noticed = false;
        while rustix::io::read(notices, &mut buffer).is_ok_and(|(read, _)| !read.is_empty()) {
            noticed = true;
        }
        noticed
    }

    fn is_over(&mut self, interrupts: u32, terminated: bool, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.recording.began());
        let over_time = self.options.duration.is_some_and(|most| elapsed >= most);
        if over_time || self.recording.output_ended {
            return true;
        }
        let trigger_done = !self.areas.is_empty()
            && self.child.is_none()
            && self
                .areas
                .iter()
                .all(|recorded| recorded.trigger.as_ref().is_some_and(AreaTrigger::is_done));
        if trigger_done {
            return true;
        }
        if let Some(child) = &mut self.child {
            // The first Ctrl-C is for the program: the terminal sent it to both.
            let ended = !matches!(child.try_wait(), Ok(None));
            self.command_ended = ended;
            let left = self.options.follow && self.session_lives();
            return ended && !left || interrupts >= 2;
        }
        if self.standing.is_some() {
            return interrupts > 0 || terminated;
        }
        let nothing_left = self.areas.is_empty() && self.sources_alone_are_over();
        interrupts > 0 || terminated || nothing_left
    }

    /// Sources have no end of their own: without a program to wait for they continue until
    /// the recording is ended from outside.
    fn sources_alone_are_over(&self) -> bool {
        let attached_live = self.attached.iter().any(ProcessTag::is_alive);
        self.sources.is_empty() || !self.attached.is_empty() && !attached_live
    }

    /// Reports that programs continue without being recorded because writing has ended.
    fn note_early_end(&mut self) {
        if !self.recording.output_ended {
            return;
        }
        let runs = |child: &mut std::process::Child| matches!(child.try_wait(), Ok(None));
        let goes_on = self.child.as_mut().is_some_and(runs)
            || self.attached.iter().any(ProcessTag::is_alive)
            || self.areas.iter_mut().any(|one| one.area.users() == Users::Others)
            || !self.sources.is_empty() && self.command.is_empty();
        if goes_on {
            let now = self.recording.now();
            self.recording.begin_gap(UnrecordedCause::Ended, now);
        }
    }

    /// Drains the rest, waits for the command, writes the final texts.
    fn end(
        mut self,
        progress: &mut dyn FnMut(&Progress),
        last_progress: &Progress,
    ) -> Result<Summary, Error> {
        // Programs that start from now on get no request. Areas created in the last moment
        // belong to them: a program that publishes its area later sees that the session has ended.
        let watched = self.standing.take().is_some();
        // The kernel takes about 10 ms to close it, so a thread does that while the rest is written; but not
        // if the kernel's events are recorded, where the thread would appear.
        if let Some(notices) = self.notices.take().filter(|_| self.sources.is_empty()) {
            let _ = std::thread::Builder::new().spawn(move || drop(notices));
        }
        self.lock = None;
        self.prepared = None;
        self.inherited.clear();
        self.discover();
        if self.child.is_some() || !self.attached.is_empty() || watched {
            self.reap_now();
        }
        self.note_early_end();
        for recorded in std::mem::take(&mut self.areas) {
            self.finish_area(recorded, false);
        }
        for live in std::mem::take(&mut self.sources) {
            let (events, lost) = live.finish(&mut self.recording);
            self.gone_events += events;
            self.gone_lost = self.gone_lost.saturating_add(lost);
        }
        self.sweep_declined();
        self.report_unused_filters();
        self.report_unused_trigger();
        self.report_unused_patterns();
        let ticks = self.recording.now();
        self.keep(ticks, true);
        self.end_rules();
        let last = self.progress(last_progress);
        progress(&last);
        let mut exit_status = None;
        if let Some(mut child) = self.child.take() {
            // The recording may end before the program does: its exit status is still needed.
            let status = self.wait_for(&mut child)?;
            let command = launch::command_report(&self.command, Some(status));
            exit_status = command.exit_status;
            self.recording.command = Some(command);
        }
        self.report_missed();
        super::super::clean::sweep(&self.area_dir);
        self.recording.end_writers();
        let output = self.recording.output.root().to_owned();
        let report = self.recording.end()?;
        Ok(Summary { output, report, exit_status })
    }
}

/// Time between two checks for signals while only the command is waited for.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// Minimum time between two polls of rings that are not nearly full.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// Halves the period while a poll finds rings more than a quarter full, down to 1 ms; returns to the
/// chosen period slowly.
fn next_sleep(current: Duration, fill: f64, period: Duration) -> Duration {
    let least = period.min(SHORTEST_SLEEP);
    if fill > 0.75 {
        Duration::ZERO
    } else if fill > 0.25 {
        (current / 2).max(least)
    } else {
        (current * 5 / 4).clamp(least, period)
    }
}

/// Notices of new areas; `None` if the system has no more of them.
fn watch(dir: &Path) -> Option<OwnedFd> {
    let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).ok()?;
    inotify::add_watch(&fd, dir, inotify::WatchFlags::MOVED_TO).ok()?;
    Some(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_less_under_load_and_recovers() {
        let period = Duration::from_millis(5);
        let mut sleep = period;
        for _ in 0..10 {
            sleep = next_sleep(sleep, 0.5, period);
        }
        assert_eq!(sleep, Duration::from_millis(1));
        assert_eq!(next_sleep(sleep, 0.9, period), Duration::ZERO);
        for _ in 0..20 {
            sleep = next_sleep(sleep, 0.0, period);
        }
        assert_eq!(sleep, period);
    }
}
