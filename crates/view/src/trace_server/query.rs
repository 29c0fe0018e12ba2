// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parameters of a request, which are untrusted.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Asked, Refusal};
use crate::params::PX_MAX;

/// Maximum number of items in a request.
const ITEMS_MAX: usize = 20_000;

/// Parameters that are common to requests.
#[derive(Debug, Default)]
pub struct Query {
    /// Begin of the time range, relative to the session; by default the whole session.
    pub begin: i64,
    /// End of the time range, including this nanosecond.
    pub end: i64,
    /// Number of samples.
    pub count: u32,
    /// Requested entries; `None` for all.
    pub items: Option<Vec<u32>>,
    /// The only or first requested time.
    pub time: Option<i64>,
    /// Number of the first line of a table.
    pub index: Option<u64>,
    /// Number of lines of a table.
    pub lines: u64,
    /// Requested columns of a table.
    pub columns: Option<Vec<u32>>,
    /// Search expressions by column.
    pub wanted: BTreeMap<u32, String>,
    /// Search direction; `None` if matching lines are only highlighted.
    pub is_backwards: Option<bool>,
    /// Categories of annotations; `None` for all.
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
    // Ids that cannot exist, for example -1, are ignored.
    Ok(list.iter().filter_map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())).collect())
}

impl Query {
    /// Parses a body.
    ///
    /// # Errors
    /// If it is not a valid query.
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
