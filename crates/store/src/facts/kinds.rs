// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The spans, channels, machines and counters that a trace can have, by number.

use std::collections::HashMap;

use lateralis_model::role::Keyed;

use super::keys::Keys;

/// A kind of span, or a channel of messages.
#[derive(Debug, Default)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// The fields that tell one from another; empty where their thread does.
    pub keys: Vec<String>,
    /// Of a channel: whether what left once may arrive several times.
    pub fans_out: bool,
    pub(super) numbers: Keys,
}

impl Kind {
    /// A key as people read it: `0x7f00`, `vda 2048`; `cpu3` for a processor.
    #[must_use]
    pub fn key_text(&self, key: u64) -> String {
        self.numbers.text(key)
    }
}

/// A machine that is in one state at a time, one for each thread (or processor, where
/// nobody knows the thread).
#[derive(Debug, Default)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// The states seen so far, as people read them.
    pub states: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Machine {
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

/// A level that events tell.
#[derive(Debug, Default)]
pub struct Counter {
    /// Name of the event and of its field: `app:QUEUE.free`.
    pub name: String,
    /// Whether it tells of a processor, not of who runs there: as Linux's `cpu_frequency`.
    pub is_of_cpu: bool,
}

/// All of them; facts name them by index.
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
}

impl Kinds {
    /// Whether what left once on a channel may arrive several times.
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
        if let Some(index) = self.machines.iter().position(|machine| machine.name == name) {
            return index as u32;
        }
        self.machines.push(Machine { name: name.to_owned(), ..Machine::default() });
        (self.machines.len() - 1) as u32
    }

    pub(super) fn counter(&mut self, event: &str, field: &str) -> u32 {
        let name = format!("{event}.{field}");
        if let Some(index) = self.counters.iter().position(|counter| counter.name == name) {
            return index as u32;
        }
        self.counters.push(Counter { name, is_of_cpu: event.ends_with("cpu_frequency") });
        (self.counters.len() - 1) as u32
    }
}

fn named(kinds: &mut Vec<Kind>, keyed: &Keyed) -> u32 {
    if let Some(index) = kinds.iter().position(|kind| kind.name == keyed.name) {
        kinds[index].fans_out |= keyed.fans_out;
        return index as u32;
    }
    let (name, keys) = (keyed.name.clone(), keyed.keys.clone());
    kinds.push(Kind { name, keys, fans_out: keyed.fans_out, ..Kind::default() });
    (kinds.len() - 1) as u32
}
