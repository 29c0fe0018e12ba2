// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evaluates conditions during recording: consumes packets in any order and returns firings in the
//! order of time, up to a watermark.

use std::collections::VecDeque;

use lateralis_pleco::Schema;
use lateralis_pleco::schema::{Event, FieldType};
use lateralis_ring::abi;

use super::bind::{Bound, Says, looks_at, unknown};
use super::combine::{Combined, Moment};
use super::judge::{Fired, Judge, Outcome, Saying};
use super::names::Names;
use super::read::field;
use super::spans::RingId;
use super::{Condition, EventName, Term, Test};
use crate::classes::ClassTable;
use crate::source::Thread;
use crate::walk::Record;

/// Maximum number of facts waiting for the watermark: 2^18 of about 80 bytes are 20 MiB.
const FACTS_MAX: usize = 1 << 18;
/// Maximum number of firings returned by a step; beyond it only the last is returned, and the count.
const FIRINGS_MAX: usize = 4096;
/// Maximum number of loss intervals kept; beyond it the two oldest are merged.
const LOSSES_MAX: usize = 1024;

/// The value measured when a test fired.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measured {
    /// None: the event occurred.
    Nothing,
    /// A duration.
    Ticks {
        /// Length in ticks of the clock.
        ticks: u64,
        /// It has ended; otherwise it is a lower bound.
        is_over: bool,
    },
    /// Events per second.
    PerSecond(f64),
    /// Value of a counter.
    Value(f64),
}

/// A firing of a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// Sequence number of the firing, from 1.
    pub number: u64,
    /// Time at which the condition became true, in ticks: for a span, when it exceeded its limit.
    pub at: u64,
    /// Index of the condition.
    pub condition: usize,
    /// Text of the test, or of the operands of `and`.
    pub test: String,
    /// The measured value; for tests joined by `and`, the time from the first to the last.
    pub measured: Measured,
    /// The key of the span or counter.
    pub key: Option<String>,
    /// The thread that started it, if known.
    pub by: Option<Thread>,
    /// No loss could have changed it.
    pub is_certain: bool,
}

/// The end of a span that fired while it was open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanEnd {
    /// Number of its firing.
    pub number: u64,
    /// Its duration.
    pub ticks: u64,
}

/// Numbers of items that were not evaluated because a limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Events used by a test while too many were waiting for evaluation.
    pub facts_dropped: u64,
    /// Starts of spans while too many were open.
    pub spans_not_watched: u64,
    /// Values of counters with too many keys.
    pub keys_not_watched: u64,
    /// Events that arrived after their time had been evaluated.
    pub late_events: u64,
    /// Firings of one step that were only counted.
    pub firings_not_told: u64,
}

#[derive(Debug)]
struct Fact {
    time: u64,
    order: u64,
    test: usize,
    saying: Saying,
}

/// An operand of `or` at the outermost level.
#[derive(Debug)]
struct Alternative {
    text: String,
    condition: usize,
    /// `None` for a single test.
    combined: Option<Combined>,
}

/// Evaluates all conditions of a recording.
#[derive(Debug)]
pub struct Watch {
    tests: Vec<(String, Test)>,
    alternatives: Vec<Alternative>,
    /// The alternative of each test, by number.
    of_test: Vec<usize>,
    judges: Vec<Judge>,
    classes: Vec<Bound>,
    classes_version: Option<u64>,
    facts: Vec<Fact>,
    order: u64,
    /// Clock at the start.
    start: u64,
    judged: u64,
    losses: VecDeque<(u64, u64)>,
    names: Names,
    limits: Limits,
    fired: u64,
}

impl Watch {
    /// Starts at clock `start`. `ticks` converts nanoseconds to ticks of that clock.
    pub fn new(conditions: &[Condition], start: u64, ticks: &dyn Fn(u64) -> u64) -> Watch {
        let mut tests: Vec<(String, Test)> = Vec::new();
        let mut alternatives = Vec::new();
        let mut of_test = Vec::new();
        for (condition, one) in conditions.iter().enumerate() {
            let offset = tests.len();
            let first = alternatives.len();
            for (text, term) in &one.alternatives {
                let combined = Combined::new(term, offset, ticks);
                alternatives.push(Alternative { text: text.clone(), condition, combined });
            }
            for test in 0..one.tests.len() {
                let is_it = |(_, term): &(String, Term)| term.has(test);
                let at = one.alternatives.iter().position(is_it).unwrap_or(0);
                of_test.push(first + at);
            }
            tests.extend(one.tests.iter().cloned());
        }
        let judges = tests.iter().map(|(_, test)| Judge::new(test, ticks)).collect();
        Watch {
            tests,
            alternatives,
            of_test,
            judges,
            classes: Vec::new(),
            classes_version: None,
            facts: Vec::new(),
            order: 0,
            start,
            judged: start,
            losses: VecDeque::new(),
            names: Names::default(),
            limits: Limits::default(),
            fired: 0,
        }
    }

    /// Items not evaluated so far.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Clock at the start.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Number of firings so far.
    pub fn fired(&self) -> u64 {
        self.fired
    }

    /// Names in the conditions that no schema contains so far, one sentence each.
    pub fn unknown(&self, classes: &ClassTable) -> Vec<String> {
        let of = |(text, test): &(String, Test)| -> Vec<String> {
            let wrong = unknown(test, classes).into_iter();
            wrong.map(|what| format!("{text}: {what}")).collect()
        };
        self.tests.iter().flat_map(of).collect()
    }

    /// Whether a test uses an event of the schema.
    pub fn looks_at(&self, schema: &Schema, event: &Event) -> bool {
        self.tests.iter().any(|(_, test)| looks_at(test, schema, event))
    }

    /// Processes a sealed packet of a ring: `records` is its content after the header. The last
    /// record ends `slack` bytes before its end, and the first is not before `begin`.
    ///
    /// Cost: a step for each record, a few copies for each that a test uses.
    pub fn packet(
        &mut self,
        classes: &ClassTable,
        (stream_id, ring, begin): (u32, RingId, u64),
        records: &[u8],
        slack: u64,
    ) {
        if self.classes_version != Some(classes.version()) {
            self.classes = classes.classes().iter().map(|c| Bound::new(&self.tests, c)).collect();
            self.classes_version = Some(classes.version());
        }
        let Some(bound) = self.classes.get(stream_id as usize) else { return };
        let mut thread = None;
        for record in bound.plan.records(records, slack, begin) {
            if u32::from(record.id) < abi::INTERNAL_EVENT_COUNT {
                match record.id {
                    abi::ID_WRITER => thread = writer(records, &record),
                    abi::ID_THREAD_NAME => {
                        self.names.add(records.get(record.at..record.end), record.time);
                    }
                    _ => {}
                }
                continue;
            }
            let interest = bound.interests.get(usize::from(record.id)).and_then(Option::as_ref);
            let Some(interest) = interest else { continue };
            let bytes = &records[record.at..record.end];
            for (test, says) in &interest.says {
                if *says == Says::Happened {
                    self.judges[*test].happened(record.time, &mut self.limits);
                    continue;
                }
                let saying = saying(says, &interest.types, bytes, (thread, ring));
                let Some(saying) = saying else { continue };
                if self.facts.len() >= FACTS_MAX {
                    self.limits.facts_dropped += 1;
                    continue;
                }
                self.limits.late_events += u64::from(record.time < self.judged);
                self.order += 1;
                let (order, test) = (self.order, *test);
                self.facts.push(Fact { time: record.time, order, test, saying });
            }
        }
    }

    /// Sets for each event whether a program with it is running at `now`. Missing heartbeats count
    /// only during such a presence. Without a call every event counts as present.
    pub fn expect(&mut self, now: u64, is_present: &dyn Fn(&EventName) -> bool) {
        for ((_, test), judge) in self.tests.iter().zip(&mut self.judges) {
            if let Test::Missing { event, .. } = test {
                judge.expect(now, is_present(event));
            }
        }
    }

    /// The name that each thread had at a time, if it is known.
    pub fn names_at(&self, moment: u64) -> Vec<(Thread, String)> {
        self.names.at(moment)
    }

    /// Adds an interval in which events were lost.
    pub fn lost(&mut self, from: u64, to: u64) {
        if self.losses.len() >= LOSSES_MAX
            && let (Some(first), Some(second)) = (self.losses.pop_front(), self.losses.pop_front())
        {
            self.losses.push_front((first.0.min(second.0), first.1.max(second.1)));
        }
        self.losses.push_back((from, to));
    }

    /// Evaluates up to `to`, once all packets with events until then were given. Returns the
    /// firings in the order of time, and the ends of spans that had fired before.
    pub fn advance(&mut self, to: u64) -> (Vec<Firing>, Vec<SpanEnd>) {
        let to = to.max(self.judged);
        let dropped = self.limits.facts_dropped;
        let mut step = Step { firings: Vec::new(), ends: Vec::new() };
        self.facts.sort_unstable_by_key(|fact| (fact.time, fact.order));
        let due = self.facts.partition_point(|fact| fact.time <= to);
        let later = self.facts.split_off(due);
        for fact in std::mem::replace(&mut self.facts, later) {
            let outcome = self.judges[fact.test].say(fact.time, fact.saying, &mut self.limits);
            match outcome {
                Outcome::Nothing => {}
                Outcome::Fired(fired) => drop(self.fire(&mut step, fact.test, fired)),
                // A part of a combination has no number of its own.
                Outcome::Ended { number: 0, .. } => {}
                Outcome::Ended { number, ticks } => step.ends.push(SpanEnd { number, ticks }),
            }
        }
        let mut judges = std::mem::take(&mut self.judges);
        for (test, judge) in judges.iter_mut().enumerate() {
            judge.advance(self.start, to, |fired| self.fire(&mut step, test, fired));
        }
        self.judges = judges;
        self.combine(&mut step, to);
        if dropped != 0 {
            // Results that depend on dropped facts are uncertain.
            self.lost(self.judged, to);
        }
        self.judged = to;
        step.firings.sort_by_key(|firing| (firing.at, firing.number));
        (step.firings, step.ends)
    }

    /// The number of the firing; 0 for a part of a combination.
    fn fire(&mut self, step: &mut Step, test: usize, fired: Fired) -> u64 {
        let touched =
            || self.losses.iter().any(|(from, to)| *from <= fired.until && fired.since <= *to);
        let is_certain = !fired.can_be_wrong || !touched();
        let Fired { at, key, by, measured, .. } = fired;
        let place = self.of_test[test];
        let alternative = &mut self.alternatives[place];
        if let Some(combined) = &mut alternative.combined {
            let has_room = combined.add(test, Moment { at, first: at, key, by, is_certain });
            self.limits.firings_not_told += u64::from(!has_room);
            return 0;
        }
        let (condition, test) = (alternative.condition, alternative.text.clone());
        self.tell(step, Firing { number: 0, condition, at, test, measured, is_certain, key, by })
    }

    /// Evaluates the operands of `and`.
    fn combine(&mut self, step: &mut Step, to: u64) {
        let mut alternatives = std::mem::take(&mut self.alternatives);
        for alternative in &mut alternatives {
            let Some(combined) = &mut alternative.combined else { continue };
            for Moment { at, first, key, by, is_certain } in combined.judge(to) {
                let measured = Measured::Ticks { ticks: at - first, is_over: true };
                let (condition, test) = (alternative.condition, alternative.text.clone());
                let number = 0;
                let firing = Firing { number, condition, at, test, measured, is_certain, key, by };
                self.tell(step, firing);
            }
        }
        self.alternatives = alternatives;
    }

    fn tell(&mut self, step: &mut Step, firing: Firing) -> u64 {
        self.fired += 1;
        if step.firings.len() >= FIRINGS_MAX {
            self.limits.firings_not_told += 1;
            step.firings.pop();
        }
        step.firings.push(Firing { number: self.fired, ..firing });
        self.fired
    }
}

struct Step {
    firings: Vec<Firing>,
    ends: Vec<SpanEnd>,
}

/// The thread in a WRITER record.
fn writer(records: &[u8], record: &Record) -> Option<Thread> {
    let fields = records.get(record.at + abi::RECORD_HEADER_BYTES as usize..record.end)?;
    let (pid, tid) = (fields.get(..4)?.try_into().ok()?, fields.get(4..8)?.try_into().ok()?);
    Some(Thread { pid: u32::from_ne_bytes(pid), tid: u32::from_ne_bytes(tid) })
}

fn saying(
    says: &Says,
    types: &[FieldType],
    record: &[u8],
    (by, ring): (Option<Thread>, RingId),
) -> Option<Saying> {
    let key = |fields: &[usize]| -> Option<String> {
        let mut key = String::new();
        for index in fields {
            field(record, types, *index)?.add_to(&mut key);
        }
        Some(key)
    };
    // Spans without a key belong to their thread.
    let span = |fields: &[usize]| match fields {
        [] => Some(by.map_or(String::new(), |by| format!("thread {}", by.tid))),
        _ => key(fields),
    };
    Some(match says {
        Says::Begin { key } => Saying::Begin { key: span(key)?, by, ring },
        Says::End { key } => Saying::End { key: span(key)?, by, ring },
        Says::Part(part) => Saying::Part(*part),
        Says::Happened => return None,
        Says::Level { field: index, key: fields } => {
            Saying::Level { key: key(fields)?, value: field(record, types, *index)?.number()? }
        }
        Says::Matches(tests) => {
            for (index, compare, wanted) in tests {
                if !field(record, types, *index)?.compares(*compare, wanted) {
                    return None;
                }
            }
            Saying::Matches { by }
        }
    })
}
