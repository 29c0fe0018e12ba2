// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Classes, threads, applications and lanes, numbered as they come.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_lanes::{
    Application, Builder, Channel, Class, Counter, Lane, LaneKind, Meta, SpanKind, Thread,
};
use lateralis_model::{Event, Source, Writer};
use lateralis_store::Recording;
use lateralis_store::facts::{Facts, Owner};

use super::paired::Paired;
use super::{NOBODY, WRITER};

/// Lists that grow.
pub struct Lists<'a> {
    recording: &'a Recording,
    classes: Vec<Class>,
    /// By stream class and class; `None` of what is not shown.
    class_ids: Vec<Vec<Option<u16>>>,
    threads: Vec<Thread>,
    thread_ids: HashMap<Writer, u32, RandomState>,
    last_thread: Option<(Writer, u32)>,
    applications: Vec<Application>,
    application_ids: HashMap<u32, u32, RandomState>,
    cpu_lanes: HashMap<u32, u32, RandomState>,
    owner_lanes: HashMap<Owner, u32, RandomState>,
    process_lanes: HashMap<u32, u32, RandomState>,
    counters: Vec<Counter>,
    counter_ids: HashMap<(u32, Owner), u32, RandomState>,
    pub names: Vec<String>,
    name_ids: HashMap<String, u32, RandomState>,
}

impl<'a> Lists<'a> {
    pub fn new(recording: &'a Recording, facts: &Facts) -> Self {
        let mut classes: Vec<Class> = Vec::new();
        let mut ids: HashMap<&str, u16> = HashMap::new();
        let streams = &recording.source.trace().stream_classes;
        let class_ids = streams
            .iter()
            .map(|stream| {
                let id = |class: &'a lateralis_model::EventClass| {
                    if class.name == WRITER {
                        return None;
                    }
                    // Classes that are told in two ways, as by two versions of a schema, are one.
                    let next = u16::try_from(ids.len()).ok().filter(|id| *id < u16::MAX)?;
                    let id = *ids.entry(class.name.as_str()).or_insert(next);
                    if id == next {
                        classes.push(Class { name: class.name.clone(), ..Class::default() });
                    }
                    Some(id)
                };
                stream.event_classes.iter().map(id).collect()
            })
            .collect();
        let mut lists = Self {
            recording,
            classes,
            class_ids,
            threads: vec![Thread { name: "unknown".into(), ..Thread::default() }],
            thread_ids: HashMap::default(),
            last_thread: None,
            applications: vec![Application { name: "unknown".into(), ..Application::default() }],
            application_ids: HashMap::default(),
            cpu_lanes: HashMap::default(),
            owner_lanes: HashMap::default(),
            process_lanes: HashMap::default(),
            counters: Vec::new(),
            counter_ids: HashMap::default(),
            names: Vec::new(),
            name_ids: HashMap::default(),
        };
        // Kinds of spans are the first names, in their order.
        for kind in &facts.kinds().spans {
            lists.names.push(kind.name.clone());
        }
        lists
    }

    /// The class of an event, if it is one that is shown.
    pub fn class(&self, event: &Event<'_>) -> Option<u16> {
        let of = self.class_ids.get(event.stream_class_index as usize)?;
        of.get(event.class_index as usize).copied().flatten()
    }

    pub fn count(&mut self, class: u16, thread: u32, time: i64) {
        if let Some(class) = self.classes.get_mut(class as usize) {
            class.count += 1;
            // Absolute until all is known; see `meta`.
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

    pub fn thread(&mut self, writer: Option<Writer>) -> u32 {
        let Some(writer) = writer else { return NOBODY };
        if let Some((last, id)) = self.last_thread
            && last == writer
        {
            return id;
        }
        let id = match self.thread_ids.get(&writer) {
            Some(id) => *id,
            None => {
                let application = self.application(writer.pid);
                let name = self.recording.names.threads.get(&writer.tid).cloned();
                let thread = Thread {
                    pid: Some(writer.pid),
                    tid: Some(writer.tid),
                    name: name.unwrap_or_default(),
                    application,
                    lane: None,
                };
                self.threads.push(thread);
                let id = self.threads.len() as u32 - 1;
                self.thread_ids.insert(writer, id);
                id
            }
        };
        self.last_thread = Some((writer, id));
        id
    }

    pub fn application_of(&self, thread: u32) -> u32 {
        self.threads.get(thread as usize).map_or(NOBODY, |thread| thread.application)
    }

    fn application(&mut self, pid: u32) -> u32 {
        if let Some(id) = self.application_ids.get(&pid) {
            return *id;
        }
        let name = self.recording.names.processes.get(&pid).cloned().unwrap_or_default();
        self.applications.push(Application { name, pid: Some(pid), events: 0 });
        let id = self.applications.len() as u32 - 1;
        self.application_ids.insert(pid, id);
        id
    }

    pub fn cpu_lane(&mut self, builder: &mut Builder, cpu: u32) -> u32 {
        *self.cpu_lanes.entry(cpu).or_insert_with(|| {
            let name = format!("CPU {cpu}");
            let cpu = Some(cpu);
            builder.lane(Lane { kind: LaneKind::Cpu, name, cpu, ..Lane::default() })
        })
    }

    /// The lane of whatever events, spans and states are of.
    pub fn owner_lane(&mut self, builder: &mut Builder, owner: Owner) -> u32 {
        let writer = match owner {
            Owner::Cpu(cpu) => return self.cpu_lane(builder, cpu),
            Owner::Thread(writer) => Some(writer),
            Owner::Stream(_) => None,
        };
        if let Some(lane) = self.owner_lanes.get(&owner) {
            return *lane;
        }
        let lane = match (owner, writer) {
            (Owner::Stream(stream), _) => {
                let stream = self.recording.streams.get(stream.0 as usize);
                let name = stream.map(|stream| stream.name.clone()).unwrap_or_default();
                builder.lane(Lane { kind: LaneKind::Component, name, ..Lane::default() })
            }
            (_, writer) => {
                let thread = self.thread(writer);
                let parent = writer.map(|writer| self.process_lane(builder, writer.pid));
                let known = self.threads.get_mut(thread as usize);
                let mut lane = Lane { kind: LaneKind::Thread, parent, ..Lane::default() };
                if let Some(known) = known {
                    known.lane = Some(builder.lane_count());
                    (lane.pid, lane.tid) = (known.pid, known.tid);
                    lane.name.clone_from(&known.name);
                }
                builder.lane(lane)
            }
        };
        self.owner_lanes.insert(owner, lane);
        lane
    }

    fn process_lane(&mut self, builder: &mut Builder, pid: u32) -> u32 {
        if let Some(lane) = self.process_lanes.get(&pid) {
            return *lane;
        }
        let application = self.application(pid);
        let name = self.applications[application as usize].name.clone();
        let pid_known = Some(pid);
        let lane = Lane { kind: LaneKind::Process, name, pid: pid_known, ..Lane::default() };
        let lane = builder.lane(lane);
        self.process_lanes.insert(pid, lane);
        lane
    }

    /// The counter of an owner, on a lane of its own below that of the owner.
    pub fn counter(&mut self, builder: &mut Builder, of: (u32, Owner), name: &str) -> u32 {
        if let Some(id) = self.counter_ids.get(&of) {
            return *id;
        }
        let parent = Some(self.owner_lane(builder, of.1));
        let kind = LaneKind::Counter;
        let lane = builder.lane(Lane { kind, name: name.into(), parent, ..Lane::default() });
        self.counters.push(Counter { name: name.into(), lane });
        let id = self.counters.len() as u32 - 1;
        self.counter_ids.insert(of, id);
        id
    }

    /// The number of the name of a state.
    pub fn name(&mut self, name: &str) -> u32 {
        if let Some(id) = self.name_ids.get(name) {
            return *id;
        }
        self.names.push(name.to_owned());
        let id = self.names.len() as u32 - 1;
        self.name_ids.insert(name.to_owned(), id);
        id
    }

    /// Lists as an index has them; times of classes are still those of the trace.
    pub fn meta(mut self, facts: &Facts, paired: &Paired, builder: &mut Builder) -> Meta {
        // Names that only later events told.
        for thread in &mut self.threads {
            let known = thread.tid.and_then(|tid| facts.threads().get(tid)?.name.clone());
            if thread.name.is_empty() {
                thread.name = known.unwrap_or_default();
            }
        }
        for application in &mut self.applications {
            if let Some(pid) = application.pid.filter(|_| application.name.is_empty()) {
                // The first thread of a process carries its number.
                let leader = facts.threads().get(pid).and_then(|thread| thread.name.clone());
                application.name = leader.unwrap_or_else(|| format!("process {pid}"));
            }
        }
        for thread in &mut self.threads {
            if let Some(tid) = thread.tid.filter(|_| thread.name.is_empty()) {
                let of = self.applications.get(thread.application as usize);
                thread.name = match of.filter(|_| thread.pid == Some(tid)) {
                    Some(application) => application.name.clone(),
                    None => format!("thread {tid}"),
                };
            }
            if let Some(lane) = thread.lane.and_then(|lane| builder.lane_mut(lane)) {
                lane.name.clone_from(&thread.name);
            }
        }
        for (pid, lane) in &self.process_lanes {
            let application = self.application_ids.get(pid);
            let application = application.and_then(|id| self.applications.get(*id as usize));
            if let Some((application, lane)) = application.zip(builder.lane_mut(*lane)) {
                lane.name.clone_from(&application.name);
            }
        }
        let kinds = facts.kinds();
        let spans = kinds.spans.iter().zip(0..).map(|(kind, index)| SpanKind {
            name: kind.name.clone(),
            count: paired.span_count(index),
            keys: kind.keys.clone(),
            budgets: budgets(self.recording, &kind.name),
        });
        let channels = kinds.channels.iter().zip(0..).map(|(kind, index)| Channel {
            name: kind.name.clone(),
            count: paired.message_count(index),
        });
        Meta {
            classes: self.classes,
            applications: self.applications,
            threads: self.threads,
            names: self.names,
            span_kinds: spans.collect(),
            channels: channels.collect(),
            counters: self.counters,
            orphans: paired.orphans(),
            ..Meta::default()
        }
    }
}

/// What schemas promise of a span: `p99 < 50 us`.
fn budgets(recording: &Recording, span: &str) -> Vec<String> {
    let schemas = recording.meanings.schemas().iter();
    let of = schemas.flat_map(|schema| &schema.budgets).filter(|budget| budget.span == span);
    of.map(|budget| {
        let than = if budget.is_inclusive { "<=" } else { "<" };
        let (statistic, unit) = (budget.statistic.word(), budget.unit.word());
        format!("{statistic} {than} {} {unit}", budget.limit_text())
    })
    .collect()
}

/// Of two times in two's complement.
fn least(a: u64, b: u64) -> u64 {
    (a as i64).min(b as i64) as u64
}

fn most(a: u64, b: u64) -> u64 {
    (a as i64).max(b as i64) as u64
}
