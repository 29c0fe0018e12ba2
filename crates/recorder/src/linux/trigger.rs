// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Setting a trigger in an area and keeping it up to date [ring-abi §7].
//!
//! A trigger names its events; their ids are known once the schema is registered. Until then, and
//! until the trigger is armed, nothing is enabled.

use lateralis_ring::abi::{self, header, trigger};
use lateralis_ring::{Trigger, event_ids_in_use, set_enable_byte, set_wanted_byte, write_trigger};

use super::area::LiveArea;
use super::filters::with_filter;
use super::recording::Recording;
use super::stream_report::count_events;
use crate::options::{EventMatch, TriggerOptions};
use crate::pattern::Patterns;

/// The trigger of one area.
pub(super) struct AreaTrigger {
    options: TriggerOptions,
    installed: Option<Trigger>,
    known_schemas: usize,
    done: bool,
}

/// Flags, event id, value and mask of a condition.
type Condition = (u32, u32, u64, u64);

impl AreaTrigger {
    pub(super) fn new(options: TriggerOptions) -> AreaTrigger {
        AreaTrigger { options, installed: None, known_schemas: 0, done: false }
    }

    /// Whether it has stopped the recording.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Installs it once its events are known, includes schemas that came later, and stops it at
    /// its deadline.
    pub(super) fn keep(
        &mut self,
        recording: &mut Recording,
        area: &mut LiveArea,
        patterns: &Patterns,
    ) {
        if self.done {
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

    fn install(&mut self, recording: &mut Recording, area: &LiveArea, patterns: &Patterns) {
        // `None`: the event is not known yet.
        let find = |wanted: &Option<EventMatch>| -> Option<Condition> {
            let Some(wanted) = wanted else { return Some((0, 0, 0, 0)) };
            let names = count_events::names(&area.registered);
            let id = names.iter().find(|(_, name)| **name == wanted.event).map(|(id, _)| *id)?;
            Some(match wanted.value {
                Some((value, mask)) => {
                    (abi::TRIGGER_MATCH_EVENT | abi::TRIGGER_MATCH_VALUE, id, value, mask)
                }
                None => (abi::TRIGGER_MATCH_EVENT, id, 0, 0),
            })
        };
        let (Some(start), Some(stop)) = (find(&self.options.start), find(&self.options.stop))
        else {
            return;
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

    /// Sets the wanted bytes by the patterns, and the enable bytes if it runs already.
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
