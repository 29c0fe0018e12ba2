// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a session that keeps windows, or makes chunks, does besides after each flush.

use super::super::keep::{KeepObserver, StepFacts};
use super::{Recorded, Session};
use crate::report::Process;

/// Processes that are traced now.
fn traced(areas: &[Recorded]) -> Vec<Process> {
    areas.iter().flat_map(|one| one.area.processes.clone().into_report()).collect()
}

impl Session {
    /// Tells `observer` of conditions that fired, of windows that were kept, and of conditions that
    /// cannot fire. Context: a session with [`RecordOptions::rules`], before it runs.
    ///
    /// [`RecordOptions::rules`]: crate::RecordOptions::rules
    pub fn on_keep(&mut self, observer: KeepObserver) {
        if let Some(rules) = &mut self.recording.rules {
            rules.observe(observer);
        }
    }

    /// Judges what all rings held at clock `now`; ends a chunk that is long enough.
    pub(super) fn keep(&mut self, now: u64, is_last: bool) {
        let judged = self.judge(now, is_last);
        let processes = || traced(&self.areas);
        if let Some(mut chunks) = self.recording.chunks.take() {
            chunks.step(&mut self.recording, &processes, (now, is_last));
            self.recording.chunks = Some(chunks).filter(|_| !is_last);
            return;
        }
        let Some(judged) = judged else { return };
        let Some(mut keeper) = self.recording.keeper.take() else { return };
        let Some(mut rules) = self.recording.rules.take() else { return };
        let processes = || traced(&self.areas);
        let mut facts =
            StepFacts { judged: &judged, rules: &mut rules, processes: &processes, is_last };
        keeper.step(&mut self.recording, &mut facts);
        self.recording.rules = Some(rules);
        self.recording.keeper = Some(keeper).filter(|_| !is_last);
    }

    /// Remembers the processes of an area that goes.
    pub(super) fn keep_gone(&mut self, recorded: &Recorded) {
        let processes = || recorded.area.processes.clone().into_report();
        if let Some(keeper) = &mut self.recording.keeper {
            keeper.gone(processes());
        }
        if let Some(chunks) = &mut self.recording.chunks {
            chunks.gone(processes());
        }
    }

    /// Whether it is time to flush, so that the next chunk can begin.
    pub(super) fn chunk_is_full(&self) -> bool {
        self.recording.chunks.as_ref().is_some_and(|chunks| chunks.is_full())
    }
}
