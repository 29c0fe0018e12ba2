// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Converts columns to types that an output format supports.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// Dictionaries are replaced by their values: each batch has its own, and files have one.
pub fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    change(schema, &|field| plain(field.data_type()))
}

/// Like [`plain_schema`]; composite types become text.
pub fn text_schema(schema: &SchemaRef) -> SchemaRef {
    change(schema, &|field| match plain(field.data_type()) {
        kept if kept.is_nested() || is_binary(&kept) => DataType::Utf8,
        kept => kept,
    })
}

fn is_binary(kept: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    matches!(kept, Binary | BinaryView | LargeBinary | FixedSizeBinary(_))
}

fn change(schema: &SchemaRef, to: &dyn Fn(&Field) -> DataType) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_data_type(to(field)));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

fn plain(given: &DataType) -> DataType {
    let item = |field: &Arc<Field>| {
        Arc::new(field.as_ref().clone().with_data_type(plain(field.data_type())))
    };
    match given {
        DataType::Dictionary(_, value) => plain(value),
        DataType::List(field) => DataType::List(item(field)),
        DataType::LargeList(field) => DataType::LargeList(item(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(item(field), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(item).collect()),
        // Only NULL: formats have no type for that.
        DataType::Null => DataType::Utf8,
        other => other.clone(),
    }
}

/// The batch with the columns of a schema made by one of the functions above.
pub fn fit(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| fit_column(column, field.data_type()));
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}

fn fit_column(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    let given = column.data_type();
    if given == wanted {
        return Ok(Arc::clone(column));
    }
    if *wanted == DataType::Utf8 && (given.is_nested() || is_binary(given)) {
        let options = FormatOptions::default();
        let shown = ArrayFormatter::try_new(column.as_ref(), &options)?;
        let cell = |row: usize| (!column.is_null(row)).then(|| shown.value(row).to_string());
        return Ok(Arc::new((0..column.len()).map(cell).collect::<StringArray>()));
    }
    cast(column, wanted)
}
