// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a session that keeps windows, or makes chunks, does besides after each flush.

use super::super::keep::{KeepObserver, StepFacts, Traced};
use super::{Recorded, Session};

/// What is traced now.
fn traced(areas: &[Recorded]) -> Traced {
    let mut traced = Traced::default();
    areas.iter().for_each(|one| traced.add(&one.area));
    traced
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

    /// Remembers an area that goes, and its processes.
    pub(super) fn keep_gone(&mut self, recorded: &Recorded) {
        if let Some(keeper) = &mut self.recording.keeper {
            keeper.gone(&recorded.area);
        }
        if let Some(chunks) = &mut self.recording.chunks {
            chunks.gone(&recorded.area);
        }
    }

    /// Whether it is time to flush, so that the next chunk can begin.
    pub(super) fn chunk_is_full(&self) -> bool {
        self.recording.chunks.as_ref().is_some_and(|chunks| chunks.is_full())
    }
}
