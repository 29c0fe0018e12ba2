// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a walk found, by class: readings of the clock, and where to read on.

use crate::plan::MARKS_TOGETHER;

/// Room that buckets keep: classes take turns, and each might once have filled a
/// batch. 16 MiB.
const KEPT_ROOM: usize = 1 << 20;

/// One bucket for each class of the stream class.
#[derive(Default)]
pub(super) struct Buckets {
    pub classes: Vec<Bucket>,
    /// Ticks and marks that all have room for.
    room: usize,
}

/// The events of one class.
#[derive(Default)]
pub(super) struct Bucket {
    /// Events that have columns.
    len: usize,
    /// As long as `len` is less, there is room for an event that is wanted. Never more
    /// than there are `ticks`, and `starts`.
    open: usize,
    /// Readings of the clock. The first `len` are set, here and in `starts`.
    ticks: Vec<u64>,
    /// Where events that are a run begin.
    starts: Vec<u32>,
    /// Marks of other events, as many of each as its class has; and [`MARKS_TOGETHER`] more.
    marks: Vec<u32>,
    /// Events that have no columns: rows, or only counted.
    pub others: u64,
    /// Of those that are only counted: the least and the greatest reading of the clock.
    first: u64,
    last: u64,
    /// How much of the buckets' room is this one's.
    room: usize,
}

impl Buckets {
    /// Empties those that were used; then there are as many as classes.
    pub fn begin(&mut self, used: &[u32], classes: usize) {
        for &class in used {
            let bucket = &mut self.classes[class as usize];
            (bucket.len, bucket.open, bucket.others) = (0, 0, 0);
            let room = bucket.ticks.len() + bucket.marks.len();
            self.room += room - bucket.room;
            bucket.room = room;
        }
        if self.room > KEPT_ROOM || self.classes.len() != classes {
            self.room = 0;
            self.classes.clear();
            self.classes.resize_with(classes, Bucket::default);
        }
    }
}

impl Buckets {
    /// What all of this takes.
    pub fn bytes(&self) -> usize {
        let of = |bucket: &Bucket| {
            let marks = bucket.starts.capacity() + bucket.marks.capacity();
            bucket.ticks.capacity() * size_of::<u64>() + marks * size_of::<u32>()
        };
        self.classes.capacity() * size_of::<Bucket>() + self.classes.iter().map(of).sum::<usize>()
    }
}

impl Bucket {
    /// Number of events that have columns.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Number of all events.
    pub fn count(&self) -> u64 {
        self.len as u64 + self.others
    }

    pub fn ticks(&self) -> &[u64] {
        &self.ticks[..self.len]
    }

    /// Where events begin that are a run; worthless if they are none.
    pub fn starts(&self) -> &[u32] {
        &self.starts[..self.len]
    }

    /// Counts an event that has no columns.
    pub fn count_other(&mut self, ticks: u64) {
        self.count_many(1, [ticks, ticks]);
    }

    /// Counts events that have no columns: how many, and the least and the greatest reading of
    /// the clock.
    pub fn count_many(&mut self, count: u64, [first, last]: [u64; 2]) {
        let is_first = self.others == 0;
        self.first = if is_first { first } else { self.first.min(first) };
        self.last = if is_first { last } else { self.last.max(last) };
        self.others += count;
    }

    /// Counts one that is not the first, nor earlier than that.
    #[inline(always)]
    pub fn count_next(&mut self, ticks: u64) {
        self.last = self.last.max(ticks);
        self.others += 1;
    }

    /// The least and the greatest reading of the clock of those.
    pub fn ends(&self) -> [u64; 2] {
        [self.first, self.last]
    }

    /// Whether [`Bucket::push_open`] may follow.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.len < self.open
    }

    /// Makes room for a requested event and its marks, of at most `limit` events.
    #[cold]
    #[inline(never)]
    pub fn open(&mut self, marks: usize, limit: usize) {
        if self.len == self.ticks.len() {
            let room = (self.len * 2).max(64).min(limit).max(self.len + 1);
            self.ticks.resize(room, 0);
            self.starts.resize(room, 0);
        }
        let all = self.ticks.len() * marks + MARKS_TOGETHER;
        if marks > 0 && self.marks.len() < all {
            self.marks.resize(all, 0);
        }
        self.open = self.ticks.len();
    }

    /// Takes that back, so that the next event is looked at.
    pub fn close(&mut self) {
        self.open = 0;
    }

    /// The marks of the events, a fixed number for each.
    pub fn marks(&self, each: usize) -> &[u32] {
        self.marks.get(..self.len * each).unwrap_or(&[])
    }

    /// The marks from those of the next event on, a fixed number for each.
    #[inline(always)]
    pub fn next_marks(&mut self, each: usize) -> &mut [u32] {
        self.marks.get_mut(self.len * each..).unwrap_or(&mut [])
    }

    /// Counts many that are not the first, in the order of time.
    pub fn count_many_next(&mut self, count: usize, last: u64) {
        self.last = self.last.max(last);
        self.others += count as u64;
    }

    /// Times and positions of up to this number of events that may be added: see [`Bucket::add`].
    pub fn spare(&mut self, most: usize) -> (&mut [u64], &mut [u32]) {
        let end = self.open.min(self.len.saturating_add(most)).max(self.len);
        (&mut self.ticks[self.len..end], &mut self.starts[self.len..end])
    }

    /// Adds this number of events, which have been written there.
    pub fn add(&mut self, count: usize) {
        self.len += count.min(self.open.saturating_sub(self.len));
    }

    /// Adds an event to an open bucket: its time, and where it begins.
    ///
    /// # Safety
    /// The bucket [is open](Bucket::is_open).
    #[inline(always)]
    pub unsafe fn push_open(&mut self, ticks: u64, start: u32) {
        debug_assert!(self.is_open());
        let len = self.len;
        // SAFETY: `len < open`, and `open` is at most the length of both: it is set to
        // that of `ticks`, which grows together with `starts`, and neither shrinks.
        unsafe {
            *self.ticks.get_unchecked_mut(len) = ticks;
            *self.starts.get_unchecked_mut(len) = start;
        }
        self.len = len + 1;
    }
}
