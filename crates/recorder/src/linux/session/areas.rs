// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The areas of a session: discovery, draining, and release when their processes have ended.

use std::path::Path;
use std::time::{Duration, Instant};

use lateralis_ring::abi::{self, header};
use lateralis_ring::{ReadPolicy, RingMode};

use super::super::area::{Drained, LiveArea, give_first_memory};
use super::super::area_file::Users;
use super::super::dirs::area_files;
use super::super::discovery::{self, OpenArea, living};
use super::super::rings::ensure_rings;
use super::super::session_lock::recording_pids;
use super::super::trigger::{AreaTrigger, unknown};
use super::super::verified::VerifiedProcess;
use super::super::{policies, processes};
use super::{Recorded, Session};
use crate::classes::RegisteredSchema;
use crate::error::Error;

/// Time for writers to finish records in progress, after events were disabled.
const GRACE: Duration = Duration::from_millis(2);
/// An area whose known processes have all ended is kept this long, unless the kernel reports no
/// user: a forked process may not have registered yet, or may be about to join.
const LINGER: Duration = Duration::from_millis(100);

/// Number of programs of a command that start with more memory than later ones: a command is one program that
/// computes, or a script that starts one.
const FIRST_PROGRAMS: usize = 3;

impl Session {
    /// Starts recording an area that was opened at a path.
    pub(super) fn take(
        &mut self,
        path: &Path,
        area: OpenArea,
        launched: bool,
    ) -> Result<bool, Error> {
        let own_pid = std::process::id();
        let found = area.header.clone();
        let other = found.recorder_pid;
        if !launched && other != own_pid && recording_pids(&self.area_dir).contains(&other) {
            return Err(Error::AlreadyRecorded { path: path.to_owned(), recorder_pid: other });
        }
        let kind = LiveArea::clock_kind(&found)
            .filter(|_| !found.swapped)
            .ok_or(Error::Clock { path: path.to_owned(), clock_kind: found.clock_kind })?;
        if self.recording.use_live_clock(kind).kind != kind {
            return Err(Error::Clock { path: path.to_owned(), clock_kind: found.clock_kind });
        }
        let Some(wanted) = policies::wanted(&self.options, &area) else {
            self.decline(path, launched, &area.mapping);
            return Ok(false);
        };
        // The program created its rings and enabled its events as requested.
        let is_ready = launched && found.rings_ready == abi::RINGS_READY;
        let OpenArea { file, mapping, .. } = area;
        if is_ready && wanted.wish.mode == RingMode::Discard {
            let is_first = self.launched_count < FIRST_PROGRAMS;
            let cap = wanted.wish.cap_bytes;
            give_first_memory(file.file(), &mapping.view(), &found, cap, is_first);
            self.launched_count += 1;
        }
        let mapping = ensure_rings(path, file.file(), mapping, &found, &wanted.wish)?;
        let view = mapping.view();
        let _ = view.store_u32(header::RECORDER_PID, own_pid);
        let _ = view.copy_in(header::UUID, &self.recording.uuid);
        let parts = (Some(file), mapping);
        let mut area = LiveArea::new(&mut self.recording, path, parts, ReadPolicy::Consume)?;
        area.begin_telling(!launched && other != 0);
        if !is_ready {
            let _ = area.view().store_u32(header::RING_MODE, wanted.wish.mode.to_word());
        }
        area.choose(&mut self.recording, &wanted);
        let trigger = self.options.trigger.clone().map(AreaTrigger::new);
        // A starting program may register its schemas later.
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

    /// Searches for areas of this session, and of children of attached programs.
    pub(super) fn discover(&mut self) {
        for path in area_files(&self.area_dir) {
            if self.paths_seen.contains(&path) {
                continue;
            }
            let area = match discovery::open(&path) {
                Ok(area) => area,
                Err(error) => {
                    self.note_unreadable(path, error);
                    continue;
                }
            };
            let header = area.header.clone();
            let found = &header;
            self.missed.is_readable(&path);
            let launched = found.session == self.id;
            if !launched && !self.is_of_attached(&area) && !self.watches(&area) {
                if found.rings_ready != abi::RINGS_BEING_MADE {
                    self.paths_seen.insert(path);
                }
                continue;
            }
            if launched {
                self.missed.registered();
            }
            match self.take(&path, area, launched) {
                Ok(_) => self.programs_found += usize::from(launched),
                // Another process is creating the rings: wait for it, but not forever.
                Err(Error::Rings { cause: lateralis_ring::GeometryError::NotReady, .. })
                    if *self.retries.entry(path.clone()).and_modify(|n| *n += 1).or_insert(0)
                        < 100 => {}
                Err(error) => {
                    self.note_refused(&header, &error);
                    self.recording.problem(error.to_string());
                    self.paths_seen.insert(path);
                }
            }
        }
    }

    /// Whether an area belongs to a child of an attached program: it inherited the request that the
    /// attached program was started with, or /proc shows the descent.
    fn is_of_attached(&self, area: &OpenArea) -> bool {
        let session = area.header.session;
        let descends = |process: VerifiedProcess| {
            self.attached.iter().any(|one| processes::descends_from(process.pid(), one.pid))
        };
        let is_inherited = session != 0 && self.inherited.iter().any(|one| one.0 == session);
        is_inherited || !self.attached.is_empty() && living(area).into_iter().any(descends)
    }

    pub(super) fn drain_all(&mut self, open_part: bool) -> Drained {
        let mut drained = Drained::default();
        for recorded in &mut self.areas {
            if let Some(trigger) = &mut recorded.trigger {
                trigger.keep(&mut self.recording, &mut recorded.area, &recorded.wanted.enable);
            }
            // A flight recorder's rings are read when it is stopped.
            if recorded.wanted.wish.mode == RingMode::Overwrite {
                continue;
            }
            let one = recorded.area.drain(&mut self.recording, open_part);
            drained.bytes += one.bytes;
            drained.fill = drained.fill.max(one.fill);
            drained.is_young |= one.is_young;
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

    /// Finishes areas whose processes have all ended, and removes their files.
    pub(super) fn reap_areas(&mut self) {
        let now = Instant::now();
        let mut index = 0;
        while index < self.areas.len() {
            let recorded = &mut self.areas[index];
            recorded.area.refresh_processes();
            // The command's next program will join the area that they share.
            let awaited = !self.command_ended && Some(&recorded.area.path) == self.shared.as_ref();
            let users = if awaited { Users::Others } else { recorded.area.users() };
            if users == Users::Others {
                recorded.ended_at = None;
                index += 1;
                continue;
            }
            let ended_at = *recorded.ended_at.get_or_insert(now);
            let is_shared = Some(&recorded.area.path) == self.shared.as_ref();
            if now - ended_at < LINGER && (is_shared || users != Users::Nobody) {
                index += 1;
                continue;
            }
            let recorded = self.areas.swap_remove(index);
            self.finish_area(recorded, true);
        }
    }

    pub(super) fn finish_area(&mut self, mut recorded: Recorded, ended: bool) {
        if ended && !recorded.unlinked && Some(&recorded.area.path) == self.shared.as_ref() {
            // From now on a program creates a new one. A process that joined this one just before is
            // detected.
            if !self.recording.output_ended {
                let _ = std::fs::remove_file(&recorded.area.path);
                self.paths_seen.remove(&recorded.area.path);
            }
            recorded.unlinked = true;
            std::thread::sleep(GRACE);
            recorded.area.refresh_processes();
            if recorded.area.users() == Users::Others {
                recorded.ended_at = None;
                self.areas.push(recorded);
                return;
            }
        }
        recorded.area.refresh_processes();
        if !ended {
            recorded.area.disable(&mut self.recording);
            std::thread::sleep(GRACE);
        }
        recorded.area.drain_to_the_end(&mut self.recording);
        self.note_filters(&mut recorded);
        if ended {
            // It cannot be written any more, and all of its content is in the files.
            if !self.recording.output_ended && !recorded.unlinked {
                let _ = std::fs::remove_file(&recorded.area.path);
            }
        } else {
            let view = recorded.area.mapping.view();
            let _ = view.store_u64(header::SESSION, 0);
            let _ = view.store_u32(header::RECORDER_PID, 0);
            // It was created for this recording, and its content is in the files: its memory is released with
            // the programs that have it. An area that existed before can be attached to again.
            if recorded.launched && !self.recording.output_ended && !recorded.unlinked {
                let _ = std::fs::remove_file(&recorded.area.path);
            }
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

    /// Stores when a trigger started and stopped an area.
    fn note_trigger(&mut self, recorded: &Recorded) {
        let Some(trigger) = &recorded.trigger else { return };
        self.trigger_was_set |= trigger.is_installed();
        if let Some(times) = trigger.times(&recorded.area) {
            self.recording.note_switch(recorded.area.header.area_id, times);
        }
    }

    /// Reports the event of a trigger that no program had.
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

    /// Finishes the areas whose processes have ended, without delay.
    pub(super) fn reap_now(&mut self) {
        let mut left = Vec::new();
        for mut recorded in std::mem::take(&mut self.areas) {
            recorded.area.refresh_processes();
            if recorded.launched && recorded.area.users_now() != Users::Others {
                self.finish_area(recorded, true);
            } else {
                left.push(recorded);
            }
        }
        self.areas.extend(left);
    }

    /// Creates areas for the programs that may start next, if many do.
    pub(super) fn tend_prepared(&mut self) {
        let found = std::mem::take(&mut self.programs_found);
        let tended = self.prepared.as_mut().map(|prepared| prepared.tend(found));
        // Programs then create their own, which only takes longer.
        if let Some(Err(_)) = tended {
            self.prepared = None;
        }
    }

    pub(super) fn session_lives(&mut self) -> bool {
        self.discover();
        !self.areas.is_empty() || self.sources.iter().any(|live| live.ask().follows_somebody())
    }
}
