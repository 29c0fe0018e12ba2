// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sums of durations by thread and kind of span.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::OfThread;

/// Threads and kinds below these numbers are stored in a dense table: at most 96 MiB.
const THREADS: usize = 1 << 14;
const KINDS: usize = 128;
/// Durations of a thread that are added in one batch. The sums of thousands of threads and many kinds do
/// not fit a cache, but appending to a list touches one cache line.
const LOG: usize = 128;

/// Durations by thread and kind, both small numbers ([`crate::Numbering`]).
///
/// Cost: constant. Memory: proportional to threads and kinds up to a limit, then to the pairs that occur.
#[derive(Debug, Default)]
pub struct Credits {
    near: Vec<Near>,
    far: HashMap<(u32, u32), OfThread, RandomState>,
}

#[derive(Debug, Default)]
struct Near {
    /// Kinds and nanoseconds that are not yet added.
    log: Vec<(u32, u64)>,
    kinds: Vec<OfThread>,
}

impl Near {
    #[inline]
    fn push(&mut self, kind: u32, nanos: u64) {
        self.log.push((kind, nanos));
        if self.log.len() >= LOG {
            self.add_up();
        }
    }

    #[cold]
    fn add_up(&mut self) {
        for (kind, nanos) in self.log.drain(..) {
            let index = kind as usize;
            if index >= self.kinds.len() {
                self.kinds.resize(index + 1, OfThread::default());
            }
            self.kinds[index].add(nanos);
        }
    }
}

impl OfThread {
    fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.total += u128::from(nanos);
        self.max = self.max.max(nanos);
    }
}

impl Credits {
    /// Adds a duration of a thread.
    #[inline]
    pub fn add(&mut self, thread: u32, kind: u32, nanos: u64) {
        match self.near.get_mut(thread as usize) {
            Some(near) if (kind as usize) < KINDS => near.push(kind, nanos),
            _ => self.add_elsewhere(thread, kind, nanos),
        }
    }

    #[cold]
    fn add_elsewhere(&mut self, thread: u32, kind: u32, nanos: u64) {
        let index = thread as usize;
        if index < THREADS && (kind as usize) < KINDS {
            self.near.resize_with(self.near.len().max(index + 1), Near::default);
            self.near[index].push(kind, nanos);
        } else {
            self.far.entry((thread, kind)).or_default().add(nanos);
        }
    }

    /// Takes all sums as (thread, kind, sum), by thread, then by kind.
    pub fn take(&mut self) -> Vec<(u32, u32, OfThread)> {
        let (near, far) = (std::mem::take(&mut self.near), std::mem::take(&mut self.far));
        let rows = (0..).zip(near).flat_map(|(thread, mut near)| {
            near.add_up();
            (0..).zip(near.kinds).map(move |(kind, of)| (thread, kind, of))
        });
        let far = far.into_iter().map(|((thread, kind), of)| (thread, kind, of));
        let mut all: Vec<_> = rows.chain(far).filter(|(.., of)| of.count > 0).collect();
        all.sort_unstable_by_key(|(thread, kind, _)| (*thread, *kind));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far_are_counted_alike() {
        let mut credits = Credits::default();
        let threads = [0, 5, THREADS as u32 - 1, THREADS as u32, u32::MAX];
        let kinds = [0, 3, KINDS as u32 - 1, KINDS as u32, u32::MAX];
        for nanos in [7, 2, 9] {
            for thread in threads {
                kinds.iter().for_each(|&kind| credits.add(thread, kind, nanos));
            }
        }
        let of = OfThread { count: 3, total: 18, max: 9 };
        let pairs = threads.iter().flat_map(|t| kinds.iter().map(move |k| (*t, *k, of)));
        assert_eq!(credits.take(), pairs.collect::<Vec<_>>());
        assert_eq!(credits.take(), []);
    }
}
