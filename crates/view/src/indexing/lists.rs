// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Classes, threads, applications and lanes, numbered in the order of their appearance.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use lateralis_lanes::{
    Application, Budget, Channel, Class, Counter, Gathers, Lane, LaneKind, Meta, SpanKind, Thread,
};
use lateralis_model::{Event, Names, Source, Writer};
use lateralis_store::Recording;
use lateralis_store::facts::{Facts, Owner};

use super::WRITER;
use super::derived::Counts;
use crate::packets;

/// The name of a counter of instructions.
const FLOW_COUNTER: &str = "instructions per µs";

/// Growing lists. An entry keeps its number.
pub struct Lists {
    pub(super) known: Names,
    /// Names of streams.
    streams: Vec<String>,
    classes: Vec<Class>,
    ids: HashMap<String, u16, RandomState>,
    /// By stream class and class; `None` if the class is not shown.
    class_ids: Vec<Vec<Option<u16>>>,
    pub(super) threads: Vec<Thread>,
    pub(super) thread_ids: HashMap<Writer, u32, RandomState>,
    pub(super) last_thread: Option<(Writer, u32)>,
    /// Threads whose process is not known yet; each is assumed to be the first thread of a process.
    pub(super) guessed: HashMap<u32, u32, RandomState>,
    pub(super) applications: Vec<Application>,
    pub(super) application_ids: HashMap<u32, u32, RandomState>,
    /// Threads of each application.
    pub(super) members: Vec<u32>,
    /// Applications that turned out to be the same as another, with that other one.
    pub(super) merged: BTreeMap<u32, u32>,
    cpu_lanes: HashMap<u32, u32, RandomState>,
    packets_lanes: HashMap<String, u32, RandomState>,
    pub(super) owner_lanes: HashMap<Owner, u32, RandomState>,
    pub(super) process_lanes: HashMap<u32, u32, RandomState>,
    /// Lane shared by everything beyond the limit of lanes.
    pub(super) others_lane: Option<u32>,
    counters: Vec<Counter>,
    counter_ids: HashMap<(u32, Owner), u32, RandomState>,
    /// Values of counters beyond [`COUNTERS_MAX`].
    levels_left_out: u64,
    pub names: Vec<String>,
    name_ids: HashMap<String, u32, RandomState>,
    /// Budgets in schemas by kind of span.
    budgets: Vec<Vec<Budget>>,
    /// Changes whenever an entry is added or a name changes.
    pub(super) version: u64,
}

impl Lists {
    /// `span_names`: minimum number of names that are reserved for kinds of spans, which come first.
    pub fn new(recording: &Recording, facts: &Facts, span_names: usize) -> Self {
        let mut lists = Self {
            known: Names::default(),
            streams: Vec::new(),
            classes: Vec::new(),
            ids: HashMap::default(),
            class_ids: Vec::new(),
            threads: vec![Thread { name: "unknown".into(), ..Thread::default() }],
            thread_ids: HashMap::default(),
            last_thread: None,
            guessed: HashMap::default(),
            applications: vec![Application { name: "unknown".into(), ..Application::default() }],
            members: vec![1],
            merged: BTreeMap::new(),
            application_ids: HashMap::default(),
            cpu_lanes: HashMap::default(),
            packets_lanes: HashMap::default(),
            owner_lanes: HashMap::default(),
            process_lanes: HashMap::default(),
            others_lane: None,
            counters: Vec::new(),
            counter_ids: HashMap::default(),
            levels_left_out: 0,
            names: vec![String::new(); span_names],
            name_ids: HashMap::default(),
            budgets: Vec::new(),
            version: 1,
        };
        lists.learn(recording, facts);
        lists
    }

    /// Adds new classes and names of the same trace.
    pub fn learn(&mut self, recording: &Recording, facts: &Facts) {
        self.known.clone_from(&recording.names);
        self.streams = recording.streams.iter().map(|stream| stream.name.clone()).collect();
        let before = self.classes.len();
        let streams = &recording.source.trace().stream_classes;
        self.class_ids = streams
            .iter()
            .map(|stream| {
                let id = |class: &lateralis_model::EventClass| {
                    if class.name == WRITER {
                        return None;
                    }
                    // Classes with several descriptions, as in two versions of a schema, are one class.
                    let next = u16::try_from(self.ids.len()).ok().filter(|id| *id < u16::MAX)?;
                    let id = *self.ids.entry(class.name.clone()).or_insert(next);
                    if id == next {
                        self.classes.push(Class { name: class.name.clone(), ..Class::default() });
                    }
                    Some(id)
                };
                stream.event_classes.iter().map(id).collect()
            })
            .collect();
        self.version += (self.classes.len() - before) as u64;
        // Names begin with the kinds of spans, in their order.
        let spans = &facts.kinds().spans;
        if self.names.len() < spans.len() && self.name_ids.is_empty() {
            self.names.resize(spans.len(), String::new());
        }
        for (name, kind) in self.names.iter_mut().zip(spans) {
            if name.is_empty() {
                name.clone_from(&kind.name);
                self.version += 1;
            }
        }
        self.budgets = spans.iter().map(|kind| budgets(recording, &kind.name)).collect();
    }

    /// Sets names that are known from other sources than events.
    pub fn set_known(&mut self, names: Names) {
        self.known = names;
    }

    /// Sets names of streams, if their numbers differ from those in the opened recording.
    pub fn set_streams(&mut self, names: Vec<String>) {
        self.streams = names;
    }

    /// Changes whenever an entry is added or a name becomes known.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The class of an event; `None` if it is not shown.
    pub fn class(&self, event: &Event<'_>) -> Option<u16> {
        let of = self.class_ids.get(event.stream_class_index as usize)?;
        of.get(event.class_index as usize).copied().flatten()
    }

    pub fn count(&mut self, class: u16, thread: u32, time: i64) {
        if let Some(class) = self.classes.get_mut(class as usize) {
            class.count += 1;
            // Absolute while indexing; converted by the callers of `meta`.
            let time = time as u64;
            class.first = Some(class.first.map_or(time, |first| least(first, time)));
            class.last = Some(class.last.map_or(time, |last| most(last, time)));
        }
        let application = self.application_of(thread);
        if let Some(application) = self.applications.get_mut(application as usize) {
            application.events += 1;
        }
    }

    pub fn sends(&mut self, class: u16) {
        if let Some(class) = self.classes.get_mut(class as usize) {
            class.sends = true;
        }
    }

    pub fn receives(&mut self, class: u16) {
        if let Some(class) = self.classes.get_mut(class as usize) {
            class.receives = true;
        }
    }

    pub fn cpu_lane(&mut self, builder: &mut dyn Gathers, cpu: u32) -> u32 {
        *self.cpu_lanes.entry(cpu).or_insert_with(|| {
            self.version += 1;
            let name = format!("CPU {cpu}");
            let cpu = Some(cpu);
            let lane = Lane { kind: LaneKind::Cpu, name, cpu, ..Lane::default() };
            new_lane(&mut self.others_lane, builder, lane)
        })
    }

    /// The lane of a CPU, if it exists already.
    pub fn known_cpu_lane(&self, cpu: u32) -> Option<u32> {
        self.cpu_lanes.get(&cpu).copied()
    }

    /// The lane of packets with this name; `None` if there are too many.
    pub fn packets_lane(&mut self, builder: &mut dyn Gathers, name: String) -> Option<u32> {
        if let Some(lane) = self.packets_lanes.get(&name) {
            return Some(*lane);
        }
        if self.packets_lanes.len() >= packets::LANES_MAX {
            return None;
        }
        let kind = LaneKind::Packets;
        let lane = builder.lane(Lane { kind, name: name.clone(), ..Lane::default() });
        self.packets_lanes.insert(name, lane);
        self.version += 1;
        Some(lane)
    }

    /// The lane of the owner of events, spans and states.
    pub fn owner_lane(&mut self, builder: &mut dyn Gathers, owner: Owner) -> u32 {
        let writer = match owner {
            Owner::Cpu(cpu) => return self.cpu_lane(builder, cpu),
            Owner::Process(Some(pid)) => return self.process_lane(builder, pid),
            Owner::Thread(writer) => Some(writer),
            Owner::Stream(_) | Owner::Process(None) => None,
        };
        if let Some(lane) = self.owner_lanes.get(&owner) {
            return *lane;
        }
        let lane = match (owner, writer) {
            (Owner::Stream(stream), _) => {
                let name = self.streams.get(stream.0 as usize).cloned().unwrap_or_default();
                let lane = Lane { kind: LaneKind::Component, name, ..Lane::default() };
                new_lane(&mut self.others_lane, builder, lane)
            }
            (_, writer) => {
                let thread = self.thread(builder, writer);
                let parent = writer.map(|writer| self.process_lane(builder, writer.pid));
                let mut known = self.threads.get_mut(thread as usize);
                let mut lane = Lane { kind: LaneKind::Thread, parent, ..Lane::default() };
                if let Some(known) = &known {
                    (lane.pid, lane.tid) = (known.pid, known.tid);
                    lane.name.clone_from(&known.name);
                }
                let lane = new_lane(&mut self.others_lane, builder, lane);
                if let Some(known) = &mut known {
                    known.lane = Some(lane);
                }
                lane
            }
        };
        self.owner_lanes.insert(owner, lane);
        self.version += 1;
        lane
    }

    pub(super) fn process_lane(&mut self, builder: &mut dyn Gathers, pid: u32) -> u32 {
        if let Some(lane) = self.process_lanes.get(&pid) {
            return *lane;
        }
        let application = self.application(pid);
        let name = self.applications[application as usize].name.clone();
        let pid_known = Some(pid);
        let lane = Lane { kind: LaneKind::Process, name, pid: pid_known, ..Lane::default() };
        let lane = new_lane(&mut self.others_lane, builder, lane);
        self.process_lanes.insert(pid, lane);
        lane
    }

    /// The counter of an owner, on a separate lane below that of `below`; `None` if there are too many.
    pub fn counter(
        &mut self,
        builder: &mut dyn Gathers,
        of: (u32, Owner),
        below: Owner,
        name: &str,
    ) -> Option<u32> {
        if let Some(id) = self.counter_ids.get(&of) {
            return Some(*id);
        }
        if self.counters.len() >= COUNTERS_MAX {
            self.levels_left_out += 1;
            return None;
        }
        let parent = Some(self.owner_lane(builder, below));
        let kind = LaneKind::Counter;
        let lane = builder.lane(Lane { kind, name: name.into(), parent, ..Lane::default() });
        self.counters.push(Counter { name: name.into(), lane });
        self.version += 1;
        let id = self.counters.len() as u32 - 1;
        self.counter_ids.insert(of, id);
        Some(id)
    }

    /// Describes the values of counters without a lane; `None` if there are none.
    pub fn left_out_levels(&self) -> Option<String> {
        let count = self.levels_left_out;
        (count > 0).then(|| {
            format!("{count} values are not drawn: they are of counters beyond {COUNTERS_MAX}")
        })
    }

    /// Adds the instruction counter of a thread, on a separate lane below the thread's lane.
    pub fn flow_counter(&mut self, builder: &mut dyn Gathers, parent: u32) -> u32 {
        let (kind, name) = (LaneKind::Counter, FLOW_COUNTER.to_owned());
        let parent = Some(parent);
        let lane = builder.lane(Lane { kind, name: name.clone(), parent, ..Lane::default() });
        self.counters.push(Counter { name, lane });
        self.version += 1;
        self.counters.len() as u32 - 1
    }

    /// The number of a state's name.
    pub fn name(&mut self, name: &str) -> u32 {
        if let Some(id) = self.name_ids.get(name) {
            return *id;
        }
        self.names.push(name.to_owned());
        self.version += 1;
        let id = self.names.len() as u32 - 1;
        self.name_ids.insert(name.to_owned(), id);
        id
    }

    /// Updates all names from what is known now. A live session calls this repeatedly, so that its
    /// final names equal those of the finished recording when it is opened.
    pub fn name_all(&mut self, facts: &Facts, builder: &mut dyn Gathers) {
        let mut changed = false;
        let mut name = |own: &mut String, next: String| {
            changed |= *own != next;
            *own = next;
        };
        let told = |tid: u32| facts.threads().get(tid).and_then(|thread| thread.name.clone());
        for application in &mut self.applications {
            let Some(pid) = application.pid else { continue };
            // The first thread of a process has the number of the process.
            let known = self.known.processes.get(&pid).cloned().or_else(|| told(pid));
            name(&mut application.name, known.unwrap_or_else(|| format!("process {pid}")));
        }
        for thread in &mut self.threads {
            let Some(tid) = thread.tid else { continue };
            let known = self.known.threads.get(&tid).cloned().or_else(|| told(tid));
            let of = self.applications.get(thread.application as usize);
            let process = || of.filter(|_| thread.pid == Some(tid)).map(|of| of.name.clone());
            name(
                &mut thread.name,
                known.or_else(process).unwrap_or_else(|| format!("thread {tid}")),
            );
            let own = thread.lane.filter(|lane| Some(*lane) != self.others_lane);
            if let Some(lane) = own.and_then(|lane| builder.lane_mut(lane)) {
                lane.name.clone_from(&thread.name);
            }
        }
        for (pid, lane) in &self.process_lanes {
            if Some(*lane) == self.others_lane {
                continue;
            }
            let application = self.application_ids.get(pid);
            let application = application.and_then(|id| self.applications.get(*id as usize));
            if let Some((application, lane)) = application.zip(builder.lane_mut(*lane)) {
                lane.name.clone_from(&application.name);
            }
        }
        self.version += u64::from(changed);
    }

    /// Returns the lists for the index; times of classes are still absolute.
    pub fn meta(&self, facts: &Facts, counts: &Counts) -> Meta {
        let kinds = facts.kinds();
        let spans = kinds.spans.iter().zip(0..).map(|(kind, index)| SpanKind {
            name: kind.name.clone(),
            count: counts.of_spans(index),
            keys: kind.keys.clone(),
            budgets: self.budgets.get(index).cloned().unwrap_or_default(),
        });
        let channels = kinds.channels.iter().zip(0..).map(|(kind, index)| Channel {
            name: kind.name.clone(),
            count: counts.of_flows(index),
        });
        Meta {
            classes: self.classes.clone(),
            applications: self.applications.clone(),
            threads: self.threads.clone(),
            names: self.names.clone(),
            span_kinds: spans.collect(),
            channels: channels.collect(),
            counters: self.counters.clone(),
            orphans: counts.orphans(),
            ..Meta::default()
        }
    }
}

/// Limit of lanes of CPUs, processes and threads (approximate); a trace may have a million threads.
const LANES_MAX: u32 = 1 << 16;
/// Limit of counters with a lane; a counter with a key may have millions of instances.
pub(super) const COUNTERS_MAX: usize = 1 << 16;
/// Name of the shared lane.
const OTHERS: &str = "CPUs, processes and threads beyond 65536 lanes";

/// Adds a lane; beyond the limit, returns the shared lane.
fn new_lane(others: &mut Option<u32>, builder: &mut dyn Gathers, lane: Lane) -> u32 {
    if builder.lane_count() < LANES_MAX {
        return builder.lane(lane);
    }
    let kind = LaneKind::Component;
    let name = OTHERS.to_owned();
    *others.get_or_insert_with(|| builder.lane(Lane { kind, name, ..Lane::default() }))
}

/// Budgets of a kind of span in schemas.
fn budgets(recording: &Recording, span: &str) -> Vec<Budget> {
    let hertz = recording.source.trace().clocks.first().map(|clock| clock.frequency());
    let schemas = recording.meanings.schemas().iter();
    let of = schemas.flat_map(|schema| &schema.budgets).filter(|budget| budget.span == span);
    of.map(|budget| {
        let than = if budget.is_inclusive { "<=" } else { "<" };
        let (number, unit) = (budget.statistic.word(), budget.unit.word());
        let cycles = || Some(budget.limit_cycles()? * 1e9 / hertz? as f64);
        Budget {
            text: format!("{number} {than} {} {unit}", budget.limit_text()),
            number: number.to_owned(),
            limit_ns: budget.limit_ns().or_else(cycles),
            is_inclusive: budget.is_inclusive,
        }
    })
    .collect()
}

/// Minimum of two times in two's complement.
fn least(a: u64, b: u64) -> u64 {
    (a as i64).min(b as i64) as u64
}

fn most(a: u64, b: u64) -> u64 {
    (a as i64).max(b as i64) as u64
}
