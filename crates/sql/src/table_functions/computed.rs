// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables whose rows are computed by one task when a query runs.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};

/// Computes a table.
#[async_trait::async_trait]
pub trait Computed: fmt::Debug + Send + Sync + 'static {
    /// All columns.
    fn schema(&self) -> &SchemaRef;

    /// The rows of one query that needs these columns.
    ///
    /// Errors: those of planning its inputs.
    async fn stream(
        &self,
        state: &dyn Session,
        chosen: Option<&[usize]>,
    ) -> Result<Arc<dyn PartitionStream>>;

    /// Whether the stream has only the selected columns; otherwise it has all.
    fn chooses(&self) -> bool {
        false
    }
}

/// A computed table for the engine.
#[derive(Debug)]
pub struct ComputedTable<T>(pub T);

#[async_trait::async_trait]
impl<T: Computed> TableProvider for ComputedTable<T> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.0.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let stream = self.0.stream(state, projection.map(Vec::as_slice)).await?;
        let schema = Arc::clone(stream.schema());
        let left = projection.filter(|_| !self.0.chooses());
        let plan = StreamingTableExec::try_new(schema, vec![stream], left, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}
