// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a session that keeps windows does besides: after each flush it has them judged.

use super::super::keep::{KeepObserver, StepFacts};
use super::Session;
use crate::options::Progress;
use crate::report::Process;

impl Session {
    /// Tells `observer` of windows that were kept, and of conditions that cannot fire. Context:
    /// a session with [`RecordOptions::keep`], before it runs.
    ///
    /// [`RecordOptions::keep`]: crate::RecordOptions::keep
    pub fn on_keep(&mut self, observer: KeepObserver) {
        if let Some(keeper) = &mut self.recording.keeper {
            keeper.observe(observer);
        }
    }

    /// Judges what all rings held at clock `now`.
    pub(super) fn keep(&mut self, now: u64, is_last: bool) {
        let Some(mut keeper) = self.recording.keeper.take() else { return };
        let lost = self.progress(&Progress::default()).lost;
        let areas = &self.areas;
        let processes = || -> Vec<Process> {
            areas.iter().flat_map(|one| one.area.processes.clone().into_report()).collect()
        };
        let facts = StepFacts { now, lost, processes: &processes, is_last };
        keeper.step(&mut self.recording, &facts);
        if !is_last {
            self.recording.keeper = Some(keeper);
        }
    }
}
