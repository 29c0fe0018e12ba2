// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `span_join('a', 'b', 'tid')`: overlapping intervals.
//!
//! A join on `overlaps(…)` compares every row with every other. Here both sides are sorted by their begin
//! and swept once: the cost is that of sorting and of the pairs found.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, plan_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use std::collections::HashMap;
use tokio::sync::mpsc::Sender;

use super::computed::{Computed, ComputedTable};
use super::inputs::{Input, number, numbers, read_all};
use crate::functions::interval::half_open;
use crate::tables::{BEGIN, DURATION, END, Tables};

/// Begin and end of each row of a side.
type Intervals = Vec<(i128, i128)>;

/// Pairs that are collected before they are delivered.
const ROWS: usize = 8192;

/// Makes the table of a call.
pub fn make(tables: &Tables, arguments: &[String]) -> Result<Arc<dyn TableProvider>> {
    let [left, right, keys @ ..] = arguments else {
        return plan_err!(
            "span_join takes two tables and columns that must be equal: \
             FROM span_join('spans', 'states', 'tid')"
        );
    };
    let left = Side::new(Input::new(tables, left)?, keys)?;
    let right = Side::new(Input::new(tables, right)?, keys)?;
    Ok(Arc::new(ComputedTable(Join::new(left, right))))
}

/// One side of the join.
#[derive(Debug, Clone)]
struct Side {
    input: Input,
    /// Indices among the columns that are read.
    begin: usize,
    end: End,
    keys: Vec<usize>,
}

/// Source of the end of a row.
#[derive(Debug, Clone, Copy)]
enum End {
    /// A column with the end.
    At(usize),
    /// A column with the duration.
    After(usize),
    /// None: it is a point in time.
    Same,
}

impl Side {
    fn new(mut input: Input, keys: &[String]) -> Result<Self> {
        let Some(begin) = input.any_column(BEGIN) else {
            return plan_err!(
                "span_join: table {} has no time: a column {} is needed",
                input.name(),
                BEGIN.join(" or ")
            );
        };
        let begin = input.ask(begin);
        let end = if let Some(end) = input.any_column(END) {
            End::At(input.ask(end))
        } else if let Some(duration) = input.any_column(DURATION) {
            End::After(input.ask(duration))
        } else {
            End::Same
        };
        let keys = keys.iter().map(|key| {
            let column = input.column(key)?;
            Ok(input.ask(column))
        });
        let keys = keys.collect::<Result<_>>()?;
        Ok(Self { input, begin, end, keys })
    }

    /// Begin and end of each row, half-open.
    fn intervals(&self, rows: &RecordBatch) -> Result<Vec<(i128, i128)>> {
        let begins = numbers(rows.column(self.begin))?;
        let ends = match self.end {
            End::At(column) | End::After(column) => Some(numbers(rows.column(column))?),
            End::Same => None,
        };
        let interval = |row: usize| {
            let begin = number(&begins, row);
            let end = match (self.end, &ends) {
                (End::At(_), Some(ends)) => number(ends, row),
                (End::After(_), Some(durations)) => {
                    begin.zip(number(durations, row)).map(|(at, d)| at.saturating_add(d))
                }
                _ => begin,
            };
            half_open(begin, end)
        };
        Ok((0..rows.num_rows()).map(interval).collect())
    }
}

/// Source of a column of the result.
#[derive(Debug, Clone, Copy)]
enum From {
    /// Begin or end of the overlap.
    Begin,
    End,
    /// A column of one of the tables.
    Left(usize),
    Right(usize),
}

struct Join {
    left: Side,
    right: Side,
    schema: SchemaRef,
    columns: Vec<From>,
}

impl fmt::Debug for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "span_join({}, {})", self.left.input.name(), self.right.input.name())
    }
}

impl Join {
    fn new(left: Side, right: Side) -> Self {
        let mut fields = vec![
            Field::new("overlap_begin", DataType::Int64, true),
            Field::new("overlap_end", DataType::Int64, true),
        ];
        let mut columns = vec![From::Begin, From::End];
        type Make = fn(usize) -> From;
        let sides = [(&left, From::Left as Make), (&right, From::Right as Make)];
        for (side, from) in sides {
            for (index, field) in side.input.schema().fields().iter().enumerate() {
                let mut name = field.name().clone();
                // Columns of the second table with equal names get a number.
                let mut number = 2;
                while fields.iter().any(|other| *other.name() == name) {
                    name = format!("{}_{number}", field.name());
                    number += 1;
                }
                fields.push(field.as_ref().clone().with_name(name));
                columns.push(from(index));
            }
        }
        Self { left, right, schema: Arc::new(Schema::new(fields)), columns }
    }
}

#[async_trait::async_trait]
impl Computed for Join {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn stream(
        &self,
        state: &dyn Session,
        chosen: Option<&[usize]>,
    ) -> Result<Arc<dyn PartitionStream>> {
        let (mut left, mut right) = (self.left.clone(), self.right.clone());
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let chosen = chosen.unwrap_or(&all);
        let columns = chosen.iter().map(|column| match self.columns[*column] {
            From::Left(column) => From::Left(left.input.ask(column)),
            From::Right(column) => From::Right(right.input.ask(column)),
            other => other,
        });
        let columns = columns.collect();
        let schema = Arc::new(self.schema.project(chosen)?);
        let plans = (left.input.plan(state).await?, right.input.plan(state).await?);
        Ok(Arc::new(Sweep { left, right, plans, columns, schema }))
    }

    fn chooses(&self) -> bool {
        true
    }
}

/// The join in execution.
#[derive(Clone)]
struct Sweep {
    left: Side,
    right: Side,
    plans: (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>),
    columns: Vec<From>,
    schema: SchemaRef,
}

impl fmt::Debug for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "span_join({}, {})", self.left.input.name(), self.right.input.name())
    }
}

impl PartitionStream for Sweep {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let (sender, join) = (builder.tx(), self.clone());
        builder.spawn(async move {
            let memory = MemoryConsumer::new("span_join").register(context.memory_pool());
            let (left, right) = join.plans.clone();
            let left = read_all(left, Arc::clone(&context), &memory).await?;
            let right = read_all(right, context, &memory).await?;
            let worker =
                tokio::task::spawn_blocking(move || join.run(&left, &right, memory, &sender));
            worker.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
        });
        builder.build()
    }
}

impl Sweep {
    fn run(
        &self,
        left: &RecordBatch,
        right: &RecordBatch,
        memory: MemoryReservation,
        sender: &Sender<Result<RecordBatch>>,
    ) -> Result<()> {
        if u32::try_from(left.num_rows().max(right.num_rows())).is_err() {
            return plan_err!("span_join: more than 4,294,967,295 rows on one side");
        }
        // Intervals, groups, order: some words for each row of both sides.
        memory.try_grow((left.num_rows() + right.num_rows()) * 64)?;
        let intervals = (self.left.intervals(left)?, self.right.intervals(right)?);
        let groups = groups((left, &self.left.keys), (right, &self.right.keys))?;
        let mut pairs = Pairs { left: Vec::new(), right: Vec::new() };
        let mut result = Ok(());
        sweep(&intervals.0, &groups.0, &intervals.1, &groups.1, &mut |a, b| {
            pairs.left.push(a);
            pairs.right.push(b);
            if pairs.left.len() < ROWS {
                return true;
            }
            let batch = self.batch(left, right, &intervals, &mut pairs);
            result = batch.map(drop_if_closed(sender));
            matches!(result, Ok(())) && !sender.is_closed()
        });
        result?;
        if !pairs.left.is_empty() {
            let batch = self.batch(left, right, &intervals, &mut pairs)?;
            drop_if_closed(sender)(batch);
        }
        Ok(())
    }

    fn batch(
        &self,
        left: &RecordBatch,
        right: &RecordBatch,
        intervals: &(Intervals, Intervals),
        pairs: &mut Pairs,
    ) -> Result<RecordBatch> {
        let lefts = UInt32Array::from(std::mem::take(&mut pairs.left));
        let rights = UInt32Array::from(std::mem::take(&mut pairs.right));
        let shared = |pick: &dyn Fn((i128, i128), (i128, i128)) -> i128| -> ArrayRef {
            let rows = lefts.values().iter().zip(rights.values());
            let ends = rows.map(|(a, b)| {
                let (a, b) = (intervals.0[*a as usize], intervals.1[*b as usize]);
                // Beyond the timeline: unknown.
                i64::try_from(pick(a, b)).ok()
            });
            Arc::new(ends.collect::<Int64Array>())
        };
        let columns = self.columns.iter().zip(self.schema.fields());
        let columns = columns.map(|(from, field)| {
            let column = match from {
                From::Begin => shared(&|a, b| a.0.max(b.0)),
                From::End => shared(&|a, b| a.1.min(b.1)),
                From::Left(column) => take(left.column(*column), &lefts, None)?,
                From::Right(column) => take(right.column(*column), &rights, None)?,
            };
            // Dictionaries and the like are kept.
            if column.data_type() == field.data_type() {
                Ok(column)
            } else {
                Ok(cast(&column, field.data_type())?)
            }
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(lefts.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

struct Pairs {
    left: Vec<u32>,
    right: Vec<u32>,
}

/// Delivers a batch; the receiver may be gone.
fn drop_if_closed(sender: &Sender<Result<RecordBatch>>) -> impl Fn(RecordBatch) + '_ {
    |batch| drop(sender.blocking_send(Ok(batch)))
}

/// Group of each row: rows of equal key have equal numbers; `None` if a key is NULL, which equals
/// nothing.
type Groups = Vec<Option<u32>>;

fn groups(
    left: (&RecordBatch, &[usize]),
    right: (&RecordBatch, &[usize]),
) -> Result<(Groups, Groups)> {
    if left.1.is_empty() {
        return Ok((vec![Some(0); left.0.num_rows()], vec![Some(0); right.0.num_rows()]));
    }
    // Both sides in one type, otherwise 1 would not equal 1.
    let kind = |(rows, keys): (&RecordBatch, &[usize]), at: usize| -> DataType {
        match rows.column(keys[at]).data_type() {
            DataType::Dictionary(_, value) => value.as_ref().clone(),
            other => other.clone(),
        }
    };
    let mut kinds = Vec::new();
    for at in 0..left.1.len() {
        let (a, b) = (kind(left, at), kind(right, at));
        kinds.push(match (&a, &b) {
            (a, b) if a == b => a.clone(),
            (a, b) if a.is_integer() && b.is_integer() => DataType::Decimal128(38, 0),
            (a, b) => return plan_err!("span_join: keys of {a} and of {b} are never equal"),
        });
    }
    let fields = kinds.iter().map(|kind| SortField::new(kind.clone())).collect();
    let converter = RowConverter::new(fields)?;
    let mut numbers: HashMap<OwnedRow, u32> = HashMap::new();
    let mut of = |(rows, keys): (&RecordBatch, &[usize])| -> Result<Groups> {
        let columns = keys.iter().zip(&kinds);
        let columns = columns.map(|(key, kind)| Ok(cast(rows.column(*key), kind)?));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let keys = converter.convert_columns(&columns)?;
        let group = |row: usize| {
            if columns.iter().any(|column| column.is_null(row)) {
                return None;
            }
            let next = numbers.len() as u32;
            Some(*numbers.entry(keys.row(row).owned()).or_insert(next))
        };
        Ok((0..rows.num_rows()).map(group).collect())
    };
    Ok((of(left)?, of(right)?))
}

/// Visits every pair of rows of one group whose intervals overlap, until `see` returns false. Cost:
/// sorting, and the pairs.
fn sweep(
    left: &[(i128, i128)],
    left_groups: &[Option<u32>],
    right: &[(i128, i128)],
    right_groups: &[Option<u32>],
    see: &mut dyn FnMut(u32, u32) -> bool,
) {
    let order = |groups: &[Option<u32>], rows: &[(i128, i128)]| {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.retain(|row| groups[*row as usize].is_some());
        order.sort_by_key(|row| (groups[*row as usize], rows[*row as usize].0));
        order
    };
    let (lefts, rights) = (order(left_groups, left), order(right_groups, right));
    let (mut a, mut b) = (0, 0);
    let mut group = None;
    // Rows that have begun and may not have ended.
    let (mut open_left, mut open_right): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    loop {
        let place = |order: &[u32], at: usize, groups: &[Option<u32>], rows: &[(i128, i128)]| {
            order.get(at).map(|row| (groups[*row as usize], rows[*row as usize].0))
        };
        let next_left = place(&lefts, a, left_groups, left);
        let next_right = place(&rights, b, right_groups, right);
        let is_left = match (next_left, next_right) {
            (None, None) => return,
            (Some(left), Some(right)) => left <= right,
            (left, None) => left.is_some(),
            (None, _) => false,
        };
        let (now, begin) = if is_left { next_left } else { next_right }.unwrap_or_default();
        if now != group {
            group = now;
            open_left.clear();
            open_right.clear();
        }
        if is_left {
            let row = lefts[a];
            a += 1;
            // Ended rows are removed when they are encountered: each row once.
            open_right.retain(|other| right[*other as usize].1 > begin);
            for other in &open_right {
                if !see(row, *other) {
                    return;
                }
            }
            open_left.push(row);
        } else {
            let row = rights[b];
            b += 1;
            open_left.retain(|other| left[*other as usize].1 > begin);
            for other in &open_left {
                if !see(*other, row) {
                    return;
                }
            }
            open_right.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    type Row = (i64, i64, Option<u32>);

    fn rows(chance: &mut Chance) -> Vec<Row> {
        let count = chance.below(40);
        let mut row = || {
            let group = chance.below(4) as u32;
            let (time, length) = (chance.below(40) as i64, chance.below(12) as i64);
            (time, length, (group > 0).then_some(group))
        };
        (0..count).map(|_| row()).collect()
    }

    #[test]
    fn sweeping_finds_what_comparing_all_with_all_finds() {
        let mut chance = Chance::new(5);
        for _ in 0..1000 {
            let (a, b) = (rows(&mut chance), rows(&mut chance));
            let intervals = |rows: &[Row]| -> Vec<(i128, i128)> {
                rows.iter().map(|(t, d, _)| half_open(Some(*t), Some(t + d))).collect()
            };
            let keys = |rows: &[Row]| -> Groups { rows.iter().map(|row| row.2).collect() };
            let mut found = Vec::new();
            sweep(&intervals(&a), &keys(&a), &intervals(&b), &keys(&b), &mut |x, y| {
                found.push((x, y));
                true
            });
            found.sort_unstable();
            let mut expected = Vec::new();
            for (x, left) in a.iter().enumerate() {
                for (y, right) in b.iter().enumerate() {
                    let both = |row: &Row| (Some(row.0), Some(row.0 + row.1));
                    let overlaps = crate::functions::interval::overlap(both(left), both(right));
                    if overlaps && left.2.is_some() && left.2 == right.2 {
                        expected.push((x as u32, y as u32));
                    }
                }
            }
            assert_eq!(found, expected);
        }
    }
}
