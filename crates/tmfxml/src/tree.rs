// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tree of attributes, each with the state it is in now.

use std::collections::HashMap;
use std::sync::Arc;

use lateralis_units::Nanos;

use crate::datum::Datum;
use crate::run::{Found, State};

/// Attributes of a tree; a hostile trace has a name in every event.
const ATTRIBUTES: usize = 1 << 20;
/// Values on a stack.
const DEPTH: i64 = 10_000;

pub(crate) const ROOT: u32 = 0;

/// A bound is reached: the change is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

#[derive(Debug)]
struct Node {
    parent: u32,
    name: Arc<str>,
    value: Datum,
    since: Nanos,
}

#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    children: HashMap<(u32, Arc<str>), u32>,
}

impl Tree {
    pub fn new() -> Self {
        let root =
            Node { parent: ROOT, name: "".into(), value: Datum::Null, since: Nanos(i64::MIN) };
        Self { nodes: vec![root], children: HashMap::new() }
    }

    pub fn child(&self, parent: u32, name: &Arc<str>) -> Option<u32> {
        self.children.get(&(parent, name.clone())).copied()
    }

    /// The child of that name; it is made if there is none.
    pub fn make(&mut self, parent: u32, name: &Arc<str>) -> Result<u32, Full> {
        if let Some(child) = self.child(parent, name) {
            return Ok(child);
        }
        if self.nodes.len() >= ATTRIBUTES {
            return Err(Full);
        }
        let index = self.nodes.len() as u32;
        let (value, since) = (Datum::Null, Nanos(i64::MIN));
        self.nodes.push(Node { parent, name: name.clone(), value, since });
        self.children.insert((parent, name.clone()), index);
        Ok(index)
    }

    pub fn value(&self, node: u32) -> &Datum {
        &self.nodes[node as usize].value
    }

    /// Begins a new state; one that was none or took no time is not found.
    pub fn set(&mut self, node: u32, value: Datum, now: Nanos, found: &mut Vec<Found>) {
        if *self.value(node) == value {
            return;
        }
        let before = &mut self.nodes[node as usize];
        let since = std::mem::replace(&mut before.since, now);
        let old = std::mem::replace(&mut before.value, value);
        if !old.is_null() && since < now {
            let path = self.path(node);
            found.push(Found::State(State {
                path,
                value: old,
                begin: since,
                end: now,
                is_open: false,
            }));
        }
    }

    /// Another value of the state it is in.
    pub fn update(&mut self, node: u32, value: Datum) {
        self.nodes[node as usize].value = value;
    }

    pub fn push(
        &mut self,
        node: u32,
        value: Datum,
        now: Nanos,
        found: &mut Vec<Found>,
    ) -> Result<(), Full> {
        let depth = self.value(node).as_integer().unwrap_or(0).max(0) + 1;
        if depth > DEPTH {
            return Err(Full);
        }
        let top = self.make(node, &depth.to_string().into())?;
        self.set(node, Datum::Integer(depth), now, found);
        self.set(top, value, now, found);
        Ok(())
    }

    /// Takes the value on top away; nothing of an empty stack.
    pub fn pop(&mut self, node: u32, now: Nanos, found: &mut Vec<Found>) {
        let Some(depth) = self.value(node).as_integer().filter(|depth| *depth > 0) else { return };
        if let Some(top) = self.child(node, &depth.to_string().into()) {
            self.set(top, Datum::Null, now, found);
        }
        let left = if depth > 1 { Datum::Integer(depth - 1) } else { Datum::Null };
        self.set(node, left, now, found);
    }

    /// The value on top.
    pub fn peek(&self, node: u32) -> Datum {
        let depth = self.value(node).as_integer().filter(|depth| *depth > 0);
        let top = depth.and_then(|depth| self.child(node, &depth.to_string().into()));
        top.map_or(Datum::Null, |top| self.value(top).clone())
    }

    /// States that still are at the end.
    pub fn finish(&self, end: Nanos, found: &mut Vec<Found>) {
        for (index, node) in self.nodes.iter().enumerate() {
            if !node.value.is_null() && node.since <= end {
                found.push(Found::State(State {
                    path: self.path(index as u32),
                    value: node.value.clone(),
                    begin: node.since,
                    end,
                    is_open: true,
                }));
            }
        }
    }

    fn path(&self, mut node: u32) -> Vec<Arc<str>> {
        let mut path = Vec::new();
        while node != ROOT {
            let Node { parent, name, .. } = &self.nodes[node as usize];
            path.push(name.clone());
            node = *parent;
        }
        path.reverse();
        path
    }
}
