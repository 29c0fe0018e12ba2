// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What processors do when they have nothing to do: idle states.

use std::collections::BTreeMap;

use lateralis_model::{Event, EventClass, Host, StreamIndex};
use lateralis_units::Nanos;

use super::{Activity, fields};
use crate::facts::At;

/// Processors that are followed.
const CPUS_MAX: usize = 1 << 16;
/// The processor leaves its idle state [include/trace/events/power.h, `PWR_EVENT_EXIT`].
const EXIT: u32 = u32::MAX;

/// A stay in an idle state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleStay {
    /// In which stream its last event is.
    pub stream: StreamIndex,
    /// The processor.
    pub cpu: u32,
    /// Which state: the deeper, the greater; `None`: it was entered before anybody looked.
    pub state: Option<u32>,
    /// When it was entered.
    pub begin: Option<Nanos>,
    /// When it was left; `None`: it had not when the trace ended, or that is missing.
    pub end: Option<Nanos>,
    /// Up to when it is known to have lasted, of one that was not left.
    pub seen_until: Option<Nanos>,
}

/// What events of a class say of idle states.
#[derive(Debug)]
pub struct IdleRule {
    host: Host,
    state: usize,
    cpu: usize,
}

/// Follows processors, in the order of time.
#[derive(Debug, Default)]
pub struct IdleStates {
    open: BTreeMap<u32, (u32, Nanos, StreamIndex)>,
}

/// What events of a class say, if anything.
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
            // Where the end of one is missing, it did not last longer than until the next.
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
