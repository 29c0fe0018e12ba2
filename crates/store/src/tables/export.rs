// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables as files: Parquet, CSV (RFC 4180), JSON lines, Arrow.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use lateralis_model::Damage;
use lateralis_traces::{TableCell, TableFile, TableType};

use super::ipc::Ipc;
use super::{Scan, Session, StoreError, Table, json};

/// Bytes of a row group of Parquet in memory.
const GROUP_BYTES: usize = 64 << 20;

/// A format for one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Apache Parquet; lists are JSON text.
    Parquet,
    /// Comma-separated values after a line of names; missing values are empty.
    Csv,
    /// One JSON object a line.
    JsonLines,
    /// Arrow IPC file, with the types, units and descriptions of the columns.
    Arrow,
    /// Arrow IPC stream, batch by batch.
    ArrowStream,
}

/// Reason why a table could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// Reading failed.
    Store(StoreError),
    /// Writing failed.
    Io(io::Error),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Io(error) => write!(f, "cannot write the table: {error}"),
        }
    }
}

impl std::error::Error for ExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Io(error) => Some(error),
        }
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Result of writing a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Rows written.
    pub rows: u64,
    /// Damage found while reading.
    pub damage: Vec<Damage>,
}

impl Session {
    /// Writes the rows of a table that a scan selects; the limit of the scan applies to the whole table.
    ///
    /// Cost: one pass. Memory: one batch; for Parquet, a row group of 64 MiB.
    ///
    /// # Errors
    /// If a value is too long for a column, or `out` cannot be written.
    pub fn export(
        &self,
        table: &Table,
        scan: &Scan,
        format: TableFormat,
        out: &mut dyn Write,
    ) -> Result<Exported, ExportError> {
        let mut writer = TableWriter::new(table, scan.columns.as_deref(), format, out)?;
        let mut done = Exported::default();
        let mut failed: Option<io::Error> = None;
        for partition in self.partitions(table, scan) {
            let left = scan.limit.map(|limit| limit as u64 - done.rows);
            if left == Some(0) || failed.is_some() {
                break;
            }
            let scan = Scan { limit: left.map(|left| left as usize), ..scan.clone() };
            let damage = self.scan(table, &partition, &scan, &mut |batch| {
                done.rows += batch.num_rows() as u64;
                match writer.batch(&batch) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => {
                        failed = Some(error);
                        ControlFlow::Break(())
                    }
                }
            });
            done.damage.extend(damage.map_err(ExportError::Store)?);
        }
        if let Some(error) = failed {
            return Err(error.into());
        }
        writer.finish()?;
        Ok(done)
    }
}

/// Writes rows of a table to a file.
pub struct TableWriter<'o>(Writer<'o>);

impl<'o> TableWriter<'o> {
    /// Starts a file with these columns, by index, or with all.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn new(
        table: &Table,
        columns: Option<&[usize]>,
        format: TableFormat,
        out: &'o mut dyn Write,
    ) -> io::Result<Self> {
        let columns: Vec<usize> = match columns {
            Some(columns) => columns.to_vec(),
            None => (0..table.schema.fields().len()).collect(),
        };
        let fields: Vec<_> = columns.iter().filter_map(|c| table.schema.fields().get(*c)).collect();
        let writer = match format {
            TableFormat::Parquet => {
                let kinds: Vec<(String, TableType, bool)> =
                    fields.iter().map(|f| (f.name().clone(), kind(f.data_type()), true)).collect();
                let about = vec![("table".to_owned(), table.name.clone())];
                Writer::Parquet(TableFile::new(out, &kinds, about, GROUP_BYTES)?)
            }
            TableFormat::Csv => {
                let mut line = String::new();
                for (index, field) in fields.iter().enumerate() {
                    line.push_str(if index > 0 { "," } else { "" });
                    quoted(&mut line, field.name());
                }
                line.push_str("\r\n");
                out.write_all(line.as_bytes())?;
                Writer::Csv(out)
            }
            TableFormat::JsonLines => {
                let names = fields.iter().map(|field| {
                    let mut name = String::new();
                    json::string(&mut name, field.name());
                    name
                });
                Writer::JsonLines(out, names.collect())
            }
            TableFormat::Arrow | TableFormat::ArrowStream => {
                let about = [("table".to_owned(), table.name.clone())];
                let fields: Vec<_> = fields.into_iter().cloned().collect();
                let schema = Schema::new_with_metadata(fields, about.into());
                Writer::arrow(out, Arc::new(schema), format)?
            }
        };
        Ok(Self(writer))
    }

    /// Adds rows; they must have the columns that the file was started with.
    ///
    /// # Errors
    /// If writing fails, or the columns differ in a format that declares their types.
    pub fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.batch(batch)
    }

    /// Flushes the rows written so far, so that a reader of CSV, JSON lines or an Arrow stream sees them.
    ///
    /// # Errors
    /// If writing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Writer::Parquet(_) => Ok(()),
            Writer::Csv(out) | Writer::JsonLines(out, _) => out.flush(),
            Writer::Arrow(ipc, _) => ipc.flush(),
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Writer::Parquet(file) => file.finish().map(drop),
            Writer::Arrow(ipc, _) => ipc.finish(),
            Writer::Csv(_) | Writer::JsonLines(..) => Ok(()),
        }
    }
}

enum Writer<'o> {
    Parquet(TableFile<&'o mut dyn Write>),
    Csv(&'o mut dyn Write),
    JsonLines(&'o mut dyn Write, Vec<String>),
    /// With the declared schema.
    Arrow(Ipc<&'o mut dyn Write>, SchemaRef),
}

fn kind(data_type: &DataType) -> TableType {
    match data_type {
        DataType::Int64 => TableType::I64,
        DataType::UInt64 => TableType::U64,
        DataType::Float64 => TableType::F64,
        DataType::Boolean => TableType::Bool,
        DataType::Binary => TableType::Bytes,
        DataType::List(_) => TableType::Json,
        _ => TableType::Text,
    }
}

impl<'o> Writer<'o> {
    fn arrow(out: &'o mut dyn Write, schema: SchemaRef, format: TableFormat) -> io::Result<Self> {
        let ipc = match format {
            TableFormat::ArrowStream => Ipc::stream(out, &schema)?,
            _ => Ipc::file(out, &schema)?,
        };
        Ok(Self::Arrow(ipc, schema))
    }

    fn batch(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let columns: Vec<Values<'_>> =
            batch.columns().iter().map(|column| Values::of(&**column)).collect();
        let mut text = String::new();
        match self {
            Self::Arrow(ipc, schema) => {
                let batch = batch.clone().with_schema(Arc::clone(schema));
                ipc.batch(&batch.map_err(io::Error::other)?)
            }
            Self::Parquet(file) => {
                for row in 0..batch.num_rows() {
                    for (index, column) in columns.iter().enumerate() {
                        text.clear();
                        let cell = match column.get(row) {
                            None => continue,
                            Some(Value::Int(value)) => TableCell::Integer(value),
                            Some(Value::Unsigned(value)) => TableCell::Integer(value as i64),
                            Some(Value::Real(value)) => TableCell::Real(value),
                            Some(Value::Bool(value)) => TableCell::Bool(value),
                            Some(Value::Text(value)) => TableCell::Bytes(value.as_bytes()),
                            Some(Value::Bytes(value)) => TableCell::Bytes(value),
                            Some(list @ Value::List(_)) => {
                                list.json(&mut text);
                                TableCell::Bytes(text.as_bytes())
                            }
                        };
                        file.cell(index, cell);
                    }
                    file.end_row()?;
                }
                Ok(())
            }
            Self::Csv(out) => {
                for row in 0..batch.num_rows() {
                    for (index, column) in columns.iter().enumerate() {
                        text.push_str(if index > 0 { "," } else { "" });
                        match column.get(row) {
                            Some(Value::Text(value)) => quoted(&mut text, value),
                            Some(list @ Value::List(_)) => {
                                let mut json = String::new();
                                list.json(&mut json);
                                quoted(&mut text, &json);
                            }
                            Some(Value::Bytes(bytes)) => hexadecimal(&mut text, bytes),
                            // Without quotes: values other than text contain no characters that need
                            // them.
                            Some(Value::Real(value)) => text.push_str(&value.to_string()),
                            Some(other) => other.json(&mut text),
                            None => {}
                        }
                    }
                    text.push_str("\r\n");
                }
                out.write_all(text.as_bytes())
            }
            Self::JsonLines(out, names) => {
                for row in 0..batch.num_rows() {
                    text.push('{');
                    for (index, (name, column)) in names.iter().zip(&columns).enumerate() {
                        text.push_str(if index > 0 { "," } else { "" });
                        text.push_str(name);
                        text.push(':');
                        match column.get(row) {
                            Some(value) => value.json(&mut text),
                            None => text.push_str("null"),
                        }
                    }
                    text.push_str("}\n");
                }
                out.write_all(text.as_bytes())
            }
        }
    }
}

/// A field of RFC 4180, quoted if necessary.
fn quoted(out: &mut String, text: &str) {
    if !text.contains(['"', ',', '\n', '\r']) {
        return out.push_str(text);
    }
    out.push('"');
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

fn hexadecimal(out: &mut String, bytes: &[u8]) {
    use fmt::Write as _;
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
}

/// A value of an array.
enum Value<'a> {
    Int(i64),
    Unsigned(u64),
    Real(f64),
    Bool(bool),
    Text(&'a str),
    Bytes(&'a [u8]),
    List(arrow_array::ArrayRef),
}

impl Value<'_> {
    fn json(&self, out: &mut String) {
        use fmt::Write as _;
        let _ = match self {
            Self::Int(value) => write!(out, "{value}"),
            Self::Unsigned(value) => write!(out, "{value}"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Real(value) => return json::real(out, *value),
            Self::Text(text) => return json::string(out, text),
            Self::Bytes(bytes) => {
                out.push('"');
                hexadecimal(out, bytes);
                out.push('"');
                return;
            }
            Self::List(array) => {
                out.push('[');
                let values = Values::of(&**array);
                for index in 0..array.len() {
                    out.push_str(if index > 0 { "," } else { "" });
                    match values.get(index) {
                        Some(value) => value.json(out),
                        None => out.push_str("null"),
                    }
                }
                out.push(']');
                return;
            }
        };
    }
}

/// An array, by type.
enum Values<'a> {
    Int(&'a arrow_array::Int64Array),
    Unsigned(&'a arrow_array::UInt64Array),
    Real(&'a arrow_array::Float64Array),
    Bool(&'a arrow_array::BooleanArray),
    Text(&'a arrow_array::StringArray),
    Word(&'a arrow_array::DictionaryArray<Int32Type>, &'a arrow_array::StringArray),
    Bytes(&'a arrow_array::BinaryArray),
    List(&'a arrow_array::ListArray),
    /// A type that no table uses.
    None,
}

impl<'a> Values<'a> {
    fn of(array: &'a dyn Array) -> Self {
        match array.data_type() {
            DataType::Int64 => Self::Int(array.as_primitive::<Int64Type>()),
            DataType::UInt64 => Self::Unsigned(array.as_primitive::<UInt64Type>()),
            DataType::Float64 => Self::Real(array.as_primitive::<Float64Type>()),
            DataType::Boolean => Self::Bool(array.as_boolean()),
            DataType::Utf8 => Self::Text(array.as_string::<i32>()),
            DataType::Binary => Self::Bytes(array.as_binary::<i32>()),
            DataType::List(_) => Self::List(array.as_list::<i32>()),
            DataType::Dictionary(..) => match array.as_dictionary_opt::<Int32Type>() {
                Some(words) => match words.values().as_string_opt::<i32>() {
                    Some(texts) => Self::Word(words, texts),
                    None => Self::None,
                },
                None => Self::None,
            },
            _ => Self::None,
        }
    }

    fn get(&self, row: usize) -> Option<Value<'a>> {
        match self {
            Self::Int(array) => array.is_valid(row).then(|| Value::Int(array.value(row))),
            Self::Unsigned(array) => array.is_valid(row).then(|| Value::Unsigned(array.value(row))),
            Self::Real(array) => array.is_valid(row).then(|| Value::Real(array.value(row))),
            Self::Bool(array) => array.is_valid(row).then(|| Value::Bool(array.value(row))),
            Self::Text(array) => array.is_valid(row).then(|| Value::Text(array.value(row))),
            Self::Bytes(array) => array.is_valid(row).then(|| Value::Bytes(array.value(row))),
            Self::List(array) => array.is_valid(row).then(|| Value::List(array.value(row))),
            Self::Word(words, texts) => {
                let key = words.keys().is_valid(row).then(|| words.keys().value(row))?;
                Some(Value::Text(texts.value(key as usize)))
            }
            Self::None => None,
        }
    }
}
