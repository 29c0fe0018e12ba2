// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From Perfetto's packets to the model.

mod collect;
mod gather;
mod kernel;
mod marks;
mod samples;
mod track;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use lateralis_model::role::{
    KEY_CATEGORY, KEY_PROCESS, Keyed, PHASE, Role, STACK_FUNCTIONS, STACK_IMAGES,
};
use lateralis_model::{
    Attribute, Clock, EnvValue, Interval, Loss, LossCause, MemoryTrace, StreamIndex, Uuid, Writer,
};

use super::clocks::{BOOTTIME, Clocks, MONOTONIC, REALTIME};
use super::packets::{self, Notes};
use super::state::{Sequence, Tracks};
use super::track_event::{self, BEGIN, COUNTER, END, INSTANT, TrackEvent};
use super::wire::{Message, Wire};
use super::{ftrace, state};
use crate::dynamic::{ClassText, Dyn, Dynamic, Lane, Named, Names, Sink, Survey};
use crate::phases::Track;
use crate::{Error, phases};
use gather::{Gathering, Nowhere};

// Tags: the type of a track event, or the phase of a legacy one, and these bits: the event's own
// properties, so that it cannot change others of its name.
const OTHER_TRACK: u32 = 1 << 8;
const LEGACY: u32 = 1 << 9;
const FTRACE: u32 = 1 << 10;
const PLAIN: u32 = FTRACE | 1;
const GPU: u32 = FTRACE | 2;
/// A counter's value.
const VALUE: u32 = 1 << 11;
/// A duration that can be.
const WHOLE: u32 = 1 << 12;
const ID: u32 = 1 << 13;
const LOCAL_ID: u32 = 1 << 14;
const GLOBAL_ID: u32 = 1 << 15;
const SCOPE: u32 = 1 << 16;
const BIND_IN: u32 = 1 << 17;
const BIND_OUT: u32 = 1 << 18;
/// A process, and no thread.
const PROCESS: u32 = 1 << 19;
/// Numbers of flows sent and received, 15 at most each.
const FLOWS_OUT: u32 = 20;
const FLOWS_IN: u32 = 24;
const FLOWS_MAX: usize = 15;

/// Whether a file looks like a Perfetto trace, by its first bytes (4 KiB are
/// enough).
#[must_use]
pub fn sniff(first: &[u8]) -> bool {
    let first = &first[..first.len().min(4096)];
    !first.is_empty() && packets::looks_right(first)
}

/// Reads a file called `name`, whose events may take `limit_bytes` of memory; as much
/// again may go for decompressed packets.
///
/// Time is linear in the length of the file; it is walked four times: for clocks and
/// tracks, for what belongs together (which takes as much memory again at most), for the kinds of
/// events, for the events.
///
/// # Errors
/// If there is no packet in it.
pub fn read(name: &str, bytes: &[u8], limit_bytes: u64) -> Result<MemoryTrace, Error> {
    let mut builder = MemoryTrace::builder("Perfetto", limit_bytes);
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
    walk.gathering = Some(Gathering::new(limit_bytes));
    packets::walk(name, bytes, limit_bytes, &mut ignored, &mut |packet| {
        walk.packet(packet, &mut Nowhere);
    });
    let refused = walk.gathering.take().map_or(0, |gathering| {
        let refused = gathering.refused();
        (walk.names, walk.first_flows) = gathering.finish();
        refused
    });
    if refused > 0 {
        builder.remark(format!(
            "{refused} ends of spans and flows were not looked at for what they belong to: they do \
             not fit into the memory they may take: raise the limit"
        ));
    }
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
    /// Names of threads that only the scheduler's events contain.
    comms: BTreeMap<u32, String>,
    environment: Vec<(String, EnvValue)>,
    uuid: Option<Uuid>,
    losses: Vec<(Lane, Loss)>,
    /// Packets that were not understood, by field number of their data.
    unread: BTreeMap<u32, u64>,
    unread_fields: BTreeMap<u32, u64>,
    /// In the walk before the survey: what belongs together.
    gathering: Option<Gathering>,
    /// Names of ends without one.
    names: Names,
    /// Events with which flows begin.
    first_flows: HashSet<(u64, u64)>,
    /// Number of the next track event.
    next: u64,
    /// Complete events whose durations cannot be.
    endless: u64,
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
    fn rewind(&mut self) {
        self.clocks.rewind();
        self.sequences.clear();
        self.names.rewind();
        self.next = 0;
        self.endless = 0;
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
        let is_event = Message::new(packet).any(|(number, _)| matches!(number, 9 | 11 | 52 | 66));
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
                54 => self.streaming_profile(value.message(), &mut sequence, sink),
                66 => self.perf_sample(value.message(), &sequence, time, sink),
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
        let group = self.groups.get(&tid).or_else(|| self.tracks.groups.get(&tid));
        Writer { pid: group.copied().unwrap_or(tid), tid }
    }
}

/// What a tag means.
fn attributes(class: &ClassText<'_>) -> Vec<Attribute> {
    let tag = class.tag;
    let has = |bit: u32| tag & bit != 0;
    let fields = |names: &[&str]| -> Vec<String> {
        names.iter().filter_map(|name| phases::context(class, name)).collect()
    };
    let mut roles = Vec::new();
    let mut word = None;
    if tag & marks::MARK == marks::MARK {
        (roles, word) = marks::roles(class);
    } else if tag == GPU {
        roles.extend(phases::counters(class));
        word = Some("counter");
    } else if !has(FTRACE) {
        let low = char::from(tag as u8);
        if has(LEGACY) {
            roles.extend(phases::roles(low, class, &legacy_keys(tag, &fields)));
            word = phases::word(low);
        } else {
            let track: &[&str] = if has(OTHER_TRACK) { &["track_uuid"] } else { &[] };
            let keyed =
                || Keyed { name: class.name.to_owned(), keys: fields(track), ..Keyed::default() };
            match u64::from(low) {
                BEGIN => {
                    roles.push(Role::Begin(keyed()));
                    word = Some("begin");
                }
                END => {
                    roles.push(Role::End(keyed()));
                    word = Some("end");
                }
                COUNTER => {
                    // Annotations beside the value are no levels.
                    roles.extend(phases::counters(class).into_iter().take(usize::from(has(VALUE))));
                    word = Some("counter");
                }
                INSTANT => word = Some("instant"),
                _ => (),
            }
        }
        let flow =
            |key: &str, fans_out| Keyed { name: "flow".to_owned(), keys: fields(&[key]), fans_out };
        // An end repeats the data of its begin.
        if has(BIND_IN) && phases::begins(low) != Some(false) {
            roles.push(Role::Receive(flow("bind_id", true)));
        }
        if has(BIND_OUT) && phases::begins(low) != Some(false) {
            roles.push(Role::Send(flow("bind_id", false)));
        }
        for number in 0..tag >> FLOWS_IN & 0xf {
            roles.push(Role::Receive(flow(&numbered("flow_in", number), false)));
        }
        for number in 0..tag >> FLOWS_OUT & 0xf {
            roles.push(Role::Send(flow(&numbered("flow_out", number), false)));
        }
    }
    let word = word.map(|word: &str| Attribute { name: PHASE.into(), value: word.into() });
    word.into_iter().chain(phases::attributes(&roles)).collect()
}

/// The keys of legacy events: as Chrome's, but for ids without a scope of their own, which are of
/// all processes.
fn legacy_keys(tag: u32, fields: &impl Fn(&[&str]) -> Vec<String>) -> phases::Keys {
    let has = |bit: u32| tag & bit != 0;
    let mut keys = fields(legacy_ids(tag));
    keys.push(KEY_CATEGORY.to_owned());
    if has(LOCAL_ID) {
        keys.extend(if has(PROCESS) { fields(&["pid"]) } else { vec![KEY_PROCESS.to_owned()] });
    }
    phases::Keys { span: keys.clone(), flow: keys, fans_out: true, is_whole: has(WHOLE) }
}

/// The key fields of the span of a legacy event.
fn legacy_ids(tag: u32) -> &'static [&'static str] {
    match (tag & (ID | LOCAL_ID | GLOBAL_ID), tag & SCOPE != 0) {
        (0, false) => &[],
        (0, true) => &["id_scope"],
        (ID, false) => &["id"],
        (ID, true) => &["id", "id_scope"],
        (LOCAL_ID, false) => &["local_id"],
        (LOCAL_ID, true) => &["local_id", "id_scope"],
        (_, false) => &["global_id"],
        (_, true) => &["global_id", "id_scope"],
    }
}

/// The name of one of several fields.
fn numbered(name: &str, number: u32) -> String {
    if number == 0 { name.to_owned() } else { format!("{name}#{}", number + 1) }
}
