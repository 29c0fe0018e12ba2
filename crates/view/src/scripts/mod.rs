// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts of the page: events that their filters keep, and activities that they find.

mod beside;
mod following;
mod found;
mod kept;
mod looking;
mod places;
mod steps;

use std::sync::{Arc, Mutex};

use lateralis_lanes::{Chosen, Left};
use lateralis_script::{Activities, Limits, Script, ScriptError};

use crate::answer::Problem;
use crate::session::{Session, lock};
pub use beside::{Beside, Progress, Run, Watch};
pub use following::State;
use following::{Follower, Newest, Wake};
use found::{Finding, Rest, Told};
pub use found::{Found, Lasts, point_of};
use kept::{Kept, over};
pub use places::Places;

/// Limit of scripts in a session.
const SCRIPTS_MAX: usize = 256;
/// Limit of scripts that follow a live session, each on a thread of its own.
const FOLLOWING_MAX: usize = 16;
/// Limit of cached filter results for rows of a script.
const LEFT_MAX: usize = 64;

/// Cached result of a filter for a row.
struct LeftOf {
    filter: u64,
    row: usize,
    /// Version of the script's results.
    serial: (u64, u64),
    left: Arc<Left>,
}

/// A script that was run.
pub struct Ran {
    /// Name given by the page.
    pub name: String,
    /// Source text, to run it over further events of a live session.
    text: String,
    /// Result of its filters, if it has any.
    kept: Mutex<Option<Arc<Kept>>>,
    /// Its activities, if it has any; in a live session, the thread that finds them.
    found: Option<Arc<Follower>>,
    left: Mutex<Vec<LeftOf>>,
    /// Execution mode.
    pub how: String,
    /// Number of events kept at the first run.
    count: u64,
    /// Its page was closed, and all its data is dropped.
    is_left: bool,
}

impl Ran {
    /// Placeholder for a script whose page was closed.
    fn left_by_its_page(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: String::new(),
            kept: Mutex::default(),
            found: None,
            left: Mutex::default(),
            how: String::new(),
            count: 0,
            is_left: true,
        }
    }

    /// Result of its filters, if it has any.
    #[must_use]
    pub fn kept(&self) -> Option<Arc<Kept>> {
        lock(&self.kept).clone()
    }

    /// Its current activities, if it has any.
    #[must_use]
    pub fn found(&self) -> Option<Arc<Found>> {
        self.found.as_ref()?.found()
    }

    /// Number of activities found so far, or of events kept at the first run.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.found().map_or(self.count, |found| found.count)
    }

    /// Applies a filter to a row ([`Found::is_left`]); `None` if all are kept.
    ///
    /// Cost: one check per activity, once for each filter.
    #[must_use]
    pub fn left(
        &self,
        session: &Session,
        (filter, chosen): (u64, Option<&Chosen>),
        found: &Found,
        row: usize,
    ) -> Option<Arc<Left>> {
        let chosen = chosen?;
        let intervals = found.lanes.row(row)?.1;
        let before = {
            let all = lock(&self.left);
            let known = all.iter().find(|left| left.filter == filter && left.row == row);
            known.map(|left| (left.serial, Arc::clone(&left.left)))
        };
        if let Some((serial, left)) = &before
            && *serial == found.serial
        {
            return Some(Arc::clone(left));
        }
        let keeps = |index: usize| found.is_left(session, chosen, row, index);
        let before = before.filter(|(serial, _)| *serial < found.serial).map(|(_, left)| left);
        let left = Arc::new(intervals.left_after(before.as_deref(), keeps));
        // The filter has not examined events newer than this snapshot of the session yet.
        if found.serial.0 > session.serial() {
            return Some(left);
        }
        let mut all = lock(&self.left);
        let is_newer = |known: &LeftOf| {
            known.filter == filter && known.row == row && known.serial > found.serial
        };
        if !all.iter().any(is_newer) {
            all.retain(|known| known.filter != filter || known.row != row);
            if all.len() >= LEFT_MAX {
                all.remove(0);
            }
            all.push(LeftOf { filter, row, serial: found.serial, left: Arc::clone(&left) });
        }
        Some(left)
    }

    /// Runs its filters over events of a live session that are new since the last run.
    ///
    /// # Errors
    /// If the script fails, or the recording cannot be read.
    pub fn catch_up(&self, session: &Session) -> Result<(), Problem> {
        if session.growth.is_none() {
            return Ok(());
        }
        // Locked during the run: simultaneous requests wait, and find the work done.
        let mut own = lock(&self.kept);
        let Some(kept) = own.clone() else { return Ok(()) };
        let end = end_of(session);
        if kept.until >= end {
            return Ok(());
        }
        let mut script = load(&self.name, &self.text)?;
        let mut seen = Vec::new();
        let stretch = (kept.until.saturating_add(1), end);
        over(session, stretch, &mut script, &mut seen, &mut None, &Watch::default())?;
        *own = Some(Arc::new(kept.after(session, seen, end)));
        Ok(())
    }
}

fn end_of(session: &Session) -> i64 {
    let meta = session.lanes.meta();
    meta.origin.saturating_add_unsigned(meta.end)
}

fn load(name: &str, text: &str) -> Result<Script, Problem> {
    Script::load(name, text, Limits::default()).map_err(|error| problem(&error))
}

/// All scripts, in the order in which they were added.
#[derive(Default)]
pub struct Scripts {
    all: Mutex<Vec<Arc<Ran>>>,
    /// The newest snapshot of a live session.
    newest: Arc<Newest>,
    /// Notifies pages of results that are newer than the snapshot they have.
    wake: Wake,
    /// Limit of events that a lagging script examines until it publishes results; `None` if only
    /// time limits that.
    turn_events: Option<u64>,
}

impl Scripts {
    /// Sets a function that notifies pages of results; lagging scripts publish results after at
    /// most `turn_events` events.
    #[must_use]
    pub fn waking(tell: Arc<dyn Fn() + Send + Sync>, turn_events: Option<u64>) -> Self {
        Self { wake: Wake::telling(tell), turn_events, ..Self::default() }
    }

    /// Returns all scripts.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Ran>> {
        lock(&self.all).clone()
    }

    /// Returns a script by its number.
    ///
    /// # Errors
    /// If there is none.
    pub fn get(&self, id: u32) -> Result<Arc<Ran>, Problem> {
        let all = lock(&self.all);
        let none = || Problem::new("no such script", id.to_string(), "send it with `script` first");
        all.get(id as usize).cloned().ok_or_else(none)
    }

    /// Changes whenever activities appear on new rows.
    #[must_use]
    pub fn lists(&self) -> u64 {
        self.wake.count()
    }

    /// Passes a new snapshot to all scripts that find activities.
    pub fn follow(&self, session: &Session) {
        let Some(state) = State::of(session).map(Arc::new) else { return };
        self.newest.set(&state);
        for ran in lock(&self.all).iter() {
            if let Some(found) = &ran.found {
                found.go_on(&state);
            }
        }
    }

    /// Whether all scripts have examined the snapshot of a session, or were stopped.
    #[must_use]
    pub fn are_done(&self, session: &Session) -> bool {
        let is_done = |found: Arc<Found>| found.stopped.is_some() || found.done >= session.serial();
        self.all().iter().all(|ran| ran.found().is_none_or(is_done))
    }

    /// Runs a script over all events, and returns its number. In a live session, it continues to
    /// find activities, and stops the script that it replaces.
    ///
    /// Cost: compiled filters take some 100 ns per event, others some microseconds.
    ///
    /// # Errors
    /// If the script is wrong, with line and column; or if `watch` was cancelled.
    pub fn add(
        &self,
        session: &Session,
        (name, text): (&str, &str),
        replaced: Option<u32>,
        watch: &Watch,
    ) -> Result<u32, Problem> {
        if session.growth.is_none() {
            return self.add_ended(session, (name, text), watch);
        }
        let follow = |ran: &&Arc<Ran>| ran.found.as_ref().is_some_and(|found| found.is_at_work());
        let following = lock(&self.all).iter().filter(follow).count();
        self.has_room(name)?;
        let instead = replaced.and_then(|id| self.get(id).ok()).and_then(|ran| ran.found.clone());
        let is_more = !instead.as_ref().is_some_and(|found| found.is_at_work());
        if is_more && following >= FOLLOWING_MAX {
            let advice = "remove others, or load the page again when the recording has ended";
            return Err(Problem::new("too many scripts follow the recording", name, advice));
        }
        let often = (&self.wake, self.turn_events.unwrap_or(u64::MAX));
        let ran = Arc::new(run_growing(session, (name, text), often, &self.newest, watch)?);
        if let Some(instead) = instead {
            instead.end();
        }
        let id = self.push(&ran);
        // Passes on the snapshot that arrived during the first run.
        if let (Some(found), Some(newest)) = (&ran.found, self.newest.get()) {
            found.go_on(&newest);
        }
        Ok(id)
    }

    /// Runs a script over a session that is not live, and returns its number.
    ///
    /// # Errors
    /// If the script is wrong, or `watch` was cancelled.
    pub fn add_ended(
        &self,
        session: &Session,
        (name, text): (&str, &str),
        watch: &Watch,
    ) -> Result<u32, Problem> {
        self.has_room(name)?;
        let ran = run(session, name, text, watch)?;
        Ok(self.push(&Arc::new(ran)))
    }

    fn has_room(&self, name: &str) -> Result<(), Problem> {
        match lock(&self.all).iter().filter(|ran| !ran.is_left).count() < SCRIPTS_MAX {
            true => Ok(()),
            false => Err(Problem::new("too many scripts", name, "load the page again")),
        }
    }

    /// Removes the scripts of a closed page: those that follow the recording are stopped, and their
    /// results are dropped. Their numbers are not reused.
    pub fn leave(&self, ids: &[u32]) {
        let mut all = lock(&self.all);
        for id in ids {
            let Some(ran) = all.get_mut(*id as usize) else { continue };
            if let Some(found) = ran.found.as_ref().filter(|found| found.is_at_work()) {
                found.end();
            }
            *ran = Arc::new(Ran::left_by_its_page(&ran.name));
        }
    }

    fn push(&self, ran: &Arc<Ran>) -> u32 {
        let mut all = lock(&self.all);
        all.push(Arc::clone(ran));
        all.len() as u32 - 1
    }
}

fn problem(error: &ScriptError) -> Problem {
    let number = |number: Option<u32>| number.unwrap_or(1);
    let place = format!("{}:{}", number(error.line), number(error.column));
    Problem::new(error.message.clone(), place, "")
}

fn how(script: &Script) -> String {
    let mut all = script.parts().into_iter().map(|part| part.how.to_string());
    all.find(|how| *how != "compiled").unwrap_or_else(|| "compiled".into())
}

/// Runs a script in a live session: filters run at requests, and activities are found as events arrive.
fn run_growing(
    session: &Session,
    (name, text): (&str, &str),
    often: (&Wake, u64),
    newest: &Arc<Newest>,
    watch: &Watch,
) -> Result<Ran, Problem> {
    let mut script = load(name, text)?;
    let meta = session.lanes.meta();
    let (begin, end) = (meta.origin.saturating_add_unsigned(meta.begin), end_of(session));
    let mut kept = None;
    if script.has_filters() {
        let mut seen = Vec::new();
        over(session, (begin, end), &mut script, &mut seen, &mut None, watch)?;
        kept = Some(Kept { lanes: Vec::new(), until: begin }.after(session, seen, end));
    }
    let found = match script.has_activities() {
        true => Some(Follower::start(session, (name, text), often, newest)?),
        false => None,
    };
    Ok(Ran {
        name: name.to_owned(),
        text: text.to_owned(),
        count: kept.as_ref().map_or(0, Kept::count) as u64,
        kept: Mutex::new(kept.map(Arc::new)),
        found,
        left: Mutex::default(),
        how: how(&script),
        is_left: false,
    })
}

fn run(session: &Session, name: &str, text: &str, watch: &Watch) -> Result<Ran, Problem> {
    let mut script = load(name, text)?;
    let has_activities = script.has_activities();
    let mut finding = has_activities.then(|| Finding {
        activities: Activities::new(&script),
        found: Vec::new(),
        places: found::Lasts::default(),
    });
    let mut seen: Vec<Vec<(i64, bool)>> = Vec::new();
    let meta = session.lanes.meta();
    let (begin, end) = (meta.origin.saturating_add_unsigned(meta.begin), end_of(session));
    over(session, (begin, end), &mut script, &mut seen, &mut finding, watch)?;
    let nothing = Kept { lanes: Vec::new(), until: begin };
    let kept = script.has_filters().then(|| nothing.after(session, seen, end));
    let names: Vec<String> = script.activity_names().map(str::to_owned).collect();
    let found = finding.map(|Finding { found, .. }| {
        let places = Places::new(&session.lanes);
        let tell = |activity: &lateralis_script::Activity| Told {
            key: found::key(&activity.key),
            thread: places.thread(&activity.begin),
        };
        let (count, told) = (found.len() as u64, found.iter().map(tell).collect());
        let lanes = found::rows(session, &places, names, found)?;
        let (rest, until, serial) = (Rest::Whole(told), meta.end, (0, 0));
        let found = Found { lanes, rest, count, until, serial, done: 0, stopped: None };
        Ok(Follower::ended(found))
    });
    Ok(Ran {
        name: name.to_owned(),
        text: text.to_owned(),
        count: kept.as_ref().map_or(0, Kept::count) as u64,
        kept: Mutex::new(kept.map(Arc::new)),
        found: found.transpose()?,
        left: Mutex::default(),
        how: how(&script),
        is_left: false,
    })
}
