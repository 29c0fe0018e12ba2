// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Spans, messages, states and counters: derived from facts in time order.
//!
//! ```text
//! pieces of streams ─ any core ─► facts in order ─ one core ─► rows ─ another ─► consumer
//! ```
//!
//! A row is delivered as soon as it is known, so memory is that of some pieces of each stream, of open
//! items (spans, messages in flight, machines) and of a few batches.

mod kernel_rows;
mod network;
mod rows;
#[cfg(test)]
mod tests;
mod thread_rows;

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;

use arrow_array::RecordBatch;
use lateralis_model::{ColumnBatch, Damage, Source, Trace};
use lateralis_units::Nanos;

use super::StoreError;
use super::opened::Opened;
use super::small::{Rows, Small};
use crate::facts::{About, Edges, Facts, Visited};
use lateralis_semantics::{DerivedSink, Deriver, Deriving};
use rows::DerivedRows;
use thread_rows::ThreadRows;

/// Batches that wait for the consumer.
const BATCHES: usize = 2;

/// Makes batches on a thread of their own and delivers them on this one, which may be busy writing them.
/// At most a few batches are made ahead.
pub fn beside(
    see: &mut dyn FnMut(RecordBatch) -> ControlFlow<()>,
    make: impl FnOnce(&mut dyn FnMut(RecordBatch) -> ControlFlow<()>) -> Result<Vec<Damage>, StoreError>
    + Send,
) -> Result<Vec<Damage>, StoreError> {
    std::thread::scope(|scope| {
        let (give, taken) = sync_channel(BATCHES);
        let made = scope.spawn(move || {
            make(&mut |batch| match give.send(batch) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        });
        for batch in &taken {
            if see(batch).is_break() {
                break;
            }
        }
        drop(taken);
        made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Adds the rows of one recording.
///
/// Cost: a pass over all events in time order, for traces with events that matter to the table; otherwise
/// one over their headers.
pub fn rows(
    small: Small,
    opened: &Opened,
    rows: &mut Rows<'_>,
    damage: &mut Vec<Damage>,
) -> ControlFlow<()> {
    rows_by(true, small, opened, opened.annotated(), rows, damage)
}

/// `by_columns`: by columns if the trace has them; otherwise event by event.
fn rows_by(
    by_columns: bool,
    small: Small,
    opened: &Opened,
    trace: &Trace,
    rows: &mut Rows<'_>,
    damage: &mut Vec<Damage>,
) -> ControlFlow<()> {
    if small == Small::NetworkPackets {
        return network::rows(opened, trace, rows, damage);
    }
    if let Some(topics) = kernel_rows::topics(small) {
        return kernel_rows::rows(topics, opened, trace, rows, damage);
    }
    let mut facts = Facts::new(trace, &opened.recording.streams);
    if !facts.has_meaning() {
        return ControlFlow::Continue(());
    }
    let about = match small {
        Small::Messages => About::Messages,
        Small::States => About::States,
        Small::Counters => About::Levels,
        Small::ThreadStates | Small::Contradictions => About::Threads,
        _ => About::Spans,
    };
    if !facts.only(about) {
        damage.extend(opened.inner_damage());
        return ControlFlow::Continue(());
    }
    if matches!(small, Small::ThreadStates | Small::Contradictions) {
        let mut threads = ThreadRows::new(small, opened, rows);
        let deriver = ThreadRows::deriver(opened, &facts);
        derive(by_columns, small, opened, (trace, facts, deriver), &mut threads, damage);
        threads.flow?;
    } else {
        let mut derived = DerivedRows::new(small, opened, rows);
        let deriver = DerivedRows::deriver(opened, &facts);
        derive(by_columns, small, opened, (trace, facts, deriver), &mut derived, damage);
        derived.flow?;
    }
    // The next recording has its own numbering of kinds.
    rows.flush()
}

/// Delivers everything derived from the events.
fn derive<S: DerivedSink<Event = ()>>(
    by_columns: bool,
    small: Small,
    opened: &Opened,
    (trace, mut facts, mut deriver): (&Trace, Facts, Deriver<()>),
    sink: &mut S,
    damage: &mut Vec<Damage>,
) {
    let mut ended = None;
    let source = &opened.recording.source;
    if by_columns && facts.has_columns(source) {
        let last = Mutex::new(None);
        let see = |batch: &dyn ColumnBatch, _: Option<u32>| {
            // Only the last state lasts until then.
            if matches!(small, Small::States | Small::ThreadStates | Small::Contradictions)
                && let Some(latest) = latest(batch)
            {
                let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                *last = (*last).max(Some(latest));
            }
            std::ops::ControlFlow::Continue(())
        };
        let deriving = &mut Deriving { deriver: &mut deriver, sink };
        // Only runs can be disordered.
        if let Visited::Whole(inside) =
            facts.visit_columns(source, trace, &see, deriving, Edges::Each)
            && !sink.is_enough()
        {
            damage.extend(inside);
        }
        ended = last.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    } else {
        let mut events = source.events();
        while let Some(event) = events.next_event() {
            ended = ended.max(Some(event.time));
            facts.tell(&event, |kinds, at, fact| deriver.fact(kinds, at, fact, sink));
            if sink.is_enough() {
                return;
            }
        }
        damage.extend(events.damage());
    }
    if !sink.is_enough() {
        let ended = deriver.ended(ended);
        deriver.finish(facts.kinds(), ended, sink);
    }
}

/// Time of the last event of a batch.
fn latest(batch: &dyn ColumnBatch) -> Option<Nanos> {
    let classes = (0..batch.class_count()).map(|index| batch.class(index));
    let of_columns = classes.filter_map(|class| class.times.iter().copied().max()).max();
    let of_rows = (0..batch.row_count()).map(|index| batch.row(index).time).max();
    of_columns.max(of_rows)
}
