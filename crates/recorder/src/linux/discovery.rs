// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which programs can be traced now, their events, and what is enabled; and changing that.
//! No daemon: everything is in the areas.

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

/// A program that can be traced, or what is left of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AreaInfo {
    /// Its area.
    pub path: PathBuf,
    /// Number of the area.
    pub area_id: u64,
    /// The process that made the area, or the first that is left: its number here if it lives, else
    /// the one that it called itself.
    pub pid: u32,
    /// All processes that have the area, checked, by their numbers here; of an area that nobody has,
    /// those that its table names.
    pub pids: Vec<u32>,
    /// The user whose file the area is.
    pub uid: u32,
    /// Bytes of memory that it takes.
    pub bytes: u64,
    /// Path of the program.
    pub exe: String,
    /// Its arguments.
    pub command: Vec<String>,
    /// A process has it, in whatever PID namespace.
    pub alive: bool,
    /// Its events.
    pub events: Vec<EventInfo>,
    /// Names of schemas that do not compile.
    pub unreadable_schemas: Vec<String>,
    /// Who records it, if that process lives.
    pub recorder_pid: Option<u32>,
    /// Its rings are there.
    pub has_rings: bool,
    /// They are in overwrite mode: a flight recorder.
    pub overwrite: bool,
    /// Lost events without a ring.
    pub lost_no_ring: u64,
}

/// Which programs are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The one with this process.
    Pid(u32),
    /// Those whose program has this file name.
    Name(String),
    /// Every one that lives.
    All,
}

impl Target {
    /// A number is a process id, `all` means all, anything else a program's name.
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

/// The processes of an area that live, checked, the one that made it first. Cost: a file of each
/// process that the area names, and if one of them is not there under this number, of all.
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
        // A recorder maps the area as well, and is no program of it: it is not named.
        found = VerifiedProcess::all(&area.file, None);
        found.retain(|process| named.contains(&process.number()));
    }
    found.sort_by_key(|process| (process.number() != creator, process.pid()));
    found
}

impl OpenArea {
    /// Whether the program said that it is of another PID namespace.
    fn is_foreign(&self) -> bool {
        processes::is_foreign_namespace(self.header.pid_namespace)
    }
}

fn describe(path: &Path, area: &OpenArea, recorders: &BTreeSet<u32>) -> AreaInfo {
    let (view, header) = (area.mapping.view(), &area.header);
    let living = living(area);
    // A recorder has the area as well: without a program it is only somebody's data.
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
/// the names of those that do not.
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

/// All areas of this user: programs that run, and what ended ones left.
/// What is no readable area is left out; areas of ended programs that hold nothing are removed.
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

/// The areas of a target that lives.
pub fn find(dir: Option<&Path>, target: &Target) -> Result<Vec<AreaInfo>, Error> {
    let found: Vec<AreaInfo> =
        list(dir).into_iter().filter(|area| area.alive && target.means(area)).collect();
    if found.is_empty() {
        return Err(Error::NotTraceable { target: target.text(), area_dir: area_dir(dir) });
    }
    Ok(found)
}

/// Enables or disables events by patterns in programs that are recorded, or whose rings run as
/// a flight recorder; also events of schemas that register later. Returns how many events
/// changed.
///
/// Errors: nobody records the target, or no event matches.
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
            // `!PATTERN` in the list takes events out of what is changed.
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

/// An error if sites could not be switched: the events would silently stay off.
pub(super) fn refuse_if(followed: sites::Followed) -> Result<(), Error> {
    match followed.refused.first() {
        Some((pid, cause)) => Err(Error::Refused(format!(
            "the patchable sites of pid={pid} cannot be written: cause={cause}"
        ))),
        None => Ok(()),
    }
}

/// Adds the patterns to those for later schemas, if there is room for them.
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
