// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Instructions executed by a processor, from its own packets, the mapped code and the events that
//! identify the running program.
//!
//! ```text
//! packets of a thread ── runs ─┐
//! mmap, fork, comm ── Places ──┴─► Flow::decode ─► blocks, events, gaps ─► [`Follow`]
//! ```

mod calls;
mod coverage;
mod cuts;
mod delta;
mod division;
pub(crate) mod gather;
mod pool;
mod resolution;
mod sizes;
mod system_calls;
pub mod timeline;

use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, Range};

use lateralis_intelpt::Block;
use lateralis_intelpt::errata::Errata;
use lateralis_intelpt::flow::{Event, Flow, Gap, GapCause, Sink, State};
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::packet::{self, Packet, Packets};
use lateralis_intelpt::segments::Segment;
use lateralis_intelpt::time::{Settings, Time, Times, perf_nanos};
use lateralis_model::{EnvValue, Source, Trace};
use lateralis_traces::Joined;
use lateralis_traces::hardware::{AddressFilter, Buffer, Clocks, FilterAction, Hardware};

pub use calls::{Call, Executed, INSTRUCTIONS, executed};
pub(crate) use calls::{CallSteps, TakeCalls};
pub use coverage::{Coverage, Covered, coverage};
pub use delta::{Deltas, Interval, Marker, Pairing, Place, Stretch, deltas, stretches};
pub use lateralis_intelpt as intelpt;
pub use resolution::{Resolution, factors, resolution};
pub use sizes::{Kind, Sizes, sizes};
pub use system_calls::{SystemCalls, system_calls};

use self::cuts::{Cuts, Followed};
use self::division::{Candidate, Owner, Stay, Switches, Turn, Who, divide};
use crate::places::{Function, In, Places};

/// Largest size of the code of a program.
const CODE_BYTES_MAX: u64 = 4 << 30;
/// Start of kernel addresses [Documentation/arch/x86/x86_64/mm.rst, the canonical hole].
const KERNEL_BEGIN: u64 = 1 << 63;
/// Program name for packets of an unknown thread.
const UNKNOWN_THREAD: &str = "[unknown]";
/// Name of the record that begins a trace of a thread.
const TRACE_STARTS: &str = "itrace_start";

/// Time of an event, in nanoseconds of the recording's clock; `None` if unknown.
pub type Moment = Option<Timestamp>;

/// A time with its error, in nanoseconds of the recording's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// The estimate.
    pub nanos: u64,
    /// Largest error; `None`: unbounded.
    pub error_nanos: Option<u64>,
}

/// Thread of the instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traced {
    /// The CPU, if a CPU was traced.
    pub cpu: Option<u32>,
    /// The process; 0 if unknown.
    pub pid: u32,
    /// The thread; 0 if unknown.
    pub tid: u32,
    /// The name of the program.
    pub program: String,
}

/// Packets of a thread or a CPU.
struct Packed {
    traced: Traced,
    /// Whether they belong to several threads.
    is_divided: bool,
    runs: Vec<Run>,
}

/// Contiguous packets.
struct Run {
    bytes: Vec<u8>,
    /// Bytes of the runs before.
    before: u64,
    /// Turns of threads, in order.
    turns: Vec<Turn>,
    /// Reason for missing packets after them, if any.
    gap: Option<GapCause>,
    /// The processor that generated them.
    processor: Processor,
}

/// Execution of a thread.
struct Part {
    traced: Traced,
    /// Index of its code.
    space: usize,
    pieces: Vec<Piece>,
}

/// Some packets of a thread.
#[derive(Debug, Clone, Copy)]
struct Piece {
    packed: usize,
    run: usize,
    turn: usize,
    /// The last of its consecutive turns.
    last_turn: usize,
    /// Whether it may belong to another thread.
    is_gap: bool,
}

impl Piece {
    /// Its packets: their run, their first turn, and their end.
    fn packets<'p>(&self, packed: &'p [Packed]) -> Option<(&'p Run, &'p Turn, usize)> {
        let run = packed.get(self.packed)?.runs.get(self.run)?;
        Some((run, run.turns.get(self.turn)?, run.turns.get(self.last_turn)?.end))
    }
}

/// Recorded execution of processors.
pub struct Recorded<'i> {
    places: Places<'i>,
    packed: Vec<Packed>,
    parts: Vec<Part>,
    /// Code by process.
    spaces: Vec<Vec<(u64, Vec<u8>)>>,
    /// Traced addresses of each of these; empty: all.
    filters: Vec<Vec<Range<u64>>>,
    processor: Processor,
    /// CPUs that cannot be decoded, with the reason.
    unreadable: Vec<(Option<u32>, String)>,
    /// Number of times that the buffer of a thread or CPU was full.
    truncated: u64,
    /// Number of times that output of a tracer is missing for another reason.
    partial: u64,
}

/// Known properties of the processors that generated the packets.
#[derive(Debug, Clone, Copy, Default)]
struct Processor {
    clocks: Clocks,
    errata: Errata,
}

/// Name of the environment entry with the processor model, as written by perf.
const CPU_MODEL: &str = "cpu_model";

/// Errata of the processors of a recording; none if the model is unknown.
fn errata_of(trace: &Trace) -> Errata {
    let mut said =
        trace.environment.iter().chain(trace.origins.iter().flat_map(|of| &of.environment));
    let model = said.find(|(name, _)| name == CPU_MODEL);
    match model {
        Some((_, EnvValue::Text(model))) => Errata::of_perf_cpuid(model),
        _ => Errata::default(),
    }
}

/// Receives the executed flow.
pub trait Follow {
    /// The following items belong to another thread or CPU.
    fn begins(&mut self, places: &mut Places<'_>, traced: &Traced);

    /// The same thread continues on this CPU.
    fn goes_on(&mut self, cpu: u32) {
        let _ = cpu;
    }

    /// A block was executed. `flow` knows its instructions.
    fn block(&mut self, places: &mut Places<'_>, code: &Sections<'_>, block: &Block, time: Moment);

    /// Another event; `position`: the byte of its packet among all packets of the thread.
    fn event(&mut self, places: &mut Places<'_>, position: u64, event: Event, time: Moment);

    /// Whether no more items are needed.
    fn is_enough(&self) -> bool {
        false
    }
}

/// A packet with its position and time.
#[derive(Debug)]
pub struct PacketAt<'r> {
    /// Its thread.
    pub traced: &'r Traced,
    /// Position of its first byte among all packets of the thread or CPU.
    pub position: u64,
    /// Its bytes.
    pub size_bytes: usize,
    /// The packet; `None`: bytes that are not a packet.
    pub packet: Option<Packet>,
    /// Time of the clocks before it.
    pub time: Moment,
}

/// Human-readable address.
#[must_use]
pub fn place_of(address: u64) -> In {
    if address >= KERNEL_BEGIN { In::Kernel } else { In::Program }
}

/// Name of the cause of a gap.
#[must_use]
pub fn cause_name(cause: &GapCause) -> &'static str {
    match cause {
        GapCause::Overflow => "the processor had no room for packets",
        GapCause::Malformed(_) => "bytes that are no packet",
        GapCause::NoCode(_) => "the code is not known",
        GapCause::Contradiction(_) => "packets and code contradict each other",
        GapCause::UnknownThread => "which thread ran is not known",
        GapCause::BufferFull => "the buffer for packets was full",
        GapCause::Missing => "packets are missing",
    }
}

impl<'i> Recorded<'i> {
    /// Packets without accompanying events, and code by address.
    #[must_use]
    pub fn raw(places: Places<'i>, buffers: Vec<Buffer>, code: &[(u64, Vec<u8>)]) -> Self {
        let mut this = Self::new(places, Processor::default());
        this.spaces.push(code.to_vec());
        for buffer in buffers {
            let Buffer { cpu, tid, .. } = buffer;
            let runs = Cuts::default().divide(buffer);
            let program = "[packets]".to_owned();
            this.whole(Traced { cpu, pid: 0, tid: tid.unwrap_or(0), program }, runs, 0);
        }
        this
    }

    fn new(places: Places<'i>, processor: Processor) -> Self {
        Self {
            places,
            packed: Vec::new(),
            parts: Vec::new(),
            spaces: Vec::new(),
            filters: Vec::new(),
            processor,
            unreadable: Vec::new(),
            truncated: 0,
            partial: 0,
        }
    }

    /// For a processor with these errata. Recordings with events identify the processor themselves.
    #[must_use]
    pub fn with_errata(self, errata: Errata) -> Self {
        self.with_processors(|processor| processor.errata = errata)
    }

    /// For processors with these clocks. Recordings with events contain the configuration.
    #[must_use]
    pub fn with_clocks(self, clocks: Clocks) -> Self {
        self.with_processors(|processor| processor.clocks = clocks)
    }

    fn with_processors(mut self, change: impl Fn(&mut Processor)) -> Self {
        change(&mut self.processor);
        let runs = self.packed.iter_mut().flat_map(|of| &mut of.runs);
        runs.for_each(|run| change(&mut run.processor));
        self
    }

    /// For a tracer that was restricted to some addresses.
    #[must_use]
    pub fn with_filters(mut self, filters: &[AddressFilter]) -> Self {
        let traced = || filters.iter().filter(|of| of.action == FilterAction::Filter);
        if traced().next().is_none() {
            return self;
        }
        self.filters = vec![Vec::new(); self.spaces.len()];
        for part in &self.parts {
            let Some(ranges) = self.filters.get_mut(part.space).filter(|of| of.is_empty()) else {
                continue;
            };
            for of in traced() {
                let range = of.begin..of.begin.saturating_add(of.size_bytes);
                match &of.file {
                    Some(file) => ranges.extend(self.places.mapped(part.traced.pid, file, range)),
                    None => ranges.push(range),
                }
            }
        }
        self
    }

    /// Adds packets of a single thread.
    fn whole(&mut self, traced: Traced, runs: Vec<Followed>, space: usize) {
        let packed = self.packed.len();
        let pieces =
            (0..runs.len()).map(|run| Piece { packed, run, turn: 0, last_turn: 0, is_gap: false });
        let part = Part { traced: traced.clone(), space, pieces: pieces.collect() };
        self.parts.push(part);
        let (who, stay) = ((traced.pid, traced.tid), Stay::WHOLE);
        let turns = |bytes: &[u8]| {
            let (begin, end) = (packet::synced(bytes), bytes.len());
            let owner = Owner::Thread(Candidate { who, stay, last_since: 0 });
            vec![Turn { begin, end, psb: begin, owner, stay, bounds: (0, u64::MAX) }]
        };
        let runs = with_places(runs, self.processor, turns);
        self.packed.push(Packed { traced, is_divided: false, runs });
    }

    /// Packets of a trace whose events contain the mappings and the traced threads. `more`: code that is
    /// not in a file.
    ///
    /// Cost: a pass over the events. Memory: the packets, and the code of each program.
    #[must_use]
    pub fn of(
        source: &dyn Source,
        places: Places<'i>,
        (buffers, clocks): (Vec<Buffer>, Clocks),
        more: &[(u64, Vec<u8>)],
    ) -> Self {
        let mut this = Self::new(places, Processor::default());
        this.add(source, (buffers, clocks), more);
        this.places.at_any_time();
        this
    }

    /// Like `of`, for several traces that were opened together, each with its own processors, clocks,
    /// switches and code. For processes with the same id, functions are those of the last trace.
    #[must_use]
    pub fn of_several(
        joined: &Joined,
        places: Places<'i>,
        hardware: Vec<Hardware>,
        more: &[(u64, Vec<u8>)],
    ) -> Self {
        let mut this = Self::new(places, Processor::default());
        for (part, of) in joined.parts().iter().zip(hardware) {
            if of.buffers.is_empty() {
                continue;
            }
            let source = part.source.as_ref();
            this.places.learn(source.trace());
            let more: Vec<_> = more.iter().chain(&of.code).cloned().collect();
            this.add(source, (of.buffers, of.clocks), &more);
        }
        this.places.at_any_time();
        this
    }

    fn add(
        &mut self,
        source: &dyn Source,
        (buffers, clocks): (Vec<Buffer>, Clocks),
        more: &[(u64, Vec<u8>)],
    ) {
        let mut starts: Vec<(Option<u32>, u32, u32)> = Vec::new();
        let mut switches = Switches::default();
        let mut cuts = Cuts::default();
        let mut events = source.events();
        while let Some(event) = events.next_event() {
            if self.places.see(&event) {
                continue;
            }
            switches.see(&event, |tid| self.places.process_of(tid));
            let Some(payload) = event.payload() else { continue };
            let number = |name: &str| payload.get(name).and_then(|field| field.as_u64());
            match event.class.name.as_str() {
                TRACE_STARTS => {
                    let (Some(pid), Some(tid)) = (number("pid"), number("tid")) else { continue };
                    starts.push((event.packet.cpu.map(|cpu| cpu.0), pid as u32, tid as u32));
                }
                "aux" => cuts.see(&event),
                _ => {}
            }
        }
        self.truncated += cuts.truncated;
        self.partial += cuts.partial;
        self.processor = Processor { clocks, errata: errata_of(source.trace()) };
        let mut spaces = HashMap::new();
        let first = self.packed.len();
        for buffer in buffers {
            let Buffer { cpu, tid, .. } = buffer;
            let runs = cuts.divide(buffer);
            let thread = match (tid, cpu) {
                (Some(tid), _) => Ok((self.places.process_of(tid).unwrap_or(tid), tid)),
                (None, Some(cpu)) if switches.is_known() => {
                    self.divided(cpu, runs, &switches);
                    continue;
                }
                (None, _) => only_thread(&starts, cpu),
            };
            match thread {
                Ok((pid, tid)) => {
                    let program = self.places.program((pid, tid));
                    let space = self.space(pid, &mut spaces, more);
                    self.whole(Traced { cpu, pid, tid, program }, runs, space);
                }
                Err(why) => self.unreadable.push((cpu, why)),
            }
        }
        self.gather(first, &mut spaces, more);
    }

    /// The code of a process, which is read once.
    fn space(
        &mut self,
        pid: u32,
        spaces: &mut HashMap<u32, usize>,
        more: &[(u64, Vec<u8>)],
    ) -> usize {
        if let Some(space) = spaces.get(&pid) {
            return *space;
        }
        let used = self.spaces.iter().flatten().map(|(_, bytes)| bytes.len() as u64).sum();
        let mut code = self.places.code_of(pid, CODE_BYTES_MAX.saturating_sub(used));
        code.extend(more.iter().cloned());
        self.spaces.push(code);
        spaces.insert(pid, self.spaces.len() - 1);
        self.spaces.len() - 1
    }

    /// Adds packets of a CPU, divided by the threads that ran there.
    fn divided(&mut self, cpu: u32, runs: Vec<Followed>, switches: &Switches) {
        let processor = self.processor;
        let turns = |bytes: &[u8]| divide(switches, cpu, bytes, &processor);
        let runs = with_places(runs, processor, turns);
        let traced = Traced { cpu: Some(cpu), pid: 0, tid: 0, program: UNKNOWN_THREAD.to_owned() };
        self.packed.push(Packed { traced, is_divided: true, runs });
    }

    /// Combines the execution of each thread on all CPUs.
    fn gather(&mut self, first: usize, spaces: &mut HashMap<u32, usize>, more: &[(u64, Vec<u8>)]) {
        // By thread, in time order; packets of unknown threads by CPU.
        let mut threads: BTreeMap<(Who, Option<u32>), Vec<Timed>> = BTreeMap::new();
        let all = self.packed.iter().enumerate().skip(first);
        for (packed, of) in all.filter(|(_, of)| of.is_divided) {
            let all = of.runs.iter().enumerate();
            let all =
                all.flat_map(|(run, of)| of.turns.iter().enumerate().map(move |it| (run, it)));
            for (run, (turn, Turn { owner, stay, .. })) in all {
                let piece = |is_gap| Piece { packed, run, turn, last_turn: turn, is_gap };
                let mut add = |of: &Candidate, is_gap| {
                    let Candidate { who, stay, last_since } = *of;
                    let timed = Timed { stay, last_since, piece: piece(is_gap) };
                    threads.entry((who, None)).or_default().push(timed);
                };
                match owner {
                    Owner::Thread(of) => add(of, false),
                    Owner::Unknown(whose) if !whose.is_empty() => {
                        whose.iter().for_each(|of| add(of, true));
                    }
                    Owner::Unknown(_) => {
                        let (of_cpu, stay) = (((0, 0), of.traced.cpu), *stay);
                        let piece = piece(true);
                        let timed = Timed { stay, last_since: stay.since, piece };
                        threads.entry(of_cpu).or_default().push(timed);
                    }
                }
            }
        }
        for ((who, of_cpu), pieces) in threads {
            let pieces = joined(pieces);
            let first = pieces.first().and_then(|piece| self.packed.get(piece.packed));
            let cpu = of_cpu.or(first.and_then(|of| of.traced.cpu));
            let program = match of_cpu {
                Some(_) => UNKNOWN_THREAD.to_owned(),
                None => self.places.program(who),
            };
            let space = self.space(who.0, spaces, more);
            let traced = Traced { cpu, pid: who.0, tid: who.1, program };
            self.parts.push(Part { traced, space, pieces });
        }
    }

    /// Threads and CPUs with packets.
    pub fn traced(&self) -> impl Iterator<Item = &Traced> {
        self.parts.iter().map(|part| &part.traced)
    }

    /// Number of bytes of packets.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.packed.iter().flat_map(|of| &of.runs).map(|run| run.bytes.len() as u64).sum()
    }

    /// CPUs whose packets cannot be decoded, with the reason.
    #[must_use]
    pub fn unreadable(&self) -> &[(Option<u32>, String)] {
        &self.unreadable
    }

    /// Number of times that a buffer was full, so that packets are missing.
    #[must_use]
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    /// Number of times that output of a tracer is missing for another reason.
    #[must_use]
    pub fn partial(&self) -> u64 {
        self.partial
    }

    /// Decodes everything.
    ///
    /// Cost: proportional to packets and blocks. Memory: proportional to distinct blocks.
    pub fn follow(&mut self, follow: &mut impl Follow) {
        self.follow_parts(0..self.parts.len(), follow);
    }

    /// Decodes the packets of one thread.
    fn follow_part(&mut self, part: usize, follow: &mut impl Follow) {
        self.follow_parts(part..part + 1, follow);
    }

    fn follow_parts(&mut self, range: Range<usize>, follow: &mut impl Follow) {
        let Self { places, packed, parts, spaces, filters, processor, .. } = self;
        let images = images_of(spaces);
        let mut decoder = Decoder::new(packed, parts, (&images, filters), *processor);
        for part in parts.get(range).unwrap_or_default() {
            follow.begins(places, &part.traced);
            let mut cpu = part.traced.cpu;
            for piece in &part.pieces {
                if follow.is_enough() {
                    return;
                }
                if let Some(now) = decoder.cpu_of(piece).filter(|now| Some(*now) != cpu) {
                    cpu = Some(now);
                    follow.goes_on(now);
                }
                let mut observe = WithPlaces { places: &mut *places, follow: &mut *follow };
                decoder.decode((part, piece), None, &mut observe);
            }
        }
    }

    /// Reports each packet, until `see` breaks.
    ///
    /// Cost: proportional to packets.
    pub fn packets(&self, see: &mut dyn FnMut(PacketAt<'_>) -> ControlFlow<()>) {
        for of in &self.packed {
            for run in &of.runs {
                let mut clock = Clock::new(&run.processor);
                for found in Packets::synced(&run.bytes).with_errata(run.processor.errata) {
                    let (at, end, packet) = match found {
                        Ok(found) => (found.start, found.end, Some(found.packet)),
                        Err(error) => (error.start, error.resume, None),
                    };
                    match &packet {
                        Some(packet) => clock.packet(packet),
                        None => clock.gap(),
                    }
                    let (position, time) = (run.before + at as u64, clock.moment(None));
                    let (traced, size_bytes) = (&of.traced, end - at);
                    if see(PacketAt { traced, position, size_bytes, packet, time }).is_break() {
                        return;
                    }
                }
            }
        }
    }

    /// Mappings of addresses.
    #[must_use]
    pub fn places(&self) -> &Places<'i> {
        &self.places
    }

    /// The functions found, by number.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        self.places.functions()
    }

    /// The functions and the missing images, at the end.
    #[must_use]
    pub fn finish(self) -> (Vec<Function>, Vec<(String, String, u64)>) {
        self.places.finish()
    }
}

/// Adds to each run the number of bytes before it.
fn with_places(
    runs: Vec<Followed>,
    processor: Processor,
    turns: impl Fn(&[u8]) -> Vec<Turn>,
) -> Vec<Run> {
    let mut before = 0;
    let run = |(bytes, gap): Followed| {
        let run = Run { turns: turns(&bytes), before, bytes, gap, processor };
        before += run.bytes.len() as u64;
        run
    };
    runs.into_iter().map(run).collect()
}

impl Turn {
    fn moment(&self) -> Moment {
        let (earliest, latest) = self.bounds;
        let error_nanos = Some(latest).filter(|of| *of != u64::MAX).map(|of| of - earliest);
        (earliest > 0).then_some(Timestamp { nanos: earliest, error_nanos })
    }
}

/// A turn of a thread, with its time.
#[derive(Debug, Clone, Copy)]
struct Timed {
    stay: Stay,
    /// Begin of the last stay to which it may belong.
    last_since: u64,
    piece: Piece,
}

/// Sorts the turns of a thread on all CPUs by time, and joins those between which it was nowhere else
/// into one piece. If the thread was on another CPU between two stays to which a turn may belong, the
/// position of the turn is unknown: a gap.
///
/// Cost: a sort.
fn joined(mut turns: Vec<Timed>) -> Vec<Piece> {
    let place = |of: &Timed| (of.piece.packed, of.piece.run, of.piece.turn);
    turns.sort_by_key(|of| (of.stay, place(of)));
    // Backwards: the next turn on another CPU.
    let mut elsewhere: Option<(usize, u64)> = None;
    let mut after: Option<(usize, u64)> = None;
    for of in turns.iter_mut().rev() {
        let packed = of.piece.packed;
        if after.is_some_and(|(other, _)| other != packed) {
            elsewhere = after;
        }
        after = Some((packed, of.stay.since));
        of.piece.is_gap |= elsewhere.is_some_and(|(_, since)| since <= of.last_since)
            && of.last_since > of.stay.since;
    }
    let mut all: Vec<Piece> = Vec::new();
    for Timed { piece, .. } in turns {
        let follows = |last: &Piece| {
            let Piece { packed, run, last_turn, is_gap, .. } = *last;
            (packed, run, last_turn + 1, is_gap)
                == (piece.packed, piece.run, piece.turn, piece.is_gap)
        };
        match all.last_mut().filter(|last| follows(last)) {
            Some(last) => last.last_turn = piece.turn,
            None => all.push(piece),
        }
    }
    all
}

/// Follows only the clocks.
struct Before(Clock);

impl Sink for Before {
    const IS_COUNTER: bool = true;

    fn block(&mut self, _: &Block) {}

    fn event(&mut self, _: usize, event: Event) {
        self.0.event(&event);
    }
}

/// Code by process, for lookups.
fn images_of(spaces: &[Vec<(u64, Vec<u8>)>]) -> Vec<Sections<'_>> {
    let mut images = Vec::new();
    for code in spaces {
        let mut sections = Sections::default();
        code.iter().for_each(|(address, bytes)| sections.add(*address, bytes));
        images.push(sections);
    }
    images
}

/// Decodes pieces of threads; blocks of code are cached between them.
struct Decoder<'r> {
    packed: &'r [Packed],
    images: &'r [Sections<'r>],
    /// Index of the code of each process.
    spaces: HashMap<u32, u32>,
    processor: Processor,
    flow: Flow<'r, Sections<'r>>,
}

impl<'r> Decoder<'r> {
    fn new(
        packed: &'r [Packed],
        parts: &[Part],
        (images, filters): (&'r [Sections<'r>], &[Vec<Range<u64>>]),
        processor: Processor,
    ) -> Self {
        let spaces = parts.iter().map(|part| (part.traced.pid, part.space as u32)).collect();
        let flow = Flow::of_spaces(images).with_errata(processor.errata);
        let flow = flow.with_filters(filters.to_vec());
        Self { packed, images, spaces, processor, flow }
    }

    /// CPU of a piece, if a CPU was traced.
    fn cpu_of(&self, piece: &Piece) -> Option<u32> {
        self.packed.get(piece.packed)?.traced.cpu
    }

    /// Decodes a piece of a thread: all of it, or the bytes from one of its PSBs or from its start, up to
    /// a PSB.
    fn decode(
        &mut self,
        (part, piece): (&Part, &Piece),
        bytes: Option<Range<usize>>,
        observe: &mut impl Observe,
    ) {
        let Some((run, turn, end)) = piece.packets(self.packed) else { return };
        if piece.is_gap {
            return unknown_thread(run, turn, observe);
        }
        let bytes = bytes.unwrap_or(turn.begin..end);
        let (state, clock) = match bytes.start == turn.begin {
            true => self.before(run, turn),
            false => (State::new(), Clock::new(&run.processor)),
        };
        self.go_on((part, run), (state, clock), bytes, observe);
    }

    /// Continues decoding with a part of a run. @return the clock after it.
    fn go_on(
        &mut self,
        (part, run): (&Part, &Run),
        (mut state, clock): (State, Clock),
        bytes: Range<usize>,
        observe: &mut impl Observe,
    ) -> Clock {
        let Some(code) = self.images.get(part.space) else { return clock };
        self.flow.enter(part.space as u32);
        let mut sink = Following { code, observe, position: run.before, clock };
        let end = bytes.end;
        self.flow.decode_part(&mut state, &run.bytes, bytes, &mut sink);
        if let Some(cause) = run.gap.filter(|_| end == run.bytes.len() && !sink.is_enough()) {
            sink.event(end, Event::Gap(Gap { position: end, cause }));
        }
        sink.clock
    }

    /// State of the processor at the start of a turn, from the packets since the PSB before it.
    fn before(&mut self, run: &Run, turn: &Turn) -> (State, Clock) {
        let (mut state, mut before) = (State::new(), Before(Clock::new(&run.processor)));
        let first = run.turns.partition_point(|of| of.end <= turn.psb);
        for other in run.turns.iter().skip(first) {
            if other.begin >= turn.begin {
                break;
            }
            if let Owner::Thread(Candidate { who: (pid, _), .. }) = other.owner {
                self.flow.enter(self.spaces.get(&pid).copied().unwrap_or(0));
            }
            let range = other.begin.max(turn.psb)..other.end;
            self.flow.decode_part(&mut state, &run.bytes, range, &mut before);
        }
        (state, before.0)
    }

    /// Continues decoding with a segment of a piece. @return the clock after it, and whether the next
    /// segment follows ([`Flow::decode_segment`]).
    fn decode_segment(
        &mut self,
        (part, piece): (&Part, &Piece),
        (segment, (mut state, clock)): (&Segment, (State, Clock)),
        observe: &mut impl Observe,
    ) -> (Clock, bool) {
        let Some((run, _, end)) = piece.packets(self.packed) else { return (clock, true) };
        let Some(code) = self.images.get(part.space) else { return (clock, true) };
        self.flow.enter(part.space as u32);
        let mut sink = Following { code, observe, position: run.before, clock };
        let follows = self.flow.decode_segment(&mut state, &run.bytes, (segment, end), &mut sink);
        let is_last = segment.next().is_none() && end == run.bytes.len();
        if let Some(cause) = run.gap.filter(|_| is_last && !sink.is_enough()) {
            sink.event(end, Event::Gap(Gap { position: end, cause }));
        }
        (sink.clock, follows)
    }

    /// State of the processor and of its clocks after the head of a segment.
    fn enter_segment(&mut self, (part, run): (&Part, &Run), segment: &Segment) -> (State, Clock) {
        self.flow.enter(part.space as u32);
        let mut before = Before(Clock::new(&run.processor));
        (self.flow.enter_segment(&run.bytes, segment, &mut before), before.0)
    }

    fn clock(&self) -> Clock {
        Clock::new(&self.processor)
    }
}

/// A turn of an unknown thread.
fn unknown_thread(run: &Run, turn: &Turn, observe: &mut impl Observe) {
    let event = Event::Gap(Gap { position: turn.begin, cause: GapCause::UnknownThread });
    observe.event(run.before + turn.begin as u64, event, turn.moment());
}

/// The thread that a CPU ran, if tracing was started for a single one.
fn only_thread(starts: &[(Option<u32>, u32, u32)], cpu: Option<u32>) -> Result<(u32, u32), String> {
    let mut here = starts.iter().filter(|(of, ..)| *of == cpu || cpu.is_none());
    let mut processes: Vec<u32> = here.clone().map(|(_, pid, _)| *pid).collect();
    processes.sort_unstable();
    processes.dedup();
    match (processes.as_slice(), here.next_back()) {
        ([pid], Some((_, _, tid))) => Ok((*pid, *tid)),
        ([], _) => Err("no event says which program ran".to_owned()),
        (several, _) => Err(format!(
            "{} programs ran on it, and no event says when each of them did: record switches (perf record \
             --switch-events)",
            several.len()
        )),
    }
}

/// Receives the decoded items of a thread.
pub(crate) trait Observe {
    /// The next block is the first that is decoded, and was executed after the previous one, which was
    /// decoded elsewhere; `time`: as given by the packets.
    fn is_first(&mut self, time: Time) {
        let _ = time;
    }

    fn block(&mut self, code: &Sections<'_>, block: &Block, time: Moment);

    fn event(&mut self, position: u64, event: Event, time: Moment);

    fn is_enough(&self) -> bool;
}

/// Passes items to a `Follow`, with the places for names.
struct WithPlaces<'f, 'i, F> {
    places: &'f mut Places<'i>,
    follow: &'f mut F,
}

impl<F: Follow> Observe for WithPlaces<'_, '_, F> {
    fn block(&mut self, code: &Sections<'_>, block: &Block, time: Moment) {
        self.follow.block(self.places, code, block, time);
    }

    fn event(&mut self, position: u64, event: Event, time: Moment) {
        self.follow.event(self.places, position, event, time);
    }

    fn is_enough(&self) -> bool {
        self.follow.is_enough()
    }
}

/// Passes on decoded items with their times.
struct Following<'f, 'c, O> {
    code: &'f Sections<'c>,
    observe: &'f mut O,
    /// Bytes of the runs before.
    position: u64,
    clock: Clock,
}

/// Time of a stream, on the clock of the recording.
#[derive(Clone)]
struct Clock {
    times: Times,
    nanos: Option<(u64, u16, u32)>,
    /// Earliest time of the last block.
    last_block: Option<u64>,
    /// Whether there was a block.
    has_block: bool,
    /// Whether the block before the first was decoded elsewhere.
    is_continued: bool,
    /// Time of a block without a clock packet between it and the previous one.
    of_next_block: Option<Moment>,
}

impl Clock {
    fn new(Processor { clocks, .. }: &Processor) -> Self {
        let times = Times::new(Settings {
            mtc_frequency: clocks.mtc_frequency,
            tsc_per_crystal: clocks.tsc_per_crystal,
            tsc_per_bus: clocks.tsc_per_bus,
        });
        Self {
            times,
            nanos: clocks.nanos,
            last_block: None,
            has_block: false,
            is_continued: false,
            of_next_block: None,
        }
    }

    /// Time of an item that happened after `since` ticks.
    fn moment(&self, since: Option<u64>) -> Moment {
        self.moment_of(self.times.now()?, since)
    }

    fn moment_of(&self, time: Time, since: Option<u64>) -> Moment {
        let scale = self.nanos?;
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

    /// Time of a block: the packet with its successor comes after it, and the previous block precedes it.
    fn of_block(&mut self) -> Moment {
        if let Some(moment) = self.of_next_block {
            return moment;
        }
        self.has_block = true;
        let moment = self.moment(self.last_block);
        self.last_block = self.times.now().map(|now| now.earliest);
        self.of_next_block = Some(self.moment(self.last_block));
        moment
    }

    fn packet(&mut self, packet: &Packet) {
        self.times.packet(packet);
        self.of_next_block = None;
    }

    /// Bounds of the time of the next item, in nanoseconds.
    fn bounds(&self) -> (u64, Option<u64>) {
        let Some((time, scale)) = self.times.now().zip(self.nanos) else { return (0, None) };
        let to = |ticks: u64| perf_nanos(ticks, scale);
        (to(time.earliest), time.latest.map(to))
    }

    /// Processes the next packet. @return the latest time of all items before it, in nanoseconds.
    fn latest_of(&mut self, packet: &Packet) -> Option<u64> {
        let time = self.times.packet(packet)?;
        self.nanos.and_then(|scale| Some(perf_nanos(time.latest?, scale)))
    }

    /// Processes a decoded event that may be a clock packet.
    fn event(&mut self, event: &Event) {
        match event {
            Event::Packet(packet) => self.packet(packet),
            Event::Gap(gap) if matches!(gap.cause, GapCause::Overflow | GapCause::Malformed(_)) => {
                self.gap();
            }
            _ => {}
        }
    }

    fn gap(&mut self) {
        self.times.gap();
        self.of_next_block = None;
    }
}

impl<O: Observe> Sink for Following<'_, '_, O> {
    fn block(&mut self, block: &Block) {
        if self.clock.is_continued
            && !self.clock.has_block
            && let Some(time) = self.clock.times.now()
        {
            self.observe.is_first(time);
        }
        let time = self.clock.of_block();
        self.observe.block(self.code, block, time);
    }

    fn event(&mut self, position: usize, event: Event) {
        self.clock.event(&event);
        let (position, time) = (self.position + position as u64, self.clock.moment(None));
        self.observe.event(position, event, time);
    }

    fn is_enough(&self) -> bool {
        self.observe.is_enough()
    }
}
