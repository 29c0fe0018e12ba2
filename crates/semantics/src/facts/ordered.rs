// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts of all streams in time order, read by columns on several cores.
//!
//! ```text
//! pieces of streams ─ any core ─► marks of each ─ one tournament ─► facts, in order
//! ```
//!
//! Some pieces of each stream are read ahead; those that begin first are read first.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use lateralis_analysis::{Side, ThreadEdge};
use lateralis_model::{
    ColumnBatch, ColumnRequest, Damage, ENDED, Event, PartSummary, Source, StreamIndex, Tournament,
    Trace, Turn, Writer, turn_of,
};
use lateralis_units::Nanos;

use super::marks::{Chunk, Emit, Mark, Says};
use super::places::Places;
use super::plan::Step;
use super::queue::{Ends, Queue, Read};
use super::reading::Reading;
use super::{At, Fact, Facts, Kinds};

/// Largest number of streams: each needs a piece in memory.
const STREAMS_MAX: usize = 1024;
/// Reader threads for the one that merges, which does half of the work.
const READERS: usize = 3;

/// Consumer of the facts of a trace.
pub trait Sink {
    /// One fact, in time order.
    fn fact(&mut self, _at: &At, _fact: Fact) {}

    /// Like [`Sink::fact`], with the kinds known by then.
    #[inline]
    fn fact_of(&mut self, _kinds: &Kinds, at: &At, fact: Fact) {
        self.fact(at, fact);
    }

    /// Whether the sink needs no further facts.
    #[inline]
    fn is_enough(&self) -> bool {
        false
    }

    /// The first event of a batch on a CPU. Called in time order, as soon as the CPU has events, and
    /// possibly again.
    fn appears(&mut self, cpu: u32, time: Nanos);

    /// An event of a class that is read whole ([`Facts::keep`], and classes whose facts need it), after
    /// its facts; in time order.
    fn kept(&mut self, _event: &Event<'_>, _at: &At) {}

    /// Consecutive edges of spans without keys of one thread and one stream, when the turn of the first
    /// comes; events of other threads in between come later. `at` belongs to the first. Called only if
    /// runs are allowed in [`Facts::visit_columns`].
    fn run(&mut self, kinds: &Kinds, at: &At, edges: &[ThreadEdge]) {
        for edge in edges {
            self.fact_of(kinds, &At { time: edge.time, ..*at }, edge_fact(edge));
        }
    }
}

/// Order in which edges of spans without keys are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edges {
    /// Each in time order, like all facts.
    Each,
    /// In runs of one thread; see [`Sink::run`].
    InRuns,
    /// Like `InRuns`; in addition, the consumer of batches needs no classes, so that batches may have
    /// [their events in order](ColumnBatch::times_in_order).
    InOrder,
}

/// Outcome of reading a trace by columns.
#[derive(Debug)]
pub enum Visited {
    /// Everything was delivered, or as much as the sink needed; with the damage found on the way.
    Whole(Vec<Damage>),
    /// A thread had events elsewhere during a run, or there were too many threads. The output so far must
    /// be discarded; reading without runs works.
    Disordered,
}

/// Called with each batch of events, in any order and on any thread, and with the CPU of its events if all
/// have one.
pub type SeeBatch<'a> = dyn Fn(&dyn ColumnBatch, Option<u32>) -> ControlFlow<()> + Sync + 'a;

impl Facts {
    /// Whether [`Facts::visit_columns`] can read this trace.
    #[must_use]
    pub fn has_columns(&self, source: &dyn Source) -> bool {
        let streams = self.cpus.len();
        let is_known =
            |part: &PartSummary| part.stream.is_some_and(|stream| (stream.0 as usize) < streams);
        // CPUs that only fields contain require reading whole events.
        let are_cpus_known = self.cpus.iter().all(Option::is_some)
            || self.plans.iter().flatten().all(|plan| plan.cpu.is_none());
        // Which threads have all their switches is known from events without meaning as well.
        source.has_columns()
            && !self.of_programs.contains(&true)
            && streams <= STREAMS_MAX
            && are_cpus_known
            && source.parts().iter().all(is_known)
    }

    /// Whether runs are possible: each CPU has a stream of its own, if switches determine which thread
    /// runs there, and there are no complete spans, which end by the time of their thread.
    #[must_use]
    pub fn has_runs(&self) -> bool {
        let steps = self.plans.iter().flatten().flat_map(|plan| &plan.steps);
        let has_wholes = steps.into_iter().any(|step| matches!(step, Step::Whole { .. }));
        let mut cpus: Vec<Option<u32>> = self.cpus.clone();
        cpus.sort_unstable();
        cpus.dedup();
        let are_cpus_apart = cpus.len() == self.cpus.len() && !cpus.contains(&None);
        !has_wholes && (are_cpus_apart || !self.has_switches())
    }

    /// Delivers all facts of a trace in time order, as [`Facts::of`] does for each event, and every event
    /// once in a batch: streams in any order, on any thread, with the CPU if it is known.
    /// What follows a batch for which `see` breaks may be left out.
    ///
    /// `trace` must be the trace with roles that [`Facts::new`] was given. Edges come in runs only if
    /// [`Facts::has_runs`].
    ///
    /// Cost: classes whose facts are numbers cost some nanoseconds per event; other events are kept until
    /// their turn and cost some hundred. Classes without facts are only counted. Memory: three pieces of
    /// each stream (half a megabyte of packets, as marks).
    pub fn visit_columns(
        &mut self,
        source: &dyn Source,
        trace: &Trace,
        see: &SeeBatch<'_>,
        sink: &mut impl Sink,
        edges: Edges,
    ) -> Visited {
        let streams = source.streams();
        let edges = if self.has_runs() { edges } else { Edges::Each };
        let has_runs = edges != Edges::Each;
        let reading = Reading::new(trace, &self.plans, &streams, edges);
        let parts = source.parts();
        let read = |part: usize, mut chunk: Chunk| {
            chunk.clear();
            let request = ColumnRequest {
                parts: &[part],
                interval: lateralis_model::Interval::default(),
                wanted: &reading.wanted,
            };
            let damage = source.columns(&request, &mut |batch| {
                see(batch, reading.cpu_of(batch))?;
                chunk.add(batch, &reading);
                ControlFlow::Continue(())
            });
            (chunk, damage)
        };
        let queue = Queue::new(&parts, streams.len());
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        std::thread::scope(|scope| {
            let _ends = Ends(&queue);
            for _ in 1..cores.min(READERS + 1) {
                scope.spawn(|| queue.work(&read));
            }
            let places = has_runs.then(Places::default);
            if has_runs {
                self.threads.remember_changes();
            }
            let mut order = Order { lanes: Vec::new(), queue: &queue, damage: Vec::new(), places };
            order.run(self, trace, &reading.emits, &read, sink);
            if order.places.is_some_and(|places| places.is_disordered()) {
                return Visited::Disordered;
            }
            order.damage.sort_by_key(|(part, _)| *part);
            Visited::Whole(order.damage.into_iter().flat_map(|(_, damage)| damage).collect())
        })
    }

    /// Delivers the facts of a mark; for a run, the edges after the first `told`. Returns the new number
    /// of delivered edges if some remain.
    #[inline]
    fn say(
        &mut self,
        mark: &Mark,
        told: usize,
        from: &From<'_>,
        places: &mut Option<Places>,
        sink: &mut impl Sink,
    ) -> Option<usize> {
        let From { stream, chunk, emits, trace } = *from;
        let Emit { says, tells } = emits[(mark.emit & !Mark::RECORDED) as usize];
        let cpu = (mark.cpu != Mark::NO_CPU).then_some(mark.cpu);
        let key = |key: Option<_>| key.map(|_| mark.value);
        let kinds = &mut self.kinds;
        let mut run: &[ThreadEdge] = &[];
        let fact = match says {
            Says::Begin { span, key: base } => {
                kinds.spans[span as usize].numbers.read_as(base);
                Fact::Begin { span, key: key(base) }
            }
            Says::End { span, key: base } => {
                kinds.spans[span as usize].numbers.read_as(base);
                Fact::End { span, key: key(base) }
            }
            Says::Send { channel, key: base } => {
                kinds.channels[channel as usize].numbers.read_as(base);
                Fact::Send { channel, key: key(base) }
            }
            Says::Receive { channel, key: base } => {
                kinds.channels[channel as usize].numbers.read_as(base);
                Fact::Receive { channel, key: key(base) }
            }
            Says::Whole { span } => Fact::Whole { span, duration_ns: mark.value },
            Says::Level { counter } => Fact::Level { counter, value: f64::from_bits(mark.value) },
            Says::Run => {
                run = &chunk.edges(mark)[told..];
                edge_fact(run.first()?)
            }
            Says::Writer => {
                self.threads.belongs(Writer { pid: mark.pid, tid: mark.tid });
                if self.threads.has_learnt() {
                    let writer = Some(Writer { pid: mark.pid, tid: mark.tid });
                    let (time, of) = (mark.time, StreamIndex(stream));
                    let at = At { time, stream: of, cpu, writer, is_told: true };
                    self.threads.learnt().for_each(|fact| sink.fact_of(&self.kinds, &at, fact));
                }
                self.check(places, Some(mark.tid), stream, mark.time, mark.time);
                return None;
            }
            Says::Appears => {
                sink.appears(mark.cpu, mark.time);
                return None;
            }
            Says::Kept => {
                if let Some(event) = chunk.event(mark, trace) {
                    let at = self.tell(&event, |kinds, at, fact| sink.fact_of(kinds, at, fact));
                    sink.kept(&event, &at);
                    let tid = at.writer.map(|writer| writer.tid);
                    self.check(places, tid, stream, mark.time, mark.time);
                }
                return None;
            }
        };
        let is_recorded = mark.emit & Mark::RECORDED != 0;
        let threads = &mut self.threads;
        let writer = match (is_recorded, tells) {
            (true, _) | (false, (true, true)) => Some(Writer { pid: mark.pid, tid: mark.tid }),
            (false, (true, false)) => {
                Some(Writer { pid: threads.taken_for(mark.tid), tid: mark.tid })
            }
            (false, (false, _)) => cpu
                .and_then(|cpu| threads.running(cpu))
                .map(|tid| Writer { pid: threads.taken_for(tid), tid }),
        };
        if let Some(writer) = writer {
            if is_recorded {
                threads.recorded(writer);
            }
            if tells == (true, true) {
                threads.belongs(writer);
            }
        }
        let is_told = is_recorded || tells.0;
        let mut at = At { time: mark.time, stream: StreamIndex(stream), cpu, writer, is_told };
        if self.threads.has_learnt() {
            self.threads.learnt().for_each(|fact| sink.fact_of(&self.kinds, &at, fact));
        }
        let Some(first) = run.first() else {
            self.check(places, writer.map(|writer| writer.tid), stream, mark.time, mark.time);
            sink.fact_of(&self.kinds, &at, fact);
            return None;
        };
        at.time = first.time;
        if writer.is_none() {
            // Edges without a known thread cannot be consecutive on a thread.
            sink.fact_of(&self.kinds, &at, fact);
            return (run.len() > 1).then_some(told + 1);
        }
        let until = run.iter().map(|edge| edge.time).max().unwrap_or(first.time);
        self.check(places, writer.map(|writer| writer.tid), stream, first.time, until);
        sink.run(&self.kinds, &at, run);
        None
    }

    /// Checks that the thread is nowhere else in the interval, nor threads whose process has changed.
    #[inline]
    fn check(
        &mut self,
        places: &mut Option<Places>,
        tid: Option<u32>,
        stream: u32,
        from: Nanos,
        until: Nanos,
    ) {
        if let Some(places) = places {
            tid.into_iter().for_each(|tid| places.see(tid, stream, from, until));
            self.threads.changes().for_each(|tid| places.see(tid, stream, from, until));
        }
    }
}

/// The fact of an edge of a run.
fn edge_fact(edge: &ThreadEdge) -> Fact {
    let (span, key) = (edge.kind, None);
    match edge.side {
        Side::Begin => Fact::Begin { span, key },
        Side::End => Fact::End { span, key },
    }
}

/// Origin of a mark, and how to read it.
#[derive(Clone, Copy)]
struct From<'a> {
    stream: u32,
    chunk: &'a Chunk,
    emits: &'a [Emit],
    trace: &'a Trace,
}

/// Distance in marks at which the next marks of a stream are prefetched. The marks of a piece are
/// contiguous, but the interleaving of many streams is not predictable for the hardware prefetcher.
const FAR: usize = 6;

#[inline(always)]
fn fetch_ahead(marks: &[Mark], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(mark) = marks.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64; a prefetch changes nothing, and points into a slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(mark).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (marks, index);
}

/// Merges streams into one order.
struct Order<'q> {
    lanes: Vec<Lane>,
    queue: &'q Queue,
    damage: Vec<(usize, Vec<Damage>)>,
    /// Present if edges come in runs.
    places: Option<Places>,
}

#[derive(Default)]
struct Lane {
    chunk: Chunk,
    next: usize,
    /// Number of edges of the next mark that have been delivered.
    told: usize,
    latest: u64,
}

impl Order<'_> {
    fn run(
        &mut self,
        facts: &mut Facts,
        trace: &Trace,
        emits: &[Emit],
        read: &(impl Fn(usize, Chunk) -> Read + Sync),
        sink: &mut impl Sink,
    ) {
        let streams = self.queue.streams();
        self.lanes.resize_with(streams, Lane::default);
        let turns: Vec<u64> = (0..streams).map(|stream| self.fill(stream, read)).collect();
        let (mut tournament, mut winner) = Tournament::start(&turns);
        while winner.turn != ENDED {
            let stream = winner.stream as usize;
            let Lane { chunk, next, told, latest } = &mut self.lanes[stream];
            let mark = chunk.marks[*next];
            fetch_ahead(&chunk.marks, *next + 1 + FAR);
            let from = From { stream: stream as u32, chunk, emits, trace };
            let time = match facts.say(&mark, *told, &from, &mut self.places, sink) {
                Some(more) => {
                    *told = more;
                    chunk.edges(&mark).get(more).map(|edge| edge.time)
                }
                None => {
                    (*next, *told) = (*next + 1, 0);
                    chunk.marks.get(*next).map(|mark| mark.time)
                }
            };
            let turn = match time {
                Some(time) => {
                    *latest = turn_of(time).max(*latest);
                    *latest
                }
                None => self.fill(stream, read),
            };
            if self.places.as_ref().is_some_and(Places::is_disordered) || sink.is_enough() {
                return;
            }
            winner = tournament.play(Turn { turn, ..winner });
        }
    }

    /// Takes the next piece of a stream that has marks; returns the turn of its first mark.
    fn fill(&mut self, stream: usize, read: &(impl Fn(usize, Chunk) -> Read + Sync)) -> u64 {
        while let Some((part, (chunk, damage))) = self.queue.take(stream, read) {
            if !damage.is_empty() {
                self.damage.push((part, damage));
            }
            let Some(first) = chunk.marks.first() else {
                continue;
            };
            let lane = &mut self.lanes[stream];
            let latest = turn_of(first.time).max(lane.latest);
            let spent = std::mem::replace(lane, Lane { chunk, next: 0, told: 0, latest });
            self.queue.reuse(spent.chunk);
            return latest;
        }
        ENDED
    }
}
