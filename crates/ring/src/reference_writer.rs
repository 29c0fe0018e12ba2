// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The writer's steps of spec/ring-abi.md §4, one store at a time: what the models explore and
//! what tests and fuzzing fill areas with. Not a tracer; `tracer/c` is.
//!
//! A [`Writer`] is one thread. [`Writer::begin`] gives it a record, [`Writer::step`] makes at
//! most one store. The caller decides what happens between two steps: a switch to
//! another thread on the same CPU ([`Writer::preempt`] says what the kernel does then), a signal
//! handler, death.

use alloc::vec::Vec;

use crate::abi::{self, packet, ring};
use crate::geometry::{Geometry, RingKind, RingMode};
use crate::memory::{AreaView, Load, OutOfArea, RingMemory};

/// What a writer needs of memory beside what a reader needs.
pub trait WriterMemory: RingMemory {
    /// Stores a word without ordering.
    fn store_relaxed(&self, offset: u64, value: u64) -> Result<(), OutOfArea>;
    /// Orders earlier stores before later ones.
    fn fence_release(&self);
}

impl WriterMemory for AreaView<'_> {
    fn store_relaxed(&self, offset: u64, value: u64) -> Result<(), OutOfArea> {
        // A release store is a plain store with more order: good enough outside of models.
        self.store_u64(offset, value)
    }

    fn fence_release(&self) {
        core::sync::atomic::fence(core::sync::atomic::Ordering::Release);
    }
}

/// When a writer of a per-thread ring marks the ring as busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BusyMark {
    /// Before it reads the cursor, as the specification says.
    BeforeCursor,
    /// After: loses what a handler wrote in between. For the model to find.
    AfterCursor,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It is in the ring.
    Written,
    /// `lost_full` counted it.
    LostFull,
    /// `lost_too_big` counted it.
    LostTooBig,
    /// The ring is busy below this handler: it has to take a ring of its own level.
    Busy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sequence {
    Record,
    Limit,
    LastWriter,
    WriterRecord,
    OpenNext,
    Lost(Outcome),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    Idle,
    /// Per-thread rings: take the limit aside. `slow`: the fast path has failed.
    Mark {
        slow: bool,
    },
    StoreMark {
        limit: u64,
        slow: bool,
    },
    /// The fast path of a per-thread ring, under the mark.
    Try {
        limit: u64,
    },
    Decide,
    Begin {
        sequence: Sequence,
        cursor: u64,
    },
    Storing {
        sequence: Sequence,
        stores: Vec<(u64, u64)>,
        next: usize,
    },
    Barrier,
    /// Give the limit back; then done, or once more by the slow path.
    Unmark {
        limit: u64,
        outcome: Option<Outcome>,
    },
    Done(Outcome),
}

/// One thread that writes into one ring.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Writer {
    kind_is_per_cpu: bool,
    control: u64,
    data: u64,
    packet_bytes: u64,
    packets: u64,
    pid: u32,
    tid: u32,
    overwrite: bool,
    busy_mark: BusyMark,
    id: u16,
    payload: Vec<u8>,
    /// Cursor after a WRITER record of this thread that `last_writer` does not name yet.
    wrote_writer_at: Option<u64>,
    /// The limit taken aside by the fast path of a per-thread ring.
    limit_aside: Option<u64>,
    /// [`BusyMark::AfterCursor`]: the cursor as it was read too early.
    early_cursor: Option<u64>,
    state: State,
}

fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    })
}

fn pair(first: u32, second: u32) -> u64 {
    let mut word = [0; 8];
    word[..4].copy_from_slice(&first.to_ne_bytes());
    word[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(word)
}

/// Record header: id in the low 16 bits of memory order, low 48 bits of the time above.
pub fn record_header(id: u16, time: u64) -> u64 {
    let time = time & ((1 << abi::TIME_BITS) - 1);
    if cfg!(target_endian = "little") {
        u64::from(id) | time << 16
    } else {
        u64::from(id) << 48 | time
    }
}

impl Writer {
    /// A thread of process `pid` that writes ring `ring`.
    pub fn new(geometry: &Geometry, ring: u32, pid: u32, tid: u32, mode: RingMode) -> Writer {
        let control = geometry.control_offset(ring);
        Writer {
            kind_is_per_cpu: geometry.kind() == RingKind::PerCpu,
            control,
            data: control + abi::RING_CONTROL_BYTES,
            packet_bytes: geometry.packet_bytes(),
            packets: geometry.packets_per_ring(),
            pid,
            tid,
            overwrite: mode == RingMode::Overwrite,
            busy_mark: BusyMark::BeforeCursor,
            id: 0,
            payload: Vec::new(),
            wrote_writer_at: None,
            limit_aside: None,
            early_cursor: None,
            state: State::Idle,
        }
    }

    /// Chooses when the ring is marked as busy; [`BusyMark::BeforeCursor`] unless changed.
    #[must_use]
    pub fn with_busy_mark(self, busy_mark: BusyMark) -> Writer {
        Writer { busy_mark, ..self }
    }

    /// Starts writing a record.
    pub fn begin(&mut self, id: u16, payload: &[u8]) {
        self.id = id;
        self.payload = payload.to_vec();
        self.state = if self.kind_is_per_cpu { State::Decide } else { State::Mark { slow: false } };
    }

    /// What became of the record, once it is decided.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.state {
            State::Done(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Whether a record is on its way.
    pub fn is_writing(&self) -> bool {
        !matches!(self.state, State::Idle | State::Done(_))
    }

    /// What the kernel does when this thread of a per-CPU ring loses the CPU: a restartable
    /// sequence that has begun starts again. No effect on the owner of a per-thread ring.
    pub fn preempt(&mut self) {
        if !self.kind_is_per_cpu {
            return;
        }
        match &self.state {
            State::Storing { .. } => self.state = State::Decide,
            State::Begin { sequence: Sequence::Record, .. } => self.state = State::Decide,
            _ => {}
        }
    }

    /// Runs to the end of the record. `clock` is asked for the time of each.
    pub fn write<M: WriterMemory>(
        &mut self,
        memory: &M,
        clock: &mut dyn FnMut() -> u64,
        id: u16,
        payload: &[u8],
    ) -> Result<Outcome, OutOfArea> {
        self.begin(id, payload);
        loop {
            if let Some(outcome) = self.outcome() {
                return Ok(outcome);
            }
            self.step(memory, clock)?;
        }
    }

    /// Makes the next step: some loads and at most one store.
    pub fn step<M: WriterMemory>(
        &mut self,
        memory: &M,
        clock: &mut dyn FnMut() -> u64,
    ) -> Result<(), OutOfArea> {
        self.state = match core::mem::replace(&mut self.state, State::Idle) {
            State::Idle => State::Idle,
            State::Done(outcome) => State::Done(outcome),
            State::Mark { slow } => self.mark(memory, slow)?,
            State::StoreMark { limit, slow } => {
                memory.store_relaxed(self.control + ring::LIMIT, abi::LIMIT_BUSY)?;
                if slow { State::Decide } else { State::Try { limit } }
            }
            State::Try { limit } => self.try_fast(memory, limit)?,
            State::Decide => {
                let (sequence, cursor) = self.decide(memory)?;
                State::Begin { sequence, cursor }
            }
            State::Begin { sequence, cursor } => self.enter(memory, clock, sequence, cursor)?,
            State::Storing { sequence, stores, next } => {
                self.store(memory, sequence, stores, next)?
            }
            State::Unmark { limit, outcome } => {
                memory.store_relaxed(self.control + ring::LIMIT, limit)?;
                self.early_cursor = None;
                outcome.map_or(State::Mark { slow: true }, State::Done)
            }
            State::Barrier => {
                memory.fence_release(); // pair W3
                State::Decide
            }
        };
        Ok(())
    }

    fn mark<M: WriterMemory>(&mut self, memory: &M, slow: bool) -> Result<State, OutOfArea> {
        if self.busy_mark == BusyMark::AfterCursor {
            self.early_cursor = Some(memory.load(self.control + ring::CURSOR, Load::Relaxed)?);
        }
        let limit = memory.load(self.control + ring::LIMIT, Load::Relaxed)?;
        Ok(if limit == abi::LIMIT_BUSY {
            State::Done(Outcome::Busy)
        } else {
            State::StoreMark { limit, slow }
        })
    }

    fn cursor<M: WriterMemory>(&self, memory: &M) -> Result<u64, OutOfArea> {
        match self.early_cursor {
            Some(cursor) => Ok(cursor),
            None => memory.load(self.control + ring::CURSOR, Load::Relaxed),
        }
    }

    /// The limit of the packet in which `cursor` lies.
    fn limit_of(&self, cursor: u64) -> u64 {
        (cursor / self.packet_bytes + 1) * self.packet_bytes - abi::PACKET_TAIL_BYTES
    }

    fn try_fast<M: WriterMemory>(&mut self, memory: &M, limit: u64) -> Result<State, OutOfArea> {
        let cursor = self.cursor(memory)?;
        let end = (cursor & !abi::CURSOR_SLACK_MASK) + self.record_bytes().next_multiple_of(8);
        if end > limit {
            return Ok(State::Unmark { limit, outcome: None });
        }
        self.limit_aside = Some(limit);
        Ok(State::Begin { sequence: Sequence::Record, cursor })
    }

    fn record_bytes(&self) -> u64 {
        abi::RECORD_HEADER_BYTES + self.payload.len() as u64
    }

    /// Looks at the ring and chooses what has to be done next [ring-abi §4.1, §4.2].
    fn decide<M: WriterMemory>(&self, memory: &M) -> Result<(Sequence, u64), OutOfArea> {
        let cursor = self.cursor(memory)?;
        let room = self.packet_bytes
            - abi::PACKET_HEADER_BYTES
            - abi::WRITER_RECORD_BYTES
            - abi::PACKET_TAIL_BYTES;
        if self.record_bytes().next_multiple_of(8) > room {
            return Ok((Sequence::Lost(Outcome::LostTooBig), cursor));
        }
        let position = cursor & !abi::CURSOR_SLACK_MASK;
        let open = position / self.packet_bytes;
        let record = self.record_bytes().next_multiple_of(8);
        if cursor != 0 {
            let limit = self.limit_of(cursor);
            let known = memory.load(self.control + ring::LIMIT, Load::Relaxed)?;
            if self.kind_is_per_cpu && known != limit {
                return Ok((Sequence::Limit, cursor));
            }
            let last = memory.load(self.control + ring::LAST_WRITER, Load::Relaxed)?;
            if last == pair(self.tid, 0) {
                if position + record <= limit {
                    return Ok((Sequence::Record, cursor));
                }
            } else if self.wrote_writer_at == Some(cursor) {
                return Ok((Sequence::LastWriter, cursor));
            } else if position + abi::WRITER_RECORD_BYTES + record <= limit {
                return Ok((Sequence::WriterRecord, cursor));
            }
        }
        let next = if cursor == 0 { 0 } else { open + 1 };
        let consumed = memory.load(self.control + ring::CONSUMED, Load::Acquire)?; // pair W2
        if !self.overwrite && next >= consumed.saturating_add(self.packets) {
            return Ok((Sequence::Lost(Outcome::LostFull), cursor));
        }
        Ok((Sequence::OpenNext, cursor))
    }

    /// Begins a sequence if the cursor is still what the decision was made on.
    fn enter<M: WriterMemory>(
        &mut self,
        memory: &M,
        clock: &mut dyn FnMut() -> u64,
        sequence: Sequence,
        cursor: u64,
    ) -> Result<State, OutOfArea> {
        if self.cursor(memory)? != cursor {
            return Ok(State::Decide);
        }
        let position = cursor & !abi::CURSOR_SLACK_MASK;
        let open = position / self.packet_bytes;
        let place = |position: u64| self.data + position % (self.packet_bytes * self.packets);
        let cursor_at = self.control + ring::CURSOR;
        let mut stores = Vec::new();
        match sequence {
            Sequence::Record => {
                let time = clock();
                stores.push((place(position), record_header(self.id, time)));
                for (index, word) in words_of(&self.payload).enumerate() {
                    stores.push((place(position) + 8 + index as u64 * 8, word));
                }
                let exact = self.record_bytes();
                let rounded = exact.next_multiple_of(8);
                stores.push((cursor_at, position + rounded + (rounded - exact)));
            }
            Sequence::Limit => stores.push((self.control + ring::LIMIT, self.limit_of(cursor))),
            Sequence::LastWriter => {
                stores.push((self.control + ring::LAST_WRITER, pair(self.tid, 0)));
            }
            Sequence::WriterRecord => {
                stores.push((self.control + ring::LAST_WRITER, pair(abi::WRITER_NONE, 0)));
                let header = record_header(abi::ID_WRITER, clock());
                stores.push((place(position), header));
                stores.push((place(position) + 8, pair(self.pid, self.tid)));
                stores.push((cursor_at, position + abi::WRITER_RECORD_BYTES));
            }
            Sequence::OpenNext => {
                let time = clock();
                if cursor != 0 {
                    self.close(memory, time, cursor, &mut stores)?;
                }
                let next = if cursor == 0 { 0 } else { open + 1 };
                let start = next * self.packet_bytes;
                let header = place(start);
                stores.push((header + packet::SEQUENCE, next));
                stores.push((header + packet::TIMESTAMP_BEGIN, time));
                stores.push((header + packet::CONTENT_BITS, 0));
                let first = start + abi::PACKET_HEADER_BYTES;
                stores.push((place(first), record_header(abi::ID_WRITER, time)));
                stores.push((place(first) + 8, pair(self.pid, self.tid)));
                stores.push((self.control + ring::LAST_WRITER, pair(abi::WRITER_NONE, 0)));
                stores.push((cursor_at, first + abi::WRITER_RECORD_BYTES));
            }
            Sequence::Lost(outcome) => {
                let at = self.control
                    + if outcome == Outcome::LostFull {
                        ring::LOST_FULL
                    } else {
                        ring::LOST_TOO_BIG
                    };
                // One instruction, add to memory: preemption finds it done or not begun.
                let count = memory.load(at, Load::Relaxed)?;
                memory.store_relaxed(at, count + 1)?;
                return Ok(if self.kind_is_per_cpu {
                    State::Done(outcome)
                } else {
                    State::Unmark { limit: self.limit_of(cursor), outcome: Some(outcome) }
                });
            }
        }
        Ok(State::Storing { sequence, stores, next: 0 })
    }

    fn close<M: WriterMemory>(
        &self,
        memory: &M,
        time: u64,
        cursor: u64,
        stores: &mut Vec<(u64, u64)>,
    ) -> Result<(), OutOfArea> {
        let position = cursor & !abi::CURSOR_SLACK_MASK;
        let start = position / self.packet_bytes * self.packet_bytes;
        let header = self.data + start % (self.packet_bytes * self.packets);
        let content = position - start;
        let slack = cursor & abi::CURSOR_SLACK_MASK;
        let mut total = 0;
        for (from, to) in [
            (ring::LOST_FULL, packet::LOST_FULL),
            (ring::LOST_TOO_BIG, packet::LOST_TOO_BIG),
            (ring::LOST_CONTENDED, packet::LOST_CONTENDED),
            (ring::LOST_NO_RING, packet::LOST_NO_RING),
        ] {
            let count = memory.load(self.control + from, Load::Relaxed)?;
            total += count;
            stores.push((header + to, count));
        }
        stores.push((header + packet::EVENTS_DISCARDED, total));
        stores.push((header + packet::TIMESTAMP_END, time));
        stores.push((header + packet::CONTENT_BITS, (content - slack) * 8));
        stores.push((header + packet::PACKET_BITS, content * 8));
        Ok(())
    }

    /// Makes one store of a sequence; the last one commits.
    fn store<M: WriterMemory>(
        &mut self,
        memory: &M,
        sequence: Sequence,
        stores: Vec<(u64, u64)>,
        next: usize,
    ) -> Result<State, OutOfArea> {
        let (offset, value) = stores[next];
        let cursor_at = self.control + ring::CURSOR;
        if offset == cursor_at {
            memory.store_release(offset, value)?; // pair W1
            self.early_cursor = self.early_cursor.map(|_| value);
        } else {
            memory.store_relaxed(offset, value)?;
        }
        if next + 1 < stores.len() {
            return Ok(State::Storing { sequence, stores, next: next + 1 });
        }
        Ok(match sequence {
            Sequence::Record if self.kind_is_per_cpu => State::Done(Outcome::Written),
            Sequence::Record => {
                let limit = self.limit_aside.take().unwrap_or(self.limit_of(value));
                State::Unmark { limit, outcome: Some(Outcome::Written) }
            }
            Sequence::WriterRecord => {
                self.wrote_writer_at = Some(value);
                State::Decide
            }
            Sequence::OpenNext => {
                self.wrote_writer_at = Some(value);
                State::Barrier
            }
            _ => State::Decide,
        })
    }
}
