// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of the store as tables of the engine.
//!
//! Columns, conditions on time and CPU, and a limit are pushed down, so that packets and fields that are
//! not needed are not decoded.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use lateralis_store::{Partition, Scan, Session as Traces, Step, Table, WEIGHT};

use crate::damages::Damages;
use crate::pushdown::{Bounds, CLASS, CPU, TIME};
use crate::reads::Reads;

/// Number of batches between the decoder and the engine, per core.
const WAITING: usize = 2;

/// One table of the opened traces.
#[derive(Clone)]
pub struct TraceTable {
    traces: Arc<Traces>,
    /// Its index in [`Traces::tables`].
    index: usize,
    damages: Arc<Damages>,
    reads: Arc<Reads>,
    schema: SchemaRef,
    /// Whether the order of its rows is irrelevant.
    any_order: bool,
    /// Whether its rows may represent several events: see [`Scan::weighs`].
    weighs: Option<Step>,
}

impl TraceTable {
    /// The table at this index. Damage found while reading goes to `damages`, counts to `reads`.
    pub fn new(
        traces: Arc<Traces>,
        index: usize,
        damages: Arc<Damages>,
        reads: Arc<Reads>,
    ) -> Self {
        let schema = Arc::clone(&traces.tables()[index].schema);
        Self { traces, index, damages, reads, schema, any_order: false, weighs: None }
    }

    /// Whether [`TraceTable::unordered`] makes a difference.
    pub fn can_change(&self) -> bool {
        self.table().is_of_events() && !self.any_order
    }

    /// The same table with rows in any order; with weights, an additional column contains the number of
    /// events that a row represents ([`lateralis_store::WEIGHT`]).
    pub fn unordered(&self, weighs: Option<Step>) -> Self {
        let mut schema = Arc::clone(&self.schema);
        if weighs.is_some() {
            let weight = Arc::new(Field::new(WEIGHT, DataType::Int64, false));
            let fields = schema.fields().iter().cloned().chain([weight]);
            schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        }
        Self { any_order: true, weighs, schema, ..self.clone() }
    }

    /// Whether rows are events of several classes.
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
        Arc::clone(&self.schema)
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
                // Whole packets are skipped; inside of them the engine filters again.
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
        let own = self.table().schema.fields().len();
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let asked = projection.unwrap_or(&all);
        let columns: Vec<usize> = asked.iter().copied().filter(|column| *column < own).collect();
        // Weights come last, whether they are requested or not.
        let mut place = 0;
        let place = |&column: &usize| match column < own {
            true => {
                place += 1;
                place - 1
            }
            false => columns.len(),
        };
        let places: Vec<usize> = asked.iter().map(place).collect();
        let count = columns.len() + usize::from(self.weighs.is_some());
        let places = (!places.iter().copied().eq(0..count)).then_some(places);
        let scan = Scan {
            columns: Some(columns),
            interval: bounds.interval,
            cpus: bounds.cpus,
            classes: bounds.classes.filter(|_| self.has_classes()),
            limit,
            any_order: self.any_order && limit.is_none(),
            weighs: self.weighs,
        };
        let schema = Arc::new(self.schema.project(asked)?);
        let parts = self.traces.partitions(self.table(), &scan);
        let cores = state.config().target_partitions().clamp(1, parts.len().max(1));
        // Adjacent runs in time stay together, and no core waits for more than one of them.
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
                places: places.clone(),
                parts,
            }));
        }
        Ok(Arc::new(StreamingTableExec::try_new(schema, streams, None, [], false, limit)?))
    }
}

/// Number of events that the rows of a batch represent.
fn events(batch: &RecordBatch, scan: &Scan) -> usize {
    let weights = batch.columns().last().filter(|_| scan.weighs.is_some());
    match weights.and_then(|weights| weights.as_primitive_opt::<Int64Type>()) {
        Some(weights) => weights.values().iter().sum::<i64>() as usize,
        None => batch.num_rows(),
    }
}

/// Partitions that one core reads in sequence.
struct Run {
    traces: Arc<Traces>,
    index: usize,
    damages: Arc<Damages>,
    reads: Arc<Reads>,
    schema: SchemaRef,
    scan: Scan,
    /// Columns of the store that are shown, unless all are in order.
    places: Option<Vec<usize>>,
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
        let places = self.places.clone();
        // Decoding is CPU-bound; it must not block the threads that drive the query.
        builder.spawn_blocking(move || {
            let table = &traces.tables()[index];
            for part in &parts {
                let mut is_over = false;
                reads.add(part.part_count(), 0);
                let mut rows = 0;
                let found = traces.scan(table, part, &scan, &mut |batch| {
                    rows += batch.num_rows();
                    reads.add(0, events(&batch, &scan));
                    let batch = match &places {
                        Some(places) => batch.project(places).map_err(DataFusionError::from),
                        None => Ok(batch),
                    };
                    // After a limit or a cancelled query the channel is closed.
                    if sender.blocking_send(batch).is_err() {
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
