// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Patterns: tests, actions and state machines.

use std::collections::HashMap;

use roxmltree::Node;

use super::{Checked, Reader};
use crate::plan::{Action, Guard, Machine, StatePlan, Transition};

/// States of a machine by their ids.
type States = HashMap<String, usize>;

impl<'d, 'i> Reader<'d, 'i> {
    /// A `<patternHandler>`.
    pub(super) fn machines(&mut self, node: Node<'d, 'i>) -> Checked<()> {
        let children = self.only(node, &["initial"], &["test", "action", "fsm"])?;
        let named =
            |name: &'static str| children.iter().copied().filter(move |c| c.has_tag_name(name));
        let mut result = Ok(());
        for child in named("test") {
            result = result.and(self.test(child));
        }
        for child in named("action") {
            result = result.and(self.action(child).map(|_| ()));
        }
        // Without them, machines would only be wrong for the same reasons once more.
        result?;
        let mut ids = HashMap::new();
        for child in named("fsm") {
            match self.machine(child) {
                Ok(machine) => {
                    ids.insert(self.needed(child, "id")?.to_owned(), self.plan.machines.len());
                    self.plan.machines.push(machine);
                }
                Err(refused) => result = Err(refused),
            }
        }
        result?;
        if self.plan.machines.is_empty() {
            return self.refuse(node, "a <patternHandler> needs an <fsm>");
        }
        match node.attribute("initial").filter(|initial| !initial.is_empty()) {
            None => self.plan.initial = (0..self.plan.machines.len()).collect(),
            Some(initial) => {
                for id in initial.split(':') {
                    let Some(machine) = ids.get(id) else {
                        return self.refuse(node, format!("no <fsm> has the id `{id}`"));
                    };
                    self.plan.initial.push(*machine);
                }
            }
        }
        Ok(())
    }

    fn test(&mut self, node: Node<'d, 'i>) -> Checked<()> {
        let children = self.only(node, &["id"], &["if"])?;
        let id = self.needed(node, "id")?.to_owned();
        let [condition] = children.as_slice() else {
            return self.refuse(node, "a <test> has one <if>");
        };
        let condition = self.inner_condition(*condition)?;
        self.tests.insert(id, self.plan.tests.len());
        self.plan.tests.push(condition);
        Ok(())
    }

    /// An `<action>`, whose index it gives; those inside have ids of their own.
    fn action(&mut self, node: Node<'d, 'i>) -> Checked<usize> {
        let elements = ["stateChange", "segment", "action", "fsmScheduleAction"];
        let children = self.only(node, &["id"], &elements)?;
        let id = self.needed(node, "id")?.to_owned();
        let mut actions = Vec::new();
        for child in children {
            actions.push(match child.tag_name().name() {
                "stateChange" => self.change(child)?,
                "segment" => Action::Segment(self.segment(child)?),
                "action" => {
                    self.action(child)?;
                    // Read once more: an action is part of this one and one of its own.
                    Action::All(self.inner_actions(child)?)
                }
                other => return self.refuse(child, format!("<{other}> is not understood")),
            });
        }
        self.actions.insert(id, self.plan.actions.len());
        self.plan.actions.push(actions);
        Ok(self.plan.actions.len() - 1)
    }

    fn inner_actions(&mut self, node: Node<'d, 'i>) -> Checked<Vec<Action>> {
        let mut actions = Vec::new();
        for child in node.children().filter(Node::is_element) {
            actions.push(match child.tag_name().name() {
                "stateChange" => self.change(child)?,
                "segment" => Action::Segment(self.segment(child)?),
                // Each level would double the work.
                _ => return self.refuse(child, "actions lie at most one deep in actions"),
            });
        }
        Ok(actions)
    }

    fn machine(&mut self, node: Node<'d, 'i>) -> Checked<Machine> {
        let attributes = ["id", "initial", "multiple", "consuming"];
        let elements = ["precondition", "initial", "initialState", "state", "final"];
        let children = self.only(node, &attributes, &elements)?;
        let named =
            |name: &'static str| children.iter().copied().filter(move |c| c.has_tag_name(name));
        self.needed(node, "id")?;
        let mut ids = States::new();
        let mut states = Vec::new();
        for child in named("state").chain(named("final")) {
            let id = self.needed(child, "id")?;
            if ids.insert(id.to_owned(), states.len()).is_some() {
                return self.refuse(child, format!("two states have the id `{id}`"));
            }
            states.push(StatePlan { id: id.into(), ..StatePlan::default() });
        }
        for child in named("final") {
            self.only(child, &["id"], &[])?;
        }
        let mut result = Ok(());
        for child in named("state") {
            match self.state(child, &ids) {
                Ok(state) => {
                    let index = ids[&*state.id];
                    states[index] = state;
                }
                Err(refused) => result = Err(refused),
            }
        }
        result?;
        let mut preconditions = Vec::new();
        for child in named("precondition") {
            self.only(child, &["event", "cond"], &[])?;
            preconditions.push(self.guard(child)?);
        }
        let initial = self.initial(node, &ids, &mut states)?;
        Ok(Machine {
            preconditions,
            is_consuming: self.flag(node, "consuming", true)?,
            is_multiple: self.flag(node, "multiple", true)?,
            initial,
            states,
        })
    }

    /// The initial state: given by an element or an attribute, otherwise the first.
    fn initial(
        &mut self,
        node: Node<'d, 'i>,
        ids: &States,
        states: &mut Vec<StatePlan>,
    ) -> Checked<usize> {
        let child = |name: &str| {
            node.children().find(|child| child.is_element() && child.has_tag_name(name))
        };
        if let Some(child) = child("initialState") {
            let children = self.only(child, &[], &["transition"])?;
            let mut state = StatePlan { id: "initialState".into(), ..StatePlan::default() };
            for transition in children {
                state.transitions.push(self.transition(transition, ids)?);
            }
            states.push(state);
            return Ok(states.len() - 1);
        }
        let target = match (node.attribute("initial"), child("initial")) {
            (Some(id), _) if !id.is_empty() => Some(id),
            (_, Some(child)) => {
                let transitions = self.only(child, &[], &["transition"])?;
                let [transition] = transitions.as_slice() else {
                    return self.refuse(child, "<initial> has one <transition>");
                };
                self.only(*transition, &["target"], &[])?;
                Some(self.needed(*transition, "target")?)
            }
            _ => None,
        };
        match target {
            Some(id) => self.state_of(node, id, ids),
            None if states.is_empty() => self.refuse(node, "an <fsm> needs a <state>"),
            None => Ok(0),
        }
    }

    fn state_of(&mut self, node: Node<'d, 'i>, id: &str, ids: &States) -> Checked<usize> {
        match ids.get(id) {
            Some(state) => Ok(*state),
            None => self.refuse(node, format!("no <state> of the <fsm> has the id `{id}`")),
        }
    }

    fn state(&mut self, node: Node<'d, 'i>, ids: &States) -> Checked<StatePlan> {
        let children = self.only(node, &["id"], &["onentry", "onexit", "transition"])?;
        let mut state = StatePlan { id: self.needed(node, "id")?.into(), ..StatePlan::default() };
        for child in children {
            match child.tag_name().name() {
                "transition" => state.transitions.push(self.transition(child, ids)?),
                name => {
                    self.only(child, &["action"], &[])?;
                    let actions = self.actions_of(child)?;
                    let to =
                        if name == "onentry" { &mut state.on_entry } else { &mut state.on_exit };
                    to.extend(actions);
                }
            }
        }
        Ok(state)
    }

    fn transition(&mut self, node: Node<'d, 'i>, ids: &States) -> Checked<Transition> {
        let attributes =
            ["event", "cond", "target", "action", "saveStoredFields", "clearStoredFields"];
        self.only(node, &attributes, &[])?;
        let guard = self.guard(node)?;
        let target = self.needed(node, "target")?;
        let target = self.state_of(node, target, ids)?;
        let actions = self.actions_of(node)?;
        let saves = self.flag(node, "saveStoredFields", false)?;
        let clears = self.flag(node, "clearStoredFields", false)?;
        Ok(Transition { guard, target, actions, saves, clears })
    }

    /// Events and tests, all of which must hold.
    fn guard(&mut self, node: Node<'d, 'i>) -> Checked<Guard> {
        let events = self.events(node, node.attribute("event").unwrap_or_default())?;
        let mut tests = Vec::new();
        for id in listed(node.attribute("cond")) {
            match self.tests.get(id) {
                Some(test) => tests.push(*test),
                None => return self.refuse(node, format!("no <test> has the id `{id}`")),
            }
        }
        Ok(Guard { events, tests })
    }

    fn actions_of(&mut self, node: Node<'d, 'i>) -> Checked<Vec<usize>> {
        let mut actions = Vec::new();
        for id in listed(node.attribute("action")) {
            match self.actions.get(id) {
                Some(action) => actions.push(*action),
                None => return self.refuse(node, format!("no <action> has the id `{id}`")),
            }
        }
        Ok(actions)
    }
}

/// Ids separated by colons.
fn listed(ids: Option<&str>) -> impl Iterator<Item = &str> {
    ids.filter(|ids| !ids.is_empty()).into_iter().flat_map(|ids| ids.split(':'))
}
