// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts of the page: what their filters keep, and the activities they find.

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

/// Scripts of a session.
const SCRIPTS_MAX: usize = 256;
/// Those of them that follow a session that grows, each on a thread of its own.
const FOLLOWING_MAX: usize = 16;
/// What filters leave of rows of a script, of which is remembered which it is.
const LEFT_MAX: usize = 64;

/// What is left of a row.
struct LeftOf {
    filter: u64,
    row: usize,
    /// Of what was found by then.
    serial: (u64, u64),
    left: Arc<Left>,
}

/// A script that has run.
pub struct Ran {
    /// As the page calls it.
    pub name: String,
    /// To go on where the session grows.
    text: String,
    /// What its filters keep, if it has any.
    kept: Mutex<Option<Arc<Kept>>>,
    /// Its activities, if it has any; where the session grows, who looks for more.
    found: Option<Arc<Follower>>,
    left: Mutex<Vec<LeftOf>>,
    /// How it ran.
    pub how: String,
    /// Events kept when it ran.
    count: u64,
    /// Its page has gone: it holds nothing any more.
    is_left: bool,
}

impl Ran {
    /// The place of a script whose page has gone.
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

    /// What its filters keep, if it has any.
    #[must_use]
    pub fn kept(&self) -> Option<Arc<Kept>> {
        lock(&self.kept).clone()
    }

    /// Its activities by now, if it has any.
    #[must_use]
    pub fn found(&self) -> Option<Arc<Found>> {
        self.found.as_ref()?.found()
    }

    /// Activities found by now, or events that were kept when it ran.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.found().map_or(self.count, |found| found.count)
    }

    /// What a filter leaves of a row ([`Found::is_left`]). `None`: all.
    ///
    /// Cost: a look at each activity, once for each filter.
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
        // Of events that came behind this state of the session the filter does not know yet.
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

    /// Has its filters look at what has come since they did, in a session that grows.
    ///
    /// # Errors
    /// What the script has to say; the recording cannot be read.
    pub fn catch_up(&self, session: &Session) -> Result<(), Problem> {
        if session.growth.is_none() {
            return Ok(());
        }
        // One at a time: the next finds it done.
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

/// All scripts, in the order in which they came.
#[derive(Default)]
pub struct Scripts {
    all: Mutex<Vec<Arc<Ran>>>,
    /// The newest state of a session that grows.
    newest: Arc<Newest>,
    /// Tells pages that more was found than when they were told of that state.
    wake: Wake,
    /// Events that one which is behind looks at until it tells what it found, if that is not by time
    /// alone.
    turn_events: Option<u64>,
}

impl Scripts {
    /// With somebody who tells pages that there is something new; who is behind tells what it found
    /// after so many events at least.
    #[must_use]
    pub fn waking(tell: Arc<dyn Fn() + Send + Sync>, turn_events: Option<u64>) -> Self {
        Self { wake: Wake::telling(tell), turn_events, ..Self::default() }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Ran>> {
        lock(&self.all).clone()
    }

    /// One.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, id: u32) -> Result<Arc<Ran>, Problem> {
        let all = lock(&self.all);
        let none = || Problem::new("no such script", id.to_string(), "send it with `script` first");
        all.get(id as usize).cloned().ok_or_else(none)
    }

    /// Changes whenever activities stand on rows that nobody was told of.
    #[must_use]
    pub fn lists(&self) -> u64 {
        self.wake.count()
    }

    /// The session has grown: those that look for activities go on, each by itself.
    pub fn follow(&self, session: &Session) {
        let Some(state) = State::of(session).map(Arc::new) else { return };
        self.newest.set(&state);
        for ran in lock(&self.all).iter() {
            if let Some(found) = &ran.found {
                found.go_on(&state);
            }
        }
    }

    /// Whether all have found what there is in a state of a session, or were stopped.
    #[must_use]
    pub fn are_done(&self, session: &Session) -> bool {
        let is_done = |found: Arc<Found>| found.stopped.is_some() || found.done >= session.serial();
        self.all().iter().all(|ran| ran.found().is_none_or(is_done))
    }

    /// Runs a script over all events: its number. Where the session grows, it goes on to find
    /// activities, instead of one that it replaces.
    ///
    /// Cost: compiled filters some 100 ns an event; others some microseconds.
    ///
    /// # Errors
    /// What is wrong with it, at the line and column; `watch` was ended.
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
        // What came while it ran for the first time.
        if let (Some(found), Some(newest)) = (&ran.found, self.newest.get()) {
            found.go_on(&newest);
        }
        Ok(id)
    }

    /// The same of a session that does not grow, watched.
    ///
    /// # Errors
    /// What is wrong with it; nobody wants it any more.
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

    /// The page that ran these has gone: those that follow the recording end, and what they found is
    /// given back. Their numbers are not given to others.
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

/// Where a session grows: filters look when somebody asks, activities are found as events come.
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
