// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What [`crate::write`] keeps in a trace although the format has no word for
//! it: taken back into its place, so that a copy reads as its source does.

use lateralis_model::{self as model, Attribute, EnvValue, FieldKind, Names};

use super::TraceClass;
use super::field::{PathItem, VariantClass};
use crate::write::names::{
    ATTRIBUTE, CONTEXT, CONTEXT_ALONE, LENGTH, PRESENT, PROCESS, TAG, THREAD, TRACE_NAME,
};

/// Whether a field of this name says what the model says elsewhere.
pub(super) fn is_added(name: &str) -> bool {
    [LENGTH, TAG, PRESENT].iter().any(|end| name.ends_with(end))
}

/// What an optional field holds that CTF 1.8 had to write as a variant of nothing
/// and something.
pub(super) fn optional(
    class: &VariantClass,
    options: &[model::Member],
) -> Option<model::FieldClass> {
    let [none, some] = options else { return None };
    let selector = class.selector.as_ref()?.path.last()?;
    let present = matches!(selector, PathItem::Name(name) if name.ends_with(PRESENT));
    let nothing = matches!(&none.class.kind, FieldKind::Struct(members) if members.is_empty());
    (present && nothing && none.name == "none").then(|| some.class.clone())
}

/// Context and payload of an event, where CTF 1.8 had to describe the context as the first field
/// of the payload: its values come first in both.
pub(super) fn context(
    mut payload: model::FieldClass,
) -> (Option<model::FieldClass>, Option<model::FieldClass>) {
    let FieldKind::Struct(members) = &mut payload.kind else { return (None, Some(payload)) };
    let is_alone = match members.first() {
        Some(first) if !matches!(first.class.kind, FieldKind::Struct(_)) => None,
        Some(first) if first.name == CONTEXT => Some(false),
        Some(first) if first.name == CONTEXT_ALONE && members.len() == 1 => Some(true),
        _ => None,
    };
    let Some(is_alone) = is_alone else { return (None, Some(payload)) };
    let context = members.remove(0).class;
    (Some(context), (!is_alone).then_some(payload))
}

/// Moves values stored in the environment under reserved names to their fields; names of threads
/// and processes remain for [`names`].
pub(super) fn take(trace: &mut TraceClass) {
    let streams = &mut trace.streams;
    let name = &mut trace.name;
    trace.environment.retain(|(key, value)| {
        let EnvValue::Text(value) = value else { return true };
        if key == TRACE_NAME {
            *name = Some(value.clone());
            return false;
        }
        let attribute = || {
            let mut numbers = key.strip_prefix(ATTRIBUTE)?.split('_').map(str::parse::<u64>);
            let (stream, event) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            let (name, value) = value.split_once('=')?;
            Some((stream, event, name, value))
        };
        let Some((stream, event, name, value)) = attribute() else { return true };
        let stream = streams.iter_mut().find(|class| class.id == stream);
        let events = stream.map(|stream| &mut stream.events);
        let Some(event) = events.and_then(|all| all.iter_mut().find(|class| class.id == event))
        else {
            return true;
        };
        event.attributes.push(Attribute { name: name.to_owned(), value: value.to_owned() });
        false
    });
}

/// Names of processes and threads in the environment.
pub(crate) fn names(environment: &mut Vec<(String, EnvValue)>) -> Names {
    let mut names = Names::default();
    environment.retain(|(key, value)| {
        let number = |prefix: &str| key.strip_prefix(prefix)?.parse::<u32>().ok();
        let EnvValue::Text(name) = value else { return true };
        if let Some(pid) = number(PROCESS) {
            names.processes.insert(pid, name.clone());
        } else if let Some(tid) = number(THREAD) {
            names.threads.insert(tid, name.clone());
        } else {
            return true;
        }
        false
    });
    names
}
