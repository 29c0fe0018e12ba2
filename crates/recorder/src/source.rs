// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sources of events besides traced programs: the kernel, a network interface.
//!
//! A source delivers records of its own schemas in its own streams; they become packets like
//! those of a ring, so that metadata, index, report, checksums, analyses and `lat recover` need
//! not distinguish the origin of an event.
//!
//! ```text
//! Source ── records, losses ──▶ Sink: PacketBuilder ── full ──▶ RingStream::seal ──▶ file
//! ```
//!
//! The core of a source is pure: bytes in, records out. It is driven with a [`MemorySink`] in
//! tests and under a fuzzer.

mod packet;
mod stream;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use lateralis_pleco::Schema;
use lateralis_ring::{ClockKind, LossCounts, abi};

use crate::classes::RegisteredSchema;

pub use packet::{PacketBuilder, Payload, Refused, Thread};
pub use stream::{MemorySink, SourceStream};

/// A stream of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPlan {
    /// Name of its file: letters, digits, `_`, `-`.
    pub name: String,
    /// `cpu_id` of its packets.
    pub number: u32,
    /// Whether that is a CPU.
    pub is_cpu: bool,
}

/// The report of a finished source in `report.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceReport {
    /// Facts by name: `clock`, `instance`.
    pub details: BTreeMap<String, String>,
    /// Numbers of lost events, by the source's own names of the causes. They are included in the streams'
    /// losses.
    pub lost: BTreeMap<String, u64>,
}

/// Receives the output of a source.
pub trait Sink {
    /// The clock of all times.
    fn clock(&self) -> ClockKind;

    /// Current time of that clock. No time passed may be much later.
    fn now(&self) -> u64;

    /// The open packet of a stream, by its index in [`Source::streams`].
    fn packet(&mut self, stream: usize) -> &mut PacketBuilder;

    /// Writes the open packet; an empty one is left open.
    fn close(&mut self, stream: usize);

    /// Records that events were lost after the last record of the stream, and not after `until`.
    /// Cost: a packet of 128 bytes.
    fn lose(&mut self, stream: usize, lost: LossCounts, until: u64);

    /// Records bytes that could not be decoded.
    fn damage(&mut self, stream: usize, reason: String);

    /// Adds a sentence for users to the report.
    fn problem(&mut self, text: String);
}

impl dyn Sink + '_ {
    /// Adds a record. `fill` writes the payload by the layout of the event's schema; it is called
    /// again if the packet was full. A record that is longer than a packet is counted as lost.
    pub fn record(
        &mut self,
        stream: usize,
        (time, thread): (u64, Option<Thread>),
        id: u16,
        fill: &mut dyn FnMut(&mut Payload<'_>),
    ) {
        loop {
            match self.packet(stream).record(time, thread, id, &mut *fill) {
                Ok(()) => return,
                Err(Refused::Full) => self.close(stream),
                Err(Refused::TooBig) => {
                    let lost = LossCounts { too_big: 1, ..LossCounts::default() };
                    return self.lose(stream, lost, time);
                }
            }
        }
    }
}

/// Receives a record: its thread, its id, and a function that writes its payload.
pub type TakeRecord<'a> = dyn FnMut(Option<Thread>, u16, &mut dyn FnMut(&mut Payload<'_>)) + 'a;

/// Data that a source reports once, which every part of a recording must contain to be readable alone.
pub trait Introductions: Send + Sync {
    /// Returns all of it in its current state.
    fn each(&self, take: &mut TakeRecord<'_>);
}

/// A source of events besides traced programs.
///
/// Context: one thread, that of the session. The order of calls: `schemas`, `streams`, `begin`,
/// then `drain` repeatedly, `finish`. A source that is dropped without `finish` leaves nothing
/// in the system.
pub trait Source: Send {
    /// Its name in the report and in messages: `kernel`.
    fn name(&self) -> &str;

    /// The schemas of its records. See [`register`].
    fn schemas(&self) -> Vec<RegisteredSchema>;

    /// Facts for readers besides its records, for the environment of the trace.
    fn environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Data for the start of each part of a recording.
    fn introductions(&self) -> Option<Arc<dyn Introductions>> {
        None
    }

    /// Its streams.
    fn streams(&self) -> Vec<StreamPlan>;

    /// Starts. May already deliver records of existing state.
    ///
    /// Errors: a sentence with what, where, and what to do; the recording continues without it.
    fn begin(&mut self, sink: &mut dyn Sink) -> Result<(), String>;

    /// Descriptors that become readable when draining is urgent. They must not stay
    /// readable after `drain`.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Size of its packets in bytes, if the user requested `asked`: for sources with long records.
    fn packet_bytes(&self, asked: u64) -> u64 {
        asked
    }

    /// Maximum time between two drains.
    fn period(&self) -> Duration;

    /// Delivers the available records; returns the fullest buffer's fraction, 0 to 1. Never blocks.
    fn drain(&mut self, sink: &mut dyn Sink) -> f64;

    /// Where a process that is being started writes its pid, as text, before it begins: for
    /// sources that record selected processes.
    fn adoption(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// A process was started that wrote to [`Source::adoption`].
    fn started(&mut self, pid: u32) {
        let _ = pid;
    }

    /// Whether a process that is being started has to wait for [`Source::before_exec`].
    fn waits_for_programs(&self) -> bool {
        false
    }

    /// A process was created, and waits: it executes the recorded program when this returns.
    /// Context: another thread than that of the session, which waits as well.
    ///
    /// Errors: a sentence for users; the program does not start.
    fn before_exec(&mut self, pid: u32) -> Result<(), String> {
        let _ = pid;
        Ok(())
    }

    /// Whether a running process must not be recorded if this source cannot observe it: it was requested by
    /// name, and a recording without it would be misleading.
    fn must_see(&self) -> bool {
        false
    }

    /// Also records a running process, if the source selects processes.
    ///
    /// Errors: a sentence for users.
    fn adopt(&mut self, pid: u32) -> Result<(), String> {
        let _ = pid;
        Ok(())
    }

    /// Whether a selected process, or a descendant of one, is still running: for recordings
    /// that follow them. False for a source that selects none.
    fn follows_somebody(&self) -> bool {
        false
    }

    /// Pauses or resumes.
    fn pause(&mut self, paused: bool);

    /// Ends, and delivers the rest, including the last losses.
    fn finish(&mut self, sink: &mut dyn Sink) -> SourceReport;
}

/// Assigns ids to schemas, one after the other after the internal ones. Schemas beyond
/// the limit of the ABI are left out.
pub fn register(schemas: impl IntoIterator<Item = Schema>) -> Vec<RegisteredSchema> {
    let mut base_id = abi::INTERNAL_EVENT_COUNT;
    let mut registered = Vec::new();
    for schema in schemas {
        let Some(next) = base_id.checked_add(schema.events.len() as u32) else { break };
        if next > abi::EVENT_COUNT {
            break;
        }
        let hash = schema.hash();
        registered.push(RegisteredSchema { base_id, schema: Arc::new(schema), hash });
        base_id = next;
    }
    registered
}
