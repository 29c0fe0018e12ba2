// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording session: one command with its children, or running programs, from start to end.
//!
//! ```text
//! run ─ waits, drains, ends      areas ─ discovery, recording, release   requests ─ from other processes
//!                                 rules, keep ─ firings       missed ─ programs not recorded
//! ```

mod areas;
mod keep;
mod missed;
mod requests;
mod rules;
mod run;
mod watching;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::Instant;

use lateralis_pleco::Schema;
use lateralis_ring::RingMode;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::area::LiveArea;
use super::area_file::AreaFile;
use super::control::ControlServer;
use super::dirs::{area_files, make_area_dir};
use super::gate;
use super::inherited::{self, Inherited};
use super::keep::{Chunks, Writer};
use super::live::{Follower, LiveServer};
use super::output::Output;
use super::policies::{self, Standing, Wanted};
use super::prepared::Prepared;
use super::processes::ProcessTag;
use super::recording::{Recording, random_uuid};
use super::rules::{Commands, MarkQueue};
use super::session_lock::SessionLock;
use super::signals::Forwarding;
use super::sources::LiveSource;
use super::trigger::AreaTrigger;
use super::unrecorded::{self, Unrecorded};
use super::verified::VerifiedProcess;
use super::{launch, signals};
use crate::error::Error;
use crate::options::{Fingerprint, RecordOptions};
use crate::report::{NotRecorded, Origin, Report, UnrecordedCause};
use crate::source::Source;

/// Result of a session.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The directory.
    pub output: PathBuf,
    /// Content of `report.json`.
    pub report: Report,
    /// Exit status of the command as in a shell; `None` if none was launched.
    pub exit_status: Option<i32>,
}

/// The separate recording of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyWriter {
    /// Its directory.
    pub path: PathBuf,
    /// Address for clients.
    pub live: Option<std::net::SocketAddr>,
    /// Fingerprint for clients.
    pub fingerprint: Option<Fingerprint>,
}

struct Recorded {
    area: LiveArea,
    wanted: Wanted,
    trigger: Option<AreaTrigger>,
    ended_at: Option<Instant>,
    launched: bool,
    /// Its file has been removed.
    unlinked: bool,
}

/// A recording session.
///
/// Context: one thread; [`Session::run`] catches SIGINT, SIGTERM and SIGHUP of the process;
/// [`Session::launch`] those that it passes on to the command.
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
    /// Areas that looked unusable, and the number of retries.
    retries: HashMap<PathBuf, u32>,
    /// Known programs of the session that are not recorded.
    missed: missed::Missed,
    attached: Vec<ProcessTag>,
    /// Sessions whose requests attached programs have in their environment, and pass on to their children.
    inherited: Vec<(u64, SessionLock)>,
    /// Shows programs that this session has a recorder; `None` at its end.
    lock: Option<SessionLock>,
    command: Vec<OsString>,
    child: Option<Child>,
    child_fd: Option<OwnedFd>,
    /// Programs that could not load the library.
    unrecorded: Unrecorded,
    /// Signals for the command.
    forwarding: Option<Forwarding>,
    notices: Option<OwnedFd>,
    control: Option<ControlServer>,
    file_limit: Option<rustix::process::Rlimit>,
    /// The area shared by the command's programs.
    shared: Option<PathBuf>,
    /// The schema of the library that the command's programs load.
    loaded: Option<Arc<Schema>>,
    /// Areas for the next programs that the command starts.
    prepared: Option<Prepared>,
    /// Programs of the command found since areas were last prepared.
    programs_found: usize,
    /// Number of recorded areas of the command's programs.
    launched_count: usize,
    /// The request to every program of the user.
    standing: Option<Standing>,
    /// Events of filters, and whether a program has them.
    filter_events: BTreeMap<String, bool>,
    /// Areas that no policy selected.
    declined: Vec<PathBuf>,
    /// This many of them are examined again.
    declined_most: usize,
    /// The trigger's events were known in some area.
    trigger_was_set: bool,
    /// The command has ended.
    command_ended: bool,
    paused: bool,
    /// A condition stopped it, or has to start it: only the events used by conditions are recorded.
    is_stopped: bool,
    /// Number of known stream classes when it was stopped.
    stopped_classes: u64,
    commands: Commands,
    /// The recorder's own events, and their queue.
    marks: Option<(LiveSource, MarkQueue)>,
    gone_events: u64,
    gone_lost: u64,
    gone_processes: u64,
}

impl Session {
    /// Creates the output directory and prepares discovery of areas.
    ///
    /// Errors: the output exists, or a directory cannot be created or trusted.
    pub fn new(options: RecordOptions) -> Result<Session, Error> {
        inherited::prepare();
        super::clocks::begin_frequency();
        let area_dir = make_area_dir(options.area_dir.as_deref())?;
        let area_dir = std::fs::canonicalize(&area_dir)
            .map_err(|cause| Error::file("open directory", &area_dir, cause))?;
        let keeps_alone = options.keep.as_ref().is_some_and(|keep| keep.is_alone);
        let output = if keeps_alone || options.chunks.is_some() {
            Output::create_folder(&options.output)?
        } else {
            Output::create(&options.output, options.max_disk_bytes)?
        };
        let mut recording = Recording::new(output, options.ctf_version, Origin::Recorded);
        let live = options.live.as_ref();
        let root = options.keep_streams.then(|| recording.output.root().to_owned());
        let live = live.map(|live| LiveServer::start(live, recording.uuid, root)).transpose()?;
        recording.output.set_live(live, options.keep_streams);
        recording.use_live_clock(super::clocks::native_kind());
        recording.begin_writers(&options)?;
        let marks = rules::begin(&mut recording, &options)?;
        if let Some(chunks) = &options.chunks {
            recording.chunks = Some(Box::new(Chunks::new(chunks.clone(), &recording)));
        }
        let missed = missed::Missed::new(area_files(&area_dir));
        let mut id = u64::from_ne_bytes(random_uuid()[8..].try_into().unwrap_or([1; 8]));
        id |= 1;
        super::clean::sweep(&area_dir);
        let lock = SessionLock::take(&area_dir, id)
            .map_err(|cause| Error::file("make a lock in", &area_dir, cause))?;
        let file_limit = launch::raise_file_limit();
        if let Some(limit) = file_limit {
            let most = limit.maximum.unwrap_or(4096).clamp(64, 4096);
            recording.output.set_open_max(most as usize / 2);
        }
        let control = ControlServer::new(&area_dir).ok();
        let is_stopped = options.starts_stopped();
        if is_stopped {
            let now = recording.now();
            recording.begin_gap(UnrecordedCause::Stopped, now);
        }
        let commands = Commands::new(options.command_time_max);
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
            missed,
            attached: Vec::new(),
            inherited: Vec::new(),
            lock: Some(lock),
            command: Vec::new(),
            child: None,
            child_fd: None,
            unrecorded: Unrecorded::default(),
            forwarding: None,
            notices: None,
            control,
            file_limit,
            shared: None,
            loaded: None,
            prepared: None,
            programs_found: 0,
            launched_count: 0,
            standing: None,
            filter_events: BTreeMap::new(),
            declined: Vec::new(),
            declined_most: watching::DECLINED_LEAST,
            trigger_was_set: false,
            command_ended: false,
            paused: false,
            is_stopped,
            stopped_classes: 0,
            commands,
            marks,
            gone_events: 0,
            gone_lost: 0,
            gone_processes: 0,
        })
    }

    /// The output directory.
    pub fn output(&self) -> &Path {
        self.recording.output.root()
    }

    /// Adds a source besides programs. Context: before [`Session::launch`] and
    /// [`Session::attach`], so that it sees programs from their start.
    ///
    /// Errors: a sentence that describes what is missing. It is added to the report, and the rest can
    /// be recorded nevertheless.
    pub fn add_source(&mut self, source: Box<dyn Source>) -> Result<(), String> {
        super::clocks::wait_for_frequency();
        super::cores::wait();
        let (packet, overwrite) =
            (self.options.packet_bytes, self.options.mode == RingMode::Overwrite);
        self.recording.describe(source.environment());
        let live = LiveSource::begin(&mut self.recording, source, packet, overwrite)
            .inspect_err(|problem| self.recording.problem(problem.clone()))?;
        self.sources.push(live);
        Ok(())
    }

    /// Adds a program that is not recorded to the report: one that cannot load the
    /// tracer. A program that is added twice counts once.
    pub fn note_not_recorded(&mut self, program: NotRecorded) {
        self.recording.not_recorded(program);
    }

    /// Adds a problem to the report.
    pub fn note_problem(&mut self, problem: String) {
        self.recording.problem(problem);
    }

    /// Address for live clients; `None` without a listener.
    pub fn live_address(&self) -> Option<std::net::SocketAddr> {
        self.recording.output.live().and_then(LiveServer::address)
    }

    /// The separate recordings of policies.
    pub fn policy_outputs(&self) -> Vec<PolicyWriter> {
        let one = |writer: &Writer| PolicyWriter {
            path: writer.root().to_owned(),
            live: writer.live_address(),
            fingerprint: writer.live_fingerprint(),
        };
        self.recording.writers().iter().map(one).collect()
    }

    /// Fingerprint for live clients; `None` without encryption.
    pub fn live_fingerprint(&self) -> Option<Fingerprint> {
        self.recording.output.live().and_then(LiveServer::fingerprint)
    }

    /// Follows the recording in this process, from its start; `None` if it is not live.
    pub fn follow(&self) -> Option<Follower> {
        self.recording.output.live().and_then(LiveServer::follow)
    }

    /// Sets the schema of the library that [`Session::launch`] loads by `LD_PRELOAD`: the areas of
    /// programs that start in quick succession can then be created before they start.
    pub fn expect_schema(&mut self, loaded: Schema) {
        let loaded = Arc::new(loaded);
        self.recording.expect_schema(&loaded);
        self.loaded = Some(loaded);
    }

    /// Starts a command and records it and its children. `environment` is added to the
    /// command's; an `LD_PRELOAD` in it is prepended to the existing one.
    pub fn launch(
        &mut self,
        command: &[OsString],
        environment: &[(OsString, OsString)],
    ) -> Result<u32, Error> {
        // Before the first event: the recorder may be killed at any time.
        self.recording.write_first_metadata()?;
        signals::catch_program_signals();
        self.forwarding = Some(Forwarding::begin());
        let mut environment = environment.to_vec();
        if self.options.shared {
            let path = self.area_dir.join(format!("shared-{:016x}.area", self.id));
            environment.push(("LATERALIS_AREA".into(), path.clone().into_os_string()));
            self.shared = Some(path);
        }
        self.look_at_command(command, &mut environment);
        let is_loaded = environment.iter().any(|(name, _)| name == "LD_PRELOAD");
        let loaded = self.loaded.as_deref().filter(|_| is_loaded);
        self.prepared =
            loaded.and_then(|loaded| Prepared::new(&self.area_dir, self.id, &self.options, loaded));
        let names = self.prepared.as_ref().map_or(0, Prepared::names);
        let request = match &self.options.policies {
            Some(_) => policies::request_text(&self.options, self.id, true)?,
            None => launch::record_request(self.id, &self.options, names)?,
        };
        let adoptions = self.sources.iter().filter_map(|live| live.ask().adoption());
        let adoptions = adoptions.map(|fd| fd.try_clone_to_owned()).collect::<Result<_, _>>();
        let adoptions =
            adoptions.map_err(|cause| Error::System { action: "hand on a descriptor", cause })?;
        let mut before = launch::BeforeExec {
            file_limit: self.file_limit,
            adoptions,
            waits: None,
            inherited: Inherited::of_this_process(),
        };
        let dir = &self.area_dir;
        let child = if self.sources.iter().any(|live| live.ask().waits_for_programs()) {
            let ends = gate::gate();
            let (gate, waits) =
                ends.map_err(|cause| Error::System { action: "make a socket", cause })?;
            before.waits = Some(waits);
            let sources = &mut self.sources;
            let look = |pid| sources.iter_mut().try_for_each(|live| live.source().before_exec(pid));
            std::thread::scope(|scope| {
                let opened = scope.spawn(|| gate.open(look));
                let child = launch::spawn(command, dir, &request, &environment, before);
                match opened.join() {
                    Ok(Err(reason)) => Err(Error::Source(reason)),
                    _ => child,
                }
            })
        } else {
            launch::spawn(command, dir, &request, &environment, before)
        }?;
        let pid = child.id();
        self.sources.iter_mut().for_each(|live| live.source().started(pid));
        self.child_fd = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        self.command = command.to_vec();
        self.missed.launched(pid, environment.iter().any(|(name, _)| name == "LD_PRELOAD"));
        self.recording.command = Some(launch::command_report(command, None));
        self.child = Some(child);
        Ok(pid)
    }

    /// Checks before the command starts whether it can load the library in the `LD_PRELOAD` of `environment`,
    /// and has the library report children that cannot.
    fn look_at_command(
        &mut self,
        command: &[OsString],
        environment: &mut Vec<(OsString, OsString)>,
    ) {
        if !environment.iter().any(|(name, _)| name == "LD_PRELOAD") {
            return;
        }
        self.unrecorded.begin(&self.area_dir, self.id);
        let Some(program) = command.first() else { return };
        let preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
        if let Some(reason) = unrecorded::reason(program, &preloaded) {
            self.unrecorded.add(reason, program, 1, None);
            if reason.forbids_loading() {
                environment.retain(|(name, _)| name != "LD_PRELOAD");
            }
        }
    }

    /// Records a running process, and those it starts from now on.
    ///
    /// Errors: it is not traceable, is being recorded by another recorder, or there is no space for its
    /// rings; then nothing was changed in it.
    pub fn attach(&mut self, pid: u32) -> Result<(), Error> {
        self.recording.write_metadata_if_due()?;
        let mut found = false;
        for path in area_files(&self.area_dir) {
            let Ok(area) = AreaFile::open(&path) else { continue };
            // The program exists, but has another version than this recorder.
            if missed::pid_in_name(&path) == Some(pid)
                && let Err(error @ Error::Area { .. }) = super::discovery::open(&path)
            {
                return Err(error);
            }
            if VerifiedProcess::at(pid, &area).is_some() {
                drop(area);
                let area = super::discovery::open(&path)?;
                if !self.take(&path, area, false)? {
                    return Err(Error::Refused(format!("no policy wants process {pid}")));
                }
                found = true;
            }
        }
        for live in &mut self.sources {
            match live.source().adopt(pid) {
                Ok(()) => found = true,
                Err(problem) if live.ask().must_see() => return Err(Error::Source(problem)),
                Err(problem) => self.recording.problem(problem),
            }
        }
        if !found {
            return Err(Error::NotTraceable {
                target: pid.to_string(),
                area_dir: self.area_dir.clone(),
            });
        }
        self.attached.extend(ProcessTag::of(pid));
        if let Some(session) = launch::inherited_session(pid)
            && let Ok(lock) = SessionLock::take(&self.area_dir, session)
        {
            self.inherited.push((session, lock));
        }
        Ok(())
    }
}
