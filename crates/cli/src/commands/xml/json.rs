// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `lat xml --json`: results are written as they are found, so that memory does not grow with their number.

use std::io::Write;

use lateralis_analysis::Gaps;
use lateralis_model::Damage;
use lateralis_tmfxml::{Analysis, Datum, File, Found, Kind, Severity};
use serde_json::{Map, Value, json};

use super::{gaps, pass};
use crate::error::CliError;
use crate::selection::Selected;

/// Writes one object: problems of the file, and its analyses with their results.
pub fn write(
    out: &mut dyn Write,
    analyses: &[&Analysis],
    file: &File,
    source: &Selected<'_>,
    damage: &mut Vec<Damage>,
) -> Result<(), CliError> {
    let gaps = gaps(source);
    let problem = |problem: &lateralis_tmfxml::Problem| {
        json!({
            "line": problem.line,
            "column": problem.column,
            "is_error": problem.severity == Severity::Error,
            "what": problem.what,
        })
    };
    let problems: Vec<Value> = file.problems.iter().map(problem).collect();
    write!(out, "{{\"problems\":{},\n\"analyses\":[", Value::Array(problems))?;
    for (index, analysis) in analyses.iter().enumerate() {
        let kind = match analysis.kind {
            Kind::StateProvider => "state_provider",
            Kind::Pattern => "pattern",
        };
        let separator = if index == 0 { "\n" } else { ",\n" };
        let (id, label) = (json!(analysis.id), json!(analysis.label));
        write!(out, "{separator}{{\"id\":{id},\"label\":{label},\"kind\":\"{kind}\",\"found\":[")?;
        let mut separator = "\n";
        let left_out = pass(analysis, source, damage, &mut |found| {
            write!(out, "{separator}{}", of(found, &gaps))?;
            separator = ",\n";
            Ok(())
        })?;
        write!(out, "\n],\"left_out\":{}}}", json!(left_out))?;
    }
    let damage: Vec<String> = damage.iter().map(ToString::to_string).collect();
    writeln!(out, "\n],\n\"damage\":{}}}", json!(damage))?;
    Ok(())
}

fn of(found: &Found, gaps: &Gaps) -> Value {
    match found {
        Found::State(state) => json!({
            "kind": "state",
            "path": state.path.iter().map(|name| &**name).collect::<Vec<&str>>(),
            "value": value(&state.value),
            "begin_ns": state.begin.0,
            "end_ns": state.end.0,
            "is_open": state.is_open,
            "quality": gaps.of_value(state.begin, state.end).name(),
        }),
        Found::Segment(segment) => {
            let field = |(name, of): &(std::sync::Arc<str>, Datum)| (name.to_string(), value(of));
            json!({
                "kind": "segment",
                "name": segment.name,
                "begin_ns": segment.begin.0,
                "end_ns": segment.end.0,
                "fields": segment.fields.iter().map(field).collect::<Map<String, Value>>(),
                "quality": gaps.of_value(segment.begin, segment.end).name(),
            })
        }
    }
}

fn value(of: &Datum) -> Value {
    match of {
        Datum::Null => Value::Null,
        Datum::Integer(number) => json!(number),
        Datum::Real(number) => json!(number),
        Datum::Text(text) | Datum::Named(_, text) => json!(&**text),
    }
}
