// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A recording that is looked at while it is made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lateralis_lanes::Lost;
use lateralis_store::{Recording, Tail};
use lateralis_units::Nanos;
use serde_json::json;

use crate::answer::Problem;
use crate::control::Control;
use crate::flow::ImageSource;
use crate::growth::{Again, Growth, Opened};
use crate::host::Host;
use crate::indexing::{Grow, Now};
use crate::sections::Sections;
use crate::session::{Common, Session};

/// Losses that pages are told one by one.
const LOSSES_KEPT: usize = 1000;

/// How to look.
#[derive(Debug, Clone, Copy)]
pub struct LiveOptions {
    /// Bytes for what stands on lanes.
    pub memory_bytes: usize,
    /// Whether it is recorded on this machine, so that its times are ours.
    pub is_here: bool,
    /// Whether bytes that are [needless](Live::needless) may go: then nothing that was forgotten is read
    /// again.
    pub is_let_go: bool,
    /// Events that a script which is behind looks at until it tells what it found: `None` where that is
    /// by time alone.
    pub turn_events: Option<u64>,
}

/// Takes what comes, round by round, and shows it.
pub struct Live {
    path: PathBuf,
    grow: Grow,
    host: Arc<Host>,
    common: Arc<Common>,
    cached: Arc<Mutex<Option<Opened>>>,
    losses: Vec<(u64, Lost)>,
    serial: u64,
    is_here: bool,
    is_let_go: bool,
    images: Option<ImageSource>,
}

impl Live {
    /// Of a recording, to be shown by a host.
    #[must_use]
    pub fn new(path: &Path, options: LiveOptions, host: Arc<Host>) -> Self {
        Self::asking(path, options, host, None, None)
    }

    /// As [`Live::new`], with control of the recorder and with sections of statistics for the page.
    #[must_use]
    pub fn asking(
        path: &Path,
        options: LiveOptions,
        host: Arc<Host>,
        control: Option<Box<dyn Control>>,
        sections: Option<Arc<dyn Sections>>,
    ) -> Self {
        let mut common = Common::told_to(&host, options.turn_events).with_sections(sections);
        common.control = control;
        let common = Arc::new(common);
        Self {
            path: path.to_owned(),
            grow: Grow::new(path, options.memory_bytes),
            host,
            common,
            cached: Arc::default(),
            losses: Vec::new(),
            serial: 0,
            is_here: options.is_here,
            is_let_go: options.is_let_go,
            images: None,
        }
    }

    /// With stacks of samples: before the first round.
    #[must_use]
    pub fn with_images(self, images: ImageSource) -> Self {
        let grow = self.grow.with_images(images.clone());
        Self { grow, images: Some(images), ..self }
    }

    /// How far the recording has been read.
    pub fn tail(&mut self) -> &mut Tail {
        self.grow.tail()
    }

    /// Bytes of what stands on lanes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.grow.bytes()
    }

    /// Of each stream file the byte in front of which nothing is needed any more.
    #[must_use]
    pub fn needless(&self) -> Option<Arc<BTreeMap<String, u64>>> {
        self.grow.needless()
    }

    /// Takes what has come, up to a moment or all, and shows it.
    pub fn round(&mut self, recording: &Recording, until: Option<Nanos>) {
        let round = self.grow.round(recording, until);
        if round.events > 0 || round.is_news || self.serial == 0 {
            self.show(true);
        }
    }

    fn show(&mut self, is_live: bool) {
        let Some(now) = self.grow.now() else {
            self.host.progress("waiting for the first event", 0, None);
            return;
        };
        let Now { lanes, lists, forgotten, late, losses, marks, shown, clock } = now;
        let next = self.losses.last().map_or(0, |(number, _)| number + 1);
        self.losses.extend((next..).zip(losses));
        let most = self.losses.len().saturating_sub(LOSSES_KEPT);
        self.losses.drain(..most);
        self.serial += 1;
        let meta = lanes.meta();
        let again = Again {
            marks: Arc::new(marks),
            shown,
            clock,
            end: meta.origin.saturating_add_unsigned(meta.end),
            cached: Arc::clone(&self.cached),
        };
        let growth = Growth {
            serial: self.serial,
            is_live,
            lists,
            forgotten,
            late,
            losses: Arc::new(self.losses.clone()),
            is_here: self.is_here,
            is_let_go: self.is_let_go,
            again,
        };
        let common = Arc::clone(&self.common);
        let session = Session::grown(self.path.clone(), lanes, common, growth, self.images.clone());
        self.common.scripts.follow(&session);
        self.host.show(Arc::new(session));
    }

    /// Whether there is anything to be seen.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.serial > 0
    }

    /// Nothing will be added, for this reason.
    pub fn end(&mut self, is_complete: bool, why: Option<&str>) {
        self.show(false);
        if self.serial == 0 && !is_complete {
            let why = why.unwrap_or_default();
            self.host.fail(Problem::new("nothing was recorded", why, ""));
        }
        self.host.say(json!({ "event": "ended", "complete": is_complete, "why": why }));
    }
}
