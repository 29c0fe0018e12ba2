// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The programs in the report of a window or chunk.

use super::super::area::LiveArea;
use crate::report::{self, Process};

/// Maximum number of processes, and of areas, that are kept after their end.
const GONE_MAX: usize = 1024;

/// Areas and their processes.
#[derive(Debug, Default, Clone)]
pub(in super::super) struct Traced {
    pub(super) processes: Vec<Process>,
    /// Enabled events and filters, so that a reader knows which results are incomplete.
    pub(super) areas: Vec<report::Area>,
}

impl Traced {
    /// Adds an area in its current state.
    pub(in super::super) fn add(&mut self, area: &LiveArea) {
        self.processes.extend(area.processes.clone().into_report());
        self.areas.push(area.describe());
    }

    /// Adds an area that is removed; the oldest ones beyond the limit are dropped.
    pub(super) fn remember(&mut self, area: &LiveArea) {
        self.add(area);
        let extra = self.processes.len().saturating_sub(GONE_MAX);
        self.processes.drain(..extra);
        let extra = self.areas.len().saturating_sub(GONE_MAX);
        self.areas.drain(..extra);
    }

    /// Appends all of another one.
    pub(super) fn append(&mut self, other: Self) {
        self.processes.extend(other.processes);
        self.areas.extend(other.areas);
    }
}
