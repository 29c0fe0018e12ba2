// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces, the single experiment that contains them, and the identification of the server.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};

use serde_json::{Value, json};

use super::{Asked, Method, Refusal};

/// Identifies the server.
pub fn identifier() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"), "productId": "lateralis.view", "tspVersion": "0.6.0",
        "os": std::env::consts::OS, "osArch": std::env::consts::ARCH,
    })
}

/// Returns a UUID that depends only on the text. The hash intentionally has no key, because viewers
/// keep these ids when the server restarts.
fn uuid(kind: &str, text: &str) -> String {
    let half = |part: u8| {
        let mut hasher = DefaultHasher::new();
        (kind, part, text).hash(&mut hasher);
        hasher.finish()
    };
    let (a, b) = (half(0), half(1));
    // Version 8, variant 1: RFC 9562 §5.8.
    format!(
        "{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        0x8000 | ((b >> 48) & 0x3fff),
        b & 0xffff_ffff_ffff,
    )
}

fn status(asked: &Asked<'_>) -> &'static str {
    if asked.open["is_live"] == true { "RUNNING" } else { "COMPLETED" }
}

fn paths(asked: &Asked<'_>) -> Vec<String> {
    let path = |recording: &Value| recording["path"].as_str().unwrap_or_default().to_owned();
    asked.list("recordings").iter().map(path).collect()
}

/// Resolves a path or `file:` URI; returns it unchanged if it does not exist.
fn resolved(path: &str) -> String {
    let path = path.strip_prefix("file://").unwrap_or(path);
    fs::canonicalize(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

fn name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

fn trace(asked: &Asked<'_>, recording: &Value) -> Value {
    let path = resolved(recording["path"].as_str().unwrap_or_default());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let losses = asked.list("losses").len();
    let damage = asked.list("damage").len();
    json!({
        "UUID": uuid("trace", &path), "name": name(&path), "path": path,
        "start": asked.begin(), "end": asked.end(),
        "nbEvents": recording["events"], "indexingStatus": status(asked),
        "properties": {
            "format": text(&recording["format"]),
            "events are": text(&recording["quality"]),
            "stretches with lost events, of all traces": losses.to_string(),
            "damaged places, of all traces": damage.to_string(),
        },
    })
}

fn all_traces(asked: &Asked<'_>) -> Vec<Value> {
    asked.list("recordings").iter().map(|recording| trace(asked, recording)).collect()
}

fn experiment(asked: &Asked<'_>) -> Value {
    let traces = all_traces(asked);
    let events: u64 = traces.iter().filter_map(|trace| trace["nbEvents"].as_u64()).sum();
    let names: Vec<&str> = traces.iter().filter_map(|trace| trace["name"].as_str()).collect();
    json!({
        "UUID": experiment_id(asked), "name": names.join(", "),
        "start": asked.begin(), "end": asked.end(),
        "nbEvents": events, "indexingStatus": status(asked), "traces": traces,
    })
}

fn experiment_id(asked: &Asked<'_>) -> String {
    let paths: Vec<String> = paths(asked).iter().map(|path| resolved(path)).collect();
    uuid("experiment", &paths.join("\n"))
}

/// Checks the id of the experiment.
pub fn is_known(asked: &Asked<'_>, id: &str) -> Result<(), Refusal> {
    let is_known = experiment_id(asked) == id;
    is_known.then_some(()).ok_or_else(|| Refusal::not_found("no such experiment", id))
}

fn parameter<'v>(body: &'v Value, name: &str) -> Result<&'v Value, Refusal> {
    let value = &body["parameters"][name];
    let advice = "the protocol wants it";
    let missing =
        || Refusal::new(400, "a parameter is missing", format!("parameters.{name}"), advice);
    (!value.is_null()).then_some(value).ok_or_else(missing)
}

fn read(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body)
        .map_err(|_| Refusal::new(400, "cannot read the request", "body", "expected JSON"))
}

/// Requests to `traces` and below.
pub fn traces(
    asked: &Asked<'_>,
    method: Method,
    rest: &[&str],
    body: &[u8],
) -> Result<Value, Refusal> {
    let all = all_traces(asked);
    match (method, rest) {
        (Method::Get, []) => Ok(all.into()),
        (Method::Post, []) => {
            let body = read(body)?;
            let uri = parameter(&body, "uri")?.as_str().unwrap_or_default();
            let path = resolved(uri);
            let found = all.into_iter().find(|trace| trace["path"] == path.as_str());
            let advice = "only the traces are served that lat view was given";
            found.ok_or_else(|| Refusal::new(403, "this trace is not served", uri, advice))
        }
        // A trace that a viewer closes stays available to the next viewer.
        (Method::Get | Method::Delete, [id]) => {
            let found = all.into_iter().find(|trace| trace["UUID"] == *id);
            found.ok_or_else(|| Refusal::not_found("no such trace", id))
        }
        _ => Err(Refusal::new(405, "a trace cannot be changed", rest.join("/"), "")),
    }
}

/// Requests to the list of experiments.
pub fn experiments(asked: &Asked<'_>, method: Method, body: &[u8]) -> Result<Value, Refusal> {
    match method {
        Method::Get => Ok(json!([experiment(asked)])),
        Method::Post => {
            let body = read(body)?;
            let wanted = parameter(&body, "traces")?.as_array().cloned().unwrap_or_default();
            let all = all_traces(asked);
            let has = |list: &[Value], id: &Value| list.contains(id);
            let ids: Vec<Value> = all.iter().map(|trace| trace["UUID"].clone()).collect();
            let is_all =
                ids.iter().all(|id| has(&wanted, id)) && wanted.iter().all(|id| has(&ids, id));
            let advice = "there is one, of all traces that lat view was given: start another lat view \
                          for some of them";
            let problem = || Refusal::new(403, "no such experiment can be made", "traces", advice);
            is_all.then(|| experiment(asked)).ok_or_else(problem)
        }
        _ => Err(Refusal::new(405, "experiments cannot be changed", "", "")),
    }
}

/// Requests to the experiment.
pub fn one(asked: &Asked<'_>, method: Method) -> Result<Value, Refusal> {
    match method {
        Method::Get | Method::Delete => Ok(experiment(asked)),
        _ => Err(Refusal::new(405, "an experiment cannot be changed", "", "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_traces_are_uuids_that_stay() {
        let id = uuid("trace", "/a/b");
        let parts: Vec<&str> = id.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('8') && "89ab".contains(&parts[3][..1]), "{id}");
        assert_eq!(id, uuid("trace", "/a/b"));
        assert_ne!(id, uuid("trace", "/a/c"));
        assert_ne!(id, uuid("experiment", "/a/b"));
    }

    #[test]
    fn a_trace_is_named_by_its_folder() {
        assert_eq!((name("/x/demo/"), name("demo"), name("/")), ("demo", "demo", ""));
        assert_eq!(resolved("file:///nonexistent/x"), "/nonexistent/x");
    }
}
