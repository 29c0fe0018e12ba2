// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From Perfetto's packets to the model.

mod collect;
mod kernel;
mod track;

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
/// Time is linear in the length of the file; it is walked three times: for clocks and
/// tracks, for the kinds of events, for the events.
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
