// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to block devices: time in queues and time in the device.
//!
//! ```text
//! block_rq_insert ── queue ──► block_rq_issue ── device ──► block_rq_complete
//!                      ▲              └── block_rq_requeue ──┐
//!                      └─────────────────────────────────────┘
//! ```
//!
//! Events identify a request only by device and first sector; a merge changes that sector or removes the
//! request. Two concurrent requests at the same place (flushes have none) cannot be distinguished, and
//! their times are then unknown.

use std::collections::HashMap;
use std::fmt;

use foldhash::fast::RandomState;
use lateralis_model::{Event, EventClass, Host, StreamIndex, Writer};
use lateralis_units::Nanos;

use super::{Activity, fields};
use crate::facts::At;

/// Requests in progress that are remembered.
const OPEN_MAX: usize = 1 << 20;
/// Concurrent requests at one place that are remembered.
const TWINS_MAX: usize = 64;
/// Bytes of a sector [include/linux/blk_types.h, `SECTOR_SIZE`].
const SECTOR_BYTES: u64 = 512;
/// Bits of a minor number [include/linux/kdev_t.h, `MINORBITS`].
const MINOR_BITS: u32 = 20;

/// A device, by its number in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    /// Its machine.
    pub host: Host,
    /// Its number in the kernel.
    pub number: u32,
}

/// `MAJOR:MINOR`, as in `/sys/dev/block`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number >> MINOR_BITS, self.number & ((1 << MINOR_BITS) - 1))
    }
}

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Transfers data from the device.
    Read,
    /// Transfers data to the device.
    Write,
    /// Discards sectors.
    Discard,
    /// Makes data in the device's cache durable.
    Flush,
    /// Any other, a command for instance.
    Other,
}

impl Operation {
    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Discard => "discard",
            Self::Flush => "flush",
            Self::Other => "other",
        }
    }

    /// From the letters of the kernel: `W`, `FWS`, `RA` [kernel/trace/blktrace.c, `blk_fill_rwbs`].
    fn of_letters(letters: &str) -> Self {
        // A preceding flush is an F before the operation.
        let operation = match letters.strip_prefix('F') {
            Some(rest) if rest.starts_with(['W', 'R', 'D', 'N', 'F']) => rest,
            _ => letters,
        };
        match operation.bytes().next() {
            Some(b'R') => Self::Read,
            Some(b'W') => Self::Write,
            Some(b'D') => Self::Discard,
            Some(b'F') => Self::Flush,
            _ => Self::Other,
        }
    }

    /// From the bits of LTTng [include/instrumentation/events/block.h, `RWBS_FLAG_*`].
    fn of_bits(bits: u64) -> Self {
        match bits {
            _ if bits & 1 << 1 != 0 => Self::Discard,
            _ if bits & 1 != 0 => Self::Write,
            _ if bits & 1 << 2 != 0 => Self::Read,
            _ if bits & 1 << 8 != 0 => Self::Flush,
            _ => Self::Other,
        }
    }
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestStatus {
    /// The device has completed it.
    Complete,
    /// It was in progress when the trace ended.
    Unfinished,
    /// Another request began at its place: its outcome is missing.
    Missing,
}

impl RequestStatus {
    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Unfinished => "unfinished",
            Self::Missing => "missing",
        }
    }
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// Stream of its last event.
    pub stream: StreamIndex,
    /// The device.
    pub device: Device,
    /// Its operation.
    pub operation: Operation,
    /// Thread of its first event.
    pub writer: Option<Writer>,
    /// Its final first sector.
    pub sector: u64,
    /// Bytes transferred; for a request that is not complete, bytes requested.
    pub bytes: u64,
    /// Time at which it was queued; `None`: not seen, perhaps it was never queued.
    pub inserted: Option<Nanos>,
    /// Time at which it was last issued to the device.
    pub issued: Option<Nanos>,
    /// Time at which the device completed it.
    pub completed: Option<Nanos>,
    /// Time in queues, in nanoseconds.
    pub queue_ns: Option<u64>,
    /// Time in the device, in nanoseconds.
    pub service_ns: Option<u64>,
    /// Number of times the device gave it back.
    pub requeues: u32,
    /// Error number returned by the device, in the kernel's numbering.
    pub error: i64,
    /// Its outcome.
    pub status: RequestStatus,
}

/// Step of a request that an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Insert,
    Issue,
    Requeue,
    Complete,
    /// Bytes are added before, and after.
    FrontMerge,
    BackMerge,
    /// It has become part of the request before it.
    Merged,
}

/// Meaning of the events of a class.
#[derive(Debug)]
pub struct BlockRule {
    step: Step,
    host: Host,
    dev: usize,
    sector: usize,
    sectors: Option<usize>,
    rwbs: Option<usize>,
    error: Option<usize>,
}

/// Values of such an event.
#[derive(Debug, Clone, Copy)]
struct Told {
    step: Step,
    device: Device,
    sector: u64,
    sectors: u64,
    operation: Operation,
    error: i64,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    request: Request,
    sectors: u64,
    /// Start of the current wait, if it waits.
    waits_since: Option<Nanos>,
    is_issued: bool,
    is_ambiguous: bool,
}

/// Device and first sector.
type Place = (Device, u64);

/// Follows requests, in time order.
#[derive(Debug, Default)]
pub struct Requests {
    open: HashMap<Place, Vec<Open>, RandomState>,
    /// First sector of the request that ends before a sector.
    ends: HashMap<Place, u64, RandomState>,
    count: usize,
}

/// Rule of a class, if its events concern requests.
pub(super) fn rule(class: &EventClass, host: Host) -> Option<BlockRule> {
    let step = match class.name.rsplit(':').next()? {
        "block_rq_insert" => Step::Insert,
        "block_rq_issue" => Step::Issue,
        "block_rq_requeue" => Step::Requeue,
        "block_rq_complete" => Step::Complete,
        "block_bio_frontmerge" => Step::FrontMerge,
        "block_bio_backmerge" => Step::BackMerge,
        "block_rq_merge" => Step::Merged,
        _ => return None,
    };
    Some(BlockRule {
        step,
        host,
        dev: fields::place(class, &["dev"])?,
        sector: fields::place(class, &["sector"])?,
        sectors: fields::place(class, &["nr_sector"]),
        rwbs: fields::place(class, &["rwbs"]),
        error: fields::place(class, &["error", "errors"]),
    })
}

impl Requests {
    pub(super) fn event(
        &mut self,
        rule: &BlockRule,
        event: &Event<'_>,
        at: &At,
        see: &mut dyn FnMut(&Activity),
    ) {
        let number = |place| fields::number(event, place);
        let (Some(dev), Some(sector)) = (number(Some(rule.dev)), number(Some(rule.sector))) else {
            return;
        };
        let operation =
            rule.rwbs.and_then(|place| fields::field(event, place)).map(|field| {
                match (field.as_u64(), field.as_text()) {
                    (Some(bits), _) => Operation::of_bits(bits),
                    (None, text) => Operation::of_letters(&text.unwrap_or_default()),
                }
            });
        let told = Told {
            step: rule.step,
            device: Device { host: rule.host, number: dev as u32 },
            sector,
            sectors: number(rule.sectors).unwrap_or(0),
            operation: operation.unwrap_or(Operation::Other),
            error: rule.error.and_then(|place| fields::signed(event, place)).unwrap_or(0),
        };
        self.step(&told, at, see);
    }

    fn step(&mut self, told: &Told, at: &At, see: &mut dyn FnMut(&Activity)) {
        let Told { step, device, sector, sectors, operation, error } = *told;
        let place = (device, sector);
        let new = || Open {
            request: Request {
                stream: at.stream,
                device,
                operation,
                writer: at.writer,
                sector,
                bytes: 0,
                inserted: None,
                issued: None,
                completed: None,
                queue_ns: None,
                service_ns: None,
                requeues: 0,
                error: 0,
                status: RequestStatus::Unfinished,
            },
            sectors,
            waits_since: None,
            is_issued: false,
            is_ambiguous: false,
        };
        match step {
            Step::FrontMerge | Step::BackMerge | Step::Merged => {
                see(&Activity::Merge(device));
                self.merge(step, place, sectors, see);
            }
            Step::Insert => {
                // Further events of a request that still waits there were lost.
                if let Some(lost) = self.take(place, |open| !open.is_issued) {
                    see(&missing(lost));
                }
                let mut open = new();
                open.request.inserted = Some(at.time);
                open.waits_since = Some(at.time);
                self.add(place, open, see);
            }
            Step::Issue => {
                let mut open = self.take(place, |open| !open.is_issued).unwrap_or_else(new);
                if let Some(since) = open.waits_since.take() {
                    let waited = at.time.since(since).max(0).unsigned_abs();
                    // If its first queueing was not seen, the total is unknown.
                    let is_known = open.request.inserted.is_some();
                    let sum = open.request.queue_ns.unwrap_or(0).saturating_add(waited);
                    open.request.queue_ns = is_known.then_some(sum);
                }
                open.request.issued = Some(at.time);
                open.request.operation = operation;
                (open.sectors, open.is_issued) = (sectors, true);
                self.add(place, open, see);
            }
            Step::Requeue => {
                let mut open = self.take(place, |open| open.is_issued).unwrap_or_else(new);
                open.is_issued = false;
                open.waits_since = Some(at.time);
                open.request.requeues = open.request.requeues.saturating_add(1);
                open.request.issued = None;
                self.add(place, open, see);
            }
            Step::Complete => {
                let mut open = self.take(place, |open| open.is_issued).unwrap_or_else(new);
                let bytes = sectors.saturating_mul(SECTOR_BYTES);
                open.request.bytes = open.request.bytes.saturating_add(bytes);
                open.request.stream = at.stream;
                if error != 0 {
                    open.request.error = error;
                }
                let left = open.sectors.saturating_sub(sectors);
                // A part of it is complete; the rest begins after it.
                if left > 0 && sectors > 0 && open.request.error == 0 {
                    open.sectors = left;
                    self.add((device, sector.saturating_add(sectors)), open, see);
                    return;
                }
                let issued = open.request.issued.filter(|_| !open.is_ambiguous);
                open.request.service_ns =
                    issued.map(|issued| at.time.since(issued).max(0).unsigned_abs());
                open.request.completed = Some(at.time);
                open.request.status = RequestStatus::Complete;
                see(&Activity::Request(open.request));
            }
        }
    }

    fn add(&mut self, place: Place, mut open: Open, see: &mut dyn FnMut(&Activity)) {
        let twins = self.open.get(&place).map_or(0, Vec::len);
        if self.count >= OPEN_MAX || twins >= TWINS_MAX {
            // It is no longer followed.
            see(&missing(open));
            return;
        }
        self.count += 1;
        open.request.sector = open.request.sector.min(place.1);
        let of_place = self.open.entry(place).or_default();
        // Two at one place can no longer be distinguished.
        let is_twice = of_place.iter().any(|other| other.is_issued == open.is_issued);
        of_place.push(open);
        if is_twice {
            of_place.iter_mut().for_each(|open| open.is_ambiguous = true);
        }
        if open.sectors > 0 && !open.is_issued {
            self.ends.insert((place.0, place.1.saturating_add(open.sectors)), place.1);
        }
    }

    fn take(&mut self, place: Place, is_wanted: impl Fn(&Open) -> bool) -> Option<Open> {
        let of_place = self.open.get_mut(&place)?;
        let index = of_place.iter().position(is_wanted)?;
        let open = of_place.remove(index);
        if of_place.is_empty() {
            self.open.remove(&place);
        }
        self.count -= 1;
        let end = (place.0, place.1.saturating_add(open.sectors));
        if self.ends.get(&end) == Some(&place.1) {
            self.ends.remove(&end);
        }
        Some(open)
    }

    /// The sectors of a waiting request have changed. A request that is not queued yet arrives with its
    /// final sectors.
    fn merge(
        &mut self,
        step: Step,
        (device, sector): Place,
        sectors: u64,
        see: &mut dyn FnMut(&Activity),
    ) {
        let waits = |open: &Open| !open.is_issued;
        match step {
            Step::FrontMerge => {
                let behind = (device, sector.saturating_add(sectors));
                if let Some(mut open) = self.take(behind, waits) {
                    open.sectors = open.sectors.saturating_add(sectors);
                    self.add((device, sector), open, see);
                }
            }
            _ => {
                let merged = match step {
                    Step::Merged => self.take((device, sector), waits),
                    _ => None,
                };
                let added = merged.map_or(sectors, |merged| merged.sectors);
                let Some(first) = self.ends.get(&(device, sector)).copied() else { return };
                if let Some(mut open) = self.take((device, first), waits) {
                    open.sectors = open.sectors.saturating_add(added);
                    self.add((device, first), open, see);
                }
            }
        }
    }

    pub(super) fn finish(&mut self, see: &mut dyn FnMut(&Activity)) {
        self.ends.clear();
        self.count = 0;
        let mut open: Vec<Open> = std::mem::take(&mut self.open).into_values().flatten().collect();
        open.sort_by_key(|open| {
            let of = &open.request;
            (of.inserted.or(of.issued), of.device, of.sector)
        });
        for of in open {
            let asked = of.sectors.saturating_mul(SECTOR_BYTES);
            let bytes = of.request.bytes.saturating_add(asked);
            see(&Activity::Request(Request { bytes, ..of.request }));
        }
    }
}

fn missing(open: Open) -> Activity {
    let bytes = open.sectors.saturating_mul(SECTOR_BYTES);
    Activity::Request(Request { bytes, status: RequestStatus::Missing, ..open.request })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bits_are_those_of_the_kernel() {
        for (letters, operation) in [
            ("R", Operation::Read),
            ("RA", Operation::Read),
            ("W", Operation::Write),
            ("WS", Operation::Write),
            ("FWFS", Operation::Write),
            ("FF", Operation::Flush),
            ("F", Operation::Flush),
            ("FS", Operation::Flush),
            ("D", Operation::Discard),
            ("N", Operation::Other),
            ("", Operation::Other),
        ] {
            assert_eq!(Operation::of_letters(letters), operation, "{letters}");
        }
        assert_eq!(Operation::of_bits(1), Operation::Write);
        assert_eq!(Operation::of_bits(1 << 2 | 1 << 5), Operation::Read);
        let device = Device { host: Host::default(), number: 266_338_304 };
        assert_eq!(device.to_string(), "254:0");
    }

    /// Requests from steps `(time, step, sector, sectors)` of one device.
    fn requests(steps: &[(i64, Step, u64, u64)]) -> Vec<Request> {
        let (mut requests, mut found) = (Requests::default(), Vec::new());
        let mut see = |activity: &Activity| {
            if let Activity::Request(request) = activity {
                found.push(*request);
            }
        };
        let device = Device { host: Host::default(), number: 1 };
        for &(time, step, sector, sectors) in steps {
            let operation = Operation::Write;
            let told = Told { step, device, sector, sectors, operation, error: 0 };
            let (time, stream) = (Nanos(time), StreamIndex(0));
            let at = At { time, stream, cpu: None, writer: None, is_told: false };
            requests.step(&told, &at, &mut see);
        }
        requests.finish(&mut see);
        found
    }

    fn times(request: &Request) -> (Option<u64>, Option<u64>, u64, RequestStatus) {
        (request.queue_ns, request.service_ns, request.bytes, request.status)
    }

    #[test]
    fn queues_and_devices_have_their_times() {
        use RequestStatus::{Complete, Missing, Unfinished};
        let times = |steps: &[_]| requests(steps).iter().map(times).collect::<Vec<_>>();
        let whole = [(10, Step::Insert, 8, 8), (15, Step::Issue, 8, 8), (40, Step::Complete, 8, 8)];
        assert_eq!(times(&whole), [(Some(5), Some(25), 4096, Complete)]);
        // Without a queue, and without its beginning.
        assert_eq!(times(&whole[1..]), [(None, Some(25), 4096, Complete)]);
        assert_eq!(times(&whole[2..]), [(None, None, 4096, Complete)]);
        assert_eq!(times(&whole[..2]), [(Some(5), None, 4096, Unfinished)]);
        // Given back: it waits again, and the device starts over.
        let again = [
            (10, Step::Insert, 8, 8),
            (15, Step::Issue, 8, 8),
            (20, Step::Requeue, 8, 8),
            (27, Step::Issue, 8, 8),
            (30, Step::Complete, 8, 8),
        ];
        assert_eq!(times(&again), [(Some(12), Some(3), 4096, Complete)]);
        assert_eq!(requests(&again)[0].requeues, 1);
        // In two parts.
        let parts =
            [(1, Step::Issue, 8, 16), (5, Step::Complete, 8, 8), (9, Step::Complete, 16, 8)];
        assert_eq!(times(&parts), [(None, Some(8), 8192, Complete)]);
        // Sectors are added before, after, and by another request.
        let merged = [
            (1, Step::Insert, 8, 8),
            (2, Step::FrontMerge, 0, 8),
            (3, Step::BackMerge, 16, 8),
            (4, Step::Insert, 24, 8),
            (5, Step::Merged, 24, 8),
            (6, Step::Issue, 0, 32),
            (9, Step::Complete, 0, 32),
        ];
        assert_eq!(times(&merged), [(Some(5), Some(3), 16384, Complete)]);
        // Two at one place cannot be distinguished, and a replaced request is missing.
        let twice = [
            (1, Step::Issue, 0, 0),
            (2, Step::Issue, 0, 0),
            (5, Step::Complete, 0, 0),
            (9, Step::Complete, 0, 0),
        ];
        assert_eq!(times(&twice), [(None, None, 0, Complete), (None, None, 0, Complete)]);
        let lost = [(1, Step::Insert, 8, 8), (2, Step::Insert, 8, 8)];
        assert_eq!(times(&lost), [(None, None, 4096, Missing), (None, None, 4096, Unfinished)]);
        // Any number at one place.
        let many: Vec<_> = (0..100_000).map(|time| (time, Step::Issue, 0, 0)).collect();
        assert_eq!(requests(&many).len(), many.len());
    }
}
