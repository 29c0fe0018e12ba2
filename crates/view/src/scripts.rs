// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts of the page: what their filters keep, and the activities they find.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use foldhash::fast::RandomState;
use lateralis_analysis::filter::Context;
use lateralis_lanes::{
    Builder, Interval, LaneKind, Lanes, Meta, NONE, PointRef, RankedBits, RowKind, Shared,
};
use lateralis_model::{Event, Source as _};
use lateralis_script::{Activities, Activity, End, Limits, Script, ScriptError};
use lateralis_store::facts::{At, Facts};

use crate::answer::Problem;
use crate::session::{Session, Source, lock};

/// Scripts of a session.
const SCRIPTS_MAX: usize = 256;
/// Activities that one may find.
const FOUND_MAX: usize = 4_000_000;

/// What the filters of a script keep.
pub struct Kept {
    lanes: Vec<RankedBits>,
}

impl Kept {
    /// Whether an event is kept.
    #[must_use]
    pub fn has(&self, point: PointRef) -> bool {
        self.lanes.get(point.lane as usize).is_some_and(|bits| bits.get(point.index as usize))
    }
}

/// A script that has run.
pub struct Ran {
    /// As the page calls it.
    pub name: String,
    /// What its filters keep, if it has any.
    pub kept: Option<Kept>,
    /// Its activities on rows of their own, if it has any; lanes are those of the session.
    pub found: Option<Lanes>,
    /// What tells activities apart, in the order of [`Interval::from`]'s index.
    pub keys: Vec<String>,
    /// How it ran.
    pub how: String,
    /// Events kept, or activities found.
    pub count: u64,
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

fn run(session: &Session, name: &str, text: &str) -> Result<Ran, Problem> {
    let mut script =
        Script::load(name, text, Limits::default()).map_err(|error| problem(&error))?;
    let source = session.source()?;
    let places = Places::new(&session.lanes);
    let mut facts = Facts::new(&source.trace, &source.recording.streams);
    let context = Context { names: &source.names, streams: &source.recording.streams };
    let mut activities = Activities::new(&script);
    let mut seen: Vec<Vec<(i64, bool)>> = vec![Vec::new(); session.lanes.count() as usize];
    let mut found: Vec<Activity> = Vec::new();
    let has_filters = script.has_filters();
    let has_activities = script.has_activities();
    let mut events = source.recording.source.events();
    while let Some(event) = events.next_event() {
        let at = facts.at(&event);
        facts.of(&event, |_, _| {});
        if !source.classes.contains_key(&event.class.name) {
            continue;
        }
        let is_kept = !has_filters || script.keeps(&event, &context).map_err(|e| problem(&e))?;
        if has_filters && let Some(lane) = places.of(&event, &at, &source) {
            seen[lane as usize].push((event.time.0, is_kept));
        }
        if has_activities && is_kept {
            let end = End { time: at.time, writer: at.writer, cpu: at.cpu };
            let mut see = |activity| found.push(activity);
            let took = activities.event(&mut script, &event, end, &context, &mut see);
            took.map_err(|error| problem(&error))?;
        }
        if found.len() > FOUND_MAX {
            let advice = "have it find fewer, or filter first";
            return Err(Problem::new("more than 4 million activities", name, advice));
        }
    }
    let how: Vec<String> = script.parts().iter().map(|part| part.how.to_string()).collect();
    let how = how.iter().find(|how| *how != "compiled").cloned();
    let kept = has_filters.then(|| Kept { lanes: seen.into_iter().map(bits).collect() });
    let kept_count = || kept.as_ref().map_or(0, |k| k.lanes.iter().map(RankedBits::count).sum());
    let count = if has_activities { found.len() } else { kept_count() };
    let keys = found.iter().map(key).collect();
    let names: Vec<String> = script.activity_names().map(str::to_owned).collect();
    let rows = || rows(session, &places, names, found);
    Ok(Ran {
        name: name.to_owned(),
        found: if has_activities { Some(rows()?) } else { None },
        kept,
        keys,
        how: how.unwrap_or_else(|| "compiled".into()),
        count: count as u64,
    })
}

/// A lane's events are by time; those of one time as they came.
fn bits(mut seen: Vec<(i64, bool)>) -> RankedBits {
    if !seen.is_sorted_by_key(|(time, _)| *time) {
        seen.sort_by_key(|(time, _)| *time);
    }
    seen.into_iter().map(|(_, is_kept)| is_kept).collect()
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
    let thread_of = |end: &End| {
        let writer = end.writer?;
        places.threads.get(&(writer.pid, writer.tid)).copied()
    };
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
            thread: thread_of(&activity.begin).unwrap_or(NONE),
            // No event, but which of the keys is its own.
            from: Some(PointRef { lane: 0, index }),
            to: None,
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
