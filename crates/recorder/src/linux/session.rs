// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording session: one command with its children, or running programs, from start to end.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use lateralis_ring::abi::{self, header};
use lateralis_ring::{AreaHeader, ReadPolicy, RingMode};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::area::{Drained, LiveArea};
use super::control::{ControlServer, Request};
use super::dirs::{area_dir, area_files, ensure_area_dir};
use super::launch;
use super::live::{Follower, LiveServer};
use super::mapping::{Access, Mapping, open_area};
use super::output::Output;
use super::processes;
use super::recording::{Recording, random_uuid};
use super::rings::{RingWish, ensure_rings};
use super::signals;
use super::sources::LiveSource;
use super::trigger::AreaTrigger;
use crate::error::Error;
use crate::options::{Progress, RecordOptions};
use crate::report::{Origin, Report};
use crate::source::Source;

/// Time between two looks at which processes are left.
const PROCESS_PERIOD: Duration = Duration::from_millis(20);
/// Time between two looks at the directory without a notice that it changed.
const SCAN_PERIOD: Duration = Duration::from_millis(100);
/// Time that writers get to end records they are inside of, after events were disabled.
const GRACE: Duration = Duration::from_millis(2);
/// An area whose processes are all gone is kept this long: one may have been forked that has
/// not registered yet.
const LINGER: Duration = Duration::from_millis(100);

/// What came out of a session.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The directory.
    pub output: PathBuf,
    /// What `report.json` says.
    pub report: Report,
    /// Exit status of the command as a shell gives it; `None` if none was launched.
    pub exit_status: Option<i32>,
}

struct Recorded {
    area: LiveArea,
    trigger: Option<AreaTrigger>,
    ended_at: Option<Instant>,
    launched: bool,
    /// Its file is gone already.
    unlinked: bool,
}

/// See the module's description.
///
/// Context: one thread; [`Session::run`] catches SIGINT, SIGTERM and SIGHUP of the process.
pub struct Session {
    options: RecordOptions,
    area_dir: PathBuf,
    recording: Recording,
    id: u64,
    areas: Vec<Recorded>,
    sources: Vec<LiveSource>,
    /// A descriptor of a source is readable.
    sources_ready: bool,
    paths_seen: HashSet<PathBuf>,
    /// Areas that looked unusable: when to look again, and how often that was done.
    retries: HashMap<PathBuf, u32>,
    attached: Vec<u32>,
    command: Vec<OsString>,
    child: Option<Child>,
    child_fd: Option<OwnedFd>,
    notices: Option<OwnedFd>,
    control: Option<ControlServer>,
    file_limit: Option<rustix::process::Rlimit>,
    /// The area that the command's programs share.
    shared: Option<PathBuf>,
    /// The command has ended.
    command_ended: bool,
    paused: bool,
    gone_events: u64,
    gone_lost: u64,
    gone_processes: u64,
}

impl Session {
    /// Makes the output directory and gets ready to find areas.
    ///
    /// Errors: the output exists, or a directory cannot be made or trusted.
    pub fn new(options: RecordOptions) -> Result<Session, Error> {
        let area_dir = area_dir(options.area_dir.as_deref());
        ensure_area_dir(&area_dir)?;
        let area_dir = std::fs::canonicalize(&area_dir)
            .map_err(|cause| Error::file("open directory", &area_dir, cause))?;
        let output = Output::create(&options.output, options.max_disk_bytes)?;
        let mut recording = Recording::new(output, options.ctf_version, Origin::Recorded);
        let live = options.live.as_ref();
        let root = options.keep_streams.then(|| recording.output.root().to_owned());
        let live = live.map(|live| LiveServer::start(live, recording.uuid, root)).transpose()?;
        recording.output.set_live(live, options.keep_streams);
        recording.use_live_clock(super::clocks::native_kind());
        recording.write_metadata_if_due()?;
        recording.write_progress_report()?;
        let notices = watch(&area_dir);
        let mut id = u64::from_ne_bytes(random_uuid()[8..].try_into().unwrap_or([1; 8]));
        id |= 1;
        let file_limit = launch::raise_file_limit();
        if let Some(limit) = file_limit {
            let most = limit.maximum.unwrap_or(4096).clamp(64, 4096);
            recording.output.set_open_max(most as usize / 2);
        }
        let control = ControlServer::new(&area_dir).ok();
        Ok(Session {
            options,
            area_dir,
            recording,
            id,
            areas: Vec::new(),
            sources: Vec::new(),
            sources_ready: false,
            paths_seen: HashSet::new(),
            retries: HashMap::new(),
            attached: Vec::new(),
            command: Vec::new(),
            child: None,
            child_fd: None,
            notices,
            control,
            file_limit,
            shared: None,
            command_ended: false,
            paused: false,
            gone_events: 0,
            gone_lost: 0,
            gone_processes: 0,
        })
    }

    /// The directory that is being made.
    pub fn output(&self) -> &Path {
        self.recording.output.root()
    }

    /// Records a source besides programs. Context: before [`Session::launch`] and
    /// [`Session::attach`], so that it sees them from their beginning.
    ///
    /// Errors: a sentence that says what is missing. It is noted in the report, and the rest can
    /// be recorded all the same.
    pub fn add_source(&mut self, source: Box<dyn Source>) -> Result<(), String> {
        let (packet, overwrite) =
            (self.options.packet_bytes, self.options.mode == RingMode::Overwrite);
        let live = LiveSource::begin(&mut self.recording, source, packet, overwrite)
            .inspect_err(|problem| self.recording.problem(problem.clone()))?;
        self.sources.push(live);
        Ok(())
    }

    /// Notes for the report what could not be recorded.
    pub fn note_problem(&mut self, problem: String) {
        self.recording.problem(problem);
    }

    /// Where live clients can connect; `None` if they cannot.
    pub fn live_address(&self) -> Option<std::net::SocketAddr> {
        self.recording.output.live().and_then(LiveServer::address)
    }

    /// Follows the recording in this process, from its start; `None` if it is not live.
    pub fn follow(&self) -> Option<Follower> {
        self.recording.output.live().and_then(LiveServer::follow)
    }

    /// Starts a command and records it and its children. `environment` is added to the
    /// command's; an `LD_PRELOAD` in it is put in front of the one that is there.
    pub fn launch(
        &mut self,
        command: &[OsString],
        environment: &[(OsString, OsString)],
    ) -> Result<u32, Error> {
        signals::catch_endings();
        let request = launch::record_request(self.id, &self.options)?;
        let mut environment = environment.to_vec();
        if self.options.shared {
            let path = self.area_dir.join(format!("shared-{:016x}.area", self.id));
            environment.push(("LATERALIS_AREA".into(), path.clone().into_os_string()));
            self.shared = Some(path);
        }
        let adoptions = self.sources.iter().filter_map(|live| live.ask().adoption());
        let adoptions = adoptions.map(|fd| fd.try_clone_to_owned()).collect::<Result<_, _>>();
        let adoptions =
            adoptions.map_err(|cause| Error::System { action: "hand on a descriptor", cause })?;
        let before = launch::BeforeExec { file_limit: self.file_limit, adoptions };
        let child = launch::spawn(command, &self.area_dir, &request, &environment, before)?;
        let pid = child.id();
        self.sources.iter_mut().for_each(|live| live.source().started(pid));
        self.child_fd = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        self.command = command.to_vec();
        self.recording.command = Some(launch::command_report(command, None));
        self.child = Some(child);
        Ok(pid)
    }

    /// Records a process that is running, and those it starts from now on.
    ///
    /// Errors: it is not traceable, is recorded by somebody else, or there is no space for its
    /// rings; then nothing was changed in it.
    pub fn attach(&mut self, pid: u32) -> Result<(), Error> {
        let mut found = false;
        for path in area_files(&self.area_dir) {
            let Some(header) = peek(&path) else { continue };
            let belongs = header.creator_pid == pid || super::discovery::has_process(&path, pid);
            if belongs && processes::exists(pid) {
                self.take(&path, false)?;
                found = true;
            }
        }
        for live in &mut self.sources {
            match live.source().adopt(pid) {
                Ok(()) => found = true,
                Err(problem) => self.recording.problem(problem),
            }
        }
        if !found {
            return Err(Error::NotTraceable {
                target: pid.to_string(),
                area_dir: self.area_dir.clone(),
            });
        }
        self.attached.push(pid);
        Ok(())
    }

    fn wish(&self) -> RingWish {
        RingWish {
            buffer_bytes: self.options.buffer_bytes,
            packet_bytes: self.options.packet_bytes,
            cap_bytes: self.options.cap_bytes,
            mode: self.options.mode,
        }
    }

    /// Begins to record an area.
    fn take(&mut self, path: &Path, launched: bool) -> Result<(), Error> {
        let own_pid = std::process::id();
        let file = open_area(path).map_err(|cause| Error::file("open area", path, cause))?;
        let mapping = Mapping::of_file(&file, Access::Shared)
            .map_err(|cause| Error::file("map area", path, cause))?
            .ok_or_else(|| Error::NothingToRecover(path.to_owned()))?;
        let area_error = |cause| Error::Area { path: path.to_owned(), cause };
        let found = AreaHeader::read(&mapping.view()).map_err(area_error)?;
        let other = found.recorder_pid;
        if !launched && other != 0 && other != own_pid && processes::exists(other) {
            return Err(Error::AlreadyRecorded { path: path.to_owned(), recorder_pid: other });
        }
        let kind = LiveArea::clock_kind(&found)
            .filter(|_| !found.swapped)
            .ok_or(Error::Clock { path: path.to_owned(), clock_kind: found.clock_kind })?;
        if self.recording.use_live_clock(kind).kind != kind {
            return Err(Error::Clock { path: path.to_owned(), clock_kind: found.clock_kind });
        }
        let mapping = ensure_rings(path, &file, mapping, &found, &self.wish())?;
        let view = mapping.view();
        let _ = view.store_u32(header::RECORDER_PID, own_pid);
        let _ = view.copy_in(header::UUID, &self.recording.uuid);
        let mut area = LiveArea::new(&mut self.recording, path, mapping, ReadPolicy::Consume)?;
        if !launched {
            let _ = area.view().store_u32(header::RING_MODE, self.options.mode.to_word());
        }
        let trigger = self.options.trigger.clone().map(AreaTrigger::new);
        if trigger.is_none() && !launched {
            area.enable(&mut self.recording, &self.options.enable)?;
        }
        self.paths_seen.insert(path.to_owned());
        self.areas.push(Recorded { area, trigger, ended_at: None, launched, unlinked: false });
        Ok(())
    }

    /// Looks for areas of this session, and of children of attached programs.
    fn discover(&mut self) {
        for path in area_files(&self.area_dir) {
            if self.paths_seen.contains(&path) {
                continue;
            }
            let Some(found) = peek(&path) else { continue };
            let launched = found.session == self.id;
            let descends = || {
                self.attached.iter().any(|pid| processes::descends_from(found.creator_pid, *pid))
            };
            if !launched && !descends() {
                if found.rings_ready != abi::RINGS_BEING_MADE {
                    self.paths_seen.insert(path);
                }
                continue;
            }
            match self.take(&path, launched) {
                Ok(()) => {}
                // Somebody else is making the rings: wait for them, but not for ever.
                Err(Error::Rings { cause: lateralis_ring::GeometryError::NotReady, .. })
                    if *self.retries.entry(path.clone()).and_modify(|n| *n += 1).or_insert(0)
                        < 100 => {}
                Err(error) => {
                    self.recording.problem(error.to_string());
                    self.paths_seen.insert(path);
                }
            }
        }
    }

    fn drain_all(&mut self, open_part: bool) -> Drained {
        let mut drained = Drained::default();
        for recorded in &mut self.areas {
            if let Some(trigger) = &mut recorded.trigger {
                trigger.keep(&mut self.recording, &mut recorded.area, &self.options.enable);
            }
            // A flight recorder's rings are read when the flight is over.
            if self.options.mode == RingMode::Overwrite {
                continue;
            }
            let one = recorded.area.drain(&mut self.recording, open_part);
            drained.bytes += one.bytes;
            drained.fill = drained.fill.max(one.fill);
        }
        let is_ready = std::mem::take(&mut self.sources_ready) || open_part;
        for live in &mut self.sources {
            if self.options.mode != RingMode::Overwrite {
                drained.fill = drained.fill.max(live.drain(&mut self.recording, is_ready));
                if open_part {
                    live.close_packets(&mut self.recording);
                }
            }
        }
        drained
    }

    /// Finishes areas whose processes are all gone, and removes their files.
    fn reap_areas(&mut self) {
        let now = Instant::now();
        let mut index = 0;
        while index < self.areas.len() {
            let recorded = &mut self.areas[index];
            let view = recorded.area.mapping.view();
            recorded.area.processes.refresh(&view);
            // The command's next program will come into the area that they share.
            let awaited = !self.command_ended && Some(&recorded.area.path) == self.shared.as_ref();
            if awaited || !recorded.area.processes.have_ended() {
                recorded.ended_at = None;
                index += 1;
                continue;
            }
            let ended_at = *recorded.ended_at.get_or_insert(now);
            if now - ended_at < LINGER {
                index += 1;
                continue;
            }
            let recorded = self.areas.swap_remove(index);
            self.finish_area(recorded, true);
        }
    }

    fn finish_area(&mut self, mut recorded: Recorded, ended: bool) {
        if ended && !recorded.unlinked && Some(&recorded.area.path) == self.shared.as_ref() {
            // From here on a program makes a new one. Who came into this one just before is seen.
            if !self.recording.output_ended {
                let _ = std::fs::remove_file(&recorded.area.path);
                self.paths_seen.remove(&recorded.area.path);
            }
            recorded.unlinked = true;
            std::thread::sleep(GRACE);
            recorded.area.processes.refresh(&recorded.area.mapping.view());
            if !recorded.area.processes.have_ended() {
                recorded.ended_at = None;
                self.areas.push(recorded);
                return;
            }
        }
        let view = recorded.area.mapping.view();
        recorded.area.processes.refresh(&view);
        if !ended {
            recorded.area.disable(&mut self.recording);
            std::thread::sleep(GRACE);
        }
        recorded.area.drain_to_the_end(&mut self.recording);
        if ended {
            // Nobody can write into it any more, and everything in it is in the files.
            if !self.recording.output_ended && !recorded.unlinked {
                let _ = std::fs::remove_file(&recorded.area.path);
            }
        } else {
            let view = recorded.area.mapping.view();
            // The program removes its own area when it ends.
            let _ = view.store_u64(header::SESSION, 0);
            let _ = view.store_u32(header::RECORDER_PID, 0);
        }
        for ring in &recorded.area.rings {
            self.gone_events += ring.stream.totals().events;
            self.gone_lost = self.gone_lost.saturating_add(ring.stream.losses().total());
        }
        self.gone_processes += recorded.area.processes.count();
        recorded.area.finish(&mut self.recording);
    }

    fn progress(&self, before: &Progress) -> Progress {
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

    /// Records until the command has ended, or for a running program until it ends or a signal
    /// or the control socket says so; then writes the rest. `progress` is called every
    /// [`RecordOptions::progress_period`].
    pub fn run(mut self, progress: &mut dyn FnMut(&Progress)) -> Result<Summary, Error> {
        signals::catch_endings();
        let interrupts_before = signals::interrupts();
        let terminations_before = signals::terminations();
        let mut terminations_forwarded = terminations_before;
        let mut last_progress = Progress::default();
        let mut next_progress = Instant::now() + self.options.progress_period;
        let mut next_flush = Instant::now() + self.options.flush_period;
        let mut next_processes = Instant::now();
        let mut next_scan = Instant::now();
        let mut sleep = self.options.drain_period;
        loop {
            let noticed = self.wait(self.longest_wait(sleep));
            let now = Instant::now();
            if noticed || now >= next_scan {
                self.discover();
                next_scan = now + SCAN_PERIOD;
            }
            let drained = if now >= next_flush {
                next_flush = now + self.options.flush_period;
                self.flush()
            } else {
                self.drain_all(false)
            };
            sleep = next_sleep(sleep, drained.fill, self.options.drain_period);
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
            let terminations = signals::terminations();
            if terminations != terminations_forwarded {
                terminations_forwarded = terminations;
                self.forward_termination();
            }
            let terminated = terminations != terminations_before;
            if self.is_over(interrupts, terminated, now) || asked {
                break;
            }
        }
        self.end(progress, &last_progress)
    }

    /// With nothing but sources to look at, their periods count: to wake up is an event itself.
    fn longest_wait(&self, rings: Duration) -> Duration {
        let sources = self.sources.iter().map(LiveSource::wait).min();
        match sources {
            Some(due) if self.areas.is_empty() => due.min(SCAN_PERIOD),
            Some(due) => due.min(rings),
            None => rings,
        }
    }

    /// Sleeps until something happens or `time` is over; whether the directory changed.
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
        // A signal ends the wait early, which is as good.
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

    fn forward_termination(&self) {
        if let Some(child) = &self.child
            && let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
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
            // The first Ctrl-C is the program's own: the terminal sent it to both.
            let ended = !matches!(child.try_wait(), Ok(None));
            self.command_ended = ended;
            let left = self.options.follow && self.session_lives();
            return ended && !left || interrupts >= 2;
        }
        let nothing_left = self.areas.is_empty() && self.sources_alone_are_over();
        interrupts > 0 || terminated || nothing_left
    }

    /// Sources have no end of their own: without a program to wait for they go on until
    /// somebody ends them.
    fn sources_alone_are_over(&self) -> bool {
        let attached_live = self.attached.iter().any(|pid| processes::exists(*pid));
        self.sources.is_empty() || !self.attached.is_empty() && !attached_live
    }

    fn session_lives(&mut self) -> bool {
        self.discover();
        !self.areas.is_empty()
    }

    /// Writes all that the rings hold, those of areas not seen before included.
    fn flush(&mut self) -> Drained {
        let began_ns = super::clocks::utc_ns();
        self.discover();
        let drained = self.drain_all(true);
        if let Some(live) = self.recording.output.live() {
            live.flushed(began_ns);
        }
        if let Err(error) = self.recording.output.write_indexes() {
            self.recording.problem(error.to_string());
        }
        drained
    }

    fn answer_requests(&mut self) -> bool {
        let mut end = false;
        while let Some((request, client)) = self.control.as_ref().and_then(ControlServer::next) {
            let answer = match request {
                Request::Status => Ok(()),
                Request::Flush => {
                    // Answered when it is done: whoever asks reads the files then.
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

    fn pause(&mut self) -> Result<(), Error> {
        for recorded in &mut self.areas {
            recorded.area.pause(&mut self.recording);
        }
        self.sources.iter_mut().for_each(|live| live.source().pause(true));
        self.paused = true;
        Ok(())
    }

    fn resume(&mut self) -> Result<(), Error> {
        self.paused = false;
        self.sources.iter_mut().for_each(|live| live.source().pause(false));
        for recorded in &mut self.areas {
            recorded.area.resume(&mut self.recording)?;
        }
        Ok(())
    }

    /// Drains what is left, waits for the command, writes the final texts.
    fn end(
        mut self,
        progress: &mut dyn FnMut(&Progress),
        last_progress: &Progress,
    ) -> Result<Summary, Error> {
        // What was made in the last moment belongs to it.
        self.discover();
        if self.child.is_some() || !self.attached.is_empty() {
            self.reap_now();
        }
        for recorded in std::mem::take(&mut self.areas) {
            self.finish_area(recorded, false);
        }
        for live in std::mem::take(&mut self.sources) {
            let (events, lost) = live.finish(&mut self.recording);
            self.gone_events += events;
            self.gone_lost = self.gone_lost.saturating_add(lost);
        }
        let last = self.progress(last_progress);
        progress(&last);
        let mut exit_status = None;
        if let Some(mut child) = self.child.take() {
            // The recording may be over before the program is: its status still counts.
            let status = child
                .wait()
                .map_err(|cause| Error::System { action: "wait for the command", cause })?;
            let command = launch::command_report(&self.command, Some(status));
            exit_status = command.exit_status;
            self.recording.command = Some(command);
        }
        let output = self.recording.output.root().to_owned();
        let report = self.recording.end()?;
        Ok(Summary { output, report, exit_status })
    }

    /// Finishes the areas whose processes have ended, without lingering.
    fn reap_now(&mut self) {
        let mut left = Vec::new();
        for mut recorded in std::mem::take(&mut self.areas) {
            let view = recorded.area.mapping.view();
            recorded.area.processes.refresh(&view);
            if recorded.area.processes.have_ended() && recorded.launched {
                self.finish_area(recorded, true);
            } else {
                left.push(recorded);
            }
        }
        self.areas.extend(left);
    }
}

/// Twice as often while a look finds rings more than a quarter full, down to 1 ms; back to the
/// chosen period slowly.
fn next_sleep(current: Duration, fill: f64, period: Duration) -> Duration {
    let least = period.min(Duration::from_millis(1));
    if fill > 0.75 {
        Duration::ZERO
    } else if fill > 0.25 {
        (current / 2).max(least)
    } else {
        (current * 5 / 4).clamp(least, period)
    }
}

/// A notice whenever an area appears; `None` where the system has no more of them.
fn watch(dir: &Path) -> Option<OwnedFd> {
    let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).ok()?;
    inotify::add_watch(&fd, dir, inotify::WatchFlags::MOVED_TO).ok()?;
    Some(fd)
}

/// The header of an area file, if it is one.
fn peek(path: &Path) -> Option<AreaHeader> {
    let file = open_area(path).ok()?;
    let mapping = Mapping::of_file(&file, Access::Shared).ok()??;
    AreaHeader::read(&mapping.view()).ok()
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
