// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Optimisation of statements that only count events: they do not read each event.
//!
//! ```text
//! Aggregate ts / 1000000, count(*)       Projection  n
//!   Filter class = 'a' AND ts > 5   ──►    Aggregate  ts / 1000000, sum(weight)
//!     TableScan events                       Filter  class = 'a'
//!                                              TableScan events, weighed: ts > 5
//! ```
//!
//! Rows that do not differ in anything the statement can observe come from the store as one, with their
//! number ([`Scan::weighs`](lateralis_store::Scan)). The number of rows that the engine groups then
//! depends on packets, event classes and time steps, and no longer on events. If the result of an
//! aggregate does not depend on the order of rows, they are read class by class.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, LogicalPlan, Projection, SubqueryAlias, TableScan, TableScanBuilder,
    lit, when,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use lateralis_store::{Step, WEIGHT};

use crate::provider::TraceTable;
use crate::pushdown::{CLASS, CPU, TIME};
use crate::steps;

/// Columns that are the same for many events.
const ALIKE: [&str; 6] = [TIME, "recording", "stream", CPU, "packet", CLASS];

/// The optimizer rule.
#[derive(Debug, Default)]
pub struct Counting;

impl OptimizerRule for Counting {
    fn name(&self) -> &str {
        "counting_of_events"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        let weighed = counted(aggregate)?;
        Ok(match weighed.map_or_else(|| unordered(aggregate), |plan| Ok(Some(plan)))? {
            Some(plan) => Transformed::yes(plan),
            None => Transformed::no(plan),
        })
    }
}

/// A counting aggregate over weighted rows; `None` if not applicable.
fn counted(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let groups = &aggregate.group_expr;
    if groups.iter().any(|group| matches!(group, Expr::GroupingSet(_))) {
        return Ok(None);
    }
    // The requested expressions, each with its position and whether it is a count.
    let mut asked: Vec<Expr> = Vec::new();
    let mut places = Vec::new();
    for expr in &aggregate.aggr_expr {
        let Some(found) = of_weights(expr) else { return Ok(None) };
        let is_count = found != *expr;
        let place = asked.iter().position(|known| *known == found).unwrap_or_else(|| {
            asked.push(found);
            asked.len() - 1
        });
        places.push((place, is_count));
    }
    let mut seen: Vec<&Expr> = groups.iter().chain(&aggregate.aggr_expr).collect();
    let Some(leaf) = below(&aggregate.input, &mut seen) else { return Ok(None) };
    let has_other = |expr: &&Expr| {
        let columns = expr.column_refs();
        expr.is_volatile() || has_query(expr) || columns.iter().any(|column| column.name == WEIGHT)
    };
    if seen.iter().any(has_other) || !leaf.is_alike() {
        return Ok(None);
    }
    let Ok(step) = steps::of(seen.iter().copied()) else { return Ok(None) };
    let input = with_weights(&aggregate.input, step.unwrap_or_default())?;
    let below = Aggregate::try_new(Arc::new(input), groups.clone(), asked)?;
    let column = |place: usize| Expr::Column(Column::from(below.schema.qualified_field(place)));
    let mut shown: Vec<Expr> = (0..groups.len()).map(column).collect();
    for (at, (place, is_count)) in places.into_iter().enumerate() {
        let (found, name) = (
            column(groups.len() + place),
            Column::from(aggregate.schema.qualified_field(groups.len() + at)),
        );
        let found = match is_count {
            true => when(found.clone().is_null(), lit(0_i64)).otherwise(found)?,
            false => found,
        };
        shown.push(found.alias_qualified(name.relation, name.name));
    }
    let below = Arc::new(LogicalPlan::Aggregate(below));
    Ok(Some(LogicalPlan::Projection(Projection::try_new(shown, below)?)))
}

/// The aggregate over weighted rows that is equivalent to the given one; unchanged if weights do not
/// matter.
fn of_weights(expr: &Expr) -> Option<Expr> {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = expr else { return None };
    let is_known = |value: &Expr| matches!(value, Expr::Literal(value, _) if !value.is_null());
    if !params.order_by.is_empty() || params.null_treatment.is_some() {
        return None;
    }
    if *func == min_udaf() || *func == max_udaf() {
        return Some(expr.clone());
    }
    let counts = *func == count_udaf() && !params.distinct && params.args.iter().all(is_known);
    counts.then(|| {
        let weight = Expr::Column(Column::new_unqualified(WEIGHT));
        let filter = params.filter.clone();
        let sum =
            AggregateFunction::new_udf(sum_udaf(), vec![weight], false, filter, Vec::new(), None);
        Expr::AggregateFunction(sum)
    })
}

fn has_query(expr: &Expr) -> bool {
    let is_query = |part: &Expr| {
        Ok(matches!(
            part,
            Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::ScalarSubquery(_)
                | Expr::OuterReferenceColumn(..)
        ))
    };
    expr.exists(is_query).unwrap_or(true)
}

/// A table of the traces that is read directly.
struct Leaf<'p> {
    scan: &'p TableScan,
}

impl Leaf<'_> {
    /// Whether many of its rows are equal in the columns that are read.
    fn is_alike(&self) -> bool {
        let fields = self.scan.projected_schema.fields();
        fields.iter().all(|field| ALIKE.contains(&field.name().as_str()))
    }
}

/// The table below, if nothing in between needs single rows. Adds the expressions on its columns on the
/// way, except conditions on the time that the store applies.
fn below<'p>(plan: &'p LogicalPlan, seen: &mut Vec<&'p Expr>) -> Option<Leaf<'p>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            for expr in &projection.expr {
                // The time keeps its name, and nothing else takes it.
                let is_time = matches!(expr, Expr::Column(column) if column.name == TIME);
                let name = expr.schema_name().to_string();
                let takes = |taken: &str| name == taken || name.ends_with(&format!(".{taken}"));
                if !is_time && (takes(TIME) || takes(WEIGHT)) {
                    return None;
                }
                if !is_time {
                    seen.push(expr);
                }
            }
            below(&projection.input, seen)
        }
        LogicalPlan::Filter(filter) => {
            let leaf = below(&filter.input, seen)?;
            let is_next = matches!(filter.input.as_ref(), LogicalPlan::TableScan(_));
            let parts = split_conjunction(&filter.predicate);
            seen.extend(parts.into_iter().filter(|part| !(is_next && steps::is_interval(part))));
            Some(leaf)
        }
        LogicalPlan::SubqueryAlias(alias) => below(&alias.input, seen),
        LogicalPlan::TableScan(scan) => {
            let table = source_as_provider(&scan.source).ok()?;
            let table = table.downcast_ref::<TraceTable>()?;
            (scan.fetch.is_none() && table.can_change()).then_some(Leaf { scan })
        }
        _ => None,
    }
}

/// The same rows with weights, unordered. Conditions on the time are left to the store.
fn with_weights(plan: &LogicalPlan, step: Step) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Projection(projection) => {
            let input = with_weights(&projection.input, step)?;
            let weight = weight_of(&input)?;
            let exprs = projection.expr.iter().cloned().chain([weight]).collect();
            LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?)
        }
        LogicalPlan::Filter(filter) => {
            let parts = split_conjunction(&filter.predicate);
            let LogicalPlan::TableScan(scan) = filter.input.as_ref() else {
                let input = Arc::new(with_weights(&filter.input, step)?);
                return Ok(LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), input)?));
            };
            let (times, rest): (Vec<&Expr>, Vec<&Expr>) =
                parts.into_iter().partition(|part| steps::is_interval(part));
            let input = replaced(scan, Some(step), times)?;
            match conjunction(rest.into_iter().cloned()) {
                Some(rest) => LogicalPlan::Filter(Filter::try_new(rest, Arc::new(input))?),
                None => input,
            }
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let input = Arc::new(with_weights(&alias.input, step)?);
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(input, alias.alias.clone())?)
        }
        LogicalPlan::TableScan(scan) => replaced(scan, Some(step), Vec::new())?,
        other => other.clone(),
    })
}

fn weight_of(plan: &LogicalPlan) -> Result<Expr> {
    let (table, field) = plan.schema().qualified_field_with_unqualified_name(WEIGHT)?;
    Ok(Expr::Column(Column::from((table, field))))
}

/// A table read in any order, optionally with weights; further conditions are passed to the store.
fn replaced(scan: &TableScan, weighs: Option<Step>, more: Vec<&Expr>) -> Result<LogicalPlan> {
    let provider = source_as_provider(&scan.source)?;
    let Some(table) = provider.downcast_ref::<TraceTable>() else {
        return Ok(LogicalPlan::TableScan(scan.clone()));
    };
    let columns = table.schema().fields().len();
    let table = Arc::new(table.unordered(weighs));
    let mut projection = scan.projection.clone().unwrap_or_else(|| (0..columns).collect());
    if weighs.is_some() {
        projection.push(columns);
    }
    let mut filters = scan.filters.clone();
    for condition in more {
        if !filters.contains(condition) {
            filters.push(condition.clone());
        }
    }
    let source = provider_as_source(table);
    let name = scan.table_name.clone();
    let scan = TableScanBuilder::new(name, source)
        .with_projection(Some(projection))
        .with_filters(filters)
        .with_fetch(scan.fetch)
        .build()?;
    Ok(LogicalPlan::TableScan(scan))
}

/// An aggregate whose result does not depend on the order of rows, over rows in any order.
fn unordered(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let is_insensitive = |expr: &Expr| {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = expr else {
            return false;
        };
        func.order_sensitivity().is_insensitive() && params.order_by.is_empty()
    };
    if !aggregate.aggr_expr.iter().all(is_insensitive)
        || below(&aggregate.input, &mut Vec::new()).is_none()
    {
        return Ok(None);
    }
    let input = aggregate.input.as_ref().clone().transform_down(|plan| match &plan {
        LogicalPlan::TableScan(scan) => {
            let scan = replaced(scan, None, Vec::new())?;
            Ok(Transformed::new(scan, true, TreeNodeRecursion::Stop))
        }
        _ => Ok(Transformed::no(plan)),
    })?;
    let (groups, asked) = (aggregate.group_expr.clone(), aggregate.aggr_expr.clone());
    let schema = Arc::clone(&aggregate.schema);
    let input = Arc::new(input.data);
    Aggregate::try_new_with_schema(input, groups, asked, schema)
        .map(LogicalPlan::Aggregate)
        .map(Some)
}
