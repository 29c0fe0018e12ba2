// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The methods of spec/view.md §4.

mod acting;
mod counting;
mod drawing;
mod listing;
mod noting;
mod opening;
mod querying;
mod selecting;
mod telling;
mod using;

use serde_json::Value;

use crate::answer::{Answer, Problem};
use crate::params::Params;
use crate::session::Session;

pub use acting::Remembered;
pub use listing::event;
pub use selecting::stretch;

/// Methods of which an older request that waits is not worth answering.
const REPLACED: [&str; 4] = ["view", "arrows", "levels", "overview"];

/// Methods that answer within some milliseconds, whatever the trace.
const QUICK: [&str; 8] = ["open", "view", "overview", "arrows", "levels", "at", "find", "filter"];

/// All of them.
const METHODS: [&str; 18] = [
    "open",
    "filter",
    "view",
    "overview",
    "arrows",
    "levels",
    "at",
    "step",
    "events",
    "find",
    "activities",
    "script",
    "stats",
    "histogram",
    "utilisation",
    "notes",
    "note",
    "sql",
];

/// Whether a newer request makes an older one of the method worthless.
#[must_use]
pub fn is_replaced(method: &str) -> bool {
    REPLACED.contains(&method)
}

/// Whether it waits behind no slow one.
#[must_use]
pub fn is_quick(method: &str) -> bool {
    QUICK.contains(&method)
}

/// Answers a request.
///
/// # Errors
/// What is wrong with it, or could not be done.
pub fn answer(session: &Session, method: &str, params: &Value) -> Result<Answer, Problem> {
    let params = Params(params);
    match method {
        "open" => Ok(Answer::Json(opening::open(session))),
        "filter" => opening::filter(session, params).map(Answer::Json),
        "view" => drawing::view(session, params),
        "overview" => drawing::overview(session, params),
        "arrows" => drawing::arrows(session, params),
        "levels" => drawing::levels(session, params),
        "at" => telling::at(session, params).map(Answer::Json),
        "step" => telling::step(session, params).map(Answer::Json),
        "events" => listing::events(session, params).map(Answer::Json),
        "activities" => acting::activities(session, params).map(Answer::Json),
        "script" => acting::script(session, params).map(Answer::Json),
        "stats" => counting::stats(session, params).map(Answer::Json),
        "histogram" => counting::histogram(session, params).map(Answer::Json),
        "utilisation" => using::utilisation(session, params),
        "notes" => noting::read(session).map(Answer::Json),
        "note" => noting::write(session, params).map(Answer::Json),
        "sql" => querying::sql(session, params).map(Answer::Json),
        "find" => listing::find(session, params).map(Answer::Json),
        _ => Err(Problem::new(
            "no such method",
            method,
            "the page is of another version: load it again",
        )),
    }
}
