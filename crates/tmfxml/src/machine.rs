// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scenarios: runs of a state machine.

use std::sync::Arc;

use lateralis_units::Nanos;

use crate::datum::Datum;

/// Attributes of one scenario.
const ATTRIBUTES: usize = 4096;

#[derive(Debug)]
struct Attribute {
    path: Vec<Arc<str>>,
    value: Datum,
    since: Nanos,
}

/// A run of a machine.
#[derive(Debug)]
pub(crate) struct Scenario {
    /// The state it is in.
    pub state: usize,
    /// Whether it has not taken a transition yet.
    pub is_pending: bool,
    attributes: Vec<Attribute>,
    /// When it entered the states it has been in.
    entered: Vec<(usize, Nanos)>,
}

impl Scenario {
    pub fn new(state: usize, now: Nanos) -> Self {
        Self { state, is_pending: true, attributes: Vec::new(), entered: vec![(state, now)] }
    }

    /// It is in another state, or in the same once more.
    pub fn enter(&mut self, state: usize, now: Nanos) {
        if state != self.state {
            match self.entered.iter_mut().find(|(known, _)| *known == state) {
                Some((_, time)) => *time = now,
                None => self.entered.push((state, now)),
            }
        }
        self.state = state;
    }

    /// When it last entered a state from another.
    pub fn entered(&self, state: usize) -> Option<Nanos> {
        self.entered.iter().find(|(known, _)| *known == state).map(|(_, time)| *time)
    }

    pub fn get(&self, path: &[Arc<str>]) -> Datum {
        let attribute = self.attributes.iter().find(|attribute| attribute.path == path);
        attribute.map_or(Datum::Null, |attribute| attribute.value.clone())
    }

    /// Since when an attribute has its value.
    pub fn since(&self, path: &[Arc<str>]) -> Option<Nanos> {
        let attribute = self.attributes.iter().find(|attribute| attribute.path == path);
        attribute.filter(|attribute| !attribute.value.is_null()).map(|a| a.since)
    }

    /// Sets an attribute; false where there are too many.
    pub fn set(&mut self, path: &[Arc<str>], value: Datum, now: Nanos) -> bool {
        let count = self.attributes.len();
        match self.attributes.iter_mut().find(|attribute| attribute.path == path) {
            // The value is unchanged.
            Some(attribute) if attribute.value == value => true,
            Some(attribute) => {
                (attribute.value, attribute.since) = (value, now);
                true
            }
            None if count >= ATTRIBUTES => false,
            None => {
                self.attributes.push(Attribute { path: path.to_vec(), value, since: now });
                true
            }
        }
    }

    /// Attributes right below a path, with their names.
    pub fn below<'a>(
        &'a self,
        parent: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Datum)> + 'a {
        self.attributes.iter().filter_map(move |attribute| match attribute.path.as_slice() {
            [first, name] if &**first == parent && !attribute.value.is_null() => {
                Some((name, &attribute.value))
            }
            _ => None,
        })
    }
}

/// The scenarios of a machine.
#[derive(Debug, Default)]
pub(crate) struct Running {
    /// Waits for its first transition.
    pub pending: Option<Scenario>,
    /// In the order in which they began.
    pub active: Vec<Scenario>,
    /// How many of those are in each state.
    pub in_state: Vec<usize>,
    pub has_begun: bool,
}
