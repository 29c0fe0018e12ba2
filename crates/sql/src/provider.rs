// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of the store as tables of the engine.
//!
//! Columns, conditions on time and processor, and a limit are handed down, so that
//! packets and fields nobody asked for are not decoded.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use lateralis_store::{Partition, Scan, Session as Traces, Table};

use crate::damages::Damages;
use crate::pushdown::{Bounds, CLASS, CPU, TIME};
use crate::reads::Reads;

/// Batches that wait between the decoder and the engine, per core.
const WAITING: usize = 2;

/// One table of the opened traces.
pub struct TraceTable {
    traces: Arc<Traces>,
    /// Its place in [`Traces::tables`].
    index: usize,
    damages: Arc<Damages>,
    reads: Arc<Reads>,
}

impl TraceTable {
    /// The table at this place. Damage found while it is read goes to `damages`, what is
    /// read to `reads`.
    pub fn new(
        traces: Arc<Traces>,
        index: usize,
        damages: Arc<Damages>,
        reads: Arc<Reads>,
    ) -> Self {
        Self { traces, index, damages, reads }
    }

    /// Whether rows are events of several kinds.
    fn has_classes(&self) -> bool {
        self.table().name == "events" && self.table().schema.index_of(CLASS).is_ok()
    }

    fn table(&self) -> &Table {
        &self.traces.tables()[self.index]
    }
}

impl fmt::Debug for TraceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TraceTable").field(&self.table().name).finish()
    }
}

#[async_trait::async_trait]
impl TableProvider for TraceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.table().schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let has = |name| self.table().schema.field_with_name(name).is_ok();
        let narrows = |filter: &&Expr| {
            let bounds = Bounds::of([*filter]);
            (has(TIME) && bounds.interval != Default::default())
                || (has(CPU) && bounds.cpus.is_some())
                || (self.has_classes() && bounds.classes.is_some())
        };
        let answer = |filter| {
            if narrows(filter) {
                // Whole packets are left out; inside of them the engine looks again.
                TableProviderFilterPushDown::Inexact
            } else {
                TableProviderFilterPushDown::Unsupported
            }
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let bounds = Bounds::of(filters);
        let scan = Scan {
            columns: projection.cloned(),
            interval: bounds.interval,
            cpus: bounds.cpus,
            classes: bounds.classes.filter(|_| self.has_classes()),
            limit,
            // The first rows of a table are what comes first in it; all of them are a set.
            any_order: limit.is_none(),
        };
        let schema = match projection {
            Some(columns) => Arc::new(self.table().schema.project(columns)?),
            None => Arc::clone(&self.table().schema),
        };
        let parts = self.traces.partitions(self.table(), &scan);
        let cores = state.config().target_partitions().clamp(1, parts.len().max(1));
        // Neighbours in time stay together, and no core waits for more than one run of them.
        let per_core = parts.len().div_ceil(cores).max(1);
        let mut streams: Vec<Arc<dyn PartitionStream>> = Vec::new();
        let mut runs: Vec<Vec<Partition>> = parts.chunks(per_core).map(<[_]>::to_vec).collect();
        if runs.is_empty() {
            runs.push(Vec::new());
        }
        for parts in runs {
            streams.push(Arc::new(Run {
                traces: Arc::clone(&self.traces),
                index: self.index,
                damages: Arc::clone(&self.damages),
                reads: Arc::clone(&self.reads),
                schema: Arc::clone(&schema),
                scan: scan.clone(),
                parts,
            }));
        }
        Ok(Arc::new(StreamingTableExec::try_new(schema, streams, None, [], false, limit)?))
    }
}

/// Partitions that one core reads, one after the other.
struct Run {
    traces: Arc<Traces>,
    index: usize,
    damages: Arc<Damages>,
    reads: Arc<Reads>,
    schema: SchemaRef,
    scan: Scan,
    parts: Vec<Partition>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.traces.tables()[self.index].name;
        write!(f, "{name} ({} partitions)", self.parts.len())
    }
}

impl PartitionStream for Run {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), WAITING);
        let sender = builder.tx();
        let (traces, index) = (Arc::clone(&self.traces), self.index);
        let (damages, mut scan) = (Arc::clone(&self.damages), self.scan.clone());
        let parts = self.parts.clone();
        let reads = Arc::clone(&self.reads);
        // Decoding computes; it must not hold up the threads that drive the query.
        builder.spawn_blocking(move || {
            let table = &traces.tables()[index];
            for part in &parts {
                let mut is_over = false;
                reads.add(part.part_count(), 0);
                let mut rows = 0;
                let found = traces.scan(table, part, &scan, &mut |batch| {
                    rows += batch.num_rows();
                    reads.add(0, batch.num_rows());
                    // Nobody receives any more after a limit or a cancelled query.
                    if sender.blocking_send(Ok(batch)).is_err() {
                        is_over = true;
                        return ControlFlow::Break(());
                    }
                    ControlFlow::Continue(())
                });
                damages.add(found.map_err(|error| DataFusionError::External(Box::new(error)))?);
                if let Some(limit) = &mut scan.limit {
                    *limit = limit.saturating_sub(rows);
                    is_over |= *limit == 0;
                }
                if is_over || sender.is_closed() {
                    break;
                }
            }
            Ok(())
        });
        builder.build()
    }
}
