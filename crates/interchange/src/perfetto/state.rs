// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What packets say about later packets: interned texts, defaults, tracks.

use std::collections::{BTreeMap, HashMap};

use super::stacks::Stacks;
use super::wire::Message;

/// Tables of interned texts, by field number in `InternedData`.
pub const CATEGORIES: u32 = 1;
pub const EVENT_NAMES: u32 = 2;
pub const ANNOTATION_NAMES: u32 = 3;
pub const SOURCE_LOCATIONS: u32 = 4;
pub const FUNCTION_NAMES: u32 = 5;
pub const MAPPING_PATHS: u32 = 17;
pub const LOG_BODIES: u32 = 20;
pub const STRING_VALUES: u32 = 29;

/// A sequence of packets of one writer.
#[derive(Debug, Default)]
pub struct Sequence {
    /// Interned texts by table and number.
    texts: HashMap<(u32, u64), String>,
    /// Call stacks.
    pub stacks: Stacks,
    /// Clock of packets without one.
    pub clock: Option<u32>,
    /// Track of events without one.
    pub track: Option<u64>,
    /// Process and thread of events without a track, from a `ThreadDescriptor`.
    pub thread: Option<(u32, u32)>,
    /// Microseconds to which deltas of events add.
    pub reference_us: i64,
    /// Whether a packet was seen.
    pub begun: bool,
}

impl Sequence {
    /// Forgets what the writer says to forget.
    pub fn clear(&mut self) {
        self.texts.clear();
        self.stacks.clear();
        self.clock = None;
        self.track = None;
        self.thread = None;
        self.reference_us = 0;
    }

    /// Takes a message `InternedData`.
    pub fn intern(&mut self, message: Message<'_>) {
        for (table, value) in message {
            self.stacks.intern(table, value.message());
            let wanted = matches!(
                table,
                CATEGORIES
                    | EVENT_NAMES
                    | ANNOTATION_NAMES
                    | SOURCE_LOCATIONS
                    | FUNCTION_NAMES
                    | MAPPING_PATHS
                    | LOG_BODIES
                    | STRING_VALUES
            );
            if !wanted {
                continue;
            }
            let (mut iid, mut parts) = (0, Vec::new());
            for (number, value) in value.message() {
                match number {
                    1 => iid = value.number(),
                    2 | 3 => parts.push(value.text()),
                    4 => parts.push(value.number().to_string().into()),
                    _ => (),
                }
            }
            // Only source locations have more than one: file, function, line.
            self.texts.insert((table, iid), parts.join(":"));
        }
    }

    /// An interned text; its number if it was never defined.
    pub fn text(&self, table: u32, iid: u64) -> String {
        self.texts.get(&(table, iid)).cloned().unwrap_or_else(|| format!("#{iid}"))
    }

    /// Takes a message `TracePacketDefaults`.
    pub fn defaults(&mut self, message: Message<'_>) {
        for (number, value) in message {
            match number {
                58 => self.clock = Some(value.number() as u32),
                11 => {
                    let track = value.message().find(|(number, _)| *number == 11);
                    self.track = track.map(|(_, value)| value.number()).or(self.track);
                }
                _ => (),
            }
        }
    }
}

/// A line of the picture.
#[derive(Debug, Clone, Default)]
pub struct Track {
    pub parent: u64,
    pub name: String,
    pub pid: Option<u32>,
    pub tid: Option<u32>,
    /// Set for counters.
    pub counter: Option<Counter>,
}

/// What a track says about its values.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    pub unit: String,
    pub multiplier: i64,
    pub incremental: bool,
}

/// All tracks, and the names that descriptors give to processes and threads.
#[derive(Debug, Default)]
pub struct Tracks {
    tracks: HashMap<u64, Track>,
    pub processes: BTreeMap<u32, String>,
    pub threads: BTreeMap<u32, String>,
    /// Processes of threads.
    pub groups: HashMap<u32, u32>,
}

impl Tracks {
    /// Takes a message `TrackDescriptor`.
    pub fn describe(&mut self, message: Message<'_>) {
        let mut track = Track::default();
        let mut uuid = 0;
        for (number, value) in message {
            match number {
                1 => uuid = value.number(),
                5 => track.parent = value.number(),
                2 | 10 | 13 => track.name = value.text().into_owned(),
                3 => track.pid = self.process(value.message()),
                4 => {
                    let (pid, tid) = self.thread(value.message());
                    (track.pid, track.tid) = (pid, tid);
                }
                8 => track.counter = Some(counter(value.message())),
                _ => (),
            }
        }
        self.tracks.insert(uuid, track);
    }

    /// Takes a message `ProcessDescriptor`; gives the process.
    pub fn process(&mut self, message: Message<'_>) -> Option<u32> {
        let (mut pid, mut name) = (None, None);
        for (number, value) in message {
            match number {
                1 => pid = Some(value.number() as u32),
                2 if name.is_none() => name = Some(value.text().into_owned()),
                6 => name = Some(value.text().into_owned()),
                _ => (),
            }
        }
        if let (Some(pid), Some(name)) = (pid, name.filter(|name| !name.is_empty())) {
            self.processes.insert(pid, name);
        }
        pid
    }

    /// Takes a message `ThreadDescriptor`; gives process and thread.
    pub fn thread(&mut self, message: Message<'_>) -> (Option<u32>, Option<u32>) {
        let (mut pid, mut tid, mut name) = (None, None, String::new());
        for (number, value) in message {
            match number {
                1 => pid = Some(value.number() as u32),
                2 => tid = Some(value.number() as u32),
                5 => name = value.text().into_owned(),
                _ => (),
            }
        }
        if let (Some(pid), Some(tid)) = (pid, tid) {
            self.groups.insert(tid, pid);
        }
        if let Some(tid) = tid.filter(|_| !name.is_empty()) {
            self.threads.insert(tid, name);
        }
        (pid, tid)
    }

    /// A track, where it was described.
    pub fn get(&self, uuid: u64) -> Option<&Track> {
        self.tracks.get(&uuid)
    }

    /// Process and thread of a track: its own or those of what it belongs to.
    pub fn owner(&self, uuid: u64) -> (Option<u32>, Option<u32>) {
        let mut at = uuid;
        // A track's own thread counts, but a counter under a thread is not its line.
        for depth in 0..32 {
            let Some(track) = self.tracks.get(&at) else { break };
            if track.tid.is_some() || track.pid.is_some() {
                let own = depth == 0 || track.tid.is_none();
                let counter = self.tracks.get(&uuid).is_some_and(|track| track.counter.is_some());
                return (track.pid, if own || counter { track.tid } else { None });
            }
            if track.parent == 0 || track.parent == at {
                break;
            }
            at = track.parent;
        }
        (None, None)
    }
}

fn counter(message: Message<'_>) -> Counter {
    let mut counter = Counter { multiplier: 1, ..Counter::default() };
    for (number, value) in message {
        match number {
            1 | 3 if counter.unit.is_empty() => {
                let names: &[&str] = if number == 1 {
                    &["", "ns", "instructions"]
                } else {
                    &["", "ns", "count", "bytes"]
                };
                let name = names.get(value.number() as usize).copied().unwrap_or("");
                name.clone_into(&mut counter.unit);
            }
            6 => counter.unit = value.text().into_owned(),
            4 => counter.multiplier = value.number() as i64,
            5 => counter.incremental = value.number() != 0,
            _ => (),
        }
    }
    counter
}
