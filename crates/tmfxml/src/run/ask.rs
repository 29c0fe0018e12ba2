// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What values, paths, conditions and segments are when an event comes.

use std::sync::Arc;

use lateralis_units::Nanos;

use super::{Asked, Run, START_TIME, STORED, Segment};
use crate::datum::{Datum, Type};
use crate::event::Seen;
use crate::plan::{Condition, Guard, Name, Operand, Path, SegmentPlan, What};
use crate::tree::ROOT;

impl Run<'_> {
    pub(super) fn segment(&self, plan: &SegmentPlan, seen: &Seen<'_>, of: Asked<'_>) -> Segment {
        let now = seen.event.time;
        let number = |run: &Self, operand: &Option<Operand>| {
            let value = run.value(operand.as_ref()?, seen, of).forced(Type::Integer);
            value.as_integer().map(Nanos)
        };
        let started = of.and_then(|(_, scenario)| scenario.since(&[START_TIME.into()]));
        let begin = number(self, &plan.begin).or(started).unwrap_or(now);
        let duration = number(self, &plan.duration);
        let lasted = duration.map(|duration| Nanos(begin.0.saturating_add(duration.0)));
        let end = number(self, &plan.end).or(lasted).filter(|end| *end >= begin);
        let mut fields: Vec<(Arc<str>, Datum)> = Vec::new();
        for (name, operand) in &plan.fields {
            let value = self.value(operand, seen, of);
            if !value.is_null() {
                fields.push((name.clone(), value));
            }
        }
        for (name, value) in of.into_iter().flat_map(|(_, scenario)| scenario.below(STORED)) {
            if !fields.iter().any(|(known, _)| known == name) {
                fields.push((name.clone(), value.clone()));
            }
        }
        let name = self.value(&plan.name, seen, of).to_string();
        Segment { name, begin, end: end.unwrap_or(now).max(begin), fields }
    }

    pub(super) fn holds(&self, guard: &Guard, seen: &Seen<'_>, of: Asked<'_>) -> bool {
        guard.events.matches(seen.name)
            && guard.tests.iter().all(|&test| self.test(&self.plan.tests[test], seen, of))
    }

    pub(super) fn test(&self, condition: &Condition, seen: &Seen<'_>, of: Asked<'_>) -> bool {
        let now = seen.event.time;
        match condition {
            Condition::Compare(operator, first, second) => {
                let first = self.value(first, seen, of);
                operator.holds(first.order(&self.value(second, seen, of)))
            }
            Condition::Time { begin, end, inside } => (*begin..=*end).contains(&now.0) == *inside,
            Condition::Elapsed(operator, state, nanos) => {
                let Some((machine, scenario)) = of else { return false };
                let states = &self.plan.machines[machine].states;
                let state = states.iter().position(|known| known.id == *state);
                let since = state.and_then(|state| scenario.entered(state));
                since.is_some_and(|since| operator.holds(now.since(since).cmp(nanos)))
            }
            Condition::Not(condition) => !self.test(condition, seen, of),
            Condition::All(all) => all.iter().all(|condition| self.test(condition, seen, of)),
            Condition::Any(any) => any.iter().any(|condition| self.test(condition, seen, of)),
        }
    }

    pub(super) fn value(&self, operand: &Operand, seen: &Seen<'_>, of: Asked<'_>) -> Datum {
        let value = match &operand.what {
            What::Constant(value) => value.clone(),
            What::Field(name) => seen.field(name),
            What::Event => Datum::Text(seen.name.clone()),
            What::Query(path) => self.query(path, seen, of),
            What::Peek(path) => {
                let names = self.names(path, seen, of);
                let node = names.filter(|_| !path.of_scenario).and_then(|names| self.node(&names));
                node.map_or(Datum::Null, |node| self.tree.peek(node))
            }
        };
        let value = match operand.map {
            None => value,
            Some(map) => {
                let entries = self.plan.maps[map].iter();
                let found = entries.into_iter().find(|(key, _)| self.value(key, seen, of) == value);
                found.map_or(Datum::Null, |(_, to)| self.value(to, seen, of))
            }
        };
        match operand.forced {
            Some(to) => value.forced(to),
            None => value,
        }
    }

    fn query(&self, path: &Path, seen: &Seen<'_>, of: Asked<'_>) -> Datum {
        let Some(names) = self.names(path, seen, of) else { return Datum::Null };
        if path.of_scenario {
            return of.map_or(Datum::Null, |(_, scenario)| scenario.get(&names));
        }
        self.node(&names).map_or(Datum::Null, |node| self.tree.value(node).clone())
    }

    /// The names of a path; `None` if one of them has no value.
    pub(super) fn names(
        &self,
        path: &Path,
        seen: &Seen<'_>,
        of: Asked<'_>,
    ) -> Option<Vec<Arc<str>>> {
        let text = |value: Datum| match value {
            Datum::Null => None,
            Datum::Text(text) => Some(text),
            other => Some(other.to_string().into()),
        };
        let name = |name: &Name| match name {
            Name::Constant(name) => Some(name.clone()),
            Name::Field(field) => text(seen.field(field)),
            Name::Event => Some(seen.name.clone()),
            Name::Query(path) => text(self.query(path, seen, of)),
        };
        path.names.iter().map(name).collect()
    }

    fn node(&self, names: &[Arc<str>]) -> Option<u32> {
        names.iter().try_fold(ROOT, |node, name| self.tree.child(node, name))
    }
}
