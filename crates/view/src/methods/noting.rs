// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `notes`, `note`: notes of users about a recording.

use std::io::ErrorKind;

use lateralis_files::{PRIVATE, read_regular, write_file};
use serde_json::{Value, json};

use crate::answer::Problem;
use crate::params::Params;
use crate::session::Session;

/// Maximum size of all notes in bytes.
const NOTES_MAX: usize = 4 << 20;

/// Returns all notes.
pub fn read(session: &Session) -> Result<Value, Problem> {
    let Some(place) = session.notes() else { return Ok(json!({ "notes": [] })) };
    let read = read_regular(&place, NOTES_MAX as u64);
    let place = place.display().to_string();
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(json!({ "notes": [] })),
        Err(cause) => {
            return Err(Problem::new("cannot read the notes", place, cause.to_string()));
        }
    };
    let notes: Option<Value> = serde_json::from_slice(&bytes).ok().filter(Value::is_array);
    let advice = "it is no list in JSON: move it away, or put it right";
    let notes = notes.ok_or_else(|| Problem::new("cannot read the notes", place, advice))?;
    Ok(json!({ "notes": notes }))
}

/// Replaces all notes.
pub fn write(session: &Session, params: Params<'_>) -> Result<Value, Problem> {
    let notes = params.get("notes").filter(|notes| notes.is_array());
    let wrong = || Problem::new("cannot read the request", "notes", "expected a list");
    let text = serde_json::to_vec_pretty(notes.ok_or_else(wrong)?).unwrap_or_default();
    if text.len() > NOTES_MAX {
        return Err(Problem::new("too many notes", "notes", "4 MB are the most"));
    }
    let none = || Problem::new("no place for notes", "", "set HOME or XDG_CACHE_HOME");
    let place = session.notes().ok_or_else(none)?;
    write_file(&place, &text, PRIVATE).map_err(|cause| {
        Problem::new("cannot write the notes", place.display().to_string(), cause.to_string())
    })?;
    Ok(json!({}))
}
