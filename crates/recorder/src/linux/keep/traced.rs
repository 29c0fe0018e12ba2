// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the report of a window or a chunk says of the programs whose events are in it.

use super::super::area::LiveArea;
use crate::report::{self, Process};

/// Processes, and as many areas, that are remembered after their end.
const GONE_MAX: usize = 1024;

/// Areas and their processes.
#[derive(Debug, Default, Clone)]
pub(in super::super) struct Traced {
    pub(super) processes: Vec<Process>,
    /// Which events were on, and their filters: a reader calls nothing exact that was left out.
    pub(super) areas: Vec<report::Area>,
}

impl Traced {
    /// An area as it is now.
    pub(in super::super) fn add(&mut self, area: &LiveArea) {
        self.processes.extend(area.processes.clone().into_report());
        self.areas.push(area.describe());
    }

    /// The same of one that goes: the oldest of many are forgotten.
    pub(super) fn remember(&mut self, area: &LiveArea) {
        self.add(area);
        let extra = self.processes.len().saturating_sub(GONE_MAX);
        self.processes.drain(..extra);
        let extra = self.areas.len().saturating_sub(GONE_MAX);
        self.areas.drain(..extra);
    }

    /// All of another one as well.
    pub(super) fn append(&mut self, other: Self) {
        self.processes.extend(other.processes);
        self.areas.extend(other.areas);
    }
}
