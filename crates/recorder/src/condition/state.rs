// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What tests remember between events: sequences, times of heartbeats, counts along time, levels.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Compare;

/// Most pieces of time that events are counted in before they are judged.
const CELLS_MAX: usize = 1 << 16;
/// Pieces that the time of a test is cut into.
const CELLS_OF_LIMIT: u64 = 16;
/// Pieces that the window of a rate is cut into.
const CELLS_OF_WINDOW: u64 = 10;
/// Most times at which programs came and went that a silence is compared with.
const PRESENCE_MAX: usize = 64;
/// Most keys of a counter.
const KEYS_MAX: usize = 4096;

/// Events counted in pieces of time: what came first and last in each is exact.
#[derive(Debug)]
struct Cells {
    ticks: u64,
    cells: BTreeMap<u64, (u64, u64, u64)>,
    /// Pieces before this are judged.
    judged: u64,
}

impl Cells {
    fn new(ticks: u64) -> Cells {
        Cells { ticks: ticks.max(1), cells: BTreeMap::new(), judged: 0 }
    }

    /// False: it comes too late, or there is no room.
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

    /// Takes the first and the last time of the first piece if both are over at `to`.
    fn pop(&mut self, to: u64) -> Option<(u64, u64)> {
        let entry = self.cells.first_entry()?;
        let (_, first, last) = *entry.get();
        if last > to {
            return None;
        }
        entry.remove();
        Some((first, last))
    }

    /// The first time of the first piece, if it is over at `to`.
    fn first(&self, to: u64) -> Option<u64> {
        let (_, (_, first, _)) = self.cells.first_key_value()?;
        Some(*first).filter(|first| *first <= to)
    }
}

/// A silence that was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Silence {
    /// The last event before it, or the beginning.
    pub(super) since: u64,
    /// The next event, or none until this moment.
    pub(super) until: u64,
    pub(super) has_ended: bool,
}

/// `missing(EVENT) for TIME`.
#[derive(Debug)]
pub(super) struct Heartbeat {
    limit: u64,
    cells: Cells,
    last: Option<u64>,
    /// Beginning of the silence that was told last.
    told: Option<u64>,
    /// When somebody was there who could have made the event; none if that does not matter.
    presence: Option<VecDeque<(u64, u64)>>,
    /// The last presence goes on.
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

    /// Notes whether somebody is there at `now` who could make the event. Silence counts only while
    /// somebody is, as far as that was seen: not before a program, not behind it.
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

    /// Silences until `to`; the time before `start` is none.
    pub(super) fn judge(&mut self, start: u64, to: u64) -> Vec<Silence> {
        let mut silences = Vec::new();
        self.last.get_or_insert(start);
        while let Some((first, newest)) = self.cells.pop(to) {
            self.happened(first, newest, &mut silences);
        }
        // Of a piece that goes on behind `to`, the beginning is known: a silence is told when it is
        // over, not when the piece is.
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
        // Who is gone for longer than that matters no more.
        if let Some(presence) = &mut self.presence {
            while presence.len() > 1 && presence.front().is_some_and(|(_, end)| *end < last) {
                presence.pop_front();
            }
        }
    }

    /// Nothing happened from the last event to `until`.
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
    /// Events in a window.
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

    /// Ticks of the window.
    pub(super) fn window_ticks(&self) -> u64 {
        self.cells.ticks * CELLS_OF_WINDOW
    }

    /// Moments until `to` at which it became true, and events in the window then.
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
            // Of a window that is not whole yet only the least is known.
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

/// `sequence(A, B, C) within TIME`: of each beginning of the sequence, when the youngest began.
#[derive(Debug)]
pub(super) struct Sequence {
    within: u64,
    began: Vec<Option<u64>>,
}

impl Sequence {
    pub(super) fn new(parts: usize, within: u64) -> Sequence {
        Sequence { within, began: vec![None; parts.max(1)] }
    }

    /// When it began, if it is complete in time with this event.
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

/// `counter(NAME) > N`: for which keys it is true.
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
