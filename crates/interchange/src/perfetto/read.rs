// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From Perfetto's packets to the model.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use lateralis_model::role::{Keyed, Role};
use lateralis_model::{
    Attribute, Clock, EnvValue, Interval, Loss, LossCause, MemoryTrace, StreamIndex, Uuid, Writer,
};

use super::clocks::{BOOTTIME, Clocks, MONOTONIC, REALTIME};
use super::packets::{self, Notes};
use super::state::{Sequence, Tracks};
use super::track_event::{self, BEGIN, COUNTER, END, INSTANT, TrackEvent};
use super::wire::{Message, Wire};
use super::{ftrace, state};
use crate::dynamic::{ClassText, Dyn, Dynamic, Lane, Named, Sink, Survey};
use crate::gunzip::{first_bytes, gunzip, is_gzip};
use crate::{Error, phases};

/// Names of spans remembered for ends without one.
const MAX_OPEN: usize = 1 << 20;
/// Flows remembered to tell their beginning from what follows.
const MAX_FLOWS: usize = 1 << 20;

// Tags: the type of a track event, or the phase of a legacy one, and these bits.
const OTHER_TRACK: u32 = 0x100;
const FLOW_OUT: u32 = 0x200;
const FLOW_IN: u32 = 0x400;
const LEGACY: u32 = 0x800;
const FTRACE: u32 = 0x1000;
const PLAIN: u32 = 0x1001;
const GPU: u32 = 0x1002;

/// Whether a file looks like a Perfetto trace, plain or compressed by gzip, by its
/// first bytes (4 KiB are enough).
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    let inside = first_bytes(first);
    !inside.is_empty() && packets::looks_right(&inside)
}

/// Reads a file called `name`, whose events may take `limit_bytes` of memory; as much
/// again may go for decompressed packets.
///
/// Time is linear in the length of the file; it is walked three times: for clocks and
/// tracks, for the kinds of events, for the events.
///
/// # Errors
/// If there is no packet in it.
pub fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Result<MemoryTrace, Error> {
    let mut builder = MemoryTrace::builder("Perfetto", limit_bytes);
    let mut inside = Vec::new();
    if is_gzip(bytes) {
        let fault;
        (inside, fault) = gunzip(bytes, limit_bytes);
        fault.into_iter().for_each(|fault| builder.remark(fault));
    }
    let bytes = if is_gzip(bytes) { &inside } else { bytes };
    let mut notes = Notes::default();
    let mut walk = Walk::default();
    let mut packets = 0u64;
    packets::walk(name, bytes, limit_bytes, &mut notes, &mut |packet| {
        packets += 1;
        walk.collect(packet);
    });
    if packets == 0 {
        let place = name.to_owned();
        let help = "expected packets of Perfetto's trace.proto";
        return Err(Error { what: "no trace packets", place, help });
    }
    walk.clocks.sort();
    let mut survey = Survey::default();
    let mut ignored = Notes::default();
    walk.rewind();
    packets::walk(name, bytes, limit_bytes, &mut ignored, &mut |packet| {
        walk.packet(packet, &mut survey);
    });
    walk.describe(&mut builder, notes, packets);
    let unix = walk.clocks.unix_offset();
    let mut clock = Clock::new("boottime", 1_000_000_000, 0, unix.unwrap_or(0));
    clock.unix_epoch = unix.is_some();
    clock.description = "CLOCK_BOOTTIME of the traced machine".to_owned();
    let mut fill = survey.finish(builder, clock, attributes);
    let losses = std::mem::take(&mut walk.losses);
    for (lane, mut loss) in losses {
        loss.stream = fill.stream(lane).unwrap_or(StreamIndex(0));
        for end in [&mut loss.interval.begin, &mut loss.interval.end] {
            *end = end.map(|time| lateralis_units::Nanos(time.0.saturating_add(unix.unwrap_or(0))));
        }
        fill.builder.loss(loss);
    }
    walk.rewind();
    packets::walk(name, bytes, limit_bytes, &mut ignored, &mut |packet| {
        walk.packet(packet, &mut fill);
    });
    Ok(fill.finish())
}

/// State of a walk.
#[derive(Debug, Default)]
struct Walk {
    clocks: Clocks,
    tracks: Tracks,
    sequences: HashMap<u32, Sequence>,
    /// Thread groups by thread.
    groups: HashMap<u32, u32>,
    /// Names of threads that only the scheduler's events tell.
    comms: BTreeMap<u32, String>,
    environment: Vec<(String, EnvValue)>,
    uuid: Option<Uuid>,
    losses: Vec<(Lane, Loss)>,
    /// Packets that were not understood, by field number of their data.
    unread: BTreeMap<u32, u64>,
    unread_fields: BTreeMap<u32, u64>,
    /// Names and categories of open spans by track.
    open: HashMap<(u64, u32, u32), Vec<(String, String)>>,
    open_count: usize,
    flows: HashSet<u64>,
    counters: HashMap<u64, i64>,
    gpu_counters: HashMap<(u64, u64), String>,
    /// The task that runs on each processor, from compact switches.
    running: HashMap<u32, (i64, String)>,
    overruns: BTreeMap<u64, (u64, u64)>,
    buffers: BTreeMap<usize, u64>,
}

/// The parts of a packet that concern every kind.
#[derive(Default)]
struct Head {
    sequence: u32,
    time: Option<u64>,
    clock: Option<u32>,
}

impl Head {
    fn of(packet: &[u8]) -> Self {
        let mut head = Self::default();
        for (number, value) in Message::new(packet) {
            match number {
                8 => head.time = Some(value.number()),
                10 => head.sequence = value.number() as u32,
                58 => head.clock = Some(value.number() as u32),
                _ => (),
            }
        }
        head
    }
}

impl Walk {
    /// The first walk: what holds for the whole trace wherever it stands.
    fn collect(&mut self, packet: &[u8]) {
        let head = Head::of(packet);
        for (number, value) in Message::new(packet) {
            match number {
                2 => self.process_tree(value.message()),
                6 => self.clocks.collect(value.message(), head.sequence),
                34 => self.ftrace_stats(value.message()),
                35 => self.trace_stats(value.message()),
                43 => {
                    self.tracks.process(value.message());
                }
                44 => {
                    self.tracks.thread(value.message());
                }
                45 => self.system_info(value.message()),
                60 => self.tracks.describe(value.message()),
                89 => {
                    let mut id = [0u8; 16];
                    for (number, value) in value.message() {
                        let at = if number == 1 { 0 } else { 8 };
                        id[at..at + 8].copy_from_slice(&value.number().to_be_bytes());
                    }
                    self.uuid = Some(Uuid(id));
                }
                _ => (),
            }
        }
    }

    fn process_tree(&mut self, message: Message<'_>) {
        for (number, value) in message {
            let (mut id, mut other, mut name) = (None, None, None);
            for (field, value) in value.message() {
                match (number, field) {
                    (1 | 2, 1) => id = Some(value.number() as u32),
                    (2, 3) => other = Some(value.number() as u32),
                    (1, 3) | (2, 2) if name.is_none() => name = Some(value.text().into_owned()),
                    _ => (),
                }
            }
            let (Some(id), name) = (id, name.filter(|name| !name.is_empty())) else { continue };
            match number {
                1 => {
                    self.groups.insert(id, id);
                    if let Some(name) = name {
                        self.tracks.processes.insert(id, name);
                    }
                }
                2 => {
                    if let Some(group) = other {
                        self.groups.insert(id, group);
                    }
                    if let Some(name) = name {
                        self.tracks.threads.insert(id, name);
                    }
                }
                _ => (),
            }
        }
    }

    fn system_info(&mut self, message: Message<'_>) {
        for (number, value) in message {
            match number {
                1 => {
                    for (number, value) in value.message() {
                        let name = match number {
                            1 => "sysname",
                            2 => "kernel_version",
                            3 => "kernel_release",
                            4 => "machine",
                            _ => continue,
                        };
                        self.note(name, value);
                    }
                }
                2 => self.note("android_build_fingerprint", value),
                4 => self.note("tracing_service_version", value),
                _ => (),
            }
        }
    }

    fn note(&mut self, name: &str, value: Wire<'_>) {
        if self.environment.len() < 1000 {
            let text = EnvValue::Text(value.text().into_owned());
            self.environment.push((name.to_owned(), text));
        }
    }

    /// Kernel rings: how many events each lost between the first and last report.
    fn ftrace_stats(&mut self, message: Message<'_>) {
        for (_, value) in message.filter(|(number, _)| *number == 2) {
            let (mut cpu, mut lost) = (0, 0u64);
            for (number, value) in value.message() {
                match number {
                    1 => cpu = value.number(),
                    3 | 4 | 8 => lost = lost.saturating_add(value.number()),
                    _ => (),
                }
            }
            let entry = self.overruns.entry(cpu).or_insert((lost, lost));
            entry.1 = lost;
        }
    }

    /// Buffers of the service: chunks overwritten or discarded, packets lost by writers.
    fn trace_stats(&mut self, message: Message<'_>) {
        for (at, (_, value)) in message.filter(|(number, _)| *number == 1).enumerate() {
            let lost = value.message().filter(|(number, _)| matches!(number, 3 | 18 | 19));
            let lost = lost.fold(0u64, |sum, (_, value)| sum.saturating_add(value.number()));
            self.buffers.insert(at, lost);
        }
    }

    fn rewind(&mut self) {
        self.clocks.rewind();
        self.sequences.clear();
        self.open.clear();
        self.open_count = 0;
        self.flows.clear();
        self.counters.clear();
        self.gpu_counters.clear();
        self.running.clear();
        self.unread.clear();
        self.unread_fields.clear();
        self.losses.clear();
    }

    /// The later walks: the events.
    fn packet(&mut self, packet: &[u8], sink: &mut dyn Sink) {
        let head = Head::of(packet);
        // Taken out, so that it can be read while the rest changes.
        let mut sequence = self.sequences.remove(&head.sequence).unwrap_or_default();
        for (number, value) in Message::new(packet) {
            match number {
                13 if value.number() & 1 != 0 => sequence.clear(),
                41 if value.number() != 0 => sequence.clear(),
                _ => (),
            }
        }
        for (number, value) in Message::new(packet) {
            match number {
                6 => self.clocks.meet(value.message(), head.sequence),
                12 => sequence.intern(value.message()),
                59 => sequence.defaults(value.message()),
                44 => self.legacy_thread(value.message(), &mut sequence),
                _ => (),
            }
        }
        let is_event = Message::new(packet).any(|(number, _)| matches!(number, 9 | 11 | 52));
        let time = match head.time {
            Some(time) if is_event => {
                let clock = head.clock.or(sequence.clock).unwrap_or(BOOTTIME);
                self.clocks.boottime(clock, head.sequence, time)
            }
            _ => 0,
        };
        let mut lost = false;
        for (number, value) in Message::new(packet) {
            match number {
                1 => self.ftrace(value.message(), sink),
                11 => self.track_event(value.message(), &mut sequence, time, sink),
                39 => self.android_log(value.message(), sink),
                52 => self.gpu_counters(value.message(), time, sink),
                42 => lost = value.number() != 0 && sequence.begun,
                // Bookkeeping, or taken in the first walk.
                2
                | 3
                | 6
                | 8
                | 10
                | 12
                | 13
                | 33..=36
                | 41
                | 43..=45
                | 58..=60
                | 79
                | 87
                | 89
                | 98 => (),
                other => *self.unread.entry(other).or_insert(0) += 1,
            }
        }
        if lost {
            let end = is_event.then_some(lateralis_units::Nanos(time));
            self.lose(Lane::Thread, LossCause::Packets, None, Interval { begin: None, end });
        }
        sequence.begun = true;
        self.sequences.insert(head.sequence, sequence);
    }

    fn lose(&mut self, lane: Lane, cause: LossCause, count: Option<u64>, interval: Interval) {
        if self.losses.len() < 100_000 {
            self.losses.push((lane, Loss { stream: StreamIndex(0), cause, count, interval }));
        }
    }

    fn legacy_thread(&mut self, message: Message<'_>, sequence: &mut Sequence) {
        for (number, value) in message {
            if number == 6 {
                sequence.reference_us = value.number() as i64;
            }
        }
        if let (Some(pid), Some(tid)) = self.tracks.thread(message) {
            sequence.thread = Some((pid, tid));
        }
    }

    fn writer_of(&self, tid: u32) -> Writer {
        Writer { pid: self.groups.get(&tid).copied().unwrap_or(tid), tid }
    }

    fn ftrace(&mut self, message: Message<'_>, sink: &mut dyn Sink) {
        let (mut cpu, mut clock, mut own, mut boot) = (0u32, 0, 0i64, 0i64);
        let mut lost = false;
        for (number, value) in message {
            match number {
                1 => cpu = value.number() as u32,
                3 => lost = value.number() != 0,
                5 => clock = value.number(),
                6 => own = value.number() as i64,
                7 => boot = value.number() as i64,
                _ => (),
            }
        }
        // Other clocks than BOOTTIME come with a reading of both.
        let shift = if clock == 0 { 0 } else { boot.saturating_sub(own) };
        let at = |time: u64| i64::try_from(time).unwrap_or(i64::MAX).saturating_add(shift);
        let lane = Lane::Cpu(cpu);
        let mut first = None;
        for (number, value) in message {
            match number {
                2 => {
                    let event = value.message();
                    let time = event.into_iter().find(|(number, _)| *number == 1);
                    let time = at(time.map_or(0, |(_, value)| value.number()));
                    first.get_or_insert(time);
                    self.kernel_event(event, lane, time, sink);
                }
                4 => {
                    for event in ftrace::compact(value.message()) {
                        first.get_or_insert(at(event.time));
                        self.compact(event, lane, cpu, at, sink);
                    }
                }
                _ => (),
            }
        }
        if lost {
            let end = first.map(lateralis_units::Nanos);
            self.lose(lane, LossCause::Full, None, Interval { begin: None, end });
        }
    }

    fn kernel_event(&mut self, message: Message<'_>, lane: Lane, time: i64, sink: &mut dyn Sink) {
        let mut tid = 0;
        let mut context: Named<'_> = Vec::new();
        let mut found = None;
        for (number, value) in message {
            match number {
                1 => (),
                2 => tid = value.number() as u32,
                5 => context.push(("common_flags".into(), Dyn::Unsigned(value.number()))),
                other => found = Some((other, value)),
            }
        }
        let Some((number, value)) = found else { return };
        let kind = ftrace::kinds().get(&number);
        let (name, payload) = if number == 327 {
            ftrace::generic(value.message())
        } else {
            let name = match kind {
                Some(kind) => Cow::Borrowed(kind.name),
                None => format!("ftrace_event_{number}").into(),
            };
            (name, ftrace::fields(kind, value.message()))
        };
        for (pid, comm) in [("prev_pid", "prev_comm"), ("next_pid", "next_comm")] {
            let find = |name: &str| payload.iter().find(|(key, _)| key == name).map(|(_, v)| v);
            if let (Some(Dyn::Signed(pid)), Some(Dyn::Text(comm))) = (find(pid), find(comm)) {
                self.comm(*pid, comm);
            }
        }
        let writer = Some(self.writer_of(tid));
        let category = Cow::Borrowed("ftrace");
        sink.event(&Dynamic { lane, tag: FTRACE, category, name, time, writer, context, payload });
    }

    fn comm(&mut self, tid: i64, comm: &str) {
        if let Ok(tid) = u32::try_from(tid)
            && tid != 0
            && self.comms.get(&tid).is_none_or(|known| known != comm)
        {
            self.comms.insert(tid, comm.to_owned());
        }
    }

    fn compact(
        &mut self,
        event: ftrace::Compact<'_>,
        lane: Lane,
        cpu: u32,
        at: impl Fn(u64) -> i64,
        sink: &mut dyn Sink,
    ) {
        self.comm(event.task, &event.comm);
        let mut payload = event.fields;
        let mut tid = 0;
        let before = self.running.get(&cpu).cloned();
        if event.name == "sched_switch" {
            if let Some((task, comm)) = before {
                tid = u32::try_from(task).unwrap_or(0);
                payload.insert(0, ("prev_comm".into(), Dyn::Text(comm.into())));
                payload.insert(1, ("prev_pid".into(), Dyn::Signed(task)));
            }
            self.running.insert(cpu, (event.task, event.comm.into_owned()));
        }
        sink.event(&Dynamic {
            lane,
            tag: FTRACE,
            category: "ftrace".into(),
            name: event.name.into(),
            time: at(event.time),
            writer: Some(self.writer_of(tid)),
            context: Vec::new(),
            payload,
        });
    }

    fn android_log(&mut self, message: Message<'_>, sink: &mut dyn Sink) {
        for (_, value) in message.filter(|(number, _)| *number == 1) {
            let mut payload: Named<'_> = Vec::new();
            let (mut pid, mut tid, mut time) = (0, 0, 0);
            for (number, value) in value.message() {
                match number {
                    1 => payload.push(("log_id".into(), Dyn::Unsigned(value.number()))),
                    2 => pid = value.number() as u32,
                    3 => tid = value.number() as u32,
                    4 => payload.push(("uid".into(), Dyn::Signed(value.number() as i64))),
                    5 => time = value.number(),
                    6 => payload.push(("tag".into(), Dyn::Text(value.text()))),
                    7 => payload.push(("prio".into(), Dyn::Unsigned(value.number()))),
                    8 => payload.push(("message".into(), Dyn::Text(value.text()))),
                    9 => {
                        let mut argument = (Cow::Borrowed(""), Dyn::Null);
                        for (number, value) in value.message() {
                            match number {
                                1 => argument.0 = value.text(),
                                2 => argument.1 = Dyn::Signed(value.number() as i64),
                                3 => argument.1 = Dyn::Real(value.real()),
                                4 => argument.1 = Dyn::Text(value.text()),
                                _ => (),
                            }
                        }
                        payload.push(argument);
                    }
                    _ => (),
                }
            }
            crate::dynamic::make_unique(&mut payload);
            sink.event(&Dynamic {
                lane: Lane::Thread,
                tag: PLAIN,
                category: "android".into(),
                name: "android_log".into(),
                time: self.clocks.boottime(REALTIME, 0, time),
                writer: Some(Writer { pid, tid }),
                context: Vec::new(),
                payload,
            });
        }
    }

    fn gpu_counters(&mut self, message: Message<'_>, time: i64, sink: &mut dyn Sink) {
        let gpu = message.into_iter().find(|(number, _)| *number == 3);
        let gpu = gpu.map_or(0, |(_, value)| value.number());
        for (_, value) in message.filter(|(number, _)| *number == 1) {
            for (_, spec) in value.message().filter(|(number, _)| *number == 1) {
                let (mut id, mut name) = (0, String::new());
                for (number, value) in spec.message() {
                    match number {
                        1 => id = value.number(),
                        2 => name = value.text().into_owned(),
                        _ => (),
                    }
                }
                if self.gpu_counters.len() < 100_000 {
                    self.gpu_counters.insert((gpu, id), name);
                }
            }
        }
        for (_, value) in message.filter(|(number, _)| *number == 2) {
            let (mut id, mut level) = (0, Dyn::Signed(0));
            for (number, value) in value.message() {
                match number {
                    1 => id = value.number(),
                    2 => level = Dyn::Signed(value.number() as i64),
                    3 => level = Dyn::Real(value.real()),
                    _ => (),
                }
            }
            let name = match self.gpu_counters.get(&(gpu, id)) {
                Some(name) => name.clone(),
                None => format!("gpu_counter_{id}"),
            };
            sink.event(&Dynamic {
                lane: Lane::Global,
                tag: GPU,
                category: "gpu".into(),
                name: name.into(),
                time,
                writer: None,
                context: vec![("gpu_id".into(), Dyn::Unsigned(gpu))],
                payload: vec![("value".into(), level)],
            });
        }
    }

    fn track_event(
        &mut self,
        message: Message<'_>,
        sequence: &mut Sequence,
        time: i64,
        sink: &mut dyn Sink,
    ) {
        let mut event = track_event::parse(message, sequence);
        for field in &event.unread {
            *self.unread_fields.entry(*field).or_insert(0) += 1;
        }
        let time = self.event_time(&event, sequence, time);
        let uuid = event.track.or(sequence.track);
        let (mut pid, mut tid) = match (uuid, sequence.thread) {
            (Some(uuid), _) => self.tracks.owner(uuid),
            (None, Some((pid, tid))) => (Some(pid), Some(tid)),
            (None, None) => (None, None),
        };
        if let Some(legacy) = &event.legacy {
            pid = legacy.pid.or(pid);
            tid = legacy.tid.or(tid);
        }
        let legacy = event.legacy.take();
        let mut context = std::mem::take(&mut event.context);
        let mut tag = match legacy.as_ref().and_then(|legacy| legacy.phase) {
            Some(phase) => LEGACY | u32::from(phase),
            None => event.kind as u32 & 0xff,
        };
        if tag & LEGACY == 0 && tid.is_none() {
            tag |= OTHER_TRACK;
        }
        if tid.is_none() {
            pid.into_iter().for_each(|pid| {
                context.push(("pid".into(), Dyn::Unsigned(u64::from(pid))));
            });
            if let Some(uuid) = uuid {
                context.push(("track_uuid".into(), Dyn::Hex(uuid)));
                if let Some(track) = self.tracks.get(uuid).filter(|track| !track.name.is_empty()) {
                    context.push(("track".into(), Dyn::Text(track.name.clone().into())));
                }
            }
        }
        if let Some(legacy) = legacy {
            add_legacy(legacy, &mut context);
        }
        self.add_flows(&event, &mut context, &mut tag);
        let mut name = std::mem::take(&mut event.name);
        let mut category = event.categories.join(",");
        let place = (uuid.unwrap_or(0), pid.unwrap_or(0), tid.unwrap_or(0));
        let stack = self.open.entry(place).or_default();
        if event.kind == BEGIN && self.open_count < MAX_OPEN {
            stack.push((name.clone(), category.clone()));
            self.open_count += 1;
        } else if event.kind == END
            && let Some((began, began_category)) = stack.pop()
        {
            self.open_count -= 1;
            if name.is_empty() {
                name = began;
            }
            if category.is_empty() {
                category = began_category;
            }
        }
        let mut payload = std::mem::take(&mut event.annotations);
        if event.kind == COUNTER
            && let Some(value) = event.value.take()
        {
            let (value, unit, track_name) = self.level(uuid.unwrap_or(0), value);
            payload.insert(0, ("value".into(), value));
            crate::dynamic::make_unique(&mut payload);
            if !unit.is_empty() {
                context.push(("unit".into(), Dyn::Text(unit.into())));
            }
            if name.is_empty() {
                name = track_name;
            }
        }
        let has_thread = tid.is_some();
        let writer = tid.map(|tid| Writer { pid: pid.unwrap_or(tid), tid });
        let lane = if has_thread { Lane::Thread } else { Lane::Global };
        for (track, value) in event.extra_tracks.iter().zip(std::mem::take(&mut event.extra_values))
        {
            let (value, unit, name) = self.level(*track, value);
            let mut context: Named<'_> = vec![("track_uuid".into(), Dyn::Hex(*track))];
            if !unit.is_empty() {
                context.push(("unit".into(), Dyn::Text(unit.into())));
            }
            sink.event(&Dynamic {
                lane,
                tag: COUNTER as u32,
                category: "".into(),
                name: name.into(),
                time,
                writer,
                context,
                payload: vec![("value".into(), value)],
            });
        }
        crate::dynamic::make_unique(&mut context);
        let (name, category) = (name.into(), category.into());
        sink.event(&Dynamic { lane, tag, category, name, time, writer, context, payload });
    }

    /// Events of old writers carry their times themselves, in microseconds of MONOTONIC.
    fn event_time(&mut self, event: &TrackEvent<'_>, sequence: &mut Sequence, time: i64) -> i64 {
        let us = match (event.delta_us, event.absolute_us) {
            (Some(delta), _) => {
                sequence.reference_us = sequence.reference_us.saturating_add(delta);
                sequence.reference_us
            }
            (None, Some(us)) => us,
            (None, None) => return time,
        };
        let nanos = u64::try_from(us.saturating_mul(1000)).unwrap_or(0);
        self.clocks.boottime(MONOTONIC, 0, nanos)
    }

    fn level<'a>(&mut self, uuid: u64, value: Dyn<'a>) -> (Dyn<'a>, String, String) {
        let (counter, name) = match self.tracks.get(uuid) {
            Some(track) => (track.counter.clone().unwrap_or_default(), track.name.clone()),
            None => (state::Counter::default(), String::new()),
        };
        let value = match value {
            Dyn::Signed(value) => {
                let multiplier = if counter.multiplier == 0 { 1 } else { counter.multiplier };
                let mut value = value.saturating_mul(multiplier);
                if counter.incremental {
                    let sum = self.counters.entry(uuid).or_insert(0);
                    *sum = sum.saturating_add(value);
                    value = *sum;
                }
                Dyn::Signed(value)
            }
            other => other,
        };
        let name = if name.is_empty() { format!("counter_{uuid:x}") } else { name };
        (value, counter.unit, name)
    }

    /// Flows as fields: of several in one event all but the first are a list.
    fn add_flows(&mut self, event: &TrackEvent<'_>, context: &mut Named<'_>, tag: &mut u32) {
        let (mut out, mut come) = (Vec::new(), Vec::new());
        for &flow in &event.flows {
            if self.flows.contains(&flow) {
                come.push(flow);
            } else if self.flows.len() < MAX_FLOWS {
                self.flows.insert(flow);
            }
            out.push(flow);
        }
        for &flow in &event.ending_flows {
            self.flows.remove(&flow);
            come.push(flow);
        }
        for (flows, name, more, bit) in [
            (out, "flow_out", "more_flows_out", FLOW_OUT),
            (come, "flow_in", "more_flows_in", FLOW_IN),
        ] {
            let Some((first, rest)) = flows.split_first() else { continue };
            *tag |= bit;
            context.push((name.into(), Dyn::Hex(*first)));
            if !rest.is_empty() {
                let rest = rest.iter().map(|&flow| Dyn::Hex(flow)).collect();
                context.push((more.into(), Dyn::List(rest)));
            }
        }
    }

    /// Adds everything but events.
    fn describe(&mut self, builder: &mut lateralis_model::Builder, notes: Notes, packets: u64) {
        let trace = builder.describe();
        trace.uuid = self.uuid;
        trace.environment.append(&mut self.environment);
        let packets = EnvValue::Integer(i128::from(packets));
        trace.environment.push(("packets".to_owned(), packets));
        let names = builder.names();
        names.processes.clone_from(&self.tracks.processes);
        names.threads = std::mem::take(&mut self.comms);
        names.threads.extend(self.tracks.threads.clone());
        notes.damage.into_iter().for_each(|damage| builder.damage(damage));
        let counts = [
            (notes.bad_compressed, "compressed packets are damaged: read up to there"),
            (notes.large_compressed, "compressed packets do not fit into the memory allowed"),
            (self.clocks.unconverted, "times of clocks without a snapshot: taken as they are"),
        ];
        for (count, what) in counts {
            if count > 0 {
                builder.remark(format!("{count} {what}"));
            }
        }
        for (what, unread) in
            [("packets", &self.unread), ("fields of track events", &self.unread_fields)]
        {
            if unread.is_empty() {
                continue;
            }
            let list: Vec<_> =
                unread.iter().take(40).map(|(field, count)| format!("{field} ({count})")).collect();
            let list = list.join(", ");
            builder.remark(format!("{what} that are not read, by field number (count): {list}"));
        }
        for (cpu, (first, last)) in std::mem::take(&mut self.overruns) {
            if last > first {
                let lane = Lane::Cpu(cpu as u32);
                self.lose(lane, LossCause::Full, Some(last - first), Interval::default());
            }
        }
        for (_, lost) in std::mem::take(&mut self.buffers) {
            if lost > 0 {
                self.lose(Lane::Thread, LossCause::Packets, Some(lost), Interval::default());
            }
        }
    }
}

fn add_legacy(legacy: track_event::Legacy, context: &mut Named<'_>) {
    if let Some(us) = legacy.duration_us {
        let nanos = u64::try_from(us.saturating_mul(1000)).unwrap_or(0);
        context.push(("dur".into(), Dyn::Unsigned(nanos)));
    }
    if let Some((name, id)) = legacy.id {
        context.push((name.into(), Dyn::Hex(id)));
    }
    if !legacy.scope.is_empty() {
        context.push(("id_scope".into(), Dyn::Text(legacy.scope.into())));
    }
    if let Some(id) = legacy.bind_id {
        context.push(("bind_id".into(), Dyn::Hex(id)));
        context.push(("flow_direction".into(), Dyn::Unsigned(legacy.direction)));
    }
}

/// What a tag means.
fn attributes(class: &ClassText<'_>) -> Vec<Attribute> {
    let keyed = |keys: &[&str]| Keyed {
        name: class.name.to_owned(),
        keys: keys.iter().filter_map(|key| phases::context(class, key)).collect(),
    };
    let flow = |key: &str| Keyed {
        name: "flow".to_owned(),
        keys: phases::context(class, key).into_iter().collect(),
    };
    let mut roles = Vec::new();
    if class.tag == GPU {
        roles.extend(phases::counters(class));
    } else if class.tag < FTRACE {
        let track: &[&str] = if class.tag & OTHER_TRACK != 0 { &["track_uuid"] } else { &[] };
        let low = class.tag & 0xff;
        if class.tag & LEGACY != 0 {
            let ids = ["id", "local_id", "global_id", "id_scope"];
            roles.extend(phases::roles(low as u8 as char, class, &ids));
        } else {
            match u64::from(low) {
                BEGIN => roles.push(Role::Begin(keyed(track))),
                END => roles.push(Role::End(keyed(track))),
                COUNTER => {
                    // Annotations beside the value are no levels.
                    roles.extend(phases::counters(class).into_iter().take(1));
                }
                INSTANT => (),
                _ => (),
            }
        }
        if class.tag & FLOW_IN != 0 {
            roles.push(Role::Receive(flow("flow_in")));
        }
        if class.tag & FLOW_OUT != 0 {
            roles.push(Role::Send(flow("flow_out")));
        }
    }
    phases::attributes(&roles).collect()
}
