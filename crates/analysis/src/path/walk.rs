// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Walks from the end of a span back to its begin.

use std::collections::HashMap;

use lateralis_units::Nanos;

use super::scene::{Occupant, Scene, WokenBy};
use super::threads::State;
use super::waits::Wait;

/// Largest depth of nested waits; it also ends cycles.
const MAX_DEPTH: usize = 64;
/// Largest number of segments of a path; the rest of the span is then one segment.
const MAX_SEGMENTS: usize = 1 << 20;

/// Activity in a segment of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doing {
    /// The thread runs.
    Running,
    /// Its CPU handles an interrupt.
    Interrupted,
    /// The thread is runnable, while another one runs.
    Ready,
    /// It waits, and the thread that ended the wait is unknown: a device, a timer, the outside world.
    Blocked,
    /// Its wait is over, but it has not continued yet.
    Resuming,
    /// A message to it is in flight.
    InFlight,
    /// Whether it runs or waits is unknown: scheduler events are missing, or incomplete.
    Active,
}

impl Doing {
    /// Name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Ready => "ready",
            Self::Blocked => "blocked",
            Self::Resuming => "resuming",
            Self::InFlight => "in_flight",
            Self::Active => "unknown",
        }
    }
}

/// A segment of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Thread to which the time is attributed.
    pub thread: u32,
    /// CPU on which it runs.
    pub cpu: Option<u32>,
    /// Its activity.
    pub doing: Doing,
    /// Name of its innermost span, of the interrupt, or of the message.
    pub what: Option<u32>,
    /// Name of the wait of which this is a part, on the path's own thread or on one in between; `None`
    /// while the span's own thread runs.
    pub waited: Option<u32>,
    /// Begin.
    pub begin: Nanos,
    /// End.
    pub end: Nanos,
    /// For a blocked thread: what ended the wait, if no thread is known to have ended it.
    pub woken_by: Option<WokenBy>,
    /// Name of the interrupt that ended it, or of what it completed.
    pub woken_for: Option<u32>,
    /// For a runnable thread: the occupant of the CPU on which it runs next.
    pub instead: Option<Occupant>,
}

impl Segment {
    /// Length in nanoseconds.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.end.0.abs_diff(self.begin.0)
    }
}

/// A critical path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    /// Ascending; each begins where the previous one ends.
    pub segments: Vec<Segment>,
    /// Whether the path was too long to be followed to its begin.
    pub is_cut: bool,
    /// Whether the end of a wait on it has an unknown or only probable cause: then the rest of the wait
    /// may belong to another thread.
    pub is_doubtful: bool,
}

/// A thread on the path, which is followed down to `floor`.
struct Frame {
    thread: u32,
    floor: Nanos,
    waited: Option<u32>,
}

struct Walk<'a> {
    scene: &'a Scene,
    at: Nanos,
    frames: Vec<Frame>,
    /// Last first.
    segments: Vec<Segment>,
    /// Cause of the end of the current wait.
    woken_by: Option<WokenBy>,
    /// Purpose of the interrupt that ended it.
    woken_for: Option<u32>,
    /// CPU on which a runnable thread runs next, and its occupant.
    next_cpu: Option<u32>,
    instead: Option<Occupant>,
    is_doubtful: bool,
}

impl Scene {
    /// Path of a thread between two times.
    ///
    /// Cost: proportional to the segments, times the logarithm of the entries of a thread.
    #[must_use]
    pub fn path(&self, thread: u32, begin: Nanos, end: Nanos) -> Path {
        if begin >= end || thread as usize >= self.states.len() {
            return Path::default();
        }
        let frames = vec![Frame { thread, floor: begin, waited: None }];
        let mut walk = Walk {
            scene: self,
            at: end,
            frames,
            segments: Vec::new(),
            woken_by: None,
            woken_for: None,
            next_cpu: None,
            instead: None,
            is_doubtful: false,
        };
        let mut is_cut = false;
        while walk.at > begin {
            if walk.segments.len() >= MAX_SEGMENTS {
                is_cut = true;
                walk.frames.truncate(1);
                walk.plain(begin, Doing::Active, None, None);
                break;
            }
            walk.step();
        }
        walk.segments.reverse();
        Path { segments: walk.segments, is_cut, is_doubtful: walk.is_doubtful }
    }
}

impl Walk<'_> {
    /// One step back in time, or from one thread to another. A thread is left only after time has passed,
    /// and none is entered twice at once: so it terminates.
    fn step(&mut self) {
        let (thread, floor) = match self.frames.last() {
            Some(frame) if self.at > frame.floor => (frame.thread as usize, frame.floor),
            // The lowest frame has the floor of the whole path, which is not reached.
            _ => {
                self.frames.pop();
                return;
            }
        };
        let scene = self.scene;
        let states = &scene.states[thread];
        if states.is_empty() {
            self.unknown(thread, floor);
            return;
        }
        let index = states.partition_point(|change| change.time < self.at).saturating_sub(1);
        let (change, next) = (states[index], states.get(index + 1));
        let floor = floor.max(change.time);
        match change.state {
            State::Unknown => self.unknown(thread, floor),
            State::Running(cpu) => self.emit(floor, Doing::Running, Some(cpu)),
            State::Ready => {
                self.next_cpu = match next.map(|next| next.state) {
                    Some(State::Running(cpu)) => Some(cpu),
                    _ => None,
                };
                self.emit(floor, Doing::Ready, None);
                self.next_cpu = None;
            }
            State::Blocked => {
                let waker = next.and_then(|next| Some((next.time, next.waker?)));
                let known = waker.and_then(|(time, waker)| match waker {
                    WokenBy::Thread(waker) | WokenBy::Likely(waker) => Some((time, waker)),
                    WokenBy::Interrupt | WokenBy::Unknown => None,
                });
                let known = known.filter(|(_, waker)| (*waker as usize) < scene.states.len());
                let (since, wait) = self.wait_before(thread);
                match (known, wait) {
                    (Some((time, waker)), named) => {
                        let by = next.and_then(|next| next.waker);
                        self.is_doubtful |= matches!(by, Some(WokenBy::Likely(_)));
                        let what = named.map(|wait| wait.what).or(self.label(thread).1);
                        self.follow(floor, waker, time, what, None, false);
                    }
                    (None, Some(wait)) => self.wait(floor.max(since), &wait),
                    (None, None) => {
                        // A missing wakeup has an unknown cause.
                        let by = waker.map_or(WokenBy::Unknown, |(_, by)| by);
                        self.woken_by = Some(by);
                        self.woken_for =
                            waker.and_then(|(time, _)| scene.woken_for(thread as u32, time));
                        self.is_doubtful |= by != WokenBy::Interrupt;
                        self.emit(floor.max(since), Doing::Blocked, None);
                        (self.woken_by, self.woken_for) = (None, None);
                    }
                }
            }
        }
    }

    /// Goes back to `floor` if it is unknown whether the thread ran.
    fn unknown(&mut self, thread: usize, floor: Nanos) {
        let (since, wait) = self.wait_before(thread);
        let floor = floor.max(since);
        match wait {
            Some(wait) => self.wait(floor, &wait),
            None => self.emit(floor, Doing::Active, None),
        }
    }

    /// Wait of a thread just before the current time, and its begin; or the time since which there is
    /// none.
    fn wait_before(&self, thread: usize) -> (Nanos, Option<Wait>) {
        let waits = &self.scene.waits[thread];
        let behind = waits.partition_point(|wait| wait.begin < self.at);
        match behind.checked_sub(1).map(|index| waits[index]) {
            Some(wait) if wait.end >= self.at => (wait.begin, Some(wait)),
            Some(wait) => (wait.end, None),
            None => (Nanos(i64::MIN), None),
        }
    }

    fn label(&self, thread: usize) -> (Nanos, Option<u32>) {
        self.scene.labels[thread].before(self.at)
    }

    fn wait(&mut self, floor: Nanos, wait: &Wait) {
        let (thread, time) = (wait.cause_thread, wait.cause_time);
        self.follow(floor, thread, time, Some(wait.what), Some(wait.what), wait.is_message);
    }

    /// A wait since `floor`, ended by `cause` at `time`.
    fn follow(
        &mut self,
        floor: Nanos,
        cause: u32,
        time: Nanos,
        waited: Option<u32>,
        what: Option<u32>,
        is_message: bool,
    ) {
        let goes_round = self.frames.iter().any(|frame| frame.thread == cause);
        let is_known = (cause as usize) < self.scene.states.len();
        if goes_round || !is_known || self.frames.len() >= MAX_DEPTH {
            self.emit_named(floor, Doing::Blocked, what);
            return;
        }
        let time = time.clamp(floor, self.at);
        if time < self.at {
            let doing = if is_message { Doing::InFlight } else { Doing::Resuming };
            self.emit_named(time, doing, what);
        }
        if floor < self.at {
            self.frames.push(Frame { thread: cause, floor, waited });
        }
    }

    /// Goes back to `floor` with activity `doing` and the given name, else with the names of the thread.
    fn emit_named(&mut self, floor: Nanos, doing: Doing, what: Option<u32>) {
        match what {
            Some(_) => self.plain(floor, doing, None, what),
            None => self.emit(floor, doing, None),
        }
    }

    /// Goes back to `floor`, with a segment for each name of the thread on the way, and for each
    /// interrupt of its CPU.
    fn emit(&mut self, floor: Nanos, doing: Doing, cpu: Option<u32>) {
        let Some(thread) = self.frames.last().map(|frame| frame.thread as usize) else {
            return;
        };
        while self.at > floor && self.segments.len() < MAX_SEGMENTS {
            let (mut since, mut what) = self.label(thread);
            let mut now = doing;
            if let Some(busy) = cpu.and_then(|cpu| self.scene.busy.get(cpu as usize)) {
                let (begin, interrupt) = busy.before(self.at);
                since = since.max(begin);
                if interrupt.is_some() {
                    (now, what) = (Doing::Interrupted, interrupt);
                    since = begin;
                }
            }
            if now == Doing::Ready {
                let of = self.next_cpu.map(|next| self.scene.occupant(next, self.at));
                let (begin, by) = of.unwrap_or((Nanos(i64::MIN), Occupant::Unknown));
                since = since.max(begin);
                // The thread itself as the occupant would be a contradiction.
                let is_itself = by == Occupant::Thread(thread as u32);
                self.instead = Some(if is_itself { Occupant::Unknown } else { by });
            }
            self.plain(since.max(floor), now, cpu, what);
            self.instead = None;
        }
    }

    /// Adds a segment, joined with the following one if they are equal.
    fn plain(&mut self, begin: Nanos, doing: Doing, cpu: Option<u32>, what: Option<u32>) {
        let Some(&Frame { thread, waited, .. }) = self.frames.last() else {
            return;
        };
        let end = std::mem::replace(&mut self.at, begin);
        if begin >= end {
            self.at = end;
            return;
        }
        let Self { woken_by, woken_for, instead, .. } = *self;
        let segment =
            Segment { thread, cpu, doing, what, waited, begin, end, woken_by, woken_for, instead };
        match self.segments.last_mut() {
            Some(last)
                if (Segment { begin, end: last.end, ..segment })
                    == (Segment { begin, ..*last }) =>
            {
                last.begin = begin;
            }
            _ => self.segments.push(segment),
        }
    }
}

/// Total of equal segments of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Thread.
    pub thread: u32,
    /// Activity.
    pub doing: Doing,
    /// Span, interrupt or message.
    pub what: Option<u32>,
    /// Wait of which it is a part.
    pub waited: Option<u32>,
    /// Occupant of the CPU, for a runnable thread.
    pub instead: Option<Occupant>,
    /// Cause of the end, for a wait that no thread ended.
    pub woken_by: Option<WokenBy>,
    /// Purpose of that cause.
    pub woken_for: Option<u32>,
    /// Total in nanoseconds.
    pub nanos: u64,
    /// Number of segments.
    pub count: u64,
}

/// Distribution of the time of a path, largest first; the CPU does not distinguish shares.
///
/// Cost: one lookup per segment.
#[must_use]
pub fn shares(segments: &[Segment]) -> Vec<Share> {
    let mut by_key: HashMap<_, Share> = HashMap::new();
    for segment in segments {
        let Segment { thread, doing, what, waited, instead, woken_by, woken_for, .. } = *segment;
        let key = (thread, doing, what, waited, instead, woken_by, woken_for);
        let of = by_key.entry(key).or_insert(Share {
            thread,
            doing,
            what,
            waited,
            instead,
            woken_by,
            woken_for,
            nanos: 0,
            count: 0,
        });
        of.nanos = of.nanos.saturating_add(segment.nanos());
        of.count += 1;
    }
    let mut shares: Vec<Share> = by_key.into_values().collect();
    shares.sort_by_key(|s| {
        let of = (s.thread, s.doing, s.what, s.waited, s.instead, s.woken_by, s.woken_for);
        (std::cmp::Reverse(s.nanos), of)
    });
    shares
}
