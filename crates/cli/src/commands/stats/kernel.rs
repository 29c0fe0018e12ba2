// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the kernel did for threads and with devices: one list each.

use lateralis_analysis::Gaps;
use lateralis_model::Quality;
use lateralis_semantics::kernel::{Activity, KernelEvents};
use serde_json::Value;

use super::calls::CallTotals;
use super::mark::Trust;
use super::page::{Page, Who};

/// Everything about it.
pub struct KernelTotals {
    calls: CallTotals,
    gaps: Gaps,
}

impl KernelTotals {
    /// With where events are missing.
    pub fn new(gaps: Gaps) -> Self {
        Self { calls: CallTotals::default(), gaps }
    }

    /// One more.
    pub fn add(&mut self, activity: &Activity) {
        match activity {
            Activity::Call(call) => self.calls.add(call, &self.gaps),
        }
    }

    /// Members of the whole, each where the trace has any of it.
    pub fn json(
        &self,
        events: &KernelEvents,
        trust: Trust,
        who: Who<'_>,
    ) -> Vec<(&'static str, Value)> {
        let trust = trusted(events, trust);
        let calls = self.calls.json(events.calls().names(), trust, who);
        calls.map(|calls| ("calls", calls)).into_iter().collect()
    }

    /// The tables.
    pub fn page(&self, events: &KernelEvents, page: &mut Page<'_>, who: Who<'_>) {
        let before = page.trust;
        page.trust = trusted(events, before);
        self.calls.page(events.calls().names(), page, who);
        page.trust = before;
    }
}

/// Of events that the recorder left out some of, perhaps.
fn trusted(events: &KernelEvents, trust: Trust) -> Trust {
    match events.is_filtered() {
        true => Trust { sum: trust.sum.and(Quality::LowerBound), value: Quality::Unknown },
        false => trust,
    }
}
