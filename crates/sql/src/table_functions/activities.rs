// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `activities('begin event', 'end event', 'key')`: spans from any two event classes.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array,
};
use arrow::compute::{cast, concat, take};
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
use lateralis_analysis::{Edge, Pairer, Side};
use lateralis_model::Writer;
use lateralis_units::Nanos;
use tokio::sync::mpsc::Sender;

use super::computed::{Computed, ComputedTable};
use super::inputs::{Input, number, numbers, read_all};
use crate::pushdown::TIME;
use crate::tables::Tables;

/// Rows of a batch.
const ROWS: usize = 8192;
/// Memory for each event while it is paired.
const BYTES_PER_EDGE: usize = 160;

/// Makes the table of a call.
pub fn make(tables: &Tables, arguments: &[String]) -> Result<Arc<dyn TableProvider>> {
    let [begin, end, keys @ ..] = arguments else {
        return plan_err!(
            "activities takes two events and the fields that must be equal: \
             FROM activities('app:LOCK', 'app:UNLOCK', 'mutex')"
        );
    };
    let begin = Events::new(Input::new(tables, begin)?, keys)?;
    let end = Events::new(Input::new(tables, end)?, keys)?;
    // Named as in the table of spans.
    let mut fields = vec![
        Field::new(TIME, DataType::Int64, true),
        Field::new("end_ts", DataType::Int64, true),
        Field::new("duration", DataType::Int64, true),
        Field::new("status", DataType::Utf8, false),
        Field::new("pid", DataType::Int64, true),
        Field::new("tid", DataType::Int64, true),
        Field::new("end_pid", DataType::Int64, true),
        Field::new("end_tid", DataType::Int64, true),
    ];
    for (at, key) in keys.iter().enumerate() {
        if fields.iter().any(|field| field.name() == key) {
            return plan_err!("activities: {key} is a column of the result already");
        }
        let (a, b) = (begin.key_type(at)?, end.key_type(at)?);
        if a != b && !(a.is_integer() && b.is_integer()) {
            return plan_err!("activities: {key} is {a} in one event and {b} in the other");
        }
        let kept = if a == b { a } else { DataType::Decimal128(20, 0) };
        fields.push(Field::new(key, kept, true));
    }
    let schema = Arc::new(Schema::new(fields));
    Ok(Arc::new(ComputedTable(Activities { begin, end, schema })))
}

/// One event class.
#[derive(Debug, Clone)]
struct Events {
    input: Input,
    time: usize,
    /// Columns of process and thread, if events contain them.
    writer: Option<(usize, usize)>,
    /// Column of the recording, if there are several: spans do not end in another one.
    recording: Option<usize>,
    keys: Vec<usize>,
}

impl Events {
    fn new(mut input: Input, keys: &[String]) -> Result<Self> {
        let time = input.column(TIME)?;
        let time = input.ask(time);
        let writer = input.any_column(&["pid"]).zip(input.any_column(&["tid"]));
        let writer = writer.map(|(pid, tid)| (input.ask(pid), input.ask(tid)));
        let recording = input.any_column(&["recording"]).map(|column| input.ask(column));
        let keys = keys.iter().map(|key| {
            let column = input.column(key)?;
            Ok(input.ask(column))
        });
        let keys = keys.collect::<Result<_>>()?;
        Ok(Self { input, time, writer, recording, keys })
    }

    /// Type of a key; the value type of a dictionary.
    fn key_type(&self, at: usize) -> Result<DataType> {
        Ok(match self.input.asked_schema()?.field(self.keys[at]).data_type() {
            DataType::Dictionary(_, value) => value.as_ref().clone(),
            other => other.clone(),
        })
    }
}

#[derive(Clone)]
struct Activities {
    begin: Events,
    end: Events,
    schema: SchemaRef,
}

impl fmt::Debug for Activities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "activities({}, {})", self.begin.input.name(), self.end.input.name())
    }
}

#[async_trait::async_trait]
impl Computed for Activities {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn stream(
        &self,
        state: &dyn Session,
        _: Option<&[usize]>,
    ) -> Result<Arc<dyn PartitionStream>> {
        let plans = (self.begin.input.plan(state).await?, self.end.input.plan(state).await?);
        Ok(Arc::new(Pairing { of: self.clone(), plans }))
    }
}

/// The function in execution.
struct Pairing {
    of: Activities,
    plans: (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>),
}

impl fmt::Debug for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of.fmt(f)
    }
}

impl PartitionStream for Pairing {
    fn schema(&self) -> &SchemaRef {
        &self.of.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.of.schema), 2);
        let (sender, of, plans) = (builder.tx(), self.of.clone(), self.plans.clone());
        builder.spawn(async move {
            let memory = MemoryConsumer::new("activities").register(context.memory_pool());
            let begins = read_all(plans.0, Arc::clone(&context), &memory).await?;
            let ends = read_all(plans.1, context, &memory).await?;
            let worker = move || of.run(&begins, &ends, &memory, &sender);
            let worker = tokio::task::spawn_blocking(worker);
            worker.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
        });
        builder.build()
    }
}

/// A begin or end: its row, and its key and thread.
struct Happened {
    time: i64,
    side: Side,
    row: u32,
    key: Option<u32>,
    writer: Option<Writer>,
}

impl Activities {
    fn run(
        &self,
        begins: &RecordBatch,
        ends: &RecordBatch,
        memory: &MemoryReservation,
        sender: &Sender<Result<RecordBatch>>,
    ) -> Result<()> {
        let rows = begins.num_rows() + ends.num_rows();
        if u32::try_from(rows).is_err() {
            return plan_err!("activities: more than 4,294,967,295 events");
        }
        memory.try_grow(rows * BYTES_PER_EDGE)?;
        let mut numbers = HashMap::new();
        let mut all = self.events(&self.begin, begins, Side::Begin, &mut numbers)?;
        all.extend(self.events(&self.end, ends, Side::End, &mut numbers)?);
        all.sort_by_key(|event| event.time);
        let found = pair(&all);
        let keys = self.keys(begins, ends)?;
        for found in found.chunks(ROWS) {
            let batch = self.batch(found, &all, &keys, begins.num_rows())?;
            if sender.blocking_send(Ok(batch)).is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn events(
        &self,
        events: &Events,
        rows: &RecordBatch,
        side: Side,
        known: &mut HashMap<OwnedRow, u32>,
    ) -> Result<Vec<Happened>> {
        let times = numbers(rows.column(events.time))?;
        let writers = match events.writer {
            Some((pid, tid)) => Some((numbers(rows.column(pid))?, numbers(rows.column(tid))?)),
            None => None,
        };
        let writer = |row: usize| {
            let (pids, tids) = writers.as_ref()?;
            let id = |column| u32::try_from(number(column, row)?).ok();
            Some(Writer { pid: id(pids)?, tid: id(tids)? })
        };
        let mut columns = Vec::new();
        for (at, key) in events.keys.iter().enumerate() {
            columns.push(cast(rows.column(*key), self.schema.field(8 + at).data_type())?);
        }
        if let Some(recording) = events.recording {
            columns.push(cast(rows.column(recording), &DataType::Utf8)?);
        }
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone()));
        let keyed = if columns.is_empty() {
            None
        } else {
            Some(RowConverter::new(fields.collect())?.convert_columns(&columns)?)
        };
        let mut happened = Vec::with_capacity(rows.num_rows());
        for row in 0..rows.num_rows() {
            let Some(time) = number(&times, row) else { continue };
            let key = keyed.as_ref().filter(|_| !events.keys.is_empty()).map(|keyed| {
                let next = known.len() as u32;
                *known.entry(keyed.row(row).owned()).or_insert(next)
            });
            happened.push(Happened { time, side, row: row as u32, key, writer: writer(row) });
        }
        Ok(happened)
    }

    /// Key values of all events: first the begins, then the ends.
    fn keys(&self, begins: &RecordBatch, ends: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let keys = self.begin.keys.iter().zip(&self.end.keys).enumerate();
        let keys = keys.map(|(at, (a, b))| {
            let kept = self.schema.field(8 + at).data_type();
            let (a, b) = (cast(begins.column(*a), kept)?, cast(ends.column(*b), kept)?);
            Ok(concat(&[a.as_ref(), b.as_ref()])?)
        });
        keys.collect()
    }

    fn batch(
        &self,
        found: &[Found],
        all: &[Happened],
        keys: &[ArrayRef],
        begin_count: usize,
    ) -> Result<RecordBatch> {
        let event = |at: Option<u32>| at.map(|at| &all[at as usize]);
        let column = |of: &dyn Fn(&Found) -> Option<i64>| -> ArrayRef {
            Arc::new(found.iter().map(of).collect::<Int64Array>())
        };
        let begin = |f: &Found| event(f.begin).map(|event| event.time);
        let end = |f: &Found| event(f.end).map(|event| event.time);
        let writer = |at: Option<u32>| event(at).and_then(|event| event.writer);
        let states = found.iter().map(|found| match (found.begin, found.end) {
            (Some(_), Some(_)) => "complete",
            (Some(_), None) => "unfinished",
            _ => "orphan",
        });
        let mut columns: Vec<ArrayRef> = vec![
            // For an orphan, the time of its end.
            column(&|f| begin(f).or(end(f))),
            column(&end),
            // Clocks of two CPUs may disagree about the order of the ends.
            column(&|f| Some(end(f)?.saturating_sub(begin(f)?).max(0))),
            Arc::new(states.map(Some).collect::<StringArray>()),
            column(&|f| Some(writer(f.begin)?.pid.into())),
            column(&|f| Some(writer(f.begin)?.tid.into())),
            column(&|f| Some(writer(f.end)?.pid.into())),
            column(&|f| Some(writer(f.end)?.tid.into())),
        ];
        let rows: UInt32Array = found
            .iter()
            .map(|found| match (event(found.begin), event(found.end)) {
                (Some(begin), _) => Some(begin.row),
                (None, Some(end)) => Some(begin_count as u32 + end.row),
                (None, None) => None,
            })
            .collect();
        for key in keys {
            columns.push(take(key, &rows, None)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(found.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// A begin and its end; one of them may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    begin: Option<u32>,
    end: Option<u32>,
}

/// Pairs events in time order; the result is in the order of ends, followed by unfinished ones.
///
/// The order of two events at the same nanosecond is unknown. An end first closes an earlier begin; then
/// come begins; then ends that close one of those.
fn pair(all: &[Happened]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut pairer = Pairer::default();
    // Number of open spans in each place where the pairer searches for them.
    let mut open: HashMap<(Option<u32>, Option<Writer>), usize> = HashMap::new();
    let place = |event: &Happened| match event.key {
        Some(key) => (Some(key), None),
        None => (None, event.writer),
    };
    let mut push = |at: usize, open: &mut HashMap<_, usize>| {
        let event = &all[at];
        // The pairer orders by its time argument, which is the event's index here.
        let time = Nanos(at as i64);
        let key = event.key.map(u64::from);
        let span = pairer.push(Edge { time, side: event.side, key, writer: event.writer });
        match (event.side, span) {
            (Side::Begin, _) => *open.entry(place(event)).or_default() += 1,
            (Side::End, Some(span)) => {
                if let Some(count) = open.get_mut(&place(event)) {
                    *count = count.saturating_sub(1);
                }
                let (begin, end) = (span.begin.time.0 as u32, span.end.time.0 as u32);
                found.push(Found { begin: Some(begin), end: Some(end) });
            }
            (Side::End, None) => found.push(Found { begin: None, end: Some(at as u32) }),
        }
    };
    let mut at = 0;
    let mut later = Vec::new();
    while at < all.len() {
        let next = at + all[at..].iter().take_while(|event| event.time == all[at].time).count();
        for index in (at..next).filter(|index| all[*index].side == Side::End) {
            if open.get(&place(&all[index])).is_some_and(|count| *count > 0) {
                push(index, &mut open);
            } else {
                later.push(index);
            }
        }
        for index in (at..next).filter(|index| all[*index].side == Side::Begin) {
            push(index, &mut open);
        }
        later.drain(..).for_each(|index| push(index, &mut open));
        at = next;
    }
    let unfinished = pairer.unfinished();
    found.extend(unfinished.iter().map(|edge| {
        let begin = Some(edge.time.0 as u32);
        Found { begin, end: None }
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    fn happened(events: &[(i64, bool, u32)]) -> Vec<Happened> {
        let event = |(row, &(time, begins, key)): (usize, &(i64, bool, u32))| {
            let side = if begins { Side::Begin } else { Side::End };
            Happened { time, side, row: row as u32, key: Some(key), writer: None }
        };
        let mut all: Vec<Happened> = events.iter().enumerate().map(event).collect();
        all.sort_by_key(|event| event.time);
        all
    }

    fn times(events: &[(i64, bool, u32)]) -> Vec<(Option<i64>, Option<i64>)> {
        let all = happened(events);
        let time = |at: Option<u32>| at.map(|at| all[at as usize].time);
        pair(&all).iter().map(|found| (time(found.begin), time(found.end))).collect()
    }

    #[test]
    fn an_end_of_the_same_nanosecond_closes_what_began_before() {
        // Back to back: 0-5 and 5-9, whichever table the rows of 5 came from.
        let back_to_back = [(0, true, 1), (5, true, 1), (5, false, 1), (9, false, 1)];
        assert_eq!(times(&back_to_back), [(Some(0), Some(5)), (Some(5), Some(9))]);
        // Length 0.
        assert_eq!(times(&[(5, false, 1), (5, true, 1)]), [(Some(5), Some(5))]);
        // Nested: inner first.
        let nested = [(0, true, 1), (1, true, 1), (2, false, 1), (3, false, 1)];
        assert_eq!(times(&nested), [(Some(1), Some(2)), (Some(0), Some(3))]);
    }

    #[test]
    fn every_event_is_in_one_row() {
        let mut chance = Chance::new(6);
        for _ in 0..1000 {
            let count = chance.below(60);
            let mut event = || {
                let begins = chance.below(2) == 0;
                (chance.below(20) as i64, begins, chance.below(3) as u32)
            };
            let events: Vec<_> = (0..count).map(|_| event()).collect();
            let all = happened(&events);
            let found = pair(&all);
            let mut seen: Vec<u32> =
                found.iter().flat_map(|found| [found.begin, found.end]).flatten().collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..all.len() as u32).collect::<Vec<_>>());
            for found in &found {
                if let (Some(begin), Some(end)) = (found.begin, found.end) {
                    let (begin, end) = (&all[begin as usize], &all[end as usize]);
                    assert!(begin.time <= end.time && begin.key == end.key);
                    assert!(begin.side == Side::Begin && end.side == Side::End);
                }
            }
        }
    }
}
