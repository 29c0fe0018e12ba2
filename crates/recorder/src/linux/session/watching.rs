// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All programs of a user: those that policies select, and those that they do not.

use std::path::Path;

use lateralis_ring::abi::header;

use super::super::area_file::Users;
use super::super::discovery::{self, OpenArea};
use super::super::mapping::Mapping;
use super::super::policies::{self, Standing};
use super::super::verified::VerifiedProcess;
use super::{Recorded, Session};
use crate::error::Error;
use crate::policy::PARTS;

/// Rejected areas are examined again when there are this many, and then at twice as many.
pub(super) const DECLINED_LEAST: usize = 32;

impl Session {
    /// Records every program of this user that the policies select: running ones, and those
    /// that start during the session. The latter start recording by themselves, without waiting for
    /// this process to find them. Ends when it is ended from outside.
    ///
    /// Errors: another recorder does so, or the policies cannot be published.
    pub fn watch(&mut self) -> Result<(), Error> {
        let text = policies::request_text(&self.options, self.id, false)?;
        self.standing = Some(Standing::publish(&self.area_dir, &text)?);
        self.discover();
        Ok(())
    }

    /// Whether an area belongs to the programs of [`Session::watch`].
    pub(super) fn watches(&self, area: &OpenArea) -> bool {
        let is_other = |process: &VerifiedProcess| process.pid() != std::process::id();
        self.standing.is_some() && discovery::living(area).first().is_some_and(is_other)
    }

    /// Rejects an area that no policy selects.
    pub(super) fn decline(&mut self, path: &Path, launched: bool, mapping: &Mapping) {
        if launched {
            // The program removes its own area when it ends; if it has ended already, this session does.
            let _ = mapping.view().store_u64(header::SESSION, 0);
            let _ = mapping.view().store_u32(header::RECORDER_PID, 0);
            self.declined.push(path.to_owned());
        }
        self.paths_seen.insert(path.to_owned());
        if self.declined.len() >= self.declined_most {
            self.sweep_declined();
            self.declined_most = DECLINED_LEAST.max(2 * self.declined.len());
        }
    }

    /// Removes an area's filters, and stores which of them applied.
    pub(super) fn note_filters(&mut self, recorded: &mut Recorded) {
        let area = &mut recorded.area;
        for filter in area.filters.unused() {
            self.filter_events.entry(filter.event.clone()).or_insert(false);
        }
        let unused: Vec<&str> = area.filters.unused().map(|one| one.event.as_str()).collect();
        let wanted = recorded.wanted.filters.iter().map(|one| &one.event);
        for event in wanted.filter(|event| !unused.contains(&event.as_str())) {
            self.filter_events.insert(event.clone(), true);
        }
        let view = area.mapping.view();
        area.filters.remove(&view);
    }

    /// Reports filters on events that no program had.
    pub(super) fn report_unused_filters(&mut self) {
        for (event, _) in std::mem::take(&mut self.filter_events).into_iter().filter(|one| !one.1) {
            let problem = format!(
                "Cannot apply filter: no program had an event {event}; `lat list` shows those of \
                 programs that run"
            );
            self.recording.problem(problem);
        }
    }

    /// Reports patterns that match no event of any program.
    pub(super) fn report_unused_patterns(&mut self) {
        if self.options.policies.is_some() {
            return;
        }
        let classes = self.recording.classes.classes().iter();
        let schemas: Vec<_> = classes
            .flat_map(|class| class.schemas.values().map(|one| one.schema.clone()))
            .collect();
        let names: Vec<String> = schemas
            .iter()
            .flat_map(|schema| schema.events.iter().map(|event| schema.full_name(event)))
            .collect();
        let events: Vec<(&str, &str)> =
            names.iter().filter_map(|name| name.split_once(':')).collect();
        // Without any program this is reported otherwise.
        if self.gone_processes == 0 || events.is_empty() {
            return;
        }
        for (excludes, pattern) in self.options.enable.unused(&events) {
            // Parts of the library that are excluded by default need not be loaded.
            if excludes && PARTS.contains(&pattern.as_str()) {
                continue;
            }
            let what = if excludes { "leave out" } else { "record" };
            let near = lateralis_pleco::nearest(&pattern, names.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            self.recording.problem(format!(
                "Cannot {what} {pattern}: no program had such an event{near}; `lat list` shows those \
                 of programs that run"
            ));
        }
    }

    /// Removes leftovers of rejected programs: one that ends without the C library's knowledge
    /// does not remove its own area.
    pub(super) fn sweep_declined(&mut self) {
        self.declined.retain(|path| {
            let Ok(area) = discovery::open(path) else { return false };
            let is_used = area.file.users() != Users::Nobody;
            if !is_used {
                let _ = std::fs::remove_file(path);
            }
            is_used
        });
    }
}
