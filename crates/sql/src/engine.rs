// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opened traces with an engine: planning, limits, and permitted statements.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, SchemaProvider};
use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::common::{DataFusionError, plan_err};
use datafusion::error::Result;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::Tokenizer;
use lateralis_store::Session as Traces;

use crate::answers::{Answers, Lat, Subject};
use crate::bounds::{self, Views, check_words};
use crate::counting::Counting;
use crate::damages::Damages;
use crate::functions;
use crate::nested_loops::InMemory;
use crate::reads::Reads;
use crate::table_functions;
use crate::tables::{Described, Tables};

/// Largest nesting of expressions and queries.
const DEEPEST: usize = 64;
/// Functions that make values of any size from a few characters, in memory that is not accounted.
const WITHOUT_BOUND: [&str; 7] =
    ["array_repeat", "array_resize", "generate_series", "lpad", "range", "repeat", "rpad"];
/// Disk space that a query may use, as a multiple of its memory.
const SPILL_FACTOR: u64 = 16;

/// Limits of every query.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of memory for sorting, grouping and joining.
    pub memory_bytes: usize,
    /// Number of cores to use.
    pub cores: NonZeroUsize,
}

/// Opened traces and an engine over them.
pub struct Engine {
    context: SessionContext,
    tables: Arc<Tables>,
    damages: Arc<Damages>,
    reads: Arc<Reads>,
    /// Sizes of the views.
    views: Mutex<Views>,
}

/// Result of a statement.
pub enum Answer {
    /// Rows, computed while they are read.
    Rows(SendableRecordBatchStream),
    /// The statement had an effect: a view was created or dropped.
    Done,
}

impl Engine {
    /// An engine over opened traces; `lat` runs the commands of functions.
    ///
    /// Errors: there is no folder for temporary files.
    pub fn new(traces: Arc<Traces>, lat: Lat, limits: Limits) -> Result<Self> {
        let mut config = SessionConfig::new()
            .with_target_partitions(limits.cores.get())
            .with_information_schema(true)
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_create_default_catalog_and_schema(false);
        let options = config.options_mut();
        options.sql_parser.collect_spans = true;
        options.sql_parser.recursion_limit = ConfigNonZeroUsize::try_new(DEEPEST)?;
        // Text columns are plain text everywhere, including results.
        options.sql_parser.map_string_types_to_utf8view = false;
        let most = NonZeroUsize::new(8).unwrap_or(NonZeroUsize::MIN);
        let pool = TrackConsumersPool::new(FairSpillPool::new(limits.memory_bytes), most);
        let spill = (limits.memory_bytes as u64).saturating_mul(SPILL_FACTOR);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(pool))
            .with_disk_manager_builder(
                DiskManagerBuilder::default().with_max_temp_directory_size(spill),
            )
            .build_arc()?;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::clone(&runtime))
            .with_default_features()
            .with_optimizer_rule(Arc::new(Counting))
            .with_physical_optimizer_rule(Arc::new(InMemory::new(runtime)?))
            .build();
        let context = SessionContext::new_with_state(state);
        let damages = Arc::new(Damages::default());
        let reads = Arc::new(Reads::default());
        let tables = Arc::new(Tables::new(&traces, &damages, &reads));
        let catalog = MemoryCatalogProvider::new();
        catalog.register_schema(SCHEMA, Arc::clone(&tables) as Arc<dyn SchemaProvider>)?;
        context.register_catalog(CATALOG, Arc::new(catalog));
        for name in WITHOUT_BOUND {
            context.deregister_udf(name);
        }
        functions::register(&context);
        let subject = |(label, path): (&str, &Path)| Subject {
            label: label.to_owned(),
            path: path.to_owned(),
        };
        let subjects = traces.paths().map(subject).collect();
        let answers = Arc::new(Answers::new(subjects, lat));
        table_functions::register(&context, &tables, &answers, &damages);
        Ok(Self { context, tables, damages, reads, views: Mutex::default() })
    }

    /// Damage found by queries since the last call: places and bytes.
    pub fn take_damage(&self) -> Option<(usize, u64)> {
        self.damages.take()
    }

    /// Number of runs of packets decoded by queries since the last call, and of rows that they produced
    /// before filtering by the engine.
    pub fn take_reads(&self) -> (u64, u64) {
        self.reads.take()
    }

    /// Names of all tables and views, sorted.
    pub fn table_names(&self) -> Vec<String> {
        self.tables.table_names()
    }

    /// All tables with their contents.
    pub fn described(&self) -> Vec<Described> {
        self.tables.described()
    }

    /// Columns of a table or view.
    pub fn columns(&self, table: &str) -> Option<SchemaRef> {
        self.tables.find(table).map(|(_, table)| table.schema())
    }

    /// Names of all functions, sorted.
    pub fn function_names(&self) -> Vec<String> {
        let state = self.context.state();
        let mut names: Vec<String> = state.scalar_functions().keys().cloned().collect();
        names.extend(state.aggregate_functions().keys().cloned());
        names.extend(state.window_functions().keys().cloned());
        names.extend(state.table_functions().keys().cloned());
        names.sort();
        names.dedup();
        names
    }

    /// The statements of a text.
    ///
    /// Errors: invalid SQL, or too long to be planned.
    pub fn parse(&self, text: &str) -> Result<Vec<Statement>> {
        let dialect = GenericDialect {};
        let words = Tokenizer::new(&dialect, text).tokenize_with_location();
        let words = words.map_err(|error| DataFusionError::SQL(Box::new(error.into()), None))?;
        check_words(&words)?;
        let mut parser = DFParserBuilder::new(text)
            .with_dialect(&dialect)
            .with_recursion_limit(DEEPEST)
            .build()?;
        Ok(parser.parse_statements()?.into())
    }

    /// Plans a statement and starts it.
    ///
    /// Errors: unknown names, wrong types, or a statement that would change anything outside of this
    /// session.
    pub async fn run(&self, statement: Statement) -> Result<Answer> {
        let size = {
            let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
            bounds::tables(&statement, &views)?
        };
        let plan = self.context.state().statement_to_plan(statement).await?;
        let read_only = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        match &plan {
            LogicalPlan::Ddl(DdlStatement::CreateView(view)) => {
                read_only.verify_plan(&view.input)?;
                let name = view.name.table().to_lowercase();
                self.context.execute_logical_plan(plan).await?;
                let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
                views.insert(name, size);
                Ok(Answer::Done)
            }
            LogicalPlan::Ddl(DdlStatement::DropView(_)) => {
                self.context.execute_logical_plan(plan).await?;
                Ok(Answer::Done)
            }
            _ => {
                if read_only.verify_plan(&plan).is_err() {
                    return plan_err!(
                        "traces are only read: SELECT, EXPLAIN, SHOW TABLES, DESCRIBE, \
                         CREATE VIEW and DROP VIEW are known"
                    );
                }
                let frame = self.context.execute_logical_plan(plan).await?;
                Ok(Answer::Rows(frame.execute_stream().await?))
            }
        }
    }
}

const CATALOG: &str = "lat";
const SCHEMA: &str = "traces";
