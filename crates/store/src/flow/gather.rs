// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Collects rows of the executed flow in packet order, decoded on several cores.
//!
//! ```text
//! packets ─ PSB to PSB ─► segments ─┬─ a thread each: blocks ─► items ─┬─► taken in the order of segments
//!                                   └─ …                              ─┘
//! ```
//!
//! A PSB contains the state of the processor, but not everything that depends on earlier packets: the
//! counts of the clocks, and in damaged bytes whether it is a PSB at all. Both are known once the segment
//! before it has been taken. If the assumptions of the decoding thread were wrong, the segment is decoded
//! again.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use lateralis_intelpt::Block;
use lateralis_intelpt::flow::{Event, State};
use lateralis_intelpt::image::Sections;
use lateralis_intelpt::packet::{Packets, synced};
use lateralis_intelpt::segments::{Segment, segments_in};
use lateralis_intelpt::time::Time;

use super::pool::{Next, Pool};
use super::{
    Clock, Decoder, Moment, Observe, Packed, PacketAt, Part, Piece, Processor, Recorded, Run,
    Traced, images_of, place_of, unknown_thread,
};
use crate::places::{Line, Places};

/// Bytes of packets of a job: PSBs are 2 to 16 KiB apart, unless configured otherwise.
const SEGMENT_BYTES: usize = 16 << 10;
/// Bytes of packets from which a second thread is worthwhile.
const PARALLEL_BYTES: u64 = 512 << 10;
/// Row limit up to which one thread decodes.
const FEW_ROWS: usize = 1 << 16;
/// Largest size in bytes of items that wait for earlier ones.
const WAITING_BYTES: usize = 96 << 20;
/// Largest number of addresses whose names a thread caches.
const NAMES_MAX: usize = 1 << 20;

/// Passes on an item of about this number of bytes; breaks if no more are needed.
pub(crate) type Emit<'e, T> = dyn Fn(T, usize) -> ControlFlow<()> + 'e;

/// Division of the work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cores {
    pub threads: usize,
    pub segment_bytes: usize,
}

impl Cores {
    /// For a table of a recording, of which at most `rows_max` rows are needed.
    pub fn of(recorded: &Recorded<'_>, rows_max: Option<usize>) -> Self {
        let is_worth_it =
            recorded.byte_count() >= PARALLEL_BYTES && rows_max.is_none_or(|rows| rows > FEW_ROWS);
        let all = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self { threads: if is_worth_it { all } else { 1 }, segment_bytes: SEGMENT_BYTES }
    }
}

/// Places shared by several threads.
pub(crate) struct SharedPlaces<'p, 'i>(Mutex<&'p mut Places<'i>>);

impl<'p, 'i> SharedPlaces<'p, 'i> {
    pub fn lock(&self) -> MutexGuard<'_, &'p mut Places<'i>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Name of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    pub function: u32,
    pub inlined: Option<u32>,
    pub line: Option<Line>,
}

trait Lookup: Sync {
    fn named(&self, of: (u32, u64), wants_frames: bool) -> Named;
    fn text(&self, of: Text) -> String;
}

#[derive(Debug, Clone, Copy)]
enum Text {
    Function(u32),
    Source(u32),
}

impl Lookup for SharedPlaces<'_, '_> {
    fn named(&self, (pid, ip): (u32, u64), wants_frames: bool) -> Named {
        let mut places = self.lock();
        if !wants_frames {
            let function = places.function_at(pid, ip, place_of(ip));
            return Named { function, inlined: None, line: None };
        }
        let frames = places.frames_at(pid, ip, place_of(ip));
        let last = frames.last();
        Named {
            function: frames.first().map_or(u32::MAX, |frame| frame.function),
            inlined: last.filter(|frame| frame.is_inlined).map(|frame| frame.function),
            line: last.and_then(|frame| frame.line),
        }
    }

    fn text(&self, of: Text) -> String {
        let places = self.lock();
        match of {
            Text::Function(function) => places.name_of(function).unwrap_or_default().to_owned(),
            Text::Source(file) => places.source(file).to_owned(),
        }
    }
}

/// Names of addresses, as cached by one thread.
pub(crate) struct Names<'n> {
    of: &'n dyn Lookup,
    pid: u32,
    known: HashMap<(u64, bool), Named, RandomState>,
    functions: Vec<Option<Box<str>>>,
    sources: Vec<Option<Box<str>>>,
}

impl<'n> Names<'n> {
    pub fn new(of: &'n SharedPlaces<'_, '_>) -> Self {
        let known = HashMap::default();
        Self { of, pid: 0, known, functions: Vec::new(), sources: Vec::new() }
    }

    pub fn at(&mut self, pid: u32, ip: u64, wants_frames: bool) -> Named {
        if self.pid != pid || self.known.len() >= NAMES_MAX {
            self.known.clear();
            self.pid = pid;
        }
        let of = self.of;
        *self.known.entry((ip, wants_frames)).or_insert_with(|| of.named((pid, ip), wants_frames))
    }

    /// Adds the texts of a name.
    pub fn know(&mut self, named: &Named) {
        know(self.of, &mut self.functions, named.function, Text::Function);
        if let Some(inlined) = named.inlined {
            know(self.of, &mut self.functions, inlined, Text::Function);
        }
        if let Some(line) = named.line {
            know(self.of, &mut self.sources, line.file, Text::Source);
        }
    }

    /// Name of a function, if known.
    pub fn function(&self, function: u32) -> Option<&str> {
        self.functions.get(function as usize)?.as_deref()
    }

    /// A source file, if known.
    pub fn source(&self, file: u32) -> Option<&str> {
        self.sources.get(file as usize)?.as_deref()
    }
}

fn know(of: &dyn Lookup, texts: &mut Vec<Option<Box<str>>>, id: u32, text: fn(u32) -> Text) {
    let place = id as usize;
    // Numbers are given out in sequence.
    if id == u32::MAX || texts.get(place).is_some_and(Option::is_some) {
        return;
    }
    if texts.len() <= place {
        texts.resize(place + 1, None);
    }
    texts[place] = Some(of.text(text(id)).into());
}

/// Makes items of decoded steps.
pub(crate) trait Gather: Observe {
    /// The following steps belong to another thread or CPU.
    fn begins(&mut self, traced: &Traced);

    /// The same thread continues on this CPU.
    fn goes_on(&mut self, cpu: u32);

    /// The following steps are not the beginning of a thread.
    fn resumes(&mut self, traced: &Traced);

    /// Emits the remaining items.
    fn flush(&mut self);
}

/// Factory of the items of executed instructions.
pub(crate) trait Gathering: Sync {
    type Item: Send;
    type Gather<'g>: Gather
    where
        Self: 'g;

    fn gather<'g>(&'g self, names: Names<'g>, emit: &'g Emit<'g, Self::Item>) -> Self::Gather<'g>;
}

/// Receives items in order.
pub(crate) trait Take<T> {
    /// `moment`: time of a block executed after the one that was taken last, by its packets.
    fn take(
        &mut self,
        places: &SharedPlaces<'_, '_>,
        item: T,
        moment: &dyn Fn(Time) -> Moment,
    ) -> ControlFlow<()>;
}

/// Makes items of packets.
pub(crate) trait GatherPackets {
    /// The next packet does not follow the previous one.
    fn resumes(&mut self);

    fn packet(&mut self, packet: PacketAt<'_>);

    fn is_enough(&self) -> bool;

    /// Emits the remaining items.
    fn flush(&mut self);
}

/// Factory of the items of packets.
pub(crate) trait GatheringPackets: Sync {
    type Item: Send;
    type Gather<'g>: GatherPackets
    where
        Self: 'g;

    fn gather<'g>(&'g self, emit: &'g Emit<'g, Self::Item>) -> Self::Gather<'g>;
}

/// A segment of a piece of a thread, or of a run of packets.
struct Job {
    part: usize,
    piece: usize,
    segment: Segment,
    begins_part: bool,
    begins_piece: bool,
    /// The CPU, if a CPU was traced, and whether the segment before belongs to another.
    cpu: Option<u32>,
    is_elsewhere: bool,
}

/// Result of decoding a segment.
struct Ended {
    clock: Clock,
    /// Whether the next segment is valid.
    follows: bool,
    /// Number of items passed on.
    count: u64,
}

/// Decodes segments.
trait Work: Sync {
    type Item: Send;
    type Worker<'w>: Worker
    where
        Self: 'w;

    fn worker<'w>(&'w self, emit: &'w Emit<'w, Self::Item>) -> Self::Worker<'w>;

    /// State of the clocks after the head of a segment.
    fn clock_of_head(&self, job: &Job) -> Clock;
}

trait Worker {
    /// Decodes a segment. `clock`: the known clock; otherwise it comes from the head of the segment, as
    /// far as that has it.
    fn segment(&mut self, job: &Job, clock: Option<Clock>) -> Ended;

    /// Decodes everything that follows in its piece, without the first `skip` blocks, events or packets.
    fn rest(&mut self, job: &Job, clock: Option<Clock>, skip: u64);

    fn flush(&mut self);

    fn is_enough(&self) -> bool;
}

/// Collects the executed flow.
pub(crate) fn gather<G: Gathering>(
    recorded: &mut Recorded<'_>,
    how: &G,
    take: &mut impl Take<G::Item>,
    cores: Cores,
) -> usize {
    let Recorded { places, packed, parts, spaces, filters, processor, .. } = recorded;
    let images = images_of(spaces);
    let places = SharedPlaces(Mutex::new(places));
    let jobs = jobs_of_parts(packed, parts, cores);
    let processor_of = *processor;
    let decode = Decode {
        packed,
        parts,
        images: &images,
        filters,
        processor: processor_of,
        how,
        places: &places,
    };
    run(&decode, &jobs, (&places, take), cores.threads)
}

/// Collects packets.
pub(crate) fn gather_packets<G: GatheringPackets>(
    recorded: &mut Recorded<'_>,
    how: &G,
    take: &mut impl Take<G::Item>,
    cores: Cores,
) -> usize {
    let Recorded { places, packed, .. } = recorded;
    let places = SharedPlaces(Mutex::new(places));
    let mut jobs = Vec::new();
    for (part, of) in packed.iter().enumerate() {
        for (piece, run) in of.runs.iter().enumerate() {
            let bytes = synced(&run.bytes)..run.bytes.len();
            let segments = divided(run, bytes, cores);
            jobs.extend(segments.into_iter().enumerate().map(|(nth, segment)| Job {
                part,
                piece,
                segment,
                begins_part: nth == 0 && piece == 0,
                begins_piece: nth == 0,
                cpu: None,
                is_elsewhere: false,
            }));
        }
    }
    let read = ReadPackets { packed, how };
    run(&read, &jobs, (&places, take), cores.threads)
}

/// Segments, if several threads decode them.
fn divided(run: &Run, part: Range<usize>, cores: Cores) -> Vec<Segment> {
    let bytes_min = if cores.threads > 1 { cores.segment_bytes } else { usize::MAX };
    segments_in(&run.bytes, part, bytes_min, run.processor.errata)
}

fn jobs_of_parts(packed: &[Packed], parts: &[Part], cores: Cores) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (nth_part, part) in parts.iter().enumerate() {
        let mut cpu = part.traced.cpu;
        let mut begins_part = true;
        for (nth_piece, piece) in part.pieces.iter().enumerate() {
            let Some((run, turn, end)) = piece.packets(packed) else { continue };
            let now = packed.get(piece.packed).and_then(|of| of.traced.cpu);
            let mut is_elsewhere = now.is_some() && now != cpu;
            cpu = now.or(cpu);
            let bytes = turn.begin..if piece.is_gap { turn.begin } else { end };
            let mut begins_piece = true;
            for segment in divided(run, bytes, cores) {
                jobs.push(Job {
                    part: nth_part,
                    piece: nth_piece,
                    segment,
                    begins_part: std::mem::take(&mut begins_part),
                    begins_piece: std::mem::take(&mut begins_piece),
                    cpu,
                    is_elsewhere: std::mem::take(&mut is_elsewhere),
                });
            }
        }
    }
    jobs
}

/// Runs jobs, and has their items taken in order. @return the number of started jobs.
fn run<W: Work>(
    work: &W,
    jobs: &[Job],
    (places, take): (&SharedPlaces<'_, '_>, &mut impl Take<W::Item>),
    threads: usize,
) -> usize {
    let take = RefCell::new(take);
    // Items decoded on this thread have their times from the packets before.
    let emit = |item, _: usize| take.borrow_mut().take(places, item, &|_| None);
    if threads < 2 {
        let mut worker = work.worker(&emit);
        let mut count = 0;
        for job in jobs {
            if worker.is_enough() {
                break;
            }
            worker.segment(job, None);
            count += 1;
        }
        worker.flush();
        return count;
    }
    let pool = Pool::new(jobs.len(), threads, WAITING_BYTES);
    let work_on = || {
        let current = Cell::new(0);
        let emit = |item, bytes| pool.put(current.get(), item, bytes);
        let mut worker = work.worker(&emit);
        while let Some(nth) = pool.take_job() {
            let Some(job) = jobs.get(nth) else { break };
            current.set(nth);
            let ended = worker.segment(job, None);
            worker.flush();
            pool.done(nth, ended);
        }
    };
    let take_all = || {
        let mut again: Option<W::Worker<'_>> = None;
        let mut before: Option<Clock> = None;
        let mut left = jobs.iter().peekable();
        while let Some(job) = left.next() {
            let before_it = before.take().filter(|_| !job.begins_piece);
            let since = before_it.as_ref().and_then(|clock| clock.last_block);
            let agrees = before_it.as_ref().is_none_or(|clock| {
                clock.nanos.is_none() || clock.times.agrees_with(&work.clock_of_head(job).times)
            });
            let ended = if agrees {
                loop {
                    match pool.next() {
                        Some(Next::Item(item)) => {
                            let moment = |time| before_it.as_ref()?.moment_of(time, since);
                            if take.borrow_mut().take(places, item, &moment).is_break() {
                                return;
                            }
                        }
                        Some(Next::Done(ended)) => break ended,
                        None => return,
                    }
                }
            } else {
                pool.skip();
                let worker = again.get_or_insert_with(|| work.worker(&emit));
                let ended = worker.segment(job, before_it.clone());
                worker.flush();
                if worker.is_enough() {
                    return;
                }
                ended
            };
            if !ended.follows {
                let worker = again.get_or_insert_with(|| work.worker(&emit));
                worker.rest(job, before_it, ended.count);
                worker.flush();
                if worker.is_enough() {
                    return;
                }
                while left.next_if(|next| !next.begins_piece).is_some() {
                    pool.skip();
                }
                continue;
            }
            let Ended { mut clock, .. } = ended;
            clock.last_block = if clock.has_block { clock.last_block } else { since };
            (clock.has_block, clock.is_continued) = (false, false);
            before = Some(clock);
        }
    };
    pool.run(threads, work_on, take_all);
    pool.taken()
}

/// Decodes instructions.
struct Decode<'r, 'p, 'i, G> {
    packed: &'r [Packed],
    parts: &'r [Part],
    images: &'r [Sections<'r>],
    filters: &'r [Vec<Range<u64>>],
    processor: Processor,
    how: &'r G,
    places: &'r SharedPlaces<'p, 'i>,
}

struct Decoding<'w, G: Gathering + 'w> {
    packed: &'w [Packed],
    parts: &'w [Part],
    decoder: Decoder<'w>,
    gather: G::Gather<'w>,
}

impl<G: Gathering> Work for Decode<'_, '_, '_, G> {
    type Item = G::Item;
    type Worker<'w>
        = Decoding<'w, G>
    where
        Self: 'w;

    fn worker<'w>(&'w self, emit: &'w Emit<'w, G::Item>) -> Decoding<'w, G> {
        let Self { packed, parts, images, filters, processor, how, places } = self;
        let decoder = Decoder::new(packed, parts, (images, filters), *processor);
        Decoding { packed, parts, decoder, gather: how.gather(Names::new(places), emit) }
    }

    fn clock_of_head(&self, job: &Job) -> Clock {
        let piece = self.parts.get(job.part).and_then(|part| part.pieces.get(job.piece));
        let run = piece.and_then(|piece| piece.packets(self.packed));
        clock_behind(run.map(|(run, ..)| run), &job.segment)
    }
}

/// State of the clocks after the head of a segment, without earlier information.
fn clock_behind(run: Option<&Run>, segment: &Segment) -> Clock {
    let processor = run.map_or_else(Processor::default, |run| run.processor);
    let mut clock = Clock::new(&processor);
    let head = run.and_then(|run| run.bytes.get(segment.head())).unwrap_or_default();
    for found in Packets::new(head).with_errata(processor.errata).flatten() {
        clock.packet(&found.packet);
    }
    clock
}

impl<'w, G: Gathering> Decoding<'w, G> {
    fn of(&self, job: &Job) -> Option<(&'w Part, &'w Piece)> {
        let part = self.parts.get(job.part)?;
        Some((part, part.pieces.get(job.piece)?))
    }

    /// State of a decoder at the start of a segment.
    fn enter(&mut self, job: &Job, clock: Option<Clock>) -> Option<(State, Clock)> {
        let (part, piece) = self.of(job)?;
        let (run, turn, _) = piece.packets(self.packed)?;
        if job.begins_piece {
            return Some(self.decoder.before(run, turn));
        }
        let (state, of_head) = self.decoder.enter_segment((part, run), &job.segment);
        let of_head = Clock { is_continued: true, ..of_head };
        Some((state, clock.unwrap_or(of_head)))
    }
}

impl<G: Gathering> Worker for Decoding<'_, G> {
    fn segment(&mut self, job: &Job, clock: Option<Clock>) -> Ended {
        let nothing = Ended { clock: self.decoder.clock(), follows: true, count: 0 };
        let Some((part, piece)) = self.of(job) else { return nothing };
        if job.begins_part {
            self.gather.begins(&part.traced);
        } else {
            let traced = Traced { cpu: job.cpu, ..part.traced.clone() };
            self.gather.resumes(&traced);
        }
        if let Some(cpu) = job.cpu.filter(|_| job.is_elsewhere) {
            self.gather.goes_on(cpu);
        }
        if piece.is_gap {
            if let Some((run, turn, _)) = piece.packets(self.packed) {
                unknown_thread(run, turn, &mut self.gather);
            }
            return nothing;
        }
        let Some(start) = self.enter(job, clock) else { return nothing };
        let mut counted = Counted { gather: &mut self.gather, count: 0, skip: 0 };
        let of = (part, piece);
        let (clock, follows) = self.decoder.decode_segment(of, (&job.segment, start), &mut counted);
        Ended { clock, follows, count: counted.count }
    }

    fn rest(&mut self, job: &Job, clock: Option<Clock>, skip: u64) {
        let Some((part, piece)) = self.of(job) else { return };
        let Some((run, _, end)) = piece.packets(self.packed) else { return };
        let Some(start) = self.enter(job, clock) else { return };
        let traced = Traced { cpu: job.cpu, ..part.traced.clone() };
        self.gather.resumes(&traced);
        let mut counted = Counted { gather: &mut self.gather, count: 0, skip };
        let bytes = job.segment.body().start..end;
        self.decoder.go_on((part, run), start, bytes, &mut counted);
    }

    fn flush(&mut self) {
        self.gather.flush();
    }

    fn is_enough(&self) -> bool {
        self.gather.is_enough()
    }
}

/// Counts items, and drops the first ones.
struct Counted<'g, G> {
    gather: &'g mut G,
    count: u64,
    skip: u64,
}

impl<G: Observe> Observe for Counted<'_, G> {
    fn is_first(&mut self, time: Time) {
        self.gather.is_first(time);
    }

    fn block(&mut self, code: &Sections<'_>, block: &Block, time: Moment) {
        self.count += 1;
        if self.count > self.skip {
            self.gather.block(code, block, time);
        }
    }

    fn event(&mut self, position: u64, event: Event, time: Moment) {
        self.count += 1;
        if self.count > self.skip {
            self.gather.event(position, event, time);
        }
    }

    fn is_enough(&self) -> bool {
        self.gather.is_enough()
    }
}

/// Reads packets.
struct ReadPackets<'r, G> {
    packed: &'r [Packed],
    how: &'r G,
}

struct Reading<'w, G: GatheringPackets + 'w> {
    packed: &'w [Packed],
    gather: G::Gather<'w>,
}

impl<G: GatheringPackets> Work for ReadPackets<'_, G> {
    type Item = G::Item;
    type Worker<'w>
        = Reading<'w, G>
    where
        Self: 'w;

    fn worker<'w>(&'w self, emit: &'w Emit<'w, G::Item>) -> Reading<'w, G> {
        let Self { packed, how } = self;
        Reading { packed, gather: how.gather(emit) }
    }

    fn clock_of_head(&self, job: &Job) -> Clock {
        let run = self.packed.get(job.part).and_then(|of| of.runs.get(job.piece));
        clock_behind(run, &job.segment)
    }
}

impl<G: GatheringPackets> Reading<'_, G> {
    /// Reads a segment, or everything from there on.
    fn read(&mut self, job: &Job, clock: Option<Clock>, (skip, is_all): (u64, bool)) -> Ended {
        let of = self.packed.get(job.part);
        let run = of.and_then(|of| of.runs.get(job.piece));
        let clock = clock.unwrap_or_else(|| clock_behind(run, &job.segment));
        let mut ended = Ended { clock, follows: true, count: 0 };
        let Some((of, run)) = of.zip(run) else { return ended };
        self.gather.resumes();
        let (body, next) = (job.segment.body(), job.segment.next().filter(|_| !is_all));
        let mut packets = Packets::new(&run.bytes).with_errata(run.processor.errata);
        packets.go_behind(body.start);
        ended.follows = next.is_none();
        for found in packets {
            let (at, end, packet) = match found {
                Ok(found) => (found.start, found.end, Some(found.packet)),
                Err(error) => (error.start, error.resume, None),
            };
            if let Some(next) = next {
                ended.follows |= at == next && packet.is_some();
                if at >= if ended.follows { body.end } else { next } {
                    break;
                }
            }
            match &packet {
                Some(packet) => ended.clock.packet(packet),
                None => ended.clock.gap(),
            }
            ended.count += 1;
            if ended.count > skip {
                let (position, time) = (run.before + at as u64, ended.clock.moment(None));
                let (traced, size_bytes) = (&of.traced, end - at);
                self.gather.packet(PacketAt { traced, position, size_bytes, packet, time });
                if self.gather.is_enough() {
                    break;
                }
            }
        }
        ended
    }
}

impl<G: GatheringPackets> Worker for Reading<'_, G> {
    fn segment(&mut self, job: &Job, clock: Option<Clock>) -> Ended {
        self.read(job, clock, (0, false))
    }

    fn rest(&mut self, job: &Job, clock: Option<Clock>, skip: u64) {
        self.read(job, clock, (skip, true));
    }

    fn flush(&mut self) {
        self.gather.flush();
    }

    fn is_enough(&self) -> bool {
        self.gather.is_enough()
    }
}
