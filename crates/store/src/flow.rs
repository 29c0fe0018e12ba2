// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions that a processor executed, out of its own packets, the code that was mapped and the events
//! that say which program ran.
//!
//! ```text
//! packets of a thread ── runs ─┐
//! mmap, fork, comm ── Places ──┴─► Flow::decode ─► blocks, events, gaps ─► whoever follows them
//! ```

mod calls;
mod coverage;
mod delta;
mod resolution;
mod sizes;
mod system_calls;
pub mod timeline;

use std::ops::ControlFlow;

use lateralis_intelpt::Block;
use lateralis_intelpt::flow::{Event, Flow, GapCause, Sink};
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::packet::{Packet, Packets};
use lateralis_intelpt::time::{Settings, Times, perf_nanos};
use lateralis_model::{Source, Value};
use lateralis_traces::hardware::{Buffer, Clocks};

pub use calls::{Call, Executed, INSTRUCTIONS, executed};
pub use coverage::{Coverage, Covered, coverage};
pub use delta::{Deltas, Interval, Marker, Pairing, Place, Stretch, deltas, stretches};
pub use lateralis_intelpt as intelpt;
pub use resolution::{Resolution, factors, resolution};
pub use sizes::{Kind, Sizes, sizes};
pub use system_calls::{SystemCalls, system_calls};

use crate::places::{Function, In, Places};

/// Bytes of code of a program that are read.
const CODE_BYTES_MAX: u64 = 4 << 30;
/// Where addresses of the kernel begin [Documentation/arch/x86/x86_64/mm.rst, the canonical hole].
const KERNEL_BEGIN: u64 = 1 << 63;
/// The flag of an `aux` record: the buffer was full [perf_event.h, PERF_AUX_FLAG_TRUNCATED].
const AUX_TRUNCATED: u64 = 1;
/// The kind of record that begins a trace of a thread, by its name.
const TRACE_STARTS: &str = "itrace_start";

/// When something happened, in nanoseconds of the recording's clock; `None` where nothing says it.
pub type Moment = Option<Timestamp>;

/// A moment with its bounds, in nanoseconds of the recording's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// When it probably was.
    pub nanos: u64,
    /// How far that may be off; `None`: by any time.
    pub error_nanos: Option<u64>,
}

/// Whose instructions they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traced {
    /// The processor, where one was traced.
    pub cpu: Option<u32>,
    /// The process; 0 where nothing says it.
    pub pid: u32,
    /// The thread; 0 where nothing says it.
    pub tid: u32,
    /// The name of the program.
    pub program: String,
}

/// Packets with the code that they are of.
struct Part {
    traced: Traced,
    runs: Vec<Vec<u8>>,
    code: Vec<(u64, Vec<u8>)>,
}

/// What was recorded of a processor's instructions.
pub struct Recorded<'i> {
    places: Places<'i>,
    parts: Vec<Part>,
    clocks: Clocks,
    /// Why parts cannot be decoded.
    unreadable: Vec<(Option<u32>, String)>,
    /// How often the buffer of a thread or processor was full.
    truncated: u64,
}

/// Follows what was executed.
pub trait Follow {
    /// What follows is of another thread or processor.
    fn begins(&mut self, places: &mut Places<'_>, traced: &Traced);

    /// A block was executed. `flow` knows its instructions.
    fn block(&mut self, places: &mut Places<'_>, code: &Sections<'_>, block: &Block, time: Moment);

    /// Something else happened; `position`: which byte of all packets of the thread says so.
    fn event(&mut self, places: &mut Places<'_>, position: u64, event: Event, time: Moment);

    /// Whether nothing more is wanted.
    fn is_enough(&self) -> bool {
        false
    }
}

/// A packet, as it stands there.
#[derive(Debug)]
pub struct PacketAt<'r> {
    /// Whose.
    pub traced: &'r Traced,
    /// Its first byte, of all of the thread or processor.
    pub position: u64,
    /// Its bytes.
    pub size_bytes: usize,
    /// What it is; `None`: bytes that are none.
    pub packet: Option<Packet>,
    /// What the clocks said before it.
    pub time: Moment,
}

/// An address as people know it.
#[must_use]
pub fn place_of(address: u64) -> In {
    if address >= KERNEL_BEGIN { In::Kernel } else { In::Program }
}

/// What the cause of a gap is called.
#[must_use]
pub fn cause_name(cause: &GapCause) -> &'static str {
    match cause {
        GapCause::Overflow => "the processor had no room for packets",
        GapCause::Malformed(_) => "bytes that are no packet",
        GapCause::NoCode(_) => "the code is not known",
        GapCause::Contradiction(_) => "packets and code contradict each other",
    }
}

impl<'i> Recorded<'i> {
    /// Packets without anything beside them, and code by its addresses.
    #[must_use]
    pub fn raw(places: Places<'i>, buffers: Vec<Buffer>, code: &[(u64, Vec<u8>)]) -> Self {
        let parts = buffers.into_iter().map(|buffer| Part {
            traced: Traced {
                cpu: buffer.cpu,
                pid: 0,
                tid: buffer.tid.unwrap_or(0),
                program: "[packets]".to_owned(),
            },
            runs: buffer.runs,
            code: code.to_vec(),
        });
        let parts = parts.collect();
        Self { places, parts, clocks: Clocks::default(), unreadable: Vec::new(), truncated: 0 }
    }

    /// Packets of a trace, whose events say what was mapped and which thread was traced. `more`: code that no
    /// file has.
    ///
    /// Cost: a pass over the events. Memory: the packets, and the code of each program.
    #[must_use]
    pub fn of(
        source: &dyn Source,
        mut places: Places<'i>,
        (buffers, clocks): (Vec<Buffer>, Clocks),
        more: &[(u64, Vec<u8>)],
    ) -> Self {
        let mut starts: Vec<(Option<u32>, u32, u32)> = Vec::new();
        let mut truncated = 0;
        let mut events = source.events();
        while let Some(event) = events.next_event() {
            if places.see(&event) {
                continue;
            }
            let Some(payload) = event.payload() else { continue };
            let number = |name: &str| payload.get(name).and_then(|field| field.as_u64());
            match event.class.name.as_str() {
                TRACE_STARTS => {
                    let (Some(pid), Some(tid)) = (number("pid"), number("tid")) else { continue };
                    starts.push((event.packet.cpu.map(|cpu| cpu.0), pid as u32, tid as u32));
                }
                "aux" => {
                    let flags = payload.get("flags").map(|flags| flags.value());
                    let is_full = match flags {
                        Some(Value::Unsigned(flags)) => flags & AUX_TRUNCATED != 0,
                        _ => number("flags").is_some_and(|flags| flags & AUX_TRUNCATED != 0),
                    };
                    truncated += u64::from(is_full);
                }
                _ => {}
            }
        }
        places.at_any_time();
        let (mut parts, mut unreadable) = (Vec::new(), Vec::new());
        for Buffer { cpu, tid, runs } in buffers {
            let thread = match tid {
                Some(tid) => Ok((places.process_of(tid).unwrap_or(tid), tid)),
                None => only_thread(&starts, cpu),
            };
            match thread {
                Ok((pid, tid)) => {
                    let program = places.program((pid, tid));
                    let mut code = places.code_of(pid, CODE_BYTES_MAX);
                    code.extend(more.iter().cloned());
                    parts.push(Part { traced: Traced { cpu, pid, tid, program }, runs, code });
                }
                Err(why) => unreadable.push((cpu, why)),
            }
        }
        Self { places, parts, clocks, unreadable, truncated }
    }

    /// Threads and processors of which there are packets.
    pub fn traced(&self) -> impl Iterator<Item = &Traced> {
        self.parts.iter().map(|part| &part.traced)
    }

    /// Bytes of packets.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.parts.iter().flat_map(|part| &part.runs).map(|run| run.len() as u64).sum()
    }

    /// Processors whose packets cannot be decoded, with why.
    #[must_use]
    pub fn unreadable(&self) -> &[(Option<u32>, String)] {
        &self.unreadable
    }

    /// How often a buffer was full, so that packets are missing.
    #[must_use]
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    /// Decodes everything.
    ///
    /// Cost: by packets and blocks. Memory: by different blocks.
    pub fn follow(&mut self, follow: &mut impl Follow) {
        for part in 0..self.parts.len() {
            self.follow_part(part, follow);
        }
    }

    /// The same of one thread or processor.
    fn follow_part(&mut self, part: usize, follow: &mut impl Follow) {
        let Self { places, parts, clocks, .. } = self;
        let Some(part) = parts.get(part) else { return };
        let mut sections = Sections::default();
        part.code.iter().for_each(|(address, bytes)| sections.add(*address, bytes));
        follow.begins(places, &part.traced);
        let mut flow = Flow::new(&sections);
        let mut position = 0;
        for run in &part.runs {
            if follow.is_enough() {
                return;
            }
            let clock = Clock::new(clocks);
            let mut sink = Following { places, code: &sections, follow, position, clock };
            flow.decode(run, &mut sink);
            position += run.len() as u64;
        }
    }

    /// Hands on each packet, until `see` says that it is enough.
    ///
    /// Cost: by packets.
    pub fn packets(&self, see: &mut dyn FnMut(PacketAt<'_>) -> ControlFlow<()>) {
        for part in &self.parts {
            let mut before = 0;
            for run in &part.runs {
                let mut clock = Clock::new(&self.clocks);
                for found in Packets::synced(run) {
                    let (at, end, packet) = match found {
                        Ok(found) => (found.start, found.end, Some(found.packet)),
                        Err(error) => (error.start, error.resume, None),
                    };
                    match &packet {
                        Some(packet) => clock.packet(packet),
                        None => clock.gap(),
                    }
                    let (position, time) = (before + at as u64, clock.moment(None));
                    let (traced, size_bytes) = (&part.traced, end - at);
                    if see(PacketAt { traced, position, size_bytes, packet, time }).is_break() {
                        return;
                    }
                }
                before += run.len() as u64;
            }
        }
    }

    /// What was mapped where.
    #[must_use]
    pub fn places(&self) -> &Places<'i> {
        &self.places
    }

    /// Functions that were found, by their numbers.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        self.places.functions()
    }

    /// The functions and what is missing, when nothing more is asked.
    #[must_use]
    pub fn finish(self) -> (Vec<Function>, Vec<(String, String, u64)>) {
        self.places.finish()
    }
}

/// The thread that a processor ran, where its trace has begun for one alone.
fn only_thread(starts: &[(Option<u32>, u32, u32)], cpu: Option<u32>) -> Result<(u32, u32), String> {
    let mut here = starts.iter().filter(|(of, ..)| *of == cpu || cpu.is_none());
    let mut processes: Vec<u32> = here.clone().map(|(_, pid, _)| *pid).collect();
    processes.sort_unstable();
    processes.dedup();
    match (processes.as_slice(), here.next_back()) {
        ([pid], Some((_, _, tid))) => Ok((*pid, *tid)),
        ([], _) => Err("no event says which program ran".to_owned()),
        (several, _) => Err(format!(
            "{} programs ran on it, and packets are not divided by program yet: record each thread \
             (perf record --per-thread)",
            several.len()
        )),
    }
}

/// Hands on what a decoder finds.
struct Following<'f, 'i, 'c, F> {
    places: &'f mut Places<'i>,
    code: &'f Sections<'c>,
    follow: &'f mut F,
    /// Bytes of the runs before.
    position: u64,
    clock: Clock,
}

/// The time of a stream on the clock of the recording.
struct Clock {
    times: Times,
    nanos: Option<(u64, u16, u32)>,
    /// Not before this was the last block.
    last_block: Option<u64>,
    /// Of a block with no packet of a clock between it and the one before.
    of_next_block: Option<Moment>,
}

impl Clock {
    fn new(clocks: &Clocks) -> Self {
        let times = Times::new(Settings {
            mtc_frequency: clocks.mtc_frequency,
            tsc_per_crystal: clocks.tsc_per_crystal,
            tsc_per_bus: clocks.tsc_per_bus,
        });
        Self { times, nanos: clocks.nanos, last_block: None, of_next_block: None }
    }

    /// Of something that happened behind `since` ticks.
    fn moment(&self, since: Option<u64>) -> Moment {
        let (time, scale) = self.times.now().zip(self.nanos)?;
        let to = |ticks: u64| perf_nanos(ticks, scale);
        let nanos = to(time.ticks);
        let earliest = to(since.unwrap_or(time.earliest).min(time.earliest));
        let error_nanos = time.latest.map(|latest| {
            let (after, before) = (to(latest).wrapping_sub(nanos), nanos.wrapping_sub(earliest));
            // Both ends are rounded down.
            after.max(before).saturating_add(1)
        });
        Some(Timestamp { nanos, error_nanos })
    }

    /// Of a block of instructions: the packet that says where it led to came behind it, and the block before
    /// it came first.
    fn of_block(&mut self) -> Moment {
        if let Some(moment) = self.of_next_block {
            return moment;
        }
        let moment = self.moment(self.last_block);
        self.last_block = self.times.now().map(|now| now.earliest);
        self.of_next_block = Some(self.moment(self.last_block));
        moment
    }

    fn packet(&mut self, packet: &Packet) {
        self.times.packet(packet);
        self.of_next_block = None;
    }

    fn gap(&mut self) {
        self.times.gap();
        self.of_next_block = None;
    }
}

impl<F: Follow> Sink for Following<'_, '_, '_, F> {
    fn block(&mut self, block: &Block) {
        let time = self.clock.of_block();
        self.follow.block(self.places, self.code, block, time);
    }

    fn event(&mut self, position: usize, event: Event) {
        match &event {
            Event::Packet(packet) => {
                self.clock.packet(packet);
            }
            Event::Gap(gap) if matches!(gap.cause, GapCause::Overflow | GapCause::Malformed(_)) => {
                self.clock.gap();
            }
            _ => {}
        }
        let (position, time) = (self.position + position as u64, self.clock.moment(None));
        self.follow.event(self.places, position, event, time);
    }

    fn is_enough(&self) -> bool {
        self.follow.is_enough()
    }
}
