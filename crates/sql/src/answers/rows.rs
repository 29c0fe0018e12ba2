// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts the JSON of commands to Arrow columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use serde_json::Value;

use super::Answer;
use super::specs::{At, Column, Command, Kind, Spec};

/// Rows of a batch.
const ROWS: usize = 8192;

/// The columns of a function.
pub fn schema(spec: &Spec) -> SchemaRef {
    let kind = |kind: Kind| match kind {
        Kind::Int => DataType::Int64,
        Kind::Real => DataType::Float64,
        Kind::Text | Kind::Json => DataType::Utf8,
        Kind::Bool => DataType::Boolean,
    };
    let own =
        (spec.command != Command::Diff).then(|| Field::new("recording", DataType::Utf8, true));
    let columns = spec.columns().map(|column| Field::new(column.name, kind(column.kind), true));
    Arc::new(Schema::new(own.into_iter().chain(columns).collect::<Vec<_>>()))
}

/// A row with its enclosing object.
struct Row<'a> {
    label: &'a str,
    own: &'a Value,
    number: usize,
    outer: &'a Value,
    outer_number: usize,
    is_first: bool,
}

/// The rows of a function in batches.
///
/// Errors: none, unless the spec is wrong.
pub fn batches(spec: &Spec, answer: &Answer) -> Result<Vec<RecordBatch>, ArrowError> {
    let schema = schema(spec);
    let rows = rows(spec, answer);
    let batch = |rows: &[Row<'_>]| {
        let label = || -> ArrayRef {
            Arc::new(rows.iter().map(|row| Some(row.label)).collect::<StringArray>())
        };
        let own = (spec.command != Command::Diff).then(label);
        let columns = spec.columns().map(|of| column(of, rows));
        RecordBatch::try_new(Arc::clone(&schema), own.into_iter().chain(columns).collect())
    };
    rows.chunks(ROWS).map(batch).collect()
}

fn rows<'a>(spec: &Spec, answer: &'a Answer) -> Vec<Row<'a>> {
    let list = |value: &'a Value, pointer: &str| {
        value.pointer(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
    };
    let mut rows = Vec::new();
    for (label, all) in answer {
        for (place, levels) in spec.rows.iter().enumerate() {
            let is_first = place == 0;
            let mut add = |own, number, outer, outer_number| {
                rows.push(Row { label, own, number, outer, outer_number, is_first });
            };
            match levels {
                [only] => {
                    let own = list(all, only).iter().enumerate();
                    own.for_each(|(number, own)| add(own, number, all, 0));
                }
                [outer, inner] => {
                    for (outer_number, outer) in list(all, outer).iter().enumerate() {
                        let own = list(outer, inner).iter().enumerate();
                        own.for_each(|(number, own)| add(own, number, outer, outer_number));
                    }
                }
                _ => {}
            }
        }
    }
    rows
}

fn column(column: &Column, rows: &[Row<'_>]) -> ArrayRef {
    let values = rows.iter().map(|row| value(column.at, row));
    match column.kind {
        Kind::Int => Arc::new(values.map(|value| int(&value?)).collect::<Int64Array>()),
        Kind::Real => Arc::new(values.map(|value| value?.as_f64()).collect::<Float64Array>()),
        Kind::Bool => Arc::new(values.map(|value| value?.as_bool()).collect::<BooleanArray>()),
        Kind::Text => {
            let text = |value: Value| match value {
                Value::String(text) => Some(text),
                Value::Null => None,
                other => Some(other.to_string()),
            };
            Arc::new(values.map(|value| text(value?)).collect::<StringArray>())
        }
        Kind::Json => {
            Arc::new(values.map(|value| value.map(|v| v.to_string())).collect::<StringArray>())
        }
    }
}

fn value(at: At, row: &Row<'_>) -> Option<Value> {
    let within = |of: &Value, pointer: &str| of.pointer(pointer).cloned();
    match at {
        At::Row(pointer) => within(row.own, pointer),
        At::Outer(pointer) => within(row.outer, pointer),
        At::Itself => Some(row.own.clone()),
        At::Number => Some((row.number + 1).into()),
        At::OuterNumber => Some((row.outer_number + 1).into()),
        At::Bucket(begin, width) => {
            let number = |pointer: &str| row.outer.pointer(pointer).and_then(int);
            let behind = number(width)?.checked_mul(i64::try_from(row.number).ok()?)?;
            Some(number(begin)?.checked_add(behind)?.into())
        }
        At::Quality => {
            let not_exact = row.own.get("not_exact")?.as_object()?;
            let any = |word: &str| not_exact.values().any(|quality| quality == word);
            let worst = ["unknown", "lower_bound"].into_iter().find(|word| any(word));
            Some(worst.unwrap_or("exact").into())
        }
        At::OuterQuality(member) => {
            let quality = row.outer.get("not_exact")?.get(member).cloned();
            Some(quality.unwrap_or_else(|| "exact".into()))
        }
        At::IsFirst => Some(row.is_first.into()),
    }
}

/// An integer; values beyond the range of the column are clamped.
fn int(value: &Value) -> Option<i64> {
    let beyond = || value.as_u64().map(|_| i64::MAX);
    value.as_i64().or_else(beyond)
}

#[cfg(test)]
mod tests {
    use super::super::specs::specs;
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    use serde_json::json;

    fn spec(name: &str) -> &'static Spec {
        specs().find(|spec| spec.name == name).unwrap()
    }

    #[test]
    fn rows_inside_of_rows_have_what_they_are_part_of() {
        let span = json!({
            "name": "held",
            "not_exact": { "slowest": "unknown" },
            "slowest": [{ "duration_ns": 9, "key": "a" }, { "duration_ns": 7, "key": null }],
        });
        let answer = vec![("r".to_owned(), json!({ "spans": [span, { "name": "other" }] }))];
        let batches = batches(spec("stats_slowest"), &answer).unwrap();
        assert_eq!(batches.len(), 1);
        let text = |name: &str, row: usize| {
            batches[0].column_by_name(name).unwrap().as_string::<i32>().value(row).to_owned()
        };
        let number = |name: &str, row: usize| {
            batches[0].column_by_name(name).unwrap().as_primitive::<Int64Type>().value(row)
        };
        assert_eq!((text("recording", 1), text("span", 1)), ("r".into(), "held".into()));
        assert_eq!((number("rank", 1), number("duration_ns", 1)), (2, 7));
        assert_eq!(text("quality", 0), "unknown");
        assert!(batches[0].column_by_name("key").unwrap().is_null(1));
    }

    #[test]
    fn the_least_trust_of_a_row_is_its_quality() {
        let row = |not_exact: Value| json!({ "cpu": 0, "not_exact": not_exact });
        let cpus = json!([
            row(json!({})),
            row(json!({ "busy_ns": "lower_bound" })),
            row(json!({ "busy_ns": "lower_bound", "idle_ns": "unknown" })),
        ]);
        let batches = batches(spec("stats_cpus"), &vec![(String::new(), json!({ "cpus": cpus }))]);
        let batches = batches.unwrap();
        let quality = batches[0].column_by_name("quality").unwrap().as_string::<i32>();
        let all: Vec<&str> = quality.iter().flatten().collect();
        assert_eq!(all, ["exact", "lower_bound", "unknown"]);
    }

    #[test]
    fn buckets_begin_one_behind_the_other_and_numbers_do_not_wrap() {
        let series = json!({ "begin_ns": 100, "bucket_ns": 50, "busy_ns": [1, u64::MAX] });
        let cpu = json!({ "cpu": 3, "series": series, "not_exact": {} });
        let batches =
            batches(spec("stats_cpu_series"), &vec![(String::new(), json!({ "cpus": [cpu] }))]);
        let batches = batches.unwrap();
        let column = |name: &str| {
            batches[0].column_by_name(name).unwrap().as_primitive::<Int64Type>().values().to_vec()
        };
        assert_eq!(column("begin_ns"), [100, 150]);
        assert_eq!(column("busy_ns"), [1, i64::MAX]);
    }

    #[test]
    fn names_of_functions_and_of_their_columns_are_told_apart() {
        for (index, spec) in specs().enumerate() {
            assert!(specs().take(index).all(|other| other.name != spec.name), "{}", spec.name);
            let columns: Vec<&str> = spec.columns().map(|column| column.name).collect();
            for (at, name) in columns.iter().enumerate() {
                assert!(!columns[..at].contains(name) && *name != "recording", "{name}");
            }
            assert!(spec.rows.iter().all(|levels| (1..=2).contains(&levels.len())));
            // Names that are SQL keywords would need quotes.
            let quotes = |name: &&&str| crate::fault::quoted(name) != ***name;
            assert_eq!(columns.iter().find(quotes), None, "{}", spec.name);
        }
    }
}
