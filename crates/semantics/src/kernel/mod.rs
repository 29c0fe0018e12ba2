// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernel activity for threads and devices: returned calls, disk requests, page faults …
//!
//! ```text
//! names of classes ─► rule of each, or none ── event, with its thread ─► Activity
//! ```
//!
//! Complements [`Facts`](crate::facts::Facts), which have what all analyses share: each kind of activity
//! has numbers of its own, and consumers enable the kinds that they need. Whether the events of a class
//! mean anything here is decided once per class. Memory: proportional to open items, bounded.

pub mod block;
pub mod calls;
pub mod faults;
mod fields;
pub mod idle;
pub mod memory;
pub mod network;
pub mod numbers;

use lateralis_model::role::{FILTERED, SOME};
use lateralis_model::{EnvValue, Event, EventClass, Host, Trace};
use lateralis_units::Nanos;

use crate::Successions;
use crate::facts::At;
use block::{BlockRule, Device, Request, Requests};
use calls::{Call, CallRule, Calls};
use faults::{Fault, FaultRule};
use idle::{IdleRule, IdleStates, IdleStay};
use memory::{Allocation, Blocks, MemoryRule};
use network::{DevicePacket, NetworkDevices, PacketRule};

/// Kinds of activity to be reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Topics {
    /// System calls, and library calls that are recorded like them, with their results.
    pub calls: bool,
    /// Requests to block devices.
    pub block: bool,
    /// Page faults.
    pub faults: bool,
    /// Packets at network devices.
    pub network: bool,
    /// Idle states of CPUs.
    pub idle: bool,
    /// Kernel memory.
    pub memory: bool,
}

/// One activity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activity {
    /// A call returned, or is known not to have returned.
    Call(Call),
    /// A request to a block device completed, or is known not to have completed.
    Request(Request),
    /// Sectors were added to an existing request.
    Merge(Device),
    /// A page fault.
    Fault(Fault),
    /// A packet at a network device.
    Packet(DevicePacket),
    /// A CPU was in an idle state.
    Idle(IdleStay),
    /// Memory was allocated or freed.
    Memory(Allocation),
}

/// Meaning of the events of a class.
#[derive(Debug)]
enum Rule {
    Call(CallRule),
    Block(BlockRule),
    Fault(FaultRule),
    Packet(PacketRule),
    Idle(IdleRule),
    Memory(MemoryRule),
}

impl Rule {
    fn of(class: &EventClass, topics: Topics, host: Host, calls: &mut Calls) -> Option<Self> {
        let wanted = [
            topics.block.then(|| block::rule(class, host).map(Self::Block)),
            topics.faults.then(|| faults::rule(class).map(Self::Fault)),
            topics.network.then(|| network::rule(class, host).map(Self::Packet)),
            topics.idle.then(|| idle::rule(class, host).map(Self::Idle)),
            topics.memory.then(|| memory::rule(class, host).map(Self::Memory)),
            topics.calls.then(|| calls.rule(class).map(Self::Call)),
        ];
        wanted.into_iter().flatten().flatten().next()
    }
}

/// Interprets events as activities.
#[derive(Debug, Default)]
pub struct KernelEvents {
    rules: Vec<Vec<Option<Rule>>>,
    successions: Successions,
    calls: Calls,
    requests: Requests,
    devices: NetworkDevices,
    idle: IdleStates,
    blocks: Blocks,
    is_filtered: bool,
}

impl KernelEvents {
    /// Reports these kinds of activity of a trace.
    #[must_use]
    pub fn new(trace: &Trace, topics: Topics, successions: Successions) -> Self {
        let mut events = Self { successions, ..Self::default() };
        let mut rules = Vec::with_capacity(trace.stream_classes.len());
        for (index, stream) in (0..).zip(&trace.stream_classes) {
            let architecture = architecture(trace.environment_of(index));
            if topics.calls {
                events.calls.begin_stream_class(stream, architecture);
            }
            let host = trace.host_of(index);
            let rule = |class| Rule::of(class, topics, host, &mut events.calls);
            let of_stream: Vec<Option<Rule>> = stream.event_classes.iter().map(rule).collect();
            let classes = stream.event_classes.iter().zip(&of_stream);
            events.is_filtered |= classes
                .filter(|(_, rule)| rule.is_some())
                .any(|(class, _)| class.attribute(FILTERED) == Some(SOME));
            rules.push(of_stream);
        }
        events.rules = rules;
        events
    }

    /// Whether any class has a meaning here.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.rules.iter().flatten().any(Option::is_some)
    }

    /// Whether events of this class have a meaning here.
    #[must_use]
    #[inline]
    pub fn wants(&self, stream_class: u32, class: u32) -> bool {
        let of_stream = self.rules.get(stream_class as usize);
        of_stream.and_then(|of| of.get(class as usize)).is_some_and(Option::is_some)
    }

    /// Whether the recorder dropped some events of a class that has a meaning here.
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        self.is_filtered
    }

    /// The known calls.
    #[must_use]
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The known network devices.
    #[must_use]
    pub fn network_devices(&self) -> &NetworkDevices {
        &self.devices
    }

    /// Reports the activity of an event. Events must come in time order; `at` is the time and place of
    /// the event, without the thread if that is in doubt.
    pub fn event(&mut self, event: &Event<'_>, at: &At, see: &mut dyn FnMut(&Activity)) {
        if let Some(ended) = self.successions.comes(at.time) {
            self.finish(Some(ended), see);
        }
        let of_stream = self.rules.get(event.stream_class_index as usize);
        let rule = of_stream.and_then(|of| of.get(event.class_index as usize));
        match rule {
            Some(Some(Rule::Call(rule))) => self.calls.event(rule, event, at, see),
            Some(Some(Rule::Block(rule))) => self.requests.event(rule, event, at, see),
            Some(Some(Rule::Fault(rule))) => see(&Activity::Fault(rule.fault(event, at))),
            Some(Some(Rule::Idle(rule))) => self.idle.event(rule, event, at, see),
            Some(Some(Rule::Packet(rule))) => {
                let packet = self.devices.packet(rule, event, at);
                packet.into_iter().for_each(|packet| see(&Activity::Packet(packet)));
            }
            Some(Some(Rule::Memory(rule))) => {
                let allocation = self.blocks.event(rule, event, at);
                allocation.into_iter().for_each(|of| see(&Activity::Memory(of)));
            }
            Some(None) | None => {}
        }
    }

    /// Ends the trace.
    pub fn finish(&mut self, ended: Option<Nanos>, see: &mut dyn FnMut(&Activity)) {
        self.calls.finish(see);
        self.requests.finish(see);
        self.idle.finish(ended, see);
        self.blocks = Blocks::default();
    }
}

fn architecture(environment: &[(String, EnvValue)]) -> Option<&str> {
    let mut known = environment.iter().filter(|(key, _)| key == "architecture" || key == "machine");
    known.find_map(|(_, value)| value.as_text())
}
