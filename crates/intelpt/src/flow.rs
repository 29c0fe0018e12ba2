// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reconstructs the executed instructions from packets and code.
//!
//! Packets contain only what the code does not determine: whether conditional branches were taken (TNT),
//! targets of indirect branches (TIP), and external events (FUP with TIP). Everything else is found by
//! walking along the code. A packet is taken when the walk needs it; the walk continues up to the address
//! of a packet that reports an event there.
//!
//! Contradictions, losses and truncations end in a [`Gap`]: execution is unknown from there until a
//! packet contains the current address, TIP.PGE or the next PSB.

use alloc::vec::Vec;
use core::ops::Range;

use crate::code::{Block, Code, Effect, Ends, Mode};
use crate::errata::Errata;
use crate::image::Image;
use crate::long_paths::{self, LongPath, eight_full};
use crate::packet::{
    At, Error, IpBytes, MODE_TSX_ABORT, Packet, Packets, TRIG_IP, Tnt, clock, is_short_tnt, is_tip,
    synced, tip,
};
use crate::paths::{Found, OUTCOMES_MAX, Step, TO_INDIRECT};
use crate::segments::Segment;

/// Return addresses that the processor keeps [SDM volume 3, RET compression].
const CALLS: usize = 64;
/// Largest number of blocks in a row without a packet: more is an endless loop, which an event without
/// its packet must have left.
const WITHOUT_PACKET_MAX: u32 = 1 << 16;

/// Number of packets to look ahead for a certain one; a PSB+ with its clocks has some 15.
const AHEAD_MAX: usize = 256;
/// Instructions without a packet between a branch and an abort of its transaction: with BDM64, the search
/// stops after this number (libipt, `bdm64_max_steps`).
const TO_ABORT_MAX: u32 = 0x100;

/// Reason why execution is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapCause {
    /// The processor lost packets for lack of buffer space (OVF).
    Overflow,
    /// Bytes that are not a packet.
    Malformed(Error),
    /// No code at this address, or bytes that are not an instruction.
    NoCode(u64),
    /// The packet does not match the code: it belongs to another image, or bytes were changed.
    Contradiction(u64),
    /// The running thread is unknown, and so is its code. Reported by readers that divide a stream among
    /// threads, never by a decoder.
    UnknownThread,
    /// Packets were not recorded for lack of memory. Reported by readers of a recording.
    BufferFull,
    /// Packets are missing for another reason. Reported by readers of a recording.
    Missing,
}

/// An interval of unknown execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// First byte of the packet at which it was detected.
    pub position: usize,
    /// Reason.
    pub cause: GapCause,
}

/// Information in packets besides the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Current address of the processor: the first known one, or the first after a gap.
    Synced(u64),
    /// Tracing begins at an address (TIP.PGE).
    Enabled(u64),
    /// Tracing ended; the address of the last instruction or, if an external event ended it, of the next
    /// one, if known.
    Disabled(Option<u64>),
    /// An interrupt or a fault.
    Interrupted {
        /// The next instruction that would have been executed.
        from: u64,
        /// Address of the handler.
        to: u64,
    },
    /// Address at which the previous packet was generated, for packets that have one.
    Here(u64),
    /// A clock, a power state, an address space, a value of PTWRITE …
    Packet(Packet),
    /// Execution is unknown until the next event with an address.
    Gap(Gap),
}

/// Receives the decoded flow, in execution order.
pub trait Sink {
    /// Executed instructions; for an interrupted block, those before the interrupt.
    fn block(&mut self, block: &Block);

    /// Whether only the number of instructions between two events is needed: then some blocks are
    /// reported as counts.
    const IS_COUNTER: bool = false;

    /// A number of executed instructions, of blocks that are not reported.
    #[inline]
    fn instructions(&mut self, count: u32) {
        let _ = count;
    }

    /// `position`: the first byte of the packet.
    fn event(&mut self, position: usize, event: Event);

    /// Whether decoding may stop. Everything decoded already is still reported: up to a packet that is
    /// neither TNT nor TIP.
    #[inline]
    fn is_enough(&self) -> bool {
        false
    }
}

/// Return addresses, the last on top; beyond the capacity of the processor the oldest are discarded.
#[derive(Debug, Clone)]
struct Calls {
    runs: [u32; CALLS],
    top: usize,
    depth: usize,
    /// Least depth since this was set.
    least_depth: usize,
    /// Whether one was discarded since this was set.
    was_full: bool,
}

impl Calls {
    fn new() -> Self {
        Self { runs: [0; CALLS], top: 0, depth: 0, least_depth: 0, was_full: false }
    }

    #[inline]
    fn push(&mut self, run: u32) {
        self.runs[self.top] = run;
        self.top = (self.top + 1) % CALLS;
        self.was_full |= self.depth == CALLS;
        self.depth = (self.depth + 1).min(CALLS);
    }

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        self.least_depth = self.least_depth.min(self.depth.saturating_sub(1));
        self.depth = self.depth.checked_sub(1)?;
        self.top = (self.top + CALLS - 1) % CALLS;
        Some(self.runs[self.top])
    }

    fn clear(&mut self) {
        self.depth = 0;
    }

    /// Whether these are the most recent ones, latest first.
    #[inline]
    fn end_with(&self, calls: &[u32]) -> bool {
        let at = |back: usize| self.runs[(self.top + 2 * CALLS - 1 - back) % CALLS];
        calls.len() <= self.depth && calls.iter().enumerate().all(|(back, call)| at(back) == *call)
    }

    /// Removes a number of entries that are known to exist.
    #[inline]
    fn drop_last(&mut self, count: usize) {
        self.depth = self.depth.saturating_sub(count);
        self.top = (self.top + 2 * CALLS - count) % CALLS;
        self.least_depth = self.least_depth.min(self.depth);
    }

    /// The most recent entries, latest first: as many as a packet can have returns.
    fn newest(&self) -> ([u32; OUTCOMES_MAX], usize) {
        let mut calls = [0; OUTCOMES_MAX];
        for (back, call) in calls.iter_mut().enumerate() {
            *call = self.runs[(self.top + 2 * CALLS - 1 - back) % CALLS];
        }
        (calls, self.depth.min(OUTCOMES_MAX))
    }

    /// The most recent entries, latest last.
    fn last(&self, count: usize) -> impl Iterator<Item = u32> {
        (0..count).rev().map(|back| self.runs[(self.top + CALLS - 1 - back) % CALLS])
    }
}

/// A packet that moves the flow; others are passed on as they come.
#[derive(Debug, Clone, Copy)]
enum Next {
    Tnt(Tnt),
    Tip(Option<u64>),
    Enable(Option<u64>),
    Disable(Option<u64>),
    Fup(Option<u64>),
    Psb,
    Overflow,
    Malformed(Error),
    End,
}

/// Decodes traces of one image; blocks of code are cached between traces.
pub struct Flow<'i, I> {
    code: Code<'i, I>,
    /// Disabled only in tests.
    uses_paths: bool,
    errata: Errata,
    /// Traced address ranges, by address space; empty: all.
    filters: Vec<Vec<Range<u64>>>,
}

/// State of a decoder between two packets of a stream. It belongs to the [`Flow`] that it was used with.
#[derive(Debug, Clone)]
pub struct State {
    last_ip: u64,
    mode: Mode,
    tnt: Tnt,
    calls: Calls,
    at: Option<u32>,
    is_after_overflow: bool,
    is_fup_bound: bool,
    is_abort: bool,
    is_lost: bool,
    /// Position of the last PSB.
    psb: Option<usize>,
}

impl State {
    /// Initial state: nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::outside(0, Mode::Bits64)
    }

    /// State in which no code is being traced, with the last address and the mode of the packets before.
    #[must_use]
    pub fn outside(last_ip: u64, mode: Mode) -> Self {
        Self {
            last_ip,
            mode,
            tnt: Tnt { bits: 0, len: 0 },
            calls: Calls::new(),
            at: None,
            is_after_overflow: false,
            is_fup_bound: false,
            is_abort: false,
            is_lost: false,
            psb: None,
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl<'i, I: Image> Flow<'i, I> {
    /// For an image that does not change.
    pub fn new(image: &'i I) -> Self {
        Self::of_spaces(core::slice::from_ref(image))
    }

    /// For several address spaces; their kernel halves are assumed to be equal. The first one is current
    /// until [`Self::enter`] selects another.
    pub fn of_spaces(images: &'i [I]) -> Self {
        Self {
            code: Code::new(images),
            uses_paths: true,
            errata: Errata::default(),
            filters: Vec::new(),
        }
    }

    /// For a processor with these errata.
    #[must_use]
    pub fn with_errata(self, errata: Errata) -> Self {
        Self { errata, ..self }
    }

    /// For a processor that traced only these addresses. A processor with SKL014 does not report where it
    /// left them; others do not need this.
    #[must_use]
    pub fn with_filter(self, filter: Vec<Range<u64>>) -> Self {
        self.with_filters(Vec::from([filter]))
    }

    /// Likewise for each address space: a file is mapped at different addresses in each.
    #[must_use]
    pub fn with_filters(self, filters: Vec<Vec<Range<u64>>>) -> Self {
        Self { filters, ..self }
    }

    /// Switches to the address space with this number.
    pub fn enter(&mut self, space: u32) {
        self.code.enter(space);
    }

    /// Decodes everything in a stream, from the first PSB on.
    ///
    /// Cost: proportional to packets and executed blocks; each block is decoded once. Memory:
    /// proportional to blocks.
    pub fn decode(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let begin = synced(bytes);
        self.decode_part(&mut State::new(), bytes, begin..bytes.len(), sink);
    }

    /// Continues a stream: decodes the packets in a range of its bytes, which must begin and end at
    /// packet boundaries, and updates `state`. Positions are relative to `bytes`.
    pub fn decode_part(
        &mut self,
        state: &mut State,
        bytes: &[u8],
        part: Range<usize>,
        sink: &mut impl Sink,
    ) {
        self.decode_until(state, bytes, part, None, sink);
    }

    /// Decodes the body of a segment; `state` is that of [`Self::enter_segment`], or for the first
    /// segment that of the packets before it. `end`: the end of the part to which the segments belong.
    ///
    /// @return whether the next segment follows. Otherwise its apparent PSB is inside another packet,
    /// which happens only in damaged bytes: the output is then a prefix of the output of
    /// [`Self::decode_part`] from the same state up to `end`.
    pub fn decode_segment(
        &mut self,
        state: &mut State,
        bytes: &[u8],
        (segment, end): (&Segment, usize),
        sink: &mut impl Sink,
    ) -> bool {
        let part = segment.body.start..end;
        self.decode_until(state, bytes, part, segment.next, sink);
        segment.next.is_none() || state.psb == segment.next
    }

    /// State of a decoder after the head of a segment (PSB to PSBEND), from its packets.
    pub fn enter_segment(
        &mut self,
        bytes: &[u8],
        segment: &Segment,
        sink: &mut impl Sink,
    ) -> State {
        let mut state = State::new();
        self.decode_part(&mut state, bytes, segment.head.clone(), sink);
        state
    }

    /// `last_psb`: decoding ends after the packets of this PSB or, if no packet begins there, some
    /// packets later.
    fn decode_until(
        &mut self,
        state: &mut State,
        bytes: &[u8],
        part: Range<usize>,
        last_psb: Option<usize>,
        sink: &mut impl Sink,
    ) {
        let of_part = bytes.get(..part.end).unwrap_or(bytes);
        let mut packets = Packets::new(of_part).with_errata(self.errata);
        packets.go_behind(part.start);
        let mut walk = Walk {
            code: &mut self.code,
            uses_paths: self.uses_paths,
            errata: self.errata,
            filters: &self.filters,
            bytes,
            packets,
            last_psb: last_psb.unwrap_or(usize::MAX),
            peeked: None,
            position: part.start,
            last_ip: state.last_ip,
            mode: state.mode,
            tnt: state.tnt,
            calls: state.calls.clone(),
            at: state.at,
            is_after_overflow: state.is_after_overflow,
            is_fup_bound: state.is_fup_bound,
            is_abort: state.is_abort,
            is_lost: state.is_lost,
            psb: state.psb,
            without_packet: 0,
            sink,
        };
        walk.walk();
        *state = State {
            last_ip: walk.last_ip,
            mode: walk.mode,
            tnt: walk.tnt,
            calls: walk.calls,
            at: walk.at,
            is_after_overflow: walk.is_after_overflow,
            is_fup_bound: walk.is_fup_bound,
            is_abort: walk.is_abort,
            is_lost: walk.is_lost,
            psb: walk.psb,
        };
    }

    /// The addresses of the instructions of a block.
    pub fn instructions(&self, block: &Block, mut each: impl FnMut(u64)) {
        let mut ip = block.ip;
        for _ in 0..block.count {
            each(ip);
            let Some(instruction) = self.code.instruction(ip, block.mode) else { return };
            ip = instruction.next_ip();
        }
    }
}

struct Walk<'w, 'i, 'b, I, S> {
    code: &'w mut Code<'i, I>,
    uses_paths: bool,
    errata: Errata,
    filters: &'w [Vec<Range<u64>>],
    /// All available bytes, including those after the decoded part.
    bytes: &'b [u8],
    packets: Packets<'b>,
    /// Decoding ends after the packets of this PSB.
    last_psb: usize,
    peeked: Option<Next>,
    /// Position of the packet that was read last.
    position: usize,
    last_ip: u64,
    mode: Mode,
    /// Outcomes that have not been consumed.
    tnt: Tnt,
    calls: Calls,
    /// The next block; `None`: unknown, or not traced.
    at: Option<u32>,
    is_after_overflow: bool,
    /// Whether the next FUP only contains the address of the packet before it.
    is_fup_bound: bool,
    /// Whether the next FUP contains the address at which a transaction was aborted.
    is_abort: bool,
    /// Whether code is executed at an unknown address, so that the next FUP contains it.
    is_lost: bool,
    /// Position of the last PSB.
    psb: Option<usize>,
    without_packet: u32,
    sink: &'w mut S,
}

impl<I: Image, S: Sink> Walk<'_, '_, '_, I, S> {
    fn walk(&mut self) {
        while !self.sink.is_enough() {
            if self.packets.position() > self.last_psb && self.peeked.is_none() {
                return;
            }
            let Some(run) = self.at else {
                if !self.find_place() {
                    return;
                }
                continue;
            };
            if self.tnt.len == 0 {
                if self.peeked.is_none() && self.uses_paths && self.follow_packets(run) {
                    continue;
                }
                match self.peek() {
                    Next::Psb => self.psb(Some(run)),
                    Next::Overflow => self.overflow(),
                    Next::Fup(Some(ip)) => self.fup(run, ip),
                    Next::Disable(to) => self.disable(run, to),
                    Next::Malformed(error) => {
                        self.take();
                        self.gap(GapCause::Malformed(error));
                    }
                    Next::End => return,
                    Next::Fup(None) => {
                        self.take();
                    }
                    Next::Tnt(_) | Next::Tip(_) | Next::Enable(_) => self.step(run),
                }
            } else {
                let (mut next, before) = (run, self.tnt.len);
                if self.uses_paths {
                    if self.code.paths.is_full() {
                        self.code.forget_paths();
                    }
                    let row = self.code.paths.place_of(run);
                    let (row, count) = self.follow_rest(row);
                    self.count(count.into());
                    next = self.code.paths.run_of(row).unwrap_or(run);
                }
                if self.tnt.len < before {
                    self.at = Some(next);
                    self.without_packet = 0;
                } else {
                    self.step(run);
                }
            }
        }
    }

    /// Follows short TNT packets, and TIP packets of branches, along known paths; clocks between them are
    /// passed on. @return whether there was any packet.
    fn follow_packets(&mut self, from: u32) -> bool {
        let (bytes, begin) = self.packets.rest();
        // A block gets a row only if paths are requested for it.
        let is_asked = |first: &u8| is_short_tnt(*first) || is_tip(*first);
        if !bytes.first().is_some_and(is_asked) && clock(bytes, self.errata).is_none() {
            return false;
        }
        if self.code.paths.is_full() {
            self.code.forget_paths();
        }
        let (mut row, mut at, mut last) = (self.code.paths.place_of(from), 0, 0);
        // Instructions of blocks that are only counted, since the last event.
        let mut count = 0_u64;
        while let Some(&first) = bytes.get(at) {
            let taken = if is_short_tnt(first) {
                if S::IS_COUNTER
                    && let Some(eight) = eight_full(&bytes[at..])
                    && self.code.long_paths.is_worth_asking()
                    && self.code.paths.without_row(row).is_none()
                {
                    let (next, taken, instructions) = self.follow_eight(row, eight);
                    row = next;
                    count += instructions;
                    last = at + taken.saturating_sub(1);
                    taken
                } else {
                    last = at;
                    let marked = first >> 1;
                    let step = self.code.paths.step(row, marked);
                    if step.is_plain() {
                        self.hand_on(row, marked);
                        row = step.next();
                        count += u64::from(step.instructions());
                        at += 1;
                        continue;
                    }
                    let Some((next, instructions)) = self.follow_packet(row, marked) else { break };
                    row = next;
                    count += u64::from(instructions);
                    1
                }
            } else if let Some((to, size)) = tip(&bytes[at..], self.last_ip) {
                let Some((next, instructions)) = self.follow_branch(row, to) else { break };
                row = next;
                count += u64::from(instructions);
                self.last_ip = to;
                last = at;
                size
            } else if let Some((packet, size)) = clock(&bytes[at..], self.errata) {
                last = at;
                at += size;
                if let Some(packet) = packet {
                    self.count(core::mem::take(&mut count));
                    self.sink.event(begin + last, Event::Packet(packet));
                    if self.sink.is_enough() {
                        break;
                    }
                }
                continue;
            } else {
                break;
            };
            at += taken;
            if taken == 0 || self.tnt.len > 0 {
                break;
            }
        }
        self.count(count);
        let Some(run) = self.code.paths.run_of(row).filter(|_| at > 0) else { return false };
        self.packets.go_behind(at);
        self.position = begin + last;
        self.at = Some(run);
        self.without_packet = 0;
        true
    }

    /// Reports executed instructions of blocks that are only counted.
    #[inline(always)]
    fn count(&mut self, mut count: u64) {
        while S::IS_COUNTER && count > 0 {
            let some = count.min(u32::MAX.into());
            self.sink.instructions(some as u32);
            count -= some;
        }
    }

    /// Follows a short TNT packet, and keeps the outcomes that cannot be followed. @return the next row,
    /// and the number of instructions; `None`: none of the outcomes can be followed.
    #[inline]
    fn follow_packet(&mut self, row: u32, marked: u8) -> Option<(u32, u32)> {
        let (row, used, instructions) = self.follow(row, marked)?;
        let len = (marked.ilog2() as u8).saturating_sub(used);
        if len == 0 {
            return Some((row, instructions));
        }
        self.tnt = Tnt { bits: u64::from(marked) & ((1 << len) - 1), len };
        let (row, more) = self.follow_rest(row);
        Some((row, instructions.saturating_add(more)))
    }

    /// Follows eight full packets. @return the next row, the number of packets, and the number of
    /// instructions.
    #[inline(always)]
    fn follow_eight(&mut self, row: u32, eight: u64) -> (u32, usize, u64) {
        let Some(path) = self.code.long_paths.find(row, eight) else {
            return self.learn_eight(row, eight);
        };
        for call in path.calls.iter().take(path.call_count as usize) {
            self.calls.push(*call);
        }
        (path.next, 8, path.instructions.into())
    }

    #[cold]
    #[inline(never)]
    fn learn_eight(&mut self, from: u32, eight: u64) -> (u32, usize, u64) {
        let depth = self.calls.depth;
        (self.calls.least_depth, self.calls.was_full) = (depth, false);
        let (mut row, mut count) = (from, 0_u64);
        for (taken, packet) in eight.to_le_bytes().into_iter().enumerate() {
            let Some((next, some)) = self.follow_packet(row, packet >> 1) else {
                return (row, taken, count);
            };
            row = next;
            count += u64::from(some);
            if self.tnt.len > 0 {
                return (row, taken + 1, count);
            }
        }
        let call_count = self.calls.depth.saturating_sub(depth);
        // The path is valid for other open calls only if it returned to none of them and discarded none.
        let is_whole = self.calls.least_depth == depth && !self.calls.was_full;
        let is_known = self.code.paths.without_row(row).is_none();
        let path = (is_whole && is_known && call_count <= long_paths::CALLS_MAX).then(|| {
            let mut calls = [0; long_paths::CALLS_MAX];
            calls.iter_mut().zip(self.calls.last(call_count)).for_each(|(to, call)| *to = call);
            let (packets, next, call_count) = (eight, row, call_count as u32);
            LongPath { packets, from, next, instructions: count as u32, call_count, calls }
        });
        self.code.long_paths.learn(path);
        (row, 8, count)
    }

    /// Follows the remaining outcomes of a packet. @return the next row, and the number of instructions.
    #[inline]
    fn follow_rest(&mut self, mut row: u32) -> (u32, u32) {
        let mut instructions = 0_u32;
        while self.tnt.len > 0 {
            // A long packet is followed six outcomes at a time.
            let first = self.tnt.len.min(6);
            let bits = self.tnt.bits >> (self.tnt.len - first) & ((1 << first) - 1);
            let Some((next, used, some)) = self.follow(row, 1 << first | bits as u8) else { break };
            row = next;
            self.tnt.len = self.tnt.len.saturating_sub(used);
            instructions = instructions.saturating_add(some);
        }
        (row, instructions)
    }

    /// Follows the code to an indirect branch with this target. @return the row there, and the number of
    /// instructions.
    #[inline(always)]
    fn follow_branch(&mut self, mut row: u32, to: u64) -> Option<(u32, u32)> {
        if let Some(run) = self.code.paths.without_row(row) {
            match self.code.warm(run) {
                Some(now) => row = now,
                None => return self.follow_found_branch(run, to),
            }
        }
        let mut step = self.code.paths.indirect(row);
        if step.is_unknown() {
            self.code.make_indirect(row);
            step = self.code.paths.indirect(row);
        }
        if step.is_nowhere() {
            return None;
        }
        if step.has_calls() {
            self.push_calls(row, TO_INDIRECT);
        }
        self.hand_on(row, TO_INDIRECT);
        // As in `step`.
        if step.ends_in_return() {
            self.calls.clear();
        } else if step.ends_in_call() {
            self.calls.push(self.code.paths.caller(row));
        }
        let target = match self.code.is_row_of(step.next(), to, self.mode) {
            true => step.next(),
            false => self.code.learn_target(row, to, self.mode),
        };
        Some((target, step.instructions()))
    }

    /// Like `follow_branch`, from a block without a row.
    #[inline(never)]
    fn follow_found_branch(&mut self, run: u32, to: u64) -> Option<(u32, u32)> {
        let (found, branch) = self.code.find_indirect(run)?;
        self.executed(found);
        match self.code.run(branch).block.ends {
            Ends::Return => self.calls.clear(),
            Ends::IndirectCall => {
                let caller = self.code.next(branch);
                self.calls.push(caller);
            }
            _ => {}
        }
        let run = self.code.at(to, self.mode);
        Some((self.code.paths.place_of(run), found.instructions()))
    }

    fn push_calls(&mut self, row: u32, marked: u8) {
        for call in self.code.paths.calls(row, marked) {
            self.calls.push(*call);
        }
    }

    /// Follows outcomes from a place as far as possible. @return the next place, the number of outcomes
    /// used, and the number of instructions.
    #[inline(always)]
    fn follow(&mut self, mut row: u32, marked: u8) -> Option<(u32, u8, u32)> {
        if let Some(run) = self.code.paths.without_row(row) {
            match self.code.warm(run) {
                Some(now) => row = now,
                None => return self.follow_found(run, marked),
            }
        }
        let mut step = self.code.paths.step(row, marked);
        if step.is_unknown() {
            self.code.make_path(row, marked);
            step = self.code.paths.step(row, marked);
        }
        let used = step.used(marked);
        if step.is_unknown() || used == 0 {
            return None;
        }
        if step.is_return() {
            return self.follow_return(row, marked, step);
        }
        if step.has_calls() {
            self.push_calls(row, marked);
        }
        self.hand_on(row, marked);
        let mut next = step.next();
        if step.next_has_no_row() {
            next = self.code.paths.run_of(next).map_or(next, |run| self.code.paths.place_of(run));
            if self.code.paths.without_row(next).is_none() {
                self.code.paths.set_next(row, marked, next);
            }
        }
        Some((next, used, step.instructions()))
    }

    /// Like `follow`, from a block without a row.
    #[inline(never)]
    fn follow_found(&mut self, run: u32, marked: u8) -> Option<(u32, u8, u32)> {
        let found = self.code.find_path(run, marked)?;
        let next = match found.next() {
            Some(next) => next,
            None => self.calls.pop()?,
        };
        self.executed(found);
        Some((self.code.paths.place_of(next), found.used(), found.instructions()))
    }

    /// Pushes the calls of a hashed path, and reports its blocks.
    fn executed(&mut self, found: Found) {
        let (blocks, calls) = self.code.paths.parts_of_found(found);
        calls.iter().for_each(|call| self.calls.push(*call));
        if !S::IS_COUNTER {
            blocks.iter().for_each(|run| self.sink.block(&self.code.run(*run).block));
        }
    }

    /// Follows a path that ends in a return to an open call.
    #[inline(always)]
    fn follow_return(&mut self, row: u32, marked: u8, step: Step) -> Option<(u32, u8, u32)> {
        let calls = &mut self.calls;
        if let Some(found) = self.code.paths.returns(step, |callers| calls.end_with(callers)) {
            let (run, used, instructions) = (found.next, found.used, found.instructions);
            calls.drop_last(found.callers().len());
            found.calls().iter().for_each(|call| calls.push(*call));
            if !S::IS_COUNTER {
                let found = *found;
                for run in self.code.paths.blocks_of(&found) {
                    self.sink.block(&self.code.run(*run).block);
                }
            }
            return Some((self.code.paths.place_of(run), used, instructions));
        }
        let (used, instructions) = (step.used(marked), step.instructions());
        let (open, count) = self.calls.newest();
        let caller = self.calls.pop()?;
        self.hand_on(row, marked);
        self.code.make_returns(row, marked, &open[..count]);
        Some((self.code.paths.place_of(caller), used, instructions))
    }

    /// Reports the blocks of a path, unless they are only counted.
    #[inline(always)]
    fn hand_on(&mut self, row: u32, marked: u8) {
        if S::IS_COUNTER {
            return;
        }
        for run in self.code.paths.blocks(row, marked) {
            self.sink.block(&self.code.run(*run).block);
        }
    }

    /// Reads until the current address is known. @return whether there is more.
    fn find_place(&mut self) -> bool {
        match self.take() {
            Next::End => return false,
            Next::Psb => self.psb(None),
            Next::Enable(Some(ip)) => {
                self.is_not_traced();
                self.calls.clear();
                self.sink.event(self.position, Event::Enabled(ip));
                self.at = Some(self.code.at(ip, self.mode));
            }
            // Address of the processor when packets could be generated again.
            Next::Fup(Some(ip)) if self.is_after_overflow => {
                self.is_after_overflow = false;
                let is_there = !self.errata.apl12
                    || self.looks_ahead(self.packets.position(), |packet| match packet {
                        Packet::TipPge(_) | Packet::Psb | Packet::TraceStop => Some(false),
                        Packet::TntShort(_)
                        | Packet::TntLong(_)
                        | Packet::Tip(_)
                        | Packet::TipPgd(_)
                        | Packet::Ovf => Some(true),
                        _ => None,
                    }) != Some(false);
                (self.is_fup_bound, self.is_abort) = (false, false);
                if is_there {
                    self.begin_at(ip);
                }
            }
            // Code is still being executed, and all outcomes of branches before a FUP have preceded it.
            Next::Fup(Some(ip)) if self.is_lost => {
                self.begin_at(ip);
                self.happened_at(ip);
            }
            // The FUP that belongs here is missing, and this is the current address.
            Next::Tip(Some(ip)) if self.is_after_overflow && self.errata.skd010 => {
                self.is_after_overflow = false;
                self.begin_at(ip);
            }
            Next::Overflow => self.gap_of_overflow(),
            Next::Malformed(error) => self.gap(GapCause::Malformed(error)),
            Next::Disable(_) => self.is_not_traced(),
            // It is unknown to which branch these outcomes belong.
            Next::Tnt(_) if self.errata.skd010 => self.is_after_overflow = false,
            Next::Fup(_) => (self.is_fup_bound, self.is_abort) = (false, false),
            Next::Tnt(_) | Next::Tip(_) | Next::Enable(None) => {}
        }
        true
    }

    fn begin_at(&mut self, ip: u64) {
        self.is_lost = false;
        self.sink.event(self.position, Event::Synced(ip));
        self.at = Some(self.code.at(ip, self.mode));
    }

    /// Tracing is disabled: nothing is lost any more.
    fn is_not_traced(&mut self) {
        (self.is_after_overflow, self.is_lost) = (false, false);
        (self.is_fup_bound, self.is_abort) = (false, false);
    }

    /// First result of `says` other than `None`, for the packets from a position on.
    fn looks_ahead(&self, from: usize, says: impl Fn(&Packet) -> Option<bool>) -> Option<bool> {
        let mut packets = Packets::new(self.bytes).with_errata(self.errata);
        packets.go_behind(from);
        packets.map_while(Result::ok).take(AHEAD_MAX).find_map(|found| says(&found.packet))
    }

    /// Executes a block; its branch takes a packet if it needs one.
    fn step(&mut self, run: u32) {
        let block = self.code.run(run).block;
        match block.ends {
            Ends::Through | Ends::Jump | Ends::Call => {
                self.without_packet += 1;
                if self.without_packet > WITHOUT_PACKET_MAX {
                    return self.contradiction(&block);
                }
                self.sink.block(&block);
                self.goes_on(run, block.ends);
            }
            Ends::Conditional => match self.bit() {
                Some(is_taken) => {
                    self.sink.block(&block);
                    let next = if is_taken { self.code.target(run) } else { self.code.next(run) };
                    self.at = Some(next);
                }
                None => self.contradiction(&block),
            },
            Ends::Return if self.tnt.len > 0 || matches!(self.peek(), Next::Tnt(_)) => {
                // A compressed return is a taken branch to the address after the last call.
                let caller = if self.bit() == Some(true) { self.calls.pop() } else { None };
                match caller {
                    Some(caller) => {
                        self.sink.block(&block);
                        self.at = Some(caller);
                    }
                    None => self.contradiction(&block),
                }
            }
            Ends::Return | Ends::IndirectJump | Ends::IndirectCall | Ends::Far => {
                match self.peek_past_tnt(block.ends) {
                    Next::Tip(to) => {
                        self.take();
                        self.sink.block(&block);
                        match block.ends {
                            // The processor discards its return addresses when a return went elsewhere:
                            // real traces have no compressed return to an older call after one.
                            Ends::Return => self.calls.clear(),
                            Ends::IndirectCall => {
                                let caller = self.code.next(run);
                                self.calls.push(caller);
                            }
                            _ => {}
                        }
                        self.goes_to(to, block.last);
                    }
                    _ => self.contradiction(&block),
                }
            }
            Ends::NoCode => {
                if block.count > 0 {
                    self.sink.block(&block);
                }
                let ip = self.code.run(run).next;
                self.gap(GapCause::NoCode(ip));
            }
        }
    }

    /// The packet with the target of an indirect branch. Outcomes of later branches may precede it [SDM
    /// volume 3, "Deferred TIPs"].
    fn peek_past_tnt(&mut self, ends: Ends) -> Next {
        if self.tnt.len == 0
            && ends != Ends::Return
            && let Next::Tnt(tnt) = self.peek()
        {
            self.take();
            self.tnt = tnt;
        }
        self.peek()
    }

    /// Continues after a block that needs no packet.
    fn goes_on(&mut self, run: u32, ends: Ends) {
        match ends {
            Ends::Through => self.at = Some(self.code.next(run)),
            Ends::Jump => self.at = Some(self.code.target(run)),
            _ => self.call(run),
        }
    }

    fn call(&mut self, run: u32) {
        let of = self.code.run(run);
        // A call of the next instruction is used to obtain the current address, and is not kept.
        if of.target != of.next {
            let caller = self.code.next(run);
            self.calls.push(caller);
        }
        self.at = Some(self.code.target(run));
    }

    fn goes_to(&mut self, to: Option<u64>, from: u64) {
        match to {
            Some(ip) => self.at = Some(self.code.at(ip, self.mode)),
            None => {
                self.sink.event(self.position, Event::Disabled(Some(from)));
                self.at = None;
            }
        }
    }

    /// The next outcome of a conditional branch.
    fn bit(&mut self) -> Option<bool> {
        if self.tnt.len == 0 {
            let Next::Tnt(tnt) = self.peek() else { return None };
            self.take();
            self.tnt = tnt;
        }
        self.tnt.len -= 1;
        self.without_packet = 0;
        Some(self.tnt.bits >> self.tnt.len & 1 == 1)
    }

    /// An event at an address, which may be some way along the code.
    fn fup(&mut self, run: u32, ip: u64) {
        self.take();
        if self.is_abort && self.errata.bdm64 && !self.reaches(run, ip) {
            // The branch before led here, regardless of its recorded outcome.
            self.at = Some(self.code.at(ip, self.mode));
        } else {
            let (is_bound, is_abort) = (self.is_fup_bound, self.is_abort);
            if !self.walk_to(run, ip) {
                // The way here is unknown, but this is the current address.
                (self.is_fup_bound, self.is_abort) = (is_bound, is_abort);
                self.begin_at(ip);
            }
        }
        self.happened_at(ip);
    }

    /// Handles the event of a FUP once the flow has reached its address.
    fn happened_at(&mut self, ip: u64) {
        self.is_abort = false;
        if core::mem::take(&mut self.is_fup_bound) {
            return self.sink.event(self.position, Event::Here(ip));
        }
        match self.peek() {
            Next::Tip(Some(to)) => {
                self.take();
                self.sink.event(self.position, Event::Interrupted { from: ip, to });
                self.at = Some(self.code.at(to, self.mode));
            }
            Next::Tip(None) | Next::Disable(_) => {
                self.take();
                if self.errata.skd022
                    && let Some(entry) = self.vm_entry(ip)
                {
                    self.sink.block(&entry);
                }
                self.sink.event(self.position, Event::Disabled(Some(ip)));
                self.at = None;
            }
            _ => self.sink.event(self.position, Event::Here(ip)),
        }
    }

    /// The instruction at an address, if it enters a virtual machine.
    fn vm_entry(&self, ip: u64) -> Option<Block> {
        let block = Block { ip, last: ip, count: 1, mode: self.mode, ends: Ends::Far };
        self.code.has(ip, self.mode, Effect::VmEntry).then_some(block)
    }

    /// Whether the code leads from a block to an address without a packet.
    fn reaches(&mut self, from: u32, ip: u64) -> bool {
        let (mut run, mut instructions) = (from, 0);
        loop {
            let of = *self.code.run(run);
            if of.block.ip == ip || self.up_to(&of.block, ip).is_some() {
                return true;
            }
            instructions += of.block.count.max(1);
            if instructions > TO_ABORT_MAX {
                return false;
            }
            run = match of.block.ends {
                Ends::Through => self.code.next(run),
                Ends::Jump | Ends::Call => self.code.target(run),
                _ => return false,
            };
        }
    }

    /// Executes the code up to an address without a packet. @return whether it was reached.
    fn walk_to(&mut self, from: u32, ip: u64) -> bool {
        let mut run = from;
        for _ in 0..WITHOUT_PACKET_MAX {
            let of = *self.code.run(run);
            let block = of.block;
            if block.ip == ip {
                self.at = Some(run);
                return true;
            }
            if let Some(before) = self.up_to(&block, ip) {
                self.sink.block(&before);
                self.at = Some(self.code.at(ip, block.mode));
                return true;
            }
            match block.ends {
                Ends::Through | Ends::Jump | Ends::Call => self.sink.block(&block),
                Ends::NoCode => {
                    if block.count > 0 {
                        self.sink.block(&block);
                    }
                    self.gap(GapCause::NoCode(of.next));
                    return false;
                }
                _ => break,
            }
            self.goes_on(run, block.ends);
            run = self.at.unwrap_or(run);
        }
        self.gap(GapCause::Contradiction(ip));
        false
    }

    /// The instructions of a block before the one at an address, if there is one.
    fn up_to(&self, block: &Block, ip: u64) -> Option<Block> {
        if !(block.ip..=block.last).contains(&ip) {
            return None;
        }
        let (mut at, mut last, mut count) = (block.ip, block.ip, 0);
        while at < ip {
            last = at;
            count += 1;
            at = self.code.instruction(at, block.mode)?.next_ip();
        }
        (at == ip).then_some(Block { last, count, ends: Ends::Through, ..*block })
    }

    /// An instruction ends tracing: the next branch that leaves the traced code.
    fn disable(&mut self, from: u32, to: Option<u64>) {
        self.take();
        let mut run = from;
        for _ in 0..WITHOUT_PACKET_MAX {
            let of = *self.code.run(run);
            // If only one address space is traced, another one is not.
            if to.is_none()
                && let Some(before) = self.up_to_cr3(&of.block)
            {
                self.sink.block(&before);
                self.at = None;
                return self.sink.event(self.position, Event::Disabled(Some(before.last)));
            }
            if of.block.count > 0 {
                self.sink.block(&of.block);
            }
            let leaves = match of.block.ends {
                Ends::Jump | Ends::Call => {
                    to == Some(of.target) || to.is_none() && self.leaves_filter(of.target)
                }
                Ends::Through => false,
                Ends::NoCode => return self.gap(GapCause::NoCode(of.next)),
                _ => true,
            };
            if leaves {
                self.at = None;
                return self.sink.event(self.position, Event::Disabled(Some(of.block.last)));
            }
            self.goes_on(run, of.block.ends);
            run = self.at.unwrap_or(run);
        }
        self.gap(GapCause::Contradiction(self.code.run(run).block.ip));
    }

    /// The instructions of a block up to the first that changes CR3, if one does.
    fn up_to_cr3(&self, block: &Block) -> Option<Block> {
        let (mut at, mut count) = (block.ip, 0);
        while count < block.count {
            count += 1;
            let next = self.code.instruction(at, block.mode)?.next_ip();
            if self.code.has(at, block.mode, Effect::WritesCr3) {
                return Some(Block { last: at, count, ends: Ends::Through, ..*block });
            }
            at = next;
        }
        None
    }

    /// Whether a processor with SKL014 stops tracing here without reporting it.
    fn leaves_filter(&self, target: u64) -> bool {
        let filter = self.filters.get(self.code.space() as usize).map_or(&[][..], Vec::as_slice);
        self.errata.skl014
            && !filter.is_empty()
            && !filter.iter().any(|traced| traced.contains(&target))
    }

    /// Handles a PSB with the packets up to PSBEND, which contain all that is needed to start here.
    /// `run`: the current block of the walk.
    fn psb(&mut self, run: Option<u32>) {
        if run.is_some() {
            self.take();
        }
        let mut ip = None;
        loop {
            match self.packets.next() {
                Some(Ok(At { start, packet, .. })) => {
                    self.position = start;
                    match packet {
                        Packet::PsbEnd => break,
                        Packet::Fup(bytes) => {
                            ip = self.ip(bytes);
                            // Only packets that may be between this FUP and a TIP.PGE right after the
                            // PSB+.
                            let is_enabled_later = self.errata.bdm70
                                && self.looks_ahead(
                                    self.packets.position(),
                                    |packet| match packet {
                                        Packet::TipPge(_) => Some(true),
                                        Packet::Pad
                                        | Packet::Tsc(_)
                                        | Packet::Cbr(_)
                                        | Packet::PsbEnd
                                        | Packet::Pip { .. }
                                        | Packet::ModeExec { .. }
                                        | Packet::ModeTsx { .. }
                                        | Packet::Vmcs { .. }
                                        | Packet::Tma { .. }
                                        | Packet::Mtc(_)
                                        | Packet::Cyc(_)
                                        | Packet::Mnt(_) => None,
                                        _ => Some(false),
                                    },
                                ) == Some(true);
                            ip = ip.filter(|_| !is_enabled_later);
                        }
                        Packet::ModeExec { bits } => self.mode = Mode::of_packet(bits),
                        Packet::Ovf => return self.gap_of_overflow(),
                        // Another one begins before this one was complete.
                        Packet::Psb => {
                            self.last_ip = 0;
                            ip = None;
                        }
                        Packet::Pad => {}
                        other => self.sink.event(start, Event::Packet(other)),
                    }
                }
                Some(Err(error)) => {
                    self.position = error.start;
                    return self.gap(GapCause::Malformed(error));
                }
                None => break,
            }
        }
        self.is_not_traced();
        // Outcomes left over when the flow was lost do not belong to a branch after a PSB.
        self.tnt.len = 0;
        match (run, ip) {
            (Some(run), Some(ip)) => {
                let was_reached = self.walk_to(run, ip);
                self.calls.clear();
                // The contents of a PSB have precedence: a decoder that starts here knows nothing else.
                let mode = self.at.map(|run| self.code.run(run).block.mode);
                if !was_reached || mode != Some(self.mode) {
                    self.begin_at(ip);
                }
            }
            (None, Some(ip)) => {
                self.calls.clear();
                self.begin_at(ip);
            }
            // Nothing is being traced.
            (_, None) => {
                self.calls.clear();
                if run.is_some() {
                    self.sink.event(self.position, Event::Disabled(None));
                }
                self.at = None;
            }
        }
    }

    fn overflow(&mut self) {
        self.take();
        self.gap_of_overflow();
    }

    fn gap_of_overflow(&mut self) {
        self.gap(GapCause::Overflow);
        self.is_after_overflow = true;
    }

    fn contradiction(&mut self, block: &Block) {
        self.gap(GapCause::Contradiction(block.last));
    }

    /// Execution is unknown from here on.
    fn gap(&mut self, cause: GapCause) {
        self.sink.event(self.position, Event::Gap(Gap { position: self.position, cause }));
        self.at = None;
        self.tnt.len = 0;
        self.calls.clear();
        self.is_not_traced();
        // Only the address is missing: while code is executed, a FUP will contain it.
        self.is_lost = matches!(cause, GapCause::NoCode(_) | GapCause::Contradiction(_));
        self.without_packet = 0;
    }

    fn ip(&mut self, bytes: IpBytes) -> Option<u64> {
        let ip = bytes.apply(self.last_ip)?;
        self.last_ip = ip;
        Some(ip)
    }

    /// The next packet that moves the flow. Those before it are passed on.
    fn peek(&mut self) -> Next {
        if let Some(next) = self.peeked {
            return next;
        }
        let next = self.read();
        self.peeked = Some(next);
        next
    }

    fn take(&mut self) -> Next {
        self.without_packet = 0;
        match self.peeked.take() {
            Some(next) => next,
            None => self.read(),
        }
    }

    fn read(&mut self) -> Next {
        use Packet as P;
        // MODE.Exec with a FUP after it reports where interrupts were enabled or disabled.
        let mut is_after_mode = false;
        loop {
            let At { start, packet, .. } = match self.packets.next() {
                Some(Ok(at)) => at,
                Some(Err(error)) => {
                    self.position = error.start;
                    return Next::Malformed(error);
                }
                None => return Next::End,
            };
            self.position = start;
            return match packet {
                P::TntShort(tnt) | P::TntLong(tnt) => Next::Tnt(tnt),
                P::Tip(bytes) => Next::Tip(self.ip(bytes)),
                P::TipPge(bytes) => Next::Enable(self.ip(bytes)),
                P::TipPgd(bytes) => Next::Disable(self.ip(bytes)),
                P::Fup(bytes) => {
                    self.is_fup_bound |= is_after_mode;
                    Next::Fup(self.ip(bytes))
                }
                P::Ovf => Next::Overflow,
                P::Psb => {
                    self.last_ip = 0;
                    self.psb = Some(start);
                    Next::Psb
                }
                P::Pad | P::PsbEnd => continue,
                P::ModeExec { bits } => {
                    self.mode = Mode::of_packet(bits);
                    is_after_mode = true;
                    continue;
                }
                other => {
                    self.is_fup_bound |= match other {
                        P::Ptw4 { ip, .. }
                        | P::Ptw8 { ip, .. }
                        | P::ExStop { ip }
                        | P::Bep { ip }
                        | P::Cfe { ip, .. } => ip,
                        P::Trig { flags, .. } => flags & TRIG_IP != 0,
                        // The FUP of an abort is like that of an interrupt.
                        P::ModeTsx { bits } => {
                            self.is_abort = bits & MODE_TSX_ABORT != 0;
                            !self.is_abort
                        }
                        _ => false,
                    };
                    self.sink.event(start, Event::Packet(other));
                    continue;
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Sections;
    use crate::packet::encode;
    use crate::paths::Limits;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const ADDRESS: u64 = 0x40_1000;

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Told {
        Block(Block),
        Event(usize, Event),
    }

    impl Sink for Vec<Told> {
        fn block(&mut self, block: &Block) {
            self.push(Told::Block(*block));
        }

        fn event(&mut self, position: usize, event: Event) {
            self.push(Told::Event(position, event));
        }
    }

    /// Numbers of instructions between events.
    #[derive(Default)]
    struct Counts {
        since: u64,
        all: Vec<(u64, Option<Event>)>,
    }

    impl Sink for Counts {
        const IS_COUNTER: bool = true;

        fn block(&mut self, block: &Block) {
            self.since += u64::from(block.count);
        }

        fn instructions(&mut self, count: u32) {
            self.since += u64::from(count);
        }

        fn event(&mut self, _: usize, event: Event) {
            self.all.push((core::mem::take(&mut self.since), Some(event)));
        }
    }

    /// Code with many branches, at addresses that packets contain.
    fn code() -> impl Strategy<Value = Vec<u8>> {
        let near = || any::<u8>().prop_map(|to| to % 64);
        let instruction = prop_oneof![
            3 => Just(Vec::from([0x90])),
            4 => near().prop_map(|to| Vec::from([0x74, to.wrapping_sub(32)])),
            1 => near().prop_map(|to| Vec::from([0xeb, to.wrapping_sub(32)])),
            2 => near().prop_map(|to| Vec::from([0xe8, to, 0, 0, 0])),
            2 => Just(Vec::from([0xc3])),
            1 => Just(Vec::from([0xff, 0xe0])),
            1 => Just(Vec::from([0xff, 0xd0])),
            1 => Just(Vec::from([0x0f, 0x05])),
        ];
        prop::collection::vec(instruction, 20..80).prop_map(|all| all.concat())
    }

    /// Code that is not left: nops around it, and a jump back to the start.
    fn closed(code: &[u8]) -> Vec<u8> {
        let mut all = alloc::vec![0x90; 40];
        all.extend_from_slice(code);
        all.extend_from_slice(&[0x90; 70]);
        let back = -(all.len() as i32 + 5);
        all.push(0xe9);
        all.extend_from_slice(&back.to_le_bytes());
        all
    }

    /// Packets, most of them TNT, with many repetitions.
    fn packets() -> impl Strategy<Value = Vec<Packet>> {
        let place = || (0u64..200).prop_map(|at| IpBytes::Full(ADDRESS + at));
        let tnt = |len: core::ops::RangeInclusive<u8>| {
            (any::<u64>(), len).prop_map(|(bits, len)| Tnt { bits: bits & ((1 << len) - 1), len })
        };
        let clock = prop_oneof![
            3 => Just(Packet::Mtc(1)),
            2 => (0u64..400).prop_map(Packet::Cyc),
            1 => Just(Packet::Tsc(77)),
            1 => Just(Packet::Tma { ctc: 5, fast: 6 }),
            1 => Just(Packet::Cbr(9)),
            1 => Just(Packet::Pad),
        ];
        let one = prop_oneof![
            6 => tnt(1..=6).prop_map(Packet::TntShort),
            1 => tnt(1..=47).prop_map(Packet::TntLong),
            4 => place().prop_map(Packet::Tip),
            1 => Just(Packet::Tip(IpBytes::Suppressed)),
            1 => place().prop_map(Packet::TipPge),
            1 => place().prop_map(Packet::Fup),
            1 => (0u8..3).prop_map(|bits| Packet::ModeExec { bits }),
            3 => clock,
            1 => Just(Packet::Ovf),
        ];
        let many = (one, 1usize..24).prop_map(|(packet, count)| alloc::vec![packet; count]);
        let psb = (place().prop_map(Packet::Fup), any::<bool>()).prop_map(|(place, is_whole)| {
            let mode = if is_whole { Packet::ModeExec { bits: 1 } } else { Packet::Pad };
            Vec::from([Packet::Psb, mode, place, Packet::PsbEnd])
        });
        let many = prop_oneof![5 => many, 1 => psb];
        prop::collection::vec(many, 1..40).prop_map(|all| all.concat())
    }

    /// Packets of a processor that executes the code: outcomes of conditional branches follow a repeated
    /// pattern, with occasional deviations; indirect branches go to some places in turn.
    fn executed(code: &[u8], pattern: &[bool], changes: &[u8], places: &[u8]) -> Vec<Packet> {
        let mut image = Sections::default();
        image.add(ADDRESS, code);
        let mut blocks = Code::new(core::slice::from_ref(&image));
        let mut packets = Vec::new();
        let mut calls = Calls::new();
        let (mut tnt, mut branches, mut indirect) = (Tnt { bits: 0, len: 0 }, 0_usize, 0_usize);
        let mut run = blocks.at(ADDRESS, Mode::Bits64);
        let flush = |tnt: &mut Tnt, packets: &mut Vec<Packet>| {
            if tnt.len > 0 {
                packets.push(Packet::TntShort(core::mem::replace(tnt, Tnt { bits: 0, len: 0 })));
            }
        };
        for step in 0..20_000 {
            let block = blocks.run(run).block;
            if step % 500 == 499 {
                flush(&mut tnt, &mut packets);
                let place = Packet::Fup(IpBytes::Full(block.ip));
                packets.extend([Packet::Psb, Packet::ModeExec { bits: 1 }, place, Packet::PsbEnd]);
                calls.clear();
            }
            let mut outcome = None;
            match block.ends {
                Ends::Through => run = blocks.next(run),
                Ends::Jump => run = blocks.target(run),
                Ends::Call => {
                    if blocks.run(run).target != blocks.run(run).next {
                        let caller = blocks.next(run);
                        calls.push(caller);
                    }
                    run = blocks.target(run);
                }
                Ends::Conditional => {
                    let is_other = changes
                        .get(branches / 64)
                        .is_some_and(|at| usize::from(*at) == branches % 64);
                    let is_taken = pattern[branches % pattern.len()] ^ is_other;
                    branches += 1;
                    outcome = Some(is_taken);
                    run = if is_taken { blocks.target(run) } else { blocks.next(run) };
                }
                Ends::NoCode => break,
                _ => {
                    let caller = if block.ends == Ends::Return { calls.pop() } else { None };
                    if let Some(caller) = caller {
                        outcome = Some(true);
                        run = caller;
                    } else {
                        flush(&mut tnt, &mut packets);
                        let to = ADDRESS
                            + u64::from(places[indirect % places.len()]) % code.len() as u64;
                        indirect += 1;
                        packets.push(Packet::Tip(IpBytes::Full(to)));
                        match block.ends {
                            Ends::Return => calls.clear(),
                            Ends::IndirectCall => {
                                let caller = blocks.next(run);
                                calls.push(caller);
                            }
                            _ => {}
                        }
                        run = blocks.at(to, Mode::Bits64);
                    }
                }
            }
            if let Some(is_taken) = outcome {
                tnt = Tnt { bits: tnt.bits << 1 | u64::from(is_taken), len: tnt.len + 1 };
                if tnt.len == 6 {
                    flush(&mut tnt, &mut packets);
                }
            }
        }
        flush(&mut tnt, &mut packets);
        packets
    }

    /// Checks that decoding by blocks, along paths, counted, and again with warm caches gives the same.
    /// Returns the events.
    fn compare(code: &[u8], begin: u64, packets: &[Packet]) -> Vec<Event> {
        let mut image = Sections::default();
        image.add(ADDRESS, code);
        let mut bytes = Vec::new();
        let place = IpBytes::Full(ADDRESS + begin);
        let head = [Packet::Psb, Packet::ModeExec { bits: 1 }, Packet::Fup(place), Packet::PsbEnd];
        for packet in head.iter().chain(packets) {
            encode(packet, &mut bytes).unwrap();
        }
        let mut expected = Vec::new();
        let mut by_block = Flow::new(&image);
        by_block.uses_paths = false;
        by_block.decode(&bytes, &mut expected);
        let mut counted = Counts::default();
        for told in &expected {
            match told {
                Told::Block(block) => counted.block(block),
                Told::Event(at, event) => counted.event(*at, *event),
            }
        }
        counted.event(0, Event::Here(0));
        // Defaults; with rows at once; with few of them; and with caches that are cleared again and
        // again.
        let limits = [
            None,
            Some(Limits { often: 0, rows: 1 << 14, blocks: 1 << 22 }),
            Some(Limits { often: 1, rows: 3, blocks: 1 << 22 }),
            Some(Limits { often: 0, rows: 20, blocks: 30 }),
        ];
        for limits in limits {
            let (mut along_paths, mut counting) = (Flow::new(&image), Flow::new(&image));
            if let Some(limits) = limits {
                along_paths.code.paths.limits = limits;
                counting.code.paths.limits = limits;
            }
            for _ in 0..2 {
                let mut told = Vec::new();
                along_paths.decode(&bytes, &mut told);
                assert_eq!(told, expected, "{limits:?}");
                let mut counts = Counts::default();
                counting.decode(&bytes, &mut counts);
                counts.event(0, Event::Here(0));
                assert_eq!(counts.all, counted.all, "{limits:?}");
            }
        }
        for bytes_min in [1, 300] {
            let (mut in_segments, mut told) = (Flow::new(&image), Vec::new());
            for segment in crate::segments::segments(&bytes, bytes_min, Errata::NONE) {
                let mut state = in_segments.enter_segment(&bytes, &segment, &mut Vec::new());
                let all = (&segment, bytes.len());
                assert!(in_segments.decode_segment(&mut state, &bytes, all, &mut told));
            }
            assert_eq!(told, expected);
        }
        let event = |told| if let Told::Event(_, event) = told { Some(event) } else { None };
        expected.into_iter().filter_map(event).collect()
    }

    /// A segment begins with the mode of its PSB, regardless of the mode before.
    #[test]
    fn the_mode_of_a_psb_holds_from_there_on() {
        let place = Packet::Fup(IpBytes::Full(ADDRESS));
        let packets = [
            Packet::ModeExec { bits: 0 },
            Packet::Psb,
            place,
            Packet::PsbEnd,
            Packet::Psb,
            Packet::ModeExec { bits: 1 },
            place,
            Packet::PsbEnd,
            Packet::TntShort(Tnt { bits: 0, len: 1 }),
        ];
        // je over itself; it has the same length in both modes.
        let events = compare(&[0x74, 0x00, 0xff, 0xe0], 0, &packets);
        let synced = |event: &&Event| matches!(event, Event::Synced(_));
        assert_eq!(events.iter().filter(synced).count(), 3, "{events:?}");
    }

    /// The kernel goes to the same address in both: its previous target belongs to another program.
    #[test]
    fn targets_of_branches_are_of_the_address_space_in_which_they_are() {
        const KERNEL: u64 = 0xffff_8000_0000_0000;
        let mut images = [Sections::default(), Sections::default()];
        for image in &mut images {
            image.add(KERNEL, &[0xff, 0xe0]);
        }
        images[0].add(ADDRESS, &[0x90, 0xff, 0xe0]);
        images[1].add(ADDRESS, &[0x90, 0x90, 0x90, 0xff, 0xe0]);
        let place = |ip| IpBytes::Full(ip);
        let mut bytes = Vec::new();
        let mut put = |packet: &Packet| {
            encode(packet, &mut bytes).unwrap();
            bytes.len()
        };
        let head = Packet::ModeExec { bits: 1 };
        [Packet::Psb, head, Packet::Fup(place(KERNEL))].iter().for_each(|packet| {
            put(packet);
        });
        let mut ends = alloc::vec![put(&Packet::PsbEnd)];
        for _ in 0..400 {
            put(&Packet::Tip(place(ADDRESS)));
            ends.push(put(&Packet::Tip(place(KERNEL))));
        }
        let decoded = |uses_paths| {
            let mut flow = Flow::of_spaces(&images);
            flow.uses_paths = uses_paths;
            let (mut state, mut told, mut begin) = (State::new(), Vec::new(), 0);
            for (nth, end) in ends.iter().enumerate() {
                // Several times the one, then the other.
                flow.enter((nth / 3 % 2) as u32);
                flow.decode_part(&mut state, &bytes, begin..*end, &mut told);
                begin = *end;
            }
            told
        };
        let expected: Vec<Told> = decoded(false);
        let count = |of: &[Told]| -> u32 {
            of.iter().map(|told| if let Told::Block(block) = told { block.count } else { 0 }).sum()
        };
        assert!(count(&expected) > 400 * 3, "{}", count(&expected));
        assert_eq!(decoded(true), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 700, failure_persistence: None, ..Default::default() })]
        // For arbitrary code and packets.
        #[test]
        fn along_paths_it_is_the_same_as_block_by_block(
            code in code(),
            packets in packets(),
            begin in 0u64..100,
        ) {
            compare(&code, begin, &packets);
        }

        // For packets that belong to the code.
        #[test]
        fn along_paths_of_programs_it_is_the_same(
            code in code(),
            pattern in prop::collection::vec(any::<bool>(), 1..40),
            changes in prop::collection::vec(any::<u8>(), 0..60),
            places in prop::collection::vec(any::<u8>(), 1..6),
        ) {
            let code = closed(&code);
            let packets = executed(&code, &pattern, &changes, &places);
            let events = compare(&code, 0, &packets);
            let is_gap = |event: &Event| {
                matches!(event, Event::Gap(Gap { cause: GapCause::Contradiction(_), .. }))
            };
            prop_assert!(!events.iter().any(is_gap), "{:?}", events);
        }
    }
}
