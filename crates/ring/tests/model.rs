// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every interleaving of the writers' stores with preemption, signals, death and a reader
//! [ring-abi §4, §5], on a ring of two packets, for both kinds of reservation and both modes;
//! a thread loses the CPU in the middle of a record once or twice in all.
//!
//! The writers are the steps of `reference_writer`, the reader is the real one. Memory is
//! sequentially consistent here; `tests/memory_order.rs` adds the weaker orders. Checked after
//! every reading: a record is whole, its writer is the one the last WRITER record names, the order
//! of each writer is kept, time does not go back. At the end: written = read + lost.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use lateralis_ring::abi::{self, ring};
use lateralis_ring::reference_writer::{BusyMark, Outcome, Writer, WriterMemory};
use lateralis_ring::{
    Geometry, Load, OutOfArea, Poll, ReadPolicy, RingKind, RingMemory, RingMode, RingReader,
};

const PACKET_BYTES: u64 = 256;
const PACKETS: u64 = 2;
const EVENT: u16 = 20;

/// Words of the control page that mean something.
const CONTROL_WORDS: u64 = ring::BYTES / 8;

/// A ring in plain words, without the unused part of its control page.
#[derive(Clone)]
struct Words(Rc<RefCell<Vec<u64>>>);

impl Words {
    fn new(geometry: &Geometry) -> Words {
        let words = vec![0; (CONTROL_WORDS + geometry.ring_bytes() / 8) as usize];
        let words = Words(Rc::new(RefCell::new(words)));
        for sequence in 0..PACKETS {
            words.set(geometry.packet_offset(0, sequence), u64::from(abi::PACKET_MAGIC));
        }
        words
    }

    fn index(offset: u64) -> usize {
        let word = (offset - abi::RINGS_OFFSET) / 8;
        if word < CONTROL_WORDS {
            return word as usize;
        }
        (CONTROL_WORDS + word - abi::RING_CONTROL_BYTES / 8) as usize
    }

    fn set(&self, offset: u64, value: u64) {
        self.0.borrow_mut()[Self::index(offset)] = value;
    }
}

impl RingMemory for Words {
    fn load(&self, offset: u64, _: Load) -> Result<u64, OutOfArea> {
        Ok(self.0.borrow()[Self::index(offset)])
    }

    fn store_release(&self, offset: u64, value: u64) -> Result<(), OutOfArea> {
        self.set(offset, value);
        Ok(())
    }

    fn copy(&self, offset: u64, to: &mut [u8]) -> Result<(), OutOfArea> {
        let words = self.0.borrow();
        for (index, chunk) in to.chunks_mut(8).enumerate() {
            let word = words[Self::index(offset) + index].to_ne_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }

    fn fence_acquire(&self) {}
}

impl WriterMemory for Words {
    fn store_relaxed(&self, offset: u64, value: u64) -> Result<(), OutOfArea> {
        self.set(offset, value);
        Ok(())
    }

    fn fence_release(&self) {}
}

/// What a reader has seen so far.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Seen {
    writer: u32,
    last: Vec<(u32, u32)>,
    time: u64,
    events: u64,
    lost_packets: u64,
}

#[derive(Clone)]
struct World {
    memory: Words,
    /// One per thread that shares the ring; or the handlers of one thread, innermost last.
    writers: Vec<Writer>,
    left: Vec<u32>,
    running: usize,
    dead: Vec<bool>,
    reader: RingReader,
    seen: Seen,
    lost: u64,
    busy: u64,
    preemptions: u32,
    /// The last step moved the cursor or counted a loss. Only then it makes a difference
    /// whether the reader reads now or later: a reading sees no other word that changed.
    committed: bool,
}

impl World {
    /// Two hashes with different beginnings: a collision of both would hide states.
    fn key(&self) -> (u64, u64) {
        let one = |seed: u64| {
            let mut hasher = std::hash::DefaultHasher::new();
            seed.hash(&mut hasher);
            self.memory.0.borrow().hash(&mut hasher);
            self.writers.hash(&mut hasher);
            (&self.left, self.running, &self.dead, &self.reader).hash(&mut hasher);
            (&self.seen, self.lost, self.busy).hash(&mut hasher);
            (self.preemptions, self.committed).hash(&mut hasher);
            hasher.finish()
        };
        (one(1), one(2))
    }
}

struct Model {
    geometry: Geometry,
    mode: RingMode,
    signals: bool,
    deaths: bool,
    payload_bytes: u32,
    events_each: u32,
    preemptions_max: u32,
    visited: HashSet<(u64, u64)>,
    ends: u64,
}

fn payload(tid: u32, n: u32, bytes: u32) -> Vec<u8> {
    let mut payload = [tid.to_ne_bytes(), n.to_ne_bytes()].concat();
    payload.resize(bytes as usize, (tid + n) as u8);
    payload
}

impl Model {
    fn check_records(&self, seen: &mut Seen, records: &[u8]) -> Result<(), String> {
        let word = |at: usize| u64::from_ne_bytes(records[at..at + 8].try_into().unwrap());
        let half = |at: usize| u32::from_ne_bytes(records[at..at + 4].try_into().unwrap());
        let mut at = 0;
        while at < records.len() {
            let (id, time) = (word(at) as u16, word(at) >> 16);
            if time < seen.time {
                return Err(format!("time went back from {} to {time}", seen.time));
            }
            seen.time = time;
            if id == abi::ID_WRITER {
                seen.writer = half(at + 12);
                at += 16;
                continue;
            }
            let (tid, n) = (half(at + 8), half(at + 12));
            let length = self.payload_bytes as usize;
            if id != EVENT || records[at + 8..at + 8 + length] != payload(tid, n, length as u32) {
                return Err(format!("torn record id={id} tid={tid} n={n}"));
            }
            // A handler writes under the number of the thread it interrupts.
            let expected = if self.signals { 1 } else { tid };
            if seen.writer != expected {
                return Err(format!("record of {expected} stands under writer {}", seen.writer));
            }
            match seen.last.iter_mut().find(|(writer, _)| *writer == tid) {
                Some((_, last)) if *last >= n => return Err(format!("{tid}: {n} after {last}")),
                Some((_, last)) => *last = n,
                None => seen.last.push((tid, n)),
            }
            seen.events += 1;
            at += (8 + length).next_multiple_of(8);
        }
        Ok(())
    }

    fn read(&self, world: &mut World, open_part: bool) -> Result<bool, String> {
        let mut buffer = [0; PACKET_BYTES as usize];
        match world.reader.poll(&world.memory, self.mode, open_part, &mut buffer) {
            Poll::Idle => Ok(false),
            Poll::Chunk(chunk) => {
                self.check_records(&mut world.seen, &buffer[..chunk.bytes as usize])?;
                Ok(true)
            }
            Poll::LostPackets { count, .. } => {
                world.seen.lost_packets += count;
                // The content of their records is unknown: the next packet begins with a WRITER.
                world.seen.writer = 0;
                Ok(true)
            }
            Poll::Damaged(damage) => Err(damage.to_string()),
        }
    }

    fn start_next(&self, world: &mut World, index: usize) -> bool {
        if world.dead[index] || world.writers[index].is_writing() || world.left[index] == 0 {
            return false;
        }
        world.left[index] -= 1;
        let n = self.events_each - world.left[index];
        world.writers[index].begin(EVENT, &payload(index as u32 + 1, n, self.payload_bytes));
        true
    }

    fn step(&self, world: &mut World) {
        let index = world.running;
        let World { memory, writers, .. } = world;
        // A clock that advances with every commit, and only then: there are finitely many states,
        // and a reader that reads it too early is still detected.
        let cursor_at = self.geometry.control_offset(0) + ring::CURSOR;
        let mut clock = || {
            let cursor = memory.load(cursor_at, Load::Relaxed).unwrap();
            cursor & !abi::CURSOR_SLACK_MASK
        };
        let before = (clock(), world.lost);
        writers[index].step(memory, &mut clock).unwrap();
        let after = clock();
        match writers[index].outcome() {
            Some(Outcome::LostFull | Outcome::LostTooBig) => world.lost += 1,
            Some(Outcome::Busy) => world.busy += 1,
            _ => {}
        }
        world.committed = before != (after, world.lost);
    }

    /// All states that can follow.
    fn successors(&self, world: &World) -> Result<Vec<World>, String> {
        let fork = |world: &World| {
            let memory = Words(Rc::new(RefCell::new(world.memory.0.borrow().clone())));
            World { memory, ..world.clone() }
        };
        let mut next = Vec::new();
        let running = world.running;
        let is_running = world.writers[running].is_writing();
        if is_running {
            let mut one = fork(world);
            self.step(&mut one);
            next.push(one);
        }
        for other in 0..world.writers.len() {
            if other == running && is_running {
                continue;
            }
            let nested = self.signals && other > running;
            let resumes = world.writers[other].is_writing();
            let switches = if self.signals {
                // A handler runs to its end before the interrupted code continues.
                (nested && !resumes) || (!is_running && other <= running)
            } else {
                true
            };
            if !switches {
                continue;
            }
            let mut one = fork(world);
            if is_running {
                // Also a signal handler counts: it takes the CPU in the middle of a record.
                if one.preemptions == self.preemptions_max {
                    continue;
                }
                one.preemptions += 1;
                one.writers[running].preempt();
            }
            one.running = other;
            if resumes || self.start_next(&mut one, other) || other < running {
                next.push(one);
            }
        }
        if self.deaths && is_running && !self.signals {
            let mut one = fork(world);
            one.dead[running] = true;
            one.left[running] = 0;
            // Never finishes: forgotten in the middle.
            one.writers[running] = Writer::new(&self.geometry, 0, 1, running as u32 + 1, self.mode);
            if let Some(alive) = (0..one.dead.len()).find(|index| !one.dead[*index]) {
                one.running = alive;
                next.push(one);
            }
        }
        for open_part in [false, true] {
            if !world.committed {
                break;
            }
            let mut one = fork(world);
            if self.read(&mut one, open_part)? {
                next.push(one);
            }
        }
        Ok(next)
    }

    fn check_end(&mut self, world: &World) -> Result<(), String> {
        self.ends += 1;
        let mut world = world.clone();
        while self.read(&mut world, true)? {}
        let control = self.geometry.control_offset(0);
        let counted = world.memory.load(control + ring::LOST_FULL, Load::Relaxed).unwrap();
        if counted != world.lost {
            return Err(format!("lost {} but counted {counted}", world.lost));
        }
        // A reader that started now would continue from the reported counts of the last released
        // packet: never from more than was lost, and from nothing before the first.
        let word = |offset| world.memory.load(control + offset, Load::Relaxed).unwrap();
        let (told, below) = (word(ring::TOLD_FULL), word(ring::TOLD_BELOW));
        if below != word(ring::CONSUMED) || told > counted || below == 0 && told != 0 {
            return Err(format!("{told} of {counted} lost events told below packet {below}"));
        }
        let all = u64::from(self.events_each) * world.writers.len() as u64;
        let accounted = world.seen.events + world.lost + world.busy;
        let died = world.dead.iter().any(|dead| *dead);
        let exact = self.mode == RingMode::Discard && !died;
        if exact && accounted != all {
            return Err(format!("{all} begun, {accounted} accounted for"));
        }
        if accounted > all {
            return Err(format!("{all} begun, but {accounted} accounted for"));
        }
        Ok(())
    }

    /// Explores everything, or says what went wrong.
    fn explore(&mut self, first: World) -> Result<(), String> {
        let mut stack = vec![first];
        while let Some(world) = stack.pop() {
            if !self.visited.insert(world.key()) {
                continue;
            }
            let next = self.successors(&world)?;
            let idle = !world.writers.iter().any(Writer::is_writing)
                && world.left.iter().zip(&world.dead).all(|(left, dead)| *left == 0 || *dead);
            if idle {
                self.check_end(&world)?;
            }
            stack.extend(next);
        }
        Ok(())
    }
}

struct Scenario {
    kind: RingKind,
    mode: RingMode,
    writers: u32,
    events_each: u32,
    payload_bytes: u32,
    preemptions_max: u32,
    signals: bool,
    deaths: bool,
    busy_mark: BusyMark,
}

fn run(scenario: &Scenario) -> (Result<(), String>, usize, u64) {
    let geometry = Geometry::for_model(scenario.kind, PACKET_BYTES, PACKETS);
    let memory = Words::new(&geometry);
    let mode = scenario.mode;
    let writer = |index: u32| {
        let tid = if scenario.signals { 1 } else { index + 1 };
        Writer::new(&geometry, 0, 1, tid, mode).with_busy_mark(scenario.busy_mark)
    };
    let count = scenario.writers as usize;
    let reader = RingReader::new(&memory, geometry, 0, ReadPolicy::Consume, mode).unwrap();
    let first = World {
        memory,
        writers: (0..scenario.writers).map(writer).collect(),
        left: vec![scenario.events_each; count],
        running: 0,
        dead: vec![false; count],
        reader,
        seen: Seen::default(),
        lost: 0,
        busy: 0,
        preemptions: 0,
        committed: false,
    };
    let mut model = Model {
        geometry,
        mode,
        signals: scenario.signals,
        deaths: scenario.deaths,
        payload_bytes: scenario.payload_bytes,
        events_each: scenario.events_each,
        preemptions_max: scenario.preemptions_max,
        visited: HashSet::new(),
        ends: 0,
    };
    let result = model.explore(first);
    (result, model.visited.len(), model.ends)
}

fn check(name: &str, scenario: &Scenario) {
    let (result, states, ends) = run(scenario);
    println!("{name}: {states} states, {ends} ends");
    result.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(states > 500 && ends > 10, "{name}: {states} states, {ends} ends");
}

const PER_CPU: Scenario = Scenario {
    kind: RingKind::PerCpu,
    mode: RingMode::Discard,
    writers: 2,
    events_each: 2,
    payload_bytes: 29,
    preemptions_max: 2,
    signals: false,
    deaths: false,
    busy_mark: BusyMark::BeforeCursor,
};

#[test]
fn two_threads_on_one_cpu_discard() {
    check("per CPU, discard", &PER_CPU);
}

#[test]
fn two_threads_on_one_cpu_overwrite() {
    let mode = RingMode::Overwrite;
    check("per CPU, overwrite", &Scenario { mode, ..PER_CPU });
}

#[test]
fn two_threads_of_which_any_may_die_at_any_store() {
    for mode in [RingMode::Discard, RingMode::Overwrite] {
        check("per CPU, deaths", &Scenario { mode, deaths: true, ..PER_CPU });
    }
}

#[test]
fn a_packet_per_record_fills_the_ring() {
    // 88 bytes fill a packet after its WRITER record: every event opens one.
    for mode in [RingMode::Discard, RingMode::Overwrite] {
        let scenario = Scenario { mode, payload_bytes: 88, preemptions_max: 1, ..PER_CPU };
        check("per CPU, a packet per record", &scenario);
    }
}

#[test]
fn a_thread_and_its_signal_handler() {
    for mode in [RingMode::Discard, RingMode::Overwrite] {
        for payload_bytes in [29, 88] {
            let kind = RingKind::PerThread;
            let scenario = Scenario { kind, mode, signals: true, payload_bytes, ..PER_CPU };
            check("per thread, signals", &scenario);
        }
    }
}

#[test]
fn marking_after_the_cursor_was_read_is_found_to_be_wrong() {
    // A handler that comes between the reading and the mark writes a record that its thread
    // then writes over. The model has to find it, or it could find nothing.
    let scenario = Scenario {
        kind: RingKind::PerThread,
        signals: true,
        busy_mark: BusyMark::AfterCursor,
        ..PER_CPU
    };
    let (result, _, _) = run(&scenario);
    let error = result.expect_err("the model finds nothing");
    assert!(error.contains("accounted") || error.contains("went back"), "{error}");
}
