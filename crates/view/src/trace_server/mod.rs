// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Server of Eclipse's Trace Server Protocol 0.6 (`API.yaml` of
//! eclipse-cdt-cloud/trace-server-protocol), for the trace viewers of VS Code and Theia.
//!
//! It only translates: all data is from the methods of spec/view.md, with the same filters, losses
//! and damage. There is one experiment, which contains all traces that `lat view` was given; others
//! cannot be opened with the protocol.

mod events;
mod experiment;
mod outputs;
mod places;
mod query;
mod statistics;
mod styles;
mod timeline;
mod xy;

use serde_json::{Value, json};

use crate::answer::{Answer, Numbers, Problem};
use crate::methods;
use crate::session::Session;
use query::Query;

/// Method of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// Reads a resource.
    #[default]
    Get,
    /// Reads with parameters, or creates a resource.
    Post,
    /// Changes a resource.
    Put,
    /// Deletes a resource.
    Delete,
}

/// Reason why a request failed, with its HTTP status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status: 400, 403, 404 or 405.
    pub status: u16,
    problem: Problem,
}

impl Refusal {
    fn new(status: u16, what: &str, place: impl Into<String>, advice: &str) -> Self {
        Self { status, problem: Problem::new(what, place, advice) }
    }

    fn not_found(what: &str, place: &str) -> Self {
        Self::new(404, what, place, "ask for the list of those that there are")
    }

    /// `ErrorResponse` of the protocol.
    #[must_use]
    pub fn json(&self) -> Value {
        let Problem { what, place, advice } = &self.problem;
        let detail: Vec<&str> =
            [place.as_str(), advice.as_str()].into_iter().filter(|text| !text.is_empty()).collect();
        json!({ "title": what, "detail": detail.join(": ") })
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { status: 400, problem }
    }
}

/// Session of a request, in terms of the protocol.
struct Asked<'a> {
    session: &'a Session,
    /// Response of the method `open`.
    open: Value,
    /// Absolute time of the session's time 0, in nanoseconds.
    origin: i64,
}

impl<'a> Asked<'a> {
    fn new(session: &'a Session) -> Result<Self, Refusal> {
        let open = match methods::answer(session, "open", &json!({}))? {
            Answer::Json(open) | Answer::Columns(open, _) => open,
        };
        let origin = open["origin"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(Self { session, open, origin })
    }

    fn list(&self, name: &str) -> &[Value] {
        self.open[name].as_array().map_or(&[], Vec::as_slice)
    }

    /// Converts a time of the session to an absolute time.
    fn absolute(&self, time: f64) -> i64 {
        self.origin.saturating_add(time as i64)
    }

    /// Converts an absolute time to a time of the session.
    fn relative(&self, time: i64) -> i64 {
        time.saturating_sub(self.origin)
    }

    fn begin(&self) -> i64 {
        self.absolute(self.open["begin"].as_f64().unwrap_or(0.0))
    }

    fn end(&self) -> i64 {
        self.absolute(self.open["end"].as_f64().unwrap_or(0.0))
    }

    /// Calls a method and returns its JSON result.
    fn json(&self, method: &str, params: Value) -> Result<Value, Problem> {
        match methods::answer(self.session, method, &params)? {
            Answer::Json(value) | Answer::Columns(value, _) => Ok(value),
        }
    }

    /// Calls a method and returns its columns.
    fn columns(&self, method: &str, params: Value) -> Result<(Value, Columns), Problem> {
        match methods::answer(self.session, method, &params)? {
            Answer::Json(value) => Ok((value, Columns(Vec::new()))),
            Answer::Columns(value, columns) => Ok((value, Columns(columns))),
        }
    }
}

/// Columns of a response, by name.
struct Columns(Vec<(&'static str, Numbers)>);

impl Columns {
    /// Value at an index of a column.
    fn get(&self, name: &str, index: usize) -> Option<f64> {
        let (_, numbers) = self.0.iter().find(|(known, _)| *known == name)?;
        match numbers {
            Numbers::U8(all) => all.get(index).map(|n| f64::from(*n)),
            Numbers::U16(all) => all.get(index).map(|n| f64::from(*n)),
            Numbers::U32(all) => all.get(index).map(|n| f64::from(*n)),
            Numbers::F64(all) => all.get(index).copied(),
        }
    }

    fn at(&self, name: &str, index: usize) -> f64 {
        self.get(name, index).unwrap_or(0.0)
    }

    /// All values of a column.
    fn all(&self, name: &'static str) -> impl Iterator<Item = f64> + '_ {
        (0..).map_while(move |index| self.get(name, index))
    }
}

/// Wraps a result in the response object of the protocol.
fn model(model: Value) -> Value {
    json!({ "model": model, "status": "COMPLETED", "statusMessage": "Completed" })
}

/// Answers a request; `path` is relative to the path of the protocol.
///
/// # Errors
/// If the request is invalid.
pub fn answer(
    session: &Session,
    method: Method,
    path: &str,
    body: &[u8],
) -> Result<Value, Refusal> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match (method, parts.as_slice()) {
        (Method::Get, ["health"]) => return Ok(json!({ "status": "UP" })),
        (Method::Get, ["identifier"]) => return Ok(experiment::identifier()),
        (Method::Get, ["config", "types"]) => return Ok(json!([])),
        _ => {}
    }
    let asked = Asked::new(session)?;
    match parts.as_slice() {
        ["traces", rest @ ..] => experiment::traces(&asked, method, rest, body),
        ["experiments"] => experiment::experiments(&asked, method, body),
        ["experiments", id, rest @ ..] => {
            experiment::is_known(&asked, id)?;
            match (method, rest) {
                (_, []) => experiment::one(&asked, method),
                (Method::Get, ["bookmarks"]) => Ok(json!([])),
                (Method::Get | Method::Post, ["outputs", rest @ ..]) => {
                    of_outputs(&asked, method, rest, body)
                }
                _ => Err(unknown(path)),
            }
        }
        _ => Err(unknown(path)),
    }
}

fn unknown(path: &str) -> Refusal {
    let advice = "lat view answers version 0.6 of the protocol without bookmarks, configurations and \
                  derived outputs";
    Refusal::new(404, "nothing is served here", path, advice)
}

/// Requests to the outputs of the experiment.
fn of_outputs(
    asked: &Asked<'_>,
    method: Method,
    parts: &[&str],
    body: &[u8],
) -> Result<Value, Refusal> {
    if method == Method::Get {
        return match parts {
            [] => Ok(outputs::all(asked)),
            ["markerSets"] => Ok(model(json!([]))),
            [output, "annotations"] => {
                outputs::is_known(asked, output)?;
                Ok(model(timeline::annotation_categories()))
            }
            [output] => outputs::one(asked, output),
            _ => Err(unknown(&parts.join("/"))),
        };
    }
    let query = Query::parse(asked, body)?;
    let answered = match parts {
        ["timeGraph", "timeline", "tree"] => timeline::tree(asked),
        ["timeGraph", "timeline", "states"] => timeline::states(asked, &query)?,
        ["timeGraph", "timeline", "arrows"] => timeline::arrows(asked, &query)?,
        ["timeGraph", "timeline", "tooltip"] => timeline::tooltip(asked, &query)?,
        ["timeline", "annotations"] => timeline::annotations(asked, &query)?,
        ["timeline", "style"] => styles::all(asked),
        ["XY", output, "tree"] => xy::tree(asked, output)?,
        ["XY", output, "xy"] => xy::values(asked, output, &query)?,
        ["table", "events", "columns"] => events::columns(),
        ["table", "events", "lines"] => events::lines(asked, &query)?,
        ["data", output, "tree"] => statistics::tree(asked, output, &query)?,
        [output, "annotations"] => {
            outputs::is_known(asked, output)?;
            json!({ "annotations": {} })
        }
        [output, "style"] => {
            outputs::is_known(asked, output)?;
            json!({ "styles": {} })
        }
        _ => return Err(unknown(&parts.join("/"))),
    };
    Ok(model(answered))
}
