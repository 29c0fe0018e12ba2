// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Idle states of CPUs.

use std::collections::BTreeMap;

use lateralis_model::{Event, EventClass, Host, StreamIndex};
use lateralis_units::Nanos;

use super::{Activity, fields};
use crate::facts::At;

/// CPUs that are followed.
const CPUS_MAX: usize = 1 << 16;
/// The CPU leaves its idle state [include/trace/events/power.h, `PWR_EVENT_EXIT`].
const EXIT: u32 = u32::MAX;

/// A stay in an idle state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleStay {
    /// Stream of its last event.
    pub stream: StreamIndex,
    /// The CPU.
    pub cpu: u32,
    /// The state, greater if deeper; `None`: it was entered before the trace began.
    pub state: Option<u32>,
    /// Time at which it was entered.
    pub begin: Option<Nanos>,
    /// Time at which it was left; `None`: not left before the end of the trace, or missing.
    pub end: Option<Nanos>,
    /// For a stay that was not left: time until which it is known to have lasted.
    pub seen_until: Option<Nanos>,
}

/// Meaning of the events of a class.
#[derive(Debug)]
pub struct IdleRule {
    host: Host,
    state: usize,
    cpu: usize,
}

/// Follows CPUs, in time order.
#[derive(Debug, Default)]
pub struct IdleStates {
    open: BTreeMap<u32, (u32, Nanos, StreamIndex)>,
}

/// Rule of a class, if its events are idle states.
pub(super) fn rule(class: &EventClass, host: Host) -> Option<IdleRule> {
    let last = class.name.rsplit(':').next()?;
    ["cpu_idle", "power_cpu_idle"].contains(&last).then_some(())?;
    let (state, cpu) = (fields::place(class, &["state"])?, fields::place(class, &["cpu_id"])?);
    Some(IdleRule { host, state, cpu })
}

impl IdleStates {
    pub(super) fn event(
        &mut self,
        rule: &IdleRule,
        event: &Event<'_>,
        at: &At,
        see: &mut dyn FnMut(&Activity),
    ) {
        let number = |place| fields::number(event, Some(place)).map(|number| number as u32);
        let (Some(state), Some(cpu)) = (number(rule.state), number(rule.cpu)) else { return };
        let (cpu, stream) = (rule.host.cpu(cpu), at.stream);
        let before = self.open.remove(&cpu);
        if state != EXIT {
            // If the exit is missing, the stay ended before the next one.
            if let Some((state, begin, stream)) = before {
                see(&Activity::Idle(stay((cpu, state), begin, stream, None)));
            }
            if self.open.len() < CPUS_MAX {
                self.open.insert(cpu, (state, at.time, stream));
            }
            return;
        }
        let (state, begin) = before.map(|(state, begin, _)| (state, begin)).unzip();
        let end = Some(at.time);
        see(&Activity::Idle(IdleStay { stream, cpu, state, begin, end, seen_until: None }));
    }

    pub(super) fn finish(&mut self, ended: Option<Nanos>, see: &mut dyn FnMut(&Activity)) {
        for (cpu, (state, begin, stream)) in std::mem::take(&mut self.open) {
            see(&Activity::Idle(stay((cpu, state), begin, stream, ended)));
        }
    }
}

fn stay(
    (cpu, state): (u32, u32),
    begin: Nanos,
    stream: StreamIndex,
    until: Option<Nanos>,
) -> IdleStay {
    let (state, begin) = (Some(state), Some(begin));
    IdleStay { stream, cpu, state, begin, end: None, seen_until: until }
}
