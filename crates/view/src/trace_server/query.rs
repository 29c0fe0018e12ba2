// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parameters of a request. Anybody may have written them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Asked, Refusal};
use crate::params::PX_MAX;

/// Items of a request at most.
const ITEMS_MAX: usize = 20_000;

/// What requests have in common.
#[derive(Debug, Default)]
pub struct Query {
    /// From when, in the times of the session; all where nothing is said.
    pub begin: i64,
    /// Until when, this nanosecond included.
    pub end: i64,
    /// Samples.
    pub count: u32,
    /// Entries; `None`: all.
    pub items: Option<Vec<u32>>,
    /// The only time, or the first, that is named.
    pub time: Option<i64>,
    /// The first line of a table.
    pub index: Option<u64>,
    /// Lines of a table.
    pub lines: u64,
    /// Columns of a table.
    pub columns: Option<Vec<u32>>,
    /// What to look for in which column.
    pub wanted: BTreeMap<u32, String>,
    /// Whether it is looked for backwards; `None`: only lines are marked.
    pub is_backwards: Option<bool>,
    /// Categories of annotations; `None`: all.
    pub categories: Option<Vec<String>>,
}

fn wrong(name: &str, expected: &str) -> Refusal {
    Refusal::new(400, "cannot read the request", name, &format!("expected {expected}"))
}

fn integer(value: &Value, name: &str) -> Result<i64, Refusal> {
    let whole = value.as_i64().or_else(|| value.as_u64().map(|_| i64::MAX));
    let whole = whole.or_else(|| value.as_f64().map(|number| number as i64));
    whole.ok_or_else(|| wrong(name, "a number"))
}

fn numbers(value: &Value, name: &str) -> Result<Vec<u32>, Refusal> {
    let list = value.as_array().filter(|list| list.len() <= ITEMS_MAX);
    let list = list.ok_or_else(|| wrong(name, "a list of at most 20,000 numbers"))?;
    // Entries that cannot be ours, -1 for one, are nobody's.
    Ok(list.iter().filter_map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())).collect())
}

impl Query {
    /// Reads a body.
    ///
    /// # Errors
    /// It is no query.
    pub fn parse(asked: &Asked<'_>, body: &[u8]) -> Result<Self, Refusal> {
        let body: Value = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).map_err(|_| wrong("body", "JSON"))?
        };
        let given = |name: &str| body["parameters"].get(name).filter(|value| !value.is_null());
        let mut query = Self {
            begin: asked.relative(asked.begin()),
            end: asked.relative(asked.end()),
            count: 1000,
            ..Self::default()
        };
        if let Some(range) = given("requested_timerange") {
            query.begin = asked.relative(integer(&range["start"], "requested_timerange.start")?);
            query.end = asked.relative(integer(&range["end"], "requested_timerange.end")?);
            let count = range.get("nbTimes").or(range.get("nbSamples"));
            if let Some(count) = count.filter(|count| !count.is_null()) {
                query.count = integer(count, "requested_timerange.nbTimes")?
                    .clamp(1, i64::from(PX_MAX)) as u32;
            }
        }
        if let Some(times) = given("requested_times") {
            let list = times.as_array().ok_or_else(|| wrong("requested_times", "a list"))?;
            let name = "requested_times";
            if let (Some(first), Some(last)) = (list.first(), list.last()) {
                query.begin = asked.relative(integer(first, name)?);
                query.end = asked.relative(integer(last, name)?);
                query.count = u32::try_from(list.len()).unwrap_or(PX_MAX).clamp(1, PX_MAX);
                query.time = Some(query.begin);
            }
        }
        query.end = query.end.max(query.begin);
        let list = |name| given(name).map(|value| numbers(value, name)).transpose();
        query.items = list("requested_items")?;
        query.columns = list("requested_table_column_ids")?;
        let count = |name| given(name).map(|value| integer(value, name)).transpose();
        query.index = count("requested_table_index")?.map(|index| index.max(0) as u64);
        query.lines = count("requested_table_count")?.unwrap_or(100).clamp(0, 10_000) as u64;
        if let Some(wanted) = given("table_search_expressions").and_then(Value::as_object) {
            let pair = |(id, text): (&String, &Value)| {
                Some((id.parse().ok()?, text.as_str().filter(|text| !text.is_empty())?.to_owned()))
            };
            query.wanted = wanted.iter().filter_map(pair).collect();
        }
        query.is_backwards = given("table_search_direction").map(|way| way == "PREVIOUS");
        query.categories = given("requested_marker_categories")
            .and_then(Value::as_array)
            .map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        Ok(query)
    }
}
