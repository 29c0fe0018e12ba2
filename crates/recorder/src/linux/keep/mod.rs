// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Saves windows of time around the firings of conditions, each as a recording of its
//! own. Memory and disk use are bounded in all cases.
//!
//! ```text
//! session: packets ─▶ Retention          every step: firings (rules) ─▶ Part ─▶ NAME/spike-0001/
//! ```

mod chunks;
mod feed;
mod introductions;
mod names;
mod part;
pub(super) mod reasons;
mod traced;
mod writer;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use lateralis_ring::RingKind;

pub(super) use chunks::Chunks;
pub(super) use introductions::Introduced;
use part::Part;
pub(super) use traced::Traced;
pub(super) use writer::Writer;

use super::area::LiveArea;
use super::output::replace;
use super::recording::Recording;
use super::rules::{Judged, Rules, texts};
use crate::condition::{Firing, SpanEnd};
use crate::error::Error;
use crate::keep::{Next, Plans, Retention, Windows, split};
use crate::options::KeepOptions;
use crate::report::{KEPT_VERSION, KeptList, KeptReason, KeptWindow};

/// Maximum number of reasons listed for a window.
const REASONS_MAX: usize = 100;
/// Maximum number of windows in the list.
const LIST_MAX: usize = 10_000;
/// Packets are kept this much longer than needed, because a firing may be known only some steps later.
const SPARE_NS: u64 = 1_000_000_000;

/// A notice for the user during recording.
#[derive(Debug)]
pub enum KeepNotice<'a> {
    /// A window was written, in this folder.
    Window(&'a KeptWindow, &'a Path),
    /// A condition fired.
    Fired(&'a KeptReason),
    /// A condition cannot fire as it is written.
    Warning(&'a str),
}

/// Receives notices.
pub type KeepObserver = Box<dyn FnMut(&KeepNotice<'_>) + Send>;

/// Saves windows of a session.
pub(super) struct Keeper {
    options: KeepOptions,
    root: PathBuf,
    retention: Retention,
    plans: Plans,
    windows: Windows,
    part: Option<Part>,
    list: KeptList,
    parts: u64,
    /// Total size in bytes of finished windows on disk.
    disk_bytes: u64,
    gone: Traced,
    /// Clock at the start.
    start: u64,
    /// Stream class of the names of threads that existed before a window.
    names_class: u32,
    /// Retention time of packets, in ticks.
    horizon: u64,
}

/// Facts about a session at a step.
pub(super) struct StepFacts<'a> {
    /// The firings.
    pub(super) judged: &'a Judged,
    /// The rules of the session.
    pub(super) rules: &'a mut Rules,
    /// Returns the currently traced programs.
    pub(super) traced: &'a dyn Fn() -> Traced,
    /// It is the last step: all written records have been read.
    pub(super) is_last: bool,
}

impl Keeper {
    /// Context: the recording has its clock.
    ///
    /// Errors: the folder for windows cannot be created.
    pub(super) fn new(
        options: KeepOptions,
        main: &mut Recording,
        rules: &Rules,
    ) -> Result<Keeper, Error> {
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let model = main.clock_model();
        let ticks = |ns: u64| model.as_ref().map_or(ns, |model| model.ticks(ns));
        let (before, after) = (ticks(ns(options.before)), ticks(ns(options.after)));
        let mut root = main.output.root().to_owned();
        if !options.is_alone {
            root.push("kept");
            std::fs::DirBuilder::new()
                .mode(0o700)
                .create(&root)
                .map_err(|cause| Error::file("make directory", &root, cause))?;
        }
        let list = KeptList {
            kept_version: KEPT_VERSION,
            conditions: rules.snapping().flat_map(texts).collect(),
            before_ns: ns(options.before),
            after_ns: ns(options.after),
            ..KeptList::default()
        };
        Ok(Keeper {
            root,
            retention: Retention::new(options.memory_bytes_max),
            plans: Plans::default(),
            windows: Windows::new(before, after),
            part: None,
            list,
            parts: 0,
            disk_bytes: 0,
            gone: Traced::default(),
            start: rules.start(),
            names_class: main.classes.assign(RingKind::PerThread, &[], None),
            horizon: before.saturating_add(ticks(SPARE_NS)),
            options,
        })
    }

    /// Whether only windows are saved.
    pub(super) fn is_alone(&self) -> bool {
        self.options.is_alone
    }

    /// Adds a sealed packet.
    pub(super) fn take(&mut self, name: &str, packet: &[u8]) {
        let Some((header, records)) = split(packet) else { return };
        self.retention.push(name, header, records);
    }

    /// Remembers an area that is removed.
    pub(super) fn gone(&mut self, area: &LiveArea) {
        self.gone.remember(area);
    }

    /// Writes what has to be saved. Context: all rings were read, and conditions were evaluated.
    pub(super) fn step(&mut self, main: &mut Recording, facts: &mut StepFacts<'_>) {
        let Judged { watermark, firings, ends, unknown } = facts.judged;
        let watermark = *watermark;
        let has_news = !firings.is_empty() || !ends.is_empty();
        for (firing, reason) in firings {
            if facts.rules.snaps(firing) {
                self.fired(main, (firing, reason), facts);
            }
        }
        for end in ends {
            self.ended(main, *end);
        }
        if let Some(part) = &mut self.part {
            let until = (watermark, false);
            part.write(&self.retention, &main.classes, &mut self.plans, until);
            let is_over = watermark >= part.to;
            if facts.is_last && !is_over {
                part.window.short.push("the recording ended before it did".to_owned());
            }
            if is_over || facts.is_last {
                self.finish(main, facts);
                self.windows.close();
            }
        }
        self.make_room();
        self.retention.forget_before(watermark.saturating_sub(self.horizon));
        if let Some(unknown) = unknown {
            self.list.problems = unknown.clone();
        }
        if has_news || facts.is_last {
            self.write_list(main, facts);
        }
    }

    fn fired(
        &mut self,
        main: &mut Recording,
        (firing, reason): (&Firing, &KeptReason),
        facts: &mut StepFacts<'_>,
    ) {
        self.list.fired += 1;
        let reason = reason.clone();
        match self.windows.moment(firing.at) {
            Next::Extend { to } => {
                if let Some(part) = &mut self.part {
                    part.to = to;
                    part.window.to_ns = reasons::utc(main, to);
                }
            }
            Next::Open { from, to, continues } => {
                if let Some(part) = self.part.as_mut().filter(|_| continues) {
                    part.to = firing.at;
                    part.window.to_ns = reasons::utc(main, firing.at);
                }
                self.finish(main, facts);
                self.open(main, (from, to), continues, facts.rules);
            }
        }
        match &mut self.part {
            Some(part) if part.window.reasons.len() < REASONS_MAX => {
                part.window.reasons.push(reason);
            }
            Some(part) => part.window.more_reasons += 1,
            None => self.list.not_kept += 1,
        }
    }

    /// A span that fired before has ended: its duration is known now.
    fn ended(&mut self, main: &Recording, end: SpanEnd) {
        let open = self.part.as_mut().map(|part| &mut part.window);
        let windows = open.into_iter().chain(self.list.windows.iter_mut().rev().take(REASONS_MAX));
        let mut reasons = windows.flat_map(|window| &mut window.reasons);
        if let Some(reason) = reasons.find(|reason| reason.number == end.number) {
            reason.duration_ns = Some(reasons::ns(main, end.ticks));
            reason.is_over = true;
        }
    }

    fn open(
        &mut self,
        main: &mut Recording,
        (from, to): (u64, u64),
        continues: bool,
        rules: &Rules,
    ) {
        let on_disk = self.list.windows.iter().filter(|window| !window.removed).count() as u64;
        let left = self.options.disk_bytes_max.saturating_sub(self.disk_bytes);
        if self.options.keeps_first && (on_disk >= self.options.windows_max || left == 0) {
            return;
        }
        if on_disk >= self.options.windows_max {
            self.remove_oldest();
        }
        self.parts += 1;
        let name = format!("spike-{:04}", self.parts);
        let most = if self.options.keeps_first { left } else { self.options.disk_bytes_max };
        let mut window = KeptWindow {
            name,
            from_ns: reasons::utc(main, from),
            to_ns: reasons::utc(main, to),
            continues,
            ..KeptWindow::default()
        };
        if from < self.start {
            window.short.push("the recording had not begun before".to_owned());
        }
        match Part::new(main, &self.root.join(&window.name), (from, to), most, window) {
            Ok(mut part) => {
                part.begins_at(&self.retention);
                part.write_names(&main.classes, (self.names_class, &rules.names_at(from)));
                part.write_introductions(&main.introduced, from);
                self.part = Some(part);
            }
            Err(error) => main.problem(error.to_string()),
        }
    }

    /// Ends the open window.
    fn finish(&mut self, main: &mut Recording, facts: &mut StepFacts<'_>) {
        let Some(mut part) = self.part.take() else { return };
        let until = (u64::MAX, true);
        part.write(&self.retention, &main.classes, &mut self.plans, until);
        let mut traced = (facts.traced)();
        traced.append(self.gone.clone());
        match part.finish_window(&self.retention, traced) {
            Ok((window, report)) => {
                self.disk_bytes = self.disk_bytes.saturating_add(window.bytes);
                report.problems.into_iter().for_each(|problem| main.problem(problem));
                facts.rules.tell(&KeepNotice::Window(&window, &self.root));
                if self.list.windows.len() >= LIST_MAX {
                    self.list.windows.remove(0);
                }
                self.list.windows.push(window);
            }
            Err(error) => main.problem(error.to_string()),
        }
        self.write_list(main, facts);
    }

    /// Removes old windows while there is more on disk than allowed.
    fn make_room(&mut self) {
        let open = self.part.as_ref().map_or(0, Part::bytes);
        let most = self.options.disk_bytes_max;
        while !self.options.keeps_first
            && self.disk_bytes.saturating_add(open) > most
            && self.remove_oldest()
        {}
    }

    /// Returns false if there is none.
    fn remove_oldest(&mut self) -> bool {
        let Some(window) = self.list.windows.iter_mut().find(|window| !window.removed) else {
            return false;
        };
        window.removed = true;
        self.disk_bytes = self.disk_bytes.saturating_sub(window.bytes);
        self.list.removed += 1;
        // The name is one of this recorder's own. A window that cannot be removed is still reported as
        // removed.
        let _ = std::fs::remove_dir_all(self.root.join(&window.name));
        true
    }

    fn write_list(&mut self, main: &mut Recording, facts: &StepFacts<'_>) {
        self.list.not_judged = facts.rules.report.not_judged;
        if let Err(error) = write_list(&self.root, &self.list) {
            main.problem(error.to_string());
        }
    }
}

fn write_list(root: &Path, list: &KeptList) -> Result<(), Error> {
    replace(&root.join("kept.json"), list.to_json().as_bytes())
}
