// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keeps joins without equal columns in memory; otherwise they are rejected.
//!
//! DataFusion 55.2 executes them with nested loops over the left side, which it keeps in memory. If that
//! does not fit, it runs the left side a second time, into a file. Both steps have bugs: an operator that
//! distributes rows over cores can run only once and panics ("partition not used yet"), and LEFT, SEMI,
//! ANTI and MARK joins then report unmatched rows once per core (apache/datafusion issues 24676 and
//! 22641, fixed after 55.2). A table that does not fit in memory would be scanned once for each part that
//! fits: too slow to be useful.
//!
//! So these joins, and nothing below or above them, run without a disk: exceeding the memory limit is an
//! error.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// The last rule: it changes where joins run and not what they do.
#[derive(Debug)]
pub struct InMemory {
    with_disk: Arc<RuntimeEnv>,
    without_disk: Arc<RuntimeEnv>,
}

impl InMemory {
    /// For queries of this environment.
    ///
    /// Errors: none for an environment that exists already.
    pub fn new(with_disk: Arc<RuntimeEnv>) -> Result<Self> {
        let mut without_disk = RuntimeEnvBuilder::from_runtime_env(&with_disk);
        without_disk.disk_manager = None;
        let none = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let without_disk = without_disk.with_disk_manager_builder(none).build_arc()?;
        Ok(Self { with_disk, without_disk })
    }
}

impl PhysicalOptimizerRule for InMemory {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let place = |plan: Arc<dyn ExecutionPlan>| {
            if plan.downcast_ref::<NestedLoopJoinExec>().is_none() {
                return Ok(Transformed::no(plan));
            }
            let inputs = plan.children().into_iter().map(|input| {
                let (plan, runtime) = (Arc::clone(input), Arc::clone(&self.with_disk));
                Arc::new(Within { plan, runtime }) as Arc<dyn ExecutionPlan>
            });
            let inputs = inputs.collect();
            let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            let plan = plan.replace_children(inputs, keep)?;
            let runtime = Arc::clone(&self.without_disk);
            Ok(Transformed::yes(Arc::new(Within { plan, runtime }) as Arc<dyn ExecutionPlan>))
        };
        Ok(plan.transform_up(place)?.data)
    }

    fn name(&self) -> &str {
        "nested_loops_in_memory"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Runs a plan in an environment of its own, and changes nothing else.
#[derive(Clone)]
struct Within {
    plan: Arc<dyn ExecutionPlan>,
    runtime: Arc<RuntimeEnv>,
}

impl Within {
    fn has_disk(&self) -> bool {
        self.runtime.disk_manager.tmp_files_enabled()
    }
}

impl fmt::Debug for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Within(disk: {}, {:?})", self.has_disk(), self.plan)
    }
}

impl DisplayAs for Within {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Within: disk={}", self.has_disk())
    }
}

impl ExecutionPlan for Within {
    fn name(&self) -> &str {
        "Within"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = children.pop().unwrap_or_else(|| Arc::clone(&self.plan));
        Ok(Arc::new(Self { plan, runtime: Arc::clone(&self.runtime) }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let here = TaskContext::new(
            context.task_id(),
            context.session_id(),
            context.session_config().clone(),
            context.scalar_functions().clone(),
            context.higher_order_functions().clone(),
            context.aggregate_functions().clone(),
            context.window_functions().clone(),
            Arc::clone(&self.runtime),
        );
        self.plan.execute(partition, Arc::new(here))
    }
}
