// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Actions of a session when a condition fires.

use std::ffi::OsString;

use lateralis_pleco::schema::Event;
use lateralis_ring::RingKind;

use super::super::clocks;
use super::super::keep::{KeepNotice, Keeper};
use super::super::recording::Recording;
use super::super::rules::{Judged, Lag, MarkQueue, MarkSource, Rules, done};
use super::super::sources::LiveSource;
use super::{Recorded, Session};
use crate::action::Action;
use crate::classes::RegisteredSchema;
use crate::condition::{EventName, Firing};
use crate::error::Error;
use crate::options::{Progress, RecordOptions};
use crate::report::{Done, KeptReason, Outcome, UnrecordedCause};

/// Sets up conditions. Context: the recording has its clock.
pub(super) fn begin(
    recording: &mut Recording,
    options: &RecordOptions,
) -> Result<Option<(LiveSource, MarkQueue)>, Error> {
    if options.rules.is_empty() {
        return Ok(None);
    }
    let rules = Rules::new(options.rules.clone(), recording);
    if let Some(keep) = &options.keep {
        let keeper = Keeper::new(keep.clone(), recording, &rules)?;
        recording.keeper = Some(Box::new(keeper));
    }
    recording.rules = Some(Box::new(rules));
    let is_mark = |action: &Action| matches!(action, Action::Mark(_));
    if !options.rules.iter().any(|rule| rule.actions.iter().any(is_mark)) {
        return Ok(None);
    }
    let queue = MarkQueue::default();
    let source = Box::new(MarkSource::new(queue.clone()));
    let live = LiveSource::begin(recording, source, options.packet_bytes, false)
        .map_err(Error::Refused)?;
    Ok(Some((live, queue)))
}

impl Session {
    /// Evaluates the content of all rings at clock `now`, and executes actions. `None` without conditions.
    pub(super) fn judge(&mut self, now: u64, is_last: bool) -> Option<Judged> {
        let lost = self.progress(&Progress::default()).lost;
        let mut rules = self.recording.rules.take()?;
        // At the end all programs have ended or were released.
        if !is_last {
            rules.expect(now, &|name| !self.paused && self.is_present(name));
        }
        let lag = (!is_last).then(|| self.lag());
        let judged = rules.judge(&mut self.recording, (now, lost), lag);
        self.recording.rules = Some(rules);
        self.note_command();
        for (firing, reason) in &judged.firings {
            self.act(firing, reason);
        }
        if let Some((marks, _)) = self.marks.as_mut().filter(|_| !judged.firings.is_empty()) {
            marks.drain(&mut self.recording, true);
            marks.close_packets(&mut self.recording);
        }
        if self.is_stopped && self.stopped_classes != self.recording.classes.version() {
            self.record_conditions_only();
        }
        Some(judged)
    }

    fn lag(&self) -> Lag {
        let is_of_processors = |one: &Recorded| one.area.geometry.kind() == RingKind::PerCpu;
        match self.sources.is_empty() && self.areas.iter().all(is_of_processors) {
            true => Lag::Processors,
            false => Lag::Others,
        }
    }

    /// Whether a program or source with the event is running.
    fn is_present(&self, name: &EventName) -> bool {
        let has = |registered: &[RegisteredSchema]| {
            registered.iter().any(|entry| {
                let schema = &entry.schema;
                let subsystem = |event: &Event| &schema.subsystems[event.subsystem].name;
                schema.events.iter().any(|event| name.is(subsystem(event), &event.name))
            })
        };
        let mut areas = self.areas.iter();
        areas.any(|one| one.ended_at.is_none() && has(&one.area.registered))
            || self.sources.iter().any(|live| has(&live.ask().schemas()))
    }

    fn act(&mut self, firing: &Firing, reason: &KeptReason) {
        let Some(rules) = &mut self.recording.rules else { return };
        rules.tell(&KeepNotice::Fired(reason));
        for action in rules.actions(firing) {
            let now_ns = clocks::utc_ns();
            let mut noted = done(&action, now_ns);
            match &action {
                Action::Start => {
                    if let Err(error) = self.start_recording() {
                        noted.outcome = Outcome::Failed;
                        noted.cause = Some(error.to_string());
                    }
                }
                Action::Stop => self.stop_recording(),
                // Executed by the keeper, from the firings.
                Action::Snapshot(_) => {}
                Action::Flush => {
                    self.flush();
                }
                Action::Run(words) => {
                    let environment = self.environment(reason);
                    let about = (reason.number, noted.action.as_str(), now_ns);
                    noted = self.commands.run(about, words, &environment);
                }
                Action::Mark(name) => {
                    if let Some((_, queue)) = &self.marks {
                        queue.push(firing.at, name, &firing.test);
                    }
                }
            }
            self.note(reason.number, noted);
        }
    }

    fn note(&mut self, number: u64, done: Done) {
        if let Some(rules) = &mut self.recording.rules {
            rules.note(number, done);
        }
    }

    /// Environment of a command.
    fn environment(&self, reason: &KeptReason) -> [(&'static str, OsString); 5] {
        let text = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        [
            ("LATERALIS_FIRED", reason.condition.clone().into()),
            ("LATERALIS_FIRED_NUMBER", reason.number.to_string().into()),
            ("LATERALIS_FIRED_AT_NS", reason.at_ns.to_string().into()),
            ("LATERALIS_FIRED_TOOK_NS", text(reason.duration_ns).into()),
            ("LATERALIS_FIRED_OUTPUT", self.recording.output.root().into()),
        ]
    }

    /// Stores the result of a command that has ended.
    fn note_command(&mut self) {
        if let Some((number, done)) = self.commands.look() {
            self.note(number, done);
        }
    }

    fn stop_recording(&mut self) {
        self.is_stopped = true;
        let now = self.recording.now();
        self.recording.begin_gap(UnrecordedCause::Stopped, now);
        self.record_conditions_only();
    }

    /// Records only the events used by conditions.
    pub(super) fn record_conditions_only(&mut self) {
        let Some(rules) = self.recording.rules.take() else { return };
        for recorded in &mut self.areas {
            let patterns = rules.patterns(&recorded.area.registered);
            recorded.area.note_enabled();
            recorded.area.is_gap = true;
            if let Err(error) = recorded.area.enable(&mut self.recording, &patterns) {
                self.recording.problem(error.to_string());
            }
        }
        for live in &mut self.sources {
            let schemas = live.ask().schemas();
            let is_looked_at = rules.looks_into(&schemas);
            live.source().pause(!is_looked_at);
        }
        self.stopped_classes = self.recording.classes.version();
        self.recording.rules = Some(rules);
    }

    fn start_recording(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_stopped) {
            return Ok(());
        }
        self.sources.iter_mut().for_each(|live| live.source().pause(false));
        for recorded in &mut self.areas {
            recorded.area.is_gap = false;
            recorded.area.enable(&mut self.recording, &recorded.wanted.enable)?;
        }
        if !self.paused {
            let now = self.recording.now();
            self.recording.end_gap(UnrecordedCause::Stopped, now);
        }
        Ok(())
    }

    /// Ends the actions of conditions: waits for a command, writes the remaining marks. Context:
    /// everything was evaluated.
    pub(super) fn end_rules(&mut self) {
        if let Some((number, done)) = self.commands.end() {
            self.note(number, done);
        }
        if let Some((marks, _)) = self.marks.take() {
            let (events, lost) = marks.finish(&mut self.recording);
            self.gone_events += events;
            self.gone_lost = self.gone_lost.saturating_add(lost);
        }
        let rules = self.recording.rules.take();
        self.recording.triggers = rules.map(|rules| rules.report);
    }
}
