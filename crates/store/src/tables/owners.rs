// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads of events: the thread that runs on a CPU, processes of threads, names.
//!
//! Parts of a trace are read in any order, on any thread, so information about threads in events is
//! collected before, in one pass over the few classes that contain it.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use lateralis_analysis::Gaps;
use lateralis_model::{
    ColumnBatch, ColumnRequest, Event, EventClass, Fields, Host, Interval, Place, Slot, Source,
    Trace, Want, Wanted, Writer,
};
use lateralis_semantics::facts::name_of_idle;
use lateralis_units::Nanos;

use crate::Recording;

/// Threads and processes that are remembered: a hostile trace may name any number.
const MAX_NAMES: usize = 1 << 20;

/// `CLONE_THREAD` [include/uapi/linux/sched.h].
const CLONE_THREAD: u64 = 0x0001_0000;

/// Information about threads in a class, with the names of its fields.
#[derive(Debug, Clone, Copy)]
enum Tells {
    /// A CPU switches threads.
    Switch,
    /// A thread: its id, process and name.
    Thread { tid: &'static str, pid: &'static str, name: &'static str },
    /// A thread created by that of the event: flags determine whether it belongs to its process or a new
    /// one.
    Made,
    /// A process: its id and name.
    Process,
}

/// Such classes, by the last component of the event name (see `crate::facts`).
const TELLERS: [(&str, Tells); 11] = [
    ("sched_switch", Tells::Switch),
    (
        "sched_process_fork",
        Tells::Thread { tid: "child_tid", pid: "child_pid", name: "child_comm" },
    ),
    ("lttng_statedump_process_state", Tells::Thread { tid: "tid", pid: "pid", name: "name" }),
    ("task_newtask", Tells::Made),
    ("thread_switched_in", Tells::Thread { tid: "thread_id", pid: "", name: "name" }),
    ("thread_create", Tells::Thread { tid: "thread_id", pid: "", name: "name" }),
    ("thread_name_set", Tells::Thread { tid: "thread_id", pid: "", name: "name" }),
    ("thread_info", Tells::Thread { tid: "thread_id", pid: "", name: "name" }),
    ("task_rename", Tells::Thread { tid: "pid", pid: "", name: "newcomm" }),
    ("THREAD_NAME", Tells::Thread { tid: "tid", pid: "", name: "name" }),
    ("PROCESS", Tells::Process),
];

fn teller(class: &EventClass) -> Option<Tells> {
    let last = class.name.rsplit(':').next().unwrap_or(&class.name);
    TELLERS.iter().find(|(name, _)| *name == last).map(|(_, tells)| *tells)
}

/// Threads and names of a recording.
#[derive(Debug, Default)]
pub struct Owners {
    /// Times of the switches of each CPU with the next thread, in time order.
    switches: HashMap<u32, Vec<(Nanos, u32)>>,
    /// Gaps in which switches may be missing.
    gaps: Gaps,
    pids: HashMap<u32, u32>,
    /// New threads: time, id, and creator if they belong to its process.
    made: Vec<(Nanos, u32, Option<u32>)>,
    /// Names, and the times at which they were reported.
    threads: BTreeMap<u32, (Nanos, String)>,
    processes: BTreeMap<u32, String>,
}

impl Owners {
    /// Reads the threads and names of a recording.
    ///
    /// Cost: a pass over the columns of these classes, for traces that have some; 16 bytes for each
    /// switch.
    pub fn of(recording: &Recording) -> Self {
        let mut owners = Self { processes: recording.names.processes.clone(), ..Self::default() };
        for (tid, name) in &recording.names.threads {
            owners.threads.insert(*tid, (Nanos(i64::MIN), name.clone()));
        }
        let source = &recording.source;
        let trace = source.trace();
        let (wanted, any) = wanted(trace);
        if !any {
            return owners;
        }
        let parts: Vec<usize> = (0..Source::parts(source).len()).collect();
        let request =
            ColumnRequest { parts: &parts, interval: Interval::default(), wanted: &wanted };
        let cpus: Vec<Option<u32>> =
            recording.streams.iter().map(|stream| stream.cpu.map(|cpu| cpu.0)).collect();
        let mut slots = Vec::new();
        let inside = source.columns(&request, &mut |batch| {
            each_event(batch, trace, &mut slots, &mut |event| {
                if let Some(tells) = teller(event.class) {
                    let of_stream = cpus.get(event.stream.0 as usize).copied().flatten();
                    let host = event.stream_class.host;
                    owners.take(
                        (event, host),
                        tells,
                        event.packet.cpu.map(|cpu| cpu.0).or(of_stream),
                    );
                }
            });
            ControlFlow::Continue(())
        });
        owners.switches.values_mut().for_each(|of_cpu| of_cpu.sort_by_key(|(time, _)| *time));
        owners.made.sort_by_key(|(time, ..)| *time);
        for (_, thread, maker) in std::mem::take(&mut owners.made) {
            let process = maker.map_or(Some(thread), |maker| owners.pids.get(&maker).copied());
            if let Some(process) = process {
                owners.pids.insert(thread, process);
            }
        }
        owners.gaps = recording.gaps(&recording.all_damage(inside));
        owners
    }

    fn take(&mut self, (event, host): (&Event<'_>, Host), tells: Tells, cpu: Option<u32>) {
        let Some(fields) = event.payload() else { return };
        let number = |fields: Fields<'_>, names: &[&str]| {
            number_of(fields, names).map(|number| host.thread(number))
        };
        match tells {
            Tells::Switch => {
                for (id, name) in [
                    (["prev_tid", "prev_pid"], "prev_comm"),
                    (["next_tid", "next_pid"], "next_comm"),
                ] {
                    if let Some(tid) = number(fields, &id) {
                        self.named(tid, text(fields, name), event.time);
                    }
                }
                let of_context = || number_of(event.common_context()?, &["cpu_id"]);
                let cpu = cpu.or_else(|| of_context().map(|cpu| host.cpu(cpu)));
                if let (Some(cpu), Some(next)) = (cpu, number(fields, &["next_tid", "next_pid"])) {
                    self.switches.entry(cpu).or_default().push((event.time, next));
                }
            }
            Tells::Thread { tid, pid, name } => {
                let thread = number(fields, &[tid]);
                let process = number(fields, &[pid]).filter(|_| thread.is_some());
                // Without a thread field, the kernel's pid is the thread id.
                let Some(thread) = thread.or_else(|| number(fields, &[pid])) else { return };
                if let Some(process) = process
                    && (self.pids.len() < MAX_NAMES || self.pids.contains_key(&thread))
                {
                    self.pids.insert(thread, process);
                }
                self.named(thread, text(fields, name), event.time);
            }
            Tells::Made => {
                let Some(thread) = number(fields, &["pid"]) else { return };
                self.named(thread, text(fields, "comm"), event.time);
                if let Some(flags) = fields.get("clone_flags").and_then(|field| field.as_u64())
                    && self.made.len() < MAX_NAMES
                {
                    let of_context = || number(event.common_context()?, &["tid", "vtid"]);
                    let maker = event.writer.map(|writer| writer.tid).or_else(of_context);
                    let maker = maker.filter(|_| flags & CLONE_THREAD != 0);
                    let is_known = flags & CLONE_THREAD == 0 || maker.is_some();
                    self.made.extend(is_known.then_some((event.time, thread, maker)));
                }
            }
            Tells::Process => {
                if let (Some(pid), Some(name)) = (number(fields, &["pid"]), text(fields, "name"))
                    && self.processes.len() < MAX_NAMES
                {
                    // The name of a process in the report is the last one that the recorder saw.
                    self.processes.entry(pid).or_insert(name);
                }
            }
        }
    }

    fn named(&mut self, tid: u32, name: Option<String>, time: Nanos) {
        let name = name.map(|name| if tid == 0 { name_of_idle(&name).to_owned() } else { name });
        let Some(name) = name.filter(|name| !name.is_empty()) else { return };
        let is_room = self.threads.len() < MAX_NAMES;
        match self.threads.get_mut(&tid) {
            Some((told, _)) if *told > time => {}
            Some(known) => *known = (time, name),
            None if is_room => {
                self.threads.insert(tid, (time, name));
            }
            None => {}
        }
    }

    /// The thread that runs on a CPU at the time of an event; for a switch, the one that leaves. `None`
    /// if a switch since the last one may be missing, and if another event is a switch of the same time:
    /// their order is not stored.
    ///
    /// Cost: two binary searches.
    pub fn running(&self, cpu: u32, time: Nanos, is_switch: bool) -> Option<Writer> {
        let of_cpu = self.switches.get(&cpu)?;
        let after = of_cpu.partition_point(|(switched, _)| *switched < time);
        let simultaneous = of_cpu.get(after + usize::from(is_switch));
        if simultaneous.is_some_and(|(switched, _)| *switched == time) {
            return None;
        }
        let (since, tid) = *of_cpu.get(after.checked_sub(1)?)?;
        if self.gaps.between(since, time) {
            return None;
        }
        Some(Writer { pid: self.pid(tid), tid })
    }

    /// The process of a thread; the thread id if unknown.
    pub fn pid(&self, tid: u32) -> u32 {
        self.pids.get(&tid).copied().unwrap_or(tid)
    }

    /// The name of a process: its own, otherwise that of its first thread.
    pub fn process(&self, pid: u32) -> Option<&str> {
        let own = self.processes.get(&pid).map(String::as_str);
        own.or_else(|| self.thread(pid))
    }

    /// The name of a thread.
    pub fn thread(&self, tid: u32) -> Option<&str> {
        self.threads.get(&tid).map(|(_, name)| name.as_str())
    }

    /// Threads that events name, though they may have written nothing.
    pub fn known(&self) -> impl Iterator<Item = Writer> + '_ {
        let switched = self.switches.values().flatten().map(|(_, tid)| *tid);
        let told = self.threads.keys().copied().chain(self.pids.keys().copied());
        let all: std::collections::BTreeSet<u32> = switched.chain(told).collect();
        all.into_iter().map(|tid| Writer { pid: self.pid(tid), tid })
    }
}

fn wanted(trace: &Trace) -> (Wanted, bool) {
    let (mut wanted, mut any) = (Wanted::counts(trace), false);
    for (stream, class) in (0..).zip(&trace.stream_classes) {
        for (index, event) in (0..).zip(&class.event_classes) {
            if teller(event).is_some() {
                wanted = wanted.with(stream, index, Want::All);
                any = true;
            }
        }
    }
    (wanted, any)
}

fn number_of(fields: Fields<'_>, names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| Some(fields.get(name)?.as_u64()? as u32))
}

fn text(fields: Fields<'_>, name: &str) -> Option<String> {
    fields.get(name)?.as_text().map(std::borrow::Cow::into_owned)
}

/// Visits the selected events of a batch one by one, in order. For those that have columns the writer is
/// that of the batch.
pub fn each_event(
    batch: &dyn ColumnBatch,
    trace: &Trace,
    slots: &mut Vec<Slot>,
    see: &mut dyn FnMut(&Event<'_>),
) {
    let stream_class_index = batch.stream_class();
    let Some(stream_class) = trace.stream_classes.get(stream_class_index as usize) else { return };
    let mut next = vec![0; batch.class_count()];
    let mut rows = 0;
    let mut writers = Writers::new(batch);
    for (at, place) in (0..).zip(batch.order().iter()) {
        let writer = writers.at(at);
        let class_index = match place {
            Place::Row(_) => {
                see(&batch.row(rows));
                rows += 1;
                continue;
            }
            Place::Columns(class) => class,
        };
        let found = (0..next.len()).find(|&index| batch.class(index).class == class_index);
        let Some(index) = found else { continue };
        let (class, event) = (batch.class(index), next[index]);
        next[index] += 1;
        slots.clear();
        slots
            .extend((0..class.columns).map(|column| {
                batch.column(index, column).slot(event).unwrap_or(Slot::Unsigned(0))
            }));
        see(&Event {
            stream: batch.stream(),
            stream_class_index,
            stream_class,
            class_index,
            class: &stream_class.event_classes[class_index as usize],
            ticks: stream_class.clock.map(|_| lateralis_units::Ticks(class.ticks[event])),
            time: class.times[event],
            writer,
            packet: batch.packet(),
            bytes: batch.bytes(),
            packet_slots: &[],
            slots,
        });
    }
}

/// Writers of the events of a batch; queried in order.
pub struct Writers<'b> {
    runs: std::iter::Peekable<std::slice::Iter<'b, (u32, Writer)>>,
    current: Option<Writer>,
}

impl<'b> Writers<'b> {
    pub fn new(batch: &'b dyn ColumnBatch) -> Self {
        Self { runs: batch.writers().iter().peekable(), current: None }
    }

    /// Writer of the event at this position in the order.
    #[inline]
    pub fn at(&mut self, place: u32) -> Option<Writer> {
        while let Some((_, writer)) = self.runs.next_if(|(from, _)| *from <= place) {
            self.current = Some(*writer);
        }
        self.current
    }
}
