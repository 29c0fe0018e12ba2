// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Index of a live recording. It is extended in rounds as packets arrive ([`Tail`]), and its memory
//! is bounded.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lateralis_analysis::Gaps;
use lateralis_lanes::{Growing, Lanes, Lost, Missing, Recorded};
use lateralis_model::{
    Clock, Damage, Event, EventClass, Interval, LossCause, Names, Source, StreamClass, StreamIndex,
};
use lateralis_store::facts::{At, Fact, Facts};
use lateralis_store::{Recording, Shown, Tail};
use lateralis_units::Nanos;

use super::stacks::SampledStacks;
use super::streams::Streams;
use super::{Indexing, derived};
use crate::flow::ImageSource;

/// Numbers of names that are reserved for kinds of spans, which come first.
const SPAN_NAMES: usize = 256;
/// Limit of remembered file positions; single events are read again from the nearest one.
const MARKS_MAX: usize = 4096;
/// Limit of separately listed losses; beyond it, the last loss of the same lane and cause is extended.
const LOSSES_MAX: usize = 10_000;
/// Limit of gaps that are kept to assess the quality of spans.
const GAPS_MAX: usize = 4096;
/// Minimum memory: some chunks of each column of some lanes.
const MEMORY_MIN: usize = 16 << 20;
/// Limit of remembered names.
const NAMES_MAX: usize = 1 << 18;
/// Maximum number of events of a round, except for the last.
const ROUND_MAX: u64 = 1 << 20;
/// Number of events between two checks of the used memory.
const LOOK: u64 = 1 << 14;

/// Start positions in stream files, by file name: all events after some time are located after them.
pub type Marks = Arc<BTreeMap<String, u64>>;

/// Indexer of a live recording; see the module's description.
pub struct Grow {
    path: PathBuf,
    tail: Tail,
    memory_bytes: usize,
    facts: Facts,
    indexing: Option<Indexing<Growing>>,
    streams: Streams,
    /// Number of event classes when decode plans were built last.
    classes: usize,
    format: String,
    gaps: Vec<lateralis_model::Loss>,
    losses: Vec<Lost>,
    fresh_losses: Vec<Lost>,
    damage: Vec<Missing>,
    marks: Vec<(i64, Marks)>,
    /// By stream class and class: whether its events contain names of processes or threads.
    tells: Vec<Vec<bool>>,
    names: Names,
    images: Option<ImageSource>,
}

/// Classes whose events contain names of processes and threads, as in [`Recording::learn_names`].
const TELLING: [&str; 2] = ["lateralis:PROCESS", "lateralis:THREAD_NAME"];

/// Stores the name that an event contains.
fn tell(event: &Event<'_>, names: &mut Names) {
    let payload = || event.payload();
    let number = |name| u32::try_from(payload()?.get(name)?.as_u64()?).ok();
    let text = |name| Some(payload()?.get(name)?.as_text()?.into_owned());
    let (map, id) = match event.class.name == TELLING[0] {
        true => (&mut names.processes, number("pid")),
        false => (&mut names.threads, number("tid")),
    };
    if let (Some(id), Some(name)) = (id, text("name"))
        && map.len() < NAMES_MAX
    {
        map.entry(id).or_insert(name);
    }
}

/// Result of a round.
#[derive(Debug, Clone, Copy, Default)]
pub struct Round {
    /// Number of new events.
    pub events: u64,
    /// Whether there are new losses or damage.
    pub is_news: bool,
}

/// Snapshot of a live index.
pub struct Now {
    /// The index.
    pub lanes: Lanes,
    /// Changes whenever entries are added to the lists.
    pub lists: u64,
    /// Number of evicted events.
    pub forgotten: u64,
    /// Number of events that arrived out of order, after events with a later time.
    pub late: u64,
    /// Losses since the previous snapshot.
    pub losses: Vec<Lost>,
    /// File positions by time: all events after the time are located after the positions.
    pub marks: Vec<(i64, Marks)>,
    /// File positions up to which everything was read.
    pub shown: Shown,
    /// Clock of the times.
    pub clock: Option<Clock>,
}

impl Grow {
    /// Creates an indexer of a recording of `lat record`, with `memory_bytes` for columns.
    #[must_use]
    pub fn new(path: &Path, memory_bytes: usize) -> Self {
        Self {
            path: path.to_owned(),
            tail: Tail::new(path).without_names().keeping_its_clock(),
            memory_bytes: memory_bytes.max(MEMORY_MIN),
            facts: Facts::default(),
            indexing: None,
            streams: Streams::default(),
            classes: 0,
            format: String::new(),
            gaps: Vec::new(),
            losses: Vec::new(),
            fresh_losses: Vec::new(),
            damage: Vec::new(),
            marks: Vec::new(),
            tells: Vec::new(),
            names: Names::default(),
            images: None,
        }
    }

    /// Adds call stacks of samples. Must be called before the first round.
    #[must_use]
    pub fn with_images(self, images: ImageSource) -> Self {
        Self { images: Some(images), ..self }
    }

    /// Reading position in the recording.
    pub fn tail(&mut self) -> &mut Tail {
        &mut self.tail
    }

    /// Bytes of the columns.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.indexing.as_ref().map_or(0, |indexing| indexing.builder.bytes())
    }

    /// Offsets in stream files before which no byte is needed any more.
    #[must_use]
    pub fn needless(&self) -> Option<Marks> {
        self.marks.first().map(|(_, marks)| Arc::clone(marks))
    }

    /// Indexes new events up to a time, or all; `recording` was opened by [`Tail::open`].
    ///
    /// Cost: some 300 ns per event.
    pub fn round(&mut self, recording: &Recording, until: Option<Nanos>) -> Round {
        self.learn(recording);
        let lost = self.streams.round(&recording.source, &recording.streams);
        let stable: Vec<StreamIndex> = self.streams.of(&recording.streams);
        let mut origin = None;
        if self.indexing.is_none() {
            // The session begins with the first shown event.
            let mut events = recording.source.events();
            let mut first = None;
            while let Some(event) = events.next_event() {
                if event.class.name != super::WRITER {
                    first = Some(event.time);
                    break;
                }
            }
            // A stream that was not waited for may still deliver an earlier event.
            let is_due = |time: &Nanos| until.is_none_or(|until| *time <= until);
            origin = first.filter(is_due).map(|time| time.0);
        }
        if let Some(origin) = origin {
            let deriver = derived::growing(&self.facts);
            let growing = Growing::new(origin);
            let mut new = Indexing::new(recording, &self.facts, growing, deriver, SPAN_NAMES);
            let images = self.images.as_ref();
            let trace = recording.source.trace();
            new.stacks = images.map(|images| SampledStacks::new(images, trace));
            self.indexing = Some(new);
        }
        let Some(indexing) = &mut self.indexing else { return Round::default() };
        indexing.has_switches = self.facts.has_switches();
        indexing.deriver.set_alone_streams(
            self.streams
                .by_kept_number(&recording.streams, &self.facts.alone_streams(&recording.streams)),
        );
        indexing.lists.set_streams(self.streams.names());
        let is_lossy = !lost.is_empty();
        for loss in &lost {
            let lane = self.streams.cpu(loss.stream);
            let lane = lane.map(|cpu| indexing.lists.cpu_lane(&mut indexing.builder, cpu));
            indexing.lose(loss, lane, &mut self.losses, &mut self.fresh_losses);
        }
        if is_lossy {
            self.gaps.extend(lost);
            let most = self.gaps.len().saturating_sub(GAPS_MAX);
            self.gaps.drain(..most);
            indexing.deriver.set_gaps(Gaps::new(&self.gaps, &[], |_| None));
        }
        let (facts, memory) = (&mut self.facts, self.memory_bytes);
        let (tells, names) = (&self.tells, &mut self.names);
        let mut told: Vec<(At, Fact)> = Vec::new();
        let mut count = 0;
        let progress = self.tail.read(recording, until, &mut |event, _| {
            told.clear();
            let stream = stable.get(event.stream.0 as usize).copied().unwrap_or(event.stream);
            let at = facts.of(event, |at, fact| told.push((At { stream, ..*at }, fact)));
            indexing.event(event, &At { stream, ..at }, &told, facts);
            let class = tells.get(event.stream_class_index as usize);
            if class.and_then(|of| of.get(event.class_index as usize)) == Some(&true) {
                tell(event, names);
            }
            count += 1;
            if count % LOOK == 0 {
                bound(indexing, facts, memory);
            }
            // A long backlog is read and shown in several rounds; the final round reads everything.
            if until.is_some() && count >= ROUND_MAX {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        bound(indexing, facts, memory);
        indexing.lists.name_all(facts, &mut indexing.builder);
        let is_news = is_lossy || !progress.damage.is_empty();
        for damage in progress.damage {
            self.damage.push(missing(&damage, indexing.builder.origin()));
        }
        self.mark();
        Round { events: progress.events, is_news }
    }

    fn learn(&mut self, recording: &Recording) {
        let trace = recording.source.trace();
        let classes = trace.stream_classes.iter().map(|of| 1 + of.event_classes.len()).sum();
        if classes != self.classes {
            self.classes = classes;
            self.facts.learn(&recording.annotated(), &recording.streams);
            self.format = recording.source.format().to_owned();
            let is_name = |class: &EventClass| TELLING.contains(&class.name.as_str());
            let of = |class: &StreamClass| class.event_classes.iter().map(is_name).collect();
            self.tells = trace.stream_classes.iter().map(of).collect();
            if let Some(indexing) = &mut self.indexing {
                indexing.lists.learn(recording, &self.facts);
                if let Some(stacks) = &mut indexing.stacks {
                    stacks.learn(trace);
                }
                indexing.deriver.learn(self.facts.kinds());
            }
        }
        self.facts.set_streams(&recording.streams);
        if let Some(indexing) = &mut self.indexing {
            // The report contains the name of a process that the recorder saw last.
            let mut names = recording.names.clone();
            for (pid, name) in &self.names.processes {
                names.processes.entry(*pid).or_insert_with(|| name.clone());
            }
            for (tid, name) in &self.names.threads {
                names.threads.entry(*tid).or_insert_with(|| name.clone());
            }
            indexing.lists.set_known(names);
        }
    }

    /// Remembers the current file positions.
    fn mark(&mut self) {
        let Some(indexing) = &self.indexing else { return };
        let growing = &indexing.builder;
        let absolute = |since: u64| growing.origin().saturating_add_unsigned(since);
        let time = absolute(growing.end());
        if self.marks.last().is_none_or(|(last, _)| *last < time) {
            self.marks.push((time, Arc::new(self.tail.marks())));
        }
        let begin = absolute(growing.begin());
        // The last mark before the first remembered event stays.
        let old = self.marks.partition_point(|(time, _)| *time < begin).saturating_sub(1);
        self.marks.drain(..old);
        if self.marks.len() > MARKS_MAX {
            let mut place = 0;
            self.marks.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
    }

    /// Returns the current snapshot; `None` until the first event arrived.
    pub fn now(&mut self) -> Option<Now> {
        let indexing = self.indexing.as_ref()?;
        let mut meta = indexing.lists.meta(&self.facts, &indexing.counts);
        let growing = &indexing.builder;
        let since = |time: u64| {
            u64::try_from(i128::from(time as i64) - i128::from(growing.origin())).unwrap_or(0)
        };
        for class in &mut meta.classes {
            class.first = class.first.map(since);
            class.last = class.last.map(since);
        }
        let is_lossy = !self.losses.is_empty() || !self.damage.is_empty();
        meta.recordings = vec![Recorded {
            path: self.path.display().to_string(),
            format: self.format.clone(),
            events: meta.classes.iter().map(|class| class.count).sum(),
            quality: if is_lossy { "lower_bound" } else { "exact" }.to_owned(),
            ticks_hz: self.tail.clock().map(Clock::frequency),
        }];
        let found = indexing.counts.contradictions();
        super::ended::contradictions(found, &indexing.lists, growing.origin(), &mut meta);
        meta.losses.clone_from(&self.losses);
        meta.damage.clone_from(&self.damage);
        Some(Now {
            lists: indexing.lists.version() + growing.row_count() as u64 + growing.left_out(),
            forgotten: growing.forgotten(),
            late: growing.late(),
            losses: std::mem::take(&mut self.fresh_losses),
            marks: self.marks.clone(),
            shown: self.tail.shown(),
            clock: self.tail.clock().cloned(),
            lanes: growing.lanes(meta),
        })
    }
}

/// Evicts the oldest items while there are too many: few at a time, so that no request waits long
/// while memory and disk space are released.
fn bound(indexing: &mut Indexing<Growing>, facts: &Facts, memory_bytes: usize) {
    /// 1/128 of a gigabyte is some eight megabytes, which takes a millisecond to evict.
    const PARTS: u64 = 128;
    let mut parts = 1;
    while indexing.builder.bytes() > memory_bytes && parts < PARTS {
        let time = indexing.builder.time_behind(parts, PARTS);
        indexing.builder.forget(time);
        // The step is doubled if this is not enough, because most memory is used at another time.
        parts *= 2;
        derived::bound(&mut indexing.deriver, facts.kinds(), &mut indexing.builder);
    }
}

fn missing(damage: &Damage, origin: i64) -> Missing {
    let since = |time: Nanos| u64::try_from(i128::from(time.0) - i128::from(origin)).unwrap_or(0);
    Missing {
        lane: None,
        file: damage.file.clone(),
        begin_bytes: damage.begin_bytes,
        end_bytes: damage.end_bytes,
        reason: damage.reason.to_string(),
        begin: damage.interval.begin.map(since),
        end: damage.interval.end.map(since),
    }
}

impl Indexing<Growing> {
    /// Adds a loss to its lanes and to the list.
    fn lose(
        &mut self,
        loss: &lateralis_model::Loss,
        of_cpu: Option<u32>,
        all: &mut Vec<Lost>,
        fresh: &mut Vec<Lost>,
    ) {
        let origin = self.builder.origin();
        let since =
            |time: Nanos| u64::try_from(i128::from(time.0) - i128::from(origin)).unwrap_or(0);
        let of_stream = self.lane_of_stream.get(loss.stream.0 as usize).copied().flatten();
        let lane = of_stream.or(of_cpu);
        let interval = match loss.cause {
            // These losses belong to a thread, which may have lost the events at any earlier time.
            LossCause::NoRing => Interval { begin: None, ..loss.interval },
            _ => loss.interval,
        };
        let begin = interval.begin.map_or(0, since);
        let end = interval.end.map_or(self.builder.end(), since).max(begin);
        let lost =
            Lost { lane, begin, end, count: loss.count, cause: loss.cause.name().to_owned() };
        let last = all.iter_mut().rev().find(|one| one.lane == lane && one.cause == lost.cause);
        let is_full = fresh.len() >= LOSSES_MAX;
        match last {
            // Adjacent losses are merged.
            Some(last) if last.end >= begin || all_are_too_many(last, begin, is_full) => {
                last.begin = last.begin.min(begin);
                last.end = last.end.max(end);
                last.count = last.count.zip(lost.count).map(|(one, more)| one.saturating_add(more));
            }
            _ => all.push(lost.clone()),
        }
        if !is_full {
            fresh.push(lost);
        }
        let lanes: Vec<u32> = match lane {
            Some(lane) => vec![lane],
            None => (0..lateralis_lanes::Gathers::lane_count(&self.builder)).collect(),
        };
        for lane in lanes {
            if let Some(lane) = lateralis_lanes::Gathers::lane_mut(&mut self.builder, lane) {
                super::ended::merge_into(&mut lane.lost, (begin, end));
            }
        }
    }
}

/// Whether a loss is merged with the previous one although they do not touch.
fn all_are_too_many(last: &Lost, begin: u64, is_full: bool) -> bool {
    /// Losses that are closer to each other than this are listed as one.
    const NEAR_NANOS: u64 = 100_000_000;
    is_full || begin.saturating_sub(last.end) < NEAR_NANOS
}
