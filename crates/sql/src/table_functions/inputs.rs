// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads the input tables of a table function.

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

/// A table with the columns that are read, in their order.
#[derive(Debug, Clone)]
pub struct Input {
    name: String,
    provider: Arc<dyn TableProvider>,
    columns: Vec<usize>,
}

impl Input {
    /// The table of this name, without columns yet.
    ///
    /// Errors: it does not exist.
    pub fn new(tables: &Tables, name: &str) -> Result<Self> {
        let Some((name, provider)) = tables.find(name) else {
            // In the wording of the engine, so that advice is added to both.
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
    /// Errors: there is none of this name; the most similar ones are listed.
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

    /// Index of the first existing one of these columns.
    pub fn any_column(&self, names: &[&str]) -> Option<usize> {
        let schema = self.schema();
        names.iter().find_map(|name| schema.index_of(name).ok())
    }

    /// Requests a column of the table; returns its index among those that are read.
    pub fn ask(&mut self, column: usize) -> usize {
        if let Some(at) = self.columns.iter().position(|asked| *asked == column) {
            return at;
        }
        self.columns.push(column);
        self.columns.len() - 1
    }

    /// The requested columns, in order.
    pub fn asked_schema(&self) -> Result<Schema> {
        Ok(self.schema().project(&self.columns)?)
    }

    /// The engine's plan for reading them.
    pub async fn plan(&self, state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        self.provider.scan(state, Some(&self.columns), &[], None).await
    }
}

/// Reads all of a plan, accounting for its memory.
///
/// Errors: those of the plan; out of memory.
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
        // Once as read, once joined with the others.
        memory.try_grow(2 * batch.get_array_memory_size())?;
        batches.push(batch);
    }
    Ok(concat_batches(&schema, &batches)?)
}

/// A column as integers.
///
/// Errors: its values are not numbers.
pub fn numbers(column: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// One number of a column, unless it is NULL.
pub fn number(column: &Int64Array, row: usize) -> Option<i64> {
    column.is_valid(row).then(|| column.value(row))
}
