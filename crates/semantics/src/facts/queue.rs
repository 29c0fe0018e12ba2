// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pieces of streams, read ahead on any core and taken in stream order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lateralis_model::{Damage, PartSummary};
use lateralis_units::Nanos;

use super::marks::Chunk;

/// Pieces of one stream that are read ahead.
const AHEAD: usize = 2;
/// Streams with that read-ahead: a piece has some 600 KB of marks.
const STREAMS_AHEAD: usize = 64;

/// Marks of a piece, and the damage in it.
pub type Read = (Chunk, Vec<Damage>);

/// Pieces to be read, and pieces that have been read.
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    begins: Vec<Option<Nanos>>,
}

struct State {
    /// Pieces to be read; those that begin first have precedence.
    jobs: BinaryHeap<Reverse<(Option<Nanos>, usize)>>,
    done: HashMap<usize, Read>,
    /// By stream: pieces that have been queued, and the remaining ones.
    given: Vec<VecDeque<usize>>,
    waiting: Vec<VecDeque<usize>>,
    /// Used chunks, whose memory is reused.
    spare: Vec<Chunk>,
    is_over: bool,
}

impl Queue {
    /// For all pieces.
    pub fn new(parts: &[PartSummary], streams: usize) -> Self {
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

    /// Number of streams.
    pub fn streams(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Returns a used chunk.
    pub fn reuse(&self, chunk: Chunk) {
        self.lock().spare.push(chunk);
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

    /// Reads pieces until none are left.
    pub fn work(&self, read: &(impl Fn(usize, Chunk) -> Read + Sync)) {
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

    /// The next piece of a stream with its marks; `None` after the last. Reads other pieces while it
    /// waits.
    pub fn take(
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
                // A reader has panicked; the scope propagates that.
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

/// Wakes waiting threads when a reader panics or all pieces are read.
pub struct Ends<'q>(pub &'q Queue);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}
