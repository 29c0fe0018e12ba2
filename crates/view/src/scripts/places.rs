// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lanes of events and activities in a session.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use lateralis_lanes::{LaneKind, Lanes, NONE};
use lateralis_model::{Event, StreamSummary};
use lateralis_script::End;
use lateralis_store::facts::At;

use crate::packets;

/// Finds the lane of an event as the index does.
pub struct Places {
    cpus: HashMap<u32, u32, RandomState>,
    lanes: HashMap<(u32, u32), u32, RandomState>,
    threads: HashMap<(u32, u32), u32, RandomState>,
    streams: HashMap<String, u32, RandomState>,
    packets: HashMap<String, u32, RandomState>,
}

impl Places {
    /// Creates the lookup for a session.
    #[must_use]
    pub fn new(lanes: &Lanes) -> Self {
        let mut places = Self {
            cpus: HashMap::default(),
            lanes: HashMap::default(),
            threads: HashMap::default(),
            streams: HashMap::default(),
            packets: HashMap::default(),
        };
        for (id, lane) in (0..).zip(&lanes.meta().lanes) {
            match (lane.kind, lane.cpu, lane.pid.zip(lane.tid)) {
                (LaneKind::Cpu, Some(cpu), _) => {
                    places.cpus.insert(cpu, id);
                }
                (LaneKind::Thread, _, Some(thread)) => {
                    places.lanes.insert(thread, id);
                }
                (LaneKind::Component, ..) => {
                    places.streams.insert(lane.name.clone(), id);
                }
                (LaneKind::Packets, ..) => {
                    places.packets.insert(lane.name.clone(), id);
                }
                _ => {}
            }
        }
        for (id, thread) in (0..).zip(&lanes.meta().threads) {
            if let Some(thread) = thread.pid.zip(thread.tid) {
                places.threads.insert(thread, id);
            }
        }
        places
    }

    /// The lane of an event.
    #[must_use]
    pub fn of(&self, event: &Event<'_>, at: &At, streams: &[StreamSummary]) -> Option<u32> {
        let packets = packets::lane_name(event).and_then(|name| self.packets.get(&name));
        if let Some(lane) = packets {
            return Some(*lane);
        }
        match (at.cpu, at.writer) {
            (Some(cpu), _) => self.cpus.get(&cpu).copied(),
            (None, Some(writer)) => self.lanes.get(&(writer.pid, writer.tid)).copied(),
            (None, None) => {
                let stream = streams.get(event.stream.0 as usize)?;
                self.streams.get(&stream.name).copied()
            }
        }
    }

    /// The thread in which an activity began.
    #[must_use]
    pub fn thread(&self, begin: &End) -> u32 {
        let thread = begin.writer.and_then(|of| self.threads.get(&(of.pid, of.tid)).copied());
        thread.unwrap_or(NONE)
    }

    /// The lane of an activity: that of the CPU on which it began, otherwise of its thread.
    #[must_use]
    pub fn lane(&self, begin: &End) -> Option<u32> {
        begin.cpu.and_then(|cpu| self.cpus.get(&cpu).copied()).or_else(|| {
            let writer = begin.writer?;
            self.lanes.get(&(writer.pid, writer.tid)).copied()
        })
    }
}
