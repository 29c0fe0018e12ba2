// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `notes`, `note`: what people write beside a recording.

use std::fs;

use serde_json::{Value, json};

use crate::answer::Problem;
use crate::params::Params;
use crate::session::Session;

/// Bytes of all notes.
const NOTES_MAX: usize = 4 << 20;

/// All notes; none where there are none yet.
pub fn read(session: &Session) -> Result<Value, Problem> {
    let place = session.notes();
    let Some(bytes) = place.as_ref().and_then(|place| fs::read(place).ok()) else {
        return Ok(json!({ "notes": [] }));
    };
    let place = place.map(|place| place.display().to_string()).unwrap_or_default();
    let notes: Option<Value> = serde_json::from_slice(&bytes).ok().filter(Value::is_array);
    let advice = "it is no list in JSON: move it away, or put it right";
    let notes = notes.ok_or_else(|| Problem::new("cannot read the notes", place, advice))?;
    Ok(json!({ "notes": notes }))
}

/// Writes all notes, in place of those before.
pub fn write(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let notes = params.get("notes").filter(|notes| notes.is_array());
    let wrong = || Problem::new("cannot read the request", "notes", "expected a list");
    let text = serde_json::to_vec_pretty(notes.ok_or_else(wrong)?).unwrap_or_default();
    if text.len() > NOTES_MAX {
        return Err(Problem::new("too many notes", "notes", "4 MB are the most"));
    }
    let none = || Problem::new("no place for notes", "", "set HOME or XDG_CACHE_HOME");
    let place = session.notes().ok_or_else(none)?;
    let fresh = place.with_extension("json.new");
    let written = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, &place));
    written.map_err(|cause| {
        Problem::new("cannot write the notes", place.display().to_string(), cause.to_string())
    })?;
    Ok(json!({}))
}
