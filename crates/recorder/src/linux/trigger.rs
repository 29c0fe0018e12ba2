// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Installs a trigger in an area and keeps it up to date [ring-abi §7].
//!
//! A trigger names its events; their ids are known once the schema is registered. Until then, and
//! until the trigger is armed, nothing is enabled.

use lateralis_ring::abi::{self, header, trigger};
use lateralis_ring::{Trigger, event_ids_in_use, set_enable_byte, set_wanted_byte, write_trigger};

use super::area::LiveArea;
use super::filters::with_filter;
use super::recording::Recording;
use crate::classes::RegisteredSchema;
use crate::error::Error;
use crate::options::{EventMatch, TriggerOptions};
use crate::pattern::Patterns;

/// The trigger of one area.
pub(super) struct AreaTrigger {
    options: TriggerOptions,
    installed: Option<Trigger>,
    known_schemas: usize,
    done: bool,
    /// It is invalid, which was reported.
    has_failed: bool,
}

/// Flags, event id, value and mask of a condition.
type Condition = (u32, u32, u64, u64);

impl AreaTrigger {
    pub(super) fn new(options: TriggerOptions) -> AreaTrigger {
        AreaTrigger { options, installed: None, known_schemas: 0, done: false, has_failed: false }
    }

    /// Whether it has stopped the recording.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Installs it once its events are known, includes schemas registered later, and stops it at
    /// its deadline.
    pub(super) fn keep(
        &mut self,
        recording: &mut Recording,
        area: &mut LiveArea,
        patterns: &Patterns,
    ) {
        if self.done || self.has_failed {
            return;
        }
        area.refresh_schemas(recording);
        let Some(block) = self.installed else {
            self.install(recording, area, patterns);
            return;
        };
        let view = area.view();
        let Ok(now) = Trigger::read(&view) else { return };
        if area.registered.len() != self.known_schemas {
            self.want(area, patterns, &block, now.state == abi::TRIGGER_RUNNING);
            area.follow_sites(recording);
        }
        let over = block.duration != 0
            && now.state == abi::TRIGGER_RUNNING
            && recording.now().saturating_sub(now.started_at) > block.duration;
        if over {
            let at = header::TRIGGER + trigger::STATE;
            let stopped =
                view.exchange_u32(at, abi::TRIGGER_RUNNING, abi::TRIGGER_DONE).unwrap_or(false);
            if stopped {
                let end = now.started_at.saturating_add(block.duration);
                let _ = view.store_u64(header::TRIGGER + trigger::STOPPED_AT, end);
                for id in 0..event_ids_in_use(&view).unwrap_or(0) {
                    let _ = set_enable_byte(&view, id, 0);
                }
            }
        }
        self.done = over || now.state == abi::TRIGGER_DONE;
    }

    /// Whether it has been installed.
    pub(super) fn is_installed(&self) -> bool {
        self.installed.is_some()
    }

    /// When it started and stopped the area's events, in ticks.
    pub(super) fn times(&self, area: &LiveArea) -> Option<(Option<u64>, Option<u64>)> {
        self.installed?;
        let now = Trigger::read(&area.view()).ok()?;
        let started = now.state == abi::TRIGGER_RUNNING || now.state == abi::TRIGGER_DONE;
        let stopped = now.state == abi::TRIGGER_DONE;
        Some((started.then_some(now.started_at), stopped.then_some(now.stopped_at)))
    }

    /// Checks that the schemas contain its events, and the events its fields.
    ///
    /// Errors: what is missing, with the most similar names.
    pub(super) fn check(&self, registered: &[RegisteredSchema]) -> Result<(), Error> {
        self.conditions(registered)?;
        let options = &self.options;
        let events = [&options.start, &options.stop].into_iter().flatten();
        match unknown(events, registered) {
            Some(sentence) => Err(Error::Refused(sentence)),
            None => Ok(()),
        }
    }

    /// The conditions for start and stop; `None` for an event that is not known yet.
    ///
    /// Errors: the event has no such field or value.
    fn conditions(
        &self,
        registered: &[RegisteredSchema],
    ) -> Result<(Option<Condition>, Option<Condition>), Error> {
        let find = |wanted: &Option<EventMatch>| -> Result<Option<Condition>, Error> {
            let Some(wanted) = wanted else { return Ok(Some((0, 0, 0, 0))) };
            let events = registered
                .iter()
                .flat_map(|entry| entry.schema.events.iter().map(move |event| (entry, event)));
            let mut named =
                events.filter(|(entry, event)| entry.schema.full_name(event) == wanted.event);
            let Some((entry, event)) = named.next() else { return Ok(None) };
            let id = entry.base_id + event.index;
            let word = wanted.word(&entry.schema, event);
            Ok(Some(match word.map_err(|error| Error::Refused(error.to_string()))? {
                Some((value, mask)) => {
                    (abi::TRIGGER_MATCH_EVENT | abi::TRIGGER_MATCH_VALUE, id, value, mask)
                }
                None => (abi::TRIGGER_MATCH_EVENT, id, 0, 0),
            }))
        };
        Ok((find(&self.options.start)?, find(&self.options.stop)?))
    }

    fn install(&mut self, recording: &mut Recording, area: &LiveArea, patterns: &Patterns) {
        let (start, stop) = match self.conditions(&area.registered) {
            Ok((Some(start), Some(stop))) => (start, stop),
            Ok(_) => return,
            Err(error) => {
                self.has_failed = true;
                recording.problem(error.to_string());
                return;
            }
        };
        let clock = recording.clock_ticks(self.options.duration.unwrap_or_default());
        let at_once = self.options.start.is_none();
        let block = Trigger {
            state: if at_once { abi::TRIGGER_RUNNING } else { abi::TRIGGER_ARMED },
            start_flags: start.0,
            start_event: start.1,
            start_value: start.2,
            start_mask: start.3,
            stop_flags: stop.0,
            stop_event: stop.1,
            stop_value: stop.2,
            stop_mask: stop.3,
            duration: clock,
            count: self.options.count.unwrap_or(0),
            started_at: if at_once { recording.now() } else { 0 },
            stopped_at: 0,
            counted: 0,
        };
        let view = area.view();
        if write_trigger(&view, &block).is_err() {
            return;
        }
        self.installed = Some(block);
        self.want(area, patterns, &block, at_once);
        if !at_once {
            let _ = set_enable_byte(&view, block.start_event, abi::ENABLE_WATCH);
        }
        area.follow_sites(recording);
    }

    /// Sets the wanted bytes by the patterns, and the enable bytes if it is already running.
    fn want(&mut self, area: &LiveArea, patterns: &Patterns, block: &Trigger, running: bool) {
        let view = area.view();
        for entry in &area.registered[self.known_schemas..] {
            for event in &entry.schema.events {
                let id = entry.base_id + event.index;
                let subsystem = &entry.schema.subsystems[event.subsystem].name;
                let byte = u8::from(patterns.matches(subsystem, &event.name)) * abi::ENABLE_RECORD;
                let mut byte = with_filter(&view, id, byte);
                let _ = set_wanted_byte(&view, id, byte);
                if !running {
                    continue;
                }
                if byte != 0 && (block.count != 0 || block.duration != 0) {
                    byte |= abi::ENABLE_WATCH;
                }
                if block.stop_flags & abi::TRIGGER_MATCH_EVENT != 0 && block.stop_event == id {
                    byte |= abi::ENABLE_WATCH;
                }
                let _ = set_enable_byte(&view, id, byte);
            }
        }
        self.known_schemas = area.registered.len();
    }
}

/// The first of these events that no schema contains, with the most similar name.
pub(super) fn unknown<'a>(
    events: impl Iterator<Item = &'a EventMatch>,
    registered: &[RegisteredSchema],
) -> Option<String> {
    let known: Vec<String> = registered
        .iter()
        .flat_map(|entry| entry.schema.events.iter().map(|event| entry.schema.full_name(event)))
        .collect();
    let missing = events.into_iter().find(|wanted| !known.contains(&wanted.event))?;
    let near = lateralis_pleco::nearest(&missing.event, known.iter().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    Some(format!("there is no event {}{near}", missing.event))
}
