// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts of all streams in the order of time, read by columns on several cores.
//!
//! ```text
//! pieces of streams ─ any core ─► marks of each ─ one tournament ─► facts, in order
//! ```
//!
//! Of every stream some pieces are read ahead, those that begin first before others.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lateralis_model::{
    ColumnBatch, ColumnRequest, Damage, ENDED, PartSummary, Source, StreamIndex, Tournament, Trace,
    Turn, Writer, turn_of,
};
use lateralis_units::Nanos;

use super::marks::{Chunk, Emit, Mark, Reading, Says};
use super::{At, Fact, Facts};

/// Pieces of one stream that are read ahead.
const AHEAD: usize = 2;
/// Streams of which that many are: a piece is some 600 KB of marks.
const STREAMS_AHEAD: usize = 64;
/// Streams at most: each needs a piece in memory.
const STREAMS_MAX: usize = 1024;
/// Cores that read for the one that puts in order: it has half of the work.
const READERS: usize = 3;

/// Whoever wants the facts of a trace.
pub trait Sink {
    /// One fact, in the order of time.
    fn fact(&mut self, at: &At, fact: Fact);
    /// The first event of some on a processor; in the order of time, as soon as the
    /// processor has events, and perhaps again.
    fn appears(&mut self, cpu: u32, time: Nanos);
}

impl Facts {
    /// Whether [`Facts::visit_columns`] can read this trace.
    #[must_use]
    pub fn has_columns(&self, source: &dyn Source) -> bool {
        let streams = self.cpus.len();
        let is_known =
            |part: &PartSummary| part.stream.is_some_and(|stream| (stream.0 as usize) < streams);
        // A processor that only fields tell is for whoever reads whole events.
        let are_cpus_known = self.cpus.iter().all(Option::is_some)
            || self.plans.iter().flatten().all(|plan| plan.cpu.is_none());
        source.has_columns()
            && streams <= STREAMS_MAX
            && are_cpus_known
            && source.parts().iter().all(is_known)
    }

    /// Shows all facts of a trace in the order of time, as [`Facts::of`] does event by
    /// event, and every event once in a batch: streams in any order, on any thread, with the
    /// processor where it is known. Returns the damage found on the way.
    ///
    /// `trace` is that with the roles, as [`Facts::new`] was given it.
    ///
    /// Cost: classes whose facts are numbers cost some nanoseconds an event, others are kept
    /// until their turn and cost some hundred; those that say nothing are only counted.
    /// Memory: three pieces of each stream (half a megabyte of packets, as marks).
    pub fn visit_columns(
        &mut self,
        source: &dyn Source,
        trace: &Trace,
        see: &(dyn Fn(&dyn ColumnBatch, Option<u32>) + Sync),
        sink: &mut impl Sink,
    ) -> Vec<Damage> {
        let streams = source.streams();
        let reading = Reading::new(trace, &self.plans, &streams);
        let parts = source.parts();
        let read = |part: usize, mut chunk: Chunk| {
            chunk.clear();
            let request = ColumnRequest {
                parts: &[part],
                interval: lateralis_model::Interval::default(),
                wanted: &reading.wanted,
            };
            let damage = source.columns(&request, &mut |batch| {
                see(batch, reading.cpu_of(batch));
                chunk.add(batch, &reading);
                std::ops::ControlFlow::Continue(())
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
            let mut order = Order { lanes: Vec::new(), queue: &queue, damage: Vec::new() };
            order.run(self, trace, &reading.emits, &read, sink);
            order.damage.sort_by_key(|(part, _)| *part);
            order.damage.into_iter().flat_map(|(_, damage)| damage).collect()
        })
    }

    /// Says what a mark says.
    #[inline]
    fn say(
        &mut self,
        mark: &Mark,
        emits: &[Emit],
        stream: u32,
        chunk: &Chunk,
        trace: &Trace,
        sink: &mut impl Sink,
    ) {
        let Emit { says, tells } = emits[(mark.emit & !Mark::RECORDED) as usize];
        let cpu = (mark.cpu != Mark::NO_CPU).then_some(mark.cpu);
        let key = |key: Option<_>| key.map(|_| mark.value);
        let kinds = &mut self.kinds;
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
            Says::Writer => {
                return self.threads.belongs(Writer { pid: mark.pid, tid: mark.tid });
            }
            Says::Appears => return sink.appears(mark.cpu, mark.time),
            Says::Kept => {
                if let Some(event) = chunk.event(mark, trace) {
                    self.of(&event, |at, fact| sink.fact(at, fact));
                }
                return;
            }
        };
        let is_recorded = mark.emit & Mark::RECORDED != 0;
        let threads = &mut self.threads;
        let writer = match (is_recorded, tells) {
            (true, _) | (false, (true, true)) => Some(Writer { pid: mark.pid, tid: mark.tid }),
            (false, (true, false)) => Some(Writer { pid: threads.pid(mark.tid), tid: mark.tid }),
            (false, (false, _)) => cpu
                .and_then(|cpu| threads.running(cpu))
                .map(|tid| Writer { pid: threads.pid(tid), tid }),
        };
        if let (Some(writer), (true, true)) = (writer, tells) {
            threads.belongs(writer);
        }
        let is_told = is_recorded || tells.0;
        let at = At { time: mark.time, stream: StreamIndex(stream), cpu, writer, is_told };
        sink.fact(&at, fact);
    }
}

/// How many marks ahead memory is asked for the next of a stream. The marks of a piece lie
/// behind each other, but those of many streams in turn are nothing that a processor would
/// see coming.
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

/// What a piece says, and the damage in it.
type Read = (Chunk, Vec<Damage>);

/// Streams on their way into one order.
struct Order<'q> {
    lanes: Vec<Lane>,
    queue: &'q Queue,
    damage: Vec<(usize, Vec<Damage>)>,
}

#[derive(Default)]
struct Lane {
    chunk: Chunk,
    next: usize,
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
        let streams = self.queue.lock().waiting.len();
        self.lanes.resize_with(streams, Lane::default);
        let turns: Vec<u64> = (0..streams).map(|stream| self.fill(stream, read)).collect();
        let (mut tournament, mut winner) = Tournament::start(&turns);
        while winner.turn != ENDED {
            let stream = winner.stream as usize;
            let Lane { chunk, next, latest } = &mut self.lanes[stream];
            let mark = chunk.marks[*next];
            *next += 1;
            fetch_ahead(&chunk.marks, *next + FAR);
            facts.say(&mark, emits, stream as u32, chunk, trace, sink);
            let turn = match chunk.marks.get(*next) {
                Some(mark) => {
                    *latest = turn_of(mark.time).max(*latest);
                    *latest
                }
                None => self.fill(stream, read),
            };
            winner = tournament.play(Turn { turn, ..winner });
        }
    }

    /// Takes the next piece of a stream that says anything: the turn of its first mark.
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
            let spent = std::mem::replace(lane, Lane { chunk, next: 0, latest });
            self.queue.lock().spare.push(spent.chunk);
            return latest;
        }
        ENDED
    }
}

/// Pieces that are to be read, and those that have been.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    begins: Vec<Option<Nanos>>,
}

struct State {
    /// To be read, those that begin first before others.
    jobs: BinaryHeap<Reverse<(Option<Nanos>, usize)>>,
    done: HashMap<usize, Read>,
    /// By stream: pieces that have been given out, and those that have not.
    given: Vec<VecDeque<usize>>,
    waiting: Vec<VecDeque<usize>>,
    /// Chunks that have been used; their memory is used again.
    spare: Vec<Chunk>,
    is_over: bool,
}

impl Queue {
    fn new(parts: &[PartSummary], streams: usize) -> Self {
        let mut waiting = vec![VecDeque::new(); streams];
        for (index, part) in parts.iter().enumerate() {
            let of = part.stream.and_then(|stream| waiting.get_mut(stream.0 as usize));
            if let Some(of) = of {
                of.push_back(index);
            }
        }
        let queue = Self {
            state: Mutex::new(State {
                jobs: BinaryHeap::new(),
                done: HashMap::new(),
                given: vec![VecDeque::new(); streams],
                waiting,
                spare: Vec::new(),
                is_over: false,
            }),
            changed: Condvar::new(),
            begins: parts.iter().map(|part| part.interval.begin).collect(),
        };
        let ahead = if streams > STREAMS_AHEAD { 1 } else { AHEAD };
        let mut state = queue.lock();
        for stream in (0..streams).cycle().take(streams * ahead) {
            queue.give(&mut state, stream);
        }
        drop(state);
        queue
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'q>(&self, state: MutexGuard<'q, State>) -> MutexGuard<'q, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, state: &mut State, stream: usize) {
        if let Some(part) = state.waiting[stream].pop_front() {
            state.given[stream].push_back(part);
            state.jobs.push(Reverse((self.begins[part], part)));
        }
    }

    /// Reads pieces until there is nothing more to read.
    fn work(&self, read: &(impl Fn(usize, Chunk) -> Read + Sync)) {
        let _ends = Ends(self);
        let mut state = self.lock();
        while !state.is_over {
            let Some(Reverse((_, part))) = state.jobs.pop() else {
                state = self.wait(state);
                continue;
            };
            let spare = state.spare.pop().unwrap_or_default();
            drop(state);
            let done = read(part, spare);
            state = self.lock();
            state.done.insert(part, done);
            self.changed.notify_all();
        }
    }

    /// The next piece of a stream; reads others itself as long as it is not there.
    fn take(
        &self,
        stream: usize,
        read: &(impl Fn(usize, Chunk) -> Read + Sync),
    ) -> Option<(usize, Read)> {
        let mut state = self.lock();
        let part = state.given[stream].pop_front()?;
        self.give(&mut state, stream);
        self.changed.notify_all();
        loop {
            if let Some(done) = state.done.remove(&part) {
                return Some((part, done));
            }
            if state.is_over {
                // A reader has panicked; the scope passes that on.
                return None;
            }
            let Some(Reverse((_, next))) = state.jobs.pop() else {
                state = self.wait(state);
                continue;
            };
            let spare = state.spare.pop().unwrap_or_default();
            drop(state);
            let done = read(next, spare);
            state = self.lock();
            state.done.insert(next, done);
        }
    }
}

/// Lets nobody wait for one who has panicked, nor readers when all is read.
struct Ends<'q>(&'q Queue);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}
