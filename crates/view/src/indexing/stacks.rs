// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stacks of samples on the lane of the thread: a mark for each sample, and below it the functions that were
//! found, one below the other.
//!
//! A sample says where the thread was at one moment. Until the next one it stands for that time, but not for
//! longer than samples are apart while the thread runs: in between it slept.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_lanes::{Gathers, Interval, Opened, PointRef, RowKind};
use lateralis_model::{Event, Trace, Writer};
use lateralis_store::facts::Owner;
use lateralis_store::places::Frame;
use lateralis_store::stacks::{Sample, Samples};

use super::lists::Lists;
use crate::flow::ImageSource;

/// Events whose periods are nanoseconds, as perf and as recordings of ours call them [perf_event.h,
/// PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK].
const OF_TIME: [&str; 4] = ["cpu-clock", "task-clock", "cpu_clock", "task_clock"];
/// How far apart samples are of which too few are known: as at 100 Hz, which is the slowest that is usual.
const STEP_NANOS: i64 = 10_000_000;
/// Distances of which the middle one is how far samples are apart.
const STEPS: usize = 9;
/// Samples that are further apart than this many times as far as usual do not belong together.
const APART: i64 = 2;
/// Frames that are drawn.
const FRAMES_MAX: usize = 256;

/// Draws samples.
pub struct SampledStacks {
    samples: Samples<'static>,
    tracks: HashMap<(u32, u32), Track, RandomState>,
    /// Names of functions, by their numbers.
    names: HashMap<u32, u32, RandomState>,
}

/// Samples of one event of one thread.
struct Track {
    event: String,
    lane: u32,
    last: i64,
    /// Distances that were seen last.
    steps: Vec<i64>,
    next_step: usize,
    frames: Vec<Open>,
}

/// A function on the stack.
struct Open {
    function: u32,
    interval: Interval,
    opened: Option<Opened>,
}

impl SampledStacks {
    /// Of a trace with these classes of events.
    pub fn new(images: &ImageSource, trace: &Trace) -> Self {
        let samples = Samples::new(images.open(), trace);
        Self { samples, tracks: HashMap::default(), names: HashMap::default() }
    }

    /// The trace has more classes of events by now.
    pub fn learn(&mut self, trace: &Trace) {
        self.samples.learn(trace);
    }

    /// The stack that an event says.
    pub fn read(&mut self, event: &Event<'_>) -> Option<Sample> {
        if self.samples.see(event) || !self.samples.is_sample(event) {
            return None;
        }
        // Samples of no thread are those of a processor that is idle.
        self.samples.read(event).filter(|sample| sample.tid != 0)
    }

    /// Draws a sample: `point` is its event, of a class with this number.
    pub fn draw(
        &mut self,
        (lists, builder): (&mut Lists, &mut dyn Gathers),
        sample: &Sample,
        event: &Event<'_>,
        (time, point): (i64, PointRef),
    ) {
        let Self { samples, tracks, names } = self;
        let writer = Writer { pid: sample.pid, tid: sample.tid };
        let thread = lists.thread(builder, Some(writer));
        let class = lists.class(event).map_or(u32::MAX, u32::from);
        let track = tracks.entry((thread, class)).or_insert_with(|| Track {
            event: event.class.name.clone(),
            lane: lists.owner_lane(builder, Owner::Thread(writer)),
            last: time,
            steps: Vec::new(),
            next_step: 0,
            frames: Vec::new(),
        });
        let step = match OF_TIME.iter().any(|name| track.event.ends_with(name)) {
            true => i64::try_from(sample.weight).unwrap_or(STEP_NANOS).max(1),
            false => track.step(),
        };
        let passed = time.saturating_sub(track.last).max(0);
        let goes_on = passed <= step.saturating_mul(APART);
        // Where the thread was until now: at the sample before, if it ran on.
        let until = if goes_on { time } else { track.last.saturating_add(step) };
        let frames = &sample.frames[..sample.frames.len().min(FRAMES_MAX)];
        let stays = |(open, frame): &(&Open, &Frame)| goes_on && open.function == frame.function;
        let same = track.frames.iter().zip(frames).take_while(stays).count();
        track.close(builder, same, until);
        for frame in &frames[same..] {
            let name = *names.entry(frame.function).or_insert_with(|| {
                lists.name(samples.places().name_of(frame.function).unwrap_or_default())
            });
            let from = Some(point);
            let interval =
                Interval { begin: time, end: None, name, thread, from, to: None, quality: 0 };
            let opened = builder.begins(track.lane, RowKind::Stacks, Some(&track.event), interval);
            track.frames.push(Open { function: frame.function, interval, opened });
        }
        for open in track.frames.iter().filter_map(|of| of.opened) {
            builder.goes_on(open, time);
        }
        let name = lists.name(&track.event);
        let from = Some(point);
        let mark =
            Interval { begin: time, end: Some(time), name, thread, from, to: None, quality: 0 };
        builder.interval(track.lane, RowKind::Samples, Some(&track.event), mark);
        if goes_on && passed > 0 {
            track.learn(passed);
        }
        track.last = time;
    }

    /// No more samples come.
    pub fn end(&mut self, builder: &mut dyn Gathers) {
        let mut all: Vec<_> = std::mem::take(&mut self.tracks).into_iter().collect();
        all.sort_by_key(|(key, _)| *key);
        for (_, mut track) in all {
            let last = track.last;
            track.close(builder, 0, last);
        }
    }
}

impl Track {
    /// How far samples are apart.
    fn step(&self) -> i64 {
        let mut sorted = self.steps.clone();
        sorted.sort_unstable();
        match sorted.get(sorted.len() / 2) {
            Some(middle) if sorted.len() >= 3 => *middle,
            _ => STEP_NANOS,
        }
    }

    fn learn(&mut self, passed: i64) {
        match self.steps.get_mut(self.next_step) {
            Some(step) => *step = passed,
            None => self.steps.push(passed),
        }
        self.next_step = (self.next_step + 1) % STEPS;
    }

    /// Of the functions on the stack only so many are there from a moment on.
    fn close(&mut self, builder: &mut dyn Gathers, depth: usize, until: i64) {
        // Who called first: of those that begin and end together, it is above.
        for Open { interval, opened, .. } in self.frames.drain(depth..) {
            let whole = Interval { end: Some(until.max(interval.begin)), ..interval };
            match opened {
                Some(opened) => builder.ends(opened, Some(whole)),
                None => builder.interval(self.lane, RowKind::Stacks, Some(&self.event), whole),
            }
        }
    }
}
