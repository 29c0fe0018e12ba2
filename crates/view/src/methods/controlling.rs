// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `control`: commands to the recorder.

use serde_json::{Value, json};

use crate::answer::Problem;
use crate::control::Action;
use crate::params::Params;
use crate::session::Session;

/// Maximum number of event patterns in a request.
const EVENTS_MAX: usize = 1000;
/// Maximum number of processes that a command is sent to.
const PIDS_MAX: usize = 1000;

/// Sends a command to the recorder.
pub fn control(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let control = session.control().ok_or_else(|| {
        let advice = "it is not recorded on this machine, or has ended";
        Problem::new("cannot ask the recorder", "control", advice)
    })?;
    let wrong = |place: &str, wanted: &str| {
        Problem::new("cannot read the request", place, format!("expected {wanted}"))
    };
    let words = "start, stop, flush, snapshot, enable or disable";
    let action = Action::of(params.text("action")?).ok_or_else(|| wrong("action", words))?;
    let events = params.get("events").map_or(Some(Vec::new()), |value| {
        let all = value.as_array()?.iter().map(|event| event.as_str().map(str::to_owned));
        all.collect::<Option<Vec<String>>>().filter(|all| all.len() <= EVENTS_MAX)
    });
    let events = events.ok_or_else(|| wrong("events", "a list of patterns"))?;
    if matches!(action, Action::Enable | Action::Disable) && events.is_empty() {
        return Err(wrong("events", "which events"));
    }
    let applications = &session.lanes.meta().applications;
    let known: Vec<u32> = applications.iter().filter_map(|application| application.pid).collect();
    let pids = match params.get("target").map(|_| params.id("target")).transpose()? {
        Some(pid) if !known.contains(&pid) => {
            let advice = "choose a process of this recording";
            return Err(Problem::new("no such program here", pid.to_string(), advice));
        }
        Some(pid) => vec![pid],
        None => known.into_iter().take(PIDS_MAX).collect(),
    };
    Ok(json!({ "done": control.act(action, &pids, &events)? }))
}
