// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts of the page: what their filters keep, and the activities they find.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use foldhash::fast::RandomState;
use lateralis_analysis::filter::Context;
use lateralis_lanes::{
    Builder, Chosen, Interval, Intervals, LaneKind, Lanes, Left, Meta, NONE, PointRef, RankedBits,
    RowKind, Shared,
};
use lateralis_model::{Event, Source as _};
use lateralis_script::{Activities, Activity, End, Limits, Script, ScriptError};
use lateralis_store::facts::{At, Facts};
use lateralis_units::Nanos;

use crate::answer::Problem;
use crate::packets;
use crate::session::{Session, Source, lock};

/// Scripts of a session.
const SCRIPTS_MAX: usize = 256;
/// Activities that one may find.
const FOUND_MAX: usize = 4_000_000;
/// What filters leave of rows of a script, of which is remembered which it is.
const LEFT_MAX: usize = 64;
/// The tag of an event that stands on no lane.
const NOWHERE: u64 = u64::MAX;

/// What the filters of a script keep.
pub struct Kept {
    /// By lane: events before the first, and of each that follows whether it is kept.
    lanes: Vec<(u64, RankedBits)>,
    /// Up to when it has looked at all events.
    until: i64,
}

impl Kept {
    /// Whether an event is kept: by its lane and its number there, those forgotten included.
    #[must_use]
    pub fn has(&self, lane: u32, number: u64) -> bool {
        self.lanes.get(lane as usize).is_some_and(|(before, bits)| {
            let index = number.checked_sub(*before).and_then(|index| usize::try_from(index).ok());
            index.is_some_and(|index| bits.get(index))
        })
    }

    fn count(&self) -> usize {
        self.lanes.iter().map(|(_, bits)| bits.count()).sum()
    }

    /// The same with what was seen behind it, as far as the session has grown.
    fn after(&self, session: &Session, seen: Vec<Vec<(i64, bool)>>, until: i64) -> Self {
        let lanes = (0u32..).zip(seen).map(|(lane, mut seen)| {
            if !seen.is_sorted_by_key(|(time, _)| *time) {
                // Those of one time as they came.
                seen.sort_by_key(|(time, _)| *time);
            }
            let nothing = (0, RankedBits::default());
            let known = self.lanes.get(lane as usize).unwrap_or(&nothing);
            let Some(points) = session.lanes.points(lane) else { return known.clone() };
            let forgotten = points.forgotten();
            let is_new = known.1.is_empty();
            let before = if is_new { forgotten } else { known.0 };
            let forgets = usize::try_from(forgotten.saturating_sub(before)).unwrap_or(usize::MAX);
            let left = known.1.len().saturating_sub(forgets);
            // What was read again may begin earlier than what is remembered.
            let wanted = points.len().saturating_sub(left);
            let missing = wanted.saturating_sub(seen.len());
            let fresh = seen[seen.len().saturating_sub(wanted)..].iter().map(|(_, is)| *is);
            let more = std::iter::repeat_n(false, missing).chain(fresh);
            (forgotten, known.1.after(forgotten, forgets, more))
        });
        Self { lanes: lanes.collect(), until }
    }
}

/// What is left of a row, by the number of a filter and of the row.
type LeftOf = ((u64, usize), Arc<Left>);

/// What a row does not say of an activity.
struct Told {
    /// What tells it apart.
    key: String,
    thread: u32,
}

/// A script that has run.
pub struct Ran {
    /// As the page calls it.
    pub name: String,
    /// To go on where the session grows.
    text: String,
    /// What its filters keep, if it has any.
    kept: Mutex<Option<Arc<Kept>>>,
    /// Its activities on rows of their own, if it has any; lanes are those of the session. Events are
    /// counted with those forgotten.
    pub found: Option<Lanes>,
    /// More of each activity, in the order of [`Interval::thread`].
    told: Vec<Told>,
    /// By filter and row what is left of it.
    left: Mutex<Vec<LeftOf>>,
    /// Up to when activities were looked for, since the origin.
    pub until: u64,
    /// How it ran.
    pub how: String,
    /// Events kept, or activities found.
    pub count: u64,
}

impl Ran {
    /// What its filters keep, if it has any.
    #[must_use]
    pub fn kept(&self) -> Option<Arc<Kept>> {
        lock(&self.kept).clone()
    }

    /// Up to when its activities are known, if the session has more by now: they are those of when it
    /// ran.
    #[must_use]
    pub fn behind(&self, session: &Session) -> Option<u64> {
        let is_behind = session.growth.is_some() && self.until < session.lanes.meta().end;
        (self.found.is_some() && is_behind).then_some(self.until)
    }

    /// What tells an activity apart, where its script says so.
    #[must_use]
    pub fn key(&self, row: &Intervals, index: usize) -> Option<&str> {
        let told = self.told.get(row.thread(index) as usize)?;
        (!told.key.is_empty()).then_some(told.key.as_str())
    }

    /// The thread of an activity.
    #[must_use]
    pub fn thread(&self, row: &Intervals, index: usize) -> u32 {
        self.told.get(row.thread(index) as usize).map_or(NONE, |told| told.thread)
    }

    /// What a filter leaves of a row: as of a declared span, both events count. `None`: all.
    ///
    /// Cost: a look at each activity, once for each filter.
    #[must_use]
    pub fn left(
        &self,
        session: &Session,
        (filter, chosen): (u64, Option<&Chosen>),
        row: usize,
    ) -> Option<Arc<Left>> {
        let chosen = chosen?;
        let intervals = self.found.as_ref()?.row(row)?.1;
        let known = |all: &[LeftOf]| {
            all.iter().find(|(of, _)| *of == (filter, row)).map(|(_, left)| Arc::clone(left))
        };
        if let Some(left) = known(&lock(&self.left)) {
            return Some(left);
        }
        let keeps = |index: usize| {
            intervals.events(index).into_iter().flatten().all(|point| {
                let forgotten = session.lanes.points(point.lane).map_or(0, |of| of.forgotten());
                // Modulo 2^32, as they are counted; of what is forgotten nobody knows any more.
                let index = point.index.wrapping_sub(forgotten as u32);
                (index as i32) < 0 || chosen.has(PointRef { index, ..point })
            })
        };
        let left = Arc::new(intervals.left(keeps));
        let mut all = lock(&self.left);
        if all.len() >= LEFT_MAX {
            all.remove(0);
        }
        all.push(((filter, row), Arc::clone(&left)));
        Some(left)
    }

    /// Looks at what has come since it ran, in a session that grows. Activities are those of when it
    /// ran: whoever wants newer ones runs it again.
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
        over(session, stretch, &mut script, &mut seen, &mut None)?;
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
}

impl Scripts {
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

    /// Runs a script over all events: its number.
    ///
    /// Cost: compiled filters some 100 ns an event; others some microseconds.
    ///
    /// # Errors
    /// What is wrong with it, at the line and column.
    pub fn add(&self, session: &Session, name: &str, text: &str) -> Result<u32, Problem> {
        if lock(&self.all).len() >= SCRIPTS_MAX {
            return Err(Problem::new("too many scripts", name, "load the page again"));
        }
        let ran = Arc::new(run(session, name, text)?);
        let mut all = lock(&self.all);
        all.push(ran);
        Ok(all.len() as u32 - 1)
    }
}

fn problem(error: &ScriptError) -> Problem {
    let number = |number: Option<u32>| number.unwrap_or(1);
    let place = format!("{}:{}", number(error.line), number(error.column));
    Problem::new(error.message.clone(), place, "")
}

/// Activities, and who finds them.
struct Finding {
    activities: Activities,
    found: Vec<Activity>,
    places: Vec<Last>,
}

/// The last event of a lane, and how many of its time were before it.
#[derive(Clone, Default)]
struct Last {
    time: Option<i64>,
    before: u32,
}

impl Finding {
    /// Knows an event by its lane and the place among those of its time.
    fn tag(&mut self, lane: Option<u32>, time: i64) -> u64 {
        let Some((lane, last)) = lane.and_then(|id| Some((id, self.places.get_mut(id as usize)?)))
        else {
            return NOWHERE;
        };
        let before = if last.time == Some(time) { last.before + 1 } else { 0 };
        *last = Last { time: Some(time), before };
        u64::from(lane) << 32 | u64::from(before)
    }
}

/// The event of a tag, counted with those forgotten; `None` where it does not stand in its lane as it
/// was told.
fn point(session: &Session, end: &End) -> Option<PointRef> {
    let (lane, before) = ((end.tag >> 32) as u32, end.tag as u32);
    let points = session.lanes.points(lane).filter(|_| end.tag != NOWHERE)?;
    let since = i128::from(end.time.0) - i128::from(session.lanes.meta().origin);
    let since = i64::try_from(since).ok()?;
    let index = points.before(since) + before as usize;
    let is_it = index < points.len() && points.time(index) == since as u64;
    let number = (index as u64).wrapping_add(points.forgotten());
    is_it.then_some(PointRef { lane, index: number as u32 })
}

/// Runs a script over the events of a stretch, both ends included: of each lane what it keeps.
fn over(
    session: &Session,
    (begin, end): (i64, i64),
    script: &mut Script,
    seen: &mut Vec<Vec<(i64, bool)>>,
    finding: &mut Option<Finding>,
) -> Result<(), Problem> {
    let source = session.source_between(begin, end)?;
    let places = Places::new(&session.lanes);
    let mut facts = Facts::new(&source.trace, &source.recording.streams);
    let context = Context { names: &source.names, streams: &source.recording.streams };
    seen.resize(session.lanes.count() as usize, Vec::new());
    let has_filters = script.has_filters();
    let stretch = match session.growth {
        None => lateralis_model::Interval::default(),
        Some(_) => lateralis_model::Interval { begin: Some(Nanos(begin)), end: Some(Nanos(end)) },
    };
    let mut events = source.recording.source.events_in(stretch);
    while let Some(event) = events.next_event() {
        let at = facts.at(&event);
        facts.of(&event, |_, _| {});
        if !source.classes.contains_key(&event.class.name) {
            continue;
        }
        let is_kept = !has_filters || script.keeps(&event, &context).map_err(|e| problem(&e))?;
        let lane = places.of(&event, &at, &source);
        if let Some(lane) = lane.filter(|_| has_filters) {
            seen[lane as usize].push((event.time.0, is_kept));
        }
        // Those that are not kept have their places as well.
        let tag = finding.as_mut().map_or(NOWHERE, |finding| finding.tag(lane, at.time.0));
        if let Some(Finding { activities, found, .. }) = finding.as_mut().filter(|_| is_kept) {
            let end = End { time: at.time, writer: at.writer, cpu: at.cpu, tag };
            let mut see = |activity| found.push(activity);
            let took = activities.event(script, &event, end, &context, &mut see);
            took.map_err(|error| problem(&error))?;
            if found.len() > FOUND_MAX {
                let advice = "have it find fewer, or filter first";
                return Err(Problem::new("more than 4 million activities", "script", advice));
            }
        }
    }
    Ok(())
}

fn run(session: &Session, name: &str, text: &str) -> Result<Ran, Problem> {
    let mut script = load(name, text)?;
    let has_activities = script.has_activities();
    let mut finding = has_activities.then(|| Finding {
        activities: Activities::new(&script),
        found: Vec::new(),
        places: vec![Last::default(); session.lanes.count() as usize],
    });
    let mut seen: Vec<Vec<(i64, bool)>> = Vec::new();
    let meta = session.lanes.meta();
    let (begin, end) = (meta.origin.saturating_add_unsigned(meta.begin), end_of(session));
    over(session, (begin, end), &mut script, &mut seen, &mut finding)?;
    let how: Vec<String> = script.parts().iter().map(|part| part.how.to_string()).collect();
    let how = how.iter().find(|how| *how != "compiled").cloned();
    let nothing = Kept { lanes: Vec::new(), until: begin };
    let kept = script.has_filters().then(|| nothing.after(session, seen, end));
    let found = finding.map(|finding| finding.found);
    let count = match &found {
        Some(found) => found.len(),
        None => kept.as_ref().map_or(0, Kept::count),
    };
    let names: Vec<String> = script.activity_names().map(str::to_owned).collect();
    let places = Places::new(&session.lanes);
    let thread = |end: &End| {
        let writer = end.writer?;
        places.threads.get(&(writer.pid, writer.tid)).copied()
    };
    let tell = |activity: &Activity| Told {
        key: key(activity),
        thread: thread(&activity.begin).unwrap_or(NONE),
    };
    let told = found.iter().flatten().map(tell).collect();
    let found = found.map(|found| rows(session, &places, names, found)).transpose()?;
    Ok(Ran {
        name: name.to_owned(),
        text: text.to_owned(),
        kept: Mutex::new(kept.map(Arc::new)),
        found,
        told,
        left: Mutex::default(),
        until: meta.end,
        how: how.unwrap_or_else(|| "compiled".into()),
        count: count as u64,
    })
}

fn key(activity: &Activity) -> String {
    let parts: Vec<String> = activity.key.iter().map(ToString::to_string).collect();
    parts.join(" ")
}

/// Activities on rows of their own, below the processor that they began on, else their thread.
fn rows(
    session: &Session,
    places: &Places,
    names: Vec<String>,
    found: Vec<Activity>,
) -> Result<Lanes, Problem> {
    let meta = session.lanes.meta();
    let mut builder = Builder::default();
    for lane in &meta.lanes {
        builder.lane(lane.clone());
    }
    for (index, activity) in (0..).zip(found) {
        let lane =
            activity.begin.cpu.and_then(|cpu| places.cpus.get(&cpu).copied()).or_else(|| {
                let writer = activity.begin.writer?;
                places.lanes.get(&(writer.pid, writer.tid)).copied()
            });
        let Some(lane) = lane else { continue };
        let interval = Interval {
            begin: activity.begin.time.0,
            end: Some(activity.end.time.0),
            name: activity.kind as u32,
            // No thread, but where more is told of it.
            thread: index,
            from: point(session, &activity.begin),
            to: point(session, &activity.end),
            quality: 0,
        };
        builder.interval(
            lane,
            RowKind::Spans,
            names.get(activity.kind).map(String::as_str),
            interval,
        );
    }
    let meta = Meta { origin: meta.origin, end: meta.end, names, ..Meta::default() };
    let mut bytes = Vec::new();
    let fault = |what: String| Problem::new("cannot draw the activities", what, "");
    builder.finish(meta, "", &mut bytes).map_err(|error| fault(error.to_string()))?;
    let bytes: Shared = Arc::new(bytes);
    Lanes::open(bytes, "").map_err(|error| fault(error.to_string()))
}

/// Where events are, as the index has put them.
pub struct Places {
    cpus: HashMap<u32, u32, RandomState>,
    lanes: HashMap<(u32, u32), u32, RandomState>,
    threads: HashMap<(u32, u32), u32, RandomState>,
    streams: HashMap<String, u32, RandomState>,
    packets: HashMap<String, u32, RandomState>,
}

impl Places {
    /// Of a session.
    #[must_use]
    pub fn new(lanes: &Lanes) -> Self {
        let mut places = Self {
            cpus: HashMap::default(),
            lanes: HashMap::default(),
            threads: HashMap::default(),
            streams: HashMap::default(),
            packets: HashMap::default(),
        };
        for (id, lane) in (0..).zip(&lanes.meta().lanes) {
            match (lane.kind, lane.cpu, lane.pid.zip(lane.tid)) {
                (LaneKind::Cpu, Some(cpu), _) => {
                    places.cpus.insert(cpu, id);
                }
                (LaneKind::Thread, _, Some(thread)) => {
                    places.lanes.insert(thread, id);
                }
                (LaneKind::Component, ..) => {
                    places.streams.insert(lane.name.clone(), id);
                }
                (LaneKind::Packets, ..) => {
                    places.packets.insert(lane.name.clone(), id);
                }
                _ => {}
            }
        }
        for (id, thread) in (0..).zip(&lanes.meta().threads) {
            if let Some(thread) = thread.pid.zip(thread.tid) {
                places.threads.insert(thread, id);
            }
        }
        places
    }

    /// The lane of an event.
    #[must_use]
    pub fn of(&self, event: &Event<'_>, at: &At, source: &Source) -> Option<u32> {
        let packets = packets::lane_name(event).and_then(|name| self.packets.get(&name));
        if let Some(lane) = packets {
            return Some(*lane);
        }
        match (at.cpu, at.writer) {
            (Some(cpu), _) => self.cpus.get(&cpu).copied(),
            (None, Some(writer)) => self.lanes.get(&(writer.pid, writer.tid)).copied(),
            (None, None) => {
                let stream = source.recording.streams.get(event.stream.0 as usize)?;
                self.streams.get(&stream.name).copied()
            }
        }
    }
}
