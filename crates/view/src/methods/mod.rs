// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The methods of spec/view.md §4.

mod acting;
mod activity;
mod between;
mod brushing;
mod comparing;
mod controlling;
mod costing;
mod counting;
mod drawing;
mod flow;
mod listing;
mod nesting;
mod noting;
mod opening;
mod plotting;
mod querying;
mod scheduling;
mod search;
mod section;
mod selecting;
mod sharing;
mod telling;
mod using;

use serde_json::Value;

use crate::answer::{Answer, Problem};
use crate::params::Params;
use crate::scripts::Watch;
use crate::session::Session;

pub use acting::Remembered;
pub use comparing::Compared;
pub use listing::event;
pub use selecting::stretch;

/// Methods of which an older request that waits is not worth answering.
const REPLACED: [&str; 8] =
    ["view", "arrows", "levels", "overview", "brushed", LANE_ACTIVITY, SECTION, "search"];

/// Methods that are answered in the order in which they are requested: they change what others read.
const ORDERED: [&str; 6] = ["script", "filter", "notes", "note", "sides", CONTROL];

/// Methods that answer within some milliseconds, whatever the trace.
const QUICK: [&str; 8] = ["open", "view", "overview", "arrows", "levels", "at", "find", "filter"];

/// All of them.
const METHODS: [&str; 30] = [
    "open",
    "filter",
    "view",
    "overview",
    "arrows",
    "levels",
    LANE_ACTIVITY,
    "at",
    "step",
    "events",
    "find",
    "search",
    "activities",
    "script",
    "stats",
    SECTION,
    "histogram",
    "utilisation",
    "flame",
    "deltas",
    "brushed",
    "tracepoints",
    "fields",
    "values",
    "tables",
    "notes",
    "note",
    SQL,
    INSTRUCTIONS,
    CONTROL,
];

/// Those that are there where several recordings are.
const OF_SEVERAL: [&str; 3] = ["sides", "compare", "histograms"];

/// What lanes have in a range of time.
const LANE_ACTIVITY: &str = "lane_activity";

/// Only where the program can compute them.
const SECTION: &str = "section";

/// Only where there is a recorder that can be asked.
const CONTROL: &str = "control";
/// Only where the program that answers is installed.
const SQL: &str = "sql";

/// Only where instructions were recorded.
const INSTRUCTIONS: &str = "instructions";

/// What a session can be asked.
#[must_use]
pub fn of(session: &Session) -> Vec<&'static str> {
    let several = session.sides.count() > 1;
    let has_flow = !session.lanes.meta().flows.is_empty();
    let is_there = |method: &&str| match *method {
        CONTROL => session.control().is_some(),
        INSTRUCTIONS => has_flow,
        SQL => querying::is_installed(),
        SECTION => session.common.sections.is_some(),
        _ => true,
    };
    let of_several = OF_SEVERAL.into_iter().filter(|_| several);
    METHODS.into_iter().filter(is_there).chain(of_several).collect()
}

/// Whether a newer request makes an older one of the method worthless.
#[must_use]
pub fn is_replaced(method: &str) -> bool {
    REPLACED.contains(&method)
}

/// Whether it waits behind no slow one: how far a script of a side has come is told at once.
#[must_use]
pub fn is_quick(method: &str, params: &Value) -> bool {
    let is_all = || params.get("filter").and_then(Value::as_u64).unwrap_or(0) == 0;
    QUICK.contains(&method)
        || method == "script" && has_side(params)
        // With another filter it looks at each interval once.
        || method == LANE_ACTIVITY && is_all()
}

/// Requests of one kind are answered one after the other, those of different kinds at the same time.
#[must_use]
pub fn kind(method: &str) -> &str {
    if ORDERED.contains(&method) { ORDERED[0] } else { method }
}

fn has_side(params: &Value) -> bool {
    params.get("side").is_some_and(|side| !side.is_null())
}

/// Answers a request of a page; a script that it runs ends when `watch` is ended, and long computations
/// when `is_cancelled`.
///
/// # Errors
/// As [`answer`].
pub fn answer_page(
    session: &Session,
    method: &str,
    params: &Value,
    watch: &Watch,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Answer, Problem> {
    match method {
        "script" if !has_side(params) => {
            acting::script(session, Params(params), watch).map(Answer::Json)
        }
        _ => answer_until(session, method, params, is_cancelled),
    }
}

/// Answers a request.
///
/// # Errors
/// What is wrong with it, or could not be done.
pub fn answer(session: &Session, method: &str, params: &Value) -> Result<Answer, Problem> {
    answer_until(session, method, params, &|| false)
}

fn answer_until(
    session: &Session,
    method: &str,
    params: &Value,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Answer, Problem> {
    if has_side(params) {
        let side = Params(params).id("side")?;
        return match method {
            "script" => acting::script_of(session, side, Params(params)).map(Answer::Json),
            "filter" => opening::filter_of(session, side, Params(params)).map(Answer::Json),
            _ => {
                let waits = !is_quick(method, params);
                let (side, own) = session.sides.of_request(session, side, params, waits)?;
                answer_until(&side, method, &own, is_cancelled)
            }
        };
    }
    let params = Params(params);
    match method {
        "sides" => comparing::sides(session).map(Answer::Json),
        "compare" => comparing::compare(session, params).map(Answer::Json),
        "histograms" => comparing::histograms(session, params).map(Answer::Json),
        "open" => Ok(Answer::Json(opening::open(session))),
        "filter" => opening::filter(session, params).map(Answer::Json),
        "view" => drawing::view(session, params),
        "overview" => drawing::overview(session, params),
        "arrows" => drawing::arrows(session, params),
        "levels" => drawing::levels(session, params),
        LANE_ACTIVITY => activity::lane_activity(session, params),
        "at" => telling::at(session, params).map(Answer::Json),
        "step" => telling::step(session, params).map(Answer::Json),
        "events" => listing::events(session, params).map(Answer::Json),
        "activities" => acting::activities(session, params).map(Answer::Json),
        "script" => acting::script(session, params, &Watch::default()).map(Answer::Json),
        "stats" => counting::stats(session, params).map(Answer::Json),
        "search" => search::search(session, params, is_cancelled).map(Answer::Json),
        SECTION => section::section(session, params, is_cancelled).map(Answer::Json),
        "histogram" => counting::histogram(session, params).map(Answer::Json),
        "flame" => nesting::flame(session, params).map(Answer::Json),
        "tracepoints" => costing::tracepoints(session, params).map(Answer::Json),
        "fields" => plotting::fields(session, params).map(Answer::Json),
        "values" => plotting::values(session, params),
        "tables" => querying::tables(session).map(Answer::Json),
        "deltas" => between::deltas(session, params).map(Answer::Json),
        "brushed" => brushing::brushed(session, params),
        "utilisation" => using::utilisation(session, params),
        "notes" => noting::read(session).map(Answer::Json),
        "note" => noting::write(session, params).map(Answer::Json),
        INSTRUCTIONS => flow::instructions(session, params).map(Answer::Json),
        CONTROL => controlling::control(session, params).map(Answer::Json),
        SQL => querying::sql(session, params).map(Answer::Json),
        "find" => listing::find(session, params).map(Answer::Json),
        _ => Err(Problem::new(
            "no such method",
            method,
            "the page is of another version: load it again",
        )),
    }
}
