// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds the timeline index from the events of a recording.
//!
//! ```text
//! events in the order of time ─ Facts ─┬─ points of lanes
//!                                      ├─ spans, states, CPU occupancy ─► intervals
//!                                      └─ flows, counters
//! ```

mod derived;
mod ended;
mod growing;
mod lists;
mod ran;
mod stacks;
mod streams;
mod who;

use std::io::{self, Write};

use lateralis_lanes::{Builder, FlowLane, Gathers, Missing, PointRef, Spool};
use lateralis_model::{Damage, Event, Interval, LossCause, Source, Writer};
use lateralis_semantics::Deriver;
use lateralis_store::Recording;
use lateralis_store::facts::{At, Fact, Facts, Owner};
use lateralis_store::flow::timeline::Timeline;
use lateralis_units::Nanos;

pub use derived::UNKNOWN_STATE;
use derived::{Counts, Drawing, Seen};
pub use growing::{Grow, Marks, Now};
use lists::Lists;
use ran::Ran;
use stacks::SampledStacks;

use crate::flow::ImageSource;
use crate::packets;

/// The record that names the writer of the following events; each decoded event contains its writer
/// already.
const WRITER: &str = "lateralis:WRITER";

/// Called from time to time with the number of events read, and the fraction of the recording's duration.
pub type Progress<'a> = &'a mut dyn FnMut(u64, f64);

/// Number of events between two calls of [`Progress`].
const ROUND: u64 = 1 << 17;

/// Writes the index of a recording whose names are known ([`Recording::learn_names`]).
///
/// Cost: one pass over all events, some 200 ns each. Memory: see [`Builder`].
///
/// # Errors
/// Those of `out`.
pub fn index(
    (recording, identity): (&Recording, &str),
    (images, flow): (Option<&ImageSource>, Option<&Timeline<'_>>),
    spool: Box<dyn Spool>,
    progress: Progress<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let trace = recording.annotated();
    let mut facts = Facts::new(&trace, &recording.streams);
    let deriver = derived::deriver(recording, &facts);
    let mut indexing = Indexing::new(recording, &facts, Builder::with_spool(spool), deriver, 0);
    indexing.stacks = images.map(|images| SampledStacks::new(images, recording.source.trace()));
    let mut events = recording.source.events();
    let mut told: Vec<(At, Fact)> = Vec::new();
    let mut count = 0u64;
    while let Some(event) = events.next_event() {
        told.clear();
        let at = facts.of(&event, |at, fact| told.push((*at, fact)));
        indexing.event(&event, &at, &told, &facts);
        count += 1;
        if count.is_multiple_of(ROUND) {
            progress(count, share(recording, at.time.0));
        }
    }
    let damage = recording.all_damage(events.damage());
    drop(events);
    progress(count, 1.0);
    indexing.finish((recording, flow), &facts, &damage, identity, out)
}

/// Position of a time between begin and end of the recording, from 0 to 1.
fn share(recording: &Recording, time: i64) -> f64 {
    let Interval { begin: Some(begin), end: Some(end) } = recording.source.interval() else {
        return 0.0;
    };
    let (passed, all) = (time.saturating_sub(begin.0), end.0.saturating_sub(begin.0));
    (passed as f64 / all.max(1) as f64).clamp(0.0, 1.0)
}

/// Index under construction.
struct Indexing<B: Gathers> {
    builder: B,
    lists: Lists,
    deriver: Deriver<Seen>,
    counts: Counts,
    ran: Ran,
    /// Whether the trace contains context switches; otherwise CPU occupancy is estimated from events.
    has_switches: bool,
    /// The lane of each stream's events, from its first event.
    lane_of_stream: Vec<Option<u32>>,
    /// Present if executable files can be read.
    stacks: Option<SampledStacks>,
}

impl<B: Gathers> Indexing<B> {
    fn new(
        recording: &Recording,
        facts: &Facts,
        mut builder: B,
        deriver: Deriver<Seen>,
        names: usize,
    ) -> Self {
        let mut lists = Lists::new(recording, facts, names);
        let mut cpus: Vec<u32> =
            recording.streams.iter().filter_map(|stream| Some(stream.cpu?.0)).collect();
        cpus.sort_unstable();
        for cpu in cpus {
            lists.cpu_lane(&mut builder, cpu);
        }
        Self {
            builder,
            lists,
            deriver,
            counts: Counts::default(),
            ran: Ran::default(),
            has_switches: facts.has_switches(),
            lane_of_stream: vec![None; recording.streams.len()],
            stacks: None,
        }
    }

    fn event(&mut self, event: &Event<'_>, at: &At, told: &[(At, Fact)], facts: &Facts) {
        let sample = self.stacks.as_mut().and_then(|stacks| stacks.read(event));
        let class = self.lists.class(event);
        let thread = self.lists.thread_told(&mut self.builder, at.writer, facts.threads());
        let packets = packets::lane_name(event)
            .and_then(|name| self.lists.packets_lane(&mut self.builder, name));
        let lane = match (at.cpu, packets) {
            (Some(cpu), _) => self.lists.cpu_lane(&mut self.builder, cpu),
            (None, Some(lane)) => lane,
            (None, None) => self.lists.owner_lane(&mut self.builder, at.owner()),
        };
        if let Some(place) = self.lane_of_stream.get_mut(at.stream.0 as usize) {
            place.get_or_insert(lane);
        } else {
            self.lane_of_stream.resize(at.stream.0 as usize + 1, None);
            self.lane_of_stream[at.stream.0 as usize] = Some(lane);
        }
        // Writer records are not shown. They also occur at the start of a packet, where the writer
        // need not have run.
        let Some(class) = class else { return };
        let time = at.time.0;
        if let Some(cpu) = at.cpu.filter(|_| !self.has_switches) {
            let is_switch = event.class.name.ends_with(":CSWITCH");
            let application = self.lists.application_of(thread);
            self.ran.seen(&mut self.builder, (cpu, lane), time, (thread, application), is_switch);
        }
        let point = self.builder.point(packets.unwrap_or(lane), time, class, thread);
        self.lists.count(class, thread, time);
        if let Some((stacks, sample)) = self.stacks.as_mut().zip(sample) {
            let drawing = (&mut self.lists, &mut self.builder as &mut dyn Gathers);
            stacks.draw(drawing, &sample, event, (time, point));
        }
        for (at, fact) in told {
            self.fact(at, *fact, (point, class, thread), facts);
        }
    }

    fn fact(
        &mut self,
        at: &At,
        fact: Fact,
        (point, class, thread): (PointRef, u16, u32),
        facts: &Facts,
    ) {
        if matches!(fact, Fact::Send { .. }) {
            self.lists.sends(class);
        }
        if matches!(fact, Fact::Receive { .. }) {
            self.lists.receives(class);
        }
        let Self { lists, builder, counts, ran, deriver, .. } = self;
        let event = (point, thread);
        let drawing = &mut Drawing::new((lists, builder), (counts, ran), facts.threads(), event);
        deriver.fact(facts.kinds(), at, fact, drawing);
    }
}

impl Indexing<Builder> {
    /// Adds lanes of threads whose instructions were recorded.
    fn flows(&mut self, flow: &Timeline<'_>) -> Vec<FlowLane> {
        let mut all = Vec::new();
        for line in 0..flow.count() {
            let Some(traced) = flow.traced(line) else { continue };
            if let Some((begin, end)) = flow.extent(line) {
                self.builder.reach(begin.cast_signed());
                self.builder.reach(end.cast_signed());
            }
            let owner = Owner::Thread(Writer { pid: traced.pid, tid: traced.tid });
            let lane = self.lists.owner_lane(&mut self.builder, owner);
            let counter = self.lists.flow_counter(&mut self.builder, lane);
            all.push(FlowLane { lane, counter });
        }
        all
    }

    fn finish(
        mut self,
        (recording, flow): (&Recording, Option<&Timeline<'_>>),
        facts: &Facts,
        damage: &[Damage],
        identity: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let last = self.builder.extent().map(|(_, last)| Nanos(last));
        // Complete spans may end after the last event.
        let ended = self.deriver.ended(last);
        if let Some(ended) = ended {
            self.builder.reach(ended.0);
        }
        let Self { lists, builder, counts, ran, deriver, .. } = &mut self;
        let nobody = (PointRef::default(), NOBODY);
        let drawing = &mut Drawing::new((lists, builder), (counts, ran), facts.threads(), nobody);
        deriver.finish(facts.kinds(), ended, drawing);
        self.ran.end(&mut self.builder);
        if let Some(stacks) = &mut self.stacks {
            stacks.end(&mut self.builder);
        }
        let flows = flow.map_or_else(Vec::new, |flow| self.flows(flow));
        // The session begins with its first event; earlier losses are shown at this begin.
        let (origin, last) = self.builder.extent().unwrap_or((0, 0));
        let Self { mut builder, mut lists, counts, lane_of_stream, .. } = self;
        builder.rename_who_ran(lists.settle());
        lists.name_all(facts, &mut builder);
        let mut meta = lists.meta(facts, &counts);
        meta.origin = origin;
        meta.flows = flows;
        // The session includes the nanosecond of the last event.
        meta.end = u64::try_from(i128::from(last) - i128::from(origin) + 1).unwrap_or(1);
        meta.recordings = ended::recordings(recording, &meta);
        ended::contradictions(counts.contradictions(), &lists, origin, &mut meta);
        let lane_of = |stream: u32| lane_of_stream.get(stream as usize).copied().flatten();
        ended::missing(recording, damage, &lane_of, &mut meta, &mut builder);
        if let Some(reason) = lists.left_out_levels() {
            let file = "counters".to_owned();
            meta.damage.push(Missing { file, reason, ..Missing::default() });
        }
        builder.finish(meta, identity, out)
    }
}

/// Whether a loss is real: some formats report losses of zero events.
fn is_real(loss: &lateralis_model::Loss) -> bool {
    loss.count != Some(0) || loss.cause == LossCause::Packets
}

/// Number of the first thread and the first application, which are used for events without a known one.
const NOBODY: u32 = 0;
