// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples of call stacks in the buffers of `perf_event_open`, and the data needed to interpret them:
//! mapped files, and names of threads. Pure: bytes in, records out; the bytes are not trusted.
//!
//! Events and fields are those that readers use for a file of perf (`crates/perfdata`), so functions and
//! call paths are derived from both in the same way. The schema language has no structures: registers
//! and their mask are separate fields here.

mod known;
mod record;

use std::collections::HashSet;
use std::sync::Arc;

use lateralis_pleco::Schema;
use lateralis_ring::{LossCounts, abi};

pub use self::known::MappedFile;
use self::known::Shared;
use self::record::{
    Fields, HEADER_BYTES, MISC_CPU_MODE, MISC_EXEC, MISC_SWITCH_OUT, MISC_SWITCH_OUT_PREEMPT,
    RECORD_COMM, RECORD_EXIT, RECORD_FORK, RECORD_LOST, RECORD_LOST_SAMPLES, RECORD_MMAP2,
    RECORD_SAMPLE, RECORD_SWITCH, RECORD_SWITCH_CPU_WIDE, RECORD_THROTTLE, RECORD_UNTHROTTLE,
    Sample, TRAILER_BYTES, mapped, text,
};
use super::clock::ClockRelation;
use super::layout::{EventPlan, KernelEvents};
use crate::classes::RegisteredSchema;
use crate::source::{Introductions, Sink, Thread};

/// The kernel's value for the id of a thread that has ended, or is not visible from this namespace.
const NOBODY: u32 = u32::MAX;

/// Indices of the events in the schema.
mod event {
    pub(super) const SAMPLE: u16 = 0;
    pub(super) const MMAP2: u16 = 1;
    pub(super) const MMAP2_BUILD_ID: u16 = 2;
    pub(super) const COMM: u16 = 3;
    pub(super) const FORK: u16 = 4;
    pub(super) const EXIT: u16 = 5;
    pub(super) const THROTTLE: u16 = 6;
    pub(super) const UNTHROTTLE: u16 = 7;
    pub(super) const BUILD_ID: u16 = 8;
    pub(super) const CONTEXT_SWITCHES: u16 = 9;
    pub(super) const SWITCH: u16 = 10;
}

/// The counter that triggers samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// Cycles of the processor, if it can count them.
    Cycles,
    /// A timer of each CPU while the program runs on it.
    CpuClock,
}

impl Counter {
    /// The name of its event, as in perf except for characters that are not letters.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Cycles => "cycles",
            Counter::CpuClock => "cpu_clock",
        }
    }
}

/// Returns the build id of a file that a process has mapped.
pub type FindBuildId<'a> = dyn FnMut(u32, &MappedFile) -> Vec<u8> + 'a;

/// State of processes that existed before the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// A thread has this name.
    Name(Thread, Vec<u8>),
    /// A process and its parent.
    Parent(u32, u32),
    /// A file is mapped in a process.
    Mapped(u32, MappedFile),
    /// A file has this build id.
    BuildId(Vec<u8>, Vec<u8>),
}

/// Counts of the records in the buffer of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleSums {
    /// Samples that are in the recording.
    pub samples: u64,
    /// Samples dropped because recording was stopped when they were taken.
    pub stopped: u64,
    /// Records about mappings, threads and names.
    pub others: u64,
    /// Lost records, as reported by the kernel.
    pub missed: u64,
    /// Truncated records.
    pub unreadable: u64,
    /// Number of times that the kernel throttled sampling.
    pub throttled: u64,
}

/// Contents of the records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleLayout {
    /// Mask of the program's registers in each sample, which then contains its stack as well.
    pub registers: Option<u64>,
    /// Samples where threads leave a CPU, and context switches: all records then contain their event's id.
    pub has_switches: bool,
}

/// Converts samples to records.
#[derive(Debug)]
pub struct StackSamples {
    registered: Vec<RegisteredSchema>,
    base_id: u16,
    /// Events of the kernel at which stacks are sampled, by the kernel's number. If there are any, all
    /// samples contain raw bytes.
    events: Vec<Option<Box<EventPlan>>>,
    layout: SampleLayout,
    /// Ids of the events that sample where threads leave a CPU.
    of_switches: HashSet<u64>,
    known: Shared,
    /// Intervals without samples; the last one may be open.
    stopped: Vec<(u64, Option<u64>)>,
    sums: Vec<SampleSums>,
}

/// Fields of a call stack, with or without the stack memory from which it is unwound.
pub fn stack_fields(has_memory: bool) -> &'static [&'static str] {
    const ALL: [&str; 5] = [
        "callchain: [u64] @hex",
        "user_regs_abi: u64",
        "user_regs_mask: u64 @hex",
        "user_regs: [u64] @hex",
        "user_stack: bytes",
    ];
    if has_memory { &ALL } else { &ALL[..1] }
}

/// The schema for samples of this counter.
fn schema(counter: Counter, layout: SampleLayout) -> Option<Schema> {
    let stack = stack_fields(layout.registers.is_some()).join(", ");
    let place = "cpu_mode: enum : u8 { unknown, kernel, user, hypervisor,
    guest_kernel, guest_user }, ip: u64 @hex, period: u64";
    let switches = if layout.has_switches {
        format!(
            "event context_switches \"a thread leaves a processor\" ({place}, {stack}),
event switch \"a thread leaves a processor, or is back\" (out: bool, preempt: bool),"
        )
    } else {
        String::new()
    };
    let text = format!(
        "schema perf;
subsystem perf \"Samples of call stacks\" {{
event {} \"where a thread was\" ({place}, {stack}),
event mmap2 \"code was mapped\" (pid: i32 @pid, tid: i32 @tid, addr: u64 @hex, len: u64 @hex,
    pgoff: u64 @hex, maj: u32, min: u32, ino: u64, ino_generation: u64, prot: u32, flags: u32,
    filename: string),
event mmap2_build_id \"code was mapped\" (pid: i32 @pid, tid: i32 @tid, addr: u64 @hex,
    len: u64 @hex, pgoff: u64 @hex, build_id: bytes, prot: u32, flags: u32, filename: string),
event comm \"a thread has this name\" (pid: i32 @pid, tid: i32 @tid, comm: string, exec: bool),
event fork \"a thread was made\" (pid: i32 @pid, ppid: i32 @pid, tid: i32 @tid, ptid: i32 @tid),
event exit \"a thread ended\" (pid: i32 @pid, ppid: i32 @pid, tid: i32 @tid, ptid: i32 @tid),
event throttle \"fewer samples are taken\" (),
event unthrottle \"as many samples are taken as before\" (),
event build_id \"a file has this build id\" (pid: i32 @pid, build_id: bytes, filename: string),
{switches}
}};
",
        counter.name()
    );
    lateralis_pleco::compile("perf.pleco", text.as_bytes()).schema
}

fn somebody(pid: u32, tid: u32) -> Option<Thread> {
    (pid != NOBODY && tid != NOBODY).then_some(Thread { pid, tid })
}

impl StackSamples {
    /// Creates the converter for `streams` buffers; `events` are the kernel events at which stacks are also
    /// sampled ([`stack_fields`]). `None`: the schema has no id left.
    pub fn new(
        counter: Counter,
        layout: SampleLayout,
        events: KernelEvents,
        streams: usize,
    ) -> Option<StackSamples> {
        let schema = schema(counter, layout)?;
        let mut registered = events.schemas;
        let end = |last: &RegisteredSchema| last.base_id + last.schema.events.len() as u32;
        let base_id = registered.last().map_or(abi::INTERNAL_EVENT_COUNT, end);
        let is_room = base_id + schema.events.len() as u32 <= abi::EVENT_COUNT;
        let hash = schema.hash();
        registered.push(RegisteredSchema { base_id, schema: Arc::new(schema), hash });
        let base_id = u16::try_from(base_id).ok().filter(|_| is_room)?;
        Some(StackSamples {
            registered,
            base_id,
            events: events.plans,
            layout,
            of_switches: HashSet::new(),
            known: Shared::new(base_id),
            stopped: Vec::new(),
            sums: vec![SampleSums::default(); streams],
        })
    }

    /// Samples with this id are of a thread that leaves a CPU.
    pub fn switches_have(&mut self, id: u64) {
        self.of_switches.insert(id);
    }

    /// The schemas of the records.
    pub fn schemas(&self) -> &[RegisteredSchema] {
        &self.registered
    }

    /// Current mappings and names of threads, for the start of a recording.
    pub fn introductions(&self) -> Arc<dyn Introductions> {
        Arc::new(self.known.clone())
    }

    /// Counts so far for the buffer of a stream.
    pub fn sums(&self, stream: usize) -> SampleSums {
        self.sums.get(stream).copied().unwrap_or_default()
    }

    /// Stops samples from this time on, or resumes them. Mappings are always recorded.
    pub fn stop(&mut self, is_stopped: bool, now: u64) {
        match (self.stopped.last_mut(), is_stopped) {
            (Some((_, end @ None)), false) => *end = Some(now),
            (Some((_, None)), true) | (None, false) => {}
            (_, true) => self.stopped.push((now, None)),
            (Some(_), false) => {}
        }
    }

    /// All buffers have been read up to this time.
    pub fn turned(&mut self, until: u64) {
        self.stopped.retain(|(_, end)| end.is_none_or(|end| end >= until));
    }

    fn is_stopped_at(&self, time: u64) -> bool {
        let is_in =
            |(from, end): &(u64, Option<u64>)| time >= *from && end.is_none_or(|end| time < end);
        self.stopped.iter().any(is_in)
    }

    /// Converts the complete records in `bytes`, from the buffer of a stream, to that stream. `find` returns
    /// the build id of each file that a process maps; it is empty if unknown.
    pub fn records(
        &mut self,
        stream: usize,
        bytes: &[u8],
        relation: &ClockRelation,
        sink: &mut dyn Sink,
        find: &mut FindBuildId<'_>,
    ) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let size = rest
                .get(6..8)
                .map_or(0, |size| usize::from(u16::from_ne_bytes([size[0], size[1]])));
            let record = rest.split_at_checked(size).filter(|_| size >= HEADER_BYTES);
            let Some((record, behind)) = record else {
                let at = bytes.len() - rest.len();
                sink.damage(stream, format!("a buffer of the kernel ends at byte {at}: no size"));
                return;
            };
            if self.record(stream, record, relation, sink, find).is_none() {
                self.count(stream).unreadable += 1;
            }
            rest = behind;
        }
    }

    fn count(&mut self, stream: usize) -> &mut SampleSums {
        if stream >= self.sums.len() {
            self.sums.resize(stream + 1, SampleSums::default());
        }
        &mut self.sums[stream]
    }

    /// Converts one record; `None` if it is truncated.
    fn record(
        &mut self,
        stream: usize,
        record: &[u8],
        relation: &ClockRelation,
        sink: &mut dyn Sink,
        find: &mut FindBuildId<'_>,
    ) -> Option<()> {
        let mut header = Fields(record);
        let kind = header.half()?;
        let misc = header.take(4)?;
        let misc = u16::from_ne_bytes([misc[0], misc[1]]);
        if kind == RECORD_SAMPLE {
            let sample = Sample::read(header.0, !self.events.is_empty(), self.layout)?;
            return self.sample(stream, (misc, &sample), relation, sink);
        }
        let trailer_bytes = TRAILER_BYTES + if self.layout.has_switches { 8 } else { 0 };
        let trailer_at =
            record.len().checked_sub(trailer_bytes).filter(|at| *at >= HEADER_BYTES)?;
        let (body, trailer) = header.0.split_at_checked(trailer_at - HEADER_BYTES)?;
        let mut trailer = Fields(trailer);
        let by = somebody(trailer.half()?, trailer.half()?);
        let at = (relation.ticks(trailer.word()?), by);
        let mut fields = Fields(body);
        match kind {
            RECORD_MMAP2 => {
                let (thread, mut file) = mapped(fields)?;
                file.build_id = find(thread.pid, &file);
                self.mapped(stream, at, (thread, file), sink);
            }
            RECORD_COMM => {
                let thread = Thread { pid: fields.half()?, tid: fields.half()? };
                let exec = misc & MISC_EXEC != 0;
                self.named(stream, at, (thread, text(fields.0), exec), sink);
            }
            RECORD_FORK | RECORD_EXIT => {
                let [pid, ppid, tid, ptid] =
                    [fields.half()?, fields.half()?, fields.half()?, fields.half()?];
                let id = if kind == RECORD_FORK { event::FORK } else { event::EXIT };
                sink.record(stream, at, self.base_id + id, &mut |payload| {
                    for number in [pid, ppid, tid, ptid] {
                        payload.put(4, &number.to_ne_bytes());
                    }
                });
                let (thread, by) = (Thread { pid, tid }, Thread { pid: ppid, tid: ptid });
                if kind == RECORD_EXIT {
                    self.known.state().ended(thread);
                } else {
                    // Not locked while the next line locks it.
                    let name = self.known.state().made(by, thread);
                    if let Some(name) = name {
                        self.introduce(stream, at.0, thread, &name, sink);
                    }
                }
            }
            RECORD_SWITCH | RECORD_SWITCH_CPU_WIDE if self.layout.has_switches => {
                if self.is_stopped_at(at.0) {
                    return Some(());
                }
                let is = |bit: u16| [u8::from(misc & bit != 0)];
                sink.record(stream, at, self.base_id + event::SWITCH, &mut |payload| {
                    payload.put(1, &is(MISC_SWITCH_OUT));
                    payload.put(1, &is(MISC_SWITCH_OUT_PREEMPT));
                });
            }
            RECORD_THROTTLE | RECORD_UNTHROTTLE => {
                let is_throttle = kind == RECORD_THROTTLE;
                let id = if is_throttle { event::THROTTLE } else { event::UNTHROTTLE };
                sink.record(stream, at, self.base_id + id, &mut |_| {});
                self.count(stream).throttled += u64::from(is_throttle);
            }
            RECORD_LOST | RECORD_LOST_SAMPLES => {
                if kind == RECORD_LOST {
                    fields.word()?;
                }
                let missed = fields.word()?;
                let sums = self.count(stream);
                sums.missed = sums.missed.saturating_add(missed);
                sink.lose(stream, LossCounts { full: missed, ..LossCounts::default() }, at.0);
                return Some(());
            }
            // No other records were requested.
            _ => return Some(()),
        }
        self.count(stream).others += 1;
        Some(())
    }

    /// Converts a sample; `None` if its event was not described.
    fn sample(
        &mut self,
        stream: usize,
        (misc, sample): (u16, &Sample<'_>),
        relation: &ClockRelation,
        sink: &mut dyn Sink,
    ) -> Option<()> {
        let time = relation.ticks(sample.time);
        if self.is_stopped_at(time) {
            self.count(stream).stopped += 1;
            return Some(());
        }
        let at = (time, somebody(sample.thread.pid, sample.thread.tid));
        let registers = self.layout.registers;
        let is_of_switches = self.of_switches.contains(&sample.id);
        // The timer has no raw bytes: the kernel writes zeros there.
        let number = sample.raw.first_chunk().map_or(0, |bytes| u16::from_ne_bytes(*bytes));
        if number == 0 || is_of_switches {
            let id = if is_of_switches { event::CONTEXT_SWITCHES } else { event::SAMPLE };
            sink.record(stream, at, self.base_id + id, &mut |payload| {
                payload.put(1, &[(misc & MISC_CPU_MODE) as u8]);
                payload.put(8, &sample.ip.to_ne_bytes());
                payload.put(8, &sample.period.to_ne_bytes());
                sample.put_stack(registers, payload);
            });
        } else {
            let plan = self.events.get(usize::from(number))?.as_ref()?;
            if !plan.fits(sample.raw) {
                return None;
            }
            sink.record(stream, at, plan.id, &mut |payload| {
                plan.copy(sample.raw, payload);
                sample.put_stack(registers, payload);
            });
        }
        self.count(stream).samples += 1;
        Some(())
    }

    fn mapped(
        &self,
        stream: usize,
        at: (u64, Option<Thread>),
        (thread, file): (Thread, MappedFile),
        sink: &mut dyn Sink,
    ) {
        sink.record(stream, at, self.base_id + file.event(), &mut |payload| {
            file.fill(thread, payload);
        });
        self.known.state().mapped(thread.pid, file);
    }

    fn named(
        &self,
        stream: usize,
        at: (u64, Option<Thread>),
        (thread, name, exec): (Thread, &[u8], bool),
        sink: &mut dyn Sink,
    ) {
        let id = self.base_id + event::COMM;
        sink.record(stream, at, id, &mut known::comm(thread, name, exec));
        self.known.state().named(thread, name, exec);
        self.introduce(stream, at.0, thread, name, sink);
    }

    fn introduce(
        &self,
        stream: usize,
        time: u64,
        thread: Thread,
        name: &[u8],
        sink: &mut dyn Sink,
    ) {
        let parent = self.known.state().parent_of(thread.pid);
        let (id, mut fill) = known::introduction(parent, thread, name);
        sink.record(stream, (time, None), id, &mut fill);
    }

    /// Records existing state at a time, as if the kernel had reported it then.
    pub fn know(&self, stream: usize, time: u64, known: Known, sink: &mut dyn Sink) {
        match known {
            Known::Name(thread, name) => {
                self.named(stream, (time, Some(thread)), (thread, &name, false), sink);
            }
            Known::Parent(pid, parent_pid) => self.known.state().has_parent(pid, parent_pid),
            Known::Mapped(pid, file) => {
                let thread = Thread { pid, tid: pid };
                self.mapped(stream, (time, Some(thread)), (thread, file), sink);
            }
            Known::BuildId(path, build_id) => {
                let id = self.base_id + event::BUILD_ID;
                sink.record(stream, (time, None), id, &mut known::build_id(&path, &build_id));
                self.known.state().has_build_id(path, build_id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
