// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lists traceable programs, their events, and enabled events; and changes which are enabled.
//! There is no daemon: everything is in the areas.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lateralis_ring::abi::{self, header};
use lateralis_ring::{
    AreaHeader, AreaView, enable_byte, processes as process_table, schema_text, schemas,
    set_enable_byte,
};

use super::area_file::{AreaFile, Users};
use super::clean::sweep;
use super::dirs::{area_dir, area_files};
use super::filters::with_filter;
use super::mapping::{Access, Mapping};
use super::processes;
use super::session_lock::recording_pids;
use super::sites;
use super::traced::{resolved, words};
use super::verified::VerifiedProcess;
use crate::error::Error;
use crate::pattern::Patterns;

/// An event of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventInfo {
    /// Its id in the area.
    pub id: u32,
    /// `subsystem:EVENT`.
    pub name: String,
    /// Its description.
    pub description: String,
    /// It is recorded.
    pub enabled: bool,
    /// A trigger watches it.
    pub watched: bool,
}

/// A traceable program, or the remains of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AreaInfo {
    /// Its area.
    pub path: PathBuf,
    /// Id of the area.
    pub area_id: u64,
    /// The process that created the area, or the first remaining one: its pid here if it is alive, else
    /// the one that it recorded.
    pub pid: u32,
    /// All processes that have the area, verified, by their pids here; for an unused area,
    /// those in its table.
    pub pids: Vec<u32>,
    /// Owner of the area's file.
    pub uid: u32,
    /// Bytes of memory it occupies.
    pub bytes: u64,
    /// Path of the program.
    pub exe: String,
    /// Its arguments.
    pub command: Vec<String>,
    /// A process has it, in any PID namespace.
    pub alive: bool,
    /// Its events.
    pub events: Vec<EventInfo>,
    /// Names of schemas that do not compile.
    pub unreadable_schemas: Vec<String>,
    /// Process id of its recorder, if that is alive.
    pub recorder_pid: Option<u32>,
    /// Its rings exist.
    pub has_rings: bool,
    /// They are in overwrite mode: a flight recorder.
    pub overwrite: bool,
    /// Lost events without a ring.
    pub lost_no_ring: u64,
}

/// Selects programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The program with this process.
    Pid(u32),
    /// Programs with this file name.
    Name(String),
    /// All running programs.
    All,
}

impl Target {
    /// A number is a process id, `all` selects all, anything else is a program's name.
    pub fn parse(text: &str) -> Target {
        match text.parse() {
            Ok(pid) => Target::Pid(pid),
            Err(_) if text == "all" => Target::All,
            Err(_) => Target::Name(text.to_owned()),
        }
    }

    fn text(&self) -> String {
        match self {
            Target::Pid(pid) => pid.to_string(),
            Target::Name(name) => name.clone(),
            Target::All => "all".to_owned(),
        }
    }

    fn means(&self, area: &AreaInfo) -> bool {
        match self {
            Target::Pid(pid) => area.pid == *pid || area.pids.contains(pid),
            Target::Name(name) => area.exe.rsplit('/').next() == Some(name),
            Target::All => true,
        }
    }
}

pub(super) struct OpenArea {
    pub(super) file: AreaFile,
    pub(super) mapping: Mapping,
    pub(super) header: AreaHeader,
}

pub(super) fn open(path: &Path) -> Result<OpenArea, Error> {
    let file = AreaFile::open(path).map_err(|cause| Error::file("open area", path, cause))?;
    let mapping = Mapping::of_file(file.file(), Access::Shared)
        .map_err(|cause| Error::file("map area", path, cause))?
        .ok_or_else(|| Error::NothingToRecover(path.to_owned()))?;
    let header = AreaHeader::read(&mapping.view())
        .map_err(|cause| Error::Area { path: path.to_owned(), cause })?;
    Ok(OpenArea { file, mapping, header })
}

/// The running processes of an area, verified, its creator first. Cost: a file of each
/// process in the area's table, and if one of them is not found under its pid, of all processes.
pub(super) fn living(area: &OpenArea) -> Vec<VerifiedProcess> {
    let creator = area.header.creator_pid;
    let table = process_table(&area.mapping.view()).unwrap_or_default();
    let named: BTreeSet<u32> =
        table.iter().map(|entry| entry.pid).chain([creator]).filter(|pid| *pid != 0).collect();
    if area.file.users() == Users::Nobody {
        return Vec::new();
    }
    let local = named.iter().filter_map(|number| VerifiedProcess::local(*number, &area.file));
    let mut found: Vec<VerifiedProcess> = local.collect();
    let is_whole = found.len() == named.len();
    if found.is_empty() || !is_whole && area.is_foreign() {
        // A recorder maps the area as well, but is not one of its programs: it is not in the table.
        found = VerifiedProcess::all(&area.file, None);
        found.retain(|process| named.contains(&process.number()));
    }
    found.sort_by_key(|process| (process.number() != creator, process.pid()));
    found
}

impl OpenArea {
    /// Whether the program recorded another PID namespace.
    fn is_foreign(&self) -> bool {
        processes::is_foreign_namespace(self.header.pid_namespace)
    }
}

fn describe(path: &Path, area: &OpenArea, recorders: &BTreeSet<u32>) -> AreaInfo {
    let (view, header) = (area.mapping.view(), &area.header);
    let living = living(area);
    // A recorder has the area as well: without a program the area is only leftover data.
    let alive = !living.is_empty();
    let mut pids: Vec<u32> = living.iter().map(VerifiedProcess::pid).collect();
    let pid = pids.first().copied().unwrap_or(header.creator_pid);
    if !alive {
        pids = process_table(&view).unwrap_or_default().iter().map(|entry| entry.pid).collect();
    }
    pids.sort_unstable();
    let mut events = Vec::new();
    let mut unreadable_schemas = Vec::new();
    each_event(&view, |id, subsystem, event, description| {
        let byte = enable_byte(&view, id).unwrap_or(0);
        events.push(EventInfo {
            id,
            name: format!("{subsystem}:{event}"),
            description: description.to_owned(),
            enabled: byte & abi::ENABLE_RECORD != 0,
            watched: byte & abi::ENABLE_WATCH != 0,
        });
    })
    .into_iter()
    .for_each(|name| unreadable_schemas.push(name));
    let recorder = Some(header.recorder_pid).filter(|pid| recorders.contains(pid));
    AreaInfo {
        path: path.to_owned(),
        area_id: header.area_id,
        pid,
        pids,
        uid: area.file.owner(),
        bytes: area.file.allocated_bytes(),
        exe: resolved(&String::from_utf8_lossy(&header.exe)),
        command: words(&header.command),
        alive,
        events,
        unreadable_schemas,
        recorder_pid: recorder,
        has_rings: header.rings_ready == abi::RINGS_READY,
        overwrite: header.ring_mode == 1,
        lost_no_ring: header.lost_no_ring,
    }
}

/// Calls `each(id, subsystem, event, description)` for the events of all schemas that compile;
/// returns the names of the others.
pub(super) fn each_event(
    view: &AreaView<'_>,
    mut each: impl FnMut(u32, &str, &str, &str),
) -> Vec<String> {
    let mut unreadable = Vec::new();
    for entry in schemas(view).unwrap_or_default() {
        let compiled = entry
            .ids()
            .and_then(|_| schema_text(view, &entry))
            .and_then(|text| lateralis_pleco::compile("schema.pleco", &text).schema)
            .filter(|schema| schema.events.len() as u32 == entry.event_count);
        let Some(schema) = compiled else {
            unreadable.push(String::from_utf8_lossy(&entry.name).into_owned());
            continue;
        };
        for event in &schema.events {
            let subsystem = &schema.subsystems[event.subsystem].name;
            each(entry.base_id + event.index, subsystem, &event.name, &event.description);
        }
    }
    unreadable
}

/// All areas of this user: of running programs, and leftovers of ended ones.
/// Files that are not readable areas are left out; empty areas of ended programs are removed.
pub fn list(dir: Option<&Path>) -> Vec<AreaInfo> {
    let dir = area_dir(dir);
    sweep(&dir);
    let recorders = recording_pids(&dir);
    let mut found: Vec<AreaInfo> = area_files(&dir)
        .iter()
        .filter_map(|path| Some(describe(path, &open(path).ok()?, &recorders)))
        .collect();
    found.sort_by_key(|area| (area.pid, area.area_id));
    found
}

/// The areas of a running target.
pub fn find(dir: Option<&Path>, target: &Target) -> Result<Vec<AreaInfo>, Error> {
    let found: Vec<AreaInfo> =
        list(dir).into_iter().filter(|area| area.alive && target.means(area)).collect();
    if found.is_empty() {
        return Err(Error::NotTraceable { target: target.text(), area_dir: area_dir(dir) });
    }
    Ok(found)
}

/// Enables or disables events by patterns in programs that are being recorded, or whose rings are
/// a flight recorder; also events of schemas that register later. Returns the number of events
/// changed.
///
/// Errors: the target is not being recorded, or no event matches.
pub fn set_enabled(
    dir: Option<&Path>,
    target: &Target,
    patterns: &Patterns,
    enable: bool,
) -> Result<usize, Error> {
    let (mut changed, mut matched, mut recorded) = (0, 0, 0);
    for info in find(dir, target)? {
        if !info.has_rings || info.recorder_pid.is_none() && !info.overwrite {
            continue;
        }
        recorded += 1;
        let area = open(&info.path)?;
        let view = area.mapping.view();
        append_patterns(&view, &area.header, patterns, enable)?;
        each_event(&view, |id, subsystem, event, _| {
            // `!PATTERN` in the list excludes events from the change.
            if patterns.decide(subsystem, event) != Some(true) {
                return;
            }
            matched += 1;
            let before = enable_byte(&view, id).unwrap_or(0);
            let after =
                if enable { before | abi::ENABLE_RECORD } else { before & !abi::ENABLE_RECORD };
            let after = with_filter(&view, id, after);
            if before != after && set_enable_byte(&view, id, after).is_ok() {
                changed += 1;
            }
        });
        refuse_if(sites::follow(&view, &area.file))?;
    }
    if recorded == 0 {
        return Err(Error::NotRecorded { target: target.text() });
    }
    if matched == 0 {
        return Err(Error::NoSuchEvent(patterns.to_string()));
    }
    Ok(changed)
}

/// Returns an error if sites could not be switched: the events would silently stay disabled.
pub(super) fn refuse_if(followed: sites::Followed) -> Result<(), Error> {
    match followed.refused.first() {
        Some((pid, cause)) => Err(Error::Refused(format!(
            "the patchable sites of pid={pid} cannot be written: cause={cause}"
        ))),
        None => Ok(()),
    }
}

/// Appends the patterns to those for later schemas, if there is room for them.
fn append_patterns(
    view: &AreaView<'_>,
    header: &AreaHeader,
    patterns: &Patterns,
    enable: bool,
) -> Result<(), Error> {
    let added: Vec<String> = patterns
        .to_string()
        .split(',')
        .map(|pattern| match (enable, pattern.strip_prefix('!')) {
            (true, _) => pattern.to_owned(),
            (false, Some(kept)) => kept.to_owned(),
            (false, None) => format!("!{pattern}"),
        })
        .collect();
    let mut text = header.enable.clone();
    for pattern in added {
        if !text.is_empty() {
            text.push(b',');
        }
        text.extend(pattern.as_bytes());
    }
    if text.len() as u64 >= header::ENABLE_BYTES {
        return Err(Error::Refused(
            "the program's list of patterns is full; later schemas would be wrong".to_owned(),
        ));
    }
    // The end first: a program that reads meanwhile sees the old list or a longer one.
    text.push(0);
    for (index, byte) in text.iter().enumerate().rev() {
        let _ = view.store_u8(header::ENABLE + index as u64, *byte);
    }
    Ok(())
}
