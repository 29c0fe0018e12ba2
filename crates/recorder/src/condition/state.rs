// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of tests between events: sequences, times of heartbeats, counts over time, counters.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Compare;

/// Maximum number of time cells with events before they are evaluated.
const CELLS_MAX: usize = 1 << 16;
/// Number of cells in the time of a test.
const CELLS_OF_LIMIT: u64 = 16;
/// Number of cells in the window of a rate.
const CELLS_OF_WINDOW: u64 = 10;
/// Maximum number of presence intervals that a silence is compared with.
const PRESENCE_MAX: usize = 64;
/// Maximum number of keys of a counter.
const KEYS_MAX: usize = 4096;

/// Events counted in cells of time; the first and the last time in each are exact.
#[derive(Debug)]
struct Cells {
    ticks: u64,
    cells: BTreeMap<u64, (u64, u64, u64)>,
    /// Cells before this one have been evaluated.
    judged: u64,
}

impl Cells {
    fn new(ticks: u64) -> Cells {
        Cells { ticks: ticks.max(1), cells: BTreeMap::new(), judged: 0 }
    }

    /// Returns false if the event is too late, or if there is no room.
    fn add(&mut self, time: u64) -> bool {
        let cell = time / self.ticks;
        if cell < self.judged || self.cells.len() >= CELLS_MAX && !self.cells.contains_key(&cell) {
            return false;
        }
        let (count, first, last) = self.cells.entry(cell).or_insert((0, time, time));
        *count += 1;
        *first = time.min(*first);
        *last = time.max(*last);
        true
    }

    /// Removes the first cell and returns its first and last time, if both are before `to`.
    fn pop(&mut self, to: u64) -> Option<(u64, u64)> {
        let entry = self.cells.first_entry()?;
        let (_, first, last) = *entry.get();
        if last > to {
            return None;
        }
        entry.remove();
        Some((first, last))
    }

    /// The first time of the first cell, if it is before `to`.
    fn first(&self, to: u64) -> Option<u64> {
        let (_, (_, first, _)) = self.cells.first_key_value()?;
        Some(*first).filter(|first| *first <= to)
    }
}

/// A silence longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Silence {
    /// The last event before it, or the start.
    pub(super) since: u64,
    /// The next event, or the current time if there is none.
    pub(super) until: u64,
    pub(super) has_ended: bool,
}

/// `missing(EVENT) for TIME`.
#[derive(Debug)]
pub(super) struct Heartbeat {
    limit: u64,
    cells: Cells,
    last: Option<u64>,
    /// Start of the last reported silence.
    told: Option<u64>,
    /// Intervals in which a program that could record the event was present; `None` if irrelevant.
    presence: Option<VecDeque<(u64, u64)>>,
    /// The last presence continues.
    is_present: bool,
}

impl Heartbeat {
    pub(super) fn new(limit: u64) -> Heartbeat {
        let cells = Cells::new(limit / CELLS_OF_LIMIT);
        Heartbeat { limit, cells, last: None, told: None, presence: None, is_present: false }
    }

    pub(super) fn add(&mut self, time: u64) -> bool {
        self.cells.add(time)
    }

    /// Sets whether a program that could record the event is present at `now`. Only silence during a
    /// presence counts, as far as it was observed: not before a program starts, nor after it ends.
    pub(super) fn expect(&mut self, now: u64, is_present: bool) {
        let was_present = std::mem::replace(&mut self.is_present, is_present);
        let presence = self.presence.get_or_insert_default();
        match presence.back_mut() {
            Some((_, until)) if is_present && was_present => *until = now.max(*until),
            _ if is_present => presence.push_back((now, now)),
            _ => {}
        }
        if presence.len() > PRESENCE_MAX {
            presence.pop_front();
        }
    }

    /// Silences until `to`; the time before `start` does not count.
    pub(super) fn judge(&mut self, start: u64, to: u64) -> Vec<Silence> {
        let mut silences = Vec::new();
        self.last.get_or_insert(start);
        while let Some((first, newest)) = self.cells.pop(to) {
            self.happened(first, newest, &mut silences);
        }
        // Of a cell that extends beyond `to`, the first time is known: a silence is reported when it
        // ends, not when the cell does.
        if let Some(first) = self.cells.first(to) {
            self.happened(first, first, &mut silences);
        }
        self.cells.judged = to / self.cells.ticks;
        self.silent(to, false, &mut silences);
        silences
    }

    fn happened(&mut self, first: u64, newest: u64, silences: &mut Vec<Silence>) {
        self.silent(first, true, silences);
        let last = self.last.map_or(newest, |last| last.max(newest));
        self.last = Some(last);
        // Older presences no longer matter.
        if let Some(presence) = &mut self.presence {
            while presence.len() > 1 && presence.front().is_some_and(|(_, end)| *end < last) {
                presence.pop_front();
            }
        }
    }

    /// No event from the last one to `until`.
    fn silent(&mut self, until: u64, has_ended: bool, silences: &mut Vec<Silence>) {
        let last = self.last.unwrap_or(until);
        let always = VecDeque::from([(0, u64::MAX)]);
        for (begin, end) in self.presence.as_ref().unwrap_or(&always) {
            let (since, to) = (last.max(*begin), until.min(*end));
            if to.saturating_sub(since) > self.limit && self.told != Some(since) {
                self.told = Some(since);
                silences.push(Silence { since, until: to, has_ended: has_ended && to == until });
            }
        }
    }
}

/// `rate(EVENT) > N/s over TIME`.
#[derive(Debug)]
pub(super) struct Rate {
    compare: Compare,
    /// Limit in events per window.
    limit: f64,
    cells: Cells,
    window: VecDeque<u64>,
    is_true: bool,
    has_begun: bool,
}

impl Rate {
    pub(super) fn new(compare: Compare, events_in_window: f64, window_ticks: u64) -> Rate {
        Rate {
            compare,
            limit: events_in_window,
            cells: Cells::new(window_ticks / CELLS_OF_WINDOW),
            window: VecDeque::new(),
            is_true: false,
            has_begun: false,
        }
    }

    pub(super) fn add(&mut self, time: u64) -> bool {
        self.cells.add(time)
    }

    /// Length of the window in ticks.
    pub(super) fn window_ticks(&self) -> u64 {
        self.cells.ticks * CELLS_OF_WINDOW
    }

    /// Times until `to` at which the test became true, and the number of events in the window then.
    pub(super) fn judge(&mut self, start: u64, to: u64) -> Vec<(u64, u64)> {
        let mut moments = Vec::new();
        if !self.has_begun {
            self.has_begun = true;
            self.cells.judged = start / self.cells.ticks + 1;
            let judged = self.cells.judged;
            self.cells.cells.retain(|cell, _| *cell >= judged);
        }
        let end = to / self.cells.ticks;
        while self.cells.judged < end {
            let cell = self.cells.judged;
            self.cells.judged += 1;
            let count = self.cells.cells.remove(&cell).map_or(0, |(count, _, _)| count);
            self.window.push_back(count);
            if self.window.len() > CELLS_OF_WINDOW as usize {
                self.window.pop_front();
            }
            let is_whole = self.window.len() == CELLS_OF_WINDOW as usize;
            let sum: u64 = self.window.iter().sum();
            let is_upper = matches!(self.compare, Compare::Greater | Compare::AtLeast);
            // For an incomplete window only a lower bound is known.
            let is_true =
                (is_whole || is_upper) && self.compare.holds((sum as f64).partial_cmp(&self.limit));
            if is_true && !self.is_true {
                moments.push((self.cells.judged.saturating_mul(self.cells.ticks), sum));
            }
            self.is_true = is_true;
        }
        moments
    }
}

/// `sequence(A, B, C) within TIME`: for each prefix of the sequence, the start of the youngest one.
#[derive(Debug)]
pub(super) struct Sequence {
    within: u64,
    began: Vec<Option<u64>>,
}

impl Sequence {
    pub(super) fn new(parts: usize, within: u64) -> Sequence {
        Sequence { within, began: vec![None; parts.max(1)] }
    }

    /// Start of the sequence, if this event completes it in time.
    pub(super) fn add(&mut self, part: usize, time: u64) -> Option<u64> {
        let began = match part {
            0 => Some(time),
            _ => *self.began.get(part - 1)?,
        }?;
        if time.saturating_sub(began) > self.within {
            return None;
        }
        if part + 1 < self.began.len() {
            self.began[part] = Some(began);
            return None;
        }
        self.began.fill(None);
        Some(began)
    }
}

/// `counter(NAME) > N`: the keys for which it is true.
#[derive(Debug)]
pub(super) struct Levels {
    compare: Compare,
    limit: f64,
    states: HashMap<String, bool>,
}

impl Levels {
    pub(super) fn new(compare: Compare, limit: f64) -> Levels {
        Levels { compare, limit, states: HashMap::new() }
    }

    /// Whether it became true; `None` if there is no room for the key.
    pub(super) fn set(&mut self, key: String, value: f64) -> Option<bool> {
        let is_true = self.compare.holds(value.partial_cmp(&self.limit));
        if self.states.len() >= KEYS_MAX && !self.states.contains_key(&key) {
            return None;
        }
        let before = self.states.insert(key, is_true).unwrap_or(false);
        Some(is_true && !before)
    }
}
