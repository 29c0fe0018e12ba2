// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where events come from besides traced programs: the kernel, a network interface.
//!
//! A source gives records of schemas of its own in streams of its own; they become packets as
//! those of a ring do, so that metadata, index, report, checksums, analyses and `lat recover` need
//! not know where an event came from.
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

/// A stream that a source fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPlan {
    /// Name of its file: letters, digits, `_`, `-`.
    pub name: String,
    /// `cpu_id` of its packets.
    pub number: u32,
    /// Whether that is a processor.
    pub is_cpu: bool,
}

/// What a source says about itself in `report.json`, when it is done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceReport {
    /// Facts by name: `clock`, `instance`.
    pub details: BTreeMap<String, String>,
    /// Events that were lost, by the source's own words for the cause. They are in the streams'
    /// losses as well.
    pub lost: BTreeMap<String, u64>,
}

/// Takes what a source has.
pub trait Sink {
    /// The clock that times are in.
    fn clock(&self) -> ClockKind;

    /// That clock now. No time given may be much later.
    fn now(&self) -> u64;

    /// The open packet of a stream, by its place in [`Source::streams`].
    fn packet(&mut self, stream: usize) -> &mut PacketBuilder;

    /// Writes the open packet; an empty one is left open.
    fn close(&mut self, stream: usize);

    /// Notes that events were lost after the last record of the stream, and not after `until`.
    /// Cost: a packet of 128 bytes.
    fn lose(&mut self, stream: usize, lost: LossCounts, until: u64);

    /// Notes bytes from which no records could be made.
    fn damage(&mut self, stream: usize, reason: String);

    /// A sentence for people in the report.
    fn problem(&mut self, text: String);
}

impl dyn Sink + '_ {
    /// Adds a record. `fill` writes the payload by the layout of the event's schema; it is called
    /// again if the packet was full. A record that no packet holds is counted as lost.
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

/// Takes a record: whose it is, its id, and what writes its payload.
pub type TakeRecord<'a> = dyn FnMut(Option<Thread>, u16, &mut dyn FnMut(&mut Payload<'_>)) + 'a;

/// What a source told once, and every piece of a recording has to be told again to be read alone.
pub trait Introductions: Send + Sync {
    /// Gives all of it as it is now.
    fn each(&self, take: &mut TakeRecord<'_>);
}

/// Something besides traced programs that a recording takes events from.
///
/// Context: one thread, that of the session. The order of calls: `schemas`, `streams`, `begin`,
/// then `drain` again and again, `finish`. A source that is dropped without `finish` leaves nothing
/// behind in the system.
pub trait Source: Send {
    /// Its name in the report and in messages: `kernel`.
    fn name(&self) -> &str;

    /// What its records mean. See [`register`].
    fn schemas(&self) -> Vec<RegisteredSchema>;

    /// What readers must know of it beside its records, for the environment of the trace.
    fn environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What pieces of a recording begin with.
    fn introductions(&self) -> Option<Arc<dyn Introductions>> {
        None
    }

    /// Its streams.
    fn streams(&self) -> Vec<StreamPlan>;

    /// Begins. Records that say what was there before can be given already.
    ///
    /// Errors: a sentence that says what, where, and what to do; the recording goes on without.
    fn begin(&mut self, sink: &mut dyn Sink) -> Result<(), String>;

    /// Descriptors that become readable when it is high time to drain. They must not stay
    /// readable after `drain`.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    /// Bytes of its packets where the user asked for this many: for sources with long records.
    fn packet_bytes(&self, asked: u64) -> u64 {
        asked
    }

    /// Longest time between two drains.
    fn period(&self) -> Duration;

    /// Takes what there is now; how full the fullest buffer was, 0 to 1. Never waits.
    fn drain(&mut self, sink: &mut dyn Sink) -> f64;

    /// Where a process that is being started writes its number, as text, before it begins: for
    /// sources that look at chosen processes.
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

    /// A process was made, and waits: it becomes the program that is recorded when this returns.
    /// Context: another thread than that of the session, which waits as well.
    ///
    /// Errors: a sentence for people; the program does not start.
    fn before_exec(&mut self, pid: u32) -> Result<(), String> {
        let _ = pid;
        Ok(())
    }

    /// Whether nothing is recorded of a running process that it cannot look at: it was asked for by
    /// name, and a recording without it would be another one.
    fn must_see(&self) -> bool {
        false
    }

    /// Looks at a running process, too, if it looks at chosen ones.
    ///
    /// Errors: a sentence for people.
    fn adopt(&mut self, pid: u32) -> Result<(), String> {
        let _ = pid;
        Ok(())
    }

    /// Whether a process that it chose, or one that such a process made, still lives: for recordings
    /// that follow them. A source that chooses none says no.
    fn follows_somebody(&self) -> bool {
        false
    }

    /// Stops for now, or goes on.
    fn pause(&mut self, paused: bool);

    /// Ends and takes the rest, the last losses included.
    fn finish(&mut self, sink: &mut dyn Sink) -> SourceReport;
}

/// Gives schemas their ids, one after the other behind the internal ones. What has no place in
/// the numbers of the ABI is left out.
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
