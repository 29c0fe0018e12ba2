// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs of a session that are not recorded, as far as a recorder can know: their area is
//! unreadable or has no rings, or they should have created one and did not.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use lateralis_ring::{AreaHeader, AreaHeaderError};

use super::super::processes::{self, ProcessTag};
use super::Session;
use crate::error::Error;
use crate::report::{NotRecorded, NotRecordedReason};

/// Maximum number of unreadable area files kept.
const UNREADABLE_MAX: usize = 100;

/// The programs that are not recorded.
#[derive(Default)]
pub(super) struct Missed {
    /// Area files that existed before the session.
    before: HashSet<PathBuf>,
    /// Unreadable area files of the session.
    unreadable: BTreeMap<PathBuf, NotRecorded>,
    /// The launched process, if the tracer was preloaded into it.
    preloaded: Option<u32>,
    /// A program of the session has created an area.
    has_registered: bool,
}

impl Missed {
    /// For a session that starts while these area files exist.
    pub(super) fn new(before: Vec<PathBuf>) -> Missed {
        Missed { before: before.into_iter().collect(), ..Missed::default() }
    }

    /// Sets the launched process.
    pub(super) fn launched(&mut self, pid: u32, is_preloaded: bool) {
        self.preloaded = is_preloaded.then_some(pid);
    }

    /// A program of the session has created an area.
    pub(super) fn registered(&mut self) {
        self.has_registered = true;
    }

    /// An area file has become readable.
    pub(super) fn is_readable(&mut self, path: &Path) {
        self.unreadable.remove(path);
    }
}

/// The process in the name of an area file.
pub(super) fn pid_in_name(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// Path of the program of a running process, else its name, else that of its area.
fn program_of(pid: Option<u32>, path: &Path) -> String {
    let exe = pid.and_then(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok());
    let program = exe.as_deref().unwrap_or(path);
    program.to_string_lossy().into_owned()
}

/// The reason, and a sentence with what to do.
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
    /// Adds an unreadable area file, if it belongs to the session.
    pub(super) fn note_unreadable(&mut self, path: PathBuf, error: Error) {
        // One that cannot be opened has been removed.
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

    /// Whether a process belongs to the session, as far as /proc still shows it. If the process has ended,
    /// a session with a command counts the files that appeared since its start.
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

    /// Adds a program whose area cannot be recorded.
    pub(super) fn note_refused(&mut self, found: &AreaHeader, error: &Error) {
        let (reason, detail) = described(error);
        let program = String::from_utf8_lossy(&found.exe).into_owned();
        let pid = Some(found.creator_pid);
        self.recording.not_recorded(NotRecorded { program, pid, reason, detail, count: 1 });
    }

    /// Reports the programs that were not recorded. Context: all areas are finished.
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
