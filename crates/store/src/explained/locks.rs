// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Locks and their owners: spans `X_wait` wait for the objects that spans `X_held` hold, and some waits
//! of the C library (tracer/preload) are ended by events of another name.

use lateralis_model::Event;

use crate::facts::Kinds;

/// Fields that identify the owner of a lock rather than the lock.
const WHOSE: [&str; 8] = ["thread", "process", "tid", "pid", "vtid", "vpid", "owner", "holder"];

/// Waits of the preload library: the span, the field that identifies the object, and the events that end
/// the wait.
const SIGNALS: [(&str, &str, &[&str]); 4] = [
    ("cond_wait", "condition", &["mutex:COND_SIGNAL", "mutex:COND_BROADCAST"]),
    ("sem_wait", "semaphore", &["mutex:SEM_POST"]),
    ("thread_join", "handle", &["thread:EXIT"]),
    // The last thread to arrive releases all.
    ("barrier_wait", "barrier", &["mutex:BARRIER_WAIT"]),
];

/// Role of a kind of span in waiting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Part {
    /// None.
    #[default]
    None,
    /// It waits.
    Waits(u32, Vec<String>),
    /// It holds an object that others wait for.
    Holds(u32, Vec<String>),
}

/// Role by kind of span, and the fields that identify the lock.
#[derive(Debug, Default)]
pub struct Locks {
    parts: Vec<Part>,
    /// Name of the event, family, field.
    signals: Vec<(&'static str, u32, &'static str)>,
}

impl Locks {
    /// For a trace with these kinds of spans.
    pub fn new(kinds: &Kinds) -> Self {
        let mut parts = vec![Part::None; kinds.spans.len()];
        let mut signals = Vec::new();
        for (index, kind) in kinds.spans.iter().enumerate() {
            // The number of the waiting kind identifies the family.
            let family = index as u32;
            if let Some(signal) = SIGNALS.iter().find(|signal| signal.0 == kind.name) {
                parts[index] = Part::Waits(family, vec![signal.1.to_owned()]);
                signals.extend(signal.2.iter().map(|event| (*event, family, signal.1)));
                continue;
            }
            let Some(stem) = kind.name.strip_suffix("_wait") else {
                continue;
            };
            let held = format!("{stem}_held");
            if let Some(holding) = kinds.spans.iter().position(|kind| kind.name == held) {
                let keys = &kinds.spans[holding].keys;
                let which: Vec<String> =
                    keys.iter().filter(|key| !WHOSE.contains(&key.as_str())).cloned().collect();
                parts[index] = Part::Waits(family, which.clone());
                parts[holding] = Part::Holds(family, which);
            }
        }
        Self { parts, signals }
    }

    /// Role of a kind of span.
    pub fn part(&self, span: u32) -> &Part {
        self.parts.get(span as usize).unwrap_or(&Part::None)
    }

    /// Family and object of an event that ends waits by itself.
    pub fn signal(&self, event: &Event<'_>) -> Option<(u32, Option<u64>)> {
        let name = event.class.name.as_str();
        let (_, family, field) = self.signals.iter().find(|signal| signal.0 == name)?;
        Some((*family, number(event, field)))
    }
}

/// Whether the spans of each kind wait for locks or hold them.
#[must_use]
pub fn has_locks(kinds: &Kinds) -> Vec<bool> {
    Locks::new(kinds).parts.iter().map(|part| *part != Part::None).collect()
}

/// Key of a lock as a number; `None` if the event lacks one of the fields.
pub fn object(event: &Event<'_>, which: &[String]) -> Option<u64> {
    let mut parts = which.iter().map(|field| number(event, field));
    let first = parts.next()??;
    parts.try_fold(first, |hash, part| {
        Some((hash ^ part?).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29))
    })
}

fn number(event: &Event<'_>, field: &str) -> Option<u64> {
    event.payload()?.get(field)?.as_u64()
}
