// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A script at work on what comes, round by round.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::RandomState;
use lateralis_analysis::filter::Context;
use lateralis_lanes::{Gathers, Growing, Meta};
use lateralis_model::{Names, Source as _};
use lateralis_script::{Activities, End, Script};
use lateralis_store::facts::Facts;
use lateralis_store::{Recording, Tail};

use super::following::State;
use super::found::{Found, Lasts, Rest, Telling};
use super::places::Places;
use super::steps::{Begun, Round, bytes};
use super::{load, problem};
use crate::answer::Problem;
use crate::session::lock;

/// A script at work.
pub struct Following {
    script: Script,
    names_of_kinds: Vec<String>,
    activities: Activities,
    tail: Tail,
    facts: Facts,
    classes: usize,
    pub growing: Growing,
    places: Places,
    /// What lanes and lists `places` and `known` are of.
    lists: Option<(u64, usize)>,
    known: HashSet<String, RandomState>,
    lasts: Lasts,
    /// By the number of its beginning.
    begun: HashMap<u64, Begun, RandomState>,
    telling: Telling,
    /// How many were told of when it was looked last which are forgotten, and their bytes.
    told: (usize, usize),
    next: u32,
    /// Nothing before it is looked at.
    begin: i64,
    until: u64,
    pub serial: u64,
    looks: u64,
    pub count: u64,
}

impl Following {
    /// With nothing looked at.
    pub fn new(
        name: &str,
        text: &str,
        tail: Tail,
        begin: i64,
        state: &State,
    ) -> Result<Self, Problem> {
        let script = load(name, text)?;
        Ok(Self {
            names_of_kinds: script.activity_names().map(str::to_owned).collect(),
            activities: Activities::new(&script),
            script,
            tail,
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
            begin,
            until: 0,
            serial: 0,
            looks: 0,
            count: 0,
        })
    }

    /// Looks at what has come, up to a state.
    ///
    /// Cost: by what has come; and by lanes and threads, where there are new ones.
    pub fn look(&mut self, state: &State, is_over: &AtomicBool) -> Result<(), Problem> {
        let meta = state.lanes.meta();
        if self.looks > 0 && meta.begin > self.until {
            let what = "it is slower than what comes: events were forgotten before it saw them";
            return Err(Problem::new(what, "script", "have it look at fewer events"));
        }
        let recording = self.tail.open().map_err(|error| {
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
        let begin = self.begin;
        let mut seen = 0u32;
        tail.read_to(&recording, &state.shown, &mut |event, _| {
            let at = facts.at(event);
            facts.of(event, |_, _| {});
            seen = seen.wrapping_add(1);
            // Partner: the store of `end`. It is only about not to work in vain.
            if seen.is_multiple_of(256) && is_over.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            if at.time.0 < begin || !known.contains(&event.class.name) {
                return ControlFlow::Continue(());
            }
            let lane = places.of(event, &at, &recording.streams);
            let tag = lasts.tag(lane, at.time.0);
            let end = End { time: at.time, writer: at.writer, cpu: at.cpu, tag };
            let kept = if has_filters { script.keeps(event, &context) } else { Ok(true) };
            let done = kept.and_then(|is_kept| match is_kept {
                true => activities.steps(script, event, end, &context, &mut |s| found.step(s)),
                false => Ok(()),
            });
            result = done.map_err(|error| problem(&error)).and_then(|()| found.bound());
            if result.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.looks += 1;
        self.serial = state.serial;
        if result.is_ok() {
            self.until = meta.end;
        }
        self.forget(meta.begin);
        result
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

    /// Forgets what the session has.
    fn forget(&mut self, begin: u64) {
        if begin > self.growing.begin() {
            self.growing.forget(begin);
        }
        let mut all = lock(&self.telling);
        // As often as there are twice as many: each is looked at twice on average.
        if all.len() > 2 * self.told.0 + 1024 {
            all.retain(|_, (end, _)| *end > begin);
            self.told.1 = all.values().map(|(_, told)| bytes(told)).sum();
            self.told.0 = all.len();
        }
    }

    /// Nothing comes any more: what has not ended was none.
    pub fn close(&mut self) {
        for (_, Begun { opened, .. }) in self.begun.drain() {
            if let Some(opened) = opened {
                self.growing.ends(opened, None);
            }
        }
    }

    /// All of it by now.
    pub fn found(&mut self, state: &State, stopped: Option<Problem>) -> Found {
        if !state.is_live {
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
            serial: (state.serial, self.looks),
            stopped,
        }
    }
}

/// Names as the index of a session has them.
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
