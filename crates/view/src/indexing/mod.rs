// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the events of a recording to what stands on which lane.
//!
//! ```text
//! events in the order of time ─ Facts ─┬─ points of lanes
//!                                      ├─ spans, states, who ran ─► intervals
//!                                      └─ messages, levels
//! ```

mod ended;
mod growing;
mod lists;
mod paired;
mod ran;
mod streams;
mod who;

use std::io::{self, Write};

use lateralis_lanes::{Builder, Gathers, PointRef, Spool};
use lateralis_model::{Damage, Event, Interval, LossCause, Source, Writer};
use lateralis_store::Recording;
use lateralis_store::facts::{At, Fact, Facts, Owner};

pub use growing::{Grow, Marks, Now};
use lists::Lists;
use paired::Paired;
use ran::Ran;

use crate::packets;

/// The record that names the writer of what follows: every event says its writer already.
const WRITER: &str = "lateralis:WRITER";

/// Told now and then how many events have been read, and which share of the time that is.
pub type Progress<'a> = &'a mut dyn FnMut(u64, f64);

/// Events between two words about progress.
const ROUND: u64 = 1 << 17;

/// Writes the index of a recording whose names are known ([`Recording::learn_names`]).
///
/// Cost: a pass over all events, some 200 ns each. Memory: see [`Builder`].
///
/// # Errors
/// Those of `out`.
pub fn index(
    recording: &Recording,
    identity: &str,
    spool: Box<dyn Spool>,
    progress: Progress<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let trace = recording.annotated();
    let mut facts = Facts::new(&trace, &recording.streams);
    let paired = Paired::new(recording, &facts);
    let mut indexing = Indexing::new(recording, &facts, Builder::with_spool(spool), paired, 0);
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
    indexing.finish(recording, &facts, &damage, identity, out)
}

/// How far a time is from the begin to the end.
fn share(recording: &Recording, time: i64) -> f64 {
    let Interval { begin: Some(begin), end: Some(end) } = recording.source.interval() else {
        return 0.0;
    };
    let (passed, all) = (time.saturating_sub(begin.0), end.0.saturating_sub(begin.0));
    (passed as f64 / all.max(1) as f64).clamp(0.0, 1.0)
}

/// What is known so far.
struct Indexing<B: Gathers> {
    builder: B,
    lists: Lists,
    paired: Paired,
    ran: Ran,
    /// Whether the trace tells of switches, so that nobody needs to guess who runs.
    has_switches: bool,
    /// Of each stream the lane of its events, by those seen.
    lane_of_stream: Vec<Option<u32>>,
}

impl<B: Gathers> Indexing<B> {
    fn new(
        recording: &Recording,
        facts: &Facts,
        mut builder: B,
        paired: Paired,
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
            paired,
            ran: Ran::default(),
            has_switches: facts.has_switches(),
            lane_of_stream: vec![None; recording.streams.len()],
        }
    }

    fn event(&mut self, event: &Event<'_>, at: &At, told: &[(At, Fact)], facts: &Facts) {
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
        // What is not shown says who writes, at the begin of a packet as well: nobody need have run then.
        let Some(class) = class else { return };
        let time = at.time.0;
        if let Some(cpu) = at.cpu.filter(|_| !self.has_switches) {
            let is_switch = event.class.name.ends_with(":CSWITCH");
            let application = self.lists.application_of(thread);
            self.ran.seen(&mut self.builder, (cpu, lane), time, (thread, application), is_switch);
        }
        let point = self.builder.point(packets.unwrap_or(lane), time, class, thread);
        self.lists.count(class, thread, time);
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
        match fact {
            Fact::Switch { from, to, from_is_whole, .. } => {
                let Some(cpu) = at.cpu else { return };
                let lane = self.lists.cpu_lane(&mut self.builder, cpu);
                let who = [from, to].map(|tid| {
                    let thread = (tid != 0).then(|| {
                        let who = Some(Writer { pid: facts.threads().pid(tid), tid });
                        self.lists.thread_told(&mut self.builder, who, facts.threads())
                    });
                    thread.map(|thread| (thread, self.lists.application_of(thread)))
                });
                let builder = &mut self.builder;
                self.ran.switched(builder, (cpu, lane), at.time.0, who, from_is_whole);
            }
            Fact::Level { counter, value } => {
                let kind = facts.kinds().counters.get(counter as usize);
                let owner = match at.cpu {
                    Some(cpu) if kind.is_some_and(|kind| kind.is_of_cpu) => Owner::Cpu(cpu),
                    _ if kind.is_some_and(|kind| kind.key.is_some()) => Owner::of_process(at),
                    _ => at.owner(),
                };
                let lane = if owner == Owner::Process(None) { at.owner() } else { owner };
                let name = kind.map_or_else(String::new, |kind| kind.label());
                let place = (counter, owner);
                let counter = self.lists.counter(&mut self.builder, place, lane, &name);
                self.builder.level(counter, at.time.0, value);
            }
            Fact::Wake { .. } => {}
            _ => {
                if matches!(fact, Fact::Send { .. }) {
                    self.lists.sends(class);
                }
                if matches!(fact, Fact::Receive { .. }) {
                    self.lists.receives(class);
                }
                let Self { paired, lists, builder, .. } = self;
                paired.fact(at, fact, (point, thread), facts.kinds(), lists, builder);
            }
        }
    }
}

impl Indexing<Builder> {
    fn finish(
        mut self,
        recording: &Recording,
        facts: &Facts,
        damage: &[Damage],
        identity: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.paired.end(&mut self.lists, &mut self.builder);
        self.ran.end(&mut self.builder);
        // The session begins with its first event: what was lost before that is lost at its begin.
        let (origin, last) = self.builder.extent().unwrap_or((0, 0));
        let Self { mut builder, mut lists, paired, lane_of_stream, .. } = self;
        builder.rename_who_ran(lists.settle());
        lists.name_all(facts, &mut builder);
        let mut meta = lists.meta(facts, &paired);
        meta.origin = origin;
        // The nanosecond of the last event belongs to the session.
        meta.end = u64::try_from(i128::from(last) - i128::from(origin) + 1).unwrap_or(1);
        meta.recordings = ended::recordings(recording, &meta);
        let lane_of = |stream: u32| lane_of_stream.get(stream as usize).copied().flatten();
        ended::missing(recording, damage, &lane_of, &mut meta, &mut builder);
        builder.finish(meta, identity, out)
    }
}

/// Whether a loss is one at all: some formats tell of none.
fn is_real(loss: &lateralis_model::Loss) -> bool {
    loss.count != Some(0) || loss.cause == LossCause::Packets
}

/// The first of threads and applications: that of events of which nobody knows any.
const NOBODY: u32 = 0;
