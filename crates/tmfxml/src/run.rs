// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs an analysis event by event.

mod ask;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lateralis_model::original::Original;
use lateralis_model::{Event, Names};
use lateralis_units::Nanos;

use crate::datum::{Datum, Type};
use crate::event::Seen;
use crate::machine::{Running, Scenario};
use crate::plan::{Action, Change, How, Plan, Transition};
use crate::tree::{Full, ROOT, Tree};

/// Scenarios of one machine that are open at a time. An event is shown to each of them.
const SCENARIOS: usize = 16_384;
/// Changes that wait for their time.
const LATER: usize = 1 << 20;

/// What a scenario's segments count from, and what transitions save.
const START_TIME: &str = "startTime";
const STORED: &str = "storedFields";

/// A result of an analysis, reported when it is complete.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// A state of an attribute.
    State(State),
    /// A segment of a pattern.
    Segment(Segment),
}

/// A state of an attribute: it is in it from `begin` until right before `end`.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The names from the root of the tree.
    pub path: Vec<Arc<str>>,
    /// Its value.
    pub value: Datum,
    /// When it began.
    pub begin: Nanos,
    /// When it ended, or the trace.
    pub end: Nanos,
    /// Whether it still was when the trace ended.
    pub is_open: bool,
}

/// A segment: a span.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// Its name.
    pub name: String,
    /// When it began.
    pub begin: Nanos,
    /// When it ended; not before it began.
    pub end: Nanos,
    /// What belongs to it, in the order of the file.
    pub fields: Vec<(Arc<str>, Datum)>,
}

/// What is known of a class of events.
#[derive(Debug)]
struct Class {
    name: Arc<str>,
    originals: Vec<Original>,
    /// Handlers that it has changes for.
    handlers: Vec<usize>,
    /// By machine and state, whether a transition may take it.
    moves: Vec<Vec<bool>>,
}

/// A change that waits for its time.
#[derive(Debug)]
struct Later {
    node: u32,
    value: Datum,
    how: How,
}

/// An analysis that is running.
#[derive(Debug)]
pub struct Run<'p> {
    plan: &'p Plan,
    tree: Tree,
    classes: HashMap<(u32, u32), Arc<Class>>,
    machines: Vec<Running>,
    later: BTreeMap<(i64, u64), Later>,
    later_count: u64,
    has_begun: bool,
    now: Nanos,
    /// How often each bound was reached.
    refused: BTreeMap<&'static str, u64>,
    found: Vec<Found>,
}

impl<'p> Run<'p> {
    pub(crate) fn new(plan: &'p Plan) -> Self {
        let running = |machine: &crate::plan::Machine| Running {
            in_state: vec![0; machine.states.len()],
            ..Running::default()
        };
        Self {
            plan,
            tree: Tree::new(),
            classes: HashMap::new(),
            machines: plan.machines.iter().map(running).collect(),
            later: BTreeMap::new(),
            later_count: 0,
            has_begun: false,
            now: Nanos(i64::MIN),
            refused: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    /// Takes the next event, in the order of time; appends what ended with it. `names` are
    /// those of processes and threads.
    ///
    /// Cost: by the handlers and machines that have something for events of its class; of a
    /// machine, by the scenarios that are open.
    pub fn event(&mut self, event: &Event<'_>, names: &Names, found: &mut Vec<Found>) {
        let class = self.class(event);
        let seen = Seen { event, name: &class.name, originals: &class.originals, names };
        self.catch_up(event.time);
        self.now = self.now.max(event.time);
        let plan = self.plan;
        for &handler in &class.handlers {
            for change in &plan.handlers[handler].changes {
                self.act(change, &seen, None);
            }
        }
        self.start_scenarios(event.time);
        for machine in 0..self.machines.len() {
            self.machine(machine, &class, &seen);
        }
        found.append(&mut self.found);
    }

    /// Ends the run at the end of the trace; appends what was still open, and gives what was
    /// left out because a bound was reached, as sentences.
    pub fn finish(mut self, found: &mut Vec<Found>) -> Vec<String> {
        self.tree.finish(self.now, &mut self.found);
        found.append(&mut self.found);
        let sentence = |(what, count): (&&str, &u64)| format!("{count} times: {what}");
        self.refused.iter().map(sentence).collect()
    }

    fn class(&mut self, event: &Event<'_>) -> Arc<Class> {
        let key = (event.stream_class_index, event.class_index);
        if let Some(class) = self.classes.get(&key) {
            return class.clone();
        }
        let originals: Vec<Original> = Original::of(event.class).collect();
        let original = originals.iter().find_map(|original| match original {
            Original::Event(name) => Some(name.as_str()),
            _ => None,
        });
        let name: Arc<str> = original.unwrap_or(&event.class.name).into();
        let fits = |transition: &Transition| transition.guard.events.matches(&name);
        let moves = self.plan.machines.iter().map(|machine| {
            let state = |state: &crate::plan::StatePlan| state.transitions.iter().any(fits);
            machine.states.iter().map(state).collect()
        });
        let moves = moves.collect();
        let handlers = self.plan.handlers.iter().enumerate();
        let handlers = handlers.filter(|(_, handler)| handler.events.matches(&name));
        let handlers = handlers.map(|(index, _)| index).collect();
        let class = Arc::new(Class { name, originals, handlers, moves });
        self.classes.insert(key, class.clone());
        class
    }

    /// Makes the changes whose time has come.
    fn catch_up(&mut self, now: Nanos) {
        while let Some(entry) = self.later.first_entry() {
            let time = Nanos(entry.key().0);
            if time > now {
                break;
            }
            let Later { node, value, how } = entry.remove();
            self.now = self.now.max(time);
            self.change(node, value, how, time);
        }
    }

    /// Gives machines a scenario that waits for its first transition.
    fn start_scenarios(&mut self, now: Nanos) {
        for (index, running) in self.machines.iter_mut().enumerate() {
            let machine = &self.plan.machines[index];
            let first = !self.has_begun && self.plan.initial.contains(&index);
            let next = running.has_begun && machine.is_multiple && running.pending.is_none();
            if first || next {
                running.has_begun = true;
                running.pending = Some(Scenario::new(machine.initial, now));
            }
        }
        self.has_begun = true;
    }

    fn machine(&mut self, index: usize, class: &Class, seen: &Seen<'_>) {
        let plan = self.plan;
        let machine = &plan.machines[index];
        let moves = &class.moves[index];
        let concerns = |running: &Running| {
            let active = running.in_state.iter().zip(moves).any(|(count, can)| *can && *count > 0);
            active || running.pending.as_ref().is_some_and(|scenario| moves[scenario.state])
        };
        if !concerns(&self.machines[index]) {
            return;
        }
        let preconditions = &machine.preconditions;
        if !preconditions.is_empty() && !preconditions.iter().any(|g| self.holds(g, seen, None)) {
            return;
        }
        // Out of `self` while they act on it.
        let mut running = std::mem::take(&mut self.machines[index]);
        let mut is_consumed = false;
        let mut ended = false;
        for scenario in &mut running.active {
            if !moves[scenario.state] {
                continue;
            }
            let before = scenario.state;
            if self.step(index, scenario, seen) {
                is_consumed = true;
                running.in_state[before] -= 1;
                running.in_state[scenario.state] += 1;
                ended |= machine.states[scenario.state].transitions.is_empty();
                if machine.is_consuming {
                    break;
                }
            }
        }
        if ended {
            let is_final =
                |scenario: &Scenario| machine.states[scenario.state].transitions.is_empty();
            running.active.retain(|scenario| !is_final(scenario));
            for (count, state) in running.in_state.iter_mut().zip(&machine.states) {
                if state.transitions.is_empty() {
                    *count = 0;
                }
            }
        }
        if !(machine.is_consuming && is_consumed)
            && let Some(mut scenario) = running.pending.take()
        {
            let moved = moves[scenario.state] && self.step(index, &mut scenario, seen);
            match moved {
                false => running.pending = Some(scenario),
                true if machine.states[scenario.state].transitions.is_empty() => {}
                true if running.active.len() >= SCENARIOS => {
                    self.refuse("more scenarios are open than a machine may have");
                }
                true => {
                    running.in_state[scenario.state] += 1;
                    running.active.push(scenario);
                }
            }
        }
        self.machines[index] = running;
    }

    /// Takes the first transition that can be taken.
    fn step(&mut self, machine: usize, scenario: &mut Scenario, seen: &Seen<'_>) -> bool {
        let plan = self.plan;
        let states = &plan.machines[machine].states;
        let state = &states[scenario.state];
        let now = seen.event.time;
        let can = |transition: &&Transition| {
            self.holds(&transition.guard, seen, Some((machine, &*scenario)))
        };
        let Some(transition) = state.transitions.iter().find(can) else { return false };
        let next = &states[transition.target];
        self.all(&state.on_exit, seen, machine, scenario);
        self.all(&transition.actions, seen, machine, scenario);
        if transition.saves {
            for (field, name) in &plan.stored {
                let value = seen.field(field);
                if !value.is_null() {
                    self.in_scenario(scenario, &[STORED.into(), name.clone()], value, now);
                }
            }
        }
        if transition.clears {
            for (_, name) in &plan.stored {
                self.in_scenario(scenario, &[STORED.into(), name.clone()], Datum::Null, now);
            }
        }
        self.all(&next.on_entry, seen, machine, scenario);
        if scenario.is_pending {
            scenario.is_pending = false;
            self.in_scenario(scenario, &[START_TIME.into()], Datum::Integer(now.0), now);
        }
        scenario.enter(transition.target, now);
        true
    }

    fn all(&mut self, actions: &[usize], seen: &Seen<'_>, machine: usize, of: &mut Scenario) {
        let plan = self.plan;
        for &action in actions {
            for action in &plan.actions[action] {
                self.act(action, seen, Some((machine, of)));
            }
        }
    }

    fn act(&mut self, action: &Action, seen: &Seen<'_>, of: Option<(usize, &mut Scenario)>) {
        match action {
            Action::Change(change) => self.change_of(change, seen, of),
            Action::If(condition, then, otherwise) => {
                let asked = of.as_ref().map(|(machine, scenario)| (*machine, &**scenario));
                if self.test(condition, seen, asked) {
                    self.act(then, seen, of);
                } else if let Some(otherwise) = otherwise {
                    self.act(otherwise, seen, of);
                }
            }
            Action::Segment(segment) => {
                let asked = of.as_ref().map(|(machine, scenario)| (*machine, &**scenario));
                let segment = self.segment(segment, seen, asked);
                self.found.push(Found::Segment(segment));
            }
            Action::All(actions) => {
                let mut of = of;
                for action in actions {
                    let again = of.as_mut().map(|(machine, scenario)| (*machine, &mut **scenario));
                    self.act(action, seen, again);
                }
            }
        }
    }

    fn change_of(&mut self, change: &Change, seen: &Seen<'_>, of: Option<(usize, &mut Scenario)>) {
        let now = seen.event.time;
        let asked = of.as_ref().map(|(machine, scenario)| (*machine, &**scenario));
        let Some(path) = self.names(&change.path, seen, asked) else { return };
        let value = self.value(&change.value, seen, asked);
        let later = change.later.as_ref().map(|later| self.value(later, seen, asked));
        if change.path.of_scenario {
            let Some((_, scenario)) = of else { return };
            let value = match change.how {
                How::Add => scenario.get(&path).plus(value),
                How::Pop | How::PopAll => Datum::Null,
                _ => value,
            };
            self.in_scenario(scenario, &path, value, now);
            return;
        }
        let Some(node) = self.make(&path) else { return };
        let later = later.map(|later| later.forced(Type::Integer).as_integer());
        match later {
            None => self.change(node, value, change.how, now),
            Some(Some(time)) if time == now.0 => self.change(node, value, change.how, now),
            Some(Some(time)) if time > now.0 => {
                if self.later.len() >= LATER {
                    self.refuse("more changes wait for their time than may");
                    return;
                }
                self.later_count += 1;
                let waiting = Later { node, value, how: change.how };
                self.later.insert((time, self.later_count), waiting);
            }
            Some(_) => self.refuse("a change lies in the past, or its time is no number"),
        }
    }

    fn change(&mut self, node: u32, value: Datum, how: How, now: Nanos) {
        let found = &mut self.found;
        let done = match how {
            How::Set => {
                self.tree.set(node, value, now, found);
                Ok(())
            }
            How::Add => {
                let sum = self.tree.value(node).plus(value);
                self.tree.set(node, sum, now, found);
                Ok(())
            }
            How::Update => {
                self.tree.update(node, value);
                Ok(())
            }
            How::Push => self.tree.push(node, value, now, found),
            How::Pop => {
                self.tree.pop(node, now, found);
                Ok(())
            }
            How::PopAll => {
                while self.tree.value(node).as_integer().is_some_and(|depth| depth > 0) {
                    self.tree.pop(node, now, found);
                }
                Ok(())
            }
        };
        if done == Err(Full) {
            self.refuse("a stack is too high, or the tree has too many attributes");
        }
    }

    fn in_scenario(&mut self, of: &mut Scenario, path: &[Arc<str>], value: Datum, now: Nanos) {
        if !of.set(path, value, now) {
            self.refuse("a scenario has too many attributes");
        }
    }

    fn make(&mut self, names: &[Arc<str>]) -> Option<u32> {
        let made = names.iter().try_fold(ROOT, |node, name| self.tree.make(node, name));
        if made.is_err() {
            self.refuse("the tree has too many attributes");
        }
        made.ok()
    }

    fn refuse(&mut self, what: &'static str) {
        *self.refused.entry(what).or_default() += 1;
    }
}

/// The scenario that is asked for, and its machine.
type Asked<'a> = Option<(usize, &'a Scenario)>;
