// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs of a session that are not recorded, as far as a recorder can know: their area cannot be
//! read or has no rings, or they should have made one and did not.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use lateralis_ring::{AreaHeader, AreaHeaderError};

use super::super::processes::{self, ProcessTag};
use super::Session;
use crate::error::Error;
use crate::report::{NotRecorded, NotRecordedReason};

/// Most area files that are remembered because they cannot be read.
const UNREADABLE_MAX: usize = 100;

/// See the module's description.
#[derive(Default)]
pub(super) struct Missed {
    /// Area files that were there before the session.
    before: HashSet<PathBuf>,
    /// Area files of the session that cannot be read.
    unreadable: BTreeMap<PathBuf, NotRecorded>,
    /// The launched process, if the tracer was preloaded into it.
    preloaded: Option<u32>,
    /// A program of the session has made an area.
    has_registered: bool,
}

impl Missed {
    /// Of a session that begins while these area files are there.
    pub(super) fn new(before: Vec<PathBuf>) -> Missed {
        Missed { before: before.into_iter().collect(), ..Missed::default() }
    }

    /// Notes the process that was launched.
    pub(super) fn launched(&mut self, pid: u32, is_preloaded: bool) {
        self.preloaded = is_preloaded.then_some(pid);
    }

    /// Notes that a program of the session made an area.
    pub(super) fn registered(&mut self) {
        self.has_registered = true;
    }

    /// Notes that an area file can be read by now.
    pub(super) fn is_readable(&mut self, path: &Path) {
        self.unreadable.remove(path);
    }
}

/// The process that an area file is named after.
pub(super) fn pid_in_name(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// Path of the program of a process that runs, else its name, else that of its area.
fn program_of(pid: Option<u32>, path: &Path) -> String {
    let exe = pid.and_then(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok());
    let program = exe.as_deref().unwrap_or(path);
    program.to_string_lossy().into_owned()
}

/// Why, in one word and in a sentence with what to do.
fn described(error: &Error) -> (NotRecordedReason, String) {
    let reason = match error {
        Error::Area { cause: AreaHeaderError::Version { .. }, .. } => {
            NotRecordedReason::OtherVersion
        }
        Error::Area { .. } => NotRecordedReason::UnreadableArea,
        Error::Rings { .. } | Error::NoSpaceForRings { .. } => NotRecordedReason::NoRoom,
        _ => NotRecordedReason::Other,
    };
    let advice = error.advice();
    let separator = if advice.is_empty() { "" } else { ": " };
    (reason, format!("{error}{separator}{advice}"))
}

impl Session {
    /// Notes an area file that cannot be read, if it is of the session.
    pub(super) fn note_unreadable(&mut self, path: PathBuf, error: Error) {
        // One that cannot be opened is gone by now.
        if !matches!(error, Error::Area { .. }) || self.missed.before.contains(&path) {
            return;
        }
        let is_known = self.missed.unreadable.contains_key(&path);
        if is_known || self.missed.unreadable.len() >= UNREADABLE_MAX {
            return;
        }
        let pid = pid_in_name(&path);
        if !self.is_of_session(pid) {
            self.paths_seen.insert(path);
            return;
        }
        let (reason, detail) = described(&error);
        let program = program_of(pid, &path);
        self.missed.unreadable.insert(path, NotRecorded { program, pid, reason, detail, count: 1 });
    }

    /// Whether a process belongs to the session, as far as /proc still says so. Of one that is gone
    /// by now a session with a command takes what appeared since.
    fn is_of_session(&self, pid: Option<u32>) -> bool {
        let environment = pid.and_then(|pid| fs::read(format!("/proc/{pid}/environ")).ok());
        match environment.filter(|text| !text.is_empty()) {
            Some(text) if !self.command.is_empty() => {
                let session = format!("session={:x};", self.id);
                text.split(|byte| *byte == 0).any(|variable| {
                    let value = variable.strip_prefix(b"LATERALIS_RECORD=");
                    value.is_some_and(|value| value.starts_with(session.as_bytes()))
                })
            }
            Some(_) => {
                let descends =
                    |of: &ProcessTag| pid.is_some_and(|pid| processes::descends_from(pid, of.pid));
                self.standing.is_some() || self.attached.iter().any(descends)
            }
            None => !self.command.is_empty(),
        }
    }

    /// Notes a program whose area cannot be recorded.
    pub(super) fn note_refused(&mut self, found: &AreaHeader, error: &Error) {
        let (reason, detail) = described(error);
        let program = String::from_utf8_lossy(&found.exe).into_owned();
        let pid = Some(found.creator_pid);
        self.recording.not_recorded(NotRecorded { program, pid, reason, detail, count: 1 });
    }

    /// Notes which programs were not recorded. Context: all areas are finished.
    pub(super) fn report_missed(&mut self) {
        let (programs, unknown) = self.unrecorded.end();
        programs.into_iter().for_each(|program| self.recording.not_recorded(program));
        if unknown > 0 {
            self.recording.problem(format!(
                "More programs started at one moment than the table of the session has room for: \
                 count={unknown}: whether they were recorded is not known"
            ));
        }
        for (_, program) in std::mem::take(&mut self.missed.unreadable) {
            self.recording.problem(program.detail.clone());
            self.recording.not_recorded(program);
        }
        let Some(pid) = self.missed.preloaded else { return };
        if self.missed.has_registered || self.recording.misses_programs() {
            return;
        }
        let program = self.command.first().map(|word| word.to_string_lossy().into_owned());
        let detail = format!(
            "neither it nor a program that it started made an area in {}: they may be static or of \
             another C library, run without the environment of this command, as another user or in \
             another mount namespace, or find no room there",
            self.area_dir.display()
        );
        let reason = NotRecordedReason::NeverRegistered;
        let program = program.unwrap_or_default();
        self.recording.not_recorded(NotRecorded {
            program,
            pid: Some(pid),
            reason,
            detail,
            count: 1,
        });
    }
}
