// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Description of everything that statements can name: tables with their columns, and functions, as text
//! and as JSON. All of it comes from the definitions of the tables and functions themselves.

use std::fmt::Write;

use arrow::datatypes::{DataType, Field, Schema};
use serde_json::{Value, json};

use crate::answers;
use crate::answers::specs::specs;
use crate::engine::Engine;
use crate::fault::quoted;
use crate::functions::DESCRIBED;
use crate::tables::Described;

/// Everything as text: names as written in statements, types, units and meanings.
pub fn text(engine: &Engine) -> String {
    let mut text = String::new();
    for table in engine.described() {
        text += &heading(&table);
        text.push('\n');
        if let Some(schema) = engine.columns(&table.name) {
            text += &columns(&schema, "    ");
        }
        text.push('\n');
    }
    text += &functions();
    text
}

/// Everything as JSON; tables in the format of `lat table --json`.
pub fn json(engine: &Engine) -> Value {
    let about = |schema: &Schema| {
        let column = |field: &Field| {
            json!({
                "name": field.name(),
                "type": field.data_type().to_string(),
                "unit": told(field, "unit"),
                "description": told(field, "description"),
            })
        };
        schema.fields().iter().map(|field| column(field)).collect::<Vec<_>>()
    };
    let table = |table: Described| {
        let columns = engine.columns(&table.name).map(|schema| about(&schema));
        json!({ "name": table.name, "description": table.description, "columns": columns })
    };
    let tables: Vec<Value> = engine.described().into_iter().map(table).collect();
    let own = DESCRIBED
        .iter()
        .map(|function| json!({ "call": function.call, "description": function.gives }));
    let asked = specs().map(|spec| {
        json!({
            "call": call(spec),
            "description": spec.gives,
            "columns": about(&answers::schema(spec)),
        })
    });
    let functions: Vec<Value> = own.chain(asked).collect();
    json!({ "tables": tables, "functions": functions, "all_functions": engine.function_names() })
}

/// Name and description of a table.
pub fn heading(table: &Described) -> String {
    let name = quoted(&table.name);
    if table.description.is_empty() { name } else { format!("{name:<24} {}", table.description) }
}

/// A line for each column: name, type, unit and meaning.
pub fn columns(schema: &Schema, indent: &str) -> String {
    let names: Vec<String> = schema.fields().iter().map(|field| quoted(field.name())).collect();
    let wide = |length: usize, text: &str| length.max(text.chars().count());
    let width = names.iter().fold(0, |length, name| wide(length, name));
    let units = schema.fields().iter().map(|field| told(field, "unit"));
    let unit_width = units.fold(2, wide);
    let kinds = schema.fields().iter().map(|field| kind(field.data_type()));
    let kinds: Vec<String> = kinds.collect();
    let kind_width = kinds.iter().fold(0, |length, kind| wide(length, kind));
    let mut text = String::new();
    for ((field, name), kind) in schema.fields().iter().zip(names).zip(kinds) {
        let (unit, about) = (told(field, "unit"), told(field, "description"));
        let line =
            format!("{indent}{name:<width$}  {kind:<kind_width$}  {unit:<unit_width$}  {about}");
        // Writing into a text does not fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Timeline functions, and those that run commands.
pub fn functions() -> String {
    let mut text = String::new();
    let mut add = |call: &str, gives: &str| {
        let _ = writeln!(text, "{call}\n    {gives}");
    };
    DESCRIBED.iter().for_each(|function| add(function.call, function.gives));
    specs().for_each(|spec| add(&call(spec), spec.gives));
    text
}

fn call(spec: &answers::specs::Spec) -> String {
    format!("FROM {}({})", spec.name, spec.arguments)
}

fn told<'f>(field: &'f Field, key: &str) -> &'f str {
    field.metadata().get(key).map_or("", String::as_str)
}

/// A type as named in docs/reference/tables.md, if it has a name there.
fn kind(kind: &DataType) -> String {
    match kind {
        DataType::Dictionary(_, value) => self::kind(value),
        DataType::Boolean => "yes/no".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytes".to_owned(),
        DataType::List(item) | DataType::LargeList(item) => {
            format!("list of {}", self::kind(item.data_type()))
        }
        kind if kind.is_integer() => "integer".to_owned(),
        kind if kind.is_floating() => "number".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn columns_stand_below_each_other_with_units_and_words() {
        let about = |unit: &str, text: &str| {
            let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
            HashMap::from([pair("unit", unit), pair("description", text)])
        };
        let coded = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
        let schema = Schema::new(vec![
            Field::new("ts", DataType::Int64, true).with_metadata(about("ns", "when")),
            Field::new("Mutex", coded, true),
        ]);
        let expected = "  ts       integer  ns  when\n  \"Mutex\"  text\n";
        assert_eq!(columns(&schema, "  "), expected);
    }
}
