// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captured interfaces as a source of a recording.
//!
//! Each interface has a socket and a stream of its own, so losses are attributed to it. All
//! stamps are the kernel's, in CLOCK_REALTIME, and are converted to the recording's clock by readings
//! of both; a network card's own stamps use a clock that is not related to it here.

mod socket;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use lateralis_ring::{ClockKind, LossCounts};

use self::socket::{PacketSocket, interfaces};
use super::clocks;
use crate::capture::{Frame, Interface, StampClock, frames, link_type, schema};
use crate::classes::RegisteredSchema;
use crate::error::Error;
use crate::source::{Sink, Source, SourceReport, StreamPlan, register};

/// A packet of a recording must hold the longest network packets of a loopback.
const PACKET_BYTES: u64 = 128 << 10;
/// Bytes of a record besides the data and the name, and of the packet around it.
const AROUND_BYTES: u64 = 256;
/// Maximum time between two polls. Blocks are handed over after 10 ms, and wake the session.
const PERIOD: Duration = Duration::from_millis(50);
/// Maximum wait at the end for packets that the kernel still holds.
const LAST_WAIT: Duration = Duration::from_millis(500);

struct Captured {
    interface: Interface,
    /// `None` before it begins, and if it cannot.
    socket: Option<PacketSocket>,
    received: u64,
    dropped: u64,
    taken: u64,
    /// Largest error bound of a stamp.
    error_ns: u64,
}

/// Captures packets of network interfaces.
pub struct Capture {
    captured: Vec<Captured>,
    registered: Vec<RegisteredSchema>,
    ring_bytes: u64,
    clock: Option<(ClockKind, StampClock)>,
}

impl Capture {
    /// Prepares to capture these interfaces; `any` selects all. At most `snap_bytes` of a
    /// packet are kept. `ring_bytes` is the kernel's buffer for each interface.
    ///
    /// Errors: there is no such interface.
    pub fn new(names: &[String], snap_bytes: u64, ring_bytes: u64) -> Result<Capture, Error> {
        let known = interfaces();
        let mut chosen: Vec<String> = Vec::new();
        for name in names {
            let meant = if name == "any" { known.clone() } else { vec![name.clone()] };
            for name in meant {
                if !known.contains(&name) {
                    return Err(Error::NoSuchInterface { name, known });
                }
                if !chosen.contains(&name) {
                    chosen.push(name);
                }
            }
        }
        let most = |name: &str| (PACKET_BYTES - AROUND_BYTES).saturating_sub(name.len() as u64);
        let captured = chosen.into_iter().map(|name| Captured {
            interface: Interface {
                link_type: 0,
                snap_bytes: snap_bytes.min(most(&name)) as usize,
                name,
            },
            socket: None,
            received: 0,
            dropped: 0,
            taken: 0,
            error_ns: 0,
        });
        Ok(Capture {
            captured: captured.collect(),
            registered: register(schema().map(|schema| (*schema).clone())),
            ring_bytes,
            clock: None,
        })
    }

    fn id(&self) -> u16 {
        self.registered.first().map_or(0, |schema| schema.base_id as u16)
    }

    fn drain_all(&mut self, sink: &mut dyn Sink) -> f64 {
        let id = self.id();
        let Some((kind, clock)) = &mut self.clock else { return 0.0 };
        clock.sample(clocks::sample(*kind));
        let mut fill = 0.0f64;
        for (stream, captured) in self.captured.iter_mut().enumerate() {
            fill = fill.max(captured.drain(sink, (stream, id), (*kind, clock)));
            captured.count(sink, stream);
        }
        fill
    }
}

/// Sorts frames by stamp: CPUs stamp independently, and enter the ring in the order in which they
/// get its lock.
fn in_order(block: &[u8]) -> (Vec<Frame<'_>>, Option<String>) {
    let mut all = frames(block);
    let mut found: Vec<_> = all.by_ref().collect();
    found.sort_by_key(|frame| frame.utc_ns);
    (found, all.fault().map(|fault| fault.to_string()))
}

impl Captured {
    /// Reads the blocks present; returns their fraction of the ring.
    fn drain(
        &mut self,
        sink: &mut dyn Sink,
        (stream, id): (usize, u16),
        (kind, clock): (ClockKind, &mut StampClock),
    ) -> f64 {
        let Captured { interface, socket, taken, error_ns, .. } = self;
        let Some(socket) = socket else { return 0.0 };
        let mut look = |block: &[u8]| {
            // After the block was handed over: no stamp in it is later.
            clock.sample(clocks::sample(kind));
            let now = sink.now();
            let (found, fault) = in_order(block);
            for frame in &found {
                let Some(stamped) = clock.place(frame.utc_ns) else { continue };
                *error_ns = (*error_ns).max(stamped.error_ns);
                let at = (stamped.ticks.min(now), None);
                sink.record(stream, at, id, &mut |payload| interface.fill(frame, payload));
            }
            *taken += found.len() as u64;
            if let Some(fault) = fault {
                sink.damage(stream, fault);
            }
        };
        let mut blocks = 0;
        // At most all blocks of the ring; one that arrives meanwhile waits for the next round.
        while blocks < socket.blocks() && socket.take(&mut look) {
            blocks += 1;
        }
        blocks as f64 / socket.blocks() as f64
    }

    /// Reads the kernel's counters, and reports drops.
    fn count(&mut self, sink: &mut dyn Sink, stream: usize) {
        let Some(socket) = &self.socket else { return };
        let counted = match socket.counted() {
            Ok(counted) => counted,
            Err(cause) => {
                sink.problem(format!(
                    "Cannot count the dropped packets: interface={}, cause={cause}",
                    self.interface.name
                ));
                return;
            }
        };
        self.received += counted.received;
        self.dropped += counted.dropped;
        if counted.dropped != 0 {
            let lost = LossCounts { full: counted.dropped, ..LossCounts::default() };
            let now = sink.now();
            sink.lose(stream, lost, now);
        }
    }

    /// Opens the socket and starts it.
    fn begin(&mut self, ring_bytes: u64) -> Result<(), String> {
        let name = &self.interface.name;
        let refused = |cause: &io::Error| {
            let advice = match cause.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => {
                    "the right CAP_NET_RAW is missing: run lat with sudo, or once \
                     `sudo setcap cap_net_raw+ep` on it"
                }
                Some(libc::ENOMEM) => "there is no memory for its ring: make --buffer smaller",
                Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => {
                    "this kernel has no packet sockets (CONFIG_PACKET)"
                }
                Some(libc::ENETDOWN) => "the interface is down: set it up first",
                _ => "its packets are not recorded",
            };
            format!("Cannot capture packets: interface={name}, cause={cause}: {advice}")
        };
        // The excess is truncated later, after a removed VLAN tag is inserted again.
        let snap_bytes = u32::try_from(self.interface.snap_bytes).unwrap_or(u32::MAX).max(1);
        let socket =
            PacketSocket::open(name, snap_bytes, ring_bytes).map_err(|cause| refused(&cause))?;
        let hardware_type = socket.hardware_type;
        self.interface.link_type = link_type(hardware_type).ok_or_else(|| {
            format!(
                "Cannot capture packets: interface={name}, hardware-type={hardware_type}: \
                 no reader knows packets of this kind"
            )
        })?;
        socket.start(name).map_err(|cause| refused(&cause))?;
        self.socket = Some(socket);
        Ok(())
    }
}

impl Source for Capture {
    fn name(&self) -> &str {
        "packets"
    }

    fn schemas(&self) -> Vec<RegisteredSchema> {
        self.registered.clone()
    }

    fn streams(&self) -> Vec<StreamPlan> {
        let file_name = |name: &str| {
            let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
            format!("packets_{}", name.chars().map(safe).collect::<String>())
        };
        let streams = self.captured.iter().enumerate().map(|(number, captured)| StreamPlan {
            name: file_name(&captured.interface.name),
            number: number as u32,
            is_cpu: false,
        });
        streams.collect()
    }

    fn packet_bytes(&self, asked: u64) -> u64 {
        asked.max(PACKET_BYTES)
    }

    fn begin(&mut self, sink: &mut dyn Sink) -> Result<(), String> {
        let kind = sink.clock();
        let mut clock = StampClock::new(clocks::frequency(kind).0);
        clock.sample(clocks::sample(kind));
        self.clock = Some((kind, clock));
        let mut problems = Vec::new();
        for captured in &mut self.captured {
            problems.extend(captured.begin(self.ring_bytes).err());
        }
        if problems.len() < self.captured.len() {
            // An interface that cannot be captured does not affect the others.
            problems.into_iter().for_each(|problem| sink.problem(problem));
            return Ok(());
        }
        Err(problems.join("; "))
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let sockets = self.captured.iter().filter_map(|captured| captured.socket.as_ref());
        sockets.map(PacketSocket::descriptor).collect()
    }

    fn period(&self) -> Duration {
        PERIOD
    }

    fn drain(&mut self, sink: &mut dyn Sink) -> f64 {
        self.drain_all(sink)
    }

    fn pause(&mut self, paused: bool) {
        for socket in self.captured.iter().filter_map(|captured| captured.socket.as_ref()) {
            // Set before: only memory can be missing, and then the state is unchanged.
            let _ = socket.pause(paused);
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> SourceReport {
        self.pause(true);
        let until = Instant::now() + LAST_WAIT;
        let left = |captured: &Captured| {
            let handed_over = captured.received.saturating_sub(captured.dropped);
            captured.socket.is_some() && captured.taken < handed_over
        };
        loop {
            self.drain_all(sink);
            // The kernel counts a packet before it hands it over: none is left.
            if !self.captured.iter().any(left) || Instant::now() >= until {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut report = SourceReport::default();
        let steps = self.clock.as_ref().map_or(0, |(_, clock)| clock.steps());
        let error_ns = self.captured.iter().map(|captured| captured.error_ns).max();
        let mut note = |key: &str, value: String| report.details.insert(key.to_owned(), value);
        note("stamps", "CLOCK_REALTIME, when the kernel had the packet".to_owned());
        note("stamp_error_ns", error_ns.unwrap_or(0).to_string());
        note("clock_steps", steps.to_string());
        note("thread", "not known: the kernel does not tell it with a packet".to_owned());
        let mut lost = BTreeMap::new();
        for (stream, captured) in self.captured.iter().enumerate() {
            let name = &captured.interface.name;
            let missing = captured.received.saturating_sub(captured.dropped + captured.taken);
            if captured.socket.is_some() && missing != 0 {
                sink.problem(format!(
                    "Cannot get all packets: interface={name}, {missing} were counted by the \
                     kernel and not handed over"
                ));
            }
            let facts = [
                ("link_type", u64::from(captured.interface.link_type)),
                ("received", captured.received),
                ("dropped", captured.dropped),
                ("recorded", captured.taken),
                ("moved", sink.packet(stream).clamped()),
            ];
            for (key, value) in facts {
                report.details.insert(format!("{name}.{key}"), value.to_string());
            }
            if captured.dropped != 0 {
                lost.insert(format!("{name}: no room in the kernel's ring"), captured.dropped);
            }
        }
        report.lost = lost;
        for captured in &mut self.captured {
            captured.socket = None;
        }
        report
    }
}
