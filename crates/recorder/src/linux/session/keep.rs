// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Steps after each flush of a session that saves windows, or makes chunks.

use super::super::keep::{KeepObserver, StepFacts, Traced};
use super::{Recorded, Session};

/// The currently traced programs.
fn traced(areas: &[Recorded]) -> Traced {
    let mut traced = Traced::default();
    areas.iter().for_each(|one| traced.add(&one.area));
    traced
}

impl Session {
    /// Reports firings, saved windows, and conditions that
    /// cannot fire to `observer`. Context: a session with [`RecordOptions::rules`], before it runs.
    ///
    /// [`RecordOptions::rules`]: crate::RecordOptions::rules
    pub fn on_keep(&mut self, observer: KeepObserver) {
        if let Some(rules) = &mut self.recording.rules {
            rules.observe(observer);
        }
    }

    /// Evaluates the content of all rings at clock `now`; ends a chunk that has reached its limit.
    pub(super) fn keep(&mut self, now: u64, is_last: bool) {
        let judged = self.judge(now, is_last);
        let traced_now = || traced(&self.areas);
        if let Some(mut chunks) = self.recording.chunks.take() {
            chunks.step(&mut self.recording, &traced_now, (now, is_last));
            self.recording.chunks = Some(chunks).filter(|_| !is_last);
            return;
        }
        let Some(judged) = judged else { return };
        let Some(mut keeper) = self.recording.keeper.take() else { return };
        let Some(mut rules) = self.recording.rules.take() else { return };
        let traced = || traced(&self.areas);
        let mut facts = StepFacts { judged: &judged, rules: &mut rules, traced: &traced, is_last };
        keeper.step(&mut self.recording, &mut facts);
        self.recording.rules = Some(rules);
        self.recording.keeper = Some(keeper).filter(|_| !is_last);
    }

    /// Remembers a removed area and its processes.
    pub(super) fn keep_gone(&mut self, recorded: &Recorded) {
        if let Some(keeper) = &mut self.recording.keeper {
            keeper.gone(&recorded.area);
        }
        if let Some(chunks) = &mut self.recording.chunks {
            chunks.gone(&recorded.area);
        }
    }

    /// Whether a flush is due so that the next chunk can begin.
    pub(super) fn chunk_is_full(&self) -> bool {
        self.recording.chunks.as_ref().is_some_and(|chunks| chunks.is_full())
    }
}
