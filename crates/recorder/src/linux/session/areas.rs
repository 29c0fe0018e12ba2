// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The areas of a session: found, drained, and let go when their processes are gone.

use std::path::Path;
use std::time::{Duration, Instant};

use lateralis_ring::abi::{self, header};
use lateralis_ring::{AreaHeader, ReadPolicy, RingMode};

use super::super::area::{Drained, LiveArea};
use super::super::dirs::area_files;
use super::super::mapping::{Access, Mapping, open_area};
use super::super::rings::ensure_rings;
use super::super::trigger::{AreaTrigger, unknown};
use super::super::{policies, processes};
use super::{Recorded, Session};
use crate::classes::RegisteredSchema;
use crate::error::Error;

/// Time that writers get to end records they are inside of, after events were disabled.
const GRACE: Duration = Duration::from_millis(2);
/// An area whose processes are all gone is kept this long: one may have been forked that has
/// not registered yet.
const LINGER: Duration = Duration::from_millis(100);

impl Session {
    /// Begins to record an area.
    pub(super) fn take(&mut self, path: &Path, launched: bool) -> Result<bool, Error> {
        let own_pid = std::process::id();
        let file = open_area(path).map_err(|cause| Error::file("open area", path, cause))?;
        let mapping = Mapping::of_file(&file, Access::Shared)
            .map_err(|cause| Error::file("map area", path, cause))?
            .ok_or_else(|| Error::NothingToRecover(path.to_owned()))?;
        let area_error = |cause| Error::Area { path: path.to_owned(), cause };
        let found = AreaHeader::read(&mapping.view()).map_err(area_error)?;
        let other = found.recorder_pid;
        if !launched && other != 0 && other != own_pid && processes::exists(other) {
            return Err(Error::AlreadyRecorded { path: path.to_owned(), recorder_pid: other });
        }
        let kind = LiveArea::clock_kind(&found)
            .filter(|_| !found.swapped)
            .ok_or(Error::Clock { path: path.to_owned(), clock_kind: found.clock_kind })?;
        if self.recording.use_live_clock(kind).kind != kind {
            return Err(Error::Clock { path: path.to_owned(), clock_kind: found.clock_kind });
        }
        let Some(wanted) = policies::wanted(&self.options, &found, &mapping.view()) else {
            self.decline(path, launched, &mapping);
            return Ok(false);
        };
        // The program made its rings and enabled its events as it was asked to.
        let is_ready = launched && found.rings_ready == abi::RINGS_READY;
        let mapping = ensure_rings(path, &file, mapping, &found, &wanted.wish)?;
        let view = mapping.view();
        let _ = view.store_u32(header::RECORDER_PID, own_pid);
        let _ = view.copy_in(header::UUID, &self.recording.uuid);
        let mut area = LiveArea::new(&mut self.recording, path, mapping, ReadPolicy::Consume)?;
        area.begin_telling(!launched && other != 0);
        if !is_ready {
            let _ = area.view().store_u32(header::RING_MODE, wanted.wish.mode.to_word());
        }
        area.choose(&mut self.recording, &wanted);
        let trigger = self.options.trigger.clone().map(AreaTrigger::new);
        // A program that is starting may register its schemas later.
        if let (false, Some(trigger)) = (launched, &trigger)
            && let Err(error) = trigger.check(&area.registered)
        {
            let _ = area.view().store_u32(header::RECORDER_PID, 0);
            return Err(error);
        }
        if trigger.is_none() && !is_ready {
            area.enable(&mut self.recording, &wanted.enable)?;
        }
        self.paths_seen.insert(path.to_owned());
        let recorded =
            Recorded { area, wanted, trigger, ended_at: None, launched, unlinked: false };
        self.areas.push(recorded);
        if self.is_stopped {
            self.record_conditions_only();
        }
        Ok(true)
    }

    /// Looks for areas of this session, and of children of attached programs.
    pub(super) fn discover(&mut self) {
        for path in area_files(&self.area_dir) {
            if self.paths_seen.contains(&path) {
                continue;
            }
            let Some(found) = peek(&path) else { continue };
            let launched = found.session == self.id;
            let descends = || {
                self.attached.iter().any(|pid| processes::descends_from(found.creator_pid, *pid))
            };
            if !launched && !descends() && !self.watches(&path, &found) {
                if found.rings_ready != abi::RINGS_BEING_MADE {
                    self.paths_seen.insert(path);
                }
                continue;
            }
            match self.take(&path, launched) {
                Ok(_) => {}
                // Somebody else is making the rings: wait for them, but not for ever.
                Err(Error::Rings { cause: lateralis_ring::GeometryError::NotReady, .. })
                    if *self.retries.entry(path.clone()).and_modify(|n| *n += 1).or_insert(0)
                        < 100 => {}
                Err(error) => {
                    self.recording.problem(error.to_string());
                    self.paths_seen.insert(path);
                }
            }
        }
    }

    pub(super) fn drain_all(&mut self, open_part: bool) -> Drained {
        let mut drained = Drained::default();
        for recorded in &mut self.areas {
            if let Some(trigger) = &mut recorded.trigger {
                trigger.keep(&mut self.recording, &mut recorded.area, &recorded.wanted.enable);
            }
            // A flight recorder's rings are read when the flight is over.
            if recorded.wanted.wish.mode == RingMode::Overwrite {
                continue;
            }
            let one = recorded.area.drain(&mut self.recording, open_part);
            drained.bytes += one.bytes;
            drained.fill = drained.fill.max(one.fill);
        }
        let is_ready = std::mem::take(&mut self.sources_ready) || open_part;
        for live in &mut self.sources {
            if self.options.mode != RingMode::Overwrite {
                drained.fill = drained.fill.max(live.drain(&mut self.recording, is_ready));
                if open_part {
                    live.close_packets(&mut self.recording);
                }
            }
        }
        drained
    }

    /// Finishes areas whose processes are all gone, and removes their files.
    pub(super) fn reap_areas(&mut self) {
        let now = Instant::now();
        let mut index = 0;
        while index < self.areas.len() {
            let recorded = &mut self.areas[index];
            let view = recorded.area.mapping.view();
            recorded.area.processes.refresh(&view);
            // The command's next program will come into the area that they share.
            let awaited = !self.command_ended && Some(&recorded.area.path) == self.shared.as_ref();
            if awaited || !recorded.area.processes.have_ended() {
                recorded.ended_at = None;
                index += 1;
                continue;
            }
            let ended_at = *recorded.ended_at.get_or_insert(now);
            if now - ended_at < LINGER {
                index += 1;
                continue;
            }
            let recorded = self.areas.swap_remove(index);
            self.finish_area(recorded, true);
        }
    }

    pub(super) fn finish_area(&mut self, mut recorded: Recorded, ended: bool) {
        if ended && !recorded.unlinked && Some(&recorded.area.path) == self.shared.as_ref() {
            // From here on a program makes a new one. Who came into this one just before is seen.
            if !self.recording.output_ended {
                let _ = std::fs::remove_file(&recorded.area.path);
                self.paths_seen.remove(&recorded.area.path);
            }
            recorded.unlinked = true;
            std::thread::sleep(GRACE);
            recorded.area.processes.refresh(&recorded.area.mapping.view());
            if !recorded.area.processes.have_ended() {
                recorded.ended_at = None;
                self.areas.push(recorded);
                return;
            }
        }
        let view = recorded.area.mapping.view();
        recorded.area.processes.refresh(&view);
        if !ended {
            recorded.area.disable(&mut self.recording);
            std::thread::sleep(GRACE);
        }
        recorded.area.drain_to_the_end(&mut self.recording);
        self.note_filters(&mut recorded);
        if ended {
            // Nobody can write into it any more, and everything in it is in the files.
            if !self.recording.output_ended && !recorded.unlinked {
                let _ = std::fs::remove_file(&recorded.area.path);
            }
        } else {
            let view = recorded.area.mapping.view();
            // The program removes its own area when it ends.
            let _ = view.store_u64(header::SESSION, 0);
            let _ = view.store_u32(header::RECORDER_PID, 0);
        }
        for ring in &recorded.area.rings {
            self.gone_events += ring.stream.totals().events;
            self.gone_lost = self.gone_lost.saturating_add(ring.stream.losses().total());
        }
        self.gone_processes += recorded.area.processes.count();
        self.note_trigger(&recorded);
        self.keep_gone(&recorded);
        recorded.area.finish(&mut self.recording);
    }

    /// Notes when a trigger started and stopped an area.
    fn note_trigger(&mut self, recorded: &Recorded) {
        let Some(trigger) = &recorded.trigger else { return };
        self.trigger_was_set |= trigger.is_installed();
        if let Some(times) = trigger.times(&recorded.area) {
            self.recording.note_switch(recorded.area.header.area_id, times);
        }
    }

    /// Says which event of a trigger no program had.
    pub(super) fn report_unused_trigger(&mut self) {
        let Some(options) = self.options.trigger.as_ref().filter(|_| !self.trigger_was_set) else {
            return;
        };
        let events = [&options.start, &options.stop].into_iter().flatten();
        let classes = self.recording.classes.classes().iter();
        let registered: Vec<RegisteredSchema> =
            classes.flat_map(|class| class.schemas.values().cloned()).collect();
        if let Some(sentence) = unknown(events, &registered) {
            self.recording.problem(format!("Cannot start or stop: {sentence}"));
        }
    }

    /// Finishes the areas whose processes have ended, without lingering.
    pub(super) fn reap_now(&mut self) {
        let mut left = Vec::new();
        for mut recorded in std::mem::take(&mut self.areas) {
            let view = recorded.area.mapping.view();
            recorded.area.processes.refresh(&view);
            if recorded.area.processes.have_ended() && recorded.launched {
                self.finish_area(recorded, true);
            } else {
                left.push(recorded);
            }
        }
        self.areas.extend(left);
    }

    pub(super) fn session_lives(&mut self) -> bool {
        self.discover();
        !self.areas.is_empty()
    }
}

/// The header of an area file, if it is one.
pub(super) fn peek(path: &Path) -> Option<AreaHeader> {
    let file = open_area(path).ok()?;
    let mapping = Mapping::of_file(&file, Access::Shared).ok()??;
    AreaHeader::read(&mapping.view()).ok()
}
