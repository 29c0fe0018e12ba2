// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Adds activities to a live session as they begin and end.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_lanes::{Gathers, Growing, Interval, Lanes, NONE, Opened, PointRef, RowKind};
use lateralis_script::{End, Step};

use super::found::{FOUND_MAX, Telling, Told, key, point};
use super::places::Places;
use crate::answer::Problem;
use crate::session::lock;

/// Limit of memory for activities, separately for rows and for attributes, in bytes.
const BYTES_MAX: usize = 1 << 30;

/// An open activity.
pub struct Begun {
    pub opened: Option<Opened>,
    from: Option<PointRef>,
    number: u32,
}

/// Memory of an activity's attributes, in bytes.
pub fn bytes(told: &Told) -> usize {
    // An entry of the map, and the text of the key.
    64 + told.key.len()
}

/// Adds activities to rows while events are examined.
pub struct Round<'a> {
    pub growing: &'a mut Growing,
    pub begun: &'a mut HashMap<u64, Begun, RandomState>,
    pub telling: &'a Telling,
    pub next: &'a mut u32,
    pub count: &'a mut u64,
    pub bytes: &'a mut usize,
    pub names: &'a [String],
    pub places: &'a Places,
    pub lanes: &'a Lanes,
}

impl Round<'_> {
    /// Processes the begin or end of an activity.
    pub fn step(&mut self, step: Step<'_>) {
        match step {
            Step::Begins { number, kind, key: of, at } => {
                let told = self.tell(key(of), &at);
                let from = point(self.lanes, &at);
                let interval = Interval {
                    begin: at.time.0,
                    end: None,
                    name: kind as u32,
                    thread: told,
                    from,
                    to: None,
                    quality: 0,
                };
                let name = self.names.get(kind).map(String::as_str);
                let lane = self.places.lane(&at);
                let opened =
                    lane.and_then(|lane| self.growing.begins(lane, RowKind::Spans, name, interval));
                self.begun.insert(number, Begun { opened, from, number: told });
            }
            Step::Ends { number, activity } => {
                *self.count += 1;
                let begun = number.and_then(|number| self.begun.remove(&number));
                let (opened, from, told) = match begun {
                    Some(Begun { opened, from, number }) => (opened, from, number),
                    None => {
                        let told = self.tell(key(&activity.key), &activity.begin);
                        (None, point(self.lanes, &activity.begin), told)
                    }
                };
                let interval = Interval {
                    begin: activity.begin.time.0,
                    end: Some(activity.end.time.0),
                    name: activity.kind as u32,
                    thread: told,
                    from,
                    to: point(self.lanes, &activity.end),
                    quality: if activity.is_certain { 0 } else { 2 },
                };
                let since = i128::from(activity.end.time.0) - i128::from(self.growing.origin());
                if let Some((end, _)) = lock(self.telling).get_mut(&told) {
                    *end = u64::try_from(since).unwrap_or(0);
                }
                let name = self.names.get(activity.kind).map(String::as_str);
                match (opened, self.places.lane(&activity.begin)) {
                    (Some(opened), _) => self.growing.ends(opened, Some(interval)),
                    (None, Some(lane)) => {
                        self.growing.interval(lane, RowKind::Spans, name, interval);
                    }
                    (None, None) => {}
                }
            }
        }
    }

    /// Stores attributes of an activity, and returns its number.
    fn tell(&mut self, key: String, begin: &End) -> u32 {
        let number = *self.next;
        *self.next = if number + 1 == NONE { 0 } else { number + 1 };
        let told = Told { key, thread: self.places.thread(begin) };
        *self.bytes += bytes(&told);
        lock(self.telling).insert(number, (u64::MAX, told));
        number
    }

    /// Checks the limits of number and memory.
    pub fn bound(&self) -> Result<(), Problem> {
        let advice = "have it find fewer, or filter first";
        let is_more = |what| Err(Problem::new(what, "script", advice));
        if lock(self.telling).len() > FOUND_MAX {
            return is_more("more than 4 million activities");
        }
        if *self.bytes > BYTES_MAX || self.growing.bytes() > BYTES_MAX {
            return is_more("activities that take more than 1 GiB");
        }
        Ok(())
    }
}
