// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Edges of spans from batches whose events are in order, which needs no lookup in the columns of each
//! class.

use std::ops::Range;

use lateralis_analysis::{Side, ThreadEdge};
use lateralis_model::{ColumnBatch, Writer};
use lateralis_units::Nanos;

use super::cursors::{Numbers, Who};
use super::marks::{Chunk, Mark, Run};
use super::reading::{InOrder, Saying};

/// A batch in order, with the properties that all its events share.
#[derive(Clone, Copy)]
struct Events<'b> {
    batch: &'b dyn ColumnBatch,
    times: &'b [Nanos],
    in_order: &'b InOrder,
    cpu: u32,
}

impl Chunk {
    /// Adds the edges of a batch in order, reading it from start to end.
    pub(super) fn add_in_order(
        &mut self,
        batch: &dyn ColumnBatch,
        times: &[Nanos],
        in_order: &InOrder,
        (cpu, is_at_home): (Option<u32>, bool),
    ) {
        let numbers = |column: Option<usize>| {
            column.map_or(Numbers::None, |index| Numbers::in_column(batch.column_in_order(index)))
        };
        let fields = Who { tid: numbers(in_order.tid), pid: numbers(in_order.pid) };
        let cpu = cpu.unwrap_or(Mark::NO_CPU);
        let of = Events { batch, times, in_order, cpu };
        let is_recorded = batch.writers().first().is_some_and(|(from, _)| *from == 0);
        let are_runs = is_at_home && (in_order.is_known || is_recorded) && !in_order.has_writers;
        let count = times.len();
        let mut writers = batch.writers().iter().copied().peekable();
        let (mut from, mut writer) = (0, None);
        while from < count {
            while let Some((_, next)) = writers.next_if(|(begin, _)| *begin as usize <= from) {
                writer = Some(next);
            }
            let until = writers.peek().map_or(count, |(begin, _)| count.min(*begin as usize));
            let events = from..until;
            match (are_runs, writer, fields) {
                (true, Some(who), _) => {
                    self.add_run(of, events, Mark::RECORDED, who);
                }
                // The usual columns have a loop of their own.
                (true, None, Who { tid: Numbers::Unsigned(tids), pid: Numbers::None }) => {
                    let who =
                        |at: usize| Writer { pid: 0, tid: tids.get(at).map_or(0, |t| *t as u32) };
                    self.add_runs(of, events, who);
                }
                (true, None, _) => {
                    let who = |at: usize| fields.of(at, None).1;
                    self.add_runs(of, events, who);
                }
                (false, ..) => {
                    let who = |at: usize| fields.of(at, writer);
                    self.add_alone(of, events, who);
                }
            }
            from = until;
        }
    }

    /// Adds edges of any threads.
    fn add_runs(&mut self, of: Events<'_>, events: Range<usize>, who: impl Fn(usize) -> Writer) {
        let mut from = events.start;
        while from < events.end {
            let thread = who(from);
            let others = (from + 1..events.end).find(|&at| who(at) != thread);
            let until = others.unwrap_or(events.end);
            self.add_run(of, from..until, 0, thread);
            from = until;
        }
    }

    /// Adds edges of one thread.
    fn add_run(&mut self, of: Events<'_>, events: Range<usize>, recorded: u32, who: Writer) {
        let Events { batch, times, in_order, cpu } = of;
        let first = self.edge_count;
        if self.edges.len() < first + events.len() {
            let none = ThreadEdge { time: Nanos(0), kind: 0, side: Side::Begin };
            self.edges.resize((first + events.len()).next_power_of_two(), none);
        }
        let mut count = first;
        let classes = batch.order().part(events.clone());
        for (class, &time) in classes.zip(&times[events]) {
            let Some(&Saying { kind, side, is_edge, .. }) = in_order.classes.get(class as usize)
            else {
                continue;
            };
            // Branch-free, because `is_edge` is unpredictable: always written, overwritten by the next
            // unless kept.
            self.edges[count] = ThreadEdge { time, kind, side };
            count += usize::from(is_edge);
        }
        self.edge_count = count;
        if count > first {
            self.end_run(Run { emit: in_order.run | recorded, who }, first, cpu);
        }
    }

    /// Adds edges that are not part of a run, and events that only identify their writer.
    fn add_alone(
        &mut self,
        of: Events<'_>,
        events: Range<usize>,
        who: impl Fn(usize) -> (u32, Writer),
    ) {
        let Events { batch, times, in_order, cpu } = of;
        for (at, class) in events.clone().zip(batch.order().part(events)) {
            let Some(saying) = in_order.classes.get(class as usize) else { continue };
            let (Some(emit), (recorded, who)) = (saying.alone, who(at)) else { continue };
            let Writer { pid, tid } = who;
            if saying.is_edge || recorded == 0 && self.is_news(who) {
                let (time, emit) = (times[at], emit | recorded);
                self.marks.push(Mark { time, value: 0, emit, cpu, pid, tid });
            }
        }
    }
}
