// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the kernel did for threads and with devices: one list each.

use lateralis_analysis::Gaps;
use lateralis_model::{Quality, Trace};
use lateralis_semantics::kernel::{Activity, KernelEvents};

use super::block::BlockTotals;
use super::calls::CallTotals;
use super::document::Member;
use super::faults::FaultTotals;
use super::idle::IdleTotals;
use super::left_out::LeftOut;
use super::mark::Trust;
use super::memory::MemoryTotals;
use super::network::NetworkTotals;
use super::page::{Page, Who};

/// Everything about it.
#[derive(Default)]
pub struct KernelTotals {
    calls: CallTotals,
    block: BlockTotals,
    faults: FaultTotals,
    network: NetworkTotals,
    idle: IdleTotals,
    memory: MemoryTotals,
    gaps: Gaps,
    /// Whether the kernel's events are those of recorded programs: what devices and processors do
    /// beside them is not there.
    is_of_programs: bool,
}

impl KernelTotals {
    /// With where events are missing, of a trace.
    pub fn new(gaps: Gaps, trace: &Trace) -> Self {
        let mut classes = 0..trace.stream_classes.len() as u32;
        let is_of_programs = classes.any(|class| trace.is_of_programs(class));
        Self { gaps, is_of_programs, ..Self::default() }
    }

    /// One more.
    pub fn add(&mut self, activity: &Activity) {
        match activity {
            Activity::Call(call) => self.calls.add(call, &self.gaps),
            Activity::Request(request) => self.block.add(request, &self.gaps),
            Activity::Merge(device) => self.block.merge(*device),
            Activity::Fault(fault) => self.faults.add(fault),
            Activity::Packet(packet) => self.network.add(packet),
            Activity::Idle(stay) => self.idle.add(stay, &self.gaps),
            Activity::Memory(allocation) => self.memory.add(allocation),
        }
    }

    /// Members of the whole, each where the trace has any of it.
    pub fn json<'a>(
        &'a self,
        events: &KernelEvents,
        trust: Trust,
        who: Who<'a>,
    ) -> Vec<(&'static str, Member<'a>)> {
        let trust = trusted(events, trust);
        let of_all = self.trust_of_all(trust);
        let devices = events.network_devices().names();
        let all = [
            ("calls", self.calls.json(events.calls().names(), trust, who).map(Member::Value)),
            ("block", self.block.json(of_all).map(Member::Value)),
            ("page_faults", self.faults.json(trust, who)),
            ("network", self.network.json(devices, of_all).map(Member::Value)),
            ("cpu_idle", self.idle.json(of_all).map(Member::Value)),
            ("memory", self.memory.json(trust, who)),
        ];
        all.into_iter().filter_map(|(name, of)| Some((name, of?))).collect()
    }

    /// What is left out of all of them.
    pub fn left_out(&self, events: &KernelEvents) -> Vec<LeftOut> {
        let mut all = Vec::from(self.calls.left_out(events.calls()));
        all.extend([
            self.block.left_out(),
            self.faults.left_out(),
            NetworkTotals::left_out(events.network_devices()),
            self.idle.left_out(),
            self.memory.left_out(),
        ]);
        all
    }

    /// The tables.
    pub fn page(&self, events: &KernelEvents, page: &mut Page<'_>, who: Who<'_>) {
        let before = page.trust;
        page.trust = trusted(events, before);
        let trust = page.trust;
        self.calls.page(events.calls().names(), page, who);
        page.trust = self.trust_of_all(trust);
        self.block.page(page);
        self.network.page(events.network_devices().names(), page);
        self.idle.page(page);
        page.trust = trust;
        self.faults.page(page, who);
        self.memory.page(page, who);
        page.trust = before;
    }
}

impl KernelTotals {
    /// Of what devices and processors do, for whomever.
    fn trust_of_all(&self, trust: Trust) -> Trust {
        trust.without(u64::from(self.is_of_programs))
    }
}

/// Of events that the recorder left out some of, perhaps.
fn trusted(events: &KernelEvents, trust: Trust) -> Trust {
    match events.is_filtered() {
        true => Trust { sum: trust.sum.and(Quality::LowerBound), value: Quality::Unknown },
        false => trust,
    }
}
