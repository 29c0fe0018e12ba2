// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Call stacks of samples on the lane of the thread: a mark for each sample, and below it the
//! functions on the stack, outermost first.
//!
//! A sample shows the position of the thread at one point in time. It is drawn until the next
//! sample, but for no longer than the usual distance of samples of a running thread: in longer
//! intervals, the thread slept.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_lanes::{Gathers, Interval, Opened, PointRef, RowKind};
use lateralis_model::{Event, Trace, Writer};
use lateralis_store::facts::Owner;
use lateralis_store::places::Frame;
use lateralis_store::stacks::{Sample, Samples};

use super::lists::Lists;
use crate::flow::ImageSource;

/// Events whose periods are nanoseconds, with the names of perf and of our recordings
/// [perf_event.h, PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK].
const OF_TIME: [&str; 4] = ["cpu-clock", "task-clock", "cpu_clock", "task_clock"];
/// Assumed distance of samples while too few are known: 100 Hz, the slowest usual rate.
const STEP_NANOS: i64 = 10_000_000;
/// Number of recent distances whose median is the distance of samples.
const STEPS: usize = 9;
/// Samples are separate if their distance is more than this multiple of the usual distance.
const APART: i64 = 2;
/// Maximum number of drawn frames.
const FRAMES_MAX: usize = 256;

/// Adds samples to the index.
pub struct SampledStacks {
    samples: Samples<'static>,
    tracks: HashMap<(u32, u32), Track, RandomState>,
    /// Names of functions, by function number.
    names: HashMap<u32, u32, RandomState>,
}

/// Samples of one event of one thread.
struct Track {
    event: String,
    lane: u32,
    last: i64,
    /// The most recent distances.
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
    /// Creates the sampler for a trace with these event classes.
    pub fn new(images: &ImageSource, trace: &Trace) -> Self {
        let samples = Samples::new(images.open(), trace);
        Self { samples, tracks: HashMap::default(), names: HashMap::default() }
    }

    /// Adds new event classes of the trace.
    pub fn learn(&mut self, trace: &Trace) {
        self.samples.learn(trace);
    }

    /// Reads the stack in an event.
    pub fn read(&mut self, event: &Event<'_>) -> Option<Sample> {
        if self.samples.see(event) || !self.samples.is_sample(event) {
            return None;
        }
        // Samples of thread 0 are those of an idle CPU.
        self.samples.read(event).filter(|sample| sample.tid != 0)
    }

    /// Adds a sample to the index; `point` is the place of its event.
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
        // End of the previous frames: now if the thread kept running, otherwise one step after the
        // previous sample.
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

    /// Closes all frames.
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
    /// Usual distance of samples.
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

    /// Closes all but the outermost `depth` functions of the stack.
    fn close(&mut self, builder: &mut dyn Gathers, depth: usize, until: i64) {
        // Callers first: of intervals with equal ends, the caller is drawn above.
        for Open { interval, opened, .. } in self.frames.drain(depth..) {
            let whole = Interval { end: Some(until.max(interval.begin)), ..interval };
            match opened {
                Some(opened) => builder.ends(opened, Some(whole)),
                None => builder.interval(self.lane, RowKind::Stacks, Some(&self.event), whole),
            }
        }
    }
}
