// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans, channels, machines and counters of a trace, by number.

use std::collections::HashMap;

use lateralis_model::Event;
use lateralis_model::role::{KEY_CATEGORY, Keyed};

use super::keys::{KeyPlan, Keys};
use super::plan::Step;
use super::{At, Owner};

/// A kind of span, or a message channel.
#[derive(Debug, Default)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Fields that form the key; empty if spans are distinguished by thread.
    pub keys: Vec<String>,
    /// For a channel: whether a message sent once may be received several times.
    pub fans_out: bool,
    /// Whether spans with a key are drawn beside the spans of threads instead of being nested in them.
    /// True for formats with a separate kind of span for this, as Chrome's asynchronous events, which are
    /// identified by category and id.
    pub is_beside_threads: bool,
    /// Whether its spans belong to threads by convention, as system calls: without a thread their begins
    /// and ends cannot be matched.
    pub is_of_thread: bool,
    /// Whether the recorder dropped some of its events by a filter.
    pub is_filtered: bool,
    /// Whether the recorder kept some of its events, or would have.
    pub is_recorded: bool,
    pub(super) numbers: Keys,
}

impl Kind {
    /// Human-readable key: `0x7f00`, `vda 2048`; `cpu3` for a CPU.
    #[must_use]
    pub fn key_text(&self, key: u64) -> String {
        self.numbers.text(key)
    }
}

const INSTANCES_MAX: usize = Kinds::INSTANCES_MAX;

/// Machines or counters of one name that are distinguished by key, each with its own number.
#[derive(Debug, Default)]
struct Instances {
    keys: Keys,
    /// Their numbers, by the number of the key.
    numbers: HashMap<u64, u32>,
}

/// A machine that is in one state at a time: one for each value of its keys, or without keys one for each
/// thread (or CPU, if the thread is unknown).
#[derive(Debug, Default)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Key, for one of several machines of the name; the one without key and states represents all of
    /// them.
    pub key: Option<String>,
    /// Whether the recorder dropped some of its events by a filter.
    pub is_filtered: bool,
    /// The states seen so far, as text.
    pub states: Vec<String>,
    numbers: HashMap<String, u32>,
    instances: Instances,
}

/// A name followed by its key: `mode[3]`.
fn label(name: &str, key: Option<&str>) -> String {
    key.map_or_else(|| name.to_owned(), |key| format!("{name}[{key}]"))
}

impl Machine {
    /// Its name, followed by the key: `mode[3]`.
    #[must_use]
    pub fn label(&self) -> String {
        label(&self.name, self.key.as_deref())
    }

    /// The number of a state.
    pub(super) fn state(&mut self, text: String) -> u32 {
        if let Some(number) = self.numbers.get(&text) {
            return *number;
        }
        let number = self.states.len() as u32;
        self.states.push(text.clone());
        self.numbers.insert(text, number);
        number
    }
}

/// A counter that events sample.
#[derive(Debug, Default)]
pub struct Counter {
    /// Its name in the schema; otherwise names of event and field: `app:QUEUE.free`.
    pub name: String,
    /// Key, for one of several counters of the name.
    pub key: Option<String>,
    /// Whether it belongs to a CPU rather than to the thread running there, as Linux's `cpu_frequency`.
    pub is_of_cpu: bool,
    /// Whether the recorder dropped some of its events by a filter.
    pub is_filtered: bool,
    instances: Instances,
}

impl Counter {
    /// Its name, followed by the key: `slots[3]`.
    #[must_use]
    pub fn label(&self) -> String {
        label(&self.name, self.key.as_deref())
    }
}

/// Catalogue of all kinds; facts refer to them by index.
#[derive(Debug, Default)]
pub struct Kinds {
    /// Kinds of spans.
    pub spans: Vec<Kind>,
    /// Channels of messages.
    pub channels: Vec<Kind>,
    /// Machines with states.
    pub machines: Vec<Machine>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Number of states and samples whose key is beyond the first [`Kinds::INSTANCES_MAX`] of a name;
    /// they are in no machine and no counter.
    pub left_out: u64,
}

impl Kinds {
    /// Largest number of machines or counters of one name that are distinguished by key; further ones are
    /// left out.
    pub const INSTANCES_MAX: usize = 1 << 14;

    /// Whether a message sent once on a channel may be received several times.
    #[must_use]
    pub fn fans_out(&self, channel: u32) -> bool {
        self.channels.get(channel as usize).is_some_and(|channel| channel.fans_out)
    }

    pub(super) fn span(&mut self, keyed: &Keyed) -> u32 {
        named(&mut self.spans, keyed)
    }

    pub(super) fn channel(&mut self, keyed: &Keyed) -> u32 {
        named(&mut self.channels, keyed)
    }

    pub(super) fn machine(&mut self, name: &str) -> u32 {
        let is_it = |machine: &Machine| machine.key.is_none() && machine.name == name;
        if let Some(index) = self.machines.iter().position(is_it) {
            return index as u32;
        }
        self.machines.push(Machine { name: name.to_owned(), ..Machine::default() });
        (self.machines.len() - 1) as u32
    }

    pub(super) fn counter(&mut self, event: &str, field: &str, name: Option<&str>) -> u32 {
        let name = name.map_or_else(|| format!("{event}.{field}"), str::to_owned);
        let is_it = |counter: &Counter| counter.key.is_none() && counter.name == name;
        if let Some(index) = self.counters.iter().position(is_it) {
            return index as u32;
        }
        let is_of_cpu = event.ends_with("cpu_frequency");
        self.counters.push(Counter { name, is_of_cpu, ..Counter::default() });
        (self.counters.len() - 1) as u32
    }

    /// The machine of this name for an event; `None` if there are too many.
    pub(super) fn machine_of(
        &mut self,
        machine: u32,
        plan: &KeyPlan,
        event: &Event<'_>,
        at: &At,
    ) -> Option<u32> {
        let next = self.machines.len() as u32;
        let base = &mut self.machines[machine as usize];
        let Some((number, key)) = base.instances.number((machine, next), plan, event, at) else {
            self.left_out += 1;
            return None;
        };
        if let Some(key) = key {
            let (name, is_filtered) = (base.name.clone(), base.is_filtered);
            self.machines.push(Machine { name, key: Some(key), is_filtered, ..Machine::default() });
        }
        Some(number)
    }

    /// The counter of this name for an event; `None` if there are too many.
    pub(super) fn counter_of(
        &mut self,
        counter: u32,
        plan: &KeyPlan,
        event: &Event<'_>,
        at: &At,
    ) -> Option<u32> {
        let next = self.counters.len() as u32;
        let base = &mut self.counters[counter as usize];
        let Some((number, key)) = base.instances.number((counter, next), plan, event, at) else {
            self.left_out += 1;
            return None;
        };
        if let Some(key) = key {
            let key = Some(key);
            let Counter { is_of_cpu, is_filtered, .. } = *base;
            let name = base.name.clone();
            self.counters.push(Counter { name, key, is_of_cpu, is_filtered, ..Counter::default() });
        }
        Some(number)
    }

    /// Whether the recorder dropped some events of spans of which it kept others.
    #[must_use]
    pub fn has_filtered_spans(&self) -> bool {
        self.spans.iter().any(|kind| kind.is_filtered && kind.is_recorded)
    }

    /// Marks the spans of a step as belonging to threads by convention.
    pub(super) fn set_of_thread(&mut self, step: &Step) {
        if let Step::Begin { span, .. } | Step::End { span, .. } = step {
            let kind = &mut self.spans[*span as usize];
            kind.is_of_thread |= kind.keys.is_empty();
        }
    }

    /// Notes that the recorder kept events with this meaning.
    pub(super) fn set_recorded(&mut self, step: &Step) {
        if let Step::Begin { span, .. }
        | Step::End { span, .. }
        | Step::Whole { span, .. }
        | Step::CallBegins { span, .. }
        | Step::Pending { span, .. } = *step
        {
            self.spans[span as usize].is_recorded = true;
        }
    }

    /// Notes that the recorder dropped events with this meaning.
    pub(super) fn set_filtered(&mut self, step: &Step) {
        match *step {
            Step::Begin { span, .. }
            | Step::End { span, .. }
            | Step::Whole { span, .. }
            | Step::CallBegins { span, .. }
            | Step::Pending { span, .. } => {
                self.spans[span as usize].is_filtered = true;
            }
            Step::Send { channel, .. } | Step::Receive { channel, .. } => {
                self.channels[channel as usize].is_filtered = true;
            }
            Step::State { machine, .. } => self.machines[machine as usize].is_filtered = true,
            Step::Level { counter, .. } => self.counters[counter as usize].is_filtered = true,
            Step::Switch(_)
            | Step::Leaves { .. }
            | Step::Wake(_)
            | Step::Interrupt(..)
            | Step::CallEnds { .. }
            | Step::Thread { .. } => {}
        }
    }

    /// Owner of a machine whose state an event reports: without keys, the thread.
    #[must_use]
    pub fn owner_of_state(&self, machine: u32, at: &At) -> Owner {
        match self.machines.get(machine as usize).and_then(|machine| machine.key.as_ref()) {
            Some(_) => Owner::of_process(at),
            None => at.owner(),
        }
    }

    /// Whether a counter belongs to a CPU rather than to the thread running there.
    pub(super) fn is_of_cpu(&self, counter: u32) -> bool {
        self.counters.get(counter as usize).is_some_and(|counter| counter.is_of_cpu)
    }

    /// Owner of a counter: a process, as several of its threads may sample it; or a CPU.
    #[must_use]
    pub fn owner_of_level(&self, counter: u32, at: &At) -> Owner {
        match (self.is_of_cpu(counter), at.cpu) {
            (true, Some(cpu)) => Owner::Cpu(cpu),
            _ => Owner::of_process(at),
        }
    }
}

impl Instances {
    /// Number of the machine or counter for the key of an event: `base` without a key; `next` for a new
    /// key, whose text is then returned as well. `None` if there is no room for another.
    fn number(
        &mut self,
        (base, next): (u32, u32),
        plan: &KeyPlan,
        event: &Event<'_>,
        at: &At,
    ) -> Option<(u32, Option<String>)> {
        let Some(key) = self.keys.number(plan, event, at) else {
            return Some((base, None));
        };
        if let Some(number) = self.numbers.get(&key) {
            return Some((*number, None));
        }
        if self.numbers.len() >= INSTANCES_MAX {
            return None;
        }
        self.numbers.insert(key, next);
        Some((next, Some(self.keys.text(key))))
    }
}

fn named(kinds: &mut Vec<Kind>, keyed: &Keyed) -> u32 {
    let is_beside_threads = keyed.keys.iter().any(|key| key == KEY_CATEGORY);
    if let Some(index) = kinds.iter().position(|kind| kind.name == keyed.name) {
        kinds[index].fans_out |= keyed.fans_out;
        kinds[index].is_beside_threads |= is_beside_threads;
        return index as u32;
    }
    let (name, keys, fans_out) = (keyed.name.clone(), keyed.keys.clone(), keyed.fans_out);
    kinds.push(Kind { name, keys, fans_out, is_beside_threads, ..Kind::default() });
    (kinds.len() - 1) as u32
}
