// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading the tables that a table function works on.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Int64Type, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;

use crate::fault::{nearest, quoted};
use crate::tables::Tables;

/// A table and the columns of it that are read, in the order in which they come.
#[derive(Debug, Clone)]
pub struct Input {
    name: String,
    provider: Arc<dyn TableProvider>,
    columns: Vec<usize>,
}

impl Input {
    /// The table of this name, without columns yet.
    ///
    /// Errors: there is none.
    pub fn new(tables: &Tables, name: &str) -> Result<Self> {
        let Some((name, provider)) = tables.find(name) else {
            // As the engine words it for tables elsewhere, so that advice is added to both.
            return plan_err!("table '{name}' not found");
        };
        Ok(Self { name, provider, columns: Vec::new() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All columns of the table.
    pub fn schema(&self) -> SchemaRef {
        self.provider.schema()
    }

    /// Index of a column of the table.
    ///
    /// Errors: there is none of this name; the nearest are told.
    pub fn column(&self, name: &str) -> Result<usize> {
        let schema = self.schema();
        if let Ok(index) = schema.index_of(name) {
            return Ok(index);
        }
        let near = nearest(name, schema.fields().iter().map(|field| field.name().as_str()));
        let near: Vec<String> = near.into_iter().map(quoted).collect();
        let advice = match near.as_slice() {
            [] => format!("DESCRIBE {} lists them", quoted(&self.name)),
            near => format!("did you mean {}?", near.join(", ")),
        };
        plan_err!("no such column: {} of {}: {advice}", name, quoted(&self.name))
    }

    /// Index of the first of these columns that there is.
    pub fn any_column(&self, names: &[&str]) -> Option<usize> {
        let schema = self.schema();
        names.iter().find_map(|name| schema.index_of(name).ok())
    }

    /// Asks for a column of the table; returns where it will stand in what is read.
    pub fn ask(&mut self, column: usize) -> usize {
        if let Some(at) = self.columns.iter().position(|asked| *asked == column) {
            return at;
        }
        self.columns.push(column);
        self.columns.len() - 1
    }

    /// The columns asked for, as they come.
    pub fn asked_schema(&self) -> Result<Schema> {
        Ok(self.schema().project(&self.columns)?)
    }

    /// How the engine reads them.
    pub async fn plan(&self, state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        self.provider.scan(state, Some(&self.columns), &[], None).await
    }
}

/// Reads all of a plan, accounting for it.
///
/// Errors: those of the plan; no memory left.
pub async fn read_all(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    memory: &MemoryReservation,
) -> Result<RecordBatch> {
    let schema = plan.schema();
    let mut stream = execute_stream(plan, context)?;
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        // Once as it came, once joined with the others.
        memory.try_grow(2 * batch.get_array_memory_size())?;
        batches.push(batch);
    }
    Ok(concat_batches(&schema, &batches)?)
}

/// A column as whole numbers.
///
/// Errors: its values are none.
pub fn numbers(column: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// One number of a column, unless it is NULL.
pub fn number(column: &Int64Array, row: usize) -> Option<i64> {
    column.is_valid(row).then(|| column.value(row))
}
