// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches on several cores.
//!
//! Packets are independent, results must come in their order, and nothing else
//! of a thread pool is needed: so scoped threads that take the next unit from a
//! counter, and a window that lets none run far ahead of the slowest.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, PoisonError};

use lateralis_model::{Damage, StreamIndex, Wanted};

use super::Batch;
use super::batches::{Batches, Unit};
use crate::reader::{Reader, Stream};

/// Bytes of packets that are one piece of work: large enough that handing it out
/// costs nothing beside it.
const UNIT_BYTES: u64 = 1 << 19;

/// In traces so small that pieces of that size would be few, pieces are smaller: this number of
/// them end at about the same time on all cores, each large enough to be worth scheduling.
const PIECES: u64 = 32;
const LEAST_PIECE_BYTES: u64 = 1 << 16;

/// Bytes for which it is worth to start another thread. Starting one, with memory that has never
/// been touched, takes about 0.3 ms, in which 0.5 MB are decoded.
const THREAD_BYTES: u64 = 1 << 20;

/// Results that may wait for an earlier one, per thread.
const WINDOW: usize = 4;

/// Reads a trace on several threads.
///
/// ```
/// # use lateralis_ctf::{Reader, StreamFile};
/// # use lateralis_model::Wanted;
/// # let metadata = b"/* CTF 1.8 */
/// #     trace { major = 1; minor = 8; byte_order = le; };
/// #     event { name = greeting; fields := struct { string text; }; };";
/// # let file = StreamFile { name: "stream".into(), bytes: Box::new(b"a\0b\0".to_vec()) };
/// # let reader = Reader::new(metadata, vec![file]);
/// let wanted = Wanted::counts(reader.trace());
/// let mut events = 0;
/// let damage = reader.parallel(&wanted, 2.try_into().unwrap()).fold(
///     |sum: &mut usize, batch| *sum += batch.len(),
///     |_stream, sum| events += sum,
/// );
/// assert_eq!((events, damage.len()), (2, 0));
/// ```
pub struct Parallel<'r, 'w> {
    reader: &'r Reader,
    wanted: &'w Wanted,
    threads: NonZeroUsize,
    at_any_size: bool,
}

struct Shared<T> {
    /// Pieces handed out.
    taken: usize,
    /// Pieces whose results have been passed on.
    passed: usize,
    done: BTreeMap<usize, (T, Vec<Damage>)>,
    /// A thread has panicked: no thread waits any more.
    broken: bool,
}

impl<'r, 'w> Parallel<'r, 'w> {
    pub(crate) fn new(reader: &'r Reader, wanted: &'w Wanted, threads: NonZeroUsize) -> Self {
        Self { reader, wanted, threads, at_any_size: false }
    }

    /// Starts all threads for however little: that they agree can be shown with any trace.
    #[must_use]
    pub fn at_any_size(self) -> Self {
        Self { at_any_size: true, ..self }
    }

    /// Folds the batches of every piece of work into a value of its own with `fold`, on any thread,
    /// and passes the values on to `pass` in the order of streams and packets, on this thread,
    /// which folds, too. A piece is half a megabyte of packets of one stream, less of small traces,
    /// or the whole stream if its packets do not contain their time. Pieces do not depend on the
    /// number of threads. Returns the damage inside packets.
    ///
    /// Cost: memory of one batch per thread, and of some values per thread that wait to be passed
    /// on. No more threads than megabytes, because starting one costs more than it gains.
    pub fn fold<T: Default + Send>(
        &self,
        fold: impl Fn(&mut T, &Batch<'r>) + Sync,
        mut pass: impl FnMut(StreamIndex, T),
    ) -> Vec<Damage> {
        let streams = self.reader.streams().iter();
        let packets = streams.flat_map(|stream| &stream.packets);
        let bytes: u64 = packets.map(|found| found.packet.size_bytes).sum();
        let smaller;
        let units = match bytes / PIECES {
            UNIT_BYTES.. => self.reader.units(),
            part => {
                smaller = units(self.reader, part.max(LEAST_PIECE_BYTES));
                &smaller
            }
        };
        let worth = match self.at_any_size {
            true => usize::MAX,
            false => usize::try_from(bytes / THREAD_BYTES).unwrap_or(usize::MAX),
        };
        let threads = self.threads.get().min(units.len()).min(worth).max(1);
        let mut damage = Vec::new();
        if threads == 1 {
            let mut batches = Batches::of_units(self.reader, self.wanted, Vec::new());
            for unit in units {
                let (value, mut found) = piece(&mut batches, unit.clone(), &fold);
                damage.append(&mut found);
                pass(unit.stream, value);
            }
            return damage;
        }
        let shared = Mutex::new(Shared {
            taken: 0,
            passed: 0,
            done: BTreeMap::<usize, (T, Vec<Damage>)>::new(),
            broken: false,
        });
        let changed = Condvar::new();
        let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = |guard| changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        let work = || {
            let _breaks = Breaks { shared: &shared, changed: &changed };
            let mut batches = Batches::of_units(self.reader, self.wanted, Vec::new());
            loop {
                let mut guard = lock();
                while !guard.broken && guard.taken >= guard.passed + WINDOW * threads {
                    guard = wait(guard);
                }
                let next = guard.taken;
                if guard.broken || next >= units.len() {
                    return;
                }
                guard.taken += 1;
                drop(guard);
                let result = piece(&mut batches, units[next].clone(), &fold);
                lock().done.insert(next, result);
                changed.notify_all();
            }
        };
        std::thread::scope(|scope| {
            let _breaks = Breaks { shared: &shared, changed: &changed };
            for _ in 1..threads {
                scope.spawn(work);
            }
            let mut batches = Batches::of_units(self.reader, self.wanted, Vec::new());
            let mut guard = lock();
            // Available values are passed on first, so that no thread waits for them.
            while guard.passed < units.len() && !guard.broken {
                let (index, next) = (guard.passed, guard.taken);
                if let Some((value, mut found)) = guard.done.remove(&index) {
                    guard.passed = index + 1;
                    drop(guard);
                    changed.notify_all();
                    damage.append(&mut found);
                    pass(units[index].stream, value);
                    guard = lock();
                } else if next < units.len() && next < index + WINDOW * threads {
                    guard.taken = next + 1;
                    drop(guard);
                    let result = piece(&mut batches, units[next].clone(), &fold);
                    guard = lock();
                    guard.done.insert(next, result);
                } else {
                    // A panicking thread sets this, and the scope passes the panic on.
                    guard = wait(guard);
                }
            }
        });
        damage
    }
}

/// Wakes all others when a thread panics.
struct Breaks<'a, T> {
    shared: &'a Mutex<Shared<T>>,
    changed: &'a Condvar,
}

impl<T> Drop for Breaks<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.lock().unwrap_or_else(PoisonError::into_inner).broken = true;
            self.changed.notify_all();
        }
    }
}

fn piece<'r, T: Default>(
    batches: &mut Batches<'r, '_>,
    unit: Unit,
    fold: &impl Fn(&mut T, &Batch<'r>),
) -> (T, Vec<Damage>) {
    let mut value = T::default();
    batches.then(unit);
    while let Some(batch) = batches.next_batch() {
        fold(&mut value, batch);
    }
    (value, batches.take_damage())
}

/// The pieces of work of a trace, in the order of its streams.
pub(crate) fn parts_of(reader: &Reader) -> Vec<Unit> {
    units(reader, UNIT_BYTES)
}

/// Variant with a given number of bytes.
fn units(reader: &Reader, unit_bytes: u64) -> Vec<Unit> {
    let mut units = Vec::new();
    for (index, stream) in reader.streams().iter().enumerate() {
        let has_clock = reader.trace().stream_classes[stream.class as usize].clock.is_some();
        let stream_index = StreamIndex(index as u32);
        cut(stream, has_clock, unit_bytes, |packets| {
            units.push(Unit { stream: stream_index, packets })
        });
    }
    units
}

/// Positions at which the packets of a stream can be split: before a packet that contains its start
/// time, because its first event may contain only the low bits.
fn cut(
    stream: &Stream,
    has_clock: bool,
    unit_bytes: u64,
    mut piece: impl FnMut(std::ops::Range<usize>),
) {
    let (mut first, mut bytes) = (0, 0);
    for (index, found) in stream.packets.iter().enumerate() {
        let free = !has_clock || found.packet.begin.is_some();
        if bytes >= unit_bytes && free {
            piece(first..index);
            (first, bytes) = (index, 0);
        }
        bytes += found.packet.size_bytes;
    }
    if first < stream.packets.len() {
        piece(first..stream.packets.len());
    }
}
