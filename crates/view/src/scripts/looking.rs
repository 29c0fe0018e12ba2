// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evaluation of a script on a live session, in turns.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use foldhash::fast::RandomState;
use lateralis_analysis::filter::Context;
use lateralis_lanes::{Gathers, Growing, Meta};
use lateralis_model::{Names, Source as _};
use lateralis_script::{Activities, End, Script};
use lateralis_store::facts::Facts;
use lateralis_store::{Recording, Tail};

use super::following::{Newest, State, Turn};
use super::found::{Found, Lasts, Rest, Telling};
use super::places::Places;
use super::steps::{Begun, Round, bytes};
use super::{load, problem};
use crate::answer::Problem;
use crate::session::lock;

/// A running script.
pub struct Following {
    script: Script,
    names_of_kinds: Vec<String>,
    activities: Activities,
    tail: Tail,
    facts: Facts,
    classes: usize,
    pub growing: Growing,
    places: Places,
    /// Version of the lists, and number of lanes, for which `places` and `known` were built.
    lists: Option<(u64, usize)>,
    known: HashSet<String, RandomState>,
    lasts: Lasts,
    /// Open activities, by number.
    begun: HashMap<u64, Begun, RandomState>,
    telling: Telling,
    /// Number of attributes, and their bytes, after evicted ones were removed last.
    told: (usize, usize),
    next: u32,
    /// Events before this time are ignored.
    begin: i64,
    /// Time up to which all events were examined, relative to the origin.
    until: u64,
    /// The last snapshot that was examined completely; 0 if none.
    pub serial: u64,
    /// The newest snapshot that was examined at least partly.
    begun_serial: u64,
    looks: u64,
    /// Number of examined events, and of events that were evicted before the script started.
    looked: u64,
    forgotten: u64,
    /// Whether the script was stopped because events were evicted before it examined them.
    pub is_overtaken: bool,
    pub count: u64,
}

impl Following {
    /// Creates a script that has not examined any event.
    pub fn new(name: &str, text: &str, path: &Path, state: &State) -> Result<Self, Problem> {
        let script = load(name, text)?;
        Ok(Self {
            names_of_kinds: script.activity_names().map(str::to_owned).collect(),
            activities: Activities::new(&script),
            script,
            tail: state.tail(path),
            facts: Facts::default(),
            classes: 0,
            growing: Growing::new(state.lanes.meta().origin),
            places: Places::new(&state.lanes),
            lists: None,
            known: HashSet::default(),
            lasts: Lasts::default(),
            begun: HashMap::default(),
            telling: Telling::default(),
            told: (0, 0),
            next: 0,
            begin: state.begin(),
            until: state.lanes.meta().begin,
            serial: 0,
            begun_serial: 0,
            looks: 0,
            looked: 0,
            forgotten: state.forgotten,
            is_overtaken: false,
            count: 0,
        })
    }

    /// Checks that no event of a snapshot was evicted before the script examined it.
    ///
    /// # Errors
    /// If events were missed.
    fn check_in_time(&mut self, state: &State) -> Result<(), Problem> {
        let missed = match state.lanes.meta().begin > self.until {
            // All examined events are among the evicted ones.
            true => state.forgotten.saturating_sub(self.forgotten + self.looked),
            false => return Ok(()),
        };
        if missed == 0 {
            return Ok(());
        }
        self.is_overtaken = true;
        let what = format!(
            "it is slower than what comes: {missed} events were forgotten before it saw them"
        );
        Err(Problem::new(what, "script", "have it look at fewer events"))
    }

    /// Examines new events up to a snapshot, for one turn.
    ///
    /// Cost: proportional to the new events; if lanes or threads are new, also to the number of
    /// lanes and threads.
    ///
    /// # Errors
    /// If the script was stopped, or the recording cannot be read.
    pub fn look(
        &mut self,
        state: &State,
        newest: &Newest,
        mut turn: Turn<'_>,
    ) -> Result<(), Problem> {
        let meta = state.lanes.meta();
        self.begun_serial = state.serial;
        // Events of the first snapshot are examined to the end, as long as the recording still
        // contains them.
        if self.serial > 0 {
            self.check_in_time(state)?;
        }
        let opened = self.tail.open();
        if let Some(newest) = newest.beyond(self.until) {
            self.check_in_time(&newest)?;
        }
        let recording = opened.map_err(|error| {
            Problem::new("cannot read the recording", error.to_string(), "open it again")
        })?;
        self.learn(&recording, state);
        let names = names_of(&recording, meta);
        let Self { script, activities, facts, places, known, lasts, tail, .. } = self;
        let context = Context { names: &names, streams: &recording.streams };
        let mut found = Round {
            growing: &mut self.growing,
            begun: &mut self.begun,
            telling: &self.telling,
            next: &mut self.next,
            count: &mut self.count,
            bytes: &mut self.told.1,
            names: &self.names_of_kinds,
            places,
            lanes: &state.lanes,
        };
        let mut result = Ok(());
        let has_filters = script.has_filters();
        let (begin, is_first, looked) = (self.begin, self.serial == 0, &mut self.looked);
        let (forgotten, until) = (self.forgotten, &mut self.until);
        let (mut broke_off, mut is_late) = (false, false);
        turn.begin();
        tail.read_to(&recording, &state.shown, &mut |event, _| {
            // Bytes of events between the previous event and this one may have been released.
            if let Some(newest) = newest.beyond(*until) {
                is_late = newest.forgotten > forgotten + *looked;
                if is_late {
                    return ControlFlow::Break(());
                }
            }
            let at = facts.at(event);
            facts.of(event, |_, _| {});
            let is_known = known.contains(&event.class.name);
            // Events out of order may have a time before the begin of the script.
            *looked += u64::from(is_known && (at.time.0 >= begin || !is_first));
            if is_known && at.time.0 >= begin {
                let lane = places.of(event, &at, &recording.streams);
                let tag = lasts.tag(lane, at.time.0);
                let end = End { time: at.time, writer: at.writer, cpu: at.cpu, tag };
                let kept = if has_filters { script.keeps(event, &context) } else { Ok(true) };
                let done = kept.and_then(|is_kept| match is_kept {
                    true => activities.steps(script, event, end, &context, &mut |s| found.step(s)),
                    false => Ok(()),
                });
                result = done.map_err(|error| problem(&error)).and_then(|()| found.bound());
            }
            let since = i128::from(at.time.0) - i128::from(meta.origin);
            *until = u64::try_from(since).unwrap_or(0).min(meta.end).max(*until);
            broke_off = result.is_err() || turn.ends();
            if broke_off { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.looks += 1;
        // Bytes of events after the last one may have been released as well.
        if let Some(newest) = newest.beyond(self.until) {
            result = result.and_then(|()| self.check_in_time(&newest));
        }
        // Otherwise not all events were examined: more events with the same time may follow.
        if !broke_off && !is_late && !self.is_overtaken {
            self.until = meta.end;
            self.serial = state.serial;
        }
        self.forget(meta.begin);
        result
    }

    /// Changes whenever the description of its rows changes.
    pub fn lists(&self) -> u64 {
        self.growing.row_count() as u64 + self.growing.left_out()
    }

    fn learn(&mut self, recording: &Recording, state: &State) {
        let trace = recording.source.trace();
        let classes = trace.stream_classes.iter().map(|of| 1 + of.event_classes.len()).sum();
        if classes != self.classes {
            self.classes = classes;
            self.facts.learn(&recording.annotated(), &recording.streams);
        }
        self.facts.set_streams(&recording.streams);
        let meta = state.lanes.meta();
        let lists = (state.lists, meta.lanes.len());
        if self.lists == Some(lists) {
            return;
        }
        self.lists = Some(lists);
        self.places = Places::new(&state.lanes);
        self.known = meta.classes.iter().map(|class| class.name.clone()).collect();
        for lane in meta.lanes.iter().skip(self.growing.lane_count() as usize) {
            self.growing.lane(lane.clone());
        }
    }

    /// Evicts what the session has evicted.
    fn forget(&mut self, begin: u64) {
        if begin > self.growing.begin() {
            self.growing.forget(begin);
        }
        let mut all = lock(&self.telling);
        // Only when the number has doubled, so that each entry is examined twice on average.
        if all.len() > 2 * self.told.0 + 1024 {
            all.retain(|_, (end, _)| *end > begin);
            self.told.1 = all.values().map(|(_, told)| bytes(told)).sum();
            self.told.0 = all.len();
        }
    }

    /// Drops open activities: no more events arrive that could end them.
    fn close(&mut self) {
        for (_, Begun { opened, .. }) in self.begun.drain() {
            if let Some(opened) = opened {
                self.growing.ends(opened, None);
            }
        }
    }

    /// The current results.
    pub fn found(&mut self, state: &State, stopped: Option<Problem>) -> Found {
        if stopped.is_some() || !state.is_live && self.serial >= state.serial {
            self.close();
        }
        let names = self.names_of_kinds.clone();
        let last = self.until.saturating_sub(1);
        self.growing.reaches(self.growing.origin().saturating_add_unsigned(last));
        Found {
            lanes: self.growing.lanes(Meta { names, ..Meta::default() }),
            rest: Rest::Growing(Arc::clone(&self.telling)),
            count: self.count,
            until: self.until,
            serial: (self.begun_serial, self.looks),
            done: self.serial,
            stopped,
        }
    }
}

/// Names of threads and processes as in the index of the session.
fn names_of(recording: &Recording, meta: &Meta) -> Names {
    let mut names = recording.names.clone();
    for thread in &meta.threads {
        if let Some(tid) = thread.tid.filter(|_| !thread.name.is_empty()) {
            names.threads.entry(tid).or_insert_with(|| thread.name.clone());
        }
    }
    for application in &meta.applications {
        if let Some(pid) = application.pid {
            names.processes.entry(pid).or_insert_with(|| application.name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use lateralis_lanes::{Gathers, Growing, Lane, LaneKind, Meta};
    use lateralis_store::Shown;

    use super::{Following, Newest, State};
    use crate::scripts::following::turn_of_one;

    /// A snapshot of a session with one event per nanosecond.
    fn state(growing: &Growing, serial: u64) -> State {
        State {
            lanes: Arc::new(growing.lanes(Meta::default())),
            serial,
            lists: 0,
            is_live: true,
            shown: Shown::default(),
            forgotten: growing.forgotten(),
            is_let_go: true,
            marks: Arc::default(),
            clock: None,
        }
    }

    #[test]
    fn events_that_were_forgotten_before_a_script_saw_them_are_counted_and_it_says_so() {
        let mut growing = Growing::new(0);
        let lane = growing.lane(Lane { kind: LaneKind::Cpu, ..Lane::default() });
        for time in 0..100 {
            let _ = growing.point(lane, time, 0, 0);
        }
        growing.forget(10);
        let first = state(&growing, 1);
        let nowhere = Path::new("/nowhere");
        let text = r#"activity("a").begin("b").end("c");"#;
        let mut following = Following::new("a", text, nowhere, &first).unwrap();
        // It has examined events from 10 on, and some of the newer ones.
        (following.serial, following.until, following.looked) = (1, 50, 40);
        growing.forget(50);
        assert!(following.check_in_time(&state(&growing, 2)).is_ok(), "all were seen");
        growing.forget(73);
        let state = state(&growing, 3);
        let newest = Newest::default();
        let stopped = following.look(&state, &newest, turn_of_one()).expect_err("stopped");
        assert!(stopped.what.contains("23 events were forgotten"), "{stopped:?}");
        // The row is incomplete from there on, not from the current time on.
        assert_eq!(following.found(&state, Some(stopped)).until, 50);
    }
}
